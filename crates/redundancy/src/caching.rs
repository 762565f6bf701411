//! What DataNodes keep in memory, and what they should: the NameNode's part of centralized caching.
//!
//! A rescan gets what the cache directives want, replica by replica (a unit of a group is one, by its own
//! id), and chooses DataNodes; heartbeats bring the orders; cache reports tell what became of them.
//!
//! Source: Hadoop 3.5.0 `CacheReplicationMonitor`, `CacheManager#processCacheReport`.

use crate::caching::cached::Cached;
use crate::caching::cached::Caching;
use crate::clock::{Dice, Now, millis};
use crate::cluster::Cluster;
use crate::command::Command;
use crate::handle::NodeHandle;
use crate::node::AdminState;
use cairn_stripe::BlockId;
use std::collections::{BTreeMap, BTreeSet};

/// Replicas of one cache report that are looked at: a list from outside must have an end.
const REPORT_MAX: usize = 1 << 20;

/// A replica, or a unit of a group, that should be in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheWant {
    /// DataNodes that should have it there.
    pub copies: u16,
    /// Its bytes.
    pub len: u64,
}

impl Cluster {
    /// Takes what a DataNode has in memory; what it was to take and has is done.
    ///
    /// Source: Hadoop 3.5.0 `CacheManager#processCacheReportImpl`.
    pub fn cache_report(&mut self, node: NodeHandle, blocks: impl IntoIterator<Item = BlockId>) {
        let named: BTreeSet<BlockId> = blocks.into_iter().take(REPORT_MAX).collect();
        for (id, cached) in &mut self.caching.blocks {
            if !named.contains(id) {
                cached.on.remove(&node);
            }
        }
        for id in named {
            let cached = self.caching.blocks.entry(id).or_default();
            cached.on.insert(node);
            cached.coming.remove(&node);
        }
    }

    /// Whether a live DataNode has said that it has this replica or unit in memory.
    pub fn is_cached(&self, id: BlockId, node: NodeHandle) -> bool {
        self.caching.blocks.get(&id).is_some_and(|cached| cached.on.contains(&node))
    }

    /// Whether anything is in memory anywhere.
    pub fn caches_anything(&self) -> bool {
        !self.caching.blocks.is_empty()
    }

    /// DataNodes that have this replica or unit in memory.
    pub fn cached_copies(&self, id: BlockId) -> usize {
        self.caching.blocks.get(&id).map_or(0, |cached| cached.on.len())
    }

    /// Compares what is wanted with what there is, and decides which DataNodes are to take what into
    /// memory and to give up what. Orders that were told already are told again.
    ///
    /// Source: Hadoop 3.5.0 `CacheReplicationMonitor#rescanCachedBlockMap`.
    pub fn rescan_cache(&mut self, wants: &BTreeMap<BlockId, CacheWant>, now: Now, dice: Dice<'_>) {
        let mut caching = std::mem::take(&mut self.caching);
        caching.told_ms.clear();
        let gone = |node: &NodeHandle| !self.node(*node).alive;
        for cached in caching.blocks.values_mut() {
            for list in [&mut cached.on, &mut cached.coming, &mut cached.going] {
                list.retain(|node| !gone(node));
            }
        }
        for (id, want) in wants {
            caching.blocks.entry(*id).or_default().len = want.len;
        }
        let mut room = self.room_in_caches(&mut caching);
        for (id, cached) in &mut caching.blocks {
            let copies = usize::from(wants.get(id).map_or(0, |want| want.copies));
            cached.going.retain(|node| cached.on.contains(node));
            if cached.on.len() >= copies {
                for node in std::mem::take(&mut cached.coming) {
                    *room.entry(node).or_default() += i128::from(cached.len);
                }
            }
            if cached.on.len() < copies {
                for node in std::mem::take(&mut cached.going) {
                    *room.entry(node).or_default() -= i128::from(cached.len);
                }
            }
            let surplus = cached.on.len().saturating_sub(cached.going.len() + copies);
            if surplus > 0 {
                let mut left: Vec<NodeHandle> =
                    cached.on.difference(&cached.going).copied().collect();
                for _ in 0..surplus {
                    let node = left.swap_remove(dice() as usize % left.len());
                    cached.going.insert(node);
                    *room.entry(node).or_default() += i128::from(cached.len);
                }
            }
            let mut lacking = copies.saturating_sub(cached.on.len() + cached.coming.len());
            let mut possible = self.could_cache(*id, cached, &room);
            while lacking > 0 && !possible.is_empty() {
                let node = possible.swap_remove(self.pick(&possible, &room, now, dice));
                cached.coming.insert(node);
                *room.entry(node).or_default() -= i128::from(cached.len);
                lacking -= 1;
            }
        }
        caching.blocks.retain(|id, cached| {
            wants.contains_key(id) || !(cached.on.is_empty() && cached.going.is_empty())
        });
        self.caching = caching;
    }

    /// Bytes that each DataNode's memory has left behind what it is to take and give up. What does not fit
    /// any more is not to be taken.
    fn room_in_caches(&self, caching: &mut Caching) -> BTreeMap<NodeHandle, i128> {
        let left =
            |node: &crate::node::DataNode| node.cache_capacity.saturating_sub(node.cache_used);
        let alive = self.nodes().filter(|node| node.alive);
        let mut room: BTreeMap<NodeHandle, i128> =
            alive.map(|node| (node.handle, i128::from(left(node)))).collect();
        for cached in caching.blocks.values_mut() {
            let len = i128::from(cached.len);
            cached.coming.retain(|node| {
                let left = room.entry(*node).or_default();
                let fits = *left >= len;
                *left -= if fits { len } else { 0 };
                fits
            });
        }
        for cached in caching.blocks.values() {
            for node in &cached.going {
                *room.entry(*node).or_default() += i128::from(cached.len);
            }
        }
        room
    }

    /// DataNodes in service with a good replica that is not in their memory, and room for it.
    fn could_cache(
        &self,
        id: BlockId,
        cached: &Cached,
        room: &BTreeMap<NodeHandle, i128>,
    ) -> Vec<NodeHandle> {
        let unit = id.unit();
        let holds = self.locations(id.group()).into_iter().filter(|at| {
            let node = self.node(at.node);
            let is_unit = !id.is_striped() || at.unit == unit;
            is_unit && !at.corrupt && node.alive && node.admin == AdminState::InService
        });
        let nodes: BTreeSet<NodeHandle> = holds.map(|at| at.node).collect();
        let fits =
            |node: &NodeHandle| room.get(node).is_some_and(|left| *left >= i128::from(cached.len));
        let is_new = |node: &NodeHandle| !cached.on.contains(node) && !cached.coming.contains(node);
        nodes.into_iter().filter(|node| is_new(node) && fits(node)).collect()
    }

    /// One of the DataNodes, by the part of its memory that is free; a stale one only if all are.
    ///
    /// Source: Hadoop 3.5.0 `CacheReplicationMonitor#chooseDatanodesForCaching`.
    fn pick(
        &self,
        possible: &[NodeHandle],
        room: &BTreeMap<NodeHandle, i128>,
        now: Now,
        dice: Dice<'_>,
    ) -> usize {
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
        let told = self.caching.told_ms.get(&node);
        let retry_ms = millis(self.config.cache_retry);
        let is_early = |at: &u64| now.mono_ms < at.saturating_add(retry_ms);
        if self.caching.blocks.is_empty() || told.is_some_and(is_early) {
            return Vec::new();
        }
        let blocks = || self.caching.blocks.iter();
        let of = |wanted: fn(&Cached) -> &BTreeSet<NodeHandle>| -> Vec<BlockId> {
            blocks().filter(|(_, it)| wanted(it).contains(&node)).map(|(id, _)| *id).collect()
        };
        let (coming, going) = (of(|it| &it.coming), of(|it| &it.going));
        let mut commands = Vec::new();
        if !coming.is_empty() {
            commands.push(Command::Cache(coming));
        }
        if !going.is_empty() {
            commands.push(Command::Uncache(going));
        }
        if !commands.is_empty() {
            self.caching.told_ms.insert(node, now.mono_ms);
        }
        commands
    }
}

pub(crate) mod cached;
#[cfg(test)]
mod tests;
