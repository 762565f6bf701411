//! Where inodes are that the current tree does not have any more.

use crate::caller::Caller;
use crate::error::{NamespaceError, Result};
use crate::inode::InodeId;
use crate::path::{self, Purpose};
use crate::settings;
use crate::snapshot::{self, DOT_SNAPSHOT};
use crate::store::StoreRead;

pub use crate::snapshot::kept::path_or_kept;

/// The paths by which snapshots show an inode that is or was at `path`, those of each directory by the names of
/// its snapshots. A snapshot that shows the inode elsewhere is left out.
///
/// Source: Hadoop 3.5.0 `FSDirSnapshotOp#getSnapshotFiles`. Deviation: Hadoop names whatever a snapshot has at
/// that path, also another file.
pub fn paths_in_snapshots(
    store: &dyn StoreRead,
    id: InodeId,
    at_path: &str,
) -> Result<Vec<String>> {
    let limits = settings::get(store)?;
    let mut found = Vec::new();
    for (root, _) in snapshot::roots(store)? {
        let Some(top) = path::of_inode(store, root)? else { continue };
        let top = top.path.trim_end_matches('/').to_string();
        let Some(below) = at_path.strip_prefix(&top).filter(|below| below.starts_with('/')) else {
            continue;
        };
        for snapshot in snapshot::by_names(store, root, None, usize::MAX)? {
            let shown = format!("{top}/{DOT_SNAPSHOT}/{}{below}", snapshot.name);
            match path::resolve(store, &limits, &Caller::system(), &shown, Purpose::Use) {
                Ok(at) if at.target().is_some_and(|inode| inode.id == id) => found.push(shown),
                Err(NamespaceError::Store(error)) => return Err(error.into()),
                // A file is where the path has a directory, say.
                Ok(_) | Err(_) => {}
            }
        }
    }
    Ok(found)
}
