//! Every pattern of failed units, up to and past what is tolerated, at each moment of a group.

use super::*;

const CELL: u64 = 4;

fn group(k: usize, m: usize) -> GroupWrite {
    GroupWrite::new(Geometry::new(k, m, CELL), m, &vec![true; k + m]).unwrap()
}

fn bits(pattern: u32, units: usize) -> Vec<UnitIndex> {
    (0..units as u8).filter(|unit| pattern >> unit & 1 == 1).map(UnitIndex).collect()
}

#[test]
fn every_pattern_of_failures_is_survived_up_to_m() {
    for (k, m) in [(2, 1), (3, 2), (6, 3), (10, 4)] {
        let stripe = k as u64 * CELL;
        for pattern in 0..1u32 << (k + m) {
            let mut group = group(k, m);
            let failed = bits(pattern, k + m);
            failed.iter().for_each(|unit| group.failed(*unit));
            let next = group.check(stripe);
            assert_eq!(group.failed_count(), failed.len());
            assert_eq!(group.check_end().is_ok(), failed.len() <= m);
            match next {
                Ok(Next::Continue) => assert!(failed.is_empty()),
                Ok(Next::Restamp { units }) => {
                    assert!((1..=m).contains(&failed.len()));
                    assert_eq!(units, bits(!pattern & ((1 << (k + m)) - 1), k + m));
                    assert!(group.restamped(&units));
                    assert_eq!(group.check(stripe), Ok(Next::Continue), "fenced once");
                }
                Err(GroupLost { failed: count, tolerated }) => {
                    assert_eq!((count, tolerated), (failed.len(), m));
                    assert!(failed.len() > m);
                }
            }
        }
    }
}

#[test]
fn a_failure_while_taking_the_stamp_asks_for_another() {
    let mut group = group(3, 2);
    group.failed(UnitIndex(0));
    let Ok(Next::Restamp { units }) = group.check(12) else { panic!("no new stamp") };
    group.failed(UnitIndex(4));
    assert!(!group.restamped(&units));
    let Ok(Next::Restamp { units }) = group.check(12) else { panic!("no second stamp") };
    assert_eq!(units, [1, 2, 3].map(UnitIndex));
    group.failed(UnitIndex(1));
    assert!(!group.restamped(&units));
    assert_eq!(group.check(12), Err(GroupLost { failed: 3, tolerated: 2 }), "m + 1");
}

#[test]
fn failures_one_stripe_apart_each_get_a_stamp() {
    let mut group = group(6, 3);
    for (round, unit) in [2u8, 8, 5].into_iter().enumerate() {
        group.failed(UnitIndex(unit));
        group.failed(UnitIndex(unit));
        let Ok(Next::Restamp { units }) = group.check(24) else { panic!("round {round}") };
        assert_eq!(units.len(), 8 - round);
        assert!(group.restamped(&units));
    }
    group.failed(UnitIndex(0));
    assert_eq!(group.check(24), Err(GroupLost { failed: 4, tolerated: 3 }));
}

#[test]
fn units_without_data_take_no_stamp() {
    let mut group = group(3, 2);
    group.failed(UnitIndex(3));
    // One cell and a byte: units 0 and 1 and the parity have data.
    assert_eq!(
        group.check(CELL + 1),
        Ok(Next::Restamp { units: [0, 1, 4].map(UnitIndex).to_vec() })
    );
    assert!(!group.is_writing(UnitIndex(2), CELL + 1));
    assert!(!group.is_writing(UnitIndex(4), 0));
}

#[test]
fn data_units_must_have_places_and_parity_units_may_lack_them() {
    let geometry = Geometry::new(3, 2, CELL);
    for missing in 0..32u32 {
        let allocated: Vec<bool> = (0..5).map(|unit| missing >> unit & 1 == 0).collect();
        let group = GroupWrite::new(geometry, 2, &allocated);
        assert_eq!(group.is_ok(), missing & 0b111 == 0, "{missing:05b}");
        if let Ok(group) = group {
            assert_eq!(group.check(12), Ok(Next::Continue), "no stamp for what never was");
            assert_eq!(group.needs_parity(), missing != 0b11000);
        }
    }
    let one_missing = [true, true, true, true, false];
    assert_eq!(
        GroupWrite::new(geometry, 0, &one_missing).unwrap_err(),
        GroupLost { failed: 1, tolerated: 0 }
    );
}

#[test]
fn acknowledged_bytes_are_those_that_k_units_have() {
    let group = group(3, 2);
    let all = |lens: [u64; 5]| lens.map(Some);
    assert_eq!(group.acked_len(24, &all([8, 8, 8, 8, 8])), 24);
    assert_eq!(group.acked_len(24, &[None, Some(8), Some(8), Some(8), None]), 24);
    assert_eq!(group.acked_len(24, &[None, Some(8), Some(8), Some(7), Some(4)]), 12);
    assert_eq!(group.acked_len(24, &[None, None, Some(8), Some(8), None]), 0);
    // A stripe, a cell and two bytes: 8, 6, 4 and parity of 8.
    assert_eq!(group.acked_len(18, &[Some(8), None, Some(4), None, Some(8)]), 18);
    assert_eq!(group.acked_len(18, &[None, Some(6), Some(4), None, Some(4)]), 12);
}

/// A group ends early exactly when units failed and fewer than `k + margin` are left.
#[test]
fn row_21_a_group_ends_before_its_margin_is_gone() {
    for (k, m) in [(2, 1), (3, 2), (6, 3), (10, 4)] {
        for margin in 0..=m + 1 {
            for pattern in 0..1u32 << (k + m) {
                let mut group = group(k, m);
                let failed = bits(pattern, k + m);
                failed.iter().for_each(|unit| group.failed(*unit));
                let survives = m as isize - failed.len() as isize;
                let wanted = !failed.is_empty() && survives < margin.min(m) as isize;
                assert_eq!(group.should_end(margin), wanted, "{k}+{m} {failed:?} {margin}");
                let spare = (survives - margin.clamp(1, m) as isize).max(0) as usize;
                assert_eq!(group.spare(margin), spare, "{k}+{m} {failed:?} {margin}");
            }
        }
    }
}

#[test]
fn a_group_without_places_for_its_margin_goes_on_until_a_unit_fails() {
    let geometry = Geometry::new(3, 2, CELL);
    let allocated = [true, true, true, false, false];
    let group = GroupWrite::new(geometry, 2, &allocated).unwrap();
    assert!(!group.should_end(1), "another group would be no better");
    let mut group = GroupWrite::new(geometry, 2, &[true, true, true, true, false]).unwrap();
    assert!(!group.should_end(1));
    group.failed(UnitIndex(3));
    assert!(group.should_end(1));
    assert!(!group.should_end(0));
}

#[test]
fn what_may_be_given_up_is_bounded_by_what_may_fail() {
    let mut group = GroupWrite::new(Geometry::new(6, 3, CELL), 1, &[true; 9]).unwrap();
    assert_eq!(group.spare(1), 1);
    group.failed(UnitIndex(8));
    assert_eq!(group.spare(0), 0);
}
