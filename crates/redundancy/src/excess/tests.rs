//! No deletion takes the last good replica, whatever was told in between.

use crate::fixture::*;
use crate::*;
use cairn_stripe::GenerationStamp;

mod doubt;
mod spread;

const LIVE: BlockState = BlockState::Complete;

/// What a node is told to delete by its next heartbeat.
fn told_to_delete(world: &mut World, node: usize) -> Vec<BlockRef> {
    let commands = world.heartbeat(node).into_iter();
    let deletions = commands.filter_map(|command| match command {
        Command::Invalidate(blocks) => Some(blocks),
        _ => None,
    });
    deletions.flatten().collect()
}

fn finalized(block: BlockRef) -> ReportedReplica {
    ReportedReplica { block, state: ReplicaState::Finalized, crc32c: None }
}

/// Node `node` tells on its storage `storage`, which it need not have had before.
fn received_on(world: &mut World, node: usize, storage: &str, block: BlockRef) {
    let kind = ReplicaEventKind::Received { delete_hint: None };
    let event = ReplicaEvent { block, kind, crc32c: None };
    let (handle, storage) = (world.handle(node), (storage, StorageType::Disk));
    world.cluster.incremental_report(&world.blocks, handle, storage, &[event]);
}

/// Has two storages on node 0, both reported.
fn two_volumes(world: &mut World) {
    let storages = ["DS-0", "DS-0b"].map(|uuid| {
        let usage = StorageUsage { capacity: GIB, remaining: GIB, ..StorageUsage::default() };
        StorageReport { uuid: uuid.to_string(), usage, ..StorageReport::default() }
    });
    let heartbeat = Heartbeat { storages: storages.to_vec(), ..Heartbeat::default() };
    world.beat("uuid-0", heartbeat);
    let (call, storage) = (world.report_call(0), ("DS-0b", StorageType::Disk));
    world.cluster.full_report(&world.blocks, call, storage, &[], world.now);
}

fn deletions_on_both_volumes(world: &mut World) -> Vec<Command> {
    let usage = StorageUsage { capacity: GIB, remaining: GIB, ..StorageUsage::default() };
    let storages = ["DS-0", "DS-0b"].map(|uuid| StorageReport {
        uuid: uuid.to_string(),
        usage,
        ..StorageReport::default()
    });
    let heartbeat = Heartbeat { storages: storages.to_vec(), ..Heartbeat::default() };
    world.beat("uuid-0", heartbeat).commands
}

#[test]
fn a_replica_that_moves_to_another_volume_of_its_node_is_not_surplus() {
    for (id, facts) in [(block(1), replicated(1, 100, LIVE)), (group(1), rs(3, 2, 5000, LIVE))] {
        let mut world = World::new(5, 1);
        two_volumes(&mut world);
        let nodes: &[usize] = if id.is_striped() { &[0, 1, 2, 3, 4] } else { &[0] };
        world.store(id, facts, nodes);
        let moved = world.good(id, 0);
        received_on(&mut world, 0, "DS-0b", moved);
        assert_eq!(deletions_on_both_volumes(&mut world), []);
        let places = world.cluster.locations(id);
        let on_node: Vec<_> = places.iter().filter(|at| at.node == world.handle(0)).collect();
        assert_eq!(on_node.len(), 1);
        assert_eq!(world.cluster.storage(on_node[0].storage).uuid, "DS-0b");
        // The full report of the first volume comes late and changes nothing.
        world.full_report(0, &[]);
        assert_eq!(world.cluster.locations(id).len(), places.len());
    }
}

#[test]
fn a_node_that_writes_to_another_volume_is_one_node_of_the_pipeline() {
    let mut world = World::new(3, 1);
    two_volumes(&mut world);
    let id = block(1);
    let facts = replicated(2, 0, BlockState::UnderConstruction);
    world.blocks.0.insert(id, facts);
    let targets = [Some(world.storage(0)), Some(world.storage(1))];
    world.cluster.block_allocated(id, facts.gs, &targets);
    let written = BlockRef { id, gs: facts.gs, len: 100 };
    received_on(&mut world, 0, "DS-0b", written);
    assert_eq!(world.cluster.pipeline(id).len(), 2);
    world.received(1, written);
    world.blocks.0.insert(id, replicated(2, 100, LIVE));
    world.cluster.block_completed(&world.blocks, id);
    assert_eq!(world.cluster.tally(id, &world.blocks.0[&id]).live, 2);
    assert_eq!(world.cluster.stats(world.now).pending_reconstruction, 0, "nothing is awaited");
}

#[test]
fn a_bad_replica_that_is_being_deleted_does_not_count_as_good_again() {
    let mut world = World::new(2, 1);
    let id = block(1);
    world.store(id, replicated(1, 100, LIVE), &[0]);
    let copy = world.good(id, 0);
    let handle = world.handle(0);
    // Of two good ones node 1's would go, which has less room.
    world.beat("uuid-1", heartbeat_of(1, GIB));
    world.cluster.report_bad(&world.blocks, handle, "DS-0", copy).unwrap();
    world.received(1, copy);
    // A report that node 0 had made before it deleted its replica.
    world.full_report(0, &[finalized(copy)]);
    assert_eq!(told_to_delete(&mut world, 1), [], "the good one stays");
    assert_eq!(told_to_delete(&mut world, 0), [copy]);
    world.full_report(0, &[finalized(copy)]);
    assert_eq!(told_to_delete(&mut world, 1), []);
    assert_eq!(told_to_delete(&mut world, 0), [copy], "it is told again");
    world.deleted(0, copy);
    assert_eq!(world.places(id), [(1, 0)]);
    let stats = world.cluster.stats(world.now);
    assert_eq!((stats.excess, stats.replicated.corrupt), (0, 0));
}

#[test]
fn a_stale_replica_that_was_to_be_deleted_and_has_caught_up_is_kept() {
    let mut world = World::new(3, 1);
    let id = block(1);
    world.store(id, replicated(2, 100, LIVE), &[0]);
    let good = world.good(id, 0);
    let stale = BlockRef { gs: GenerationStamp(900), ..good };
    world.received(1, stale);
    world.received(1, good);
    assert_eq!(world.places(id), [(0, 0), (1, 0)]);
    assert_eq!(world.cluster.stats(world.now).excess, 0);
    assert!(told_to_delete(&mut world, 1).iter().all(|told| told.gs == stale.gs));
}

#[test]
fn surplus_that_was_not_told_to_go_is_kept_when_the_others_are_lost() {
    let mut world = World::new(2, 1);
    let id = block(1);
    world.store(id, replicated(2, 100, LIVE), &[0, 1]);
    world.blocks.0.insert(id, replicated(1, 100, LIVE));
    world.cluster.block_changed(&world.blocks, id);
    let kept = world.places(id)[0].0;
    let surplus = 1 - kept;
    let handle = world.handle(kept);
    world.cluster.node_died(&world.blocks, handle);
    assert_eq!(told_to_delete(&mut world, surplus), []);
    assert_eq!(world.places(id), [(surplus, 0)]);
    assert_eq!(world.cluster.stats(world.now).excess, 0);
}

#[test]
fn surplus_whose_deletion_was_lost_on_the_way_is_kept_when_the_others_are_lost() {
    let mut world = World::new(2, 1);
    let id = block(1);
    world.store(id, replicated(2, 100, LIVE), &[0, 1]);
    world.blocks.0.insert(id, replicated(1, 100, LIVE));
    world.cluster.block_changed(&world.blocks, id);
    let kept = world.places(id)[0].0;
    let surplus = 1 - kept;
    let replica = world.good(id, 0);
    // The answer with this command never arrives.
    assert_eq!(told_to_delete(&mut world, surplus), [replica]);
    let handle = world.handle(kept);
    world.cluster.node_died(&world.blocks, handle);
    world.full_report(surplus, &[finalized(replica)]);
    assert_eq!(told_to_delete(&mut world, surplus), []);
    assert_eq!(world.places(id), [(surplus, 0)]);
}

/// The order to delete it waits, or is lost on its way, and a writer goes on with it alone.
#[test]
fn surplus_that_a_writer_opens_is_surplus_no_more() {
    for is_told in [false, true] {
        let mut world = World::new(3, 1);
        let id = block(1);
        let before = replicated(2, 100, LIVE);
        world.store(id, before, &[0, 1, 2]);
        let counted = world.places(id);
        let surplus = (0..3).find(|node| !counted.contains(&(*node, 0))).unwrap();
        if is_told {
            assert_eq!(told_to_delete(&mut world, surplus), [world.good(id, 0)]);
        }
        let open = BlockFacts { state: BlockState::UnderConstruction, ..before };
        world.blocks.0.insert(id, open);
        world.cluster.block_reopened(id, &before);
        assert_eq!(told_to_delete(&mut world, surplus), [], "it is to be written to");
        let facts = BlockFacts { gs: GenerationStamp(1002), ..open };
        world.blocks.0.insert(id, facts);
        let targets = [Some(world.storage(surplus))];
        world.cluster.pipeline_updated(id, facts.gs, &targets);
        let whole = BlockRef { id, gs: facts.gs, len: 150 };
        world.received(surplus, whole);
        assert_eq!(told_to_delete(&mut world, surplus), [], "nobody else has it");
        world.blocks.0.insert(id, BlockFacts { state: LIVE, len: 150, ..facts });
        world.cluster.block_completed(&world.blocks, id);
        world.run(400_000, &[]);
        assert!(world.places(id).contains(&(surplus, 0)), "told: {is_told}");
    }
}

#[test]
fn surplus_that_a_writer_opens_and_goes_on_without_is_deleted() {
    let mut world = World::new(3, 1);
    let id = block(1);
    let before = replicated(2, 100, LIVE);
    world.store(id, before, &[0, 1, 2]);
    let counted = world.places(id);
    let surplus = (0..3).find(|node| !counted.contains(&(*node, 0))).unwrap();
    assert_eq!(told_to_delete(&mut world, surplus), [world.good(id, 0)]);
    let open = BlockFacts { state: BlockState::UnderConstruction, ..before };
    world.blocks.0.insert(id, open);
    world.cluster.block_reopened(id, &before);
    let old = BlockRef { id, gs: GenerationStamp(1002), len: 100 };
    world.event(
        surplus,
        ReplicaEvent { block: old, kind: ReplicaEventKind::Receiving, crc32c: None },
    );
    let facts = BlockFacts { gs: GenerationStamp(1003), ..before };
    world.blocks.0.insert(id, facts);
    let targets: Vec<_> = counted.iter().map(|(node, _)| Some(world.storage(*node))).collect();
    world.cluster.pipeline_updated(id, facts.gs, &targets);
    for (node, _) in &counted {
        world.received(*node, world.good(id, 0));
    }
    world.cluster.block_completed(&world.blocks, id);
    assert_eq!(told_to_delete(&mut world, surplus), [old]);
}

/// Another machine may be the node by now, and have a good one.
#[test]
fn what_a_node_was_to_delete_when_it_registers_waits_for_its_report() {
    let mut world = World::new(3, 1);
    let id = block(1);
    world.store(id, replicated(2, 100, LIVE), &[0, 1]);
    let short = BlockRef { len: 50, ..world.good(id, 0) };
    world.received(2, short);
    assert_eq!(world.cluster.stats(world.now).excess, 1, "it is to go");
    world.register(registration(2, 0));
    for _ in 0..2 {
        assert_eq!(told_to_delete(&mut world, 2), []);
    }
    world.full_report(2, &[finalized(short)]);
    assert_eq!(told_to_delete(&mut world, 2), [short]);
}

/// Its node was told to delete the short one, and is another machine by now.
#[test]
fn a_whole_replica_is_not_deleted_because_its_node_had_a_short_one() {
    let mut world = World::new(3, 1);
    let id = block(1);
    world.store(id, replicated(2, 100, LIVE), &[0, 1]);
    let good = world.good(id, 0);
    let short = BlockRef { len: 50, ..good };
    world.received(2, short);
    assert_eq!(told_to_delete(&mut world, 2), [short]);
    world.register(registration(2, 0));
    let handle = world.handle(0);
    world.cluster.node_died(&world.blocks, handle);
    world.full_report(2, &[finalized(good)]);
    assert_eq!(told_to_delete(&mut world, 2), []);
    assert_eq!(world.places(id), [(1, 0), (2, 0)]);
    assert_eq!(world.cluster.stats(world.now).excess, 0);
}

#[test]
fn more_copies_wanted_take_a_deletion_back() {
    let mut world = World::new(3, 1);
    let id = block(1);
    world.store(id, replicated(3, 100, LIVE), &[0, 1, 2]);
    for copies in [1, 2] {
        world.blocks.0.insert(id, replicated(copies, 100, LIVE));
        world.cluster.block_changed(&world.blocks, id);
    }
    let told: usize = (0..3).map(|node| told_to_delete(&mut world, node).len()).sum();
    assert_eq!(told, 1);
    assert_eq!(world.places(id).len(), 2);
}

#[test]
fn deletions_of_a_failed_volume_are_forgotten() {
    let mut world = World::new(2, 1);
    let id = block(1);
    world.store(id, replicated(2, 100, LIVE), &[0, 1]);
    world.blocks.0.insert(id, replicated(1, 100, LIVE));
    world.cluster.block_changed(&world.blocks, id);
    let kept = world.places(id)[0].0;
    let surplus = 1 - kept;
    let mut failed = heartbeat_of(surplus, GIB);
    failed.storages[0].state = StorageState::Failed;
    // The command of this heartbeat is lost with the volume; nothing is to be told later.
    world.cluster.enter_safe_mode();
    world.beat(&format!("uuid-{surplus}"), failed);
    let handle = world.handle(kept);
    world.cluster.node_died(&world.blocks, handle);
    world.heartbeat(surplus);
    let replica = world.good(id, 0);
    world.full_report(surplus, &[finalized(replica)]);
    world.cluster.leave_safe_mode(false);
    assert_eq!(told_to_delete(&mut world, surplus), []);
    assert_eq!(world.places(id), [(surplus, 0)]);
}

#[test]
fn replicas_of_a_later_state_are_not_deleted_by_a_namenode_with_an_older_one() {
    let mut world = World::new(1, 1);
    let later = BlockRef { id: block(9), gs: GenerationStamp(2_000_000), len: 100 };
    let ours = BlockRef { id: block(8), gs: GenerationStamp(1001), len: 100 };
    world.full_report(0, &[finalized(later), finalized(ours)]);
    assert_eq!(told_to_delete(&mut world, 0), [ours]);
}

#[test]
fn lists_of_targets_that_are_too_long_are_cut() {
    let mut world = World::new(3, 1);
    let id = group(1);
    let facts = rs(2, 1, 0, BlockState::UnderConstruction);
    world.blocks.0.insert(id, facts);
    let targets = vec![Some(world.storage(0)); 300];
    world.cluster.pipeline_updated(id, facts.gs, &targets);
    assert!(world.cluster.expected(id).iter().all(|e| e.unit.0 < 16));
    world.blocks.0.insert(id, rs(2, 1, 2048, LIVE));
    let done = Synchronized {
        block: BlockRef { id, gs: facts.gs, len: 0 },
        new_gs: facts.gs,
        new_len: 2048,
        close_file: true,
        delete_block: false,
        targets,
    };
    world.cluster.block_synchronized(&world.blocks, id, &done);
    assert!(world.cluster.locations(id).iter().all(|at| at.unit.0 < 3));
}

#[test]
fn a_report_of_a_deletion_finds_its_entry_among_many() {
    let mut world = World::new(1, 1);
    let unwanted = |n: i64| BlockRef { id: block(n), gs: GenerationStamp(1001), len: 7 };
    world.full_report(0, &(1..=3).map(|n| finalized(unwanted(n))).collect::<Vec<_>>());
    // Deletions are reported with length 0.
    world.deleted(0, BlockRef { len: 0, ..unwanted(2) });
    assert_eq!(told_to_delete(&mut world, 0), [unwanted(1), unwanted(3)]);
}

/// Found by simulation: the order to delete was lost with the answer to a heartbeat.
#[test]
fn a_bad_replica_that_was_not_deleted_is_deleted_again() {
    let mut world = World::new(3, 1);
    world.store(block(1), replicated(2, 100, LIVE), &[0, 1]);
    let old = BlockRef { gs: GenerationStamp(1000), ..world.good(block(1), 0) };
    world.received(2, old);
    assert_eq!(told_to_delete(&mut world, 2), [old]);
    assert_eq!(told_to_delete(&mut world, 2), []);
    world.full_report(2, &[finalized(old)]);
    assert_eq!(told_to_delete(&mut world, 2), [old]);
}

/// Found by simulation: with as many nodes as units, the node of a bad one is the only one that can take
/// a good one.
#[test]
fn a_bad_unit_makes_room_where_no_other_node_is_left() {
    for (id, facts) in [(block(1), replicated(3, 100, LIVE)), (group(1), rs(2, 1, 5000, LIVE))] {
        let mut world = World::new(3, 1);
        world.store(id, facts, &[0, 1, 2]);
        let bad = world.good(id, 2);
        let node = world.handle(2);
        world.cluster.report_bad(&world.blocks, node, "", bad).unwrap();
        let told = world.run(120_000, &[]).remove(&2).unwrap_or_default();
        assert!(told.contains(&Command::Invalidate(vec![bad])), "{told:?}");
        world.deleted(2, bad);
        let told: Vec<Command> = world.run(120_000, &[]).into_values().flatten().collect();
        let mends = |c: &Command| matches!(c, Command::Transfer(_) | Command::Reconstruct(_));
        assert!(told.iter().any(mends), "{told:?}");
    }
}

/// Found by simulation: what is only on a node that leaves has no place either while all other nodes have a
/// unit, one of them a bad one.
#[test]
fn a_bad_unit_makes_room_for_one_of_a_leaving_node() {
    let mut world = World::new(6, 1);
    let id = group(1);
    world.store(id, rs(3, 2, 9000, LIVE), &[0, 1, 2, 3, 4]);
    let (bad, node, leaving) = (world.good(id, 2), world.handle(5), world.handle(2));
    world.received(5, bad);
    let decommission = AdminState::DecommissionInProgress;
    world.cluster.set_admin_state(&world.blocks, leaving, decommission);
    world.cluster.report_bad(&world.blocks, node, "", bad).unwrap();
    let told = world.run(120_000, &[]).remove(&5).unwrap_or_default();
    assert!(told.contains(&Command::Invalidate(vec![bad])), "{told:?}");
}

/// Found by simulation: the recovery of a group with fewer units than decoding needs fails for ever.
#[test]
fn a_recovery_needs_as_many_units_as_decoding() {
    let mut world = World::new(5, 1);
    let facts = rs(3, 2, 0, BlockState::UnderConstruction);
    world.blocks.0.insert(group(1), facts);
    world.run(7_000_000, &[]);
    for (unit, is_enough) in [(0, false), (3, false), (4, true)] {
        let id = group(1).internal(cairn_stripe::UnitIndex(unit));
        let block = BlockRef { id, gs: facts.gs, len: 10 };
        let event = ReplicaEvent { block, kind: ReplicaEventKind::Receiving, crc32c: None };
        world.event(usize::from(unit), event);
        assert_eq!(world.cluster.has_recoverable_places(group(1), &facts, world.now), is_enough);
    }
}

/// What is chosen on a node that has just died is as good as kept; the other copy would be lost with it.
#[test]
fn surplus_goes_from_a_node_that_is_not_heard_of() {
    for (id, facts) in [(block(1), replicated(3, 100, LIVE)), (group(1), rs(3, 2, 5000, LIVE))] {
        for silent in [0, 5] {
            let mut world = World::new(6, 3);
            let heard = 5 - silent;
            let units: Vec<usize> =
                if id.is_striped() { vec![silent, 1, 2, 3, 4] } else { vec![silent, 1, 2] };
            world.store(id, facts, &units);
            world.run(15_000, &[silent]);
            let unit = world.good(id, 0);
            world.received(heard, unit);
            let told = world.run(9000, &[silent]);
            let told = told.into_values().flatten();
            assert!(
                !told.into_iter().any(|command| matches!(command, Command::Invalidate(_))),
                "{id}"
            );
            assert_eq!(told_to_delete(&mut world, silent), [unit], "{id}: node {silent} is back");
        }
    }
}
