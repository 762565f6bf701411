//! Walks over many blocks, a step at a time: others get the lock between the steps.

use crate::block::BlockLookup;
use crate::cluster::Cluster;

/// Blocks that a step looks at in each walk.
const STEP: usize = 500;

impl Cluster {
    /// The next step of all walks. Returns whether another is to follow.
    pub(crate) fn look_at_blocks(&mut self, lookup: &dyn BlockLookup) -> bool {
        if !self.safe_mode.is_queueing() || !self.walks.take_step() {
            return false;
        }
        if let Some(after) = self.walks.scan().next_step() {
            let blocks = lookup.blocks_after(after, STEP);
            self.walks.scan().went_to(blocks.last().map(|(id, _)| *id));
            for (id, facts) in blocks {
                self.check_against(lookup, id, Some(facts));
            }
        }
        if let Some(after) = self.walks.sharing().next_step() {
            let groups = self.low.next_sharing(after, STEP);
            self.walks.sharing().went_to(groups.last().copied());
            for id in groups {
                self.check_redundancy(lookup, id);
            }
        }
        if let Some(after) = self.walks.recheck().next_step() {
            let blocks = self.blocks.take_postponed(after, STEP);
            self.walks.recheck().went_to(blocks.last().copied());
            for id in blocks {
                self.check_redundancy(lookup, id);
            }
        }
        self.walks.go_on()
    }
}

#[cfg(test)]
mod tests {
    use crate::fixture::*;
    use crate::work::walks::STEPS;
    use crate::*;

    /// Who has the lock for all of them would hold up every call meanwhile.
    #[test]
    fn a_walk_over_many_blocks_is_cut_into_steps() {
        let mut world = World::new(3, 1);
        let count = (super::STEP * STEPS) as i64 + 700;
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
        assert!(queued.contains(&(super::STEP * STEPS)), "as many from tick to tick");
        assert_eq!(queued.last(), Some(&(count as usize)));
    }
}
