//! How a DataNode can have a block for its clients that it lacks: a block of which others have a replica, a member of a
//! contiguous group, or the data of a block group as one plain block.

use crate::facts::Lookup;
use cairn_namespace::group::{ChecksumShape, Group};
use cairn_namespace::{Block, BlockState, Result, block, query};
use cairn_redundancy::{BlockLookup, BlockRef, Cluster, NodeHandle, Now, StorageHandle};
use cairn_stripe::{BlockId, GenerationStamp, Policy, Redundancy, UnitIndex};

/// See the module.
#[derive(Clone, Debug)]
pub struct Elsewhere {
    /// Its bytes.
    pub len: u64,
    /// Where replicas are, which come first.
    pub relays: Vec<StorageHandle>,
    /// Its group, in which slot of that it is, and the units that it can be decoded from.
    pub group: Option<(Group, UnitIndex, Units)>,
    /// Of a packed block, where it is in its container: what is said beside is of that.
    pub packed: Option<PackedAt>,
}

/// A packed block's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PackedAt {
    /// The container.
    pub container: BlockRef,
    /// Where the block begins.
    pub offset: u64,
    /// Its bytes.
    pub len: u64,
    /// CRC32C of these.
    pub crc32c: u32,
    /// How it and its container are summed.
    pub checksum: ChecksumShape,
}

/// A block group that is to be seen as one plain block.
#[derive(Clone, Debug)]
pub struct Viewed {
    /// The group.
    pub group: Block,
    /// Its policy.
    pub policy: Policy,
    /// Its good units on nodes that can be read; those that were not heard of for long come last.
    pub units: Units,
}

/// The block group of a plain view; nothing if it is not complete, or has another stamp.
pub fn viewed(
    cluster: &Cluster,
    lookup: &Lookup<'_>,
    (id, gs): (BlockId, GenerationStamp),
    now: Now,
) -> Result<Option<Viewed>> {
    let Some(group) = id.viewed_group() else { return Ok(None) };
    let found = query::get_block(lookup.store, group)?;
    let found =
        found.filter(|info| info.block.gs == gs && info.block.state == BlockState::Complete);
    let Some((group, Redundancy::Striped(policy))) =
        found.map(|info| (info.block, info.redundancy))
    else {
        return Ok(None);
    };
    let mut found = cluster.locations(group.id);
    found.retain(|at| !at.corrupt && cluster.node(at.node).is_readable());
    found.sort_by_key(|at| cluster.is_late(cluster.node(at.node), now));
    let units = found.into_iter().map(|at| (at.storage, at.unit)).collect();
    Ok(Some(Viewed { group, policy, units }))
}

/// Where units are.
pub type Units = Vec<(StorageHandle, UnitIndex)>;

/// How a DataNode can have a block. Nothing is said of what clients are not served: ids that no file's blocks have, and
/// members of groups that no file has any more.
pub fn elsewhere(
    cluster: &Cluster,
    lookup: &Lookup<'_>,
    (id, gs): (BlockId, GenerationStamp),
    reader: NodeHandle,
    now: Now,
) -> Result<Option<Elsewhere>> {
    let wanted = lookup.block(id).filter(|facts| facts.is_final() && facts.gs == gs);
    let Some(facts) = wanted.filter(|_| !id.has_units()) else { return Ok(None) };
    if facts.packed.is_some()
        && let Some(found) = packed(cluster, lookup, id, reader, now)?
    {
        return Ok(Some(found));
    }
    let mut group = None;
    if let Some((handle, slot)) = facts.group
        && let Some(of) = query::group(lookup.store, handle)?
    {
        let member = of.members.get(slot.as_usize()).and_then(Option::as_ref);
        if !member.is_some_and(|member| member.live && member.id == id) {
            return Ok(None);
        }
        let sources = cluster.sources_to_decode(lookup, (handle, slot), reader, now);
        group = Some((of, slot, sources));
    }
    let mut relays = cluster.readable_places(id);
    relays.retain(|storage| cluster.storage(*storage).node != reader);
    Ok(Some(Elsewhere { len: facts.len, relays, group, packed: None }))
}

/// How a packed block can be had from its container; nothing if that cannot be had. The reader itself may have it.
fn packed(
    cluster: &Cluster,
    lookup: &Lookup<'_>,
    id: BlockId,
    reader: NodeHandle,
    now: Now,
) -> Result<Option<Elsewhere>> {
    let Some(block) = block::get(lookup.store, id)? else { return Ok(None) };
    let crc32c = block.unit_crcs.first().copied().flatten();
    let (Some(at), Some(crc32c)) = (block.packed, crc32c) else { return Ok(None) };
    let Some(container) = block::get(lookup.store, at.container)? else { return Ok(None) };
    let mut relays = cluster.readable_places(at.container);
    // Nearest first: what the reader has itself, then those that were heard of.
    relays.sort_by_key(|storage| {
        let node = cluster.storage(*storage).node;
        (node != reader, cluster.is_late(cluster.node(node), now))
    });
    let mut group = None;
    if let Some(of) = container.group
        && let Some(found) = query::group(lookup.store, of.handle)?
    {
        let slot = UnitIndex(of.slot);
        let sources = cluster.sources_to_decode(lookup, (of.handle, slot), reader, now);
        group = Some((found, slot, sources));
    }
    if relays.is_empty() && group.is_none() {
        return Ok(None);
    }
    let reference = BlockRef { id: container.id, gs: container.gs, len: container.len };
    let checksum = query::container(lookup.store, at.container)?.and_then(|of| of.checksum);
    let Some(checksum) = checksum else { return Ok(None) };
    let (offset, len) = (at.offset, block.len);
    let packed = Some(PackedAt { container: reference, offset, len, crc32c, checksum });
    Ok(Some(Elsewhere { len: block.len, relays, group, packed }))
}
