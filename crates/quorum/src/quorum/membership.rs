//! How the members of a quorum change: those who come and go by themselves, and those whom an operator shuts out.

use super::{Progress, Quorum, Role};
use crate::member::{Change, Member, MemberId};
use crate::refused::{NotChanged, NotProposed};
use std::collections::BTreeMap;

/// Entries that a learner may lack when it begins to vote.
const NEARLY: u64 = 16;

impl Quorum {
    /// Has everybody agree on other members, if it leads and no other change is under way.
    pub fn change(&mut self, change: &Change) -> Result<(), NotProposed> {
        if !self.is_leader() {
            return Err(NotProposed::NotLeader);
        }
        if self.node.raft.has_pending_conf() {
            return Err(NotProposed::Busy);
        }
        let context = change.to_bytes();
        self.node.propose_conf_change(context, change.to_raft()).map_err(|_| NotProposed::NotLeader)
    }

    /// Has who is called so be no member any more, also while it is there, until it is let in again.
    pub fn shut_out(&mut self, name: &str) -> Result<(), NotChanged> {
        if !self.is_leader() {
            return Err(NotProposed::NotLeader.into());
        }
        let is_it = |member: &&Member| member.name == name && !member.is_out;
        // Of two that are called so one takes the place of the other.
        let of_name = self.members.0.iter().filter(|(_, member)| is_it(member));
        let found = of_name.max_by_key(|(_, member)| member.is_voter).map(|(id, _)| *id);
        let id = found.ok_or(NotChanged::Unknown)?;
        if self.is_alone() && id == self.me {
            return Err(NotChanged::LastVoter);
        }
        if id == self.me {
            return Err(NotChanged::Leads);
        }
        let progress = self.progress();
        let left = progress.iter().filter(|(other, it)| it.member.is_voter && **other != id);
        let is_there: Vec<bool> = left.map(|(_, it)| it.is_active).collect();
        let (left, there) = (is_there.len(), is_there.into_iter().filter(|there| *there).count());
        if there <= left / 2 {
            return Err(NotChanged::MajorityLost { left, there });
        }
        Ok(self.change(&Change::ShutOut { id })?)
    }

    /// Has who is called so and was shut out join again when it is there.
    pub fn let_in(&mut self, name: &str) -> Result<(), NotChanged> {
        if !self.is_leader() {
            return Err(NotProposed::NotLeader.into());
        }
        let is_it = |member: &Member| member.is_out && member.name == name;
        let out = self.members.0.iter().find(|(_, member)| is_it(member)).map(|(id, _)| *id);
        Ok(self.change(&Change::Remove { id: out.ok_or(NotChanged::NotOut)? })?)
    }

    /// Who leads and is no member any more has another one lead.
    pub(super) fn leave(&mut self) {
        let is_to = self.is_leader() && !self.members.is_voter(self.me) && !self.is_handing_over();
        if is_to && self.hand_over(|_| true).is_none() {
            self.step_down();
        }
    }

    /// What is to be changed next so that those who are there under their names now are the voters: somebody new follows,
    /// votes when it has nearly all, and then takes the place of who had its name before. None if it does not lead, or has
    /// nothing to change.
    pub fn next_change(&self, present: &BTreeMap<String, MemberId>) -> Option<Change> {
        if self.role() != (Role::Leader { is_ready: true }) || self.node.raft.has_pending_conf() {
            return None;
        }
        let is_out = |name: &String| {
            let mut members = self.members.0.values();
            members.any(|member| member.is_out && member.name == *name)
        };
        let present: BTreeMap<&String, &MemberId> =
            present.iter().filter(|(name, _)| !is_out(name)).collect();
        let stranger = present.iter().find(|(_, id)| !self.members.0.contains_key(id));
        if let Some((name, id)) = stranger {
            return Some(Change::AddLearner { id: **id, name: name.to_string() });
        }
        let progress = self.progress();
        let has_nearly_all = |known: &Progress| known.matched + NEARLY >= self.last_committed();
        let learner = progress.iter().find(|(id, known)| {
            let is_there = present.get(&known.member.name) == Some(id);
            !known.member.is_voter && is_there && known.is_active && has_nearly_all(known)
        });
        if let Some((id, _)) = learner {
            return Some(Change::Promote { id: *id });
        }
        let is_replaced = |id: MemberId, member: &Member| {
            let other = present.get(&member.name).filter(|other| ***other != id);
            id != self.me && other.is_some_and(|other| self.members.is_voter(**other))
        };
        let old = self.members.0.iter().find(|(id, member)| is_replaced(**id, member));
        old.map(|(id, _)| Change::Remove { id: *id })
    }
}
