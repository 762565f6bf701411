//! Records of a namespace in the order of their keys, for whoever writes them down in another form.
//!
//! The way back of [`crate::import`]: what is here is as the store has it, and nothing is left out but what is deleted and
//! not yet gone ([`detached`]).

pub mod past;

use crate::block::{self, Block};
use crate::counter::{self, Counter};
use crate::error::{Result, StoreError};
use crate::import::Numbers;
use crate::inode::{self, Inode, InodeId, child_id};
use crate::snapshot;
use crate::store::{StoreRead, Table, prefix_end};
use crate::xattr::{self, XAttrSpace};
use cairn_stripe::{BlockId, GenerationStamp};
use std::collections::HashSet;
use std::ops::ControlFlow;

/// Numbers that were given out last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Last {
    /// Of inodes, blocks and stamps, and how many there are.
    pub numbers: Numbers,
}

/// The numbers that were given out last.
pub fn last(store: &dyn StoreRead) -> Result<Last> {
    let number = |counter| counter::get(store, counter);
    Ok(Last {
        numbers: Numbers {
            inode: InodeId(number(Counter::InodeId)?),
            block: BlockId(number(Counter::BlockId)?.cast_signed()),
            group: BlockId(number(Counter::GroupId)?.cast_signed()),
            stamp: GenerationStamp(number(Counter::GenerationStamp)?),
            inodes: number(Counter::Inodes)?,
            blocks: number(Counter::Blocks)?,
            cache_directive: number(Counter::CacheDirective)?,
            snapshot: number(Counter::SnapshotId)?,
        },
    })
}

/// How many snapshots there are, and whether one that was deleted has left anything.
pub fn snapshots(store: &dyn StoreRead) -> Result<(u64, bool)> {
    let count = counter::get(store, Counter::Snapshots)?;
    Ok((count, count == 0 && snapshot::garbage::in_use(store)?))
}

/// Whether snapshots that were deleted, or trees, have left anything that is not yet gone.
pub fn has_left(store: &dyn StoreRead) -> Result<bool> {
    let mut has_left = false;
    for table in [Table::SnapshotGarbage, Table::Garbage] {
        store.scan(table, &[], &[], &mut |_, _| {
            has_left = true;
            ControlFlow::Break(())
        })?;
    }
    Ok(has_left)
}

/// At most `limit` inodes behind `after`, ascending; deleted ones are among them.
pub fn inodes_after(store: &dyn StoreRead, after: InodeId, limit: usize) -> Result<Vec<Inode>> {
    let mut found = Vec::new();
    store.scan(
        Table::Inode,
        &InodeId(after.0.saturating_add(1)).key(),
        &[],
        &mut |_, record| {
            found.push(inode::from_bytes(record));
            if found.len() < limit { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        },
    )?;
    found.into_iter().collect()
}

/// What a directory has at a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The directory.
    pub parent: InodeId,
    /// The name.
    pub name: Vec<u8>,
    /// What is there.
    pub child: InodeId,
}

/// At most `limit` entries of all directories behind `after`, those of each directory together; those of deleted ones are
/// among them.
pub fn entries_after(
    store: &dyn StoreRead,
    after: Option<&Entry>,
    limit: usize,
) -> Result<Vec<Entry>> {
    let from =
        after.map_or(Vec::new(), |entry| [&entry.parent.key()[..], &entry.name, &[0]].concat());
    let mut found = Vec::new();
    store.scan(Table::Child, &from, &[], &mut |key, value| {
        let (parent, name) = key.split_at(key.len().min(8));
        let parent = parent.try_into().map_or(InodeId::NONE, |id| InodeId(u64::from_be_bytes(id)));
        let name = name.to_vec();
        found.push(child_id(value).map(|child| Entry { parent, name, child }));
        if found.len() < limit { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    found.into_iter().collect()
}

/// Blocks of a file, in its order.
pub fn blocks(store: &dyn StoreRead, file: InodeId) -> Result<Vec<Block>> {
    let prefix = file.key();
    let mut positions = Vec::new();
    store.scan(Table::FileBlock, &prefix, &prefix_end(&prefix), &mut |_, value| {
        positions.push(block::position_from(value));
        ControlFlow::Continue(())
    })?;
    let dangling = |id| StoreError::Corrupt { what: "file", reason: format!("no block {id}") };
    let blocks = positions.into_iter().map(|position| {
        let id = position?.id;
        Ok(block::get(store, id)?.ok_or_else(|| dangling(id))?)
    });
    blocks.collect()
}

/// Extended attributes of a file or directory: space, name, value.
pub fn attributes(
    store: &dyn StoreRead,
    id: InodeId,
) -> Result<Vec<(XAttrSpace, String, Vec<u8>)>> {
    let all = xattr::all(store, id)?;
    Ok(all.into_iter().map(|(name, value)| (name.space, name.name, value)).collect())
}

/// Inodes that are deleted and not yet gone.
pub fn detached(store: &dyn StoreRead) -> Result<HashSet<InodeId>> {
    let mut waiting = Vec::new();
    store.scan(Table::Garbage, &[], &[], &mut |key, _| {
        waiting.extend(key.first_chunk().map(|id| InodeId(u64::from_be_bytes(*id))));
        ControlFlow::Continue(())
    })?;
    let mut found = HashSet::new();
    while let Some(id) = waiting.pop() {
        if found.insert(id) {
            waiting.extend(inode::children(store, id, None, usize::MAX)?);
        }
    }
    Ok(found)
}
