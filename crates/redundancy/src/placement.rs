//! Which storages get the replicas or units of a block.
//!
//! Every choice is of distinct nodes that are live, in service, not stale, not too busy, not called slow, with room for
//! a block on a storage of the wanted type. What is asked for and cannot be had is missing at the end of the answer:
//! the caller decides whether that is enough.
//!
//! Source: Hadoop 3.5.0 `BlockPlacementPolicyDefault`, `BlockPlacementPolicyRackFaultTolerant`.

use crate::clock::{Dice, Now};
use crate::cluster::Cluster;

mod candidates;
mod replicated;
mod request;
mod striped;

#[cfg(test)]
mod storage_types;
#[cfg(test)]
mod tests;

pub use request::{Chosen, PlacementRequest};

impl Cluster {
    /// Places replicas: the writer's own node first, then another rack, then the same other rack,
    /// then anywhere with at most `(copies - 1) / racks + 2` in a rack; sorted into a short pipeline.
    ///
    /// Source: Hadoop 3.5.0 `BlockPlacementPolicyDefault#chooseTarget`.
    pub fn choose_replicated(
        &self,
        request: &PlacementRequest<'_>,
        now: Now,
        dice: Dice<'_>,
    ) -> Chosen {
        replicated::choose(self, request, now, dice)
    }

    /// Places units of a group: distinct nodes, spread over racks as evenly as they allow.
    ///
    /// Source: Hadoop 3.5.0 `BlockPlacementPolicyRackFaultTolerant#chooseTargetInOrder`.
    pub fn choose_striped(
        &self,
        request: &PlacementRequest<'_>,
        now: Now,
        dice: Dice<'_>,
    ) -> Chosen {
        striped::choose(self, request, now, dice)
    }

    /// Places all units of a group of `data_units` and parity, in the order of their indices. Those that a short group
    /// has, its parity and the first data units, are as well spread as those of a long one; which it will be is
    /// not known yet.
    ///
    /// Deviation: Hadoop gives indices as nodes are chosen, and moves units of short groups when they are closed.
    pub fn choose_group(
        &self,
        request: &PlacementRequest<'_>,
        data_units: usize,
        now: Now,
        dice: Dice<'_>,
    ) -> Chosen {
        striped::by_index(striped::choose(self, request, now, dice), data_units)
    }
}
