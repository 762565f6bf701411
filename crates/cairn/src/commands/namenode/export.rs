//! `cairn namenode export`: Hadoop's fsimage made of a namespace.

use crate::{Settings, config};
use anyhow::Result;
use cairn_namenode::journal::export::{self, Target};
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;

/// Flags of `cairn namenode export`.
#[derive(Debug, clap::Args)]
pub struct Export {
    /// The image to write; its MD5 goes beside it
    #[arg(long, value_name = "FILE", required_unless_present = "folder")]
    fsimage: Option<PathBuf>,
    /// An empty or missing folder that Hadoop's NameNode is to start on: the image, with VERSION and what else belongs to it
    #[arg(long, value_name = "DIR", conflicts_with = "fsimage")]
    folder: Option<PathBuf>,
    /// Folder of the log and the store (default: dfs.namenode.name.dir)
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
}

impl Export {
    /// Writes the image, or nothing.
    pub async fn run(self, settings: &Settings) -> Result<ExitCode> {
        let node = config::namenode::read(&settings.configuration()?)?;
        let dir = self.data.unwrap_or(node.name_dir);
        let target = match self.folder {
            Some(folder) => Target::Folder(folder),
            None => Target::File(self.fsimage.unwrap_or_default()),
        };
        let export = move || export::export(&dir, &target, node.store_cache_len);
        let done = tokio::task::spawn_blocking(export).await??;
        let (counts, image) = (done.written.counts, done.image.display().to_string());
        if settings.json {
            crate::say!(
                "{}",
                json!({"image": image, "block_pool": done.identity.block_pool_id,
                       "transaction": done.transaction, "md5": done.written.md5,
                       "files": counts.files, "directories": counts.directories,
                       "blocks": counts.blocks, "files_open": counts.open, "snapshots": counts.snapshots,
                       "changed": done.written.changed, "left_out": done.written.left_out})
            );
            return Ok(ExitCode::SUCCESS);
        }
        crate::say!(
            "{image} is {} as after transaction {}: {} files, {} directories, {} blocks and groups, {} files open",
            done.identity.block_pool_id,
            done.transaction,
            counts.files,
            counts.directories,
            counts.blocks,
            counts.open
        );
        done.written.changed.iter().for_each(|what| crate::say!("changed: {what}"));
        done.written.left_out.iter().for_each(|what| crate::say!("left out: {what}"));
        Ok(ExitCode::SUCCESS)
    }
}
