//! `cairn ec unpack`: small files that are packed in containers become files with blocks of their own again, with all
//! below a directory. DataNodes write copies of their blocks; until these are there the files are read as before.

use crate::{Settings, config, output};
use anyhow::Result;
use cairn_client::FileSystem;
use serde_json::json;
use std::io::ErrorKind;
use std::process::ExitCode;
use std::time::Duration;

/// Give packed blocks of files replicas of their own again
#[derive(Debug, clap::Parser)]
#[command(name = "cairn ec unpack", disable_version_flag = true)]
pub struct Args {
    /// A file, or a directory with all below it
    path: String,
    /// Only say what is packed
    #[arg(long)]
    dry_run: bool,
    /// Wait until nothing of it is packed any more
    #[arg(long, conflicts_with = "dry_run")]
    wait: bool,
}

/// Files that are named in one call.
const TOGETHER: usize = 1000;
/// How long to rest between two looks at what is left.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Files that were looked at, and what of them is packed.
#[derive(Clone, Copy, Debug, Default)]
struct Found {
    files: u64,
    blocks: u64,
    bytes: u64,
}

/// Has what is packed be unpacked, and says how much that is.
pub async fn run(settings: &Settings, args: Args) -> Result<ExitCode> {
    let fs = FileSystem::connect(config::client::read(&settings.configuration()?)?).await?;
    let found = walk(&fs, &args.path, args.dry_run).await?;
    if args.wait {
        while walk(&fs, &args.path, true).await?.blocks > 0 {
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
    let Found { files, blocks, bytes } = found;
    match settings.json {
        true => crate::say!(
            "{}",
            json!({"path": args.path, "files": files, "packed_blocks": blocks, "packed_bytes": bytes})
        ),
        false => {
            let of = output::size(bytes);
            let what = match (args.dry_run, args.wait) {
                (true, _) => "are packed",
                (false, false) => "are being unpacked",
                (false, true) => "are unpacked",
            };
            crate::say!("{}: {files} files, {blocks} blocks of {of} {what}", args.path);
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn walk(fs: &FileSystem, path: &str, is_trial: bool) -> Result<Found> {
    let mut found = Found::default();
    let top = fs.require(path).await?;
    if !top.is_dir() {
        add(fs, &mut vec![top.file_id], is_trial, &mut found).await?;
        return Ok(found);
    }
    let mut waiting = vec![top.path];
    let mut files = Vec::new();
    while let Some(directory) = waiting.pop() {
        let mut listing = fs.list(&directory);
        loop {
            match listing.next().await {
                Ok(Some(entry)) if entry.is_dir() => waiting.push(entry.path),
                Ok(Some(entry)) => files.push(entry.file_id),
                Ok(None) => break,
                Err(error) if error.kind() == ErrorKind::NotFound && directory != path => break,
                Err(error) => return Err(error.into()),
            }
            if files.len() == TOGETHER {
                add(fs, &mut files, is_trial, &mut found).await?;
            }
        }
    }
    add(fs, &mut files, is_trial, &mut found).await?;
    Ok(found)
}

async fn add(
    fs: &FileSystem,
    files: &mut Vec<u64>,
    is_trial: bool,
    found: &mut Found,
) -> Result<()> {
    if !files.is_empty() {
        let (blocks, bytes) = fs.unpack_files(files, is_trial).await?;
        found.files += files.len() as u64;
        found.blocks += blocks;
        found.bytes += bytes;
        files.clear();
    }
    Ok(())
}
