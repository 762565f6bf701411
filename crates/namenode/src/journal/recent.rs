//! What the last entries have done, for those who watch the tree.
//!
//! Kept from the first time that anybody asks, so that a NameNode that nobody watches does nothing for it,
//! and up to a number of bytes. Who asks for what is not kept is told so.
//!
//! That somebody asks is remembered by a file, so that watchers go on after a start: what its log still has is told
//! again. When nobody has asked for a week it ends.

use cairn_namespace::events::{Event, MetadataChange};
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

/// Most bytes of events that are kept.
const BYTES_MAX: usize = 64 << 20;
/// Bytes that an event takes besides its texts.
const EVENT_LEN: usize = 200;

/// The file that says that somebody watches; its modification time is about when that was last so.
const WATCHED: &str = "watched";
/// How long what happens is kept for watchers who do not ask.
const PATIENCE: Duration = Duration::from_secs(7 * 24 * 3600);
/// How exactly it is known when somebody has asked last.
const NOTED_EVERY: Duration = Duration::from_secs(3600);

/// The events of one entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// The entry's number.
    pub sequence: u64,
    /// What it has done, in order; never nothing.
    pub events: Vec<Event>,
}

/// Events from some entry on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Since {
    /// What has happened, in order.
    pub batches: Vec<Batch>,
    /// The first entry and the last one that were looked at. The first is a later one than was asked for
    /// if what was asked for is not kept; there are none if nothing has happened.
    pub seen: Option<(u64, u64)>,
    /// The last entry that is durable.
    pub last: u64,
}

/// The events of the last entries.
#[derive(Debug)]
pub(super) struct Recent {
    is_wanted: AtomicBool,
    kept: Mutex<Kept>,
    watched: PathBuf,
    noted: Mutex<Option<Instant>>,
}

#[derive(Debug, Default)]
struct Kept {
    /// The first entry whose events are kept; none before the first group of entries that was watched.
    from: Option<u64>,
    /// The last durable entry.
    last: u64,
    batches: VecDeque<Batch>,
    bytes: usize,
}

impl Recent {
    /// What happens in the namespace in `dir`; wanted if somebody has lately watched it.
    pub fn open(dir: &Path) -> Recent {
        let watched = dir.join(WATCHED);
        let asked = std::fs::metadata(&watched).and_then(|meta| meta.modified()).ok();
        let is_long_ago = |asked: SystemTime| asked.elapsed().is_ok_and(|since| since > PATIENCE);
        let is_wanted = AtomicBool::new(asked.is_some_and(|asked| !is_long_ago(asked)));
        Recent { is_wanted, kept: Mutex::default(), watched, noted: Mutex::default() }
    }

    /// Whether anybody has asked.
    pub fn is_wanted(&self) -> bool {
        self.is_wanted.load(Ordering::SeqCst)
    }

    /// Somebody asks. False if nothing is kept yet: what the next group of entries does will be.
    pub fn want(&self) -> bool {
        self.is_wanted.store(true, Ordering::SeqCst);
        self.note();
        self.kept().from.is_some()
    }

    /// Remembers that somebody has asked.
    fn note(&self) {
        let mut noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        if noted.is_some_and(|noted| noted.elapsed() < NOTED_EVERY) {
            return;
        }
        *noted = Some(Instant::now());
        if let Err(error) = std::fs::write(&self.watched, b"") {
            let path = self.watched.display();
            tracing::warn!(%path, %error, "watchers will have missed events after the next start");
        }
    }

    /// Entries up to `last` are durable, and from `first` on were watched.
    pub fn add(&self, first: u64, last: u64, batches: Vec<Batch>) {
        let mut kept = self.kept();
        kept.from.get_or_insert(first);
        kept.last = last;
        for batch in batches {
            kept.bytes += weight(&batch);
            kept.batches.push_back(batch);
        }
        while kept.bytes > BYTES_MAX {
            let Some(oldest) = kept.batches.pop_front() else { break };
            kept.bytes -= weight(&oldest);
            kept.from = Some(oldest.sequence + 1);
        }
    }

    /// What entries from `sequence` on have done; as many batches as hold `limit` events.
    pub fn since(&self, sequence: u64, limit: usize) -> Since {
        let kept = self.kept();
        let mut told = Since { last: kept.last, ..Since::default() };
        let Some(from) = kept.from.filter(|_| sequence <= kept.last) else { return told };
        let first = sequence.max(from);
        let mut last = kept.last;
        let mut count = 0;
        let begin = kept.batches.partition_point(|batch| batch.sequence < first);
        for batch in kept.batches.range(begin..) {
            count += batch.events.len();
            told.batches.push(batch.clone());
            if count >= limit {
                last = batch.sequence;
                break;
            }
        }
        told.seen = Some((first, last));
        told
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn weight(batch: &Batch) -> usize {
    batch.events.iter().map(|event| EVENT_LEN + text_len(event)).sum()
}

fn text_len(event: &Event) -> usize {
    match event {
        Event::Create { path, .. }
        | Event::Close { path, .. }
        | Event::Append { path, .. }
        | Event::Unlink { path, .. }
        | Event::Truncate { path, .. } => path.len(),
        Event::Rename { from, to, .. } => from.len() + to.len(),
        Event::Metadata { path, change } => {
            path.len()
                + match change {
                    MetadataChange::Acl(entries) => entries.len() * EVENT_LEN,
                    MetadataChange::XAttr { value, .. } => value.as_ref().map_or(0, Vec::len),
                    _ => 0,
                }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unlinks(sequence: u64, count: usize, path_len: usize) -> Batch {
        let event = Event::Unlink { path: "a".repeat(path_len), time_ms: 1 };
        Batch { sequence, events: vec![event; count] }
    }

    #[test]
    fn that_somebody_watches_is_remembered_for_a_week() {
        let dir = tempfile::tempdir().unwrap();
        assert!(!Recent::open(dir.path()).is_wanted());
        assert!(!Recent::open(dir.path()).want());
        assert!(Recent::open(dir.path()).is_wanted());
        let file = std::fs::File::options().write(true).open(dir.path().join(WATCHED)).unwrap();
        for (ago, is_wanted) in [(PATIENCE / 2, true), (PATIENCE + NOTED_EVERY, false)] {
            file.set_modified(SystemTime::now() - ago).unwrap();
            assert_eq!(Recent::open(dir.path()).is_wanted(), is_wanted, "{ago:?} ago");
        }
    }

    #[test]
    fn what_was_not_watched_is_told_as_missing() {
        let dir = tempfile::tempdir().unwrap();
        let recent = Recent::open(dir.path());
        assert!(!recent.is_wanted());
        assert_eq!(recent.since(1, 10).seen, None);
        assert!(!recent.want());
        recent.add(8, 7, Vec::new());
        assert!(recent.want() && recent.is_wanted());
        assert_eq!(recent.since(8, 10), Since { last: 7, ..Since::default() });
        assert_eq!(recent.since(5, 10).seen, Some((8, 7)), "5 to 7 happened before");
        recent.add(8, 10, vec![unlinks(8, 1, 1), unlinks(10, 2, 1)]);
        let told = recent.since(8, 10);
        assert_eq!((told.seen, told.batches.len(), told.last), (Some((8, 10)), 2, 10));
        assert_eq!(recent.since(9, 10).batches, [unlinks(10, 2, 1)]);
        assert_eq!(recent.since(8, 1).seen, Some((8, 8)), "one event is enough");
        assert_eq!(recent.since(11, 10).seen, None);
    }

    #[test]
    fn the_oldest_are_given_up() {
        let dir = tempfile::tempdir().unwrap();
        let recent = Recent::open(dir.path());
        for sequence in 1..=70 {
            recent.add(sequence, sequence, vec![unlinks(sequence, 1, 1 << 20)]);
        }
        let (first, last) = recent.since(1, usize::MAX).seen.unwrap();
        assert_eq!(last, 70);
        assert!((7..=9).contains(&first), "{first}");
    }
}
