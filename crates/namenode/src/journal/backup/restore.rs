//! A namespace made of backups, as it was at any moment that they have.
//!
//! The newest snapshot before that moment is written to a new store, and the changes behind it to a new log, which is
//! replayed as at any start. Numbers of inodes, blocks and stamps jump ahead: those that were given out since must not
//! come again, for DataNodes may have replicas of them. `VERSION` comes last: a folder without it is no namespace.

use super::file::{BackupFile, FileError, Header, Kind, is_name, split};
use crate::clock::wall_ms;
use crate::disk::{Disk, sync_dir};
use crate::journal::error::OpenError;
use crate::journal::frame::FrameBuilder;
use crate::journal::log::{Log, LogError};
use crate::journal::recent::{Recent, Stored};
use crate::journal::record::Record;
use crate::journal::replay::replay;
use crate::journal::restored::{self, Restored};
use crate::journal::rollback::begin_anew;
use crate::store::{Identity, Position, Store};
use cairn_namespace::store::{StoreError, StoreTxn, Table};
use cairn_process::storage_dir;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Records that are written to the store at a time.
const RECORDS: usize = 100_000;
/// A segment of the new log is closed when it is longer.
const SEGMENT_LEN: u64 = 8 << 20;

/// How far back to go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Until {
    /// All that the backups have.
    #[default]
    End,
    /// What was done up to then, ms since the epoch.
    Time(u64),
    /// Entries up to that number.
    Entry(u64),
}

/// Why nothing was restored.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// A backup can't be used.
    #[error(transparent)]
    File(#[from] FileError),
    /// A file can't be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// No snapshot is old enough.
    #[error("{}: there is no snapshot from before that", path.display())]
    NoSnapshot {
        /// The folder of the backups.
        path: PathBuf,
    },
    /// Changes are missing.
    #[error("entries from {from} on are missing: the next backup, {}, begins with {found}", path.display())]
    Gap {
        /// The backup behind the gap.
        path: PathBuf,
        /// The first entry that is missing.
        from: u64,
        /// The first that it has.
        found: u64,
    },
    /// The backups have less than was asked for.
    #[error("the backups end with entry {last}")]
    TooNew {
        /// The last entry that they have.
        last: u64,
    },
    /// Backups of several file systems.
    #[error("{}: it is of another file system, {found}", path.display())]
    Mixed {
        /// The backup.
        path: PathBuf,
        /// Whose it is.
        found: String,
    },
    /// There is something where the namespace is to be.
    #[error("{}: the folder is not empty; restore into a new one", path.display())]
    NotEmpty {
        /// The folder.
        path: PathBuf,
    },
    /// The new namespace can't be made.
    #[error(transparent)]
    Open(#[from] OpenError),
}

impl From<StoreError> for RestoreError {
    fn from(error: StoreError) -> RestoreError {
        RestoreError::Open(error.into())
    }
}

impl From<LogError> for RestoreError {
    fn from(error: LogError) -> RestoreError {
        RestoreError::Open(error.into())
    }
}

/// A backup of a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The file.
    pub path: PathBuf,
    /// What it tells of itself.
    pub header: Header,
}

/// The backups in a folder, in the order in which they were made, and why others say nothing of themselves. What is no
/// backup, or was not received whole, has another name.
pub fn list(folder: &Path) -> Result<(Vec<Found>, Vec<FileError>), RestoreError> {
    let io = |source| RestoreError::Io { path: folder.to_owned(), source };
    let (mut found, mut damaged) = (Vec::new(), Vec::new());
    for entry in fs::read_dir(folder).map_err(io)? {
        let (path, name) = entry.map(|entry| (entry.path(), entry.file_name())).map_err(io)?;
        if name.to_str().is_some_and(is_name) {
            match BackupFile::open(&path) {
                Ok(BackupFile { header, .. }) => found.push(Found { path, header }),
                Err(error) => damaged.push(error),
            }
        }
    }
    found.sort_by_key(|found| (found.header.made_ms, found.header.last));
    Ok((found, damaged))
}

/// What was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// The moment that the namespace is of.
    pub restored: Restored,
    /// Records that came from the snapshot.
    pub records: u64,
    /// Entries that came from changes.
    pub entries: u64,
}

/// Makes a namespace in `dir`, which must be empty or missing, of the backups in `folder`. `cache_len` is that of the
/// store, in bytes. Where backups are missing, one that is damaged is named instead. Blocks.
pub fn restore(
    folder: &Path,
    dir: &Path,
    until: Until,
    cache_len: usize,
) -> Result<Done, RestoreError> {
    let (backups, damaged) = list(folder)?;
    restore_of(&backups, folder, dir, until, cache_len).map_err(|error| {
        use RestoreError::{Gap, NoSnapshot, TooNew};
        match (damaged.into_iter().next(), error) {
            (Some(damaged), Gap { .. } | NoSnapshot { .. } | TooNew { .. }) => damaged.into(),
            (_, error) => error,
        }
    })
}

fn restore_of(
    backups: &[Found],
    folder: &Path,
    dir: &Path,
    until: Until,
    cache_len: usize,
) -> Result<Done, RestoreError> {
    let io = |source| RestoreError::Io { path: dir.to_owned(), source };
    let is_before = |header: &Header| match until {
        Until::End => true,
        Until::Time(ms) => header.made_ms <= ms,
        Until::Entry(sequence) => header.last <= sequence,
    };
    let snapshot = backups
        .iter()
        .rfind(|found| found.header.kind == Kind::Snapshot && is_before(&found.header))
        .ok_or_else(|| RestoreError::NoSnapshot { path: folder.to_owned() })?;
    let Header { last, identity, made_ms, .. } = snapshot.header.clone();
    let (changes, gap) = chain(backups, &snapshot.header)?;
    storage_dir::create(dir).map_err(io)?;
    if fs::read_dir(dir).map_err(io)?.next().is_some() {
        return Err(RestoreError::NotEmpty { path: dir.to_owned() });
    }
    let store = Arc::new(Store::open(&dir.join("namespace.redb"), cache_len)?);
    let records = write_records(&store, BackupFile::open(&snapshot.path)?)?;
    let mut entries = Entries::new(dir, &identity, last, until)?;
    let (mut has_come, mut known_ms) = (false, made_ms);
    for found in changes {
        if !entries.take(BackupFile::open(&found.path)?)? {
            has_come = true;
            break;
        }
        known_ms = found.header.made_ms;
    }
    let (count, sequence, entry_ms) = entries.end()?;
    has_come |= match until {
        Until::End => gap.is_none(),
        Until::Time(ms) => gap.is_none() || ms <= known_ms,
        Until::Entry(wanted) => sequence == wanted,
    };
    if !has_come {
        return Err(gap.unwrap_or(RestoreError::TooNew { last: sequence }));
    }
    let recent = Arc::new(Recent::open(dir, identity.namespace_id, 0, Stored::of(&store)?));
    replay(&Disk::shared(), dir, &identity, &store, &recent, 0)?;
    begin_anew(dir, &identity, &store, sequence)?;
    let entry_ms = entry_ms.unwrap_or(made_ms);
    let restored = Restored { sequence, entry_ms, at_ms: wall_ms() };
    restored::hold(&store, &|holds| holds.restored = Some(restored))?;
    store.close();
    identity.write(&dir.join("VERSION")).map_err(OpenError::from)?;
    sync_dir(dir).map_err(io)?;
    Ok(Done { restored, records, entries: count })
}

/// The changes that follow a snapshot without a gap, on its timeline, and the gap behind them.
fn chain<'a>(
    backups: &'a [Found],
    snapshot: &Header,
) -> Result<(Vec<&'a Found>, Option<RestoreError>), RestoreError> {
    let (mut next, mut chain) = (snapshot.last + 1, Vec::new());
    for found in backups.iter().filter(|found| found.header.kind == Kind::Changes) {
        let (header, path) = (&found.header, found.path.clone());
        if header.last < next || header.timeline != snapshot.timeline {
            continue;
        }
        if header.identity != snapshot.identity {
            let found = header.identity.block_pool_id.clone();
            return Err(RestoreError::Mixed { path, found });
        }
        if header.first > next {
            let gap = RestoreError::Gap { path, from: next, found: header.first };
            return Ok((chain, Some(gap)));
        }
        next = header.last + 1;
        chain.push(found);
    }
    Ok((chain, None))
}

fn damaged(path: &Path, what: &str) -> RestoreError {
    let why = io::Error::new(io::ErrorKind::InvalidData, what.to_string());
    RestoreError::Io { path: path.to_owned(), source: why }
}

/// Writes a snapshot's records to an empty store. Returns how many they were.
pub(in crate::journal) fn write_records(
    store: &Store,
    mut snapshot: BackupFile,
) -> Result<u64, RestoreError> {
    let (path, Header { last, chain, times, .. }) =
        (snapshot.path().to_owned(), snapshot.header.clone());
    let mut records = 0;
    let (mut group, mut waiting) = (store.group() + 1, 0);
    let mut batch = store.begin(group);
    while let Some(frame) = snapshot.next_frame()? {
        let mut of_table = frame.entries();
        let Some(name) = of_table.next() else { continue };
        let table = Table::ALL.iter().find(|table| table.name().as_bytes() == name);
        let table = table.ok_or_else(|| damaged(&path, "it has a table that is not known"))?;
        for record in of_table {
            let (key, value) =
                split(record).ok_or_else(|| damaged(&path, "it has a record without a key"))?;
            batch.put(*table, key, value)?;
            records += 1;
            waiting += 1;
        }
        if waiting >= RECORDS {
            store.commit(group, 0);
            store.write_out()?;
            (group, waiting) = (group + 1, 0);
            batch = store.begin(group);
        }
    }
    store.commit(group, Position { sequence: last, chain, times });
    store.write_out()?;
    Ok(records)
}

/// Changes on their way to a new log.
struct Entries {
    log: Log,
    until: Until,
    next: u64,
    count: u64,
    /// When the last one was made.
    last_ms: Option<u64>,
}

impl Entries {
    fn new(dir: &Path, identity: &Identity, last: u64, until: Until) -> Result<Entries, LogError> {
        let log = Log::create(dir, identity.namespace_id, last + 1)?;
        Ok(Entries { log, until, next: last + 1, count: 0, last_ms: None })
    }

    /// Adds those of a backup. False where the moment has come that is wanted.
    fn take(&mut self, mut changes: BackupFile) -> Result<bool, RestoreError> {
        let path = changes.path().to_owned();
        while let Some(frame) = changes.next_frame()? {
            let mut taken = FrameBuilder::new(self.next);
            let mut goes_on = true;
            for (sequence, bytes) in (frame.first..).zip(frame.entries()) {
                if sequence < self.next + taken.count() {
                    continue;
                }
                let Record { entry, .. } = Record::from_bytes(bytes).map_err(|error| {
                    damaged(&path, &format!("entry {sequence} can't be read: {error}"))
                })?;
                goes_on = match self.until {
                    Until::End => true,
                    Until::Time(ms) => entry.now_ms <= ms,
                    Until::Entry(last) => sequence <= last,
                };
                if !goes_on {
                    break;
                }
                self.last_ms = Some(entry.now_ms);
                taken.push(bytes);
            }
            if !taken.is_empty() {
                self.count += taken.count();
                self.next = taken.last() + 1;
                let written = self.log.append(taken, false);
                written.map_err(|source| RestoreError::Io { path: path.clone(), source })?;
            }
            if self.log.segment_len() > SEGMENT_LEN {
                self.log.roll()?;
            }
            if !goes_on {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// How many there were, the last one, and when it was made.
    fn end(mut self) -> Result<(u64, u64, Option<u64>), LogError> {
        self.log.roll()?;
        Ok((self.count, self.next - 1, self.last_ms))
    }
}
