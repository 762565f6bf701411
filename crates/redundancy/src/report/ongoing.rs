//! Full reports that are being taken: whatever is newer than one of them, a later report, a registration, a loss, has a
//! later number.

use crate::handle::StorageHandle;
use cairn_stripe::BlockId;
use std::collections::{BTreeMap, BTreeSet};

/// What is known of a report while it is taken.
#[derive(Clone, Debug, Default)]
struct Ongoing {
    number: u64,
    /// Blocks of which something was told since it began.
    newer: BTreeSet<BlockId>,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reports {
    ongoing: BTreeMap<StorageHandle, Ongoing>,
    /// The last number that was given out.
    number: u64,
}

impl Reports {
    /// The last number that was given out: what has a later one is newer than this moment.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// The number of something that makes what was reported before old.
    pub(super) fn next_number(&mut self) -> u64 {
        self.number += 1;
        self.number
    }

    /// A report of a storage is being taken from now on; an earlier one ends.
    pub(super) fn begin(&mut self, storage: StorageHandle, number: u64) {
        self.ongoing.insert(storage, Ongoing { number, newer: BTreeSet::new() });
    }

    /// No report of it is taken any more.
    pub(crate) fn end(&mut self, storage: StorageHandle) {
        self.ongoing.remove(&storage);
    }

    /// Whether the report of a storage with that number is being taken.
    pub(super) fn is_ongoing(&self, storage: StorageHandle, number: u64) -> bool {
        self.ongoing.get(&storage).is_some_and(|ongoing| ongoing.number == number)
    }

    /// Something has happened to a block on a storage: a report that is being taken was made before.
    pub(super) fn note_newer(&mut self, storage: StorageHandle, id: BlockId) {
        if let Some(ongoing) = self.ongoing.get_mut(&storage) {
            ongoing.newer.insert(id);
        }
    }

    /// Whether something newer is known of a block there than the report that is being taken says.
    pub(super) fn is_newer(&self, storage: StorageHandle, id: BlockId) -> bool {
        self.ongoing.get(&storage).is_some_and(|ongoing| ongoing.newer.contains(&id))
    }

    /// Makes what is kept not fit together, to see that this is noticed.
    #[cfg(test)]
    pub(crate) fn damage(&mut self) {
        let newer = BTreeSet::new();
        let ongoing = Ongoing { number: self.number + 1, newer };
        self.ongoing.insert(StorageHandle(0), ongoing);
    }

    /// Panics if what is kept does not fit together.
    pub(crate) fn check_invariants(&self) {
        let numbers: BTreeSet<u64> = self.ongoing.values().map(|ongoing| ongoing.number).collect();
        assert_eq!(numbers.len(), self.ongoing.len(), "two reports have one number");
        assert!(
            numbers.last().is_none_or(|last| *last <= self.number),
            "{numbers:?} were given out"
        );
    }
}
