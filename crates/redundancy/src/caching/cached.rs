//! What DataNodes have in memory, and what they are to take in and give up.

use crate::clock::{Dice, Now};
use crate::handle::NodeHandle;
use cairn_stripe::BlockId;
use std::collections::{BTreeMap, BTreeSet};

/// A replica, or a unit of a group, that should be in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheWant {
    /// DataNodes that should have it there.
    pub copies: u16,
    /// Its bytes.
    pub len: u64,
}

/// Bytes that the memory of each DataNode has left.
pub(super) type Room = BTreeMap<NodeHandle, i128>;

/// What is known of one replica or unit.
#[derive(Debug, Default)]
struct Cached {
    /// Bytes; 0 if no directive has named it.
    len: u64,
    /// DataNodes that have it in memory.
    on: BTreeSet<NodeHandle>,
    /// DataNodes that are to take it into memory.
    coming: BTreeSet<NodeHandle>,
    /// DataNodes that are to give it up.
    going: BTreeSet<NodeHandle>,
}

/// All of it.
#[derive(Debug, Default)]
pub(crate) struct Caching {
    blocks: BTreeMap<BlockId, Cached>,
    /// When each DataNode was last told, on the monotonic clock.
    told_ms: BTreeMap<NodeHandle, u64>,
}

impl Caching {
    /// A DataNode has these in memory, and no others; what it was to take and has is done.
    pub(super) fn report(&mut self, node: NodeHandle, named: BTreeSet<BlockId>) {
        for (id, cached) in &mut self.blocks {
            if !named.contains(id) {
                cached.on.remove(&node);
            }
        }
        for id in named {
            let cached = self.blocks.entry(id).or_default();
            cached.on.insert(node);
            cached.coming.remove(&node);
        }
    }

    /// Whether anything is in memory, or on its way.
    pub(super) fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// The DataNodes that have a replica or unit in memory.
    pub(super) fn holders(&self, id: BlockId) -> impl Iterator<Item = NodeHandle> + '_ {
        self.blocks.get(&id).into_iter().flat_map(|cached| cached.on.iter().copied())
    }

    /// Whether a DataNode is one of them.
    pub(super) fn is_on(&self, id: BlockId, node: NodeHandle) -> bool {
        self.blocks.get(&id).is_some_and(|cached| cached.on.contains(&node))
    }

    /// Orders that were told already are told again, and nothing is expected of DataNodes that are `gone`.
    pub(super) fn begin_rescan(
        &mut self,
        wants: &BTreeMap<BlockId, CacheWant>,
        gone: impl Fn(NodeHandle) -> bool,
    ) {
        self.told_ms.clear();
        for cached in self.blocks.values_mut() {
            for list in [&mut cached.on, &mut cached.coming, &mut cached.going] {
                list.retain(|node| !gone(*node));
            }
        }
        for (id, want) in wants {
            self.blocks.entry(*id).or_default().len = want.len;
        }
    }

    /// What is left of that room behind what is to be taken and given up. What does not fit any more is not to be taken.
    pub(super) fn fit_in(&mut self, mut room: Room) -> Room {
        for cached in self.blocks.values_mut() {
            let len = i128::from(cached.len);
            cached.coming.retain(|node| {
                let left = room.entry(*node).or_default();
                let fits = *left >= len;
                *left -= if fits { len } else { 0 };
                fits
            });
        }
        for cached in self.blocks.values() {
            for node in &cached.going {
                *room.entry(*node).or_default() += i128::from(cached.len);
            }
        }
        room
    }

    /// Compares what is wanted with what there is. `holders` are DataNodes that could take a replica or unit into memory,
    /// and `pick` chooses one of some by its place.
    pub(super) fn rescan(
        &mut self,
        wants: &BTreeMap<BlockId, CacheWant>,
        mut room: Room,
        holders: impl Fn(BlockId) -> BTreeSet<NodeHandle>,
        pick: impl Fn(&[NodeHandle], &Room, Dice<'_>) -> usize,
        dice: Dice<'_>,
    ) {
        for (id, cached) in &mut self.blocks {
            let copies = usize::from(wants.get(id).map_or(0, |want| want.copies));
            let len = i128::from(cached.len);
            cached.going.retain(|node| cached.on.contains(node));
            if cached.on.len() >= copies {
                for node in std::mem::take(&mut cached.coming) {
                    *room.entry(node).or_default() += len;
                }
            }
            if cached.on.len() < copies {
                for node in std::mem::take(&mut cached.going) {
                    *room.entry(node).or_default() -= len;
                }
            }
            let surplus = cached.on.len().saturating_sub(cached.going.len() + copies);
            if surplus > 0 {
                let mut left: Vec<NodeHandle> =
                    cached.on.difference(&cached.going).copied().collect();
                for _ in 0..surplus {
                    let node = left.swap_remove(dice() as usize % left.len());
                    cached.going.insert(node);
                    *room.entry(node).or_default() += len;
                }
            }
            let mut lacking = copies.saturating_sub(cached.on.len() + cached.coming.len());
            if lacking == 0 {
                continue;
            }
            let fits = |node: &NodeHandle| room.get(node).is_some_and(|left| *left >= len);
            let is_new =
                |node: &NodeHandle| !cached.on.contains(node) && !cached.coming.contains(node);
            let mut possible: Vec<NodeHandle> =
                holders(*id).into_iter().filter(|node| is_new(node) && fits(node)).collect();
            while lacking > 0 && !possible.is_empty() {
                let node = possible.swap_remove(pick(&possible, &room, dice));
                cached.coming.insert(node);
                *room.entry(node).or_default() -= len;
                lacking -= 1;
            }
        }
        self.blocks.retain(|id, cached| {
            wants.contains_key(id) || !(cached.on.is_empty() && cached.going.is_empty())
        });
    }

    /// What a DataNode is to take into memory, and what to give up, unless it was told less than `retry_ms` ago.
    pub(super) fn take_orders(
        &mut self,
        node: NodeHandle,
        retry_ms: u64,
        now: Now,
    ) -> (Vec<BlockId>, Vec<BlockId>) {
        let told = self.told_ms.get(&node);
        let is_early = |at: &u64| now.mono_ms < at.saturating_add(retry_ms);
        if self.blocks.is_empty() || told.is_some_and(is_early) {
            return (Vec::new(), Vec::new());
        }
        let of = |wanted: fn(&Cached) -> &BTreeSet<NodeHandle>| -> Vec<BlockId> {
            let of_node = self.blocks.iter().filter(|(_, cached)| wanted(cached).contains(&node));
            of_node.map(|(id, _)| *id).collect()
        };
        let (coming, going) = (of(|cached| &cached.coming), of(|cached| &cached.going));
        if !(coming.is_empty() && going.is_empty()) {
            self.told_ms.insert(node, now.mono_ms);
        }
        (coming, going)
    }

    /// Makes what is kept not fit together, to see that this is noticed.
    #[cfg(test)]
    pub(crate) fn damage(&mut self) {
        let nodes = || BTreeSet::from([NodeHandle(0)]);
        let cached = Cached { on: nodes(), coming: nodes(), ..Cached::default() };
        self.blocks.insert(BlockId(1), cached);
    }

    /// Panics if what is kept does not fit together.
    pub(crate) fn check_invariants(&self) {
        for (id, Cached { on, coming, going, .. }) in &self.blocks {
            assert!(coming.is_disjoint(on), "{id} is to come to where it is: {coming:?}, {on:?}");
            assert!(coming.is_disjoint(going), "{id} is to come and go: {coming:?}, {going:?}");
        }
    }
}
