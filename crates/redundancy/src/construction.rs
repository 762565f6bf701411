//! Blocks that are being written, committed, or recovered: where they should be and what DataNodes
//! have said of them.
//!
//! Source: Hadoop 3.5.0 `BlockUnderConstructionFeature`, `ReplicaUnderConstruction`.

use crate::block::{BlockFacts, BlockRef, BlockState};
use crate::clock::{Now, millis};
use crate::cluster::Cluster;
use crate::command::{BlockRecovery, EarlierPlaces};
use crate::handle::StorageHandle;
use crate::node::{AdminState, DataNode};
use crate::places::construction::{
    Attempt, Construction, Expected, REPLICAS_MAX, Synchronized, unit_at,
};
use crate::places::map::Place;
use crate::places::own_id;
use crate::replica::{LateCrc, ReplicaState, ReportedReplica};
use cairn_stripe::{BlockId, GenerationStamp, UnitIndex};
use std::collections::{BTreeMap, BTreeSet};

/// Times that a silent node takes to be dead, for which a NameNode that has started waits for nodes that it has not
/// heard of, as they may have what open blocks were given before, and any NameNode for one that is decommissioned or at
/// whose address another is.
const PATIENCE: u32 = 10;

impl Cluster {
    /// Where a block that is not complete should be, with what is known of each place. Empty when
    /// nothing was told since a restart.
    pub fn expected(&self, id: BlockId) -> &[Expected] {
        self.blocks.construction(id.group()).map_or(&[], |c| c.expected.as_slice())
    }

    /// Whether a block was given places before this NameNode has started, and a node may have it that has not come yet.
    fn may_be_unheard_of(&self, id: BlockId, now: Now) -> bool {
        let is_given = self.expected(id).iter().any(|e| e.in_pipeline);
        let patience = millis(PATIENCE * self.config.dead_interval());
        !is_given && now.mono_ms < self.started_ms.saturating_add(patience)
    }

    /// Whether enough places are known or expected for a recovery of a block that no writer has told a
    /// length of to find something: one replica, or as many units as decoding needs.
    ///
    /// Source: Hadoop 3.5.0 `FSNamesystem#internalReleaseLease` (`minLocationsNum`). Deviations: Hadoop takes a block
    /// for lost that no DataNode has told of yet since a start, and waits for ever for dead ones that are given up.
    pub fn has_recoverable_places(&self, id: BlockId, facts: &BlockFacts, now: Now) -> bool {
        if self.may_be_unheard_of(id, now) {
            return true;
        }
        let is_there = |e: &&Expected| {
            let node = self.node(self.storage(e.storage).node);
            self.may_return(node, now)
        };
        let expected = self.expected(id).iter().filter(is_there).map(|e| e.unit.0);
        let known = self.places(id.group()).map(|place| place.unit.0);
        let units: BTreeSet<u8> = expected.chain(known).collect();
        units.len() >= facts.data_units()
    }

    /// The storages of the writer's present pipeline; unit `i` of a group with its index. These are
    /// the locations that readers and writers of an incomplete block get.
    pub fn pipeline(&self, id: BlockId) -> Vec<(StorageHandle, UnitIndex)> {
        let usable = |e: &&Expected| {
            let storage = self.storage(e.storage);
            let finalized = matches!(e.reported, Some(r) if r.block.gs >= self.pipeline_gs(id));
            (e.in_pipeline || finalized) && self.node(storage.node).alive
        };
        self.expected(id).iter().filter(usable).map(|e| (e.storage, e.unit)).collect()
    }

    fn pipeline_gs(&self, id: BlockId) -> GenerationStamp {
        self.blocks.construction(id.group()).map_or(GenerationStamp(0), |c| c.gs)
    }

    /// Tells that a complete block is written to again (`append`, or a truncated block that is
    /// recovered), before its stamp changes. What DataNodes hold of it counts as reported. Of that nothing is surplus any
    /// more: a replica that its node was told to delete, and that a writer opens first, is another one.
    ///
    /// Source: Hadoop 3.5.0 `BlockManager#convertLastBlockToUnderConstruction`. Deviation: Hadoop leaves it in
    /// `excessRedundancyMap`.
    pub fn block_reopened(&mut self, id: BlockId, before: &BlockFacts) {
        let chosen: Vec<Place> =
            self.blocks.of(id).filter(|place| place.excess && !place.corrupt).collect();
        for place in chosen {
            self.blocks.take_back(place.storage, own_id(id, place.unit));
        }
        let mut construction = Construction::new(id, before.gs, &[]);
        for place in self.places(id).filter(|place| !place.corrupt) {
            let len = before.unit_len(place.unit);
            let block = BlockRef { id: own_id(id, place.unit), gs: before.gs, len };
            let state = ReplicaState::Finalized;
            construction.record(place.storage, ReportedReplica { block, state, crc32c: None });
            construction.entry(place.storage, place.unit).in_pipeline = true;
        }
        self.blocks.begin_construction(id, construction);
        self.safe_mode.count_served(false);
    }

    /// Tells that a block is to become a copy of the first bytes of another one, made by the DataNodes that have that
    /// one now; its stamp is `gs`. Told again for each attempt.
    ///
    /// Source: Hadoop 3.5.0 `FSDirTruncateOp#prepareFileForTruncate`.
    pub fn block_copied(&mut self, id: BlockId, gs: GenerationStamp, source: BlockId) {
        let places = self.places(source).filter(|place| !place.corrupt);
        let targets: Vec<_> = places.map(|place| Some(place.storage)).collect();
        let update = |c: &mut Construction| c.update_pipeline(id, gs, &targets);
        self.blocks.change_construction(id, gs, update);
    }

    /// Starts the recovery of a block whose writer is gone: queues a command for the DataNode that
    /// will lead it. Returns whether there is one; with none, ask again when nodes have reported.
    ///
    /// `facts` are those before the recovery, `new_gs` the stamp that the namespace gave the attempt.
    /// An attempt with the same stamp that is younger than the pending timeout is not repeated.
    ///
    /// Source: Hadoop 3.5.0 `BlockUnderConstructionFeature#initializeBlockRecovery`.
    pub fn start_block_recovery(
        &mut self,
        id: BlockId,
        facts: &BlockFacts,
        new_gs: GenerationStamp,
        now: Now,
    ) -> bool {
        if let Some(running) = self.blocks.construction(id).and_then(|c| c.recovery) {
            let timeout = millis(self.config.pending_timeout);
            let young = now.mono_ms.saturating_sub(running.since_ms) < timeout;
            if running.new_gs == new_gs && young {
                return true;
            }
        }
        let (places, away) = self.recovery_places(id, facts, now);
        let earlier = self.earlier_places(id, facts, &places, now);
        let last = self.blocks.construction(id).and_then(|c| c.last_primary);
        let primary = match places.is_empty() && away.is_empty() {
            // Nobody has what the writer went on with, nor will.
            true => {
                let left = earlier.places.iter().map(|(storage, _)| (*storage, UnitIndex(0)));
                self.choose_primary(&left.collect::<Vec<_>>(), last)
            }
            false => self.choose_primary(&places, last),
        };
        let Some(primary) = primary else { return false };
        let node = self.storage(primary).node;
        let striped = facts.layout.is_striped();
        let recovery = BlockRecovery {
            block: BlockRef { id, gs: facts.gs, len: facts.len },
            new_gs,
            layout: facts.layout,
            locations: places.iter().map(|(storage, _)| *storage).collect(),
            units: if striped { places.iter().map(|(_, unit)| *unit).collect() } else { vec![] },
            away,
            earlier,
        };
        self.work.give_recovery(node, recovery);
        self.blocks.change_construction(id, facts.gs, |construction| {
            construction.recovery = Some(Attempt { new_gs, since_ms: now.mono_ms });
            construction.last_primary = Some(primary);
        });
        true
    }

    /// Gives orders to recover blocks to other DataNodes where those that have them did not come for two heartbeats:
    /// one that has just died was heard of as late as any, and Hadoop's clients wait for it.
    pub(crate) fn pass_recoveries_on(&mut self, lookup: &dyn crate::BlockLookup, now: Now) {
        let patience = 2 * self.config.heartbeat_interval;
        let patience = millis(patience);
        for (id, new_gs) in self.work.recoveries_not_told() {
            let Some(construction) = self.blocks.construction(id) else { continue };
            let last = construction.last_primary;
            let is_late =
                |attempt: Attempt| now.mono_ms.saturating_sub(attempt.since_ms) >= patience;
            if !construction.recovery.is_some_and(is_late) {
                continue;
            }
            let Some(facts) = lookup.block(id) else { continue };
            let (places, _) = self.recovery_places(id, &facts, now);
            let next = self.choose_primary(&places, last);
            if next.is_none() || next == last {
                continue;
            }
            self.work.take_recovery_back(id);
            if let Some(construction) = self.blocks.construction_mut(id) {
                construction.recovery = None;
            }
            self.start_block_recovery(id, &facts, new_gs, now);
        }
    }

    /// Live places that may hold something of the block: expected ones, then reported ones; and the units of the
    /// other places that may. Stale nodes are left out if enough others are there: one more than a replicated block
    /// needs, all that a group may need. Those that its writer went on without know nothing of what was acknowledged
    /// later: a recovery that finds no replica deletes the block, so of these none is asked; what units are there is
    /// asked of live nodes, and no dead one is waited for. Dead nodes that an administrator has taken out of service are
    /// waited for as long as those in whose place another one is; those that have come without what they had are asked,
    /// and not waited for. Where a writer was given places by a NameNode that has ended, for a while any unit
    /// may be somewhere, and as many replicas as there should be.
    ///
    /// Source: Hadoop 3.5.0 `DatanodeManager#getBlockRecoveryCommand`.
    fn recovery_places(
        &self,
        id: BlockId,
        facts: &BlockFacts,
        now: Now,
    ) -> (Vec<(StorageHandle, UnitIndex)>, Vec<UnitIndex>) {
        let striped = facts.layout.is_striped();
        let (mut places, mut left_out) = (Vec::new(), Vec::new());
        let mut missing = BTreeSet::new();
        if let Some(construction) = self.blocks.construction(id) {
            for e in &construction.expected {
                let at = (e.storage, e.unit);
                if e.is_missing {
                    missing.insert(at);
                }
                let is_asked = construction.may_have(e) || e.is_missing;
                let list = if is_asked { &mut places } else { &mut left_out };
                list.push(at);
            }
        }
        let mut away = Vec::new();
        for place in self.places(id) {
            let at = (place.storage, place.unit);
            let mark = self.blocks.mark(place.storage, own_id(id, place.unit));
            match places.contains(&at) || striped && left_out.contains(&at) {
                true => {}
                false if mark.is_some_and(|bad| bad.block.gs < facts.gs) => left_out.push(at),
                false if place.corrupt => away.push(place.unit),
                false => places.push(at),
            }
        }
        let node_of = |place: &(StorageHandle, UnitIndex)| self.node(self.storage(place.0).node);
        let is_fresh = |p: &&_| node_of(p).alive && !self.is_stale(node_of(p), now);
        let takes_stale = striped || places.iter().filter(is_fresh).count() < 2;
        let (mut asked, others): (Vec<_>, Vec<_>) = places
            .into_iter()
            .partition(|p| node_of(p).alive && (takes_stale || !self.is_stale(node_of(p), now)));
        let may_return = |p: &&_| !missing.contains(*p) && self.may_return(node_of(p), now);
        away.extend(others.iter().filter(may_return).map(|(_, unit)| *unit));
        if striped {
            asked.extend(left_out.into_iter().filter(|p| node_of(p).alive));
        }
        if self.may_be_unheard_of(id, now) {
            match striped {
                true => {
                    let is_known = |unit: &UnitIndex| {
                        away.contains(unit) || asked.iter().any(|(_, other)| other == unit)
                    };
                    let all = (0..facts.layout.width()).map(|unit| UnitIndex(unit as u8));
                    let unknown: Vec<_> = all.filter(|unit| !is_known(unit)).collect();
                    away.extend(unknown);
                }
                false => {
                    let known = asked.len() + away.len();
                    let unknown = facts.expected_units().saturating_sub(known);
                    away.extend(std::iter::repeat_n(UnitIndex(0), unknown));
                }
            }
        }
        (asked, away)
    }

    /// Who may have a replica of a block under a stamp that it had before: DataNodes that its writer went on without, and those
    /// that have told of such a one, but for those that are asked anyway (`asked`). What they have was acknowledged when the
    /// stamp changed. After a start others may have one of which nobody has told yet.
    fn earlier_places(
        &self,
        id: BlockId,
        facts: &BlockFacts,
        asked: &[(StorageHandle, UnitIndex)],
        now: Now,
    ) -> EarlierPlaces {
        if facts.layout.has_units() {
            return EarlierPlaces::default();
        }
        let mut left: BTreeMap<StorageHandle, Option<GenerationStamp>> = BTreeMap::new();
        if let Some(construction) = self.blocks.construction(id) {
            left.extend(construction.left_behind());
        }
        for place in self.places(id) {
            let mark = self.blocks.mark(place.storage, id);
            if let Some(bad) = mark.filter(|bad| bad.block.gs < facts.gs) {
                left.insert(place.storage, Some(bad.block.gs));
            }
        }
        let node_of = |storage: StorageHandle| self.storage(storage).node;
        // A DataNode has one replica of a block.
        let is_asked = |storage: StorageHandle| {
            asked.iter().any(|(other, _)| node_of(*other) == node_of(storage))
        };
        let mut earlier = EarlierPlaces::default();
        for (storage, gs) in left.into_iter().filter(|(storage, _)| !is_asked(*storage)) {
            let node = self.node(node_of(storage));
            if node.alive {
                earlier.places.push((storage, gs));
            } else if self.may_return(node, now) {
                earlier.away.push(gs);
            }
        }
        if self.may_be_unheard_of(id, now) {
            earlier.away.push(None);
        }
        earlier
    }

    /// Whether a node is there, or may come back with what it had. That it was let go, or was dead when it was told to
    /// leave, does not show that others have that: they may have lost it since.
    fn may_return(&self, node: &DataNode, now: Now) -> bool {
        let patience = millis(PATIENCE * self.config.dead_interval());
        let silent_ms = now.mono_ms.saturating_sub(node.last_update_mono_ms);
        let is_given_up = node.forgotten || node.admin == AdminState::Decommissioned;
        node.alive || !is_given_up || silent_ms < patience
    }

    /// The live place whose node was heard of last, but not the one that led the last attempt unless
    /// there is no other.
    fn choose_primary(
        &self,
        places: &[(StorageHandle, UnitIndex)],
        last: Option<StorageHandle>,
    ) -> Option<StorageHandle> {
        let heard =
            |storage: &StorageHandle| self.node(self.storage(*storage).node).last_update_mono_ms;
        let all = places.iter().map(|(storage, _)| *storage);
        all.clone()
            .filter(|storage| Some(*storage) != last)
            .max_by_key(heard)
            .or(all.max_by_key(heard))
    }

    /// Whether a report of a finished recovery belongs to the attempt that runs.
    pub fn is_current_recovery(&self, id: BlockId, new_gs: GenerationStamp) -> bool {
        let running = self.blocks.construction(id.group()).and_then(|c| c.recovery);
        running.is_none_or(|attempt| attempt.new_gs == new_gs)
    }

    /// Tells that a recovery is done and in the namespace: its targets hold the block with the new
    /// stamp and length, other replicas are stale. Returns CRCs as [`Cluster::block_completed`] does.
    pub fn block_synchronized(
        &mut self,
        lookup: &dyn crate::BlockLookup,
        id: BlockId,
        outcome: &Synchronized,
    ) -> Vec<LateCrc> {
        self.pipeline_updated(id, outcome.new_gs, &outcome.targets);
        let Some(facts) = lookup.block(id) else { return Vec::new() };
        let most = if id.is_striped() { facts.layout.width() } else { REPLICAS_MAX };
        for (index, storage) in outcome.targets.iter().enumerate().take(most) {
            let (Some(storage), unit) = (*storage, unit_at(id, index)) else { continue };
            if self.is_lost(storage) {
                // Its node tells of it when it is back.
                continue;
            }
            let block_id = own_id(id, unit);
            let len = if facts.is_final() { facts.unit_len(unit) } else { outcome.new_len };
            let block = BlockRef { id: block_id, gs: outcome.new_gs, len };
            let replica = ReportedReplica { block, state: ReplicaState::Finalized, crc32c: None };
            self.note_newer(storage, block_id);
            self.accept_finalized(lookup, id, &facts, storage, replica);
        }
        match facts.state {
            BlockState::Complete => self.block_completed(lookup, id),
            _ => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests;
