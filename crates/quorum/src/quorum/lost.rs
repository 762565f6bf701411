//! Logs that have lost their end, and logs that have gone on without a member: what members tell each other of how far
//! theirs go.

use super::{ELECTION_TURNS, Quorum};
use crate::entry::{Base, Reach};
use crate::member::MemberId;
use crate::message::Body;

impl Quorum {
    /// Who has lost the end of its log asks the others how far theirs go. What no voter has was nowhere: everybody's power
    /// was cut at once.
    pub(super) fn look_for_lost(&mut self) {
        let Some(lost) = self.lost else { return };
        let mine = self.reach();
        let others: Vec<MemberId> = self.members.voters().filter(|id| *id != self.me).collect();
        let told = others.iter().map(|id| self.last.get(id).copied());
        let furthest = told.collect::<Option<Vec<Reach>>>();
        if let Some(told) = furthest.filter(|_| !self.has_lost_committed) {
            // What was lost is of no earlier term than what is left.
            let may_have = told.into_iter().filter(|reach| *reach > mine);
            let most = may_have.fold(mine, |most, reach| most.or(Some(reach)));
            let (term, index) = (lost.term.min(most.term), lost.index.min(most.index));
            self.lost = (index > mine.index).then_some(Reach { term, index });
        }
        if self.until_asked > 0 {
            self.until_asked -= 1;
            return;
        }
        self.until_asked = ELECTION_TURNS;
        others.into_iter().for_each(|to| self.send(to, Body::Last { reach: mine, has_lost: true }));
    }

    pub(super) fn hear_last(&mut self, from: MemberId, reach: Reach, has_lost: bool) {
        self.last.insert(from, reach);
        self.go_on_from(from, reach.index);
        if !has_lost {
            return;
        }
        // What it is believed to have it has not any more.
        let is_leader = self.is_leader();
        let known = self.node.raft.mut_prs().get_mut(from.0);
        if let Some(known) = known.filter(|known| is_leader && known.matched > reach.index) {
            known.matched = reach.index;
            known.become_probe();
        }
        let reach = self.reach();
        self.send(from, Body::Last { reach, has_lost: false });
    }

    /// The leader's log does not go back to what it knows to be here.
    pub(super) fn hear_behind(&mut self, from: MemberId, index: u64, term: u64) {
        if self.is_leader() || self.node.raft.leader_id != from.0 {
            return;
        }
        if self.lacks(index, term) {
            self.is_behind = true;
        } else {
            let reach = self.reach();
            self.send(from, Body::Last { reach, has_lost: false });
        }
    }

    /// A member has more than this leader's log would have to go back for.
    fn go_on_from(&mut self, member: MemberId, index: u64) {
        let first = self.node.store().base().index + 1;
        let last = self.node.raft.raft_log.last_index();
        let is_leader = self.is_leader();
        let known = self.node.raft.mut_prs().get_mut(member.0);
        let stuck = known.filter(|known| is_leader && known.next_idx < first && index + 1 >= first);
        if let Some(known) = stuck {
            known.become_probe();
            known.next_idx = (index + 1).min(last + 1);
        }
    }

    /// Tells members that the log does not go back to what they have.
    pub(super) fn tell_who_is_behind(&mut self) {
        if !self.is_leader() || self.node.raft.heartbeat_elapsed() != 0 {
            return;
        }
        let first = self.node.store().base().index + 1;
        let is_behind = |known: &raft::Progress| known.next_idx < first && known.recent_active;
        let behind: Vec<u64> = (self.node.raft.prs().iter())
            .filter(|(id, known)| **id != self.me.0 && is_behind(known))
            .map(|(id, _)| *id)
            .collect();
        let Base { index, term, .. } = *self.base();
        behind.into_iter().for_each(|id| self.send(MemberId(id), Body::Behind { index, term }));
    }
}
