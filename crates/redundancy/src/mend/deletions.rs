//! Orders to delete: when they are given, and what becomes of those that are not obeyed.

use crate::block::{BlockLookup, BlockRef, BlockState};
use crate::clock::{Now, millis};
use crate::cluster::Cluster;
use crate::handle::NodeHandle;

impl Cluster {
    /// Source: Hadoop 3.5.0 `InvalidateBlocks#getInvalidationDelay`.
    fn may_delete(&self, now: Now) -> bool {
        let delay_ms = millis(self.config.deletion_delay);
        !self.holds_deletions && now.mono_ms >= self.started_ms.saturating_add(delay_ms)
    }

    /// What a node is told to delete now. What was chosen before it has registered waits for its reports: it may be
    /// another machine with its UUID, or have other disks, and have another replica than the one that was to go.
    ///
    /// Deviation: Hadoop tells it with the first heartbeat.
    pub(super) fn take_invalidations(&mut self, handle: NodeHandle, now: Now) -> Vec<BlockRef> {
        if !self.may_delete(now) {
            return Vec::new();
        }
        let mut taken = Vec::new();
        let mut storages = self.node(handle).storages.clone();
        storages.retain(|storage| self.storage(*storage).reported);
        for storage in storages {
            let room = self.config.invalidate_limit.saturating_sub(taken.len());
            taken.extend(self.blocks.take_deletions((storage, handle), room, now.mono_ms));
        }
        taken
    }

    /// Looks at orders whose time is over.
    pub(super) fn follow_deletions(&mut self, lookup: &dyn BlockLookup, now: Now) {
        let Some(than_ms) = now.mono_ms.checked_sub(millis(self.config.pending_timeout)) else {
            return;
        };
        let nodes = &self.nodes;
        let node_of = |storage: crate::StorageHandle| nodes.node_of(storage);
        for (storage, block) in self.blocks.take_old_orders(than_ms, node_of) {
            let id = block.id.group();
            let place = self.blocks.on(storage, block.id);
            let Some(place) = place.filter(|place| place.excess && place.told) else {
                // What was there in spite of it counts from now on.
                self.check_redundancy(lookup, id);
                continue;
            };
            if place.corrupt || self.is_record_doubtful(id) {
                self.blocks.judge_anew(storage, block.id);
                self.check_redundancy(lookup, id);
                continue;
            }
            self.blocks.order_deletion(storage, block);
            // Takes it back if it is needed by now.
            let facts = lookup.block(id).filter(|facts| facts.state == BlockState::Complete);
            if facts.is_some() {
                self.check_against(lookup, id, facts);
            }
        }
    }
}
