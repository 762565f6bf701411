//! Contiguous groups, after each step and in the end.
//!
//! - Parities that count as good are the code of the members' bytes as they were written, and are recorded as such.
//! - Every member that a file has can be read, or decoded from as many units as that takes, unless more of them have failed
//!   than the group bears.
//! - A replica of a member is deleted only while another one is durable and proven since its DataNode has registered, every
//!   unit is there, and no deletion of another member of the group is on its way; nothing of an open attempt is deleted.
//! - No id and stamp names two byte strings, and no handle is given out twice.
//! - Each member is a complete block as it was encoded, in this group and in no other; no attempt is formed that was
//!   abandoned, or begun before a start of the NameNode.

use crate::bytes::Bytes;
use crate::data_node::{CHECKSUM, DataNode, Stored};
use crate::encoding::formed;
use crate::model::{BlockModel, GroupModel, Proof};
use crate::node_work::DELETION_LASTS_MS;
use crate::world::World;
use cairn_codec::crc::{chunk_crcs, crc32c};
use cairn_namespace::{BlockState, Command, Group, Outcome};
use cairn_redundancy::{BlockRef, Standing};
use cairn_replica::{Checksum, ReplicaState};
use cairn_stripe::group::Part;
use cairn_stripe::{BlockId, GenerationStamp, UnitIndex};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

impl World<'_> {
    /// An entry about groups has come into force in that life of the NameNode, which may have fallen since.
    pub(crate) fn follow_groups(
        &mut self,
        command: &Command,
        outcome: &Outcome,
        life: u64,
        is_replayed: bool,
    ) {
        match (command, outcome) {
            (Command::BeginEncode(_), Outcome::EncodeBegun { handle, .. }) => {
                self.group_begun(*handle, life);
            }
            (Command::Form(form), Outcome::Done) if is_replayed => {
                self.group_formed(form.handle, None)
            }
            (Command::Form(form), Outcome::Done) => self.group_formed(form.handle, Some(life)),
            (Command::Abandon(abandon), Outcome::Done) => {
                self.model.abandoned.insert(abandon.handle);
            }
            (Command::Dissolve(ended), Outcome::Done) => self.group_ended(ended.handle),
            _ => {}
        }
    }

    fn group_begun(&mut self, handle: BlockId, life: u64) {
        if self.model.handles.insert(handle, life).is_some() {
            return self.violate(format!("the handle {handle} is given out again"));
        }
        let Some(group) = self.name_node.group_of(handle) else { return };
        let tolerance = usize::from(group.m);
        self.model.blocks.insert(handle, BlockModel::new(tolerance, BTreeSet::new()));
        let bytes = |world: &World<'_>, id: BlockId, len: u64| {
            if id.is_container() {
                return world.model.containers.get(&id).cloned();
            }
            let info = world.name_node.block(id)?;
            world.data_of(&info, len)
        };
        let mut members = Vec::new();
        for member in &group.members {
            let Some(member) = member else {
                members.push(None);
                continue;
            };
            let Some(bytes) = bytes(self, member.id, member.len) else { return };
            members.push(Some((member.id, bytes)));
        }
        self.model.groups.insert(handle, Rc::new(GroupModel { members, units: Vec::new() }));
    }

    fn group_formed(&mut self, handle: BlockId, life: Option<u64>) {
        let begun_in = self.model.handles.get(&handle).copied();
        if life.is_some() && begun_in != life {
            return self.violate(format!("{handle} is formed, which another NameNode has begun"));
        }
        if self.model.abandoned.contains(&handle) {
            return self.violate(format!("{handle} is formed, which was abandoned"));
        }
        let Some(group) = self.name_node.group_of(handle) else { return };
        let Some(begun) = self.model.groups.get(&handle).cloned() else { return };
        let units = self.code_of(&group, &begun);
        let k = usize::from(group.k);
        for (at, parity) in group.parities.iter().enumerate() {
            let unit = &units[k + at];
            if (parity.len, parity.crc32c) != (unit.len() as u64, crc32c(0, unit)) {
                return self.violate(format!(
                    "parity {at} of {handle} is recorded as what is not the code of its members"
                ));
            }
        }
        let model = GroupModel { members: begun.members.clone(), units };
        self.model.groups.insert(handle, Rc::new(model));
        let member =
            |of: &cairn_namespace::group::Member| BlockRef { id: of.id, gs: of.gs, len: of.len };
        let members = group.members().map(|(_, of)| member(of)).collect();
        self.parts.note_group(handle, members);
        self.check_group(handle);
    }

    /// The bytes of all units, computed anew; of the record at the end of parities what the namespace has.
    fn code_of(&mut self, group: &Group, begun: &GroupModel) -> Vec<Bytes> {
        let policy = self.name_node.policy_of(group);
        let Ok(formed) = formed(group, &policy) else { return Vec::new() };
        let code = self.codec(&policy);
        let parity_of = |units: Vec<Vec<u8>>, len: u64| {
            let mut padded = units;
            padded.iter_mut().for_each(|unit| unit.resize(len as usize, 0));
            let mut parities = vec![vec![0; len as usize]; usize::from(group.m)];
            let sources: Vec<&[u8]> = padded.iter().map(Vec::as_slice).collect();
            let mut sinks: Vec<&mut [u8]> = parities.iter_mut().map(Vec::as_mut_slice).collect();
            code.encode(&sources, &mut sinks).expect("all units are as long");
            parities
        };
        let bytes = begun.members.iter().map(|member| match member {
            Some((_, bytes)) => bytes.clone(),
            None => Vec::new(),
        });
        let members: Vec<Vec<u8>> = bytes.collect();
        let Checksum { kind, chunk_len } = CHECKSUM;
        let sums = members.iter().map(|bytes| {
            let mut crcs = vec![0; kind.total_len(chunk_len, bytes.len())];
            chunk_crcs(kind, chunk_len, bytes, &mut crcs);
            crcs
        });
        let sums = parity_of(sums.collect(), formed.layout.part_len(Part::Sums));
        let data = parity_of(members.clone(), formed.layout.data_len());
        let tail = formed.record.to_tail(|bytes| crc32c(0, bytes));
        let parities = data.into_iter().zip(sums).map(|(data, sums)| [data, sums, tail.clone()]);
        let parities = parities.map(|parts| parts.concat());
        members.into_iter().chain(parities).map(Bytes::from).collect()
    }

    /// The members of a group that has ended are on their own again.
    fn group_ended(&mut self, handle: BlockId) {
        let Some(group) = self.model.groups.remove(&handle) else { return };
        for (id, _) in group.members.iter().flatten() {
            let Some(facts) = self.name_node.facts_of(*id) else { continue };
            let places = self.name_node.cluster.locations(*id).into_iter();
            let parts = places
                .map(|place| (self.name_node.machine_of(place.storage), UnitIndex(0)))
                .collect::<Vec<_>>();
            self.begin_with((*id, facts.gs), &parts, (1, facts.expected_units()));
        }
    }

    /// Bytes are written somewhere under that id and stamp.
    pub(crate) fn note_bytes(&mut self, id: BlockId, gs: GenerationStamp, bytes: &[u8]) {
        let crc = crc32c(0, bytes);
        let known = *self.model.bytes.entry((id, gs)).or_insert(crc);
        if known != crc {
            self.violate(format!("{id} has other bytes than before under its stamp {gs}"));
        }
    }

    /// Looks at one group.
    pub(crate) fn check_group(&mut self, handle: BlockId) {
        let Some(group) = self.name_node.group_of(handle).filter(Group::is_formed) else { return };
        let Some(model) = self.model.groups.get(&handle).cloned() else { return };
        for (slot, member) in group.members() {
            let info = self.name_node.block(member.id);
            let is_as_encoded = info.as_ref().is_some_and(|info| {
                let block = &info.block;
                let of = block.group.map(|of| (of.handle, of.slot));
                block.state == BlockState::Complete
                    && (block.gs, block.len) == (member.gs, member.len)
                    && of == Some((handle, slot))
                    && block.is_tombstone() != member.live
            });
            if !is_as_encoded {
                return self.violate(format!("{} is no member of {handle}", member.id));
            }
        }
        if self.is_excused(handle) || model.units.is_empty() {
            return;
        }
        let is_good = |slot: usize| {
            let (id, gs) = unit_of(&group, slot);
            let bytes = &model.units[slot];
            let there = self.nodes.iter().filter(|node| !node.is_gone && self.stands(node.number));
            let mut held = there.filter_map(|node| node.replicas.get(&id));
            held.any(|stored| is_whole(stored, gs) && stored.data == *bytes)
        };
        let filled: Vec<usize> = slots(&group).collect();
        let good: Vec<usize> = filled.iter().copied().filter(|slot| is_good(*slot)).collect();
        let needed = group.members().count();
        let lost = group.live_members().find(|(slot, _)| !good.contains(&usize::from(*slot)));
        if let Some((_, member)) = lost.filter(|_| good.len() < needed) {
            let exposed = self.model.blocks.get(&handle).map(|block| block.exposed.clone());
            return self.violate(format!(
                "{} is lost: of {handle} the units {good:?} are left where {needed} are needed; it bore {exposed:?}",
                member.id
            ));
        }
        for slot in filled {
            let (id, gs) = unit_of(&group, slot);
            for place in self.name_node.cluster.locations(id.group()) {
                let is_it = !id.is_parity() || place.unit.as_usize() == slot;
                let node = self.name_node.machine_of(place.storage);
                let Some(stored) = self.nodes[node].replicas.get(&id) else { continue };
                let is_told = !self.nodes[node].is_torn_untold(stored);
                let counts = is_it && !place.corrupt && is_whole(stored, gs) && is_told;
                if counts && stored.data != model.units[slot] {
                    return self.violate(format!(
                        "{id} of {handle} on dn-{node} has wrong bytes and counts as good"
                    ));
                }
            }
        }
    }

    /// Looks at a deletion before a node is told, if it is about a group.
    pub(super) fn check_group_deletion(&mut self, node: usize, named: &BlockRef) {
        let Some((handle, slot)) = self.name_node.handle_of(named.id) else { return };
        let Some(group) = self.name_node.group_of(handle) else { return };
        if group.is_attempt() && named.id.is_parity() && named.gs == group.gs {
            return self
                .violate(format!("dn-{node} is told to delete {named:?} of an open attempt"));
        }
        let held = self.nodes[node].replicas.get(&named.id);
        let Some(model) = self.model.groups.get(&handle).cloned() else { return };
        let bytes = model.units.get(slot.as_usize());
        let is_needed = held.is_some_and(|stored| {
            is_whole(stored, named.gs) && bytes.is_none_or(|bytes| stored.data == *bytes)
        });
        let is_right = named.gs == unit_of(&group, slot.as_usize()).1;
        let is_lost = self.is_excused(handle) || self.is_called_bad(node, named.id);
        if !group.is_formed() || !is_needed || !is_right || is_lost {
            return;
        }
        let others = |world: &World<'_>, slot: usize| {
            let (id, _) = unit_of(&group, slot);
            let places = world.name_node.cluster.locations(id.group()).into_iter();
            let is_it = |place: &cairn_redundancy::Location| {
                !place.corrupt && (!id.is_parity() || place.unit.as_usize() == slot)
            };
            let nodes = places.filter(is_it).map(|p| world.name_node.machine_of(p.storage));
            nodes.filter(|other| (*other, id) != (node, named.id)).collect::<Vec<usize>>()
        };
        if let Some(slot) = slots(&group).find(|slot| others(self, *slot).is_empty()) {
            return self.violate(format!(
                "dn-{node} is told to delete {named:?} while slot {slot} of {handle} is nowhere else"
            ));
        }
        if named.id.is_parity() {
            return;
        }
        let is_proven = |other: &usize| {
            let proof = self.model.proofs.get(&(*other, named.id));
            let registration = self.nodes[*other].registrations;
            let is_proof =
                |proof: &&Proof| proof.gs == named.gs && proof.registration == registration;
            let is_durable =
                |proof: &Proof| !proof.is_lost && self.nodes[*other].is_durable(named.id);
            let has_failed = || self.has_failed(named.id, *other, UnitIndex(0));
            proof.filter(is_proof).is_some_and(|proof| is_durable(proof) || has_failed())
        };
        if !others(self, slot.as_usize()).iter().any(is_proven) {
            return self.violate(format!(
                "dn-{node} is told to delete {named:?}, of which no other replica is proven"
            ));
        }
        let (cluster, nodes) = (&self.name_node.cluster, &self.nodes);
        let name_node = &self.name_node;
        let now_ms = self.now_ms;
        self.model.told.retain(|(node, id), (registration, until_ms)| {
            let mut places = cluster.locations(*id).into_iter();
            nodes[*node].registrations == *registration
                && now_ms <= *until_ms
                && places.any(|place| name_node.machine_of(place.storage) == *node)
        });
        let is_other = |(_, id): &&(usize, BlockId)| {
            *id != named.id && group.members().any(|(_, member)| member.id == *id)
        };
        if let Some((other, id)) = self.model.told.keys().find(is_other).copied() {
            return self.violate(format!(
                "dn-{node} is told to delete {named:?} while dn-{other} may still delete {id}"
            ));
        }
        let registration = self.nodes[node].registrations;
        let until_ms = self.now_ms + DELETION_LASTS_MS;
        self.model.told.insert((node, named.id), (registration, until_ms));
    }

    /// A node has told of deletions: those that it was told are over, and a copy that comes later is another one.
    pub(crate) fn deletions_told(
        &mut self,
        node: usize,
        deleted: impl IntoIterator<Item = BlockId>,
    ) {
        for id in deleted {
            self.model.told.remove(&(node, id));
        }
    }

    /// What a formed group lacks to be whole, in truth. With `in_service`, nodes in
    /// service have all of it; without, one in maintenance counts too.
    pub(super) fn group_lacks(&self, group: &Group, in_service: bool) -> Option<String> {
        let model = self.model.groups.get(&group.handle)?;
        if model.units.is_empty() {
            return None;
        }
        for slot in slots(group) {
            let (id, gs) = unit_of(group, slot);
            let (mut good, mut aside) = (0, 0);
            let there = |node: &&DataNode| !node.is_gone && self.stands(node.number);
            for node in self.nodes.iter().filter(there) {
                let Some(stored) = node.replicas.get(&id) else { continue };
                let is_good = is_whole(stored, gs) && stored.data == model.units[slot];
                // A bad one that looks good would count when its node serves again.
                if in_service && !is_good && stored.replica.gs() == gs {
                    return Some(format!("{id} on dn-{} is not good", node.number));
                }
                match node.is_serving(self.now_ms) && node.answers(self.now_ms) {
                    true if is_good => good += 1,
                    true => return Some(format!("{id} on dn-{} is not good", node.number)),
                    false => aside += usize::from(is_good),
                }
            }
            for place in self.name_node.cluster.locations(id.group()) {
                let is_it = !id.is_parity() || place.unit.as_usize() == slot;
                let node = self.name_node.machine_of(place.storage);
                let held = self.nodes[node].replicas.get(&id);
                // It may be an older one by now, which the NameNode still counts on.
                let is_as_known = |stored: &Stored| !in_service || is_whole(stored, gs);
                if is_it && !held.is_some_and(is_as_known) {
                    return Some(format!("{id} is not on dn-{node}"));
                }
            }
            let is_there = good > 0 || !in_service && aside > 0;
            if !is_there {
                return Some(format!("of {id} in slot {slot} of {} {good} are good", group.handle));
            }
        }
        None
    }

    /// What is there of a formed group that it does not need, on nodes in service. While others on their way out, or out
    /// of service, have something of it, nothing of it goes.
    pub(super) fn surplus_of(&self, group: &Group) -> Option<String> {
        if self.has_units_aside(group) {
            return None;
        }
        let in_service = |node: &&DataNode| node.is_serving(self.now_ms) && !node.is_gone;
        for slot in slots(group) {
            let (id, _) = unit_of(group, slot);
            let holders = self.nodes.iter().filter(in_service);
            let count = holders.filter(|node| node.replicas.contains_key(&id)).count();
            if count > 1 {
                return Some(format!("{count} nodes have {id} in slot {slot} of {}", group.handle));
            }
        }
        None
    }

    /// Whether nodes on their way out, or out of service, have something of a group.
    fn has_units_aside(&self, group: &Group) -> bool {
        let mut aside =
            self.nodes.iter().filter(|node| !node.is_gone && !node.is_serving(self.now_ms));
        aside.any(|node| {
            slots(group).any(|slot| node.replicas.contains_key(&unit_of(group, slot).0))
        })
    }

    /// What is wrong with where a formed group is that has each unit once: units share a node, or more are on a rack than
    /// may be lost, though there is room for them elsewhere.
    pub(super) fn is_crowded(&self, group: &Group) -> Option<String> {
        if self.has_units_aside(group) {
            return None;
        }
        let units: Vec<BlockId> = slots(group).map(|slot| unit_of(group, slot).0).collect();
        let mut room: BTreeMap<&str, usize> = BTreeMap::new();
        let able: Vec<BTreeSet<usize>> =
            units.iter().map(|id| self.takers(*id).map(|node| node.number).collect()).collect();
        // A member may be of a storage policy that fewer nodes have the disks for.
        for node in self.nodes.iter().filter(|node| able.iter().all(|of| of.contains(&node.number)))
        {
            *room.entry(&node.rack).or_default() += 1;
        }
        if room.values().sum::<usize>() < units.len() {
            return None;
        }
        let fits =
            |most: &usize| room.values().map(|nodes| nodes.min(most)).sum::<usize>() >= units.len();
        let least = (1..=units.len()).find(fits).unwrap_or(units.len());
        let most = least.max(usize::from(group.m));
        let mut used: BTreeMap<&str, usize> = BTreeMap::new();
        for node in self.nodes.iter().filter(|node| node.is_serving(self.now_ms) && !node.is_gone) {
            let held = units.iter().filter(|id| node.replicas.contains_key(id)).count();
            if held > 1 {
                let handle = group.handle;
                return Some(format!("{held} units of {handle} share dn-{}", node.number));
            }
            *used.entry(&node.rack).or_default() += held;
        }
        let crowded = used.iter().find(|(_, held)| **held > most);
        crowded.map(|(rack, held)| {
            format!("{held} units of {} are on {rack}, at most {most} should be", group.handle)
        })
    }

    /// Units of a group that nodes of such a standing other than one have, or have lost by a fault, of how many.
    pub(super) fn group_elsewhere(
        &self,
        group: &Group,
        node: usize,
        standings: &[Standing],
    ) -> (usize, usize) {
        let has = |slot: &usize| {
            let (id, gs) = unit_of(group, *slot);
            let Some(facts) = self.name_node.facts_of(id.group()) else { return false };
            let mut replicas = self.name_node.cluster.replicas(id.group(), &facts).into_iter();
            replicas.any(|replica| {
                let other = self.name_node.machine_of(replica.storage);
                let is_it = !id.is_parity() || replica.unit.as_usize() == *slot;
                let held = self.nodes[other].replicas.get(&id);
                let is_good = held.is_some_and(|stored| is_whole(stored, gs));
                let unit = UnitIndex(*slot as u8);
                is_it
                    && other != node
                    && standings.contains(&replica.standing)
                    && (is_good || self.has_failed(group.handle.internal(unit), other, unit))
            })
        };
        (slots(group).filter(has).count(), slots(group).count())
    }
}

/// The slots that have bytes.
fn slots(group: &Group) -> impl Iterator<Item = usize> + '_ {
    let k = usize::from(group.k);
    let members = group.members().map(|(slot, _)| usize::from(slot));
    members.chain(k..k + usize::from(group.m))
}

/// Id and stamp of the unit in a slot.
fn unit_of(group: &Group, slot: usize) -> (BlockId, GenerationStamp) {
    match group.members.get(slot) {
        Some(Some(member)) => (member.id, member.gs),
        _ => (group.handle.internal(UnitIndex(slot as u8)), group.gs),
    }
}

pub(super) fn is_whole(stored: &Stored, gs: GenerationStamp) -> bool {
    stored.replica.state() == ReplicaState::Finalized
        && stored.replica.gs() == gs
        && stored.damaged.is_empty()
}
