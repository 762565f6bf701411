//! Blocks with too little redundancy, those nearest to loss first.
//!
//! A block for which nothing can be done now is put aside: it is queued and counted, but not looked at
//! until its time comes, its own state changes, or the cluster does. So it costs nothing and holds no
//! other up.
//!
//! Source: Hadoop 3.5.0 `LowRedundancyBlocks`. Deviation: Hadoop looks at such blocks in every round.

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

/// A block in the queues.
#[derive(Clone, Copy, Debug)]
struct Queued {
    risk: Risk,
    /// When to look at it again, if it was put aside.
    wake_ms: Option<u64>,
    /// How often it was put aside in a row.
    naps: u32,
    /// Since when no node could take what it lacks.
    cramped_ms: Option<u64>,
}

impl Queued {
    fn level(&self) -> usize {
        self.risk.priority() as usize
    }
}

/// The queues, each in the order of block ids.
#[derive(Clone, Debug, Default)]
pub struct Queues {
    levels: [BTreeSet<BlockId>; 5],
    /// Those of each level that were not put aside.
    awake: [BTreeSet<BlockId>; 5],
    /// Those that were, by the time to look at them again.
    aside: BTreeSet<(u64, BlockId)>,
    places: BTreeMap<BlockId, Queued>,
}

impl Queues {
    /// Puts a block where its risk wants it, taking it from where it was. It is looked at with the next
    /// round, also if it was put aside.
    pub fn put(&mut self, id: BlockId, risk: &Risk) {
        let before = self.places.get(&id);
        let naps = before.filter(|queued| queued.risk == *risk).map_or(0, |q| q.naps);
        let cramped_ms = before.and_then(|queued| queued.cramped_ms);
        self.remove(id);
        self.places.insert(id, Queued { risk: *risk, wake_ms: None, naps, cramped_ms });
        let level = risk.priority() as usize;
        self.levels[level].insert(id);
        self.awake[level].insert(id);
    }

    /// Takes a block out. Returns whether it was queued.
    pub fn remove(&mut self, id: BlockId) -> bool {
        let Some(queued) = self.places.remove(&id) else { return false };
        self.awake[queued.level()].remove(&id);
        if let Some(wake_ms) = queued.wake_ms {
            self.aside.remove(&(wake_ms, id));
        }
        self.levels[queued.level()].remove(&id)
    }

    /// Where a block is queued.
    pub fn priority(&self, id: BlockId) -> Option<Priority> {
        self.places.get(&id).map(|queued| queued.risk.priority())
    }

    /// Puts a block aside until `wake_ms`, a time of the monotonic clock.
    pub(crate) fn put_aside(&mut self, id: BlockId, wake_ms: u64) {
        let Some(queued) = self.places.get_mut(&id) else { return };
        if let Some(before) = queued.wake_ms.replace(wake_ms) {
            self.aside.remove(&(before, id));
        }
        queued.naps = queued.naps.saturating_add(1);
        self.awake[queued.level()].remove(&id);
        self.aside.insert((wake_ms, id));
    }

    /// How often a block was put aside in a row.
    pub(crate) fn naps(&self, id: BlockId) -> u32 {
        self.places.get(&id).map_or(0, |queued| queued.naps)
    }

    /// No node can take what a block lacks. Returns since when that is so.
    pub(crate) fn note_no_room(&mut self, id: BlockId, now_ms: u64) -> u64 {
        let queued = self.places.get_mut(&id);
        queued.map_or(now_ms, |queued| *queued.cramped_ms.get_or_insert(now_ms))
    }

    /// Some node could.
    pub(crate) fn note_room(&mut self, id: BlockId) {
        if let Some(queued) = self.places.get_mut(&id) {
            queued.cramped_ms = None;
        }
    }

    /// Takes back those that were put aside until `now_ms` or before.
    pub(crate) fn wake(&mut self, now_ms: u64) {
        while let Some((_, id)) = self.aside.first().copied().filter(|(ms, _)| *ms <= now_ms) {
            self.aside.pop_first();
            if let Some(queued) = self.places.get_mut(&id) {
                queued.wake_ms = None;
                self.awake[queued.level()].insert(id);
            }
        }
    }

    /// Takes back all that were put aside: the cluster has changed.
    pub(crate) fn wake_all(&mut self) {
        self.wake(u64::MAX);
    }

    /// Up to `limit` blocks of a level with ids after `after`, in order, without those put aside.
    pub fn after(&self, level: Priority, after: Option<BlockId>, limit: usize) -> Vec<BlockId> {
        use std::ops::Bound::{Excluded, Unbounded};
        let from = after.map_or(Unbounded, Excluded);
        self.awake[level as usize].range((from, Unbounded)).take(limit).copied().collect()
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
        for (id, Queued { risk, .. }) in &self.places {
            let priority = risk.priority();
            let one_copy = risk.striped_data_units.is_none() && risk.expected == 1;
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
                Priority::Corrupt if one_copy => blocks.missing_one_copy += 1,
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests;
