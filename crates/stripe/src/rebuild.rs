//! Rebuilding lost units of a group: which units serve as sources, which results are believed, and what is tried after
//! one that is not.
//!
//! What is asked of whom in which order, cell by cell, is decided by [`StripeRead`]. Knows nothing of sockets, buffers or
//! the code. A DataNode rebuilds by this, and a simulated one.

use crate::geometry::Geometry;
use crate::id::UnitIndex;
use crate::read::{Decode, StripeRead, UnitHealth};
use std::ops::Range;

#[cfg(test)]
mod tests;

/// A source that must come out again when it is decoded from what was rebuilt.
///
/// Source: Hadoop 3.5.0 `DecodingValidator`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Test {
    /// The source.
    pub source: UnitIndex,
    /// Rebuilt units to decode it from.
    pub rebuilt: Vec<UnitIndex>,
    /// Sources to decode it from beside.
    pub others: Vec<UnitIndex>,
}

/// What was rebuilt is not what was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unit {unit} was rebuilt with CRC32C {crc32c:#010x}, it was written with {recorded:#010x}")]
pub struct Unproven {
    /// The unit.
    pub unit: UnitIndex,
    /// CRC32C of what was rebuilt.
    pub crc32c: u32,
    /// CRC32C of what was written.
    pub recorded: u32,
}

/// The rebuilding of some units of one group.
#[derive(Clone, Debug)]
pub struct Rebuild {
    geometry: Geometry,
    group_len: u64,
    /// CRC32C of each unit as first written, where it is known.
    recorded: Vec<Option<u32>>,
    health: Vec<UnitHealth>,
    /// Units that were left out for one attempt.
    tried: Vec<UnitIndex>,
    /// The one that is left out now, and what it was before.
    left_out: Option<(UnitIndex, UnitHealth)>,
}

impl Rebuild {
    /// Of a group of `group_len` bytes of data, whose units `there` can be read; `recorded` has one entry for each unit.
    ///
    /// Panics if it has another length (caller's bug).
    pub fn new(
        geometry: Geometry,
        group_len: u64,
        recorded: Vec<Option<u32>>,
        there: &[UnitIndex],
    ) -> Rebuild {
        assert_eq!(recorded.len(), geometry.units(), "one entry for each unit");
        let mut health = vec![UnitHealth::Lost; geometry.units()];
        there.iter().for_each(|unit| health[unit.as_usize()] = UnitHealth::Good);
        Rebuild { geometry, group_len, recorded, health, tried: Vec::new(), left_out: None }
    }

    /// Units that must be read: a data unit of a group of less than a stripe may have no bytes.
    pub fn needed(&self) -> usize {
        let cells = self.group_len.div_ceil(self.geometry.cell_len());
        usize::try_from(cells).unwrap_or(usize::MAX).min(self.geometry.k())
    }

    /// Whether as many units can be read as must be.
    pub fn is_possible(&self) -> bool {
        let is_good = |health: &&UnitHealth| **health == UnitHealth::Good;
        self.health.iter().filter(is_good).count() >= self.needed()
    }

    /// Begins with those that are named first, as many as are needed; others are read in place of these only.
    pub fn begin_with(&mut self, best_first: impl IntoIterator<Item = UnitIndex>) {
        let later = best_first.into_iter().skip(self.needed());
        later.for_each(|unit| self.note(unit, UnitHealth::Slow));
    }

    /// How a unit is thought of.
    pub fn health(&self, unit: UnitIndex) -> UnitHealth {
        self.health[unit.as_usize()]
    }

    /// Something was found out about a unit.
    pub fn note(&mut self, unit: UnitIndex, health: UnitHealth) {
        self.health[unit.as_usize()] = health;
    }

    /// The plan of reading what the `lost` units have in a range of every internal block.
    pub fn read(&self, range: Range<u64>, lost: &[UnitIndex]) -> StripeRead {
        StripeRead::rebuild(&self.geometry, self.group_len, range, lost, &self.health)
    }

    /// The plan of reading what the `wanted` units have in a range of every internal block.
    pub fn read_units(&self, range: Range<u64>, wanted: &[UnitIndex]) -> StripeRead {
        StripeRead::units(&self.geometry, self.group_len, range, wanted, &self.health)
    }

    /// Compares all of a source with what is recorded of it. One that differs, though its chunks had good CRCs, is bad:
    /// it is not read again. Returns whether it may be what was written.
    pub fn check_source(&mut self, unit: UnitIndex, crc32c: u32) -> bool {
        let is_bad = self.recorded[unit.as_usize()].is_some_and(|recorded| recorded != crc32c);
        if is_bad {
            self.note(unit, UnitHealth::Lost);
        }
        !is_bad
    }

    /// Compares all of what was rebuilt with what is recorded of it.
    pub fn check_result(&self, unit: UnitIndex, crc32c: u32) -> Result<(), Unproven> {
        match self.recorded[unit.as_usize()] {
            Some(recorded) if recorded != crc32c => Err(Unproven { unit, crc32c, recorded }),
            _ => Ok(()),
        }
    }

    /// What to decode back before anything of a result is believed of which a unit has no record. Since any `k` units
    /// determine the others, and none of the `k` can be left out, every rebuilt unit is put to the test.
    pub fn tests(&self, decode: &Decode) -> Vec<Test> {
        let is_unknown = |unit: &UnitIndex| self.recorded[unit.as_usize()].is_none();
        let Some(source) = decode.sources.first().copied() else { return Vec::new() };
        if !decode.lost.iter().any(is_unknown) {
            return Vec::new();
        }
        let test = |rebuilt: &[UnitIndex]| {
            let others = decode.sources[1..].iter().take(self.geometry.k() - rebuilt.len());
            Test { source, rebuilt: rebuilt.to_vec(), others: others.copied().collect() }
        };
        decode.lost.chunks(self.geometry.k()).map(test).collect()
    }

    /// What was decoded from the `used` units is not believed, and which of them is bad may not be known: has others read,
    /// leaving one of them out after the other. Returns false when all was tried.
    pub fn try_others(&mut self, used: &[UnitIndex]) -> bool {
        if used.iter().any(|unit| self.health(*unit) == UnitHealth::Lost) {
            // One has been found to be bad meanwhile: without it.
            return true;
        }
        if let Some((unit, before)) = self.left_out.take() {
            self.note(unit, before);
        }
        let Some(unit) = used.iter().copied().find(|unit| !self.tried.contains(unit)) else {
            return false;
        };
        self.tried.push(unit);
        self.left_out = Some((unit, self.health(unit)));
        self.note(unit, UnitHealth::Lost);
        true
    }
}
