//! Groups that end: their members have needs of their own again.

use super::*;

/// The members of a group are to have three copies each, after which it ends.
fn dissolve(world: &mut World) {
    world.blocks.3.get_mut(&HANDLE).unwrap().dissolving = true;
    for slot in 0..3 {
        let facts = world.blocks.0.get_mut(&member(slot)).unwrap();
        facts.layout = Layout::Replicated { copies: 3 };
    }
    world.cluster.block_changed(&world.blocks, HANDLE);
}

/// It has ended.
fn end(world: &mut World) {
    let group = world.blocks.3.remove(&HANDLE).unwrap();
    for slot in group.slots.iter().flatten() {
        if let Some(facts) = world.blocks.0.get_mut(&slot.id) {
            facts.group = None;
        }
    }
    world.cluster.group_ended(HANDLE, group.gs);
    for slot in group.slots.iter().flatten() {
        world.cluster.block_changed(&world.blocks, slot.id);
    }
}

fn registers_anew(world: &mut World, node: usize, block: BlockRef) {
    world.register(registration(node, node));
    world.heartbeat(node);
    let state = ReplicaState::Finalized;
    world.full_report(node, &[ReportedReplica { block, state, crc32c: None }]);
}

#[test]
fn what_a_member_has_too_much_stays_until_its_group_has_ended() {
    let mut world = settled();
    dissolve(&mut world);
    // Copies that nobody has proven, and then what was proven is so no more.
    for node in [5, 6, 7] {
        world.received(node, world.good(member(0), 0));
    }
    let block = world.good(member(0), 0);
    registers_anew(&mut world, 0, block);
    assert_eq!(deletions(&world.run(60_000, &[])), []);
    assert_eq!(world.places(member(0)).len(), 4);
    end(&mut world);
    let told = deletions(&world.run(6000, &[]));
    let of_member = told.iter().filter(|(_, block)| block.id == member(0)).count();
    assert_eq!(of_member, 1, "it is a block like any other");
}

#[test]
fn what_was_chosen_before_a_group_is_to_end_stays_too() {
    let mut world = formed();
    dissolve(&mut world);
    for slot in 0..3 {
        let block = world.good(member(slot), 0);
        registers_anew(&mut world, slot, block);
    }
    world.received(4, world.good(member(0), 0));
    assert_eq!(deletions(&world.run(60_000, &[])), []);
    assert_eq!(world.places(member(0)).len(), 4);
}

/// The replica of the first member that was encoded: its file has something else.
fn encoded_otherwise(world: &World) -> BlockRef {
    let block = world.good(member(0), 0);
    BlockRef { gs: GenerationStamp(1002), len: 1100, ..block }
}

/// A group that was taken over although the file of its first member has an older state, of which there are two replicas. The
/// second member is lost.
fn taken_over() -> World {
    let mut world = settled();
    let otherwise = encoded_otherwise(&world);
    let BlockRef { id, gs, len } = otherwise;
    let group = world.blocks.3.get_mut(&HANDLE).unwrap();
    group.slots[0] = Some(SlotFacts { id, gs, len, live: false });
    world.blocks.0.get_mut(&member(0)).unwrap().group = None;
    world.received(0, otherwise);
    for node in [5, 6] {
        world.received(node, world.good(member(0), 0));
    }
    dissolve(&mut world);
    world.cluster.block_changed(&world.blocks, member(0));
    die(&mut world, 1);
    world
}

#[test]
fn a_member_that_its_file_has_otherwise_is_read_for_the_others_and_nothing_else() {
    let mut world = taken_over();
    let commands = world.run(6000, &[1]);
    let told = rebuilds(&commands);
    let (_, work) = told.first().expect("the second member is rebuilt");
    let sources: Vec<(usize, UnitIndex)> =
        work.sources.iter().map(|(storage, unit)| (world.number(*storage), *unit)).collect();
    assert!(sources.contains(&(0, UnitIndex(0))), "as it was encoded: {sources:?}");
    assert!(sources.iter().all(|(node, unit)| unit.0 != 0 || *node == 0), "{sources:?}");
    let targets: Vec<UnitIndex> = work.targets.iter().map(|(_, unit)| *unit).collect();
    assert_eq!(targets, [UnitIndex(1)]);
    let facts = world.blocks.0[&member(1)];
    assert!(world.cluster.is_decodable(&world.blocks, member(1), &facts));
    // With one parity less as well, all that is left is needed.
    die(&mut world, 3);
    assert!(world.cluster.is_decodable(&world.blocks, member(1), &facts));
    die(&mut world, 0);
    assert!(!world.cluster.is_decodable(&world.blocks, member(1), &facts));
    assert!(rebuilds(&world.run(60_000, &[0, 1, 3])).is_empty(), "nor is it made again");
}

#[test]
fn the_replica_that_a_group_needs_is_no_bad_one_before_that_has_ended() {
    let mut world = taken_over();
    world.received(7, world.good(member(0), 0));
    let otherwise = encoded_otherwise(&world);
    let is_it = |(_, block): &(usize, BlockRef)| *block == otherwise;
    let told = deletions(&world.run(60_000, &[1]));
    assert_eq!(told.iter().find(|told| is_it(told)), None);
    end(&mut world);
    world.received(7, world.good(member(0), 0));
    world.cluster.block_changed(&world.blocks, member(0));
    let told = deletions(&world.run(60_000, &[1]));
    assert_eq!(told.iter().filter(|told| is_it(told)).count(), 1);
}

#[test]
fn a_member_that_its_file_still_writes_is_read_as_it_was_encoded_and_not_recovered_before() {
    let mut world = taken_over();
    world.deleted(5, world.good(member(0), 0));
    world.deleted(6, world.good(member(0), 0));
    world.deleted(0, encoded_otherwise(&world));
    let facts = replicated(3, 0, BlockState::UnderConstruction);
    world.blocks.0.insert(member(0), facts);
    world.received(0, encoded_otherwise(&world));
    world.cluster.block_changed(&world.blocks, HANDLE);
    die(&mut world, 3);
    let of_second = world.blocks.0[&member(1)];
    assert!(world.cluster.is_decodable(&world.blocks, member(1), &of_second));
    let new_gs = GenerationStamp(1003);
    let recovered = BlockFacts { state: BlockState::UnderRecovery, ..facts };
    world.blocks.0.insert(member(0), recovered);
    world.cluster.start_block_recovery(member(0), &recovered, new_gs, world.now);
    let is_told = |world: &mut World| {
        let told = world.run(6000, &[1, 3]);
        told.values().flatten().any(|command| matches!(command, Command::Recover(_)))
    };
    assert!(!is_told(&mut world), "it would have another stamp");
    end(&mut world);
    assert!(is_told(&mut world));
}
