//! Storages: the volumes of DataNodes.

use crate::node::NodeHandle;
use cairn_stripe::StorageType;

/// Names a storage within one [`Cluster`](crate::Cluster); never reused for another storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StorageHandle(pub u32);

/// Whether a storage can be used. Source: Hadoop 3.5.0 `DatanodeStorage.State`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StorageState {
    /// It can.
    #[default]
    Normal,
    /// It can be read only, and its replicas are shared with other nodes.
    ReadOnlyShared,
    /// It can't; its replicas are lost.
    Failed,
}

/// Bytes of a storage, or of several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StorageUsage {
    /// All that it can hold.
    pub capacity: u64,
    /// Used by blocks.
    pub dfs_used: u64,
    /// Used by other things.
    pub non_dfs_used: u64,
    /// Free for blocks.
    pub remaining: u64,
    /// Used by blocks of this block pool.
    pub block_pool_used: u64,
}

impl std::ops::AddAssign for StorageUsage {
    fn add_assign(&mut self, other: StorageUsage) {
        self.capacity = self.capacity.saturating_add(other.capacity);
        self.dfs_used = self.dfs_used.saturating_add(other.dfs_used);
        self.non_dfs_used = self.non_dfs_used.saturating_add(other.non_dfs_used);
        self.remaining = self.remaining.saturating_add(other.remaining);
        self.block_pool_used = self.block_pool_used.saturating_add(other.block_pool_used);
    }
}

/// One storage of one DataNode.
#[derive(Clone, Debug)]
pub struct Storage {
    /// Its handle.
    pub handle: StorageHandle,
    /// The node that it belongs to.
    pub node: NodeHandle,
    /// `DS-...`.
    pub uuid: String,
    /// What it is made of.
    pub storage_type: StorageType,
    /// Whether it can be used.
    pub state: StorageState,
    /// Bytes, as of the last heartbeat.
    pub usage: StorageUsage,
    /// Whether a full report of it has come since its node registered. Until then what it holds is
    /// not certain, and no copy elsewhere is deleted on its account.
    pub reported: bool,
    /// Blocks that were sent there since the last heartbeat.
    pub(crate) scheduled: u64,
}
