//! The work that waits or is under way, for those who tell operators.

use crate::block::BlockRef;
use crate::cluster::Cluster;
use crate::handle::NodeHandle;
use cairn_stripe::BlockId;
use std::collections::BTreeMap;

/// Work that a node is told of with its next heartbeats.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WaitingWork {
    /// Replicas to copy.
    pub replicas: usize,
    /// Units of groups to copy.
    pub units: usize,
    /// Groups to decode units of.
    pub groups: usize,
    /// Blocks to recover.
    pub recoveries: usize,
}

impl Cluster {
    /// Blocks with replicas to delete that wait for a storage's first report.
    pub fn postponed_blocks(&self) -> impl Iterator<Item = BlockId> + '_ {
        self.blocks.postponed()
    }

    /// Blocks whose mending is under way: since when (monotonic milliseconds), and how many replicas or
    /// units are to come.
    pub fn work_under_way(&self) -> impl Iterator<Item = (BlockId, u64, usize)> + '_ {
        self.work.under_way().map(|(id, tasks)| {
            let since_ms = tasks.iter().map(|task| task.since_ms).min();
            (id, since_ms.unwrap_or_default(), tasks.len())
        })
    }

    /// Replicas and units that wait to be deleted, by node.
    pub fn waiting_deletions(&self) -> BTreeMap<NodeHandle, Vec<BlockRef>> {
        let mut by_node: BTreeMap<NodeHandle, Vec<BlockRef>> = BTreeMap::new();
        for (storage, blocks) in self.blocks.deletions() {
            by_node.entry(self.storage(storage).node).or_default().extend(blocks);
        }
        by_node
    }

    /// Blocks and groups with bad replicas or units.
    pub fn blocks_with_bad_replicas(&self) -> impl Iterator<Item = BlockId> + '_ {
        self.blocks.with_bad()
    }

    /// What a node has not been told of yet.
    pub fn waiting_work(&self, node: NodeHandle) -> WaitingWork {
        let Some(outbox) = self.work.waiting_for(node) else { return WaitingWork::default() };
        let transfers = outbox.transfers.iter();
        let units = transfers.filter(|waiting| waiting.work.block.id.has_units()).count();
        WaitingWork {
            replicas: outbox.transfers.len() - units,
            units,
            groups: outbox.reconstructions.len() + outbox.rebuilds.len(),
            recoveries: outbox.recoveries.len(),
        }
    }
}
