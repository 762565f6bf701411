//! The nodes that a placement can still choose, and the storage each would give.

use super::PlacementRequest;
use crate::cluster::Cluster;
use crate::node::{AdminState, DataNode, NodeHandle};
use crate::storage::{Storage, StorageHandle, StorageState, StorageType};
use crate::{Dice, Now};
use std::collections::BTreeMap;

/// How strict a choice is. Each level gives up one more wish than the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Strictness {
    /// Not stale ones.
    pub fresh: bool,
    /// Not much busier than the average.
    pub idle: bool,
    /// Of the storage types wanted, not merely of any that fit a block.
    pub typed: bool,
}

impl Strictness {
    /// From all wishes to none.
    pub const LEVELS: [Strictness; 4] = [
        Strictness { fresh: true, idle: true, typed: true },
        Strictness { fresh: false, idle: true, typed: true },
        Strictness { fresh: false, idle: false, typed: true },
        Strictness { fresh: false, idle: false, typed: false },
    ];
}

/// A choice in progress: what is chosen, and what each rack has.
pub(super) struct Choice<'a> {
    cluster: &'a Cluster,
    request: &'a PlacementRequest<'a>,
    now: Now,
    strictness: Strictness,
    max_load: f64,
    pub chosen: Vec<StorageHandle>,
    /// Nodes that hold the block or are chosen, in each rack.
    pub per_rack: BTreeMap<&'a str, usize>,
    taken: Vec<NodeHandle>,
    /// So many replicas are to be in distinct upgrade domains.
    pub distinct_domains: usize,
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
        };
        for storage in request.existing {
            let node = cluster.node(cluster.storage(*storage).node);
            if !choice.taken.contains(&node.handle) {
                choice.taken.push(node.handle);
                *choice.per_rack.entry(node.rack.as_str()).or_default() += 1;
            }
        }
        choice
    }

    /// Runs `step` at each level of strictness until all that is wanted is chosen.
    pub fn relax(mut self, mut step: impl FnMut(&mut Choice<'a>)) -> Vec<StorageHandle> {
        let stale_matters = self.avoid_stale();
        for level in Strictness::LEVELS {
            if level.fresh && !stale_matters {
                continue;
            }
            self.strictness = level;
            step(&mut self);
            if self.is_done() {
                break;
            }
        }
        self.chosen
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
        let Some(storage) = self.storage_on(node) else { return false };
        self.chosen.push(storage);
        self.taken.push(node.handle);
        *self.per_rack.entry(node.rack.as_str()).or_default() += 1;
        true
    }

    /// Takes one of the nodes that `wanted` lets through, at random. Returns it.
    pub fn take_random(
        &mut self,
        wanted: impl Fn(&DataNode) -> bool,
        dice: &mut dyn FnMut() -> u64,
    ) -> Option<&'a DataNode> {
        if self.is_done() {
            return None;
        }
        let open: Vec<&DataNode> = self.open_nodes().into_iter().filter(|n| wanted(n)).collect();
        let node = *pick(&open, dice)?;
        self.take(node).then_some(node)
    }

    /// The storage that a node would give, if it can be chosen at all: of the wanted type if it has
    /// one, else the one with most room.
    fn storage_on(&self, node: &DataNode) -> Option<StorageHandle> {
        let usable = node.alive
            && node.heartbeat_seen
            && node.admin == AdminState::InService
            && !self.taken.contains(&node.handle)
            && !self.request.excluded.contains(&node.handle);
        if !usable || self.is_unwelcome(node) || self.shares_domain(node) {
            return None;
        }
        let fitting = node.storages.iter().map(|s| self.cluster.storage(*s)).filter(|storage| {
            let wanted = !self.strictness.typed || storage.storage_type == self.wanted_type();
            // Nothing is put on these unless it is asked for by its type.
            let special =
                matches!(storage.storage_type, StorageType::RamDisk | StorageType::Provided);
            wanted && (self.strictness.typed || !special) && self.has_room(storage)
        });
        fitting.max_by_key(|storage| storage.usage.remaining).map(|storage| storage.handle)
    }

    fn is_unwelcome(&self, node: &DataNode) -> bool {
        let stale = self.strictness.fresh && self.cluster.is_stale(node, self.now);
        let busy = self.strictness.idle
            && self.cluster.config().consider_load
            && f64::from(node.xceivers) > self.max_load;
        stale || busy
    }

    /// Whether a node adds no upgrade domain where it should. Deviation: Hadoop then places fewer
    /// replicas; here that is the last wish to be given up.
    ///
    /// Source: Hadoop 3.5.0 `BlockPlacementPolicyWithUpgradeDomain#isGoodDatanode`.
    fn shares_domain(&self, node: &DataNode) -> bool {
        let (have, wanted) = (self.taken.len(), self.distinct_domains);
        if have == 0 || have >= wanted || !self.strictness.typed {
            return false;
        }
        let own = node.upgrade_domain();
        self.taken.iter().any(|other| self.cluster.node(*other).upgrade_domain() == own)
    }

    fn wanted_type(&self) -> StorageType {
        let at = self.request.existing.len() + self.chosen.len();
        let types = self.request.storage_types;
        types.get(at).or(types.last()).copied().unwrap_or_default()
    }

    /// Room for the block and for those that were sent there since its last heartbeat.
    ///
    /// Source: Hadoop 3.5.0 `BlockPlacementPolicyDefault#isGoodDatanode`,
    /// `DatanodeDescriptor#chooseStorage4Block`.
    fn has_room(&self, storage: &Storage) -> bool {
        let block_len = self.request.block_len;
        let needed = block_len.saturating_mul(storage.scheduled.saturating_add(1));
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
