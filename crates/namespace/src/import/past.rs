//! Snapshots of a namespace that another NameNode has kept until now: its tree goes from the oldest of them on to what is now.

use crate::block::{self, Block, Position};
use crate::counter::{self, Counter};
use crate::error::Result;
use crate::inode::{self, Inode, InodeId};
use crate::snapshot::capture::capture;
use crate::snapshot::held::Accounts;
use crate::snapshot::{self, Snapshot};
use crate::store::{Overlay, StoreTxn};
use crate::xattr::{self, XAttrName, XAttrSpace};

/// Takes a snapshot of a directory as it is. They come in the order of their numbers.
pub fn snapshot(store: &mut dyn StoreTxn, directory: InodeId, taken: &Snapshot) -> Result<()> {
    let mut root = snapshot::root(store, directory)?.unwrap_or_default();
    snapshot::put(store, directory, taken)?;
    root.count += 1;
    root.newest = Some(taken.id);
    snapshot::put_root(store, directory, &root)?;
    counter::set(store, Counter::SnapshotId, u64::from(taken.id.0) + 1)?;
    counter::add(store, Counter::Snapshots, 1)
}

/// Makes changes as a command does: snapshots go on seeing what was there before.
pub fn change(
    store: &mut dyn StoreTxn,
    make: &mut dyn FnMut(&mut dyn StoreTxn) -> Result<()>,
) -> Result<()> {
    let mut overlay = Overlay::new(&*store);
    make(&mut overlay)?;
    capture(&*store, &mut overlay, &mut Vec::new())?;
    let changes = overlay.into_certain_changes()?;
    Ok(changes.write_to(store)?)
}

/// Where an inode is: its directory and its name there; none if it is not known.
pub fn place(
    store: &dyn crate::store::StoreRead,
    id: InodeId,
) -> Result<Option<(InodeId, String)>> {
    Ok(inode::get(store, id)?.map(|inode| (inode.parent, inode.name)))
}

/// Gives an inode the name that it has in its directory.
pub fn link(store: &mut dyn StoreTxn, inode: &Inode) -> Result<()> {
    inode::link(store, inode)
}

/// Takes a name away.
pub fn unlink(store: &mut dyn StoreTxn, directory: InodeId, name: &str) -> Result<()> {
    inode::unlink(store, directory, name)
}

/// Has an inode be at another place, whose name it gets later.
pub fn moved(
    store: &mut dyn StoreTxn,
    id: InodeId,
    (parent, name): (InodeId, &str),
) -> Result<Inode> {
    let mut inode = inode::expect(store, id)?;
    (inode.parent, inode.name) = (parent, name.to_string());
    inode::put(store, &inode)?;
    Ok(inode)
}

/// Has an inode be as this one, with these attributes, and these blocks at their places.
pub fn replace(
    store: &mut dyn StoreTxn,
    inode: &Inode,
    attributes: &[((XAttrSpace, String), Vec<u8>)],
    blocks: &[(Block, u64)],
) -> Result<()> {
    let before = inode::get(store, inode.id)?;
    let named = |((space, name), _): &((XAttrSpace, String), Vec<u8>)| XAttrName {
        space: *space,
        name: name.clone(),
    };
    for (name, _) in xattr::all(store, inode.id)? {
        if !attributes.iter().any(|of| named(of) == name) {
            store.remove(crate::store::Table::XAttr, &xattr::key(inode.id, &name))?;
        }
    }
    for of in attributes {
        store.put(crate::store::Table::XAttr, &xattr::key(inode.id, &named(of)), &of.1)?;
    }
    for (block, offset) in blocks {
        block::put(store, block)?;
        let position = Position { offset: *offset, id: block.id };
        block::put_position(store, inode.id, block.index, position)?;
    }
    let count = before.and_then(|before| Some(before.file()?.block_count)).unwrap_or(0);
    for index in blocks.len() as u64..count {
        block::delete_position(store, inode.id, index as u32)?;
    }
    inode::put(store, inode)
}

/// Removes an inode that has no name any more, and what is below it; blocks stay. Returns what was removed.
pub fn remove(store: &mut dyn StoreTxn, id: InodeId) -> Result<Vec<InodeId>> {
    let (mut waiting, mut removed) = (vec![id], Vec::new());
    while let Some(id) = waiting.pop() {
        let Some(inode) = inode::get(store, id)? else { continue };
        for child in inode::children(store, id, None, usize::MAX)? {
            let name = inode::expect(store, child)?.name;
            inode::unlink(store, id, &name)?;
            waiting.push(child);
        }
        xattr::remove_all(store, id)?;
        for index in 0..inode.file().map_or(0, |file| file.block_count) {
            block::delete_position(store, id, index as u32)?;
        }
        inode::delete(store, id)?;
        removed.push(id);
    }
    Ok(removed)
}

/// Counts in quotas what only snapshots have, once all else is counted.
pub fn count_held(store: &mut dyn StoreTxn) -> Result<()> {
    let mut removed = snapshot::all_removed(store)?;
    removed.dedup();
    Accounts::of(store, &removed)?.charge(store)
}
