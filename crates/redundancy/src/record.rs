//! Doubts in the CRC that is recorded of a block: where two replicas agree with each other against it.
//!
//! The record is made of what is told when a block is complete: with `dfs.namenode.replication.min` 1 that
//! can be one DataNode's word, and that one may be wrong. One replica that differs from the record is
//! bad. Two on different nodes that differ from it alike were not altered by chance: the record is in
//! doubt, and nothing is deleted of the block. When they are more than half of all there should be, and
//! more than those that are left beside them, they are right: the record is replaced by a command of the
//! log, and what is not known to be as they are is copied from them anew.
//!
//! A unit of a group is never proven right by copies of itself, but by the other units: all of the group are
//! read (`scrub`), and if the unit as it is agrees with as many as decode it, which are as recorded, its
//! record is replaced. Without that the doubt stays, for an operator to settle.

use crate::DisprovedCrc;
use crate::block::{BlockFacts, BlockLookup, BlockRef, BlockState};
use crate::cluster::Cluster;
use crate::handle::{NodeHandle, StorageHandle};
use crate::places::bad::Bad;
use crate::places::map::Place;
use crate::places::own_id;
use cairn_stripe::{BlockId, GenerationStamp, UnitIndex};
use std::collections::{BTreeMap, BTreeSet};

impl Cluster {
    /// Whether two replicas, or two copies of a unit, agree with each other against the record.
    pub fn is_record_doubtful(&self, id: BlockId) -> bool {
        self.witnesses(id).values().any(|nodes| nodes.len() > 1)
    }

    /// The blocks of which that is so.
    pub fn blocks_with_doubtful_records(&self) -> impl Iterator<Item = BlockId> + '_ {
        self.blocks_with_bad_replicas().filter(|id| self.is_record_doubtful(*id))
    }

    /// Nodes that have the same CRC against the record, by unit and CRC.
    fn witnesses(&self, id: BlockId) -> BTreeMap<(UnitIndex, u32), BTreeSet<NodeHandle>> {
        let mut witnesses: BTreeMap<_, BTreeSet<NodeHandle>> = BTreeMap::new();
        for (storage, bad) in self.blocks.bad_of(id).iter().filter(|(s, _)| !self.is_lost(*s)) {
            if let Some(crc32c) = bad.crc32c {
                let told = witnesses.entry((bad.block.id.unit(), crc32c)).or_default();
                told.insert(self.storage(*storage).node);
            }
        }
        witnesses
    }

    /// Decides whether replicas prove the record wrong. While it is in doubt, orders to delete that no
    /// node was told of are taken back.
    pub(crate) fn weigh_record(&mut self, lookup: &dyn BlockLookup, id: BlockId) {
        if self.is_record_doubtful(id) {
            self.keep_all(id);
        }
        let facts = lookup.block(id).filter(|facts| facts.state == BlockState::Complete);
        if id.is_striped() && self.doubted_unit(id).is_some() {
            self.scrubs.put_first(id);
        }
        let Some(facts) = facts.filter(|facts| !facts.layout.has_units()) else { return };
        let Some(recorded) = lookup.unit_crc(id, UnitIndex(0)) else { return };
        let others = self.places(id).filter(|place| !place.corrupt).count();
        let is_certain = self.places(id).all(|place| self.storage(place.storage).reported);
        let enough = (facts.expected_units() / 2 + 1).max(2).max(others + 1);
        let most = self.witnesses(id).into_iter().find(|(_, nodes)| nodes.len() >= enough);
        if let Some(((_, crc32c), _)) = most.filter(|_| is_certain && !self.safe_mode.holds_work())
        {
            let disproved = DisprovedCrc { id, gs: facts.gs, recorded, crc32c };
            self.blocks.disprove(disproved);
        }
    }

    /// The one unit of a group whose record is in doubt, and the CRC that its copies have.
    pub(crate) fn doubted_unit(&self, id: BlockId) -> Option<(UnitIndex, u32)> {
        if !id.is_striped() || self.blocks.bad_of(id).is_empty() {
            return None;
        }
        let agreed = self.witnesses(id).into_iter().filter(|(_, nodes)| nodes.len() > 1);
        match &agreed.map(|(told, _)| told).collect::<Vec<_>>()[..] {
            [one] => Some(*one),
            _ => None,
        }
    }

    /// Whether a place is known with this CRC against the record.
    pub(crate) fn has_told(&self, id: BlockId, place: &Place, crc32c: u32) -> bool {
        self.blocks.bad_of(id).iter().any(|(storage, bad)| {
            *storage == place.storage
                && bad.block.id.unit() == place.unit
                && bad.crc32c == Some(crc32c)
        })
    }

    /// The other units of a group have proven the record of one wrong.
    pub(crate) fn disprove(
        &mut self,
        lookup: &dyn BlockLookup,
        id: BlockId,
        gs: GenerationStamp,
        unit: UnitIndex,
        crc32c: u32,
    ) {
        let Some(recorded) = lookup.unit_crc(id, unit) else { return };
        let own_id = id.internal(unit);
        let disproved = DisprovedCrc { id: own_id, gs, recorded, crc32c };
        self.blocks.disprove(disproved);
    }

    fn keep_all(&mut self, id: BlockId) {
        let chosen: Vec<Place> = self.blocks.of(id).filter(|place| place.excess).collect();
        for Place { storage, unit, .. } in chosen {
            self.blocks.keep_any_stamp(storage, own_id(id, unit));
        }
    }

    /// Records to be replaced. After the command is applied, [`Cluster::record_replaced`] is to be called.
    pub fn take_disproved(&mut self) -> Vec<DisprovedCrc> {
        self.blocks.take_disproved()
    }

    /// Tells that the record of a block, or of an internal block by its own id, was replaced: replicas that have it
    /// now are good, and all that are not known to have it are bad.
    pub fn record_replaced(&mut self, lookup: &dyn BlockLookup, id: BlockId) {
        let (own_id, id, unit) = (id, id.group(), id.unit());
        let recorded = lookup.unit_crc(id, unit);
        let (Some(facts), Some(recorded)) = (lookup.block(id), recorded) else { return };
        let before = self.safe_blocks(lookup, id, &facts);
        let marks = self.blocks.bad_of(id).to_vec();
        let is_good = |(storage, bad): &(StorageHandle, Bad)| {
            let is_it = bad.block.id == own_id && bad.crc32c == Some(recorded);
            (is_it && !bad.stale).then_some(*storage)
        };
        let good: Vec<StorageHandle> = marks.iter().filter_map(is_good).collect();
        if good.is_empty() {
            return;
        }
        for storage in &good {
            self.clear_mark(own_id, *storage, &facts);
        }
        self.safe_mode.count_safe(before, self.safe_blocks(lookup, id, &facts));
        let places = self.blocks.of(id);
        let unknown = places.filter(|place| !place.corrupt && place.unit == unit);
        let unknown: Vec<StorageHandle> =
            unknown.map(|place| place.storage).filter(|storage| !good.contains(storage)).collect();
        let block = BlockRef { id: own_id, gs: facts.gs, len: facts.unit_len(unit) };
        for storage in unknown {
            self.mark_bad(lookup, storage, Bad { block, stale: false, crc32c: None });
        }
        self.check_redundancy(lookup, id);
    }

    /// A replica is good after all.
    fn clear_mark(&mut self, own_id: BlockId, storage: StorageHandle, facts: &BlockFacts) {
        self.blocks.clear_mark(storage, own_id);
        let len = facts.unit_len(own_id.unit());
        self.blocks.keep(storage, BlockRef { id: own_id, gs: facts.gs, len });
    }
}

#[cfg(test)]
mod tests;
