//! In which order a reader gets the places of a block.

use crate::block::Location;
use crate::clock::{Dice, Now};
use crate::cluster::Cluster;
use crate::node::DataNode;

/// Who reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reader<'a> {
    /// Its address, as seen by the NameNode; empty if unknown.
    pub host: &'a str,
    /// Its rack, where that is known other than by a DataNode on the same host.
    pub rack: Option<&'a str>,
}

impl Reader<'_> {
    fn is_on(&self, node: &DataNode) -> bool {
        !self.host.is_empty() && (self.host == node.address.ip || self.host == node.address.host)
    }
}

/// Steps between two places of a network: 0 on one host, 2 within a rack, more across racks.
///
/// Source: Hadoop 3.5.0 `NetworkTopology#getDistance`.
pub fn rack_distance(a: &str, b: &str) -> usize {
    let common = a.split('/').zip(b.split('/')).take_while(|(x, y)| x == y).count();
    2 + (a.split('/').count() - common) + (b.split('/').count() - common)
}

impl Cluster {
    /// Distance from a reader to a node.
    pub fn distance(&self, reader: &Reader<'_>, node: &DataNode) -> usize {
        if reader.is_on(node) {
            return 0;
        }
        self.rack_of(reader).map_or(usize::MAX, |rack| rack_distance(rack, &node.rack))
    }

    fn rack_of<'a>(&'a self, reader: &Reader<'a>) -> Option<&'a str> {
        reader.rack.or_else(|| {
            let mut local = self.nodes_on_host(reader.host).filter(|_| !reader.host.is_empty());
            local.next().map(|node| node.rack.as_str())
        })
    }

    /// Sorts places for a reader: nearest first, equally near ones shuffled; then those that others call slow, where
    /// these are to be avoided, then stale nodes, then nodes that are entering maintenance, then those that are
    /// decommissioned. Corrupt places stay in: it is the caller who leaves them out or marks them.
    ///
    /// Source: Hadoop 3.5.0 `DatanodeManager#sortLocatedBlock`.
    pub fn sort_for_reader(
        &self,
        locations: &mut [Location],
        reader: &Reader<'_>,
        now: Now,
        dice: Dice<'_>,
    ) {
        use crate::node::AdminState::{Decommissioned, EnteringMaintenance, InMaintenance};
        // Looked up for those only who are not on a host of one of the places, and once.
        let mut found = None;
        let mut distance = |node: &DataNode| match reader.is_on(node) {
            true => 0,
            false => found
                .get_or_insert_with(|| self.rack_of(reader))
                .map_or(usize::MAX, |rack| rack_distance(rack, &node.rack)),
        };
        locations.sort_by_cached_key(|location| {
            let node = self.node(location.node);
            let last = match node.admin {
                _ if !node.alive => 5,
                Decommissioned => 4,
                EnteringMaintenance | InMaintenance => 3,
                _ if self.config().avoid_stale_for_read && self.is_stale(node, now) => 2,
                _ if self.config().slow.avoid_for_read && self.is_slow(node.handle) => 1,
                _ => 0,
            };
            (last, distance(node), dice())
        });
    }
}
