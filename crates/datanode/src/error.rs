//! What can go wrong in a DataNode, and Hadoop's exception class for each.

use cairn_net::transfer_stream::TransferError;
use cairn_replica::ReplicaError;
use cairn_replica::checksum::PlaceError;
use cairn_replica::group::Unbelieved;
use cairn_replica::recovery::RecoveryError;
use cairn_wire::WireError;
use cairn_wire::exception::{RemoteException, class};
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Why an operation of the DataNode failed.
#[derive(Debug, Error)]
pub enum DataNodeError {
    /// The replica does not allow it.
    #[error(transparent)]
    Replica(#[from] ReplicaError),
    /// The recovery of a block has come to nothing.
    #[error(transparent)]
    Recovery(#[from] RecoveryError),
    /// A packet does not fit the replica.
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// A disk failed, or a file is not as it should be.
    #[error("{}: {source}", path.display())]
    Disk {
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A sync failed: bytes may be lost although the next sync succeeds.
    #[error("{}: sync failed: {source}", path.display())]
    Unsynced {
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A socket failed.
    #[error("{what}: {source}")]
    Io {
        /// What was being done, with the peer.
        what: String,
        /// The system's error.
        source: io::Error,
    },
    /// A peer sent bytes that are no message.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// A peer sent a message that makes no sense here.
    #[error("{0}")]
    Peer(String),
    /// A call to another server failed.
    #[error("{what}: {source}")]
    Rpc {
        /// Which call.
        what: &'static str,
        /// How it failed.
        source: cairn_net::rpc_client::RpcError,
    },
    /// Bytes do not match their CRC.
    #[error("Checksum failed: {0}")]
    Checksum(String),
    /// A replica here has bytes that do not match their CRC, and was to be written on or cut.
    #[error("Checksum failed: {0}")]
    Corrupt(String),
    /// No volume has room.
    #[error(
        "Out of space: The volume with the most available space (={most} B) is less than the block size (={needed} B)."
    )]
    NoSpace {
        /// Bytes free on the best volume.
        most: u64,
        /// Bytes asked for.
        needed: u64,
    },
    /// A volume's folder belongs to something else, or is in use.
    #[error("{}: {why}", dir.display())]
    Storage {
        /// The folder.
        dir: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The block pool is not the one this DataNode serves.
    #[error("Block pool {0} is not found")]
    UnknownPool(String),
    /// The keys that say who may use which protocol are wrong.
    #[error("the access lists of services are wrong: {0}")]
    Policy(String),
    /// The operation was stopped for the benefit of a newer one.
    #[error("the writer was stopped")]
    Stopped,
}

impl From<Unbelieved> for DataNodeError {
    fn from(error: Unbelieved) -> DataNodeError {
        match error.is_about_bytes() {
            true => DataNodeError::Checksum(error.to_string()),
            false => DataNodeError::Peer(error.to_string()),
        }
    }
}

/// Kinds of failures, for monitors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FailureKind {
    /// A disk, or what is on it.
    Disk,
    /// A connection.
    Network,
    /// Bytes that are not those of their CRC.
    Checksum,
    /// No room.
    NoSpace,
    /// A replica that is not there, or does not allow it.
    Replica,
    /// A request that makes no sense.
    Request,
    /// Another server that was asked.
    Peer,
    /// What is not done now, or not at all.
    Refused,
}

impl FailureKind {
    pub(crate) const ALL: [FailureKind; 8] = [
        FailureKind::Disk,
        FailureKind::Network,
        FailureKind::Checksum,
        FailureKind::NoSpace,
        FailureKind::Replica,
        FailureKind::Request,
        FailureKind::Peer,
        FailureKind::Refused,
    ];

    /// The name for monitors.
    pub(crate) fn name(self) -> &'static str {
        match self {
            FailureKind::Disk => "disk",
            FailureKind::Network => "network",
            FailureKind::Checksum => "checksum",
            FailureKind::NoSpace => "no_space",
            FailureKind::Replica => "replica",
            FailureKind::Request => "request",
            FailureKind::Peer => "peer",
            FailureKind::Refused => "refused",
        }
    }
}

/// Result of a DataNode operation.
pub(crate) type Result<T, E = DataNodeError> = std::result::Result<T, E>;

/// Says what was being done when the system failed.
pub(crate) trait Context<T> {
    /// `what` with the peer concerned.
    fn context(self, what: impl FnOnce() -> String) -> Result<T>;
    /// The file concerned.
    fn at(self, path: &Path) -> Result<T>;
}

impl<T> Context<T> for io::Result<T> {
    fn context(self, what: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|source| DataNodeError::Io { what: what(), source })
    }

    fn at(self, path: &Path) -> Result<T> {
        self.map_err(|source| DataNodeError::Disk { path: path.to_path_buf(), source })
    }
}

impl DataNodeError {
    /// A message that names no system error.
    pub(crate) fn peer(message: impl Into<String>) -> DataNodeError {
        DataNodeError::Peer(message.into())
    }

    /// Whether the file was not there.
    pub(crate) fn is_missing_file(&self) -> bool {
        matches!(self, DataNodeError::Disk { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }

    /// The file or folder at which the system failed, which says something about its volume.
    pub(crate) fn failed_path(&self) -> Option<&Path> {
        match self {
            DataNodeError::Disk { path, source } if source.raw_os_error().is_some() => Some(path),
            _ => None,
        }
    }

    /// What kind of failure it is.
    pub(crate) fn kind(&self) -> FailureKind {
        match self {
            DataNodeError::Disk { .. }
            | DataNodeError::Unsynced { .. }
            | DataNodeError::Storage { .. } => FailureKind::Disk,
            DataNodeError::Io { .. } => FailureKind::Network,
            DataNodeError::Checksum(_) | DataNodeError::Corrupt(_) => FailureKind::Checksum,
            DataNodeError::NoSpace { .. } => FailureKind::NoSpace,
            DataNodeError::Replica(_) | DataNodeError::Recovery(_) => FailureKind::Replica,
            DataNodeError::Place(_) | DataNodeError::Wire(_) | DataNodeError::UnknownPool(_) => {
                FailureKind::Request
            }
            DataNodeError::Peer(_) | DataNodeError::Rpc { .. } => FailureKind::Peer,
            DataNodeError::Policy(_) | DataNodeError::Stopped => FailureKind::Refused,
        }
    }

    /// The Java class that Hadoop would throw.
    ///
    /// Source: Hadoop 3.5.0 `FsDatasetImpl`.
    pub fn exception_class(&self) -> &'static str {
        match self {
            DataNodeError::Replica(
                ReplicaError::NotFound { .. } | ReplicaError::StampOutOfRange { .. },
            ) => "org.apache.hadoop.hdfs.server.datanode.ReplicaNotFoundException",
            DataNodeError::Replica(
                ReplicaError::AlreadyExists { .. } | ReplicaError::Unsettled { .. },
            ) => "org.apache.hadoop.hdfs.server.datanode.ReplicaAlreadyExistsException",
            DataNodeError::Replica(
                ReplicaError::RecoveryInProgress { .. } | ReplicaError::Late { .. },
            ) => class::RECOVERY_IN_PROGRESS,
            DataNodeError::Corrupt(_) => class::CHECKSUM,
            DataNodeError::NoSpace { .. } => {
                "org.apache.hadoop.util.DiskChecker$DiskOutOfSpaceException"
            }
            _ => class::IO,
        }
    }
}

impl From<DataNodeError> for RemoteException {
    fn from(error: DataNodeError) -> RemoteException {
        RemoteException::new(error.exception_class(), error.to_string())
    }
}

impl From<TransferError> for DataNodeError {
    fn from(error: TransferError) -> DataNodeError {
        transfer_error("data transfer".into(), error)
    }
}

/// Says which peer a transfer failed with.
pub(crate) fn transfer_error(what: String, error: TransferError) -> DataNodeError {
    match error {
        TransferError::Io(source) | TransferError::File(source) => {
            DataNodeError::Io { what, source }
        }
        TransferError::Wire(error) => DataNodeError::Wire(error),
        TransferError::Unknown(error) => DataNodeError::Peer(format!("{what}: {error}")),
        error @ TransferError::Timeout { .. } => DataNodeError::Io {
            what,
            source: io::Error::new(io::ErrorKind::TimedOut, error.to_string()),
        },
    }
}
