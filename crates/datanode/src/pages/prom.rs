//! Figures for Prometheus.

use super::volumes::{VolumeView, volumes};
use crate::node::Node;
use crate::slow_io::Step;
use crate::volume::latency::DiskWork;
use cairn_net::http::Response;
use cairn_net::monitoring::{Metrics, calls};
use std::sync::atomic::Ordering;

/// `/prom`.
pub(super) fn page(node: &Node) -> Response {
    let mut out = Metrics::of("cairn_datanode");
    state(node, &mut out);
    volume_figures(node, &mut out);
    traffic(node, &mut out);
    operations(node, &mut out);
    upkeep(node, &mut out);
    memory(node, &mut out);
    calls::figures(&node.rpc_metrics, &mut out);
    node.workers.figures(&mut out);
    out.page()
}

/// How it stands now.
fn state(node: &Node, out: &mut Metrics) {
    let is_registered = u64::from(node.registration().is_ok());
    out.gauge("registered", "1 once a NameNode has accepted this DataNode", is_registered);
    if let Some(since) = node.since_heartbeat() {
        let help = "Seconds since the NameNode last answered a heartbeat";
        out.gauge("heartbeat_age_seconds", help, since.as_secs_f64());
    }
    let uptime = node.started.elapsed().as_secs();
    out.gauge("uptime_seconds", "Seconds since the start", uptime);
    let connections = node.connections.load(Ordering::Relaxed);
    out.gauge("connections", "Data connections being served, also idle ones", connections);
    let most = node.tunables.max_connections.load(Ordering::Relaxed);
    out.gauge("connections_max", "Most data connections that are served at once", most);
    let packets = &node.packet_memory;
    let help = "Bytes of memory that long packets of data connections take";
    out.gauge("packet_memory_bytes", help, packets.used());
    out.gauge("packet_memory_limit_bytes", "Most bytes of that", packets.limit());
    let help = "Data connections that wait for memory for a packet";
    out.gauge("packet_memory_waiting", help, packets.waiting() as u64);
    let transfers = node.transfers.load(Ordering::Relaxed);
    let help = "Copies to other DataNodes that run, and what rebuilds count as";
    out.gauge("transfers", help, transfers);
    let units = node.reconstructions.units_in_work();
    out.gauge("rebuilding_units", "Lost units being rebuilt here, or waiting for it", units);
}

fn volume_figures(node: &Node, out: &mut Metrics) {
    let volumes = volumes(node);
    let mut of_each = |name: &str, help: &str, value: fn(&VolumeView) -> u64| {
        for volume in &volumes {
            let labels = [
                ("volume", volume.dir.as_str()),
                ("storage", &volume.storage_id),
                ("type", volume.storage_type),
            ];
            out.gauge_of(name, help, &labels, value(volume));
        }
    };
    of_each("volume_capacity_bytes", "Bytes that a volume can hold", |v| v.usage.capacity);
    of_each("volume_used_bytes", "Bytes of blocks and CRCs on a volume", |v| v.usage.used);
    of_each("volume_remaining_bytes", "Bytes free for blocks on a volume", |v| v.usage.remaining);
    let help = "Replicas on a volume, also those being written";
    of_each("volume_replicas", help, |v| v.replicas);
    of_each("volume_failed", "1 if a volume is out of use", |v| v.is_failed.into());
    let help = "Volumes that have failed since the start";
    out.counter("volume_failures_total", help, &[], node.dataset.volume_failures());
    for volume in node.dataset.volumes().iter() {
        let dir = volume.root().display().to_string();
        for kind in DiskWork::ALL {
            let help = "Time that work on the disk of a volume took";
            let labels = [("volume", dir.as_str()), ("work", kind.name())];
            out.durations("volume_io_seconds", help, &labels, &volume.durations(kind));
        }
    }
}

fn traffic(node: &Node, out: &mut Metrics) {
    let m = &node.metrics;
    let reads = [("client", &m.read_by_clients), ("datanode", &m.read_by_datanodes)];
    let writes = [("client", &m.written_by_clients), ("datanode", &m.written_by_datanodes)];
    for (by, flow) in reads {
        let help = "Bytes of blocks sent to readers";
        out.counter("read_bytes_total", help, &[("by", by)], flow.bytes.get());
    }
    for (by, flow) in reads {
        let help = "Reads of blocks, of a part or all";
        out.counter("read_blocks_total", help, &[("by", by)], flow.blocks.get());
    }
    let ways = [("copy", &m.sent_copied), ("sendfile", &m.sent_by_sendfile)];
    for (way, bytes) in ways {
        let help = "Bytes of blocks sent from files: read first, or within the kernel";
        out.counter("sent_bytes_total", help, &[("way", way)], bytes.get());
    }
    for (by, flow) in writes {
        let help = "Bytes of blocks received and written";
        out.counter("written_bytes_total", help, &[("by", by)], flow.bytes.get());
    }
    for (by, flow) in writes {
        let help = "Replicas completed";
        out.counter("written_blocks_total", help, &[("by", by)], flow.blocks.get());
    }
    let help = "Bytes of copies sent to other DataNodes";
    out.counter("copied_bytes_total", help, &[], m.copied_out.bytes.get());
    let help = "Replicas copied to other DataNodes";
    out.counter("copied_blocks_total", help, &[], m.copied_out.blocks.get());
    for (name, step) in
        [("write", Step::Write), ("sync", Step::Sync), ("mirror", Step::Mirror), ("ack", Step::Ack)]
    {
        let help =
            "Steps of writes that took longer than dfs.datanode.slow.io.warning.threshold.ms";
        let count = node.dataset.slow_io().count(step);
        out.counter("slow_steps_total", help, &[("step", name)], count);
    }
    let help = "Replicas deleted as the NameNode orders";
    out.counter("removed_blocks_total", help, &[], m.removed.get());
}

fn operations(node: &Node, out: &mut Metrics) {
    let m = &node.metrics;
    for (op, timer) in m.ops() {
        let help = "Data transfer operations that have ended";
        out.counter("operations_total", help, &[("op", op)], timer.count());
    }
    for (op, timer) in m.ops() {
        let help = "Data transfer operations that have failed";
        out.counter("operation_errors_total", help, &[("op", op)], timer.errors());
    }
    for (op, timer) in m.ops() {
        let help = "Time that data transfer operations took";
        out.durations("operation_seconds", help, &[("op", op)], &timer.times());
    }
    for (kind, count) in m.failures() {
        let help = "Data transfer operations that have failed, by what has failed";
        out.counter("operation_failures_total", help, &[("kind", kind)], count);
    }
    for (method, timer) in m.calls() {
        let help = "Calls to the NameNode that have ended";
        out.counter("namenode_calls_total", help, &[("method", method)], timer.count());
    }
    for (method, timer) in m.calls() {
        let help = "Calls to the NameNode that have failed";
        out.counter("namenode_call_errors_total", help, &[("method", method)], timer.errors());
    }
    for (method, timer) in m.calls() {
        let help = "Time that calls to the NameNode took";
        out.durations("namenode_call_seconds", help, &[("method", method)], &timer.times());
    }
}

/// What keeps blocks whole.
fn upkeep(node: &Node, out: &mut Metrics) {
    let (m, rebuilding) = (&node.metrics, &node.metrics.rebuilding);
    let figures = [
        ("verified_blocks_total", "Replicas that the block scanner found good", &m.verified),
        ("bad_blocks_total", "Replicas that the block scanner found bad", &m.verified_bad),
        ("rebuild_tasks_total", "Orders to rebuild lost units that have ended", &rebuilding.tasks),
        (
            "rebuild_failed_tasks_total",
            "Orders to rebuild lost units that made no replica",
            &rebuilding.failed_tasks,
        ),
        ("rebuilt_units_total", "Lost units that were rebuilt", &rebuilding.units),
        (
            "rebuild_read_bytes_total",
            "Bytes that lost units were decoded from",
            &rebuilding.bytes_read,
        ),
        ("rebuild_written_bytes_total", "Bytes of units rebuilt", &rebuilding.bytes_written),
    ];
    for (name, help, counter) in figures {
        out.counter(name, help, &[], counter.get());
    }
    let help = "Time that orders to rebuild lost units took";
    out.durations("rebuild_seconds", help, &[], &rebuilding.times.get());
    let encoding = &m.encoding;
    let figures = [
        ("encoded_groups_total", "Contiguous groups that were encoded", &encoding.groups),
        (
            "encode_failed_groups_total",
            "Orders to encode a contiguous group that came to nothing",
            &encoding.failed,
        ),
        (
            "encode_read_bytes_total",
            "Bytes of members that groups were encoded from",
            &encoding.bytes_read,
        ),
        ("encode_written_bytes_total", "Bytes of parities of groups", &encoding.bytes_written),
        (
            "decoded_bytes_total",
            "Bytes that readers got decoded, for no replica of the block was left",
            &m.decoded_bytes,
        ),
    ];
    for (name, help, counter) in figures {
        out.counter(name, help, &[], counter.get());
    }
    let help = "Time that orders to encode a contiguous group took";
    out.durations("encode_seconds", help, &[], &encoding.times.get());
    let help = "Time to decode what is sent at once to a reader, 256 KiB at most";
    out.durations("decode_seconds", help, &[], &m.decodes.get());
}

fn memory(node: &Node, out: &mut Metrics) {
    let (m, ram) = (&node.metrics, node.dataset.ram_disk_stats());
    let gauges = [
        ("memory_limit_bytes", "Most bytes of memory for replicas", node.memory.limit()),
        ("memory_used_bytes", "Bytes of memory that replicas take", node.memory.used()),
        ("cached_blocks", "Replicas kept in memory", node.cache.ids().len() as u64),
        ("ram_disk_bytes", "Bytes of replicas on RAM_DISK volumes", ram.used),
        ("ram_disk_unsaved_blocks", "Replicas in memory that wait to be saved", ram.unsaved),
    ];
    for (name, help, value) in gauges {
        out.gauge(name, help, value);
    }
    let counters = [
        ("cached_blocks_total", "Replicas taken into memory", m.cached.get()),
        ("cache_failures_total", "Replicas not taken into memory", m.failed_to_cache.get()),
        ("ram_disk_saved_blocks_total", "Replicas in memory saved on disks", ram.blocks_saved),
        ("ram_disk_saved_bytes_total", "Bytes of these", ram.bytes_saved),
    ];
    for (name, help, value) in counters {
        out.counter(name, help, &[], value);
    }
}
