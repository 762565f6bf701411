//! What the client can be told. Defaults are Hadoop's, unless a field says why not.

use crate::datanode::secure::DataSecurity;
use crate::error::{ClientError, Result};
use crate::types::ChecksumMode;
use cairn_codec::crc::ChecksumKind;
use cairn_keys::{
    BOOLEAN, BYTES, Kind, MILLIS, MODE, OPTIONAL_TEXT, PATIENCE, SECONDS, TEXT, keys, number,
};
use cairn_kms::KmsOptions;
use cairn_net::rpc_client::SharedCredentials;
use cairn_security::Protection;
use cairn_wire::proto::hdfs::CachingStrategyProto;
use cairn_writer::ReplaceDataNode;
use std::time::Duration;

const CHECKSUM: Kind<ChecksumKind> =
    Kind::new("NULL, CRC32 or CRC32C", |text| match text.to_ascii_uppercase().as_str() {
        "NULL" => Ok(ChecksumKind::Null),
        "CRC32" => Ok(ChecksumKind::Crc32),
        "CRC32C" => Ok(ChecksumKind::Crc32c),
        _ => Err("it takes NULL, CRC32 or CRC32C".into()),
    });

const CHECKSUM_MODE: Kind<ChecksumMode> =
    Kind::new("MD5MD5CRC or COMPOSITE_CRC", |text| match text.to_ascii_uppercase().as_str() {
        "MD5MD5CRC" => Ok(ChecksumMode::Md5Md5Crc),
        "COMPOSITE_CRC" => Ok(ChecksumMode::CompositeCrc),
        _ => Err("it takes MD5MD5CRC or COMPOSITE_CRC".into()),
    });

const REPLACE: Kind<ReplaceDataNode> =
    Kind::new("NEVER, DEFAULT or ALWAYS", |text| match text.to_ascii_uppercase().as_str() {
        "NEVER" => Ok(ReplaceDataNode::Never),
        "DEFAULT" => Ok(ReplaceDataNode::Default),
        "ALWAYS" => Ok(ReplaceDataNode::Always),
        _ => Err("it takes NEVER, DEFAULT or ALWAYS".into()),
    });

/// How long a call may take where Hadoop knows no end.
const RPC_TIMEOUT: Duration = Duration::from_secs(120);

const RPC_PATIENCE: Kind<Duration> = Kind::new("time, in ms; 0 for 2 minutes", |text| {
    Ok(match MILLIS.parse(text)? {
        Duration::ZERO => RPC_TIMEOUT,
        timeout => timeout,
    })
});

/// Less than 0 is none.
const TOLERATED: Kind<Option<usize>> =
    Kind::new("number; -1 for as many as parity units", |text| {
        Ok(usize::try_from(text.parse::<i64>()?).ok())
    });

const OPTIONAL_BYTES: Kind<Option<u64>> =
    Kind::new("bytes", |text| (!text.is_empty()).then(|| BYTES.parse(text)).transpose());

const OPTIONAL_BOOLEAN: Kind<Option<bool>> =
    Kind::new("true or false", |text| (!text.is_empty()).then(|| BOOLEAN.parse(text)).transpose());

const OPTIONAL_NUMBER: Kind<Option<u32>> =
    Kind::new("number", |text| (!text.is_empty()).then(|| number().parse(text)).transpose());

const UMASK: Kind<u16> = Kind::new("permission bits", |text| {
    u16::try_from(MODE.parse(text)?).map_err(|_| "it takes permission bits such as 022".into())
});

keys! {
    /// How to reach a file system and treat its files.
    #[derive(Clone, Debug)]
    pub struct ClientConfig {
        /// The folder of users' homes.
        homes: String, "dfs.user.home.dir.prefix" = "/user" as TEXT;
        /// Copies of each block of a new file.
        replication: u16, "dfs.replication" = "3" as number();
        /// Bytes of a block of a new file.
        block_size: u64, "dfs.blocksize" = "128m" as BYTES;
        /// Bytes that a checksum covers.
        bytes_per_checksum: u32, "dfs.bytes-per-checksum" = "512" as number();
        /// The checksum of new blocks.
        checksum: ChecksumKind, "dfs.checksum.type" = "CRC32C" as CHECKSUM;
        /// How the checksum of a file is made where nothing else is asked for.
        checksum_mode: ChecksumMode, "dfs.checksum.combine.mode" = "MD5MD5CRC" as CHECKSUM_MODE;
        /// Data bytes of a packet, rounded down to whole chunks; in Hadoop, whose default is 64 KiB, with headers and checksums.
        packet_len: u32, "dfs.client-write-packet-size" = "262144" as number();
        /// Packets of a replicated write that may be unacknowledged.
        packets_in_flight: usize, "dfs.client.write.max-packets-in-flight" = "80" as number();
        /// Waits for a DataNode longer than this fail.
        socket_timeout: Duration, "dfs.client.socket-timeout" = "60000" as PATIENCE;
        /// Waits for the NameNode longer than this fail.
        rpc_timeout: Duration, "ipc.client.rpc-timeout.ms" = "0" as RPC_PATIENCE;
        /// Whether reads are asked of NameNodes that follow, as where a nameservice has Hadoop's `ObserverReadProxyProvider` in `dfs.client.failover.proxy.provider`.
        reads_followers: bool, "cairn.client.read-followers" = "false" as BOOLEAN;
        /// Tries to allocate a block while the last one lacks replicas.
        add_block_retries: u32, "dfs.client.block.write.locateFollowingBlock.retries" = "5" as number();
        /// First wait of those tries, doubled each time.
        add_block_delay: Duration, "dfs.client.block.write.locateFollowingBlock.initial.delay.ms" = "400" as MILLIS;
        /// Tries to find a working pipeline for a new block.
        block_write_retries: u32, "dfs.client.block.write.retries" = "3" as number();
        /// Recoveries of a pipeline without progress between them.
        pipeline_recovery_retries: u32, "dfs.client.pipeline.recovery.max-retries" = "5" as number();
        /// When a lost DataNode is replaced in a pipeline.
        replace_datanode: ReplaceDataNode, "dfs.client.block.write.replace-datanode-on-failure.policy" = "DEFAULT" as REPLACE;
        /// Whether a write goes on with fewer DataNodes when none can be added.
        replace_datanode_best_effort: bool, "dfs.client.block.write.replace-datanode-on-failure.best-effort" = "false" as BOOLEAN;
        /// Units of a group that may fail during a write.
        failed_units_tolerated: Option<usize>, "dfs.client.ec.write.failed.blocks.tolerated" = "-1" as TOLERATED;
        /// Failures that a block group should still survive while it is written: when units fail and fewer are left to lose, it ends with the stripe at hand; 0 writes on until it is full, as Hadoop does.
        write_margin: usize, "cairn.client.ec.write-margin" = "1" as number();
        /// How long a unit of a group may acknowledge nothing while all others keep up; then it is given up, unless less than the margin would be left. Hadoop waits for `dfs.client.socket-timeout`.
        hanging_unit_timeout: Duration, "cairn.client.ec.hanging-unit-timeout" = "10s" as MILLIS;
        /// How long a failed DataNode is left out of new blocks.
        excluded_node_expiry: Duration, "dfs.client.write.exclude.nodes.cache.expiry.interval.millis" = "600000" as MILLIS;
        /// The longest that a read waits for a replica or unit before it asks others as well; recent answers make it shorter.
        hedge_after: Duration, "dfs.client.hedged.read.threshold.millis" = "500" as MILLIS;
        /// Reads that may ask others as well at the same time; 0, which is Hadoop's default: none does.
        hedged_reads: usize, "dfs.client.hedged.read.threadpool.size" = "64" as number();
        /// Connections to DataNodes kept for the next read or block; 16 in Hadoop: a striped read has one for each unit.
        idle_connections: usize, "dfs.client.socketcache.capacity" = "256" as number();
        /// How long they are kept.
        idle_connection_expiry: Duration, "dfs.client.socketcache.expiryMsec" = "3000" as MILLIS;
        /// Where DataNodes on this machine have a UNIX domain socket, with `_PORT` for the port of their data transfer.
        domain_socket: Option<String>, "dfs.domain.socket.path" = "" as OPTIONAL_TEXT;
        /// Whether replicas on this machine are read through descriptors that DataNodes pass over that socket.
        short_circuit: bool, "dfs.client.read.shortcircuit" = "false" as BOOLEAN;
        /// Replicas that are kept open for that.
        short_circuit_replicas: usize, "dfs.client.read.shortcircuit.streams.cache.size" = "256" as number();
        /// For how long they are kept open.
        short_circuit_expiry: Duration, "dfs.client.read.shortcircuit.streams.cache.expiry.ms" = "300000" as MILLIS;
        /// Whether what else is read on this machine travels over that socket.
        domain_socket_traffic: bool, "dfs.client.domain.socket.data.traffic" = "false" as BOOLEAN;
        /// Bytes that DataNodes ask the page cache for ahead of what they send; without it as they are set, and for long reads only.
        cache_readahead: Option<u64>, "dfs.client.cache.readahead" = "" as OPTIONAL_BYTES;
        /// Whether DataNodes have the page cache forget what they sent; without it as they are set.
        drop_behind_reads: Option<bool>, "dfs.client.cache.drop.behind.reads" = "" as OPTIONAL_BOOLEAN;
        /// Whether they have it forget what they received; without it as they are set.
        drop_behind_writes: Option<bool>, "dfs.client.cache.drop.behind.writes" = "" as OPTIONAL_BOOLEAN;
        /// Where the keys of encrypted files are, unless the NameNode says it: `kms://http@HOST:PORT/kms`.
        key_provider: Option<String>, "hadoop.security.key.provider.path" = "" as OPTIONAL_TEXT;
        /// Whether what the NameNode says of that is ignored.
        ignore_server_key_provider: bool, "dfs.client.ignore.namenode.default.kms.uri" = "false" as BOOLEAN;
        /// Permission bits cleared in new files and directories.
        umask: u16, "fs.permissions.umask-mode" = "022" as UMASK;
    }
    parts {
        /// How long a key server may take for a connection, and as long again for an answer; 0 for any time.
        "hadoop.security.kms.client.timeout" = "60" as SECONDS => kms.timeout;
        /// How often a question is sent again when a key server cannot be reached; as often as there are servers without it.
        "hadoop.security.kms.client.failover.max.retries" = "" as OPTIONAL_NUMBER => kms.failover_retries;
        /// The wait after all key servers were tried, doubled with each try.
        "hadoop.security.kms.client.failover.sleep.base.millis" = "100" as MILLIS => kms.failover_sleep;
        /// The longest such wait.
        "hadoop.security.kms.client.failover.sleep.max.millis" = "2000" as MILLIS => kms.failover_sleep_max;
    }
    by_hand {
        /// The file system: `hdfs://HOST:PORT`, or `hdfs://NAMESERVICE`.
        "fs.defaultFS" = "" as "URI";
        /// The same as `dfs.client.hedged.read.threshold.millis`, and goes before it.
        "cairn.client.hedge-after" = "" as "time, in ms";
        /// The principal by which a client gets its own tickets, with `cairn.client.kerberos.keytab`; it has those of its user without both.
        "cairn.client.kerberos.principal" = "" as "NAME@REALM";
        /// Its keytab.
        "cairn.client.kerberos.keytab" = "" as "file";
        /// Where tickets are; where the system says without it.
        "hadoop.security.kerberos.ticket.cache.path" = "" as "file";
        /// Files of tokens that a job is given, beside the one that `HADOOP_TOKEN_FILE_LOCATION` names.
        "hadoop.token.files" = "" as "files with commas";
        /// Whether a client with Kerberos speaks to servers that ask nobody.
        "ipc.client.fallback-to-simple-auth-allowed" = "false" as "true or false";
        /// Whether lost DataNodes are replaced in pipelines at all.
        "dfs.client.block.write.replace-datanode-on-failure.enable" = "true" as "true or false";
    }
    others {
        /// What URIs of the file system have behind `hdfs://`, from `fs.defaultFS`: `host:port` of the NameNode's RPC, or
        /// the name of a nameservice.
        namenode: String = "127.0.0.1:8020".to_string();
        /// `host:port` of each NameNode of the nameservice, of which one is active; none: there is only the one above.
        /// `dfs.ha.namenodes`, `dfs.namenode.rpc-address`.
        namenode_addresses: Vec<String> = Vec::new();
        /// How often the leader is asked how far it is, so that reads at those who follow show what others have done: before
        /// each for 0, before the first alone for none. `dfs.client.failover.observer.auto-msync-period`.
        msync_period: Option<Duration> = None;
        /// The user to act as. `HADOOP_USER_NAME`, else the login name.
        user: String = std::env::var("HADOOP_USER_NAME")
            .or_else(|_| std::env::var("USER"))
            .unwrap_or_else(|_| "root".to_string());
        /// Who acts for that user, if it is another: the NameNode must let it (`hadoop.proxyuser.*`).
        real_user: Option<String> = None;
        /// Data bytes that a striped stream may hold in its buffers, at least two stripes.
        stream_buffer_len: usize = 24 * 1024 * 1024;
        /// How long safe mode, standby and connection errors are waited out before a call fails.
        retry_for: Duration = Duration::from_secs(60);
        /// How patient the client is with key servers.
        kms: KmsOptions = KmsOptions::default();
        /// What shows NameNodes who the client is; `None`: it only says so.
        credentials: Option<SharedCredentials> = None;
        /// What shows it to the RPC ports of DataNodes, likewise.
        datanode_credentials: Option<SharedCredentials> = None;
        /// What shows it to pages, likewise, with `HTTP` for the service.
        http_credentials: Option<SharedCredentials> = None;
        /// What is asked of DataNodes around data, where there are block tokens. Key `dfs.data.transfer.protection`, with
        /// Kerberos.
        data_protections: Vec<Protection> = Vec::new();
        /// What a session knows of that; leave it as it is by default.
        data_security: DataSecurity = DataSecurity::default();
    }
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
