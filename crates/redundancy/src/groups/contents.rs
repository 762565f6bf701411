//! What is in containers that were taken over with their groups: DataNodes read their indexes. One that has the container reads
//! all of it, as its disk has it; of one that nobody has any more the end is decoded. Which blocks need it is judged here.
//! Containers whose parities are all lost belong to no group that anybody knows of: their indexes are read before they are
//! taken over.

use crate::block::{BlockFacts, BlockLookup, BlockRef};
use crate::clock::{Now, millis};
use crate::cluster::Cluster;
use crate::command::ProveOrder;
use crate::groups::known::Proving;
use crate::groups::prove::{PROVES_PER_NODE, Proved};
use crate::groups::unknown::FoundContainer;
use crate::handle::StorageHandle;
use crate::replica::Changes;
use crate::slots::Slots;
use cairn_stripe::pack::PackIndex;
use cairn_stripe::{BlockId, UnitIndex};
use std::collections::BTreeSet;
use std::sync::Arc;

impl Cluster {
    /// Has DataNodes read the containers that belong to nothing, and that no group has which can be taken over.
    pub(crate) fn ask_for_containers(&mut self, lookup: &dyn BlockLookup, now: Now) {
        let groups = self.groups.unknown().found.values().filter(|found| found.refusal.is_none());
        let members = groups.flat_map(|found| found.record.members.iter().flatten());
        let grouped: BTreeSet<BlockId> = members.map(|member| member.id).collect();
        let (mut unread, mut waiting) = (BTreeSet::new(), Vec::new());
        for (storage, block) in
            self.waiting_of(BlockId::FIRST_CONTAINER_BASE, BlockId::is_container)
        {
            let unknown = self.groups.unknown();
            let is_read = unknown.containers.contains_key(&block.id)
                || unknown.passed_over.contains(&block.id);
            if !is_read && !grouped.contains(&block.id) && lookup.block(block.id).is_none() {
                unread.insert(block.id);
                waiting.push((storage, block));
            }
        }
        self.groups.unknown_mut().unread_alone = unread.len() as u64;
        for at in waiting {
            self.ask_about(at, true, now);
        }
    }

    /// Takes the index of a container that belongs to nothing.
    pub(crate) fn note_container(&mut self, proved: &Proved, crc32c: u32) {
        let Proved { block, index: Some(index), .. } = proved else { return };
        let is_its =
            (index.container, index.gs, index.container_len()) == (block.id, block.gs, block.len);
        if is_its {
            let (block, index) = (*block, Arc::new(index.clone()));
            let found = FoundContainer { block, crc32c, index };
            self.groups.unknown_mut().containers.insert(block.id, found);
        }
    }

    /// The containers that belong to nothing and whose index was read.
    pub fn found_containers(&self) -> impl Iterator<Item = &FoundContainer> {
        self.groups.unknown().containers.values()
    }

    /// No block needs such a container: it is not read again.
    pub fn pass_container_over(&mut self, id: BlockId) {
        let unknown = self.groups.unknown_mut();
        unknown.containers.remove(&id);
        unknown.passed_over.insert(id);
    }

    /// Tells that a container was taken over without a group: what DataNodes have of it is wanted from now on, and its index is
    /// known.
    pub fn container_adopted(&mut self, lookup: &dyn BlockLookup, id: BlockId) -> Changes {
        let mut changes = Changes::default();
        let Some(facts) = lookup.block(id) else { return changes };
        self.safe_mode.add_total(1);
        self.want_unknown(lookup, BlockRef { id, gs: facts.gs, len: facts.len }, &mut changes);
        let unknown = self.groups.unknown_mut();
        if let Some(found) = unknown.containers.remove(&id) {
            unknown.indexes.insert(id, found.index);
        }
        self.block_changed(lookup, id);
        changes
    }

    /// Has a DataNode read the index of a container, unless one is to or has. To be called again and again, until it is there.
    pub fn ask_for_index(&mut self, lookup: &dyn BlockLookup, id: BlockId, now: Now) {
        self.groups.give_up_proving(millis(self.config.pending_timeout), now.mono_ms);
        let is_read = self.groups.unknown().indexes.contains_key(&id);
        let Some(facts) = lookup.block(id).filter(|_| !is_read) else { return };
        if self.groups.proving_of(id).is_some() {
            return;
        }
        let mut storages = self.readable_places(id);
        if storages.is_empty() {
            let slots = Slots::of(lookup, id, &facts);
            let units = self.places_of(&slots).filter(|place| self.is_live(place));
            storages = units.map(|place| place.storage).collect();
        }
        let is_able = |storage: &StorageHandle| {
            let node = self.node(self.storage(*storage).node);
            let of_node = self.groups.proving().filter(|(_, of)| of.node == node.handle);
            node.alive && node.takes_groups && of_node.count() < PROVES_PER_NODE
        };
        let Some(storage) = storages.into_iter().find(is_able) else { return };
        let node = self.storage(storage).node;
        let (place, since_ms) = (self.life_of(storage), now.mono_ms);
        self.groups.begin_proving(id, Proving { node, place, since_ms });
        let block = BlockRef { id, gs: facts.gs, len: facts.len };
        self.work.give(node).proves.push(ProveOrder { block, storage, wants_index: true });
    }

    /// Takes the index of a container that was read, if it is that of the container as it was encoded.
    pub(crate) fn note_index(&mut self, lookup: &dyn BlockLookup, proved: &Proved) {
        let Proved { block, crc32c, index: Some(index), .. } = proved else { return };
        let is_its = lookup.block(block.id).is_some_and(|facts| {
            (index.container, index.gs, index.container_len()) == (block.id, facts.gs, facts.len)
        });
        let recorded = lookup.unit_crc(block.id, UnitIndex(0));
        if is_its && crc32c.is_none_or(|crc32c| recorded == Some(crc32c)) {
            self.groups.end_proving(block.id);
            self.groups.unknown_mut().indexes.insert(block.id, Arc::new(index.clone()));
        }
    }

    /// The index of a container, if it was read.
    pub fn index_of(&self, id: BlockId) -> Option<Arc<PackIndex>> {
        self.groups.unknown().indexes.get(&id).cloned()
    }

    /// So many blocks of a container were taken over, and nothing more of it will be.
    pub fn contents_taken(&mut self, id: BlockId, blocks: u64) {
        let unknown = self.groups.unknown_mut();
        unknown.indexes.remove(&id);
        unknown.adopted_blocks += blocks;
    }

    /// So many containers are left of which nothing was read yet.
    pub fn contents_unread(&mut self, containers: u64) {
        self.groups.unknown_mut().unread_containers = containers;
    }

    /// Whether a block of a file needs a container that has it: it has fewer than two copies, or the container that it is
    /// packed in cannot be had.
    pub fn needs_container(
        &self,
        lookup: &dyn BlockLookup,
        id: BlockId,
        facts: &BlockFacts,
    ) -> bool {
        let copies = self.readable_places(id).len();
        match facts.packed {
            Some(container) => copies == 0 && !self.can_be_had(lookup, container),
            None => copies < 2 && facts.group.is_none(),
        }
    }

    /// Tells that a block is where its container is from now on: a start does not wait for it any more.
    pub fn block_packed(&mut self, lookup: &dyn BlockLookup, id: BlockId) {
        if let Some(facts) = lookup.block(id).filter(|_| self.safe_mode.is_starting()) {
            let plain = BlockFacts { packed: None, ..facts };
            self.safe_mode.count_safe(self.safe_blocks(lookup, id, &plain), 0);
            self.safe_mode.take_from_total(1);
        }
        self.block_changed(lookup, id);
    }

    /// Tells that a packed block is plain again: a start waits for it.
    pub fn block_unpacked(&mut self, lookup: &dyn BlockLookup, id: BlockId) {
        if let Some(facts) = lookup.block(id).filter(|_| self.safe_mode.is_starting()) {
            // In which group it may be is counted with that.
            let alone = BlockFacts { group: None, ..facts };
            self.safe_mode.add_total(1);
            self.safe_mode.count_safe(0, self.safe_blocks(lookup, id, &alone));
        }
        self.block_changed(lookup, id);
    }
}

#[cfg(test)]
mod tests;
