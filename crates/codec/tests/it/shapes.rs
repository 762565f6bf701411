//! Codes of any shape rebuild any units that they can lose.

use crate::input::all_units;
use cairn_codec::{Codec, CodecKind};
use proptest::prelude::*;

fn shapes() -> impl Strategy<Value = (CodecKind, usize, usize)> {
    let kinds = prop_oneof![Just(CodecKind::Rs), Just(CodecKind::RsLegacy)];
    let counts = prop_oneof![(1..20usize, 1..10usize), (1..128usize, 1..128usize)];
    prop_oneof![
        4 => (kinds, counts).prop_map(|(kind, (k, m))| (kind, k, m)),
        1 => (1..255usize).prop_map(|k| (CodecKind::Xor, k, 1)),
    ]
}

/// Loses the units that come first in `order`, `lost_count` of them, and reads the others.
fn check(code: &Codec, order: &[usize], lost_count: usize, len: usize) {
    let units = all_units(code, len);
    let lost = &order[..lost_count];
    let present: Vec<Option<&[u8]>> = (0..units.len())
        .map(|unit| if lost.contains(&unit) { None } else { Some(units[unit].as_slice()) })
        .collect();
    let mut rebuilt = vec![vec![0x77; len]; lost_count];
    let mut outputs: Vec<&mut [u8]> = rebuilt.iter_mut().map(Vec::as_mut_slice).collect();
    code.decode(&present, lost, &mut outputs).expect("at most m units are lost");
    for (bytes, &unit) in rebuilt.iter().zip(lost) {
        assert_eq!(bytes, &units[unit], "{code:?}, {len} bytes, unit {unit} of {lost:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn any_shape_loses_any_units(
        (kind, k, m) in shapes(),
        seed in any::<u64>(),
        lost_share in 0.0..=1.0f64,
        len in 0..400usize,
    ) {
        let code = Codec::new(kind, k, m).expect("at most 254 units");
        // Sorting by a hash of the seed shuffles.
        let mut order: Vec<usize> = (0..k + m).collect();
        order.sort_by_key(|&unit| {
            (seed ^ unit as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(31)
        });
        check(&code, &order, (m as f64 * lost_share).round() as usize, len);
    }
}

#[test]
fn the_widest_codes_lose_as_many_units_as_they_can() {
    for (kind, k, m) in [
        (CodecKind::Rs, 128, 127),
        (CodecKind::Rs, 1, 254),
        (CodecKind::Rs, 254, 1),
        (CodecKind::RsLegacy, 128, 127),
        (CodecKind::RsLegacy, 1, 254),
        (CodecKind::Xor, 254, 1),
    ] {
        let code = Codec::new(kind, k, m).expect("255 units");
        let from_the_front: Vec<usize> = (0..255).collect();
        check(&code, &from_the_front, m, 100);
        let from_the_back: Vec<usize> = (0..255).rev().collect();
        check(&code, &from_the_back, m, 100);
    }
}
