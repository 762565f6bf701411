//! The walk of the scrub over the namespace: where it is, what waits for a DataNode, and what is being read.

use crate::clock::Now;
use crate::handle::NodeHandle;
use cairn_stripe::BlockId;
use std::collections::{BTreeMap, VecDeque};

/// Blocks that wait for a DataNode, beyond which the walk waits.
const MAX_WAITING: usize = 1000;
/// Blocks that one tick of the walk looks at.
pub(super) const STEP: usize = 500;

/// The walk, and what it has found.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scrubs {
    after: Option<BlockId>,
    /// When the walk began, and whether it is over.
    walk: Option<(u64, bool)>,
    waiting: VecDeque<BlockId>,
    under_way: BTreeMap<BlockId, UnderWay>,
}

#[derive(Clone, Copy, Debug)]
struct UnderWay {
    worker: NodeHandle,
    /// When it is given up.
    until_ms: u64,
}

impl Scrubs {
    /// A DataNode knows nothing any more of what it was told. What it had is found by the next walk.
    pub(crate) fn forget_worker(&mut self, worker: NodeHandle) {
        self.under_way.retain(|_, work| work.worker != worker);
    }

    /// Makes what is kept not fit together, to see that this is noticed.
    #[cfg(test)]
    pub(crate) fn damage(&mut self) {
        self.after = Some(BlockId(1));
    }

    /// Panics if what is kept does not fit together.
    pub(crate) fn check_invariants(&self) {
        assert!(self.waiting.len() < MAX_WAITING + STEP, "{} blocks wait", self.waiting.len());
        assert!(
            self.after.is_none() || self.walk.is_some(),
            "a walk that never began is under way"
        );
    }

    /// A block that is to be read before others.
    pub(crate) fn put_first(&mut self, id: BlockId) {
        if self.waiting.len() < MAX_WAITING && !self.waiting.contains(&id) {
            self.waiting.push_front(id);
        }
    }

    /// The block after which to go on, if a walk is due or under way.
    pub(super) fn walk_on(&mut self, period_ms: u64, now: Now) -> Option<Option<BlockId>> {
        match self.walk {
            Some((_, false)) => {}
            Some((began, true)) if now.mono_ms.saturating_sub(began) < period_ms => return None,
            _ => (self.walk, self.after) = (Some((now.mono_ms, false)), None),
        }
        (self.waiting.len() < MAX_WAITING).then_some(self.after)
    }

    /// A step of the walk has ended at a block, or found no more.
    pub(super) fn went_to(&mut self, last: Option<BlockId>) {
        match last {
            Some(last) => self.after = Some(last),
            None => self.walk = self.walk.map(|(began, _)| (began, true)),
        }
    }

    /// A step has found these.
    pub(super) fn add(&mut self, found: impl IntoIterator<Item = BlockId>) {
        self.waiting.extend(found);
    }

    /// Takes out one that waits: the first of the next `looks` that `is_better`, else the next.
    pub(super) fn take_next(
        &mut self,
        looks: usize,
        is_better: impl Fn(BlockId) -> bool,
    ) -> Option<BlockId> {
        let better = self.waiting.iter().take(looks).position(|id| is_better(*id));
        self.waiting.remove(better.unwrap_or(0))
    }

    /// A DataNode is told to read a block, and given up at a time of the monotonic clock.
    pub(super) fn begin(&mut self, id: BlockId, worker: NodeHandle, until_ms: u64) {
        self.under_way.insert(id, UnderWay { worker, until_ms });
    }

    /// Whether a block is being read.
    pub(super) fn is_read(&self, id: BlockId) -> bool {
        self.under_way.contains_key(&id)
    }

    /// Whether a DataNode has something to read.
    pub(super) fn is_busy(&self, worker: NodeHandle) -> bool {
        self.under_way.values().any(|work| work.worker == worker)
    }

    /// A DataNode tells what it has read of a block. Returns whether it was to do so.
    pub(super) fn end(&mut self, id: BlockId, worker: NodeHandle) -> bool {
        let is_its = self.under_way.get(&id).is_some_and(|work| work.worker == worker);
        if is_its {
            self.under_way.remove(&id);
        }
        is_its
    }

    /// Gives up what was to be read by now.
    pub(super) fn give_up_late(&mut self, now: Now) {
        self.under_way.retain(|_, work| work.until_ms > now.mono_ms);
    }
}
