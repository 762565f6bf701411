//! From path strings to inodes.
//!
//! Source: Hadoop 3.5.0 `FSDirectory#resolvePath`, `INodesInPath`, `DFSUtilClient#isValidName`.

use crate::caller::Caller;
use crate::error::{NamespaceError, Result};
use crate::inode::{self, Inode, InodeId};
use crate::ops;
use crate::perm;
use crate::settings::Settings;
use crate::snapshot::view::View;
use crate::snapshot::{self, DOT_SNAPSHOT, SnapshotId};
use crate::store::StoreRead;
use std::sync::Arc;

/// What a path is resolved for; decides which exception a bad ancestor gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// To make something there: the name must be one that a file may have.
    Create,
    /// Anything else.
    Use,
    /// As `Use`, but a file on the way is told as such, and reserved names are names like others (Hadoop
    /// 3.5.0 `FSDirectory#getINodesInPath`).
    Plain,
}

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

/// Names to a path.
pub fn join(names: &[String]) -> String {
    if names.is_empty() { "/".to_string() } else { format!("/{}", names.join("/")) }
}

/// Whether a new file or directory may have this path.
pub fn is_valid(path: &str) -> bool {
    let Some(rest) = path.strip_prefix('/') else { return false };
    let rest = rest.strip_suffix('/').unwrap_or(rest);
    // NFS asks for the directory above an inode.
    let up = rest.strip_prefix(".reserved/.inodes/").is_some_and(|rest| rest.contains('/'));
    let is_valid = |name: &str| !name.is_empty() && name != "." && !name.contains(':');
    rest.is_empty() || rest.split('/').all(|name| is_valid(name) && (name != ".." || up))
}

/// Whether `path` lies below `ancestor`; both without trailing slashes.
pub fn is_below(path: &str, ancestor: &str) -> bool {
    ancestor == "/" && path != "/"
        || path.strip_prefix(ancestor).is_some_and(|rest| rest.starts_with('/'))
}

/// The first name of all reserved ones.
pub(crate) const RESERVED: &str = ".reserved";

/// Whether the path lies in the namespace's own corner, `/.reserved`.
pub fn is_reserved(path: &str) -> bool {
    path.strip_prefix("/.reserved").is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Whether the path names an inode by its id.
pub fn is_inode_path(path: &str) -> bool {
    path.starts_with("/.reserved/.inodes")
}

/// Whether the path is the one by which superusers reach what is encrypted as it is, and attributes in
/// the space `raw`. Source: Hadoop 3.5.0 `FSDirectory#isReservedRawName(String)`.
pub fn is_raw(path: &str) -> bool {
    path.starts_with("/.reserved/raw")
}

/// The same name by name. Source: Hadoop 3.5.0 `FSDirectory#isReservedRawName(byte[][])`.
fn is_raw_names(path: &str) -> bool {
    let mut names = path.split('/').filter(|name| !name.is_empty());
    names.next() == Some(".reserved") && names.next() == Some("raw")
}

/// Longest path in characters and deepest in names that something may be made at.
/// Source: Hadoop 3.5.0 `HdfsServerConstants#MAX_PATH_LENGTH`, `#MAX_PATH_DEPTH`.
const PATH_LEN_MAX: usize = 8000;
const PATH_DEPTH_MAX: usize = 1000;

/// Fails unless the path begins with a slash.
///
/// Source: Hadoop 3.5.0 `INode#checkAbsolutePath`.
pub fn check_absolute(path: &str) -> Result<()> {
    if path.starts_with('/') {
        return Ok(());
    }
    Err(NamespaceError::Assertion(format!("Absolute path required, but got '{path}'")))
}

pub(crate) fn split(path: &str) -> Result<Vec<String>> {
    check_absolute(path)?;
    Ok(path.split('/').filter(|name| !name.is_empty()).map(str::to_owned).collect())
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

/// The names of a path as [`resolve`] follows them.
pub(crate) fn real_names(store: &dyn StoreRead, path: &str) -> Result<Vec<String>> {
    resolve_reserved(store, split(path)?)
}

/// Follows `path` and checks that the caller may pass the directories on the way.
pub fn resolve(
    store: &dyn StoreRead,
    settings: &Settings,
    caller: &Caller,
    path: &str,
    purpose: Purpose,
) -> Result<Resolved> {
    resolve_for(store, settings, caller, path, purpose, None)
}

/// As [`resolve`], for a caller who means to change something there by a command.
pub(crate) fn resolve_to_change(
    store: &dyn StoreRead,
    settings: &Settings,
    caller: &Caller,
    path: &str,
    purpose: Purpose,
    command: &str,
) -> Result<Resolved> {
    let at = resolve_for(store, settings, caller, path, purpose, Some(command))?;
    if at.snapshot.is_some() {
        return Err(NamespaceError::SnapshotAccessControl(
            "Modification on a read-only snapshot is disallowed".to_string(),
        ));
    }
    Ok(at)
}

fn resolve_for(
    store: &dyn StoreRead,
    settings: &Settings,
    caller: &Caller,
    path: &str,
    purpose: Purpose,
    change: Option<&str>,
) -> Result<Resolved> {
    if purpose == Purpose::Create && !is_valid(path) {
        return Err(NamespaceError::InvalidPath(format!(
            "Invalid path name Invalid file name: {path}"
        )));
    }
    let names = match purpose {
        Purpose::Plain => split(path)?,
        Purpose::Create | Purpose::Use => real_names(store, path)?,
    };
    let is_long = path.chars().count() > PATH_LEN_MAX || names.len() > PATH_DEPTH_MAX;
    if purpose == Purpose::Create && is_long {
        return Err(NamespaceError::Io(format!(
            "Pathname too long.  Limit {PATH_LEN_MAX} characters, {PATH_DEPTH_MAX} levels."
        )));
    }
    let mut resolved = walk(store, names)?;
    resolved.raw = purpose != Purpose::Plain && is_raw_names(path);
    if let Some(command) = change.filter(|_| resolved.raw) {
        perm::check_superuser(settings, caller).map_err(|error| {
            let operation = ops::method_of(command);
            NamespaceError::AccessControl(format!("{error} for operation {operation}"))
        })?;
    }
    perm::check_traverse(settings, caller, &resolved).map_err(|error| match error {
        NamespaceError::ParentNotDirectory(text) if purpose == Purpose::Use => {
            NamespaceError::AccessControl(text)
        }
        error => error,
    })?;
    Ok(resolved)
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

/// Fails for the folder of reserved names, which has no attributes to change.
pub(crate) fn check_not_reserved(path: &str) -> Result<()> {
    if path == "/.reserved" {
        return Err(NamespaceError::InvalidPath(format!("Invalid path name {path}")));
    }
    Ok(())
}

/// Fails if the parent is missing or a file.
///
/// Source: Hadoop 3.5.0 `FSDirectory#verifyParentDir`.
pub fn check_parent_directory(at: &Resolved) -> Result<()> {
    if at.names.len() < 2 {
        return Ok(());
    }
    match at.parent() {
        None => Err(NamespaceError::FileNotFound(format!(
            "Parent directory doesn't exist: {}",
            at.parent_path()
        ))),
        Some(parent) if !parent.is_directory() => Err(NamespaceError::ParentNotDirectory(format!(
            "Parent path is not a directory: {}",
            at.parent_path()
        ))),
        Some(_) => Ok(()),
    }
}

/// Fails if a name is too long or reserved, or its directory full.
pub fn check_limits(
    settings: &Settings,
    parent: &Inode,
    parent_path: &str,
    name: &str,
) -> Result<()> {
    check_room(settings, parent, parent_path, name)?;
    check_reserved_name(name)
}

/// Fails if a name is too long or its directory full.
///
/// Source: Hadoop 3.5.0 `FSDirectory#verifyMaxComponentLength`, `#verifyMaxDirItems`.
pub(crate) fn check_room(
    settings: &Settings,
    parent: &Inode,
    parent_path: &str,
    name: &str,
) -> Result<()> {
    check_name_len(settings, name, parent_path)?;
    let items = parent.directory().map_or(0, |directory| directory.children);
    let max = settings.directory_items_max;
    if items >= max {
        return Err(NamespaceError::MaxDirectoryItems(format!(
            "The directory item limit of {parent_path} is exceeded: limit={max} items={items}"
        )));
    }
    Ok(())
}

/// Source: Hadoop 3.5.0 `FSDirectory#verifyMaxComponentLength`.
pub(crate) fn check_name_len(settings: &Settings, name: &str, parent_path: &str) -> Result<()> {
    let max = settings.component_len_max;
    if max > 0 && name.len() as u64 > max {
        return Err(NamespaceError::PathComponentTooLong(format!(
            "The maximum path component name limit of {name} in directory {parent_path} is \
             exceeded: limit={max} length={}",
            name.len()
        )));
    }
    Ok(())
}

/// Source: Hadoop 3.5.0 `FSDirectory#verifyINodeName`.
pub(crate) fn check_reserved_name(name: &str) -> Result<()> {
    if name == DOT_SNAPSHOT {
        return Err(NamespaceError::HadoopIllegalArgument(format!(
            "\"{DOT_SNAPSHOT}\" is a reserved name."
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_files_may_have() {
        for good in ["/", "/a", "/a/", "/a/b c", "/ä/.x", "/.reserved/.inodes/7/.."] {
            assert!(is_valid(good), "{good}");
        }
        for bad in
            ["", "a", "/a/../b", "/.", "/a//b", "/a:b", "///", "/a/..", "/.reserved/.inodes/.."]
        {
            assert!(!is_valid(bad), "{bad}");
        }
    }

    #[test]
    fn below_means_a_whole_name() {
        assert!(is_below("/a/b", "/a"));
        assert!(is_below("/a", "/"));
        assert!(!is_below("/ab", "/a"));
        assert!(!is_below("/a", "/a"));
        assert!(!is_below("/", "/"));
    }
}
