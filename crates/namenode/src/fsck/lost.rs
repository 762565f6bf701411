//! `-list-corruptfileblocks`: blocks of which nothing good is left, a page at a time.

use super::{Check, Stop};
use crate::protocol::client::is_below;
use cairn_namespace::query;
use cairn_namespace::snapshot::paths::{path_or_kept, paths_in_snapshots};
use cairn_redundancy::queue::Priority;
use cairn_stripe::{BlockId, Redundancy};
use serde_json::json;

impl Check {
    /// Source: Hadoop 3.5.0 `NamenodeFsck#listCorruptFileBlocks`, `FSNamesystem#listCorruptFileBlocks`.
    pub(super) fn list_corrupt(&mut self, path: &str) -> Result<(), Stop> {
        self.node.require_superuser(&self.caller, "listCorruptFileBlocks")?;
        let cookie = self.options.cookie.as_deref().and_then(|cookie| cookie.parse().ok());
        let mut seen: usize = cookie.unwrap_or(0);
        let lost: Vec<BlockId> = {
            let cluster = self.node.cluster();
            if cluster.safe_mode().is_starting() {
                return Err(Stop::Failed(
                    "Cannot run listCorruptFileBlocks because replication queues have not been \
                     initialized."
                        .to_string(),
                ));
            }
            cluster.queues().level(Priority::Corrupt).skip(seen).collect()
        };
        let mut rows = Vec::new();
        self.node.ns.read(|store| -> Result<(), Stop> {
            let mut told = 0;
            for id in lost {
                if told >= self.node.config.corrupt_files_page {
                    break;
                }
                seen += 1;
                let Some(info) = query::get_block(store, id)? else { continue };
                let Some(file) = path_or_kept(store, info.block.file)? else { continue };
                if !is_below(&file, path) {
                    continue;
                }
                let policy = match info.redundancy {
                    Redundancy::Replicated(copies) => copies.to_string(),
                    Redundancy::Striped(policy) => policy.name,
                };
                let (block, before) = (format!("blk_{}", id.0), rows.len());
                let kept = match self.options.snapshots {
                    true => paths_in_snapshots(store, info.block.file, &file)?,
                    false => Vec::new(),
                };
                if query::get_inode_info(store, info.block.file)?.is_some() {
                    rows.push((block.clone(), Some(policy), file));
                }
                // Hadoop does not tell the policy of what is in a snapshot.
                rows.extend(kept.into_iter().map(|file| (block.clone(), None, file)));
                told += usize::from(rows.len() > before);
            }
            Ok(())
        })?;
        self.out.print(&format!("Cookie:\t{seen}\n"));
        for (block, policy, file) in &rows {
            let words = [Some(block), policy.as_ref(), Some(file)];
            let words: Vec<&str> = words.into_iter().flatten().map(String::as_str).collect();
            self.out.print(&format!("{}\n", words.join("\t")));
            self.out.finding(&json!({"path": file, "block": block, "policy": policy}));
        }
        let count = match rows.len() {
            0 if seen == 0 => "no".to_string(),
            0 => "no more".to_string(),
            count => count.to_string(),
        };
        self.out.print(&format!(
            "\n\nThe filesystem under path '{path}' has {count} CORRUPT files\n\n"
        ));
        self.out.finding(&json!({"path": path, "cookie": seen, "corrupt": rows.len()}));
        Ok(())
    }
}
