//! Blocks and block groups as records, and their order in a file.
//!
//! Table `block`: id (sign bit flipped, big endian) -> [`Block`]. Table `file-block`: inode id, position
//! (4 bytes) -> offset in the file and block id. Where replicas are is not known here.

pub(crate) mod record;

use crate::encoding::to_record;
use crate::error::Result;
use crate::inode::{File, Inode, InodeId};
use crate::store::state::find_position;
use crate::store::{StoreRead, StoreTxn, Table};
use cairn_stripe::BlockId;
use record::VERSION;

pub use crate::store::state::{block_at as at, find_block as get, position};
pub(crate) use record::index_of;
pub use record::{
    Block, BlockRef, BlockState, Membership, PackedIn, Position, decode, file_in, from_key, key,
    position_from, position_key,
};

/// Writes a block.
pub fn put(store: &mut dyn StoreTxn, block: &Block) -> Result<()> {
    Ok(store.put(Table::Block, &key(block.id), &record::encode(block))?)
}

/// Removes a block's record, which is there.
pub fn delete(store: &mut dyn StoreTxn, id: BlockId) -> Result<()> {
    Ok(store.remove(Table::Block, &key(id))?)
}

/// Whether a block is at its place in its file: if not, only snapshots have it.
pub(crate) fn is_in_place(store: &dyn StoreRead, block: &Block) -> Result<bool> {
    let position = find_position(store, block.file, block.index)?;
    Ok(position.is_some_and(|position| position.id == block.id))
}

/// Sets the entry at `index` of a file.
pub fn put_position(
    store: &mut dyn StoreTxn,
    file: InodeId,
    index: u32,
    position: Position,
) -> Result<()> {
    Ok(store.put(Table::FileBlock, &position_key(file, index), &to_record(VERSION, &position))?)
}

/// Removes the entry at `index` of a file, which is there.
pub fn delete_position(store: &mut dyn StoreTxn, file: InodeId, index: u32) -> Result<()> {
    Ok(store.remove(Table::FileBlock, &position_key(file, index))?)
}

/// The last block of a file.
pub fn last(store: &dyn StoreRead, inode: &Inode) -> Result<Option<Block>> {
    before_end(store, inode, 1)
}

/// The block before the last one.
pub fn penultimate(store: &dyn StoreRead, inode: &Inode) -> Result<Option<Block>> {
    before_end(store, inode, 2)
}

/// Whether a block is among the last two of a file that is open.
pub(crate) fn is_at_open_end(inode: &Inode, block: &Block) -> bool {
    inode
        .file()
        .is_some_and(|file| file.writer.is_some() && u64::from(block.index) + 2 >= file.block_count)
}

fn before_end(store: &dyn StoreRead, inode: &Inode, back: u64) -> Result<Option<Block>> {
    match inode.file() {
        Some(File { block_count, .. }) if *block_count >= back => {
            Ok(Some(at(store, inode.id, (block_count - back) as u32)?.1))
        }
        _ => Ok(None),
    }
}
