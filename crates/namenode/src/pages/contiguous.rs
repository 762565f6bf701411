//! What contiguous groups come to, for monitors.

use std::sync::atomic::{AtomicU64, Ordering};

use cairn_net::monitoring::Metrics;
use cairn_redundancy::Cluster;
use serde_json::{Map, Value};

use crate::node::NameNode;

/// Names of figures for `/jmx` and for `/prom`, what each is, and the figure.
type Figure = (&'static str, &'static str, &'static str, u64);

/// How it stands now.
fn gauges(node: &NameNode) -> [Figure; 11] {
    let now = node.now();
    let (counts, _) = node.group_work.counts(now).unwrap_or_default();
    let oldest_ms = counts.oldest_due_ms.map_or(0, |due_ms| now.elapsed_ms.saturating_sub(due_ms));
    let look = |cluster: &Cluster| (cluster.attempt_count(), cluster.groups_with_surplus());
    let (attempts, surplus) = node.see_cluster(look);
    [
        ("Groups", "contiguous_groups", "Contiguous groups", counts.groups),
        (
            "GroupedBytes",
            "contiguous_grouped_bytes",
            "Bytes of files in contiguous groups",
            counts.grouped,
        ),
        (
            "DeadBytes",
            "contiguous_dead_bytes",
            "Bytes in contiguous groups that no file has any more",
            counts.dead,
        ),
        (
            "ParityBytes",
            "contiguous_parity_bytes",
            "Bytes of parities of contiguous groups",
            counts.parity,
        ),
        (
            "DissolvingGroups",
            "contiguous_dissolving_groups",
            "Contiguous groups that are being dissolved",
            counts.dissolving,
        ),
        (
            "WaitingBlocks",
            "contiguous_waiting_blocks",
            "Blocks that wait for a contiguous group and have all their copies",
            counts.waiting,
        ),
        (
            "WaitingBytes",
            "contiguous_waiting_bytes",
            "Bytes of blocks that wait for a contiguous group",
            counts.waiting_bytes,
        ),
        (
            "DueBytes",
            "contiguous_due_bytes",
            "Bytes of those of them that were quiet for long enough",
            counts.due_bytes,
        ),
        (
            "OldestDueSeconds",
            "contiguous_oldest_due_seconds",
            "For how long the first of those could have been grouped",
            oldest_ms / 1000,
        ),
        (
            "OpenAttempts",
            "contiguous_open_attempts",
            "Contiguous groups that are being made",
            attempts as u64,
        ),
        (
            "GroupsWithSurplus",
            "contiguous_groups_with_surplus",
            "Contiguous groups with more replicas than they need",
            surplus as u64,
        ),
    ]
}

/// How it stands with small blocks that are packed.
fn packing(node: &NameNode) -> [Figure; 9] {
    let (counts, _) = node.group_work.counts(node.now()).unwrap_or_default();
    let (with_replicas, unpacking) =
        node.see_cluster(|cluster| (cluster.packed_with_replicas(), cluster.unpacking().len()));
    [
        ("Containers", "packing_containers", "Containers of small blocks", counts.containers),
        (
            "EmptyingContainers",
            "packing_emptying_containers",
            "Containers whose blocks go into others",
            counts.emptying,
        ),
        ("PackedBlocks", "packing_packed_blocks", "Blocks that are packed", counts.packed),
        (
            "PackedBytes",
            "packing_packed_bytes",
            "Bytes of blocks that are packed",
            counts.packed_bytes,
        ),
        (
            "DeadPackedBytes",
            "packing_dead_bytes",
            "Bytes in containers that no block has any more",
            counts.left_bytes,
        ),
        (
            "ContainerSpace",
            "packing_container_space_bytes",
            "Bytes of groups of containers, with their parities",
            counts.container_space,
        ),
        (
            "SmallBlocksWaiting",
            "packing_waiting_blocks",
            "Small blocks that wait to be packed",
            counts.small,
        ),
        (
            "PackedWithReplicas",
            "packing_packed_with_replicas",
            "Packed blocks with replicas of their own, which are to be deleted",
            with_replicas as u64,
        ),
        (
            "Unpacking",
            "packing_unpacking_blocks",
            "Packed blocks that are to be plain again",
            unpacking as u64,
        ),
    ]
}

/// What was done since the start.
fn counters(node: &NameNode) -> [Figure; 5] {
    let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
    let work = &node.group_work;
    [
        (
            "GroupsFormed",
            "contiguous_groups_formed_total",
            "Contiguous groups that were formed",
            count(&work.formed),
        ),
        (
            "AttemptsAbandoned",
            "contiguous_attempts_abandoned_total",
            "Attempts to make contiguous groups that came to nothing",
            count(&work.abandoned),
        ),
        (
            "GroupsRenewed",
            "contiguous_groups_renewed_total",
            "Contiguous groups that were made anew or dissolved for what was dead in them",
            count(&work.renewed),
        ),
        (
            "ContainersEmptied",
            "packing_containers_emptied_total",
            "Containers whose blocks were to go into others for what was dead in them",
            count(&work.emptied),
        ),
        (
            "BlocksUnpacked",
            "packing_blocks_unpacked_total",
            "Packed blocks that became plain again",
            count(&work.unpacked),
        ),
    ]
}

/// The bean; a name of Cairn's own.
pub(super) fn bean(node: &NameNode) -> Value {
    let figures = gauges(node).into_iter().chain(packing(node)).chain(counters(node));
    let figures = figures.map(|(name, _, _, value)| (name.to_string(), value.into()));
    let mut bean: Map<String, Value> = figures.collect();
    bean.insert("name".to_string(), "Cairn:service=NameNode,name=ContiguousGroups".into());
    bean.insert("modelerType".to_string(), "cairn.ContiguousGroups".into());
    Value::Object(bean)
}

/// The same for Prometheus.
pub(super) fn figures(node: &NameNode, metrics: &mut Metrics) {
    for (_, name, help, value) in gauges(node).into_iter().chain(packing(node)) {
        metrics.gauge(name, help, value);
    }
    for (_, name, help, value) in counters(node) {
        metrics.counter(name, help, &[], value);
    }
}
