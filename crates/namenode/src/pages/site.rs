//! The pages for people: what there is, and who makes which.
//!
//! All are made from what is looked at once for everybody who looks within a second ([`Pages::now`]); none walks over
//! blocks. The file browser asks as the user whose name it was given, by the calls that clients make.

mod actions;
mod asked;
pub(super) mod coding;
pub(super) mod datanodes;
mod file;
mod files;
mod frame;
mod overview;
mod slow;
mod snapshots;
pub(super) mod startup;

pub(crate) use asked::PATH as FILES;
pub(crate) use files::Files;

use cairn_net::http::Request;
use cairn_net::page::{Page, happened};
use cairn_operate::workers;

use super::seen::Pages;
use frame::{PLACES, of};

/// Whose events are none of the NameNode's, where a process has DataNodes too: those have pages of their own.
const OTHERS: [&str; 2] = ["cairn_datanode", "cairn_client"];

/// The page of a request; `None` if there is none, or it is one of files.
pub(super) fn page(pages: &Pages, request: &Request) -> Option<Page> {
    let place = match request.path.as_str() {
        "/index.html" | "/dfshealth.html" => "/",
        path => path,
    };
    let regions = match place {
        "/" => overview::regions(pages),
        "/datanodes" => datanodes::regions(pages, request),
        "/coding" => coding::regions(pages),
        "/snapshots" => snapshots::regions(pages),
        "/slow" => slow::regions(pages),
        "/startup" => startup::regions(pages),
        "/workers" => workers::regions(&pages.node.workers),
        "/events" => happened::regions(&OTHERS),
        _ => return None,
    };
    let is_live = place != "/snapshots";
    let title = PLACES.iter().find(|(path, _)| *path == place).map_or("", |(_, name)| *name);
    Some(of(pages, place, title.to_string(), regions, is_live))
}
