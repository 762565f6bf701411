//! Hitchhiker: any m units may be lost, one lost data unit takes fewer bytes, and nothing else is read for it.

use crate::input::{all_units, decoded};
use cairn_codec::{Codec, CodecError, CodecKind, Half, Hitchhiker, Variant};
use proptest::prelude::*;

const VARIANTS: [Variant; 2] = [Variant::Xor, Variant::XorPlus];

fn code(variant: Variant, k: usize, m: usize) -> Hitchhiker {
    Hitchhiker::new(variant, k, m).expect("two parities or more")
}

/// Reads the halves that a repair names, counting their bytes, and rebuilds the unit from them alone.
fn repair(code: &Hitchhiker, units: &[Vec<u8>], lost: usize) -> (Vec<u8>, usize) {
    let len = units[0].len();
    let reads = code.reads(lost);
    let halves: Vec<&[u8]> = reads
        .iter()
        .map(|&Half { unit, is_second }| {
            assert_ne!(unit, lost, "what is lost is not read");
            let (first, second) = units[unit].split_at(len / 2);
            if is_second { second } else { first }
        })
        .collect();
    let mut rebuilt = vec![0x5a; len];
    code.repair(lost, &halves, &mut rebuilt).expect("these are the halves");
    (rebuilt, halves.iter().map(|bytes| bytes.len()).sum())
}

#[test]
fn any_m_units_of_the_built_in_shapes_may_be_lost_and_no_more() {
    for (k, m) in [(3, 2), (6, 3), (10, 4)] {
        for variant in VARIANTS {
            let code = code(variant, k, m);
            let units = all_units(&code, 26);
            let mut rebuilt_count = 0;
            for bits in 0..1u32 << (k + m) {
                let lost: Vec<usize> = (0..k + m).filter(|unit| bits >> unit & 1 != 0).collect();
                if lost.len() > m + 1 {
                    continue;
                }
                let result = decoded(&code, &units, &lost, &lost);
                if lost.len() > m {
                    let expected = Err(CodecError::TooFewUnits { needed: k, present: k - 1 });
                    assert_eq!(result, expected, "{code:?}, {lost:?}");
                } else {
                    let expected = lost.iter().map(|&unit| units[unit].clone()).collect();
                    assert_eq!(result, Ok(expected), "{code:?}, {lost:?}");
                    rebuilt_count += 1;
                }
            }
            assert!(rebuilt_count > k + m, "{rebuilt_count} patterns only");
        }
    }
}

#[test]
fn what_is_asked_for_may_be_less_than_what_is_absent() {
    for variant in VARIANTS {
        let code = code(variant, 6, 3);
        let units = all_units(&code, 10);
        for (absent, lost) in [([0, 4, 7], [7]), ([0, 4, 7], [4]), ([1, 2, 8], [8])] {
            let expected = Ok(vec![units[lost[0]].clone()]);
            assert_eq!(decoded(&code, &units, &absent, &lost), expected, "{absent:?}, {lost:?}");
        }
    }
}

#[test]
fn one_lost_unit_takes_the_bytes_that_the_paper_says() {
    // Halves that are read for each data unit: k + s for a group of s, k + m + l - 2 for the last l units.
    for (variant, k, m, expected) in [
        (Variant::Xor, 6, 3, vec![9; 6]),
        (Variant::Xor, 10, 4, vec![13, 13, 13, 13, 13, 13, 14, 14, 14, 14]),
        (Variant::XorPlus, 10, 4, vec![13; 10]),
        (Variant::XorPlus, 6, 3, vec![8, 8, 8, 8, 9, 9]),
        // One group of all is no better than Reed-Solomon.
        (Variant::Xor, 3, 2, vec![6; 3]),
        (Variant::XorPlus, 3, 2, vec![5, 5, 4]),
    ] {
        let code = code(variant, k, m);
        let units = all_units(&code, 64);
        for lost in 0..k + m {
            let (rebuilt, read) = repair(&code, &units, lost);
            assert_eq!(rebuilt, units[lost], "{code:?}, unit {lost}");
            let halves = *expected.get(lost).unwrap_or(&(2 * k));
            assert_eq!(read, halves * 32, "{code:?}, unit {lost}");
        }
    }
}

#[test]
fn the_first_halves_and_parity_0_are_reed_solomons() {
    let plain = Codec::new(CodecKind::Rs, 6, 3).expect("a built-in policy");
    let hitchhiker = code(Variant::Xor, 6, 3);
    let units = all_units(&hitchhiker, 200);
    for (from, to, parities) in [(0, 100, 0..3), (100, 200, 0..1)] {
        let data: Vec<&[u8]> = units[..6].iter().map(|unit| &unit[from..to]).collect();
        let mut parity = vec![vec![0; 100]; 3];
        let mut outputs: Vec<&mut [u8]> = parity.iter_mut().map(Vec::as_mut_slice).collect();
        plain.encode(&data, &mut outputs).expect("the buffers fit");
        for index in parities {
            assert_eq!(units[6 + index][from..to], parity[index], "parity {index}, {from}..{to}");
        }
    }
}

#[test]
fn a_callers_mistakes_are_named() {
    for (k, m) in [(6, 1), (0, 2), (254, 2)] {
        let result = Hitchhiker::new(Variant::Xor, k, m).map(|_| ());
        assert!(matches!(result, Err(CodecError::UnsupportedShape { .. })), "{k}, {m}");
    }
    let code = code(Variant::Xor, 3, 2);
    let unit = vec![0; 7];
    let mut parity = vec![vec![0; 7]; 2];
    let mut outputs: Vec<&mut [u8]> = parity.iter_mut().map(Vec::as_mut_slice).collect();
    let result = code.encode(&[&unit, &unit, &unit], &mut outputs);
    assert_eq!(result, Err(CodecError::UnevenLength { parts: 2, len: 7 }));
    let result = code.repair(0, &[], &mut [0; 8]);
    assert_eq!(result, Err(CodecError::BufferCount { what: "halves", expected: 6, actual: 0 }));
}

proptest! {
    #[test]
    fn any_shape_survives_any_m_losses_and_repairs_any_unit(
        plus in any::<bool>(),
        k in 1..24usize,
        m in 2..7usize,
        half in 0..40usize,
        lost in proptest::collection::vec(any::<prop::sample::Index>(), 0..7),
    ) {
        let code = code(if plus { Variant::XorPlus } else { Variant::Xor }, k, m);
        let units = all_units(&code, 2 * half);
        let mut lost: Vec<usize> = lost.iter().take(m).map(|index| index.index(k + m)).collect();
        lost.sort_unstable();
        lost.dedup();
        let expected: Vec<Vec<u8>> = lost.iter().map(|&unit| units[unit].clone()).collect();
        prop_assert_eq!(decoded(&code, &units, &lost, &lost), Ok(expected));
        for unit in 0..k + m {
            let (rebuilt, read) = repair(&code, &units, unit);
            prop_assert_eq!(&rebuilt, &units[unit]);
            prop_assert!(read <= 2 * k * half || plus);
        }
    }
}
