//! One member: what it takes, what it says is to be done, and what it knows of the others.

mod handover;
mod lost;
mod membership;

use crate::encoding::Malformed;
use crate::entry::{Ballot, Base, Entry, Payload, Reach, Saved};
use crate::lease::Lease;
use crate::log::Log;
use crate::member::{Member, MemberId, Membership};
use crate::message::{Body, Message};
use crate::refused::NotProposed;
use raft::eraftpb::{self, MessageType};
use raft::{RawNode, StateRole, Storage};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

/// Turns in which a leader sends one heartbeat.
const HEARTBEAT_TURNS: usize = 2;

/// Turns without a heartbeat after which a member may stand. On top come as many again at most, by rank or by dice.
pub const ELECTION_TURNS: usize = 10;

/// Turns in which a member that stands has been elected, if it can be.
const RANK_TURNS: usize = 3;

/// Turns by which who holds back stands later: the longest that others wait, and one to be heard in.
const HELD_BACK_TURNS: usize = 2 * ELECTION_TURNS + 1;

/// Turns for which a lease lasts: as a turn may come just behind a heartbeat, and clocks do not run quite alike, less than
/// [`ELECTION_TURNS`].
const LEASE_TURNS: u32 = 8;

/// Bytes of entries in one message, more if one entry is longer.
const MESSAGE_LEN_GOAL: u64 = 1 << 20;

/// Messages with entries that may be on their way to a member.
const IN_FLIGHT_MAX: usize = 64;

/// Why a member cannot be.
#[derive(Debug, thiserror::Error)]
pub enum QuorumError {
    /// The library finds what was saved to be impossible.
    #[error("what this member has saved cannot be gone on with: {0}")]
    Saved(raft::Error),
}

/// What is to be done, in this order.
#[derive(Debug, Default)]
pub struct Ready {
    /// To be told to [`Quorum::persisted`].
    pub number: u64,
    /// Messages, with who is to get them, that need not wait for the disk.
    pub send_now: Vec<(MemberId, Vec<u8>)>,
    /// To be written: it takes the place of the one before.
    pub ballot: Option<Ballot>,
    /// To be written: they take the place of all from the first one's place on.
    pub entries: Vec<Entry>,
    /// Whether what is written must be on the disk before `send_later` goes and the number is told.
    pub must_sync: bool,
    /// Messages that wait until all of that, and of those before, is on the disk.
    pub send_later: Vec<(MemberId, Vec<u8>)>,
    /// What is agreed on now, each entry once, in order.
    pub committed: Vec<Entry>,
}

/// What a member is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It leads; `is_ready` when all that was agreed on before its term was given out.
    Leader {
        /// See there.
        is_ready: bool,
    },
    /// It follows, or asks to lead.
    Follower,
}

/// How far a member is, as its leader knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Who it is.
    pub member: Member,
    /// The last entry that it is known to have.
    pub matched: u64,
    /// It was heard of lately.
    pub is_active: bool,
}

/// One member.
pub struct Quorum {
    node: RawNode<Log>,
    me: MemberId,
    turn: Duration,
    now: Duration,
    members: Membership,
    /// The last entry that has decided of them.
    members_at: u64,
    /// As it was last given out.
    ballot: Ballot,
    lost: Option<Reach>,
    /// What was lost had been agreed on, so who is a member may be as well.
    has_lost_committed: bool,
    /// The last entry that it knew to be agreed on when it started, whether it has that or not.
    commit: u64,
    /// Turns in which it votes for nobody.
    quiet: usize,
    /// Turns without a leader after which it stands.
    patience: usize,
    /// Others are to stand before it.
    holds_back: bool,
    lease: Lease,
    /// Who had been heard of when this leader last looked: from there on the library counts anew.
    were_active: BTreeSet<u64>,
    /// The last term in which it has begun to have another member lead.
    handed_over_in: u64,
    /// What it has proposed as the leader of that term and does not show yet, in order.
    unshown: (u64, VecDeque<u64>),
    /// When the last heartbeat of a leader was sent, by that one's clock.
    heard: Option<(MemberId, u64)>,
    /// How far the others' logs go that were asked for that.
    last: BTreeMap<MemberId, Reach>,
    /// Turns until others are told what was lost.
    until_asked: usize,
    /// A leader's log does not go back far enough.
    is_behind: bool,
    outbox: Vec<(MemberId, Vec<u8>)>,
}

impl Quorum {
    /// A member that goes on with what it has saved. `turn` is the time between two turns at least, `now` the time by a
    /// clock that runs on while the process stands still.
    pub fn open(
        me: MemberId,
        saved: &Saved,
        turn: Duration,
        now: Duration,
    ) -> Result<Quorum, QuorumError> {
        let config = raft::Config {
            id: me.0,
            election_tick: ELECTION_TURNS,
            max_election_tick: 2 * ELECTION_TURNS + HELD_BACK_TURNS,
            heartbeat_tick: HEARTBEAT_TURNS,
            applied: saved.base.index,
            max_size_per_msg: MESSAGE_LEN_GOAL,
            max_inflight_msgs: IN_FLIGHT_MAX,
            check_quorum: true,
            pre_vote: true,
            ..raft::Config::default()
        };
        let silent = slog::Logger::root(slog::Discard, slog::o!());
        let node = RawNode::new(&config, Log::new(saved), &silent).map_err(QuorumError::Saved)?;
        let last = node.raft.raft_log.last_index();
        let lost = saved.ballot.lost.filter(|lost| lost.index > last);
        let mut quorum = Quorum {
            me,
            turn,
            now,
            members: saved.base.members.clone(),
            members_at: saved.base.index,
            ballot: saved.ballot,
            lost,
            has_lost_committed: saved.ballot.commit > last,
            commit: saved.ballot.commit,
            quiet: ELECTION_TURNS,
            patience: ELECTION_TURNS,
            holds_back: false,
            lease: Lease::default(),
            were_active: BTreeSet::new(),
            handed_over_in: 0,
            unshown: (0, VecDeque::new()),
            heard: None,
            last: BTreeMap::new(),
            until_asked: 0,
            is_behind: false,
            outbox: Vec::new(),
            node,
        };
        // Nothing is decided by members of before.
        for index in saved.base.index + 1..=quorum.node.raft.raft_log.committed {
            let entry = quorum.node.store().get(index).map(Entry::from_raft);
            if let Some(Ok(entry)) = entry {
                quorum.take_in(&entry);
            }
        }
        Ok(quorum)
    }

    /// Has a committed entry decide who is a member, if it does. Says whether it was a change.
    fn take_in(&mut self, entry: &Entry) -> bool {
        if entry.index <= self.members_at {
            return false;
        }
        self.members_at = entry.index;
        let Payload::Change(change) = &entry.payload else { return false };
        let _ = self.node.apply_conf_change(&change.to_raft());
        self.members.change(change);
        true
    }

    /// Who it is.
    pub fn me(&self) -> MemberId {
        self.me
    }

    /// A turn has passed; never called for turns that were missed. `dice` is a random number.
    pub fn tick(&mut self, now: Duration, dice: u32) {
        self.now = now;
        if self.quiet > 0 {
            self.quiet -= 1;
            // Alone, it has nobody to have promised anything to.
            if self.is_alone() {
                self.quiet = 0;
            }
        }
        if self.node.raft.election_elapsed == 0 {
            // One more, as others' turns may come later than its own, and they vote for nobody before.
            let more = match self.rank() {
                Some(rank) => (1 + rank * RANK_TURNS).min(ELECTION_TURNS - 1),
                None => dice as usize % ELECTION_TURNS,
            };
            self.patience = ELECTION_TURNS + more;
            self.draw();
        }
        self.look_for_lost();
        // Whoever has just started, or lacks the end of its log, does not stand.
        if self.quiet == 0 && self.lost.is_none() || self.is_leader() {
            let active = self.active();
            self.node.tick();
            if self.node.raft.election_elapsed == 0 {
                self.were_active = active;
            }
            self.draw();
        }
        self.leave();
        self.end_handover();
        self.tell_who_is_behind();
    }

    /// Who was heard of since this leader last looked.
    fn active(&self) -> BTreeSet<u64> {
        if !self.is_leader() {
            return BTreeSet::new();
        }
        let known = self.node.raft.prs().iter().filter(|(_, known)| known.recent_active);
        known.map(|(id, _)| *id).collect()
    }

    /// How many others stand before it when the leader that it follows is missed: all draw by dice only if that comes to
    /// nothing, so that two rarely stand at once, and none waits without need.
    fn rank(&self) -> Option<usize> {
        let leader = self.leader().filter(|leader| *leader != self.me)?;
        let mut others = self.members.voters().filter(|id| *id != leader);
        others.position(|id| id == self.me)
    }

    /// The library draws by dice of its own; what was drawn here takes the place of that.
    fn draw(&mut self) {
        let holds_back = self.holds_back && !self.is_alone();
        let turns = self.patience + if holds_back { HELD_BACK_TURNS } else { 0 };
        self.node.raft.set_randomized_election_timeout(turns);
    }

    /// Whether it would serve badly if it led, so that it stands when others had the time to: it lacks what is not in the
    /// log. It votes as ever.
    pub fn hold_back(&mut self, holds_back: bool) {
        self.holds_back = holds_back;
    }

    /// Whether it may vote for somebody whose log goes so far.
    fn may_vote(&self, reach: Reach) -> bool {
        self.quiet == 0 && self.lost.is_none_or(|lost| reach >= lost)
    }

    /// Whether nobody else votes.
    fn is_alone(&self) -> bool {
        !self.has_lost_committed && self.members.voters().eq([self.me])
    }

    fn is_leader(&self) -> bool {
        self.node.raft.state == StateRole::Leader
    }

    /// A message has come.
    pub fn step(&mut self, now: Duration, bytes: &[u8]) -> Result<(), Malformed> {
        self.now = now;
        let Message { from, to, body } = Message::from_bytes(bytes)?;
        if to != self.me || from == self.me {
            return Ok(());
        }
        match body {
            Body::Last { reach, has_lost } => self.hear_last(from, reach, has_lost),
            Body::Behind { index, term } => self.hear_behind(from, index, term),
            Body::Asks => {
                // Who does not lead any more, or hears of one who could not, has nothing to give.
                let _ = self.hand_over(|id| id == from);
            }
            Body::Raft { message, stamp } => self.step_raft(from, message, stamp),
        }
        Ok(())
    }

    fn step_raft(&mut self, from: MemberId, mut message: eraftpb::Message, stamp: u64) {
        let kind = message.get_msg_type();
        let asks_for_vote =
            matches!(kind, MessageType::MsgRequestVote | MessageType::MsgRequestPreVote);
        let (term, reach) = (message.term, Reach { term: message.log_term, index: message.index });
        let is_told_to_stand = kind == MessageType::MsgTimeoutNow;
        if asks_for_vote && !self.may_vote(reach) || is_told_to_stand && self.lost.is_some() {
            return;
        }
        if kind == MessageType::MsgHeartbeat {
            // It may have lost entries of which the leader does not know.
            message.commit = message.commit.min(self.node.raft.raft_log.last_index());
        }
        if self.node.step(message).is_err() {
            return;
        }
        self.draw();
        if self.node.raft.term != term {
            return;
        }
        match kind {
            MessageType::MsgHeartbeat if self.node.raft.leader_id == from.0 => {
                self.heard = Some((from, stamp));
            }
            MessageType::MsgHeartbeatResponse if self.is_leader() => {
                let sent = Duration::from_micros(stamp).min(self.now);
                self.lease.answered(term, from, sent);
            }
            _ => {}
        }
    }

    /// Has everybody agree on this, if it leads. Says at which place; it is agreed on only when it comes back with this term
    /// and place. Other members are not told that it is before [`shown`](Self::shown) says that it can be seen here.
    pub fn propose(&mut self, data: Vec<u8>) -> Result<(u64, u64), NotProposed> {
        if !self.is_leader() {
            return Err(NotProposed::NotLeader);
        }
        self.node.propose(Vec::new(), data).map_err(|_| NotProposed::NotLeader)?;
        let (term, index) = (self.node.raft.term, self.node.raft.raft_log.last_index());
        if self.unshown.0 != term {
            self.unshown = (term, VecDeque::new());
        }
        self.unshown.1.push_back(index);
        Ok((term, index))
    }

    /// Whoever reads at this member, which leads in that term, sees all up to that place. Only now may others show it: who has
    /// seen something at one of them must not miss it here.
    pub fn shown(&mut self, term: u64, index: u64) {
        let (of, places) = &mut self.unshown;
        if *of != term {
            return;
        }
        let before = places.len();
        while places.front().is_some_and(|first| *first <= index) {
            places.pop_front();
        }
        if places.len() < before && self.is_leader() && self.node.raft.term == term {
            // They are told at once how far it is.
            self.node.ping();
        }
    }

    /// How far a leader says that the log is agreed on.
    fn told_commit(&self, commit: u64) -> u64 {
        let (term, places) = &self.unshown;
        let first = places.front().filter(|_| self.is_leader() && self.node.raft.term == *term);
        first.map_or(commit, |first| commit.min(first - 1))
    }

    /// What is to be done, if anything is.
    pub fn ready(&mut self) -> Option<Ready> {
        let ballot = self.ballot_now();
        if !self.node.has_ready() && self.outbox.is_empty() && !self.is_promise(ballot) {
            return None;
        }
        let mut found = self.node.ready();
        let entries = found.take_entries();
        self.node.mut_store().append(&entries);
        let mut ready = Ready {
            number: found.number(),
            send_now: std::mem::take(&mut self.outbox),
            must_sync: found.must_sync() || self.is_promise(ballot),
            ..Ready::default()
        };
        let messages = found.take_messages();
        let later = found.take_persisted_messages();
        let committed = found.take_committed_entries();
        self.node.advance_append_async(found);
        ready.send_now.extend(messages.into_iter().filter_map(|message| self.outgoing(message)));
        ready.send_later.extend(later.into_iter().filter_map(|message| self.outgoing(message)));
        ready.entries = entries.iter().filter_map(|entry| Entry::from_raft(entry).ok()).collect();
        for entry in committed {
            // Its bytes were read once already.
            let Ok(entry) = Entry::from_raft(&entry) else { continue };
            // Who forgets that other members were agreed on would count other majorities.
            ready.must_sync |= self.take_in(&entry);
            self.node.advance_apply_to(entry.index);
            ready.committed.push(entry);
        }
        let ballot = self.ballot_now();
        ready.ballot = (ballot != self.ballot).then_some(ballot);
        self.ballot = ballot;
        Some(ready)
    }

    fn ballot_now(&self) -> Ballot {
        let eraftpb::HardState { term, vote, commit, .. } = self.node.raft.hard_state();
        let vote = Some(MemberId(vote)).filter(|id| id.0 != 0);
        Ballot { term, vote, commit: commit.max(self.commit), lost: self.lost }
    }

    /// Whether a ballot says more than how far it knows the log to be committed.
    fn is_promise(&self, ballot: Ballot) -> bool {
        Ballot { commit: 0, ..ballot } != Ballot { commit: 0, ..self.ballot }
    }

    fn outgoing(&self, mut message: eraftpb::Message) -> Option<(MemberId, Vec<u8>)> {
        let to = MemberId(message.to);
        if matches!(message.get_msg_type(), MessageType::MsgAppend | MessageType::MsgHeartbeat) {
            message.commit = self.told_commit(message.commit);
        }
        let stamp = match (message.get_msg_type(), self.heard) {
            (MessageType::MsgHeartbeat, _) => self.now.as_micros() as u64,
            (MessageType::MsgHeartbeatResponse, Some((of, stamp))) if of == to => stamp,
            _ => 0,
        };
        let body = Body::Raft { message, stamp };
        Some((to, Message { from: self.me, to, body }.to_bytes()?))
    }

    /// Everything up to that [`Ready`] is on the disk.
    pub fn persisted(&mut self, number: u64) {
        self.node.on_persist_ready(number);
        let persisted = self.node.raft.raft_log.persisted;
        if self.node.raft.leader_id != 0 && self.lost.is_some_and(|lost| persisted >= lost.index) {
            self.lost = None;
        }
    }

    /// Has the log begin behind `index`, which was given out as committed and is no more needed here. Says where it begins,
    /// for the disk; none if nothing changes.
    pub fn compact(&mut self, index: u64) -> Option<Base> {
        let log = self.node.store();
        let index = index.min(self.node.raft.raft_log.applied);
        if index <= log.base().index {
            return None;
        }
        let mut members = log.base().members.clone();
        for index in log.base().index + 1..=index {
            if let Payload::Change(change) = Entry::from_raft(log.get(index)?).ok()?.payload {
                members.change(&change);
            }
        }
        let base = Base { index, term: log.term(index).ok()?, members };
        self.node.mut_store().compact(base.clone());
        Some(base)
    }

    /// Whether a snapshot that ends at `base` has what it has not. Otherwise its log goes through there, and what follows
    /// may count for a majority: it must not be dropped.
    ///
    /// Source: Ongaro and Ousterhout, "In Search of an Understandable Consensus Algorithm", figure 13, step 6.
    pub fn needs(&self, base: &Base) -> bool {
        self.lacks(base.index, base.term)
    }

    fn lacks(&self, index: u64, term: u64) -> bool {
        let log = self.node.store();
        index > log.base().index && log.term(index).ok() != Some(term)
    }

    /// Where its log begins.
    pub fn base(&self) -> &Base {
        self.node.store().base()
    }

    /// An entry that its log has, committed or not.
    pub fn entry(&self, index: u64) -> Option<Entry> {
        Entry::from_raft(self.node.store().get(index)?).ok()
    }

    /// The last entry that was given out as committed.
    pub fn last_committed(&self) -> u64 {
        self.node.raft.raft_log.applied
    }

    /// The term.
    pub fn term(&self) -> u64 {
        self.node.raft.term
    }

    /// What it is.
    pub fn role(&self) -> Role {
        match self.is_leader() {
            true => Role::Leader { is_ready: self.node.raft.apply_to_current_term() },
            false => Role::Follower,
        }
    }

    /// Who leads, as far as it knows.
    pub fn leader(&self) -> Option<MemberId> {
        Some(MemberId(self.node.raft.leader_id)).filter(|id| id.0 != 0)
    }

    /// Who is in it, as far as it was given out.
    pub fn members(&self) -> &Membership {
        &self.members
    }

    /// Whether it has lost the end of its log.
    pub fn has_lost(&self) -> bool {
        self.lost.is_some()
    }

    /// Whether its leader's log does not go back to what it has: it needs a snapshot.
    pub fn is_behind(&self) -> bool {
        self.is_behind
    }

    /// Until when nobody else can lead, by the clock of `now`; none if it does not lead, has not heard of a majority, or
    /// has begun to have another one lead.
    pub fn lease(&self, now: Duration) -> Option<Duration> {
        if !self.is_leader() || self.is_handing_over() {
            return None;
        }
        let length = self.turn * LEASE_TURNS;
        self.lease.until(self.node.raft.term, self.me, self.members.voters(), now, length)
    }

    /// How far each member is, if it leads.
    pub fn progress(&self) -> BTreeMap<MemberId, Progress> {
        let of = |(id, member): (&MemberId, &Member)| {
            let known = self.node.raft.prs().get(id.0)?;
            let was_active = self.were_active.contains(&id.0);
            let is_active = known.recent_active || was_active || *id == self.me;
            let member = member.clone();
            Some((*id, Progress { member, matched: known.matched, is_active }))
        };
        if self.is_leader() {
            self.members.0.iter().filter_map(of).collect()
        } else {
            BTreeMap::new()
        }
    }

    fn send(&mut self, to: MemberId, body: Body) {
        if let Some(bytes) = (Message { from: self.me, to, body }).to_bytes() {
            self.outbox.push((to, bytes));
        }
    }

    /// How far its log goes on the disk.
    fn reach(&self) -> Reach {
        let index = self.node.raft.raft_log.persisted;
        Reach { term: self.node.raft.raft_log.term(index).unwrap_or(0), index }
    }
}
