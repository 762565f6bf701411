//! What a DataNode's HTTP port says: a page for people, `/jmx`, `/conf`, `/prom` and `/health` for monitors, and
//! `/blockScannerReport`.
//!
//! No page holds a lock that readers or writers of blocks want for longer than a look-up.
//!
//! Source: Hadoop 3.5.0 `DatanodeHttpServer`.

mod jmx;
mod prom;
mod volumes;

use crate::node::Node;
use cairn_net::http::{Answer, Request, Response};
use cairn_net::monitoring::{self, JSON, escape};
use serde_json::json;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use volumes::{host, sum, volumes};

const TEXT: &str = "text/plain; charset=utf-8";

/// Heartbeats that the NameNode may leave without an answer before this DataNode is not healthy: as long as Hadoop's
/// NameNode takes to call it stale, with the defaults of both.
const MISSED_HEARTBEATS: u32 = 10;

/// The answer to a request.
pub(crate) fn page(node: &Arc<Node>, request: &Request) -> Answer {
    let response = match request.path.as_str() {
        "/" | "/index.html" | "/datanode.html" => {
            monitoring::html("Cairn DataNode", &status_page(node))
        }
        "/jmx" => jmx::page(node, request),
        "/conf" => monitoring::conf(&node.config.properties),
        "/prom" => prom::page(node),
        "/health" => Health::of(node).page(),
        "/blockScannerReport" => Response::ok(TEXT, node.scanner.report(node)),
        _ => Response::error(404, "no such page"),
    };
    response.into()
}

/// Whether this DataNode is of full use.
struct Health {
    is_registered: bool,
    /// Since the last answer to a heartbeat; `None` before the first.
    silence: Option<Duration>,
    /// The longest that is well.
    patience: Duration,
    failed: Vec<PathBuf>,
}

impl Health {
    fn of(node: &Node) -> Health {
        Health {
            is_registered: node.registration().is_ok(),
            silence: node.since_heartbeat(),
            patience: node.config.heartbeat_interval.saturating_mul(MISSED_HEARTBEATS),
            failed: node.dataset.failed_dirs(),
        }
    }

    /// What is wrong, in words.
    fn complaints(&self) -> Vec<String> {
        let mut complaints = Vec::new();
        if !self.is_registered {
            complaints.push("not registered with the NameNode".to_string());
        } else if let Some(silence) = self.silence.filter(|silence| *silence > self.patience) {
            let seconds = silence.as_secs();
            complaints.push(format!("no answer of the NameNode to heartbeats for {seconds} s"));
        }
        if !self.failed.is_empty() {
            let dirs: Vec<String> = self.failed.iter().map(|d| d.display().to_string()).collect();
            complaints.push(format!("failed volumes: {}", dirs.join(", ")));
        }
        complaints
    }

    fn page(&self) -> Response {
        let complaints = self.complaints();
        let failed: Vec<String> = self.failed.iter().map(|dir| dir.display().to_string()).collect();
        let (status, word) = match complaints.is_empty() {
            true => (200, "ok"),
            false => (503, "unhealthy"),
        };
        let body = json!({
            "status": word,
            "registered": self.is_registered,
            "failedVolumes": failed,
            "reason": complaints.join("; "),
        });
        Response::new(status, JSON, body.to_string())
    }
}

fn status_page(node: &Node) -> String {
    let (volumes, health, metrics) = (volumes(node), Health::of(node), &node.metrics);
    let total = sum(&volumes);
    let complaints = health.complaints();
    let state = if complaints.is_empty() { "ok".to_string() } else { complaints.join("; ") };
    let silence = match health.silence {
        Some(silence) => format!("{} s ago", silence.as_secs()),
        None => "never".to_string(),
    };
    let rows = [
        ("State", escape(&state)),
        ("NameNode", escape(&node.config.name_node)),
        ("Last answer to a heartbeat", silence),
        ("UUID", escape(node.dataset.uuid())),
        ("Block pool", escape(node.dataset.pool_id().unwrap_or("not known yet"))),
        ("Capacity, bytes", total.capacity.to_string()),
        ("Used, bytes", total.used.to_string()),
        ("Remaining, bytes", total.remaining.to_string()),
        ("Connections", node.connections.load(Ordering::Relaxed).to_string()),
        ("Bytes read by clients", metrics.read_by_clients.bytes.get().to_string()),
        ("Bytes written by clients", metrics.written_by_clients.bytes.get().to_string()),
        ("Units rebuilt", metrics.rebuilding.units.get().to_string()),
    ];
    let name = format!("{}:{}", host(node), node.xfer_addr.port());
    let mut out = format!("<h1>Cairn DataNode {}</h1><table>", escape(&name));
    // Writing to a string does not fail.
    for (name, value) in rows {
        let _ = write!(out, "<tr><th>{name}</th><td>{value}</td></tr>");
    }
    out.push_str("</table><h2>Volumes</h2><table><tr><th>Folder</th><th>Type</th><th>State</th>");
    out.push_str("<th>Used</th><th>Remaining</th><th>Replicas</th></tr>");
    for volume in &volumes {
        let _ = write!(
            out,
            "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
            escape(&volume.dir),
            volume.storage_type,
            if volume.is_failed { "failed" } else { "in use" },
            volume.usage.used,
            volume.usage.remaining,
            volume.replicas,
        );
    }
    out.push_str("</table><p>");
    for path in ["/jmx", "/conf", "/prom", "/health", "/blockScannerReport"] {
        let _ = write!(out, "<a href=\"{path}\">{path}</a> ");
    }
    out.push_str("</p>");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn health_is_full_use_and_says_what_lacks() {
        let well = || Health {
            is_registered: true,
            silence: Some(Duration::from_secs(3)),
            patience: Duration::from_secs(30),
            failed: Vec::new(),
        };
        assert_eq!(well().page().status, 200);
        assert_eq!(Health { silence: None, ..well() }.page().status, 200, "just registered");
        let ill = [
            (Health { is_registered: false, ..well() }, "not registered with the NameNode"),
            (
                Health { silence: Some(Duration::from_secs(31)), ..well() },
                "no answer of the NameNode to heartbeats for 31 s",
            ),
            (
                Health { failed: vec!["/d/1".into(), "/d/2".into()], ..well() },
                "failed volumes: /d/1, /d/2",
            ),
        ];
        for (health, reason) in ill {
            let page = health.page();
            let body: serde_json::Value = serde_json::from_slice(&page.body).unwrap();
            assert_eq!((page.status, body["reason"].as_str()), (503, Some(reason)));
        }
    }
}
