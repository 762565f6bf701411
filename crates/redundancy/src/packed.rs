//! Packed blocks, whose bytes are in containers, and containers that are written.
//!
//! A packed block needs no replica. Those that it has go only while its container is *safe*: every unit of the
//! container's group is there, certain, on nodes in service that are heard of, and each container in it was read, where
//! it is, since its storage began its life. That is judged when replicas are chosen for deletion, and once more when
//! their nodes are told. Where a container cannot be had any more, good replicas make their blocks plain again.

use crate::block::{BlockFacts, BlockLookup, BlockRef, BlockState};
use crate::clock::{Now, millis};
use crate::cluster::Cluster;
use crate::command::PackOrder;
use crate::groups::known::Attempt;
use crate::handle::{NodeHandle, StorageHandle};
use crate::places::map::Place;
use crate::slots::Slots;
use cairn_stripe::{BlockId, GenerationStamp, UnitIndex};

pub(crate) mod known;
#[cfg(test)]
mod tests;
mod unpack;

/// Packed blocks with plain replicas that a tick looks at.
const STEP: usize = 500;
/// Times the patience for other work that a container has to be written: thousands of small replicas are read.
const PATIENCE: u64 = 4;

/// Why a container is not taken for what its DataNode says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotSealed {
    /// Nobody has begun it here, or it has ended, or somebody else writes it.
    NotOpen,
    /// It is not reported yet as it was read back.
    Awaited,
    /// What was reported is not what was read back, or is to be deleted.
    Lost,
}

impl Cluster {
    /// Tells that a container is in the log that is to be written to a storage. Gives that storage's node the order.
    /// Without a storage, or where its node can take no order, the container is one that will be given up.
    pub fn pack_begun(
        &mut self,
        (id, gs): (BlockId, GenerationStamp),
        targets: &[Option<StorageHandle>],
        now: Now,
    ) {
        let Some(storage) = targets.first().copied().flatten() else { return };
        let encoder = self.storage(storage).node;
        let node = self.node(encoder);
        if !node.alive || !node.takes_groups {
            return;
        }
        let (members, kept, since_ms) = (Vec::new(), Vec::new(), now.mono_ms);
        self.groups.begin(id, Attempt { gs, encoder, since_ms, members, kept, ended: None });
        let container = BlockRef { id, gs, len: 0 };
        self.work.give(encoder).packs.push(PackOrder { container, storage });
    }

    /// Whether any container is being written.
    pub fn is_packing(&self) -> bool {
        self.groups.attempts().any(|(id, _)| id.is_container())
    }

    /// Tells that a container is written, or given up.
    pub fn pack_ended(&mut self, id: BlockId) {
        self.groups.take_attempt(id);
    }

    /// The orders to pack that hold still.
    pub(crate) fn still_to_pack(
        &self,
        node: NodeHandle,
        mut orders: Vec<PackOrder>,
    ) -> Vec<PackOrder> {
        orders.retain(|order| {
            let attempt = self.groups.attempt(order.container.id);
            attempt.is_some_and(|attempt| attempt.encoder == node && attempt.ended.is_none())
        });
        orders
    }

    /// Containers that are to be given up, and why: their time is over, or they have lost who writes them.
    pub fn failed_packs(&self, now: Now) -> Vec<(BlockId, &'static str)> {
        let patience = millis(self.config.pending_timeout).saturating_mul(PATIENCE);
        let why = |attempt: &Attempt| match attempt.ended {
            Some(why) => Some(why),
            None if now.mono_ms.saturating_sub(attempt.since_ms) >= patience => {
                Some("its time is over")
            }
            None => None,
        };
        let packs = self.groups.attempts().filter(|(id, _)| id.is_container());
        packs.filter_map(|(id, attempt)| Some((id, why(attempt)?))).collect()
    }

    /// Whether a container can be taken for what `reporter` says that it has read back from `storage`: CRC32C of a
    /// replica with that stamp and length.
    pub fn can_seal(
        &self,
        lookup: &dyn BlockLookup,
        (reporter, storage): (NodeHandle, StorageHandle),
        block: BlockRef,
        crc32c: u32,
    ) -> Result<(), NotSealed> {
        let attempt = self.groups.attempt(block.id).filter(|attempt| {
            attempt.gs == block.gs && attempt.encoder == reporter && attempt.ended.is_none()
        });
        let facts = lookup.block(block.id).filter(|facts| facts.gs == block.gs);
        let (Some(_), Some(facts)) = (attempt, facts) else { return Err(NotSealed::NotOpen) };
        if self.storage(storage).node != reporter {
            return Err(NotSealed::Lost);
        }
        let place = self.blocks.on(storage, block.id);
        if place.is_some_and(|place| place.corrupt || place.excess || place.told) {
            return Err(NotSealed::Lost);
        }
        let facts = BlockFacts { len: block.len, state: BlockState::Complete, ..facts };
        let construction = self.blocks.construction(block.id);
        match construction.and_then(|construction| construction.crc(UnitIndex(0), &facts)) {
            Some(told) if told != crc32c => Err(NotSealed::Lost),
            Some(_) if place.is_some_and(|place| self.is_live(&place)) => Ok(()),
            _ => Err(NotSealed::Awaited),
        }
    }

    /// Whether a container's bytes will not be lost, so that plain replicas of what is packed in it may go.
    pub fn is_container_safe(&self, lookup: &dyn BlockLookup, id: BlockId, now: Now) -> bool {
        let Some(slots) = group_of(lookup, id) else { return false };
        self.is_group_whole(lookup, slots.id, now) && self.unproven(&slots).is_empty()
    }

    /// Has the containers of a container's group read where they are, one after the other, that were not since their
    /// storages began their lives: until then it is not safe.
    pub fn have_containers_proven(&mut self, lookup: &dyn BlockLookup, id: BlockId) {
        if let Some(slots) = group_of(lookup, id) {
            let unproven = self.unproven(&slots);
            self.have_one_proven(&slots, unproven);
        }
    }

    /// Somebody says that he got bad bytes of a packed block from a node: has the container's replica there read where it
    /// is, or another one. Only what its DataNode finds makes it bad.
    pub(crate) fn have_container_looked_at(
        &mut self,
        lookup: &dyn BlockLookup,
        container: BlockId,
        node: NodeHandle,
    ) {
        let Some(slots) = group_of(lookup, container) else { return };
        let Some(unit) = slots.unit_of(container) else { return };
        let mut storages = self.readable_places(container);
        if storages.iter().any(|storage| self.storage(*storage).node == node) {
            storages.retain(|storage| self.storage(*storage).node == node);
        }
        self.have_one_proven(&slots, [(unit, storages)]);
    }

    /// The containers of a group that were not read where they are since their storage began its life, and where
    /// they are.
    fn unproven(&self, slots: &Slots) -> Vec<(UnitIndex, Vec<StorageHandle>)> {
        let containers = slots.members().filter(|(_, member)| member.id.is_container());
        let unproven = containers.filter(|(unit, _)| self.proven_place(slots, *unit).is_none());
        let at = |(unit, _): (UnitIndex, _)| {
            let places = self.places_of(slots).filter(|place| place.unit == unit);
            let live = places.filter(|place| self.is_live(place));
            (unit, live.map(|place| place.storage).collect())
        };
        unproven.map(at).collect()
    }

    /// Looks at a packed block: its plain replicas go, if its container is safe.
    pub(crate) fn check_packed(
        &mut self,
        lookup: &dyn BlockLookup,
        id: BlockId,
        facts: &BlockFacts,
    ) {
        self.low.queues_mut().remove(id);
        let slots = Slots::alone(id, facts);
        let places: Vec<Place> = self.places_of(&slots).collect();
        self.note_leaving_of(&slots, None);
        self.packed.note(id, !places.is_empty());
        let Some(container) = facts.packed.filter(|_| !places.is_empty()) else { return };
        if self.packed.is_asked(id) {
            return;
        }
        if !self.is_container_safe(lookup, container, self.last_event) {
            self.have_containers_proven(lookup, container);
            return;
        }
        if self.groups.is_held() {
            return;
        }
        for place in places.into_iter().filter(|place| !place.excess) {
            let bad = self.blocks.mark(place.storage, id).map(|bad| bad.block);
            let good = BlockRef { id, gs: facts.gs, len: facts.len };
            self.blocks.choose_for_deletion(place.storage, bad.unwrap_or(good));
        }
    }

    /// Before a node is told what to delete: keeps plain replicas of packed blocks whose containers are not safe as
    /// things stand now, and of blocks that are packed no more.
    pub(crate) fn keep_of_packed(&mut self, lookup: &dyn BlockLookup, node: NodeHandle, now: Now) {
        let mut kept = Vec::new();
        for storage in &self.node(node).storages {
            for block in self.blocks.next_deletions(*storage, self.config.invalidate_limit) {
                // What is deleted with its file is no block any more.
                let Some(facts) =
                    self.packed.has(block.id).then(|| lookup.block(block.id)).flatten()
                else {
                    continue;
                };
                let place = self.blocks.on(*storage, block.id);
                let is_chosen = place.is_some_and(|place| place.excess);
                let is_safe = |container| self.is_container_safe(lookup, container, now);
                let may_go = !self.groups.is_held()
                    && !self.packed.is_asked(block.id)
                    && facts.packed.is_some_and(is_safe);
                if is_chosen && !may_go {
                    kept.push((*storage, block.id));
                }
            }
        }
        for (storage, id) in kept {
            self.blocks.keep_any_stamp(storage, id);
            self.check_redundancy(lookup, id);
        }
    }

    /// One tick: looks at some of the packed blocks with plain replicas, for what was in their way may be so no more.
    pub(crate) fn look_at_packed(&mut self, lookup: &dyn BlockLookup) {
        if self.safe_mode.holds_work() {
            return;
        }
        for id in self.packed.next(STEP) {
            self.check_redundancy(lookup, id);
        }
    }

    /// Packed blocks of which there are plain replicas still.
    pub fn packed_with_replicas(&self) -> usize {
        self.packed.len()
    }

    /// At most `limit` packed blocks whose containers cannot be had, and of which good replicas are left.
    pub fn to_unpack(&self, lookup: &dyn BlockLookup, limit: usize) -> Vec<BlockId> {
        let is_lost = |id: &BlockId| {
            let container = lookup.block(*id).and_then(|facts| facts.packed);
            let has_replica = !self.readable_places(*id).is_empty();
            container.is_some_and(|container| has_replica && !self.can_be_had(lookup, container))
        };
        self.packed.iter().filter(is_lost).take(limit).collect()
    }

    /// Whether the bytes of a container can be read or decoded.
    pub fn can_be_had(&self, lookup: &dyn BlockLookup, container: BlockId) -> bool {
        let Some(facts) = lookup.block(container) else { return false };
        !self.readable_places(container).is_empty() || self.is_decodable(lookup, container, &facts)
    }
}

/// What protects a container that is in a group.
fn group_of(lookup: &dyn BlockLookup, container: BlockId) -> Option<Slots> {
    let facts = lookup.block(container)?;
    facts.group?;
    let slots = Slots::of(lookup, container, &facts);
    slots.is_contiguous().then_some(slots)
}
