//! Blocks that are being written and have too few places without a leaving node.
//!
//! A replica that is not finalized is in no list of what a storage holds: what is known of it is where the
//! writer's pipeline is, and what DataNodes have said of it. Looked at when a node could go otherwise, and
//! when somebody asks; nothing is kept.
//!
//! A leaving node that dies is not let go for that: a recovery would not wait for it any longer, and go on with what
//! the others have.
//!
//! Deviation: Hadoop lets a node go although it has the only open replica of a block.

use super::lists::Left;
use crate::block::{BlockLookup, BlockState};
use crate::cluster::Cluster;
use crate::handle::NodeHandle;
use crate::node::AdminState;
use crate::places::construction::Expected;
use crate::places::own_id;
use crate::replica::ReplicaState;
use crate::storage::StorageState;
use cairn_stripe::BlockId;
use std::collections::{BTreeMap, BTreeSet};

impl Cluster {
    /// The open replicas and units, by their own ids, for which a leaving node must stay.
    pub(super) fn open_on(
        &self,
        lookup: &dyn BlockLookup,
        node: NodeHandle,
    ) -> BTreeMap<BlockId, Left> {
        let ids = self.blocks.under_construction();
        ids.flat_map(|id| self.open_of(lookup, id))
            .filter(|(at, ..)| *at == node)
            .map(|(_, own_id, left)| (own_id, left))
            .collect()
    }

    /// The leaving nodes that must stay for an open block or group, each with the id of what it has of it.
    ///
    /// The others must have as much as a finalized block could be read from. A replica whose node has been down since
    /// it was written may have lost the end of what was acknowledged, so it stands for no other; nor does one whose node
    /// has registered and not told yet what it has.
    pub(super) fn open_of(
        &self,
        lookup: &dyn BlockLookup,
        id: BlockId,
    ) -> Vec<(NodeHandle, BlockId, Left)> {
        let Some(construction) = self.blocks.construction(id) else { return Vec::new() };
        let is_there = |expected: &&Expected| {
            let storage = self.storage(expected.storage);
            let node = self.node(storage.node);
            let may_return = node.alive || node.is_leaving();
            may_return && storage.state != StorageState::Failed && construction.may_have(expected)
        };
        let of_leaving = |e: &&Expected| self.node(self.storage(e.storage).node).is_leaving();
        let (leaving, staying): (Vec<_>, Vec<_>) =
            construction.expected.iter().filter(is_there).partition(of_leaving);
        if leaving.is_empty() {
            return Vec::new();
        }
        let Some(facts) = lookup.block(id).filter(|facts| facts.state != BlockState::Complete)
        else {
            return Vec::new();
        };
        let is_sure = |expected: &&Expected| {
            let state = expected.reported.map(|reported| reported.state);
            self.storage(expected.storage).reported
                && state != Some(ReplicaState::WaitingToBeRecovered)
        };
        let staying: BTreeSet<(u8, u32)> = staying
            .into_iter()
            .filter(is_sure)
            // Each replica counts, of a group each unit.
            .map(|e| (e.unit.0, if id.has_units() { 0 } else { self.storage(e.storage).node.0 }))
            .collect();
        let needed = |admin: AdminState| match admin {
            AdminState::EnteringMaintenance => self.limits().maintenance_min(&facts),
            _ => self.min_units(&facts),
        };
        let leaving = leaving.into_iter().map(|e| (self.storage(e.storage).node, e.unit));
        leaving
            .filter(|(node, _)| staying.len() < needed(self.node(*node).admin))
            .map(|(node, unit)| {
                let own_id = own_id(id, unit);
                let len = if facts.is_final() { facts.unit_len(unit) } else { 0 };
                (node, own_id, Left { len, only_leaving: staying.is_empty(), open: true })
            })
            .collect()
    }
}
