//! How far the block scanners have come, as Hadoop's DataNode tells it at `/blockScannerReport`.
//!
//! Source: Hadoop 3.5.0 `BlockScanner.Servlet`, `VolumeScanner#printStats`.

use super::now_ms;
use crate::node::Node;
use crate::node::scans::{Scanner, VolumeScan, millis};
use std::fmt::Write as _;
use std::time::Duration;

/// Hadoop counts whole ones.
const HOUR_MS: u64 = 3_600_000;

impl Scanner {
    /// The whole page.
    pub(crate) fn report(&self, node: &Node) -> String {
        if !self.is_enabled() {
            return "Periodic block scanner is not running. Please check the datanode log if this is unexpected."
                .to_string();
        }
        let mut page = "Block Scanner Statistics\n\n".to_string();
        for scan in self.status() {
            let last = scan.last_block.map(|id| last_block(node, id));
            write_volume(&mut page, &scan, last, self.period(), now_ms());
        }
        page
    }
}

/// `pool:blk_id_stamp`.
fn last_block(node: &Node, id: i64) -> String {
    let replica = node.dataset.get(cairn_stripe::BlockId(id));
    let gs = replica.map_or(0, |replica| replica.gs().0);
    format!("{}:blk_{id}_{gs}", node.dataset.pool_id().unwrap_or_default())
}

fn write_volume(
    page: &mut String,
    scan: &VolumeScan,
    last: Option<String>,
    period: Duration,
    now_ms: u64,
) {
    let (id, dir) = (&scan.storage_id, scan.dir.display());
    let mut lines = vec![
        ("Bytes verified in last hour", scan.bytes_in_last_hour.to_string()),
        ("Blocks scanned in current period", scan.blocks_in_this_scan.to_string()),
        ("Blocks scanned since restart", scan.blocks_scanned.to_string()),
        ("Block pool scans since restart", scan.scans_finished.to_string()),
        ("Block scan errors since restart", scan.bad_blocks.to_string()),
    ];
    let ends_ms = scan.scan_started_ms.saturating_add(millis(period));
    let hours = format!("{}.000", ends_ms.saturating_sub(now_ms) / HOUR_MS);
    if scan.is_at_end {
        lines.push(("Hours until next block pool scan", hours.clone()));
    }
    if scan.scan_started_ms > 0 {
        lines.push(("Hours until possible pool rescan", hours));
    }
    lines.push(("Last block scanned", last.unwrap_or_else(|| "none".to_string())));
    lines.push(("More blocks to scan in period", (!scan.is_at_end).to_string()));
    // Writing to a string does not fail.
    let _ = writeln!(page, "Block scanner information for volume {id} with base path {dir}");
    for (name, value) in lines {
        let _ = writeln!(page, "{name:<34}: {value:>57}");
    }
    page.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_volume_is_told_in_hadoops_words() {
        let scan = VolumeScan {
            dir: "/data/1".into(),
            storage_id: "DS-1".to_string(),
            blocks_scanned: 12,
            bytes_in_last_hour: 4096,
            bad_blocks: 1,
            scans_finished: 2,
            blocks_in_this_scan: 3,
            scan_started_ms: 1000,
            is_at_end: true,
            ..VolumeScan::default()
        };
        let mut page = String::new();
        write_volume(&mut page, &scan, None, Duration::from_secs(504 * 3600), 1000 + HOUR_MS / 2);
        let line = |name: &str, value: &str| format!("{name}: {value:>57}\n");
        let want = [
            "Block scanner information for volume DS-1 with base path /data/1\n".to_string(),
            line("Bytes verified in last hour       ", "4096"),
            line("Blocks scanned in current period  ", "3"),
            line("Blocks scanned since restart      ", "12"),
            line("Block pool scans since restart    ", "2"),
            line("Block scan errors since restart   ", "1"),
            line("Hours until next block pool scan  ", "503.000"),
            line("Hours until possible pool rescan  ", "503.000"),
            line("Last block scanned                ", "none"),
            line("More blocks to scan in period     ", "false"),
            "\n".to_string(),
        ];
        assert_eq!(page, want.concat());
        let mut page = String::new();
        let first = VolumeScan::default();
        write_volume(&mut page, &first, Some("BP:blk_7_1001".into()), Duration::ZERO, 1);
        assert!(
            !page.contains("Hours")
                && page.contains(&line("Last block scanned                ", "BP:blk_7_1001"))
        );
    }
}
