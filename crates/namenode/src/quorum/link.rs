//! A connection between two members: whoever has the key of the quorum is let in, and nobody else changes a byte.
//!
//! ```text
//! who connects: magic 8 | 32 random bytes          the other: 32 random bytes | proof 32          who connects: proof 32
//! then frames of who connects: length 4 | proof 32 | bytes
//! ```
//!
//! A proof is an HMAC-SHA256 by the key over both random numbers, a number that says whose it is, and, of a frame, its place
//! and bytes: no frame can be left out, repeated or taken from another connection. Nothing is encrypted.

use hmac::{Hmac, Mac};
use sha2::Sha256;
use std::io::{self, Read, Write};
use std::net::TcpStream;

const MAGIC: &[u8; 8] = b"CRNMBR\x01\n";

/// Longest frame, in bytes.
const FRAME_LEN_MAX: usize = 96 << 20;

/// Shortest key, in bytes.
const KEY_LEN_MIN: usize = 16;

/// Whose proof it is.
const ACCEPTS: u64 = u64::MAX;
const CONNECTS: u64 = u64::MAX - 1;

/// Why there is no connection, or no more.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// The socket fails.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The other one is no member, or has another key.
    #[error("the other side does not have the key of this quorum")]
    Stranger,
    /// A frame was changed, or is too long.
    #[error("a frame is not what was sent")]
    Forged,
    /// It has the key, and is of another quorum.
    #[error("the other side is of another quorum")]
    OtherQuorum,
    /// A snapshot is on its way already.
    #[error("another snapshot is on its way")]
    Busy,
    /// The system gives no random numbers.
    #[error("no random numbers: {0}")]
    Random(getrandom::Error),
}

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

/// One direction of a connection.
pub(super) struct Link {
    stream: TcpStream,
    key: Key,
    /// Both random numbers.
    session: [u8; 64],
    frames: u64,
}

impl Link {
    /// Proves to who has accepted that this is a member, if that is one.
    pub fn connect(mut stream: TcpStream, key: &Key) -> Result<Link, LinkError> {
        let mut session = [0; 64];
        getrandom::fill(&mut session[..32]).map_err(LinkError::Random)?;
        stream.write_all(&[&MAGIC[..], &session[..32]].concat())?;
        stream.read_exact(&mut session[32..])?;
        let mut proof = [0; 32];
        stream.read_exact(&mut proof)?;
        let mut link = Link { stream, key: key.clone(), session, frames: 0 };
        link.check(ACCEPTS, &[], &proof).map_err(|_| LinkError::Stranger)?;
        let proof = link.proof(CONNECTS, &[]);
        link.stream.write_all(&proof)?;
        Ok(link)
    }

    /// Lets a member in.
    pub fn accept(mut stream: TcpStream, key: &Key) -> Result<Link, LinkError> {
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
        let mut proof = [0; 32];
        link.stream.read_exact(&mut proof)?;
        link.check(CONNECTS, &[], &proof).map_err(|_| LinkError::Stranger)?;
        Ok(link)
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
        Ok(())
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
mod tests {
    use super::*;
    use std::net::TcpListener;

    fn pair(ours: &[u8], theirs: &[u8]) -> (Result<Link, LinkError>, Result<Link, LinkError>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        let (ours, theirs) = (Key::new(ours).unwrap(), Key::new(theirs).unwrap());
        std::thread::scope(|scope| {
            let accepts = scope.spawn(move || Link::accept(listener.accept().unwrap().0, &theirs));
            let connects = Link::connect(TcpStream::connect(addr).unwrap(), &ours);
            (connects, accepts.join().unwrap())
        })
    }

    #[test]
    fn members_understand_each_other_and_strangers_are_not_let_in() {
        let (connects, accepts) = pair(b"the key of a quorum", b"the key of a quorum");
        let (mut connects, mut accepts) = (connects.unwrap(), accepts.unwrap());
        for bytes in [&b"one"[..], b"", b"three"] {
            connects.send(bytes).unwrap();
            assert_eq!(accepts.receive().unwrap(), bytes);
        }
        let (connects, accepts) = pair(b"the key of a quorum", b"the key of another one");
        assert!(matches!(connects, Err(LinkError::Stranger)));
        assert!(accepts.is_err());
        assert!(Key::new(b"short").is_none());
    }

    #[test]
    fn a_frame_that_was_changed_or_comes_again_is_not_taken() {
        for (flips, again) in [(true, false), (false, true)] {
            let (connects, accepts) = pair(b"the key of a quorum", b"the key of a quorum");
            let (mut connects, mut accepts) = (connects.unwrap(), accepts.unwrap());
            let mut bytes = connects.proof(0, b"one").to_vec();
            bytes.extend(b"one");
            bytes[33] ^= u8::from(flips);
            let frame = [&3u32.to_le_bytes()[..], &bytes].concat();
            connects.stream.write_all(&frame).unwrap();
            if again {
                assert_eq!(accepts.receive().unwrap(), b"one");
                connects.stream.write_all(&frame).unwrap();
            }
            assert!(matches!(accepts.receive(), Err(LinkError::Forged)));
        }
    }
}
