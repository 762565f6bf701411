//! Which storages have something of a block, of all that DataNodes have told.
//!
//! It says where to look, and no more: what is there is kept with the storage.

use crate::handle::StorageHandle;
use crate::places::map::{self, BlockMap};
use crate::places::own_id;
use cairn_stripe::BlockId;

pub(super) use map::STORAGES_MAX;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Index {
    map: BlockMap,
    /// The UUIDs of node and storage, by handle. Those of storages that are gone are given out again.
    names: Vec<(String, String)>,
    free: Vec<StorageHandle>,
}

impl Index {
    /// Takes a storage in; none if there are too many.
    pub fn enter(&mut self, node: &str, storage: &str) -> Option<StorageHandle> {
        let names = (node.to_string(), storage.to_string());
        if let Some(handle) = self.free.pop() {
            self.names[handle.0 as usize] = names;
            return Some(handle);
        }
        if self.names.len() >= STORAGES_MAX {
            return None;
        }
        self.names.push(names);
        Some(StorageHandle(self.names.len() as u32 - 1))
    }

    /// A storage is gone, and all that it has had.
    pub fn leave(&mut self, handle: StorageHandle) {
        self.on(handle).into_iter().for_each(|own_id| self.remove(handle, own_id));
        self.free.push(handle);
    }

    pub fn add(&mut self, handle: StorageHandle, own_id: BlockId) {
        self.map.add(own_id.group(), handle, own_id.unit());
    }

    pub fn remove(&mut self, handle: StorageHandle, own_id: BlockId) {
        self.map.remove(own_id.group(), handle, own_id.unit());
    }

    /// Replicas and units on a storage, by their own ids.
    pub fn on(&self, handle: StorageHandle) -> Vec<BlockId> {
        self.map.iter_on(handle, None).collect()
    }

    /// Where something of a block or group is: the UUIDs of node and storage, and the own id of what is there.
    pub fn of(&self, id: BlockId) -> impl Iterator<Item = (&str, &str, BlockId)> {
        self.places(id).map(move |(storage, own_id)| {
            let (node, storage) = &self.names[storage.0 as usize];
            (node.as_str(), storage.as_str(), own_id)
        })
    }

    /// The same, with storages as they are called here.
    pub fn places(&self, id: BlockId) -> impl Iterator<Item = (StorageHandle, BlockId)> {
        self.map.places(id).map(move |place| (place.storage, own_id(id, place.unit)))
    }
}
