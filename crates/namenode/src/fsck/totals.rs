//! Sums over all files of a kind, and how Hadoop shows them.

use crate::java_text::java_float;
use cairn_redundancy::Verdict;
use serde_json::{Value, json};
use std::fmt::Write as _;

/// Sums over replicated or striped files. Blocks stand for groups, replicas for internal blocks.
///
/// Source: Hadoop 3.5.0 `NamenodeFsck.Result`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Totals {
    pub files: u64,
    pub bytes: u64,
    pub blocks: u64,
    pub open_files: u64,
    pub open_bytes: u64,
    pub open_blocks: u64,
    pub corrupt_files: u64,
    pub missing_blocks: u64,
    pub missing_bytes: u64,
    pub corrupt_blocks: u64,
    pub corrupt_bytes: u64,
    pub below_min: u64,
    pub at_min: u64,
    pub over: u64,
    pub under: u64,
    pub misplaced: u64,
    pub replicas: u64,
    pub expected_replicas: u64,
    pub missing_replicas: u64,
    pub decommissioned: u64,
    pub decommissioning: u64,
    pub entering_maintenance: u64,
    pub in_maintenance: u64,
    pub queued: u64,
}

/// The words that differ between replicated blocks and groups.
struct Words {
    blocks: &'static str,
    below_min: &'static str,
    missing: &'static str,
    corrupt: &'static str,
    at_min: &'static str,
    over: &'static str,
    under: &'static str,
    misplaced: &'static str,
    average: &'static str,
    decommissioned: &'static str,
    decommissioning: &'static str,
}

const REPLICATED: Words = Words {
    blocks: "block",
    below_min: "UNDER MIN REPL'D BLOCKS",
    missing: "MISSING BLOCKS",
    corrupt: "CORRUPT BLOCKS",
    at_min: "Minimally replicated blocks:\t",
    over: "Over-replicated blocks:\t",
    under: "Under-replicated blocks:\t",
    misplaced: "Mis-replicated blocks:\t\t",
    average: "Average block replication",
    decommissioned: "DecommissionedReplicas",
    decommissioning: "DecommissioningReplicas",
};

const STRIPED: Words = Words {
    blocks: "block group",
    below_min: "UNRECOVERABLE BLOCK GROUPS",
    missing: "MISSING BLOCK GROUPS",
    corrupt: "CORRUPT BLOCK GROUPS",
    at_min: "Minimally erasure-coded block groups:\t",
    over: "Over-erasure-coded block groups:\t",
    under: "Under-erasure-coded block groups:\t",
    misplaced: "Unsatisfactory placement block groups:\t",
    average: "Average block group size",
    decommissioned: "Decommissioned internal blocks",
    decommissioning: "Decommissioning internal blocks",
};

impl Totals {
    /// Whether no block is lost or corrupt.
    pub(super) fn is_healthy(&self) -> bool {
        self.missing_blocks == 0 && self.corrupt_blocks == 0
    }

    /// Adds what was found of one block of `len` bytes; placement is counted by the caller.
    ///
    /// Source: Hadoop 3.5.0 `NamenodeFsck#collectBlocksSummary`.
    pub(super) fn add(&mut self, verdict: &Verdict, len: u64) {
        let counts = &verdict.counts;
        self.decommissioned += counts.decommissioned as u64;
        self.decommissioning += counts.decommissioning as u64;
        self.entering_maintenance += counts.entering_maintenance as u64;
        self.in_maintenance += counts.in_maintenance as u64;
        self.replicas += counts.found() as u64;
        self.expected_replicas += verdict.expected as u64;
        self.below_min += u64::from(verdict.is_below_min());
        self.at_min += u64::from(!verdict.is_below_min());
        self.over += u64::from(verdict.surplus() > 0);
        self.under += u64::from(verdict.lacking() > 0);
        self.missing_replicas += verdict.lacking() as u64;
        if verdict.corrupt {
            self.corrupt_blocks += 1;
            self.corrupt_bytes += len;
        } else if verdict.is_missing() {
            self.missing_blocks += 1;
            self.missing_bytes += len;
        }
    }

    /// The section on replicated blocks, without a line's end.
    ///
    /// Source: Hadoop 3.5.0 `NamenodeFsck.ReplicationResult#toString`.
    pub(super) fn replicated_text(&self, replication: u16, min: u16) -> String {
        let mut text = self.head(&REPLICATED, &format!("\n  MINIMAL BLOCK REPLICATION:\t{min}"));
        let _ = write!(text, "\n Default replication factor:\t{replication}");
        self.tail(
            text,
            &REPLICATED,
            "Missing blocks:\t\t",
            "Corrupt blocks:\t\t",
            "Missing replicas:\t\t",
        )
    }

    /// The section on block groups.
    ///
    /// Source: Hadoop 3.5.0 `NamenodeFsck.ErasureCodingResult#toString`.
    pub(super) fn striped_text(&self) -> String {
        let text = self.head(&STRIPED, "");
        let missing = "Missing block groups:\t\t";
        let corrupt = "Corrupt block groups:\t\t";
        self.tail(text, &STRIPED, missing, corrupt, "Missing internal blocks:\t")
    }

    fn head(&self, words: &Words, min: &str) -> String {
        let Totals { bytes, files, blocks, .. } = self;
        let mut text = format!(" Total size:\t{bytes} B");
        if self.open_bytes > 0 {
            let _ = write!(text, " (Total open files size: {} B)", self.open_bytes);
        }
        let _ = write!(text, "\n Total files:\t{files}");
        if self.open_files > 0 {
            let _ = write!(text, " (Files currently being written: {})", self.open_files);
        }
        let _ = write!(text, "\n Total {}s (validated):\t{blocks}", words.blocks);
        if let Some(average) = bytes.checked_div(*blocks) {
            let _ = write!(text, " (avg. {} size {average} B)", words.blocks);
        }
        if self.open_blocks > 0 {
            let what = words.blocks;
            let _ =
                write!(text, " (Total open file {what}s (not validated): {})", self.open_blocks);
        }
        self.damage(&mut text, words, min);
        for (what, count) in [
            (words.at_min, self.at_min),
            (words.over, self.over),
            (words.under, self.under),
            (words.misplaced, self.misplaced),
        ] {
            let _ = write!(text, "\n {what}{count}{}", self.share_of_blocks(count));
        }
        text
    }

    fn damage(&self, text: &mut String, words: &Words, min: &str) {
        const STARS: &str = "\n  ********************************";
        if self.corrupt_files == 0 && self.below_min == 0 {
            return;
        }
        text.push_str(STARS);
        if self.below_min > 0 {
            let (count, share) = (self.below_min, self.share_of_blocks(self.below_min));
            let _ = write!(text, "\n  {}:\t{count}{share}{min}", words.below_min);
        }
        if self.corrupt_files > 0 {
            let _ = write!(text, "\n  CORRUPT FILES:\t{}", self.corrupt_files);
            if self.missing_bytes > 0 {
                let (count, bytes) = (self.missing_blocks, self.missing_bytes);
                let _ =
                    write!(text, "\n  {}:\t{count}\n  MISSING SIZE:\t\t{bytes} B", words.missing);
            }
            if self.corrupt_blocks > 0 {
                let (count, bytes) = (self.corrupt_blocks, self.corrupt_bytes);
                let _ =
                    write!(text, "\n  {}: \t{count}\n  CORRUPT SIZE:\t\t{bytes} B", words.corrupt);
            }
        }
        text.push_str(STARS);
    }

    fn tail(
        &self,
        mut text: String,
        words: &Words,
        missing: &str,
        corrupt: &str,
        lacking: &str,
    ) -> String {
        let average =
            if self.blocks == 0 { 0.0 } else { self.replicas as f32 / self.blocks as f32 };
        let _ = write!(
            text,
            "\n {}:\t{}\n {missing}{}\n {corrupt}{}\n {lacking}{}",
            words.average,
            java_float(average),
            self.missing_blocks,
            self.corrupt_blocks,
            self.missing_replicas,
        );
        if self.replicas > 0 {
            text.push_str(&percent(self.missing_replicas, self.expected_replicas));
        }
        for (what, count) in [
            (words.decommissioned, self.decommissioned),
            (words.decommissioning, self.decommissioning),
            ("EnteringMaintenanceReplicas", self.entering_maintenance),
            ("InMaintenanceReplicas", self.in_maintenance),
        ] {
            if count > 0 {
                let _ = write!(text, "\n {what}:\t{count}");
            }
        }
        let _ = write!(text, "\n Blocks queued for replication:\t{}", self.queued);
        text
    }

    fn share_of_blocks(&self, count: u64) -> String {
        if self.blocks == 0 { String::new() } else { percent(count, self.blocks) }
    }

    /// The same for programs.
    pub(super) fn as_json(&self) -> Value {
        json!({
            "files": self.files,
            "bytes": self.bytes,
            "blocks": self.blocks,
            "open_files": self.open_files,
            "open_bytes": self.open_bytes,
            "open_blocks": self.open_blocks,
            "corrupt_files": self.corrupt_files,
            "missing": self.missing_blocks,
            "missing_bytes": self.missing_bytes,
            "corrupt": self.corrupt_blocks,
            "corrupt_bytes": self.corrupt_bytes,
            "below_minimum": self.below_min,
            "over": self.over,
            "under": self.under,
            "misplaced": self.misplaced,
            "replicas": self.replicas,
            "expected_replicas": self.expected_replicas,
            "missing_replicas": self.missing_replicas,
            "decommissioned": self.decommissioned,
            "decommissioning": self.decommissioning,
            "entering_maintenance": self.entering_maintenance,
            "in_maintenance": self.in_maintenance,
            "queued_for_replication": self.queued,
        })
    }
}

fn percent(part: u64, whole: u64) -> String {
    format!(" ({} %)", java_float((part * 100) as f32 / whole as f32))
}
