//! Why a namespace can't be opened, and why it takes no entry.

use super::agree::NotAgreed;
use super::log::LogError;
use crate::store::IdentityError;
use cairn_namespace::NamespaceError;
use cairn_namespace::encoding::DecodeError;
use cairn_namespace::store::StoreError;
use std::path::PathBuf;

/// Why a namespace can't be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The directory can't be made or locked.
    #[error("{}: {source}", path.display())]
    Io {
        /// The directory.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Another NameNode has it.
    #[error("{}: another NameNode uses this folder", path.display())]
    Locked {
        /// The directory.
        path: PathBuf,
    },
    /// There is no `VERSION` file, which comes last where a namespace is made.
    #[error(
        "{}: there is no VERSION file: if a namespace was being made, imported or restored here, that was cut short and is to be done again, into an empty folder; if it was in use, put that file back from a copy",
        path.display()
    )]
    NoVersion {
        /// The directory.
        path: PathBuf,
    },
    /// The `VERSION` file can't be used.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// The log can't be used.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The store can't be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// An entry of the log is not one that this build knows.
    #[error("entry {sequence} of the log: {source}")]
    Entry {
        /// Its number.
        sequence: u64,
        /// What is wrong.
        source: DecodeError,
    },
    /// An entry of the log, which had succeeded, now fails: store and log do not fit.
    #[error("entry {sequence} of the log can't be applied again: {source}")]
    Replay {
        /// Its number.
        sequence: u64,
        /// Why.
        source: NamespaceError,
    },
    /// An entry that does not follow what the store has.
    #[error(
        "entry {sequence} of the log follows other changes than those that the store has: the two are of different \
         histories; restore the namespace from backups"
    )]
    OtherHistory {
        /// Its number.
        sequence: u64,
    },
    /// The first entry can't be made durable.
    #[error(transparent)]
    Write(#[from] Fatal),
    /// The way back to a rollback point was begun and not ended.
    #[error("{}: a rollback was begun and not ended; start with --rollback", path.display())]
    RollbackBegun {
        /// The point's folder.
        path: PathBuf,
    },
    /// There is nothing to go back to.
    #[error("{}: there is no rollback point", path.display())]
    NoRollbackPoint {
        /// Where it would be.
        path: PathBuf,
    },
    /// The settings were refused.
    #[error("settings: {0}")]
    Settings(NamespaceError),
}

/// Why an entry has no outcome.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SubmitError {
    /// The command was refused and changed nothing.
    #[error(transparent)]
    Refused(#[from] NamespaceError),
    /// What the command rested on has changed, and it changed nothing.
    #[error("the state of the file or of its blocks has changed meanwhile")]
    Moved,
    /// A rollback point cannot be made; nothing has changed.
    #[error("the rollback point cannot be made: {0}")]
    RollbackPoint(String),
    /// The log or the store failed, or the namespace was closed. Whether the entry is durable is not
    /// known; nothing can be submitted any more.
    #[error("the namespace takes no more changes: its log or store has failed or was closed")]
    Stopped,
}

/// What stops the writer.
#[derive(Debug, thiserror::Error)]
pub enum Fatal {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A segment of the log can't be made or removed.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The log can't be written.
    #[error("the log can't be written: {0}")]
    Append(std::io::Error),
    /// Others do not agree on what was evaluated.
    #[error(transparent)]
    NotAgreed(#[from] NotAgreed),
}
