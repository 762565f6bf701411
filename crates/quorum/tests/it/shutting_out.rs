//! Whom an operator shuts out: who is told no and why, and that nobody comes back before it is let in.

use crate::three::Three;
use cairn_quorum::{MemberId, NotChanged, NotProposed};
use std::collections::BTreeMap;

fn present() -> BTreeMap<String, MemberId> {
    [("a", 1), ("b", 2), ("c", 3)].map(|(name, id)| (name.to_string(), MemberId(id))).into()
}

#[test]
fn who_is_shut_out_does_not_join_before_it_is_let_in() {
    let mut three = Three::new();
    three.members[0].shut_out("c").unwrap();
    assert_eq!(three.members[0].shut_out("b"), Err(NotChanged::NotProposed(NotProposed::Busy)));
    three.carry();
    let members = three.members[1].members();
    assert!(members.0[&MemberId(3)].is_out && !members.is_voter(MemberId(3)), "{members:?}");
    // Neither who was meant nor somebody new under the same name.
    assert_eq!(three.members[0].next_change(&present()), None);
    let renewed = [("c".to_string(), MemberId(7))].into();
    assert_eq!(three.members[0].next_change(&renewed), None);
    assert_eq!(three.members[0].let_in("b"), Err(NotChanged::NotOut));
    three.members[0].let_in("c").unwrap();
    three.carry();
    for _ in 0..2 {
        let change = three.members[0].next_change(&present()).unwrap();
        three.members[0].change(&change).unwrap();
        three.carry();
        three.tick(|_| 5);
    }
    assert!(three.members[1].members().is_voter(MemberId(3)));
}

#[test]
fn nobody_is_shut_out_without_whom_nothing_is_agreed_on() {
    let mut three = Three::new();
    assert_eq!(three.members[1].shut_out("c"), Err(NotProposed::NotLeader.into()));
    assert_eq!(three.members[0].shut_out("d"), Err(NotChanged::Unknown));
    assert_eq!(three.members[0].shut_out("a"), Err(NotChanged::Leads));
    // The second one is not heard of any more.
    three.cut_off = Some(MemberId(2));
    (0..2 * cairn_quorum::ELECTION_TURNS).for_each(|_| three.tick(|at| 9 * u32::from(at > 0)));
    let leader = three.leader().unwrap();
    let other = ["a", "c"][usize::from(leader == 0)];
    let lost = NotChanged::MajorityLost { left: 2, there: 1 };
    assert!(lost.to_string().contains("without 2"));
    assert_eq!(three.members[leader].shut_out(other), Err(lost));
    three.members[leader].shut_out("b").unwrap();
    three.carry();
    // Two are left, and then one.
    three.members[leader].shut_out(other).unwrap();
    three.carry();
    let me = ["a", "b", "c"][leader];
    assert_eq!(three.members[leader].shut_out(me), Err(NotChanged::LastVoter));
}
