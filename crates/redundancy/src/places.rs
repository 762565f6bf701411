//! All that is known of blocks: where they are, what is being written, what is bad, what is to go, and who waits.
//!
//! Most is known of few blocks only, and kept beside the places, of which there are very many. Nothing about a block is
//! kept anywhere else but what it needs ([`crate::need`]) and the work on it ([`crate::work`]); a block that no file has
//! is forgotten as a whole. Whatever changes something of a block goes through here, and wakes those who wait for it.
//! Nothing here knows which nodes are alive, nor what a block should be.

use crate::block::BlockRef;
use crate::handle::{NodeHandle, StorageHandle};
use crate::number_set::NumberSet;
use crate::replica::DisprovedCrc;
use bad::Bad;
use cairn_stripe::{BlockId, GenerationStamp, UnitIndex};
use construction::Construction;
use going::Going;
use map::{BlockMap, Place, number_of, numbered};
use side::{Kind, Side};
use std::collections::{BTreeMap, BTreeSet};
use waits::{Ticket, Waits};

pub(crate) mod bad;
pub mod construction;
mod deletions;
mod going;
pub(crate) mod map;
mod side;
pub mod waits;

/// Blocks whose parts disagree that are remembered.
const MAX_DISAGREEING: usize = 10_000;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Places {
    map: BlockMap,
    side: BTreeMap<BlockId, Side>,
    /// The numbers of the blocks of each [`Kind`].
    kinds: [NumberSet; Kind::ALL.len()],
    /// Places that are chosen for deletion.
    excess_count: u64,
    going: Going,
    waits: Waits,
}

/// What was known of a block that no file has any more.
#[derive(Debug, Default)]
pub(crate) struct Forgotten {
    pub places: Vec<Place>,
    pub construction: Option<Construction>,
    pub bad: Vec<(StorageHandle, Bad)>,
}

/// The id of a replica or unit of a block or group.
pub(crate) fn own_id(id: BlockId, unit: UnitIndex) -> BlockId {
    if id.has_units() { id.internal(unit) } else { id }
}

impl Places {
    /// Which storage has what, to ask.
    pub(crate) fn map(&self) -> &BlockMap {
        &self.map
    }

    /// The places of a block or group, those that are lost among them.
    pub(crate) fn of(&self, id: BlockId) -> impl Iterator<Item = Place> + Clone + '_ {
        self.map.places(id)
    }

    /// The place of a replica, or of an internal block by its own id, on a storage.
    pub(crate) fn on(&self, storage: StorageHandle, own_id: BlockId) -> Option<Place> {
        let unit = own_id.unit();
        self.of(own_id.group()).find(|place| place.storage == storage && place.unit == unit)
    }

    /// Adds a good place. Returns whether it is new.
    pub(crate) fn add(&mut self, storage: StorageHandle, own_id: BlockId) -> bool {
        let is_new = self.map.add(own_id.group(), storage, own_id.unit());
        if is_new {
            self.waits.wake(own_id.group());
        }
        is_new
    }

    fn change<T>(
        &mut self,
        storage: StorageHandle,
        own_id: BlockId,
        change: impl FnOnce(&mut Place) -> T,
    ) -> Option<T> {
        let (mut is_other, mut more, mut fewer) = (false, 0, 0);
        let answer = self.map.change(own_id.group(), storage, own_id.unit(), |place| {
            let before = *place;
            let answer = change(place);
            is_other = *place != before;
            (more, fewer) = (u64::from(place.excess), u64::from(before.excess));
            answer
        });
        self.excess_count = self.excess_count + more - fewer;
        if is_other {
            self.waits.wake(own_id.group());
        }
        answer
    }

    /// Takes a replica, or an internal block by its own id, off a storage, with what was said against it and orders to
    /// delete it: what is not there need not be deleted, and what comes there next must not be. Returns the place and
    /// the mark.
    pub(crate) fn remove(
        &mut self,
        storage: StorageHandle,
        own_id: BlockId,
    ) -> Option<(Place, Option<Bad>)> {
        let (id, unit) = (own_id.group(), own_id.unit());
        self.going.waiting.remove_any_stamp(storage, own_id);
        let mark = self.clear_mark(storage, own_id);
        let removed = self.map.remove(id, storage, unit)?;
        self.excess_count -= u64::from(removed.excess);
        self.waits.wake(id);
        Some((removed, mark))
    }

    /// Forgets a block or group. What was to be deleted of it still is.
    pub(crate) fn forget(&mut self, id: BlockId) -> Forgotten {
        self.waits.wake(id);
        let side = self.side.remove(&id).unwrap_or_default();
        self.index(id);
        let places = self.map.remove_block(id);
        self.excess_count -= places.iter().map(|place| u64::from(place.excess)).sum::<u64>();
        let construction = side.construction.map(|construction| *construction);
        Forgotten { places, construction, bad: side.bad }
    }

    // What is known of few.

    /// All blocks and groups of which anything is known; some are named several times.
    pub(crate) fn known(&self) -> impl Iterator<Item = BlockId> + '_ {
        self.map.all().map(|(id, _)| id).chain(self.side.keys().copied())
    }

    fn side(&self, id: BlockId) -> Option<&Side> {
        self.side.get(&id)
    }

    fn change_side<T>(&mut self, id: BlockId, change: impl FnOnce(&mut Side) -> T) -> T {
        let side = self.side.entry(id).or_default();
        let answer = change(side);
        if side.is_empty() {
            self.side.remove(&id);
        }
        self.index(id);
        self.waits.wake(id);
        answer
    }

    /// Has a block found by what is known of it.
    fn index(&mut self, id: BlockId) {
        let side = self.side.get(&id);
        for (numbers, kind) in self.kinds.iter_mut().zip(Kind::ALL) {
            match side.is_some_and(|side| side.is(kind)) {
                true => numbers.insert(number_of(id)),
                false => numbers.remove(number_of(id)),
            }
        }
    }

    fn of_kind(&self, kind: Kind) -> impl Iterator<Item = BlockId> + '_ {
        self.kinds[kind as usize].iter_from(i64::MIN).map(numbered)
    }

    // What is being written.

    /// What is known of a block that is not complete.
    pub(crate) fn construction(&self, id: BlockId) -> Option<&Construction> {
        self.side(id)?.construction.as_deref()
    }

    /// The blocks and groups that are not complete, or were not told to be.
    pub(crate) fn under_construction(&self) -> impl Iterator<Item = BlockId> + '_ {
        self.of_kind(Kind::Open)
    }

    /// The same, those behind one of them.
    pub(crate) fn under_construction_after(
        &self,
        after: Option<BlockId>,
    ) -> impl Iterator<Item = BlockId> + '_ {
        let from = after.map_or(i64::MIN, |id| number_of(id).saturating_add(1));
        self.kinds[Kind::Open as usize].iter_from(from).map(numbered)
    }

    /// What is known of such a block, to change.
    pub(crate) fn construction_mut(&mut self, id: BlockId) -> Option<&mut Construction> {
        let construction = self.side.get_mut(&id)?.construction.as_deref_mut()?;
        self.waits.wake(id);
        Some(construction)
    }

    /// Changes what is known of such a block; begun with that stamp if nothing is known.
    pub(crate) fn change_construction<T>(
        &mut self,
        id: BlockId,
        gs: GenerationStamp,
        change: impl FnOnce(&mut Construction) -> T,
    ) -> T {
        self.change_side(id, |side| {
            let new = || Box::new(Construction::new(id, gs, &[]));
            change(side.construction.get_or_insert_with(new))
        })
    }

    /// A block is written from now on, whatever was known of that before.
    pub(crate) fn begin_construction(&mut self, id: BlockId, construction: Construction) {
        self.change_side(id, |side| side.construction = Some(Box::new(construction)));
    }

    /// It is written no longer.
    pub(crate) fn end_construction(&mut self, id: BlockId) -> Option<Construction> {
        self.construction(id)?;
        self.change_side(id, |side| side.construction.take()).map(|construction| *construction)
    }

    // What is bad.

    /// What is known to be bad of a block or group, and where.
    pub(crate) fn bad_of(&self, id: BlockId) -> &[(StorageHandle, Bad)] {
        self.side(id).map_or(&[], |side| side.bad.as_slice())
    }

    /// What is said against a replica, or an internal block by its own id, on a storage.
    pub(crate) fn mark(&self, storage: StorageHandle, own_id: BlockId) -> Option<Bad> {
        self.side(own_id.group())?.mark(storage, own_id)
    }

    /// Blocks and groups of which something is bad.
    pub(crate) fn with_bad(&self) -> impl Iterator<Item = BlockId> + '_ {
        self.of_kind(Kind::Bad)
    }

    /// A storage has something bad of a block or group, known there or not. Nobody counts on it: that an order which holds
    /// no more may have been obeyed makes nothing uncertain.
    pub(crate) fn mark_bad(&mut self, storage: StorageHandle, bad: Bad) {
        let own_id = bad.block.id;
        self.add(storage, own_id);
        self.change(storage, own_id, |place| {
            (place.corrupt, place.told) = (true, place.told && place.excess);
        });
        self.change_side(own_id.group(), |side| {
            side.bad.retain(|(s, old)| *s != storage || old.block.id != own_id);
            side.bad.push((storage, bad));
        });
    }

    /// Takes back what was said against a replica or unit. Returns that.
    pub(crate) fn clear_mark(&mut self, storage: StorageHandle, own_id: BlockId) -> Option<Bad> {
        let mark = self.mark(storage, own_id)?;
        self.change_side(own_id.group(), |side| {
            side.bad.retain(|(s, bad)| *s != storage || bad.block.id != own_id);
        });
        self.change(storage, own_id, |place| place.corrupt = false);
        Some(mark)
    }

    /// A record of a CRC is to be replaced.
    pub(crate) fn disprove(&mut self, disproved: DisprovedCrc) {
        self.change_side(disproved.id.group(), |side| {
            side.disproved.retain(|other| other.id != disproved.id);
            side.disproved.push(disproved);
        });
    }

    /// Records that are to be replaced, and were not asked for.
    pub(crate) fn take_disproved(&mut self) -> Vec<DisprovedCrc> {
        let ids: Vec<BlockId> = self.of_kind(Kind::Disproved).collect();
        let take = |id| self.change_side(id, |side| std::mem::take(&mut side.disproved));
        ids.into_iter().flat_map(take).collect()
    }

    /// The parts of a block with that stamp disagree, nobody knows which is wrong, or do not any more.
    pub(crate) fn note_disagreement(&mut self, id: BlockId, gs: GenerationStamp, is_so: bool) {
        let is_room = self.disagreeing_count() < MAX_DISAGREEING || self.disagrees(id).is_some();
        if is_so && is_room || !is_so && self.disagrees(id).is_some() {
            self.change_side(id, |side| side.disagrees = is_so.then_some(gs));
        }
    }

    /// With which stamp the parts of a block disagreed.
    pub(crate) fn disagrees(&self, id: BlockId) -> Option<GenerationStamp> {
        self.side(id)?.disagrees
    }

    /// Blocks and groups whose parts disagree, with their stamps.
    pub(crate) fn disagreeing(&self) -> impl Iterator<Item = (BlockId, GenerationStamp)> + '_ {
        self.of_kind(Kind::Disagrees).filter_map(|id| Some((id, self.disagrees(id)?)))
    }

    /// How many these are.
    pub(crate) fn disagreeing_count(&self) -> usize {
        self.kinds[Kind::Disagrees as usize].len()
    }

    // What is to go.

    /// Places that are chosen for deletion.
    pub(crate) fn excess_count(&self) -> u64 {
        self.excess_count
    }

    /// Chooses a place for deletion, and has its node ordered to that. Nothing happens if it is chosen already.
    pub(crate) fn choose_for_deletion(&mut self, storage: StorageHandle, block: BlockRef) {
        let choose = |place: &mut Place| !std::mem::replace(&mut place.excess, true);
        if self.change(storage, block.id, choose) == Some(true) {
            self.order_deletion(storage, block);
        }
    }

    /// Has a node ordered to delete what no file has, or what it did not delete when it was ordered to.
    pub(crate) fn order_deletion(&mut self, storage: StorageHandle, block: BlockRef) {
        self.going.waiting.insert(storage, block);
    }

    /// Keeps a place after all, if its node was not told to delete it. Returns whether it is kept.
    pub(crate) fn keep(&mut self, storage: StorageHandle, block: BlockRef) -> bool {
        let was_waiting = self.going.waiting.remove(storage, block);
        if was_waiting {
            self.change(storage, block.id, |place| place.excess = false);
        }
        was_waiting
    }

    /// The same, whatever the stamp of the order.
    pub(crate) fn keep_any_stamp(&mut self, storage: StorageHandle, own_id: BlockId) -> bool {
        let was_waiting = self.going.waiting.remove_any_stamp(storage, own_id);
        if was_waiting {
            self.change(storage, own_id, |place| place.excess = false);
        }
        was_waiting
    }

    /// A place is not chosen for deletion any more, even if its node was told: then it may be gone all the same.
    pub(crate) fn take_back(&mut self, storage: StorageHandle, own_id: BlockId) {
        self.going.waiting.remove_any_stamp(storage, own_id);
        self.unchoose(storage, own_id);
    }

    /// A place that was chosen for deletion for what is not so is not chosen any more.
    pub(crate) fn unchoose(&mut self, storage: StorageHandle, own_id: BlockId) {
        self.change(storage, own_id, |place| place.excess = false);
    }

    /// The node of a storage says that it has this, whatever it was told. Returns whether an order to delete it, which
    /// is to stay, may have been obeyed before.
    pub(crate) fn is_there(&mut self, storage: StorageHandle, own_id: BlockId) -> bool {
        let was_ordered = |place: &mut Place| std::mem::take(&mut place.told) && !place.excess;
        self.change(storage, own_id, was_ordered) == Some(true)
    }

    /// The next orders for a storage of a node, which are told to it now. What no file has is hidden from nobody, so
    /// these are not followed: the next report tells of it.
    pub(crate) fn take_deletions(
        &mut self,
        (storage, node): (StorageHandle, NodeHandle),
        limit: usize,
        now_ms: u64,
    ) -> Vec<BlockRef> {
        let orders = self.going.waiting.take(storage, limit);
        for block in &orders {
            let was_told = self.change(storage, block.id, |place| {
                place.excess.then(|| std::mem::replace(&mut place.told, true))
            });
            if let Some(was_told) = was_told.flatten() {
                self.going.note_ordered((storage, node), *block, now_ms, was_told);
            }
        }
        orders
    }

    /// The next orders for a storage, which stay as they are.
    pub(crate) fn next_deletions(
        &self,
        storage: StorageHandle,
        limit: usize,
    ) -> impl Iterator<Item = BlockRef> + '_ {
        self.going.waiting.of(storage).take(limit)
    }

    /// The orders for a storage from one on, which stay as they are.
    pub(crate) fn next_deletions_from(
        &self,
        storage: StorageHandle,
        first: BlockRef,
    ) -> impl Iterator<Item = BlockRef> + '_ {
        self.going.waiting.from(storage, first)
    }

    /// A node says that it has deleted something.
    pub(crate) fn is_deleted(&mut self, storage: StorageHandle, node: NodeHandle, block: BlockRef) {
        self.going.waiting.remove_any_len(storage, block);
        self.going.is_obeyed(node, block);
    }

    /// Orders to delete that were told then or before and are not followed any longer, some at a time; when each was.
    pub(crate) fn take_old_orders(
        &mut self,
        than_ms: u64,
        node_of: impl Fn(StorageHandle) -> NodeHandle,
    ) -> Vec<(StorageHandle, BlockRef)> {
        let old = self.going.take_older(than_ms);
        for (since_ms, storage, block) in &old {
            self.going.is_over(*since_ms, node_of(*storage), *block);
        }
        old.into_iter().map(|(_, storage, block)| (storage, block)).collect()
    }

    /// A place whose node did not obey is not chosen any more: whether it may go is judged anew. One that is good may
    /// be gone all the same.
    pub(crate) fn judge_anew(&mut self, storage: StorageHandle, own_id: BlockId) {
        self.change(storage, own_id, |place| {
            (place.excess, place.told) = (false, !place.corrupt);
        });
    }

    /// Whether a place with that stamp, which is to stay, may be gone all the same, by an order that its node was given.
    pub(crate) fn may_be_gone(
        &self,
        own_id: BlockId,
        gs: GenerationStamp,
        place: &Place,
        node: NodeHandle,
    ) -> bool {
        !place.excess && (place.told || self.going.may_come(node, own_id, gs))
    }

    /// A storage is lost: what it should have deleted, it will tell of again if it returns.
    pub(crate) fn forget_deletions_on(&mut self, storage: StorageHandle) {
        self.going.waiting.forget(storage);
    }

    /// What waits to be deleted, by storage.
    pub(crate) fn deletions(&self) -> impl Iterator<Item = (StorageHandle, &BTreeSet<BlockRef>)> {
        self.going.waiting.iter()
    }

    /// How many replicas wait to be deleted, and how many internal blocks.
    pub(crate) fn deletion_counts(&self) -> (u64, u64) {
        (self.going.waiting.replicas(), self.going.waiting.units())
    }

    /// Something is to be deleted of a block when all its storages have reported.
    pub(crate) fn postpone(&mut self, id: BlockId) {
        if !self.side(id).is_some_and(|side| side.is_postponed) {
            self.change_side(id, |side| side.is_postponed = true);
        }
    }

    /// Blocks and groups of which that is so.
    pub(crate) fn postponed(&self) -> impl Iterator<Item = BlockId> + '_ {
        self.of_kind(Kind::Postponed)
    }

    /// The next of these after one of them, which do not wait any more.
    pub(crate) fn take_postponed(&mut self, after: Option<BlockId>, limit: usize) -> Vec<BlockId> {
        let first = after.map_or(Some(i64::MIN), |after| number_of(after).checked_add(1));
        let numbers = &self.kinds[Kind::Postponed as usize];
        let next = first.into_iter().flat_map(|first| numbers.iter_from(first));
        let next: Vec<BlockId> = next.take(limit).map(numbered).collect();
        for id in &next {
            self.change_side(*id, |side| side.is_postponed = false);
        }
        next
    }

    /// From which node (by UUID) a surplus unit of a block, or a replica, is to be deleted, as a balancer has asked for.
    pub(crate) fn hint_deletion(&mut self, id: BlockId, unit: UnitIndex, node_uuid: &str) {
        let hint = Box::new((unit, node_uuid.to_string()));
        self.change_side(id, |side| side.delete_hint = Some(hint));
    }

    /// That, which holds no more.
    pub(crate) fn take_hint(&mut self, id: BlockId) -> Option<(UnitIndex, String)> {
        self.side(id)?.delete_hint.as_ref()?;
        self.change_side(id, |side| side.delete_hint.take()).map(|hint| *hint)
    }

    // Who waits.

    /// Something is known of a block from now on that is not kept here.
    pub(crate) fn note_change(&mut self, id: BlockId) {
        self.waits.wake(id);
    }

    /// What a storage holds counts, or does not count any more. There are few who wait, and many blocks.
    pub(crate) fn note_change_on(&mut self, storage: StorageHandle) {
        let is_here = |id: &BlockId| {
            let expected = self.construction(*id).map_or(&[][..], |c| c.expected.as_slice());
            let mut all = self.map.places(*id).map(|place| place.storage);
            all.any(|at| at == storage) || expected.iter().any(|e| e.storage == storage)
        };
        let concerned: Vec<BlockId> = self.waits.awaited().filter(is_here).collect();
        for id in concerned {
            self.waits.wake(id);
        }
    }

    /// See [`Cluster::await_change`](crate::Cluster::await_change).
    pub(crate) fn await_change(&mut self, blocks: &[BlockId]) -> Ticket {
        self.waits.add(blocks)
    }

    /// See [`Cluster::forget_wait`](crate::Cluster::forget_wait).
    pub(crate) fn forget_wait(&mut self, ticket: Ticket) {
        self.waits.forget(ticket);
    }

    /// See [`Cluster::take_woken`](crate::Cluster::take_woken).
    pub(crate) fn take_woken(&mut self) -> Vec<Ticket> {
        self.waits.take_woken()
    }

    /// Forgets what is bad of a block, and leaves its places marked: a mistake, to be found.
    #[cfg(test)]
    pub(crate) fn lose_marks(&mut self, id: BlockId) {
        self.side.remove(&id);
    }

    /// Orders to delete that are followed.
    #[cfg(test)]
    pub(crate) fn ordered_count(&self) -> usize {
        self.going.ordered_count()
    }

    /// How much there is to look at, in chunks of places.
    pub(crate) fn chunk_count(&self) -> usize {
        self.map.chunk_count()
    }

    /// Makes what is kept not fit together, to see that this is noticed.
    #[cfg(test)]
    pub(crate) fn damage(&mut self) {
        self.excess_count += 1;
    }

    /// Panics if what is kept does not fit together. Looks at everything. A storage that was lost and has not reported
    /// since is told nothing.
    pub(crate) fn check_invariants(&self, has_reported: impl Fn(StorageHandle) -> bool) {
        self.waits.check_invariants();
        self.check_some(i64::MIN, usize::MAX, has_reported);
        let excess_count = self.map.all().filter(|(_, place)| place.excess).count();
        assert_eq!(excess_count as u64, self.excess_count, "places that are chosen for deletion");
        self.check_some_sides(BlockId(i64::MIN), usize::MAX);
        for kind in Kind::ALL {
            let all = self.side.iter().filter(|(_, side)| side.is(kind)).map(|(id, _)| *id);
            assert!(self.of_kind(kind).eq(all), "blocks that are {kind:?}");
        }
    }

    /// The same of the places in so many chunks from one on. Returns the next, if there is one.
    pub(crate) fn check_some(
        &self,
        first: i64,
        count: usize,
        has_reported: impl Fn(StorageHandle) -> bool,
    ) -> Option<i64> {
        let (places, next) = self.map.some(first, count);
        for (id, place) in places {
            let own_id = own_id(id, place.unit);
            self.map.check_held(id, &place);
            let mark = self.mark(place.storage, own_id);
            assert_eq!(
                place.corrupt,
                mark.is_some(),
                "the mark of {own_id} on {:?}",
                place.storage
            );
            if place.excess && !place.told && has_reported(place.storage) {
                let is_waiting = self.going.waiting.has_any_stamp(place.storage, own_id);
                assert!(is_waiting, "nobody is told to delete {own_id} on {:?}", place.storage);
            }
        }
        next
    }

    /// The same of what is known besides of so many blocks from one on. Returns the next, if there is one.
    pub(crate) fn check_some_sides(&self, first: BlockId, count: usize) -> Option<BlockId> {
        let sides = self.side.range(first..);
        for (id, side) in sides.clone().take(count) {
            assert!(*id == id.group() && !side.is_empty(), "{id} is not worth a record");
            for (storage, bad) in &side.bad {
                assert_eq!(bad.block.id.group(), *id);
                assert!(self.on(*storage, bad.block.id).is_some(), "{bad:?} is nowhere");
            }
        }
        sides.map(|(id, _)| *id).nth(count)
    }
}
