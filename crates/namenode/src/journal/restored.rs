//! That a namespace was restored from a backup, until somebody has accepted it.
//!
//! Until then no replica is deleted: DataNodes may have what the backup does not know.

use crate::disk::sync_dir;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::Path;

/// The file that says it.
const FILE: &str = "restored";

/// The moment that a namespace has gone back to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Restored {
    /// The last entry that was there.
    pub sequence: u64,
    /// When it was made, ms since the epoch; 0 if that is not known.
    pub entry_ms: u64,
    /// When it was restored, ms since the epoch.
    pub at_ms: u64,
}

/// Writes it durably.
pub(super) fn write(dir: &Path, restored: Restored) -> io::Result<()> {
    let Restored { sequence, entry_ms, at_ms } = restored;
    let mut file = File::create(dir.join(FILE))?;
    write!(file, "sequence={sequence}\nentryTime={entry_ms}\nrestoreTime={at_ms}\n")?;
    file.sync_all()?;
    sync_dir(dir)
}

/// What is there.
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
