//! The places of 64 blocks whose ids follow each other, in one piece of memory.

use super::place::{FLAG_BITS, Place, STORAGES_MAX, UNIT_BITS};
use crate::handle::StorageHandle;
use cairn_stripe::UnitIndex;
use std::ops::Range;

/// Places that are compared at a time.
const LANES: usize = 32;

/// A place in four bytes: its storage, then its unit, then its flags.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packed(u32);

const CORRUPT: u32 = 1;
const EXCESS: u32 = 1 << 1;
const TOLD: u32 = 1 << 2;

impl From<Place> for Packed {
    fn from(place: Place) -> Packed {
        let flag = |is_set: bool, flag: u32| if is_set { flag } else { 0 };
        let flags =
            flag(place.corrupt, CORRUPT) | flag(place.excess, EXCESS) | flag(place.told, TOLD);
        Packed((key(place.storage, place.unit) << FLAG_BITS) | flags)
    }
}

impl Packed {
    pub(super) fn open(self) -> Place {
        let key = self.0 >> FLAG_BITS;
        Place {
            storage: StorageHandle(key >> UNIT_BITS),
            unit: UnitIndex((key & ((1 << UNIT_BITS) - 1)) as u8),
            corrupt: self.0 & CORRUPT != 0,
            excess: self.0 & EXCESS != 0,
            told: self.0 & TOLD != 0,
        }
    }
}

/// A place without its flags.
fn key(storage: StorageHandle, unit: UnitIndex) -> u32 {
    debug_assert!((storage.0 as usize) < STORAGES_MAX, "{storage:?} is one too many");
    (storage.0 << UNIT_BITS) | u32::from(unit.0)
}

/// The blocks of a chunk that have places, and these.
#[derive(Clone, Debug, Default)]
pub(super) struct Chunk {
    /// A bit for each block that has any.
    present: u64,
    /// Of each of these, in order, where its places end, counted from the first place; then the places.
    words: Vec<u32>,
}

impl Chunk {
    pub(super) fn is_empty(&self) -> bool {
        self.present == 0
    }

    /// The places of a block, in the order in which they came.
    pub(super) fn places(&self, at: u32) -> impl ExactSizeIterator<Item = Place> + Clone + '_ {
        self.words[self.range(at)].iter().map(|word| Packed(*word).open())
    }

    /// The place of a block on a storage.
    pub(super) fn place(&self, at: u32, storage: StorageHandle, unit: UnitIndex) -> Option<Place> {
        Some(Packed(self.words[self.position(at, storage, unit)?]).open())
    }

    /// Puts a place in the place of the one with its storage and unit.
    pub(super) fn replace(&mut self, at: u32, place: Place) {
        if let Some(position) = self.position(at, place.storage, place.unit) {
            self.words[position] = Packed::from(place).0;
        }
    }

    /// Adds a good place to a block. Returns whether it is new.
    pub(super) fn add(&mut self, at: u32, storage: StorageHandle, unit: UnitIndex) -> bool {
        if self.position(at, storage, unit).is_some() {
            return false;
        }
        if self.words.capacity() - self.words.len() < 2 {
            self.words.reserve_exact(self.slack());
        }
        let (rank, range) = (self.rank(at), self.range(at));
        let mut end = range.end;
        if !self.has(at) {
            self.words.insert(rank, (end - self.block_count()) as u32);
            self.present |= 1 << at;
            end += 1;
        }
        let place = Place { storage, unit, corrupt: false, excess: false, told: false };
        self.words.insert(end, Packed::from(place).0);
        let count = self.block_count();
        for end in &mut self.words[rank..count] {
            *end += 1;
        }
        true
    }

    /// Takes a place out. Returns it if it was there.
    pub(super) fn remove(
        &mut self,
        at: u32,
        storage: StorageHandle,
        unit: UnitIndex,
    ) -> Option<Place> {
        let position = self.position(at, storage, unit)?;
        Some(self.take(at, position..position + 1)[0])
    }

    /// Takes all places of a block out.
    pub(super) fn remove_block(&mut self, at: u32) -> Vec<Place> {
        self.take(at, self.range(at))
    }

    /// Takes some of the places of a block out.
    fn take(&mut self, at: u32, taken: Range<usize>) -> Vec<Place> {
        let (rank, count) = (self.rank(at), self.block_count());
        let is_last = self.has(at) && taken == self.range(at);
        let places: Vec<Place> = self.words.drain(taken).map(|word| Packed(word).open()).collect();
        for end in &mut self.words[rank..count] {
            *end -= places.len() as u32;
        }
        if is_last {
            self.words.remove(rank);
            self.present &= !(1 << at);
        }
        if self.words.len() < self.words.capacity() / 2 {
            self.words.shrink_to(self.words.len() + self.slack());
        }
        places
    }

    /// Words that room is made for: a sixteenth more, not as many again, since there are very many chunks.
    fn slack(&self) -> usize {
        self.words.len() / 16 + 6
    }

    /// Whether anything is on a storage.
    pub(super) fn is_on(&self, storage: StorageHandle) -> bool {
        self.find(self.block_count(), storage).is_some()
    }

    /// What a storage has of a block, from a unit on, or of the next of the blocks after it of which it has any:
    /// the smallest unit.
    pub(super) fn next_on(
        &self,
        storage: StorageHandle,
        at: u32,
        from: UnitIndex,
    ) -> Option<(u32, UnitIndex)> {
        let of = |at: u32, from: UnitIndex| {
            let here = self.places(at).filter(|place| place.storage == storage);
            here.map(|place| place.unit).filter(|unit| *unit >= from).min()
        };
        if let Some(unit) = of(at, from) {
            return Some((at, unit));
        }
        let count = self.block_count();
        let position = self.find(self.range(at).end, storage)? - count;
        let rank = self.words[..count].partition_point(|end| *end as usize <= position);
        let at = (0..rank).fold(self.present, |left, _| left & (left - 1)).trailing_zeros();
        Some((at, of(at, UnitIndex(0))?))
    }

    /// Where the next place on a storage is.
    fn find(&self, from: usize, storage: StorageHandle) -> Option<usize> {
        let is_on = |word: &u32| word >> (UNIT_BITS + FLAG_BITS) == storage.0;
        let mut parts = self.words[from..].chunks(LANES);
        // All of a part are compared, so that it is done several at a time.
        let part = parts.position(|part| part.iter().fold(false, |any, word| any | is_on(word)))?;
        let from = from + part * LANES;
        Some(from + self.words[from..].iter().position(is_on)?)
    }

    /// Words that there is room for.
    #[cfg(test)]
    pub(super) fn room(&self) -> usize {
        self.words.capacity()
    }

    /// Blocks that have places.
    fn block_count(&self) -> usize {
        self.present.count_ones() as usize
    }

    fn has(&self, at: u32) -> bool {
        self.present & (1 << at) != 0
    }

    /// How many blocks before that one have places.
    fn rank(&self, at: u32) -> usize {
        (self.present & ((1 << at) - 1)).count_ones() as usize
    }

    /// Where the places of a block are, or would be.
    fn range(&self, at: u32) -> Range<usize> {
        let (count, rank) = (self.block_count(), self.rank(at));
        let start = rank.checked_sub(1).map_or(0, |before| self.words[before] as usize);
        let end = if self.has(at) { self.words[rank] as usize } else { start };
        count + start..count + end
    }

    fn position(&self, at: u32, storage: StorageHandle, unit: UnitIndex) -> Option<usize> {
        let key = key(storage, unit);
        self.range(at).find(|position| self.words[*position] >> FLAG_BITS == key)
    }
}
