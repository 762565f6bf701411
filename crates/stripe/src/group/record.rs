//! What is recorded of a contiguous group, and its form at the end of each parity: groups can be known again from
//! disks alone.
//!
//! ```text
//! "CGRP" | version 1 | handle 8 | stamp 8 | policy 1 | codec 1 | k 1 | m 1 | checksum type 1 | chunk length 4
//!        | data length 8 | members 1 | each: slot 1, id 8, stamp 8, length 8, CRC32C 4, CRC32C of its CRCs 4
//! CRC32C of that 4 | its length 4
//! ```
//! Numbers are big-endian.

use super::{GroupError, Layout};
use crate::id::{BlockId, GenerationStamp, UnitIndex};
use crate::policy::{CodecName, PolicyId, Schema};

const MAGIC: &[u8] = b"CGRP\x01";
/// Bytes of the CRC and the length behind a record.
const FRAME_LEN: usize = 8;

/// A block of a group, as it was when the group was encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its id.
    pub id: BlockId,
    /// Its stamp.
    pub gs: GenerationStamp,
    /// Its bytes.
    pub len: u64,
    /// Of all its bytes.
    pub crc32c: u32,
    /// Of the CRCs of its chunks, as its `.meta` file has them.
    pub sums_crc32c: u32,
}

/// A group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupRecord {
    /// Its id, with 0 in the bits of the slot.
    pub handle: BlockId,
    /// The stamp of its parities.
    pub gs: GenerationStamp,
    /// The policy that it was made for.
    pub policy: PolicyId,
    /// Its code and units.
    pub schema: Schema,
    /// Hadoop's number of the checksum type that all members have.
    pub checksum_type: u8,
    /// Bytes of a chunk of all members.
    pub chunk_len: u32,
    /// Bytes of the longest member.
    pub data_len: u64,
    /// By slot.
    pub members: Vec<Option<Member>>,
}

/// Why bytes are no record.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// They end too early or too late, or begin otherwise.
    #[error("no record of a group")]
    Form,
    /// They have changed.
    #[error("the record of a group does not match its CRC")]
    Crc,
    /// They are whole, and describe what cannot be.
    #[error(transparent)]
    Group(#[from] GroupError),
}

impl GroupRecord {
    /// Bytes at the end of a parity among which a record of as many members as there can be is.
    pub const TAIL_MAX: u64 = 1024;

    /// Where the bytes of the group's units lie.
    ///
    /// Fails if no such group can be.
    pub fn layout(&self) -> Result<Layout, GroupError> {
        let (k, m) = (self.schema.data_units(), self.schema.parity_units());
        if self.members.len() != k {
            return Err(GroupError::Shape { k, m, members: self.members.len() });
        }
        let lens = self.members.iter().map(|member| member.map_or(0, |member| member.len));
        Layout::new(m, lens.collect(), self.data_len, self.chunk_len.into())
    }

    /// The id of the unit in `slot`, if there is one.
    ///
    /// Panics if the handle is none (caller's bug).
    pub fn unit_id(&self, slot: usize) -> Option<BlockId> {
        match self.members.get(slot) {
            Some(member) => member.map(|member| member.id),
            None if slot < self.schema.units() => Some(self.handle.internal(UnitIndex(slot as u8))),
            None => None,
        }
    }

    /// The end of each parity. `crc32c` is the function of that name.
    pub fn to_tail(&self, crc32c: impl Fn(&[u8]) -> u32) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        out.extend(self.handle.0.to_be_bytes());
        out.extend(self.gs.0.to_be_bytes());
        let codec = CodecName::ALL.iter().position(|codec| *codec == self.schema.codec);
        let codec = codec.unwrap_or(CodecName::ALL.len()) as u8;
        out.extend([self.policy.0, codec, self.schema.k, self.schema.m, self.checksum_type]);
        out.extend(self.chunk_len.to_be_bytes());
        out.extend(self.data_len.to_be_bytes());
        out.push(self.members.iter().flatten().count() as u8);
        for (slot, member) in self.members.iter().enumerate() {
            let Some(Member { id, gs, len, crc32c, sums_crc32c }) = member else { continue };
            out.push(slot as u8);
            out.extend(id.0.to_be_bytes());
            out.extend(gs.0.to_be_bytes());
            out.extend(len.to_be_bytes());
            out.extend(crc32c.to_be_bytes());
            out.extend(sums_crc32c.to_be_bytes());
        }
        let (crc, len) = (crc32c(&out), out.len() as u32);
        out.extend(crc.to_be_bytes());
        out.extend(len.to_be_bytes());
        out
    }

    /// The record at the end of a parity's bytes, of which `end` are some.
    ///
    /// Fails if there is none that is whole and describes a group.
    pub fn from_tail(
        end: &[u8],
        crc32c: impl Fn(&[u8]) -> u32,
    ) -> Result<GroupRecord, RecordError> {
        let framed = end.len().checked_sub(FRAME_LEN).ok_or(RecordError::Form)?;
        let (before, frame) = end.split_at(framed);
        let mut frame = Bytes(frame);
        let (crc, len) = (frame.u32()?, frame.u32()? as usize);
        let start = before.len().checked_sub(len).ok_or(RecordError::Form)?;
        let body = &before[start..];
        if crc32c(body) != crc {
            return Err(RecordError::Crc);
        }
        let mut body = Bytes(body.strip_prefix(MAGIC).ok_or(RecordError::Form)?);
        let (handle, gs) = (BlockId(body.u64()? as i64), GenerationStamp(body.u64()?));
        if !handle.is_parity() || handle != handle.group() {
            return Err(RecordError::Form);
        }
        let [policy, codec, k, m, checksum_type] = body.take::<5>()?;
        let codec = *CodecName::ALL.get(usize::from(codec)).ok_or(RecordError::Form)?;
        let (chunk_len, data_len) = (body.u32()?, body.u64()?);
        let mut members = vec![None; usize::from(k)];
        for _ in 0..body.u8()? {
            let slot = usize::from(body.u8()?);
            let member = Member {
                id: BlockId(body.u64()? as i64),
                gs: GenerationStamp(body.u64()?),
                len: body.u64()?,
                crc32c: body.u32()?,
                sums_crc32c: body.u32()?,
            };
            let place = members.get_mut(slot).filter(|place| place.is_none());
            *place.ok_or(RecordError::Form)? = Some(member);
        }
        if !body.0.is_empty() {
            return Err(RecordError::Form);
        }
        let (policy, schema) = (PolicyId(policy), Schema { codec, k, m });
        let record =
            GroupRecord { handle, gs, policy, schema, checksum_type, chunk_len, data_len, members };
        record.layout()?;
        Ok(record)
    }
}

/// Bytes that are taken from the front.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], RecordError> {
        let (taken, rest) = self.0.split_first_chunk::<N>().ok_or(RecordError::Form)?;
        self.0 = rest;
        Ok(*taken)
    }

    fn u8(&mut self) -> Result<u8, RecordError> {
        self.take::<1>().map(|[byte]| byte)
    }

    fn u32(&mut self) -> Result<u32, RecordError> {
        self.take().map(u32::from_be_bytes)
    }

    fn u64(&mut self) -> Result<u64, RecordError> {
        self.take().map(u64::from_be_bytes)
    }
}
