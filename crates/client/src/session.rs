//! What the readers and writers of a file system share, and the calls to the NameNode that they need.

use crate::config::ClientConfig;
use crate::datanode::hedges::Hedges;
use crate::datanode::local::LocalReplicas;
use crate::datanode::pace::{Expected, Paces};
use crate::datanode::pool::ConnectionPool;
use crate::datanode::scratch::Scratch;
use crate::datanode::secure::{DataKeys, DataSecurity};
use crate::datanode::silent::SilentNodes;
use crate::error::{ClientError, Result};
use crate::lease::Leases;
use crate::protocol::convert;
use crate::protocol::namenode::NameNode;
use crate::types::{DataNodeAddr, FileStatus, ServerDefaults};
use cairn_codec::{Codec, CodecKind};
use cairn_kms::Kms;
use cairn_net::Boxed;
use cairn_stripe::{CodecName, Policy, Schema, StoragePolicy};
use cairn_wire::proto::hdfs::*;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// The key servers, and when the NameNode was asked for them.
pub(crate) type KnownKms = tokio::sync::Mutex<Option<(Instant, Arc<Kms>)>>;

/// What readers, writers and all clones of a file system share: connections, and what is known of servers.
pub(crate) struct Session {
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

impl DataKeys for NameNode {
    fn encrypts(&self) -> Boxed<'_, Result<bool>> {
        Box::pin(async move {
            let answer: GetServerDefaultsResponseProto =
                self.call("getServerDefaults", &GetServerDefaultsRequestProto {}).await?;
            Ok(answer.server_defaults.encrypt_data_transfer())
        })
    }

    fn data_key(&self) -> Boxed<'_, Result<Option<DataEncryptionKeyProto>>> {
        Box::pin(async move {
            let answer: GetDataEncryptionKeyResponseProto =
                self.call("getDataEncryptionKey", &GetDataEncryptionKeyRequestProto {}).await?;
            Ok(answer.data_encryption_key)
        })
    }
}

impl Session {
    /// A session that connects at the first call. Fails on a configuration that makes no sense.
    pub(crate) fn new(mut config: ClientConfig) -> Result<Session> {
        if config.bytes_per_checksum == 0 || config.packet_len < config.bytes_per_checksum {
            return Err(ClientError::Argument("a packet holds at least one chunk".to_string()));
        }
        let mut random = [0; 8];
        getrandom::fill(&mut random).map_err(|error| ClientError::Argument(error.to_string()))?;
        let client_name = format!("DFSClient_NONMAPREDUCE_{:016x}_1", u64::from_le_bytes(random));
        let namenode = NameNode::new(&config);
        config.data_security =
            DataSecurity::new(Box::new(namenode.clone()), config.data_protections.clone());
        let leases = Leases::new(namenode.clone(), client_name.clone());
        let connections =
            ConnectionPool::new(config.idle_connections, config.idle_connection_expiry);
        let codecs = Mutex::default();
        let silent = SilentNodes::default();
        let (paces, cell_paces) = (Paces::default(), Paces::default());
        Ok(Session {
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
        })
    }

    /// What to expect of a DataNode.
    pub(crate) fn expect(&self, paces: &Paces, addr: &DataNodeAddr, now: Instant) -> Expected {
        self.silent.expect(addr).max(paces.expect(addr, now))
    }

    /// Whether every DataNode is expected to answer in time.
    pub(crate) fn is_all_timely(&self, paces: &Paces) -> bool {
        self.silent.is_clear() && paces.is_clear()
    }

    /// The code of a policy, made once.
    pub(crate) fn codec(&self, policy: &Policy) -> Result<Arc<Codec>> {
        let mut codecs = self.codecs.lock().unwrap_or_else(|poison| poison.into_inner());
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

    /// What a path names; `None` when it names nothing.
    pub(crate) async fn file_info(&self, path: &str) -> Result<Option<FileStatus>> {
        let request = GetFileInfoRequestProto { src: path.to_string() };
        let response: GetFileInfoResponseProto =
            self.namenode.call("getFileInfo", &request).await?;
        response
            .fs
            .map(|proto| {
                // The NameNode sends the path, or its last part, or nothing; the caller knows it.
                let status = convert::status(proto, "/")?;
                Ok(FileStatus { path: path.to_string(), ..status })
            })
            .transpose()
    }

    /// As [`Session::file_info`], with an error when there is nothing.
    pub(crate) async fn require(&self, path: &str) -> Result<FileStatus> {
        let status = self.file_info(path).await?;
        status.ok_or_else(|| ClientError::NotFound { path: path.to_string() })
    }

    /// The blocks of a byte range of a file, with what the data path needs.
    pub(crate) async fn located(
        &self,
        path: &str,
        offset: u64,
        len: u64,
    ) -> Result<convert::LocatedFile> {
        self.located_again(path, offset, len, false).await
    }

    /// The same, also by those who have not been able to read from the places that they were told before.
    pub(crate) async fn located_again(
        &self,
        path: &str,
        offset: u64,
        len: u64,
        after_failure: bool,
    ) -> Result<convert::LocatedFile> {
        let request = GetBlockLocationsRequestProto {
            src: path.to_string(),
            offset,
            // Hadoop's NameNode reads it as a signed number.
            length: len.min(i64::MAX as u64 - offset.min(i64::MAX as u64)),
            with_unit_crcs: None,
            after_failure: after_failure.then_some(true),
        };
        let response: GetBlockLocationsResponseProto =
            self.namenode.call("getBlockLocations", &request).await?;
        let proto = response.locations;
        convert::located_file(proto.ok_or_else(|| ClientError::NotFound { path: path.into() })?)
    }

    /// What the NameNode recommends for new files.
    pub(crate) async fn server_defaults(&self) -> Result<ServerDefaults> {
        let request = GetServerDefaultsRequestProto {};
        let response: GetServerDefaultsResponseProto =
            self.namenode.call("getServerDefaults", &request).await?;
        let defaults = response.server_defaults;
        Ok(ServerDefaults {
            block_size: defaults.block_size,
            bytes_per_checksum: defaults.bytes_per_checksum,
            packet_len: defaults.write_packet_size,
            replication: u16::try_from(defaults.replication).unwrap_or(u16::MAX),
            trash_interval_minutes: defaults.trash_interval.unwrap_or(0),
            // Older NameNodes name none.
            storage_policy: defaults
                .policy_id
                .filter(|id| *id != 0)
                .unwrap_or(StoragePolicy::HOT.id.into()),
            key_provider: defaults.key_provider_uri,
            snapshot_trash_roots: defaults.snapshot_trash_root_enabled.unwrap_or(false),
            http_port: defaults.http_port.and_then(|port| u16::try_from(port).ok()),
        })
    }
}
