//! The NameNode's own disks: what is done to files and folders there, each step durable where that is said, and what is
//! free. Tests put others in the place of the file system: a process that ends at any step ([`crash`]), a disk from which
//! a power cut takes what was not synced ([`power`]).

#[cfg(test)]
pub(crate) mod crash;
#[cfg(test)]
pub(crate) mod power;

use redb::backends::FileBackend;
use redb::{DatabaseError, StorageBackend};
use std::fmt;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

/// A file that is written to.
pub(crate) trait DiskFile: fmt::Debug + Send + Sync {
    /// Writes all of `bytes` at a place.
    fn write(&self, at: u64, bytes: &[u8]) -> io::Result<()>;
    /// Cuts it off, or adds zeros.
    fn set_len(&self, len: u64) -> io::Result<()>;
    /// Makes all that was written durable, and its length.
    fn sync(&self) -> io::Result<()>;
}

impl DiskFile for File {
    fn write(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.write_all_at(bytes, at)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        File::set_len(self, len)
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }
}

/// What is done to folders and files. They are read where they are.
pub(crate) trait Folders: fmt::Debug {
    /// Copies a file to a new one, durably.
    fn copy(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Writes a new file, durably.
    fn write(&self, path: &Path, text: &str) -> io::Result<()>;
    /// Renames a file or folder.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file.
    fn remove_file(&self, path: &Path) -> io::Result<()>;
    /// Removes a folder with what is in it, if it is there.
    fn remove_folder(&self, path: &Path) -> io::Result<()>;
    /// Makes a folder.
    fn create_folder(&self, path: &Path) -> io::Result<()>;
    /// Makes durable which names are in a folder.
    fn sync(&self, folder: &Path) -> io::Result<()>;
    /// Opens an empty file for writing, a new one or one that is emptied.
    fn create_file(&self, path: &Path) -> io::Result<Box<dyn DiskFile>>;
    /// Opens a file that is there for writing.
    fn open_file(&self, path: &Path) -> io::Result<Box<dyn DiskFile>>;
    /// Opens a file for redb, which keeps others out of it; makes one where none is.
    fn open_database(&self, path: &Path) -> Result<Box<dyn StorageBackend>, DatabaseError>;
}

/// One that threads share.
pub(crate) type SharedDisk = Arc<dyn Folders + Send + Sync>;

/// The file system.
#[derive(Debug)]
pub(crate) struct Disk;

impl Disk {
    /// For threads.
    pub fn shared() -> SharedDisk {
        Arc::new(Disk)
    }
}

impl Folders for Disk {
    fn copy(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::copy(from, to)?;
        File::open(to)?.sync_all()
    }

    fn write(&self, path: &Path, text: &str) -> io::Result<()> {
        fs::write(path, text)?;
        File::open(path)?.sync_all()
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn remove_folder(&self, path: &Path) -> io::Result<()> {
        match fs::remove_dir_all(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            done => done,
        }
    }

    fn create_folder(&self, path: &Path) -> io::Result<()> {
        fs::create_dir(path)
    }

    fn sync(&self, folder: &Path) -> io::Result<()> {
        sync_dir(folder)
    }

    fn create_file(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(File::create(path)?))
    }

    fn open_file(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(File::options().write(true).open(path)?))
    }

    fn open_database(&self, path: &Path) -> Result<Box<dyn StorageBackend>, DatabaseError> {
        let mut options = File::options();
        let file = options.read(true).write(true).create(true).truncate(false).open(path)?;
        Ok(Box::new(FileBackend::new(file)?))
    }
}

/// Makes names in a directory durable.
pub(crate) fn sync_dir(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// Bytes that can be written; none where nobody can look.
pub(crate) fn free_len(dir: &Path) -> u64 {
    match rustix::fs::statvfs(dir) {
        Ok(stat) => stat.f_bavail.saturating_mul(stat.f_frsize),
        Err(error) => {
            tracing::warn!(dir = %dir.display(), %error, "free space is not known");
            0
        }
    }
}
