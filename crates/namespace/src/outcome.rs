//! What comes out of commands.

use crate::block::{Block, BlockRef};
use crate::encoding::{encode_enum, encode_struct};
use crate::inode::{FileRedundancy, InodeId};
use crate::status::FileStatus;
use cairn_stripe::{GenerationStamp, Policy};

/// What a command has done, for the answer and for the DataNodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was done; there is nothing to say.
    Done,
    /// A yes or no for the client.
    Flag(bool),
    /// `Create`: the file is open.
    Created {
        /// The new file.
        status: Box<FileStatus>,
        /// Blocks of the file it replaced.
        removed: Vec<RemovedBlock>,
    },
    /// `Append`: the file is open again.
    Appended {
        /// The file.
        status: Box<FileStatus>,
        /// The last block, if writing goes on in it, and its offset in the file. Its stamp is still
        /// the old one: the client gets a new one by `UpdateBlockForPipeline`.
        last: Option<(u64, Block)>,
    },
    /// As `Appended`, of a file that was taken from a silent holder first.
    TakenOver {
        /// As in `Appended`.
        status: Box<FileStatus>,
        /// As in `Appended`.
        last: Option<(u64, Block)>,
        /// Blocks that were dropped because no DataNode has any of them.
        removed: Vec<RemovedBlock>,
    },
    /// `AddBlock`: the block to write next.
    BlockAdded {
        /// Where it begins in the file.
        offset: u64,
        /// The block.
        block: Block,
        /// Whether an earlier call had added it already.
        retry: bool,
    },
    /// Operations that take things away.
    Removed {
        /// What the client gets as its yes or no, if the call has one.
        done: bool,
        /// Blocks whose replicas are to be deleted.
        blocks: Vec<RemovedBlock>,
        /// Whether [`crate::ops::delete::Purge`] has more to do.
        more: bool,
    },
    /// As `Removed`, and snapshots had kept files with more copies than are wanted now.
    Reclaimed {
        /// As in `Removed`.
        done: bool,
        /// As in `Removed`.
        blocks: Vec<RemovedBlock>,
        /// As in `Removed`.
        more: bool,
        /// Those files, which may be in snapshots only.
        fewer_copies: Vec<InodeId>,
    },
    /// As `Created`, and snapshots keep the file that it replaced with fewer copies.
    Replaced {
        /// As in `Created`.
        status: Box<FileStatus>,
        /// As in `Created`.
        removed: Vec<RemovedBlock>,
        /// As in `Reclaimed`.
        fewer_copies: Vec<InodeId>,
    },
    /// `UpdateBlockForPipeline`: the stamp that was given out.
    Stamp(GenerationStamp),
    /// `RecoverLease` and `ReleaseLease`.
    Recovery {
        /// Whether the file is closed now.
        closed: bool,
        /// The block that a DataNode must recover first, if not.
        work: Option<BlockRecovery>,
        /// Blocks that were dropped because no DataNode has any of them.
        removed: Vec<RemovedBlock>,
    },
    /// `SetReplication`.
    ReplicationSet {
        /// False if the path is no file: nothing was done.
        done: bool,
        /// The file.
        file: InodeId,
        /// Copies before; 0 if nothing was done.
        old: u16,
        /// Copies now; 0 if nothing was done.
        new: u16,
    },
    /// `AddEcPolicies`, one for each that was asked for.
    PoliciesAdded(Vec<PolicyAdded>),
    /// `CreateSnapshot`: the path of the snapshot.
    SnapshotCreated(String),
    /// `AddCacheDirective`: the directive's number.
    CacheDirective(u64),
    /// `SatisfyStoragePolicy`: what the satisfier is to look after, if that is new.
    ToSatisfy(Option<InodeId>),
}

/// A block that no file refers to any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemovedBlock {
    /// The block as it was.
    pub block: BlockRef,
    /// How it was kept.
    pub redundancy: FileRedundancy,
}

/// A block to be brought to one length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockRecovery {
    /// The block.
    pub block: Block,
    /// How it is kept.
    pub redundancy: FileRedundancy,
    /// The stamp that the recovered replicas get.
    pub recovery_gs: GenerationStamp,
}

/// What became of one policy that was to be added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyAdded {
    /// The policy, new or already there; `None` if it was refused.
    pub policy: Option<Policy>,
    /// Why it was refused.
    pub error: Option<String>,
}

encode_enum!(Outcome {
    1 => Done,
    2 => Flag(value),
    3 => Created { status, removed },
    4 => Appended { status, last },
    5 => BlockAdded { offset, block, retry },
    6 => Removed { done, blocks, more },
    7 => Stamp(value),
    8 => Recovery { closed, work, removed },
    9 => ReplicationSet { done, file, old, new },
    10 => PoliciesAdded(value),
    16 => SnapshotCreated(value),
    24 => CacheDirective(value),
    32 => Reclaimed { done, blocks, more, fewer_copies },
    33 => Replaced { status, removed, fewer_copies },
    34 => ToSatisfy(value),
    35 => TakenOver { status, last, removed },
});
encode_struct!(RemovedBlock { block, redundancy });
encode_struct!(BlockRecovery { block, redundancy, recovery_gs });
encode_struct!(PolicyAdded { policy, error });

impl Outcome {
    /// Keeps of the blocks to delete those that `keep` says.
    pub(crate) fn retain_removed(&mut self, keep: impl FnMut(&RemovedBlock) -> bool) {
        match self {
            Outcome::Created { removed, .. }
            | Outcome::Replaced { removed, .. }
            | Outcome::TakenOver { removed, .. }
            | Outcome::Recovery { removed, .. } => removed.retain(keep),
            Outcome::Removed { blocks, .. } | Outcome::Reclaimed { blocks, .. } => {
                blocks.retain(keep);
            }
            _ => {}
        }
    }

    /// Adds files of which fewer copies are wanted now.
    pub(crate) fn note_fewer_copies(&mut self, mut files: Vec<InodeId>) {
        if files.is_empty() {
            return;
        }
        *self = match std::mem::replace(self, Outcome::Done) {
            Outcome::Removed { done, blocks, more } => {
                Outcome::Reclaimed { done, blocks, more, fewer_copies: files }
            }
            Outcome::Created { status, removed } => {
                Outcome::Replaced { status, removed, fewer_copies: files }
            }
            mut other => {
                if let Outcome::Reclaimed { fewer_copies, .. }
                | Outcome::Replaced { fewer_copies, .. } = &mut other
                {
                    fewer_copies.append(&mut files);
                }
                other
            }
        };
    }

    /// Without the files of which fewer copies are wanted, and with those.
    pub fn without_fewer_copies(self) -> (Outcome, Vec<InodeId>) {
        match self {
            Outcome::Reclaimed { done, blocks, more, fewer_copies } => {
                (Outcome::Removed { done, blocks, more }, fewer_copies)
            }
            Outcome::Replaced { status, removed, fewer_copies } => {
                (Outcome::Created { status, removed }, fewer_copies)
            }
            other => (other, Vec::new()),
        }
    }

    /// The outcome for a call that comes again: what had to be done about blocks was done then.
    pub(crate) fn for_retry(&self) -> Outcome {
        match self {
            Outcome::Created { status, .. } | Outcome::Replaced { status, .. } => {
                Outcome::Created { status: status.clone(), removed: Vec::new() }
            }
            Outcome::Removed { done, .. } | Outcome::Reclaimed { done, .. } => {
                Outcome::Removed { done: *done, blocks: Vec::new(), more: false }
            }
            Outcome::TakenOver { status, last, .. } => {
                Outcome::Appended { status: status.clone(), last: last.clone() }
            }
            Outcome::Recovery { closed, work, .. } => {
                Outcome::Recovery { closed: *closed, work: work.clone(), removed: Vec::new() }
            }
            other => other.clone(),
        }
    }
}
