//! What DataNodes have told a NameNode before it led, once it does.
//!
//! There may be many millions of replicas, and whoever calls is served before all are judged. A block is *settled* when what
//! was kept of it is: as soon as anybody asks for it ([`Cluster::settle`]), or something happens to it, else when the walk
//! over all that was kept comes by ([`Cluster::take_over_step`]). Nothing is mended, moved, grouped or deleted before the walk
//! is at its end: what is not known yet is not missing. What a DataNode reports in full comes after what was kept of it.
//!
//! What was kept counts for reads and for the end of safe mode, and for repair in the end. For a deletion it counts when the
//! DataNode has heard who leads and has reported in full since: until then another one's orders may have been obeyed of which
//! nobody has told (HDFS-1972). Cairn's DataNodes report by themselves when they hear of a new leader; those that do not are
//! asked to register, which has them report, one after the other.

use super::full::STEP;
use crate::block::{BlockFacts, BlockLookup, GroupFacts};
use crate::clock::{Now, millis};
use crate::cluster::Cluster;
use crate::handle::{NodeHandle, StorageHandle};
use crate::replica::Changes;
use crate::standby::kept::Kept;
use crate::standby::pending::{KeptReplica, Pending};
use crate::storage::StorageState;
use cairn_stripe::{BlockId, GenerationStamp, StoragePolicy, UnitIndex};
use std::collections::BTreeSet;

/// Heartbeats in which a node may begin to report by itself.
const PATIENCE: u32 = 3;

impl Cluster {
    /// Has this be the cluster of who leads from now on, where others have led: leases for full reports have numbers that
    /// none of them has given out.
    pub fn begin_to_lead(&mut self, leases_of_others: u64) {
        self.nodes.leases_mut().begin_after(leases_of_others);
    }

    /// Begins to take over what was kept, of nodes that have registered. If it was enough to lead with, safe mode does not
    /// keep anybody from changes meanwhile. Blocks that are not complete are to be settled before somebody calls.
    pub fn take_over(&mut self, kept: Kept, is_enough: bool) {
        let nodes = kept.nodes().filter_map(|(node, _)| self.nodes.by_uuid(&node.uuid));
        for node in nodes.collect::<Vec<_>>() {
            self.nodes.node_mut(node).taken_over = Some(0);
        }
        let pending = kept.into_pending(|node, uuid, storage_type| {
            let node = self.nodes.by_uuid(node).filter(|node| self.node(*node).alive)?;
            let storage = self.storage_of(node, uuid, storage_type).ok()?;
            (self.storage(storage).state != StorageState::Failed).then_some(storage)
        });
        self.pending = Some(Box::new(pending));
        let live = self.live_count();
        self.safe_mode.begin_to_take_over(is_enough, live);
    }

    /// Whether something that was kept is not taken over yet.
    pub fn is_taking_over(&self) -> bool {
        self.pending.is_some()
    }

    /// The blocks and groups that the next step may ask for, in the order of their ids.
    pub fn next_kept_blocks(&self) -> Vec<BlockId> {
        self.pending.as_ref().map_or_else(Vec::new, |pending| pending.next_blocks(STEP))
    }

    /// Takes some more of what was kept over, and adds what follows to `changes`. Returns whether another step is to follow;
    /// else [`Cluster::end_taking_over`] is.
    pub fn take_over_step(&mut self, lookup: &dyn BlockLookup, changes: &mut Changes) -> bool {
        let Some(pending) = &mut self.pending else { return false };
        changes.append(std::mem::take(&mut pending.changes));
        let Some((storage, next)) = pending.take_next(STEP) else { return false };
        self.take_kept(lookup, storage, next, changes);
        true
    }

    /// Takes some more of what was kept of a storage. Returns whether anything was left.
    pub(super) fn take_kept_of(
        &mut self,
        lookup: &dyn BlockLookup,
        storage: StorageHandle,
        changes: &mut Changes,
    ) -> bool {
        let pending = self.pending.as_mut();
        let Some(next) = pending.and_then(|pending| pending.take_next_of(storage, STEP)) else {
            return false;
        };
        self.take_kept(lookup, storage, next, changes);
        true
    }

    fn take_kept(
        &mut self,
        lookup: &dyn BlockLookup,
        storage: StorageHandle,
        kept: impl IntoIterator<Item = KeptReplica>,
        changes: &mut Changes,
    ) {
        for KeptReplica { replica, bad } in kept {
            self.take_replica(lookup, storage, replica, None, changes);
            if let Some(bad) = bad {
                // What is not known any more is not bad.
                let _ = self.mark_reported(lookup, storage, bad);
            }
        }
    }

    /// All that was kept is taken over: the safe mode of the start ends if it is enough, without a wait for the next tick.
    /// Returns whether it has ended by that, and what is to be dropped when others do not wait.
    pub fn end_taking_over(&mut self, now: Now) -> (bool, Option<Box<Pending>>) {
        let Some(pending) = self.pending.take() else { return (false, None) };
        let live = self.live_count();
        self.safe_mode.end_taking_over(live);
        let has_ended = !self.safe_mode.is_starting() || self.safe_mode.tick(now, live);
        self.scan_if_new();
        (has_ended, Some(pending))
    }

    /// Has blocks and groups settled that somebody asks for, with those that they are packed in or grouped with.
    pub fn settle(&mut self, lookup: &dyn BlockLookup, blocks: &[BlockId]) {
        if self.pending.is_none() {
            return;
        }
        let mut due: Vec<BlockId> = blocks.iter().map(|id| id.group()).collect();
        let mut seen = BTreeSet::new();
        while let Some(id) = due.pop() {
            if !seen.insert(id) {
                continue;
            }
            self.settle_block(lookup, id);
            let facts = lookup.block(id);
            due.extend(facts.and_then(|facts| facts.packed));
            let handle = facts.and_then(|facts| facts.group).map(|(handle, _)| handle);
            if let Some(group) = handle.filter(|_| !id.is_parity()).and_then(|of| lookup.group(of))
            {
                due.push(group.handle);
                due.extend(group.slots.iter().flatten().map(|slot| slot.id));
            }
        }
    }

    /// Has a block settled that is not complete any more, by what it was before.
    pub fn settle_before(&mut self, lookup: &dyn BlockLookup, id: BlockId, before: BlockFacts) {
        if self.pending.is_some() {
            self.settle_block(&Before { lookup, id, before }, id);
        }
    }

    /// Has one block or group settled.
    pub(super) fn settle_block(&mut self, lookup: &dyn BlockLookup, id: BlockId) {
        let Some(pending) = &mut self.pending else { return };
        let mut changes = Changes::default();
        for (storage, kept) in pending.take_of(id) {
            self.take_kept(lookup, storage, [kept], &mut changes);
        }
        if let Some(pending) = &mut self.pending {
            pending.changes.append(changes);
        }
    }

    /// Whether a node is to register so that it reports in full. To be asked with each of its heartbeats.
    pub(crate) fn is_to_prove(&mut self, handle: NodeHandle, wants_lease: bool, now: Now) -> bool {
        let Some(silent) = self.node(handle).taken_over else { return false };
        let storages = self.node(handle).storages.iter().map(|storage| self.storage(*storage));
        if storages.into_iter().all(|s| s.reported || s.state == StorageState::Failed) {
            self.nodes.node_mut(handle).taken_over = None;
            return false;
        }
        let silent = if wants_lease { 0 } else { silent.saturating_add(1) };
        self.nodes.node_mut(handle).taken_over = Some(silent);
        let leases = self.config.report_leases.max(1) as u64;
        let pause_ms = millis(self.config.heartbeat_interval) / leases;
        let is_due = silent >= PATIENCE && now.mono_ms >= self.asks_next_ms;
        if is_due {
            self.asks_next_ms = now.mono_ms.saturating_add(pause_ms);
        }
        is_due
    }
}

/// A state of the namespace, but for one block, which is as it was before.
struct Before<'a> {
    lookup: &'a dyn BlockLookup,
    id: BlockId,
    before: BlockFacts,
}

impl BlockLookup for Before<'_> {
    fn block(&self, id: BlockId) -> Option<BlockFacts> {
        if id == self.id { Some(self.before) } else { self.lookup.block(id) }
    }

    fn group(&self, handle: BlockId) -> Option<GroupFacts> {
        self.lookup.group(handle)
    }

    fn blocks_after(&self, after: Option<BlockId>, limit: usize) -> Vec<(BlockId, BlockFacts)> {
        self.lookup.blocks_after(after, limit)
    }

    fn storage_policy(&self, id: BlockId) -> StoragePolicy {
        self.lookup.storage_policy(id)
    }

    fn unit_crc(&self, id: BlockId, unit: UnitIndex) -> Option<u32> {
        // What is recorded of this one is of what it is to become.
        if id == self.id { None } else { self.lookup.unit_crc(id, unit) }
    }

    fn is_future(&self, gs: GenerationStamp) -> bool {
        self.lookup.is_future(gs)
    }
}

#[cfg(test)]
mod failover;
#[cfg(test)]
mod tests;
