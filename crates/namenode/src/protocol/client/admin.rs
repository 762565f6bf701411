//! What `hdfs dfsadmin` and monitors ask: figures, reports on DataNodes, safe mode.

use cairn_net::rpc_server::Call;
use cairn_redundancy::{AdminIntent, BlockCounts, DataNode, GroupCounts, ReportKind};
use cairn_wire::exception::class;
use cairn_wire::proto::common::HAServiceStateProto;
use cairn_wire::proto::hdfs as pb;

use super::super::convert;
use crate::node::NameNode;
use crate::refusal::{Answer, Refusal, answer};

/// Most bytes a second that `setBalancerBandwidth` takes (`HdfsServerConstants`).
const MAX_BALANCER_BANDWIDTH: i64 = 1 << 40;
/// Blocks of each leaving DataNode that a report tells of.
const LEAVING_BLOCKS: usize = 20;

/// Source: Hadoop 3.5.0 `FSNamesystem#getStats`.
pub async fn get_fs_stats(node: &NameNode, call: &Call) -> Answer {
    let _: pb::GetFsStatusRequestProto = call.decode()?;
    let stats = node.see_cluster(|cluster| cluster.stats(node.now())).fs_stats();
    let [capacity, used, remaining, under_replicated, corrupt_blocks, missing_blocks, rest @ ..] =
        stats;
    let [missing_one, in_future, pending_deletion] = rest;
    answer(&pb::GetFsStatsResponseProto {
        capacity,
        used,
        remaining,
        under_replicated,
        corrupt_blocks,
        missing_blocks,
        missing_repl_one_blocks: Some(missing_one),
        blocks_in_future: Some(in_future),
        pending_deletion_blocks: Some(pending_deletion),
    })
}

/// Source: Hadoop 3.5.0 `FSNamesystem#getReplicatedBlockStats`.
pub async fn get_fs_replicated_block_stats(node: &NameNode, call: &Call) -> Answer {
    let _: pb::GetFsReplicatedBlockStatsRequestProto = call.decode()?;
    let BlockCounts {
        low_redundancy,
        corrupt,
        missing,
        missing_one_copy,
        bytes_in_future,
        pending_deletion,
        highest_priority,
        badly_distributed,
    } = node.see_cluster(|cluster| cluster.stats(node.now())).replicated;
    answer(&pb::GetFsReplicatedBlockStatsResponseProto {
        low_redundancy,
        corrupt_blocks: corrupt,
        missing_blocks: missing,
        missing_repl_one_blocks: missing_one_copy,
        blocks_in_future: bytes_in_future,
        pending_deletion_blocks: pending_deletion,
        highest_prio_low_redundancy_blocks: Some(highest_priority),
        badly_distributed_blocks: Some(badly_distributed),
    })
}

/// Source: Hadoop 3.5.0 `FSNamesystem#getECBlockGroupStats`.
pub async fn get_fs_ec_block_group_stats(node: &NameNode, call: &Call) -> Answer {
    let _: pb::GetFsECBlockGroupStatsRequestProto = call.decode()?;
    let GroupCounts {
        low_redundancy,
        corrupt,
        missing,
        bytes_in_future,
        pending_deletion,
        highest_priority,
        badly_distributed,
    } = node.see_cluster(|cluster| cluster.stats(node.now())).groups;
    answer(&pb::GetFsECBlockGroupStatsResponseProto {
        low_redundancy,
        corrupt_blocks: corrupt,
        missing_blocks: missing,
        blocks_in_future: bytes_in_future,
        pending_deletion_blocks: pending_deletion,
        highest_prio_low_redundancy_blocks: Some(highest_priority),
        badly_distributed_blocks: Some(badly_distributed),
    })
}

fn report_kind(number: i32) -> Result<ReportKind, Refusal> {
    Ok(match pb::DatanodeReportTypeProto::try_from(number) {
        Ok(pb::DatanodeReportTypeProto::All) => ReportKind::All,
        Ok(pb::DatanodeReportTypeProto::Live) => ReportKind::Live,
        Ok(pb::DatanodeReportTypeProto::Dead) => ReportKind::Dead,
        Ok(pb::DatanodeReportTypeProto::Decommissioning) => ReportKind::Decommissioning,
        Ok(pb::DatanodeReportTypeProto::EnteringMaintenance) => ReportKind::EnteringMaintenance,
        Ok(pb::DatanodeReportTypeProto::InMaintenance) => ReportKind::InMaintenance,
        Err(_) => {
            let message = format!("Unknown datanode report type {number}");
            return Err(Refusal::new(class::ILLEGAL_ARGUMENT, message));
        }
    })
}

/// Source: Hadoop 3.5.0 `FSNamesystem#datanodeReport`.
pub async fn get_datanode_report(node: &NameNode, call: &Call) -> Answer {
    let request: pb::GetDatanodeReportRequestProto = call.decode()?;
    node.check_superuser(call).await?;
    let kind = report_kind(request.r#type)?;
    let (hosts, now) = (node.topology.hosts(), node.now());
    let (mut di, leaving) = node.see(|cluster, lookup| {
        let nodes = cluster.datanode_report(kind);
        let leaving: Vec<_> = nodes
            .iter()
            .filter_map(|n| cluster.leaving_node(lookup, n.handle, LEAVING_BLOCKS, now))
            .map(|told| convert::leaving(&cluster.node(told.node).uuid, &told))
            .collect();
        let info =
            |n: &&DataNode| (convert::datanode_info(n, cluster.block_count(n)), n.failed_volumes);
        let mut di: Vec<_> = nodes.iter().map(info).collect();
        if matches!(kind, ReportKind::All | ReportKind::Dead) {
            let known: Vec<_> = cluster.nodes().map(|node| node.address.clone()).collect();
            let unseen = hosts.unseen(&known).into_iter();
            di.extend(unseen.map(|(address, gone)| (convert::unseen_datanode(&address, gone), 0)));
        }
        (di, leaving)
    });
    di.sort_by_cached_key(|(info, _)| format!("{}:{}", info.id.ip_addr, info.id.xfer_port));
    let (di, failed_volumes) = di.into_iter().unzip();
    answer(&pb::GetDatanodeReportResponseProto { di, leaving, failed_volumes })
}

/// Source: Hadoop 3.5.0 `FSNamesystem#getDatanodeStorageReport`.
pub async fn get_datanode_storage_report(node: &NameNode, call: &Call) -> Answer {
    let request: pb::GetDatanodeStorageReportRequestProto = call.decode()?;
    node.check_superuser(call).await?;
    let kind = report_kind(request.r#type)?;
    let datanode_storage_reports = node.see_cluster(|cluster| {
        let report = |node: &DataNode| {
            let storages = node.storages.iter().map(|handle| cluster.storage(*handle));
            pb::DatanodeStorageReportProto {
                datanode_info: convert::datanode_info(node, cluster.block_count(node)),
                storage_reports: storages.map(convert::storage_report).collect(),
            }
        };
        cluster.datanode_report(kind).into_iter().map(report).collect()
    });
    answer(&pb::GetDatanodeStorageReportResponseProto { datanode_storage_reports })
}

/// The DataNodes that others call slow, those first that most do.
///
/// Source: Hadoop 3.5.0 `FSNamesystem#slowDataNodesReport`.
pub async fn get_slow_datanode_report(node: &NameNode, call: &Call) -> Answer {
    let _: pb::GetSlowDatanodeReportRequestProto = call.decode()?;
    let datanode_info_proto = node.see_cluster(|cluster| {
        let slow = cluster.slow_nodes(usize::MAX, node.now()).into_iter();
        let info = |node: &DataNode| convert::datanode_info(node, cluster.block_count(node));
        slow.map(|slow| info(cluster.node(slow.node))).collect()
    });
    answer(&pb::GetSlowDatanodeReportResponseProto { datanode_info_proto })
}

/// Source: Hadoop 3.5.0 `FSNamesystem#setSafeMode`.
pub async fn set_safe_mode(node: &NameNode, call: &Call) -> Answer {
    use pb::SafeModeActionProto as Action;
    let request: pb::SetSafeModeRequestProto = call.decode()?;
    let action = Action::try_from(request.action).map_err(|_| {
        let message = format!("Unexpected safe mode action {}", request.action);
        Refusal::new(class::ILLEGAL_ARGUMENT, message)
    })?;
    if action != Action::SafemodeGet {
        let operation = match action {
            Action::SafemodeLeave => "safemode_leave",
            Action::SafemodeEnter => "safemode_enter",
            Action::SafemodeForceExit => "safemode_force_exit",
            Action::SafemodeGet => "safemode_get",
        };
        node.check_superuser_for(call, operation).await?;
        tracing::info!(?action, user = %call.user.effective, "safe mode");
    }
    let result = match action {
        Action::SafemodeGet => node.safe_mode_tip().is_some(),
        Action::SafemodeEnter => node.enter_safe_mode().await?,
        Action::SafemodeLeave | Action::SafemodeForceExit => {
            node.leave_safe_mode(action == Action::SafemodeForceExit).await?
        }
    };
    node.make_missing_trash().await;
    answer(&pb::SetSafeModeResponseProto { result })
}

/// Reads the files of racks and of allowed DataNodes again.
///
/// Source: Hadoop 3.5.0 `FSNamesystem#refreshNodes`.
pub async fn refresh_nodes(node: &NameNode, call: &Call) -> Answer {
    let _: pb::RefreshNodesRequestProto = call.decode()?;
    node.check_superuser(call).await?;
    node.refresh_nodes().await?;
    answer(&pb::RefreshNodesResponseProto {})
}

/// Says what is to become of DataNodes, by name: Cairn's own, beside the lists of hosts.
pub async fn set_datanode_state(node: &NameNode, call: &Call) -> Answer {
    use pb::DatanodeInfoProtoAdminState as State;
    let request: pb::SetDatanodeStateRequestProto = call.decode()?;
    node.check_superuser(call).await?;
    let intent = match State::try_from(request.admin_state) {
        Ok(State::Normal) => AdminIntent::InService,
        Ok(State::Decommissioned) => AdminIntent::Decommission,
        Ok(State::InMaintenance) => {
            AdminIntent::Maintenance { until_ms: request.until_ms.unwrap_or(u64::MAX) }
        }
        _ => {
            let message = format!("{} is no state to be in", request.admin_state);
            return Err(Refusal::new(class::ILLEGAL_ARGUMENT, message));
        }
    };
    tracing::info!(datanodes = ?request.datanodes, ?intent, user = %call.user.effective, "wanted");
    let meant = node.set_intent(&request.datanodes, intent).await?;
    let addresses = meant.iter().map(ToString::to_string).collect();
    answer(&pb::SetDatanodeStateResponseProto { addresses })
}

/// Source: Hadoop 3.5.0 `FSNamesystem#setBalancerBandwidth`.
pub async fn set_balancer_bandwidth(node: &NameNode, call: &Call) -> Answer {
    let request: pb::SetBalancerBandwidthRequestProto = call.decode()?;
    if request.bandwidth > MAX_BALANCER_BANDWIDTH {
        let message = format!(
            "Bandwidth should not exceed maximum limit {MAX_BALANCER_BANDWIDTH} bytes per second"
        );
        return Err(Refusal::new(class::ILLEGAL_ARGUMENT, message));
    }
    node.check_superuser(call).await?;
    node.set_balancer_bandwidth(u64::try_from(request.bandwidth).unwrap_or(0)).await?;
    answer(&pb::SetBalancerBandwidthResponseProto {})
}

/// Active, always: a NameNode that stands alone. Deviation: Hadoop without HA answers with
/// `ServiceFailedException`, which only makes clients that ask fail.
///
/// Source: Hadoop 3.5.0 `NameNodeRpcServer#getHAServiceState`.
pub async fn get_ha_service_state(_node: &NameNode, call: &Call) -> Answer {
    let _: pb::HAServiceStateRequestProto = call.decode()?;
    answer(&pb::HAServiceStateResponseProto { state: HAServiceStateProto::Active as i32 })
}

/// Nothing to wait for: every read here sees every change that was answered before it. What the client takes along is the
/// state that the answer tells of.
///
/// Source: Hadoop 3.5.0 `NameNodeRpcServer#msync`.
pub async fn msync(_node: &NameNode, call: &Call) -> Answer {
    let _: pb::MsyncRequestProto = call.decode()?;
    answer(&pb::MsyncResponseProto {})
}
