//! What contiguous groups make of files: whole groups of one file first, then groups of what files of one directory leave
//! over, as a NameNode of Cairn chooses them.
//!
//! Files come in any order, and groups are made of those of one directory, so what each file leaves over is kept in eight
//! bytes until all have come.
//!
//! Mirrors `cairn_master::contiguous::convert`, with whose rules it decides.

use crate::layout::Cost;
use cairn_master::contiguous::choose::Rules;
use std::cmp::Reverse;

/// What is kept of a file's number of full blocks is that number modulo this, which is enough for each of the policies.
const FULL: u64 = 30;
/// Parts of a block in which the length of a last one is kept.
const PARTS: u64 = 1 << 22;
/// Lengths of blocks that are told apart; those that come later count as the one next to them.
const BLOCK_LENS_MAX: usize = 32;
/// Copies of blocks that are in no group.
pub(crate) const COPIES: u64 = 3;

/// The shape of groups, and what they must save.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape<'a> {
    pub k: u64,
    pub m: u64,
    pub rules: &'a Rules,
    /// Fewest bytes of a block that may be in a group.
    pub len_min: u64,
}

impl Shape<'_> {
    fn pays(&self, lens: &[u64]) -> bool {
        self.rules.pays(lens, self.m as usize)
    }

    /// What of a file is in groups of its own, and what can be in no group. What is left over, [`Leftovers`] has.
    pub fn of_file(&self, len: u64, block_len: u64) -> Cost {
        let Blocks { full, last, short } = Blocks::of(len, block_len, self.len_min);
        let mut cost = Cost::of_copies(short, u64::from(short > 0), COPIES);
        if self.len_min > block_len {
            return Cost::of_copies(len, len.div_ceil(block_len.max(1)), COPIES);
        }
        cost += Cost::of_members(&[block_len; 16][..self.k.min(16) as usize], self.m)
            .times(full / self.k);
        if let Some(mixed) = self.mixed(full, last, block_len) {
            cost += Cost::of_members(&mixed, self.m);
        }
        cost
    }

    /// The members of a last group that has the last block, shorter than the others, if it pays.
    fn mixed(&self, full: u64, last: u64, block_len: u64) -> Option<Vec<u64>> {
        let fits = last > 0 && (full + 1).is_multiple_of(self.k);
        let mut members = fits.then(|| vec![block_len; self.k as usize - 1])?;
        members.push(last);
        self.pays(&members).then_some(members)
    }
}

/// Blocks of a file.
struct Blocks {
    /// How many are full.
    full: u64,
    /// Bytes of a last one that is not full and may be in a group.
    last: u64,
    /// Bytes of a last one that is too short for one.
    short: u64,
}

impl Blocks {
    fn of(len: u64, block_len: u64, len_min: u64) -> Blocks {
        let block_len = block_len.max(1);
        let (full, rest) = (len / block_len, len % block_len);
        match rest >= len_min {
            true => Blocks { full, last: rest, short: 0 },
            false => Blocks { full, last: 0, short: rest },
        }
    }
}

/// What files leave over.
#[derive(Debug, Default)]
pub(crate) struct Leftovers {
    /// The directory, the number of full blocks, the number of the length of blocks, and the length of the last one.
    entries: Vec<u64>,
    block_lens: Vec<u64>,
}

impl Leftovers {
    /// Makes room, so that it need not grow.
    pub fn with_capacity(files: usize) -> Leftovers {
        Leftovers { entries: Vec::with_capacity(files), block_lens: Vec::new() }
    }

    /// Adds a file, in so many bytes that it is told apart where it matters.
    pub fn add(&mut self, directory: u32, len: u64, block_len: u64, len_min: u64) {
        let block_len = block_len.max(1);
        let Blocks { full, last, .. } = Blocks::of(len, block_len, len_min);
        if block_len < len_min || (full == 0 && last == 0) {
            return;
        }
        let number = self.number(block_len) as u64;
        let parts = u128::from(last) * u128::from(PARTS);
        let part = (parts.div_ceil(u128::from(block_len)) as u64).min(PARTS - 1);
        let entry = (full % FULL) << 27 | number << 22 | part;
        self.entries.push(u64::from(directory) << 32 | entry);
    }

    fn number(&mut self, block_len: u64) -> usize {
        if let Some(at) = self.block_lens.iter().position(|len| *len == block_len) {
            return at;
        }
        if self.block_lens.len() < BLOCK_LENS_MAX {
            self.block_lens.push(block_len);
            return self.block_lens.len() - 1;
        }
        let near = self.block_lens.iter().enumerate();
        near.min_by_key(|(_, len)| len.abs_diff(block_len)).map_or(0, |(at, _)| at)
    }

    /// Makes groups for each of the shapes, and tells what they, and what is in none, take in which directory.
    pub fn pack(mut self, shapes: &[Shape<'_>], mut take: impl FnMut(u32, usize, Cost)) {
        self.entries.sort_unstable();
        let mut lens = Vec::new();
        for files in self.entries.chunk_by(|one, next| one >> 32 == next >> 32) {
            let directory = (files[0] >> 32) as u32;
            for (number, shape) in shapes.iter().enumerate() {
                lens.clear();
                files.iter().for_each(|entry| self.left(*entry, shape, &mut lens));
                lens.sort_unstable_by_key(|len| Reverse(*len));
                take(directory, number, of_directory(&lens, shape));
            }
        }
    }

    /// The blocks that a file leaves over.
    fn left(&self, entry: u64, shape: &Shape<'_>, out: &mut Vec<u64>) {
        let (full, number) = (entry >> 27 & 31, entry >> 22 & 31);
        let block_len = self.block_lens.get(number as usize).copied().unwrap_or(1);
        let part = u128::from(entry & (PARTS - 1));
        let last = (part * u128::from(block_len) / u128::from(PARTS)) as u64;
        if shape.mixed(full, last, block_len).is_some() {
            return;
        }
        out.extend(std::iter::repeat_n(block_len, (full % shape.k) as usize));
        out.extend(Some(last).filter(|last| *last > 0));
    }
}

/// What blocks of one directory take, the longest first.
fn of_directory(mut lens: &[u64], shape: &Shape<'_>) -> Cost {
    let mut cost = Cost::default();
    let size = (shape.k as usize, shape.m as usize);
    let alone = |lens: &[u64]| {
        let sum = lens.iter().fold(0u64, |sum, len| sum.saturating_add(*len));
        Cost::of_copies(sum, lens.len() as u64, COPIES)
    };
    while let Some(first) = shape.rules.first_that_pays(lens, |len| *len, size) {
        let (before, from) = lens.split_at(first);
        let (members, behind) = from.split_at(from.len().min(size.0));
        cost += alone(before);
        cost += Cost::of_members(members, shape.m);
        lens = behind;
    }
    cost += alone(lens);
    cost
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;
    const RULES: Rules = Rules { pays: 0.6, proposals_max: 0 };
    const WIDE: Shape<'static> = Shape { k: 6, m: 3, rules: &RULES, len_min: MIB };

    /// What files of one directory take.
    fn of_files(files: &[(u64, u64)]) -> Cost {
        let (mut left, mut cost) = (Leftovers::default(), Cost::default());
        for (len, block_len) in files {
            cost += WIDE.of_file(*len, *block_len);
            left.add(7, *len, *block_len, WIDE.len_min);
        }
        left.pack(&[WIDE], |directory, shape, more| {
            assert_eq!((directory, shape), (7, 0));
            cost += more;
        });
        cost
    }

    #[test]
    fn blocks_of_one_file_are_a_group() {
        let cost = of_files(&[(12 * 128 * MIB, 128 * MIB)]);
        assert_eq!((cost.bytes, cost.blocks), (18 * 128 * MIB, 18));
        // The last one is shorter: parities are as long as the others.
        let cost = of_files(&[(6 * 128 * MIB - 8 * MIB, 128 * MIB)]);
        assert_eq!(cost.bytes, 9 * 128 * MIB - 8 * MIB);
    }

    #[test]
    fn files_of_a_directory_are_a_group() {
        let files = [(100 * MIB, 128 * MIB); 7];
        let cost = of_files(&files);
        // Six of them; the seventh stays three copies, since parity would cost more.
        assert_eq!((cost.bytes, cost.replicas), (9 * 100 * MIB + 300 * MIB, 12));
        let cost = of_files(&[(100 * MIB, 128 * MIB); 5]);
        assert_eq!(cost.bytes, 8 * 100 * MIB);
        let alone = of_files(&[(100 * MIB, 128 * MIB); 3]);
        assert_eq!(alone.bytes, 900 * MIB);
    }

    #[test]
    fn what_is_short_stays_copies() {
        let cost = of_files(&[(1000, 128 * MIB); 50]);
        assert_eq!((cost.bytes, cost.blocks), (150_000, 50));
        let cost = of_files(&[(6 * 128 * MIB + 5, 128 * MIB)]);
        assert_eq!((cost.bytes, cost.blocks), (9 * 128 * MIB + 15, 10));
        let cost = of_files(&[(10_000, 1000)]);
        assert_eq!((cost.bytes, cost.blocks), (30_000, 10));
    }

    #[test]
    fn many_lengths_of_blocks_are_kept_apart_as_far_as_that_goes() {
        let mut left = Leftovers::default();
        for block in 1..100 {
            left.add(1, MIB, block * MIB, MIB);
        }
        assert_eq!((left.entries.len(), left.block_lens.len()), (99, BLOCK_LENS_MAX));
    }
}
