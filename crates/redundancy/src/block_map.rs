//! Block or group to its places: eight bytes a place and little more than two a block.
//!
//! Blocks whose ids follow each other lie together, as ids are given out in order: a chunk has the places of
//! 64 of them one behind the other, and where those of each end.

use crate::storage::StorageHandle;
use cairn_stripe::{BlockId, UnitIndex};
use std::collections::BTreeMap;
use std::ops::Range;

/// Bits of a block's number that say where it is in its chunk.
const CHUNK_BITS: u32 = 6;
const CHUNK: usize = 1 << CHUNK_BITS;
/// Bits of the ids of groups that are taken up by units.
const UNIT_BITS: u32 = cairn_stripe::id::MAX_UNITS_PER_GROUP.ilog2();

/// One replica or unit on one storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub storage: StorageHandle,
    pub unit: UnitIndex,
    pub corrupt: bool,
    /// Chosen for deletion, and not reported deleted yet.
    pub excess: bool,
    /// Its node was told to delete it, and has not said since that it has it.
    pub told: bool,
}

/// The places of every block and group that has any.
#[derive(Clone, Debug, Default)]
pub(crate) struct BlockMap {
    chunks: BTreeMap<i64, Box<Chunk>>,
}

#[derive(Clone, Debug)]
struct Chunk {
    /// Where the places of each block end.
    ends: [u32; CHUNK],
    places: Vec<Place>,
}

/// The chunk of a block, and which one it is there. Groups have negative ids, and so chunks of their own.
fn split(id: BlockId) -> (i64, usize) {
    let number = if id.is_striped() { id.0 >> UNIT_BITS } else { id.0 };
    (number >> CHUNK_BITS, (number & (CHUNK as i64 - 1)) as usize)
}

impl Chunk {
    fn range(&self, at: usize) -> Range<usize> {
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        start as usize..self.ends[at] as usize
    }

    fn position(&self, at: usize, storage: StorageHandle, unit: UnitIndex) -> Option<usize> {
        self.range(at).find(|at| {
            let place = &self.places[*at];
            place.storage == storage && place.unit == unit
        })
    }
}

impl BlockMap {
    pub(crate) fn places(&self, id: BlockId) -> &[Place] {
        let (high, at) = split(id);
        self.chunks.get(&high).map_or(&[], |chunk| &chunk.places[chunk.range(at)])
    }

    pub(crate) fn place_mut(
        &mut self,
        id: BlockId,
        storage: StorageHandle,
        unit: UnitIndex,
    ) -> Option<&mut Place> {
        let (high, at) = split(id);
        let chunk = self.chunks.get_mut(&high)?;
        let position = chunk.position(at, storage, unit)?;
        chunk.places.get_mut(position)
    }

    /// Adds a good place. Returns whether it is new.
    pub(crate) fn add(&mut self, id: BlockId, storage: StorageHandle, unit: UnitIndex) -> bool {
        let (high, at) = split(id);
        let new = || Box::new(Chunk { ends: [0; CHUNK], places: Vec::new() });
        let chunk = self.chunks.entry(high).or_insert_with(new);
        if chunk.position(at, storage, unit).is_some() {
            return false;
        }
        if chunk.places.len() == chunk.places.capacity() {
            // Room for an eighth more, not for as much again: there are very many of these.
            chunk.places.reserve_exact(chunk.places.len() / 8 + 4);
        }
        let place = Place { storage, unit, corrupt: false, excess: false, told: false };
        chunk.places.insert(chunk.range(at).end, place);
        for end in &mut chunk.ends[at..] {
            *end += 1;
        }
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
        let chunk = self.chunks.get_mut(&high)?;
        let position = chunk.position(at, storage, unit)?;
        let place = chunk.places.remove(position);
        for end in &mut chunk.ends[at..] {
            *end -= 1;
        }
        if chunk.places.is_empty() {
            self.chunks.remove(&high);
        }
        Some(place)
    }

    pub(crate) fn remove_block(&mut self, id: BlockId) -> Vec<Place> {
        let (high, at) = split(id);
        let Some(chunk) = self.chunks.get_mut(&high) else { return Vec::new() };
        let removed: Vec<Place> = chunk.places.drain(chunk.range(at)).collect();
        for end in &mut chunk.ends[at..] {
            *end -= removed.len() as u32;
        }
        if chunk.places.is_empty() {
            self.chunks.remove(&high);
        }
        removed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holds_what_a_plain_map_holds() {
        let mut map = BlockMap::default();
        let mut model: BTreeMap<BlockId, Vec<(u32, u8)>> = BTreeMap::new();
        let mut state = 11_u64;
        let mut dice = |below: u64| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) % below
        };
        for round in 0..30_000 {
            let is_group = dice(2) == 0;
            let number = dice(200) as i64;
            let id = if is_group {
                BlockId(i64::MIN + 16 * number)
            } else {
                BlockId((1 << 30) + number)
            };
            let place = (dice(12) as u32, if is_group { dice(9) as u8 } else { 0 });
            let (storage, unit) = (StorageHandle(place.0), UnitIndex(place.1));
            let known = model.entry(id).or_default();
            match dice(if round < 15_000 { 40 } else { 10 }) {
                0 => {
                    let removed = map.remove_block(id);
                    let removed: Vec<_> = removed.iter().map(|p| (p.storage.0, p.unit.0)).collect();
                    assert_eq!(removed, std::mem::take(known));
                }
                1..=6 => {
                    let was_there = known.contains(&place);
                    known.retain(|other| *other != place);
                    assert_eq!(map.remove(id, storage, unit).is_some(), was_there);
                }
                _ => {
                    let is_new = !known.contains(&place);
                    if is_new {
                        known.push(place);
                    }
                    assert_eq!(map.add(id, storage, unit), is_new);
                    let found = map.place_mut(id, storage, unit).map(|p| (p.storage, p.unit));
                    assert_eq!(found, Some((storage, unit)));
                }
            }
            let places: Vec<_> = map.places(id).iter().map(|p| (p.storage.0, p.unit.0)).collect();
            assert_eq!(&places, known);
        }
        for id in model.into_keys() {
            map.remove_block(id);
        }
        assert!(map.chunks.is_empty());
    }
}
