//! Snapshots: allowing, taking, renaming and deleting them.

use crate::counter::{self, Counter};
use crate::encoding::encode_struct;
use crate::error::{NamespaceError, Result};
use crate::inode::{self, Inode, InodeId};
use crate::ops::Context;
use crate::outcome::Outcome;
use crate::path::{self, Purpose, Resolved};
use crate::perm;
use crate::snapshot::{self, Root, Snapshot, SnapshotId, SnapshotSettings, garbage};
use crate::tree::purge;

/// Versions of a deleted snapshot that the call gives up itself; what is more is left to
/// [`crate::ops::delete::Purge`].
const AT_ONCE: u64 = 1000;

/// Puts other limits and switches of snapshots in force.
///
/// Answer: `Outcome::Done`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigureSnapshots {
    /// Which.
    pub settings: SnapshotSettings,
}

encode_struct!(ConfigureSnapshots { settings });

impl ConfigureSnapshots {
    pub(crate) fn apply(&self, cx: &mut Context<'_, '_>) -> Result<Outcome> {
        perm::check_superuser(cx.settings, cx.caller)?;
        if self.settings.per_directory_max > self.settings.total_max {
            return Err(NamespaceError::Snapshot(
                "dfs.namenode.snapshot.max.limit cannot be greater than \
                 dfs.namenode.snapshot.filesystem.limit"
                    .to_string(),
            ));
        }
        snapshot::put_settings(cx.store, &self.settings)?;
        Ok(Outcome::Done)
    }
}

/// Allows snapshots of a directory.
///
/// Answer: `Outcome::Done`.
///
/// Source: Hadoop 3.5.0 `SnapshotManager#setSnapshottable`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllowSnapshot {
    /// The directory.
    pub path: String,
}

encode_struct!(AllowSnapshot { path });

impl AllowSnapshot {
    pub(crate) fn apply(&self, cx: &mut Context<'_, '_>) -> Result<Outcome> {
        perm::check_superuser(cx.settings, cx.caller)?;
        let at = cx.resolve(&self.path, Purpose::Plain)?;
        let directory = path::directory(&at, &self.path)?.id;
        for (id, _) in snapshot::roots(cx.store)? {
            let Some(other) = path::of_inode(cx.store, id)? else { continue };
            let refuse = |which: &str| {
                Err(NamespaceError::Snapshot(format!(
                    "Nested snapshottable directories not allowed: path={}, the {which} {} is \
                     already a snapshottable directory.",
                    self.path, other.path
                )))
            };
            if id != directory && other.chain.iter().any(|inode| inode.id == directory) {
                return refuse("subdirectory");
            }
            if id != directory && at.chain.iter().any(|inode| inode.id == id) {
                return refuse("ancestor");
            }
        }
        if snapshot::root(cx.store, directory)?.is_none() {
            snapshot::put_root(cx.store, directory, &Root::default())?;
        }
        Ok(Outcome::Done)
    }
}

/// Allows no more snapshots of a directory that has none.
///
/// Answer: `Outcome::Done`.
///
/// Source: Hadoop 3.5.0 `SnapshotManager#resetSnapshottable`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DisallowSnapshot {
    /// The directory.
    pub path: String,
}

encode_struct!(DisallowSnapshot { path });

impl DisallowSnapshot {
    pub(crate) fn apply(&self, cx: &mut Context<'_, '_>) -> Result<Outcome> {
        perm::check_superuser(cx.settings, cx.caller)?;
        let at = cx.resolve(&self.path, Purpose::Plain)?;
        let directory = path::directory(&at, &self.path)?.id;
        let Some(root) = snapshot::root(cx.store, directory)? else { return Ok(Outcome::Done) };
        if root.count > 0 {
            return Err(NamespaceError::Snapshot(format!(
                "The directory {} has snapshot(s). Please redo the operation after removing all the \
                 snapshots.",
                self.path
            )));
        }
        snapshot::delete_root(cx.store, directory)?;
        Ok(Outcome::Done)
    }
}

/// Takes a snapshot.
///
/// Answer: `Outcome::SnapshotCreated`.
///
/// Source: Hadoop 3.5.0 `FSDirSnapshotOp#createSnapshot`, `SnapshotManager#createSnapshot`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreateSnapshot {
    /// The directory.
    pub path: String,
    /// The snapshot's name.
    pub name: String,
}

encode_struct!(CreateSnapshot { path, name });

impl CreateSnapshot {
    pub(crate) fn apply(&self, cx: &mut Context<'_, '_>) -> Result<Outcome> {
        let at = cx.resolve(&self.path, Purpose::Use)?;
        check_owner(cx, &at)?;
        if !is_component(&self.name) {
            return Err(NamespaceError::InvalidPath(format!(
                "Invalid path name Invalid snapshot name: {}",
                self.name
            )));
        }
        check_name(cx, &self.name, &self.path)?;
        let (directory, mut root) = snapshottable(cx, &at)?;
        let mut inode = directory.clone();
        let id = counter::get(cx.store, Counter::SnapshotId)?;
        let settings = snapshot::settings(cx.store)?;
        if id >= u64::from(snapshot::ID_MAX) {
            return Err(NamespaceError::Snapshot(format!(
                "Failed to create the snapshot. The FileSystem has run out of snapshot IDs and ID \
                 rollover is not supported and the max snapshot limit is: {}",
                settings.per_directory_max
            )));
        }
        let total = counter::get(cx.store, Counter::Snapshots)?;
        check_limit(total, settings.total_max, "file system")?;
        let count = root.count;
        let allowed = snapshot::root(cx.store, inode.id)?.is_some();
        let quota = if allowed { snapshot::QUOTA } else { 0 };
        if count >= quota {
            return Err(NamespaceError::Snapshot(format!(
                "Failed to add snapshot: there are already {count} snapshot(s) and the snapshot quota \
                 is {quota}"
            )));
        }
        check_limit(u64::from(count), settings.per_directory_max, "per directory")?;
        if snapshot::by_name(cx.store, inode.id, &self.name)?.is_some() {
            return Err(NamespaceError::Snapshot(format!(
                "Failed to add snapshot: there is already a snapshot with the same name \"{}\".",
                self.name
            )));
        }
        let taken = Snapshot {
            id: SnapshotId(id as u32),
            name: self.name.clone(),
            mtime: cx.times.wall_ms,
            last_inode: InodeId(counter::get(cx.store, Counter::InodeId)?),
            deleted: false,
        };
        snapshot::put(cx.store, inode.id, &taken)?;
        root.count += 1;
        root.newest = Some(taken.id);
        snapshot::put_root(cx.store, inode.id, &root)?;
        counter::add(cx.store, Counter::SnapshotId, 1)?;
        counter::add(cx.store, Counter::Snapshots, 1)?;
        inode.mtime = inode.mtime.max(cx.times.wall_ms);
        inode::put(cx.store, &inode)?;
        let above = if self.path == "/" { "" } else { self.path.as_str() };
        Ok(Outcome::SnapshotCreated(format!("{above}/{}/{}", snapshot::DOT_SNAPSHOT, self.name)))
    }
}

/// Gives a snapshot another name.
///
/// Answer: `Outcome::Done`.
///
/// Source: Hadoop 3.5.0 `DirectorySnapshottableFeature#renameSnapshot`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RenameSnapshot {
    /// The directory.
    pub path: String,
    /// The name it has.
    pub from: String,
    /// The name it gets.
    pub to: String,
}

encode_struct!(RenameSnapshot { path, from, to });

impl RenameSnapshot {
    pub(crate) fn apply(&self, cx: &mut Context<'_, '_>) -> Result<Outcome> {
        let at = cx.resolve(&self.path, Purpose::Use)?;
        check_owner(cx, &at)?;
        check_name(cx, &self.to, &self.path)?;
        let directory = snapshottable(cx, &at)?.0.id;
        let Some(found) = snapshot::by_name(cx.store, directory, &self.from)? else {
            return Err(NamespaceError::Snapshot(format!(
                "The snapshot {} does not exist for directory {}",
                self.from, self.path
            )));
        };
        if self.from == self.to {
            return Ok(Outcome::Done);
        }
        rename(cx, (directory, &self.path), &found, self.to.clone())?;
        Ok(Outcome::Done)
    }
}

/// Deletes a snapshot. Its name goes at once, what only it held in steps. Where snapshots are deleted in order and there
/// are earlier ones, it is marked, and gets a name that says so.
///
/// Answer: `Outcome::Removed`.
///
/// Source: Hadoop 3.5.0 `SnapshotManager#deleteSnapshot`, `Snapshot#generateDeletedSnapshotName`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeleteSnapshot {
    /// The directory.
    pub path: String,
    /// The snapshot's name.
    pub name: String,
}

encode_struct!(DeleteSnapshot { path, name });

impl DeleteSnapshot {
    pub(crate) fn apply(&self, cx: &mut Context<'_, '_>) -> Result<Outcome> {
        let at = cx.resolve(&self.path, Purpose::Use)?;
        check_owner(cx, &at)?;
        let directory = snapshottable(cx, &at)?.0.id;
        let in_order = cx.settings.snapshots_deleted_in_order;
        let Some(found) = snapshot::by_name(cx.store, directory, &self.name)? else {
            let (name, path) = (&self.name, &at.path);
            return Err(NamespaceError::Snapshot(if in_order {
                format!("Cannot find the snapshot of directory {path} with name {name}")
            } else {
                format!(
                    "Cannot delete snapshot {name} from path {path}: the snapshot does not exist."
                )
            }));
        };
        if in_order && snapshot::older_than(cx.store, directory, found.id)?.is_some() {
            let name = format!("{}#{}", found.name, found.id);
            rename(cx, (directory, &at.path), &Snapshot { deleted: true, ..found }, name)?;
            return Ok(Outcome::Removed { done: true, more: false });
        }
        delete(cx, directory, &found)
    }
}

/// Deletes one snapshot that was marked as deleted and has become the earliest of its directory, if there is one and
/// snapshots are deleted in order.
///
/// Answer: `Outcome::Removed`, done if there was one.
///
/// Source: Hadoop 3.5.0 `FSNamesystem#gcDeletedSnapshot`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CollectSnapshot {}

encode_struct!(CollectSnapshot {});

impl CollectSnapshot {
    pub(crate) fn apply(&self, cx: &mut Context<'_, '_>) -> Result<Outcome> {
        perm::check_superuser(cx.settings, cx.caller)?;
        if cx.settings.snapshots_deleted_in_order
            && let Some((directory, found)) = snapshot::first_due(cx.store)?
        {
            return delete(cx, directory, &found);
        }
        Ok(Outcome::Removed { done: false, more: false })
    }
}

/// Takes the name away at once, and of what only the snapshot held as much as one command does.
fn delete(cx: &mut Context<'_, '_>, directory: InodeId, found: &Snapshot) -> Result<Outcome> {
    let mut inode = inode::expect(cx.store, directory)?;
    inode.mtime = inode.mtime.max(cx.times.wall_ms);
    inode::put(cx.store, &inode)?;
    snapshot::delete(cx.store, directory, found)?;
    let mut root = snapshot::root(cx.store, directory)?.unwrap_or_default();
    root.count = root.count.saturating_sub(1);
    let newest = snapshot::at_most(cx.store, directory, SnapshotId(u32::MAX))?;
    root.newest = newest.map(|snapshot| snapshot.id);
    snapshot::put_root(cx.store, directory, &root)?;
    counter::add(cx.store, Counter::Snapshots, -1)?;
    garbage::discard(cx.store, directory, found.id)?;
    let more = purge::purge(cx.store, AT_ONCE, cx.other_copies)?;
    Ok(Outcome::Removed { done: true, more })
}

/// Gives a snapshot of a directory, here with what else changes, a name that no other has.
fn rename(
    cx: &mut Context<'_, '_>,
    (directory, path): (InodeId, &str),
    snapshot: &Snapshot,
    name: String,
) -> Result<()> {
    if snapshot::by_name(cx.store, directory, &name)?.is_some() {
        return Err(NamespaceError::Snapshot(format!(
            "The snapshot {name} already exists for directory {path}"
        )));
    }
    snapshot::delete_name(cx.store, directory, &snapshot.name)?;
    let renamed = Snapshot { name, mtime: cx.times.wall_ms, ..snapshot.clone() };
    snapshot::put(cx.store, directory, &renamed)
}

/// Source: Hadoop 3.5.0 `SnapshotManager#checkSnapshotLimit`.
fn check_limit(count: u64, limit: u32, what: &str) -> Result<()> {
    if count < u64::from(limit) {
        return Ok(());
    }
    Err(NamespaceError::Snapshot(format!(
        "Failed to create snapshot: there are already {count} snapshot(s) and the {what} snapshot \
         limit is {limit}"
    )))
}

fn snapshottable<'a>(cx: &Context<'_, '_>, at: &'a Resolved) -> Result<(&'a Inode, Root)> {
    let inode = path::directory(at, &at.path)?;
    Ok((inode, snapshot::listing::snapshottable(cx.store, at)?))
}

fn check_owner(cx: &Context<'_, '_>, at: &Resolved) -> Result<()> {
    if cx.settings.permissions_enabled {
        perm::check_owner(cx.settings, cx.caller, at)?;
    }
    Ok(())
}

/// Source: Hadoop 3.5.0 `DFSUtil#isValidNameForComponent`.
fn is_component(name: &str) -> bool {
    !["", ".", "..", snapshot::DOT_SNAPSHOT, ".reserved"].contains(&name)
        && !name.contains([':', '/'])
}

/// Source: Hadoop 3.5.0 `FSDirSnapshotOp#verifySnapshotName`.
fn check_name(cx: &Context<'_, '_>, name: &str, path: &str) -> Result<()> {
    if name.contains('/') {
        return Err(NamespaceError::HadoopIllegalArgument(
            "Snapshot name cannot contain \"/\"".to_string(),
        ));
    }
    path::check_reserved_name(name)?;
    path::check_name_len(cx.settings, name, path)
}
