//! A look at a part of what is known at a time, for clusters that are too large to look at as a whole: what does not fit
//! together is to be found before somebody acts on it.

use crate::cluster::Cluster;
use crate::places::map::CHUNK;
use cairn_stripe::BlockId;

/// Blocks that go with one node, or one block with work, in a look.
const BLOCKS_PER_OTHER: usize = 32;

/// Where the next look begins: among the places of blocks, what is known of blocks besides, the blocks with work under
/// way, those that are queued, the nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    places: Option<i64>,
    sides: Option<BlockId>,
    work: Option<BlockId>,
    queued: Option<BlockId>,
    nodes: Option<usize>,
}

impl Cluster {
    /// As [`Cluster::check_invariants`], of about so many blocks, from where the last look has ended: all that is known of a
    /// small cluster, and what can be told from a part of a large one. Returns where the next look begins.
    pub fn check_some(&self, from: Sample, blocks: usize) -> Sample {
        let chunks = (blocks / CHUNK).max(1);
        if self.blocks.chunk_count() <= chunks {
            self.check_invariants();
            return Sample::default();
        }
        let (few, first) = ((blocks / BLOCKS_PER_OTHER).max(1), BlockId(i64::MIN));
        let has_reported = |storage| self.storage(storage).reported;
        Sample {
            places: self.blocks.check_some(from.places.unwrap_or(i64::MIN), chunks, has_reported),
            sides: self.blocks.check_some_sides(from.sides.unwrap_or(first), few),
            work: self.work.check_some(from.work.unwrap_or(first), few),
            queued: self.low.queues().check_some(from.queued.unwrap_or(first), few),
            nodes: self.nodes.check_some(from.nodes.unwrap_or(0), few),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{World, block, group, registration, replicated, rs};
    use crate::places::bad::Bad;
    use crate::{BlockState, ReplicaState, ReportedReplica};
    use std::panic::{AssertUnwindSafe, catch_unwind};

    /// Blocks on one node, of which so many are looked at in one go.
    const COUNT: i64 = 1000;
    const LOOK: usize = 2 * CHUNK;

    fn world() -> World {
        let mut world = World::new(70, 2);
        for number in 1..=COUNT {
            let id = if number % 2 == 0 { block(number) } else { group(number) };
            let facts = match id.is_striped() {
                true => rs(2, 1, 4096, BlockState::Complete),
                false => replicated(1, 7, BlockState::Complete),
            };
            world.blocks.0.insert(id, facts);
        }
        let ids: Vec<BlockId> = world.blocks.0.keys().copied().collect();
        let replicas = ids.iter().map(|id| ReportedReplica {
            block: world.good(*id, 0),
            state: ReplicaState::Finalized,
            crc32c: None,
        });
        let replicas: Vec<_> = replicas.collect();
        world.full_report(0, &replicas);
        world
    }

    /// Looks until everything was looked at; how often that was.
    fn walk(cluster: &Cluster) -> usize {
        let (mut sample, mut looks) = (Sample::default(), 0);
        loop {
            sample = cluster.check_some(sample, LOOK);
            looks += 1;
            if sample.places.is_none() {
                return looks;
            }
        }
    }

    #[test]
    fn a_mistake_anywhere_is_found_by_one_walk() {
        let mut world = world();
        let chunks = world.cluster.blocks.chunk_count();
        assert!(chunks > COUNT as usize / CHUNK);
        assert_eq!(walk(&world.cluster), chunks.div_ceil(LOOK / CHUNK));
        let storage = world.storage(0);
        for number in [1, 2, COUNT / 2, COUNT - 1, COUNT] {
            let id = if number % 2 == 0 { block(number) } else { group(number) };
            let bad = Bad { block: world.good(id, 0), stale: false, crc32c: None };
            world.cluster.blocks.mark_bad(storage, bad);
            walk(&world.cluster);
            world.cluster.blocks.lose_marks(id.group());
            let found = catch_unwind(AssertUnwindSafe(|| walk(&world.cluster)));
            assert!(found.is_err(), "{id}");
            world.cluster.blocks.mark_bad(storage, bad);
        }
    }

    /// What is damaged, and what its check says of that.
    type Damage = (fn(&mut Cluster), &'static str);

    const DAMAGES: [Damage; 12] = [
        (|cluster| cluster.nodes.damage(), "how wide the cluster is"),
        (|cluster| cluster.blocks.damage(), "places that are chosen for deletion"),
        (|cluster| cluster.safe_mode.damage(), "nothing is queued after the start"),
        (|cluster| cluster.low.damage(), "what is queued, counted"),
        (|cluster| cluster.work.damage(), "will never be told to bring"),
        (|cluster| cluster.walks.damage(), "steps of walks"),
        (|cluster| cluster.leaving.damage(), "leaves, and is followed"),
        (|cluster| cluster.scrubs.damage(), "a walk that never began"),
        (|cluster| cluster.groups.damage(), "groups of which replicas go"),
        (|cluster| cluster.caching.damage(), "is to come to where it is"),
        (|cluster| cluster.slow.damage(), "slow, and nobody says so"),
        (|cluster| cluster.reports.damage(), "were given out"),
    ];

    #[test]
    fn each_part_notices_that_it_is_damaged() {
        for (damage, words) in DAMAGES {
            let mut world = World::new(3, 1);
            world.cluster.check_some(Sample::default(), LOOK);
            damage(&mut world.cluster);
            let look = || world.cluster.check_some(Sample::default(), LOOK);
            let found = catch_unwind(AssertUnwindSafe(look)).expect_err(words);
            let literal = || found.downcast_ref::<&str>().map(ToString::to_string);
            let said = found.downcast_ref::<String>().cloned().or_else(literal);
            assert!(said.as_ref().is_some_and(|said| said.contains(words)), "{words}: {said:?}");
        }
    }

    #[test]
    fn nodes_are_looked_at_in_turn_and_small_clusters_as_a_whole() {
        let mut world = world();
        let handle = world.handle(69);
        world.cluster.nodes.node_mut(handle).uuid = "another".to_string();
        let cluster = &world.cluster;
        let mut sample = Sample::default();
        let looks = (0..100).take_while(|_| {
            let look = || cluster.check_some(sample, LOOK);
            catch_unwind(AssertUnwindSafe(look)).is_ok_and(|next| {
                sample = next;
                true
            })
        });
        assert_eq!(looks.count(), 69 / (LOOK / BLOCKS_PER_OTHER));
        let mut small = World::new(3, 1);
        assert_eq!(small.cluster.check_some(sample, LOOK), Sample::default());
        small.register(registration(3, 1));
        let handle = small.handle(3);
        small.cluster.nodes.node_mut(handle).uuid = "another".to_string();
        let look = || small.cluster.check_some(Sample::default(), LOOK);
        assert!(catch_unwind(AssertUnwindSafe(look)).is_err());
    }
}
