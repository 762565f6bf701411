//! The inodes along a path, whoever asks.
//!
//! Source: Hadoop 3.5.0 `INodesInPath`.

use super::name::{RESERVED, join, split};
use crate::error::{NamespaceError, Result};
use crate::inode::{self, Inode, InodeId};
use crate::snapshot::view::View;
use crate::snapshot::{self, DOT_SNAPSHOT, SnapshotId};
use crate::store::StoreRead;
use std::sync::Arc;

/// Where a path leaves the current tree for the past.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InSnapshot {
    /// It ends at the `.snapshot` of this snapshottable directory.
    Names(InodeId),
    /// It names a snapshot of this directory that is not there.
    Missing(InodeId),
    /// It leads into, or to, this snapshot of this directory.
    Of(InodeId, SnapshotId),
}

/// A path and the inodes along it, as far as they exist.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// Whether it was given as one below `/.reserved/raw`, by which what is encrypted is seen as it is.
    pub raw: bool,
    /// Whether it goes through a `.snapshot`. The inode at that name and the one at the snapshot's name are
    /// the snapshottable directory as it was.
    pub snapshot: Option<InSnapshot>,
    /// The path without doubled or trailing slashes.
    pub path: String,
    /// Its names; none for the root.
    pub names: Vec<String>,
    /// The inodes from the root down; never empty, at most one longer than `names`.
    pub chain: Vec<Arc<Inode>>,
}

impl Resolved {
    /// The inode that the whole path names.
    pub fn target(&self) -> Option<&Inode> {
        self.chain.get(self.names.len()).map(Arc::as_ref)
    }

    /// The inode that the whole path names, or `FileNotFound` with Hadoop's usual text.
    pub fn existing(&self) -> Result<&Inode> {
        self.target().ok_or_else(|| {
            NamespaceError::FileNotFound(format!("File does not exist: {}", self.path))
        })
    }

    /// The inode of the directory above the last name; `None` for the root or if it is missing.
    pub fn parent(&self) -> Option<&Inode> {
        self.names.len().checked_sub(1).and_then(|index| self.chain.get(index)).map(Arc::as_ref)
    }

    /// The deepest inode that exists, other than the target.
    pub fn ancestor(&self) -> &Inode {
        &self.chain[self.ancestor_index()]
    }

    /// The place of [`Resolved::ancestor`] in the chain.
    pub fn ancestor_index(&self) -> usize {
        (self.chain.len() - 1).min(self.names.len().saturating_sub(1))
    }

    /// The way to the directories above the target only.
    pub fn above(&self) -> Resolved {
        let names = self.names[..self.names.len().saturating_sub(1)].to_vec();
        let chain = self.chain[..self.chain.len().min(names.len() + 1)].to_vec();
        Resolved { raw: self.raw, snapshot: self.snapshot, path: join(&names), names, chain }
    }

    /// What the path sees of the store: a snapshot, or the store itself.
    pub fn view<'a>(&self, store: &'a dyn StoreRead) -> View<'a> {
        match self.snapshot {
            Some(InSnapshot::Of(root, id)) => View::new(store, Some((root, id))),
            _ => View::new(store, None),
        }
    }

    /// The last name; empty for the root.
    pub fn name(&self) -> &str {
        self.names.last().map_or("", String::as_str)
    }

    /// The path of the first `count` names.
    pub fn prefix(&self, count: usize) -> String {
        join(&self.names[..count.min(self.names.len())])
    }

    /// The path of the parent; the root's is the root.
    pub fn parent_path(&self) -> String {
        self.prefix(self.names.len().saturating_sub(1))
    }
}

/// Puts the real path in the place of `/.reserved/.inodes/<id>`, and strips `/.reserved/raw`.
///
/// Source: Hadoop 3.5.0 `FSDirectory#resolveComponents`, `#resolveDotInodesPath`.
fn resolve_reserved(store: &dyn StoreRead, names: Vec<String>) -> Result<Vec<String>> {
    if names.first().is_none_or(|name| name != RESERVED) {
        return Ok(names);
    }
    let rest = |count: usize| names[count..].to_vec();
    match names.get(1).map(String::as_str) {
        Some(".inodes") if names.len() > 2 => {
            let at = || join(&names);
            let id: i64 = names[2].parse().map_err(|_| {
                NamespaceError::FileNotFound(format!("Invalid inode path: {}", at()))
            })?;
            let real = inode::path_of(store, InodeId(id as u64))?.ok_or_else(|| {
                NamespaceError::FileNotFound(format!(
                    "File for given inode path does not exist: {}",
                    at()
                ))
            })?;
            let mut real = split(&real)?;
            if names.get(3).is_some_and(|name| name == "..") {
                real.pop();
                return Ok(real);
            }
            real.extend(rest(3));
            Ok(real)
        }
        Some("raw") if names[2..] != [".reserved"] => Ok(rest(2)),
        _ => Ok(names),
    }
}

/// The names of a path as they are followed.
pub(crate) fn real_names(store: &dyn StoreRead, path: &str) -> Result<Vec<String>> {
    resolve_reserved(store, split(path)?)
}

/// Most paths have no more names.
const USUAL_DEPTH: usize = 16;

/// Follows names from the root without any check, into a snapshot if they lead there.
pub fn walk(store: &dyn StoreRead, names: Vec<String>) -> Result<Resolved> {
    let mut chain = Vec::with_capacity(names.len().min(USUAL_DEPTH) + 1);
    chain.push(inode::expect_shared(store, InodeId::ROOT)?);
    for (place, name) in names.iter().enumerate() {
        let at = &chain[chain.len() - 1];
        if !at.is_directory() {
            break;
        }
        if name == DOT_SNAPSHOT && snapshot::is_snapshottable(store, at.id)? {
            let path = join(&names);
            let snapshot = enter(store, &names[place + 1..], &mut chain)?;
            return Ok(Resolved { raw: false, snapshot: Some(snapshot), path, names, chain });
        }
        match store.child(at.id, name)? {
            Some(inode) => chain.push(inode),
            None => break,
        }
    }
    Ok(Resolved { raw: false, snapshot: None, path: join(&names), names, chain })
}

/// Follows a path without any check of rights.
pub(crate) fn follow(store: &dyn StoreRead, path: &str) -> Result<Resolved> {
    walk(store, real_names(store, path)?)
}

/// Goes on from a snapshottable directory, the last in `chain`, with the names behind `.snapshot`.
///
/// Source: Hadoop 3.5.0 `INodesInPath#resolve`.
fn enter(
    store: &dyn StoreRead,
    names: &[String],
    chain: &mut Vec<Arc<Inode>>,
) -> Result<InSnapshot> {
    let root = chain[chain.len() - 1].id;
    let found = match names.first() {
        Some(name) => snapshot::by_name(store, root, name)?,
        None => None,
    };
    // Where no snapshot is named, rights are those of the newest one.
    let newest = || Ok::<_, NamespaceError>(snapshot::root(store, root)?.and_then(|r| r.newest));
    let seen = match &found {
        Some(found) => Some(found.id),
        None => newest()?,
    };
    let view = View::new(store, seen.map(|id| (root, id)));
    let was = inode::expect(&view, root)?;
    chain.pop();
    let (Some(found), Some((_, below))) = (found, names.split_first()) else {
        chain.push(Arc::new(was));
        let is_list = names.is_empty();
        return Ok(if is_list { InSnapshot::Names(root) } else { InSnapshot::Missing(root) });
    };
    chain.push(Arc::new(was.clone()));
    chain.push(Arc::new(Inode { name: DOT_SNAPSHOT.to_string(), ..was.clone() }));
    chain.push(Arc::new(Inode { name: found.name, mtime: found.mtime, ..was }));
    for (place, name) in below.iter().enumerate() {
        let at = &chain[chain.len() - 1];
        if !at.is_directory() {
            break;
        }
        // One that has left this directory since can have got snapshots of its own.
        if name == DOT_SNAPSHOT && snapshot::is_snapshottable(store, at.id)? {
            return enter(store, &below[place + 1..], chain);
        }
        let Some(id) = inode::child(&view, at.id, name)? else { break };
        let mut inode = inode::expect(&view, id)?;
        // Nobody writes what is past.
        if let Some(file) = inode.file_mut() {
            file.writer = None;
        }
        chain.push(Arc::new(inode));
    }
    Ok(InSnapshot::Of(root, found.id))
}

/// The way to an inode; `None` if it, or a directory above it, was deleted.
pub fn of_inode(store: &dyn StoreRead, id: InodeId) -> Result<Option<Resolved>> {
    let mut chain = Vec::new();
    let mut at = id;
    loop {
        let Some(inode) = store.inode(at)? else { return Ok(None) };
        at = inode.parent;
        let is_root = inode.id == InodeId::ROOT;
        chain.push(inode);
        if is_root {
            break;
        }
        if at == InodeId::NONE {
            return Ok(None);
        }
    }
    chain.reverse();
    let names: Vec<String> = chain.iter().skip(1).map(|inode| inode.name.clone()).collect();
    Ok(Some(Resolved { raw: false, snapshot: None, path: join(&names), names, chain }))
}

/// The directory at a path, or Hadoop's complaint.
///
/// Source: Hadoop 3.5.0 `INodeDirectory#valueOf`.
pub(crate) fn directory<'a>(at: &'a Resolved, path: &str) -> Result<&'a Inode> {
    match at.target() {
        None => Err(NamespaceError::FileNotFound(format!("Directory does not exist: {path}"))),
        Some(inode) if !inode.is_directory() => {
            Err(NamespaceError::PathIsNotDirectory(format!("`{path}': Is not a directory")))
        }
        Some(inode) => Ok(inode),
    }
}
