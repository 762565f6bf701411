//! A member that runs: how it is started, and what it is asked.

use super::carrier::{Carrier, Input, NotAgreed, Place, StartError, Status};
use super::disk::Disk;
use super::hello::Own;
use super::incoming::{Incoming, Snapshot};
use super::link::Credentials;
use super::port::{Hears, Port, SendError, send_snapshot};
use crate::clock::since_boot;
use cairn_net::reach::Reach;
use cairn_process::held::held;
use cairn_process::storage_dir;
use cairn_quorum::{Ballot, Base, Entry, MemberId, NotChanged, Quorum, Saved};
use std::collections::BTreeMap;
use std::fs::File;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

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
    /// What it shows the others, and asks them for.
    pub credentials: Credentials,
    /// The time between two turns; an election takes ten to twenty.
    pub turn: Duration,
    /// A number of what commands obey by its configuration, by which members see whether they are configured alike.
    pub settings: u64,
    /// With which of the others it has connections.
    pub reach: Reach,
}

/// Begins a quorum whose only member has its file in `dir` and is called `name`. Once, for one member; all others join. False
/// if there is a file: that one belongs to a quorum.
pub fn found(dir: &Path, name: &str) -> Result<bool, StartError> {
    let _lock = lock(dir)?;
    if Disk::open(dir)?.is_some() {
        return Ok(false);
    }
    let me = new_id()?;
    let saved = Saved { base: Base::founded(me, name), ..Saved::default() };
    Disk::create(dir, me, new_number()?, &saved)?;
    Ok(true)
}

/// Has the folder until the file is closed: two members would write over each other's promises.
pub(super) fn lock(dir: &Path) -> Result<File, StartError> {
    storage_dir::create(dir)?;
    storage_dir::lock(dir)?.ok_or_else(|| StartError::InUse { path: dir.to_owned() })
}

/// Terms that are left out where a quorum takes the place of another one: members of that may have had elections that its
/// last member has not heard of.
const TERMS_LEFT_OUT: u64 = 1000;

/// As [`found`], in the place of the quorum that the member belongs to. Its terms are later ones, so that DataNodes follow
/// it that have followed the other.
pub fn found_anew(dir: &Path, name: &str) -> Result<(), StartError> {
    let _lock = lock(dir)?;
    let last = Disk::open(dir)?.map_or(0, |(_, saved)| saved.ballot.term.max(saved.base.term));
    let me = new_id()?;
    let ballot = Ballot { term: last + TERMS_LEFT_OUT, ..Ballot::default() };
    let saved = Saved { base: Base::founded(me, name), ballot, ..Saved::default() };
    Disk::create(dir, me, new_number()?, &saved)?;
    Ok(())
}

pub(super) fn new_id() -> Result<MemberId, StartError> {
    new_number().map(MemberId)
}

/// One that nobody else has; never 0.
pub(super) fn new_number() -> Result<u64, StartError> {
    Ok(getrandom::u64().map_err(StartError::Random)?.max(1))
}

/// A member that runs. Dropping it stops it.
pub struct Member {
    me: MemberId,
    inputs: Sender<Input>,
    status: Arc<Mutex<Status>>,
    addr: SocketAddr,
    incoming: Arc<Incoming>,
    own: Arc<Own>,
    /// Where the others are, and what they have as well.
    others: BTreeMap<String, String>,
    credentials: Credentials,
    reach: Reach,
    thread: Mutex<Option<JoinHandle<()>>>,
    _lock: File,
}

impl Member {
    /// Starts it. What is agreed on comes out of the receiver, in order, from where its log begins.
    pub fn start(options: Options) -> Result<(Member, Receiver<Entry>), StartError> {
        let Options { dir, name, listener, others, credentials, turn, settings, reach } = options;
        let lock = lock(&dir)?;
        let opened = Disk::open(&dir)?;
        let me = match &opened {
            Some((disk, _)) => disk.member(),
            None => new_id()?,
        };
        let (inputs, events) = channel();
        let (agrees, agreed) = channel();
        let quorum = opened.as_ref().map_or(0, |(disk, _)| disk.quorum());
        let own = Arc::new(Own::new(name.clone(), me, quorum, settings));
        let incoming = Arc::new(Incoming::new(dir.clone()));
        let to_hear = inputs.clone();
        let hears: Hears = Arc::new(move |name, frame| {
            // Nobody listens when it ends.
            let _ = to_hear.send(Input::Heard(name, frame));
        });
        let port = Port::open(
            listener,
            &others,
            (&credentials, &reach),
            &own,
            hears,
            Arc::clone(&incoming),
        )?;
        let addr = port.addr();
        let status = Arc::<Mutex<Status>>::default();
        let (told, tells) = (Arc::clone(&own), (inputs.clone(), agrees));
        let mut carrier = Carrier::new(told, (name, dir), turn, port, tells, Arc::clone(&status));
        if let Some((disk, saved)) = opened {
            let quorum = Quorum::open(me, &saved, turn, since_boot())?;
            carrier.begin(disk, quorum)?;
        }
        let thread = std::thread::Builder::new().name("quorum".to_string());
        let thread = thread.spawn(move || carrier.run(&events))?;
        let thread = Mutex::new(Some(thread));
        Ok((
            Member {
                me,
                inputs,
                status,
                addr,
                incoming,
                own,
                others,
                credentials,
                reach,
                thread,
                _lock: lock,
            },
            agreed,
        ))
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

    /// Whoever reads here sees everything up to that place, which this member has proposed: other members may show it now.
    pub fn shown(&self, place: Place) {
        // One that has ended tells nobody anything.
        let _ = self.inputs.send(Input::Shown(place));
    }

    /// What it is.
    pub fn status(&self) -> Status {
        held(&self.status).clone()
    }

    /// Whether it leads in that term and nobody else can, at this moment: what it answers then is so.
    pub fn may_answer(&self, term: u64) -> bool {
        held(&self.status).may_answer(term, since_boot())
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

    /// Has its log begin where the snapshot says, unless it has that already: what is before is kept elsewhere durably. It
    /// is of that quorum from then on.
    pub fn go_on_from(&self, snapshot: Snapshot) {
        let (reply, answer) = channel();
        if self.inputs.send(Input::GoOnFrom(snapshot, reply)).is_ok() {
            // An error is that it has ended, and why is in its status.
            let _ = answer.recv();
        }
    }

    /// With which of the others it has connections.
    pub fn reach(&self) -> &Reach {
        &self.reach
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
        send_snapshot(addr, (&self.credentials, &self.reach), &self.own, base, make)
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

    /// Begins to have another member lead: the one that is called so, or the best of those that are ready, or of all. Says
    /// which; none if this one does not lead or no such member could.
    pub fn hand_over(&self, to: Option<&str>) -> Option<String> {
        let (reply, answer) = channel();
        self.inputs.send(Input::HandOver(to.map(str::to_string), reply)).ok()?;
        answer.recv().ok()?
    }

    /// Asks who leads to have this member lead. False if nobody does, as far as it knows.
    pub fn ask_for_lead(&self) -> bool {
        let (reply, answer) = channel();
        self.inputs.send(Input::AskForLead(reply)).is_ok() && answer.recv().unwrap_or(false)
    }

    /// Whether there is space on its disks, as there is unless this says otherwise. Who leads without has one that is ready
    /// lead, and who has none is not ready.
    pub fn has_space(&self, has_space: bool) {
        self.own.set_space(has_space);
    }

    /// Has who is called so be no member any more, or join again when it is there. None if this member has ended. It is
    /// agreed on when the status says so.
    pub fn change(&self, name: &str, out: bool) -> Option<Result<(), NotChanged>> {
        let (reply, answer) = channel();
        self.inputs.send(Input::Change { name: name.to_string(), out, reply }).ok()?;
        answer.recv().ok()
    }

    /// Has the others know whether it would serve well if it led, as it does unless this says otherwise.
    pub fn is_ready(&self, is_ready: bool) {
        self.own.is_ready(is_ready);
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
