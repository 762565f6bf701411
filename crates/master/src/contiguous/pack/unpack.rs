//! Packed blocks that are to be plain again: DataNodes write replicas of them, and then they are.
//!
//! What is to be is in the store, so a start goes on with it. A block stays packed, and is read from its container, until
//! it has as many replicas as it is to have: nothing is less safe meanwhile.

use crate::op::{Look, Op, OpError, Submission};
use cairn_namespace::block;
use cairn_namespace::ops::unpack::{BeginUnpack, Unpack};
use cairn_namespace::query;
use cairn_redundancy::BlockRef;
use cairn_stripe::BlockId;

/// Blocks that one look goes over.
const PAGE: usize = 200;
/// How long an operation waits for a block to be plain, in ms: less than clients wait for an answer.
const PATIENCE_MS: u64 = 30_000;
/// How long it waits before it looks again, in ms.
const STEP_MS: u64 = 500;

/// Has packed blocks be plain again, as soon as they can be; if `waits`, they wait to be packed again then.
///
/// Rests on nothing: those that are not packed stay as they are.
pub async fn ask(op: &impl Op, blocks: &[BlockId], waits: bool) -> Result<(), OpError> {
    for some in blocks.chunks(cairn_namespace::ops::pack::PACKED_AT_ONCE) {
        op.submit(Submission::own(BeginUnpack { blocks: some.to_vec(), waits })).await?;
    }
    Ok(())
}

/// Goes over some blocks that are to be plain again, those after `after`. Returns the last of them, or none at the end,
/// and how many are plain now.
pub async fn go_on(
    op: &impl Op,
    after: Option<BlockId>,
) -> Result<(Option<BlockId>, usize), OpError> {
    let blocks = op.look(|look| {
        forget_others(look)?;
        query::unpacking_after(look.store, after, PAGE)
    })?;
    let last = blocks.last().copied().filter(|_| blocks.len() == PAGE);
    Ok((last, advance(op, &blocks).await?))
}

/// Has the cluster forget of what is not to be plain any more.
fn forget_others(look: &mut Look<'_>) -> cairn_namespace::Result<()> {
    for id in look.cluster.unpacking() {
        if !query::is_unpacking(look.store, id)? {
            let lookup = look.lookup();
            look.cluster.keep_packed(&lookup, id);
        }
    }
    Ok(())
}

/// Does for blocks that are to be plain again what comes next. Returns how many are now.
///
/// Rests on nothing but the replicas that were seen: should one be lost before the command comes into force, the others
/// are copied, as those of any block.
async fn advance(op: &impl Op, blocks: &[BlockId]) -> Result<usize, OpError> {
    let done = op.look(|look| -> cairn_namespace::Result<_> {
        let mut done = Vec::new();
        for id in blocks {
            if is_done(look, *id)? {
                done.push(*id);
            }
        }
        Ok(done)
    })?;
    let count = done.len();
    if count > 0 {
        op.submit(Submission::own(Unpack { blocks: done })).await?;
    }
    Ok(count)
}

/// Whether a block has the replicas that it is to have, or is not packed any more.
fn is_done(look: &mut Look<'_>, id: BlockId) -> cairn_namespace::Result<bool> {
    let Some(block) = block::get(look.store, id)?.filter(|block| block.packed.is_some()) else {
        return Ok(true);
    };
    let copies = query::copies_of_block(look.store, &block)?.unwrap_or(1);
    let (lookup, now) = (look.lookup(), look.now);
    let reference = BlockRef { id, gs: block.gs, len: block.len };
    Ok(look.cluster.unpack(&lookup, reference, copies.into(), now, look.dice))
}

/// Has a packed block be plain again, and waits for that for a while. Returns whether it is.
pub async fn unpacked(op: &impl Op, id: BlockId) -> Result<bool, OpError> {
    ask(op, &[id], false).await?;
    let until_ms = op.look(|look| look.now.mono_ms).saturating_add(PATIENCE_MS);
    loop {
        advance(op, &[id]).await?;
        let step = op.look(|look| -> cairn_namespace::Result<_> {
            let is_packed = block::get(look.store, id)?.is_some_and(|block| block.packed.is_some());
            let now_ms = look.now.mono_ms;
            let goes_on = is_packed && now_ms < until_ms;
            let ticket = goes_on.then(|| look.cluster.await_change(&[id]));
            Ok((is_packed, ticket, now_ms.saturating_add(STEP_MS).min(until_ms)))
        })?;
        match step {
            (false, ..) => return Ok(true),
            (true, None, _) => return Ok(false),
            (true, Some(ticket), step_ms) => _ = op.wait(ticket, step_ms).await,
        }
    }
}
