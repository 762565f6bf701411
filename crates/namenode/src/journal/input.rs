//! What the thread that applies entries is told.

use super::error::{Fatal, SubmitError};
use crate::store::Snapshot;
use cairn_master::Submission;
use cairn_master::op::Targets;
use cairn_namespace::{Entry, Guard, Outcome};
use std::path::PathBuf;
use tokio::sync::oneshot;

/// What a caller is told.
pub(super) type Answer = Result<Outcome, SubmitError>;

/// What is to be applied.
#[derive(Debug)]
pub struct Wanted {
    /// The entry.
    pub(super) entry: Entry,
    /// It has times already.
    pub(super) is_timed: bool,
    /// What it rests on.
    pub(super) guard: Guard,
    /// Storages that go with it to the cluster.
    pub(super) targets: Targets,
}

impl From<Submission> for Wanted {
    /// Gets the times at which its turn comes.
    fn from(submission: Submission) -> Wanted {
        let Submission { command, caller, call, guard, targets } = submission;
        let entry = Entry { now_ms: 0, elapsed_ms: 0, caller, call, command };
        Wanted { entry, is_timed: false, guard, targets }
    }
}

impl From<Entry> for Wanted {
    /// Keeps its times; for whoever makes time pass by itself, as tests do.
    fn from(entry: Entry) -> Wanted {
        Wanted { entry, is_timed: true, guard: Guard::NONE, targets: Targets::new() }
    }
}

/// What is to be applied and who waits for its outcome.
pub struct Request {
    /// What to apply.
    pub(super) wanted: Wanted,
    /// Gets the outcome; a caller that has gone away is no error.
    pub reply: oneshot::Sender<Answer>,
}

/// Something that is done between two groups.
pub enum Work {
    /// A new segment of the log; answers with the number of its first entry.
    Roll,
    /// Gives what there is, with what is kept of calls; answers with the number of the last entry in it.
    Snapshot(oneshot::Sender<Snapshot>),
    /// A checkpoint; answers with the number of the last entry in it.
    Checkpoint,
    /// A checkpoint, behind which the log is of the newest version; answers as a checkpoint.
    Finalize,
    /// A checkpoint, and a copy of it to go back to; answers as a checkpoint.
    RollbackPoint {
        /// The folder of log and store.
        dir: PathBuf,
        /// The time of the point, ms since the epoch.
        start_ms: u64,
        /// Bytes of the disk that the copy leaves free.
        reserved_len: u64,
    },
}

/// Who waits for work.
pub(super) type WorkReply = oneshot::Sender<Result<u64, SubmitError>>;

/// What the first thread is told.
#[expect(clippy::large_enum_variant, reason = "nearly all are requests")]
pub enum Input {
    /// Something to apply.
    Request(Request),
    /// Something to do when no group is open or under way.
    Work(Work, WorkReply),
    /// The group that was closed last is durable, or will never be.
    Durable(Result<(), Fatal>),
    /// The oldest durable group was shown, or will never be.
    Shown(Result<(), Fatal>),
    /// What was set aside is in the store's file, or will never be.
    Checkpointed(Result<(), Fatal>),
    /// Nothing comes any more.
    Close,
}
