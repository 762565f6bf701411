//! Which replicas take part in a block's recovery, and how long the block is afterwards.
//!
//! Knows neither the DataNodes nor the wire: the caller asks every DataNode for its
//! [`RecoveryInfo`], hands the answers in, and truncates what the plan names. Tested below.

use crate::state::{RecoveryInfo, ReplicaState};
use cairn_stripe::GenerationStamp;

/// One DataNode's answer, with the caller's index for that DataNode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Place of the DataNode in the caller's list.
    pub node: usize,
    /// What it holds.
    pub info: RecoveryInfo,
}

/// What a recovery has to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecoveryPlan {
    /// Nobody holds a byte: the block is deleted from its file.
    Delete,
    /// The nodes with these indices become finalized replicas of `len` bytes.
    Truncate {
        /// Indices of [`Candidate::node`].
        nodes: Vec<usize>,
        /// Length of the block from now on, in bytes.
        len: u64,
    },
    /// The answers contradict each other; the recovery is tried again later.
    Impossible(&'static str),
}

/// Plans the recovery of a replicated block whose stamp was `gs`.
///
/// If a finalized replica exists its length wins, because the writer may have been told that the block is
/// complete; else the shortest replica in the best state decides: acknowledged bytes are in all of them.
///
/// Source: Hadoop 3.5.0 `BlockRecoveryWorker.RecoveryTaskContiguous`.
pub fn plan_replicated(answers: &[Candidate], gs: GenerationStamp) -> RecoveryPlan {
    let usable: Vec<&Candidate> =
        answers.iter().filter(|c| c.info.gs >= gs && c.info.len > 0).collect();
    let sync: Vec<&Candidate> =
        usable.iter().copied().filter(|c| c.info.original <= ReplicaState::Rwr).collect();
    let Some(best) = sync.iter().map(|c| c.info.original).min() else {
        return match usable.is_empty() {
            true => RecoveryPlan::Delete,
            false => RecoveryPlan::Impossible("no replica is in RWR or better state"),
        };
    };
    if best == ReplicaState::Finalized {
        return plan_finalized(&sync);
    }
    let chosen = sync.iter().filter(|c| c.info.original == best);
    let len = chosen.clone().map(|c| c.info.len).min().unwrap_or(0);
    RecoveryPlan::Truncate { nodes: chosen.map(|c| c.node).collect(), len }
}

fn plan_finalized(sync: &[&Candidate]) -> RecoveryPlan {
    let mut lens =
        sync.iter().filter(|c| c.info.original == ReplicaState::Finalized).map(|c| c.info.len);
    let len = lens.next().unwrap_or(0);
    if lens.any(|other| other != len) {
        return RecoveryPlan::Impossible("Inconsistent size of finalized replicas");
    }
    let takes_part = |c: &&&Candidate| match c.info.original {
        ReplicaState::Finalized => true,
        ReplicaState::Rbw => c.info.len == len,
        _ => false,
    };
    RecoveryPlan::Truncate { nodes: sync.iter().filter(takes_part).map(|c| c.node).collect(), len }
}

#[cfg(test)]
mod tests;
