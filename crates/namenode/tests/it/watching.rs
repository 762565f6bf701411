//! What watchers of the tree are told over stops, kills and power cuts.

use crate::journal::{copy, mkdir, names, numbered, open, open_with, options};
use cairn_namenode::journal::{Namesystem, NamesystemOptions};
use cairn_namespace::Entry;
use cairn_namespace::events::Event;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The directories whose making watchers are told of who have seen all before `sequence`, and the next one; fails if
/// something was missed.
fn told(namesystem: &Namesystem, sequence: u64) -> (Vec<String>, u64) {
    let since = namesystem.events_since(sequence, usize::MAX);
    let Some((first, last)) = since.seen else { return (Vec::new(), sequence) };
    assert_eq!(first, sequence, "something is missed");
    let path = |event: Event| match event {
        Event::Create { path, .. } => path,
        other => panic!("{other:?}"),
    };
    let paths = since.batches.into_iter().flat_map(|batch| batch.events).map(path);
    (paths.collect(), last + 1)
}

#[tokio::test(flavor = "multi_thread")]
async fn watchers_miss_nothing_over_a_stop_and_a_kill() {
    let dir = tempfile::tempdir().unwrap();
    let namesystem = open(dir.path());
    namesystem.submit(mkdir(0)).await.unwrap();
    namesystem.watch_events().await.unwrap();
    let next = namesystem.last_sequence() + 1;
    namesystem.submit(mkdir(1)).await.unwrap();
    let (paths, next) = told(&namesystem, next);
    assert_eq!(paths, ["/0001"]);

    // Stopped with nothing that they have not seen, then with something, then killed.
    drop(namesystem);
    let namesystem = open(dir.path());
    namesystem.watch_events().await.unwrap();
    let (paths, next) = told(&namesystem, next);
    assert!(paths.is_empty(), "{paths:?}");
    namesystem.submit(mkdir(2)).await.unwrap();
    let killed = copy(dir.path());
    drop(namesystem);
    for dir in [dir.path(), killed.path()] {
        let namesystem = open(dir);
        namesystem.submit(mkdir(3)).await.unwrap();
        assert_eq!(told(&namesystem, next).0, ["/0002", "/0003"]);
        assert_eq!(names(&namesystem), numbered(4));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_nobody_watches_is_in_the_store_after_a_stop() {
    let dir = tempfile::tempdir().unwrap();
    for number in 0..3 {
        let namesystem = open(dir.path());
        namesystem.submit(mkdir(number)).await.unwrap();
        assert_eq!(namesystem.events_since(1, usize::MAX).seen, None);
    }
    assert!(!dir.path().join("watched").exists());
}

/// Checkpoints come often, and the log keeps no more than it must.
fn often() -> NamesystemOptions {
    NamesystemOptions { checkpoint_entries: 10, segment_len: 1, ..options() }
}

fn history(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let is_part =
        |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().starts_with("events-");
    let mut found: Vec<PathBuf> = entries.filter(is_part).collect();
    found.sort();
    found
}

fn paths(numbers: std::ops::Range<usize>) -> Vec<String> {
    numbers.map(|number| format!("/{number:04}")).collect()
}

/// A namespace that is watched and has changed so often since that the log has only the last changes; the number of
/// the first one is returned.
async fn watched(dir: &Path, count: usize) -> (std::sync::Arc<Namesystem>, u64) {
    let namesystem = open_with(dir, often());
    namesystem.watch_events().await.unwrap();
    let first = namesystem.last_sequence() + 1;
    for number in 0..count {
        namesystem.submit(mkdir(number)).await.unwrap();
    }
    namesystem.checkpoint().await.unwrap();
    let kept = crate::journal::segments(dir).remove(0);
    assert!(!kept.ends_with(format!("log-{:020}", 1)), "{kept:?}");
    (namesystem, first)
}

#[tokio::test(flavor = "multi_thread")]
async fn watchers_are_told_what_the_log_no_longer_has() {
    let dir = tempfile::tempdir().unwrap();
    let (namesystem, first) = watched(dir.path(), 300).await;
    namesystem.submit(mkdir(300)).await.unwrap();
    let killed = copy(dir.path());
    drop(namesystem);
    for dir in [dir.path(), killed.path()] {
        // Each start ends with another checkpoint.
        for last in 301..303 {
            let namesystem = open_with(dir, often());
            namesystem.submit(mkdir(last)).await.unwrap();
            assert_eq!(told(&namesystem, first).0, paths(0..last + 1));
            let from_the_middle = told(&namesystem, first + 150).0;
            assert_eq!(from_the_middle, paths(150..last + 1));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_have_everything_once() {
    let dir = tempfile::tempdir().unwrap();
    let (namesystem, first) = watched(dir.path(), 300).await;
    drop(namesystem);
    let namesystem = open_with(dir.path(), often());
    for number in 300..305 {
        namesystem.submit(mkdir(number)).await.unwrap();
    }
    for page in [1, 7, 100, 1000] {
        let (mut next, mut told) = (first, Vec::new());
        while let Some((begin, last)) = namesystem.events_since(next, page).seen {
            let since = namesystem.events_since(next, page);
            assert_eq!(begin, next);
            assert!(since.batches.len() <= page);
            told.extend(since.batches.into_iter().map(|batch| batch.sequence));
            next = last + 1;
        }
        assert_eq!(told, (first..first + 300).chain(next - 5..next).collect::<Vec<_>>(), "{page}");
    }
}

/// Where the history has a hole, or is not there, watchers are told that they have missed something, and of what came
/// behind it.
#[tokio::test(flavor = "multi_thread")]
async fn a_history_that_is_damaged_refuses_no_start_and_hides_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let (namesystem, first) = watched(dir.path(), 60).await;
    namesystem.submit(mkdir(60)).await.unwrap();
    drop(namesystem);
    let whole = fs::read(&history(dir.path())[0]).unwrap();
    let mut bad: Vec<Vec<u8>> =
        (0..whole.len()).step_by(131).map(|len| whole[..len].to_vec()).collect();
    for at in (0..whole.len()).step_by(131) {
        let mut flipped = whole.clone();
        flipped[at] ^= 1;
        bad.push(flipped);
    }
    for (number, bytes) in bad.into_iter().enumerate() {
        let image = copy(dir.path());
        fs::write(&history(image.path())[0], bytes).unwrap();
        let namesystem = open_with(image.path(), often());
        namesystem.watch_events().await.unwrap();
        namesystem.submit(mkdir(61)).await.unwrap();
        let since = namesystem.events_since(first, usize::MAX);
        assert!(since.seen.unwrap().0 > first, "{number}");
        assert_eq!(since.batches.last().unwrap().sequence, namesystem.last_sequence());
        // It is whole again from there on.
        let next = namesystem.last_sequence();
        drop(namesystem);
        assert_eq!(told(&open_with(image.path(), often()), next).0, paths(61..62));
    }
    let image = copy(dir.path());
    fs::remove_file(&history(image.path())[0]).unwrap();
    let namesystem = open_with(image.path(), often());
    assert_eq!(namesystem.events_since(first, usize::MAX).seen, {
        let last = namesystem.last_sequence();
        Some((last + 1, last))
    });
}

/// The history is ahead of the store where a power cut came between the two.
#[tokio::test(flavor = "multi_thread")]
async fn what_the_store_does_not_have_is_told_once() {
    let dir = tempfile::tempdir().unwrap();
    let (namesystem, first) = watched(dir.path(), 60).await;
    let before = copy(dir.path());
    for number in 60..65 {
        namesystem.submit(mkdir(number)).await.unwrap();
    }
    // The log has all of it, and the history as well.
    for log in crate::journal::segments(dir.path()) {
        fs::copy(&log, before.path().join(log.file_name().unwrap())).unwrap();
    }
    namesystem.checkpoint().await.unwrap();
    for part in history(dir.path()) {
        fs::copy(&part, before.path().join(part.file_name().unwrap())).unwrap();
    }
    for _ in 0..2 {
        assert_eq!(told(&open_with(before.path(), often()), first).0, paths(0..65));
    }
}

/// An older build has changed the tree meanwhile, and knows of no history.
#[tokio::test(flavor = "multi_thread")]
async fn a_history_that_ends_too_early_is_given_up() {
    let dir = tempfile::tempdir().unwrap();
    let (namesystem, first) = watched(dir.path(), 60).await;
    let part = history(dir.path()).remove(0);
    let old = fs::read(&part).unwrap();
    for number in 60..80 {
        namesystem.submit(mkdir(number)).await.unwrap();
    }
    drop(namesystem);
    fs::write(&part, old).unwrap();
    let namesystem = open_with(dir.path(), often());
    let seen = namesystem.events_since(first, usize::MAX).seen;
    assert!(seen.is_some_and(|(begin, _)| begin > first + 79), "{seen:?}");
    assert!(history(dir.path()).is_empty());
}

/// What is done so long after it is told that somebody watches.
fn later(number: usize, by: Duration) -> Entry {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    Entry { now_ms: (now + by).as_millis() as u64, ..mkdir(number) }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_history_goes_when_nobody_has_watched_for_a_week() {
    let dir = tempfile::tempdir().unwrap();
    let (namesystem, _) = watched(dir.path(), 60).await;
    drop(namesystem);
    let namesystem = open_with(dir.path(), often());
    namesystem.submit(later(60, Duration::from_secs(6 * 24 * 3600))).await.unwrap();
    namesystem.checkpoint().await.unwrap();
    assert_eq!(history(dir.path()).len(), 1);
    namesystem.submit(later(61, Duration::from_secs(9 * 24 * 3600))).await.unwrap();
    namesystem.checkpoint().await.unwrap();
    assert!(history(dir.path()).is_empty());
    assert_eq!(namesystem.events_since(1, usize::MAX).seen, None);
    // Whoever comes then is told of what comes then.
    namesystem.watch_events().await.unwrap();
    let next = namesystem.last_sequence() + 1;
    namesystem.submit(mkdir(62)).await.unwrap();
    assert_eq!(told(&namesystem, next).0, paths(62..63));
}

/// Entries before somebody watched are of one replay with those behind.
#[tokio::test(flavor = "multi_thread")]
async fn what_came_before_anybody_watched_is_told_as_missing_after_a_kill() {
    let dir = tempfile::tempdir().unwrap();
    let namesystem = open(dir.path());
    namesystem.submit(mkdir(0)).await.unwrap();
    namesystem.watch_events().await.unwrap();
    let first = namesystem.last_sequence() + 1;
    let at_once = copy(dir.path());
    namesystem.submit(mkdir(1)).await.unwrap();
    let killed = copy(dir.path());
    drop(namesystem);
    assert!(!dir.path().join("watched").exists(), "the log says it");
    assert_eq!(open(at_once.path()).events_since(1, usize::MAX).seen, Some((first, first - 1)));
    let namesystem = open(killed.path());
    assert_eq!(namesystem.events_since(1, usize::MAX).seen.map(|seen| seen.0), Some(first));
    assert_eq!(told(&namesystem, first).0, paths(1..2));
}
