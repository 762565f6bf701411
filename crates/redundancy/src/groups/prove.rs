//! Proofs of replicas that no encode has read since their DataNode began: after a restart, or where a replica was rebuilt
//! and the lost one came back. One of them is read as its disk has it, and then the others may go.

use crate::block::{BlockLookup, BlockRef};
use crate::clock::millis;
use crate::cluster::Cluster;
use crate::command::ProveOrder;
use crate::groups::known::{Proof, Proving};
use crate::handle::{NodeHandle, StorageHandle};
use crate::node::DataNode;
use crate::replica::Changes;
use crate::slots::Slots;
use cairn_stripe::group::GroupRecord;
use cairn_stripe::pack::PackIndex;
use cairn_stripe::{BlockId, UnitIndex};
use std::collections::BTreeMap;

/// Replicas that one DataNode has to read at a time.
pub(crate) const PROVES_PER_NODE: usize = 2;

/// What a DataNode has read of a replica as its disk has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proved {
    /// The block, with the stamp and length that were found.
    pub block: BlockRef,
    /// The UUID of the storage that it was read from.
    pub storage: String,
    /// CRC32C of all bytes; none if they could not be read, or not as their checksums have them.
    pub crc32c: Option<u32>,
    /// What the end of a parity says of its group.
    pub record: Option<GroupRecord>,
    /// The index of a container, which was decoded if there is no CRC of it.
    pub index: Option<PackIndex>,
}

impl Cluster {
    /// Orders a proof for a member or parity with more replicas than its group needs, unless one is under way: `replicas`
    /// are the replicas of those, by their slots.
    pub(crate) fn have_one_proven(
        &mut self,
        slots: &Slots,
        replicas: impl IntoIterator<Item = (UnitIndex, Vec<StorageHandle>)>,
    ) {
        let now_ms = self.last_event.mono_ms;
        let patience = millis(self.config.pending_timeout);
        self.groups.give_up_proving(patience, now_ms);
        for (unit, storages) in replicas {
            let block = slots.block(unit);
            if self.groups.proving_of(block.id).is_some() {
                return;
            }
            let Some(storage) = self.best_to_stay(slots, unit, &storages) else { continue };
            let node = self.storage(storage).node;
            let of_node = self.groups.proving().filter(|(_, proving)| proving.node == node);
            if of_node.count() >= PROVES_PER_NODE {
                continue;
            }
            let place = self.life_of(storage);
            self.groups.begin_proving(block.id, Proving { node, place, since_ms: now_ms });
            let order = ProveOrder { block, storage, wants_index: false };
            self.work.give(node).proves.push(order);
            return;
        }
    }

    /// Of some replicas of a member or parity, all on nodes that read what they are told, the one that is best kept: on a
    /// node with no other unit of the group; then on a rack that has no more of them than it should; then one that is
    /// proven already.
    pub(crate) fn best_to_stay(
        &self,
        slots: &Slots,
        unit: UnitIndex,
        storages: &[StorageHandle],
    ) -> Option<StorageHandle> {
        let node_of = |storage: StorageHandle| self.node(self.storage(storage).node);
        let others: Vec<&DataNode> =
            self.kept_places(slots, unit).into_iter().map(node_of).collect();
        let most = self.limits().per_rack_max(&slots.facts);
        let proven = self.proven_place(slots, unit);
        let able = storages.iter().copied().filter(|storage| {
            let node = node_of(*storage);
            node.takes_groups && !node.is_leaving()
        });
        able.min_by_key(|storage| {
            let node = node_of(*storage);
            let sharing = others.iter().filter(|other| other.handle == node.handle).count();
            let on_rack = others.iter().filter(|other| other.rack == node.rack).count();
            (sharing, on_rack >= most, proven != Some(*storage))
        })
    }

    /// Where the other units of a group are, or will be when what is too much of them is gone, as far as that is known.
    fn kept_places(&self, slots: &Slots, unit: UnitIndex) -> Vec<StorageHandle> {
        let mut first: BTreeMap<UnitIndex, StorageHandle> = BTreeMap::new();
        let others = self.places_of(slots).filter(|place| place.unit != unit);
        for place in others.filter(|place| self.is_live(place)) {
            first.entry(place.unit).or_insert(place.storage);
        }
        first.into_iter().map(|(unit, at)| self.proven_place(slots, unit).unwrap_or(at)).collect()
    }

    /// The orders to prove that hold still.
    pub(crate) fn still_to_prove(&self, mut orders: Vec<ProveOrder>) -> Vec<ProveOrder> {
        orders.retain(|order| {
            let proving = self.groups.proving_of(order.block.id);
            let place = proving.map(|proving| proving.place);
            let is_its = place.is_some_and(|place| place == self.life_of(order.storage));
            let is_there = self.is_good_on(order.storage, order.block.id)
                || self.is_unknown_on(order.storage, order.block);
            is_its && (is_there || order.wants_index)
        });
        orders
    }

    /// Takes what a DataNode has read of a replica. It counts if it is what was first written, and if its storage is as
    /// it was told; then others of the member may go. One with other bytes is marked bad.
    pub fn proved(
        &mut self,
        lookup: &dyn BlockLookup,
        reporter: NodeHandle,
        proved: &Proved,
    ) -> Changes {
        let Proved { block, storage, crc32c, .. } = proved;
        let proving = self.groups.proving_of(block.id);
        let Some(proving) = proving.filter(|proving| proving.node == reporter) else {
            return Changes::default();
        };
        self.note_index(lookup, proved);
        // One that could not be read is tried again when its time is over: its DataNode tells what is wrong with it.
        let Some(crc32c) = *crc32c else { return Changes::default() };
        self.groups.end_proving(block.id);
        let place = proving.place;
        if self.is_unknown_on(place.storage, *block) {
            self.note_found(proved, crc32c);
            return Changes::default();
        }
        // One that is on its way out takes no other's place.
        let is_as_told = self.life_of(place.storage) == place
            && self.storage(place.storage).uuid == *storage
            && self.is_good_on(place.storage, block.id);
        let owner = block.id.group();
        let Some(slots) = lookup.block(owner).map(|facts| Slots::of(lookup, owner, &facts)) else {
            return Changes::default();
        };
        let is_the_block = slots.unit_of(block.id).is_some_and(|unit| slots.block(unit) == *block);
        if !is_as_told || !is_the_block {
            return Changes::default();
        }
        if lookup.unit_crc(owner, block.id.unit()) != Some(crc32c) {
            return self.scan_report(lookup, reporter, storage, &[(*block, crc32c)]);
        }
        self.groups.note_proof(block.id, Proof { gs: block.gs, place });
        self.check_redundancy(lookup, owner);
        Changes::default()
    }

    /// The replicas that DataNodes are to read so that others may go.
    pub fn proving(&self) -> impl Iterator<Item = BlockId> {
        self.groups.proving().map(|(id, _)| id)
    }
}
