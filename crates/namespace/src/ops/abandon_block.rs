//! Taking back the last block of an open file.

use crate::block::{self, BlockRef, BlockState};
use crate::encoding::encode_struct;
use crate::error::Result;
use crate::inode::{self, InodeId};
use crate::ops::{self, Context};
use crate::outcome::Outcome;
use crate::{perm, tree, usage, waiting};

/// Takes back the last block.
///
/// Answer: `Outcome::Removed`.
///
/// Source: Hadoop 3.5.0 `FSDirWriteFileOp#abandonBlock`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AbandonBlock {
    /// The file.
    pub path: String,
    /// Its id, if the client sent it.
    pub file: Option<InodeId>,
    /// The lease holder.
    pub holder: String,
    /// The block.
    pub block: BlockRef,
}

encode_struct!(AbandonBlock { path, file, holder, block });

impl AbandonBlock {
    pub(crate) fn apply(&self, cx: &mut Context<'_, '_>) -> Result<Outcome> {
        let at =
            ops::open_file(cx.store, (cx.caller, cx.command), &self.path, self.file, &self.holder)?;
        let mut inode = at.existing()?.clone();
        let none = Outcome::Removed { done: true, more: false };
        let Some(last) = block::last(cx.store, &inode)? else { return Ok(none) };
        // The client of a striped file goes on with the units that still live.
        if last.id.is_striped() || last.id != self.block.id || last.is_final() {
            return Ok(none);
        }
        let mut last = last;
        let above = &at.chain[..at.chain.len() - 1];
        usage::set_last_len(cx.store, above, &mut inode, &mut last, 0)?;
        tree::remove_last_block(cx.store, &mut inode)?;
        waiting::reopened(cx.store, &inode)?;
        inode::put(cx.store, &inode)?;
        Ok(Outcome::Removed { done: true, more: false })
    }
}

/// Takes back the last block of an open file, which has no bytes yet and whose writer was never told where it goes: the
/// storages that were chosen for it are forgotten.
///
/// Answer: `Outcome::Done`; nothing is done if the block is not as it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WithdrawBlock {
    /// The file.
    pub file: InodeId,
    /// The block.
    pub block: BlockRef,
}

encode_struct!(WithdrawBlock { file, block });

impl WithdrawBlock {
    pub(crate) fn apply(&self, cx: &mut Context<'_, '_>) -> Result<Outcome> {
        perm::check_superuser(cx.settings, cx.caller)?;
        let Some(mut inode) = inode::get(cx.store, self.file)? else { return Ok(Outcome::Done) };
        let last = block::last(cx.store, &inode)?;
        let is_as_it_was = |block: &block::Block| {
            block.reference() == self.block
                && block.len == 0
                && block.state == BlockState::UnderConstruction
        };
        if last.as_ref().is_some_and(is_as_it_was) {
            tree::remove_last_block(cx.store, &mut inode)?;
            waiting::reopened(cx.store, &inode)?;
            inode::put(cx.store, &inode)?;
        }
        Ok(Outcome::Done)
    }
}
