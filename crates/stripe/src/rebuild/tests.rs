//! Which units are read first, what is believed, and what is tried next.

use super::*;

const CELL: u64 = 1024;

fn units(units: &[u8]) -> Vec<UnitIndex> {
    units.iter().map(|unit| UnitIndex(*unit)).collect()
}

/// Of RS-3-2 with ten stripes, whose unit 0 is lost.
fn rebuild(recorded: [Option<u32>; 5]) -> Rebuild {
    let geometry = Geometry::new(3, 2, CELL);
    Rebuild::new(geometry, 30 * CELL, recorded.to_vec(), &units(&[1, 2, 3, 4]))
}

/// The units that are asked at first.
fn asked(rebuild: &Rebuild) -> Vec<UnitIndex> {
    let mut read = rebuild.read(0..CELL, &units(&[0]));
    let mut asked: Vec<UnitIndex> =
        read.next_asks().unwrap().into_iter().map(|ask| ask.unit).collect();
    asked.sort_unstable();
    asked
}

#[test]
fn those_that_are_named_first_are_read() {
    let mut rebuild = rebuild([None; 5]);
    assert!(rebuild.is_possible());
    rebuild.begin_with(units(&[4, 2, 1, 3]));
    assert_eq!(asked(&rebuild), units(&[1, 2, 4]));
    rebuild.note(UnitIndex(2), UnitHealth::Lost);
    assert_eq!(asked(&rebuild), units(&[1, 3, 4]), "in the place of one that is lost");
}

#[test]
fn a_short_group_needs_as_many_as_have_bytes() {
    let geometry = Geometry::new(3, 2, CELL);
    let mut rebuild = Rebuild::new(geometry, CELL / 2, vec![None; 5], &units(&[3, 4]));
    assert_eq!(rebuild.needed(), 1);
    assert!(rebuild.is_possible());
    rebuild.note(UnitIndex(3), UnitHealth::Lost);
    rebuild.note(UnitIndex(4), UnitHealth::Lost);
    assert!(!rebuild.is_possible());
}

#[test]
fn what_differs_from_its_record_is_not_believed_and_not_read_again() {
    let mut rebuild = rebuild([Some(7), Some(8), None, None, None]);
    assert_eq!(rebuild.check_result(UnitIndex(0), 7), Ok(()));
    let unproven = Unproven { unit: UnitIndex(0), crc32c: 9, recorded: 7 };
    assert_eq!(rebuild.check_result(UnitIndex(0), 9), Err(unproven));
    assert!(rebuild.check_source(UnitIndex(1), 8));
    assert!(rebuild.check_source(UnitIndex(2), 8), "nothing is recorded of it");
    assert!(!rebuild.check_source(UnitIndex(1), 9));
    assert_eq!(asked(&rebuild), units(&[2, 3, 4]));
    assert!(rebuild.try_others(&units(&[1, 2, 3])), "it is bad: without it");
    assert_eq!(asked(&rebuild), units(&[2, 3, 4]));
}

#[test]
fn one_source_after_the_other_is_left_out() {
    let mut rebuild = rebuild([None; 5]);
    rebuild.begin_with(units(&[1, 2, 3, 4]));
    let mut seen = Vec::new();
    let mut used = asked(&rebuild);
    while rebuild.try_others(&used) {
        used = asked(&rebuild);
        seen.push(used.clone());
    }
    assert_eq!(seen, [[2, 3, 4], [1, 3, 4], [1, 2, 4], [1, 2, 3]].map(|used| units(&used)));
}

#[test]
fn each_rebuilt_unit_without_a_record_is_decoded_back_from() {
    let decode = |lost: &[u8], sources: &[u8]| Decode {
        sources: units(sources),
        lost: units(lost),
        range_in_cell: 0..CELL,
    };
    let proven = rebuild([Some(1), None, None, None, None]);
    assert_eq!(proven.tests(&decode(&[0], &[1, 2, 3])), []);
    let test = |rebuilt: &[u8], others: &[u8]| Test {
        source: UnitIndex(1),
        rebuilt: units(rebuilt),
        others: units(others),
    };
    assert_eq!(proven.tests(&decode(&[0, 4], &[1, 2, 3])), [test(&[0, 4], &[2])]);
    let geometry = Geometry::new(1, 3, CELL);
    let mirrored = Rebuild::new(geometry, CELL, vec![None; 4], &units(&[1]));
    let each = [0, 2, 3].map(|unit| test(&[unit], &[]));
    assert_eq!(mirrored.tests(&decode(&[0, 2, 3], &[1])), each, "more than decoding takes");
}
