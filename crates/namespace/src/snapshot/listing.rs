//! Questions about snapshots and snapshottable directories.

use crate::caller::Caller;
use crate::encryption::Encryption;
use crate::error::{NamespaceError, Result};
use crate::inode::{self, Inode, InodeId};
use crate::path::{self, InSnapshot, Purpose, Resolved};
use crate::perm::{self, Access};
use crate::snapshot::view::View;
use crate::snapshot::{self, Root, SnapshotId};
use crate::status::{FileStatus, Listing};
use crate::store::StoreRead;
use crate::{policy_admin, settings};
use std::sync::Arc;

/// A snapshottable directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshottableDirectory {
    /// The directory.
    pub inode: Inode,
    /// The path of the directory above; empty for the root.
    pub parent: String,
    /// Snapshots there are.
    pub count: u32,
}

/// One snapshot of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotStatus {
    /// The directory as it was, with the snapshot's name and time.
    pub inode: Inode,
    /// Its number.
    pub id: SnapshotId,
    /// Whether it is deleted but for those before it.
    pub deleted: bool,
}

/// The record of a directory that must be snapshottable.
///
/// Source: Hadoop 3.5.0 `SnapshotManager#getSnapshottableRoot`.
pub(crate) fn snapshottable(store: &dyn StoreRead, at: &Resolved) -> Result<Root> {
    let inode = path::directory(at, &at.path)?;
    if at.snapshot.is_some() || !snapshot::is_snapshottable(store, inode.id)? {
        return Err(not_snapshottable(&at.path));
    }
    Ok(snapshot::root(store, inode.id)?.unwrap_or_default())
}

pub(crate) fn not_snapshottable(path: &str) -> NamespaceError {
    NamespaceError::Snapshot(format!("Directory is not a snapshottable directory: {path}"))
}

/// The directory whose snapshots a path is part of: the root is one always, as [`snapshot::is_snapshottable`] says. `None` if there
/// is none. Where a path leads to no directory, it is part of the one that it is in.
///
/// Source: Hadoop 3.5.0 `SnapshotManager#getSnapshottableAncestorDir`.
pub(crate) fn ancestor_of(store: &dyn StoreRead, at: &Resolved) -> Result<Option<InodeId>> {
    let directory = at.target().filter(|inode| inode.is_directory()).or_else(|| at.parent());
    match directory {
        Some(directory) if directory.id == InodeId::ROOT => Ok(Some(directory.id)),
        Some(directory) => snapshot::root_above(store, directory.id),
        None => Ok(None),
    }
}

/// The snapshottable directories at or below `top`. Fails if one of them has snapshots: such a tree can
/// neither be removed nor moved.
///
/// Source: Hadoop 3.5.0 `FSDirSnapshotOp#checkSnapshot`.
pub(crate) fn check_removable(store: &dyn StoreRead, top: InodeId) -> Result<Vec<InodeId>> {
    let mut below = Vec::new();
    for (id, root) in snapshot::roots(store)? {
        if let Some(at) = path::of_inode(store, id)?
            && at.chain.iter().any(|inode| inode.id == top)
        {
            below.push((at, id, root.count));
        }
    }
    // As one comes to them by name.
    below.sort_by(|(one, ..), (other, ..)| one.names.cmp(&other.names));
    if let Some((at, ..)) = below.iter().find(|(_, _, count)| *count > 0) {
        let path = &at.path;
        return Err(NamespaceError::Snapshot(format!(
            "The directory {path} cannot be deleted since {path} is snapshottable and already has \
             snapshots"
        )));
    }
    Ok(below.into_iter().map(|(_, id, _)| id).collect())
}

/// The snapshottable directories that the caller owns, or all for a superuser, by the path above and then their
/// name.
///
/// Source: Hadoop 3.5.0 `SnapshotManager#getSnapshottableDirListing`.
pub fn snapshottable_directories(
    store: &dyn StoreRead,
    caller: &Caller,
) -> Result<Vec<SnapshottableDirectory>> {
    let mut found = Vec::new();
    for (id, root) in snapshot::roots(store)? {
        let Some(at) = path::of_inode(store, id)? else { continue };
        let inode = at.existing()?.clone();
        if caller.superuser || inode.owner == caller.user {
            let parent = if at.names.is_empty() { String::new() } else { at.parent_path() };
            found.push(SnapshottableDirectory { inode, parent, count: root.count });
        }
    }
    found.sort_by(|one, other| {
        (&one.parent, &one.inode.name).cmp(&(&other.parent, &other.inode.name))
    });
    Ok(found)
}

/// How many directories are snapshottable, and how many snapshots there are.
pub fn counts(store: &dyn StoreRead) -> Result<(u64, u64)> {
    let snapshots = crate::counter::get(store, crate::counter::Counter::Snapshots)?;
    Ok((snapshot::roots(store)?.len() as u64, snapshots))
}

/// The snapshots of a directory by name, and its path.
///
/// Source: Hadoop 3.5.0 `SnapshotManager#getSnapshotListing`.
pub fn snapshots(
    store: &dyn StoreRead,
    caller: &Caller,
    path: &str,
) -> Result<(String, Vec<SnapshotStatus>)> {
    let settings = settings::get(store)?;
    let at = path::resolve(store, &settings, &Caller::system(), path, Purpose::Plain)?;
    perm::check_traverse(&settings, caller, &at)?;
    perm::check_access(&settings, caller, &at, Access::READ)?;
    snapshottable(store, &at)?;
    let root = at.existing()?;
    let mut found = Vec::new();
    for snapshot in snapshot::by_names(store, root.id, None, usize::MAX)? {
        let mut inode = as_snapshot(store, root.id, &snapshot)?;
        if let (Some(was), Some(now)) = (inode.directory_mut(), root.directory()) {
            was.children = now.children;
        }
        found.push(SnapshotStatus { inode, id: snapshot.id, deleted: snapshot.deleted });
    }
    Ok((at.path, found))
}

/// The root of a snapshot as a directory below `.snapshot`.
fn as_snapshot(
    store: &dyn StoreRead,
    root: InodeId,
    snapshot: &snapshot::Snapshot,
) -> Result<Inode> {
    let was = inode::expect(&View::new(store, Some((root, snapshot.id))), root)?;
    Ok(Inode { name: snapshot.name.clone(), mtime: snapshot.mtime, ..was })
}

/// A page of the names below a `.snapshot`.
///
/// Source: Hadoop 3.5.0 `FSDirStatAndListingOp#getSnapshotsListing`.
pub(crate) fn list_names(
    store: &dyn StoreRead,
    at: &Resolved,
    root: InodeId,
    start_after: &[u8],
    limit: usize,
) -> Result<Listing> {
    let after = (!start_after.is_empty()).then_some(start_after);
    let page = snapshot::by_names(store, root, after, limit)?;
    let last = page.last().map(|snapshot| snapshot.name.as_bytes()).or(after);
    let remaining = snapshot::count_after(store, root, last)?;
    let now = inode::expect_shared(store, root)?;
    let children = now.directory().map_or(0, |now| now.children);
    // The list is the directory's of now: what a snapshot does not say for itself, such as an erasure coding policy, is
    // what the directory says, or what is above it. Who asks for one snapshot is told what was.
    let mut above = at.above();
    above.chain.truncate(above.names.len());
    above.chain.push(now);
    let mut entries = Vec::new();
    for snapshot in &page {
        let mut was = as_snapshot(store, root, snapshot)?;
        if let Some(was) = was.directory_mut() {
            was.children = children;
        }
        let inode = Arc::new(was);
        above.chain.push(Arc::clone(&inode));
        entries.push(FileStatus {
            inode,
            policy: policy_admin::effective(store, &above)?,
            storage_policy: 0,
            snapshottable: false,
            encryption: Encryption::of(store, &above.chain, at.raw)?,
        });
        above.chain.pop();
    }
    Ok(Listing { entries, remaining })
}

/// Whether a path ends at the `.snapshot` of a snapshottable directory. Those who ask for its status get
/// one that says nothing but that it is a directory.
pub fn is_dot_snapshot(store: &dyn StoreRead, caller: &Caller, path: &str) -> Result<bool> {
    let at = path::resolve(store, &*settings::get(store)?, caller, path, Purpose::Use)?;
    Ok(matches!(at.snapshot, Some(InSnapshot::Names(_))))
}
