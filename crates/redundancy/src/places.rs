//! All that is known of blocks: where they are, what is being written, and who waits for news of them.
//!
//! Whatever changes something of a block goes through here, and wakes those who wait for it.

use crate::block_map::{BlockMap, Place};
use crate::construction::Construction;
use crate::storage::StorageHandle;
use crate::waits::{Ticket, Waits};
use cairn_stripe::{BlockId, GenerationStamp, UnitIndex};
use std::collections::BTreeMap;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Places {
    map: BlockMap,
    constructions: BTreeMap<BlockId, Construction>,
    waits: Waits,
}

impl Places {
    /// The replicas and units that were reported finalized, to ask.
    pub(crate) fn map(&self) -> &BlockMap {
        &self.map
    }

    /// The places of a block or group, those that are lost among them.
    pub(crate) fn of(&self, id: BlockId) -> impl Iterator<Item = Place> + Clone + '_ {
        self.map.places(id)
    }

    /// Adds a good place. Returns whether it is new.
    pub(crate) fn add(&mut self, id: BlockId, storage: StorageHandle, unit: UnitIndex) -> bool {
        let is_new = self.map.add(id, storage, unit);
        if is_new {
            self.waits.wake(id);
        }
        is_new
    }

    /// Changes what is known of a place besides its storage and unit. None if there is no such place.
    pub(crate) fn change<T>(
        &mut self,
        id: BlockId,
        storage: StorageHandle,
        unit: UnitIndex,
        change: impl FnOnce(&mut Place) -> T,
    ) -> Option<T> {
        let mut is_other = false;
        let answer = self.map.change(id, storage, unit, |place| {
            let before = *place;
            let answer = change(place);
            is_other = *place != before;
            answer
        });
        if is_other {
            self.waits.wake(id);
        }
        answer
    }

    /// Takes a place out. Returns it if it was there.
    pub(crate) fn remove(
        &mut self,
        id: BlockId,
        storage: StorageHandle,
        unit: UnitIndex,
    ) -> Option<Place> {
        let removed = self.map.remove(id, storage, unit)?;
        self.waits.wake(id);
        Some(removed)
    }

    /// Takes all places of a block or group out.
    pub(crate) fn remove_block(&mut self, id: BlockId) -> Vec<Place> {
        self.waits.wake(id);
        self.map.remove_block(id)
    }

    /// What is known of a block that is not complete.
    pub(crate) fn construction(&self, id: BlockId) -> Option<&Construction> {
        self.constructions.get(&id)
    }

    /// The blocks and groups that are not complete, or were not told to be.
    pub(crate) fn under_construction(&self) -> impl Iterator<Item = BlockId> + '_ {
        self.constructions.keys().copied()
    }

    /// What is known of such a block, to change.
    pub(crate) fn construction_mut(&mut self, id: BlockId) -> Option<&mut Construction> {
        let construction = self.constructions.get_mut(&id)?;
        self.waits.wake(id);
        Some(construction)
    }

    /// The same; begun with that stamp if nothing is known.
    pub(crate) fn construction_or_new(
        &mut self,
        id: BlockId,
        gs: GenerationStamp,
    ) -> &mut Construction {
        self.waits.wake(id);
        self.constructions.entry(id).or_insert_with(|| Construction::new(id, gs, &[]))
    }

    /// A block is written from now on, whatever was known of that before.
    pub(crate) fn begin_construction(&mut self, id: BlockId, construction: Construction) {
        self.waits.wake(id);
        self.constructions.insert(id, construction);
    }

    /// It is written no longer.
    pub(crate) fn end_construction(&mut self, id: BlockId) -> Option<Construction> {
        let construction = self.constructions.remove(&id)?;
        self.waits.wake(id);
        Some(construction)
    }

    /// Something is known of a block from now on that is not kept here.
    pub(crate) fn note_change(&mut self, id: BlockId) {
        self.waits.wake(id);
    }

    /// What a storage holds counts, or does not count any more. There are few who wait, and many blocks.
    pub(crate) fn note_change_on(&mut self, storage: StorageHandle) {
        let is_here = |id: &BlockId| {
            let expected = self.constructions.get(id).map_or(&[][..], |c| c.expected.as_slice());
            let mut all = self.map.places(*id).map(|place| place.storage);
            all.any(|at| at == storage) || expected.iter().any(|e| e.storage == storage)
        };
        let concerned: Vec<BlockId> = self.waits.awaited().filter(is_here).collect();
        for id in concerned {
            self.waits.wake(id);
        }
    }

    /// Panics if what is kept does not fit together.
    #[cfg(test)]
    pub(crate) fn check_invariants(&self) {
        self.waits.check_invariants();
    }

    /// See [`Cluster::await_change`](crate::Cluster::await_change).
    pub(crate) fn await_change(&mut self, blocks: &[BlockId]) -> Ticket {
        self.waits.add(blocks)
    }

    /// See [`Cluster::forget_wait`](crate::Cluster::forget_wait).
    pub(crate) fn forget_wait(&mut self, ticket: Ticket) {
        self.waits.forget(ticket);
    }

    /// See [`Cluster::take_woken`](crate::Cluster::take_woken).
    pub(crate) fn take_woken(&mut self) -> Vec<Ticket> {
        self.waits.take_woken()
    }
}
