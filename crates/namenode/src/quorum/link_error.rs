//! Why two members do not understand each other.

use std::io;

/// Why there is no connection, or no more.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// The socket fails.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The other one is no member, or has another key.
    #[error("the other side does not have the key of this quorum")]
    Stranger,
    /// It speaks without TLS to who wants it.
    #[error(
        "the other side speaks without TLS and this one with it: it is no member, or cairn.quorum.tls is not the same on all"
    )]
    Plain,
    /// It speaks TLS to who does not.
    #[error(
        "the other side speaks TLS and this one does not: it is no member, or cairn.quorum.tls is not the same on all"
    )]
    Tls,
    /// It has gone before both sides knew each other.
    #[error(
        "the other side has closed the connection before it has shown that it is a member: its log says why; \
         cairn.quorum.tls has to be the same on all"
    )]
    Closed,
    /// One of the two does not believe the other's certificate.
    #[error("one side does not believe the certificate of the other: {0}")]
    Certificate(io::Error),
    /// Its certificate is that of somebody else.
    #[error(
        "the certificate of the other side does not name the host of the member that it says it is"
    )]
    OtherName,
    /// A frame was changed, or is too long.
    #[error("a frame is not what was sent")]
    Forged,
    /// It has the key, and is of another quorum.
    #[error("the other side is of another quorum")]
    OtherQuorum,
    /// A snapshot is on its way already.
    #[error("another snapshot is on its way")]
    Busy,
    /// The system gives no random numbers.
    #[error("no random numbers: {0}")]
    Random(getrandom::Error),
}

impl LinkError {
    /// What an error says while the two sides do not know each other yet.
    pub(super) fn opening(error: io::Error) -> LinkError {
        match error.kind() {
            io::ErrorKind::UnexpectedEof
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::BrokenPipe => LinkError::Closed,
            // As it is with what TLS does not take.
            io::ErrorKind::InvalidData => LinkError::Certificate(error),
            _ => LinkError::Io(error),
        }
    }
}
