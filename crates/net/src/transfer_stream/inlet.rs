//! What comes from the socket, opened where it comes enclosed.

use std::io::{self, IoSliceMut};
use std::ops::Deref;
use std::sync::Arc;

use bytes::{Buf, Bytes, BytesMut};
use cairn_security::cipher::StreamCipher;
use cairn_security::sasl::Open;

use super::socket::Socket;

/// Bytes that are read at once of what comes enclosed.
const READ: usize = 64 << 10;
/// Bytes of a piece beside what is enclosed.
const AROUND: usize = 4 << 10;

/// The receiving end of a socket.
pub(super) struct Inlet {
    socket: Arc<Socket>,
    around: Around,
}

enum Around {
    Nothing,
    Cipher(StreamCipher),
    Pieces(Pieces),
}

/// Pieces with their lengths before them. Source: Hadoop 3.5.0 `SaslInputStream`.
struct Pieces {
    open: Box<dyn Open>,
    /// Bytes of the longest that is taken.
    limit: usize,
    /// What has come and was not opened yet.
    raw: BytesMut,
    /// What was opened and not read yet.
    plain: Bytes,
}

impl Inlet {
    /// As it comes.
    pub(super) fn new(socket: Arc<Socket>) -> Inlet {
        Inlet { socket, around: Around::Nothing }
    }

    /// From now on everything comes in pieces, of which those that enclose up to `limit` bytes are taken.
    pub(super) fn enclose(&mut self, open: Box<dyn Open>, limit: usize) {
        let (limit, raw, plain) = (limit + AROUND, BytesMut::new(), Bytes::new());
        self.around = Around::Pieces(Pieces { open, limit, raw, plain });
    }

    /// From now on everything comes encrypted.
    pub(super) fn encrypt(&mut self, cipher: StreamCipher) {
        self.around = Around::Cipher(cipher);
    }

    /// Whether as many bytes are on the wire as are still to be read.
    pub(super) fn is_one_to_one(&self) -> bool {
        !matches!(self.around, Around::Pieces(_))
    }

    pub(super) fn try_read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match &mut self.around {
            Around::Nothing => self.socket.try_read(into),
            Around::Cipher(cipher) => {
                let count = self.socket.try_read(into)?;
                cipher.apply(&mut into[..count]);
                Ok(count)
            }
            Around::Pieces(pieces) => {
                if !pieces.fill(&self.socket)? {
                    return Ok(0);
                }
                let count = pieces.plain.len().min(into.len());
                pieces.plain.copy_to_slice(&mut into[..count]);
                Ok(count)
            }
        }
    }

    /// Reads up to `room` bytes, for which there is room in `into`.
    pub(super) fn try_read_buf(&mut self, into: &mut BytesMut, room: usize) -> io::Result<usize> {
        match &mut self.around {
            Around::Nothing => self.socket.try_read_buf(into, room),
            Around::Cipher(cipher) => {
                let before = into.len();
                let count = self.socket.try_read_buf(into, room)?;
                cipher.apply(&mut into[before..]);
                Ok(count)
            }
            Around::Pieces(pieces) => {
                if !pieces.fill(&self.socket)? {
                    return Ok(0);
                }
                let count = pieces.plain.len().min(room);
                into.extend_from_slice(&pieces.plain.split_to(count));
                Ok(count)
            }
        }
    }

    pub(super) fn try_read_vectored(&mut self, parts: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        match &mut self.around {
            Around::Nothing => self.socket.try_read_vectored(parts),
            Around::Cipher(cipher) => {
                let count = self.socket.try_read_vectored(parts)?;
                let mut left = count;
                for part in parts {
                    let here = left.min(part.len());
                    cipher.apply(&mut part[..here]);
                    left -= here;
                }
                Ok(count)
            }
            Around::Pieces(pieces) => {
                if !pieces.fill(&self.socket)? {
                    return Ok(0);
                }
                let before = pieces.plain.len();
                for part in parts {
                    let here = pieces.plain.len().min(part.len());
                    pieces.plain.copy_to_slice(&mut part[..here]);
                }
                Ok(before - pieces.plain.len())
            }
        }
    }
}

impl Pieces {
    /// Has bytes there to be read; false at the end of the stream.
    fn fill(&mut self, socket: &Socket) -> io::Result<bool> {
        while self.plain.is_empty() {
            if self.open_next()? {
                continue;
            }
            self.raw.reserve(READ);
            if socket.try_read_buf(&mut self.raw, READ)? == 0 {
                return match self.raw.is_empty() {
                    true => Ok(false),
                    false => Err(io::ErrorKind::UnexpectedEof.into()),
                };
            }
        }
        Ok(true)
    }

    /// Opens the next piece, if all of it has come.
    fn open_next(&mut self) -> io::Result<bool> {
        let invalid = |error: String| io::Error::new(io::ErrorKind::InvalidData, error);
        let Some(len) = self.raw.first_chunk::<4>() else { return Ok(false) };
        let len = u32::from_be_bytes(*len) as usize;
        if len > self.limit {
            return Err(invalid(format!("an enclosed piece of {len} bytes")));
        }
        if self.raw.len() < 4 + len {
            return Ok(false);
        }
        self.raw.advance(4);
        let sealed = self.raw.split_to(len);
        let opened = self.open.open(&sealed).map_err(|error| invalid(error.to_string()))?;
        self.plain = opened.into();
        Ok(true)
    }
}

impl Deref for Inlet {
    type Target = Socket;

    fn deref(&self) -> &Socket {
        &self.socket
    }
}
