//! Crashes at each step of making a rollback point, of giving it up, and of going back to it.

use super::*;
use crate::journal::tests::{entry, options};
use crate::journal::{Namesystem, NamesystemOptions};
use cairn_namespace::store::Table;
use cairn_namespace::store::conformance::{Records, dump};
use std::cell::Cell;

/// A process that ends in the middle of a step, which is half done then, or done and not told.
struct Crash {
    steps_left: Cell<usize>,
    is_done: bool,
}

impl Crash {
    fn after(steps: usize, is_done: bool) -> Crash {
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
}

/// All but the numbers that are left out on the way back.
fn state(namesystem: &Namesystem) -> Records {
    let mut all = namesystem.read(|now| dump(now));
    all.retain(|(table, ..)| *table != Table::Meta);
    all
}

fn open(dir: &Path) -> Result<std::sync::Arc<Namesystem>, OpenError> {
    Namesystem::open(dir, options())
}

fn open_rolling_back(dir: &Path) -> Result<std::sync::Arc<Namesystem>, OpenError> {
    Namesystem::open(dir, NamesystemOptions { roll_back: true, ..options() })
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(work)
}

/// A closed namespace with six entries in its store, and the last one's number.
fn closed(dir: &Path) -> (Records, RollbackPoint) {
    let namesystem = open(dir).unwrap();
    for number in 0..6 {
        namesystem.submit_blocking(entry(number)).unwrap();
    }
    let sequence = block_on(namesystem.checkpoint()).unwrap();
    (state(&namesystem), RollbackPoint { start_ms: 7, sequence })
}

/// Calls `test` with each place where a process can end, until it says that it has come to the end.
fn each_place(mut test: impl FnMut(&Crash) -> bool) {
    for steps in 0.. {
        if [false, true].into_iter().all(|is_done| test(&Crash::after(steps, is_done))) {
            assert!(steps > 3, "there are more steps than {steps}");
            return;
        }
    }
}

#[test]
fn a_crash_while_a_point_is_made_leaves_it_whole_or_none() {
    let mut made = 0;
    each_place(|crash| {
        let dir = tempfile::tempdir().unwrap();
        let (before, point) = closed(dir.path());
        let ended = make_on(crash, dir.path(), point).is_ok();
        let namesystem = open(dir.path()).unwrap();
        assert!(state(&namesystem) == before);
        let found = namesystem.rollback_point();
        assert!(found.is_none_or(|found| found == point));
        made += usize::from(found.is_some() && !ended);
        // Whether it is there or not, the upgrade can be prepared again.
        let point = block_on(namesystem.make_rollback_point(0)).unwrap();
        assert_eq!(namesystem.rollback_point(), Some(point));
        namesystem.submit_blocking(entry(6)).unwrap();
        assert!(state(&namesystem) != before);
        drop(namesystem);
        assert!(state(&open_rolling_back(dir.path()).unwrap()) == before);
        ended
    });
    assert!(made > 0, "it was there before anybody was told");
}

#[test]
fn a_crash_while_a_point_is_given_up_changes_nothing_else() {
    each_place(|crash| {
        let dir = tempfile::tempdir().unwrap();
        let (_, point) = closed(dir.path());
        make(dir.path(), point, 0).unwrap();
        let namesystem = open(dir.path()).unwrap();
        namesystem.submit_blocking(entry(6)).unwrap();
        let after = state(&namesystem);
        drop(namesystem);
        let ended = remove_on(crash, dir.path()).is_ok();
        let namesystem = open(dir.path()).unwrap();
        assert!(state(&namesystem) == after);
        match namesystem.rollback_point() {
            Some(found) => assert_eq!(found, point),
            None => _ = block_on(namesystem.make_rollback_point(0)).unwrap(),
        }
        namesystem.remove_rollback_point().unwrap();
        assert_eq!(namesystem.rollback_point(), None);
        ended
    });
}

#[test]
fn a_way_back_that_was_broken_off_is_gone_to_its_end_and_nowhere_else() {
    let mut refused = 0;
    each_place(|crash| {
        let dir = tempfile::tempdir().unwrap();
        let (before, point) = closed(dir.path());
        make(dir.path(), point, 0).unwrap();
        let namesystem = open(dir.path()).unwrap();
        namesystem.submit_blocking(entry(6)).unwrap();
        let after = state(&namesystem);
        drop(namesystem);
        let identity = Identity::read(&dir.path().join("VERSION")).unwrap().unwrap();
        let ended = go_back_on(crash, dir.path(), &identity, 1 << 20).is_ok();
        match open(dir.path()) {
            Ok(namesystem) => {
                let found = state(&namesystem);
                let is_back = namesystem.rollback_point().is_none();
                assert!(found == if is_back { before.clone() } else { after });
                if is_back {
                    return ended;
                }
            }
            Err(OpenError::RollbackBegun { .. }) => refused += 1,
            Err(other) => panic!("{other}"),
        }
        assert!(!ended);
        assert!(state(&open_rolling_back(dir.path()).unwrap()) == before);
        assert!(state(&open(dir.path()).unwrap()) == before);
        false
    });
    assert!(refused > 5, "a start without --rollback finds half of it only {refused} times");
}

#[test]
fn a_point_that_would_fill_the_disk_is_not_made() {
    let dir = tempfile::tempdir().unwrap();
    let (before, point) = closed(dir.path());
    let refused = make(dir.path(), point, u64::MAX / 2).unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::StorageFull, "{refused}");
    let namesystem = open(dir.path()).unwrap();
    let refused = block_on(namesystem.make_rollback_point(u64::MAX / 2)).unwrap_err();
    assert!(refused.to_string().contains("are to stay free"), "{refused}");
    assert_eq!(namesystem.rollback_point(), None);
    namesystem.submit_blocking(entry(6)).unwrap();
    assert!(state(&namesystem) != before, "the log goes on");
}
