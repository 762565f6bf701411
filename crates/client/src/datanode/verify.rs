//! Checks bytes that lie in several places against the CRCs of their chunks.

use cairn_codec::crc::{CRC_LEN, ChecksumKind, verify_chunks};

/// Checks data that lie in three places, of which the first and the last are shorter than a chunk; fails with
/// the number of the bad chunk. There is a checksum for each chunk.
pub(super) fn verify_parts(
    kind: ChecksumKind,
    chunk_len: usize,
    [lead, middle, trail]: [&[u8]; 3],
    crcs: &[u8],
) -> std::result::Result<(), usize> {
    let crc_at = |chunk: usize| crcs.get(chunk * CRC_LEN..)?.first_chunk::<CRC_LEN>();
    let is_right = |chunk: usize, parts: [&[u8]; 3]| {
        let crc = parts.iter().fold(0, |crc, part| kind.update(crc, part));
        crc_at(chunk).is_some_and(|stored| u32::from_be_bytes(*stored) == crc)
    };
    if lead.len() + middle.len() <= chunk_len {
        return if is_right(0, [lead, middle, trail]) { Ok(()) } else { Err(0) };
    }
    let (first, middle) = match lead.len() {
        0 => (0, middle),
        lead_len => {
            let (begin, middle) = middle.split_at(chunk_len - lead_len);
            if !is_right(0, [lead, begin, &[]]) {
                return Err(0);
            }
            (1, middle)
        }
    };
    // With what trails, the last chunk may be short as well.
    let whole = if trail.is_empty() { middle.len() } else { middle.len() / chunk_len * chunk_len };
    let (middle, end) = middle.split_at(whole);
    let chunks = middle.len().div_ceil(chunk_len);
    let of_middle = &crcs[first * CRC_LEN..(first + chunks) * CRC_LEN];
    verify_chunks(kind, chunk_len, middle, of_middle).map_err(|bad| first + bad.chunk)?;
    if !trail.is_empty() && !is_right(first + chunks, [end, trail, &[]]) {
        return Err(first + chunks);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
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
}
