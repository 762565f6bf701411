//! What protects a block: its replicas, the units of its striped group, or the members and parities of the group of
//! blocks that it is in.
//!
//! What is counted, needed, mended and deleted is asked of slots, and the same for all of them. A member of a group of
//! blocks is a slot of that group, and has no need of its own.

use crate::block::{BlockFacts, BlockLookup, BlockRef, SlotFacts};
use crate::cluster::Cluster;
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
    /// Whether these have needs of their own again, beside those of the group.
    pub is_dissolving: bool,
}

impl Slots {
    /// What protects a block or group that should be like that.
    pub(crate) fn of(lookup: &dyn BlockLookup, id: BlockId, facts: &BlockFacts) -> Slots {
        let handle = facts.group.map(|(handle, _)| handle).or(id.is_parity().then_some(id));
        let group = handle.and_then(|handle| lookup.group(handle)).filter(|group| group.formed);
        match group {
            Some(group) => {
                let (facts, is_dissolving) = (group.facts(), group.dissolving);
                Slots { id: group.handle, facts, members: group.slots, is_dissolving }
            }
            None => Slots::alone(id, facts),
        }
    }

    /// A block or group that is no part of another.
    pub(crate) fn alone(id: BlockId, facts: &BlockFacts) -> Slots {
        Slots { id, facts: *facts, members: Vec::new(), is_dissolving: false }
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

    /// The blocks under which places are known, that of the whole first.
    pub(crate) fn owners(&self) -> impl Iterator<Item = BlockId> {
        std::iter::once(self.id).chain(self.members().map(|(_, member)| member.id))
    }
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
        let members = slots.members().flat_map(|(unit, member)| {
            self.blocks.of(member.id).map(move |place| Place { unit, ..place })
        });
        self.blocks.of(slots.id).chain(members)
    }
}
