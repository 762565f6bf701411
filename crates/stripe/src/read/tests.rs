//! Every pattern of lost units, and units that fail or are late halfway, against a stripe whose bytes
//! are counted.

use super::*;
use proptest::prelude::*;

const CELL: u64 = 8;

/// Answers asks and keeps count, as a reader would.
struct Reader {
    plan: StripeRead,
    asked: Vec<Ask>,
    pending: Vec<Ask>,
}

impl Reader {
    fn new(geometry: &Geometry, len: u64, wanted: Range<u64>, health: &[UnitHealth]) -> Reader {
        let stripe = wanted.start / geometry.stripe_len();
        let plan = StripeRead::new(geometry, len, stripe, wanted, health);
        Reader { plan, asked: Vec::new(), pending: Vec::new() }
    }

    fn ask(&mut self) -> Result<(), NotEnoughUnits> {
        let asks = self.plan.next_asks()?;
        self.asked.extend(asks.clone());
        self.pending.extend(asks);
        Ok(())
    }

    fn answer(&mut self, index: usize) {
        let ask = self.pending.swap_remove(index);
        self.plan.arrived(ask.unit, ask.range_in_cell);
    }

    fn fail(&mut self, unit: UnitIndex) -> Result<(), NotEnoughUnits> {
        self.pending.retain(|ask| ask.unit != unit);
        self.plan.failed(unit);
        self.ask()
    }

    fn bytes_asked(&self) -> u64 {
        self.asked.iter().map(|ask| ask.range_in_cell.end - ask.range_in_cell.start).sum()
    }
}

fn health(units: usize, lost: u32) -> Vec<UnitHealth> {
    (0..units)
        .map(|unit| if lost >> unit & 1 == 1 { UnitHealth::Lost } else { UnitHealth::Good })
        .collect()
}

/// Whether a pattern of lost units leaves the wanted range readable: nothing wanted is lost, or
/// `k` units can be read or are zeros over the bytes to decode.
fn readable(geometry: &Geometry, len: u64, wanted: &Range<u64>, lost: u32) -> bool {
    let touched: Vec<_> = geometry.cells(wanted.clone()).collect();
    let mut span: Option<Range<u64>> = None;
    for cell in touched.iter().filter(|cell| lost >> cell.unit.0 & 1 == 1) {
        let range = cell.offset_in_cell..cell.offset_in_cell + cell.len;
        span = Some(match span {
            None => range,
            Some(span) => span.start.min(range.start)..span.end.max(range.end),
        });
    }
    let Some(span) = span else { return true };
    let stripe = wanted.start / geometry.stripe_len();
    let usable = (0..geometry.units() as u8).filter(|unit| {
        let zeros = geometry.cell_len_at(len, stripe, UnitIndex(*unit)) <= span.start;
        lost >> unit & 1 == 0 || zeros
    });
    usable.count() >= geometry.k()
}

#[test]
fn every_pattern_of_lost_units_is_read_or_refused() {
    for (k, m) in [(1, 1), (2, 1), (3, 2), (6, 3)] {
        let geometry = Geometry::new(k, m, CELL);
        let full = geometry.stripe_len();
        let lens = [1, CELL - 1, CELL, CELL + 1, full - 1, full];
        for len in lens.into_iter().filter(|len| *len <= full) {
            for wanted in [0..len, 0..1, len - 1..len, len / 3..len - len / 3] {
                for lost in 0..1u32 << geometry.units() {
                    check_lost_at_start(&geometry, len, wanted.clone(), lost);
                }
            }
        }
    }
}

fn check_lost_at_start(geometry: &Geometry, len: u64, wanted: Range<u64>, lost: u32) {
    let mut reader = Reader::new(geometry, len, wanted.clone(), &health(geometry.units(), lost));
    let asked = reader.ask();
    let want = readable(geometry, len, &wanted, lost);
    assert_eq!(asked.is_ok(), want, "{geometry:?} {len} {wanted:?} {lost:b}: {asked:?}");
    if !want {
        return;
    }
    while !reader.pending.is_empty() {
        assert_eq!(reader.plan.progress(), Progress::Waiting);
        reader.answer(0);
    }
    let touched: Vec<_> = geometry.cells(wanted.clone()).collect();
    let touched_lost: Vec<UnitIndex> =
        touched.iter().map(|cell| cell.unit).filter(|unit| lost >> unit.0 & 1 == 1).collect();
    match reader.plan.progress() {
        Progress::Ready => {
            assert!(touched_lost.is_empty());
            assert_eq!(reader.bytes_asked(), wanted.end - wanted.start, "reads only the range");
        }
        Progress::Decode(decode) => {
            assert_eq!(decode.lost, touched_lost);
            assert_eq!(decode.sources.len(), geometry.k());
            check_covered(geometry, len, &decode, &reader, lost);
        }
        Progress::Waiting => panic!("nothing is pending"),
    }
}

/// Each source was read over the whole range to decode, as far as its cell goes.
fn check_covered(geometry: &Geometry, len: u64, decode: &Decode, reader: &Reader, lost: u32) {
    for source in &decode.sources {
        let cell_len = geometry.cell_len_at(len, 0, *source);
        for at in decode.range_in_cell.start..decode.range_in_cell.end.min(cell_len) {
            assert_eq!(lost >> source.0 & 1, 0, "decodes from a lost unit");
            let times = reader
                .asked
                .iter()
                .filter(|ask| ask.unit == *source && ask.range_in_cell.contains(&at))
                .count();
            assert_eq!(times, 1, "byte {at} of unit {source} in {:?}", reader.asked);
        }
    }
}

#[test]
fn a_read_survives_m_failures_halfway_and_no_more() {
    let geometry = Geometry::new(3, 2, CELL);
    let len = geometry.stripe_len();
    for first in 0..3u8 {
        let mut reader = Reader::new(&geometry, len, 5..len, &health(5, 0));
        reader.ask().unwrap();
        reader.fail(UnitIndex(first)).unwrap();
        reader.fail(UnitIndex(3)).unwrap();
        assert_eq!(
            reader.fail(UnitIndex(4)),
            Err(NotEnoughUnits { left: 2, needed: 3 }),
            "m + 1 failures"
        );
    }
}

#[test]
fn a_failure_widens_what_was_asked_for_by_what_is_missing_only() {
    let geometry = Geometry::new(3, 2, CELL);
    // Unit 0 is wanted from 6, unit 1 to 2.
    let mut reader = Reader::new(&geometry, geometry.stripe_len(), 6..10, &health(5, 0));
    reader.ask().unwrap();
    assert_eq!(reader.bytes_asked(), 4);
    while !reader.pending.is_empty() {
        reader.answer(0);
    }
    assert_eq!(reader.plan.progress(), Progress::Ready);
    let before = reader.asked.len();
    reader.fail(UnitIndex(1)).unwrap();
    let more: Vec<_> =
        reader.asked[before..].iter().map(|ask| (ask.unit.0, ask.range_in_cell.clone())).collect();
    assert_eq!(more, [(0, 0..2), (2, 0..2), (3, 0..2)]);
}

#[test]
fn what_joins_is_asked_for_at_once() {
    let geometry = Geometry::new(3, 2, CELL);
    let mut reader = Reader::new(&geometry, 3 * CELL, 5..13, &health(5, 1));
    reader.ask().unwrap();
    let ask = |unit, range| Ask { unit: UnitIndex(unit), range_in_cell: range };
    // Unit 1 has 0..5 of what is wanted, and 5..8 of what unit 0 is decoded from.
    assert_eq!(reader.asked, [ask(1, 0..8), ask(2, 5..8), ask(3, 5..8)]);
    for _ in 0..3 {
        assert_eq!(reader.plan.progress(), Progress::Waiting);
        reader.answer(0);
    }
    let sources = [1, 2, 3].map(UnitIndex).to_vec();
    let decode = Decode { sources, lost: vec![UnitIndex(0)], range_in_cell: 5..8 };
    assert_eq!(reader.plan.progress(), Progress::Decode(decode));
}

#[test]
fn a_late_unit_is_not_waited_for_but_may_still_win() {
    let geometry = Geometry::new(3, 2, CELL);
    let wanted = 0..geometry.stripe_len();
    let mut reader = Reader::new(&geometry, geometry.stripe_len(), wanted, &health(5, 0));
    reader.ask().unwrap();
    reader.answer(0);
    reader.answer(0);
    let late = reader.pending[0].unit;
    reader.plan.late(late);
    reader.ask().unwrap();
    assert_eq!(reader.pending.len(), 2, "one parity cell more");
    let mut parity_first = reader.plan.clone();
    parity_first.arrived(UnitIndex(3), 0..CELL);
    assert!(matches!(parity_first.progress(), Progress::Decode(d) if d.lost == [late]));
    reader.plan.arrived(late, 0..CELL);
    assert_eq!(reader.plan.progress(), Progress::Ready);
}

#[test]
fn a_late_unit_without_a_substitute_is_waited_for() {
    let geometry = Geometry::new(2, 1, CELL);
    let mut reader = Reader::new(&geometry, 16, 0..16, &health(3, 0b100));
    reader.ask().unwrap();
    reader.plan.late(UnitIndex(0));
    assert_eq!(reader.plan.next_asks(), Ok(vec![]));
    reader.answer(1);
    assert_eq!(reader.plan.progress(), Progress::Waiting);
    reader.answer(0);
    assert_eq!(reader.plan.progress(), Progress::Ready);
}

#[test]
fn slow_units_are_asked_for_others_bytes_last() {
    let geometry = Geometry::new(3, 2, CELL);
    let mut units = health(5, 0b001);
    units[3] = UnitHealth::Slow;
    let mut reader = Reader::new(&geometry, geometry.stripe_len(), 0..CELL, &units);
    reader.ask().unwrap();
    let asked: Vec<u8> = reader.asked.iter().map(|ask| ask.unit.0).collect();
    assert_eq!(asked, [1, 2, 4]);
}

#[test]
fn slow_units_are_asked_when_too_few_others_are_left() {
    let geometry = Geometry::new(6, 3, CELL);
    let mut units = health(9, 0);
    units[2] = UnitHealth::Slow;
    let mut reader = Reader::new(&geometry, geometry.stripe_len(), 0..6 * CELL, &units);
    reader.ask().unwrap();
    let asked: Vec<u8> = reader.asked.iter().map(|ask| ask.unit.0).collect();
    assert_eq!(asked, [0, 1, 3, 4, 5, 6], "the slow one is decoded");
    for lost in [0, 4] {
        reader.fail(UnitIndex(lost)).unwrap();
        assert!(reader.asked.iter().all(|ask| ask.unit.0 != 2), "others are left");
    }
    reader.fail(UnitIndex(8)).unwrap();
    assert_eq!(reader.asked.last().map(|ask| ask.unit.0), Some(2));
    while !reader.pending.is_empty() {
        reader.answer(0);
    }
    let Progress::Decode(decode) = reader.plan.progress() else { panic!("not decoded") };
    assert_eq!(decode.lost, [0, 4].map(UnitIndex));
}

#[test]
fn a_unit_that_is_elsewhere_too_is_asked_for_again() {
    let geometry = Geometry::new(2, 1, CELL);
    let mut reader = Reader::new(&geometry, 16, 0..16, &health(3, 0b100));
    reader.ask().unwrap();
    reader.answer(0);
    let gone = reader.pending.swap_remove(0);
    reader.plan.again(gone.unit);
    reader.ask().unwrap();
    assert_eq!(reader.pending, [gone]);
    reader.answer(0);
    assert_eq!(reader.plan.progress(), Progress::Ready);
}

#[test]
fn rebuilding_reads_k_units_once_for_any_number_of_lost_ones() {
    let geometry = Geometry::new(6, 3, CELL);
    let lost = [UnitIndex(1), UnitIndex(6), UnitIndex(8)];
    let full = geometry.stripe_len();
    let mut plan = StripeRead::rebuild(&geometry, full, 0..CELL, &lost, &health(9, 0));
    let asks = plan.next_asks().unwrap();
    assert_eq!(asks.len(), 6);
    for ask in asks {
        plan.arrived(ask.unit, ask.range_in_cell);
    }
    let Progress::Decode(decode) = plan.progress() else { panic!("not decoded") };
    assert_eq!((decode.lost.as_slice(), decode.range_in_cell), (lost.as_slice(), 0..CELL));
}

#[test]
fn units_that_are_wanted_are_read_and_decoded_only_if_lost() {
    let geometry = Geometry::new(3, 2, CELL);
    let full = 2 * geometry.stripe_len();
    let wanted = [0, 1, 2].map(UnitIndex);
    for lost in 0u32..1 << 5 {
        let health = health(5, lost);
        let mut plan = StripeRead::units(&geometry, full, CELL..2 * CELL, &wanted, &health);
        let asks = match plan.next_asks() {
            Ok(asks) => asks,
            Err(_) => {
                assert!(lost.count_ones() > 2 && lost & 7 != 0);
                continue;
            }
        };
        assert!(lost & 7 == 0 || lost.count_ones() <= 2);
        assert_eq!(asks.len(), 3, "as many as are wanted, and as decoding takes");
        for ask in asks {
            assert_eq!((ask.range_in_cell.clone(), lost >> ask.unit.0 & 1), (0..CELL, 0));
            plan.arrived(ask.unit, ask.range_in_cell);
        }
        match plan.progress() {
            Progress::Ready => assert_eq!(lost & 7, 0),
            Progress::Decode(decode) => {
                let gone = wanted.into_iter().filter(|unit| lost >> unit.0 & 1 == 1);
                assert_eq!((decode.lost, decode.range_in_cell), (gone.collect(), 0..CELL));
            }
            Progress::Waiting => panic!("all that was asked for is there"),
        }
    }
}

#[test]
fn rebuilding_takes_what_ends_early_as_zeros() {
    let geometry = Geometry::new(3, 2, CELL);
    // Two stripes; the second has a full cell, a short one and none.
    let len = geometry.stripe_len() + CELL + 3;
    let lost = [UnitIndex(1), UnitIndex(3)];
    // A range over both stripes: parity goes on where the lost data unit has ended.
    let mut plan = StripeRead::rebuild(&geometry, len, CELL - 5..CELL + 6, &lost, &health(5, 0));
    let asks = plan.next_asks().unwrap();
    let asked: Vec<(u8, Range<u64>)> =
        asks.iter().map(|ask| (ask.unit.0, ask.range_in_cell.clone())).collect();
    assert_eq!(asked, [(0, 0..11), (2, 0..5), (4, 0..11)]);
    for ask in asks {
        plan.arrived(ask.unit, ask.range_in_cell);
    }
    let Progress::Decode(decode) = plan.progress() else { panic!("not decoded") };
    assert_eq!((decode.lost.as_slice(), decode.range_in_cell), (lost.as_slice(), 0..11));
    // Past the end of both data units only parity is left to rebuild, from unit 0 alone.
    let health = health(5, 0b10100);
    let mut plan = StripeRead::rebuild(&geometry, len, CELL + 4..2 * CELL, &lost, &health);
    assert_eq!(plan.next_asks().unwrap().len(), 1);
    plan.arrived(UnitIndex(0), 0..4);
    let Progress::Decode(decode) = plan.progress() else { panic!("not decoded") };
    assert_eq!(decode.lost, [UnitIndex(3)]);
}

proptest! {
    /// Answers, failures and delays in any order end in the data or in a refusal, never in a wait
    /// for nothing.
    #[test]
    fn any_order_of_events_ends(
        shape in prop::sample::select(vec![(2usize, 1usize), (3, 2), (6, 3), (10, 4)]),
        len_part in 1u64..=100, start_part in 0u64..100, lost in any::<u32>(), keep in any::<u32>(),
        slow in any::<u32>(),
        events in prop::collection::vec((0u8..4, any::<prop::sample::Index>()), 0..60),
    ) {
        let geometry = Geometry::new(shape.0, shape.1, CELL);
        let len = (geometry.stripe_len() * len_part / 100).max(1);
        let wanted = len * start_part / 100..len;
        let mut down = lost & keep & ((1 << geometry.units()) - 1);
        let mut units = health(geometry.units(), down);
        for (index, unit) in units.iter_mut().enumerate() {
            if slow >> index & 1 == 1 && *unit == UnitHealth::Good {
                *unit = UnitHealth::Slow;
            }
        }
        let mut reader = Reader::new(&geometry, len, wanted.clone(), &units);
        if reader.ask().is_err() {
            prop_assert!(!readable(&geometry, len, &wanted, down));
            return Ok(());
        }
        for (event, index) in events {
            if reader.pending.is_empty() {
                break;
            }
            let index = index.index(reader.pending.len());
            let unit = reader.pending[index].unit;
            match event {
                0 | 1 => reader.answer(index),
                2 => {
                    down |= 1 << unit.0;
                    if reader.fail(unit).is_err() {
                        prop_assert!(!readable(&geometry, len, &wanted, down));
                        return Ok(());
                    }
                }
                _ => {
                    reader.plan.late(unit);
                    reader.ask().unwrap();
                }
            }
        }
        while !reader.pending.is_empty() {
            reader.answer(0);
        }
        prop_assert!(readable(&geometry, len, &wanted, down));
        prop_assert_ne!(reader.plan.progress(), Progress::Waiting);
    }
}
