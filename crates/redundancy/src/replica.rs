//! What DataNodes say of their replicas and internal blocks, and what is to be done for that.

use crate::block::BlockRef;
use crate::error::RedundancyError;
use cairn_stripe::{BlockId, GenerationStamp, UnitIndex};

/// The state of a replica on its DataNode. The numbers are Hadoop's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReplicaState {
    /// Closed, and as long as it will be.
    Finalized = 0,
    /// Being written.
    BeingWritten = 1,
    /// Was being written when its DataNode stopped.
    WaitingToBeRecovered = 2,
    /// Being recovered.
    UnderRecovery = 3,
    /// Being copied from another node; never reported.
    Temporary = 4,
}

impl ReplicaState {
    /// The state with Hadoop's number.
    pub fn from_number(number: u8) -> Option<ReplicaState> {
        use ReplicaState::{
            BeingWritten, Finalized, Temporary, UnderRecovery, WaitingToBeRecovered,
        };
        [Finalized, BeingWritten, WaitingToBeRecovered, UnderRecovery, Temporary]
            .into_iter()
            .find(|state| *state as u8 == number)
    }
}

/// One replica or internal block of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReportedReplica {
    /// Its id (an internal block's own), stamp and bytes on disk.
    pub block: BlockRef,
    /// Its state.
    pub state: ReplicaState,
    /// CRC32C of its bytes, if its DataNode is one of ours and it is finalized.
    pub crc32c: Option<u32>,
}

/// What happened to a replica.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplicaEventKind {
    /// A writer has begun.
    Receiving,
    /// It is finalized. The UUID of the DataNode whose copy it replaces, if it was moved.
    Received {
        /// The DataNode to delete a copy from, if there are too many.
        delete_hint: Option<String>,
    },
    /// It is gone.
    Deleted,
}

/// One entry of an incremental report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplicaEvent {
    /// Its id (an internal block's own), stamp and bytes.
    pub block: BlockRef,
    /// What happened.
    pub kind: ReplicaEventKind,
    /// CRC32C of its bytes, for `Received` from one of our DataNodes.
    pub crc32c: Option<u32>,
}

/// What the shell must do after reports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Committed blocks that have enough good replicas or units now: to be made complete.
    pub ready: Vec<BlockId>,
    /// CRC32C of units that came after their block was complete: to be recorded.
    pub late_crcs: Vec<LateCrc>,
    /// Finalized replicas and units whose bytes are not those first written: marked bad, worth a
    /// word to the operator.
    pub altered: Vec<BlockRef>,
    /// Blocks and groups whose replicas or units disagree, and nobody knows which one is wrong.
    pub unexplained: Vec<BlockId>,
    /// Why nothing was taken: there can be no such storage.
    pub refused: Option<RedundancyError>,
}

/// The CRC of a unit that was reported after its block was complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LateCrc {
    /// The block or group.
    pub id: BlockId,
    /// The stamp of the unit, which is the block's.
    pub gs: GenerationStamp,
    /// The unit; 0 for a replica.
    pub unit: UnitIndex,
    /// CRC32C of its bytes.
    pub crc32c: u32,
}

impl Changes {
    /// Takes what is to be done besides.
    pub fn append(&mut self, other: Changes) {
        self.ready.extend(other.ready);
        self.late_crcs.extend(other.late_crcs);
        self.altered.extend(other.altered);
        self.unexplained.extend(other.unexplained);
        self.refused = self.refused.take().or(other.refused);
    }

    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        let is_quiet = self.altered.is_empty() && self.unexplained.is_empty();
        self.ready.is_empty() && self.late_crcs.is_empty() && is_quiet && self.refused.is_none()
    }
}

/// A recorded CRC that most replicas of a block, or the other units of a group, prove wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DisprovedCrc {
    /// The block, or the internal block by its own id.
    pub id: BlockId,
    /// Its stamp.
    pub gs: GenerationStamp,
    /// The record.
    pub recorded: u32,
    /// What the replicas have.
    pub crc32c: u32,
}
