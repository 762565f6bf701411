//! Walks over many blocks, a step at a time: others get the lock between the steps.

use crate::block::BlockLookup;
use crate::cluster::Cluster;
use cairn_stripe::BlockId;
use std::collections::BTreeSet;

/// Blocks that a step looks at in each walk.
const STEP: usize = 500;
/// Steps from one tick to the next.
const STEPS: usize = 20;

/// The walks that are under way.
#[derive(Clone, Debug, Default)]
pub(super) struct Walks {
    /// Over all blocks of the namespace, and where it is.
    scan: Option<Option<BlockId>>,
    /// Another one is to follow.
    scan_again: bool,
    /// Over the blocks that are postponed, and where it is.
    recheck: Option<Option<BlockId>>,
    /// Another one is to follow.
    recheck_again: bool,
    /// Steps that are left until the next tick.
    steps: usize,
}

impl Walks {
    /// Begins a walk over the namespace anew.
    pub(super) fn start_scan(&mut self) {
        self.scan = Some(None);
    }

    /// Has all blocks looked at, after the walk that may be under way.
    pub(super) fn scan_again(&mut self) {
        self.scan_again = true;
    }

    /// Has all postponed blocks looked at, likewise.
    pub(super) fn recheck_again(&mut self) {
        self.recheck_again = true;
    }

    fn is_under_way(&self) -> bool {
        self.scan.is_some() || self.scan_again || self.recheck.is_some() || self.recheck_again
    }

    /// The next blocks of a look at those that are postponed, which are not any more.
    fn take_postponed(&mut self, postponed: &mut BTreeSet<BlockId>) -> Vec<BlockId> {
        use std::ops::Bound::{Excluded, Unbounded};
        if self.recheck.is_none() && std::mem::take(&mut self.recheck_again) {
            self.recheck = Some(None);
        }
        let Some(after) = self.recheck else { return Vec::new() };
        let from = after.map_or(Unbounded, Excluded);
        let next: Vec<BlockId> = postponed.range((from, Unbounded)).take(STEP).copied().collect();
        self.recheck = next.last().map(|id| Some(*id));
        for id in &next {
            postponed.remove(id);
        }
        next
    }
}

impl Cluster {
    /// Lets the walks go on, as far as is meant for the time until the next tick.
    pub(crate) fn grant_walks(&mut self) {
        self.mending.walks.steps = STEPS;
    }

    /// The next step of all walks. Returns whether another is to follow.
    pub(crate) fn look_at_blocks(&mut self, lookup: &dyn BlockLookup) -> bool {
        if !self.safe_mode.is_queueing() || self.mending.walks.steps == 0 {
            return false;
        }
        self.mending.walks.steps -= 1;
        self.scan_step(lookup);
        for id in self.mending.shared.next(STEP) {
            self.check_redundancy(lookup, id);
        }
        for id in self.mending.walks.take_postponed(&mut self.mending.postponed) {
            self.check_redundancy(lookup, id);
        }
        let Walks { steps, .. } = self.mending.walks;
        steps > 0 && (self.mending.walks.is_under_way() || self.mending.shared.is_looking())
    }

    fn scan_step(&mut self, lookup: &dyn BlockLookup) {
        let walks = &mut self.mending.walks;
        if walks.scan.is_none() && std::mem::take(&mut walks.scan_again) {
            walks.scan = Some(None);
        }
        let Some(after) = walks.scan else { return };
        let blocks = lookup.blocks_after(after, STEP);
        walks.scan = blocks.last().map(|(id, _)| Some(*id));
        for (id, facts) in blocks {
            self.check_against(lookup, id, Some(facts));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::fixture::*;
    use crate::*;

    /// Who has the lock for all of them would hold up every call meanwhile.
    #[test]
    fn a_walk_over_many_blocks_is_cut_into_steps() {
        let mut world = World::new(3, 1);
        let count = (super::STEP * super::STEPS) as i64 + 700;
        for number in 0..count {
            world.blocks.0.insert(block(number), replicated(2, 100, BlockState::Complete));
        }
        world.cluster.start_safe_mode(count as u64, world.now);
        world.cluster.leave_safe_mode(true);
        let mut queued = Vec::new();
        for _ in 0..2 {
            world.now = at(world.now.mono_ms + 1000);
            let mut more = world.cluster.tick(&world.blocks, world.now, &mut *world.dice).more;
            queued.push(world.cluster.queues().len());
            while more {
                more = world.cluster.go_on(&world.blocks);
                queued.push(world.cluster.queues().len());
            }
        }
        let steps = queued.windows(2).map(|two| two[1] - two[0]);
        assert_eq!(queued[0], super::STEP);
        assert!(steps.max() <= Some(super::STEP));
        assert!(queued.contains(&(super::STEP * super::STEPS)), "as many from tick to tick");
        assert_eq!(queued.last(), Some(&(count as usize)));
    }
}
