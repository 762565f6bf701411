//! Properties of placements over many seeds and clusters.

use crate::fixture::*;
use crate::*;
use cairn_stripe::{BlockId, GenerationStamp};
use std::collections::{BTreeMap, BTreeSet};

const SEEDS: u64 = 300;

fn request(count: usize) -> PlacementRequest<'static> {
    PlacementRequest { count, block_len: GIB, ..PlacementRequest::default() }
}

fn nodes(world: &World, chosen: &[StorageHandle]) -> Vec<usize> {
    chosen.iter().map(|storage| world.number(*storage)).collect()
}

fn per_rack(world: &World, chosen: &[StorageHandle]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for storage in chosen {
        *counts.entry(world.rack(*storage)).or_insert(0) += 1;
    }
    counts
}

fn assert_distinct(world: &World, chosen: &[StorageHandle], what: &str) {
    let distinct: BTreeSet<usize> = nodes(world, chosen).into_iter().collect();
    assert_eq!(distinct.len(), chosen.len(), "{what}: a node was chosen twice");
}

/// How many units each rack gets at best: one at a time to the rack with fewest that has a free node.
fn even(capacities: &[usize], units: usize) -> Vec<usize> {
    let mut filled = vec![0; capacities.len()];
    for _ in 0..units {
        let open = (0..capacities.len()).filter(|rack| filled[*rack] < capacities[*rack]);
        let Some(rack) = open.min_by_key(|rack| filled[*rack]) else { break };
        filled[rack] += 1;
    }
    filled.sort_unstable();
    filled.retain(|count| *count > 0);
    filled
}

#[test]
fn units_are_as_even_over_racks_as_these_allow() {
    for seed in 0..SEEDS {
        let mut shape = dice(seed);
        let rack_count = 1 + shape() as usize % 7;
        let sizes: Vec<usize> = (0..rack_count).map(|_| 1 + shape() as usize % 6).collect();
        let racks: Vec<usize> =
            sizes.iter().enumerate().flat_map(|(rack, size)| vec![rack; *size]).collect();
        let world = World::with_racks(&racks);
        let units = [3, 5, 9, 14][shape() as usize % 4];
        let chosen = world.cluster.choose_striped(&request(units), world.now, &mut dice(seed));
        let what = format!("seed {seed}, racks of {sizes:?}, {units} units");
        assert_eq!(chosen.len(), units.min(racks.len()), "{what}");
        assert_distinct(&world, &chosen, &what);
        let mut counts: Vec<usize> = per_rack(&world, &chosen).into_values().collect();
        counts.sort_unstable();
        assert_eq!(counts, even(&sizes, units), "{what}");
    }
}

/// A group of one cell has its first data unit and parity, and so on: none needs a move when it is closed.
#[test]
fn a_group_of_any_length_is_as_even_over_racks_as_these_allow() {
    for seed in 0..SEEDS {
        let mut shape = dice(seed);
        let (data_units, parity_units) = [(2, 1), (3, 2), (6, 3), (10, 4)][shape() as usize % 4];
        let rack_count = 1 + shape() as usize % 7;
        let mut sizes: Vec<usize> = (0..rack_count).map(|_| 1 + shape() as usize % 6).collect();
        sizes[0] += data_units;
        let racks: Vec<usize> =
            sizes.iter().enumerate().flat_map(|(rack, size)| vec![rack; *size]).collect();
        let world = World::with_racks(&racks);
        let request = request(data_units + parity_units);
        let chosen = world.cluster.choose_group(&request, data_units, world.now, &mut dice(seed));
        assert_distinct(&world, &chosen, &format!("seed {seed}"));
        let (data, parity) = chosen.split_at(data_units);
        for cells in 1..=data_units {
            let units: Vec<StorageHandle> = data[..cells].iter().chain(parity).copied().collect();
            let mut counts: Vec<usize> = per_rack(&world, &units).into_values().collect();
            counts.sort_unstable();
            let what = format!("seed {seed}, racks of {sizes:?}, {cells} cells of {data_units}");
            assert_eq!(counts, even(&sizes, units.len()), "{what}");
        }
    }
}

#[test]
fn replacing_units_keeps_the_group_even() {
    for seed in 0..SEEDS {
        let world = World::new(16, 4);
        let mut dice = dice(seed);
        let group = world.cluster.choose_striped(&request(9), world.now, &mut dice);
        let (lost, existing) = group.split_at(1 + seed as usize % 3);
        let excluded: Vec<NodeHandle> =
            lost.iter().map(|storage| world.cluster.storage(*storage).node).collect();
        let request = PlacementRequest { existing, excluded: &excluded, ..request(lost.len()) };
        let chosen = world.cluster.choose_striped(&request, world.now, &mut dice);
        let all: Vec<StorageHandle> = existing.iter().chain(&chosen).copied().collect();
        assert_eq!(all.len(), 9, "seed {seed}");
        assert_distinct(&world, &all, &format!("seed {seed}"));
        assert!(chosen.iter().all(|storage| !lost.contains(storage)), "seed {seed}");
        let counts = per_rack(&world, &all);
        assert!(counts.values().all(|n| (2..=3).contains(n)), "seed {seed}: {counts:?}");
    }
}

#[test]
fn three_replicas_are_on_two_racks_beginning_at_the_writer() {
    for seed in 0..SEEDS {
        let world = World::new(12, 3);
        let writer = "10.0.1.4";
        let request = PlacementRequest { writer, ..request(3) };
        let chosen = world.cluster.choose_replicated(&request, world.now, &mut dice(seed));
        assert_eq!(nodes(&world, &chosen)[0], 4, "seed {seed}: the writer's own node");
        assert_distinct(&world, &chosen, &format!("seed {seed}"));
        let racks: Vec<String> = chosen.iter().map(|storage| world.rack(*storage)).collect();
        assert!(racks[0] != racks[1] && racks[1] == racks[2], "seed {seed}: {racks:?}");
    }
}

#[test]
fn a_writer_elsewhere_gets_two_racks_too() {
    for seed in 0..SEEDS {
        let world = World::new(9, 3);
        let request = PlacementRequest { writer: "192.168.0.1", ..request(3) };
        let chosen = world.cluster.choose_replicated(&request, world.now, &mut dice(seed));
        let mut counts: Vec<usize> = per_rack(&world, &chosen).into_values().collect();
        counts.sort_unstable();
        assert_eq!(counts, [1, 2], "seed {seed}");
    }
}

#[test]
fn many_replicas_do_not_crowd_a_rack() {
    for seed in 0..SEEDS {
        let world = World::new(20, 4);
        let chosen = world.cluster.choose_replicated(&request(10), world.now, &mut dice(seed));
        assert_eq!(chosen.len(), 10, "seed {seed}");
        assert_distinct(&world, &chosen, &format!("seed {seed}"));
        // (10 - 1) / 4 + 2
        let counts = per_rack(&world, &chosen);
        assert!(counts.values().all(|count| *count <= 4), "seed {seed}: {counts:?}");
    }
}

#[test]
fn racks_that_are_full_do_not_stop_a_placement() {
    // Two racks, one node in the second: the limit of 2 a rack leaves no place for the fourth copy.
    let world = World::with_racks(&[0, 0, 0, 0, 0, 1]);
    let chosen = world.cluster.choose_replicated(&request(5), world.now, &mut dice(1));
    assert_eq!(chosen.len(), 5);
    assert_distinct(&world, &chosen, "five copies");
}

#[test]
fn who_cannot_take_a_block_is_never_chosen() {
    for seed in 0..SEEDS {
        let mut world = World::new(10, 3);
        let (dead, leaving, full, busy, stale) = (0, 1, 2, 3, 4);
        let handle = world.handle(dead);
        world.cluster.node_died(&world.blocks, handle);
        let handle = world.handle(leaving);
        world.cluster.set_admin_state(&world.blocks, handle, AdminState::Decommissioned);
        world.run(33_000, &[stale, dead]);
        let beat = |world: &mut World, node: usize, heartbeat: Heartbeat| {
            let uuid = format!("uuid-{node}");
            world.beat(&uuid, heartbeat);
        };
        beat(&mut world, full, heartbeat_of(full, GIB - 1));
        beat(&mut world, busy, Heartbeat { xceivers: 1000, ..heartbeat_of(busy, 50 * GIB) });
        let excluded = [world.handle(5)];
        let request = PlacementRequest { excluded: &excluded, ..request(4) };
        for striped in [false, true] {
            let chosen = if striped {
                world.cluster.choose_striped(&request, world.now, &mut dice(seed))
            } else {
                world.cluster.choose_replicated(&request, world.now, &mut dice(seed))
            };
            let mut got = nodes(&world, &chosen);
            got.sort_unstable();
            assert_eq!(got, [6, 7, 8, 9], "seed {seed}");
        }
        // When there is no other, busy and stale ones are better than none.
        let request = PlacementRequest { count: 8, ..request };
        let chosen = world.cluster.choose_striped(&request, world.now, &mut dice(seed));
        let got: BTreeSet<usize> = nodes(&world, &chosen).into_iter().collect();
        assert_eq!(got, BTreeSet::from([3, 4, 6, 7, 8, 9]), "seed {seed}");
    }
}

/// `dfs.namenode.block-placement.min-blocks-for.write`.
#[test]
fn a_node_with_few_connections_is_not_busy_however_idle_the_others_are() {
    for (xceivers, is_taken) in [(16, true), (17, false)] {
        let mut world = World::new(10, 3);
        world.beat("uuid-3", Heartbeat { xceivers, ..heartbeat_of(3, 50 * GIB) });
        let chosen = (0..SEEDS).flat_map(|seed| {
            world.cluster.choose_replicated(&request(3), world.now, &mut dice(seed))
        });
        let chosen: Vec<StorageHandle> = chosen.collect();
        assert_eq!(nodes(&world, &chosen).contains(&3), is_taken, "{xceivers}");
    }
}

#[test]
fn none_of_several_nodes_on_the_writers_host_is_local() {
    let mut world = World::new(6, 3);
    for node in [6, 7] {
        let mut registration = registration(node, 0);
        registration.address.ip = "10.9.9.9".to_string();
        registration.address.xfer_port += node as u16;
        world.register(registration);
        world.heartbeat(node);
        world.full_report(node, &[]);
    }
    let request = PlacementRequest { writer: "10.9.9.9", ..request(3) };
    let first = |seed| {
        let chosen = world.cluster.choose_replicated(&request, world.now, &mut dice(seed));
        nodes(&world, &chosen)[0]
    };
    let firsts: BTreeSet<usize> = (0..SEEDS).map(first).collect();
    assert_eq!(firsts, (0..8).collect());
}

#[test]
fn room_is_for_as_many_blocks_as_is_said() {
    for (blocks_of_room, fits) in [(50, true), (51, false)] {
        let mut world = World::new(3, 1);
        world.cluster.set_config(Config { blocks_of_room, ..Config::default() });
        let chosen = world.cluster.choose_replicated(&request(3), world.now, &mut dice(7));
        assert_eq!(chosen.len(), if fits { 3 } else { 0 }, "{blocks_of_room} of 50 GiB");
    }
}

/// As many small files as a cluster can take between two heartbeats, each with fewer units than targets.
#[test]
fn blocks_that_are_done_take_the_room_that_they_need() {
    let mut world = World::new(9, 3);
    let mut number = 0;
    let mut allocate = |world: &mut World| -> Option<BlockId> {
        number += 1;
        let chosen = world.cluster.choose_striped(&request(9), world.now, &mut dice(7));
        let targets: Vec<_> = chosen.into_iter().map(Some).collect();
        let is_whole = targets.len() == 9;
        is_whole.then(|| {
            let id = group(number);
            world.cluster.block_allocated(id, GenerationStamp(1001), &targets);
            id
        })
    };
    let complete = |world: &mut World, id: BlockId, len: u64| {
        world.blocks.0.insert(id, rs(6, 3, len, BlockState::Complete));
        world.cluster.block_completed(&world.blocks, id);
    };
    for _ in 0..1000 {
        let id = allocate(&mut world).unwrap();
        complete(&mut world, id, 3000);
    }
    // One that is given up leaves its room to others.
    for _ in 0..1000 {
        let id = allocate(&mut world).unwrap();
        world.cluster.block_removed(id, GenerationStamp(1001));
    }
    // Those that are written may become as long as a block can be.
    let open: Vec<BlockId> = std::iter::from_fn(|| allocate(&mut world)).collect();
    assert_eq!(open.len(), 49);
    for id in &open {
        complete(&mut world, *id, 6 * GIB);
    }
    assert_eq!(allocate(&mut world), None, "what was written since takes room");
    (0..9).for_each(|node| drop(world.heartbeat(node)));
    // Heartbeats know what was written; what ends now was begun before them.
    let early = allocate(&mut world).unwrap();
    (0..9).for_each(|node| drop(world.heartbeat(node)));
    let open: Vec<BlockId> = (0..49).filter_map(|_| allocate(&mut world)).collect();
    assert_eq!(open.len(), 49);
    complete(&mut world, early, 3000);
    assert_eq!(allocate(&mut world), None);
}

#[test]
fn favored_nodes_come_first_and_the_local_one_can_be_avoided() {
    let world = World::new(12, 3);
    for seed in 0..SEEDS {
        let favored = [world.handle(7), world.handle(11)];
        let with = PlacementRequest { favored: &favored, ..request(3) };
        let chosen = world.cluster.choose_replicated(&with, world.now, &mut dice(seed));
        let got = nodes(&world, &chosen);
        assert!(got.contains(&7) && got.contains(&11), "seed {seed}: {got:?}");
        let away = PlacementRequest { writer: "10.0.1.4", avoid_local: true, ..request(3) };
        let chosen = world.cluster.choose_replicated(&away, world.now, &mut dice(seed));
        assert_ne!(nodes(&world, &chosen)[0], 4, "seed {seed}");
        assert_eq!(world.rack(chosen[0]), "/rack1", "seed {seed}: the writer's rack");
    }
}

#[test]
fn storages_of_the_wanted_type_are_taken() {
    let mut world = World::new(6, 2);
    for node in 0..3 {
        let mut heartbeat = heartbeat_of(node, 50 * GIB);
        heartbeat.storages[0].storage_type = StorageType::Ssd;
        let uuid = format!("uuid-{node}");
        world.beat(&uuid, heartbeat);
    }
    for seed in 0..SEEDS {
        let storage_policy = StoragePolicy::by_name("ONE_SSD").unwrap();
        let one_ssd = PlacementRequest { storage_policy, ..request(3) };
        let chosen = world.cluster.choose_replicated(&one_ssd, world.now, &mut dice(seed));
        let got: BTreeSet<bool> = nodes(&world, &chosen).iter().map(|node| *node < 3).collect();
        assert_eq!((chosen.len(), got.len()), (3, 2), "seed {seed}");
        let ssd = chosen.iter().filter(|storage| world.number(**storage) < 3).count();
        assert_eq!(ssd, 1, "seed {seed}: one replica on flash");
    }
}

#[test]
fn every_node_gets_its_share() {
    let world = World::new(12, 4);
    let mut counts = vec![0; 12];
    for seed in 0..1000 {
        for storage in world.cluster.choose_striped(&request(5), world.now, &mut dice(seed)) {
            counts[world.number(storage)] += 1;
        }
    }
    // 5000 units over 12 nodes are 416 for each.
    assert!(counts.iter().all(|count| (330..500).contains(count)), "{counts:?}");
}

#[test]
fn blocks_that_come_between_heartbeats_go_to_all_disks_of_a_node() {
    let mut world = World::new(1, 1);
    let mut heartbeat = heartbeat_of(0, 50 * GIB);
    for (disk, room) in [(1, 51 * GIB), (2, 80 * GIB)] {
        let mut storage = heartbeat_of(0, room).storages.remove(0);
        storage.uuid = format!("DS-0-{disk}");
        heartbeat.storages.push(storage);
    }
    world.beat("uuid-0", heartbeat);
    let mut counts = BTreeMap::new();
    for number in 0..12 {
        let chosen = world.cluster.choose_replicated(&request(1), world.now, &mut dice(number));
        let targets: Vec<_> = chosen.iter().map(|storage| Some(*storage)).collect();
        world.cluster.block_allocated(block(number as i64), GenerationStamp(1001), &targets);
        *counts.entry(chosen[0]).or_insert(0) += 1;
    }
    assert_eq!(counts.into_values().collect::<Vec<_>>(), [4, 4, 4]);
}
