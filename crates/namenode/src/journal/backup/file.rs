//! The format of backups: a header, frames as the log has them, and an end that says how many entries there were.
//!
//! ```text
//! magic 8 | version 4 | kind 4 | first 8 | last 8 | made at 8, ms since 1970 | timeline 4 | checksum 4 (from version 2 on)
//! wall time 8 | elapsed time 8 (of a snapshot: version 3) | VERSION's length 4 | VERSION | crc32c 4
//! frames without salt (`super::frame`)
//! "CAIRNEND" | entries 8 | crc32c of both 4
//! ```
//!
//! In changes an entry is one of the log, with its number. In a snapshot entries are numbered from 1; the first of each
//! frame is the name of a table, the others are its records: `key's length 4 | key | value`. Numbers are little endian.

use crate::journal::frame::{self, Frame, FrameBuilder};
use crate::store::Identity;
use cairn_codec::crc::crc32c;
use cairn_namespace::Times;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

const MAGIC: &[u8; 8] = b"CAIRNBAK";
const END: &[u8; 8] = b"CAIRNEND";
/// Without a checksum: written by earlier builds.
const FIRST_VERSION: u32 = 1;
/// With it.
const CHAIN_VERSION: u32 = 2;
/// With times as well.
const VERSION: u32 = 3;
/// Bytes of the header before `VERSION`'s text, of the first version.
const HEADER_LEN: usize = 48;
/// Bytes of the checksum that later ones have.
const CHAIN_LEN: usize = 4;
/// Bytes of the times.
const TIMES_LEN: usize = 16;
/// Longest `VERSION` that is read.
const IDENTITY_LEN_MAX: usize = 64 << 10;
/// Bytes of the end.
const END_LEN: usize = 20;
/// A frame is closed when it is about this long.
const FRAME_LEN_GOAL: usize = 256 << 10;
/// Whose frames have no salt: nobody searches for frames here, they are read one after the other.
const SALT: u32 = 0;

/// How names of files begin.
const SNAPSHOT: &str = "snapshot-";
const CHANGES: &str = "changes-";

/// Whether a file of that name is a backup, if it is one of whole ones.
pub(super) fn is_name(name: &str) -> bool {
    name.starts_with(SNAPSHOT) || name.starts_with(CHANGES)
}

/// What a backup has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// All records of the store, as they were after the entry `last`.
    Snapshot,
    /// Entries of the log, from `first` to `last`.
    Changes,
}

/// What a backup tells of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// What it has.
    pub kind: Kind,
    /// The first entry of changes; 0 of a snapshot.
    pub first: u64,
    /// The last entry that is in it.
    pub last: u64,
    /// When it was begun, ms since the epoch.
    pub made_ms: u64,
    /// Which of the ways that the history of the namespace has taken it is of: another one since each return to an
    /// earlier state.
    pub timeline: u32,
    /// Of a snapshot the checksum of all changes that are in it; none in those of version 1.
    pub chain: Option<u32>,
    /// Of a snapshot the latest times of entries that are in it; 0 where they are not known.
    pub times: Times,
    /// Whose it is.
    pub identity: Identity,
}

impl Header {
    /// As it is written.
    fn to_bytes(&self) -> Vec<u8> {
        let kind: u32 = match self.kind {
            Kind::Snapshot => 1,
            Kind::Changes => 2,
        };
        let identity = self.identity.to_text();
        let mut bytes = MAGIC.to_vec();
        let version = match self.chain {
            None => FIRST_VERSION,
            Some(_) if self.times == Times::default() => CHAIN_VERSION,
            Some(_) => VERSION,
        };
        bytes.extend_from_slice(&version.to_le_bytes());
        bytes.extend_from_slice(&kind.to_le_bytes());
        for number in [self.first, self.last, self.made_ms] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        bytes.extend_from_slice(&self.timeline.to_le_bytes());
        bytes.extend(self.chain.into_iter().flat_map(u32::to_le_bytes));
        if version == VERSION {
            bytes.extend_from_slice(&self.times.wall_ms.to_le_bytes());
            bytes.extend_from_slice(&self.times.elapsed_ms.to_le_bytes());
        }
        bytes.extend_from_slice(&(identity.len() as u32).to_le_bytes());
        bytes.extend_from_slice(identity.as_bytes());
        bytes.extend_from_slice(&crc32c(0, &bytes).to_le_bytes());
        bytes
    }

    /// The name of the file that such a backup is kept in.
    pub fn file_name(&self) -> String {
        let (what, number) = match self.kind {
            Kind::Snapshot => (SNAPSHOT, self.last),
            Kind::Changes => (CHANGES, self.first),
        };
        format!("{what}{number:020}-{:08x}", self.timeline)
    }
}

/// Why a backup can't be used.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// It can't be read.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It is no backup, or of a newer build.
    #[error("{}: this is no backup, or one of a newer version of Cairn", path.display())]
    Unknown {
        /// The file.
        path: PathBuf,
    },
    /// It is not what was written.
    #[error("{}: damaged at byte {offset}; use another backup", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where.
        offset: u64,
    },
    /// It has no end.
    #[error("{}: it ends early, so it was not received whole; use another backup", path.display())]
    Cut {
        /// The file.
        path: PathBuf,
    },
}

/// Makes the bytes of a backup, piece by piece.
pub(super) struct Encoder<'a> {
    out: &'a mut dyn FnMut(Vec<u8>) -> bool,
    frame: FrameBuilder,
    entries: u64,
}

/// Who is to have the bytes takes no more.
#[derive(Debug)]
pub(super) struct Gone;

impl Encoder<'_> {
    /// Begins a backup; `out` takes its pieces, and says whether it wants more.
    pub fn begin<'a>(
        header: &Header,
        out: &'a mut dyn FnMut(Vec<u8>) -> bool,
    ) -> Result<Encoder<'a>, Gone> {
        let first = match header.kind {
            Kind::Snapshot => 1,
            Kind::Changes => header.first,
        };
        let begun = out(header.to_bytes());
        let encoder = Encoder { out, frame: FrameBuilder::new(first), entries: 0 };
        begun.then_some(encoder).ok_or(Gone)
    }

    /// Adds an entry. True where the next one begins a frame.
    pub fn push(&mut self, entry: &[u8]) -> Result<bool, Gone> {
        self.frame.push(entry);
        self.entries += 1;
        let is_long = self.frame.len() >= FRAME_LEN_GOAL;
        if is_long {
            self.end_frame()?;
        }
        Ok(is_long)
    }

    /// Has the next entry begin a frame.
    pub fn end_frame(&mut self) -> Result<(), Gone> {
        if self.frame.is_empty() {
            return Ok(());
        }
        let next = self.frame.last() + 1;
        let frame = std::mem::replace(&mut self.frame, FrameBuilder::new(next));
        (self.out)(frame.finish(true, SALT)).then_some(()).ok_or(Gone)
    }

    /// Ends the backup: without this it is not whole.
    pub fn end(mut self) -> Result<(), Gone> {
        self.end_frame()?;
        let mut bytes = END.to_vec();
        bytes.extend_from_slice(&self.entries.to_le_bytes());
        bytes.extend_from_slice(&crc32c(0, &bytes).to_le_bytes());
        (self.out)(bytes).then_some(()).ok_or(Gone)
    }
}

/// A backup that is read from its start to its end.
pub struct BackupFile {
    path: PathBuf,
    /// What it tells of itself.
    pub header: Header,
    file: BufReader<File>,
    frame: Vec<u8>,
    offset: u64,
    next: u64,
    entries: u64,
}

impl BackupFile {
    /// Opens a backup.
    pub fn open(path: &Path) -> Result<BackupFile, FileError> {
        let io = |source| FileError::Io { path: path.to_owned(), source };
        let unknown = || FileError::Unknown { path: path.to_owned() };
        let mut file = BufReader::with_capacity(1 << 20, File::open(path).map_err(io)?);
        let mut bytes = vec![0; HEADER_LEN];
        file.read_exact(&mut bytes).map_err(|_| unknown())?;
        let number = |bytes: &[u8], at: usize| {
            bytes[at..].first_chunk().map_or(0, |chunk| u32::from_le_bytes(*chunk))
        };
        let long = |bytes: &[u8], at: usize| {
            bytes[at..].first_chunk().map_or(0, |chunk| u64::from_le_bytes(*chunk))
        };
        let (version, kind) = (number(&bytes, 8), number(&bytes, 12));
        let header_len = match version {
            FIRST_VERSION => HEADER_LEN,
            CHAIN_VERSION => HEADER_LEN + CHAIN_LEN,
            VERSION => HEADER_LEN + CHAIN_LEN + TIMES_LEN,
            _ => return Err(unknown()),
        };
        let kind = match kind {
            1 => Kind::Snapshot,
            2 => Kind::Changes,
            _ => return Err(unknown()),
        };
        bytes.resize(header_len, 0);
        file.read_exact(&mut bytes[HEADER_LEN..]).map_err(|_| unknown())?;
        let identity_len = number(&bytes, header_len - 4) as usize;
        if !bytes.starts_with(MAGIC) || identity_len > IDENTITY_LEN_MAX {
            return Err(unknown());
        }
        bytes.resize(header_len + identity_len + 4, 0);
        let damaged = || FileError::Damaged { path: path.to_owned(), offset: 0 };
        file.read_exact(&mut bytes[header_len..]).map_err(|_| damaged())?;
        let (head, crc) = bytes.split_at(header_len + identity_len);
        if crc32c(0, head).to_le_bytes() != crc {
            return Err(damaged());
        }
        let text = std::str::from_utf8(&head[header_len..]).map_err(|_| damaged())?;
        let identity = Identity::from_text(path, text).map_err(|_| damaged())?;
        let (first, last, made_ms) = (long(head, 16), long(head, 24), long(head, 32));
        let (timeline, chain) =
            (number(head, 40), (version > FIRST_VERSION).then(|| number(head, 44)));
        let times = match version {
            VERSION => Times { wall_ms: long(head, 48), elapsed_ms: long(head, 56) },
            _ => Times::default(),
        };
        let header = Header { kind, first, last, made_ms, timeline, chain, times, identity };
        let next = if kind == Kind::Snapshot { 1 } else { first };
        let (path, offset) = (path.to_owned(), bytes.len() as u64);
        Ok(BackupFile { path, header, file, frame: Vec::new(), offset, next, entries: 0 })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The next frame; none at the end, which must be there.
    pub fn next_frame(&mut self) -> Result<Option<Frame<'_>>, FileError> {
        self.frame.clear();
        self.read_up_to(END_LEN)?;
        if self.frame.starts_with(END) {
            return self.check_end().map(|()| None);
        }
        self.read_up_to(frame::HEADER_LEN)?;
        let damaged = FileError::Damaged { path: self.path.clone(), offset: self.offset };
        let Some(len) = frame::len(&self.frame) else { return Err(damaged) };
        self.read_up_to(len)?;
        match frame::parse(&self.frame, SALT) {
            Some(frame) if frame.first == self.next => {
                self.next = frame.last() + 1;
                self.entries += frame.entries().len() as u64;
                self.offset += len as u64;
                Ok(Some(frame))
            }
            _ => Err(damaged),
        }
    }

    /// Reads on until there are so many bytes of what begins here.
    fn read_up_to(&mut self, len: usize) -> Result<(), FileError> {
        let there = self.frame.len();
        self.frame.resize(len.max(there), 0);
        let read = self.file.read_exact(&mut self.frame[there..]);
        read.map_err(|source| match source.kind() {
            io::ErrorKind::UnexpectedEof => FileError::Cut { path: self.path.clone() },
            _ => FileError::Io { path: self.path.clone(), source },
        })
    }

    fn check_end(&mut self) -> Result<(), FileError> {
        let (said, crc) = self.frame.split_at(END_LEN - 4);
        let entries = said[END.len()..].first_chunk().map_or(0, |count| u64::from_le_bytes(*count));
        let is_whole = crc32c(0, said).to_le_bytes() == crc
            && entries == self.entries
            && (self.header.kind == Kind::Snapshot || self.next == self.header.last + 1);
        let more = self.file.read(&mut [0]);
        let more = more.map_err(|source| FileError::Io { path: self.path.clone(), source })?;
        match is_whole && more == 0 {
            true => Ok(()),
            false => Err(FileError::Damaged { path: self.path.clone(), offset: self.offset }),
        }
    }

    /// Reads all that follows; fails unless the backup is whole.
    pub fn check(mut self) -> Result<Header, FileError> {
        while self.next_frame()?.is_some() {}
        Ok(self.header)
    }
}

/// A record of a snapshot's table.
pub(super) fn record(key: &[u8], value: &[u8]) -> Vec<u8> {
    let mut bytes = (key.len() as u32).to_le_bytes().to_vec();
    bytes.extend_from_slice(key);
    bytes.extend_from_slice(value);
    bytes
}

/// Key and value of a record.
pub(super) fn split(record: &[u8]) -> Option<(&[u8], &[u8])> {
    let (len, rest) = record.split_first_chunk()?;
    rest.split_at_checked(u32::from_le_bytes(*len) as usize)
}
