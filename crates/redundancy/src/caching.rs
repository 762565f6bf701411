//! What DataNodes keep in memory, and what they should: the NameNode's part of centralized caching.
//!
//! A rescan gets what the cache directives want, replica by replica (a unit of a group is one, by its own
//! id), and chooses DataNodes; heartbeats bring the orders; cache reports tell what became of them.
//!
//! Source: Hadoop 3.5.0 `CacheReplicationMonitor`, `CacheManager#processCacheReport`.

use crate::caching::cached::{CacheWant, Room};
use crate::clock::{Dice, Now, millis};
use crate::cluster::Cluster;
use crate::command::Command;
use crate::handle::NodeHandle;
use crate::node::{AdminState, DataNode};
use cairn_stripe::BlockId;
use std::collections::{BTreeMap, BTreeSet};

/// Replicas of one cache report that are looked at: a list from outside must have an end.
const REPORT_MAX: usize = 1 << 20;

impl Cluster {
    /// Takes what a DataNode has in memory; what it was to take and has is done.
    ///
    /// Source: Hadoop 3.5.0 `CacheManager#processCacheReportImpl`.
    pub fn cache_report(&mut self, node: NodeHandle, blocks: impl IntoIterator<Item = BlockId>) {
        let named: BTreeSet<BlockId> = blocks.into_iter().take(REPORT_MAX).collect();
        self.caching.report(node, named);
    }

    /// Whether a live DataNode has said that it has this replica or unit in memory.
    pub fn is_cached(&self, id: BlockId, node: NodeHandle) -> bool {
        self.caching.is_on(id, node)
    }

    /// Whether anything is in memory anywhere.
    pub fn caches_anything(&self) -> bool {
        !self.caching.is_empty()
    }

    /// DataNodes that have this replica or unit in memory.
    pub fn cached_copies(&self, id: BlockId) -> usize {
        self.caching.holders(id).count()
    }

    /// Compares what is wanted with what there is, and decides which DataNodes are to take what into
    /// memory and to give up what. Orders that were told already are told again.
    ///
    /// Source: Hadoop 3.5.0 `CacheReplicationMonitor#rescanCachedBlockMap`.
    pub fn rescan_cache(&mut self, wants: &BTreeMap<BlockId, CacheWant>, now: Now, dice: Dice<'_>) {
        let mut caching = std::mem::take(&mut self.caching);
        caching.begin_rescan(wants, |node| !self.node(node).alive);
        let room = caching.fit_in(self.free_caches());
        let holders = |id| self.could_cache(id);
        let pick = |possible: &[NodeHandle], room: &Room, dice: Dice<'_>| {
            self.pick(possible, room, now, dice)
        };
        caching.rescan(wants, room, holders, pick, dice);
        self.caching = caching;
    }

    /// Bytes that each live DataNode's memory has left.
    fn free_caches(&self) -> Room {
        let left = |node: &DataNode| node.cache_capacity.saturating_sub(node.cache_used);
        let alive = self.nodes().filter(|node| node.alive);
        alive.map(|node| (node.handle, i128::from(left(node)))).collect()
    }

    /// DataNodes in service with a good replica or unit.
    fn could_cache(&self, id: BlockId) -> BTreeSet<NodeHandle> {
        let unit = id.unit();
        let holds = self.locations(id.group()).into_iter().filter(|at| {
            let node = self.node(at.node);
            let is_unit = !id.is_striped() || at.unit == unit;
            is_unit && !at.corrupt && node.alive && node.admin == AdminState::InService
        });
        holds.map(|at| at.node).collect()
    }

    /// One of the DataNodes, by the part of its memory that is free; a stale one only if all are.
    ///
    /// Source: Hadoop 3.5.0 `CacheReplicationMonitor#chooseDatanodesForCaching`.
    fn pick(&self, possible: &[NodeHandle], room: &Room, now: Now, dice: Dice<'_>) -> usize {
        let fresh = |node: &NodeHandle| !self.is_stale(self.node(*node), now);
        let any_fresh = possible.iter().any(fresh);
        let weight = |node: &NodeHandle| -> u64 {
            if any_fresh && !fresh(node) {
                return 0;
            }
            let capacity = i128::from(self.node(*node).cache_capacity.max(1));
            let left = room.get(node).copied().unwrap_or(0).max(0);
            (left * 1_000_000 / capacity).clamp(1, 1_000_000) as u64
        };
        let total: u64 = possible.iter().map(weight).sum();
        let mut at = dice() % total.max(1);
        for (index, node) in possible.iter().enumerate() {
            let weight = weight(node);
            if at < weight {
                return index;
            }
            at -= weight;
        }
        0
    }

    /// What a DataNode is to take into memory and to give up, unless it was told a short while ago.
    ///
    /// Source: Hadoop 3.5.0 `DatanodeManager#addCacheCommands`.
    pub(crate) fn take_cache_orders(&mut self, node: NodeHandle, now: Now) -> Vec<Command> {
        let retry_ms = millis(self.config.cache_retry);
        let (coming, going) = self.caching.take_orders(node, retry_ms, now);
        let mut commands = Vec::new();
        if !coming.is_empty() {
            commands.push(Command::Cache(coming));
        }
        if !going.is_empty() {
            commands.push(Command::Uncache(going));
        }
        commands
    }
}

pub(crate) mod cached;
#[cfg(test)]
mod tests;
