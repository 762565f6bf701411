//! What operations share: putting inodes into the tree and taking them out, counted.

use crate::apply::RemovedBlock;
use crate::block::{self, Block, BlockState};
use crate::error::{NamespaceError, Result};
use crate::inode::{self, FileRedundancy, Inode, InodeId};
use crate::lease;
use crate::ops::counter::{self, Counter};
use crate::ops::set_storage_policy;
use crate::path::Resolved;
use crate::snapshot::reclaim::{self, Removed};
use crate::store::{StoreRead, StoreTxn, Table};
use crate::usage::{self, Usage};
use std::sync::Arc;

/// Children that a walk fetches at a time.
const PAGE: usize = 1000;

/// What is left of a walk: a directory to visit with the storage policy above it, or its children that follow a
/// name, with that in force on it.
enum Ahead {
    Directory(Box<Inode>, u8),
    Children(InodeId, String, u8),
}

/// In which order the directories of a directory are walked (of a page of them, where there are very many).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Siblings {
    /// By name, as Hadoop sums up content.
    FirstFirst,
    /// The other way round, as Hadoop looks for one that refuses.
    LastFirst,
}

/// Calls `visit` for `root` and everything below it, a directory before what is in it.
pub(crate) fn descend(
    store: &dyn StoreRead,
    root: &Inode,
    siblings: Siblings,
    visit: &mut dyn FnMut(&Inode) -> Result<()>,
) -> Result<()> {
    descend_with_policy(store, root, 0, siblings, &mut |inode, _| visit(inode))
}

/// As [`descend`], and says which storage policy is set on an inode or above it; `above` is that above `root`.
pub(crate) fn descend_with_policy(
    store: &dyn StoreRead,
    root: &Inode,
    above: u8,
    siblings: Siblings,
    visit: &mut dyn FnMut(&Inode, u8) -> Result<()>,
) -> Result<()> {
    let in_force = |inode: &Inode, above| match inode.storage_policy {
        0 => above,
        own => own,
    };
    // No recursion: renames can nest directories deeper than a thread's stack.
    let mut open = Vec::new();
    if root.is_directory() {
        open.push(Ahead::Directory(Box::new(root.clone()), above));
    } else {
        visit(root, in_force(root, above))?;
    }
    while let Some(next) = open.pop() {
        let (directory, after, policy) = match next {
            Ahead::Directory(inode, above) => {
                let policy = in_force(&inode, above);
                visit(&inode, policy)?;
                (inode.id, None, policy)
            }
            Ahead::Children(id, after, policy) => (id, Some(after), policy),
        };
        let ids = inode::children(store, directory, after.as_deref().map(str::as_bytes), PAGE)?;
        let full = ids.len() == PAGE;
        let mut below = Vec::new();
        let mut last = None;
        for id in ids {
            let child = inode::expect(store, id)?;
            last = Some(child.name.clone());
            if child.is_directory() {
                below.push(Ahead::Directory(Box::new(child), policy));
            } else {
                visit(&child, in_force(&child, policy))?;
            }
        }
        if let Some(last) = last.filter(|_| full) {
            open.push(Ahead::Children(directory, last, policy));
        }
        if siblings == Siblings::FirstFirst {
            below.reverse();
        }
        open.extend(below);
    }
    Ok(())
}

/// As [`descend`] with the last sibling first, for directories alone: files are not read.
pub(crate) fn descend_directories(
    store: &dyn StoreRead,
    root: &Inode,
    visit: &mut dyn FnMut(&Inode) -> Result<()>,
) -> Result<()> {
    enum Ahead {
        Directory(InodeId),
        Children(InodeId, Option<Vec<u8>>),
    }
    let mut open = Vec::new();
    let mut enter = |open: &mut Vec<Ahead>, inode: &Inode| -> Result<()> {
        if !inode.is_directory() {
            return Ok(());
        }
        visit(inode)?;
        open.push(Ahead::Children(inode.id, None));
        Ok(())
    };
    enter(&mut open, root)?;
    while let Some(next) = open.pop() {
        match next {
            Ahead::Directory(id) => enter(&mut open, &inode::expect(store, id)?)?,
            Ahead::Children(id, after) => {
                let (found, last) = inode::child_directories(store, id, after.as_deref(), PAGE)?;
                if last.is_some() {
                    open.push(Ahead::Children(id, last));
                }
                open.extend(found.into_iter().map(Ahead::Directory));
            }
        }
    }
    Ok(())
}

/// Calls `visit` for every child of a directory, in the order of their names.
pub(crate) fn each_child(
    store: &dyn StoreRead,
    directory: InodeId,
    visit: &mut dyn FnMut(&Inode) -> Result<()>,
) -> Result<()> {
    let mut after: Option<String> = None;
    loop {
        let ids = inode::children(store, directory, after.as_deref().map(str::as_bytes), PAGE)?;
        let full = ids.len() == PAGE;
        for id in ids {
            let child = inode::expect(store, id)?;
            visit(&child)?;
            after = Some(child.name);
        }
        if !full {
            return Ok(());
        }
    }
}

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

/// Gives `inode` another place, which must be free.
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
    update_parent(store, parent, more, now_ms)
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

/// Takes the target of `at` with everything below it out of the tree. Its records go by [`purge`]; what snapshots
/// hold of it counts again when they go.
pub(crate) fn discard(store: &mut dyn StoreTxn, at: &Resolved, now_ms: u64) -> Result<()> {
    // The record may have changed since the path was followed.
    let mut inode = inode::expect(store, at.existing()?.id)?;
    let above = &at.chain[..at.chain.len() - 1];
    if usage::has_quota(above) {
        let usage = usage::below(store, &inode, set_storage_policy::set_above(above))?;
        usage::charge(store, above, usage.negated())?;
    }
    detach(store, &inode, now_ms)?;
    inode.parent = InodeId::NONE;
    inode::put(store, &inode)?;
    Ok(store.put(Table::Garbage, &inode.id.key(), &[])?)
}

/// Removes at most about `limit` inodes and blocks of discarded trees, beginning with `first`.
/// Returns the blocks and whether there is more.
pub(crate) fn purge(
    store: &mut dyn StoreTxn,
    first: Option<InodeId>,
    limit: u64,
) -> Result<(Removed, bool)> {
    let mut removed = Removed::default();
    let mut budget = limit.max(1);
    if let Some(first) = first {
        let root = inode::expect(store, first)?;
        purge_tree(store, root, &mut budget, &mut removed.blocks)?;
    }
    loop {
        let mut root = None;
        store.scan(Table::Garbage, &[], &[], &mut |key, _| {
            root = <[u8; 8]>::try_from(key).ok().map(|id| InodeId(u64::from_be_bytes(id)));
            std::ops::ControlFlow::Break(())
        })?;
        let Some(root) = root else {
            let more = reclaim::reclaim(store, &mut budget, &mut removed)?;
            return Ok((removed, more));
        };
        if budget == 0 {
            return Ok((removed, true));
        }
        let root = inode::expect(store, root)?;
        purge_tree(store, root, &mut budget, &mut removed.blocks)?;
    }
}

/// Removes from the leaves up until the budget is used.
fn purge_tree(
    store: &mut dyn StoreTxn,
    root: Inode,
    budget: &mut u64,
    removed: &mut Vec<RemovedBlock>,
) -> Result<()> {
    // Each level: a directory and those of its children that were fetched and are still there.
    let mut levels: Vec<(Inode, Vec<InodeId>)> = Vec::new();
    let mut at = root;
    loop {
        let fetched = if at.is_directory() {
            inode::children(store, at.id, None, PAGE.min(*budget as usize))?
        } else {
            Vec::new()
        };
        levels.push((at, fetched.into_iter().rev().collect()));
        // Go up over everything that is empty, then down into the next child.
        loop {
            let Some((inode, fetched)) = levels.last_mut() else { return Ok(()) };
            if *budget == 0 {
                return Ok(());
            }
            if let Some(child) = fetched.pop() {
                at = inode::expect(store, child)?;
                break;
            }
            let more = inode::children(store, inode.id, None, PAGE.min(*budget as usize))?;
            if !more.is_empty() {
                *fetched = more.into_iter().rev().collect();
                continue;
            }
            let Some((inode, _)) = levels.pop() else { return Ok(()) };
            if !purge_inode(store, inode, budget, removed)? {
                return Ok(());
            }
        }
    }
}

/// Removes a file with its blocks, or an empty directory; false if the budget ended before.
fn purge_inode(
    store: &mut dyn StoreTxn,
    mut inode: Inode,
    budget: &mut u64,
    removed: &mut Vec<RemovedBlock>,
) -> Result<bool> {
    while inode.file().is_some_and(|file| file.block_count > 0) {
        if *budget == 0 {
            inode::put(store, &inode)?;
            return Ok(false);
        }
        removed.extend(remove_last_block(store, &mut inode)?);
        *budget -= 1;
    }
    if let Some(writer) = inode.file().and_then(|file| file.writer.as_ref()) {
        lease::remove(store, &writer.holder, inode.id)?;
    }
    crate::ops::xattr::remove_all(store, inode.id)?;
    if inode.parent == InodeId::NONE {
        store.delete(Table::Garbage, &inode.id.key())?;
    } else {
        inode::unlink(store, inode.parent, &inode.name)?;
    }
    inode::delete(store, inode.id)?;
    counter::add(store, Counter::Inodes, -1)?;
    *budget = budget.saturating_sub(1);
    Ok(true)
}

/// Takes the last block off a file, and with it the one that it was to be a copy of; the caller writes the inode and
/// counts the space.
pub(crate) fn remove_last_block(
    store: &mut dyn StoreTxn,
    inode: &mut Inode,
) -> Result<Vec<RemovedBlock>> {
    let Some(block) = block::last(store, inode)? else { return Ok(Vec::new()) };
    let id = inode.id;
    let Some(file) = inode.file_mut() else { return Ok(Vec::new()) };
    file.block_count -= 1;
    file.len = file.len.saturating_sub(block.len);
    let redundancy = file.redundancy;
    block::delete_position(store, id, block.index)?;
    let source = match block.copy_source() {
        Some(source) => block::get(store, source)?,
        None => None,
    };
    let mut removed = Vec::new();
    for block in [Some(block), source].into_iter().flatten() {
        removed.push(remove_block(store, &block, redundancy)?);
    }
    Ok(removed)
}

/// Removes the record of a block that no file has at its place any more.
pub(crate) fn remove_block(
    store: &mut dyn StoreTxn,
    block: &Block,
    redundancy: FileRedundancy,
) -> Result<RemovedBlock> {
    block::delete(store, block.id)?;
    counter::add(store, Counter::Blocks, -1)?;
    Ok(RemovedBlock { block: block.reference(), redundancy })
}

/// Closes a file: its blocks are complete, its lease ends.
///
/// Source: Hadoop 3.5.0 `FSNamesystem#finalizeINodeFileUnderConstruction`.
pub(crate) fn close(store: &mut dyn StoreTxn, inode: &mut Inode, now_ms: u64) -> Result<()> {
    inode.mtime = now_ms;
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
    inode::put(store, inode)
}
