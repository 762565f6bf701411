//! What a leader has agreed on, in the hands of a follower.

use super::*;
use crate::journal::agree::{Agree, Agreement, NotAgreed};
use crate::journal::tests::{entry, options};
use crate::journal::{Namesystem, SubmitError};
use cairn_namespace::store::conformance::{Records, dump};
use cairn_net::held::held;
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
