//! Inodes and blocks as snapshots keep them, whether or not the current tree has them any more.

use crate::block::{self, Block};
use crate::error::Result;
use crate::inode::{self, FileRedundancy, Inode, InodeId};
use crate::path::name::join;
use crate::path::resolved::of_inode;
use crate::snapshot::version::{self, Kind};
use crate::store::{StoreRead, Table};
use cairn_stripe::BlockId;
use std::collections::BTreeSet;
use std::sync::Arc;

/// An inode as the newest snapshot that has it sees it.
pub(super) fn kept(store: &dyn StoreRead, id: InodeId) -> Result<Option<(InodeId, Inode)>> {
    let versions = version::all_of(store, Kind::Inode, &id.key())?;
    let newest = versions.into_iter().max_by_key(|(version, _)| version.upto);
    match newest {
        Some((version, Some(record))) => Ok(Some((version.root, inode::from_bytes(&record)?))),
        _ => Ok(None),
    }
}

/// An inode as it is now or, if it was removed, as the newest snapshot that has it sees it.
pub fn current_or_kept(store: &dyn StoreRead, id: InodeId) -> Result<Option<Inode>> {
    match inode::get(store, id)? {
        Some(inode) => Ok(Some(inode)),
        None => Ok(kept(store, id)?.map(|(_, inode)| inode)),
    }
}

/// The way to an inode that was removed, from the root down: where snapshots saw it up to the first directory that is
/// still there, and from there as it is now. With it the number of those that are still there.
pub(crate) fn kept_chain(
    store: &dyn StoreRead,
    removed: InodeId,
) -> Result<(Vec<Arc<Inode>>, usize)> {
    let mut below = Vec::new();
    let mut at = removed;
    loop {
        if let Some(found) = of_inode(store, at)? {
            let mut chain = found.chain;
            let count = chain.len();
            below.reverse();
            chain.append(&mut below);
            return Ok((chain, count));
        }
        let Some((_, was)) = kept(store, at)? else {
            // A directory that no snapshot has: it was made later, or was given up first.
            let Some(found) = below.last().map(|inode: &Arc<Inode>| inode.id) else {
                return Ok((Vec::new(), 0));
            };
            let root = kept(store, found)?.map_or(InodeId::NONE, |(root, _)| root);
            let mut chain = of_inode(store, root)?.map_or(Vec::new(), |at| at.chain);
            let count = chain.len();
            below.reverse();
            chain.append(&mut below);
            return Ok((chain, count));
        };
        at = was.parent;
        below.push(Arc::new(was));
    }
}

/// Where a file was that was removed, if the newest snapshot that has it saw it open.
pub(crate) fn open_when_kept(store: &dyn StoreRead, removed: InodeId) -> Result<Option<String>> {
    let was_open = |was: &Inode| was.file().is_some_and(|file| file.writer.is_some());
    if !kept(store, removed)?.is_some_and(|(_, was)| was_open(&was)) {
        return Ok(None);
    }
    let (chain, _) = kept_chain(store, removed)?;
    let names: Vec<String> = chain.iter().skip(1).map(|inode| inode.name.clone()).collect();
    Ok(Some(join(&names)))
}

/// The path of an inode or, of one that only snapshots have, the path that it had; `None` if nobody has it.
///
/// Source: Hadoop 3.5.0 `INode#getFullPathName`.
pub fn path_or_kept(store: &dyn StoreRead, id: InodeId) -> Result<Option<String>> {
    if let Some(at) = of_inode(store, id)? {
        return Ok(Some(at.path));
    }
    let chain = kept_chain(store, id)?.0;
    let is_whole = chain.first().is_some_and(|top| top.id == InodeId::ROOT)
        && chain.windows(2).all(|pair| pair[1].parent == pair[0].id);
    let names: Vec<String> = chain.iter().skip(1).map(|inode| inode.name.clone()).collect();
    Ok((is_whole && !names.is_empty()).then(|| join(&names)))
}

/// How a file's blocks are to be kept: as `now`, or else as the newest snapshot saw it, with more copies if another
/// snapshot saw it with more. `None` if neither the current tree nor a snapshot has the file.
///
/// Source: Hadoop 3.5.0 `INodeFile#getPreferredBlockReplication`.
pub(crate) fn redundancy(
    store: &dyn StoreRead,
    file: InodeId,
    now: Option<FileRedundancy>,
) -> Result<Option<FileRedundancy>> {
    let mut versions = version::all_of(store, Kind::Inode, &file.key())?;
    versions.sort_by_key(|(version, _)| version.upto);
    let mut found = None;
    for (_, record) in versions {
        let Some(record) = record else { continue };
        let was = inode::from_bytes(&record)?;
        found = was.file().map(|was| with_most_copies(was.redundancy, found)).or(found);
    }
    Ok(now.map(|now| with_most_copies(now, found)).or(found))
}

/// The same with as many copies as `other` has, if these are more.
fn with_most_copies(of: FileRedundancy, other: Option<FileRedundancy>) -> FileRedundancy {
    match (of.copies(), other.and_then(FileRedundancy::copies)) {
        (Some(copies), Some(more)) if more > copies => of.with_copies(more),
        _ => of,
    }
}

/// Whether fewer copies of a file's blocks are wanted than before.
pub(crate) fn has_fallen(before: Option<FileRedundancy>, after: Option<FileRedundancy>) -> bool {
    let copies = |of: Option<FileRedundancy>| of.and_then(FileRedundancy::copies);
    matches!((copies(before), copies(after)), (Some(one), Some(other)) if one > other)
}

/// How the blocks of a file, which may be in snapshots only, are to be kept.
pub(crate) fn redundancy_of(
    store: &dyn StoreRead,
    file: InodeId,
) -> Result<Option<FileRedundancy>> {
    let now = inode::get(store, file)?;
    redundancy(store, file, now.and_then(|inode| Some(inode.file()?.redundancy)))
}

/// The blocks of a file: those that it has, the one that its last block becomes a copy of, and those that snapshots have
/// of it.
pub(crate) fn all_blocks(store: &dyn StoreRead, file: InodeId) -> Result<Vec<BlockId>> {
    let mut found = BTreeSet::new();
    if let Some(now) = inode::get(store, file)? {
        for index in 0..now.file().map_or(0, |file| file.block_count) {
            found.insert(block::position(store, file, index as u32)?.id.0);
        }
        let source = block::last(store, &now)?.and_then(|last| last.copy_source());
        found.extend(source.map(|id| id.0));
    }
    for (_, record) in version::below(store, Kind::FileBlock, file)? {
        found.insert(block::position_from(&record)?.id.0);
    }
    Ok(found.into_iter().map(BlockId).collect())
}

/// The blocks that snapshots hold of a file and that are not at their places any more.
pub(crate) fn cut_off(store: &dyn StoreRead, file: InodeId) -> Result<Vec<Block>> {
    let mut blocks = Vec::new();
    let mut counted = BTreeSet::new();
    for (key, record) in version::below(store, Kind::FileBlock, file)? {
        let id = block::position_from(&record)?.id;
        let now = store.get(Table::FileBlock, &key)?;
        let at_place = match now {
            Some(now) => block::position_from(&now)?.id == id,
            None => false,
        };
        if at_place || !counted.insert(id.0) {
            continue;
        }
        // A block that another file took over counts there.
        blocks.extend(block::get(store, id)?.filter(|block| block.file == file));
    }
    Ok(blocks)
}

/// Whether a version of a file's position holds this block.
pub(crate) fn is_block_kept(store: &dyn StoreRead, block: &Block) -> Result<bool> {
    let key = block::position_key(block.file, block.index);
    for (_, record) in version::all_of(store, Kind::FileBlock, &key)? {
        if let Some(record) = record
            && block::position_from(&record)?.id == block.id
        {
            return Ok(true);
        }
    }
    Ok(false)
}
