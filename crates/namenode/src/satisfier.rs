//! What clients want brought to where its storage policy says, for a satisfier outside of the NameNode to fetch.
//!
//! Requests are marks in the tree (`cairn_namespace::ops::satisfy_storage_policy`); their order is in
//! [`Satisfier`](crate::node::satisfier::Satisfier). What was fetched is not handed out again before the next start, which
//! queues all that is still marked.
//!
//! Source: Hadoop 3.5.0 `StoragePolicySatisfyManager`.

use std::sync::Arc;

use cairn_master::Submission;
use cairn_namespace::ops::satisfy_storage_policy::mark;
use cairn_namespace::ops::xattr::RemoveXAttr;
use cairn_namespace::{InodeId, query};
use cairn_operate::workers::Worker;
use cairn_process::lasting;

use crate::config::SatisfierMode;
use crate::node::NameNode;

/// Attributes looked at in one hold of a state of the tree.
const PAGE: usize = 10_000;

/// Queues what was asked for before the start. Nothing waits for it: others are queued meanwhile.
pub(crate) async fn take_up(node: Arc<NameNode>, worker: Arc<Worker>) {
    worker.pass().await;
    if !node.satisfier.is_enabled() {
        return;
    }
    let read = move || {
        let mut from = Some(InodeId(0));
        while let Some(id) = from {
            let page = node.ns.read(|store| query::to_satisfy(store, id, PAGE));
            match page {
                Ok((found, next)) => {
                    found.into_iter().for_each(|id| node.satisfier.add(id));
                    from = next;
                }
                Err(error) => {
                    tracing::error!(%error, "requests to satisfy storage policies cannot be read");
                    return;
                }
            }
        }
    };
    lasting::blocking(read).await;
}

/// Turns the queue on or off. What was in it loses its mark: nobody looks after it. Waits for the log.
///
/// Source: Hadoop 3.5.0 `StoragePolicySatisfyManager#changeModeEvent`.
pub(crate) fn change_mode(node: &NameNode, mode: SatisfierMode) {
    for id in node.satisfier.set_mode(mode) {
        let path = format!("/.reserved/.inodes/{id}");
        let submission = Submission::own(RemoveXAttr { path, name: mark() });
        if let Err(error) = node.ns.submit_blocking(submission) {
            // It may have been deleted meanwhile.
            tracing::debug!(%error, %id, "a request to satisfy a storage policy stays");
        }
    }
}
