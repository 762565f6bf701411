//! Work that brings redundancy back: what waits, what is under way, and what each node is told.
//!
//! Replicas are copied (`Command::Transfer`), lost units of groups decoded (`Command::Reconstruct`),
//! surplus and bad ones deleted (`Command::Invalidate`). Nothing is handed out in safe mode. What to
//! mend next is chosen in `schedule`, looked at once more and handed out in `dispatch`; what becomes of
//! work that fails is in `failure`. Tested in `mend/tests.rs`.

use crate::clock::{Now, millis};
use crate::cluster::Cluster;
use crate::handle::{NodeHandle, StorageHandle};
use crate::stats::ClusterStats;
use crate::work::pending::Task;
use cairn_stripe::{BlockId, UnitIndex};

mod deletions;
mod dispatch;
mod evacuate;
pub mod failure;
pub mod inspect;
mod part;
mod schedule;
mod walk;

#[cfg(test)]
mod tests;

/// After so many heartbeats a replica that a client's pipeline has written does not come any more.
///
/// Deviation: Hadoop waits as long as for one that it has ordered to be copied
/// (`BlockManager#addExpectedReplicasToPending`), and does nothing for the block meanwhile.
const LATE_REPORT_HEARTBEATS: u32 = 10;

impl Cluster {
    /// A replica or unit has arrived: work that was to bring it there is done. The node may have
    /// taken another of its storages than was chosen. Returns whether there was such work.
    pub(crate) fn work_arrived(
        &mut self,
        storage: StorageHandle,
        (group, unit): (BlockId, UnitIndex),
    ) -> bool {
        let node = self.storage(storage).node;
        let nodes = &self.nodes;
        let is_it = |t: &Task| t.unit == unit && nodes.node_of(t.storage) == node;
        let has_arrived = self.work.arrived(group, is_it);
        if has_arrived {
            self.blocks.note_change(group);
        }
        has_arrived
    }

    /// A node starts anew or is gone: it knows nothing of what it was told, and what was to go there or
    /// to be brought by it will not arrive. Returns the blocks whose work was lost.
    pub(crate) fn drop_commands(&mut self, node: NodeHandle) -> Vec<BlockId> {
        let outbox = self.work.take_outbox(node);
        // These it was not told of: it will be when it calls, unless they are passed on before.
        let recoveries = outbox.map_or_else(Vec::new, |outbox| outbox.recoveries);
        if !recoveries.is_empty() {
            self.work.give(node).recoveries = recoveries;
        }
        self.scrubs.forget_worker(node);
        self.end_attempts_of(node);
        let nodes = &self.nodes;
        let concerns = |t: &Task| t.worker == Some(node) || nodes.node_of(t.storage) == node;
        let lost = self.work.give_up_all(concerns);
        let mut lost: Vec<BlockId> = lost.into_iter().map(|(id, _)| id).collect();
        lost.dedup();
        lost.iter().for_each(|id| self.blocks.note_change(*id));
        lost
    }

    /// Adds the figures of blocks to those of nodes.
    pub(crate) fn count_blocks(&self, stats: &mut ClusterStats) {
        self.low.queues().count(stats);
        // Those that are being deleted are not needed any more.
        let is_kept = |id: &BlockId| self.blocks.of(*id).any(|p| p.corrupt && !p.excess);
        for id in self.blocks.with_bad().filter(is_kept) {
            let corrupt = if id.has_units() {
                &mut stats.groups.corrupt
            } else {
                &mut stats.replicated.corrupt
            };
            *corrupt += 1;
        }
        (stats.replicated.pending_deletion, stats.groups.pending_deletion) =
            self.blocks.deletion_counts();
        let (blocks, groups) = self.safe_mode.bytes_in_future_parts();
        stats.replicated.bytes_in_future = blocks;
        stats.groups.bytes_in_future = groups;
        stats.pending_reconstruction = self.work.under_way_count();
        stats.mended = self.work.mended();
        stats.scheduled_reconstruction = self.low.queues().len() as u64;
        stats.excess = self.blocks.excess_count();
        stats.disagreeing = self.blocks.disagreeing_count() as u64;
    }

    /// Blocks and groups with too little redundancy, those nearest to loss first.
    pub fn queues(&self) -> &crate::queue::Queues {
        self.low.queues()
    }

    /// A number that is another one whenever work was queued for the node since: one that has taken what
    /// it was told need not ask again before.
    ///
    /// Deviation: Hadoop's NameNode waits for the heartbeat.
    pub fn orders(&self, node: NodeHandle) -> u64 {
        self.work.orders(node)
    }

    /// Whether work was queued for any node since this was asked last.
    pub fn take_new_orders(&mut self) -> bool {
        self.work.take_new_orders()
    }

    /// Bounds the bytes per second that every DataNode uses for balancing: those that live are told, others when they
    /// register; 0 for what each has in its settings, of which they are told only as they start.
    pub fn set_balancer_bandwidth(&mut self, bytes_per_second: u64) {
        self.balancer_bandwidth = bytes_per_second;
        let live: Vec<NodeHandle> =
            self.nodes().filter(|node| node.alive).map(|node| node.handle).collect();
        for node in live {
            self.work.give(node).bandwidth = Some(bytes_per_second);
        }
    }

    /// Takes back work whose time is over, and leaves out for a while who was to do it. What is missing of a client's
    /// pipeline was written already and needs to be reported only.
    fn expired_work(&mut self, now: Now) -> Vec<BlockId> {
        let timeout = millis(self.config.pending_timeout);
        let of_pipeline =
            timeout.min(millis(LATE_REPORT_HEARTBEATS * self.config.heartbeat_interval));
        let old = |task: &Task| {
            let most = if task.worker.is_some() { timeout } else { of_pipeline };
            now.mono_ms.saturating_sub(task.since_ms) >= most
        };
        let expired = self.work.give_up_all(old);
        for (id, task) in &expired {
            if task.is_sent {
                self.work.failed(*id, task.worker, &self.config, now);
            }
        }
        let mut ids: Vec<BlockId> = expired.into_iter().map(|(id, _)| id).collect();
        ids.dedup();
        ids.iter().for_each(|id| self.blocks.note_change(*id));
        ids
    }
}
