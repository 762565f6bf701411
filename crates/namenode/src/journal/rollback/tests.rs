//! Crashes at each step of making a rollback point, of giving it up, and of going back to it.

use super::*;
use crate::disk::crash::each_place;
use crate::journal::tests::{entry, options};
use crate::journal::{Namesystem, NamesystemOptions};
use cairn_namespace::store::Table;
use cairn_namespace::store::conformance::{Records, dump};

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
