//! A connection between two members: whoever has the key of the quorum is let in, and nobody else changes a byte.
//!
//! ```text
//! who connects: magic 8 | 32 random bytes          the other: 32 random bytes | proof 32          who connects: proof 32
//! then frames of who connects: length 4 | proof 32 | bytes
//! ```
//!
//! A proof is an HMAC-SHA256 by the key over both random numbers, a number that says whose it is, and, of a frame, its place
//! and bytes: no frame can be left out, repeated or taken from another connection. Nothing of that is encrypted; where members
//! speak TLS all of it goes through that ([`Socket`]), and each side shows a certificate before it shows the key.

use super::link_error::LinkError;
use super::socket::Socket;
use cairn_net::tls::mutual::MutualTls;
use hmac::{Hmac, Mac};
use sha2::Sha256;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

const MAGIC: &[u8; 8] = b"CRNMBR\x01\n";

/// Longest frame, in bytes.
const FRAME_LEN_MAX: usize = 96 << 20;

/// Shortest key, in bytes.
const KEY_LEN_MIN: usize = 16;

/// Whose proof it is.
const ACCEPTS: u64 = u64::MAX;
const CONNECTS: u64 = u64::MAX - 1;

/// What all members of a quorum have, and nobody else.
#[derive(Clone)]
pub struct Key(Vec<u8>);

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key")
    }
}

impl Key {
    /// Its bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Of these bytes; none if they are too few.
    pub fn new(bytes: &[u8]) -> Option<Key> {
        (bytes.len() >= KEY_LEN_MIN).then(|| Key(bytes.to_vec()))
    }
}

/// What members show each other.
#[derive(Clone, Debug)]
pub struct Credentials {
    /// What all of them have.
    pub key: Key,
    /// Certificates, where they speak TLS; all do, or none.
    pub tls: Option<Arc<MutualTls>>,
}

/// One direction of a connection.
pub(super) struct Link {
    stream: Socket,
    key: Key,
    /// Both random numbers.
    session: [u8; 64],
    frames: u64,
}

impl Link {
    /// Proves to who has accepted at `host` that this is a member, if that is one, within `patience`.
    pub fn connect(
        stream: TcpStream,
        host: &str,
        Credentials { key, tls }: &Credentials,
        patience: Duration,
    ) -> Result<Link, LinkError> {
        let mut stream = Socket::connect(stream, host, tls.as_deref(), patience)?;
        let mut session = [0; 64];
        getrandom::fill(&mut session[..32]).map_err(LinkError::Random)?;
        stream.write_all(&[&MAGIC[..], &session[..32]].concat())?;
        stream.flush()?;
        stream.read_exact(&mut session[32..]).map_err(LinkError::opening)?;
        let mut proof = [0; 32];
        stream.read_exact(&mut proof).map_err(LinkError::opening)?;
        let mut link = Link { stream, key: key.clone(), session, frames: 0 };
        link.check(ACCEPTS, &[], &proof).map_err(|_| LinkError::Stranger)?;
        let proof = link.proof(CONNECTS, &[]);
        link.stream.write_all(&proof)?;
        link.stream.flush()?;
        Ok(link)
    }

    /// Lets a member in, if it shows within `patience` that it is one.
    pub fn accept(
        stream: TcpStream,
        Credentials { key, tls }: &Credentials,
        patience: Duration,
    ) -> Result<Link, LinkError> {
        let mut stream = Socket::accept(stream, tls.as_deref(), patience)?;
        let (mut magic, mut session) = ([0; 8], [0; 64]);
        stream.read_exact(&mut magic)?;
        if &magic != MAGIC {
            return Err(LinkError::Stranger);
        }
        stream.read_exact(&mut session[..32])?;
        getrandom::fill(&mut session[32..]).map_err(LinkError::Random)?;
        let mut link = Link { stream, key: key.clone(), session, frames: 0 };
        let proof = link.proof(ACCEPTS, &[]);
        link.stream.write_all(&[&session[32..], &proof[..]].concat())?;
        link.stream.flush()?;
        let mut proof = [0; 32];
        link.stream.read_exact(&mut proof)?;
        link.check(CONNECTS, &[], &proof).map_err(|_| LinkError::Stranger)?;
        Ok(link)
    }

    /// From now on each read and each write may take so long.
    pub fn relax(&mut self, read: Duration, write: Duration) -> io::Result<()> {
        self.stream.relax(read, write)
    }

    /// Whether the other side has shown that it is that host, where it has to.
    pub fn is_of(&self, host: &str) -> bool {
        self.stream.is_of(host)
    }

    fn mac(&self, number: u64, bytes: &[u8]) -> Hmac<Sha256> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.key.0).expect("keys of any length do");
        mac.update(&self.session);
        mac.update(&number.to_le_bytes());
        mac.update(bytes);
        mac
    }

    fn proof(&self, number: u64, bytes: &[u8]) -> [u8; 32] {
        self.mac(number, bytes).finalize().into_bytes().into()
    }

    fn check(&self, number: u64, bytes: &[u8], proof: &[u8; 32]) -> Result<(), LinkError> {
        self.mac(number, bytes).verify_slice(proof).map_err(|_| LinkError::Forged)
    }

    /// Sends a frame.
    pub fn send(&mut self, bytes: &[u8]) -> Result<(), LinkError> {
        let len = u32::try_from(bytes.len()).ok().filter(|len| *len as usize <= FRAME_LEN_MAX);
        let len = len.ok_or(LinkError::Forged)?.to_le_bytes();
        let proof = self.proof(self.frames, bytes);
        self.frames += 1;
        self.stream.write_all(&[&len[..], &proof[..], bytes].concat())?;
        Ok(self.stream.flush()?)
    }

    /// The next frame.
    pub fn receive(&mut self) -> Result<Vec<u8>, LinkError> {
        let (mut len, mut proof) = ([0; 4], [0; 32]);
        self.stream.read_exact(&mut len)?;
        self.stream.read_exact(&mut proof)?;
        let len = u32::from_le_bytes(len) as usize;
        if len > FRAME_LEN_MAX {
            return Err(LinkError::Forged);
        }
        // No more memory is taken than has come.
        let mut bytes = Vec::new();
        (&mut self.stream).take(len as u64).read_to_end(&mut bytes)?;
        if bytes.len() < len {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        self.check(self.frames, &bytes, &proof)?;
        self.frames += 1;
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests;
