//! Where blocks are, for who reads at a member that follows: as DataNodes have told it, judged when somebody asks by what the
//! block is in the state that is read.
//!
//! What only a leader knows is left to it: where a block is being written, what is bad of it everywhere, who decodes it, and
//! where something is that nobody has told here. So is a block on a DataNode that may refuse the token of this member.
//!
//! Source: Hadoop 3.5.0 `ObserverRetryOnActiveException`, `FSNamesystem#getBlockLocations`.

use std::cell::Cell;

use cairn_master::facts::facts_as;
use cairn_namespace::{Block, BlockState};
use cairn_redundancy::block::Location;
use cairn_redundancy::{Cluster, KeptPlace, Layout, Standby, StorageHandle};
use cairn_stripe::UnitIndex;

use super::places::Places;
use crate::block_tokens::BlockTokens;

/// See the module.
pub struct Told<'a> {
    standby: &'a Standby,
    tokens: &'a BlockTokens,
    /// Something is for the leader to tell.
    is_left: Cell<bool>,
}

impl<'a> Told<'a> {
    /// From what was told, for who is issued those tokens.
    pub fn new(standby: &'a Standby, tokens: &'a BlockTokens) -> Told<'a> {
        Told { standby, tokens, is_left: Cell::new(false) }
    }

    /// Whether something that was asked for is for the leader to tell.
    pub fn is_left(&self) -> bool {
        self.is_left.get()
    }

    /// These places; without any that is left to the leader.
    pub fn or_left(&self, storages: Option<Vec<(StorageHandle, UnitIndex)>>) -> Places {
        self.is_left.set(self.is_left.get() || storages.is_none());
        Places { storages: storages.unwrap_or_default(), corrupt: false }
    }

    /// Good places of a block, on nodes of a cluster that knows these alone; none of one that is not complete.
    pub fn locations(&self, cluster: &Cluster, block: &Block, layout: &Layout) -> Vec<Location> {
        if block.state != BlockState::Complete {
            return Vec::new();
        }
        let facts = facts_as(block, *layout);
        let found = self.standby.good_places(block.id, &facts);
        let has_other_bytes = |place: &KeptPlace<'_>| {
            let recorded = block.unit_crcs.get(place.unit.as_usize()).copied().flatten();
            recorded.zip(place.crc32c).is_some_and(|(recorded, told)| recorded != told)
        };
        let found = found.filter(|place| !has_other_bytes(place) && self.takes_tokens(place));
        found.filter_map(|place| location(cluster, &place)).collect()
    }

    /// Whether the DataNode of a place takes tokens of this member. If it may not, the leader names it, whose tokens it takes.
    fn takes_tokens(&self, place: &KeptPlace<'_>) -> bool {
        let takes = self.tokens.are_taken_by(place.node);
        self.is_left.set(self.is_left.get() || !takes);
        takes
    }
}

/// A place on a storage that the cluster has heard of.
fn location(cluster: &Cluster, place: &KeptPlace<'_>) -> Option<Location> {
    let storage = cluster.storage_by_uuid(place.storage)?;
    let node = cluster.node(storage.node);
    let (storage, unit) = (storage.handle, place.unit);
    let is_its = node.alive && node.uuid == place.node;
    is_its.then_some(Location { node: node.handle, storage, unit, corrupt: false })
}
