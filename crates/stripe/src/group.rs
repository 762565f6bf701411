//! Contiguous groups: parity over whole blocks, whose lengths differ.
//!
//! ```text
//! slot 0..k     members: plain blocks; what a shorter one lacks, and a slot without one, is zeros
//! slot k..k+m   parities, each a file of three parts:
//!               | code of the members' bytes | code of their chunk CRCs | the group's record |
//!               0                         data_len               data_len + sums_len
//! ```
//! The CRCs in the second part prove every chunk that is decoded from the first. A group names blocks and no file.
//! Lengths are those that were recorded when the group was encoded, never those that a block has now.

pub mod record;
mod sources;

pub use record::{GroupRecord, Member, RecordError};
pub use sources::Sources;

use crate::id::MAX_UNITS_PER_GROUP;
use std::ops::Range;

/// Bytes of a chunk's CRC.
pub const SUM_LEN: u64 = 4;

/// Longest member, in bytes: bounds what a record from outside can make anybody allocate.
pub const MAX_MEMBER_LEN: u64 = 1 << 40;

/// Why a group cannot be as it is described.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GroupError {
    /// Units that a group cannot have.
    #[error("a group of {k} + {m} units with {members} slots for members")]
    Shape {
        /// Slots of members.
        k: usize,
        /// Slots of parities.
        m: usize,
        /// Slots that were described.
        members: usize,
    },
    /// No bytes, too many, or a member longer than the parities.
    #[error("members of {lens:?} bytes under parities over {data_len}")]
    Lengths {
        /// Of the members.
        lens: Vec<u64>,
        /// What the parities are over.
        data_len: u64,
    },
    /// No chunk has this length.
    #[error("chunks of {0} bytes")]
    Chunk(u64),
    /// Fewer units than decoding takes.
    #[error("{known} units are at hand where {k} are needed")]
    TooFew {
        /// Units that can be read, and slots that are known to be zeros.
        known: usize,
        /// Units that are needed.
        k: usize,
    },
}

/// One of the two coded parts of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The blocks' bytes.
    Data,
    /// The CRCs of their chunks, 4 bytes each, big-endian.
    Sums,
}

/// Where the bytes of a group's units lie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    m: usize,
    /// By slot; 0 where there is no member.
    lens: Vec<u64>,
    data_len: u64,
    chunk_len: u64,
}

impl Layout {
    /// A group whose slots have members of `lens` bytes (0: none), each with a CRC for every `chunk_len` bytes, under
    /// `m` parities over `data_len` bytes.
    ///
    /// Fails if no such group can be.
    pub fn new(
        m: usize,
        lens: Vec<u64>,
        data_len: u64,
        chunk_len: u64,
    ) -> Result<Layout, GroupError> {
        let k = lens.len();
        if k == 0 || m == 0 || k + m > MAX_UNITS_PER_GROUP {
            return Err(GroupError::Shape { k, m, members: k });
        }
        if data_len == 0 || data_len > MAX_MEMBER_LEN || lens.iter().any(|len| *len > data_len) {
            return Err(GroupError::Lengths { lens, data_len });
        }
        if chunk_len == 0 || chunk_len > u64::from(u32::MAX) {
            return Err(GroupError::Chunk(chunk_len));
        }
        Ok(Layout { m, lens, data_len, chunk_len })
    }

    /// Slots of members.
    pub fn k(&self) -> usize {
        self.lens.len()
    }

    /// Slots of parities.
    pub fn m(&self) -> usize {
        self.m
    }

    /// All slots.
    pub fn units(&self) -> usize {
        self.k() + self.m
    }

    /// Bytes that the parities are over.
    pub fn data_len(&self) -> u64 {
        self.data_len
    }

    /// Bytes of the second part of a parity.
    pub fn sums_len(&self) -> u64 {
        self.sums_of(self.data_len)
    }

    /// Where a parity has the group's record.
    pub fn record_at(&self) -> u64 {
        self.data_len + self.sums_len()
    }

    /// Whether a slot holds no member: its bytes are zeros, and nobody reads them.
    pub fn is_empty(&self, slot: usize) -> bool {
        self.lens.get(slot) == Some(&0)
    }

    /// Slots with a member.
    pub fn members(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.k()).filter(|slot| !self.is_empty(*slot))
    }

    /// Bytes that the unit in `slot` has of a part; the code takes zeros behind them.
    pub fn len(&self, slot: usize, part: Part) -> u64 {
        let len = self.lens.get(slot).copied().unwrap_or(self.data_len);
        match part {
            Part::Data => len,
            Part::Sums => self.sums_of(len),
        }
    }

    /// Bytes of a whole part.
    pub fn part_len(&self, part: Part) -> u64 {
        match part {
            Part::Data => self.data_len,
            Part::Sums => self.sums_len(),
        }
    }

    /// What of `range` of a part the unit in `slot` has bytes for.
    pub fn range(&self, slot: usize, part: Part, range: &Range<u64>) -> Range<u64> {
        let len = self.len(slot, part);
        range.start.min(len)..range.end.min(len)
    }

    /// The chunks of the member in `slot` that hold `range`: their bytes, and those of their CRCs.
    pub fn chunks(&self, slot: usize, range: &Range<u64>) -> (Range<u64>, Range<u64>) {
        let first = range.start / self.chunk_len;
        let end = range.end.next_multiple_of(self.chunk_len).min(self.len(slot, Part::Data));
        let last = end.div_ceil(self.chunk_len);
        (first * self.chunk_len..end, first * SUM_LEN..last * SUM_LEN)
    }

    /// Which units to read, the first of those `at_hand`, so that with the empty slots any other unit can be decoded.
    ///
    /// Fails if they are too few. A slot that is named twice, is empty, or is none counts once or not at all.
    pub fn sources(&self, at_hand: &[usize]) -> Result<Vec<usize>, GroupError> {
        let empty = (0..self.k()).filter(|slot| self.is_empty(*slot)).count();
        let needed = self.k() - empty;
        let mut chosen: Vec<usize> = Vec::new();
        for slot in at_hand {
            let is_unit = *slot < self.units() && !self.is_empty(*slot);
            if chosen.len() < needed && is_unit && !chosen.contains(slot) {
                chosen.push(*slot);
            }
        }
        match chosen.len() == needed {
            true => Ok(chosen),
            false => Err(GroupError::TooFew { known: chosen.len() + empty, k: self.k() }),
        }
    }

    /// The member that is decoded from parity `k + parity` to prove it: another one for each parity and attempt. Its
    /// coefficient has an inverse, so a parity that gives it back is right in these bytes.
    pub fn proves(&self, parity: usize, attempt: u64) -> Option<usize> {
        let members: Vec<usize> = self.members().collect();
        let at = (attempt % MAX_UNITS_PER_GROUP as u64) as usize + parity;
        members.get(at.checked_rem(members.len())?).copied()
    }

    fn sums_of(&self, len: u64) -> u64 {
        len.div_ceil(self.chunk_len) * SUM_LEN
    }
}

#[cfg(test)]
mod tests;
