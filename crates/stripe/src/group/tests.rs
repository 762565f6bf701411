//! Layouts of unequal members, choices of sources, and records that are written and read.

use super::*;
use crate::{BlockId, CodecName, GenerationStamp, PolicyId, Schema};
use proptest::prelude::*;

fn layout(lens: &[u64]) -> Layout {
    Layout::new(2, lens.to_vec(), 3000, 512).unwrap()
}

#[test]
fn shorter_members_end_and_empty_slots_have_nothing() {
    let layout = layout(&[3000, 700, 0]);
    assert_eq!((layout.sums_len(), layout.record_at()), (24, 3024));
    let data = |slot| layout.range(slot, Part::Data, &(512..1024));
    assert_eq!([data(0), data(1), data(3)], [512..1024, 512..700, 512..1024]);
    assert!(data(2).is_empty() && layout.range(1, Part::Data, &(1024..2048)).is_empty());
    let sums = |slot| layout.range(slot, Part::Sums, &(0..24));
    assert_eq!([sums(0), sums(1), sums(2), sums(4)], [0..24, 0..8, 0..0, 0..24]);
    assert_eq!(layout.members().collect::<Vec<_>>(), [0, 1]);
}

#[test]
fn a_range_is_widened_to_its_chunks_and_their_crcs() {
    let layout = layout(&[3000, 700, 0]);
    assert_eq!(layout.chunks(0, &(600..601)), (512..1024, 4..8));
    assert_eq!(layout.chunks(0, &(0..3000)), (0..3000, 0..24));
    assert_eq!(layout.chunks(1, &(513..514)), (512..700, 4..8));
}

#[test]
fn empty_slots_stand_for_sources() {
    let layout = layout(&[3000, 700, 0]);
    assert_eq!(layout.sources(&[4, 2, 4, 9, 1, 0]).unwrap(), [4, 1]);
    assert_eq!(layout.sources(&[1]), Err(GroupError::TooFew { known: 2, k: 3 }));
}

#[test]
fn each_parity_is_proven_by_a_member_and_the_next_attempt_by_another() {
    let layout = layout(&[3000, 0, 700]);
    let of = |attempt| [layout.proves(0, attempt), layout.proves(1, attempt)];
    assert_eq!(of(0), [Some(0), Some(2)]);
    assert_eq!(of(1), [Some(2), Some(0)]);
}

#[test]
fn what_cannot_be_is_refused() {
    assert!(Layout::new(2, vec![0; 3], 0, 512).is_err(), "no bytes");
    assert!(Layout::new(2, vec![4, 5, 0], 4, 512).is_err(), "longer than the parities");
    assert!(Layout::new(2, Vec::new(), 4, 512).is_err() && Layout::new(0, vec![4], 4, 1).is_err());
    assert!(Layout::new(15, vec![4, 4], 4, 512).is_err(), "too many units");
    assert!(Layout::new(2, vec![4], 4, 0).is_err(), "no chunks");
    assert!(Layout::new(2, vec![4], MAX_MEMBER_LEN + 1, 512).is_err());
}

fn record() -> GroupRecord {
    let member = |number: i64, len| Member {
        id: BlockId(1000 + number),
        gs: GenerationStamp(7),
        len,
        crc32c: 5,
        sums_crc32c: 6,
    };
    GroupRecord {
        handle: BlockId(1 << 61 | 16),
        gs: GenerationStamp(2000),
        policy: PolicyId(34),
        schema: Schema { codec: CodecName::Rs, k: 3, m: 2 },
        checksum_type: 2,
        chunk_len: 512,
        data_len: 3000,
        members: vec![Some(member(0, 3000)), None, Some(member(2, 700))],
    }
}

/// Anything that tells bytes apart.
fn sum(bytes: &[u8]) -> u32 {
    bytes.iter().fold(7, |sum, byte| sum.rotate_left(5).wrapping_mul(33) ^ u32::from(*byte))
}

#[test]
fn a_record_at_the_end_of_a_parity_is_known_again() {
    let record = record();
    let mut parity = vec![9; 100];
    parity.extend(record.to_tail(sum));
    assert_eq!(GroupRecord::from_tail(&parity, sum), Ok(record.clone()));
    assert_eq!(record.unit_id(4), Some(BlockId(1 << 61 | 20)));
    assert_eq!((record.unit_id(1), record.unit_id(5)), (None, None));
}

#[test]
fn a_record_with_any_byte_changed_is_none() {
    let tail = record().to_tail(sum);
    for at in 0..tail.len() {
        let mut bad = tail.clone();
        bad[at] ^= 0x41;
        assert!(GroupRecord::from_tail(&bad, sum).is_err(), "byte {at}");
    }
    assert!((0..tail.len()).all(|end| GroupRecord::from_tail(&tail[..end], sum).is_err()));
}

proptest! {
    #[test]
    fn any_bytes_are_refused_or_describe_a_group(mut body in proptest::collection::vec(any::<u8>(), 0..200)) {
        let mut bytes = b"CGRP\x01".to_vec();
        bytes.append(&mut body);
        let (crc, len) = (sum(&bytes), bytes.len() as u32);
        bytes.extend(crc.to_be_bytes());
        bytes.extend(len.to_be_bytes());
        if let Ok(record) = GroupRecord::from_tail(&bytes, sum) {
            prop_assert!(record.layout().is_ok());
            prop_assert_eq!(GroupRecord::from_tail(&record.to_tail(sum), sum), Ok(record));
        }
    }
}
