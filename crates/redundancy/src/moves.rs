//! Which blocks of a node a balancer may move.
//!
//! Source: Hadoop 3.5.0 `BlockManager#getBlocksWithLocations`.

use crate::block::{BlockFacts, BlockLookup, BlockState, Layout, Location};
use crate::cluster::Cluster;
use crate::node::NodeHandle;
use crate::storage::Storage;
use cairn_stripe::{BlockId, StorageType};

/// Blocks that one call looks at, so that a node with many small ones holds nobody up. The next call
/// begins elsewhere.
const LOOKED_AT_MAX: usize = 50_000;

/// What a balancer asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MoveQuery {
    /// The node that is to get rid of blocks.
    pub node: NodeHandle,
    /// Enough blocks for about so many bytes on that node.
    pub size: u64,
    /// Blocks (whole groups) shorter than this are left out.
    pub min_block_len: u64,
    /// Only what is on storages of this type.
    pub storage_type: Option<StorageType>,
}

/// A block or group with its good places. Each location has its own unit: the order of the locations
/// means nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MovableBlock {
    /// The block's or group's id.
    pub id: BlockId,
    /// What it should be.
    pub facts: BlockFacts,
    /// Good replicas or units that are not to be deleted.
    pub places: Vec<Location>,
}

impl MovableBlock {
    /// About what moving it away takes off its node.
    fn bytes_on_a_node(&self) -> u64 {
        match self.facts.layout {
            Layout::Replicated { .. } => self.facts.len,
            Layout::Striped { k, .. } => self.facts.len / u64::from(k.max(1)),
        }
    }
}

impl Cluster {
    /// Complete blocks with something on the node, from the `start`th on (of as many as there are) and
    /// round, until enough are found. Blocks that `is_hot` come last. Storages that have not reported
    /// since their node registered are passed over.
    pub fn movable_blocks(
        &self,
        lookup: &dyn BlockLookup,
        query: &MoveQuery,
        start: u64,
        is_hot: &dyn Fn(BlockId) -> bool,
    ) -> Vec<MovableBlock> {
        let wanted = |storage: &&Storage| {
            let of_type = query.storage_type.is_none_or(|kind| storage.storage_type == kind);
            storage.reported && of_type
        };
        let node = self.node(query.node);
        let storages: Vec<&Storage> =
            node.storages.iter().map(|handle| self.storage(*handle)).filter(wanted).collect();
        let all = || storages.iter().flat_map(|storage| storage.blocks());
        let count: usize = storages.iter().map(|storage| storage.block_count()).sum();
        let start = usize::try_from(start % (count.max(1) as u64)).unwrap_or(0);
        let round = all().skip(start).chain(all().take(start)).take(LOOKED_AT_MAX);
        let (mut found, mut hot, mut bytes) = (Vec::new(), Vec::new(), 0_u64);
        for id in round {
            if bytes >= query.size {
                return found;
            }
            let Some(block) = self.movable(lookup, query, id.group()) else { continue };
            if is_hot(block.id) {
                hot.push(block);
            } else {
                bytes = bytes.saturating_add(block.bytes_on_a_node());
                found.push(block);
            }
        }
        for block in hot {
            if bytes >= query.size {
                break;
            }
            bytes = bytes.saturating_add(block.bytes_on_a_node());
            found.push(block);
        }
        found
    }

    fn movable(
        &self,
        lookup: &dyn BlockLookup,
        query: &MoveQuery,
        id: BlockId,
    ) -> Option<MovableBlock> {
        let facts = lookup.block(id)?;
        if facts.state != BlockState::Complete || facts.len < query.min_block_len {
            return None;
        }
        let places: Vec<Location> =
            self.locations(id).into_iter().filter(|place| !place.corrupt).collect();
        let here = places.iter().any(|place| place.node == query.node);
        here.then_some(MovableBlock { id, facts, places })
    }
}

#[cfg(test)]
mod tests;
