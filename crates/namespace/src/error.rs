//! What a command or query can refuse, by Hadoop's exception classes, and how a store fails.
//!
//! A variant of [`NamespaceError`] is an exception class; its text is Hadoop's message, built where the reason is known.

use crate::encoding::DecodeError;

/// Why the store gave no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The backend failed: disk, file, lock.
    #[error("the namespace store failed: {0}")]
    Backend(String),
    /// A record or a reference between records is damaged.
    #[error("damaged {what} in the namespace store: {reason}")]
    Corrupt {
        /// Which kind of record.
        what: &'static str,
        /// What is wrong with it.
        reason: String,
    },
}

macro_rules! exceptions {
    ($($(#[$doc:meta])* $variant:ident = $class:literal,)*) => {
        /// Why a command was refused or a query has no answer.
        #[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
        pub enum NamespaceError {
            $($(#[$doc])* #[error("{0}")] $variant(String),)*
            /// The store failed or holds damaged records: the server must stop, not go on.
            #[error("{0}")]
            Store(#[from] StoreError),
        }

        impl NamespaceError {
            /// The Java class that Hadoop throws for this.
            pub fn exception_class(&self) -> &'static str {
                match self {
                    $(NamespaceError::$variant(_) => $class,)*
                    NamespaceError::Store(_) => "java.io.IOException",
                }
            }
        }
    };
}

exceptions! {
    /// The caller may not do this.
    AccessControl = "org.apache.hadoop.security.AccessControlException",
    /// The caller may not create here (sent for a blocked ancestor that is a file).
    ParentNotDirectory = "org.apache.hadoop.fs.ParentNotDirectoryException",
    /// An access control list that cannot be, or may not.
    Acl = "org.apache.hadoop.hdfs.protocol.AclException",
    /// A path or an inode that is not there.
    FileNotFound = "java.io.FileNotFoundException",
    /// The path is taken.
    FileAlreadyExists = "org.apache.hadoop.fs.FileAlreadyExistsException",
    /// A delegation token that was not issued, or has ended.
    InvalidToken = "org.apache.hadoop.security.token.SecretManager$InvalidToken",
    /// Another client writes the file.
    AlreadyBeingCreated = "org.apache.hadoop.hdfs.protocol.AlreadyBeingCreatedException",
    /// The file's last block is being recovered; come back later.
    RecoveryInProgress = "org.apache.hadoop.hdfs.protocol.RecoveryInProgressException",
    /// The caller does not hold the file's lease.
    LeaseExpired = "org.apache.hadoop.hdfs.server.namenode.LeaseExpiredException",
    /// Earlier blocks have too few replicas yet; the client tries again.
    NotReplicatedYet = "org.apache.hadoop.hdfs.server.namenode.NotReplicatedYetException",
    /// The last block of a file that is to grow has too few replicas.
    LastBlockNotReplicated = "java.io.IOException",
    /// The client may try again soon.
    Retriable = "org.apache.hadoop.ipc.RetriableException",
    /// A packed block is to be changed, which must be plain first; the client may try again soon.
    Packed = "org.apache.hadoop.ipc.RetriableException",
    /// An extended attribute that is not there, or not to be seen.
    XAttrNotFound = "org.apache.hadoop.hdfs.protocol.XAttrNotFoundException",
    /// A file is to be made in an encryption zone, and the call has no key of that zone for it.
    RetryStartFile = "org.apache.hadoop.hdfs.server.namenode.RetryStartFileException",
    /// A path that no file can have.
    InvalidPath = "org.apache.hadoop.fs.InvalidPathException",
    /// A directory with children where an empty one is needed.
    PathIsNotEmptyDirectory = "org.apache.hadoop.fs.PathIsNotEmptyDirectoryException",
    /// A directory where a file is needed, or the other way round.
    PathIsNotDirectory = "org.apache.hadoop.fs.PathIsNotDirectoryException",
    /// A snapshot or a snapshottable directory that is not there, or in the way.
    Snapshot = "org.apache.hadoop.hdfs.protocol.SnapshotException",
    /// A change of something in a snapshot.
    SnapshotAccessControl = "org.apache.hadoop.hdfs.protocol.SnapshotAccessControlException",
    /// The entry after which a listing is to go on is gone.
    ListingStartNotFound = "org.apache.hadoop.fs.DirectoryListingStartAfterNotFoundException",
    /// Too many names and files below a directory.
    NsQuotaExceeded = "org.apache.hadoop.hdfs.protocol.NSQuotaExceededException",
    /// Too many bytes below a directory.
    DsQuotaExceeded = "org.apache.hadoop.hdfs.protocol.DSQuotaExceededException",
    /// Too many bytes below a directory on one type of storage.
    TypeQuotaExceeded =
        "org.apache.hadoop.hdfs.protocol.QuotaByStorageTypeExceededException",
    /// A call that the configuration does not allow.
    UnsupportedAction = "org.apache.hadoop.hdfs.server.namenode.UnsupportedActionException",
    /// A name that is too long.
    PathComponentTooLong =
        "org.apache.hadoop.hdfs.protocol.FSLimitException$PathComponentTooLongException",
    /// A directory with too many children.
    MaxDirectoryItems =
        "org.apache.hadoop.hdfs.protocol.FSLimitException$MaxDirectoryItemsExceededException",
    /// An erasure coding policy that can't be used as asked.
    HadoopIllegalArgument = "org.apache.hadoop.HadoopIllegalArgumentException",
    /// An erasure coding policy that was asked for does not exist or was not set.
    NoEcPolicySet = "org.apache.hadoop.hdfs.protocol.NoECPolicySetException",
    /// A path that does not begin with a slash.
    Assertion = "java.lang.AssertionError",
    /// A cache pool or directive that can't be as asked.
    InvalidRequest = "org.apache.hadoop.fs.InvalidRequestException",
    /// An argument that makes no sense.
    IllegalArgument = "java.lang.IllegalArgumentException",
    /// Something this file system does not do.
    UnsupportedOperation = "java.lang.UnsupportedOperationException",
    /// Anything that Hadoop reports as a plain I/O error.
    Io = "java.io.IOException",
}

impl From<DecodeError> for NamespaceError {
    fn from(error: DecodeError) -> NamespaceError {
        NamespaceError::Store(StoreError::Corrupt { what: "record", reason: error.to_string() })
    }
}

/// The result of every operation.
pub type Result<T, E = NamespaceError> = std::result::Result<T, E>;
