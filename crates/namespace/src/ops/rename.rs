//! Moving names.

use crate::counter::{self, Counter};
use crate::encoding::encode_struct;
use crate::encryption;
use crate::error::{NamespaceError, Result};
use crate::inode::{Inode, InodeId};
use crate::ops::Context;
use crate::outcome::Outcome;
use crate::path::{self, Purpose, Resolved};
use crate::perm::{self, Access};
use crate::protected;
use crate::snapshot::{self, listing};
use crate::storage_policy;
use crate::tree::{self, walk};
use crate::usage::{self, Usage};
use std::sync::Arc;

/// The old rename: into a directory that is there, never over anything.
///
/// Answer: `Outcome::Flag`.
///
/// Source: Hadoop 3.5.0 `FSDirRenameOp#renameToInt`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rename {
    /// From.
    pub src: String,
    /// To.
    pub dst: String,
}

encode_struct!(Rename { src, dst });

impl Rename {
    pub(crate) fn apply(&self, cx: &mut Context<'_, '_>) -> Result<Outcome> {
        let from = cx.resolve(&self.src, Purpose::Use)?;
        let mut to = cx.resolve(&self.dst, Purpose::Create)?;
        protected::check(cx.store, cx.settings, &from)?;
        // Into a directory that is there, under the same name.
        if to.target().is_some_and(Inode::is_directory) {
            let mut names = to.names.clone();
            names.push(from.name().to_string());
            to = path::walk(cx.store, names)?;
        }
        perm::check_parent(cx.settings, cx.caller, &from, Access::WRITE)?;
        perm::check_traverse(cx.settings, cx.caller, &to)?;
        perm::check_ancestor(cx.settings, cx.caller, &to, Access::WRITE)?;
        let Ok(source) = check_source(&from) else { return Ok(Outcome::Flag(false)) };
        let snapshottable = listing::check_removable(cx.store, source.id)?;
        if from.path == to.path {
            return Ok(Outcome::Flag(true));
        }
        let fits = match check_destination(&from, &to) {
            Err(reserved @ NamespaceError::InvalidPath(_)) => return Err(reserved),
            fits => fits.is_ok(),
        };
        let possible =
            fits && to.target().is_none() && to.parent().is_some_and(Inode::is_directory);
        if possible {
            check_nesting(cx, &from, &to, &snapshottable)?;
            check_same_root(cx, &from, &to)?;
            encryption::check_move(cx.store, &from, &to)?;
            carry(cx, &from, &to)?;
        }
        Ok(Outcome::Flag(possible))
    }
}

/// The rename that can replace a file or an empty directory.
///
/// Answer: `Outcome::Removed`.
///
/// Source: Hadoop 3.5.0 `FSDirRenameOp#renameToInt` with options.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RenameTo {
    /// From.
    pub src: String,
    /// To, exactly.
    pub dst: String,
    /// `Rename.OVERWRITE`.
    pub overwrite: bool,
    /// `Rename.TO_TRASH`: who may not delete it may not have it thrown away either.
    pub to_trash: bool,
}

encode_struct!(RenameTo { src, dst, overwrite, to_trash });

impl RenameTo {
    pub(crate) fn apply(&self, cx: &mut Context<'_, '_>) -> Result<Outcome> {
        let from = cx.resolve(&self.src, Purpose::Use)?;
        let to = cx.resolve(&self.dst, Purpose::Create)?;
        protected::check(cx.store, cx.settings, &from)?;
        perm::check_parent(cx.settings, cx.caller, &from, Access::WRITE)?;
        if let Some(thrown) = from.target().filter(|_| self.to_trash) {
            perm::check_below(cx.store, cx.settings, cx.caller, thrown, Access::ALL)?;
        }
        perm::check_ancestor(cx.settings, cx.caller, &to, Access::WRITE)?;
        let source = check_source(&from)?;
        let snapshottable = listing::check_removable(cx.store, source.id)?;
        if from.path == to.path {
            return Err(NamespaceError::FileAlreadyExists(format!(
                "The source {} and destination {} are the same",
                from.path, to.path
            )));
        }
        check_destination(&from, &to)?;
        if to.names.is_empty() {
            return Err(NamespaceError::Io("rename destination cannot be the root".to_string()));
        }
        encryption::check_move(cx.store, &from, &to)?;
        if let Some(target) = to.target() {
            check_overwrite(&from.path, &to.path, self.overwrite, source, target)?;
            for directory in listing::check_removable(cx.store, target.id)? {
                snapshot::delete_root(cx.store, directory)?;
            }
        }
        match to.parent() {
            None => {
                return Err(NamespaceError::FileNotFound(format!(
                    "rename destination parent {} not found.",
                    to.path
                )));
            }
            Some(parent) if !parent.is_directory() => {
                return Err(NamespaceError::ParentNotDirectory(format!(
                    "rename destination parent {} is a file.",
                    to.path
                )));
            }
            Some(_) => {}
        }
        check_nesting(cx, &from, &to, &snapshottable)?;
        check_same_root(cx, &from, &to)?;
        carry(cx, &from, &to)?;
        Ok(Outcome::Removed { done: true, more: false })
    }
}

/// Source: Hadoop 3.5.0 `FSDirRenameOp#validateRenameSource`.
fn check_source(from: &Resolved) -> Result<&Inode> {
    if from.names.is_empty() {
        return Err(NamespaceError::Io("rename source cannot be the root".to_string()));
    }
    from.target().ok_or_else(|| {
        NamespaceError::FileNotFound(format!("rename source {} is not found.", from.path))
    })
}

/// Source: Hadoop 3.5.0 `FSDirRenameOp#validateDestination`.
fn check_destination(from: &Resolved, to: &Resolved) -> Result<()> {
    if path::is_below(&to.path, &from.path) {
        return Err(NamespaceError::Io(format!(
            "Rename destination {} is a directory or file under source {}",
            to.path, from.path
        )));
    }
    if from.path == "/.reserved" || to.path == "/.reserved" {
        return Err(NamespaceError::InvalidPath(
            "Invalid path name Cannot rename to or from /.reserved".to_string(),
        ));
    }
    Ok(())
}

/// Source: Hadoop 3.5.0 `FSDirRenameOp#validateOverwrite`.
fn check_overwrite(
    src: &str,
    dst: &str,
    overwrite: bool,
    source: &Inode,
    target: &Inode,
) -> Result<()> {
    if source.is_directory() != target.is_directory() {
        return Err(NamespaceError::Io(format!(
            "Source {src} and destination {dst} must both be directories"
        )));
    }
    if !overwrite {
        return Err(NamespaceError::FileAlreadyExists(format!(
            "rename destination {dst} already exists"
        )));
    }
    if target.directory().is_some_and(|directory| directory.children > 0) {
        return Err(NamespaceError::Io(format!(
            "rename destination directory is not empty: {dst}"
        )));
    }
    Ok(())
}

/// Source: Hadoop 3.5.0 `FSDirRenameOp#validateNestSnapshot`.
fn check_nesting(
    cx: &Context<'_, '_>,
    from: &Resolved,
    to: &Resolved,
    snapshottable: &[InodeId],
) -> Result<()> {
    let Some(parent) = to.parent().filter(|_| !snapshottable.is_empty()) else { return Ok(()) };
    let is_root = parent.id == InodeId::ROOT;
    if !is_root && snapshot::root_above(cx.store, parent.id)?.is_none() {
        return Ok(());
    }
    Err(NamespaceError::Snapshot(format!(
        "Unable to rename because {} has snapshottable descendant directories and {} is a descent of \
         a snapshottable directory, and HDFS does not support nested snapshottable directory.",
        from.path,
        to.parent_path()
    )))
}

/// Nothing leaves or enters a snapshottable directory where its snapshots are deleted in order and it has trash of its
/// own. Who renames a directory in the root is refused as well: itself it is in no snapshottable directory, its new name
/// is in the root, which is one.
///
/// Source: Hadoop 3.5.0 `FSDirRenameOp#checkUnderSameSnapshottableRoot`.
fn check_same_root(cx: &Context<'_, '_>, from: &Resolved, to: &Resolved) -> Result<()> {
    if !cx.settings.snapshots_deleted_in_order || !cx.settings.snapshot_trash_roots {
        return Ok(());
    }
    if listing::ancestor_of(cx.store, from)? == listing::ancestor_of(cx.store, to)? {
        return Ok(());
    }
    Err(NamespaceError::Snapshot(format!(
        "Source {} and dest {} are not under the same snapshot root.",
        from.path, to.path
    )))
}

/// Moves the target of `from` to `to`, whose parent exists, in the place of a file or empty directory that is there.
fn carry(cx: &mut Context<'_, '_>, from: &Resolved, to: &Resolved) -> Result<()> {
    let mut moved = check_source(from)?.clone();
    let above_from = &from.chain[..from.chain.len() - 1];
    let above_to = &to.chain[..to.names.len()];
    let parent = &above_to[above_to.len() - 1];
    // A directory that stays full has no room problem when a name in it only changes.
    if moved.parent != parent.id || to.name().len() > from.name().len() {
        let mut room = Inode::clone(parent);
        if moved.parent == parent.id
            && let Some(directory) = room.directory_mut()
        {
            directory.children = directory.children.saturating_sub(1);
        }
        path::check_room(cx.settings, &room, &to.parent_path(), to.name())?;
    }
    let counted = usage::has_quota(above_from) || usage::has_quota(above_to);
    let (mut before, mut after) = (Usage::default(), Usage::default());
    if counted {
        // A storage policy set above the one place is none at the other.
        let [old, new] = [above_from, above_to].map(storage_policy::set_above);
        before = usage::below(cx.store, &moved, old)?;
        after = usage::below(cx.store, &moved, new)?;
        let shared =
            above_from.iter().zip(above_to).take_while(|(one, other)| one.id == other.id).count();
        // Quotas above both are as full as before. In the others, what is replaced makes room.
        let replaced = match to.target() {
            Some(target) => usage::below(cx.store, target, new)?,
            None => Usage::default(),
        };
        usage::verify_from(cx.store, above_to, shared, after.minus(replaced))?;
    }
    if to.target().is_some() {
        tree::remove_one(cx.store, to, cx.times.wall_ms)?;
    }
    usage::charge(cx.store, above_from, before.negated())?;
    path::check_reserved_name(to.name())?;
    usage::charge(cx.store, above_to, after)?;
    tree::relink(cx.store, &mut moved, parent.id, to.name(), cx.times.wall_ms)?;
    let [old, new] = [above_from, above_to].map(storage_policy::set_above);
    if old != new && counter::get(cx.store, Counter::QuotasSet)? > 0 {
        recount_types(cx, &moved, old, new)?;
    }
    Ok(())
}

/// Counts on the right types of storage what is below directories with quotas that have come below another storage
/// policy.
fn recount_types(cx: &mut Context<'_, '_>, moved: &Inode, old: u8, new: u8) -> Result<()> {
    let mut limited = [Vec::new(), Vec::new()];
    for (above, limited) in [old, new].into_iter().zip(&mut limited) {
        let visit = &mut |inode: &Inode, policy| {
            if usage::is_limited(inode) {
                limited.push((inode.clone(), policy));
            }
            Ok(())
        };
        walk::descend_with_policy(cx.store, moved, above, visit)?;
    }
    let [before, after] = limited;
    for ((inode, old), (_, new)) in before.into_iter().zip(after) {
        let before = usage::below(cx.store, &inode, old)?;
        let after = usage::below(cx.store, &inode, new)?;
        usage::charge(cx.store, &[Arc::new(inode)], after.minus(before))?;
    }
    Ok(())
}
