//! Closing a file, and taking its last block back.

use crate::facts;
use crate::op::{Look, Op, OpError, Submission, looking_again};
use cairn_namespace::ops::complete::Complete as Command;
use cairn_namespace::{
    Block, BlockRef, CallId, Caller, Guard, InodeId, Outcome, Result, inode, query,
};
use cairn_redundancy::{BlockFacts, BlockLookup, BlockState, Cluster};
use cairn_stripe::BlockId;

/// How long a close waits for DataNodes' reports before it tells the client to ask again: clients pause for longer than
/// reports take.
const PATIENCE_MS: u64 = 300;

/// Who closes what.
#[derive(Clone, Debug)]
pub struct Complete {
    /// The file.
    pub path: String,
    /// Its id, if the client sent it.
    pub file: Option<InodeId>,
    /// The lease holder.
    pub holder: String,
    /// The last block with its length; `None` if the file has none.
    pub last: Option<BlockRef>,
}

/// Closes a file once its blocks have enough replicas. Returns whether it is closed.
///
/// Deviation: waits a little for DataNodes' reports, where Hadoop has the client sleep and ask again.
///
/// Source: Hadoop 3.5.0 `FSDirWriteFileOp#completeFile`.
pub async fn complete(
    op: &impl Op,
    caller: &Caller,
    call: Option<CallId>,
    wanted: &Complete,
) -> Result<bool, OpError> {
    let deadline = op.look(|look| look.now.mono_ms) + PATIENCE_MS;
    looking_again(|| attempt(op, caller, call, wanted, deadline)).await
}

async fn attempt(
    op: &impl Op,
    caller: &Caller,
    call: Option<CallId>,
    wanted: &Complete,
    deadline: u64,
) -> Result<bool, OpError> {
    let open = loop {
        let (open, ticket) = op.look(|look| -> Result<_> {
            let open = open_blocks(look, op.committed_allowed(), wanted)?;
            let waits = !open.ready && look.now.mono_ms < deadline;
            let ticket = waits.then(|| look.cluster.await_change(&open.ids));
            Ok((open, ticket))
        })?;
        match ticket {
            Some(ticket) if op.wait(ticket, deadline).await => {}
            // The time is over, but more may have been told meanwhile.
            Some(_) => {
                break op.look(|look| open_blocks(look, op.committed_allowed(), wanted))?;
            }
            None => break open,
        }
    };
    let command = Command {
        path: wanted.path.clone(),
        file: wanted.file,
        holder: wanted.holder.clone(),
        last: wanted.last,
        last_crcs: open.last_crcs,
        min_replicated: open.ready,
    };
    let submission = Submission::of(caller.clone(), call, command).resting_on(open.guard);
    match op.submit(submission).await? {
        Outcome::Flag(closed) => Ok(closed),
        other => Err(unexpected(&other)),
    }
}

/// An outcome that its command never has: a bug of ours, not the client's.
pub(crate) fn unexpected(outcome: &Outcome) -> OpError {
    OpError::Stopped(format!("a command had an outcome that it cannot have: {outcome:?}"))
}

/// The blocks of a file that are not complete, and what the cluster knows of them.
#[derive(Clone, Debug, Default)]
struct OpenBlocks {
    ids: Vec<BlockId>,
    last_crcs: Vec<Option<u32>>,
    /// All have their minimum of replicas, or may lack it.
    ready: bool,
    guard: Guard,
}

/// Looks at the open blocks of a file as they will be with its last one committed.
fn open_blocks(look: &Look<'_>, allowed: usize, wanted: &Complete) -> Result<OpenBlocks> {
    let file = match wanted.file {
        Some(file) => Some(file),
        None => file_at(look, &wanted.path)?,
    };
    let Some(file) = file else { return Ok(OpenBlocks::default()) };
    let lookup = look.lookup();
    let mut open = OpenBlocks { ready: true, ..OpenBlocks::default() };
    open.guard.file(look.store, file)?;
    if allowed > 0 {
        // Those before them were looked at when blocks were added.
        for back in [1, 2].map(|more| allowed.saturating_add(more)) {
            open.ready &= awaited(look, file, back)?.is_none();
        }
    }
    let blocks = query::incomplete_blocks(look.store, file)?;
    let count = blocks.len();
    for (index, block) in blocks.into_iter().enumerate() {
        open.guard.block(block.id, Some(&block));
        let Some(mut facts) = lookup.block(block.id) else { continue };
        if let Some(last) = wanted.last.filter(|last| last.id == block.id) {
            facts.gs = last.gs;
            facts.len = last.len;
            facts.state = BlockState::Committed;
            open.last_crcs = look.cluster.unit_crcs(block.id, &facts);
        }
        open.ready &= look.cluster.min_reached(block.id, &facts)
            || may_lack(look.cluster, (block.id, &facts), allowed, count - index);
        open.ids.push(block.id);
    }
    Ok(open)
}

/// The id of what is at a path now.
pub(crate) fn file_at(look: &Look<'_>, path: &str) -> Result<Option<InodeId>> {
    // That a path cannot be followed is for the command to say.
    let found = match query::get_file_info(look.store, &Caller::system(), path) {
        Err(error @ cairn_namespace::NamespaceError::Store(_)) => return Err(error),
        found => found.ok().flatten(),
    };
    Ok(found.map(|found| found.inode.id))
}

/// Whether a file may be closed though the block that is `back` from its end, 1 being the last, has too few replicas.
/// `facts` must have its final length. Such a block is complete in the tree, as it is in Hadoop after a restart; that its
/// replicas are still to be reported the cluster knows, until they are or their time is over.
///
/// Source: Hadoop 3.5.0 `INodeFile#checkBlockComplete`, `FSNamesystem#checkFileProgress`.
fn may_lack(
    cluster: &Cluster,
    (id, facts): (BlockId, &BlockFacts),
    allowed: usize,
    back: usize,
) -> bool {
    let expected = cluster.pipeline(id).len();
    let is_enough = if facts.layout.is_striped() {
        expected == facts.expected_units()
    } else {
        expected > usize::from(cluster.config().replication_min)
    };
    back <= allowed && facts.is_final() && is_enough
}

/// The block that is `back` from the end of a file if it was complete before its replicas were reported, and they are not
/// yet.
pub(crate) fn awaited(look: &Look<'_>, file: InodeId, back: usize) -> Result<Option<Block>> {
    let Some(block) = from_end(look, file, back)? else { return Ok(None) };
    let facts = look.lookup().block(block.id);
    let is_awaited = facts.is_some_and(|facts| look.cluster.awaits_reports(block.id, &facts));
    Ok(Some(block).filter(|_| is_awaited))
}

fn from_end(look: &Look<'_>, file: InodeId, back: usize) -> Result<Option<Block>> {
    let found = inode::get(look.store, file)?;
    let count = found.as_ref().and_then(|inode| inode.file()).map_or(0, |file| file.block_count);
    let index = usize::try_from(count).ok().and_then(|count| count.checked_sub(back));
    match index.and_then(|index| u32::try_from(index).ok()) {
        Some(index) => Ok(Some(cairn_namespace::block::at(look.store, file, index)?.1)),
        None => Ok(None),
    }
}

/// Whether a block has its minimum of replicas.
pub(crate) fn is_reached(look: &Look<'_>, block: &Block) -> Result<bool> {
    let info = query::get_block(look.store, block.id)?;
    Ok(info.is_some_and(|info| {
        look.cluster.min_reached(block.id, &facts::facts(&info.block, &info.redundancy))
    }))
}
