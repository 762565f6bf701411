//! What the answers of the units of a group come to.

use super::{Agreement, Answer, Cut, Cutting, Order, RecoveryError, RecoveryInfo};
use crate::state::ReplicaState;
use cairn_stripe::{Geometry, UnitFound, UnitIndex};
use std::collections::{BTreeMap, BTreeSet};

/// The answers by units.
struct Units {
    /// Those of `usable` that were finalized and have lost their ends since.
    torn: BTreeSet<UnitIndex>,
    /// The units that can be used, each with its place; of two replicas of a unit the longer one.
    usable: BTreeMap<UnitIndex, (usize, RecoveryInfo)>,
    /// All that are known, those without bytes and those that the writer has gone on without included.
    known: BTreeMap<UnitIndex, UnitFound>,
    /// Those that a place may have which has not answered: dead or silent, or one that the NameNode does not tell of.
    unanswered: BTreeSet<UnitIndex>,
}

impl Order {
    /// Decides about a group. It is cut to its whole stripes, unless just what was acknowledged is there.
    ///
    /// It is dropped when it has no whole stripe, whatever those have that have not answered, or when a unit shows
    /// that none was acknowledged. Deviation: Hadoop drops it when more than `n - k` of the `n` that were asked have
    /// nothing, however few those are, and tries for ever where others have too little.
    ///
    /// Source: Hadoop 3.5.0 `BlockRecoveryWorker.RecoveryTaskStriped`.
    pub(super) fn agree_units(
        &self,
        geometry: &Geometry,
        answers: &[Answer],
    ) -> Result<Agreement, RecoveryError> {
        let units = self.units(geometry, answers);
        let unanswered = units.unanswered.len();
        let waits = Err(RecoveryError::Unanswered { unanswered });
        match self.acknowledged_units(geometry, &units) {
            Some(there) if there.is_enough(0) => {
                return Ok(self.cut(geometry, &units, self.acked_len));
            }
            Some(there) if there.is_enough(unanswered) => return waits,
            _ => {}
        }
        let with_bytes = units.usable.iter().filter(|(_, (_, info))| info.len > 0);
        let found: Vec<UnitFound> = with_bytes
            .map(|(&unit, (_, info))| UnitFound {
                unit,
                len: info.len,
                may_be_torn: units.may_be_torn(unit, info),
            })
            .collect();
        let len = geometry.recovered_len(&found);
        let whole = self.acked_len / geometry.stripe_len() * geometry.stripe_len();
        match len {
            Some(len) if len < whole && unanswered > 0 => waits,
            Some(len) if units.may_hide_stripes(geometry, len) => waits,
            Some(len) if len > 0 => Ok(self.cut(geometry, &units, len)),
            _ if self.acked_len > 0 && unanswered > 0 => waits,
            _ if self.acked_len > 0 => {
                Err(RecoveryError::Acknowledged { acked_len: self.acked_len })
            }
            _ if units.have_no_stripe(geometry) => Ok(Agreement::Drop),
            _ if units.show_that_no_stripe_was_acknowledged(geometry) => Ok(Agreement::Drop),
            _ if unanswered > 0 => waits,
            _ => Err(RecoveryError::TooFewUnits),
        }
    }

    /// Cuts every unit that has as much to its part of `len` bytes.
    fn cut(&self, geometry: &Geometry, units: &Units, len: u64) -> Agreement {
        let part = |(&unit, &(place, info)): (&UnitIndex, &(usize, RecoveryInfo))| {
            let len = geometry.internal_block_len(len, unit);
            let has_part = info.len > 0 && info.len >= len;
            has_part.then_some(Cut { place, unit, info, id: self.block.internal(unit), len })
        };
        let cuts = units.usable.iter().filter_map(part).collect();
        Agreement::Cut(Cutting { len, cuts, units: Some(*geometry) })
    }

    fn units(&self, geometry: &Geometry, answers: &[Answer]) -> Units {
        let mut usable: BTreeMap<UnitIndex, (usize, RecoveryInfo)> = BTreeMap::new();
        let mut known: BTreeMap<UnitIndex, UnitFound> = BTreeMap::new();
        for (place, (&unit, answer)) in self.places.iter().zip(answers).enumerate() {
            let found = match answer {
                Answer::Holds(info) => unit_found(unit, info),
                Answer::Nothing => UnitFound { unit, len: 0, may_be_torn: true },
                Answer::Silent | Answer::Superseded => continue,
            };
            if known.get(&unit).is_none_or(|other| other.len < found.len) {
                known.insert(unit, found);
            }
            if let Answer::Holds(info) = answer
                && info.is_current(self.gs)
                && usable.get(&unit).is_none_or(|(_, other)| other.len < info.len)
            {
                usable.insert(unit, (place, *info));
            }
        }
        let torn = torn(geometry, &usable);
        for found in known.values_mut() {
            found.may_be_torn |= torn.contains(&found.unit);
        }
        let mut unanswered: BTreeSet<UnitIndex> = self.unanswered(answers).collect();
        for unit in (0..geometry.units()).map(|unit| UnitIndex(unit as u8)) {
            if self.away.is_some() {
                known.entry(unit).or_insert(UnitFound { unit, len: 0, may_be_torn: true });
            } else if !known.contains_key(&unit) {
                unanswered.insert(unit);
            }
        }
        Units { torn, usable, known, unanswered }
    }

    /// How much there is of a group that has just the length that was acknowledged; `None` if the writer has gone
    /// on, for parity covers what it wrote then.
    fn acknowledged_units(&self, geometry: &Geometry, units: &Units) -> Option<Whole> {
        let part = |unit: UnitIndex| geometry.internal_block_len(self.acked_len, unit);
        let lens = units.usable.iter().map(|(unit, (_, info))| (info.len, part(*unit)));
        if self.acked_len == 0 || lens.clone().any(|(len, part)| len > part) {
            return None;
        }
        let whole = lens.filter(|(len, part)| *part > 0 && len == part).count();
        Some(Whole { whole, needed: geometry.data_units_with_bytes(self.acked_len) })
    }
}

/// Units that have all that they should, and how many decoding takes.
struct Whole {
    whole: usize,
    needed: usize,
}

impl Whole {
    /// Whether there would be enough with so many more.
    fn is_enough(&self, more: usize) -> bool {
        self.whole + more >= self.needed
    }
}

impl Units {
    fn may_be_torn(&self, unit: UnitIndex, info: &RecoveryInfo) -> bool {
        info.may_be_torn() || self.torn.contains(&unit)
    }

    /// Whether there is no whole stripe, even if those that have not answered are as long as can be.
    fn have_no_stripe(&self, geometry: &Geometry) -> bool {
        let longest =
            |unit: &UnitIndex| UnitFound { unit: *unit, len: u64::MAX, may_be_torn: false };
        let answered = self.known.values().filter(|found| !self.unanswered.contains(&found.unit));
        let all: Vec<UnitFound> =
            answered.copied().chain(self.unanswered.iter().map(longest)).collect();
        geometry.has_no_stripe(&all)
    }

    /// Whether more than `len` bytes may have been acknowledged and are there, if not in the units that have answered alone:
    /// with fewer than `k` whose nodes have not been down, others have lost the end of what they acknowledged, and those that
    /// are silent may decode it with what is left.
    fn may_hide_stripes(&self, geometry: &Geometry, len: u64) -> bool {
        let stripes = |info: &RecoveryInfo| info.len / geometry.cell_len() * geometry.stripe_len();
        let with_bytes = || self.usable.iter().filter(|(_, (_, info))| info.len > 0);
        let is_sure = |(unit, (_, info)): &(&UnitIndex, &(usize, RecoveryInfo))| {
            !self.may_be_torn(**unit, info)
        };
        let sure: Vec<u64> =
            with_bytes().filter(is_sure).map(|(_, (_, info))| stripes(info)).collect();
        let acknowledged = sure.iter().min().copied().unwrap_or(u64::MAX);
        let mut held: Vec<u64> = with_bytes().map(|(_, (_, info))| stripes(info)).collect();
        held.sort_unstable_by_key(|len| std::cmp::Reverse(*len));
        let more = self.unanswered.iter().filter(|unit| !self.usable.contains_key(*unit)).count();
        let there = match geometry.k().saturating_sub(more) {
            0 => u64::MAX,
            needed => held.get(needed - 1).copied().unwrap_or(0),
        };
        sure.len() < geometry.k() && more > 0 && acknowledged.min(there) > len
    }

    /// Whether a unit has a part of the first cell only, its node has not been down, and nobody is known to have got
    /// further: the data ends there, or the first stripe was never whole.
    fn show_that_no_stripe_was_acknowledged(&self, geometry: &Geometry) -> bool {
        let cell_len = geometry.cell_len();
        let is_short = |(unit, (_, info)): (&UnitIndex, &(usize, RecoveryInfo))| {
            info.len > 0 && info.len < cell_len && !self.may_be_torn(*unit, info)
        };
        self.usable.iter().any(is_short) && self.known.values().all(|found| found.len <= cell_len)
    }
}

/// The finalized units behind which the data goes on, as others show that were written under the same stamp.
fn torn(
    geometry: &Geometry,
    usable: &BTreeMap<UnitIndex, (usize, RecoveryInfo)>,
) -> BTreeSet<UnitIndex> {
    let is_torn = |(unit, (_, info)): &(&UnitIndex, &(usize, RecoveryInfo))| {
        let most = longest_with(geometry, **unit, info.len);
        let mut others = usable.iter().filter(|(_, (_, other))| other.gs == info.gs);
        info.original == ReplicaState::Finalized
            && others.any(|(other, (_, held))| held.len > geometry.internal_block_len(most, *other))
    };
    usable.iter().filter(is_torn).map(|(unit, _)| *unit).collect()
}

/// Data bytes of the longest group of which that unit has just `len` bytes.
fn longest_with(geometry: &Geometry, unit: UnitIndex, len: u64) -> u64 {
    let (stripes, rest) = (len / geometry.cell_len(), len % geometry.cell_len());
    // A parity unit is as long as the first data unit.
    let cells_before = if geometry.is_parity(unit) { 0 } else { unit.as_usize() as u64 };
    let before = stripes.saturating_mul(geometry.stripe_len());
    before.saturating_add(cells_before * geometry.cell_len() + rest)
}

fn unit_found(unit: UnitIndex, info: &RecoveryInfo) -> UnitFound {
    UnitFound { unit, len: info.len, may_be_torn: info.may_be_torn() }
}
