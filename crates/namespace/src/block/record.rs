//! What is recorded of blocks and block groups, and of their places in files.

use crate::encoding::{
    Decode, DecodeError, Decoder, Encode, Encoder, encode_enum, encode_struct, from_record,
};
use crate::error::Result;
use crate::inode::record::InodeId;
use cairn_stripe::{BlockId, GenerationStamp};

/// Version byte of the records of blocks outside groups, and of their places in files.
pub(super) const VERSION: u8 = 1;
/// Version byte of the records of members of contiguous groups: what follows is the same, and then the group.
const GROUPED_VERSION: u8 = 2;
/// Version byte of the records of packed blocks: what follows is the same, and then where they are.
const PACKED_VERSION: u8 = 3;

/// What clients and DataNodes name: a block at a generation stamp with a length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BlockRef {
    /// The block's or block group's id.
    pub id: BlockId,
    /// Its generation stamp.
    pub gs: GenerationStamp,
    /// Its bytes (data bytes of a group).
    pub len: u64,
}

/// A block or block group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// Its id; a group's has unit bits 0.
    pub id: BlockId,
    /// Its generation stamp.
    pub gs: GenerationStamp,
    /// Its bytes as far as known (data bytes of a group).
    pub len: u64,
    /// The file it belongs to.
    pub file: InodeId,
    /// Its position in the file, from 0.
    pub index: u32,
    /// How far its writing has come.
    pub state: BlockState,
    /// CRC32C of each unit as first written, by unit index; shorter or `None` where not reported.
    pub unit_crcs: Vec<Option<u32>>,
    /// The contiguous group whose parities are made of it.
    pub group: Option<Membership>,
    /// The container that has its bytes. A packed block is in no group itself.
    pub packed: Option<PackedIn>,
    /// Of a replicated block that is open again, or was recovered and is still open, the stamp that it had then: under older
    /// ones DataNodes may have other bytes. `None` if one writer has written it from the start, and of what is final.
    pub reopened_gs: Option<GenerationStamp>,
}

/// A block's place in a container. It is kept here only: whatever becomes of files, it is a property of the block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PackedIn {
    /// The container.
    pub container: BlockId,
    /// Which of its packed blocks the block is.
    pub slot: u32,
    /// Where its bytes begin.
    pub offset: u64,
}

/// A block's place in a contiguous group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Membership {
    /// The group.
    pub handle: BlockId,
    /// Which of its units the block is.
    pub slot: u8,
}

/// How far the writing of a block has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockState {
    /// Replicas may still grow.
    UnderConstruction,
    /// A DataNode brings the replicas to one length.
    UnderRecovery {
        /// The stamp that the recovered replicas get.
        recovery_gs: GenerationStamp,
        /// When it was ordered, elapsed ms.
        started_ms: u64,
    },
    /// As `UnderRecovery`, and the replicas are to be cut off.
    UnderTruncation {
        /// The stamp that the recovered replicas get.
        recovery_gs: GenerationStamp,
        /// When it was ordered, elapsed ms.
        started_ms: u64,
        /// Bytes that are to stay.
        new_len: u64,
    },
    /// DataNodes copy its first bytes from another block: the one that stood here until the file was cut off inside
    /// it, and that snapshots have. Its length and stamp are those that it will have.
    UnderCopy {
        /// The stamp that the copies get.
        recovery_gs: GenerationStamp,
        /// When it was ordered, elapsed ms.
        started_ms: u64,
        /// The other block.
        source: BlockId,
    },
    /// The client has said the final length; too few replicas were reported yet.
    Committed,
    /// Final, with enough replicas.
    Complete,
}

encode_struct!(BlockRef { id, gs, len });
encode_struct!(Membership { handle, slot });
encode_struct!(PackedIn { container, slot, offset });

// Outside of records: what calls are told of blocks that are written, which are in no group.
impl Encode for Block {
    fn encode(&self, out: &mut Encoder) {
        (self.id, (self.gs, self.len)).encode(out);
        (self.file, self.index).encode(out);
        self.state.encode(out);
        self.unit_crcs.encode(out);
    }
}

impl Decode for Block {
    fn decode(input: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        Ok(Block {
            id: Decode::decode(input)?,
            gs: Decode::decode(input)?,
            len: Decode::decode(input)?,
            file: Decode::decode(input)?,
            index: Decode::decode(input)?,
            state: Decode::decode(input)?,
            unit_crcs: Decode::decode(input)?,
            group: None,
            packed: None,
            reopened_gs: None,
        })
    }
}

encode_enum!(BlockState {
    1 => UnderConstruction,
    2 => UnderRecovery { recovery_gs, started_ms },
    3 => Committed,
    4 => Complete,
    5 => UnderTruncation { recovery_gs, started_ms, new_len },
    6 => UnderCopy { recovery_gs, started_ms, source },
});

impl Block {
    /// One that is in no group and no container, and of which no CRC is known; `place` is its file and its position there.
    pub fn new(of: BlockRef, place: (InodeId, u32), state: BlockState) -> Block {
        let (BlockRef { id, gs, len }, (file, index)) = (of, place);
        let (unit_crcs, group, packed, reopened_gs) = (Vec::new(), None, None, None);
        Block { id, gs, len, file, index, state, unit_crcs, group, packed, reopened_gs }
    }

    /// The block as clients name it.
    pub fn reference(&self) -> BlockRef {
        BlockRef { id: self.id, gs: self.gs, len: self.len }
    }

    /// The stamp of the recovery that runs, and when it was ordered.
    pub fn recovery(&self) -> Option<(GenerationStamp, u64)> {
        match self.state {
            BlockState::UnderRecovery { recovery_gs, started_ms }
            | BlockState::UnderTruncation { recovery_gs, started_ms, .. }
            | BlockState::UnderCopy { recovery_gs, started_ms, .. } => {
                Some((recovery_gs, started_ms))
            }
            _ => None,
        }
    }

    /// The length to which it is being cut off.
    pub fn truncated_len(&self) -> Option<u64> {
        match self.state {
            BlockState::UnderTruncation { new_len, .. } => Some(new_len),
            _ => None,
        }
    }

    /// The block of which it becomes a copy.
    pub fn copy_source(&self) -> Option<BlockId> {
        match self.state {
            BlockState::UnderCopy { source, .. } => Some(source),
            _ => None,
        }
    }

    /// Orders a recovery, or orders it again; a length to cut it off at, or what it is a copy of, stays.
    pub(crate) fn begin_recovery(&mut self, recovery_gs: GenerationStamp, started_ms: u64) {
        self.state = match self.state {
            BlockState::UnderTruncation { new_len, .. } => {
                BlockState::UnderTruncation { recovery_gs, started_ms, new_len }
            }
            BlockState::UnderCopy { source, .. } => {
                self.gs = recovery_gs;
                BlockState::UnderCopy { recovery_gs, started_ms, source }
            }
            _ => BlockState::UnderRecovery { recovery_gs, started_ms },
        };
    }

    /// Whether fewer replicas of it than copies are asked for keep it safe: it is in a group, or packed.
    pub fn is_coded(&self) -> bool {
        self.group.is_some() || self.packed.is_some()
    }

    /// Whether no file and no snapshot has it any more, and only its group needs its bytes.
    pub fn is_tombstone(&self) -> bool {
        self.group.is_some() && self.file == InodeId::NONE
    }

    /// Whether its length is final.
    pub fn is_final(&self) -> bool {
        matches!(self.state, BlockState::Committed | BlockState::Complete)
    }
}

/// The key in the block table, which orders ids as numbers.
pub fn key(id: BlockId) -> [u8; 8] {
    ((id.0 as u64) ^ (1 << 63)).to_be_bytes()
}

/// The id in a key of the block table.
pub fn from_key(key: &[u8]) -> Option<BlockId> {
    let id = u64::from_be_bytes(key.try_into().ok()?) ^ (1 << 63);
    Some(BlockId(id as i64))
}

/// The record of a block.
pub(super) fn encode(block: &Block) -> Vec<u8> {
    let mut out = Encoder::new();
    out.byte(match (&block.group, &block.packed) {
        (Some(_), _) => GROUPED_VERSION,
        (None, Some(_)) => PACKED_VERSION,
        (None, None) => VERSION,
    });
    match reopened_among_crcs(block) {
        Some(unit_crcs) => Block { unit_crcs, ..block.clone() }.encode(&mut out),
        None => block.encode(&mut out),
    }
    if let Some(group) = &block.group {
        group.encode(&mut out);
    } else if let Some(packed) = &block.packed {
        packed.encode(&mut out);
    }
    out.into_bytes()
}

/// Reads a block record, as a scan of the block table hands it out.
pub fn decode(bytes: &[u8]) -> Result<Block> {
    let mut input = Decoder::new(bytes);
    let version = input.byte()?;
    let mut block = match version {
        VERSION | GROUPED_VERSION | PACKED_VERSION => Block::decode(&mut input)?,
        version => return Err(DecodeError::Version { version }.into()),
    };
    if version == GROUPED_VERSION {
        block.group = Some(Decode::decode(&mut input)?);
    }
    if version == PACKED_VERSION {
        block.packed = Some(Decode::decode(&mut input)?);
    }
    input.finish()?;
    take_reopened(&mut block);
    Ok(block)
}

/// The CRCs of a replicated block that is open again, with [`Block::reopened_gs`] behind the only one that it can have: its
/// upper and its lower half, which older builds take for CRCs of units that it does not have.
fn reopened_among_crcs(block: &Block) -> Option<Vec<Option<u32>>> {
    let gs = block.reopened_gs.filter(|_| !block.is_final() && !block.id.has_units())?.0;
    Some(vec![block.unit_crcs.first().copied().flatten(), Some((gs >> 32) as u32), Some(gs as u32)])
}

/// Takes [`Block::reopened_gs`] from among the CRCs. What an older build has closed has it still, and is final.
fn take_reopened(block: &mut Block) {
    if block.id.has_units() || block.unit_crcs.len() < 2 {
        return;
    }
    if let [_, Some(upper), Some(lower)] = block.unit_crcs[..] {
        let gs = GenerationStamp(u64::from(upper) << 32 | u64::from(lower));
        block.reopened_gs = Some(gs).filter(|_| !block.is_final());
    }
    block.unit_crcs.truncate(1);
    if block.unit_crcs == [None] {
        block.unit_crcs.clear();
    }
}

/// The file of a block's record.
pub fn file_in(record: &[u8]) -> Result<InodeId> {
    let mut input = Decoder::new(record);
    input.byte()?;
    <(BlockId, (GenerationStamp, u64))>::decode(&mut input)?;
    Ok(InodeId::decode(&mut input)?)
}

/// An entry of the `file-block` table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// Where the block begins in the file.
    pub offset: u64,
    /// The block.
    pub id: BlockId,
}

encode_struct!(Position { offset, id });

/// Where the entry at `index` of a file is found.
pub fn position_key(file: InodeId, index: u32) -> Vec<u8> {
    [&file.key()[..], &index.to_be_bytes()].concat()
}

/// The position that a key of the `file-block` table names.
pub(crate) fn index_of(key: &[u8]) -> Option<u32> {
    key.get(8..)?.try_into().ok().map(u32::from_be_bytes)
}

/// Reads an entry's record.
pub fn position_from(bytes: &[u8]) -> Result<Position> {
    Ok(from_record(VERSION, bytes)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A block, as it is read from its record.
    fn read_again(block: &Block) -> Block {
        decode(&encode(block)).unwrap()
    }

    #[test]
    fn a_record_tells_at_which_stamp_an_open_block_was_opened_again() {
        let of = BlockRef { id: BlockId(1 << 30), gs: GenerationStamp(1005), len: 70 };
        let block = Block::new(of, (InodeId(17_000), 0), BlockState::UnderConstruction);
        assert_eq!(read_again(&block), block);
        for gs in [1001, u64::from(u32::MAX) + 7] {
            for unit_crcs in [vec![], vec![Some(7)]] {
                let reopened_gs = Some(GenerationStamp(gs));
                let reopened = Block { reopened_gs, unit_crcs, ..block.clone() };
                assert_eq!(read_again(&reopened), reopened);
                // What is final was opened by nobody again.
                let complete = Block { state: BlockState::Complete, ..reopened.clone() };
                assert_eq!(read_again(&complete), Block { reopened_gs: None, ..complete });
            }
        }
    }

    /// It takes the stamp for CRCs of units that a replicated block does not have, and may close the block with them.
    #[test]
    fn what_an_older_build_has_made_of_such_a_record_is_read() {
        let of = BlockRef { id: BlockId(1 << 30), gs: GenerationStamp(1005), len: 70 };
        let state = BlockState::UnderConstruction;
        let unit_crcs = vec![Some(7), Some(0), Some(1001)];
        let block = Block { unit_crcs, ..Block::new(of, (InodeId(17_000), 0), state) };
        let found = read_again(&block);
        assert_eq!(
            (found.unit_crcs, found.reopened_gs),
            (vec![Some(7)], Some(GenerationStamp(1001)))
        );
        let found = read_again(&Block { state: BlockState::Complete, ..block.clone() });
        assert_eq!((found.unit_crcs, found.reopened_gs), (vec![Some(7)], None));
        // Units of a group have CRCs of their own.
        let group = Block { id: BlockId(i64::MIN + 16), ..block };
        assert_eq!(read_again(&group), group);
    }
}
