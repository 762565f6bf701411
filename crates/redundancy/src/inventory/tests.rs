//! Registration, heartbeats, liveness, reports of nodes.

use crate::fixture::*;
use crate::node::AdminState;
use crate::*;

#[test]
fn a_node_keeps_its_handle_over_a_restart() {
    let mut world = World::new(2, 2);
    world.store(block(1), replicated(2, 10, BlockState::Complete), &[0, 1]);
    let before = world.handle(0);
    let mut moved = registration(0, 1);
    moved.address.ip = "10.9.9.9".to_string();
    let handle = world.register(moved);
    assert_eq!(handle, before);
    assert_eq!(world.places(block(1)), [(0, 0), (1, 0)], "it still has what it had");
    assert_eq!(world.cluster.node(handle).rack, "/rack1");
    assert!(world.cluster.node_by_xfer("10.0.0.0", 9866).is_none());
    assert_eq!(world.cluster.node_by_xfer("10.9.9.9", 9866).unwrap().handle, handle);
}

#[test]
fn another_node_at_the_same_address_takes_its_place() {
    let mut world = World::new(2, 2);
    world.store(block(1), replicated(2, 10, BlockState::Complete), &[0, 1]);
    let new = Registration { uuid: "uuid-new".to_string(), ..registration(0, 0) };
    world.register(new);
    assert!(world.cluster.node_by_uuid("uuid-0").is_none());
    let locations = world.cluster.locations(block(1));
    assert_eq!(locations.len(), 1);
    assert_eq!(world.cluster.datanode_report(ReportKind::All).len(), 2);
}

#[test]
fn who_is_not_registered_is_told_to() {
    let mut world = World::new(1, 1);
    let answer = world.beat("nobody", heartbeat_of(9, GIB));
    assert_eq!(answer.commands, [Command::Register]);
    let nobody = NodeAddress::default();
    assert!(world.cluster.registered(&claim_of("nobody", &nobody)).is_err());
}

#[test]
fn silence_makes_a_node_stale_then_dead() {
    let mut world = World::new(3, 1);
    world.store(block(1), replicated(3, 10, BlockState::Complete), &[0, 1, 2]);
    world.run(29_000, &[2]);
    assert_eq!(world.cluster.stats(world.now).stale_nodes, 0);
    world.run(2000, &[2]);
    assert_eq!(world.cluster.stats(world.now).stale_nodes, 1);
    // 2 * 300 s + 10 * 3 s
    world.run(630_000 - 31_000, &[2]);
    assert_eq!(world.cluster.stats(world.now).dead_nodes, 0);
    world.run(3000, &[2]);
    let stats = world.cluster.stats(world.now);
    assert_eq!((stats.live_nodes, stats.dead_nodes), (2, 1));
    assert_eq!(world.places(block(1)), [(0, 0), (1, 0)]);
    assert_eq!(stats.replicated.low_redundancy, 1);
    assert_eq!(world.heartbeat(2), [Command::Register]);
    assert_eq!(world.cluster.datanode_report(ReportKind::Dead).len(), 1);
    assert_eq!(world.cluster.datanode_report(ReportKind::Live).len(), 2);

    world.register(registration(2, 0));
    world.heartbeat(2);
    let replica = ReportedReplica {
        block: world.good(block(1), 0),
        state: ReplicaState::Finalized,
        crc32c: None,
    };
    world.full_report(2, &[replica]);
    assert_eq!(world.places(block(1)), [(0, 0), (1, 0), (2, 0)]);
    assert_eq!(world.cluster.stats(world.now).replicated.low_redundancy, 0);
}

#[test]
fn a_failed_volume_loses_what_it_held() {
    let mut world = World::new(2, 1);
    world.store(block(1), replicated(2, 10, BlockState::Complete), &[0, 1]);
    let mut heartbeat = heartbeat_of(0, GIB);
    heartbeat.storages[0].state = StorageState::Failed;
    heartbeat.failed_volumes = 1;
    world.beat("uuid-0", heartbeat);
    assert_eq!(world.places(block(1)), [(1, 0)]);
    let stats = world.cluster.stats(world.now);
    assert_eq!((stats.failed_volumes, stats.replicated.highest_priority), (1, 1));
    assert_eq!(stats.usage.capacity, 100 * GIB, "a failed volume has no capacity");
}

/// Hadoop's DataNodes report a volume that is put back before a heartbeat names it, and not again for hours.
#[test]
fn a_volume_is_back_with_a_report_that_was_begun_after_its_loss() {
    let mut world = World::new(2, 1);
    let id = block(1);
    world.store(id, replicated(2, 10, BlockState::Complete), &[0, 1]);
    let before = world.report_call(0);
    let mut heartbeat = heartbeat_of(0, GIB);
    heartbeat.storages[0].uuid = "DS-other".to_string();
    world.beat("uuid-0", heartbeat);
    let (block, state) = (world.good(id, 0), ReplicaState::Finalized);
    let held = [ReportedReplica { block, state, crc32c: None }];
    let report = |world: &mut World, call: ReportCall| {
        let storage = ("DS-0", StorageType::Disk);
        world.cluster.full_report(&world.blocks, call, storage, &held, world.now);
        world.places(id)
    };
    assert_eq!(report(&mut world, before), [(1, 0)], "the heartbeat is newer");
    let after = world.report_call(0);
    assert_eq!(report(&mut world, after), [(0, 0), (1, 0)]);
    assert!(world.cluster.storage(world.storage(0)).reported);
    world.heartbeat(0);
    assert_eq!(world.places(id), [(0, 0), (1, 0)]);
}

#[test]
fn a_volume_that_is_not_named_any_more_is_gone() {
    let mut world = World::new(2, 1);
    world.store(block(1), replicated(2, 10, BlockState::Complete), &[0, 1]);
    let mut heartbeat = heartbeat_of(0, GIB);
    heartbeat.storages[0].uuid = "DS-other".to_string();
    world.beat("uuid-0", heartbeat);
    assert_eq!(world.places(block(1)), [(1, 0)]);
}

#[test]
fn the_figures_are_those_of_live_nodes_in_service() {
    let mut world = World::new(4, 2);
    let handle = world.handle(3);
    world.cluster.node_died(&world.blocks, handle);
    let handle = world.handle(2);
    world.cluster.set_admin_state(&world.blocks, handle, AdminState::DecommissionInProgress);
    let stats = world.cluster.stats(world.now);
    assert_eq!(stats.fs_stats()[..3], [200 * GIB, 100 * GIB, 100 * GIB]);
    assert_eq!((stats.live_nodes, stats.dead_nodes, stats.decommissioning_nodes), (3, 1, 1));
    assert_eq!(world.cluster.datanode_report(ReportKind::Decommissioning).len(), 1);
    assert_eq!(world.cluster.racks().len(), 2);
}

#[test]
fn readers_get_the_nearest_first_and_the_doubtful_last() {
    let mut world = World::new(6, 3);
    world.store(block(1), replicated(6, 10, BlockState::Complete), &[0, 1, 2, 3, 4, 5]);
    world.run(33_000, &[3]);
    let reader = Reader { host: "10.0.0.0", rack: None };
    let mut orders = std::collections::BTreeSet::new();
    for seed in 0..50 {
        let mut locations = world.cluster.locations(block(1));
        let mut dice = dice(seed);
        world.cluster.sort_for_reader(&mut locations, &reader, world.now, &mut dice);
        let order: Vec<usize> = locations.iter().map(|l| world.number(l.storage)).collect();
        assert_eq!(order[0], 0, "the node on the reader's host");
        assert_eq!(order[5], 3, "the stale one, though it is in the reader's rack");
        orders.insert(order);
    }
    assert!(orders.len() > 10, "equally far ones are shuffled");
    assert_eq!(ordering::rack_distance("/d1/r1", "/d1/r2"), 4);
    assert_eq!(ordering::rack_distance("/d1/r1", "/d2/r1"), 6);
}

#[test]
fn a_lifeline_keeps_a_node_alive_and_brings_it_nothing() {
    let mut world = World::new(2, 1);
    let unwanted = BlockRef { id: block(1), gs: cairn_stripe::GenerationStamp(1001), len: 1 };
    world.received(0, unwanted);
    let dead = world.cluster.config().dead_interval().as_millis() as u64;
    world.now = at(world.now.mono_ms + dead / 2);
    let heartbeat = Heartbeat { xceivers: 5, ..heartbeat_of(0, GIB) };
    let claims = [0, 1].map(|node| registration(node, 0));
    world.cluster.lifeline(&world.blocks, &claims[0].claim(), heartbeat, world.now).unwrap();
    world.now = at(world.now.mono_ms + dead / 2 + 2000);
    world.cluster.tick(&world.blocks, world.now, &mut *world.dice);
    let node = |n| world.cluster.node(world.handle(n));
    assert!(node(0).alive && !node(1).alive);
    assert_eq!(node(0).xceivers, 5);
    // The command that waits is for the next heartbeat.
    assert_eq!(world.heartbeat(0), [Command::Invalidate(vec![unwanted])]);
    // A dead node does not come back by a lifeline.
    let heartbeat = heartbeat_of(1, GIB);
    world.cluster.lifeline(&world.blocks, &claims[1].claim(), heartbeat, world.now).unwrap();
    assert!(!world.cluster.node(world.handle(1)).alive);
}

#[test]
fn figures_from_outside_can_be_of_any_size() {
    let mut world = World::new(2, 1);
    for node in 0..2 {
        let mut heartbeat = heartbeat_of(node, GIB);
        (heartbeat.cache_capacity, heartbeat.cache_used) = (u64::MAX, u64::MAX);
        heartbeat.storages[0].usage.capacity = u64::MAX;
        heartbeat.storages[0].usage.dfs_used = u64::MAX;
        (heartbeat.xceivers, heartbeat.failed_volumes) = (u32::MAX, u32::MAX);
        world.beat(&format!("uuid-{node}"), heartbeat);
    }
    let stats = world.cluster.stats(world.now);
    assert_eq!((stats.cache_capacity, stats.usage.capacity), (u64::MAX, u64::MAX));
}

#[test]
fn nobody_is_found_dead_right_after_the_namenode_itself_stood_still() {
    let mut world = World::new(2, 1);
    let (dead, recheck) = {
        let config = world.cluster.config();
        (config.dead_interval().as_millis() as u64, config.recheck_interval.as_millis() as u64)
    };
    let tick = |world: &mut World, ms: u64| {
        let last = world.now;
        world.now = at(last.mono_ms + ms);
        let was_excused = world.cluster.excuse_silence(last, world.now);
        let died = world.cluster.tick(&world.blocks, world.now, &mut *world.dice).died;
        (was_excused, died)
    };
    assert_eq!(tick(&mut world, dead + 5000), (true, vec![]));
    world.heartbeat(0);
    for _ in 0..recheck / 1000 - 1 {
        assert_eq!(tick(&mut world, 1000), (false, vec![]));
        world.heartbeat(0);
    }
    // Who does not answer by then is dead.
    let silent = world.handle(1);
    assert_eq!(tick(&mut world, 1000), (false, vec![silent]));
    // A tick that is merely late excuses nobody.
    assert_eq!(tick(&mut world, recheck), (false, vec![]));
    while world.cluster.node(world.handle(0)).alive {
        assert!(!tick(&mut world, recheck).0);
        assert!(world.now.mono_ms < 10 * dead);
    }
}
