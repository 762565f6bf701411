//! Which layout a row should have, why, and by which command.

use crate::audit::Use;
use crate::census::{Row, SNAPSHOTS};
use crate::durability::Failures;
use crate::layout::Layout;
use cairn_stripe::{Policy, PolicyId};

/// What there is to choose from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Choice {
    /// DataNodes: a group takes one for each unit, and one more so that a lost one can be made anew elsewhere.
    pub nodes: usize,
    /// Whether Cairn's own layouts may be advised: contiguous groups, and cells of 64 KiB.
    pub own_layouts: bool,
    /// The part of its bytes on disk that a row has to save.
    pub saving_min: f64,
}

/// What a row should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advice {
    /// The number of the layout; none to leave it as it is.
    pub layout: Option<usize>,
    /// Why, in a few words.
    pub why: Vec<String>,
    /// Commands that do it; none if there is nothing to do.
    pub commands: Vec<String>,
}

/// Years that a group has to last, on average. Of a row that would depend on how much it has.
const YEARS_ENOUGH: f64 = 1e7;

/// The last policy of Hadoop's own. Source: Hadoop 3.5.0 `SystemErasureCodingPolicies`.
const LAST_OF_HADOOPS: PolicyId = PolicyId(5);

/// Directories whose writers sync: their data is lost with a power cut if it is striped. HBase, Accumulo and Kafka's kind.
const LOGS: [&str; 5] = ["WALs", "oldWALs", "wal", "MasterProcWALs", "journal"];

impl Choice {
    /// Judges a row with what the audit log says of it, if there is one.
    pub fn advise(
        &self,
        layouts: &[Layout],
        row: &Row,
        used: Option<&Use>,
        failures: &Failures,
    ) -> Advice {
        let keep = |why: String| Advice { layout: None, why: vec![why], commands: Vec::new() };
        let now = row.tally.now.bytes;
        if row.path == SNAPSHOTS {
            return keep("kept by snapshots alone: their space comes back with them".to_string());
        }
        if row.path.split('/').any(|name| LOGS.contains(&name)) {
            return keep("looks like a write-ahead log, whose writer syncs".to_string());
        }
        let appends = used.is_some_and(|used| used.appends > 0);
        let changes = appends || row.tally.open > 0;
        // As many may be lost as of three copies.
        let is_safe = |number: usize| {
            let layout = &layouts[number];
            layout.may_lose() >= 2 && failures.group_years(layout) >= YEARS_ENOUGH
        };
        let fits = |number: &usize| {
            let layout = &layouts[*number];
            let may_be = match layout {
                Layout::Copies(_) => false,
                Layout::Striped(policy) => !changes && (self.own_layouts || is_hadoops(policy)),
                Layout::Contiguous(_) => self.own_layouts,
            };
            may_be && layout.width() < self.nodes && is_safe(*number)
        };
        let best = (0..layouts.len()).filter(fits).min_by_key(|number| {
            // Of two that take about the same the narrower one.
            let (cost, layout) = (row.tally.then[*number], &layouts[*number]);
            (cost.bytes / (now / 100).max(1), layout.width(), cost.bytes)
        });
        let Some(best) = best else {
            return keep(match changes {
                true => "files are appended to or open, which stripes do not allow".to_string(),
                false => {
                    format!("no policy is safe enough on {} DataNodes", self.nodes)
                }
            });
        };
        let then = row.tally.then[best].bytes;
        let saved = now.saturating_sub(then) as f64 / now.max(1) as f64;
        if saved < self.saving_min {
            let why = match row.tally.short[0] * 2 > row.tally.files {
                true => "files are too short for coding to pay",
                false => "it would save too little",
            };
            return keep(why.to_string());
        }
        let mut why = vec![format!("saves {:.0} % of what it takes", saved * 100.0)];
        if changes {
            why.push("files are appended to or open".to_string());
        }
        if used.is_some_and(|used| used.opens > 20 * row.tally.files) {
            why.push("is read often: measure readers before".to_string());
        }
        Advice { layout: Some(best), why, commands: commands(&row.path, &layouts[best]) }
    }
}

/// Whether every HDFS has a policy from its start.
fn is_hadoops(policy: &Policy) -> bool {
    policy.id <= LAST_OF_HADOOPS
}

/// A path as a shell takes it.
fn quoted(path: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-=+:,@".contains(c);
    match path.chars().all(plain) {
        true => path.to_string(),
        false => format!("'{}'", path.replace('\'', "'\\''")),
    }
}

fn commands(path: &str, layout: &Layout) -> Vec<String> {
    let (path, name) = (quoted(path), layout.name());
    match layout {
        Layout::Copies(copies) => vec![format!("hdfs dfs -setrep {copies} {path}")],
        // A policy is for files to come; those that are there have to be written anew.
        Layout::Striped(_) => vec![
            format!("hdfs ec -enablePolicy -policy {name}"),
            format!("hdfs ec -setPolicy -path {path} -policy {name}"),
            format!(
                "hadoop distcp -Ddfs.checksum.combine.mode=COMPOSITE_CRC -update {path} {path}.striped"
            ),
        ],
        Layout::Contiguous(_) => vec![
            format!("cairn ec -enablePolicy -policy {name}"),
            format!("cairn ec convert --policy {name} {path}"),
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::census::{Asked, Census, FileFacts, Found, Kept};

    const MIB: u64 = 1 << 20;
    const CHOICE: Choice = Choice { nodes: 20, own_layouts: false, saving_min: 0.1 };

    fn found(path: &str, files: u64, len: u64, is_open: bool) -> Found {
        let mut census = Census::new(Asked::new(0), path, 100);
        let directory = census.directory(census.root());
        for _ in 0..files {
            census.add(
                directory,
                &FileFacts {
                    len,
                    block_len: 128 * MIB,
                    blocks: len.div_ceil(128 * MIB),
                    kept: Kept::Copies(3),
                    written_ms: 0,
                    read_ms: 0,
                    is_open,
                },
            );
        }
        census.end()
    }

    fn advised(choice: Choice, found: &Found, used: Option<&Use>) -> (String, Advice) {
        let advice = choice.advise(&found.layouts, &found.rows[0], used, &Failures::default());
        (advice.layout.map_or("-".to_string(), |number| found.layouts[number].name()), advice)
    }

    #[test]
    fn large_files_are_striped_where_there_are_nodes_enough() {
        let large = found("/large", 10, 7680 * MIB, false);
        let (name, advice) = advised(CHOICE, &large, None);
        assert_eq!(name, "RS-10-4-1024k");
        assert_eq!(advice.why, ["saves 53 % of what it takes"]);
        assert_eq!(advice.commands[1], "hdfs ec -setPolicy -path /large -policy RS-10-4-1024k");
        assert_eq!(advised(Choice { nodes: 10, ..CHOICE }, &large, None).0, "RS-6-3-1024k");
        // Nine nodes have no tenth for a unit that is lost.
        assert_eq!(advised(Choice { nodes: 9, ..CHOICE }, &large, None).0, "RS-3-2-1024k");
        let (name, advice) = advised(Choice { nodes: 5, ..CHOICE }, &large, None);
        assert_eq!((name.as_str(), advice.commands.len()), ("-", 0));
    }

    #[test]
    fn what_is_short_appended_to_or_a_log_stays() {
        let (name, advice) = advised(CHOICE, &found("/short", 10, 1000, false), None);
        assert_eq!((name.as_str(), advice.why[0].contains("too short")), ("-", true));
        let large = found("/open", 1, 768 * MIB, true);
        assert_eq!(advised(CHOICE, &large, None).0, "-");
        // Cells of 64 KiB would do, which Hadoop would have to be given first.
        let narrow = found("/narrow", 100, 384 << 10, false);
        assert_eq!(advised(CHOICE, &narrow, None).0, "-");
        let own = Choice { own_layouts: true, ..CHOICE };
        assert_eq!(advised(own, &narrow, None).0, "RS-6-3-64k");
        // However much there is of it.
        let huge = found("/huge", 90, 768_000 * MIB, false);
        assert_eq!(advised(CHOICE, &huge, None).0, "RS-10-4-1024k");
        let appended = Use { appends: 1, ..Use::default() };
        let large = found("/appended", 1, 7680 * MIB, false);
        assert_eq!(advised(CHOICE, &large, Some(&appended)).0, "-");
        let on_cairn = Choice { own_layouts: true, ..CHOICE };
        let (name, advice) = advised(on_cairn, &large, Some(&appended));
        assert_eq!(name, "RS-10-4-contiguous");
        assert!(advice.commands[1].starts_with("cairn ec convert --policy RS-10-4-contiguous"));
        let log = found("/hbase/WALs", 10, 768 * MIB, false);
        assert_eq!(advised(CHOICE, &log, None).0, "-");
    }

    #[test]
    fn paths_are_quoted_for_shells() {
        assert_eq!(quoted("/a/b-c.d=1"), "/a/b-c.d=1");
        assert_eq!(quoted("/it's $x"), "'/it'\\''s $x'");
    }
}
