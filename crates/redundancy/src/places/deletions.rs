//! Replicas and units that their nodes are to delete, by storage, with how many there are.
//!
//! The counts are kept as the queues change: walking all of them for each `getFsStats` would hold
//! everybody up after a large tree was deleted.

use crate::block::BlockRef;
use crate::handle::StorageHandle;
use cairn_stripe::{BlockId, GenerationStamp};
use std::collections::{BTreeMap, BTreeSet};

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct Deletions {
    queues: BTreeMap<StorageHandle, BTreeSet<BlockRef>>,
    /// Of replicated blocks, then of block groups.
    counts: [u64; 2],
}

impl Deletions {
    pub(super) fn insert(&mut self, storage: StorageHandle, block: BlockRef) {
        if self.queues.entry(storage).or_default().insert(block) {
            self.counts[kind(block)] += 1;
        }
    }

    /// Takes one back. Returns whether it was there.
    pub(super) fn remove(&mut self, storage: StorageHandle, block: BlockRef) -> bool {
        let Some(queue) = self.queues.get_mut(&storage) else { return false };
        let was_queued = queue.remove(&block);
        if queue.is_empty() {
            self.queues.remove(&storage);
        }
        self.counts[kind(block)] -= u64::from(was_queued);
        was_queued
    }

    /// Takes back all of a block and stamp, whatever their length.
    pub(super) fn remove_any_len(&mut self, storage: StorageHandle, block: BlockRef) {
        self.remove_range(
            storage,
            BlockRef { len: 0, ..block },
            BlockRef { len: u64::MAX, ..block },
        );
    }

    /// Takes back all of a replica or internal block, whatever their stamp and length.
    /// Returns whether there was one.
    pub(super) fn remove_any_stamp(&mut self, storage: StorageHandle, id: BlockId) -> bool {
        let first = BlockRef { id, gs: GenerationStamp(0), len: 0 };
        let last = BlockRef { id, gs: GenerationStamp(u64::MAX), len: u64::MAX };
        self.remove_range(storage, first, last)
    }

    /// Whether a replica or internal block is queued, whatever its stamp and length.
    pub(super) fn has_any_stamp(&self, storage: StorageHandle, id: BlockId) -> bool {
        let first = BlockRef { id, gs: GenerationStamp(0), len: 0 };
        let last = BlockRef { id, gs: GenerationStamp(u64::MAX), len: u64::MAX };
        self.queues.get(&storage).is_some_and(|queue| queue.range(first..=last).next().is_some())
    }

    fn remove_range(&mut self, storage: StorageHandle, first: BlockRef, last: BlockRef) -> bool {
        let Some(queue) = self.queues.get(&storage) else { return false };
        let found: Vec<BlockRef> = queue.range(first..=last).copied().collect();
        for block in found.iter().copied() {
            self.remove(storage, block);
        }
        !found.is_empty()
    }

    /// Those of a storage.
    pub(super) fn of(&self, storage: StorageHandle) -> impl Iterator<Item = BlockRef> + '_ {
        self.queues.get(&storage).into_iter().flatten().copied()
    }

    /// Those of a storage, from one on.
    pub(super) fn from(
        &self,
        storage: StorageHandle,
        first: BlockRef,
    ) -> impl Iterator<Item = BlockRef> + '_ {
        self.queues.get(&storage).into_iter().flat_map(move |queue| queue.range(first..)).copied()
    }

    /// The first ones of a storage, which are no longer queued then.
    pub(super) fn take(&mut self, storage: StorageHandle, limit: usize) -> Vec<BlockRef> {
        let taken: Vec<BlockRef> = self.of(storage).take(limit).collect();
        for block in &taken {
            self.remove(storage, *block);
        }
        taken
    }

    pub(super) fn forget(&mut self, storage: StorageHandle) {
        for block in self.queues.remove(&storage).into_iter().flatten() {
            self.counts[kind(block)] -= 1;
        }
    }

    /// All that wait, by storage.
    pub(super) fn iter(&self) -> impl Iterator<Item = (StorageHandle, &BTreeSet<BlockRef>)> {
        self.queues.iter().map(|(storage, blocks)| (*storage, blocks))
    }

    /// Replicas that wait.
    pub(super) fn replicas(&self) -> u64 {
        self.counts[0]
    }

    /// Units that wait.
    pub(super) fn units(&self) -> u64 {
        self.counts[1]
    }
}

fn kind(block: BlockRef) -> usize {
    usize::from(block.id.has_units())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_what_the_queues_hold() {
        let mut deletions = Deletions::default();
        let block = |id, len| BlockRef { id: BlockId(id), gs: GenerationStamp(1001), len };
        let counts = |d: &Deletions| {
            let all = || d.queues.values().flatten();
            let units = all().filter(|block| block.id.is_striped()).count() as u64;
            assert_eq!((d.replicas(), d.units()), (all().count() as u64 - units, units));
            (d.replicas(), d.units())
        };
        for storage in [StorageHandle(0), StorageHandle(1)] {
            for id in [1, 2, -16, -15] {
                deletions.insert(storage, block(id, 5));
                deletions.insert(storage, block(id, 5));
            }
            deletions.insert(storage, block(2, 6));
        }
        assert_eq!(counts(&deletions), (6, 4));
        assert!(deletions.remove(StorageHandle(0), block(1, 5)));
        assert!(!deletions.remove(StorageHandle(0), block(1, 5)));
        assert!(!deletions.remove(StorageHandle(7), block(1, 5)));
        assert_eq!(counts(&deletions), (5, 4));
        deletions.remove_any_len(StorageHandle(0), block(2, 0));
        assert_eq!(counts(&deletions), (3, 4));
        assert_eq!(deletions.take(StorageHandle(0), 1), [block(-16, 5)]);
        assert_eq!(counts(&deletions), (3, 3));
        deletions.forget(StorageHandle(1));
        assert_eq!(counts(&deletions), (0, 1));
        assert_eq!(deletions.take(StorageHandle(0), 9), [block(-15, 5)]);
        assert_eq!(counts(&deletions), (0, 0));
        assert!(deletions.queues.is_empty());
    }
}
