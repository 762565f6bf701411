//! Extended attributes.

use crate::apply::Outcome;
use crate::command::Caller;
use crate::encoding::{encode_enum, encode_struct};
use crate::error::{NamespaceError, Result};
use crate::inode::InodeId;
use crate::ops::Context;
use crate::path::{self, Purpose, Resolved};
use crate::perm::{self, Access};
use crate::settings::{self, Settings};
use crate::store::{StoreError, StoreRead, StoreTxn, Table, prefix_end};
use std::ops::ControlFlow;

/// The spaces that names of extended attributes are in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum XAttrSpace {
    /// For users.
    User,
    /// For superusers.
    Trusted,
    /// For security labels, by superusers.
    Security,
    /// The file system's own.
    System,
    /// By superusers on raw paths.
    Raw,
}

encode_enum!(XAttrSpace { 0 => User, 1 => Trusted, 2 => Security, 3 => System, 4 => Raw });

/// The full name of an extended attribute.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct XAttrName {
    /// Its space.
    pub space: XAttrSpace,
    /// Its name in the space.
    pub name: String,
}

encode_struct!(XAttrName { space, name });

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
        let at = cx.resolve(&self.path, Purpose::Use)?;
        check_space(cx.settings, cx.caller, &at, &self.name, Access::WRITE)?;
        let target = at.existing()?;
        if self.name.name.is_empty() {
            return Err(NamespaceError::HadoopIllegalArgument(
                "XAttr name cannot be empty.".to_string(),
            ));
        }
        let len = (self.name.name.len() + self.value.len()) as u64;
        let max = cx.settings.xattr_len_max;
        if max > 0 && len > max {
            return Err(NamespaceError::HadoopIllegalArgument(format!(
                "The XAttr is too big. The maximum combined size of the name and value is {max}, but \
                 the total size is {len}"
            )));
        }
        let key = key(target.id, &self.name);
        match (cx.store.get(Table::XAttr, &key)?.is_some(), self.create, self.replace) {
            (true, _, false) => {
                return Err(NamespaceError::Io(format!(
                    "XAttr: {} already exists. The REPLACE flag must be specified.",
                    self.name.name
                )));
            }
            (false, false, _) => {
                return Err(NamespaceError::Io(format!(
                    "XAttr: {} does not exist. The CREATE flag must be specified.",
                    self.name.name
                )));
            }
            _ => {}
        }
        cx.store.put(Table::XAttr, &key, &self.value)?;
        let count = all(cx.store, target.id)?.len() as u64;
        if count > cx.settings.xattrs_per_inode_max {
            return Err(NamespaceError::Io(format!(
                "Cannot add additional XAttr to inode, would exceed limit of {}",
                cx.settings.xattrs_per_inode_max
            )));
        }
        Ok(Outcome::Done)
    }
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
        let at = cx.resolve(&self.path, Purpose::Use)?;
        check_space(cx.settings, cx.caller, &at, &self.name, Access::WRITE)?;
        let key = key(at.existing()?.id, &self.name);
        if cx.store.get(Table::XAttr, &key)?.is_none() {
            return Err(NamespaceError::Io(format!(
                "No matching attributes found for remove operation {}",
                self.name.name
            )));
        }
        cx.store.delete(Table::XAttr, &key)?;
        Ok(Outcome::Done)
    }
}

impl XAttrSpace {
    /// The byte in keys of the `xattr` table.
    fn byte(self) -> u8 {
        self as u8
    }

    fn from_byte(byte: u8) -> Option<XAttrSpace> {
        use XAttrSpace::{Raw, Security, System, Trusted, User};
        [User, Trusted, Security, System, Raw].into_iter().find(|space| space.byte() == byte)
    }
}

/// Inode, space, name.
fn key(id: InodeId, name: &XAttrName) -> Vec<u8> {
    [&id.key()[..], &[name.space.byte()], name.name.as_bytes()].concat()
}

/// Source: Hadoop 3.5.0 `XAttrPermissionFilter#checkPermissionForApi`.
fn check_space(
    settings: &Settings,
    caller: &Caller,
    at: &Resolved,
    name: &XAttrName,
    access: Access,
) -> Result<()> {
    let bound = settings.permissions_enabled && !caller.superuser;
    let allowed = match name.space {
        XAttrSpace::User => true,
        XAttrSpace::Trusted => !bound,
        XAttrSpace::Security => access == Access::READ || !bound,
        XAttrSpace::System | XAttrSpace::Raw => false,
    };
    if !allowed {
        return Err(NamespaceError::AccessControl(format!(
            "User doesn't have permission for xattr: {:?}.{}",
            name.space, name.name
        )));
    }
    perm::check_access(settings, caller, at, access)
}

fn all(store: &dyn StoreRead, id: InodeId) -> Result<Vec<(XAttrName, Vec<u8>)>> {
    let prefix = id.key();
    let mut found = Vec::new();
    store.scan(Table::XAttr, &prefix, &prefix_end(&prefix), &mut |key, value| {
        let space = key.get(8).and_then(|byte| XAttrSpace::from_byte(*byte));
        let name = key.get(9..).and_then(|name| std::str::from_utf8(name).ok());
        found.push(
            space
                .zip(name)
                .map(|(space, name)| (XAttrName { space, name: name.to_string() }, value.to_vec())),
        );
        ControlFlow::Continue(())
    })?;
    found
        .into_iter()
        .map(|entry| {
            let reason = || StoreError::Corrupt { what: "xattr", reason: format!("key of {id}") };
            entry.ok_or_else(|| reason().into())
        })
        .collect()
}

/// Removes every attribute of an inode.
pub(crate) fn remove_all(store: &mut dyn StoreTxn, id: InodeId) -> Result<()> {
    for (name, _) in all(store, id)? {
        store.delete(Table::XAttr, &key(id, &name))?;
    }
    Ok(())
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
    let at = path::resolve(store, &settings, caller, path, Purpose::Use)?;
    for name in names {
        check_space(&settings, caller, &at, name, Access::READ)?;
    }
    perm::check_access(&settings, caller, &at, Access::READ)?;
    let mut found = all(&at.view(store), at.existing()?.id)?;
    if names.is_empty() {
        found.retain(|(name, _)| check_space(&settings, caller, &at, name, Access::READ).is_ok());
        return Ok(found);
    }
    let mut wanted = Vec::with_capacity(names.len());
    for name in names {
        match found.iter().find(|(known, _)| known == name) {
            Some(entry) => wanted.push(entry.clone()),
            None => {
                return Err(NamespaceError::Io(
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
pub fn list_xattrs(store: &dyn StoreRead, caller: &Caller, path: &str) -> Result<Vec<XAttrName>> {
    let found = get_xattrs(store, caller, path, &[])?;
    Ok(found.into_iter().map(|(name, _)| name).collect())
}
