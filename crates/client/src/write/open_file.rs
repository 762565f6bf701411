//! The NameNode's side of a file being written: the calls that allocate blocks, change them and end them.

use crate::config::ClientConfig;
use crate::datanode::write_block::Target;
use crate::error::{ClientError, Result};
use crate::lease::Lease;
use crate::packet::Checksums;
use crate::protocol::convert::{self, Located};
use crate::session::Session;
use crate::types::{Backoff, Block, FileStatus};
use cairn_wire::exception::class;
use cairn_wire::proto::hdfs::*;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// First and longest wait while a file's last block is not yet on enough DataNodes.
const COMPLETE_WAITS: (Duration, Duration) = (Duration::from_millis(5), Duration::from_secs(2));

/// Tries to complete a file. Hadoop's five tries wait 400 ms to 6.4 s; these wait as long in sum.
const COMPLETE_FOR: Duration = Duration::from_secs(30);

/// Refuses blocks that no chunks fill, before anything is made or overwritten.
pub(crate) fn check_block_size(path: &str, block_size: u64, config: &ClientConfig) -> Result<()> {
    if block_size == 0 || !block_size.is_multiple_of(u64::from(config.bytes_per_checksum)) {
        return Err(ClientError::Argument(format!("{path}: a block size of {block_size} bytes")));
    }
    Ok(())
}

/// The NameNode's side of a file being written.
pub(crate) struct OpenFile {
    pub session: Arc<Session>,
    pub path: String,
    pub status: FileStatus,
    /// Bytes of a packet's data, whole chunks.
    pub packet_len: usize,
    pub checksums: Checksums,
    excluded: Vec<(Target, Instant)>,
    _lease: Arc<Lease>,
}

impl OpenFile {
    pub(super) fn new(
        session: Arc<Session>,
        path: String,
        status: FileStatus,
        lease: Arc<Lease>,
    ) -> Result<OpenFile> {
        let config = &session.config;
        let chunk_len = config.bytes_per_checksum as usize;
        let packet_len = config.packet_len as usize / chunk_len * chunk_len;
        let checksums = Checksums { kind: config.checksum, chunk_len };
        check_block_size(&path, status.block_size, config)?;
        let excluded = Vec::new();
        Ok(OpenFile { session, path, status, packet_len, checksums, excluded, _lease: lease })
    }

    /// Leaves a DataNode out of the next blocks, for a while.
    pub(crate) fn exclude(&mut self, target: Target) {
        self.excluded.push((target, Instant::now()));
    }

    /// Leaves nobody out any more. False if nobody was.
    pub(crate) fn forget_excluded(&mut self) -> bool {
        !std::mem::take(&mut self.excluded).is_empty()
    }

    /// Allocates the next block or group, after `previous` with its final length. Waits while the
    /// previous one lacks replicas.
    ///
    /// Source: Hadoop 3.5.0 `DFSOutputStream#addBlock`.
    pub(crate) async fn add_block(&mut self, previous: Option<&Block>) -> Result<Located> {
        let config = &self.session.config;
        let expiry = config.excluded_node_expiry;
        self.excluded.retain(|(_, since)| since.elapsed() < expiry);
        let request = AddBlockRequestProto {
            src: self.path.clone(),
            client_name: self.client_name().to_string(),
            previous: previous.map(convert::block_proto),
            exclude_nodes: self.excluded.iter().map(|(target, _)| target.info.clone()).collect(),
            file_id: Some(self.status.file_id),
            favored_nodes: Vec::new(),
            flags: Vec::new(),
        };
        let mut delay = config.add_block_delay;
        let mut quick = Backoff::new(COMPLETE_WAITS.0, config.add_block_delay);
        let started = Instant::now();
        let mut tries_left = config.add_block_retries;
        loop {
            let answer: Result<AddBlockResponseProto> =
                self.session.namenode.call("addBlock", &request).await;
            match answer {
                Ok(response) => return convert::located(response.block),
                Err(error) if !error.is_remote(class::NOT_REPLICATED_YET) => return Err(error),
                // Reports are mostly milliseconds away.
                Err(_) if started.elapsed() < config.add_block_delay => {
                    tokio::time::sleep(quick.step()).await;
                }
                Err(error) if tries_left == 0 => return Err(error),
                Err(_) => {
                    tries_left -= 1;
                    tokio::time::sleep(delay).await;
                    delay *= 2;
                }
            }
        }
    }

    /// Gives up a block that no pipeline could be opened for.
    pub(crate) async fn abandon(&self, block: &Block) -> Result<()> {
        let request = AbandonBlockRequestProto {
            b: convert::block_proto(block),
            src: self.path.clone(),
            holder: self.client_name().to_string(),
            file_id: Some(self.status.file_id),
        };
        let _: AbandonBlockResponseProto =
            self.session.namenode.call("abandonBlock", &request).await?;
        Ok(())
    }

    /// A new generation stamp for a block, with the tokens for it.
    pub(crate) async fn new_stamp(&self, block: &Block) -> Result<Located> {
        let request = UpdateBlockForPipelineRequestProto {
            block: convert::block_proto(block),
            client_name: self.client_name().to_string(),
        };
        let response: UpdateBlockForPipelineResponseProto =
            self.session.namenode.call("updateBlockForPipeline", &request).await?;
        convert::located(response.block)
    }

    /// Tells which DataNodes write the block with its new stamp; of a group one for each unit,
    /// `None` for units that are not written.
    pub(crate) async fn update_pipeline(
        &self,
        old: &Block,
        new: &Block,
        targets: &[Option<&Target>],
    ) -> Result<()> {
        let id = |target: &Option<&Target>| match target {
            Some(target) => target.info.id.clone(),
            None => no_datanode(),
        };
        let storage = |target: &Option<&Target>| {
            target.map(|target| target.storage_id.clone()).unwrap_or_default()
        };
        let request = UpdatePipelineRequestProto {
            client_name: self.client_name().to_string(),
            old_block: convert::block_proto(old),
            new_block: convert::block_proto(new),
            new_nodes: targets.iter().map(id).collect(),
            storage_i_ds: targets.iter().map(storage).collect(),
        };
        let _: UpdatePipelineResponseProto =
            self.session.namenode.call("updatePipeline", &request).await?;
        Ok(())
    }

    /// One more DataNode for a block that `targets` hold, leaving `failed` out. The answer names all
    /// of them; the new one is picked out.
    pub(crate) async fn additional(
        &self,
        block: &Block,
        targets: &[Target],
        failed: &[Target],
    ) -> Result<(Target, Located)> {
        let infos = |targets: &[Target]| targets.iter().map(|t| t.info.clone()).collect();
        let request = GetAdditionalDatanodeRequestProto {
            src: self.path.clone(),
            blk: convert::block_proto(block),
            existings: infos(targets),
            excludes: infos(failed),
            num_additional_nodes: 1,
            client_name: self.client_name().to_string(),
            existing_storage_uuids: targets.iter().map(|t| t.storage_id.clone()).collect(),
            file_id: Some(self.status.file_id),
        };
        let response: GetAdditionalDatanodeResponseProto =
            self.session.namenode.call("getAdditionalDatanode", &request).await?;
        let located = convert::located(response.block)?;
        let known = |new: &Target| targets.iter().any(|old| old.addr.uuid == new.addr.uuid);
        let new = crate::datanode::write_block::targets(&located).into_iter().find(|t| !known(t));
        match new {
            Some(new) => Ok((new, located)),
            None => Err(ClientError::Pipeline {
                block: block.to_string(),
                reason: "no DataNode could be added".to_string(),
            }),
        }
    }

    /// Has the NameNode keep the blocks allocated so far, and the last one's length if given.
    ///
    /// Source: Hadoop 3.5.0 `DFSOutputStream#flushOrSync`.
    pub(crate) async fn fsync(&self, block_len: Option<u64>) -> Result<()> {
        let request = FsyncRequestProto {
            src: self.path.clone(),
            client: self.client_name().to_string(),
            last_block_length: Some(block_len.map_or(-1, |len| len as i64)),
            file_id: Some(self.status.file_id),
        };
        let _: FsyncResponseProto = self.session.namenode.call("fsync", &request).await?;
        Ok(())
    }

    /// Ends the file, waiting until its last block is on enough DataNodes.
    ///
    /// Source: Hadoop 3.5.0 `DFSOutputStream#completeFile`.
    pub(crate) async fn complete(&self, last: Option<&Block>) -> Result<()> {
        let request = CompleteRequestProto {
            src: self.path.clone(),
            client_name: self.client_name().to_string(),
            last: last.map(convert::block_proto),
            file_id: Some(self.status.file_id),
        };
        let started = Instant::now();
        let mut backoff = Backoff::new(COMPLETE_WAITS.0, COMPLETE_WAITS.1);
        loop {
            let response: CompleteResponseProto =
                self.session.namenode.call("complete", &request).await?;
            if response.result {
                return Ok(());
            }
            if started.elapsed() > COMPLETE_FOR {
                return Err(ClientError::NotCompleted { path: self.path.clone() });
            }
            tokio::time::sleep(backoff.step()).await;
        }
    }

    pub(crate) fn client_name(&self) -> &str {
        &self.session.client_name
    }
}

/// A block, and its pool beside it.
pub(crate) fn bare(block: &Block) -> cairn_writer::Block {
    cairn_writer::Block { id: block.id, stamp: block.stamp, len: block.len }
}

pub(crate) fn in_pool(pool: &str, block: cairn_writer::Block) -> Block {
    let cairn_writer::Block { id, stamp, len } = block;
    Block { pool: pool.to_string(), id, stamp, len }
}

/// How Hadoop names a place that is not used.
///
/// Source: Hadoop 3.5.0 `DatanodeID#EMPTY_DATANODE_ID`.
fn no_datanode() -> DatanodeIDProto {
    DatanodeIDProto {
        ip_addr: "null".to_string(),
        host_name: "null".to_string(),
        datanode_uuid: "null".to_string(),
        xfer_port: 0,
        info_port: 0,
        ipc_port: 0,
        info_secure_port: Some(0),
    }
}

#[cfg(test)]
mod tests {
    /// Hadoop's NameNode fails with a NullPointerException on an empty identity.
    #[test]
    fn an_unused_place_has_hadoops_name() {
        let id = super::no_datanode();
        assert_eq!((id.ip_addr.as_str(), id.datanode_uuid.as_str()), ("null", "null"));
    }
}
