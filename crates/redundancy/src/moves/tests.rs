//! What a balancer is offered, and what becomes of the replicas that it moves.

use super::*;
use crate::fixture::*;
use crate::*;

const LIVE: BlockState = BlockState::Complete;

fn ask(world: &World, node: usize, size: u64, min_block_len: u64) -> MoveQuery {
    MoveQuery { node: world.handle(node), size, min_block_len, storage_type: None }
}

fn found(world: &World, query: &MoveQuery, start: u64) -> Vec<BlockId> {
    let blocks = world.cluster.movable_blocks(&world.blocks, query, start, &|_| false);
    blocks.iter().map(|block| block.id).collect()
}

#[test]
fn complete_blocks_of_the_node_are_offered_until_they_are_enough() {
    let mut world = World::new(6, 3);
    for number in 1..=4 {
        world.store(block(number), replicated(2, 100, LIVE), &[0, 1]);
    }
    world.store(block(5), replicated(2, 100, LIVE), &[2, 3]);
    world.store(block(6), replicated(2, 99, LIVE), &[0, 2]);
    world.store(block(7), replicated(2, 100, BlockState::Committed), &[0, 2]);
    let query = ask(&world, 0, 1000, 100);
    assert_eq!(found(&world, &query, 0), [1, 2, 3, 4].map(block));
    assert_eq!(found(&world, &query, 2), [3, 4, 1, 2].map(block), "round from the start");
    let enough = MoveQuery { size: 101, ..query };
    assert_eq!(found(&world, &enough, 1), [2, 3].map(block));
    let other = MoveQuery { storage_type: Some(StorageType::Archive), ..query };
    assert_eq!(found(&world, &other, 0), []);
    let hot = |id| id == block(1);
    let last = world.cluster.movable_blocks(&world.blocks, &query, 0, &hot);
    assert_eq!(last.last().map(|block| block.id), Some(block(1)), "what was read comes last");
}

#[test]
fn neither_containers_nor_replicas_of_what_is_packed_in_them_are_offered() {
    let mut world = World::new(6, 3);
    let container = BlockId(BlockId::FIRST_CONTAINER_BASE.0 + 1);
    world.store(container, replicated(1, 100, LIVE), &[0]);
    let packed = BlockFacts { packed: Some(container), ..replicated(0, 100, LIVE) };
    world.store(block(1), packed, &[0]);
    world.store(block(2), replicated(1, 100, LIVE), &[0]);
    assert_eq!(found(&world, &ask(&world, 0, 1000, 0), 0), [block(2)]);
}

/// HDFS-16333: a place that is left out must not shift the units of those behind it.
#[test]
fn so_many_blocks_are_looked_at_in_one_call() {
    let mut world = World::new(3, 3);
    let count = LOOKED_AT_MAX as i64 + 1;
    for number in 1..=count {
        let len = if number == count { 100 } else { 1 };
        world.store(block(number), replicated(1, len, LIVE), &[0]);
    }
    let query = ask(&world, 0, 1000, 100);
    assert_eq!(found(&world, &query, 0), []);
    assert_eq!(found(&world, &query, 1), [block(count)], "the next call begins elsewhere");
}

#[test]
fn hdfs_16333_every_place_of_a_group_has_its_own_unit() {
    let mut world = World::new(9, 3);
    let id = group(1);
    world.store(id, rs(3, 2, 5000, LIVE), &[4, 3, 2, 1, 0]);
    let bad = world.good(id, 1);
    let node = world.handle(3);
    world.cluster.report_bad(&world.blocks, node, "", bad).unwrap();
    let query = ask(&world, 0, 10_000, 0);
    let blocks = world.cluster.movable_blocks(&world.blocks, &query, 0, &|_| false);
    let [only] = blocks.as_slice() else { panic!("{blocks:?}") };
    let mut places: Vec<(usize, u8)> =
        only.places.iter().map(|p| (world.number(p.storage), p.unit.0)).collect();
    places.sort_unstable();
    assert_eq!(places, [(0, 4), (1, 3), (2, 2), (4, 0)]);
    // A group counts with what it has on one node.
    assert_eq!(only.bytes_on_a_node(), 5000 / 3);
}

/// Node `to` tells that a balancer has brought it what `from` has, which can go.
fn moved(world: &mut World, id: BlockId, unit: u8, from: usize, to: usize) {
    let hint = Some(format!("uuid-{from}"));
    let kind = ReplicaEventKind::Received { delete_hint: hint };
    let block = world.good(id, unit);
    world.event(to, ReplicaEvent { block, kind, crc32c: None });
}

/// The nodes that are told to delete, with the units.
fn told_to_delete(world: &mut World) -> Vec<(usize, u8)> {
    let mut told = Vec::new();
    for node in 0..world.cluster.nodes().count() {
        for command in world.heartbeat(node) {
            if let Command::Invalidate(blocks) = command {
                told.extend(blocks.iter().map(|block| (node, block.id.unit().0)));
            }
        }
    }
    told
}

#[test]
fn a_moved_replica_goes_where_the_hint_says_though_other_nodes_are_fuller() {
    for seed_node in 0..3 {
        let mut world = World::new(6, 1);
        world.store(block(1), replicated(3, 100, LIVE), &[0, 1, 2]);
        moved(&mut world, block(1), 0, seed_node, 5);
        assert_eq!(told_to_delete(&mut world), [(seed_node, 0)]);
    }
}

#[test]
fn a_hint_that_costs_a_rack_is_not_taken() {
    // Racks 0, 1, 1; the balancer moves the only one of rack 0 to rack 1.
    let mut world = World::with_racks(&[0, 1, 1, 1]);
    world.store(block(1), replicated(3, 100, LIVE), &[0, 1, 2]);
    moved(&mut world, block(1), 0, 0, 3);
    let told = told_to_delete(&mut world);
    assert!(told.len() == 1 && told[0].0 != 0, "{told:?}");
    // A unit goes from its rack to one that has another unit: the new copy is the surplus.
    let mut world = World::with_racks(&[0, 1, 2, 3, 4, 4]);
    world.store(group(1), rs(3, 2, 5000, LIVE), &[0, 1, 2, 3, 4]);
    moved(&mut world, group(1), 1, 1, 5);
    assert_eq!(told_to_delete(&mut world), [(5, 1)]);
    // To a rack of its own it may go.
    let mut world = World::with_racks(&[0, 1, 2, 3, 4, 5]);
    world.store(group(1), rs(3, 2, 5000, LIVE), &[0, 1, 2, 3, 4]);
    moved(&mut world, group(1), 1, 1, 5);
    assert_eq!(told_to_delete(&mut world), [(1, 1)]);
}

/// FIELD-NOTES row 4 (HDFS-16420): a unit that is the only one of its index is never deleted on a
/// balancer's word, whatever node the hint names and whoever is fuller.
#[test]
fn field_notes_row_4_a_hint_deletes_no_unit_without_another_one_of_its_index() {
    for hinted in 0..5 {
        for unit in 0..5_u8 {
            let mut world = World::new(8, 1);
            world.store(group(1), rs(3, 2, 5000, LIVE), &[0, 1, 2, 3, 4]);
            moved(&mut world, group(1), unit, hinted, 7);
            let told = told_to_delete(&mut world);
            let holders = [usize::from(unit), 7];
            assert!(told.len() == 1 && told[0].1 == unit, "hint {hinted}: {told:?}");
            assert!(holders.contains(&told[0].0), "hint {hinted}: {told:?}");
            if hinted == usize::from(unit) {
                assert_eq!(told, [(hinted, unit)]);
            }
        }
    }
}

/// The same after a failover or restart: a node that has not reported may have lost its copy.
#[test]
fn field_notes_row_4_nothing_goes_while_a_holder_has_not_reported() {
    let mut world = World::new(8, 1);
    world.store(group(1), rs(3, 2, 5000, LIVE), &[0, 1, 2, 3, 4]);
    let again = registration(2, 0);
    world.register(again);
    moved(&mut world, group(1), 2, 2, 7);
    assert_eq!(told_to_delete(&mut world), []);
}

/// Nodes 3 and 4 have archive storage, until they are told to delete.
fn with_archives() -> World {
    let mut world = World::new(5, 1);
    for node in 3..5 {
        let mut heartbeat = heartbeat_of(node, 50 * GIB);
        heartbeat.storages[0].storage_type = StorageType::Archive;
        let uuid = format!("uuid-{node}");
        world.beat(&uuid, heartbeat);
    }
    world
}

#[test]
fn a_mover_gets_rid_of_what_is_on_the_wrong_type() {
    let cold = StoragePolicy::by_name("COLD").unwrap();
    for (id, facts) in [(block(1), replicated(2, 100, LIVE)), (group(1), rs(2, 1, 5000, LIVE))] {
        let mut world = with_archives();
        world.blocks.2.insert(id, cold);
        world.store(id, facts, &[0, 1, 2][..facts.expected_units()]);
        let event = ReplicaEvent {
            block: world.good(id, 1),
            kind: ReplicaEventKind::Received { delete_hint: Some("uuid-1".to_string()) },
            crc32c: None,
        };
        let handle = world.handle(3);
        let storage = ("DS-3", StorageType::Archive);
        world.cluster.incremental_report(&world.blocks, handle, storage, &[event]);
        let unit = if id.is_striped() { 1 } else { 0 };
        assert_eq!(told_to_delete(&mut world), [(1, unit)], "{id}");
    }
    // Without a hint the copy on the wrong type goes too, not the one on the fullest node.
    let (mut world, id) = (with_archives(), block(2));
    world.blocks.2.insert(id, cold);
    world.store(id, replicated(1, 100, LIVE), &[2]);
    let kind = ReplicaEventKind::Received { delete_hint: None };
    let event = ReplicaEvent { block: world.good(id, 0), kind, crc32c: None };
    let handle = world.handle(4);
    world.cluster.incremental_report(
        &world.blocks,
        handle,
        ("DS-4", StorageType::Archive),
        &[event],
    );
    assert_eq!(told_to_delete(&mut world), [(2, 0)]);
}
