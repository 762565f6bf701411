//! Surplus and bad replicas that their nodes were told to delete, until these say that they are gone.
//!
//! An order can be lost on its way, and the replica it names is hidden from readers meanwhile. After the
//! time that copies have, one that is still surplus is told to go once more. If what made it surplus is
//! lost, it stays after all; as nobody knows whether its node has it still, nothing else is deleted of
//! its block until the node says so.

use super::Mending;
use crate::Now;
use crate::block::{BlockLookup, BlockRef, BlockState};
use crate::cluster::Cluster;
use crate::storage::StorageHandle;
use std::collections::BTreeSet;

/// Orders that one tick looks at again.
const STEP: usize = 1000;

/// Orders by the time at which nodes were told; some may have been obeyed since.
#[derive(Clone, Debug, Default)]
pub(super) struct Told(BTreeSet<(u64, StorageHandle, BlockRef)>);

impl Told {
    fn take_older(&mut self, than_ms: u64) -> Vec<(StorageHandle, BlockRef)> {
        let mut taken = Vec::new();
        while taken.len() < STEP && self.0.first().is_some_and(|(ms, ..)| *ms <= than_ms) {
            taken.extend(self.0.pop_first().map(|(_, storage, block)| (storage, block)));
        }
        taken
    }
}

impl Mending {
    /// Orders that are followed.
    #[cfg(test)]
    pub(crate) fn told_count(&self) -> usize {
        self.told.0.len()
    }
}

impl Cluster {
    /// A node is told to delete something. What no file has is hidden from nobody: the next report
    /// tells of it.
    pub(super) fn note_told(&mut self, storage: StorageHandle, block: BlockRef, now: Now) {
        let place = self.blocks.place_mut(block.id.group(), storage, block.id.unit());
        if let Some(place) = place.filter(|place| place.excess) {
            place.told = true;
            self.mending.told.0.insert((now.mono_ms, storage, block));
        }
    }

    /// Looks at orders whose time is over.
    pub(super) fn follow_told(&mut self, lookup: &dyn BlockLookup, now: Now) {
        let timeout = u64::try_from(self.config.pending_timeout.as_millis()).unwrap_or(u64::MAX);
        let Some(than_ms) = now.mono_ms.checked_sub(timeout) else { return };
        for (storage, block) in self.mending.told.take_older(than_ms) {
            let id = block.id.group();
            let is_doubtful = self.is_record_doubtful(id);
            let place = self.blocks.place_mut(id, storage, block.id.unit());
            let Some(place) = place.filter(|place| place.excess && place.told) else { continue };
            if place.corrupt || is_doubtful {
                // Whether it may go is judged anew.
                (place.excess, place.told) = (false, !place.corrupt);
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
