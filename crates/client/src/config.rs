//! What the client can be told. Defaults are Hadoop's, unless a field says why not.

use crate::datanode::secure::DataSecurity;
use crate::error::{ClientError, Result};
use crate::types::ChecksumMode;
use cairn_codec::crc::ChecksumKind;
use cairn_kms::KmsOptions;
use cairn_net::rpc_client::SharedCredentials;
use cairn_security::Protection;
use cairn_wire::proto::hdfs::CachingStrategyProto;
use cairn_writer::ReplaceDataNode;
use std::time::Duration;

/// How to reach a file system and treat its files.
#[derive(Clone, Debug)]
pub struct ClientConfig {
    /// What URIs of the file system have behind `hdfs://`, from `fs.defaultFS`: `host:port` of the NameNode's RPC, or
    /// the name of a nameservice.
    pub namenode: String,
    /// `host:port` of each NameNode of the nameservice, of which one is active; none: there is only the one above.
    /// `dfs.ha.namenodes`, `dfs.namenode.rpc-address`.
    pub namenode_addresses: Vec<String>,
    /// The user to act as. `HADOOP_USER_NAME`, else the login name.
    pub user: String,
    /// Who acts for that user, if it is another: the NameNode must let it (`hadoop.proxyuser.*`).
    pub real_user: Option<String>,
    /// The folder of users' homes. `dfs.user.home.dir.prefix`.
    pub homes: String,
    /// Copies of each block of a new file. `dfs.replication`.
    pub replication: u16,
    /// Bytes of a block of a new file. `dfs.blocksize`.
    pub block_size: u64,
    /// Bytes that a checksum covers. `dfs.bytes-per-checksum`.
    pub bytes_per_checksum: u32,
    /// The checksum of new blocks. `dfs.checksum.type`.
    pub checksum: ChecksumKind,
    /// How the checksum of a file is made where nothing else is asked for. `dfs.checksum.combine.mode`.
    pub checksum_mode: ChecksumMode,
    /// Data bytes of a packet, rounded down to whole chunks. `dfs.client-write-packet-size`, which in
    /// Hadoop counts headers and checksums too, and is 64 KiB there: larger ones cost both ends less.
    pub packet_len: u32,
    /// Packets of a replicated write that may be unacknowledged.
    /// `dfs.client.write.max-packets-in-flight`.
    pub packets_in_flight: usize,
    /// Waits for a DataNode longer than this fail. `dfs.client.socket-timeout`.
    pub socket_timeout: Duration,
    /// Waits for the NameNode longer than this fail. `ipc.client.rpc-timeout.ms`; where Hadoop knows no end (0), the
    /// default.
    pub rpc_timeout: Duration,
    /// Tries to allocate a block while the last one lacks replicas.
    /// `dfs.client.block.write.locateFollowingBlock.retries`.
    pub add_block_retries: u32,
    /// First wait of those tries, doubled each time.
    /// `dfs.client.block.write.locateFollowingBlock.initial.delay.ms`.
    pub add_block_delay: Duration,
    /// Tries to find a working pipeline for a new block. `dfs.client.block.write.retries`.
    pub block_write_retries: u32,
    /// Recoveries of a pipeline without progress between them. `dfs.client.pipeline.recovery.max-retries`.
    pub pipeline_recovery_retries: u32,
    /// When a lost DataNode is replaced in a pipeline.
    /// `dfs.client.block.write.replace-datanode-on-failure.policy`.
    pub replace_datanode: ReplaceDataNode,
    /// Go on with fewer DataNodes when none can be added.
    /// `dfs.client.block.write.replace-datanode-on-failure.best-effort`.
    pub replace_datanode_best_effort: bool,
    /// Units of a group that may fail during a write; the policy's `m` when `None`.
    /// `dfs.client.ec.write.failed.blocks.tolerated`.
    pub failed_units_tolerated: Option<usize>,
    /// Failures that a block group should still survive while it is written, at most the policy's `m`:
    /// when units fail and fewer are left to lose, the group ends with the stripe at hand and the next
    /// begins on other DataNodes. `cairn.client.ec.write-margin`; 0 writes on until the group is full, as
    /// Hadoop does.
    pub write_margin: usize,
    /// How long a unit of a group may acknowledge nothing while all others keep up; then it is given
    /// up, unless that would leave less than `write_margin`, and one failure at least, to survive.
    /// `cairn.client.ec.hanging-unit-timeout`; Hadoop waits for `dfs.client.socket-timeout`.
    pub hanging_unit_timeout: Duration,
    /// How long a failed DataNode is left out of new blocks.
    /// `dfs.client.write.exclude.nodes.cache.expiry.interval.millis`.
    pub excluded_node_expiry: Duration,
    /// The longest that a read waits for a replica or unit before it asks others as well; recent
    /// answers make it shorter. `cairn.client.hedge-after`, else
    /// `dfs.client.hedged.read.threshold.millis`.
    pub hedge_after: Duration,
    /// Reads that may ask others as well at the same time; 0: none does, and a DataNode that hangs is
    /// waited for as long as for `socket_timeout`. `dfs.client.hedged.read.threadpool.size`, 0 in Hadoop.
    pub hedged_reads: usize,
    /// Data bytes that a striped stream may hold in its buffers, at least two stripes.
    pub stream_buffer_len: usize,
    /// Connections to DataNodes kept for the next read or block. `dfs.client.socketcache.capacity`, 16 in Hadoop: a
    /// striped read has one for each unit.
    pub idle_connections: usize,
    /// How long they are kept. `dfs.client.socketcache.expiryMsec`.
    pub idle_connection_expiry: Duration,
    /// Where DataNodes on this machine have a UNIX domain socket, with `_PORT` for the port of their data
    /// transfer. `dfs.domain.socket.path`.
    pub domain_socket: Option<String>,
    /// Replicas on this machine are read through descriptors that DataNodes pass over that socket.
    /// `dfs.client.read.shortcircuit`.
    pub short_circuit: bool,
    /// Replicas that are kept open for that. `dfs.client.read.shortcircuit.streams.cache.size`.
    pub short_circuit_replicas: usize,
    /// For how long. `dfs.client.read.shortcircuit.streams.cache.expiry.ms`.
    pub short_circuit_expiry: Duration,
    /// What else is read on this machine travels over that socket. `dfs.client.domain.socket.data.traffic`.
    pub domain_socket_traffic: bool,
    /// Bytes that DataNodes ask the page cache for ahead of what they send; `None`: as they are set, and for long reads
    /// only. `dfs.client.cache.readahead`.
    pub cache_readahead: Option<u64>,
    /// Whether DataNodes have the page cache forget what they sent; `None`: as they are set.
    /// `dfs.client.cache.drop.behind.reads`.
    pub drop_behind_reads: Option<bool>,
    /// Whether they have it forget what they received. `dfs.client.cache.drop.behind.writes`.
    pub drop_behind_writes: Option<bool>,
    /// How long safe mode, standby and connection errors are waited out before a call fails.
    pub retry_for: Duration,
    /// Where the keys of encrypted files are, unless the NameNode says it: `kms://http@HOST:PORT/kms`.
    /// `hadoop.security.key.provider.path`.
    pub key_provider: Option<String>,
    /// Whether what the NameNode says of that is ignored. `dfs.client.ignore.namenode.default.kms.uri`.
    pub ignore_server_key_provider: bool,
    /// How patient the client is with key servers. `hadoop.security.kms.client.*`.
    pub kms: KmsOptions,
    /// Permission bits cleared in new files and directories. `fs.permissions.umask-mode`.
    pub umask: u16,
    /// What shows NameNodes who the client is; `None`: it only says so.
    pub credentials: Option<SharedCredentials>,
    /// What shows it to the RPC ports of DataNodes, likewise.
    pub datanode_credentials: Option<SharedCredentials>,
    /// What shows it to pages, likewise, with `HTTP` for the service.
    pub http_credentials: Option<SharedCredentials>,
    /// What is asked of DataNodes around data, where there are block tokens. Key `dfs.data.transfer.protection`, with
    /// Kerberos.
    pub data_protections: Vec<Protection>,
    /// What a session knows of that; leave it as it is by default.
    pub data_security: DataSecurity,
}

impl ClientConfig {
    /// The user's own folder.
    ///
    /// Source: Hadoop 3.5.0 `DFSUtilClient#getHomeDirectory`.
    pub fn home(&self) -> String {
        format!("{}/{}", self.homes.trim_end_matches('/'), self.user)
    }

    /// Says who the user is. Fails where a ticket or token shows that it is another.
    ///
    /// Who may act for others says so by `real_user`.
    pub fn act_as(&mut self, user: &str) -> Result<()> {
        // A principal may be named in full.
        let name = user.split(['@', '/']).next().unwrap_or(user);
        if self.credentials.is_none() {
            self.user = user.to_string();
        } else if self.user != user && self.user != name {
            let what = format!("you are {}, as you have shown, and not {user}", self.user);
            return Err(ClientError::Argument(what));
        }
        Ok(())
    }

    /// How long a pipeline may be silent before a heartbeat: its DataNodes have limits of their own, however
    /// patient the client is.
    ///
    /// Source: Hadoop 3.5.0 `DataStreamer#run`.
    pub(crate) fn heartbeat_after(&self) -> Duration {
        (self.socket_timeout / 2).min(Duration::from_secs(30))
    }

    /// What DataNodes are to do with the page cache; whether to forget what went through it is told.
    ///
    /// Source: Hadoop 3.5.0 `DFSClient#getDefaultReadCachingStrategy`, `#getDefaultWriteCachingStrategy`.
    pub(crate) fn caching(&self, drop_behind: Option<bool>) -> CachingStrategyProto {
        let readahead = self.cache_readahead.map(|bytes| i64::try_from(bytes).unwrap_or(i64::MAX));
        CachingStrategyProto { drop_behind, readahead }
    }
}

impl Default for ClientConfig {
    fn default() -> ClientConfig {
        ClientConfig {
            namenode: "127.0.0.1:8020".to_string(),
            namenode_addresses: Vec::new(),
            user: std::env::var("HADOOP_USER_NAME")
                .or_else(|_| std::env::var("USER"))
                .unwrap_or_else(|_| "root".to_string()),
            real_user: None,
            replication: 3,
            block_size: 128 * 1024 * 1024,
            bytes_per_checksum: 512,
            checksum: ChecksumKind::Crc32c,
            checksum_mode: ChecksumMode::default(),
            packet_len: 256 * 1024,
            packets_in_flight: 80,
            socket_timeout: Duration::from_secs(60),
            rpc_timeout: Duration::from_secs(120),
            add_block_retries: 5,
            add_block_delay: Duration::from_millis(400),
            block_write_retries: 3,
            pipeline_recovery_retries: 5,
            replace_datanode: ReplaceDataNode::Default,
            replace_datanode_best_effort: false,
            failed_units_tolerated: None,
            write_margin: 1,
            hanging_unit_timeout: Duration::from_secs(10),
            excluded_node_expiry: Duration::from_secs(600),
            hedge_after: Duration::from_millis(500),
            hedged_reads: 64,
            stream_buffer_len: 24 * 1024 * 1024,
            idle_connections: 256,
            idle_connection_expiry: Duration::from_secs(3),
            domain_socket: None,
            short_circuit: false,
            short_circuit_replicas: 256,
            short_circuit_expiry: Duration::from_secs(300),
            domain_socket_traffic: false,
            cache_readahead: None,
            drop_behind_reads: None,
            drop_behind_writes: None,
            retry_for: Duration::from_secs(60),
            key_provider: None,
            ignore_server_key_provider: false,
            kms: KmsOptions::default(),
            homes: "/user".to_string(),
            umask: 0o022,
            credentials: None,
            datanode_credentials: None,
            http_credentials: None,
            data_protections: Vec::new(),
            data_security: DataSecurity::default(),
        }
    }
}
