//! What holds a leaving node, what lets it go, and what comes from where.

use super::model::Play;
use crate::fixture::*;
use crate::*;

const LIVE: BlockState = BlockState::Complete;
const MIB: u64 = 1 << 20;

/// Twelve nodes in four racks, with groups of RS-6-3 that all have a unit on node 0.
fn wide(groups: i64) -> Play {
    let mut play = Play::new(12, 4);
    for number in 0..groups {
        let first = number as usize % 3;
        let nodes: Vec<usize> = std::iter::once(0).chain((1..12).skip(first).take(8)).collect();
        play.store(group(number), rs(6, 3, 6 * MIB, LIVE), &nodes);
    }
    play
}

#[test]
fn a_decommission_ends_when_others_have_all() {
    let mut play = wide(20);
    for number in 0..20 {
        play.store(block(number), replicated(3, MIB, LIVE), &[0, 1, 2]);
    }
    play.decommission(0);
    assert_eq!(play.admin(0), AdminState::DecommissionInProgress);
    let told = play.told(0).unwrap();
    assert_eq!((told.blocks_left, told.bytes_left), (40, 40 * MIB), "{told:?}");
    assert_eq!((told.counted, told.held_back), (true, None));
    play.until(0, AdminState::Decommissioned);
    for number in 0..20 {
        assert_eq!(play.in_service(group(number)), 9);
        assert_eq!(play.in_service(block(number)), 3);
    }
    assert_eq!(play.told(0), None);
    // What it holds is surplus when it serves again.
    play.intend(0, AdminIntent::InService);
    play.steps(30);
    for number in 0..20 {
        assert_eq!(play.on_disks(group(number), |_| true), 9);
        assert_eq!(play.on_disks(block(number), |_| true), 3);
    }
    assert_eq!(play.disks.iter().map(|disk| disk.len()).sum::<usize>(), 20 * 12);
}

#[test]
fn progress_is_told_with_an_estimate() {
    let mut play = wide(60);
    play.decommission(0);
    play.steps(4);
    let told = play.told(0).unwrap();
    assert!(told.blocks_done > 0 && told.blocks_left > 0, "{told:?}");
    assert_eq!(told.blocks_done + told.blocks_left, 60);
    assert_eq!(told.bytes_done + told.bytes_left, 60 * MIB);
    assert!(told.bytes_per_second > 0);
    let rate = told.bytes_per_second;
    assert_eq!(told.seconds_left, Some(told.bytes_left.div_ceil(rate)));
    assert_eq!(told.age_ms, 12_000);
}

#[test]
fn row_13_a_leaving_node_is_not_the_only_source_of_what_it_holds() {
    let mut play = wide(60);
    play.decommission(0);
    play.until(0, AdminState::Decommissioned);
    let (copied, decoded) = (play.copied.len(), play.decoded.len());
    assert_eq!(copied + decoded, 60);
    assert!(copied >= 10, "it must serve too: {copied} copied, {decoded} decoded");
    assert!(decoded >= 20, "others must help: {copied} copied, {decoded} decoded");
    for (_, work) in &play.decoded {
        let leaving = play.world.storage(0);
        assert!(work.sources.iter().all(|(source, _)| *source != leaving), "{work:?}");
    }
    // Each node that decodes writes one of the units itself.
    let own =
        |(node, work): &(usize, Reconstruction)| play.world.number(work.targets[0].0) == *node;
    assert!(play.decoded.iter().all(own));
}

#[test]
fn row_13_what_a_silent_leaving_node_holds_is_decoded() {
    let mut play = wide(5);
    play.decommission(0);
    play.dead.insert(0);
    // Stale after 30 s, dead only after ten minutes.
    play.steps(60);
    assert_eq!(play.copied, []);
    assert_eq!(play.decoded.len(), 5);
    assert!((0..5).all(|number| play.in_service(group(number)) == 9));
    assert_eq!(play.admin(0), AdminState::Decommissioned, "others have all");
    // Replicas are copied from the others as well.
    let mut play = Play::new(6, 2);
    play.store(block(1), replicated(3, 100, LIVE), &[0, 1, 2]);
    play.decommission(0);
    play.dead.insert(0);
    play.steps(60);
    assert_eq!(play.in_service(block(1)), 3);
}

#[test]
fn row_15_a_busy_leaving_node_holds_nothing_pending_and_no_other_index_is_rebuilt() {
    let mut play = wide(1);
    let mut busy = heartbeat_of(0, 50 * GIB);
    busy.xmits = 4;
    let now = play.world.now;
    play.decommission(0);
    // With four other nodes away there are too few units to decode from: only node 0 has unit 0.
    let mut config = play.world.cluster.config().clone();
    config.maintenance_replication_min = 0;
    play.world.cluster.set_config(config);
    for node in 1..5 {
        play.maintain(node, 600_000);
    }
    play.world.beat("uuid-0", busy.clone());
    play.world.now = at(now.mono_ms + 3000);
    let later = play.world.now;
    play.world.cluster.tick(&play.world.blocks, later, &mut || 0);
    play.world.now = at(later.mono_ms + 3000);
    let later = play.world.now;
    play.world.cluster.tick(&play.world.blocks, later, &mut || 0);
    assert_eq!(play.world.cluster.stats(later).pending_reconstruction, 0);
    assert!(matches!(play.told(0).unwrap().blocks[..], [(_, HeldBack::Waiting)]));
    // As soon as it has a stream free, exactly its unit is copied.
    play.world.heartbeat(0);
    play.steps(3);
    assert_eq!(play.copied, [(0, play.world.good(group(0), 0).id)]);
    assert_eq!(play.decoded, []);
}

#[test]
fn row_14_racks_that_are_left_are_enough() {
    // Three racks; the whole third one leaves.
    let mut play = Play::new(12, 3);
    let ring: Vec<usize> = (0..9).collect();
    play.store(group(1), rs(6, 3, 6 * MIB, LIVE), &ring);
    play.store(block(1), replicated(3, 100, LIVE), &[2, 5, 0]);
    let mut wide = Play::new(14, 2);
    wide.store(group(1), rs(6, 3, 6 * MIB, LIVE), &ring);
    for node in [1, 3] {
        wide.decommission(node);
    }
    for node in [1, 3] {
        wide.until(node, AdminState::Decommissioned);
    }
    play.decommission(2);
    play.until(2, AdminState::Decommissioned);
    play.decommission(5);
    play.until(5, AdminState::Decommissioned);
    play.decommission(8);
    play.until(8, AdminState::Decommissioned);
    assert_eq!(play.in_service(group(1)), 9);
}

#[test]
fn row_14_a_group_wider_than_the_nodes_that_are_left_doubles_up_within_what_it_can_lose() {
    let mut play = Play::new(9, 3);
    let ring: Vec<usize> = (0..9).collect();
    for number in 0..10 {
        play.store(group(number), rs(6, 3, 6 * MIB, LIVE), &ring);
    }
    for node in [0, 1] {
        play.decommission(node);
        play.until(node, AdminState::Decommissioned);
    }
    for number in 0..10 {
        assert_eq!(play.in_service(group(number)), 9);
        for node in 2..9 {
            let units = play.on_disks(group(number), |n| n == node);
            assert!((1..=2).contains(&units), "node {node} has {units} units");
        }
    }
    // Other nodes come: each unit gets its own.
    for node in [9, 10] {
        play.disks.push(Default::default());
        play.revive(node, 0);
    }
    play.steps(60);
    for number in 0..10 {
        assert_eq!(play.in_service(group(number)), 9);
        for node in 2..11 {
            assert_eq!(play.on_disks(group(number), |n| n == node), 1, "node {node}");
        }
    }
    let copied = play.copied.len();
    play.steps(60);
    assert_eq!(play.copied.len(), copied, "and stays");
}

#[test]
fn row_14_what_cannot_go_anywhere_says_why() {
    let mut play = Play::new(3, 1);
    play.store(block(1), replicated(3, 100, LIVE), &[0, 1, 2]);
    play.store(group(1), rs(2, 1, 4096, LIVE), &[0, 1, 2]);
    play.decommission(0);
    play.steps(200);
    assert_eq!(play.admin(0), AdminState::DecommissionInProgress);
    let told = play.told(0).unwrap();
    assert_eq!((told.blocks_left, told.bytes_per_second, told.seconds_left), (2, 0, None));
    let held = HeldBack::NoTarget { live: 2, wanted: 3, in_service: 2, dead: 0 };
    // Two units of XOR-2-1 on one node would be lost with it.
    assert_eq!(told.blocks.iter().map(|(_, why)| *why).collect::<Vec<_>>(), [held, held]);
    let text = held.to_string();
    assert!(text.starts_with("2 of 3 are on DataNodes in service"), "{text}");
    // One more node, and it ends.
    play.disks.push(Default::default());
    play.revive(3, 0);
    play.until(0, AdminState::Decommissioned);
}

#[test]
fn a_block_with_more_copies_than_nodes_needs_the_default_number() {
    let mut play = Play::new(5, 1);
    play.store(block(1), replicated(5, 100, LIVE), &[0, 1, 2, 3, 4]);
    play.decommission(0);
    play.until(0, AdminState::Decommissioned);
}

#[test]
fn corrupt_and_open_blocks_say_so() {
    let mut play = Play::new(4, 1);
    play.store(block(1), replicated(1, 100, LIVE), &[0]);
    let (handle, good) = (play.world.handle(0), play.world.good(block(1), 0));
    play.world.cluster.report_bad(&play.world.blocks, handle, "DS-0", good).unwrap();
    play.store(block(2), replicated(1, 100, BlockState::UnderConstruction), &[0]);
    play.decommission(0);
    play.steps(30);
    let told = play.told(0).unwrap();
    let unreadable = HeldBack::Unreadable { readable: 0, needed: 1 };
    let held: Vec<HeldBack> = told.blocks.iter().map(|(_, why)| *why).collect();
    assert_eq!(held, [unreadable, HeldBack::Open]);
    assert_eq!((told.open, told.only_leaving), (1, 2));
    // The file is closed, the other one deleted.
    play.world.blocks.0.insert(block(2), replicated(1, 100, LIVE));
    play.world.cluster.block_completed(&play.world.blocks, block(2));
    play.world.blocks.0.remove(&block(1));
    play.world.cluster.block_removed(block(1), good.gs);
    play.until(0, AdminState::Decommissioned);
}

/// Its power may have failed, with the end of what was acknowledged.
#[test]
fn what_is_open_on_a_node_that_has_started_and_told_nothing_stands_for_no_other() {
    let mut play = Play::new(4, 1);
    let open = replicated(2, 100, BlockState::UnderConstruction);
    play.store(block(1), open, &[0, 1]);
    play.world.register(registration(1, 0));
    play.decommission(0);
    play.steps(30);
    assert_eq!(play.admin(0), AdminState::DecommissionInProgress);
    assert_eq!(play.told(0).unwrap().open, 1);
    let state = ReplicaState::BeingWritten;
    let block = play.world.good(block(1), 0);
    play.world.full_report(1, &[ReportedReplica { block, state, crc32c: None }]);
    play.until(0, AdminState::Decommissioned);
}

#[test]
fn maintenance_needs_little_and_ends_by_itself() {
    let mut play = wide(3);
    play.store(block(1), replicated(3, 100, LIVE), &[0, 1, 2]);
    play.store(block(2), replicated(1, 100, LIVE), &[0]);
    play.maintain(0, 600_000);
    assert_eq!(play.admin(0), AdminState::EnteringMaintenance);
    let told = play.told(0).unwrap();
    assert_eq!((told.blocks_left, told.only_leaving), (1, 1), "only the one with one copy");
    play.until(0, AdminState::InMaintenance);
    assert_eq!((play.copied.len(), play.decoded.len()), (1, 0));
    // It goes, and nothing is missed.
    play.kill(0);
    play.steps(20);
    assert_eq!((play.copied.len(), play.decoded.len()), (1, 0));
    assert_eq!(play.world.cluster.stats(play.world.now).replicated.low_redundancy, 0);
    // It does not come back in time: all it held is made anew.
    play.steps(250);
    assert_eq!(play.admin(0), AdminState::InService);
    assert!((0..3).all(|number| play.in_service(group(number)) == 9));
    assert_eq!(play.in_service(block(1)), 3);
}

#[test]
fn a_node_in_maintenance_that_is_taken_off_the_list_is_not_waited_for() {
    for dies_first in [true, false] {
        let mut play = wide(3);
        play.store(block(1), replicated(3, 100, LIVE), &[0, 1, 2]);
        play.maintain(0, 1 << 40);
        play.until(0, AdminState::InMaintenance);
        if dies_first {
            play.kill(0);
            play.steps(20);
        }
        assert_eq!((play.copied.len(), play.decoded.len()), (0, 0));
        play.dead.insert(0);
        let handle = play.world.handle(0);
        play.world.cluster.disallow_node(&play.world.blocks, handle);
        assert!(!play.world.cluster.node(handle).alive);
        play.steps(60);
        assert!((0..3).all(|number| play.in_service(group(number)) == 9));
        assert_eq!(play.in_service(block(1)), 3);
    }
}

/// What the dead node held is forgotten in steps: the walk that has found nothing was before its death.
#[test]
fn nobody_is_let_go_while_what_a_dead_node_held_is_not_all_forgotten() {
    let mut play = Play::new(5, 1);
    play.decommission(0);
    for number in 0..1500 {
        play.store(block(number), replicated(2, 1, LIVE), &[1, 2]);
    }
    let last = block(5000);
    play.store(last, replicated(1, 1, LIVE), &[1, 0]);
    // The next look is thirty seconds after the first.
    play.steps(10);
    assert_eq!(play.told(0).unwrap().blocks_left, 0);
    play.kill(1);
    play.step();
    assert_eq!(play.admin(0), AdminState::DecommissionInProgress);
    play.until(0, AdminState::Decommissioned);
    assert_eq!(play.in_service(last), 1);
}

#[test]
fn maintenance_that_is_over_before_the_node_died_costs_nothing() {
    let mut play = wide(3);
    play.maintain(0, 60_000);
    play.until(0, AdminState::InMaintenance);
    play.kill(0);
    play.steps(2);
    play.revive(0, 0);
    assert_eq!(play.admin(0), AdminState::InMaintenance);
    play.until(0, AdminState::InService);
    play.steps(30);
    assert_eq!((play.copied.len(), play.decoded.len()), (0, 0));
    assert!(play.disks.iter().map(|disk| disk.len()).sum::<usize>() == 27);
}

#[test]
fn groups_in_maintenance_keep_as_many_units_as_reading_takes() {
    // Four nodes with units of one RS-6-3 group: only three may be away without more ado.
    let mut play = Play::new(14, 1);
    let ring: Vec<usize> = (0..9).collect();
    play.store(group(1), rs(6, 3, 6 * MIB, LIVE), &ring);
    for node in 0..4 {
        play.maintain(node, 6_000_000);
    }
    for node in 0..4 {
        play.until(node, AdminState::InMaintenance);
    }
    assert_eq!(play.in_service(group(1)), 6);
    assert_eq!(play.copied.len() + play.decoded.len(), 1);
}

#[test]
fn a_dead_node_is_decommissioned_at_once_and_one_that_dies_on_the_way_when_nothing_is_at_risk() {
    let mut play = wide(3);
    play.kill(0);
    play.decommission(0);
    assert_eq!(play.admin(0), AdminState::Decommissioned);
    let mut play = wide(3);
    // No node is left to mend with.
    play.idle.extend(0..12);
    play.decommission(0);
    play.kill(0);
    play.steps(30);
    assert_eq!(play.admin(0), AdminState::DecommissionInProgress);
    let held = play.told(0).unwrap().held_back;
    assert!(matches!(held, Some(NodeHeldBack::Dead { .. })), "{held:?}");
    play.idle.clear();
    play.until(0, AdminState::Decommissioned);
    assert!((0..3).all(|number| play.in_service(group(number)) == 9));
}

#[test]
fn a_node_that_has_not_reported_is_not_let_go() {
    let mut play = Play::new(4, 1);
    play.world.register(registration(4, 0));
    play.disks.push(Default::default());
    play.decommission(4);
    play.steps(30);
    assert_eq!(play.admin(4), AdminState::DecommissionInProgress);
    assert_eq!(play.told(4).unwrap().held_back, Some(NodeHeldBack::NotReported));
    play.world.full_report(4, &[]);
    play.until(4, AdminState::Decommissioned);
}

#[test]
fn only_so_many_are_followed_at_a_time_and_dead_ones_make_room() {
    let mut play = wide(3);
    let config = Config { max_tracked_nodes: 1, ..play.world.cluster.config().clone() };
    play.world.cluster.set_config(config);
    play.idle.extend(0..12);
    play.decommission(0);
    play.decommission(8);
    let held = play.told(8).unwrap().held_back;
    assert_eq!(held, Some(NodeHeldBack::WaitingForTurn { ahead: 1 }));
    play.kill(0);
    play.steps(21);
    assert_eq!(play.told(8).unwrap().held_back, None);
    play.idle.clear();
    play.until(8, AdminState::Decommissioned);
    play.until(0, AdminState::Decommissioned);
}

#[test]
fn nobody_is_let_go_on_account_of_one_that_leaves_as_well() {
    let mut play = Play::new(8, 2);
    play.store(block(1), replicated(2, 100, LIVE), &[0, 1]);
    play.decommission(0);
    play.decommission(1);
    play.until(0, AdminState::Decommissioned);
    play.until(1, AdminState::Decommissioned);
    assert_eq!(play.in_service(block(1)), 2);
}

#[test]
fn a_node_with_very_many_blocks_is_walked_over_in_steps() {
    let mut play = Play::new(4, 1);
    for number in 0..25_000 {
        play.store(block(number), replicated(2, 1, LIVE), &[0, 1]);
    }
    play.idle.extend(0..4);
    play.decommission(0);
    let told = play.told(0).unwrap();
    assert_eq!((told.counted, told.blocks_left), (false, 10_000));
    play.steps(2);
    let told = play.told(0).unwrap();
    assert_eq!((told.counted, told.blocks_left), (true, 25_000));
    // What it was queued for is taken back the same way.
    play.intend(0, AdminIntent::InService);
    play.steps(2);
    assert_eq!(play.world.cluster.queues().len(), 0);
}

#[test]
fn replicas_are_in_distinct_upgrade_domains() {
    // Two racks; domains across racks, so that random nodes would often share one.
    let mut world = World::new(8, 2);
    let config = Config { upgrade_domain_factor: Some(3), ..world.cluster.config().clone() };
    world.cluster.set_config(config);
    for node in 0..8 {
        let handle = world.handle(node);
        world.cluster.set_upgrade_domain(handle, Some(format!("ud{}", node / 2 % 3)));
    }
    let domain = |world: &World, storage: StorageHandle| {
        world.cluster.node(world.cluster.storage(storage).node).upgrade_domain()
    };
    for seed in 0..50 {
        let request = PlacementRequest { count: 3, ..PlacementRequest::default() };
        let mut dice = dice(seed);
        let chosen = world.cluster.choose_replicated(&request, world.now, &mut dice);
        let domains: std::collections::BTreeSet<String> =
            chosen.iter().map(|storage| domain(&world, *storage)).collect();
        assert_eq!((chosen.len(), domains.len()), (3, 3));
    }
    // Nodes 0 and 1 share domain 0; of the four, one of these two is surplus.
    world.store(block(1), replicated(3, 100, LIVE), &[0, 2, 4]);
    let good = world.good(block(1), 0);
    world.received(1, good);
    world.run(6000, &[]);
    let left: Vec<usize> = world.places(block(1)).iter().map(|(node, _)| *node).collect();
    assert!(left == [0, 2, 4] || left == [1, 2, 4], "{left:?}");
    // Fewer domains than copies: they share.
    for node in 0..8 {
        let handle = world.handle(node);
        world.cluster.set_upgrade_domain(handle, Some("one".to_string()));
    }
    let request = PlacementRequest { count: 3, ..PlacementRequest::default() };
    assert_eq!(world.cluster.choose_replicated(&request, world.now, &mut || 5).len(), 3);
}

#[test]
fn a_start_with_leaving_nodes_waits_for_what_all_nodes_hold() {
    let mut play = Play::new(4, 1);
    let now = play.world.now;
    play.world.cluster.start_safe_mode(2, now);
    // It registers, and its list says that it leaves, before anything is known of blocks.
    play.decommission(0);
    play.steps(30);
    assert_eq!(play.admin(0), AdminState::DecommissionInProgress, "nothing is known yet");
    play.store(block(1), replicated(2, 100, LIVE), &[0, 1]);
    play.store(block(2), replicated(2, 100, LIVE), &[1, 0]);
    play.until(0, AdminState::Decommissioned);
    assert_eq!((play.in_service(block(1)), play.in_service(block(2))), (2, 2));
}
