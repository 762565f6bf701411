//! What was kept, handed to who leads from now on.

use super::index::Index;
use super::pending::{List, Pending};
use super::{KeptNode, Standby};
use crate::clock::Now;
use crate::handle::StorageHandle;
use crate::inventory::{Heartbeat, Registration};
use cairn_stripe::StorageType;
use std::collections::BTreeMap;

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
        Pending::new(self.index, storages, lists)
    }
}
