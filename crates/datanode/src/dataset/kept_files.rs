//! Files of replicas that stay open between reads.

use super::read_view::ReadView;
use cairn_process::held::held;
use cairn_stripe::BlockId;
use std::collections::VecDeque;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard};

/// Open files of a replica.
#[derive(Debug)]
pub(super) struct Kept {
    pub(super) view: Arc<ReadView>,
    pub(super) was_used: AtomicBool,
}

/// Which replicas have files open.
#[derive(Debug)]
pub(super) struct KeptFiles {
    pub(super) most: usize,
    /// In the order in which they were opened or passed over. Some may have none any more. Locked after the map.
    queue: Mutex<VecDeque<BlockId>>,
}

impl KeptFiles {
    /// Keeps the files of up to `most` replicas.
    pub(super) fn new(most: usize) -> KeptFiles {
        KeptFiles { most, queue: Mutex::default() }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, VecDeque<BlockId>> {
        held(&self.queue)
    }
}
