//! Blocks of contiguous files that wait for a group.
//!
//! Table `waiting`: due time (8 bytes, elapsed ms) and id (as a block's) -> nothing. Table `waiting-due`: id ->
//! due time. Times of blocks that are to be packed have the highest bit, and so come behind all others. Both are kept as files are closed, go on and go, so that a start scans nothing and a rename touches
//! nothing. That a block is due says no more than that it was quiet for long enough: whoever chooses members looks at
//! the block itself.

use crate::block::{self, Block, BlockState};
use crate::encoding::{from_record, to_record};
use crate::error::{Result, StoreError};
use crate::inode::{File, Inode};
use crate::settings::Settings;
use crate::store::{StoreRead, StoreTxn, Table};
use cairn_stripe::BlockId;
use std::ops::ControlFlow;

const VERSION: u8 = 1;

/// The longest time that a short block waits, in ms: a week.
const SHORT_QUIET_MAX_MS: u64 = 7 * 24 * 3_600_000;

/// In the time of a block that is to be packed with others into a container.
const SMALL: u64 = 1 << 63;

/// A block and the time from which on it may be grouped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Waiting {
    /// That time, elapsed.
    pub due_ms: u64,
    /// The block.
    pub id: BlockId,
}

impl Waiting {
    fn key(&self) -> Vec<u8> {
        [&self.due_ms.to_be_bytes()[..], &block::key(self.id)].concat()
    }

    fn from_key(key: &[u8]) -> Result<Waiting> {
        let read = || {
            let (due_ms, id) = key.split_first_chunk()?;
            let id = u64::from_be_bytes(id.try_into().ok()?) ^ (1 << 63);
            Some(Waiting { due_ms: u64::from_be_bytes(*due_ms), id: BlockId(id as i64) })
        };
        Ok(read().ok_or_else(|| StoreError::Corrupt {
            what: "waiting block",
            reason: format!("a key of {} bytes", key.len()),
        })?)
    }
}

/// At most `limit` blocks that are due at `elapsed_ms`, those due longest first, behind `after` in that order.
pub fn due(
    store: &dyn StoreRead,
    elapsed_ms: u64,
    after: Option<Waiting>,
    limit: usize,
) -> Result<Vec<Waiting>> {
    let from = after.map_or(Vec::new(), |after| [&after.key()[..], &[0]].concat());
    let until_ms = elapsed_ms.min(SMALL - 2);
    let found = between(store, &from, until_ms, limit)?;
    Ok(found)
}

/// The same of blocks that are to be packed.
pub fn due_small(
    store: &dyn StoreRead,
    elapsed_ms: u64,
    after: Option<Waiting>,
    limit: usize,
) -> Result<Vec<Waiting>> {
    let marked = |after: Waiting| Waiting { due_ms: after.due_ms | SMALL, ..after };
    let from = match after {
        Some(after) => [&marked(after).key()[..], &[0]].concat(),
        None => SMALL.to_be_bytes().to_vec(),
    };
    let mut found = between(store, &from, elapsed_ms.min(SMALL - 2) | SMALL, limit)?;
    found.iter_mut().for_each(|waiting| waiting.due_ms &= !SMALL);
    Ok(found)
}

fn between(
    store: &dyn StoreRead,
    from: &[u8],
    until_ms: u64,
    limit: usize,
) -> Result<Vec<Waiting>> {
    let mut found = Vec::new();
    if limit > 0 {
        let end = until_ms.saturating_add(1).to_be_bytes();
        store.scan(Table::Waiting, from, &end, &mut |key, _| {
            found.push(Waiting::from_key(key));
            if found.len() < limit { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
    }
    found.into_iter().collect()
}

/// The time from which on a block may be grouped or packed, if it waits.
pub fn due_of(store: &dyn StoreRead, id: BlockId) -> Result<Option<u64>> {
    Ok(recorded(store, id)?.map(|due_ms| due_ms & !SMALL))
}

fn recorded(store: &dyn StoreRead, id: BlockId) -> Result<Option<u64>> {
    let mut found = None;
    store.peek(Table::WaitingDue, &block::key(id), &mut |value| {
        found = Some(from_record(VERSION, value));
    })?;
    Ok(found.transpose()?)
}

/// Has a block wait until `due_ms`.
fn put(store: &mut dyn StoreTxn, id: BlockId, due_ms: u64) -> Result<()> {
    forget(store, id)?;
    store.put(Table::Waiting, &Waiting { due_ms, id }.key(), &[])?;
    Ok(store.put(Table::WaitingDue, &block::key(id), &to_record(VERSION, &due_ms))?)
}

/// A block does not wait any more, if it did.
pub(crate) fn forget(store: &mut dyn StoreTxn, id: BlockId) -> Result<()> {
    if let Some(due_ms) = recorded(store, id)? {
        store.remove(Table::Waiting, &Waiting { due_ms, id }.key())?;
        store.remove(Table::WaitingDue, &block::key(id))?;
    }
    Ok(())
}

/// How long a block is to be quiet, for which nobody but its end may have to wait.
fn quiet_ms(settings: &Settings, file: &File, block: &Block) -> u64 {
    if block.len >= file.block_size {
        return settings.group_quiet_ms;
    }
    let doubled = 1u64.checked_shl(file.short_appends.into()).unwrap_or(u64::MAX);
    let most = SHORT_QUIET_MAX_MS.max(settings.group_short_quiet_ms);
    settings.group_short_quiet_ms.saturating_mul(doubled).min(most)
}

/// Has a block of a file wait until `due_ms`, if it may ever be grouped.
fn begin(
    store: &mut dyn StoreTxn,
    settings: &Settings,
    file: &File,
    block: &Block,
    due_ms: u64,
) -> Result<()> {
    let is_wanted =
        file.redundancy.is_contiguous() && !block.is_coded() && block.state == BlockState::Complete;
    match is_wanted {
        true if block.len >= settings.group_len_min.max(1) => put(store, block.id, due_ms),
        true if settings.packs && block.len > 0 => {
            put(store, block.id, due_ms.min(SMALL - 1) | SMALL)
        }
        _ => Ok(()),
    }
}

/// A packed block waits for another container.
pub(crate) fn begin_packed(store: &mut dyn StoreTxn, id: BlockId, due_ms: u64) -> Result<()> {
    put(store, id, due_ms.min(SMALL - 1) | SMALL)
}

/// A container may be in a group from now on.
pub(crate) fn begin_container(
    store: &mut dyn StoreTxn,
    container: BlockId,
    elapsed_ms: u64,
) -> Result<()> {
    put(store, container, elapsed_ms)
}

/// A block of a file that nobody writes at that place waits from now on.
pub(crate) fn closed_block(
    store: &mut dyn StoreTxn,
    settings: &Settings,
    file: &File,
    block: &Block,
    elapsed_ms: u64,
) -> Result<()> {
    let due_ms = elapsed_ms.saturating_add(quiet_ms(settings, file, block));
    begin(store, settings, file, block, due_ms)
}

fn last_two(store: &dyn StoreRead, inode: &Inode) -> Result<Vec<Block>> {
    let blocks = [block::last(store, inode)?, block::penultimate(store, inode)?];
    Ok(blocks.into_iter().flatten().collect())
}

/// The last two blocks of a file, which is open again or has lost the one behind them, wait no longer.
pub(crate) fn reopened(store: &mut dyn StoreTxn, inode: &Inode) -> Result<()> {
    if inode.file().is_none_or(|file| !file.redundancy.is_contiguous()) {
        return Ok(());
    }
    // One that is packed waits for another container, whoever writes behind it.
    for block in last_two(store, inode)?.iter().filter(|block| !block.is_coded()) {
        forget(store, block.id)?;
    }
    Ok(())
}

/// The last two blocks of a file, which was just closed, wait from now on.
pub(crate) fn closed(
    store: &mut dyn StoreTxn,
    settings: &Settings,
    inode: &Inode,
    elapsed_ms: u64,
) -> Result<()> {
    let Some(file) = inode.file().filter(|file| file.redundancy.is_contiguous()) else {
        return Ok(());
    };
    for block in last_two(store, inode)? {
        closed_block(store, settings, file, &block, elapsed_ms)?;
    }
    Ok(())
}

/// A block of an open file is not among the last two any more: a whole one may be grouped at once.
pub(crate) fn left_behind(
    store: &mut dyn StoreTxn,
    settings: &Settings,
    file: &File,
    block: &Block,
    elapsed_ms: u64,
) -> Result<()> {
    match block.len >= file.block_size {
        true => begin(store, settings, file, block, elapsed_ms),
        false => closed_block(store, settings, file, block, elapsed_ms),
    }
}
