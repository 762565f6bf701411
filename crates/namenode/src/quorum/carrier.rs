//! The thread that drives a member, and the one that writes its file.
//!
//! The first never waits for a disk: heartbeats go out while the other one syncs. A leader whose sync takes longer than
//! an election would gives the lead up. Turns that were missed while the process stood still are not made up for, as
//! [`cairn_quorum`] demands.

use super::disk::{Disk, DiskError};
use super::incoming::{Incoming, Snapshot};
use super::link::Key;
use super::port::{Frame, Hears, Port, SendError, send_snapshot};
use crate::clock::since_boot;
use cairn_net::held::held;
use cairn_quorum::{
    Ballot, Base, ELECTION_TURNS, Entry, MemberId, Membership, Quorum, QuorumError, Ready, Role,
};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Who was not heard of for this long is not there.
const ABSENT: Duration = Duration::from_secs(2);

/// How a member is started.
#[derive(Debug)]
pub struct Options {
    /// The folder of its file.
    pub dir: PathBuf,
    /// What the configuration calls it.
    pub name: String,
    /// Where it listens.
    pub listener: TcpListener,
    /// `host:port` of the others, by name: the same on all.
    pub others: BTreeMap<String, String>,
    /// What all members have.
    pub key: Key,
    /// The time between two turns; an election takes ten to twenty.
    pub turn: Duration,
}

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
    /// It leads, and all that was agreed on before was given out.
    pub leads: bool,
    /// Its term.
    pub term: u64,
    /// Who leads, by name, as far as it knows.
    pub leader: Option<String>,
    /// The last entry that was given out.
    pub last: u64,
    /// All members.
    pub members: Membership,
    /// Names of those who want a snapshot, if it leads.
    pub wants: BTreeSet<String>,
    /// Where its log begins.
    pub base: Base,
    /// Until when nobody else can lead, by the clock since boot.
    lease: Option<Duration>,
    /// Why it has stopped.
    pub failed: Option<String>,
}

type Reply = Sender<Result<Place, NotAgreed>>;

enum Input {
    Heard(String, Frame),
    Propose(u64, Vec<u8>, Reply),
    Needs(Base, Sender<bool>),
    GoOnFrom(Base, Sender<()>),
    /// Of the core that was begun as the so-manieth.
    Persisted {
        core: u64,
        number: u64,
        send_later: Vec<(MemberId, Vec<u8>)>,
    },
    Failed(String),
    Forget(u64),
    HandOver,
    Close,
}

enum Job {
    Write {
        number: u64,
        ballot: Option<Ballot>,
        entries: Vec<Entry>,
        sync: bool,
        send_later: Vec<(MemberId, Vec<u8>)>,
    },
    Compact(Base, Vec<Entry>),
}

/// Begins a quorum whose only member has its file in `dir` and is called `name`. Once, for one member; all others join. False
/// if there is a file: that one belongs to a quorum.
pub fn found(dir: &Path, name: &str) -> Result<bool, StartError> {
    if Disk::open(dir)?.is_some() {
        return Ok(false);
    }
    let me = new_id()?;
    Disk::create(dir, me, &Base::founded(me, name), Ballot::default())?;
    Ok(true)
}

fn new_id() -> Result<MemberId, StartError> {
    Ok(MemberId(getrandom::u64().map_err(StartError::Random)?.max(1)))
}

/// A member that runs. Dropping it stops it.
pub struct Member {
    me: MemberId,
    inputs: Sender<Input>,
    status: Arc<Mutex<Status>>,
    addr: SocketAddr,
    incoming: Arc<Incoming>,
    /// What the others are told of it, where they are, and what they have as well.
    hello: Arc<dyn Fn() -> Frame + Send + Sync>,
    others: BTreeMap<String, String>,
    key: Key,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Member {
    /// Starts it. What is agreed on comes out of the receiver, in order, from where its log begins.
    pub fn start(options: Options) -> Result<(Member, Receiver<Entry>), StartError> {
        let Options { dir, name, listener, others, key, turn } = options;
        let opened = Disk::open(&dir)?;
        let me = match &opened {
            Some((disk, _)) => disk.member(),
            None => new_id()?,
        };
        let (inputs, events) = channel();
        let (agrees, agreed) = channel();
        let has_log = Arc::new(AtomicBool::new(opened.is_some()));
        let is_behind = Arc::new(AtomicBool::new(false));
        let (told, behind, to_hear) =
            (Arc::clone(&has_log), Arc::clone(&is_behind), inputs.clone());
        let mine = name.clone();
        let hello: Arc<dyn Fn() -> Frame + Send + Sync> = Arc::new(move || {
            let has_log = told.load(Ordering::SeqCst);
            let wants = !has_log || behind.load(Ordering::SeqCst);
            Frame::Hello { name: mine.clone(), id: me, has_log, wants }
        });
        let incoming = Arc::new(Incoming::new(dir.clone()));
        let hears: Hears = Arc::new(move |name, frame| {
            // Nobody listens when it ends.
            let _ = to_hear.send(Input::Heard(name, frame));
        });
        let (tells, comes) = (Arc::clone(&hello), Arc::clone(&incoming));
        let port = Port::open(listener, &others, &key, tells, hears, comes)?;
        let addr = port.addr();
        let status = Arc::<Mutex<Status>>::default();
        let mut carrier = Carrier {
            me,
            name,
            dir,
            turn,
            port,
            core: None,
            begun: 0,
            has_log,
            is_behind,
            inputs: inputs.clone(),
            agrees,
            present: BTreeMap::new(),
            wants: BTreeMap::new(),
            waiting: VecDeque::new(),
            writing: VecDeque::new(),
            status: Arc::clone(&status),
        };
        if let Some((disk, saved)) = opened {
            let quorum = Quorum::open(me, &saved, turn, since_boot())?;
            carrier.begin(disk, quorum)?;
        }
        let thread = std::thread::Builder::new().name("quorum".to_string());
        let thread = thread.spawn(move || carrier.run(&events))?;
        let thread = Mutex::new(Some(thread));
        Ok((Member { me, inputs, status, addr, incoming, hello, others, key, thread }, agreed))
    }

    /// Who it is.
    pub fn id(&self) -> MemberId {
        self.me
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Has all agree on this, if it still leads in that term: what others have had agreed on since then is not in it. Blocks
    /// until they have, or it is not known whether they will.
    pub fn propose(&self, term: u64, data: Vec<u8>) -> Result<Place, NotAgreed> {
        let (reply, answer) = channel();
        self.inputs.send(Input::Propose(term, data, reply)).map_err(|_| NotAgreed::NotLeader)?;
        answer.recv().unwrap_or(Err(NotAgreed::Unknown))
    }

    /// What it is.
    pub fn status(&self) -> Status {
        held(&self.status).clone()
    }

    /// Whether it leads in that term and nobody else can, at this moment: what it answers then is so.
    pub fn may_answer(&self, term: u64) -> bool {
        let status = held(&self.status);
        let leads = status.leads && status.term == term;
        leads && status.lease.is_some_and(|until| until > since_boot())
    }

    /// A snapshot that has come, until it is removed.
    pub fn snapshot(&self) -> Option<Snapshot> {
        self.incoming.whole()
    }

    /// The snapshot is not needed any more.
    pub fn remove_snapshot(&self) {
        self.incoming.remove();
    }

    /// Whether a snapshot that ends at `base`, or behind it, has what it lacks.
    pub fn needs(&self, base: &Base) -> bool {
        let (reply, answer) = channel();
        // Who has ended needs nothing.
        self.inputs.send(Input::Needs(base.clone(), reply)).is_ok()
            && answer.recv().unwrap_or(false)
    }

    /// Has its log begin at `base`, unless it has that already: what is before is kept elsewhere durably.
    pub fn go_on_from(&self, base: Base) {
        let (reply, answer) = channel();
        if self.inputs.send(Input::GoOnFrom(base, reply)).is_ok() {
            // An error is that it has ended, and why is in its status.
            let _ = answer.recv();
        }
    }

    /// Sends a snapshot to another member. `make` makes it after where the log begins was looked up, so that it has all
    /// before that, and has its pieces sent; it says why that can't be. Blocks.
    pub fn send_snapshot(
        &self,
        name: &str,
        make: impl FnOnce(&mut dyn FnMut(Vec<u8>) -> bool) -> Result<(), String>,
    ) -> Result<(), SendError> {
        let base = self.status().base;
        let addr = self.others.get(name).ok_or(SendError::Unknown)?;
        send_snapshot(addr, &self.key, &(self.hello)(), base, make)
    }

    /// Stops it. Blocks until nothing is written any more and its port is closed.
    pub fn close(&self) {
        // Nobody listens when it has stopped by itself.
        let _ = self.inputs.send(Input::Close);
        let thread = held(&self.thread).take();
        if thread.is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the thread of a member of the quorum has panicked");
        }
    }

    /// Gives the lead up, if it has it, for another member to take.
    pub fn hand_over(&self) {
        // Nobody listens when it ends.
        let _ = self.inputs.send(Input::HandOver);
    }

    /// What was agreed on up to `index` is kept elsewhere: the log may begin behind it.
    pub fn forget(&self, index: u64) {
        // Nobody listens when it ends.
        let _ = self.inputs.send(Input::Forget(index));
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.close();
    }
}

struct Core {
    quorum: Quorum,
    jobs: Option<Sender<Job>>,
    writer: Option<JoinHandle<()>>,
}

impl Drop for Core {
    fn drop(&mut self) {
        self.jobs = None;
        if self.writer.take().is_some_and(|writer| writer.join().is_err()) {
            tracing::error!("the thread that writes a quorum's log has panicked");
        }
    }
}

struct Carrier {
    me: MemberId,
    name: String,
    dir: PathBuf,
    turn: Duration,
    port: Port,
    /// None until it has joined.
    core: Option<Core>,
    /// How many there were: what is told of an earlier one says nothing of this one.
    begun: u64,
    has_log: Arc<AtomicBool>,
    /// It needs a snapshot though it has a log.
    is_behind: Arc<AtomicBool>,
    inputs: Sender<Input>,
    agrees: Sender<Entry>,
    /// Who was heard of, and when.
    present: BTreeMap<String, (MemberId, Instant)>,
    /// Who wants a snapshot, and when that was heard.
    wants: BTreeMap<String, Instant>,
    /// Proposals that are not agreed on yet, in order.
    waiting: VecDeque<(Place, Reply)>,
    /// What is on its way to the disk, and since when.
    writing: VecDeque<(u64, Instant)>,
    status: Arc<Mutex<Status>>,
}

impl Carrier {
    fn begin(&mut self, disk: Disk, quorum: Quorum) -> io::Result<()> {
        let (jobs, queue) = channel();
        let inputs = self.inputs.clone();
        let thread = std::thread::Builder::new().name("quorum-log".to_string());
        self.begun += 1;
        let begun = self.begun;
        let writer = thread.spawn(move || write(disk, &queue, &inputs, begun))?;
        self.core = Some(Core { quorum, jobs: Some(jobs), writer: Some(writer) });
        self.has_log.store(true, Ordering::SeqCst);
        Ok(())
    }

    fn run(mut self, events: &Receiver<Input>) {
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
                    Input::Failed(why) => {
                        tracing::error!(why, "this member of the quorum stops");
                        let failed = Some(why);
                        *held(&self.status) = Status { failed, ..Status::default() };
                        return;
                    }
                    input => self.hear(input),
                }
                event = if Instant::now() < next_turn { events.try_recv().ok() } else { None };
            }
            self.work();
            self.tell();
        }
    }

    fn tick(&mut self) {
        let Some(core) = &mut self.core else { return };
        // One that repeats is as good.
        let dice = getrandom::u32().unwrap_or_default();
        core.quorum.tick(since_boot(), dice);
        let slow = self.turn * ELECTION_TURNS as u32;
        if self.writing.front().is_some_and(|(_, since)| since.elapsed() > slow)
            && core.quorum.role() != Role::Follower
        {
            tracing::warn!("the disk of the quorum's log is slow: another member is to lead");
            core.quorum.step_down();
        }
        self.present.retain(|_, (_, heard)| heard.elapsed() < ABSENT);
        self.wants.retain(|_, heard| heard.elapsed() < ABSENT);
        let present = self.present.iter().map(|(name, (id, _))| (name.clone(), *id));
        let present = present.chain([(self.name.clone(), self.me)]).collect();
        if let Some(change) = core.quorum.next_change(&present)
            && core.quorum.change(&change).is_ok()
        {
            tracing::info!(?change, "the members of the quorum change");
        }
    }

    fn hear(&mut self, input: Input) {
        match (input, &mut self.core) {
            (Input::Heard(name, Frame::Hello { id, has_log, wants, .. }), _) => {
                if has_log {
                    self.present.insert(name.clone(), (id, Instant::now()));
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
            (Input::Needs(base, reply), core) => {
                let needs = core.as_ref().is_none_or(|core| core.quorum.needs(&base));
                // Who has asked may have gone away.
                let _ = reply.send(needs);
            }
            (Input::GoOnFrom(base, reply), core) => {
                let needs = core.as_ref().is_none_or(|core| core.quorum.needs(&base));
                if needs && let Err(error) = self.go_on_from(&base) {
                    // The disk has said what is wrong with it.
                    let _ = self.inputs.send(Input::Failed(error.to_string()));
                }
                // Who has asked may have gone away.
                let _ = reply.send(());
            }
            (Input::Persisted { core: begun, number, send_later }, Some(core))
                if begun == self.begun =>
            {
                core.quorum.persisted(number);
                self.writing.retain(|(written, _)| *written > number);
                self.post(send_later);
            }
            (Input::HandOver, Some(core)) => core.quorum.step_down(),
            (Input::Forget(index), Some(core)) => {
                if let Some(base) = core.quorum.compact(index) {
                    let first = base.index + 1;
                    let kept = (first..).map_while(|index| core.quorum.entry(index)).collect();
                    if let Some(jobs) = &core.jobs {
                        // Whoever has ended has said why.
                        let _ = jobs.send(Job::Compact(base, kept));
                    }
                }
            }
            (Input::Failed(_) | Input::Close, _) | (_, Some(_) | None) => {}
        }
    }

    /// Has its log begin at `base`, and forgets no promise.
    fn go_on_from(&mut self, base: &Base) -> Result<(), StartError> {
        // What it was about to write is in what it has promised.
        self.core = None;
        self.writing.clear();
        let saved = Disk::open(&self.dir)?;
        let ballot = saved.map_or_else(Ballot::default, |(_, saved)| saved.ballot);
        let ballot = Ballot { commit: ballot.commit.max(base.index), ..ballot };
        Disk::create(&self.dir, self.me, base, ballot)?;
        if let Some((disk, saved)) = Disk::open(&self.dir)? {
            let quorum = Quorum::open(self.me, &saved, self.turn, since_boot())?;
            self.begin(disk, quorum)?;
        }
        Ok(())
    }

    /// Does what the core says.
    fn work(&mut self) {
        while let Some(ready) = self.core.as_mut().and_then(|core| core.quorum.ready()) {
            let Ready { number, send_now, ballot, entries, must_sync: sync, send_later, committed } =
                ready;
            self.post(send_now);
            self.writing.push_back((number, Instant::now()));
            if let Some(jobs) = self.core.as_ref().and_then(|core| core.jobs.as_ref()) {
                // Whoever has ended has said why.
                let _ = jobs.send(Job::Write { number, ballot, entries, sync, send_later });
            }
            for entry in committed {
                self.answer(&entry);
                // Nobody may want them.
                let _ = self.agrees.send(entry);
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
            let present = self.present.iter().find(|(_, (id, _))| *id == to);
            if let Some((name, _)) = present {
                self.port.send(name, Frame::Message(bytes));
            }
        }
    }

    fn tell(&self) {
        let Some(Core { quorum, .. }) = &self.core else { return };
        let name = |id: MemberId| quorum.members().0.get(&id).map(|member| member.name.clone());
        let leads = quorum.role() == Role::Leader { is_ready: true };
        self.is_behind.store(quorum.is_behind(), Ordering::SeqCst);
        *held(&self.status) = Status {
            leads,
            wants: self.wants.keys().filter(|_| leads).cloned().collect(),
            base: quorum.base().clone(),
            term: quorum.term(),
            leader: quorum.leader().and_then(name),
            last: quorum.last_committed(),
            members: quorum.members().clone(),
            lease: quorum.lease(since_boot()),
            failed: None,
        };
    }
}

/// Does jobs as they come, one sync for all that wait, until there are no more or the disk fails.
fn write(mut disk: Disk, jobs: &Receiver<Job>, inputs: &Sender<Input>, core: u64) {
    while let Ok(first) = jobs.recv() {
        let (mut next, mut written, mut syncs, mut later) = (Some(first), None, false, Vec::new());
        let mut failed = None;
        while let Some(job) = next {
            let done = match job {
                Job::Write { number, ballot, entries, sync, send_later } => {
                    written = Some(number);
                    syncs |= sync;
                    later.extend(send_later);
                    disk.append(ballot, &entries, false).map_err(|error| error.to_string())
                }
                Job::Compact(base, entries) => {
                    disk.compact(base, entries).map_err(|error| error.to_string())
                }
            };
            failed = failed.or(done.err());
            next = jobs.try_recv().ok();
        }
        if syncs {
            failed = failed.or(disk.append(None, &[], true).err().map(|error| error.to_string()));
        }
        // Nobody listens when the member ends.
        let told = match (failed, written) {
            (Some(why), _) => {
                inputs.send(Input::Failed(format!("its log can't be written: {why}")))
            }
            (None, Some(number)) => {
                inputs.send(Input::Persisted { core, number, send_later: later })
            }
            (None, None) => Ok(()),
        };
        if told.is_err() {
            return;
        }
    }
}
