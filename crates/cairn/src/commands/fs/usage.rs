//! What trees hold: `count`, `du`, `df`.

use super::shell::{Shell, help};
use crate::output::size_or_short;
use anyhow::{Result, bail};
use cairn_client::{ContentSummary, QuotaUsage, StorageType, TypeQuota};
use serde_json::{Value, json};

/// How `count` and `du` sum up and show.
#[derive(Debug, clap::Args)]
struct Sums {
    /// Sizes with units
    #[arg(short = 'h', long)]
    human: bool,
    /// Names above the columns
    #[arg(short = 'v', long)]
    header: bool,
    /// Without what only snapshots hold
    #[arg(short = 'x', long)]
    exclude_snapshots: bool,
}

/// `cairn fs count`.
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true, arg = help())]
pub struct Count {
    /// Quotas and what is left of them, too
    #[arg(short, long)]
    quotas: bool,
    /// Quotas and what is left of them only
    #[arg(short = 'u', long)]
    usage: bool,
    #[command(flatten)]
    sums: Sums,
    /// What only snapshots hold in columns of its own
    #[arg(short = 's', long)]
    snapshots: bool,
    /// The erasure coding policy
    #[arg(short = 'e', long)]
    policy: bool,
    /// With quotas: those of these types of storage, separated by commas; all for each that may have one
    #[arg(short = 't', long, value_name = "TYPES")]
    types: Option<String>,
    /// What to count
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<String>,
}

/// The types that may have a quota, in Hadoop's order.
const QUOTA_TYPES: [StorageType; 5] = [
    StorageType::Ssd,
    StorageType::Disk,
    StorageType::Archive,
    StorageType::Provided,
    StorageType::Nvdimm,
];

impl Count {
    pub async fn run(self, shell: &Shell) -> Result<()> {
        let with_quotas = self.quotas || self.usage;
        let types = match &self.types {
            Some(types) if with_quotas => parse_types(types)?,
            _ => Vec::new(),
        };
        if with_quotas && self.sums.exclude_snapshots {
            if shell.is_hadoop {
                crate::say!("q or u option is given, the -x option is ignored.");
            } else {
                crate::complain!(
                    "cairn: --exclude-snapshots says nothing about quotas and is ignored"
                );
            }
        }
        if self.sums.header && !shell.json {
            crate::say!("{}PATHNAME", self.head(&types));
        }
        for status in shell.find_all(&self.paths).await {
            let counted = async {
                // Quotas by type alone, and quotas without counts, cost the NameNode no walk.
                let usage = match with_quotas && (self.usage || !types.is_empty()) {
                    true => Some(shell.fs.quota_usage(&status.path).await?),
                    false => None,
                };
                let mut summary =
                    match usage.is_none() || self.policy || self.snapshots || shell.json {
                        true => Some(shell.fs.content_summary(&status.path).await?),
                        false => None,
                    };
                if let Some(summary) =
                    summary.as_mut().filter(|_| self.sums.exclude_snapshots && !with_quotas)
                {
                    exclude_snapshots(summary);
                }
                anyhow::Ok((usage, summary))
            };
            let Some((usage, summary)) = shell.keep(counted.await) else { continue };
            if shell.json {
                let summary = summary.unwrap_or_default();
                crate::say!("{}", summary_json(&status.path, &summary));
            } else {
                let row = self.row(&types, usage.as_ref(), summary.as_ref());
                crate::say!("{row}{}", status.path);
            }
        }
        Ok(())
    }

    /// Source: Hadoop 3.5.0 `ContentSummary#getHeader`, `QuotaUsage#getStorageTypeHeader`.
    fn head(&self, types: &[StorageType]) -> String {
        let mut head = String::new();
        let with_quotas = self.quotas || self.usage;
        if !types.is_empty() {
            for kind in types {
                let (quota, left) =
                    (format!("{}_QUOTA", kind.name()), format!("REM_{}_QUOTA", kind.name()));
                head.push_str(&format!("{quota:>14} {left:>18} "));
            }
            return head;
        }
        if with_quotas {
            head.push_str("       QUOTA       REM_QUOTA     SPACE_QUOTA REM_SPACE_QUOTA ");
        }
        if !self.usage {
            head.push_str("   DIR_COUNT   FILE_COUNT       CONTENT_SIZE ");
        }
        if self.policy {
            head.push_str("ERASURECODING_POLICY ");
        }
        if self.snapshots {
            head.push_str(&format!(
                "{:>18} {:>24} {:>24} {:>28} ",
                "SNAPSHOT_LENGTH",
                "SNAPSHOT_FILE_COUNT",
                "SNAPSHOT_DIR_COUNT",
                "SNAPSHOT_SPACE_CONSUMED"
            ));
        }
        head
    }

    /// Source: Hadoop 3.5.0 `ContentSummary#toString`, `QuotaUsage#toString`.
    fn row(
        &self,
        types: &[StorageType],
        usage: Option<&QuotaUsage>,
        summary: Option<&ContentSummary>,
    ) -> String {
        let number = |value: u64| size_or_short(value, self.sums.human);
        let left = |limit: u64, used: u64| match limit.checked_sub(used) {
            Some(left) => number(left),
            None => format!("-{}", number(used - limit)),
        };
        let mut row = String::new();
        if !types.is_empty() {
            let quotas = usage.map(|usage| usage.type_quotas.as_slice()).unwrap_or_default();
            for kind in types {
                let told = quotas.iter().find(|told| told.storage_type == *kind);
                let (quota, rest) = match told {
                    Some(TypeQuota { quota: Some(quota), consumed, .. }) => {
                        (number(*quota), left(*quota, *consumed))
                    }
                    _ => ("none".to_string(), "inf".to_string()),
                };
                row.push_str(&format!("{quota:>14} {rest:>18} "));
            }
            return row;
        }
        if self.quotas || self.usage {
            let (names, name_count, space, consumed) = match (usage, summary) {
                (Some(u), _) => (u.quota, u.name_count, u.space_quota, u.space_consumed),
                (None, Some(s)) => {
                    (s.quota, s.file_count + s.directory_count, s.space_quota, s.space_consumed)
                }
                (None, None) => (None, 0, None, 0),
            };
            let cells = |quota: Option<u64>, used: u64| match quota {
                Some(quota) => (number(quota), left(quota, used)),
                None => ("none".to_string(), "inf".to_string()),
            };
            let (quota, rest) = cells(names, name_count);
            let (space_quota, space_rest) = cells(space, consumed);
            row.push_str(&format!("{quota:>12} {rest:>15} {space_quota:>15} {space_rest:>15} "));
        }
        let Some(s) = summary else { return row };
        if !self.usage {
            let (directories, files) = (number(s.directory_count), number(s.file_count));
            row.push_str(&format!("{directories:>12} {files:>12} {:>18} ", number(s.len)));
        }
        if self.policy {
            let policy = match s.policy_name.as_deref().unwrap_or_default() {
                "Replicated" => "Replicated".to_string(),
                policy => format!("EC:{policy}"),
            };
            row.push_str(&format!("{policy:>20} "));
        }
        if self.snapshots {
            let s = s.snapshot;
            row.push_str(&format!(
                "{:>18} {:>24} {:>24} {:>28} ",
                number(s.len),
                number(s.file_count),
                number(s.directory_count),
                number(s.space_consumed)
            ));
        }
        row
    }
}

fn parse_types(text: &str) -> Result<Vec<StorageType>> {
    if text.is_empty() || text.eq_ignore_ascii_case("all") {
        return Ok(QUOTA_TYPES.to_vec());
    }
    let parse = |name: &str| match StorageType::parse(name.trim()) {
        Some(kind) => Ok(kind),
        None => bail!("{name} is no type of storage"),
    };
    text.split(',').map(parse).collect()
}

/// Takes off what only snapshots hold.
fn exclude_snapshots(summary: &mut ContentSummary) {
    let only = summary.snapshot;
    summary.len = summary.len.saturating_sub(only.len);
    summary.file_count = summary.file_count.saturating_sub(only.file_count);
    summary.directory_count = summary.directory_count.saturating_sub(only.directory_count);
    summary.space_consumed = summary.space_consumed.saturating_sub(only.space_consumed);
}

fn summary_json(path: &str, s: &ContentSummary) -> Value {
    let types = s.type_quotas.iter().map(|quota| {
        json!({"type": quota.storage_type.name(), "quota": quota.quota, "consumed": quota.consumed})
    });
    json!({
        "path": path, "length": s.len, "files": s.file_count, "directories": s.directory_count,
        "space_consumed": s.space_consumed, "quota": s.quota, "space_quota": s.space_quota,
        "type_quotas": types.collect::<Vec<_>>(), "policy": s.policy_name,
        "snapshot": {
            "length": s.snapshot.len, "files": s.snapshot.file_count,
            "directories": s.snapshot.directory_count,
            "space_consumed": s.snapshot.space_consumed,
        },
    })
}

/// `cairn fs du`.
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true, arg = help())]
pub struct Du {
    /// One row for each path, not for each entry of it
    #[arg(short, long)]
    summary: bool,
    #[command(flatten)]
    sums: Sums,
    /// What to measure (default: your folder)
    #[arg(value_name = "PATH")]
    paths: Vec<String>,
}

impl Du {
    pub async fn run(mut self, shell: &Shell) -> Result<()> {
        if self.paths.is_empty() {
            self.paths.push(".".to_string());
        }
        let mut rows = Vec::new();
        for root in shell.find_all(&self.paths).await {
            let entries = match self.summary || !root.is_dir() {
                true => vec![root],
                false => {
                    let listed = shell.fs.list(&root.path).collect().await;
                    shell.keep(listed.map_err(Into::into)).unwrap_or_default()
                }
            };
            for entry in entries {
                let summary = shell.fs.content_summary(&entry.path).await;
                let Some(mut summary) = shell.keep(summary.map_err(Into::into)) else { continue };
                if self.sums.exclude_snapshots {
                    exclude_snapshots(&mut summary);
                }
                if shell.json {
                    crate::say!("{}", summary_json(&entry.path, &summary));
                    continue;
                }
                let size = |bytes: u64| size_or_short(bytes, self.sums.human);
                rows.push([size(summary.len), size(summary.space_consumed), entry.path]);
            }
        }
        if self.sums.header && !shell.json {
            let head = ["SIZE", "DISK_SPACE_CONSUMED_WITH_ALL_REPLICAS", "FULL_PATH_NAME"];
            rows.insert(0, head.map(str::to_string));
        }
        let widths = [0, 1].map(|at| rows.iter().map(|row| row[at].len()).max().unwrap_or(0));
        for [len, consumed, path] in rows {
            crate::say!("{len:<0$}  {consumed:<1$}  {path}", widths[0], widths[1]);
        }
        Ok(())
    }
}

/// `cairn fs df`.
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true, arg = help())]
pub struct Df {
    /// Sizes with units
    #[arg(short = 'h', long)]
    human: bool,
    /// Paths of the file system
    #[arg(value_name = "PATH")]
    paths: Vec<String>,
}

impl Df {
    pub async fn run(self, shell: &Shell) -> Result<()> {
        let count = match self.paths.is_empty() {
            true => 1,
            false => shell.find_all(&self.paths).await.len(),
        };
        if count == 0 {
            return Ok(());
        }
        let stats = shell.fs.stats().await?;
        let name = format!("hdfs://{}", shell.fs.config().namenode);
        if shell.json {
            crate::say!(
                "{}",
                json!({"filesystem": name, "capacity": stats.capacity, "used": stats.used,
                       "remaining": stats.remaining})
            );
            return Ok(());
        }
        let size = |bytes: u64| size_or_short(bytes, self.human);
        let percent = (stats.used * 100).checked_div(stats.capacity).unwrap_or(0);
        let head = ["Filesystem", "Size", "Used", "Available", "Use%"].map(str::to_string);
        let row = [
            name,
            size(stats.capacity),
            size(stats.used),
            size(stats.remaining),
            format!("{percent}%"),
        ];
        let widths: Vec<usize> =
            head.iter().zip(&row).map(|(head, cell)| head.len().max(cell.len())).collect();
        for row in [&head].into_iter().chain(std::iter::repeat_n(&row, count)) {
            let cells = row.iter().zip(&widths).enumerate().map(|(at, (cell, &width))| match at {
                0 => format!("{cell:<width$}"),
                _ => format!("{cell:>width$}"),
            });
            crate::say!("{}", cells.collect::<Vec<_>>().join("  "));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(words: &str) -> Count {
        use clap::Parser;
        #[derive(Parser)]
        struct Whole {
            #[command(flatten)]
            count: Count,
        }
        Whole::parse_from(format!("count {words} /c").split(' ').filter(|word| !word.is_empty()))
            .count
    }

    #[test]
    fn rows_are_hadoops() {
        let summary = ContentSummary {
            len: 3_703_701,
            file_count: 4,
            directory_count: 4,
            quota: Some(20),
            space_consumed: 11_111_103,
            space_quota: Some(1 << 40),
            policy_name: Some(String::new()),
            ..ContentSummary::default()
        };
        for (words, want) in [
            ("", "           4            4            3703701 "),
            (
                "-q",
                "          20              12   1099511627776   1099500516673            4            4            3703701 ",
            ),
            (
                "-q -h",
                "          20              12             1 T           1.0 T            4            4              3.5 M ",
            ),
            ("-e", "           4            4            3703701                  EC: "),
        ] {
            assert_eq!(count(words).row(&[], None, Some(&summary)), want, "{words}");
        }
        let usage = QuotaUsage { quota: Some(3), name_count: 5, ..QuotaUsage::default() };
        let row = count("-u").row(&[], Some(&usage), None);
        assert_eq!(row, "           3              -2            none             inf ");
        let row = count("-u").row(&[StorageType::Disk], Some(&usage), None);
        assert_eq!(row, "          none                inf ");
        assert_eq!(count("-q").head(&[StorageType::Ssd]), "     SSD_QUOTA      REM_SSD_QUOTA ");
    }
}
