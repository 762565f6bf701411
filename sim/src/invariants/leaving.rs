//! A node is let go only when others have what it holds.

use crate::world::World;
use cairn_namespace::query::BlockInfo;
use cairn_namespace::{BlockState, Group};
use cairn_redundancy::{AdminState, Standing};
use cairn_replica::ReplicaState;
use cairn_stripe::{BlockId, UnitIndex};
use std::collections::BTreeSet;

/// Standings that hold no decommission up.
const LIVE_OR_AWAY: [Standing; 3] =
    [Standing::Live, Standing::EnteringMaintenance, Standing::InMaintenance];

impl World<'_> {
    /// Looks at what a node holds that was just let go.
    pub(crate) fn check_let_go(&mut self, node: usize, state: AdminState) {
        let held: BTreeSet<BlockId> = self.held(node).iter().map(|id| id.group()).collect();
        for id in held {
            if let Some((handle, _)) = self.name_node.handle_of(id)
                && let Some(group) = self.name_node.group_of(handle).filter(Group::is_formed)
            {
                let places = self.name_node.cluster.locations(id);
                let mut known = places.iter().map(|p| self.name_node.machine_of(p.storage));
                if known.any(|holder| holder == node) {
                    self.check_group_let_go(node, state, &group);
                }
                continue;
            }
            let Some(info) = self.name_node.block(id) else { continue };
            if info.block.packed.is_some() {
                continue;
            }
            let is_complete = info.block.state == BlockState::Complete;
            // What a node could not tell holds nobody back.
            let places = self.name_node.cluster.locations(id);
            let mut known = places.iter().map(|place| self.name_node.machine_of(place.storage));
            let is_known = known.any(|holder| holder == node);
            let counts = is_complete && is_known && self.holds_good(node, &info);
            if !counts || self.is_excused(id) {
                continue;
            }
            let Some(facts) = self.name_node.facts_of(id) else { continue };
            // `dfs.replication` and `dfs.namenode.maintenance.replication.min`, which are Hadoop's defaults here.
            let needed = match (state, id.is_striped()) {
                (AdminState::InMaintenance, true) => facts.data_units(),
                (AdminState::InMaintenance, false) => 1,
                (_, true) => facts.expected_units(),
                (_, false) => facts.expected_units().min(3),
            };
            let others = self.good_elsewhere(&info, node, &[Standing::Live]);
            let least = if id.is_striped() { facts.data_units() } else { 1 };
            // What is in maintenance needs no substitute.
            let with_away = self.good_elsewhere(&info, node, &LIVE_OR_AWAY);
            if others < least || with_away < needed {
                self.violate(format!(
                    "dn-{node} is {state:?}, and of {id} others have {others} or {with_away} where {needed} are needed"
                ));
                return;
            }
        }
    }

    fn check_group_let_go(&mut self, node: usize, state: AdminState, group: &Group) {
        let (live, all) = self.group_elsewhere(group, node, &[Standing::Live]);
        let (with_away, _) = self.group_elsewhere(group, node, &LIVE_OR_AWAY);
        let least = group.members().count();
        let needed = if state == AdminState::InMaintenance { least } else { all };
        let is_enough = live >= least && with_away >= needed;
        if !is_enough && !self.is_excused(group.handle) {
            self.violate(format!(
                "dn-{node} is {state:?}, and of {} others have {live} or {with_away} where {needed} are needed",
                group.handle
            ));
        }
    }

    /// Whether a block can do without a node: all of it is on others, which are in service.
    pub(crate) fn is_whole_without(&self, id: BlockId, node: usize) -> bool {
        if let Some((handle, _)) = self.name_node.handle_of(id)
            && let Some(group) = self.name_node.group_of(handle).filter(Group::is_formed)
        {
            let (live, all) = self.group_elsewhere(&group, node, &[Standing::Live]);
            return live == all;
        }
        let Some(info) = self.name_node.block(id) else { return true };
        let Some(facts) = self.name_node.facts_of(id) else { return true };
        let is_complete = info.block.state == BlockState::Complete;
        is_complete && self.good_elsewhere(&info, node, &[Standing::Live]) >= facts.expected_units()
    }

    fn holds_good(&self, node: usize, info: &BlockInfo) -> bool {
        let units = 0..info.redundancy.width() as u8;
        units.map(UnitIndex).any(|unit| self.is_good(node, info, unit))
    }

    /// Whether a node has a replica or unit that nothing is known to be wrong with.
    fn is_good(&self, node: usize, info: &BlockInfo, unit: UnitIndex) -> bool {
        let id = info.block.id;
        let own_id = if id.is_striped() { id.internal(unit) } else { id };
        self.nodes[node].replicas.get(&own_id).is_some_and(|stored| {
            stored.replica.state() == ReplicaState::Finalized
                && stored.replica.gs() == info.block.gs
                && stored.damaged.is_empty()
        })
    }

    /// Distinct units, or replicas, of such a standing that other nodes have, or have lost by a fault.
    fn good_elsewhere(&self, info: &BlockInfo, node: usize, standings: &[Standing]) -> usize {
        let id = info.block.id;
        let Some(facts) = self.name_node.facts_of(id) else { return 0 };
        let mut found = BTreeSet::new();
        for replica in self.name_node.cluster.replicas(id, &facts) {
            let other = self.name_node.machine_of(replica.storage);
            let counts = standings.contains(&replica.standing)
                && other != node
                && facts.has_bytes(replica.unit)
                && (self.has_failed(id, other, replica.unit)
                    || self.is_good(other, info, replica.unit));
            if counts {
                found.insert((replica.unit, if id.is_striped() { 0 } else { other }));
            }
        }
        found.len()
    }
}
