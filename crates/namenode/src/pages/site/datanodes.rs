//! The page of the DataNodes: so many at a time, those first that need somebody.

use std::collections::{BTreeMap, HashMap};

use cairn_net::http::Request;
use cairn_net::page::Region;
use cairn_net::page::html::{Table, Tone, badge, bar, escape, link};
use cairn_net::page::text::{bytes, number, percent, span};
use cairn_redundancy::{AdminState, DataNode, LeavingNode, NodeHandle, StorageState};

use super::super::seen::{Pages, View};
use super::frame::region;

/// DataNodes on a page.
const SHOWN: usize = 100;
/// Volumes that are shown of each.
const VOLUMES: usize = 12;

pub(super) fn regions(pages: &Pages, request: &Request) -> Vec<Region> {
    let view = pages.now();
    let first = request.param("from").and_then(|from| from.parse().ok()).unwrap_or(0);
    let mut order: Vec<&(DataNode, usize)> = view.nodes.iter().collect();
    order.sort_by_cached_key(|(node, _)| (rank(node, &view), node.name()));
    let shown: Vec<&(DataNode, usize)> = order.iter().skip(first).take(SHOWN).copied().collect();
    let leaving = pages.leaving();
    let progress = leaving.iter().map(|(_, told)| (told.node, told)).collect();
    vec![
        region("racks", racks(&view)),
        region("leaving", taken_out(&leaving)),
        region("nodes", nodes(pages, &view, &shown, &progress)),
        region("more", more(first, view.nodes.len())),
    ]
}

/// Those that need somebody are shown first.
fn rank(node: &DataNode, view: &View) -> u8 {
    match node.admin {
        _ if node.twin(view.now).is_some() => 0,
        AdminState::InService if !node.alive => 1,
        AdminState::InService if node.failed_volumes > 0 => 2,
        AdminState::DecommissionInProgress | AdminState::EnteringMaintenance => 3,
        AdminState::InService => 4,
        AdminState::InMaintenance | AdminState::Decommissioned => 5,
    }
}

fn racks(view: &View) -> String {
    let mut racks = BTreeMap::<&str, (u64, u64, u64, u64)>::new();
    for (node, _) in &view.nodes {
        let rack = racks.entry(node.rack.as_str()).or_default();
        rack.0 += u64::from(node.alive);
        rack.1 += u64::from(!node.alive);
        if node.alive {
            rack.2 = rack.2.saturating_add(node.usage.dfs_used);
            rack.3 = rack.3.saturating_add(node.usage.capacity);
        }
    }
    let mut table = Table::new("Racks", &["Rack", "#Live", "#Dead", "#Used", "#Capacity", "Fill"]);
    for (name, (live, dead, used, capacity)) in racks.iter().take(SHOWN) {
        table
            .row()
            .text(name)
            .figure(&number(*live))
            .figure(&number(*dead))
            .figure(&bytes(*used))
            .figure(&bytes(*capacity))
            .html(&fill(*used, *capacity));
    }
    table.end("No DataNode has registered yet.")
}

fn fill(used: u64, capacity: u64) -> String {
    let part = used as f64 * 100.0 / capacity.max(1) as f64;
    let label = format!("{} used", percent(used, capacity.max(1)));
    format!("{} {label}", bar(part, &label))
}

/// How far those have come that are taken out.
fn taken_out(leaving: &[(String, LeavingNode)]) -> String {
    if leaving.is_empty() {
        return String::new();
    }
    let columns = [
        "DataNode",
        "State",
        "Progress",
        "#Left",
        "#Bytes left",
        "#A second",
        "Time left",
        "Held back by",
    ];
    let mut table = Table::new("Being taken out", &columns);
    for (name, told) in leaving.iter().take(SHOWN) {
        let all = told.bytes_done.saturating_add(told.bytes_left);
        let left = match told.seconds_left {
            _ if !told.counted => "being counted".to_string(),
            Some(seconds) => span(seconds),
            None => "nothing moves".to_string(),
        };
        table
            .row()
            .text(name)
            .text(&told.state.to_string())
            .html(&format!(
                "<progress max=\"100\" value=\"{0}\" aria-label=\"{1} done\"></progress> {1}",
                told.bytes_done.saturating_mul(100) / all.max(1),
                percent(told.bytes_done, all)
            ))
            .figure(&number(told.blocks_left))
            .figure(&bytes(told.bytes_left))
            .figure(&bytes(told.bytes_per_second))
            .text(&left)
            .text(&told.held_back.as_ref().map(|why| why.to_string()).unwrap_or_default());
    }
    table.end("")
}

fn nodes(
    pages: &Pages,
    view: &View,
    shown: &[&(DataNode, usize)],
    progress: &HashMap<NodeHandle, &LeavingNode>,
) -> String {
    let volumes = volumes(pages, shown);
    let columns = [
        "DataNode",
        "Rack",
        "State",
        "Last heard of",
        "Volumes",
        "#Used",
        "#Free",
        "Fill",
        "#Blocks",
        "#Transfers",
    ];
    let mut table = Table::new("DataNodes", &columns);
    for ((node, blocks), volumes) in shown.iter().zip(&volumes) {
        let usage = &node.usage;
        let silence = view.now.mono_ms.saturating_sub(node.last_update_mono_ms) / 1000;
        // A time that changes with each look would have all of the table sent again.
        let heard = match (node.alive, node.last_update_mono_ms) {
            (_, 0) => "never".to_string(),
            (true, _) if silence < 30 => "just now".to_string(),
            _ => format!("{} ago", span(silence / 10 * 10)),
        };
        table
            .row()
            .html(&named(node))
            .text(&node.rack)
            .html(&state(node, view, progress))
            .text(&heard)
            .html(volumes)
            .figure(&bytes(usage.dfs_used))
            .figure(&bytes(usage.remaining))
            .html(&fill(usage.dfs_used, usage.capacity))
            .figure(&number(*blocks as u64))
            .figure(&number(u64::from(node.xceivers)));
    }
    table.end("No DataNode has registered yet.")
}

/// Its name, which leads to its own page if it has one.
fn named(node: &DataNode) -> String {
    let address = &node.address;
    match address.info_port {
        0 => escape(&node.name()),
        port if address.ip.contains(':') => {
            link(&format!("http://[{}]:{port}/", address.ip), &node.name())
        }
        port => link(&format!("http://{}:{port}/", address.ip), &node.name()),
    }
}

fn state(node: &DataNode, view: &View, progress: &HashMap<NodeHandle, &LeavingNode>) -> String {
    let mut out = match (node.alive, node.admin) {
        (true, AdminState::InService) => badge(Tone::Good, "live"),
        (false, AdminState::InService) => badge(Tone::Bad, "dead"),
        (true, admin) => badge(Tone::Calm, &admin.to_string()),
        (false, admin) => badge(Tone::Calm, &format!("{admin}, dead")),
    };
    if let Some(told) = progress.get(&node.handle) {
        let all = told.bytes_done.saturating_add(told.bytes_left);
        out.push_str(&format!(" {}", percent(told.bytes_done, all)));
    }
    if node.failed_volumes > 0 {
        out.push_str(&badge(Tone::Bad, &format!("{} volumes failed", node.failed_volumes)));
    }
    if let Some(other) = node.twin(view.now) {
        out.push_str(&badge(Tone::Bad, &format!("two with one UUID, the other at {other}")));
    }
    out
}

/// The volumes of those nodes, as markup.
fn volumes(pages: &Pages, shown: &[&(DataNode, usize)]) -> Vec<String> {
    let cluster = pages.node.cluster();
    let of_node = |(node, _): &&(DataNode, usize)| {
        let storages = node.storages.iter().map(|handle| cluster.storage(*handle));
        let mut out = String::new();
        for storage in storages.take(VOLUMES) {
            let (tone, what) = match storage.state {
                StorageState::Normal => {
                    (Tone::Calm, percent(storage.usage.dfs_used, storage.usage.capacity.max(1)))
                }
                StorageState::ReadOnlyShared => (Tone::Warn, "read only".to_string()),
                StorageState::Failed => (Tone::Bad, "failed".to_string()),
            };
            out.push_str(&badge(tone, &format!("{} {what}", storage.storage_type.name())));
            out.push(' ');
        }
        if node.storages.len() > VOLUMES {
            out.push_str(&format!("and {} more", node.storages.len() - VOLUMES));
        }
        out
    };
    shown.iter().map(of_node).collect()
}

fn more(first: usize, all: usize) -> String {
    let mut out = String::new();
    if first > 0 {
        let from = first.saturating_sub(SHOWN);
        out.push_str(&format!("<a rel=\"prev\" href=\"/datanodes?from={from}\">Those before</a> "));
    }
    if first.saturating_add(SHOWN) < all {
        let from = first + SHOWN;
        out.push_str(&format!(
            "<a rel=\"next\" href=\"/datanodes?from={from}\">The next ones</a> "
        ));
    }
    format!("<p>{out}{} DataNodes in all.</p>", number(all as u64))
}
