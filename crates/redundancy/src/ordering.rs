//! In which order a reader gets the places of a block.

use crate::block::Location;
use crate::cluster::Cluster;
use crate::node::DataNode;
use crate::{Dice, Now};

/// Who reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reader<'a> {
    /// Its address, as seen by the NameNode; empty if unknown.
    pub host: &'a str,
    /// Its rack, where that is known other than by a DataNode on the same host.
    pub rack: Option<&'a str>,
}

/// Steps between two places of a network: 0 on one host, 2 within a rack, more across racks.
///
/// Source: Hadoop 3.5.0 `NetworkTopology#getDistance`.
pub fn rack_distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<&str>, Vec<&str>) = (a.split('/').collect(), b.split('/').collect());
    let common = a.iter().zip(&b).take_while(|(x, y)| x == y).count();
    2 + (a.len() - common) + (b.len() - common)
}

impl Cluster {
    /// Distance from a reader to a node.
    pub fn distance(&self, reader: &Reader<'_>, node: &DataNode) -> usize {
        let same_host = !reader.host.is_empty()
            && (reader.host == node.address.ip || reader.host == node.address.host);
        if same_host {
            return 0;
        }
        let rack = reader.rack.or_else(|| {
            let mut local = self.nodes_on_host(reader.host).filter(|_| !reader.host.is_empty());
            local.next().map(|node| node.rack.as_str())
        });
        rack.map_or(usize::MAX, |rack| rack_distance(rack, &node.rack))
    }

    /// Sorts places for a reader: nearest first, equally near ones shuffled; then stale nodes, then
    /// nodes that are entering maintenance, then those that are decommissioned. Corrupt places stay
    /// in: it is the caller who leaves them out or marks them.
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
        locations.sort_by_cached_key(|location| {
            let node = self.node(location.node);
            let last = match node.admin {
                _ if !node.alive => 4,
                Decommissioned => 3,
                EnteringMaintenance | InMaintenance => 2,
                _ if self.config().avoid_stale_for_read && self.is_stale(node, now) => 1,
                _ => 0,
            };
            (last, self.distance(reader, node), dice())
        });
    }
}
