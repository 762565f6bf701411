//! Block or group to its places: eight bytes a place.

use crate::storage::StorageHandle;
use cairn_stripe::{BlockId, UnitIndex};
use std::collections::BTreeMap;

/// One replica or unit on one storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub storage: StorageHandle,
    pub unit: UnitIndex,
    pub corrupt: bool,
    /// Chosen for deletion, and not reported deleted yet.
    pub excess: bool,
    /// Its node was told to delete it, and has not said since that it has it.
    pub told: bool,
}

/// The places of every block and group that has any.
#[derive(Clone, Debug, Default)]
pub(crate) struct BlockMap {
    places: BTreeMap<BlockId, Vec<Place>>,
}

impl BlockMap {
    pub(crate) fn places(&self, id: BlockId) -> &[Place] {
        self.places.get(&id).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn place_mut(
        &mut self,
        id: BlockId,
        storage: StorageHandle,
        unit: UnitIndex,
    ) -> Option<&mut Place> {
        let places = self.places.get_mut(&id)?;
        places.iter_mut().find(|p| p.storage == storage && p.unit == unit)
    }

    /// Adds a good place. Returns whether it is new.
    pub(crate) fn add(&mut self, id: BlockId, storage: StorageHandle, unit: UnitIndex) -> bool {
        let places = self.places.entry(id).or_default();
        if places.iter().any(|p| p.storage == storage && p.unit == unit) {
            return false;
        }
        places.push(Place { storage, unit, corrupt: false, excess: false, told: false });
        true
    }

    /// Takes a place out. Returns it if it was there.
    pub(crate) fn remove(
        &mut self,
        id: BlockId,
        storage: StorageHandle,
        unit: UnitIndex,
    ) -> Option<Place> {
        let places = self.places.get_mut(&id)?;
        let at = places.iter().position(|p| p.storage == storage && p.unit == unit)?;
        let place = places.remove(at);
        if places.is_empty() {
            self.places.remove(&id);
        }
        Some(place)
    }

    pub(crate) fn remove_block(&mut self, id: BlockId) -> Vec<Place> {
        self.places.remove(&id).unwrap_or_default()
    }
}
