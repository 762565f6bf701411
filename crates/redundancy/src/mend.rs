//! Work that brings redundancy back: what waits, what is under way, and what each node is told.
//!
//! Replicas are copied (`Command::Transfer`), lost units of groups decoded (`Command::Reconstruct`),
//! surplus and bad ones deleted (`Command::Invalidate`). Nothing is handed out in safe mode. What to
//! mend next is chosen in `schedule`, looked at once more and handed out in `dispatch`; what becomes of
//! work that fails is in `failure`. Tested in `mend/tests.rs`.

use crate::Now;
use crate::block::BlockRef;
use crate::cluster::Cluster;
use crate::command::{BlockRecovery, Reconstruction, Transfer};
use crate::node::NodeHandle;
use crate::record::DisprovedCrc;
use crate::stats::ClusterStats;
use crate::storage::StorageHandle;
use cairn_stripe::{BlockId, GenerationStamp, UnitIndex};
use deletions::Deletions;
use orders::Orders;
use pending::{Pending, Task};
use setback::Setbacks;
use std::collections::{BTreeMap, BTreeSet};

mod deletions;
mod dispatch;
mod evacuate;
pub mod failure;
pub mod inspect;
mod orders;
mod part;
mod pending;
mod schedule;
mod setback;
mod told;
mod walk;

#[cfg(test)]
mod tests;

/// After so many heartbeats a replica that a client's pipeline has written does not come any more.
///
/// Deviation: Hadoop waits as long as for one that it has ordered to be copied
/// (`BlockManager#addExpectedReplicasToPending`), and does nothing for the block meanwhile.
const LATE_REPORT_HEARTBEATS: u32 = 10;

/// A bad replica or unit as its DataNode has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bad {
    pub block: BlockRef,
    /// Bad because its stamp is not the block's, so that deleting it loses nothing.
    pub stale: bool,
    /// The CRC of all its bytes, where nothing is held against it but that the record has another.
    pub crc32c: Option<u32>,
}

/// Work of one kind that waits, and whether another loss would cost data.
#[derive(Clone, Debug)]
struct Waiting<T> {
    is_urgent: bool,
    work: T,
}

/// Work for one node until its next heartbeat.
#[derive(Clone, Debug, Default)]
struct Outbox {
    transfers: Vec<Waiting<Transfer>>,
    reconstructions: Vec<Waiting<Reconstruction>>,
    recoveries: Vec<BlockRecovery>,
    bandwidth: Option<u64>,
    /// Urgent work that it was told of and that is not reported done.
    urgent: BTreeSet<BlockId>,
}

/// All work that waits or is under way.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mending {
    pub(crate) shared: part::SharedNodes,
    outboxes: BTreeMap<NodeHandle, Outbox>,
    orders: Orders,
    invalid: Deletions,
    told: told::Told,
    bad: BTreeMap<BlockId, Vec<(StorageHandle, Bad)>>,
    pending: Pending,
    setbacks: Setbacks,
    /// Reads for reconstructions that a node was chosen for since its last heartbeat.
    lent: BTreeMap<NodeHandle, u32>,
    /// Blocks with replicas to delete that wait for a storage's first report.
    postponed: BTreeSet<BlockId>,
    /// Nodes (by UUID) to delete a surplus replica or unit from.
    hints: BTreeMap<BlockId, (UnitIndex, String)>,
    pub(crate) excess_count: u64,
    /// Records of CRCs that are to be replaced.
    pub(crate) disproved: BTreeMap<BlockId, DisprovedCrc>,
    walks: walk::Walks,
    /// Where the last round stopped in each queue.
    cursors: [Option<BlockId>; 5],
    last_round_ms: Option<u64>,
    /// Blocks that may still be scheduled before the next round is due.
    round_rest: usize,
    /// Something was lost: the rest of the round is not to wait until the next one is due.
    is_hurried: bool,
}

impl Mending {
    pub(crate) fn start_scan(&mut self) {
        self.walks.start_scan();
        self.last_round_ms = None;
        self.round_rest = 0;
    }

    /// Has the next tick schedule what the present round leaves room for.
    pub(crate) fn hurry(&mut self) {
        self.is_hurried = true;
    }

    /// Has all blocks looked at, after the walk that may be under way: there is a new rack.
    pub(crate) fn scan_again(&mut self) {
        self.walks.scan_again();
    }

    pub(crate) fn recheck_postponed(&mut self) {
        self.walks.recheck_again();
    }

    pub(crate) fn postpone(&mut self, id: BlockId) {
        self.postponed.insert(id);
    }

    pub(crate) fn hint_deletion(&mut self, id: BlockId, unit: UnitIndex, node_uuid: &str) {
        self.hints.insert(id, (unit, node_uuid.to_string()));
    }

    pub(crate) fn take_hint(&mut self, id: BlockId) -> Option<(UnitIndex, String)> {
        self.hints.remove(&id)
    }

    /// Replicas or units that are on their way.
    pub(crate) fn coming(&self, id: BlockId) -> &[Task] {
        self.pending.of(id)
    }

    /// Blocks and groups with replicas or units on their way.
    pub(crate) fn under_way(&self) -> u64 {
        self.pending.len() as u64
    }

    /// Counts replicas or units as being on their way, brought by `worker` if the NameNode ordered them.
    pub(crate) fn expect(
        &mut self,
        id: BlockId,
        targets: Vec<(StorageHandle, UnitIndex)>,
        worker: Option<NodeHandle>,
        now: Now,
    ) {
        let since_ms = now.mono_ms;
        let task = |(storage, unit)| Task { storage, unit, worker, since_ms, is_sent: false };
        self.pending.add(id, targets.into_iter().map(task));
    }

    /// One of them, of which no node was told, will not come.
    fn unexpect(&mut self, id: BlockId, target: (StorageHandle, UnitIndex)) {
        self.pending.take(id, |task| !task.is_sent && (task.storage, task.unit) == target);
    }

    pub(crate) fn bad_of(&self, id: BlockId) -> &[(StorageHandle, Bad)] {
        self.bad.get(&id).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn mark_bad(&mut self, id: BlockId, storage: StorageHandle, bad: Bad) {
        let marks = self.bad.entry(id).or_default();
        marks.retain(|(s, old)| *s != storage || old.block.id != bad.block.id);
        marks.push((storage, bad));
    }

    /// Clears a mark. Returns whether there was one.
    pub(crate) fn forget_bad(
        &mut self,
        id: BlockId,
        storage: StorageHandle,
        unit: UnitIndex,
    ) -> bool {
        let Some(marks) = self.bad.get_mut(&id) else { return false };
        let before = marks.len();
        marks.retain(|(s, bad)| *s != storage || bad.block.id.unit() != unit);
        let cleared = marks.len() < before;
        if marks.is_empty() {
            self.bad.remove(&id);
        }
        cleared
    }

    /// Clears a mark that a report disproves: one for a wrong stamp or length, not one for bad bytes.
    /// Returns it.
    pub(crate) fn forget_bad_by_report(
        &mut self,
        id: BlockId,
        storage: StorageHandle,
        unit: UnitIndex,
        now: BlockRef,
    ) -> Option<Bad> {
        let is_disproved = |(s, bad): &&(StorageHandle, Bad)| {
            *s == storage && bad.block.id.unit() == unit && bad.block != now
        };
        let (_, bad) = self.bad_of(id).iter().find(is_disproved).copied()?;
        self.forget_bad(id, storage, unit);
        Some(bad)
    }

    /// Takes back a deletion that its node was not told of yet. Returns whether there was one.
    pub(crate) fn revoke(&mut self, storage: StorageHandle, block: BlockRef) -> bool {
        self.invalid.remove(storage, block)
    }

    /// Takes back all deletions of a replica or internal block, whatever its stamp. Returns whether there
    /// was one.
    pub(crate) fn revoke_all(&mut self, storage: StorageHandle, id: BlockId) -> bool {
        self.invalid.remove_any_stamp(storage, id)
    }

    pub(crate) fn forget_block(&mut self, id: BlockId) -> Vec<(StorageHandle, Bad)> {
        self.shared.note(id, false);
        self.pending.forget(id);
        self.setbacks.forget(id);
        self.disproved.remove(&id);
        self.postponed.remove(&id);
        self.hints.remove(&id);
        self.drop_work_on(id);
        self.bad.remove(&id).unwrap_or_default()
    }

    /// A storage is gone: what it should have deleted, it will tell of again if it returns.
    pub(crate) fn forget_storage(&mut self, storage: StorageHandle) {
        self.invalid.forget(storage);
    }

    /// Blocks whose recovery no node was told of yet, with the stamp of the attempt.
    pub(crate) fn recoveries_not_told(&self) -> Vec<(BlockId, GenerationStamp)> {
        let waiting = self.outboxes.values().flat_map(|outbox| &outbox.recoveries);
        waiting.map(|recovery| (recovery.block.id, recovery.new_gs)).collect()
    }

    /// Takes the order to recover a block back that no node was told of yet.
    pub(crate) fn take_recovery_back(&mut self, id: BlockId) {
        for outbox in self.outboxes.values_mut() {
            outbox.recoveries.retain(|recovery| recovery.block.id != id);
        }
    }

    /// Takes back work on a block that no node was told of yet.
    fn drop_work_on(&mut self, id: BlockId) {
        for outbox in self.outboxes.values_mut() {
            outbox.transfers.retain(|waiting| waiting.work.block.id.group() != id);
            outbox.reconstructions.retain(|waiting| waiting.work.group.id != id);
        }
        self.take_recovery_back(id);
    }
}

impl Cluster {
    pub(crate) fn queue_recovery(&mut self, node: NodeHandle, recovery: BlockRecovery) {
        self.mending.take_recovery_back(recovery.block.id);
        self.mending.outbox(node).recoveries.push(recovery);
    }

    pub(crate) fn queue_invalidation(&mut self, storage: StorageHandle, block: BlockRef) {
        self.mending.invalid.insert(storage, block);
    }

    pub(crate) fn invalidation_done(&mut self, storage: StorageHandle, block: BlockRef) {
        self.mending.invalid.remove_any_len(storage, block);
        let node = self.storage(storage).node;
        self.mending.told.is_obeyed(node, block);
    }

    /// A replica or unit has arrived: work that was to bring it there is done. The node may have
    /// taken another of its storages than was chosen. Returns whether there was such work.
    pub(crate) fn work_arrived(&mut self, storage: StorageHandle, id: BlockId) -> bool {
        let node = self.storage(storage).node;
        let (group, unit) = (id.group(), id.unit());
        let storages = &self.storages;
        let is_it = |t: &Task| t.unit == unit && storages[t.storage.0 as usize].node == node;
        let done = self.mending.pending.take(group, is_it);
        if !done.is_empty() && self.mending.pending.of(group).is_empty() {
            self.mending.setbacks.forget(group);
        }
        if !done.is_empty() {
            self.blocks.note_change(group);
        }
        !done.is_empty()
    }

    /// A node starts anew or is gone: it knows nothing of what it was told, and what was to go there or
    /// to be brought by it will not arrive. Returns the blocks whose work was lost.
    pub(crate) fn drop_commands(&mut self, node: NodeHandle) -> Vec<BlockId> {
        let outbox = self.mending.outboxes.remove(&node);
        // These it was not told of: it will be when it calls, unless they are passed on before.
        let recoveries = outbox.map_or_else(Vec::new, |outbox| outbox.recoveries);
        if !recoveries.is_empty() {
            self.mending.outbox(node).recoveries = recoveries;
        }
        self.scrubs.forget_worker(node);
        let storages = &self.storages;
        let concerns =
            |t: &Task| t.worker == Some(node) || storages[t.storage.0 as usize].node == node;
        let lost = self.mending.pending.take_all(concerns);
        let mut lost: Vec<BlockId> = lost.into_iter().map(|(id, _)| id).collect();
        lost.dedup();
        lost.iter().for_each(|id| self.blocks.note_change(*id));
        lost
    }

    /// Adds the figures of blocks to those of nodes.
    pub(crate) fn count_blocks(&self, stats: &mut ClusterStats) {
        self.queues.count(&mut stats.replicated, &mut stats.groups);
        // Those that are being deleted are not needed any more.
        let is_kept = |id: &BlockId| self.blocks.of(*id).any(|p| p.corrupt && !p.excess);
        for id in self.mending.bad.keys().filter(|id| is_kept(id)) {
            let corrupt = if id.is_striped() {
                &mut stats.groups.corrupt
            } else {
                &mut stats.replicated.corrupt
            };
            *corrupt += 1;
        }
        stats.replicated.pending_deletion = self.mending.invalid.replicas();
        stats.groups.pending_deletion = self.mending.invalid.units();
        let (blocks, groups) = self.safe_mode.bytes_in_future_parts();
        stats.replicated.bytes_in_future = blocks;
        stats.groups.bytes_in_future = groups;
        stats.pending_reconstruction = self.mending.pending.len() as u64;
        stats.scheduled_reconstruction = self.queues.len() as u64;
        stats.excess = self.mending.excess_count;
        stats.disagreeing = self.scrubs.disagreeing.len() as u64;
    }

    /// Blocks and groups with too little redundancy, those nearest to loss first.
    pub fn queues(&self) -> &crate::queue::Queues {
        &self.queues
    }

    /// Bounds the bytes per second that every live DataNode uses for balancing.
    pub fn set_balancer_bandwidth(&mut self, bytes_per_second: u64) {
        let live: Vec<NodeHandle> =
            self.nodes().filter(|node| node.alive).map(|node| node.handle).collect();
        for node in live {
            self.mending.outbox(node).bandwidth = Some(bytes_per_second);
        }
    }

    /// Takes back work whose time is over, and leaves out for a while who was to do it. What is missing of a client's
    /// pipeline was written already and needs to be reported only.
    fn expired_work(&mut self, now: Now) -> Vec<BlockId> {
        let timeout = crate::millis(self.config.pending_timeout);
        let of_pipeline =
            timeout.min(crate::millis(LATE_REPORT_HEARTBEATS * self.config.heartbeat_interval));
        let old = |task: &Task| {
            let most = if task.worker.is_some() { timeout } else { of_pipeline };
            now.mono_ms.saturating_sub(task.since_ms) >= most
        };
        let expired = self.mending.pending.take_all(old);
        for (id, task) in &expired {
            if task.is_sent {
                self.mending.setbacks.note(*id, task.worker, &self.config, now);
            }
        }
        let mut ids: Vec<BlockId> = expired.into_iter().map(|(id, _)| id).collect();
        ids.dedup();
        ids.iter().for_each(|id| self.blocks.note_change(*id));
        ids
    }
}
