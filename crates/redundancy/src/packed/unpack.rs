//! Packed blocks that are to be plain again: who writes replicas of them.
//!
//! Each replica is written by the node that gets it, which reads the block from its container as for a client and compares
//! it with what is recorded. What is ordered and does not come in time is ordered anew, elsewhere if that is possible.

use crate::block::{BlockLookup, BlockRef};
use crate::clock::{Dice, Now, millis};
use crate::cluster::Cluster;
use crate::command::UnpackOrder;
use crate::handle::{NodeHandle, StorageHandle};
use crate::placement::PlacementRequest;
use cairn_stripe::BlockId;

/// Blocks of which replicas are to be written at a time; what more is asked for waits.
const ASKED_MAX: usize = 2000;

impl Cluster {
    /// Has replicas of a packed block written until it has `copies`, of which none is deleted from now on. Returns
    /// whether it has them, or as many as there are nodes for.
    pub fn unpack(
        &mut self,
        lookup: &dyn BlockLookup,
        block: BlockRef,
        copies: usize,
        now: Now,
        dice: Dice<'_>,
    ) -> bool {
        let id = block.id;
        if !self.packed.is_asked(id) && self.packed.asked_len() >= ASKED_MAX {
            return false;
        }
        let patience = millis(self.config.pending_timeout);
        let there: Vec<StorageHandle> =
            self.places(id).filter(|place| self.is_live(place)).map(|of| of.storage).collect();
        let mut ordered = std::mem::take(self.packed.ordered(id));
        let late: Vec<NodeHandle> = ordered
            .iter()
            .filter(|(_, since_ms)| now.mono_ms.saturating_sub(*since_ms) >= patience)
            .map(|(storage, _)| self.storage(*storage).node)
            .collect();
        ordered.retain(|(storage, since_ms)| {
            let is_coming = now.mono_ms.saturating_sub(*since_ms) < patience;
            is_coming && self.node(self.storage(*storage).node).alive && !there.contains(storage)
        });
        let lacking = copies.max(1).saturating_sub(there.len() + ordered.len());
        if lacking > 0 {
            for storage in self.places_to_unpack(
                lookup,
                block,
                (lacking, &there, &ordered),
                (&late, now),
                dice,
            ) {
                ordered.push((storage, now.mono_ms));
                let node = self.storage(storage).node;
                self.work.give(node).unpacks.push(UnpackOrder { block, storage });
            }
        }
        let is_done = !there.is_empty() && (there.len() >= copies || ordered.is_empty());
        *self.packed.ordered(id) = ordered;
        is_done
    }

    /// Storages for more replicas, on other nodes than those that have one or get one; on those that were too late only
    /// if there are no others.
    fn places_to_unpack(
        &self,
        lookup: &dyn BlockLookup,
        block: BlockRef,
        (count, there, ordered): (usize, &[StorageHandle], &[(StorageHandle, u64)]),
        (late, now): (&[NodeHandle], Now),
        dice: Dice<'_>,
    ) -> Vec<StorageHandle> {
        let others = self.nodes().filter(|node| !node.takes_groups).map(|node| node.handle);
        let named = there.iter().chain(ordered.iter().map(|(storage, _)| storage));
        let excluded: Vec<NodeHandle> =
            others.chain(named.map(|storage| self.storage(*storage).node)).collect();
        let request = PlacementRequest {
            count,
            block_len: block.len,
            excluded: &excluded,
            busy: late,
            existing: there,
            storage_policy: lookup.storage_policy(block.id),
            ..PlacementRequest::default()
        };
        self.choose_replicated(&request, now, dice)
    }

    /// The orders to write plain replicas that hold still.
    pub(crate) fn still_to_unpack(
        &mut self,
        lookup: &dyn BlockLookup,
        mut orders: Vec<UnpackOrder>,
    ) -> Vec<UnpackOrder> {
        orders.retain(|order| {
            let facts = lookup.block(order.block.id);
            facts.is_some_and(|facts| facts.packed.is_some() && facts.gs == order.block.gs)
                && self.packed.is_asked(order.block.id)
        });
        orders
    }

    /// The packed blocks that are to be plain again, as far as that was told.
    pub fn unpacking(&self) -> Vec<BlockId> {
        self.packed.asked().collect()
    }

    /// A packed block is not to be plain any more: replicas of it may go again.
    pub fn keep_packed(&mut self, lookup: &dyn BlockLookup, id: BlockId) {
        if self.packed.is_asked(id) {
            self.packed.forget(id);
            self.check_redundancy(lookup, id);
        }
    }
}
