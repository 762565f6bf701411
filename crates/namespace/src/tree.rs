//! What operations share: putting inodes into the tree and taking them out, counted.

use crate::apply::RemovedBlock;
use crate::block::{self, Block, BlockState};
use crate::counter::{self, Counter};
use crate::error::{NamespaceError, Result};
use crate::inode::{self, FileRedundancy, Inode, InodeId, InodeRef, Kind};
use crate::lease;
use crate::path::Resolved;
use crate::snapshot::reclaim::{self, Removed};
use crate::storage_policy;
use crate::store::{StoreRead, StoreTxn, Table, scan_prefixes};
use crate::usage::{self, Usage};
use crate::xattr;
use std::sync::Arc;

/// Children that a walk fetches at a time.
const PAGE: usize = 1000;

/// What is left of a walk: a directory to visit with the storage policy above it, or its children that follow a
/// name, with that in force on it.
enum Ahead {
    Directory(Box<Inode>, u8),
    Children(InodeId, String, u8),
}

/// Calls `visit` for `root` and everything below it, a directory before what is in it, siblings
/// in the order of their names (of a page of them, where there are very many), as Hadoop sums up content.
pub(crate) fn descend(
    store: &dyn StoreRead,
    root: &Inode,
    visit: &mut dyn FnMut(&Inode) -> Result<()>,
) -> Result<()> {
    descend_with_policy(store, root, 0, &mut |inode, _| visit(inode))
}

/// As [`descend`], and says which storage policy is set on an inode or above it; `above` is that above `root`.
pub(crate) fn descend_with_policy(
    store: &dyn StoreRead,
    root: &Inode,
    above: u8,
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
        open.extend(below.into_iter().rev());
    }
    Ok(())
}

/// As [`descend`] with the last sibling first, as Hadoop looks for one that refuses, and for directories alone: files
/// are not read.
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

/// Takes the target of `at` with everything below it out of the tree. Its records go by [`purge`]; what snapshots
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
pub(crate) fn remove_one(
    store: &mut dyn StoreTxn,
    at: &Resolved,
    now_ms: u64,
) -> Result<Vec<RemovedBlock>> {
    let inode = at.existing()?;
    take_out(store, at, inode, now_ms)?;
    let (mut removed, mut budget) = (Vec::new(), u64::MAX);
    remove_blocks(store, &mut inode.clone(), &mut budget, &mut removed)?;
    remove_records(store, inode)?;
    Ok(removed)
}

/// Removes at most about `limit` inodes and blocks of discarded trees. Returns the blocks and whether there is more.
pub(crate) fn purge(store: &mut dyn StoreTxn, limit: u64) -> Result<(Removed, bool)> {
    let mut removed = Removed::default();
    let mut budget = limit.max(1);
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

/// As [`purge`], of one discarded tree. Returns whether there is more of it.
pub(crate) fn purge_one(
    store: &mut dyn StoreTxn,
    root: InodeId,
    limit: u64,
) -> Result<(Vec<RemovedBlock>, bool)> {
    let (mut removed, mut budget) = (Vec::new(), limit.max(1));
    let inode = inode::expect(store, root)?;
    purge_tree(store, inode, &mut budget, &mut removed)?;
    Ok((removed, store.peek(Table::Garbage, &root.key(), &mut |_| {})?))
}

/// Removes from the leaves up until the budget is used.
fn purge_tree(
    store: &mut dyn StoreTxn,
    root: Inode,
    budget: &mut u64,
    removed: &mut Vec<RemovedBlock>,
) -> Result<()> {
    // Each level: a directory and those of its children that were fetched and are still there, no files among them.
    let mut levels: Vec<(Inode, Vec<InodeId>)> = vec![(root, Vec::new())];
    while let Some((inode, fetched)) = levels.last_mut() {
        if *budget == 0 {
            return Ok(());
        }
        if let Some(child) = fetched.pop() {
            levels.push((inode::expect(store, child)?, Vec::new()));
            continue;
        }
        if inode.is_directory() {
            let page = inode::entries(store, inode.id, PAGE.min(*budget as usize))?;
            if !page.is_empty() {
                let files: Vec<_> = page
                    .iter()
                    .filter(|entry| entry.2)
                    .map(|(key, id, _)| (*id, &key[..]))
                    .collect();
                let others = page.iter().filter(|entry| !entry.2).map(|entry| entry.1);
                *fetched = others.rev().collect();
                purge_files(store, files, budget, removed)?;
                continue;
            }
        }
        let Some((mut inode, _)) = levels.pop() else { return Ok(()) };
        if !remove_blocks(store, &mut inode, budget, removed)? {
            return inode::put(store, &inode);
        }
        if inode.parent == InodeId::NONE {
            store.remove(Table::Garbage, &inode.id.key())?;
        } else {
            inode::unlink(store, inode.parent, &inode.name)?;
        }
        remove_records(store, &inode)?;
        *budget = budget.saturating_sub(1);
    }
    Ok(())
}

/// Blocks of a file that is removed together with others.
const BLOCKS_TOGETHER: u64 = 16;

/// A file that is to be removed.
struct Doomed {
    id: InodeId,
    redundancy: FileRedundancy,
    block_count: u64,
    /// It is open, or has many blocks.
    is_special: bool,
    blocks: Vec<Block>,
}

/// Removes children of a directory that is not attached any more, files all of them with the keys of their entries,
/// until the budget is used. They were mostly made one after the other, so that their records lie side by side.
fn purge_files(
    store: &mut dyn StoreTxn,
    mut files: Vec<(InodeId, &[u8])>,
    budget: &mut u64,
    removed: &mut Vec<RemovedBlock>,
) -> Result<()> {
    files.sort_unstable();
    let mut found = read_files(store, &files)?;
    let mut left = *budget;
    found.retain(|file| {
        let is_within = left > 0;
        left = left.saturating_sub(1 + file.block_count);
        is_within
    });
    read_blocks(store, &mut found)?;
    let is_alone = |file: &Doomed| {
        // One whose records do not fit is told of where it is looked at by itself.
        file.is_special
            || file.blocks.len() as u64 != file.block_count
            || file.blocks.iter().any(|block| block.copy_source().is_some())
    };
    let (alone, together): (Vec<_>, Vec<_>) = found.into_iter().partition(is_alone);
    let keys: Vec<_> = together.iter().map(|file| file.id.key()).collect();
    let mut attributes = Vec::new();
    scan_prefixes(store, Table::XAttr, &keys, &mut |_, key, _| attributes.push(key.to_vec()))?;
    for key in attributes {
        store.remove(Table::XAttr, &key)?;
    }
    let entry = |id| files.binary_search_by_key(&id, |(id, _)| *id).map(|place| files[place].1);
    let (inodes, mut blocks) = (together.len() as i64, 0);
    for file in together {
        blocks += file.blocks.len() as i64;
        for block in &file.blocks {
            block::delete_position(store, file.id, block.index)?;
            block::delete(store, block.id)?;
            let redundancy = file.redundancy;
            removed.push(RemovedBlock { block: block.reference(), redundancy });
        }
        if let Ok(key) = entry(file.id) {
            store.remove(Table::Child, key)?;
        }
        inode::delete(store, file.id)?;
    }
    *budget = budget.saturating_sub((inodes + blocks) as u64);
    for (counter, count) in [(Counter::Inodes, inodes), (Counter::Blocks, blocks)] {
        if count > 0 {
            counter::add(store, counter, -count)?;
        }
    }
    for file in alone {
        if *budget > 0 {
            let inode = inode::expect(store, file.id)?;
            purge_tree(store, inode, budget, removed)?;
        }
    }
    Ok(())
}

/// What is known of files whose ids ascend, without their blocks.
fn read_files(store: &dyn StoreRead, files: &[(InodeId, &[u8])]) -> Result<Vec<Doomed>> {
    let keys: Vec<_> = files.iter().map(|(id, _)| id.key()).collect();
    let mut found = Vec::with_capacity(files.len());
    scan_prefixes(store, Table::Inode, &keys, &mut |_, _, record| {
        found.push(InodeRef::from_bytes(record).map(|inode| match inode.kind {
            Kind::File(file) => Doomed {
                id: inode.id,
                redundancy: file.redundancy,
                block_count: file.block_count,
                is_special: file.writer.is_some() || file.block_count > BLOCKS_TOGETHER,
                blocks: Vec::new(),
            },
            Kind::Directory(_) => Doomed {
                id: inode.id,
                redundancy: FileRedundancy::Replicated(0),
                block_count: 0,
                is_special: true,
                blocks: Vec::new(),
            },
        }));
    })?;
    let found: Vec<_> = found.into_iter().collect::<Result<_>>()?;
    for (id, _) in files.iter().skip(found.len()) {
        inode::expect(store, *id)?;
    }
    Ok(found)
}

/// Finds the blocks of files whose ids ascend; no more than are removed together.
fn read_blocks(store: &dyn StoreRead, files: &mut [Doomed]) -> Result<()> {
    let with_blocks = |file: &Doomed| file.block_count > 0 && !file.is_special;
    let places: Vec<_> =
        files.iter().enumerate().filter(|(_, file)| with_blocks(file)).map(|(at, _)| at).collect();
    let keys: Vec<_> = places.iter().map(|at| files[*at].id.key()).collect();
    let mut positions = Vec::with_capacity(keys.len());
    scan_prefixes(store, Table::FileBlock, &keys, &mut |at, _, record| {
        let position = block::position_from(record);
        positions.push(position.map(|position| (block::key(position.id), places[at])));
    })?;
    let mut positions: Vec<_> = positions.into_iter().collect::<Result<_>>()?;
    positions.sort_unstable();
    let keys: Vec<_> = positions.iter().map(|(key, _)| *key).collect();
    let mut failed = Ok(());
    scan_prefixes(store, Table::Block, &keys, &mut |at, _, record| match block::decode(record) {
        Ok(block) => files[positions[at].1].blocks.push(block),
        Err(error) => failed = Err(error),
    })?;
    failed
}

/// Removes the blocks of a file, the last one first; false if the budget ended before.
fn remove_blocks(
    store: &mut dyn StoreTxn,
    inode: &mut Inode,
    budget: &mut u64,
    removed: &mut Vec<RemovedBlock>,
) -> Result<bool> {
    while inode.file().is_some_and(|file| file.block_count > 0) {
        if *budget == 0 {
            return Ok(false);
        }
        removed.extend(remove_last_block(store, inode)?);
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
