//! Where blocks are, and what storages hold: four bytes a place, four a block, and next to nothing a storage.
//!
//! Blocks whose ids follow each other lie together, as ids are given out in order: a chunk has the places of
//! 64 of them one behind the other, and where those of each end. Of a storage is known in which chunks to look
//! for what it holds; there its places are found among the others.

mod chunk;
mod place;
#[cfg(test)]
mod tests;

pub(crate) use place::{Place, STORAGES_MAX};

use crate::handle::StorageHandle;
use crate::number_set::NumberSet;
use cairn_stripe::{BlockId, UnitIndex};
use chunk::Chunk;
use place::UNIT_BITS;
use std::collections::BTreeMap;
use std::iter::successors;

/// Bits of a block's number that say where it is in its chunk.
const CHUNK_BITS: u32 = 6;
/// Blocks of a chunk, at most.
pub(crate) const CHUNK: usize = 1 << CHUNK_BITS;
/// The first of the ids of parities of contiguous groups, and of their numbers.
const PARITIES: i64 = 1 << 61;
/// The first number that is of none of these any more.
const PARITIES_END: i64 = 2 * PARITIES;

/// The places of every block and group that has any.
#[derive(Clone, Debug, Default)]
pub(crate) struct BlockMap {
    chunks: BTreeMap<i64, Chunk>,
    /// What each storage holds, by its number.
    held: Vec<Held>,
}

/// What a storage holds.
#[derive(Clone, Debug, Default)]
struct Held {
    count: usize,
    /// The chunks that it has places in.
    chunks: NumberSet,
}

/// The number of a block or group: in the order of ids, and one more for the next id that is given out.
pub(crate) fn number_of(id: BlockId) -> i64 {
    match id {
        _ if id.is_striped() => id.0 >> UNIT_BITS,
        // Above those of all blocks.
        _ if id.is_parity() => PARITIES | ((id.0 & !PARITIES) >> UNIT_BITS),
        _ => id.0,
    }
}

/// The block or group with that number.
pub(crate) fn numbered(number: i64) -> BlockId {
    BlockId(match number {
        ..0 => number << UNIT_BITS,
        PARITIES..PARITIES_END => PARITIES | ((number & !PARITIES) << UNIT_BITS),
        _ => number,
    })
}

/// The chunk of a block, and which one it is there. Groups have negative numbers, and so chunks of their own.
fn split(id: BlockId) -> (i64, u32) {
    let number = number_of(id);
    (number >> CHUNK_BITS, (number & ((1 << CHUNK_BITS) - 1)) as u32)
}

/// The id of a replica or unit of the block at a place of a chunk.
fn own_id(chunk: i64, at: u32, unit: UnitIndex) -> BlockId {
    let id = numbered((chunk << CHUNK_BITS) | i64::from(at));
    if id.has_units() { id.internal(unit) } else { id }
}

impl BlockMap {
    /// The places of a block or group.
    pub(crate) fn places(&self, id: BlockId) -> impl Iterator<Item = Place> + Clone + '_ {
        let (high, at) = split(id);
        self.chunks.get(&high).map(|chunk| chunk.places(at)).into_iter().flatten()
    }

    /// All places, by block.
    pub(crate) fn all(&self) -> impl Iterator<Item = (BlockId, Place)> + '_ {
        self.some(i64::MIN, usize::MAX).0
    }

    /// Those in the first so many chunks from one on, and the chunk behind them, if there is one.
    pub(crate) fn some(
        &self,
        first: i64,
        count: usize,
    ) -> (impl Iterator<Item = (BlockId, Place)> + '_, Option<i64>) {
        let chunks = self.chunks.range(first..);
        let next = chunks.clone().nth(count).map(|(high, _)| *high);
        let places = chunks.take(count).flat_map(|(high, chunk)| {
            (0..CHUNK as u32).flat_map(move |at| {
                let id = numbered((high << CHUNK_BITS) | i64::from(at));
                chunk.places(at).map(move |place| (id, place))
            })
        });
        (places, next)
    }

    /// How many chunks there are.
    pub(crate) fn chunk_count(&self) -> usize {
        self.chunks.len()
    }

    /// Panics if what a place's storage is known to hold does not lead to it.
    pub(crate) fn check_held(&self, id: BlockId, place: &Place) {
        let (held, (high, _)) = (self.held.get(place.storage.0 as usize), split(id));
        let is_led_to = held.is_some_and(|held| held.chunks.next(high) == Some(high));
        assert!(is_led_to, "{id} is not found on {:?}", place.storage);
    }

    /// Whether a storage has that replica, or that unit by its own id.
    pub(crate) fn is_on(&self, storage: StorageHandle, own_id: BlockId) -> bool {
        let (high, at) = split(own_id);
        self.chunks.get(&high).is_some_and(|c| c.place(at, storage, own_id.unit()).is_some())
    }

    /// Changes what is known of a place besides its storage and unit. None if there is no such place.
    pub(crate) fn change<T>(
        &mut self,
        id: BlockId,
        storage: StorageHandle,
        unit: UnitIndex,
        change: impl FnOnce(&mut Place) -> T,
    ) -> Option<T> {
        let (high, at) = split(id);
        let chunk = self.chunks.get_mut(&high)?;
        let mut place = chunk.place(at, storage, unit)?;
        let answer = change(&mut place);
        chunk.replace(at, Place { storage, unit, ..place });
        Some(answer)
    }

    /// Adds a good place. Returns whether it is new.
    pub(crate) fn add(&mut self, id: BlockId, storage: StorageHandle, unit: UnitIndex) -> bool {
        let (high, at) = split(id);
        if !self.chunks.entry(high).or_default().add(at, storage, unit) {
            return false;
        }
        let number = storage.0 as usize;
        if self.held.len() <= number {
            self.held.resize_with(number + 1, Held::default);
        }
        self.held[number].count += 1;
        self.held[number].chunks.insert(high);
        true
    }

    /// Takes a place out. Returns it if it was there.
    pub(crate) fn remove(
        &mut self,
        id: BlockId,
        storage: StorageHandle,
        unit: UnitIndex,
    ) -> Option<Place> {
        let (high, at) = split(id);
        let place = self.chunks.get_mut(&high)?.remove(at, storage, unit)?;
        self.forget(high, &[place]);
        Some(place)
    }

    /// Takes all places of a block or group out.
    pub(crate) fn remove_block(&mut self, id: BlockId) -> Vec<Place> {
        let (high, at) = split(id);
        let Some(chunk) = self.chunks.get_mut(&high) else { return Vec::new() };
        let removed = chunk.remove_block(at);
        self.forget(high, &removed);
        removed
    }

    /// These places are not in a chunk any more.
    fn forget(&mut self, high: i64, removed: &[Place]) {
        let Some(chunk) = self.chunks.get(&high) else { return };
        for place in removed {
            let held = &mut self.held[place.storage.0 as usize];
            held.count -= 1;
            if !chunk.is_on(place.storage) {
                held.chunks.remove(high);
            }
        }
        if chunk.is_empty() {
            self.chunks.remove(&high);
        }
    }

    /// Replicas and units on a storage.
    pub(crate) fn count_on(&self, storage: StorageHandle) -> usize {
        self.held.get(storage.0 as usize).map_or(0, |held| held.count)
    }

    /// Chunks in which a storage has something.
    pub(crate) fn chunks_on(&self, storage: StorageHandle) -> usize {
        self.held.get(storage.0 as usize).map_or(0, |held| held.chunks.len())
    }

    /// The first that a storage has in the chunk that `count` of its chunks come before.
    pub(crate) fn first_in_chunk(&self, storage: StorageHandle, count: usize) -> Option<BlockId> {
        let high = self.held.get(storage.0 as usize)?.chunks.nth(count)?;
        let (at, unit) = self.chunks.get(&high)?.next_on(storage, 0, UnitIndex(0))?;
        Some(own_id(high, at, unit))
    }

    /// The next that a storage has after `after`, or the first: ids of replicas and units of groups, in order.
    pub(crate) fn next_on(
        &self,
        storage: StorageHandle,
        after: Option<BlockId>,
    ) -> Option<BlockId> {
        let held = self.held.get(storage.0 as usize)?;
        let first = match after {
            None => BlockId(i64::MIN),
            Some(after) => BlockId(after.0.checked_add(1)?),
        };
        let (high, at) = split(first);
        held.chunks.iter_from(high).find_map(|number| {
            let (at, unit) = if number == high { (at, first.unit()) } else { (0, UnitIndex(0)) };
            let (at, unit) = self.chunks.get(&number)?.next_on(storage, at, unit)?;
            Some(own_id(number, at, unit))
        })
    }

    /// What a storage has after `after`, or all of it, in order.
    pub(crate) fn iter_on(
        &self,
        storage: StorageHandle,
        after: Option<BlockId>,
    ) -> impl Iterator<Item = BlockId> + Clone + '_ {
        successors(self.next_on(storage, after), move |last| self.next_on(storage, Some(*last)))
    }
}
