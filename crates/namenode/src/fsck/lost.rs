//! `-list-corruptfileblocks`: blocks of which nothing good is left, a page at a time.

use super::check::Check;
use super::stop::Stop;
use crate::protocol::client::take_lost;
use cairn_namespace::query;
use cairn_namespace::snapshot::paths::paths_in_snapshots;
use cairn_stripe::Redundancy;
use serde_json::json;

impl Check {
    /// Source: Hadoop 3.5.0 `NamenodeFsck#listCorruptFileBlocks`, `FSNamesystem#listCorruptFileBlocks`.
    pub(super) fn list_corrupt(&mut self, path: &str) -> Result<(), Stop> {
        self.node.require_superuser(&self.caller, "listCorruptFileBlocks")?;
        let cookie = self.options.cookie.as_deref().and_then(|cookie| cookie.parse().ok());
        let mut seen: usize = cookie.unwrap_or(0);
        let (mut rows, mut told) = (Vec::new(), 0);
        while take_lost(&self.node, path, &mut seen, |store, info, file| -> Result<_, Stop> {
            let policy = match info.redundancy {
                Redundancy::Replicated(copies) => copies.to_string(),
                Redundancy::Striped(policy) => policy.name,
            };
            let (block, before) = (format!("blk_{}", info.block.id.0), rows.len());
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
            Ok(told < self.node.config.corrupt_files_page)
        })? {}
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
