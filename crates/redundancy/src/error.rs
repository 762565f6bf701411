//! What a DataNode or a client can do wrong.

/// Why a DataNode's or client's request is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RedundancyError {
    /// No live DataNode has registered under this id.
    #[error("Data node {uuid} is not registered")]
    UnregisteredNode {
        /// The DataNode's UUID.
        uuid: String,
    },
    /// The one that has registered under this id is another one than calls, or than is named.
    ///
    /// Source of its words: Hadoop 3.5.0 `UnregisteredNodeException`.
    #[error(
        "Data node {claimed} is attempting to report storage ID {uuid}. Node {registered} is expected \
         to serve this storage."
    )]
    OtherNode {
        /// The UUID that both have.
        uuid: String,
        /// Where the one is that is not taken, as it claims itself.
        claimed: String,
        /// Where the one is that has registered.
        registered: String,
        /// Whether that one has taken the place of this one, which is to stop.
        is_replaced: bool,
    },
    /// A full report came without the leave to send it, or after that ran out.
    #[error("Block report lease {lease_id:#x} of {uuid} is not valid")]
    InvalidReportLease {
        /// The DataNode's UUID.
        uuid: String,
        /// What it sent.
        lease_id: u64,
    },
    /// What a call reports in full is of an earlier time than what is known of its DataNode.
    #[error("Data node {uuid} has reported anew, registered or died since")]
    ReportOvertaken {
        /// The DataNode's UUID.
        uuid: String,
    },
    /// A storage that the DataNode doesn't have.
    #[error("Data node {uuid} has no storage {storage}")]
    UnknownStorage {
        /// The DataNode's UUID.
        uuid: String,
        /// The storage's UUID.
        storage: String,
    },
    /// More storages than a DataNode may ever have named.
    #[error("Data node {uuid} has named {max} storages and may name no more")]
    TooManyStorages {
        /// The DataNode's UUID.
        uuid: String,
        /// How many it may name.
        max: usize,
    },
    /// More storages than places can tell apart.
    #[error("the cluster has had {max} storages and can have no more")]
    NoMoreStorages {
        /// How many there can be.
        max: usize,
    },
    /// A storage's name that no DataNode would make.
    #[error("Data node {uuid} names a storage with {len} bytes, more than {max}")]
    StorageNameTooLong {
        /// The DataNode's UUID.
        uuid: String,
        /// Bytes of the name.
        len: usize,
        /// How many there may be.
        max: usize,
    },
    /// Nothing is known of the block.
    #[error("block blk_{id} is not known")]
    UnknownBlock {
        /// The block or group.
        id: i64,
    },
}

impl RedundancyError {
    /// Whether another DataNode than the one that has registered shows by it that it lives, in another place. What a
    /// process has sent before it was killed may come after its successor has registered: it has the same address.
    pub fn shows_twin(&self) -> bool {
        match self {
            RedundancyError::OtherNode { claimed, registered, is_replaced, .. } => {
                *is_replaced && claimed != registered
            }
            _ => false,
        }
    }
}
