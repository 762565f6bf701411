//! What is told of DataNodes that leave: Hadoop's two attributes of `NameNodeInfo`, and `/leaving`, which
//! says how far each is, when it will be through, and what holds it or its blocks back.
//!
//! Source: Hadoop 3.5.0 `FSNamesystem#getDecomNodes`, `#getEnteringMaintenanceNodes`.

use cairn_redundancy::{AdminState, Cluster, LeavingNode};
use serde_json::{Map, Value, json};

use crate::node::NameNode;
use cairn_net::http::Request;

/// Blocks of each node that the page tells of when it is not asked for another number.
const BLOCKS: usize = 20;
/// The most that it tells of.
const BLOCKS_MAX: usize = 1000;

/// DataNodes that leave, each with up to so many of its blocks.
pub(super) fn leaving_nodes(node: &NameNode, blocks: usize) -> Vec<(String, Value, LeavingNode)> {
    let now = node.now();
    node.with_cluster(|cluster, lookup| {
        let handles: Vec<_> = cluster.leaving_nodes().collect();
        let told = handles.into_iter().filter_map(|handle| {
            let told = cluster.leaving_node(lookup, handle, blocks, now)?;
            Some((cluster.node(handle).name(), identity(cluster, &told), told))
        });
        told.collect()
    })
}

fn identity(cluster: &Cluster, told: &LeavingNode) -> Value {
    let node = cluster.node(told.node);
    json!({
        "xferaddr": node.address.to_string(),
        "location": node.rack,
        "uuid": node.uuid,
    })
}

/// The attributes `DecomNodes` and `EnteringMaintenanceNodes`: JSON in a string, as Hadoop has it.
pub(super) fn attributes(node: &NameNode) -> (String, String) {
    let (mut decommissioning, mut entering) = (Map::new(), Map::new());
    for (name, mut bean, told) in leaving_nodes(node, 0) {
        bean["underReplicatedBlocks"] = json!(told.blocks_left);
        bean["underReplicateInOpenFiles"] = json!(told.open);
        if told.state == AdminState::EnteringMaintenance {
            bean["maintenanceOnlyReplicas"] = json!(told.only_leaving);
            entering.insert(name, bean);
        } else {
            bean["decommissionOnlyReplicas"] = json!(told.only_leaving);
            bean["decommissionDuration"] = json!(told.age_ms);
            decommissioning.insert(name, bean);
        }
    }
    (Value::Object(decommissioning).to_string(), Value::Object(entering).to_string())
}

/// The page `/leaving`; its parameter `blocks` says how many blocks of each node are to be told of.
pub(super) fn page(node: &NameNode, request: &Request) -> String {
    let wanted = request.param("blocks").and_then(|text| text.parse().ok()).unwrap_or(BLOCKS);
    let nodes =
        leaving_nodes(node, wanted.min(BLOCKS_MAX)).into_iter().map(|(name, mut bean, told)| {
            let blocks = told.blocks.iter();
            let blocks: Vec<Value> = blocks
                .map(|(id, why)| json!({"block": id.to_string(), "held_back": why.to_string()}))
                .collect();
            bean["name"] = json!(name);
            bean["state"] = json!(told.state.to_string());
            bean["age_ms"] = json!(told.age_ms);
            bean["counted"] = json!(told.counted);
            bean["blocks_left"] = json!(told.blocks_left);
            bean["bytes_left"] = json!(told.bytes_left);
            bean["blocks_done"] = json!(told.blocks_done);
            bean["bytes_done"] = json!(told.bytes_done);
            bean["only_on_leaving"] = json!(told.only_leaving);
            bean["open_files"] = json!(told.open);
            bean["bytes_per_second"] = json!(told.bytes_per_second);
            bean["seconds_left"] = json!(told.seconds_left);
            bean["held_back"] = json!(told.held_back.map(|why| why.to_string()));
            bean["blocks"] = json!(blocks);
            bean
        });
    json!({ "nodes": nodes.collect::<Vec<Value>>() }).to_string()
}
