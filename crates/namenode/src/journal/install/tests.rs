//! Snapshots in the place of what is there, whatever stops the process meanwhile.

use super::*;
use crate::disk::DiskFile;
use crate::disk::crash::{Crash, each_place};
use crate::journal::follower::Follower;
use crate::journal::offline::check_folder;
use crate::journal::tests::{entry, options};
use crate::journal::{Namesystem, NamesystemOptions};
use cairn_namespace::store::conformance::{Records, dump};
use redb::{DatabaseError, StorageBackend};
use std::cell::RefCell;
use std::fs::File;
use std::io::Write;

fn state(namesystem: &Namesystem) -> Records {
    namesystem.read(|now| dump(now))
}

/// A snapshot of a namespace, in a file, with what it has.
fn snapshot(dir: &Path, file: &Path, entries: u64) -> (Records, u64) {
    let namesystem = Namesystem::open(dir, options()).unwrap();
    (0..entries).for_each(|number| drop(namesystem.submit_blocking(entry(number)).unwrap()));
    let mut out = File::create(file).unwrap();
    namesystem.back_up(None, &mut |piece| out.write_all(&piece).is_ok()).unwrap();
    (state(&namesystem), namesystem.last_sequence())
}

#[test]
fn a_snapshot_takes_the_place_of_nothing_and_of_an_older_state() {
    let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let file = dir.path().join("snapshot-file");
    let leader = dir.path().join("leader");
    for entries in [3, 6] {
        let (was, last) = snapshot(&leader, &file, entries);
        assert_eq!(install(other.path(), &file, 1 << 20).unwrap(), last);
        let follower = Follower::open(other.path(), &options()).unwrap().unwrap();
        assert_eq!(follower.last(), last);
        drop(follower);
        let namesystem = Namesystem::open(other.path(), options()).unwrap();
        assert_eq!((state(&namesystem), namesystem.last_sequence()), (was, last));
        namesystem.close();
    }
    let stranger = tempfile::tempdir().unwrap();
    Namesystem::open(stranger.path(), options()).unwrap().close();
    let refused = install(stranger.path(), &file, 1 << 20);
    assert!(matches!(refused, Err(RestoreError::Mixed { .. })), "{refused:?}");
}

/// A call that comes again is answered, and not carried out once more, also where its answer came by a snapshot that was
/// made before the next checkpoint.
#[test]
fn a_snapshot_has_the_answers_of_the_last_calls() {
    let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let file = dir.path().join("snapshot-file");
    let rarely = NamesystemOptions { checkpoint_entries: 1000, ..options() };
    let leader = Namesystem::open(&dir.path().join("leader"), rarely).unwrap();
    let answers: Vec<_> = (0..4).map(|number| leader.submit_blocking(entry(number))).collect();
    let mut out = File::create(&file).unwrap();
    leader.back_up(None, &mut |piece| out.write_all(&piece).is_ok()).unwrap();
    install(other.path(), &file, 1 << 20).unwrap();
    let namesystem = Namesystem::open(other.path(), options()).unwrap();
    // It removes what is there, and would find nothing now.
    assert_eq!(namesystem.submit_blocking(entry(3)), answers[3]);
    assert_eq!(namesystem.last_sequence(), leader.last_sequence());
    namesystem.close();
}

/// A namespace in a folder, in which a snapshot counts that is not in its place yet. Returns what the snapshot has, and its
/// last entry.
fn begun(dir: &Path) -> (Records, u64) {
    let (leader, new) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let file = leader.path().join("snapshot-file");
    let (was, last) = snapshot(&leader.path().join("leader"), &file, 4);
    snapshot(dir, &leader.path().join("other"), 0);
    install(new.path(), &file, 1 << 20).unwrap();
    let ready = dir.join(READY);
    fs::create_dir(&ready).unwrap();
    for name in fs::read_dir(new.path()).unwrap() {
        let name = name.unwrap();
        if name.path().is_file() {
            fs::copy(name.path(), ready.join(name.file_name())).unwrap();
        }
    }
    (was, last)
}

/// What the next start makes of a folder; an error is what is wrong with it.
fn found(dir: &Path) -> Result<Records, String> {
    let follower = Follower::open(dir, &options()).map_err(|error| error.to_string())?;
    drop(follower.ok_or("there is no namespace")?);
    let problems = check_folder(dir, 1 << 20).map_err(|error| error.to_string())?.problems;
    if !problems.is_empty() {
        return Err(problems.join("; "));
    }
    let namesystem = Namesystem::open(dir, options()).map_err(|error| error.to_string())?;
    let found = state(&namesystem);
    namesystem.close();
    Ok(found)
}

#[test]
fn a_start_goes_on_with_what_was_begun() {
    each_place(|crash| {
        let dir = tempfile::tempdir().unwrap();
        let (was, _) = begun(dir.path());
        let is_whole = finish_on(crash, dir.path()).is_ok();
        if is_under_way(dir.path()) {
            let problems = check_folder(dir.path(), 1 << 20).unwrap().problems;
            assert!(problems[0].contains("not all in its place"), "{problems:?}");
        }
        let found = found(dir.path());
        assert!(found.as_ref() == Ok(&was), "{:?}", found.err());
        assert!(!dir.path().join(READY).exists());
        is_whole
    });
}

/// What would put half of a snapshot in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mistake {
    /// The store comes before its checksums, and over the one that was there.
    StoreFirst,
    /// The snapshot's log stays where it was made.
    LogStays,
}

/// Does it in a wrong way, until it ends.
#[derive(Debug)]
struct Mistaken<'a> {
    mistake: Mistake,
    crash: &'a Crash,
    postponed: RefCell<Vec<(PathBuf, Option<PathBuf>)>>,
}

impl Mistaken<'_> {
    fn does(&self, path: &Path, to: Option<&Path>) -> io::Result<()> {
        match to {
            Some(to) => self.crash.rename(path, to),
            None => self.crash.remove_file(path),
        }
    }

    fn is_left_out(&self, path: &Path, to: Option<&Path>) -> bool {
        let is_log = path.file_name().unwrap().to_str().unwrap().starts_with(LOG);
        match self.mistake {
            // It is named over.
            Mistake::StoreFirst => path.file_name().unwrap() == DATABASE && to.is_none(),
            Mistake::LogStays => is_log && to.is_some(),
        }
    }

    fn takes(&self, path: &Path, to: Option<&Path>) -> io::Result<()> {
        let name = path.file_name().unwrap();
        if self.is_left_out(path, to) {
            return Ok(());
        }
        if self.mistake != Mistake::StoreFirst || !name.to_str().unwrap().starts_with(STORE) {
            return self.does(path, to);
        }
        if name != DATABASE {
            self.postponed.borrow_mut().push((path.to_owned(), to.map(Path::to_owned)));
            return Ok(());
        }
        self.does(path, to)?;
        self.postponed.take().into_iter().try_for_each(|(path, to)| self.does(&path, to.as_deref()))
    }
}

impl Folders for Mistaken<'_> {
    fn copy(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.crash.copy(from, to)
    }

    fn write(&self, path: &Path, text: &str) -> io::Result<()> {
        self.crash.write(path, text)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.takes(from, Some(to))
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.takes(path, None)
    }

    fn remove_folder(&self, path: &Path) -> io::Result<()> {
        self.crash.remove_folder(path)
    }

    fn create_folder(&self, path: &Path) -> io::Result<()> {
        self.crash.create_folder(path)
    }

    fn sync(&self, folder: &Path) -> io::Result<()> {
        self.crash.sync(folder)
    }

    fn create_file(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        self.crash.create_file(path)
    }

    fn open_file(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        self.crash.open_file(path)
    }

    fn open_database(&self, path: &Path) -> Result<Box<dyn StorageBackend>, DatabaseError> {
        self.crash.open_database(path)
    }
}

#[test]
fn half_of_a_snapshot_in_force_is_found() {
    for mistake in [Mistake::StoreFirst, Mistake::LogStays] {
        let mut wrong = Vec::new();
        each_place(|crash| {
            let dir = tempfile::tempdir().unwrap();
            let (was, _) = begun(dir.path());
            let mistaken = Mistaken { mistake, crash, postponed: RefCell::default() };
            let is_whole = finish_on(&mistaken, dir.path()).is_ok();
            match found(dir.path()) {
                Ok(found) if found == was => {}
                Ok(_) => wrong.push("another state".to_string()),
                Err(error) => wrong.push(error),
            }
            is_whole
        });
        assert!(!wrong.is_empty(), "{mistake:?} is not found");
    }
}
