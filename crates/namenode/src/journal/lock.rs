//! One NameNode at a time has a folder: two would write over each other's log and store.

use super::error::OpenError;
use cairn_process::storage_dir;
use std::fs::File;
use std::path::Path;

/// Locks the folder until the file is closed. Blocks while another NameNode may be ending.
pub(super) fn lock(dir: &Path) -> Result<File, OpenError> {
    let locked = storage_dir::lock(dir);
    locked
        .map_err(|source| OpenError::Io { path: dir.to_owned(), source })?
        .ok_or_else(|| OpenError::Locked { path: dir.to_owned() })
}
