//! Bad replicas that the NameNode is to be told of, until it has heard.

use cairn_net::held::held;
use cairn_wire::proto::hdfs::LocatedBlockProto;
use std::sync::{Mutex, MutexGuard};
use tokio::sync::Notify;

/// Reports that may wait. What is found beyond is found again later.
const MAX_PENDING: usize = 10_000;

/// Reports that wait for the actor.
#[derive(Default)]
pub(crate) struct BadBlocks {
    pending: Mutex<Vec<LocatedBlockProto>>,
    urgent: Notify,
}

impl BadBlocks {
    /// Completes when something waits.
    pub(crate) async fn wait(&self) {
        self.urgent.notified().await;
    }

    /// Adds a report unless it waits already.
    pub(super) fn queue(&self, report: LocatedBlockProto) {
        let mut pending = self.lock();
        if pending.len() < MAX_PENDING && !pending.contains(&report) {
            pending.push(report);
            self.urgent.notify_one();
        }
    }

    /// What is to be told.
    pub(crate) fn take(&self) -> Vec<LocatedBlockProto> {
        std::mem::take(&mut *self.lock())
    }

    /// Takes back what could not be told.
    pub(crate) fn put_back(&self, untold: Vec<LocatedBlockProto>) {
        let mut pending = self.lock();
        for report in untold {
            if !pending.contains(&report) {
                pending.push(report);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<LocatedBlockProto>> {
        held(&self.pending)
    }
}
