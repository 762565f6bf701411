//! Which of several replicas is proven, and what that allows.

use super::*;
use crate::groups::prove::Proved;

pub(super) fn proves(commands: &BTreeMap<usize, Vec<Command>>) -> Vec<(usize, ProveOrder)> {
    let all = commands.iter().flat_map(|(node, commands)| commands.iter().map(|c| (*node, c)));
    let of = |(node, command): (usize, &Command)| match command {
        Command::Prove(orders) => orders.iter().map(|order| (node, *order)).collect(),
        _ => Vec::new(),
    };
    all.flat_map(of).collect()
}

pub(super) fn proved(world: &mut World, (node, order): (usize, ProveOrder), crc32c: Option<u32>) {
    let storage = world.cluster.storage(order.storage).uuid.clone();
    let handle = world.handle(node);
    let result = Proved { block: order.block, storage, crc32c, record: None, index: None };
    world.cluster.proved(&world.blocks, handle, &result);
}

pub(super) fn crc_of(world: &World, block: BlockRef) -> Option<u32> {
    world.blocks.unit_crc(block.id.group(), block.id.unit())
}

/// A group of which a member was rebuilt elsewhere, and came back.
fn with_one_too_many() -> World {
    let mut world = settled();
    die(&mut world, 1);
    let found = rebuilds(&world.run(6000, &[1]));
    let target = world.number(found[0].1.targets[0].0);
    world.received(target, world.good(member(1), 0));
    let back = world.good(member(1), 0);
    world.register(registration(1, 1));
    world.heartbeat(1);
    let reported = ReportedReplica { block: back, state: ReplicaState::Finalized, crc32c: None };
    world.full_report(1, &[reported]);
    world
}

#[test]
fn one_of_two_replicas_is_proven_before_the_other_goes() {
    let mut world = with_one_too_many();
    let told = proves(&world.run(6000, &[]));
    let [(node, order)] = told[..] else { panic!("{told:?}") };
    assert_eq!(order.block, world.good(member(1), 0));
    assert_eq!(world.number(order.storage), node);
    let commands = world.run(3000, &[]);
    assert_eq!((proves(&commands), deletions(&commands)), (vec![], vec![]), "it is being read");
    let crc32c = crc_of(&world, order.block);
    proved(&mut world, (node, order), crc32c);
    let gone = drop_all(&mut world, &[]);
    let [(other, block)] = gone[..] else { panic!("{gone:?}") };
    assert_eq!(block.id, member(1));
    assert_ne!(other, node);
    assert_eq!(world.places(member(1)), [(node, 0)]);
}

/// Found by simulation: the one that was proven was deleted as a bad one and rebuilt at its place, and the other went.
#[test]
fn what_is_rebuilt_where_a_proven_replica_was_is_proven_anew() {
    let mut world = with_one_too_many();
    let told = proves(&world.run(6000, &[]))[0];
    let crc32c = crc_of(&world, told.1.block);
    proved(&mut world, told, crc32c);
    assert!(world.cluster.is_proven(&world.blocks, member(1)));
    // Of another member there are too many as well, so what is proven is kept.
    let spare = (0..9).find(|node| world.places(member(2)).iter().all(|(at, _)| at != node));
    world.received(spare.expect("a node without it"), world.good(member(2), 0));
    world.deleted(told.0, told.1.block);
    world.received(told.0, told.1.block);
    assert!(!world.cluster.is_proven(&world.blocks, member(1)));
    let commands = world.run(6000, &[]);
    assert_eq!(deletions(&commands), []);
    let again = proves(&commands).into_iter().find(|(_, order)| order.block.id == member(1));
    // Nor does it count what was read before it was deleted.
    let told = again.expect("it is read anew");
    world.deleted(told.0, told.1.block);
    world.received(told.0, told.1.block);
    proved(&mut world, told, crc32c);
    assert!(!world.cluster.is_proven(&world.blocks, member(1)));
}

#[test]
fn after_a_start_of_the_namenode_replicas_are_proven_anew() {
    let mut world = formed();
    world.cluster.groups.forget_proofs();
    let mut gone = Vec::new();
    for _ in 0..20 {
        let commands = world.run(3000, &[]);
        for told in proves(&commands) {
            let crc32c = crc_of(&world, told.1.block);
            proved(&mut world, told, crc32c);
        }
        for (node, block) in deletions(&commands) {
            world.deleted(node, block);
            gone.push(block.id);
        }
    }
    assert_eq!(gone.len(), 6);
    let nodes: BTreeSet<usize> = (0..3).map(|slot| world.places(member(slot))[0].0).collect();
    assert_eq!(nodes.len(), 3, "each on a node of its own");
}

#[test]
fn a_proof_counts_for_what_was_told_alone() {
    // Its DataNode has started anew meanwhile.
    let mut world = with_one_too_many();
    let told = proves(&world.run(6000, &[]))[0];
    let crc32c = crc_of(&world, told.1.block);
    world.register(registration(told.0, told.0));
    proved(&mut world, told, crc32c);
    assert!(!world.cluster.is_proven(&world.blocks, member(1)));
    // It could not be read: again, when its time is over.
    let mut world = with_one_too_many();
    let told = proves(&world.run(6000, &[]))[0];
    proved(&mut world, told, None);
    assert_eq!(proves(&world.run(3000, &[])), []);
    let again = *proves(&world.run(700_000, &[])).last().expect("it is read again");
    // Other bytes: it is the one that goes.
    let bad = crc_of(&world, again.1.block).map(|crc32c| crc32c ^ 1);
    proved(&mut world, again, bad);
    assert!(!world.cluster.is_proven(&world.blocks, member(1)));
    let left = world.places(member(1));
    assert_eq!(left.len(), 1, "the bad one does not count: {left:?}");
    assert_ne!(left[0].0, again.0);
}

#[test]
fn a_parity_that_came_back_is_proven_as_members_are() {
    let mut world = settled();
    die(&mut world, 4);
    let found = rebuilds(&world.run(6000, &[4]));
    let target = world.number(found[0].1.targets[0].0);
    world.received_with_crc(target, parity(4), Some(PARITY_CRC));
    world.register(registration(4, 4));
    world.heartbeat(4);
    let reported =
        ReportedReplica { block: parity(4), state: ReplicaState::Finalized, crc32c: None };
    world.full_report(4, &[reported]);
    let told = proves(&world.run(6000, &[]));
    let [(node, order)] = told[..] else { panic!("{told:?}") };
    assert_eq!(order.block, parity(4));
    proved(&mut world, (node, order), Some(PARITY_CRC));
    assert_eq!(drop_all(&mut world, &[]).len(), 1);
}
