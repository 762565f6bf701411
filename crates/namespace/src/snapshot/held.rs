//! Which quotas count what only snapshots hold: inodes that were removed, and blocks that were cut off files.
//!
//! A removed inode counts in the directories above the place where the newest snapshot that holds it saw it, as far
//! as those are still there; what was cut off a file counts where the file is. All of it follows from the records
//! and versions: whatever changes them takes the sum of before off and puts the sum of after on.

use crate::block::{self, Block, Membership, PackedIn};
use crate::error::Result;
use crate::inode::{self, Inode, InodeId};
use crate::path::{self, Resolved};
use crate::snapshot::kept::{is_block_kept, kept, kept_chain, redundancy_of};
use crate::snapshot::version::{self, Kind};
use crate::snapshot::{self, garbage};
use crate::storage_policy;
use crate::store::{StoreRead, StoreTxn, Table};
use crate::tree::walk;
use crate::usage::{self, ByType, Usage};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;

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
    let usage = Usage::name().plus(usage::of_cut_off(store, was, policy)?);
    chain.truncate(payers);
    Ok(Some((chain, usage)))
}

/// Makes a block a member of a group, or of none, and counts it so. Answers the block as it is then.
pub(crate) fn set_group(
    store: &mut dyn StoreTxn,
    block: Block,
    group: Option<Membership>,
) -> Result<Block> {
    set_coding(store, &block, Block { group, ..block.clone() })
}

/// Has a block be where a container has it, or nowhere else than it is itself, and counts it so.
pub(crate) fn set_packed(
    store: &mut dyn StoreTxn,
    block: Block,
    packed: Option<PackedIn>,
) -> Result<Block> {
    set_coding(store, &block, Block { packed, ..block.clone() })
}

/// Writes a block that is coded otherwise than before.
fn set_coding(store: &mut dyn StoreTxn, block: &Block, now: Block) -> Result<Block> {
    block::put(store, &now)?;
    let (chain, policy, redundancy) = match path::of_inode(store, block.file)? {
        Some(mut at) => {
            let Some(file) = at.chain.pop() else { return Ok(now) };
            let policy = storage_policy::in_force(&at.chain, &file);
            (at.chain, policy, usage::counted_redundancy(store, &file)?)
        }
        None => {
            let (mut chain, payers) = kept_chain(store, block.file)?;
            let policy = storage_policy::set_above(&chain);
            chain.truncate(payers);
            (chain, policy, redundancy_of(store, block.file)?)
        }
    };
    let is_counted = block::is_in_place(store, block)? || is_block_kept(store, block)?;
    if let Some(redundancy) = redundancy.filter(|_| is_counted && usage::has_quota(&chain)) {
        let before = usage::of_block(store, redundancy, policy, block, block.len)?;
        let after = usage::of_block(store, redundancy, policy, &now, now.len)?;
        usage::charge(store, &chain, after.minus(before))?;
    }
    Ok(now)
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
    if !directory.is_directory() || !garbage::in_use(store)? {
        return Ok(Vec::new());
    }
    if has_garbage(store)? {
        return leading_through(store, directory.id, &mut 0);
    }
    let mut open = Vec::new();
    walk::descend(store, directory, &mut |inode| {
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
    let mut found = garbage::first_garbage(store)?.is_some();
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
                let types = match file.redundancy.is_contiguous() {
                    // Its blocks need not be kept alike.
                    true => usage.types,
                    false => usage::of_bytes(store, file.redundancy, policy, file.len)?.types,
                };
                held.types = usage::added(held.types, types);
            }
            None => held.directories += 1,
        }
    }
    Ok(held)
}
