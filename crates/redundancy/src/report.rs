//! What DataNodes say they hold: full reports, incremental ones, and bad blocks.
//!
//! A replica that the namespace does not want is deleted; one with the wrong stamp or length is marked
//! bad and deleted when enough good ones are there. Nothing is ever guessed: a unit is known by the
//! low bits of its own id. Tested against a naive model in `report/tests.rs`.

use crate::block::{BlockFacts, BlockLookup, BlockRef, BlockState};
use crate::block_map::Place;
use crate::cluster::Cluster;
use crate::construction::Construction;
use crate::error::RedundancyError;
use crate::mend::Bad;
use crate::node::NodeHandle;
use crate::storage::{StorageHandle, StorageState};
use cairn_stripe::{BlockId, GenerationStamp, StorageType, UnitIndex};

pub mod full;
mod scan;
#[cfg(test)]
mod tests;

/// The state of a replica on its DataNode. The numbers are Hadoop's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReplicaState {
    /// Closed, and as long as it will be.
    Finalized = 0,
    /// Being written.
    BeingWritten = 1,
    /// Was being written when its DataNode stopped.
    WaitingToBeRecovered = 2,
    /// Being recovered.
    UnderRecovery = 3,
    /// Being copied from another node; never reported.
    Temporary = 4,
}

impl ReplicaState {
    /// The state with Hadoop's number.
    pub fn from_number(number: u8) -> Option<ReplicaState> {
        use ReplicaState::{
            BeingWritten, Finalized, Temporary, UnderRecovery, WaitingToBeRecovered,
        };
        [Finalized, BeingWritten, WaitingToBeRecovered, UnderRecovery, Temporary]
            .into_iter()
            .find(|state| *state as u8 == number)
    }
}

/// One replica or internal block of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReportedReplica {
    /// Its id (an internal block's own), stamp and bytes on disk.
    pub block: BlockRef,
    /// Its state.
    pub state: ReplicaState,
    /// CRC32C of its bytes, if its DataNode is one of ours and it is finalized.
    pub crc32c: Option<u32>,
}

/// What happened to a replica.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplicaEventKind {
    /// A writer has begun.
    Receiving,
    /// It is finalized. The UUID of the DataNode whose copy it replaces, if it was moved.
    Received {
        /// The DataNode to delete a copy from, if there are too many.
        delete_hint: Option<String>,
    },
    /// It is gone.
    Deleted,
}

/// One entry of an incremental report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplicaEvent {
    /// Its id (an internal block's own), stamp and bytes.
    pub block: BlockRef,
    /// What happened.
    pub kind: ReplicaEventKind,
    /// CRC32C of its bytes, for `Received` from one of our DataNodes.
    pub crc32c: Option<u32>,
}

/// What the shell must do after reports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Committed blocks that have enough good replicas or units now: to be made complete.
    pub ready: Vec<BlockId>,
    /// CRC32C of units that came after their block was complete: to be recorded.
    pub late_crcs: Vec<LateCrc>,
    /// Finalized replicas and units whose bytes are not those first written: marked bad, worth a
    /// word to the operator.
    pub altered: Vec<BlockRef>,
    /// Blocks and groups whose replicas or units disagree, and nobody knows which one is wrong.
    pub unexplained: Vec<BlockId>,
    /// Why nothing was taken: there can be no such storage.
    pub refused: Option<RedundancyError>,
}

/// The CRC of a unit that was reported after its block was complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LateCrc {
    /// The block or group.
    pub id: BlockId,
    /// The stamp of the unit, which is the block's.
    pub gs: GenerationStamp,
    /// The unit; 0 for a replica.
    pub unit: UnitIndex,
    /// CRC32C of its bytes.
    pub crc32c: u32,
}

impl Changes {
    /// Takes what is to be done besides.
    pub fn append(&mut self, other: Changes) {
        self.ready.extend(other.ready);
        self.late_crcs.extend(other.late_crcs);
        self.altered.extend(other.altered);
        self.unexplained.extend(other.unexplained);
        self.refused = self.refused.take().or(other.refused);
    }

    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        let is_quiet = self.altered.is_empty() && self.unexplained.is_empty();
        self.ready.is_empty() && self.late_crcs.is_empty() && is_quiet && self.refused.is_none()
    }
}

/// What a reported replica is worth.
enum Verdict {
    /// No block wants it.
    Unwanted,
    /// It differs from what its block wants.
    Bad(Bad),
    /// It belongs to a block under construction.
    Building,
    /// It is what its block wants.
    Good,
    /// To be left as it is.
    Ignored,
}

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
                    let has_arrived = self.work_arrived(storage, block.id);
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

    fn replica_deleted(
        &mut self,
        lookup: &dyn BlockLookup,
        storage: StorageHandle,
        block: BlockRef,
    ) {
        self.invalidation_done(storage, block);
        if let Some(construction) = self.blocks.construction_mut(block.id.group()) {
            construction.forget(storage, block.id.unit());
        }
        self.remove_place(lookup, storage, block.id);
    }

    fn take_replica(
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
                if self.is_excess(id, storage, bad.block.id.unit()) {
                    // It was told to delete this, and didn't.
                    self.queue_invalidation(storage, bad.block);
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
                    self.mending.hint_deletion(id, replica.block.id.unit(), node);
                }
                self.accept_finalized(lookup, id, &facts, storage, replica);
                self.mending.take_hint(id);
                self.note_good(lookup, &facts, &replica, changes);
            }
        }
    }

    /// A replica of which nothing is to be told: if it is known with an older stamp, and bad for that, its node
    /// has nothing to delete any more.
    fn drop_outdated(&mut self, lookup: &dyn BlockLookup, storage: StorageHandle, block: BlockRef) {
        let mut marks = self.mending.bad_of(block.id.group()).iter();
        let is_older = |bad: &Bad| bad.block.id == block.id && bad.block.gs < block.gs;
        if marks.any(|(at, bad)| *at == storage && is_older(bad)) {
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
            self.safe_mode.add_bytes_in_future(block.id.is_striped(), block.len);
        }
        self.queue_invalidation(storage, block);
    }

    /// Keeps a report with a block that is being written, or that is complete but was not settled here.
    fn record_construction(
        &mut self,
        id: BlockId,
        facts: &BlockFacts,
        storage: StorageHandle,
        replica: ReportedReplica,
    ) {
        let own = &self.nodes[self.storages[storage.0 as usize].node.0 as usize].storages;
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
        let unit = replica.block.id.unit();
        let before = self.safe_units(id, facts);
        let moved = self.drop_moved(storage, replica.block);
        let is_new = self.blocks.add(id, storage, unit);
        let disproved = self.mending.forget_bad_by_report(id, storage, unit, replica.block);
        let healed = disproved.is_some();
        // Its node may have been told to delete it; not if that was for another stamp.
        let is_kept = disproved.is_some_and(|bad| {
            self.mending.revoke(storage, bad.block) || bad.block.gs != replica.block.gs
        });
        let was_doubtful = self.blocks.change(id, storage, unit, |place| {
            let was_doubtful = std::mem::take(&mut place.told) && !place.excess;
            if healed {
                place.corrupt = false;
            }
            if is_kept {
                self.mending.excess_count -= u64::from(place.excess);
                place.excess = false;
            }
            match moved {
                // A move makes bad bytes no better.
                Some((_, Some(bad))) if bad.block == replica.block => {
                    place.corrupt = true;
                    self.mending.mark_bad(id, storage, bad);
                }
                Some((old, None)) if old.excess => {
                    self.mending.excess_count += u64::from(!place.excess);
                    place.excess = true;
                }
                _ => {}
            }
            was_doubtful
        });
        self.count_safe(facts, before, self.safe_units(id, facts));
        let excess = self.is_excess(id, storage, unit);
        if excess {
            // It was told to delete this, and didn't.
            self.queue_invalidation(storage, replica.block);
        }
        // Surplus that is still there may be all that is left by now.
        if excess || is_new || healed || was_doubtful == Some(true) {
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
        let before = facts.as_ref().map(|facts| self.safe_units(group, facts));
        self.detach(storage, id);
        if let (Some(facts), Some(before)) = (facts.as_ref(), before) {
            self.count_safe(facts, before, self.safe_units(group, facts));
        }
        self.check_against(lookup, group, facts);
    }

    /// Forgets a place. `id` is an internal block's own id for a unit.
    fn detach(&mut self, storage: StorageHandle, id: BlockId) -> Option<Place> {
        let (group, unit) = (id.group(), id.unit());
        // What is not there need not be deleted, and what comes there next must not be.
        self.mending.revoke_all(storage, id);
        let place = self.blocks.remove(group, storage, unit);
        self.mending.excess_count -= u64::from(place.is_some_and(|place| place.excess));
        self.mending.forget_bad(group, storage, unit);
        self.leaving.forget(self.storages[storage.0 as usize].node, id);
        place
    }

    /// Whether a place is chosen for deletion.
    fn is_excess(&self, id: BlockId, storage: StorageHandle, unit: UnitIndex) -> bool {
        let mut places = self.blocks.of(id);
        places.any(|place| place.storage == storage && place.unit == unit && place.excess)
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
        let marks = self.mending.bad_of(id).iter();
        let bad = marks.copied().find(|(s, bad)| *s == old && bad.block.id.unit() == unit);
        Some((self.detach(old, block.id)?, bad.map(|(_, bad)| bad)))
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
        let Some(facts) = lookup.block(id) else {
            return Err(RedundancyError::UnknownBlock { id: block.id.0 });
        };
        let on_node = self.blocks.of(id).find(|place| {
            let storage = self.storage(place.storage);
            let named = storage_uuid.is_empty() || storage.uuid == storage_uuid;
            storage.node == node && place.unit == block.id.unit() && named
        });
        let Some(storage) = on_node.map(|place| place.storage) else {
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
        self.mending.hurry();
        Ok(())
    }

    pub(crate) fn mark_bad(&mut self, lookup: &dyn BlockLookup, storage: StorageHandle, bad: Bad) {
        let (id, unit) = (bad.block.id.group(), bad.block.id.unit());
        let facts = lookup.block(id);
        let before = facts.as_ref().map(|facts| self.safe_units(id, facts));
        self.drop_moved(storage, bad.block);
        self.blocks.add(id, storage, unit);
        self.blocks.change(id, storage, unit, |place| place.corrupt = true);
        self.mending.mark_bad(id, storage, bad);
        self.blocks.note_change(id);
        if let (Some(facts), Some(before)) = (facts.as_ref(), before) {
            self.count_safe(facts, before, self.safe_units(id, facts));
        }
        if bad.crc32c.is_some() {
            self.weigh_record(lookup, id);
        }
        self.check_against(lookup, id, facts);
    }

    /// After a block got its final length and stamp: marks the places that differ.
    pub(crate) fn settle_replicas(
        &mut self,
        lookup: &dyn BlockLookup,
        id: BlockId,
        facts: &BlockFacts,
    ) {
        let Some(construction) = self.blocks.construction(id) else { return };
        let misfits: Vec<(StorageHandle, BlockRef)> = self
            .blocks
            .of(id)
            .filter(|place| !place.corrupt && !construction.fits(place, facts))
            .filter_map(|place| Some((place.storage, construction.reported_block(&place)?)))
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
        for (storage, block) in misfits.into_iter().chain(left_open) {
            let stale = block.gs != facts.gs;
            self.mark_bad(lookup, storage, Bad { block, stale, crc32c: None });
        }
    }

    /// Forgets a block that no file has; what is known of it anywhere is deleted.
    pub(crate) fn forget_block(&mut self, id: BlockId, gs: GenerationStamp) {
        self.blocks.note_change(id);
        let bad = self.mending.forget_block(id);
        self.queues.remove(id);
        self.scrubs.forget_block(id);
        let construction = self.end_construction(id, None);
        for expected in construction.into_iter().flat_map(|c| c.expected) {
            // What is finalized as well as what is bad has a place.
            let Some(reported) = expected.reported else { continue };
            if !self.blocks.map().is_on(expected.storage, reported.block.id) {
                self.queue_invalidation(expected.storage, reported.block);
            }
        }
        for place in self.blocks.remove_block(id) {
            let own_id = if id.is_striped() { id.internal(place.unit) } else { id };
            self.mending.excess_count -= u64::from(place.excess);
            self.leaving.forget(self.storages[place.storage.0 as usize].node, own_id);
            let reported = bad.iter().find(|(storage, bad)| {
                *storage == place.storage && bad.block.id.unit() == place.unit
            });
            let block = reported.map_or(BlockRef { id: own_id, gs, len: 0 }, |(_, bad)| bad.block);
            self.queue_invalidation(place.storage, block);
        }
    }

    /// Good replicas or units as safe mode counts them; 0 for a block that is not complete.
    pub(crate) fn safe_units(&self, id: BlockId, facts: &BlockFacts) -> usize {
        let counted = self.safe_mode.is_starting() && facts.state == BlockState::Complete;
        let places = self.blocks.of(id);
        if counted { self.count_good(id, facts, places) } else { 0 }
    }

    pub(crate) fn count_safe(&mut self, facts: &BlockFacts, before: usize, after: usize) {
        if !self.safe_mode.is_starting() || facts.state != BlockState::Complete {
            return;
        }
        let min = self.safe_min(facts);
        match (before >= min, after >= min) {
            (false, true) => self.safe_mode.block_became_safe(),
            (true, false) => self.safe_mode.block_became_unsafe(),
            _ => {}
        }
    }
}

/// Whether a replica that is as long as it should be has other bytes than those first written: its
/// DataNode was given wrong ones by a copy or a reconstruction, and made good CRCs for them.
fn is_altered(lookup: &dyn BlockLookup, replica: &ReportedReplica) -> bool {
    let Some(crc32c) = replica.crc32c else { return false };
    let id = replica.block.id;
    lookup.unit_crc(id.group(), id.unit()).is_some_and(|recorded| recorded != crc32c)
}

/// Compares a report with what the namespace wants.
///
/// Source: Hadoop 3.5.0 `BlockManager#processReportedBlock`, `#checkReplicaCorrupt`.
fn judge(facts: Option<&BlockFacts>, replica: &ReportedReplica) -> Verdict {
    let Some(facts) = facts else { return Verdict::Unwanted };
    let block = replica.block;
    let unit = block.id.unit();
    let has_unit = !block.id.is_striped() || unit.as_usize() < facts.layout.width();
    if !has_unit || facts.layout.is_striped() != block.id.is_striped() {
        return Verdict::Unwanted;
    }
    let stale = block.gs < facts.gs;
    let bad = Verdict::Bad(Bad { block, stale: block.gs != facts.gs, crc32c: None });
    match (replica.state, facts.state) {
        (ReplicaState::Finalized, BlockState::Complete | BlockState::Committed) => {
            let fits = block.gs == facts.gs && block.len == facts.unit_len(unit);
            if fits { Verdict::Good } else { bad }
        }
        (ReplicaState::Finalized, BlockState::UnderConstruction) if stale => bad,
        (ReplicaState::Finalized, _) => Verdict::Building,
        (ReplicaState::BeingWritten, BlockState::Complete) if block.gs == facts.gs => {
            Verdict::Ignored
        }
        (ReplicaState::BeingWritten | ReplicaState::WaitingToBeRecovered, state) => {
            if state == BlockState::Complete || stale { bad } else { Verdict::Building }
        }
        (ReplicaState::UnderRecovery, state) if state != BlockState::Complete => Verdict::Ignored,
        _ => bad,
    }
}
