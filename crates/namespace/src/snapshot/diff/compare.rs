//! Comparing two states of a directory.
//!
//! What differs is found from the versions that were kept since the earlier snapshot, so that the cost is that of what
//! changed, not of the tree.

use crate::caller::Caller;
use crate::error::{NamespaceError, Result};
use crate::inode::{self, Inode, InodeId};
use crate::path::{self, InSnapshot, Purpose, Resolved};
use crate::perm::{self, Access};
use crate::settings;
use crate::snapshot::listing::not_snapshottable;
use crate::snapshot::version::{self, Kind};
use crate::snapshot::view::View;
use crate::snapshot::{self, DOT_SNAPSHOT, SnapshotId};
use crate::store::{StoreRead, Table};
use std::collections::{BTreeMap, BTreeSet};

/// A file or directory that is in both states and differs.
#[derive(Debug)]
pub(super) struct Differing {
    pub id: InodeId,
    /// Where it was.
    pub path: Vec<String>,
    pub is_directory: bool,
    pub created: Vec<(String, InodeId)>,
    pub deleted: Vec<(String, InodeId)>,
}

impl Differing {
    /// Entries of a listing: itself, and the names in it that differ.
    pub fn len(&self) -> usize {
        1 + self.created.len() + self.deleted.len()
    }
}

/// The earlier and the later state; `None` is the present one.
pub(super) type Span = (SnapshotId, Option<SnapshotId>);

/// The two states and what is known of them.
pub(super) struct Comparison<'a> {
    pub earlier: View<'a>,
    pub later: View<'a>,
    pub scope: InodeId,
    survives: BTreeMap<InodeId, bool>,
}

/// The names from `scope` to an inode, if they lead there.
pub(super) fn path_below(
    view: &View<'_>,
    scope: InodeId,
    id: InodeId,
) -> Result<Option<Vec<String>>> {
    let mut names = Vec::new();
    let mut at = id;
    while at != scope {
        let Some(inode) = inode::get(view, at)? else { return Ok(None) };
        let above = inode.parent;
        if above == InodeId::NONE || inode::child(view, above, &inode.name)? != Some(at) {
            return Ok(None);
        }
        names.push(inode.name);
        at = above;
    }
    names.reverse();
    Ok(Some(names))
}

impl<'a> Comparison<'a> {
    pub fn new(
        store: &'a dyn StoreRead,
        root: InodeId,
        scope: InodeId,
        (earlier, later): Span,
    ) -> Comparison<'a> {
        Comparison {
            earlier: View::new(store, Some((root, earlier))),
            later: View::new(store, later.map(|id| (root, id))),
            scope,
            survives: BTreeMap::new(),
        }
    }

    /// Whether an inode that was in the scope is there still, and every directory above it too.
    fn survives(&mut self, id: InodeId) -> Result<bool> {
        if id == self.scope {
            return Ok(true);
        }
        if let Some(known) = self.survives.get(&id) {
            return Ok(*known);
        }
        let survives = match inode::get(&self.earlier, id)? {
            Some(was) if was.parent != InodeId::NONE && self.survives(was.parent)? => {
                inode::child(&self.later, was.parent, &was.name)? == Some(id)
                    || path_below(&self.later, self.scope, id)?.is_some()
            }
            _ => false,
        };
        self.survives.insert(id, survives);
        Ok(survives)
    }

    /// Where an inode that was in a directory that survives has gone to.
    pub fn moved_to(&self, id: InodeId) -> Result<Option<Vec<String>>> {
        path_below(&self.later, self.scope, id)
    }

    /// Whether a created name is a moved one: its inode was in the scope, in a directory that survives.
    pub fn was_moved(&mut self, id: InodeId) -> Result<bool> {
        let Some(was) = inode::get(&self.earlier, id)? else { return Ok(false) };
        if path_below(&self.earlier, self.scope, id)?.is_none() {
            return Ok(false);
        }
        self.survives(was.parent)
    }

    fn differs(&self, was: &Inode, is: &Inode) -> bool {
        let differs = (&was.owner, &was.group, was.mode, &was.acl, was.storage_policy)
            != (&is.owner, &is.group, is.mode, &is.acl, is.storage_policy);
        let limits = |inode: &Inode| {
            inode.directory().map(|directory| {
                let quota = directory.quota.clone().unwrap_or_default();
                (directory.policy, quota.names_max, quota.space_max)
            })
        };
        let content =
            |inode: &Inode| inode.file().map(|file| (file.redundancy, file.block_size, file.len));
        differs || limits(was) != limits(is) || content(was) != content(is)
    }
}

/// Everything in both states that differs, unordered.
pub(super) fn compare(
    store: &dyn StoreRead,
    root: InodeId,
    scope: InodeId,
    span: Span,
) -> Result<(Comparison<'_>, Vec<Differing>)> {
    let mut comparison = Comparison::new(store, root, scope, span);
    let mut touched: BTreeSet<InodeId> = BTreeSet::new();
    let mut marked: BTreeSet<InodeId> = BTreeSet::new();
    let mut names: BTreeMap<InodeId, BTreeSet<String>> = BTreeMap::new();
    version::between(store, root, span, &mut |kind, key| {
        let owner = version::owner(key);
        match kind {
            Kind::Inode => {
                touched.insert(owner);
            }
            Kind::Child => {
                let name = String::from_utf8_lossy(key.get(8..).unwrap_or_default());
                names.entry(owner).or_default().insert(name.into_owned());
                touched.insert(owner);
            }
            Kind::XAttr => {
                let states = [&comparison.earlier, &comparison.later]
                    .map(|view| view.get(Table::XAttr, key));
                let [was, is] = states;
                if was? != is? {
                    marked.insert(owner);
                    touched.insert(owner);
                }
            }
            Kind::FileBlock => {}
        }
        Ok(())
    })?;
    // A mark is an attribute of the directory in Hadoop, and so differs from what follows it.
    if scope == root && snapshot::any_marked(store, root, span.0, span.1)? {
        marked.insert(root);
        touched.insert(root);
    }
    let mut differing = Vec::new();
    for id in touched {
        let Some(path) = path_below(&comparison.earlier, scope, id)? else { continue };
        if !comparison.survives(id)? {
            continue;
        }
        let (Some(was), Some(is)) =
            (inode::get(&comparison.earlier, id)?, inode::get(&comparison.later, id)?)
        else {
            continue;
        };
        let (mut created, mut deleted) = (Vec::new(), Vec::new());
        for name in names.remove(&id).unwrap_or_default() {
            let before = inode::child(&comparison.earlier, id, &name)?;
            let after = inode::child(&comparison.later, id, &name)?;
            if before != after {
                deleted.extend(before.map(|id| (name.clone(), id)));
                created.extend(after.map(|id| (name, id)));
            }
        }
        let differs = marked.contains(&id) || comparison.differs(&was, &is);
        if differs || !created.is_empty() || !deleted.is_empty() {
            let is_directory = was.is_directory();
            differing.push(Differing { id, path, is_directory, created, deleted });
        }
    }
    Ok((comparison, differing))
}

/// What a caller asked to compare.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub root: InodeId,
    pub root_path: String,
    pub scope: InodeId,
    /// `None` if the states are the same.
    pub span: Option<Span>,
    pub from_earlier: bool,
}

/// What the call names, if the caller may compare it.
///
/// Source: Hadoop 3.5.0 `FSDirSnapshotOp#getSnapshotDiffReport`, `SnapshotManager#diff`.
pub(super) fn request(
    store: &dyn StoreRead,
    caller: &Caller,
    path: &str,
    from: &str,
    to: &str,
) -> Result<Request> {
    let limits = settings::get(store)?;
    let at = path::resolve(store, &limits, caller, path, Purpose::Use)?;
    // Hadoop does not look at the present state, whose name is empty.
    for name in [from, to] {
        check_readable(store, &limits, caller, path, name)?;
    }
    states(store, &at, path, from, to)
}

/// What the names stand for.
pub(super) fn states(
    store: &dyn StoreRead,
    at: &Resolved,
    path: &str,
    from: &str,
    to: &str,
) -> Result<Request> {
    let root = root_of(store, at)?;
    let scope = path::directory(at, path)?.id;
    let root_at = path::of_inode(store, root)?;
    let root_path = root_at.map_or_else(String::new, |at| at.path);
    let named = |name: &str| match name {
        "" => Ok(None),
        name => match snapshot::by_name(store, root, name)? {
            Some(found) => Ok(Some(found.id)),
            None => Err(NamespaceError::Snapshot(format!(
                "Cannot find the snapshot of directory {root_path} with name {name}"
            ))),
        },
    };
    let (one, other) = (named(from)?, named(to)?);
    let age = |id: Option<SnapshotId>| id.map_or(u64::MAX, |id| u64::from(id.0));
    let from_earlier = age(one) < age(other);
    let (earlier, later) = if from_earlier { (one, other) } else { (other, one) };
    let span = earlier.filter(|_| one != other).map(|earlier| (earlier, later));
    Ok(Request { root, root_path, scope, span, from_earlier })
}

/// The snapshottable directory of a path: itself or, if that is allowed, one above it.
///
/// Source: Hadoop 3.5.0 `SnapshotManager#checkAndGetSnapshottableAncestorDir`.
fn root_of(store: &dyn StoreRead, at: &Resolved) -> Result<InodeId> {
    let target = path::directory(at, &at.path);
    if !snapshot::settings(store)?.diff_below_root {
        let id = target?.id;
        let is_root = at.snapshot.is_none() && snapshot::is_snapshottable(store, id)?;
        return if is_root { Ok(id) } else { Err(not_snapshottable(&at.path)) };
    }
    // What a name would be in that no snapshot has is the directory that has them. Other names may follow, and a
    // second `.snapshot` among them means nothing: the way ends at that directory.
    let ends_in_missing = at.names.len() == at.chain.len() + 1;
    let id = match (target, at.snapshot) {
        (Ok(inode), _) => inode.id,
        (Err(_), Some(InSnapshot::Missing(root))) if ends_in_missing => root,
        (Err(_), _) => match at.parent() {
            Some(parent) if parent.is_directory() => parent.id,
            _ => {
                let path = at.parent_path();
                return Err(NamespaceError::FileNotFound(format!(
                    "Directory does not exist: {path}"
                )));
            }
        },
    };
    if id == InodeId::ROOT {
        return Ok(id);
    }
    snapshot::root_above(store, id)?.ok_or_else(|| {
        NamespaceError::Snapshot(format!(
            "The path {} is neither snapshottable nor under a snapshot root!",
            at.path
        ))
    })
}

/// Every directory of a snapshot must be readable, and no sticky bit in it may keep anything from the caller.
///
/// Source: Hadoop 3.5.0 `FSDirSnapshotOp#checkSubtreeReadPermission`.
fn check_readable(
    store: &dyn StoreRead,
    limits: &settings::Settings,
    caller: &Caller,
    path: &str,
    name: &str,
) -> Result<()> {
    if !limits.permissions_enabled {
        return Ok(());
    }
    let path = format!("{}/{DOT_SNAPSHOT}/{name}", path.trim_end_matches('/'));
    let at = path::resolve(store, limits, caller, &path, Purpose::Use)?;
    if name.is_empty() || caller.superuser {
        return Ok(());
    }
    perm::check_access(limits, caller, &at, Access::READ)?;
    let Some(target) = at.target() else { return Ok(()) };
    // Hadoop leaves the snapshot's name out of its refusals.
    let base = at.snapshot.is_some().then(|| at.parent_path());
    let root = (base.as_deref(), target);
    perm::check_below_as(&at.view(store), store, limits, caller, root, Access::READ)
}
