//! Converting a striped file: its bytes are written once more as plain blocks, and it gets these in place of its own.

use crate::config::ClientConfig;
use crate::copy::copied;
use crate::error::{ClientError, Result};
use crate::fs::FileSystem;
use crate::fs::groups::converted;
use crate::types::{ChecksumMode, ConvertedFile, CreateOptions, FileChecksum, FileStatus};
use cairn_codec::crc::ChecksumKind;
use cairn_stripe::PolicyLayout;
use cairn_wire::converted::DIRECTORY;
use cairn_wire::proto::hdfs::{SwapBlocksRequestProto, SwapBlocksResponseProto};

/// The storage policy of files of which none is set.
const DEFAULT_STORAGE_POLICY: &str = "HOT";

impl FileSystem {
    /// Has a striped file kept in plain blocks: in contiguous groups of that policy, or as copies. It stays the same file
    /// at the same time, and what it was made of stays a while for those who read it. Nothing changes if its checksum and
    /// that of what was written differ, or if somebody has changed it meanwhile. `told` hears how many bytes more have
    /// been copied. Only for superusers.
    ///
    /// `status` is what was listed of it last.
    pub async fn rewrite(
        &self,
        status: &FileStatus,
        policy: Option<&str>,
        told: &mut (dyn FnMut(u64) + Send),
    ) -> Result<ConvertedFile> {
        let own = format!("/.reserved/.inodes/{}", status.file_id);
        let Some(now) = self.file_info(&own).await? else { return Ok(ConvertedFile::Gone) };
        if !is_striped(&now) {
            return Ok(ConvertedFile::Same);
        }
        let Some(before) = self.checksum(&own, ChecksumMode::CompositeCrc).await? else {
            return Ok(ConvertedFile::Gone);
        };
        let writing = self.summing_like(&before)?;
        writing.mkdirs(DIRECTORY, 0o700).await?;
        let copy = format!("{DIRECTORY}/{}-{}", status.file_id, self.session.client_name);
        let mut reader = self.open_stored(&status.path).await?;
        let options = CreateOptions {
            block_size: Some(status.block_size),
            policy: policy.map(str::to_string),
            should_replicate: policy.is_none(),
            permission: Some(0o600),
            ..CreateOptions::default()
        };
        let writer = writing.create(&copy, &options).await?;
        let done = async {
            let storage = self.storage_policy(&status.path).await?.name;
            if storage != DEFAULT_STORAGE_POLICY {
                self.set_storage_policy(&copy, &storage).await?;
            }
            copied(&mut reader, writer, told).await?;
            self.swap(status, &before, &copy).await
        };
        let swapped = done.await;
        if !matches!(swapped, Ok(ConvertedFile::Done)) {
            self.discard(&copy).await;
        }
        swapped
    }

    /// Deletes a copy that came to nothing. Where the blocks were swapped and the answer was lost, it has those that
    /// readers of the file have found. Who begins again writes another one: an error here is not the one to tell.
    async fn discard(&self, copy: &str) {
        if let Ok(Some(left)) = self.file_info(copy).await
            && !is_striped(&left)
        {
            let _ = self.delete(copy, false).await;
        }
    }

    /// A file system that sums what it writes as a file is summed, so that the checksums can be compared.
    fn summing_like(&self, sum: &FileChecksum) -> Result<FileSystem> {
        let kinds = [ChecksumKind::Crc32, ChecksumKind::Crc32c];
        let kind = kinds.into_iter().find(|kind| sum.algorithm == format!("COMPOSITE-{kind}"));
        match kind {
            Some(kind) if kind != self.config().checksum => {
                FileSystem::new(ClientConfig { checksum: kind, ..self.config().clone() })
            }
            _ => Ok(self.clone()),
        }
    }

    async fn swap(
        &self,
        status: &FileStatus,
        before: &FileChecksum,
        copy: &str,
    ) -> Result<ConvertedFile> {
        let after = self.checksum(copy, ChecksumMode::CompositeCrc).await?;
        if after.as_ref() != Some(before) {
            // The path may lead to another file by now.
            let why = "what was written has another checksum than the file";
            return Err(ClientError::Argument(format!("{}: {why}", status.path)));
        }
        let request = SwapBlocksRequestProto {
            file_id: status.file_id,
            copy_id: self.require(copy).await?.file_id,
            modification_time: status.modification_time_ms,
            length: status.len,
        };
        let response: SwapBlocksResponseProto =
            self.session.namenode.call("swapBlocks", &request).await?;
        let outcome = u8::try_from(response.outcome).unwrap_or(u8::MAX);
        converted(outcome, &mut response.refusal.into_iter())
    }
}

fn is_striped(file: &FileStatus) -> bool {
    file.policy.as_ref().is_some_and(|policy| policy.layout == PolicyLayout::Striped)
}
