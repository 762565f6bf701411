//! Who may do what.
//!
//! Source: Hadoop 3.5.0 `FSPermissionChecker`.

use crate::acl::{self, AclKind};
use crate::caller::{Caller, Verdict};
use crate::error::{NamespaceError, Result};
pub use crate::inode::record::STICKY;
use crate::inode::{self, Inode, InodeRef};
use crate::path::resolved::Resolved;
use crate::settings::Settings;
use crate::snapshot::kept::path_or_kept;
use crate::store::StoreRead;
use crate::tree::walk;

/// Rights that are asked for, as permission bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access(u16);

impl Access {
    /// Read.
    pub const READ: Access = Access(4);
    /// Write.
    pub const WRITE: Access = Access(2);
    /// Pass through.
    pub const EXECUTE: Access = Access(1);
    /// Read and pass through.
    pub const READ_EXECUTE: Access = Access(5);
    /// Write and pass through.
    pub const WRITE_EXECUTE: Access = Access(3);
    /// Everything.
    pub const ALL: Access = Access(7);

    /// The bits `0..=7` as a right; others are dropped.
    pub fn from_bits(bits: u32) -> Access {
        Access((bits & 7) as u16)
    }

    /// Java's name of the constant.
    pub(crate) fn name(self) -> &'static str {
        const NAMES: [&str; 8] = [
            "NONE",
            "EXECUTE",
            "WRITE",
            "WRITE_EXECUTE",
            "READ",
            "READ_EXECUTE",
            "READ_WRITE",
            "ALL",
        ];
        NAMES[usize::from(self.0 & 7)]
    }
}

/// Permission bits as `ls` prints them.
pub fn symbols(mode: u16) -> String {
    let mut text: String = (0..9)
        .map(|bit| if mode & (0o400 >> bit) == 0 { '-' } else { char::from(b"rwx"[bit % 3]) })
        .collect();
    if mode & STICKY != 0 {
        text.pop();
        text.push(if mode & 1 == 0 { 'T' } else { 't' });
    }
    text
}

/// Whether checks bind this caller at all.
fn is_bound(settings: &Settings, caller: &Caller) -> bool {
    settings.permissions_enabled && !caller.superuser
}

/// Whether an owner, a group and a mode give a caller a right, on something that is no inode.
///
/// Source: Hadoop 3.5.0 `FSPermissionChecker#checkPermission(CachePool, FsAction)`.
pub(crate) fn mode_allows(
    settings: &Settings,
    caller: &Caller,
    owner: &str,
    group: &str,
    mode: u16,
    access: Access,
) -> bool {
    let grants = |shift: u16| (mode >> shift) & access.0 == access.0;
    let is_owner = caller.user == owner;
    let is_member = caller.groups.iter().any(|one| one == group);
    !is_bound(settings, caller)
        || (is_owner && grants(6))
        || (is_member && grants(3))
        || (!is_owner && !is_member && grants(0))
}

/// Whether a caller has a right to what is at a path: as somebody else says, and modes where that says nothing.
fn grants(caller: &Caller, path: impl FnOnce() -> String, inode: &Inode, access: Access) -> bool {
    match caller.rights.judge(path, &inode.owner, access.0) {
        Verdict::Allowed => true,
        Verdict::Denied => false,
        Verdict::Open => allows(caller, inode, access),
    }
}

fn allows(caller: &Caller, inode: &Inode, access: Access) -> bool {
    if !acl::access(&inode.acl).is_empty() {
        return list_allows(caller, inode, access);
    }
    class_allows(caller, (&inode.owner, &inode.group, inode.mode), access)
}

/// As [`allows`], by the bits of the class that the caller is in.
fn class_allows(caller: &Caller, (owner, group, mode): (&str, &str, u16), access: Access) -> bool {
    let shift = if caller.user == owner {
        6
    } else if caller.groups.iter().any(|one| one == group) {
        3
    } else {
        0
    };
    (mode >> shift) & access.0 == access.0
}

/// As [`allows`], by an access control list. The mode's group bits are its mask.
///
/// Source: Hadoop 3.5.0 `FSPermissionChecker#hasAclPermission`.
fn list_allows(caller: &Caller, inode: &Inode, access: Access) -> bool {
    let grants = |bits: u16| bits & access.0 == access.0;
    if caller.user == inode.owner {
        return grants(inode.mode >> 6);
    }
    let mask = inode.mode >> 3;
    let mut is_member = false;
    for entry in acl::access(&inode.acl) {
        let granted = grants(entry.permission & mask);
        match entry.kind {
            AclKind::User if entry.name.as_deref() == Some(&caller.user) => return granted,
            AclKind::Group => {
                let group = entry.name.as_ref().unwrap_or(&inode.group);
                if caller.groups.contains(group) {
                    if granted {
                        return true;
                    }
                    is_member = true;
                }
            }
            _ => {}
        }
    }
    !is_member && grants(inode.mode)
}

/// Whether modes let a caller pass through a directory; not if that is for somebody else to say.
pub(crate) fn may_pass(settings: &Settings, caller: &Caller, directory: &Inode) -> bool {
    let allows = || allows(caller, directory, Access::EXECUTE);
    !is_bound(settings, caller) || (caller.rights.are_modes() && allows())
}

/// Whether the mode of an inode lets a caller read it; not if that is for an access control list to say, or for somebody
/// else.
pub(crate) fn mode_lets_read(settings: &Settings, caller: &Caller, inode: &InodeRef<'_>) -> bool {
    let allows = || class_allows(caller, (inode.owner, inode.group, inode.mode), Access::READ);
    !is_bound(settings, caller) || (!inode.has_acl && caller.rights.are_modes() && allows())
}

fn refusal(caller: &Caller, path: &str, inode: &Inode, access: Access) -> NamespaceError {
    NamespaceError::AccessControl(format!(
        "Permission denied: user={}, access={}, inode=\"{}\":{}:{}:{}{}",
        caller.user,
        access.name(),
        path,
        inode.owner,
        inode.group,
        if inode.is_directory() { 'd' } else { '-' },
        symbols(inode.mode)
    ))
}

fn check_at(caller: &Caller, at: &Resolved, index: usize, access: Access) -> Result<()> {
    match at.chain.get(index) {
        Some(inode) if !grants(caller, || at.prefix(index), inode, access) => {
            Err(refusal(caller, &at.prefix(index), inode, access))
        }
        _ => Ok(()),
    }
}

/// Whether somebody else gives the caller a right to the target: then no directory on the way keeps it out.
///
/// Source: Apache Ranger 2.4 `RangerHdfsAuthorizer`, which asks for no right to what is above.
fn is_let_through(caller: &Caller, at: &Resolved) -> bool {
    let Some(inode) = at.chain.get(at.names.len()).or(at.chain.last()) else { return false };
    let has = |right: Access| {
        let judged = caller.rights.judge(|| at.prefix(at.names.len()), &inode.owner, right.0);
        judged == Verdict::Allowed
    };
    [Access::READ, Access::WRITE, Access::EXECUTE].into_iter().any(has)
}

/// Every directory on the way must be one, and let the caller pass.
pub fn check_traverse(settings: &Settings, caller: &Caller, at: &Resolved) -> Result<()> {
    let is_bound =
        is_bound(settings, caller) && (caller.rights.are_modes() || !is_let_through(caller, at));
    for (index, inode) in at.chain.iter().enumerate().take(at.names.len()) {
        if !inode.is_directory() {
            return Err(NamespaceError::ParentNotDirectory(format!(
                "{} (is not a directory)",
                at.prefix(index)
            )));
        }
        if is_bound {
            check_at(caller, at, index, Access::EXECUTE)?;
        }
    }
    Ok(())
}

/// The target, if it exists, must allow `access`.
pub fn check_access(
    settings: &Settings,
    caller: &Caller,
    at: &Resolved,
    access: Access,
) -> Result<()> {
    if is_bound(settings, caller) { check_at(caller, at, at.names.len(), access) } else { Ok(()) }
}

/// An inode met on a walk must allow `access`. It is named by its path in `store`.
pub(crate) fn check_inode(
    store: &dyn StoreRead,
    settings: &Settings,
    caller: &Caller,
    inode: &Inode,
    access: Access,
) -> Result<()> {
    if !is_bound(settings, caller) || caller.rights.are_modes() && allows(caller, inode, access) {
        return Ok(());
    }
    let path = path_or_kept(store, inode.id)?.unwrap_or_default();
    match grants(caller, || path.clone(), inode, access) {
        true => Ok(()),
        false => Err(refusal(caller, &path, inode, access)),
    }
}

/// Every directory of the tree at the target must allow `access`, and its sticky bit the removal of each
/// child (Hadoop asks for that whatever the access). For a recursive delete, empty directories do not count.
///
/// Source: Hadoop 3.5.0 `FSPermissionChecker#checkSubAccess`.
pub(crate) fn check_below(
    store: &dyn StoreRead,
    settings: &Settings,
    caller: &Caller,
    root: &Inode,
    access: Access,
) -> Result<()> {
    check_below_as(store, store, settings, caller, (None, root), access)
}

/// As [`check_below`] for a tree as a snapshot has it: Hadoop names a directory that does not allow `access` by its
/// path `now`, and what a sticky bit keeps by its way from the root, which is called `base`.
pub(crate) fn check_below_as(
    store: &dyn StoreRead,
    now: &dyn StoreRead,
    settings: &Settings,
    caller: &Caller,
    (base, root): (Option<&str>, &Inode),
    access: Access,
) -> Result<()> {
    if !is_bound(settings, caller) {
        return Ok(());
    }
    let path_of = |inode: &Inode| -> Result<String> {
        let Some(base) = base else {
            return Ok(inode::path_of(store, inode.id)?.unwrap_or_default());
        };
        let (mut below, mut at) = (String::new(), inode.clone());
        while at.id != root.id {
            below.insert_str(0, &format!("/{}", at.name));
            at = inode::expect(store, at.parent)?;
        }
        Ok(format!("{base}{below}"))
    };
    let to_delete = access == Access::ALL;
    walk::descend_directories(store, root, &mut |inode| match inode.directory() {
        Some(directory) if directory.children > 0 || !to_delete => {
            check_inode(now, settings, caller, inode, access)?;
            if inode.mode & STICKY == 0 || inode.owner == caller.user {
                return Ok(());
            }
            walk::each_child(store, inode.id, &mut |child| {
                if child.owner == caller.user {
                    return Ok(());
                }
                let (path, below) = (path_of(inode)?, path_of(child)?);
                // Hadoop names the directory by its path, and describes the one to be deleted.
                Err(sticky_refusal(caller, (&below, child), (&path, root)))
            })
        }
        _ => Ok(()),
    })
}

/// The parent of the target must allow `access`, and its sticky bit the change of an existing target.
pub fn check_parent(
    settings: &Settings,
    caller: &Caller,
    at: &Resolved,
    access: Access,
) -> Result<()> {
    if !is_bound(settings, caller) || at.names.is_empty() {
        return Ok(());
    }
    let index = at.names.len() - 1;
    check_sticky(caller, at, access)?;
    check_at(caller, at, index, access)
}

/// The deepest directory above the target that exists must allow `access`.
pub fn check_ancestor(
    settings: &Settings,
    caller: &Caller,
    at: &Resolved,
    access: Access,
) -> Result<()> {
    if is_bound(settings, caller) {
        check_at(caller, at, at.ancestor_index(), access)
    } else {
        Ok(())
    }
}

fn check_sticky(caller: &Caller, at: &Resolved, access: Access) -> Result<()> {
    let (Some(parent), Some(target)) = (at.parent(), at.target()) else { return Ok(()) };
    let violated = access.0 & Access::WRITE.0 != 0
        && parent.mode & STICKY != 0
        && parent.owner != caller.user
        && target.owner != caller.user;
    if !violated {
        return Ok(());
    }
    Err(sticky_refusal(caller, (&at.path, target), (&at.parent_path(), parent)))
}

fn sticky_refusal(
    caller: &Caller,
    target: (&str, &Inode),
    parent: (&str, &Inode),
) -> NamespaceError {
    let line = |(path, inode): (&str, &Inode)| {
        format!(
            "\"{path}\":{}:{}:{}{}",
            inode.owner,
            inode.group,
            if inode.is_directory() { 'd' } else { '-' },
            symbols(inode.mode)
        )
    };
    NamespaceError::AccessControl(format!(
        "Permission denied by sticky bit: user={}, path={}, parent={}",
        caller.user,
        line(target),
        line(parent)
    ))
}

/// The caller must own the target, which must exist, whether or not permissions are on; and be let through to it, as
/// Hadoop asks for both at once.
///
/// Source: Hadoop 3.5.0 `FSDirectory#checkOwner`.
pub fn check_owner(settings: &Settings, caller: &Caller, at: &Resolved) -> Result<()> {
    let Some(inode) = at.target() else {
        return Err(NamespaceError::FileNotFound(format!(
            "Directory/File does not exist {}",
            at.path
        )));
    };
    // Logs of older builds may have what others did while permissions were off.
    if caller.superuser || !settings.permissions_enabled && settings.rules < 4 {
        return Ok(());
    }
    for index in 0..at.names.len() {
        check_at(caller, at, index, Access::EXECUTE)?;
    }
    if inode.owner == caller.user {
        return Ok(());
    }
    Err(NamespaceError::AccessControl(format!(
        "Permission denied. user={} is not the owner of inode={}",
        caller.user, at.path
    )))
}

/// The caller must be a superuser.
pub fn check_superuser(settings: &Settings, caller: &Caller) -> Result<()> {
    if !is_bound(settings, caller) {
        return Ok(());
    }
    Err(NamespaceError::AccessControl(format!(
        "Access denied for user {}. Superuser privilege is required",
        caller.user
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permission_symbols() {
        assert_eq!(symbols(0o755), "rwxr-xr-x");
        assert_eq!(symbols(0o1777), "rwxrwxrwt");
        assert_eq!(symbols(0o1640), "rw-r----T");
    }
}
