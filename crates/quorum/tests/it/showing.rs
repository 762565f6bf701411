//! Who has seen something at a member that follows must not miss it at the leader: that one shows everything first.

use crate::three::Three;
use cairn_quorum::MemberId;

fn has(three: &Three, at: usize, index: u64) -> bool {
    three.agreed[at].iter().any(|entry| entry.index == index)
}

#[test]
fn others_are_told_what_is_agreed_on_when_the_leader_shows_it_and_at_once() {
    let mut three = Three::new();
    three.shows = false;
    let (term, first) = three.members[0].propose(b"first".to_vec()).unwrap();
    let (_, second) = three.members[0].propose(b"second".to_vec()).unwrap();
    three.carry();
    // Neither with heartbeats.
    (0..4).for_each(|_| three.tick(|_| 5));
    assert!(has(&three, 0, second) && !has(&three, 1, first) && !has(&three, 2, first));
    three.members[0].shown(term, first);
    three.carry();
    assert!((1..3).all(|at| has(&three, at, first) && !has(&three, at, second)));
    three.members[0].shown(term, second);
    three.carry();
    assert!((1..3).all(|at| has(&three, at, second)));
}

/// It may never have been shown: the next one says so of its own term.
#[test]
fn who_leads_next_tells_what_the_one_before_has_not_shown() {
    let mut three = Three::new();
    three.shows = false;
    let (term, index) = three.members[0].propose(b"unshown".to_vec()).unwrap();
    three.carry();
    assert_eq!(three.members[0].hand_over(|id| id == MemberId(2)), Some(MemberId(2)));
    three.carry();
    assert_eq!(three.leader(), Some(1));
    assert!((0..3).all(|at| has(&three, at, index)));
    // What was proposed in another term holds nobody up.
    assert!(three.members[0].ask_for_lead());
    three.carry();
    assert_eq!(three.leader(), Some(0));
    three.members[0].shown(term, index);
    let (term, index) = three.members[0].propose(b"more".to_vec()).unwrap();
    three.members[0].shown(term, index);
    three.carry();
    assert!((0..3).all(|at| has(&three, at, index)));
}
