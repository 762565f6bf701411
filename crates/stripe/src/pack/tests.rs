use super::*;
use proptest::prelude::*;

const CONTAINER: (BlockId, GenerationStamp) = (BlockId(1 << 60 | 7), GenerationStamp(2000));

/// Anything that tells bytes apart.
fn sum(bytes: &[u8]) -> u32 {
    bytes.iter().fold(7, |sum, byte| sum.rotate_left(5).wrapping_mul(33) ^ u32::from(*byte))
}

fn index(lens: &[u32]) -> PackIndex {
    let mut index = PackIndex::new(CONTAINER, 2, 512).unwrap();
    for (slot, len) in (0..).zip(lens) {
        let block = (BlockId(1000 + i64::from(slot)), GenerationStamp(9));
        index.push(slot * 2, block, (*len, slot)).unwrap();
    }
    index
}

#[test]
fn each_block_begins_where_a_chunk_begins() {
    let index = index(&[1, 512, 513, 10_000]);
    let ranges: Vec<_> = index.packed().iter().map(Packed::range).collect();
    assert_eq!(ranges, [0..1, 512..1024, 1024..1537, 2048..12_048]);
    assert_eq!(index.data_len(), 2048 + 10_240);
    assert_eq!(index.tail_len(), index.to_tail(sum).len() as u64);
}

#[test]
fn what_cannot_be_packed_is_refused() {
    let mut index = index(&[5, 5]);
    let block = (BlockId(1), GenerationStamp(1));
    for (slot, len) in [(2, 5), (0, 5), (3, 0), (3, MAX_PACKED_LEN + 1)] {
        assert_eq!(index.push(slot, block, (len, 0)), Err(PackError::Block { slot, len }));
    }
    assert!(PackIndex::new((BlockId(1), GenerationStamp(1)), 2, 512).is_err(), "no container");
    assert!(PackIndex::new(CONTAINER, 2, 0).is_err(), "no chunks");
}

#[test]
fn an_index_with_any_byte_changed_is_none() {
    let tail = index(&[3, 700]).to_tail(sum);
    for at in 0..tail.len() {
        let mut bad = tail.clone();
        bad[at] ^= 0x41;
        assert!(PackIndex::from_tail(&bad, sum).is_err(), "byte {at}");
    }
    assert!((0..tail.len()).all(|end| PackIndex::from_tail(&tail[..end], sum).is_err()));
}

/// Shifted by one slot, or left where another attempt had it: the offset does not follow from the lengths.
#[test]
fn an_index_whose_offsets_do_not_follow_is_none() {
    let mut moved = index(&[600, 600, 600]);
    moved.packed[1].offset = 512;
    assert_eq!(PackIndex::from_tail(&moved.to_tail(sum), sum), Err(PackError::Offset { slot: 2 }));
    let mut shorter = index(&[600, 600]);
    shorter.data_len -= 512;
    assert_eq!(PackIndex::from_tail(&shorter.to_tail(sum), sum), Err(PackError::Form));
}

proptest! {
    #[test]
    fn an_index_at_the_end_of_a_container_is_known_again(
        lens in proptest::collection::vec(1..100_000u32, 0..40),
        before in 0..100usize,
    ) {
        let index = index(&lens);
        let mut end = vec![9; before];
        end.extend(index.to_tail(sum));
        prop_assert_eq!(PackIndex::from_tail(&end, sum), Ok(index));
    }

    #[test]
    fn any_bytes_are_refused_or_describe_a_container(mut body in proptest::collection::vec(any::<u8>(), 0..200)) {
        let mut bytes = MAGIC.to_vec();
        bytes.append(&mut body);
        let (crc, len) = (sum(&bytes), bytes.len() as u32);
        bytes.extend(crc.to_be_bytes());
        bytes.extend(len.to_be_bytes());
        if let Ok(index) = PackIndex::from_tail(&bytes, sum) {
            prop_assert_eq!(PackIndex::from_tail(&index.to_tail(sum), sum), Ok(index));
        }
    }
}
