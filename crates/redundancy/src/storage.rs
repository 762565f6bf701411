//! Storages: the volumes of DataNodes.

use crate::StorageHandle;
use crate::handle::NodeHandle;
use cairn_stripe::StorageType;

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
    /// Whether a full report of it has come since its node registered, and since that has heard who leads. Until then what
    /// it holds is not certain, and no copy elsewhere is deleted on its account.
    pub reported: bool,
    /// Counts the times at which its node has registered, and those at which it was lost: what was proven of what it holds
    /// before is not known to hold any more.
    pub(crate) life: u64,
    /// The number of the last call with full reports when it was lost: later ones know of it.
    pub(crate) lost_after: u64,
    pub(crate) promised: Promised,
}

/// What was sent to a storage since its last heartbeat, which knows nothing of it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Promised {
    /// Of that heartbeat.
    number: u32,
    /// Blocks that are not known to be done. Each may become as long as a block can be.
    blocks: u64,
    /// Bytes of those that are done.
    done_len: u64,
}

/// When a block was sent to a storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Promise(u32);

impl Promised {
    /// Counts a block.
    pub(crate) fn add(&mut self) -> Promise {
        self.blocks = self.blocks.saturating_add(1);
        Promise(self.number)
    }

    /// Such a block is complete, with so many bytes there, or given up.
    pub(crate) fn settle(&mut self, promise: Option<Promise>, len: u64) {
        self.done_len = self.done_len.saturating_add(len);
        if promise == Some(Promise(self.number)) {
            self.blocks = self.blocks.saturating_sub(1);
        }
    }

    /// A heartbeat tells what room is left.
    pub(crate) fn renew(&mut self) {
        *self = Promised { number: self.number.wrapping_add(1), ..Promised::default() };
    }

    /// Bytes that may be taken, if blocks can have that many each.
    pub(crate) fn len(&self, block_len: u64) -> u64 {
        block_len.saturating_mul(self.blocks).saturating_add(self.done_len)
    }
}
