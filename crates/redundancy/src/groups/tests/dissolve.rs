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
