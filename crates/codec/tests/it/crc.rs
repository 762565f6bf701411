//! CRCs of whole ranges, of chunks, and of joined ranges.

use crate::input::input;
use cairn_codec::crc::{
    ChecksumKind, ChunkMismatch, chunk_crcs, combine, verify_chunks, without_zeros,
};
use proptest::prelude::*;

const KINDS: [ChecksumKind; 2] = [ChecksumKind::Crc32, ChecksumKind::Crc32c];

/// The definition: one bit at a time.
fn crc_by_bits(kind: ChecksumKind, data: &[u8]) -> u32 {
    let polynomial = match kind {
        ChecksumKind::Crc32 => 0xedb8_8320u32,
        ChecksumKind::Crc32c => 0x82f6_3b78,
        ChecksumKind::Null => panic!("no polynomial"),
    };
    let mut state = !0u32;
    for byte in data {
        state ^= u32::from(*byte);
        for _ in 0..8 {
            state = (state >> 1) ^ (polynomial & (state & 1).wrapping_neg());
        }
    }
    !state
}

#[test]
fn check_values_of_the_crc_catalogue() {
    assert_eq!(cairn_codec::crc::crc32(0, b"123456789"), 0xcbf4_3926);
    assert_eq!(cairn_codec::crc::crc32c(0, b"123456789"), 0xe306_9283);
}

#[test]
fn every_length_and_every_address() {
    let data = input(0, 3000);
    for kind in KINDS {
        for len in (0..1100).chain([2047, 2048, 2900]) {
            let from = len % 67;
            let bytes = &data[from..from + len];
            assert_eq!(kind.update(0, bytes), crc_by_bits(kind, bytes), "{kind}, {len} bytes");
        }
    }
}

#[test]
fn kinds_have_hadoops_numbers() {
    for (id, kind, len) in
        [(0, ChecksumKind::Null, 0), (1, ChecksumKind::Crc32, 4), (2, ChecksumKind::Crc32c, 4)]
    {
        assert_eq!((kind.id(), kind.len()), (id, len));
        assert_eq!(ChecksumKind::from_id(id), Some(kind));
    }
    // Hadoop's DEFAULT and MIXED are no kinds that a file can have.
    assert_eq!((ChecksumKind::from_id(3), ChecksumKind::from_id(4)), (None, None));
}

#[test]
fn a_flipped_bit_is_found_in_its_chunk() {
    for kind in KINDS {
        let mut data = input(3, 5 * 512 + 100);
        let mut crcs = vec![0; kind.total_len(512, data.len())];
        chunk_crcs(kind, 512, &data, &mut crcs);
        assert_eq!(verify_chunks(kind, 512, &data, &crcs), Ok(()));
        for (position, chunk) in [(0, 0), (511, 0), (512, 1), (2560, 5), (2659, 5)] {
            data[position] ^= 0x10;
            let error = verify_chunks(kind, 512, &data, &crcs).expect_err("a bit is flipped");
            let actual = kind.update(0, data.chunks(512).nth(chunk).expect("six chunks"));
            let expected = crcs[4 * chunk..][..4].try_into().expect("four bytes");
            let expected = u32::from_be_bytes(expected);
            assert_eq!(error, ChunkMismatch { kind, chunk, expected, actual });
            data[position] ^= 0x10;
        }
    }
}

#[test]
fn nothing_is_checked_without_checksums() {
    let kind = ChecksumKind::Null;
    assert_eq!(kind.total_len(512, 5000), 0);
    chunk_crcs(kind, 512, &[1; 5000], &mut []);
    assert_eq!(verify_chunks(kind, 512, &[1; 5000], &[]), Ok(()));
    assert_eq!((kind.update(5, b"x"), combine(kind, 1, 2, 3)), (0, 0));
    assert_eq!(without_zeros(kind, 5, 3), 0);
}

#[test]
fn an_empty_range_has_no_chunks() {
    for kind in KINDS {
        assert_eq!(kind.total_len(512, 0), 0);
        chunk_crcs(kind, 512, &[], &mut []);
    }
}

#[test]
#[should_panic(expected = "room for one CRC per chunk")]
fn too_little_room_is_a_bug_of_the_caller() {
    chunk_crcs(ChecksumKind::Crc32c, 512, &[0; 513], &mut [0; 4]);
}

#[test]
fn zeros_are_taken_off_a_chunk_of_any_length() {
    let data: Vec<u8> = (1..=512u32).map(|n| (n * 37) as u8).collect();
    for (kind, len) in KINDS.into_iter().flat_map(|kind| (0..=512).map(move |len| (kind, len))) {
        let mut chunk = data[..len].to_vec();
        chunk.resize(512, 0);
        let short = without_zeros(kind, kind.update(0, &chunk), 512 - len as u64);
        assert_eq!(short, kind.update(0, &data[..len]), "{kind} of {len} bytes");
        // What flipped before the zeros were taken off is not hidden.
        if len > 0 {
            chunk[len / 2] ^= 4;
            let flipped = without_zeros(kind, kind.update(0, &chunk), 512 - len as u64);
            assert_ne!(flipped, short, "{kind} of {len} bytes");
        }
    }
}

proptest! {
    #[test]
    fn a_range_may_be_cut_anywhere(data in proptest::collection::vec(any::<u8>(), 0..5000), cut: prop::sample::Index) {
        let cut = cut.index(data.len() + 1);
        let (a, b) = data.split_at(cut);
        for kind in KINDS {
            let whole = kind.update(0, &data);
            prop_assert_eq!(kind.update(kind.update(0, a), b), whole);
            let (crc_a, crc_b) = (kind.update(0, a), kind.update(0, b));
            prop_assert_eq!(combine(kind, crc_a, crc_b, b.len() as u64), whole);
        }
    }

    #[test]
    fn zeros_behind_a_range_are_taken_off_its_crc(
        data in proptest::collection::vec(any::<u8>(), 0..2000),
        zeros in 0..70_000usize,
    ) {
        for kind in KINDS {
            let padded = kind.update(kind.update(0, &data), &vec![0; zeros]);
            prop_assert_eq!(without_zeros(kind, padded, zeros as u64), kind.update(0, &data));
        }
    }

    #[test]
    fn chunks_of_any_length(data in proptest::collection::vec(any::<u8>(), 0..3000), chunk_len in 1..700usize) {
        for kind in KINDS {
            let mut crcs = vec![0; kind.total_len(chunk_len, data.len())];
            chunk_crcs(kind, chunk_len, &data, &mut crcs);
            let expected: Vec<u8> =
                data.chunks(chunk_len).flat_map(|c| crc_by_bits(kind, c).to_be_bytes()).collect();
            prop_assert_eq!(&crcs, &expected);
            prop_assert_eq!(verify_chunks(kind, chunk_len, &data, &crcs), Ok(()));
        }
    }
}
