//! What placement and mending make of storage policies.

use crate::StorageType::{Archive, Disk, Nvdimm, RamDisk, Ssd};
use crate::fixture::*;
use crate::*;
use std::collections::BTreeSet;

fn named(name: &str) -> StoragePolicy {
    StoragePolicy::by_name(name).unwrap()
}

const SEEDS: u64 = 100;

/// A cluster in which node `i` has one storage of type `kinds[i]`.
fn world_of(kinds: &[StorageType], racks: usize) -> World {
    let mut world = World::new(kinds.len(), racks);
    for (node, kind) in kinds.iter().enumerate() {
        retype(&mut world, node, *kind);
    }
    world
}

fn retype(world: &mut World, node: usize, kind: StorageType) {
    let mut heartbeat = heartbeat_of(node, 50 * GIB);
    heartbeat.storages[0].storage_type = kind;
    world.beat(&format!("uuid-{node}"), heartbeat);
}

/// The types of the storages that a new block gets, sorted.
fn placed(world: &World, name: &str, count: usize, striped: bool, seed: u64) -> Vec<StorageType> {
    let storage_policy = named(name);
    let request = PlacementRequest {
        count,
        block_len: GIB,
        storage_policy,
        is_new: true,
        ..PlacementRequest::default()
    };
    let chosen = if striped {
        world.cluster.choose_striped(&request, world.now, &mut dice(seed))
    } else {
        world.cluster.choose_replicated(&request, world.now, &mut dice(seed))
    };
    let nodes: BTreeSet<usize> = chosen.iter().map(|storage| world.number(*storage)).collect();
    assert_eq!(nodes.len(), chosen.len(), "a node was chosen twice");
    let mut kinds: Vec<StorageType> =
        chosen.iter().map(|storage| world.cluster.storage(*storage).storage_type).collect();
    kinds.sort_unstable();
    kinds
}

#[test]
fn new_blocks_go_where_their_policy_says() {
    let kinds = [Disk, Disk, Disk, Disk, Ssd, Ssd, Archive, Archive, Archive, RamDisk, Nvdimm, Ssd];
    let world = world_of(&kinds, 3);
    for seed in 0..SEEDS {
        for (name, wanted) in [
            ("HOT", [Disk, Disk, Disk]),
            ("WARM", [Disk, Archive, Archive]),
            ("COLD", [Archive; 3]),
            ("ALL_SSD", [Ssd; 3]),
            ("ONE_SSD", [Disk, Disk, Ssd]),
            ("ALL_NVDIMM", [Disk, Disk, Nvdimm]),
            ("LAZY_PERSIST", [Disk; 3]),
            ("PROVIDED", [Disk; 3]),
        ] {
            assert_eq!(placed(&world, name, 3, false, seed), wanted, "{name}, seed {seed}");
        }
        assert_eq!(placed(&world, "COLD", 3, true, seed), [Archive; 3]);
        assert_eq!(placed(&world, "ALL_SSD", 5, true, seed), [Disk, Disk, Ssd, Ssd, Ssd]);
        // Without fallbacks there are as many as there are nodes of the type.
        assert_eq!(placed(&world, "COLD", 5, true, seed), [Archive; 3]);
        assert_eq!(placed(&world, "HOT", 5, false, seed), [Disk; 4]);
    }
}

#[test]
fn a_lost_replica_of_a_cold_file_comes_back_on_archive() {
    let mut world = world_of(&[Archive, Archive, Disk, Disk, Archive, Archive], 2);
    world.blocks.2.insert(block(1), named("COLD"));
    world.store(block(1), replicated(3, 100, BlockState::Complete), &[0, 1, 4]);
    let commands = run_typed(&mut world, 700_000, &[0], &[Archive, Archive, Disk, Disk]);
    let to: Vec<usize> = commands.iter().map(|storage| world.number(*storage)).collect();
    assert_eq!(to, [5], "the only other node with archive storage");
}

#[test]
fn a_lost_unit_of_a_striped_file_takes_the_fallback_of_its_policy() {
    let kinds = [Ssd, Ssd, Ssd, Ssd, Ssd, Disk, Archive];
    let mut world = world_of(&kinds, 1);
    let id = group(1);
    world.blocks.2.insert(id, named("ALL_SSD"));
    world.store(id, rs(3, 2, 5000, BlockState::Complete), &[0, 1, 2, 3, 4]);
    let to = run_typed(&mut world, 700_000, &[2], &kinds);
    let to: Vec<usize> = to.iter().map(|storage| world.number(*storage)).collect();
    assert_eq!(to, [5], "no flash is left: disk");
}

/// Lets time pass while nodes keep their types; the targets of all copies and reconstructions.
fn run_typed(
    world: &mut World,
    ms: u64,
    silent: &[usize],
    kinds: &[StorageType],
) -> Vec<StorageHandle> {
    let mut targets = Vec::new();
    let end = world.now.mono_ms + ms;
    while world.now.mono_ms < end && targets.is_empty() {
        world.now = at(world.now.mono_ms + 3000);
        world.cluster.tick(&world.blocks, world.now, &mut *world.dice);
        for node in 0..world.cluster.nodes().count() + silent.len() {
            if silent.contains(&node)
                || world.cluster.node_by_uuid(&format!("uuid-{node}")).is_none()
            {
                continue;
            }
            let mut heartbeat = heartbeat_of(node, 50 * GIB);
            heartbeat.storages[0].storage_type = kinds.get(node).copied().unwrap_or(Archive);
            let uuid = format!("uuid-{node}");
            let answer = world.beat(&uuid, heartbeat);
            for command in answer.commands {
                match command {
                    Command::Transfer(copies) => {
                        targets.extend(copies.into_iter().flat_map(|copy| copy.targets));
                    }
                    Command::Reconstruct(works) => {
                        let all = works.into_iter().flat_map(|work| work.targets);
                        targets.extend(all.map(|(storage, _)| storage));
                    }
                    _ => {}
                }
            }
        }
    }
    targets
}
