//! The list of volumes.

use crate::volume::Volume;
use cairn_process::held::{held, held_read, held_write};
use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex, MutexGuard, RwLock};

/// The volumes, which change seldom.
#[derive(Debug)]
pub(super) struct Volumes {
    open: RwLock<Arc<[Arc<Volume>]>>,
    /// Folders that could not even be opened.
    unusable: Mutex<HashSet<PathBuf>>,
    /// Whose turn it is.
    pub(super) next: AtomicUsize,
    /// How many have failed since the start.
    pub(super) failures: AtomicU64,
}

impl Volumes {
    pub(super) fn new(open: Vec<Arc<Volume>>, unusable: HashSet<PathBuf>) -> Volumes {
        Volumes {
            open: RwLock::new(open.into()),
            unusable: Mutex::new(unusable),
            next: AtomicUsize::new(0),
            failures: AtomicU64::new(0),
        }
    }

    pub(super) fn unusable_count(&self) -> usize {
        self.unusable().len()
    }

    pub(super) fn unusable(&self) -> MutexGuard<'_, HashSet<PathBuf>> {
        held(&self.unusable)
    }

    pub(super) fn get(&self) -> Arc<[Arc<Volume>]> {
        Arc::clone(&held_read(&self.open))
    }

    pub(super) fn change(&self, change: impl FnOnce(&mut Vec<Arc<Volume>>)) {
        let mut open = held_write(&self.open);
        let mut volumes = open.to_vec();
        change(&mut volumes);
        *open = volumes.into();
    }
}
