//! Figures for Prometheus.
//!
//! What is looked at under the cluster's lock is a few sums; what takes longer was counted before, in the background.

use cairn_namespace::query;
use cairn_net::http::Response;
use cairn_net::monitoring::{Metrics, calls};
use cairn_redundancy::{BlockCounts, ClusterStats, GroupCounts, MARGINS, ReportKind};

use super::census::Census;
use super::contiguous;
use super::seen::Pages;
use crate::members;
use crate::node::NameNode;

/// `/prom`.
pub(super) fn page(pages: &Pages) -> Response {
    let node = &pages.node;
    let mut metrics = Metrics::of("cairn_namenode");
    state(node, &mut metrics);
    contiguous::figures(node, &mut metrics);
    if let Some(census) = pages.censuses.look() {
        counted(&census, &mut metrics);
    }
    log_and_store(node, &mut metrics);
    quorum(node, &mut metrics);
    settings(node, &mut metrics);
    calls::figures(&node.rpc_metrics, &mut metrics);
    node.workers.figures(&mut metrics);
    metrics.page()
}

/// The members of the quorum that it leads.
fn quorum(node: &NameNode, out: &mut Metrics) {
    let Some(lead) = &node.lead else { return };
    let (status, rows) = lead.members();
    members::figures(&status, &rows, out);
}

/// Where configurations differ.
fn settings(node: &NameNode, out: &mut Metrics) {
    let help = "Settings that commands obey and that were others before this NameNode served";
    out.gauge("settings_changed", help, node.ns.changed_settings().len());
    let Some(lead) = &node.lead else { return };
    let help = "1 for members of the quorum that are configured otherwise than this one";
    for member in lead.configured_otherwise() {
        out.gauge_of("member_settings_differ", help, &[("member", &member)], 1);
    }
}

/// The cluster as it is now.
fn state(node: &NameNode, out: &mut Metrics) {
    let now = node.now();
    let totals = node.ns.read(|store| query::totals(store)).unwrap_or_default();
    let (stats, is_safe, twins) = {
        let cluster = node.cluster();
        let nodes = cluster.datanode_report(ReportKind::All).into_iter();
        let twins = nodes.filter(|datanode| datanode.twin(now).is_some()).count();
        (cluster.stats(now), cluster.safe_mode().is_on(), twins)
    };
    out.gauge("inodes", "Files and directories", totals.inodes);
    out.gauge("blocks", "Blocks and block groups", totals.blocks);
    out.gauge("safe_mode", "1 while changes are refused", u64::from(is_safe));
    let held = [
        ("restored", node.ns.restored().is_some()),
        ("upgrade", node.ns.rollback_point().is_some()),
    ];
    let help = "1 while no replica is deleted, since a restored namespace is not accepted or an upgrade not finalized";
    for (by, is_held) in held {
        out.gauge_of("deletions_held", help, &[("by", by)], u64::from(is_held));
    }
    let help = "Seconds by which the machine's clock has jumped ahead of the file system's, which follows it slowly";
    let jump_ms = node.ns.clock().jump_ms().unwrap_or_default();
    out.gauge("clock_jump_seconds", help, jump_ms as f64 / 1000.0);
    let help = "DataNodes of which another one with the same UUID was alive lately";
    out.gauge("twin_datanodes", help, twins);
    datanodes(&stats, out);
    blocks(&stats.replicated, out);
    groups(&stats.groups, out);
    mending(&stats, out);
}

fn datanodes(stats: &ClusterStats, out: &mut Metrics) {
    let bytes = [
        ("capacity_bytes", "Bytes that live DataNodes can hold", stats.usage.capacity),
        ("used_bytes", "Bytes of blocks", stats.usage.dfs_used),
        ("remaining_bytes", "Bytes free for blocks", stats.usage.remaining),
        ("other_used_bytes", "Bytes of volumes that others use", stats.usage.non_dfs_used),
        ("failed_volumes", "Volumes of DataNodes that have failed", stats.failed_volumes),
        ("transfers", "Data transfers under way at live DataNodes", stats.xceivers),
    ];
    for (name, help, value) in bytes {
        out.gauge(name, help, value);
    }
    let in_maintenance = stats.in_maintenance_live_nodes + stats.in_maintenance_dead_nodes;
    let decommissioned = stats.decommissioned_live_nodes + stats.decommissioned_dead_nodes;
    let nodes = [
        ("live_datanodes", "DataNodes that send heartbeats", stats.live_nodes),
        ("dead_datanodes", "DataNodes that do not", stats.dead_nodes),
        ("stale_datanodes", "DataNodes that have sent no heartbeat lately", stats.stale_nodes),
        ("decommissioning_datanodes", "DataNodes being taken out", stats.decommissioning_nodes),
        ("decommissioned_datanodes", "DataNodes taken out", decommissioned),
        (
            "entering_maintenance_datanodes",
            "DataNodes about to be in maintenance",
            stats.entering_maintenance_nodes,
        ),
        ("in_maintenance_datanodes", "DataNodes in maintenance", in_maintenance),
    ];
    for (name, help, value) in nodes {
        out.gauge(name, help, value);
    }
}

fn blocks(counts: &BlockCounts, out: &mut Metrics) {
    let figures = [
        ("low_redundancy_blocks", "Blocks with too few replicas", counts.low_redundancy),
        ("missing_blocks", "Blocks without a good replica", counts.missing),
        (
            "missing_one_copy_blocks",
            "Those of them that were to have one replica only",
            counts.missing_one_copy,
        ),
        ("corrupt_blocks", "Blocks with a bad replica", counts.corrupt),
        ("badly_placed_blocks", "Blocks on too few racks", counts.badly_distributed),
        ("pending_deletion_replicas", "Replicas to be deleted", counts.pending_deletion),
    ];
    for (name, help, value) in figures {
        out.gauge(name, help, value);
    }
}

fn groups(counts: &GroupCounts, out: &mut Metrics) {
    let figures = [
        ("low_redundancy_groups", "Groups with too few units", counts.low_redundancy),
        ("missing_groups", "Groups that cannot be decoded", counts.missing),
        ("corrupt_groups", "Groups with a bad unit", counts.corrupt),
        ("badly_placed_groups", "Groups on too few racks", counts.badly_distributed),
        ("pending_deletion_units", "Units to be deleted", counts.pending_deletion),
    ];
    for (name, help, value) in figures {
        out.gauge(name, help, value);
    }
}

/// Names of the classes of [`ClusterStats::margins`].
const SURVIVES: [&str; MARGINS] = ["lost", "0", "1", "2", "3", "4+"];

fn mending(stats: &ClusterStats, out: &mut Metrics) {
    for (survives, margin) in SURVIVES.iter().zip(&stats.margins) {
        let help = "Blocks that wait to be mended, by how many more losses they survive";
        out.gauge_of("waiting_blocks", help, &[("survives", survives)], margin.blocks);
    }
    for (survives, margin) in SURVIVES.iter().zip(&stats.margins) {
        let help = "Groups that wait to be mended, by how many more losses they survive";
        out.gauge_of("waiting_groups", help, &[("survives", survives)], margin.groups);
    }
    let disagreeing = "Blocks and groups whose parts disagree, and which one is wrong is not known";
    let gauges = [
        ("pending_reconstruction", "Blocks and groups being mended", stats.pending_reconstruction),
        ("scheduled_reconstruction", "Those that wait for it", stats.scheduled_reconstruction),
        ("excess_replicas", "Replicas and units too many", stats.excess),
        ("disagreeing_blocks", disagreeing, stats.disagreeing),
    ];
    for (name, help, value) in gauges {
        out.gauge(name, help, value);
    }
    let help = "Replicas and units that have come because they were ordered";
    out.counter("mended_total", help, &[], stats.mended);
}

/// What takes a walk over all blocks.
fn counted(census: &Census, out: &mut Metrics) {
    let help = "When the figures of layouts, directories and users were counted";
    out.gauge("counted_timestamp_seconds", help, census.at_ms as f64 / 1000.0);
    for (layout, share) in &census.shares {
        let help = "Blocks and groups, by how they are kept";
        out.gauge_of("layout_blocks", help, &[("layout", layout)], share.blocks);
    }
    for (layout, share) in &census.shares {
        let help = "Bytes of files, by how they are kept";
        out.gauge_of("layout_data_bytes", help, &[("layout", layout)], share.data_len);
    }
    for (layout, share) in &census.shares {
        let help = "Bytes that these take on DataNodes when all is well";
        out.gauge_of("layout_stored_bytes", help, &[("layout", layout)], share.stored_len);
    }
    for (directory, len) in &census.directories {
        let help = "Bytes of files in the largest directories of the first two levels";
        out.gauge_of("directory_bytes", help, &[("directory", directory)], len);
    }
    for (user, len) in &census.owners {
        let help = "Bytes of files of the users who own most";
        out.gauge_of("user_bytes", help, &[("user", user)], len);
    }
}

fn log_and_store(node: &NameNode, out: &mut Metrics) {
    let work = node.ns.work_counts();
    let counters = [
        ("log_entries_total", "Entries appended to the log", work.entries()),
        ("log_bytes_total", "Bytes appended to the log", work.bytes()),
    ];
    for (name, help, value) in counters {
        out.counter(name, help, &[], value);
    }
    let help = "Time to append entries that came together to the log and to sync it";
    out.durations("log_sync_seconds", help, &[], &work.log.get());
    let help = "Time to write what has changed to the store";
    out.durations("store_checkpoint_seconds", help, &[], &work.checkpoints.get());
    let help = "Changed records in memory that the store does not have";
    out.gauge("store_waiting_records", help, node.ns.waiting_records());
    out.gauge("log_last_entry", "Number of the last entry", node.ns.last_sequence());
}
