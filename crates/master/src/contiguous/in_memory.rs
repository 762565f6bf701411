//! Copies in memory: where the blocks go of a file that will soon be in contiguous groups, if it has copies only until
//! then (`cairn.ec.contiguous.copies-in-memory`).
//!
//! One copy is on a disk and stays there as the member of a group, the others are on RAM_DISK volumes until the group has
//! its parities. What comes into no group in that time their DataNodes save on disks.

use crate::op::Look;
use crate::orders;
use cairn_namespace::{FileRedundancy, InodeId, NamespaceError, inode, query};
use cairn_redundancy::{NodeHandle, StorageType};
use cairn_stripe::{Redundancy, StoragePolicy};

/// How a new block is placed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Placing {
    /// On which types of storage.
    pub(crate) storage_policy: StoragePolicy,
    /// Nodes that should get none of it, for another block of its group may be there.
    pub(crate) busy: Vec<NodeHandle>,
}

/// How the next block of `file` is placed, of which the policy that applies is `storage_policy`.
pub(crate) fn placing(
    look: &Look<'_>,
    file: InodeId,
    redundancy: &Redundancy,
    storage_policy: StoragePolicy,
) -> Result<Placing, NamespaceError> {
    let as_ever = Placing { storage_policy, busy: Vec::new() };
    // A single copy has to be on a disk.
    let has_copies = matches!(redundancy, Redundancy::Replicated(copies) if *copies > 1);
    let applies = has_copies
        && storage_policy == StoragePolicy::HOT
        && look.cluster.config().copies_in_memory;
    if !applies {
        return Ok(as_ever);
    }
    let inode = inode::get(look.store, file)?;
    let Some(FileRedundancy::Contiguous { policy, .. }) =
        inode.and_then(|inode| Some(inode.file()?.redundancy))
    else {
        return Ok(as_ever);
    };
    let Some(policy) = orders::policy(look.store, policy)? else { return Ok(as_ever) };
    let members = policy.schema.data_units();
    let mut busy = Vec::new();
    for block in query::last_blocks(look.store, file, members.saturating_sub(1))? {
        let on_disk = look
            .cluster
            .pipeline(block.id)
            .into_iter()
            .map(|(storage, _)| storage)
            .chain(look.cluster.locations(block.id).into_iter().map(|location| location.storage))
            .map(|storage| look.cluster.storage(storage))
            .filter(|storage| storage.storage_type != StorageType::RamDisk);
        busy.extend(on_disk.map(|storage| storage.node));
    }
    Ok(Placing { storage_policy: StoragePolicy::HOT_IN_MEMORY, busy })
}
