//! What is done to folders and files where a NameNode puts one state in the place of another. Tests break it off at each step.

use crate::disk::sync_dir;
use std::fs::{self, File};
use std::io;
use std::path::Path;

/// What is done to folders and files, each durable where that is said. Tests break it off.
pub(super) trait Folders {
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
}

/// The file system.
pub(super) struct Disk;

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
}

/// A process that ends at any step.
#[cfg(test)]
pub(super) mod crash;
