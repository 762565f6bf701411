//! What failed writers leave open, and whom open blocks keep.

use crate::fixture::*;
use crate::leaving::HeldBack;
use crate::leaving::model::Play;
use crate::*;
use cairn_stripe::{BlockId, GenerationStamp};
use std::collections::BTreeMap;

const OPEN: BlockState = BlockState::UnderConstruction;
const LIVE: BlockState = BlockState::Complete;
const LATER: GenerationStamp = GenerationStamp(1002);

fn deletions(commands: &BTreeMap<usize, Vec<Command>>) -> Vec<(usize, BlockRef)> {
    let told = |(node, commands): (&usize, &Vec<Command>)| {
        let lists = commands.iter().filter_map(|command| match command {
            Command::Invalidate(blocks) => Some(blocks.clone()),
            _ => None,
        });
        lists.flatten().map(|block| (*node, block)).collect::<Vec<_>>()
    };
    commands.iter().flat_map(told).collect()
}

/// A block or group that is being written to those nodes, all of which have begun.
fn open(world: &mut World, id: BlockId, facts: BlockFacts, nodes: &[usize]) {
    world.blocks.0.insert(id, facts);
    let targets: Vec<_> = nodes.iter().map(|node| Some(world.storage(*node))).collect();
    world.cluster.block_allocated(id, facts.gs, &targets);
    for (unit, node) in nodes.iter().enumerate() {
        let block = BlockRef { len: 0, ..world.good(id, unit as u8) };
        let kind = ReplicaEventKind::Receiving;
        world.event(*node, ReplicaEvent { block, kind, crc32c: None });
    }
}

/// The writer goes on with those nodes only.
fn go_on(world: &mut World, id: BlockId, nodes: &[Option<usize>]) {
    world.blocks.0.get_mut(&id).unwrap().gs = LATER;
    let targets: Vec<_> = nodes.iter().map(|node| node.map(|n| world.storage(n))).collect();
    world.cluster.pipeline_updated(id, LATER, &targets);
}

#[test]
fn what_a_failed_writer_left_open_is_deleted_when_the_block_is_complete() {
    let mut world = World::new(5, 1);
    let id = block(1);
    open(&mut world, id, replicated(3, 0, OPEN), &[0, 1, 2]);
    go_on(&mut world, id, &[Some(0), Some(1), Some(3)]);
    assert_eq!(deletions(&world.run(9000, &[])), []);
    let facts = BlockFacts { gs: LATER, ..replicated(3, 64, LIVE) };
    world.blocks.0.insert(id, BlockFacts { state: BlockState::Committed, ..facts });
    for node in [0, 1, 3] {
        world.received(node, world.good(id, 0));
    }
    world.blocks.0.insert(id, facts);
    world.cluster.block_completed(&world.blocks, id);
    let old = BlockRef { id, gs: GenerationStamp(1001), len: 0 };
    assert_eq!(deletions(&world.run(9000, &[])), [(2, old)]);
    world.deleted(2, old);
    assert_eq!(world.places(id), [(0, 0), (1, 0), (3, 0)]);
}

#[test]
fn what_was_left_open_stays_while_it_is_all_there_is() {
    let mut world = World::new(3, 1);
    let id = block(1);
    open(&mut world, id, replicated(1, 0, OPEN), &[0]);
    go_on(&mut world, id, &[Some(1)]);
    world.blocks.0.insert(id, BlockFacts { gs: LATER, ..replicated(1, 64, LIVE) });
    world.cluster.block_completed(&world.blocks, id);
    assert_eq!(deletions(&world.run(30_000, &[])), []);
    world.received(1, world.good(id, 0));
    let old = BlockRef { id, gs: GenerationStamp(1001), len: 0 };
    assert_eq!(deletions(&world.run(9000, &[])), [(0, old)]);
}

/// Its node may never come: the order would wait for ever. If it comes, it tells of what it has.
#[test]
fn nobody_waits_for_a_dead_node_to_delete_what_was_open_of_a_removed_block() {
    let mut world = World::new(3, 1);
    let id = block(1);
    open(&mut world, id, replicated(2, 0, OPEN), &[0, 2]);
    world.run(700_000, &[2]);
    let facts = world.blocks.0.remove(&id).unwrap();
    world.cluster.block_removed(id, facts.gs);
    let pending = |world: &World| world.cluster.stats(world.now).replicated.pending_deletion;
    assert_eq!(pending(&world), 1);
    let block = BlockRef { id, gs: facts.gs, len: 0 };
    assert_eq!(deletions(&world.run(9000, &[2])), [(0, block)]);
    assert_eq!(pending(&world), 0);
    world.register(registration(2, 0));
    let state = ReplicaState::BeingWritten;
    world.full_report(2, &[ReportedReplica { block, state, crc32c: None }]);
    assert_eq!(deletions(&world.run(9000, &[])), [(2, block)]);
}

#[test]
fn what_is_open_of_a_removed_block_is_deleted() {
    let mut world = World::new(3, 1);
    let id = block(1);
    open(&mut world, id, replicated(2, 0, OPEN), &[0, 2]);
    let facts = world.blocks.0.remove(&id).unwrap();
    world.cluster.block_removed(id, facts.gs);
    let block = BlockRef { id, gs: facts.gs, len: 0 };
    assert_eq!(deletions(&world.run(9000, &[])), [(0, block), (2, block)]);
}

#[test]
fn the_only_open_replica_keeps_its_node_from_leaving() {
    for maintenance in [false, true] {
        let mut play = Play::new(7, 1);
        let id = block(1);
        open(&mut play.world, id, replicated(3, 0, OPEN), &[0, 1, 2]);
        go_on(&mut play.world, id, &[Some(0)]);
        if maintenance {
            play.maintain(0, 1 << 40)
        } else {
            play.decommission(0)
        }
        let leaving = play.admin(0);
        play.steps(60);
        assert_eq!(play.admin(0), leaving, "it has all that was written");
        let told = play.told(0).unwrap();
        assert_eq!((told.blocks_left, told.open, told.only_leaving), (1, 1, 1));
        assert_eq!(told.blocks, [(id, HeldBack::Open)]);
        let cluster = &play.world.cluster;
        assert!(cluster.keeps_a_node_from_leaving(&play.world.blocks, id));
        // The writer closes the file.
        let facts = BlockFacts { gs: LATER, ..replicated(3, 64, LIVE) };
        play.world.blocks.0.insert(id, facts);
        let good = play.world.good(id, 0);
        play.disks[0].insert(good);
        play.world.received(0, good);
        play.world.cluster.block_completed(&play.world.blocks, id);
        play.until(
            0,
            if maintenance { AdminState::InMaintenance } else { AdminState::Decommissioned },
        );
        assert!(play.in_service(id) >= 1);
    }
}

#[test]
fn open_replicas_that_others_have_too_keep_nobody() {
    let mut play = Play::new(6, 1);
    open(&mut play.world, block(1), replicated(3, 0, OPEN), &[0, 1, 2]);
    open(&mut play.world, group(1), rs(3, 2, 0, OPEN), &[0, 1, 2, 3, 4]);
    play.decommission(0);
    assert_eq!(play.told(0).unwrap().blocks, []);
    assert!(!play.world.cluster.keeps_a_node_from_leaving(&play.world.blocks, group(1)));
    play.until(0, AdminState::Decommissioned);
    // Fewer units than decoding takes are left without this one.
    go_on(&mut play.world, group(1), &[None, Some(1), Some(2), Some(3), None]);
    play.decommission(1);
    play.steps(60);
    assert_eq!(play.admin(1), AdminState::DecommissionInProgress);
    let unit = group(1).internal(cairn_stripe::UnitIndex(1));
    assert_eq!(play.told(1).unwrap().blocks, [(unit, HeldBack::Open)]);
    // The file is deleted.
    let facts = play.world.blocks.0.remove(&group(1)).unwrap();
    play.world.cluster.block_removed(group(1), facts.gs);
    play.until(1, AdminState::Decommissioned);
}

/// Were it let go, a recovery would not wait for it, and drop or cut off what it has acknowledged.
#[test]
fn a_leaving_node_that_dies_keeps_the_only_open_replica_that_is_sure() {
    // All that the writer went on with, and all whose node was not down since.
    for others in [&[None, None][..], &[Some(1), None]] {
        let mut play = Play::new(7, 1);
        let id = block(1);
        open(&mut play.world, id, replicated(3, 0, OPEN), &[0, 1, 2]);
        go_on(&mut play.world, id, &[&[Some(0)][..], others].concat());
        let state = ReplicaState::WaitingToBeRecovered;
        let torn = BlockRef { id, gs: LATER, len: 0 };
        let torn = ReportedReplica { block: torn, state, crc32c: None };
        let reported = others[0].map(|_| torn);
        play.world.full_report(1, reported.as_slice());
        play.decommission(0);
        play.steps(30);
        assert_eq!(play.admin(0), AdminState::DecommissionInProgress, "{others:?}");
        play.kill(0);
        play.steps(30);
        assert_eq!(play.admin(0), AdminState::DecommissionInProgress, "{others:?}");
        let told = play.told(0).unwrap();
        assert_eq!((told.open, told.only_leaving), (1, 1));
        let facts = play.world.blocks.0[&id];
        let (now, world) = (play.world.now, &mut play.world);
        world.cluster.start_block_recovery(id, &facts, GenerationStamp(1003), now);
        let recoveries = recoveries(&world.run(3000, &[0]));
        assert!(recoveries.iter().all(|(_, away)| *away == [0]), "{recoveries:?}");
        // Its administrator knows better.
        play.intend(0, AdminIntent::InService);
        play.decommission(0);
        assert_eq!(play.admin(0), AdminState::Decommissioned);
    }
}

/// What is open is in no list of what a storage holds, so nothing else shows that it is gone.
#[test]
fn a_leaving_node_goes_when_its_full_report_does_not_name_what_is_open() {
    let mut play = Play::new(7, 1);
    let id = block(1);
    open(&mut play.world, id, replicated(3, 0, OPEN), &[0, 1, 2]);
    go_on(&mut play.world, id, &[Some(0)]);
    play.decommission(0);
    play.kill(0);
    play.steps(30);
    assert_eq!(play.admin(0), AdminState::DecommissionInProgress);
    play.revive(0, 0);
    play.kill(0);
    play.until(0, AdminState::Decommissioned);
}

#[test]
fn a_recovery_does_not_wait_for_what_a_full_report_does_not_name() {
    for (id, facts) in [(block(1), replicated(3, 0, OPEN)), (group(1), rs(3, 2, 0, OPEN))] {
        let mut world = World::new(5, 1);
        open(&mut world, id, facts, &[0, 1, 2, 3, 4][..facts.layout.width().max(3)]);
        go_on(&mut world, id, &[Some(0), Some(1), Some(2)]);
        let units = |world: &mut World, silent: &[usize], gs: u64| {
            let facts = world.blocks.0[&id];
            world.cluster.start_block_recovery(id, &facts, GenerationStamp(gs), world.now);
            let told = recoveries(&world.run(3000, silent));
            told.first().cloned().expect("somebody leads it")
        };
        let asked = |there: usize| there + facts.layout.width().saturating_sub(3);
        world.full_report(0, &[]);
        assert_eq!(units(&mut world, &[], 1003), (asked(3), vec![]), "{id}: it is there");
        world.run(700_000, &[0]);
        assert_eq!(units(&mut world, &[0], 1004), (asked(2), vec![]), "{id}");
        // What was on its way comes: the report was made before.
        world.register(registration(0, 0));
        world.full_report(0, &[]);
        let block = BlockRef { gs: LATER, ..world.good(id, 0) };
        let kind = ReplicaEventKind::Receiving;
        world.event(0, ReplicaEvent { block, kind, crc32c: None });
        world.run(700_000, &[0]);
        assert_eq!(units(&mut world, &[0], 1005), (asked(2), vec![0]), "{id}");
    }
}

#[test]
fn a_recovery_waits_for_the_node_that_the_writer_went_on_with() {
    let mut world = World::new(3, 1);
    let id = block(1);
    open(&mut world, id, replicated(2, 0, OPEN), &[0, 2]);
    go_on(&mut world, id, &[Some(0), None]);
    // Its node is silent, and not dead yet.
    world.run(60_000, &[0]);
    let facts = world.blocks.0[&id];
    assert!(world.cluster.start_block_recovery(id, &facts, GenerationStamp(1003), world.now));
    let locations = |commands: &BTreeMap<usize, Vec<Command>>| -> Vec<(usize, Vec<StorageHandle>)> {
        let orders = commands.iter().flat_map(|(node, all)| all.iter().map(|one| (*node, one)));
        let recoveries = orders.filter_map(|(node, command)| match command {
            Command::Recover(recoveries) => Some((node, recoveries[0].locations.clone())),
            _ => None,
        });
        recoveries.collect()
    };
    assert_eq!(locations(&world.run(30_000, &[0])), [], "nobody else has what was acknowledged");
    assert_eq!(locations(&world.run(3000, &[])), [(0, vec![world.storage(0)])]);
}

/// The orders to recover blocks: how many places are to be asked, and which units are away.
fn recoveries(commands: &BTreeMap<usize, Vec<Command>>) -> Vec<(usize, Vec<u8>)> {
    let mut found = Vec::new();
    for command in commands.values().flatten() {
        let Command::Recover(recoveries) = command else { continue };
        let away = |one: &BlockRecovery| one.away.iter().map(|unit| unit.0).collect();
        found.extend(recoveries.iter().map(|one| (one.locations.len(), away(one))));
    }
    found
}

#[test]
fn a_recovery_is_told_of_those_that_may_have_the_block_and_are_not_asked() {
    let mut world = World::new(3, 1);
    let id = block(1);
    open(&mut world, id, replicated(3, 0, OPEN), &[0, 1, 2]);
    let facts = world.blocks.0[&id];
    // Silent for a while: two others are enough to be asked.
    world.run(60_000, &[0]);
    assert!(world.cluster.start_block_recovery(id, &facts, GenerationStamp(1003), world.now));
    assert_eq!(recoveries(&world.run(3000, &[0])), [(2, vec![0])]);
    // Dead.
    world.run(700_000, &[0]);
    assert!(world.cluster.start_block_recovery(id, &facts, GenerationStamp(1004), world.now));
    assert_eq!(recoveries(&world.run(3000, &[0])), [(2, vec![0])]);
    // Taken out of service, when nobody could know what the others have.
    let intent = AdminIntent::Decommission;
    world.cluster.set_admin_intent(&world.blocks, world.handle(0), intent, world.now);
    assert!(world.cluster.start_block_recovery(id, &facts, GenerationStamp(1005), world.now));
    assert_eq!(recoveries(&world.run(3000, &[0])), [(2, vec![0])]);
    // For good.
    world.run(6_000_000, &[0]);
    assert!(world.cluster.start_block_recovery(id, &facts, GenerationStamp(1006), world.now));
    assert_eq!(recoveries(&world.run(3000, &[0])), [(2, vec![])]);
}

/// Those that had it when the node was let go may have lost it since.
#[test]
fn a_recovery_is_told_of_a_node_that_was_let_go_and_is_silent() {
    for (id, facts) in [(block(1), replicated(2, 0, OPEN)), (group(1), rs(2, 1, 0, OPEN))] {
        let mut play = Play::new(5, 1);
        open(&mut play.world, id, facts, &[0, 1, 2][..facts.layout.width().max(2)]);
        play.decommission(1);
        play.until(1, AdminState::Decommissioned);
        play.kill(1);
        let (now, world) = (play.world.now, &mut play.world);
        assert!(world.cluster.start_block_recovery(id, &facts, GenerationStamp(1003), now));
        let (others, unit) = if id.is_striped() { (2, 1) } else { (1, 0) };
        assert_eq!(recoveries(&world.run(3000, &[1])), [(others, vec![unit])], "{id}");
    }
}

/// Those of which the writer has gone on without are named apart, for the others may have lost all.
#[test]
fn a_recovery_is_told_who_may_have_the_block_under_an_earlier_stamp() {
    let (first, unknown) = (Some(GenerationStamp(1001)), None);
    let id = block(1);
    let earlier = |world: &mut World, silent: &[usize], gs: u64| {
        let facts = world.blocks.0[&id];
        assert!(world.cluster.start_block_recovery(id, &facts, GenerationStamp(gs), world.now));
        let commands = world.run(3000, silent);
        let mut orders = commands.values().flatten().filter_map(|command| match command {
            Command::Recover(recoveries) => Some(recoveries[0].earlier.clone()),
            _ => None,
        });
        orders.next_back().expect("somebody leads it")
    };
    let places = |world: &World, of: &[(usize, Option<GenerationStamp>)]| {
        of.iter().map(|(node, gs)| (world.storage(*node), *gs)).collect::<Vec<_>>()
    };
    let mut world = World::new(4, 1);
    open(&mut world, id, replicated(3, 0, OPEN), &[0, 1, 2]);
    go_on(&mut world, id, &[Some(0), None, None]);
    let told = earlier(&mut world, &[], 1003);
    assert_eq!((told.places, told.away), (places(&world, &[(1, first), (2, first)]), vec![]));
    // One dies, and may come back.
    world.run(700_000, &[2]);
    let told = earlier(&mut world, &[2], 1004);
    assert_eq!((told.places, told.away), (places(&world, &[(1, first)]), vec![first]));
    // It has come back without it.
    world.register(registration(2, 0));
    world.full_report(2, &[]);
    world.run(700_000, &[2]);
    let told = earlier(&mut world, &[2], 1005);
    assert_eq!((told.places, told.away), (places(&world, &[(1, first)]), vec![]));

    // After a start: others may have one of which nobody has told.
    let mut world = World::new(4, 1);
    world.blocks.0.insert(id, BlockFacts { gs: LATER, ..replicated(2, 0, OPEN) });
    let state = ReplicaState::WaitingToBeRecovered;
    for (node, gs) in [(0, 1002), (1, 1001)] {
        let block = BlockRef { id, gs: GenerationStamp(gs), len: 70 };
        world.full_report(node, &[ReportedReplica { block, state, crc32c: None }]);
    }
    let told = earlier(&mut world, &[], 1003);
    assert_eq!((told.places, told.away), (places(&world, &[(1, first)]), vec![unknown]));
    world.run(7_000_000, &[]);
    let told = earlier(&mut world, &[], 1004);
    assert_eq!((told.places, told.away), (places(&world, &[(1, first)]), vec![]));
}

/// Nobody has what the writer went on with, nor will.
#[test]
fn a_node_that_the_writer_went_on_without_leads_a_recovery_if_there_is_no_other() {
    let mut world = World::new(3, 1);
    let id = block(1);
    open(&mut world, id, replicated(2, 0, OPEN), &[0, 1]);
    go_on(&mut world, id, &[Some(0), None]);
    let facts = world.blocks.0[&id];
    world.run(700_000, &[0]);
    let start = |world: &mut World, gs: u64| {
        world.cluster.start_block_recovery(id, &facts, GenerationStamp(gs), world.now)
    };
    assert!(!start(&mut world, 1003), "it may come back");
    let intent = AdminIntent::Decommission;
    world.cluster.set_admin_intent(&world.blocks, world.handle(0), intent, world.now);
    world.run(6_500_000, &[0]);
    assert!(start(&mut world, 1004));
    let commands = world.run(3000, &[0]);
    assert!(matches!(&commands[&1][..], [Command::Recover(_)]), "{commands:?}");
}

/// It knows nothing of what was acknowledged without it, so nobody waits for it.
#[test]
fn a_recovery_is_not_told_of_a_replica_that_the_writer_went_on_without() {
    let mut world = World::new(3, 1);
    let id = block(1);
    open(&mut world, id, replicated(3, 0, OPEN), &[0, 1, 2]);
    go_on(&mut world, id, &[Some(0), Some(1), None]);
    let old = BlockRef { id, gs: GenerationStamp(1001), len: 70 };
    let kind = ReplicaEventKind::Receiving;
    world.event(2, ReplicaEvent { block: old, kind, crc32c: None });
    let facts = world.blocks.0[&id];
    assert!(world.cluster.start_block_recovery(id, &facts, GenerationStamp(1003), world.now));
    assert_eq!(recoveries(&world.run(3000, &[])), [(2, vec![])]);
}

#[test]
fn a_recovery_is_told_of_a_dead_node_that_had_a_replica_before_the_writer_was_known() {
    let mut world = World::new(3, 1);
    let id = block(1);
    // As after a start of the NameNode: the replicas are all that is known.
    world.blocks.0.insert(id, replicated(3, 0, OPEN));
    for node in 0..3 {
        world.received(node, BlockRef { id, gs: GenerationStamp(1001), len: 70 });
    }
    world.run(700_000, &[0]);
    while world.cluster.drop_lost(&world.blocks) {}
    let facts = world.blocks.0[&id];
    assert!(world.cluster.start_block_recovery(id, &facts, GenerationStamp(1003), world.now));
    assert_eq!(recoveries(&world.run(3000, &[0])), [(2, vec![0])]);
}

/// A whole rack, or all, may still be down when the NameNode has started: that nobody has told of a block shows nothing.
#[test]
fn a_start_waits_for_replicas_that_nobody_has_told_of() {
    for (id, facts) in [(block(1), replicated(3, 0, OPEN)), (group(1), rs(3, 2, 0, OPEN))] {
        let mut world = World::new(3, 1);
        world.blocks.0.insert(id, facts);
        let may_have = |world: &World| world.cluster.has_recoverable_places(id, &facts, world.now);
        assert!(may_have(&world), "{id}");
        world.run(6_000_000, &[]);
        assert!(may_have(&world), "{id}");
        world.run(1_000_000, &[]);
        assert!(!may_have(&world), "{id}: a file is to be closed at last");
    }
    let mut world = World::new(3, 1);
    let id = block(1);
    let facts = replicated(3, 0, OPEN);
    world.blocks.0.insert(id, facts);
    let kind = ReplicaEventKind::Receiving;
    let torn = BlockRef { id, gs: GenerationStamp(1001), len: 70 };
    world.event(0, ReplicaEvent { block: torn, kind, crc32c: None });
    let start = |world: &mut World, gs: u64| {
        world.cluster.start_block_recovery(id, &facts, GenerationStamp(gs), world.now)
    };
    assert!(start(&mut world, 1003));
    assert_eq!(recoveries(&world.run(3000, &[])), [(1, vec![0, 0])]);
    world.run(7_000_000, &[]);
    assert!(start(&mut world, 1004));
    assert_eq!(recoveries(&world.run(3000, &[])), [(1, vec![])]);
}

/// The disk of the only one is lost, after a start of the NameNode.
#[test]
fn a_replica_that_nobody_was_given_and_that_is_deleted_is_waited_for_no_longer_than_others() {
    let mut world = World::new(3, 1);
    let id = block(1);
    let facts = replicated(3, 0, OPEN);
    world.blocks.0.insert(id, facts);
    let torn = BlockRef { id, gs: GenerationStamp(1001), len: 70 };
    let state = ReplicaState::WaitingToBeRecovered;
    world.full_report(0, &[ReportedReplica { block: torn, state, crc32c: None }]);
    world.deleted(0, torn);
    let may_have = |world: &World| world.cluster.has_recoverable_places(id, &facts, world.now);
    assert!(may_have(&world), "others may come");
    world.run(7_000_000, &[]);
    assert!(!may_have(&world), "its file is to be closed at last");
}

/// Another node is in the place of the only one that has told of it.
#[test]
fn a_block_that_only_a_node_has_that_is_given_up_is_lost_at_last() {
    for (id, facts) in [(block(1), replicated(3, 0, OPEN)), (group(1), rs(1, 1, 0, OPEN))] {
        let mut world = World::new(3, 1);
        world.blocks.0.insert(id, facts);
        let own_id = if id.is_striped() { id.internal(cairn_stripe::UnitIndex(0)) } else { id };
        let torn = BlockRef { id: own_id, gs: GenerationStamp(1001), len: 70 };
        let state = ReplicaState::WaitingToBeRecovered;
        world.full_report(2, &[ReportedReplica { block: torn, state, crc32c: None }]);
        world.register(Registration { uuid: "uuid-3".to_string(), ..registration(2, 0) });
        let may_have = |world: &World| world.cluster.has_recoverable_places(id, &facts, world.now);
        world.run(6_000_000, &[2, 3]);
        assert!(may_have(&world), "{id}");
        world.run(1_000_000, &[2, 3]);
        assert!(!may_have(&world), "{id}");
    }
}

#[test]
fn a_recovery_of_a_group_is_told_of_the_units_on_dead_nodes() {
    let mut world = World::new(6, 2);
    let id = group(1);
    open(&mut world, id, rs(3, 2, 0, OPEN), &[0, 1, 2, 3, 4]);
    world.run(700_000, &[1, 3]);
    let facts = world.blocks.0[&id];
    assert!(world.cluster.start_block_recovery(id, &facts, GenerationStamp(1003), world.now));
    assert_eq!(recoveries(&world.run(3000, &[1, 3])), [(3, vec![1, 3])]);
    // A writer that was given four places, and one that was given them by a NameNode that has ended.
    let (given, reported) = (group(2), group(3));
    open(&mut world, given, rs(3, 2, 0, OPEN), &[0, 2, 4, 5]);
    world.blocks.0.insert(reported, rs(3, 2, 0, OPEN));
    for node in [0, 2, 4] {
        let id = reported.internal(cairn_stripe::UnitIndex(node as u8));
        world.received(node, BlockRef { id, gs: GenerationStamp(1001), len: 70 });
    }
    for (id, want) in [(given, (4, vec![])), (reported, (3, vec![1, 3]))] {
        let facts = world.blocks.0[&id];
        assert!(world.cluster.start_block_recovery(id, &facts, GenerationStamp(1003), world.now));
        assert_eq!(recoveries(&world.run(3000, &[1, 3])), [want]);
    }
}

/// What a writer could not write, and has gone on without, nobody ever had; its node may be dead for good.
#[test]
fn a_recovery_of_a_group_does_not_wait_for_units_that_the_writer_went_on_without() {
    let mut world = World::new(7, 2);
    let id = group(1);
    open(&mut world, id, rs(3, 2, 0, OPEN), &[0, 1, 2, 3, 4]);
    go_on(&mut world, id, &[Some(0), Some(1), Some(2), None, None]);
    let facts = world.blocks.0[&id];
    assert!(world.cluster.start_block_recovery(id, &facts, GenerationStamp(1003), world.now));
    assert_eq!(recoveries(&world.run(3000, &[])), [(5, vec![])], "they may tell how far it was");
    world.run(700_000, &[2, 3]);
    assert!(world.cluster.start_block_recovery(id, &facts, GenerationStamp(1004), world.now));
    assert_eq!(recoveries(&world.run(3000, &[2, 3])), [(3, vec![2])]);
    // One that has come with an old stamp, and has died.
    let old = BlockRef { id: id.internal(cairn_stripe::UnitIndex(4)), ..world.good(id, 4) };
    world.received(4, BlockRef { gs: GenerationStamp(1001), ..old });
    world.run(700_000, &[2, 3, 4]);
    assert!(world.cluster.start_block_recovery(id, &facts, GenerationStamp(1005), world.now));
    assert_eq!(recoveries(&world.run(3000, &[2, 3, 4])), [(2, vec![2])]);
}

/// Its disks are empty, or in another machine that will not take as long as that.
#[test]
fn a_recovery_waits_for_a_node_in_whose_place_another_is_for_a_while() {
    for (id, facts) in [(block(1), replicated(3, 0, OPEN)), (group(1), rs(2, 1, 0, OPEN))] {
        let mut world = World::new(3, 1);
        open(&mut world, id, facts, &[0, 1, 2]);
        let other = Registration { uuid: "uuid-3".to_string(), ..registration(2, 0) };
        world.register(other);
        let away = |world: &mut World, gs: u64| {
            assert!(world.cluster.start_block_recovery(id, &facts, GenerationStamp(gs), world.now));
            recoveries(&world.run(3000, &[2, 3]))
                .into_iter()
                .map(|(_, away)| away.len())
                .sum::<usize>()
        };
        world.run(6_000_000, &[2, 3]);
        assert_eq!(away(&mut world, 1003), 1, "{id}");
        world.run(1_000_000, &[2, 3]);
        assert_eq!(away(&mut world, 1004), 0, "{id}");
    }
}

#[test]
fn a_unit_that_nobody_reports_is_missed_after_a_few_heartbeats() {
    let mut world = World::new(10, 2);
    let id = group(1);
    // Of one cell: a data unit and three of parity.
    open(&mut world, id, rs(6, 3, 0, OPEN), &[0, 1, 2, 3, 4, 5, 6, 7, 8]);
    world.blocks.0.insert(id, rs(6, 3, 100, LIVE));
    for node in [0, 6, 7] {
        world.received(node, world.good(id, node as u8));
    }
    world.cluster.block_completed(&world.blocks, id);
    let is_mended = |commands: &BTreeMap<usize, Vec<Command>>| {
        commands.values().flatten().any(|command| matches!(command, Command::Reconstruct(_)))
    };
    assert!(!is_mended(&world.run(24_000, &[8])), "its report may be late");
    assert!(is_mended(&world.run(12_000, &[8])));
}
