//! Why a NameNode does not start.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use cairn_net::tls::TlsError;

use crate::host_files::TopologyError;
use crate::journal::OpenError;

/// Why a NameNode does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// There is nothing in the folder, and it is not to be formatted.
    #[error("NameNode is not formatted: {}", path.display())]
    NotFormatted {
        /// The folder.
        path: PathBuf,
    },
    /// Log or store cannot be opened.
    #[error("cannot open the namespace: {0}")]
    Open(#[from] OpenError),
    /// The system has no random numbers.
    #[error("no random numbers: {why}")]
    NoRandomness {
        /// What it says.
        why: String,
    },
    /// Racks or lists of DataNodes cannot be read.
    #[error(transparent)]
    Topology(#[from] TopologyError),
    /// A socket cannot be bound.
    #[error("cannot listen on {addr} for {purpose}: {source}")]
    Bind {
        /// Where.
        addr: SocketAddr,
        /// What for.
        purpose: &'static str,
        /// Why.
        source: io::Error,
    },
    /// HTTPS cannot be served.
    #[error("cannot serve HTTPS: {0}")]
    Certificate(#[source] TlsError),
    /// The audit log cannot be written.
    #[error("cannot open the audit log {}: {source}", path.display())]
    Audit {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The keys that say who may use which protocol are wrong.
    #[error("the access lists of services are wrong: {0}")]
    Policy(String),
    /// The namespace is open but does not answer.
    #[error("cannot read the namespace: {0}")]
    Read(#[from] cairn_namespace::NamespaceError),
    /// The runtime is stopping.
    #[error("the start was interrupted")]
    Interrupted,
}
