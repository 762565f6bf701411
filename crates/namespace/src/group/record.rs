//! What is recorded of contiguous groups.

use crate::encoding::{encode_enum, encode_struct, from_record};
use crate::error::Result;
use cairn_stripe::{BlockId, GenerationStamp, PolicyId};

/// Version byte of group records.
pub(super) const VERSION: u8 = 1;

/// Whole blocks and the parities that DataNodes put over them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Its number, as the id of its parities without a slot.
    pub handle: BlockId,
    /// The stamp of its parities.
    pub gs: GenerationStamp,
    /// Its policy.
    pub policy: PolicyId,
    /// Slots of members.
    pub k: u8,
    /// Parities, whose slots follow.
    pub m: u8,
    /// How far it has come.
    pub state: GroupState,
    /// The members by slot, `k` of them; an empty slot counts as zeros.
    pub members: Vec<Option<Member>>,
    /// The groups whose members it takes over.
    pub supersedes: Vec<BlockId>,
    /// Bytes of its longest member, to which the others are padded with zeros.
    pub data_len: u64,
    /// Its parities in the order of their slots, once it is formed.
    pub parities: Vec<ParityRecord>,
    /// How the members' `.meta` files sum them, which is alike for all; known once it is formed.
    pub checksum: Option<ChecksumShape>,
}

/// How far a group has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupState {
    /// An attempt: a DataNode makes the parities. Its members still are as safe as they were.
    Encoding {
        /// When it began, elapsed ms.
        started_ms: u64,
    },
    /// It keeps its members safe, of which one replica each is enough.
    Formed,
    /// It keeps its members safe until they have their copies again.
    Dissolving {
        /// When that began, elapsed ms.
        started_ms: u64,
    },
    /// Another group has its live members. Nobody needs it once that one is whole.
    Superseded {
        /// That group.
        by: BlockId,
    },
}

/// A block in a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// The block.
    pub id: BlockId,
    /// Its stamp, which never changes while it is a member.
    pub gs: GenerationStamp,
    /// Its bytes, likewise.
    pub len: u64,
    /// CRC32C of these.
    pub crc32c: u32,
    /// CRC32C of the array of its chunks' checksums, once the group is formed.
    pub sums_crc32c: Option<u32>,
    /// Whether a file or a snapshot has it. If not, its bytes stay for the others' sake, unless another group took it over.
    pub live: bool,
}

/// A parity as it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParityRecord {
    /// All its bytes: the code of the members, that of their checksums, and the group's record.
    pub len: u64,
    /// CRC32C of these; 0 if it is not known: the group was taken over without it, and nobody has made it again.
    pub crc32c: u32,
}

/// How `.meta` files sum a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChecksumShape {
    /// Hadoop's number of the checksum: 1 for CRC32, 2 for CRC32C. Source: Hadoop 3.5.0 `DataChecksum.Type`.
    pub kind: u8,
    /// Bytes of a chunk.
    pub bytes_per_checksum: u32,
}

/// What of the work on contiguous groups operators hold back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupPauses {
    /// Attempts to make groups.
    pub form: bool,
    /// Deletion of replicas that groups do not need.
    pub drop: bool,
    /// Making groups anew that have dead members.
    pub renew: bool,
    /// Conversion of files.
    pub convert: bool,
}

encode_struct!(GroupPauses { form, drop, renew, convert });
encode_struct!(Member { id, gs, len, crc32c, sums_crc32c, live });
encode_struct!(ParityRecord { len, crc32c });
encode_struct!(ChecksumShape { kind, bytes_per_checksum });
encode_enum!(GroupState {
    1 => Encoding { started_ms },
    2 => Formed,
    3 => Dissolving { started_ms },
    4 => Superseded { by },
});
encode_struct!(Group {
    handle,
    gs,
    policy,
    k,
    m,
    state,
    members,
    supersedes,
    data_len,
    parities,
    checksum,
});

impl ParityRecord {
    /// CRC32C of its bytes, if that is known.
    pub fn known_crc(&self) -> Option<u32> {
        Some(self.crc32c).filter(|crc32c| *crc32c != 0)
    }
}

impl Group {
    /// Whether its members are to get their copies again, after which it ends.
    pub fn is_dissolving(&self) -> bool {
        matches!(self.state, GroupState::Dissolving { .. })
    }

    /// The members with their slots.
    pub fn members(&self) -> impl Iterator<Item = (u8, &Member)> {
        (0u8..).zip(&self.members).filter_map(|(slot, member)| Some((slot, member.as_ref()?)))
    }

    /// The members that files or snapshots have, with their slots.
    pub fn live_members(&self) -> impl Iterator<Item = (u8, &Member)> {
        self.members().filter(|(_, member)| member.live)
    }

    /// Whether it keeps its members safe.
    pub fn is_formed(&self) -> bool {
        matches!(self.state, GroupState::Formed | GroupState::Dissolving { .. })
    }

    /// Whether it is an attempt that has not ended.
    pub fn is_attempt(&self) -> bool {
        matches!(self.state, GroupState::Encoding { .. })
    }
}

/// Reads a group's record, as a scan of the group table hands it out.
pub fn decode(bytes: &[u8]) -> Result<Group> {
    Ok(from_record(VERSION, bytes)?)
}
