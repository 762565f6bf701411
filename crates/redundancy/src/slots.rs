//! What protects a block: its replicas, the units of its striped group, or the members and parities of the group of
//! blocks that it is in.
//!
//! What is counted, needed, mended and deleted is asked of slots, and the same for all of them. A member of a group of
//! blocks is a slot of that group, and has no need of its own.

use crate::block::{BlockFacts, BlockLookup, BlockRef, GroupFacts, SlotFacts};
use crate::cluster::Cluster;
use crate::handle::StorageHandle;
use crate::places::map::Place;
use crate::places::own_id;
use cairn_stripe::{BlockId, UnitIndex};

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Slots {
    /// By which its need is known: the block or striped group, or the handle of the contiguous group.
    pub id: BlockId,
    /// What that should be.
    pub facts: BlockFacts,
    /// The members of a contiguous group, by slot.
    members: Vec<Option<SlotFacts>>,
    /// A bit for each slot whose member is on its own by now, or in another group: its bytes are read for the others where
    /// they are, and nothing else is done for them here.
    elsewhere: u16,
    /// A bit for each of those slots whose member is known with another stamp or length than it was encoded with.
    otherwise: u16,
    /// Whether the members have needs of their own again, beside those of the group.
    pub is_dissolving: bool,
}

impl Slots {
    /// What protects a block or group that should be like that.
    pub(crate) fn of(lookup: &dyn BlockLookup, id: BlockId, facts: &BlockFacts) -> Slots {
        let handle = facts.group.map(|(handle, _)| handle).or(id.is_parity().then_some(id));
        let group = handle.and_then(|handle| lookup.group(handle)).filter(|group| group.formed);
        match group {
            Some(group) => {
                let (elsewhere, otherwise) = elsewhere(lookup, &group);
                let (facts, is_dissolving) = (group.facts(), group.dissolving);
                let (id, members) = (group.handle, group.slots);
                Slots { id, facts, members, elsewhere, otherwise, is_dissolving }
            }
            None => Slots::alone(id, facts),
        }
    }

    /// A block or group that is no part of another.
    pub(crate) fn alone(id: BlockId, facts: &BlockFacts) -> Slots {
        let (members, facts) = (Vec::new(), *facts);
        Slots { id, facts, members, elsewhere: 0, otherwise: 0, is_dissolving: false }
    }

    /// What the need of `id` is about: where a member of a group that is being dissolved has one, its own copies.
    pub(crate) fn of_need(lookup: &dyn BlockLookup, id: BlockId, facts: &BlockFacts) -> Slots {
        let slots = Slots::of(lookup, id, facts);
        match slots.id != id && slots.is_dissolving {
            true => Slots::alone(id, facts),
            false => slots,
        }
    }

    /// Whether it is a contiguous group.
    pub(crate) fn is_contiguous(&self) -> bool {
        self.id.is_parity()
    }

    /// The member in a slot; none for what is no contiguous group, for parities and for empty slots.
    pub(crate) fn member(&self, unit: UnitIndex) -> Option<&SlotFacts> {
        self.members.get(unit.as_usize())?.as_ref()
    }

    /// The members with their slots.
    pub(crate) fn members(&self) -> impl Iterator<Item = (UnitIndex, &SlotFacts)> + Clone {
        let all = (0_u8..).map(UnitIndex).zip(&self.members);
        all.filter_map(|(slot, member)| Some((slot, member.as_ref()?)))
    }

    /// The replica, internal block, member or parity in a slot.
    pub(crate) fn block(&self, unit: UnitIndex) -> BlockRef {
        match self.member(unit) {
            Some(member) => member.block(),
            None => BlockRef {
                id: own_id(self.id, unit),
                gs: self.facts.gs,
                len: self.facts.unit_len(unit),
            },
        }
    }

    /// The slot of a member or a parity of a contiguous group by its own id.
    pub(crate) fn unit_of(&self, id: BlockId) -> Option<UnitIndex> {
        let member = self.members().find(|(_, member)| member.id == id).map(|(unit, _)| unit);
        member.or((id.is_parity() && id.group() == self.id).then(|| id.unit()))
    }

    /// Bytes of the longest of what is in its slots.
    pub(crate) fn longest(&self) -> u64 {
        let members = self.members().map(|(_, member)| member.len);
        members.chain([self.facts.unit_len(UnitIndex(0))]).max().unwrap_or(0)
    }

    /// The blocks of which all places are those of its slots, that of the whole first.
    pub(crate) fn owners(&self) -> impl Iterator<Item = BlockId> {
        let own = self.members().filter(|(unit, _)| !self.is_elsewhere(*unit));
        std::iter::once(self.id).chain(own.map(|(_, member)| member.id))
    }

    /// Whether the member in a slot is on its own by now, or in another group.
    pub(crate) fn is_elsewhere(&self, unit: UnitIndex) -> bool {
        self.elsewhere & 1 << unit.0 != 0
    }

    /// The members of which the group needs replicas that are no good ones of their blocks: these have another stamp or length,
    /// or are still written.
    pub(crate) fn lent(&self) -> impl Iterator<Item = BlockRef> {
        let members = self.members().filter(|(unit, _)| self.otherwise & 1 << unit.0 != 0);
        members.map(|(_, member)| member.block())
    }
}

/// A bit for each slot of a group that ends whose member is not in it any more, and one for each of these that is known with
/// another stamp or length.
fn elsewhere(lookup: &dyn BlockLookup, group: &GroupFacts) -> (u16, u16) {
    let (mut elsewhere, mut otherwise) = (0, 0);
    for (slot, member) in group.slots.iter().enumerate().filter(|_| group.dissolving) {
        let Some(member) = member.filter(|member| !member.live) else { continue };
        let facts = lookup.block(member.id);
        let is_here = |facts: &BlockFacts| facts.group.is_some_and(|(of, _)| of == group.handle);
        let is_same = |facts: &BlockFacts| (facts.gs, facts.len) == (member.gs, member.len);
        elsewhere |= u16::from(!facts.as_ref().is_some_and(is_here)) << slot;
        otherwise |= u16::from(!facts.as_ref().is_some_and(is_same)) << slot;
    }
    (elsewhere, elsewhere & otherwise)
}

impl Cluster {
    /// The places of all slots that are not lost, each with its slot for unit.
    pub(crate) fn places_of<'a>(
        &'a self,
        slots: &'a Slots,
    ) -> impl Iterator<Item = Place> + Clone + 'a {
        self.all_places_of(slots).filter(|place| !self.is_lost(place.storage))
    }

    /// The places of all slots, those that are lost among them.
    pub(crate) fn all_places_of<'a>(
        &'a self,
        slots: &'a Slots,
    ) -> impl Iterator<Item = Place> + Clone + 'a {
        let members = slots.members().flat_map(move |(unit, member)| {
            let is_otherwise = slots.otherwise & 1 << unit.0 != 0;
            let is_corrupt = move |place: &Place| match is_otherwise {
                true => self.is_there_as(place, &member.block()).then_some(false),
                false => Some(place.corrupt),
            };
            let places = self.blocks.of(member.id);
            places.filter_map(move |of| Some(Place { unit, corrupt: is_corrupt(&of)?, ..of }))
        });
        self.blocks.of(slots.id).chain(members)
    }

    /// Whether what is at a place of a block that is known otherwise is that replica of it.
    fn is_there_as(&self, place: &Place, replica: &BlockRef) -> bool {
        let mark = self.blocks.mark(place.storage, replica.id).map(|bad| bad.block);
        // Of one that is still written, whatever was told of it may be good.
        let told = || self.blocks.construction(replica.id)?.reported_block(place);
        mark.or_else(told) == Some(*replica)
    }

    /// The places of a replica with that stamp and length that can be read, whatever its block should be.
    pub(crate) fn readable_as(
        &self,
        lookup: &dyn BlockLookup,
        replica: &BlockRef,
    ) -> Vec<StorageHandle> {
        let facts = lookup.block(replica.id);
        let is_same = facts.is_some_and(|facts| {
            facts.is_final() && (facts.gs, facts.len) == (replica.gs, replica.len)
        });
        if is_same {
            return self.readable_places(replica.id);
        }
        let is_it = |place: &Place| {
            let node = self.node(self.storage(place.storage).node);
            !place.excess && node.is_readable() && self.is_there_as(place, replica)
        };
        self.places(replica.id).filter(is_it).map(|place| place.storage).collect()
    }
}
