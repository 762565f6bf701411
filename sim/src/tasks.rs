//! What DataNodes are told to do, step by step, and what they have still to tell.

use crate::data_node::FullReport;
use crate::encoding::Encoding;
use crate::name_node::{NamedRebuild, Target};
use crate::packing::Packing;
use cairn_redundancy::{BlockRef, Layout, ReplicaEvent, StorageType};
use cairn_replica::recovery::{Answer, CutResult, Cutting, Order};
use cairn_stripe::UnitIndex;

/// A step of a DataNode's work.
#[derive(Clone, Debug)]
pub(crate) enum Task {
    /// Delete a replica, by the order of a registration, which is here since then.
    Invalidate { block: BlockRef, registration: u64, since_ms: u64 },
    /// Copy a replica to others.
    Copy { block: BlockRef, targets: Vec<Target> },
    /// Bytes of a replica arrive.
    Arrive { block: BlockRef, data: Vec<u8>, storage: String },
    /// Fetch a replica that a balancer moves.
    Replace(Move),
    /// Rebuild lost units.
    Rebuild(Box<Lost>),
    /// Go on encoding a contiguous group.
    Encode(Box<Encoding>),
    /// Go on writing a container of small blocks.
    Pack(Box<Packing>),
    /// Write a plain replica of a packed block to a storage.
    Unpack { block: BlockRef, storage: String },
    /// Read a replica as its disk has it, on that storage; of a container, if that is wanted, its index, which is decoded where
    /// it is not there.
    Prove { block: BlockRef, storage: String, wants_index: bool },
    /// Serve blocks to clients no more.
    Retire(Vec<BlockRef>),
    /// Rebuild lost units of a contiguous group.
    RebuildGroup(Box<NamedRebuild>),
    /// Ask the next holder of a block to freeze it.
    Ask(Box<Recovery>, Vec<Answer>),
    /// Have the next one that takes part cut it.
    Cut(Box<Recovery>, Cutting, Vec<CutResult>),
    /// Tell the NameNode.
    Commit(Box<Recovery>, Told),
}

/// Lost units of a group, as a DataNode is told.
#[derive(Clone, Debug)]
pub(crate) struct Lost {
    pub(crate) group: BlockRef,
    pub(crate) layout: Layout,
    pub(crate) sources: Vec<(Target, UnitIndex)>,
    pub(crate) targets: Vec<(Target, UnitIndex)>,
    pub(crate) recorded: Vec<(UnitIndex, u32)>,
}

/// The recovery of a block, as its primary is told.
#[derive(Clone, Debug)]
pub(crate) struct Recovery {
    pub(crate) order: Order,
    /// The block of whose start it becomes a copy, if it does.
    pub(crate) source: Option<BlockRef>,
    pub(crate) layout: Layout,
    pub(crate) targets: Vec<Target>,
}

/// What the NameNode is told.
#[derive(Clone, Debug)]
pub(crate) struct Told {
    /// Bytes of the block; `None` if it is to be dropped.
    pub(crate) len: Option<u64>,
    pub(crate) targets: Vec<Option<Target>>,
}

/// A replica or unit that is to be moved.
#[derive(Clone, Debug)]
pub(crate) struct Move {
    pub(crate) block: BlockRef,
    /// Who is to lose it.
    pub(crate) from: usize,
    /// Who is read from.
    pub(crate) proxy: usize,
    /// The storage that it is to be on.
    pub(crate) storage: String,
}

/// A report that is taken in when its DataNode does not expect it any more.
#[derive(Clone, Debug)]
pub(crate) enum LateReport {
    Full { node: usize, lease: u64, report: FullReport },
    Events { node: usize, storage: (String, StorageType), events: Vec<ReplicaEvent> },
    Bad { holder: Target, block: BlockRef },
}
