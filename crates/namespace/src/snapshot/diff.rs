//! What changed between two snapshots, or a snapshot and now.
//!
//! Source: Hadoop 3.5.0 `DirectorySnapshottableFeature#computeDiff`, `SnapshotDiffInfo`.

mod compare;
mod pages;

use crate::caller::Caller;
use crate::error::Result;
use crate::store::StoreRead;
use compare::{compare, request};

pub use pages::{Cursor, DiffListing, DiffPage, PageEntry};

/// What happened to a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Change {
    /// It was made or moved in.
    Create,
    /// It has another content, or names in it have changed.
    Modify,
    /// It was removed or moved out.
    Delete,
    /// It was moved.
    Rename,
}

/// One line of a report; paths are relative to the directory that was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DiffEntry {
    /// What happened.
    pub change: Change,
    /// Where; where it was, if it was moved.
    pub path: String,
    /// Where it is, if it was moved.
    pub target: Option<String>,
}

/// A whole report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DiffReport {
    /// The snapshottable directory.
    pub root: String,
    /// The changes, those of less deep directories first.
    pub entries: Vec<DiffEntry>,
}

/// A report of all that changed below `path` between two snapshots; an empty name is the current state.
pub fn report(
    store: &dyn StoreRead,
    caller: &Caller,
    path: &str,
    from: &str,
    to: &str,
) -> Result<DiffReport> {
    let request = request(store, caller, path, from, to)?;
    let Some(span) = request.span else {
        return Ok(DiffReport { root: path.to_string(), entries: Vec::new() });
    };
    let (mut comparison, mut differing) = compare(store, request.root, request.scope, span)?;
    differing
        .sort_by(|one, other| (one.path.len(), &one.path).cmp(&(other.path.len(), &other.path)));
    let (made, gone) = if request.from_earlier {
        (Change::Create, Change::Delete)
    } else {
        (Change::Delete, Change::Create)
    };
    let mut entries = Vec::new();
    for at in &differing {
        let below = |name: &String| [&at.path[..], std::slice::from_ref(name)].concat().join("/");
        entries.push(DiffEntry { change: Change::Modify, path: at.path.join("/"), target: None });
        for (name, id) in &at.created {
            if !comparison.was_moved(*id)? {
                entries.push(DiffEntry { change: made, path: below(name), target: None });
            }
        }
        for (name, id) in &at.deleted {
            entries.push(match comparison.moved_to(*id)? {
                None => DiffEntry { change: gone, path: below(name), target: None },
                Some(to) => {
                    let (was, is) = (below(name), to.join("/"));
                    let (path, to) = if request.from_earlier { (was, is) } else { (is, was) };
                    DiffEntry { change: Change::Rename, path, target: Some(to) }
                }
            });
        }
    }
    Ok(DiffReport { root: request.root_path, entries })
}
