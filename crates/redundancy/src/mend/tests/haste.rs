//! How soon lost redundancy is seen to, and how much of it at once.

use super::*;

/// A tick and the heartbeats of the live nodes, `ms` later.
fn step(world: &mut World, ms: u64, silent: &[usize]) -> BTreeMap<usize, Vec<Command>> {
    world.now = at(world.now.mono_ms + ms);
    world.cluster.tick(&world.blocks, world.now, &mut *world.dice);
    let live = (0..world.cluster.nodes.all().len()).filter(|node| !silent.contains(node));
    live.map(|node| (node, world.heartbeat(node))).collect()
}

#[test]
fn what_a_dead_node_held_waits_for_no_round() {
    let mut world = World::new(6, 3);
    world.store(block(1), replicated(3, 100, LIVE), &[0, 1, 4]);
    world.store(group(1), rs(2, 1, 4096, LIVE), &[1, 2, 4]);
    world.run(6000, &[]);
    die(&mut world, 4);
    let commands = step(&mut world, 20, &[4]);
    assert_eq!((transfers(&commands).len(), decodes(&commands).len()), (1, 1));
}

#[test]
fn a_bad_replica_waits_for_no_round() {
    let mut world = World::new(6, 3);
    world.store(block(1), replicated(3, 100, LIVE), &[0, 1, 4]);
    world.run(6000, &[]);
    let (node, bad) = (world.handle(0), world.good(block(1), 0));
    world.cluster.report_bad(&world.blocks, node, "", bad).unwrap();
    assert_eq!(transfers(&step(&mut world, 20, &[])).len(), 1);
}

#[test]
fn haste_schedules_no_more_than_one_round_may() {
    let mut world = World::new(6, 3);
    for number in 1..=40 {
        world.store(block(number), replicated(3, 100, LIVE), &[0, 1, 4]);
        world.store(block(100 + number), replicated(3, 100, LIVE), &[2, 3, 5]);
    }
    world.run(6000, &[]);
    let multiplier = world.cluster.config().work_multiplier;
    die(&mut world, 4);
    step(&mut world, 20, &[4]);
    let first = world.cluster.work.under_way_count();
    assert!((1..=5 * multiplier as u64).contains(&first), "{first}");
    // Further losses within the round share what is left of it.
    die(&mut world, 5);
    step(&mut world, 20, &[4, 5]);
    let both = world.cluster.work.under_way_count();
    assert!(both <= 5 * multiplier as u64, "{both}");
    step(&mut world, 3000, &[4, 5]);
    let later = world.cluster.work.under_way_count();
    assert!(later > both && later <= both + 4 * multiplier as u64, "{both}, {later}");
}

#[test]
fn haste_hands_no_node_more_streams_than_it_may_have() {
    let mut world = World::new(6, 3);
    for number in 1..=40 {
        world.store(block(number), replicated(3, 100, LIVE), &[0, 1, 4]);
    }
    world.run(6000, &[]);
    die(&mut world, 4);
    let commands = step(&mut world, 20, &[4]);
    for node in [0, 1] {
        let own = transfers(&commands).iter().filter(|(source, _)| *source == node).count();
        assert_eq!(own, world.cluster.config().max_streams, "node {node}");
    }
}

#[test]
fn a_node_can_see_that_it_was_given_work() {
    let mut world = World::new(6, 3);
    world.store(block(1), replicated(3, 100, LIVE), &[0, 1, 4]);
    world.run(6000, &[]);
    world.cluster.take_new_orders();
    let numbers = |world: &World| -> Vec<u64> {
        (0..6).map(|node| world.cluster.orders(world.handle(node))).collect()
    };
    let before = numbers(&world);
    let commands = step(&mut world, 3000, &[]);
    assert_eq!((transfers(&commands).len(), numbers(&world)), (0, before.clone()));
    assert!(!world.cluster.take_new_orders());
    die(&mut world, 4);
    let commands = step(&mut world, 20, &[4]);
    let worker = transfers(&commands)[0].0;
    assert!(world.cluster.take_new_orders() && !world.cluster.take_new_orders());
    let after = numbers(&world);
    for node in 0..6 {
        assert_eq!(after[node] != before[node], node == worker, "node {node}");
    }
}

#[test]
fn lost_units_go_to_nodes_that_get_no_others() {
    for seed in 0..20 {
        let mut world = World::new(6, 6);
        world.dice = Box::new(dice(seed));
        for number in 1..=3 {
            world.store(group(number), rs(2, 1, 4096, LIVE), &[0, 1, 2]);
            world.store(block(number), replicated(2, 100, LIVE), &[1, 2]);
        }
        world.run(6000, &[]);
        die(&mut world, 2);
        let commands = step(&mut world, 20, &[2]);
        let mut workers: Vec<usize> = decodes(&commands).iter().map(|(node, _)| *node).collect();
        workers.sort_unstable();
        assert_eq!(workers, [3, 4, 5], "seed {seed}");
    }
}

#[test]
fn what_is_on_its_way_is_counted_until_it_is_there() {
    let mut world = World::new(4, 2);
    world.store(block(1), replicated(2, 100, LIVE), &[0, 1]);
    world.run(6000, &[]);
    die(&mut world, 1);
    let found = transfers(&step(&mut world, 20, &[1]));
    let target = found[0].1.targets[0];
    assert_eq!(world.cluster.work.coming_to(target), 1);
    world.received(world.number(target), world.good(block(1), 0));
    assert_eq!(world.cluster.work.coming_to(target), 0);
}
