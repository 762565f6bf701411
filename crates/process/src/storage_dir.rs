//! The folder of a server: one server at a time has it, and others cannot read it.
//!
//! Source: Hadoop 3.5.0 `Storage.StorageDirectory`.

use rustix::fs::{FlockOperation, fcntl_lock, flock};
use rustix::io::Errno;
use std::ffi::OsString;
use std::fs::{File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// The file that is locked, as in Hadoop.
const LOCK: &str = "in_use.lock";

/// How long a server that is ending may still have a folder.
const PATIENCE: Duration = Duration::from_secs(3);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Locks a folder until the file is closed: against other processes as Hadoop does it, by a POSIX record lock, and
/// against servers of this process, which such a lock does not see. `None` if another server has it.
///
/// Source: Hadoop 3.5.0 `Storage.StorageDirectory#tryLock`.
pub fn try_lock(dir: &Path) -> io::Result<Option<File>> {
    let mut options = OpenOptions::new();
    let file = options.create(true).truncate(false).read(true).write(true).open(dir.join(LOCK))?;
    let operation = FlockOperation::NonBlockingLockExclusive;
    match flock(&file, operation).and_then(|()| fcntl_lock(&file, operation)) {
        Ok(()) => Ok(Some(file)),
        Err(Errno::WOULDBLOCK | Errno::ACCESS) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Locks a folder as [`try_lock`] does. Blocks for a few seconds while another server, which may be ending, has it.
pub fn lock(dir: &Path) -> io::Result<Option<File>> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match try_lock(dir)? {
            None if Instant::now() < deadline => std::thread::sleep(LOOK_EVERY),
            found => return Ok(found),
        }
    }
}

/// Makes a folder, and those above it that are missing, unless it is there. A power cut does not take its name then: what is
/// synced in a folder is lost with the folder.
pub fn create(dir: &Path) -> io::Result<()> {
    let is_named = |dir: &&Path| !dir.as_os_str().is_empty();
    let missing: Vec<_> =
        dir.ancestors().filter(is_named).take_while(|dir| !dir.exists()).collect();
    std::fs::create_dir_all(dir)?;
    missing.iter().try_for_each(|made| sync_name(made))?;
    if missing.is_empty() {
        // Whoever has made it may have come no further. Where nobody may look this is all that can be done.
        let _ = sync_name(dir);
    }
    Ok(())
}

/// Makes durable that a folder has its name.
fn sync_name(dir: &Path) -> io::Result<()> {
    let parent = dir.parent().filter(|parent| !parent.as_os_str().is_empty());
    File::open(parent.unwrap_or(Path::new(".")))?.sync_all()
}

/// Gives a folder the permission bits of `mode`. One that is taken for the first time and has other things in it stays
/// as it is: it may have been named by mistake.
pub fn protect(dir: &Path, mode: u32, is_formatted: bool) {
    if (is_formatted || is_empty(dir))
        && let Err(error) = std::fs::set_permissions(dir, Permissions::from_mode(mode))
    {
        tracing::warn!(dir = %dir.display(), %error, "others may read a server's folder");
    }
}

/// Whether there is nothing in a folder but its lock, and what belongs to the root of a file system.
fn is_empty(dir: &Path) -> bool {
    let known = |name: OsString| name == LOCK || name == "lost+found";
    let entries = std::fs::read_dir(dir);
    entries.is_ok_and(|mut all| all.all(|entry| entry.is_ok_and(|entry| known(entry.file_name()))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn one_at_a_time_has_a_folder() {
        let dir = tempfile::tempdir().unwrap();
        let lock = try_lock(dir.path()).unwrap();
        assert!(lock.is_some());
        assert!(try_lock(dir.path()).unwrap().is_none());
        drop(lock);
        assert!(try_lock(dir.path()).unwrap().is_some());
        assert!(try_lock(&dir.path().join("nowhere")).is_err());
    }

    /// That names are durable is seen by `interop/cuts`.
    #[test]
    fn folders_are_made_with_those_above_them() {
        let dir = tempfile::tempdir().unwrap();
        let wanted = dir.path().join("one/two/three");
        create(&wanted).unwrap();
        assert!(wanted.is_dir());
        create(&wanted).unwrap();
        create(Path::new(".")).unwrap();
        fs::write(dir.path().join("file"), b"").unwrap();
        assert!(create(&dir.path().join("file/inner")).is_err());
        assert!(create(&dir.path().join("file")).is_err());
    }

    #[test]
    fn a_folder_is_protected_unless_it_is_first_taken_with_other_things_in_it() {
        let dir = tempfile::tempdir().unwrap();
        let mode = || fs::metadata(dir.path()).unwrap().permissions().mode() & 0o7777;
        fs::create_dir(dir.path().join("lost+found")).unwrap();
        let _lock = try_lock(dir.path()).unwrap();
        protect(dir.path(), 0o700, false);
        assert_eq!(mode(), 0o700);
        fs::write(dir.path().join("mine"), b"x").unwrap();
        protect(dir.path(), 0o755, false);
        assert_eq!(mode(), 0o700);
        protect(dir.path(), 0o750, true);
        assert_eq!(mode(), 0o750);
    }
}
