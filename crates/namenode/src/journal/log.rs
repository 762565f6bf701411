//! The log's files: segments of frames, named by the number of their first entry.
//!
//! A segment is synced before the next one begins, so only the last one can end in a torn frame. That
//! frame is cut off if nothing after it proves that it had been acknowledged; any other damage
//! refuses the start, because going on would lose entries silently.

use super::frame::{self, Frame};
use crate::store::sync_dir;
use cairn_codec::crc::crc32c;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

const MAGIC: &[u8; 8] = b"CAIRNLOG";
const VERSION: u32 = 1;
/// Magic, version, namespace id, first sequence number, CRC32C of these.
const HEADER_LEN: usize = 28;
/// Zeros that are written at a time behind what a synced log has. A sync of bytes that take the place of others is one
/// write; where the file grows, the file system's own records of that are written as well.
const ROOM_LEN: usize = 1 << 20;

/// Why the log can't be used.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// A file can't be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A segment's header is damaged or of another version.
    #[error("{}: the segment's header is damaged or of an unknown version", path.display())]
    Header {
        /// The file.
        path: PathBuf,
    },
    /// A segment of another file system.
    #[error("{}: the segment is of namespace {found}, not {expected}", path.display())]
    Namespace {
        /// The file.
        path: PathBuf,
        /// Whose it is.
        found: u32,
        /// Ours.
        expected: u32,
    },
    /// Entries that were acknowledged are damaged.
    #[error(
        "{}: entry {sequence} at byte {offset} is damaged and acknowledged entries follow it; \
         restore the file from a copy", path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Number of the first damaged entry.
        sequence: u64,
        /// Where its frame begins.
        offset: u64,
    },
    /// Entries between the store and the log, or between segments, are missing.
    #[error("{}: the log goes on at entry {found}, entry {expected} is missing", path.display())]
    Gap {
        /// The file or directory.
        path: PathBuf,
        /// The entry that is needed.
        expected: u64,
        /// The entry that is there.
        found: u64,
    },
}

/// Gets the number and the bytes of each entry.
pub type Replay<'a, E> = &'a mut dyn FnMut(u64, &[u8]) -> Result<(), E>;

/// The log, open for appending.
#[derive(Debug)]
pub struct Log {
    dir: PathBuf,
    namespace_id: u32,
    /// First numbers of all segments, ascending; the last one is open.
    segments: Vec<u64>,
    file: File,
    len: u64,
    /// Up to here the open segment may have zeros behind its entries.
    room_end: u64,
    next: u64,
    synced: bool,
}

fn segment_path(dir: &Path, first: u64) -> PathBuf {
    dir.join(format!("log-{first:020}"))
}

fn io_error(path: &Path) -> impl FnOnce(io::Error) -> LogError + '_ {
    |source| LogError::Io { path: path.to_owned(), source }
}

fn header(namespace_id: u32, first: u64) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend_from_slice(&VERSION.to_le_bytes());
    bytes.extend_from_slice(&namespace_id.to_le_bytes());
    bytes.extend_from_slice(&first.to_le_bytes());
    bytes.extend_from_slice(&crc32c(0, &bytes).to_le_bytes());
    bytes
}

fn list_segments(dir: &Path) -> Result<Vec<u64>, LogError> {
    let mut segments = Vec::new();
    for entry in fs::read_dir(dir).map_err(io_error(dir))? {
        let name = entry.map_err(io_error(dir))?.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix("log-")?.parse::<u64>().ok());
        segments.extend(number);
    }
    segments.sort_unstable();
    Ok(segments)
}

impl Log {
    /// Begins a log whose first entry is `next`.
    pub fn create(dir: &Path, namespace_id: u32, next: u64) -> Result<Log, LogError> {
        let (file, len) = create_segment(dir, namespace_id, next)?;
        Ok(Log {
            dir: dir.to_owned(),
            namespace_id,
            segments: vec![next],
            file,
            len,
            room_end: len,
            next,
            synced: true,
        })
    }

    /// Opens the log in `dir` and hands every entry after `applied` to `replay`, in order.
    pub fn open<E: From<LogError>>(
        dir: &Path,
        namespace_id: u32,
        applied: u64,
        replay: Replay<'_, E>,
    ) -> Result<Log, E> {
        let segments = list_segments(dir)?;
        let gap = |path: &Path, expected, found| {
            E::from(LogError::Gap { path: path.to_owned(), expected, found })
        };
        let Some((&last_first, _)) = segments.split_last() else {
            return Err(gap(dir, applied + 1, 0));
        };
        // What lies before the segment with the next entry is in the store, whatever became of it.
        let begun = segments.partition_point(|first| *first <= applied + 1);
        let Some(start) = begun.checked_sub(1) else {
            return Err(gap(dir, applied + 1, segments[0]));
        };
        let mut next = segments[start];
        let mut end = HEADER_LEN as u64;
        for &first in &segments[start..] {
            let path = segment_path(dir, first);
            if first != next {
                return Err(gap(&path, next, first));
            }
            let is_last = first == last_first;
            let bytes = fs::read(&path).map_err(io_error(&path))?;
            end = read_segment::<E>(&path, namespace_id, &bytes, first, is_last, &mut |frame| {
                for (sequence, entry) in (frame.first..).zip(&frame.entries) {
                    if sequence > applied {
                        replay(sequence, entry)?;
                    }
                }
                next = frame.last() + 1;
                Ok(())
            })?;
        }
        if next <= applied {
            // The store outlived the end of the log; it has everything that the segments had.
            let log = Log::create(dir, namespace_id, applied + 1)?;
            for first in segments {
                remove_segment(dir, first)?;
            }
            return Ok(log);
        }
        let path = segment_path(dir, last_first);
        let file = reopen(&path, namespace_id, last_first, end).map_err(io_error(&path))?;
        let dir = dir.to_owned();
        let len = end;
        Ok(Log { dir, namespace_id, segments, file, len, room_end: len, next, synced: true })
    }

    /// The same log with another file for what is appended next.
    #[cfg(test)]
    pub fn onto(self, file: File) -> Log {
        Log { file, ..self }
    }

    /// Bytes of the open segment.
    pub fn segment_len(&self) -> u64 {
        self.len
    }

    /// Whether everything so far is on stable storage.
    pub fn is_synced(&self) -> bool {
        self.synced
    }

    /// Appends a frame that goes on where the log ends; `last` is its last entry. After an error
    /// the log must not be used again.
    pub fn append(&mut self, frame: &[u8], last: u64, sync: bool) -> io::Result<()> {
        let end = self.len + frame.len() as u64;
        if sync && end > self.room_end {
            self.make_room(end);
        }
        self.file.write_all(frame)?;
        self.len = end;
        self.next = last + 1;
        self.synced = false;
        if sync { self.sync() } else { Ok(()) }
    }

    /// Has zeros behind `end`.
    fn make_room(&mut self, end: u64) {
        // Where the disk has no space for all of them, the log goes on as long as it can.
        let _ = self.file.write_all_at(&vec![0; ROOM_LEN], end);
        self.room_end = end + ROOM_LEN as u64;
    }

    /// Brings everything to stable storage.
    pub fn sync(&mut self) -> io::Result<()> {
        if !self.synced {
            self.file.sync_data()?;
            self.synced = true;
        }
        Ok(())
    }

    /// Goes on in a new segment.
    pub fn roll(&mut self) -> Result<(), LogError> {
        if self.segments.last() == Some(&self.next) {
            return Ok(());
        }
        self.end_segment().map_err(io_error(&self.dir))?;
        (self.file, self.len) = create_segment(&self.dir, self.namespace_id, self.next)?;
        self.room_end = self.len;
        self.segments.push(self.next);
        Ok(())
    }

    /// Syncs the open segment without the zeros behind it: only the last one may have them.
    fn end_segment(&mut self) -> io::Result<()> {
        if self.room_end > self.len {
            self.file.set_len(self.len)?;
            self.file.sync_all()?;
            (self.room_end, self.synced) = (self.len, true);
        }
        self.sync()
    }

    /// Deletes the segments whose entries are all at most `applied`, except the open one.
    pub fn truncate_front(&mut self, applied: u64) -> Result<(), LogError> {
        while self.segments.len() > 1 && self.segments[1] <= applied + 1 {
            let first = self.segments.remove(0);
            remove_segment(&self.dir, first)?;
        }
        Ok(())
    }
}

/// Removes all of a log.
pub(super) fn remove_all_segments(dir: &Path) -> Result<(), LogError> {
    list_segments(dir)?.into_iter().try_for_each(|first| remove_segment(dir, first))
}

fn create_segment(dir: &Path, namespace_id: u32, first: u64) -> Result<(File, u64), LogError> {
    let path = segment_path(dir, first);
    let create = || {
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).open(&path)?;
        let bytes = header(namespace_id, first);
        file.write_all(&bytes)?;
        file.sync_all()?;
        sync_dir(dir)?;
        Ok((file, bytes.len() as u64))
    };
    create().map_err(io_error(&path))
}

fn remove_segment(dir: &Path, first: u64) -> Result<(), LogError> {
    let path = segment_path(dir, first);
    fs::remove_file(&path).and_then(|()| sync_dir(dir)).map_err(io_error(&path))
}

/// Opens a segment for appending at `end` and drops what lies behind; the header is written anew in
/// case that it was torn.
fn reopen(path: &Path, namespace_id: u32, first: u64, end: u64) -> io::Result<File> {
    let mut file = OpenOptions::new().write(true).open(path)?;
    file.set_len(end)?;
    file.write_all(&header(namespace_id, first))?;
    file.sync_all()?;
    file.seek(SeekFrom::Start(end))?;
    Ok(file)
}

/// Hands each frame to `visit` and returns where the valid part ends.
fn read_segment<E: From<LogError>>(
    path: &Path,
    namespace_id: u32,
    bytes: &[u8],
    first: u64,
    is_last: bool,
    visit: &mut dyn FnMut(&Frame<'_>) -> Result<(), E>,
) -> Result<u64, E> {
    if let Err(error) = check_header(path, namespace_id, bytes, first) {
        // Torn while it was created: nothing was written to it yet.
        let torn = is_last && bytes.len() <= HEADER_LEN;
        return if torn { Ok(HEADER_LEN as u64) } else { Err(error.into()) };
    }
    let mut at = HEADER_LEN;
    let mut next = first;
    while at < bytes.len() {
        match frame::parse(&bytes[at..]) {
            Some(frame) if frame.first == next => {
                visit(&frame)?;
                next = frame.last() + 1;
                at += frame.len;
            }
            _ if is_last && !frame::vouched_by_later(&bytes[at + 1..], next + 1) => break,
            _ => {
                let path = path.to_owned();
                return Err(LogError::Damaged { path, sequence: next, offset: at as u64 }.into());
            }
        }
    }
    Ok(at as u64)
}

fn check_header(path: &Path, namespace_id: u32, bytes: &[u8], first: u64) -> Result<(), LogError> {
    let bad = || LogError::Header { path: path.to_owned() };
    let found = bytes.get(..HEADER_LEN).ok_or_else(bad)?;
    let id = found[12..16].try_into().map(u32::from_le_bytes).map_err(|_| bad())?;
    if found != header(id, first) {
        return Err(bad());
    }
    if id != namespace_id {
        let path = path.to_owned();
        return Err(LogError::Namespace { path, found: id, expected: namespace_id });
    }
    Ok(())
}
