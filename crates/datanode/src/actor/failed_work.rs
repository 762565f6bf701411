//! Copies and reconstructions that have failed: told with the next heartbeat, which follows at once, so
//! that the NameNode need not wait until their time is over.
//!
//! The field is Cairn's own (`HeartbeatRequestProto` 1000); Hadoop's NameNode skips it.

use crate::node::Node;
use crate::protocol;
use cairn_stripe::{BlockId, GenerationStamp};
use cairn_wire::proto::datanode::FailedWorkProto;
use std::fmt::Display;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Failures that may wait. The NameNode notices further ones by itself, later.
const MAX_PENDING: usize = 4096;
/// Characters of a reason.
const MAX_REASON_LEN: usize = 300;

/// Failures that the NameNode was not told of.
#[derive(Default)]
pub(crate) struct FailedWork(Mutex<Vec<FailedWorkProto>>);

impl FailedWork {
    /// What is to be told with a heartbeat.
    pub(super) fn take(&self) -> Vec<FailedWorkProto> {
        std::mem::take(&mut *self.lock())
    }

    /// Takes back what could not be told.
    pub(super) fn put_back(&self, untold: Vec<FailedWorkProto>) {
        let mut pending = self.lock();
        pending.splice(..0, untold);
        pending.truncate(MAX_PENDING);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<FailedWorkProto>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Node {
    /// Tells the NameNode that a replica or unit will not arrive on the DataNode `target`, for the fault of
    /// `suspect` if that is known. Both are UUIDs.
    pub(crate) fn report_failed_work(
        &self,
        (block, gs): (BlockId, GenerationStamp),
        target: &str,
        suspect: Option<&str>,
        reason: &dyn Display,
    ) {
        let reason = reason.to_string().chars().take(MAX_REASON_LEN).collect();
        let failed = FailedWorkProto {
            block: protocol::local_block(block, gs, 0),
            target_uuid: target.into(),
            suspect_uuid: suspect.map(str::to_string),
            reason: Some(reason),
        };
        let mut pending = self.failed_work.lock();
        if pending.len() < MAX_PENDING {
            pending.push(failed);
        }
        drop(pending);
        self.heartbeat_now.notify_one();
    }
}
