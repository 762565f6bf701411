//! What the last entries have done, for those who watch the tree.
//!
//! Kept from the first time that anybody asks, so that a NameNode that nobody watches does nothing for it. What the
//! store's next checkpoint will have is in memory, and what it has is in the history beside it ([`super::history`]).
//! Who asks for what is not kept is told so.
//!
//! That somebody asks is in the log ([`cairn_namespace::watching`]), so that watchers go on after a start, and at another
//! member of a quorum when that one leads. When nobody has asked for a week it ends. In a log that an earlier build has
//! begun, and may go on with, a file says it.

use super::history::{self, History};
use super::outcomes::unread;
use crate::store::Store;
use cairn_namespace::events::{Event, EventBatch, MetadataChange};
use cairn_namespace::store::StoreError;
use cairn_namespace::watching;
use cairn_process::held::held;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant, SystemTime};

/// Most bytes of events in memory.
const BYTES_MAX: usize = 64 << 20;
/// The same of events that are in the history, too.
const SAVED_MAX: usize = 16 << 20;
/// Bytes of events from which on they do not wait for the next checkpoint.
const UNSAVED_GOAL: usize = 16 << 20;
/// Bytes that an event takes besides its texts.
const EVENT_LEN: usize = 200;

/// The file that says that somebody watches where the log does not; its modification time is about when that was last so.
const WATCHED: &str = "watched";
/// How long what happens is kept for watchers who do not ask.
const PATIENCE: Duration = Duration::from_secs(7 * 24 * 3600);
/// How exactly it is known when somebody has asked last.
const NOTED_EVERY: Duration = Duration::from_secs(3600);

/// What the store knows as it is opened.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stored {
    /// The last entry that it has.
    pub applied: u64,
    /// When that was made, wall time in ms.
    pub now_ms: u64,
    /// When somebody has last asked for events, if anybody has.
    pub asked_ms: Option<u64>,
}

impl Stored {
    /// What `store` knows.
    pub fn of(store: &Store) -> Result<Stored, StoreError> {
        let now = store.snapshot();
        let (applied, now_ms) = (now.applied(), now.times().wall_ms);
        Ok(Stored { applied, now_ms, asked_ms: watching::asked_ms(&now).map_err(unread)? })
    }
}

/// Events from some entry on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Since {
    /// What has happened, in order.
    pub batches: Vec<EventBatch>,
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
    /// When somebody has last asked, as the log says, wall time in ms; 0 if it does not.
    asked_ms: AtomicU64,
    kept: Mutex<Kept>,
    /// Locked before `kept` where both are.
    history: Mutex<History>,
    watched: PathBuf,
    noted: Mutex<Option<Instant>>,
}

/// What is in memory.
#[derive(Debug, Default)]
struct Kept {
    /// The first entry whose events are kept; none before the first group of entries that was watched.
    from: Option<u64>,
    /// The last durable entry.
    last: u64,
    batches: VecDeque<Arc<EventBatch>>,
    bytes: usize,
    /// The last entry that the history has as well.
    saved: u64,
    /// Bytes of those behind it.
    unsaved: usize,
    /// The history cannot be written.
    is_unsaved: bool,
}

impl Kept {
    /// Makes room by giving up what the history has, and then anything.
    fn trim(&mut self) {
        while let Some(oldest) = self.batches.front() {
            let is_saved = oldest.sequence <= self.saved;
            if self.bytes <= SAVED_MAX || !is_saved && self.bytes <= BYTES_MAX {
                break;
            }
            let weight = weight(oldest);
            self.from = Some(oldest.sequence + 1);
            self.bytes -= weight;
            self.unsaved = self.unsaved.saturating_sub(if is_saved { 0 } else { weight });
            self.batches.pop_front();
        }
    }

    /// From the entry `sequence` on, the first ones up to `upto` whose events are about as many as a frame is to have,
    /// and the last entry of them.
    fn for_a_frame(&self, sequence: u64, upto: u64) -> (Vec<Arc<EventBatch>>, u64) {
        let begin = self.batches.partition_point(|batch| batch.sequence < sequence);
        let (mut batches, mut len) = (Vec::new(), 0);
        for batch in self.batches.range(begin..).take_while(|batch| batch.sequence <= upto) {
            batches.push(Arc::clone(batch));
            len += weight(batch);
            if len >= history::FRAME_LEN_GOAL {
                return (batches, batch.sequence);
            }
        }
        (batches, upto)
    }
}

impl Recent {
    /// What happens in the namespace in `dir`; wanted if somebody has lately watched it. The history has `limit` bytes at
    /// most.
    pub fn open(dir: &Path, namespace_id: u32, limit: u64, stored: Stored) -> Recent {
        let watched = dir.join(WATCHED);
        let asked_ms =
            stored.asked_ms.filter(|asked_ms| !is_over(*asked_ms, PATIENCE, stored.now_ms));
        let is_wanted =
            asked_ms.is_some() || asked_ago(&watched).is_some_and(|ago| ago <= PATIENCE);
        let history = if is_wanted {
            History::open(dir, namespace_id, limit, stored.applied)
        } else {
            let mut history = History::none(dir, namespace_id, limit);
            history.clear();
            history
        };
        Recent {
            is_wanted: AtomicBool::new(is_wanted),
            asked_ms: AtomicU64::new(asked_ms.unwrap_or_default()),
            kept: Mutex::default(),
            history: Mutex::new(history),
            watched,
            noted: Mutex::default(),
        }
    }

    /// Whether anybody has asked.
    pub fn is_wanted(&self) -> bool {
        self.is_wanted.load(Ordering::SeqCst)
    }

    /// Whether the log says that somebody has asked about as late as `now_ms`.
    pub fn is_in_log(&self, now_ms: u64) -> bool {
        let asked_ms = self.asked_ms.load(Ordering::SeqCst);
        asked_ms > 0 && self.is_wanted() && !is_over(asked_ms, NOTED_EVERY, now_ms)
    }

    /// Somebody asks, as the log says: what the entry behind that one does and later ones do is kept.
    pub fn heed(&self, asked_ms: u64) {
        let _kept = self.kept();
        self.asked_ms.store(asked_ms, Ordering::SeqCst);
        self.is_wanted.store(true, Ordering::SeqCst);
    }

    /// Somebody asks, of which a file tells. False if nothing is kept yet: what the next group of entries does will be.
    pub fn want(&self) -> bool {
        self.note();
        let kept = self.kept();
        self.is_wanted.store(true, Ordering::SeqCst);
        kept.from.is_some()
    }

    /// The log says what the file has said.
    pub fn forget_file(&self) {
        match std::fs::remove_file(&self.watched) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                let path = self.watched.display();
                tracing::warn!(%path, %error, "a file that is of no use any more cannot be removed");
            }
            _ => {}
        }
    }

    /// Remembers in a file that somebody has asked.
    fn note(&self) {
        let mut noted = held(&self.noted);
        if noted.is_some_and(|noted| noted.elapsed() < NOTED_EVERY) {
            return;
        }
        *noted = Some(Instant::now());
        if let Err(error) = std::fs::write(&self.watched, b"") {
            let path = self.watched.display();
            tracing::warn!(%path, %error, "watchers will have missed events after the next start");
        }
    }

    /// Whether nobody has asked for so long before `now_ms` that it ends.
    fn is_over(&self, now_ms: u64) -> bool {
        let patience = PATIENCE + NOTED_EVERY;
        let by_log = match self.asked_ms.load(Ordering::SeqCst) {
            0 => None,
            asked_ms => Some(is_over(asked_ms, patience, now_ms)),
        };
        let by_file = asked_ago(&self.watched).map(|ago| ago > patience);
        // Nothing is known where the file was removed by hand.
        [by_log, by_file].into_iter().flatten().reduce(|log, file| log && file).unwrap_or(false)
    }

    /// Entries up to `last` are durable, and from `first` on were watched.
    pub fn add(&self, first: u64, last: u64, batches: Vec<EventBatch>) {
        let mut kept = self.kept();
        if !self.is_wanted() {
            return;
        }
        if kept.from.is_none() || first > kept.last + 1 {
            *kept = Kept { from: Some(first), ..Kept::default() };
        }
        kept.last = last;
        for batch in batches {
            let weight = weight(&batch);
            kept.bytes += weight;
            kept.unsaved += weight;
            kept.batches.push_back(Arc::new(batch));
        }
        kept.trim();
        if kept.unsaved >= UNSAVED_GOAL && !kept.is_unsaved {
            drop(kept);
            self.write(last);
        }
    }

    /// Has what the entries up to `upto` have done in the history, durably, before the store has them durably.
    /// That this fails, which the log tells, makes the history shorter and nothing else. `now_ms` is the wall time of
    /// the last entry.
    pub fn save(&self, upto: u64, now_ms: u64) {
        if !self.is_wanted() {
            return;
        }
        if self.is_over(now_ms) {
            return self.end(now_ms);
        }
        self.write(upto);
        let file = self.history().file();
        if let Some(Err(error)) = file.map(|file| file.sync_data()) {
            self.cannot_save(&mut self.history(), &error);
        }
    }

    /// Nobody watches any more.
    fn end(&self, now_ms: u64) {
        let mut history = self.history();
        let mut kept = self.kept();
        // Somebody may have come meanwhile.
        if !self.is_over(now_ms) {
            return;
        }
        self.asked_ms.store(0, Ordering::SeqCst);
        self.is_wanted.store(false, Ordering::SeqCst);
        *kept = Kept::default();
        history.clear();
    }

    /// Writes what the entries up to `upto` have done to the history.
    fn write(&self, upto: u64) {
        let mut history = self.history();
        loop {
            let kept = self.kept();
            let Some(from) = kept.from else { return };
            // Where it does not go on where memory begins, it begins anew.
            let first = history.covers().map_or(from, |(_, next)| next);
            if first < from {
                drop(kept);
                history.clear();
                continue;
            }
            let upto = upto.min(kept.last);
            if first > upto {
                return;
            }
            let (batches, last) = kept.for_a_frame(first, upto);
            drop(kept);
            if let Err(error) = history.append(first, last, &batches) {
                return self.cannot_save(&mut history, &error);
            }
            let mut kept = self.kept();
            let newly = batches.iter().filter(|batch| batch.sequence > kept.saved);
            let newly: usize = newly.map(|batch| weight(batch)).sum();
            kept.unsaved = kept.unsaved.saturating_sub(newly);
            kept.saved = kept.saved.max(last);
            kept.is_unsaved = false;
            kept.trim();
        }
    }

    fn cannot_save(&self, history: &mut History, error: &std::io::Error) {
        history.clear();
        let mut kept = self.kept();
        if !kept.is_unsaved {
            tracing::warn!(%error, "the history of events cannot be written: watchers may miss some");
        }
        (kept.saved, kept.unsaved, kept.is_unsaved) = (0, kept.bytes, true);
    }

    /// What entries from `sequence` on have done; as many batches as hold `limit` events. Reads files.
    pub fn since(&self, sequence: u64, limit: usize) -> Since {
        let mut told = Since::default();
        let (mut next, mut count) = (sequence, 0);
        loop {
            let kept = self.kept();
            told.last = kept.last;
            let Some(from) = kept.from.filter(|_| sequence <= kept.last) else { return told };
            if next >= from {
                let begin = kept.batches.partition_point(|batch| batch.sequence < next);
                let mut last = kept.last;
                for batch in kept.batches.range(begin..) {
                    count += batch.events.len();
                    told.batches.push(EventBatch::clone(batch));
                    if count >= limit {
                        last = batch.sequence;
                        break;
                    }
                }
                told.seen = Some((told.seen.map_or(next, |(first, _)| first), last));
                return told;
            }
            drop(kept);
            let mut history = self.history();
            // What is not there any more was given up: it begins with what is.
            let covered = history.covers().filter(|(_, behind)| from <= *behind);
            let earliest = covered.map_or(from, |(first, _)| first.min(from));
            if next < earliest {
                if told.seen.is_some() {
                    return told;
                }
                next = earliest;
                continue;
            }
            let before = told.batches.len();
            if let Ok(last) = history.read(next, limit - count, &mut told.batches) {
                count += told.batches[before..].iter().map(|it| it.events.len()).sum::<usize>();
                told.seen = Some((told.seen.map_or(next, |(first, _)| first), last));
                next = last + 1;
                if count >= limit {
                    return told;
                }
            }
        }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        held(&self.kept)
    }

    fn history(&self) -> MutexGuard<'_, History> {
        held(&self.history)
    }
}

/// Whether it is longer than that since somebody has asked.
fn is_over(asked_ms: u64, patience: Duration, now_ms: u64) -> bool {
    u128::from(now_ms.saturating_sub(asked_ms)) > patience.as_millis()
}

/// How long ago somebody has watched, if a file says it.
fn asked_ago(watched: &Path) -> Option<Duration> {
    let asked: SystemTime = std::fs::metadata(watched).and_then(|meta| meta.modified()).ok()?;
    Some(asked.elapsed().unwrap_or_default())
}

fn weight(batch: &EventBatch) -> usize {
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

    fn unlinks(sequence: u64, count: usize, path_len: usize) -> EventBatch {
        let event = Event::Unlink { path: "a".repeat(path_len), time_ms: 1 };
        EventBatch { sequence, events: vec![event; count] }
    }

    fn open(dir: &Path) -> Recent {
        Recent::open(dir, 7, 128 << 20, Stored::default())
    }

    #[test]
    fn that_somebody_watches_is_remembered_for_a_week() {
        let dir = tempfile::tempdir().unwrap();
        assert!(!open(dir.path()).is_wanted());
        assert!(!open(dir.path()).want());
        assert!(open(dir.path()).is_wanted());
        let file = std::fs::File::options().write(true).open(dir.path().join(WATCHED)).unwrap();
        for (ago, is_wanted) in [(PATIENCE / 2, true), (PATIENCE + NOTED_EVERY, false)] {
            file.set_modified(SystemTime::now() - ago).unwrap();
            assert_eq!(open(dir.path()).is_wanted(), is_wanted, "{ago:?} ago");
        }
    }

    #[test]
    fn what_the_log_says_of_watchers_counts_for_a_week() {
        let dir = tempfile::tempdir().unwrap();
        let week = PATIENCE.as_millis() as u64;
        let stored = |now_ms| Stored { now_ms, asked_ms: Some(5), ..Stored::default() };
        let open = |now_ms| Recent::open(dir.path(), 7, 128 << 20, stored(now_ms));
        for (now_ms, is_wanted) in [(5, true), (5 + week, true), (6 + week, false)] {
            assert_eq!(open(now_ms).is_wanted(), is_wanted, "{now_ms}");
        }
        let (recent, hour) = (open(5), NOTED_EVERY.as_millis() as u64);
        assert!(recent.is_in_log(5 + hour) && !recent.is_in_log(6 + hour), "it is noted again");
        recent.save(0, 5 + week + hour);
        assert!(recent.is_wanted());
        recent.heed(7);
        recent.save(0, 6 + week + hour);
        assert!(recent.is_wanted(), "somebody has asked again");
        recent.save(0, 8 + week + hour);
        assert!(!recent.is_wanted() && !recent.is_in_log(7));
    }

    #[test]
    fn what_was_not_watched_is_told_as_missing() {
        let dir = tempfile::tempdir().unwrap();
        let recent = open(dir.path());
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

    /// Of a MiB each.
    fn add_long(recent: &Recent, sequences: std::ops::RangeInclusive<u64>) {
        for sequence in sequences {
            recent.add(sequence, sequence, vec![unlinks(sequence, 1, (1 << 20) - 200)]);
        }
    }

    #[test]
    fn what_has_no_room_in_memory_is_read_from_the_disk() {
        let dir = tempfile::tempdir().unwrap();
        let recent = open(dir.path());
        recent.want();
        add_long(&recent, 1..=70);
        assert!(recent.kept().bytes <= SAVED_MAX + UNSAVED_GOAL, "{}", recent.kept().bytes);
        assert!(recent.kept().from > Some(1));
        let told = recent.since(1, usize::MAX);
        assert_eq!(told.seen, Some((1, 70)));
        assert!(told.batches.iter().map(|batch| batch.sequence).eq(1..=70));
        for (begin, end) in [(1, 9), (40, 48), (60, 68), (69, 70)] {
            let told = recent.since(begin, 9);
            assert_eq!((told.seen, told.last), (Some((begin, end)), 70));
            assert!(told.batches.iter().map(|batch| batch.sequence).eq(begin..=end));
        }
        let unsaved = recent.kept().unsaved;
        recent.save(70, 0);
        assert!(unsaved > 0 && recent.kept().unsaved == 0);
        assert_eq!(recent.history().covers(), Some((1, 71)));
    }

    #[test]
    fn the_oldest_are_given_up_where_nothing_can_be_written() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().join("home");
        std::fs::create_dir(&home).unwrap();
        let recent = open(&home);
        recent.want();
        std::fs::rename(&home, dir.path().join("gone")).unwrap();
        add_long(&recent, 1..=70);
        recent.save(70, 0);
        let (first, last) = recent.since(1, usize::MAX).seen.unwrap();
        assert_eq!((first, last), (7, 70));
        // It begins with what is still there once it can be.
        std::fs::rename(dir.path().join("gone"), &home).unwrap();
        recent.save(70, 0);
        assert_eq!(recent.history().covers(), Some((7, 71)));
        add_long(&recent, 71..=100);
        assert_eq!(recent.since(7, usize::MAX).batches.len(), 94);
    }

    /// Entries that were not watched lie between those that were.
    #[test]
    fn a_hole_in_memory_begins_everything_anew() {
        let dir = tempfile::tempdir().unwrap();
        let recent = open(dir.path());
        recent.want();
        recent.add(1, 3, vec![unlinks(2, 1, 1)]);
        recent.save(3, 0);
        recent.add(6, 7, vec![unlinks(6, 1, 1)]);
        assert_eq!(recent.since(1, 10).seen, Some((6, 7)));
        recent.save(7, 0);
        assert_eq!(recent.history().covers(), Some((6, 8)));
        assert_eq!(recent.since(1, 10).batches, [unlinks(6, 1, 1)]);
    }
}
