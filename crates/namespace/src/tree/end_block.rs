//! The end of a block's life, of which there is one.

use crate::block::{self, Block};
use crate::counter::{self, Counter};
use crate::error::Result;
use crate::inode::InodeId;
use crate::store::StoreTxn;
use crate::{container, group, unpacking, waiting};

/// Ends the life of a block that no file has at its place any more. A member of a group is only retired: the others may
/// need its bytes, so its record stays as a tombstone until the group goes.
pub(crate) fn end_block(store: &mut dyn StoreTxn, block: &Block) -> Result<()> {
    waiting::forget(store, block.id)?;
    if let Some(packed) = block.packed {
        // The length may have been taken off it together with the file's.
        let row = container::slots(store, packed.container, packed.slot, 1)?;
        let len = row.first().map_or(block.len, |(_, member)| member.len);
        container::leave(store, block, len)?;
        unpacking::forget(store, block.id)?;
    }
    match group::set_live(store, block, false)? {
        Some(member) => {
            // The length may have been taken off it together with the file's.
            let (file, index, len) = (InodeId::NONE, 0, member.len);
            block::put(store, &Block { file, index, len, ..block.clone() })
        }
        None => remove_block(store, block),
    }
}

/// Removes the record of a tombstone whose group is gone.
pub(crate) fn end_tombstone(store: &mut dyn StoreTxn, block: &Block) -> Result<()> {
    remove_block(store, block)
}

fn remove_block(store: &mut dyn StoreTxn, block: &Block) -> Result<()> {
    block::delete(store, block.id)?;
    counter::add(store, Counter::Blocks, -1)
}
