//! Which replicas are kept in memory.

use crate::dataset::Dataset;
use crate::members::{Member, PerMember, Wakes};
use crate::memory::Reservation;
use crate::sys::LockedPages;
use crate::volume::Volume;
use cairn_process::held::held;
use cairn_replica::Replica;
use cairn_stripe::{BlockId, GenerationStamp};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};

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
pub(crate) struct BlockCache {
    held: Mutex<HashMap<BlockId, Held>>,
    /// What is here was not told to a NameNode yet.
    is_untold: PerMember<AtomicBool>,
    changed: Wakes,
}

impl BlockCache {
    /// None yet, to be told to so many NameNodes.
    pub(crate) fn new(name_nodes: usize) -> BlockCache {
        BlockCache {
            held: Mutex::default(),
            is_untold: PerMember::new(name_nodes, |_| AtomicBool::new(false)),
            changed: Wakes::new(name_nodes),
        }
    }

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

    /// Whether something has changed since the last time that this was asked for `member`.
    pub(crate) fn take_untold(&self, member: Member) -> bool {
        self.is_untold[member].swap(false, Ordering::AcqRel)
    }

    /// What `member` was told did not arrive.
    pub(crate) fn not_told(&self, member: Member) {
        self.is_untold[member].store(true, Ordering::Release);
    }

    /// Completes when something has changed that `member` is to be told.
    pub(crate) async fn wait(&self, member: Member) {
        self.changed.wait(member).await;
    }

    /// What is here is not what was told.
    pub(crate) fn note_change(&self) {
        self.is_untold.iter().for_each(|untold| untold.store(true, Ordering::Release));
        self.changed.all();
    }

    /// All of them, or what becomes of them.
    pub(crate) fn lock(&self) -> MutexGuard<'_, HashMap<BlockId, Held>> {
        held(&self.held)
    }
}
