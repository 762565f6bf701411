use crate::fixture::*;
use crate::slow::reports::SlowReports;
use crate::*;
use std::time::Duration;

const MINUTE: u64 = 60_000;

fn slow(latency_ms: f64) -> Outlier {
    Outlier { latency_ms, median_ms: 1.0, mad_ms: 0.5, limit_ms: 5.0 }
}

/// Nodes `10.0.R.N`, on whose pages' ports reports may name them.
fn world(nodes: usize, set: impl FnOnce(&mut SlowConfig)) -> World {
    let mut world = World::new(nodes, 2);
    let mut config = world.cluster.config().clone();
    config.slow = SlowConfig { takes_peers: true, takes_disks: true, ..SlowConfig::default() };
    set(&mut config.slow);
    world.cluster.set_config(config);
    world
}

fn report(world: &mut World, from: usize, on: usize) -> Vec<NodeHandle> {
    let (reporter, now) = (world.handle(from), world.now);
    let name = format!("10.0.{}.{on}:9864", on % 2);
    world.cluster.slow_peers_reported(reporter, [(name.as_str(), slow(50.0))], now)
}

fn told(world: &World, max: usize) -> Vec<(usize, usize)> {
    let number = |node: NodeHandle| world.number(world.cluster.node(node).storages[0]);
    let slow = world.cluster.slow_nodes(max, world.now);
    slow.iter().map(|slow| (number(slow.node), slow.reports.len())).collect()
}

#[test]
fn those_that_most_call_slow_come_first_and_reports_end() {
    let mut world = world(6, |_| ());
    assert_eq!(report(&mut world, 0, 3), [world.handle(3)]);
    assert_eq!(report(&mut world, 0, 3), [], "that is known");
    report(&mut world, 0, 4);
    report(&mut world, 1, 4);
    report(&mut world, 1, 4);
    assert_eq!(told(&world, 5), [(4, 2), (3, 1)]);
    assert_eq!(told(&world, 1), [(4, 2)]);
    world.now = at(world.now.mono_ms + 89 * MINUTE);
    report(&mut world, 2, 3);
    assert_eq!(told(&world, 5), [(3, 2), (4, 2)]);
    world.now = at(world.now.mono_ms + MINUTE);
    assert_eq!(told(&world, 5), [(3, 1)], "one and a half hours after most of them");
    assert_eq!(report(&mut world, 0, 3), [world.handle(3)], "it is so again");
}

#[test]
fn of_a_report_so_many_entries_are_taken_and_each_node_is_told_once() {
    let mut world = world(2, |_| ());
    let (reporter, now) = (world.handle(0), world.now);
    let mut told = |names: Vec<&str>| {
        let peers = names.into_iter().map(|name| (name, slow(9.0)));
        world.cluster.slow_peers_reported(reporter, peers, now).len()
    };
    let others = |count: usize| vec!["10.9.9.9:9864"; count];
    assert_eq!(told([others(64), vec!["10.0.1.1:9864"]].concat()), 0);
    assert_eq!(told([others(60), vec!["10.0.1.1:9864"; 3]].concat()), 1);
}

#[test]
fn what_holds_no_more_is_forgotten() {
    for takes_peers in [true, false] {
        let mut world = world(2, |slow| slow.takes_peers = takes_peers);
        report(&mut world, 0, 1);
        let (reporter, now) = (world.handle(0), world.now);
        let disk = SlowDisk { path: "/a".to_string(), ..SlowDisk::default() };
        world.cluster.slow_disks_reported(reporter, vec![disk], now);
        assert_eq!(world.cluster.slow.kept(), (usize::from(takes_peers), 1));
        world.now = at(world.now.mono_ms + 90 * MINUTE);
        world.cluster.collect_slow(world.now);
        assert_eq!(world.cluster.slow.kept(), (0, 0));
    }
}

#[test]
fn a_peer_is_named_by_any_port_or_by_an_address_that_is_its_own() {
    let mut world = world(2, |_| ());
    let second = Registration {
        uuid: "uuid-2".to_string(),
        address: NodeAddress {
            ip: "10.0.0.0".to_string(),
            xfer_port: 9867,
            info_port: 80,
            ..NodeAddress::default()
        },
        ..Registration::default()
    };
    world.register(second);
    let (reporter, now) = (world.handle(1), world.now);
    let mut found = |name: &str| {
        world.cluster.slow = SlowReports::default();
        let found = world.cluster.slow_peers_reported(reporter, [(name, slow(9.0))], now);
        found.first().map(|node| world.cluster.node(*node).uuid.clone())
    };
    assert_eq!(found("10.0.0.0:9866").as_deref(), Some("uuid-0"));
    assert_eq!(found("10.0.0.0:80").as_deref(), Some("uuid-2"));
    assert_eq!(found("10.0.0.0:1"), None, "either of two");
    assert_eq!(found("10.0.0.0:0"), None, "both lack a secure port");
    assert_eq!(found("10.0.1.1:1").as_deref(), Some("uuid-1"));
    for name in ["10.0.9.9:9866", "10.0.1.1", "", ":", "10.0.1.1:x"] {
        assert_eq!(found(name), None, "{name}");
    }
}

#[test]
fn nothing_is_kept_of_what_is_not_wanted() {
    let mut world = world(3, |slow| slow.takes_peers = false);
    assert!(report(&mut world, 0, 1).is_empty() && told(&world, 5).is_empty());
    let mut config = world.cluster.config().clone();
    config.slow.takes_peers = true;
    world.cluster.set_config(config.clone());
    report(&mut world, 0, 1);
    world.run(3000, &[]);
    assert!(world.cluster.is_slow(world.handle(1)));
    config.slow.takes_peers = false;
    world.cluster.set_config(config);
    assert!(told(&world, 5).is_empty() && !world.cluster.is_slow(world.handle(1)));
}

#[test]
fn whom_to_keep_off_is_found_out_at_intervals() {
    let mut world = world(6, |slow| {
        slow.nodes_avoided = 1;
        slow.collect_interval = Duration::from_secs(60);
    });
    let avoided = |world: &World| -> Vec<usize> {
        (0..6).filter(|node| world.cluster.is_slow(world.handle(*node))).collect()
    };
    world.run(3000, &[]);
    report(&mut world, 0, 2);
    report(&mut world, 0, 3);
    report(&mut world, 1, 3);
    world.run(30_000, &[]);
    assert!(avoided(&world).is_empty());
    world.run(30_000, &[]);
    assert_eq!(avoided(&world), [3]);
    let mut config = world.cluster.config().clone();
    config.slow.nodes_avoided = 2;
    world.cluster.set_config(config);
    world.run(3000, &[]);
    assert_eq!(avoided(&world), [2, 3], "at once after a change");
    world.now = at(world.now.mono_ms + 90 * MINUTE);
    world.cluster.collect_slow(world.now);
    assert!(avoided(&world).is_empty());
}

#[test]
fn the_slowest_disks_come_first_and_the_last_report_counts() {
    let mut world = world(2, |_| ());
    let disk = |path: &str, read_ms: f64, write_ms: Option<f64>| SlowDisk {
        path: path.to_string(),
        read_ms: Some(read_ms),
        write_ms,
        ..SlowDisk::default()
    };
    let tell = |world: &mut World, node: usize, disks: Vec<SlowDisk>| {
        let (reporter, now) = (world.handle(node), world.now);
        world.cluster.slow_disks_reported(reporter, disks, now);
    };
    let paths = |world: &World, max: usize| -> Vec<String> {
        let disks = world.cluster.slow_disks(max, world.now);
        disks.iter().map(|(_, disk)| disk.path.clone()).collect()
    };
    tell(&mut world, 0, vec![disk("/a", 40.0, None), disk("/b", 30.0, Some(90.0))]);
    tell(&mut world, 1, vec![disk("/c", 50.0, None)]);
    assert_eq!(paths(&world, 5), ["/b", "/c", "/a"]);
    assert_eq!(paths(&world, 2), ["/b", "/c"]);
    tell(&mut world, 0, vec![disk("/a", 60.0, None)]);
    tell(&mut world, 0, Vec::new());
    assert_eq!(paths(&world, 5), ["/a", "/c"]);
    tell(&mut world, 1, vec![disk(&"/".repeat(5000), 99.0, None)]);
    assert_eq!(paths(&world, 5), ["/a"]);
    world.now = at(world.now.mono_ms + 90 * MINUTE);
    assert!(paths(&world, 5).is_empty());
}

/// A world of those racks' nodes, of which some are called slow and kept off by writers.
fn world_avoiding(racks: &[usize], avoided: &[usize]) -> World {
    let mut world = World::with_racks(racks);
    let mut config = world.cluster.config().clone();
    config.slow = SlowConfig {
        takes_peers: true,
        avoid_for_write: true,
        nodes_avoided: 10,
        ..SlowConfig::default()
    };
    world.cluster.set_config(config);
    let (reporter, now) = (world.handle(0), world.now);
    for node in avoided {
        let name = format!("10.0.{}.{node}:9864", racks[*node]);
        world.cluster.slow_peers_reported(reporter, [(name.as_str(), slow(50.0))], now);
    }
    world.run(3000, &[]);
    let is_slow = |node: &usize| world.cluster.is_slow(world.handle(*node));
    assert!(avoided.iter().all(is_slow));
    world
}

fn racks_of(world: &World, chosen: &[StorageHandle]) -> Vec<usize> {
    let mut counts = std::collections::BTreeMap::new();
    for storage in chosen {
        *counts.entry(world.rack(*storage)).or_insert(0) += 1;
    }
    counts.into_values().collect()
}

#[test]
fn a_slow_node_in_a_second_rack_comes_before_a_quick_one_too_many_in_the_first() {
    let world = world_avoiding(&[0, 0, 0, 0, 1, 1, 1], &[4, 5, 6]);
    for (count, most) in [(2, 1), (3, 2)] {
        for (seed, writer) in (0..50).zip(["", "10.0.0.0"].into_iter().cycle()) {
            let request =
                PlacementRequest { count, writer, block_len: GIB, ..PlacementRequest::default() };
            let chosen = world.cluster.choose_replicated(&request, world.now, &mut dice(seed));
            assert_eq!(racks_of(&world, &chosen), [most, 1], "seed {seed}");
        }
    }
}

#[test]
fn units_go_to_slow_nodes_before_a_rack_has_more_than_its_share() {
    let racks: Vec<usize> = (0..15).map(|node| node / 5).collect();
    let world = world_avoiding(&racks, &[10, 11, 12, 13, 14]);
    let request = PlacementRequest { count: 9, block_len: GIB, ..PlacementRequest::default() };
    for seed in 0..50 {
        let chosen = world.cluster.choose_striped(&request, world.now, &mut dice(seed));
        assert_eq!(racks_of(&world, &chosen), [3, 3, 3], "seed {seed}");
    }
}

#[test]
fn where_racks_lack_room_quick_nodes_come_first_still() {
    let racks = [0, 0, 0, 0, 0, 0, 1];
    let world = world_avoiding(&racks, &[3, 6]);
    let excluded = [world.handle(6)];
    let request = PlacementRequest {
        count: 5,
        excluded: &excluded,
        block_len: GIB,
        ..PlacementRequest::default()
    };
    for seed in 0..50 {
        let replicated = world.cluster.choose_replicated(&request, world.now, &mut dice(seed));
        let units = world.cluster.choose_striped(&request, world.now, &mut dice(seed));
        for chosen in [replicated, units] {
            assert_eq!(chosen.len(), 5);
            assert!(chosen.iter().all(|storage| world.number(*storage) != 3), "seed {seed}");
        }
    }
}

/// Six nodes in two racks, of which node 0 is called slow.
fn world_with_a_slow_node(set: impl FnOnce(&mut SlowConfig)) -> World {
    let mut world = world(6, set);
    report(&mut world, 5, 0);
    world.run(3000, &[]);
    assert!(world.cluster.is_slow(world.handle(0)));
    world
}

#[test]
fn readers_get_slow_nodes_after_others_and_before_stale_ones() {
    for avoid in [false, true] {
        let mut world = world_with_a_slow_node(|slow| slow.avoid_for_read = avoid);
        world.store(block(1), replicated(6, 10, BlockState::Complete), &[0, 1, 2, 3, 4, 5]);
        world.run(33_000, &[3]);
        let mut locations = world.cluster.locations(block(1));
        let (reader, mut dice) = (Reader { host: "10.0.0.0", rack: None }, dice(1));
        world.cluster.sort_for_reader(&mut locations, &reader, world.now, &mut dice);
        let order: Vec<usize> = locations.iter().map(|l| world.number(l.storage)).collect();
        let place = if avoid { 4 } else { 0 };
        assert_eq!((order[place], order[5]), (0, 3), "{order:?}");
    }
}

#[test]
fn new_blocks_and_units_go_to_slow_nodes_only_where_nobody_else_is() {
    for (avoid, count) in [(false, 3), (true, 3), (true, 5), (true, 6)] {
        let world = world_with_a_slow_node(|slow| slow.avoid_for_write = avoid);
        let request = PlacementRequest {
            count,
            writer: "10.0.0.0",
            block_len: GIB,
            ..PlacementRequest::default()
        };
        for seed in 0..50 {
            let replicated = world.cluster.choose_replicated(&request, world.now, &mut dice(seed));
            let units = world.cluster.choose_striped(&request, world.now, &mut dice(seed));
            for chosen in [replicated, units] {
                assert_eq!(chosen.len(), count);
                let has_slow = chosen.iter().any(|storage| world.number(*storage) == 0);
                assert_eq!(has_slow, !avoid || count == 6, "seed {seed}");
            }
        }
    }
}
