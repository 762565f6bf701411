//! How a leader has another member lead, without an election timeout between.
//!
//! It lets that one have all of its log, takes nothing new meanwhile, and tells it to stand. Whoever is told so is voted
//! for though a leader was heard of just now, so a lease by heartbeats is none from there on: the leader has no lease in
//! this term any more, also where the other one never leads. Then it gives the lead up after an election timeout, since
//! the word to stand may arrive yet.
//!
//! Source: Ongaro, "Consensus: Bridging Theory and Practice", sections 3.10 and 6.4.1.

use super::{ELECTION_TURNS, Quorum};
use crate::member::MemberId;
use crate::message::Body;

impl Quorum {
    /// Begins to have another one lead: of those that are meant who has most. Says who it is; none, and nothing changes, if
    /// this one does not lead or no such member votes and was heard of lately. Whoever carries this has to stop answering by
    /// an earlier lease before anything that is sent next goes.
    pub fn hand_over(&mut self, is_meant: impl Fn(MemberId) -> bool) -> Option<MemberId> {
        if self.is_handing_over() {
            return self.node.raft.lead_transferee.map(MemberId);
        }
        let progress = self.progress();
        let could = progress.iter().filter(|(id, known)| {
            **id != self.me && is_meant(**id) && known.member.is_voter && known.is_active
        });
        let (to, _) = could.max_by_key(|(_, known)| known.matched)?;
        let to = *to;
        self.handed_over_in = self.node.raft.term;
        self.node.transfer_leader(to.0);
        Some(to)
    }

    /// Whether it leads, and another one is to.
    pub fn is_handing_over(&self) -> bool {
        self.is_leader() && self.handed_over_in == self.node.raft.term
    }

    /// Asks who leads to have this member lead. False if nobody does, as far as it knows.
    pub fn ask_for_lead(&mut self) -> bool {
        let leader = self.leader().filter(|leader| *leader != self.me);
        leader.map(|leader| self.send(leader, Body::Asks)).is_some()
    }

    /// Gives the lead up where whoever was told to take it has not.
    pub(super) fn end_handover(&mut self) {
        if self.is_handing_over() && self.node.raft.lead_transferee.is_none() {
            self.step_down();
        }
    }

    /// Gives the lead up, for any other to take after an election timeout. Alone, nobody else can.
    pub fn step_down(&mut self) {
        if self.is_leader() && !self.is_alone() {
            let term = self.node.raft.term;
            self.node.raft.become_follower(term, raft::INVALID_ID);
            self.draw();
            // Its own log may be the longest, and its disk still hang.
            self.quiet = 2 * ELECTION_TURNS;
        }
    }
}
