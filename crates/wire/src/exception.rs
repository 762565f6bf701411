//! What a call can fail with: Hadoop's Java classes by name.
//!
//! A client chooses what to do (retry, fail over, show) by the class; a shell shows the first
//! line of the message.

use crate::proto::common::RpcResponseHeaderProtoRpcErrorCodeProto as Code;

/// An exception that travels over RPC.
///
/// `Display` is `class: message`, as Java prints an exception.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{class}: {message}")]
pub struct RemoteException {
    /// Full Java class name, one of [`class`] where Cairn is the sender.
    pub class: String,
    /// What the client shows. Hadoop appends a stack trace in further lines; Cairn sends none.
    pub message: String,
    /// `ERROR_APPLICATION` for what a service throws; other codes come from the RPC layer.
    pub code: Code,
}

impl RemoteException {
    /// An exception of the service itself (`ERROR_APPLICATION`).
    pub fn new(class: impl Into<String>, message: impl Into<String>) -> RemoteException {
        RemoteException::with_code(class, message, Code::ErrorApplication)
    }

    /// An exception with an error code of the RPC layer; a FATAL code closes the connection.
    pub fn with_code(
        class: impl Into<String>,
        message: impl Into<String>,
        code: Code,
    ) -> RemoteException {
        RemoteException { class: class.into(), message: message.into(), code }
    }

    /// `java.io.IOException` with `message`.
    pub fn io(message: impl Into<String>) -> RemoteException {
        RemoteException::new(class::IO, message)
    }

    /// True when the exception is of exactly the Java class `class`.
    pub fn is(&self, class: &str) -> bool {
        self.class == class
    }

    /// The first line of the message: what Hadoop's shells show.
    pub fn first_line(&self) -> &str {
        self.message.lines().next().unwrap_or_default()
    }
}

/// Full names of the Java exception classes that Cairn sends or acts on.
pub mod class {
    /// `java.io.IOException`.
    pub const IO: &str = "java.io.IOException";
    /// `java.io.EOFException`.
    pub const EOF: &str = "java.io.EOFException";
    /// `java.io.FileNotFoundException`.
    pub const FILE_NOT_FOUND: &str = "java.io.FileNotFoundException";
    /// `java.io.InterruptedIOException`.
    pub const INTERRUPTED_IO: &str = "java.io.InterruptedIOException";
    /// `java.lang.IllegalArgumentException`.
    pub const ILLEGAL_ARGUMENT: &str = "java.lang.IllegalArgumentException";
    /// `java.lang.IllegalStateException`.
    pub const ILLEGAL_STATE: &str = "java.lang.IllegalStateException";
    /// `java.lang.NullPointerException`.
    pub const NULL_POINTER: &str = "java.lang.NullPointerException";
    /// `java.lang.UnsupportedOperationException`.
    pub const UNSUPPORTED_OPERATION: &str = "java.lang.UnsupportedOperationException";
    /// `javax.security.sasl.SaslException`.
    pub const SASL: &str = "javax.security.sasl.SaslException";
    /// `org.apache.hadoop.thirdparty.protobuf.InvalidProtocolBufferException`.
    pub const INVALID_PROTOCOL_BUFFER: &str =
        "org.apache.hadoop.thirdparty.protobuf.InvalidProtocolBufferException";
    /// `org.apache.hadoop.security.AccessControlException`.
    pub const ACCESS_CONTROL: &str = "org.apache.hadoop.security.AccessControlException";
    /// `org.apache.hadoop.security.authorize.AuthorizationException`.
    pub const AUTHORIZATION: &str = "org.apache.hadoop.security.authorize.AuthorizationException";
    /// `org.apache.hadoop.security.token.SecretManager$InvalidToken`.
    pub const INVALID_TOKEN: &str = "org.apache.hadoop.security.token.SecretManager$InvalidToken";
    /// `org.apache.hadoop.HadoopIllegalArgumentException`.
    pub const HADOOP_ILLEGAL_ARGUMENT: &str = "org.apache.hadoop.HadoopIllegalArgumentException";
    /// `org.apache.hadoop.fs.FileAlreadyExistsException`.
    pub const FILE_ALREADY_EXISTS: &str = "org.apache.hadoop.fs.FileAlreadyExistsException";
    /// `org.apache.hadoop.fs.InvalidPathException`.
    pub const INVALID_PATH: &str = "org.apache.hadoop.fs.InvalidPathException";
    /// `org.apache.hadoop.fs.ParentNotDirectoryException`.
    pub const PARENT_NOT_DIRECTORY: &str = "org.apache.hadoop.fs.ParentNotDirectoryException";
    /// `org.apache.hadoop.fs.PathExistsException`.
    pub const PATH_EXISTS: &str = "org.apache.hadoop.fs.PathExistsException";
    /// `org.apache.hadoop.fs.PathIOException`.
    pub const PATH_IO: &str = "org.apache.hadoop.fs.PathIOException";
    /// `org.apache.hadoop.fs.PathIsDirectoryException`.
    pub const PATH_IS_DIRECTORY: &str = "org.apache.hadoop.fs.PathIsDirectoryException";
    /// `org.apache.hadoop.fs.PathIsNotDirectoryException`.
    pub const PATH_IS_NOT_DIRECTORY: &str = "org.apache.hadoop.fs.PathIsNotDirectoryException";
    /// `org.apache.hadoop.fs.PathIsNotEmptyDirectoryException`.
    pub const PATH_IS_NOT_EMPTY_DIRECTORY: &str =
        "org.apache.hadoop.fs.PathIsNotEmptyDirectoryException";
    /// `org.apache.hadoop.fs.PathNotFoundException`.
    pub const PATH_NOT_FOUND: &str = "org.apache.hadoop.fs.PathNotFoundException";
    /// `org.apache.hadoop.fs.UnresolvedLinkException`.
    pub const UNRESOLVED_LINK: &str = "org.apache.hadoop.fs.UnresolvedLinkException";
    /// `org.apache.hadoop.fs.ChecksumException`.
    pub const CHECKSUM: &str = "org.apache.hadoop.fs.ChecksumException";
    /// `org.apache.hadoop.ipc.IpcException`.
    pub const IPC: &str = "org.apache.hadoop.ipc.IpcException";
    /// `org.apache.hadoop.ipc.RetriableException`.
    pub const RETRIABLE: &str = "org.apache.hadoop.ipc.RetriableException";
    /// `org.apache.hadoop.ipc.StandbyException`.
    pub const STANDBY: &str = "org.apache.hadoop.ipc.StandbyException";
    /// `org.apache.hadoop.ipc.ObserverRetryOnActiveException`.
    pub const OBSERVER_RETRY_ON_ACTIVE: &str =
        "org.apache.hadoop.ipc.ObserverRetryOnActiveException";
    /// `org.apache.hadoop.ipc.RpcNoSuchMethodException`.
    pub const RPC_NO_SUCH_METHOD: &str = "org.apache.hadoop.ipc.RpcNoSuchMethodException";
    /// `org.apache.hadoop.ipc.RpcNoSuchProtocolException`.
    pub const RPC_NO_SUCH_PROTOCOL: &str = "org.apache.hadoop.ipc.RpcNoSuchProtocolException";
    /// `org.apache.hadoop.ipc.RpcServerException`.
    pub const RPC_SERVER: &str = "org.apache.hadoop.ipc.RpcServerException";
    /// `org.apache.hadoop.ipc.Server$FatalRpcServerException`.
    pub const RPC_FATAL_SERVER: &str = "org.apache.hadoop.ipc.Server$FatalRpcServerException";
    /// `org.apache.hadoop.ipc.RPC$VersionMismatch`.
    pub const RPC_VERSION_MISMATCH: &str = "org.apache.hadoop.ipc.RPC$VersionMismatch";
    /// `org.apache.hadoop.hdfs.protocol.AclException`.
    pub const ACL: &str = "org.apache.hadoop.hdfs.protocol.AclException";
    /// `org.apache.hadoop.hdfs.protocol.AlreadyBeingCreatedException`.
    pub const ALREADY_BEING_CREATED: &str =
        "org.apache.hadoop.hdfs.protocol.AlreadyBeingCreatedException";
    /// `org.apache.hadoop.hdfs.protocol.DSQuotaExceededException`.
    pub const DS_QUOTA_EXCEEDED: &str = "org.apache.hadoop.hdfs.protocol.DSQuotaExceededException";
    /// `org.apache.hadoop.hdfs.protocol.FSLimitException$MaxDirectoryItemsExceededException`.
    pub const MAX_DIRECTORY_ITEMS_EXCEEDED: &str =
        "org.apache.hadoop.hdfs.protocol.FSLimitException$MaxDirectoryItemsExceededException";
    /// `org.apache.hadoop.hdfs.protocol.NoECPolicySetException`.
    pub const NO_EC_POLICY_SET: &str = "org.apache.hadoop.hdfs.protocol.NoECPolicySetException";
    /// `org.apache.hadoop.hdfs.protocol.NSQuotaExceededException`.
    pub const NS_QUOTA_EXCEEDED: &str = "org.apache.hadoop.hdfs.protocol.NSQuotaExceededException";
    /// `org.apache.hadoop.hdfs.protocol.FSLimitException$PathComponentTooLongException`.
    pub const PATH_COMPONENT_TOO_LONG: &str =
        "org.apache.hadoop.hdfs.protocol.FSLimitException$PathComponentTooLongException";
    /// `org.apache.hadoop.hdfs.protocol.QuotaByStorageTypeExceededException`.
    pub const QUOTA_BY_STORAGE_TYPE_EXCEEDED: &str =
        "org.apache.hadoop.hdfs.protocol.QuotaByStorageTypeExceededException";
    /// `org.apache.hadoop.hdfs.protocol.QuotaExceededException`.
    pub const QUOTA_EXCEEDED: &str = "org.apache.hadoop.hdfs.protocol.QuotaExceededException";
    /// `org.apache.hadoop.hdfs.protocol.RecoveryInProgressException`.
    pub const RECOVERY_IN_PROGRESS: &str =
        "org.apache.hadoop.hdfs.protocol.RecoveryInProgressException";
    /// `org.apache.hadoop.hdfs.protocol.RollingUpgradeException`.
    pub const ROLLING_UPGRADE: &str = "org.apache.hadoop.hdfs.protocol.RollingUpgradeException";
    /// `org.apache.hadoop.hdfs.protocol.SnapshotException`.
    pub const SNAPSHOT: &str = "org.apache.hadoop.hdfs.protocol.SnapshotException";
    /// `org.apache.hadoop.hdfs.protocol.SnapshotAccessControlException`.
    pub const SNAPSHOT_ACCESS_CONTROL: &str =
        "org.apache.hadoop.hdfs.protocol.SnapshotAccessControlException";
    /// `org.apache.hadoop.hdfs.protocol.UnregisteredNodeException`.
    pub const UNREGISTERED_NODE: &str = "org.apache.hadoop.hdfs.protocol.UnregisteredNodeException";
    /// `org.apache.hadoop.hdfs.protocol.UnresolvedPathException`.
    pub const UNRESOLVED_PATH: &str = "org.apache.hadoop.hdfs.protocol.UnresolvedPathException";
    /// `org.apache.hadoop.hdfs.protocol.XAttrNotFoundException`.
    pub const XATTR_NOT_FOUND: &str = "org.apache.hadoop.hdfs.protocol.XAttrNotFoundException";
    /// `org.apache.hadoop.hdfs.security.token.block.InvalidBlockTokenException`.
    pub const INVALID_BLOCK_TOKEN: &str =
        "org.apache.hadoop.hdfs.security.token.block.InvalidBlockTokenException";
    /// `org.apache.hadoop.hdfs.server.blockmanagement.UnresolvedTopologyException`.
    pub const UNRESOLVED_TOPOLOGY: &str =
        "org.apache.hadoop.hdfs.server.blockmanagement.UnresolvedTopologyException";
    /// `org.apache.hadoop.hdfs.server.common.InconsistentFSStateException`.
    pub const INCONSISTENT_FS_STATE: &str =
        "org.apache.hadoop.hdfs.server.common.InconsistentFSStateException";
    /// `org.apache.hadoop.hdfs.server.common.IncorrectVersionException`.
    pub const INCORRECT_VERSION: &str =
        "org.apache.hadoop.hdfs.server.common.IncorrectVersionException";
    /// `org.apache.hadoop.hdfs.server.datanode.CorruptMetaHeaderException`.
    pub const CORRUPT_META_HEADER: &str =
        "org.apache.hadoop.hdfs.server.datanode.CorruptMetaHeaderException";
    /// `org.apache.hadoop.hdfs.server.datanode.ReplicaAlreadyExistsException`.
    pub const REPLICA_ALREADY_EXISTS: &str =
        "org.apache.hadoop.hdfs.server.datanode.ReplicaAlreadyExistsException";
    /// `org.apache.hadoop.hdfs.server.datanode.ReplicaNotFoundException`.
    pub const REPLICA_NOT_FOUND: &str =
        "org.apache.hadoop.hdfs.server.datanode.ReplicaNotFoundException";
    /// `org.apache.hadoop.hdfs.server.namenode.LeaseExpiredException`.
    pub const LEASE_EXPIRED: &str = "org.apache.hadoop.hdfs.server.namenode.LeaseExpiredException";
    /// `org.apache.hadoop.hdfs.server.namenode.NotReplicatedYetException`.
    pub const NOT_REPLICATED_YET: &str =
        "org.apache.hadoop.hdfs.server.namenode.NotReplicatedYetException";
    /// `org.apache.hadoop.hdfs.server.namenode.RetryStartFileException`.
    pub const RETRY_START_FILE: &str =
        "org.apache.hadoop.hdfs.server.namenode.RetryStartFileException";
    /// `org.apache.hadoop.hdfs.server.namenode.SafeModeException`.
    pub const SAFE_MODE: &str = "org.apache.hadoop.hdfs.server.namenode.SafeModeException";
    /// `org.apache.hadoop.hdfs.server.protocol.InvalidBlockReportLeaseException`.
    pub const BLOCK_REPORT_LEASE_INVALID: &str =
        "org.apache.hadoop.hdfs.server.protocol.InvalidBlockReportLeaseException";
    /// `org.apache.hadoop.hdfs.server.protocol.DisallowedDatanodeException`.
    pub const DISALLOWED_DATANODE: &str =
        "org.apache.hadoop.hdfs.server.protocol.DisallowedDatanodeException";
    /// `org.apache.hadoop.util.DiskChecker$DiskOutOfSpaceException`.
    pub const DISK_OUT_OF_SPACE: &str =
        "org.apache.hadoop.util.DiskChecker$DiskOutOfSpaceException";
}
