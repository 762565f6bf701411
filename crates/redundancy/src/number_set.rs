//! Numbers that are near each other, in order: about two bits to two bytes each.
//!
//! They are cut into chunks of 4,096. A chunk with few of them lists them, one with many has a bit for each.

use std::collections::BTreeMap;
use std::ops::Bound;

/// Bits of a number that say where it is in its chunk.
const CHUNK_BITS: u32 = 12;
/// Numbers that a chunk lists; from one more on it has bits, which take no more room.
const FEW: usize = (1 << CHUNK_BITS) / 8 / size_of::<u16>();
const WORDS: usize = (1 << CHUNK_BITS) / 64;

/// A set of numbers.
#[derive(Clone, Debug, Default)]
pub(crate) struct NumberSet {
    chunks: BTreeMap<i64, Chunk>,
    len: usize,
}

#[derive(Clone, Debug)]
enum Chunk {
    Few(Vec<u16>),
    Many(Box<[u64; WORDS]>),
}

fn split(number: i64) -> (i64, u16) {
    (number >> CHUNK_BITS, (number & ((1 << CHUNK_BITS) - 1)) as u16)
}

impl Chunk {
    fn contains(&self, low: u16) -> bool {
        match self {
            Chunk::Few(list) => list.binary_search(&low).is_ok(),
            Chunk::Many(words) => words[usize::from(low / 64)] & (1 << (low % 64)) != 0,
        }
    }

    fn insert(&mut self, low: u16) -> bool {
        if let Chunk::Few(list) = self {
            let Err(at) = list.binary_search(&low) else { return false };
            if list.len() < FEW {
                list.insert(at, low);
                return true;
            }
            let mut words = Box::new([0; WORDS]);
            for low in list {
                words[usize::from(*low / 64)] |= 1 << (*low % 64);
            }
            *self = Chunk::Many(words);
        }
        let Chunk::Many(words) = self else { return false };
        let (word, bit) = (&mut words[usize::from(low / 64)], 1 << (low % 64));
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }

    fn remove(&mut self, low: u16) -> bool {
        match self {
            Chunk::Few(list) => list.binary_search(&low).map(|at| list.remove(at)).is_ok(),
            Chunk::Many(words) => {
                let (word, bit) = (&mut words[usize::from(low / 64)], 1 << (low % 64));
                let was_there = *word & bit != 0;
                *word &= !bit;
                was_there
            }
        }
    }

    fn len(&self) -> usize {
        match self {
            Chunk::Few(list) => list.len(),
            Chunk::Many(words) => words.iter().map(|word| word.count_ones() as usize).sum(),
        }
    }

    /// Its smallest from `low` on.
    fn next(&self, low: u16) -> Option<u16> {
        match self {
            Chunk::Few(list) => list.get(list.partition_point(|known| *known < low)).copied(),
            Chunk::Many(words) => {
                let (first, rest) = (usize::from(low / 64), low % 64);
                let masked = |at: usize| match at == first {
                    true => words[at] & (u64::MAX << rest),
                    false => words[at],
                };
                let word = (first..WORDS).find(|at| masked(*at) != 0)?;
                Some((word * 64) as u16 + masked(word).trailing_zeros() as u16)
            }
        }
    }
}

impl NumberSet {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn contains(&self, number: i64) -> bool {
        let (high, low) = split(number);
        self.chunks.get(&high).is_some_and(|chunk| chunk.contains(low))
    }

    pub(crate) fn insert(&mut self, number: i64) {
        let (high, low) = split(number);
        let chunk = self.chunks.entry(high).or_insert_with(|| Chunk::Few(Vec::new()));
        self.len += usize::from(chunk.insert(low));
    }

    pub(crate) fn remove(&mut self, number: i64) {
        let (high, low) = split(number);
        let Some(chunk) = self.chunks.get_mut(&high) else { return };
        self.len -= usize::from(chunk.remove(low));
        if chunk.next(0).is_none() {
            self.chunks.remove(&high);
        }
    }

    /// The smallest from `first` on.
    pub(crate) fn next(&self, first: i64) -> Option<i64> {
        let (high, low) = split(first);
        let from = (Bound::Included(high), Bound::Unbounded);
        self.chunks.range(from).find_map(|(at, chunk)| {
            let found = chunk.next(if *at == high { low } else { 0 })?;
            Some((at << CHUNK_BITS) | i64::from(found))
        })
    }

    /// Those from `first` on, in order.
    pub(crate) fn iter_from(&self, first: i64) -> impl Iterator<Item = i64> + '_ {
        let next = |last: &i64| self.next(last.checked_add(1)?);
        std::iter::successors(self.next(first), next)
    }

    /// The one that `count` are smaller than.
    pub(crate) fn nth(&self, mut count: usize) -> Option<i64> {
        for (at, chunk) in &self.chunks {
            let Some(left) = count.checked_sub(chunk.len()) else {
                return self.iter_from(at << CHUNK_BITS).nth(count);
            };
            count = left;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn holds_what_a_plain_set_holds() {
        let (mut set, mut model) = (NumberSet::default(), BTreeSet::new());
        let mut state = 7_u64;
        let mut dice = |below: u64| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) % below
        };
        for round in 0..40_000 {
            // Two regions, as blocks and groups have, one of them dense enough for bits.
            let number = match dice(3) {
                0 => i64::MIN + 16 * dice(5000) as i64 + dice(9) as i64,
                1 => (1 << 30) + dice(3000) as i64,
                _ => i64::MAX - dice(3) as i64,
            };
            // First they grow, then they shrink.
            if dice(10) < if round < 20_000 { 8 } else { 3 } {
                set.insert(number);
                model.insert(number);
            } else {
                set.remove(number);
                model.remove(&number);
            }
            assert_eq!(set.len(), model.len());
            assert_eq!(set.contains(number), model.contains(&number));
            assert_eq!(set.next(number), model.range(number..).next().copied());
            if round % 5000 == 0 {
                assert!(set.iter_from(i64::MIN).eq(model.iter().copied()));
                let count = dice(model.len() as u64 + 1) as usize;
                assert_eq!(set.nth(count), model.iter().nth(count).copied());
            }
        }
        for number in model {
            set.remove(number);
        }
        assert!(set.len() == 0 && set.chunks.is_empty());
    }
}
