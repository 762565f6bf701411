//! What a block needs: a pure function of what it has, what is on its way, what it should be, and the cluster's width.
//!
//! Reports, rounds of scheduling and the handing out of work all ask here, so that what one of them takes for lacking or
//! surplus is the same for the others. Tested in `need/tests.rs`, where the queues are compared with it.

use crate::block::{BlockFacts, Layout};
use crate::nodes::Shares;
use crate::queue::Risk;
use crate::tally::Tally;
use cairn_stripe::UnitIndex;

#[cfg(test)]
mod tests;

/// What the cluster as a whole can give, and what an administrator has set.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Limits {
    /// Racks with live nodes in service.
    pub racks: usize,
    /// Live nodes in service.
    pub serving: usize,
    /// Upgrade domains of these.
    pub domains: usize,
    /// By how many units a group has: how many of them one rack has at least to take.
    pub shares: Shares,
    /// Upgrade domains that the replicas of a block should be in, where domains count.
    pub domain_factor: Option<usize>,
    /// Live replicas that a block must have, whatever is in maintenance.
    pub maintenance_min: u16,
}

impl Limits {
    /// Racks that the replicas or units of a block should be on.
    ///
    /// Source: Hadoop 3.5.0 `BlockPlacementPolicyDefault#verifyBlockPlacement`,
    /// `BlockPlacementPolicyRackFaultTolerant#verifyBlockPlacement`.
    pub(crate) fn wanted_racks(&self, facts: &BlockFacts) -> usize {
        let most = match facts.layout {
            // How many are on one rack counts, not on how many they are.
            Layout::Parity { .. } => return 0,
            Layout::Striped { .. } => usize::MAX,
            Layout::Replicated { .. } => 2,
        };
        most.min(facts.expected_units()).min(self.racks)
    }

    /// Units of a contiguous group that one rack should have at most: no more than may be lost, or as few as racks and
    /// their nodes allow.
    pub(crate) fn per_rack_max(&self, facts: &BlockFacts) -> usize {
        let Layout::Parity { m, .. } = facts.layout else { return usize::MAX };
        let share = self.shares.get(facts.expected_units()).copied().unwrap_or(u8::MAX);
        usize::from(m.max(share))
    }

    /// Upgrade domains that the replicas of a block should be in; 0 where domains do not count.
    pub(crate) fn wanted_domains(&self, facts: &BlockFacts) -> usize {
        match self.domain_factor {
            Some(factor) if !facts.layout.has_units() => {
                factor.min(facts.expected_units()).min(self.domains)
            }
            _ => 0,
        }
    }

    /// Live replicas or units that a block must have, whatever is in maintenance.
    ///
    /// Source: Hadoop 3.5.0 `BlockManager#getMinMaintenanceStorageNum`.
    pub(crate) fn maintenance_min(&self, facts: &BlockFacts) -> usize {
        match facts.layout {
            Layout::Striped { .. } => facts.data_units(),
            // One may be lost while others are away: nothing else protects its members.
            Layout::Parity { .. } => facts.expected_units().min(facts.data_units() + 1),
            Layout::Replicated { .. } => {
                usize::from(self.maintenance_min).min(facts.expected_units())
            }
        }
    }
}

/// What one block or group needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Need {
    has_units: bool,
    data_units: usize,
    expected: usize,
    tally: Tally,
    /// Live replicas or units that there should be now.
    wanted: usize,
    /// Replicas on their way, or units that are not there: one that moves to another rack adds nothing.
    coming: usize,
    is_moving: bool,
    lacks_racks: bool,
    lacks_domains: bool,
    should_part: bool,
}

impl Need {
    /// What a block or group needs that has that, and to which those units are on their way.
    pub(crate) fn of(
        facts: &BlockFacts,
        tally: &Tally,
        coming: impl Iterator<Item = UnitIndex>,
        limits: &Limits,
    ) -> Need {
        let has_units = facts.layout.has_units();
        let (mut all, mut units) = (0, 0_u32);
        for unit in coming {
            all += 1;
            units |= 1 << unit.0;
        }
        let new_units = (units & !tally.live_units).count_ones() as usize;
        // Those in maintenance need no substitute. Source: Hadoop 3.5.0 `BlockManager#getExpectedLiveRedundancyNum`.
        let without = facts.expected_units().saturating_sub(tally.maintenance);
        // Of a contiguous group nothing is moved before what an earlier move has left over is gone.
        let is_contiguous = matches!(facts.layout, Layout::Parity { .. });
        let is_settled = !is_contiguous || tally.duplicates + tally.excess == 0;
        Need {
            has_units,
            data_units: facts.data_units(),
            expected: facts.expected_units(),
            wanted: without.max(limits.maintenance_min(facts)),
            coming: if has_units { new_units } else { all },
            is_moving: all > 0,
            lacks_racks: tally.racks < limits.wanted_racks(facts)
                || is_settled && tally.on_one_rack > limits.per_rack_max(facts),
            lacks_domains: tally.domains < limits.wanted_domains(facts),
            should_part: has_units
                && is_settled
                && tally.sharing > 0
                && limits.serving >= facts.expected_units(),
            tally: tally.clone(),
        }
    }

    /// Live replicas or units that there should be now.
    pub(crate) fn wanted(&self) -> usize {
        self.wanted
    }

    /// How many more replicas or units are to be brought.
    pub(crate) fn lacking(&self) -> usize {
        self.wanted.saturating_sub(self.tally.live + self.coming)
    }

    /// Whether it is on as many racks and in as many upgrade domains as it should be, and no units share nodes that
    /// need not.
    pub(crate) fn is_spread(&self) -> bool {
        !self.lacks_racks && !self.lacks_domains && !self.should_part
    }

    /// Whether it is on enough racks, and in too few upgrade domains.
    pub(crate) fn lacks_domains_only(&self) -> bool {
        !self.lacks_racks && self.lacks_domains
    }

    /// Whether units share nodes although there are enough for each to have its own.
    pub(crate) fn should_part(&self) -> bool {
        self.should_part
    }

    /// Whether nothing is needed that is not on its way.
    pub(crate) fn is_met(&self) -> bool {
        self.lacking() == 0 && (self.is_moving || self.is_spread())
    }

    /// Whether all that there should be now is there, and no order to delete may take it.
    pub(crate) fn is_sure(&self) -> bool {
        self.tally.live - self.tally.doubted >= self.wanted
    }

    /// How near to loss it is, if it needs anything that is not on its way.
    pub(crate) fn risk(&self) -> Option<Risk> {
        let of_group = self.has_units.then_some(self.data_units);
        (!self.is_met()).then_some(Risk {
            live: self.tally.live,
            leaving: self.tally.leaving,
            expected: self.wanted,
            striped_data_units: of_group,
            parity_units: of_group.map_or(0, |data_units| self.expected - data_units),
        })
    }

    /// Whether one more good copy of a unit, or of a replica, does any good, whatever is on its way.
    pub(crate) fn wants_copy(&self, unit: UnitIndex) -> bool {
        let is_lacking = match self.has_units {
            true => !self.tally.is_live(unit),
            false => self.tally.live < self.wanted,
        };
        is_lacking || !self.is_spread()
    }

    /// Whether a copy that was chosen for deletion is to stay after all, if so many others do.
    pub(crate) fn keeps(&self, unit: UnitIndex, others: usize) -> bool {
        match self.has_units {
            true => !self.tally.is_live(unit),
            false => self.tally.live + others < self.expected,
        }
    }

    /// How many live ones are too many.
    pub(crate) fn surplus(&self) -> usize {
        match self.has_units {
            true => self.tally.duplicates,
            false => self.tally.live.saturating_sub(self.expected),
        }
    }
}
