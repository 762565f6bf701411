//! The header of a `.meta` file: what its checksums are.
//!
//! Seven bytes, big-endian: `u16` version (1), `u8` checksum type, `u32` bytes per checksum. The
//! checksums follow, four bytes for each chunk of the block, the last chunk possibly short.
//! The last five bytes alone also precede the checksums where Hadoop sends them elsewhere.

use crate::WireError;
use crate::proto::hdfs::ChecksumTypeProto;

/// Bytes of the header.
pub const HEADER_LEN: usize = 7;
/// The one version there is. Source: Hadoop 3.5.0 `BlockMetadataHeader#VERSION`.
pub const VERSION: u16 = 1;
/// Most bytes per checksum that are taken; far above any sensible `dfs.bytes-per-checksum`.
pub const MAX_BYTES_PER_CHECKSUM: u32 = 1 << 24;

/// Which checksums a `.meta` file holds.
///
/// Source: Hadoop 3.5.0 `BlockMetadataHeader`, `DataChecksum#getHeader`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetaHeader {
    /// The algorithm; its number is the same in files and messages.
    pub checksum: ChecksumTypeProto,
    /// Bytes of block data for each checksum, at least 1.
    pub bytes_per_checksum: u32,
}

impl MetaHeader {
    /// The header's bytes.
    pub fn encode(&self) -> [u8; HEADER_LEN] {
        let [v0, v1] = VERSION.to_be_bytes();
        let [b0, b1, b2, b3] = self.bytes_per_checksum.to_be_bytes();
        [v0, v1, self.checksum as u8, b0, b1, b2, b3]
    }

    /// Decodes the first [`HEADER_LEN`] bytes of `bytes`; more may follow.
    ///
    /// Fails when there are fewer, on another version (Hadoop only warns), an unknown type, or
    /// bytes per checksum outside `1..=MAX_BYTES_PER_CHECKSUM`.
    pub fn decode(bytes: &[u8]) -> Result<MetaHeader, WireError> {
        let Some(&[v0, v1, kind, b0, b1, b2, b3]) = bytes.first_chunk::<HEADER_LEN>() else {
            let have = bytes.len();
            return Err(WireError::Truncated {
                what: "meta file header",
                needed: HEADER_LEN,
                have,
            });
        };
        let version = u16::from_be_bytes([v0, v1]);
        if version != VERSION {
            return Err(WireError::Value { what: "meta file version", value: version.into() });
        }
        MetaHeader::new(kind.into(), u32::from_be_bytes([b0, b1, b2, b3]))
    }

    /// A header from the two numbers that files and messages (`ChecksumProto`) share.
    ///
    /// Fails on an unknown type, or bytes per checksum outside `1..=MAX_BYTES_PER_CHECKSUM`.
    pub fn new(kind: i32, bytes_per_checksum: u32) -> Result<MetaHeader, WireError> {
        let checksum = ChecksumTypeProto::try_from(kind)
            .map_err(|_| WireError::Value { what: "checksum type", value: kind.into() })?;
        if bytes_per_checksum == 0 || bytes_per_checksum > MAX_BYTES_PER_CHECKSUM {
            let value = bytes_per_checksum.into();
            return Err(WireError::Value { what: "bytes per checksum", value });
        }
        Ok(MetaHeader { checksum, bytes_per_checksum })
    }

    /// Bytes of one checksum: 4, or 0 where there are none.
    pub fn checksum_len(&self) -> usize {
        match self.checksum {
            ChecksumTypeProto::ChecksumNull => 0,
            ChecksumTypeProto::ChecksumCrc32 | ChecksumTypeProto::ChecksumCrc32c => 4,
        }
    }

    /// Bytes of the checksums of `data_len` bytes that start at a chunk boundary.
    pub fn checksums_len(&self, data_len: u64) -> u64 {
        data_len.div_ceil(self.bytes_per_checksum.into()) * self.checksum_len() as u64
    }

    /// Bytes of the whole file for a block of `block_len` bytes.
    pub fn file_len(&self, block_len: u64) -> u64 {
        HEADER_LEN as u64 + self.checksums_len(block_len)
    }
}

#[cfg(test)]
mod tests;
