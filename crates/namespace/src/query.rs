//! Questions about a state of the namespace. None of them changes anything.
//!
//! Where a path is asked for, the caller's permissions are checked as Hadoop does.

mod blocks;
mod direct;
mod page;
mod summary;

use crate::caller::Caller;
use crate::encoding::{Decode, DecodeError, Decoder, Encode, Encoder};
use crate::encryption::{self, Encryption};
use crate::error::{NamespaceError, Result};
use crate::inode::{self, FileRedundancy, Inode, InodeId};
use crate::path::{self, InSnapshot, Purpose, Resolved};
use crate::perm::{self, Access};
use crate::settings::{self, Settings};
use crate::store::{StoreRead, StoreTxn};
use crate::{counter, lease, policy_admin, snapshot, storage_policy};
use cairn_stripe::{GenerationStamp, Policy};
use std::sync::Arc;

pub use crate::encryption::{
    key_of_zone, reencrypted_zones, zone_of_new_file, zone_of_path, zones,
};
pub use crate::lease::ExpiredLease;
pub use crate::ops::acl::{AclStatus, get_acl_status};
pub use crate::ops::satisfy_storage_policy::to_satisfy;
pub use crate::ops::set_quota::check_quota;
pub use crate::ops::xattr::{check_xattr, get_xattrs, list_xattrs};
pub use crate::policy_admin::PolicyInfo;
pub use crate::snapshot::held::Held;
pub use blocks::{
    AddBlockPlan, BlockInfo, FileBlocks, blocks_after, blocks_of_file, copy_of, file_blocks,
    file_blocks_at, file_of_block, get_block, get_blocks, get_blocks_by_id, has_snapshots,
    incomplete_blocks, incomplete_held_blocks, last_block, plan_add_block, storage_policy_of_block,
};
pub use direct::{SmallFile, visit_file_info, visit_small_file};
pub use page::{Entry, OpenDirectory, Opened, Page, open_directory, visit_listing};
pub use summary::{ContentSummary, content_summary, quota_usage};

/// What clients see of a file or directory (`HdfsFileStatusProto`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileStatus {
    /// Its record.
    pub inode: Arc<Inode>,
    /// A file's policy, or the one in force on a directory.
    pub policy: Option<Policy>,
    /// Storage policy in force; 0 if none is set on it or above.
    pub storage_policy: u8,
    /// Whether snapshots may be taken of it.
    pub snapshottable: bool,
    /// Whether it is in an encryption zone, and its key.
    pub encryption: Encryption,
}

/// Beside the number of a storage policy in the outcome of a call: a file's encryption follows.
const ENCRYPTED: u8 = 1 << 7;

// Only files that were just opened are kept, for their retries: nothing is snapshottable there.
impl Encode for FileStatus {
    fn encode(&self, out: &mut Encoder) {
        self.inode.encode(out);
        self.policy.encode(out);
        match self.encryption.file() {
            None => self.storage_policy.encode(out),
            Some(file) => {
                (self.storage_policy | ENCRYPTED).encode(out);
                file.encode(out);
            }
        }
    }
}

impl Decode for FileStatus {
    fn decode(input: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let (inode, policy) = (Arc::new(Decode::decode(input)?), Decode::decode(input)?);
        let last = u8::decode(input)?;
        let encryption = match last & ENCRYPTED {
            0 => Encryption::None,
            _ => Encryption::File(Box::new(Decode::decode(input)?)),
        };
        let storage_policy = last & !ENCRYPTED;
        Ok(FileStatus { inode, policy, storage_policy, snapshottable: false, encryption })
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
        let Some(inode) = at.chain.get(at.names.len()) else { return Ok(None) };
        Ok(Some(FileStatus {
            inode: Arc::clone(inode),
            policy: policy_admin::effective(store, at)?,
            storage_policy: storage_policy::effective(&at.chain),
            // The picture of a directory in its snapshot has none itself.
            snapshottable: inode.is_directory()
                && at.snapshot.is_none()
                && snapshot::is_snapshottable(store, inode.id)?,
            encryption: Encryption::of(store, &at.chain, at.raw)?,
        }))
    }
}

fn resolve(store: &dyn StoreRead, caller: &Caller, path: &str) -> Result<Resolved> {
    path::resolve(store, &*settings::get(store)?, caller, path, Purpose::Use)
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
    /// How many entries are left after this page. Behind the first page it is exact where few are; else it is what the
    /// directory has but for this page, for only who counts them all would know better.
    pub remaining: u64,
}

/// Entries behind a page that are counted, if it is not the first.
const COUNTED: usize = 256;

/// A page of the ids of children, and how many entries are left, see [`Listing::remaining`].
fn children_page(
    store: &dyn StoreRead,
    directory: InodeId,
    total: u64,
    resumed: &[u8],
    limit: usize,
) -> Result<(Vec<InodeId>, u64)> {
    let after = (!resumed.is_empty()).then_some(resumed);
    let counted = if after.is_some() { COUNTED } else { 1 };
    let (ids, more) = inode::children_and_more(store, directory, after, limit, counted)?;
    let remaining = match more as u64 {
        more if (more as usize) < counted => more,
        more => total.saturating_sub(ids.len() as u64).max(more),
    };
    Ok((ids, remaining))
}

/// What a listing finds at a path.
enum Listed {
    /// Nothing is there, or all that there is to list.
    Whole(Option<Listing>),
    /// A directory, and the name after which its listing goes on; empty for the start.
    Directory(Resolved, Vec<u8>),
}

/// Source: Hadoop 3.5.0 `FSDirStatAndListingOp#getListingInt`.
fn open_listing(
    store: &dyn StoreRead,
    caller: &Caller,
    path: &str,
    start_after: &[u8],
    limit: usize,
) -> Result<Listed> {
    let settings = settings::get(store)?;
    let at = path::resolve(store, &settings, caller, path, Purpose::Use)?;
    if let Some(InSnapshot::Names(root)) = at.snapshot {
        let names = snapshot::listing::list_names(store, &at, root, start_after, limit)?;
        return Ok(Listed::Whole(Some(names)));
    }
    if at.names.last().is_some_and(|name| name == snapshot::DOT_SNAPSHOT) {
        let above = at.above();
        path::directory(&above, &above.path)?;
        return Err(snapshot::listing::not_snapshottable(&above.path));
    }
    let view = at.view(store);
    let Some(target) = at.target() else { return Ok(Listed::Whole(None)) };
    if !target.is_directory() {
        let mut status = FileStatus::of(&view, &at)?;
        if let Some(status) = &mut status {
            Arc::make_mut(&mut status.inode).name.clear();
        }
        return Ok(Listed::Whole(
            status.map(|status| Listing { entries: vec![status], remaining: 0 }),
        ));
    }
    perm::check_access(&settings, caller, &at, Access::READ_EXECUTE)?;
    let resumed = start_of(&view, start_after)?;
    Ok(Listed::Directory(at, resumed))
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
    let (mut at, resumed) = match open_listing(store, caller, path, start_after, limit)? {
        Listed::Whole(listing) => return Ok(listing),
        Listed::Directory(at, resumed) => (at, resumed),
    };
    let view = at.view(store);
    let store = &view;
    let Some(target) = at.target() else { return Ok(None) };
    let total = target.directory().map_or(0, |directory| directory.children);
    let (ids, remaining) = children_page(store, target.id, total, &resumed, limit)?;
    let zone = encryption::Below::read(store, &at.chain, at.raw)?;
    let mut entries = Vec::with_capacity(ids.len());
    for id in ids {
        let child = inode::expect(store, id)?;
        // As [`FileStatus::of`], with nothing copied.
        at.names.push(String::new());
        at.chain.push(Arc::new(child));
        let policy = policy_admin::effective(store, &at)?;
        // Also what a striped file ignores.
        let storage_policy = storage_policy::set_above(&at.chain);
        at.names.pop();
        let Some(inode) = at.chain.pop() else { continue };
        let snapshottable = inode.is_directory() && snapshot::is_snapshottable(store, inode.id)?;
        let encryption = match inode.directory() {
            Some(directory) => zone.of_directory(directory.is_zone),
            None => zone.of_file(store, inode.id)?,
        };
        entries.push(FileStatus { inode, policy, storage_policy, snapshottable, encryption });
    }
    Ok(Some(Listing { entries, remaining }))
}

/// Whether a path that the caller may follow is `/.reserved` itself, which is shown as a directory but is none.
///
/// Source: Hadoop 3.5.0 `FSDirectory#isExactReservedName`.
pub fn is_reserved_root(store: &dyn StoreRead, caller: &Caller, path: &str) -> Result<bool> {
    // Nobody but those who ask for it need wait for a walk.
    Ok(path.contains(".reserved") && resolve(store, caller, path)?.path == "/.reserved")
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

/// What `getAdditionalDatanode` needs: the open file, checked for its lease.
///
/// Source: Hadoop 3.5.0 `FSNamesystem#getAdditionalDatanode`.
pub fn check_lease(
    store: &dyn StoreRead,
    caller: &Caller,
    path: &str,
    file: Option<InodeId>,
    holder: &str,
) -> Result<FileStatus> {
    let by = (caller, "GetAdditionalDatanode");
    let at = crate::ops::open_file(store, by, path, file, holder)?;
    FileStatus::of(store, &at)?
        .ok_or_else(|| NamespaceError::FileNotFound(format!("File does not exist: {}", at.path)))
}

/// Files of holders beyond the hard limit at `now_ms`, at most `limit` behind `after`; the shell closes them by
/// `ReleaseLease`.
pub fn expired_leases(
    store: &dyn StoreRead,
    now_ms: u64,
    after: Option<&ExpiredLease>,
    limit: usize,
) -> Result<Vec<ExpiredLease>> {
    lease::expired(store, &*settings::get(store)?, now_ms, after, limit)
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
    // Whether or not there is such a list.
    if at.names.last().is_some_and(|name| name == snapshot::DOT_SNAPSHOT) {
        return Ok(None);
    }
    if at.target().is_none() {
        return Err(NamespaceError::FileNotFound(format!("Path not found: {path}")));
    }
    policy_admin::effective(store, &at)
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

/// Leaves out numbers of inodes, blocks and stamps, for a store that goes back to an earlier state: those that it
/// has given out since must not come again.
pub fn skip_numbers(store: &mut dyn StoreTxn) -> Result<()> {
    counter::skip_numbers(store)
}

/// The limits and switches in force.
pub fn settings(store: &dyn StoreRead) -> Result<Settings> {
    settings::get(store).map(Arc::unwrap_or_clone)
}

/// A path as Hadoop's exceptions have it: without reserved names, doubled and trailing slashes.
pub fn real_path(store: &dyn StoreRead, path: &str) -> Result<String> {
    Ok(path::join(&path::real_names(store, path)?))
}

/// Fails unless the caller is a superuser.
pub fn check_superuser(store: &dyn StoreRead, caller: &Caller) -> Result<()> {
    perm::check_superuser(&*settings::get(store)?, caller)
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
    use crate::counter::Counter;
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
