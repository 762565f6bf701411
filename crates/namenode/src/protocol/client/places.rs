//! Where a block is, as clients are told.

use cairn_redundancy::{Cluster, StorageHandle};
use cairn_stripe::{BlockId, UnitIndex};

/// Where one block or group is, in the order in which clients should use it.
pub struct Places {
    /// The storages, with the unit of each (0 for replicas).
    pub storages: Vec<(StorageHandle, UnitIndex)>,
    /// Whether all that is left of the block is known to be bad.
    pub corrupt: bool,
}

impl Places {
    /// Of each place whether the replica or unit there is in its DataNode's memory.
    ///
    /// Source: Hadoop 3.5.0 `CacheManager#setCachedLocations`.
    pub fn cached(&self, cluster: &Cluster, id: BlockId) -> impl Iterator<Item = bool> {
        let caches = cluster.caches_anything();
        self.storages.iter().map(move |(storage, unit)| {
            let id = if id.is_striped() { id.group().internal(*unit) } else { id };
            caches && cluster.is_cached(id, cluster.storage(*storage).node)
        })
    }
}
