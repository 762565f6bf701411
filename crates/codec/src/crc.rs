//! CRC32 and CRC32C, whole and by chunk, and the CRC of joined byte ranges from their CRCs.
//!
//! Values are plain `u32`, as zlib gives them; HDFS keeps them big-endian on disk and on the wire,
//! which [`chunk_crcs`] and [`verify_chunks`] do. Does not know packets or `.meta` files.

#[cfg(target_arch = "aarch64")]
mod arm;
mod combine;
#[cfg(target_arch = "x86_64")]
mod fold;
mod kernel;
mod table;

pub use combine::{combine, without_zeros};

use std::fmt;

/// Bytes of one CRC on disk and on the wire.
pub const CRC_LEN: usize = 4;

/// How bytes are checked.
///
/// Source: Hadoop 3.5.0 `DataChecksum.Type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ChecksumKind {
    /// Not at all.
    Null,
    /// The CRC of gzip and Ethernet, polynomial 0x04C11DB7.
    Crc32,
    /// Castagnoli's, polynomial 0x1EDC6F41: Hadoop's default.
    Crc32c,
}

impl ChecksumKind {
    /// Hadoop's number, as in the header of `.meta` files and in `ChecksumTypeProto`.
    pub fn id(self) -> u8 {
        match self {
            ChecksumKind::Null => 0,
            ChecksumKind::Crc32 => 1,
            ChecksumKind::Crc32c => 2,
        }
    }

    /// The kind with Hadoop's number `id`, if HDFS can store it.
    pub fn from_id(id: u8) -> Option<ChecksumKind> {
        match id {
            0 => Some(ChecksumKind::Null),
            1 => Some(ChecksumKind::Crc32),
            2 => Some(ChecksumKind::Crc32c),
            _ => None,
        }
    }

    /// Bytes of one checksum: 4, or 0 for [`ChecksumKind::Null`].
    #[expect(clippy::len_without_is_empty, reason = "a kind is no container")]
    pub fn len(self) -> usize {
        match self {
            ChecksumKind::Null => 0,
            ChecksumKind::Crc32 | ChecksumKind::Crc32c => CRC_LEN,
        }
    }

    /// Bytes of the checksums of `data_len` bytes in chunks of `chunk_len`; the last chunk may be
    /// short. Panics if `chunk_len` is zero.
    pub fn total_len(self, chunk_len: usize, data_len: usize) -> usize {
        data_len.div_ceil(chunk_len) * self.len()
    }

    /// The CRC of bytes with the CRC `previous` followed by `data`; start with 0. Zero for
    /// [`ChecksumKind::Null`].
    pub fn update(self, previous: u32, data: &[u8]) -> u32 {
        match self {
            ChecksumKind::Null => 0,
            ChecksumKind::Crc32 => crc32(previous, data),
            ChecksumKind::Crc32c => crc32c(previous, data),
        }
    }
}

impl fmt::Display for ChecksumKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            ChecksumKind::Null => "NULL",
            ChecksumKind::Crc32 => "CRC32",
            ChecksumKind::Crc32c => "CRC32C",
        })
    }
}

/// The CRC32 of bytes with the CRC32 `previous` followed by `data`. Start with 0.
pub fn crc32(previous: u32, data: &[u8]) -> u32 {
    !kernel::update(&kernel::CRC32, !previous, data)
}

/// The CRC32C of bytes with the CRC32C `previous` followed by `data`. Start with 0.
pub fn crc32c(previous: u32, data: &[u8]) -> u32 {
    !kernel::update(&kernel::CRC32C, !previous, data)
}

/// A chunk whose bytes do not have the CRC that they should have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind} of chunk {chunk} is {actual:#010x}, expected {expected:#010x}")]
pub struct ChunkMismatch {
    /// How the chunk is checked.
    pub kind: ChecksumKind,
    /// Number of the first bad chunk, from 0.
    pub chunk: usize,
    /// The CRC handed in.
    pub expected: u32,
    /// The CRC of the bytes.
    pub actual: u32,
}

/// Writes the big-endian CRC of each chunk of `data` to `out`.
///
/// Chunks are `chunk_len` bytes, the last one may be shorter; `out` holds
/// `kind.total_len(chunk_len, data.len())` bytes. Panics if `chunk_len` is zero or `out` has another
/// length: both are the caller's own sizes.
pub fn chunk_crcs(kind: ChecksumKind, chunk_len: usize, data: &[u8], out: &mut [u8]) {
    assert_eq!(out.len(), kind.total_len(chunk_len, data.len()), "room for one CRC per chunk");
    if kind == ChecksumKind::Null {
        return;
    }
    for (chunk, crc) in data.chunks(chunk_len).zip(out.chunks_exact_mut(CRC_LEN)) {
        crc.copy_from_slice(&kind.update(0, chunk).to_be_bytes());
    }
}

/// Checks `data` against the big-endian CRCs of its chunks; the opposite of [`chunk_crcs`], with the
/// same shapes and panics.
///
/// Fails with the first chunk that differs. [`ChecksumKind::Null`] accepts everything.
pub fn verify_chunks(
    kind: ChecksumKind,
    chunk_len: usize,
    data: &[u8],
    crcs: &[u8],
) -> Result<(), ChunkMismatch> {
    assert_eq!(crcs.len(), kind.total_len(chunk_len, data.len()), "one CRC per chunk");
    if kind == ChecksumKind::Null {
        return Ok(());
    }
    for (chunk, (bytes, crc)) in data.chunks(chunk_len).zip(crcs.chunks_exact(CRC_LEN)).enumerate()
    {
        let expected = u32::from_be_bytes([crc[0], crc[1], crc[2], crc[3]]);
        let actual = kind.update(0, bytes);
        if expected != actual {
            return Err(ChunkMismatch { kind, chunk, expected, actual });
        }
    }
    Ok(())
}
