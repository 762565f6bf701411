//! What is in containers that were taken over with their groups: blocks are packed there again that need it.
//!
//! A container waits as long as its index was not read; nobody knows what is in it. What no block needs is dead in it, and one
//! that nobody needs at all ends like any other.

use crate::complete::unexpected;
use crate::op::{Look, Op, OpError, Submission};
use cairn_namespace::container::{Container, ContainerState};
use cairn_namespace::group::ChecksumShape;
use cairn_namespace::ops::adopt_packed::{AdoptPacked, AdoptedBlock};
use cairn_namespace::ops::pack::{PACKED_AT_ONCE, Pack};
use cairn_namespace::{Outcome, query};
use cairn_redundancy::{BlockFacts, BlockLookup, BlockState};
use cairn_stripe::BlockId;
use cairn_stripe::pack::{PackIndex, Packed};
use std::sync::Arc;

/// Containers that one look goes over.
const PAGE: usize = 200;

/// Takes over what is in all containers that are waiting for that, and adds to `taken` how many blocks are packed in each of
/// them. Returns whether none waits any more.
pub(crate) async fn take_all(
    op: &impl Op,
    taken: &mut Vec<(BlockId, u64)>,
) -> Result<bool, OpError> {
    let (mut after, mut unread) = (None, 0);
    loop {
        let page = op.look(|look| query::containers_after(look.store, after, PAGE))?;
        after = page.last().filter(|_| page.len() == PAGE).map(|of| of.id);
        for of in &page {
            match of.state {
                ContainerState::Found => match take(op, of.id).await? {
                    Some(blocks) => taken.push((of.id, blocks)),
                    None => unread += 1,
                },
                ContainerState::Sealed | ContainerState::Packing { .. } => go_on(op, of).await?,
                _ => {}
            }
        }
        if after.is_none() {
            op.look(|look| look.cluster.contents_unread(unread));
            return Ok(unread == 0);
        }
    }
}

/// Packs what was to be packed in a container at the moment that was restored, if that is in a group and can be had: copies may
/// have gone since.
///
/// Rests on nothing: what has copies still loses them only when the container is safe.
async fn go_on(op: &impl Op, of: &Container) -> Result<(), OpError> {
    let is_in_time = op.look(|look| {
        let lookup = look.lookup();
        let is_grouped = lookup.block(of.id).is_some_and(|facts| facts.group.is_some());
        let has_all = look.cluster.has_found_all(look.now);
        is_grouped && has_all && look.cluster.can_be_had(&lookup, of.id)
    });
    if !is_in_time {
        return Ok(());
    }
    loop {
        match op.submit(Submission::own(Pack { container: of.id, gs: of.gs })).await? {
            Outcome::Flag(false) => {}
            Outcome::Flag(true) | Outcome::GroupRefused(_) => return Ok(()),
            other => return Err(unexpected(&other)),
        }
    }
}

/// Takes over what is in a container, if its index was read; else has it read. Returns how many blocks are packed in it then.
///
/// Rests on nothing: which blocks need the container is all that the command does not compare, and one that has got copies
/// meanwhile is where the container has it, too.
pub(crate) async fn take(op: &impl Op, id: BlockId) -> Result<Option<u64>, OpError> {
    let Some((of, index)) = op.look(|look| index(look, id))? else { return Ok(None) };
    let packed_len = index.packed().iter().map(|packed| u64::from(packed.len)).sum();
    let all = (index.packed().len() as u64, packed_len);
    let mut steps = index.packed().chunks(PACKED_AT_ONCE).peekable();
    while let Some(step) = steps.next() {
        let all = steps.peek().is_none().then_some(all);
        let command = op.look(|look| command(look, &of, step, all))?;
        match op.submit(Submission::own(command)).await? {
            Outcome::Flag(_) => {}
            // It was taken over meanwhile, or has ended.
            Outcome::GroupRefused(_) => return Ok(None),
            other => return Err(unexpected(&other)),
        }
    }
    let blocks = op.look(|look| -> cairn_namespace::Result<u64> {
        let blocks = query::container(look.store, id)?.map_or(0, |of| of.live);
        look.cluster.contents_taken(id, blocks);
        Ok(blocks)
    })?;
    Ok(Some(blocks))
}

/// A container of which the content is not known, with its index if that was read and all who live have told what they have.
fn index(
    look: &mut Look<'_>,
    id: BlockId,
) -> cairn_namespace::Result<Option<(Container, Arc<PackIndex>)>> {
    let found = query::container(look.store, id)?;
    let Some(of) = found.filter(|of| of.state == ContainerState::Found) else { return Ok(None) };
    let lookup = look.lookup();
    look.cluster.ask_for_index(&lookup, id, look.now);
    let is_summed_so = |index: &PackIndex| of.checksum == Some(shape_of(index));
    let index = look.cluster.index_of(id).filter(|index| is_summed_so(index));
    let index = index.filter(|_| look.cluster.has_found_all(look.now));
    Ok(index.map(|index| (of, index)))
}

/// How a container is summed.
pub(super) fn shape_of(index: &PackIndex) -> ChecksumShape {
    ChecksumShape { kind: index.checksum_type, bytes_per_checksum: index.chunk_len }
}

/// Whether a file has a block as a container has it, and needs it from there.
pub(super) fn is_needed(look: &Look<'_>, lookup: &dyn BlockLookup, packed: &Packed) -> bool {
    let is_same = |facts: &BlockFacts| {
        facts.state == BlockState::Complete
            && (facts.gs, facts.len) == (packed.gs, packed.len.into())
    };
    let facts = lookup.block(packed.id).filter(is_same);
    facts.is_some_and(|facts| look.cluster.needs_container(lookup, packed.id, &facts))
}

/// What has those of some blocks be where a container has them that need it.
fn command(
    look: &Look<'_>,
    of: &Container,
    step: &[Packed],
    all: Option<(u64, u64)>,
) -> cairn_namespace::Result<AdoptPacked> {
    let lookup = look.lookup();
    let adopted = |packed: &Packed| {
        let Packed { slot, id, gs, offset, len, crc32c } = *packed;
        AdoptedBlock { slot, offset, id, gs, len: len.into(), crc32c }
    };
    let blocks: Vec<AdoptedBlock> =
        step.iter().filter(|of| is_needed(look, &lookup, of)).map(adopted).collect();
    let storage_policy = match blocks.first() {
        Some(first) => query::storage_policy_of_block(look.store, first.id)?,
        None => of.storage_policy,
    };
    Ok(AdoptPacked { container: of.id, gs: of.gs, storage_policy, blocks, all })
}
