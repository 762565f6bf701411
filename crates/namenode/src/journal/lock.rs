//! One NameNode at a time has a folder: two would write over each other's log and store.

use super::error::OpenError;
use cairn_net::storage_dir;
use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long a NameNode that is ending may still have the folder.
const PATIENCE: Duration = Duration::from_secs(3);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Locks the folder until the file is closed. Blocks while another NameNode may be ending.
pub(super) fn lock(dir: &Path) -> Result<File, OpenError> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let locked = storage_dir::try_lock(dir);
        match locked.map_err(|source| OpenError::Io { path: dir.to_owned(), source })? {
            Some(file) => return Ok(file),
            None if Instant::now() < deadline => std::thread::sleep(LOOK_EVERY),
            None => return Err(OpenError::Locked { path: dir.to_owned() }),
        }
    }
}
