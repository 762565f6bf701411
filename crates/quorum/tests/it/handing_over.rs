//! Who leads has another member lead: at once, with all that there is, and without answering by a lease of before.

use crate::three::{TURN, Three};
use cairn_quorum::{Change, ELECTION_TURNS, MemberId, NotProposed, Payload, Role};

#[test]
fn the_lead_is_handed_over_without_a_turn_and_with_all_that_was_proposed() {
    let mut three = Three::new();
    let (_, index) = three.members[0].propose(b"before".to_vec()).unwrap();
    assert_eq!(three.members[0].hand_over(|id| id == MemberId(3)), Some(MemberId(3)));
    assert_eq!(three.lease(0), None, "whoever is told to stand may lead at any moment");
    assert_eq!(three.members[0].propose(b"after".to_vec()), Err(NotProposed::NotLeader));
    three.carry();
    assert_eq!(three.leader(), Some(2));
    for agreed in &three.agreed {
        let entry = agreed.iter().find(|entry| entry.index == index).unwrap();
        assert_eq!(entry.payload, Payload::Data(b"before".to_vec()));
    }
    // The next one has a lease of its own.
    (0..3).for_each(|_| three.tick(|_| 5));
    assert!(three.lease(2).is_some() && three.lease(0).is_none());
}

#[test]
fn whoever_asks_for_the_lead_gets_it_and_the_one_with_most_does_if_nobody_is_named() {
    let mut three = Three::new();
    assert!(three.members[1].ask_for_lead());
    three.carry();
    assert_eq!(three.leader(), Some(1));
    // The third one hears nothing, and lacks something.
    three.cut_off = Some(MemberId(3));
    three.members[1].propose(b"more".to_vec()).unwrap();
    three.carry();
    three.cut_off = None;
    assert_eq!(three.members[1].hand_over(|_| true), Some(MemberId(1)));
    three.carry();
    assert_eq!(three.leader(), Some(0));
    assert_eq!(three.members[1].hand_over(|_| true), None, "it does not lead");
    assert!(!three.members[0].ask_for_lead(), "it does");
}

/// The library forgets now and then whom it has heard of, and hears of them again a moment later.
#[test]
fn the_lead_is_handed_over_at_any_moment() {
    for turns in 0..2 * ELECTION_TURNS {
        let mut three = Three::new();
        (0..turns).for_each(|_| three.tick(|_| 5));
        let now = three.now + TURN;
        three.members[0].tick(now, 5);
        // Nothing of what it says has come to anybody yet.
        assert!(three.members[0].hand_over(|_| true).is_some(), "{turns}");
    }
}

#[test]
fn nobody_is_told_to_stand_who_does_not_vote() {
    let mut three = Three::new();
    assert_eq!(three.members[0].hand_over(|id| id == MemberId(9)), None);
    three.members[0].change(&Change::Remove { id: MemberId(2) }).unwrap();
    three.carry();
    assert_eq!(three.members[0].hand_over(|id| id == MemberId(2)), None);
    assert!(!three.members[0].is_handing_over());
    assert!(three.lease(0).is_some(), "nothing has changed");
}

#[test]
fn a_leader_that_is_not_relieved_gives_the_lead_up_all_the_same() {
    let mut three = Three::new();
    three.cut_off = Some(MemberId(2));
    assert_eq!(three.members[0].hand_over(|id| id == MemberId(2)), Some(MemberId(2)));
    three.carry();
    assert!(three.members[0].is_handing_over());
    for _ in 0..ELECTION_TURNS {
        assert_eq!(three.lease(0), None, "the word to stand may arrive yet");
        three.tick(|_| 0);
    }
    assert!(three.members[0].role() == Role::Follower || three.members[0].term() > 1);
    // Of the two that are left one leads.
    let begun = three.now;
    while three.leader().is_none() {
        assert!(three.now < begun + TURN * 100);
        three.tick(|at| if at == 2 { 0 } else { ELECTION_TURNS as u32 - 1 });
    }
    assert_eq!(three.leader(), Some(2), "who has given it up waits for longer");
}
