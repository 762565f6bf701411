//! Rounds of mending: which blocks next, from where, to where.
//!
//! Source: Hadoop 3.5.0 `BlockManager#computeBlockReconstructionWork`, `ReplicationWork`,
//! `ErasureCodingWork`.

use crate::block::{BlockFacts, BlockLookup, BlockRef, BlockState, Layout};
use crate::cluster::Cluster;
use crate::command::{Reconstruction, Transfer};
use crate::node::NodeHandle;
use crate::placement::PlacementRequest;
use crate::queue::Priority;
use crate::storage::StorageHandle;
use crate::storage_policy::StoragePolicy;
use crate::{Dice, Now};
use cairn_stripe::{BlockId, UnitIndex};
use std::collections::BTreeSet;

/// Blocks that one tick of a walk over the namespace looks at.
const SCAN_STEP: usize = 10_000;

/// What targets are for.
#[derive(Clone, Copy)]
pub(super) struct Wanted {
    /// How many more replicas or units.
    pub count: usize,
    /// On other racks only: the block is to be better spread.
    pub moving: bool,
    /// Of the file.
    pub policy: StoragePolicy,
}

impl Cluster {
    /// One tick of mending.
    pub(crate) fn mend(&mut self, lookup: &dyn BlockLookup, now: Now, dice: Dice<'_>) {
        if self.safe_mode.is_on() {
            return;
        }
        self.scan_step(lookup);
        if std::mem::take(&mut self.mending.recheck_postponed) {
            for id in std::mem::take(&mut self.mending.postponed) {
                self.check_redundancy(lookup, id);
            }
        }
        for id in self.expired_work(now) {
            self.check_redundancy(lookup, id);
        }
        for id in self.take_back_from_stale(now) {
            self.check_redundancy(lookup, id);
        }
        let interval =
            u64::try_from(self.config.redundancy_interval.as_millis()).unwrap_or(u64::MAX);
        // The first round waits, so that nodes that start together with the NameNode can report.
        let last = *self.mending.last_round_ms.get_or_insert(now.mono_ms);
        if now.mono_ms.saturating_sub(last) >= interval {
            self.mending.last_round_ms = Some(now.mono_ms);
            self.round(lookup, now, dice);
        }
    }

    fn scan_step(&mut self, lookup: &dyn BlockLookup) {
        let Some(after) = self.mending.scan else { return };
        let blocks = lookup.blocks_after(after, SCAN_STEP);
        self.mending.scan = blocks.last().map(|(id, _)| Some(*id));
        for (id, _) in blocks {
            self.check_redundancy(lookup, id);
        }
    }

    fn round(&mut self, lookup: &dyn BlockLookup, now: Now, dice: Dice<'_>) {
        const LEVELS: [Priority; 4] =
            [Priority::Highest, Priority::VeryLow, Priority::Low, Priority::BadlyDistributed];
        let mut budget = self.live_count() * self.config.work_multiplier;
        for level in LEVELS {
            let cursor = self.mending.cursors[level as usize];
            let mut ids = self.queues.after(level, cursor, budget);
            if ids.len() < budget && cursor.is_some() {
                let rest = budget - ids.len();
                let wrapped = self.queues.after(level, None, rest);
                ids.extend(wrapped.into_iter().filter(|id| Some(*id) <= cursor));
            }
            budget -= ids.len().min(budget);
            self.mending.cursors[level as usize] = ids.last().copied();
            for id in ids {
                self.schedule(lookup, id, level, now, dice);
            }
            if budget == 0 {
                return;
            }
        }
    }

    fn schedule(
        &mut self,
        lookup: &dyn BlockLookup,
        id: BlockId,
        level: Priority,
        now: Now,
        dice: Dice<'_>,
    ) {
        let facts = lookup.block(id).filter(|facts| facts.state == BlockState::Complete);
        let Some(facts) = facts else {
            self.queues.remove(id);
            return;
        };
        // What it needs may have changed without a word on this block: racks that are left, say.
        self.check_against(lookup, id, Some(facts));
        if self.queues.priority(id).is_none() {
            return;
        }
        let policy = lookup.storage_policy(id);
        let work = match facts.layout {
            Layout::Replicated { .. } => self.copy_replica(policy, id, &facts, level, now, dice),
            Layout::Striped { .. } => self.mend_group(policy, id, &facts, now, dice),
        };
        if let Some(targets) = work {
            self.leaving.note_placed(id);
            for (storage, _) in &targets {
                self.count_scheduled(*storage, 1);
            }
            self.mending.expect(id, targets, now);
            self.check_redundancy(lookup, id);
        } else {
            self.leaving.note_unplaced(id);
        }
    }

    /// Copies that a node has been told of or will be.
    fn is_free(&self, node: NodeHandle, level: Priority) -> bool {
        let queued = self.mending.outboxes.get(&node).map_or(0, |o| o.transfers.len());
        let limit = match level {
            Priority::Highest => self.config.max_streams_hard,
            _ if self.node(node).is_leaving() => self.config.max_streams_hard,
            _ => self.config.max_streams,
        };
        queued < limit
    }

    fn copy_replica(
        &mut self,
        policy: StoragePolicy,
        id: BlockId,
        facts: &BlockFacts,
        level: Priority,
        now: Now,
        dice: Dice<'_>,
    ) -> Option<Vec<(StorageHandle, UnitIndex)>> {
        let tally = self.tally(id, facts);
        let have = tally.live + self.mending.coming(id);
        let wanted = self.wanted_live(facts, &tally);
        let moving = have >= wanted;
        let count = if moving { 1 } else { wanted - have };
        let source = self.source(id, level, dice)?;
        let targets = self.targets(id, facts, Wanted { count, moving, policy }, now, dice);
        if targets.is_empty() {
            return None;
        }
        let block = BlockRef { id, gs: facts.gs, len: facts.len };
        let node = self.storage(source).node;
        let outbox = self.mending.outboxes.entry(node).or_default();
        outbox.transfers.push(Transfer { block, targets: targets.clone() });
        Some(targets.into_iter().map(|storage| (storage, UnitIndex(0))).collect())
    }

    /// A good replica on a node that has room for one more copy; on a leaving node if there is one,
    /// since nothing is written there.
    ///
    /// Source: Hadoop 3.5.0 `BlockManager#chooseSourceDatanodes`.
    fn source(&self, id: BlockId, level: Priority, dice: Dice<'_>) -> Option<StorageHandle> {
        let good = self.blocks.places(id).iter().filter(|place| {
            let node = self.node(self.storage(place.storage).node);
            // A surplus replica may be gone before the copy starts.
            let good = !place.corrupt && !place.excess;
            good && node.is_readable() && self.is_free(node.handle, level)
        });
        let ranked = good.map(|place| {
            let leaving = self.node(self.storage(place.storage).node).is_leaving();
            (!leaving, dice(), place.storage)
        });
        ranked.min().map(|(_, _, storage)| storage)
    }

    /// Storages for more replicas or units beside those that stay, of the types that the file's storage
    /// policy has or falls back to.
    pub(super) fn targets(
        &self,
        id: BlockId,
        facts: &BlockFacts,
        wanted: Wanted,
        now: Now,
        dice: Dice<'_>,
    ) -> Vec<StorageHandle> {
        let places = self.blocks.places(id);
        let pending = self.mending.pending.get(&id).map_or(&[][..], |p| p.targets.as_slice());
        let node_of = |storage: &StorageHandle| self.storage(*storage).node;
        // Bad and surplus ones and those that leave take no share of a rack, but their nodes cannot get
        // another one.
        let counted = |place: &&crate::block_map::Place| {
            let leaving = self.node(node_of(&place.storage)).is_leaving();
            !place.corrupt && !place.excess && !leaving
        };
        let existing: Vec<StorageHandle> = places
            .iter()
            .filter(counted)
            .map(|place| place.storage)
            .chain(pending.iter().map(|(storage, _)| *storage))
            .collect();
        let mut excluded: Vec<NodeHandle> =
            places.iter().map(|place| node_of(&place.storage)).collect();
        if wanted.moving {
            let racks: BTreeSet<&str> =
                existing.iter().map(|s| self.node(node_of(s)).rack.as_str()).collect();
            let crowded = self.nodes().filter(|node| racks.contains(node.rack.as_str()));
            excluded.extend(crowded.map(|node| node.handle));
        }
        let request = PlacementRequest {
            count: wanted.count,
            block_len: facts.unit_len(UnitIndex(0)),
            excluded: &excluded,
            existing: &existing,
            storage_policy: wanted.policy,
            ..PlacementRequest::default()
        };
        if facts.layout.is_striped() {
            self.choose_striped(&request, now, dice)
        } else {
            self.choose_replicated(&request, now, dice)
        }
    }

    /// Decodes what is lost; where nothing is, or it cannot be, sees to what is on leaving nodes only.
    /// Moving units of a whole group for a better spread over racks is left to later.
    fn mend_group(
        &mut self,
        policy: StoragePolicy,
        id: BlockId,
        facts: &BlockFacts,
        now: Now,
        dice: Dice<'_>,
    ) -> Option<Vec<(StorageHandle, UnitIndex)>> {
        let Layout::Striped { k, m, .. } = facts.layout else { return None };
        let units = (0..facts.data_units() as u8).chain(k..k + m).map(UnitIndex);
        let good: Vec<(StorageHandle, UnitIndex)> = self
            .blocks
            .places(id)
            .iter()
            .filter(|place| !place.corrupt && !place.excess)
            .map(|place| (place.storage, place.unit))
            .collect();
        let coming: Vec<UnitIndex> = self
            .mending
            .pending
            .get(&id)
            .map_or_else(Vec::new, |pending| pending.targets.iter().map(|(_, u)| *u).collect());
        let wanted: Vec<UnitIndex> = units.filter(|unit| !coming.contains(unit)).collect();
        let lost: Vec<UnitIndex> =
            wanted.iter().copied().filter(|unit| !good.iter().any(|(_, u)| u == unit)).collect();
        if !lost.is_empty() {
            let wanted = Wanted { count: lost.len(), moving: false, policy };
            let chosen = self.targets(id, facts, wanted, now, &mut *dice);
            let work = self.decode(id, facts, &good, &lost, coming, chosen);
            if work.is_some() {
                return work;
            }
        }
        self.evacuate(id, facts, policy, now, dice)
    }

    /// One node, that of the first `chosen` storage, reads enough units and decodes all lost ones in one
    /// pass.
    fn decode(
        &mut self,
        id: BlockId,
        facts: &BlockFacts,
        good: &[(StorageHandle, UnitIndex)],
        lost: &[UnitIndex],
        coming: Vec<UnitIndex>,
        chosen: Vec<StorageHandle>,
    ) -> Option<Vec<(StorageHandle, UnitIndex)>> {
        let mut sources: Vec<(StorageHandle, UnitIndex)> = Vec::new();
        for (storage, unit) in good {
            let readable = self.node(self.storage(*storage).node).is_readable();
            if readable && !sources.iter().any(|(_, u)| u == unit) {
                sources.push((*storage, *unit));
            }
        }
        if sources.len() < facts.data_units() {
            return None;
        }
        // Units in maintenance are not lost, but cannot be read now.
        let away = good.iter().map(|(_, unit)| *unit);
        let away = away.filter(|unit| !sources.iter().any(|(_, other)| other == unit));
        let mut excluded_units = coming;
        excluded_units.extend(away);
        let first = self.storage(*chosen.first()?).node;
        let targets: Vec<(StorageHandle, UnitIndex)> =
            chosen.into_iter().zip(lost.iter().copied()).collect();
        let outbox = self.mending.outboxes.entry(first).or_default();
        outbox.reconstructions.push(Reconstruction {
            group: BlockRef { id, gs: facts.gs, len: facts.len },
            layout: facts.layout,
            sources,
            targets: targets.clone(),
            excluded_units,
        });
        Some(targets)
    }
}
