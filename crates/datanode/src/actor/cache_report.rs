//! Telling a NameNode which replicas are kept in memory.
//!
//! Source: Hadoop 3.5.0 `BPServiceActor#cacheReport`. Deviation: told as soon as it changes, too.

use super::call::call;
use crate::cache;
use crate::error::Result;
use crate::members::Member;
use crate::node::Node;
use cairn_wire::proto::datanode::{CacheReportRequestProto, CacheReportResponseProto};
use std::sync::Arc;
use tokio::time::Instant;

/// Tells, if it is time or something has changed. Says nothing where no memory is to be used.
pub(super) async fn send(node: &Arc<Node>, member: Member, next: &mut Instant) -> Result<()> {
    if node.config.max_locked_memory == 0 {
        return Ok(());
    }
    let is_due = Instant::now() >= *next;
    if is_due {
        node.cache.ids().into_iter().for_each(|id| cache::recheck(node, id));
    }
    let has_changed = node.cache.take_untold(member);
    if !has_changed && !is_due {
        return Ok(());
    }
    let request = CacheReportRequestProto {
        registration: node.name_nodes.get(member).registration()?,
        block_pool_id: node.dataset.pool_id().unwrap_or_default().into(),
        blocks: node.cache.ids().into_iter().map(|id| id.0 as u64).collect(),
    };
    let told: Result<CacheReportResponseProto> = call(node, member, "cacheReport", &request).await;
    match told {
        Ok(_) => {
            *next = Instant::now() + node.tunables.cache_report_interval.get();
            Ok(())
        }
        Err(error) => {
            node.cache.not_told(member);
            Err(error)
        }
    }
}
