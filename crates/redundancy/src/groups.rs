//! Contiguous groups: attempts to make them, what becomes of the replicas that they need no more, and when that may go.
//!
//! A member of a formed group needs one replica. The others go one member after the other, and only while every unit is
//! there, on nodes in service that are heard of, and the replica that stays was read by the encode that has made the
//! parities and its storage has not begun another life since. That is judged when replicas are chosen for deletion, and
//! once more when their nodes are told. Repair of groups is that of all slots (`mend`). Tested in `groups/tests.rs`.

use crate::block::{BlockFacts, BlockLookup, BlockRef, BlockState, GroupFacts};
use crate::clock::{Now, millis};
use crate::cluster::Cluster;
use crate::command::{EncodeMember, EncodeOrder};
use crate::groups::known::{Attempt, Life, Proof};
use crate::handle::{NodeHandle, StorageHandle};
use crate::places::map::Place;
use crate::replica::LateCrc;
use crate::slots::Slots;
use crate::tally::Tally;
use cairn_stripe::{BlockId, GenerationStamp, UnitIndex};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

pub mod adopt;
pub mod contents;
pub(crate) mod known;
pub mod plan;
pub mod prove;
#[cfg(test)]
mod tests;
pub(crate) mod unknown;

/// Times the patience for other work that an attempt has: whole blocks are read and parities written.
const PATIENCE: u64 = 4;
/// Heartbeats for which the members of an attempt that was abandoned are in no other.
const REST_HEARTBEATS: u32 = 10;
/// Groups with surplus that a tick looks at.
const STEP: usize = 500;
/// Attempts that one node may have to encode at a time.
pub const ENCODES_PER_NODE: usize = 2;

/// What an encoder says that it has made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Encoded {
    /// The group, and the stamp of its parities.
    pub handle: BlockId,
    /// That stamp.
    pub gs: GenerationStamp,
    /// The storages that members were read from, by slot.
    pub read_from: Vec<(UnitIndex, StorageHandle)>,
    /// Length and CRC32C of each parity.
    pub parities: Vec<(UnitIndex, u64, u32)>,
}

/// Why a group cannot be formed of what was encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotFormed {
    /// Nobody has begun it here, or it has ended, or somebody else encodes it.
    NotOpen,
    /// Not all parities are reported yet as they were encoded.
    Awaited,
    /// A replica that was to stay is not what was read, or is there no more.
    MemberLost,
    /// A parity is not what was encoded, or is to be deleted.
    ParityLost,
}

impl fmt::Display for NotFormed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NotFormed::NotOpen => "there is no such attempt any more",
            NotFormed::Awaited => "not all parities are reported yet",
            NotFormed::MemberLost => "a replica that was to stay is not what was read, or is gone",
            NotFormed::ParityLost => "a parity is not what was encoded, or is to be deleted",
        })
    }
}

impl Cluster {
    /// Tells that an attempt to make a group is in the log, with the storages that belong to it by slot: those of the
    /// replicas that are to stay, then those that parities go to. Gives one of these the order to encode. Without
    /// storages, or where one is not as it was when they were chosen, the attempt is one that will be abandoned.
    pub fn group_begun(
        &mut self,
        lookup: &dyn BlockLookup,
        (handle, gs): (BlockId, GenerationStamp),
        targets: &[Option<StorageHandle>],
        now: Now,
    ) {
        let group = lookup.group(handle).filter(|group| group.attempt && group.gs == gs);
        let Some(group) = group else { return };
        let Some(order) = self.encode_order(lookup, &group, targets) else { return };
        let Some(encoder) = self.choose_encoder(&order) else { return };
        let of_parities: Vec<Option<StorageHandle>> = (0_usize..)
            .zip(targets)
            .map(|(slot, target)| target.filter(|_| slot >= usize::from(group.k)))
            .collect();
        self.block_allocated(handle, gs, &of_parities);
        let kept = order.members.iter().map(|m| (m.slot, self.life_of(m.storage))).collect();
        let since_ms = now.mono_ms;
        let members = order.members.iter().map(|member| member.block.id).collect();
        let attempt = Attempt { gs, encoder, since_ms, members, kept, ended: None };
        self.groups.begin(handle, attempt);
        self.work.give(encoder).encodes.push(order);
    }

    fn encode_order(
        &self,
        lookup: &dyn BlockLookup,
        group: &GroupFacts,
        targets: &[Option<StorageHandle>],
    ) -> Option<EncodeOrder> {
        let storage_at = |slot: usize| targets.get(slot).copied().flatten();
        let mut members = Vec::new();
        for (at, member) in group.slots.iter().enumerate() {
            let Some(member) = member else { continue };
            let (slot, storage) = (UnitIndex(u8::try_from(at).ok()?), storage_at(at)?);
            let crc32c = lookup.unit_crc(member.id, UnitIndex(0))?;
            let is_good = self.is_good_on(storage, member.id);
            is_good.then(|| {
                members.push(EncodeMember { slot, block: member.block(), storage, crc32c });
            })?;
        }
        let parities = (group.k..group.k.checked_add(group.m)?).map(UnitIndex);
        let targets: Option<Vec<(StorageHandle, UnitIndex)>> =
            parities.map(|unit| Some((storage_at(unit.as_usize())?, unit))).collect();
        let group = BlockRef { id: group.handle, gs: group.gs, len: 0 };
        Some(EncodeOrder { group, members, targets: targets? })
    }

    /// Whether a replica is on a storage that serves, good and to stay.
    fn is_good_on(&self, storage: StorageHandle, own_id: BlockId) -> bool {
        let place = self.blocks.on(storage, own_id);
        let is_to_stay = |place: Place| self.is_live(&place) && !place.told;
        place.is_some_and(is_to_stay) && self.node(self.storage(storage).node).alive
    }

    fn life_of(&self, storage: StorageHandle) -> Life {
        Life { storage, number: self.storage(storage).life }
    }

    /// Of the nodes that get a parity, the one that has least to encode.
    fn choose_encoder(&self, order: &EncodeOrder) -> Option<NodeHandle> {
        let nodes = order.targets.iter().map(|(storage, _)| self.storage(*storage).node);
        let able = nodes.filter(|node| self.node(*node).alive && self.node(*node).takes_groups);
        able.min_by_key(|node| self.encodes_of(*node))
    }

    /// Attempts that a node is to encode for.
    pub(crate) fn encodes_of(&self, node: NodeHandle) -> usize {
        self.groups.attempts().filter(|(_, attempt)| attempt.encoder == node).count()
    }

    /// The orders to encode that hold still.
    pub(crate) fn still_to_encode(
        &self,
        node: NodeHandle,
        mut orders: Vec<EncodeOrder>,
    ) -> Vec<EncodeOrder> {
        orders.retain(|order| {
            let attempt = self.groups.attempt(order.group.id);
            attempt.is_some_and(|attempt| attempt.encoder == node && attempt.ended.is_none())
        });
        orders
    }

    /// A node starts anew or is gone: what it was to encode is lost.
    pub(crate) fn end_attempts_of(&mut self, node: NodeHandle) {
        self.groups.end_all_of(node, "its encoder has started anew or is dead");
    }

    /// Whether a group can be formed of what a node has encoded, as far as the cluster knows: that node was to encode it,
    /// every replica that is to stay was read where it is, and has been there all the time, and every parity is there as
    /// it was encoded.
    pub fn can_form(
        &self,
        lookup: &dyn BlockLookup,
        reporter: NodeHandle,
        encoded: &Encoded,
    ) -> Result<(), NotFormed> {
        let Encoded { handle, gs, read_from, parities } = encoded;
        let attempt = self.groups.attempt(*handle).filter(|attempt| {
            attempt.gs == *gs && attempt.encoder == reporter && attempt.ended.is_none()
        });
        let group = lookup.group(*handle).filter(|group| group.attempt && group.gs == *gs);
        let (Some(attempt), Some(group)) = (attempt, group) else {
            return Err(NotFormed::NotOpen);
        };
        let is_read = |(slot, life): &(UnitIndex, Life)| {
            let was_read_there = read_from.contains(&(*slot, life.storage));
            was_read_there && self.is_kept(&group, *slot, *life)
        };
        if !attempt.kept.iter().all(is_read) {
            return Err(NotFormed::MemberLost);
        }
        let wanted = group.k..group.k.saturating_add(group.m);
        let is_as_long = |(_, len, _): &(UnitIndex, u64, u32)| *len == parities[0].1;
        if !parities.iter().map(|(slot, ..)| slot.0).eq(wanted) || !parities.iter().all(is_as_long)
        {
            return Err(NotFormed::ParityLost);
        }
        parities.iter().try_for_each(|parity| self.has_parity(&group, *parity))
    }

    /// Whether the replica of a member that is to stay has been there since that life of its storage began.
    fn is_kept(&self, group: &GroupFacts, slot: UnitIndex, life: Life) -> bool {
        let member = group.slots.get(slot.as_usize()).copied().flatten();
        member.is_some_and(|member| {
            self.life_of(life.storage) == life && self.is_good_on(life.storage, member.id)
        })
    }

    /// Whether a parity was reported as it was encoded, on a node that serves, and nothing is to delete it.
    fn has_parity(
        &self,
        group: &GroupFacts,
        (slot, len, crc32c): (UnitIndex, u64, u32),
    ) -> Result<(), NotFormed> {
        let places = || self.places(group.handle).filter(|place| place.unit == slot);
        if places().any(|place| place.corrupt || place.excess || place.told) {
            return Err(NotFormed::ParityLost);
        }
        let construction = self.blocks.construction(group.handle);
        let facts = BlockFacts { len, state: BlockState::Complete, ..group.facts() };
        match construction.and_then(|construction| construction.crc(slot, &facts)) {
            Some(told) if told != crc32c => Err(NotFormed::ParityLost),
            Some(_) if places().any(|place| self.is_live(&place)) => Ok(()),
            _ => Err(NotFormed::Awaited),
        }
    }

    /// Tells that a group is formed. What was read for it where it still is counts as proven; where something is there no
    /// more, the group is repaired. Returns CRCs as [`Cluster::block_completed`] does.
    pub fn group_formed(&mut self, lookup: &dyn BlockLookup, handle: BlockId) -> Vec<LateCrc> {
        let attempt = self.groups.take_attempt(handle);
        if let Some(group) = lookup.group(handle).filter(|group| group.formed) {
            for (slot, place) in attempt.iter().flat_map(|attempt| attempt.kept.iter().copied()) {
                let member = group.slots.get(slot.as_usize()).copied().flatten();
                let proven = member.filter(|_| self.is_kept(&group, slot, place));
                if let Some(member) = proven {
                    self.groups.note_proof(member.id, Proof { gs: member.gs, place });
                }
            }
            self.take_needs_of_members(&Slots::of(lookup, handle, &group.facts()));
        }
        self.block_completed(lookup, handle)
    }

    /// What members lack is their group's need from now on, and what they have too much, whether its node was told so or
    /// not.
    pub(crate) fn take_needs_of_members(&mut self, slots: &Slots) {
        for (_, member) in slots.members().filter(|(unit, _)| !slots.is_elsewhere(*unit)) {
            let chosen: Vec<StorageHandle> = self
                .places(member.id)
                .filter(|place| place.excess && !place.corrupt)
                .map(|place| place.storage)
                .collect();
            for storage in chosen {
                self.blocks.take_back(storage, member.id);
            }
            self.blocks.note_change(member.id);
            self.low.queues_mut().remove(member.id);
        }
    }

    /// Tells that there is no such group, or no such attempt, any more: its parities are deleted. What its members need
    /// then is told of each.
    pub fn group_ended(&mut self, handle: BlockId, gs: GenerationStamp) {
        if let Some(attempt) = self.groups.take_attempt(handle) {
            let now_ms = self.last_event.mono_ms;
            let rest = millis(REST_HEARTBEATS * self.config.heartbeat_interval);
            self.groups.rest(attempt.members, now_ms.saturating_add(rest), now_ms);
        }
        self.groups.forget_surplus(handle, &[]);
        self.groups.note_lent(handle, std::iter::empty());
        self.forget_block(handle, gs);
    }

    /// Attempts that are to be abandoned, and why: their time is over, or they have lost their encoder or one of the
    /// replicas that were to stay.
    pub fn failed_attempts(
        &self,
        lookup: &dyn BlockLookup,
        now: Now,
    ) -> Vec<(BlockId, GenerationStamp, &'static str)> {
        let patience = millis(self.config.pending_timeout).saturating_mul(PATIENCE);
        let why = |handle: BlockId, attempt: &Attempt| {
            let group = lookup.group(handle)?;
            let is_kept = |(slot, life): &(UnitIndex, Life)| self.is_kept(&group, *slot, *life);
            match attempt.ended {
                Some(why) => Some(why),
                None if now.mono_ms.saturating_sub(attempt.since_ms) >= patience => {
                    Some("its time is over")
                }
                None if !attempt.kept.iter().all(is_kept) => {
                    Some("a replica that was to stay is there no more")
                }
                None => None,
            }
        };
        let attempts = self.groups.attempts();
        attempts
            .filter_map(|(handle, attempt)| Some((handle, attempt.gs, why(handle, attempt)?)))
            .collect()
    }

    /// Whether a node is to encode a group, and the attempt has not ended.
    pub fn is_encoding(&self, node: NodeHandle, handle: BlockId, gs: GenerationStamp) -> bool {
        let attempt = self.groups.attempt(handle);
        attempt.is_some_and(|attempt| attempt.gs == gs && attempt.encoder == node)
    }

    /// Whether a block was to be a member a moment ago and nothing came of it: another attempt can wait.
    pub fn is_resting(&self, id: BlockId, now: Now) -> bool {
        self.groups.is_resting(id, now.mono_ms)
    }

    /// Whether an attempt is under way that this process has begun.
    pub fn is_attempt_known(&self, handle: BlockId) -> bool {
        self.groups.attempt(handle).is_some()
    }

    /// How many attempts are under way.
    pub fn attempt_count(&self) -> usize {
        self.groups.attempts().count()
    }

    /// Ends an attempt: it is to be abandoned.
    pub fn end_attempt(&mut self, handle: BlockId, gs: GenerationStamp, why: &'static str) {
        self.groups.end(handle, gs, why);
    }

    /// Whether every member of a group that a file has, has its copies without the group: then that can end.
    pub fn can_dissolve(&self, lookup: &dyn BlockLookup, group: &GroupFacts) -> bool {
        let mut live = group.slots.iter().flatten().filter(|member| member.live);
        live.all(|member| {
            let Some(facts) = lookup.block(member.id) else { return false };
            let tally = self.tally(member.id, &facts);
            let is_sure = tally.certain && tally.live - tally.doubted >= facts.expected_units();
            group.dissolving && is_sure
        })
    }

    /// Has the DataNodes know that have a member which no file has any more, once in each of their storages' lives.
    pub fn tell_retired(&mut self, member: BlockRef) {
        let places: Vec<StorageHandle> = self.readable_places(member.id);
        for storage in places {
            let place = self.life_of(storage);
            let node = self.storage(storage).node;
            if !self.node(node).takes_groups {
                continue;
            }
            if self.groups.note_retired(member.id, place) {
                self.work.give(node).retired.push(member);
            }
        }
    }

    // What readers and operators ask.

    /// Whether the bytes of a member can be had from its group: as many units can be read as there are members. Those of a
    /// packed block can be had from its container, or from the group of that.
    pub fn is_decodable(&self, lookup: &dyn BlockLookup, id: BlockId, facts: &BlockFacts) -> bool {
        if let Some(container) = facts.packed {
            return self.can_be_had(lookup, container);
        }
        let slots = Slots::of(lookup, id, facts);
        slots.is_contiguous() && self.readable_units(&slots) >= slots.facts.data_units()
    }

    /// The blocks that are lost where the need of `id` says that nothing good is left: itself, or the members of a
    /// contiguous group that files have and of which no good replica is left either.
    pub fn lost_blocks(&self, lookup: &dyn BlockLookup, id: BlockId) -> Vec<BlockId> {
        let group = id.is_parity().then(|| lookup.group(id)).flatten();
        let Some(group) = group else { return vec![id] };
        let has_good = |id: BlockId| self.places(id).any(|place| !place.corrupt);
        let live = group.slots.iter().flatten().filter(|member| member.live);
        live.map(|member| member.id).filter(|id| !has_good(*id)).collect()
    }

    /// Storages of DataNodes that can decode a member of a group for readers: those that have a parity, else some others.
    pub fn decoders(&self, handle: BlockId, now: Now) -> Vec<StorageHandle> {
        /// Of those without a parity.
        const FEW: usize = 3;
        let is_able = |node: NodeHandle| {
            let node = self.node(node);
            node.is_readable() && node.takes_groups && !self.is_late(node, now)
        };
        let good = self.places(handle).filter(|place| !place.corrupt && !place.excess);
        let with_parity = good.map(|place| place.storage);
        let able: Vec<StorageHandle> =
            with_parity.filter(|storage| is_able(self.storage(*storage).node)).collect();
        if !able.is_empty() {
            return able;
        }
        let others = self.nodes().filter(|node| is_able(node.handle) && !node.is_leaving());
        others.filter_map(|node| node.storages.first().copied()).take(FEW).collect()
    }

    /// Whether one of these places can be read from a node that is heard of.
    pub fn is_any_heard_of(&self, named: &[(StorageHandle, UnitIndex)], now: Now) -> bool {
        let mut nodes = named.iter().map(|(storage, _)| self.node(self.storage(*storage).node));
        nodes.any(|node| node.is_readable() && !self.is_late(node, now))
    }

    /// Who decodes a member for readers, behind those of its places that are named to them: nobody where one can be read
    /// from a node that is heard of, unless the reader `has_failed` there.
    pub fn readers_of_member(
        &self,
        handle: BlockId,
        named: &[(StorageHandle, UnitIndex)],
        has_failed: bool,
        now: Now,
    ) -> Vec<(StorageHandle, UnitIndex)> {
        let node_of = |storage: StorageHandle| self.node(self.storage(storage).node);
        if !has_failed && self.is_any_heard_of(named, now) {
            return Vec::new();
        }
        let mut known: BTreeSet<NodeHandle> =
            named.iter().map(|(storage, _)| node_of(*storage).handle).collect();
        let mut decoders = self.decoders(handle, now);
        decoders.retain(|storage| known.insert(node_of(*storage).handle));
        decoders.into_iter().map(|storage| (storage, UnitIndex(0))).collect()
    }

    /// Good places of a block on nodes that can be read.
    pub fn readable_places(&self, id: BlockId) -> Vec<StorageHandle> {
        let readable = |place: &Place| {
            let node = self.node(self.storage(place.storage).node);
            !place.corrupt && !place.excess && node.is_readable()
        };
        self.places(id).filter(readable).map(|place| place.storage).collect()
    }

    // Surplus.

    /// From now on nothing is deleted of what groups do not need, not even what was chosen already; or it is again.
    pub fn hold_surplus(&mut self, is_held: bool) {
        self.groups.hold(is_held);
    }

    /// Formed groups with more replicas than they need.
    pub fn groups_with_surplus(&self) -> usize {
        self.groups.surplus_count()
    }

    /// Whether a group has all that it needs where it is safe, so that one of its replicas too many may go.
    fn is_whole(&self, slots: &Slots, tally: &Tally, now: Now) -> bool {
        let is_heard_of = |place: Place| {
            let node = self.node(self.storage(place.storage).node);
            !self.is_stale(node, now)
        };
        tally.certain
            && tally.live == slots.facts.expected_units()
            && tally.leaving == 0
            && tally.corrupt == 0
            && self.places_of(slots).all(is_heard_of)
    }

    /// The place of a member or parity that is to stay: the one that was proven, if it holds still.
    pub(crate) fn proven_place(&self, slots: &Slots, unit: UnitIndex) -> Option<StorageHandle> {
        let block = slots.block(unit);
        let proof = self.groups.proof(block.id).filter(|proof| proof.gs == block.gs)?;
        let Life { storage, number } = proof.place;
        let holds = self.storage(storage).life == number && self.is_good_on(storage, block.id);
        holds.then_some(storage)
    }

    /// Whether a group keeps its members safe and has all that it needs where it is safe.
    pub fn is_group_whole(&self, lookup: &dyn BlockLookup, handle: BlockId, now: Now) -> bool {
        let group = lookup.group(handle).filter(|group| group.formed && !group.dissolving);
        group.is_some_and(|group| {
            let slots = Slots::of(lookup, handle, &group.facts());
            self.is_whole(&slots, &self.tally_of(&slots), now)
        })
    }

    /// Whether a group has more replicas than it needs.
    pub fn has_surplus(&self, handle: BlockId) -> bool {
        self.groups.has_surplus(handle)
    }

    /// Whether a replica of a member or parity was proven, so that it may stay as the only one.
    pub fn is_proven(&self, lookup: &dyn BlockLookup, id: BlockId) -> bool {
        let facts = lookup.block(id.group());
        let facts = facts.filter(|facts| facts.group.is_some() || id.is_parity());
        let Some(facts) = facts else { return false };
        let slots = Slots::of(lookup, id.group(), &facts);
        slots.unit_of(id).is_some_and(|unit| self.proven_place(&slots, unit).is_some())
    }

    /// Has the replicas of one member or parity deleted that its group does not need, if that may be, and none of another
    /// one is on its way out.
    pub(crate) fn drop_surplus(&mut self, slots: &Slots, tally: &Tally) {
        if tally.duplicates == 0 && tally.excess == 0 {
            let members: Vec<BlockId> = slots.owners().skip(1).collect();
            self.groups.forget_surplus(slots.id, &members);
            return;
        }
        if slots.is_dissolving {
            return;
        }
        self.groups.note_surplus(slots.id);
        let is_held = self.groups.is_held() || tally.excess > 0;
        if is_held || !self.is_whole(slots, tally, self.last_event) {
            return;
        }
        let mut per_unit: BTreeMap<UnitIndex, Vec<StorageHandle>> = BTreeMap::new();
        for place in self.places_of(slots).filter(|place| self.is_live(place)) {
            per_unit.entry(place.unit).or_default().push(place.storage);
        }
        per_unit.retain(|_, storages| storages.len() > 1);
        let spare = per_unit.iter().find_map(|(unit, storages)| {
            let best = self.best_to_stay(slots, *unit, storages)?;
            let kept = self.proven_place(slots, *unit).filter(|proven| *proven == best)?;
            let others = storages.iter().copied().filter(|storage| *storage != kept);
            Some((*unit, others.collect::<Vec<_>>()))
        });
        let Some((unit, storages)) = spare else {
            self.have_one_proven(slots, per_unit);
            return;
        };
        let block = slots.block(unit);
        self.groups.note_dropping(slots.id, block.id);
        for storage in storages {
            self.blocks.choose_for_deletion(storage, block);
        }
    }

    /// Before a node is told what to delete: keeps what of it groups need, as things stand now.
    pub(crate) fn revoke_surplus(&mut self, lookup: &dyn BlockLookup, node: NodeHandle, now: Now) {
        let mut revoked = Vec::new();
        for storage in &self.node(node).storages {
            for block in self.blocks.next_deletions(*storage, self.config.invalidate_limit) {
                let Some(handle) = self.groups.dropping_for(block.id) else { continue };
                let place = self.blocks.on(*storage, block.id);
                let is_surplus = place.is_some_and(|place| place.excess && !place.corrupt);
                let group = lookup.group(handle);
                let may_go = group.is_some_and(|group| self.may_go(lookup, &group, block.id, now));
                if is_surplus && !may_go {
                    revoked.push((*storage, block.id, handle));
                }
            }
        }
        for (storage, id, handle) in revoked {
            self.blocks.keep_any_stamp(storage, id);
            self.check_redundancy(lookup, handle);
        }
    }

    /// Whether what was chosen of a member may be deleted still.
    fn may_go(&self, lookup: &dyn BlockLookup, group: &GroupFacts, id: BlockId, now: Now) -> bool {
        let slots = Slots::of(lookup, group.handle, &group.facts());
        self.is_proven(lookup, id)
            && !self.groups.is_held()
            && self.is_whole(&slots, &self.tally_of(&slots), now)
    }

    /// One tick: looks at some of the groups that have surplus, for what was in its way may be so no more.
    pub(crate) fn look_for_surplus(&mut self, lookup: &dyn BlockLookup) {
        if self.safe_mode.holds_work() {
            return;
        }
        for handle in self.groups.next_with_surplus(STEP) {
            self.check_redundancy(lookup, handle);
        }
    }
}
