//! What a DataNode is told at its start. Plain values: keys are parsed by the `cairn` binary.

use cairn_net::groups::GroupsConfig;
use cairn_net::http::SharedHandler;
use cairn_net::reconfiguration::Reload;
use cairn_stripe::StorageType;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

/// One volume's folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataDir {
    /// The folder; it is made if missing.
    pub path: PathBuf,
    /// Its medium.
    pub storage_type: StorageType,
    /// Most bytes of it that count as its capacity; all without it: `cairn.datanode.capacity`.
    pub capacity: Option<u64>,
}

impl From<PathBuf> for DataDir {
    fn from(path: PathBuf) -> DataDir {
        DataDir { path, storage_type: StorageType::default(), capacity: None }
    }
}

/// What an acknowledged block has survived.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Durability {
    /// Block, CRCs and their folder are on stable storage before the last packet is acknowledged.
    #[default]
    Stable,
    /// They are in the page cache, as with Hadoop's default `dfs.datanode.synconclose=false`.
    PageCache,
}

/// Settings of a DataNode; `Default` has Hadoop's defaults, except that durability is
/// [`Durability::Stable`] and that addresses are on the loopback interface.
#[derive(Clone, Debug)]
pub struct DataNodeConfig {
    /// Volumes: `dfs.datanode.data.dir`.
    pub data_dirs: Vec<DataDir>,
    /// Permission bits of their folders: `dfs.datanode.data.dir.perm`.
    pub data_dir_mode: u32,
    /// Where to find the NameNode, `host:port`: `dfs.namenode.servicerpc-address`, `dfs.namenode.rpc-address`,
    /// `fs.defaultFS`.
    pub name_node: String,
    /// Data transfer listens here: `dfs.datanode.address`.
    pub xfer_addr: SocketAddr,
    /// Clients on this machine find the data transfer here, too; `_PORT` in it stands for the port of `xfer_addr`:
    /// `dfs.domain.socket.path`.
    pub domain_socket: Option<String>,
    /// Whether others could put their own socket in its place is looked at before it is bound. Only tests may do
    /// without.
    pub check_domain_socket: bool,
    /// Whether clients on this machine may have the files of replicas: `dfs.client.read.shortcircuit`.
    pub short_circuit: bool,
    /// RPC listens here: `dfs.datanode.ipc.address`.
    pub ipc_addr: SocketAddr,
    /// Pages are served here, if at all: `dfs.datanode.http.address`. Deviation: without the key there is no page.
    pub http_addr: Option<SocketAddr>,
    /// How long an HTTP connection may rest: `hadoop.http.idle_timeout.ms`.
    pub http_idle_timeout: Duration,
    /// What serves files by HTTP, beside the pages: `dfs.webhdfs.enabled`.
    pub web: Option<SharedHandler>,
    /// Every key that was set, for `/conf`.
    pub properties: Vec<(String, String)>,
    /// Name this DataNode registers under; the address if absent: `dfs.datanode.hostname`.
    pub hostname: Option<String>,
    /// User that the RPCs to the NameNode name.
    pub user: String,
    /// Whether some calls are for superusers only: `dfs.permissions.enabled`.
    pub permissions_enabled: bool,
    /// Group whose members are superusers beside `user`: `dfs.permissions.superusergroup`.
    pub supergroup: String,
    /// Which groups users are in.
    pub groups: GroupsConfig,
    /// Properties that say who may act for whom: `hadoop.proxyuser.*`.
    pub proxy_users: Vec<(String, String)>,
    /// Properties that say who may use which protocol, `security.*`, with blanks as they stand there; `None` where
    /// everybody may use all: `hadoop.security.authorization`.
    pub service_policy: Option<Vec<(String, String)>>,
    /// What an acknowledged block has survived: `dfs.datanode.synconclose`.
    pub durability: Durability,
    /// Bytes of each volume left to others: `dfs.datanode.du.reserved`.
    pub reserved_bytes: u64,
    /// Volumes that may fail before the DataNode gives up, fewer than there are; `None`: all but one.
    /// `dfs.datanode.failed.volumes.tolerated`.
    pub failed_volumes_tolerated: Option<usize>,
    /// How long nothing may get on on a disk before its volume has failed: `dfs.datanode.disk.check.timeout`.
    pub disk_check_timeout: Duration,
    /// Time between heartbeats: `dfs.heartbeat.interval`.
    pub heartbeat_interval: Duration,
    /// Time between full block reports: `dfs.blockreport.intervalMsec`.
    pub block_report_interval: Duration,
    /// Replicas above which each storage is reported in its own call: `dfs.blockreport.split.threshold`.
    pub block_report_split_threshold: usize,
    /// A peer that sends nothing for this long is given up: `dfs.client.socket-timeout`.
    pub read_timeout: Duration,
    /// A peer that takes nothing for this long is given up: `dfs.datanode.socket.write.timeout`.
    pub write_timeout: Duration,
    /// How long a connection may wait for its next operation: `dfs.datanode.socket.reuse.keepalive`.
    pub keepalive: Duration,
    /// How long to wait for a writer that must stop: `dfs.datanode.xceiver.stop.timeout.millis`.
    pub writer_stop_timeout: Duration,
    /// Connections served at once: `dfs.datanode.max.transfer.threads`.
    pub max_connections: usize,
    /// Blocks moved by a balancer at once: `dfs.datanode.balance.max.concurrent.moves`.
    pub max_moves: usize,
    /// Bytes per second for balancing: `dfs.datanode.balance.bandwidthPerSec`.
    pub balance_bandwidth: u64,
    /// Bytes per second of all copies that the NameNode orders, 0 for any:
    /// `dfs.datanode.data.transfer.bandwidthPerSec`.
    pub transfer_bandwidth: u64,
    /// Bytes per second of all reads by clients, 0 for any: `dfs.datanode.data.read.bandwidthPerSec`.
    pub read_bandwidth: u64,
    /// Bytes per second of all blocks that are received through pipelines, 0 for any:
    /// `dfs.datanode.data.write.bandwidthPerSec`.
    pub write_bandwidth: u64,
    /// Long reads are forgotten by the page cache, unless the reader wants otherwise:
    /// `dfs.datanode.drop.cache.behind.reads`.
    pub drop_behind_reads: bool,
    /// So is what is written: `dfs.datanode.drop.cache.behind.writes`.
    pub drop_behind_writes: bool,
    /// What is written goes to the disk early also where it need not be there when a block is closed:
    /// `dfs.datanode.sync.behind.writes`.
    pub sync_behind_writes: bool,
    /// Bytes that are read ahead of a long read, unless the reader wants otherwise: `dfs.datanode.readahead.bytes`.
    pub readahead_bytes: u64,
    /// Bytes that a growing replica is given on its disk at once, where that helps (ext4), 0 for none:
    /// `cairn.datanode.preallocation`.
    pub preallocation_bytes: u64,
    /// Bytes of memory for replicas that are cached or on RAM_DISK volumes, 0 for none:
    /// `dfs.datanode.max.locked.memory`.
    pub max_locked_memory: u64,
    /// Time between reports of the replicas in memory: `dfs.cachereport.intervalMsec`.
    pub cache_report_interval: Duration,
    /// Time between rounds of the lazy writer: `dfs.datanode.lazywriter.interval.sec`.
    pub lazy_writer_interval: Duration,
    /// Whether writers on other machines may have replicas in memory: `dfs.datanode.non.local.lazy.persist`.
    pub non_local_lazy_persist: bool,
    /// Space asked of a volume for a block whose length is not known: `dfs.blocksize`.
    pub block_len_estimate: u64,
    /// Data bytes of a packet that this DataNode sends to readers.
    pub send_packet_len: usize,
    /// Whether packets may go from files to sockets within the kernel, where that pays:
    /// `dfs.datanode.transferTo.allowed`.
    pub transfer_to_allowed: bool,
    /// Bytes that the kernel may keep of what is sent over a data connection, 0 to leave it to the kernel:
    /// `dfs.datanode.transfer.socket.send.buffer.size`.
    pub send_buffer: u64,
    /// The same of what is received: `dfs.datanode.transfer.socket.recv.buffer.size`.
    pub recv_buffer: u64,
    /// Bytes of memory for packets of data connections that are longer than 80 KiB, of all together, at least 128 MiB:
    /// `cairn.datanode.packet-memory`.
    pub packet_memory: u64,
    /// Replicas whose two files stay open between reads, at most an eighth of the descriptors that the process may
    /// have: `cairn.datanode.kept-replicas`.
    pub kept_replicas: usize,
    /// Block groups reconstructed at once: `dfs.datanode.ec.reconstruction.threads`.
    pub reconstruction_threads: usize,
    /// A unit that takes longer for a buffer is passed over if another can serve:
    /// `dfs.datanode.ec.reconstruction.stripedread.timeout.millis`.
    pub reconstruction_read_timeout: Duration,
    /// Bytes of each unit that are decoded in one step:
    /// `dfs.datanode.ec.reconstruction.stripedread.buffer.size`, of which Hadoop takes 64 KiB.
    pub reconstruction_buffer_len: u64,
    /// Share of the sources that a reconstruction counts as transfers:
    /// `dfs.datanode.ec.reconstruction.xmits.weight`.
    pub reconstruction_xmits_weight: f64,
    /// Bytes per second read for reconstruction, 0 for any:
    /// `dfs.datanode.ec.reconstruct.read.bandwidthPerSec`.
    pub reconstruction_read_bandwidth: u64,
    /// Bytes per second written by reconstruction, 0 for any:
    /// `dfs.datanode.ec.reconstruct.write.bandwidthPerSec`.
    pub reconstruction_write_bandwidth: u64,
    /// Bytes per second that the block scanner reads of each volume, 0 for no scanner:
    /// `dfs.block.scanner.volume.bytes.per.second`.
    pub scan_bytes_per_second: u64,
    /// Time in which the block scanner looks at every replica once, if its rate allows; zero for no scanner:
    /// `dfs.datanode.scan.period.hours`.
    pub scan_period: Duration,
    /// Time between saves of the block scanner's place: `dfs.block.scanner.cursor.save.interval.ms`.
    pub scan_cursor_save_interval: Duration,
    /// Whether the block scanner passes replicas over that were read within the period:
    /// `dfs.block.scanner.skip.recent.accessed`.
    pub scan_skip_recently_accessed: bool,
    /// Time between comparisons of the folders with what is known, zero for none:
    /// `dfs.datanode.directoryscan.interval`.
    pub directory_scan_interval: Duration,
    /// Whether it is measured how long other DataNodes take: `dfs.datanode.peer.stats.enabled`.
    pub peer_stats: bool,
    /// Those of whom something is known before one of them can be slow: `dfs.datanode.min.outlier.detection.nodes`.
    pub outlier_min_nodes: u64,
    /// More samples of one than this count as that: `dfs.datanode.peer.metrics.min.outlier.detection.samples`.
    pub outlier_min_samples: u64,
    /// Milliseconds that are never slow: `dfs.datanode.slowpeer.low.threshold.ms`.
    pub slow_peer_low_ms: u64,
    /// Time between reports of slow ones: `dfs.datanode.outliers.report.interval`.
    pub outliers_report_interval: Duration,
    /// Part of the work on disks that is measured, in hundredths; 0 for none:
    /// `dfs.datanode.fileio.profiling.sampling.percentage`.
    pub disk_sampling_percentage: u32,
    /// Disks of which something is known before one of them can be slow: `dfs.datanode.min.outlier.detection.disks`.
    pub outlier_min_disks: u64,
    /// Milliseconds that are never slow for a disk: `dfs.datanode.slowdisk.low.threshold.ms`.
    pub slow_disk_low_ms: u64,
    /// Slow disks that get no new replicas, at most: `dfs.datanode.max.slowdisks.to.exclude`.
    pub max_slow_disks_avoided: usize,
    /// A step of a write that takes longer is told in the log: `dfs.datanode.slow.io.warning.threshold.ms`.
    pub slow_io_threshold: Duration,
    /// Whether acknowledgements tell that this machine is congested: `dfs.pipeline.ecn`.
    pub tells_congestion: bool,
    /// Processes for each processor from which on it is: `dfs.pipeline.congestion.ratio`.
    pub congestion_ratio: f64,
    /// Whether acknowledgements tell that the NameNode takes this DataNode for slow: `dfs.pipeline.slownode`.
    pub tells_slow: bool,
    /// Reads the configuration files again, for settings that can change; `None` where there are none.
    pub reload: Option<Reload<DataNodeConfig>>,
    /// Reply with the host name instead of the address when connecting to DataNodes:
    /// `dfs.datanode.use.datanode.hostname`.
    pub connect_via_hostname: bool,
}

impl Default for DataNodeConfig {
    fn default() -> DataNodeConfig {
        let loopback = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        DataNodeConfig {
            data_dirs: Vec::new(),
            data_dir_mode: 0o700,
            name_node: "127.0.0.1:8020".into(),
            xfer_addr: loopback(9866),
            domain_socket: None,
            check_domain_socket: true,
            short_circuit: false,
            ipc_addr: loopback(9867),
            http_addr: None,
            http_idle_timeout: Duration::from_secs(60),
            web: None,
            properties: Vec::new(),
            hostname: None,
            user: "hdfs".into(),
            permissions_enabled: true,
            proxy_users: Vec::new(),
            service_policy: None,
            supergroup: "supergroup".into(),
            groups: GroupsConfig::default(),
            durability: Durability::Stable,
            reserved_bytes: 0,
            failed_volumes_tolerated: Some(0),
            disk_check_timeout: Duration::from_secs(10 * 60),
            heartbeat_interval: Duration::from_secs(3),
            block_report_interval: Duration::from_secs(6 * 3600),
            block_report_split_threshold: 1_000_000,
            read_timeout: Duration::from_secs(60),
            write_timeout: Duration::from_secs(480),
            keepalive: Duration::from_secs(4),
            writer_stop_timeout: Duration::from_secs(60),
            max_connections: 4096,
            max_moves: 100,
            balance_bandwidth: 100 << 20,
            transfer_bandwidth: 0,
            read_bandwidth: 0,
            write_bandwidth: 0,
            drop_behind_reads: false,
            drop_behind_writes: false,
            sync_behind_writes: false,
            readahead_bytes: 4 << 20,
            preallocation_bytes: 4 << 20,
            max_locked_memory: 0,
            cache_report_interval: Duration::from_secs(10),
            lazy_writer_interval: Duration::from_secs(60),
            non_local_lazy_persist: false,
            block_len_estimate: 128 << 20,
            send_packet_len: 256 << 10,
            transfer_to_allowed: true,
            send_buffer: 1 << 20,
            recv_buffer: 1 << 20,
            packet_memory: 512 << 20,
            kept_replicas: 256,
            reconstruction_threads: 8,
            reconstruction_read_timeout: Duration::from_secs(5),
            reconstruction_buffer_len: 1 << 20,
            reconstruction_xmits_weight: 0.5,
            reconstruction_read_bandwidth: 0,
            reconstruction_write_bandwidth: 0,
            scan_bytes_per_second: 1 << 20,
            scan_period: Duration::from_secs(504 * 3600),
            scan_cursor_save_interval: Duration::from_secs(600),
            scan_skip_recently_accessed: false,
            directory_scan_interval: Duration::from_secs(21_600),
            peer_stats: false,
            outlier_min_nodes: 10,
            outlier_min_samples: 1000,
            slow_peer_low_ms: 5,
            outliers_report_interval: Duration::from_secs(30 * 60),
            disk_sampling_percentage: 0,
            outlier_min_disks: 5,
            slow_disk_low_ms: 20,
            max_slow_disks_avoided: 0,
            slow_io_threshold: Duration::from_millis(300),
            tells_congestion: false,
            congestion_ratio: 1.5,
            tells_slow: false,
            reload: None,
            connect_via_hostname: false,
        }
    }
}
