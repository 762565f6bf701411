//! Giving up what only a deleted snapshot held, in steps.

use crate::apply::RemovedBlock;
use crate::block;
use crate::error::{NamespaceError, Result};
use crate::inode::{self, FileRedundancy, Inode, InodeId};
use crate::ops::counter::{self, Counter};
use crate::path;
use crate::snapshot::version::{self, Kind, Version};
use crate::snapshot::view::View;
use crate::snapshot::{self, Snapshot, SnapshotId, capture, damaged};
use crate::store::{StoreRead, StoreTxn, Table};
use crate::tree::{self, Usage};
use std::collections::BTreeSet;
use std::ops::ControlFlow;

fn garbage_key(root: InodeId, id: SnapshotId) -> Vec<u8> {
    [&root.key()[..], &id.0.to_be_bytes()].concat()
}

/// A snapshot was deleted: its versions go by [`reclaim`].
pub(crate) fn discard(store: &mut dyn StoreTxn, root: InodeId, id: SnapshotId) -> Result<()> {
    Ok(store.put(Table::SnapshotGarbage, &garbage_key(root, id), &[])?)
}

/// The first deleted snapshot whose versions are still to be given up.
pub(crate) fn first_garbage(store: &dyn StoreRead) -> Result<Option<(InodeId, SnapshotId)>> {
    let mut found = None;
    store.scan(Table::SnapshotGarbage, &[], &[], &mut |key, _| {
        found = Some(key.to_vec());
        ControlFlow::Break(())
    })?;
    let Some(key) = found else { return Ok(None) };
    let root = key.first_chunk().map(|id| InodeId(u64::from_be_bytes(*id)));
    let id = key.last_chunk().map(|id| SnapshotId(u32::from_be_bytes(*id)));
    root.zip(id)
        .map_or_else(|| Err(damaged("snapshot garbage", "a short key")), |key| Ok(Some(key)))
}

/// Works on at most about `budget` versions of deleted snapshots. Says whether there is more.
pub(crate) fn reclaim(
    store: &mut dyn StoreTxn,
    budget: &mut u64,
    removed: &mut Vec<RemovedBlock>,
) -> Result<bool> {
    while let Some((root, id)) = first_garbage(store)? {
        if *budget == 0 {
            return Ok(true);
        }
        let prior = match id.0.checked_sub(1) {
            Some(before) => snapshot::at_most(store, root, SnapshotId(before))?,
            None => None,
        };
        let versions = version::of_snapshot(store, root, id, *budget as usize)?;
        if versions.is_empty() {
            store.delete(Table::SnapshotGarbage, &garbage_key(root, id))?;
        }
        *budget = budget.saturating_sub(versions.len() as u64);
        for version in versions {
            give_up(store, &version, prior.as_ref(), removed)?;
        }
    }
    Ok(false)
}

/// Hands a version to the snapshot before, or drops it with what it alone held.
fn give_up(
    store: &mut dyn StoreTxn,
    version: &Version,
    prior: Option<&Snapshot>,
    removed: &mut Vec<RemovedBlock>,
) -> Result<()> {
    let record = version::record(store, version)?;
    if let Some(prior) = prior
        && !version::any_between(store, version, prior.id)?
    {
        let owner = version::owner(&version.key);
        let view = View::new(store, Some((version.root, prior.id)));
        let in_use = owner <= prior.last_inode && view.reaches(owner)?;
        if in_use && (version.kind != Kind::FileBlock || had_block(&view, &version.key)?) {
            version::delete(store, version)?;
            let version = Version { upto: prior.id, ..version.clone() };
            return version::put(store, &version, record.as_deref());
        }
    }
    version::delete(store, version)?;
    match (version.kind, record) {
        (Kind::FileBlock, Some(record)) => release_block(store, version, &record, removed),
        (Kind::Inode, Some(record)) => release_inode(store, version, &inode::from_bytes(&record)?),
        _ => Ok(()),
    }
}

/// Whether a file was so long then that the block at a position was part of it.
fn had_block(view: &View<'_>, key: &[u8]) -> Result<bool> {
    let count = inode::get(view, version::owner(key))?
        .and_then(|inode| Some(inode.file()?.block_count))
        .unwrap_or(0);
    Ok(block::index_of(key).is_some_and(|index| u64::from(index) < count))
}

/// An inode as it is now or, if it was removed, as the newest snapshot that has it sees it.
pub fn current_or_kept(store: &dyn StoreRead, id: InodeId) -> Result<Option<Inode>> {
    if let Some(inode) = inode::get(store, id)? {
        return Ok(Some(inode));
    }
    let versions = version::all_of(store, Kind::Inode, &id.key())?;
    let newest = versions.into_iter().max_by_key(|(version, _)| version.upto);
    match newest.and_then(|(_, record)| record) {
        Some(record) => inode::from_bytes(&record).map(Some),
        None => Ok(None),
    }
}

/// The way to a file that was removed, from the root down, as far as the tree and snapshots have it.
pub(crate) fn kept_chain(store: &dyn StoreRead, file: InodeId) -> Result<Vec<Inode>> {
    let mut chain = Vec::new();
    let mut at = file;
    while let Some(inode) = current_or_kept(store, at)? {
        // One that is being removed has lost its parent; its version has not.
        let parent = match version::all_of(store, Kind::Inode, &at.key())?.pop() {
            Some((_, Some(record))) if inode.parent == InodeId::NONE => {
                inode::from_bytes(&record)?.parent
            }
            _ => inode.parent,
        };
        chain.push(inode);
        at = parent;
    }
    chain.reverse();
    Ok(chain)
}

/// How a file's blocks are to be kept: as `now`, or with more copies if a snapshot saw it with more. `None` if
/// neither the current tree nor a snapshot has the file.
///
/// Source: Hadoop 3.5.0 `INodeFile#getPreferredBlockReplication`.
pub(crate) fn redundancy(
    store: &dyn StoreRead,
    file: InodeId,
    now: Option<FileRedundancy>,
) -> Result<Option<FileRedundancy>> {
    let mut found = now;
    for (_, record) in version::all_of(store, Kind::Inode, &file.key())? {
        let Some(record) = record else { continue };
        let was = inode::from_bytes(&record)?;
        let Some(was) = was.file() else { continue };
        found = match (found, was.redundancy) {
            (Some(FileRedundancy::Replicated(one)), FileRedundancy::Replicated(other)) => {
                Some(FileRedundancy::Replicated(one.max(other)))
            }
            (found, was) => found.or(Some(was)),
        };
    }
    Ok(found)
}

fn release_block(
    store: &mut dyn StoreTxn,
    version: &Version,
    record: &[u8],
    removed: &mut Vec<RemovedBlock>,
) -> Result<()> {
    let id = block::position_from(record)?.id;
    let Some(block) = block::get(store, id)? else { return Ok(()) };
    let now = store.get(Table::FileBlock, &version.key)?;
    let in_use = match now {
        Some(now) => block::position_from(&now)?.id == id,
        None => false,
    };
    // The block of a file that took over another's is not at this place any more.
    let moved = block::position_key(block.file, block.index) != version.key;
    if in_use || moved || capture::is_block_kept(store, &block)? {
        return Ok(());
    }
    let redundancy = current_or_kept(store, block.file)?
        .and_then(|inode| inode.file().map(|file| file.redundancy))
        .unwrap_or(FileRedundancy::Replicated(1));
    block::delete(store, id)?;
    counter::add(store, Counter::Blocks, -1)?;
    removed.push(RemovedBlock { block: block.reference(), redundancy });
    if !pays(store, version.root, block.file)? {
        return Ok(());
    }
    let space = tree::block_space(store, redundancy, block.len)? as i64;
    let parent = current_or_kept(store, block.file)?.map_or(version.root, |inode| inode.parent);
    uncharge(store, version.root, parent, Usage { names: 0, space })
}

fn release_inode(store: &mut dyn StoreTxn, version: &Version, was: &Inode) -> Result<()> {
    let left = version::all_of(store, Kind::Inode, &version.key)?;
    let id = version::owner(&version.key);
    if inode::get(store, id)?.is_some() {
        return Ok(());
    }
    if left.is_empty() {
        counter::add(store, Counter::Inodes, -1)?;
    }
    let still = left.iter().any(|(other, _)| other.root == version.root);
    if !still && snapshot::paid_by(store, id)? == Some(version.root) {
        uncharge(store, version.root, was.parent, Usage { names: 1, space: 0 })?;
        snapshot::forget(store, id)?;
    }
    Ok(())
}

/// Takes what is given up off the quotas of the directory that held it and of those above.
fn uncharge(store: &mut dyn StoreTxn, root: InodeId, parent: InodeId, usage: Usage) -> Result<()> {
    let chain = payers(store, root, parent)?;
    tree::charge(store, &chain, usage.negated())
}

/// The directories whose quotas count what was removed in `parent`, from the root down: those of its path
/// that are still there.
fn payers(store: &dyn StoreRead, root: InodeId, parent: InodeId) -> Result<Vec<Inode>> {
    let mut at = parent;
    loop {
        if let Some(found) = path::of_inode(store, at)? {
            return Ok(found.chain);
        }
        if at == root {
            return Ok(Vec::new());
        }
        at = match version::all_of(store, Kind::Inode, &at.key())?.pop() {
            Some((_, Some(record))) => inode::from_bytes(&record)?.parent,
            _ => root,
        };
    }
}

/// What snapshots hold below a directory that was removed or cut off there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// Directories.
    pub directories: u64,
    /// Files.
    pub files: u64,
    /// Bytes in those files.
    pub len: u64,
    /// Bytes on disk with all copies and parity, also of what was cut off files.
    pub space: u64,
}

/// What is held below a directory, as its quotas count it. Looks at everything that is held in snapshots of
/// directories above and below it.
pub(crate) fn held_below(store: &dyn StoreRead, directory: InodeId) -> Result<Held> {
    let mut held = Held::default();
    let roots = if capture::in_use(store)? { roots_near(store, directory)? } else { Vec::new() };
    if roots.is_empty() {
        return Ok(held);
    }
    let is_below = |root: InodeId, parent: InodeId| {
        Ok::<_, NamespaceError>(
            payers(store, root, parent)?.iter().any(|inode| inode.id == directory),
        )
    };
    for (id, root) in snapshot::all_paid(store)? {
        if !roots.contains(&root) || inode::get(store, id)?.is_some() {
            continue;
        }
        let Some(was) = current_or_kept(store, id)? else { continue };
        if is_below(root, was.parent)? {
            match was.file() {
                Some(file) => {
                    held.files += 1;
                    held.len = held.len.saturating_add(file.len);
                }
                None => held.directories += 1,
            }
        }
    }
    let mut counted = BTreeSet::new();
    version::of_kind(store, Kind::FileBlock, &mut |version, record| {
        let id = block::position_from(record)?.id;
        let file = version::owner(&version.key);
        let near = roots.contains(&version.root) && counted.insert(id.0);
        if !near || !pays(store, version.root, file)? {
            return Ok(());
        }
        let now = store.get(Table::FileBlock, &version.key)?;
        if now.is_some_and(|now| now == record) {
            return Ok(());
        }
        let (Some(was), Some(block)) = (current_or_kept(store, file)?, block::get(store, id)?)
        else {
            return Ok(());
        };
        if let Some(file) = was.file()
            && is_below(version.root, was.parent)?
        {
            let space = tree::block_space(store, file.redundancy, block.len)?;
            held.space = held.space.saturating_add(space);
        }
        Ok(())
    })?;
    Ok(held)
}

/// The snapshottable directories that are a directory, above it or below it.
fn roots_near(store: &dyn StoreRead, directory: InodeId) -> Result<Vec<InodeId>> {
    let mut near = Vec::new();
    for (root, _) in snapshot::roots(store)? {
        let is_below = match path::of_inode(store, root)? {
            Some(at) => at.chain.iter().any(|inode| inode.id == directory),
            None => false,
        };
        if is_below || snapshot::root_above(store, directory)? == Some(root) {
            near.push(root);
        }
    }
    Ok(near)
}

/// Whether a directory's quotas count what its snapshots hold of a file: one in it for what was cut off it,
/// or one that was removed in it.
fn pays(store: &dyn StoreRead, root: InodeId, file: InodeId) -> Result<bool> {
    Ok(snapshot::paid_by(store, file)? == Some(root)
        || inode::get(store, file)?.is_some() && snapshot::root_above(store, file)? == Some(root))
}
