//! States of the store, and how records are read of one.
//!
//! A state may know better than its records, as one that keeps some of them decoded: it is asked by the methods of
//! [`StoreRead`]. What they do where it does not is here, too.

use super::table::Table;
use crate::block::record::{self as block, Block, Position};
use crate::error::{NamespaceError, Result as Found, StoreError};
use crate::inode::record::{self as inode, Inode, InodeId, InodeRef};
use crate::policy_admin::record as policy;
use crate::settings::record::{self as settings, Settings};
use cairn_stripe::{BlockId, Policy, PolicyId};
use std::ops::ControlFlow;
use std::sync::Arc;

/// What a scan calls for each key and value; `Break` ends the scan.
pub type Visit<'a> = &'a mut dyn FnMut(&[u8], &[u8]) -> ControlFlow<()>;

/// A consistent state of the store.
pub trait StoreRead {
    /// The value at `key`.
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError>;

    /// Hands the value at `key` to `look`, if there is one, and says whether there is.
    fn peek(
        &self,
        table: Table,
        key: &[u8],
        look: &mut dyn FnMut(&[u8]),
    ) -> Result<bool, StoreError> {
        let value = self.get(table, key)?;
        if let Some(value) = &value {
            look(value);
        }
        Ok(value.is_some())
    }

    /// Calls `visit` for the keys in `from..to` in ascending byte order; an empty `to` means no end.
    fn scan(
        &self,
        table: Table,
        from: &[u8],
        to: &[u8],
        visit: Visit<'_>,
    ) -> Result<(), StoreError>;

    /// The inode with that id. A backend may keep directories decoded: each path leads through some.
    fn inode(&self, id: InodeId) -> Found<Option<Arc<Inode>>> {
        read_inode(self, id)
    }

    /// The inode of that name in a directory. A backend may know the way to directories.
    fn child(&self, parent: InodeId, name: &str) -> Found<Option<Arc<Inode>>> {
        read_child(self, parent, name)
    }

    /// Hands the inode of that name in a directory to `look`, if there is one, and says whether there is. A backend may
    /// keep records of files.
    fn look_up(
        &self,
        parent: InodeId,
        name: &str,
        look: &mut dyn FnMut(&InodeRef<'_>),
    ) -> Found<bool> {
        let found = self.child(parent, name)?;
        if let Some(inode) = &found {
            look(&InodeRef::from(&**inode));
        }
        Ok(found.is_some())
    }

    /// The first block of a file that has one, with its place in the file.
    fn first_block(&self, file: InodeId) -> Found<(u64, Block)> {
        block_at(self, file, 0)
    }

    /// The policy with that id, which a file or directory has. Nothing of it ever changes but its state.
    fn policy(&self, id: PolicyId) -> Found<Arc<Policy>> {
        read_policy(self, id)
    }

    /// The settings in force, which each call asks for.
    fn settings(&self) -> Found<Arc<Settings>> {
        read_settings(self)
    }
}

/// A state that can be changed.
pub trait StoreTxn: StoreRead {
    /// Sets the value at `key`.
    fn put(&mut self, table: Table, key: &[u8], value: &[u8]) -> Result<(), StoreError>;

    /// Removes `key` if it is there.
    fn delete(&mut self, table: Table, key: &[u8]) -> Result<(), StoreError>;

    /// Removes `key`, which is there: a store may do without looking.
    fn remove(&mut self, table: Table, key: &[u8]) -> Result<(), StoreError> {
        self.delete(table, key)
    }
}

/// The inode with that id as it is recorded.
pub(crate) fn read_inode(
    store: &(impl StoreRead + ?Sized),
    id: InodeId,
) -> Found<Option<Arc<Inode>>> {
    let mut found = None;
    store.peek(Table::Inode, &id.key(), &mut |bytes| found = Some(inode::from_bytes(bytes)))?;
    Ok(found.transpose()?.map(Arc::new))
}

/// The inode of that name in a directory, as it is recorded.
pub(crate) fn read_child(
    store: &(impl StoreRead + ?Sized),
    parent: InodeId,
    name: &str,
) -> Found<Option<Arc<Inode>>> {
    let mut id = None;
    store.peek(Table::Child, &inode::child_key(parent, name), &mut |value| {
        id = Some(inode::child_id(value))
    })?;
    let Some(id) = id.transpose()? else { return Ok(None) };
    let found = store.inode(id)?;
    Ok(Some(found.ok_or_else(|| inode::dangling(id))?))
}

/// The block with that id; an internal block's id finds its group.
pub fn find_block(store: &(impl StoreRead + ?Sized), id: BlockId) -> Found<Option<Block>> {
    let mut found = None;
    store.peek(Table::Block, &block::key(id.group()), &mut |record| {
        found = Some(block::decode(record))
    })?;
    found.transpose()
}

/// The entry at `index` of a file.
pub(crate) fn find_position(
    store: &(impl StoreRead + ?Sized),
    file: InodeId,
    index: u32,
) -> Found<Option<Position>> {
    let mut found = None;
    let key = block::position_key(file, index);
    store.peek(Table::FileBlock, &key, &mut |record| found = Some(block::position_from(record)))?;
    found.transpose()
}

/// The entry at `index` of a file, which must exist.
pub fn position(store: &(impl StoreRead + ?Sized), file: InodeId, index: u32) -> Found<Position> {
    let found = find_position(store, file, index)?;
    Ok(found.ok_or_else(|| StoreError::Corrupt {
        what: "file",
        reason: format!("inode {file} has no block {index}"),
    })?)
}

/// The block at `index` of a file with its offset; the block must exist.
pub fn block_at(
    store: &(impl StoreRead + ?Sized),
    file: InodeId,
    index: u32,
) -> Found<(u64, Block)> {
    let position = position(store, file, index)?;
    let block = find_block(store, position.id)?.ok_or_else(|| StoreError::Corrupt {
        what: "file",
        reason: format!("inode {file} refers to {}, which is not there", position.id),
    })?;
    Ok((position.offset, block))
}

/// The policy with that id as it is recorded.
pub(crate) fn read_policy(store: &(impl StoreRead + ?Sized), id: PolicyId) -> Found<Arc<Policy>> {
    match store.get(Table::Policy, &[id.0])? {
        Some(bytes) => policy::from_bytes(&bytes),
        None => Err(NamespaceError::Store(StoreError::Corrupt {
            what: "reference",
            reason: format!("there is no policy {}", id.0),
        })),
    }
}

/// The settings as they are recorded.
pub(crate) fn read_settings(store: &(impl StoreRead + ?Sized)) -> Found<Arc<Settings>> {
    let mut found = None;
    store.peek(Table::Meta, settings::KEY, &mut |bytes| {
        found = Some(settings::from_bytes(Some(bytes)))
    })?;
    Ok(Arc::new(found.unwrap_or_else(|| settings::from_bytes(None))?))
}
