//! The pages for people: how this DataNode is, and what has happened.

use std::sync::atomic::Ordering;

use cairn_net::http::Request;
use cairn_net::page::html::{Facts, Table, Tone, badge, bar, card, count, escape};
use cairn_net::page::text::{bytes, number, percent, span};
use cairn_net::page::{Page, Region, happened, text};
use cairn_operate::workers;

use super::health::Health;
use super::volumes::{VolumeView, host, sum, volumes};
use crate::messages::SOFTWARE_VERSION;
use crate::node::Node;
use crate::slow_io::Step;
use crate::volume::latency::DiskWork;

/// Where the pages are, and their names.
const PLACES: &[(&str, &str)] =
    &[("/", "DataNode"), ("/workers", "Background work"), ("/events", "Events")];
/// Whose events are none of a DataNode's, where a process has a NameNode too.
const OTHERS: [&str; 3] = ["cairn_namenode", "cairn_master", "cairn_client"];

/// The page of a request; `None` if there is none.
pub(super) fn page(node: &Node, request: &Request) -> Option<Page> {
    let (place, title, regions) = match request.path.as_str() {
        "/" | "/index.html" | "/datanode.html" => ("/", "How it is", regions(node)),
        "/workers" => ("/workers", "Background work", workers::regions(&node.workers)),
        "/events" => ("/events", "Events", happened::regions(&OTHERS)),
        _ => return None,
    };
    let server = format!("Cairn DataNode {}:{}", host(node), node.xfer_addr.port());
    Some(Page { title: title.to_string(), server, places: PLACES, place, regions, is_live: true })
}

fn regions(node: &Node) -> Vec<Region> {
    let volumes = volumes(node);
    vec![
        Region { id: "state", html: state(&Health::of(node)) },
        Region { id: "figures", html: figures(node, &volumes) },
        Region { id: "volumes", html: table(&volumes) },
        Region { id: "disks", html: disks(node) },
        Region { id: "about", html: about(node) },
    ]
}

fn state(health: &Health) -> String {
    let complaints = health.complaints();
    match complaints.is_empty() {
        true => format!("<p>{} It is of full use.</p>", badge(Tone::Good, "ok")),
        false => {
            let told = escape(&complaints.join("; "));
            format!("<p>{} {told}</p>", badge(Tone::Bad, "unhealthy"))
        }
    }
}

fn figures(node: &Node, volumes: &[VolumeView]) -> String {
    let (total, m) = (sum(volumes), &node.metrics);
    let full = total.used as f64 * 100.0 / total.capacity.max(1) as f64;
    let label = format!("{} of the capacity is used", percent(total.used, total.capacity.max(1)));
    let space = Facts::default()
        .text("Capacity", &bytes(total.capacity))
        .text("Used otherwise", &bytes(total.non_dfs_used))
        .text("Free for blocks", &bytes(total.remaining))
        .text("Replicas and units", &number(volumes.iter().map(|volume| volume.replicas).sum()));
    let space =
        card("Space", &format!("{} used {}", bytes(total.used), bar(full, &label)), &space.end());
    let traffic = Facts::default()
        .text("Read by clients", &bytes(m.read_by_clients.bytes.get()))
        .text("Read by DataNodes", &bytes(m.read_by_datanodes.bytes.get()))
        .text("Written by clients", &bytes(m.written_by_clients.bytes.get()))
        .text("Written by DataNodes", &bytes(m.written_by_datanodes.bytes.get()))
        .text("Copied to others", &bytes(m.copied_out.bytes.get()));
    let connections = number(node.connections.load(Ordering::Relaxed) as u64);
    let traffic = card("Connections", &connections, &traffic.end());
    let rebuilding = Facts::default()
        .text("Being rebuilt", &number(node.reconstructions.units_in_work() as u64))
        .text("Read for that", &bytes(m.rebuilding.bytes_read.get()))
        .text("Written", &bytes(m.rebuilding.bytes_written.get()))
        .html("Failed", &count(m.rebuilding.failed_tasks.get(), Tone::Warn));
    let units = number(m.rebuilding.units.get());
    let rebuilding = card("Units rebuilt", &units, &rebuilding.end());
    let slow = |step| count(node.dataset.slow_io().count(step), Tone::Warn);
    let upkeep = Facts::default()
        .html("Found bad", &count(m.verified_bad.get(), Tone::Warn))
        .html("Slow writes to disk", &slow(Step::Write))
        .html("Slow syncs", &slow(Step::Sync))
        .html("Slow sends to the next", &slow(Step::Mirror))
        .text("Kept in memory", &number(node.cache.ids().len() as u64));
    let upkeep = card("Replicas checked", &number(m.verified.get()), &upkeep.end());
    format!("<div class=\"cards\">{space}{traffic}{rebuilding}{upkeep}</div>")
}

fn table(volumes: &[VolumeView]) -> String {
    let columns = ["Folder", "Type", "State", "#Used", "#Free", "Fill", "#Replicas"];
    let mut table = Table::new("Volumes", &columns);
    for volume in volumes {
        let usage = &volume.usage;
        let state = match volume.is_failed {
            true => badge(Tone::Bad, "failed"),
            false => badge(Tone::Good, "in use"),
        };
        let label = format!("{} used", percent(usage.used, usage.capacity.max(1)));
        let fill = usage.used as f64 * 100.0 / usage.capacity.max(1) as f64;
        table
            .row()
            .text(&volume.dir)
            .text(volume.storage_type)
            .html(&state)
            .figure(&bytes(usage.used))
            .figure(&bytes(usage.remaining))
            .html(&format!("{} {label}", bar(fill, &label)))
            .figure(&number(volume.replicas));
    }
    table.end("There are none.")
}

/// How long disks take, where that is measured.
fn disks(node: &Node) -> String {
    if !node.dataset.sampling().is_on() {
        return String::new();
    }
    let columns = ["Folder", "#Names", "#Reads", "#Writes", "#Syncs"];
    let mut table = Table::new("Mean times of disks", &columns);
    for volume in node.dataset.volumes().iter() {
        table.row().text(&volume.root().display().to_string());
        for kind in [DiskWork::Metadata, DiskWork::Read, DiskWork::Write, DiskWork::Sync] {
            let mean = volume.mean_latency(kind);
            table.figure(&mean.map_or("–".to_string(), |ms| format!("{ms:.1} ms")));
        }
    }
    table.end("There are none.")
}

fn about(node: &Node) -> String {
    let heard = match node.since_heartbeat() {
        // A time that changes with each look would be sent again each time.
        Some(silence) if silence.as_secs() < 30 => "just now".to_string(),
        Some(silence) => format!("{} ago", span(silence.as_secs() / 10 * 10)),
        None => "never".to_string(),
    };
    let up = node.started.elapsed();
    let facts = Facts::default()
        .text("NameNode", &node.name_nodes.addresses())
        .text("It answered a heartbeat", &heard)
        .text("Started", &format!("{} ago", text::about(up.as_secs())))
        .text("Version", SOFTWARE_VERSION)
        .text("UUID", node.dataset.uuid())
        .text("Block pool", node.dataset.pool_id().unwrap_or("not known yet"));
    let mut out = format!("<h2>This DataNode</h2>{}<p>For programs:", facts.end());
    for path in ["/jmx", "/prom", "/conf", "/health", "/blockScannerReport", "/stacks"] {
        out.push_str(&format!(" <a href=\"{path}\">{path}</a>"));
    }
    out.push_str("</p>");
    out
}
