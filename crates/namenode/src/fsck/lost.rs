//! `-list-corruptfileblocks`: blocks of which nothing good is left, a page at a time.

use super::{Check, Stop};
use crate::protocol::client::is_below;
use cairn_namespace::query;
use cairn_redundancy::queue::Priority;
use cairn_stripe::{BlockId, Redundancy};
use serde_json::json;

/// Blocks of one page. Source: Hadoop 3.5.0 `dfs.corruptfilesreturned.max`.
const PAGE: usize = 500;

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
            for id in lost {
                if rows.len() >= PAGE {
                    break;
                }
                seen += 1;
                let Some(info) = query::get_block(store, id)? else { continue };
                let Some((file, _)) = query::get_inode_info(store, info.block.file)? else {
                    continue;
                };
                if is_below(&file, path) {
                    let policy = match info.redundancy {
                        Redundancy::Replicated(copies) => copies.to_string(),
                        Redundancy::Striped(policy) => policy.name,
                    };
                    rows.push((format!("blk_{}", id.0), policy, file));
                }
            }
            Ok(())
        })?;
        self.out.print(&format!("Cookie:\t{seen}\n"));
        for (block, policy, file) in &rows {
            self.out.print(&format!("{block}\t{policy}\t{file}\n"));
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
