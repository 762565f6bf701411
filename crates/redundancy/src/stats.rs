//! Figures of the whole cluster.

use crate::storage::StorageUsage;

/// Blocks of one kind that need care. Source: Hadoop 3.5.0 `ReplicatedBlockStats`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockCounts {
    /// With too few replicas, missing ones not counted.
    pub low_redundancy: u64,
    /// With a bad replica.
    pub corrupt: u64,
    /// Without a good replica.
    pub missing: u64,
    /// Without a good replica, and meant to have one only.
    pub missing_one_copy: u64,
    /// Bytes in replicas with stamps that this NameNode has not given out.
    pub bytes_in_future: u64,
    /// Replicas that wait to be deleted.
    pub pending_deletion: u64,
    /// With one good replica left.
    pub highest_priority: u64,
    /// With enough replicas on too few racks.
    pub badly_distributed: u64,
}

/// Block groups that need care. Source: Hadoop 3.5.0 `ECBlockGroupStats`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupCounts {
    /// With too few units, missing groups not counted.
    pub low_redundancy: u64,
    /// With a bad unit.
    pub corrupt: u64,
    /// With fewer good units than data units.
    pub missing: u64,
    /// Bytes in units with stamps that this NameNode has not given out.
    pub bytes_in_future: u64,
    /// Internal blocks that wait to be deleted.
    pub pending_deletion: u64,
    /// With no unit to spare.
    pub highest_priority: u64,
    /// With enough units on too few racks.
    pub badly_distributed: u64,
}

/// Figures of the whole cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClusterStats {
    /// Sum over the live DataNodes in service.
    pub usage: StorageUsage,
    /// Live DataNodes.
    pub live_nodes: usize,
    /// Dead DataNodes.
    pub dead_nodes: usize,
    /// Live ones that have not been heard of for a while.
    pub stale_nodes: usize,
    /// Those that are being decommissioned.
    pub decommissioning_nodes: usize,
    /// Live ones that are decommissioned.
    pub decommissioned_live_nodes: usize,
    /// Dead ones that are decommissioned.
    pub decommissioned_dead_nodes: usize,
    /// Those that are about to be in maintenance.
    pub entering_maintenance_nodes: usize,
    /// Live ones in maintenance.
    pub in_maintenance_live_nodes: usize,
    /// Dead ones in maintenance.
    pub in_maintenance_dead_nodes: usize,
    /// Volumes lost at live nodes.
    pub failed_volumes: u64,
    /// Data transfers under way at live nodes.
    pub xceivers: u64,
    /// Bytes of cache at live nodes.
    pub cache_capacity: u64,
    /// Bytes of cache used at live nodes.
    pub cache_used: u64,
    /// Of replicated blocks.
    pub replicated: BlockCounts,
    /// Of block groups.
    pub groups: GroupCounts,
    /// Blocks and groups whose mending is under way.
    pub pending_reconstruction: u64,
    /// Blocks and groups that wait for mending.
    pub scheduled_reconstruction: u64,
    /// Replicas and units beyond what is wanted.
    pub excess: u64,
    /// Blocks and groups whose replicas or units disagree, nobody knows which one is wrong.
    pub disagreeing: u64,
    /// Of what waits for mending, how many blocks and how many groups survive so many more losses.
    pub margins: [Margin; MARGINS],
    /// Replicas and units that have come since the start because they were ordered.
    pub mended: u64,
}

/// Classes of [`ClusterStats::margins`]: the first is what is lost, each other one what survives one loss less than its
/// place, and the last what survives that or more.
pub const MARGINS: usize = 6;

/// Blocks and groups of one class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Margin {
    /// Replicated blocks.
    pub blocks: u64,
    /// Groups, striped and contiguous.
    pub groups: u64,
}

impl ClusterStats {
    /// The array that `getFsStats` answers with: capacity, used, remaining, low redundancy, corrupt,
    /// missing, missing with one copy, bytes in future, pending deletion (groups counted in).
    ///
    /// Source: Hadoop 3.5.0 `FSNamesystem#getStats`.
    pub fn fs_stats(&self) -> [u64; 9] {
        let (blocks, groups) = (&self.replicated, &self.groups);
        [
            self.usage.capacity,
            self.usage.dfs_used,
            self.usage.remaining,
            blocks.low_redundancy + groups.low_redundancy,
            blocks.corrupt + groups.corrupt,
            blocks.missing + groups.missing,
            blocks.missing_one_copy,
            blocks.bytes_in_future + groups.bytes_in_future,
            blocks.pending_deletion + groups.pending_deletion,
        ]
    }
}
