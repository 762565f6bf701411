//! What a DataNode tells: heartbeats, block reports, errors, bad blocks.

use cairn_master::reports::{Failure, Heard, Told, Unheard};
use cairn_namespace::NamespaceError;
use cairn_net::rpc_server::Call;
use cairn_redundancy::{
    Agreement, BlockRef, Heartbeat, NodeClaim, Outlier, RedundancyError, ReplicaEvent,
    ReplicaEventKind, ReportedReplica, Scrubbed, ScrubbedPlace, SlowDisk, StorageReport,
    StorageState, StorageUsage, VolumeFailures,
};
use cairn_stripe::{BlockId, GenerationStamp, StorageType, UnitIndex};
use cairn_wire::exception::class;
use cairn_wire::proto::datanodelifeline::LifelineResponseProto;
use cairn_wire::proto::{datanode as dn, hdfs as pb};
use tracing::{debug, info, warn};

use super::block_list::{decode_buffers, decode_longs};
use super::packs::packed;
use super::register::{claim, disallow, named, unless_replaced, unregistered, verify};
use super::{commands, groups, orders};
use crate::node::NameNode;
use crate::refusal::{Answer, Refusal, answer};
use crate::reports::{NotTaken, StorageList};

/// `DatanodeProtocol.FATAL_DISK_ERROR`: the DataNode can't go on.
pub(super) const FATAL_DISK_ERROR: u32 = 3;

/// Source: Hadoop 3.5.0 `FSNamesystem#handleHeartbeat`.
pub(super) fn send_heartbeat(node: &NameNode, call: &Call) -> Answer {
    let request: dn::HeartbeatRequestProto = call.decode()?;
    verify(node, &request.registration)?;
    let registration = request.registration.clone();
    let claim = claim(&registration);
    let pool = &node.ns.identity().block_pool_id;
    let encoded = node.take_heartbeat(&claim, told(request), |cluster, lookup, heard| {
        let Heard { answer, from, .. } = heard;
        let cmds = commands::encode(cluster, lookup, pool, &answer.commands)?;
        let scrubs = commands::encode_scrubs(cluster, lookup, pool, &answer.scrubs)?;
        let of_groups = groups::orders(cluster, lookup, pool, &answer.commands)?;
        let is_slow = from.is_some_and(|handle| cluster.is_slow(handle));
        let orders = from.and_then(|handle| orders::told(node, cluster, handle));
        let lease = answer.report_lease;
        Ok::<_, NamespaceError>((cmds, (scrubs, of_groups), lease, orders, is_slow))
    });
    let (mut cmds, (scrubs, of_groups), lease, orders, is_slow) =
        encoded.map_err(|error| match error {
            Unheard::Disallowed => disallow(&registration),
            Unheard::Other(error) => unregistered(&error),
        })??;
    // One that is to register gets them with that.
    let is_known = !cmds.iter().any(|command| command.register_cmd.is_some());
    if is_known {
        let keys = node.block_tokens.due_for(&registration.datanode_id.datanode_uuid);
        cmds.extend(keys.map(commands::keys));
    }
    answer(&dn::HeartbeatResponseProto {
        cmds,
        ha_status: pb::NNHAStatusHeartbeatProto {
            state: pb::NNHAStatusHeartbeatProtoState::Active as i32,
            txid: node.standing.borrow().claim(node.ns.last_sequence()),
        },
        rolling_upgrade_status: None,
        rolling_upgrade_status_v2: None,
        full_block_report_lease_id: Some(lease.unwrap_or(0)),
        is_slownode: Some(is_slow),
        scrubs,
        orders,
        encodes: of_groups.encodes,
        group_rebuilds: of_groups.rebuilds,
        proves: of_groups.proves,
        retired: of_groups.retired,
        packs: of_groups.packs,
        term: node.standing.borrow().term(),
        unpacks: of_groups.unpacks,
    })
}

/// A heartbeat with all that comes with it.
fn told(mut request: dn::HeartbeatRequestProto) -> Told {
    let failed_work = std::mem::take(&mut request.failed_work).into_iter().map(failure).collect();
    let scrubbed = std::mem::take(&mut request.scrubbed).into_iter().map(scrub_result).collect();
    let encoded = std::mem::take(&mut request.encoded).into_iter().map(groups::encoded).collect();
    let of_packed = std::mem::take(&mut request.packed).into_iter().map(packed).collect();
    let proved = std::mem::take(&mut request.proved).into_iter().map(groups::proved).collect();
    let slow_peers = std::mem::take(&mut request.slow_peers).into_iter().filter_map(slow_peer);
    let slow_disks = std::mem::take(&mut request.slow_disks).into_iter().filter_map(slow_disk);
    Told {
        failed_work,
        scrubbed,
        encoded,
        packed: of_packed,
        proved,
        slow_peers: slow_peers.collect(),
        slow_disks: slow_disks.collect(),
        heartbeat: heartbeat(request),
    }
}

fn failure(proto: dn::FailedWorkProto) -> Failure {
    Failure {
        block: BlockId(proto.block.block_id as i64),
        gs: GenerationStamp(proto.block.gen_stamp),
        reason: proto.reason().to_string(),
        target: proto.target_uuid,
        suspect: proto.suspect_uuid,
    }
}

/// Source: Hadoop 3.5.0 `PBHelper#convertSlowPeerInfo`.
fn slow_peer(peer: dn::SlowPeerReportProto) -> Option<(String, Outlier)> {
    let outlier = Outlier {
        latency_ms: peer.aggregate_latency.unwrap_or_default(),
        median_ms: peer.median.unwrap_or_default(),
        mad_ms: peer.mad.unwrap_or_default(),
        limit_ms: peer.upper_limit_latency.unwrap_or_default(),
    };
    Some((peer.data_node_id?, outlier))
}

fn slow_disk(disk: dn::SlowDiskReportProto) -> Option<SlowDisk> {
    Some(SlowDisk {
        path: disk.base_path?,
        metadata_ms: disk.mean_metadata_op_latency,
        read_ms: disk.mean_read_io_latency,
        write_ms: disk.mean_write_io_latency,
    })
}

fn scrub_result(proto: dn::ScrubbedBlockProto) -> Scrubbed {
    let agreement = match proto.agree {
        None => Agreement::Unknown,
        Some(true) => Agreement::All,
        Some(false) => {
            let suspects = proto.suspects.unwrap_or_default();
            Agreement::Without(suspects.into_iter().map(UnitIndex).collect())
        }
    };
    let place = |place: dn::ScrubbedPlaceProto| {
        let unit = UnitIndex(u8::try_from(place.unit).ok()?);
        Some(ScrubbedPlace { storage_uuid: place.storage_uuid, unit, crc32c: place.crc32c })
    };
    let places = proto.places.into_iter().filter_map(place).collect();
    Scrubbed { block: block_ref(&proto.block), places, agreement }
}

/// Source: Hadoop 3.5.0 `FSNamesystem#handleLifeline`.
pub(super) fn send_lifeline(node: &NameNode, call: &Call) -> Answer {
    let request: dn::HeartbeatRequestProto = call.decode()?;
    verify(node, &request.registration)?;
    let registration = request.registration.clone();
    let heartbeat = heartbeat(request);
    node.take_lifeline(&claim(&registration), heartbeat).map_err(|error| unregistered(&error))?;
    answer(&LifelineResponseProto {})
}

pub(super) fn heartbeat(request: dn::HeartbeatRequestProto) -> Heartbeat {
    Heartbeat {
        xmits: request.xmits_in_progress(),
        xceivers: request.xceiver_count(),
        failed_volumes: request.failed_volumes(),
        cache_capacity: request.cache_capacity(),
        cache_used: request.cache_used(),
        takes_scrubs: request.takes_scrubs(),
        takes_groups: request.takes_groups(),
        wants_report_lease: request.request_full_block_report_lease(),
        volume_failures: request.volume_failure_summary.map(|summary| VolumeFailures {
            locations: summary.failed_storage_locations,
            last_failure_ms: summary.last_volume_failure_date,
            lost_capacity: summary.estimated_capacity_lost_total,
        }),
        storages: request.reports.into_iter().map(storage_report).collect(),
    }
}

/// Source: Hadoop 3.5.0 `PBHelperClient#convert(StorageReportProto)`.
fn storage_report(report: pb::StorageReportProto) -> StorageReport {
    let storage = report.storage.clone().unwrap_or_default();
    let usage = StorageUsage {
        capacity: report.capacity(),
        dfs_used: report.dfs_used(),
        remaining: report.remaining(),
        block_pool_used: report.block_pool_used(),
        non_dfs_used: report.non_dfs_used.unwrap_or_else(|| {
            let known = report.dfs_used().saturating_add(report.remaining());
            report.capacity().saturating_sub(known)
        }),
    };
    let read_only = pb::DatanodeStorageProtoStorageState::ReadOnlyShared as i32;
    let state = match (report.failed(), storage.state) {
        (true, _) => StorageState::Failed,
        (false, Some(state)) if state == read_only => StorageState::ReadOnlyShared,
        _ => StorageState::Normal,
    };
    let storage_type = StorageType::by_number(storage.storage_type.unwrap_or_default());
    StorageReport { uuid: report.storage_uuid, storage_type, state, usage }
}

/// Source: Hadoop 3.5.0 `NameNodeRpcServer#blockReport`.
pub(super) async fn block_report(node: &NameNode, call: &Call) -> Answer {
    let request: dn::BlockReportRequestProto = call.decode()?;
    verify(node, &request.registration)?;
    let uuid = &request.registration.datanode_id.datanode_uuid;
    let mut lists = Vec::with_capacity(request.reports.len());
    for report in request.reports {
        let replicas = replicas(&report)?;
        let kind = StorageType::by_number(report.storage.storage_type.unwrap_or_default());
        lists.push(StorageList { storage: (report.storage.storage_uuid, kind), replicas });
    }
    let context = request.context.unwrap_or_default();
    let is_last = context.cur_rpc.saturating_add(1) >= context.total_rpcs;
    let under = (context.lease_id(), is_last);
    let taken = node.take_full_report(&claim(&request.registration), under, lists).await;
    let cmd = match taken {
        Ok(()) => None,
        Err(NotTaken::Unregistered(error)) => {
            let why = unless_replaced(error)?;
            warn!(uuid, "a DataNode reports blocks without being registered: {why}");
            Some(commands::register())
        }
        Err(NotTaken::NoLease(error)) => return Err(refused_report(&context, &error)),
        Err(NotTaken::Failed(refusal)) => return Err(refusal),
    };
    answer(&dn::BlockReportResponseProto { cmd })
}

/// With this answer a DataNode reports anew.
pub(super) fn refused_report(
    context: &dn::BlockReportContextProto,
    error: &RedundancyError,
) -> Refusal {
    let (id, lease_id) = (context.id, context.lease_id());
    warn!("block report 0x{id:x} is not taken: {error}");
    let message = format!("Block report 0x{id:x} was rejected as lease 0x{lease_id:x} is invalid");
    Refusal::new(class::BLOCK_REPORT_LEASE_INVALID, message)
}

pub(super) fn replicas(
    report: &dn::StorageBlockReportProto,
) -> Result<Vec<ReportedReplica>, Refusal> {
    let decoded = match report.number_of_blocks {
        Some(_) if !report.blocks.is_empty() => {
            return Err(Refusal::new(
                class::ILLEGAL_STATE,
                "cannot send both blocks list and buffers",
            ));
        }
        Some(count) => decode_buffers(count, &report.blocks_buffers),
        None => decode_longs(&report.blocks),
    };
    decoded.map_err(|error| Refusal::io(error.to_string()))
}

/// Source: Hadoop 3.5.0 `NameNodeRpcServer#blockReceivedAndDeleted`.
pub(super) async fn block_received_and_deleted(node: &NameNode, call: &Call) -> Answer {
    let request: dn::BlockReceivedAndDeletedRequestProto = call.decode()?;
    verify(node, &request.registration)?;
    let registration = request.registration.clone();
    let claim = claim(&registration);
    match take_changes(node, &claim, request).await {
        Ok(()) => {}
        // A node that is unknown or dead will be told to register by its next heartbeat.
        Err(NotTaken::Unregistered(error) | NotTaken::NoLease(error)) => {
            let (uuid, why) = (claim.uuid, unless_replaced(error)?);
            warn!(uuid, "a DataNode reports changes without being registered: {why}");
        }
        Err(NotTaken::Failed(refusal)) => return Err(refusal),
    }
    answer(&dn::BlockReceivedAndDeletedResponseProto {})
}

async fn take_changes(
    node: &NameNode,
    claim: &NodeClaim<'_>,
    request: dn::BlockReceivedAndDeletedRequestProto,
) -> Result<(), NotTaken> {
    for part in request.blocks {
        let ((storage, kind), events) = events_of(part);
        node.take_events(claim, (&storage, kind), &events).await?;
    }
    for part in request.scanned {
        let sums: Vec<(BlockRef, u32)> = part.blocks.iter().filter_map(sum).collect();
        node.take_sums(claim, &part.storage_uuid, &sums).await?;
    }
    Ok(())
}

/// What has happened on a storage.
pub(super) fn events_of(
    part: dn::StorageReceivedDeletedBlocksProto,
) -> ((String, StorageType), Vec<ReplicaEvent>) {
    let storage_type = part.storage.as_ref().and_then(|storage| storage.storage_type);
    let kind = StorageType::by_number(storage_type.unwrap_or_default());
    let storage = part.storage.map_or(part.storage_uuid, |storage| storage.storage_uuid);
    ((storage, kind), part.blocks.into_iter().filter_map(event).collect())
}

fn block_ref(block: &pb::BlockProto) -> BlockRef {
    BlockRef {
        id: BlockId(block.block_id as i64),
        gs: GenerationStamp(block.gen_stamp),
        len: block.num_bytes(),
    }
}

/// An event, unless its kind is none that this version knows.
fn event(info: dn::ReceivedDeletedBlockInfoProto) -> Option<ReplicaEvent> {
    use dn::ReceivedDeletedBlockInfoProtoBlockStatus::{Deleted, Received, Receiving};
    let kind = match info.status {
        status if status == Receiving as i32 => ReplicaEventKind::Receiving,
        status if status == Received as i32 => ReplicaEventKind::Received {
            delete_hint: info.delete_hint.filter(|hint| !hint.is_empty()),
        },
        status if status == Deleted as i32 => ReplicaEventKind::Deleted,
        _ => return None,
    };
    Some(ReplicaEvent { block: block_ref(&info.block), kind, crc32c: info.crc32c })
}

/// What a block scanner has summed.
fn sum(info: &dn::ReceivedDeletedBlockInfoProto) -> Option<(BlockRef, u32)> {
    info.crc32c.map(|crc32c| (block_ref(&info.block), crc32c))
}

/// What a DataNode has in memory.
///
/// Source: Hadoop 3.5.0 `CacheManager#processCacheReport`.
pub(super) fn cache_report(node: &NameNode, call: &Call) -> Answer {
    let request: dn::CacheReportRequestProto = call.decode()?;
    verify(node, &request.registration)?;
    let uuid = &request.registration.datanode_id.datanode_uuid;
    let blocks = request.blocks.iter().map(|id| BlockId(*id as i64));
    let taken = node.take_cache_report(&claim(&request.registration), blocks);
    taken.map_err(|error| match error {
        RedundancyError::OtherNode { .. } => unregistered(&error),
        _ => Refusal::io(format!("processCacheReport from dead or unregistered datanode: {uuid}")),
    })?;
    answer(&dn::CacheReportResponseProto { cmd: None })
}

/// Source: Hadoop 3.5.0 `NameNodeRpcServer#errorReport`.
pub(super) fn error_report(node: &NameNode, call: &Call) -> Answer {
    let request: dn::ErrorReportRequestProto = call.decode()?;
    let uuid = &request.registartion.datanode_id.datanode_uuid;
    info!(uuid, code = request.error_code, message = request.msg, "a DataNode reports an error");
    if request.error_code != dn::ErrorReportRequestProtoErrorCode::Notify as u32 {
        verify(node, &request.registartion)?;
    }
    if request.error_code == FATAL_DISK_ERROR {
        // One that is dead already has nothing to lose.
        let ended = node.take_end(&claim(&request.registartion));
        if let Err(error @ RedundancyError::OtherNode { .. }) = ended {
            return Err(unregistered(&error));
        }
    }
    answer(&dn::ErrorReportResponseProto {})
}

/// Source: Hadoop 3.5.0 `FSNamesystem#reportBadBlocks`.
pub(super) fn report_bad_blocks(node: &NameNode, call: &Call) -> Answer {
    let request: dn::ReportBadBlocksRequestProto = call.decode()?;
    let found = bad_blocks(&request);
    for error in node.mark_bad(&found) {
        debug!(%error, "nothing to mark as bad");
    }
    answer(&dn::ReportBadBlocksResponseProto {})
}

/// Whose replicas, by their storages' UUIDs, are said to be bad.
pub(super) fn bad_blocks(
    request: &dn::ReportBadBlocksRequestProto,
) -> Vec<(NodeClaim<'_>, &str, BlockRef)> {
    let mut found = Vec::new();
    for located in &request.blocks {
        let block = BlockRef {
            id: BlockId(located.b.block_id as i64),
            gs: GenerationStamp(located.b.generation_stamp),
            len: located.b.num_bytes(),
        };
        for (at, info) in located.locs.iter().enumerate() {
            let uuid = &info.id.datanode_uuid;
            let storage = located.storage_i_ds.get(at).map_or("", String::as_str);
            info!(block = %block.id, uuid, storage, "a replica is reported to be bad");
            found.push((named(&info.id), storage, block));
        }
    }
    found
}
