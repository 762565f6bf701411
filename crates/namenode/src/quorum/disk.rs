//! The file of a member: who it is, what it has promised, and its log.
//!
//! ```text
//! magic 8 | record of where the log begins | records of writes
//! record: payload length 4 | promised term 8 | term 8 | index 8 | crc32c of payload 4 | crc32c of the 32 before 4 | payload
//! first payload: member 8 | base | quorum 8        others: 0 or 1, ballot | count 8, entries        numbers little endian
//! ```
//!
//! A write is one record, with the term that is promised and how far the log goes behind it. So where one is damaged, it is
//! known what may have been promised and how far the log may have gone: nobody can tell a write that was torn from one
//! that was acknowledged and has rotted since. Where a header is damaged that is not known, and the member is not gone on
//! with. A file that ends inside a header ends with a write that was never synced. Now and then the file is written anew without what is not needed any more, beside the old one, whose place it takes in
//! one step.

use crate::disk::sync_dir;
use cairn_codec::crc::crc32c;
use cairn_process::storage_dir;
use cairn_quorum::encoding::{Decoder, put_u64};
use cairn_quorum::{Ballot, Base, Entry, Malformed, MemberId, Reach, Saved};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

const MAGIC: &[u8; 8] = b"CRNQRM\x01\n";
const HEADER_LEN: usize = 36;
/// Entries of a write, at most.
const ENTRIES_MAX: usize = 1 << 20;
const FILE: &str = "quorum.log";
const NEW_FILE: &str = "quorum.new";

/// Why a member's file can't be used.
#[derive(Debug, thiserror::Error)]
pub enum DiskError {
    /// It can't be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Nobody knows what this member has promised.
    #[error(
        "{}: what this member has promised is damaged; remove the file, so that it joins as a new member", path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
    },
    /// A record that is whole makes no sense.
    #[error("{}: {source}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: Malformed,
    },
}

/// The file, open for appending.
#[derive(Debug)]
pub struct Disk {
    dir: PathBuf,
    file: File,
    member: MemberId,
    quorum: u64,
    ballot: Ballot,
    reach: Reach,
    len: u64,
}

impl Disk {
    /// Begins one with what is to be saved, in the place of any that is there. `quorum` is the number that was drawn for
    /// the quorum.
    pub fn create(
        dir: &Path,
        member: MemberId,
        quorum: u64,
        saved: &Saved,
    ) -> Result<Disk, DiskError> {
        write_anew(dir, (member, quorum), saved)
    }

    /// Opens the one in `dir`; none if there is none.
    pub fn open(dir: &Path) -> Result<Option<(Disk, Saved)>, DiskError> {
        let path = dir.join(FILE);
        let bytes = match fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            bytes => bytes.map_err(|source| DiskError::Io { path: path.clone(), source })?,
        };
        let malformed = |source| DiskError::Malformed { path: path.clone(), source };
        let damaged = || DiskError::Damaged { path: path.clone() };
        let rest = bytes.strip_prefix(MAGIC).ok_or_else(damaged)?;
        let Some(Record { payload: Some(payload), len, .. }) = Record::parse(rest) else {
            return Err(damaged());
        };
        let mut input = Decoder::new(payload);
        let member = MemberId::decode(&mut input).map_err(malformed)?;
        let base = Base::decode(&mut input).map_err(malformed)?;
        let quorum = input.u64().map_err(malformed)?;
        let mut saved = Saved { base, ..Saved::default() };
        let (mut at, mut lost, mut is_cut) = (MAGIC.len() + len, None, false);
        while at < bytes.len() {
            let rest = &bytes[at..];
            is_cut |= rest.len() < HEADER_LEN;
            if rest.len() < HEADER_LEN {
                break;
            }
            let record = Record::parse(rest).ok_or_else(damaged)?;
            match record.payload.filter(|_| lost.is_none()) {
                Some(payload) => take(&mut saved, payload).map_err(malformed)?,
                None => {
                    lost = Some(record.reach.or(lost));
                    // For whom it has voted in that term is not known any more.
                    saved.ballot.term = saved.ballot.term.max(record.promised);
                    saved.ballot.vote = Some(member);
                }
            }
            at += record.len;
        }
        if let Some(lost) = lost {
            saved.ballot.lost = Some(lost.or(saved.ballot.lost));
            tracing::warn!(
                path = %path.display(),
                "the end of this member's log is damaged and cut off: it does not stand for the lead before others have \
                 brought it there again",
            );
        }
        if lost.is_some() || is_cut {
            // The next start must know it as well.
            return Ok(Some((write_anew(dir, (member, quorum), &saved)?, saved)));
        }
        let file = OpenOptions::new().append(true).open(&path);
        let file = file.map_err(|source| DiskError::Io { path: path.clone(), source })?;
        let (ballot, reach) = (saved.ballot, reach(&saved));
        let (dir, len) = (dir.to_owned(), bytes.len() as u64);
        let disk = Disk { dir, file, member, quorum, ballot, reach, len };
        Ok(Some((disk, saved)))
    }

    /// Who it is.
    pub fn member(&self) -> MemberId {
        self.member
    }

    /// The number that was drawn for its quorum.
    pub fn quorum(&self) -> u64 {
        self.quorum
    }

    /// Bytes of the file.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether nothing was written to it; never so.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds a write, and has it on stable storage if `sync`. After an error it must not be used again.
    pub fn append(
        &mut self,
        ballot: Option<Ballot>,
        entries: &[Entry],
        sync: bool,
    ) -> io::Result<()> {
        if ballot.is_some() || !entries.is_empty() {
            self.ballot = ballot.unwrap_or(self.ballot);
            if let Some(Entry { term, index, .. }) = entries.last() {
                self.reach = Reach { term: *term, index: *index };
            }
            let record = record(self.ballot.term, self.reach, &payload(ballot, entries));
            self.file.write_all(&record)?;
            self.len += record.len() as u64;
        }
        if sync { self.file.sync_data() } else { Ok(()) }
    }

    /// Writes it anew with these entries behind this base.
    pub fn compact(&mut self, base: Base, entries: Vec<Entry>) -> Result<(), DiskError> {
        let saved = Saved { base, entries, ballot: self.ballot };
        *self = write_anew(&self.dir, (self.member, self.quorum), &saved)?;
        Ok(())
    }
}

fn reach(saved: &Saved) -> Reach {
    let base = Reach { term: saved.base.term, index: saved.base.index };
    saved.entries.last().map_or(base, |entry| Reach { term: entry.term, index: entry.index })
}

fn write_anew(
    dir: &Path,
    (member, quorum): (MemberId, u64),
    saved: &Saved,
) -> Result<Disk, DiskError> {
    let mut bytes = MAGIC.to_vec();
    let mut first = Vec::new();
    put_u64(&mut first, member.0);
    saved.base.encode(&mut first);
    put_u64(&mut first, quorum);
    let (promised, begins) =
        (saved.ballot.term, Reach { term: saved.base.term, index: saved.base.index });
    bytes.extend(record(promised, begins, &first));
    let reach = reach(saved);
    bytes.extend(record(promised, reach, &payload(Some(saved.ballot), &saved.entries)));
    let path = dir.join(NEW_FILE);
    let write = || {
        storage_dir::create(dir)?;
        let mut file = File::create(&path)?;
        file.write_all(&bytes)?;
        file.sync_all()?;
        fs::rename(&path, dir.join(FILE))?;
        sync_dir(dir)?;
        OpenOptions::new().append(true).open(dir.join(FILE))
    };
    let file = write().map_err(|source| DiskError::Io { path: path.clone(), source })?;
    let len = bytes.len() as u64;
    let (dir, ballot) = (dir.to_owned(), saved.ballot);
    Ok(Disk { dir, file, member, quorum, ballot, reach, len })
}

fn payload(ballot: Option<Ballot>, entries: &[Entry]) -> Vec<u8> {
    let mut out = vec![u8::from(ballot.is_some())];
    if let Some(ballot) = ballot {
        ballot.encode(&mut out);
    }
    put_u64(&mut out, entries.len() as u64);
    entries.iter().for_each(|entry| entry.encode(&mut out));
    out
}

/// Takes a write into what was read before it.
fn take(saved: &mut Saved, payload: &[u8]) -> Result<(), Malformed> {
    let mut input = Decoder::new(payload);
    if input.flag()? {
        saved.ballot = Ballot::decode(&mut input)?;
    }
    for _ in 0..input.bounded(ENTRIES_MAX)? {
        let entry = Entry::decode(&mut input)?;
        let kept = entry.index.checked_sub(saved.base.index + 1);
        let kept = kept.filter(|kept| *kept <= saved.entries.len() as u64);
        saved.entries.truncate(kept.ok_or(Malformed("an entry is missing"))? as usize);
        saved.entries.push(entry);
    }
    input.finish()
}

fn record(promised: u64, reach: Reach, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(HEADER_LEN + payload.len());
    out.extend_from_slice(&(payload.len() as u32).to_le_bytes());
    [promised, reach.term, reach.index].into_iter().for_each(|number| put_u64(&mut out, number));
    out.extend_from_slice(&crc32c(0, payload).to_le_bytes());
    out.extend_from_slice(&crc32c(0, &out).to_le_bytes());
    out.extend_from_slice(payload);
    out
}

/// A record whose header is whole.
struct Record<'a> {
    promised: u64,
    reach: Reach,
    /// None if it is damaged or cut off.
    payload: Option<&'a [u8]>,
    /// Bytes that it takes, or would.
    len: usize,
}

impl<'a> Record<'a> {
    /// The one that `bytes` begin with; none if its header is damaged.
    fn parse(bytes: &'a [u8]) -> Option<Record<'a>> {
        let header = bytes.get(..HEADER_LEN)?;
        let short = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|byte| header[at + byte]));
        if crc32c(0, &header[..HEADER_LEN - 4]) != short(HEADER_LEN - 4) {
            return None;
        }
        let mut input = Decoder::new(&header[4..]);
        let promised = input.u64().ok()?;
        let reach = Reach { term: input.u64().ok()?, index: input.u64().ok()? };
        let len = HEADER_LEN + short(0) as usize;
        let payload = bytes.get(HEADER_LEN..len);
        let payload = payload.filter(|payload| crc32c(0, payload) == short(HEADER_LEN - 8));
        Some(Record { promised, reach, payload, len })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cairn_quorum::Payload;

    fn entry(index: u64, term: u64) -> Entry {
        Entry { index, term, payload: Payload::Data(vec![index as u8; 20]) }
    }

    fn written(dir: &Path) -> Saved {
        let base = Base::founded(MemberId(7), "a");
        let saved = Saved { base, ..Saved::default() };
        let mut disk = Disk::create(dir, MemberId(7), 9, &saved).unwrap();
        let ballot = |term, commit| Some(Ballot { term, commit, ..Ballot::default() });
        disk.append(ballot(3, 1), &[entry(2, 3), entry(3, 3)], true).unwrap();
        disk.append(ballot(4, 2), &[entry(3, 4)], true).unwrap();
        disk.append(None, &[entry(4, 4), entry(5, 4)], true).unwrap();
        drop(disk);
        Disk::open(dir).unwrap().unwrap().1
    }

    #[test]
    fn what_was_written_comes_back_and_later_entries_take_the_place_of_earlier_ones() {
        let dir = tempfile::tempdir().unwrap();
        let saved = written(dir.path());
        assert_eq!(saved.entries, [entry(2, 3), entry(3, 4), entry(4, 4), entry(5, 4)]);
        assert_eq!(saved.ballot, Ballot { term: 4, commit: 2, ..Ballot::default() });
        let (mut disk, _) = Disk::open(dir.path()).unwrap().unwrap();
        let base = Base { index: 3, term: 4, ..saved.base };
        disk.compact(base.clone(), saved.entries[2..].to_vec()).unwrap();
        disk.append(None, &[entry(6, 4)], true).unwrap();
        let (disk, again) = Disk::open(dir.path()).unwrap().unwrap();
        assert_eq!((disk.member(), disk.quorum()), (MemberId(7), 9));
        assert_eq!((again.base, again.ballot), (base, saved.ballot));
        assert_eq!(again.entries, [entry(4, 4), entry(5, 4), entry(6, 4)]);
    }

    /// Wherever it ends or is damaged: what is left is a beginning, it is known how far the log may have gone and what may
    /// have been promised, also at the start after that, or the member is refused.
    #[test]
    fn no_end_is_lost_in_silence() {
        let dir = tempfile::tempdir().unwrap();
        let whole = written(dir.path());
        let path = dir.path().join(FILE);
        let bytes = fs::read(&path).unwrap();
        let (mut refused, mut cut, mut lost) = (0, 0, 0);
        for (at, flips) in (0..bytes.len()).flat_map(|at| [(at, false), (at, true)]) {
            let mut bad = bytes.clone();
            if flips {
                bad[at] ^= 4
            } else {
                bad.truncate(at)
            }
            fs::write(&path, &bad).unwrap();
            let Ok(opened) = Disk::open(dir.path()) else {
                refused += 1;
                continue;
            };
            let (_, saved) = opened.unwrap();
            let is_beginning = (saved.entries.iter().zip(&whole.entries))
                .all(|(a, b)| a == b || *a == entry(3, 3));
            assert!(is_beginning, "{at}");
            match saved.ballot.lost {
                Some(reach) => {
                    lost += 1;
                    let end = if flips { Reach { term: 4, index: 5 } } else { reach };
                    assert_eq!(reach, end, "{at}");
                    assert_eq!(saved.ballot.vote, Some(MemberId(7)), "{at}");
                    assert!(!flips || saved.ballot.term == 4, "{at}");
                }
                // A file that is shorter was not synced.
                None => {
                    cut += 1;
                    assert!(!flips, "{at}");
                }
            }
            let (_, again) = Disk::open(dir.path()).unwrap().unwrap();
            assert_eq!(again, saved);
        }
        assert!(refused > 100 && cut > 100 && lost > 300, "{refused} {cut} {lost}");
    }
}
