//! Removing files and trees.

use crate::encoding::encode_struct;
use crate::error::{NamespaceError, Result};
use crate::inode::{InodeId, Kind};
use crate::ops::Context;
use crate::outcome::Outcome;
use crate::path::Purpose;
use crate::perm::{self, Access};
use crate::protected;
use crate::snapshot::{self, listing};
use crate::tree::{self, purge};

/// Inodes and blocks that a delete removes itself; what is more is left to [`Purge`].
const AT_ONCE: u64 = 1000;

/// Removes a file or a tree. The name goes at once; of a large tree the inodes go by [`Purge`].
///
/// Answer: `Outcome::Removed`; `done` false if there was nothing.
///
/// Source: Hadoop 3.5.0 `FSDirDeleteOp#delete`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delete {
    /// What.
    pub path: String,
    /// Also a directory with children.
    pub recursive: bool,
}

encode_struct!(Delete { path, recursive });

impl Delete {
    pub(crate) fn apply(&self, cx: &mut Context<'_, '_>) -> Result<Outcome> {
        if self.path == "/.reserved" {
            return Err(NamespaceError::InvalidPath(format!("Invalid path name {}", self.path)));
        }
        let at = cx.resolve(&self.path, Purpose::Use)?;
        perm::check_parent(cx.settings, cx.caller, &at, Access::WRITE)?;
        let nothing = Outcome::Removed { done: false, more: false };
        let Some(target) = at.target() else { return Ok(nothing) };
        perm::check_below(cx.store, cx.settings, cx.caller, target, Access::ALL)?;
        if !self.recursive && target.directory().is_some_and(|d| d.children > 0) {
            return Err(NamespaceError::PathIsNotEmptyDirectory(format!(
                "`{} is non empty': Directory is not empty",
                at.path
            )));
        }
        protected::check(cx.store, cx.settings, &at)?;
        if target.id == InodeId::ROOT {
            return Ok(nothing);
        }
        let id = target.id;
        for directory in listing::check_removable(cx.store, id)? {
            snapshot::delete_root(cx.store, directory)?;
        }
        let is_one = match &target.kind {
            Kind::File(file) => file.block_count < AT_ONCE,
            Kind::Directory(directory) => directory.children == 0,
        };
        if is_one {
            tree::remove_one(cx.store, &at, cx.times.wall_ms)?;
            return Ok(Outcome::Removed { done: true, more: false });
        }
        tree::discard(cx.store, &at, cx.times.wall_ms)?;
        let more = purge::purge_one(cx.store, id, AT_ONCE)?;
        Ok(Outcome::Removed { done: true, more })
    }
}

/// Removes some inodes of deleted trees.
///
/// Answer: `Outcome::Removed`; `more` says that another is needed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Purge {
    /// Most inodes and blocks to remove.
    pub limit: u64,
}

encode_struct!(Purge { limit });

impl Purge {
    pub(crate) fn apply(&self, cx: &mut Context<'_, '_>) -> Result<Outcome> {
        perm::check_superuser(cx.settings, cx.caller)?;
        let more = purge::purge(cx.store, self.limit, cx.other_copies)?;
        Ok(Outcome::Removed { done: true, more })
    }
}
