//! The nodes that a placement can still choose, and the storage each would give.

use super::PlacementRequest;
use crate::clock::{Dice, Now};
use crate::cluster::Cluster;
use crate::handle::{NodeHandle, StorageHandle};
use crate::node::{AdminState, DataNode};
use crate::storage::{Storage, StorageState};
use cairn_stripe::StorageType;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// How strict a choice is. Each level gives up one more wish than the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Strictness {
    /// Not stale ones.
    pub fresh: bool,
    /// Not much busier than the average.
    pub idle: bool,
    /// Not those that others call slow. More than its share goes to no rack for that: a slow node in another one is
    /// better.
    pub quick: bool,
}

impl Strictness {
    /// From all wishes to none.
    pub const LEVELS: [Strictness; 4] = [
        Strictness { fresh: true, idle: true, quick: true },
        Strictness { fresh: true, idle: true, quick: false },
        Strictness { fresh: false, idle: true, quick: false },
        Strictness { fresh: false, idle: false, quick: false },
    ];
}

/// A choice in progress: what is chosen, and what each rack has.
pub(super) struct Choice<'a> {
    cluster: &'a Cluster,
    request: &'a PlacementRequest<'a>,
    now: Now,
    pub strictness: Strictness,
    max_load: f64,
    pub chosen: Vec<StorageHandle>,
    /// Nodes that hold the block or are chosen, in each rack.
    pub per_rack: BTreeMap<&'a str, usize>,
    taken: Vec<NodeHandle>,
    /// So many replicas are to be in distinct upgrade domains.
    pub distinct_domains: usize,
    /// Whether that is still insisted on.
    spread_domains: bool,
    /// The storage types of what is still to be chosen, in the order of preference.
    needed: Vec<StorageType>,
    /// Types that were looked for in vain.
    unavailable: Vec<StorageType>,
}

impl<'a> Choice<'a> {
    pub fn new(cluster: &'a Cluster, request: &'a PlacementRequest<'a>, now: Now) -> Choice<'a> {
        let mut choice = Choice {
            cluster,
            request,
            now,
            strictness: Strictness::LEVELS[0],
            max_load: max_load(cluster),
            chosen: Vec::new(),
            per_rack: BTreeMap::new(),
            taken: Vec::new(),
            distinct_domains: 0,
            spread_domains: true,
            needed: Vec::new(),
            unavailable: Vec::new(),
        };
        choice.needed = choice.missing_types();
        for storage in request.existing {
            let node = cluster.node(cluster.storage(*storage).node);
            if !choice.taken.contains(&node.handle) {
                choice.taken.push(node.handle);
                *choice.per_rack.entry(node.rack.as_str()).or_default() += 1;
            }
        }
        choice
    }

    /// Runs `step` at each level of strictness until all that is wanted is chosen, then again with the
    /// fallbacks of the storage types that could not be had.
    pub fn relax(mut self, mut step: impl FnMut(&mut Choice<'a>)) -> Vec<StorageHandle> {
        self.try_all_types(&mut step);
        if !self.is_done() && self.distinct_domains > 0 {
            self.spread_domains = false;
            self.unavailable.clear();
            self.needed = self.missing_types();
            self.try_all_types(&mut step);
        }
        self.chosen
    }

    fn try_all_types(&mut self, step: &mut impl FnMut(&mut Choice<'a>)) {
        let stale_matters = self.avoid_stale();
        let slow_matters = self.cluster.config().slow.avoid_for_write;
        while !self.needed.is_empty() {
            let mut tried = None;
            for mut level in Strictness::LEVELS {
                level.fresh &= stale_matters;
                level.quick &= slow_matters;
                if tried.replace(level) == Some(level) {
                    continue;
                }
                self.strictness = level;
                step(self);
                if self.is_done() {
                    return;
                }
            }
            let before = self.unavailable.len();
            for kind in &self.needed {
                if !self.unavailable.contains(kind) {
                    self.unavailable.push(*kind);
                }
            }
            if self.unavailable.len() == before {
                return;
            }
            self.needed = self.missing_types();
        }
    }

    /// Source: Hadoop 3.5.0 `BlockPlacementPolicyDefault#chooseTarget`.
    fn missing_types(&self) -> Vec<StorageType> {
        let existing = self.request.existing;
        let kind = |storage: &StorageHandle| self.cluster.storage(*storage).storage_type;
        let present: Vec<StorageType> = existing.iter().chain(&self.chosen).map(kind).collect();
        let copies = existing.len() + self.request.count;
        let policy = self.request.storage_policy;
        policy.missing(copies, &present, &self.unavailable, self.request.is_new)
    }

    /// Whether so few nodes are stale that writers can do without them.
    ///
    /// Source: Hadoop 3.5.0 `DatanodeManager#shouldAvoidStaleDataNodesForWrite`.
    fn avoid_stale(&self) -> bool {
        let config = self.cluster.config();
        let live = self.cluster.nodes().filter(|node| node.alive);
        let (mut all, mut stale) = (0_usize, 0_usize);
        for node in live {
            all += 1;
            stale += usize::from(self.cluster.is_stale(node, self.now));
        }
        config.avoid_stale_for_write && (stale as f64) <= all as f64 * config.stale_write_ratio
    }

    pub fn is_done(&self) -> bool {
        self.chosen.len() >= self.request.count
    }

    /// The live nodes that could take a block, with what they would give.
    pub fn open_nodes(&self) -> Vec<&'a DataNode> {
        self.cluster.nodes().filter(|node| self.storage_on(node).is_some()).collect()
    }

    /// Takes `node` if it can take a block.
    pub fn take(&mut self, node: &'a DataNode) -> bool {
        let Some((rank, storage)) = self.storage_on(node) else { return false };
        self.needed.remove(rank);
        self.chosen.push(storage);
        self.taken.push(node.handle);
        *self.per_rack.entry(node.rack.as_str()).or_default() += 1;
        true
    }

    /// Takes one of the nodes that `wanted` lets through, at random among those with a storage of the
    /// type that comes first. Returns it.
    pub fn take_random(
        &mut self,
        wanted: impl Fn(&DataNode) -> bool,
        dice: &mut dyn FnMut() -> u64,
    ) -> Option<&'a DataNode> {
        if self.is_done() {
            return None;
        }
        let offer = |node: &'a DataNode| Some((self.storage_on(node)?.0, node));
        let nodes = self.cluster.nodes().filter(|node| wanted(node));
        let mut offers: Vec<(usize, &DataNode)> = nodes.filter_map(offer).collect();
        let best = offers.iter().map(|(rank, _)| *rank).min();
        offers.retain(|(rank, _)| Some(*rank) == best);
        self.prefer(&mut offers, |(_, node)| node.handle);
        let (_, node) = *pick(&offers, dice)?;
        self.take(node).then_some(node)
    }

    /// Keeps only the nodes that are not slow, if there are any and that matters, and of these only those that are not
    /// named as busy, if there are any.
    pub fn prefer<T>(&self, nodes: &mut Vec<T>, handle: impl Fn(&T) -> NodeHandle) {
        let mut keep = |wanted: &dyn Fn(NodeHandle) -> bool| {
            if nodes.iter().any(|node| wanted(handle(node))) {
                nodes.retain(|node| wanted(handle(node)));
            }
        };
        if self.cluster.config().slow.avoid_for_write {
            keep(&|node| !self.cluster.is_slow(node));
        }
        keep(&|node| !self.request.busy.contains(&node));
    }

    /// The storage that a node would give, if it can be chosen at all: of the first type needed that it
    /// has room on, the one that is to take least already, and of such ones that with most room; with the place of that
    /// type among those needed.
    fn storage_on(&self, node: &DataNode) -> Option<(usize, StorageHandle)> {
        let usable = node.alive
            && node.heartbeat_seen
            && node.admin == AdminState::InService
            && !self.taken.contains(&node.handle)
            && !self.request.excluded.contains(&node.handle);
        if !usable || self.is_unwelcome(node) || self.shares_domain(node) {
            return None;
        }
        let fitting = || {
            let storages = node.storages.iter().map(|s| self.cluster.storage(*s));
            storages.filter(|storage| self.has_room(storage))
        };
        let of_type = |kind: StorageType| {
            let storages = fitting().filter(|storage| storage.storage_type == kind);
            // Disks work side by side: what comes between two heartbeats does not all go to the emptiest.
            storages.min_by_key(|storage| {
                (storage.promised.len(self.request.block_len), Reverse(storage.usage.remaining))
            })
        };
        let ranked = self.needed.iter().enumerate();
        let mut found = ranked.filter_map(|(rank, kind)| Some((rank, of_type(*kind)?.handle)));
        found.next()
    }

    /// Deviation: Hadoop chooses no slow node where they are to be kept off, though replicas or units be missing
    /// then.
    ///
    /// Source: Hadoop 3.5.0 `BlockPlacementPolicyDefault#isGoodDatanode`.
    fn is_unwelcome(&self, node: &DataNode) -> bool {
        let stale = self.strictness.fresh && self.cluster.is_stale(node, self.now);
        let busy = self.strictness.idle
            && self.cluster.config().consider_load
            && f64::from(node.xceivers) > self.max_load;
        let slow = self.strictness.quick && self.cluster.is_slow(node.handle);
        stale || busy || slow
    }

    /// Whether a node adds no upgrade domain where it should. Deviation: Hadoop then places fewer
    /// replicas; here that is the last wish to be given up.
    ///
    /// Source: Hadoop 3.5.0 `BlockPlacementPolicyWithUpgradeDomain#isGoodDatanode`.
    fn shares_domain(&self, node: &DataNode) -> bool {
        let (have, wanted) = (self.taken.len(), self.distinct_domains);
        if have == 0 || have >= wanted || !self.spread_domains {
            return false;
        }
        let own = node.upgrade_domain();
        self.taken.iter().any(|other| self.cluster.node(*other).upgrade_domain() == own)
    }

    /// Room for the block, or for as many as there must be, and for those that were sent there since its last heartbeat.
    ///
    /// Source: Hadoop 3.5.0 `BlockPlacementPolicyDefault#isGoodDatanode`,
    /// `DatanodeDescriptor#chooseStorage4Block`.
    fn has_room(&self, storage: &Storage) -> bool {
        let block_len = self.request.block_len;
        let room = block_len.saturating_mul(self.cluster.config.blocks_of_room);
        let needed = room.saturating_add(storage.promised.len(block_len));
        storage.state == StorageState::Normal && storage.usage.remaining >= needed
    }
}

/// Data transfers above which a node is too busy.
///
/// Source: Hadoop 3.5.0 `BlockPlacementPolicyDefault#excludeNodeByLoad`. Deviation: a cluster that is
/// nearly idle lets each node have some transfers, else a node that serves one is left out.
fn max_load(cluster: &Cluster) -> f64 {
    const ALWAYS_FINE: f64 = 16.0;
    let in_service = || cluster.nodes().filter(|n| n.alive && n.admin == AdminState::InService);
    let total: f64 = in_service().map(|node| f64::from(node.xceivers)).sum();
    let mean = total / (in_service().count().max(1) as f64);
    (mean * cluster.config().load_factor).max(ALWAYS_FINE)
}

/// One of `items`, each as likely.
pub(super) fn pick<'a, T>(items: &'a [T], dice: Dice<'_>) -> Option<&'a T> {
    let count = u64::try_from(items.len()).ok().filter(|count| *count > 0)?;
    items.get(usize::try_from(dice() % count).ok()?)
}
