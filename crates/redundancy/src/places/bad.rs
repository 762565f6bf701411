//! Replicas and units that are known to be bad.

use crate::block::BlockRef;

/// A bad replica or unit as its DataNode has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bad {
    pub block: BlockRef,
    /// Bad because its stamp is not the block's, so that deleting it loses nothing.
    pub stale: bool,
    /// The CRC of all its bytes, where nothing is held against it but that the record has another.
    pub crc32c: Option<u32>,
}
