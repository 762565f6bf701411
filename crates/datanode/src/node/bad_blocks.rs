//! Bad replicas that the NameNodes are to be told of, each until it has heard.

use crate::members::{Member, PerMember, Wakes};
use cairn_process::held::held;
use cairn_wire::proto::hdfs::LocatedBlockProto;
use std::sync::{Mutex, MutexGuard};

/// Reports that may wait for one of them. What is found beyond is found again later.
const MAX_PENDING: usize = 10_000;

/// Reports that wait for the actors.
pub(crate) struct BadBlocks {
    pending: PerMember<Mutex<Vec<LocatedBlockProto>>>,
    urgent: Wakes,
}

impl BadBlocks {
    /// Nothing yet, for so many NameNodes.
    pub(crate) fn new(name_nodes: usize) -> BadBlocks {
        let pending = PerMember::new(name_nodes, |_| Mutex::default());
        BadBlocks { pending, urgent: Wakes::new(name_nodes) }
    }

    /// Completes when something waits for `member`.
    pub(crate) async fn wait(&self, member: Member) {
        self.urgent.wait(member).await;
    }

    /// Adds a report unless it waits already.
    pub(super) fn queue(&self, report: LocatedBlockProto) {
        for pending in self.pending.iter() {
            let mut pending = held(pending);
            if pending.len() < MAX_PENDING && !pending.contains(&report) {
                pending.push(report.clone());
            }
        }
        self.urgent.all();
    }

    /// What `member` is to be told.
    pub(crate) fn take(&self, member: Member) -> Vec<LocatedBlockProto> {
        std::mem::take(&mut *self.lock(member))
    }

    /// Takes back what it could not be told.
    pub(crate) fn put_back(&self, member: Member, untold: Vec<LocatedBlockProto>) {
        let mut pending = self.lock(member);
        for report in untold {
            if !pending.contains(&report) {
                pending.push(report);
            }
        }
    }

    fn lock(&self, member: Member) -> MutexGuard<'_, Vec<LocatedBlockProto>> {
        held(&self.pending[member])
    }
}
