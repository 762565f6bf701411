//! Block ids, unit indices and generation stamps.
//!
//! Hadoop numbers contiguous blocks upwards from 2^30 + 1 and block groups upwards from the most
//! negative number, in steps of 16: the low four bits of an internal block's id are its unit index.
//!
//! Source: Hadoop 3.5.0 `BlockIdManager`, `SequentialBlockGroupIdGenerator`, `HdfsServerConstants`.

use std::fmt;

/// Units that a block group can hold, because an internal block's id has four bits for the index.
pub const MAX_UNITS_PER_GROUP: usize = 16;

/// Bits of a block id that hold the unit index.
const UNIT_MASK: i64 = MAX_UNITS_PER_GROUP as i64 - 1;

/// The id of a contiguous block, of a block group, or of one internal block of a group.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BlockId(pub i64);

impl BlockId {
    /// The last id that was reserved before the first contiguous block; the first block is one more.
    pub const LAST_RESERVED: BlockId = BlockId(1024 * 1024 * 1024);

    /// The id before the first block group; the first group is 16 more.
    pub const FIRST_GROUP_BASE: BlockId = BlockId(i64::MIN);

    /// Whether this names a block group or an internal block of one.
    pub fn is_striped(self) -> bool {
        self.0 < 0
    }

    /// The id under which the NameNode keeps the block: the group's for an internal block.
    pub fn group(self) -> BlockId {
        if self.is_striped() { BlockId(self.0 & !UNIT_MASK) } else { self }
    }

    /// The unit index of an internal block; 0 for a group's own id and for a contiguous block.
    pub fn unit(self) -> UnitIndex {
        if self.is_striped() { UnitIndex((self.0 & UNIT_MASK) as u8) } else { UnitIndex(0) }
    }

    /// The internal block `unit` of the group that this id belongs to.
    ///
    /// Panics if this is a contiguous block or `unit` has no place in the id (caller's bug).
    pub fn internal(self, unit: UnitIndex) -> BlockId {
        assert!(self.is_striped(), "{self} is not a block group");
        assert!(unit.as_usize() < MAX_UNITS_PER_GROUP, "unit {unit} does not fit a block id");
        BlockId(self.group().0 | i64::from(unit.0))
    }

    /// The id of the next contiguous block.
    pub fn next_contiguous(self) -> BlockId {
        BlockId(self.0 + 1)
    }

    /// The id of the next block group.
    pub fn next_group(self) -> BlockId {
        BlockId(self.group().0 + MAX_UNITS_PER_GROUP as i64)
    }
}

impl fmt::Debug for BlockId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "blk_{}", self.0)
    }
}

impl fmt::Display for BlockId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "blk_{}", self.0)
    }
}

/// The place of a unit in its group: data units are `0..k`, parity units `k..k + m`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UnitIndex(pub u8);

impl UnitIndex {
    /// For indexing into per-unit arrays.
    pub fn as_usize(self) -> usize {
        usize::from(self.0)
    }
}

impl fmt::Display for UnitIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Fences old writers: a replica with a smaller stamp than its block's is stale.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GenerationStamp(pub u64);

impl GenerationStamp {
    /// The stamp before the first that a file system gives out (`HdfsConstants`: 1000).
    pub const LAST_RESERVED: GenerationStamp = GenerationStamp(1000);

    /// The stamp that follows.
    pub fn next(self) -> GenerationStamp {
        GenerationStamp(self.0 + 1)
    }
}

impl fmt::Display for GenerationStamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn internal_ids_keep_their_group_and_unit() {
        let group = BlockId::FIRST_GROUP_BASE.next_group();
        assert_eq!(group.0, i64::MIN + 16);
        for unit in (0..16).map(UnitIndex) {
            let id = group.internal(unit);
            assert_eq!((id.group(), id.unit()), (group, unit));
        }
        assert_eq!(group.internal(UnitIndex(15)).next_group(), group.next_group());
    }

    #[test]
    fn contiguous_ids_are_their_own_group() {
        let id = BlockId::LAST_RESERVED.next_contiguous();
        assert_eq!(id.0, 1_073_741_825);
        assert_eq!((id.group(), id.unit(), id.is_striped()), (id, UnitIndex(0), false));
    }
}
