//! The port of a member, and its connections to the others.
//!
//! Each member connects to every other one and speaks on that connection alone; what it hears comes by theirs. A
//! message that cannot go now is dropped: the protocol sends it again.

use super::hello::{Hello, Own};
use super::incoming::Incoming;
use super::link::{Key, Link, LinkError};
use cairn_net::reach::Reach;
use cairn_process::held::held;
use cairn_quorum::encoding::Decoder;
use cairn_quorum::{Base, Malformed};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
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

/// Connections that others have made, at most.
const CONNECTIONS_MAX: usize = 64;

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
    streams: Arc<Mutex<Vec<TcpStream>>>,
    threads: Vec<JoinHandle<()>>,
}

impl Port {
    /// Listens, and connects to the others, to whom it says what `own` is, now and again.
    pub fn open(
        listener: TcpListener,
        others: &BTreeMap<String, String>,
        (key, reach): (&Key, &Reach),
        own: &Arc<Own>,
        hears: Hears,
        incoming: Arc<Incoming>,
    ) -> io::Result<Port> {
        let addr = listener.local_addr()?;
        let (stop, streams) = (Arc::new(AtomicBool::new(false)), Arc::default());
        let mut port = Port { addr, to: BTreeMap::new(), stop, streams, threads: Vec::new() };
        for (name, addr) in others {
            let (sender, queue) = sync_channel(QUEUE);
            port.to.insert(name.clone(), sender);
            let (addr, key, own) = (addr.clone(), key.clone(), Arc::clone(own));
            let reach = reach.clone();
            let stop = Arc::clone(&port.stop);
            let thread = std::thread::Builder::new().name("quorum-speak".to_string());
            let speak = move || speak(&addr, (&key, &reach), &own, &queue, &stop);
            port.threads.push(thread.spawn(speak)?);
        }
        let (stop, streams) = (Arc::clone(&port.stop), Arc::clone(&port.streams));
        let names = others.keys().cloned().collect();
        let (key, reach, own) = (key.clone(), reach.clone(), Arc::clone(own));
        let believed = Believed { key, reach, names, own, refused: Mutex::default() };
        let thread = std::thread::Builder::new().name("quorum-listen".to_string());
        port.threads.push(thread.spawn(move || {
            listen(&listener, &believed, (&hears, &incoming), &stop, &streams);
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
        for stream in held(&self.streams).drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                tracing::error!("a thread of the quorum's port has panicked");
            }
        }
    }
}

fn speak(addr: &str, by: (&Key, &Reach), own: &Own, queue: &Receiver<Frame>, stop: &AtomicBool) {
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

fn connect(addr: &str, (key, reach): (&Key, &Reach)) -> Result<Link, LinkError> {
    let found = addr.to_socket_addrs()?.next().ok_or(io::Error::from(io::ErrorKind::NotFound))?;
    let connect = || TcpStream::connect_timeout(&found, PATIENCE);
    let stream = reach.make_blocking(found, PATIENCE, connect)?;
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    Link::connect(stream, key)
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
    key: Key,
    reach: Reach,
    names: Vec<String>,
    own: Arc<Own>,
    /// Whom it was said of that they may not.
    refused: Mutex<BTreeSet<String>>,
}

impl Believed {
    /// The one who says that, if it may speak: the configuration names it, and it is of this quorum.
    fn check(&self, hello: &Hello) -> Result<String, LinkError> {
        let name = self.names.iter().find(|name| **name == hello.name);
        let name = name.ok_or(LinkError::Stranger)?;
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
}

fn listen(
    listener: &TcpListener,
    believed: &Believed,
    (hears, incoming): (&Hears, &Incoming),
    stop: &AtomicBool,
    streams: &Mutex<Vec<TcpStream>>,
) {
    std::thread::scope(|scope| {
        for stream in listener.incoming() {
            if stop.load(Ordering::SeqCst) {
                return;
            }
            let Ok(stream) = stream else {
                std::thread::sleep(PAUSE);
                continue;
            };
            if stream.peer_addr().is_ok_and(|peer| !believed.reach.may_take(peer)) {
                continue;
            }
            let mut open = held(streams);
            open.retain(|stream| stream.peer_addr().is_ok());
            let Ok(copy) = stream.try_clone() else { continue };
            if open.len() >= CONNECTIONS_MAX {
                continue;
            }
            open.push(copy);
            drop(open);
            let thread = std::thread::Builder::new().name("quorum-hear".to_string());
            let spawned = thread.spawn_scoped(scope, || {
                let _ = stream.set_read_timeout(Some(SILENCE_MAX));
                let _ = stream.set_write_timeout(Some(PATIENCE));
                let peer = stream.peer_addr().ok();
                let closes = stream.try_clone();
                if let Err(error @ (LinkError::Stranger | LinkError::Forged)) =
                    hear(stream, believed, hears, incoming)
                {
                    tracing::warn!(?peer, %error, "a connection to the quorum's port is closed");
                }
                if let Ok(stream) = closes {
                    let _ = stream.shutdown(Shutdown::Both);
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
    hears: &Hears,
    incoming: &Incoming,
) -> Result<(), LinkError> {
    let mut link = Link::accept(stream, &believed.key)?;
    let (mut who, mut snapshot) = (None, None);
    loop {
        let frame = Frame::from_bytes(&link.receive()?).map_err(|_| LinkError::Forged)?;
        if let Frame::Hello(hello) = &frame {
            who = Some((believed.check(hello)?, hello.quorum));
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
    by: (&Key, &Reach),
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
