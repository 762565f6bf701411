//! Block ids, unit indices and generation stamps.
//!
//! Hadoop numbers contiguous blocks upwards from 2^30 + 1 and block groups upwards from the most
//! negative number, in steps of 16: the low four bits of an internal block's id are its unit index.
//! Cairn keeps ranges of positive ids apart, which numbers of contiguous blocks never reach: bit 61 for the parities of
//! contiguous groups, bit 62 for plain views of block groups and bit 60 for containers of small blocks. A
//! parity's low four bits are its slot in the group; with these 0 the id is the group's handle. A plain view has all
//! other bits of its block group's id.
//!
//! Source: Hadoop 3.5.0 `BlockIdManager`, `SequentialBlockGroupIdGenerator`, `HdfsServerConstants`.

use std::fmt;

/// Units that a block group can hold, because an internal block's id has four bits for the index.
pub const MAX_UNITS_PER_GROUP: usize = 16;

/// Bits of a block id that hold the unit index.
const UNIT_MASK: i64 = MAX_UNITS_PER_GROUP as i64 - 1;

/// The first bit that no contiguous block's id has: containers.
const CONTAINER_BIT: i64 = 1 << 60;
/// Parities of contiguous groups.
const PARITY_BIT: i64 = 1 << 61;
/// Plain views of block groups.
const VIEW_BIT: i64 = 1 << 62;

/// The id of a contiguous block, of a block group or one of its internal blocks, or of a contiguous group or one of its
/// parities.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BlockId(pub i64);

impl BlockId {
    /// The last id that was reserved before the first contiguous block; the first block is one more.
    pub const LAST_RESERVED: BlockId = BlockId(1024 * 1024 * 1024);

    /// The id before the first block group; the first group is 16 more.
    pub const FIRST_GROUP_BASE: BlockId = BlockId(i64::MIN);

    /// The handle before that of the first contiguous group; the first is 16 more.
    pub const FIRST_HANDLE_BASE: BlockId = BlockId(PARITY_BIT);

    /// The id before the first container; the first is one more.
    pub const FIRST_CONTAINER_BASE: BlockId = BlockId(CONTAINER_BIT);

    /// Whether this names a block group or an internal block of one.
    pub fn is_striped(self) -> bool {
        self.0 < 0
    }

    /// Whether this names a contiguous group by its handle, or one of its parities.
    pub fn is_parity(self) -> bool {
        self.0 > 0 && self.0 & (PARITY_BIT | VIEW_BIT) == PARITY_BIT
    }

    /// Whether this is from the range that is kept for plain views of block groups.
    pub fn is_plain_view(self) -> bool {
        self.0 > 0 && self.0 & VIEW_BIT != 0
    }

    /// The id under which the data of a block group can be read as one plain block; `None` for what is no block group,
    /// or one of numbers that are never reached.
    pub fn plain_view(self) -> Option<BlockId> {
        let view = BlockId(self.0 & i64::MAX | VIEW_BIT);
        Some(view).filter(|view| self.is_striped() && view.viewed_group() == Some(self))
    }

    /// The block group of which this is the plain view.
    pub fn viewed_group(self) -> Option<BlockId> {
        let group = BlockId(self.0 & !VIEW_BIT | i64::MIN);
        Some(group).filter(|group| self.is_plain_view() && group.unit() == UnitIndex(0))
    }

    /// Whether this names a container: a block of no file, in which small blocks of files are packed.
    pub fn is_container(self) -> bool {
        self.0 > 0 && self.0 & (CONTAINER_BIT | PARITY_BIT | VIEW_BIT) == CONTAINER_BIT
    }

    /// Whether the low four bits tell a unit: of a block group, or the slot of a parity.
    pub fn has_units(self) -> bool {
        self.is_striped() || self.is_parity()
    }

    /// The id under which the NameNode keeps the block: the group's for an internal block, the handle for a parity.
    pub fn group(self) -> BlockId {
        if self.has_units() { BlockId(self.0 & !UNIT_MASK) } else { self }
    }

    /// The unit index of an internal block, or the slot of a parity; 0 for a group's own id or handle and for a
    /// contiguous block.
    pub fn unit(self) -> UnitIndex {
        if self.has_units() { UnitIndex((self.0 & UNIT_MASK) as u8) } else { UnitIndex(0) }
    }

    /// The internal block `unit` of the group that this id belongs to, or the parity at that slot.
    ///
    /// Panics if this is a contiguous block or `unit` has no place in the id (caller's bug).
    pub fn internal(self, unit: UnitIndex) -> BlockId {
        assert!(self.has_units(), "{self} is not a block group");
        assert!(unit.as_usize() < MAX_UNITS_PER_GROUP, "unit {unit} does not fit a block id");
        BlockId(self.group().0 | i64::from(unit.0))
    }

    /// The id of the next contiguous block; `None` where their range ends.
    pub fn next_contiguous(self) -> Option<BlockId> {
        Some(BlockId(self.0.checked_add(1)?)).filter(|next| next.0 < CONTAINER_BIT)
    }

    /// The id of the next container; `None` where their range ends.
    pub fn next_container(self) -> Option<BlockId> {
        Some(BlockId(self.0.checked_add(1)?)).filter(|next| next.is_container())
    }

    /// The id of the next block group, or the handle of the next contiguous group; `None` where their range ends.
    pub fn next_group(self) -> Option<BlockId> {
        let next = BlockId(self.group().0 + MAX_UNITS_PER_GROUP as i64);
        Some(next).filter(|next| next.has_units())
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
        for (base, first) in [
            (BlockId::FIRST_GROUP_BASE, i64::MIN + 16),
            (BlockId::FIRST_HANDLE_BASE, (1 << 61) + 16),
        ] {
            let group = base.next_group().unwrap();
            assert_eq!(group.0, first);
            for unit in (0..16).map(UnitIndex) {
                let id = group.internal(unit);
                assert_eq!((id.group(), id.unit()), (group, unit));
            }
            assert_eq!(group.internal(UnitIndex(15)).next_group(), group.next_group());
        }
    }

    #[test]
    fn ranges_of_ids_lie_apart() {
        let kinds = |id: i64| {
            let id = BlockId(id);
            [id.is_striped(), id.is_parity(), id.is_plain_view(), id.is_container()]
        };
        let plain = [false; 4];
        for (id, kind) in [
            (0, plain),
            ((1 << 30) + 1, plain),
            ((1 << 60) - 1, plain),
            (1 << 60, [false, false, false, true]),
            ((1 << 61) - 1, [false, false, false, true]),
            (1 << 61, [false, true, false, false]),
            ((1 << 62) - 1, [false, true, false, false]),
            (1 << 62, [false, false, true, false]),
            (i64::MAX, [false, false, true, false]),
            (i64::MIN, [true, false, false, false]),
            (-1, [true, false, false, false]),
        ] {
            assert_eq!(kinds(id), kind, "{id:#x}");
        }
    }

    #[test]
    fn a_plain_view_names_its_group() {
        let group = BlockId::FIRST_GROUP_BASE.next_group().unwrap();
        let view = group.plain_view().unwrap();
        assert_eq!((view.0, view.viewed_group()), ((1 << 62) | 16, Some(group)));
        assert_eq!(view.group(), view, "it has no units");
        let others = [group.internal(UnitIndex(1)), BlockId(16), BlockId(-16), view];
        assert_eq!(others.map(BlockId::plain_view), [None; 4]);
        let no_views = [group, BlockId(16), BlockId((1 << 62) | 17), BlockId((1 << 61) | 16)];
        assert_eq!(no_views.map(BlockId::viewed_group), [None; 4]);
    }

    #[test]
    fn numbers_end_where_their_range_ends() {
        assert_eq!(BlockId((1 << 60) - 2).next_contiguous(), Some(BlockId((1 << 60) - 1)));
        assert_eq!(BlockId((1 << 60) - 1).next_contiguous(), None);
        assert_eq!(BlockId((1 << 62) - 32).next_group(), Some(BlockId((1 << 62) - 16)));
        assert_eq!(BlockId((1 << 62) - 16).next_group(), None);
        assert_eq!(BlockId(-16).next_group(), None);
        let first = BlockId::FIRST_CONTAINER_BASE.next_container();
        assert_eq!(first, Some(BlockId((1 << 60) + 1)));
        assert_eq!(BlockId((1 << 61) - 1).next_container(), None);
    }

    #[test]
    fn contiguous_ids_are_their_own_group() {
        let id = BlockId::LAST_RESERVED.next_contiguous().unwrap();
        assert_eq!(id.0, 1_073_741_825);
        assert_eq!((id.group(), id.unit(), id.is_striped()), (id, UnitIndex(0), false));
    }
}
