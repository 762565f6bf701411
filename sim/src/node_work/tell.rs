//! Reports of DataNodes: in time, lost, repeated, and late.
//!
//! What is told is decided in the replica core. A call that a DataNode has given up may still wait at the NameNode and
//! be taken in after those that came later.

use crate::data_node::DataNode;
use crate::tasks::LateReport;
use crate::world::{Event, World};
use cairn_redundancy::{BlockRef, ReplicaEvent, ReplicaEventKind};
use cairn_replica::report::{Event as Happened, ReplicaEvent as Told};
use cairn_stripe::BlockId;

/// Time between full reports of a DataNode.
const REPORT_INTERVAL_MS: u64 = 60_000;

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
        let (life, late) = (self.nodes[node].life, self.nodes[node].late_reports);
        let is_told = self.name_node.up && self.call_full_report(node, lease, &report);
        // It may have fallen meanwhile: then it tells again as it starts, and what has become of its replicas is untold.
        if is_told && self.nodes[node].life == life {
            self.nodes[node].next_report_ms = self.now_ms + REPORT_INTERVAL_MS;
            // A late report between its steps has taken the place of some of it.
            self.nodes[node].has_reported = self.nodes[node].late_reports == late;
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
        let (told, comes_again) = (!self.unlucky(30), self.unlucky(40));
        for (storage, events) in events.iter() {
            let events: Vec<_> = events.iter().map(|(id, event)| arriving(*id, event)).collect();
            let kind = self.nodes[node].kind_of(storage);
            if told && self.name_node.up {
                self.name_node.incremental_report(node, (storage, kind), &events);
                self.deletions_told(node, deleted(&events));
            }
            if comes_again {
                let storage = (storage.to_string(), kind);
                self.arrives_late(LateReport::Events { node, storage, events });
            }
        }
        self.note(|| format!("dn-{node} tells {events:?}"));
        if !told || !self.name_node.up || self.unlucky(30) {
            self.note(|| format!("dn-{node} got no answer and will tell it again"));
            self.nodes[node].put_back(events);
        }
    }

    pub(super) fn arrives_late(&mut self, report: LateReport) {
        let delay = self.rng.range(10, 15_000);
        self.after(delay, Event::LateReport { report });
    }

    /// What it says may be true no more. A replica that is not there any more is a failure of its node.
    pub(crate) fn late_report(&mut self, report: LateReport) {
        if !self.name_node.up || self.is_quiet {
            return;
        }
        let is_at = |node: &DataNode, block: &BlockRef| {
            let held = node.replicas.get(&block.id);
            held.is_some_and(|stored| stored.replica.gs() == block.gs && !stored.is_torn)
        };
        let (node, mut gone) = match &report {
            LateReport::Full { node, report, .. } => {
                let replicas = report.iter().flat_map(|(.., replicas)| replicas);
                (*node, replicas.map(|replica| replica.block).collect::<Vec<BlockRef>>())
            }
            LateReport::Events { node, events, .. } => {
                let is_there = |event: &&ReplicaEvent| event.kind != ReplicaEventKind::Deleted;
                (*node, events.iter().filter(is_there).map(|event| event.block).collect())
            }
            LateReport::Bad { holder, block } => (holder.node, vec![*block]),
        };
        // What was bad may be good by now, and is taken for bad.
        let is_bad = matches!(report, LateReport::Bad { .. });
        gone.retain(|block| is_at(&self.nodes[node], block) == is_bad);
        let gone: Vec<BlockId> = gone.iter().map(|block| block.id).collect();
        if !self.fail_for(node, &gone) {
            return;
        }
        self.note(|| format!("late: {report:?}"));
        self.count("reports come late");
        // It takes the place of what its DataNode has told since.
        self.nodes[node].has_reported &= is_bad;
        self.nodes[node].late_reports += u64::from(!is_bad);
        match report {
            LateReport::Full { node, lease, report } => {
                self.call_full_report(node, lease, &report);
            }
            LateReport::Events { node, storage, events } => {
                self.name_node.incremental_report(node, (&storage.0, storage.1), &events);
                self.deletions_told(node, deleted(&events));
            }
            LateReport::Bad { holder, block } => self.tell_bad(&holder, block),
        }
    }
}

/// The replicas that are told to be deleted.
fn deleted(events: &[ReplicaEvent]) -> Vec<BlockId> {
    let deleted = events.iter().filter(|event| event.kind == ReplicaEventKind::Deleted);
    deleted.map(|event| event.block.id).collect()
}

/// An event as it arrives.
fn arriving(id: BlockId, told: &Told) -> ReplicaEvent {
    let block = BlockRef { id, gs: told.gs, len: told.len };
    let (kind, crc32c) = match &told.event {
        Happened::Receiving => (ReplicaEventKind::Receiving, None),
        Happened::Received { crc32c, delete_hint } => {
            (ReplicaEventKind::Received { delete_hint: delete_hint.clone() }, *crc32c)
        }
        Happened::Deleted => (ReplicaEventKind::Deleted, None),
    };
    ReplicaEvent { block, kind, crc32c }
}
