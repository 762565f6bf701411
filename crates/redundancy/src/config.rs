//! What an operator can set of liveness, safe mode, placement and mending.

use std::time::Duration;

/// Settings of a [`Cluster`](crate::Cluster). `Default` has Hadoop's defaults, except where noted.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Time between heartbeats of a DataNode: `dfs.heartbeat.interval`.
    pub heartbeat_interval: Duration,
    /// Half of the time that a silent node has before ten heartbeats more make it dead:
    /// `dfs.namenode.heartbeat.recheck-interval`.
    pub recheck_interval: Duration,
    /// Silence after which a node is stale: `dfs.namenode.stale.datanode.interval`.
    pub stale_interval: Duration,
    /// Heartbeats that a node may be behind others until surplus goes there first, for it may be lost already:
    /// `dfs.namenode.tolerate.heartbeat.multiplier`.
    pub tolerated_heartbeats: u32,
    /// Put stale nodes last in what readers get: `dfs.namenode.avoid.read.stale.datanode`.
    ///
    /// Deviation: on by default, so that readers do not stall on a node that has just died.
    pub avoid_stale_for_read: bool,
    /// Choose no stale node for new blocks, unless most are:
    /// `dfs.namenode.avoid.write.stale.datanode`. Deviation: on by default.
    pub avoid_stale_for_write: bool,
    /// Part of the nodes that, when stale, makes writers use stale ones again:
    /// `dfs.namenode.write.stale.datanode.ratio`.
    pub stale_write_ratio: f64,
    /// Replicas that a contiguous block must have to be complete: `dfs.namenode.replication.min`.
    pub replication_min: u16,
    /// Copies with which a block of more copies no longer holds a decommission back, where more
    /// cannot be had: `dfs.replication`.
    pub replication: u16,
    /// Live replicas that a block must keep while nodes are in maintenance:
    /// `dfs.namenode.maintenance.replication.min`. A group keeps its number of data units.
    pub maintenance_replication_min: u16,
    /// Time between looks at whether nodes that leave may go: `dfs.namenode.decommission.interval`.
    pub decommission_interval: Duration,
    /// Leaving nodes whose blocks are followed at a time; 0 for all:
    /// `dfs.namenode.decommission.max.concurrent.tracked.nodes`.
    pub max_tracked_nodes: usize,
    /// Replicas of a block that are to be in distinct upgrade domains:
    /// `dfs.namenode.upgrade.domain.factor` with `BlockPlacementPolicyWithUpgradeDomain`.
    pub upgrade_domain_factor: Option<usize>,
    /// Part of the complete blocks that must have been reported before safe mode ends:
    /// `dfs.namenode.safemode.threshold-pct`.
    pub safe_mode_threshold: f64,
    /// Replicas that a replicated block must have to count for that, if not as many as to be complete:
    /// `dfs.namenode.safemode.replication.min`.
    pub safe_mode_replication_min: Option<u16>,
    /// Part of the complete blocks that must have been reported before what lacks redundancy is queued, if not as
    /// many as safe mode waits for: `dfs.namenode.replqueue.threshold-pct`.
    pub queue_threshold: Option<f64>,
    /// Live DataNodes that safe mode waits for: `dfs.namenode.safemode.min.datanodes`.
    pub safe_mode_min_nodes: usize,
    /// How long safe mode goes on after its thresholds are met:
    /// `dfs.namenode.safemode.extension`.
    pub safe_mode_extension: Duration,
    /// Blocks that one heartbeat asks a node to delete: `dfs.block.invalidate.limit`.
    pub invalidate_limit: usize,
    /// How long after a start nothing is deleted, so that a mistake can be noticed first:
    /// `dfs.namenode.startup.delay.block.deletion.sec`.
    pub deletion_delay: Duration,
    /// Blocks that a storage must have room for to be given one:
    /// `dfs.namenode.block-placement.min-blocks-for.write`.
    pub blocks_of_room: u64,
    /// Copies that a node is the source of at a time: `dfs.namenode.replication.max-streams`.
    pub max_streams: usize,
    /// The same bound for work of the highest priority:
    /// `dfs.namenode.replication.max-streams-hard-limit`.
    pub max_streams_hard: usize,
    /// Blocks scheduled for mending in one round, for each live node:
    /// `dfs.namenode.replication.work.multiplier.per.iteration`.
    pub work_multiplier: usize,
    /// Time between rounds of mending: `dfs.namenode.redundancy.interval.seconds`.
    pub redundancy_interval: Duration,
    /// Rounds of mending for which no node could take what a block lacks, before a bad replica or unit
    /// is deleted to make room (`excess`). Not a key of Hadoop's.
    ///
    /// A node that was missing for a moment should not cost bytes that may still be of use: one that
    /// restarts is back and has reported within a minute, which is twenty rounds.
    pub rounds_before_room: u32,
    /// When scheduled work counts as failed and is queued again:
    /// `dfs.namenode.reconstruction.pending.timeout-sec`.
    pub pending_timeout: Duration,
    /// Leave out nodes that are much busier than the average:
    /// `dfs.namenode.redundancy.considerLoad`.
    pub consider_load: bool,
    /// How many times the average load is too much:
    /// `dfs.namenode.redundancy.considerLoad.factor`.
    pub load_factor: f64,
    /// Full block reports that nodes may send at one time:
    /// `dfs.namenode.max.full.block.report.leases`.
    pub report_leases: usize,
    /// How long the leave to send a full report lasts:
    /// `dfs.namenode.full.block.report.lease.length.ms`.
    pub report_lease_len: Duration,
    /// Time between the beginnings of walks that look for blocks and groups to scrub, zero for none:
    /// `cairn.namenode.scrub.period`.
    pub scrub_period: Duration,
    /// Orders to take replicas into memory are told again after this:
    /// `dfs.namenode.path.based.cache.retry.interval.ms`.
    pub cache_retry: Duration,
    /// Bytes per second that one DataNode reads for scrubs, at most; 0 for no scrubs:
    /// `cairn.namenode.scrub.bytes-per-second`.
    pub scrub_bytes_per_second: u64,
    /// Whether of a block that will soon be in a contiguous group one copy goes to a disk and the others to memory:
    /// `cairn.ec.contiguous.copies-in-memory`.
    pub copies_in_memory: bool,
    /// Nodes and disks that are called slow.
    pub slow: SlowConfig,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            heartbeat_interval: Duration::from_secs(3),
            recheck_interval: Duration::from_secs(300),
            stale_interval: Duration::from_secs(30),
            tolerated_heartbeats: 4,
            avoid_stale_for_read: true,
            avoid_stale_for_write: true,
            stale_write_ratio: 0.5,
            replication_min: 1,
            replication: 3,
            maintenance_replication_min: 1,
            decommission_interval: Duration::from_secs(30),
            max_tracked_nodes: 100,
            upgrade_domain_factor: None,
            safe_mode_threshold: 0.999,
            safe_mode_replication_min: None,
            queue_threshold: None,
            safe_mode_min_nodes: 0,
            safe_mode_extension: Duration::from_secs(30),
            invalidate_limit: 1000,
            deletion_delay: Duration::ZERO,
            blocks_of_room: 1,
            max_streams: 2,
            max_streams_hard: 4,
            work_multiplier: 2,
            redundancy_interval: Duration::from_secs(3),
            rounds_before_room: 20,
            pending_timeout: Duration::from_secs(300),
            consider_load: true,
            load_factor: 2.0,
            report_leases: 6,
            report_lease_len: Duration::from_secs(300),
            scrub_period: Duration::from_secs(504 * 3600),
            cache_retry: Duration::from_secs(30),
            scrub_bytes_per_second: 4 << 20,
            copies_in_memory: false,
            slow: SlowConfig::default(),
        }
    }
}

impl Config {
    /// Silence after which a node is dead.
    ///
    /// Source: Hadoop 3.5.0 `DatanodeManager#setHeartbeatExpireInterval`.
    pub fn dead_interval(&self) -> Duration {
        2 * self.recheck_interval + 10 * self.heartbeat_interval
    }
}

/// What is done with reports on slow nodes and disks. `Default` has Hadoop's defaults.
#[derive(Clone, Debug, PartialEq)]
pub struct SlowConfig {
    /// Whether reports on nodes are taken: `dfs.datanode.peer.stats.enabled`.
    pub takes_peers: bool,
    /// Whether reports on disks are taken: `dfs.datanode.fileio.profiling.sampling.percentage` above 0.
    pub takes_disks: bool,
    /// Time between the reports of a node: `dfs.datanode.outliers.report.interval`.
    pub report_interval: Duration,
    /// Nodes that monitors are shown: `dfs.datanode.max.nodes.to.report`.
    pub nodes_shown: usize,
    /// Disks that monitors are shown: `dfs.datanode.max.disks.to.report`.
    pub disks_shown: usize,
    /// Nodes that are kept off, at most: `dfs.namenode.max.slowpeer.collect.nodes`.
    pub nodes_avoided: usize,
    /// Time after which these are chosen anew: `dfs.namenode.slowpeer.collect.interval`.
    pub collect_interval: Duration,
    /// Put them after others in what readers get: `dfs.namenode.avoid.read.slow.datanode`.
    pub avoid_for_read: bool,
    /// Choose none of them for new blocks and copies while others will do:
    /// `dfs.namenode.block-placement-policy.exclude-slow-nodes.enabled`.
    pub avoid_for_write: bool,
}

impl Default for SlowConfig {
    fn default() -> SlowConfig {
        SlowConfig {
            takes_peers: false,
            takes_disks: false,
            report_interval: Duration::from_secs(30 * 60),
            nodes_shown: 5,
            disks_shown: 5,
            nodes_avoided: 5,
            collect_interval: Duration::from_secs(30 * 60),
            avoid_for_read: false,
            avoid_for_write: false,
        }
    }
}
