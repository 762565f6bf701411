//! What is known of one block that is being written, committed, or recovered.
//!
//! Source: Hadoop 3.5.0 `BlockUnderConstructionFeature`, `ReplicaUnderConstruction`.

use crate::block::{BlockFacts, BlockRef};
use crate::handle::StorageHandle;
use crate::places::map::Place;
use crate::replica::{ReplicaState, ReportedReplica};
use crate::storage::Promise;
use cairn_stripe::{BlockId, GenerationStamp, UnitIndex};

/// A replica or unit of a block that is not complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expected {
    /// Where.
    pub storage: StorageHandle,
    /// Which unit; 0 for a replica.
    pub unit: UnitIndex,
    /// What its DataNode said last; `None` before it said anything.
    pub reported: Option<ReportedReplica>,
    /// Whether it belongs to the writer's present pipeline (or group of streamers).
    pub in_pipeline: bool,
    /// When it was sent there, if it was given to a writer for that.
    pub(crate) promise: Option<Promise>,
    /// The stamp of what it had when its storage was lost, which it may bring back.
    lost: Option<GenerationStamp>,
    /// Whether it could have what was acknowledged, and a later full report of its storage does not name it.
    pub(crate) is_missing: bool,
    /// Whether the writer had gone on without it when such a report did not name it.
    is_gone: bool,
}

impl Expected {
    /// One of which nothing is known yet.
    fn new(storage: StorageHandle, unit: UnitIndex) -> Expected {
        let (reported, promise, lost) = (None, None, None);
        let (in_pipeline, is_missing, is_gone) = (false, false, false);
        Expected { storage, unit, reported, in_pipeline, promise, lost, is_missing, is_gone }
    }
}

/// The outcome of a block recovery, as its primary reports it (`commitBlockSynchronization`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Synchronized {
    /// The block or group with its old stamp.
    pub block: BlockRef,
    /// The stamp of the recovery.
    pub new_gs: GenerationStamp,
    /// Bytes that the block has now.
    pub new_len: u64,
    /// Whether the file is to be closed.
    pub close_file: bool,
    /// Whether no replica was worth keeping.
    pub delete_block: bool,
    /// Where the good replicas or units are. `None` for what this cluster doesn't know, and for
    /// units of a group that are not there.
    pub targets: Vec<Option<StorageHandle>>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Attempt {
    pub new_gs: GenerationStamp,
    pub since_ms: u64,
}

/// One block under construction.
#[derive(Clone, Debug)]
pub(crate) struct Construction {
    pub(crate) gs: GenerationStamp,
    pub(crate) expected: Vec<Expected>,
    pub(crate) recovery: Option<Attempt>,
    /// The primary of the last attempt, so that the next one tries another.
    pub(crate) last_primary: Option<StorageHandle>,
}

/// The unit that is at place `index` of a list of targets.
pub(crate) fn unit_at(id: BlockId, index: usize) -> UnitIndex {
    UnitIndex(if id.has_units() { u8::try_from(index).unwrap_or(u8::MAX) } else { 0 })
}

/// Targets of a list that count: a list comes from outside and can be of any length.
fn targets_max(id: BlockId) -> usize {
    if id.has_units() { cairn_stripe::id::MAX_UNITS_PER_GROUP } else { REPLICAS_MAX }
}

/// Replicas that a pipeline can have (`dfs.replication.max`).
pub(crate) const REPLICAS_MAX: usize = 512;

impl Construction {
    pub(crate) fn new(
        id: BlockId,
        gs: GenerationStamp,
        targets: &[Option<StorageHandle>],
    ) -> Construction {
        let expected = targets
            .iter()
            .enumerate()
            .take(targets_max(id))
            .filter_map(|(index, storage)| {
                let (storage, unit) = ((*storage)?, unit_at(id, index));
                Some(Expected { in_pipeline: true, ..Expected::new(storage, unit) })
            })
            .collect();
        Construction { gs, expected, recovery: None, last_primary: None }
    }

    pub(crate) fn update_pipeline(
        &mut self,
        id: BlockId,
        gs: GenerationStamp,
        targets: &[Option<StorageHandle>],
    ) {
        self.gs = gs;
        self.recovery = None;
        for expected in &mut self.expected {
            expected.in_pipeline = false;
        }
        for (index, storage) in targets.iter().enumerate().take(targets_max(id)) {
            let (Some(storage), unit) = (*storage, unit_at(id, index)) else { continue };
            let entry = self.entry(storage, unit);
            (entry.in_pipeline, entry.is_missing, entry.is_gone) = (true, false, false);
        }
    }

    pub(crate) fn entry(&mut self, storage: StorageHandle, unit: UnitIndex) -> &mut Expected {
        let found = self.expected.iter().position(|e| e.storage == storage && e.unit == unit);
        let at = found.unwrap_or_else(|| {
            self.expected.push(Expected::new(storage, unit));
            self.expected.len() - 1
        });
        &mut self.expected[at]
    }

    /// A node has written to another one of its storages (`own`) than it was given.
    ///
    /// Source: Hadoop 3.5.0 `BlockUnderConstructionFeature#addReplicaIfNotPresent`.
    pub(crate) fn relocate(
        &mut self,
        own: &[StorageHandle],
        storage: StorageHandle,
        unit: UnitIndex,
    ) {
        let is_other = |e: &Expected| e.storage != storage && e.unit == unit;
        let other = self.expected.iter().position(|e| is_other(e) && own.contains(&e.storage));
        let Some(other) = other.map(|at| self.expected.remove(at)) else { return };
        self.entry(storage, unit).in_pipeline |= other.in_pipeline;
    }

    /// Keeps what a DataNode said. After a restart of the NameNode this is all that is known.
    pub(crate) fn record(&mut self, storage: StorageHandle, replica: ReportedReplica) {
        let entry = self.entry(storage, replica.block.id.unit());
        let crc32c = replica.crc32c.or_else(|| {
            let old = entry.reported.filter(|old| old.block == replica.block)?;
            old.crc32c
        });
        entry.reported = Some(ReportedReplica { crc32c, ..replica });
        (entry.lost, entry.is_missing, entry.is_gone) = (None, false, false);
    }

    /// The units of which a storage was said to have something.
    pub(crate) fn told_on(&self, storage: StorageHandle) -> Vec<UnitIndex> {
        let told = self.expected.iter().filter(|e| e.storage == storage && e.reported.is_some());
        told.map(|e| e.unit).collect()
    }

    /// What was reported of a place is not there any more, as its node says with all that it has.
    pub(crate) fn miss(&mut self, storage: StorageHandle, unit: UnitIndex) {
        let found = self.expected.iter().position(|e| e.storage == storage && e.unit == unit);
        let Some(at) = found else { return };
        let could_have = self.may_have(&self.expected[at]);
        let entry = &mut self.expected[at];
        (entry.reported, entry.lost) = (None, None);
        match could_have {
            true => entry.is_missing = true,
            false => entry.is_gone = true,
        }
    }

    /// What was reported of a place is not there any more, for its storage is lost.
    pub(crate) fn lose(&mut self, storage: StorageHandle, unit: UnitIndex) {
        let found = self.expected.iter_mut().find(|e| e.storage == storage && e.unit == unit);
        if let Some(entry) = found {
            entry.lost = entry.reported.take().map(|reported| reported.block.gs).or(entry.lost);
        }
    }

    /// What was reported of a place is deleted. One that nobody was given, and that nothing else is known of, is none.
    pub(crate) fn forget(&mut self, storage: StorageHandle, unit: UnitIndex) {
        let found = self.expected.iter().position(|e| e.storage == storage && e.unit == unit);
        let Some(at) = found else { return };
        let entry = &mut self.expected[at];
        entry.reported = None;
        let is_known = entry.in_pipeline || entry.promise.is_some();
        if !is_known && entry.lost.is_none() && !entry.is_missing {
            self.expected.remove(at);
        }
    }

    fn reported(&self, storage: StorageHandle, unit: UnitIndex) -> Option<&ReportedReplica> {
        let entry = self.expected.iter().find(|e| e.storage == storage && e.unit == unit)?;
        entry.reported.as_ref()
    }

    /// Whether a place has what the writer, or a recovery, goes on with.
    fn is_current(&self, place: &Expected) -> bool {
        place.in_pipeline || place.reported.is_some_and(|r| r.block.gs >= self.gs)
    }

    /// Whether a place may have what was acknowledged: it has what the writer goes on with, or had it
    /// when its storage was lost.
    pub(crate) fn may_have(&self, place: &Expected) -> bool {
        let had = place.lost.is_some_and(|gs| gs >= self.gs);
        !place.is_missing && (self.is_current(place) || had)
    }

    /// The places that the writer has gone on without, with the stamps that they had as far as was told.
    pub(crate) fn left_behind(
        &self,
    ) -> impl Iterator<Item = (StorageHandle, Option<GenerationStamp>)> {
        let is_left = |e: &&Expected| !self.may_have(e) && !e.is_missing && !e.is_gone;
        let left = self.expected.iter().filter(is_left);
        left.map(|e| (e.storage, e.reported.map(|r| r.block.gs).or(e.lost)))
    }

    /// The replicas and units that are still open with an older stamp than a block got in the end, on storages
    /// that the writer has gone on without.
    pub(crate) fn left_open(&self, gs: GenerationStamp) -> Vec<(StorageHandle, BlockRef)> {
        let left = self.expected.iter().filter(|e| !e.in_pipeline);
        left.filter_map(|e| Some((e.storage, e.reported?)))
            .filter(|(_, reported)| reported.state != ReplicaState::Finalized)
            .filter(|(_, reported)| reported.block.gs < gs)
            .map(|(storage, reported)| (storage, reported.block))
            .collect()
    }

    /// The places of the pipeline that should have a final replica or unit and have not said so.
    pub(crate) fn unreported(&self, facts: &BlockFacts) -> Vec<(StorageHandle, UnitIndex)> {
        let said = |e: &Expected| {
            e.reported.is_some_and(|r| r.state == ReplicaState::Finalized && fits(&r, facts))
        };
        let silent = self.expected.iter().filter(|e| e.in_pipeline && !said(e));
        silent.map(|e| (e.storage, e.unit)).filter(|(_, unit)| facts.has_bytes(*unit)).collect()
    }

    /// Whether a place is what the final block wants, as far as is known: finalized, and not opened again since.
    pub(crate) fn fits(&self, place: &Place, facts: &BlockFacts) -> bool {
        match self.reported(place.storage, place.unit) {
            Some(reported) => reported.state == ReplicaState::Finalized && fits(reported, facts),
            None => true,
        }
    }

    /// Whether a place was opened again with that stamp, and its node has not said yet that it is finalized.
    pub(crate) fn is_being_written(&self, place: &Place, gs: GenerationStamp) -> bool {
        let reported = self.reported(place.storage, place.unit);
        reported.is_some_and(|r| r.state == ReplicaState::BeingWritten && r.block.gs == gs)
    }

    /// What was reported of a place that does not fit, to name it when it is deleted.
    pub(crate) fn reported_block(&self, place: &Place) -> Option<BlockRef> {
        self.reported(place.storage, place.unit).map(|reported| reported.block)
    }

    /// The CRC that most of those who told one agree on. Each tells of its own bytes only: one that is
    /// wrong must not make the others look bad.
    pub(crate) fn crc(&self, unit: UnitIndex, facts: &BlockFacts) -> Option<u32> {
        let of_unit = self.expected.iter().filter(|e| e.unit == unit);
        let fitting = of_unit
            .filter_map(|e| e.reported)
            .filter(|reported| reported.state == ReplicaState::Finalized && fits(reported, facts));
        let told: Vec<u32> = fitting.filter_map(|reported| reported.crc32c).collect();
        let agree = |crc: &u32| 2 * told.iter().filter(|other| *other == crc).count() > told.len();
        told.iter().copied().find(agree)
    }
}

fn fits(reported: &ReportedReplica, facts: &BlockFacts) -> bool {
    let unit = reported.block.id.unit();
    if !facts.is_final() {
        return reported.block.gs >= facts.gs;
    }
    reported.block.gs == facts.gs && reported.block.len == facts.unit_len(unit)
}
