//! Blocks with too little redundancy, those nearest to loss first.
//!
//! Source: Hadoop 3.5.0 `LowRedundancyBlocks`.

use crate::stats::{BlockCounts, GroupCounts};
use cairn_stripe::BlockId;
use std::collections::{BTreeMap, BTreeSet};

/// How near to loss a block is; the smaller, the nearer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    /// One more loss and data is gone.
    Highest,
    /// Far below what it should have.
    VeryLow,
    /// Below what it should have.
    Low,
    /// Enough, but on too few racks.
    BadlyDistributed,
    /// Nothing left to mend it from.
    Corrupt,
}

/// What decides how near to loss a block is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Risk {
    /// Good replicas or distinct units on nodes in service.
    pub live: usize,
    /// More of these on nodes that leave.
    pub leaving: usize,
    /// What there should be.
    pub expected: usize,
    /// Data units of a group that hold bytes; none for a replicated block.
    pub striped_data_units: Option<usize>,
    /// Parity units of a group; 0 for a replicated block.
    pub parity_units: usize,
}

impl Risk {
    /// The queue for such a block.
    pub fn priority(&self) -> Priority {
        if self.live >= self.expected {
            return Priority::BadlyDistributed;
        }
        match self.striped_data_units {
            Some(k) => self.striped_priority(k),
            None => self.replicated_priority(),
        }
    }

    fn replicated_priority(&self) -> Priority {
        match self.live {
            0 if self.leaving > 0 => Priority::Highest,
            0 => Priority::Corrupt,
            1 => Priority::Highest,
            live if live * 3 < self.expected => Priority::VeryLow,
            _ => Priority::Low,
        }
    }

    fn striped_priority(&self, k: usize) -> Priority {
        if self.live < k && self.live + self.leaving < k {
            Priority::Corrupt
        } else if self.live <= k {
            Priority::Highest
        } else if (self.live - k) * 3 < self.parity_units + 1 {
            Priority::VeryLow
        } else {
            Priority::Low
        }
    }
}

/// The queues, each in the order of block ids.
#[derive(Clone, Debug, Default)]
pub struct Queues {
    levels: [BTreeSet<BlockId>; 5],
    /// The level of each queued block, and whether it is meant to have one copy only.
    places: BTreeMap<BlockId, (Priority, bool)>,
}

impl Queues {
    /// Puts a block where its risk wants it, taking it from where it was.
    pub fn put(&mut self, id: BlockId, risk: &Risk) {
        let priority = risk.priority();
        let one_copy = risk.striped_data_units.is_none() && risk.expected == 1;
        if let Some((old, _)) = self.places.insert(id, (priority, one_copy)) {
            self.levels[old as usize].remove(&id);
        }
        self.levels[priority as usize].insert(id);
    }

    /// Takes a block out. Returns whether it was queued.
    pub fn remove(&mut self, id: BlockId) -> bool {
        match self.places.remove(&id) {
            Some((priority, _)) => self.levels[priority as usize].remove(&id),
            None => false,
        }
    }

    /// Where a block is queued.
    pub fn priority(&self, id: BlockId) -> Option<Priority> {
        self.places.get(&id).map(|(priority, _)| *priority)
    }

    /// Up to `limit` blocks of a level with ids after `after`, in order.
    pub fn after(&self, level: Priority, after: Option<BlockId>, limit: usize) -> Vec<BlockId> {
        use std::ops::Bound::{Excluded, Unbounded};
        let from = after.map_or(Unbounded, Excluded);
        self.levels[level as usize].range((from, Unbounded)).take(limit).copied().collect()
    }

    /// The blocks of a level, in order.
    pub fn level(&self, level: Priority) -> impl Iterator<Item = BlockId> + '_ {
        self.levels[level as usize].iter().copied()
    }

    /// All queued blocks and groups.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether nothing is queued.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Adds what is queued to the figures of the cluster.
    pub(crate) fn count(&self, blocks: &mut BlockCounts, groups: &mut GroupCounts) {
        for (id, (priority, one_copy)) in &self.places {
            let (low, missing, highest, spread) = if id.is_striped() {
                let GroupCounts { low_redundancy, missing, highest_priority, .. } = groups;
                (low_redundancy, missing, highest_priority, &mut groups.badly_distributed)
            } else {
                let BlockCounts { low_redundancy, missing, highest_priority, .. } = blocks;
                (low_redundancy, missing, highest_priority, &mut blocks.badly_distributed)
            };
            match priority {
                Priority::Corrupt => *missing += 1,
                _ => *low += 1,
            }
            match priority {
                Priority::Highest => *highest += 1,
                Priority::BadlyDistributed => *spread += 1,
                Priority::Corrupt if *one_copy => blocks.missing_one_copy += 1,
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests;
