//! Nodes that die with more than is forgotten at once, and reports that are longer than a step.

use crate::fixture::*;
use crate::*;
use cairn_stripe::BlockId;

const LIVE: BlockState = BlockState::Complete;

fn finalized(block: BlockRef) -> ReportedReplica {
    ReportedReplica { block, state: ReplicaState::Finalized, crc32c: None }
}

/// `count` blocks of two copies on the first two of four nodes.
fn filled(count: i64) -> World {
    let mut world = World::new(4, 1);
    for number in 0..count {
        world.store(block(number), replicated(2, 100, LIVE), &[0, 1]);
    }
    world
}

fn die(world: &mut World, node: usize) {
    let handle = world.handle(node);
    world.cluster.node_died(&world.blocks, handle);
}

fn live(world: &World, id: BlockId) -> usize {
    world.cluster.tally(id, &world.blocks.0[&id]).live
}

#[test]
fn what_a_dead_node_held_is_forgotten_in_steps_and_counts_for_nothing_from_the_first() {
    let mut world = filled(2500);
    die(&mut world, 0);
    assert_eq!(world.cluster.queues().len(), 1000);
    for id in [block(0), block(2499)] {
        assert_eq!((world.places(id), live(&world, id)), (vec![(1, 0)], 1));
        let facts = world.blocks.0[&id];
        let replicas = world.cluster.replicas(id, &facts);
        assert_eq!((replicas.len(), world.cluster.good_units(id, &facts)), (1, 1));
    }
    let mut queued = Vec::new();
    while world.cluster.drop_lost(&world.blocks) {
        queued.push(world.cluster.queues().len());
    }
    assert_eq!(queued, [2000]);
    assert_eq!(world.cluster.queues().len(), 2500);
    assert_eq!(world.cluster.blocks.map().count_on(world.storage(0)), 0);
}

#[test]
fn ticks_find_the_dead_and_say_when_more_is_to_be_forgotten() {
    let mut world = filled(1500);
    world.run(600_000, &[0]);
    let mut more = Vec::new();
    while world.cluster.node_by_uuid("uuid-0").unwrap().alive {
        world.now = at(world.now.mono_ms + 3000);
        more.push(world.cluster.tick(&world.blocks, world.now, &mut *world.dice).more);
        (1..4).for_each(|node| drop(world.heartbeat(node)));
    }
    assert_eq!(more.last(), Some(&true));
    assert!(!world.cluster.tick(&world.blocks, world.now, &mut *world.dice).more);
}

/// The last replica is no surplus because of one on a node that is known to be dead.
#[test]
fn nothing_is_deleted_on_account_of_what_is_lost_and_not_forgotten_yet() {
    let mut world = filled(2000);
    let id = block(5000);
    world.store(id, replicated(1, 100, LIVE), &[0]);
    die(&mut world, 0);
    let good = world.good(id, 0);
    world.received(1, good);
    let told: Vec<Command> = (0..4).flat_map(|node| world.heartbeat(node)).collect();
    assert!(!told.iter().any(|command| matches!(command, Command::Invalidate(_))), "{told:?}");
    assert_eq!((world.places(id), live(&world, id)), (vec![(1, 0)], 1));
}

#[test]
fn a_node_that_returns_before_all_is_forgotten_has_the_rest() {
    let mut world = filled(2500);
    die(&mut world, 0);
    world.register(registration(0, 0));
    world.heartbeat(0);
    assert!(!world.cluster.drop_lost(&world.blocks));
    assert_eq!((live(&world, block(999)), live(&world, block(1000))), (1, 2));
    assert!(!world.cluster.tally(block(1000), &world.blocks.0[&block(1000)]).certain);
    let held: Vec<ReportedReplica> =
        (1..2500).map(|number| finalized(world.good(block(number), 0))).collect();
    world.full_report(0, &held);
    assert_eq!(world.cluster.queues().len(), 1, "but for one that it has not any more");
    assert_eq!((live(&world, block(0)), live(&world, block(999))), (1, 2));
}

/// Takes one step of a report; whether another is to follow.
fn step(world: &mut World, report: &mut FullReport) -> bool {
    let mut changes = Changes::default();
    world.cluster.full_report_step(&world.blocks, report, world.now, &mut changes)
}

fn begin(world: &mut World, node: usize, numbers: std::ops::Range<i64>) -> FullReport {
    let held = numbers.map(|number| finalized(world.good(block(number), 0)));
    let mut report = FullReport::new(held.collect());
    let (call, uuid) = (world.report_call(node), storage_uuid(node));
    let storage = (uuid.as_str(), StorageType::Disk);
    world.cluster.begin_full_report(call, storage, &mut report).unwrap();
    report
}

#[test]
fn what_happens_while_a_report_is_taken_is_newer() {
    let mut world = filled(3000);
    for number in 3000..3010 {
        world.blocks.0.insert(block(number), replicated(2, 100, LIVE));
    }
    let mut report = begin(&mut world, 0, 1..2900);
    assert!(step(&mut world, &mut report));
    assert_eq!(live(&world, block(0)), 1, "the report does not name it");
    let new = world.good(block(3005), 0);
    world.received(0, new);
    for number in [0, 2800] {
        let gone = world.good(block(number), 0);
        world.deleted(0, gone);
    }
    let back = world.good(block(0), 0);
    world.received(0, back);
    while step(&mut world, &mut report) {}
    let known = [0, 1, 2800, 2899, 2900, 2999, 3005].map(|n| live(&world, block(n)));
    assert_eq!(known, [2, 2, 1, 2, 1, 1, 1]);
}

#[test]
fn a_report_ends_when_another_begins_and_when_its_node_starts_anew() {
    let mut world = filled(2500);
    let mut first = begin(&mut world, 0, 0..0);
    assert!(step(&mut world, &mut first));
    let mut second = begin(&mut world, 0, 0..2500);
    assert!(!step(&mut world, &mut first), "it is overtaken");
    while step(&mut world, &mut second) {}
    assert_eq!(live(&world, block(0)) + live(&world, block(2499)), 4);
    let mut third = begin(&mut world, 0, 0..0);
    world.register(registration(0, 0));
    assert!(!step(&mut world, &mut third));
    assert!(!world.cluster.storage(world.storage(0)).reported, "its report is still to come");
    assert_eq!(live(&world, block(0)), 2);
}

/// The lists of one call are of one time: what overtakes the first overtakes the others.
#[test]
fn what_is_overtaken_in_one_storage_goes_on_with_no_other() {
    let overtakes: [fn(&mut World); 3] = [
        |world| {
            world.register(registration(0, 0));
        },
        |world| {
            die(world, 0);
            world.register(registration(0, 0));
        },
        |world| {
            world.report_call(0);
        },
    ];
    for overtake in overtakes {
        let mut world = filled(2500);
        let call = world.report_call(0);
        let mut first = FullReport::new(Vec::new());
        let storage = ("DS-other", StorageType::Disk);
        world.cluster.begin_full_report(call, storage, &mut first).unwrap();
        overtake(&mut world);
        let before = live(&world, block(2499));
        assert!(!step(&mut world, &mut first));
        let refused = Err(RedundancyError::ReportOvertaken { uuid: "uuid-0".to_string() });
        let (uuid, mut second) = (storage_uuid(0), FullReport::new(Vec::new()));
        let storage = (uuid.as_str(), StorageType::Disk);
        assert_eq!(world.cluster.begin_full_report(call, storage, &mut second), refused);
        assert!(!step(&mut world, &mut second));
        assert_eq!(world.cluster.end_report_call(call, true), refused);
        assert_eq!(live(&world, block(2499)), before, "it is not gone for that");
    }
}

/// Each name that a DataNode makes up would take memory for good.
#[test]
fn a_node_has_only_so_many_storages() {
    let mut world = World::new(1, 1);
    let named =
        |number| StorageReport { uuid: format!("DS-x{number}"), ..StorageReport::default() };
    for round in 0..3 {
        let storages = (0..800).map(|number| named(round * 800 + number)).collect();
        let heartbeat = Heartbeat { storages, ..Heartbeat::default() };
        world.beat("uuid-0", heartbeat);
    }
    assert_eq!(world.cluster.node_by_uuid("uuid-0").unwrap().storages.len(), 1024);
    let handle = world.handle(0);
    let refuses = |world: &mut World, uuid: &str| {
        let storage = (uuid, StorageType::Disk);
        let events = world.cluster.incremental_report(&world.blocks, handle, storage, &[]);
        let call = world.report_call(0);
        let all = world.cluster.full_report(&world.blocks, call, storage, &[], world.now);
        assert_eq!(events.refused, all.refused);
        all.refused
    };
    let uuid = "uuid-0".to_string();
    let refused = RedundancyError::TooManyStorages { uuid: uuid.clone(), max: 1024 };
    assert_eq!(refuses(&mut world, "DS-y"), Some(refused));
    assert_eq!(refuses(&mut world, "DS-x7"), None, "it is known");
    let mut world = World::new(1, 1);
    let refused = RedundancyError::StorageNameTooLong { uuid, len: 300, max: 256 };
    assert_eq!(refuses(&mut world, &"D".repeat(300)), Some(refused));
    assert!(refuses(&mut world, "DS-z").is_none());
    let max = world.cluster.nodes.storage_count();
    world.cluster.nodes.limit_storages(max);
    let refused = RedundancyError::NoMoreStorages { max };
    assert_eq!(refuses(&mut world, "DS-zz"), Some(refused));
    assert_eq!(refuses(&mut world, "DS-z"), None, "it is known");
}
