//! What entries have done, kept beside the store for watchers who come back when the log no longer has them.
//!
//! Segments of frames, each frame with the events of a run of entries, without a gap from the first frame of the first
//! segment to the last of the last one. The oldest segments go when all are too long. A frame is on the disk before
//! the store counts its entries as its own; a start cuts off what the store does not have, which comes out of the
//! log once more. So nothing is missed without a word, and nothing is told twice.
//!
//! It is a help and no more: what is torn, damaged, or does not end where the store does makes it shorter, and never
//! stops anything. Who watches is then told that something is missing ([`super::recent`]).
//!
//! Format: `docs/on-disk.md`. Tested in `history/tests.rs`, `journal/tests.rs`, `tests/it/watching.rs`.

mod frame;
#[cfg(test)]
mod tests;

use crate::disk::sync_dir;
use cairn_namespace::events::EventBatch;
use frame::{FRAME_HEADER_LEN, Frame, HEADER_LEN};
use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A frame is closed when its events are about this long, in bytes.
pub(super) const FRAME_LEN_GOAL: usize = 64 << 10;
/// Shortest history that can be asked for, in bytes.
pub const LIMIT_MIN: u64 = 1 << 20;
/// Parts that go one by one when the history is too long.
const SEGMENTS: u64 = 16;
/// Bytes that are read at a time.
const CHUNK_LEN: usize = 256 << 10;
/// How exactly it is known where in a segment an entry is, in bytes.
const MARK_EVERY: u64 = 64 << 10;

/// Where a segment is and what it has.
#[derive(Debug)]
struct Segment {
    first: u64,
    len: u64,
    /// Entries with which frames begin, and where these are; learned when they are written or read.
    marks: Vec<(u64, u64)>,
}

impl Segment {
    fn new(first: u64, len: u64) -> Segment {
        Segment { first, len, marks: vec![(first, HEADER_LEN as u64)] }
    }

    /// A frame whose first entry is `first` begins at `offset`.
    fn mark(&mut self, first: u64, offset: u64) {
        if self.marks.last().is_none_or(|(_, last)| *last + MARK_EVERY <= offset) {
            self.marks.push((first, offset));
        }
    }

    /// The first entry of a frame at or before that of the entry `sequence`, and where it begins.
    fn begin(&self, sequence: u64) -> (u64, u64) {
        let at = self.marks.partition_point(|(first, _)| *first <= sequence);
        self.marks[at.saturating_sub(1)]
    }
}

/// The history of a namespace.
#[derive(Debug)]
pub(super) struct History {
    dir: PathBuf,
    namespace_id: u32,
    limit: u64,
    /// Ascending; the last one is open.
    segments: VecDeque<Segment>,
    open: Option<Arc<File>>,
    /// The entry behind the last one.
    next: u64,
}

fn segment_path(dir: &Path, first: u64) -> PathBuf {
    dir.join(format!("events-{first:020}"))
}

fn list(dir: &Path) -> io::Result<Vec<u64>> {
    let mut segments = Vec::new();
    for entry in fs::read_dir(dir)? {
        let name = entry?.file_name();
        let number = |name: &str| name.strip_prefix("events-")?.parse::<u64>().ok();
        segments.extend(name.to_str().and_then(number));
    }
    segments.sort_unstable();
    Ok(segments)
}

fn damaged(path: &Path, offset: u64) -> io::Error {
    let why = format!("{}: the frame at byte {offset} is damaged", path.display());
    io::Error::new(io::ErrorKind::InvalidData, why)
}

impl History {
    /// What is there of the namespace in `dir`, up to the last entry that the store has. Nothing is kept where that is
    /// not all up to there. `limit` bytes stay at most.
    pub fn open(dir: &Path, namespace_id: u32, limit: u64, applied: u64) -> History {
        let mut history = History::none(dir, namespace_id, limit);
        if let Err(error) = history.find(applied) {
            tracing::warn!(%error, "the history of events cannot be read");
        }
        if history.open.is_none() || history.next != applied + 1 {
            if !history.segments.is_empty() {
                let dir = dir.display();
                tracing::warn!(%dir, "the history of events does not go on where the store ends: watchers will have missed some");
            }
            history.clear();
        }
        history
    }

    /// An empty one; whatever is there stays until something is added.
    pub fn none(dir: &Path, namespace_id: u32, limit: u64) -> History {
        let (dir, limit) = (dir.to_owned(), limit.max(LIMIT_MIN));
        History { dir, namespace_id, limit, segments: VecDeque::new(), open: None, next: 0 }
    }

    /// Looks for the last segment that has something of what the store has, and ends it there.
    fn find(&mut self, applied: u64) -> io::Result<()> {
        for first in list(&self.dir)? {
            let len = fs::metadata(segment_path(&self.dir, first))?.len();
            self.segments.push_back(Segment::new(first, len));
        }
        while let Some(last) = self.segments.back_mut() {
            let path = segment_path(&self.dir, last.first);
            let (mut next, mut end) = (last.first, 0);
            if let Ok(mut frames) = Frames::open(&path, self.namespace_id, last, last.first) {
                // What is damaged or torn ends it.
                while let Ok(Some((begin, frame))) = frames.next() {
                    if frame.last > applied {
                        break;
                    }
                    next = frame.last + 1;
                    let first = frame.first;
                    end = frames.offset;
                    last.mark(first, begin);
                }
            }
            if end > 0 {
                let file = OpenOptions::new().read(true).write(true).open(&path)?;
                file.set_len(end)?;
                file.sync_all()?;
                last.len = end;
                (self.next, self.open) = (next, Some(Arc::new(file)));
                return Ok(());
            }
            fs::remove_file(&path)?;
            self.segments.pop_back();
        }
        Ok(())
    }

    /// The first entry that it has, and the one behind the last.
    pub fn covers(&self) -> Option<(u64, u64)> {
        self.segments.front().map(|segment| (segment.first, self.next))
    }

    /// The file that has what was added last, to be synced.
    pub fn file(&self) -> Option<Arc<File>> {
        self.open.clone()
    }

    /// Adds what the entries from `first` to `last` have done, which follow those that it has. An error leaves it in
    /// a state in which it must be cleared.
    pub fn append(&mut self, first: u64, last: u64, batches: &[Arc<EventBatch>]) -> io::Result<()> {
        let too_long = || io::Error::other("what one entry has done is too long");
        let bytes = frame::build(first, last, batches).ok_or_else(too_long)?;
        let is_full = |segment: &Segment| segment.len >= self.limit / SEGMENTS;
        if self.segments.back().is_none_or(is_full) {
            self.roll(first)?;
        }
        let (Some(file), Some(segment)) = (&self.open, self.segments.back_mut()) else {
            return Err(io::Error::other("no segment is open"));
        };
        file.write_all_at(&bytes, segment.len)?;
        segment.mark(first, segment.len);
        segment.len += bytes.len() as u64;
        self.next = last + 1;
        self.drop_oldest();
        Ok(())
    }

    /// Goes on in a new segment. The one before is on the disk by then, so that only the last can be torn.
    fn roll(&mut self, first: u64) -> io::Result<()> {
        if let Some(file) = &self.open {
            file.sync_data()?;
        } else {
            // What another start has left there is of no use.
            self.clear();
        }
        let path = segment_path(&self.dir, first);
        let file =
            OpenOptions::new().read(true).write(true).create(true).truncate(true).open(path)?;
        file.write_all_at(&frame::header(self.namespace_id, first), 0)?;
        file.sync_all()?;
        sync_dir(&self.dir)?;
        self.open = Some(Arc::new(file));
        self.segments.push_back(Segment::new(first, HEADER_LEN as u64));
        Ok(())
    }

    fn drop_oldest(&mut self) {
        let len = |segments: &VecDeque<Segment>| segments.iter().map(|it| it.len).sum::<u64>();
        while self.segments.len() > 1 && len(&self.segments) > self.limit {
            self.forget(1);
        }
    }

    /// Gives up the oldest so many segments.
    fn forget(&mut self, count: usize) {
        for segment in self.segments.drain(..count) {
            remove(&segment_path(&self.dir, segment.first));
        }
        if self.segments.is_empty() {
            self.open = None;
        }
    }

    /// Gives all up.
    pub fn clear(&mut self) {
        self.segments.clear();
        self.open = None;
        match list(&self.dir) {
            Ok(found) => found.iter().for_each(|first| remove(&segment_path(&self.dir, *first))),
            Err(error) => tracing::warn!(%error, "the history of events cannot be removed"),
        }
    }

    /// Adds to `out` what the entry `sequence` and later ones have done, of as many entries as hold `limit` events;
    /// answers with the last entry that was looked at. It must have `sequence`. Where it is damaged, it is given up
    /// that far, and an error is returned if nothing of it can be told.
    pub fn read(
        &mut self,
        sequence: u64,
        limit: usize,
        out: &mut Vec<EventBatch>,
    ) -> io::Result<u64> {
        let behind = self.segments.partition_point(|segment| segment.first <= sequence);
        let missing = || io::Error::other(format!("entry {sequence} is not in the history"));
        let at = behind.checked_sub(1).filter(|_| sequence < self.next).ok_or_else(missing)?;
        let end = self.segments.get(behind).map_or(self.next, |segment| segment.first);
        let path = segment_path(&self.dir, self.segments[at].first);
        let segment = &mut self.segments[at];
        let mut told = sequence;
        let read =
            read_segment(&path, self.namespace_id, segment, (sequence, end), limit, out, &mut told);
        if let Err(error) = read {
            tracing::warn!(%error, "the history of events is damaged: watchers will have missed some");
            self.forget(behind);
            if told == sequence {
                return Err(error);
            }
        }
        Ok(told - 1)
    }
}

fn remove(path: &Path) {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            let path = path.display();
            tracing::warn!(%path, %error, "a part of the history of events cannot be removed");
        }
        _ => {}
    }
}

/// Adds to `out` what the entries from the first to before the last of a range have done, and moves `told` behind the
/// last entry that was looked at.
fn read_segment(
    path: &Path,
    namespace_id: u32,
    segment: &mut Segment,
    (sequence, end): (u64, u64),
    limit: usize,
    out: &mut Vec<EventBatch>,
    told: &mut u64,
) -> io::Result<()> {
    let mut frames = Frames::open(path, namespace_id, segment, sequence)?;
    let mut count = 0;
    while let Some((begin, frame)) = frames.next()? {
        let (first, last) = (frame.first, frame.last);
        if last >= end {
            return Err(damaged(path, begin));
        }
        if last >= sequence {
            let batches = frame.batches().ok_or_else(|| damaged(path, begin))?;
            for batch in batches.into_iter().filter(|batch| batch.sequence >= sequence) {
                count += batch.events.len();
                *told = batch.sequence + 1;
                out.push(batch);
                if count >= limit {
                    return Ok(());
                }
            }
            *told = last + 1;
        }
        segment.mark(first, begin);
    }
    if frames.expected == end { Ok(()) } else { Err(damaged(path, frames.offset)) }
}

/// Reads the frames of a segment one by one.
struct Frames {
    path: PathBuf,
    file: File,
    len: u64,
    /// Where the next one begins.
    offset: u64,
    /// With which entry.
    expected: u64,
    chunk: Vec<u8>,
    chunk_at: u64,
}

impl Frames {
    /// From the last frame on that is known to begin at or before `sequence`.
    fn open(
        path: &Path,
        namespace_id: u32,
        segment: &Segment,
        sequence: u64,
    ) -> io::Result<Frames> {
        let file = File::open(path)?;
        let mut header = [0; HEADER_LEN];
        file.read_exact_at(&mut header, 0)?;
        if header[..] != frame::header(namespace_id, segment.first) {
            return Err(damaged(path, 0));
        }
        let (expected, offset) = segment.begin(sequence);
        let (path, len) = (path.to_owned(), segment.len);
        Ok(Frames { path, file, len, offset, expected, chunk: Vec::new(), chunk_at: 0 })
    }

    /// The next one and where it begins; none at the end.
    fn next(&mut self) -> io::Result<Option<(u64, Frame<'_>)>> {
        let begin = self.offset;
        if begin == self.len {
            return Ok(None);
        }
        let bad = damaged(&self.path, begin);
        let header = self.bytes(FRAME_HEADER_LEN)?.first_chunk();
        let Some(len) = header.and_then(frame::len) else { return Err(bad) };
        self.bytes(len)?;
        let at = (begin - self.chunk_at) as usize;
        match frame::parse(&self.chunk[at..at + len]) {
            Some(frame) if frame.first == self.expected => {
                self.offset += len as u64;
                self.expected = frame.last + 1;
                Ok(Some((begin, frame)))
            }
            _ => Err(bad),
        }
    }

    /// So many bytes from where the next frame begins.
    fn bytes(&mut self, len: usize) -> io::Result<&[u8]> {
        let left = self.len - self.offset;
        if len as u64 > left {
            return Err(damaged(&self.path, self.offset));
        }
        let end = self.chunk_at + self.chunk.len() as u64;
        if self.offset < self.chunk_at || self.offset + len as u64 > end {
            let chunk_len = len.max(CHUNK_LEN.min(left as usize));
            self.chunk.resize(chunk_len, 0);
            self.file.read_exact_at(&mut self.chunk, self.offset)?;
            self.chunk_at = self.offset;
        }
        let at = (self.offset - self.chunk_at) as usize;
        Ok(&self.chunk[at..at + len])
    }
}
