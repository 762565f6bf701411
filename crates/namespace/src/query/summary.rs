//! What is used below a path, and what may be.

use crate::caller::Caller;
use crate::error::{NamespaceError, Result};
use crate::inode::{self, Inode, InodeId, Kind};
use crate::path::{self, InSnapshot, Purpose, Resolved};
use crate::perm::{self, Access};
use crate::settings::{self, Settings};
use crate::snapshot::garbage;
use crate::snapshot::held::{self, Held};
use crate::store::StoreRead;
use crate::tree::walk;
use crate::usage::{self, ByType};
use crate::{policy_admin, snapshot, storage_policy, xattr};
use cairn_stripe::PolicyId;

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
    /// Bytes on disk by type of storage, where a storage policy is set.
    pub types: ByType<u64>,
    /// Limits on those of the path itself.
    pub types_max: ByType<Option<u64>>,
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
    let settings = settings::get(store)?;
    let at = path::resolve(store, &settings, caller, path, Purpose::Use)?;
    let Some(target) = at.target() else {
        return Err(NamespaceError::FileNotFound(format!(
            "File/Directory does not exist: {}",
            at.path
        )));
    };
    check_all(store, &settings, caller, &at, target)?;
    // What is limited is counted all the time.
    match target.directory().and_then(|directory| directory.quota.as_ref()) {
        Some(quota) if at.snapshot.is_none() => Ok(ContentSummary {
            directories: quota.names,
            space: quota.space,
            types: quota.types,
            ..limits(target)
        }),
        _ => content_summary(store, caller, path),
    }
}

fn is_snapshot_root(at: &Resolved, target: &Inode) -> bool {
    matches!(at.snapshot, Some(InSnapshot::Of(root, _)) if root == target.id)
}

/// All directories below a path must let the caller read them. Of what a snapshot has Hadoop names by the snapshot's path
/// its own directory, and what a sticky bit keeps.
fn check_all(
    store: &dyn StoreRead,
    settings: &Settings,
    caller: &Caller,
    at: &Resolved,
    target: &Inode,
) -> Result<()> {
    const ACCESS: Access = Access::READ_EXECUTE;
    if is_snapshot_root(at, target) {
        perm::check_access(settings, caller, at, ACCESS)?;
    }
    let base = at.snapshot.is_some().then_some(at.path.as_str());
    perm::check_below_as(&at.view(store), store, settings, caller, (base, target), ACCESS)
}

/// A summary that says which limits an inode has.
fn limits(inode: &Inode) -> ContentSummary {
    let mut sum = ContentSummary::default();
    if let Some(quota) = inode.directory().and_then(|directory| directory.quota.as_ref()) {
        sum.names_max = quota.names_max;
        sum.space_max = quota.space_max;
        sum.types_max = quota.types_max;
    }
    if inode.id == InodeId::ROOT {
        sum.names_max.get_or_insert(ROOT_NAMES_MAX);
    }
    sum
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
    if settings.summaries_check_first {
        check_all(store, &settings, caller, &at, &target)?;
    }
    let mut sum = limits(&target);
    sum.policy = policy_name(store, &at, &target)?;
    let is_now = at.snapshot.is_none();
    if is_now && target.is_directory() {
        let held = held::sum_below(store, &target)?;
        (sum.files, sum.directories) = (held.files, held.directories);
        (sum.len, sum.space, sum.types) = (held.len, held.space, held.types);
        sum.held = held;
    }
    let (view, now) = (at.view(store), store);
    let store = &view;
    let above = storage_policy::set_above(&at.chain[..at.chain.len() - 1]);
    // Not asked for with every file.
    let holds_more = is_now && garbage::in_use(store)?;
    walk::descend_with_policy(store, &target, above, &mut |inode, policy| {
        if let Some(file) = inode.file() {
            sum.files += 1;
            sum.len = sum.len.saturating_add(file.len);
            // Types are told for the bytes and copies that the file has now.
            let now = usage::of_blocks_as(store, inode, file.redundancy, policy)?;
            sum.types = usage::added(sum.types, now.types);
            let all = if holds_more { usage::of_blocks(store, inode, policy)? } else { now };
            sum.space = sum.space.saturating_add_signed(all.space);
        } else {
            if !settings.summaries_check_first {
                match inode.id == target.id && is_snapshot_root(&at, &target) {
                    true => perm::check_access(&settings, caller, &at, Access::READ_EXECUTE)?,
                    false => {
                        perm::check_inode(now, &settings, caller, inode, Access::READ_EXECUTE)?;
                    }
                }
            }
            sum.directories += 1;
        }
        Ok(())
    })?;
    Ok(sum)
}

/// The name of the policy that a summary tells. As in Hadoop, a directory says for itself, and names none, once it has
/// any extended attribute, which a storage policy and the mark of a deleted snapshot are there too; and of what a snapshot
/// has, but the snapshot's own directory, the present state counts. Above that is the directory as it is now.
///
/// Source: Hadoop 3.5.0 `ContentSummaryComputationContext#getErasureCodingPolicyName`.
fn policy_name(store: &dyn StoreRead, at: &Resolved, target: &Inode) -> Result<String> {
    let name = |id| match id {
        PolicyId::REPLICATION => Ok("replication".to_string()),
        id => policy_admin::by_id(store, id).map(|policy| policy.name),
    };
    let view = at.view(store);
    let mut inode = target.clone();
    let mut has_attributes = xattr::has_any(store, target.id)?;
    let mut above = target.parent;
    match at.snapshot {
        Some(InSnapshot::Of(root, id)) if root == target.id => {
            has_attributes = xattr::has_any(&view, root)? || snapshot::is_marked(store, root, id)?;
            above = root;
        }
        _ => {
            if let Some(now) = inode::get(store, target.id)? {
                above = now.parent;
                inode = now;
            }
        }
    }
    loop {
        let directory = match &inode.kind {
            Kind::File(file) => {
                return file.redundancy.policy().map_or(Ok("Replicated".to_string()), name);
            }
            Kind::Directory(directory) => directory,
        };
        if let Some(id) = directory.policy {
            return name(id);
        }
        if has_attributes || inode.storage_policy != 0 {
            return Ok(String::new());
        }
        has_attributes = xattr::has_any(store, above)?;
        inode = match inode::get(store, above)? {
            Some(now) => now,
            None => match inode::get(&view, above)? {
                Some(was) => was,
                None => return Ok(String::new()),
            },
        };
        above = inode.parent;
    }
}
