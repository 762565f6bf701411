//! The geometry against a model that deals out bytes one at a time.

use super::*;
use proptest::prelude::*;

/// Which data bytes (by offset in the group) lie in each data unit, in the unit's order.
fn dealt(geometry: &Geometry, group_len: u64) -> Vec<Vec<u64>> {
    let mut units = vec![Vec::new(); geometry.k()];
    for byte in 0..group_len {
        let cell = byte / geometry.cell_len();
        units[(cell % geometry.k() as u64) as usize].push(byte);
    }
    units
}

fn geometries() -> impl Strategy<Value = Geometry> {
    (1usize..11, 1usize..5, 1u64..9).prop_map(|(k, m, cell)| Geometry::new(k, m, cell))
}

proptest! {
    #[test]
    fn internal_blocks_are_as_long_as_what_was_dealt(geometry in geometries(), len in 0u64..400) {
        let units = dealt(&geometry, len);
        for (unit, bytes) in units.iter().enumerate() {
            let got = geometry.internal_block_len(len, UnitIndex(unit as u8));
            prop_assert_eq!(got, bytes.len() as u64);
        }
        let longest = units.iter().map(Vec::len).max().unwrap() as u64;
        for unit in geometry.k()..geometry.units() {
            prop_assert_eq!(geometry.internal_block_len(len, UnitIndex(unit as u8)), longest);
        }
        prop_assert_eq!(geometry.raw_len(len), len + longest * geometry.m() as u64);
    }

    #[test]
    fn offsets_go_there_and_back(geometry in geometries(), len in 0u64..300) {
        for (unit, bytes) in dealt(&geometry, len).iter().enumerate() {
            let unit = UnitIndex(unit as u8);
            for (in_block, in_group) in bytes.iter().enumerate() {
                prop_assert_eq!(geometry.offset_in_group(unit, in_block as u64), *in_group);
                prop_assert_eq!(geometry.offset_in_block(*in_group), (unit, in_block as u64));
            }
        }
    }

    #[test]
    fn cells_cover_a_range_once_and_in_order(
        geometry in geometries(), start in 0u64..300, len in 0u64..300,
    ) {
        let range = start..start + len;
        let mut next = range.start;
        for span in geometry.cells(range.clone()) {
            prop_assert_eq!(span.offset_in_group, next);
            prop_assert!(span.len > 0 && span.offset_in_cell + span.len <= geometry.cell_len());
            let at = span.stripe_index * geometry.cell_len() + span.offset_in_cell;
            prop_assert_eq!(at, span.offset_in_block);
            prop_assert_eq!(geometry.offset_in_group(span.unit, at), next);
            next += span.len;
        }
        prop_assert_eq!(next, range.end);
    }

    #[test]
    fn steps_read_a_range_once_and_in_order(
        geometry in geometries(), start in 0u64..300, len in 0u64..300,
    ) {
        let steps = geometry.steps(start..start + len);
        let mut read = Vec::new();
        for step in &steps {
            for unit in &step.units {
                let offsets = step.range_in_block.clone();
                read.extend(offsets.map(|at| geometry.offset_in_group(*unit, at)));
            }
        }
        prop_assert_eq!(read, (start..start + len).collect::<Vec<_>>());
        // Each stripe is read at once but for parts of its cells, two at most.
        let stripes = if len == 0 { 0 } else { (start + len - 1) / geometry.stripe_len() - start / geometry.stripe_len() + 1 };
        prop_assert!(steps.len() as u64 <= stripes + 4);
    }

    #[test]
    fn unit_ranges_are_the_smallest_that_cover(
        geometry in geometries(), start in 0u64..300, len in 0u64..300,
    ) {
        let units = dealt(&geometry, start + len);
        for (unit, range) in geometry.unit_ranges(start..start + len).into_iter().enumerate() {
            let touched: Vec<u64> = (0..units[unit].len() as u64)
                .filter(|at| units[unit][*at as usize] >= start)
                .collect();
            match (touched.first(), touched.last()) {
                (Some(first), Some(last)) => prop_assert_eq!(range, *first..*last + 1),
                _ => prop_assert!(range.is_empty()),
            }
        }
    }

    #[test]
    fn stripes_and_cells_add_up(geometry in geometries(), len in 0u64..400) {
        let count = geometry.stripe_count(len);
        let mut data = 0;
        for stripe in 0..count {
            let cells: u64 = (0..geometry.k())
                .map(|unit| geometry.cell_len_at(len, stripe, UnitIndex(unit as u8)))
                .sum();
            prop_assert_eq!(cells, geometry.stripe_data_len(len, stripe));
            prop_assert!(cells > 0);
            data += cells;
        }
        prop_assert_eq!(data, len);
        prop_assert_eq!(geometry.stripe_data_len(len, count), 0);
    }

    #[test]
    fn a_groups_length_follows_from_its_units(geometry in geometries(), len in 0u64..400) {
        let mut lens: Vec<u64> = (0..geometry.k())
            .map(|unit| geometry.internal_block_len(len, UnitIndex(unit as u8)))
            .collect();
        prop_assert_eq!(geometry.group_len(&lens), Some(len));
        lens[0] += geometry.cell_len() + 1;
        if geometry.k() > 1 {
            prop_assert_eq!(geometry.group_len(&lens), None);
        }
    }

    #[test]
    fn the_safe_length_is_what_k_units_can_decode(
        geometry in geometries(), lens in prop::collection::vec(0u64..60, 0..15),
    ) {
        prop_assume!(lens.len() <= geometry.units());
        // The model: add stripes while k units have the whole cell.
        let mut stripes = 0;
        while lens.len() >= geometry.k()
            && lens.iter().filter(|len| **len >= (stripes + 1) * geometry.cell_len()).count()
                >= geometry.k()
        {
            stripes += 1;
        }
        let want = (lens.len() >= geometry.k()).then_some(stripes * geometry.stripe_len());
        prop_assert_eq!(geometry.safe_len(&lens), want);
    }

    #[test]
    fn groups_cover_a_file(file_len in 0u64..500, full in 1u64..90, start in 0u64..500) {
        let lens: Vec<u64> = group_lens(file_len, full).collect();
        prop_assert_eq!(lens.iter().sum::<u64>(), file_len);
        prop_assert!(lens.iter().rev().skip(1).all(|len| *len == full));
        prop_assert!(lens.iter().all(|len| *len > 0));
        let mut next = start;
        for span in groups_of_range(start..start + file_len, full) {
            prop_assert_eq!(span.group_index * full + span.offset_in_group, next);
            prop_assert!(span.len > 0 && span.offset_in_group + span.len <= full);
            next += span.len;
        }
        prop_assert_eq!(next, start + file_len);
    }
}

#[test]
fn a_block_size_that_cells_do_not_fill_is_rounded_down() {
    let geometry = Geometry::new(3, 2, 4);
    assert_eq!(geometry.full_group_len(11), 24);
}

#[test]
fn huge_groups_do_not_overflow() {
    let geometry = Geometry::new(6, 3, 1 << 20);
    let len = (1u64 << 40) + 5;
    let sum: u64 = (0..6).map(|unit| geometry.internal_block_len(len, UnitIndex(unit))).sum();
    assert_eq!(sum, len);
    assert_eq!(geometry.group_len(&[u64::MAX, 1, 0, 0, 0, 0]), None);
    assert_eq!(geometry.safe_len(&[u64::MAX; 6]), Some(u64::MAX));
}

#[test]
fn a_recovered_group_ends_before_bytes_that_nobody_wrote() {
    let geometry = Geometry::new(2, 1, 4);
    let found = |unit, len, may_be_torn| UnitFound { unit: UnitIndex(unit), len, may_be_torn };
    let recovered = |units: &[UnitFound]| geometry.recovered_len(units);
    let (whole, parity) = (found(0, 4, false), found(2, 4, false));
    // 4 + 1 bytes: parity is as long as a full cell.
    assert_eq!(geometry.safe_len(&[4, 1, 4]), Some(8));
    assert_eq!(recovered(&[whole, found(1, 1, false), parity]), Some(0));
    // A node that was down may have lost the rest of what was acknowledged.
    assert_eq!(recovered(&[whole, found(1, 1, true), parity]), Some(8));
    assert_eq!(recovered(&[whole, parity]), Some(8));
    assert_eq!(recovered(&[whole]), None);
    // The second data unit has no byte, and its parity a whole cell: no stripe is whole.
    assert!(geometry.has_no_stripe(&[whole, found(1, 0, false), parity]));
    assert!(!geometry.has_no_stripe(&[whole, parity]) && !geometry.has_no_stripe(&[whole]));
    // Only the last stripe can be short.
    assert_eq!(recovered(&[found(0, 8, false), found(1, 5, false), found(2, 8, false)]), Some(8));
    assert_eq!(recovered(&[found(0, 9, false), found(1, 5, false), found(2, 8, false)]), Some(16));
}
