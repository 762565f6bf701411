//! Three members in one place, whose turns a test gives.

use cairn_quorum::{Base, Change, ELECTION_TURNS, Entry, MemberId, Quorum, Role, Saved};
use std::time::Duration;

pub const TURN: Duration = Duration::from_millis(50);

/// Three members whose messages arrive at once, and whose disks are fast, but for those of whom they are cut off.
pub struct Three {
    pub members: Vec<Quorum>,
    messages: Vec<(MemberId, Vec<u8>)>,
    pub agreed: Vec<Vec<Entry>>,
    pub cut_off: Option<MemberId>,
    /// Whether members show what is agreed on as soon as they are told.
    pub shows: bool,
    pub now: Duration,
}

impl Three {
    /// The first one leads.
    pub fn new() -> Three {
        let mut base = Base::founded(MemberId(1), "a");
        for (id, name) in [(MemberId(2), "b"), (MemberId(3), "c")] {
            base.members.change(&Change::AddLearner { id, name: name.to_string() });
            base.members.change(&Change::Promote { id });
        }
        let saved = Saved { base, ..Saved::default() };
        let open = |id| Quorum::open(MemberId(id), &saved, TURN, Duration::ZERO).unwrap();
        let (messages, agreed) = (Vec::new(), vec![Vec::new(); 3]);
        let members = vec![open(1), open(2), open(3)];
        let (cut_off, shows, now) = (None, true, Duration::ZERO);
        let mut three = Three { members, messages, agreed, cut_off, shows, now };
        while three.leader() != Some(0) {
            // The others are more patient.
            three.tick(|at| if at == 0 { 0 } else { ELECTION_TURNS as u32 - 1 });
        }
        // A majority answers heartbeats.
        (0..3).for_each(|_| three.tick(|_| 5));
        assert!(three.lease(0).is_some());
        three
    }

    pub fn tick(&mut self, dice: impl Fn(usize) -> u32) {
        self.now += TURN;
        for (at, member) in self.members.iter_mut().enumerate() {
            member.tick(self.now, dice(at));
        }
        self.carry();
    }

    /// Until nobody has anything to say.
    pub fn carry(&mut self) {
        loop {
            for (at, member) in self.members.iter_mut().enumerate() {
                while let Some(ready) = member.ready() {
                    member.persisted(ready.number);
                    self.messages.extend(ready.send_now.into_iter().chain(ready.send_later));
                    if let Some(last) = ready.committed.last().filter(|_| self.shows) {
                        member.shown(last.term, last.index);
                    }
                    self.agreed[at].extend(ready.committed);
                }
            }
            if self.messages.is_empty() {
                return;
            }
            for (to, bytes) in std::mem::take(&mut self.messages) {
                let there = self.members.iter_mut().find(|member| member.me() == to);
                if let Some(member) = there.filter(|_| self.cut_off != Some(to)) {
                    member.step(self.now, &bytes).unwrap();
                }
            }
        }
    }

    pub fn leader(&self) -> Option<usize> {
        let leads = |member: &Quorum| member.role() == Role::Leader { is_ready: true };
        self.members.iter().position(leads)
    }

    pub fn lease(&self, at: usize) -> Option<Duration> {
        self.members[at].lease(self.now)
    }
}
