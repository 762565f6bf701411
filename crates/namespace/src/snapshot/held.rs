//! What only snapshots hold: inodes that were removed, and blocks that were cut off files; and which quotas count
//! them.
//!
//! A removed inode counts in the directories above the place where the newest snapshot that holds it saw it, as far
//! as those are still there; what was cut off a file counts where the file is. All of it follows from the records
//! and versions: whatever changes them takes the sum of before off and puts the sum of after on.

use crate::block;
use crate::error::Result;
use crate::inode::{self, FileRedundancy, Inode, InodeId};
use crate::path::{self, Resolved};
use crate::snapshot::version::{self, Kind};
use crate::snapshot::{self, capture, reclaim};
use crate::storage_policy;
use crate::store::{StoreRead, StoreTxn, Table};
use crate::tree;
use crate::usage::{self, ByType, Usage};
use cairn_stripe::BlockId;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;

/// An inode as the newest snapshot that has it sees it.
fn kept(store: &dyn StoreRead, id: InodeId) -> Result<Option<(InodeId, Inode)>> {
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
        if let Some(found) = path::of_inode(store, at)? {
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
            let mut chain = path::of_inode(store, root)?.map_or(Vec::new(), |at| at.chain);
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
    Ok(Some(path::join(&names)))
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

/// Whether fewer copies of a file's blocks are wanted than before.
pub(crate) fn has_fallen(before: Option<FileRedundancy>, after: Option<FileRedundancy>) -> bool {
    use FileRedundancy::Replicated;
    matches!((before, after), (Some(Replicated(one)), Some(Replicated(other))) if one > other)
}

/// How the blocks of a file, which may be in snapshots only, are to be kept.
pub(crate) fn redundancy_of(
    store: &dyn StoreRead,
    file: InodeId,
) -> Result<Option<FileRedundancy>> {
    let now = inode::get(store, file)?;
    redundancy(store, file, now.and_then(|inode| Some(inode.file()?.redundancy)))
}

/// The blocks of a file: those that it has and those that snapshots have of it.
pub(crate) fn all_blocks(store: &dyn StoreRead, file: InodeId) -> Result<Vec<BlockId>> {
    let mut found = BTreeSet::new();
    let now = inode::get(store, file)?;
    for index in 0..now.and_then(|inode| Some(inode.file()?.block_count)).unwrap_or(0) {
        found.insert(block::position(store, file, index as u32)?.id.0);
    }
    for (_, record) in version::below(store, Kind::FileBlock, file)? {
        found.insert(block::position_from(&record)?.id.0);
    }
    Ok(found.into_iter().map(BlockId).collect())
}

/// Bytes of each block that snapshots hold of a file and that is not at its place any more.
pub(crate) fn cut_off(store: &dyn StoreRead, file: InodeId) -> Result<Vec<u64>> {
    let mut lens = Vec::new();
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
        if let Some(block) = block::get(store, id)?.filter(|block| block.file == file) {
            lens.push(block.len);
        }
    }
    Ok(lens)
}

/// What a removed inode goes on taking, and the directories whose quotas count it; `None` if it is still there or no
/// snapshot holds it.
pub(crate) fn account(
    store: &dyn StoreRead,
    id: InodeId,
) -> Result<Option<(Vec<Arc<Inode>>, Usage)>> {
    if !snapshot::is_removed(store, id)? {
        return Ok(None);
    }
    let (mut chain, payers) = kept_chain(store, id)?;
    let Some(was) = chain.last().filter(|was| was.id == id) else { return Ok(None) };
    let policy = storage_policy::set_above(&chain);
    let usage = Usage::name().plus(of_cut_off(store, was, policy)?);
    chain.truncate(payers);
    Ok(Some((chain, usage)))
}

/// What the blocks take that snapshots hold of a file and that are not at their places any more.
pub(crate) fn of_cut_off(store: &dyn StoreRead, file: &Inode, policy: u8) -> Result<Usage> {
    let mut sum = Usage::default();
    let Some(now) = file.file().map(|file| file.redundancy) else { return Ok(sum) };
    let lens = cut_off(store, file.id)?;
    if lens.is_empty() {
        return Ok(sum);
    }
    let counted = redundancy(store, file.id, Some(now))?.unwrap_or(now);
    for len in lens {
        sum = sum.plus(usage::of_bytes(store, counted, policy, len)?);
    }
    Ok(sum)
}

/// Sums of removed inodes by the directories that count them.
#[derive(Default)]
pub(crate) struct Accounts(Vec<(Vec<Arc<Inode>>, Usage)>);

impl Accounts {
    /// Those of `ids` that are held in this state.
    pub fn of(store: &dyn StoreRead, ids: &[InodeId]) -> Result<Accounts> {
        let mut found = Accounts::default();
        for id in ids {
            found.0.extend(account(store, *id)?);
        }
        Ok(found)
    }

    /// Counts them.
    pub fn charge(self, store: &mut dyn StoreTxn) -> Result<()> {
        self.0.into_iter().try_for_each(|(chain, usage)| usage::charge(store, &chain, usage))
    }

    /// Counts them no more.
    pub fn uncharge(self, store: &mut dyn StoreTxn) -> Result<()> {
        self.0
            .into_iter()
            .try_for_each(|(chain, usage)| usage::charge(store, &chain, usage.negated()))
    }
}

/// The removed inodes that count in a directory that is there. Looks at its subtree; while deleted trees or snapshots
/// are still being given up, at all that is held.
pub(crate) fn below(store: &dyn StoreRead, directory: &Inode) -> Result<Vec<InodeId>> {
    if !directory.is_directory() || !capture::in_use(store)? {
        return Ok(Vec::new());
    }
    if has_garbage(store)? {
        return leading_through(store, directory.id, &mut 0);
    }
    let mut open = Vec::new();
    tree::descend(store, directory, &mut |inode| {
        if inode.is_directory() {
            open.push(inode.id);
        }
        Ok(())
    })?;
    let mut found = BTreeSet::new();
    while let Some(parent) = open.pop() {
        for (_, record) in version::below(store, Kind::Child, parent)? {
            let id = inode::child_id(&record)?;
            if found.contains(&id) || !snapshot::is_removed(store, id)? {
                continue;
            }
            let Some((_, was)) = kept(store, id)?.filter(|(_, was)| was.parent == parent) else {
                continue;
            };
            found.insert(id);
            if was.is_directory() {
                open.push(id);
            }
        }
    }
    Ok(found.into_iter().collect())
}

/// The removed inodes whose way leads through a directory, which may be removed itself. Looks at all that are removed,
/// and counts them.
fn leading_through(
    store: &dyn StoreRead,
    directory: InodeId,
    looks: &mut u64,
) -> Result<Vec<InodeId>> {
    let leads = |at: &Resolved| at.chain.iter().any(|inode| inode.id == directory);
    let mut known = BTreeMap::from([(directory, true)]);
    let mut found = Vec::new();
    for id in snapshot::all_removed(store)? {
        *looks += 1;
        let (mut way, mut at, mut root) = (Vec::new(), id, InodeId::NONE);
        let is_through = loop {
            if let Some(known) = known.get(&at) {
                break *known;
            }
            if let Some(here) = path::of_inode(store, at)? {
                way.push(at);
                break leads(&here);
            }
            let Some((of, was)) = kept(store, at)? else {
                // As in `kept_chain`.
                break path::of_inode(store, root)?.is_some_and(|here| leads(&here));
            };
            way.push(at);
            (at, root) = (was.parent, of);
        };
        known.extend(way.into_iter().map(|at| (at, is_through)));
        if is_through {
            found.push(id);
        }
    }
    Ok(found)
}

/// Removed inodes whose way leads through another removed one. Counts those that it looks at.
pub(crate) fn behind(
    store: &dyn StoreRead,
    removed: InodeId,
    looks: &mut u64,
) -> Result<Vec<InodeId>> {
    let mut found = leading_through(store, removed, looks)?;
    found.retain(|id| *id != removed);
    Ok(found)
}

/// Where what is in a removed directory counts, as far as the directory decides it: the directories with quotas, and
/// the storage policy.
pub(crate) type Way = (Vec<InodeId>, u8);

/// That of a removed directory; `None` for anything else.
pub(crate) fn way_through(store: &dyn StoreRead, id: InodeId) -> Result<Option<Way>> {
    if !snapshot::is_removed(store, id)? {
        return Ok(None);
    }
    let (chain, payers) = kept_chain(store, id)?;
    Ok(chain.last().is_some_and(|inode| inode.is_directory()).then(|| way(&chain, payers)))
}

/// That of what was in a removed directory of which `id` may be left, or nothing.
pub(crate) fn way_behind(store: &dyn StoreRead, id: InodeId, root: InodeId) -> Result<Way> {
    if let Some(way) = way_through(store, id)? {
        return Ok(way);
    }
    let chain = path::of_inode(store, root)?.map_or(Vec::new(), |at| at.chain);
    Ok(way(&chain, chain.len()))
}

fn way(chain: &[Arc<Inode>], payers: usize) -> Way {
    let counting = chain[..payers].iter().filter(|inode| usage::is_limited(inode));
    (counting.map(|inode| inode.id).collect(), storage_policy::set_above(chain))
}

fn has_garbage(store: &dyn StoreRead) -> Result<bool> {
    let mut found = reclaim::first_garbage(store)?.is_some();
    store.scan(Table::Garbage, &[], &[], &mut |_, _| {
        found = true;
        ControlFlow::Break(())
    })?;
    Ok(found)
}

/// What snapshots hold below a directory that was removed there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// Directories.
    pub directories: u64,
    /// Files.
    pub files: u64,
    /// Bytes in those files.
    pub len: u64,
    /// Bytes on disk with all copies and parity.
    pub space: u64,
    /// Bytes on disk by type of storage, where a storage policy is set.
    pub types: ByType<u64>,
}

/// What is held below a directory.
pub(crate) fn sum_below(store: &dyn StoreRead, directory: &Inode) -> Result<Held> {
    let mut held = Held::default();
    for id in below(store, directory)? {
        let Some((_, usage)) = account(store, id)? else { continue };
        held.space = held.space.saturating_add_signed(usage.space);
        let (chain, _) = kept_chain(store, id)?;
        match chain.last().and_then(|inode| inode.file()) {
            Some(file) => {
                held.files += 1;
                held.len = held.len.saturating_add(file.len);
                let policy = storage_policy::set_above(&chain);
                let bytes = usage::of_bytes(store, file.redundancy, policy, file.len)?;
                held.types = usage::added(held.types, bytes.types);
            }
            None => held.directories += 1,
        }
    }
    Ok(held)
}
