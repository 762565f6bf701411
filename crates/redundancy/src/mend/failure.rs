//! Work that its DataNode says has failed: what is queued again, and whom it is not given to.
//!
//! Hadoop's DataNodes say nothing of a copy or reconstruction that fails: its NameNode waits until
//! `dfs.namenode.reconstruction.pending.timeout-sec` is over.

use crate::block::BlockLookup;
use crate::clock::Now;
use crate::cluster::Cluster;
use crate::handle::NodeHandle;
use crate::work::pending::Task;
use cairn_stripe::{BlockId, GenerationStamp, UnitIndex};

/// A replica or unit that will not arrive where it was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FailedWork {
    /// The block, or the unit's own id.
    pub block: BlockId,
    /// The stamp of the order.
    pub gs: GenerationStamp,
    /// The node where it was to arrive.
    pub target: NodeHandle,
    /// The node through which it failed, if that is known: left out for a while.
    pub suspect: Option<NodeHandle>,
}

impl Cluster {
    /// Takes what a node tells of work that has failed, as its worker or on its target: it is queued
    /// again at once. Returns whether anything was on its way there.
    pub fn work_failed(
        &mut self,
        lookup: &dyn BlockLookup,
        reporter: NodeHandle,
        failed: &FailedWork,
        now: Now,
    ) -> bool {
        let facts = lookup.block(failed.block.group()).filter(|facts| facts.gs == failed.gs);
        let Some(facts) = facts else { return false };
        let own = (failed.block.group(), failed.block.unit());
        // A member of a contiguous group is known by its slot, but while it gets copies of its own.
        let slots = std::iter::once(own).chain(facts.group);
        let mut was_coming = false;
        for slot in slots {
            was_coming |= self.slot_failed(lookup, reporter, (failed, slot), now);
        }
        was_coming
    }

    fn slot_failed(
        &mut self,
        lookup: &dyn BlockLookup,
        reporter: NodeHandle,
        (failed, (id, unit)): (&FailedWork, (BlockId, UnitIndex)),
        now: Now,
    ) -> bool {
        let nodes = &self.nodes;
        let node_of = |task: &Task| nodes.node_of(task.storage);
        let takes_part = |task: &Task| {
            task.is_sent && (task.worker == Some(reporter) || node_of(task) == reporter)
        };
        // One that has no part in it cannot know.
        if !self.work.coming(id).iter().any(takes_part) {
            return false;
        }
        let is_it =
            |task: &Task| task.is_sent && task.unit == unit && node_of(task) == failed.target;
        if !self.work.give_up(id, is_it) {
            return false;
        }
        self.work.failed(id, failed.suspect, &self.config, now);
        self.check_redundancy(lookup, id);
        self.rounds.hurry();
        true
    }
}
