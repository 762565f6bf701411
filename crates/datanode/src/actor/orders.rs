//! Waiting for work: the NameNode that is obeyed answers as soon as it has queued some for this DataNode, which then sends
//! its heartbeat at once.
//!
//! The call is Cairn's own; a NameNode that does not offer it with its answers to heartbeats is not asked
//! (`HeartbeatResponseProto` 1001), and work waits for the next heartbeat as with Hadoop.

use super::call::call;
use crate::error::Result;
use crate::members::Member;
use crate::node::Node;
use cairn_wire::proto::datanode::{AwaitOrdersRequestProto, AwaitOrdersResponseProto};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A NameNode that answers sooner without news is asked again after the next heartbeat only.
const SHORTEST_HOLD: Duration = Duration::from_secs(1);

/// Has a heartbeat sent whenever `member` says that it has work.
pub(crate) async fn watch(node: Arc<Node>, member: Member) {
    let mut told = node.name_nodes.get(member).orders.subscribe();
    loop {
        let Ok(seen) = told.wait_for(Option::is_some).await.map(|told| *told) else { return };
        let asked = Instant::now();
        let known = match await_orders(&node, member, seen.unwrap_or_default()).await {
            Ok(orders) => *told.borrow_and_update() == Some(orders),
            Err(error) => {
                tracing::debug!(%error, "cannot wait for work");
                true
            }
        };
        if !known {
            node.heartbeat_now.one(member);
        } else if asked.elapsed() >= SHORTEST_HOLD {
            continue;
        }
        if told.changed().await.is_err() {
            return;
        }
    }
}

async fn await_orders(node: &Node, member: Member, seen: u64) -> Result<u64> {
    let registration = node.name_nodes.get(member).registration()?;
    let request = AwaitOrdersRequestProto { registration, seen };
    let answer: AwaitOrdersResponseProto = call(node, member, "awaitOrders", &request).await?;
    Ok(answer.orders)
}
