//! What a block or group has, counted.

use crate::block::BlockFacts;
use crate::handle::NodeHandle;
use crate::node::DataNode;
use crate::places::map::Place;
use crate::storage::Storage;
use cairn_stripe::UnitIndex;
use std::collections::BTreeSet;

/// What a block or group has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Good replicas, or distinct good units, on nodes in service.
    pub live: usize,
    /// Good replicas, or distinct good units that are not live, on nodes that leave.
    pub leaving: usize,
    /// Those of `live`, or distinct ones, that an order to delete may take, or may have taken.
    pub doubted: usize,
    /// Those of `leaving` on nodes in maintenance, or about to be, which no order to delete may have taken: these will
    /// be back. Deviation: Hadoop counts what such a node was told to delete.
    pub maintenance: usize,
    /// Bad ones.
    pub corrupt: usize,
    /// Chosen for deletion.
    pub excess: usize,
    /// Good ones beyond the first of the same unit, for a group.
    pub duplicates: usize,
    /// Live ones beyond the first on the same node, for a group.
    pub sharing: usize,
    /// Racks of the live ones.
    pub racks: usize,
    /// Live ones on the rack that has most.
    pub on_one_rack: usize,
    /// Upgrade domains of the live ones, where these count.
    pub domains: usize,
    /// Whether every storage that holds the block has reported since its node registered, every replica
    /// that its node was told to delete, if it is to stay after all, and no order to delete one that is
    /// to stay may still be under way.
    pub certain: bool,
    /// A bit for each unit that is live.
    pub(crate) live_units: u32,
}

/// A place that is not lost, with what matters of where it is.
#[derive(Clone, Copy)]
pub(crate) struct Seen<'a> {
    pub place: Place,
    pub storage: &'a Storage,
    pub node: &'a DataNode,
    /// Whether an order to delete it may take it, though it is to stay.
    pub is_doubted: bool,
}

impl Tally {
    /// Counts those places of a block. Upgrade domains are counted where they are `domains_count`.
    pub(crate) fn of<'a>(
        facts: &BlockFacts,
        places: impl Iterator<Item = Seen<'a>>,
        domains_count: bool,
    ) -> Tally {
        let mut tally = Tally { certain: true, ..Tally::default() };
        let (mut leaving, mut back_soon, mut sure) = (0_u32, 0_u32, 0_u32);
        let mut sure_places = 0;
        let (mut racks, mut nodes): (Vec<(&str, usize)>, Vec<NodeHandle>) =
            (Vec::new(), Vec::new());
        let mut domains = BTreeSet::new();
        for Seen { place, storage, node, is_doubted } in places {
            tally.certain &= storage.reported && !is_doubted;
            let bit = 1_u32 << place.unit.0;
            if place.corrupt {
                tally.corrupt += 1;
            } else if place.excess {
                tally.excess += 1;
            } else if !facts.has_bytes(place.unit) {
                // An empty file stands for no other unit.
            } else if node.is_leaving() {
                leaving |= bit;
                tally.leaving += 1;
                if node.is_maintenance() && !is_doubted {
                    back_soon |= bit;
                    tally.maintenance += 1;
                }
            } else {
                tally.live += 1;
                tally.live_units |= bit;
                if !is_doubted {
                    sure |= bit;
                    sure_places += 1;
                }
                if !nodes.contains(&node.handle) {
                    nodes.push(node.handle);
                }
                match racks.iter_mut().find(|(rack, _)| *rack == node.rack) {
                    Some((_, count)) => *count += 1,
                    None => racks.push((&node.rack, 1)),
                }
                if domains_count {
                    domains.insert(node.upgrade_domain());
                }
            }
        }
        (tally.racks, tally.domains) = (racks.len(), domains.len());
        tally.on_one_rack = racks.iter().map(|(_, count)| *count).max().unwrap_or(0);
        tally.doubted = tally.live - sure_places;
        if facts.layout.has_units() {
            let count = |units: u32| units.count_ones() as usize;
            let live = tally.live_units;
            tally.sharing = tally.live - nodes.len();
            tally.duplicates = tally.live - count(live);
            tally.live = count(live);
            tally.doubted = count(live) - count(sure);
            tally.leaving = count(leaving & !live);
            tally.maintenance = count(back_soon & !live);
        }
        tally
    }

    /// Whether a unit is live.
    pub(crate) fn is_live(&self, unit: UnitIndex) -> bool {
        self.live_units & (1 << unit.0) != 0
    }
}
