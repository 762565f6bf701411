//! Making directories.

use crate::acl::{self, CreateMode};
use crate::encoding::encode_struct;
use crate::error::{NamespaceError, Result};
use crate::inode::{self, Directory, Inode, Kind};
use crate::ops::{self, Context};
use crate::outcome::Outcome;
use crate::path::{self, Purpose, Resolved};
use crate::perm::{self, Access};
use crate::{counter, tree};
use std::sync::Arc;

/// Makes a directory and, if asked, the missing ones above it.
///
/// Answer: `Outcome::Flag(true)`, also if it is there already.
///
/// Source: Hadoop 3.5.0 `FSDirMkdirOp#mkdirs`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mkdirs {
    /// Where.
    pub path: String,
    /// Permission bits.
    pub mode: CreateMode,
    /// Make missing parents too.
    pub create_parent: bool,
}

encode_struct!(Mkdirs { path, mode, create_parent });

impl Mkdirs {
    pub(crate) fn apply(&self, cx: &mut Context<'_, '_>) -> Result<Outcome> {
        let mut at = cx.resolve(&self.path, Purpose::Create)?;
        if let Some(target) = at.target() {
            if !target.is_directory() {
                return Err(NamespaceError::FileAlreadyExists(format!(
                    "Path is not a directory: {}",
                    self.path
                )));
            }
            return Ok(Outcome::Flag(true));
        }
        perm::check_ancestor(cx.settings, cx.caller, &at, Access::WRITE)?;
        if !self.create_parent {
            path::check_parent_directory(&at)?;
        }
        // Once, as in Hadoop, however many directories are to be made.
        ops::check_object_limit(cx.store, cx.settings)?;
        let masked = self.mode.masked & 0o777 | OWNER_WRITE_EXECUTE;
        make_missing(cx, &mut at, CreateMode { masked, ..self.mode }, 1)?;
        make_one(cx, &mut at, self.mode)?;
        Ok(Outcome::Flag(true))
    }
}

/// What the owner gets on directories that are made on the way to another.
const OWNER_WRITE_EXECUTE: u16 = 0o300;

/// Makes the missing directories above a new file, with the permissions of the deepest one that
/// exists.
///
/// Source: Hadoop 3.5.0 `FSDirMkdirOp#createAncestorDirectories`.
pub(crate) fn make_ancestors(cx: &mut Context<'_, '_>, at: &mut Resolved) -> Result<()> {
    let mode = at.ancestor().mode & 0o777 | OWNER_WRITE_EXECUTE;
    make_missing(cx, at, mode.into(), 1)
}

/// Makes directories until `spare` names of the path are left.
fn make_missing(
    cx: &mut Context<'_, '_>,
    at: &mut Resolved,
    mode: CreateMode,
    spare: usize,
) -> Result<()> {
    while at.chain.len() + spare <= at.names.len() {
        make_one(cx, at, mode)?;
    }
    Ok(())
}

/// Makes the first missing directory of the path.
fn make_one(cx: &mut Context<'_, '_>, at: &mut Resolved, mode: CreateMode) -> Result<()> {
    let depth = at.chain.len();
    let name = at.names[depth - 1].clone();
    let parent = inode::expect(cx.store, at.chain[depth - 1].id)?;
    path::check_limits(cx.settings, &parent, &at.prefix(depth - 1), &name)?;
    let mut directory = Inode {
        id: counter::next_inode_id(cx.store)?,
        parent: parent.id,
        name,
        owner: cx.caller.user.clone(),
        group: parent.group.clone(),
        mode: 0,
        acl: Vec::new(),
        mtime: cx.times.wall_ms,
        atime: 0,
        storage_policy: 0,
        kind: Kind::Directory(Directory::default()),
    };
    acl::inherit(&parent, &mut directory, mode, cx.settings.posix_acl_inheritance);
    tree::add(cx.store, &at.chain, &directory, cx.times.wall_ms)?;
    at.chain.push(Arc::new(directory));
    Ok(())
}
