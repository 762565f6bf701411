//! The CRC32C of all bytes of a unit, from the CRCs of its chunks where these are known to be right: the bytes
//! need not be looked at again.

use crate::checksum::{Checksum, CrcFold};
use cairn_codec::crc::{self, CRC_LEN, ChecksumKind};

/// CRC32C of a unit's first bytes, which are added in order.
#[derive(Clone, Default)]
pub struct UnitSum {
    crc: u32,
    end: u64,
    has_gap: bool,
    /// For chunks of the length beside it.
    fold: Option<(CrcFold, usize)>,
}

impl UnitSum {
    /// Adds bytes at `offset` that have been checked against `crcs`, or of which these were made. They begin with
    /// a chunk.
    pub fn add_chunks(&mut self, offset: u64, checksum: Checksum, data: &[u8], crcs: &[u8]) {
        let Checksum { kind, chunk_len } = checksum;
        if kind != ChecksumKind::Crc32c {
            return self.add(offset, data);
        }
        self.advance(offset, data.len());
        let fold = match self.fold.take() {
            Some((fold, len)) if len == chunk_len => fold,
            _ => CrcFold::new(kind, chunk_len),
        };
        let chunks = data.chunks_exact(chunk_len);
        let part = chunks.remainder();
        for (_, crc) in chunks.zip(crcs.as_chunks::<CRC_LEN>().0) {
            self.crc = fold.append(self.crc, u32::from_be_bytes(*crc));
        }
        self.crc = crc::crc32c(self.crc, part);
        self.fold = Some((fold, chunk_len));
    }

    /// Adds bytes at `offset`.
    pub fn add(&mut self, offset: u64, data: &[u8]) {
        self.advance(offset, data.len());
        self.crc = crc::crc32c(self.crc, data);
    }

    /// The CRC32C of the first `len` bytes, if these and no others were added.
    pub fn of_first(&self, len: u64) -> Option<u32> {
        (!self.has_gap && self.end == len).then_some(self.crc)
    }

    fn advance(&mut self, offset: u64, len: usize) {
        self.has_gap |= offset != self.end;
        self.end = offset.saturating_add(len as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checksum(kind: ChecksumKind, chunk_len: usize) -> Checksum {
        Checksum { kind, chunk_len }
    }

    #[test]
    fn the_sum_is_that_of_the_bytes_however_they_come() {
        let bytes: Vec<u8> = (0..70_001u32).map(|i| (i.wrapping_mul(i) >> 5) as u8).collect();
        let kinds = [ChecksumKind::Crc32c, ChecksumKind::Crc32, ChecksumKind::Null];
        for (at, kind) in kinds.into_iter().enumerate() {
            let checksum = checksum(kind, 512);
            let mut sum = UnitSum::default();
            assert_eq!(sum.of_first(0), Some(0));
            let (mut start, step) = (0, [1024, 5120, 512][at]);
            while start < bytes.len() {
                let end = (start + step).min(bytes.len());
                let part = &bytes[start..end];
                let mut crcs = vec![0; kind.total_len(512, part.len())];
                crc::chunk_crcs(kind, 512, part, &mut crcs);
                match start % 3 {
                    0 => sum.add(start as u64, part),
                    _ => sum.add_chunks(start as u64, checksum, part, &crcs),
                }
                assert_eq!(sum.of_first(end as u64), Some(crc::crc32c(0, &bytes[..end])));
                start = end;
            }
        }
    }

    #[test]
    fn a_gap_leaves_no_sum() {
        let mut sum = UnitSum::default();
        sum.add(0, b"0123");
        assert_eq!(sum.of_first(3), None);
        sum.add(5, b"5");
        sum.add(6, b"6");
        assert_eq!(sum.of_first(7), None);
    }
}
