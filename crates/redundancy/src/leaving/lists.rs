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

/// A walk over the blocks of a node.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Walk {
    /// How many of its storages are done.
    storage: usize,
    /// The last block of the next one that was looked at.
    after: Option<BlockId>,
    /// The admin changes that it knows of. One that comes later may make wrong what it has found.
    changes: u64,
    /// Blocks found that others do not have yet.
    found: u64,
}

impl Walk {
    /// The storage that it is at, of all of its node, and the last block that it has looked at there.
    pub(super) fn at(&self) -> (usize, Option<BlockId>) {
        (self.storage, self.after)
    }

    /// Some of the blocks that it has looked at are ones that others do not have yet.
    pub(super) fn found(&mut self, count: u64) {
        self.found += count;
    }

    /// The last block that a step has looked at; none if its storage has no more.
    pub(super) fn went_to(&mut self, last: Option<BlockId>) {
        self.storage += usize::from(last.is_none());
        self.after = last;
    }
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

/// How far a leaving node has got.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Count {
    /// All its blocks were looked at once.
    pub(super) is_whole: bool,
    /// Replicas and units that others do not have yet.
    pub(super) blocks_left: u64,
    pub(super) bytes_left: u64,
    /// Those of them of which no node in service has a replica or unit.
    pub(super) only_leaving: u64,
    /// Those of them that clients write to.
    pub(super) open: u64,
    /// Replicas and units that others got since.
    pub(super) blocks_done: u64,
    pub(super) bytes_done: u64,
    /// Bytes that others got in a second, of late.
    pub(super) bytes_per_second: u64,
}

/// One leaving node whose blocks are followed.
#[derive(Clone, Debug, Default)]
struct Tracked {
    walk: Option<Walk>,
    /// Whether the last whole walk found nothing, and what it knew still holds.
    clean: Option<u64>,
    /// By the id of the replica or internal block.
    left: BTreeMap<BlockId, Left>,
    left_bytes: u64,
    only_leaving: u64,
    open: u64,
    done_blocks: u64,
    done_bytes: u64,
    /// Monotonic milliseconds and `done_bytes`, oldest first.
    samples: VecDeque<(u64, u64)>,
}

impl Tracked {
    fn insert(&mut self, id: BlockId, left: Left) {
        self.take(id);
        self.left_bytes += left.len;
        self.only_leaving += u64::from(left.only_leaving);
        self.open += u64::from(left.open);
        self.left.insert(id, left);
    }

    fn take(&mut self, id: BlockId) -> Option<Left> {
        let left = self.left.remove(&id)?;
        self.left_bytes -= left.len;
        self.only_leaving -= u64::from(left.only_leaving);
        self.open -= u64::from(left.open);
        Some(left)
    }

    fn done(&mut self, id: BlockId) {
        if let Some(left) = self.take(id) {
            self.done_blocks += 1;
            self.done_bytes += left.len;
        }
    }

    fn sample(&mut self, now: Now) {
        let due = self.samples.back().is_none_or(|(at, _)| now.mono_ms >= at + SAMPLE_MS);
        if due {
            self.samples.push_back((now.mono_ms, self.done_bytes));
        }
        if self.samples.len() > SAMPLES {
            self.samples.pop_front();
        }
    }

    fn rate(&self, now: Now) -> u64 {
        let Some((from, done)) = self.samples.front() else { return 0 };
        let ms = now.mono_ms.saturating_sub(*from).max(1);
        self.done_bytes.saturating_sub(*done).saturating_mul(1000) / ms
    }

    /// Panics if the sums are not those of the list.
    fn check_invariants(&self) {
        let count =
            |is_it: fn(&Left) -> bool| self.left.values().filter(|left| is_it(left)).count();
        let bytes = self.left.values().map(|left| left.len).sum::<u64>();
        assert_eq!(self.left_bytes, bytes, "bytes that leave");
        assert_eq!(self.only_leaving, count(|left| left.only_leaving) as u64);
        assert_eq!(self.open, count(|left| left.open) as u64);
        assert!(self.samples.len() <= SAMPLES);
    }
}

/// All that leaves, and all that comes back.
#[derive(Clone, Debug, Default)]
pub(crate) struct Leaving {
    /// Nodes that leave, with the monotonic time at which they were told to.
    since: BTreeMap<NodeHandle, u64>,
    /// Those of them whose turn it is.
    tracked: BTreeMap<NodeHandle, Tracked>,
    /// The others, in their order.
    waiting: VecDeque<NodeHandle>,
    /// Nodes that serve again: what others were to have instead of them is looked at again.
    returned: BTreeMap<NodeHandle, Walk>,
    /// Blocks for which there was no source or no target when their turn came.
    unplaced: BTreeSet<BlockId>,
    /// Counts whatever makes older verdicts on blocks doubtful.
    changes: u64,
    last_look_ms: Option<u64>,
}

impl Leaving {
    /// Makes every walk that was done before this worth nothing.
    pub(crate) fn judge_anew(&mut self) {
        self.changes += 1;
    }

    /// A node leaves no more, if it did, nor comes back.
    pub(crate) fn untrack(&mut self, node: NodeHandle) {
        self.since.remove(&node);
        self.tracked.remove(&node);
        self.waiting.retain(|other| *other != node);
        self.returned.remove(&node);
    }

    /// A node leaves from now on.
    pub(super) fn track(&mut self, node: NodeHandle, now: Now) {
        self.untrack(node);
        self.since.insert(node, now.mono_ms);
        self.waiting.push_back(node);
    }

    /// A node is back, or away for good: what others were to have instead of it is looked at.
    pub(super) fn come_back(&mut self, node: NodeHandle) {
        self.returned.insert(node, Walk::default());
    }

    /// Nobody leaves and nobody comes back.
    pub(super) fn is_idle(&self) -> bool {
        self.since.is_empty() && self.returned.is_empty()
    }

    /// The nodes that leave.
    pub(super) fn nodes(&self) -> impl Iterator<Item = NodeHandle> + '_ {
        self.since.keys().copied()
    }

    /// Since when a node leaves, on the monotonic clock.
    pub(super) fn since(&self, node: NodeHandle) -> Option<u64> {
        self.since.get(&node).copied()
    }

    /// The nodes that leave and whose turn it is.
    pub(super) fn followed(&self) -> impl Iterator<Item = NodeHandle> + '_ {
        self.tracked.keys().copied()
    }

    /// Whether a node is one of them.
    pub(super) fn is_followed(&self, node: NodeHandle) -> bool {
        self.tracked.contains_key(&node)
    }

    /// How many nodes have their turn before one that waits for its own.
    pub(super) fn ahead_of(&self, node: NodeHandle) -> Option<usize> {
        let at = self.waiting.iter().position(|other| *other == node);
        at.map(|at| self.tracked.len() + at)
    }

    /// It is the turn of those that wait, as long as no more than `max` have theirs; 0: all.
    pub(super) fn start_waiting(&mut self, max: usize) {
        while max == 0 || self.tracked.len() < max {
            let Some(node) = self.waiting.pop_front() else { return };
            let walk = Walk { changes: self.changes, ..Walk::default() };
            self.tracked.insert(node, Tracked { walk: Some(walk), ..Tracked::default() });
        }
    }

    /// Some whose turn it is are to wait for another one, as many as there are who wait.
    pub(super) fn let_wait(&mut self, nodes: Vec<NodeHandle>) {
        for node in nodes.into_iter().take(self.waiting.len()) {
            self.tracked.remove(&node);
            self.waiting.push_back(node);
        }
    }

    /// The walks over nodes that are back.
    pub(super) fn return_walks(&self) -> Vec<(NodeHandle, Walk)> {
        self.returned.iter().map(|(node, walk)| (*node, *walk)).collect()
    }

    /// The walk over a node that is back has gone on, perhaps to its end.
    pub(super) fn return_went_on(&mut self, node: NodeHandle, walk: Walk, has_ended: bool) {
        match has_ended {
            true => self.returned.remove(&node),
            false => self.returned.insert(node, walk),
        };
    }

    /// The walks over nodes that leave.
    pub(super) fn walks(&self) -> Vec<(NodeHandle, Walk)> {
        self.tracked.iter().filter_map(|(node, tracked)| Some((*node, tracked.walk?))).collect()
    }

    /// The walk over a node that leaves has gone on, perhaps to its end.
    pub(super) fn went_on(&mut self, node: NodeHandle, walk: Walk, has_ended: bool) {
        let Some(tracked) = self.tracked.get_mut(&node) else { return };
        tracked.walk = (!has_ended).then_some(walk);
        if has_ended {
            tracked.clean = (walk.found == 0).then_some(walk.changes);
        }
    }

    /// The nodes of which others have all, which one more walk has shown.
    pub(super) fn through(&self) -> Vec<NodeHandle> {
        let is_through =
            |tracked: &Tracked| tracked.left.is_empty() && tracked.clean == Some(self.changes);
        let through = self.tracked.iter().filter(|(_, tracked)| is_through(tracked));
        through.map(|(node, _)| *node).collect()
    }

    /// The same of those over which no walk is under way; of the others of which nothing is left one more begins.
    pub(super) fn through_or_walk_again(&mut self) -> Vec<NodeHandle> {
        let changes = self.changes;
        let mut through = Vec::new();
        for (node, tracked) in &mut self.tracked {
            if !tracked.left.is_empty() || tracked.walk.is_some() {
                continue;
            }
            match tracked.clean == Some(changes) {
                true => through.push(*node),
                false => tracked.walk = Some(Walk { changes, ..Walk::default() }),
            }
        }
        through
    }

    /// Whether it is time to look who may go: first a whole interval after the first question.
    pub(super) fn begin_look(&mut self, interval_ms: u64, now: Now) -> bool {
        let last = *self.last_look_ms.get_or_insert(now.mono_ms);
        let is_due = now.mono_ms.saturating_sub(last) >= interval_ms;
        if is_due {
            self.last_look_ms = Some(now.mono_ms);
        }
        is_due
    }

    /// Keeps in mind how much is done by now.
    pub(super) fn sample(&mut self, now: Now) {
        self.tracked.values_mut().for_each(|tracked| tracked.sample(now));
    }

    /// A node does not hold a replica or internal block any more.
    pub(crate) fn forget(&mut self, node: NodeHandle, id: BlockId) {
        if let Some(tracked) = self.tracked.get_mut(&node) {
            tracked.take(id);
        }
    }

    /// Others have what a node has of a block.
    pub(super) fn note_done(&mut self, node: NodeHandle, id: BlockId) {
        if let Some(tracked) = self.tracked.get_mut(&node) {
            tracked.done(id);
        }
    }

    /// Others do not have yet what a node has of a block.
    pub(super) fn note_left(&mut self, node: NodeHandle, id: BlockId, left: Left) {
        if let Some(tracked) = self.tracked.get_mut(&node) {
            tracked.insert(id, left);
        }
    }

    /// Whether that is known.
    pub(super) fn is_left(&self, node: NodeHandle, id: BlockId) -> bool {
        self.tracked.get(&node).is_some_and(|tracked| tracked.left.contains_key(&id))
    }

    /// Whether it is known of any part of a block or group that some node has.
    pub(super) fn is_any_left(&self, group: BlockId) -> bool {
        self.tracked.values().any(|tracked| {
            tracked.left.range(group..).next().is_some_and(|(id, _)| id.group() == group)
        })
    }

    /// What others do not have yet of a node: what had no source or target when its turn came, or what had.
    pub(super) fn left_on(
        &self,
        node: NodeHandle,
        is_stuck: bool,
    ) -> impl Iterator<Item = BlockId> + '_ {
        let all = self.tracked.get(&node).into_iter().flat_map(|tracked| tracked.left.keys());
        all.copied().filter(move |id| self.unplaced.contains(&id.group()) == is_stuck)
    }

    /// How far a node has got, if it is its turn.
    pub(super) fn count(&self, node: NodeHandle, now: Now) -> Option<Count> {
        let tracked = self.tracked.get(&node)?;
        Some(Count {
            is_whole: tracked.walk.is_none() || tracked.clean.is_some(),
            blocks_left: tracked.left.len() as u64,
            bytes_left: tracked.left_bytes,
            only_leaving: tracked.only_leaving,
            open: tracked.open,
            blocks_done: tracked.done_blocks,
            bytes_done: tracked.done_bytes,
            bytes_per_second: tracked.rate(now),
        })
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

    /// Makes what is kept not fit together, to see that this is noticed.
    #[cfg(test)]
    pub(crate) fn damage(&mut self) {
        self.since.insert(NodeHandle(0), 0);
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
}
