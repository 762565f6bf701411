//! Blocks as files of clients have them.

use cairn_namespace::BlockRef;
use cairn_writer::Block;

/// Bytes of a block, and of a unit of a group.
pub(super) const BLOCK_LEN: u64 = 4096;

pub(super) fn writer_block(block: BlockRef) -> Block {
    Block { id: block.id, stamp: block.gs, len: block.len }
}

pub(super) fn block_ref(block: Block) -> BlockRef {
    BlockRef { id: block.id, gs: block.stamp, len: block.len }
}
