//! A block as operations name it.

use cairn_codec::crc::ChecksumKind;
use cairn_stripe::{BlockId, GenerationStamp};

/// A block as a peer names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) pool: String,
    pub(crate) id: BlockId,
    pub(crate) gs: GenerationStamp,
    pub(crate) len: u64,
}

/// How a replica's bytes are checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Checksum {
    pub(crate) kind: ChecksumKind,
    pub(crate) chunk_len: usize,
}
