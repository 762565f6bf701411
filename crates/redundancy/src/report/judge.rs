//! What a reported replica is worth.

use crate::block::{BlockFacts, BlockLookup, BlockState, Layout};
use crate::places::bad::Bad;
use crate::replica::{ReplicaState, ReportedReplica};

/// What a reported replica is worth.
pub(crate) enum Verdict {
    /// No block wants it.
    Unwanted,
    /// It differs from what its block wants.
    Bad(Bad),
    /// It belongs to a block under construction.
    Building,
    /// It is what its block wants.
    Good,
    /// To be left as it is.
    Ignored,
}

/// Whether a replica that is as long as it should be has other bytes than those first written: its
/// DataNode was given wrong ones by a copy or a reconstruction, and made good CRCs for them.
pub(super) fn is_altered(lookup: &dyn BlockLookup, replica: &ReportedReplica) -> bool {
    let Some(crc32c) = replica.crc32c else { return false };
    let id = replica.block.id;
    lookup.unit_crc(id.group(), id.unit()).is_some_and(|recorded| recorded != crc32c)
}

/// Compares a report with what the namespace wants.
///
/// Source: Hadoop 3.5.0 `BlockManager#processReportedBlock`, `#checkReplicaCorrupt`.
pub(crate) fn judge(facts: Option<&BlockFacts>, replica: &ReportedReplica) -> Verdict {
    let Some(facts) = facts else { return Verdict::Unwanted };
    let block = replica.block;
    let unit = block.id.unit();
    let is_such = match facts.layout {
        Layout::Replicated { .. } => !block.id.has_units(),
        Layout::Striped { .. } => block.id.is_striped() && unit.as_usize() < facts.layout.width(),
        Layout::Parity { k, .. } => {
            block.id.is_parity() && unit.0 >= k && unit.as_usize() < facts.layout.width()
        }
    };
    if !is_such {
        return Verdict::Unwanted;
    }
    let stale = block.gs < facts.gs;
    let bad = Verdict::Bad(Bad { block, stale: block.gs != facts.gs, crc32c: None });
    match (replica.state, facts.state) {
        (ReplicaState::Finalized, BlockState::Complete | BlockState::Committed) => {
            let fits = block.gs == facts.gs && block.len == facts.unit_len(unit);
            if fits { Verdict::Good } else { bad }
        }
        (ReplicaState::Finalized, BlockState::UnderConstruction) if stale => bad,
        (ReplicaState::Finalized, _) => Verdict::Building,
        (ReplicaState::BeingWritten, BlockState::Complete) if block.gs == facts.gs => {
            Verdict::Ignored
        }
        (ReplicaState::BeingWritten | ReplicaState::WaitingToBeRecovered, state) => {
            if state == BlockState::Complete || stale { bad } else { Verdict::Building }
        }
        (ReplicaState::UnderRecovery, state) if state != BlockState::Complete => Verdict::Ignored,
        _ => bad,
    }
}
