//! Snapshots in the place of what is there, whatever stops the process meanwhile.

use super::*;
use crate::journal::Namesystem;
use crate::journal::follower::Follower;
use crate::journal::offline::check_folder;
use crate::journal::tests::{entry, options};
use cairn_namespace::store::conformance::{Records, dump};
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

/// Each file that is moved to its place may be the last one before a power cut.
#[test]
fn a_start_goes_on_with_what_was_begun() {
    let dir = tempfile::tempdir().unwrap();
    let (file, leader) = (dir.path().join("snapshot-file"), dir.path().join("leader"));
    let (was, last) = snapshot(&leader, &file, 4);
    for moved in 0..6 {
        let (other, new) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        snapshot(other.path(), &dir.path().join("other"), 0);
        install(new.path(), &file, 1 << 20).unwrap();
        // As it is when the snapshot has got its name.
        let ready = other.path().join(READY);
        fs::create_dir(&ready).unwrap();
        for name in fs::read_dir(new.path()).unwrap() {
            let name = name.unwrap();
            if name.path().is_file() {
                fs::copy(name.path(), ready.join(name.file_name())).unwrap();
            }
        }
        let identity = Identity::read(&ready.join(VERSION)).unwrap().unwrap();
        let order = ["namespace.crc-0", "namespace.crc-1", DATABASE, "log-", VERSION];
        for prefix in &order[..moved.min(order.len())] {
            for name in names(&ready, prefix).unwrap() {
                if *prefix == DATABASE {
                    remove_all_segments(other.path()).unwrap();
                }
                fs::rename(ready.join(&name), other.path().join(&name)).unwrap();
            }
        }
        let problems = check_folder(other.path(), 1 << 20).unwrap().problems;
        assert!(problems[0].contains("not all in its place"), "{moved}: {problems:?}");
        let follower = Follower::open(other.path(), &options()).unwrap().unwrap();
        assert_eq!((follower.last(), follower.identity()), (last, &identity), "{moved}");
        drop(follower);
        assert!(!ready.exists());
        assert!(check_folder(other.path(), 1 << 20).unwrap().problems.is_empty(), "{moved}");
        let namesystem = Namesystem::open(other.path(), options()).unwrap();
        assert_eq!(state(&namesystem), was, "{moved}");
        namesystem.close();
    }
}
