//! Every pattern of lost units: up to m can be rebuilt, m + 1 cannot.

use crate::input::{all_units, decoded};
use cairn_codec::{Codec, CodecError, CodecKind, Engine};

const BUILT_IN: [(CodecKind, usize, usize); 5] = [
    (CodecKind::Rs, 3, 2),
    (CodecKind::Rs, 6, 3),
    (CodecKind::Rs, 10, 4),
    (CodecKind::RsLegacy, 6, 3),
    (CodecKind::Xor, 2, 1),
];

/// The units of one call.
struct Pattern {
    lost: Vec<usize>,
    unread: Vec<usize>,
}

impl Pattern {
    /// Reads a picture: `D` and `P` are present, `.` is to be rebuilt, `-` was not read.
    fn parse(picture: &str) -> Pattern {
        let units: Vec<char> = picture.chars().filter(|c| *c != ' ').collect();
        let all = |mark| (0..units.len()).filter(|&unit| units[unit] == mark).collect();
        Pattern { lost: all('.'), unread: all('-') }
    }

    /// The pattern whose lost units are the bits of `bits`.
    fn of_bits(bits: u32) -> Pattern {
        Pattern { lost: (0..32).filter(|unit| bits >> unit & 1 != 0).collect(), unread: vec![] }
    }

    /// Rebuilds what is lost.
    fn decode(&self, code: &Codec, units: &[Vec<u8>]) -> Result<Vec<Vec<u8>>, CodecError> {
        let absent = [&self.lost[..], &self.unread[..]].concat();
        decoded(code, units, &absent, &self.lost)
    }

    /// What [`Pattern::decode`] has to give.
    fn expected(&self, units: &[Vec<u8>]) -> Vec<Vec<u8>> {
        self.lost.iter().map(|&unit| units[unit].clone()).collect()
    }
}

/// Loses every set of at most m + 1 units of cells of `len` bytes.
fn lose_everything_once(code: &Codec, len: usize) {
    let units = all_units(code, len);
    let mut rebuilt_count = 0;
    for bits in 0..1u32 << units.len() {
        let lost_count = bits.count_ones() as usize;
        if lost_count > code.parity_count() + 1 {
            continue;
        }
        let pattern = Pattern::of_bits(bits);
        let result = pattern.decode(code, &units);
        if lost_count <= code.parity_count() {
            assert_eq!(result, Ok(pattern.expected(&units)), "{code:?}, {len}, {bits:#b}");
            rebuilt_count += 1;
        } else {
            let (needed, present) = (code.data_count(), code.data_count() - 1);
            let expected = Err(CodecError::TooFewUnits { needed, present });
            assert_eq!(result, expected, "{code:?}, {len}, {bits:#b}");
        }
    }
    assert!(rebuilt_count > code.unit_count(), "{rebuilt_count} patterns only");
}

#[test]
fn every_pattern_of_every_built_in_policy() {
    for (kind, k, m) in BUILT_IN {
        let code = Codec::new(kind, k, m).expect("a built-in policy");
        for len in [0, 1, 63, 64, 65, 511, 4095, 4097] {
            lose_everything_once(&code, len);
        }
    }
}

#[test]
fn every_pattern_on_every_engine() {
    for engine in Engine::available() {
        for (kind, k, m) in BUILT_IN {
            let code = Codec::with_engine(kind, k, m, engine).expect("a built-in policy");
            lose_everything_once(&code, 333);
        }
    }
}

#[test]
fn pictures() {
    for picture in [
        "DDDDDD PPP", // nothing lost
        ".DDDDD PPP", // one data unit
        "DDDDDD .PP", // one parity unit
        "DD.DDD P.P", // one of each
        "...DDD PPP", // exactly m data units
        "DDDDDD ...", // exactly m parity units
        ".DDDD. PP.", // exactly m, mixed
        ".DDDDD P--", // k units read, no more
        "-DDDDD PP.", // a data unit that nobody asks for stands between
        "--DDDD PP.", // a lost parity unit from others and few data units
        "-.DDDD .PP", // all three kinds
    ] {
        let pattern = Pattern::parse(picture);
        for kind in [CodecKind::Rs, CodecKind::RsLegacy] {
            let code = Codec::new(kind, 6, 3).expect("a built-in policy");
            let units = all_units(&code, 1001);
            let rebuilt = pattern.decode(&code, &units);
            assert_eq!(rebuilt, Ok(pattern.expected(&units)), "{kind} {picture}");
        }
    }
}

#[test]
fn pictures_of_defeat() {
    for picture in ["....DD PPP", "...DDD .PP", "DDDDD. ...", ".DDDDD ---", "-----D PP."] {
        let code = Codec::new(CodecKind::Rs, 6, 3).expect("a built-in policy");
        let result = Pattern::parse(picture).decode(&code, &all_units(&code, 10));
        assert!(matches!(result, Err(CodecError::TooFewUnits { needed: 6, .. })), "{picture}");
    }
}

#[test]
fn lost_units_are_rebuilt_in_the_order_in_which_they_are_named() {
    let code = Codec::new(CodecKind::Rs, 6, 3).expect("a built-in policy");
    // A code keeps the coefficients of its last call: the same call again and others in between.
    for len in [99, 1000] {
        let units = all_units(&code, len);
        for lost in [[8, 0, 3], [8, 0, 3], [0, 3, 8], [8, 0, 3], [8, 0, 2]] {
            let pattern = Pattern { lost: lost.to_vec(), unread: vec![] };
            assert_eq!(pattern.decode(&code, &units), Ok(pattern.expected(&units)), "{lost:?}");
        }
    }
}

#[test]
fn threads_share_a_code() {
    let code = Codec::new(CodecKind::Rs, 6, 3).expect("a built-in policy");
    let units = all_units(&code, 100);
    std::thread::scope(|scope| {
        for first in 0..4 {
            let (code, units) = (&code, &units);
            scope.spawn(move || {
                for round in 0..200 {
                    let pattern =
                        Pattern { lost: vec![first, first + round % 3 + 1], unread: vec![] };
                    assert_eq!(pattern.decode(code, units), Ok(pattern.expected(units)));
                }
            });
        }
    });
}

#[test]
fn units_beyond_the_first_k_present_ones_are_not_read() {
    let code = Codec::new(CodecKind::Rs, 3, 2).expect("a built-in policy");
    let units = all_units(&code, 50);
    let wrong = vec![0; 7];
    let present = [None, Some(&*units[1]), Some(&*units[2]), Some(&*units[3]), Some(&*wrong)];
    let mut rebuilt = vec![0; 50];
    assert_eq!(code.decode(&present, &[0], &mut [&mut rebuilt]), Ok(()));
    assert_eq!(rebuilt, units[0]);
}
