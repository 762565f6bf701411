use super::*;
use crate::fixture::{GIB, World, at, block, group, heartbeat_of, replicated, rs};
use crate::{BlockState, Heartbeat};
use cairn_stripe::UnitIndex;

const MIB: u64 = 1 << 20;

/// Lets all nodes beat, each with that much memory, and returns what each is to take and to give up.
fn orders(world: &mut World, memory: &[u64]) -> Vec<(Vec<BlockId>, Vec<BlockId>)> {
    let mut told = Vec::new();
    for (node, capacity) in memory.iter().enumerate() {
        let heartbeat = Heartbeat { cache_capacity: *capacity, ..heartbeat_of(node, 50 * GIB) };
        let uuid = format!("uuid-{node}");
        let answer = world.beat(&uuid, heartbeat);
        let (mut take, mut give) = (Vec::new(), Vec::new());
        for command in answer.commands {
            match command {
                Command::Cache(ids) => take = ids,
                Command::Uncache(ids) => give = ids,
                _ => {}
            }
        }
        told.push((take, give));
    }
    told
}

fn rescan(world: &mut World, wants: &[(BlockId, u16, u64)]) {
    let want =
        |(id, copies, len): &(BlockId, u16, u64)| (*id, CacheWant { copies: *copies, len: *len });
    let wants = wants.iter().map(want).collect();
    world.cluster.rescan_cache(&wants, world.now, &mut *world.dice);
}

fn takers(told: &[(Vec<BlockId>, Vec<BlockId>)], id: BlockId) -> Vec<usize> {
    let takes = |(_, told): &(usize, &(Vec<BlockId>, Vec<BlockId>))| told.0.contains(&id);
    told.iter().enumerate().filter(takes).map(|(node, _)| node).collect()
}

#[test]
fn as_many_holders_as_wanted_take_a_block_and_all_give_it_up_again() {
    let mut world = World::new(4, 2);
    let id = block(1);
    world.store(id, replicated(3, 10 * MIB, BlockState::Complete), &[0, 1, 2]);
    let memory = [64 * MIB; 4];
    orders(&mut world, &memory);
    rescan(&mut world, &[(id, 2, 10 * MIB)]);
    let told = orders(&mut world, &memory);
    let chosen = takers(&told, id);
    assert_eq!(chosen.len(), 2);
    assert!(!chosen.contains(&3), "it has no replica");
    assert!(takers(&orders(&mut world, &memory), id).is_empty(), "told a moment ago");
    world.now = at(world.now.mono_ms + 30_000);
    assert_eq!(takers(&orders(&mut world, &memory), id), chosen, "told again");

    for node in &chosen {
        let handle = world.handle(*node);
        world.cluster.cache_report(handle, [id]);
        assert!(world.cluster.is_cached(id, handle));
    }
    assert_eq!(world.cluster.cached_copies(id), 2);
    rescan(&mut world, &[(id, 2, 10 * MIB)]);
    assert!(orders(&mut world, &memory).iter().all(|told| told.0.is_empty() && told.1.is_empty()));

    rescan(&mut world, &[]);
    let told = orders(&mut world, &memory);
    let giving: Vec<usize> = (0..4).filter(|node| told[*node].1 == [id]).collect();
    assert_eq!(giving, chosen);
    for node in &chosen {
        let handle = world.handle(*node);
        world.cluster.cache_report(handle, []);
    }
    rescan(&mut world, &[]);
    assert!(!world.cluster.caches_anything());
}

#[test]
fn nobody_takes_more_than_fits_or_what_is_known_to_be_bad() {
    let mut world = World::new(2, 1);
    let (first, second) = (block(1), block(2));
    for id in [first, second] {
        world.store(id, replicated(1, 10 * MIB, BlockState::Complete), &[0]);
    }
    let memory = [15 * MIB, 15 * MIB];
    orders(&mut world, &memory);
    rescan(&mut world, &[(first, 1, 10 * MIB), (second, 1, 10 * MIB)]);
    let told = orders(&mut world, &memory);
    assert_eq!(told[0].0, [first], "the second does not fit");
    assert!(told[1].0.is_empty());
    rescan(&mut world, &[(first, 1, 10 * MIB), (second, 1, 10 * MIB)]);
    assert_eq!(orders(&mut world, &memory)[0].0, [first], "what is on its way keeps its room");
}

#[test]
fn units_of_a_group_are_taken_by_those_who_have_them() {
    let mut world = World::new(5, 5);
    let id = group(1);
    world.store(id, rs(3, 2, 6 * 1024, BlockState::Complete), &[0, 1, 2, 3, 4]);
    let memory = [MIB; 5];
    orders(&mut world, &memory);
    let unit = |unit| id.internal(UnitIndex(unit));
    let wants: Vec<_> = (0..3).map(|index| (unit(index), 1, 2048)).collect();
    rescan(&mut world, &wants);
    let told = orders(&mut world, &memory);
    for (node, (take, _)) in told[..3].iter().enumerate() {
        assert_eq!(*take, [unit(node as u8)]);
    }
    assert!(told[3].0.is_empty() && told[4].0.is_empty());
}

#[test]
fn memory_of_dead_nodes_counts_for_nothing() {
    let mut world = World::new(2, 1);
    let id = block(1);
    world.store(id, replicated(2, MIB, BlockState::Complete), &[0, 1]);
    let memory = [8 * MIB; 2];
    orders(&mut world, &memory);
    let dead = world.handle(0);
    world.cluster.cache_report(dead, [id]);
    rescan(&mut world, &[(id, 1, MIB)]);
    assert!(takers(&orders(&mut world, &memory), id).is_empty());
    world.run(700_000, &[0]);
    assert!(!world.cluster.node(dead).alive);
    rescan(&mut world, &[(id, 1, MIB)]);
    assert!(!world.cluster.is_cached(id, dead));
    let uuid = "uuid-1";
    let heartbeat = Heartbeat { cache_capacity: 8 * MIB, ..heartbeat_of(1, 50 * GIB) };
    world.beat(uuid, heartbeat);
    rescan(&mut world, &[(id, 1, MIB)]);
    let heartbeat = Heartbeat { cache_capacity: 8 * MIB, ..heartbeat_of(1, 50 * GIB) };
    let answer = world.beat(uuid, heartbeat);
    assert!(answer.commands.contains(&Command::Cache(vec![id])));
}
