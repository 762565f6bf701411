//! What comes before anything in a NameNode's folder is opened.

use super::error::OpenError;
use super::{install, lock};
use crate::disk::Folders;
use crate::store::Identity;
use cairn_process::storage_dir;
use std::fs::File;
use std::path::Path;

/// Makes the folder if there is none, keeps others out of it until the file is closed, and has what an earlier process was
/// at come to its end. Returns whose namespace it has, if it has one. Blocks.
pub(super) fn enter(
    disk: &dyn Folders,
    dir: &Path,
    mode: u32,
) -> Result<(File, Option<Identity>), OpenError> {
    let io = |source| OpenError::Io { path: dir.to_owned(), source };
    storage_dir::create(dir).map_err(io)?;
    // Before anything is opened: opening the log cuts off what an entry that was not written whole has left.
    let lock = lock::lock(dir)?;
    install::finish_on(disk, dir)?;
    let version = dir.join("VERSION");
    storage_dir::protect(dir, mode, version.exists());
    Ok((lock, Identity::read(&version)?))
}
