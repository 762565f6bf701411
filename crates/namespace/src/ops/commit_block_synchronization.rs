//! The end of a block's recovery.

use crate::block::{self, BlockRef, BlockState};
use crate::encoding::{encode_enum, encode_struct};
use crate::error::{NamespaceError, Result};
use crate::ops::Context;
use crate::outcome::Outcome;
use crate::snapshot::kept;
use crate::tree::end_block::end_block;
use crate::{inode, path, perm, tree, usage, waiting};
use cairn_stripe::GenerationStamp;

/// Whether a recovery that has found nothing drops the block from its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropBlock {
    /// It has found something.
    No,
    /// In any case; what older builds have logged.
    Always,
    /// If the writer was told of no byte of it that it is safe.
    Unacknowledged,
}

encode_enum!(DropBlock { 0 => No, 1 => Always, 2 => Unacknowledged });

impl DropBlock {
    fn is_wanted(self) -> bool {
        self != DropBlock::No
    }
}

impl From<bool> for DropBlock {
    fn from(delete_block: bool) -> DropBlock {
        if delete_block { DropBlock::Unacknowledged } else { DropBlock::No }
    }
}

/// A DataNode has recovered a block.
///
/// Answer: `Outcome::Removed`.
///
/// Source: Hadoop 3.5.0 `FSNamesystem#commitBlockSynchronization`. Deviation: Hadoop drops the block also when the
/// writer was told that bytes of it are safe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitBlockSynchronization {
    /// The block as the DataNode was told.
    pub block: BlockRef,
    /// The recovery's stamp.
    pub new_gs: GenerationStamp,
    /// Its bytes now.
    pub new_len: u64,
    /// Close the file.
    pub close_file: bool,
    /// Whether the block has no bytes, and goes.
    pub delete_block: DropBlock,
}

encode_struct!(CommitBlockSynchronization { block, new_gs, new_len, close_file, delete_block });

impl CommitBlockSynchronization {
    pub(crate) fn apply(&self, cx: &mut Context<'_, '_>) -> Result<Outcome> {
        perm::check_superuser(cx.settings, cx.caller)?;
        let nothing = Outcome::Removed { done: true, more: false };
        let name = format!("{}_{}", self.block.id, self.block.gs);
        let Some(mut block) = block::get(cx.store, self.block.id)? else {
            if self.delete_block.is_wanted() {
                return Ok(nothing);
            }
            return Err(NamespaceError::Io(format!("Block (={name}) not found")));
        };
        let at = path::of_inode(cx.store, block.file)?.ok_or_else(|| {
            NamespaceError::FileNotFound(format!(
                "File not found: inode {}, likely due to delayed block removal",
                block.file
            ))
        })?;
        let mut inode = at.existing()?.clone();
        let source = block.clone();
        let copy = block::last(cx.store, &inode)?.filter(|b| b.copy_source() == Some(source.id));
        let is_copy = copy.is_some();
        block = copy.unwrap_or(block);
        let is_last = block::last(cx.store, &inode)?.is_some_and(|last| last.id == block.id);
        let open = inode.file().is_some_and(|file| file.writer.is_some());
        if !open || !is_last || block.state == BlockState::Complete {
            return Ok(nothing);
        }
        let current = block.recovery().map_or(GenerationStamp(0), |(recovery_gs, _)| recovery_gs);
        if current != self.new_gs {
            return Err(NamespaceError::Io(format!(
                "The recovery id {} does not match current recovery id {current} for block {name}",
                self.new_gs
            )));
        }
        if self.delete_block == DropBlock::Unacknowledged && block.len > 0 {
            return Err(NamespaceError::Io(format!(
                "Block (={name}) is not deleted: {} bytes of it were acknowledged",
                block.len
            )));
        }
        let above = &at.chain[..at.chain.len() - 1];
        if self.delete_block.is_wanted() {
            usage::set_last_len(cx.store, above, &mut inode, &mut block, 0)?;
            tree::remove_last_block(cx.store, &mut inode)?;
            waiting::reopened(cx.store, &inode)?;
        } else {
            if block.len != self.new_len {
                // What was summed at the other length does not hold any more.
                block.unit_crcs.clear();
            }
            block.gs = self.new_gs;
            block.reopened_gs = Some(self.new_gs);
            block.state = BlockState::UnderConstruction;
            usage::set_last_len(cx.store, above, &mut inode, &mut block, self.new_len)?;
        }
        let is_made = is_copy && !self.delete_block.is_wanted();
        if is_made && !kept::is_block_kept(cx.store, &source)? {
            // The snapshots that had it went meanwhile.
            end_block(cx.store, &source)?;
        }
        if self.close_file {
            tree::close(cx.store, cx.settings, &mut inode, cx.times)?;
        } else {
            inode::put(cx.store, &inode)?;
        }
        Ok(Outcome::Removed { done: true, more: false })
    }
}
