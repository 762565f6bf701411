//! Whether this DataNode is of full use, and what is wrong.

use std::path::PathBuf;
use std::time::Duration;

use cairn_net::http::Response;
use cairn_net::monitoring::JSON;
use serde_json::json;

use crate::node::Node;

/// Heartbeats that the NameNode may leave without an answer before this DataNode is not healthy: as long as Hadoop's
/// NameNode takes to call it stale, with the defaults of both.
const MISSED_HEARTBEATS: u32 = 10;

/// Whether this DataNode is of full use.
pub(super) struct Health {
    is_registered: bool,
    /// Since the last answer to a heartbeat; `None` before the first.
    silence: Option<Duration>,
    /// The longest that is well.
    patience: Duration,
    failed: Vec<PathBuf>,
}

impl Health {
    /// How it is now.
    pub(super) fn of(node: &Node) -> Health {
        Health {
            is_registered: node.registration().is_ok(),
            silence: node.since_heartbeat(),
            patience: node.config.heartbeat_interval.saturating_mul(MISSED_HEARTBEATS),
            failed: node.dataset.failed_dirs(),
        }
    }

    /// What is wrong, in words.
    pub(super) fn complaints(&self) -> Vec<String> {
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

    /// The answer to a monitor.
    pub(super) fn page(&self) -> Response {
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
