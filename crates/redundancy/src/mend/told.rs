//! Surplus and bad replicas that their nodes were told to delete, until these say that they are gone.
//!
//! An order can be lost on its way, and the replica it names is hidden from readers meanwhile. After the
//! time that copies have, one that is still surplus is told to go once more. If what made it surplus is
//! lost, it stays after all; as nobody knows whether its node has it still, nothing else is deleted of
//! its block until the node says so.
//!
//! An order can also come late: to a node that has obeyed an earlier one, has said so, and has got the
//! same replica anew since, from a balancer say. What counts while an order to delete it may be under
//! way may be gone the next moment, so nothing else is deleted of its block before that time is over.
//! Deviation: Hadoop relies on it.

use super::Mending;
use crate::Now;
use crate::block::{BlockFacts, BlockLookup, BlockRef, BlockState};
use crate::block_map::Place;
use crate::cluster::Cluster;
use crate::node::NodeHandle;
use crate::storage::StorageHandle;
use cairn_stripe::{BlockId, GenerationStamp};
use std::collections::{BTreeMap, BTreeSet};

/// Orders that one tick looks at again.
const STEP: usize = 1000;

/// Orders by the time at which nodes were told; some may have been obeyed since.
#[derive(Clone, Debug, Default)]
pub(super) struct Told {
    orders: BTreeSet<(u64, StorageHandle, BlockRef)>,
    /// The last order of each node for each replica or internal block and stamp, as long as one may be
    /// under way.
    under_way: BTreeMap<(NodeHandle, BlockId, GenerationStamp), UnderWay>,
}

#[derive(Clone, Copy, Debug)]
struct UnderWay {
    since_ms: u64,
    /// There was one before it: when the node has obeyed one, the other may still come.
    is_repeated: bool,
}

impl Told {
    fn take_older(&mut self, than_ms: u64) -> Vec<(u64, StorageHandle, BlockRef)> {
        let mut taken = Vec::new();
        while taken.len() < STEP && self.orders.first().is_some_and(|(ms, ..)| *ms <= than_ms) {
            taken.extend(self.orders.pop_first());
        }
        taken
    }

    /// An order of that time has come, or never will.
    fn is_over(&mut self, since_ms: u64, node: NodeHandle, block: BlockRef) {
        let key = (node, block.id, block.gs);
        if self.under_way.get(&key).is_some_and(|last| last.since_ms == since_ms) {
            self.under_way.remove(&key);
        }
    }

    /// A node says that it has deleted something.
    pub(super) fn is_obeyed(&mut self, node: NodeHandle, block: BlockRef) {
        let key = (node, block.id, block.gs);
        if self.under_way.get(&key).is_some_and(|last| !last.is_repeated) {
            self.under_way.remove(&key);
        }
    }
}

impl Mending {
    /// Orders that are followed.
    #[cfg(test)]
    pub(crate) fn told_count(&self) -> usize {
        self.told.orders.len()
    }
}

impl Cluster {
    /// A node is told to delete something. What no file has is hidden from nobody: the next report
    /// tells of it.
    pub(super) fn note_told(&mut self, storage: StorageHandle, block: BlockRef, now: Now) {
        let (id, unit) = (block.id.group(), block.id.unit());
        let is_chosen = self.blocks.change(id, storage, unit, |place| {
            place.told |= place.excess;
            place.excess
        });
        if is_chosen == Some(true) {
            let node = self.storages[storage.0 as usize].node;
            let told = &mut self.mending.told;
            told.orders.insert((now.mono_ms, storage, block));
            let since_ms = now.mono_ms;
            let last = told.under_way.entry((node, block.id, block.gs));
            last.and_modify(|last| *last = UnderWay { since_ms, is_repeated: true })
                .or_insert(UnderWay { since_ms, is_repeated: false });
        }
    }

    /// Whether a place that is to stay may be gone all the same, by an order that its node was given.
    pub(crate) fn may_be_deleted(&self, id: BlockId, facts: &BlockFacts, place: &Place) -> bool {
        if place.excess || self.mending.told.under_way.is_empty() {
            return place.told && !place.excess;
        }
        let own_id = if id.is_striped() { id.internal(place.unit) } else { id };
        let key = (self.storage(place.storage).node, own_id, facts.gs);
        place.told || self.mending.told.under_way.contains_key(&key)
    }

    /// Looks at orders whose time is over.
    pub(super) fn follow_told(&mut self, lookup: &dyn BlockLookup, now: Now) {
        let timeout = crate::millis(self.config.pending_timeout);
        let Some(than_ms) = now.mono_ms.checked_sub(timeout) else { return };
        for (since_ms, storage, block) in self.mending.told.take_older(than_ms) {
            let id = block.id.group();
            let node = self.storages[storage.0 as usize].node;
            self.mending.told.is_over(since_ms, node, block);
            let is_doubtful = self.is_record_doubtful(id);
            let before = self.blocks.change(id, storage, block.id.unit(), |place| {
                let before = *place;
                if place.excess && place.told && (place.corrupt || is_doubtful) {
                    // Whether it may go is judged anew.
                    (place.excess, place.told) = (false, !place.corrupt);
                }
                before
            });
            let Some(before) = before.filter(|place| place.excess && place.told) else {
                // What was there in spite of it counts from now on.
                self.check_redundancy(lookup, id);
                continue;
            };
            if before.corrupt || is_doubtful {
                self.mending.excess_count -= 1;
                self.check_redundancy(lookup, id);
                continue;
            }
            self.queue_invalidation(storage, block);
            // Takes it back if it is needed by now.
            let facts = lookup.block(id).filter(|facts| facts.state == BlockState::Complete);
            if facts.is_some() {
                self.check_against(lookup, id, facts);
            }
        }
    }
}
