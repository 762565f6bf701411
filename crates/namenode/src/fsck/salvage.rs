//! `-delete`, and `-move`: what can be read of damaged files, copied to `/lost+found`.

use super::block::View;
use super::check::Check;
use crate::node::NameNode;
use crate::refusal::Refusal;
use cairn_master::Submission;
use cairn_namespace::command::Command;
use cairn_namespace::ops::delete::Delete;
use cairn_namespace::ops::mkdirs::Mkdirs;
use cairn_namespace::query::{self, FileBlocks};
use cairn_namespace::{Caller, Outcome};
use cairn_redundancy::BlockLookup;
use std::ops::Range;

pub use crate::salvager::{Salvage, Salvager};

const LOST_FOUND: &str = "/lost+found";

impl NameNode {
    /// Has a command of a user logged and applied that came by HTTP.
    async fn submit_for(&self, caller: &Caller, command: Command) -> Result<Outcome, Refusal> {
        Ok(self.log(Submission::of(caller.clone(), None, command)).await?)
    }
}

impl Check {
    /// Source: Hadoop 3.5.0 `NamenodeFsck#deleteCorruptedFile`.
    pub(super) async fn delete_damaged(&mut self, path: &str, found: &FileBlocks) {
        match self.try_delete(path, found).await {
            Ok(()) => {
                tracing::info!(path, user = self.caller.user, "fsck has deleted a damaged file")
            }
            Err(refusal) => {
                tracing::error!(path, refusal = %refusal.0, "fsck cannot delete a damaged file");
                self.internal_error = true;
            }
        }
    }

    async fn try_delete(&self, path: &str, found: &FileBlocks) -> Result<(), Refusal> {
        self.node.check_safe_mode(|| format!("Cannot delete {path}"))?;
        let id = found.status.inode.id;
        let now = self.node.ns.read(|store| query::get_inode_info(store, id))?;
        // What a snapshot has stays, and the command says so.
        let in_snapshot = path.split('/').any(|name| name == ".snapshot");
        if !in_snapshot && now.is_none_or(|(now, _)| now != path) {
            // Moved or deleted meanwhile: another file may be there.
            return Ok(());
        }
        let command = Delete { path: path.to_string(), recursive: true };
        self.node.submit_for(&self.caller, command.into()).await?;
        Ok(())
    }

    /// Source: Hadoop 3.5.0 `NamenodeFsck#copyBlocksToLostFound`. Deviation: groups are decoded if
    /// enough units are left, and left out if not; Hadoop can copy no groups.
    pub(super) async fn move_to_lost_found(&mut self, path: &str, found: &FileBlocks) {
        match self.try_move(path, found).await {
            Ok(()) => {}
            Err(reason) => {
                tracing::error!(path, reason, "fsck cannot copy what is left of a damaged file");
                self.internal_error = true;
            }
        }
    }

    async fn try_move(&mut self, path: &str, found: &FileBlocks) -> Result<(), String> {
        let Some(salvager) = self.node.config.salvager.clone() else {
            return Err("this NameNode has no means to read blocks".to_string());
        };
        if !self.has_lost_found().await {
            return Err("failed to initialize lost+found".to_string());
        }
        let target = format!("{LOST_FOUND}{path}");
        let says = |refusal: Refusal| refusal.0.message;
        if self.status(&target)?.is_some() {
            tracing::warn!(path, target, "fsck copies nothing where something is already");
            return Ok(());
        }
        let mode = found.status.inode.mode;
        self.make_folder(&self.caller, &target, mode).await.map_err(says)?;
        let salvage = Salvage {
            namenode: self.node.rpc_addr,
            user: self.node.superuser.clone(),
            source: path.to_string(),
            target,
            blocks: self.readable(found),
        };
        salvager.salvage(salvage).await?;
        tracing::info!(path, "fsck has copied what is left of a damaged file to /lost+found");
        Ok(())
    }

    /// Makes `/lost+found`, once. Returns whether it can be used.
    ///
    /// Source: Hadoop 3.5.0 `NamenodeFsck#lostFoundInit`.
    async fn has_lost_found(&mut self) -> bool {
        if let Some(known) = self.lost_found {
            return known;
        }
        let usable = match self.status(LOST_FOUND) {
            Ok(Some(is_directory)) => is_directory,
            Ok(None) => {
                // As a client of the NameNode's own user makes a folder.
                let owner = self.node.caller_named(self.node.superuser.clone()).await;
                self.make_folder(&owner, LOST_FOUND, 0o755).await.is_ok()
            }
            Err(_) => false,
        };
        self.lost_found = Some(usable);
        usable
    }

    /// Whether something is at `path`, and whether it is a directory.
    fn status(&self, path: &str) -> Result<Option<bool>, String> {
        let status = self.node.ns.read(|store| query::get_file_info(store, &self.caller, path));
        let status = status.map_err(|error| error.to_string())?;
        Ok(status.map(|status| status.inode.is_directory()))
    }

    async fn make_folder(&self, caller: &Caller, path: &str, mode: u16) -> Result<(), Refusal> {
        self.node.check_safe_mode(|| format!("Cannot create directory {path}"))?;
        let command = Mkdirs { path: path.to_string(), mode: mode.into(), create_parent: true };
        self.node.submit_for(caller, command.into()).await?;
        Ok(())
    }

    /// Where blocks are of which something that can be read is left.
    fn readable(&self, found: &FileBlocks) -> Vec<Option<Range<u64>>> {
        let (now, replication_min) = (self.node.now(), self.node.config.min_replication);
        let mut readable = Vec::with_capacity(found.blocks.len());
        for (offset, block) in &found.blocks {
            let options = &self.options;
            let is_left = self.node.with_cluster(|cluster, lookup| {
                cluster.settle(lookup, &[block.id]);
                let view = View { options, cluster, replication_min, now };
                let facts = lookup.block(block.id)?;
                let verdict = view.look(lookup, block.id, &facts).verdict;
                // All bad is not all lost: a report of bad bytes can be wrong.
                let worth = !verdict.is_missing() || (verdict.corrupt && !verdict.striped);
                worth.then_some(())
            });
            readable.push(is_left.map(|()| *offset..offset + block.len));
        }
        readable
    }
}
