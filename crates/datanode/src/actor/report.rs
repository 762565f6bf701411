//! Full and incremental block reports.
//!
//! Source: Hadoop 3.5.0 `IncrementalBlockReportManager`, `BlockListAsLongs`.

use super::call;
use crate::dataset::{Finalized, ReportedReplica};
use crate::error::Result;
use crate::node::Node;
use crate::protocol;
use crate::volume::Volume;
use cairn_stripe::{BlockId, GenerationStamp};
use cairn_wire::proto::datanode::{
    BlockReceivedAndDeletedRequestProto, BlockReceivedAndDeletedResponseProto,
    BlockReportContextProto, BlockReportRequestProto, BlockReportResponseProto,
    DatanodeCommandProto, ReceivedDeletedBlockInfoProto,
    ReceivedDeletedBlockInfoProtoBlockStatus as Status, StorageBlockReportProto,
    StorageReceivedDeletedBlocksProto,
};
use cairn_wire::proto::hdfs::DatanodeStorageProto;
use prost::encoding::encode_varint;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// Bytes of one of the buffers of a full report.
///
/// Source: Hadoop 3.5.0 `BlockListAsLongs#CHUNK_SIZE`.
const BUFFER_LEN: usize = 64 << 10;

/// Scanned replicas of a storage that may wait.
const MAX_SCANNED: usize = 10_000;

type Pending = HashMap<String, HashMap<BlockId, ReceivedDeletedBlockInfoProto>>;

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

/// Puts back what could not be told, unless something newer has happened.
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
    let block = protocol::local_block(id, gs, len);
    ReceivedDeletedBlockInfoProto { block, status: status as i32, ..Default::default() }
}

/// How a volume is named in reports.
pub(super) fn storage_proto(volume: &Volume) -> DatanodeStorageProto {
    DatanodeStorageProto {
        storage_uuid: volume.storage_id().into(),
        state: Some(0),
        storage_type: Some(volume.storage_type().number()),
    }
}

/// Tells the NameNode of everything pending.
pub(super) async fn send_incremental(node: &Node) -> Result<()> {
    let (pending, scanned) = (take(&node.reports.pending), take(&node.reports.scanned));
    if pending.is_empty() && scanned.is_empty() {
        return Ok(());
    }
    let storage = |id: &str| {
        node.dataset.volumes().iter().find(|v| v.storage_id() == id).map(|v| storage_proto(v))
    };
    let per_storage = |(id, events): (&String, &HashMap<_, ReceivedDeletedBlockInfoProto>)| {
        StorageReceivedDeletedBlocksProto {
            storage_uuid: id.clone(),
            blocks: events.values().cloned().collect(),
            storage: storage(id),
        }
    };
    let sent = async {
        let request = BlockReceivedAndDeletedRequestProto {
            registration: node.registration()?,
            block_pool_id: node.dataset.pool_id().unwrap_or_default().into(),
            blocks: pending.iter().map(per_storage).collect(),
            scanned: scanned.iter().map(per_storage).collect(),
        };
        call::<_, BlockReceivedAndDeletedResponseProto>(node, "blockReceivedAndDeleted", &request)
            .await
    }
    .await;
    match sent {
        Ok(_) => Ok(()),
        Err(error) => {
            put_back(&node.reports.pending, pending);
            put_back(&node.reports.scanned, scanned);
            Err(error)
        }
    }
}

/// Tells the NameNode of every replica, under the lease that it granted. Large reports go storage by storage.
pub(super) async fn send_full(node: &Node, lease: u64) -> Result<Option<DatanodeCommandProto>> {
    let mut reports = Vec::new();
    let mut count = 0;
    for (volume, replicas) in node.dataset.report() {
        count += replicas.len();
        reports.push(StorageBlockReportProto {
            storage: storage_proto(&volume),
            blocks: Vec::new(),
            number_of_blocks: Some(replicas.len() as u64),
            blocks_buffers: encode(&replicas).chunks(BUFFER_LEN).map(<[u8]>::to_vec).collect(),
        });
    }
    let is_split = count >= node.tunables.block_report_split_threshold.load(Ordering::Relaxed);
    let calls = if is_split { reports.chunks(1) } else { reports.chunks(reports.len().max(1)) };
    let total_rpcs = calls.len() as i32;
    let mut random = [0; 8];
    // An id that repeats only confuses the NameNode's log.
    let _ = getrandom::fill(&mut random);
    let id = i64::from_le_bytes(random) | 1;
    let mut command = None;
    for (cur_rpc, reports) in (0..).zip(calls) {
        let request = BlockReportRequestProto {
            registration: node.registration()?,
            block_pool_id: node.dataset.pool_id().unwrap_or_default().into(),
            reports: reports.to_vec(),
            context: Some(BlockReportContextProto {
                total_rpcs,
                cur_rpc,
                id,
                lease_id: Some(lease),
            }),
        };
        let answer: BlockReportResponseProto = call(node, "blockReport", &request).await?;
        command = answer.cmd.or(command);
    }
    tracing::info!(replicas = count, calls = total_rpcs, "sent a full block report");
    Ok(command)
}

/// Each replica as four varints: id (zig-zag), length, stamp, state.
fn encode(replicas: &[ReportedReplica]) -> Vec<u8> {
    let mut out = Vec::with_capacity(replicas.len() * 16);
    for replica in replicas {
        let id = replica.id.0;
        encode_varint(((id << 1) ^ (id >> 63)) as u64, &mut out);
        encode_varint(replica.len, &mut out);
        encode_varint(replica.gs.0, &mut out);
        encode_varint(replica.state.value(), &mut out);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use cairn_replica::ReplicaState;

    #[test]
    fn replicas_are_encoded_as_hadoop_does() {
        let replica = ReportedReplica {
            id: BlockId(-2),
            len: 300,
            gs: GenerationStamp(1001),
            state: ReplicaState::Rwr,
        };
        assert_eq!(encode(&[replica]), [3, 0xac, 0x02, 0xe9, 0x07, 2]);
    }

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
