//! What a DataNode tells: heartbeats, block reports, errors, bad blocks.

use cairn_net::rpc_server::Call;
use cairn_redundancy::{
    Agreement, BlockLookup, BlockRef, Changes, Cluster, DataNode, FailedWork, FullReport,
    Heartbeat, NodeHandle, Now, Outlier, RedundancyError, ReplicaEvent, ReplicaEventKind,
    ReportedReplica, Scrubbed, ScrubbedPlace, SlowDisk, StorageReport, StorageState, StorageUsage,
    VolumeFailures,
};
use cairn_stripe::{BlockId, GenerationStamp, StorageType, UnitIndex};
use cairn_wire::exception::class;
use cairn_wire::proto::datanodelifeline::LifelineResponseProto;
use cairn_wire::proto::{datanode as dn, hdfs as pb};
use tracing::{debug, info, warn};

use super::block_list::{decode_buffers, decode_longs};
use super::register::{claim, disallow, named, unless_replaced, unregistered, verify};
use super::{commands, orders};
use crate::node::NameNode;
use crate::refusal::{Answer, Refusal, answer};

/// `DatanodeProtocol.FATAL_DISK_ERROR`: the DataNode can't go on.
const FATAL_DISK_ERROR: u32 = 3;

/// What is taken of a report while the lock on the cluster is held.
const EVENTS_PER_LOCK: usize = 1000;

/// Source: Hadoop 3.5.0 `FSNamesystem#handleHeartbeat`.
pub(super) fn send_heartbeat(node: &NameNode, call: &Call) -> Answer {
    let mut request: dn::HeartbeatRequestProto = call.decode()?;
    verify(node, &request.registration)?;
    let registration = request.registration.clone();
    let claim = claim(&registration);
    let is_disallowed = |known: &DataNode| known.disallowed && known.is_of(&claim);
    if node.cluster().node_by_uuid(claim.uuid).is_some_and(is_disallowed) {
        return Err(disallow(&registration));
    }
    let failed_work = std::mem::take(&mut request.failed_work);
    let scrubbed = std::mem::take(&mut request.scrubbed);
    let slow_peers = std::mem::take(&mut request.slow_peers);
    let slow_disks = std::mem::take(&mut request.slow_disks);
    let heartbeat = heartbeat(request);
    let now = node.now();
    let mut found = Changes::default();
    let (cmds, scrubs, lease, orders, is_slow, newly_slow) = node
        .with_cluster(|cluster, lookup| -> Result<_, RedundancyError> {
            let mut newly_slow = Vec::new();
            let known = cluster.registered(&claim).ok();
            if let Some(reporter) = known {
                take_failed_work(cluster, lookup, reporter, &failed_work, now);
                for result in scrubbed {
                    found.append(cluster.scrubbed(lookup, reporter, &scrub_result(result)));
                }
                newly_slow = take_slow(cluster, reporter, &slow_peers, slow_disks, now);
            }
            let answer = cluster.heartbeat(lookup, &claim, heartbeat, now)?;
            let pool = &node.ns.identity().block_pool_id;
            let cmds = commands::encode(cluster, lookup, pool, answer.commands);
            let scrubs = commands::encode_scrubs(cluster, lookup, pool, &answer.scrubs);
            let is_slow = known.is_some_and(|handle| cluster.is_slow(handle));
            let orders = known.and_then(|handle| orders::told(node, cluster, handle));
            Ok((cmds, scrubs, answer.report_lease, orders, is_slow, newly_slow))
        })
        .map_err(|error| unregistered(&error))?;
    for (slow, by) in newly_slow {
        warn!(%slow, %by, "a DataNode is slow, another tells");
    }
    warn_of(&found);
    node.follow_up_later(found.into());
    answer(&dn::HeartbeatResponseProto {
        cmds,
        ha_status: pb::NNHAStatusHeartbeatProto {
            state: pb::NNHAStatusHeartbeatProtoState::Active as i32,
            txid: 1,
        },
        rolling_upgrade_status: None,
        rolling_upgrade_status_v2: None,
        full_block_report_lease_id: Some(lease.unwrap_or(0)),
        is_slownode: Some(is_slow),
        scrubs,
        orders,
    })
}

/// Has work that a DataNode could not do given to others.
fn take_failed_work(
    cluster: &mut Cluster,
    lookup: &dyn BlockLookup,
    reporter: NodeHandle,
    failures: &[dn::FailedWorkProto],
    now: Now,
) {
    let handle = |cluster: &Cluster, uuid: &str| cluster.node_by_uuid(uuid).map(|node| node.handle);
    for failure in failures {
        let Some(target) = handle(cluster, &failure.target_uuid) else { continue };
        let suspect = failure.suspect_uuid.as_deref();
        let failed = FailedWork {
            block: BlockId(failure.block.block_id as i64),
            gs: GenerationStamp(failure.block.gen_stamp),
            target,
            suspect: suspect.and_then(|uuid| handle(cluster, uuid)),
        };
        if cluster.work_failed(lookup, reporter, &failed, now) {
            let (target, reason) = (&failure.target_uuid, failure.reason());
            info!(block = %failed.block, target, suspect, reason, "a copy has failed, it is queued again");
        }
    }
}

/// Takes what a DataNode says of others and of its disks. Returns who is slow to whom of a sudden, by names.
///
/// Source: Hadoop 3.5.0 `DatanodeManager#handleHeartbeat`, `PBHelper#convertSlowPeerInfo`.
fn take_slow(
    cluster: &mut Cluster,
    reporter: NodeHandle,
    peers: &[dn::SlowPeerReportProto],
    disks: Vec<dn::SlowDiskReportProto>,
    now: Now,
) -> Vec<(String, String)> {
    let peers = peers.iter().filter_map(|peer| {
        let outlier = Outlier {
            latency_ms: peer.aggregate_latency.unwrap_or_default(),
            median_ms: peer.median.unwrap_or_default(),
            mad_ms: peer.mad.unwrap_or_default(),
            limit_ms: peer.upper_limit_latency.unwrap_or_default(),
        };
        Some((peer.data_node_id.as_deref()?, outlier))
    });
    let newly_slow = cluster.slow_peers_reported(reporter, peers, now);
    let name = |node: NodeHandle| cluster.node(node).name();
    let newly_slow = newly_slow.into_iter().map(|slow| (name(slow), name(reporter))).collect();
    let disks = disks.into_iter().filter_map(|disk| {
        Some(SlowDisk {
            path: disk.base_path?,
            metadata_ms: disk.mean_metadata_op_latency,
            read_ms: disk.mean_read_io_latency,
            write_ms: disk.mean_write_io_latency,
        })
    });
    cluster.slow_disks_reported(reporter, disks.collect(), now);
    newly_slow
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
    let now = node.now();
    node.with_cluster(|cluster, lookup| {
        cluster.lifeline(lookup, &claim(&registration), heartbeat, now)
    })
    .map_err(|error| unregistered(&error))?;
    answer(&LifelineResponseProto {})
}

fn heartbeat(request: dn::HeartbeatRequestProto) -> Heartbeat {
    Heartbeat {
        xmits: request.xmits_in_progress(),
        xceivers: request.xceiver_count(),
        failed_volumes: request.failed_volumes(),
        cache_capacity: request.cache_capacity(),
        cache_used: request.cache_used(),
        takes_scrubs: request.takes_scrubs(),
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
    for report in &request.reports {
        lists.push((&report.storage, replicas(report)?));
    }
    let reporter = node.cluster().registered(&claim(&request.registration));
    let handle = match reporter.map_err(unless_replaced) {
        Ok(handle) => handle,
        Err(why) => {
            let why = why?;
            warn!(uuid, "a DataNode reports blocks without being registered: {why}");
            let cmd = Some(commands::register());
            return answer(&dn::BlockReportResponseProto { cmd });
        }
    };
    let context = request.context.unwrap_or_default();
    let call = node.cluster().begin_report_call(handle, context.lease_id(), node.now());
    let call = call.map_err(|error| refused_report(&context, &error))?;
    for (storage, replicas) in lists {
        let kind = StorageType::by_number(storage.storage_type.unwrap_or_default());
        let (uuid_of_storage, mut report) = (&storage.storage_uuid, FullReport::new(replicas));
        let named = (uuid_of_storage.as_str(), kind);
        debug!(uuid, storage = uuid_of_storage, replicas = report.replica_count(), "block report");
        match node.cluster().begin_full_report(call, named, &mut report) {
            Ok(()) => {}
            Err(RedundancyError::ReportOvertaken { .. }) => break,
            Err(refused) => {
                warn!(uuid, "a report is not taken: {refused}");
                continue;
            }
        }
        let mut more = true;
        while more {
            let (mut changes, now) = (Changes::default(), node.now());
            let next = report.next_blocks();
            more = node.with_cluster_and(&next, |cluster, lookup| {
                cluster.full_report_step(lookup, &mut report, now, &mut changes)
            })?;
            act_on(node, changes).await?;
            // Others get the lock in between.
            tokio::task::yield_now().await;
        }
    }
    let is_last = context.cur_rpc.saturating_add(1) >= context.total_rpcs;
    let ended = node.cluster().end_report_call(call, is_last);
    ended.map_err(|error| refused_report(&context, &error))?;
    answer(&dn::BlockReportResponseProto { cmd: None })
}

/// With this answer a DataNode reports anew.
fn refused_report(context: &dn::BlockReportContextProto, error: &RedundancyError) -> Refusal {
    let (id, lease_id) = (context.id, context.lease_id());
    warn!("block report 0x{id:x} is not taken: {error}");
    let message = format!("Block report 0x{id:x} was rejected as lease 0x{lease_id:x} is invalid");
    Refusal::new(class::BLOCK_REPORT_LEASE_INVALID, message)
}

fn replicas(report: &dn::StorageBlockReportProto) -> Result<Vec<ReportedReplica>, Refusal> {
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

/// Does what follows from reports: completes committed blocks and records late CRCs.
async fn act_on(node: &NameNode, changes: Changes) -> Result<(), Refusal> {
    warn_of(&changes);
    node.follow_up(changes.into()).await
}

fn warn_of(changes: &Changes) {
    for block in &changes.altered {
        warn!(block = %block.id, "a finalized replica does not have the bytes first written");
    }
    for block in &changes.unexplained {
        warn!(%block, "replicas or units disagree, and which one is wrong is not known: see cairn scrub");
    }
}

/// Source: Hadoop 3.5.0 `NameNodeRpcServer#blockReceivedAndDeleted`.
pub(super) async fn block_received_and_deleted(node: &NameNode, call: &Call) -> Answer {
    let request: dn::BlockReceivedAndDeletedRequestProto = call.decode()?;
    verify(node, &request.registration)?;
    let uuid = &request.registration.datanode_id.datanode_uuid;
    // A node that is unknown or dead will be told to register by its next heartbeat.
    let reporter = node.cluster().registered(&claim(&request.registration));
    let handle = match reporter.map_err(unless_replaced) {
        Ok(handle) => handle,
        Err(why) => {
            let why = why?;
            warn!(uuid, "a DataNode reports changes without being registered: {why}");
            return answer(&dn::BlockReceivedAndDeletedResponseProto {});
        }
    };
    for part in request.blocks {
        let storage_type = part.storage.as_ref().and_then(|storage| storage.storage_type);
        let kind = StorageType::by_number(storage_type.unwrap_or_default());
        let storage_uuid = part.storage.map_or(part.storage_uuid, |storage| storage.storage_uuid);
        let events: Vec<ReplicaEvent> = part.blocks.into_iter().filter_map(event).collect();
        for events in events.chunks(EVENTS_PER_LOCK) {
            let changes = node.with_cluster(|cluster, lookup| {
                cluster.incremental_report(lookup, handle, (&storage_uuid, kind), events)
            });
            if let Some(refused) = &changes.refused {
                warn!(uuid, "a report is not taken: {refused}");
                break;
            }
            act_on(node, changes).await?;
        }
    }
    for part in request.scanned {
        let sums: Vec<(BlockRef, u32)> = part.blocks.iter().filter_map(sum).collect();
        for sums in sums.chunks(EVENTS_PER_LOCK) {
            let changes = node.with_cluster(|cluster, lookup| {
                cluster.scan_report(lookup, handle, &part.storage_uuid, sums)
            });
            act_on(node, changes).await?;
        }
    }
    answer(&dn::BlockReceivedAndDeletedResponseProto {})
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
    let mut cluster = node.cluster();
    let uuid = &request.registration.datanode_id.datanode_uuid;
    let reporter = cluster.registered(&claim(&request.registration));
    let reporter = reporter.map_err(|error| match error {
        RedundancyError::OtherNode { .. } => unregistered(&error),
        _ => Refusal::io(format!("processCacheReport from dead or unregistered datanode: {uuid}")),
    })?;
    if node.config.caching_enabled {
        cluster.cache_report(reporter, request.blocks.iter().map(|id| BlockId(*id as i64)));
    }
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
        node.with_cluster(|cluster, lookup| {
            match cluster.registered(&claim(&request.registartion)) {
                Ok(handle) => cluster.node_died(lookup, handle),
                Err(error @ RedundancyError::OtherNode { .. }) => return Err(unregistered(&error)),
                Err(_) => {}
            }
            Ok(())
        })?;
    }
    answer(&dn::ErrorReportResponseProto {})
}

/// Source: Hadoop 3.5.0 `FSNamesystem#reportBadBlocks`.
pub(super) fn report_bad_blocks(node: &NameNode, call: &Call) -> Answer {
    let request: dn::ReportBadBlocksRequestProto = call.decode()?;
    mark_bad_blocks(node, &request.blocks);
    answer(&dn::ReportBadBlocksResponseProto {})
}

/// Marks what clients or DataNodes have found to be bad; `ClientProtocol` has the same call.
pub(crate) fn mark_bad_blocks(node: &NameNode, blocks: &[pb::LocatedBlockProto]) {
    node.with_cluster(|cluster, lookup| {
        for located in blocks {
            let block = BlockRef {
                id: BlockId(located.b.block_id as i64),
                gs: GenerationStamp(located.b.generation_stamp),
                len: located.b.num_bytes(),
            };
            for (at, info) in located.locs.iter().enumerate() {
                let uuid = &info.id.datanode_uuid;
                let storage = located.storage_i_ds.get(at).map_or("", String::as_str);
                let Ok(handle) = cluster.registered(&named(&info.id)) else { continue };
                info!(block = %block.id, uuid, storage, "a replica is reported to be bad");
                if let Err(error) = cluster.report_bad(lookup, handle, storage, block) {
                    debug!(%error, "nothing to mark as bad");
                }
            }
        }
    });
}
