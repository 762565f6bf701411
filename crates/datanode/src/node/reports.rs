//! What happened to replicas since the NameNode was last told.
//!
//! Source: Hadoop 3.5.0 `IncrementalBlockReportManager`.

use crate::dataset::Finalized;
use crate::messages;
use cairn_stripe::{BlockId, GenerationStamp};
use cairn_wire::proto::datanode::{
    ReceivedDeletedBlockInfoProto, ReceivedDeletedBlockInfoProtoBlockStatus as Status,
};
use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// Scanned replicas of a storage that may wait.
const MAX_SCANNED: usize = 10_000;

/// Events of the replicas of each storage.
pub(crate) type Pending = HashMap<String, HashMap<BlockId, ReceivedDeletedBlockInfoProto>>;

/// What happened to replicas since the last report; the latest event of each replica counts.
#[derive(Default)]
pub(crate) struct IncrementalReports {
    pending: Mutex<Pending>,
    /// What the block scanner has found good, told with the next heartbeat.
    scanned: Mutex<Pending>,
    urgent: Notify,
}

impl IncrementalReports {
    /// A writer has opened a replica. Told with the next heartbeat at the latest.
    pub(crate) fn receiving(&self, id: BlockId, gs: GenerationStamp, len: u64, storage_id: &str) {
        self.put(storage_id, id, event(id, gs, len, Status::Receiving));
    }

    /// A replica is complete. Told at once: a client may wait for it. `delete_hint` is the DataNode that
    /// shall lose its replica in exchange.
    pub(crate) fn received(&self, done: &Finalized, delete_hint: Option<String>) {
        let mut event = event(done.id, done.gs, done.len, Status::Received);
        event.crc32c = done.crc32c;
        event.delete_hint = delete_hint;
        self.forget_elsewhere(done.id, &done.storage_id);
        self.put(&done.storage_id, done.id, event);
        self.urgent.notify_one();
    }

    /// A replica is deleted. Told with the next heartbeat at the latest.
    pub(crate) fn deleted(&self, id: BlockId, gs: GenerationStamp, storage_id: &str) {
        self.put(storage_id, id, event(id, gs, 0, Status::Deleted));
    }

    /// The block scanner has read a replica, whose bytes have the CRC in `good`. Told with the next heartbeat at the
    /// latest; if too many wait for a NameNode that is away, this one is told after the next scan.
    pub(crate) fn scanned(&self, good: &Finalized) {
        if good.crc32c.is_none() {
            return;
        }
        let mut event = event(good.id, good.gs, good.len, Status::Received);
        event.crc32c = good.crc32c;
        let mut scanned = lock(&self.scanned);
        let events = scanned.entry(good.storage_id.clone()).or_default();
        if events.len() < MAX_SCANNED {
            events.insert(good.id, event);
        }
    }

    /// What is to be told, and what the block scanner has found good.
    pub(crate) fn take(&self) -> (Pending, Pending) {
        (take(&self.pending), take(&self.scanned))
    }

    /// Puts back what could not be told, unless something newer has happened.
    pub(crate) fn put_back(&self, untold: Pending, scanned: Pending) {
        put_back(&self.pending, untold);
        put_back(&self.scanned, scanned);
    }

    /// Completes when something should be told at once.
    pub(crate) async fn wait_urgent(&self) {
        self.urgent.notified().await;
    }

    /// A replica that has come to a storage is on no other: what waits to be told of it there is void. The NameNode
    /// takes storages in any order.
    fn forget_elsewhere(&self, id: BlockId, storage_id: &str) {
        for (other, events) in lock(&self.pending).iter_mut() {
            if other != storage_id && events.get(&id).is_some_and(is_arrival) {
                events.remove(&id);
            }
        }
    }

    fn put(&self, storage_id: &str, id: BlockId, event: ReceivedDeletedBlockInfoProto) {
        let mut pending = lock(&self.pending);
        match pending.get_mut(storage_id) {
            Some(events) => events.insert(id, event),
            None => pending.entry(storage_id.into()).or_default().insert(id, event),
        };
    }
}

fn take(from: &Mutex<Pending>) -> Pending {
    std::mem::take(&mut *lock(from))
}

fn put_back(to: &Mutex<Pending>, untold: Pending) {
    let mut pending = lock(to);
    let came = |events: &HashMap<BlockId, ReceivedDeletedBlockInfoProto>| -> Vec<BlockId> {
        events.iter().filter(|(_, event)| is_arrival(event)).map(|(id, _)| *id).collect()
    };
    let moved: HashSet<BlockId> = pending.values().flat_map(came).collect();
    for (storage_id, events) in untold {
        let known = pending.entry(storage_id).or_default();
        for (id, event) in events {
            if !(is_arrival(&event) && moved.contains(&id)) {
                known.entry(id).or_insert(event);
            }
        }
    }
}

fn is_arrival(event: &ReceivedDeletedBlockInfoProto) -> bool {
    event.status != Status::Deleted as i32
}

fn lock(pending: &Mutex<Pending>) -> MutexGuard<'_, Pending> {
    pending.lock().unwrap_or_else(PoisonError::into_inner)
}

fn event(
    id: BlockId,
    gs: GenerationStamp,
    len: u64,
    status: Status,
) -> ReceivedDeletedBlockInfoProto {
    let block = messages::local_block(id, gs, len);
    ReceivedDeletedBlockInfoProto { block, status: status as i32, ..Default::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_event_counts_also_after_a_failed_report() {
        let reports = IncrementalReports::default();
        let (id, gs) = (BlockId(5), GenerationStamp(9));
        reports.receiving(id, gs, 0, "DS-1");
        let untold = take(&reports.pending);
        reports.deleted(id, gs, "DS-1");
        put_back(&reports.pending, untold);
        let events = take(&reports.pending);
        assert_eq!(events["DS-1"][&id].status, Status::Deleted as i32);
        assert!(take(&reports.pending).is_empty());
    }

    #[test]
    fn a_replica_that_has_moved_is_told_of_in_one_place() {
        let reports = IncrementalReports::default();
        let (id, gs) = (BlockId(5), GenerationStamp(9));
        let on =
            |storage: &str| Finalized { id, gs, len: 3, storage_id: storage.into(), crc32c: None };
        reports.received(&on("DS-RAM"), None);
        let untold = take(&reports.pending);
        reports.received(&on("DS-RAM"), None);
        reports.received(&on("DS-DISK"), None);
        put_back(&reports.pending, untold);
        let events = take(&reports.pending);
        assert!(events["DS-RAM"].is_empty() && events["DS-DISK"].contains_key(&id));
    }
}
