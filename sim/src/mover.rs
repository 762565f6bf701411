//! A balancer and a mover: replicas and units that go from node to node, or to another type of storage, while
//! everything else fails.
//!
//! Follows Hadoop's `Dispatcher` and `crates/datanode/src/ops/balance.rs`: the target fetches a copy, and tells
//! of it with a hint at the node that shall lose its own.

use crate::name_node::Target;
use crate::tasks::{Move, Task};
use crate::world::{Event, World};
use cairn_redundancy::{BlockRef, Location, MovableBlock, MoveQuery, StorageState, StorageType};
use std::collections::BTreeSet;

impl World<'_> {
    /// Looks for something to move, and has its target do so.
    pub(crate) fn rebalance(&mut self) {
        if self.is_quiet {
            return;
        }
        let delay = self.rng.range(1000, 15_000);
        self.after(delay, Event::Rebalance);
        if !self.name_node.up || self.name_node.is_safe_mode() {
            return;
        }
        let from = self.rng.index(self.nodes.len());
        let start = self.rng.any();
        let Some(found) = self.name_node.movable_blocks(from, start) else { return };
        for block in found.iter().take(2) {
            if let Some((to, work)) = self.plan_move(from, block) {
                self.note(|| format!("dn-{to} is to take {work:?}"));
                // What a balancer knows may be old when it comes to that.
                let longest = if self.rng.one_in(8) { 40_000 } else { 1000 };
                let (delay, life) = (self.rng.range(1, longest), self.nodes[to].life);
                let task = Task::Replace(work);
                self.after(delay, Event::Work { node: to, life, task });
            }
        }
    }

    /// Where one replica or unit of `from` can go. A mover looks for a type of storage that the policy wants, a
    /// balancer for a node that has nothing of the block; neither gives up a rack.
    fn plan_move(&mut self, from: usize, block: &MovableBlock) -> Option<(usize, Move)> {
        let node_of = |place: &Location| self.name_node.machine_of(place.storage);
        let place = block.places.iter().find(|place| node_of(place) == from)?;
        let holders: BTreeSet<usize> = block.places.iter().map(node_of).collect();
        let rack = |node: usize| self.nodes[node].rack.as_str();
        let others: BTreeSet<&str> =
            holders.iter().filter(|node| **node != from).map(|node| rack(*node)).collect();
        let kind = self.name_node.cluster.storage(place.storage).storage_type;
        let policy = self.name_node.storage_policy(block.id);
        let fitting = |wanted: StorageType, to: usize| {
            wanted == kind && to != from || policy.creation.contains(&wanted) && wanted != kind
        };
        let candidates = self.name_node.cluster.nodes().flat_map(|node| {
            node.storages.iter().map(|storage| self.name_node.cluster.storage(*storage))
        });
        let mut places: Vec<Target> = Vec::new();
        for storage in candidates {
            let target = self.name_node.target(storage.handle);
            let node = self.name_node.cluster.node(storage.node);
            let is_new = target.node == from || !holders.contains(&target.node);
            let keeps_racks = rack(target.node) == rack(from)
                || !others.contains(rack(target.node))
                || others.contains(rack(from));
            let serves = node.alive && !node.is_leaving();
            let works = storage.state == StorageState::Normal && serves;
            if is_new && keeps_racks && works && fitting(storage.storage_type, target.node) {
                places.push(target);
            }
        }
        let unit = place.unit;
        let id = if block.id.is_striped() { block.id.internal(unit) } else { block.id };
        let proxies: Vec<usize> =
            block.places.iter().filter(|place| place.unit == unit).map(node_of).collect();
        let len = block.facts.unit_len(unit);
        let to = self.rng.pick(&places).cloned()?;
        let proxy = if to.node == from { from } else { *self.rng.pick(&proxies)? };
        let block = BlockRef { id, gs: block.facts.gs, len };
        Some((to.node, Move { block, from, proxy, storage: to.storage }))
    }

    /// The target of a move fetches its bytes.
    pub(crate) fn replace(&mut self, node: usize, work: &Move) {
        let Move { block, from, proxy, storage } = work;
        if !self.answers(*proxy) || self.unlucky(20) {
            return;
        }
        let bytes = self.nodes[*proxy].read(block.id, block.gs, 0..block.len);
        let moved = match bytes {
            Ok(_) if node == *proxy => self.nodes[node].relocate(*block, storage),
            Ok(bytes) => {
                let hint = self.name_node.uuid_of(*from);
                self.nodes[node].take_copy(*block, bytes, storage, Some(hint))
            }
            Err(error) => Err(error),
        };
        self.note(|| format!("dn-{node} takes over {block:?} from dn-{from}: {moved:?}"));
        if moved.is_ok() {
            self.count("moves");
            self.count_apart(node, block.id);
            self.tell_soon(node);
            self.touch(block.id);
        }
    }
}

impl crate::name_node::NameNode {
    /// What a balancer may move from a node.
    fn movable_blocks(&self, node: usize, start: u64) -> Option<Vec<MovableBlock>> {
        let node = self.cluster.node_by_uuid(&self.uuid_of(node)).filter(|node| node.alive)?;
        let query =
            MoveQuery { node: node.handle, size: 20_000, min_block_len: 0, storage_type: None };
        Some(self.cluster.movable_blocks(&self.lookup(), &query, start, &|_| false))
    }
}
