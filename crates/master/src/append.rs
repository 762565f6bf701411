//! Opening a file to grow, and cutting one off.

use crate::complete::{awaited, file_at, unexpected};
use crate::lease::last_blocks;
use crate::op::{Op, OpError, Submission, looking_again};
use cairn_namespace::ops::append::Append as Command;
use cairn_namespace::query::FileStatus;
use cairn_namespace::{Block, CallId, Caller, NamespaceError, Outcome, Result};

/// Who appends to what.
#[derive(Clone, Debug)]
pub struct Append {
    /// The file.
    pub path: String,
    /// The client's name.
    pub holder: String,
    /// The client's host.
    pub client_machine: String,
    /// `CreateFlag.NEW_BLOCK`: leave the last block as it is.
    pub new_block: bool,
}

/// A file that is open to grow.
#[derive(Clone, Debug)]
pub struct Appended {
    /// The file.
    pub status: Box<FileStatus>,
    /// The last block, if writing goes on in it, and its offset in the file.
    pub last: Option<(u64, Block)>,
}

/// Opens a file to grow. A silent holder's file is taken from it, if nothing must be recovered first.
///
/// Source: Hadoop 3.5.0 `FSDirAppendOp#appendFile`.
pub async fn append(
    op: &impl Op,
    caller: &Caller,
    call: Option<CallId>,
    wanted: &Append,
) -> Result<Appended, OpError> {
    looking_again(|| attempt(op, caller, call, wanted)).await
}

async fn attempt(
    op: &impl Op,
    caller: &Caller,
    call: Option<CallId>,
    wanted: &Append,
) -> Result<Appended, OpError> {
    let (replicas, guard, awaited) = op.look(|look| -> Result<_> {
        let file = file_at(look, &wanted.path)?;
        let (replicas, guard) = last_blocks(look, file)?;
        let awaited = match file {
            Some(file) if op.committed_allowed() > 0 => awaited(look, file, 1)?,
            _ => None,
        };
        Ok((replicas, guard, awaited))
    })?;
    let command = Command {
        path: wanted.path.clone(),
        holder: wanted.holder.clone(),
        client_machine: wanted.client_machine.clone(),
        new_block: wanted.new_block,
        replicas,
    };
    let submission = Submission::of(caller.clone(), call, command).resting_on(guard);
    match op.submit(submission).await {
        Ok(Outcome::Appended { status, last }) => Ok(Appended { status, last }),
        // The file was taken from a silent holder; its last block must be recovered first.
        Ok(Outcome::Recovery { .. }) => {
            Err(NamespaceError::RecoveryInProgress(in_progress(wanted)).into())
        }
        Ok(other) => Err(unexpected(&other)),
        Err(OpError::Refused(NamespaceError::LastBlockNotReplicated(text))) => {
            Err(match &awaited {
                Some(last) => NamespaceError::Retriable(not_yet_complete(wanted, last)),
                None => NamespaceError::LastBlockNotReplicated(text),
            }
            .into())
        }
        Err(error) => Err(error),
    }
}

fn in_progress(wanted: &Append) -> String {
    format!(
        "Failed to APPEND_FILE {} for {} on {} because lease recovery is in progress. \
         Try again later.",
        wanted.path, wanted.holder, wanted.client_machine
    )
}

/// What an append is told whose file was closed before its last block had its replicas: it may try again.
///
/// Source: Hadoop 3.5.0 `FSDirAppendOp#appendFile`.
fn not_yet_complete(wanted: &Append, last: &Block) -> String {
    let class = NamespaceError::NotReplicatedYet(String::new()).exception_class();
    format!(
        "{class}: append: lastBlock={}_{} of src={} is COMMITTED but not yet COMPLETE.",
        last.id, last.gs, wanted.path
    )
}
