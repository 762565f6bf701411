//! The start's thresholds, the extension, and the words that operators read.

use crate::fixture::*;
use crate::*;
use std::time::Duration;

fn config() -> Config {
    Config { safe_mode_extension: Duration::from_secs(30), ..Config::default() }
}

/// A cluster of three nodes at its start, with `total` complete blocks of one copy in its namespace.
fn starting(total: i64, config: Config) -> World {
    let mut world = World::new(3, 1);
    world.cluster = Cluster::new(config);
    for number in 1..=total {
        world.blocks.0.insert(block(number), replicated(1, 10, BlockState::Complete));
    }
    world.cluster.start_safe_mode(total as u64, world.now);
    for node in 0..3 {
        world.register(registration(node, 0));
        world.heartbeat(node);
    }
    world
}

fn status(world: &World) -> SafeModeStatus {
    world.cluster.safe_mode().status()
}

#[test]
fn an_empty_namespace_starts_at_once() {
    let world = starting(0, config());
    assert_eq!(status(&world), SafeModeStatus::Off);
}

#[test]
fn it_waits_for_the_threshold_then_for_the_extension() {
    let mut world = starting(10, config());
    assert_eq!(
        world.cluster.safe_mode_tip(world.now),
        "The reported blocks 0 needs additional 9 blocks to reach the threshold 0.9990 of total \
         blocks 10.\nThe minimum number of live datanodes is not required. Safe mode will be \
         turned off automatically once the thresholds have been reached."
    );
    for number in 1..=9 {
        let good = world.good(block(number), 0);
        world.received(0, good);
    }
    world.run(3000, &[]);
    assert_eq!(status(&world), SafeModeStatus::Extension);
    world.run(10_000, &[]);
    assert_eq!(
        world.cluster.safe_mode_tip(world.now),
        "The reported blocks 9 has reached the threshold 0.9990 of total blocks 10. The minimum \
         number of live datanodes is not required. In safe mode extension. Safe mode will be \
         turned off automatically in 20 seconds."
    );
    world.run(21_000, &[]);
    assert_eq!(status(&world), SafeModeStatus::Off);
    // What is still missing is found by the walk that follows.
    assert_eq!(world.cluster.stats(world.now).replicated.missing, 1);
}

#[test]
fn row_23_a_group_counts_when_its_data_can_be_read() {
    let mut world = starting(0, config());
    let id = group(1);
    world.blocks.0.insert(id, rs(2, 1, 4096, BlockState::Complete));
    // Of two blocks one must be reported: Hadoop rounds the threshold down.
    world.cluster.start_safe_mode(2, world.now);
    let good = |world: &World, unit| world.good(id, unit);
    let unit0 = good(&world, 0);
    world.received(0, unit0);
    world.received(1, unit0);
    assert_eq!(world.cluster.safe_mode().block_counts(), (2, 0), "two copies of one unit");
    let unit2 = good(&world, 2);
    world.received(2, unit2);
    assert_eq!(world.cluster.safe_mode().block_counts(), (2, 1));
    world.deleted(2, unit2);
    assert_eq!(world.cluster.safe_mode().block_counts(), (2, 0));
}

#[test]
fn enough_nodes_must_live() {
    let config = Config { safe_mode_min_nodes: 4, ..config() };
    let mut world = starting(0, config);
    assert_eq!(status(&world), SafeModeStatus::Starting);
    let tip = world.cluster.safe_mode_tip(world.now);
    let want = "The number of live datanodes 3 needs an additional 1 live datanodes to reach the \
                minimum number 4.\n";
    assert!(tip.contains(want), "{tip}");
    world.register(registration(3, 0));
    world.run(3000, &[]);
    assert_eq!(status(&world), SafeModeStatus::Off, "an empty namespace needs no extension");
}

#[test]
fn an_administrator_may_enter_and_leave() {
    let mut world = starting(10, config());
    assert!(world.cluster.leave_safe_mode(false));
    world.cluster.enter_safe_mode();
    assert_eq!(
        world.cluster.safe_mode_tip(world.now),
        "It was turned on manually. Use \"hdfs dfsadmin -safemode leave\" to turn safe mode off."
    );
    world.run(600_000, &[]);
    assert_eq!(status(&world), SafeModeStatus::Manual, "time does not end it");
    assert!(world.cluster.leave_safe_mode(false));
}

#[test]
fn blocks_of_the_future_must_be_given_up_by_force() {
    let mut world = starting(10, config());
    let gs = cairn_stripe::GenerationStamp(1_000_001);
    world.received(0, BlockRef { id: block(99), gs, len: 77 });
    assert_eq!(world.cluster.safe_mode().bytes_in_future(), 77);
    assert!(!world.cluster.leave_safe_mode(false));
    let tip = world.cluster.safe_mode_tip(world.now);
    assert!(tip.contains("generation stamps in future") && tip.contains("77 byte(s)"), "{tip}");
    assert!(world.cluster.leave_safe_mode(true));
}

#[test]
fn nothing_is_deleted_or_copied_in_safe_mode() {
    let mut world = starting(10, config());
    let unwanted = BlockRef { id: block(99), ..world.good(block(1), 0) };
    let state = ReplicaState::Finalized;
    world.full_report(0, &[ReportedReplica { block: unwanted, state, crc32c: None }]);
    let commands = world.run(9000, &[]);
    assert!(commands.values().all(Vec::is_empty), "{commands:?}");
    world.cluster.leave_safe_mode(false);
    let commands = world.run(3000, &[]);
    assert_eq!(commands[&0], [Command::Invalidate(vec![unwanted])]);
}

#[test]
fn blocks_may_need_more_or_fewer_replicas_than_to_be_complete() {
    for (min, safe_min, after) in [(1, Some(2), [0, 1]), (2, Some(1), [1, 1]), (2, None, [0, 1])] {
        let config =
            Config { replication_min: min, safe_mode_replication_min: safe_min, ..config() };
        // Of two blocks one must be reported: Hadoop rounds the threshold down.
        let mut world = starting(2, config);
        for (node, safe) in (0..2).zip(after) {
            let good = world.good(block(1), 0);
            world.received(node, good);
            let counts = world.cluster.safe_mode().block_counts();
            assert_eq!(counts, (2, safe), "{min} {safe_min:?}");
        }
        let good = world.good(block(1), 0);
        world.deleted(0, good);
        let safe = u64::from(safe_min == Some(1));
        assert_eq!(world.cluster.safe_mode().block_counts(), (2, safe), "{min} {safe_min:?}");
    }
}

#[test]
fn what_is_missing_is_told_before_safe_mode_ends_and_mended_after_it() {
    for (part, from) in [(Some(0.0), 0), (Some(0.5), 5), (None, 9)] {
        let mut world = starting(10, Config { queue_threshold: part, ..config() });
        world.blocks.0.insert(block(9), replicated(2, 10, BlockState::Complete));
        for number in 1..=9 {
            let safe = number - 1;
            world.run(1000, &[]);
            assert_eq!(status(&world), SafeModeStatus::Starting);
            let is_queueing = safe >= from;
            assert_eq!(world.cluster.safe_mode().is_queueing(), is_queueing, "{part:?} {safe}");
            let missing = if is_queueing { 10 - safe as u64 } else { 0 };
            assert_eq!(
                world.cluster.stats(world.now).replicated.missing,
                missing,
                "{part:?} {safe}"
            );
            let good = world.good(block(number), 0);
            world.received(0, good);
        }
        let commands = world.run(3000, &[]);
        assert_eq!(status(&world), SafeModeStatus::Extension);
        assert!(world.cluster.safe_mode().is_queueing());
        assert_eq!(world.cluster.stats(world.now).replicated.missing, 1, "{part:?}");
        assert!(commands.values().all(Vec::is_empty), "{commands:?}");
        let commands = world.run(35_000, &[]);
        assert_eq!(status(&world), SafeModeStatus::Off);
        assert_eq!(world.cluster.stats(world.now).replicated.missing, 1, "{part:?}");
        let copies = |command: &Command| matches!(command, Command::Transfer(_));
        assert!(commands.values().flatten().any(copies), "the other copy: {commands:?}");
    }
}
