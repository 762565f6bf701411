//! Cauchy codes by exclusive or: Jerasure's matrices and parities, and any m units may be lost.

use crate::input::{all_units, decoded};
use cairn_codec::{CauchyGood, CodecError};
use proptest::prelude::*;

/// Written by `interop/golden/jerasure.py`.
const VECTORS: &str = include_str!("../golden/jerasure-2.0.txt");

fn bytes(field: &str) -> Vec<u8> {
    let digits: Vec<u8> = field.chars().map(|c| c.to_digit(16).expect("a digit") as u8).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

/// The code and the fields behind it of all lines that begin with `fact`; at least `count`.
fn facts(fact: &str, count: usize) -> Vec<(CauchyGood, Vec<&'static str>)> {
    let lines: Vec<_> = VECTORS
        .lines()
        .map(|line| line.split(' ').collect::<Vec<_>>())
        .filter(|fields| fields[0] == fact)
        .map(|fields| {
            let number = |at: usize| fields[at].parse().expect("a number");
            (CauchyGood::new(number(2), number(3)).expect("Jerasure has it"), fields[4..].to_vec())
        })
        .collect();
    assert!(lines.len() >= count, "{} lines of {fact}", lines.len());
    lines
}

#[test]
fn matrices_are_jerasures() {
    for (code, fields) in facts("matrix", 10) {
        assert_eq!(code.parity_coefficients(), bytes(fields[0]), "{code:?}");
        assert_eq!(code.ones().to_string(), fields[1], "{code:?}");
    }
}

#[test]
fn parity_is_jerasures() {
    for (code, fields) in facts("parity", 8) {
        let units = all_units(&code, fields[0].parse().expect("a length"));
        let expected: Vec<Vec<u8>> = fields[1..].iter().map(|field| bytes(field)).collect();
        assert_eq!(units[code.data_count()..], expected, "{code:?}");
    }
}

#[test]
fn a_schedule_takes_fewer_steps_than_its_matrix_has_ones() {
    for (k, m) in [(6, 3), (10, 4)] {
        let code = CauchyGood::new(k, m).expect("it fits");
        assert!(code.steps() < code.ones(), "{code:?}: {} of {}", code.steps(), code.ones());
    }
}

#[test]
fn any_m_units_of_the_built_in_shapes_may_be_lost_and_no_more() {
    // 3-of-5 and 5-of-7 are the shapes of the prototype that wrote groups of whole blocks.
    for (k, m) in [(3, 2), (5, 2), (6, 3), (10, 4)] {
        let code = CauchyGood::new(k, m).expect("it fits");
        let units = all_units(&code, 24);
        for bits in 0..1u32 << (k + m) {
            let lost: Vec<usize> = (0..k + m).filter(|unit| bits >> unit & 1 != 0).collect();
            if lost.len() > m + 1 {
                continue;
            }
            let result = decoded(&code, &units, &lost, &lost);
            let expected = match lost.len() > m {
                true => Err(CodecError::TooFewUnits { needed: k, present: k - 1 }),
                false => Ok(lost.iter().map(|&unit| units[unit].clone()).collect()),
            };
            assert_eq!(result, expected, "{code:?}, {lost:?}");
        }
    }
}

#[test]
fn a_callers_mistakes_are_named() {
    for (k, m) in [(6, 0), (0, 2), (254, 2)] {
        let result = CauchyGood::new(k, m).map(|_| ());
        assert!(matches!(result, Err(CodecError::UnsupportedShape { .. })), "{k}, {m}");
    }
    let code = CauchyGood::new(2, 1).expect("it fits");
    let unit = vec![0; 12];
    let result = code.encode(&[&unit, &unit], &mut [&mut [0; 12]]);
    assert_eq!(result, Err(CodecError::UnevenLength { parts: 8, len: 12 }));
}

proptest! {
    #[test]
    fn any_shape_survives_any_m_losses(
        k in 1..20usize,
        m in 1..6usize,
        packet in 0..3000usize,
        lost in proptest::collection::vec(any::<prop::sample::Index>(), 0..6),
    ) {
        let code = CauchyGood::new(k, m).expect("it fits");
        let units = all_units(&code, 8 * packet);
        let mut lost: Vec<usize> = lost.iter().take(m).map(|index| index.index(k + m)).collect();
        lost.sort_unstable();
        lost.dedup();
        let expected: Vec<Vec<u8>> = lost.iter().map(|&unit| units[unit].clone()).collect();
        prop_assert_eq!(decoded(&code, &units, &lost, &lost), Ok(expected));
    }
}
