//! Which nodes have been given work since they asked last: a shell that can reach them need not let them
//! wait for their next heartbeat.
//!
//! Deviation: Hadoop's NameNode waits for the heartbeat.

use super::{Mending, Outbox};
use crate::cluster::Cluster;
use crate::node::NodeHandle;
use std::collections::BTreeMap;

/// How often each node was given work.
#[derive(Clone, Debug, Default)]
pub(super) struct Orders {
    counts: BTreeMap<NodeHandle, u64>,
    /// Some were counted since the last question.
    are_new: bool,
}

impl Mending {
    /// What waits for a node, to add to it.
    pub(super) fn outbox(&mut self, node: NodeHandle) -> &mut Outbox {
        *self.orders.counts.entry(node).or_default() += 1;
        self.orders.are_new = true;
        self.outboxes.entry(node).or_default()
    }
}

impl Cluster {
    /// A number that is another one whenever work was queued for the node since: one that has taken what
    /// it was told need not ask again before.
    pub fn orders(&self, node: NodeHandle) -> u64 {
        self.mending.orders.counts.get(&node).copied().unwrap_or(0)
    }

    /// Whether work was queued for any node since this was asked last.
    pub fn take_new_orders(&mut self) -> bool {
        std::mem::take(&mut self.mending.orders.are_new)
    }
}
