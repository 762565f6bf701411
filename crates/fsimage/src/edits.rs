//! Hadoop's edit log: what a NameNode has done since it wrote its image, in files that are called segments.
//!
//! ```text
//! version, 4 bytes | flags, 4 bytes | operation | operation | … | filling, 0xff
//! operation: code, 1 byte | length, 4 bytes | transaction, 8 bytes | fields | CRC-32, 4 bytes
//! ```
//! [`Segment`] reads one operation after the other, with memory for the longest of them. The length counts itself, the
//! transaction and the fields; the CRC is of everything before it. A segment that was being written when its NameNode died
//! may end within an operation: that one was never answered. Damage with whole operations behind it is no such end.
//!
//! Source: Hadoop 3.5.0 `FSEditLogOp.LengthPrefixedReader`, `EditLogFileInputStream`, `FSEditLogLoader#scanEditLog`.

mod decode;
mod field;
mod operation;

use crate::attributes::AclKind;
use field::Input;
use flate2::Crc;
use std::io::{self, BufReader, Read, Seek, SeekFrom};

pub use operation::{
    AclEntry, AddFile, Block, CacheDirectiveInfo, CachePoolInfo, EcPolicyInfo, Operation, Owned,
    XAttr,
};

/// Layout versions whose operations are read here: Hadoop 3.0 to 3.5.
///
/// Source: Hadoop 3.5.0 `NameNodeLayoutVersion`.
const OLDEST: i32 = -64;
const NEWEST: i32 = -67;
/// From this version on operations on snapshots have times.
const SNAPSHOT_TIMES: i32 = -66;
/// Longest operation. Source: Hadoop 3.5.0 `DFSConfigKeys#DFS_NAMENODE_MAX_OP_SIZE_DEFAULT`.
const OPERATION_MAX: u64 = 50 << 20;
/// Code, length, transaction and CRC.
const OPERATION_MIN: u64 = 17;
/// Where the fields begin.
const HEAD_LEN: usize = 13;
const CRC_LEN: usize = 4;
/// Begins what a segment is filled up with.
const FILLING: u8 = 0xff;
/// Most that is looked at behind damage for whole operations. Hadoop fills up by a megabyte at a time.
const REST_MAX: u64 = 64 << 20;

/// Why a segment cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum EditsError {
    /// The file cannot be read.
    #[error("it cannot be read: {0}")]
    Io(#[from] io::Error),
    /// Written by a Hadoop that is too old or too new.
    #[error("its layout version is {0}, where {OLDEST} to {NEWEST} are known")]
    Version(i32),
    /// The file has flags, which no Hadoop writes.
    #[error("its head has flags that are not known")]
    Flags,
    /// What stands there is no operation, and there are whole ones behind it, or it cannot be told.
    #[error("what stands at byte {at}, behind transaction {after}, is damaged: {what}")]
    Damaged {
        /// Where it begins.
        at: u64,
        /// The last transaction before.
        after: u64,
        /// What is wrong.
        what: &'static str,
    },
    /// An operation with a code that Hadoop 3.5 does not write.
    #[error("transaction {transaction} is operation {code}, which is not known")]
    Unknown {
        /// Its number.
        transaction: u64,
        /// The code.
        code: u8,
    },
    /// An operation is not as one of its kind is.
    #[error("transaction {transaction}, {name}: {what}")]
    Malformed {
        /// Its number.
        transaction: u64,
        /// Hadoop's name for it.
        name: &'static str,
        /// What is wrong.
        what: &'static str,
    },
}

/// One operation with its number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transaction {
    /// Its number, one more than that of the one before.
    pub id: u64,
    /// What was done.
    pub operation: Operation,
}

/// Operations of a file.
pub struct Segment<R> {
    input: BufReader<R>,
    version: i32,
    /// Where the next operation begins.
    at: u64,
    /// The last transaction.
    last: u64,
    buffer: Vec<u8>,
    torn: bool,
}

impl<R: Read + Seek> Segment<R> {
    /// Begins a file; none if its head was never written.
    pub fn open(input: R) -> Result<Option<Segment<R>>, EditsError> {
        let mut input = BufReader::new(input);
        let mut head = [0; 8];
        if fill(&mut input, &mut head)? < head.len() || head[..4] == [FILLING; 4] {
            return Ok(None);
        }
        let [a, b, c, d, flags @ ..] = head;
        let version = i32::from_be_bytes([a, b, c, d]);
        if !(NEWEST..=OLDEST).contains(&version) {
            return Err(EditsError::Version(version));
        }
        if flags != [0; 4] {
            return Err(EditsError::Flags);
        }
        let (at, last, buffer, torn) = (head.len() as u64, 0, Vec::new(), false);
        Ok(Some(Segment { input, version, at, last, buffer, torn }))
    }

    /// The next operation; none at the end.
    pub fn transaction(&mut self) -> Result<Option<Transaction>, EditsError> {
        if self.torn {
            return Ok(None);
        }
        match self.frame()? {
            Frame::End => return Ok(None),
            Frame::Broken(what) => return self.end_at(what).map(|()| None),
            Frame::Whole => {}
        }
        let (head, fields) = self.buffer.split_at(HEAD_LEN);
        let (code, id) = (head[0], transaction_of(head));
        let name = decode::name(code);
        let name = name.ok_or(EditsError::Unknown { transaction: id, code })?;
        let mut input = Input::of(&fields[..fields.len() - CRC_LEN]);
        let operation = decode::operation(code, &mut input, self.version <= SNAPSHOT_TIMES)
            .and_then(|operation| input.end().map(|()| operation))
            .map_err(|why| EditsError::Malformed { transaction: id, name, what: why.0 })?;
        self.at += self.buffer.len() as u64;
        self.last = id;
        Ok(Some(Transaction { id, operation }))
    }

    /// Whether the file ended within an operation.
    pub fn is_torn(&self) -> bool {
        self.torn
    }

    /// Reads an operation whose CRC is right into the buffer.
    fn frame(&mut self) -> Result<Frame, EditsError> {
        self.buffer.clear();
        self.buffer.resize(HEAD_LEN, 0);
        let len = fill(&mut self.input, &mut self.buffer)?;
        match self.buffer[0] {
            _ if len == 0 => return Ok(Frame::End),
            FILLING => return self.filling(len),
            _ if len < HEAD_LEN => return Ok(Frame::Broken("it ends within an operation")),
            _ => {}
        }
        let Some(len) = frame_len(&self.buffer) else {
            return Ok(Frame::Broken("the length of an operation makes no sense"));
        };
        // Grows by what has come, never by what was promised.
        let rest = len - HEAD_LEN as u64;
        if (&mut self.input).take(rest).read_to_end(&mut self.buffer)? < rest as usize {
            return Ok(Frame::Broken("it ends within an operation"));
        }
        Ok(match is_right(&self.buffer) {
            true => Frame::Whole,
            false => Frame::Broken("the CRC of an operation is not that of its bytes"),
        })
    }

    /// Looks whether there is nothing but filling from here on.
    fn filling(&mut self, read: usize) -> Result<Frame, EditsError> {
        let is_filling = |bytes: &[u8]| bytes.iter().all(|byte| [0, FILLING].contains(byte));
        let mut is_all = is_filling(&self.buffer[..read]);
        let mut piece = [0; 8192];
        while is_all {
            let len = fill(&mut self.input, &mut piece)?;
            if len == 0 {
                return Ok(Frame::End);
            }
            is_all = is_filling(&piece[..len]);
        }
        Ok(Frame::Broken("there is something behind the end"))
    }

    /// Ends the file where it stops making sense, unless whole operations follow.
    fn end_at(&mut self, what: &'static str) -> Result<(), EditsError> {
        let damaged = EditsError::Damaged { at: self.at, after: self.last, what };
        self.input.seek(SeekFrom::Start(self.at + 1))?;
        let mut rest = Vec::new();
        if (&mut self.input).take(REST_MAX + 1).read_to_end(&mut rest)? as u64 > REST_MAX {
            return Err(damaged);
        }
        let follows = |from: usize| {
            let bytes = rest.get(from..).unwrap_or_default();
            let frame = frame_len(bytes).and_then(|len| bytes.get(..len as usize));
            frame.is_some_and(|frame| transaction_of(frame) > self.last && is_right(frame))
        };
        if (0..rest.len()).any(follows) {
            return Err(damaged);
        }
        self.torn = true;
        Ok(())
    }
}

/// What stands where an operation may.
enum Frame {
    Whole,
    End,
    Broken(&'static str),
}

/// How long an operation is that begins like that, if one can.
fn frame_len(bytes: &[u8]) -> Option<u64> {
    let head = bytes.get(..HEAD_LEN)?;
    let len = u64::from(u32::from_be_bytes([head[1], head[2], head[3], head[4]]));
    let len = len + 1 + CRC_LEN as u64;
    (OPERATION_MIN..=OPERATION_MAX).contains(&len).then_some(len)
}

fn transaction_of(head: &[u8]) -> u64 {
    head.get(5..HEAD_LEN).and_then(|id| id.try_into().ok()).map_or(0, u64::from_be_bytes)
}

/// Whether the CRC at the end of an operation is that of the rest.
fn is_right(frame: &[u8]) -> bool {
    let Some((bytes, wanted)) = frame.split_last_chunk() else { return false };
    let mut crc = Crc::new();
    crc.update(bytes);
    crc.sum() == u32::from_be_bytes(*wanted)
}

/// Fills `bytes` as far as the file goes.
fn fill(input: &mut impl Read, bytes: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < bytes.len() {
        match input.read(&mut bytes[filled..]) {
            Ok(0) => break,
            Ok(len) => filled += len,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

#[cfg(test)]
mod tests;
