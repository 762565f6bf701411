//! The port of a member, and its connections to the others.
//!
//! Each member connects to every other one and speaks on that connection alone; what it hears comes by theirs. A
//! message that cannot go now is dropped: the protocol sends it again.

use super::callers::{Caller, Callers};
use super::hello::{Hello, Own};
use super::incoming::Incoming;
use super::link::{Credentials, Link};
use super::link_error::LinkError;
use cairn_net::reach::Reach;
use cairn_process::held::held;
use cairn_quorum::encoding::Decoder;
use cairn_quorum::{Base, Malformed};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Messages that wait for one member.
const QUEUE: usize = 1024;

/// How long a connection, and a write to it, may take.
const PATIENCE: Duration = Duration::from_secs(2);

/// The time between two tries to connect, and between two words of who it is.
const PAUSE: Duration = Duration::from_millis(100);

/// How long it is waited after a connection that was closed at once.
const REST: Duration = Duration::from_secs(1);

/// A connection on which nothing came for this long is closed.
const SILENCE_MAX: Duration = Duration::from_secs(10);

const HELLO: u8 = 1;
const MESSAGE: u8 = 2;
const SNAPSHOT: u8 = 3;
const PIECE: u8 = 4;
const END: u8 = 5;

/// What members tell each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Frame {
    /// Who speaks here.
    Hello(Hello),
    /// For the core.
    Message(Vec<u8>),
    /// A snapshot follows, behind which the log goes on there.
    Snapshot(Base),
    /// Bytes of it.
    Piece(Vec<u8>),
    /// It is whole.
    End,
}

impl Frame {
    fn to_bytes(&self) -> Vec<u8> {
        match self {
            Frame::Hello(hello) => {
                let mut out = vec![HELLO];
                hello.encode(&mut out);
                out
            }
            Frame::Message(bytes) => [&[MESSAGE][..], bytes].concat(),
            Frame::Snapshot(base) => {
                let mut out = vec![SNAPSHOT];
                base.encode(&mut out);
                out
            }
            Frame::Piece(bytes) => [&[PIECE][..], bytes].concat(),
            Frame::End => vec![END],
        }
    }

    fn from_bytes(bytes: &[u8]) -> Result<Frame, Malformed> {
        let mut input = Decoder::new(bytes);
        let frame = match input.byte()? {
            HELLO => Frame::Hello(Hello::decode(&mut input)?),
            MESSAGE => return Ok(Frame::Message(bytes[1..].to_vec())),
            SNAPSHOT => Frame::Snapshot(Base::decode(&mut input)?),
            PIECE => return Ok(Frame::Piece(bytes[1..].to_vec())),
            END => Frame::End,
            _ => return Err(Malformed("kind of frame")),
        };
        input.finish()?;
        Ok(frame)
    }
}

/// Gets what comes, with the name of who has said it.
pub(super) type Hears = Arc<dyn Fn(String, Frame) + Send + Sync>;

pub(super) struct Port {
    addr: SocketAddr,
    to: BTreeMap<String, SyncSender<Frame>>,
    stop: Arc<AtomicBool>,
    callers: Arc<Mutex<Callers>>,
    threads: Vec<JoinHandle<()>>,
}

impl Port {
    /// Listens, and connects to the others, to whom it says what `own` is, now and again.
    pub fn open(
        listener: TcpListener,
        others: &BTreeMap<String, String>,
        (credentials, reach): (&Credentials, &Reach),
        own: &Arc<Own>,
        hears: Hears,
        incoming: Arc<Incoming>,
    ) -> io::Result<Port> {
        let addr = listener.local_addr()?;
        let (stop, callers) = (Arc::new(AtomicBool::new(false)), Arc::default());
        let mut port = Port { addr, to: BTreeMap::new(), stop, callers, threads: Vec::new() };
        for (name, addr) in others {
            let (sender, queue) = sync_channel(QUEUE);
            port.to.insert(name.clone(), sender);
            let (addr, shows, own) = (addr.clone(), credentials.clone(), Arc::clone(own));
            let reach = reach.clone();
            let stop = Arc::clone(&port.stop);
            let thread = std::thread::Builder::new().name("quorum-speak".to_string());
            let speak = move || speak(&addr, (&shows, &reach), &own, &queue, &stop);
            port.threads.push(thread.spawn(speak)?);
        }
        let (stop, callers) = (Arc::clone(&port.stop), Arc::clone(&port.callers));
        let hosts = others.iter().map(|(name, addr)| (name.clone(), host(addr).to_string()));
        let believed = Believed {
            credentials: credentials.clone(),
            reach: reach.clone(),
            hosts: hosts.collect(),
            own: Arc::clone(own),
            refused: Mutex::default(),
            warned: Mutex::default(),
        };
        let thread = std::thread::Builder::new().name("quorum-listen".to_string());
        port.threads.push(thread.spawn(move || {
            listen(&listener, &believed, (&hears, &incoming), &stop, &callers);
        })?);
        Ok(port)
    }

    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Says something to another member, if it can be said now.
    pub fn send(&self, name: &str, frame: Frame) {
        if let Some(queue) = self.to.get(name) {
            // What finds no place will be said again.
            let _ = queue.try_send(frame);
        }
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        self.to.clear();
        // Wakes who accepts.
        let _ = TcpStream::connect_timeout(&self.addr, PATIENCE);
        held(&self.callers).close_all();
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                tracing::error!("a thread of the quorum's port has panicked");
            }
        }
    }
}

fn speak(
    addr: &str,
    by: (&Credentials, &Reach),
    own: &Own,
    queue: &Receiver<Frame>,
    stop: &AtomicBool,
) {
    let mut was_there = true;
    while !stop.load(Ordering::SeqCst) {
        let mut since = None;
        let ended = connect(addr, by).and_then(|link| {
            tracing::info!(addr, "connected to a member of the quorum");
            (was_there, since) = (true, Some(Instant::now()));
            serve(link, own, queue, stop)
        });
        if since.is_some_and(|since| since.elapsed() < REST && !stop.load(Ordering::SeqCst)) {
            // It does not want to hear this one.
            std::thread::sleep(REST);
        }
        if let Err(error) = ended {
            if std::mem::take(&mut was_there) {
                tracing::warn!(addr, %error, "no connection to a member of the quorum");
            }
            std::thread::sleep(PAUSE);
            // What has waited is old.
            while queue.try_recv().is_ok() {}
        }
    }
}

fn connect(addr: &str, (credentials, reach): (&Credentials, &Reach)) -> Result<Link, LinkError> {
    let found = addr.to_socket_addrs()?.next().ok_or(io::Error::from(io::ErrorKind::NotFound))?;
    let connect = || TcpStream::connect_timeout(&found, PATIENCE);
    let stream = reach.make_blocking(found, PATIENCE, connect)?;
    stream.set_nodelay(true)?;
    let mut link = Link::connect(stream, host(addr), credentials, PATIENCE)?;
    link.relax(PATIENCE, PATIENCE)?;
    Ok(link)
}

/// The host of `host:port`.
fn host(addr: &str) -> &str {
    addr.rsplit_once(':').map_or(addr, |(host, _)| host)
}

fn serve(
    mut link: Link,
    own: &Own,
    queue: &Receiver<Frame>,
    stop: &AtomicBool,
) -> Result<(), LinkError> {
    let hello = || Frame::Hello(own.hello()).to_bytes();
    link.send(&hello())?;
    while !stop.load(Ordering::SeqCst) {
        match queue.recv_timeout(PAUSE) {
            Ok(frame) => link.send(&frame.to_bytes())?,
            Err(RecvTimeoutError::Timeout) => link.send(&hello())?,
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        }
    }
    Ok(())
}

/// Who may speak here.
struct Believed {
    credentials: Credentials,
    reach: Reach,
    /// The hosts of the others, by their names.
    hosts: BTreeMap<String, String>,
    own: Arc<Own>,
    /// Whom it was said of that they may not.
    refused: Mutex<BTreeSet<String>>,
    /// When a stranger was told of last.
    warned: Mutex<Option<Instant>>,
}

impl Believed {
    /// The one who says that, if it may speak: the configuration names it, a certificate says the same, and it is of this
    /// quorum.
    fn check(&self, hello: &Hello, link: &Link) -> Result<String, LinkError> {
        let (name, host) = self.hosts.get_key_value(&hello.name).ok_or(LinkError::Stranger)?;
        if !link.is_of(host) {
            return Err(LinkError::OtherName);
        }
        if self.own.believes(hello) {
            return Ok(name.clone());
        }
        if held(&self.refused).insert(name.clone()) {
            tracing::error!(
                name,
                "who is called so is a member of another quorum and is not listened to: it has the key of this one; or \
                 this one was begun anew by force, and the quorum folder of that one has to be removed"
            );
        }
        Err(LinkError::OtherQuorum)
    }

    /// Whether a stranger is to be told of: not more often than [`REST`], or strangers would fill the log.
    fn warns(&self) -> bool {
        let now = Instant::now();
        let mut warned = held(&self.warned);
        let is_due = warned.is_none_or(|last| now.saturating_duration_since(last) >= REST);
        if is_due {
            *warned = Some(now);
        }
        is_due
    }
}

fn listen(
    listener: &TcpListener,
    believed: &Believed,
    (hears, incoming): (&Hears, &Incoming),
    stop: &AtomicBool,
    callers: &Mutex<Callers>,
) {
    std::thread::scope(|scope| {
        for stream in listener.incoming() {
            let Ok((stream, caller)) = stream.and_then(|stream| {
                let caller = Callers::enter(callers, &stream)?;
                Ok((stream, caller))
            }) else {
                std::thread::sleep(PAUSE);
                continue;
            };
            if stream.peer_addr().is_ok_and(|peer| !believed.reach.may_take(peer)) {
                continue;
            }
            // Whoever has come before that is closed by who stops, the others are not heard.
            if stop.load(Ordering::SeqCst) {
                return;
            }
            let thread = std::thread::Builder::new().name("quorum-hear".to_string());
            let spawned = thread.spawn_scoped(scope, move || {
                let peer = stream.peer_addr().ok();
                match hear(stream, believed, (hears, incoming), &caller) {
                    Ok(()) | Err(LinkError::Io(_) | LinkError::OtherQuorum | LinkError::Busy) => {}
                    Err(error) if !believed.warns() => {
                        tracing::debug!(?peer, %error, "a connection to the quorum's port is closed");
                    }
                    Err(error) => {
                        tracing::warn!(?peer, %error, "a connection to the quorum's port is closed");
                    }
                }
            });
            if let Err(error) = spawned {
                tracing::warn!(%error, "no thread for a connection to the quorum's port");
            }
        }
    });
}

fn hear(
    stream: TcpStream,
    believed: &Believed,
    (hears, incoming): (&Hears, &Incoming),
    caller: &Caller<'_>,
) -> Result<(), LinkError> {
    let mut link = Link::accept(stream, &believed.credentials, PATIENCE)?;
    link.relax(SILENCE_MAX, PATIENCE)?;
    caller.is_member()?;
    let (mut who, mut snapshot) = (None, None);
    loop {
        let frame = Frame::from_bytes(&link.receive()?).map_err(|_| LinkError::Forged)?;
        if let Frame::Hello(hello) = &frame {
            who = Some((believed.check(hello, &link)?, hello.quorum));
        }
        let Some((name, quorum)) = &who else { return Err(LinkError::Stranger) };
        match frame {
            Frame::Snapshot(base) => snapshot = Some(incoming.begin(base, *quorum)?),
            Frame::Piece(bytes) => {
                snapshot.as_mut().ok_or(LinkError::Forged)?.write(&bytes)?;
            }
            Frame::End => snapshot.take().ok_or(LinkError::Forged)?.end()?,
            frame @ (Frame::Hello(_) | Frame::Message(_)) => hears(name.clone(), frame),
        }
    }
}

/// Sends a snapshot on a connection of its own. `make` has its bytes sent, piece by piece.
pub(super) fn send_snapshot(
    addr: &str,
    by: (&Credentials, &Reach),
    own: &Own,
    base: Base,
    make: impl FnOnce(&mut dyn FnMut(Vec<u8>) -> bool) -> Result<(), String>,
) -> Result<(), SendError> {
    let mut link = connect(addr, by)?;
    link.send(&Frame::Hello(own.hello()).to_bytes())?;
    link.send(&Frame::Snapshot(base).to_bytes())?;
    let mut sent = Ok(());
    let made = make(&mut |bytes| {
        sent = link.send(&Frame::Piece(bytes).to_bytes());
        sent.is_ok()
    });
    sent?;
    made.map_err(SendError::NotMade)?;
    Ok(link.send(&Frame::End.to_bytes())?)
}

/// Why a snapshot does not arrive.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// The connection fails.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// It can't be made.
    #[error("the snapshot can't be made: {0}")]
    NotMade(String),
    /// Nobody knows where the member is.
    #[error("there is no such member")]
    Unknown,
}
