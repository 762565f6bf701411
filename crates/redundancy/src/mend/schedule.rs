//! Rounds of mending: which blocks next, from where, to where.
//!
//! Each round goes through the levels of risk, the highest first, and looks at a bounded number of
//! blocks in each: a level full of blocks that nothing can be done for does not keep the round from the
//! next one. Such blocks are put aside (`queue.rs`).
//!
//! Source: Hadoop 3.5.0 `BlockManager#computeBlockReconstructionWork`, `ReplicationWork`,
//! `ErasureCodingWork`.

use crate::block::{BlockFacts, BlockLookup, BlockRef, BlockState, Layout};
use crate::clock::{Dice, Now, millis};
use crate::cluster::Cluster;
use crate::command::{GroupRebuild, Reconstruction, Transfer};
use crate::handle::{NodeHandle, StorageHandle};
use crate::node::DataNode;
use crate::placement::PlacementRequest;
use crate::places::map::Place;
use crate::queue::Priority;
use crate::slots::Slots;
use crate::work::outbox::Waiting;
use cairn_stripe::{BlockId, StoragePolicy, UnitIndex};
use std::collections::BTreeMap;

/// Blocks that a round looks at in each level, for each one that it may schedule.
const LOOKS: usize = 8;
/// Reconstructions that may wait for one node, for each stream that it may have.
const BACKLOG: usize = 8;
/// Rounds for which a block that nothing can be done for is put aside the first time; twice as many
/// each further time.
const ROUNDS_ASIDE: u64 = 4;
/// Doublings of that, at most.
const MOST_DOUBLINGS: u32 = 4;

/// Why nothing was scheduled for a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Obstacle {
    /// Those who could do it have enough to do: another time.
    Busy,
    /// Nobody can do it.
    Stuck,
    /// No node could take what is lost.
    NoRoom,
}

/// Units (or replicas) that one node brings, and where.
pub type Targets = Vec<(StorageHandle, UnitIndex)>;
pub(super) type Scheduled = Result<Vec<(NodeHandle, Targets)>, Obstacle>;

/// What is to be scheduled.
#[derive(Clone, Copy)]
pub(super) struct Job<'a> {
    pub slots: &'a Slots,
    /// Of the file.
    pub policy: StoragePolicy,
    pub level: Priority,
    pub now: Now,
}

impl Cluster {
    /// One tick of mending.
    pub(crate) fn mend(&mut self, lookup: &dyn BlockLookup, now: Now, dice: Dice<'_>) {
        if self.safe_mode.holds_work() {
            return;
        }
        for id in self.expired_work(now) {
            self.check_redundancy(lookup, id);
        }
        for id in self.take_back_from_stale(now) {
            self.check_redundancy(lookup, id);
        }
        self.follow_deletions(lookup, now);
        let interval = millis(self.config.redundancy_interval);
        let is_due = self.rounds.begin_if_due(interval, self.round_size(), now);
        if is_due {
            self.work.forget_old_failures(now);
            self.low.queues_mut().wake(now.mono_ms);
        }
        if self.rounds.take_hurry() || is_due {
            self.round(lookup, now, dice);
        }
    }

    /// Blocks that may be scheduled from one round to the next.
    fn round_size(&self) -> usize {
        self.live_count() * self.config.work_multiplier
    }

    /// Schedules what there is room for until the next round is due.
    fn round(&mut self, lookup: &dyn BlockLookup, now: Now, dice: Dice<'_>) {
        const LEVELS: [Priority; 4] =
            [Priority::Highest, Priority::VeryLow, Priority::Low, Priority::BadlyDistributed];
        let size = self.round_size();
        self.rounds.limit(size);
        for level in LEVELS {
            for id in self.next_of(level, size * LOOKS) {
                if self.rounds.is_full() {
                    return;
                }
                self.rounds.went_to(level, id);
                match self.schedule(lookup, id, level, now, dice) {
                    Ok(()) => self.rounds.note_scheduled(),
                    Err(Obstacle::Busy) => {}
                    Err(Obstacle::Stuck | Obstacle::NoRoom) => self.put_aside(id, now),
                }
            }
        }
    }

    /// The blocks of a level to look at, from where the last round stopped.
    fn next_of(&self, level: Priority, limit: usize) -> Vec<BlockId> {
        let cursor = self.rounds.cursor(level);
        let mut ids = self.low.queues().after(level, cursor, limit);
        if ids.len() < limit && cursor.is_some() {
            let wrapped = self.low.queues().after(level, None, limit - ids.len());
            ids.extend(wrapped.into_iter().filter(|id| Some(*id) <= cursor));
        }
        ids
    }

    /// Nothing can be done for a block now.
    fn put_aside(&mut self, id: BlockId, now: Now) {
        let round = millis(self.config.redundancy_interval);
        let factor = ROUNDS_ASIDE << self.low.queues().naps(id).min(MOST_DOUBLINGS);
        self.low
            .queues_mut()
            .put_aside(id, now.mono_ms.saturating_add(round.saturating_mul(factor)));
    }

    fn schedule(
        &mut self,
        lookup: &dyn BlockLookup,
        id: BlockId,
        level: Priority,
        now: Now,
        dice: Dice<'_>,
    ) -> Result<(), Obstacle> {
        let facts = lookup.block(id).filter(|facts| facts.state == BlockState::Complete);
        let Some(facts) = facts else {
            self.low.queues_mut().remove(id);
            return Err(Obstacle::Busy);
        };
        // What it needs may have changed without a word on this block: racks that are left, say.
        self.check_against(lookup, id, Some(facts));
        if self.low.queues().priority(id).is_none() {
            return Err(Obstacle::Busy);
        }
        if let Some(until) = self.work.wait_of(id, now) {
            self.low.queues_mut().put_aside(id, until);
            return Err(Obstacle::Busy);
        }
        let slots = Slots::of_need(lookup, id, &facts);
        let policy = lookup.storage_policy(id);
        let job = Job { slots: &slots, policy, level, now };
        let scheduled = match facts.layout {
            Layout::Replicated { .. } => self.copy_replica(job, dice),
            Layout::Striped { .. } | Layout::Parity { .. } => self.mend_group(job, dice),
        };
        if scheduled == Err(Obstacle::NoRoom) {
            self.make_room(lookup, &slots, now);
        }
        let scheduled = scheduled.inspect_err(|_| self.leaving.note_unplaced(id))?;
        self.leaving.note_placed(id);
        for (worker, targets) in scheduled {
            for (storage, _) in &targets {
                self.nodes.storage_mut(*storage).promised.add();
            }
            self.work.expect(id, targets, Some(worker), now);
        }
        self.low.queues_mut().note_room(id);
        self.check_redundancy(lookup, id);
        Ok(())
    }

    /// Whether a node has streams left for copies that it was not told of yet.
    fn is_free(&self, node: NodeHandle, level: Priority) -> bool {
        let queued = self.work.waiting_for(node).map_or(0, |o| o.transfers.len());
        let is_leaving = self.node(node).is_leaving();
        queued < if is_leaving { self.config.max_streams_hard } else { self.streams(level) }
    }

    fn streams(&self, level: Priority) -> usize {
        match level {
            Priority::Highest => self.config.max_streams_hard,
            _ => self.config.max_streams,
        }
    }

    pub(super) fn queue_transfer(&mut self, worker: NodeHandle, level: Priority, work: Transfer) {
        let waiting = Waiting { is_urgent: level == Priority::Highest, work };
        self.work.give(worker).transfers.push(waiting);
    }

    fn copy_replica(&mut self, job: Job<'_>, dice: Dice<'_>) -> Scheduled {
        let Job { slots, level, .. } = job;
        let tally = self.tally_of(slots);
        let lacking = self.need_of(slots.id, &slots.facts, &tally).lacking();
        let (moving, count) = (lacking == 0, lacking.max(1));
        let source = self.source(job, None, dice)?;
        let targets = self.targets(job, count, moving, dice);
        if targets.is_empty() {
            return Err(Obstacle::NoRoom);
        }
        let worker = self.storage(source).node;
        let copy = copy_of_unit(slots, UnitIndex(0), targets.clone());
        self.queue_transfer(worker, level, copy);
        Ok(vec![(worker, targets.into_iter().map(|storage| (storage, UnitIndex(0))).collect())])
    }

    /// A good replica (or the good `unit`) on a node that has room for one more copy; on a leaving
    /// node if there is one, since nothing is written there; on one through which it failed of late
    /// only if there is no other; else where fewest copies wait.
    ///
    /// Source: Hadoop 3.5.0 `BlockManager#chooseSourceDatanodes`.
    pub(super) fn source(
        &self,
        job: Job<'_>,
        unit: Option<UnitIndex>,
        dice: Dice<'_>,
    ) -> Result<StorageHandle, Obstacle> {
        let suspects = self.work.suspects(job.slots.id, job.now);
        let mut obstacle = Obstacle::Stuck;
        let mut ranked = Vec::new();
        for place in self.places_of(job.slots) {
            let node = self.node(self.storage(place.storage).node);
            let wanted = unit.is_none_or(|unit| place.unit == unit);
            // A surplus replica may be gone before the copy starts.
            if !wanted || place.corrupt || place.excess || !node.is_readable() {
                continue;
            }
            if !self.is_free(node.handle, job.level) {
                obstacle = Obstacle::Busy;
                continue;
            }
            let suspected = suspects.contains(&node.handle);
            let stale = self.is_stale(node, job.now);
            let queued = self.work.waiting_for(node.handle).map_or(0, |o| o.transfers.len());
            ranked.push((suspected, stale, !node.is_leaving(), queued, dice(), place.storage));
        }
        ranked.into_iter().min().map(|(.., storage)| storage).ok_or(obstacle)
    }

    /// Storages for `count` more replicas or units beside those that stay, of the types that the file's
    /// storage policy has or falls back to; on other racks only, if the block is `moving` to be better
    /// spread. Nodes through which it failed of late are taken only if there are no others, and those
    /// that get more than others already only if others would not do as well.
    pub(super) fn targets(
        &self,
        job: Job<'_>,
        count: usize,
        moving: bool,
        dice: Dice<'_>,
    ) -> Vec<StorageHandle> {
        let suspects = self.work.suspects(job.slots.id, job.now);
        let chosen = self.targets_without(job, count, moving, &suspects, dice);
        if chosen.len() >= count || suspects.is_empty() {
            return chosen;
        }
        self.targets_without(job, count, moving, &[], dice)
    }

    fn targets_without(
        &self,
        job: Job<'_>,
        count: usize,
        moving: bool,
        suspects: &[NodeHandle],
        dice: Dice<'_>,
    ) -> Vec<StorageHandle> {
        let Job { slots, policy, now, .. } = job;
        let facts = &slots.facts;
        let places = self.all_places_of(slots);
        let coming = self.work.coming(slots.id);
        let node_of = |storage: &StorageHandle| self.storage(*storage).node;
        // Bad and surplus ones and those that leave take no share of a rack, but their nodes cannot get
        // another one.
        let counted = |place: &Place| self.is_live(place);
        let existing: Vec<StorageHandle> = places
            .clone()
            .filter(counted)
            .map(|place| place.storage)
            .chain(coming.iter().map(|task| task.storage))
            .collect();
        let mut excluded: Vec<NodeHandle> = places.map(|place| node_of(&place.storage)).collect();
        excluded.extend(suspects);
        if moving {
            excluded.extend(self.crowded_nodes(slots.id, facts, &existing));
        }
        if slots.is_contiguous() {
            // What is rebuilt there is proven by who knows how.
            let others = self.nodes().filter(|node| !node.takes_groups);
            excluded.extend(others.map(|node| node.handle));
        }
        let busy = self.crowded_targets();
        let request = PlacementRequest {
            count,
            busy: &busy,
            block_len: slots.longest(),
            excluded: &excluded,
            existing: &existing,
            storage_policy: policy,
            ..PlacementRequest::default()
        };
        if facts.layout.has_units() {
            self.choose_striped(&request, now, dice)
        } else {
            self.choose_replicated(&request, now, dice)
        }
    }

    /// Nodes to which more replicas and units are on their way than the average of the live ones has.
    fn crowded_targets(&self) -> Vec<NodeHandle> {
        let coming = |node: &DataNode| -> usize {
            node.storages.iter().map(|storage| self.work.coming_to(*storage)).sum()
        };
        let live = || self.nodes().filter(|node| node.alive);
        let all: usize = live().map(coming).sum();
        let mean = all / self.live_count().max(1);
        live().filter(|node| coming(node) > mean).map(|node| node.handle).collect()
    }

    /// Decodes what is lost; where nothing is, or it cannot be, sees to what is on leaving nodes only;
    /// with nothing of that either, moves units from crowded racks to racks that have none.
    fn mend_group(&mut self, job: Job<'_>, dice: Dice<'_>) -> Scheduled {
        let Job { slots, .. } = job;
        let coming = self.work.coming(slots.id).iter().map(|task| task.unit);
        let coming: Vec<UnitIndex> = coming.collect();
        let is_there = |unit: &UnitIndex| {
            let mut good = self.places_of(slots).filter(|p| !p.corrupt && !p.excess);
            good.any(|place| place.unit == *unit)
        };
        let mut lost = slots.facts.units();
        lost.retain(|unit| !coming.contains(unit) && !is_there(unit) && !slots.is_elsewhere(*unit));
        let mut obstacles = Vec::new();
        if !lost.is_empty() {
            let chosen = match slots.is_contiguous() {
                true => self.evacuation_targets(job, lost.len(), &mut *dice),
                false => self.targets(job, lost.len(), false, &mut *dice),
            };
            if chosen.is_empty() {
                obstacles.push(Obstacle::NoRoom);
            }
            match self.decode(job, &lost, chosen) {
                Err(obstacle) => obstacles.push(obstacle),
                scheduled => return scheduled,
            }
        }
        match self.evacuate(job, &mut *dice) {
            Some(Err(obstacle)) => obstacles.push(obstacle),
            Some(scheduled) => return scheduled,
            None if obstacles.is_empty() => {
                let parted = self.part(job, &mut *dice);
                return parted.unwrap_or_else(|| self.spread(job, dice));
            }
            None => {}
        }
        let first = [Obstacle::NoRoom, Obstacle::Busy].into_iter().find(|o| obstacles.contains(o));
        Err(first.unwrap_or(Obstacle::Stuck))
    }

    /// Copies units from the racks that have most to racks that have none. When a copy is there, the
    /// unit on the crowded rack is surplus: it is deleted then, not before.
    ///
    /// Source: Hadoop 3.5.0 `ErasureCodingWork#addTaskToDatanode` (`createReplicationWork`).
    fn spread(&mut self, job: Job<'_>, dice: Dice<'_>) -> Scheduled {
        let Job { slots, level, .. } = job;
        if slots.is_contiguous() {
            return self.even_out(job, dice);
        }
        let facts = &slots.facts;
        let rack_of = |storage: StorageHandle| self.node(self.storage(storage).node).rack.clone();
        let mut per_rack: BTreeMap<String, Vec<UnitIndex>> = BTreeMap::new();
        let units = self.places_of(slots).filter(|place| facts.has_bytes(place.unit));
        for place in units.filter(|place| self.is_live(place)) {
            per_rack.entry(rack_of(place.storage)).or_default().push(place.unit);
        }
        for task in self.work.coming(slots.id) {
            per_rack.entry(rack_of(task.storage)).or_default();
        }
        let count = self.limits().wanted_racks(facts).saturating_sub(per_rack.len());
        if count == 0 {
            return Err(Obstacle::Stuck);
        }
        let (mut moves, mut obstacle) = (Vec::new(), Obstacle::Stuck);
        for target in self.targets(job, count, true, dice) {
            if per_rack.contains_key(&rack_of(target)) {
                continue;
            }
            // The last unit of a rack stays.
            let crowded = per_rack.values_mut().filter(|units| units.len() > 1);
            let Some(units) = crowded.max_by_key(|units| units.len()) else { break };
            let free = units.iter().enumerate().find_map(|(at, unit)| {
                match self.source(job, Some(*unit), dice) {
                    Ok(source) => Some((at, source)),
                    Err(why) => {
                        obstacle = if why == Obstacle::Busy { why } else { obstacle };
                        None
                    }
                }
            });
            let Some((at, source)) = free else { break };
            moves.push((self.storage(source).node, target, units.remove(at)));
            per_rack.entry(rack_of(target)).or_default();
        }
        if moves.is_empty() {
            return Err(obstacle);
        }
        for (worker, target, unit) in &moves {
            self.queue_transfer(*worker, level, copy_of_unit(slots, *unit, vec![*target]));
        }
        Ok(moves.into_iter().map(|(worker, target, unit)| (worker, vec![(target, unit)])).collect())
    }

    /// Copies a unit of a contiguous group from the rack that has most, if these are more than it should have, to one that
    /// may take it. What is left over is deleted when the copy is proven.
    fn even_out(&mut self, job: Job<'_>, dice: Dice<'_>) -> Scheduled {
        let Job { slots, level, .. } = job;
        let most = self.limits().per_rack_max(&slots.facts);
        let mut per_rack: BTreeMap<&str, Vec<UnitIndex>> = BTreeMap::new();
        for place in self.places_of(slots).filter(|place| self.is_live(place)) {
            let rack = &self.node(self.storage(place.storage).node).rack;
            per_rack.entry(rack).or_default().push(place.unit);
        }
        let crowd = per_rack.into_values().max_by_key(Vec::len).unwrap_or_default();
        if crowd.len() <= most {
            return Err(Obstacle::Stuck);
        }
        let target = self.targets(job, 1, true, &mut *dice).first().copied();
        let target = target.ok_or(Obstacle::Stuck)?;
        let mut obstacle = Obstacle::Stuck;
        for unit in crowd {
            match self.source(job, Some(unit), &mut *dice) {
                Ok(source) => {
                    let worker = self.storage(source).node;
                    self.queue_transfer(worker, level, copy_of_unit(slots, unit, vec![target]));
                    return Ok(vec![(worker, vec![(target, unit)])]);
                }
                Err(why) => obstacle = why,
            }
        }
        Err(obstacle)
    }

    /// One node, that of the `chosen` storages for which least waits, reads enough units and decodes all
    /// lost ones in one pass.
    fn decode(
        &mut self,
        job: Job<'_>,
        lost: &[UnitIndex],
        mut chosen: Vec<StorageHandle>,
    ) -> Scheduled {
        let Job { slots, level, now, .. } = job;
        let waiting = |storage: &StorageHandle| {
            let outbox = self.work.waiting_for(self.storage(*storage).node);
            outbox.map_or(0, |outbox| outbox.reconstructions.len() + outbox.rebuilds.len())
        };
        let first = (0..chosen.len()).min_by_key(|at| waiting(&chosen[*at]));
        let first = first.ok_or(Obstacle::Stuck)?;
        if waiting(&chosen[first]) >= self.streams(level).saturating_mul(BACKLOG) {
            return Err(Obstacle::Busy);
        }
        chosen.swap(0, first);
        let worker = self.storage(chosen[0]).node;
        let targets: Targets = chosen.into_iter().zip(lost.iter().copied()).collect();
        let sources = self.sources_of(slots, worker, &targets, now);
        if sources.len() < slots.facts.data_units() {
            return Err(Obstacle::Stuck);
        }
        self.queue_decode(worker, job, sources, targets.clone());
        Ok(vec![(worker, targets)])
    }

    pub(super) fn queue_decode(
        &mut self,
        worker: NodeHandle,
        job: Job<'_>,
        sources: Targets,
        targets: Targets,
    ) {
        let Job { slots, level, .. } = job;
        let Slots { id, facts, .. } = slots;
        let is_urgent = level == Priority::Highest;
        let group = BlockRef { id: *id, gs: facts.gs, len: facts.len };
        if slots.is_contiguous() {
            let work = GroupRebuild { group, sources, targets, is_urgent };
            self.work.give(worker).rebuilds.push(Waiting { is_urgent, work });
            return;
        }
        let work = Reconstruction {
            group,
            layout: facts.layout,
            excluded_units: left_alone(facts, &sources, &targets),
            sources,
            targets,
            is_urgent,
        };
        self.work.give(worker).reconstructions.push(Waiting { is_urgent, work });
    }

    /// What a node is to read to decode a unit of a contiguous group for somebody: a place of each of the others, the best
    /// first; too few if it cannot be decoded now.
    pub fn sources_to_decode(
        &self,
        lookup: &dyn BlockLookup,
        (handle, unit): (BlockId, UnitIndex),
        reader: NodeHandle,
        now: Now,
    ) -> Targets {
        let Some(group) = lookup.group(handle).filter(|group| group.formed) else {
            return Targets::new();
        };
        let slots = Slots::of(lookup, handle, &group.facts());
        let mut sources = self.sources_of(&slots, reader, &[], now);
        sources.retain(|(_, other)| *other != unit);
        sources
    }

    /// A good place of each unit of a group but those to rebuild, the best to read from first: Hadoop's
    /// DataNodes read the first ones, ours begin with them. Nodes through which it failed of late, stale
    /// ones, and leaving ones without a stream come in only where they are needed; among the others, those
    /// with less to do come first, then those near to `worker`.
    pub(super) fn sources_of(
        &self,
        slots: &Slots,
        worker: NodeHandle,
        targets: &[(StorageHandle, UnitIndex)],
        now: Now,
    ) -> Targets {
        /// Transfers that make no difference yet.
        const FEW: u32 = 4;
        let facts = &slots.facts;
        let suspects = self.work.suspects(slots.id, now);
        let own_rack = self.node(worker).rack.as_str();
        let mut ranked = Vec::new();
        let units = self.places_of(slots).filter(|place| facts.has_bytes(place.unit));
        for place in units.filter(|place| !place.corrupt && !place.excess) {
            let node = self.node(self.storage(place.storage).node);
            if !node.is_readable() || targets.iter().any(|(_, unit)| *unit == place.unit) {
                continue;
            }
            let reads = self.work.reads_from(node.handle);
            let load = node.xceivers.saturating_add(node.xmits).saturating_add(reads);
            let distance = match node.handle == worker {
                true => 0,
                false if node.rack == own_rack => 1,
                false => 2,
            };
            let is_doubtful = suspects.contains(&node.handle)
                || self.is_stale(node, now)
                || node.is_leaving() && self.free_streams(node.handle) == 0;
            let rank = (is_doubtful, load / FEW, distance, load, place.unit, place.storage);
            ranked.push((rank, place));
        }
        ranked.sort_unstable_by_key(|(rank, _)| *rank);
        let mut sources: Targets = Vec::new();
        for ((is_doubtful, ..), place) in ranked {
            let enough = sources.len() >= facts.data_units();
            if !(is_doubtful && enough || sources.iter().any(|(_, unit)| *unit == place.unit)) {
                sources.push((place.storage, place.unit));
            }
        }
        sources
    }
}

/// Units that are neither read nor rebuilt: each must be named, as Hadoop's DataNode takes for lost what
/// is not.
pub(super) fn left_alone(
    facts: &BlockFacts,
    sources: &[(StorageHandle, UnitIndex)],
    targets: &[(StorageHandle, UnitIndex)],
) -> Vec<UnitIndex> {
    let mut units = facts.units();
    units.retain(|unit| !sources.iter().chain(targets).any(|(_, named)| named == unit));
    units
}

/// A copy of what is in a slot.
pub(super) fn copy_of_unit(
    slots: &Slots,
    unit: UnitIndex,
    targets: Vec<StorageHandle>,
) -> Transfer {
    Transfer { block: slots.block(unit), slot: (slots.id, unit), targets }
}
