//! Taking files from holders that are silent, and what must be known of a file's last blocks for that.

use crate::complete::{file_at, is_reached, unexpected};
use crate::op::{Look, Op, OpError, Submission, looking_again};
use cairn_namespace::ops::lease::{LastBlocks, RecoverLease, ReleaseLease};
use cairn_namespace::{
    BlockState, CallId, Caller, Command, Guard, InodeId, NamespaceError, Outcome, Result, lease,
    query, settings,
};
use cairn_redundancy::BlockLookup;

/// Closes a file that another client has open, or begins the recovery that must come first. Returns whether it is closed.
///
/// Source: Hadoop 3.5.0 `FSNamesystem#recoverLease`.
pub async fn recover(
    op: &impl Op,
    caller: &Caller,
    call: Option<CallId>,
    path: &str,
    holder: &str,
) -> Result<bool, OpError> {
    looking_again(|| async {
        let (replicas, guard) = op.look(|look| {
            let file = file_at(look, path)?;
            last_blocks(look, file)
        })?;
        let command = RecoverLease { path: path.to_string(), holder: holder.to_string(), replicas };
        closed(op.submit(Submission::of(caller.clone(), call, command).resting_on(guard)).await?)
    })
    .await
}

/// Closes a file whose holder has been silent too long, or begins the recovery that must come first. Returns whether it
/// is closed.
///
/// Source: Hadoop 3.5.0 `FSNamesystem#internalReleaseLease`.
pub async fn release(op: &impl Op, file: InodeId) -> Result<bool, OpError> {
    looking_again(|| async {
        let (replicas, guard) = op.look(|look| last_blocks(look, Some(file)))?;
        closed(op.submit(Submission::own(ReleaseLease { file, replicas }).resting_on(guard)).await?)
    })
    .await
}

fn closed(outcome: Outcome) -> Result<bool, OpError> {
    match outcome {
        Outcome::Recovery { closed } => Ok(closed),
        other => Err(unexpected(&other)),
    }
}

/// Submits a command that needs the file at `path` closed. If a silent holder is in the way, the file begins to be closed,
/// for the client to try again.
///
/// The command rests on nothing: nobody has looked before it.
pub async fn submit_or_recover(
    op: &impl Op,
    caller: &Caller,
    call: Option<CallId>,
    command: impl Into<Command>,
    path: &str,
) -> Result<Outcome, OpError> {
    let answer = op.submit(Submission::of(caller.clone(), call, command)).await;
    if let Err(OpError::Refused(NamespaceError::RecoveryInProgress(_))) = &answer
        && let Some(file) = op.look(|look| silently_held(look, path))?
    {
        // What is answered says that it is being recovered; that this cannot be begun now changes nothing.
        match release(op, file).await {
            Ok(_) | Err(OpError::Refused(_)) => {}
            Err(error) => return Err(error),
        }
    }
    answer
}

/// The file at `path` if its holder has been silent beyond the soft limit.
fn silently_held(look: &Look<'_>, path: &str) -> Result<Option<InodeId>> {
    let status = query::get_file_info(look.store, &Caller::system(), path)?;
    let Some(inode) = status.map(|status| status.inode) else { return Ok(None) };
    let Some(writer) = inode.file().and_then(|file| file.writer.as_ref()) else {
        return Ok(None);
    };
    let settings = settings::get(look.store)?;
    let silent =
        lease::is_soft_expired(look.store, &settings, &writer.holder, look.now.elapsed_ms)?;
    Ok(silent.then_some(inode.id))
}

/// What the cluster knows of the last two blocks of a file, nothing if there is none, and what that rests on.
pub(crate) fn last_blocks(
    look: &mut Look<'_>,
    file: Option<InodeId>,
) -> Result<(LastBlocks, Guard)> {
    let mut guard = Guard::NONE;
    let Some(file) = file else { return Ok((LastBlocks::default(), guard)) };
    guard.file(look.store, file)?;
    let lookup = look.lookup();
    let open = query::incomplete_blocks(look.store, file)?;
    let last = query::last_block(look.store, file)?.map(|(_, block)| block);
    look.cluster.settle(&lookup, last.as_ref().map(|last| last.id).as_slice());
    let before_last = open.len().checked_sub(2).map(|index| &open[index]);
    for block in before_last.into_iter().chain(&last) {
        guard.block(block.id, Some(block));
    }
    let penultimate_min_replicated = match before_last {
        Some(block) => block.state == BlockState::Complete || is_reached(look, block)?,
        None => true,
    };
    let last_min_replicated = match &last {
        Some(block) => is_reached(look, block)?,
        None => false,
    };
    let has_places = |id| {
        let facts = lookup.block(id);
        facts.is_some_and(|facts| look.cluster.has_recoverable_places(id, &facts, look.now))
    };
    let replicas = LastBlocks {
        penultimate_min_replicated,
        last_min_replicated,
        last_has_locations: last.as_ref().is_some_and(|last| has_places(last.id)),
        // The guard says it.
        seen: None,
    };
    Ok((replicas, guard))
}
