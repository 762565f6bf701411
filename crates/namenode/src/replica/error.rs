//! What can go wrong with a member.

use crate::journal::OpenError;
use crate::journal::follower::FollowError;
use crate::quorum;
use crate::run::StartError;
use cairn_net::tls::TlsError;
use std::io;
use std::path::PathBuf;
use tokio::task::JoinError;

/// Why a member does not start, or goes on no more.
#[derive(Debug, thiserror::Error)]
pub enum ReplicaError {
    /// No quorum is configured.
    #[error("no quorum is configured")]
    NoQuorum,
    /// It can't be had together with a quorum yet.
    #[error("a quorum of NameNodes can't do that yet: {0}")]
    Unsupported(&'static str),
    /// The key of the quorum can't be read.
    #[error("{}: {source}", path.display())]
    Key {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// What it is to show the others can't be used.
    #[error("cairn.quorum.tls is true: {0}")]
    Tls(#[from] TlsError),
    /// The others would not believe it.
    #[error(
        "cairn.quorum.tls is true, and the certificate {} does not name {host}, where the others find this member",
        certificate.display()
    )]
    NotNamed {
        /// Its file.
        certificate: PathBuf,
        /// The host of the member's address.
        host: String,
    },
    /// The member's own file or port can't be used.
    #[error("the quorum can't be entered: {0}")]
    Member(#[from] quorum::StartError),
    /// An address can't be listened on.
    #[error("cannot listen on {addr} for the quorum: {source}")]
    Bind {
        /// The address.
        addr: String,
        /// Why.
        source: io::Error,
    },
    /// The NameNode does not start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The namespace can't be opened.
    #[error("cannot open the namespace: {0}")]
    Open(#[from] OpenError),
    /// What was agreed on can't be taken.
    #[error("what the quorum has agreed on can't be taken: {0}")]
    Follow(#[from] FollowError),
    /// There is a log of the quorum, and nothing that it goes on from.
    #[error(
        "{}: there is no namespace that the log of the quorum goes on from; remove {}, so that this NameNode joins as a new \
         member", name.display(), quorum.display()
    )]
    NoNamespace {
        /// Where the namespace would be.
        name: PathBuf,
        /// Where the log of the quorum is.
        quorum: PathBuf,
    },
    /// The NameNode that led has stopped, and not because another one leads.
    #[error("{0}")]
    Stopped(String),
    /// The runtime is stopping.
    #[error("it was interrupted")]
    Interrupted,
}

impl From<JoinError> for ReplicaError {
    fn from(_: JoinError) -> ReplicaError {
        ReplicaError::Interrupted
    }
}
