//! Reports of DataNodes: in time, lost, repeated, and late.
//!
//! Follows `crates/datanode/src/actor/report.rs` and `crates/datanode/src/node/reports.rs`. A call that a DataNode has
//! given up may still wait at the NameNode and be taken in after those that came later.

use crate::data_node::FullReport;
use crate::world::{Event, World};
use cairn_redundancy::{BlockRef, ReplicaEvent, ReplicaEventKind, StorageType};
use cairn_stripe::BlockId;
use std::collections::BTreeMap;

/// Time between full reports of a DataNode.
const REPORT_INTERVAL_MS: u64 = 60_000;

/// A report that is taken in when its DataNode does not expect it any more.
#[derive(Clone, Debug)]
pub(crate) enum LateReport {
    Full { node: usize, lease: u64, report: FullReport },
    Events { node: usize, storage: (String, StorageType), events: Vec<ReplicaEvent> },
}

impl World<'_> {
    /// Tells of all replicas, under a lease.
    pub(super) fn tell_all(&mut self, node: usize, lease: u64) {
        let report = self.nodes[node].report();
        if self.unlucky(30) {
            if self.unlucky(2) {
                let late = LateReport::Full { node, lease, report };
                self.arrives_late(late);
            }
            return;
        }
        if self.name_node.up && self.name_node.full_report(node, lease, &report) {
            self.nodes[node].next_report_ms = self.now_ms + REPORT_INTERVAL_MS;
            if self.unlucky(10) {
                // The answer is lost: it is sent again.
                self.nodes[node].next_report_ms = self.now_ms;
            }
        }
    }

    /// Tells the NameNode what has happened to replicas since the last time.
    pub(crate) fn tell_events(&mut self, node: usize) {
        if !self.nodes[node].is_registered || !self.reaches_name_node(node) {
            return;
        }
        let events = self.nodes[node].take_events();
        if events.is_empty() {
            return;
        }
        let mut by_storage: BTreeMap<&str, Vec<ReplicaEvent>> = BTreeMap::new();
        for ((storage, _), event) in &events {
            by_storage.entry(storage).or_default().push(event.clone());
        }
        let (told, comes_again) = (!self.unlucky(30), self.unlucky(40));
        for (storage, events) in by_storage {
            let kind = self.nodes[node].kind_of(storage);
            if told && self.name_node.up {
                self.name_node.incremental_report(node, (storage, kind), &events);
            }
            if comes_again {
                let storage = (storage.to_string(), kind);
                self.arrives_late(LateReport::Events { node, storage, events });
            }
        }
        self.note(|| format!("dn-{node} tells {:?}", events.values().collect::<Vec<_>>()));
        if !told || !self.name_node.up || self.unlucky(30) {
            self.note(|| format!("dn-{node} got no answer and will tell it again"));
            self.nodes[node].put_back(events);
        }
    }

    fn arrives_late(&mut self, report: LateReport) {
        let delay = self.rng.range(10, 15_000);
        self.after(delay, Event::LateReport { report });
    }

    /// What it says may be true no more. A replica that is not there any more is a failure of its node.
    pub(crate) fn late_report(&mut self, report: LateReport) {
        if !self.name_node.up || self.is_quiet {
            return;
        }
        let (node, mut gone) = match &report {
            LateReport::Full { node, report, .. } => {
                let replicas = report.iter().flat_map(|(.., replicas)| replicas);
                (*node, replicas.map(|replica| replica.block).collect::<Vec<BlockRef>>())
            }
            LateReport::Events { node, events, .. } => {
                let is_there = |event: &&ReplicaEvent| event.kind != ReplicaEventKind::Deleted;
                (*node, events.iter().filter(is_there).map(|event| event.block).collect())
            }
        };
        gone.retain(|block| {
            let held = self.nodes[node].replicas.get(&block.id);
            held.is_none_or(|stored| stored.replica.gs() != block.gs)
        });
        let gone: Vec<BlockId> = gone.iter().map(|block| block.id).collect();
        if !self.fail_for(node, &gone) {
            return;
        }
        self.note(|| format!("late: {report:?}"));
        self.count("reports come late");
        match report {
            LateReport::Full { node, lease, report } => {
                self.name_node.full_report(node, lease, &report);
            }
            LateReport::Events { node, storage, events } => {
                self.name_node.incremental_report(node, (&storage.0, storage.1), &events);
            }
        }
    }
}
