//! Work that waits for one node's next heartbeat.

use crate::block::BlockRef;
use crate::command::{
    BlockRecovery, EncodeOrder, GroupRebuild, PackOrder, ProveOrder, Reconstruction, Transfer,
    UnpackOrder,
};
use cairn_stripe::BlockId;
use std::collections::BTreeSet;

/// Work of one kind that waits, and whether another loss would cost data.
#[derive(Clone, Debug)]
pub(crate) struct Waiting<T> {
    pub is_urgent: bool,
    pub work: T,
}

/// Work for one node until its next heartbeat.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outbox {
    pub transfers: Vec<Waiting<Transfer>>,
    pub reconstructions: Vec<Waiting<Reconstruction>>,
    pub rebuilds: Vec<Waiting<GroupRebuild>>,
    pub encodes: Vec<EncodeOrder>,
    pub packs: Vec<PackOrder>,
    pub unpacks: Vec<UnpackOrder>,
    pub proves: Vec<ProveOrder>,
    /// Members of contiguous groups that no file has any more.
    pub retired: Vec<BlockRef>,
    pub recoveries: Vec<BlockRecovery>,
    pub bandwidth: Option<u64>,
    /// Urgent work that it was told of and that is not reported done.
    pub urgent: BTreeSet<BlockId>,
}

impl Outbox {
    /// Copies, reconstructions and rebuilds.
    pub(crate) fn work_len(&self) -> usize {
        self.transfers.len() + self.reconstructions.len() + self.rebuilds.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.work_len() == 0
            && self.encodes.is_empty()
            && self.packs.is_empty()
            && self.unpacks.is_empty()
            && self.proves.is_empty()
            && self.retired.is_empty()
            && self.recoveries.is_empty()
            && self.bandwidth.is_none()
            && self.urgent.is_empty()
    }
}
