//! What was copied so that a block is better spread stays: a copy that is deleted again is made for ever.

use super::*;

/// Heartbeats of all nodes, of which those in `flash` have flash storage and the others disks. Returns who is
/// told to delete something.
fn told_by_heartbeats(world: &mut World, flash: &[usize]) -> Vec<usize> {
    let mut told = Vec::new();
    for node in 0..world.cluster.nodes.all().len() {
        let mut heartbeat = heartbeat_of(node, 50 * GIB);
        if flash.contains(&node) {
            heartbeat.storages[0].storage_type = StorageType::Ssd;
        }
        let uuid = format!("uuid-{node}");
        let answer = world.beat(&uuid, heartbeat);
        let deletes = |command: &Command| matches!(command, Command::Invalidate(_));
        told.extend(answer.commands.iter().any(deletes).then_some(node));
    }
    told
}

/// Found by simulation: a full report told of the unit while it was awaited, when the group waits for what
/// comes; when it was told of once more, nobody looked at the group again.
#[test]
fn a_group_that_was_whole_before_its_unit_was_told_of_is_spread() {
    let mut world = World::with_racks(&[0, 0, 0, 1]);
    let id = group(1);
    world.store(id, rs(2, 1, 5000, LIVE), &[0, 1]);
    let (storage, rebuilt) = (world.storage(2), world.good(id, 2));
    let (unit, now) = (rebuilt.id.unit(), world.now);
    world.cluster.work.expect(id, vec![(storage, unit)], None, now);
    world.full_report(2, &[finalized(rebuilt)]);
    assert_eq!(world.cluster.queues().priority(id), None, "something comes");
    world.received(2, rebuilt);
    let spread = crate::queue::Priority::BadlyDistributed;
    assert_eq!(world.cluster.queues().priority(id), Some(spread));
}

/// Has a good replica or unit on a node, whose storage keeps its type. Returns who is told to delete something.
fn arrived(world: &mut World, node: usize, block: BlockRef, flash: &[usize]) -> Vec<usize> {
    let kind = ReplicaEventKind::Received { delete_hint: None };
    let event = ReplicaEvent { block, kind, crc32c: None };
    let storage_type = if flash.contains(&node) { StorageType::Ssd } else { StorageType::Disk };
    let (handle, uuid) = (world.handle(node), storage_uuid(node));
    let storage = (uuid.as_str(), storage_type);
    world.cluster.incremental_report(&world.blocks, handle, storage, &[event]);
    told_by_heartbeats(world, flash)
}

#[test]
fn a_copy_on_another_rack_stays_though_its_storage_is_of_a_fallback_type() {
    let flash = [0, 1, 2, 3, 4];
    let racks = [0, 0, 1, 2, 3, 4];
    for (id, facts, moved) in
        [(block(1), replicated(2, 100, LIVE), 0), (group(1), rs(3, 2, 5000, LIVE), 1)]
    {
        let mut world = World::with_racks(&racks);
        told_by_heartbeats(&mut world, &flash);
        world.blocks.2.insert(id, StoragePolicy::by_name("ALL_SSD").unwrap());
        world.blocks.0.insert(id, facts);
        let nodes: &[usize] = if id.is_striped() { &[0, 1, 2, 3, 4] } else { &[0, 1] };
        for (unit, node) in nodes.iter().enumerate() {
            let own = world.good(id, unit as u8);
            assert_eq!(arrived(&mut world, *node, own, &flash), []);
        }
        let copy = world.good(id, moved);
        let told = arrived(&mut world, 5, copy, &flash);
        assert!(told.len() == 1 && told[0] < 2, "{id}: {told:?}");
    }
}

#[test]
fn a_unit_that_got_a_node_of_its_own_stays_there_whatever_its_storage_is() {
    let flash = [0, 1, 2, 3];
    let mut world = World::with_racks(&[0; 5]);
    told_by_heartbeats(&mut world, &flash);
    let id = group(1);
    world.blocks.2.insert(id, StoragePolicy::by_name("ALL_SSD").unwrap());
    world.blocks.0.insert(id, rs(3, 2, 5000, LIVE));
    for (unit, node) in [0, 1, 2, 3, 3].into_iter().enumerate() {
        let own = world.good(id, unit as u8);
        assert_eq!(arrived(&mut world, node, own, &flash), []);
    }
    let copy = world.good(id, 4);
    assert_eq!(arrived(&mut world, 4, copy, &flash), [3]);
}

#[test]
fn a_live_node_that_registers_in_another_rack_has_its_blocks_spread_anew() {
    let mut world = World::with_racks(&[0, 1, 1]);
    let id = block(1);
    world.store(id, replicated(2, 100, LIVE), &[0, 1]);
    world.run(9000, &[]);
    world.register(registration(1, 0));
    let own = finalized(world.good(id, 0));
    world.full_report(1, &[own]);
    let commands = world.run(9000, &[]);
    let copies = commands.values().flatten().filter_map(|command| match command {
        Command::Transfer(works) => Some(works.len()),
        _ => None,
    });
    assert_eq!(copies.sum::<usize>(), 1);
}
