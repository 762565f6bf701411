//! Files that go on, and are closed, before their last blocks have their minimum of replicas.
//!
//! Such a block is complete in the tree, as it is in Hadoop after a restart; that its replicas are still to be
//! reported the cluster knows, until they are or their time is over.
//!
//! Source: Hadoop 3.5.0 `INodeFile#checkBlockComplete`, `FSNamesystem#checkFileProgress`.

use cairn_namespace::{Block, InodeId, block, inode};
use cairn_redundancy::{BlockFacts, BlockLookup, Cluster};
use cairn_stripe::BlockId;

use crate::config::NameNodeConfig;
use crate::lookup::Lookup;
use crate::refusal::Refusal;

/// Whether a file may be closed though the block that is `back` from its end, 1 being the last, has too few replicas.
/// `facts` must have its final length.
pub(super) fn may_lack(
    config: &NameNodeConfig,
    cluster: &Cluster,
    (id, facts): (BlockId, &BlockFacts),
    back: usize,
) -> bool {
    let expected = cluster.pipeline(id).len();
    let is_enough = if facts.layout.is_striped() {
        expected == facts.expected_units()
    } else {
        expected > usize::from(config.min_replication)
    };
    back <= config.committed_allowed && facts.is_final() && is_enough
}

/// Whether the block that is `back` from the end of a file was complete before its replicas were reported, and they
/// are not yet.
pub(super) fn is_awaited(
    cluster: &Cluster,
    lookup: &Lookup<'_>,
    file: InodeId,
    back: usize,
) -> Result<bool, Refusal> {
    let Some(block) = from_end(lookup, file, back)? else { return Ok(false) };
    Ok(lookup.block(block.id).is_some_and(|facts| cluster.awaits_reports(block.id, &facts)))
}

fn from_end(lookup: &Lookup<'_>, file: InodeId, back: usize) -> Result<Option<Block>, Refusal> {
    let found = inode::get(lookup.store, file)?;
    let count = found.as_ref().and_then(|inode| inode.file()).map_or(0, |file| file.block_count);
    let index = usize::try_from(count).ok().and_then(|count| count.checked_sub(back));
    match index.and_then(|index| u32::try_from(index).ok()) {
        Some(index) => Ok(Some(block::at(lookup.store, file, index)?.1)),
        None => Ok(None),
    }
}
