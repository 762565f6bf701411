//! Blocks of files as another NameNode has changed them.
//!
//! Source: Hadoop 3.5.0 `FSEditLogLoader#updateBlocks`, `#addNewBlock`, `FSDirAppendOp#prepareFileForAppend`.

use super::carried::{command, file_at, raise, stamp_given};
use crate::block::{self, Block, BlockRef, BlockState, Position};
use crate::counter::{self, Counter};
use crate::error::{NamespaceError, Result};
use crate::import::change;
use crate::inode::{self, Inode, Writer};
use crate::lease;
use crate::ops::truncate::Truncate;
use crate::outcome::Outcome;
use crate::snapshot::kept;
use crate::store::StoreTxn;
use crate::tree::{self, end_block::end_block};

fn wrong(path: &str, what: &str) -> NamespaceError {
    NamespaceError::Io(format!("{path}: {what}"))
}

/// Gives an open file these blocks: those that it has, with other lengths, the last one with another stamp, one less, or
/// more. The last one goes on as it is.
pub fn set_blocks(store: &mut dyn StoreTxn, path: &str, blocks: &[BlockRef]) -> Result<()> {
    change(store, &mut |store| {
        let mut inode = file_at(store, path)?;
        put_blocks(store, path, &mut inode, blocks, false)?;
        inode::put(store, &inode)
    })
}

/// As [`set_blocks`], of a file that is closed with it, at these times of its last change and its last reading.
pub fn close(
    store: &mut dyn StoreTxn,
    path: &str,
    blocks: &[BlockRef],
    (mtime, atime): (u64, u64),
) -> Result<()> {
    change(store, &mut |store| {
        let mut inode = file_at(store, path)?;
        put_blocks(store, path, &mut inode, blocks, true)?;
        (inode.mtime, inode.atime) = (mtime, atime);
        let id = inode.id;
        if let Some(writer) = inode.file_mut().and_then(|file| file.writer.take()) {
            lease::remove(store, &writer.holder, id)?;
        }
        inode::put(store, &inode)
    })
}

/// Ends the last block as `before` says, and adds one.
pub fn add_block(
    store: &mut dyn StoreTxn,
    path: &str,
    before: Option<BlockRef>,
    added: BlockRef,
) -> Result<()> {
    change(store, &mut |store| {
        let mut inode = file_at(store, path)?;
        let last = block::last(store, &inode)?;
        if last.as_ref().map(|last| (last.id, last.gs)) != before.map(|of| (of.id, of.gs)) {
            return Err(wrong(path, "its last block is another one than the log says"));
        }
        if let (Some(last), Some(before)) = (last, before)
            && let Some(file) = inode.file_mut()
        {
            file.len = file.len.saturating_sub(last.len).saturating_add(before.len);
            renew(store, last, before, true)?;
        }
        let id = inode.id;
        let Some(file) = inode.file_mut() else { return Ok(()) };
        let index = u32::try_from(file.block_count);
        let index = index.map_err(|_| wrong(path, "it has too many blocks"))?;
        let block = Block::new(added, (id, index), BlockState::UnderConstruction);
        put_new(store, &block, file.len)?;
        file.block_count += 1;
        file.len = file.len.saturating_add(added.len);
        inode::put(store, &inode)
    })
}

fn put_new(store: &mut dyn StoreTxn, block: &Block, offset: u64) -> Result<()> {
    if block::get(store, block.id)?.is_some() {
        return Err(NamespaceError::Io(format!("there is a block {} already", block.id)));
    }
    block::put(store, block)?;
    block::put_position(store, block.file, block.index, Position { offset, id: block.id })?;
    counter::add(store, Counter::Blocks, 1)?;
    stamp_given(store, block.gs)
}

/// Gives a block that is there the length and stamp of `now`.
fn renew(store: &mut dyn StoreTxn, block: Block, now: BlockRef, completes: bool) -> Result<()> {
    let mut renewed = Block { gs: now.gs, len: now.len, ..block.clone() };
    if block.state != BlockState::Complete && (completes || block.gs != now.gs) {
        renewed.state =
            if completes { BlockState::Complete } else { BlockState::UnderConstruction };
    }
    if renewed == block {
        return Ok(());
    }
    if renewed.len != block.len {
        // What was summed at the other length does not hold any more.
        renewed.unit_crcs.clear();
    }
    block::put(store, &renewed)?;
    if renewed.copy_source().is_none()
        && let Some(source) = block.copy_source()
        && let Some(source) = block::get(store, source)?
        && !kept::is_block_kept(store, &source)?
    {
        // The snapshots that had it went meanwhile.
        end_block(store, &source)?;
    }
    stamp_given(store, now.gs)
}

/// Writes the blocks; the caller writes the inode.
fn put_blocks(
    store: &mut dyn StoreTxn,
    path: &str,
    inode: &mut Inode,
    blocks: &[BlockRef],
    completes_last: bool,
) -> Result<()> {
    let id = inode.id;
    let count = inode.file().map_or(0, |file| file.block_count) as usize;
    if u32::try_from(blocks.len()).is_err() {
        return Err(wrong(path, "it has too many blocks"));
    }
    if blocks.len() + 1 == count {
        tree::remove_last_block(store, inode)?;
    } else if blocks.len() < count {
        return Err(wrong(path, "it loses more than its last block"));
    }
    let mut offset = 0_u64;
    for (index, now) in blocks.iter().enumerate() {
        let is_last = index + 1 == blocks.len();
        let completes = !is_last || completes_last;
        if index < count {
            let (was_at, block) = block::at(store, id, index as u32)?;
            let is_stamped_anew = is_last && blocks.len() == count;
            if block.id != now.id || block.gs != now.gs && !is_stamped_anew {
                return Err(wrong(path, "it has other blocks than the log says"));
            }
            if was_at != offset {
                let position = Position { offset, id: block.id };
                block::put_position(store, id, index as u32, position)?;
            }
            renew(store, block, *now, completes)?;
        } else {
            let state =
                if completes { BlockState::Complete } else { BlockState::UnderConstruction };
            put_new(store, &Block::new(*now, (id, index as u32), state), offset)?;
        }
        offset = offset.saturating_add(now.len);
    }
    if let Some(file) = inode.file_mut() {
        (file.block_count, file.len) = (blocks.len() as u64, offset);
    }
    Ok(())
}

/// Opens a closed file for writing at its end; one that is open stays as it is.
pub fn reopen(
    store: &mut dyn StoreTxn,
    path: &str,
    writer: &Writer,
    new_block: bool,
) -> Result<()> {
    change(store, &mut |store| {
        let mut inode = file_at(store, path)?;
        let last = block::last(store, &inode)?;
        let id = inode.id;
        let Some(file) = inode.file_mut().filter(|file| file.writer.is_none()) else {
            return Ok(());
        };
        let is_full = last.as_ref().is_none_or(|last| last.len == file.block_size);
        let goes_on = last.as_ref().filter(|_| !is_full && !new_block);
        let began_after = last.as_ref().filter(|_| goes_on.is_none()).map(|last| last.id);
        file.writer = Some(Writer { began_after, ..writer.clone() });
        if let Some(last) = goes_on {
            let (state, reopened_gs) = (BlockState::UnderConstruction, Some(last.gs));
            let reopened = Block { state, unit_crcs: Vec::new(), reopened_gs, ..last.clone() };
            block::put(store, &reopened)?;
        }
        lease::add(store, &writer.holder, id, 0)?;
        inode::put(store, &inode)
    })
}

/// Another holder has an open file.
pub fn reassign(store: &mut dyn StoreTxn, path: &str, holder: &str) -> Result<()> {
    change(store, &mut |store| {
        let mut inode = file_at(store, path)?;
        let id = inode.id;
        let Some(writer) = inode.file_mut().and_then(|file| file.writer.as_mut()) else {
            return Err(wrong(path, "nobody has it open"));
        };
        lease::remove(store, &writer.holder, id)?;
        writer.holder = holder.to_string();
        lease::add(store, holder, id, 0)?;
        inode::put(store, &inode)
    })
}

/// A file that is cut off.
#[derive(Clone, Debug)]
pub struct Truncated {
    /// Where.
    pub path: String,
    /// Its bytes after.
    pub new_len: u64,
    /// Who cuts it off.
    pub writer: Writer,
    /// When, in milliseconds since 1970.
    pub time_ms: u64,
    /// The block that is cut off, or takes the place of that one, with the stamp that it gets; none where a block ends.
    pub block: Option<BlockRef>,
}

/// Cuts a file off.
pub fn truncate(store: &mut dyn StoreTxn, of: &Truncated) -> Result<()> {
    let counters = [Counter::GenerationStamp, Counter::BlockId];
    let mut before = [0; 2];
    for (counter, before) in counters.into_iter().zip(&mut before) {
        *before = counter::get(store, counter)?;
    }
    if let Some(block) = of.block {
        // The numbers that are given out next are those that were.
        counter::set(store, Counter::GenerationStamp, block.gs.0.saturating_sub(1))?;
        counter::set(store, Counter::BlockId, (block.id.0 as u64).saturating_sub(1))?;
    }
    let (path, writer) = (&of.path, &of.writer);
    let truncate = Truncate {
        path: path.clone(),
        new_len: of.new_len,
        holder: writer.holder.clone(),
        client_machine: writer.client_machine.clone(),
    };
    let answer = command(store, of.time_ms, truncate)?;
    for (counter, before) in counters.into_iter().zip(before) {
        raise(store, counter, before)?;
    }
    let last = block::last(store, &file_at(store, path)?)?;
    let stamp = |last: &Block| last.recovery().map(|(stamp, _)| stamp);
    let is_so = match (answer, of.block, last) {
        (Outcome::Recovery { .. }, Some(block), Some(last)) => {
            last.id == block.id && stamp(&last) == Some(block.gs)
        }
        (Outcome::Removed { .. }, None, _) => true,
        _ => false,
    };
    match is_so {
        true => Ok(()),
        false => Err(wrong(path, "it is not cut off as the log says")),
    }
}
