//! What is told by those who know less, or wrong: nothing is deleted on such an account.

use super::*;
use cairn_stripe::{BlockId, UnitIndex};
use std::collections::BTreeSet;

fn all_told(world: &mut World, nodes: usize) -> Vec<(usize, BlockRef)> {
    (0..nodes).flat_map(|n| told_to_delete(world, n).into_iter().map(move |b| (n, b))).collect()
}

/// A group of less than a stripe has units without bytes; a DataNode may hold them as empty files.
#[test]
fn units_without_bytes_stand_for_no_others() {
    let mut world = World::new(8, 1);
    let (id, facts) = (group(1), rs(3, 2, 1000, LIVE));
    world.blocks.0.insert(id, facts);
    let empty = world.good(id, 1);
    world.received(1, empty);
    assert_eq!(empty.len, 0);
    assert!(!world.cluster.min_reached(id, &facts), "its data is nowhere");
    for unit in [0, 3] {
        let block = world.good(id, unit);
        world.received(usize::from(unit), block);
    }
    let verdict = Verdict::of(&facts, &world.cluster.replicas(id, &facts), 1);
    assert_eq!((world.cluster.tally(id, &facts).live, verdict.lacking()), (2, 1));
    let rebuilt: Vec<Reconstruction> = works(&mut world);
    let units: Vec<u8> = rebuilt[0].targets.iter().map(|(_, unit)| unit.0).collect();
    assert_eq!(units, [4], "the parity unit that is not there");
    assert!(rebuilt[0].sources.iter().all(|(_, unit)| unit.0 != 1), "nothing can be read from it");
}

#[test]
fn a_bad_unit_is_kept_while_only_an_empty_one_makes_up_the_number() {
    let mut world = World::new(8, 1);
    let id = group(1);
    world.blocks.0.insert(id, rs(3, 2, 1000, LIVE));
    for unit in [0, 1, 3, 4] {
        let block = world.good(id, unit);
        world.received(usize::from(unit), block);
    }
    let (bad, node) = (world.good(id, 0), world.handle(0));
    world.cluster.report_bad(&world.blocks, node, "", bad).unwrap();
    assert_eq!(told_to_delete(&mut world, 0), []);
}

/// It was moved away, and deleted there. Before its node could say so that was cut off, and is in maintenance now.
#[test]
fn what_a_node_in_maintenance_was_told_to_delete_is_not_taken_to_come_back() {
    let mut world = World::new(6, 1);
    let id = group(1);
    world.store(id, rs(2, 1, 4096, LIVE), &[0, 1, 2]);
    let moved = world.good(id, 1);
    let kind = ReplicaEventKind::Received { delete_hint: Some("uuid-1".to_string()) };
    world.event(3, ReplicaEvent { block: moved, kind, crc32c: None });
    assert_eq!(told_to_delete(&mut world, 1), [moved]);
    let until_ms = world.now.wall_ms + 100_000_000;
    let (node, intent) = (world.handle(1), AdminIntent::Maintenance { until_ms });
    world.cluster.set_admin_intent(&world.blocks, node, intent, world.now);
    let holder = world.handle(3);
    world.cluster.report_bad(&world.blocks, holder, "", moved).unwrap();
    let orders = world.run(900_000, &[1]).into_values().flatten();
    let rebuilt = orders.filter_map(|c| match c {
        Command::Reconstruct(works) => Some(works),
        _ => None,
    });
    let is_it = |work: &Reconstruction| work.targets.iter().any(|(_, unit)| unit.0 == 1);
    assert!(rebuilt.flatten().any(|work| is_it(&work)), "nobody has it");
}

fn works(world: &mut World) -> Vec<Reconstruction> {
    let commands = world.run(6000, &[]).into_values().flatten();
    commands
        .filter_map(|c| if let Command::Reconstruct(w) = c { Some(w) } else { None })
        .flatten()
        .collect()
}

/// A reader whose locations are older than the last append tells of a replica that is not there any more.
#[test]
fn a_bad_replica_of_another_stamp_is_not_the_one_that_is_there() {
    let mut world = World::new(2, 1);
    let id = block(1);
    world.store(id, replicated(2, 100, LIVE), &[0, 1]);
    let (good, node) = (world.good(id, 0), world.handle(0));
    for gs in [GenerationStamp(1000), GenerationStamp(1002)] {
        let other = BlockRef { gs, ..good };
        assert!(world.cluster.report_bad(&world.blocks, node, "", other).is_err());
    }
    assert_eq!(world.cluster.tally(id, &world.blocks.0[&id]).live, 2);
    assert_eq!(all_told(&mut world, 2), []);
}

/// Were its deletion still under way, and another copy surplus on its account, both would go.
#[test]
fn a_replica_whose_length_turns_out_to_be_right_is_not_deleted_as_a_bad_one() {
    for told in [false, true] {
        let mut world = World::new(2, 1);
        let id = block(1);
        world.store(id, replicated(1, 100, LIVE), &[0]);
        // Of two good ones node 0's would go, which has less room.
        world.beat("uuid-0", heartbeat_of(0, GIB));
        let good = world.good(id, 0);
        world.received(1, BlockRef { len: 99, ..good });
        let mut gone: BTreeSet<usize> = BTreeSet::new();
        if told {
            assert_eq!(told_to_delete(&mut world, 1).len(), 1);
            gone.insert(1);
        }
        world.received(1, good);
        gone.extend(all_told(&mut world, 2).into_iter().map(|(node, _)| node));
        assert_eq!(gone.into_iter().collect::<Vec<_>>(), [usize::from(told)], "one of them stays");
        // One that may be gone any moment is not chosen for that.
        let excess = world.cluster.stats(world.now).excess;
        assert_eq!((world.places(id).len(), excess), if told { (2, 0) } else { (1, 1) });
    }
}

#[test]
fn a_deletion_does_not_hit_the_next_replica_of_the_same_place() {
    let mut world = World::new(2, 1);
    let id = block(1);
    world.beat("uuid-1", heartbeat_of(1, GIB));
    world.store(id, replicated(1, 100, LIVE), &[0]);
    let good = world.good(id, 0);
    world.received(1, good);
    assert_eq!(world.places(id), [(0, 0)], "the other is surplus");
    // It is gone before its node was told; then one is wanted there again.
    world.full_report(1, &[]);
    world.blocks.0.insert(id, replicated(2, 100, LIVE));
    world.cluster.block_changed(&world.blocks, id);
    world.received(1, good);
    assert_eq!(world.places(id), [(0, 0), (1, 0)]);
    assert_eq!(all_told(&mut world, 2), []);
}

#[test]
fn a_bad_replica_that_moves_to_another_volume_stays_bad() {
    let mut world = World::new(2, 1);
    two_volumes(&mut world);
    let id = block(1);
    world.store(id, replicated(1, 100, LIVE), &[0]);
    let (bad, node) = (world.good(id, 0), world.handle(0));
    world.cluster.report_bad(&world.blocks, node, "DS-0", bad).unwrap();
    received_on(&mut world, 0, "DS-0b", bad);
    let places = world.cluster.locations(id);
    assert_eq!(places.iter().map(|place| place.corrupt).collect::<Vec<_>>(), [true]);
    world.received(1, bad);
    assert_eq!(told_to_delete(&mut world, 1), [], "the good one stays");
}

fn invalidations(
    commands: std::collections::BTreeMap<usize, Vec<Command>>,
) -> Vec<(usize, BlockRef)> {
    let of_node = |(node, commands): (usize, Vec<Command>)| {
        let orders = commands.into_iter().filter_map(|command| match command {
            Command::Invalidate(blocks) => Some(blocks),
            _ => None,
        });
        orders.flatten().map(move |block| (node, block)).collect::<Vec<_>>()
    };
    commands.into_iter().flat_map(of_node).collect()
}

/// A node that is away for a moment could take the good one: the bad one is kept for a while.
#[test]
fn a_bad_unit_makes_room_only_when_no_node_could_take_a_good_one_for_a_while() {
    let mut world = World::new(6, 1);
    let id = group(1);
    world.store(id, rs(3, 2, 9000, LIVE), &[0, 1, 2, 3, 4]);
    let away = world.handle(5);
    world.cluster.node_died(&world.blocks, away);
    let (bad, node) = (world.good(id, 1), world.handle(1));
    world.cluster.report_bad(&world.blocks, node, "", bad).unwrap();
    assert_eq!(invalidations(world.run(57_000, &[5])), []);
    world.register(registration(5, 0));
    world.full_report(5, &[]);
    let commands = world.run(6000, &[]);
    let work = commands.values().flatten().find_map(|command| match command {
        Command::Reconstruct(works) => works.first(),
        _ => None,
    });
    let [(storage, unit)] = work.unwrap().targets[..] else { panic!("{work:?}") };
    assert_eq!((world.number(storage), unit.0), (5, 1));
    assert_eq!(invalidations(commands), []);
}

/// Those that are silent may be dead: what is left of the bad one may be needed.
#[test]
fn a_bad_unit_is_kept_while_those_that_could_do_without_it_are_silent() {
    let mut world = World::new(5, 1);
    let id = group(1);
    world.store(id, rs(3, 2, 9000, LIVE), &[0, 1, 2, 3, 4]);
    let (bad, node) = (world.good(id, 1), world.handle(1));
    world.cluster.report_bad(&world.blocks, node, "", bad).unwrap();
    assert_eq!(invalidations(world.run(400_000, &[3, 4])), []);
    assert!(!invalidations(world.run(200_000, &[])).is_empty(), "they are heard of again");
}

/// A unit with one bad chunk is still good for the others if a further unit is lost.
#[test]
fn bad_units_make_room_one_after_the_other() {
    let mut world = World::new(5, 1);
    let id = group(1);
    world.store(id, rs(3, 2, 9000, LIVE), &[0, 1, 2, 3, 4]);
    for unit in [1, 3] {
        let (bad, node) = (world.good(id, unit), world.handle(usize::from(unit)));
        world.cluster.report_bad(&world.blocks, node, "", bad).unwrap();
    }
    let mut gone = Vec::new();
    for _ in 0..2 {
        let told = invalidations(world.run(120_000, &[]));
        let [(node, bad)] = told[..] else { panic!("{told:?}") };
        world.deleted(node, bad);
        assert_eq!(world.cluster.tally(id, &world.blocks.0[&id]).corrupt, 1 - gone.len());
        gone.push(node);
        let work = works(&mut world).remove(0);
        let [(storage, unit)] = work.targets[..] else { panic!("{work:?}") };
        let rebuilt = world.good(id, unit.0);
        world.received(world.number(storage), rebuilt);
    }
    assert_eq!(world.cluster.tally(id, &world.blocks.0[&id]).live, 5);
}

/// Found by simulation: a node that leaves has the only good one, and stays until another one has taken that.
#[test]
fn a_bad_replica_makes_room_for_what_only_a_leaving_node_has() {
    for (admin, makes_room) in
        [(AdminState::DecommissionInProgress, true), (AdminState::Decommissioned, false)]
    {
        let mut world = World::new(2, 1);
        let id = block(1);
        world.store(id, replicated(1, 100, LIVE), &[0]);
        let leaving = world.handle(0);
        world.cluster.set_admin_state(&world.blocks, leaving, admin);
        let good = world.good(id, 0);
        let bad = BlockRef { gs: GenerationStamp(good.gs.0 - 1), ..good };
        world.received(1, bad);
        let told = invalidations(world.run(120_000, &[]));
        assert_eq!(told, if makes_room { vec![(1, bad)] } else { vec![] }, "{admin}");
        if makes_room {
            world.deleted(1, bad);
            world.run(6000, &[]);
            world.received(1, good);
            world.run(120_000, &[]);
            assert_eq!(world.cluster.node(leaving).admin, AdminState::Decommissioned);
        }
    }
}

/// The NameNode was started with a state from before an append.
#[test]
fn a_replica_with_a_stamp_from_the_future_is_kept() {
    for nodes in [3, 4] {
        let mut world = World::new(nodes, 1);
        let id = block(1);
        world.store(id, replicated(3, 100, LIVE), &[0, 1]);
        let good = world.good(id, 0);
        world.received(2, BlockRef { gs: GenerationStamp(1_000_001), len: 150, ..good });
        if nodes == 4 {
            world.received(3, good);
        }
        assert_eq!(invalidations(world.run(400_000, &[])), [], "{nodes} nodes");
        assert_eq!(world.places(id).len(), nodes);
        // Another file has got that stamp by now, and this one has not: it is no future any more.
        world.received(2, BlockRef { gs: GenerationStamp(999_999), ..good });
        assert_eq!(invalidations(world.run(400_000, &[]))[0].0, 2);
    }
}

/// Node 1 holds surplus whose deletion was ordered, and the order was lost.
fn order_lost(world: &mut World) -> BlockId {
    let id = block(1);
    world.beat("uuid-1", heartbeat_of(1, GIB));
    world.store(id, replicated(1, 100, LIVE), &[0, 1]);
    assert_eq!(told_to_delete(world, 1).len(), 1);
    assert_eq!(world.places(id), [(0, 0)]);
    id
}

#[test]
fn an_order_to_delete_that_was_lost_is_given_again() {
    let mut world = World::new(2, 1);
    let id = order_lost(&mut world);
    assert_eq!(invalidations(world.run(297_000, &[])), []);
    let good = world.good(id, 0);
    assert_eq!(invalidations(world.run(6000, &[])), [(1, good)]);
    assert_eq!(invalidations(world.run(303_000, &[])), [(1, good)], "and again");
    world.deleted(1, good);
    assert_eq!(invalidations(world.run(700_000, &[])), []);
    assert_eq!(
        (world.cluster.blocks.ordered_count(), world.cluster.stats(world.now).excess),
        (0, 0)
    );
}

/// A replicated block and a group, of each of which node 1 has been told to delete what is surplus.
fn told_of_surplus() -> [(World, BlockRef); 2] {
    [(block(1), replicated(1, 100, LIVE)), (group(1), rs(2, 1, 5000, LIVE))].map(|(id, facts)| {
        let mut world = World::new(4, 1);
        let nodes: &[usize] = if id.is_striped() { &[0, 2, 3] } else { &[0] };
        world.store(id, facts, nodes);
        let good = world.good(id, 0);
        world.beat("uuid-1", heartbeat_of(1, GIB));
        world.received(1, good);
        assert_eq!(told_to_delete(&mut world, 1), [good]);
        (world, good)
    })
}

/// A balancer has put it on node 1 again and names node 0 as the one to lose it: nobody is told to.
fn moved_here(world: &mut World, good: BlockRef) {
    let kind = ReplicaEventKind::Received { delete_hint: Some("uuid-0".to_string()) };
    world.event(1, ReplicaEvent { block: good, kind, crc32c: None });
    assert_eq!(all_told(world, 4), []);
}

/// Found by simulation: a second order was on its way when the node had told of the deletion, and a balancer
/// put the same unit there again. With the unit that the hint named, both were gone.
#[test]
fn what_comes_while_an_order_to_delete_it_is_under_way_makes_nothing_else_surplus() {
    for (mut world, good) in told_of_surplus() {
        // A report that was made before is taken in after the order.
        world.full_report(1, &[finalized(good)]);
        assert_eq!(told_to_delete(&mut world, 1), [good], "it is told again");
        world.deleted(1, good);
        moved_here(&mut world, good);
        assert_eq!(invalidations(world.run(297_000, &[])), []);
        // One of the two has to go all the same.
        assert_eq!(invalidations(world.run(6000, &[])).len(), 1);
        assert_eq!(world.cluster.blocks.ordered_count(), 1);
    }
}

/// Found by simulation: a node had obeyed an order and could not say so. When the time of that was over it was ordered again,
/// and said so only then; a balancer had put the same there anew, which the second order deleted, and what it had been made
/// from was surplus.
#[test]
fn what_is_told_of_one_order_says_nothing_of_the_next() {
    for (mut world, good) in told_of_surplus() {
        assert_eq!(invalidations(world.run(297_000, &[])), []);
        assert_eq!(invalidations(world.run(6000, &[])), [(1, good)], "it is told again");
        world.deleted(1, good);
        moved_here(&mut world, good);
        assert_eq!(invalidations(world.run(290_000, &[])), []);
        // One of the two has to go all the same.
        assert_eq!(invalidations(world.run(15_000, &[])).len(), 1);
    }
}

/// Found by simulation: what is kept after all may be gone, by the order that was given first.
#[test]
fn no_node_is_let_go_for_a_replica_that_an_order_may_delete() {
    let mut world = World::new(2, 1);
    let id = order_lost(&mut world);
    let (leaving, good) = (world.handle(0), world.good(id, 0));
    world.full_report(1, &[finalized(good)]);
    let decommission = AdminState::DecommissionInProgress;
    world.cluster.set_admin_state(&world.blocks, leaving, decommission);
    assert_eq!(world.cluster.tally(id, &world.blocks.0[&id]).doubted, 1);
    world.run(240_000, &[]);
    assert_eq!(world.cluster.node(leaving).admin, decommission);
    world.run(120_000, &[]);
    assert_eq!(world.cluster.node(leaving).admin, AdminState::Decommissioned);
}

#[test]
fn surplus_that_is_needed_by_now_is_taken_back_when_its_order_seems_lost() {
    let mut world = World::new(4, 1);
    let id = order_lost(&mut world);
    let (lost, good) = (world.handle(0), world.good(id, 0));
    world.cluster.node_died(&world.blocks, lost);
    assert_eq!(world.places(id), []);
    assert_eq!(invalidations(world.run(306_000, &[0])), []);
    assert_eq!(world.places(id), [(1, 0)], "readers get it again");
    // It may be gone all the same: what comes now is not surplus on its account.
    world.received(2, good);
    assert_eq!(invalidations(world.run(30_000, &[0])), []);
    assert_eq!(world.places(id), [(1, 0), (2, 0)]);
    world.full_report(1, &[finalized(good)]);
    assert_eq!(invalidations(world.run(6000, &[0])).len(), 1, "it is there");
}

#[test]
fn the_crc_of_one_datanode_against_two_is_not_recorded() {
    let facts = replicated(3, 100, BlockState::Committed);
    for (told, recorded) in [([5, 6, 6], Some(6)), ([6, 5, 6], Some(6)), ([5, 6, 7], None)] {
        let mut world = World::new(3, 1);
        let id = block(1);
        world.blocks.0.insert(id, facts);
        world.cluster.block_allocated(id, facts.gs, &[]);
        let good = world.good(id, 0);
        for (node, crc32c) in told.into_iter().enumerate() {
            world.received_with_crc(node, good, Some(crc32c));
        }
        assert_eq!(world.cluster.unit_crcs(id, &facts), [recorded]);
    }
}

#[test]
fn crcs_of_a_recovered_block_are_recorded() {
    let mut world = World::new(2, 1);
    let id = block(1);
    world.blocks.0.insert(id, replicated(1, 0, BlockState::UnderRecovery));
    let facts = BlockFacts { gs: GenerationStamp(1002), ..replicated(1, 64, LIVE) };
    let recovered = BlockRef { id, gs: facts.gs, len: 64 };
    world.received_with_crc(0, recovered, Some(7));
    world.blocks.0.insert(id, facts);
    let done = Synchronized {
        block: BlockRef { gs: GenerationStamp(1001), ..recovered },
        new_gs: facts.gs,
        new_len: 64,
        close_file: true,
        delete_block: false,
        targets: vec![Some(world.storage(0))],
    };
    let late = world.cluster.block_synchronized(&world.blocks, id, &done);
    assert_eq!(late, [LateCrc { id, gs: facts.gs, unit: UnitIndex(0), crc32c: 7 }]);
}

/// Each entry for the log costs a write to the disk.
#[test]
fn a_crc_that_is_recorded_is_not_recorded_again() {
    let mut world = World::new(2, 1);
    let id = block(1);
    world.store(id, replicated(2, 100, LIVE), &[0]);
    world.blocks.1.insert((id, UnitIndex(0)), 7);
    let good = world.good(id, 0);
    assert!(world.received_with_crc(1, good, Some(7)).is_empty());
}

/// A stale replica is told to go before others have all: nobody waits for its place on a node that leaves.
#[test]
fn a_replica_that_is_being_deleted_holds_no_leaving_node_back() {
    let mut world = World::new(3, 1);
    let id = block(1);
    world.store(id, replicated(3, 100, LIVE), &[0, 1]);
    let node = world.handle(2);
    world.cluster.set_admin_state(&world.blocks, node, AdminState::DecommissionInProgress);
    world.received(2, BlockRef { gs: GenerationStamp(900), ..world.good(id, 0) });
    let told = world.cluster.leaving_node(&world.blocks, node, 10, world.now).unwrap();
    assert_eq!((told.blocks_left, told.blocks_done), (0, 0));
}

/// Each storage that reports for the first time sets it off, with all others waiting meanwhile.
#[test]
fn blocks_that_wait_for_reports_are_looked_at_some_at_a_time() {
    const MANY: i64 = 25_000;
    let mut world = World::new(3, 1);
    world.register(registration(1, 0));
    for number in 0..MANY {
        let id = block(number);
        world.store(id, replicated(1, 100, LIVE), &[0, 1]);
    }
    assert_eq!(world.cluster.postponed_blocks().count(), MANY as usize);
    let all: Vec<ReportedReplica> =
        (0..MANY).map(|number| finalized(world.good(block(number), 0))).collect();
    world.full_report(1, &all);
    let mut left = Vec::new();
    for _ in 0..3 {
        let mut more = world.cluster.tick(&world.blocks, world.now, &mut *world.dice).more;
        while more {
            more = world.cluster.go_on(&world.blocks);
        }
        left.push(world.cluster.postponed_blocks().count());
    }
    assert_eq!(left, [15_000, 5_000, 0]);
}
