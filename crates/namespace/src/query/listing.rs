//! Pages of directories.

use crate::caller::Caller;
use crate::encryption;
use crate::error::{NamespaceError, Result};
use crate::inode::{self, InodeId};
use crate::path::{self, InSnapshot, Purpose, Resolved};
use crate::perm::{self, Access};
use crate::settings;
use crate::snapshot;
use crate::status::{FileStatus, Listing};
use crate::store::StoreRead;
use crate::{policy_admin, storage_policy};
use std::sync::Arc;

/// Entries behind a page that are counted, if it is not the first.
const COUNTED: usize = 256;

/// A page of the ids of children, and how many entries are left, see [`Listing::remaining`].
pub(super) fn children_page(
    store: &dyn StoreRead,
    directory: InodeId,
    total: u64,
    resumed: &[u8],
    limit: usize,
) -> Result<(Vec<InodeId>, u64)> {
    let after = (!resumed.is_empty()).then_some(resumed);
    let counted = if after.is_some() { COUNTED } else { 1 };
    let (ids, more) = inode::children_and_more(store, directory, after, limit, counted)?;
    let remaining = match more as u64 {
        more if (more as usize) < counted => more,
        more => total.saturating_sub(ids.len() as u64).max(more),
    };
    Ok((ids, remaining))
}

/// What a listing finds at a path.
pub(super) enum Listed {
    /// Nothing is there, or all that there is to list.
    Whole(Option<Listing>),
    /// A directory, and the name after which its listing goes on; empty for the start.
    Directory(Resolved, Vec<u8>),
}

/// What there is to list at a path for a caller.
///
/// Source: Hadoop 3.5.0 `FSDirStatAndListingOp#getListingInt`.
pub(super) fn open_listing(
    store: &dyn StoreRead,
    caller: &Caller,
    path: &str,
    start_after: &[u8],
    limit: usize,
) -> Result<Listed> {
    let settings = settings::get(store)?;
    let at = path::resolve(store, &settings, caller, path, Purpose::Use)?;
    if let Some(InSnapshot::Names(root)) = at.snapshot {
        let names = snapshot::listing::list_names(store, &at, root, start_after, limit)?;
        return Ok(Listed::Whole(Some(names)));
    }
    if at.names.last().is_some_and(|name| name == snapshot::DOT_SNAPSHOT) {
        let above = at.above();
        path::directory(&above, &above.path)?;
        return Err(snapshot::listing::not_snapshottable(&above.path));
    }
    let view = at.view(store);
    let Some(target) = at.target() else { return Ok(Listed::Whole(None)) };
    if !target.is_directory() {
        let mut status = FileStatus::of(&view, &at)?;
        if let Some(status) = &mut status {
            Arc::make_mut(&mut status.inode).name.clear();
        }
        return Ok(Listed::Whole(
            status.map(|status| Listing { entries: vec![status], remaining: 0 }),
        ));
    }
    perm::check_access(&settings, caller, &at, Access::READ_EXECUTE)?;
    let resumed = start_of(&view, start_after)?;
    Ok(Listed::Directory(at, resumed))
}

/// At most `limit` entries of a directory whose names follow `start_after` (empty for the first
/// page); a file lists itself with an empty name. `None` if nothing is there.
///
/// Source: Hadoop 3.5.0 `FSDirStatAndListingOp#getListing`.
pub fn get_listing(
    store: &dyn StoreRead,
    caller: &Caller,
    path: &str,
    start_after: &[u8],
    limit: usize,
) -> Result<Option<Listing>> {
    let (mut at, resumed) = match open_listing(store, caller, path, start_after, limit)? {
        Listed::Whole(listing) => return Ok(listing),
        Listed::Directory(at, resumed) => (at, resumed),
    };
    let view = at.view(store);
    let store = &view;
    let Some(target) = at.target() else { return Ok(None) };
    let total = target.directory().map_or(0, |directory| directory.children);
    let (ids, remaining) = children_page(store, target.id, total, &resumed, limit)?;
    let zone = encryption::Below::read(store, &at.chain, at.raw)?;
    let mut entries = Vec::with_capacity(ids.len());
    for id in ids {
        let child = inode::expect(store, id)?;
        // As [`FileStatus::of`], with nothing copied.
        at.names.push(String::new());
        at.chain.push(Arc::new(child));
        let policy = policy_admin::effective(store, &at)?;
        // Also what a striped file ignores.
        let storage_policy = storage_policy::set_above(&at.chain);
        at.names.pop();
        let Some(inode) = at.chain.pop() else { continue };
        let snapshottable = inode.is_directory() && snapshot::is_snapshottable(store, inode.id)?;
        let encryption = match inode.directory() {
            Some(directory) => zone.of_directory(directory.is_zone),
            None => zone.of_file(store, inode.id)?,
        };
        entries.push(FileStatus { inode, policy, storage_policy, snapshottable, encryption });
    }
    Ok(Some(Listing { entries, remaining }))
}

/// The name after which a listing goes on; clients may name it by its inode.
///
/// Source: Hadoop 3.5.0 `FSDirStatAndListingOp#getListingInt`.
fn start_of(store: &dyn StoreRead, start_after: &[u8]) -> Result<Vec<u8>> {
    let path = std::str::from_utf8(start_after).unwrap_or_default();
    if !path.starts_with("/.reserved/") {
        return Ok(start_after.to_vec());
    }
    match path::real_names(store, path) {
        Ok(mut names) => Ok(names.pop().unwrap_or_default().into_bytes()),
        Err(NamespaceError::Store(error)) => Err(error.into()),
        Err(_) => {
            Err(NamespaceError::ListingStartNotFound(format!("Can't find startAfter {path}")))
        }
    }
}
