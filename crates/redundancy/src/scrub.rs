//! The slow background scrub: blocks and groups whose bytes no block scanner compares with a record, those that
//! Hadoop's DataNodes hold or have written, are read as a whole now and then.
//!
//! A walk over the namespace, once in a period, finds them. A DataNode that can gets some with its heartbeat, reads
//! every replica or unit, and tells what it has seen; what that means is decided here. All units of a group must
//! agree, parity included, and all replicas of a block: the CRCs of those that do are recorded, the one that does
//! not is marked bad, and so rebuilt. Kept in memory are the place of the walk, a bounded number of blocks that wait,
//! and what is under way; after a restart the walk begins anew. Tested in `scrub/tests.rs`.

use crate::block::{BlockFacts, BlockLookup, BlockRef, BlockState, Layout};
use crate::clock::{Now, millis};
use crate::cluster::Cluster;
use crate::handle::{NodeHandle, StorageHandle};
use crate::places::bad::Bad;
use crate::places::map::Place;
use crate::replica::{Changes, LateCrc};
use crate::scrub::walk::STEP;
use cairn_stripe::{BlockId, GenerationStamp, UnitIndex};

#[cfg(test)]
mod tests;
pub(crate) mod walk;

/// Blocks of those that are looked at for one of which a DataNode has a part itself.
const LOOKS: usize = 64;
/// Blocks for one DataNode at a time.
const BATCH: usize = 16;
/// Replicas of a block that are compared.
const MAX_REPLICAS: usize = 16;
/// How many times as long as its bytes take at their rate a scrub may take.
const PATIENCE: u64 = 4;

/// A block or group to read as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScrubOrder {
    /// Which, with the length of its data.
    pub block: BlockRef,
    /// How it is kept.
    pub layout: Layout,
    /// What to read: one place of each unit that has bytes, or replicas (unit 0).
    pub places: Vec<(StorageHandle, UnitIndex)>,
    /// Bytes that the DataNode reads in a second for all its scrubs, at most.
    pub bytes_per_second: u64,
}

/// Whether the units of a group agree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Agreement {
    /// Not all bytes were compared: too few units could be read. Also for replicas, whose CRCs tell.
    #[default]
    Unknown,
    /// All that were read, at every byte.
    All,
    /// At every byte all that were read but one of these, if it is left out; empty if it takes more than one.
    Without(Vec<UnitIndex>),
}

/// What was read of one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScrubbedPlace {
    /// The storage's UUID.
    pub storage_uuid: String,
    /// The unit; 0 for a replica.
    pub unit: UnitIndex,
    /// CRC32C of its bytes; `None` if they could not be read.
    pub crc32c: Option<u32>,
}

/// What came of a [`ScrubOrder`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scrubbed {
    /// The block or group as it was ordered.
    pub block: BlockRef,
    /// What was to be read.
    pub places: Vec<ScrubbedPlace>,
    /// Whether units agree.
    pub agreement: Agreement,
}

/// What a scrub means.
#[derive(Debug, Default, PartialEq, Eq)]
struct Judgement {
    /// Places that are bad.
    bad: Vec<usize>,
    /// Places whose bytes are as they should be.
    good: Vec<usize>,
    /// They disagree, and nobody knows which one is wrong.
    is_unexplained: bool,
}

/// One place that was read.
#[derive(Clone, Copy, Debug)]
struct Sum {
    unit: UnitIndex,
    crc32c: u32,
    recorded: Option<u32>,
}

impl Cluster {
    /// One tick of the walk.
    pub(crate) fn look_for_scrubs(&mut self, lookup: &dyn BlockLookup, now: Now) {
        let period_ms = millis(self.config.scrub_period);
        if self.safe_mode.holds_work() || !self.scrubs_at_all() {
            return;
        }
        self.scrubs.give_up_late(now);
        if !self.nodes().any(|node| node.alive && node.takes_scrubs) {
            return;
        }
        let Some(after) = self.scrubs.walk_on(period_ms, now) else { return };
        let blocks = lookup.blocks_after(after, STEP);
        self.scrubs.went_to(blocks.last().map(|(id, _)| *id));
        let found = |(id, facts): &(BlockId, BlockFacts)| {
            self.places_to_scrub(lookup, *id, facts).map(|_| *id)
        };
        let found: Vec<BlockId> = blocks.iter().filter_map(found).collect();
        self.scrubs.add(found);
    }

    fn scrubs_at_all(&self) -> bool {
        !self.config.scrub_period.is_zero() && self.config.scrub_bytes_per_second > 0
    }

    /// What there is to read of a block, if it is whole and no scanner looks after all of it.
    fn places_to_scrub(
        &self,
        lookup: &dyn BlockLookup,
        id: BlockId,
        facts: &BlockFacts,
    ) -> Option<Vec<(StorageHandle, UnitIndex)>> {
        let doubted = self.doubted_unit(id);
        if facts.state != BlockState::Complete || facts.len == 0 {
            return None;
        }
        if self.scrubs_or_mends(id) || doubted.is_none() && self.has_bad_places(id) {
            return None;
        }
        let all = self.places(id);
        let node = |place: &Place| self.node(self.storage(place.storage).node);
        let is_there = |place: &Place| {
            let is_meant = match doubted {
                Some((unit, crc32c)) if unit == place.unit => self.has_told(id, place, crc32c),
                _ => !place.corrupt,
            };
            is_meant && !place.excess && node(place).is_readable()
        };
        let there: Vec<Place> = all.filter(is_there).collect();
        let chosen: Vec<Place> = match facts.layout {
            // Scanners of the DataNodes read what is in contiguous groups.
            Layout::Parity { .. } => return None,
            Layout::Replicated { .. } => there.into_iter().take(MAX_REPLICAS).collect(),
            Layout::Striped { .. } => {
                let one_of = |unit: UnitIndex| there.iter().copied().find(|p| p.unit == unit);
                facts.units().into_iter().map(one_of).collect::<Option<_>>()?
            }
        };
        let has_scanners = chosen.iter().all(|place| node(place).takes_scrubs);
        let is_open = doubted.is_some() || self.blocks.disagrees(id).is_some();
        if chosen.len() < 2 || has_scanners && lookup.has_crcs(id, facts) && !is_open {
            return None;
        }
        Some(chosen.into_iter().map(|place| (place.storage, place.unit)).collect())
    }

    /// Whether a block is being read, or mended.
    fn scrubs_or_mends(&self, id: BlockId) -> bool {
        self.scrubs.is_read(id) || !self.work.coming(id).is_empty()
    }

    fn has_bad_places(&self, id: BlockId) -> bool {
        self.blocks.of(id).any(|place| place.corrupt)
    }

    /// Blocks and groups whose replicas or units disagreed when they were read last, and nobody knows which one is
    /// wrong.
    pub fn blocks_that_disagree(&self) -> impl Iterator<Item = (BlockId, GenerationStamp)> + '_ {
        self.blocks.disagreeing()
    }

    /// Whether a block or group is one of them.
    pub fn disagrees(&self, id: BlockId, facts: &BlockFacts) -> bool {
        self.blocks.disagrees(id.group()) == Some(facts.gs)
    }

    /// What a node is to read next; nothing while it has other work, or has not told of what it was to read before.
    pub(crate) fn take_scrubs(
        &mut self,
        lookup: &dyn BlockLookup,
        worker: NodeHandle,
        now: Now,
    ) -> Vec<ScrubOrder> {
        let node = self.node(worker);
        let is_free = node.takes_scrubs && node.xmits == 0 && !node.is_leaving();
        let is_idle = !self.scrubs.is_busy(worker);
        if self.safe_mode.holds_work() || !self.scrubs_at_all() || !is_free || !is_idle {
            return Vec::new();
        }
        let rate = self.config.scrub_bytes_per_second;
        let enough = rate.saturating_mul(self.config.heartbeat_interval.as_secs());
        let wait = millis(self.config.pending_timeout);
        let (mut orders, mut bytes) = (Vec::new(), 0_u64);
        while orders.len() < BATCH && (orders.is_empty() || bytes < enough) {
            let Some(id) = self.next_scrub(worker) else { break };
            let Some(facts) = lookup.block(id) else { continue };
            let Some(places) = self.places_to_scrub(lookup, id, &facts) else { continue };
            let len = |(_, unit): &(StorageHandle, UnitIndex)| facts.unit_len(*unit);
            bytes = bytes.saturating_add(places.iter().map(len).sum());
            let time = bytes.saturating_mul(1000 * PATIENCE) / rate;
            let until_ms = now.mono_ms.saturating_add(time).saturating_add(wait);
            self.scrubs.begin(id, worker, until_ms);
            let block = BlockRef { id, gs: facts.gs, len: facts.len };
            let bytes_per_second = rate;
            orders.push(ScrubOrder { block, layout: facts.layout, places, bytes_per_second });
        }
        orders
    }

    /// A block that waits, best one of which the node has a part.
    fn next_scrub(&mut self, worker: NodeHandle) -> Option<BlockId> {
        let (blocks, nodes) = (&self.blocks, &self.nodes);
        let has_part =
            |id: BlockId| blocks.of(id).any(|place| nodes.node_of(place.storage) == worker);
        self.scrubs.take_next(LOOKS, has_part)
    }

    /// Takes what a node has read. What it was not told to read, or what has changed since, is passed over.
    pub fn scrubbed(
        &mut self,
        lookup: &dyn BlockLookup,
        reporter: NodeHandle,
        result: &Scrubbed,
    ) -> Changes {
        let mut changes = Changes::default();
        let id = result.block.id;
        if !self.scrubs.end(id, reporter) {
            return changes;
        }
        let facts = lookup.block(id).filter(|facts| {
            let is_same = facts.gs == result.block.gs && facts.len == result.block.len;
            is_same && facts.state == BlockState::Complete
        });
        let Some(facts) = facts else { return changes };
        let doubted = self.doubted_unit(id);
        let read = |place: &ScrubbedPlace| {
            let told = doubted.filter(|(unit, _)| *unit == place.unit).map(|(_, crc32c)| crc32c);
            let here = self.blocks.of(id).find(|here| {
                let is_it = self.storage(here.storage).uuid == place.storage_uuid;
                let is_witness = told.is_some() && told == place.crc32c;
                is_it && here.unit == place.unit && (is_witness || !here.corrupt)
            })?;
            let recorded = lookup.unit_crc(id, place.unit);
            Some((here.storage, Sum { unit: place.unit, crc32c: place.crc32c?, recorded }))
        };
        let (storages, sums): (Vec<StorageHandle>, Vec<Sum>) =
            result.places.iter().filter_map(read).unzip();
        if let Some((unit, crc32c)) = doubted {
            if result.agreement == Agreement::All && is_proof(&facts, &sums, unit, crc32c) {
                self.disprove(lookup, id, facts.gs, unit, crc32c);
            }
            return changes;
        }
        let judgement = match facts.layout.is_striped() {
            true => judge_units(&sums, &among_units(&facts, &result.agreement)),
            false => judge_replicas(&sums),
        };
        for at in judgement.good {
            let Sum { unit, crc32c, recorded } = sums[at];
            let late = LateCrc { id, gs: facts.gs, unit, crc32c };
            if recorded.is_none() && !changes.late_crcs.contains(&late) {
                changes.late_crcs.push(late);
            }
        }
        for at in judgement.bad {
            let Sum { unit, crc32c, recorded } = sums[at];
            let own_id = if id.is_striped() { id.internal(unit) } else { id };
            let block = BlockRef { id: own_id, gs: facts.gs, len: facts.unit_len(unit) };
            changes.altered.push(block);
            self.mark_bad(
                lookup,
                storages[at],
                Bad { block, stale: false, crc32c: recorded.map(|_| crc32c) },
            );
        }
        if judgement.is_unexplained || sums.len() == result.places.len() {
            self.blocks.note_disagreement(id, facts.gs, judgement.is_unexplained);
        }
        if judgement.is_unexplained {
            changes.unexplained.push(id);
        }
        changes
    }
}

/// Whether units that agree prove one of them right against its record: as many others as decode it are as
/// recorded, and none is not.
fn is_proof(facts: &BlockFacts, sums: &[Sum], unit: UnitIndex, crc32c: u32) -> bool {
    let (own, others): (Vec<&Sum>, Vec<&Sum>) = sums.iter().partition(|sum| sum.unit == unit);
    let as_recorded = others.iter().filter(|sum| sum.recorded == Some(sum.crc32c)).count();
    let differ = others.iter().any(|sum| sum.recorded.is_some_and(|crc| crc != sum.crc32c));
    let is_seen = own.iter().any(|sum| sum.crc32c == crc32c);
    is_seen && !differ && as_recorded >= facts.data_units()
}

/// A unit without bytes is not to blame: its zeros are nowhere read.
fn among_units(facts: &BlockFacts, agreement: &Agreement) -> Agreement {
    match agreement {
        Agreement::Without(suspects) => {
            let with_bytes = suspects.iter().copied().filter(|unit| facts.has_bytes(*unit));
            Agreement::Without(with_bytes.collect())
        }
        other => other.clone(),
    }
}

/// Places whose bytes are not those recorded.
fn not_as_recorded(sums: &[Sum]) -> Vec<usize> {
    let differs = |sum: &Sum| sum.recorded.is_some_and(|recorded| recorded != sum.crc32c);
    (0..sums.len()).filter(|at| differs(&sums[*at])).collect()
}

/// A unit is bad if it differs from its record or, where the units disagree, if it is the only one without a record
/// that can be to blame.
fn judge_units(sums: &[Sum], agreement: &Agreement) -> Judgement {
    let bad = not_as_recorded(sums);
    let suspects = match agreement {
        Agreement::Unknown => return Judgement { bad, ..Judgement::default() },
        Agreement::All if bad.is_empty() => {
            return Judgement { good: (0..sums.len()).collect(), ..Judgement::default() };
        }
        // As many others as it takes to agree with a wrong one are wrong as well, and have no record.
        Agreement::All => return Judgement { bad, is_unexplained: true, ..Judgement::default() },
        Agreement::Without(suspects) => suspects,
    };
    let place_of = |unit: &UnitIndex| sums.iter().position(|sum| sum.unit == *unit);
    let is_as_recorded = |at: usize| sums[at].recorded == Some(sums[at].crc32c);
    let to_blame: Vec<Option<usize>> = suspects
        .iter()
        .map(place_of)
        .filter(|at| at.is_none_or(|at| !is_as_recorded(at)))
        .collect();
    match (&bad[..], &to_blame[..]) {
        ([], [Some(one)]) => without(sums, *one),
        ([], _) => Judgement { is_unexplained: true, ..Judgement::default() },
        ([known], blamed) if blamed.contains(&Some(*known)) => without(sums, *known),
        _ => Judgement { bad, ..Judgement::default() },
    }
}

/// All but one are good.
fn without(sums: &[Sum], bad: usize) -> Judgement {
    let good = (0..sums.len()).filter(|at| *at != bad).collect();
    Judgement { bad: vec![bad], good, is_unexplained: false }
}

/// A replica is bad if it differs from the record or, without one, from more than half of them.
fn judge_replicas(sums: &[Sum]) -> Judgement {
    let bad = not_as_recorded(sums);
    if sums.len() < 2 || sums.iter().any(|sum| sum.recorded.is_some()) {
        return Judgement { bad, ..Judgement::default() };
    }
    let same_as = |at: &usize| {
        let is_same = |other: &Sum| other.crc32c == sums[*at].crc32c;
        sums.iter().filter(|other| is_same(other)).count()
    };
    let (good, bad): (Vec<usize>, Vec<usize>) =
        (0..sums.len()).partition(|at| 2 * same_as(at) > sums.len());
    match good.is_empty() {
        true => Judgement { is_unexplained: true, ..Judgement::default() },
        false => Judgement { bad, good, is_unexplained: false },
    }
}
