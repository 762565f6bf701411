//! What is queued, copied, decoded and deleted, and when.

use crate::fixture::*;
use crate::queue::Priority;
use crate::*;
use cairn_stripe::{BlockId, GenerationStamp, UnitIndex};
use std::collections::BTreeMap;

mod failure;
mod haste;
mod indices;
mod spread;

const LIVE: BlockState = BlockState::Complete;

fn transfers(commands: &BTreeMap<usize, Vec<Command>>) -> Vec<(usize, Transfer)> {
    let mut found = Vec::new();
    for (node, commands) in commands {
        for command in commands {
            if let Command::Transfer(transfers) = command {
                found.extend(transfers.iter().map(|transfer| (*node, transfer.clone())));
            }
        }
    }
    found
}

fn deletions(commands: &BTreeMap<usize, Vec<Command>>) -> Vec<(usize, BlockRef)> {
    let mut found = Vec::new();
    for (node, commands) in commands {
        for command in commands {
            if let Command::Invalidate(blocks) = command {
                found.extend(blocks.iter().map(|block| (*node, *block)));
            }
        }
    }
    found
}

fn decodes(commands: &BTreeMap<usize, Vec<Command>>) -> Vec<(usize, Reconstruction)> {
    let mut found = Vec::new();
    for (node, commands) in commands {
        for command in commands {
            if let Command::Reconstruct(works) = command {
                found.extend(works.iter().map(|work| (*node, work.clone())));
            }
        }
    }
    found
}

fn die(world: &mut World, node: usize) {
    let handle = world.handle(node);
    world.cluster.node_died(&world.blocks, handle);
}

#[test]
fn a_lost_replica_is_copied_to_a_node_that_has_none() {
    let mut world = World::new(6, 3);
    let id = block(1);
    world.store(id, replicated(3, 100, LIVE), &[0, 1, 4]);
    die(&mut world, 4);
    assert_eq!(world.cluster.queues().priority(id), Some(Priority::Low));
    let commands = world.run(6000, &[4]);
    let found = transfers(&commands);
    let [(source, transfer)] = &found[..] else { panic!("{found:?}") };
    assert!([0, 1].contains(source));
    assert_eq!(transfer.block, world.good(id, 0));
    let target = world.number(transfer.targets[0]);
    assert!([2, 3, 5].contains(&target), "{target}");
    assert_eq!(world.cluster.queues().len(), 0, "it is on its way");
    assert_eq!(world.cluster.stats(world.now).mended, 0, "what is written is not mended");
    world.received(target, world.good(id, 0));
    assert_eq!(world.places(id).len(), 3);
    assert_eq!(world.cluster.stats(world.now).mended, 1);
    assert_eq!(transfers(&world.run(700_000, &[4])), []);
}

#[test]
fn nodes_that_start_late_are_waited_for() {
    let mut world = World::new(3, 1);
    let id = block(1);
    world.blocks.0.insert(id, replicated(3, 100, LIVE));
    world.cluster.enter_safe_mode();
    let good = world.good(id, 0);
    world.received(0, good);
    world.cluster.leave_safe_mode(false);
    assert_eq!(transfers(&world.run(2000, &[])), []);
    world.received(1, good);
    world.received(2, good);
    assert_eq!(transfers(&world.run(60_000, &[])), []);
}

#[test]
fn a_moved_replica_is_deleted_where_it_came_from() {
    let mut world = World::new(4, 2);
    let id = block(1);
    world.store(id, replicated(3, 100, LIVE), &[0, 1, 2]);
    let kind = ReplicaEventKind::Received { delete_hint: Some("uuid-0".to_string()) };
    let block = world.good(id, 0);
    world.event(3, ReplicaEvent { block, kind, crc32c: None });
    assert_eq!(deletions(&world.run(6000, &[])), [(0, block)]);
}

#[test]
fn work_that_is_not_reported_done_is_given_again() {
    let mut world = World::new(4, 2);
    world.store(block(1), replicated(2, 100, LIVE), &[0, 1]);
    die(&mut world, 1);
    assert_eq!(transfers(&world.run(6000, &[1])).len(), 1);
    assert_eq!(transfers(&world.run(280_000, &[1])).len(), 0);
    assert_eq!(transfers(&world.run(30_000, &[1])).len(), 1);
}

#[test]
fn a_target_that_dies_is_replaced_at_once() {
    let mut world = World::new(5, 2);
    world.store(block(1), replicated(2, 100, LIVE), &[0, 1]);
    die(&mut world, 1);
    let found = transfers(&world.run(6000, &[1]));
    let target = world.number(found[0].1.targets[0]);
    die(&mut world, target);
    let found = transfers(&world.run(6000, &[1, target]));
    assert_eq!(found.len(), 1);
    assert_ne!(world.number(found[0].1.targets[0]), target);
}

#[test]
fn more_copies_are_made_and_surplus_ones_deleted_from_the_fullest_rack() {
    let mut world = World::with_racks(&[0, 0, 0, 1, 2]);
    let id = block(1);
    world.store(id, replicated(2, 100, LIVE), &[0, 3]);
    world.blocks.0.insert(id, replicated(3, 100, LIVE));
    world.cluster.block_changed(&world.blocks, id);
    assert_eq!(transfers(&world.run(6000, &[])).len(), 1);

    let mut world = World::with_racks(&[0, 0, 0, 1, 2]);
    world.store(id, replicated(5, 100, LIVE), &[0, 1, 2, 3, 4]);
    world.blocks.0.insert(id, replicated(3, 100, LIVE));
    world.cluster.block_changed(&world.blocks, id);
    let deleted = deletions(&world.run(6000, &[]));
    assert_eq!(deleted.len(), 2);
    assert!(deleted.iter().all(|(node, _)| *node < 3), "{deleted:?}");
    assert_eq!(world.cluster.stats(world.now).excess, 2);
    for (node, block) in deleted {
        world.deleted(node, block);
    }
    assert_eq!(world.places(id).len(), 3);
    assert_eq!(world.cluster.stats(world.now).excess, 0);
    assert_eq!(deletions(&world.run(60_000, &[])), []);
}

/// `setrep 2` and at once `setrep 4`: a copy from the replica that is being deleted would fail, and
/// would be missed only when the work's time is over.
#[test]
fn a_replica_that_is_being_deleted_is_no_source() {
    for seed in 0..20 {
        let mut world = World::new(6, 3);
        world.dice = Box::new(dice(seed));
        let id = block(1);
        world.store(id, replicated(3, 100, LIVE), &[0, 1, 2]);
        world.blocks.0.insert(id, replicated(2, 100, LIVE));
        world.cluster.block_changed(&world.blocks, id);
        let going = deletions(&world.run(6000, &[]));
        let [(gone, _)] = going[..] else { panic!("{going:?}") };
        world.blocks.0.insert(id, replicated(4, 100, LIVE));
        world.cluster.block_changed(&world.blocks, id);
        let found = transfers(&world.run(6000, &[]));
        assert_eq!(found.len(), 1);
        assert_ne!(found[0].0, gone);
    }
}

#[test]
fn a_node_that_ignores_a_deletion_is_told_again() {
    let mut world = World::new(3, 1);
    let id = block(1);
    world.store(id, replicated(2, 100, LIVE), &[0, 1, 2]);
    let deleted = deletions(&world.run(6000, &[]));
    let [(node, good)] = deleted[..] else { panic!("{deleted:?}") };
    let replica = ReportedReplica { block: good, state: ReplicaState::Finalized, crc32c: None };
    world.full_report(node, &[replica]);
    assert_eq!(deletions(&world.run(6000, &[])), [(node, good)]);
}

#[test]
fn nothing_is_deleted_while_a_storage_has_not_reported() {
    let mut world = World::new(3, 1);
    let id = block(1);
    world.store(id, replicated(2, 100, LIVE), &[0, 1]);
    world.register(registration(1, 0));
    world.heartbeat(1);
    let good = world.good(id, 0);
    world.received(2, good);
    assert_eq!(deletions(&world.run(60_000, &[])), [], "node 1 may not have it any more");
    world.full_report(1, &[]);
    assert_eq!(world.places(id), [(0, 0), (2, 0)]);
    assert_eq!(deletions(&world.run(60_000, &[])), []);
}

#[test]
fn blocks_of_no_file_are_deleted_everywhere() {
    let mut world = World::new(3, 1);
    let id = block(1);
    world.store(id, replicated(3, 100, LIVE), &[0, 1, 2]);
    let good = world.good(id, 0);
    let facts = world.blocks.0.remove(&id).unwrap();
    world.cluster.block_removed(id, facts.gs);
    assert_eq!(world.cluster.stats(world.now).replicated.pending_deletion, 3);
    let gone = deletions(&world.run(3000, &[]));
    let named: Vec<_> = gone.iter().map(|(node, block)| (*node, block.id, block.gs)).collect();
    assert_eq!(named, [0, 1, 2].map(|node| (node, good.id, good.gs)));
    // A late report changes nothing but asks for the same.
    world.received(1, good);
    assert_eq!(world.places(id), []);
    assert_eq!(deletions(&world.run(3000, &[])), [(1, good)]);
}

#[test]
fn a_bounded_number_is_deleted_with_one_heartbeat() {
    let mut world = World::new(1, 1);
    for number in 0..2500 {
        world.received(0, BlockRef { id: block(number), gs: GenerationStamp(1001), len: 1 });
    }
    let counts: Vec<usize> = (0..4).map(|_| deletions(&world.run(3000, &[])).len()).collect();
    assert_eq!(counts, [1000, 1000, 500, 0]);
}

/// `dfs.namenode.startup.delay.block.deletion.sec`.
#[test]
fn nothing_is_deleted_for_a_while_after_a_start() {
    let mut world = World::new(1, 1);
    let deletion_delay = std::time::Duration::from_secs(60);
    world.cluster.set_config(Config { deletion_delay, ..Config::default() });
    world.cluster.start_safe_mode(0, world.now);
    world.received(0, BlockRef { id: block(1), gs: GenerationStamp(1001), len: 1 });
    assert_eq!(deletions(&world.run(57_000, &[])), []);
    assert_eq!(world.cluster.stats(world.now).replicated.pending_deletion, 1);
    assert_eq!(deletions(&world.run(3000, &[])).len(), 1);
}

#[test]
fn a_bad_replica_is_deleted_when_the_block_is_whole_again() {
    let mut world = World::new(5, 2);
    let id = block(1);
    world.store(id, replicated(3, 100, LIVE), &[0, 1, 2]);
    let good = world.good(id, 0);
    let handle = world.handle(1);
    world.cluster.report_bad(&world.blocks, handle, &storage_uuid(1), good).unwrap();
    assert_eq!(world.cluster.stats(world.now).replicated.corrupt, 1);
    assert!(world.cluster.locations(id).iter().any(|l| l.corrupt && world.number(l.storage) == 1));
    let commands = world.run(6000, &[]);
    assert_eq!(deletions(&commands), []);
    let found = transfers(&commands);
    assert!(found[0].0 != 1, "a bad replica is no source");
    let target = world.number(found[0].1.targets[0]);
    assert!([3, 4].contains(&target));
    // A report that says the same as before does not make bad bytes good.
    world.received(1, good);
    assert_eq!(world.cluster.stats(world.now).replicated.corrupt, 1);
    world.received(target, good);
    assert_eq!(deletions(&world.run(3000, &[])), [(1, good)]);
    assert_eq!(world.cluster.stats(world.now).replicated.corrupt, 0);
}

#[test]
fn a_bad_unit_is_deleted_when_a_good_one_of_the_same_index_is_there() {
    let mut world = World::new(8, 4);
    let id = group(1);
    world.store(id, rs(3, 2, 6 * 4096, LIVE), &[0, 1, 2, 3, 4]);
    let bad = world.good(id, 1);
    let handle = world.handle(1);
    world.cluster.report_bad(&world.blocks, handle, &storage_uuid(1), bad).unwrap();
    // Another copy of another unit makes no difference.
    let spare = world.good(id, 0);
    world.received(5, spare);
    let commands = world.run(6000, &[]);
    assert!(deletions(&commands).iter().all(|(_, block)| block.id != bad.id));
    let works = decodes(&commands);
    let [(_, work)] = &works[..] else { panic!("{works:?}") };
    assert!(work.sources.iter().all(|(_, unit)| unit.0 != 1), "the bad one is no source");
    let [(target, unit)] = &work.targets[..] else { panic!("{work:?}") };
    let target = world.number(*target);
    assert!(unit.0 == 1 && target != 1, "rebuilt elsewhere");
    world.received(target, bad);
    assert!(deletions(&world.run(3000, &[])).contains(&(1, bad)));
}

#[test]
fn all_lost_units_of_a_group_are_decoded_at_once() {
    let mut world = World::new(14, 4);
    let id = group(1);
    world.store(id, rs(6, 3, 6 * 4096, LIVE), &[0, 1, 2, 3, 4, 5, 6, 7, 8]);
    for node in [1, 4, 7] {
        die(&mut world, node);
    }
    assert_eq!(world.cluster.queues().priority(id), Some(Priority::Highest));
    let works = decodes(&world.run(6000, &[1, 4, 7]));
    let [(node, work)] = &works[..] else { panic!("{works:?}") };
    let units: Vec<u8> = work.targets.iter().map(|(_, unit)| unit.0).collect();
    assert_eq!(units, [1, 4, 7]);
    assert_eq!(*node, world.number(work.targets[0].0), "the first target does it");
    assert_eq!(work.sources.len(), 6);
    for (storage, unit) in &work.sources {
        assert_eq!(world.number(*storage), usize::from(unit.0));
    }
    for (storage, unit) in &work.targets {
        assert!(world.number(*storage) >= 9, "units are on distinct nodes");
        world.received(world.number(*storage), world.good(id, unit.0));
    }
    assert_eq!(world.cluster.queues().len(), 0);
    assert_eq!(decodes(&world.run(700_000, &[1, 4, 7])).len(), 0);
}

/// FIELD-NOTES rows 2 and 6: a wrong unit with good checksums of its own is not believed.
#[test]
fn row_02_row_06_a_rebuilt_unit_with_other_bytes_is_bad_and_rebuilt_again() {
    let mut world = World::new(8, 4);
    let id = group(1);
    world.store(id, rs(3, 2, 9 * 1024, LIVE), &[0, 1, 2, 3, 4]);
    world.blocks.1.insert((id, UnitIndex(1)), 77);
    die(&mut world, 1);
    let found = decodes(&world.run(6000, &[1]));
    let [(_, work)] = &found[..] else { panic!("{found:?}") };
    let target = world.number(work.targets[0].0);
    let unit = world.good(id, 1);
    let changes = world.received_with_crc(target, unit, Some(78));
    assert_eq!((changes.altered, changes.late_crcs), (vec![unit], vec![]));
    let live =
        |world: &World| world.cluster.locations(id).iter().filter(|place| !place.corrupt).count();
    assert_eq!(live(&world), 4);
    // A full report tells no CRC, and so does not clear it of what is known.
    let reported = ReportedReplica { block: unit, state: ReplicaState::Finalized, crc32c: None };
    world.full_report(target, &[reported]);
    assert_eq!(live(&world), 4);
    let found = decodes(&world.run(6000, &[1]));
    let [(_, work)] = &found[..] else { panic!("{found:?}") };
    let second = world.number(work.targets[0].0);
    assert_ne!(second, target);
    assert!(work.sources.iter().all(|(storage, _)| world.number(*storage) != target));
    assert!(world.received_with_crc(second, unit, Some(77)).altered.is_empty());
    assert_eq!(live(&world), 5);
    assert!(deletions(&world.run(6000, &[1])).contains(&(target, unit)), "the wrong one goes");
}

#[test]
fn a_short_group_has_no_empty_units_to_mend() {
    let mut world = World::new(9, 3);
    let id = group(1);
    let facts = rs(6, 3, 1500, LIVE);
    world.blocks.0.insert(id, facts);
    assert_eq!((facts.data_units(), facts.expected_units()), (2, 5));
    for (node, unit) in [(0, 0), (1, 1), (2, 6), (3, 7), (4, 8)] {
        let good = world.good(id, unit);
        world.received(node, good);
    }
    assert_eq!(world.cluster.queues().len(), 0);
    die(&mut world, 1);
    die(&mut world, 3);
    die(&mut world, 0);
    let works = decodes(&world.run(6000, &[0, 1, 3]));
    let units: Vec<u8> = works[0].1.targets.iter().map(|(_, unit)| unit.0).collect();
    assert_eq!(units, [0, 1, 7]);
    assert_eq!(works[0].1.sources.len(), 2);
}

#[test]
fn a_group_with_too_few_units_is_missing_until_some_return() {
    let mut world = World::new(9, 3);
    let id = group(1);
    world.store(id, rs(6, 3, 6 * 4096, LIVE), &[0, 1, 2, 3, 4, 5, 6, 7, 8]);
    for node in 0..4 {
        die(&mut world, node);
    }
    let stats = world.cluster.stats(world.now);
    assert_eq!((stats.groups.missing, stats.groups.low_redundancy), (1, 0));
    assert_eq!(decodes(&world.run(6000, &[0, 1, 2, 3])), []);
    world.register(registration(2, 2));
    world.heartbeat(2);
    let block = world.good(id, 2);
    let replica = ReportedReplica { block, state: ReplicaState::Finalized, crc32c: None };
    world.full_report(2, &[replica]);
    let stats = world.cluster.stats(world.now);
    assert_eq!((stats.groups.missing, stats.groups.highest_priority), (0, 1));
}

/// FIELD-NOTES row 4.
#[test]
fn row_04_a_surplus_unit_goes_only_if_the_same_unit_lives_elsewhere() {
    for seed in 0..100 {
        let mut world = World::new(8, 3);
        let mut dice = dice(seed);
        let id = group(1);
        world.blocks.0.insert(id, rs(3, 2, 30_000, LIVE));
        for node in 0..8 {
            let good = world.good(id, (dice() % 5) as u8);
            world.received(node, good);
        }
        let before: std::collections::BTreeSet<u8> = (0..8)
            .filter_map(|n| world.cluster.blocks.map().next_on(world.storage(n), None))
            .map(|block| block.unit().0)
            .collect();
        for (node, block) in deletions(&world.run(9000, &[])) {
            world.deleted(node, block);
        }
        let mut after: Vec<u8> = world.places(id).iter().map(|(_, unit)| *unit).collect();
        after.sort_unstable();
        assert_eq!(after, before.into_iter().collect::<Vec<_>>(), "seed {seed}");
    }
}

#[test]
fn units_of_a_leaving_node_are_copied() {
    let mut world = World::new(8, 3);
    let id = group(1);
    world.store(id, rs(3, 2, 30_000, LIVE), &[0, 1, 2, 3, 4]);
    let handle = world.handle(3);
    world.cluster.set_admin_state(&world.blocks, handle, AdminState::DecommissionInProgress);
    let found = transfers(&world.run(6000, &[]));
    let [(source, transfer)] = &found[..] else { panic!("{found:?}") };
    assert_eq!((*source, transfer.block), (3, world.good(id, 3)));
    assert!(world.number(transfer.targets[0]) >= 5);
}

#[test]
fn replicas_in_one_rack_are_spread_when_a_second_rack_comes() {
    let mut world = World::new(3, 1);
    let id = block(1);
    world.store(id, replicated(3, 100, LIVE), &[0, 1, 2]);
    assert_eq!(world.cluster.queues().len(), 0);
    world.register(registration(3, 1));
    world.heartbeat(3);
    world.full_report(3, &[]);
    world.cluster.block_changed(&world.blocks, id);
    assert_eq!(world.cluster.queues().priority(id), Some(Priority::BadlyDistributed));
    let found = transfers(&world.run(6000, &[]));
    assert_eq!(world.number(found[0].1.targets[0]), 3);
    let good = world.good(id, 0);
    world.received(3, good);
    let deleted = deletions(&world.run(6000, &[]));
    assert!(deleted.len() == 1 && deleted[0].0 < 3, "{deleted:?}");
}

/// Replicas that are the last ones do not wait for the soft limit.
#[test]
fn sources_are_not_overloaded() {
    for (copies, streams) in
        [(3, Config::default().max_streams), (2, Config::default().max_streams_hard)]
    {
        let mut world = World::new(6, 1);
        for number in 0..40 {
            let nodes = &[0, 1, 2][..copies];
            world.store(block(number), replicated(copies as u16, 100, LIVE), nodes);
        }
        die(&mut world, 1);
        for _ in 0..2 {
            world.now = at(world.now.mono_ms + 3000);
            world.cluster.tick(&world.blocks, world.now, &mut *world.dice);
        }
        let commands = BTreeMap::from([(0, world.heartbeat(0))]);
        assert_eq!(transfers(&commands).len(), streams);
    }
}

#[test]
fn copies_of_a_late_pipeline_are_waited_for() {
    let mut world = World::new(6, 2);
    let id = block(1);
    let targets: Vec<_> = [0, 1, 2].map(|node| Some(world.storage(node))).to_vec();
    world.blocks.0.insert(id, replicated(3, 100, BlockState::UnderConstruction));
    world.cluster.block_allocated(id, GenerationStamp(1001), &targets);
    let facts = replicated(3, 100, LIVE);
    let block = BlockRef { id, gs: facts.gs, len: 100 };
    world.received(0, block);
    world.blocks.0.insert(id, facts);
    world.cluster.block_completed(&world.blocks, id);
    assert_eq!(transfers(&world.run(27_000, &[])), []);
    world.received(1, block);
    world.received(2, block);
    assert_eq!(transfers(&world.run(600_000, &[])), []);
}

/// Four nodes, of which the first three are given a block to write.
fn with_open_block() -> (World, BlockId, BlockFacts) {
    let mut world = World::new(4, 2);
    let id = block(1);
    let facts = replicated(3, 0, BlockState::UnderConstruction);
    world.blocks.0.insert(id, facts);
    let targets: Vec<_> = [0, 1, 2].map(|node| Some(world.storage(node))).to_vec();
    world.cluster.block_allocated(id, facts.gs, &targets);
    (world, id, facts)
}

#[test]
fn recovery_is_led_by_a_live_node_and_not_twice_by_the_same() {
    let (mut world, id, facts) = with_open_block();
    die(&mut world, 0);
    let mut leaders = Vec::new();
    for attempt in 0..2 {
        let new_gs = GenerationStamp(1002 + attempt);
        assert!(world.cluster.start_block_recovery(id, &facts, new_gs, world.now));
        assert!(world.cluster.start_block_recovery(id, &facts, new_gs, world.now), "it runs");
        for (node, commands) in world.run(3000, &[0]) {
            for command in commands {
                let Command::Recover(recoveries) = command else { panic!("{command:?}") };
                assert_eq!(recoveries.len(), 1);
                assert_eq!((recoveries[0].new_gs, recoveries[0].locations.len()), (new_gs, 2));
                leaders.push(node);
            }
        }
        assert!(world.cluster.is_current_recovery(id, new_gs));
        assert!(!world.cluster.is_current_recovery(id, GenerationStamp(9)));
    }
    leaders.sort_unstable();
    assert_eq!(leaders, [1, 2]);
}

/// The node that is to be told of a recovery.
fn leader(world: &World) -> usize {
    let has_order = |node: &usize| {
        let outbox = world.cluster.work.waiting_for(world.handle(*node));
        outbox.is_some_and(|outbox| !outbox.recoveries.is_empty())
    };
    (0..3).find(has_order).unwrap()
}

/// The recoveries that nodes were told of.
fn orders(commands: &BTreeMap<usize, Vec<Command>>) -> Vec<(usize, GenerationStamp)> {
    let mut found = Vec::new();
    for (node, command) in commands.iter().flat_map(|(n, all)| all.iter().map(|c| (*n, c))) {
        if let Command::Recover(recoveries) = command {
            found.extend(recoveries.iter().map(|recovery| (node, recovery.new_gs)));
        }
    }
    found
}

#[test]
fn the_order_to_recover_a_block_outlasts_the_death_and_the_registration_of_its_leader() {
    for dies in [true, false] {
        let (mut world, id, facts) = with_open_block();
        let new_gs = GenerationStamp(1002);
        assert!(world.cluster.start_block_recovery(id, &facts, new_gs, world.now));
        let first = leader(&world);
        if dies {
            die(&mut world, first);
        } else {
            world.register(registration(first, first % 2));
        }
        let silent: &[usize] = if dies { &[first] } else { &[] };
        let told = orders(&world.run(9000, silent));
        assert_eq!(told.len(), 1, "{told:?}");
        assert_eq!((told[0].0 == first, told[0].1), (!dies, new_gs));
    }
}

#[test]
fn there_is_one_order_to_recover_a_block_that_of_the_last_attempt() {
    let (mut world, id, facts) = with_open_block();
    for attempt in [1002, 1003] {
        let new_gs = GenerationStamp(attempt);
        assert!(world.cluster.start_block_recovery(id, &facts, new_gs, world.now));
    }
    let told = orders(&world.run(3000, &[]));
    assert_eq!(told.iter().map(|(_, gs)| gs.0).collect::<Vec<_>>(), [1003]);
}

#[test]
fn recovery_is_led_by_another_node_when_the_leader_does_not_come_for_its_order() {
    let (mut world, id, facts) = with_open_block();
    let new_gs = GenerationStamp(1002);
    // Nobody is known to be dead, and each of them would do.
    assert!(world.cluster.start_block_recovery(id, &facts, new_gs, world.now));
    let dead = leader(&world);
    assert_eq!(orders(&world.run(3000, &[dead])), []);
    let mut told = orders(&world.run(3000, &[dead]));
    told.extend(orders(&world.run(3000, &[dead])));
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].0 != dead && told[0].1 == new_gs, "{told:?}");
    assert_eq!(orders(&world.run(3000, &[])), [], "the one that was late has no order any more");
}

#[test]
fn a_recovered_block_has_only_the_replicas_that_agree() {
    let mut world = World::new(4, 2);
    let id = block(1);
    world.blocks.0.insert(id, replicated(3, 0, BlockState::UnderRecovery));
    let old = BlockRef { id, gs: GenerationStamp(1001), len: 70 };
    for node in 0..3 {
        world.received(node, old);
    }
    let facts = BlockFacts { gs: GenerationStamp(1002), ..replicated(3, 64, LIVE) };
    world.blocks.0.insert(id, facts);
    let done = Synchronized {
        block: old,
        new_gs: GenerationStamp(1002),
        new_len: 64,
        close_file: true,
        delete_block: false,
        targets: vec![Some(world.storage(0)), Some(world.storage(1))],
    };
    world.cluster.block_synchronized(&world.blocks, id, &done);
    let good: Vec<usize> = world
        .cluster
        .locations(id)
        .iter()
        .filter(|l| !l.corrupt)
        .map(|l| world.number(l.storage))
        .collect();
    assert_eq!(good, [0, 1]);
    assert_eq!(deletions(&world.run(3000, &[])), [(2, old)], "a stale replica loses nothing");
}

#[test]
fn a_striped_group_is_recovered_with_its_units() {
    let mut world = World::new(6, 2);
    let id = group(3);
    let facts = rs(3, 2, 0, BlockState::UnderConstruction);
    world.blocks.0.insert(id, facts);
    let targets: Vec<_> = (0..5).map(|node| Some(world.storage(node))).collect();
    world.cluster.block_allocated(id, facts.gs, &targets);
    die(&mut world, 1);
    world.cluster.start_block_recovery(id, &facts, GenerationStamp(1002), world.now);
    let commands = world.run(3000, &[1]);
    let Some(Command::Recover(recoveries)) = commands.values().flatten().next() else {
        panic!("{commands:?}")
    };
    let units: Vec<UnitIndex> = recoveries[0].units.clone();
    assert_eq!(units, [0, 2, 3, 4].map(UnitIndex));
    assert_eq!(recoveries[0].block.id, BlockId(id.0));
}
