//! Which blocks of a node a balancer may move.
//!
//! Source: Hadoop 3.5.0 `BlockManager#getBlocksWithLocations`.

use crate::block::{BlockFacts, BlockLookup, BlockState, Layout, Location};
use crate::cluster::Cluster;
use crate::handle::{NodeHandle, StorageHandle};
use crate::places::map::CHUNK;
use crate::storage::Storage;
use cairn_stripe::{BlockId, StorageType};
use std::iter::{once, repeat};

/// Blocks that one call looks at, so that a node with many small ones holds nobody up. The next call
/// begins elsewhere.
const LOOKED_AT_MAX: usize = 5_000;

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
    pub fn bytes_on_a_node(&self) -> u64 {
        match self.facts.layout {
            Layout::Replicated { .. } | Layout::Parity { .. } => self.facts.len,
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
        let storages = node.storages.iter().map(|handle| self.storage(*handle)).filter(wanted);
        let storages: Vec<StorageHandle> = storages.map(|storage| storage.handle).collect();
        let (mut found, mut hot, mut bytes) = (Vec::new(), Vec::new(), 0_u64);
        for id in self.held_from(&storages, start).take(LOOKED_AT_MAX) {
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

    /// All that storages hold, once, from somewhere on and round. Where that is, is found by counting chunks of
    /// blocks, of which a storage has few, and then some blocks.
    fn held_from(&self, storages: &[StorageHandle], start: u64) -> impl Iterator<Item = BlockId> {
        let chunks_on = |storage: &StorageHandle| self.blocks.map().chunks_on(*storage);
        let all = storages.iter().map(chunks_on).sum::<usize>().max(1) as u64;
        let mut chunk = (start % all) as usize;
        let skipped = (start / all % CHUNK as u64) as usize;
        let mut first = 0;
        while let Some(here) = storages.get(first).map(chunks_on).filter(|here| *here <= chunk) {
            (first, chunk) = (first + 1, chunk - here);
        }
        let (before, from) = storages.split_at(first);
        let opening = from.first().and_then(|s| self.blocks.map().first_in_chunk(*s, chunk));
        let last = opening.and_then(|id| id.0.checked_sub(1)).map(BlockId);
        let held = move |(storage, after)| self.blocks.map().iter_on(storage, after);
        let begun = from.iter().zip(once(last).chain(repeat(None)));
        let rest = before.iter().zip(repeat(None));
        let whole = begun.chain(rest).map(|(storage, after)| (*storage, after)).flat_map(held);
        let opened =
            from.first().into_iter().flat_map(move |s| self.blocks.map().iter_on(*s, None));
        let round = whole.chain(opened.take_while(move |id| Some(*id) <= last));
        round.clone().skip(skipped).chain(round.take(skipped))
    }

    fn movable(
        &self,
        lookup: &dyn BlockLookup,
        query: &MoveQuery,
        id: BlockId,
    ) -> Option<MovableBlock> {
        // A balancer knows nothing of the other units of a contiguous group. A container is one of them, or not for long
        // none; a replica of what is packed in it is to go.
        let is_movable = |facts: &BlockFacts| {
            facts.group.is_none() && facts.packed.is_none() && !id.is_parity() && !id.is_container()
        };
        let facts = lookup.block(id).filter(is_movable)?;
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
