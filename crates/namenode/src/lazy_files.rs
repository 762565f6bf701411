//! Files that were kept in memory only and are lost with it: those with the policy LAZY_PERSIST of which a block has
//! no good replica are deleted, now and then.
//!
//! Who writes with that policy takes the loss into account, and writes the file again when it is not there.
//!
//! Source: Hadoop 3.5.0 `FSNamesystem.LazyPersistFileScrubber`. Deviation: a block must be lost at two looks in a row.
//! A DataNode that comes back without its memory is known to have lost it before it has told what it had saved.

use std::collections::BTreeSet;
use std::sync::Arc;

use cairn_namespace::ops::delete::Delete;
use cairn_namespace::store::StoreRead;
use cairn_namespace::{InodeId, query};
use cairn_operate::workers::Worker;
use cairn_redundancy::StoragePolicy;
use cairn_redundancy::queue::Priority;
use cairn_stripe::BlockId;

use crate::node::NameNode;

/// Blocks that are looked up in one hold of the store.
const PAGE: usize = 1000;

/// Deletes lost files for as long as the NameNode runs; not at all if the interval is zero.
pub(crate) async fn watch(node: Arc<NameNode>, worker: Arc<Worker>) {
    let interval = node.config.lazy_persist_scrub_interval;
    if interval.is_zero() {
        tracing::warn!(
            "Lazy persist file scrubber is disabled, configured scrub interval is zero."
        );
        return worker.off().await;
    }
    let mut lost = BTreeSet::new();
    loop {
        worker.pass().await;
        lost = match node.holds_work() {
            false => node.delete_lost_lazy_files(&lost).await,
            true => BTreeSet::new(),
        };
        worker.rest(tokio::time::sleep(interval)).await;
    }
}

impl NameNode {
    /// Deletes files with blocks that are lost now and are in `before`. Returns all that are lost now.
    async fn delete_lost_lazy_files(&self, before: &BTreeSet<BlockId>) -> BTreeSet<BlockId> {
        let lost: BTreeSet<BlockId> = self.cluster().queues().level(Priority::Corrupt).collect();
        let still: Vec<BlockId> = lost.intersection(before).copied().collect();
        let mut seen = BTreeSet::new();
        for page in still.chunks(PAGE) {
            let found = self.ns.read(|store| -> cairn_namespace::Result<Vec<LostFile>> {
                let files = page.iter().map(|block| lazy_file(store, *block));
                Ok(files
                    .collect::<cairn_namespace::Result<Vec<_>>>()?
                    .into_iter()
                    .flatten()
                    .collect())
            });
            let files = match found {
                Ok(files) => files,
                Err(error) => {
                    tracing::error!(%error, "cannot look for lost files");
                    break;
                }
            };
            for file in files {
                // A DataNode that has come back meanwhile has it again.
                let is_lost =
                    self.cluster().queues().priority(file.block) == Some(Priority::Corrupt);
                if is_lost && seen.insert(file.id) {
                    self.delete_lost(&file).await;
                }
            }
        }
        lost
    }

    async fn delete_lost(&self, file: &LostFile) {
        let LostFile { id, path, .. } = file;
        tracing::warn!(path, "Removing lazyPersist file {path} with no replicas.");
        // By its number: another file may be at the path by now.
        let delete = Delete { path: format!("/.reserved/.inodes/{}", id.0), recursive: false };
        if let Err(refusal) = self.submit_own(delete).await {
            tracing::warn!(path, refusal = %refusal.0, "a lost file was not deleted");
        }
    }
}

/// A file to be deleted.
struct LostFile {
    id: InodeId,
    path: String,
    block: BlockId,
}

/// The file of a block, if it has the policy LAZY_PERSIST and is not in snapshots only.
fn lazy_file(store: &dyn StoreRead, block: BlockId) -> cairn_namespace::Result<Option<LostFile>> {
    if query::storage_policy_of_block(store, block)? != StoragePolicy::LAZY_PERSIST.id {
        return Ok(None);
    }
    let Some(info) = query::get_block(store, block)? else { return Ok(None) };
    let id = info.block.file;
    let file = query::get_inode_info(store, id)?;
    Ok(file.map(|(path, _)| LostFile { id, path, block }))
}
