//! How many faults a block bears: parts of it that were destroyed since it was last whole are counted, each replica or
//! unit with its node, and no more are destroyed than can be done without. What passes is not counted: nodes, racks or
//! all of them may be away, as long as they come back with what they had.
//!
//! When the power fails everywhere, nobody asks what blocks bear: of those that bear less than what is torn, no more is
//! left to be kept than what was synced.

use crate::data_node::{DataNode, Stored};
use crate::model::{BlockModel, Part};
use crate::name_node::Target;
use crate::world::World;
use cairn_redundancy::BlockFacts;
use cairn_replica::ReplicaState;
use cairn_stripe::{BlockId, GenerationStamp, Redundancy, UnitIndex};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound::{Excluded, Included};

impl World<'_> {
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
        let exposed = BTreeSet::new();
        self.model.blocks.insert(id, BlockModel { tolerance, exposed, is_torn: false });
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
            let node = &self.nodes[*node];
            let stored = node.replicas.get(&own_id).filter(|_| !node.is_gone);
            stored.is_some_and(|stored| {
                stored.replica.gs() == gs && stored.damaged.is_empty() && !stored.is_torn
            })
        };
        let exposed = parts.iter().filter(|part| !is_intact(part)).copied().collect();
        let tolerance = parts.len().min(wanted).saturating_sub(needed);
        self.model.blocks.insert(id, BlockModel { tolerance, exposed, is_torn: false });
    }

    /// What is acknowledged of a block is from now on where its writer has said.
    pub(crate) fn rests_on_pipeline(&mut self, id: BlockId, gs: GenerationStamp) {
        let Some(parts) = self.pipelines.remove(&(id, gs)) else { return };
        let is_it = |facts: &BlockFacts| facts.gs == gs;
        let Some(facts) = self.name_node.facts_of(id).filter(is_it) else { return };
        let has_bytes = |(_, unit): &Part| !facts.is_final() || facts.has_bytes(*unit);
        let parts: Vec<Part> = parts.into_iter().filter(has_bytes).collect();
        let was_torn = self.model.blocks.get(&id).is_some_and(|block| block.is_torn);
        self.begin_with((id, gs), &parts, (facts.data_units(), facts.expected_units()));
        // The writer may not have heard yet that their nodes have been down.
        let is_written = |(node, unit): &&Part| {
            let own_id = if id.is_striped() { id.internal(*unit) } else { id };
            let stored = self.nodes[*node].replicas.get(&own_id);
            stored.is_some_and(|stored| stored.replica.place() != ReplicaState::Rwr)
        };
        let is_mended = parts.iter().filter(is_written).count() >= facts.data_units();
        if let Some(block) = self.model.blocks.get_mut(&id) {
            block.is_torn = was_torn && !is_mended;
        }
    }

    /// The power fails on those parts, and they lose the end of what they had.
    pub(crate) fn tear(&mut self, torn: &[(usize, BlockId)]) {
        let mut by_block: BTreeMap<BlockId, Vec<(usize, BlockId)>> = BTreeMap::new();
        for (node, own_id) in torn {
            by_block.entry(own_id.group()).or_default().push((*node, *own_id));
        }
        for (id, parts) in by_block {
            let new: BTreeSet<Part> =
                parts.iter().map(|(node, own_id)| (*node, own_id.unit())).collect();
            let Some(block) = self.model.blocks.get_mut(&id) else { continue };
            let all: BTreeSet<Part> = block.exposed.union(&new).copied().collect();
            if all.len() <= block.tolerance {
                block.exposed = all;
                continue;
            }
            block.is_torn = true;
            // They have what was synced.
            for (node, own_id) in parts {
                if let Some(stored) = self.nodes[node].replicas.get_mut(&own_id) {
                    stored.is_torn = false;
                }
            }
            let file = self.name_node.block(id).map(|info| info.block.file);
            if let Some(file) = file.and_then(|file| self.model.files.get_mut(&file)) {
                file.acked = file.acked.min(file.durable);
            }
        }
    }

    /// What of its present blocks a node would lose if it became `next`: what is gone, shorter, or older.
    pub(crate) fn loss(&self, node: usize, next: &DataNode) -> Vec<BlockId> {
        let is_lost = |(id, stored): &(&BlockId, &Stored)| {
            let is_part = stored.replica.place() != ReplicaState::Temporary
                && self
                    .name_node
                    .block(id.group())
                    .is_some_and(|info| stored.replica.gs() >= info.block.gs);
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
        let Some(block) = self.model.blocks.get_mut(&id) else { return };
        block.tolerance = tolerance;
        block.exposed.retain(|(node, unit)| {
            let own_id = if id.is_striped() { id.internal(*unit) } else { id };
            self.nodes.get(*node).is_some_and(|node| node.will_tell_in_vain(own_id))
        });
    }

    /// Whether those replicas and units on `node` may be destroyed.
    pub(crate) fn bears_all(&self, node: usize, parts: impl IntoIterator<Item = BlockId>) -> bool {
        let mut new: BTreeMap<BlockId, BTreeSet<Part>> = BTreeMap::new();
        for own_id in parts {
            new.entry(own_id.group()).or_default().insert((node, own_id.unit()));
        }
        new.iter().all(|(id, parts)| {
            self.model.blocks.get(id).is_none_or(|block| {
                let new = parts.difference(&block.exposed).count();
                let all = block.exposed.union(parts).copied().collect();
                let is_borne = block.exposed.len() + new <= block.tolerance;
                new == 0 || is_borne && self.bear_pipelines(*id, &all)
            })
        })
    }

    /// Whether a block could do without those parts if it came to rest on any of the pipelines that its writer goes on with
    /// and that are not in force yet.
    fn bear_pipelines(&self, id: BlockId, failed: &BTreeSet<Part>) -> bool {
        let Some(facts) = self.name_node.facts_of(id) else { return true };
        let later = (Excluded((id, facts.gs)), Included((id, GenerationStamp(u64::MAX))));
        self.pipelines.range(later).all(|(_, parts)| {
            let failed = parts.iter().filter(|part| failed.contains(part)).count();
            let most = parts.len().min(facts.expected_units());
            failed == 0 || failed + facts.data_units() <= most
        })
    }

    /// Counts replicas and units on a node as failed, if all their blocks bear it.
    pub(crate) fn fail_for(&mut self, node: usize, parts: &[BlockId]) -> bool {
        let bears = self.bears_all(node, parts.iter().copied());
        if bears {
            for own_id in parts {
                if let Some(block) = self.model.blocks.get_mut(&own_id.group()) {
                    block.exposed.insert((node, own_id.unit()));
                }
            }
        }
        bears
    }

    /// A node has got what another one will lose for it: if it has failed that before, its next failure of it is
    /// one more.
    pub(crate) fn count_apart(&mut self, node: usize, own_id: BlockId) {
        /// Beyond the number of any node.
        const FORMER: usize = 1000;
        let unit = own_id.unit();
        if let Some(block) = self.model.blocks.get_mut(&own_id.group())
            && block.exposed.remove(&(node, unit))
        {
            let next = block.exposed.last().map_or(0, |(last, _)| last + 1);
            block.exposed.insert((next.max(FORMER), unit));
        }
    }

    /// Whether more parts have failed of a block than it bears, which excuses its loss.
    pub(crate) fn is_excused(&self, block: BlockId) -> bool {
        let block = self.model.blocks.get(&block.group());
        block.is_some_and(|block| block.exposed.len() > block.tolerance)
    }

    /// Whether a replica or unit that the NameNode counts on may have been taken by a fault.
    pub(crate) fn has_failed(&self, id: BlockId, node: usize, unit: UnitIndex) -> bool {
        let block = self.model.blocks.get(&id.group());
        block.is_some_and(|block| block.exposed.contains(&(node, unit)))
    }
}
