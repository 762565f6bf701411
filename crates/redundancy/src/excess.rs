//! Counts what a block has against what it should have: too little goes to the queues, bad and surplus
//! replicas and units go to be deleted.
//!
//! A unit is deleted as surplus only when another good one with the *same index* is on a node in
//! service, and nothing is deleted while a storage that holds the block has not reported since its node
//! registered: what it holds may be older than what is known. Tested in `mend/tests.rs`.

use crate::block::{BlockFacts, BlockLookup, BlockRef, BlockState};
use crate::clock::{Now, millis};
use crate::cluster::Cluster;
use crate::handle::StorageHandle;
use crate::need::{Limits, Need};
use crate::node::DataNode;
use crate::places::bad::Bad;
use crate::places::map::Place;
use crate::places::own_id;
use crate::slots::Slots;
use crate::tally::{Seen, Tally};
use cairn_stripe::{BlockId, StoragePolicy, StorageType, UnitIndex};
use std::collections::{BTreeMap, BTreeSet};

impl Cluster {
    /// Counts what a block or group has.
    pub fn tally(&self, id: BlockId, facts: &BlockFacts) -> Tally {
        self.tally_of(&Slots::alone(id, facts))
    }

    /// Counts what is in the slots that protect a block.
    pub(crate) fn tally_of(&self, slots: &Slots) -> Tally {
        let seen = self.places_of(slots).map(|place| {
            let (storage, block) = (self.storage(place.storage), slots.block(place.unit));
            let is_doubted = self.blocks.may_be_gone(block.id, block.gs, &place, storage.node);
            Seen { place, storage, node: self.node(storage.node), is_doubted }
        });
        Tally::of(&slots.facts, seen, self.limits().wanted_domains(&slots.facts) > 0)
    }

    /// What the cluster as a whole can give a block.
    pub(crate) fn limits(&self) -> Limits {
        let width = self.nodes.width();
        Limits {
            racks: width.racks,
            serving: width.serving,
            domains: width.domains,
            shares: width.shares,
            domain_factor: self.config.upgrade_domain_factor,
            maintenance_min: self.config.maintenance_replication_min,
        }
    }

    /// What a block or group needs that has that.
    pub(crate) fn need_of(&self, id: BlockId, facts: &BlockFacts, tally: &Tally) -> Need {
        let coming = self.work.coming(id).iter().map(|task| task.unit);
        Need::of(facts, tally, coming, &self.limits())
    }

    /// Looks at one block, or at the contiguous group that it is in: queues or unqueues it, and deletes what is bad or too
    /// much.
    pub(crate) fn check_redundancy(&mut self, lookup: &dyn BlockLookup, id: BlockId) {
        if self.safe_mode.is_queueing() || id.is_parity() {
            self.check_against(lookup, id, lookup.block(id));
        }
    }

    /// The same when it was looked up already.
    pub(crate) fn check_against(
        &mut self,
        lookup: &dyn BlockLookup,
        id: BlockId,
        facts: Option<BlockFacts>,
    ) {
        if !self.safe_mode.is_queueing() {
            // What groups that end need is kept from the first report of a parity on.
            if let Some(facts) = facts.filter(|_| id.is_parity()) {
                self.keep_lent(&Slots::of(lookup, id, &facts));
            }
            return;
        }
        let Some(facts) = facts else {
            self.low.queues_mut().remove(id);
            self.forget_leaving_block(id);
            return;
        };
        if facts.state != BlockState::Complete {
            self.low.queues_mut().remove(id);
            self.note_leaving_of(&Slots::alone(id, &facts), None);
            return;
        }
        if facts.packed.is_some() {
            return self.check_packed(lookup, id, &facts);
        }
        self.packed.forget(id);
        let slots = Slots::of(lookup, id, &facts);
        if slots.id != id {
            self.low.queues_mut().remove(id);
        }
        self.keep_lent(&slots);
        self.check_slots(lookup, &slots);
        for (_, member) in slots.members().filter(|(_, member)| slots.is_dissolving && member.live)
        {
            if let Some(facts) = lookup.block(member.id) {
                self.check_slots(lookup, &Slots::alone(member.id, &facts));
            }
        }
    }

    /// Looks at what protects a block.
    fn check_slots(&mut self, lookup: &dyn BlockLookup, slots: &Slots) {
        let mut tally = self.tally_of(slots);
        let mut need = self.need_of(slots.id, &slots.facts, &tally);
        if tally.excess > 0 && self.keep_surplus(slots, &tally, &need) {
            tally = self.tally_of(slots);
            need = self.need_of(slots.id, &slots.facts, &tally);
        }
        self.queue_by_need(slots.id, &tally, &need);
        if tally.corrupt == 0 || !slots.owners().any(|id| self.is_record_doubtful(id)) {
            self.delete_bad(lookup, slots, &tally);
            if slots.is_contiguous() {
                self.drop_surplus(slots, &tally);
            } else if slots.facts.group.is_none() {
                // What a member of a group that ends has too much goes when that has ended: nobody has proven its copies.
                let surplus = (need.surplus(), tally.certain);
                self.delete_surplus(lookup, slots.id, &slots.facts, surplus);
            }
        }
        self.note_leaving_of(slots, Some(&tally));
    }

    fn queue_by_need(&mut self, id: BlockId, tally: &Tally, need: &Need) {
        self.low.note_sharing(id, tally.sharing > 0);
        match need.risk() {
            None => _ = self.low.queues_mut().remove(id),
            Some(risk) => self.low.queues_mut().put(id, &risk),
        }
    }

    /// Whether a place counts: good, to be kept, on a node in service.
    pub(crate) fn is_live(&self, place: &Place) -> bool {
        let node = self.node(self.storage(place.storage).node);
        !place.corrupt && !place.excess && !node.is_leaving() && !self.is_lost(place.storage)
    }

    /// Deletes bad replicas that are not needed any more: those with a wrong stamp as soon as enough
    /// good ones are there for the block to be read, the others when the block has all it should. One
    /// with a stamp that was not given out yet is kept: it was written after the state that this
    /// NameNode was started with, and may be what the file should be.
    ///
    /// Source: Hadoop 3.5.0 `BlockManager#markBlockAsCorrupt`.
    fn delete_bad(&mut self, lookup: &dyn BlockLookup, slots: &Slots, tally: &Tally) {
        if tally.corrupt == 0 || tally.live < self.min_units(&slots.facts) {
            return;
        }
        if !tally.certain {
            self.blocks.postpone(slots.id);
            return;
        }
        let all = tally.live >= slots.facts.expected_units();
        let marks = self.marks_of(slots);
        let wanted = |bad: &Bad| (all || bad.stale) && !is_future(lookup, bad);
        for (storage, bad) in marks.into_iter().filter(|(_, bad)| wanted(bad)) {
            if self.is_lost(storage) {
                continue;
            }
            // It stays known as bad until it is gone: a report that its node made before it deleted
            // it must not bring it back as a good one.
            self.blocks.choose_for_deletion(storage, bad.block);
        }
    }

    /// What is known to be bad in slots, and where, but for what a group needs as it is.
    fn marks_of(&self, slots: &Slots) -> Vec<(StorageHandle, Bad)> {
        let marks = slots.owners().flat_map(|id| self.blocks.bad_of(id)).copied();
        marks.filter(|(_, bad)| !self.groups.is_lent(&bad.block)).collect()
    }

    /// Keeps what a group that ends needs of blocks which their files have otherwise, until it has ended.
    fn keep_lent(&mut self, slots: &Slots) {
        if !slots.is_dissolving {
            return;
        }
        self.groups.note_lent(slots.id, slots.lent());
        for replica in slots.lent() {
            let marks = self.blocks.bad_of(replica.id).iter();
            let held: Vec<StorageHandle> =
                marks.filter(|(_, bad)| bad.block == replica).map(|(at, _)| *at).collect();
            for storage in held {
                self.blocks.keep_any_stamp(storage, replica.id);
            }
        }
    }

    /// No node can take what a block lacks: when that has been so for a while, bad replicas and units are
    /// deleted, so that their nodes can, if the block can be read without them from nodes that are heard
    /// of. One goes after the other: a replica or unit with a bad chunk is good for the rest until a
    /// whole one is there.
    ///
    /// Deviation: Hadoop keeps them until enough good ones are there, which on as many nodes as the block
    /// is wide is never.
    pub(crate) fn make_room(&mut self, lookup: &dyn BlockLookup, slots: &Slots, now: Now) {
        let id = slots.id;
        let round = millis(self.config.redundancy_interval);
        let patience = round.saturating_mul(u64::from(self.config.rounds_before_room));
        let since_ms = self.low.queues_mut().note_no_room(id, now.mono_ms);
        let tally = self.tally_of(slots);
        let is_doubtful = slots.owners().any(|id| self.is_record_doubtful(id));
        let waits = now.mono_ms.saturating_sub(since_ms) < patience || is_doubtful;
        let heard_of = self.units_heard_of(slots, now);
        if waits || !tally.certain || heard_of < self.min_units(&slots.facts) {
            return;
        }
        let is_going = self.places_of(slots).any(|place| place.corrupt && place.excess);
        if is_going || !self.work.coming(id).is_empty() {
            return;
        }
        let wanted = |(storage, bad): &(_, Bad)| !self.is_lost(*storage) && !is_future(lookup, bad);
        if let Some((storage, bad)) = self.marks_of(slots).into_iter().find(wanted) {
            self.blocks.choose_for_deletion(storage, bad.block);
        }
    }

    /// Good replicas, or distinct good units, on nodes that are not stale: also on such that leave, which stay until others
    /// have what they have, and not on those that were let go.
    fn units_heard_of(&self, slots: &Slots, now: Now) -> usize {
        let places = self.places_of(slots).filter(|place| {
            let node = self.node(self.storage(place.storage).node);
            let is_good = !place.corrupt && !place.excess && !self.is_lost(place.storage);
            let is_heard_of = !node.is_let_go() && !self.is_stale(node, now);
            is_good && is_heard_of && slots.facts.has_bytes(place.unit)
        });
        match slots.facts.layout.has_units() {
            true => places.map(|place| place.unit).collect::<BTreeSet<_>>().len(),
            false => places.count(),
        }
    }

    /// Keeps surplus that no node was told to delete yet, when what made it surplus is lost; of a contiguous group all of
    /// it, whichever unit is lost. Returns whether there was some.
    fn keep_surplus(&mut self, slots: &Slots, tally: &Tally, need: &Need) -> bool {
        let is_lacking = slots.is_contiguous() && tally.live < slots.facts.expected_units();
        let places: Vec<Place> = self.places_of(slots).collect();
        let mut kept = 0;
        for place in places.iter().filter(|place| place.excess && !place.corrupt) {
            let needed = is_lacking || need.keeps(place.unit, kept);
            let block = slots.block(place.unit);
            kept += usize::from(needed && self.blocks.keep(place.storage, block));
        }
        kept > 0
    }

    /// Source: Hadoop 3.5.0 `BlockManager#processExtraRedundancyBlock`.
    fn delete_surplus(
        &mut self,
        lookup: &dyn BlockLookup,
        id: BlockId,
        facts: &BlockFacts,
        (too_many, is_certain): (usize, bool),
    ) {
        if too_many == 0 {
            return;
        }
        if !is_certain {
            self.blocks.postpone(id);
            return;
        }
        let policy = lookup.storage_policy(id);
        let hint = self.blocks.take_hint(id);
        for _ in 0..too_many {
            let Some((storage, unit)) = self.surplus_place(id, facts, &policy, hint.as_ref())
            else {
                return;
            };
            let block = BlockRef { id: own_id(id, unit), gs: facts.gs, len: facts.unit_len(unit) };
            self.blocks.choose_for_deletion(storage, block);
        }
    }

    /// The place that can best be spared: one on a node that is heartbeats behind others, for the node may be dead
    /// and the others all there is; then one without which no more racks are lost than must be; of these
    /// one on a node that has other units of the group; then one on a type of storage of which the policy has
    /// too many; then the hinted one; else in the rack that has most, there on the node with least room.
    ///
    /// Source: Hadoop 3.5.0 `BlockPlacementPolicyDefault#chooseReplicasToDelete`, `#useDelHint`. Deviation:
    /// Hadoop takes the hint for a unit of a group whatever racks that costs, and asks for racks before silence.
    fn surplus_place(
        &self,
        id: BlockId,
        facts: &BlockFacts,
        policy: &StoragePolicy,
        hint: Option<&(UnitIndex, String)>,
    ) -> Option<(StorageHandle, UnitIndex)> {
        let live: Vec<(Place, &DataNode)> = self
            .places(id)
            .map(|place| (place, self.node(self.storage(place.storage).node)))
            .filter(|(place, node)| !place.corrupt && !place.excess && !node.is_leaving())
            .filter(|(place, _)| facts.has_bytes(place.unit))
            .collect();
        let mut per_rack: BTreeMap<&str, usize> = BTreeMap::new();
        for (_, node) in &live {
            *per_rack.entry(node.rack.as_str()).or_default() += 1;
        }
        let striped = facts.layout.is_striped();
        let kind = |place: &Place| self.storage(place.storage).storage_type;
        let types: Vec<StorageType> = live.iter().map(|(place, _)| kind(place)).collect();
        let excess_types = policy.excess(facts.expected_units(), &types);
        let mut spare: Vec<&(Place, &DataNode)> = live
            .iter()
            .filter(|(place, _)| {
                let same_unit = live.iter().filter(|(other, _)| other.unit == place.unit).count();
                !striped || same_unit > 1
            })
            .collect();
        let since_ms = self.tolerated_since(live.iter().map(|(_, node)| *node));
        let is_silent = |node: &DataNode| node.last_update_mono_ms < since_ms;
        if spare.iter().any(|(_, node)| is_silent(node)) {
            spare.retain(|(_, node)| is_silent(node));
        }
        let domains = self.config.upgrade_domain_factor.is_some() && !striped;
        let shares_rack = |node: &DataNode| per_rack[node.rack.as_str()] > 1;
        let has_others = |node: &DataNode| {
            live.iter().filter(|(_, other)| other.handle == node.handle).count() > 1
        };
        // What a copy was made for to be better spread is not to be undone because of its storage's type.
        let crowded: BTreeSet<UnitIndex> =
            spare.iter().filter(|(_, node)| shares_rack(node)).map(|(p, _)| p.unit).collect();
        spare
            .retain(|(place, node)| domains || shares_rack(node) || !crowded.contains(&place.unit));
        if striped && spare.iter().any(|(_, node)| has_others(node)) {
            spare.retain(|(_, node)| has_others(node));
        }
        if spare.iter().any(|(place, _)| excess_types.contains(&kind(place))) {
            spare.retain(|(place, _)| excess_types.contains(&kind(place)));
        }
        let shares_domain = |node: &DataNode| {
            let own = node.upgrade_domain();
            live.iter().filter(|(_, other)| other.upgrade_domain() == own).count() > 1
        };
        // Where upgrade domains count, one that shares its domain goes first, best one that shares its
        // rack as well. Source: Hadoop 3.5.0 `BlockPlacementPolicyWithUpgradeDomain#pickupReplicaSet`.
        let sharing = |node: &DataNode| match domains && shares_domain(node) {
            true => 1 + u8::from(shares_rack(node)),
            false => 0,
        };
        let least = if domains { spare.iter().map(|(_, n)| sharing(n)).max() } else { None };
        let hinted = spare.iter().find(|(place, node)| {
            let named = hint.is_some_and(|(unit, uuid)| place.unit == *unit && node.uuid == *uuid);
            named && least.is_none_or(|least| sharing(node) >= least.min(1))
        });
        let fullest = || {
            spare.iter().max_by_key(|(place, node)| {
                let room = self.storage(place.storage).usage.remaining;
                (sharing(node), per_rack[node.rack.as_str()], std::cmp::Reverse(room))
            })
        };
        hinted.or_else(fullest).map(|(place, _)| (place.storage, place.unit))
    }

    /// Who was not heard of since then may be dead: that many heartbeats before the latest of some nodes, in milliseconds
    /// of the clock that goes on.
    fn tolerated_since<'a>(&self, nodes: impl Iterator<Item = &'a DataNode>) -> u64 {
        let newest = nodes.map(|node| node.last_update_mono_ms).max().unwrap_or(0);
        let tolerated = self.config.tolerated_heartbeats * self.config.heartbeat_interval;
        newest.saturating_sub(millis(tolerated))
    }
}

/// Whether a bad replica has a stamp that the namespace has not given out.
fn is_future(lookup: &dyn BlockLookup, bad: &Bad) -> bool {
    bad.stale && lookup.is_future(bad.block.gs)
}

#[cfg(test)]
mod tests;
