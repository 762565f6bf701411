//! What DataNodes say they hold: full reports, incremental ones, and bad blocks.
//!
//! A replica that the namespace does not want is deleted; one with the wrong stamp or length is marked
//! bad and deleted when enough good ones are there. Nothing is ever guessed: a unit is known by the
//! low bits of its own id. Tested against a naive model in `report/tests.rs`.

use crate::Changes;
use crate::LateCrc;
use crate::ReplicaEvent;
use crate::ReplicaEventKind;
use crate::ReplicaState;
use crate::ReportedReplica;
use crate::block::{BlockFacts, BlockLookup, BlockRef, BlockState};
use crate::cluster::Cluster;
use crate::error::RedundancyError;
use crate::handle::{NodeHandle, StorageHandle};
use crate::places::bad::Bad;
use crate::places::construction::Construction;
use crate::places::map::Place;
use crate::places::own_id;
use crate::report::judge::Verdict;
use crate::report::judge::is_altered;
use crate::report::judge::judge;
use crate::slots::Slots;
use crate::storage::StorageState;
use cairn_stripe::{BlockId, GenerationStamp, StorageType};
use std::collections::BTreeSet;

pub mod full;
pub(crate) mod judge;
mod kept;
pub(crate) mod ongoing;
mod scan;

impl Cluster {
    /// Takes what has happened on one storage since the last report.
    ///
    /// Source: Hadoop 3.5.0 `BlockManager#processIncrementalBlockReport`.
    pub fn incremental_report(
        &mut self,
        lookup: &dyn BlockLookup,
        node: NodeHandle,
        storage: (&str, StorageType),
        events: &[ReplicaEvent],
    ) -> Changes {
        let mut changes = Changes::default();
        let storage = match self.storage_of(node, storage.0, storage.1) {
            Ok(storage) => storage,
            Err(refused) => {
                changes.refused = Some(refused);
                return changes;
            }
        };
        if self.storage(storage).state == StorageState::Failed {
            return changes;
        }
        for event in events {
            self.settle_block(lookup, event.block.id.group());
            self.note_newer(storage, event.block.id);
            let (block, crc32c) = (event.block, event.crc32c);
            match &event.kind {
                ReplicaEventKind::Deleted => self.replica_deleted(lookup, storage, block),
                ReplicaEventKind::Receiving => {
                    let state = ReplicaState::BeingWritten;
                    let replica = ReportedReplica { block, state, crc32c: None };
                    self.take_replica(lookup, storage, replica, None, &mut changes);
                }
                ReplicaEventKind::Received { delete_hint } => {
                    let state = ReplicaState::Finalized;
                    let replica = ReportedReplica { block, state, crc32c };
                    let hint = delete_hint.as_deref();
                    let was_known = self.blocks.map().is_on(storage, block.id);
                    let has_arrived = self.has_arrived(lookup, storage, block.id);
                    self.take_replica(lookup, storage, replica, hint, &mut changes);
                    if was_known && has_arrived {
                        // A full report told of it first, when it was still awaited.
                        self.check_redundancy(lookup, block.id.group());
                    }
                }
            }
        }
        changes
    }

    /// Whether what has come to a storage was awaited there, as a block or unit or as a member of a contiguous group.
    fn has_arrived(
        &mut self,
        lookup: &dyn BlockLookup,
        storage: StorageHandle,
        id: BlockId,
    ) -> bool {
        let slot = lookup.block(id.group()).and_then(|facts| facts.group);
        let has_come = self.work_arrived(storage, (id.group(), id.unit()));
        slot.is_some_and(|slot| self.work_arrived(storage, slot)) || has_come
    }

    fn replica_deleted(
        &mut self,
        lookup: &dyn BlockLookup,
        storage: StorageHandle,
        block: BlockRef,
    ) {
        let node = self.storage(storage).node;
        self.blocks.is_deleted(storage, node, block);
        if let Some(construction) = self.blocks.construction_mut(block.id.group()) {
            construction.forget(storage, block.id.unit());
        }
        self.remove_place(lookup, storage, block.id);
    }

    pub(crate) fn take_replica(
        &mut self,
        lookup: &dyn BlockLookup,
        storage: StorageHandle,
        replica: ReportedReplica,
        delete_hint: Option<&str>,
        changes: &mut Changes,
    ) {
        let id = replica.block.id.group();
        let facts = lookup.block(id);
        let verdict = match judge(facts.as_ref(), &replica) {
            Verdict::Good if is_altered(lookup, &replica) => {
                changes.altered.push(replica.block);
                Verdict::Bad(Bad { block: replica.block, stale: false, crc32c: replica.crc32c })
            }
            verdict => verdict,
        };
        match verdict {
            Verdict::Ignored => self.drop_outdated(lookup, storage, replica.block),
            Verdict::Unwanted => self.unwanted_replica(lookup, storage, replica.block),
            Verdict::Bad(bad) => {
                let Some(facts) = facts else { return };
                self.record_construction(id, &facts, storage, replica);
                self.mark_bad(lookup, storage, bad);
                if self.is_excess(storage, bad.block.id) {
                    // It was told to delete this, and didn't.
                    self.blocks.order_deletion(storage, bad.block);
                }
            }
            Verdict::Building => {
                let Some(facts) = facts else { return };
                self.record_construction(id, &facts, storage, replica);
                if replica.state == ReplicaState::Finalized {
                    self.accept_finalized(lookup, id, &facts, storage, replica);
                }
            }
            Verdict::Good => {
                let Some(facts) = facts else { return };
                if let Some(node) = delete_hint {
                    self.blocks.hint_deletion(id, replica.block.id.unit(), node);
                }
                self.accept_finalized(lookup, id, &facts, storage, replica);
                self.blocks.take_hint(id);
                self.note_good(lookup, &facts, &replica, changes);
            }
        }
    }

    /// A replica of which nothing is to be told: if it is known with an older stamp, and bad for that, its node
    /// has nothing to delete any more.
    fn drop_outdated(&mut self, lookup: &dyn BlockLookup, storage: StorageHandle, block: BlockRef) {
        let mark = self.blocks.mark(storage, block.id);
        if mark.is_some_and(|bad| bad.block.gs < block.gs) {
            self.remove_place(lookup, storage, block.id);
        }
    }

    fn note_good(
        &mut self,
        lookup: &dyn BlockLookup,
        facts: &BlockFacts,
        replica: &ReportedReplica,
        changes: &mut Changes,
    ) {
        let (id, unit) = (replica.block.id.group(), replica.block.id.unit());
        if facts.state == BlockState::Committed && self.min_reached(id, facts) {
            if !changes.ready.contains(&id) {
                changes.ready.push(id);
            }
        } else if facts.state == BlockState::Complete
            && let Some(crc32c) = replica.crc32c
            && lookup.unit_crc(id, unit).is_none()
        {
            let gs = facts.gs;
            changes.late_crcs.push(LateCrc { id, gs, unit, crc32c });
        }
    }

    fn unwanted_replica(
        &mut self,
        lookup: &dyn BlockLookup,
        storage: StorageHandle,
        block: BlockRef,
    ) {
        self.remove_place(lookup, storage, block.id);
        if lookup.is_future(block.gs) {
            if !self.safe_mode.is_starting() {
                // Written after the state that this NameNode was started with: not its to delete.
                return;
            }
            self.safe_mode.add_bytes_in_future(block.id.has_units(), block.len);
        }
        self.blocks.order_deletion(storage, block);
    }

    /// Keeps a report with a block that is being written, or that is complete but was not settled here.
    fn record_construction(
        &mut self,
        id: BlockId,
        facts: &BlockFacts,
        storage: StorageHandle,
        replica: ReportedReplica,
    ) {
        let own = &self.nodes.node(self.nodes.node_of(storage)).storages;
        match self.blocks.construction_mut(id) {
            Some(construction) => {
                construction.relocate(own, storage, replica.block.id.unit());
                construction.record(storage, replica);
            }
            None if facts.state == BlockState::Complete => {}
            None => {
                let mut construction = Construction::new(id, facts.gs, &[]);
                construction.record(storage, replica);
                self.blocks.begin_construction(id, construction);
            }
        }
    }

    /// Adds a finalized replica to what is known, or clears its mark of being bad.
    pub(crate) fn accept_finalized(
        &mut self,
        lookup: &dyn BlockLookup,
        id: BlockId,
        facts: &BlockFacts,
        storage: StorageHandle,
        replica: ReportedReplica,
    ) {
        self.record_construction(id, facts, storage, replica);
        let before = self.safe_blocks(lookup, id, facts);
        let moved = self.drop_moved(storage, replica.block);
        let own_id = replica.block.id;
        let is_new = self.blocks.add(storage, own_id);
        let was_doubtful = self.blocks.is_there(storage, own_id);
        let disproved = self.blocks.mark(storage, own_id).filter(|bad| bad.block != replica.block);
        if disproved.is_some() {
            self.blocks.clear_mark(storage, own_id);
            // Its node may have been told to delete it, and to delete this one with it if they have one stamp: then it may
            // be gone any moment, and is not deleted on purpose.
            self.blocks.take_back(storage, own_id);
        }
        match moved {
            // A move makes bad bytes no better.
            Some((_, Some(bad))) if bad.block == replica.block => {
                self.blocks.mark_bad(storage, bad);
            }
            Some((old, None)) if old.excess => {
                self.blocks.choose_for_deletion(storage, replica.block);
            }
            _ => {}
        }
        self.safe_mode.count_safe(before, self.safe_blocks(lookup, id, facts));
        let excess = self.is_excess(storage, own_id);
        if excess {
            // It was told to delete this, and didn't.
            self.blocks.order_deletion(storage, replica.block);
        }
        // Surplus that is still there may be all that is left by now.
        if excess || is_new || disproved.is_some() || was_doubtful {
            self.check_against(lookup, id, Some(*facts));
        }
    }

    /// Takes a place out of what is known. `id` is an internal block's own id for a unit.
    pub(crate) fn remove_place(
        &mut self,
        lookup: &dyn BlockLookup,
        storage: StorageHandle,
        id: BlockId,
    ) {
        if !self.blocks.map().is_on(storage, id) {
            return;
        }
        let group = id.group();
        let facts = lookup.block(group);
        let before = facts.as_ref().map(|facts| self.safe_blocks(lookup, group, facts));
        self.detach(storage, id);
        if let (Some(facts), Some(before)) = (facts.as_ref(), before) {
            self.safe_mode.count_safe(before, self.safe_blocks(lookup, group, facts));
        }
        self.check_against(lookup, group, facts);
    }

    /// Forgets a place. `id` is an internal block's own id for a unit.
    fn detach(&mut self, storage: StorageHandle, id: BlockId) -> Option<(Place, Option<Bad>)> {
        self.leaving.forget(self.nodes.node_of(storage), id);
        self.groups.forget_proof(id, storage);
        self.blocks.remove(storage, id)
    }

    /// Whether a place is chosen for deletion.
    fn is_excess(&self, storage: StorageHandle, own_id: BlockId) -> bool {
        self.blocks.on(storage, own_id).is_some_and(|place| place.excess)
    }

    /// A node has a replica once: told of on another of its storages, it has moved there. Were both
    /// counted, the one that is left could be deleted as surplus.
    ///
    /// Source: Hadoop 3.5.0 `DatanodeStorageInfo#addBlock`.
    fn drop_moved(
        &mut self,
        storage: StorageHandle,
        block: BlockRef,
    ) -> Option<(Place, Option<Bad>)> {
        let (id, unit) = (block.id.group(), block.id.unit());
        let node = self.storage(storage).node;
        let is_old = |place: &Place| {
            let elsewhere = place.storage != storage && place.unit == unit;
            elsewhere && self.storage(place.storage).node == node
        };
        let old = self.blocks.of(id).find(is_old)?.storage;
        self.detach(old, block.id)
    }

    /// Marks a replica or unit that a client or DataNode found to be bad. Nothing happens if the node is not known to
    /// hold it, or has another stamp of it by now. `storage_uuid` may be empty: then the node's first storage that
    /// has it is meant.
    ///
    /// Source: Hadoop 3.5.0 `BlockManager#findAndMarkBlockAsCorrupt`.
    pub fn report_bad(
        &mut self,
        lookup: &dyn BlockLookup,
        node: NodeHandle,
        storage_uuid: &str,
        block: BlockRef,
    ) -> Result<(), RedundancyError> {
        let id = block.id.group();
        self.settle_block(lookup, id);
        let Some(facts) = lookup.block(id) else {
            return Err(RedundancyError::UnknownBlock { id: block.id.0 });
        };
        let on_node = self.blocks.of(id).find(|place| {
            let storage = self.storage(place.storage);
            let named = storage_uuid.is_empty() || storage.uuid == storage_uuid;
            storage.node == node && place.unit == block.id.unit() && named
        });
        let Some(storage) = on_node.map(|place| place.storage) else {
            if let Some(container) = facts.packed {
                // One reader does not have thousands of others' files made anew.
                self.have_container_looked_at(lookup, container, node);
                return Ok(());
            }
            return Err(RedundancyError::UnknownBlock { id: block.id.0 });
        };
        self.mark_reported(lookup, storage, block)
    }

    /// Marks what a storage is known to have, and somebody has found to be bad.
    fn mark_reported(
        &mut self,
        lookup: &dyn BlockLookup,
        storage: StorageHandle,
        block: BlockRef,
    ) -> Result<(), RedundancyError> {
        let known = lookup.block(block.id.group());
        let known = known.filter(|_| self.blocks.map().is_on(storage, block.id));
        let Some(facts) = known else {
            return Err(RedundancyError::UnknownBlock { id: block.id.0 });
        };
        if facts.state == BlockState::Complete && block.gs != facts.gs {
            // What has another stamp is known to be bad, and marked so. The reader's locations are old.
            return Err(RedundancyError::UnknownBlock { id: block.id.0 });
        }
        // Who found bad bytes knows nothing of how many there are.
        let len = match facts.is_final() && block.gs == facts.gs {
            true => facts.unit_len(block.id.unit()),
            false => block.len,
        };
        let block = BlockRef { len, ..block };
        let bad = Bad { block, stale: block.gs < facts.gs, crc32c: None };
        self.mark_bad(lookup, storage, bad);
        self.rounds.hurry();
        Ok(())
    }

    pub(crate) fn mark_bad(&mut self, lookup: &dyn BlockLookup, storage: StorageHandle, bad: Bad) {
        let id = bad.block.id.group();
        let facts = lookup.block(id);
        let before = facts.as_ref().map(|facts| self.safe_blocks(lookup, id, facts));
        self.drop_moved(storage, bad.block);
        self.blocks.mark_bad(storage, bad);
        if let (Some(facts), Some(before)) = (facts.as_ref(), before) {
            self.safe_mode.count_safe(before, self.safe_blocks(lookup, id, facts));
        }
        if bad.crc32c.is_some() {
            self.weigh_record(lookup, id);
        }
        self.check_against(lookup, id, facts);
    }

    /// After a block got its final length and stamp: marks the places that differ. One that was opened for that, and that its
    /// node has not said to be finalized, is none until it says so.
    ///
    /// Deviation: Hadoop counts it as a good one.
    pub(crate) fn settle_replicas(
        &mut self,
        lookup: &dyn BlockLookup,
        id: BlockId,
        facts: &BlockFacts,
    ) {
        let Some(construction) = self.blocks.construction(id) else { return };
        let others = self.blocks.of(id);
        let (awaited, others): (Vec<Place>, Vec<Place>) = others
            .filter(|place| !place.corrupt && !construction.fits(place, facts))
            .partition(|place| construction.is_being_written(place, facts.gs));
        let misfits: Vec<(StorageHandle, BlockRef)> = others
            .iter()
            .filter_map(|place| Some((place.storage, construction.reported_block(place)?)))
            .collect();
        // Their nodes would tell of them with their next full report only.
        let mut left_open = Vec::new();
        if facts.state == BlockState::Complete {
            left_open = construction.left_open(facts.gs);
            left_open.retain(|(storage, block)| {
                let is_known = self.blocks.map().is_on(*storage, block.id);
                !is_known && !self.is_lost(*storage)
            });
        }
        for place in awaited {
            self.remove_place(lookup, place.storage, own_id(id, place.unit));
        }
        for (storage, block) in misfits.into_iter().chain(left_open) {
            let stale = block.gs != facts.gs;
            self.mark_bad(lookup, storage, Bad { block, stale, crc32c: None });
        }
    }

    /// Forgets a block that no file has; what is known of it anywhere is deleted. A node that is lost, or has lost it,
    /// tells of what it still has when it is back: its order would wait for ever if it does not come.
    pub(crate) fn forget_block(&mut self, id: BlockId, gs: GenerationStamp) {
        let forgotten = self.blocks.forget(id);
        self.work.forget_block(id);
        self.low.forget_block(id);
        // Parities of an attempt are told apart by their lengths when it turns out to have been formed.
        let mut told: Vec<(StorageHandle, BlockRef)> = Vec::new();
        for expected in forgotten.construction.into_iter().flat_map(|c| c.expected) {
            self.settle_promise(&expected, None);
            // What is finalized as well as what is bad has a place.
            let Some(reported) = expected.reported else { continue };
            if id.is_parity() {
                told.push((expected.storage, reported.block));
            }
            let is_here = |place: &Place| {
                place.storage == expected.storage && place.unit == reported.block.id.unit()
            };
            if !forgotten.places.iter().any(is_here) && !self.is_lost(expected.storage) {
                self.blocks.order_deletion(expected.storage, reported.block);
            }
        }
        for place in forgotten.places {
            let own_id = own_id(id, place.unit);
            self.leaving.forget(self.nodes.node_of(place.storage), own_id);
            let mut marks = forgotten.bad.iter();
            let mark = marks.find(|(at, bad)| *at == place.storage && bad.block.id == own_id);
            let told = told.iter().find(|(at, told)| *at == place.storage && told.id == own_id);
            let told = told.map_or(BlockRef { id: own_id, gs, len: 0 }, |(_, told)| *told);
            let block = mark.map_or(told, |(_, bad)| bad.block);
            if !self.is_lost(place.storage) {
                self.blocks.order_deletion(place.storage, block);
            }
        }
    }

    /// How many blocks safe mode counts as found, of those whose bytes can be had from this one: itself, or the members
    /// of its contiguous group, those too that no file has: they are among the blocks that it waits for. One that is not
    /// complete does not count.
    pub(crate) fn safe_blocks(
        &self,
        lookup: &dyn BlockLookup,
        id: BlockId,
        facts: &BlockFacts,
    ) -> u64 {
        // It is waited for containers that are needed, and not for what is packed in them.
        let is_counted = facts.state == BlockState::Complete && facts.packed.is_none();
        if !self.safe_mode.is_starting() || !is_counted || lookup.is_spare(id) {
            return 0;
        }
        let slots = Slots::of(lookup, id, facts);
        if !slots.is_contiguous() {
            let good = self.count_good(id, facts, self.blocks.of(id));
            return u64::from(good >= self.safe_min(facts));
        }
        let mut units = BTreeSet::new();
        units.extend(self.all_places_of(&slots).filter(|p| !p.corrupt).map(|place| place.unit));
        units.retain(|unit| slots.facts.has_bytes(*unit));
        let is_decodable = units.len() >= slots.facts.data_units();
        let own = slots.members().filter(|(unit, _)| !slots.is_elsewhere(*unit));
        own.filter(|(unit, _)| is_decodable || units.contains(unit)).count() as u64
    }
}

#[cfg(test)]
mod tests;
