//! When all is quiet and whole, the NameNode is restored from a backup of some time ago, with a DataNode gone for good. Whatever
//! files had then, and was neither deleted nor changed since, is read again, wherever it has gone meanwhile: into groups, or
//! into containers.
//!
//! What the model knows is of the namespace that is no more: nothing else is compared from then on.

use crate::data_node::Intent;
use crate::model::Restored;
use crate::world::{Event, World};
use cairn_namespace::{BlockState, InodeId};
use cairn_redundancy::BlockRef;

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
        let lost = self.lose_a_node();
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

    /// A DataNode is gone for good, if there are more than any group needs, and none has lost more than it bears.
    fn lose_a_node(&mut self) -> Option<usize> {
        let is_hurt = self.model.blocks.values().any(|block| !block.exposed.is_empty());
        let is_able = |node: &usize| {
            let node = &self.nodes[*node];
            node.is_serving(self.now_ms)
                && node.intent == Intent::Serve
                && self.answers(node.number)
        };
        let able: Vec<usize> = (0..self.nodes.len()).filter(is_able).collect();
        if is_hurt || able.len() <= self.name_node.widest().max(5) {
            return None;
        }
        let lost = able[self.looks.index(able.len())];
        let node = &mut self.nodes[lost];
        node.crash(false, &mut self.looks);
        node.is_gone = true;
        Some(lost)
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
