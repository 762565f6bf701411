//! The thread that drives a member.
//!
//! It never waits for a disk: heartbeats go out while another thread syncs ([`super::writer`]). A leader whose sync takes
//! longer than an election would, or whose disk fails, has another member lead. Turns that were missed while the process
//! stood still are not made up for, as [`cairn_quorum`] demands.

use super::disk::{Disk, DiskError};
use super::hello::{Hello, Own};
use super::incoming::Snapshot;
use super::port::{Frame, Port};
use super::writer::{Done, Job, Writer};
use crate::clock::since_boot;
use cairn_process::held::held;
use cairn_quorum::{
    Ballot, Base, ELECTION_TURNS, Entry, MemberId, Membership, NotChanged, Payload, Progress,
    Quorum, QuorumError, Ready, Role, Saved,
};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// No disk is slow because of a sync that takes less, however soon a leader is missed.
const SLOW_SYNC: Duration = Duration::from_secs(1);

/// Who was not heard of for this long is not there.
const ABSENT: Duration = Duration::from_secs(2);

/// Why a member does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Its file can't be used.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// What it has makes no sense.
    #[error(transparent)]
    Quorum(#[from] QuorumError),
    /// A thread, or the port.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// Another member, which runs, keeps its promises there.
    #[error("{}: another NameNode has this folder; each member needs one of its own", path.display())]
    InUse {
        /// The folder.
        path: PathBuf,
    },
    /// The system gives no random numbers.
    #[error("no random numbers: {0}")]
    Random(getrandom::Error),
}

/// Where in the log something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Whose leader has put it there.
    pub term: u64,
    /// Its number.
    pub index: u64,
}

/// Why something was not agreed on, as far as is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAgreed {
    /// This member does not lead: nothing was done.
    #[error("this member does not lead")]
    NotLeader,
    /// It has lost the lead meanwhile, or ends: it may be agreed on yet.
    #[error("this member has lost the lead; whether it was agreed on is not known")]
    Unknown,
}

/// What a member is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// It leads, all that was agreed on before was given out, and no other one is about to lead.
    pub leads: bool,
    /// Its term.
    pub term: u64,
    /// Who leads, by name, as far as it knows.
    pub leader: Option<String>,
    /// The last entry that was given out.
    pub last: u64,
    /// All members.
    pub members: Membership,
    /// The number that was drawn for the quorum; 0 if it is in none yet.
    pub quorum: u64,
    /// How often another one has led since this one was started.
    pub changes: u64,
    /// It would serve well if it led.
    pub is_ready: bool,
    /// How far each is, if it leads.
    pub progress: BTreeMap<MemberId, Progress>,
    /// Who was heard of lately, by name, and whether it is ready to lead.
    pub present: BTreeMap<String, bool>,
    /// Names of those of them who are configured otherwise than this one.
    pub differ: BTreeSet<String>,
    /// Names of those who want a snapshot, if it leads.
    pub wants: BTreeSet<String>,
    /// Where its log begins.
    pub base: Base,
    /// Until when nobody else can lead, by the clock since boot.
    pub(crate) lease: Option<Duration>,
    /// Why it has stopped.
    pub failed: Option<String>,
}

impl Status {
    /// Whether it leads in that term, and nobody else can at that moment.
    pub(super) fn may_answer(&self, term: u64, now: Duration) -> bool {
        self.leads && self.term == term && self.lease.is_some_and(|until| until > now)
    }
}

pub(super) type Reply = Sender<Result<Place, NotAgreed>>;

/// What the thread is told.
pub(super) enum Input {
    Heard(String, Frame),
    Propose(u64, Vec<u8>, Reply),
    /// The leader of that term shows everything up to there.
    Shown(Place),
    Needs(Base, Sender<bool>),
    GoOnFrom(Snapshot, Sender<()>),
    /// Of the core that was begun as the so-manieth.
    Written(u64, Done),
    Forget(u64),
    /// To whom, by name; answered with who it is.
    HandOver(Option<String>, Sender<Option<String>>),
    AskForLead(Sender<bool>),
    /// Who is called so is shut out, or let in again.
    Change {
        name: String,
        out: bool,
        reply: Sender<Result<(), NotChanged>>,
    },
    Close,
}

struct Core {
    quorum: Quorum,
    writer: Writer,
}

/// A member that was heard of.
struct Present {
    id: MemberId,
    at: Instant,
    is_ready: bool,
    differs: bool,
}

/// See the module.
pub(super) struct Carrier {
    own: Arc<Own>,
    me: MemberId,
    name: String,
    dir: PathBuf,
    turn: Duration,
    port: Port,
    /// None until it has joined.
    core: Option<Core>,
    /// How many there were: what is told of an earlier one says nothing of this one.
    begun: u64,
    inputs: Sender<Input>,
    agrees: Sender<Entry>,
    /// Who was heard of, by name.
    present: BTreeMap<String, Present>,
    /// Who wants a snapshot, and when that was heard.
    wants: BTreeMap<String, Instant>,
    /// Proposals that are not agreed on yet, in order.
    waiting: VecDeque<(Place, Reply)>,
    /// What is on its way to the disk, and since when.
    writing: VecDeque<(u64, Instant)>,
    /// Why it can't go on, and since when another one is to lead for that reason.
    failed: Option<(String, Instant)>,
    status: Arc<Mutex<Status>>,
}

impl Carrier {
    /// Of a member that has not begun yet. What it is told comes from where `inputs` leads as well.
    pub fn new(
        own: Arc<Own>,
        (name, dir): (String, PathBuf),
        turn: Duration,
        port: Port,
        (inputs, agrees): (Sender<Input>, Sender<Entry>),
        status: Arc<Mutex<Status>>,
    ) -> Carrier {
        Carrier {
            me: own.hello().id,
            own,
            name,
            dir,
            turn,
            port,
            core: None,
            begun: 0,
            inputs,
            agrees,
            present: BTreeMap::new(),
            wants: BTreeMap::new(),
            waiting: VecDeque::new(),
            writing: VecDeque::new(),
            failed: None,
            status,
        }
    }

    /// Begins with what was saved.
    pub fn begin(&mut self, disk: Disk, quorum: Quorum) -> io::Result<()> {
        self.begun += 1;
        let (begun, inputs, of) = (self.begun, self.inputs.clone(), disk.quorum());
        let tells = move |done| inputs.send(Input::Written(begun, done)).is_ok();
        self.core = Some(Core { quorum, writer: Writer::start(disk, tells)? });
        self.own.joins(of);
        Ok(())
    }

    /// Goes on until it is told to close, or can't.
    pub fn run(mut self, events: &Receiver<Input>) {
        let mut next_turn = Instant::now();
        loop {
            let now = Instant::now();
            if now >= next_turn {
                self.tick();
                next_turn = now + self.turn;
            }
            let rest = next_turn.saturating_duration_since(Instant::now());
            let mut event = match events.recv_timeout(rest) {
                Ok(event) => Some(event),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return,
            };
            while let Some(input) = event {
                match input {
                    Input::Close => return,
                    input => self.hear(input),
                }
                event = if Instant::now() < next_turn { events.try_recv().ok() } else { None };
            }
            if self.is_handing_over() {
                // Nobody is answered by an earlier lease once another one may lead.
                self.tell();
            }
            self.work();
            if let Some(why) = self.is_over() {
                tracing::error!(why, "this member of the quorum stops");
                *held(&self.status) = Status { failed: Some(why), ..Status::default() };
                return;
            }
            self.tell();
        }
    }

    fn is_handing_over(&self) -> bool {
        self.core.as_ref().is_some_and(|core| core.quorum.is_handing_over())
    }

    /// Why it ends, if it has failed and another one leads or has had the time to.
    fn is_over(&self) -> Option<String> {
        let (why, since) = self.failed.as_ref()?;
        let waits = self.is_handing_over() && since.elapsed() < self.election();
        (!waits).then(|| why.clone())
    }

    /// The shortest time that an election takes.
    fn election(&self) -> Duration {
        self.turn * ELECTION_TURNS as u32
    }

    fn tick(&mut self) {
        let Some(core) = &mut self.core else { return };
        // One that repeats is as good.
        let dice = getrandom::u32().unwrap_or_default();
        core.quorum.hold_back(!self.own.hello().is_ready);
        core.quorum.tick(since_boot(), dice);
        let leads = core.quorum.role() != Role::Follower && !core.quorum.is_handing_over();
        let slow = self.election().max(SLOW_SYNC);
        if leads && self.writing.front().is_some_and(|(_, since)| since.elapsed() > slow) {
            tracing::warn!("the disk of the quorum's log is slow: another member is to lead");
            if self.hand_over(None).is_none()
                && let Some(core) = &mut self.core
            {
                core.quorum.step_down();
            }
        }
        if leads && !self.own.has_space() && self.hand_over_to_ready().is_some() {
            tracing::warn!("there is too little space for the log: another member is to lead");
        }
        self.present.retain(|_, present| present.at.elapsed() < ABSENT);
        self.wants.retain(|_, heard| heard.elapsed() < ABSENT);
        self.change_members();
    }

    /// Has the members changed, if they are to be and no change is under way.
    fn change_members(&mut self) {
        let Some(core) = &mut self.core else { return };
        let present = self.present.iter().map(|(name, present)| (name.clone(), present.id));
        let present = present.chain([(self.name.clone(), self.me)]).collect();
        if let Some(change) = core.quorum.next_change(&present)
            && core.quorum.change(&change).is_ok()
        {
            tracing::info!(?change, "the members of the quorum change");
        }
    }

    /// Begins to have another member lead: who is called so, or of those that are ready, or of all, who has most.
    fn hand_over(&mut self, to: Option<&str>) -> Option<String> {
        let told = match to {
            Some(name) => {
                let called = self.present.get(name)?.id;
                self.core.as_mut()?.quorum.hand_over(|id| id == called)?
            }
            None => match self.hand_over_to_ready() {
                Some(told) => told,
                None => self.core.as_mut()?.quorum.hand_over(|_| true)?,
            },
        };
        let core = self.core.as_ref()?;
        let name = core.quorum.members().0.get(&told).map(|member| member.name.clone())?;
        tracing::info!(name, "another member is to lead");
        Some(name)
    }

    /// The same, to none but those that are ready.
    fn hand_over_to_ready(&mut self) -> Option<MemberId> {
        let present = &self.present;
        let is_ready = |id| present.values().any(|known| known.id == id && known.is_ready);
        self.core.as_mut()?.quorum.hand_over(is_ready)
    }

    fn hear(&mut self, input: Input) {
        match (input, &mut self.core) {
            (Input::Heard(name, Frame::Hello(hello)), _) => {
                let Hello { id, has_log, wants, is_ready, settings, .. } = hello;
                if has_log {
                    let differs = settings != self.own.hello().settings;
                    let present = Present { id, at: Instant::now(), is_ready, differs };
                    self.present.insert(name.clone(), present);
                }
                if wants {
                    self.wants.insert(name, Instant::now());
                } else {
                    self.wants.remove(&name);
                }
            }
            (Input::Heard(_, Frame::Message(bytes)), Some(core)) => {
                if let Err(error) = core.quorum.step(since_boot(), &bytes) {
                    tracing::warn!(%error, "a member of the quorum says what is not understood");
                }
            }
            (Input::Propose(term, data, reply), Some(core)) => {
                let leads = core.quorum.term() == term;
                match Some(core).filter(|_| leads).map(|core| core.quorum.propose(data)) {
                    Some(Ok((term, index))) => {
                        self.waiting.push_back((Place { term, index }, reply));
                    }
                    Some(Err(_)) | None => drop(reply.send(Err(NotAgreed::NotLeader))),
                }
            }
            (Input::Propose(_, _, reply), None) => drop(reply.send(Err(NotAgreed::NotLeader))),
            (Input::Shown(Place { term, index }), Some(core)) => core.quorum.shown(term, index),
            (Input::Needs(base, reply), core) => {
                let needs = core.as_ref().is_none_or(|core| core.quorum.needs(&base));
                // Who has asked may have gone away.
                let _ = reply.send(needs);
            }
            (Input::GoOnFrom(snapshot, reply), core) => {
                let needs = core.as_ref().is_none_or(|core| core.quorum.needs(&snapshot.base));
                if needs && let Err(error) = self.go_on_from(&snapshot) {
                    // The disk has said what is wrong with it.
                    self.fail(error.to_string());
                }
                // Who has asked may have gone away.
                let _ = reply.send(());
            }
            (Input::Written(begun, done), Some(core)) if begun == self.begun => match done {
                Done::Persisted { number, send_later } => {
                    core.quorum.persisted(number);
                    self.writing.retain(|(written, _)| *written > number);
                    self.post(send_later);
                }
                Done::Failed(why) => self.fail(why),
            },
            (Input::HandOver(to, reply), _) => {
                let told = self.hand_over(to.as_deref());
                // Who has asked sees that this one answers no more.
                self.tell();
                let _ = reply.send(told);
            }
            (Input::AskForLead(reply), core) => {
                let asked = core.as_mut().is_some_and(|core| core.quorum.ask_for_lead());
                // Who has asked may have gone away.
                let _ = reply.send(asked);
            }
            (Input::Change { name, out, reply }, Some(core)) => {
                let changed = match out {
                    true => core.quorum.shut_out(&name),
                    false => core.quorum.let_in(&name),
                };
                // Who has asked may have gone away.
                let _ = reply.send(changed);
            }
            (Input::Forget(index), Some(core)) => {
                if let Some(base) = core.quorum.compact(index) {
                    let first = base.index + 1;
                    let kept = (first..).map_while(|index| core.quorum.entry(index)).collect();
                    core.writer.give(Job::Compact(base, kept));
                }
            }
            (Input::Close, _) | (_, Some(_) | None) => {}
        }
    }

    /// It can't go on. If it leads, another one is to lead before it ends.
    fn fail(&mut self, why: String) {
        self.failed.get_or_insert((why, Instant::now()));
        self.hand_over(None);
    }

    /// Has its log begin where the snapshot says, and forgets no promise.
    fn go_on_from(&mut self, Snapshot { base, quorum, .. }: &Snapshot) -> Result<(), StartError> {
        // What it was about to write is in what it has promised.
        self.core = None;
        self.writing.clear();
        let saved = Disk::open(&self.dir)?;
        let ballot = saved.map_or_else(Ballot::default, |(_, saved)| saved.ballot);
        let ballot = Ballot { commit: ballot.commit.max(base.index), ..ballot };
        let saved = Saved { base: base.clone(), entries: Vec::new(), ballot };
        let disk = Disk::create(&self.dir, self.me, *quorum, &saved)?;
        let quorum = Quorum::open(self.me, &saved, self.turn, since_boot())?;
        self.begin(disk, quorum)?;
        Ok(())
    }

    /// Does what the core says.
    fn work(&mut self) {
        while let Some(ready) = self.core.as_mut().and_then(|core| core.quorum.ready()) {
            let Ready { number, send_now, ballot, entries, must_sync: sync, send_later, committed } =
                ready;
            self.post(send_now);
            self.writing.push_back((number, Instant::now()));
            if let Some(core) = &self.core {
                core.writer.give(Job::Write { number, ballot, entries, sync, send_later });
            }
            let is_change = |entry: &Entry| matches!(entry.payload, Payload::Change(_));
            let others = committed.iter().any(is_change);
            for entry in committed {
                self.answer(&entry);
                // Nobody may want them.
                let _ = self.agrees.send(entry);
            }
            if others {
                // With an even number of voters no more may be lost than with one less: it is left at once.
                self.change_members();
            }
        }
        let leads = self.core.as_ref().is_some_and(|core| core.quorum.role() != Role::Follower);
        if !leads {
            for (_, reply) in self.waiting.drain(..) {
                // Whoever has asked may have gone away.
                let _ = reply.send(Err(NotAgreed::Unknown));
            }
        }
    }

    fn answer(&mut self, entry: &Entry) {
        while let Some((place, _)) = self.waiting.front()
            && place.index <= entry.index
        {
            let is_it = *place == Place { term: entry.term, index: entry.index };
            let Some((place, reply)) = self.waiting.pop_front() else { return };
            // Whoever has asked may have gone away.
            let _ = reply.send(if is_it { Ok(place) } else { Err(NotAgreed::Unknown) });
        }
    }

    fn post(&self, messages: Vec<(MemberId, Vec<u8>)>) {
        for (to, bytes) in messages {
            let present = self.present.iter().find(|(_, present)| present.id == to);
            if let Some((name, _)) = present {
                self.port.send(name, Frame::Message(bytes));
            }
        }
    }

    fn tell(&self) {
        let Some(Core { quorum, .. }) = &self.core else { return };
        let name = |id: MemberId| quorum.members().0.get(&id).map(|member| member.name.clone());
        let leads = quorum.role() == Role::Leader { is_ready: true } && !quorum.is_handing_over();
        self.own.is_behind(quorum.is_behind());
        let leader = quorum.leader().and_then(name);
        let own = self.own.hello();
        let changes = {
            let before = held(&self.status);
            let told = (&before.leader, before.term);
            before.changes + u64::from(leader.is_some() && (&leader, quorum.term()) != told)
        };
        *held(&self.status) = Status {
            leads,
            wants: self.wants.keys().filter(|_| leads).cloned().collect(),
            base: quorum.base().clone(),
            term: quorum.term(),
            leader,
            quorum: own.quorum,
            changes,
            is_ready: own.is_ready,
            last: quorum.last_committed(),
            members: quorum.members().clone(),
            progress: quorum.progress(),
            present: self.present.iter().map(|(name, it)| (name.clone(), it.is_ready)).collect(),
            differ: self
                .present
                .iter()
                .filter(|(_, it)| it.differs)
                .map(|(name, _)| name.clone())
                .collect(),
            lease: quorum.lease(since_boot()),
            failed: None,
        };
    }
}
