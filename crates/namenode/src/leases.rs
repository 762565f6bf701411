//! Leases whose holder is gone: closing their files, with a block recovery where one is needed.
//!
//! The namespace decides; here it gets told what the cluster knows of the last blocks, and its wish
//! for a block recovery goes to the cluster.

use cairn_namespace::ops::lease::{LastBlocks, ReleaseLease};
use cairn_namespace::query::ExpiredLease;
use cairn_namespace::{Block, Caller, InodeId, Outcome, lease, query, settings};
use cairn_redundancy::{BlockLookup, Cluster};

use crate::clock::wall_ms;
use crate::lookup::Lookup;
use crate::node::NameNode;

/// Files of expired holders that are looked up at a time.
const PAGE: usize = 256;

impl NameNode {
    /// What the cluster knows of the last two blocks of a file; nothing if there is none.
    pub(crate) fn last_blocks(&self, file: Option<InodeId>) -> LastBlocks {
        self.with_cluster(|cluster, lookup| {
            file.map_or_else(LastBlocks::default, |file| last_blocks_of(cluster, lookup, file))
        })
    }

    /// Acts on the outcome of `RecoverLease` or `ReleaseLease`. Returns whether the file is closed.
    pub(crate) fn begin_recovery(&self, outcome: &Outcome) -> bool {
        self.settle(outcome);
        let Outcome::Recovery { closed, work, .. } = outcome else { return false };
        if let Some(work) = work {
            let now = self.now();
            self.with_cluster(|cluster, lookup| {
                let id = work.block.id;
                let Some(facts) = lookup.block(id) else { return };
                if let Some(source) = work.block.copy_source() {
                    cluster.block_copied(id, work.recovery_gs, source);
                }
                if !cluster.start_block_recovery(id, &facts, work.recovery_gs, now) {
                    tracing::warn!(block = %id, "no DataNode is there to recover the block");
                }
            });
        }
        *closed
    }

    /// Begins to close the file at `path` if its holder has been silent beyond the soft limit.
    pub(crate) async fn recover_expired(&self, path: &str) {
        let silent = self.ns.read(|store| -> cairn_namespace::Result<Option<InodeId>> {
            let status = query::get_file_info(store, &Caller::system(), path)?;
            let Some(inode) = status.map(|status| status.inode) else { return Ok(None) };
            let Some(writer) = inode.file().and_then(|file| file.writer.as_ref()) else {
                return Ok(None);
            };
            let settings = settings::get(store)?;
            let silent = lease::is_soft_expired(store, &settings, &writer.holder, wall_ms())?;
            Ok(silent.then_some(inode.id))
        });
        match silent {
            Ok(Some(file)) => self.release(file).await,
            Ok(None) => {}
            Err(error) => tracing::error!(%error, path, "cannot look at a lease"),
        }
    }

    /// Closes files of holders beyond the hard limit, or begins the recovery that must come first.
    /// Returns how many files it looked at.
    ///
    /// Source: Hadoop 3.5.0 `LeaseManager#checkLeases`.
    pub(crate) async fn check_leases(&self) -> usize {
        if self.safe_mode_tip().is_some() {
            return 0;
        }
        let mut looked_at = 0;
        let mut last: Option<ExpiredLease> = None;
        loop {
            // One that cannot be released stays where it is, so the next page begins behind it.
            let page =
                self.ns.read(|store| query::expired_leases(store, wall_ms(), last.as_ref(), PAGE));
            let page = match page {
                Ok(page) => page,
                Err(error) => {
                    tracing::error!(%error, "cannot look for expired leases");
                    return looked_at;
                }
            };
            let is_last = page.len() < PAGE;
            for lease in page {
                if last.as_ref().is_none_or(|last| last.holder != lease.holder) {
                    tracing::info!(holder = %lease.holder, "lease has expired");
                }
                self.release(lease.file).await;
                looked_at += 1;
                last = Some(lease);
            }
            if is_last {
                return looked_at;
            }
        }
    }

    async fn release(&self, file: InodeId) {
        let replicas = self.last_blocks(Some(file));
        let open = self.incomplete_blocks(file);
        match self.submit_own(ReleaseLease { file, replicas }).await {
            Ok(outcome) => {
                let closed = self.begin_recovery(&outcome);
                self.note_completed(&open);
                tracing::info!(%file, closed, "lease recovery");
            }
            Err(refusal) => tracing::info!(%file, refusal = %refusal.0, "lease not released"),
        }
    }
}

fn last_blocks_of(cluster: &Cluster, lookup: &Lookup<'_>, file: InodeId) -> LastBlocks {
    let open = query::incomplete_blocks(lookup.store, file).unwrap_or_default();
    let reached = |block: &Block| {
        lookup.block(block.id).is_some_and(|facts| cluster.min_reached(block.id, &facts))
    };
    let last = query::last_block(lookup.store, file).unwrap_or_default().map(|(_, block)| block);
    let before_last = open.len().checked_sub(2).map(|index| &open[index]);
    LastBlocks {
        penultimate_min_replicated: before_last.is_none_or(reached),
        last_min_replicated: last.as_ref().is_some_and(reached),
        last_has_locations: last.as_ref().is_some_and(|last| {
            let facts = lookup.block(last.id);
            facts.is_some_and(|facts| cluster.has_recoverable_places(last.id, &facts))
        }),
        seen: Some(last.map(|last| (last.id, last.gs))),
    }
}
