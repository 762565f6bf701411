//! What was kept, handed to who leads from now on: what of it is not taken over yet, and of which block.

use super::index::Index;
use super::replicas::Replicas;
use super::{KeptNode, Standby};
use crate::block::BlockRef;
use crate::clock::Now;
use crate::handle::StorageHandle;
use crate::inventory::{Heartbeat, Registration};
use crate::replica::{Changes, ReportedReplica};
use cairn_stripe::{BlockId, StorageType};
use std::collections::{BTreeMap, BTreeSet};

/// All that was kept, of nodes that may live.
#[derive(Debug)]
pub struct Kept {
    pub(super) nodes: BTreeMap<String, KeptNode>,
    index: Index,
}

impl Standby {
    /// What was kept, of nodes that were heard of in so many milliseconds.
    pub fn hand_over(mut self, now: Now, silence_ms: u64) -> Kept {
        // What others had is left in the index, which leads nowhere then.
        self.nodes.retain(|_, node| node.is_alive(now, silence_ms));
        Kept { nodes: self.nodes, index: self.index }
    }
}

impl Kept {
    /// The DataNodes, with what they have said of themselves last.
    pub fn nodes(&self) -> impl Iterator<Item = (&Registration, Option<&Heartbeat>)> {
        self.nodes.values().map(|node| (&node.registration, node.heartbeat.as_ref()))
    }

    /// All of it, to be taken over for those storages that `find` knows by the UUIDs of node and storage.
    pub(crate) fn into_pending(
        self,
        mut find: impl FnMut(&str, &str, StorageType) -> Option<StorageHandle>,
    ) -> Pending {
        let (mut storages, mut lists) = (BTreeMap::new(), BTreeMap::new());
        for (node, kept) in self.nodes {
            for (uuid, kept) in kept.storages {
                let Some(storage) = find(&node, &uuid, kept.storage_type) else { continue };
                storages.insert(kept.handle, storage);
                let (replicas, bad) = (kept.replicas, kept.bad);
                lists.insert(storage, List { replicas, bad, taken: None });
            }
        }
        let (settled, changes) = (BTreeSet::new(), Changes::default());
        Pending { index: self.index, storages, lists, settled, changes }
    }
}

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

#[derive(Debug)]
struct List {
    replicas: Replicas,
    bad: BTreeMap<BlockId, BlockRef>,
    /// The last that the walk has taken.
    taken: Option<BlockId>,
}

impl List {
    fn with_mark(&self, replica: ReportedReplica) -> KeptReplica {
        KeptReplica { replica, bad: self.bad.get(&replica.block.id).copied() }
    }
}

impl Pending {
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
