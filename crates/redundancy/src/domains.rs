//! Upgrade domains: nodes that are restarted together, over which the replicas of a block are spread.
//!
//! New replicas are placed so (`placement`). Replicas that share a domain because the domains were set or
//! changed later are parted: one is copied to a domain that has none, then one that shares is surplus.
//! Where there are fewer domains than there should be, as many as there are will do.
//!
//! Source: Hadoop 3.5.0 `BlockPlacementPolicyWithUpgradeDomain`, `BlockPlacementStatusWithUpgradeDomain`.

use crate::block::{BlockFacts, Layout};
use crate::cluster::Cluster;
use crate::handle::{NodeHandle, StorageHandle};
use cairn_stripe::BlockId;
use std::collections::BTreeSet;

impl Cluster {
    /// Nodes that would not better the spread of a block that has all its replicas: those on its racks if
    /// it needs more of these, else those in its domains. Of a contiguous group, those on racks that have all that they should,
    /// or as much as the rack that has most would have after.
    pub(crate) fn crowded_nodes(
        &self,
        id: BlockId,
        facts: &BlockFacts,
        existing: &[StorageHandle],
    ) -> Vec<NodeHandle> {
        let own = || existing.iter().map(|storage| self.node(self.storage(*storage).node));
        if let Layout::Parity { .. } = facts.layout {
            let on_rack = |rack: &str| own().filter(|node| node.rack == rack).count();
            let crowd = own().map(|node| on_rack(&node.rack)).max().unwrap_or(0);
            let most = self.limits().per_rack_max(facts).max(crowd.saturating_sub(1));
            let is_full = |rack: &str| on_rack(rack) >= most;
            return self
                .nodes()
                .filter(|node| is_full(&node.rack))
                .map(|node| node.handle)
                .collect();
        }
        let tally = self.tally(id, facts);
        if self.need_of(id, facts, &tally).lacks_domains_only() {
            let domains: BTreeSet<String> = own().map(|node| node.upgrade_domain()).collect();
            let crowded = self.nodes().filter(|node| domains.contains(&node.upgrade_domain()));
            return crowded.map(|node| node.handle).collect();
        }
        let racks: BTreeSet<&str> = own().map(|node| node.rack.as_str()).collect();
        let crowded = self.nodes().filter(|node| racks.contains(node.rack.as_str()));
        crowded.map(|node| node.handle).collect()
    }

    /// Notes which nodes are restarted together with which others. Blocks that are spread badly by that
    /// are looked for with the next ticks.
    pub fn set_upgrade_domain(&mut self, handle: NodeHandle, domain: Option<String>) {
        let node = self.nodes.node_mut(handle);
        if std::mem::replace(&mut node.upgrade_domain, domain.clone()) != domain {
            self.count_racks();
            if self.config.upgrade_domain_factor.is_some() {
                self.walks.scan().repeat();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::fixture::*;
    use crate::*;
    use std::collections::BTreeSet;

    /// Eight nodes on two racks, with upgrade domains of two nodes each, across racks.
    fn world(factor: usize) -> World {
        let mut world = World::new(8, 2);
        let config =
            Config { upgrade_domain_factor: Some(factor), ..world.cluster.config().clone() };
        world.cluster.set_config(config);
        world
    }

    fn set_domains(world: &mut World, domain: impl Fn(usize) -> String) {
        for node in 0..8 {
            let handle = world.handle(node);
            world.cluster.set_upgrade_domain(handle, Some(domain(node)));
        }
    }

    /// Does what nodes are told, until nobody is told anything any more.
    fn obey(world: &mut World) {
        for _ in 0..30 {
            for (node, commands) in world.run(6000, &[]) {
                for command in commands {
                    match command {
                        Command::Transfer(works) => works.iter().for_each(|work| {
                            let target = world.number(work.targets[0]);
                            world.received(target, work.block);
                        }),
                        Command::Invalidate(blocks) => blocks.iter().for_each(|block| {
                            world.deleted(node, *block);
                        }),
                        _ => {}
                    }
                }
            }
        }
    }

    fn domains(world: &World, domain: impl Fn(usize) -> String) -> (usize, usize) {
        let places = world.places(block(1));
        let domains: BTreeSet<String> = places.iter().map(|(node, _)| domain(*node)).collect();
        (places.len(), domains.len())
    }

    #[test]
    fn replicas_that_share_a_domain_since_it_was_set_are_parted() {
        for (factor, count, wanted) in [(3, 4, 3), (2, 4, 2), (3, 2, 2)] {
            let mut world = world(factor);
            world.store(block(1), replicated(3, 100, BlockState::Complete), &[0, 1, 2]);
            obey(&mut world);
            assert_eq!(world.places(block(1)), [(0, 0), (1, 0), (2, 0)], "each is its own domain");
            let domain = |node: usize| format!("ud{}", if node < 3 { 0 } else { node % count });
            set_domains(&mut world, domain);
            obey(&mut world);
            let (copies, found) = domains(&world, domain);
            assert!(
                copies == 3 && found >= wanted,
                "factor {factor}: {:?}",
                world.places(block(1))
            );
            let racks: BTreeSet<usize> =
                world.places(block(1)).iter().map(|(node, _)| node % 2).collect();
            assert_eq!(racks.len(), 2);
            assert_eq!(world.cluster.queues().len(), 0);
        }
    }

    #[test]
    fn domains_that_are_not_there_are_not_waited_for() {
        let mut world = world(3);
        world.store(block(1), replicated(3, 100, BlockState::Complete), &[0, 1, 2]);
        set_domains(&mut world, |_| "one".to_string());
        obey(&mut world);
        assert_eq!(world.places(block(1)), [(0, 0), (1, 0), (2, 0)]);
        assert_eq!(world.cluster.queues().len(), 0);
    }
}
