//! Copies and reconstructions that have failed: told with the next heartbeat, which follows at once, so
//! that the NameNode need not wait until their time is over.
//!
//! The field is Cairn's own (`HeartbeatRequestProto` 1000); Hadoop's NameNode skips it.

use cairn_net::held::held;
use cairn_wire::proto::datanode::FailedWorkProto;
use std::sync::{Mutex, MutexGuard};

/// Failures that may wait. The NameNode notices further ones by itself, later.
const MAX_PENDING: usize = 4096;

/// Failures that the NameNode was not told of.
#[derive(Default)]
pub(crate) struct FailedWork(Mutex<Vec<FailedWorkProto>>);

impl FailedWork {
    /// Adds a failure, if not too many wait.
    pub(super) fn add(&self, failed: FailedWorkProto) {
        let mut pending = self.lock();
        if pending.len() < MAX_PENDING {
            pending.push(failed);
        }
    }

    /// What is to be told with a heartbeat.
    pub(crate) fn take(&self) -> Vec<FailedWorkProto> {
        std::mem::take(&mut *self.lock())
    }

    /// Takes back what could not be told.
    pub(crate) fn put_back(&self, untold: Vec<FailedWorkProto>) {
        let mut pending = self.lock();
        pending.splice(..0, untold);
        pending.truncate(MAX_PENDING);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<FailedWorkProto>> {
        held(&self.0)
    }
}
