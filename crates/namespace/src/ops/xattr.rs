//! Changing and reading extended attributes.

use crate::caller::Caller;
use crate::encoding::encode_struct;
use crate::encryption;
use crate::error::{NamespaceError, Result};
use crate::inode::{Inode, InodeId};
use crate::ops::Context;
use crate::outcome::Outcome;
use crate::path::{self, Purpose, Resolved};
use crate::perm::{self, Access};
use crate::settings::{self, Settings};
use crate::store::{StoreRead, StoreTxn, Table};
use crate::xattr::{UNREADABLE_BY_SUPERUSER, all, key};

pub use crate::xattr::{XAttrName, XAttrSpace};

/// Sets an extended attribute.
///
/// Answer: `Outcome::Done`.
///
/// Source: Hadoop 3.5.0 `FSDirXAttrOp#setXAttr`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetXAttr {
    /// What.
    pub path: String,
    /// Which.
    pub name: XAttrName,
    /// Its bytes.
    pub value: Vec<u8>,
    /// `XAttrSetFlag.CREATE`: it may be new.
    pub create: bool,
    /// `XAttrSetFlag.REPLACE`: it may be there.
    pub replace: bool,
}

encode_struct!(SetXAttr { path, name, value, create, replace });

impl SetXAttr {
    pub(crate) fn apply(&self, cx: &mut Context<'_, '_>) -> Result<Outcome> {
        check_enabled(cx.settings)?;
        let len = (self.name.name.len() + self.value.len()) as u64;
        let max = cx.settings.xattr_len_max;
        if len > max {
            return Err(NamespaceError::HadoopIllegalArgument(format!(
                "The XAttr is too big. The maximum combined size of the name and value is {max}, but \
                 the total size is {len}"
            )));
        }
        check_named(cx.caller, &self.path, &self.name, !self.value.is_empty())?;
        let at = cx.resolve(&self.path, Purpose::Use)?;
        check_change(cx, &at, &self.name)?;
        let (create, replace) = (self.create, self.replace);
        set(cx, existing(&at)?, &self.name, &self.value, (create, replace))?;
        Ok(Outcome::Done)
    }
}

/// Sets an attribute, which may be new, or be there, as the flags say.
///
/// Source: Hadoop 3.5.0 `FSDirXAttrOp#setINodeXAttrs`.
pub(crate) fn set(
    cx: &mut Context<'_, '_>,
    target: &Inode,
    name: &XAttrName,
    value: &[u8],
    (create, replace): (bool, bool),
) -> Result<()> {
    let key = key(target.id, name);
    if !create && !replace {
        return Err(NamespaceError::HadoopIllegalArgument("A flag must be specified.".to_string()));
    }
    match (cx.store.get(Table::XAttr, &key)?.is_some(), create, replace) {
        (true, _, false) => {
            return Err(NamespaceError::Io(format!(
                "XAttr: {} already exists. The REPLACE flag must be specified.",
                name.name
            )));
        }
        (false, false, _) => {
            return Err(NamespaceError::Io(format!(
                "XAttr: {} does not exist. The CREATE flag must be specified.",
                name.name
            )));
        }
        _ => {}
    }
    if *name == encryption::zone_attribute() && cx.settings.rules >= 2 {
        encryption::parse_zone(value)?;
        encryption::mark(cx.store, target.id)?;
    }
    cx.store.put(Table::XAttr, &key, value)?;
    let all = all(cx.store, target.id)?;
    let max = cx.settings.xattrs_per_inode_max;
    if all.iter().filter(|(name, _)| name.is_counted()).count() as u64 > max {
        return Err(NamespaceError::Io(format!(
            "Cannot add additional XAttr to inode, would exceed limit of {max}"
        )));
    }
    if target.is_directory() && all.iter().any(|(name, _)| name.is_unreadable_mark()) {
        return Err(NamespaceError::Io(format!(
            "Can only set '{UNREADABLE_BY_SUPERUSER}' on a file."
        )));
    }
    Ok(())
}

/// Removes an extended attribute.
///
/// Answer: `Outcome::Done`.
///
/// Source: Hadoop 3.5.0 `FSDirXAttrOp#removeXAttr`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoveXAttr {
    /// What.
    pub path: String,
    /// Which.
    pub name: XAttrName,
}

encode_struct!(RemoveXAttr { path, name });

impl RemoveXAttr {
    pub(crate) fn apply(&self, cx: &mut Context<'_, '_>) -> Result<Outcome> {
        check_enabled(cx.settings)?;
        check_named(cx.caller, &self.path, &self.name, false)?;
        let at = cx.resolve(&self.path, Purpose::Use)?;
        check_change(cx, &at, &self.name)?;
        let inode = existing(&at)?;
        let id = inode.id;
        // Hadoop has a directory's policies among its attributes, and does not come to the mark without any.
        let has_policies = inode
            .directory()
            .is_some_and(|directory| directory.policy.is_some() || inode.storage_policy != 0);
        let has_any = || Ok::<_, NamespaceError>(has_policies || !all(cx.store, id)?.is_empty());
        let is_zone = self.name == encryption::zone_attribute() && cx.settings.rules >= 2;
        if is_zone && has_any()? {
            return Err(NamespaceError::IllegalArgument(
                "The encryption zone xattr should never be deleted.".to_string(),
            ));
        }
        if self.name.is_unreadable_mark() && has_any()? {
            return Err(NamespaceError::AccessControl(format!(
                "The xattr '{UNREADABLE_BY_SUPERUSER}' can not be deleted."
            )));
        }
        let key = key(id, &self.name);
        if cx.store.get(Table::XAttr, &key)?.is_none() {
            return Err(NamespaceError::Io(
                "No matching attributes found for remove operation".to_string(),
            ));
        }
        cx.store.delete(Table::XAttr, &key)?;
        Ok(Outcome::Done)
    }
}

/// Source: Hadoop 3.5.0 `FSDirXAttrOp#checkXAttrsConfigFlag`.
fn check_enabled(settings: &Settings) -> Result<()> {
    if settings.xattrs_enabled {
        return Ok(());
    }
    Err(NamespaceError::Io(
        "The XAttr operation has been rejected.  Support for XAttrs has been disabled by setting \
         dfs.namenode.xattrs.enabled to false."
            .to_string(),
    ))
}

/// Source: Hadoop 3.5.0 `FSDirectory#resolveLastINode`.
pub(crate) fn existing(at: &Resolved) -> Result<&Inode> {
    at.target().ok_or_else(|| NamespaceError::FileNotFound(format!("cannot find {}", at.path)))
}

/// Whether a caller can see an attribute at all by this path.
///
/// Source: Hadoop 3.5.0 `XAttrPermissionFilter#filterXAttrsForApi`.
fn is_seen(caller: &Caller, path: &str, name: &XAttrName) -> bool {
    match name.space {
        XAttrSpace::User => true,
        XAttrSpace::Trusted => caller.superuser,
        XAttrSpace::Raw => path::is_raw(path),
        XAttrSpace::Security | XAttrSpace::System => name.is_unreadable_mark(),
    }
}

/// Fails where a caller may not name an attribute, or attributes are switched off.
///
/// Source: Hadoop 3.5.0 `FSDirXAttrOp#getXAttrs`, `#removeXAttr`.
pub fn check_xattr(
    store: &dyn StoreRead,
    caller: &Caller,
    path: &str,
    name: &XAttrName,
    has_value: bool,
) -> Result<()> {
    check_enabled(&*settings::get(store)?)?;
    check_named(caller, path, name, has_value)
}

/// Source: Hadoop 3.5.0 `XAttrPermissionFilter#checkPermissionForApi`.
fn check_named(caller: &Caller, path: &str, name: &XAttrName, has_value: bool) -> Result<()> {
    let denied = |text: String| Err(NamespaceError::AccessControl(text));
    if !is_seen(caller, path, name) {
        return denied(format!("User doesn't have permission for xattr: {}", name.prefixed()));
    }
    if name.is_unreadable_mark() && has_value {
        return denied(format!(
            "Attempt to set a value for '{UNREADABLE_BY_SUPERUSER}'. Values are not allowed for this \
             xattr."
        ));
    }
    Ok(())
}

/// Source: Hadoop 3.5.0 `FSDirXAttrOp#checkXAttrChangeAccess`.
fn check_change(cx: &Context<'_, '_>, at: &Resolved, name: &XAttrName) -> Result<()> {
    if name.space != XAttrSpace::User || !cx.settings.permissions_enabled {
        return Ok(());
    }
    let sticky =
        at.target().is_some_and(|inode| inode.is_directory() && inode.mode & perm::STICKY != 0);
    if sticky {
        perm::check_owner(cx.settings, cx.caller, at)
    } else {
        perm::check_access(cx.settings, cx.caller, at, Access::WRITE)
    }
}

/// Fails if the caller is a superuser and the file's bytes are not for superusers. The NameNode itself
/// reads none.
///
/// Source: Hadoop 3.5.0 `FSDirectory#checkUnreadableBySuperuser`.
pub(crate) fn check_readable(
    store: &dyn StoreRead,
    settings: &Settings,
    caller: &Caller,
    file: InodeId,
) -> Result<()> {
    if !settings.permissions_enabled || !caller.superuser || caller.user.is_empty() {
        return Ok(());
    }
    let (space, name) = (XAttrSpace::Security, "hdfs.unreadable.by.superuser".to_string());
    if store.get(Table::XAttr, &key(file, &XAttrName { space, name }))?.is_none() {
        return Ok(());
    }
    Err(NamespaceError::AccessControl(format!(
        "Access is denied for {} since the superuser is not allowed to perform this operation.",
        caller.user
    )))
}

/// The named attributes of a path, or all that the caller may see if `names` is empty.
///
/// Source: Hadoop 3.5.0 `FSDirXAttrOp#getXAttrs`.
pub fn get_xattrs(
    store: &dyn StoreRead,
    caller: &Caller,
    path: &str,
    names: &[XAttrName],
) -> Result<Vec<(XAttrName, Vec<u8>)>> {
    let settings = settings::get(store)?;
    check_enabled(&settings)?;
    for name in names {
        check_named(caller, path, name, false)?;
    }
    let at = path::resolve(store, &settings, caller, path, Purpose::Use)?;
    perm::check_access(&settings, caller, &at, Access::READ)?;
    let mut found = all(&at.view(store), existing(&at)?.id)?;
    found.retain(|(name, _)| is_seen(caller, path, name));
    if names.is_empty() {
        return Ok(found);
    }
    let mut wanted = Vec::with_capacity(names.len());
    for name in names {
        match found.iter().find(|(known, _)| known == name) {
            Some(entry) => wanted.push(entry.clone()),
            None => {
                return Err(NamespaceError::XAttrNotFound(
                    "At least one of the attributes provided was not found.".to_string(),
                ));
            }
        }
    }
    Ok(wanted)
}

/// The names of the attributes that the caller may see.
///
/// Source: Hadoop 3.5.0 `FSDirXAttrOp#listXAttrs`.
pub fn list_xattrs(
    store: &dyn StoreRead,
    caller: &Caller,
    path: &str,
) -> Result<Vec<(XAttrName, Vec<u8>)>> {
    get_xattrs(store, caller, path, &[])
}
