//! What a link is on: a socket, by TLS where members speak so.
//!
//! Until both sides know each other all of it must be done by a time, however slowly the other side sends.

use super::link_error::LinkError;
use cairn_net::tls::mutual::{MutualStream, MutualTls};
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// The first byte of who speaks TLS: a record of its handshake (RFC 8446, 5.1).
const TLS: u8 = 22;

/// A socket that waits for so long and no longer.
pub(super) struct Timed {
    stream: TcpStream,
    /// By when all must be done, as long as that is so.
    until: Option<Instant>,
}

impl Timed {
    fn wait(&self) -> io::Result<()> {
        let Some(until) = self.until else { return Ok(()) };
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.stream.set_read_timeout(Some(left))?;
        self.stream.set_write_timeout(Some(left))
    }
}

impl Read for Timed {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.wait()?;
        self.stream.read(bytes)
    }
}

impl Write for Timed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.wait()?;
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

/// See the module.
pub(super) enum Socket {
    Plain(Timed),
    Secure(MutualStream<Timed>),
}

impl Socket {
    /// Of who has connected to `host`. All is to be done within `patience`, until [`Socket::relax`].
    pub fn connect(
        stream: TcpStream,
        host: &str,
        tls: Option<&MutualTls>,
        patience: Duration,
    ) -> Result<Socket, LinkError> {
        let timed = Timed { stream, until: Some(Instant::now() + patience) };
        match tls {
            Some(tls) => tls.connect(host, timed).map(Socket::Secure).map_err(LinkError::opening),
            None => Ok(Socket::Plain(timed)),
        }
    }

    /// Of who has accepted, likewise.
    pub fn accept(
        stream: TcpStream,
        tls: Option<&MutualTls>,
        patience: Duration,
    ) -> Result<Socket, LinkError> {
        let timed = Timed { stream, until: Some(Instant::now() + patience) };
        timed.wait()?;
        let mut first = [0];
        let speaks_tls = timed.stream.peek(&mut first)? == 1 && first[0] == TLS;
        match tls {
            None if speaks_tls => Err(LinkError::Tls),
            None => Ok(Socket::Plain(timed)),
            Some(_) if !speaks_tls => Err(LinkError::Plain),
            Some(tls) => tls.accept(timed).map(Socket::Secure).map_err(LinkError::opening),
        }
    }

    /// Both sides know each other: each read and each write may take so long.
    pub fn relax(&mut self, read: Duration, write: Duration) -> io::Result<()> {
        let timed = match self {
            Socket::Plain(timed) => timed,
            Socket::Secure(stream) => stream.get_mut(),
        };
        timed.until = None;
        timed.stream.set_read_timeout(Some(read))?;
        timed.stream.set_write_timeout(Some(write))
    }

    /// Whether the other side has shown that it is that host, where it has to.
    pub fn is_of(&self, host: &str) -> bool {
        match self {
            Socket::Plain(_) => true,
            Socket::Secure(stream) => stream.is_of(host),
        }
    }
}

impl Read for Socket {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self {
            Socket::Plain(timed) => timed.read(bytes),
            Socket::Secure(stream) => stream.read(bytes),
        }
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Socket::Plain(timed) => timed.write(bytes),
            Socket::Secure(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Socket::Plain(timed) => timed.flush(),
            Socket::Secure(stream) => stream.flush(),
        }
    }
}
