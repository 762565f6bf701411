//! What was told before a NameNode led counts at once, but for deletions.

use crate::fixture::*;
use crate::*;
use cairn_stripe::{BlockId, GenerationStamp};
use std::time::Duration;

const LIVE: BlockState = BlockState::Complete;

fn config() -> Config {
    let (safe_mode_threshold, safe_mode_extension) = (1.0, Duration::ZERO);
    Config { safe_mode_threshold, safe_mode_extension, ..Config::default() }
}

/// What `nodes` nodes have told before, each that it has those blocks.
fn kept(world: &World, nodes: usize, blocks: &[BlockId]) -> Kept {
    let mut standby = Standby::new(&world.cluster.config);
    for node in 0..nodes {
        let (registration, uuid) = (registration(node, 0), storage_uuid(node));
        standby.register(registration.clone(), world.now);
        standby.heartbeat(&registration.claim(), heartbeat_of(node, 50 * GIB), world.now);
        let replica = |id: &BlockId| {
            let (block, state) = (world.good(*id, 0), ReplicaState::Finalized);
            ReportedReplica { block, state, crc32c: None }
        };
        let list = vec![(uuid, StorageType::Disk, blocks.iter().map(replica).collect())];
        standby.full_report(&registration.claim(), (0, true), list, world.now).unwrap();
    }
    standby.hand_over(world.now, u64::MAX)
}

/// A NameNode that begins to lead with what `nodes` nodes have told before: each has those blocks, of one copy.
fn begun(config: Config, nodes: usize, blocks: &[BlockId], is_enough: bool) -> World {
    let mut world = World::new(0, 1);
    world.cluster = Cluster::new(config);
    for id in blocks {
        world.blocks.0.insert(*id, replicated(1, 100, LIVE));
    }
    world.cluster.begin_to_lead(1 << 32);
    world.cluster.start_safe_mode(blocks.len() as u64, world.now);
    let kept = kept(&world, nodes, blocks);
    for node in 0..nodes {
        world.register(registration(node, 0));
        world.heartbeat(node);
    }
    world.cluster.take_over(kept, is_enough);
    world.cluster.check_invariants();
    world
}

/// Takes all over that is left. Returns whether safe mode has ended by that.
fn finish(world: &mut World) -> bool {
    let mut changes = Changes::default();
    while world.cluster.take_over_step(&world.blocks, &mut changes) {
        world.cluster.check_invariants();
    }
    let (has_ended, _) = world.cluster.end_taking_over(world.now);
    world.cluster.check_invariants();
    has_ended
}

/// The same, when all of it is taken over.
fn taken_over(nodes: usize) -> World {
    let mut world = begun(config(), nodes, &[block(1)], true);
    finish(&mut world);
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
fn changes_are_served_before_all_is_taken_over_and_no_extension_is_waited_for() {
    let extended = Config { safe_mode_extension: Duration::from_secs(30), ..config() };
    let blocks = [block(1), block(2)];
    let mut world = begun(extended.clone(), 1, &blocks, true);
    let safe_mode = world.cluster.safe_mode();
    assert!(!safe_mode.is_on() && safe_mode.has_enough());
    assert!(safe_mode.holds_work() && !safe_mode.is_queueing());
    assert_eq!(world.places(block(1)), []);
    world.cluster.settle(&world.blocks, &[block(1)]);
    assert_eq!((world.places(block(1)), world.places(block(2))), (vec![(0, 0)], vec![]));
    assert!(finish(&mut world) && !world.cluster.safe_mode().holds_work());
    assert_eq!(world.places(block(2)), [(0, 0)]);
    // What was not enough to lead with is waited for as after a start.
    let mut world = begun(extended, 1, &blocks, false);
    assert!(world.cluster.safe_mode().is_on() && !world.cluster.safe_mode().has_enough());
    assert!(!finish(&mut world));
    assert_eq!(world.cluster.safe_mode().status(), SafeModeStatus::Extension);
}

#[test]
fn what_is_found_to_be_too_little_in_the_end_turns_safe_mode_on() {
    let mut world = begun(config(), 0, &[block(1)], true);
    assert!(!world.cluster.safe_mode().is_on());
    assert!(!finish(&mut world) && world.cluster.safe_mode().is_on());
    // An administrator may want it off before that.
    let mut world = begun(config(), 1, &[block(1)], false);
    assert!(world.cluster.leave_safe_mode(false) && world.cluster.safe_mode().holds_work());
    assert!(finish(&mut world) && !world.cluster.safe_mode().holds_work());
}

/// Blocks that go while others are taken over are not waited for.
#[test]
fn what_is_deleted_and_written_meanwhile_is_counted() {
    let blocks = [block(1), block(2), block(3)];
    let mut world = begun(config(), 1, &blocks, true);
    world.cluster.settle(&world.blocks, &[block(1)]);
    for id in &blocks[..2] {
        world.blocks.0.remove(id);
        world.cluster.block_removed(*id, world.good(block(3), 0).gs);
    }
    let new = block(9);
    world.blocks.0.insert(new, replicated(1, 100, BlockState::UnderConstruction));
    world.cluster.block_allocated(new, world.good(new, 0).gs, &[]);
    world.received(0, world.good(new, 0));
    world.blocks.0.insert(new, replicated(1, 100, LIVE));
    world.cluster.block_completed(&world.blocks, new);
    assert!(finish(&mut world));
    assert_eq!(world.cluster.safe_mode().block_counts(), (2, 2));
    // What was kept of one that is gone is deleted when its node has reported to who leads.
    assert_eq!(world.places(block(2)), []);
}

#[test]
fn nothing_is_mended_before_all_is_taken_over() {
    let mut world = begun(config(), 1, &[block(1), block(2)], true);
    // A node with no blocks, that a copy may go to.
    world.register(registration(1, 0));
    world.heartbeat(1);
    world.blocks.0.insert(block(1), replicated(2, 100, LIVE));
    world.cluster.block_changed(&world.blocks, block(1));
    assert_eq!(copies(&mut world, 1), 0);
    assert!(world.cluster.queues().priority(block(1)).is_none());
    finish(&mut world);
    assert_eq!(copies(&mut world, 1), 1);
}

/// Whoever waits for the lease of a dead writer does not wait for all blocks.
#[test]
fn what_is_still_written_is_recovered_before_all_is_taken_over() {
    let mut world = begun(config(), 1, &[block(1)], true);
    let open = block(9);
    let facts = replicated(1, 100, BlockState::UnderConstruction);
    world.blocks.0.insert(open, facts);
    let storage = world.cluster.node(world.handle(0)).storages[0];
    world.cluster.block_allocated(open, facts.gs, &[Some(storage)]);
    let new_gs = GenerationStamp(facts.gs.0 + 1);
    assert!(world.cluster.start_block_recovery(open, &facts, new_gs, world.now));
    world.cluster.enter_safe_mode();
    assert_eq!(asks(&mut world, 0).commands, []);
    world.cluster.leave_safe_mode(false);
    let commands = asks(&mut world, 0).commands;
    assert!(matches!(commands[..], [Command::Recover(_)]), "{commands:?}");
    assert!(world.cluster.is_taking_over());
}

/// A block that is opened again before its places are known has them as they were.
#[test]
fn a_block_that_is_opened_again_is_settled_by_what_it_was() {
    let mut world = begun(config(), 1, &[block(1)], true);
    let before = world.blocks.0[&block(1)];
    let opened = BlockFacts {
        gs: GenerationStamp(before.gs.0 + 1),
        state: BlockState::UnderConstruction,
        ..before
    };
    world.blocks.0.insert(block(1), opened);
    world.cluster.settle_before(&world.blocks, block(1), before);
    world.cluster.block_reopened(block(1), &before);
    assert_eq!(world.cluster.pipeline(block(1)).len(), 1);
}

#[test]
fn what_was_found_to_be_bad_is_so_when_it_is_taken_over() {
    for settles in [false, true] {
        let mut world = World::new(0, 1);
        world.cluster = Cluster::new(config());
        world.blocks.0.insert(block(1), replicated(1, 100, LIVE));
        let mut standby = Standby::new(&config());
        let node = registration(0, 0);
        standby.register(node.clone(), world.now);
        let event = |kind| ReplicaEvent { block: world.good(block(1), 0), kind, crc32c: None };
        let told = event(ReplicaEventKind::Received { delete_hint: None });
        let uuid = storage_uuid(0);
        let storage = (uuid.as_str(), StorageType::Disk);
        standby.incremental_report(&node.claim(), storage, &[told]).unwrap();
        standby.bad(&node.claim(), "", world.good(block(1), 0));
        world.register(node);
        world.heartbeat(0);
        world.cluster.take_over(standby.hand_over(world.now, u64::MAX), true);
        if settles {
            world.cluster.settle(&world.blocks, &[block(1)]);
            assert!(world.cluster.locations(block(1))[0].corrupt);
        }
        finish(&mut world);
        assert!(world.cluster.locations(block(1))[0].corrupt);
    }
}

/// What a node has told is known when it restarts meanwhile, and forgotten when it dies.
#[test]
fn a_node_that_registers_again_keeps_what_is_not_taken_over() {
    let mut world = begun(config(), 2, &[block(1)], true);
    world.register(registration(0, 0));
    world.heartbeat(0);
    let dead = world.handle(1);
    world.cluster.node_died(&world.blocks, dead);
    finish(&mut world);
    assert_eq!(world.places(block(1)), [(0, 0)]);
}

/// A report that comes meanwhile is newer than what was kept.
#[test]
fn a_full_report_comes_after_what_was_kept() {
    let mut world = begun(config(), 1, &[block(1), block(2)], true);
    let lease = asks(&mut world, 0).report_lease.unwrap();
    reports(&mut world, 0, lease);
    assert_eq!((world.places(block(1)), world.places(block(2))), (vec![(0, 0)], vec![]));
    finish(&mut world);
    assert_eq!(world.places(block(2)), []);
}

/// Another leader may have had one of two deleted that both are listed here: were the other one chosen now, none was left.
#[test]
fn nothing_is_deleted_before_those_who_have_it_have_reported_to_who_leads() {
    let mut world = taken_over(2);
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

/// Copies that are ordered in some time, with two nodes that are about to report.
fn copies(world: &mut World, target: usize) -> usize {
    let mut copies = 0;
    for _ in 0..20 {
        world.now = at(world.now.mono_ms + 1000);
        world.cluster.tick(&world.blocks, world.now, &mut *world.dice);
        for node in [0, target] {
            let commands = asks(world, node).commands;
            copies += commands.iter().filter(|c| matches!(c, Command::Transfer(_))).count();
        }
    }
    copies
}

#[test]
fn a_copy_is_made_of_what_was_kept() {
    let mut world = taken_over(1);
    world.register(registration(7, 0));
    world.blocks.0.insert(block(1), replicated(2, 100, LIVE));
    // A node with no blocks, that a copy may go to.
    world.beat("uuid-7", heartbeat_of(7, 50 * GIB));
    world.cluster.block_changed(&world.blocks, block(1));
    assert_eq!(copies(&mut world, 7), 1);
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
