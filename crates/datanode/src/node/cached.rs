//! Which replicas are kept in memory.

use crate::dataset::Dataset;
use crate::memory::Reservation;
use crate::sys::LockedPages;
use crate::volume::Volume;
use cairn_net::held::held;
use cairn_replica::Replica;
use cairn_stripe::{BlockId, GenerationStamp};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};
use tokio::sync::Notify;

/// What of a replica is in memory.
#[derive(PartialEq, Eq)]
pub(crate) struct Image {
    gs: GenerationStamp,
    pub(crate) len: u64,
    storage_id: String,
}

impl Image {
    pub(crate) fn of(replica: &Replica, volume: &Volume) -> Image {
        let storage_id = volume.storage_id().into();
        Image { gs: replica.gs(), len: replica.on_disk_len(), storage_id }
    }

    /// Whether this is all of the replica that `dataset` has.
    pub(crate) fn is_current(&self, dataset: &Dataset, id: BlockId) -> bool {
        dataset.finalized(id).is_some_and(|(replica, volume)| *self == Image::of(&replica, &volume))
    }
}

/// One replica.
pub(crate) enum Held {
    /// It is being taken in; `unwanted` when it is to be given up as soon as it is there.
    Coming { unwanted: bool },
    /// It is in memory.
    There { image: Image, _pages: Pages, is_leaving: bool },
}

/// Locked pages and the memory that they count as; both are given back when this is dropped.
pub(crate) struct Pages {
    _locked: LockedPages,
    _memory: Reservation,
}

impl Pages {
    /// Pages that are locked, and what they take of the memory that may be.
    pub(crate) fn new(locked: LockedPages, memory: Reservation) -> Pages {
        Pages { _locked: locked, _memory: memory }
    }
}

/// The replicas in memory.
#[derive(Default)]
pub(crate) struct BlockCache {
    held: Mutex<HashMap<BlockId, Held>>,
    /// What is here was not told to the NameNode yet.
    is_untold: AtomicBool,
    changed: Notify,
}

impl BlockCache {
    /// The replicas in memory.
    pub(crate) fn ids(&self) -> Vec<BlockId> {
        let held = self.lock();
        let there = held.iter().filter(|(_, held)| matches!(held, Held::There { .. }));
        there.map(|(id, _)| *id).collect()
    }

    /// Whether a replica is in memory as `dataset` has it, and is to stay there.
    pub(crate) fn contains(&self, id: BlockId, dataset: &Dataset) -> bool {
        match self.lock().get(&id) {
            Some(Held::There { image, is_leaving: false, .. }) => image.is_current(dataset, id),
            _ => false,
        }
    }

    /// Whether something has changed since the last time that this was asked.
    pub(crate) fn take_untold(&self) -> bool {
        self.is_untold.swap(false, Ordering::AcqRel)
    }

    /// What was told did not arrive.
    pub(crate) fn not_told(&self) {
        self.is_untold.store(true, Ordering::Release);
    }

    /// Completes when something has changed.
    pub(crate) async fn wait(&self) {
        self.changed.notified().await;
    }

    /// What is here is not what was told.
    pub(crate) fn note_change(&self) {
        self.not_told();
        self.changed.notify_one();
    }

    /// All of them, or what becomes of them.
    pub(crate) fn lock(&self) -> MutexGuard<'_, HashMap<BlockId, Held>> {
        held(&self.held)
    }
}
