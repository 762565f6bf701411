//! Full and incremental block reports.
//!
//! Source: Hadoop 3.5.0 `BPServiceActor#blockReport`, `BlockListAsLongs`.

use super::call::call;
use crate::error::Result;
use crate::members::Member;
use crate::messages;
use crate::node::Node;
use crate::volume::Volume;
use cairn_replica::report::{Event, ReplicaEvent, ReportedReplica};
use cairn_stripe::BlockId;
use cairn_wire::proto::datanode::{
    BlockReceivedAndDeletedRequestProto, BlockReceivedAndDeletedResponseProto,
    BlockReportContextProto, BlockReportRequestProto, BlockReportResponseProto,
    DatanodeCommandProto, ReceivedDeletedBlockInfoProto,
    ReceivedDeletedBlockInfoProtoBlockStatus as Status, StorageBlockReportProto,
    StorageReceivedDeletedBlocksProto,
};
use cairn_wire::proto::hdfs::DatanodeStorageProto;
use prost::encoding::encode_varint;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

/// Bytes of one of the buffers of a full report.
///
/// Source: Hadoop 3.5.0 `BlockListAsLongs#CHUNK_SIZE`.
const BUFFER_LEN: usize = 64 << 10;

/// How a volume is named in reports.
pub(super) fn storage_proto(volume: &Volume) -> DatanodeStorageProto {
    DatanodeStorageProto {
        storage_uuid: volume.storage_id().into(),
        state: Some(0),
        storage_type: Some(volume.storage_type().number()),
    }
}

/// Tells `member` of everything pending.
pub(super) async fn send_incremental(node: &Node, member: Member) -> Result<()> {
    let (pending, scanned) = node.reports.take(member);
    if pending.is_empty() && scanned.is_empty() {
        return Ok(());
    }
    let storage = |id: &str| {
        node.dataset.volumes().iter().find(|v| v.storage_id() == id).map(|v| storage_proto(v))
    };
    let per_storage = |(id, events): (&str, &BTreeMap<BlockId, ReplicaEvent>)| {
        StorageReceivedDeletedBlocksProto {
            storage_uuid: id.to_string(),
            blocks: events.iter().map(|(block, event)| event_proto(*block, event)).collect(),
            storage: storage(id),
        }
    };
    let sent = async {
        let request = BlockReceivedAndDeletedRequestProto {
            registration: node.name_nodes.get(member).registration()?,
            block_pool_id: node.dataset.pool_id().unwrap_or_default().into(),
            blocks: pending.iter().map(per_storage).collect(),
            scanned: scanned.iter().map(per_storage).collect(),
        };
        let answer: BlockReceivedAndDeletedResponseProto =
            call(node, member, "blockReceivedAndDeleted", &request).await?;
        Ok(answer)
    }
    .await;
    match sent {
        Ok(_) => Ok(()),
        Err(error) => {
            node.reports.put_back(member, pending, scanned);
            Err(error)
        }
    }
}

fn event_proto(id: BlockId, told: &ReplicaEvent) -> ReceivedDeletedBlockInfoProto {
    let (status, crc32c, delete_hint) = match &told.event {
        Event::Receiving => (Status::Receiving, None, None),
        Event::Received { crc32c, delete_hint } => (Status::Received, *crc32c, delete_hint.clone()),
        Event::Deleted => (Status::Deleted, None, None),
    };
    let block = messages::local_block(id, told.gs, told.len);
    ReceivedDeletedBlockInfoProto { block, status: status as i32, crc32c, delete_hint }
}

/// Tells `member` of every replica, under the lease that it granted. Large reports go storage by storage.
pub(super) async fn send_full(
    node: &Node,
    member: Member,
    lease: u64,
) -> Result<Option<DatanodeCommandProto>> {
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
            registration: node.name_nodes.get(member).registration()?,
            block_pool_id: node.dataset.pool_id().unwrap_or_default().into(),
            reports: reports.to_vec(),
            context: Some(BlockReportContextProto {
                total_rpcs,
                cur_rpc,
                id,
                lease_id: Some(lease),
            }),
        };
        let answer: BlockReportResponseProto = call(node, member, "blockReport", &request).await?;
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
    use cairn_stripe::GenerationStamp;

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
}
