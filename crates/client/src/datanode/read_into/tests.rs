use super::*;
use cairn_codec::crc::chunk_crcs;

#[test]
fn parts_are_checked_as_the_whole_is() {
    const CHUNK: usize = 8;
    let kind = ChecksumKind::Crc32c;
    // All ways to cut ranges out of data whose last chunk is whole or short.
    for len in [5, 8, 13, 16, 31, 32] {
        let data: Vec<u8> = (0..len).map(|i| (i * 37 + 11) as u8).collect();
        for from in 0..len {
            for to in from + 1..=len {
                let (start, end) = (from - from % CHUNK, to.next_multiple_of(CHUNK).min(len));
                let mut crcs = vec![0; (end - start).div_ceil(CHUNK) * CRC_LEN];
                chunk_crcs(kind, CHUNK, &data[start..end], &mut crcs);
                let parts = |data: &[u8]| {
                    let parts = [&data[start..from], &data[from..to], &data[to..end]];
                    verify_parts(kind, CHUNK, parts, &crcs)
                };
                assert_eq!(parts(&data), Ok(()), "{from}..{to} of {len}");
                for bad in start..end {
                    let mut data = data.clone();
                    data[bad] ^= 1;
                    let chunk = (bad - start) / CHUNK;
                    assert_eq!(parts(&data), Err(chunk), "{bad} in {from}..{to} of {len}");
                }
            }
        }
    }
}

#[test]
fn a_shape_is_remembered() {
    let shape = Shape::default();
    let usual = Form { chunk_len: 512, kind: ChecksumKind::Crc32c, packet_len: 256 << 10 };
    assert_eq!(shape.form(), usual);
    shape.note(1 << 20, ChecksumKind::Crc32, 16 << 20);
    let noted = Form { chunk_len: 1 << 20, kind: ChecksumKind::Crc32, packet_len: 16 << 20 };
    assert_eq!(shape.form(), noted);
}
