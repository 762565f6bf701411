//! Where the bytes of a striped file lie: groups, stripes, cells, and the lengths of internal blocks.
//!
//! ```text
//!             unit 0   unit 1   unit 2  | unit 3   unit 4       RS(3,2)
//! stripe 0    cell 0   cell 1   cell 2  | parity   parity
//! stripe 1    cell 3   cell 4 (short)   | parity   parity       parity is as long as cell 3
//! ```
//! Ranges are half-open. Knows nothing of who stores a unit. Tested against a byte-by-byte model in
//! `geometry/tests.rs`.

use crate::id::UnitIndex;
use crate::policy::Policy;
use std::ops::Range;

#[cfg(test)]
mod tests;

/// The shape of a stripe: `k` data units, `m` parity units, cells of `cell_len` bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Geometry {
    k: usize,
    m: usize,
    cell_len: u64,
}

impl From<&Policy> for Geometry {
    fn from(policy: &Policy) -> Geometry {
        let Policy { schema, cell_len, .. } = policy;
        Geometry::new(schema.data_units(), schema.parity_units(), u64::from(*cell_len))
    }
}

/// The part of one data cell that a byte range touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CellSpan {
    /// Stripe of the cell in its group.
    pub stripe_index: u64,
    /// Data unit that holds the cell.
    pub unit: UnitIndex,
    /// First byte touched, from the start of the cell.
    pub offset_in_cell: u64,
    /// Bytes touched, at least 1.
    pub len: u64,
    /// First byte touched, from the start of the group's data.
    pub offset_in_group: u64,
    /// First byte touched, from the start of the internal block.
    pub offset_in_block: u64,
}

/// A step of reading a group's data in order: what some units have in one and the same range of their internal blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The range of each internal block.
    pub range_in_block: Range<u64>,
    /// Data units that have all of it, in the order of the data.
    pub units: Vec<UnitIndex>,
}

/// What a recovery has found of one unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnitFound {
    /// Which.
    pub unit: UnitIndex,
    /// Its bytes.
    pub len: u64,
    /// Whether its node has been down since it was written, and may have lost the end of it.
    pub may_be_torn: bool,
}

/// The part of a file's byte range that lies in one block or group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupSpan {
    /// Position of the group in the file's list.
    pub group_index: u64,
    /// First byte touched, from the start of the group's data.
    pub offset_in_group: u64,
    /// Bytes touched, at least 1.
    pub len: u64,
}

impl Geometry {
    /// A geometry of `k` data and `m` parity units. Panics if `k` or `cell_len` is 0 (caller's bug:
    /// a [`Policy`] can't have them).
    pub fn new(k: usize, m: usize, cell_len: u64) -> Geometry {
        assert!(k > 0 && cell_len > 0, "a stripe needs data units and cells");
        Geometry { k, m, cell_len }
    }

    /// Data units.
    pub fn k(&self) -> usize {
        self.k
    }

    /// Parity units.
    pub fn m(&self) -> usize {
        self.m
    }

    /// Data and parity units.
    pub fn units(&self) -> usize {
        self.k + self.m
    }

    /// Bytes of a full cell.
    pub fn cell_len(&self) -> u64 {
        self.cell_len
    }

    /// Bytes of data in a full stripe.
    pub fn stripe_len(&self) -> u64 {
        self.cell_len * self.k as u64
    }

    /// Whether `unit` holds parity.
    pub fn is_parity(&self, unit: UnitIndex) -> bool {
        unit.as_usize() >= self.k
    }

    /// Data units that hold bytes when their group holds `group_len` data bytes. Decoding takes as many units with bytes,
    /// for the others are known to be zeros.
    pub fn data_units_with_bytes(&self, group_len: u64) -> usize {
        let cells = group_len.div_ceil(self.cell_len);
        usize::try_from(cells).map_or(self.k, |cells| cells.min(self.k))
    }

    /// Bytes of internal block `unit` when its group holds `group_len` data bytes.
    ///
    /// A data unit has its own cells only; a parity unit is as long as unit 0, since a short last
    /// stripe is encoded as if padded with zeros. Panics if `unit >= k + m` (caller's bug).
    ///
    /// Source: Hadoop 3.5.0 `StripedBlockUtil#getInternalBlockLength`.
    pub fn internal_block_len(&self, group_len: u64, unit: UnitIndex) -> u64 {
        assert!(unit.as_usize() < self.units(), "unit {unit} of a group of {}", self.units());
        let full_stripes = group_len / self.stripe_len();
        let rest = group_len % self.stripe_len();
        let cells_before = if self.is_parity(unit) { 0 } else { unit.as_usize() as u64 };
        let last = rest.saturating_sub(cells_before * self.cell_len).min(self.cell_len);
        full_stripes * self.cell_len + last
    }

    /// Bytes that all units of a group of `group_len` data bytes take, parity included; `u64::MAX` at most, for
    /// lengths come from outside.
    ///
    /// Source: Hadoop 3.5.0 `StripedBlockUtil#spaceConsumedByStripedBlock`.
    pub fn raw_len(&self, group_len: u64) -> u64 {
        let parity_unit = self.internal_block_len(group_len, UnitIndex(0));
        group_len.saturating_add(parity_unit.saturating_mul(self.m as u64))
    }

    /// Stripes of a group of `group_len` data bytes, a short last one counted.
    pub fn stripe_count(&self, group_len: u64) -> u64 {
        group_len.div_ceil(self.stripe_len())
    }

    /// Data bytes of a stripe in a group of `group_len` data bytes; 0 past the end.
    pub fn stripe_data_len(&self, group_len: u64, stripe_index: u64) -> u64 {
        group_len.saturating_sub(stripe_index * self.stripe_len()).min(self.stripe_len())
    }

    /// Bytes of the cell of `unit` in a stripe; 0 past the end of the internal block.
    pub fn cell_len_at(&self, group_len: u64, stripe_index: u64, unit: UnitIndex) -> u64 {
        self.internal_block_len(group_len, unit)
            .saturating_sub(stripe_index * self.cell_len)
            .min(self.cell_len)
    }

    /// The place in the group's data of a byte of a data unit's internal block.
    ///
    /// Panics if `unit` holds parity (caller's bug).
    ///
    /// Source: Hadoop 3.5.0 `StripedBlockUtil#offsetInBlkToOffsetInBG`.
    pub fn offset_in_group(&self, unit: UnitIndex, offset_in_block: u64) -> u64 {
        assert!(!self.is_parity(unit), "unit {unit} holds parity");
        offset_in_block / self.cell_len * self.stripe_len()
            + unit.as_usize() as u64 * self.cell_len
            + offset_in_block % self.cell_len
    }

    /// The data unit, and the place in its internal block, of a byte of the group's data.
    pub fn offset_in_block(&self, offset_in_group: u64) -> (UnitIndex, u64) {
        let stripe_index = offset_in_group / self.stripe_len();
        let in_stripe = offset_in_group % self.stripe_len();
        let unit = UnitIndex((in_stripe / self.cell_len) as u8);
        (unit, stripe_index * self.cell_len + in_stripe % self.cell_len)
    }

    /// The cells that a range of the group's data touches, in the order of the data.
    pub fn cells(&self, range: Range<u64>) -> impl Iterator<Item = CellSpan> + use<> {
        let geometry = *self;
        let mut at = range.start;
        std::iter::from_fn(move || {
            if at >= range.end {
                return None;
            }
            let (unit, offset_in_block) = geometry.offset_in_block(at);
            let offset_in_cell = offset_in_block % geometry.cell_len;
            let len = (geometry.cell_len - offset_in_cell).min(range.end - at);
            let span = CellSpan {
                stripe_index: offset_in_block / geometry.cell_len,
                unit,
                offset_in_cell,
                len,
                offset_in_group: at,
                offset_in_block,
            };
            at += len;
            Some(span)
        })
    }

    /// The steps in which a range of the group's data is read in order: whole cells of a stripe at once, each part of a cell
    /// by itself.
    pub fn steps(&self, range: Range<u64>) -> Vec<Step> {
        let mut steps: Vec<Step> = Vec::new();
        for cell in self.cells(range) {
            let range_in_block = cell.offset_in_block..cell.offset_in_block + cell.len;
            match steps.last_mut() {
                Some(step) if step.range_in_block == range_in_block => step.units.push(cell.unit),
                _ => steps.push(Step { range_in_block, units: vec![cell.unit] }),
            }
        }
        steps
    }

    /// For each data unit, the one range of its internal block that covers all that a range of the
    /// group's data touches in it; empty for units that are not touched.
    pub fn unit_ranges(&self, range: Range<u64>) -> Vec<Range<u64>> {
        let mut ranges = vec![0..0; self.k];
        if range.is_empty() {
            return ranges;
        }
        let stripes = range.start / self.stripe_len()..(range.end - 1) / self.stripe_len() + 1;
        for (unit, wanted) in ranges.iter_mut().enumerate() {
            let first = self.touched(stripes.start, unit, &range);
            let last = self.touched(stripes.end - 1, unit, &range);
            // The first or the last stripe may not be touched; the ones between always are.
            let start =
                if first.is_empty() { (stripes.start + 1) * self.cell_len } else { first.start };
            let end = if last.is_empty() { (stripes.end - 1) * self.cell_len } else { last.end };
            if start < end {
                *wanted = start..end;
            }
        }
        ranges
    }

    /// The bytes of internal block `unit` that `range` touches in one stripe.
    fn touched(&self, stripe_index: u64, unit: usize, range: &Range<u64>) -> Range<u64> {
        let cell_start = stripe_index * self.stripe_len() + unit as u64 * self.cell_len;
        let start = range.start.clamp(cell_start, cell_start + self.cell_len) - cell_start;
        let end = range.end.clamp(cell_start, cell_start + self.cell_len) - cell_start;
        let block_start = stripe_index * self.cell_len;
        if start < end { block_start + start..block_start + end } else { 0..0 }
    }

    /// Data bytes that a group surely holds when its units have these lengths: all stripes of which
    /// at least `k` units have a full cell. What lease recovery cuts a group to.
    ///
    /// `unit_lens` are the lengths of the units that answered, in any order. With fewer than `k`
    /// nothing is sure: `None`.
    ///
    /// Source: Hadoop 3.5.0 `StripedBlockUtil#getSafeLength`.
    pub fn safe_len(&self, unit_lens: &[u64]) -> Option<u64> {
        let mut lens = unit_lens.to_vec();
        lens.sort_unstable();
        let kth_longest = lens.len().checked_sub(self.k)?;
        Some((lens[kth_longest] / self.cell_len).saturating_mul(self.stripe_len()))
    }

    /// Data bytes that the recovery of a group cuts it to: those of [`safe_len`](Self::safe_len), but without
    /// a last stripe in which a data unit ends early that a writer has left so. Either the data ends there,
    /// and a full stripe would have zeros that nobody wrote, or that unit has not all of the stripe yet,
    /// and nobody was told that it is safe.
    ///
    /// Deviation: Hadoop keeps such a stripe when parity makes up for the units that end early.
    pub fn recovered_len(&self, units: &[UnitFound]) -> Option<u64> {
        let lens: Vec<u64> = units.iter().map(|found| found.len).collect();
        let safe = self.safe_len(&lens)?;
        let full = safe / self.stripe_len() * self.cell_len;
        let last_cell = full.saturating_sub(self.cell_len)..full;
        let ends_early = |found: &UnitFound| {
            !self.is_parity(found.unit) && !found.may_be_torn && last_cell.contains(&found.len)
        };
        // Where a unit has bytes of the next stripe, this one is whole and that unit is only behind.
        let goes_on = lens.iter().any(|len| *len > full);
        match safe > 0 && !goes_on && units.iter().any(ends_early) {
            true => Some(safe - self.stripe_len()),
            false => Some(safe),
        }
    }

    /// Whether a group has no whole stripe even if all of `found` counts: units that a recovery can use, those that
    /// have no byte, and those that the writer has gone on without. Then nobody was told that any of it is safe.
    ///
    /// Deviation: Hadoop tries to recover such a group for ever.
    pub fn has_no_stripe(&self, found: &[UnitFound]) -> bool {
        self.recovered_len(found) == Some(0)
    }

    /// Data bytes of a group whose data units have exactly these lengths, `k` of them; `None` when no
    /// group has such units.
    pub fn group_len(&self, data_unit_lens: &[u64]) -> Option<u64> {
        let sum = data_unit_lens.iter().try_fold(0u64, |sum, len| sum.checked_add(*len))?;
        let fits = data_unit_lens.len() == self.k
            && data_unit_lens
                .iter()
                .enumerate()
                .all(|(unit, len)| *len == self.internal_block_len(sum, UnitIndex(unit as u8)));
        fits.then_some(sum)
    }

    /// Data bytes of a full group when each of its data units takes `block_len` bytes, rounded down
    /// to whole cells.
    ///
    /// Source: Hadoop 3.5.0 `DFSStripedOutputStream` (a group ends after `blockSize` bytes per unit).
    pub fn full_group_len(&self, block_len: u64) -> u64 {
        block_len / self.cell_len * self.stripe_len()
    }
}

/// Bytes of internal block `unit` when a group of `policy` holds `group_len` data bytes; see
/// [`Geometry::internal_block_len`].
pub fn internal_block_len(policy: &Policy, group_len: u64, unit: UnitIndex) -> u64 {
    Geometry::from(policy).internal_block_len(group_len, unit)
}

/// The lengths of the blocks or groups of a file of `file_len` bytes that hold up to `full_len` data
/// bytes each. Panics if `full_len` is 0 (caller's bug).
pub fn group_lens(file_len: u64, full_len: u64) -> impl Iterator<Item = u64> {
    assert!(full_len > 0, "a group holds something");
    (0..file_len.div_ceil(full_len)).map(move |i| (file_len - i * full_len).min(full_len))
}

/// The parts of a byte range of a file in each of its groups of `full_len` data bytes. Panics if
/// `full_len` is 0 (caller's bug).
pub fn groups_of_range(range: Range<u64>, full_len: u64) -> impl Iterator<Item = GroupSpan> {
    assert!(full_len > 0, "a group holds something");
    let mut at = range.start;
    std::iter::from_fn(move || {
        if at >= range.end {
            return None;
        }
        let offset_in_group = at % full_len;
        let len = (full_len - offset_in_group).min(range.end - at);
        let span = GroupSpan { group_index: at / full_len, offset_in_group, len };
        at += len;
        Some(span)
    })
}
