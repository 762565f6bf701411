//! What a DataNode is told at its start, and the table of the keys that tell it. The binary reads files.

use crate::security::SecurityConfig;
use cairn_access::groups::GroupsConfig;
use cairn_keys::{
    ADDRESS, BOOLEAN, BYTES, Kind, MILLIS, MODE, OPTIONAL_ADDRESS, OPTIONAL_TEXT, PATIENCE,
    SECONDS, TEXT, WrongValue, keys, number, positive, value,
};
use cairn_net::http::{HttpAuth, SharedHandler};
use cairn_net::reach::Reach;
use cairn_net::rpc_client::SharedCredentials;
use cairn_net::tls::TlsFiles;
use cairn_operate::reconfiguration::Reload;
use cairn_security::transfer::TransferPolicy;
use cairn_stripe::StorageType;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
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

/// As `dfs.datanode.data.dir` names it: a folder, perhaps behind its medium in brackets (`[SSD]file:///data/1`).
impl FromStr for DataDir {
    type Err = WrongValue;

    fn from_str(text: &str) -> Result<DataDir, WrongValue> {
        let storage_type = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((name, _)) => medium(name)?,
            None => StorageType::Disk,
        };
        Ok(DataDir { path: value::folder(text), storage_type, capacity: None })
    }
}

/// A storage type that a DataNode can have, by its name.
pub fn medium(name: &str) -> Result<StorageType, WrongValue> {
    let known = StorageType::by_name(name).filter(|kind| *kind != StorageType::Provided);
    known.ok_or_else(|| format!("{name} is no storage type that a DataNode can have").into())
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

/// The longest that a disk may take for one replica after the other, where nothing else is said.
const USUAL_SCAN_PERIOD: Duration = Duration::from_secs(504 * 3600);

const VOLUMES: Kind<Vec<DataDir>> =
    Kind::new("folders, each perhaps behind [DISK], [SSD], …", |text| {
        value::list(text).map(str::parse).collect()
    });

const DURABILITY: Kind<Durability> = Kind::new("stable or page-cache", |text| match text {
    "stable" => Ok(Durability::Stable),
    "page-cache" => Ok(Durability::PageCache),
    _ => Err("it takes stable or page-cache".into()),
});

const TOLERATED: Kind<Option<usize>> = Kind::new("number, or -1", |text| match text {
    "-1" => Ok(None),
    text => match text.parse() {
        Ok(number) => Ok(Some(number)),
        Err(_) => Err("it takes a number of volumes, or -1".into()),
    },
});

/// Source: Hadoop 3.5.0 `DatasetVolumeChecker`.
const MILLIS_ABOVE_ZERO: Kind<Duration> =
    Kind::new("time above 0, in ms", |text| match MILLIS.parse(text)? {
        Duration::ZERO => Err("it takes a time above 0".into()),
        time => Ok(time),
    });

const POSITIVE_MILLIS: Kind<Duration> = Kind::new("number above 0, in ms", |text| {
    Ok(Duration::from_millis(positive::<u64>().parse(text)?))
});

const SECONDS_OR_NEVER: Kind<Duration> =
    Kind::new("time, in s; 0 or less for never", |text| match text.starts_with('-') {
        true => Ok(Duration::ZERO),
        false => SECONDS.parse(text),
    });

const SCAN_PERIOD: Kind<Duration> =
    Kind::new("hours; 0 for 504, less for no scanner", |text| match text.parse::<i64>()? {
        0 => Ok(USUAL_SCAN_PERIOD),
        hours => Ok(Duration::from_secs(u64::try_from(hours).unwrap_or(0).saturating_mul(3600))),
    });

const PERCENTAGE: Kind<u32> =
    Kind::new("number up to 100", |text| Ok(text.parse::<i32>()?.clamp(0, 100).unsigned_abs()));

const CONGESTION: Kind<f64> = Kind::new("number", |text| match text.parse::<f64>()? {
    ratio if ratio > 0.0 => Ok(ratio),
    // As Hadoop takes it.
    _ => Ok(1.5),
});

keys! {
    /// Settings of a DataNode; `Default` has Hadoop's defaults, except that durability is
    /// [`Durability::Stable`] and that addresses are on the loopback interface.
    #[derive(Clone, Debug)]
    pub struct DataNodeConfig, live Live {
        /// Volumes.
        data_dirs: Vec<DataDir>, "dfs.datanode.data.dir" = "" as VOLUMES, live Volumes;
        /// Permission bits of their folders.
        data_dir_mode: u32, "dfs.datanode.data.dir.perm" = "700" as MODE;
        /// Data transfer listens here.
        xfer_addr: SocketAddr, "dfs.datanode.address" = "127.0.0.1:9866" as ADDRESS;
        /// Clients on this machine find the data transfer here, too; `_PORT` in it stands for the port of
        /// `xfer_addr`.
        domain_socket: Option<String>, "dfs.domain.socket.path" = "" as OPTIONAL_TEXT;
        /// Whether clients on this machine may have the files of replicas.
        short_circuit: bool, "dfs.client.read.shortcircuit" = "false" as BOOLEAN;
        /// RPC listens here.
        ipc_addr: SocketAddr, "dfs.datanode.ipc.address" = "127.0.0.1:9867" as ADDRESS;
        /// Pages are served here; none are without it, which deviates from Hadoop.
        http_addr: Option<SocketAddr>, "dfs.datanode.http.address" = "" as OPTIONAL_ADDRESS;
        /// How long an HTTP connection may rest.
        http_idle_timeout: Duration, "hadoop.http.idle_timeout.ms" = "60000" as MILLIS;
        /// Name this DataNode registers under; the address if absent.
        hostname: Option<String>, "dfs.datanode.hostname" = "" as OPTIONAL_TEXT;
        /// Whether some calls are for superusers only.
        permissions_enabled: bool, "dfs.permissions.enabled" = "true" as BOOLEAN;
        /// Group whose members are superusers beside `user`.
        supergroup: String, "dfs.permissions.superusergroup" = "supergroup" as TEXT;
        /// What an acknowledged block has survived. Hadoop knows `dfs.datanode.synconclose` instead.
        durability: Durability, "cairn.durability" = "stable" as DURABILITY;
        /// Bytes of each volume left to others.
        reserved_bytes: u64, "dfs.datanode.du.reserved" = "0" as BYTES;
        /// Volumes that may fail before the DataNode gives up, fewer than there are; -1 for all but one.
        failed_volumes_tolerated: Option<usize>, "dfs.datanode.failed.volumes.tolerated" = "0" as TOLERATED;
        /// How long nothing may get on on a disk before its volume has failed.
        disk_check_timeout: Duration, "dfs.datanode.disk.check.timeout" = "10m" as MILLIS_ABOVE_ZERO;
        /// Time between heartbeats.
        heartbeat_interval: Duration, "dfs.heartbeat.interval" = "3" as SECONDS;
        /// Time between full block reports.
        block_report_interval: Duration, "dfs.blockreport.intervalMsec" = "21600000" as MILLIS, live ReportInterval;
        /// Replicas above which each storage is reported in its own call.
        block_report_split_threshold: usize,
        "dfs.blockreport.split.threshold" = "1000000" as number(), live ReportSplit;
        /// A peer that sends nothing for this long is given up.
        read_timeout: Duration, "dfs.client.socket-timeout" = "60000" as PATIENCE;
        /// A peer that takes nothing for this long is given up.
        write_timeout: Duration, "dfs.datanode.socket.write.timeout" = "480000" as PATIENCE;
        /// How long a connection may wait for its next operation.
        keepalive: Duration, "dfs.datanode.socket.reuse.keepalive" = "4000" as MILLIS;
        /// How long to wait for a writer that must stop.
        writer_stop_timeout: Duration, "dfs.datanode.xceiver.stop.timeout.millis" = "60000" as MILLIS;
        /// Connections served at once.
        max_connections: usize, "dfs.datanode.max.transfer.threads" = "4096" as number(), live Connections;
        /// Blocks moved by a balancer at once.
        max_moves: usize, "dfs.datanode.balance.max.concurrent.moves" = "100" as number(), live Moves;
        /// Bytes per second for balancing.
        balance_bandwidth: u64, "dfs.datanode.balance.bandwidthPerSec" = "100m" as BYTES, live BalanceBandwidth;
        /// Bytes per second of all copies that the NameNode orders, 0 for any.
        transfer_bandwidth: u64, "dfs.datanode.data.transfer.bandwidthPerSec" = "0" as BYTES, live TransferBandwidth;
        /// Bytes per second of all reads by clients, 0 for any.
        read_bandwidth: u64, "dfs.datanode.data.read.bandwidthPerSec" = "0" as BYTES, live ReadBandwidth;
        /// Bytes per second of all blocks that are received through pipelines, 0 for any.
        write_bandwidth: u64, "dfs.datanode.data.write.bandwidthPerSec" = "0" as BYTES, live WriteBandwidth;
        /// Long reads are forgotten by the page cache, unless the reader wants otherwise.
        drop_behind_reads: bool, "dfs.datanode.drop.cache.behind.reads" = "false" as BOOLEAN;
        /// What is written is forgotten by the page cache as well.
        drop_behind_writes: bool, "dfs.datanode.drop.cache.behind.writes" = "false" as BOOLEAN;
        /// What is written goes to the disk early also where it need not be there when a block is closed.
        sync_behind_writes: bool, "dfs.datanode.sync.behind.writes" = "false" as BOOLEAN;
        /// Bytes that are read ahead of a long read, unless the reader wants otherwise.
        readahead_bytes: u64, "dfs.datanode.readahead.bytes" = "4m" as BYTES;
        /// Bytes that a growing replica is given on its disk at once, where that helps (ext4), 0 for none.
        preallocation_bytes: u64, "cairn.datanode.preallocation" = "4m" as BYTES;
        /// Bytes of memory for replicas that are cached or on RAM_DISK volumes, 0 for none.
        max_locked_memory: u64, "dfs.datanode.max.locked.memory" = "0" as BYTES;
        /// Time between reports of the replicas in memory.
        cache_report_interval: Duration, "dfs.cachereport.intervalMsec" = "10000" as MILLIS, live CacheReportInterval;
        /// Time between rounds of the lazy writer.
        lazy_writer_interval: Duration, "dfs.datanode.lazywriter.interval.sec" = "60" as SECONDS;
        /// Whether writers on other machines may have replicas in memory.
        non_local_lazy_persist: bool, "dfs.datanode.non.local.lazy.persist" = "false" as BOOLEAN;
        /// Space asked of a volume for a block whose length is not known.
        block_len_estimate: u64, "dfs.blocksize" = "128m" as BYTES;
        /// Whether packets may go from files to sockets within the kernel, where that pays.
        transfer_to_allowed: bool, "dfs.datanode.transferTo.allowed" = "true" as BOOLEAN;
        /// Bytes that the kernel may keep of what is sent over a data connection, 0 to leave it to the kernel.
        send_buffer: u64, "dfs.datanode.transfer.socket.send.buffer.size" = "1m" as BYTES;
        /// Bytes that the kernel may keep of what is received over a data connection, 0 to leave it to the kernel.
        recv_buffer: u64, "dfs.datanode.transfer.socket.recv.buffer.size" = "1m" as BYTES;
        /// Bytes of memory for packets of data connections that are longer than 80 KiB, of all together, at least 128
        /// MiB.
        packet_memory: u64 = 512 << 20,
        "cairn.datanode.packet-memory" = "an eighth of the memory; no more than 512 KiB for each connection" as BYTES;
        /// Replicas whose two files stay open between reads, at most an eighth of the descriptors that the process
        /// may have.
        kept_replicas: usize, "cairn.datanode.kept-replicas" = "256" as number();
        /// Block groups reconstructed at once.
        reconstruction_threads: usize,
        "dfs.datanode.ec.reconstruction.threads" = "8" as number(), live ReconstructionThreads;
        /// A unit that takes longer for a buffer is passed over if another can serve.
        reconstruction_read_timeout: Duration,
        "dfs.datanode.ec.reconstruction.stripedread.timeout.millis" = "5000" as PATIENCE;
        /// Bytes of each unit that are decoded in one step, of which Hadoop takes 64 KiB.
        reconstruction_buffer_len: u64, "dfs.datanode.ec.reconstruction.stripedread.buffer.size" = "1m" as BYTES;
        /// Share of the sources that a reconstruction counts as transfers.
        reconstruction_xmits_weight: f64, "dfs.datanode.ec.reconstruction.xmits.weight" = "0.5" as number();
        /// Bytes per second read for reconstruction, 0 for any.
        reconstruction_read_bandwidth: u64,
        "dfs.datanode.ec.reconstruct.read.bandwidthPerSec" = "0" as BYTES, live ReconstructionRead;
        /// Bytes per second written by reconstruction, 0 for any.
        reconstruction_write_bandwidth: u64,
        "dfs.datanode.ec.reconstruct.write.bandwidthPerSec" = "0" as BYTES, live ReconstructionWrite;
        /// Bytes per second that the block scanner reads of each volume, 0 for no scanner.
        scan_bytes_per_second: u64, "dfs.block.scanner.volume.bytes.per.second" = "1048576" as BYTES, live ScanRate;
        /// Time in which the block scanner looks at every replica once, if its rate allows; zero for no scanner.
        scan_period: Duration, "dfs.datanode.scan.period.hours" = "504" as SCAN_PERIOD, live ScanPeriod;
        /// Time between saves of the block scanner's place.
        scan_cursor_save_interval: Duration, "dfs.block.scanner.cursor.save.interval.ms" = "600000" as MILLIS;
        /// Whether the block scanner passes replicas over that were read within the period.
        scan_skip_recently_accessed: bool, "dfs.block.scanner.skip.recent.accessed" = "false" as BOOLEAN;
        /// Time between comparisons of the folders with what is known, zero for none.
        directory_scan_interval: Duration, "dfs.datanode.directoryscan.interval" = "21600" as SECONDS_OR_NEVER;
        /// Whether it is measured how long other DataNodes take.
        peer_stats: bool, "dfs.datanode.peer.stats.enabled" = "false" as BOOLEAN, live PeerStats;
        /// Those of whom something is known before one of them can be slow.
        outlier_min_nodes: u64, "dfs.datanode.min.outlier.detection.nodes" = "10" as positive(), live OutlierMinNodes;
        /// More samples of one than this count as that.
        outlier_min_samples: u64,
        "dfs.datanode.peer.metrics.min.outlier.detection.samples" = "1000" as positive(), live OutlierMinSamples;
        /// Milliseconds that are never slow.
        slow_peer_low_ms: u64, "dfs.datanode.slowpeer.low.threshold.ms" = "5" as positive(), live SlowPeerLow;
        /// Time between reports of slow ones.
        outliers_report_interval: Duration,
        "dfs.datanode.outliers.report.interval" = "30m" as MILLIS, live OutliersReport;
        /// Part of the work on disks that is measured, in hundredths; 0 for none.
        disk_sampling_percentage: u32,
        "dfs.datanode.fileio.profiling.sampling.percentage" = "0" as PERCENTAGE, live DiskSampling;
        /// Disks of which something is known before one of them can be slow.
        outlier_min_disks: u64, "dfs.datanode.min.outlier.detection.disks" = "5" as positive(), live OutlierMinDisks;
        /// Milliseconds that are never slow for a disk.
        slow_disk_low_ms: u64, "dfs.datanode.slowdisk.low.threshold.ms" = "20" as positive(), live SlowDiskLow;
        /// Slow disks that get no new replicas, at most.
        max_slow_disks_avoided: usize,
        "dfs.datanode.max.slowdisks.to.exclude" = "0" as number(), live SlowDisksAvoided;
        /// A step of a write that takes longer is told in the log.
        slow_io_threshold: Duration,
        "dfs.datanode.slow.io.warning.threshold.ms" = "300" as POSITIVE_MILLIS, live SlowIo;
        /// Whether acknowledgements tell that this machine is congested.
        tells_congestion: bool, "dfs.pipeline.ecn" = "false" as BOOLEAN;
        /// Processes for each processor from which on it is.
        congestion_ratio: f64, "dfs.pipeline.congestion.ratio" = "1.5" as CONGESTION;
        /// Whether acknowledgements tell that the NameNode takes this DataNode for slow.
        tells_slow: bool, "dfs.pipeline.slownode" = "false" as BOOLEAN;
        /// Reply with the host name instead of the address when connecting to DataNodes.
        connect_via_hostname: bool, "dfs.datanode.use.datanode.hostname" = "false" as BOOLEAN;
    }
    parts {}
    by_hand {
        /// Where to find the NameNode, before `fs.defaultFS`.
        "dfs.namenode.rpc-address" = "127.0.0.1:8020" as "host:port";
        /// The same, before all others.
        "dfs.namenode.servicerpc-address" = "" as "host:port";
        /// Most bytes of each volume that count as its capacity; all without it.
        "cairn.datanode.capacity" = "" as "bytes";
    }
    others {
        /// Where to find the NameNode, or those of its nameservice, `host:port`: `dfs.namenode.servicerpc-address`,
        /// `dfs.namenode.rpc-address`, `fs.defaultFS`.
        name_nodes: Vec<String> = vec!["127.0.0.1:8020".into()];
        /// Whether others could put their own socket in its place is looked at before it is bound. Only tests may do
        /// without.
        check_domain_socket: bool = true;
        /// Where pages are served by HTTPS, and with which certificate, if at all: `dfs.http.policy`,
        /// `dfs.datanode.https.address`.
        https: Option<(SocketAddr, TlsFiles)> = None;
        /// How clients by HTTP show who they are; they are believed for `None`.
        http_auth: Option<HttpAuth> = None;
        /// What serves files by HTTP, beside the pages: `dfs.webhdfs.enabled`.
        web: Option<SharedHandler> = None;
        /// Every key that was set, for `/conf`.
        properties: Vec<(String, String)> = Vec::new();
        /// User that the RPCs to the NameNode name.
        user: String = "hdfs".into();
        /// What shows the NameNode who this DataNode is; without it that is only said.
        credentials: Option<SharedCredentials> = None;
        /// How callers of the RPC port show who they are; they are believed for `None`: `hadoop.security.authentication`.
        security: Option<SecurityConfig> = None;
        /// What keeps data from others: `dfs.encrypt.data.transfer`, or `dfs.data.transfer.protection` with Kerberos;
        /// without it everything is plain.
        data_transfer: Option<TransferPolicy> = None;
        /// Which groups users are in.
        groups: GroupsConfig = GroupsConfig::default();
        /// Properties that say who may act for whom: `hadoop.proxyuser.*`.
        proxy_users: Vec<(String, String)> = Vec::new();
        /// Properties that say who may use which protocol, `security.*`, with blanks as they stand there; `None`
        /// where everybody may use all: `hadoop.security.authorization`.
        service_policy: Option<Vec<(String, String)>> = None;
        /// Data bytes of a packet that this DataNode sends to readers.
        send_packet_len: usize = 256 << 10;
        /// Reads the configuration files again, for settings that can change; `None` where there are none.
        reload: Option<Reload<DataNodeConfig>> = None;
        /// With whom it has connections; what can be cut is for faults on purpose.
        reach: Reach = Reach::default();
    }
}
