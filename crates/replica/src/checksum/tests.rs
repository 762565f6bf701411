use super::*;

const KIND: ChecksumKind = ChecksumKind::Crc32c;

fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 31 + i / 7) as u8).collect()
}

fn crcs_of(data: &[u8], chunk: usize) -> Vec<u8> {
    data.chunks(chunk).flat_map(|c| crc::crc32c(0, c).to_be_bytes()).collect()
}

/// Applies packets `(offset, len)` of one byte sequence to an empty replica, as the shell does.
fn replay(all: &[u8], chunk: usize, packets: &[(usize, usize)]) -> (Vec<u8>, Vec<u8>) {
    let (mut disk, mut meta) = (Vec::new(), Vec::new());
    let mut tail = ChunkTail::new(KIND, chunk, 0, 0);
    for &(offset, len) in packets {
        let data = &all[offset..offset + len];
        let crcs = crcs_of(data, chunk);
        let Some(p) = tail.place(offset as u64, data, &crcs).unwrap() else { continue };
        disk.extend_from_slice(&data[p.skip..]);
        meta.truncate(p.first_chunk as usize * CRC_LEN);
        if let Some(crc) = p.joined_crc {
            meta.extend_from_slice(&crc.to_be_bytes());
        }
        meta.extend_from_slice(&crcs[p.skip_crcs * CRC_LEN..]);
        let last = u32::from_be_bytes(meta[meta.len() - CRC_LEN..].try_into().unwrap());
        tail.advance(disk.len() as u64, last);
    }
    (disk, meta)
}

#[test]
fn any_split_gives_the_same_files() {
    let all = bytes(100);
    for packets in [
        &[(0, 100)][..],
        &[(0, 16), (16, 32), (48, 52)],
        &[(0, 5), (5, 3), (8, 8), (16, 84)], // chunk grows in place
        &[(0, 21), (16, 84)],                // resent from the last chunk boundary
        &[(0, 40), (0, 64), (64, 36)],       // resent from the start
        &[(0, 20), (17, 15), (32, 68)],      // partial packet overlapping the disk
        &[(0, 100), (16, 16), (96, 4)],      // nothing new
        &[(0, 7), (3, 13), (16, 1), (17, 15), (32, 68)],
    ] {
        let (disk, meta) = replay(&all, 16, packets);
        assert_eq!(disk, all, "{packets:?}");
        assert_eq!(meta, crcs_of(&all, 16), "{packets:?}");
    }
}

#[test]
fn holes_wide_partial_packets_and_wrong_crc_counts_are_refused() {
    let tail = ChunkTail::new(KIND, 16, 20, 0);
    let data = bytes(20);
    assert!(matches!(tail.place(21, &data, &[0; 8]), Err(PlaceError::OutOfSequence { .. })));
    assert!(matches!(tail.place(20, &data, &[0; 8]), Err(PlaceError::AcrossChunks { .. })));
    assert!(matches!(
        tail.place(16, &data, &[0; 4]),
        Err(PlaceError::CrcCount { got: 4, want: 8 })
    ));
}

#[test]
fn folding_chunk_crcs_equals_the_crc_of_all_bytes() {
    for len in [0usize, 1, 15, 16, 17, 512, 1000] {
        let all = bytes(len);
        let mut fold = CrcFold::new(KIND, 16);
        let chunks = all.chunks_exact(16);
        let rest = chunks.remainder().to_vec();
        chunks.for_each(|c| fold.push(crc::crc32c(0, c)));
        assert_eq!(
            fold.finish(crc::crc32c(0, &rest), rest.len() as u64),
            crc::crc32c(0, &all),
            "{len}"
        );
    }
}
