//! What an operator can set of a NameNode. Defaults are Hadoop 3.5.0's (`hdfs-default.xml`).
//!
//! Plain values: reading keys from files is the binary's duty. Each field names its Hadoop key.

pub(crate) mod parts;
pub mod quorum;

use cairn_namespace::snapshot::SnapshotSettings;
use cairn_net::groups::GroupsConfig;
use cairn_net::http::HttpAuth;
use cairn_net::reconfiguration::Reload;
use cairn_net::tls::TlsFiles;
pub use cairn_redundancy::SlowConfig;
use cairn_stripe::StoragePolicy;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use cairn_kms::{KmsOptions, ProviderPath, QueueOptions};

use crate::block_tokens::BlockTokenConfig;
use crate::host_names;
use crate::salvager::Salvager;
use crate::security::SecurityConfig;
use crate::web::Web;
use quorum::QuorumConfig;

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;

/// When a mutation may be acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Durability {
    /// After its log record is on stable storage.
    #[default]
    Stable,
    /// After its log record is in the operating system's page cache.
    PageCache,
}

/// Where the rack of a DataNode is looked up.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum RackSource {
    /// Every DataNode is in `/default-rack`.
    #[default]
    Default,
    /// A file of `host-or-address rack` lines. Key `net.topology.table.file.name`.
    Table(PathBuf),
    /// A program that gets an address and prints its rack. Key `net.topology.script.file.name`.
    Script(PathBuf),
    /// Racks by host name, address, or `address:port` of data transfer, for an embedded cluster.
    Fixed(Vec<(String, String)>),
}

/// What `dfs.hosts` names. Key `dfs.namenode.hosts.provider.classname`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum HostsFormat {
    /// A list of those who may serve, with `dfs.hosts.exclude` for those to be decommissioned
    /// (`HostFileManager`).
    #[default]
    Lists,
    /// One JSON file with states, maintenance and upgrade domains (`CombinedHostFileManager`).
    Combined,
}

/// What the audit log is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditConfig {
    /// The file; none for no log. Key `cairn.namenode.audit-log`.
    pub file: Option<PathBuf>,
    /// Commands that are not told of. Key `dfs.namenode.audit.log.debug.cmdlist`.
    pub silent_commands: Vec<String>,
    /// Whether what clients say of themselves is. Key `hadoop.caller.context.enabled`.
    pub caller_context: bool,
    /// Characters of that, at most. Key `hadoop.caller.context.max.size`.
    pub caller_context_max: usize,
    /// Bytes of its signature; longer ones are left out. Key `hadoop.caller.context.signature.max.size`.
    pub signature_max: usize,
    /// What is between its parts. Key `hadoop.caller.context.separator`.
    pub separator: String,
    /// Whether the client's port is added to it. Key `dfs.namenode.audit.log.with.remote.port`.
    pub tells_ports: bool,
}

impl Default for AuditConfig {
    fn default() -> AuditConfig {
        AuditConfig {
            file: None,
            silent_commands: Vec::new(),
            caller_context: false,
            caller_context_max: 128,
            signature_max: 40,
            separator: ",".to_string(),
            tells_ports: false,
        }
    }
}

/// What encryption zones need.
#[derive(Clone, Debug)]
pub struct EncryptionConfig {
    /// The key servers; none for no zones. Key `hadoop.security.key.provider.path`.
    pub key_provider: Option<ProviderPath>,
    /// How patient the NameNode is with them. Keys `hadoop.security.kms.client.*`.
    pub kms: KmsOptions,
    /// Keys that are kept ready for new files. Keys `hadoop.security.kms.client.encrypted.key.cache.*`.
    pub ready: QueueOptions,
    /// How long after the start such keys are fetched. Key `dfs.namenode.edekcacheloader.initial.delay.ms`.
    pub warm_up_delay: Duration,
    /// How long after that failed it is tried again. Key `dfs.namenode.edekcacheloader.interval.ms`.
    pub warm_up_interval: Duration,
    /// How often it is tried. Key `dfs.namenode.edekcacheloader.max-retries`.
    pub warm_up_tries: u32,
    /// Zones on a page of their list. Key `dfs.namenode.list.encryption.zones.num.responses`.
    pub listed_zones_max: usize,
    /// The same of the list of re-encryptions. Key `dfs.namenode.list.reencryption.status.num.responses`.
    pub listed_reencryptions_max: usize,
    /// Files whose keys are encrypted anew at a time. Key `dfs.namenode.reencrypt.batch.size`.
    pub reencryption_batch: usize,
    /// How often zones are looked for that wait for it. Key `dfs.namenode.reencrypt.sleep.interval`.
    pub reencryption_interval: Duration,
}

impl Default for EncryptionConfig {
    fn default() -> EncryptionConfig {
        EncryptionConfig {
            key_provider: None,
            kms: KmsOptions::default(),
            ready: QueueOptions::default(),
            warm_up_delay: Duration::from_secs(3),
            warm_up_interval: Duration::from_secs(1),
            warm_up_tries: 10,
            listed_zones_max: 100,
            listed_reencryptions_max: 100,
            reencryption_batch: 1000,
            reencryption_interval: Duration::from_secs(60),
        }
    }
}

/// The type of checksums that clients are told to use. Key `dfs.checksum.type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ChecksumType {
    /// No checksums.
    Null,
    /// The CRC of zip and Ethernet.
    Crc32,
    /// Castagnoli's.
    #[default]
    Crc32c,
}

/// Who brings replicas to where storage policies say. Key `dfs.storage.policy.satisfier.mode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum SatisfierMode {
    /// Nobody, but who runs a mover.
    #[default]
    None,
    /// A service outside of the NameNode (`hdfs sps`), which fetches what clients ask for.
    External,
}

/// A NameNode's settings.
#[derive(Clone, Debug)]
pub struct NameNodeConfig {
    /// The folder of log and store. Key `dfs.namenode.name.dir`.
    pub name_dir: PathBuf,
    /// `dfs.namenode.storage.dir.perm`: permission bits of that folder.
    pub name_dir_mode: u32,
    /// Formats `name_dir` at start when it is empty or missing; otherwise that is an error.
    pub format_if_empty: bool,
    /// Goes back to the rollback point of a rolling upgrade; without one that is an error.
    pub roll_back: bool,
    /// Cluster id given when formatting; a random one when `None`.
    pub cluster_id: Option<String>,
    /// Where RPC listens; port 0 takes a free one. Key `dfs.namenode.rpc-address`.
    pub rpc_addr: SocketAddr,
    /// Where RPC listens for clients that know no erasure coding, if it does: `cairn.namenode.plain.rpc-address`.
    pub plain_rpc_addr: Option<SocketAddr>,
    /// Where HTTP listens, if at all. Key `dfs.namenode.http-address`.
    pub http_addr: Option<SocketAddr>,
    /// Where HTTPS listens, and with which certificate, if at all. Keys `dfs.http.policy`, `dfs.namenode.https-address`.
    pub https: Option<(SocketAddr, TlsFiles)>,
    /// How clients by HTTP show who they are; they are believed for `None`.
    pub http_auth: Option<HttpAuth>,
    /// How long an HTTP connection may rest: `hadoop.http.idle_timeout.ms`.
    pub http_idle_timeout: Duration,
    /// Longest RPC request accepted, bytes. Key `ipc.maximum.data.length`.
    pub rpc_max_request_len: usize,
    /// Bytes that requests of all connections may take: `cairn.namenode.request-memory`.
    pub request_memory: u64,
    /// An idle RPC connection is closed after this. Key `ipc.client.connection.maxidletime` and
    /// its kin; Hadoop's server scans less often than its clients close.
    pub rpc_idle_timeout: Duration,
    /// Whether the log names calls that take much longer than others. Key `ipc.server.log.slow.rpc`.
    pub logs_slow_calls: bool,
    /// What takes no longer is not named. Key `ipc.server.log.slow.rpc.threshold.ms`.
    pub slow_call_threshold: Duration,
    /// When an answered mutation is durable. No Hadoop key (edits are always synced there).
    pub durability: Durability,
    /// Bytes of memory that the store's cache may take. No Hadoop key.
    pub store_cache_len: usize,

    /// Block length for clients that name none. Key `dfs.blocksize`.
    pub block_len: u64,
    /// Smallest block length of a new file. Key `dfs.namenode.fs-limits.min-block-size`.
    pub min_block_len: u64,
    /// Key `dfs.bytes-per-checksum`.
    pub bytes_per_checksum: u32,
    /// Key `dfs.client-write-packet-size`.
    pub write_packet_len: u32,
    /// Key `io.file.buffer.size`.
    pub file_buffer_len: u32,
    /// Key `dfs.checksum.type`.
    pub checksum_type: ChecksumType,
    /// Minutes that clients keep deleted files in the trash; 0 for no trash. Key `fs.trash.interval`.
    pub trash_interval_minutes: u64,
    /// Minutes between checkpoints of the trash; 0 for the time above. Key `fs.trash.checkpoint.interval`.
    pub trash_checkpoint_minutes: u64,
    /// Whether what is in a trash and is no checkpoint is deleted. Key `fs.trash.clean.trashroot.enable`.
    pub trash_cleans_others: bool,
    /// Replication for clients that name none. Key `dfs.replication`.
    pub replication: u16,
    /// Key `dfs.namenode.replication.min`.
    pub min_replication: u16,
    /// Key `dfs.replication.max`.
    pub max_replication: u16,
    /// Blocks at the end of a file that may lack replicas when it is closed, if more are expected. Key
    /// `dfs.namenode.file.close.num-committed-allowed`.
    pub committed_allowed: usize,
    /// Longest name of one path component, bytes of UTF-8; 0 for no limit.
    /// Key `dfs.namenode.fs-limits.max-component-length`.
    pub max_component_len: usize,
    /// Entries in one directory. Key `dfs.namenode.fs-limits.max-directory-items`.
    pub max_directory_items: u64,
    /// Inodes and blocks together; 0 for any number. Key `dfs.namenode.max.objects`.
    pub max_objects: u64,
    /// Directories that nobody deletes or renames while they are not empty, sorted. Key `fs.protected.directories`.
    pub protected_directories: Vec<String>,
    /// Whether that holds for the directories in them as well. Key `dfs.protected.subdirectories.enable`.
    pub protects_subdirectories: bool,
    /// Blocks of one file. Key `dfs.namenode.fs-limits.max-blocks-per-file`.
    pub max_blocks_per_file: u64,
    /// Extended attributes of one inode. Key `dfs.namenode.fs-limits.max-xattrs-per-inode`.
    pub max_xattrs_per_inode: u64,
    /// Bytes of one extended attribute's name and value.
    /// Key `dfs.namenode.fs-limits.max-xattr-size`.
    pub max_xattr_len: u64,
    /// Whether extended attributes can be used. Key `dfs.namenode.xattrs.enabled`.
    pub xattrs_enabled: bool,
    /// Whether access control lists can be used. Key `dfs.namenode.acls.enabled`.
    pub acls_enabled: bool,
    /// Whether children with a default list ignore the client's umask. Key
    /// `dfs.namenode.posix.acl.inheritance.enabled`.
    pub posix_acl_inheritance: bool,
    /// Whether quotas by type of storage can be set. Key `dfs.quota.by.storage.type.enabled`.
    pub type_quotas_enabled: bool,
    /// Whether the rights to all that is below a path are asked for before its content is summed up, not on the way.
    /// Key `dfs.permissions.ContentSummary.subAccess`.
    pub summaries_check_first: bool,
    /// Whether the owner of a folder can set quotas of those in it. Key `dfs.permissions.allow.owner.set.quota`.
    pub owners_set_quotas: bool,
    /// Limits and switches of snapshots. Keys `dfs.namenode.snapshot.*`, `dfs.namenode.snapshotdiff.*`.
    pub snapshots: SnapshotSettings,
    /// Whether a snapshot is deleted only when it is the earliest of its directory.
    /// Key `dfs.namenode.snapshot.deletion.ordered`.
    pub snapshots_deleted_in_order: bool,
    /// How often snapshots are deleted that have become the earliest.
    /// Key `dfs.namenode.snapshot.deletion.ordered.gc.period.ms`.
    pub snapshot_collection_period: Duration,
    /// Whether snapshottable directories have trash of their own. Key `dfs.namenode.snapshot.trashroot.enabled`.
    pub snapshot_trash_roots: bool,
    /// Blocks of one answer that lists lost ones. Key `dfs.namenode.max-corrupt-file-blocks-returned`.
    pub corrupt_files_page: usize,
    /// Entries of one listing answer. Key `dfs.ls.limit`.
    pub listing_limit: usize,
    /// Open files of one page of a list of them. Key `dfs.namenode.list.openfiles.num.responses`.
    pub open_files_page: usize,
    /// Paths of one batched listing. Key `dfs.batched.ls.limit`.
    pub batched_listing_limit: usize,
    /// Time between walks over what cache directives name. Key
    /// `dfs.namenode.path.based.cache.refresh.interval.ms`.
    pub cache_refresh_interval: Duration,
    /// A DataNode that has not obeyed is told again what to cache after this. Key
    /// `dfs.namenode.path.based.cache.retry.interval.ms`.
    pub cache_retry_interval: Duration,
    /// Whether DataNodes are told to cache anything; directives can be made all the same. Key
    /// `dfs.namenode.caching.enabled`.
    pub caching_enabled: bool,
    /// Pools of one `listCachePools`. Key `dfs.namenode.list.cache.pools.num.responses`.
    pub cache_pools_page: usize,
    /// Directives of one `listCacheDirectives`. Key `dfs.namenode.list.cache.directives.num.responses`.
    pub cache_directives_page: usize,
    /// Events of one `getEditsFromTxid`. Key `dfs.namenode.inotify.max.events.per.rpc`.
    pub inotify_events_page: usize,
    /// Bytes of events that are kept on the disk at most. Key `cairn.namenode.inotify.history`.
    pub inotify_history_len: u64,
    /// Bytes of the log that stay behind the store, so that backups can have changes only.
    pub kept_log_len: u64,
    /// Precision of access times; zero turns them off. Key `dfs.namenode.accesstime.precision`.
    pub access_time_precision: Duration,

    /// Whether permissions are checked. Key `dfs.permissions.enabled`.
    pub permissions_enabled: bool,
    /// Reads the configuration files again, for settings that can change; `None` where there are none.
    pub reload: Option<Reload<NameNodeConfig>>,
    /// The user who may do everything; the user of this process when `None`.
    pub superuser: Option<String>,
    /// How clients show who they are; they are believed for `None`. Key `hadoop.security.authentication`.
    pub security: Option<SecurityConfig>,
    /// DataNodes and clients are to encrypt all data. Key `dfs.encrypt.data.transfer`.
    pub encrypts_data: bool,
    /// What block tokens are like; there are none for `None`. Key `dfs.block.access.token.enable`.
    pub block_tokens: Option<BlockTokenConfig>,
    /// The group whose members may do everything. Key `dfs.permissions.superusergroup`.
    pub supergroup: String,
    /// Which groups users are in.
    pub groups: GroupsConfig,
    /// Properties that say who may use which protocol, with blanks as they stand there; `None` where everybody may use
    /// all. Keys `hadoop.security.authorization`, `security.*`.
    pub service_policy: Option<Vec<(String, String)>>,
    /// The folder of users' homes, whose trash is emptied. Key `dfs.user.home.dir.prefix`.
    pub homes: String,

    /// The policy that `setPolicy` without a name sets, enabled at format; none when empty.
    /// Key `dfs.namenode.ec.system.default.policy`.
    pub ec_default_policy: String,
    /// Longest cell of a user-defined policy, bytes. Key `dfs.namenode.ec.policies.max.cellsize`.
    pub ec_max_cell_len: u32,
    /// Whether policies can be added. Key `dfs.namenode.ec.userdefined.policy.allowed`.
    pub ec_user_policies: bool,
    /// How long a file must be closed until its blocks may be put into contiguous groups. Key
    /// `cairn.ec.contiguous.quiet-time`.
    pub group_quiet: Duration,
    /// The same for a short last block; twice as long after each append that met it, up to a week. Key
    /// `cairn.ec.contiguous.short-quiet-time`.
    pub group_short_quiet: Duration,
    /// Fewest bytes of a block that may be put into a contiguous group. Key `cairn.ec.contiguous.min-length`.
    pub group_len_min: u64,
    /// Whether shorter blocks are packed into containers. Key `cairn.ec.packing.enabled`.
    pub packs: bool,
    /// Bytes of the packed blocks of one container, about. Key `cairn.ec.packing.container-size`.
    pub container_len: u64,
    /// How long blocks wait for others until they are packed in smaller containers. Key `cairn.ec.packing.patience`.
    pub pack_patience: Duration,
    /// The part of the bytes of a group of containers that may be of no block any more. Key
    /// `cairn.ec.packing.dead-share`.
    pub pack_dead_share: f64,
    /// The part of the bytes of three copies that a contiguous group may take at most. Key `cairn.ec.contiguous.pays`.
    pub group_pays: f64,
    /// The part of the bytes of a contiguous group's members that may be of no file any more. Key
    /// `cairn.ec.contiguous.dead-share`.
    pub group_dead_share: f64,
    /// How long stays what a striped file was made of before it was converted. Key `cairn.ec.convert.keep-old`.
    pub keep_converted: Duration,

    /// Heartbeat interval told to no one, but used to judge silence. Key `dfs.heartbeat.interval`.
    pub heartbeat_interval: Duration,
    /// Key `dfs.namenode.heartbeat.recheck-interval`. A DataNode is dead after
    /// `2 * heartbeat_recheck_interval + 10 * heartbeat_interval` of silence.
    pub heartbeat_recheck_interval: Duration,
    /// A DataNode is stale after this silence. Key `dfs.namenode.stale.datanode.interval`.
    pub stale_interval: Duration,
    /// Whether readers get stale DataNodes last. Key `dfs.namenode.avoid.read.stale.datanode`.
    pub avoid_stale_for_read: bool,
    /// Whether writers get none, unless most are stale. Key `dfs.namenode.avoid.write.stale.datanode`.
    pub avoid_stale_for_write: bool,
    /// Part of the DataNodes that are stale from which on writers get such again. Key
    /// `dfs.namenode.write.stale.datanode.ratio`.
    pub stale_write_ratio: f64,
    /// Surplus is deleted first from a DataNode that is so many heartbeats behind others.
    /// Key `dfs.namenode.tolerate.heartbeat.multiplier`.
    pub tolerated_heartbeats: u32,
    /// Key `dfs.namenode.redundancy.interval.seconds`.
    pub redundancy_interval: Duration,
    /// How long a call of a DataNode that waits for work is held, 30 s at most; zero lets work wait for
    /// heartbeats, as Hadoop's does. Key `cairn.namenode.order-hold`.
    pub order_hold: Duration,
    /// Planned copies are forgotten and planned anew after this.
    /// Key `dfs.namenode.reconstruction.pending.timeout-sec`.
    pub pending_timeout: Duration,
    /// Key `dfs.namenode.replication.work.multiplier.per.iteration`.
    pub work_multiplier: u32,
    /// Key `dfs.namenode.replication.max-streams`.
    pub max_streams: u32,
    /// Key `dfs.namenode.replication.max-streams-hard-limit`.
    pub max_streams_hard: u32,
    /// Deletions handed to one DataNode with one heartbeat. Key `dfs.block.invalidate.limit`.
    pub invalidate_limit: usize,
    /// Blocks that a volume must have room for to be given one. Key
    /// `dfs.namenode.block-placement.min-blocks-for.write`.
    pub blocks_of_room: u64,
    /// How long after its start the NameNode has nothing deleted. Key `dfs.namenode.startup.delay.block.deletion.sec`.
    pub deletion_delay: Duration,
    /// Key `dfs.namenode.redundancy.considerLoad`.
    pub consider_load: bool,
    /// Key `dfs.namenode.redundancy.considerLoad.factor`.
    pub load_factor: f64,
    /// Time between walks that look for blocks and groups that no scanner compares with a record, zero for
    /// none. Key `cairn.namenode.scrub.period`.
    pub scrub_period: Duration,
    /// What one DataNode reads for them in a second, at most; 0 for nothing.
    /// Key `cairn.namenode.scrub.bytes-per-second`.
    pub scrub_bytes_per_second: u64,
    /// What is done with DataNodes and disks that DataNodes call slow.
    pub slow: SlowConfig,
    /// Where racks are looked up.
    pub racks: RackSource,
    /// Whether a DataNode is refused when the program that is to tell its rack does not; it is in the default one
    /// otherwise. Key `dfs.namenode.reject-unresolved-dn-topology-mapping`.
    pub refuses_unknown_racks: bool,
    /// Tells whether an address has a name. DataNodes at one that has none are refused; with `None` nobody is asked.
    /// Key `dfs.namenode.datanode.registration.ip-hostname-check`.
    pub name_check: Option<fn(IpAddr) -> bool>,
    /// DataNodes that may register, one `host`, `address` or `address:port` a line; all when `None`.
    /// Key `dfs.hosts`.
    pub hosts_file: Option<PathBuf>,
    /// DataNodes that are to be decommissioned. Key `dfs.hosts.exclude`.
    pub hosts_exclude_file: Option<PathBuf>,
    /// What `hosts_file` is. Key `dfs.namenode.hosts.provider.classname`.
    pub hosts_format: HostsFormat,
    /// Key `dfs.namenode.decommission.interval`.
    pub decommission_interval: Duration,
    /// Key `dfs.namenode.decommission.max.concurrent.tracked.nodes`; 0 for no limit.
    pub max_tracked_nodes: usize,
    /// Key `dfs.namenode.maintenance.replication.min`.
    pub maintenance_min_replication: u16,
    /// Replicas that are to be in distinct upgrade domains, if these count. Keys
    /// `dfs.block.replicator.classname` and `dfs.namenode.upgrade.domain.factor`.
    pub upgrade_domain_factor: Option<usize>,

    /// Share of blocks that must be found before safe mode ends. Key
    /// `dfs.namenode.safemode.threshold-pct`.
    pub safe_mode_threshold: f64,
    /// Replicas with which a block counts as found, if not `min_replication`. Key
    /// `dfs.namenode.safemode.replication.min`.
    pub safe_mode_min_replication: Option<u16>,
    /// Share of blocks that must be found before those that lack redundancy are queued, and so told, if not that of
    /// safe mode. Key `dfs.namenode.replqueue.threshold-pct`.
    pub queue_threshold: Option<f64>,
    /// DataNodes that must live before safe mode ends. Key `dfs.namenode.safemode.min.datanodes`.
    pub safe_mode_min_datanodes: usize,
    /// How long both must hold. Key `dfs.namenode.safemode.extension`.
    pub safe_mode_extension: Duration,

    /// Bytes that must be free where the NameNode keeps its files, else it is in safe mode. Key
    /// `dfs.namenode.resource.du.reserved`.
    pub reserved_len: u64,
    /// Further folders where that much must be free. Key `dfs.namenode.resource.checked.volumes`.
    pub checked_dirs: Vec<PathBuf>,
    /// Time between looks at what is free. Key `dfs.namenode.resource.check.interval`.
    pub resource_check_interval: Duration,

    /// After this silence of its holder a lease can be taken. Key `dfs.namenode.lease-soft-limit` is
    /// not in Hadoop, which has it fixed at 60 s.
    pub lease_soft_limit: Duration,
    /// After this the NameNode recovers it. Key `dfs.namenode.lease-hard-limit-sec`.
    pub lease_hard_limit: Duration,
    /// Key `dfs.namenode.lease-recheck-interval-ms`.
    pub lease_recheck_interval: Duration,
    /// Time between looks for lost files with the policy LAZY_PERSIST, which are deleted; zero for none.
    /// Key `dfs.namenode.lazypersist.file.scrub.interval.sec`.
    pub lazy_persist_scrub_interval: Duration,
    /// Whether storage policies can be set, unset and satisfied. Key `dfs.storage.policy.enabled`.
    pub storage_policies_enabled: bool,
    /// Whether only the superuser may set and unset them. Key `dfs.storage.policy.permissions.superuser-only`.
    pub storage_policies_superuser_only: bool,
    /// The storage policy of files for which none is set. Key `dfs.storage.default.policy`.
    pub default_storage_policy: StoragePolicy,
    /// Key `dfs.storage.policy.satisfier.mode`.
    pub satisfier_mode: SatisfierMode,
    /// Requests that wait for the satisfier, at most. Key `dfs.storage.policy.satisfier.max.outstanding.paths`.
    pub satisfier_queue_limit: usize,
    /// Encryption zones.
    pub encryption: EncryptionConfig,
    /// What is told of calls.
    pub audit: AuditConfig,
    /// How long answers to retried calls are kept. Key `dfs.namenode.retrycache.expirytime.millis`.
    pub retry_cache_expiry: Duration,
    /// How many of them are kept; 0 for any number. Key `cairn.namenode.retrycache.max-entries`.
    pub retry_cache_max: u64,

    /// What reads blocks for `fsck -move`, which fails without. No Hadoop key.
    pub salvager: Option<Arc<dyn Salvager>>,
    /// What serves the tree by HTTP, beside the pages: `dfs.webhdfs.enabled`.
    pub web: Option<Web>,

    /// All configuration as read, for `/conf`.
    pub properties: Vec<(String, String)>,
    /// The NameNodes that this one agrees with on one log; none for a NameNode that stands alone.
    pub quorum: Option<QuorumConfig>,
}

impl Default for NameNodeConfig {
    fn default() -> Self {
        let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
        NameNodeConfig {
            name_dir: PathBuf::from("/tmp/hadoop/dfs/name"),
            name_dir_mode: 0o700,
            format_if_empty: false,
            roll_back: false,
            cluster_id: None,
            rpc_addr: SocketAddr::new(loopback, 8020),
            plain_rpc_addr: None,
            http_addr: Some(SocketAddr::new(loopback, 9870)),
            https: None,
            http_auth: None,
            http_idle_timeout: Duration::from_secs(60),
            rpc_max_request_len: (128 * MIB) as usize,
            request_memory: 1024 * MIB,
            rpc_idle_timeout: Duration::from_secs(120),
            logs_slow_calls: false,
            slow_call_threshold: Duration::ZERO,
            durability: Durability::Stable,
            store_cache_len: (256 * MIB) as usize,
            block_len: 128 * MIB,
            min_block_len: MIB,
            bytes_per_checksum: 512,
            write_packet_len: (64 * KIB) as u32,
            file_buffer_len: (4 * KIB) as u32,
            checksum_type: ChecksumType::Crc32c,
            trash_interval_minutes: 0,
            trash_checkpoint_minutes: 0,
            trash_cleans_others: false,
            replication: 3,
            min_replication: 1,
            max_replication: 512,
            committed_allowed: 0,
            max_component_len: 255,
            max_directory_items: 1024 * 1024,
            max_objects: 0,
            protected_directories: Vec::new(),
            protects_subdirectories: false,
            max_blocks_per_file: 10_000,
            max_xattrs_per_inode: 32,
            max_xattr_len: 16 * KIB,
            xattrs_enabled: true,
            acls_enabled: true,
            posix_acl_inheritance: true,
            type_quotas_enabled: true,
            summaries_check_first: false,
            owners_set_quotas: false,
            corrupt_files_page: 100,
            snapshots: SnapshotSettings::default(),
            snapshots_deleted_in_order: false,
            snapshot_collection_period: Duration::from_secs(300),
            snapshot_trash_roots: false,
            listing_limit: 1000,
            open_files_page: 1000,
            batched_listing_limit: 100,
            cache_refresh_interval: Duration::from_secs(30),
            cache_retry_interval: Duration::from_secs(30),
            caching_enabled: true,
            cache_pools_page: 100,
            cache_directives_page: 100,
            inotify_events_page: 1000,
            inotify_history_len: 128 << 20,
            kept_log_len: 256 << 20,
            access_time_precision: Duration::from_secs(3600),
            permissions_enabled: true,
            reload: None,
            superuser: None,
            security: None,
            encrypts_data: false,
            block_tokens: None,
            supergroup: "supergroup".into(),
            groups: GroupsConfig::default(),
            service_policy: None,
            homes: "/user".into(),
            ec_default_policy: "RS-6-3-1024k".into(),
            ec_max_cell_len: (4 * MIB) as u32,
            ec_user_policies: true,
            group_quiet: Duration::from_secs(600),
            group_short_quiet: Duration::from_secs(3600),
            group_len_min: MIB,
            packs: false,
            container_len: 64 * MIB,
            pack_patience: Duration::from_secs(24 * 3600),
            pack_dead_share: 0.2,
            group_pays: 0.6,
            group_dead_share: 0.25,
            keep_converted: Duration::from_secs(24 * 3600),
            heartbeat_interval: Duration::from_secs(3),
            heartbeat_recheck_interval: Duration::from_secs(300),
            stale_interval: Duration::from_secs(30),
            avoid_stale_for_read: true,
            avoid_stale_for_write: true,
            stale_write_ratio: 0.5,
            tolerated_heartbeats: 4,
            redundancy_interval: Duration::from_secs(3),
            order_hold: Duration::from_secs(30),
            pending_timeout: Duration::from_secs(300),
            work_multiplier: 2,
            max_streams: 2,
            max_streams_hard: 4,
            invalidate_limit: 1000,
            blocks_of_room: 1,
            deletion_delay: Duration::ZERO,
            scrub_period: Duration::from_secs(504 * 3600),
            scrub_bytes_per_second: 4 * MIB,
            consider_load: true,
            load_factor: 2.0,
            slow: SlowConfig::default(),
            racks: RackSource::Default,
            refuses_unknown_racks: false,
            name_check: Some(host_names::is_resolved),
            hosts_file: None,
            hosts_exclude_file: None,
            hosts_format: HostsFormat::Lists,
            decommission_interval: Duration::from_secs(30),
            max_tracked_nodes: 100,
            maintenance_min_replication: 1,
            upgrade_domain_factor: None,
            safe_mode_threshold: 0.999,
            safe_mode_min_replication: None,
            queue_threshold: None,
            safe_mode_min_datanodes: 0,
            safe_mode_extension: Duration::from_secs(30),
            reserved_len: 100 * MIB,
            checked_dirs: Vec::new(),
            resource_check_interval: Duration::from_secs(5),
            lease_soft_limit: Duration::from_secs(60),
            lease_hard_limit: Duration::from_secs(1200),
            lease_recheck_interval: Duration::from_secs(2),
            lazy_persist_scrub_interval: Duration::from_secs(300),
            storage_policies_enabled: true,
            storage_policies_superuser_only: false,
            default_storage_policy: StoragePolicy::HOT,
            satisfier_mode: SatisfierMode::None,
            satisfier_queue_limit: 10_000,
            encryption: EncryptionConfig::default(),
            audit: AuditConfig::default(),
            retry_cache_expiry: Duration::from_secs(600),
            retry_cache_max: 1 << 20,
            salvager: None,
            web: None,
            properties: Vec::new(),
            quorum: None,
        }
    }
}

impl NameNodeConfig {
    /// The storage policy in force where `set` is set; 0 for none.
    pub fn storage_policy(&self, set: u8) -> StoragePolicy {
        match set {
            StoragePolicy::UNSPECIFIED => self.default_storage_policy,
            set => StoragePolicy::by_id(set),
        }
    }

    /// Silence after which a DataNode counts as dead.
    ///
    /// Source: Hadoop 3.5.0 `DatanodeManager#setHeartbeatExpireInterval`.
    pub fn heartbeat_expiry(&self) -> Duration {
        2 * self.heartbeat_recheck_interval + 10 * self.heartbeat_interval
    }
}
