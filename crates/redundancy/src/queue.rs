//! Blocks with too little redundancy, those nearest to loss first.
//!
//! A block for which nothing can be done now is put aside: it is queued and counted, but not looked at
//! until its time comes, its own state changes, or the cluster does. So it costs nothing and holds no
//! other up.
//!
//! Source: Hadoop 3.5.0 `LowRedundancyBlocks`. Deviation: Hadoop looks at such blocks in every round.

use crate::number_set::NumberSet;
use crate::places::map::{number_of, numbered};
use crate::stats::{ClusterStats, MARGINS, Margin};
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

impl Priority {
    /// All of them, the nearest first.
    pub const ALL: [Priority; 5] = [
        Priority::Highest,
        Priority::VeryLow,
        Priority::Low,
        Priority::BadlyDistributed,
        Priority::Corrupt,
    ];
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

    /// The class of [`ClusterStats::margins`] that such a block is in. What is on nodes that leave is there still.
    fn margin(&self) -> usize {
        let needed = self.striped_data_units.unwrap_or(1);
        match (self.live + self.leaving).checked_sub(needed) {
            None => 0,
            Some(losses) => (losses + 1).min(MARGINS - 1),
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

/// A risk in eight bytes: after a start millions of blocks can be queued until the last reports are in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Packed {
    live: u16,
    leaving: u16,
    expected: u16,
    /// [`REPLICATED`] for none.
    striped_data_units: u8,
    parity_units: u8,
}

/// No group has as many data units.
const REPLICATED: u8 = u8::MAX;

impl From<&Risk> for Packed {
    fn from(risk: &Risk) -> Packed {
        let number = |count: usize| u16::try_from(count).unwrap_or(u16::MAX);
        let units = |count: usize| u8::try_from(count).unwrap_or(u8::MAX).min(REPLICATED - 1);
        Packed {
            live: number(risk.live),
            leaving: number(risk.leaving),
            expected: number(risk.expected),
            striped_data_units: risk.striped_data_units.map_or(REPLICATED, units),
            parity_units: units(risk.parity_units),
        }
    }
}

impl Packed {
    fn risk(self) -> Risk {
        let Packed { striped_data_units: units, .. } = self;
        Risk {
            live: usize::from(self.live),
            leaving: usize::from(self.leaving),
            expected: usize::from(self.expected),
            striped_data_units: (units != REPLICATED).then_some(usize::from(units)),
            parity_units: usize::from(self.parity_units),
        }
    }

    fn level(self) -> usize {
        self.risk().priority() as usize
    }
}

/// What was in the way of a block in the queues.
#[derive(Clone, Copy, Debug, Default)]
struct Hindered {
    /// When to look at it again, if it was put aside.
    wake_ms: Option<u64>,
    /// How often it was put aside in a row.
    naps: u32,
    /// Since when no node could take what it lacks.
    cramped_ms: Option<u64>,
}

/// The queues, each in the order of block ids.
#[derive(Clone, Debug, Default)]
pub struct Queues {
    levels: [NumberSet; 5],
    /// Those of each level that were not put aside.
    awake: [NumberSet; 5],
    /// Those that were, by the time to look at them again.
    aside: BTreeSet<(u64, BlockId)>,
    places: BTreeMap<BlockId, Packed>,
    /// Those of them that something was in the way of.
    hindered: BTreeMap<BlockId, Hindered>,
    /// How many of each level are blocks, and how many groups.
    counts: [[u64; 2]; 5],
    /// The same by how many more losses they survive.
    margins: [[u64; 2]; MARGINS],
    /// Blocks without a good replica that are meant to have one only.
    lone: u64,
}

impl Queues {
    /// Puts a block where its risk wants it, taking it from where it was. It is looked at with the next
    /// round, also if it was put aside.
    pub fn put(&mut self, id: BlockId, risk: &Risk) {
        let packed = Packed::from(risk);
        let is_as_before = self.places.get(&id) == Some(&packed);
        let before = self.hindered.get(&id).copied().unwrap_or_default();
        self.remove(id);
        self.places.insert(id, packed);
        self.note(id, packed, |count| *count += 1);
        let naps = if is_as_before { before.naps } else { 0 };
        if naps > 0 || before.cramped_ms.is_some() {
            self.hindered.insert(id, Hindered { wake_ms: None, naps, ..before });
        }
        self.levels[packed.level()].insert(number_of(id));
        self.awake[packed.level()].insert(number_of(id));
    }

    /// Takes a block out. Returns whether it was queued.
    pub fn remove(&mut self, id: BlockId) -> bool {
        let Some(packed) = self.places.remove(&id) else { return false };
        self.note(id, packed, |count| *count -= 1);
        self.awake[packed.level()].remove(number_of(id));
        if let Some(wake_ms) = self.hindered.remove(&id).and_then(|hindered| hindered.wake_ms) {
            self.aside.remove(&(wake_ms, id));
        }
        self.levels[packed.level()].remove(number_of(id));
        true
    }

    /// Where a block is queued.
    pub fn priority(&self, id: BlockId) -> Option<Priority> {
        self.places.get(&id).map(|packed| packed.risk().priority())
    }

    /// Puts a block aside until `wake_ms`, a time of the monotonic clock.
    pub(crate) fn put_aside(&mut self, id: BlockId, wake_ms: u64) {
        let Some(packed) = self.places.get(&id) else { return };
        let hindered = self.hindered.entry(id).or_default();
        if let Some(before) = hindered.wake_ms.replace(wake_ms) {
            self.aside.remove(&(before, id));
        }
        hindered.naps = hindered.naps.saturating_add(1);
        self.awake[packed.level()].remove(number_of(id));
        self.aside.insert((wake_ms, id));
    }

    /// How often a block was put aside in a row.
    pub(crate) fn naps(&self, id: BlockId) -> u32 {
        self.hindered.get(&id).map_or(0, |hindered| hindered.naps)
    }

    /// No node can take what a block lacks. Returns since when that is so.
    pub(crate) fn note_no_room(&mut self, id: BlockId, now_ms: u64) -> u64 {
        if !self.places.contains_key(&id) {
            return now_ms;
        }
        *self.hindered.entry(id).or_default().cramped_ms.get_or_insert(now_ms)
    }

    /// Some node could.
    pub(crate) fn note_room(&mut self, id: BlockId) {
        if let Some(hindered) = self.hindered.get_mut(&id) {
            hindered.cramped_ms = None;
        }
    }

    /// Takes back those that were put aside until `now_ms` or before.
    pub(crate) fn wake(&mut self, now_ms: u64) {
        while let Some((_, id)) = self.aside.first().copied().filter(|(ms, _)| *ms <= now_ms) {
            self.aside.pop_first();
            if let Some(hindered) = self.hindered.get_mut(&id) {
                hindered.wake_ms = None;
            }
            if let Some(packed) = self.places.get(&id) {
                self.awake[packed.level()].insert(number_of(id));
            }
        }
    }

    /// Takes back all that were put aside: the cluster has changed.
    pub(crate) fn wake_all(&mut self) {
        self.wake(u64::MAX);
    }

    /// Up to `limit` blocks of a level with ids after `after`, in order, without those put aside.
    pub fn after(&self, level: Priority, after: Option<BlockId>, limit: usize) -> Vec<BlockId> {
        let first = after.map_or(Some(i64::MIN), |after| number_of(after).checked_add(1));
        let waiting = |first| self.awake[level as usize].iter_from(first);
        first.into_iter().flat_map(waiting).take(limit).map(numbered).collect()
    }

    /// The blocks of a level, in order.
    pub fn level(&self, level: Priority) -> impl Iterator<Item = BlockId> + '_ {
        self.levels[level as usize].iter_from(i64::MIN).map(numbered)
    }

    /// All queued blocks and groups.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether nothing is queued.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Changes the counts that a block or group is part of.
    fn note(&mut self, id: BlockId, packed: Packed, change: impl Fn(&mut u64)) {
        let level = packed.level();
        let kind = usize::from(id.has_units());
        change(&mut self.counts[level][kind]);
        change(&mut self.margins[packed.risk().margin()][kind]);
        let is_lone = packed.striped_data_units == REPLICATED && packed.expected == 1;
        if is_lone && level == Priority::Corrupt as usize {
            change(&mut self.lone);
        }
    }

    /// Makes what is kept not fit together, to see that this is noticed.
    #[cfg(test)]
    pub(crate) fn damage(&mut self) {
        self.lone += 1;
    }

    /// Panics if what is kept does not fit together.
    pub(crate) fn check_invariants(&self) {
        self.check_some(BlockId(i64::MIN), usize::MAX);
        let mut anew = Queues::default();
        for (id, packed) in &self.places {
            anew.note(*id, *packed, |count| *count += 1);
        }
        let counts = |queues: &Queues| (queues.counts, queues.margins, queues.lone);
        assert_eq!(counts(self), counts(&anew), "what is queued, counted");
        let queued: usize = self.levels.iter().map(NumberSet::len).sum();
        assert_eq!(queued, self.places.len(), "blocks at all levels");
        assert!(self.hindered.keys().all(|id| self.places.contains_key(id)));
        let put_aside = self.hindered.values().filter(|hindered| hindered.wake_ms.is_some());
        assert_eq!(put_aside.count(), self.aside.len(), "blocks that were put aside");
    }

    /// The same of so many blocks from one on, by themselves. Returns the next, if there is one.
    pub(crate) fn check_some(&self, first: BlockId, count: usize) -> Option<BlockId> {
        let mut queued = self.places.range(first..);
        for (id, packed) in queued.by_ref().take(count) {
            let is_in = |sets: &[NumberSet]| sets[packed.level()].contains(number_of(*id));
            assert!(is_in(&self.levels), "{id} is at no level");
            let wake_ms = self.hindered.get(id).and_then(|hindered| hindered.wake_ms);
            assert_eq!(is_in(&self.awake), wake_ms.is_none(), "{id} is aside until {wake_ms:?}");
            let wakes = wake_ms.is_none_or(|wake_ms| self.aside.contains(&(wake_ms, *id)));
            assert!(wakes, "nobody wakes {id}");
        }
        queued.next().map(|(id, _)| *id)
    }

    /// Adds what is queued to the figures of the cluster. Looks at none of them: there can be millions.
    pub(crate) fn count(&self, stats: &mut ClusterStats) {
        stats.margins = self.margins.map(|[blocks, groups]| Margin { blocks, groups });
        let (blocks, groups) = (&mut stats.replicated, &mut stats.groups);
        let of = |level: Priority| self.counts[level as usize];
        let queued = |kind: usize| self.counts.iter().map(|counts| counts[kind]).sum::<u64>();
        let [lost_blocks, lost_groups] = of(Priority::Corrupt);
        blocks.missing += lost_blocks;
        groups.missing += lost_groups;
        blocks.missing_one_copy += self.lone;
        blocks.low_redundancy += queued(0) - lost_blocks;
        groups.low_redundancy += queued(1) - lost_groups;
        let [highest_blocks, highest_groups] = of(Priority::Highest);
        blocks.highest_priority += highest_blocks;
        groups.highest_priority += highest_groups;
        let [badly_spread_blocks, badly_spread_groups] = of(Priority::BadlyDistributed);
        blocks.badly_distributed += badly_spread_blocks;
        groups.badly_distributed += badly_spread_groups;
    }
}

#[cfg(test)]
mod tests;
