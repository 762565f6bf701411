//! Packed blocks of which plain replicas are left.

use crate::handle::StorageHandle;
use cairn_stripe::BlockId;
use std::collections::{BTreeMap, BTreeSet};

/// See the module. It is soft: what replicas there are is known from reports.
#[derive(Clone, Debug, Default)]
pub(crate) struct Packed {
    left: BTreeSet<BlockId>,
    /// Those that are to be plain again, where replicas of them are to be written, and since when, mono ms.
    asked: BTreeMap<BlockId, Vec<(StorageHandle, u64)>>,
    /// The last that was looked at.
    looked_at: Option<BlockId>,
}

impl Packed {
    /// There are plain replicas of a packed block, or none any more.
    pub(crate) fn note(&mut self, id: BlockId, has_some: bool) {
        match has_some {
            true => _ = self.left.insert(id),
            false => _ = self.left.remove(&id),
        }
    }

    /// It is packed no more.
    pub(crate) fn forget(&mut self, id: BlockId) {
        self.left.remove(&id);
        self.asked.remove(&id);
    }

    /// Whether a block is to be plain again.
    pub(crate) fn is_asked(&self, id: BlockId) -> bool {
        self.asked.contains_key(&id)
    }

    /// Where replicas of a block are to be written that is to be plain again from now on, if it was not before.
    pub(crate) fn ordered(&mut self, id: BlockId) -> &mut Vec<(StorageHandle, u64)> {
        self.asked.entry(id).or_default()
    }

    /// The blocks that are to be plain again.
    pub(crate) fn asked(&self) -> impl Iterator<Item = BlockId> {
        self.asked.keys().copied()
    }

    /// Of how many blocks replicas are to be written.
    pub(crate) fn asked_len(&self) -> usize {
        self.asked.len()
    }

    /// Whether there are some.
    pub(crate) fn has(&self, id: BlockId) -> bool {
        self.left.contains(&id)
    }

    /// Of how many blocks there are.
    pub(crate) fn len(&self) -> usize {
        self.left.len()
    }

    /// The next blocks of which there are some, and round.
    pub(crate) fn next(&mut self, limit: usize) -> Vec<BlockId> {
        use std::ops::Bound::{Excluded, Unbounded};
        let from = self.looked_at.map_or(Unbounded, Excluded);
        let mut next: Vec<BlockId> =
            self.left.range((from, Unbounded)).take(limit).copied().collect();
        let rest = limit - next.len();
        next.extend(self.left.iter().take(rest).filter(|id| Some(**id) <= self.looked_at));
        self.looked_at = next.last().copied().or(self.looked_at);
        next
    }

    /// Panics if something is in it that cannot be packed.
    pub(crate) fn check_invariants(&self) {
        let is_plain = |id: &BlockId| !id.has_units() && !id.is_container();
        assert!(self.left.iter().all(is_plain), "containers and units are packed in nothing");
    }

    /// All of them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = BlockId> {
        self.left.iter().copied()
    }
}
