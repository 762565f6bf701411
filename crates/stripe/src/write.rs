//! Which streamers of a group still live: the plan of writing one block group.
//!
//! Decides when a failure needs a new generation stamp, who has to take it, how many bytes are safe,
//! when the group should end early, and when it is lost. Knows nothing of sockets; the caller reports
//! what happened.
//!
//! ```text
//! Streaming --failed--> Streaming --check--> Restamp --restamped--> Streaming
//!                          |                    \-- a unit fails while it takes the stamp: again
//!                          \-- more failures than tolerated: GroupLost
//! ```
//! Source: Hadoop 3.5.0 `DFSStripedOutputStream`. Tested exhaustively in `write/tests.rs`.

use crate::geometry::Geometry;
use crate::id::UnitIndex;

#[cfg(test)]
mod tests;

/// A unit of the group that is being written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Live,
    /// Failed, and not yet fenced off by a newer generation stamp.
    Failed,
    /// Failed, and every live unit has a newer stamp than its replica; or it never had a replica.
    Fenced,
}

/// What to do before more data is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// Nothing: go on.
    Continue,
    /// Let the live units flush, get a new generation stamp from the NameNode, reopen `units` with it,
    /// tell the NameNode with the acknowledged length, then call [`GroupWrite::restamped`].
    Restamp {
        /// Live units that have data, so that their DataNodes know the old stamp.
        units: Vec<UnitIndex>,
    },
}

/// More units failed than the writer may lose.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the number of failed blocks = {failed} > the number of failed blocks tolerated = {tolerated}"
)]
pub struct GroupLost {
    /// Units that failed.
    pub failed: usize,
    /// Units that may fail.
    pub tolerated: usize,
}

/// The state of one block group's units while it is written.
#[derive(Clone, Debug)]
pub struct GroupWrite {
    geometry: Geometry,
    tolerated: usize,
    /// Units that had a place.
    placed: usize,
    units: Vec<Unit>,
}

impl GroupWrite {
    /// A group just allocated. `allocated` tells for each unit whether the NameNode found a place for
    /// it; `tolerated` failures are survived, but never more than `m`.
    ///
    /// Fails when a data unit has no place (Hadoop's rule) or too many parity units have none.
    /// Panics if `allocated` has another length than `k + m` (caller's bug).
    pub fn new(
        geometry: Geometry,
        tolerated: usize,
        allocated: &[bool],
    ) -> Result<GroupWrite, GroupLost> {
        assert_eq!(allocated.len(), geometry.units(), "one place for each unit");
        let units =
            allocated.iter().map(|place| if *place { Unit::Live } else { Unit::Fenced }).collect();
        let tolerated = tolerated.min(geometry.m());
        let placed = allocated.iter().filter(|place| **place).count();
        let group = GroupWrite { geometry, tolerated, placed, units };
        if !allocated[..geometry.k()].iter().all(|place| *place) {
            return Err(GroupLost { failed: group.failed_count(), tolerated: 0 });
        }
        group.check_tolerated()?;
        Ok(group)
    }

    /// A unit can't be written any more. Repeats do no harm.
    pub fn failed(&mut self, unit: UnitIndex) {
        let unit = &mut self.units[unit.as_usize()];
        if *unit == Unit::Live {
            *unit = Unit::Failed;
        }
    }

    /// Whether data still goes to `unit`.
    pub fn is_live(&self, unit: UnitIndex) -> bool {
        self.units[unit.as_usize()] == Unit::Live
    }

    /// The units that data still goes to.
    pub fn live(&self) -> Vec<UnitIndex> {
        (0..self.units.len() as u8).map(UnitIndex).filter(|unit| self.is_live(*unit)).collect()
    }

    /// Units that failed or never had a place.
    pub fn failed_count(&self) -> usize {
        self.units.iter().filter(|unit| **unit != Unit::Live).count()
    }

    /// Whether computing parity is worth it: some parity unit is live.
    pub fn needs_parity(&self) -> bool {
        self.units[self.geometry.k()..].contains(&Unit::Live)
    }

    /// Whether the group should end at the stripe just written, and the next begin on other nodes: units
    /// failed, and so few are left that `margin` more failures would leave less than `k`. A group that
    /// was placed on so few does not end on that account: the next would be no better.
    ///
    /// Source: HDFS-17365, HDFS-17808; Hadoop 3.5.0 writes on until the group is full or lost.
    pub fn should_end(&self, margin: usize) -> bool {
        let live = self.live_count();
        live < self.placed && live < self.geometry.k() + margin.min(self.geometry.m())
    }

    /// How many units may be given up that have not failed, because they hold the others up: those
    /// without which `margin` failures are still survived, and one at least.
    pub fn spare(&self, margin: usize) -> usize {
        let needed = self.geometry.k() + margin.clamp(1, self.geometry.m());
        let tolerated = self.tolerated.saturating_sub(self.failed_count());
        self.live_count().saturating_sub(needed).min(tolerated)
    }

    fn live_count(&self) -> usize {
        self.units.len() - self.failed_count()
    }

    /// What the failures so far ask for, once `sent` data bytes of the group were handed to the
    /// streamers. To be called at the end of each stripe, where every unit is equally far.
    pub fn check(&self, sent: u64) -> Result<Next, GroupLost> {
        self.check_tolerated()?;
        if !self.units.contains(&Unit::Failed) {
            return Ok(Next::Continue);
        }
        let units = self.live().into_iter().filter(|unit| self.is_writing(*unit, sent)).collect();
        Ok(Next::Restamp { units })
    }

    /// Whether the group can end now that its last packets were sent: failures so late need no new
    /// stamp, they only must not be too many.
    pub fn check_end(&self) -> Result<(), GroupLost> {
        self.check_tolerated()
    }

    /// All of the units that [`check`](Self::check) named, and that did not fail meanwhile, have the
    /// new stamp. Tells whether the NameNode may be told: false when one failed on the way, after
    /// which [`check`](Self::check) asks for another stamp.
    pub fn restamped(&mut self, named: &[UnitIndex]) -> bool {
        if named.iter().any(|unit| !self.is_live(*unit)) {
            return false;
        }
        for unit in &mut self.units {
            if *unit == Unit::Failed {
                *unit = Unit::Fenced;
            }
        }
        true
    }

    /// Whether `unit` has data once `sent` data bytes of the group were handed over. A data unit
    /// behind the end of a short first stripe has none, and its DataNode was never called.
    ///
    /// Source: Hadoop 3.5.0 `DFSStripedOutputStream#isStreamerWriting`.
    pub fn is_writing(&self, unit: UnitIndex, sent: u64) -> bool {
        self.geometry.internal_block_len(sent, unit) > 0
    }

    /// Data bytes of the group that surely survive when the units have acknowledged these lengths,
    /// out of `sent`: whole stripes that `k` units have, and the short last one if `k` units have
    /// all of theirs. `acked` is `None` for a unit that failed.
    ///
    /// Source: Hadoop 3.5.0 `DFSStripedOutputStream#getAckedLength`. Deviation: whole cells only;
    /// Hadoop's figure may end inside a stripe when the units are apart.
    pub fn acked_len(&self, sent: u64, acked: &[Option<u64>]) -> u64 {
        let complete = acked.iter().enumerate().filter(|(unit, len)| {
            let full = self.geometry.internal_block_len(sent, UnitIndex(*unit as u8));
            len.is_some_and(|len| len >= full)
        });
        if complete.count() >= self.geometry.k() {
            return sent;
        }
        let lens: Vec<u64> = acked.iter().flatten().copied().collect();
        self.geometry.safe_len(&lens).unwrap_or(0).min(sent)
    }

    fn check_tolerated(&self) -> Result<(), GroupLost> {
        let failed = self.failed_count();
        if failed > self.tolerated {
            return Err(GroupLost { failed, tolerated: self.tolerated });
        }
        Ok(())
    }
}
