//! Why an operation of the client failed.

use cairn_kms::{KmsError, ProviderPathError};
use cairn_net::rpc_client::RpcError;
use cairn_stripe::{PolicyError, UnitIndex};
use cairn_wire::exception::class;
use cairn_wire::proto::hdfs::Status;
use std::fmt;
use std::io;

/// What went wrong, told apart by whose fault it is.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The NameNode or a DataNode refused, with Hadoop's exception.
    #[error("{class}: {message}")]
    Remote {
        /// Full name of the Java exception class.
        class: String,
        /// Its message; the first line is for people.
        message: String,
    },
    /// The NameNode could not be reached, or the connection broke.
    #[error("{}", of_namenode(addr, source))]
    NameNode {
        /// `host:port`.
        addr: String,
        /// What happened.
        source: RpcError,
    },
    /// A server that was asked by its address could not be reached, or the connection broke.
    #[error("{addr}: {source}")]
    Server {
        /// `host:port`.
        addr: String,
        /// What happened.
        source: RpcError,
    },
    /// Talking to a DataNode failed.
    #[error("DataNode {addr}: {source}")]
    DataNode {
        /// `ip:port` of its data transfer protocol.
        addr: String,
        /// What happened.
        source: io::Error,
    },
    /// A DataNode answered an operation with an error status.
    #[error("DataNode {addr} refused: {message} (status {status})")]
    Refused {
        /// `ip:port` of its data transfer protocol.
        addr: String,
        /// The `Status` number of the data transfer protocol.
        status: i32,
        /// Its words.
        message: String,
        /// The DataNode further down the pipeline that failed, as `ip:port`; empty when it is this.
        first_bad_link: String,
    },
    /// The bytes that came are not those that were written.
    #[error("checksum error in {block} from {addr} at {offset}")]
    Checksum {
        /// Pool, block and stamp.
        block: String,
        /// `ip:port` of the DataNode.
        addr: String,
        /// Offset in the block of the first bad chunk.
        offset: u64,
    },
    /// No replica of a block could be read.
    #[error("no readable replica of {block}: {last}")]
    NoReplica {
        /// Pool, block and stamp.
        block: String,
        /// Why the last one failed.
        last: String,
    },
    /// How much of a block that is being written can be read could not be found out.
    #[error("Cannot obtain block length for {block} of {path}: {last}")]
    UnknownLength {
        /// Pool, block and stamp.
        block: String,
        /// The file.
        path: String,
        /// Why the last DataNode did not tell.
        last: String,
    },
    /// Too few units of a block group could be read.
    #[error("{block}: {left} of the {needed} units needed can be read; lost: {}", listed(lost))]
    TooManyLost {
        /// Pool, group and stamp.
        block: String,
        /// Units that can be read.
        left: usize,
        /// Units needed.
        needed: usize,
        /// Units that can't, and why.
        lost: Vec<LostUnit>,
    },
    /// Too many units of a block group failed while it was written.
    #[error("{block}: {source}")]
    GroupLost {
        /// Pool, group and stamp.
        block: String,
        /// How many.
        source: cairn_stripe::write::GroupLost,
    },
    /// The pipeline of a replicated block failed and could not be mended.
    #[error("{block}: no working pipeline: {reason}")]
    Pipeline {
        /// Pool, block and stamp.
        block: String,
        /// Why.
        reason: String,
    },
    /// The file does not exist.
    #[error("File does not exist: {path}")]
    NotFound {
        /// The path asked for.
        path: String,
    },
    /// The path is of another kind than the operation needs.
    #[error("{path}: {reason}")]
    InvalidPath {
        /// The path asked for.
        path: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The file could not be completed in time.
    #[error(
        "Unable to close file because the last block of {path} does not have enough number of replicas."
    )]
    NotCompleted {
        /// The file.
        path: String,
    },
    /// The writer failed before; nothing more can be written with it.
    #[error("the stream of {path} is broken: {reason}")]
    Broken {
        /// The file.
        path: String,
        /// The first failure.
        reason: String,
    },
    /// A message from outside makes no sense.
    #[error("bad message: {0}")]
    Protocol(String),
    /// The other side names a policy that can't be.
    #[error("bad erasure coding policy: {0}")]
    Policy(#[from] PolicyError),
    /// The code refused its input.
    #[error(transparent)]
    Codec(#[from] cairn_codec::CodecError),
    /// The key servers did not give the key of an encrypted file.
    #[error("{path}: {reason}")]
    Key {
        /// The file.
        path: String,
        /// What they said.
        reason: KmsError,
    },
    /// Neither the NameNode nor the configuration tells who has the keys of encrypted files.
    #[error("{path} is encrypted, and no key provider is configured")]
    NoKeyProvider {
        /// The file.
        path: String,
    },
    /// The key provider is of a kind that is not supported.
    #[error(transparent)]
    KeyProvider(#[from] ProviderPathError),
    /// A file is encrypted in a way that this client does not know.
    #[error("{path} is encrypted with {what}, which is not supported")]
    UnsupportedEncryption {
        /// The file.
        path: String,
        /// The cipher suite or the protocol version.
        what: String,
    },
    /// An argument is out of its range.
    #[error("{0}")]
    Argument(String),
}

/// A unit of a block group that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostUnit {
    /// Its index in the group.
    pub unit: UnitIndex,
    /// The error of each DataNode that has it; empty when the NameNode named none.
    pub errors: Vec<String>,
}

impl fmt::Display for LostUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.errors[..] {
            [] => write!(f, "{} (the NameNode knows of no DataNode that has it)", self.unit),
            errors => write!(f, "{} ({})", self.unit, errors.join("; ")),
        }
    }
}

fn listed(lost: &[LostUnit]) -> String {
    lost.iter().map(LostUnit::to_string).collect::<Vec<_>>().join(", ")
}

/// The result of everything that the client does.
pub type Result<T, E = ClientError> = std::result::Result<T, E>;

/// One sentence, which names the NameNode once.
fn of_namenode(addr: &str, why: &RpcError) -> String {
    match why {
        RpcError::Connect { source, .. } => {
            format!("cannot connect to the NameNode at {addr}: {source}")
        }
        RpcError::Lost { reason, .. } => {
            format!("lost the connection to the NameNode at {addr}: {reason}")
        }
        RpcError::Timeout { method, after, .. } => {
            format!("no answer from the NameNode at {addr} to {method} for {after:?}")
        }
        RpcError::Remote(_) | RpcError::Answer { .. } => format!("NameNode {addr}: {why}"),
    }
}

impl ClientError {
    /// Whether this is Hadoop's exception of that class.
    pub fn is_remote(&self, java_class: &str) -> bool {
        matches!(self, ClientError::Remote { class, .. } if class == java_class)
    }

    /// Whether a DataNode wants another block token: the one that it was shown has ended.
    pub(crate) fn wants_token(&self) -> bool {
        matches!(self, ClientError::Refused { status, .. } if *status == Status::ErrorAccessToken as i32)
    }

    /// Whether the server does not know the method, as Hadoop's servers do not know Cairn's own.
    pub fn is_unknown_method(&self) -> bool {
        self.is_remote(class::RPC_NO_SUCH_METHOD)
    }

    /// Whether the server does not serve the protocol, as a NameNode of no quorum does not that of members.
    pub fn is_unknown_protocol(&self) -> bool {
        self.is_remote(class::RPC_NO_SUCH_PROTOCOL)
    }

    /// What kind of failure it is, as the standard library names kinds; `Other` for most.
    pub fn kind(&self) -> io::ErrorKind {
        use io::ErrorKind as Kind;
        match self {
            ClientError::Remote { class: name, message } => match name.as_str() {
                class::FILE_NOT_FOUND | class::PATH_NOT_FOUND => Kind::NotFound,
                // What users get who may not search a file, for a path below it.
                class::ACCESS_CONTROL if message.ends_with("(is not a directory)") => {
                    Kind::NotADirectory
                }
                class::ACCESS_CONTROL | class::SNAPSHOT_ACCESS_CONTROL | class::AUTHORIZATION => {
                    Kind::PermissionDenied
                }
                class::FILE_ALREADY_EXISTS | class::PATH_EXISTS => Kind::AlreadyExists,
                class::PARENT_NOT_DIRECTORY | class::PATH_IS_NOT_DIRECTORY => Kind::NotADirectory,
                class::PATH_IS_DIRECTORY => Kind::IsADirectory,
                class::PATH_IS_NOT_EMPTY_DIRECTORY => Kind::DirectoryNotEmpty,
                class::SAFE_MODE => Kind::ReadOnlyFilesystem,
                class::DS_QUOTA_EXCEEDED
                | class::NS_QUOTA_EXCEEDED
                | class::QUOTA_BY_STORAGE_TYPE_EXCEEDED
                | class::QUOTA_EXCEEDED => Kind::QuotaExceeded,
                class::LEASE_EXPIRED => Kind::StaleNetworkFileHandle,
                class::UNSUPPORTED_OPERATION => Kind::Unsupported,
                class::ILLEGAL_ARGUMENT | class::HADOOP_ILLEGAL_ARGUMENT | class::INVALID_PATH => {
                    Kind::InvalidInput
                }
                _ => Kind::Other,
            },
            ClientError::NotFound { .. } => Kind::NotFound,
            ClientError::InvalidPath { .. } => Kind::Unsupported,
            ClientError::Argument(_) => Kind::InvalidInput,
            ClientError::Key {
                reason: KmsError::Refused { .. } | KmsError::Server { status: 401 | 403, .. },
                ..
            } => Kind::PermissionDenied,
            ClientError::UnsupportedEncryption { .. } => Kind::Unsupported,
            ClientError::NameNode { .. } | ClientError::Server { .. } => Kind::NotConnected,
            _ => Kind::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exceptions_have_kinds() {
        let kind = |class: &str| {
            ClientError::Remote { class: class.to_string(), message: String::new() }.kind()
        };
        assert_eq!(kind("java.io.FileNotFoundException"), io::ErrorKind::NotFound);
        assert_eq!(kind(class::ACCESS_CONTROL), io::ErrorKind::PermissionDenied);
        assert_eq!(kind(class::SAFE_MODE), io::ErrorKind::ReadOnlyFilesystem);
        assert_eq!(kind("java.io.IOException"), io::ErrorKind::Other);
        let message = "/f (is not a directory)".to_string();
        let below = ClientError::Remote { class: class::ACCESS_CONTROL.to_string(), message };
        assert_eq!(below.kind(), io::ErrorKind::NotADirectory);
        let missing = ClientError::NotFound { path: "/x".to_string() };
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    }
}
