//! Giving up what only a deleted snapshot held, in steps.

use crate::block;
use crate::counter::{self, Counter};
use crate::error::Result;
use crate::inode::{self, Inode, InodeId};
use crate::path;
use crate::snapshot::garbage::{first_garbage, garbage_key};
use crate::snapshot::held::{self, Accounts};
use crate::snapshot::kept;
use crate::snapshot::version::{self, Kind, Version};
use crate::snapshot::view::View;
use crate::snapshot::{self, Snapshot};
use crate::storage_policy;
use crate::store::{Overlay, StoreRead, StoreTxn, Table};
use crate::tree::end_block::end_block;
use crate::usage::{self, Usage};
use std::sync::Arc;

/// Works on at most about `budget` versions of deleted snapshots, and inodes that are looked at for them. Says whether
/// there is more; files of which fewer copies are wanted now come to `other_copies`.
pub(crate) fn reclaim(
    store: &mut dyn StoreTxn,
    budget: &mut u64,
    other_copies: &mut Vec<InodeId>,
) -> Result<bool> {
    while let Some((root, id)) = first_garbage(store)? {
        if *budget == 0 {
            return Ok(true);
        }
        let prior = snapshot::older_than(store, root, id)?;
        let versions = version::of_snapshot(store, root, id, *budget as usize)?;
        if versions.is_empty() {
            store.delete(Table::SnapshotGarbage, &garbage_key(root, id))?;
        }
        // The blocks of a file come one after the other.
        let alike = |one: &Version, other: &Version| {
            let blocks = one.kind == Kind::FileBlock && other.kind == Kind::FileBlock;
            blocks && version::owner(&one.key) == version::owner(&other.key)
        };
        for together in versions.chunk_by(alike) {
            if *budget == 0 {
                return Ok(true);
            }
            let looks = give_up(store, together, prior.as_ref(), other_copies)?;
            *budget = budget.saturating_sub(together.len() as u64 + looks);
        }
    }
    Ok(false)
}

/// Hands versions of one inode to the snapshot before, or drops them with what they alone held, and counts what is
/// left. Returns how many other inodes that made it look at.
fn give_up(
    store: &mut dyn StoreTxn,
    versions: &[Version],
    prior: Option<&Snapshot>,
    other_copies: &mut Vec<InodeId>,
) -> Result<u64> {
    let mut looks = 0;
    let Some(version) = versions.first() else { return Ok(looks) };
    let owner = version::owner(&version.key);
    let counts = matches!(version.kind, Kind::FileBlock | Kind::Inode);
    let before = if counts { standing(store, owner)? } else { None };
    let behind = match version.kind {
        Kind::Inode => behind_moving(store, version, prior, &mut looks)?,
        _ => Vec::new(),
    };
    let behind_before = Accounts::of(store, &behind)?;
    let kept = match version.kind {
        Kind::Inode => kept::redundancy_of(store, owner)?,
        _ => None,
    };
    for version in versions {
        hand_over(store, version, prior)?;
    }
    if kept.is_some() && kept::has_fallen(kept, kept::redundancy_of(store, owner)?) {
        other_copies.push(owner);
    }
    behind_before.uncharge(store)?;
    Accounts::of(store, &behind)?.charge(store)?;
    if let Some((chain, usage)) = before {
        usage::charge(store, &chain, usage.negated())?;
    }
    if let Some((chain, usage)) = if counts { standing(store, owner)? } else { None } {
        usage::charge(store, &chain, usage)?;
    }
    Ok(looks)
}

/// What was in a removed directory and counts elsewhere when a version of the directory is given up.
fn behind_moving(
    store: &dyn StoreRead,
    version: &Version,
    prior: Option<&Snapshot>,
    looks: &mut u64,
) -> Result<Vec<InodeId>> {
    let owner = version::owner(&version.key);
    let Some(way) = held::way_through(store, owner)? else { return Ok(Vec::new()) };
    let mut without = Overlay::new(store);
    hand_over(&mut without, version, prior)?;
    if held::way_behind(&without, owner, version.root)? == way {
        return Ok(Vec::new());
    }
    held::behind(store, owner, looks)
}

/// What a file takes, or a removed inode goes on taking, and the directories that count it.
fn standing(store: &dyn StoreRead, id: InodeId) -> Result<Option<(Vec<Arc<Inode>>, Usage)>> {
    let Some(mut at) = path::of_inode(store, id)? else { return held::account(store, id) };
    let Some(file) = at.chain.pop().filter(|inode| !inode.is_directory()) else { return Ok(None) };
    if !usage::has_quota(&at.chain) {
        return Ok(None);
    }
    let policy = storage_policy::in_force(&at.chain, &file);
    let usage = usage::of_blocks(store, &file, policy)?;
    Ok(Some((at.chain, usage)))
}

/// Keeps a version for the next older snapshot that needs it, which need not be the one before: a file may have been
/// somewhere else meanwhile. If there is none, drops it with what it alone held.
fn hand_over(store: &mut dyn StoreTxn, version: &Version, prior: Option<&Snapshot>) -> Result<()> {
    let record = version::record(store, version)?;
    let owner = version::owner(&version.key);
    let mut older = prior.cloned();
    while let Some(prior) = older.filter(|prior| owner <= prior.last_inode) {
        if version::any_between(store, version, prior.id)? {
            break;
        }
        let view = View::new(store, Some((version.root, prior.id)));
        let is_needed = view.reaches(owner)?
            && (version.kind != Kind::FileBlock || had_block(&view, &version.key)?);
        if is_needed {
            version::delete(store, version)?;
            let version = Version { upto: prior.id, ..version.clone() };
            return version::put(store, &version, record.as_deref());
        }
        older = snapshot::older_than(store, version.root, prior.id)?;
    }
    version::delete(store, version)?;
    match (version.kind, record) {
        (Kind::FileBlock, Some(record)) => release_block(store, version, &record),
        (Kind::Inode, Some(_)) => release_inode(store, version),
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

fn release_block(store: &mut dyn StoreTxn, version: &Version, record: &[u8]) -> Result<()> {
    let id = block::position_from(record)?.id;
    let Some(block) = block::get(store, id)? else { return Ok(()) };
    let now = store.get(Table::FileBlock, &version.key)?;
    let in_use = match now {
        Some(now) => {
            let now = block::position_from(&now)?.id;
            // Until its copy is made, the block is needed for that.
            now == id || block::get(store, now)?.is_some_and(|now| now.copy_source() == Some(id))
        }
        None => false,
    };
    // The block of a file that took over another's is not at this place any more.
    let moved = block::position_key(block.file, block.index) != version.key;
    if in_use || moved || kept::is_block_kept(store, &block)? {
        return Ok(());
    }
    end_block(store, &block)
}

fn release_inode(store: &mut dyn StoreTxn, version: &Version) -> Result<()> {
    let id = version::owner(&version.key);
    let is_left = !version::all_of(store, Kind::Inode, &version.key)?.is_empty();
    if is_left || inode::get(store, id)?.is_some() {
        return Ok(());
    }
    counter::add(store, Counter::Inodes, -1)?;
    snapshot::forget(store, id)
}
