//! Copying a file, also from one file system to another.

use crate::error::{ClientError, Result};
use crate::fs::FileSystem;
use crate::protocol::convert::LocatedFile;
use crate::read::FileReader;
use crate::types::{CreateOptions, FileStatus};
use crate::write::FileWriter;
use cairn_stripe::BlockId;

/// Below it are a folder's snapshots.
const SNAPSHOTS: &str = ".snapshot";

/// Writes all that is to be read and closes what was written; `told` hears how many bytes more have been taken.
pub(crate) async fn copied(
    reader: &mut FileReader,
    mut writer: FileWriter,
    told: &mut (dyn FnMut(u64) + Send),
) -> Result<()> {
    while let Some(chunk) = reader.next_chunk().await? {
        writer.write(&chunk).await?;
        told(chunk.len() as u64);
    }
    writer.close().await
}

impl FileSystem {
    /// Copies the bytes of a file to `target` on `to`, and deletes the half of it that a failure leaves.
    /// Refuses to copy a file to itself, by whatever names.
    pub async fn copy_file(
        &self,
        path: &str,
        to: &FileSystem,
        target: &str,
        options: &CreateOptions,
    ) -> Result<()> {
        if self.is_same_file(path, to, target).await? {
            return Err(ClientError::Argument(format!("Cannot copy {path} to itself: {target}")));
        }
        let mut reader = self.open(path).await?;
        let writer = match to.create(target, options).await {
            Err(
                error @ (ClientError::Key { .. }
                | ClientError::UnsupportedEncryption { .. }
                | ClientError::NoKeyProvider { .. }),
            ) => {
                // It was made, and stays empty without its key.
                let _ = to.delete(target, false).await;
                return Err(error);
            }
            created => created?,
        };
        let done = copied(&mut reader, writer, &mut |_| {}).await;
        if done.is_err() {
            // Half of a file would be taken for all of it. The first error is the one to tell.
            let _ = to.delete(target, false).await;
        }
        done
    }

    /// Whether to write `target` anew would take the bytes at `path` away. Numbers of files count within one file
    /// system only, but those of blocks come with the name of their pool.
    async fn is_same_file(&self, path: &str, to: &FileSystem, target: &str) -> Result<bool> {
        // What a snapshot has stays.
        if path.split('/').any(|name| name == SNAPSHOTS) {
            return Ok(false);
        }
        let Some(there) = to.file_info(target).await? else { return Ok(false) };
        let here = self.require(path).await?;
        let identity = |s: &FileStatus| (s.file_type, s.file_id, s.modification_time_ms, s.len);
        if there.is_dir() || identity(&here) != identity(&there) {
            return Ok(false);
        }
        let (here, there) =
            (self.session.located(path, 0, 1).await?, to.session.located(target, 0, 1).await?);
        Ok(first_block(&here) == first_block(&there))
    }
}

/// Pool and number.
fn first_block(file: &LocatedFile) -> Option<(&str, BlockId)> {
    let first = file.blocks.first().or(file.last_block.as_ref())?;
    let block = &first.block.block;
    Some((&block.pool, block.id))
}
