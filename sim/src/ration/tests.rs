//! What blocks bear that are being written.

use crate::model::BlockModel;
use crate::options::Options;
use crate::parts::Right;
use crate::tasks::Task;
use crate::world::World;
use cairn_namespace::BlockState;
use cairn_redundancy::BlockRef;
use cairn_stripe::{BlockId, GenerationStamp, UnitIndex};
use std::collections::BTreeSet;

/// Lets things happen until a block is being written on two nodes.
fn until_two_write(world: &mut World<'_>) -> (BlockId, usize, usize) {
    loop {
        assert!(world.happens_meanwhile(), "nothing was written");
        for info in world.name_node.all_blocks().iter() {
            let (id, gs) = (info.block.id, info.block.gs);
            let nodes = world.nodes.iter().filter(|node| {
                node.replicas.get(&id).is_some_and(|stored| stored.replica.gs() == gs)
            });
            let nodes: Vec<usize> = nodes.map(|node| node.number).collect();
            if let (BlockState::UnderConstruction, [a, b]) = (info.block.state, &nodes[..]) {
                return (id, *a, *b);
            }
        }
    }
}

/// Of one of two, what the writer goes on with alone, a power cut may take only what was not synced.
#[test]
fn a_power_cut_takes_no_more_than_the_pipeline_bears_that_comes_next() {
    for goes_on_alone in [false, true] {
        let mut right = Right;
        let options = Options { faults: 0, ..Options::default() };
        let mut world = World::new(3, options, &mut right);
        let (id, a, _) = until_two_write(&mut world);
        world.model.blocks.insert(id, BlockModel::new(1, BTreeSet::new()));
        let (gs, part) = (world.name_node.block(id).unwrap().block.gs, (a, UnitIndex(0)));
        if goes_on_alone {
            world.pipelines.insert((id, GenerationStamp(gs.0 + 1)), vec![part]);
        }
        world.tear(&[(a, id)]);
        let block = &world.model.blocks[&id];
        let (failed, torn) = match goes_on_alone {
            true => (vec![], vec![(part, gs)]),
            false => (vec![part], vec![]),
        };
        assert_eq!(block.exposed, BTreeSet::from_iter(failed));
        assert_eq!(block.torn, BTreeSet::from_iter(torn));
    }
}

/// The NameNode falls before it has shown the end of the file that its log has.
#[test]
fn what_is_closed_in_the_log_only_when_it_is_torn_is_not_mended_by_that() {
    let mut right = Right;
    let options = Options { faults: 0, ..Options::default() };
    let mut world = World::new(3, options, &mut right);
    let (id, a, b) = until_two_write(&mut world);
    let gs = world.name_node.block(id).unwrap().block.gs;
    let parts = vec![(a, UnitIndex(0)), (b, UnitIndex(0))];
    for node in [a, b] {
        world.nodes[node].finalize(id, gs).unwrap();
    }
    world.model.blocks.insert(id, BlockModel::new(1, BTreeSet::new()));
    world.tear(&[(a, id), (b, id)]);
    world.pipelines.insert((id, gs), parts);
    world.rests_on_pipeline(id, gs);
    assert_eq!(world.model.blocks[&id].torn.len(), 2);
}

/// Lets things happen until a contiguous group rests on a replica that was proven.
fn until_one_is_proven(world: &mut World<'_>) -> (usize, BlockId) {
    loop {
        assert!(world.happens_meanwhile(), "nothing was proven");
        let is_member = |id: BlockId| {
            let of_group = world.name_node.handle_of(id);
            of_group.is_some_and(|of_group| world.name_node.is_formed(of_group.0))
        };
        let mut proven = world.model.proofs.iter().map(|(proven, proof)| (*proven, proof.gs));
        let found =
            proven.find(|((node, id), gs)| is_member(*id) && world.nodes[*node].holds(*id, *gs));
        if let Some((proven, _)) = found {
            return proven;
        }
    }
}

/// It is deleted, and an older one whose deletion a power cut has undone is where it was; or it has another stamp; or its node
/// has lost it when its disks were restored as they were before.
#[test]
fn a_group_rests_on_the_replica_that_was_proven_and_no_other_one_there() {
    for what in ["nothing", "deleted", "other stamp", "restored"] {
        let mut right = Right;
        let options = Options { faults: 0, groups: true, ..Options::default() };
        let mut world = World::new(3, options, &mut right);
        let (node, id) = until_one_is_proven(&mut world);
        let stored = world.nodes[node].replicas[&id].clone();
        let block = BlockRef { id, gs: stored.replica.gs(), len: stored.data.len() as u64 };
        if what == "deleted" {
            let registration = world.nodes[node].registrations;
            world.work(node, Task::Invalidate { block, registration, since_ms: world.now_ms });
            assert!(world.nodes[node].replicas.insert(id, stored).is_none());
        }
        if what == "other stamp" {
            world.nodes[node].append(block, GenerationStamp(block.gs.0 + 1)).unwrap();
        }
        if what == "restored" {
            world.note_restored(node, &[id]);
        }
        world.tear(&[(node, id)]);
        assert_eq!(world.report.violation.is_some(), what == "nothing", "{what}");
    }
}

/// What was synced of a block is kept, also while it is as long as it will be if the one behind it stays.
#[test]
fn what_is_torn_is_free_to_be_destroyed_no_more() {
    let mut right = Right;
    let options = Options { faults: 0, ..Options::default() };
    let mut world = World::new(3, options, &mut right);
    let (id, a, _) = until_two_write(&mut world);
    let (gs, part) = (world.name_node.block(id).unwrap().block.gs, (a, UnitIndex(0)));
    for (torn, is_free) in [(BTreeSet::new(), true), (BTreeSet::from([(part, gs)]), false)] {
        let block = BlockModel { tolerance: 0, exposed: BTreeSet::from([part]), torn };
        world.model.blocks.insert(id, block);
        assert_eq!(world.bears_all(a, [id]), is_free);
    }
}

/// The power tears all that a block was on; the log has it reopened, and a recovery cuts it.
#[test]
fn what_is_reopened_when_it_is_torn_is_kept_as_far_as_it_was_synced() {
    for failed in [0, 1] {
        let mut right = Right;
        let options = Options { faults: 0, ..Options::default() };
        let mut world = World::new(3, options, &mut right);
        let (id, a, _) = until_two_write(&mut world);
        let file = world.name_node.block(id).unwrap().block.file;
        let model = world.model.files.get_mut(&file).unwrap();
        (model.acked, model.durable) = (9, 5);
        let path = model.path.clone();
        let exposed: BTreeSet<_> = [(a, UnitIndex(0))].into_iter().take(failed).collect();
        world.model.blocks.insert(id, BlockModel::new(0, exposed));
        world.note_reopened(&path);
        assert_eq!(world.model.files[&file].acked, [9, 5][failed]);
    }
}
