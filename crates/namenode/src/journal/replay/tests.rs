//! Logs whose entries say that they have done something else, or that do not follow the store.

use crate::disk::Disk;
use crate::journal::backup::restore::{RestoreError, Until, restore};
use crate::journal::frame::FrameBuilder;
use crate::journal::log::{self, Log, LogError};
use crate::journal::offline::check_folder;
use crate::journal::record::{self, Known, Record};
use crate::journal::tests::options;
use crate::journal::{Namesystem, NamesystemOptions, OpenError};
use crate::store::Identity;
use cairn_namespace::ops::mkdirs::Mkdirs;
use cairn_namespace::store::conformance::{Records, dump};
use cairn_namespace::{CallId, Caller, Done, Entry, Outcome, Times};
use std::path::Path;

/// Nothing is in the store's file but what was there at the start.
fn far() -> NamesystemOptions {
    NamesystemOptions { checkpoint_entries: 1000, ..options() }
}

fn mkdir(name: &str, number: i32) -> Entry {
    let path = format!("/{name}");
    let command = Mkdirs { path, mode: 0o755.into(), create_parent: true }.into();
    let call = Some(CallId { client_id: [3; 16], call_id: number });
    Entry { now_ms: 1000, elapsed_ms: 1000, caller: Caller::system(), call, command }
}

/// A NameNode that was killed after these directories, and what it had; a new folder with the same start each time.
struct Killed {
    start: tempfile::TempDir,
    entries: Vec<Vec<u8>>,
    first: u64,
    state: Records,
}

fn copy(from: &Path) -> tempfile::TempDir {
    let to = tempfile::tempdir().unwrap();
    for file in std::fs::read_dir(from).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), to.path().join(file.file_name())).unwrap();
    }
    to
}

fn killed(start: &Path, names: &[&str]) -> Killed {
    Namesystem::open(start, far()).unwrap().close();
    let (start, run) = (copy(start), copy(start));
    let namesystem = Namesystem::open(run.path(), far()).unwrap();
    let first = namesystem.last_sequence() + 1;
    for (number, name) in (0..).zip(names) {
        namesystem.submit_blocking(mkdir(name, number)).unwrap();
    }
    let (image, state) = (copy(run.path()), namesystem.read(|now| dump(now)));
    let identity = namesystem.identity().namespace_id;
    let mut entries = Vec::new();
    log::read_all(image.path(), identity, first - 1, &mut |sequence, bytes| {
        entries.extend((sequence >= first).then(|| bytes.to_vec()));
        Ok::<(), LogError>(())
    })
    .unwrap();
    assert_eq!(entries.len(), names.len());
    Killed { start, entries, first, state }
}

impl Killed {
    /// The folder with other entries in the log.
    fn with(&self, entries: &[Vec<u8>]) -> tempfile::TempDir {
        let image = copy(self.start.path());
        let identity = Identity::read(&image.path().join("VERSION")).unwrap().unwrap();
        let none = &mut |_, _: &[u8]| Ok::<(), LogError>(());
        let mut log =
            Log::open(&Disk::shared(), image.path(), identity.namespace_id, self.first - 1, none)
                .unwrap();
        let mut frame = FrameBuilder::new(self.first);
        for entry in entries {
            frame.push(entry);
        }
        log.append(frame, true).unwrap();
        image
    }

    /// What an entry has done, and its command's bytes.
    fn parts(&self, at: usize) -> (Vec<u8>, Done, u32) {
        let Record { entry, known } = Record::from_bytes(&self.entries[at]).unwrap();
        let Known { done, chain, .. } = known.unwrap();
        (entry.to_bytes(), done, chain)
    }

    /// An entry with something else done, that follows entries before it.
    fn forged(&self, at: usize, done: &Done, before: u32) -> Vec<u8> {
        let bytes = record::encode(done);
        record::to_bytes(&self.parts(at).0, &bytes, record::extend(before, &bytes))
    }
}

fn found(image: &Path) -> Records {
    let namesystem = Namesystem::open(image, far()).unwrap();
    namesystem.read(|now| dump(now))
}

fn problems(image: &Path) -> Vec<String> {
    check_folder(image, 1 << 20).unwrap().problems
}

/// Neither clock goes back over a start, whether the last entry is in the store or in the log only, nor does elapsed time
/// pass while nobody serves.
#[test]
fn a_start_goes_on_from_the_times_of_the_last_entry() {
    const YEAR_MS: u64 = 365 * 86_400_000;
    let folder = tempfile::tempdir().unwrap();
    let namesystem = Namesystem::open(folder.path(), far()).unwrap();
    let mut last = namesystem.clock().now();
    for number in 0..2 {
        let (wall_ms, elapsed_ms) = (last.wall_ms + YEAR_MS, last.elapsed_ms + 2 * YEAR_MS);
        last = Times { wall_ms, elapsed_ms };
        let entry =
            Entry { now_ms: wall_ms, elapsed_ms, ..mkdir(["a", "b"][number as usize], number) };
        namesystem.submit_blocking(entry).unwrap();
        let killed = copy(folder.path());
        if number == 1 {
            namesystem.close();
        }
        for image in [killed.path(), folder.path()].iter().take(1 + number as usize) {
            let again = Namesystem::open(image, far()).unwrap().clock().now();
            assert_eq!(again.max(last), again);
            assert!(again.elapsed_ms < last.elapsed_ms + 600_000, "{again:?} after {last:?}");
        }
    }
}

#[test]
fn what_the_log_says_that_was_done_is_written_and_not_decided_again() {
    let folder = tempfile::tempdir().unwrap();
    let killed_a = killed(folder.path(), &["before", "a"]);
    let killed_b = killed(folder.path(), &["before", "b"]);
    let image = killed_a.with(&killed_a.entries);
    assert_eq!(problems(image.path()), [""; 0]);
    assert!(found(image.path()) == killed_a.state);
    // The known mistake: changes that are not those of the command.
    let (_, other, _) = killed_b.parts(1);
    let (.., before) = killed_a.parts(0);
    let entries = [killed_a.entries[0].clone(), killed_a.forged(1, &other, before)];
    let image = killed_a.with(&entries);
    let [problem] = &problems(image.path())[..] else { panic!("one thing is wrong") };
    let sequence = killed_a.first + 1;
    let said = format!("entry {sequence} of the log, Mkdirs: what the log has of the record ");
    assert!(problem.starts_with(&said), "{problem}");
    assert!(problem.contains(" does not come of it"), "{problem}");
    assert!(found(image.path()) == killed_b.state, "a start decides nothing");
    // Another answer.
    let (_, mut other, _) = killed_a.parts(1);
    other.answer = Outcome::Flag(other.answer != Outcome::Flag(true));
    let entries = [killed_a.entries[0].clone(), killed_a.forged(1, &other, before)];
    let image = killed_a.with(&entries);
    assert_eq!(
        problems(image.path()),
        [format!(
            "entry {sequence} of the log, Mkdirs: the answer that the log has does not come of it; did another build \
             write it?"
        )]
    );
}

#[test]
fn a_log_that_does_not_follow_what_was_before_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let killed = killed(folder.path(), &["a", "b", "c"]);
    let [a, b, c] = &killed.entries[..] else { panic!("three entries") };
    let (.., at_b) = killed.parts(1);
    // One is missing, two have changed places, one comes twice, one is of another history.
    let (_, done, _) = killed.parts(2);
    let other = killed.forged(2, &done, at_b ^ 1);
    for (entries, number) in [
        (vec![a.clone(), c.clone()], 1),
        (vec![b.clone(), a.clone(), c.clone()], 0),
        (vec![a.clone(), a.clone()], 1),
        (vec![a.clone(), b.clone(), other], 2),
    ] {
        let sequence = killed.first + number;
        let said = format!(
            "entry {sequence} of the log follows other changes than those that the store has: the two are of \
             different histories; restore the namespace from backups"
        );
        let image = killed.with(&entries);
        assert_eq!(problems(image.path()), std::slice::from_ref(&said));
        let Err(error) = Namesystem::open(image.path(), far()) else { panic!("it opens") };
        assert!(matches!(error, OpenError::OtherHistory { .. }));
        assert_eq!(error.to_string(), said);
    }
}

/// What was left out because it is long, or was never written, is evaluated; what follows must fit it all the same.
#[test]
fn a_command_alone_is_evaluated_among_others() {
    let folder = tempfile::tempdir().unwrap();
    let killed = killed(folder.path(), &["a", "b", "c"]);
    let [a, _, c] = &killed.entries[..] else { panic!("three entries") };
    let (command, ..) = killed.parts(1);
    let image = killed.with(&[a.clone(), command.clone(), c.clone()]);
    assert_eq!(problems(image.path()), [""; 0]);
    assert!(found(image.path()) == killed.state);
    let image = killed.with(&[a.clone(), killed.parts(0).0, c.clone()]);
    let Err(error) = Namesystem::open(image.path(), far()) else { panic!("it opens") };
    assert!(matches!(error, OpenError::OtherHistory { .. }), "{error}");
    assert_eq!(record::to_bytes(&command, &vec![0; (32 << 20) + 1], 7), command);
}

/// A backup of changes that were made to something else than what the snapshot has restores nothing.
#[test]
fn changes_of_another_history_are_not_restored() {
    let (dir, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let namesystem = Namesystem::open(dir.path(), far()).unwrap();
    let keep = |namesystem: &Namesystem, after| {
        let mut bytes = Vec::new();
        let header = namesystem
            .back_up(after, &mut |piece| {
                bytes.extend(piece);
                true
            })
            .unwrap();
        std::fs::write(folder.path().join(header.file_name()), bytes).unwrap();
        crate::journal::backup::After {
            sequence: header.last,
            timeline: header.timeline,
            until: None,
        }
    };
    // Two that go on from one moment in their own ways, the second one from where the first one's snapshot is.
    namesystem.submit_blocking(mkdir("start", 0)).unwrap();
    let other = copy(dir.path());
    namesystem.submit_blocking(mkdir("a", 1)).unwrap();
    let snapshot = keep(&namesystem, None);
    let other = Namesystem::open(other.path(), far()).unwrap();
    other.submit_blocking(mkdir("b", 1)).unwrap();
    other.submit_blocking(mkdir("c", 2)).unwrap();
    keep(&other, Some(snapshot));
    let to = tempfile::tempdir().unwrap();
    let error = restore(folder.path(), to.path(), Until::End, 1 << 20).unwrap_err();
    assert!(
        matches!(error, RestoreError::Open(OpenError::OtherHistory { sequence }) if sequence == snapshot.sequence + 1),
        "{error}"
    );
    assert!(!to.path().join("VERSION").exists());
    // What fits is restored.
    namesystem.submit_blocking(mkdir("c", 2)).unwrap();
    keep(&namesystem, Some(snapshot));
    let to = tempfile::tempdir().unwrap();
    restore(folder.path(), to.path(), Until::End, 1 << 20).unwrap();
    assert_eq!(problems(to.path()), [""; 0]);
}

#[test]
fn damaged_bytes_of_an_entry_never_say_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let killed = killed(folder.path(), &["a"]);
    let bytes = &killed.entries[0];
    let read = |bytes: &[u8]| {
        let Record { entry, known } = Record::from_bytes(bytes).ok()?;
        Some((entry, known.map(|known| (known.chain, known.done))))
    };
    let whole = read(bytes);
    for len in 0..bytes.len() {
        assert_eq!(read(&bytes[..len]), None, "{len} bytes");
    }
    for bit in 0..bytes.len() * 8 {
        let mut bad = bytes.clone();
        bad[bit / 8] ^= 1 << (bit % 8);
        assert_ne!(read(&bad), whole, "bit {bit}");
    }
    let newer = [&[4], &bytes[1..]].concat();
    let error = Record::from_bytes(&newer).unwrap_err();
    assert_eq!(error.to_string(), "record version 4 is unknown");
}
