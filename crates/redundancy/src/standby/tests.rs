//! What is kept is what a naive model of the same events has.

use super::*;
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
        let mut nodes: Vec<KeptNode> = self.standby.take(at(1), SILENCE_MS).collect();
        nodes.pop().unwrap().into_lists().2
    }
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
    let lists = told.lists();
    assert_eq!(ids(&lists[0]), model.into_iter().collect::<Vec<_>>());
}
