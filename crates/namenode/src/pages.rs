//! What the HTTP server says: pages for people (`site`), `/jmx`, `/conf`, `/health`, `/leaving`, `/operations`, `/stacks`,
//! `/startupProgress`, `/isActive` and `/prom` for monitors, `/logLevel`, `/fsck` (see [`crate::fsck`]).
//!
//! The beans are those of Hadoop that dashboards poll, with its names.
//!
//! Source: Hadoop 3.5.0 `JMXJsonServlet`, `NameNodeMXBean`, `FSNamesystemMBean`, `IsActiveServlet`.

use cairn_namespace::InodeId;
use cairn_namespace::encryption;
use cairn_namespace::snapshot::listing;
use cairn_redundancy::{AdminState, DataNode};
use serde_json::{Map, Value, json};

use crate::config::NameNodeConfig;
use crate::fsck;
use crate::node::NameNode;
use cairn_net::http::{Answer, Request, Response};
use cairn_net::monitoring::{self, JSON, calls, process};
use cairn_net::page::{self, Page};
use seen::{View, view};
use site::startup;

pub(crate) mod activity;
mod census;
mod contiguous;
mod history;
mod kept;
mod leaving;
mod operations;
mod prom;
mod seen;
mod site;
mod slow;
mod watch;

pub(crate) use seen::Pages;
pub(crate) use site::{FILES, Files};
pub(crate) use watch::{count, sample};

/// Answers one request.
pub(crate) fn page(pages: &Pages, request: &Request) -> Answer {
    match request.path.as_str() {
        "/fsck" => fsck::page(&pages.node, request),
        path => {
            let made = page::file(path);
            let made = made.or_else(|| Some(site::page(pages, request)?.answer(request)));
            made.unwrap_or_else(|| fixed_page(pages, request)).into()
        }
    }
}

/// The page for people that a request is about, to be looked at again and again.
pub(crate) fn live(pages: &Pages, request: &Request) -> Option<Page> {
    site::page(pages, request)
}

/// The pages for programs that are made at once.
fn fixed_page(pages: &Pages, request: &Request) -> Response {
    let node = &pages.node;
    match request.path.as_str() {
        "/jmx" => jmx(node, request),
        "/conf" => monitoring::conf(&node.config.properties, &NameNodeConfig::defaults()),
        "/health" => health(node),
        "/leaving" => Response::ok(JSON, leaving::page(node, request)),
        "/operations" => Response::ok(JSON, operations::page(node)),
        "/prom" => prom::page(pages),
        "/stacks" => process::stacks(&operations::text(node)),
        "/logLevel" => process::log_level(request),
        "/startupProgress" => startup::progress(node),
        "/isActive" => is_active(node),
        _ => Response::error(404, "not found"),
    }
}

/// Whether this NameNode decides. One that leads a quorum and may have been followed by another one does not say so.
///
/// Source: Hadoop 3.5.0 `IsActiveServlet`.
fn is_active(node: &NameNode) -> Response {
    match node.lead.as_ref().is_none_or(|lead| lead.may_answer()) {
        true => Response::ok("text/html; charset=utf-8", "I am Active!\n".to_string()),
        false => Response::error(405, "I am not Active!"),
    }
}

/// Healthy means: answers, and takes changes.
fn health(node: &NameNode) -> Response {
    match node.safe_mode_tip() {
        None => Response::ok(JSON, json!({"status": "ok", "safemode": false}).to_string()),
        Some(tip) => {
            let body = json!({"status": "safemode", "safemode": true, "reason": tip});
            Response::new(503, JSON, body.to_string())
        }
    }
}

fn jmx(node: &NameNode, request: &Request) -> Response {
    let view = view(node);
    let zones = encryption_zones(node);
    let mut beans = vec![
        name_node_info(node, &view),
        file_system_state(&view, zones),
        file_system(node, &view, zones),
        name_node_status(node),
        activity::bean(&node.rpc_metrics),
        contiguous::bean(node),
    ];
    beans.extend(calls::beans(&node.rpc_metrics, "NameNode", node.rpc_addr.port()));
    monitoring::jmx(beans, request)
}

/// Encryption zones that are in the tree. There are few.
fn encryption_zones(node: &NameNode) -> usize {
    let zones = node.ns.read(|store| encryption::zones(store, InodeId(0), usize::MAX));
    zones.map_or(0, |(zones, _)| zones.len())
}

fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 * 100.0 / whole as f64 }
}

fn name_node_info(node: &NameNode, view: &View) -> Value {
    let usage = &view.stats.usage;
    let identity = node.ns.identity();
    let of_nodes = |alive: bool| {
        let nodes = view.nodes.iter().filter(|(node, _)| node.alive == alive);
        let beans = nodes.map(|(node, blocks)| (node.name(), datanode_bean(node, *blocks, view)));
        Value::Object(beans.collect::<Map<String, Value>>()).to_string()
    };
    let version = env!("CARGO_PKG_VERSION");
    let (decommissioning, entering_maintenance) = leaving::attributes(node);
    let snapshottable = node.ns.read(|store| listing::counts(store)).map_or(0, |counts| counts.0);
    json!({
        "name": "Hadoop:service=NameNode,name=NameNodeInfo",
        "modelerType": "cairn.NameNode",
        "Version": format!("{version}, cairn"),
        "SoftwareVersion": version,
        "Used": usage.dfs_used,
        "Free": usage.remaining,
        "Total": usage.capacity,
        "NonDfsUsedSpace": usage.non_dfs_used,
        "PercentUsed": percent(usage.dfs_used, usage.capacity),
        "PercentRemaining": percent(usage.remaining, usage.capacity),
        "BlockPoolUsedSpace": usage.block_pool_used,
        "PercentBlockPoolUsed": percent(usage.block_pool_used, usage.capacity),
        "Safemode": view.safe_mode.clone().map(|tip| format!("Safe mode is ON. {tip}"))
            .unwrap_or_default(),
        "UpgradeFinalized": node.ns.is_finalized(),
        "CacheCapacity": view.stats.cache_capacity,
        "CacheUsed": view.stats.cache_used,
        "TotalBlocks": view.totals.blocks,
        "NumberOfMissingBlocks": view.stats.replicated.missing + view.stats.groups.missing,
        "NumberOfMissingBlocksWithReplicationFactorOne": view.stats.replicated.missing_one_copy,
        "LiveNodes": of_nodes(true),
        "DeadNodes": of_nodes(false),
        "DecomNodes": decommissioning,
        "EnteringMaintenanceNodes": entering_maintenance,
        "BlockPoolId": identity.block_pool_id,
        "ClusterId": identity.cluster_id,
        "NameDirStatuses": json!({"active": {node.config.name_dir.display().to_string():
            "IMAGE_AND_EDITS"}, "failed": {}}).to_string(),
        "NNStartedTimeInMillis": node.started_ms,
        "CorruptFiles": "[]",
        "NumberOfSnapshottableDirs": snapshottable,
        "Threads": 0,
    })
}

fn datanode_bean(node: &DataNode, blocks: usize, view: &View) -> Value {
    let usage = &node.usage;
    let address = &node.address;
    json!({
        "infoAddr": format!("{}:{}", address.ip, address.info_port),
        "infoSecureAddr": format!("{}:{}", address.ip, address.info_secure_port),
        "xferaddr": format!("{}:{}", address.ip, address.xfer_port),
        "location": node.rack,
        "uuid": node.uuid,
        "lastContact": view.now.mono_ms.saturating_sub(node.last_update_mono_ms) / 1000,
        "usedSpace": usage.dfs_used,
        "adminState": node.admin.to_string(),
        "decommissioned": node.admin == AdminState::Decommissioned,
        "upgradeDomain": node.upgrade_domain,
        "nonDfsUsedSpace": usage.non_dfs_used,
        "capacity": usage.capacity,
        "numBlocks": blocks,
        "version": node.software_version,
        "used": usage.dfs_used,
        "remaining": usage.remaining,
        "blockPoolUsed": usage.block_pool_used,
        "blockPoolUsedPercent": percent(usage.block_pool_used, usage.capacity),
        "volfails": node.failed_volumes,
    })
}

fn file_system_state(view: &View, encryption_zones: usize) -> Value {
    let (stats, usage) = (&view.stats, &view.stats.usage);
    json!({
        "name": "Hadoop:service=NameNode,name=FSNamesystemState",
        "modelerType": "cairn.FSNamesystem",
        "CapacityTotal": usage.capacity,
        "CapacityUsed": usage.dfs_used,
        "CapacityRemaining": usage.remaining,
        "TotalLoad": stats.xceivers,
        "BlocksTotal": view.totals.blocks,
        "FilesTotal": view.totals.inodes,
        "PendingReplicationBlocks": stats.pending_reconstruction,
        "UnderReplicatedBlocks": stats.replicated.low_redundancy + stats.groups.low_redundancy,
        "ScheduledReplicationBlocks": stats.scheduled_reconstruction,
        "PendingDeletionBlocks": stats.replicated.pending_deletion + stats.groups.pending_deletion,
        "BlockDeletionStartTime": view.deletions_begin_ms,
        "FSState": if view.safe_mode.is_some() { "safeMode" } else { "Operational" },
        "NumLiveDataNodes": stats.live_nodes,
        "NumDeadDataNodes": stats.dead_nodes,
        "NumDecomLiveDataNodes": stats.decommissioned_live_nodes,
        "NumDecomDeadDataNodes": stats.decommissioned_dead_nodes,
        "NumDecommissioningDataNodes": stats.decommissioning_nodes,
        "NumInMaintenanceLiveDataNodes": stats.in_maintenance_live_nodes,
        "NumInMaintenanceDeadDataNodes": stats.in_maintenance_dead_nodes,
        "NumEnteringMaintenanceDataNodes": stats.entering_maintenance_nodes,
        "VolumeFailuresTotal": stats.failed_volumes,
        "NumStaleDataNodes": stats.stale_nodes,
        "NumEncryptionZones": encryption_zones,
    })
}

fn file_system(node: &NameNode, view: &View, encryption_zones: usize) -> Value {
    let (stats, usage) = (&view.stats, &view.stats.usage);
    let (replicated, groups) = (&stats.replicated, &stats.groups);
    json!({
        "name": "Hadoop:service=NameNode,name=FSNamesystem",
        "modelerType": "FSNamesystem",
        "tag.HAState": "active",
        "tag.Hostname": node.rpc_addr.ip().to_string(),
        "MissingBlocks": replicated.missing + groups.missing,
        "MissingReplOneBlocks": replicated.missing_one_copy,
        "CapacityTotal": usage.capacity,
        "CapacityUsed": usage.dfs_used,
        "CapacityRemaining": usage.remaining,
        "CapacityUsedNonDFS": usage.non_dfs_used,
        "TotalLoad": stats.xceivers,
        "BlocksTotal": view.totals.blocks,
        "FilesTotal": view.totals.inodes,
        "CorruptBlocks": replicated.corrupt + groups.corrupt,
        "UnderReplicatedBlocks": replicated.low_redundancy + groups.low_redundancy,
        "LowRedundancyReplicatedBlocks": replicated.low_redundancy,
        "LowRedundancyECBlockGroups": groups.low_redundancy,
        "CorruptECBlockGroups": groups.corrupt,
        "MissingECBlockGroups": groups.missing,
        "PendingReconstructionBlocks": stats.pending_reconstruction,
        "ExcessBlocks": stats.excess,
        "StaleDataNodes": stats.stale_nodes,
        "NumLiveDataNodes": stats.live_nodes,
        "NumDeadDataNodes": stats.dead_nodes,
        "NumEncryptionZones": encryption_zones,
        "LastWrittenTransactionId": node.ns.last_sequence(),
    })
}

fn name_node_status(node: &NameNode) -> Value {
    let (slow_peers, slow_disks) = slow::attributes(node);
    let since_ms = node.lead.as_ref().map_or(0, |lead| lead.since_ms());
    json!({
        "name": "Hadoop:service=NameNode,name=NameNodeStatus",
        "modelerType": "cairn.NameNode",
        "NNRole": "NameNode",
        "HostAndPort": node.rpc_addr.to_string(),
        "SecurityEnabled": false,
        "State": "active",
        "LastHATransitionTime": since_ms,
        "SlowPeersReport": slow_peers,
        "SlowDisksReport": slow_disks,
    })
}
