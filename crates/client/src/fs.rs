//! A file system: what programs hold. Cheap to clone; all clones share connections and one lease.

mod admin;
mod attributes;
mod caching;
mod encryption;
pub(crate) mod groups;
mod namespace;
mod operate;
mod snapshots;
mod tokens;

pub use namespace::Listing;
pub(crate) use namespace::Pages;

use crate::config::ClientConfig;
use crate::error::{ClientError, Result};
use crate::protocol::convert;
use crate::read::FileReader;
use crate::session::Session;
use crate::types::{ChecksumMode, CreateOptions, FileChecksum, FileStatus};
use crate::write::FileWriter;
use crate::write::open_file::check_block_size;
use cairn_net::Boxed;
use cairn_wire::exception::class;
use cairn_wire::proto::hdfs::*;
use std::sync::Arc;

/// How often making a file is tried again when an encryption zone came or went under it.
///
/// Source: Hadoop 3.5.0 `DFSOutputStream.CREATE_RETRY_COUNT`.
const CREATE_RETRIES: u32 = 10;

/// A connection to a file system, as one user.
///
/// Runs on the tokio runtime that calls it. Source: Hadoop 3.5.0 `DFSClient`.
#[derive(Clone)]
pub struct FileSystem {
    pub(crate) session: Arc<Session>,
}

impl FileSystem {
    /// Connects to the NameNode of `config`. Fails when it does not answer.
    pub async fn connect(config: ClientConfig) -> Result<FileSystem> {
        let fs = FileSystem::new(config)?;
        fs.server_defaults().await?;
        Ok(fs)
    }

    /// A file system that connects at the first call.
    pub fn new(config: ClientConfig) -> Result<FileSystem> {
        Ok(FileSystem { session: Arc::new(Session::new(config)?) })
    }

    /// Which of the configuration's `namenode_addresses` is that of the NameNode that answered last.
    pub fn active_namenode(&self) -> usize {
        self.session.namenode.active()
    }

    /// The configuration that it was made with.
    pub fn config(&self) -> &ClientConfig {
        &self.session.config
    }

    /// Makes a file and opens it for writing.
    pub fn create<'a>(
        &'a self,
        path: &'a str,
        options: &'a CreateOptions,
    ) -> Boxed<'a, Result<FileWriter>> {
        Box::pin(async move {
            use CreateFlagProto as Flag;
            let config = &self.session.config;
            let permission = options.permission.unwrap_or(0o666);
            let block_size = options.block_size.unwrap_or(config.block_size);
            check_block_size(path, block_size, config)?;
            let mut flags = Flag::Create as u32;
            if options.overwrite {
                flags |= Flag::Overwrite as u32;
            }
            if options.should_replicate {
                flags |= Flag::ShouldReplicate as u32;
            }
            let request = CreateRequestProto {
                src: path.to_string(),
                masked: convert::permission_proto(
                    options.masked.unwrap_or(permission & !config.umask),
                ),
                client_name: self.session.client_name.clone(),
                create_flag: flags,
                create_parent: options.create_parents,
                replication: u32::from(options.replication.unwrap_or(config.replication)),
                block_size,
                crypto_protocol_version: vec![CryptoProtocolVersionProto::EncryptionZones as i32],
                unmasked: Some(convert::permission_proto(permission)),
                ec_policy_name: options.policy.clone(),
                storage_policy: None,
            };
            let mut tries_left = CREATE_RETRIES;
            let response: CreateResponseProto = loop {
                match self.session.namenode.call("create", &request).await {
                    // The directory has become an encryption zone meanwhile, or is none any more.
                    Err(error) if tries_left > 0 && error.is_remote(class::RETRY_START_FILE) => {
                        tries_left -= 1;
                    }
                    answer => break answer?,
                }
            };
            let status = response.fs.ok_or_else(|| ClientError::NotFound { path: path.into() })?;
            let status = convert::status(status, "/")?;
            let lease = self.session.leases.hold();
            self.writer(path, status, |session, path, status| {
                FileWriter::new(session, path, status, lease)
            })
            .await
        })
    }

    /// Makes the writer of a file, which encrypts if the file is encrypted. When its key cannot be
    /// had, the file is closed as it is, as by Hadoop's client.
    async fn writer(
        &self,
        path: &str,
        status: FileStatus,
        make: impl FnOnce(Arc<Session>, String, FileStatus) -> Result<FileWriter>,
    ) -> Result<FileWriter> {
        let encryption = status.encryption.clone();
        let writer = make(self.session.clone(), path.to_string(), status)?;
        let Some(encryption) = encryption else { return Ok(writer) };
        match self.session.cipher(path, &encryption).await {
            Ok(cipher) => Ok(writer.encrypting(cipher)),
            Err(error) => {
                let closed = writer.close().await;
                if let Err(error) = closed {
                    tracing::warn!(path, %error, "a file without a key could not be closed");
                }
                Err(error)
            }
        }
    }

    /// Opens a replicated file to write behind its end.
    pub fn append<'a>(&'a self, path: &'a str) -> Boxed<'a, Result<FileWriter>> {
        self.append_with(path, false)
    }

    /// The same; with `new_block` what is written begins a block of its own.
    pub fn append_with<'a>(
        &'a self,
        path: &'a str,
        new_block: bool,
    ) -> Boxed<'a, Result<FileWriter>> {
        Box::pin(async move {
            let mut flags = CreateFlagProto::Append as u32;
            if new_block {
                flags |= CreateFlagProto::NewBlock as u32;
            }
            let request = AppendRequestProto {
                src: path.to_string(),
                client_name: self.session.client_name.clone(),
                flag: Some(flags),
            };
            let response: AppendResponseProto =
                self.session.namenode.call("append", &request).await?;
            let last = response.block.map(convert::located).transpose()?;
            let status = match response.stat {
                Some(proto) => convert::status(proto, "/")?,
                None => self.require(path).await?,
            };
            let lease = self.session.leases.hold();
            let append =
                |session, path, status| FileWriter::append(session, path, status, last, lease);
            self.writer(path, status, append).await
        })
    }

    /// Opens a file for reading.
    pub async fn open(&self, path: &str) -> Result<FileReader> {
        FileReader::open(self.session.clone(), path, true).await
    }

    /// Opens a file for reading its bytes as they are stored: those of an encrypted file stay
    /// encrypted, and nobody is asked for its key.
    pub async fn open_stored(&self, path: &str) -> Result<FileReader> {
        FileReader::open(self.session.clone(), path, false).await
    }

    /// Makes a call of `ClientProtocol` for whoever passes on what clients ask, and needs the messages themselves.
    pub async fn call<Req, Resp>(&self, method: &'static str, request: &Req) -> Result<Resp>
    where
        Req: prost::Message,
        Resp: prost::Message + Default,
    {
        self.session.namenode.call(method, request).await
    }

    /// Has reads that begin after it show what anybody was told before, also at NameNodes that follow.
    ///
    /// Source: Hadoop 3.5.0 `FileSystem#msync`.
    pub async fn msync(&self) -> Result<()> {
        self.session.namenode.msync().await
    }

    /// How often a read asked others because an answer was late, and how often one of those was quicker.
    ///
    /// Source: Hadoop 3.5.0 `DFSHedgedReadMetrics`.
    pub fn hedged_reads(&self) -> (u64, u64) {
        self.session.hedges.counts()
    }

    /// The checksum of a file as `hdfs dfs -checksum` has it, computed by the DataNodes; `None` for
    /// directories.
    pub fn checksum<'a>(
        &'a self,
        path: &'a str,
        mode: ChecksumMode,
    ) -> Boxed<'a, Result<Option<FileChecksum>>> {
        Box::pin(async move { crate::checksum::file_checksum(&self.session, path, mode).await })
    }
}
