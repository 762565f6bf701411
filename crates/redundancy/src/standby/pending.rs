//! What was kept of replicas by a member that leads by now, and is not taken over yet: by storage and by block.

use super::index::Index;
use super::replicas::Replicas;
use crate::block::BlockRef;
use crate::handle::StorageHandle;
use crate::replica::{Changes, ReportedReplica};
use cairn_stripe::BlockId;
use std::collections::{BTreeMap, BTreeSet};

/// A replica that was kept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeptReplica {
    pub replica: ReportedReplica,
    /// It was found to be bad.
    pub bad: Option<BlockRef>,
}

/// What is not taken over yet.
#[derive(Debug)]
pub struct Pending {
    index: Index,
    /// Storages by what they are called in the index.
    storages: BTreeMap<StorageHandle, StorageHandle>,
    lists: BTreeMap<StorageHandle, List>,
    /// Blocks and groups of which all was taken, before the walk over the lists came by.
    settled: BTreeSet<BlockId>,
    /// What follows from that.
    pub(crate) changes: Changes,
}

/// What a storage has.
#[derive(Debug)]
pub(super) struct List {
    pub replicas: Replicas,
    pub bad: BTreeMap<BlockId, BlockRef>,
    /// The last that the walk has taken.
    pub taken: Option<BlockId>,
}

impl List {
    fn with_mark(&self, replica: ReportedReplica) -> KeptReplica {
        KeptReplica { replica, bad: self.bad.get(&replica.block.id).copied() }
    }
}

impl Pending {
    /// All of what storages have, by what these are called in the index.
    pub(super) fn new(
        index: Index,
        storages: BTreeMap<StorageHandle, StorageHandle>,
        lists: BTreeMap<StorageHandle, List>,
    ) -> Pending {
        let (settled, changes) = (BTreeSet::new(), Changes::default());
        Pending { index, storages, lists, settled, changes }
    }

    /// The blocks and groups that the next step of the walk is about, in the order of their ids.
    pub(crate) fn next_blocks(&self, most: usize) -> Vec<BlockId> {
        let list = self.lists.values().next();
        let next = list.map(|list| list.replicas.after(list.taken, most)).unwrap_or_default();
        let mut blocks: Vec<BlockId> = next.iter().map(|next| next.block.id.group()).collect();
        blocks.dedup();
        blocks.retain(|id| !self.settled.contains(id));
        blocks
    }

    /// Walks on along a storage of which something is left; none if there is none.
    pub(crate) fn take_next(&mut self, most: usize) -> Option<(StorageHandle, Vec<KeptReplica>)> {
        loop {
            let storage = *self.lists.keys().next()?;
            if let Some(next) = self.take_next_of(storage, most) {
                return Some((storage, next));
            }
        }
    }

    /// Walks on along that storage; none if nothing is left of it.
    pub(crate) fn take_next_of(
        &mut self,
        storage: StorageHandle,
        most: usize,
    ) -> Option<Vec<KeptReplica>> {
        let list = self.lists.get_mut(&storage)?;
        let next = list.replicas.after(list.taken, most);
        let Some(last) = next.last() else {
            self.lists.remove(&storage);
            return None;
        };
        list.taken = Some(last.block.id);
        let is_left =
            |replica: &&ReportedReplica| !self.settled.contains(&replica.block.id.group());
        Some(next.iter().filter(is_left).map(|replica| list.with_mark(*replica)).collect())
    }

    fn of(&self, id: BlockId) -> impl Iterator<Item = (StorageHandle, KeptReplica)> {
        let is_left = !self.settled.contains(&id);
        let places = self.index.places(id).filter(move |_| is_left);
        places.filter_map(|(storage, own_id)| {
            let storage = *self.storages.get(&storage)?;
            let list = self.lists.get(&storage)?;
            let is_left = list.taken.is_none_or(|taken| own_id > taken);
            let replica = list.replicas.get(own_id).filter(|_| is_left)?;
            Some((storage, list.with_mark(*replica)))
        })
    }

    /// Whether anything is left of a block or group.
    pub(crate) fn has(&self, id: BlockId) -> bool {
        self.of(id).next().is_some()
    }

    /// What is left of a block or group, which is settled by that.
    pub(crate) fn take_of(&mut self, id: BlockId) -> Vec<(StorageHandle, KeptReplica)> {
        let found: Vec<_> = self.of(id).collect();
        if !found.is_empty() {
            self.settled.insert(id);
        }
        found
    }

    /// Forgets what was settled.
    #[cfg(test)]
    pub(crate) fn unsettle(&mut self) {
        self.settled.clear();
    }

    /// A storage is lost, with what it had.
    pub(crate) fn lose(&mut self, storage: StorageHandle) {
        self.lists.remove(&storage);
    }
}
