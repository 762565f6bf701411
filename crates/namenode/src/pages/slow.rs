//! What DataNodes say of slow ones and of slow disks, as the `NameNodeStatus` bean tells it: JSON in a string.
//!
//! Source: Hadoop 3.5.0 `SlowPeerJsonReport`, `SlowDiskTracker`.

use cairn_redundancy::{Cluster, NodeHandle, Outlier, SlowDisk, SlowNode};
use serde_json::{Map, Value, json};

use crate::node::NameNode;

/// `SlowPeersReport`, if peers are measured, and `SlowDisksReport`, if a disk is slow.
pub(super) fn attributes(node: &NameNode) -> (Option<String>, Option<String>) {
    let (now, cluster) = (node.now(), node.cluster());
    let config = &cluster.config().slow;
    let peers = config.takes_peers.then(|| cluster.slow_nodes(config.nodes_shown, now));
    let disks = cluster.slow_disks(config.disks_shown, now);
    let peers = peers.map(|peers| peers.iter().map(|slow| peer(&cluster, slow)).collect::<Value>());
    let disks: Vec<Value> =
        disks.into_iter().map(|(node, slow)| disk(&cluster, node, slow)).collect();
    let disks = (!disks.is_empty()).then(|| Value::Array(disks).to_string());
    (peers.map(|peers| peers.to_string()), disks)
}

fn peer(cluster: &Cluster, slow: &SlowNode) -> Value {
    let report = |(from, outlier): &(NodeHandle, Outlier)| {
        json!({
            "ReportingNode": cluster.node(*from).ipc_name(),
            "ReportedLatency": outlier.latency_ms,
            "MedianLatency": outlier.median_ms,
            "MadLatency": outlier.mad_ms,
            "UpperLimitLatency": outlier.limit_ms,
        })
    };
    json!({
        "SlowNode": cluster.node(slow.node).peer_name(),
        "SlowPeerLatencyWithReportingNodes": slow.reports.iter().map(report).collect::<Value>(),
    })
}

fn disk(cluster: &Cluster, node: NodeHandle, disk: &SlowDisk) -> Value {
    let kinds = [("METADATA", disk.metadata_ms), ("READ", disk.read_ms), ("WRITE", disk.write_ms)];
    let told = kinds.into_iter().filter_map(|(kind, ms)| Some((kind.to_string(), json!(ms?))));
    json!({
        "SlowDiskID": format!("{}:{}", cluster.node(node).ipc_name(), disk.path),
        "Latencies": told.collect::<Map<String, Value>>(),
    })
}
