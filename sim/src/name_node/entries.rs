//! Entries on their way from a command to what is in force.

use super::names::Fall;
use cairn_master::effects::EntryEffects;
use cairn_master::group::Limits;
use cairn_master::{OpError, Submission};
use cairn_namespace::store::Changes;
use cairn_namespace::{Command, Entry, Outcome};
use cairn_redundancy::Ticket;

/// How groups are formed here. There are no checkpoints: what they write a start reads back from the log.
pub(super) const LIMITS: Limits = Limits {
    entries: 8,
    bytes: usize::MAX,
    effects: 100,
    step: 4,
    unshown: 2,
    checkpoint_entries: u64::MAX,
    checkpoint_interval_ms: u64::MAX,
    records: usize::MAX,
};

/// A command that waits to be applied.
pub(super) struct Request {
    pub(super) operation: u64,
    pub(super) submission: Submission,
}

/// An entry that was applied.
pub(super) struct Done {
    pub(super) operation: u64,
    pub(super) answer: Result<Outcome, OpError>,
    /// What it has changed, if it is in the log.
    pub(super) logged: Option<(Entry, Changes)>,
    pub(super) effects: EntryEffects,
}

/// Entries that become durable together.
#[derive(Default)]
pub(super) struct Group {
    pub(super) entries: Vec<Done>,
    pub(super) fall: Option<Fall>,
}

/// What happens to a NameNode by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Happening {
    /// The group under way is on the disk.
    Synced,
    /// The oldest durable group comes into force.
    Shown,
    /// A wait of an operation has lasted long enough.
    TimeOver {
        /// The operation.
        operation: u64,
        /// What it waits for.
        ticket: Ticket,
    },
}

/// A command that came into force, with its answer and the life of the NameNode in which it did.
pub(crate) type InForce = (Command, Outcome, u64);
