//! Every engine computes what the portable one does, at any length and address.

use crate::input::input;
use cairn_codec::{Codec, CodecKind, Engine};
use proptest::prelude::*;

/// Bytes around every buffer that must stay as they are.
const MARGIN: usize = 64;

/// Encodes on `engine`, with unit i lying `offsets[i]` bytes behind a 64-byte boundary; checks that
/// nothing around the outputs changes.
fn encode(engine: Engine, k: usize, m: usize, len: usize, offsets: &[usize]) -> Vec<Vec<u8>> {
    let code = Codec::with_engine(CodecKind::Rs, k, m, engine).expect("an available engine");
    let mut buffers: Vec<Vec<u8>> = vec![vec![0xee; len + 3 * MARGIN + 64]; k + m];
    let starts: Vec<usize> = (0..k + m)
        .map(|unit| {
            let boundary = buffers[unit][MARGIN..].as_ptr().align_offset(64);
            MARGIN + boundary + offsets[unit % offsets.len()]
        })
        .collect();
    for unit in 0..k {
        buffers[unit][starts[unit]..][..len].copy_from_slice(&input(unit, len));
    }
    let (data, parity) = buffers.split_at_mut(k);
    let data: Vec<&[u8]> =
        data.iter().zip(&starts).map(|(buffer, &start)| &buffer[start..start + len]).collect();
    let mut outputs: Vec<&mut [u8]> = parity
        .iter_mut()
        .zip(&starts[k..])
        .map(|(buffer, &start)| &mut buffer[start..start + len])
        .collect();
    code.encode(&data, &mut outputs).expect("the buffers fit");
    for (buffer, &start) in parity.iter().zip(&starts[k..]) {
        let untouched = buffer[..start].iter().chain(&buffer[start + len..]);
        assert!(untouched.into_iter().all(|&byte| byte == 0xee), "{engine} wrote too far");
    }
    parity.iter().zip(&starts[k..]).map(|(b, &start)| b[start..start + len].to_vec()).collect()
}

#[test]
fn this_machine_tests_more_than_one_engine() {
    // Every processor of the two families that this project runs on has byte shuffles.
    if cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) {
        assert!(Engine::available().count() > 1);
        assert_ne!(Engine::best(), Engine::Portable);
    }
    assert!(Engine::available().is_sorted(), "the best engine is the last one");
}

#[test]
fn every_number_of_outputs_and_every_short_length() {
    for m in 1..=7 {
        for len in (0..300).chain([511, 513, 1000]) {
            let expected = encode(Engine::Portable, 3, m, len, &[0]);
            for engine in Engine::available() {
                let parity = encode(engine, 3, m, len, &[0]);
                assert_eq!(parity, expected, "{engine}, {m} outputs, {len} bytes");
            }
        }
    }
}

#[test]
fn every_coefficient() {
    // The parity units of a single data unit are its multiples by 1/1, 1/2 .. 1/254.
    let expected = encode(Engine::Portable, 1, 254, 256, &[0]);
    for engine in Engine::available() {
        assert_eq!(encode(engine, 1, 254, 256, &[0]), expected, "{engine}");
    }
}

#[test]
fn cells_of_several_slices() {
    // More outputs than one pass computes, and more bytes than one slice has.
    let expected = encode(Engine::Portable, 9, 8, 70_001, &[5, 0]);
    for engine in Engine::available() {
        assert_eq!(encode(engine, 9, 8, 70_001, &[5, 0]), expected, "{engine}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn any_length_and_any_addresses(
        k in 1..20usize,
        m in 1..10usize,
        len in prop_oneof![0..200usize, 0..5000usize],
        offsets in proptest::collection::vec(0..64usize, 1..30),
    ) {
        let expected = encode(Engine::Portable, k, m, len, &[0]);
        for engine in Engine::available() {
            let parity = encode(engine, k, m, len, &offsets);
            prop_assert_eq!(&parity, &expected, "{}", engine);
        }
    }
}
