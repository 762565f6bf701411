//! What is kept is what a naive model of the same events has.

use super::*;
use crate::block::{BlockState, Layout};
use crate::identity::NodeAddress;
use crate::inventory::StorageReport;
use cairn_stripe::GenerationStamp;

const SILENCE_MS: u64 = 1000;

fn at(mono_ms: u64) -> Now {
    Now { mono_ms, elapsed_ms: 0, wall_ms: 0 }
}

fn registration(number: u16, process: u64) -> Registration {
    let address =
        NodeAddress { ip: "10.0.0.1".to_string(), xfer_port: number, ..NodeAddress::default() };
    let (uuid, process) = (format!("uuid-{number}"), Some(process));
    Registration { uuid, address, process, ..Registration::default() }
}

fn heartbeat(storages: &[&str], wants_report_lease: bool) -> Heartbeat {
    let report = |uuid: &&str| StorageReport { uuid: uuid.to_string(), ..StorageReport::default() };
    let storages = storages.iter().map(report).collect();
    Heartbeat { storages, wants_report_lease, ..Heartbeat::default() }
}

fn block(id: i64, gs: u64) -> BlockRef {
    BlockRef { id: BlockId(id), gs: GenerationStamp(gs), len: 10 }
}

fn finalized(id: i64, gs: u64) -> ReportedReplica {
    ReportedReplica { block: block(id, gs), state: ReplicaState::Finalized, crc32c: None }
}

fn event(id: i64, gs: u64, kind: ReplicaEventKind) -> ReplicaEvent {
    ReplicaEvent { block: block(id, gs), kind, crc32c: None }
}

fn received() -> ReplicaEventKind {
    ReplicaEventKind::Received { delete_hint: Some("uuid-9".to_string()) }
}

struct Fixture {
    standby: Standby,
    node: Registration,
}

impl Fixture {
    /// A node with storages `a` and `b` that were reported to be empty.
    fn new() -> Fixture {
        let mut standby = Standby::new(&Config::default());
        let node = registration(1, 7);
        standby.register(node.clone(), at(0));
        let answer = standby.heartbeat(&node.claim(), heartbeat(&["a", "b"], true), at(0));
        let lease = answer.report_lease.unwrap();
        let mut fixture = Fixture { standby, node };
        fixture.report(lease, "a", vec![]).unwrap();
        fixture.report(lease, "b", vec![]).unwrap();
        fixture
    }

    fn report(
        &mut self,
        lease: u64,
        storage: &str,
        replicas: Vec<ReportedReplica>,
    ) -> Result<(), RedundancyError> {
        let list = (storage.to_string(), StorageType::Disk, replicas);
        self.standby.full_report(&self.node.claim(), (lease, false), vec![list], at(0))
    }

    fn happens(&mut self, storage: &str, event: ReplicaEvent) {
        let storage = (storage, StorageType::Disk);
        self.standby.incremental_report(&self.node.claim(), storage, &[event]).unwrap();
    }

    fn lists(self) -> Vec<KeptList> {
        let (_, node) = self.standby.hand_over(at(1), SILENCE_MS).nodes.pop_first().unwrap();
        let list = |storage: KeptStorage| KeptList {
            replicas: storage.replicas.after(None, usize::MAX),
            bad: storage.bad.into_values().collect(),
        };
        node.storages.into_values().map(list).collect()
    }
}

/// What a storage has.
struct KeptList {
    replicas: Vec<ReportedReplica>,
    bad: Vec<BlockRef>,
}

fn ids(list: &KeptList) -> Vec<(i64, u64)> {
    list.replicas.iter().map(|kept| (kept.block.id.0, kept.block.gs.0)).collect()
}

#[test]
fn what_is_told_is_kept_in_order_whatever_blocks_there_are() {
    let mut told = Fixture::new();
    told.happens("a", event(5, 1001, ReplicaEventKind::Receiving));
    told.happens("a", event(5, 1001, received()));
    // Late, and said already.
    told.happens("a", event(5, 1001, ReplicaEventKind::Receiving));
    told.happens("a", event(6, 1002, received()));
    told.happens("a", event(6, 1002, ReplicaEventKind::Deleted));
    told.happens("a", event(7, 1003, received()));
    told.happens("a", event(7, 1009, ReplicaEventKind::Receiving));
    let lists = told.lists();
    assert_eq!(ids(&lists[0]), [(5, 1001), (7, 1009)]);
    assert_eq!(lists[0].replicas[0].state, ReplicaState::Finalized);
    assert_eq!(lists[0].replicas[1].state, ReplicaState::BeingWritten);
}

#[test]
fn a_full_report_says_all_and_a_node_has_a_replica_once() {
    let mut told = Fixture::new();
    told.happens("a", event(5, 1001, received()));
    told.report(0, "a", vec![finalized(9, 1004), finalized(8, 1003)]).unwrap();
    told.happens("b", event(8, 1003, received()));
    let lists = told.lists();
    assert_eq!((ids(&lists[0]), ids(&lists[1])), (vec![(9, 1004)], vec![(8, 1003)]));
}

#[test]
fn who_is_not_known_or_another_is_to_register() {
    let mut standby = Standby::new(&Config::default());
    let (old, new) = (registration(1, 7), registration(1, 8));
    let told = |standby: &mut Standby, node: &Registration| {
        standby.heartbeat(&node.claim(), heartbeat(&["a"], false), at(0)).commands
    };
    assert_eq!(told(&mut standby, &old), [Command::Register]);
    standby.register(old.clone(), at(0));
    assert_eq!(told(&mut standby, &old), []);
    standby.register(new.clone(), at(0));
    assert_eq!(
        (told(&mut standby, &old), told(&mut standby, &new)),
        (vec![Command::Register], vec![])
    );
    let late = standby.full_report(&old.claim(), (0, true), Vec::new(), at(0));
    assert!(matches!(late, Err(RedundancyError::UnregisteredNode { .. })), "{late:?}");
}

#[test]
fn a_report_needs_a_lease_that_holds() {
    let mut told = Fixture::new();
    let refused = told.report(99, "a", vec![]);
    assert!(matches!(refused, Err(RedundancyError::InvalidReportLease { .. })), "{refused:?}");
    let config = Config { report_leases: 1, ..Config::default() };
    let mut standby = Standby::new(&config);
    let (one, two) = (registration(1, 1), registration(2, 2));
    for node in [&one, &two] {
        standby.register(node.clone(), at(0));
    }
    let mut asks = |node: &Registration, now| {
        standby.heartbeat(&node.claim(), heartbeat(&["s"], true), at(now)).report_lease
    };
    assert!(asks(&one, 0).is_some() && asks(&two, 0).is_none());
    assert!(asks(&two, millis(config.report_lease_len)).is_some());
}

#[test]
fn more_than_is_kept_is_asked_for_in_full() {
    let mut told = Fixture::new();
    told.standby.limit_replicas(2);
    for id in 1..4 {
        told.happens("a", event(id, 1000, received()));
    }
    let claim = told.node.claim();
    assert_eq!(told.standby.completeness(at(0), SILENCE_MS).reported, 0);
    let answer = told.standby.heartbeat(&claim, heartbeat(&["a", "b"], false), at(0));
    assert_eq!(answer.commands, [Command::Register]);
    told.standby.register(told.node.clone(), at(0));
    let claim = told.node.claim();
    let answer = told.standby.heartbeat(&claim, heartbeat(&["a", "b"], false), at(0));
    assert_eq!(answer.commands, []);
}

#[test]
fn what_is_bad_is_kept_until_it_is_gone() {
    let mut told = Fixture::new();
    for id in 1..5 {
        told.happens("a", event(id, 1000, received()));
        told.standby.bad(&told.node.claim(), "", block(id, 1000));
    }
    told.standby.bad(&told.node.claim(), "b", block(1, 1000));
    told.standby.bad(&told.node.claim(), "a", block(1, 999));
    told.happens("a", event(1, 1000, received()));
    told.happens("a", event(2, 1000, ReplicaEventKind::Deleted));
    told.happens("a", event(3, 1001, received()));
    let lists = told.lists();
    assert_eq!(lists[0].bad, [block(1, 1000), block(4, 1000)]);
    assert_eq!(lists[1].bad, []);
}

#[test]
fn how_much_is_known_is_told_of_who_is_heard_of() {
    let mut told = Fixture::new();
    told.happens("a", event(1, 1000, received()));
    let known = told.standby.completeness(at(SILENCE_MS - 1), SILENCE_MS);
    assert_eq!(known, Completeness { nodes: 1, reported: 1, replicas: 1 });
    assert!(known.is_enough(1, 0.999) && known.is_enough(0, 0.999) && !known.is_enough(3, 0.999));
    told.standby.register(registration(2, 3), at(0));
    let known = told.standby.completeness(at(0), SILENCE_MS);
    assert_eq!(known, Completeness { nodes: 2, reported: 1, replicas: 1 });
    assert!(!known.is_enough(1, 0.999));
    // A volume that failed is not waited for, and what it had is gone.
    let mut lost = heartbeat(&["a", "b"], false);
    lost.storages[0].state = StorageState::Failed;
    told.standby.heartbeat(&told.node.claim(), lost, at(0));
    let known = told.standby.completeness(at(0), SILENCE_MS);
    assert_eq!((known.reported, known.replicas), (1, 0));
    assert_eq!(told.standby.completeness(at(SILENCE_MS), SILENCE_MS), Completeness::default());
    let answer = told.standby.heartbeat(&told.node.claim(), heartbeat(&["b"], false), at(0));
    assert_eq!(answer.commands, [Command::Register], "it is not known any more");
}

#[test]
fn one_that_falls_silent_before_it_has_told_all_is_not_waited_for_until_it_is_dead() {
    let stale_ms = millis(Config::default().stale_interval);
    let silence_ms = 10 * stale_ms;
    let mut told = Fixture::new();
    told.happens("a", event(1, 1000, received()));
    let other = registration(2, 3);
    told.standby.register(other.clone(), at(0));
    told.standby.heartbeat(&other.claim(), heartbeat(&["c"], false), at(1));
    let list = |ids: &[i64]| {
        let replicas = ids.iter().map(|id| finalized(*id, 1000)).collect();
        vec![("c".to_string(), StorageType::Disk, replicas)]
    };
    let waits = Completeness { nodes: 2, reported: 1, replicas: 1 };
    assert_eq!(told.standby.completeness(at(stale_ms), silence_ms), waits);
    // What the first one has told counts, however long it has been silent.
    let known = told.standby.completeness(at(stale_ms + 1), silence_ms);
    assert_eq!(known, Completeness { nodes: 1, reported: 1, replicas: 1 });
    assert!(known.is_enough(1, 0.999) && !known.is_enough(3, 0.999));
    // It is not forgotten: it goes on, and is waited for again until it has told.
    let answer = told.standby.heartbeat(&other.claim(), heartbeat(&["c"], false), at(stale_ms + 2));
    assert_eq!(answer.commands, []);
    assert_eq!(told.standby.completeness(at(stale_ms + 2), silence_ms), waits);
    told.standby.full_report(&other.claim(), (0, true), list(&[1, 2]), at(stale_ms + 3)).unwrap();
    let known = told.standby.completeness(at(3 * stale_ms), silence_ms);
    assert_eq!(known, Completeness { nodes: 2, reported: 2, replicas: 3 });
    // One that has started anew and fell silent has what it had before, or not: it counts for nothing.
    told.standby.register(other, at(3 * stale_ms));
    let known = told.standby.completeness(at(4 * stale_ms), silence_ms);
    assert_eq!(known, Completeness { nodes: 1, reported: 1, replicas: 1 });
}

#[test]
fn many_events_leave_what_a_map_has() {
    let mut told = Fixture::new();
    let mut model: BTreeMap<i64, u64> = BTreeMap::new();
    let mut dice = 12345_u64;
    for round in 0..20_000_u64 {
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (id, gs) = ((dice >> 33) as i64 % 3000, 1000 + round);
        if dice >> 62 == 0 {
            told.happens("a", event(id, gs, ReplicaEventKind::Deleted));
            model.remove(&id);
        } else {
            told.happens("a", event(id, gs, received()));
            model.insert(id, gs);
        }
    }
    // A piece at a time it is the same.
    let (_, node) = told.standby.hand_over(at(1), SILENCE_MS).nodes.pop_first().unwrap();
    let (replicas, mut last, mut walked) = (&node.storages["a"].replicas, None, Vec::new());
    loop {
        let next = replicas.after(last, 7);
        let Some(end) = next.last() else { break };
        last = Some(end.block.id);
        walked.extend(next.iter().map(|kept| (kept.block.id.0, kept.block.gs.0)));
    }
    assert_eq!(walked, model.into_iter().collect::<Vec<_>>());
}

fn facts(gs: u64, layout: Layout, len: u64) -> BlockFacts {
    let (gs, state) = (GenerationStamp(gs), BlockState::Complete);
    BlockFacts { gs, len, layout, state, group: None, packed: None }
}

fn places(standby: &Standby, id: i64, facts: &BlockFacts) -> Vec<(String, String, u8)> {
    let found = standby.good_places(BlockId(id), facts);
    found.map(|at| (at.node.to_string(), at.storage.to_string(), at.unit.0)).collect()
}

#[test]
fn a_place_is_good_by_what_its_reader_knows_of_the_block() {
    let copies = Layout::Replicated { copies: 2 };
    let place = |storage: &str| [("uuid-1".to_string(), storage.to_string(), 0)];
    let mut told = Fixture::new();
    told.happens("a", event(5, 1001, received()));
    assert_eq!(places(&told.standby, 5, &facts(1001, copies, 10)), place("a"));
    // Of an entry that has not come, or of one that is over; cut off; of another block.
    for (id, other) in [(5, facts(1000, copies, 10)), (5, facts(1002, copies, 10))] {
        assert_eq!(places(&told.standby, id, &other), []);
    }
    assert_eq!(places(&told.standby, 5, &facts(1001, copies, 11)), []);
    assert_eq!(places(&told.standby, 6, &facts(1001, copies, 10)), []);
    // It is moved, found to be bad, written anew, deleted.
    told.happens("b", event(5, 1001, received()));
    assert_eq!(places(&told.standby, 5, &facts(1001, copies, 10)), place("b"));
    told.standby.bad(&told.node.claim(), "b", block(5, 1001));
    assert_eq!(places(&told.standby, 5, &facts(1001, copies, 10)), []);
    told.happens("b", event(5, 1002, ReplicaEventKind::Receiving));
    assert_eq!(places(&told.standby, 5, &facts(1002, copies, 10)), []);
    told.happens("b", event(5, 1002, received()));
    assert_eq!(places(&told.standby, 5, &facts(1002, copies, 10)), place("b"));
    told.happens("b", event(5, 1002, ReplicaEventKind::Deleted));
    assert_eq!(places(&told.standby, 5, &facts(1002, copies, 10)), []);
    // Units, each as long as it is to be.
    let group = BlockId(-1600);
    let layout = Layout::Striped { k: 2, m: 1, cell_len: 10, policy: cairn_stripe::PolicyId(1) };
    for (storage, unit) in [("a", 0), ("b", 2)] {
        let own = group.internal(UnitIndex(unit));
        told.happens(storage, event(own.0, 1003, received()));
    }
    let of_unit = |storage: &str, unit| ("uuid-1".to_string(), storage.to_string(), unit);
    let found = places(&told.standby, group.0, &facts(1003, layout, 20));
    assert_eq!(found, [of_unit("a", 0), of_unit("b", 2)]);
    assert_eq!(places(&told.standby, group.0, &facts(1003, layout, 15)).len(), 2);
    assert_eq!(places(&told.standby, group.0, &facts(1003, layout, 5)), []);
}

/// As [`Standby::good_places`], without what says where to look.
fn places_by_looking_everywhere(
    standby: &Standby,
    id: i64,
    facts: &BlockFacts,
) -> Vec<(String, String, u8)> {
    let mut found = Vec::new();
    for (node, kept) in &standby.nodes {
        for (storage, kept) in &kept.storages {
            let replica = kept.replicas.get(BlockId(id));
            let is_good = |replica: &&ReportedReplica| {
                replica.state == ReplicaState::Finalized
                    && replica.block.gs == facts.gs
                    && !kept.bad.contains_key(&BlockId(id))
            };
            if replica.filter(is_good).is_some() {
                found.push((node.clone(), storage.clone(), 0));
            }
        }
    }
    found
}

#[test]
fn every_place_is_found_whatever_comes_and_goes() {
    let nodes: Vec<Registration> = (1..5).map(|number| registration(number, 1)).collect();
    let mut standby = Standby::new(&Config::default());
    let (mut dice, mut found) = (4711_u64, 0);
    let mut roll = |sides: u64| {
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (dice >> 33) % sides
    };
    for now in 0..20_000 {
        let node = &nodes[roll(4) as usize];
        let storage = ["a", "b", "c"][roll(3) as usize];
        let (id, gs) = (1 + roll(200) as i64, 1000 + roll(2));
        let claim = node.claim();
        match roll(60) {
            0 => standby.register(node.clone(), at(now)),
            // Another one at its address.
            1 if roll(4) == 0 => {
                let uuid = format!("uuid-{}", 1 + roll(4));
                standby.register(Registration { uuid, ..node.clone() }, at(now));
            }
            2 => standby.node_died(&claim),
            3 => {
                standby.completeness(at(now), 50);
            }
            4..10 => {
                standby.heartbeat(&claim, heartbeat(&["a", "b", "c"], false), at(now));
            }
            10 => {
                standby.heartbeat(&claim, heartbeat(&["a", "c"], false), at(now));
            }
            11 => {
                let replicas = (0..roll(100)).map(|_| finalized(1 + roll(200) as i64, 1000));
                let list = (storage.to_string(), StorageType::Disk, replicas.collect());
                // Who is not known is not heard.
                let _ = standby.full_report(&claim, (0, true), vec![list], at(now));
            }
            12 => standby.bad(&claim, storage, block(id, gs)),
            other => {
                let kind = match other % 6 {
                    0 => ReplicaEventKind::Deleted,
                    1 => ReplicaEventKind::Receiving,
                    _ => received(),
                };
                let told = [event(id, gs, kind)];
                let _ = standby.incremental_report(&claim, (storage, StorageType::Disk), &told);
            }
        }
        let (id, wanted) =
            (1 + roll(200) as i64, facts(1000, Layout::Replicated { copies: 3 }, 10));
        let mut is = places(&standby, id, &wanted);
        is.sort();
        assert_eq!(is, places_by_looking_everywhere(&standby, id, &wanted), "{id} at {now}");
        found += is.len();
    }
    assert!(found > 2_000, "{found}");
    // Nobody is heard of any more, and nothing is left.
    standby.completeness(at(1_000_000), 50);
    let is_empty = |handle| standby.index.on(StorageHandle(handle)).is_empty();
    assert!((0..100).all(is_empty));
}
