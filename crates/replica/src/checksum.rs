//! Where the bytes and CRCs of a packet belong in a replica, and the CRC of all its bytes.
//!
//! A replica's CRCs each cover one chunk; the last may cover a part of one and is replaced when the
//! chunk grows. A packet may repeat bytes that are on disk already (the writer resends after a pipeline
//! failure); those are skipped. CRCs are big-endian, as on the wire and in `.meta` files. Tested below.

use cairn_codec::crc::{self, ChecksumKind};
use thiserror::Error;

#[cfg(test)]
mod tests;

pub use cairn_codec::crc::CRC_LEN;

/// How a replica's bytes are checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checksum {
    /// Which CRC.
    pub kind: ChecksumKind,
    /// Bytes that each covers.
    pub chunk_len: usize,
}

/// Why a packet cannot be placed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PlaceError {
    /// A hole would be left.
    #[error(
        "Received an out-of-sequence packet at offset {offset}. Expecting packet starting at {expected}"
    )]
    OutOfSequence {
        /// Where the packet starts.
        offset: u64,
        /// Bytes on disk.
        expected: u64,
    },
    /// A packet that starts within a chunk may not reach into the next one.
    #[error(
        "Unexpected packet data length: a partial chunk must be sent in an individual packet (data length = {len}, chunk = {chunk_len})"
    )]
    AcrossChunks {
        /// Bytes of the packet.
        len: usize,
        /// Bytes of a chunk.
        chunk_len: usize,
    },
    /// The packet has not as many CRCs as chunks.
    #[error("Invalid checksum length: received length is {got} but expected length is {want}")]
    CrcCount {
        /// Bytes of CRCs received.
        got: usize,
        /// Bytes of CRCs expected.
        want: usize,
    },
}

/// What to write for one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Bytes at the start of the packet that are on disk already.
    pub skip: usize,
    /// Index of the first chunk whose CRC is written.
    pub first_chunk: u64,
    /// CRCs at the start of the packet that are not written.
    pub skip_crcs: usize,
    /// The first CRC to write if it is not the packet's own, because the packet covers only a part of its chunk.
    pub joined_crc: Option<u32>,
}

/// The growing end of a replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkTail {
    kind: ChecksumKind,
    chunk_len: usize,
    len: u64,
    crc: u32,
}

impl ChunkTail {
    /// The end of a replica of `len` bytes whose last CRC is `crc` (ignored at a chunk boundary).
    ///
    /// Panics if `chunk_len` is 0 (caller's bug).
    pub fn new(kind: ChecksumKind, chunk_len: usize, len: u64, crc: u32) -> ChunkTail {
        assert!(chunk_len > 0, "a chunk has at least one byte");
        ChunkTail { kind, chunk_len, len, crc }
    }

    /// Bytes so far.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The CRC of the last chunk.
    pub fn crc(&self) -> u32 {
        self.crc
    }

    /// Bytes of CRCs that `len` bytes of data at `offset` come with.
    pub fn crc_bytes(&self, len: usize) -> usize {
        self.kind.total_len(self.chunk_len, len)
    }

    /// Places the packet with `data` and its `crcs` at `offset`; `None` if all of it is on disk already.
    pub fn place(
        &self,
        offset: u64,
        data: &[u8],
        crcs: &[u8],
    ) -> Result<Option<Placement>, PlaceError> {
        if offset > self.len {
            return Err(PlaceError::OutOfSequence { offset, expected: self.len });
        }
        let want = self.crc_bytes(data.len());
        if crcs.len() != want {
            return Err(PlaceError::CrcCount { got: crcs.len(), want });
        }
        let chunk = self.chunk_len as u64;
        let lead = (offset % chunk) as usize;
        if lead > 0 && lead + data.len() > self.chunk_len {
            return Err(PlaceError::AcrossChunks { len: data.len(), chunk_len: self.chunk_len });
        }
        if offset + data.len() as u64 <= self.len {
            return Ok(None);
        }
        let skip = (self.len - offset) as usize;
        let first_chunk = self.len / chunk;
        if lead == 0 {
            let skip_crcs = (first_chunk - offset / chunk) as usize;
            return Ok(Some(Placement { skip, first_chunk, skip_crcs, joined_crc: None }));
        }
        // Within one chunk: the CRC goes on from what is on disk.
        let joined_crc = match (self.kind, self.len.is_multiple_of(chunk)) {
            (ChecksumKind::Null, _) => None,
            (_, true) => Some(self.kind.update(0, &data[skip..])),
            (_, false) => Some(self.kind.update(self.crc, &data[skip..])),
        };
        Ok(Some(Placement {
            skip,
            first_chunk,
            skip_crcs: usize::from(joined_crc.is_some()),
            joined_crc,
        }))
    }

    /// Moves the end to `len` bytes, whose last chunk has `crc`.
    pub fn advance(&mut self, len: u64, crc: u32) {
        (self.len, self.crc) = (len, crc);
    }
}

/// Folds chunk CRCs into the CRC of all bytes, with a table for the constant chunk length.
#[derive(Clone)]
pub struct CrcFold {
    kind: ChecksumKind,
    shift: Box<[[u32; 256]; 4]>,
    crc: u32,
}

impl CrcFold {
    /// An empty sequence of chunks of `chunk_len` bytes.
    pub fn new(kind: ChecksumKind, chunk_len: usize) -> CrcFold {
        let mut shift = Box::new([[0u32; 256]; 4]);
        for (byte, table) in shift.iter_mut().enumerate() {
            for bit in 0..8 {
                // Appending zeros' CRC difference is linear over GF(2): 32 basis values span all.
                let basis = crc::combine(kind, 1 << (8 * byte + bit), 0, chunk_len as u64);
                let half = 1 << bit;
                for low in 0..half {
                    table[half + low] = table[low] ^ basis;
                }
            }
        }
        CrcFold { kind, shift, crc: 0 }
    }

    /// Appends a full chunk.
    pub fn push(&mut self, chunk_crc: u32) {
        self.crc = self.append(self.crc, chunk_crc);
    }

    /// The CRC of bytes with the CRC `crc` followed by a full chunk.
    pub fn append(&self, crc: u32, chunk_crc: u32) -> u32 {
        let [a, b, c, d] = crc.to_le_bytes().map(usize::from);
        let t = &self.shift;
        t[0][a] ^ t[1][b] ^ t[2][c] ^ t[3][d] ^ chunk_crc
    }

    /// The CRC of all chunks, with a last one of `len` bytes (0: none) appended.
    pub fn finish(&self, tail_crc: u32, len: u64) -> u32 {
        if len == 0 { self.crc } else { crc::combine(self.kind, self.crc, tail_crc, len) }
    }
}
