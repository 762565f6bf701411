//! The blocks that need something, kept up as things happen to them; what one needs is decided in `need`.

use crate::queue::{Priority, Queues};
use cairn_stripe::BlockId;
use std::collections::BTreeSet;

/// The blocks and groups that need something.
#[derive(Clone, Debug, Default)]
pub(crate) struct LowRedundancy {
    queues: Queues,
    /// Groups with several units on some node. Nobody walks over all blocks for them: they are looked at when a node
    /// comes.
    sharing: BTreeSet<BlockId>,
}

impl LowRedundancy {
    /// Those with too little redundancy.
    pub(crate) fn queues(&self) -> &Queues {
        &self.queues
    }

    /// The same, to change.
    pub(crate) fn queues_mut(&mut self) -> &mut Queues {
        &mut self.queues
    }

    /// Whether units of a group share a node.
    pub(crate) fn note_sharing(&mut self, id: BlockId, is_so: bool) {
        match is_so {
            true => self.sharing.insert(id),
            false => self.sharing.remove(&id),
        };
    }

    /// The next groups after one whose units share nodes.
    pub(crate) fn next_sharing(&self, after: Option<BlockId>, limit: usize) -> Vec<BlockId> {
        use std::ops::Bound::{Excluded, Unbounded};
        let from = after.map_or(Unbounded, Excluded);
        self.sharing.range((from, Unbounded)).take(limit).copied().collect()
    }

    /// All of which is known that they need something.
    pub(crate) fn known(&self) -> impl Iterator<Item = BlockId> + '_ {
        let levels = Priority::ALL.into_iter().flat_map(|level| self.queues.level(level));
        levels.chain(self.sharing.iter().copied())
    }

    /// No file has the block any more: it needs nothing.
    pub(crate) fn forget_block(&mut self, id: BlockId) {
        self.queues.remove(id);
        self.sharing.remove(&id);
    }

    /// Makes what is kept not fit together, to see that this is noticed.
    #[cfg(test)]
    pub(crate) fn damage(&mut self) {
        self.queues.damage();
    }

    /// Panics if what is kept does not fit together.
    pub(crate) fn check_invariants(&self) {
        self.queues.check_invariants();
    }
}
