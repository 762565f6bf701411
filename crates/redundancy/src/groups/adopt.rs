//! Groups that DataNodes have and a restored namespace does not know. Their parities belong to nothing, so they wait to be
//! deleted, which is held back. They are read as their disks have them, and end with the record of their group. Where members
//! need it the group is taken over, and what waited to be deleted of it counts from then on. Containers of which no parity
//! is left are read in the same way ([`super::contents`]).

use crate::block::{BlockFacts, BlockLookup, BlockRef, BlockState, SlotFacts};
use crate::clock::{Now, millis};
use crate::cluster::Cluster;
use crate::command::ProveOrder;
use crate::groups::known::Proving;
use crate::groups::prove::{PROVES_PER_NODE, Proved};
use crate::groups::unknown::Unknown;
use crate::handle::{NodeHandle, StorageHandle};
use crate::replica::{Changes, ReplicaState, ReportedReplica};
use crate::slots::Slots;
use cairn_stripe::{BlockId, GenerationStamp, UnitIndex};
use std::collections::BTreeMap;

pub use crate::groups::unknown::{FoundContainer, FoundGroup, TakenOver};

/// Heartbeats without news after which all that lives is taken to have told what it has.
const SETTLED_HEARTBEATS: u32 = 10;

impl Cluster {
    /// Whether a storage has what belongs to nothing, as far as the namespace knows.
    pub(crate) fn is_unknown_on(&self, storage: StorageHandle, block: BlockRef) -> bool {
        // The length of a container that was given up is not known any more; of one stamp there is one.
        let is_container = block.id.is_container();
        let from = if is_container { BlockRef { len: 0, ..block } } else { block };
        let first = self.blocks.next_deletions_from(storage, from).next();
        let is_it = |first: BlockRef| {
            first == block || is_container && (first.id, first.gs) == (block.id, block.gs)
        };
        !self.blocks.map().is_on(storage, block.id) && first.is_some_and(is_it)
    }

    /// The storages that have it so.
    fn unknown_on(&self, block: BlockRef) -> Vec<StorageHandle> {
        let all = self.blocks.deletions().map(|(storage, _)| storage);
        all.filter(|storage| self.is_unknown_on(*storage, block)).collect()
    }

    /// Has DataNodes read the parities that belong to nothing, and the containers that no group has which these tell of. To be
    /// called again and again, as long as nothing is deleted.
    pub fn ask_for_unknown(&mut self, lookup: &dyn BlockLookup, now: Now) {
        self.groups.give_up_proving(millis(self.config.pending_timeout), now.mono_ms);
        let mut unread = 0;
        for (storage, block) in self.waiting_of(BlockId::FIRST_HANDLE_BASE, BlockId::is_parity) {
            let handle = block.id.group();
            let found = self.groups.unknown().found.get(&handle);
            let is_read = found.is_some_and(|found| found.parities.contains_key(&block.id.unit()));
            if is_read || lookup.group(handle).is_some() {
                continue;
            }
            unread += 1;
            self.ask_about((storage, block), false, now);
        }
        self.groups.unknown_mut().unread = unread;
        self.ask_for_containers(lookup, now);
    }

    /// Notes what belongs to nothing, and has its DataNode read it if it has time for that.
    pub(crate) fn ask_about(
        &mut self,
        (storage, block): (StorageHandle, BlockRef),
        wants_index: bool,
        now: Now,
    ) {
        if self.groups.unknown_mut().seen.insert(block.id) {
            self.groups.unknown_mut().news_ms = Some(now.mono_ms);
        }
        let node = self.storage(storage).node;
        let of_node = self.groups.proving().filter(|(_, proving)| proving.node == node);
        let is_busy = of_node.count() >= PROVES_PER_NODE;
        let able = self.node(node).alive && self.node(node).takes_groups;
        if able && !is_busy && self.groups.proving_of(block.id).is_none() {
            let (place, since_ms) = (self.life_of(storage), now.mono_ms);
            self.groups.begin_proving(block.id, Proving { node, place, since_ms });
            self.work.give(node).proves.push(ProveOrder { block, storage, wants_index });
        }
    }

    /// What waits to be deleted and is of a kind whose ids begin there.
    pub(crate) fn waiting_of(
        &self,
        first: BlockId,
        is_one: impl Fn(BlockId) -> bool,
    ) -> Vec<(StorageHandle, BlockRef)> {
        let first = BlockRef { id: first, gs: GenerationStamp(0), len: 0 };
        let mut waiting = Vec::new();
        for (storage, _) in self.blocks.deletions() {
            let blocks = self.blocks.next_deletions_from(storage, first);
            waiting.extend(blocks.take_while(|block| is_one(block.id)).map(|of| (storage, of)));
        }
        waiting
    }

    /// The orders to read for a node that can be given while all others wait.
    pub(crate) fn take_questions(&mut self, node: NodeHandle) -> Vec<ProveOrder> {
        let Some(mut outbox) = self.work.take_outbox(node) else { return Vec::new() };
        let proves = std::mem::take(&mut outbox.proves).into_iter();
        let (asked, others) = proves
            .partition(|order| order.wants_index || self.is_unknown_on(order.storage, order.block));
        outbox.proves = others;
        self.work.put_back(node, outbox);
        self.still_to_prove(asked)
    }

    /// Takes what a parity that belongs to nothing says of its group, or a container of what is in it.
    pub(crate) fn note_found(&mut self, proved: &Proved, crc32c: u32) {
        let (id, gs) = (proved.block.id, proved.block.gs);
        if id.is_container() {
            return self.note_container(proved, crc32c);
        }
        let Some(record) = &proved.record else { return };
        let slots = record.schema.data_units()..record.schema.units();
        let is_its = (record.handle, record.gs) == (id.group(), gs);
        if !is_its || !slots.contains(&id.unit().as_usize()) {
            return;
        }
        let found = self.groups.unknown_mut().found.entry(id.group()).or_insert_with(|| {
            FoundGroup { record: record.clone(), parities: BTreeMap::new(), refusal: None }
        });
        if found.record == *record {
            found.parities.insert(id.unit(), (proved.block.len, crc32c));
            self.groups.unknown_mut().news_ms = Some(self.last_event.mono_ms);
        }
    }

    /// Whether there was nothing new for a while: all who live have told what they have.
    pub fn has_found_all(&self, now: Now) -> bool {
        let rest_ms = millis(SETTLED_HEARTBEATS * self.config.heartbeat_interval);
        let news_ms = self.groups.unknown().news_ms;
        news_ms.is_none_or(|news_ms| now.mono_ms.saturating_sub(news_ms) >= rest_ms)
    }

    /// The groups that parities tell of, and that were not taken over.
    pub fn found_groups(&self) -> impl Iterator<Item = &FoundGroup> {
        self.groups.unknown().found.values()
    }

    /// A group is not taken over as things stand. Returns whether that is new.
    pub fn refuse_found(&mut self, handle: BlockId, why: &str) -> bool {
        let found = self.groups.unknown_mut().found.get_mut(&handle);
        found.is_some_and(|found| found.refusal.replace(why.into()).as_deref() != Some(why))
    }

    /// Nothing is to be taken over any more.
    pub fn forget_found(&mut self) {
        *self.groups.unknown_mut() = Unknown::default();
    }

    /// How far it has come.
    pub fn taken_over(&self) -> TakenOver {
        let Unknown { found, unread, adopted, adopted_blocks, .. } = self.groups.unknown();
        let Unknown { unread_containers, unread_alone, .. } = self.groups.unknown();
        let refused = found.iter().filter_map(|(id, found)| Some((*id, found.refusal.clone()?)));
        TakenOver {
            unread: *unread,
            found: found.len() as u64,
            adopted: *adopted,
            refused: refused.collect(),
            unread_containers: unread_containers + unread_alone,
            adopted_blocks: *adopted_blocks,
        }
    }

    /// How many units of a group that was found can be read.
    pub fn found_units(&self, lookup: &dyn BlockLookup, found: &FoundGroup) -> usize {
        let parity = |(unit, (len, _)): (&UnitIndex, &(u64, u32))| BlockRef {
            id: found.record.handle.internal(*unit),
            gs: found.record.gs,
            len: *len,
        };
        let parities = found.parities.iter().map(parity);
        let parities = parities.filter(|block| !self.unknown_on(*block).is_empty()).count();
        let members = found.record.members.iter().flatten();
        let member = |of: &&cairn_stripe::group::Member| {
            let block = BlockRef { id: of.id, gs: of.gs, len: of.len };
            !self.readable_as(lookup, &block).is_empty() || !self.unknown_on(block).is_empty()
        };
        parities + members.filter(member).count()
    }

    /// Whether a block of a file needs a group that it is not in: it has fewer than two copies, or the group that it is in
    /// does not give it back.
    pub fn needs_group(&self, lookup: &dyn BlockLookup, id: BlockId, facts: &BlockFacts) -> bool {
        let copies = self.readable_places(id).len();
        match (facts.group, facts.packed) {
            (None, None) => copies < 2,
            (None, Some(_)) => copies == 0 && !self.is_decodable(lookup, id, facts),
            (Some(_), _) => !self.is_decodable(lookup, id, facts),
        }
    }

    /// Tells that a group was taken over: what DataNodes have of it is wanted from now on.
    pub fn group_adopted(&mut self, lookup: &dyn BlockLookup, handle: BlockId) -> Changes {
        let mut changes = Changes::default();
        let found = self.groups.unknown_mut().found.remove(&handle);
        self.groups.unknown_mut().adopted += u64::from(found.is_some());
        let Some(group) = lookup.group(handle) else { return changes };
        let slots = Slots::of(lookup, handle, &group.facts());
        self.count_adopted(lookup, &slots);
        self.take_needs_of_members(&slots);
        for unit in slots.facts.units() {
            self.want_unknown(lookup, slots.block(unit), &mut changes);
        }
        self.check_redundancy(lookup, handle);
        changes
    }

    /// What waited to be deleted is wanted from now on, and counts where it is.
    pub(crate) fn want_unknown(
        &mut self,
        lookup: &dyn BlockLookup,
        block: BlockRef,
        changes: &mut Changes,
    ) {
        for storage in self.unknown_on(block) {
            self.blocks.take_back(storage, block.id);
            let state = ReplicaState::Finalized;
            let replica = ReportedReplica { block, state, crc32c: None };
            self.take_replica(lookup, storage, replica, None, changes);
        }
    }

    /// Has safe mode count the members as those of a group, before what was unknown of it counts. Those that no file has are
    /// waited for as well, and so are containers.
    fn count_adopted(&mut self, lookup: &dyn BlockLookup, slots: &Slots) {
        if !self.safe_mode.is_starting() {
            return;
        }
        let own = slots.members().filter(|(unit, _)| !slots.is_elsewhere(*unit));
        let members = || own.clone().map(|(_, member)| member);
        let before = members().filter(|member| {
            let facts = lookup.block(member.id).filter(|facts| facts.state == BlockState::Complete);
            member.live
                && facts.is_some_and(|facts| {
                    let good = self.count_good(member.id, &facts, self.blocks.of(member.id));
                    good >= self.safe_min(&facts)
                })
        });
        let before = before.count() as u64;
        let after = self.safe_blocks(lookup, slots.id, &slots.facts);
        let is_new = |member: &&SlotFacts| !member.live || member.id.is_container();
        self.safe_mode.add_total(members().filter(is_new).count() as u64);
        self.safe_mode.count_safe(before, after);
    }
}

#[cfg(test)]
mod tests;
