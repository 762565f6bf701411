//! Units over nodes and racks, after some were lost.

use super::prove::{crc_of, proved, proves};
use super::*;

/// A settled group on as many nodes as that, with node `i` on the rack that is named. Only units matter: the parities are
/// on nodes 3 and 4.
fn settled_on(racks: &[usize]) -> World {
    settled_as((3, 2), racks)
}

/// The same of a group with so many members and parities; unit `i` is on node `i`.
fn settled_as((k, m): (u8, u8), racks: &[usize]) -> World {
    let mut world = World::with_racks(racks);
    for slot in 0..usize::from(k) {
        world.store(member(slot), replicated(1, LEN, LIVE), &[]);
    }
    let members: Vec<_> = (0..usize::from(k)).map(|slot| world.good(member(slot), 0)).collect();
    let group = formed_group(BlockRef { id: HANDLE, ..parity(k) }, m, &members);
    world.blocks.3.insert(HANDLE, group);
    for slot in 0..usize::from(k) {
        world.blocks.1.insert((member(slot), UnitIndex(0)), slot as u32);
        let facts = world.blocks.0.get_mut(&member(slot)).unwrap();
        facts.group = Some((HANDLE, UnitIndex(slot as u8)));
        world.received(slot, world.good(member(slot), 0));
    }
    for slot in k..k + m {
        world.blocks.1.insert((HANDLE, UnitIndex(slot)), PARITY_CRC);
        world.received_with_crc(usize::from(slot), parity(slot), Some(PARITY_CRC));
    }
    world
}

fn units(world: &World) -> (usize, usize) {
    let group = &world.blocks.3[&HANDLE];
    (usize::from(group.k), usize::from(group.k + group.m))
}

/// Where each unit is.
fn nodes_of_units(world: &World) -> Vec<Vec<usize>> {
    let parities = world.places(HANDLE);
    let of_parity = |unit: u8| {
        let of_unit = parities.iter().filter(|(_, other)| *other == unit);
        of_unit.map(|(node, _)| *node).collect()
    };
    let of_member = |slot| world.places(member(slot)).iter().map(|(node, _)| *node).collect();
    let (k, all) = units(world);
    (0..k).map(of_member).chain((k..all).map(|unit| of_parity(unit as u8))).collect()
}

fn back(world: &mut World, (node, rack): (usize, usize), blocks: &[BlockRef]) {
    world.register(registration(node, rack));
    world.heartbeat(node);
    let reported = |block: &BlockRef| ReportedReplica {
        block: *block,
        state: ReplicaState::Finalized,
        crc32c: None,
    };
    world.full_report(node, &blocks.iter().map(reported).collect::<Vec<_>>());
}

/// Nodes do as they are told, until nothing is told any more.
fn obey(world: &mut World, silent: &[usize]) {
    let mut idle = 0;
    while idle < 4 {
        let commands = world.run(6000, silent);
        idle += 1;
        for (_, work) in rebuilds(&commands) {
            for (storage, unit) in work.targets {
                let node = world.number(storage);
                let slot = unit.as_usize();
                let is_member = slot < units(world).0;
                let block = if is_member { world.good(member(slot), 0) } else { parity(unit.0) };
                let crc32c = crc_of(world, block);
                world.received_with_crc(node, block, crc32c);
                idle = 0;
            }
        }
        let transfers = commands.values().flatten().filter_map(|command| match command {
            Command::Transfer(transfers) => Some(transfers.clone()),
            _ => None,
        });
        for transfer in transfers.flatten().collect::<Vec<_>>() {
            for storage in transfer.targets {
                let crc32c = crc_of(world, transfer.block);
                world.received_with_crc(world.number(storage), transfer.block, crc32c);
                idle = 0;
            }
        }
        for told in proves(&commands) {
            let crc32c = crc_of(world, told.1.block);
            proved(world, told, crc32c);
            idle = 0;
        }
        for (node, block) in deletions(&commands) {
            world.deleted(node, block);
            idle = 0;
        }
    }
}

fn is_spread(world: &World, per_rack_max: usize) -> bool {
    let mut nodes = BTreeSet::new();
    let mut per_rack: BTreeMap<String, usize> = BTreeMap::new();
    for places in nodes_of_units(world) {
        let [node] = places[..] else { return false };
        nodes.insert(node);
        *per_rack.entry(world.rack(world.storage(node))).or_default() += 1;
    }
    nodes.len() == units(world).1 && per_rack.values().all(|units| *units <= per_rack_max)
}

/// What a lost rack had is rebuilt on the others, more of it on one than may be lost; when the rack is back, it is evened
/// out, whatever is left there.
#[test]
fn units_are_spread_over_racks_again_when_there_are_enough() {
    for is_empty in [false, true] {
        // Racks of 2, 2, 4 nodes; two units on each of the first two.
        let mut world = settled_on(&[0, 0, 1, 1, 2, 2, 2, 2]);
        for node in [0, 1] {
            die(&mut world, node);
        }
        obey(&mut world, &[0, 1]);
        assert!(is_spread(&world, 3), "{:?}", nodes_of_units(&world));
        assert!(!is_spread(&world, 2), "two racks take five units: {:?}", nodes_of_units(&world));
        for node in [0, 1] {
            let had = world.good(member(node), 0);
            back(&mut world, (node, 0), if is_empty { &[] } else { std::slice::from_ref(&had) });
        }
        obey(&mut world, &[]);
        assert!(is_spread(&world, 2), "{is_empty}: {:?}", nodes_of_units(&world));
        assert_eq!(world.cluster.queues().len(), 0);
        assert_eq!(world.cluster.groups_with_surplus(), 0);
    }
}

/// Found by simulation: three racks are enough for three units on each, if each had as many nodes. Of five units on one rack
/// and three on another nothing went to that one, which was taken for full.
#[test]
fn units_are_spread_as_evenly_as_the_nodes_of_racks_allow() {
    let mut racks = [0; 12];
    // Five units and a node without on the first rack, three units and two nodes without on the second.
    racks[5..8].fill(1);
    racks[10..].fill(1);
    racks[8] = 2;
    let mut world = settled_as((6, 3), &racks);
    assert!(!world.cluster.queues().is_empty());
    obey(&mut world, &[]);
    assert!(is_spread(&world, 4), "{:?}", nodes_of_units(&world));
    assert_eq!(world.cluster.queues().len(), 0, "nothing better is waited for");
    // With three nodes on the third rack, three units on each are possible.
    back(&mut world, (12, 2), &[]);
    back(&mut world, (13, 2), &[]);
    obey(&mut world, &[]);
    assert!(is_spread(&world, 3), "{:?}", nodes_of_units(&world));
    assert_eq!(world.cluster.queues().len(), 0);
}

/// As many nodes as units: what one had goes to another that has a unit already, until there are enough again.
#[test]
fn units_share_a_node_while_there_are_too_few() {
    let mut world = settled_on(&[0, 0, 0, 0, 0]);
    die(&mut world, 1);
    obey(&mut world, &[1]);
    let places = nodes_of_units(&world);
    let nodes: BTreeSet<usize> = places.iter().flatten().copied().collect();
    assert_eq!(places.iter().map(Vec::len).collect::<Vec<_>>(), [1; 5], "{places:?}");
    assert_eq!(nodes, BTreeSet::from([0, 2, 3, 4]));
    let had = world.good(member(1), 0);
    back(&mut world, (1, 0), &[had]);
    obey(&mut world, &[]);
    assert_eq!(nodes_of_units(&world), [[0], [1], [2], [3], [4]]);
    // Another node comes in place of one that is gone for good.
    let mut world = settled_on(&[0, 0, 0, 0, 0]);
    die(&mut world, 4);
    obey(&mut world, &[4]);
    back(&mut world, (5, 0), &[]);
    obey(&mut world, &[4]);
    assert!(is_spread(&world, 5), "{:?}", nodes_of_units(&world));
    assert_eq!(world.cluster.queues().len(), 0);
}

/// A unit is lost while each node has one, or surplus, which stays until every unit is there.
#[test]
fn a_lost_unit_goes_where_only_surplus_is() {
    let mut world = settled_on(&[0, 0, 0, 0, 0]);
    for node in [3, 4] {
        world.received(node, world.good(member(0), 0));
    }
    world.deleted(4, parity(4));
    obey(&mut world, &[]);
    assert_eq!(nodes_of_units(&world), [[0], [1], [2], [3], [4]]);
    assert_eq!(world.cluster.queues().len(), 0);
}

/// A node that serves no groups takes none of their units, not even where others have to share.
#[test]
fn units_go_to_nodes_that_can_prove_them() {
    let mut world = settled_on(&[0, 0, 0, 0, 0, 0]);
    let other = Heartbeat { takes_groups: false, ..heartbeat_of(5, 50 * GIB) };
    world.beat("uuid-5", other);
    die(&mut world, 1);
    let mut found = Vec::new();
    for _ in 0..4 {
        found.extend(rebuilds(&world.run(3000, &[1, 5])));
        let other = Heartbeat { takes_groups: false, ..heartbeat_of(5, 50 * GIB) };
        world.beat("uuid-5", other);
    }
    let [(_, work)] = &found[..] else { panic!("{found:?}") };
    assert!(work.targets.iter().all(|(storage, _)| world.number(*storage) != 5), "{work:?}");
}
