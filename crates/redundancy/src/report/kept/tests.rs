//! What was told before a NameNode led counts at once, but for deletions.

use crate::fixture::*;
use crate::*;
use std::time::Duration;

const LIVE: BlockState = BlockState::Complete;

/// A NameNode that begins to lead with what `nodes` nodes have told before: each has a block of one copy.
fn taken_over(nodes: usize) -> World {
    let mut world = World::new(0, 1);
    let (safe_mode_threshold, safe_mode_extension) = (1.0, Duration::ZERO);
    world.cluster =
        Cluster::new(Config { safe_mode_threshold, safe_mode_extension, ..Config::default() });
    world.blocks.0.insert(block(1), replicated(1, 100, LIVE));
    world.cluster.begin_to_lead(1 << 32);
    world.cluster.start_safe_mode(1, world.now);
    for node in 0..nodes {
        world.register(registration(node, 0));
        world.heartbeat(node);
        let (call, uuid) =
            (world.cluster.begin_kept_report(world.handle(node)), storage_uuid(node));
        let replica = ReportedReplica {
            block: world.good(block(1), 0),
            state: ReplicaState::Finalized,
            crc32c: None,
        };
        let storage = (uuid.as_str(), StorageType::Disk);
        world.cluster.full_report(&world.blocks, call, storage, &[replica], world.now);
        world.cluster.check_invariants();
    }
    world
}

/// Whether somebody is told to delete a replica.
fn deletes(world: &mut World, ms: u64) -> bool {
    let commands = world.run(ms, &[]).into_values().flatten();
    commands.into_iter().any(|command| matches!(command, Command::Invalidate(_)))
}

/// The node reports what it has, with a lease that it was granted before or has got since.
fn reports(world: &mut World, node: usize, lease: u64) {
    let handle = world.handle(node);
    let call = world.cluster.begin_report_call(handle, lease, world.now).unwrap();
    let (block, state) = (world.good(block(1), 0), ReplicaState::Finalized);
    let replica = ReportedReplica { block, state, crc32c: None };
    let uuid = storage_uuid(node);
    let storage = (uuid.as_str(), StorageType::Disk);
    world.cluster.full_report(&world.blocks, call, storage, &[replica], world.now);
    world.cluster.end_report_call(call, true).unwrap();
}

fn asks(world: &mut World, node: usize) -> HeartbeatAnswer {
    let heartbeat = Heartbeat { wants_report_lease: true, ..heartbeat_of(node, 50 * GIB) };
    world.beat(&format!("uuid-{node}"), heartbeat)
}

#[test]
fn what_was_kept_is_known_at_once_and_ends_safe_mode() {
    let mut world = taken_over(1);
    assert_eq!(world.places(block(1)), [(0, 0)]);
    assert!(world.cluster.safe_mode().is_on());
    assert!(world.cluster.look_at_start(world.now) && !world.cluster.safe_mode().is_on());
    // One that has less than the threshold stays in it.
    let mut empty = taken_over(0);
    assert!(!empty.cluster.look_at_start(empty.now) && empty.cluster.safe_mode().is_on());
}

/// Another leader may have had one of two deleted that both are listed here: were the other one chosen now, none was left.
#[test]
fn nothing_is_deleted_before_those_who_have_it_have_reported_to_who_leads() {
    let mut world = taken_over(2);
    world.cluster.look_at_start(world.now);
    // Reports that were on their way are no proof.
    for node in 0..2 {
        reports(&mut world, node, 0);
    }
    assert!(!deletes(&mut world, 6_000));
    let lease = asks(&mut world, 0).report_lease.unwrap();
    reports(&mut world, 0, lease);
    assert!(!deletes(&mut world, 6_000));
    let lease = asks(&mut world, 1).report_lease.unwrap();
    reports(&mut world, 1, lease);
    assert!(deletes(&mut world, 60_000));
}

#[test]
fn a_copy_is_made_of_what_was_kept() {
    let mut world = taken_over(1);
    world.register(registration(7, 0));
    world.blocks.0.insert(block(1), replicated(2, 100, LIVE));
    // A node with no blocks, that a copy may go to.
    world.beat("uuid-7", heartbeat_of(7, 50 * GIB));
    world.cluster.look_at_start(world.now);
    let mut copies = 0;
    for _ in 0..20 {
        world.now = at(world.now.mono_ms + 1000);
        world.cluster.tick(&world.blocks, world.now, &mut *world.dice);
        let commands = asks(&mut world, 0).commands;
        world.beat("uuid-7", heartbeat_of(7, 50 * GIB));
        copies += commands.iter().filter(|c| matches!(c, Command::Transfer(_))).count();
    }
    assert_eq!(copies, 1);
}

#[test]
fn who_does_not_report_by_itself_is_asked_and_not_all_at_once() {
    let mut world = taken_over(3);
    let asked = |world: &mut World, node: usize| world.heartbeat(node).contains(&Command::Register);
    for _ in 0..2 {
        world.now = at(world.now.mono_ms + 3000);
        assert!((0..3).all(|node| !asked(&mut world, node)));
    }
    world.now = at(world.now.mono_ms + 3000);
    // This one is about to.
    assert!(asks(&mut world, 0).report_lease.is_some());
    assert!(asked(&mut world, 1) && !asked(&mut world, 2), "one at a time");
    world.now = at(world.now.mono_ms + 500);
    assert!(asked(&mut world, 2));
    // It registers, reports as any, and is not asked again.
    world.register(registration(2, 0));
    for _ in 0..5 {
        world.now = at(world.now.mono_ms + 3000);
        assert!(!asked(&mut world, 2));
    }
}
