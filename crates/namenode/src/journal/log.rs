//! The log's files: segments of frames, named by the number of their first entry.
//!
//! A segment is synced before the next one begins, so only the last one can end in a torn frame. That
//! frame is cut off if nothing after it proves that it had been acknowledged. Damage to entries that the store has
//! is passed over. Any other refuses the start, because going on would lose entries silently.

use super::frame::{self, Frame, FrameBuilder};
use super::segment::{self, Header};
use crate::disk::{Disk, DiskFile, Folders, SharedDisk};
use std::fs;
use std::io;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;

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
    /// The system gives no random numbers.
    #[error("no random numbers: {0}")]
    Random(getrandom::Error),
    /// A segment's header is damaged.
    #[error("{}: the segment's header is damaged", path.display())]
    Header {
        /// The file.
        path: PathBuf,
    },
    /// A newer build has written it.
    #[error(
        "{}: a newer version of Cairn has written this log (format {found}, this version knows up to {known}); \
         start that version", path.display()
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: u32,
        /// The newest that this build knows.
        known: u32,
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
    disk: SharedDisk,
    dir: PathBuf,
    /// First numbers of all segments, ascending; the last one is open.
    segments: Vec<u64>,
    /// Bytes of segments that are not needed any more and stay for backups.
    keep_len: u64,
    file: Box<dyn DiskFile>,
    /// Of the open segment.
    header: Header,
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
        Log::create_on(&Disk::shared(), dir, namespace_id, next)
    }

    /// The same on another disk.
    pub(super) fn create_on(
        disk: &SharedDisk,
        dir: &Path,
        namespace_id: u32,
        next: u64,
    ) -> Result<Log, LogError> {
        Log::create_of(segment::VERSION, disk, dir, namespace_id, next)
    }

    /// The same of a certain version.
    pub(super) fn create_of(
        version: u32,
        disk: &SharedDisk,
        dir: &Path,
        namespace_id: u32,
        next: u64,
    ) -> Result<Log, LogError> {
        let (file, header) = create_segment(&**disk, dir, namespace_id, next, version)?;
        let len = header.len() as u64;
        Ok(Log {
            disk: Arc::clone(disk),
            dir: dir.to_owned(),
            segments: vec![next],
            keep_len: 0,
            file,
            header,
            len,
            room_end: len,
            next,
            synced: true,
        })
    }

    /// The same log, which has segments stay that are not needed any more, as many as have `len` bytes together.
    pub fn keeping(self, len: u64) -> Log {
        Log { keep_len: len, ..self }
    }

    /// Opens the log in `dir` and hands every entry after `applied` to `replay`, in order.
    pub fn open<E: From<LogError>>(
        disk: &SharedDisk,
        dir: &Path,
        namespace_id: u32,
        applied: u64,
        replay: Replay<'_, E>,
    ) -> Result<Log, E> {
        let Walked { segments, last_first, next, end, version } =
            walk(dir, namespace_id, applied, &mut |sequence, entry| {
                if sequence > applied { replay(sequence, entry) } else { Ok(()) }
            })?;
        if next <= applied {
            // The store outlived the end of the log; it has everything that the segments had.
            let log = Log::create_of(version, disk, dir, namespace_id, applied + 1)?;
            for first in segments {
                remove_segment(&**disk, dir, first)?;
            }
            return Ok(log);
        }
        let path = segment_path(dir, last_first);
        let (header, end) = match end {
            Some(end) => end,
            None => {
                let header = Header::new(namespace_id, last_first, version);
                let header = header.map_err(LogError::Random)?;
                (header, header.len() as u64)
            }
        };
        let file = reopen(&**disk, &path, header, end).map_err(io_error(&path))?;
        let (disk, dir, len) = (Arc::clone(disk), dir.to_owned(), end);
        let (keep_len, room_end, synced) = (0, len, true);
        let mut log =
            Log { disk, dir, segments, keep_len, file, header, len, room_end, next, synced };
        if !header.is_gone_on_with() {
            log.begin_segment(header.next_version())?;
        }
        Ok(log)
    }

    /// The same log with another file for what is appended next.
    #[cfg(test)]
    pub fn onto(self, file: Box<dyn DiskFile>) -> Log {
        Log { file, ..self }
    }

    /// Bytes of the open segment.
    pub fn segment_len(&self) -> u64 {
        self.len
    }

    /// Appends a frame that goes on where the log ends. Returns how many bytes it has there. After an error the log must
    /// not be used again.
    pub fn append(&mut self, frame: FrameBuilder, sync: bool) -> io::Result<u64> {
        let last = frame.last();
        let frame = frame.finish(self.synced, self.header.salt());
        let end = self.len + frame.len() as u64;
        if sync && end > self.room_end {
            self.make_room(end);
        }
        self.file.write(self.len, &frame)?;
        self.len = end;
        self.next = last + 1;
        self.synced = false;
        if sync {
            self.sync()?;
        }
        Ok(frame.len() as u64)
    }

    /// Has zeros behind `end`.
    fn make_room(&mut self, end: u64) {
        // Where the disk has no space for all of them, the log goes on as long as it can.
        let _ = self.file.write(end, &vec![0; ROOM_LEN]);
        self.room_end = end + ROOM_LEN as u64;
    }

    /// Brings everything to stable storage.
    pub fn sync(&mut self) -> io::Result<()> {
        if !self.synced {
            self.file.sync()?;
            self.synced = true;
        }
        Ok(())
    }

    /// Goes on in a new segment.
    pub fn roll(&mut self) -> Result<(), LogError> {
        if self.segments.last() == Some(&self.next) {
            return Ok(());
        }
        self.begin_segment(self.header.next_version())
    }

    /// Whether it is of the newest version.
    pub fn is_newest(&self) -> bool {
        self.header.is_newest()
    }

    /// Goes on in the newest version.
    pub fn finalize(&mut self) -> Result<(), LogError> {
        if self.is_newest() { Ok(()) } else { self.begin_segment(segment::VERSION) }
    }

    /// Goes on in a new segment, which takes the place of the open one if that is empty.
    fn begin_segment(&mut self, version: u32) -> Result<(), LogError> {
        self.end_segment().map_err(io_error(&self.dir))?;
        let namespace_id = self.header.namespace_id;
        (self.file, self.header) =
            create_segment(&*self.disk, &self.dir, namespace_id, self.next, version)?;
        self.len = self.header.len() as u64;
        self.room_end = self.len;
        if self.segments.last() != Some(&self.next) {
            self.segments.push(self.next);
        }
        Ok(())
    }

    /// Syncs the open segment without the zeros behind it: only the last one may have them.
    fn end_segment(&mut self) -> io::Result<()> {
        if self.room_end > self.len {
            self.file.set_len(self.len)?;
            self.file.sync()?;
            (self.room_end, self.synced) = (self.len, true);
        }
        self.sync()
    }

    /// Deletes the segments whose entries are all at most `applied`, except the open one and those that are to stay.
    pub fn truncate_front(&mut self, applied: u64) -> Result<(), LogError> {
        let others = self.segments.iter().skip(1);
        let mut needless = others.take_while(|first| **first <= applied + 1).count();
        let mut kept_len = 0;
        while needless > 0 && self.keep_len > 0 {
            let path = segment_path(&self.dir, self.segments[needless - 1]);
            kept_len += fs::metadata(&path).map_err(io_error(&path))?.len();
            if kept_len > self.keep_len {
                break;
            }
            needless -= 1;
        }
        let (disk, dir) = (&*self.disk, &self.dir);
        self.segments.drain(..needless).try_for_each(|first| remove_segment(disk, dir, first))
    }
}

/// What a log has.
struct Walked {
    segments: Vec<u64>,
    last_first: u64,
    /// The entry behind the last one.
    next: u64,
    /// Of the last segment the header and where its entries end; none if its header is torn.
    end: Option<(Header, u64)>,
    /// What is appended is of this version.
    version: u32,
}

/// Hands to `visit` the entries of the segments that a start reads with a store that has those up to `applied`. Changes
/// nothing.
fn walk<E: From<LogError>>(
    dir: &Path,
    namespace_id: u32,
    applied: u64,
    visit: Replay<'_, E>,
) -> Result<Walked, E> {
    let segments = list_segments(dir)?;
    let gap = |path: &Path, expected, found| {
        E::from(LogError::Gap { path: path.to_owned(), expected, found })
    };
    let Some(&last_first) = segments.last() else {
        return Err(gap(dir, applied + 1, 0));
    };
    // What lies before the segment with the next entry is in the store, whatever became of it.
    let begun = segments.partition_point(|first| *first <= applied + 1);
    let Some(start) = begun.checked_sub(1) else {
        return Err(gap(dir, applied + 1, segments[0]));
    };
    let (mut next, mut end, mut version) = (segments[start], None, segment::VERSION);
    for &first in &segments[start..] {
        let path = segment_path(dir, first);
        if first != next {
            return Err(gap(&path, next, first));
        }
        let bytes = fs::read(&path).map_err(io_error(&path))?;
        let is_last = first == last_first;
        let segment = Segment { path: &path, namespace_id, bytes: &bytes, first, is_last, applied };
        end = segment.read::<E>(&mut |frame| {
            for (sequence, entry) in (frame.first..).zip(frame.entries()) {
                visit(sequence, entry)?;
            }
            next = frame.last() + 1;
            Ok(())
        })?;
        if let Some((header, _)) = &end {
            version = header.next_version();
        }
    }
    Ok(Walked { segments, last_first, next, end, version })
}

/// Hands to `visit` what a start would read. Changes nothing.
pub fn read_all<E: From<LogError>>(
    dir: &Path,
    namespace_id: u32,
    applied: u64,
    visit: Replay<'_, E>,
) -> Result<(), E> {
    walk(dir, namespace_id, applied, visit).map(|_| ())
}

/// The segments that have the entry `first` and what follows, for [`read`]. None if the log begins behind it.
pub fn reach(dir: &Path, first: u64) -> Result<Option<Vec<u64>>, LogError> {
    let mut segments = list_segments(dir)?;
    let behind = segments.partition_point(|begin| *begin <= first);
    Ok(behind.checked_sub(1).map(|start| segments.split_off(start)))
}

/// Hands the bytes of each entry of a range to `visit`, in order, out of a log to which others may append. Returns the
/// number behind the last one: a segment may have been deleted meanwhile.
pub fn read<E: From<LogError>>(
    dir: &Path,
    namespace_id: u32,
    segments: &[u64],
    range: &RangeInclusive<u64>,
    visit: &mut dyn FnMut(&[u8]) -> Result<(), E>,
) -> Result<u64, E> {
    let mut next = *range.start();
    for first in segments.iter().filter(|first| *first <= range.end()) {
        let path = segment_path(dir, *first);
        let bytes = match fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(next),
            bytes => bytes.map_err(io_error(&path))?,
        };
        let (first, is_last) = (*first, Some(first) == segments.last());
        let segment =
            Segment { path: &path, namespace_id, bytes: &bytes, first, is_last, applied: 0 };
        segment.read::<E>(&mut |frame| {
            for (sequence, entry) in (frame.first..).zip(frame.entries()) {
                if sequence == next && range.contains(&sequence) {
                    visit(entry)?;
                    next = sequence + 1;
                }
            }
            Ok(())
        })?;
    }
    Ok(next)
}

/// Removes all of a log.
pub(super) fn remove_all_segments(dir: &Path) -> Result<(), LogError> {
    list_segments(dir)?.into_iter().try_for_each(|first| remove_segment(&Disk, dir, first))
}

fn create_segment(
    disk: &dyn Folders,
    dir: &Path,
    namespace_id: u32,
    first: u64,
    version: u32,
) -> Result<(Box<dyn DiskFile>, Header), LogError> {
    let header = Header::new(namespace_id, first, version).map_err(LogError::Random)?;
    let path = segment_path(dir, first);
    let create = || {
        let file = disk.create_file(&path)?;
        file.write(0, &header.to_bytes())?;
        file.sync()?;
        disk.sync(dir)?;
        Ok((file, header))
    };
    create().map_err(io_error(&path))
}

fn remove_segment(disk: &dyn Folders, dir: &Path, first: u64) -> Result<(), LogError> {
    let path = segment_path(dir, first);
    disk.remove_file(&path).and_then(|()| disk.sync(dir)).map_err(io_error(&path))
}

/// Opens a segment for appending at `end` and drops what lies behind; the header is written anew in
/// case that it was torn.
fn reopen(
    disk: &dyn Folders,
    path: &Path,
    header: Header,
    end: u64,
) -> io::Result<Box<dyn DiskFile>> {
    let file = disk.open_file(path)?;
    file.set_len(end)?;
    file.write(0, &header.to_bytes())?;
    file.sync()?;
    Ok(file)
}

/// A segment that is read.
struct Segment<'a> {
    path: &'a Path,
    namespace_id: u32,
    bytes: &'a [u8],
    first: u64,
    is_last: bool,
    /// The last entry that the store has.
    applied: u64,
}

impl Segment<'_> {
    /// Hands each frame to `visit` and returns the header and where the valid part ends; none of a segment whose
    /// header is torn.
    fn read<E: From<LogError>>(
        &self,
        visit: &mut dyn FnMut(&Frame<'_>) -> Result<(), E>,
    ) -> Result<Option<(Header, u64)>, E> {
        let header = match self.header() {
            Ok(header) => header,
            Err(error @ LogError::Newer { .. }) => return Err(error.into()),
            // Torn while it was created: nothing was written to it yet.
            Err(_) if self.is_last && self.bytes.len() <= segment::LEN_MAX => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let salt = header.salt();
        let (mut at, mut next) = (header.len(), self.first);
        while at < self.bytes.len() {
            match frame::parse(&self.bytes[at..], salt) {
                Some(frame) if frame.first == next => {
                    visit(&frame)?;
                    next = frame.last() + 1;
                    at += frame.len;
                    continue;
                }
                _ => {}
            }
            let behind = &self.bytes[at + 1..];
            if let Some(skipped) = self.needed(&header, behind, next) {
                tracing::warn!(
                    path = %self.path.display(), offset = at, len = skipped + 1,
                    "the log is damaged; all that was there is in the store",
                );
                at += 1 + skipped;
                next = frame::parse(&self.bytes[at..], salt).map_or(next, |frame| frame.first);
            } else if self.is_last && !frame::vouched_by_later(behind, salt, next + 1) {
                break;
            } else {
                let (path, offset) = (self.path.to_owned(), at as u64);
                return Err(LogError::Damaged { path, sequence: next, offset }.into());
            }
        }
        Ok(Some((header, at as u64)))
    }

    /// Where behind damage to the entry `next` a frame begins before which there is nothing that the store has not.
    fn needed(&self, header: &Header, behind: &[u8], next: u64) -> Option<usize> {
        let is_searched = next <= self.applied && !header.can_be_forged();
        let wanted = |frame: &Frame<'_>| (next + 1..=self.applied + 1).contains(&frame.first);
        is_searched.then(|| frame::find(behind, header.salt(), wanted))?
    }

    fn header(&self) -> Result<Header, LogError> {
        let path = || self.path.to_owned();
        if let Some(found) = Header::newer(self.bytes) {
            return Err(LogError::Newer { path: path(), found, known: segment::VERSION });
        }
        let header = Header::parse(self.bytes).filter(|header| header.first == self.first);
        let header = header.ok_or_else(|| LogError::Header { path: path() })?;
        if header.namespace_id != self.namespace_id {
            let (found, expected) = (header.namespace_id, self.namespace_id);
            return Err(LogError::Namespace { path: path(), found, expected });
        }
        Ok(header)
    }
}
