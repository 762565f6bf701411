//! Which cell to ask for next: the plan of reading a byte range of one stripe.
//!
//! Decides what to ask of which unit, after each answer, failure or delay, and when the wanted bytes
//! are there or can be decoded. Knows nothing of sockets, buffers or the code: the caller tells it
//! what happened and does what it says. Used by client reads and by reconstruction.
//!
//! Invariants: never asks for a byte twice, nor for one that neither the caller nor a decode needs;
//! gives up only when fewer than `k` units are left. Tested exhaustively in `read/tests.rs`.

use crate::geometry::Geometry;
use crate::id::UnitIndex;
use std::ops::Range;

#[cfg(test)]
mod tests;

/// What the reader knows of a unit before it asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnitHealth {
    /// Ask it.
    Good,
    /// Ask it only when too few good units are left.
    Slow,
    /// Never ask it: no location, a failed DataNode, or a corrupt replica.
    Lost,
}

/// Read these bytes of a cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ask {
    /// The unit to read from.
    pub unit: UnitIndex,
    /// Bytes from the start of the cell.
    pub range_in_cell: Range<u64>,
}

/// Bytes to compute from other units.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decode {
    /// `k` units to decode from, all there over `range_in_cell`; a data cell that ends before the end
    /// of the range is zeros from there.
    pub sources: Vec<UnitIndex>,
    /// Units to compute.
    pub lost: Vec<UnitIndex>,
    /// The same bytes of every cell.
    pub range_in_cell: Range<u64>,
}

/// How far a read is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Answers are still to come.
    Waiting,
    /// All wanted bytes are there.
    Ready,
    /// The wanted bytes are there once these are decoded.
    Decode(Decode),
}

/// Fewer than `k` units of the stripe can be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{left} units are left of the {needed} that a stripe needs")]
pub struct NotEnoughUnits {
    /// Units that can still be read, or are known to be zeros.
    pub left: usize,
    /// Units that decoding needs.
    pub needed: usize,
}

#[derive(Clone, Debug)]
struct Unit {
    health: UnitHealth,
    /// Bytes of the cell; less than a full cell only in the last stripe.
    cell_len: u64,
    wanted: Range<u64>,
    /// Asked for and not yet answered.
    asked: Vec<Range<u64>>,
    /// Answered.
    there: Vec<Range<u64>>,
    late: bool,
}

/// The read of one byte range that lies in one stripe.
#[derive(Clone, Debug)]
pub struct StripeRead {
    k: usize,
    units: Vec<Unit>,
}

impl StripeRead {
    /// A read of `wanted`, a range of the data of a group of `group_len` bytes that lies within
    /// stripe `stripe_index`. `health` has one entry for each of the `k + m` units.
    ///
    /// Panics if the range leaves the stripe or the group, or `health` has another length (caller's
    /// bug).
    pub fn new(
        geometry: &Geometry,
        group_len: u64,
        stripe_index: u64,
        wanted: Range<u64>,
        health: &[UnitHealth],
    ) -> StripeRead {
        let stripe_start = stripe_index * geometry.stripe_len();
        assert!(wanted.start >= stripe_start && wanted.end <= group_len, "range outside the group");
        assert!(wanted.end <= stripe_start + geometry.stripe_len(), "range outside the stripe");
        let mut units: Vec<Unit> = health
            .iter()
            .enumerate()
            .map(|(unit, health)| Unit {
                health: *health,
                cell_len: geometry.cell_len_at(group_len, stripe_index, UnitIndex(unit as u8)),
                wanted: 0..0,
                asked: Vec::new(),
                there: Vec::new(),
                late: false,
            })
            .collect();
        assert_eq!(units.len(), geometry.units(), "one health for each unit");
        for span in geometry.cells(wanted) {
            let range = span.offset_in_cell..span.offset_in_cell + span.len;
            units[span.unit.as_usize()].wanted = range;
        }
        StripeRead { k: geometry.k(), units }
    }

    /// A read of what the lost units, data or parity, have in `range_in_block`, a range of every
    /// internal block that may span parts of cells or several stripes. For reconstruction: ranges in
    /// cells are counted from the start of `range_in_block`, and progress ends in
    /// [`Progress::Decode`].
    ///
    /// Panics if `health` has not one entry for each unit (caller's bug).
    pub fn rebuild(
        geometry: &Geometry,
        group_len: u64,
        range_in_block: Range<u64>,
        lost: &[UnitIndex],
        health: &[UnitHealth],
    ) -> StripeRead {
        let mut health = health.to_vec();
        lost.iter().for_each(|unit| health[unit.as_usize()] = UnitHealth::Lost);
        StripeRead::units(geometry, group_len, range_in_block, lost, &health)
    }

    /// As [`rebuild`](Self::rebuild), of units that may be there: each is read, and decoded from others only if it is not
    /// good, fails or is late.
    ///
    /// Panics if `health` has not one entry for each unit (caller's bug).
    pub fn units(
        geometry: &Geometry,
        group_len: u64,
        range_in_block: Range<u64>,
        wanted: &[UnitIndex],
        health: &[UnitHealth],
    ) -> StripeRead {
        assert_eq!(health.len(), geometry.units(), "one health for each unit");
        let unit = |(index, health): (u8, &UnitHealth)| {
            let index = UnitIndex(index);
            let end = geometry.internal_block_len(group_len, index).min(range_in_block.end);
            let cell_len = end.saturating_sub(range_in_block.start);
            Unit {
                health: *health,
                cell_len,
                wanted: if wanted.contains(&index) { 0..cell_len } else { 0..0 },
                asked: Vec::new(),
                there: Vec::new(),
                late: false,
            }
        };
        StripeRead { k: geometry.k(), units: (0u8..).zip(health).map(unit).collect() }
    }

    /// What to ask for now: at first, and after each [`failed`](Self::failed), [`again`](Self::again) or
    /// [`late`](Self::late). What it returns counts as asked.
    pub fn next_asks(&mut self) -> Result<Vec<Ask>, NotEnoughUnits> {
        self.take_slow();
        let mut asks = Vec::new();
        for unit in 0..self.units.len() {
            if self.units[unit].health == UnitHealth::Good {
                self.ask(unit, self.units[unit].wanted.clone(), &mut asks);
            }
        }
        let span = self.decode_span();
        if span.is_empty() {
            return Ok(asks);
        }
        let for_themselves = asks.len();
        let mut sources = 0;
        for unit in self.by_preference(&span) {
            if sources == self.k {
                break;
            }
            self.ask(unit, span.clone(), &mut asks);
            sources += 1;
        }
        let missing_for_good = self.units.iter().any(|unit| unit.is_missing() && unit.is_lost());
        if sources < self.k && missing_for_good {
            return Err(NotEnoughUnits { left: sources, needed: self.k });
        }
        Ok(self.joined(asks, for_themselves))
    }

    /// Without enough good units to decode from, what is wanted of slow ones is to be had from nobody else.
    fn take_slow(&mut self) {
        let good = self.units.iter().filter(|unit| unit.health == UnitHealth::Good).count();
        if good >= self.k {
            return;
        }
        for unit in &mut self.units {
            if unit.health == UnitHealth::Slow && !unit.wanted.is_empty() {
                unit.health = UnitHealth::Good;
            }
        }
    }

    /// Makes one of asks that join: of the first `count`, which are for what is wanted, and those behind them,
    /// which are for decoding.
    fn joined(&mut self, mut asks: Vec<Ask>, count: usize) -> Vec<Ask> {
        for more in asks.split_off(count) {
            let joins = |ask: &&mut Ask| {
                let (a, b) = (&ask.range_in_cell, &more.range_in_cell);
                ask.unit == more.unit && (a.end == b.start || b.end == a.start)
            };
            let Some(ask) = asks.iter_mut().find(joins) else {
                asks.push(more);
                continue;
            };
            let asked = &mut self.units[more.unit.as_usize()].asked;
            asked.retain(|range| *range != ask.range_in_cell && *range != more.range_in_cell);
            let (a, b) = (&ask.range_in_cell, &more.range_in_cell);
            ask.range_in_cell = a.start.min(b.start)..a.end.max(b.end);
            asked.push(ask.range_in_cell.clone());
        }
        asks
    }

    /// An answer to an [`Ask`] came, whole and with good checksums.
    pub fn arrived(&mut self, unit: UnitIndex, range_in_cell: Range<u64>) {
        let unit = &mut self.units[unit.as_usize()];
        unit.asked.retain(|asked| *asked != range_in_cell);
        unit.there.push(range_in_cell);
        unit.there.sort_by_key(|range| range.start);
    }

    /// A unit can't be read, or lied: forget what came from it. Follow with
    /// [`next_asks`](Self::next_asks).
    pub fn failed(&mut self, unit: UnitIndex) {
        self.again(unit);
        self.units[unit.as_usize()].health = UnitHealth::Lost;
    }

    /// A unit can't be read from where it was asked for, but may be from elsewhere or once more: forget what came from
    /// it. Follow with [`next_asks`](Self::next_asks).
    pub fn again(&mut self, unit: UnitIndex) {
        let unit = &mut self.units[unit.as_usize()];
        unit.asked.clear();
        unit.there.clear();
    }

    /// A unit takes its time: do not wait for it, but take its answer if it comes first. Follow with
    /// [`next_asks`](Self::next_asks).
    pub fn late(&mut self, unit: UnitIndex) {
        self.units[unit.as_usize()].late = true;
    }

    /// Whether the wanted bytes are there.
    pub fn progress(&self) -> Progress {
        let missing: Vec<UnitIndex> = self.indices(|unit| unit.is_missing());
        if missing.is_empty() {
            return Progress::Ready;
        }
        if missing.iter().any(|unit| !self.units[unit.as_usize()].is_given_up()) {
            return Progress::Waiting;
        }
        let span = self.decode_span();
        let mut sources = self.indices(|unit| unit.can_decode(&span));
        if sources.len() < self.k {
            return Progress::Waiting;
        }
        sources.truncate(self.k);
        Progress::Decode(Decode { sources, lost: missing, range_in_cell: span })
    }

    fn indices(&self, keep: impl Fn(&Unit) -> bool) -> Vec<UnitIndex> {
        (0u8..).zip(&self.units).filter(|(_, unit)| keep(unit)).map(|(i, _)| UnitIndex(i)).collect()
    }

    /// The bytes of the cells that a decode has to cover: all that is wanted of units given up.
    fn decode_span(&self) -> Range<u64> {
        self.units
            .iter()
            .filter(|unit| unit.is_missing() && unit.is_given_up())
            .map(|unit| unit.wanted.clone())
            .reduce(|a, b| a.start.min(b.start)..a.end.max(b.end))
            .unwrap_or(0..0)
    }

    /// Units that can be decoded from, the cheapest first: those that need no reading, then those
    /// that were asked already, then good ones, then slow ones; late ones last, if they may answer.
    fn by_preference(&self, span: &Range<u64>) -> Vec<usize> {
        let rank = |unit: &Unit| match unit {
            unit if unit.health == UnitHealth::Lost && !unit.is_zeros(span) => None,
            unit if unit.can_decode(span) => Some(0),
            unit if unit.late => Some(4),
            unit if !unit.asked.is_empty() || !unit.there.is_empty() => Some(1),
            unit if unit.health == UnitHealth::Good => Some(2),
            _ => Some(3),
        };
        let mut ranked: Vec<(u8, usize)> = self
            .units
            .iter()
            .enumerate()
            .filter_map(|(i, unit)| rank(unit).map(|rank| (rank, i)))
            .collect();
        ranked.sort_unstable();
        ranked.into_iter().map(|(_, i)| i).collect()
    }

    /// Asks a unit for the part of `range` that its cell has and that was not asked before.
    fn ask(&mut self, index: usize, range: Range<u64>, asks: &mut Vec<Ask>) {
        let unit = &mut self.units[index];
        let range = range.start..range.end.min(unit.cell_len);
        let mut known: Vec<Range<u64>> = unit.asked.iter().chain(&unit.there).cloned().collect();
        known.sort_by_key(|range| range.start);
        let mut at = range.start;
        let end_mark = range.end..range.end;
        for known in known.into_iter().chain([end_mark]) {
            let gap = at..known.start.min(range.end);
            if !gap.is_empty() {
                unit.asked.push(gap.clone());
                asks.push(Ask { unit: UnitIndex(index as u8), range_in_cell: gap });
            }
            at = at.max(known.end);
        }
    }
}

impl Unit {
    fn is_lost(&self) -> bool {
        self.health == UnitHealth::Lost
    }

    fn is_given_up(&self) -> bool {
        self.health != UnitHealth::Good || self.late
    }

    /// Whether wanted bytes of it are not there.
    fn is_missing(&self) -> bool {
        !self.has(&self.wanted)
    }

    /// Whether the range lies past the end of the cell, where a stripe is zeros.
    fn is_zeros(&self, range: &Range<u64>) -> bool {
        self.cell_len <= range.start
    }

    /// Whether the range is there, as far as the cell has it.
    fn can_decode(&self, range: &Range<u64>) -> bool {
        self.has(&(range.start..range.end.min(self.cell_len)))
    }

    fn has(&self, range: &Range<u64>) -> bool {
        let mut at = range.start;
        for there in &self.there {
            if there.start <= at {
                at = at.max(there.end);
            }
        }
        at >= range.end
    }
}
