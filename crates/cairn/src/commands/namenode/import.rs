//! `cairn namenode import`: a namespace made of Hadoop's fsimage.

use crate::{Settings, config};
use anyhow::Result;
use cairn_namenode::journal::import::{self, Sources};
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;

/// Flags of `cairn namenode import`.
#[derive(Debug, clap::Args)]
pub struct Import {
    /// The image, saved in safe mode with `hdfs dfsadmin -saveNamespace` unless there are --edits; or the folder of Hadoop's NameNode
    #[arg(long, value_name = "FILE")]
    fsimage: PathBuf,
    /// Its VERSION file (default: that beside the image)
    #[arg(long, value_name = "FILE")]
    version_file: Option<PathBuf>,
    /// The folder of Hadoop's edit log, to take over what was done since the image: one of its NameNode, or of a JournalNode
    #[arg(long, value_name = "DIR")]
    edits: Option<PathBuf>,
    /// An empty or missing folder for the namespace (default: dfs.namenode.name.dir)
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
}

impl Import {
    /// Makes the namespace, or nothing.
    pub async fn run(self, settings: &Settings) -> Result<ExitCode> {
        let node = config::namenode::read(&settings.configuration()?)?;
        let dir = self.data.unwrap_or(node.name_dir);
        let (version, edits, made) = (self.version_file, self.edits, dir.clone());
        let sources = Sources { image: self.fsimage, version, edits };
        let import = move || import::import(&sources, &made, node.store_cache_len);
        let done = tokio::task::spawn_blocking(import).await??;
        let counts = done.counts;
        if settings.json {
            crate::say!(
                "{}",
                json!({"data": dir.display().to_string(), "block_pool": done.identity.block_pool_id,
                       "transaction": done.transaction, "files": counts.files,
                       "directories": counts.directories, "blocks": counts.blocks,
                       "files_open": counts.open, "snapshots": counts.snapshots,
                       "left_out": done.left_out})
            );
            return Ok(ExitCode::SUCCESS);
        }
        crate::say!(
            "{} is {} as after transaction {}: {} files, {} directories, {} blocks and groups, {} files open, {} snapshots",
            dir.display(),
            done.identity.block_pool_id,
            done.transaction,
            counts.files,
            counts.directories,
            counts.blocks,
            counts.open,
            counts.snapshots
        );
        done.left_out.iter().for_each(|what| crate::say!("left out: {what}"));
        crate::say!(
            "Start the NameNode on it, then the DataNodes on their disks. It has no replica deleted until `cairn admin restored --accept`."
        );
        Ok(ExitCode::SUCCESS)
    }
}
