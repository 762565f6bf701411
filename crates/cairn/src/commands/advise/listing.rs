//! The files of a running file system, by listing them as any client may.

use anyhow::Result;
use cairn_advise::census::{Asked, Census, FileFacts, Found, Kept, RowId};
use cairn_client::{FileStatus, FileSystem, FileType};
use cairn_stripe::PolicyLayout;
use cairn_stripe::geometry::Geometry;
use std::io::ErrorKind;

/// Lists all below a path.
pub async fn census(fs: &FileSystem, path: &str, asked: Asked) -> Result<Found> {
    let top = fs.require(path).await?;
    let depth_max = asked.depth;
    let mut census = Census::new(asked, &top.path, 0);
    let root = census.root();
    if !top.is_dir() {
        let directory = census.directory(root);
        census.add(directory, &facts(&top));
        return Ok(census.end());
    }
    let mut waiting: Vec<(String, RowId, usize)> = vec![(top.path, root, 0)];
    while let Some((path, row, depth)) = waiting.pop() {
        let directory = census.directory(row);
        let mut listing = fs.list(&path);
        loop {
            let status = match listing.next().await {
                Ok(Some(status)) => status,
                Ok(None) => break,
                // It was deleted meanwhile.
                Err(error) if error.kind() == ErrorKind::NotFound && depth > 0 => break,
                Err(error) => return Err(error.into()),
            };
            match status.file_type {
                FileType::Directory if depth < depth_max => {
                    let row = census.row(row, status.name())?;
                    waiting.push((status.path, row, depth + 1));
                }
                FileType::Directory => waiting.push((status.path, row, depth + 1)),
                FileType::File => census.add(directory, &facts(&status)),
                FileType::Symlink => {}
            }
        }
    }
    Ok(census.end())
}

fn facts(status: &FileStatus) -> FileFacts {
    let kept = match &status.policy {
        None => Kept::Copies(status.replication),
        Some(policy) if policy.layout == PolicyLayout::Contiguous => {
            Kept::Contiguous(policy.schema.k, policy.schema.m)
        }
        Some(policy) => Kept::Striped(Geometry::from(policy)),
    };
    FileFacts {
        len: status.len,
        block_len: status.block_size,
        blocks: status.len.div_ceil(status.block_size.max(1)),
        kept,
        written_ms: status.modification_time_ms,
        read_ms: status.access_time_ms,
        is_open: false,
    }
}
