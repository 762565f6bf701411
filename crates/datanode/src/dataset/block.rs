//! A block as operations name it.

use cairn_stripe::{BlockId, GenerationStamp};

/// A block as a peer names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) pool: String,
    pub(crate) id: BlockId,
    pub(crate) gs: GenerationStamp,
    pub(crate) len: u64,
}
