//! Removing what was taken out of the tree, in steps.

use super::walk::PAGE;
use super::{remove_blocks, remove_records};
use crate::block::{self, Block};
use crate::counter::{self, Counter};
use crate::error::Result;
use crate::inode::{self, Inode, InodeId, InodeRef, Kind};
use crate::snapshot::reclaim;
use crate::store::{StoreRead, StoreTxn, Table, scan_prefixes};
use std::ops::ControlFlow;

/// Removes at most about `limit` inodes and blocks of discarded trees and of what deleted snapshots held. Returns whether
/// there is more; files of which fewer copies are wanted now come to `other_copies`.
pub(crate) fn purge(
    store: &mut dyn StoreTxn,
    limit: u64,
    other_copies: &mut Vec<InodeId>,
) -> Result<bool> {
    let mut budget = limit.max(1);
    loop {
        let mut root = None;
        store.scan(Table::Garbage, &[], &[], &mut |key, _| {
            root = <[u8; 8]>::try_from(key).ok().map(|id| InodeId(u64::from_be_bytes(id)));
            ControlFlow::Break(())
        })?;
        let Some(root) = root else {
            return reclaim::reclaim(store, &mut budget, other_copies);
        };
        if budget == 0 {
            return Ok(true);
        }
        let root = inode::expect(store, root)?;
        purge_tree(store, root, &mut budget)?;
    }
}

/// As [`purge`], of one discarded tree. Returns whether there is more of it.
pub(crate) fn purge_one(store: &mut dyn StoreTxn, root: InodeId, limit: u64) -> Result<bool> {
    let inode = inode::expect(store, root)?;
    purge_tree(store, inode, &mut limit.max(1))?;
    Ok(store.peek(Table::Garbage, &root.key(), &mut |_| {})?)
}

/// Removes from the leaves up until the budget is used.
fn purge_tree(store: &mut dyn StoreTxn, root: Inode, budget: &mut u64) -> Result<()> {
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
                purge_files(store, files, budget)?;
                continue;
            }
        }
        let Some((mut inode, _)) = levels.pop() else { return Ok(()) };
        if !remove_blocks(store, &mut inode, budget)? {
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
    block_count: u64,
    /// It is open, has many blocks, or such that groups may need.
    is_special: bool,
    blocks: Vec<Block>,
}

/// Removes children of a directory that is not attached any more, files all of them with the keys of their entries,
/// until the budget is used. They were mostly made one after the other, so that their records lie side by side.
fn purge_files(
    store: &mut dyn StoreTxn,
    mut files: Vec<(InodeId, &[u8])>,
    budget: &mut u64,
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
            || file.blocks.iter().any(|block| block.copy_source().is_some() || block.is_coded())
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
            purge_tree(store, inode, budget)?;
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
                block_count: file.block_count,
                is_special: file.writer.is_some()
                    || file.block_count > BLOCKS_TOGETHER
                    || file.redundancy.is_contiguous(),
                blocks: Vec::new(),
            },
            Kind::Directory(_) => {
                Doomed { id: inode.id, block_count: 0, is_special: true, blocks: Vec::new() }
            }
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
