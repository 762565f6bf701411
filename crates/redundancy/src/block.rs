//! What a block should be, and where it is.

use crate::handle::{NodeHandle, StorageHandle};
use cairn_stripe::geometry::Geometry;
use cairn_stripe::{
    BlockId, GenerationStamp, Policy, PolicyId, Redundancy, StoragePolicy, UnitIndex,
};

/// How a block is kept, without the names that a policy carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Whole copies.
    Replicated {
        /// How many there should be.
        copies: u16,
    },
    /// A group of units.
    Striped {
        /// The policy's number.
        policy: PolicyId,
        /// Data units.
        k: u8,
        /// Parity units.
        m: u8,
        /// Bytes of a cell.
        cell_len: u32,
    },
    /// The parities of a contiguous group, whose members are kept as blocks of their own.
    Parity {
        /// Slots for members.
        k: u8,
        /// Parities.
        m: u8,
        /// A bit for each slot that has a member; the others are known to be zeros.
        filled: u16,
    },
}

impl From<&Redundancy> for Layout {
    fn from(redundancy: &Redundancy) -> Layout {
        match redundancy {
            Redundancy::Replicated(copies) => Layout::Replicated { copies: *copies },
            Redundancy::Striped(policy) => Layout::from(policy),
        }
    }
}

impl From<&Policy> for Layout {
    fn from(policy: &Policy) -> Layout {
        Layout::Striped {
            policy: policy.id,
            k: policy.schema.k,
            m: policy.schema.m,
            cell_len: policy.cell_len,
        }
    }
}

impl Layout {
    /// Storages that a whole block or group of full stripes takes.
    pub fn width(&self) -> usize {
        match *self {
            Layout::Replicated { copies } => usize::from(copies),
            Layout::Striped { k, m, .. } | Layout::Parity { k, m, .. } => {
                usize::from(k) + usize::from(m)
            }
        }
    }

    /// Whether clients cut files into its units.
    pub fn is_striped(&self) -> bool {
        matches!(self, Layout::Striped { .. })
    }

    /// Whether it is a group of units, each of which differs from the others: striped, or of blocks.
    pub fn has_units(&self) -> bool {
        !matches!(self, Layout::Replicated { .. })
    }
}

/// Where a block is in its life. Source: Hadoop 3.5.0 `HdfsServerConstants.BlockUCState`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockState {
    /// A client writes it.
    UnderConstruction,
    /// Its lease is being recovered: like under construction, but no writer may go on.
    UnderRecovery,
    /// The client has told its final length, but too few replicas are reported.
    Committed,
    /// Done.
    Complete,
}

/// What the namespace knows of a block or group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockFacts {
    /// The current generation stamp.
    pub gs: GenerationStamp,
    /// Bytes of file data in it (of the whole group); while under construction, what was last told.
    pub len: u64,
    /// How it is kept.
    pub layout: Layout,
    /// Where it is in its life.
    pub state: BlockState,
    /// The contiguous group that it is a member of, by its handle, and its slot there.
    pub group: Option<(BlockId, UnitIndex)>,
    /// The container that has its bytes, so that it needs no replica.
    pub packed: Option<BlockId>,
}

impl BlockFacts {
    /// Whether its length and stamp are final.
    pub fn is_final(&self) -> bool {
        matches!(self.state, BlockState::Committed | BlockState::Complete)
    }

    /// Storages that it should be on: fewer than the policy's width for a group of less than a stripe.
    ///
    /// Source: Hadoop 3.5.0 `BlockInfoStriped#getRealTotalBlockNum`.
    pub fn expected_units(&self) -> usize {
        match self.layout {
            Layout::Replicated { copies } => usize::from(copies),
            Layout::Striped { m, .. } | Layout::Parity { m, .. } => {
                self.data_units() + usize::from(m)
            }
        }
    }

    /// Bytes of the replica, of the internal block `unit`, or of any parity, when the length is final.
    ///
    /// Source: Hadoop 3.5.0 `StripedBlockUtil#getInternalBlockLength`.
    pub fn unit_len(&self, unit: UnitIndex) -> u64 {
        match self.layout {
            Layout::Replicated { .. } | Layout::Parity { .. } => self.len,
            Layout::Striped { k, m, cell_len, .. } => {
                let (k, m) = (usize::from(k), usize::from(m));
                Geometry::new(k, m, u64::from(cell_len)).internal_block_len(self.len, unit)
            }
        }
    }

    /// Whether a unit is one that the block should have: parity units, and data units with bytes.
    pub fn has_bytes(&self, unit: UnitIndex) -> bool {
        match self.layout {
            Layout::Replicated { .. } => true,
            Layout::Striped { k, .. } => unit.as_usize() < self.data_units() || unit.0 >= k,
            Layout::Parity { k, filled, .. } => unit.0 >= k || filled & (1 << unit.0) != 0,
        }
    }

    /// The units of a group that have bytes, or 0 for a replica.
    pub fn units(&self) -> Vec<UnitIndex> {
        match self.layout {
            Layout::Replicated { .. } => vec![UnitIndex(0)],
            Layout::Striped { k, m, .. } | Layout::Parity { k, m, .. } => {
                (0..k + m).map(UnitIndex).filter(|unit| self.has_bytes(*unit)).collect()
            }
        }
    }

    /// Data units that hold bytes, members of a contiguous group; 1 for a replicated block.
    ///
    /// Source: Hadoop 3.5.0 `BlockInfoStriped#getRealDataBlockNum`.
    pub fn data_units(&self) -> usize {
        match self.layout {
            Layout::Replicated { .. } => 1,
            Layout::Parity { filled, .. } => filled.count_ones() as usize,
            Layout::Striped { k, cell_len, .. } if self.is_final() => {
                let cells = self.len.div_ceil(u64::from(cell_len.max(1)));
                usize::try_from(cells).unwrap_or(usize::MAX).min(usize::from(k))
            }
            Layout::Striped { k, .. } => usize::from(k),
        }
    }
}

/// A contiguous group: whole blocks as its data units, and parities that belong to no file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupFacts {
    /// The id of the group, and of its parities with their slots for units.
    pub handle: BlockId,
    /// The stamp of its parities.
    pub gs: GenerationStamp,
    /// Slots for members.
    pub k: u8,
    /// Parities.
    pub m: u8,
    /// Whether it is being encoded. One that is neither this nor formed has given its live members to another.
    pub attempt: bool,
    /// Whether it protects its members.
    pub formed: bool,
    /// Whether its members are to have their copies again, so that it can end.
    pub dissolving: bool,
    /// Its members by slot. An empty slot is known to be zeros.
    pub slots: Vec<Option<SlotFacts>>,
    /// Bytes of each parity, once it is formed.
    pub parity_len: u64,
}

/// A member of a contiguous group, as it was when that was encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotFacts {
    /// The block.
    pub id: BlockId,
    /// Its stamp.
    pub gs: GenerationStamp,
    /// Its bytes.
    pub len: u64,
    /// Whether a file has it still. The bytes of one that no file has are needed all the same.
    pub live: bool,
}

impl SlotFacts {
    /// The replica of it that DataNodes have.
    pub fn block(&self) -> BlockRef {
        BlockRef { id: self.id, gs: self.gs, len: self.len }
    }
}

impl GroupFacts {
    /// What is known of its parities, as of a block.
    pub fn facts(&self) -> BlockFacts {
        let bit = |(slot, member): (usize, &Option<SlotFacts>)| u16::from(member.is_some()) << slot;
        let filled = self.slots.iter().take(usize::from(self.k)).enumerate().map(bit).sum();
        BlockFacts {
            gs: self.gs,
            len: self.parity_len,
            layout: Layout::Parity { k: self.k, m: self.m, filled },
            state: if self.attempt { BlockState::UnderConstruction } else { BlockState::Complete },
            group: None,
            packed: None,
        }
    }
}

/// What the shell tells of the namespace's blocks. Nothing is answered for who does not answer: what is taken for
/// unknown, unrecorded or of the past may be deleted.
pub trait BlockLookup {
    /// The block or group `id` (a group's own id, never an internal block's), if it is wanted: a file has it, or a group
    /// of blocks needs its bytes. For the handle of a contiguous group, what its parities should be.
    fn block(&self, id: BlockId) -> Option<BlockFacts>;

    /// The contiguous group with that handle, if there is one, formed or not.
    fn group(&self, handle: BlockId) -> Option<GroupFacts>;

    /// Up to `limit` blocks and groups in the order of their ids (as signed numbers), after `after`
    /// or from the first. For scans that must see blocks that no DataNode holds.
    fn blocks_after(&self, after: Option<BlockId>, limit: usize) -> Vec<(BlockId, BlockFacts)>;

    /// The storage policy of the file that has the block.
    fn storage_policy(&self, id: BlockId) -> StoragePolicy;

    /// CRC32C of a unit's bytes (unit 0: of the replica's) as first written with the block's current
    /// stamp, if it is recorded.
    fn unit_crc(&self, id: BlockId, unit: UnitIndex) -> Option<u32>;

    /// Whether such a CRC is recorded of every unit that has bytes.
    fn has_crcs(&self, id: BlockId, facts: &BlockFacts) -> bool {
        facts.units().into_iter().all(|unit| self.unit_crc(id, unit).is_some())
    }

    /// Whether a complete block may get lost: a container of small blocks in which nothing is packed, and that is in no group.
    fn is_spare(&self, _id: BlockId) -> bool {
        false
    }

    /// Whether a generation stamp is one that this namespace has not given out yet: a sign that the
    /// NameNode was started with an old state.
    fn is_future(&self, gs: GenerationStamp) -> bool;
}

/// A replica or internal block, as DataNodes know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BlockRef {
    /// Its id; an internal block's own one for a unit.
    pub id: BlockId,
    /// Its generation stamp.
    pub gs: GenerationStamp,
    /// Its bytes.
    pub len: u64,
}

/// A place where a replica or unit is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Location {
    /// The node.
    pub node: NodeHandle,
    /// Its storage.
    pub storage: StorageHandle,
    /// The unit; 0 for a replica.
    pub unit: UnitIndex,
    /// Whether it is known to be bad.
    pub corrupt: bool,
}
