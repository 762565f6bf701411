//! Two files change their blocks: how a striped file becomes one of plain blocks.

use crate::block::{self, Block, Position};
use crate::encoding::encode_struct;
use crate::error::{NamespaceError, Result};
use crate::inode::{self, File, Inode, InodeId};
use crate::ops::Context;
use crate::outcome::{Conversion, Outcome};
use crate::snapshot::capture;
use crate::store::StoreTxn;
use crate::{path, perm, usage};
use std::sync::Arc;

/// Gives a striped file the blocks of a copy of it that is not, and the copy those of the file. The file stays the same
/// but for how it is kept: its number, names, times, owner and attributes. The copy keeps what readers of the file have
/// found until it is deleted. Nothing is done unless the file is as it was when it was copied.
///
/// Answer: `Outcome::Converted`, of the one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SwapBlocks {
    /// The file.
    pub file: InodeId,
    /// The copy.
    pub copy: InodeId,
    /// When the file was modified last, as it was copied, ms since the epoch.
    pub mtime: u64,
    /// Its bytes as they were copied.
    pub len: u64,
}

encode_struct!(SwapBlocks { file, copy, mtime, len });

impl SwapBlocks {
    pub(crate) fn apply(&self, cx: &mut Context<'_, '_>) -> Result<Outcome> {
        perm::check_superuser(cx.settings, cx.caller)?;
        let (Some((above, mut to)), Some((above_copy, mut copy))) =
            (attached(cx, self.file)?, attached(cx, self.copy)?)
        else {
            return Ok(Outcome::Converted(vec![Conversion::Gone]));
        };
        let (Some(file), Some(other)) = (to.file(), copy.file()) else {
            return Ok(Outcome::Converted(vec![Conversion::Gone]));
        };
        if !file.redundancy.is_striped() {
            return Ok(Outcome::Converted(vec![Conversion::Same]));
        }
        if let Some(why) = self.why_not(cx, &to, file, &copy, other)? {
            return Ok(Outcome::Converted(vec![Conversion::Refused(why.to_string())]));
        }
        let before = usage::counted(cx.store, &above, &to)?;
        let before_copy = usage::counted(cx.store, &above_copy, &copy)?;
        swap(cx.store, &mut to, &mut copy)?;
        let more = usage::counted(cx.store, &above, &to)?.minus(before);
        match usage::verify(cx.store, &above, more) {
            Ok(()) => {}
            Err(NamespaceError::Store(error)) => return Err(error.into()),
            Err(exceeded) => {
                swap(cx.store, &mut to, &mut copy)?;
                let refused = Conversion::Refused(exceeded.to_string());
                return Ok(Outcome::Converted(vec![refused]));
            }
        }
        usage::charge(cx.store, &above, more)?;
        let less = usage::counted(cx.store, &above_copy, &copy)?.minus(before_copy);
        usage::charge(cx.store, &above_copy, less)?;
        copy.mtime = cx.times.wall_ms;
        inode::put(cx.store, &to)?;
        inode::put(cx.store, &copy)?;
        Ok(Outcome::Converted(vec![Conversion::Done]))
    }

    /// Why blocks cannot be swapped, if so.
    fn why_not(
        &self,
        cx: &Context<'_, '_>,
        to: &Inode,
        file: &File,
        copy: &Inode,
        other: &File,
    ) -> Result<Option<&'static str>> {
        let is_held = capture::is_held(cx.store, to.id)? || capture::is_held(cx.store, copy.id)?;
        let why = [
            (file.writer.is_some(), "it is open"),
            (to.mtime != self.mtime || file.len != self.len, "it has changed meanwhile"),
            (is_held, "a snapshot has it"),
            (other.writer.is_some() || other.len != file.len, "its copy is not whole"),
            (other.redundancy.is_striped(), "its copy is striped"),
            (other.block_size != file.block_size, "its copy has another block size"),
        ];
        Ok(why.into_iter().find(|(is_so, _)| *is_so).map(|(_, why)| why))
    }
}

/// A file that a name leads to, and what is above it.
fn attached(cx: &Context<'_, '_>, id: InodeId) -> Result<Option<(Vec<Arc<Inode>>, Inode)>> {
    let Some(mut at) = path::of_inode(cx.store, id)? else { return Ok(None) };
    let inode = at.chain.pop().filter(|inode| !inode.is_directory());
    Ok(inode.map(|inode| (at.chain, Arc::unwrap_or_clone(inode))))
}

/// Changes what two files are made of; the caller writes them.
fn swap(store: &mut dyn StoreTxn, one: &mut Inode, other: &mut Inode) -> Result<()> {
    let of_one = take_out(store, one)?;
    let of_other = take_out(store, other)?;
    put_in(store, one.id, of_other)?;
    put_in(store, other.id, of_one)?;
    if let (Some(one), Some(other)) = (one.file_mut(), other.file_mut()) {
        std::mem::swap(&mut one.redundancy, &mut other.redundancy);
        std::mem::swap(&mut one.block_count, &mut other.block_count);
        std::mem::swap(&mut one.short_appends, &mut other.short_appends);
    }
    Ok(())
}

fn take_out(store: &mut dyn StoreTxn, from: &Inode) -> Result<Vec<(u64, Block)>> {
    let count = from.file().map_or(0, |file| file.block_count as u32);
    let mut blocks = Vec::with_capacity(count as usize);
    for index in 0..count {
        blocks.push(block::at(store, from.id, index)?);
        block::delete_position(store, from.id, index)?;
    }
    Ok(blocks)
}

fn put_in(store: &mut dyn StoreTxn, to: InodeId, blocks: Vec<(u64, Block)>) -> Result<()> {
    for (offset, mut block) in blocks {
        block.file = to;
        block::put(store, &block)?;
        block::put_position(store, to, block.index, Position { offset, id: block.id })?;
    }
    Ok(())
}
