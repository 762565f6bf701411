//! How many faults a block bears: parts of it that were destroyed since it was last whole are counted, each replica or
//! unit with its node, and no more are destroyed than can be done without. What passes is not counted: nodes, racks or
//! all of them may be away, as long as they come back with what they had.
//!
//! A contiguous group bears what its parities do: from the moment in which an attempt to make it begins, since what it is to
//! rest on is proven once and not again. What is destroyed of a member counts for its group, and as long as the attempt is
//! open also for itself, whose copies may have to do without the group.
//!
//! When the power fails everywhere, nobody asks what blocks bear: of those that bear less than what is torn, no more is
//! left to be kept than what was synced.

use crate::data_node::{DataNode, Stored};
use crate::model::{BlockModel, Part};
use crate::name_node::{Target, sure};
use crate::world::World;
use cairn_namespace::{Block, BlockState, InodeId, query};
use cairn_redundancy::BlockFacts;
use cairn_replica::ReplicaState;
use cairn_stripe::{BlockId, GenerationStamp, Redundancy, UnitIndex};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound::{Excluded, Included};

#[cfg(test)]
mod tests;

/// Beyond the number of any node.
const FORMER: usize = 1000;

impl World<'_> {
    /// A replica or unit by its DataNode, whatever machine that is on.
    fn part(&self, node: usize, unit: UnitIndex) -> Part {
        (self.name_node.identity(node), unit)
    }

    /// What a new block bears, and that no part of it has failed.
    pub(crate) fn block_allocated(
        &mut self,
        id: BlockId,
        redundancy: &Redundancy,
        targets: &[Option<Target>],
    ) {
        let placed = targets.iter().flatten().count();
        let needed = match redundancy {
            Redundancy::Replicated(_) => 1,
            Redundancy::Striped(policy) => policy.schema.data_units(),
        };
        let tolerance = placed.saturating_sub(needed);
        self.model.blocks.insert(id, BlockModel::new(tolerance, BTreeSet::new()));
    }

    /// A block is from now on what those `parts` of it hold under that stamp, of which `needed` are needed and no more
    /// than `wanted` are kept: parts that are damaged already have failed.
    pub(crate) fn begin_with(
        &mut self,
        (id, gs): (BlockId, GenerationStamp),
        parts: &[Part],
        (needed, wanted): (usize, usize),
    ) {
        let is_intact = |(node, unit): &Part| {
            let own_id = if id.is_striped() { id.internal(*unit) } else { id };
            let is_there = !self.nodes[*node].is_gone && self.stands(*node);
            let stored = self.nodes[*node].replicas.get(&own_id).filter(|_| is_there);
            stored.is_some_and(|stored| {
                stored.replica.gs() == gs && stored.damaged.is_empty() && !stored.is_torn
            })
        };
        let failed = parts.iter().filter(|part| !is_intact(part));
        let exposed = failed.map(|(node, unit)| self.part(*node, *unit)).collect();
        let tolerance = parts.len().min(wanted).saturating_sub(needed);
        self.model.blocks.insert(id, BlockModel::new(tolerance, exposed));
    }

    /// What is acknowledged of a block is from now on where its writer has said.
    pub(crate) fn rests_on_pipeline(&mut self, id: BlockId, gs: GenerationStamp) {
        let Some(parts) = self.pipelines.remove(&(id, gs)) else { return };
        let is_it = |facts: &BlockFacts| facts.gs == gs;
        let Some(facts) = self.name_node.facts_of(id).filter(is_it) else { return };
        let has_bytes = |(_, unit): &Part| !facts.is_final() || facts.has_bytes(*unit);
        let parts: Vec<Part> = parts.into_iter().filter(has_bytes).collect();
        let torn = self.model.blocks.get(&id).map(|block| block.torn.clone()).unwrap_or_default();
        self.begin_with((id, gs), &parts, (facts.data_units(), facts.expected_units()));
        // The writer may not have heard yet that their nodes have been down.
        let is_written = |(node, unit): &&Part| {
            let own_id = if id.is_striped() { id.internal(*unit) } else { id };
            let part = self.part(*node, *unit);
            self.nodes[*node].replicas.get(&own_id).is_some_and(|stored| {
                let is_as_torn = torn.contains(&(part, stored.replica.gs()));
                stored.replica.place() != ReplicaState::Rwr && !is_as_torn
            })
        };
        let is_mended = parts.iter().filter(is_written).count() >= facts.data_units();
        if let Some(block) = self.model.blocks.get_mut(&id).filter(|_| !is_mended) {
            block.torn = torn;
        }
    }

    /// The power fails on those parts, and they lose the end of what they had.
    pub(crate) fn tear(&mut self, torn: &[(usize, BlockId)]) {
        let mut by_block: BTreeMap<BlockId, Vec<(usize, BlockId)>> = BTreeMap::new();
        for (node, own_id) in torn {
            match self.name_node.handle_of(*own_id).filter(|of| self.name_node.is_formed(of.0)) {
                Some(_) => self.tear_member(*node, *own_id),
                None => by_block.entry(own_id.group()).or_default().push((*node, *own_id)),
            }
        }
        for (id, parts) in by_block {
            let new: BTreeSet<Part> =
                parts.iter().map(|(node, own_id)| self.part(*node, own_id.unit())).collect();
            let Some(block) = self.model.blocks.get(&id) else { continue };
            let all: BTreeSet<Part> = block.exposed.union(&new).copied().collect();
            let is_borne = all.len() <= block.tolerance && self.bear_pipelines(id, &all);
            let Some(block) = self.model.blocks.get_mut(&id) else { continue };
            if is_borne {
                block.exposed = all;
                continue;
            }
            let past = self.is_past_recovery(id);
            let Some(block) = self.model.blocks.get_mut(&id) else { continue };
            if let Some(state) = past {
                // Nobody has promised that it is more than in memory.
                block.exposed = all;
                if state == BlockState::Complete {
                    continue;
                }
            }
            // They have what was synced.
            for (node, own_id) in parts {
                let part = (self.name_node.identity(node), own_id.unit());
                if let Some(stored) = self.nodes[node].replicas.get_mut(&own_id) {
                    stored.is_torn &= past.is_some();
                    block.torn.insert((part, stored.replica.gs()));
                }
            }
            if past.is_some() {
                continue;
            }
            let file = self.name_node.block(id).map(|info| info.block.file);
            if let Some(file) = file.and_then(|file| self.model.files.get_mut(&file)) {
                file.acked = file.acked.min(file.durable);
            }
        }
    }

    /// The state of a block that no recovery cuts: complete, or committed with another one behind it, of which its file will
    /// be open for ever if no replica has that length, unless the one behind is taken back. The last one can be cut.
    fn is_past_recovery(&self, id: BlockId) -> Option<BlockState> {
        let info = self.name_node.block(id)?;
        let is_last = || self.last_block(info.block.file).is_some_and(|last| last.id == id);
        match info.block.state {
            BlockState::Committed if is_last() => None,
            state @ (BlockState::Complete | BlockState::Committed) => Some(state),
            _ => None,
        }
    }

    fn last_block(&self, file: InodeId) -> Option<Block> {
        sure(query::last_block(&self.name_node.store, file)).map(|(_, last)| last)
    }

    /// A writer has taken its last block back. The one before is the last again: if a power cut has torn it, a recovery
    /// cuts it to what was synced.
    pub(crate) fn taken_back(&mut self, file: InodeId) {
        let last = self.last_block(file).filter(|last| last.state == BlockState::Committed);
        let block = last.and_then(|last| self.model.blocks.get(&last.id));
        let is_torn = block.is_some_and(|block| !block.torn.is_empty());
        if let Some(file) = self.model.files.get_mut(&file).filter(|_| is_torn) {
            file.acked = file.acked.min(file.durable);
        }
    }

    /// A node has the disks of an image, and has lost these by that: what is there of them is not what was proven.
    pub(crate) fn note_restored(&mut self, node: usize, lost: &[BlockId]) {
        for id in lost {
            if let Some(proof) = self.model.proofs.get_mut(&(node, *id)) {
                proof.is_lost = true;
            }
        }
    }

    /// The power fails on a member of a group. What the group rests on was synced.
    fn tear_member(&mut self, node: usize, own_id: BlockId) {
        let gs = self.nodes[node].replicas.get(&own_id).map(|stored| stored.replica.gs());
        let proof = self.model.proofs.get(&(node, own_id));
        let is_proven = proof.is_some_and(|proof| Some(proof.gs) == gs && !proof.is_lost);
        if is_proven || own_id.is_parity() {
            self.violate(format!("dn-{node} loses the end of {own_id}, which its group rests on"));
        }
    }

    /// A block has been ended whose replicas have lost their ends: nobody has promised that all of it was synced.
    pub(crate) fn ended_torn(&mut self, id: BlockId) {
        let is_final = self.name_node.facts_of(id).is_some_and(|facts| facts.is_final());
        let block = self.model.blocks.get_mut(&id);
        if let Some(block) = block.filter(|block| !block.torn.is_empty() && is_final) {
            block.tolerance = 0;
            block.exposed.insert((FORMER, UnitIndex(0)));
        }
    }

    /// A start has found entries that were not in force when the power failed: what they have ended was torn before.
    pub(crate) fn ended_in_the_log(&mut self) {
        let is_torn = |(_, block): &(&BlockId, &BlockModel)| !block.torn.is_empty();
        let torn: Vec<BlockId> =
            self.model.blocks.iter().filter(is_torn).map(|(id, _)| *id).collect();
        for id in torn {
            let info = self.name_node.block(id);
            if info.is_some_and(|info| info.block.state == BlockState::Complete) {
                self.ended_torn(id);
            }
        }
    }

    /// A file is appended to whose last block has failed more often than it bears, as when the power has torn all that it was
    /// on and only the log had it reopened: a recovery cuts it to what was synced.
    pub(crate) fn note_reopened(&mut self, path: &str) {
        let Some(id) = self.name_node.blocks_at(path).last().copied() else { return };
        let Some(file) = self.name_node.block(id).map(|info| info.block.file) else { return };
        let is_over = |block: &BlockModel| block.exposed.len() > block.tolerance;
        let is_lost = self.model.blocks.get(&id).is_some_and(is_over);
        if let Some(file) = self.model.files.get_mut(&file).filter(|_| is_lost) {
            file.acked = file.acked.min(file.durable);
        }
    }

    /// What of its present blocks a node would lose if it became `next`: what is gone, shorter, or older.
    pub(crate) fn loss(&self, node: usize, next: &DataNode) -> Vec<BlockId> {
        let is_lost = |(id, stored): &(&BlockId, &Stored)| {
            let is_part = stored.replica.place() != ReplicaState::Temporary
                && self
                    .name_node
                    .facts_of(id.group())
                    .is_some_and(|facts| stored.replica.gs() >= facts.gs);
            let is_kept = |after: &Stored| {
                after.replica.gs() == stored.replica.gs()
                    && after.data.len() >= stored.data.len()
                    && (after.replica.place() == ReplicaState::Finalized
                        || stored.replica.place() != ReplicaState::Finalized)
            };
            is_part && !next.replicas.get(id).is_some_and(is_kept)
        };
        self.nodes[node].replicas.iter().filter(is_lost).map(|(id, _)| *id).collect()
    }

    /// A block has all it should have: its failures are over, but for those of nodes that have still to tell of
    /// what they lost since.
    pub(crate) fn is_whole_again(&mut self, id: BlockId, tolerance: usize) {
        let members = self.name_node.members_of(id);
        // So does what is there, and goes because it is taken for bad.
        let is_to_fail = |(node, unit): &Part| {
            let (own_id, standing) = (own_id(&members, id, *unit), self.standing_of(*node));
            let is_told_in_vain =
                self.nodes.get(standing).is_some_and(|node| node.will_tell_in_vain(own_id));
            is_told_in_vain || self.is_called_bad(standing, own_id)
        };
        let Some(block) = self.model.blocks.get(&id) else { return };
        let exposed = block.exposed.iter().copied().filter(is_to_fail).collect();
        let torn = block.torn.clone();
        self.model.blocks.insert(id, BlockModel { tolerance, exposed, torn });
    }

    /// Blocks of a file may be wanted in fewer replicas than before: they bear what these do, since any of the others may go.
    pub(crate) fn wants_fewer(&mut self, path: &str) {
        for id in self.name_node.blocks_at(path) {
            let Some(facts) = self.name_node.facts_of(id) else { continue };
            if let Some(block) = self.model.blocks.get_mut(&id) {
                let most = facts.expected_units().saturating_sub(facts.data_units());
                block.tolerance = block.tolerance.min(most);
            }
        }
    }

    /// Whether those replicas and units on `node` may be destroyed.
    pub(crate) fn bears_all(&self, node: usize, parts: impl IntoIterator<Item = BlockId>) -> bool {
        let mut new: BTreeMap<BlockId, BTreeSet<Part>> = BTreeMap::new();
        for own_id in parts {
            for (id, unit) in self.rests_with(own_id) {
                new.entry(id).or_default().insert(self.part(node, unit));
            }
        }
        new.iter().all(|(id, parts)| {
            self.model.blocks.get(id).is_none_or(|block| {
                let new = parts.difference(&block.exposed).count();
                let all = block.exposed.union(parts).copied().collect();
                let is_borne = block.exposed.len() + new <= block.tolerance;
                // Of what was torn, what was synced is to be kept.
                let is_torn = || block.torn.iter().any(|(part, _)| parts.contains(part));
                let is_over = block.exposed.len() > block.tolerance;
                new == 0 && !(is_over && is_torn()) || is_borne && self.bear_pipelines(*id, &all)
            })
        })
    }

    /// Whether a block could do without those parts if it came to rest on any of the pipelines that its writer goes on with
    /// and that are not in force yet.
    fn bear_pipelines(&self, id: BlockId, failed: &BTreeSet<Part>) -> bool {
        let Some(facts) = self.name_node.facts_of(id) else { return true };
        let later = (Excluded((id, facts.gs)), Included((id, GenerationStamp(u64::MAX))));
        self.pipelines.range(later).all(|(_, parts)| {
            let has_failed = |(node, unit): &&Part| failed.contains(&self.part(*node, *unit));
            let failed = parts.iter().filter(has_failed).count();
            let most = parts.len().min(facts.expected_units());
            failed == 0 || failed + facts.data_units() <= most
        })
    }

    /// Counts replicas and units on a node as failed, if all their blocks bear it.
    pub(crate) fn fail_for(&mut self, node: usize, parts: &[BlockId]) -> bool {
        let bears = self.bears_all(node, parts.iter().copied());
        if bears {
            let all: Vec<_> = parts.iter().flat_map(|own_id| self.rests_with(*own_id)).collect();
            for (id, unit) in all {
                let part = self.part(node, unit);
                if let Some(block) = self.model.blocks.get_mut(&id) {
                    block.exposed.insert(part);
                }
            }
        }
        bears
    }

    /// A node has got what another one will lose for it: if it has failed that before, its next failure of it is
    /// one more.
    pub(crate) fn count_apart(&mut self, node: usize, own_id: BlockId) {
        for (id, unit) in self.rests_with(own_id) {
            let part = self.part(node, unit);
            if let Some(block) = self.model.blocks.get_mut(&id)
                && block.exposed.remove(&part)
            {
                let next = block.exposed.last().map_or(0, |(last, _)| last + 1);
                block.exposed.insert((next.max(FORMER), unit));
            }
        }
    }

    /// What bears the failure of a replica or unit: its block, the contiguous group that this is in, or both.
    pub(crate) fn rests_with(&self, own_id: BlockId) -> Vec<(BlockId, UnitIndex)> {
        let own = (own_id.group(), own_id.unit());
        let packed = self.name_node.block(own_id).and_then(|info| info.block.packed);
        if let Some(of) = packed.and_then(|at| self.name_node.handle_of(at.container)) {
            return vec![own, of];
        }
        match self.name_node.handle_of(own_id) {
            Some(of_group) if self.name_node.is_formed(of_group.0) => vec![of_group],
            Some(of_group) if of_group != own => vec![own, of_group],
            _ => vec![own],
        }
    }

    /// Whether more parts have failed of a block than it bears, which excuses its loss.
    pub(crate) fn is_excused(&self, block: BlockId) -> bool {
        self.rests_with(block).into_iter().any(|(id, _)| {
            let block = self.model.blocks.get(&id);
            block.is_some_and(|block| block.exposed.len() > block.tolerance)
        })
    }

    /// Whether a replica or unit that the NameNode counts on may have been taken by a fault.
    pub(crate) fn has_failed(&self, id: BlockId, node: usize, unit: UnitIndex) -> bool {
        let own_id = if id.is_striped() { id.internal(unit) } else { id };
        self.rests_with(own_id).into_iter().any(|(id, unit)| {
            let block = self.model.blocks.get(&id);
            block.is_some_and(|block| block.exposed.contains(&self.part(node, unit)))
        })
    }
}

/// The replica, internal block, member or parity that a unit of a block or group is.
fn own_id(members: &[Option<BlockId>], id: BlockId, unit: UnitIndex) -> BlockId {
    match members.get(unit.as_usize()).copied().flatten() {
        Some(member) => member,
        None if id.has_units() => id.internal(unit),
        None => id,
    }
}
