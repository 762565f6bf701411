//! What a leader has agreed on, in the hands of a follower.

use super::*;
use crate::journal::agree::{Agree, Agreement, NotAgreed};
use crate::journal::tests::{entry, options};
use crate::journal::{Namesystem, SubmitError};
use cairn_namespace::store::conformance::{Records, dump};
use cairn_process::held::held;
use std::path::PathBuf;
use std::sync::Mutex;
use tempfile::TempDir;

/// Agrees on so many groups, and keeps them.
#[derive(Default)]
struct Quorum {
    groups: Mutex<Vec<Vec<u8>>>,
    most: Mutex<Option<usize>>,
}

impl Agree for Quorum {
    fn agree(&self, group: Vec<u8>) -> Result<(), NotAgreed> {
        let mut groups = held(&self.groups);
        if held(&self.most).is_some_and(|most| groups.len() >= most) {
            return Err(NotAgreed("the lead is lost".to_string()));
        }
        groups.push(group);
        Ok(())
    }

    fn shown(&self, _: u64) {}

    fn logged(&self, _last: u64) {}

    fn stored(&self, _last: u64) {}
}

fn led_by(quorum: &Arc<Quorum>) -> NamesystemOptions {
    let agreement = Agreement(Arc::clone(quorum) as Arc<dyn Agree>);
    NamesystemOptions { agreement: Some(agreement), ..options() }
}

fn copy(from: &Path) -> TempDir {
    let to = tempfile::tempdir().unwrap();
    for file in std::fs::read_dir(from).unwrap() {
        let file: PathBuf = file.unwrap().path();
        std::fs::copy(&file, to.path().join(file.file_name().unwrap())).unwrap();
    }
    to
}

/// Two folders with one namespace.
fn twins() -> (TempDir, TempDir) {
    let dir = tempfile::tempdir().unwrap();
    Namesystem::open(dir.path(), options()).unwrap().close();
    let other = copy(dir.path());
    (dir, other)
}

fn state(namesystem: &Namesystem) -> Records {
    namesystem.read(|now| dump(now))
}

fn follow(dir: &Path) -> Follower {
    Follower::open(dir, &options()).unwrap().unwrap()
}

#[test]
fn a_follower_has_what_its_leader_has_and_can_take_its_place() {
    let ((dir, other), quorum) = (twins(), Arc::<Quorum>::default());
    let leader = Namesystem::open(dir.path(), led_by(&quorum)).unwrap();
    let outcomes: Vec<_> = (0..50).map(|number| leader.submit_blocking(entry(number))).collect();
    let (last, groups) = (leader.last_sequence(), held(&quorum.groups).clone());
    assert_eq!(agree::last_entry(groups.last().unwrap()), Some(last));
    let mut follower = follow(other.path());
    for (at, group) in groups.iter().enumerate() {
        follower.take(group).unwrap();
        // What comes again is known.
        follower.take(&groups[at / 2]).unwrap();
        if at == groups.len() / 2 {
            drop(follower);
            follower = follow(other.path());
        }
    }
    assert_eq!((follower.last(), follower.identity()), (last, leader.identity()));
    let before = state(&leader);
    leader.close();
    drop(follower);
    let next = Namesystem::open(other.path(), options()).unwrap();
    assert_eq!(next.last_sequence(), last);
    // Outcomes of calls are written at the start.
    assert_eq!(state(&next), before);
    for number in [3, 7, 47] {
        assert_eq!(next.submit_blocking(entry(number)), outcomes[number as usize]);
    }
    assert_eq!(next.last_sequence(), last, "they are known");
    next.close();
}

#[test]
fn what_was_not_agreed_on_was_nowhere() {
    let ((dir, _), quorum) = (twins(), Arc::<Quorum>::default());
    let leader = Namesystem::open(dir.path(), led_by(&quorum)).unwrap();
    leader.submit_blocking(entry(0)).unwrap();
    let (before, last) = (state(&leader), leader.last_sequence());
    *held(&quorum.most) = Some(0);
    for number in 1..4 {
        assert_eq!(leader.submit_blocking(entry(number)), Err(SubmitError::Stopped));
    }
    assert_eq!(state(&leader), before, "readers have seen nothing of it");
    leader.close();
    *held(&quorum.most) = None;
    let again = Namesystem::open(dir.path(), options()).unwrap();
    assert_eq!(again.last_sequence(), last);
    again.submit_blocking(entry(1)).unwrap();
    assert_eq!(again.last_sequence(), last + 1, "it is done now");
    again.close();
}

#[test]
fn a_follower_that_lacks_something_or_has_something_else_says_so() {
    let ((dir, other), quorum) = (twins(), Arc::<Quorum>::default());
    let third = copy(other.path());
    let leader = Namesystem::open(dir.path(), led_by(&quorum)).unwrap();
    for number in [0, 1, 4] {
        leader.submit_blocking(entry(number)).unwrap();
    }
    leader.close();
    let groups = held(&quorum.groups).clone();
    let mut follower = follow(other.path());
    assert!(matches!(follower.take(&groups[1]), Err(FollowError::Gap { .. })));
    assert!(matches!(follower.take(b"no group"), Err(FollowError::Malformed)));
    follower.take(&groups[0]).unwrap();
    // Another history of as many entries.
    let alone = Namesystem::open(third.path(), options()).unwrap();
    alone.submit_blocking(entry(100)).unwrap();
    alone.close();
    let mut follower = follow(third.path());
    let other = follower.take(&groups[1]);
    assert!(matches!(other, Err(FollowError::Open(OpenError::OtherHistory { .. }))), "{other:?}");
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(work)
}

#[test]
fn watchers_miss_nothing_where_another_member_leads() {
    let ((dir, other), quorum) = (twins(), Arc::<Quorum>::default());
    let leader = Namesystem::open(dir.path(), led_by(&quorum)).unwrap();
    leader.submit_blocking(entry(0)).unwrap();
    block_on(leader.watch_events()).unwrap();
    let first = leader.last_sequence() + 1;
    (1..50).for_each(|number| drop(leader.submit_blocking(entry(number)).unwrap()));
    let told = leader.events_since(first, usize::MAX);
    assert!(told.batches.len() > 10 && told.seen.unwrap().0 == first);
    let groups = held(&quorum.groups).clone();
    for restarts in [false, true] {
        let follower_dir = copy(other.path());
        let mut follower = follow(follower_dir.path());
        for (at, group) in groups.iter().enumerate() {
            follower.take(group).unwrap();
            // Some are in the store's file and in the history by then, some in the log only.
            follower.store_if_due().unwrap();
            if restarts && at % 10 == 9 {
                drop(follower);
                follower = follow(follower_dir.path());
            }
        }
        drop(follower);
        let next = Namesystem::open(follower_dir.path(), led_by(&Arc::default())).unwrap();
        let there = next.events_since(first, usize::MAX);
        assert_eq!(there.seen.map(|seen| seen.0), Some(first), "{restarts}");
        assert_eq!(there.batches, told.batches, "{restarts}");
        assert!(next.events_since(1, usize::MAX).seen.unwrap().0 > 1, "what was before is missed");
    }
}

/// What an upgrade is gone back to has all but what is held.
fn names(namesystem: &Namesystem) -> Records {
    let mut all = state(namesystem);
    all.retain(|(table, ..)| *table != cairn_namespace::store::Table::Meta);
    all
}

#[test]
fn every_member_has_a_way_back_until_the_upgrade_is_finalized() {
    let ((dir, other), quorum) = (twins(), Arc::<Quorum>::default());
    let leader = Namesystem::open(dir.path(), led_by(&quorum)).unwrap();
    (0..6).for_each(|number| drop(leader.submit_blocking(entry(number)).unwrap()));
    let then = names(&leader);
    let prepared = block_on(leader.make_rollback_point(0)).unwrap();
    assert_eq!(block_on(leader.make_rollback_point(0)).unwrap().start_ms, prepared.start_ms);
    (6..20).for_each(|number| drop(leader.submit_blocking(entry(number)).unwrap()));
    let now = names(&leader);
    assert!(now != then && leader.has_rollback_copy());
    let groups = held(&quorum.groups).clone();
    let point = |dir: &Path| dir.join("rollback").join("point").exists();
    let mut follower = follow(other.path());
    for group in &groups {
        follower.take(group).unwrap();
    }
    // The log has the entry that has begun the upgrade still.
    drop(follower);
    drop(follow(other.path()));
    assert!(point(other.path()));
    let going_back = tempfile::tempdir().unwrap();
    std::fs::create_dir(going_back.path().join("rollback")).unwrap();
    for folder in ["", "rollback"] {
        for file in std::fs::read_dir(other.path().join(folder)).unwrap() {
            let file = file.unwrap();
            if file.path().is_file() {
                let to = going_back.path().join(folder).join(file.file_name());
                std::fs::copy(file.path(), to).unwrap();
            }
        }
    }
    let back = NamesystemOptions { roll_back: true, ..options() };
    let back = Namesystem::open(going_back.path(), back).unwrap();
    assert!(names(&back) == then);
    assert_eq!(back.rollback_point(), None, "nothing is held there");
    back.close();

    // Another one leads, and finalizes it.
    leader.close();
    let second = Arc::<Quorum>::default();
    let leader = Namesystem::open(other.path(), led_by(&second)).unwrap();
    assert_eq!(leader.rollback_point().map(|point| point.start_ms), Some(prepared.start_ms));
    assert!(leader.has_rollback_copy() && names(&leader) == now);
    leader.remove_rollback_point().unwrap();
    assert_eq!(leader.rollback_point(), None);
    assert!(!point(other.path()));
    leader.close();
    assert_eq!(Namesystem::open(other.path(), led_by(&second)).unwrap().rollback_point(), None);
    let mut first = follow(dir.path());
    assert!(point(dir.path()));
    for group in held(&second.groups).iter() {
        first.take(group).unwrap();
    }
    assert!(!point(dir.path()));
}

/// It was down when the upgrade was finalized, and has got a snapshot.
#[test]
fn a_copy_of_an_upgrade_that_has_ended_is_given_up() {
    let ((dir, other), quorum) = (twins(), Arc::<Quorum>::default());
    let leader = Namesystem::open(dir.path(), led_by(&quorum)).unwrap();
    block_on(leader.make_rollback_point(0)).unwrap();
    leader.remove_rollback_point().unwrap();
    std::fs::create_dir(other.path().join("rollback")).unwrap();
    std::fs::write(other.path().join("rollback/point"), "startTime=7\nsequence=1\n").unwrap();
    drop(follow(other.path()));
    assert!(!other.path().join("rollback").exists());
}

#[test]
fn a_point_that_a_member_has_no_room_for_is_none() {
    let ((dir, _other), quorum) = (twins(), Arc::<Quorum>::default());
    let leader = Namesystem::open(dir.path(), led_by(&quorum)).unwrap();
    let refused = block_on(leader.make_rollback_point(u64::MAX / 2)).unwrap_err();
    assert!(refused.to_string().contains("are to stay free"), "{refused}");
    assert_eq!((leader.rollback_point(), leader.has_rollback_copy()), (None, false));
    assert!(held(&quorum.groups).iter().all(|group| agree::last_entry(group).is_some()));
}

#[test]
fn a_member_that_is_configured_otherwise_says_so_while_that_lasts() {
    let ((dir, other), quorum) = (twins(), Arc::<Quorum>::default());
    let alike = follow(other.path());
    assert_eq!(alike.differences, []);
    drop(alike);
    let settings = cairn_namespace::Settings { replication_max: 7, ..Default::default() };
    let otherwise = NamesystemOptions { settings, ..options() };
    let mut follower = Follower::open(other.path(), &otherwise).unwrap().unwrap();
    let keys = |differences: &[Difference]| differences.iter().map(|it| it.key).collect::<Vec<_>>();
    assert_eq!(keys(&follower.differences), ["dfs.replication.max"]);
    // Somebody who is configured alike leads.
    let leads = NamesystemOptions { agreement: led_by(&quorum).agreement, ..otherwise };
    let leader = Namesystem::open(dir.path(), leads.clone()).unwrap();
    assert_eq!(keys(leader.changed_settings()), ["dfs.replication.max"]);
    leader.close();
    for group in held(&quorum.groups).iter() {
        follower.take(group).unwrap();
    }
    assert_eq!(follower.differences, []);
    let leader = Namesystem::open(dir.path(), leads).unwrap();
    assert_eq!(leader.changed_settings(), [], "nothing is another than before");
}
