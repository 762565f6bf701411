//! Calls of a NameNode, timed.

use crate::error::{DataNodeError, Result};
use crate::members::Member;
use crate::node::Node;
use std::time::Instant;

/// Calls `member`.
pub(super) async fn call<Req: prost::Message, Resp: prost::Message + Default>(
    node: &Node,
    member: Member,
    method: &'static str,
    request: &Req,
) -> Result<Resp> {
    let started = Instant::now();
    let answer = node.name_nodes.get(member).client.call(method, request).await;
    if let Some(timer) = node.metrics.call(method) {
        timer.ended(started.elapsed(), answer.is_err());
    }
    answer.map_err(|source| DataNodeError::Rpc { what: method, source })
}
