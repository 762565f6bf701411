//! The rollback point of a rolling upgrade: the store as it was when the upgrade was prepared.
//!
//! It lies in the folder `rollback` until the upgrade is finalized. Where several NameNodes keep the namespace each makes
//! one as it comes to the entry that begins the upgrade, and gives it up as it comes to the one that ends it
//! ([`super::replay`]). A start that is told to goes back to it: the store
//! is replaced by the copy, and the log begins behind it. Numbers of inodes, blocks and stamps are never given out
//! twice, so that what was written since cannot be taken for something newer.
//!
//! Tested in `rollback/tests.rs`, at each step.
//!
//! Source: Hadoop 3.5.0 `FSImage#rollingRollback`, `NNStorage` (`IMAGE_ROLLBACK`).

use super::error::OpenError;
use super::log::{Log, LogError, remove_all_segments};
use super::restored;
use crate::disk::{Disk, Folders, free_len, sync_dir};
use crate::store::{Identity, Position, Store};
use cairn_namespace::holds::Upgrade;
use cairn_namespace::query;
use cairn_namespace::store::{StoreError, StoreRead, StoreTxn, Table};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

#[cfg(test)]
mod tests;

/// The folder of the point.
const FOLDER: &str = "rollback";
/// It is being made, or has gone.
const UNFINISHED: &str = "rollback.tmp";
/// Its facts; written last.
const POINT: &str = "point";
/// What becomes of `POINT` when the way back has begun.
const BEGUN: &str = "begun";
/// What the names of the store's files begin with.
const STORE: &str = "namespace.";

/// Where the store says which timeline it is on.
const TIMELINE: &[u8] = b"timeline";
/// Numbers of entries that are left out where an earlier state is gone on from.
const SKIPPED: u64 = 1 << 32;

/// A rolling upgrade that was prepared and is not finalized.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RollbackPoint {
    /// When it was prepared, ms since the epoch.
    pub start_ms: u64,
    /// The last entry of the log before.
    pub sequence: u64,
}

impl From<Upgrade> for RollbackPoint {
    fn from(Upgrade { start_ms, sequence }: Upgrade) -> RollbackPoint {
        RollbackPoint { start_ms, sequence }
    }
}

impl RollbackPoint {
    fn to_text(self) -> String {
        format!("startTime={}\nsequence={}\n", self.start_ms, self.sequence)
    }

    fn from_text(text: &str) -> Option<RollbackPoint> {
        let value = |key: &str| {
            let of = |line: &str| line.strip_prefix(key)?.strip_prefix('=')?.parse().ok();
            text.lines().find_map(of)
        };
        Some(RollbackPoint { start_ms: value("startTime")?, sequence: value("sequence")? })
    }
}

fn error(path: &Path) -> impl FnOnce(io::Error) -> OpenError + '_ {
    move |source| OpenError::Io { path: path.to_owned(), source }
}

fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

fn read_facts(path: &Path) -> io::Result<RollbackPoint> {
    let text = fs::read_to_string(path)?;
    let broken = || io::Error::new(io::ErrorKind::InvalidData, "it does not tell a rollback point");
    RollbackPoint::from_text(&text).ok_or_else(broken)
}

fn store_files(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_name().to_str().is_some_and(|name| name.starts_with(STORE)) {
            found.push(entry.path());
        }
    }
    Ok(found)
}

/// The point that is there, if any. Fails where the way back to it was begun and not ended.
pub(super) fn find(dir: &Path) -> Result<Option<RollbackPoint>, OpenError> {
    let folder = dir.join(FOLDER);
    if exists(&folder.join(BEGUN)) {
        return Err(OpenError::RollbackBegun { path: folder });
    }
    let facts = folder.join(POINT);
    if !exists(&facts) {
        return Ok(None);
    }
    read_facts(&facts).map(Some).map_err(error(&facts))
}

/// Gives the point up unless it is that of the upgrade on which several NameNodes have agreed.
pub(super) fn agree(dir: &Path, upgrade: Option<Upgrade>) -> Result<(), OpenError> {
    let Some(point) = find(dir)? else { return Ok(()) };
    if upgrade.is_some_and(|upgrade| upgrade.start_ms == point.start_ms) {
        return Ok(());
    }
    tracing::info!(
        sequence = point.sequence,
        "the rolling upgrade has ended: its copy is given up"
    );
    remove(dir).map_err(error(dir))
}

/// Makes a point of the store in `dir`, to which nobody may write meanwhile and which has everything up to
/// `point.sequence`. The copy must leave `reserved_len` bytes of the disk.
pub(super) fn make(dir: &Path, point: RollbackPoint, reserved_len: u64) -> io::Result<()> {
    check_room(dir, reserved_len)?;
    let made = make_on(&Disk, dir, point);
    if made.is_err() {
        // What is left of a copy must not keep the disk full.
        let _ = Disk.remove_folder(&dir.join(UNFINISHED));
    }
    made
}

/// A copy that fills the disk would stop the log.
pub(super) fn check_room(dir: &Path, reserved_len: u64) -> io::Result<()> {
    let mut needed = 0;
    for file in store_files(dir)? {
        needed += file.metadata()?.len();
    }
    let free = free_len(dir);
    if needed.saturating_add(reserved_len) > free {
        let why = format!(
            "{}: a copy of the store takes {needed} bytes, {reserved_len} are to stay free, and only {free} are",
            dir.display()
        );
        return Err(io::Error::new(io::ErrorKind::StorageFull, why));
    }
    Ok(())
}

fn make_on(disk: &dyn Folders, dir: &Path, point: RollbackPoint) -> io::Result<()> {
    let (unfinished, folder) = (dir.join(UNFINISHED), dir.join(FOLDER));
    disk.remove_folder(&unfinished)?;
    disk.create_folder(&unfinished)?;
    for file in store_files(dir)? {
        if let Some(name) = file.file_name() {
            disk.copy(&file, &unfinished.join(name))?;
        }
    }
    disk.write(&unfinished.join(POINT), &point.to_text())?;
    disk.sync(&unfinished)?;
    disk.rename(&unfinished, &folder)?;
    disk.sync(dir)
}

/// Gives the point up.
pub(super) fn remove(dir: &Path) -> io::Result<()> {
    remove_on(&Disk, dir)
}

fn remove_on(disk: &dyn Folders, dir: &Path) -> io::Result<()> {
    let (unfinished, folder) = (dir.join(UNFINISHED), dir.join(FOLDER));
    disk.remove_folder(&unfinished)?;
    disk.rename(&folder, &unfinished)?;
    disk.sync(dir)?;
    disk.remove_folder(&unfinished)
}

/// Has a namespace go on behind an earlier state of it, which ends with the entry `last`: with an empty log, with numbers
/// that were not given out since, of entries too, and on a timeline of its own.
pub(super) fn begin_anew(
    dir: &Path,
    identity: &Identity,
    store: &Store,
    last: u64,
) -> Result<(), OpenError> {
    remove_all_segments(dir)?;
    sync_dir(dir).map_err(error(dir))?;
    let last = last + SKIPPED;
    Log::create(dir, identity.namespace_id, last + 1)?;
    let group = store.group() + 1;
    let mut batch = store.begin(group);
    query::skip_numbers(&mut batch).map_err(OpenError::Settings)?;
    let timeline = getrandom::u32().map_err(LogError::Random)?.max(1);
    batch.put(Table::Meta, TIMELINE, &timeline.to_be_bytes())?;
    // Changes of another timeline are never taken for its own.
    let times = store.position().times;
    store.commit(group, Position { sequence: last, chain: Some(timeline), times });
    Ok(store.write_out()?)
}

/// Which of the ways that the history of a namespace has taken this is: 0 until an earlier state was gone on from.
/// Entries of different timelines may have the same numbers.
pub(super) fn timeline(store: &dyn StoreRead) -> Result<u32, StoreError> {
    let value = store.get(Table::Meta, TIMELINE)?;
    let bytes = value.as_deref().and_then(|value| value.try_into().ok());
    Ok(bytes.map_or(0, u32::from_be_bytes))
}

/// Goes back to the point in `dir`, which nobody has open. One that was interrupted is begun anew.
pub(super) fn go_back(dir: &Path, identity: &Identity, cache_len: usize) -> Result<(), OpenError> {
    go_back_on(&Disk, dir, identity, cache_len)
}

fn go_back_on(
    disk: &dyn Folders,
    dir: &Path,
    identity: &Identity,
    cache_len: usize,
) -> Result<(), OpenError> {
    let folder = dir.join(FOLDER);
    let (facts, begun) = (folder.join(POINT), folder.join(BEGUN));
    if exists(&facts) {
        disk.rename(&facts, &begun).map_err(error(&facts))?;
        disk.sync(&folder).map_err(error(&folder))?;
    } else if !exists(&begun) {
        return Err(OpenError::NoRollbackPoint { path: folder });
    }
    let point = read_facts(&begun).map_err(error(&begun))?;
    for file in store_files(dir).map_err(error(dir))? {
        disk.remove_file(&file).map_err(error(&file))?;
    }
    for file in store_files(&folder).map_err(error(&folder))? {
        if let Some(name) = file.file_name() {
            disk.copy(&file, &dir.join(name)).map_err(error(&file))?;
        }
    }
    let store = Store::open(&dir.join("namespace.redb"), cache_len)?;
    begin_anew(dir, identity, &store, point.sequence)?;
    restored::hold(&store, &|holds| holds.upgrade = None)?;
    drop(store);
    disk.sync(dir).map_err(error(dir))?;
    remove_on(disk, dir).map_err(error(&folder))
}
