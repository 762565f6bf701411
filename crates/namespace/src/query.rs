//! Questions about a state of the namespace. None of them changes anything.
//!
//! Where a path is asked for, the caller's permissions are checked as Hadoop does.

use crate::block::{self, Block};
use crate::command::Caller;
use crate::encoding::{Decode, DecodeError, Decoder, Encode, Encoder};
use crate::error::{NamespaceError, Result};
use crate::inode::{self, FileRedundancy, Inode, InodeId};
use crate::ops::add_block::AddBlock;
use crate::ops::{counter, set_storage_policy, xattr};
use crate::path::{self, InSnapshot, Purpose, Resolved};
use crate::perm::{self, Access};
use crate::settings;
use crate::snapshot::{capture, reclaim};
use crate::store::{StoreRead, Table};
use crate::tree::{self, Siblings};
use crate::{lease, policy_admin, snapshot};
use cairn_stripe::{BlockId, GenerationStamp, Policy, PolicyId, Redundancy};
use std::ops::ControlFlow;

pub use crate::lease::ExpiredLease;
pub use crate::ops::acl::{AclStatus, get_acl_status};
pub use crate::ops::xattr::{check_xattr, get_xattrs, list_xattrs};
pub use crate::policy_admin::PolicyInfo;
pub use crate::snapshot::reclaim::Held;

/// What clients see of a file or directory (`HdfsFileStatusProto`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileStatus {
    /// Its record.
    pub inode: Inode,
    /// A file's policy, or the one in force on a directory.
    pub policy: Option<Policy>,
    /// Storage policy in force; 0 if none is set on it or above.
    pub storage_policy: u8,
    /// Whether snapshots may be taken of it.
    pub snapshottable: bool,
}

// Only files that were just opened are kept, for their retries: nothing is snapshottable there.
impl Encode for FileStatus {
    fn encode(&self, out: &mut Encoder) {
        self.inode.encode(out);
        self.policy.encode(out);
        self.storage_policy.encode(out);
    }
}

impl Decode for FileStatus {
    fn decode(input: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        Ok(FileStatus {
            inode: Decode::decode(input)?,
            policy: Decode::decode(input)?,
            storage_policy: Decode::decode(input)?,
            snapshottable: false,
        })
    }
}

impl Encode for Box<FileStatus> {
    fn encode(&self, out: &mut Encoder) {
        self.as_ref().encode(out);
    }
}

impl Decode for Box<FileStatus> {
    fn decode(input: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        FileStatus::decode(input).map(Box::new)
    }
}

impl FileStatus {
    /// Bytes of a file; 0 for a directory.
    pub fn len(&self) -> u64 {
        self.inode.file().map_or(0, |file| file.len)
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Copies as clients see them: 1 for a striped file, 0 for a directory.
    pub fn replication(&self) -> u16 {
        match self.inode.file().map(|file| file.redundancy) {
            Some(FileRedundancy::Replicated(copies)) => copies,
            Some(FileRedundancy::Striped(_)) => 1,
            None => 0,
        }
    }

    /// Bytes of a whole block; 0 for a directory.
    pub fn block_size(&self) -> u64 {
        self.inode.file().map_or(0, |file| file.block_size)
    }

    /// Number of children; 0 for a file.
    pub fn children(&self) -> u64 {
        self.inode.directory().map_or(0, |directory| directory.children)
    }

    /// Whether someone writes it.
    pub fn is_under_construction(&self) -> bool {
        self.inode.file().is_some_and(|file| file.writer.is_some())
    }

    pub(crate) fn of(store: &dyn StoreRead, at: &Resolved) -> Result<Option<FileStatus>> {
        let Some(inode) = at.target() else { return Ok(None) };
        Ok(Some(FileStatus {
            inode: inode.clone(),
            policy: policy_admin::effective(store, at)?,
            storage_policy: set_storage_policy::effective(&at.chain),
            // The picture of a directory in its snapshot has none itself.
            snapshottable: inode.is_directory()
                && at.snapshot.is_none()
                && snapshot::is_snapshottable(store, inode.id)?,
        }))
    }
}

fn resolve(store: &dyn StoreRead, caller: &Caller, path: &str) -> Result<Resolved> {
    path::resolve(store, &settings::get(store)?, caller, path, Purpose::Use)
}

/// The status of a path; `None` if nothing is there.
///
/// Source: Hadoop 3.5.0 `FSDirStatAndListingOp#getFileInfo`.
pub fn get_file_info(
    store: &dyn StoreRead,
    caller: &Caller,
    path: &str,
) -> Result<Option<FileStatus>> {
    let at = resolve(store, caller, path)?;
    FileStatus::of(&at.view(store), &at)
}

/// The status of an inode and its path; `None` if it was deleted. Checks no permissions.
pub fn get_inode_info(store: &dyn StoreRead, id: InodeId) -> Result<Option<(String, FileStatus)>> {
    let Some(at) = path::of_inode(store, id)? else { return Ok(None) };
    Ok(FileStatus::of(store, &at)?.map(|status| (at.path, status)))
}

/// One page of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    /// The entries in byte order of their names.
    pub entries: Vec<FileStatus>,
    /// How many entries are left after this page; an upper bound if the directory has changed
    /// between pages.
    pub remaining: u64,
}

/// At most `limit` entries of a directory whose names follow `start_after` (empty for the first
/// page); a file lists itself with an empty name. `None` if nothing is there.
///
/// Source: Hadoop 3.5.0 `FSDirStatAndListingOp#getListing`.
pub fn get_listing(
    store: &dyn StoreRead,
    caller: &Caller,
    path: &str,
    start_after: &[u8],
    limit: usize,
) -> Result<Option<Listing>> {
    let settings = settings::get(store)?;
    let mut at = path::resolve(store, &settings, caller, path, Purpose::Use)?;
    if let Some(InSnapshot::Names(root)) = at.snapshot {
        return snapshot::listing::list_names(store, &at, root, start_after, limit).map(Some);
    }
    if at.names.last().is_some_and(|name| name == snapshot::DOT_SNAPSHOT) {
        let above = at.above();
        crate::ops::snapshot::directory(&above, &above.path)?;
        return Err(snapshot::listing::not_snapshottable(&above.path));
    }
    let view = at.view(store);
    let store = &view;
    let Some(target) = at.target() else { return Ok(None) };
    if !target.is_directory() {
        let mut status = FileStatus::of(store, &at)?;
        if let Some(status) = &mut status {
            status.inode.name.clear();
        }
        return Ok(status.map(|status| Listing { entries: vec![status], remaining: 0 }));
    }
    perm::check_access(&settings, caller, &at, Access::READ_EXECUTE)?;
    let total = target.directory().map_or(0, |directory| directory.children);
    let resumed = start_of(store, start_after)?;
    let after = (!resumed.is_empty()).then_some(resumed.as_slice());
    // One more than asked for tells whether this page is the last.
    let ids = inode::children(store, target.id, after, limit.saturating_add(1))?;
    let more = ids.len() > limit;
    let mut entries = Vec::with_capacity(ids.len().min(limit));
    for id in ids.into_iter().take(limit) {
        let child = inode::expect(store, id)?;
        // As [`FileStatus::of`], with nothing copied.
        at.names.push(String::new());
        at.chain.push(child);
        let policy = policy_admin::effective(store, &at)?;
        let storage_policy = set_storage_policy::effective(&at.chain);
        at.names.pop();
        let Some(inode) = at.chain.pop() else { continue };
        let snapshottable = inode.is_directory() && snapshot::is_snapshottable(store, inode.id)?;
        entries.push(FileStatus { inode, policy, storage_policy, snapshottable });
    }
    let remaining = if more { total.saturating_sub(entries.len() as u64).max(1) } else { 0 };
    Ok(Some(Listing { entries, remaining }))
}

/// Whether a path is `/.reserved` itself, which is shown as a directory but is none.
///
/// Source: Hadoop 3.5.0 `FSDirectory#isExactReservedName`.
pub fn is_reserved_root(path: &str) -> bool {
    path.split('/').filter(|name| !name.is_empty()).eq([".reserved"])
}

/// The name after which a listing goes on; clients may name it by its inode.
///
/// Source: Hadoop 3.5.0 `FSDirStatAndListingOp#getListingInt`.
fn start_of(store: &dyn StoreRead, start_after: &[u8]) -> Result<Vec<u8>> {
    let path = std::str::from_utf8(start_after).unwrap_or_default();
    if !path.starts_with("/.reserved/") {
        return Ok(start_after.to_vec());
    }
    match path::real_names(store, path) {
        Ok(mut names) => Ok(names.pop().unwrap_or_default().into_bytes()),
        Err(NamespaceError::Store(error)) => Err(error.into()),
        Err(_) => {
            Err(NamespaceError::ListingStartNotFound(format!("Can't find startAfter {path}")))
        }
    }
}

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
    let mut blocks = Vec::new();
    let first = first_block_reaching(store, status.inode.id, count, offset)?;
    for index in first..count {
        let (start, block) = block::at(store, status.inode.id, index)?;
        if start >= end {
            break;
        }
        let empty_tail = block.len == 0 && len == u64::MAX;
        let reaches = start.saturating_add(block.len) > offset;
        if reaches || empty_tail || (index + 1 == count && !block.is_final()) {
            blocks.push((start, block));
        }
    }
    let last = match count {
        0 => None,
        count => Some(block::at(store, status.inode.id, count - 1)?),
    };
    Ok(FileBlocks { status, redundancy, blocks, last, touch: false })
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

/// A block with what it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockInfo {
    /// The block.
    pub block: Block,
    /// Replicas or policy.
    pub redundancy: Redundancy,
    /// Whether its file is open for writing.
    pub file_open: bool,
}

/// The block or group that `id` (also an internal block's) belongs to; `None` if no file has it.
pub fn get_block(store: &dyn StoreRead, id: BlockId) -> Result<Option<BlockInfo>> {
    match block::get(store, id)? {
        Some(block) => with_file(store, block, capture::in_use(store)?),
        None => Ok(None),
    }
}

/// The storage policy in force for the file of a block; 0 for the default, and for a block of no file.
///
/// Source: Hadoop 3.5.0 `INodeFile#getStoragePolicyID`.
pub fn storage_policy_of_block(store: &dyn StoreRead, id: BlockId) -> Result<u8> {
    let Some(block) = block::get(store, id)? else { return Ok(0) };
    let chain = match path::of_inode(store, block.file)? {
        Some(at) => at.chain,
        None => reclaim::kept_chain(store, block.file)?,
    };
    Ok(set_storage_policy::effective(&chain))
}

/// The inode of the file that has a block, or had it and is in a snapshot.
pub fn file_of_block(store: &dyn StoreRead, id: BlockId) -> Result<Option<Inode>> {
    match block::get(store, id)? {
        Some(block) => reclaim::current_or_kept(store, block.file),
        None => Ok(None),
    }
}

fn with_file(
    store: &dyn StoreRead,
    block: Block,
    has_snapshots: bool,
) -> Result<Option<BlockInfo>> {
    let now = inode::get(store, block.file)?;
    let file = now.as_ref().and_then(Inode::file);
    let file_open = file.is_some_and(|file| file.writer.is_some());
    let redundancy = match file.map(|file| file.redundancy) {
        Some(redundancy) if !has_snapshots => Some(redundancy),
        redundancy => reclaim::redundancy(store, block.file, redundancy)?,
    };
    let Some(redundancy) = redundancy else { return Ok(None) };
    let redundancy = policy_admin::redundancy(store, redundancy)?;
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
    let has_snapshots = capture::in_use(store)?;
    for block in found {
        infos.extend(with_file(store, block?, has_snapshots)?);
    }
    Ok(infos)
}

/// What `addBlock` will do, for choosing targets before the command is submitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AddBlockPlan {
    /// An earlier call added the block already: the answer is this one, with its offset.
    Retry {
        /// Where it begins in the file.
        offset: u64,
        /// The block.
        block: Block,
    },
    /// A block is to be placed.
    New {
        /// The file.
        file: InodeId,
        /// Its path now.
        path: String,
        /// Bytes of a whole block.
        block_size: u64,
        /// Replicas or policy.
        redundancy: Redundancy,
        /// Storage policy in force; 0 for the default.
        storage_policy: u8,
        /// The client's host.
        client_machine: String,
        /// The block before the previous one, which must have its minimum of replicas or the
        /// call fails with `NotReplicatedYet`.
        penultimate: Option<Block>,
    },
}

/// Checks `command` against the state as it is and says what it needs.
///
/// Source: Hadoop 3.5.0 `FSDirWriteFileOp#validateAddBlock`.
pub fn plan_add_block(store: &dyn StoreRead, command: &AddBlock) -> Result<AddBlockPlan> {
    command.plan(store, &settings::get(store)?)
}

/// What `getAdditionalDatanode` needs: the open file, checked for its lease.
///
/// Source: Hadoop 3.5.0 `FSNamesystem#getAdditionalDatanode`.
pub fn check_lease(
    store: &dyn StoreRead,
    path: &str,
    file: Option<InodeId>,
    holder: &str,
) -> Result<FileStatus> {
    let at = crate::ops::open_file(store, &Caller::system(), path, file, holder)?;
    FileStatus::of(store, &at)?
        .ok_or_else(|| NamespaceError::FileNotFound(format!("File does not exist: {}", at.path)))
}

/// Blocks of an open file that do not have their minimum of replicas for sure, oldest first: the ones
/// that are not [`block::BlockState::Complete`].
pub fn incomplete_blocks(store: &dyn StoreRead, file: InodeId) -> Result<Vec<Block>> {
    let Some(inode) = inode::get(store, file)? else { return Ok(Vec::new()) };
    let count = inode.file().map_or(0, |file| file.block_count as u32);
    let mut found = Vec::new();
    // Blocks become complete in order, so the open ones are at the end.
    for index in (0..count).rev() {
        let (_, block) = block::at(store, file, index)?;
        if block.state == block::BlockState::Complete {
            break;
        }
        found.push(block);
    }
    found.reverse();
    Ok(found)
}

/// Holders beyond the hard limit at `now_ms`; the shell closes their files by `ReleaseLease`.
pub fn expired_leases(
    store: &dyn StoreRead,
    now_ms: u64,
    limit: usize,
) -> Result<Vec<ExpiredLease>> {
    lease::expired(store, &settings::get(store)?, now_ms, limit)
}

/// Every policy with its state, by id.
pub fn policies(store: &dyn StoreRead) -> Result<Vec<PolicyInfo>> {
    policy_admin::all(store)
}

/// The policy of a path; `None` if its files are replicated.
///
/// Source: Hadoop 3.5.0 `FSDirErasureCodingOp#getErasureCodingPolicy`.
pub fn get_ec_policy(store: &dyn StoreRead, caller: &Caller, path: &str) -> Result<Option<Policy>> {
    let settings = settings::get(store)?;
    let at = path::resolve(store, &settings, caller, path, Purpose::Use)?;
    perm::check_access(&settings, caller, &at, Access::READ)?;
    if at.target().is_none() {
        return Err(NamespaceError::FileNotFound(format!("Path not found: {path}")));
    }
    policy_admin::effective(store, &at)
}

/// Sums below a path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContentSummary {
    /// Bytes in files.
    pub len: u64,
    /// Files.
    pub files: u64,
    /// Directories, the path itself counted.
    pub directories: u64,
    /// Bytes on disk with all copies and parity.
    pub space: u64,
    /// Limit on inodes of the path itself.
    pub names_max: Option<u64>,
    /// Limit on bytes on disk of the path itself.
    pub space_max: Option<u64>,
    /// What of all that only snapshots have.
    pub held: Held,
    /// Name of the policy, empty for replicas on a directory, `Replicated` for a replicated file.
    pub policy: String,
}

/// What Hadoop tells as the limit on inodes of a root that has none.
///
/// Source: Hadoop 3.5.0 `DirectoryWithQuotaFeature#DEFAULT_NAMESPACE_QUOTA`.
const ROOT_NAMES_MAX: u64 = i64::MAX as u64;

/// What is used below a path, with its limits.
///
/// Source: Hadoop 3.5.0 `FSDirStatAndListingOp#getQuotaUsage`.
pub fn quota_usage(store: &dyn StoreRead, caller: &Caller, path: &str) -> Result<ContentSummary> {
    let at = resolve(store, caller, path)?;
    let Some(target) = at.target() else {
        return Err(NamespaceError::FileNotFound(format!(
            "File/Directory does not exist: {}",
            at.path
        )));
    };
    let (view, settings) = (at.view(store), settings::get(store)?);
    perm::check_below(&view, &settings, caller, target, Access::READ_EXECUTE)?;
    content_summary(store, caller, path)
}

/// Walks the tree below `path` without loading it.
///
/// Source: Hadoop 3.5.0 `FSDirStatAndListingOp#getContentSummary`.
pub fn content_summary(
    store: &dyn StoreRead,
    caller: &Caller,
    path: &str,
) -> Result<ContentSummary> {
    let settings = settings::get(store)?;
    let at = path::resolve(store, &settings, caller, path, Purpose::Use)?;
    let Some(target) = at.target().cloned() else {
        return Err(NamespaceError::FileNotFound(format!("File does not exist: {}", at.path)));
    };
    let mut sum = ContentSummary::default();
    if let Some(quota) = target.directory().and_then(|directory| directory.quota.as_ref()) {
        sum.names_max = quota.names_max;
        sum.space_max = quota.space_max;
    }
    if target.id == InodeId::ROOT {
        sum.names_max.get_or_insert(ROOT_NAMES_MAX);
    }
    sum.policy = match policy_admin::effective(store, &at)? {
        Some(policy) => policy.name,
        None if policy_admin::effective_id(&at) == Some(PolicyId::REPLICATION) => {
            "replication".to_string()
        }
        None if target.is_directory() => String::new(),
        None => "Replicated".to_string(),
    };
    if at.snapshot.is_none() && target.is_directory() {
        let held = reclaim::held_below(store, target.id)?;
        (sum.files, sum.directories) = (held.files, held.directories);
        (sum.len, sum.space) = (held.len, held.space);
        sum.held = held;
    }
    let view = at.view(store);
    let store = &view;
    tree::descend(store, &target, Siblings::FirstFirst, &mut |inode| {
        if let Some(file) = inode.file() {
            sum.files += 1;
            sum.len = sum.len.saturating_add(file.len);
            sum.space = sum.space.saturating_add(tree::file_space(store, inode)?);
        } else {
            perm::check_inode(store, &settings, caller, inode, Access::READ_EXECUTE)?;
            sum.directories += 1;
        }
        Ok(())
    })?;
    Ok(sum)
}

/// How a refusal tells the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathShown {
    /// As the call gave it.
    AsGiven,
    /// As it was followed.
    AsFollowed,
}

/// The status of a file, or `FileNotFound` if there is none or it is a directory.
///
/// Source: Hadoop 3.5.0 `INodeFile#valueOf`.
pub fn get_file(
    store: &dyn StoreRead,
    caller: &Caller,
    path: &str,
    told: PathShown,
) -> Result<FileStatus> {
    let at = resolve(store, caller, path)?;
    let path = if told == PathShown::AsGiven { path } else { &at.path };
    let missing = |text: &str| NamespaceError::FileNotFound(format!("{text}: {path}"));
    let status =
        FileStatus::of(&at.view(store), &at)?.ok_or_else(|| missing("File does not exist"))?;
    if status.inode.is_directory() {
        return Err(missing("Path is not a file"));
    }
    Ok(status)
}

/// Checks what `access(2)` asks: fails unless the caller may.
///
/// Source: Hadoop 3.5.0 `FSNamesystem#checkAccess`.
pub fn check_access(
    store: &dyn StoreRead,
    caller: &Caller,
    path: &str,
    access: Access,
) -> Result<()> {
    let settings = settings::get(store)?;
    let at = path::resolve(store, &settings, caller, path, Purpose::Use)?;
    if at.target().is_none() {
        return Err(NamespaceError::FileNotFound(format!("Path not found: {}", at.path)));
    }
    perm::check_access(&settings, caller, &at, access)
}

/// Fails unless the caller may reach `path` and read what is there, if anything.
///
/// Source: Hadoop 3.5.0 `FSDirectory#checkPathAccess`.
pub fn check_readable(store: &dyn StoreRead, caller: &Caller, path: &str) -> Result<()> {
    let settings = settings::get(store)?;
    let at = path::resolve(store, &settings, caller, path, Purpose::Use)?;
    perm::check_access(&settings, caller, &at, Access::READ)
}

/// Fails unless the caller is a superuser.
pub fn check_superuser(store: &dyn StoreRead, caller: &Caller) -> Result<()> {
    perm::check_superuser(&settings::get(store)?, caller)
}

/// Numbers for pages and metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Files and directories, the root counted.
    pub inodes: u64,
    /// Blocks and block groups.
    pub blocks: u64,
    /// The last generation stamp that was given out.
    pub generation_stamp: u64,
}

/// Totals of the namespace, kept as counters.
pub fn totals(store: &dyn StoreRead) -> Result<Totals> {
    use crate::ops::counter::Counter;
    Ok(Totals {
        inodes: counter::get(store, Counter::Inodes)?,
        blocks: counter::get(store, Counter::Blocks)?,
        generation_stamp: counter::get(store, Counter::GenerationStamp)?,
    })
}

/// Whether the namespace never gave out this generation stamp: it was started with an old state.
pub fn is_future_stamp(store: &dyn StoreRead, gs: GenerationStamp) -> Result<bool> {
    Ok(gs.0 > counter::get(store, counter::Counter::GenerationStamp)?)
}
