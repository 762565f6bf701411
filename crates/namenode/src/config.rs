//! What an operator can set of a NameNode, and the table of the keys that set it. Defaults are Hadoop 3.5.0's
//! (`hdfs-default.xml`). The binary reads files.

mod audit;
mod choices;
mod encryption;
mod kinds;
pub(crate) mod parts;
pub mod quorum;

pub use audit::AuditConfig;
pub(crate) use audit::LiveAudit;
pub use cairn_redundancy::SlowConfig;
pub use choices::{ChecksumType, Durability, HostsFormat, RackSource, SatisfierMode};
pub use encryption::EncryptionConfig;

use crate::ranger::RangerConfig;
use cairn_access::groups::GroupsConfig;
use cairn_keys::{
    BOOLEAN, BYTES, MILLIS, MODE, OPTIONAL_ADDRESS, OPTIONAL_TEXT, SECONDS, TEXT, defaults, keys,
    live, number, positive,
};
use cairn_namespace::snapshot::SnapshotSettings;
use cairn_net::http::HttpAuth;
use cairn_net::reach::Reach;
use cairn_net::tls::TlsFiles;
use cairn_operate::reconfiguration::Reload;
use cairn_stripe::StoragePolicy;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::block_tokens::BlockTokenConfig;
use crate::salvager::Salvager;
use crate::security::SecurityConfig;
use crate::web::Web;
use kinds::{
    CHECKSUM, DURABILITY, FOLDERS, HOSTS_FORMAT, ITEMS, LENGTH, NAME_CHECK, OPTIONAL_COUNT,
    OPTIONAL_FILE, OPTIONAL_SHARE, POLICY, POSITIVE_SHARE, PROTECTED, SAMPLED, SATISFIER,
    STALE_SHARE,
};
use quorum::QuorumConfig;

keys! {
    /// A NameNode's settings; `Default` has Hadoop's defaults, except that addresses are on the loopback interface.
    #[derive(Clone, Debug)]
    pub struct NameNodeConfig, live Live {
        /// Permission bits of the folder of log and store.
        name_dir_mode: u32, "dfs.namenode.storage.dir.perm" = "700" as MODE;
        /// Where RPC listens for clients that know no erasure coding, if it does.
        plain_rpc_addr: Option<SocketAddr>, "cairn.namenode.plain.rpc-address" = "" as OPTIONAL_ADDRESS;
        /// Where HTTP listens; behind it may stand a nameservice and one of its NameNodes.
        http_addr: Option<SocketAddr>, "dfs.namenode.http-address" = "127.0.0.1:9870" as OPTIONAL_ADDRESS;
        /// How long an HTTP connection may rest.
        http_idle_timeout: Duration, "hadoop.http.idle_timeout.ms" = "60000" as MILLIS;
        /// The longest RPC request that is accepted.
        rpc_max_request_len: usize, "ipc.maximum.data.length" = "128m" as LENGTH;
        /// Bytes that requests of all connections may take.
        request_memory: u64 = 1 << 30,
        "cairn.namenode.request-memory" = "an eighth of the memory, at least 512 MiB" as BYTES;
        /// Whether the log names calls that take much longer than others.
        logs_slow_calls: bool, "ipc.server.log.slow.rpc" = "false" as BOOLEAN, live SlowCalls;
        /// Calls that take no longer are not named in the log as slow.
        slow_call_threshold: Duration, "ipc.server.log.slow.rpc.threshold.ms" = "0" as MILLIS, live SlowCallThreshold;
        /// What an acknowledged change has survived. Hadoop always syncs its edits.
        durability: Durability, "cairn.durability" = "stable" as DURABILITY;
        /// Bytes of memory that the store's cache may take.
        store_cache_len: usize = 256 << 20,
        "cairn.namenode.store.cache" = "a sixteenth of the memory, from 256 MiB to 1 GiB" as LENGTH;

        /// Block length for clients that name none.
        block_len: u64, "dfs.blocksize" = "128m" as BYTES;
        /// Smallest block length of a new file.
        min_block_len: u64, "dfs.namenode.fs-limits.min-block-size" = "1m" as BYTES;
        /// Bytes that one checksum is for, as clients are told.
        bytes_per_checksum: u32, "dfs.bytes-per-checksum" = "512" as number();
        /// Bytes of a packet that clients write, as they are told.
        write_packet_len: u32, "dfs.client-write-packet-size" = "65536" as number();
        /// Bytes of clients' buffers, as they are told.
        file_buffer_len: u32, "io.file.buffer.size" = "4096" as number();
        /// The checksums of new files, as clients are told.
        checksum_type: ChecksumType, "dfs.checksum.type" = "CRC32C" as CHECKSUM;
        /// Minutes that clients keep deleted files in the trash; 0 for no trash.
        trash_interval_minutes: u64, "fs.trash.interval" = "0" as number();
        /// Minutes between checkpoints of the trash; 0 for `fs.trash.interval`.
        trash_checkpoint_minutes: u64, "fs.trash.checkpoint.interval" = "0" as number();
        /// Whether what is in a trash and is no checkpoint is deleted.
        trash_cleans_others: bool, "fs.trash.clean.trashroot.enable" = "false" as BOOLEAN;
        /// Replication for clients that name none.
        replication: u16, "dfs.replication" = "3" as number();
        /// Blocks at the end of a file that may lack replicas when it is closed, if more are expected.
        committed_allowed: usize, "dfs.namenode.file.close.num-committed-allowed" = "0" as number();
        /// Longest name of one path component, bytes of UTF-8; 0 for no limit.
        max_component_len: usize, "dfs.namenode.fs-limits.max-component-length" = "255" as number();
        /// Entries in one directory.
        max_directory_items: u64,
        "dfs.namenode.fs-limits.max-directory-items" = "1048576" as ITEMS, live DirectoryItems;
        /// Inodes and blocks together; 0 for any number.
        max_objects: u64, "dfs.namenode.max.objects" = "0" as number();
        /// Directories that nobody deletes or renames while they are not empty.
        protected_directories: Vec<String>, "fs.protected.directories" = "" as PROTECTED, live Protected;
        /// Whether directories in protected ones are protected as well.
        protects_subdirectories: bool, "dfs.protected.subdirectories.enable" = "false" as BOOLEAN;
        /// Blocks of one file.
        max_blocks_per_file: u64, "dfs.namenode.fs-limits.max-blocks-per-file" = "10000" as number();
        /// Extended attributes of one inode.
        max_xattrs_per_inode: u64, "dfs.namenode.fs-limits.max-xattrs-per-inode" = "32" as number();
        /// Bytes of one extended attribute's name and value.
        max_xattr_len: u64, "dfs.namenode.fs-limits.max-xattr-size" = "16384" as BYTES;
        /// Whether extended attributes can be used.
        xattrs_enabled: bool, "dfs.namenode.xattrs.enabled" = "true" as BOOLEAN;
        /// Whether access control lists can be used.
        acls_enabled: bool, "dfs.namenode.acls.enabled" = "true" as BOOLEAN;
        /// Whether children of what has a default access control list ignore the client's umask.
        posix_acl_inheritance: bool, "dfs.namenode.posix.acl.inheritance.enabled" = "true" as BOOLEAN;
        /// Whether quotas by type of storage can be set.
        type_quotas_enabled: bool, "dfs.quota.by.storage.type.enabled" = "true" as BOOLEAN;
        /// Whether the rights to all that is below a path are asked for before its content is summed up, not on the
        /// way.
        summaries_check_first: bool, "dfs.permissions.ContentSummary.subAccess" = "false" as BOOLEAN;
        /// Whether the owner of a folder can set quotas of those in it.
        owners_set_quotas: bool, "dfs.permissions.allow.owner.set.quota" = "false" as BOOLEAN;
        /// Whether a snapshot is deleted only when it is the earliest of its directory.
        snapshots_deleted_in_order: bool, "dfs.namenode.snapshot.deletion.ordered" = "false" as BOOLEAN;
        /// How often snapshots are deleted that have become the earliest.
        snapshot_collection_period: Duration,
        "dfs.namenode.snapshot.deletion.ordered.gc.period.ms" = "300000" as MILLIS;
        /// Whether snapshottable directories have trash of their own.
        snapshot_trash_roots: bool, "dfs.namenode.snapshot.trashroot.enabled" = "false" as BOOLEAN;
        /// Blocks of one answer that lists lost ones.
        corrupt_files_page: usize, "dfs.namenode.max-corrupt-file-blocks-returned" = "100" as number();
        /// Entries of one listing answer.
        listing_limit: usize, "dfs.ls.limit" = "1000" as number();
        /// Open files of one page of a list of them.
        open_files_page: usize, "dfs.namenode.list.openfiles.num.responses" = "1000" as positive();
        /// Paths of one batched listing.
        batched_listing_limit: usize, "dfs.batched.ls.limit" = "100" as number();
        /// Time between walks over what cache directives name.
        cache_refresh_interval: Duration, "dfs.namenode.path.based.cache.refresh.interval.ms" = "30000" as MILLIS;
        /// A DataNode that has not obeyed is told again what to cache after this time.
        cache_retry_interval: Duration, "dfs.namenode.path.based.cache.retry.interval.ms" = "30000" as MILLIS;
        /// Whether DataNodes are told to cache anything; directives can be made all the same.
        caching_enabled: bool, "dfs.namenode.caching.enabled" = "true" as BOOLEAN;
        /// Pools of one answer that lists cache pools.
        cache_pools_page: usize, "dfs.namenode.list.cache.pools.num.responses" = "100" as number();
        /// Directives of one answer that lists cache directives.
        cache_directives_page: usize, "dfs.namenode.list.cache.directives.num.responses" = "100" as number();
        /// Events of one answer to a watcher of the tree.
        inotify_events_page: usize, "dfs.namenode.inotify.max.events.per.rpc" = "1000" as number();
        /// Bytes of events that are kept on the disk for watchers who come back later, at most.
        inotify_history_len: u64, "cairn.namenode.inotify.history" = "128m" as BYTES;
        /// Bytes of the log that stay behind the store, so that backups can have changes only.
        kept_log_len: u64, "cairn.namenode.log.keep" = "256m" as BYTES;
        /// Precision of access times; 0 turns them off.
        access_time_precision: Duration, "dfs.namenode.accesstime.precision" = "3600000" as MILLIS;

        /// Whether permissions are checked.
        permissions_enabled: bool, "dfs.permissions.enabled" = "true" as BOOLEAN;
        /// The user who may do everything; without it the user of this process, with Kerberos the one that the
        /// NameNode's principal stands for.
        superuser: Option<String>, "cairn.namenode.superuser" = "" as OPTIONAL_TEXT;
        /// The group whose members may do everything.
        supergroup: String, "dfs.permissions.superusergroup" = "supergroup" as TEXT;
        /// The folder of users' homes, whose trash is emptied.
        homes: String, "dfs.user.home.dir.prefix" = "/user" as TEXT;

        /// The policy that is set where none is named, enabled at format.
        ec_default_policy: String, "dfs.namenode.ec.system.default.policy" = "RS-6-3-1024k" as TEXT;
        /// Longest cell of a user-defined policy, bytes.
        ec_max_cell_len: u32, "dfs.namenode.ec.policies.max.cellsize" = "4194304" as number();
        /// Whether policies can be added.
        ec_user_policies: bool, "dfs.namenode.ec.userdefined.policy.allowed" = "true" as BOOLEAN;
        /// How long a file must be closed until its blocks may be put into contiguous groups.
        group_quiet: Duration, "cairn.ec.contiguous.quiet-time" = "10m" as SECONDS;
        /// How long a file must be closed until a short last block may be put into a contiguous group; twice as long after
        /// each append that met it, up to a week.
        group_short_quiet: Duration, "cairn.ec.contiguous.short-quiet-time" = "1h" as SECONDS;
        /// Fewest bytes of a block that may be put into a contiguous group.
        group_len_min: u64, "cairn.ec.contiguous.min-length" = "1m" as BYTES;
        /// Whether of a block that will soon be in a contiguous group one copy goes to a disk and the others to memory
        /// (RAM_DISK volumes), until the group has its parities.
        copies_in_memory: bool, "cairn.ec.contiguous.copies-in-memory" = "false" as BOOLEAN;
        /// Whether blocks that are too short for contiguous groups are packed into containers.
        packs: bool, "cairn.ec.packing.enabled" = "false" as BOOLEAN;
        /// Bytes of the packed blocks of one container, about.
        container_len: u64, "cairn.ec.packing.container-size" = "64m" as BYTES;
        /// How long short blocks wait for others until they are packed in smaller containers.
        pack_patience: Duration, "cairn.ec.packing.patience" = "24h" as SECONDS;
        /// The part of the bytes of a group of containers that may be of no block any more.
        pack_dead_share: f64, "cairn.ec.packing.dead-share" = "0.2" as POSITIVE_SHARE;
        /// The part of the bytes of three copies that a contiguous group may take at most.
        group_pays: f64, "cairn.ec.contiguous.pays" = "0.6" as POSITIVE_SHARE;
        /// The part of the bytes of a contiguous group's members that may be of no file any more.
        group_dead_share: f64, "cairn.ec.contiguous.dead-share" = "0.25" as POSITIVE_SHARE;
        /// How long stays what a striped file was made of before it was converted.
        keep_converted: Duration, "cairn.ec.convert.keep-old" = "24h" as SECONDS;

        /// Time between heartbeats, by which silence is judged.
        heartbeat_interval: Duration, "dfs.heartbeat.interval" = "3" as SECONDS, live Heartbeat;
        /// Twice this and ten heartbeats of silence are a dead DataNode.
        heartbeat_recheck_interval: Duration,
        "dfs.namenode.heartbeat.recheck-interval" = "300000" as MILLIS, live Recheck;
        /// A DataNode is stale after this silence.
        stale_interval: Duration, "dfs.namenode.stale.datanode.interval" = "30000" as MILLIS;
        /// Whether readers get stale DataNodes last.
        avoid_stale_for_read: bool, "dfs.namenode.avoid.read.stale.datanode" = "true" as BOOLEAN;
        /// Whether writers get no stale DataNodes, unless most are stale.
        avoid_stale_for_write: bool, "dfs.namenode.avoid.write.stale.datanode" = "true" as BOOLEAN;
        /// Part of the DataNodes that are stale from which on writers get such again.
        stale_write_ratio: f64, "dfs.namenode.write.stale.datanode.ratio" = "0.5" as STALE_SHARE;
        /// Surplus is deleted first from a DataNode that is so many heartbeats behind others.
        tolerated_heartbeats: u32, "dfs.namenode.tolerate.heartbeat.multiplier" = "4" as number();
        /// Time between looks for what is to be copied, decoded and deleted.
        redundancy_interval: Duration,
        "dfs.namenode.redundancy.interval.seconds" = "3s" as SECONDS, live RedundancyInterval;
        /// How long a call of a DataNode that waits for work is held, 30 s at most; 0 lets work wait for heartbeats, as
        /// Hadoop's does.
        order_hold: Duration, "cairn.namenode.order-hold" = "30s" as SECONDS;
        /// Planned copies are forgotten and planned anew after this.
        pending_timeout: Duration,
        "dfs.namenode.reconstruction.pending.timeout-sec" = "300" as SECONDS, live Pending;
        /// Copies that are planned in one round for each live DataNode.
        work_multiplier: u32,
        "dfs.namenode.replication.work.multiplier.per.iteration" = "2" as number(), live WorkMultiplier;
        /// Copies that one DataNode sends at a time.
        max_streams: u32, "dfs.namenode.replication.max-streams" = "2" as number(), live Streams;
        /// Copies that one DataNode sends at a time, the most urgent ones included.
        max_streams_hard: u32,
        "dfs.namenode.replication.max-streams-hard-limit" = "4" as number(), live StreamsHard;
        /// Deletions handed to one DataNode with one heartbeat.
        invalidate_limit: usize, "dfs.block.invalidate.limit" = "1000" as number(), live Invalidate;
        /// Blocks that a volume must have room for to be given one.
        blocks_of_room: u64, "dfs.namenode.block-placement.min-blocks-for.write" = "1" as positive(), live Room;
        /// How long after its start the NameNode has nothing deleted.
        deletion_delay: Duration, "dfs.namenode.startup.delay.block.deletion.sec" = "0" as SECONDS;
        /// Whether busy DataNodes are passed over when blocks are placed.
        consider_load: bool, "dfs.namenode.redundancy.considerLoad" = "true" as BOOLEAN;
        /// Busy is who has so many times as many connections as others on average.
        load_factor: f64, "dfs.namenode.redundancy.considerLoad.factor" = "2.0" as number();
        /// Time between looks for blocks and groups that no block scanner compares with a record, 0 for none.
        scrub_period: Duration, "cairn.namenode.scrub.period" = "504h" as SECONDS, live ScrubPeriod;
        /// What one DataNode reads in a second, at most, of blocks and groups that no block scanner compares; 0 for nothing.
        scrub_bytes_per_second: u64, "cairn.namenode.scrub.bytes-per-second" = "4m" as BYTES, live ScrubRate;
        /// Whether a DataNode is refused when the program that is to tell its rack does not; it is in the default one
        /// otherwise.
        refuses_unknown_racks: bool,
        "dfs.namenode.reject-unresolved-dn-topology-mapping" = "false" as BOOLEAN;
        /// Whether DataNodes at an address that has no name are refused.
        name_check: Option<fn(IpAddr) -> bool>,
        "dfs.namenode.datanode.registration.ip-hostname-check" = "true" as NAME_CHECK;
        /// A file of DataNodes that may register, one `host`, `address` or `address:port` a line; all without it.
        hosts_file: Option<PathBuf>, "dfs.hosts" = "" as OPTIONAL_FILE;
        /// A file of DataNodes that are to be decommissioned.
        hosts_exclude_file: Option<PathBuf>, "dfs.hosts.exclude" = "" as OPTIONAL_FILE;
        /// What the file in `dfs.hosts` is: a list, or one JSON file with states and upgrade domains.
        hosts_format: HostsFormat, "dfs.namenode.hosts.provider.classname" = "HostFileManager" as HOSTS_FORMAT;
        /// Time between looks at DataNodes that leave.
        decommission_interval: Duration, "dfs.namenode.decommission.interval" = "30" as SECONDS;
        /// DataNodes that leave at a time; 0 for any number.
        max_tracked_nodes: usize, "dfs.namenode.decommission.max.concurrent.tracked.nodes" = "100" as number();
        /// Copies that stay elsewhere while a DataNode is in maintenance.
        maintenance_min_replication: u16, "dfs.namenode.maintenance.replication.min" = "1" as number();

        /// Share of blocks that must be found before safe mode ends.
        safe_mode_threshold: f64, "dfs.namenode.safemode.threshold-pct" = "0.999" as number();
        /// Replicas with which a block counts as found, if not `dfs.namenode.replication.min`.
        safe_mode_min_replication: Option<u16>,
        "dfs.namenode.safemode.replication.min" = "" as OPTIONAL_COUNT;
        /// Share of blocks that must be found before those that lack redundancy are queued, and so told, if not that
        /// of safe mode.
        queue_threshold: Option<f64>, "dfs.namenode.replqueue.threshold-pct" = "" as OPTIONAL_SHARE;
        /// DataNodes that must live before safe mode ends.
        safe_mode_min_datanodes: usize, "dfs.namenode.safemode.min.datanodes" = "0" as number();
        /// How long enough blocks and DataNodes must be there until safe mode ends; not at all in a quorum, unless this is
        /// set.
        safe_mode_extension: Duration, "dfs.namenode.safemode.extension" = "30000" as MILLIS;

        /// Bytes that must be free where the NameNode keeps its files, else it is in safe mode.
        reserved_len: u64, "dfs.namenode.resource.du.reserved" = "100m" as BYTES;
        /// Further folders where so much must be free as in the NameNode's own.
        checked_dirs: Vec<PathBuf>, "dfs.namenode.resource.checked.volumes" = "" as FOLDERS;
        /// Time between looks at the free space of these folders.
        resource_check_interval: Duration, "dfs.namenode.resource.check.interval" = "5000" as MILLIS;

        /// After this silence of its holder a lease can be taken, which Hadoop has fixed.
        lease_soft_limit: Duration, "cairn.namenode.lease.soft-limit" = "60s" as SECONDS;
        /// After this silence of its holder the NameNode recovers a lease.
        lease_hard_limit: Duration, "dfs.namenode.lease-hard-limit-sec" = "1200" as SECONDS;
        /// Time between looks for leases that have run out.
        lease_recheck_interval: Duration, "dfs.namenode.lease-recheck-interval-ms" = "2000" as MILLIS;
        /// Time between looks for lost files with the policy LAZY_PERSIST, which are deleted; 0 for none.
        lazy_persist_scrub_interval: Duration,
        "dfs.namenode.lazypersist.file.scrub.interval.sec" = "300" as SECONDS;
        /// Whether storage policies can be set, unset and satisfied.
        storage_policies_enabled: bool, "dfs.storage.policy.enabled" = "true" as BOOLEAN;
        /// Whether only the superuser may set and unset storage policies.
        storage_policies_superuser_only: bool,
        "dfs.storage.policy.permissions.superuser-only" = "false" as BOOLEAN;
        /// The storage policy of files for which none is set.
        default_storage_policy: StoragePolicy, "dfs.storage.default.policy" = "HOT" as POLICY;
        /// Who brings replicas to where storage policies say.
        satisfier_mode: SatisfierMode, "dfs.storage.policy.satisfier.mode" = "none" as SATISFIER, live Satisfier;
        /// Requests that wait for the satisfier, at most.
        satisfier_queue_limit: usize, "dfs.storage.policy.satisfier.max.outstanding.paths" = "10000" as number();
        /// How long answers to retried calls are kept.
        retry_cache_expiry: Duration, "dfs.namenode.retrycache.expirytime.millis" = "600000" as MILLIS;
        /// How many answers to retried calls are kept; 0 for any number.
        retry_cache_max: u64, "cairn.namenode.retrycache.max-entries" = "1048576" as number();
    }
    parts {
        /// Most snapshots of a directory.
        "dfs.namenode.snapshot.max.limit" = "65536" as number::<u32>() => snapshots.per_directory_max;
        /// Most snapshots of the file system.
        "dfs.namenode.snapshot.filesystem.limit" = "65536" as number::<u32>() => snapshots.total_max;
        /// Whether snapshots freeze the length of open files.
        "dfs.namenode.snapshot.capture.openfiles" = "false" as BOOLEAN => snapshots.capture_open_files;
        /// Whether snapshots do not keep an old access time where nothing else has changed.
        "dfs.namenode.snapshot.skip.capture.accesstime-only-change" = "false" as BOOLEAN
        => snapshots.skip_access_time;
        /// Whether directories below a snapshottable one can be compared.
        "dfs.namenode.snapshotdiff.allow.snap-root-descendant" = "true" as BOOLEAN => snapshots.diff_below_root;
        /// Most entries of one page of a comparison.
        "dfs.namenode.snapshotdiff.listing.limit" = "1000" as number::<u32>() => snapshots.diff_page;
        /// Whether reports of DataNodes on slow others are taken.
        "dfs.datanode.peer.stats.enabled" = "false" as BOOLEAN => slow.takes_peers, live PeerStats;
        /// Whether reports of DataNodes on slow disks are taken: above 0.
        "dfs.datanode.fileio.profiling.sampling.percentage" = "0" as SAMPLED => slow.takes_disks;
        /// Time between reports of a DataNode on slow others and disks.
        "dfs.datanode.outliers.report.interval" = "30m" as MILLIS => slow.report_interval;
        /// Slow DataNodes that monitors are shown.
        "dfs.datanode.max.nodes.to.report" = "5" as number::<usize>() => slow.nodes_shown, live SlowShown;
        /// Slow disks that monitors are shown.
        "dfs.datanode.max.disks.to.report" = "5" as number::<usize>() => slow.disks_shown;
        /// Slow DataNodes that are kept off, at most.
        "dfs.namenode.max.slowpeer.collect.nodes" = "5" as number::<usize>()
        => slow.nodes_avoided, live SlowAvoided;
        /// Time after which the slow DataNodes that are kept off are chosen anew.
        "dfs.namenode.slowpeer.collect.interval" = "30m" as MILLIS => slow.collect_interval, live SlowCollect;
        /// Whether readers get slow DataNodes last.
        "dfs.namenode.avoid.read.slow.datanode" = "false" as BOOLEAN => slow.avoid_for_read, live SlowRead;
        /// Whether slow DataNodes get no new blocks while others will do.
        "dfs.namenode.block-placement-policy.exclude-slow-nodes.enabled" = "false" as BOOLEAN
        => slow.avoid_for_write, live SlowWrite;
    }
    by_hand {
        /// The folder of log and store, of which the first counts.
        "dfs.namenode.name.dir" = "/tmp/hadoop/dfs/name" as "folders";
        /// Where RPC listens; behind it may stand a nameservice and one of its NameNodes.
        "dfs.namenode.rpc-address" = "127.0.0.1:8020" as "host:port";
        /// The host that RPC listens at, where it is another than the one that others know.
        "dfs.namenode.rpc-bind-host" = "" as "host";
        /// Fewest replicas with which a block is complete.
        "dfs.namenode.replication.min" = "1" as "number above 0";
        /// Most replicas that a file can be given.
        "dfs.replication.max" = "512" as "number up to 32767";
        /// How replicas are spread: ...PolicyWithUpgradeDomain heeds upgrade domains, all others racks.
        "dfs.block.replicator.classname" =
        "org.apache.hadoop.hdfs.server.blockmanagement.BlockPlacementPolicyDefault" as "class", live Placement;
        /// Replicas that are to be in distinct upgrade domains, where these are heeded.
        "dfs.namenode.upgrade.domain.factor" = "3" as "number";
        /// A file of lines with a host or address and its rack; it goes before the program.
        "net.topology.table.file.name" = "" as "file";
        /// A program that gets an address and prints its rack.
        "net.topology.script.file.name" = "" as "file";
    }
    others {
        /// The folder of log and store: `dfs.namenode.name.dir`.
        name_dir: PathBuf = PathBuf::from("/tmp/hadoop/dfs/name");
        /// Formats `name_dir` at start when it is empty or missing; otherwise that is an error.
        format_if_empty: bool = false;
        /// Goes back to the rollback point of a rolling upgrade; without one that is an error.
        roll_back: bool = false;
        /// Cluster id given when formatting; a random one when `None`.
        cluster_id: Option<String> = None;
        /// Where RPC listens; port 0 takes a free one: `dfs.namenode.rpc-address`.
        rpc_addr: SocketAddr = ([127, 0, 0, 1], 8020).into();
        /// An idle RPC connection is closed after this. Hadoop's server scans less often than its clients close.
        rpc_idle_timeout: Duration = Duration::from_secs(120);
        /// Where HTTPS listens, and with which certificate, if at all: `dfs.http.policy`, `dfs.namenode.https-address`.
        https: Option<(SocketAddr, TlsFiles)> = None;
        /// How clients by HTTP show who they are; they are believed for `None`.
        http_auth: Option<HttpAuth> = None;
        /// Where policies come from that go before modes, if there are to be such.
        ranger: Option<RangerConfig> = None;
        /// `dfs.namenode.replication.min`.
        min_replication: u16 = 1;
        /// `dfs.replication.max`.
        max_replication: u16 = 512;
        /// Limits and switches of snapshots.
        snapshots: SnapshotSettings = SnapshotSettings::default();
        /// What is done with DataNodes and disks that DataNodes call slow.
        slow: SlowConfig = SlowConfig::default();
        /// Where racks are looked up.
        racks: RackSource = RackSource::Default;
        /// Replicas that are to be in distinct upgrade domains, if these count: `dfs.block.replicator.classname`,
        /// `dfs.namenode.upgrade.domain.factor`.
        upgrade_domain_factor: Option<usize> = None;
        /// Reads the configuration files again, for settings that can change; `None` where there are none.
        reload: Option<Reload<NameNodeConfig>> = None;
        /// With whom it has connections; what can be cut is for faults on purpose.
        reach: Reach = Reach::default();
        /// How clients show who they are; they are believed for `None`: `hadoop.security.authentication`.
        security: Option<SecurityConfig> = None;
        /// DataNodes and clients are to encrypt all data: `dfs.encrypt.data.transfer`.
        encrypts_data: bool = false;
        /// What block tokens are like; there are none for `None`: `dfs.block.access.token.enable`.
        block_tokens: Option<BlockTokenConfig> = None;
        /// Which groups users are in.
        groups: GroupsConfig = GroupsConfig::default();
        /// Properties that say who may use which protocol, with blanks as they stand there; `None` where everybody may
        /// use all: `hadoop.security.authorization`, `security.*`.
        service_policy: Option<Vec<(String, String)>> = None;
        /// Encryption zones.
        encryption: EncryptionConfig = EncryptionConfig::default();
        /// What is told of calls.
        audit: AuditConfig = AuditConfig::default();
        /// What reads blocks for `fsck -move`, which fails without.
        salvager: Option<Arc<dyn Salvager>> = None;
        /// What serves the tree by HTTP, beside the pages: `dfs.webhdfs.enabled`.
        web: Option<Web> = None;
        /// All configuration as read, for `/conf`.
        properties: Vec<(String, String)> = Vec::new();
        /// The NameNodes that this one agrees with on one log; none for a NameNode that stands alone.
        quorum: Option<QuorumConfig> = None;
    }
}

impl NameNodeConfig {
    /// All keys of the tables that make a NameNode's settings, with the defaults that a file could say.
    pub fn defaults() -> Vec<(&'static str, &'static str)> {
        let own = [defaults(NameNodeConfig::KEYS), defaults(AuditConfig::KEYS)].concat();
        let others = [defaults(EncryptionConfig::KEYS), defaults(GroupsConfig::KEYS)].concat();
        [own, others].concat()
    }

    /// Of them those that can change while it runs.
    pub(crate) fn live() -> Vec<(&'static str, &'static str)> {
        [live(NameNodeConfig::KEYS), live(AuditConfig::KEYS)].concat()
    }

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

#[cfg(test)]
impl NameNodeConfig {
    /// Of a NameNode that a test starts in an empty folder.
    pub(crate) fn of_test(dir: &std::path::Path) -> NameNodeConfig {
        NameNodeConfig {
            name_dir: dir.join("name"),
            format_if_empty: true,
            rpc_addr: ([127, 0, 0, 1], 0).into(),
            http_addr: None,
            ..NameNodeConfig::default()
        }
    }
}
