//! Units of groups that only leaving nodes have: copied from there or decoded from the others.
//!
//! Which of the two is decided for each unit before targets are chosen, and targets are chosen for
//! exactly those units. A leaving node copies as much as its streams allow; the rest is decoded, so that
//! it is not the only source for all it holds. One that is stale serves as no source at all.
//!
//! Source: Hadoop 3.5.0 `ErasureCodingWork`, which has only the leaving node copy.

use super::schedule::{Job, Obstacle, Scheduled, Targets, copy_of_unit};
use crate::block::Layout;
use crate::clock::{Dice, Now};
use crate::cluster::Cluster;
use crate::handle::{NodeHandle, StorageHandle};
use crate::node::{AdminState, DataNode};
use crate::placement::PlacementRequest;
use crate::places::map::Place;
use crate::queue::Priority;
use crate::slots::Slots;
use crate::work::outbox::Outbox;
use cairn_stripe::{BlockId, StoragePolicy, UnitIndex};
use std::collections::{BTreeMap, BTreeSet};

impl Cluster {
    /// Streams that a node has free for mending. One that leaves may use as many as there are for the
    /// highest priority: no client writes to it.
    ///
    /// Source: Hadoop 3.5.0 `BlockManager#chooseSourceDatanodes`.
    pub(super) fn free_streams(&self, node: NodeHandle) -> usize {
        let node = self.node(node);
        let limit = match node.is_leaving() {
            true => self.config.max_streams_hard,
            false => self.config.max_streams,
        };
        let outbox = self.work.waiting_for(node.handle);
        let queued = outbox.map_or(0, Outbox::work_len);
        limit.saturating_sub(queued + usize::try_from(node.xmits).unwrap_or(usize::MAX))
    }

    /// Takes back copies and reconstructions that wait for nodes which are silent by now, so that others
    /// do them before they count as failed. Returns the blocks.
    pub(super) fn take_back_from_stale(&mut self, now: Now) -> BTreeSet<BlockId> {
        let waits = |outbox: &Outbox| outbox.work_len() > 0;
        let nodes = self.work.outboxes().filter(|(_, outbox)| waits(outbox)).map(|(node, _)| node);
        let stale: Vec<NodeHandle> =
            nodes.filter(|node| self.is_stale(self.node(*node), now)).collect();
        stale.into_iter().flat_map(|node| self.work.take_back(node)).collect()
    }

    /// Schedules units that no node in service has; nothing if there is none.
    pub(super) fn evacuate(&mut self, job: Job<'_>, dice: Dice<'_>) -> Option<Scheduled> {
        let units = self.units_to_evacuate(job.slots);
        (!units.is_empty()).then(|| self.evacuate_units(job, units, dice))
    }

    fn evacuate_units(&mut self, job: Job<'_>, units: Vec<UnitIndex>, dice: Dice<'_>) -> Scheduled {
        let Job { slots, level, now, .. } = job;
        let mut streams: BTreeMap<NodeHandle, usize> = BTreeMap::new();
        let (mut copied, mut decoded) = (Vec::new(), Vec::new());
        for unit in units {
            match self.copy_source(slots, unit, &streams, now) {
                Some(source) => {
                    *streams.entry(self.storage(source).node).or_default() += 1;
                    copied.push((unit, source));
                }
                None => decoded.push(unit),
            }
        }
        let sources = self.decode_sources(slots, &decoded, now);
        if sources.len() < slots.facts.data_units() {
            decoded.clear();
        }
        if copied.is_empty() && decoded.is_empty() {
            return Err(Obstacle::Busy);
        }
        let chosen = self.evacuation_targets(job, copied.len() + decoded.len(), dice);
        if chosen.is_empty() {
            return Err(Obstacle::NoRoom);
        }
        let mut chosen = chosen.into_iter();
        let mut work = Vec::new();
        for ((unit, source), target) in copied.into_iter().zip(chosen.by_ref()) {
            let worker = self.storage(source).node;
            self.queue_transfer(worker, level, copy_of_unit(slots, unit, vec![target]));
            work.push((worker, vec![(target, unit)]));
        }
        let to_decode: Targets = chosen.zip(decoded).collect();
        work.extend(self.decode_away(job, sources, to_decode));
        if work.is_empty() { Err(Obstacle::Busy) } else { Ok(work) }
    }

    /// Has the node of the first target that is free decode those units.
    fn decode_away(
        &mut self,
        job: Job<'_>,
        sources: Targets,
        mut targets: Targets,
    ) -> Option<(NodeHandle, Targets)> {
        let is_able = |node: NodeHandle| !job.slots.is_contiguous() || self.node(node).takes_groups;
        let is_free = |s: &StorageHandle| {
            let node = self.storage(*s).node;
            is_able(node) && self.free_streams(node) > 0
        };
        let at = targets.iter().position(|(storage, _)| is_free(storage))?;
        // The first one does the work.
        targets.swap(0, at);
        let worker = self.storage(targets[0].0).node;
        self.queue_decode(worker, job, sources, targets.clone());
        Some((worker, targets))
    }

    /// Units with a good place, none of it on a node in service and none on its way: those on nodes that
    /// go for good first, those in maintenance only as far as the group needs them.
    fn units_to_evacuate(&self, slots: &Slots) -> Vec<UnitIndex> {
        let Slots { id, facts, .. } = slots;
        let tally = self.tally_of(slots);
        let coming: BTreeSet<UnitIndex> =
            self.work.coming(*id).iter().map(|task| task.unit).collect();
        let needed = self.need_of(*id, facts, &tally).lacking();
        let mut settled = coming;
        let (mut leaving, mut back_soon) = (BTreeSet::new(), BTreeSet::new());
        for place in self.places_of(slots).filter(|p| !p.corrupt && !p.excess) {
            let node = self.node(self.storage(place.storage).node);
            if !node.is_leaving() {
                settled.insert(place.unit);
            } else if node.is_maintenance() {
                back_soon.insert(place.unit);
            } else {
                leaving.insert(place.unit);
            }
        }
        let later = back_soon.difference(&leaving);
        let units = leaving.iter().chain(later).filter(|unit| facts.has_bytes(**unit));
        units.filter(|unit| !settled.contains(unit)).take(needed).copied().collect()
    }

    /// A place of a unit that can be copied from now, given the streams that `taken` are about to use.
    fn copy_source(
        &self,
        slots: &Slots,
        unit: UnitIndex,
        taken: &BTreeMap<NodeHandle, usize>,
        now: Now,
    ) -> Option<StorageHandle> {
        let places = self.places_of(slots);
        let good = places.filter(|place| place.unit == unit && !place.corrupt && !place.excess);
        let mut free = good.map(|place| place.storage).filter(|storage| {
            let node = self.node(self.storage(*storage).node);
            let used = taken.get(&node.handle).copied().unwrap_or(0);
            let serves = node.is_readable() && !self.is_stale(node, now);
            serves && self.free_streams(node.handle) > used
        });
        free.next()
    }

    /// One place of each unit that can be read, without those to decode; units on nodes that leave only
    /// as far as those have streams free.
    fn decode_sources(
        &self,
        slots: &Slots,
        decoded: &[UnitIndex],
        now: Now,
    ) -> Vec<(StorageHandle, UnitIndex)> {
        let mut sources: BTreeMap<UnitIndex, StorageHandle> = BTreeMap::new();
        let places = self.places_of(slots).filter(|place| slots.facts.has_bytes(place.unit));
        for place in places.filter(|place| !place.corrupt && !place.excess) {
            let node = self.node(self.storage(place.storage).node);
            let busy = node.is_leaving()
                && (self.free_streams(node.handle) == 0 || self.is_stale(node, now));
            if node.is_readable() && !busy && !decoded.contains(&place.unit) {
                sources.entry(place.unit).or_insert(place.storage);
            }
        }
        sources.into_iter().map(|(unit, storage)| (storage, unit)).collect()
    }

    /// Distinct good units, or replicas, that can be read now.
    pub(crate) fn readable_units(&self, slots: &Slots) -> usize {
        let facts = &slots.facts;
        let places = self.places_of(slots).filter(|place| !place.corrupt);
        let with_bytes = places.filter(|place| facts.has_bytes(place.unit));
        let readable =
            with_bytes.filter(|place| self.node(self.storage(place.storage).node).is_readable());
        if facts.layout.has_units() {
            readable.map(|place| place.unit).collect::<BTreeSet<_>>().len()
        } else {
            readable.count()
        }
    }

    /// Whether a unit that nodes in service lack can be read where it is.
    pub(crate) fn can_copy_some(&self, slots: &Slots) -> bool {
        self.places_of(slots).any(|place| {
            let node = self.node(self.storage(place.storage).node);
            !place.corrupt && node.is_readable() && node.is_leaving()
        })
    }

    /// Storages for more units. Nodes that have no more of a contiguous group than surplus may get one: that goes when every
    /// unit is there. Where a group has more units than there are nodes to serve, nodes that have one get another, up to as
    /// many as the group can lose. For a striped group dead ones count, as they may come back; what a contiguous group has
    /// lost is brought back at once.
    pub(super) fn evacuation_targets(
        &self,
        job: Job<'_>,
        count: usize,
        dice: Dice<'_>,
    ) -> Vec<StorageHandle> {
        let Job { slots, policy, now, .. } = job;
        let facts = &slots.facts;
        let mut chosen = self.targets(job, count, false, &mut *dice);
        let (Layout::Striped { m, .. } | Layout::Parity { m, .. }) = facts.layout else {
            return chosen;
        };
        if slots.is_contiguous() {
            self.beside_surplus(job, count, &mut chosen, &mut *dice);
        }
        let is_able = |node: &DataNode| !slots.is_contiguous() || node.alive && node.takes_groups;
        let meant_to_serve =
            self.nodes().filter(|node| !node.disallowed && !node.is_leaving() && is_able(node));
        if chosen.len() == count || meant_to_serve.count() >= facts.expected_units() {
            return chosen;
        }
        let mut units: BTreeMap<NodeHandle, usize> = BTreeMap::new();
        let held = self.places_of(slots).map(|place| place.storage);
        let coming = self.work.coming(slots.id).iter().map(|task| task.storage);
        for storage in held.chain(coming).chain(chosen.iter().copied()) {
            *units.entry(self.storage(storage).node).or_default() += 1;
        }
        while chosen.len() < count {
            let open = self.nodes().filter(|node| node.admin == AdminState::InService);
            let of = |node: NodeHandle| units.get(&node).copied().unwrap_or(0);
            let all: Vec<NodeHandle> = open.map(|node| node.handle).collect();
            // The one with fewest that has room: a request for one level of fullness after the other.
            let found = (0..usize::from(m)).find_map(|level| {
                let is_out = |node: &NodeHandle| of(*node) != level || !is_able(self.node(*node));
                let excluded: Vec<NodeHandle> = all.iter().copied().filter(is_out).collect();
                let request = PlacementRequest {
                    count: 1,
                    block_len: slots.longest(),
                    excluded: &excluded,
                    storage_policy: policy,
                    ..PlacementRequest::default()
                };
                self.choose_striped(&request, now, &mut *dice).first().copied()
            });
            let Some(storage) = found else { break };
            *units.entry(self.storage(storage).node).or_default() += 1;
            chosen.push(storage);
        }
        chosen
    }

    /// Adds storages of nodes that have nothing of a group but what others have as well, up to `count` in all.
    fn beside_surplus(
        &self,
        job: Job<'_>,
        count: usize,
        chosen: &mut Vec<StorageHandle>,
        dice: Dice<'_>,
    ) {
        let Job { slots, policy, now, .. } = job;
        let node_of = |storage: StorageHandle| self.storage(storage).node;
        let all: Vec<Place> = self.all_places_of(slots).collect();
        while chosen.len() < count {
            let coming = self.work.coming(slots.id).iter().map(|task| task.storage);
            let taken: Vec<NodeHandle> =
                chosen.iter().copied().chain(coming).map(node_of).collect();
            let counts =
                |other: &Place| self.is_live(other) && !taken.contains(&node_of(other.storage));
            let is_elsewhere = |place: &Place| {
                let mut others = all.iter().filter(|other| other.unit == place.unit);
                let is_other = |other: &Place| node_of(other.storage) != node_of(place.storage);
                others.any(|other| is_other(other) && counts(other))
            };
            let is_out = |node: &DataNode| {
                let mut held = all.iter().filter(|place| node_of(place.storage) == node.handle);
                !node.takes_groups
                    || taken.contains(&node.handle)
                    || held.any(|place| place.corrupt || !is_elsewhere(place))
            };
            let excluded: Vec<NodeHandle> =
                self.nodes().filter(|node| is_out(node)).map(|node| node.handle).collect();
            // Those whose surplus goes are free; of the others each takes its share of a rack.
            let live = all.iter().filter(|place| self.is_live(place)).map(|place| place.storage);
            let stay = |storage: &StorageHandle| excluded.contains(&node_of(*storage));
            let existing: Vec<StorageHandle> =
                live.chain(chosen.iter().copied()).filter(stay).collect();
            let request = PlacementRequest {
                count: 1,
                block_len: slots.longest(),
                excluded: &excluded,
                existing: &existing,
                storage_policy: policy,
                ..PlacementRequest::default()
            };
            match self.choose_striped(&request, now, &mut *dice).first() {
                Some(storage) => chosen.push(*storage),
                None => break,
            }
        }
    }

    /// Whether some node could take another replica or unit of a block.
    pub(crate) fn has_target(&self, slots: &Slots, policy: StoragePolicy, now: Now) -> bool {
        let mut dice = || 0;
        let job = Job { slots, policy, level: Priority::Low, now };
        let targets = if slots.facts.layout.has_units() {
            self.evacuation_targets(job, 1, &mut dice)
        } else {
            self.targets(job, 1, false, &mut dice)
        };
        !targets.is_empty()
    }
}
