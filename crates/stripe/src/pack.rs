//! Containers: blocks that hold small blocks of many files, one after the other.
//!
//! ```text
//! | packed block | zeros | packed block | zeros | ... | index |
//! 0              each begins where a chunk begins      data_len
//! ```
//! A packed block is found by its container and slot. The CRC of its last chunk, in the container's `.meta` file, covers
//! the zeros up to the next chunk; `cairn_codec::crc::without_zeros` takes them off. The index is the container's end:
//!
//! ```text
//! "CPCK" | version 1 | container 8 | stamp 8 | checksum type 1 | chunk length 4 | data length 8 | packed blocks 4
//!        | each, by slot: slot 4, id 8, stamp 8, offset 8, length 4, CRC32C 4
//! CRC32C of that 4 | its length 4
//! ```
//! Numbers are big-endian. Slots may be left out: those of blocks that could not be packed. Nothing else is free: where
//! a block begins follows from the lengths of those before it, and is recorded all the same, to be compared.

use crate::id::{BlockId, GenerationStamp};
use std::ops::Range;

const MAGIC: &[u8] = b"CPCK\x01";
/// Bytes before the packed blocks.
const HEAD_LEN: usize = MAGIC.len() + 33;
/// Bytes of one of them.
const ENTRY_LEN: usize = 36;
/// Bytes of the CRC and the length behind an index.
const FRAME_LEN: usize = 8;

/// Most packed blocks of a container.
pub const MAX_PACKED: usize = 1 << 16;
/// Longest packed block, in bytes: what is read and compared as a whole.
pub const MAX_PACKED_LEN: u32 = 8 << 20;
/// Longest index, in bytes.
pub const MAX_INDEX_LEN: usize = HEAD_LEN + MAX_PACKED * ENTRY_LEN + FRAME_LEN;

/// A block in a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packed {
    /// Which one of the container it is.
    pub slot: u32,
    /// Its id.
    pub id: BlockId,
    /// Its stamp.
    pub gs: GenerationStamp,
    /// Where it begins.
    pub offset: u64,
    /// Its bytes.
    pub len: u32,
    /// CRC32C of these.
    pub crc32c: u32,
}

impl Packed {
    /// Its bytes in the container.
    pub fn range(&self) -> Range<u64> {
        self.offset..self.offset + u64::from(self.len)
    }
}

/// What is in a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackIndex {
    /// The container.
    pub container: BlockId,
    /// Its stamp.
    pub gs: GenerationStamp,
    /// Hadoop's number of the checksum type that all packed blocks and the container have.
    pub checksum_type: u8,
    /// Bytes of a chunk of all of them.
    pub chunk_len: u32,
    data_len: u64,
    packed: Vec<Packed>,
}

/// Why bytes are no index, or a block cannot be packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PackError {
    /// They end too early or too late, or begin otherwise.
    #[error("no index of a container")]
    Form,
    /// They have changed.
    #[error("the index of a container does not match its CRC")]
    Crc,
    /// No such block can be in that slot.
    #[error("no block of {len} bytes can be in slot {slot}")]
    Block {
        /// The slot.
        slot: u32,
        /// Bytes of the block.
        len: u32,
    },
    /// A block does not begin where the one before it ends.
    #[error("slot {slot} does not begin where it should")]
    Offset {
        /// The slot.
        slot: u32,
    },
}

impl PackIndex {
    /// That of a container with nothing in it yet. Fails for what is no container, and for chunks without bytes.
    pub fn new(
        (container, gs): (BlockId, GenerationStamp),
        checksum_type: u8,
        chunk_len: u32,
    ) -> Result<PackIndex, PackError> {
        if !container.is_container() || chunk_len == 0 {
            return Err(PackError::Form);
        }
        let (data_len, packed) = (0, Vec::new());
        Ok(PackIndex { container, gs, checksum_type, chunk_len, data_len, packed })
    }

    /// Puts a block into the container behind all others. Answers where it is.
    ///
    /// Fails for a slot that is not behind theirs, a block without bytes or with too many, and a full container.
    pub fn push(
        &mut self,
        slot: u32,
        (id, gs): (BlockId, GenerationStamp),
        (len, crc32c): (u32, u32),
    ) -> Result<Packed, PackError> {
        let is_behind = self.packed.last().is_none_or(|last| last.slot < slot);
        let is_full = self.packed.len() >= MAX_PACKED;
        if !is_behind || is_full || len == 0 || len > MAX_PACKED_LEN {
            return Err(PackError::Block { slot, len });
        }
        let packed = Packed { slot, id, gs, offset: self.data_len, len, crc32c };
        self.packed.push(packed);
        self.data_len += padded_len(len, self.chunk_len);
        Ok(packed)
    }

    /// The packed blocks by slot.
    pub fn packed(&self) -> &[Packed] {
        &self.packed
    }

    /// Bytes of the packed blocks with the zeros between them: where the index begins.
    pub fn data_len(&self) -> u64 {
        self.data_len
    }

    /// Bytes of the index.
    pub fn tail_len(&self) -> u64 {
        PackIndex::tail_len_of(self.packed.len())
    }

    /// Bytes of the index of so many packed blocks.
    pub fn tail_len_of(packed: usize) -> u64 {
        (HEAD_LEN + packed * ENTRY_LEN + FRAME_LEN) as u64
    }

    /// Bytes of the container.
    pub fn container_len(&self) -> u64 {
        self.data_len + self.tail_len()
    }

    /// The end of the container. `crc32c` is the function of that name.
    pub fn to_tail(&self, crc32c: impl Fn(&[u8]) -> u32) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.tail_len() as usize);
        out.extend(MAGIC);
        out.extend(self.container.0.to_be_bytes());
        out.extend(self.gs.0.to_be_bytes());
        out.push(self.checksum_type);
        out.extend(self.chunk_len.to_be_bytes());
        out.extend(self.data_len.to_be_bytes());
        out.extend((self.packed.len() as u32).to_be_bytes());
        for Packed { slot, id, gs, offset, len, crc32c } in &self.packed {
            out.extend(slot.to_be_bytes());
            out.extend(id.0.to_be_bytes());
            out.extend(gs.0.to_be_bytes());
            out.extend(offset.to_be_bytes());
            out.extend(len.to_be_bytes());
            out.extend(crc32c.to_be_bytes());
        }
        let (crc, len) = (crc32c(&out), out.len() as u32);
        out.extend(crc.to_be_bytes());
        out.extend(len.to_be_bytes());
        out
    }

    /// The index at the end of a container's bytes, of which `end` are some.
    ///
    /// Fails if there is none that is whole and describes a container.
    pub fn from_tail(end: &[u8], crc32c: impl Fn(&[u8]) -> u32) -> Result<PackIndex, PackError> {
        let framed = end.len().checked_sub(FRAME_LEN).ok_or(PackError::Form)?;
        let (before, frame) = end.split_at(framed);
        let mut frame = Bytes(frame);
        let (crc, len) = (frame.u32()?, frame.u32()? as usize);
        let start = before.len().checked_sub(len).ok_or(PackError::Form)?;
        let body = &before[start..];
        if crc32c(body) != crc {
            return Err(PackError::Crc);
        }
        let mut body = Bytes(body.strip_prefix(MAGIC).ok_or(PackError::Form)?);
        let container = (BlockId(body.u64()? as i64), GenerationStamp(body.u64()?));
        let [checksum_type] = body.take::<1>()?;
        let mut index = PackIndex::new(container, checksum_type, body.u32()?)?;
        let (data_len, count) = (body.u64()?, body.u32()? as usize);
        if count > MAX_PACKED || body.0.len() != count * ENTRY_LEN {
            return Err(PackError::Form);
        }
        for _ in 0..count {
            let slot = body.u32()?;
            let block = (BlockId(body.u64()? as i64), GenerationStamp(body.u64()?));
            let offset = body.u64()?;
            let placed = index.push(slot, block, (body.u32()?, body.u32()?))?;
            if placed.offset != offset {
                return Err(PackError::Offset { slot });
            }
        }
        match index.data_len == data_len {
            true => Ok(index),
            false => Err(PackError::Form),
        }
    }
}

/// Bytes that a packed block takes, up to where a chunk begins.
///
/// Panics if chunks have no bytes (caller's bug).
pub fn padded_len(len: u32, chunk_len: u32) -> u64 {
    u64::from(len).next_multiple_of(chunk_len.into())
}

/// Bytes that are taken from the front.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], PackError> {
        let (taken, rest) = self.0.split_first_chunk::<N>().ok_or(PackError::Form)?;
        self.0 = rest;
        Ok(*taken)
    }

    fn u32(&mut self) -> Result<u32, PackError> {
        self.take().map(u32::from_be_bytes)
    }

    fn u64(&mut self) -> Result<u64, PackError> {
        self.take().map(u64::from_be_bytes)
    }
}

#[cfg(test)]
mod tests;
