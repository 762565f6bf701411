//! A report that is given out page by page.
//!
//! Source: Hadoop 3.5.0 `SnapshotDiffListingInfo`.

use super::compare::{Comparison, Differing, Request, compare, path_below, request, states};
use crate::caller::Caller;
use crate::error::Result;
use crate::inode::InodeId;
use crate::path::{self, Purpose};
use crate::settings;
use crate::snapshot;
use crate::store::StoreRead;

/// One entry of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageEntry {
    /// The directory in which it is, or the modified inode itself.
    pub directory: InodeId,
    /// The inode.
    pub file: InodeId,
    /// Its path.
    pub path: String,
    /// Whether it may be one side of a move.
    pub is_reference: bool,
    /// Where it was moved to.
    pub target: Option<String>,
}

/// Where the next page begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// The directory or file to go on with.
    pub path: String,
    /// How many of its created and deleted entries were sent; -1 if not even itself.
    pub index: i32,
}

impl Cursor {
    /// Whether it is that of the first page.
    pub fn is_first(&self) -> bool {
        self.path.is_empty() && self.index < 0
    }
}

/// One page of a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiffPage {
    /// Modified files and directories.
    pub modified: Vec<PageEntry>,
    /// What is there only later.
    pub created: Vec<PageEntry>,
    /// What was there only earlier.
    pub deleted: Vec<PageEntry>,
    /// Whether the first snapshot that was named is the earlier one.
    pub from_earlier: bool,
    /// Where the next page begins; `None` after the last.
    pub next: Option<Cursor>,
}

/// All that differs, in the order of pages: computed once, so that a page costs what is in it.
#[derive(Debug)]
pub struct DiffListing {
    request: Request,
    /// By path.
    differing: Vec<Differing>,
    len: usize,
}

impl DiffListing {
    /// Compares two snapshots of `path`; an empty name is the current state.
    pub fn new(
        store: &dyn StoreRead,
        caller: &Caller,
        path: &str,
        (from, to): (&str, &str),
    ) -> Result<DiffListing> {
        let request = request(store, caller, path, from, to)?;
        let mut differing = match request.span {
            None => Vec::new(),
            Some(span) => compare(store, request.root, request.scope, span)?.1,
        };
        differing.sort_by(|one, other| one.path.cmp(&other.path));
        let len = differing.iter().map(Differing::len).sum();
        Ok(DiffListing { request, differing, len })
    }

    /// Entries of all pages.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether nothing differs.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether path and names, as they are now, still stand for what was compared. Fails when the caller cannot come to
    /// the path; what is below was looked at for rights when the listing was made.
    pub fn is_of(
        &self,
        store: &dyn StoreRead,
        caller: &Caller,
        path: &str,
        (from, to): (&str, &str),
    ) -> Result<bool> {
        let limits = settings::get(store)?;
        let at = path::resolve(store, &limits, caller, path, Purpose::Use)?;
        Ok(states(store, &at, path, from, to)? == self.request)
    }

    /// The page that begins at `start`. The client pairs what was moved.
    pub fn page(&self, store: &dyn StoreRead, start: &Cursor) -> Result<DiffPage> {
        let Request { root, scope, span, from_earlier, .. } = self.request;
        let mut page = DiffPage {
            modified: Vec::new(),
            created: Vec::new(),
            deleted: Vec::new(),
            from_earlier,
            next: None,
        };
        let Some(span) = span else { return Ok(page) };
        let limit = snapshot::settings(store)?.diff_page.max(1) as usize;
        let comparison = Comparison::new(store, root, scope, span);
        let first: Vec<String> =
            start.path.split('/').filter(|name| !name.is_empty()).map(str::to_owned).collect();
        let before = self.differing.partition_point(|at| at.path < first);
        let mut sent = 0;
        for at in &self.differing[before..] {
            let path = at.path.join("/");
            let below =
                |name: &String| [&at.path[..], std::slice::from_ref(name)].concat().join("/");
            let skip = if at.path == first { start.index } else { -1 };
            let stop = |index: usize| {
                Some(Cursor { path: path.clone(), index: i32::try_from(index).unwrap_or(i32::MAX) })
            };
            if skip < 0 {
                if sent == limit {
                    page.next = Some(Cursor { path, index: -1 });
                    return Ok(page);
                }
                sent += 1;
                page.modified.push(PageEntry {
                    directory: at.id,
                    file: at.id,
                    path: path.clone(),
                    is_reference: at.is_directory,
                    target: None,
                });
            }
            let skip = usize::try_from(skip).unwrap_or(0);
            let created = at.created.iter().map(|entry| (true, entry));
            let deleted = at.deleted.iter().map(|entry| (false, entry));
            for (index, (is_new, (name, id))) in created.chain(deleted).enumerate().skip(skip) {
                if sent == limit {
                    page.next = stop(index);
                    return Ok(page);
                }
                sent += 1;
                let (directory, file, path) = (at.id, *id, below(name));
                if is_new {
                    let was = path_below(&comparison.earlier, comparison.scope, file)?;
                    let is_reference = was.is_some();
                    page.created.push(PageEntry {
                        directory,
                        file,
                        path,
                        is_reference,
                        target: None,
                    });
                } else {
                    let target = comparison.moved_to(file)?.map(|names| names.join("/"));
                    let is_reference = target.is_some();
                    page.deleted.push(PageEntry { directory, file, path, is_reference, target });
                }
            }
        }
        Ok(page)
    }
}
