//! Questions about a state of the namespace. None of them changes anything.
//!
//! Where a path is asked for, the caller's permissions are checked as Hadoop does.

mod blocks;
mod direct;
mod layout;
mod listing;
mod page;
mod summary;

use crate::caller::Caller;
use crate::error::{NamespaceError, Result};
use crate::inode::InodeId;
use crate::path::{self, Purpose, Resolved};
use crate::perm::{self, Access};
use crate::settings::{self, Settings};
use crate::store::{StoreRead, StoreTxn};
use crate::{counter, lease, policy_admin, snapshot};
use cairn_stripe::{GenerationStamp, Policy};
use std::sync::Arc;

pub use crate::container::{containers_after, get as container, slots as pack_slots};
pub use crate::encryption::{
    key_of_zone, reencrypted_zones, zone_of_new_file, zone_of_path, zones,
};
pub use crate::group::{
    attempt_of, get as group, groups_after, open_attempts, pauses as group_pauses,
};
pub use crate::lease::ExpiredLease;
pub use crate::ops::acl::{AclStatus, get_acl_status};
pub use crate::ops::add_block::AddBlockPlan;
pub use crate::ops::convert::target as conversion_target;
pub use crate::ops::satisfy_storage_policy::to_satisfy;
pub use crate::ops::set_quota::check_quota;
pub use crate::ops::xattr::{check_xattr, get_xattrs, list_xattrs};
pub use crate::orders::get as orders;
pub use crate::policy_admin::PolicyInfo;
pub use crate::snapshot::held::Held;
pub use crate::status::{FileStatus, Listing};
pub use crate::unpacking::{asked_after as unpacking_after, is_asked as is_unpacking};
pub use crate::waiting::{
    Waiting, due as waiting, due_of as waiting_since, due_small as waiting_to_be_packed,
};
pub use blocks::{
    BlockInfo, FileBlocks, blocks_after, blocks_of_file, copies_of_block, copy_of, file_blocks,
    file_blocks_at, file_of_block, get_block, get_blocks, get_blocks_by_id, has_snapshots,
    incomplete_blocks, incomplete_held_blocks, last_block, last_blocks, open_blocks,
    packed_blocks_of_file, packed_cut, plan_add_block, storage_policy_of_block,
};
pub use direct::{SmallFile, visit_file_info, visit_small_file};
pub use layout::{FileLayout, file_layout};
pub use listing::get_listing;
pub use page::{Entry, OpenDirectory, Opened, Page, open_directory, visit_listing};
pub use summary::{ContentSummary, content_summary, quota_usage};

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

/// Whether a path that the caller may follow is `/.reserved` itself, which is shown as a directory but is none.
///
/// Source: Hadoop 3.5.0 `FSDirectory#isExactReservedName`.
pub fn is_reserved_root(store: &dyn StoreRead, caller: &Caller, path: &str) -> Result<bool> {
    // Nobody but those who ask for it need wait for a walk.
    Ok(path.contains(".reserved") && resolve(store, caller, path)?.path == "/.reserved")
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

/// Files of holders beyond the hard limit at that elapsed time, at most `limit` behind `after`; the shell closes them by
/// `ReleaseLease`.
pub fn expired_leases(
    store: &dyn StoreRead,
    elapsed_ms: u64,
    after: Option<&ExpiredLease>,
    limit: usize,
) -> Result<Vec<ExpiredLease>> {
    lease::expired(store, &*settings::get(store)?, elapsed_ms, after, limit)
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

/// The policy that a file made at `path` takes on; `None` if it is replicated.
pub fn inherited_ec_policy(
    store: &dyn StoreRead,
    caller: &Caller,
    path: &str,
) -> Result<Option<Policy>> {
    let settings = settings::get(store)?;
    let at = path::resolve(store, &settings, caller, path, Purpose::Use)?;
    policy_admin::effective(store, &at.above())
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
    /// Blocks and block groups, those too that only contiguous groups need.
    pub blocks: u64,
    /// Those of them that are packed in others.
    pub packed: u64,
    /// The last generation stamp that was given out.
    pub generation_stamp: u64,
}

/// Totals of the namespace, kept as counters.
pub fn totals(store: &dyn StoreRead) -> Result<Totals> {
    use crate::counter::Counter;
    Ok(Totals {
        inodes: counter::get(store, Counter::Inodes)?,
        blocks: counter::get(store, Counter::Blocks)?,
        packed: counter::get(store, Counter::Packed)?,
        generation_stamp: counter::get(store, Counter::GenerationStamp)?,
    })
}

/// Whether the namespace never gave out this generation stamp: it was started with an old state.
pub fn is_future_stamp(store: &dyn StoreRead, gs: GenerationStamp) -> Result<bool> {
    Ok(gs.0 > counter::get(store, counter::Counter::GenerationStamp)?)
}
