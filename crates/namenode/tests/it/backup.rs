//! Backups: what they restore, and what they refuse.

use crate::cluster::{CLIENT, Client, FakeDataNode, SUPERUSER, config, finish, page};
use crate::journal::{entry, mkdir, names, numbered, open, open_with, options, segments};
use crate::upgrade::{delete, deletions};
use cairn_namenode::journal::backup::file::{BackupFile, FileError, Header, Kind};
use cairn_namenode::journal::backup::restore::{Done, RestoreError, Until, list, restore};
use cairn_namenode::journal::backup::{After, BackupError};
use cairn_namenode::journal::offline::check_folder;
use cairn_namenode::journal::{Namesystem, NamesystemOptions};
use cairn_namenode::{NameNode, NameNodeConfig};
use cairn_namespace::Entry;
use cairn_namespace::ops::delete::Delete;
use cairn_namespace::store::Table;
use cairn_namespace::store::conformance::{Records, dump};
use cairn_wire::proto::hdfs as pb;
use std::fs;
use std::path::Path;

const CACHE_LEN: usize = 1 << 20;

/// All but the counters, which jump where an earlier state is gone on from.
fn state(namesystem: &Namesystem) -> Records {
    let mut all = namesystem.read(|now| dump(now));
    all.retain(|(table, ..)| *table != Table::Meta);
    all
}

/// Keeps a backup as `cairn namenode backup` does: of what has changed since `before`, or of everything.
pub fn keep(namesystem: &Namesystem, folder: &Path, before: Option<&Header>) -> Header {
    let after = before.map(|it| After { sequence: it.last, timeline: it.timeline, until: None });
    keep_after(namesystem, folder, after)
}

fn keep_after(namesystem: &Namesystem, folder: &Path, after: Option<After>) -> Header {
    let mut bytes = Vec::new();
    let take = &mut |piece: Vec<u8>| {
        bytes.extend(piece);
        true
    };
    let header = namesystem.back_up(after, take).unwrap();
    let path = folder.join(header.file_name());
    fs::write(&path, bytes).unwrap();
    assert_eq!(BackupFile::open(&path).unwrap().check().unwrap(), header);
    header
}

fn refused(namesystem: &Namesystem, after: After) -> BackupError {
    namesystem.back_up(Some(after), &mut |_| true).unwrap_err()
}

fn restored(folder: &Path, until: Until) -> (Records, Done) {
    let dir = tempfile::tempdir().unwrap();
    let done = restore(folder, dir.path(), until, CACHE_LEN).unwrap();
    let folder = check_folder(dir.path(), CACHE_LEN).unwrap();
    assert_eq!(folder.problems, [""; 0]);
    (state(&open(dir.path())), done)
}

fn keeping() -> NamesystemOptions {
    NamesystemOptions { checkpoint_entries: 7, segment_len: 1, kept_log_len: 1 << 20, ..options() }
}

/// Some entry of a busy namespace.
fn some(number: usize) -> Entry {
    let made = match number % 5 {
        4 => entry(Delete { path: format!("/{:04}", number - 2), recursive: true }),
        _ => mkdir(number),
    };
    let now_ms = 1000 * number as u64;
    Entry { now_ms, elapsed_ms: now_ms, ..made }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_moment_behind_a_snapshot_can_be_restored() {
    let (dir, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let namesystem = open_with(dir.path(), keeping());
    let mut states = Vec::new();
    let mut newest = None;
    for number in 0..60 {
        namesystem.submit(some(number)).await.unwrap();
        states.push((namesystem.last_sequence(), number, state(&namesystem)));
        // One more whole backup on the way.
        if number == 10 || number == 40 {
            newest.as_ref().map(|newest| keep(&namesystem, folder.path(), Some(newest)));
            newest = Some(keep(&namesystem, folder.path(), None));
        } else if number > 10 && number % 9 == 0 {
            newest = Some(keep(&namesystem, folder.path(), newest.as_ref()));
        }
    }
    let last = newest.unwrap().last;
    // Restarts write what brings the settings up to date, and change nothing that is compared.
    for (sequence, number, state) in states.iter().filter(|(_, number, _)| *number >= 10) {
        if *sequence > last {
            continue;
        }
        let (found, done) = restored(folder.path(), Until::Entry(*sequence));
        assert!(found == *state, "entry {sequence}");
        assert_eq!(
            (done.restored.sequence, done.restored.sequence - done.entries <= last),
            (*sequence, true)
        );
        if done.entries > 0 {
            assert_eq!(done.restored.entry_ms, 1000 * *number as u64);
        }
    }
    let end = states.iter().find(|(sequence, ..)| *sequence == last).unwrap();
    assert!(restored(folder.path(), Until::End).0 == end.2);
    let missing = restore(folder.path(), &dir.path().join("x"), Until::Entry(last + 1), CACHE_LEN);
    assert!(matches!(missing, Err(RestoreError::TooNew { last: found }) if found == last));
    let none = restore(folder.path(), &dir.path().join("y"), Until::Time(1), CACHE_LEN);
    assert!(matches!(none, Err(RestoreError::NoSnapshot { .. })));
    // Nothing is written over.
    let error = restore(folder.path(), dir.path(), Until::End, CACHE_LEN).unwrap_err();
    assert!(matches!(error, RestoreError::NotEmpty { .. }), "{error}");
}

/// Entries go on while everything is kept once more: the changes up to there lead past it.
#[tokio::test(flavor = "multi_thread")]
async fn changes_lead_past_a_snapshot_that_is_not_there_any_more() {
    let (dir, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let namesystem = open_with(dir.path(), keeping());
    let first = keep(&namesystem, folder.path(), None);
    (0..3).for_each(|number| drop(namesystem.submit_blocking(mkdir(number)).unwrap()));
    let second = keep(&namesystem, folder.path(), None);
    (3..5).for_each(|number| drop(namesystem.submit_blocking(mkdir(number)).unwrap()));
    let after = |header: &Header, until| {
        Some(After { sequence: header.last, timeline: header.timeline, until })
    };
    let up_to = keep_after(&namesystem, folder.path(), after(&first, Some(second.last)));
    assert_eq!((up_to.first, up_to.last), (first.last + 1, second.last));
    let nothing = keep_after(&namesystem, folder.path(), after(&second, Some(first.last)));
    assert_eq!((nothing.first, nothing.last), (second.last + 1, second.last));
    fs::remove_file(folder.path().join(nothing.file_name())).unwrap();
    keep(&namesystem, folder.path(), Some(&second));
    fs::remove_file(folder.path().join(second.file_name())).unwrap();
    for (until, count) in [(Until::Entry(second.last - 1), 2), (Until::End, 5)] {
        let to = tempfile::tempdir().unwrap();
        restore(folder.path(), to.path(), until, CACHE_LEN).unwrap();
        assert_eq!(names(&open(to.path())), numbered(count), "{until:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn time_is_told_by_the_entries() {
    let (dir, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let namesystem = open_with(dir.path(), keeping());
    let header = keep(&namesystem, folder.path(), None);
    // Behind the backup by the clock that made it.
    let begin = header.made_ms + 1000;
    for number in 0..6 {
        let now_ms = begin + 1000 * number as u64;
        let entry = Entry { now_ms, elapsed_ms: now_ms, ..mkdir(number) };
        namesystem.submit(entry).await.unwrap();
    }
    keep(&namesystem, folder.path(), Some(&header));
    for (until, count) in [(begin - 1, 0), (begin, 1), (begin + 2999, 3), (begin + 9000, 6)] {
        let to = tempfile::tempdir().unwrap();
        restore(folder.path(), to.path(), Until::Time(until), CACHE_LEN).unwrap();
        assert_eq!(names(&open(to.path())), numbered(count), "{until}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn backups_that_are_cut_damaged_or_missing_restore_nothing() {
    let (dir, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let namesystem = open_with(dir.path(), keeping());
    namesystem.submit(mkdir(0)).await.unwrap();
    let whole = keep(&namesystem, folder.path(), None);
    namesystem.submit(mkdir(1)).await.unwrap();
    let first = keep(&namesystem, folder.path(), Some(&whole));
    namesystem.submit(mkdir(2)).await.unwrap();
    let second = keep(&namesystem, folder.path(), Some(&first));
    for header in [&whole, &second] {
        let path = folder.path().join(header.file_name());
        let bytes = fs::read(&path).unwrap();
        let is_whole = |bytes: &[u8]| {
            fs::write(&path, bytes).unwrap();
            BackupFile::open(&path).and_then(BackupFile::check).is_ok_and(|found| found == *header)
        };
        assert!(is_whole(&bytes));
        for len in 0..bytes.len() {
            assert!(!is_whole(&bytes[..len]), "{len} bytes");
        }
        for at in 0..bytes.len() {
            let mut bad = bytes.clone();
            bad[at] ^= 1 << (at % 8);
            assert!(!is_whole(&bad), "byte {at}");
        }
        assert!(!is_whole(&[&bytes[..], b"x"].concat()));
        let to = tempfile::tempdir().unwrap();
        fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
        let error = restore(folder.path(), to.path(), Until::End, CACHE_LEN).unwrap_err();
        assert!(matches!(error, RestoreError::File(FileError::Cut { .. })), "{error}");
        // What was begun is no namespace.
        assert!(Namesystem::open(to.path(), options()).is_err());
        fs::write(&path, bytes).unwrap();
    }
    // One that says nothing of itself is named where it is missed, and nowhere else.
    let path = folder.path().join(first.file_name());
    fs::write(&path, b"?").unwrap();
    let to = tempfile::tempdir().unwrap();
    let error = restore(folder.path(), to.path(), Until::End, CACHE_LEN).unwrap_err();
    assert!(matches!(error, RestoreError::File(FileError::Unknown { .. })), "{error}");
    let to = tempfile::tempdir().unwrap();
    restore(folder.path(), to.path(), Until::Entry(whole.last), CACHE_LEN).unwrap();
    fs::remove_file(path).unwrap();
    let to = tempfile::tempdir().unwrap();
    let error = restore(folder.path(), to.path(), Until::End, CACHE_LEN).unwrap_err();
    assert!(matches!(error, RestoreError::Gap { from, .. } if from == first.first), "{error}");
    // What comes before the gap is there all the same.
    let to = tempfile::tempdir().unwrap();
    restore(folder.path(), to.path(), Until::Entry(whole.last), CACHE_LEN).unwrap();
    assert_eq!(names(&open(to.path())), numbered(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_are_had_as_far_back_as_the_log_is_kept() {
    let (dir, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let namesystem = open_with(dir.path(), NamesystemOptions { kept_log_len: 4000, ..keeping() });
    let whole = keep(&namesystem, folder.path(), None);
    for number in 0..200 {
        namesystem.submit(mkdir(number)).await.unwrap();
    }
    namesystem.checkpoint().await.unwrap();
    let len: u64 = segments(dir.path()).iter().map(|path| path.metadata().unwrap().len()).sum();
    assert!((2000..8000).contains(&len), "{len} bytes are kept");
    let after = After { sequence: whole.last, timeline: whole.timeline, until: None };
    assert!(
        matches!(refused(&namesystem, after), BackupError::TooOld(first) if first == whole.last + 1)
    );
    let last = namesystem.last_sequence();
    let near = Header { last: last - 3, ..whole.clone() };
    let changes = keep(&namesystem, folder.path(), Some(&near));
    assert_eq!((changes.kind, changes.first, changes.last), (Kind::Changes, last - 2, last));
    let nothing = keep(&namesystem, folder.path(), Some(&changes));
    assert_eq!((nothing.first, nothing.last), (last + 1, last));
    let unknown = refused(&namesystem, After { sequence: last + 1, ..after });
    assert!(matches!(unknown, BackupError::Unknown { .. }), "{unknown}");
    // Also after a restart, which does not need them.
    drop(namesystem);
    let namesystem = open_with(dir.path(), NamesystemOptions { kept_log_len: 4000, ..keeping() });
    assert!(names(&namesystem) == numbered(200));
    keep(&namesystem, folder.path(), Some(&near));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_undone_does_not_come_back_with_what_followed() {
    let (dir, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let namesystem = open_with(dir.path(), keeping());
    namesystem.submit(mkdir(0)).await.unwrap();
    let whole = keep(&namesystem, folder.path(), None);
    namesystem.submit(mkdir(1)).await.unwrap();
    let undone = keep(&namesystem, folder.path(), Some(&whole));
    drop(namesystem);
    let again = tempfile::tempdir().unwrap();
    restore(folder.path(), again.path(), Until::Entry(whole.last), CACHE_LEN).unwrap();
    let namesystem = open_with(again.path(), keeping());
    assert!(namesystem.last_sequence() > undone.last, "no number of an entry comes twice");
    let after = After { sequence: undone.last, timeline: undone.timeline, until: None };
    assert!(matches!(refused(&namesystem, after), BackupError::OtherTimeline));
    namesystem.submit(mkdir(7)).await.unwrap();
    let next = keep(&namesystem, folder.path(), None);
    namesystem.submit(mkdir(8)).await.unwrap();
    keep(&namesystem, folder.path(), Some(&next));
    assert_eq!(list(folder.path()).unwrap().0.len(), 4);
    let to = tempfile::tempdir().unwrap();
    restore(folder.path(), to.path(), Until::End, CACHE_LEN).unwrap();
    assert_eq!(names(&open(to.path())), ["0000", "0007", "0008"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restored_name_node_deletes_nothing_until_that_is_accepted() {
    let (dir, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let node = NameNode::start(config(dir.path())).await.unwrap();
    let mut datanodes = Vec::new();
    for number in 0..3 {
        datanodes.push(FakeDataNode::start(&node, number, &[]).await);
    }
    let client = Client::new(&node, CLIENT, SUPERUSER);
    let write = async |client: &Client, datanodes: &[FakeDataNode], path: &str| {
        client.create(path, "writer").await;
        let block = client.add_block(path, "writer", None).await;
        let last = finish(datanodes, &block, 1000, None).await;
        assert!(client.complete(path, "writer", Some(last)).await);
        let (block_id, gen_stamp) = (block.b.block_id, block.b.generation_stamp);
        pb::BlockProto { block_id, gen_stamp, num_bytes: Some(1000) }
    };
    let old = write(&client, &datanodes, "/old").await;
    keep(&node.node().ns, folder.path(), None);
    let new = write(&client, &datanodes, "/new").await;
    node.shutdown().await;
    drop(datanodes);

    let restored = tempfile::tempdir().unwrap();
    restore(folder.path(), restored.path(), Until::End, CACHE_LEN).unwrap();
    let again = || NameNodeConfig { name_dir: restored.path().to_owned(), ..config(dir.path()) };
    // Whether it was deleted since or is not known, in the first life and in later ones.
    for there in [vec!["old"], vec![]] {
        let node = NameNode::start(again()).await.unwrap();
        let client = Client::new(&node, CLIENT, SUPERUSER);
        assert_eq!(client.list("/").await, there);
        let mut datanodes = Vec::new();
        for number in 0..3 {
            datanodes.push(FakeDataNode::start(&node, number, &[old.clone(), new.clone()]).await);
        }
        if !there.is_empty() {
            delete(&client, "/old").await;
        }
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
        assert_eq!(deletions(&datanodes).await, 0);
        node.shutdown().await;
    }
    let node = NameNode::start(again()).await.unwrap();
    let client = Client::new(&node, CLIENT, SUPERUSER);
    let ask = async |accept: bool| -> pb::AcceptRestoredResponseProto {
        let request = pb::AcceptRestoredRequestProto { accept: Some(accept) };
        client.call("acceptRestored", &request).await.unwrap()
    };
    let mut datanodes = Vec::new();
    for number in 0..3 {
        datanodes.push(FakeDataNode::start(&node, number, std::slice::from_ref(&new)).await);
    }
    assert_eq!((ask(false).await.restored, deletions(&datanodes).await), (Some(true), 0));
    let told =
        |is_held: u8| format!("cairn_namenode_deletions_held{{by=\"restored\"}} {is_held}\n");
    assert!(page(&node, "/").await.contains("cairn admin restored --accept"));
    assert!(page(&node, "/prom").await.contains(&told(1)));
    let damaged =
        async |option: &str| page(&node, &format!("/fsck?ugi={SUPERUSER}&path=/&{option}=1")).await;
    for option in ["delete", "move"] {
        let text = damaged(option).await;
        assert!(text.contains("`cairn admin restored` tells"), "{text}");
        assert!(text.contains("Fsck on path '/' FAILED"), "{text}");
    }
    assert_eq!(ask(true).await.restored, Some(true));
    assert!(damaged("delete").await.contains("is HEALTHY"));
    assert!(!page(&node, "/").await.contains("cairn admin restored"));
    assert!(page(&node, "/prom").await.contains(&told(0)));
    while deletions(&datanodes).await == 0 {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    assert_eq!(ask(false).await.restored, Some(false));
    node.shutdown().await;
}
