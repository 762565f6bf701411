//! A process that ends in the middle of what it does to folders.

use super::{Disk, DiskFile, Folders};
use redb::{DatabaseError, StorageBackend};
use std::cell::Cell;
use std::fs;
use std::io;
use std::path::Path;

/// A process that ends in the middle of a step, which is half done then, or done and not told.
#[derive(Debug)]
pub(crate) struct Crash {
    steps_left: Cell<usize>,
    is_done: bool,
}

impl Crash {
    pub fn after(steps: usize, is_done: bool) -> Crash {
        Crash { steps_left: Cell::new(steps), is_done }
    }

    /// Does a step, or what a crash leaves of it.
    fn step(
        &self,
        whole: impl FnOnce() -> io::Result<()>,
        half: impl FnOnce() -> io::Result<()>,
    ) -> io::Result<()> {
        match self.steps_left.get() {
            0 => {
                if self.is_done { whole() } else { half() }.unwrap();
                self.steps_left.set(usize::MAX);
                Err(io::Error::other("the process has ended"))
            }
            usize::MAX => panic!("it goes on after its end"),
            steps => {
                self.steps_left.set(steps - 1);
                whole()
            }
        }
    }
}

impl Folders for Crash {
    fn copy(&self, from: &Path, to: &Path) -> io::Result<()> {
        let half = || {
            let bytes = fs::read(from)?;
            fs::write(to, &bytes[..bytes.len() / 2])
        };
        self.step(|| Disk.copy(from, to), half)
    }

    fn write(&self, path: &Path, text: &str) -> io::Result<()> {
        self.step(|| Disk.write(path, text), || fs::write(path, &text[..text.len() / 2]))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.step(|| Disk.rename(from, to), || Ok(()))
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.step(|| Disk.remove_file(path), || Ok(()))
    }

    fn remove_folder(&self, path: &Path) -> io::Result<()> {
        let half = || match fs::read_dir(path) {
            Ok(mut files) => files.next().map_or(Ok(()), |file| fs::remove_file(file?.path())),
            Err(_) => Ok(()),
        };
        self.step(|| Disk.remove_folder(path), half)
    }

    fn create_folder(&self, path: &Path) -> io::Result<()> {
        self.step(|| Disk.create_folder(path), || Ok(()))
    }

    fn sync(&self, folder: &Path) -> io::Result<()> {
        self.step(|| Disk.sync(folder), || Ok(()))
    }

    fn create_file(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        Disk.create_file(path)
    }

    fn open_file(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        Disk.open_file(path)
    }

    fn open_database(&self, path: &Path) -> Result<Box<dyn StorageBackend>, DatabaseError> {
        Disk.open_database(path)
    }
}

/// Calls `test` with each place where a process can end, until it says that it has come to the end.
pub(crate) fn each_place(mut test: impl FnMut(&Crash) -> bool) {
    for steps in 0.. {
        if [false, true].into_iter().all(|is_done| test(&Crash::after(steps, is_done))) {
            assert!(steps > 3, "there are more steps than {steps}");
            return;
        }
    }
}
