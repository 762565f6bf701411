//! What is asked of a replica, whichever way it is read.

use crate::protocol::convert::Token;
use crate::types::Block;

/// Longest chunk of a checksum that is taken from a DataNode.
pub(super) const MAX_CHUNK_LEN: u32 = 1 << 20;

/// What to read.
#[derive(Clone, Debug)]
pub(crate) struct ReadRange {
    pub block: Block,
    pub token: Token,
    /// First byte, from the start of the block.
    pub offset: u64,
    /// Bytes, at least 1.
    pub len: u64,
    /// Whether long packets are welcome: they cost both ends less where they are read to the place that they stay in.
    pub long_packets: bool,
}
