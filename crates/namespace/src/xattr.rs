//! Extended attributes as records.
//!
//! Table `xattr`: inode id, space (1 byte), name -> the attribute's bytes.

use crate::encoding::{encode_enum, encode_struct};
use crate::error::Result;
use crate::inode::InodeId;
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

/// A mark on files whose bytes superusers may not read. It has no value and is never removed.
pub(crate) const UNREADABLE_BY_SUPERUSER: &str = "security.hdfs.unreadable.by.superuser";

impl XAttrName {
    /// As users write it: the space in lower case, a dot, the name.
    pub(crate) fn prefixed(&self) -> String {
        let space = match self.space {
            XAttrSpace::User => "user",
            XAttrSpace::Trusted => "trusted",
            XAttrSpace::Security => "security",
            XAttrSpace::System => "system",
            XAttrSpace::Raw => "raw",
        };
        format!("{space}.{}", self.name)
    }

    pub(crate) fn is_unreadable_mark(&self) -> bool {
        self.prefixed() == UNREADABLE_BY_SUPERUSER
    }

    /// Whether it counts against the limit of an inode.
    pub(crate) fn is_counted(&self) -> bool {
        matches!(self.space, XAttrSpace::User | XAttrSpace::Trusted)
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

/// Whether an inode has any extended attribute.
pub(crate) fn has_any(store: &dyn StoreRead, id: InodeId) -> Result<bool> {
    let mut found = false;
    store.scan(Table::XAttr, &id.key(), &prefix_end(&id.key()), &mut |_, _| {
        found = true;
        ControlFlow::Break(())
    })?;
    Ok(found)
}

/// Whether an inode has this one.
pub(crate) fn has(store: &dyn StoreRead, id: InodeId, name: &XAttrName) -> Result<bool> {
    Ok(store.get(Table::XAttr, &key(id, name))?.is_some())
}

/// Inodes from `from` on that have an attribute, of the next `limit` attributes, and where to go on, if there are more.
pub(crate) fn inodes_with(
    store: &dyn StoreRead,
    name: &XAttrName,
    from: InodeId,
    limit: usize,
) -> Result<(Vec<InodeId>, Option<InodeId>)> {
    let (mut found, mut seen, mut last) = (Vec::new(), 0, None);
    let mut visit = |entry: &[u8], _: &[u8]| {
        let Some(id) = entry.first_chunk().map(|id| InodeId(u64::from_be_bytes(*id))) else {
            return ControlFlow::Continue(());
        };
        // Those of one inode stay together.
        if seen >= limit && last != Some(id) {
            return ControlFlow::Break(());
        }
        (seen, last) = (seen + 1, Some(id));
        if *entry == key(id, name) {
            found.push(id);
        }
        ControlFlow::Continue(())
    };
    store.scan(Table::XAttr, &from.key(), &[], &mut visit)?;
    let next = last.filter(|_| seen >= limit).map(|last| InodeId(last.0 + 1));
    Ok((found, next))
}

/// Inode, space, name.
pub(crate) fn key(id: InodeId, name: &XAttrName) -> Vec<u8> {
    [&id.key()[..], &[name.space.byte()], name.name.as_bytes()].concat()
}

/// Every attribute of an inode.
pub(crate) fn all(store: &dyn StoreRead, id: InodeId) -> Result<Vec<(XAttrName, Vec<u8>)>> {
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
