//! The end of a block's recovery.

use crate::op::{Op, OpError, Submission};
use cairn_namespace::ops::commit_block_synchronization::CommitBlockSynchronization;
use cairn_redundancy::NodeClaim;

/// Takes in what the primary of a recovery has brought a block to; `storages` are those that have it now, by whose
/// they are and their UUIDs.
///
/// Rests on nothing: the command names the stamp that was ordered.
///
/// Source: Hadoop 3.5.0 `FSNamesystem#commitBlockSynchronization`.
pub async fn commit(
    op: &impl Op,
    command: CommitBlockSynchronization,
    storages: &[(NodeClaim<'_>, &str)],
) -> Result<(), OpError> {
    let targets = op.look(|look| look.cluster.storages_named(storages.iter().copied()));
    op.submit(Submission::own(command).with_targets(targets)).await.map(drop)
}
