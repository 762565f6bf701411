//! How many faults a block bears: parts of it that have failed since it was last whole are counted, each
//! replica or unit with its node, and no more are made to fail than can be done without.

use crate::model::{BlockModel, Part};
use crate::name_node::Target;
use crate::world::World;
use cairn_replica::ReplicaState;
use cairn_stripe::{BlockId, GenerationStamp, Redundancy, UnitIndex};
use std::collections::{BTreeMap, BTreeSet};

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
        self.model.blocks.insert(id, BlockModel { tolerance, exposed });
    }

    /// A block is from now on what those `parts` of it hold under that stamp, of which `needed` are needed: parts
    /// that are damaged already have failed.
    pub(crate) fn begin_with(
        &mut self,
        (id, gs): (BlockId, GenerationStamp),
        parts: &[Part],
        needed: usize,
    ) {
        let is_intact = |(node, unit): &Part| {
            let own_id = if id.is_striped() { id.internal(*unit) } else { id };
            let node = &self.nodes[*node];
            let stored = node.replicas.get(&own_id).filter(|_| !node.is_gone);
            stored.is_some_and(|stored| {
                stored.replica.state() == ReplicaState::Finalized
                    && stored.replica.gs() == gs
                    && stored.damaged.is_empty()
            })
        };
        let exposed = parts.iter().filter(|part| !is_intact(part)).copied().collect();
        let tolerance = parts.len().saturating_sub(needed);
        self.model.blocks.insert(id, BlockModel { tolerance, exposed });
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

    /// Whether a replica or unit may fail on `node` without more failures than its block bears.
    pub(crate) fn bears(&self, own_id: BlockId, node: usize) -> bool {
        self.bears_all(node, [own_id])
    }

    fn bears_all(&self, node: usize, parts: impl IntoIterator<Item = BlockId>) -> bool {
        let mut new: BTreeMap<BlockId, BTreeSet<Part>> = BTreeMap::new();
        for own_id in parts {
            new.entry(own_id.group()).or_default().insert((node, own_id.unit()));
        }
        new.iter().all(|(id, parts)| {
            self.model.blocks.get(id).is_none_or(|block| {
                let new = parts.difference(&block.exposed).count();
                new == 0 || block.exposed.len() + new <= block.tolerance
            })
        })
    }

    /// A replica or unit on `node` has failed.
    pub(crate) fn expose(&mut self, own_id: BlockId, node: usize) {
        if let Some(block) = self.model.blocks.get_mut(&own_id.group()) {
            block.exposed.insert((node, own_id.unit()));
        }
    }

    /// Counts replicas and units on a node as failed, if all their blocks bear it.
    pub(crate) fn fail_for(&mut self, node: usize, parts: &[BlockId]) -> bool {
        let bears = self.bears_all(node, parts.iter().copied());
        if bears {
            parts.iter().for_each(|own_id| self.expose(*own_id, node));
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
