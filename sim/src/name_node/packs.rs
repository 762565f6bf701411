//! Containers of small blocks: how they are made here, the names in orders to write them, and what is told of them.

use super::grouping::Located;
use super::names::sure;
use super::{NameNode, Target};
use crate::packing::{NamedPack, ToPack};
use crate::rng::Rng;
use cairn_master::contiguous::elsewhere::PackedAt;
use cairn_master::contiguous::pack::PackedContainer;
use cairn_master::contiguous::pack::batch::PackRules;
use cairn_master::contiguous::rounds::{Said, Unjudged};
use cairn_namespace::container::{Container, ContainerState};
use cairn_namespace::ops::pack::PACKED_MAX;
use cairn_namespace::{Block, check, query};
use cairn_redundancy::{BlockRef, Command, NodeHandle, PackOrder, StorageHandle};
use cairn_stripe::{BlockId, UnitIndex};

/// How small blocks are packed in a simulation.
pub(crate) fn pack_rules(rng: &mut Rng) -> PackRules {
    PackRules {
        container_len: [1, 4096, 16_384, 16_384][rng.index(4)],
        patience_ms: rng.range(1, 5) * 10_000,
        dead_share_max: [0.1, 0.2, 0.5][rng.index(3)],
    }
}

impl NameNode {
    /// Takes what a DataNode says of containers that it was to write.
    pub(super) fn take_packed(&mut self, from: NodeHandle, packed: Vec<PackedContainer>) {
        let now = self.now();
        let said = packed.into_iter().map(|of| Unjudged::new(from, Said::Packed(of), now));
        self.unjudged.extend(said);
        if !self.unjudged.is_empty() {
            self.look_after_groups(false);
        }
    }

    /// An order to write a container, as the namespace is when it is told.
    pub(crate) fn name_pack(&self, order: &PackOrder) -> NamedPack {
        let rows = sure(query::pack_slots(&self.store, order.container.id, 0, PACKED_MAX));
        let blocks = rows.into_iter().map(|(slot, of)| {
            let places = self.cluster.readable_places(of.id).into_iter();
            let block = BlockRef { id: of.id, gs: of.gs, len: of.len };
            let holders = places.map(|at| self.target(at).node).collect();
            ToPack { slot, block, crc32c: of.crc32c, holders }
        });
        NamedPack {
            container: order.container,
            target: self.target(order.storage),
            blocks: blocks.collect(),
        }
    }

    /// Where readers find a packed block of which there are no plain replicas.
    pub(super) fn places_in_container(&self, block: &Block) -> Vec<(StorageHandle, UnitIndex)> {
        let Some(at) = block.packed else { return Vec::new() };
        let now = self.now();
        let mut found = self.cluster.readable_places(at.container);
        found.sort_by_key(|storage| {
            self.cluster.is_late(self.cluster.node(self.cluster.storage(*storage).node), now)
        });
        let mut places: Vec<_> = found.into_iter().map(|storage| (storage, UnitIndex(0))).collect();
        if let Some(of) = self.block(at.container).and_then(|info| info.block.group) {
            places.extend(self.cluster.readers_of_member(of.handle, &places, false, now));
        }
        places
    }

    /// All containers.
    pub(crate) fn containers(&self) -> Vec<Container> {
        sure(query::containers_after(&self.store, None, usize::MAX))
    }

    /// What of containers is still under way.
    pub(crate) fn unfinished_container(&self) -> Option<String> {
        let containers = self.containers().into_iter();
        let mut under_way = containers.filter(|of| of.state != ContainerState::Packed);
        let container = under_way.next().map(|of| format!("{} is {:?}", of.id, of.state));
        let plain = self.cluster.packed_with_replicas();
        container.or_else(|| (plain > 0).then(|| format!("{plain} packed blocks have replicas")))
    }

    /// The first thing that does not hang together in the namespace.
    pub(crate) fn inconsistency(&self) -> Option<String> {
        let mut first = None;
        sure(check::check(&self.store, &mut |problem| {
            first.get_or_insert(problem);
        }));
        first
    }

    /// An order to delete containers of a node that a count has nothing left in, where that mistake is put back.
    pub(super) fn freed_by_count(&self, node: NodeHandle) -> Option<Command> {
        if !self.bugs.frees_by_count {
            return None;
        }
        let is_here = |id: BlockId| self.cluster.locations(id).iter().any(|at| at.node == node);
        let is_freed = |of: &Container| {
            let left = of.packed.saturating_sub(of.live);
            of.state == ContainerState::Packed
                && left > 0
                && 2 * left >= of.packed
                && is_here(of.id)
        };
        let containers = self.containers().into_iter().filter(is_freed);
        let blocks = containers.filter_map(|of| {
            let len = self.block(of.id)?.block.len;
            Some(BlockRef { id: of.id, gs: of.gs, len })
        });
        let blocks: Vec<BlockRef> = blocks.collect();
        (!blocks.is_empty()).then_some(Command::Invalidate(blocks))
    }

    /// Where a block was packed first, where that mistake is put back.
    pub(super) fn place_as_kept(&mut self, id: BlockId, mut located: Located) -> Located {
        let Some(packed) = located.packed.filter(|_| self.bugs.keeps_places) else {
            return located;
        };
        let kept: PackedAt = *self.kept_places.entry(id).or_insert(packed);
        if kept != packed {
            let places = self.cluster.readable_places(kept.container.id).into_iter();
            located.relays = places.map(|storage| self.target(storage)).collect::<Vec<Target>>();
            located.packed = Some(kept);
            located.group = None;
        }
        located
    }
}
