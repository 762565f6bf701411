//! That a namespace was restored from a backup, until somebody has accepted it.
//!
//! Until then no replica is deleted: DataNodes may have what the backup does not know. It is in the store
//! ([`cairn_namespace::holds`]), and so with whoever leads. Earlier builds have had a file.

use crate::disk::sync_dir;
use crate::store::Store;
use cairn_namespace::holds::{self, Holds};
use cairn_namespace::store::StoreError;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;

use super::outcomes::unread;

pub use cairn_namespace::holds::Restored;

/// The file that has said it.
const FILE: &str = "restored";

/// Changes what is held in a namespace that nobody has open, durably.
pub(super) fn hold(store: &Store, change: &dyn Fn(&mut Holds)) -> Result<(), StoreError> {
    let mut now = holds::get(&store.snapshot()).map_err(unread)?;
    change(&mut now);
    let (group, position) = (store.group() + 1, store.position());
    let mut batch = store.begin(group);
    holds::put(&mut batch, &now).map_err(unread)?;
    store.commit(group, position);
    store.write_out()
}

/// What an earlier build has left there.
pub(super) fn find(dir: &Path) -> io::Result<Option<Restored>> {
    let text = match fs::read_to_string(dir.join(FILE)) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        text => text?,
    };
    let value = |key: &str| {
        let of = |line: &str| line.strip_prefix(key)?.strip_prefix('=')?.parse().ok();
        // Whatever it says, it was restored.
        text.lines().find_map(of).unwrap_or(0)
    };
    let (sequence, entry_ms) = (value("sequence"), value("entryTime"));
    Ok(Some(Restored { sequence, entry_ms, at_ms: value("restoreTime") }))
}

/// Removes it, if it is there.
pub(super) fn remove(dir: &Path) -> io::Result<()> {
    match fs::remove_file(dir.join(FILE)) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        removed => removed.and_then(|()| sync_dir(dir)),
    }
}
