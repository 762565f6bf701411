//! Which of some blocks can be a group, which replica of each stays, and where the parities go.
//!
//! Every unit is on a node of its own and, where there are racks enough, no rack has more units than the group can lose.
//! The replicas that stay are some of those there are: nothing is moved for a group.

use crate::block::BlockRef;
use crate::clock::{Dice, Now};
use crate::cluster::Cluster;
use crate::groups::ENCODES_PER_NODE;
use crate::handle::{NodeHandle, StorageHandle};
use crate::placement::PlacementRequest;
use crate::places::map::Place;
use cairn_stripe::{BlockId, StoragePolicy, StorageType};
use std::collections::BTreeMap;

/// Steps of a search for replicas that can stay together.
const STEPS_MAX: usize = 5_000;

/// What is to be a group.
#[derive(Clone, Copy, Debug)]
pub struct GroupRequest<'a> {
    /// Blocks that may be in it, those to take first at the front.
    pub candidates: &'a [BlockRef],
    /// Members at the most.
    pub k: usize,
    /// Parities.
    pub m: usize,
    /// Of the files.
    pub storage_policy: StoragePolicy,
}

/// A group that can be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupPlan {
    /// The members in the order of their slots, each with the storage of the replica that stays.
    pub members: Vec<(BlockRef, StorageHandle)>,
    /// Where the parities go.
    pub parities: Vec<StorageHandle>,
}

/// A replica that may stay, and where it is.
#[derive(Clone, Copy)]
struct MayStay<'a> {
    storage: StorageHandle,
    node: NodeHandle,
    rack: &'a str,
}

impl Cluster {
    /// As many of the candidates as can be a group together, with where their units are to be; nothing if there are too
    /// few nodes for its parities.
    pub fn plan_group(
        &self,
        request: &GroupRequest<'_>,
        now: Now,
        dice: Dice<'_>,
    ) -> Option<GroupPlan> {
        let most = request.k + request.m;
        let share = self.nodes.width().shares.get(most).copied().map_or(usize::MAX, usize::from);
        let per_rack_max = if share <= request.m { request.m } else { usize::MAX };
        let (mut blocks, mut options, mut stay) = (Vec::new(), Vec::new(), Vec::new());
        for candidate in request.candidates {
            if blocks.len() == request.k {
                break;
            }
            let mut with_it = options.clone();
            with_it.push(self.replicas_that_may_stay(candidate.id, now));
            if let Some(found) = together(&with_it, per_rack_max) {
                blocks.push(*candidate);
                (options, stay) = (with_it, found);
            }
        }
        let longest = blocks.iter().map(|block| block.len).max()?;
        let existing: Vec<StorageHandle> = stay.iter().map(|option| option.storage).collect();
        let parities = self.places_for_parities(request, &existing, longest, now, dice)?;
        let mut per_rack: BTreeMap<&str, usize> = BTreeMap::new();
        for storage in existing.iter().chain(&parities) {
            let rack = self.node(self.storage(*storage).node).rack.as_str();
            *per_rack.entry(rack).or_default() += 1;
        }
        let is_spread = per_rack.values().all(|units| *units <= per_rack_max);
        let members = blocks.into_iter().zip(existing).collect();
        is_spread.then_some(GroupPlan { members, parities })
    }

    /// The good replicas of a block on nodes in service that prove what they read and are heard of. What is in memory
    /// stays nowhere.
    fn replicas_that_may_stay(&self, id: BlockId, now: Now) -> Vec<MayStay<'_>> {
        if !self.blocks.bad_of(id).is_empty() || self.blocks.construction(id).is_some() {
            return Vec::new();
        }
        let may_stay = |place: &Place| {
            let storage = self.storage(place.storage);
            let node = self.node(storage.node);
            self.is_live(place)
                && !place.told
                && storage.reported
                && storage.storage_type != StorageType::RamDisk
                && node.takes_groups
                && !self.is_stale(node, now)
        };
        let option = |place: Place| {
            let node = self.node(self.storage(place.storage).node);
            MayStay { storage: place.storage, node: node.handle, rack: &node.rack }
        };
        self.places(id).filter(may_stay).map(option).collect()
    }

    /// Storages for the parities on nodes that have no unit, one of which is free to encode.
    fn places_for_parities(
        &self,
        request: &GroupRequest<'_>,
        existing: &[StorageHandle],
        longest: u64,
        now: Now,
        dice: Dice<'_>,
    ) -> Option<Vec<StorageHandle>> {
        let others = self.nodes().filter(|node| !node.takes_groups);
        let mut excluded: Vec<NodeHandle> = others.map(|node| node.handle).collect();
        excluded.extend(existing.iter().map(|storage| self.storage(*storage).node));
        let is_busy = |node: &NodeHandle| self.encodes_of(*node) >= ENCODES_PER_NODE;
        let busy: Vec<NodeHandle> = self.nodes().map(|n| n.handle).filter(is_busy).collect();
        let chosen = self.choose_striped(
            &PlacementRequest {
                count: request.m,
                // A parity has the code of the members' checksums as well.
                block_len: longest.saturating_add(longest / 64),
                excluded: &excluded,
                busy: &busy,
                existing,
                storage_policy: request.storage_policy,
                ..PlacementRequest::default()
            },
            now,
            dice,
        );
        let is_free = |storage: &StorageHandle| !busy.contains(&self.storage(*storage).node);
        (chosen.len() == request.m && chosen.iter().any(is_free)).then_some(chosen)
    }
}

/// One replica of each block, all on nodes of their own, and no more than so many on a rack.
fn together<'a>(options: &[Vec<MayStay<'a>>], per_rack_max: usize) -> Option<Vec<MayStay<'a>>> {
    let (mut stay, mut steps) = (Vec::new(), STEPS_MAX);
    search(options, per_rack_max, &mut stay, &mut steps).then_some(stay)
}

fn search<'a>(
    options: &[Vec<MayStay<'a>>],
    per_rack_max: usize,
    stay: &mut Vec<MayStay<'a>>,
    steps: &mut usize,
) -> bool {
    let Some(of_next) = options.get(stay.len()) else { return true };
    for option in of_next {
        let Some(left) = steps.checked_sub(1) else { return false };
        *steps = left;
        let on_rack = stay.iter().filter(|other| other.rack == option.rack).count();
        if on_rack >= per_rack_max || stay.iter().any(|other| other.node == option.node) {
            continue;
        }
        stay.push(*option);
        if search(options, per_rack_max, stay, steps) {
            return true;
        }
        stay.pop();
    }
    false
}
