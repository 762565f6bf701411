//! A snapshot of another member takes the place of the namespace in a folder.
//!
//! It is built beside that. One rename decides that it counts; what is moved then is moved on at every start until it is
//! all in its place, so a power cut at any moment leaves the old namespace or the new one. Unlike a restore it gives out no
//! new numbers: the history is the same, and goes on.

use super::backup::file::BackupFile;
use super::backup::restore::{RestoreError, write_records};
use super::error::OpenError;
use super::lock;
use super::log::Log;
use crate::disk::{Disk, Folders, SharedDisk};
use crate::store::{Identity, Store};
use cairn_process::storage_dir;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// It is being built.
const UNFINISHED: &str = "snapshot.tmp";
/// It counts.
const READY: &str = "snapshot";
const VERSION: &str = "VERSION";
/// What the names of the store's files begin with, and the one that is moved last.
const STORE: &str = "namespace.";
const DATABASE: &str = "namespace.redb";
const LOG: &str = "log-";

fn error(path: &Path) -> impl FnOnce(io::Error) -> OpenError + '_ {
    |source| OpenError::Io { path: path.to_owned(), source }
}

/// Makes the namespace in `dir`, which nobody has open, that of the backup in `file`. A namespace of another file system
/// is never replaced. Returns the last entry that it has. Blocks.
pub fn install(dir: &Path, file: &Path, cache_len: usize) -> Result<u64, RestoreError> {
    install_on(&Disk::shared(), dir, file, cache_len)
}

/// The same on another disk.
pub(super) fn install_on(
    disk: &SharedDisk,
    dir: &Path,
    file: &Path,
    cache_len: usize,
) -> Result<u64, RestoreError> {
    storage_dir::create(dir).map_err(error(dir))?;
    let _lock = lock::lock(dir)?;
    finish_on(&**disk, dir)?;
    let backup = BackupFile::open(file)?;
    let (identity, last) = (backup.header.identity.clone(), backup.header.last);
    if Identity::read(&dir.join(VERSION))
        .map_err(OpenError::from)?
        .is_some_and(|old| old != identity)
    {
        return Err(RestoreError::Mixed { path: dir.to_owned(), found: identity.block_pool_id });
    }
    let unfinished = dir.join(UNFINISHED);
    disk.remove_folder(&unfinished).map_err(error(&unfinished))?;
    disk.create_folder(&unfinished).map_err(error(&unfinished))?;
    let store = Store::open_on(&**disk, &unfinished.join(DATABASE), cache_len)?;
    write_records(&store, backup)?;
    store.close();
    Log::create_on(disk, &unfinished, identity.namespace_id, last + 1)?;
    identity.write(&unfinished.join(VERSION)).map_err(OpenError::from)?;
    let ready = || {
        for entry in fs::read_dir(&unfinished)? {
            disk.open_file(&entry?.path())?.sync()?;
        }
        disk.sync(&unfinished)?;
        disk.rename(&unfinished, &dir.join(READY))?;
        disk.sync(dir)
    };
    ready().map_err(error(&unfinished))?;
    finish_on(&**disk, dir)?;
    Ok(last)
}

/// Whether a snapshot counts that is not all in its place yet.
pub(super) fn is_under_way(dir: &Path) -> bool {
    dir.join(READY).is_dir()
}

/// Goes on with what an earlier start was at. Nobody else has the folder.
pub(super) fn finish_on(disk: &dyn Folders, dir: &Path) -> Result<(), OpenError> {
    if !is_under_way(dir) {
        return Ok(());
    }
    let ready = dir.join(READY);
    let moves = |prefix: &str, but: &str| -> io::Result<()> {
        let wanted = names(&ready, prefix)?.into_iter().filter(|name| name != Path::new(but));
        for name in wanted {
            disk.rename(&ready.join(&name), &dir.join(&name))?;
        }
        disk.sync(dir)
    };
    // As long as the store is here, nothing of the new namespace is needed there.
    if ready.join(DATABASE).exists() {
        let replace = || {
            // Until the former store has gone, everything there is former: some of the new one may be there afterwards.
            if dir.join(DATABASE).exists() {
                let former = [names(dir, LOG)?, names(dir, STORE)?].concat();
                for name in former.iter().filter(|name| *name != Path::new(DATABASE)) {
                    disk.remove_file(&dir.join(name))?;
                }
                disk.sync(dir)?;
                disk.remove_file(&dir.join(DATABASE))?;
                disk.sync(dir)?;
            }
            moves(STORE, DATABASE)?;
            moves(DATABASE, "")
        };
        replace().map_err(error(&ready))?;
    }
    moves(LOG, "").map_err(error(&ready))?;
    moves(VERSION, "").map_err(error(&ready))?;
    disk.remove_folder(&ready).map_err(error(&ready))?;
    disk.sync(dir).map_err(error(dir))
}

/// Names in a folder that begin so.
fn names(folder: &Path, prefix: &str) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name();
        if name.to_str().is_some_and(|name| name.starts_with(prefix)) {
            found.push(PathBuf::from(name));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests;
