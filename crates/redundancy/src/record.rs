//! Doubts in the CRC that is recorded of a block: where two replicas agree with each other against it.
//!
//! The record is made of what is told when a block is complete: with `dfs.namenode.replication.min` 1 that
//! can be one DataNode's word, and that one may be wrong. One replica that differs from the record is
//! bad. Two on different nodes that differ from it alike were not altered by chance: the record is in
//! doubt, and nothing is deleted of the block. When they are more than half of all there should be, and
//! more than those that are left beside them, they are right: the record is replaced by a command of the
//! log, and what is not known to be as they are is copied from them anew.
//!
//! A unit of a group is never proven right by copies of itself: there the doubt stays, for an operator
//! to settle.

use crate::block::{BlockFacts, BlockLookup, BlockRef, BlockState};
use crate::block_map::Place;
use crate::cluster::Cluster;
use crate::mend::Bad;
use crate::node::NodeHandle;
use crate::storage::StorageHandle;
use cairn_stripe::{BlockId, GenerationStamp, UnitIndex};
use std::collections::{BTreeMap, BTreeSet};

/// A recorded CRC of a replicated block that most of its replicas prove wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DisprovedCrc {
    /// The block.
    pub id: BlockId,
    /// Its stamp.
    pub gs: GenerationStamp,
    /// The record.
    pub recorded: u32,
    /// What the replicas have.
    pub crc32c: u32,
}

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
        for (storage, bad) in self.mending.bad_of(id).iter().filter(|(s, _)| !self.is_lost(*s)) {
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
        let Some(facts) = facts.filter(|facts| !facts.layout.is_striped()) else { return };
        let Some(recorded) = lookup.unit_crc(id, UnitIndex(0)) else { return };
        let others = self.places(id).filter(|place| !place.corrupt).count();
        let is_certain = self.places(id).all(|place| self.storage(place.storage).reported);
        let enough = (facts.expected_units() / 2 + 1).max(2).max(others + 1);
        let most = self.witnesses(id).into_iter().find(|(_, nodes)| nodes.len() >= enough);
        if let Some(((_, crc32c), _)) = most.filter(|_| is_certain && !self.safe_mode.is_on()) {
            let disproved = DisprovedCrc { id, gs: facts.gs, recorded, crc32c };
            self.mending.disproved.insert(id, disproved);
        }
    }

    fn keep_all(&mut self, id: BlockId) {
        let chosen: Vec<Place> =
            self.blocks.places(id).iter().filter(|place| place.excess).copied().collect();
        for Place { storage, unit, .. } in chosen {
            let own_id = if id.is_striped() { id.internal(unit) } else { id };
            let is_kept = self.mending.revoke_all(storage, own_id);
            if let Some(place) = self.blocks.place_mut(id, storage, unit).filter(|_| is_kept) {
                place.excess = false;
                self.mending.excess_count -= 1;
            }
        }
    }

    /// Records to be replaced. After the command is applied, [`Cluster::record_replaced`] is to be called.
    pub fn take_disproved(&mut self) -> Vec<DisprovedCrc> {
        std::mem::take(&mut self.mending.disproved).into_values().collect()
    }

    /// Tells that a record was replaced: replicas that have it now are good, and all that are not known
    /// to have it are bad.
    pub fn record_replaced(&mut self, lookup: &dyn BlockLookup, id: BlockId) {
        let recorded = lookup.unit_crc(id, UnitIndex(0));
        let (Some(facts), Some(recorded)) = (lookup.block(id), recorded) else { return };
        let before = self.safe_units(id, &facts);
        let marks = self.mending.bad_of(id).to_vec();
        let is_good = |(storage, bad): &(StorageHandle, Bad)| {
            (bad.crc32c == Some(recorded) && !bad.stale).then_some(*storage)
        };
        let good: Vec<StorageHandle> = marks.iter().filter_map(is_good).collect();
        if good.is_empty() {
            return;
        }
        for storage in &good {
            self.clear_mark(id, *storage, &facts);
        }
        self.count_safe(&facts, before, self.safe_units(id, &facts));
        let unknown = self.blocks.places(id).iter().filter(|place| !place.corrupt);
        let unknown: Vec<StorageHandle> =
            unknown.map(|place| place.storage).filter(|storage| !good.contains(storage)).collect();
        let block = BlockRef { id, gs: facts.gs, len: facts.len };
        for storage in unknown {
            self.mark_bad(lookup, storage, Bad { block, stale: false, crc32c: None });
        }
        self.check_redundancy(lookup, id);
    }

    /// A replica is good after all.
    fn clear_mark(&mut self, id: BlockId, storage: StorageHandle, facts: &BlockFacts) {
        self.mending.forget_bad(id, storage, UnitIndex(0));
        let block = BlockRef { id, gs: facts.gs, len: facts.len };
        let is_kept = self.mending.revoke(storage, block);
        if let Some(place) = self.blocks.place_mut(id, storage, UnitIndex(0)) {
            place.corrupt = false;
            if is_kept && std::mem::take(&mut place.excess) {
                self.mending.excess_count -= 1;
            }
        }
    }
}

#[cfg(test)]
mod tests;
