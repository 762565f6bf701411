//! When all is quiet and whole, the NameNode is restored from a backup of some time ago, with DataNodes gone for good. Whatever
//! files had then, and was neither deleted nor changed since, is read again, wherever it has gone meanwhile: into groups, or
//! into containers.
//!
//! What the model knows is of the namespace that is no more: nothing else is compared from then on.

use crate::data_node::Intent;
use crate::model::Restored;
use crate::world::{Event, World};
use cairn_namespace::{BlockState, InodeId};
use cairn_redundancy::BlockRef;
use cairn_stripe::UnitIndex;

/// How long DataNodes have to tell what they have, and the NameNode to take it over.
const PATIENCE_MS: u64 = 300_000;
/// When an operator sees that safe mode waits for what was deleted since.
const LEAVES_MS: u64 = 200_000;

impl World<'_> {
    /// A backup is made.
    pub(crate) fn back_up(&mut self) {
        match self.name_node.up {
            true => self.name_node.back_up(),
            false => self.after(1000, Event::BackUp),
        }
    }

    /// Restores the NameNode, if there is a backup. Returns whether there was one.
    pub(crate) fn restore(&mut self) -> bool {
        let Some(expected) = self.expected() else { return false };
        let lost = self.lose_nodes();
        self.note(|| format!("the NameNode is restored, with {lost:?} gone"));
        let mut left = Vec::new();
        for (block, bytes) in expected {
            let is_elsewhere =
                self.name_node.block(block.id).is_some_and(|info| info.block.is_coded());
            let mut others = self.nodes.iter().filter(|node| !node.is_gone);
            if is_elsewhere || others.any(|node| node.holds(block.id, block.gs)) {
                left.push((block, bytes));
            }
        }
        self.name_node.restore();
        let (since_ms, has_left) = (self.now_ms, false);
        self.restored = Some(Restored { since_ms, expected: left, has_left });
        self.count("backups restored");
        self.after(5000, Event::Check);
        true
    }

    /// The blocks of the backup that are there as they were then, and can be read, with their bytes.
    fn expected(&mut self) -> Option<Vec<(BlockRef, Vec<u8>)>> {
        let mut expected = Vec::new();
        for then in self.name_node.blocks_of_backup()?.iter() {
            let (id, gs, len) = (then.block.id, then.block.gs, then.block.len);
            let is_of_a_file = !id.has_units() && !id.is_container() && len > 0;
            let Some(now) = self.name_node.block(id).filter(|_| is_of_a_file) else { continue };
            let is_same = (now.block.gs, now.block.len) == (gs, len)
                && [then.block.state, now.block.state] == [BlockState::Complete; 2]
                && now.block.file != InodeId::NONE;
            let Some(bytes) = self.data_of(&now, len).filter(|_| is_same) else { continue };
            let block = BlockRef { id, gs, len };
            if self.read_anywhere(block).as_ref() == Some(&bytes) {
                expected.push((block, bytes));
            }
        }
        Some(expected)
    }

    /// DataNodes are gone for good, if there are more than any group needs, and none has lost more than it bears: one, or as
    /// many as any group bears, and then those that have the parities of one group first, or others.
    fn lose_nodes(&mut self) -> Vec<usize> {
        let is_hurt = self.model.blocks.values().any(|block| !block.exposed.is_empty());
        let is_able = |node: &usize| {
            let node = &self.nodes[*node];
            node.is_serving(self.now_ms)
                && node.intent == Intent::Serve
                && self.answers(node.number)
        };
        let mut able: Vec<usize> = (0..self.nodes.len()).filter(is_able).collect();
        let spare = able.len().saturating_sub(self.name_node.widest().max(5));
        if is_hurt || spare == 0 {
            return Vec::new();
        }
        // What happens to the first of them is as it was before there were others.
        let mut dice = self.looks.clone();
        let first = able[self.looks.index(able.len())];
        let groups = self.name_node.all_groups();
        let bears = groups.iter().map(|group| usize::from(group.m)).min().unwrap_or(1);
        let count = if dice.one_in(2) { 1 } else { bears.min(spare) };
        let mut lost = vec![first];
        let group = dice.pick(&groups).filter(|group| count == usize::from(group.m));
        if let Some(group) = group.filter(|_| count > 1 && dice.one_in(2)) {
            let has_parity = |node: &usize| {
                let mut parities = (group.k..group.k + group.m).map(UnitIndex);
                parities.any(|unit| self.nodes[*node].holds(group.handle.internal(unit), group.gs))
            };
            lost = able.iter().copied().filter(has_parity).take(count).collect();
            self.count("nodes of all parities lost");
        }
        able.retain(|node| !lost.contains(node));
        while lost.len() < count {
            lost.push(able.swap_remove(dice.index(able.len())));
        }
        for node in &lost {
            let node = &mut self.nodes[*node];
            node.crash(false, &mut self.looks);
            node.is_gone = true;
        }
        lost
    }

    /// A block from whoever has it, or can have it.
    fn read_anywhere(&mut self, block: BlockRef) -> Option<Vec<u8>> {
        let BlockRef { id, gs, len } = block;
        for storage in self.name_node.cluster.readable_places(id) {
            let node = self.name_node.target(storage).node;
            if let Some(bytes) = self.read_unit(node, id, gs, len) {
                return Some(bytes);
            }
        }
        let nodes: Vec<usize> = (0..self.nodes.len()).filter(|node| self.answers(*node)).collect();
        nodes.into_iter().find_map(|node| self.read_elsewhere(node, block))
    }

    /// Looks whether all is read again. Returns whether nothing more is to be seen.
    pub(crate) fn look_at_restored(&mut self) -> bool {
        let Some(restored) = &mut self.restored else { return true };
        let past_ms = self.now_ms - restored.since_ms;
        if past_ms >= LEAVES_MS && self.name_node.is_safe_mode() && !restored.has_left {
            restored.has_left = true;
            self.name_node.cluster.leave_safe_mode(true);
            self.count("safe mode left after a restore");
        }
        if past_ms < PATIENCE_MS {
            return false;
        }
        let expected =
            self.restored.as_mut().map_or(Vec::new(), |of| std::mem::take(&mut of.expected));
        for (block, bytes) in expected {
            if self.read_anywhere(block).as_ref() != Some(&bytes) {
                let why = format!("{block:?} was there before a restore, and is not read after it");
                self.note(|| format!("VIOLATION: {why}"));
                self.report.violation.get_or_insert(why);
            }
        }
        let taken = self.name_node.cluster.taken_over();
        *self.report.counts.entry("groups taken over").or_default() += taken.adopted;
        *self.report.counts.entry("packed blocks taken over").or_default() += taken.adopted_blocks;
        true
    }
}
