//! What happened to replicas since the NameNode was last told.

use crate::dataset::Finalized;
use cairn_net::held::held;
use cairn_replica::report::{Event, ReplicaEvent, Untold};
use cairn_stripe::{BlockId, GenerationStamp};
use std::sync::{Mutex, MutexGuard};
use tokio::sync::Notify;

/// Scanned replicas of a storage that may wait.
const MAX_SCANNED: usize = 10_000;

/// What happened to replicas since the last report.
#[derive(Default)]
pub(crate) struct IncrementalReports {
    pending: Mutex<Untold>,
    /// What the block scanner has found good, told with the next heartbeat.
    scanned: Mutex<Untold>,
    urgent: Notify,
}

impl IncrementalReports {
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
        lock(&self.pending).note(storage_id, id, event);
        if is_urgent {
            self.urgent.notify_one();
        }
    }

    /// The block scanner has read a replica, whose bytes have the CRC in `good`. Told with the next heartbeat at the
    /// latest; if too many wait for a NameNode that is away, this one is told after the next scan.
    pub(crate) fn scanned(&self, good: &Finalized) {
        let mut scanned = lock(&self.scanned);
        if good.crc32c.is_some() && scanned.count_on(&good.storage_id) < MAX_SCANNED {
            scanned.note(&good.storage_id, good.id, received(good, None));
        }
    }

    /// What is to be told, and what the block scanner has found good.
    pub(crate) fn take(&self) -> (Untold, Untold) {
        (std::mem::take(&mut *lock(&self.pending)), std::mem::take(&mut *lock(&self.scanned)))
    }

    /// Puts back what could not be told, unless something newer has happened.
    pub(crate) fn put_back(&self, untold: Untold, scanned: Untold) {
        lock(&self.pending).put_back(untold);
        lock(&self.scanned).put_back(scanned);
    }

    /// Completes when something should be told at once.
    pub(crate) async fn wait_urgent(&self) {
        self.urgent.notified().await;
    }
}

fn received(done: &Finalized, delete_hint: Option<String>) -> ReplicaEvent {
    let event = Event::Received { crc32c: done.crc32c, delete_hint };
    ReplicaEvent { gs: done.gs, len: done.len, event }
}

fn lock(untold: &Mutex<Untold>) -> MutexGuard<'_, Untold> {
    held(untold)
}
