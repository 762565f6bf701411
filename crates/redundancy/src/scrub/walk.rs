//! The walk of the scrub over the namespace: where it is, what waits for a DataNode, and what is being read.

use crate::clock::Now;
use crate::handle::NodeHandle;
use cairn_stripe::BlockId;
use std::collections::{BTreeMap, VecDeque};

/// Blocks that wait for a DataNode, beyond which the walk waits.
pub(super) const MAX_WAITING: usize = 1000;
/// Blocks that one tick of the walk looks at.
pub(super) const STEP: usize = 500;

/// The walk, and what it has found.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scrubs {
    pub(super) after: Option<BlockId>,
    /// When the walk began, and whether it is over.
    pub(super) walk: Option<(u64, bool)>,
    pub(super) waiting: VecDeque<BlockId>,
    pub(super) under_way: BTreeMap<BlockId, UnderWay>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct UnderWay {
    pub(super) worker: NodeHandle,
    /// When it is given up.
    pub(super) until_ms: u64,
}

impl Scrubs {
    /// A DataNode knows nothing any more of what it was told. What it had is found by the next walk.
    pub(crate) fn forget_worker(&mut self, worker: NodeHandle) {
        self.under_way.retain(|_, work| work.worker != worker);
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
}
