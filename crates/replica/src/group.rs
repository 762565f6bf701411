//! Contiguous groups on DataNodes: how parities are computed and proven, how lost units come back, and which decoded
//! bytes are believed.
//!
//! Knows bytes and the code, and reads and writes nothing: which units are read where, and what becomes a replica, is the
//! shell's to carry out. Nothing that is made here is believed without a proof: parities by the members that come out of
//! them again, rebuilt units and decoded bytes by what is recorded of them.

pub mod decode;
pub mod encode;
pub mod rebuild;

pub use decode::Decoded;
pub use encode::Encoder;
pub use rebuild::Rebuilder;

use crate::checksum::Checksum;
use cairn_codec::crc::ChecksumKind;
use cairn_codec::{Codec, CodecError, CodecKind};
use cairn_stripe::group::{GroupError, GroupRecord, Layout};
use cairn_stripe::{BlockId, CodecName, GenerationStamp, Schema};

/// Longest chunk of members: several are in memory at once.
const MAX_CHUNK: usize = 1 << 20;

/// Why a group, or something that was made of its units, is not believed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unbelieved {
    /// No such group can be.
    #[error(transparent)]
    Group(#[from] GroupError),
    /// The code refuses.
    #[error(transparent)]
    Codec(#[from] CodecError),
    /// Members whose chunks are not checked, or too long.
    #[error("members with {0:?} cannot be grouped")]
    Chunks(Checksum),
    /// The record of a parity is missing, or is of too few bytes.
    #[error("the record of parity {0} is missing or too short")]
    ParityRecord(usize),
    /// A member was not followed by zeros when it was encoded.
    #[error("there are no zeros behind the member in slot {0}")]
    Padding(usize),
    /// A member does not come out of a parity again.
    #[error("parity {parity} does not give the member in slot {slot} back")]
    NotBack {
        /// The parity, counted from 0.
        parity: usize,
        /// The member.
        slot: usize,
    },
    /// The bytes of a unit are not those that were recorded.
    #[error("{id} in slot {slot} is not what was recorded")]
    NotAsRecorded {
        /// The unit.
        id: BlockId,
        /// Its slot.
        slot: usize,
    },
    /// The CRCs of a member's chunks are not those that were recorded.
    #[error("the CRCs of the chunks in slot {0} are not those that were recorded")]
    Sums(usize),
    /// A member was not read where it is to stay.
    #[error("{id} is on {found} and not on {wanted}")]
    Elsewhere {
        /// The member.
        id: BlockId,
        /// The storage that it was read from.
        found: String,
        /// The one that was ordered.
        wanted: String,
    },
    /// A parity is read otherwise than it was written.
    #[error("{id} was written with {written:?} and is read with {found:#010x}")]
    ReadBack {
        /// The parity.
        id: BlockId,
        /// CRC32C of what was written, if all was.
        written: Option<u32>,
        /// CRC32C of what its disk has.
        found: u32,
    },
}

impl Unbelieved {
    /// Whether it is about bytes that are others than they should be, and not about an order that makes no sense.
    pub fn is_about_bytes(&self) -> bool {
        matches!(
            self,
            Unbelieved::NotAsRecorded { .. }
                | Unbelieved::Sums(_)
                | Unbelieved::Padding(_)
                | Unbelieved::ReadBack { .. }
        )
    }

    /// The unit whose bytes are others, if it is about one.
    pub fn slot(&self) -> Option<usize> {
        match self {
            Unbelieved::NotAsRecorded { slot, .. } | Unbelieved::Sums(slot) => Some(*slot),
            _ => None,
        }
    }
}

/// The code of a schema.
pub fn codec(schema: &Schema) -> Result<Codec, CodecError> {
    let kind = match schema.codec {
        CodecName::Rs => CodecKind::Rs,
        CodecName::RsLegacy => CodecKind::RsLegacy,
        CodecName::Xor => CodecKind::Xor,
    };
    Codec::new(kind, schema.data_units(), schema.parity_units())
}

/// Fails for members whose chunks are not checked, or too long.
pub fn check_chunks(checksum: Checksum) -> Result<(), Unbelieved> {
    let Checksum { kind, chunk_len } = checksum;
    match kind == ChecksumKind::Null || chunk_len == 0 || chunk_len > MAX_CHUNK {
        true => Err(Unbelieved::Chunks(checksum)),
        false => Ok(()),
    }
}

/// A group that has been formed, as it is recorded.
#[derive(Clone, Debug)]
pub struct Formed {
    /// Its members.
    pub record: GroupRecord,
    /// Where the bytes of its units lie.
    pub layout: Layout,
    /// Its code.
    pub codec: Codec,
    /// How all members are checked.
    pub checksum: Checksum,
    /// Length and CRC32C of each parity.
    parities: Vec<(u64, u32)>,
}

impl Formed {
    /// A group with that record, whose members are checked so, and whose parities have those lengths and CRC32Cs.
    ///
    /// Fails if it contradicts itself.
    pub fn new(
        record: GroupRecord,
        checksum: Checksum,
        parities: Vec<(u64, u32)>,
    ) -> Result<Formed, Unbelieved> {
        check_chunks(checksum)?;
        let (layout, codec) = (record.layout()?, codec(&record.schema)?);
        for at in 0..layout.m() {
            let is_whole = |(len, _): &&(u64, u32)| *len >= layout.record_at();
            parities.get(at).filter(is_whole).ok_or(Unbelieved::ParityRecord(at))?;
        }
        Ok(Formed { record, layout, codec, checksum, parities })
    }

    /// Id, stamp and length of the unit in `slot`; no bytes for a slot that is empty.
    pub fn unit(&self, slot: usize) -> (BlockId, GenerationStamp, u64) {
        let id = self.record.unit_id(slot).unwrap_or(self.record.handle);
        match self.record.members.get(slot) {
            Some(member) => {
                member.map_or((id, self.record.gs, 0), |member| (id, member.gs, member.len))
            }
            None => (id, self.record.gs, self.parity(slot).map_or(0, |(len, _)| len)),
        }
    }

    /// CRC32C of the unit in `slot`.
    pub fn recorded(&self, slot: usize) -> Option<u32> {
        match self.record.members.get(slot) {
            Some(member) => member.map(|member| member.crc32c),
            // That of one that the group was taken over without is not known: it is right as the members are.
            None => self.parity(slot).map(|(_, crc)| crc).filter(|crc| *crc != 0),
        }
    }

    /// The slot of a member.
    pub fn slot_of(&self, id: BlockId, gs: GenerationStamp) -> Option<usize> {
        let mut members = self.record.members.iter();
        members.position(|member| member.is_some_and(|member| (member.id, member.gs) == (id, gs)))
    }

    fn parity(&self, slot: usize) -> Option<(u64, u32)> {
        self.parities.get(slot.checked_sub(self.layout.k())?).copied()
    }
}
