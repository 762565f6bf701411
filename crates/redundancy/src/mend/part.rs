//! Units of one group on one node, where there are nodes enough for each to have its own: parted again.
//!
//! They came together when a group had more units than nodes were left (`mend::evacuate`). Nobody walks
//! over all blocks for them: the groups are remembered, and looked at when a node comes.

use super::schedule::{Job, Obstacle, Scheduled, copy_of_unit};
use crate::clock::Dice;
use crate::cluster::Cluster;
use crate::handle::NodeHandle;
use crate::slots::Slots;
use cairn_stripe::UnitIndex;
use std::collections::BTreeMap;

impl Cluster {
    /// Copies one unit from a node that has several to one that has none; nothing if there is no such
    /// unit, or no such node.
    pub(super) fn part(&mut self, job: Job<'_>, dice: Dice<'_>) -> Option<Scheduled> {
        let Job { slots, level, .. } = job;
        let Slots { id, facts, .. } = slots;
        let need = self.need_of(*id, facts, &self.tally_of(slots));
        if !need.should_part() || !self.work.coming(*id).is_empty() {
            return None;
        }
        let mut units: BTreeMap<NodeHandle, Vec<UnitIndex>> = BTreeMap::new();
        let with_bytes = self.places_of(slots).filter(|p| facts.has_bytes(p.unit));
        for place in with_bytes.filter(|place| self.is_live(place)) {
            units.entry(self.storage(place.storage).node).or_default().push(place.unit);
        }
        let (_, crowd) = units.into_iter().max_by_key(|(_, units)| units.len())?;
        let unit = *crowd.last()?;
        let source = match self.source(job, Some(unit), &mut *dice) {
            Ok(source) => source,
            Err(obstacle) => return Some(Err(obstacle)),
        };
        let target = match self.targets(job, 1, false, dice).first() {
            Some(target) => *target,
            None => return Some(Err(Obstacle::Stuck)),
        };
        let worker = self.storage(source).node;
        self.queue_transfer(worker, level, copy_of_unit(slots, unit, vec![target]));
        Some(Ok(vec![(worker, vec![(target, unit)])]))
    }
}
