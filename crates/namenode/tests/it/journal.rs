//! What survives: kills, torn and damaged logs, calls that come again after a restart.
//!
//! A kill is a copy of the directory while the namespace is open and idle. Cuts and flipped bits in the
//! copy stand for what a power cut or a bad disk leaves.

use cairn_namenode::journal::{
    Durability, LogError, Namesystem, NamesystemOptions, OpenError, SubmitError,
};
use cairn_namespace::ops::delete::Delete;
use cairn_namespace::ops::mkdirs::Mkdirs;
use cairn_namespace::ops::set_owner::SetOwner;
use cairn_namespace::store::conformance::{self, Records};
use cairn_namespace::{CallId, Caller, Command, Entry, Outcome, Settings, query};
use std::fs;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

fn root() -> Caller {
    Caller { user: "root".into(), groups: vec![], superuser: true, ..Caller::default() }
}

pub fn entry(command: impl Into<Command>) -> Entry {
    Entry { now_ms: 1_000, elapsed_ms: 1_000, caller: root(), call: None, command: command.into() }
}

pub fn mkdir(number: usize) -> Entry {
    entry(Mkdirs { path: format!("/{number:04}"), mode: 0o755.into(), create_parent: true })
}

/// Nothing but the log is durable between checkpoints, which are far apart.
pub fn options() -> NamesystemOptions {
    NamesystemOptions {
        cache_len: 1 << 20,
        checkpoint_interval: Duration::from_secs(3600),
        ..NamesystemOptions::default()
    }
}

pub fn open(dir: &Path) -> Arc<Namesystem> {
    open_with(dir, options())
}

pub fn open_with(dir: &Path, options: NamesystemOptions) -> Arc<Namesystem> {
    Namesystem::open(dir, options).unwrap()
}

pub fn open_error(dir: &Path) -> OpenError {
    match Namesystem::open(dir, options()) {
        Ok(_) => panic!("the namespace opens"),
        Err(error) => error,
    }
}

pub fn names(namesystem: &Namesystem) -> Vec<String> {
    let listing = namesystem.read(|now| query::get_listing(now, &root(), "/", b"", 10_000));
    listing.unwrap().unwrap().entries.into_iter().map(|entry| entry.inode.name.clone()).collect()
}

pub fn numbered(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("{number:04}")).collect()
}

pub fn copy(from: &Path) -> tempfile::TempDir {
    let to = tempfile::tempdir().unwrap();
    for file in fs::read_dir(from).unwrap() {
        let file = file.unwrap();
        // A folder has a copy of the store at most, which is not of this moment.
        if file.path().is_file() {
            fs::copy(file.path(), to.path().join(file.file_name())).unwrap();
        }
    }
    to
}

pub fn segments(dir: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = fs::read_dir(dir)
        .unwrap()
        .map(|file| file.unwrap().path())
        .filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with("log-"))
        .collect();
    found.sort();
    found
}

/// All tables, for comparing stores.
fn dump(namesystem: &Namesystem) -> Records {
    namesystem.read(|now| conformance::dump(now))
}

/// Where the entries of a segment end; behind that there may be zeros.
pub fn end_of(log: &Path) -> u64 {
    let bytes = fs::read(log).unwrap();
    let end = frames(&bytes).last().map_or(SEGMENT_HEADER_LEN, |frame| frame.end);
    assert!(bytes[end..].iter().all(|byte| *byte == 0));
    end as u64
}

pub const SEGMENT_HEADER_LEN: usize = 32;

/// Where the frames of a segment are.
pub fn frames(bytes: &[u8]) -> Vec<Range<usize>> {
    const FRAME_HEADER_LEN: usize = 25;
    let (mut at, mut found) = (SEGMENT_HEADER_LEN, Vec::new());
    while bytes[at..].starts_with(b"CRNF") {
        let payload_len = bytes[at + 8..].first_chunk().map(|len| u32::from_le_bytes(*len));
        let begin = at;
        at += FRAME_HEADER_LEN + payload_len.unwrap() as usize;
        found.push(begin..at);
    }
    found
}

/// Makes directories one by one, and returns an image of the kill after them with the end of the
/// log before each and after the last.
fn killed_after(count: usize) -> (tempfile::TempDir, Vec<u64>) {
    let dir = tempfile::tempdir().unwrap();
    let namesystem = open(dir.path());
    let log = &segments(dir.path())[0];
    let mut lens = vec![end_of(log)];
    for number in 0..count {
        namesystem.submit_blocking(mkdir(number)).unwrap();
        lens.push(end_of(log));
    }
    (copy(dir.path()), lens)
}

#[test]
fn a_kill_loses_nothing_acknowledged() {
    let dir = tempfile::tempdir().unwrap();
    let namesystem = open(dir.path());
    for number in 0..50 {
        namesystem.submit_blocking(mkdir(number)).unwrap();
    }
    let image = copy(dir.path());
    let again = open(image.path());
    assert_eq!(names(&again), numbered(50));
    assert_eq!(dump(&again), dump(&namesystem));
    assert_eq!(again.identity(), namesystem.identity());
    again.submit_blocking(mkdir(50)).unwrap();
    drop(again);
    assert_eq!(names(&open(image.path())), numbered(51));
}

#[test]
fn a_log_torn_at_any_byte_leaves_a_prefix() {
    let (image, lens) = killed_after(3);
    let whole = fs::read(&segments(image.path())[0]).unwrap();
    // From the middle of the first directory's frame to the end.
    for len in lens[0] + 1..=lens[3] {
        // Where the file ends, or where it was to have zeros for what comes next.
        for room in [0, 300] {
            let torn = copy(image.path());
            let left = [&whole[..len as usize], &vec![0; room]].concat();
            fs::write(&segments(torn.path())[0], left).unwrap();
            let ends = lens[1..].iter().map(|end| *end as usize);
            // The last bytes of an entry may be zeros as well.
            let is_whole = |end: usize| {
                let lost = whole[..end].iter().skip(len as usize);
                lost.len() <= room && lost.clone().all(|byte| *byte == 0)
            };
            let kept = ends.filter(|end| is_whole(*end)).count();
            let again = open(torn.path());
            assert_eq!(names(&again), numbered(kept), "{len} bytes and {room}");
            // What comes next takes the place of what was torn.
            again.submit_blocking(mkdir(kept)).unwrap();
            drop(again);
            assert_eq!(names(&open(torn.path())), numbered(kept + 1), "{len} bytes and {room}");
        }
    }
}

/// Only the last segment has room for what comes next: in any other one, what is no entry is damage.
#[tokio::test]
async fn a_segment_that_has_ended_holds_nothing_but_entries() {
    let dir = tempfile::tempdir().unwrap();
    let namesystem = open(dir.path());
    for number in 0..3 {
        namesystem.submit(mkdir(number)).await.unwrap();
        namesystem.roll_log().await.unwrap();
    }
    namesystem.submit(mkdir(3)).await.unwrap();
    let image = copy(dir.path());
    let mut kept = segments(image.path());
    let last = kept.pop().unwrap();
    assert_eq!(kept.len(), 3);
    let len = |log: &Path| fs::metadata(log).unwrap().len();
    assert!(kept.iter().all(|log| len(log) == end_of(log)));
    assert!(len(&last) > end_of(&last));
    assert_eq!(names(&open(image.path())), numbered(4));
}

#[test]
fn a_torn_tail_that_holds_garbage_is_cut() {
    let (image, lens) = killed_after(3);
    let log = segments(image.path())[0].clone();
    let mut bytes = fs::read(&log).unwrap();
    for at in lens[2]..lens[3] {
        bytes[at as usize] ^= 0x5a;
    }
    bytes.extend_from_slice(&[0; 5000]);
    fs::write(&log, bytes).unwrap();
    assert_eq!(names(&open(image.path())), numbered(2));
}

#[test]
fn damage_before_acknowledged_entries_refuses_to_start() {
    let (image, lens) = killed_after(4);
    let whole = fs::read(&segments(image.path())[0]).unwrap();
    for at in lens[1]..lens[2] {
        let damaged = copy(image.path());
        let mut bytes = whole.clone();
        bytes[at as usize] ^= 1;
        fs::write(&segments(damaged.path())[0], bytes).unwrap();
        match open_error(damaged.path()) {
            OpenError::Log(LogError::Damaged { sequence, offset, .. }) => {
                // The first entry put the settings in force.
                assert_eq!((sequence, offset), (3, lens[1]), "byte {at}");
            }
            other => panic!("byte {at}: {other}"),
        }
    }
}

#[test]
fn without_syncs_damage_cuts_the_log() {
    let dir = tempfile::tempdir().unwrap();
    let relaxed = NamesystemOptions { durability: Durability::PageCache, ..options() };
    let namesystem = Namesystem::open(dir.path(), relaxed).unwrap();
    let log = segments(dir.path())[0].clone();
    let mut lens = Vec::new();
    for number in 0..5 {
        namesystem.submit_blocking(mkdir(number)).unwrap();
        lens.push(fs::metadata(&log).unwrap().len() as usize);
    }
    let image = copy(dir.path());
    assert_eq!(names(&open(copy(image.path()).path())), numbered(5));
    // A power cut may lose any page that was never synced, also one before others that it kept.
    let log = segments(image.path())[0].clone();
    let mut bytes = fs::read(&log).unwrap();
    bytes[lens[2] + 9] ^= 1;
    fs::write(&log, bytes).unwrap();
    assert_eq!(names(&open(image.path())), numbered(3));
}

#[test]
fn a_log_that_is_missing_or_foreign_refuses_to_start() {
    let (image, _) = killed_after(2);
    let missing = copy(image.path());
    fs::remove_file(&segments(missing.path())[0]).unwrap();
    assert!(matches!(open_error(missing.path()), OpenError::Log(LogError::Gap { .. })));
    let (other, _) = killed_after(1);
    let foreign = copy(image.path());
    fs::copy(&segments(other.path())[0], &segments(foreign.path())[0]).unwrap();
    assert!(matches!(open_error(foreign.path()), OpenError::Log(LogError::Namespace { .. })));
    let nobodys = copy(image.path());
    fs::remove_file(nobodys.path().join("VERSION")).unwrap();
    assert!(matches!(open_error(nobodys.path()), OpenError::NoVersion { .. }));
}

#[test]
fn a_format_that_was_cut_short_begins_anew() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join(format!("log-{:020}", 1)), b"CAIRN").unwrap();
    let namesystem = open(dir.path());
    namesystem.submit_blocking(mkdir(0)).unwrap();
    assert_eq!(names(&namesystem), numbered(1));
}

/// Another NameNode may have the folder once the first is closed, though some task of it still knows the namespace.
#[test]
fn nothing_is_written_once_the_next_may_have_the_folder() {
    let dir = tempfile::tempdir().unwrap();
    let namesystem = open(dir.path());
    for number in 0..300 {
        namesystem.submit_blocking(mkdir(number)).unwrap();
    }
    namesystem.close();
    let files = |dir: &Path| -> Vec<(PathBuf, Vec<u8>)> {
        let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
        let mut files: Vec<_> =
            entries.map(|path| (path.clone(), fs::read(path).unwrap())).collect();
        files.sort();
        files
    };
    let next = open(dir.path());
    assert_eq!(names(&next), numbered(300));
    next.close();
    let closed = files(dir.path());
    drop(namesystem);
    drop(next);
    assert!(files(dir.path()) == closed, "the last to go has written");
}

#[test]
fn checkpoints_shorten_the_log() {
    let dir = tempfile::tempdir().unwrap();
    let often = NamesystemOptions { checkpoint_entries: 10, segment_len: 1, ..options() };
    let namesystem = Namesystem::open(dir.path(), often).unwrap();
    for number in 0..95 {
        namesystem.submit_blocking(mkdir(number)).unwrap();
    }
    // They go on beside the calls.
    let deadline = Instant::now() + Duration::from_secs(30);
    while segments(dir.path()).len() > 2 || dir.path().join(format!("log-{:020}", 1)).exists() {
        assert!(Instant::now() < deadline, "{:?}", segments(dir.path()));
        std::thread::sleep(Duration::from_millis(1));
    }
    // The end of the log may be lost if the store has it durably.
    drop(namesystem);
    let kept = segments(dir.path());
    assert_eq!(kept.len(), 1, "{kept:?}");
    let log = segments(dir.path()).pop().unwrap();
    let bytes = fs::read(&log).unwrap();
    fs::write(&log, &bytes[..end_of(&log) as usize - 1]).unwrap();
    let again = open(dir.path());
    assert_eq!(names(&again), numbered(95));
    again.submit_blocking(mkdir(95)).unwrap();
    drop(again);
    assert_eq!(names(&open(dir.path())), numbered(96));
}

/// The log's end is lost and the store has it: the start begins a log behind it, and is killed before the old one is
/// gone.
#[test]
fn a_start_that_replaces_the_log_can_be_killed() {
    let dir = tempfile::tempdir().unwrap();
    let namesystem = open(dir.path());
    for number in 0..3 {
        namesystem.submit_blocking(mkdir(number)).unwrap();
    }
    drop(namesystem);
    let old = segments(dir.path()).pop().unwrap();
    let cut = fs::read(&old).unwrap();
    let cut = &cut[..end_of(&old) as usize - 1];
    fs::write(&old, cut).unwrap();
    drop(open(dir.path()));
    assert!(!old.exists());
    fs::write(&old, cut).unwrap();
    let again = open(dir.path());
    assert_eq!(names(&again), numbered(3));
    again.submit_blocking(mkdir(3)).unwrap();
    drop(again);
    assert_eq!(names(&open(dir.path())), numbered(4));
}

#[test]
fn a_repeated_call_gets_its_first_outcome_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let namesystem = open(dir.path());
    namesystem.submit_blocking(mkdir(0)).unwrap();
    let call = Some(CallId { client_id: [3; 16], call_id: 12 });
    let delete = Delete { path: "/0000".into(), recursive: true };
    let delete = Entry { call, ..entry(delete) };
    let done = Outcome::Removed { done: true, more: false };
    assert_eq!(namesystem.submit_blocking(delete.clone()), Ok(done.clone()));
    namesystem.submit_blocking(mkdir(0)).unwrap();
    let image = copy(dir.path());
    let again = open(image.path());
    assert_eq!(again.submit_blocking(delete), Ok(done));
    assert_eq!(names(&again), numbered(1));
}

#[test]
fn the_same_calls_are_forgotten_before_and_after_a_restart() {
    let settings = || Settings { retry_entries_max: 3, ..Settings::default() };
    let few = || NamesystemOptions { settings: settings(), ..options() };
    let dir = tempfile::tempdir().unwrap();
    let namesystem = open_with(dir.path(), few());
    let remove = |namesystem: &Namesystem, number: i32| {
        let call = Some(CallId { client_id: [3; 16], call_id: number });
        let delete = Delete { path: format!("/{number:04}"), recursive: true };
        let outcome = namesystem.submit_blocking(Entry { call, ..entry(delete) }).unwrap();
        matches!(outcome, Outcome::Removed { done: true, .. })
    };
    for number in 0..5 {
        namesystem.submit_blocking(mkdir(number)).unwrap();
        assert!(remove(&namesystem, number as i32));
    }
    let image = copy(dir.path());
    let again = open_with(image.path(), few());
    assert_eq!(dump(&again), dump(&namesystem));
    for namesystem in [&namesystem, &again] {
        assert_eq!([4, 3, 2].map(|number| remove(namesystem, number)), [true; 3]);
        assert_eq!([0, 1].map(|number| remove(namesystem, number)), [false; 2]);
        assert!(!remove(namesystem, 2), "it made room");
    }
    assert_eq!(dump(&again), dump(&namesystem));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_callers_share_the_log() {
    let dir = tempfile::tempdir().unwrap();
    let namesystem = open(dir.path());
    let mut callers = Vec::new();
    for caller in 0..20 {
        let namesystem = namesystem.clone();
        callers.push(tokio::spawn(async move {
            for number in 0..20 {
                namesystem.submit(mkdir(caller * 20 + number)).await.unwrap();
                let refused = entry(Mkdirs {
                    path: format!("/none/{number}"),
                    mode: 0o755.into(),
                    create_parent: false,
                });
                let error = namesystem.submit(refused).await.unwrap_err();
                assert!(matches!(error, SubmitError::Refused(_)));
            }
        }));
    }
    for caller in callers {
        caller.await.unwrap();
    }
    let image = copy(dir.path());
    let again = tokio::task::spawn_blocking(move || {
        let again = open(image.path());
        assert_eq!(names(&again), numbered(400));
        dump(&again)
    });
    assert_eq!(again.await.unwrap(), dump(&namesystem));
    namesystem.close();
    assert_eq!(namesystem.submit(mkdir(0)).await, Err(SubmitError::Stopped));
}

#[test]
fn settings_change_at_a_start_and_long_calls_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    drop(open(dir.path()));
    let settings = Settings { component_len_max: 3, ..Settings::default() };
    let strict = NamesystemOptions { settings, ..options() };
    let namesystem = Namesystem::open(dir.path(), strict).unwrap();
    assert!(matches!(namesystem.submit_blocking(mkdir(0)), Err(SubmitError::Refused(_))));
    let nobody = entry(Delete { path: format!("/{}", "x".repeat(2 << 20)), recursive: true });
    assert!(namesystem.submit_blocking(nobody).is_ok(), "nothing is there, and nothing is logged");
    let long = entry(SetOwner { path: "/".into(), owner: Some("x".repeat(2 << 20)), group: None });
    assert!(matches!(namesystem.submit_blocking(long), Err(SubmitError::Refused(_))));
    let unknown = Settings { default_policy: "none".into(), ..Settings::default() };
    drop(namesystem);
    let wrong = NamesystemOptions { settings: unknown, ..options() };
    let error = Namesystem::open(dir.path(), wrong).err().unwrap();
    assert!(matches!(error, OpenError::Settings(_)), "{error}");
}

#[tokio::test]
async fn a_log_that_fails_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let options =
        NamesystemOptions { segment_len: 1, checkpoint_entries: 1, ..NamesystemOptions::default() };
    let namesystem = Namesystem::open(dir.path(), options).unwrap();
    namesystem.submit(mkdir(0)).await.unwrap();
    let quiet = tokio::time::timeout(Duration::from_millis(50), namesystem.failed()).await;
    assert!(quiet.is_err(), "{quiet:?}");
    // The next segment has no place to be made in. It is only wanted once the last checkpoint has ended, however long
    // its disk takes.
    let gone = tempfile::tempdir().unwrap();
    fs::rename(dir.path(), gone.path().join("namespace")).unwrap();
    let last = Instant::now() + Duration::from_secs(60);
    let mut number = 1;
    while namesystem.submit(mkdir(number)).await != Err(SubmitError::Stopped) {
        number += 1;
        assert!(Instant::now() < last, "it goes on without a log");
    }
    let why = tokio::time::timeout(Duration::from_secs(10), namesystem.failed()).await.unwrap();
    assert!(why.contains("log-"), "{why}");
}

#[tokio::test]
async fn a_namespace_that_is_closed_has_not_failed() {
    let dir = tempfile::tempdir().unwrap();
    let namesystem = open(dir.path());
    let closing = Arc::clone(&namesystem);
    tokio::task::spawn_blocking(move || closing.close()).await.unwrap();
    let quiet = tokio::time::timeout(Duration::from_millis(50), namesystem.failed()).await;
    assert!(quiet.is_err(), "{quiet:?}");
}

/// Opens and reads all of a namespace: its content, or `None` where the damage was noticed.
fn read_all(dir: &Path) -> Option<Records> {
    std::panic::catch_unwind(|| Some(dump(&*Namesystem::open(dir, options()).ok()?))).ok()?
}

/// Makes a namespace of some folders, closes it, and returns its content.
fn fill(dir: &Path, options: NamesystemOptions) -> Records {
    // Enough that a good part of the store's file is in use.
    let quick = NamesystemOptions { durability: Durability::PageCache, ..options };
    let namesystem = Namesystem::open(dir, quick).unwrap();
    for number in 0..2500 {
        namesystem.submit_blocking(mkdir(number)).unwrap();
    }
    namesystem.close();
    drop(namesystem);
    read_all(dir).unwrap()
}

#[test]
fn a_flipped_bit_in_the_store_is_noticed_or_has_no_effect() {
    let dir = tempfile::tempdir().unwrap();
    let want = fill(dir.path(), options());
    let mut noticed = 0;
    let mut state = 7_u64;
    for _ in 0..200 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let image = copy(dir.path());
        let path = image.path().join("namespace.redb");
        let mut bytes = fs::read(&path).unwrap();
        let (at, bit) = ((state >> 20) as usize % bytes.len(), state >> 60 & 7);
        bytes[at] ^= 1 << bit;
        fs::write(&path, bytes).unwrap();
        // A second start must not take for good what the first one refused.
        for start in ["first", "second"] {
            match read_all(image.path()) {
                None => noticed += 1,
                Some(all) => assert!(all == want, "bit {bit} of byte {at}, {start} start"),
            }
        }
    }
    assert!(noticed > 20, "{noticed}");
}

/// The store's file changes under a running NameNode, which has little of it in memory.
#[test]
fn a_bit_that_flips_in_the_store_of_a_running_name_node_is_never_served() {
    let dir = tempfile::tempdir().unwrap();
    let small = || NamesystemOptions { cache_len: 16 << 10, ..options() };
    let want = fill(dir.path(), small());
    let mut noticed = 0;
    let mut state = 11_u64;
    for _ in 0..120 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let image = copy(dir.path());
        let path = image.path().join("namespace.redb");
        let namesystem = Namesystem::open(image.path(), small()).unwrap();
        let file = fs::File::options().read(true).write(true).open(&path).unwrap();
        let len = file.metadata().unwrap().len();
        let (at, bit) = ((state >> 20) % len, state >> 60 & 7);
        let mut byte = [0];
        file.read_exact_at(&mut byte, at).unwrap();
        file.write_all_at(&[byte[0] ^ 1 << bit], at).unwrap();
        let served = std::panic::catch_unwind(AssertUnwindSafe(|| dump(&namesystem)));
        match served {
            Err(_) => noticed += 1,
            Ok(all) => assert!(all == want, "bit {bit} of byte {at} was served"),
        }
    }
    assert!(noticed > 5, "{noticed}");
}
