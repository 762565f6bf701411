//! What happened to replicas since the NameNodes were last told, of each of them by itself.

use crate::dataset::Finalized;
use crate::members::{Member, PerMember, Wakes};
use cairn_process::held::held;
use cairn_replica::report::{Event, ReplicaEvent, Untold};
use cairn_stripe::{BlockId, GenerationStamp};
use std::sync::Mutex;

/// Scanned replicas of a storage that may wait.
const MAX_SCANNED: usize = 10_000;

/// Events that may wait for one of several NameNodes: it may be away for long, and gets a full report then.
///
/// Source: Hadoop 3.5.0 `BPServiceActor#reRegister`, which forgets them (HDFS-9917).
const MAX_PENDING: usize = 100_000;

/// What one of them is to be told.
#[derive(Default)]
struct Waiting {
    pending: Untold,
    /// What the block scanner has found good, told with the next heartbeat.
    scanned: Untold,
    /// More has happened than waits here.
    is_incomplete: bool,
}

/// What happened to replicas since the last report to each NameNode.
pub(crate) struct IncrementalReports {
    waiting: PerMember<Mutex<Waiting>>,
    urgent: Wakes,
}

impl IncrementalReports {
    /// Nothing yet, for so many NameNodes.
    pub(crate) fn new(name_nodes: usize) -> IncrementalReports {
        let waiting = PerMember::new(name_nodes, |_| Mutex::default());
        IncrementalReports { waiting, urgent: Wakes::new(name_nodes) }
    }

    /// A writer has opened a replica. Told with the next heartbeat at the latest.
    pub(crate) fn receiving(&self, id: BlockId, gs: GenerationStamp, len: u64, storage_id: &str) {
        self.note(storage_id, id, ReplicaEvent { gs, len, event: Event::Receiving });
    }

    /// A replica is complete. Told at once: a client may wait for it. `delete_hint` is the DataNode that
    /// shall lose its replica in exchange.
    pub(crate) fn received(&self, done: &Finalized, delete_hint: Option<String>) {
        self.note(&done.storage_id, done.id, received(done, delete_hint));
    }

    /// A replica is deleted. Told with the next heartbeat at the latest.
    pub(crate) fn deleted(&self, id: BlockId, gs: GenerationStamp, storage_id: &str) {
        self.note(storage_id, id, ReplicaEvent { gs, len: 0, event: Event::Deleted });
    }

    /// Something has happened to a replica. Told with the next heartbeat at the latest, and at once if it is complete.
    pub(crate) fn note(&self, storage_id: &str, id: BlockId, event: ReplicaEvent) {
        let is_urgent = matches!(event.event, Event::Received { .. });
        let is_bounded = self.waiting.count() > 1;
        for waiting in self.waiting.iter() {
            let mut waiting = held(waiting);
            if is_bounded && waiting.pending.count() >= MAX_PENDING {
                waiting.pending = Untold::default();
                waiting.is_incomplete = true;
            }
            waiting.pending.note(storage_id, id, event.clone());
        }
        if is_urgent {
            self.urgent.all();
        }
    }

    /// The block scanner has read a replica, whose bytes have the CRC in `good`. Told with the next heartbeat at the
    /// latest; if too many wait for a NameNode that is away, this one is told after the next scan.
    pub(crate) fn scanned(&self, good: &Finalized) {
        if good.crc32c.is_none() {
            return;
        }
        for waiting in self.waiting.iter() {
            let scanned = &mut held(waiting).scanned;
            if scanned.count_on(&good.storage_id) < MAX_SCANNED {
                scanned.note(&good.storage_id, good.id, received(good, None));
            }
        }
    }

    /// What `member` is to be told, and what the block scanner has found good.
    pub(crate) fn take(&self, member: Member) -> (Untold, Untold) {
        let mut waiting = held(&self.waiting[member]);
        (std::mem::take(&mut waiting.pending), std::mem::take(&mut waiting.scanned))
    }

    /// Puts back what it could not be told, unless something newer has happened.
    pub(crate) fn put_back(&self, member: Member, untold: Untold, scanned: Untold) {
        let mut waiting = held(&self.waiting[member]);
        waiting.pending.put_back(untold);
        waiting.scanned.put_back(scanned);
    }

    /// Whether more has happened than `member` will be told, so that it needs a full report. Asked once each time.
    pub(crate) fn needs_full(&self, member: Member) -> bool {
        std::mem::take(&mut held(&self.waiting[member]).is_incomplete)
    }

    /// Completes when `member` should be told something at once.
    pub(crate) async fn wait_urgent(&self, member: Member) {
        self.urgent.wait(member).await;
    }
}

fn received(done: &Finalized, delete_hint: Option<String>) -> ReplicaEvent {
    let event = Event::Received { crc32c: done.crc32c, delete_hint };
    ReplicaEvent { gs: done.gs, len: done.len, event }
}
