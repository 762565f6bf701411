//! Files and directories as records, and the names that lead to them.
//!
//! Table `inode`: id (8 bytes, big endian) -> [`Inode`]. Table `child`: parent id, name -> id of the
//! child. Table `garbage`: ids of detached roots. A detached inode's chain of parents ends in
//! [`InodeId::NONE`], an attached one's in [`InodeId::ROOT`].

pub(crate) mod record;

use crate::error::Result;
use crate::store::{StoreRead, StoreTxn, Table, prefix_end};
use record::{IS_DIRECTORY, IS_FILE, VERSION, dangling, entry_bits};
use std::ops::ControlFlow;
use std::sync::Arc;

pub use record::{
    Directory, File, FileRedundancy, Inode, InodeId, InodeRef, Kind, Quota, Writer, child_id,
    child_key, child_key_in, from_bytes,
};

/// The inode with that id.
pub fn get(store: &dyn StoreRead, id: InodeId) -> Result<Option<Inode>> {
    Ok(store.inode(id)?.map(Arc::unwrap_or_clone))
}

/// The inode with that id, to which another record refers.
pub fn expect(store: &dyn StoreRead, id: InodeId) -> Result<Inode> {
    Ok(get(store, id)?.ok_or_else(|| dangling(id))?)
}

/// As [`expect`], as it may be kept decoded.
pub(crate) fn expect_shared(store: &dyn StoreRead, id: InodeId) -> Result<Arc<Inode>> {
    Ok(store.inode(id)?.ok_or_else(|| dangling(id))?)
}

/// Writes an inode.
pub fn put(store: &mut dyn StoreTxn, inode: &Inode) -> Result<()> {
    Ok(store.put(Table::Inode, &inode.id.key(), &crate::encoding::to_record(VERSION, inode))?)
}

/// Removes an inode's record, which is there.
pub fn delete(store: &mut dyn StoreTxn, id: InodeId) -> Result<()> {
    Ok(store.remove(Table::Inode, &id.key())?)
}

/// The child of that name.
pub fn child(store: &dyn StoreRead, parent: InodeId, name: &str) -> Result<Option<InodeId>> {
    let mut found = None;
    store
        .peek(Table::Child, &child_key(parent, name), &mut |value| found = Some(child_id(value)))?;
    found.transpose()
}

/// At most `limit` ids of children whose names follow `after`, in byte order of their names.
pub fn children(
    store: &dyn StoreRead,
    parent: InodeId,
    after: Option<&[u8]>,
    limit: usize,
) -> Result<Vec<InodeId>> {
    Ok(children_and_more(store, parent, after, limit, 0)?.0)
}

/// As [`children`], and how many follow these, counted up to `most`.
pub(crate) fn children_and_more(
    store: &dyn StoreRead,
    parent: InodeId,
    after: Option<&[u8]>,
    limit: usize,
    most: usize,
) -> Result<(Vec<InodeId>, usize)> {
    let prefix = parent.key();
    let mut from = prefix.to_vec();
    if let Some(name) = after {
        from.extend_from_slice(name);
        from.push(0);
    }
    let (mut found, mut more) = (Vec::new(), 0);
    if limit > 0 || most > 0 {
        store.scan(Table::Child, &from, &prefix_end(&prefix), &mut |_, value| {
            match found.len() < limit {
                true => found.push(child_id(value)),
                false => more += 1,
            }
            let is_done = found.len() == limit && more == most;
            if is_done { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
    }
    Ok((found.into_iter().collect::<Result<_>>()?, more))
}

/// At most `limit` children in byte order of their names: key of the entry, id, and whether it is known to be a file.
pub(crate) fn entries(
    store: &dyn StoreRead,
    parent: InodeId,
    limit: usize,
) -> Result<Vec<(Vec<u8>, InodeId, bool)>> {
    let prefix = parent.key();
    let mut found = Vec::new();
    store.scan(Table::Child, &prefix, &prefix_end(&prefix), &mut |key, value| {
        let bits = entry_bits(value);
        found.push(bits.map(|bits| {
            let id = InodeId(bits & !(IS_DIRECTORY | IS_FILE));
            (key.to_vec(), id, bits & IS_FILE != 0)
        }));
        if found.len() < limit { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    found.into_iter().collect()
}

/// Those of the next `limit` children whose names follow `after` that may be directories: all but files, in byte
/// order of their names. Also the name to go on after, unless there are no more.
pub(crate) fn child_directories(
    store: &dyn StoreRead,
    parent: InodeId,
    after: Option<&[u8]>,
    limit: usize,
) -> Result<(Vec<InodeId>, Option<Vec<u8>>)> {
    let prefix = parent.key();
    let mut from = prefix.to_vec();
    if let Some(name) = after {
        from.extend_from_slice(name);
        from.push(0);
    }
    let (mut found, mut last, mut count) = (Vec::new(), None, 0);
    store.scan(Table::Child, &from, &prefix_end(&prefix), &mut |key, value| {
        count += 1;
        match entry_bits(value) {
            Ok(bits) if bits & IS_FILE != 0 => {}
            _ => found.push(child_id(value)),
        }
        if count < limit {
            return ControlFlow::Continue(());
        }
        last = key.get(prefix.len()..).map(<[u8]>::to_vec);
        ControlFlow::Break(())
    })?;
    Ok((found.into_iter().collect::<Result<Vec<_>>>()?, last))
}

/// Makes `inode` the child of its parent under its name.
pub fn link(store: &mut dyn StoreTxn, inode: &Inode) -> Result<()> {
    let kind = if inode.is_directory() { IS_DIRECTORY } else { IS_FILE };
    let key = child_key(inode.parent, &inode.name);
    Ok(store.put(Table::Child, &key, &(inode.id.0 | kind).to_be_bytes())?)
}

/// Takes a name out of the parent, which has it.
pub fn unlink(store: &mut dyn StoreTxn, parent: InodeId, name: &str) -> Result<()> {
    Ok(store.remove(Table::Child, &child_key(parent, name))?)
}

/// The path of an attached inode; `None` if it or a directory above it was deleted.
pub fn path_of(store: &dyn StoreRead, id: InodeId) -> Result<Option<String>> {
    let mut names = Vec::new();
    let mut at = id;
    while at != InodeId::ROOT {
        let Some(inode) = get(store, at)? else { return Ok(None) };
        if inode.parent == InodeId::NONE {
            return Ok(None);
        }
        names.push(inode.name);
        at = inode.parent;
    }
    if names.is_empty() {
        return Ok(Some("/".to_string()));
    }
    Ok(Some(names.iter().rev().fold(String::new(), |path, name| path + "/" + name)))
}
