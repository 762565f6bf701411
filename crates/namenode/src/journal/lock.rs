//! One NameNode at a time has a folder: two would write over each other's log and store.

use super::OpenError;
use rustix::fs::{FlockOperation, fcntl_lock, flock};
use rustix::io::Errno;
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

const NAME: &str = "in_use.lock";
/// How long a NameNode that is ending may still have the folder.
const PATIENCE: Duration = Duration::from_secs(3);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Whether there is nothing in a folder but the lock, and what belongs to a file system's root.
pub(super) fn is_alone(dir: &Path) -> bool {
    let known = |name: OsString| name == NAME || name == "lost+found";
    let entries = std::fs::read_dir(dir);
    entries.is_ok_and(|mut all| all.all(|entry| entry.is_ok_and(|entry| known(entry.file_name()))))
}

/// Locks the folder until the file is closed: against other processes as Hadoop does it (`in_use.lock`, a POSIX record
/// lock), and against NameNodes of this process, which such a lock does not see. Blocks while another one may be ending.
///
/// Source: Hadoop 3.5.0 `Storage.StorageDirectory#tryLock`.
pub(super) fn lock(dir: &Path) -> Result<File, OpenError> {
    let path = dir.join(NAME);
    let failed = |source| OpenError::Io { path: path.clone(), source };
    let mut options = OpenOptions::new();
    let file = options.create(true).truncate(false).read(true).write(true).open(&path);
    let file = file.map_err(failed)?;
    let operation = FlockOperation::NonBlockingLockExclusive;
    let deadline = Instant::now() + PATIENCE;
    loop {
        match flock(&file, operation).and_then(|()| fcntl_lock(&file, operation)) {
            Ok(()) => return Ok(file),
            Err(Errno::WOULDBLOCK | Errno::ACCESS) if Instant::now() < deadline => {
                std::thread::sleep(LOOK_EVERY);
            }
            Err(Errno::WOULDBLOCK | Errno::ACCESS) => {
                return Err(OpenError::Locked { path: dir.to_owned() });
            }
            Err(error) => return Err(failed(io::Error::from(error))),
        }
    }
}
