//! Questions about the blocks of files: where each is in its file, how it is to be kept, what comes next.

use crate::block::{self, Block, BlockState};
use crate::caller::Caller;
use crate::container;
use crate::error::{NamespaceError, Result};
use crate::group::{self, GroupState};
use crate::inode::{self, Inode, InodeId, InodeRef, Kind};
use crate::lease;
use crate::ops::add_block::{AddBlock, AddBlockPlan};
use crate::ops::truncate::cut_block;
use crate::ops::xattr;
use crate::path::{self, Purpose, Resolved};
use crate::perm::{self, Access};
use crate::snapshot::{self, garbage, kept};
use crate::status::FileStatus;
use crate::store::{StoreRead, Table};
use crate::{policy_admin, settings, storage_policy};
use cairn_stripe::{BlockId, Redundancy};
use std::ops::ControlFlow;

/// Blocks of a range of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileBlocks {
    /// The file.
    pub status: FileStatus,
    /// Replicas or policy.
    pub redundancy: Redundancy,
    /// Offsets and blocks that hold bytes of the range, in order.
    pub blocks: Vec<(u64, Block)>,
    /// Offset and block at the end of the file.
    pub last: Option<(u64, Block)>,
    /// Whether it is in a snapshot, where its length is what it was, however the last block goes on.
    pub in_snapshot: bool,
    /// Whether the access time is old enough to be set by `TouchAccessTime`.
    pub touch: bool,
}

/// Blocks of `path` that hold bytes of `offset..offset + len`. `now_ms` decides on the access time.
///
/// Source: Hadoop 3.5.0 `FSDirStatAndListingOp#getBlockLocations`.
pub fn get_blocks(
    store: &dyn StoreRead,
    caller: &Caller,
    path: &str,
    offset: u64,
    len: u64,
    now_ms: u64,
) -> Result<FileBlocks> {
    let settings = settings::get(store)?;
    // Hadoop looks what is there first, and whether the caller may then.
    let at = path::resolve(store, &settings, &Caller::system(), path, Purpose::Use)?;
    match at.target() {
        None => {
            return Err(NamespaceError::FileNotFound(format!("File does not exist: {}", at.path)));
        }
        Some(target) if target.is_directory() => {
            return Err(NamespaceError::FileNotFound(format!("Path is not a file: {}", at.path)));
        }
        Some(target) => {
            xattr::check_readable(&at.view(store), &settings, caller, target.id)?;
            perm::check_traverse(&settings, caller, &at)?;
            perm::check_access(&settings, caller, &at, Access::READ)?;
        }
    }
    let precision = settings.access_time_precision_ms;
    let atime = at.target().map_or(0, |inode| inode.atime);
    let mut found = blocks_in_range(&at.view(store), &at, offset, len)?;
    found.touch =
        at.snapshot.is_none() && precision > 0 && now_ms > atime.saturating_add(precision);
    Ok(found)
}

/// All blocks of a file by its id; `None` if it was deleted. Checks no permissions.
pub fn file_blocks(store: &dyn StoreRead, id: InodeId) -> Result<Option<FileBlocks>> {
    match path::of_inode(store, id)? {
        Some(at) if at.target().is_some_and(|inode| !inode.is_directory()) => {
            blocks_in_range(store, &at, 0, u64::MAX).map(Some)
        }
        _ => Ok(None),
    }
}

/// All blocks of the file at a path, in a snapshot as they were then; `None` if no file is there. Checks no
/// permissions.
pub fn file_blocks_at(store: &dyn StoreRead, path: &str) -> Result<Option<FileBlocks>> {
    let at = path::follow(store, path)?;
    match at.target() {
        Some(inode) if !inode.is_directory() => {
            blocks_in_range(&at.view(store), &at, 0, u64::MAX).map(Some)
        }
        _ => Ok(None),
    }
}

fn blocks_in_range(
    store: &dyn StoreRead,
    at: &Resolved,
    offset: u64,
    len: u64,
) -> Result<FileBlocks> {
    let status = FileStatus::of(store, at)?
        .ok_or_else(|| NamespaceError::FileNotFound(format!("File does not exist: {}", at.path)))?;
    let file = status
        .inode
        .file()
        .ok_or_else(|| NamespaceError::FileNotFound(format!("Path is not a file: {}", at.path)))?;
    let redundancy = policy_admin::redundancy(store, file.redundancy)?;
    let count = file.block_count as u32;
    // The last block may have grown since a snapshot; what came then is not part of it.
    let most = if at.snapshot.is_some() { file.len.saturating_sub(offset) } else { u64::MAX };
    let len = len.min(most);
    // Who asks for no bytes gets the block that they would be in.
    let end = offset.saturating_add(len.max(1));
    let (mut blocks, mut last) = (Vec::new(), None);
    let first = first_block_reaching(store, status.inode.id, count, offset)?;
    for index in first..count {
        let (start, block) = block::at(store, status.inode.id, index)?;
        if index + 1 == count {
            last = Some((start, block.clone()));
        }
        if start >= end {
            break;
        }
        let empty_tail = block.len == 0 && len == u64::MAX;
        let reaches = start.saturating_add(block.len) > offset;
        if reaches || empty_tail || (index + 1 == count && !block.is_final()) {
            blocks.push((start, block));
        }
    }
    let last = match count.checked_sub(1) {
        Some(index) if last.is_none() => Some(block::at(store, status.inode.id, index)?),
        _ => last,
    };
    let in_snapshot = at.snapshot.is_some();
    Ok(FileBlocks { status, redundancy, blocks, last, in_snapshot, touch: false })
}

/// Index of the last block that begins at or before `offset`, by bisection.
fn first_block_reaching(
    store: &dyn StoreRead,
    file: InodeId,
    count: u32,
    offset: u64,
) -> Result<u32> {
    let (mut low, mut high) = (0, count);
    while low + 1 < high {
        let middle = low + (high - low) / 2;
        if block::position(store, file, middle)?.offset <= offset {
            low = middle;
        } else {
            high = middle;
        }
    }
    Ok(low)
}

/// How the members of a formed group are kept.
const ONE_COPY: Redundancy = Redundancy::Replicated(1);
/// How packed blocks are kept, which have their bytes in a container.
const NO_COPY: Redundancy = Redundancy::Replicated(0);
/// How a container is kept that has packed blocks and is in no group, or in one that is to end.
const COPIES: Redundancy = Redundancy::Replicated(3);

/// A block with what it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockInfo {
    /// The block.
    pub block: Block,
    /// Replicas or policy; one replica for a member of a formed group.
    pub redundancy: Redundancy,
    /// Whether its file is open for writing.
    pub file_open: bool,
}

/// The block or group that `id` (also an internal block's) belongs to; `None` if no file has it and it is no tombstone
/// of a contiguous group.
pub fn get_block(store: &dyn StoreRead, id: BlockId) -> Result<Option<BlockInfo>> {
    find_block(store, id, has_snapshots(store)?)
}

/// The blocks or groups with those ids, in their order, each as [`get_block`] finds it.
pub fn get_blocks_by_id(store: &dyn StoreRead, ids: &[BlockId]) -> Result<Vec<Option<BlockInfo>>> {
    let has_snapshots = has_snapshots(store)?;
    ids.iter().map(|id| find_block(store, *id, has_snapshots)).collect()
}

fn find_block(
    store: &dyn StoreRead,
    id: BlockId,
    has_snapshots: bool,
) -> Result<Option<BlockInfo>> {
    match block::get(store, id)? {
        Some(block) => with_file(store, block, has_snapshots),
        None => Ok(None),
    }
}

/// Whether blocks may be kept as snapshots need them, and not only as their files say.
pub fn has_snapshots(store: &dyn StoreRead) -> Result<bool> {
    garbage::in_use(store)
}

/// The storage policy in force for the file of a block; 0 for the default, and for a block of no file.
///
/// Source: Hadoop 3.5.0 `INodeFile#getStoragePolicyID`.
pub fn storage_policy_of_block(store: &dyn StoreRead, id: BlockId) -> Result<u8> {
    let Some(block) = block::get(store, id)? else { return Ok(0) };
    if block.file == InodeId::CONTAINERS {
        return Ok(container::expect(store, id)?.storage_policy);
    }
    let chain = match path::of_inode(store, block.file)? {
        Some(at) => at.chain,
        None => kept::kept_chain(store, block.file)?.0,
    };
    Ok(storage_policy::effective(&chain))
}

/// The inode of the file that has a block, or had it and is in a snapshot.
pub fn file_of_block(store: &dyn StoreRead, id: BlockId) -> Result<Option<Inode>> {
    match block::get(store, id)? {
        Some(block) => kept::current_or_kept(store, block.file),
        None => Ok(None),
    }
}

fn with_file(
    store: &dyn StoreRead,
    block: Block,
    has_snapshots: bool,
) -> Result<Option<BlockInfo>> {
    if block.is_tombstone() {
        return Ok(Some(BlockInfo { block, redundancy: ONE_COPY, file_open: false }));
    }
    if block.file == InodeId::CONTAINERS {
        let redundancy = match &block.group {
            Some(of) if group::expect(store, of.handle)?.state == GroupState::Formed => ONE_COPY,
            _ if container::expect(store, block.id)?.is_needed() => COPIES,
            _ => ONE_COPY,
        };
        return Ok(Some(BlockInfo { block, redundancy, file_open: false }));
    }
    let mut found = Ok(None);
    store.peek(Table::Inode, &block.file.key(), &mut |record| {
        found = InodeRef::from_bytes(record).map(|inode| match &inode.kind {
            Kind::File(file) => Some((file.redundancy, file.writer.is_some())),
            _ => None,
        });
    })?;
    let file = found?;
    let file_open = file.is_some_and(|(_, is_open)| is_open);
    let redundancy = match file.map(|(redundancy, _)| redundancy) {
        Some(redundancy) if !has_snapshots => Some(redundancy),
        redundancy => kept::redundancy(store, block.file, redundancy)?,
    };
    let Some(redundancy) = redundancy else { return Ok(None) };
    let redundancy = match &block.group {
        Some(of) if group::expect(store, of.handle)?.state == GroupState::Formed => ONE_COPY,
        _ if block.packed.is_some() => NO_COPY,
        _ => policy_admin::redundancy(store, redundancy)?,
    };
    Ok(Some(BlockInfo { block, redundancy, file_open }))
}

/// At most `limit` blocks with ids greater than `after`, ascending.
pub fn blocks_after(
    store: &dyn StoreRead,
    after: Option<BlockId>,
    limit: usize,
) -> Result<Vec<BlockInfo>> {
    let from = after.map_or(Vec::new(), |id| block::key(BlockId(id.0.saturating_add(1))).to_vec());
    let mut found = Vec::new();
    if limit > 0 {
        store.scan(Table::Block, &from, &[], &mut |_, value| {
            found.push(block::decode(value));
            if found.len() < limit { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
    }
    let mut infos = Vec::with_capacity(found.len());
    let has_snapshots = has_snapshots(store)?;
    for block in found {
        infos.extend(with_file(store, block?, has_snapshots)?);
    }
    Ok(infos)
}

/// All blocks of a file, those too that only snapshots have; the file may be in snapshots only. Checks no permissions.
pub fn blocks_of_file(store: &dyn StoreRead, file: InodeId) -> Result<Vec<BlockId>> {
    kept::all_blocks(store, file)
}

/// The packed blocks of a file, those too that only snapshots have. Checks no permissions.
pub fn packed_blocks_of_file(store: &dyn StoreRead, file: InodeId) -> Result<Vec<Block>> {
    let mut found = Vec::new();
    for id in kept::all_blocks(store, file)? {
        found.extend(block::get(store, id)?.filter(|block| block.packed.is_some()));
    }
    Ok(found)
}

/// The packed block inside which the file at a path would end if it were cut off. Checks no permissions.
pub fn packed_cut(store: &dyn StoreRead, path: &str, new_len: u64) -> Result<Option<BlockId>> {
    let at = path::follow(store, path)?;
    let Some(inode) = at.target().filter(|inode| !inode.is_directory()) else { return Ok(None) };
    let cut = cut_block(store, inode, new_len)?;
    Ok(cut.filter(|cut| cut.packed.is_some()).map(|cut| cut.id))
}

/// The copies that are asked for of a block, by its file and by snapshots of that; none for one that no file has.
pub fn copies_of_block(store: &dyn StoreRead, block: &Block) -> Result<Option<u16>> {
    Ok(kept::redundancy_of(store, block.file)?.and_then(|redundancy| redundancy.copies()))
}

/// The block that is becoming a copy of the first bytes of `block`, at the end of the same file.
pub fn copy_of(store: &dyn StoreRead, block: &Block) -> Result<Option<BlockId>> {
    let Some(inode) = inode::get(store, block.file)? else { return Ok(None) };
    let last = block::last(store, &inode)?;
    Ok(last.filter(|last| last.copy_source() == Some(block.id)).map(|last| last.id))
}

/// The last block of a file with its offset; none if there is no such file, or it has no blocks. Checks no permissions.
pub fn last_block(store: &dyn StoreRead, file: InodeId) -> Result<Option<(u64, Block)>> {
    let count = inode::get(store, file)?.and_then(|inode| Some(inode.file()?.block_count));
    match count.and_then(|count| count.checked_sub(1)) {
        Some(index) => block::at(store, file, index as u32).map(Some),
        None => Ok(None),
    }
}

/// The last `count` blocks of a file, or all that it has, the last first.
pub fn last_blocks(store: &dyn StoreRead, file: InodeId, count: usize) -> Result<Vec<Block>> {
    let Some(inode) = inode::get(store, file)? else { return Ok(Vec::new()) };
    let all = inode.file().map_or(0, |file| file.block_count as u32);
    let indices = (0..all).rev().take(count);
    indices.map(|index| Ok(block::at(store, file, index)?.1)).collect()
}

/// Checks `command` against the state as it is and says what it needs.
///
/// Source: Hadoop 3.5.0 `FSDirWriteFileOp#validateAddBlock`.
pub fn plan_add_block(
    store: &dyn StoreRead,
    caller: &Caller,
    command: &AddBlock,
) -> Result<AddBlockPlan> {
    command.plan(store, &*settings::get(store)?, caller)
}

/// Blocks of an open file that do not have their minimum of replicas for sure, oldest first: the ones
/// that are not [`BlockState::Complete`].
pub fn incomplete_blocks(store: &dyn StoreRead, file: InodeId) -> Result<Vec<Block>> {
    let Some(inode) = inode::get(store, file)? else { return Ok(Vec::new()) };
    let count = inode.file().map_or(0, |file| file.block_count as u32);
    let mut found = Vec::new();
    // Blocks become complete in order, so the open ones are at the end.
    for index in (0..count).rev() {
        let (_, block) = block::at(store, file, index)?;
        if block.state == BlockState::Complete {
            break;
        }
        found.push(block);
    }
    found.reverse();
    Ok(found)
}

/// How many blocks of removed files, which only snapshots have, are not complete: nobody writes to them any more.
pub fn incomplete_held_blocks(store: &dyn StoreRead) -> Result<u64> {
    Ok(open_held_blocks(store)?.len() as u64)
}

fn open_held_blocks(store: &dyn StoreRead) -> Result<Vec<BlockId>> {
    let mut found = Vec::new();
    for file in snapshot::all_removed(store)? {
        for id in kept::all_blocks(store, file)? {
            let is_open = |block: &Block| block.file == file && block.state != BlockState::Complete;
            found.extend(block::get(store, id)?.filter(is_open).map(|block| block.id));
        }
    }
    Ok(found)
}

/// All blocks that are not complete: of open files, and of removed ones that only snapshots have.
pub fn open_blocks(store: &dyn StoreRead) -> Result<Vec<BlockId>> {
    let mut found = open_held_blocks(store)?;
    for file in lease::open_files(store, InodeId::NONE, usize::MAX)? {
        found.extend(incomplete_blocks(store, file)?.iter().map(|block| block.id));
    }
    Ok(found)
}
