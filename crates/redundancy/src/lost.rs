//! Storages that are lost, with all that they hold: of dead nodes, and failed volumes.
//!
//! What is on one counts for nothing from that moment on. Forgetting it and queueing what is missing takes
//! long where a node has millions of replicas, so that is done in steps; between them others work. If
//! the storage returns first, the rest stays known, as what a node holds that merely restarts.

use crate::block::BlockLookup;
use crate::cluster::Cluster;
use crate::handle::{NodeHandle, StorageHandle};
use crate::places::map::Place;
use crate::storage::StorageState;
use cairn_stripe::BlockId;

/// Places that one step forgets.
const STEP: usize = 1000;

impl Cluster {
    /// Whether what a storage holds is lost. A node in maintenance will be back with it.
    pub(crate) fn is_lost(&self, storage: StorageHandle) -> bool {
        let storage = self.storage(storage);
        let node = self.node(storage.node);
        storage.state == StorageState::Failed || !node.alive && !node.is_maintenance()
    }

    /// The places of a block or group that are not lost.
    pub(crate) fn places(&self, id: BlockId) -> impl Iterator<Item = Place> + Clone + '_ {
        self.blocks.of(id).filter(|place| !self.is_lost(place.storage))
    }

    /// What a node holds counts in another way from now on.
    pub(crate) fn note_change_on_node(&mut self, node: NodeHandle) {
        for storage in &self.nodes.node(node).storages {
            self.blocks.note_change_on(*storage);
        }
    }

    /// Notes that a storage is lost: [`Cluster::drop_lost`] forgets what it held. What it was to delete is
    /// judged anew if it returns.
    pub(crate) fn lose_storage(&mut self, storage: StorageHandle) {
        self.blocks.forget_deletions_on(storage);
        self.reports.end(storage);
        if let Some(pending) = &mut self.pending {
            pending.lose(storage);
        }
        let entry = self.nodes.storage_mut(storage);
        entry.reported = false;
        entry.life += 1;
        entry.lost_after = self.reports.number();
        self.lost.insert(storage);
        self.blocks.note_change_on(storage);
    }

    /// Forgets some of what lost storages held, and queues what is missing for it. Returns whether
    /// something is left: then it is to be called again soon, after others had their turn.
    pub fn drop_lost(&mut self, lookup: &dyn BlockLookup) -> bool {
        let mut budget = STEP;
        while let Some(storage) = self.lost.first().copied() {
            if self.blocks.map().count_on(storage) == 0 || !self.is_lost(storage) {
                self.lost.remove(&storage);
                continue;
            }
            if budget == 0 {
                return true;
            }
            let next: Vec<BlockId> =
                self.blocks.map().iter_on(storage, None).take(budget).collect();
            budget -= next.len();
            self.rounds.hurry();
            for id in next {
                if let Some(construction) = self.blocks.construction_mut(id.group()) {
                    construction.lose(storage, id.unit());
                }
                self.remove_place(lookup, storage, id);
            }
        }
        false
    }
}

#[cfg(test)]
mod tests;
