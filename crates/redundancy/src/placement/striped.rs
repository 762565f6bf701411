//! Units of a group over as many racks as there are, as evenly as they allow.

use super::candidates::{Choice, pick};
use super::{Chosen, PlacementRequest};
use crate::clock::{Dice, Now};
use crate::cluster::Cluster;
use crate::node::DataNode;

/// Always takes from the rack that has fewest of the group; among those at random, weighted by the
/// nodes that each could give, so that small racks do not fill up first. That is as even as racks
/// and their free nodes allow, whatever their sizes.
///
/// Deviation: Hadoop's `BlockPlacementPolicyRackFaultTolerant` tries random nodes under a limit per
/// rack and raises the limit when it finds none; the outcome it aims at is the same. To keep off slow nodes no rack
/// gets more than an even share.
pub(super) fn choose(
    cluster: &Cluster,
    request: &PlacementRequest<'_>,
    now: Now,
    dice: Dice<'_>,
) -> Chosen {
    let racks = cluster.racks().len().max(1);
    let share = (request.existing.len() + request.count).div_ceil(racks);
    Choice::new(cluster, request, now).relax(|choice| {
        let favored = request.favored;
        take_local(choice, cluster, request);
        while !choice.is_done() {
            let mut open = choice.open_nodes();
            let count = |node: &DataNode| choice.per_rack.get(node.rack.as_str()).copied();
            if choice.strictness.quick {
                open.retain(|node| count(node).unwrap_or(0) < share);
            }
            let least = open.iter().map(|node| count(node).unwrap_or(0)).min();
            let mut best: Vec<&DataNode> = open
                .into_iter()
                .filter(|node| count(node).unwrap_or(0) == least.unwrap_or(0))
                .collect();
            if best.iter().any(|node| favored.contains(&node.handle)) {
                best.retain(|node| favored.contains(&node.handle));
            }
            choice.prefer(&mut best, |node| node.handle);
            let Some(node) = pick(&best, dice).copied() else { return };
            if !choice.take(node) {
                return;
            }
        }
    })
}

/// Gives the first node chosen to unit 0, those that follow to parity, and the rest to the other data units. Any first
/// few of a choice are spread evenly, and a group with data in its first units only has just those.
pub(super) fn by_index(mut chosen: Chosen, data_units: usize) -> Chosen {
    let parity_units = chosen.len().saturating_sub(data_units);
    if let Some(after_first) = chosen.get_mut(1..) {
        after_first.rotate_left(parity_units);
    }
    chosen
}

/// The first unit goes to the writer's own node, if it is the only one on its host.
fn take_local<'a>(choice: &mut Choice<'a>, cluster: &'a Cluster, request: &PlacementRequest<'a>) {
    let begun = !request.existing.is_empty() || !choice.chosen.is_empty();
    if begun || request.avoid_local || request.writer.is_empty() || choice.is_done() {
        return;
    }
    let mut local = cluster.nodes_on_host(request.writer);
    if let (Some(node), None) = (local.next(), local.next()) {
        choice.take(node);
    }
}
