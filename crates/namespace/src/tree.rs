//! What operations share: putting inodes into the tree and taking them out, counted.

pub(crate) mod end_block;
pub(crate) mod purge;
pub(crate) mod walk;

use crate::block::{self, BlockState};
use crate::clock::Times;
use crate::counter::{self, Counter};
use crate::error::{NamespaceError, Result};
use crate::inode::{self, Inode, InodeId};
use crate::lease;
use crate::path::resolved::Resolved;
use crate::settings::Settings;
use crate::storage_policy;
use crate::store::{StoreTxn, Table};
use crate::usage::{self, Usage};
use crate::{waiting, xattr};
use end_block::end_block;
use std::sync::Arc;

/// Changes a directory's number of children and its modification time, which never goes back by that: a client may have
/// set one that is still to come.
///
/// Source: Hadoop 3.5.0 `INodeWithAdditionalFields#updateModificationTime`.
fn update_parent(store: &mut dyn StoreTxn, id: InodeId, children: i64, now_ms: u64) -> Result<()> {
    let mut parent = inode::expect(store, id)?;
    parent.mtime = parent.mtime.max(now_ms);
    if let Some(directory) = parent.directory_mut() {
        directory.children = directory.children.saturating_add_signed(children);
    }
    inode::put(store, &parent)
}

/// Writes `inode` under its parent and name, which must be free.
pub(crate) fn attach(store: &mut dyn StoreTxn, inode: &Inode, now_ms: u64) -> Result<()> {
    inode::put(store, inode)?;
    inode::link(store, inode)?;
    update_parent(store, inode.parent, 1, now_ms)
}

/// Takes `inode` out of its parent; the record stays as it was.
pub(crate) fn detach(store: &mut dyn StoreTxn, inode: &Inode, now_ms: u64) -> Result<()> {
    inode::unlink(store, inode.parent, &inode.name)?;
    update_parent(store, inode.parent, -1, now_ms)
}

/// Gives `inode` another place, which must be free. Its new parent was changed when `inode` was, if that is still to
/// come.
///
/// Source: Hadoop 3.5.0 `INodeDirectory#addChild`.
pub(crate) fn relink(
    store: &mut dyn StoreTxn,
    inode: &mut Inode,
    parent: InodeId,
    name: &str,
    now_ms: u64,
) -> Result<()> {
    inode::unlink(store, inode.parent, &inode.name)?;
    let mut more = 0;
    if inode.parent != parent {
        update_parent(store, inode.parent, -1, now_ms)?;
        more = 1;
    }
    inode.parent = parent;
    inode.name = name.to_string();
    inode::put(store, inode)?;
    inode::link(store, inode)?;
    update_parent(store, parent, more, now_ms.max(inode.mtime))
}

/// Puts a new inode into the tree below `chain`, whose last is its parent. The caller has checked
/// names and limits.
pub(crate) fn add(
    store: &mut dyn StoreTxn,
    chain: &[Arc<Inode>],
    inode: &Inode,
    now_ms: u64,
) -> Result<()> {
    if chain.len() == 1 && inode.name == ".reserved" {
        return Err(NamespaceError::HadoopIllegalArgument(
            "File name \".reserved\" is reserved and cannot be created. If this is during upgrade \
             change the name of the existing file or directory to another name before upgrading to \
             the new release."
                .to_string(),
        ));
    }
    usage::verify(store, chain, Usage::name())?;
    usage::charge(store, chain, Usage::name())?;
    attach(store, inode, now_ms)?;
    counter::add(store, Counter::Inodes, 1)
}

/// Takes the target of `at`, whose record is `inode`, with everything below it out of its directory, and counts that.
fn take_out(store: &mut dyn StoreTxn, at: &Resolved, inode: &Inode, now_ms: u64) -> Result<()> {
    let above = &at.chain[..at.chain.len() - 1];
    if usage::has_quota(above) {
        let usage = usage::below(store, inode, storage_policy::set_above(above))?;
        usage::charge(store, above, usage.negated())?;
    }
    detach(store, inode, now_ms)
}

/// Takes the target of `at` with everything below it out of the tree. Its records go by [`purge::purge`]; what snapshots
/// hold of it counts again when they go.
pub(crate) fn discard(store: &mut dyn StoreTxn, at: &Resolved, now_ms: u64) -> Result<()> {
    // The record may have changed since the path was followed.
    let mut inode = inode::expect(store, at.existing()?.id)?;
    take_out(store, at, &inode, now_ms)?;
    inode.parent = InodeId::NONE;
    inode::put(store, &inode)?;
    Ok(store.put(Table::Garbage, &inode.id.key(), &[])?)
}

/// Removes the target of `at`, a file or an empty directory whose record has not changed since the path was followed,
/// with all that it has.
pub(crate) fn remove_one(store: &mut dyn StoreTxn, at: &Resolved, now_ms: u64) -> Result<()> {
    let inode = at.existing()?;
    take_out(store, at, inode, now_ms)?;
    let mut budget = u64::MAX;
    remove_blocks(store, &mut inode.clone(), &mut budget)?;
    remove_records(store, inode)
}

/// Removes the blocks of a file, the last one first; false if the budget ended before.
fn remove_blocks(store: &mut dyn StoreTxn, inode: &mut Inode, budget: &mut u64) -> Result<bool> {
    while inode.file().is_some_and(|file| file.block_count > 0) {
        if *budget == 0 {
            return Ok(false);
        }
        remove_last_block(store, inode)?;
        *budget -= 1;
    }
    Ok(true)
}

/// Removes what is left of a file without blocks, or of an empty directory, that no name leads to.
fn remove_records(store: &mut dyn StoreTxn, inode: &Inode) -> Result<()> {
    if let Some(writer) = inode.file().and_then(|file| file.writer.as_ref()) {
        lease::remove(store, &writer.holder, inode.id)?;
    }
    xattr::remove_all(store, inode.id)?;
    if inode.directory().is_some_and(|directory| directory.is_zone) {
        store.remove(Table::EncryptionZone, &inode.id.key())?;
    }
    inode::delete(store, inode.id)?;
    counter::add(store, Counter::Inodes, -1)
}

/// Takes the last block off a file, and with it the one that it was to be a copy of; the caller writes the inode and
/// counts the space.
pub(crate) fn remove_last_block(store: &mut dyn StoreTxn, inode: &mut Inode) -> Result<()> {
    let Some(block) = block::last(store, inode)? else { return Ok(()) };
    let id = inode.id;
    let Some(file) = inode.file_mut() else { return Ok(()) };
    file.block_count -= 1;
    file.len = file.len.saturating_sub(block.len);
    block::delete_position(store, id, block.index)?;
    let source = match block.copy_source() {
        Some(source) => block::get(store, source)?,
        None => None,
    };
    for block in [Some(block), source].into_iter().flatten() {
        end_block(store, &block)?;
    }
    Ok(())
}

/// Closes a file: its blocks are complete, its lease ends.
///
/// Source: Hadoop 3.5.0 `FSNamesystem#finalizeINodeFileUnderConstruction`.
pub(crate) fn close(
    store: &mut dyn StoreTxn,
    settings: &Settings,
    inode: &mut Inode,
    times: Times,
) -> Result<()> {
    inode.mtime = times.wall_ms;
    let id = inode.id;
    let Some(file) = inode.file_mut() else { return Ok(()) };
    // A new block completes the one before the last, so more than two cannot be open; the last one may
    // be complete before the other.
    for index in (0..file.block_count as u32).rev().take(2) {
        let (_, mut block) = block::at(store, id, index)?;
        if block.state != BlockState::Complete {
            block.state = BlockState::Complete;
            block::put(store, &block)?;
        }
    }
    if let Some(writer) = file.writer.take() {
        lease::remove(store, &writer.holder, id)?;
    }
    inode::put(store, inode)?;
    waiting::closed(store, settings, inode, times.elapsed_ms)
}
