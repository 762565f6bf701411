//! Packed blocks, after each step and in the end.
//!
//! - A container that is sealed has what is recorded of each block where its index says, byte by byte.
//! - A packed block is in a container that is there, and its bytes there are those that were written.
//! - A plain replica of a packed block is deleted only while its container is safe: every unit of the container's group is
//!   somewhere, and each container of it was read where it is since its DataNode has registered.
//! - What is counted of containers is what is in them.
//! - In the end no container is under way, and packed blocks have no replicas.

use crate::data_node::Stored;
use crate::model::Proof;
use crate::world::World;
use cairn_codec::crc::crc32c;
use cairn_namespace::container::PackedBlock;
use cairn_namespace::ops::pack::PACKED_MAX;
use cairn_namespace::query::{self, BlockInfo};
use cairn_namespace::{Command, Group, Outcome};
use cairn_redundancy::BlockRef;
use cairn_replica::ReplicaState;
use cairn_stripe::pack::PackIndex;
use cairn_stripe::{BlockId, UnitIndex};

impl World<'_> {
    /// An entry about containers has come into force.
    pub(crate) fn follow_packs(&mut self, command: &Command, outcome: &Outcome) {
        match (command, outcome) {
            (Command::SealPack(seal), Outcome::Done) => self.container_sealed(seal.container),
            (Command::Pack(_), Outcome::Flag(_)) => self.count("containers packed"),
            (Command::Repack(_), Outcome::Flag(_)) => {
                self.count("containers emptied");
            }
            (Command::EndPack(_), Outcome::Done) => self.count("containers ended"),
            (Command::Unpack(unpack), _) => {
                for id in unpack.blocks.clone() {
                    self.is_plain_again(id);
                }
            }
            _ => {}
        }
    }

    /// A container is taken for what it is to be: compares its bytes with those of the blocks.
    fn container_sealed(&mut self, id: BlockId) {
        let Some(info) = self.name_node.block(id) else { return };
        let gs = info.block.gs;
        let store = &self.name_node.store;
        let rows = crate::name_node::sure(query::pack_slots(store, id, 0, PACKED_MAX));
        let blocks = rows.iter().map(|(_, of)| BlockRef { id: of.id, gs: of.gs, len: of.len });
        let blocks: Vec<BlockRef> = blocks.collect();
        self.parts.note_sealed(blocks);
        let is_it = |stored: &&Stored| {
            stored.replica.state() == ReplicaState::Finalized
                && stored.replica.gs() == gs
                && stored.damaged.is_empty()
                && stored.data.len() as u64 == info.block.len
        };
        let mut held = self.nodes.iter().filter_map(|node| node.replicas.get(&id));
        let Some(bytes) = held.find(is_it).map(|stored| stored.data.to_vec()) else { return };
        match self.compare_container(&bytes, &rows) {
            Ok(()) => _ = self.model.containers.insert(id, bytes),
            Err(why) => self.violate(format!("{id} is sealed: {why}")),
        }
    }

    fn compare_container(&self, bytes: &[u8], rows: &[(u32, PackedBlock)]) -> Result<(), String> {
        let index = PackIndex::from_tail(bytes, |bytes| crc32c(0, bytes));
        let index = index.map_err(|error| error.to_string())?;
        if index.packed().len() != rows.len() {
            return Err(format!("{} blocks where {} are", index.packed().len(), rows.len()));
        }
        for (packed, (slot, of)) in index.packed().iter().zip(rows) {
            let told = (packed.slot, packed.id, packed.gs, u64::from(packed.len));
            if told != (*slot, of.id, of.gs, of.len) {
                return Err(format!("slot {slot} is {packed:?}"));
            }
            let range = packed.range();
            let here = bytes.get(range.start as usize..range.end as usize);
            let here = here.ok_or("it is too short")?;
            let info = self.name_node.block(of.id).filter(|info| info.block.gs == of.gs);
            let known = info.and_then(|info| self.data_of(&info, of.len));
            let is_right = match &known {
                Some(known) => known == here,
                // Of what only snapshots have, nobody knows more.
                None => crc32c(0, here) == of.crc32c,
            };
            if !is_right {
                return Err(format!("slot {slot} has other bytes than {}", of.id));
            }
        }
        Ok(())
    }

    /// A block has replicas of its own again, and rests on them.
    fn is_plain_again(&mut self, id: BlockId) {
        let Some(info) = self.name_node.block(id).filter(|info| info.block.packed.is_none()) else {
            return;
        };
        let Some(facts) = self.name_node.facts_of(id) else { return };
        let places = self.name_node.cluster.locations(id).into_iter();
        let parts: Vec<_> = places
            .filter(|place| !place.corrupt)
            .map(|place| (self.name_node.target(place.storage).node, UnitIndex(0)))
            .collect();
        self.count("blocks unpacked");
        self.begin_with((id, info.block.gs), &parts, (1, facts.expected_units()));
    }

    /// Looks at a packed block.
    pub(super) fn check_packed(&mut self, info: &BlockInfo) {
        let (id, Some(at)) = (info.block.id, info.block.packed) else { return };
        if self.name_node.block(at.container).is_none() {
            return self.violate(format!("{id} is packed in {}, which is not there", at.container));
        }
        let Some(bytes) = self.model.containers.get(&at.container) else { return };
        let range = at.offset as usize..(at.offset + info.block.len) as usize;
        let here = bytes.get(range);
        let known = self.data_of(info, info.block.len);
        let recorded = info.block.unit_crcs.first().copied().flatten();
        let is_right = match (&known, here) {
            (_, None) => false,
            (Some(known), Some(here)) => known == here,
            (None, Some(here)) => recorded == Some(crc32c(0, here)),
        };
        if !is_right {
            self.violate(format!("{id} has other bytes where it is in {}", at.container));
        }
    }

    /// Looks at all that is packed.
    pub(super) fn check_packs(&mut self) {
        if self.grouping.is_none_or(|grouping| grouping.pack.is_none()) {
            return;
        }
        let containers: Vec<BlockId> =
            self.name_node.containers().into_iter().map(|of| of.id).collect();
        let groups = self.name_node.all_groups();
        let is_member = |id: &BlockId| {
            groups.iter().any(|group| group.members().any(|(_, member)| member.id == *id))
        };
        self.model.containers.retain(|id, _| containers.contains(id) || is_member(id));
        if let Some(why) = self.name_node.inconsistency() {
            self.violate(why);
        }
    }

    /// Looks at a deletion of a plain replica of a packed block before its node is told.
    pub(super) fn check_packed_deletion(&mut self, node: usize, named: &BlockRef, at: BlockId) {
        let group = self.name_node.handle_of(at);
        let group = group.and_then(|(handle, _)| self.name_node.group_of(handle));
        let Some(group) = group.filter(Group::is_formed) else {
            return self.violate(format!(
                "dn-{node} is told to delete {named:?}, whose container {at} is in no group"
            ));
        };
        if self.is_excused(group.handle) {
            return;
        }
        let cluster = &self.name_node.cluster;
        let holders = |id: BlockId, slot: usize| {
            let places = cluster.locations(id.group()).into_iter();
            let is_it = move |place: &cairn_redundancy::Location| {
                !place.corrupt && (!id.is_parity() || place.unit.as_usize() == slot)
            };
            let nodes = places.filter(is_it);
            nodes.map(|place| self.name_node.target(place.storage).node).collect::<Vec<usize>>()
        };
        let mut why = None;
        for (slot, member) in group.members() {
            let is_proven = |holder: &usize| {
                let proof = self.model.proofs.get(&(*holder, member.id));
                let registration = self.nodes[*holder].registrations;
                let is_it =
                    |proof: &Proof| proof.gs == member.gs && proof.registration == registration;
                proof.is_some_and(is_it)
            };
            let is_safe = match member.id.is_container() {
                true => holders(member.id, slot.into()).iter().any(is_proven),
                false => !holders(member.id, slot.into()).is_empty(),
            };
            if !is_safe {
                why = Some(format!("{} in slot {slot} is not safe", member.id));
            }
        }
        let k = usize::from(group.k);
        for slot in k..k + usize::from(group.m) {
            let id = group.handle.internal(UnitIndex(slot as u8));
            if holders(id, slot).is_empty() {
                why = Some(format!("parity {slot} is nowhere"));
            }
        }
        if let Some(why) = why {
            self.violate(format!(
                "dn-{node} is told to delete {named:?}, but of {} {why}",
                group.handle
            ));
        }
    }
}
