//! What all pages for people have alike.

use cairn_net::page::{Page, Region};

use super::super::seen::Pages;
use super::asked::PATH;

/// Where the pages are, and their names.
pub(super) const PLACES: &[(&str, &str)] = &[
    ("/", "Overview"),
    ("/datanodes", "DataNodes"),
    ("/coding", "Erasure coding"),
    (PATH, "Files"),
    ("/snapshots", "Snapshots"),
    ("/slow", "Slow nodes and disks"),
    ("/startup", "Start"),
    ("/workers", "Background work"),
    ("/events", "Events"),
];

/// A page with those regions.
pub(super) fn of(
    pages: &Pages,
    path: &str,
    title: String,
    regions: Vec<Region>,
    is_live: bool,
) -> Page {
    let place = PLACES.iter().map(|(place, _)| *place).find(|place| *place == path).unwrap_or("/");
    let server = format!("Cairn NameNode {}", pages.node.rpc_addr);
    Page { title, server, places: PLACES, place, regions, is_live }
}

/// A part of a page.
pub(super) fn region(id: &'static str, html: String) -> Region {
    Region { id, html }
}
