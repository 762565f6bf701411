//! Hadoop's default rule for replicas.

use super::candidates::Choice;
use super::{Chosen, PlacementRequest};
use crate::clock::{Dice, Now};
use crate::cluster::Cluster;
use crate::node::DataNode;
use crate::ordering::Reader;

pub(super) fn choose(
    cluster: &Cluster,
    request: &PlacementRequest<'_>,
    now: Now,
    dice: Dice<'_>,
) -> Chosen {
    let per_rack_max = rack_limit(cluster, request.existing.len() + request.count);
    let mut choice = Choice::new(cluster, request, now);
    choice.distinct_domains = cluster.config().upgrade_domain_factor.unwrap_or(0);
    let mut chosen = choice.relax(|choice| {
        fill(choice, cluster, request, per_rack_max, dice);
    });
    sort_pipeline(cluster, request, &mut chosen);
    chosen
}

/// Replicas of a block that may be in one rack.
///
/// Source: Hadoop 3.5.0 `BlockPlacementPolicyDefault#getMaxNodesPerRack`.
fn rack_limit(cluster: &Cluster, copies: usize) -> usize {
    let racks = cluster.racks().len();
    if racks <= 1 || copies <= 1 {
        return copies;
    }
    let limit = (copies - 1) / racks + 2;
    // With as many as all of them in one rack, the block would have no second rack.
    if limit == copies { limit - 1 } else { limit }
}

fn fill<'a>(
    choice: &mut Choice<'a>,
    cluster: &'a Cluster,
    request: &PlacementRequest<'a>,
    per_rack_max: usize,
    dice: &mut dyn FnMut() -> u64,
) {
    for favored in request.favored {
        if !choice.is_done() {
            choice.take(cluster.node(*favored));
        }
    }
    while !choice.is_done() {
        let at = request.existing.len() + choice.chosen.len();
        let limits: Vec<(String, usize)> =
            choice.per_rack.iter().map(|(rack, n)| (rack.to_string(), *n)).collect();
        let used = |rack: &str| limits.iter().find(|(r, _)| r == rack).map_or(0, |(_, n)| *n);
        let free = |node: &DataNode| used(&node.rack) < per_rack_max;
        let placed = placed_nodes(choice, cluster, request);
        let taken = match at {
            0 => first(choice, cluster, request, dice),
            1 => {
                let rack = placed.first().map(|node| node.rack.clone()).unwrap_or_default();
                choice.take_random(|n| free(n) && n.rack != rack, dice).is_some()
            }
            2 => third(choice, &placed, &free, dice),
            _ => false,
        };
        if !taken && choice.take_random(free, dice).is_none() {
            // Fewer racks have room than the limit counts on: any node is better than none, but slow ones elsewhere
            // come first.
            if choice.strictness.quick || choice.take_random(|_| true, dice).is_none() {
                return;
            }
        }
    }
}

fn placed_nodes<'a>(
    choice: &Choice<'a>,
    cluster: &'a Cluster,
    request: &PlacementRequest<'a>,
) -> Vec<&'a DataNode> {
    let storages = request.existing.iter().chain(&choice.chosen);
    storages.map(|storage| cluster.node(cluster.storage(*storage).node)).collect()
}

/// The writer's own node, or one of its rack, or any.
fn first<'a>(
    choice: &mut Choice<'a>,
    cluster: &'a Cluster,
    request: &PlacementRequest<'a>,
    dice: &mut dyn FnMut() -> u64,
) -> bool {
    if request.writer.is_empty() {
        return choice.take_random(|_| true, dice).is_some();
    }
    let local: Vec<&DataNode> = cluster.nodes_on_host(request.writer).collect();
    let is_local = |node: &DataNode| local.iter().any(|l| l.handle == node.handle);
    // Many DataNodes on one host, as in a test cluster, would all be local: then none is special.
    let alone_on_host = local.len() == 1;
    if alone_on_host && !request.avoid_local && choice.take_random(is_local, dice).is_some() {
        return true;
    }
    let own_rack = match (alone_on_host, request.writer_rack) {
        (_, Some(rack)) => Some(rack),
        (true, None) => local.first().map(|node| node.rack.as_str()),
        (false, None) => None,
    };
    let allowed = |node: &DataNode| !(request.avoid_local && is_local(node));
    if let Some(rack) = own_rack
        && choice.take_random(|n| n.rack == rack && allowed(n), dice).is_some()
    {
        return true;
    }
    choice.take_random(allowed, dice).is_some()
}

/// A third replica goes to the second one's rack; if the first two share a rack, to another one.
fn third(
    choice: &mut Choice<'_>,
    placed: &[&DataNode],
    free: &dyn Fn(&DataNode) -> bool,
    dice: &mut dyn FnMut() -> u64,
) -> bool {
    let [first, second, ..] = placed else { return false };
    let wanted: &dyn Fn(&DataNode) -> bool = if first.rack == second.rack {
        &|node| node.rack != first.rack
    } else {
        &|node| node.rack == second.rack
    };
    choice.take_random(|n| free(n) && wanted(n), dice).is_some()
}

/// Orders a pipeline so that each hop is short, beginning at the writer.
///
/// Source: Hadoop 3.5.0 `BlockPlacementPolicyDefault#getPipeline`.
fn sort_pipeline(cluster: &Cluster, request: &PlacementRequest<'_>, chosen: &mut Chosen) {
    let mut from = Reader { host: request.writer, rack: request.writer_rack };
    if from.host.is_empty() && from.rack.is_none() {
        return;
    }
    for at in 0..chosen.len() {
        let hop = |storage: &crate::StorageHandle| {
            cluster.distance(&from, cluster.node(cluster.storage(*storage).node))
        };
        let nearest = (at..chosen.len()).min_by_key(|i| hop(&chosen[*i])).unwrap_or(at);
        chosen[at..=nearest].rotate_right(1);
        let node = cluster.node(cluster.storage(chosen[at]).node);
        from = Reader { host: "", rack: Some(&node.rack) };
    }
}
