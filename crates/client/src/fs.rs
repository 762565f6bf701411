//! A file system: what programs hold. Cheap to clone; all clones share connections and one lease.

mod admin;
mod encryption;
mod namespace;
mod snapshots;

pub use namespace::Listing;

use crate::config::ClientConfig;
use crate::datanode::hedges::Hedges;
use crate::datanode::local::LocalReplicas;
use crate::datanode::pace::{Expected, Paces};
use crate::datanode::pool::ConnectionPool;
use crate::datanode::scratch::Scratch;
use crate::datanode::silent::SilentNodes;
use crate::encryption::KnownKms;
use crate::error::{ClientError, Result};
use crate::lease::Leases;
use crate::protocol::convert;
use crate::protocol::namenode::NameNode;
use crate::read::FileReader;
use crate::types::{ChecksumMode, CreateOptions, DataNodeAddr, FileChecksum, FileStatus};
use crate::write::{self, FileWriter};
use cairn_codec::{Codec, CodecKind};
use cairn_net::Boxed;
use cairn_stripe::{CodecName, Policy, Schema};
use cairn_wire::exception::class;
use cairn_wire::proto::hdfs::*;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// How often making a file is tried again when an encryption zone came or went under it.
///
/// Source: Hadoop 3.5.0 `DFSOutputStream.CREATE_RETRY_COUNT`.
const CREATE_RETRIES: u32 = 10;

/// A connection to a file system, as one user.
///
/// Runs on the tokio runtime that calls it. Source: Hadoop 3.5.0 `DFSClient`.
#[derive(Clone)]
pub struct FileSystem {
    pub(crate) inner: Arc<Inner>,
}

/// What all clones share.
pub(crate) struct Inner {
    pub config: ClientConfig,
    pub namenode: NameNode,
    /// The lease holder's name.
    pub client_name: String,
    pub leases: Leases,
    pub connections: ConnectionPool,
    pub local: LocalReplicas,
    pub silent: SilentNodes,
    pub hedges: Hedges,
    pub scratch: Scratch,
    /// Of positional reads.
    pub paces: Paces,
    /// Of whole cells that are read in order.
    pub cell_paces: Paces,
    /// Who has the keys of encrypted files, from the first such file on.
    pub kms: KnownKms,
    codecs: Mutex<HashMap<Schema, Arc<Codec>>>,
}

impl Inner {
    /// What to expect of a DataNode.
    pub(crate) fn expect(&self, paces: &Paces, addr: &DataNodeAddr, now: Instant) -> Expected {
        self.silent.expect(addr).max(paces.expect(addr, now))
    }

    /// Whether every DataNode is expected to answer in time.
    pub(crate) fn is_all_timely(&self, paces: &Paces) -> bool {
        self.silent.is_clear() && paces.is_clear()
    }
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
        if config.bytes_per_checksum == 0 || config.packet_len < config.bytes_per_checksum {
            return Err(ClientError::Argument("a packet holds at least one chunk".to_string()));
        }
        let mut random = [0; 8];
        getrandom::fill(&mut random).map_err(|error| ClientError::Argument(error.to_string()))?;
        let client_name = format!("DFSClient_NONMAPREDUCE_{:016x}_1", u64::from_le_bytes(random));
        let namenode = NameNode::new(&config);
        let leases = Leases::new(namenode.clone(), client_name.clone());
        let connections =
            ConnectionPool::new(config.idle_connections, config.idle_connection_expiry);
        let codecs = Mutex::default();
        let silent = SilentNodes::default();
        let (paces, cell_paces) = (Paces::default(), Paces::default());
        let inner = Inner {
            config,
            namenode,
            client_name,
            leases,
            connections,
            local: LocalReplicas::default(),
            silent,
            hedges: Hedges::default(),
            scratch: Scratch::default(),
            paces,
            cell_paces,
            kms: KnownKms::default(),
            codecs,
        };
        Ok(FileSystem { inner: Arc::new(inner) })
    }

    /// Which of the configuration's `namenode_addresses` is that of the NameNode that answered last.
    pub fn active_namenode(&self) -> usize {
        self.inner.namenode.active()
    }

    /// The configuration that it was made with.
    pub fn config(&self) -> &ClientConfig {
        &self.inner.config
    }

    /// Makes a file and opens it for writing.
    pub fn create<'a>(
        &'a self,
        path: &'a str,
        options: &'a CreateOptions,
    ) -> Boxed<'a, Result<FileWriter>> {
        Box::pin(async move {
            use CreateFlagProto as Flag;
            let config = &self.inner.config;
            let permission = options.permission.unwrap_or(0o666);
            let block_size = options.block_size.unwrap_or(config.block_size);
            write::check_block_size(path, block_size, config)?;
            let mut flags = Flag::Create as u32;
            if options.overwrite {
                flags |= Flag::Overwrite as u32;
            }
            if options.should_replicate {
                flags |= Flag::ShouldReplicate as u32;
            }
            let request = CreateRequestProto {
                src: path.to_string(),
                masked: convert::permission_proto(permission & !config.umask),
                client_name: self.inner.client_name.clone(),
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
                match self.inner.namenode.call("create", &request).await {
                    // The directory has become an encryption zone meanwhile, or is none any more.
                    Err(error) if tries_left > 0 && error.is_remote(class::RETRY_START_FILE) => {
                        tries_left -= 1;
                    }
                    answer => break answer?,
                }
            };
            let status = response.fs.ok_or_else(|| ClientError::NotFound { path: path.into() })?;
            let status = convert::status(status, "/")?;
            let lease = self.inner.leases.hold();
            self.writer(path, status, |fs, path, status| FileWriter::new(fs, path, status, lease))
                .await
        })
    }

    /// Makes the writer of a file, which encrypts if the file is encrypted. When its key cannot be
    /// had, the file is closed as it is, as by Hadoop's client.
    async fn writer(
        &self,
        path: &str,
        status: FileStatus,
        make: impl FnOnce(FileSystem, String, FileStatus) -> Result<FileWriter>,
    ) -> Result<FileWriter> {
        let encryption = status.encryption.clone();
        let writer = make(self.clone(), path.to_string(), status)?;
        let Some(encryption) = encryption else { return Ok(writer) };
        match self.cipher(path, &encryption).await {
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
        Box::pin(async move {
            let request = AppendRequestProto {
                src: path.to_string(),
                client_name: self.inner.client_name.clone(),
                flag: Some(CreateFlagProto::Append as u32),
            };
            let response: AppendResponseProto =
                self.inner.namenode.call("append", &request).await?;
            let last = response.block.map(convert::located).transpose()?;
            let status = match response.stat {
                Some(proto) => convert::status(proto, "/")?,
                None => self.require(path).await?,
            };
            let lease = self.inner.leases.hold();
            let append = |fs, path, status| FileWriter::append(fs, path, status, last, lease);
            self.writer(path, status, append).await
        })
    }

    /// Opens a file for reading.
    pub async fn open(&self, path: &str) -> Result<FileReader> {
        FileReader::open(self.clone(), path, true).await
    }

    /// Opens a file for reading its bytes as they are stored: those of an encrypted file stay
    /// encrypted, and nobody is asked for its key.
    pub async fn open_stored(&self, path: &str) -> Result<FileReader> {
        FileReader::open(self.clone(), path, false).await
    }

    /// How often a read asked others because an answer was late, and how often one of those was quicker.
    ///
    /// Source: Hadoop 3.5.0 `DFSHedgedReadMetrics`.
    pub fn hedged_reads(&self) -> (u64, u64) {
        self.inner.hedges.counts()
    }

    /// The checksum of a file as `hdfs dfs -checksum` has it, computed by the DataNodes; `None` for
    /// directories.
    pub fn checksum<'a>(
        &'a self,
        path: &'a str,
        mode: ChecksumMode,
    ) -> Boxed<'a, Result<Option<FileChecksum>>> {
        Box::pin(async move { crate::checksum::file_checksum(self, path, mode).await })
    }

    /// The code of a policy, made once.
    pub(crate) fn codec(&self, policy: &Policy) -> Result<Arc<Codec>> {
        let mut codecs = self.inner.codecs.lock().unwrap_or_else(|poison| poison.into_inner());
        if let Some(codec) = codecs.get(&policy.schema) {
            return Ok(codec.clone());
        }
        let Schema { codec, .. } = policy.schema;
        let kind = match codec {
            CodecName::Rs => CodecKind::Rs,
            CodecName::RsLegacy => CodecKind::RsLegacy,
            CodecName::Xor => CodecKind::Xor,
        };
        let (k, m) = (policy.schema.data_units(), policy.schema.parity_units());
        let codec = Arc::new(Codec::new(kind, k, m)?);
        codecs.insert(policy.schema, codec.clone());
        Ok(codec)
    }
}
