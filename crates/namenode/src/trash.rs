//! The trash emptier: makes checkpoints of users' trash, and deletes those that are old enough.
//!
//! Checkpoints have the names of clients' `-expunge`: the time, here in UTC. One is deleted when both its name
//! and its modification time are old enough, since its name may be of another time zone.
//!
//! Source: Hadoop 3.5.0 `TrashPolicyDefault`, `NameNode#startTrashEmptier`.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use cairn_namespace::InodeId;
use cairn_namespace::command::Caller;
use cairn_namespace::ops::delete::Delete;
use cairn_namespace::ops::rename::RenameTo;
use cairn_namespace::query::{self, FileStatus};
use cairn_operate::workers::Worker;

use crate::java_text::compact_date;
use crate::node::NameNode;
use crate::refusal::Refusal;
use crate::snapshots::TRASH;

/// What clients move deleted files to.
const CURRENT: &str = "Current";
/// Names read at a time.
const PAGE: usize = 1000;
/// Checkpoints of one second.
const SAME_NAME_MAX: u32 = 1000;

const MINUTE_MS: u64 = 60_000;

/// Empties the trash once in each interval, at round times; not at all without an interval.
pub(crate) async fn empty_trash(node: Arc<NameNode>, worker: Arc<Worker>) {
    let config = &node.config;
    let interval_ms = config.trash_interval_minutes.saturating_mul(MINUTE_MS);
    if interval_ms == 0 {
        return worker.off().await;
    }
    let period_ms = match config.trash_checkpoint_minutes.saturating_mul(MINUTE_MS) {
        0 => interval_ms,
        period_ms => period_ms.min(interval_ms),
    };
    loop {
        let now_ms = node.now().wall_ms;
        let end_ms = (now_ms / period_ms + 1).saturating_mul(period_ms);
        worker.rest(tokio::time::sleep(Duration::from_millis(end_ms - now_ms))).await;
        if let Err(refusal) = node.empty_trash_at(node.now().wall_ms).await {
            tracing::warn!(refusal = %refusal.0, "the trash is not emptied");
            worker.failed(&refusal.0);
        }
    }
}

impl NameNode {
    /// Deletes the checkpoints that are older than `fs.trash.interval` at that time, and makes new ones of what
    /// was thrown away since.
    pub async fn empty_trash_at(&self, now_ms: u64) -> Result<(), Refusal> {
        self.check_safe_mode(|| "Cannot empty the trash".to_string())?;
        let roots = self.trash_roots()?;
        for root in &roots {
            if let Err(refusal) = self.empty_one(root, &roots, now_ms).await {
                tracing::warn!(%root, refusal = %refusal.0, "this trash is not emptied");
            }
        }
        Ok(())
    }

    /// Users' trash: one in each home, one in each encryption zone, out of which nothing can be moved, and one in each
    /// snapshottable directory, if those have their own.
    ///
    /// Source: Hadoop 3.5.0 `DistributedFileSystem#getTrashRoots`.
    fn trash_roots(&self) -> Result<Vec<String>, Refusal> {
        let homes = self.config.homes.trim_end_matches('/');
        let users = self.list(if homes.is_empty() { "/" } else { homes })?;
        let mut roots: Vec<String> =
            users.iter().map(|user| format!("{homes}/{}/{TRASH}", user.inode.name)).collect();
        let (zones, _) = self.ns.read(|store| query::zones(store, InodeId::NONE, usize::MAX))?;
        let mut shared: BTreeSet<String> = zones
            .iter()
            .map(|zone| format!("{}/{TRASH}", zone.path.trim_end_matches('/')))
            .collect();
        if self.config.snapshot_trash_roots {
            shared.extend(self.snapshot_trash_roots()?);
        }
        for trash in shared {
            let users = self.list(&trash)?;
            roots.extend(users.iter().map(|user| format!("{trash}/{}", user.inode.name)));
        }
        Ok(roots)
    }

    async fn empty_one(&self, root: &str, all: &[String], now_ms: u64) -> Result<(), Refusal> {
        let keep_ms = self.config.trash_interval_minutes.saturating_mul(MINUTE_MS);
        let limit_ms = now_ms.saturating_sub(keep_ms);
        let entries = self.list(root)?;
        for entry in &entries {
            let name = &entry.inode.name;
            if name == CURRENT {
                continue;
            }
            let path = format!("{root}/{name}");
            // Of a home that is a zone or is snapshottable.
            if all.contains(&path) {
                continue;
            }
            match is_older(name, limit_ms) {
                None if !self.config.trash_cleans_others => {
                    tracing::warn!(%path, "this is no checkpoint of the trash");
                    continue;
                }
                Some(false) => continue,
                Some(true) if entry.inode.mtime >= limit_ms => continue,
                None | Some(true) => {}
            }
            self.submit_own(Delete { path: path.clone(), recursive: true }).await?;
            tracing::info!(%path, "a checkpoint of the trash is deleted");
        }
        if entries.iter().any(|entry| entry.inode.name == CURRENT) {
            self.make_checkpoint(root, &entries, now_ms).await?;
        }
        Ok(())
    }

    async fn make_checkpoint(
        &self,
        root: &str,
        entries: &[FileStatus],
        now_ms: u64,
    ) -> Result<(), Refusal> {
        let base = stamp(now_ms);
        let names = (0..=SAME_NAME_MAX).map(|attempt| match attempt {
            0 => base.clone(),
            attempt => format!("{base}-{attempt}"),
        });
        let is_free = |name: &String| !entries.iter().any(|entry| entry.inode.name == *name);
        let Some(name) = names.into_iter().find(is_free) else {
            return Err(Refusal::io(format!("Failed to checkpoint trash: {root}/{base}")));
        };
        let (src, dst) = (format!("{root}/{CURRENT}"), format!("{root}/{name}"));
        let rename = RenameTo { src, dst: dst.clone(), overwrite: false, to_trash: false };
        self.submit_own(rename).await?;
        tracing::info!(path = %dst, "a checkpoint of the trash is made");
        Ok(())
    }

    /// All entries of a directory; none if it is not there.
    fn list(&self, path: &str) -> Result<Vec<FileStatus>, Refusal> {
        let mut found: Vec<FileStatus> = Vec::new();
        loop {
            let after = found.last().map_or("", |last| &last.inode.name);
            let (page, more) = self.list_page(path, after)?;
            found.extend(page);
            if !more {
                return Ok(found);
            }
        }
    }

    /// Some of what is in a directory, by name from behind `after`, and whether there is more; nothing if there is no such
    /// directory.
    pub(crate) fn list_page(
        &self,
        path: &str,
        after: &str,
    ) -> Result<(Vec<FileStatus>, bool), Refusal> {
        let page = self.ns.read(|store| {
            query::get_listing(store, &Caller::system(), path, after.as_bytes(), PAGE)
        })?;
        let Some(page) = page else { return Ok((Vec::new(), false)) };
        // A file lists itself, without a name.
        let named = page.entries.into_iter().filter(|entry| !entry.inode.name.is_empty());
        Ok((named.collect(), page.remaining > 0))
    }
}

/// A time as checkpoints are named: two digits each of year, month, day, hour, minute and second.
fn stamp(wall_ms: u64) -> String {
    let digits: String = compact_date(wall_ms).chars().filter(char::is_ascii_digit).collect();
    digits[2..14].to_string()
}

/// Whether the name of a checkpoint is of before that time; `None` if it is no such name. Names of Hadoop 1
/// have no seconds; behind others may be a number.
fn is_older(name: &str, limit_ms: u64) -> Option<bool> {
    let digits = name.bytes().take_while(u8::is_ascii_digit).count();
    let limit = stamp(limit_ms);
    match digits {
        12 => Some(name[..12] < limit[..]),
        10 | 11 => Some(name[..10] < limit[..10]),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_how_old_a_checkpoint_is() {
        let noon = 1_795_262_400_000; // 2026-11-21 12:00:00
        assert_eq!(stamp(noon), "261121120000");
        for (name, older) in [
            ("261121115959", Some(true)),
            ("261121120000", Some(false)),
            ("261121115959-7", Some(true)),
            ("270101000000", Some(false)),
            ("2611211159", Some(true)),
            ("2611211200", Some(false)),
            ("Current", None),
            ("2611", None),
            ("notes", None),
        ] {
            assert_eq!(is_older(name, noon), older, "{name}");
        }
    }
}
