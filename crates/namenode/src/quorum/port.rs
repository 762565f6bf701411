//! The port of a member, and its connections to the others.
//!
//! Each member connects to every other one and speaks on that connection alone; what it hears comes by theirs. A
//! message that cannot go now is dropped: the protocol sends it again.

use super::incoming::Incoming;
use super::link::{Key, Link, LinkError};
use cairn_net::held::held;
use cairn_quorum::encoding::{Decoder, put_bytes, put_u64};
use cairn_quorum::{Base, Malformed, MemberId, NAME_LEN_MAX};
use std::collections::BTreeMap;
use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// Messages that wait for one member.
const QUEUE: usize = 1024;

/// How long a connection, and a write to it, may take.
const PATIENCE: Duration = Duration::from_secs(2);

/// The time between two tries to connect, and between two words of who it is.
const PAUSE: Duration = Duration::from_millis(100);

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
    /// Who speaks here; it has a log, or is new; and it wants a snapshot, or goes on without.
    Hello { name: String, id: MemberId, has_log: bool, wants: bool },
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
            Frame::Hello { name, id, has_log, wants } => {
                let mut out = vec![HELLO, u8::from(*has_log), u8::from(*wants)];
                put_u64(&mut out, id.0);
                put_bytes(&mut out, name.as_bytes());
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
            HELLO => {
                let (has_log, wants) = (input.flag()?, input.flag()?);
                let id = MemberId::decode(&mut input)?;
                Frame::Hello { name: input.text(NAME_LEN_MAX)?, id, has_log, wants }
            }
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
    /// Listens, and connects to the others, to whom it says `hello`, now and again.
    pub fn open(
        listener: TcpListener,
        others: &BTreeMap<String, String>,
        key: &Key,
        hello: Arc<dyn Fn() -> Frame + Send + Sync>,
        hears: Hears,
        incoming: Arc<Incoming>,
    ) -> io::Result<Port> {
        let addr = listener.local_addr()?;
        let (stop, streams) = (Arc::new(AtomicBool::new(false)), Arc::default());
        let mut port = Port { addr, to: BTreeMap::new(), stop, streams, threads: Vec::new() };
        for (name, addr) in others {
            let (sender, queue) = sync_channel(QUEUE);
            port.to.insert(name.clone(), sender);
            let (addr, key, hello) = (addr.clone(), key.clone(), Arc::clone(&hello));
            let stop = Arc::clone(&port.stop);
            let thread = std::thread::Builder::new().name("quorum-speak".to_string());
            port.threads.push(thread.spawn(move || speak(&addr, &key, &*hello, &queue, &stop))?);
        }
        let (stop, streams) = (Arc::clone(&port.stop), Arc::clone(&port.streams));
        let (key, names) = (key.clone(), others.keys().cloned().collect::<Vec<String>>());
        let thread = std::thread::Builder::new().name("quorum-listen".to_string());
        port.threads.push(thread.spawn(move || {
            listen(&listener, &key, &names, (&hears, &incoming), &stop, &streams);
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

fn speak(
    addr: &str,
    key: &Key,
    hello: &dyn Fn() -> Frame,
    queue: &Receiver<Frame>,
    stop: &AtomicBool,
) {
    let mut was_there = true;
    while !stop.load(Ordering::SeqCst) {
        let ended = connect(addr, key).and_then(|link| {
            tracing::info!(addr, "connected to a member of the quorum");
            was_there = true;
            serve(link, hello, queue, stop)
        });
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

fn connect(addr: &str, key: &Key) -> Result<Link, LinkError> {
    let found = addr.to_socket_addrs()?.next().ok_or(io::Error::from(io::ErrorKind::NotFound))?;
    let stream = TcpStream::connect_timeout(&found, PATIENCE)?;
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    Link::connect(stream, key)
}

fn serve(
    mut link: Link,
    hello: &dyn Fn() -> Frame,
    queue: &Receiver<Frame>,
    stop: &AtomicBool,
) -> Result<(), LinkError> {
    link.send(&hello().to_bytes())?;
    while !stop.load(Ordering::SeqCst) {
        match queue.recv_timeout(PAUSE) {
            Ok(frame) => link.send(&frame.to_bytes())?,
            Err(RecvTimeoutError::Timeout) => link.send(&hello().to_bytes())?,
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        }
    }
    Ok(())
}

fn listen(
    listener: &TcpListener,
    key: &Key,
    names: &[String],
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
                    hear(stream, key, names, hears, incoming)
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
    key: &Key,
    names: &[String],
    hears: &Hears,
    incoming: &Incoming,
) -> Result<(), LinkError> {
    let mut link = Link::accept(stream, key)?;
    let (mut who, mut snapshot) = (None, None);
    loop {
        let frame = Frame::from_bytes(&link.receive()?).map_err(|_| LinkError::Forged)?;
        if let Frame::Hello { name, .. } = &frame {
            // Nobody speaks whom the configuration does not name.
            who = names.iter().find(|known| *known == name).cloned();
        }
        let Some(name) = &who else { return Err(LinkError::Stranger) };
        match frame {
            Frame::Snapshot(base) => snapshot = Some(incoming.begin(base)?),
            Frame::Piece(bytes) => {
                snapshot.as_mut().ok_or(LinkError::Forged)?.write(&bytes)?;
            }
            Frame::End => snapshot.take().ok_or(LinkError::Forged)?.end()?,
            frame @ (Frame::Hello { .. } | Frame::Message(_)) => hears(name.clone(), frame),
        }
    }
}

/// Sends a snapshot on a connection of its own. `make` has its bytes sent, piece by piece.
pub(super) fn send_snapshot(
    addr: &str,
    key: &Key,
    hello: &Frame,
    base: Base,
    make: impl FnOnce(&mut dyn FnMut(Vec<u8>) -> bool) -> Result<(), String>,
) -> Result<(), SendError> {
    let mut link = connect(addr, key)?;
    link.send(&hello.to_bytes())?;
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
