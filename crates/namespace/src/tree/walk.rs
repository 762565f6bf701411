//! Walks over the tree.

use crate::error::Result;
use crate::inode::{self, Inode, InodeId};
use crate::store::StoreRead;

/// Children that a walk fetches at a time.
pub(super) const PAGE: usize = 1000;

/// What is left of a walk: a directory to visit with the storage policy above it, or its children that follow a
/// name, with that in force on it.
enum Ahead {
    Directory(Box<Inode>, u8),
    Children(InodeId, String, u8),
}

/// Calls `visit` for `root` and everything below it, a directory before what is in it, siblings
/// in the order of their names (of a page of them, where there are very many), as Hadoop sums up content.
pub(crate) fn descend(
    store: &dyn StoreRead,
    root: &Inode,
    visit: &mut dyn FnMut(&Inode) -> Result<()>,
) -> Result<()> {
    descend_with_policy(store, root, 0, &mut |inode, _| visit(inode))
}

/// As [`descend`], and says which storage policy is set on an inode or above it; `above` is that above `root`.
pub(crate) fn descend_with_policy(
    store: &dyn StoreRead,
    root: &Inode,
    above: u8,
    visit: &mut dyn FnMut(&Inode, u8) -> Result<()>,
) -> Result<()> {
    let in_force = |inode: &Inode, above| match inode.storage_policy {
        0 => above,
        own => own,
    };
    // No recursion: renames can nest directories deeper than a thread's stack.
    let mut open = Vec::new();
    if root.is_directory() {
        open.push(Ahead::Directory(Box::new(root.clone()), above));
    } else {
        visit(root, in_force(root, above))?;
    }
    while let Some(next) = open.pop() {
        let (directory, after, policy) = match next {
            Ahead::Directory(inode, above) => {
                let policy = in_force(&inode, above);
                visit(&inode, policy)?;
                (inode.id, None, policy)
            }
            Ahead::Children(id, after, policy) => (id, Some(after), policy),
        };
        let ids = inode::children(store, directory, after.as_deref().map(str::as_bytes), PAGE)?;
        let full = ids.len() == PAGE;
        let mut below = Vec::new();
        let mut last = None;
        for id in ids {
            let child = inode::expect(store, id)?;
            last = Some(child.name.clone());
            if child.is_directory() {
                below.push(Ahead::Directory(Box::new(child), policy));
            } else {
                visit(&child, in_force(&child, policy))?;
            }
        }
        if let Some(last) = last.filter(|_| full) {
            open.push(Ahead::Children(directory, last, policy));
        }
        open.extend(below.into_iter().rev());
    }
    Ok(())
}

/// As [`descend`] with the last sibling first, as Hadoop looks for one that refuses, and for directories alone: files
/// are not read.
pub(crate) fn descend_directories(
    store: &dyn StoreRead,
    root: &Inode,
    visit: &mut dyn FnMut(&Inode) -> Result<()>,
) -> Result<()> {
    enum Ahead {
        Directory(InodeId),
        Children(InodeId, Option<Vec<u8>>),
    }
    let mut open = Vec::new();
    let mut enter = |open: &mut Vec<Ahead>, inode: &Inode| -> Result<()> {
        if !inode.is_directory() {
            return Ok(());
        }
        visit(inode)?;
        open.push(Ahead::Children(inode.id, None));
        Ok(())
    };
    enter(&mut open, root)?;
    while let Some(next) = open.pop() {
        match next {
            Ahead::Directory(id) => enter(&mut open, &inode::expect(store, id)?)?,
            Ahead::Children(id, after) => {
                let (found, last) = inode::child_directories(store, id, after.as_deref(), PAGE)?;
                if last.is_some() {
                    open.push(Ahead::Children(id, last));
                }
                open.extend(found.into_iter().map(Ahead::Directory));
            }
        }
    }
    Ok(())
}

/// Calls `visit` for every child of a directory, in the order of their names.
pub(crate) fn each_child(
    store: &dyn StoreRead,
    directory: InodeId,
    visit: &mut dyn FnMut(&Inode) -> Result<()>,
) -> Result<()> {
    let mut after: Option<String> = None;
    loop {
        let ids = inode::children(store, directory, after.as_deref().map(str::as_bytes), PAGE)?;
        let full = ids.len() == PAGE;
        for id in ids {
            let child = inode::expect(store, id)?;
            visit(&child)?;
            after = Some(child.name);
        }
        if !full {
            return Ok(());
        }
    }
}
