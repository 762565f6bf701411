//! Work that brings redundancy back, and recoveries: what waits for which node, what is under way, what has failed.

use crate::clock::Now;
use crate::command::{BlockRecovery, Order};
use crate::config::Config;
use crate::handle::{NodeHandle, StorageHandle};
use cairn_stripe::{BlockId, GenerationStamp, UnitIndex};
use outbox::Outbox;
use pending::{Pending, Task};
use setback::Setbacks;
use std::collections::{BTreeMap, BTreeSet};

pub(crate) mod outbox;
pub(crate) mod pending;
pub(crate) mod rounds;
mod setback;
pub(crate) mod walks;

/// What an order brings where, with the block or group.
fn arrivals<O: Order>(
    order: &O,
) -> impl Iterator<Item = (BlockId, (StorageHandle, UnitIndex))> + use<O> {
    let id = order.group();
    order.arrivals().into_iter().map(move |target| (id, target))
}

/// All of it. Nothing of it is known of a block that was removed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Work {
    outboxes: BTreeMap<NodeHandle, Outbox>,
    /// How often each node was given work.
    orders: BTreeMap<NodeHandle, u64>,
    /// Some were counted since the last question.
    has_new_orders: bool,
    pending: Pending,
    setbacks: Setbacks,
    /// Reads for reconstructions that a node was chosen for since its last heartbeat.
    reads: BTreeMap<NodeHandle, u32>,
    /// Replicas and units that have come because they were ordered.
    mended: u64,
}

impl Work {
    /// What waits for a node, to add to it.
    pub(crate) fn give(&mut self, node: NodeHandle) -> &mut Outbox {
        *self.orders.entry(node).or_default() += 1;
        self.has_new_orders = true;
        self.outboxes.entry(node).or_default()
    }

    /// What waits for a node.
    pub(crate) fn waiting_for(&self, node: NodeHandle) -> Option<&Outbox> {
        self.outboxes.get(&node)
    }

    /// Nodes for which something waits.
    pub(crate) fn outboxes(&self) -> impl Iterator<Item = (NodeHandle, &Outbox)> {
        self.outboxes.iter().map(|(node, outbox)| (*node, outbox))
    }

    /// Takes out all that waits for a node.
    pub(crate) fn take_outbox(&mut self, node: NodeHandle) -> Option<Outbox> {
        self.outboxes.remove(&node)
    }

    /// Puts back what a node was not told of.
    pub(crate) fn put_back(&mut self, node: NodeHandle, outbox: Outbox) {
        if !outbox.is_empty() {
            self.outboxes.insert(node, outbox);
        }
    }

    /// How often a node was given work.
    pub(crate) fn orders(&self, node: NodeHandle) -> u64 {
        self.orders.get(&node).copied().unwrap_or(0)
    }

    /// Whether any node was given work since this was asked last.
    pub(crate) fn take_new_orders(&mut self) -> bool {
        std::mem::take(&mut self.has_new_orders)
    }

    /// Takes back copies and reconstructions that wait for a node. Returns what was to go where.
    pub(crate) fn take_back(&mut self, node: NodeHandle) -> BTreeSet<BlockId> {
        let Some(outbox) = self.outboxes.get_mut(&node) else { return BTreeSet::new() };
        let transfers = std::mem::take(&mut outbox.transfers);
        let works = std::mem::take(&mut outbox.reconstructions);
        let rebuilds = std::mem::take(&mut outbox.rebuilds);
        let copies = transfers.iter().flat_map(|waiting| arrivals(&waiting.work));
        let decoded = works.iter().flat_map(|waiting| arrivals(&waiting.work));
        let rebuilt = rebuilds.iter().flat_map(|waiting| arrivals(&waiting.work));
        let mut freed = BTreeSet::new();
        for (id, target) in copies.chain(decoded).chain(rebuilt) {
            self.pending.take(id, |task| !task.is_sent && (task.storage, task.unit) == target);
            freed.insert(id);
        }
        freed
    }

    /// Gives a node the order to recover a block, in the place of any that was not told.
    pub(crate) fn give_recovery(&mut self, node: NodeHandle, recovery: BlockRecovery) {
        self.take_recovery_back(recovery.block.id);
        self.give(node).recoveries.push(recovery);
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

    /// Replicas or units that are on their way.
    pub(crate) fn coming(&self, id: BlockId) -> &[Task] {
        self.pending.of(id)
    }

    /// How many replicas and units are to arrive on a storage.
    pub(crate) fn coming_to(&self, storage: StorageHandle) -> usize {
        self.pending.to(storage)
    }

    /// Blocks and groups with replicas or units on their way.
    pub(crate) fn under_way_count(&self) -> u64 {
        self.pending.len() as u64
    }

    /// Replicas and units that have come because they were ordered.
    pub(crate) fn mended(&self) -> u64 {
        self.mended
    }

    /// These, with what is on its way.
    pub(crate) fn under_way(&self) -> impl Iterator<Item = (BlockId, &[Task])> {
        self.pending.iter()
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

    /// A worker was told to bring these.
    pub(crate) fn sent(&mut self, id: BlockId, targets: &[(StorageHandle, UnitIndex)], now: Now) {
        for task in self.pending.of_mut(id) {
            if targets.contains(&(task.storage, task.unit)) {
                // Its time begins now: waiting in the queue is not the worker's fault.
                (task.is_sent, task.since_ms) = (true, now.mono_ms);
            }
        }
    }

    /// Some of what is on its way has come. Returns whether there was any.
    pub(crate) fn arrived(&mut self, id: BlockId, is_it: impl Fn(&Task) -> bool) -> bool {
        let come = self.pending.take(id, is_it);
        self.mended += come.iter().filter(|task| task.worker.is_some()).count() as u64;
        let has_come = !come.is_empty();
        if has_come && self.pending.of(id).is_empty() {
            self.setbacks.forget(id);
        }
        has_come
    }

    /// Some of what is on its way will not come. Returns whether there was any.
    pub(crate) fn give_up(&mut self, id: BlockId, is_it: impl Fn(&Task) -> bool) -> bool {
        !self.pending.take(id, is_it).is_empty()
    }

    /// The same of all blocks and groups.
    pub(crate) fn give_up_all(&mut self, is_it: impl Fn(&Task) -> bool) -> Vec<(BlockId, Task)> {
        self.pending.take_all(is_it)
    }

    /// Work on a block has failed, through `suspect` if that is known.
    pub(crate) fn failed(
        &mut self,
        id: BlockId,
        suspect: Option<NodeHandle>,
        config: &Config,
        now: Now,
    ) {
        self.setbacks.note(id, suspect, config, now);
    }

    /// When work on a block may be tried again, if that is later than now.
    pub(crate) fn wait_of(&self, id: BlockId, now: Now) -> Option<u64> {
        self.setbacks.wait_of(id, now)
    }

    /// Nodes to do without for a block, if it can be done without them.
    pub(crate) fn suspects(&self, id: BlockId, now: Now) -> Vec<NodeHandle> {
        self.setbacks.suspects(id, now)
    }

    /// Forgets failures of long ago.
    pub(crate) fn forget_old_failures(&mut self, now: Now) {
        self.setbacks.expire(now);
    }

    /// Reads for reconstructions that a node was chosen for since its last heartbeat.
    pub(crate) fn reads_from(&self, node: NodeHandle) -> u32 {
        self.reads.get(&node).copied().unwrap_or(0)
    }

    /// A node will be read from for a reconstruction.
    pub(crate) fn add_read(&mut self, node: NodeHandle) {
        *self.reads.entry(node).or_default() += 1;
    }

    /// A node tells how much it does: reads are in that.
    pub(crate) fn forget_reads(&mut self, node: NodeHandle) {
        self.reads.remove(&node);
    }

    /// No file has the block any more: nothing that no node was told of is done for it.
    pub(crate) fn forget_block(&mut self, id: BlockId) {
        self.pending.take(id, |_| true);
        self.setbacks.forget(id);
        for outbox in self.outboxes.values_mut() {
            outbox.transfers.retain(|waiting| waiting.work.group() != id);
            outbox.reconstructions.retain(|waiting| waiting.work.group() != id);
            outbox.rebuilds.retain(|waiting| waiting.work.group() != id);
            outbox.encodes.retain(|order| order.group.id != id);
            outbox.packs.retain(|order| order.container.id != id);
        }
        self.take_recovery_back(id);
    }

    /// Makes what is kept not fit together, to see that this is noticed.
    #[cfg(test)]
    pub(crate) fn damage(&mut self) {
        let to = (StorageHandle(0), UnitIndex(0));
        self.expect(BlockId(1), vec![to], Some(NodeHandle(0)), Now::default());
    }

    /// Panics if what is kept does not fit together.
    pub(crate) fn check_invariants(&self) {
        self.pending.check_invariants();
        self.check_some(BlockId(i64::MIN), usize::MAX);
    }

    /// The same of what is under way for so many blocks from one on. Returns the next, if there is one.
    pub(crate) fn check_some(&self, first: BlockId, count: usize) -> Option<BlockId> {
        let mut under_way = self.pending.iter_from(first);
        for (id, tasks) in under_way.by_ref().take(count) {
            for task in tasks.iter().filter(|task| !task.is_sent) {
                let Some(worker) = task.worker else { continue };
                let target = (task.storage, task.unit);
                let is_ordered = self.waiting_for(worker).is_some_and(|outbox| {
                    outbox.transfers.iter().any(|waiting| waiting.work.brings(id, target))
                        || outbox.reconstructions.iter().any(|w| w.work.brings(id, target))
                        || outbox.rebuilds.iter().any(|w| w.work.brings(id, target))
                });
                assert!(is_ordered, "{worker:?} will never be told to bring {task:?} of {id}");
            }
        }
        under_way.next().map(|(id, _)| id)
    }
}
