//! Replicas and units that are to go, until their nodes say that they are gone: those that wait to be ordered
//! away, and the orders that nodes were given.
//!
//! An order can be lost on its way, and the replica it names is hidden from readers meanwhile. After the
//! time that copies have, one that is still surplus is told to go once more. If what made it surplus is
//! lost, it stays after all; as nobody knows whether its node has it still, nothing else is deleted of
//! its block until the node says so.
//!
//! An order can also come late: to a node that has obeyed an earlier one, has said so, and has got the
//! same replica anew since, from a balancer say. What counts while an order to delete it may be under
//! way may be gone the next moment, so nothing else is deleted of its block before that time is over.
//! Deviation: Hadoop relies on it.

use crate::block::BlockRef;
use crate::handle::{NodeHandle, StorageHandle};
use crate::places::deletions::Deletions;
use cairn_stripe::{BlockId, GenerationStamp};
use std::collections::{BTreeMap, BTreeSet};

/// Orders that one look takes.
const STEP: usize = 1000;

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct Going {
    /// Those that no node was told of.
    pub(super) waiting: Deletions,
    /// Orders by the time at which nodes were told; some may have been obeyed since.
    ordered: BTreeSet<(u64, StorageHandle, BlockRef)>,
    /// The last order of each node for each replica or internal block and stamp, as long as one may be
    /// under way.
    under_way: BTreeMap<(NodeHandle, BlockId, GenerationStamp), UnderWay>,
}

#[derive(Clone, Copy, Debug)]
struct UnderWay {
    since_ms: u64,
    /// There was one before it, whose time may be over: when the node says that it has obeyed one, the other may still come.
    is_repeated: bool,
}

impl Going {
    /// A node is told to delete what was chosen for that, and may have been before.
    pub(super) fn note_ordered(
        &mut self,
        (storage, node): (StorageHandle, NodeHandle),
        block: BlockRef,
        since_ms: u64,
        was_told: bool,
    ) {
        self.ordered.insert((since_ms, storage, block));
        let last = self.under_way.entry((node, block.id, block.gs));
        last.and_modify(|last| *last = UnderWay { since_ms, is_repeated: true })
            .or_insert(UnderWay { since_ms, is_repeated: was_told });
    }

    /// The orders that were given then or before, some at a time.
    pub(super) fn take_older(&mut self, than_ms: u64) -> Vec<(u64, StorageHandle, BlockRef)> {
        let mut taken = Vec::new();
        while taken.len() < STEP && self.ordered.first().is_some_and(|(ms, ..)| *ms <= than_ms) {
            taken.extend(self.ordered.pop_first());
        }
        taken
    }

    /// An order of that time has come, or never will.
    pub(super) fn is_over(&mut self, since_ms: u64, node: NodeHandle, block: BlockRef) {
        let key = (node, block.id, block.gs);
        if self.under_way.get(&key).is_some_and(|last| last.since_ms == since_ms) {
            self.under_way.remove(&key);
        }
    }

    /// A node says that it has deleted something.
    pub(super) fn is_obeyed(&mut self, node: NodeHandle, block: BlockRef) {
        let key = (node, block.id, block.gs);
        if self.under_way.get(&key).is_some_and(|last| !last.is_repeated) {
            self.under_way.remove(&key);
        }
    }

    /// Whether an order to delete this may be under way.
    pub(super) fn may_come(&self, node: NodeHandle, own_id: BlockId, gs: GenerationStamp) -> bool {
        !self.under_way.is_empty() && self.under_way.contains_key(&(node, own_id, gs))
    }

    /// Orders that are followed.
    #[cfg(test)]
    pub(super) fn ordered_count(&self) -> usize {
        self.ordered.len()
    }
}
