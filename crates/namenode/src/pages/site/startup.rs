//! The page that says how far the start is, and `/startupProgress` for programs.
//!
//! Source: Hadoop 3.5.0 `StartupProgressServlet`, `Phase`, `StepType`.

use cairn_net::http::Response;
use cairn_net::monitoring::JSON;
use cairn_net::page::Region;
use cairn_net::page::html::{Facts, Tone, badge, escape};
use cairn_net::page::text::{about, number, time};
use cairn_redundancy::SafeModeStatus;
use serde_json::{Value, json};

use super::super::seen::Pages;
use super::frame::region;
use crate::clock::wall_ms;
use crate::node::NameNode;

/// How far the start is. Pages are served once log and store are open, so only blocks can be awaited.
struct Start {
    status: SafeModeStatus,
    /// Complete blocks and groups, and those of them that are reported.
    blocks: (u64, u64),
    tip: String,
}

impl Start {
    fn of(node: &NameNode) -> Start {
        let now = node.now();
        let cluster = node.cluster();
        let status = cluster.safe_mode().status();
        let tip = match status {
            SafeModeStatus::Off => String::new(),
            _ => cluster.safe_mode_tip(now),
        };
        Start { status, blocks: cluster.safe_mode().block_counts(), tip }
    }

    fn is_over(&self) -> bool {
        !matches!(self.status, SafeModeStatus::Starting | SafeModeStatus::Extension)
    }

    /// The part of the blocks that is reported.
    fn part(&self) -> f64 {
        match self.blocks {
            _ if self.is_over() => 1.0,
            (0, _) => 1.0,
            (all, found) => found.min(all) as f64 / all as f64,
        }
    }
}

pub(super) fn regions(pages: &Pages) -> Vec<Region> {
    let start = Start::of(&pages.node);
    let (tone, state) = match start.status {
        SafeModeStatus::Off => (Tone::Good, "the NameNode takes changes"),
        SafeModeStatus::Starting => (Tone::Warn, "it waits for blocks or DataNodes"),
        SafeModeStatus::Extension => {
            (Tone::Warn, "enough is there; it waits a little for the rest")
        }
        SafeModeStatus::Manual => (Tone::Warn, "an administrator has turned safe mode on"),
        SafeModeStatus::LowResources => (Tone::Bad, "its disks are nearly full"),
    };
    let (all, found) = start.blocks;
    let started_ms = pages.node.started_ms;
    let age = about(wall_ms().saturating_sub(started_ms) / 1000);
    let thousandths = start.part() * 1000.0;
    let (found_of, all_of) = (number(found), number(all));
    let bar = format!(
        "<progress max=\"1000\" value=\"{thousandths:.0}\" aria-label=\"Found\"></progress>"
    );
    let facts = Facts::default()
        .text("Log and store", "open")
        .text("Started", &format!("{}, {age} ago", time(started_ms)))
        .html("Blocks and groups found", &format!("{bar} {found_of} of {all_of}"));
    let html = format!("<p>{}</p>{}<p>{}</p>", badge(tone, state), facts.end(), escape(&start.tip));
    vec![region("start", html)]
}

/// `/startupProgress`.
pub(in super::super) fn progress(node: &NameNode) -> Response {
    let start = Start::of(node);
    let elapsed = wall_ms().saturating_sub(node.started_ms);
    let phase = |name: &str, desc: &str, status: &str, part: f64, steps: Value| {
        json!({
            "name": name,
            "desc": desc,
            "status": status,
            "percentComplete": part,
            "elapsedTime": 0,
            "steps": steps,
        })
    };
    let whole = |name: &str, desc: &str| phase(name, desc, "COMPLETE", 1.0, json!([]));
    let (status, part) = (if start.is_over() { "COMPLETE" } else { "RUNNING" }, start.part());
    let (all, found) = start.blocks;
    let step = json!({
        "name": "AwaitingReportedBlocks",
        "desc": "awaiting reported blocks",
        "count": found,
        "total": all,
        "percentComplete": part,
        "elapsedTime": elapsed,
    });
    let phases = [
        whole("LoadingFsImage", "Loading fsimage"),
        whole("LoadingEdits", "Loading edits"),
        whole("SavingCheckpoint", "Saving checkpoint"),
        phase("SafeMode", "Safe mode", status, part, json!([step])),
    ];
    let all = (3.0 + f64::from(part as f32)) / 4.0;
    let body = json!({"elapsedTime": elapsed, "percentComplete": all, "phases": phases});
    Response::ok(JSON, body.to_string())
}
