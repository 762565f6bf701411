//! The nodes that leave or come back, with the blocks that others do not have yet.

use crate::clock::Now;
use crate::handle::NodeHandle;
use cairn_stripe::BlockId;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Blocks without a source or target that are remembered, to be told of first.
const UNPLACED_MAX: usize = 1000;
/// Time between two points that the rate is taken from.
const SAMPLE_MS: u64 = 5000;
/// Points that the rate is taken from.
const SAMPLES: usize = 13;

/// A walk over the blocks of a node: how many of its storages are done, and where it is in the next.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Walk {
    pub(super) storage: usize,
    pub(super) after: Option<BlockId>,
    /// The admin changes that it knows of. One that comes later may make wrong what it has found.
    pub(super) changes: u64,
    /// Blocks found that others do not have yet.
    pub(super) found: u64,
}

/// One block of a leaving node that others do not have yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Left {
    pub(super) len: u64,
    /// No node in service has a replica or unit of it.
    pub(super) only_leaving: bool,
    /// A client writes to it.
    pub(super) open: bool,
}

/// One leaving node whose blocks are followed.
#[derive(Clone, Debug, Default)]
pub(super) struct Tracked {
    pub(super) walk: Option<Walk>,
    /// Whether the last whole walk found nothing, and what it knew still holds.
    pub(super) clean: Option<u64>,
    /// By the id of the replica or internal block.
    pub(super) left: BTreeMap<BlockId, Left>,
    pub(super) left_bytes: u64,
    pub(super) only_leaving: u64,
    pub(super) open: u64,
    pub(super) done_blocks: u64,
    pub(super) done_bytes: u64,
    /// Monotonic milliseconds and `done_bytes`, oldest first.
    pub(super) samples: VecDeque<(u64, u64)>,
}

impl Tracked {
    pub(super) fn insert(&mut self, id: BlockId, left: Left) {
        self.take(id);
        self.left_bytes += left.len;
        self.only_leaving += u64::from(left.only_leaving);
        self.open += u64::from(left.open);
        self.left.insert(id, left);
    }

    pub(super) fn take(&mut self, id: BlockId) -> Option<Left> {
        let left = self.left.remove(&id)?;
        self.left_bytes -= left.len;
        self.only_leaving -= u64::from(left.only_leaving);
        self.open -= u64::from(left.open);
        Some(left)
    }

    pub(super) fn done(&mut self, id: BlockId) {
        if let Some(left) = self.take(id) {
            self.done_blocks += 1;
            self.done_bytes += left.len;
        }
    }

    /// Panics if the sums are not those of the list.
    fn check_invariants(&self) {
        let count =
            |is_it: fn(&Left) -> bool| self.left.values().filter(|left| is_it(left)).count();
        assert_eq!(self.left_bytes, self.left.values().map(|left| left.len).sum::<u64>());
        assert_eq!(self.only_leaving, count(|left| left.only_leaving) as u64);
        assert_eq!(self.open, count(|left| left.open) as u64);
        assert!(self.samples.len() <= SAMPLES);
    }

    pub(super) fn sample(&mut self, now: Now) {
        let due = self.samples.back().is_none_or(|(at, _)| now.mono_ms >= at + SAMPLE_MS);
        if due {
            self.samples.push_back((now.mono_ms, self.done_bytes));
        }
        if self.samples.len() > SAMPLES {
            self.samples.pop_front();
        }
    }
}

/// All that leaves, and all that comes back.
#[derive(Clone, Debug, Default)]
pub(crate) struct Leaving {
    /// Nodes that leave, with the monotonic time at which they were told to.
    pub(super) since: BTreeMap<NodeHandle, u64>,
    /// Those of them whose turn it is.
    pub(super) tracked: BTreeMap<NodeHandle, Tracked>,
    /// The others, in their order.
    pub(super) waiting: VecDeque<NodeHandle>,
    /// Nodes that serve again: what others were to have instead of them is looked at again.
    pub(super) returned: BTreeMap<NodeHandle, Walk>,
    /// Blocks for which there was no source or no target when their turn came.
    pub(super) unplaced: BTreeSet<BlockId>,
    /// Counts whatever makes older verdicts on blocks doubtful.
    pub(super) changes: u64,
    pub(super) last_look_ms: Option<u64>,
}

impl Leaving {
    /// Makes every walk that was done before this worth nothing.
    pub(crate) fn judge_anew(&mut self) {
        self.changes += 1;
    }

    pub(crate) fn untrack(&mut self, node: NodeHandle) {
        self.since.remove(&node);
        self.tracked.remove(&node);
        self.waiting.retain(|other| *other != node);
        self.returned.remove(&node);
    }

    pub(super) fn track(&mut self, node: NodeHandle, now: Now) {
        self.untrack(node);
        self.since.insert(node, now.mono_ms);
        self.waiting.push_back(node);
    }

    /// A node does not hold a replica or internal block any more.
    pub(crate) fn forget(&mut self, node: NodeHandle, id: BlockId) {
        if let Some(tracked) = self.tracked.get_mut(&node) {
            tracked.take(id);
        }
    }

    /// A block's turn came, and there was nothing to read it from or nowhere to put it.
    pub(crate) fn note_unplaced(&mut self, id: BlockId) {
        if !self.tracked.is_empty() && self.unplaced.len() < UNPLACED_MAX {
            self.unplaced.insert(id);
        }
    }

    /// Work on it was given out, or none is needed.
    pub(crate) fn note_placed(&mut self, id: BlockId) {
        self.unplaced.remove(&id);
    }

    /// Panics if what is kept does not fit together.
    pub(crate) fn check_invariants(&self) {
        for node in self.since.keys() {
            let (is_followed, waits) =
                (self.tracked.contains_key(node), self.waiting.contains(node));
            assert_ne!(is_followed, waits, "{node:?} leaves, and is followed: {is_followed}");
            assert!(!self.returned.contains_key(node), "{node:?} leaves, and has come back");
        }
        let known = self.tracked.len() + self.waiting.len();
        assert_eq!(
            self.since.len(),
            known,
            "nodes that leave, and those that are followed or wait"
        );
        assert!(self.unplaced.len() <= UNPLACED_MAX);
        self.tracked.values().for_each(Tracked::check_invariants);
    }

    pub(super) fn start_waiting(&mut self, max: usize) {
        while max == 0 || self.tracked.len() < max {
            let Some(node) = self.waiting.pop_front() else { return };
            let walk = Walk { changes: self.changes, ..Walk::default() };
            self.tracked.insert(node, Tracked { walk: Some(walk), ..Tracked::default() });
        }
    }
}
