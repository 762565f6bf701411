//! Looks at the folder of a NameNode that does not run: whether its log and its store are whole, and fit each other.

use super::error::OpenError;
use super::log::{self, LogError};
use super::record::{self, Known, Record};
use super::{install, lock};
use crate::store::{Batch, Identity, Position, Store};
use cairn_namespace::check::{self, Checked};
use cairn_namespace::store::{StoreError, Table};
use cairn_namespace::{Done, Entry, evaluate};
use std::fs::File;
use std::path::Path;

/// Records that are read at a time.
const STEP: usize = 10_000;

/// What there is to say of a log that has everything and that no store stands beside.
const NO_STORE: &str = "there is no store yet, and the log has everything: a first start was cut short; start the NameNode, \
                        which makes the store of the log";

/// What is in a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folder {
    /// Whose it is.
    pub identity: Identity,
    /// The last entry that the store has.
    pub stored: u64,
    /// The last entry that the log has; 0 if it has none.
    pub logged: u64,
    /// What the store has.
    pub checked: Checked,
    /// What is wrong, a sentence each.
    pub problems: Vec<String>,
}

/// Reads everything in a folder. Fails where it cannot be looked at: there is no namespace, another NameNode has it, or
/// a disk fails. Nothing is changed. Blocks.
pub fn check_folder(dir: &Path, cache_len: usize) -> Result<Folder, OpenError> {
    read_folder(dir, cache_len).map(|(folder, _)| folder)
}

/// A namespace with which nothing is wrong, and whose NameNode does not run.
pub(super) struct Whole {
    pub identity: Identity,
    /// The namespace as of the last entry.
    pub state: Batch,
    /// The last entry; 0 if there is none.
    pub last: u64,
    /// What the state reads, which ends when it is closed.
    _store: Store,
    /// Nobody else has the folder meanwhile.
    _lock: File,
}

/// As [`check_folder`], for whoever wants to read what is there. The second error is what is wrong.
pub(super) fn open_whole(
    dir: &Path,
    cache_len: usize,
) -> Result<Result<Whole, Vec<String>>, OpenError> {
    let (folder, whole) = read_folder(dir, cache_len)?;
    Ok(whole.ok_or(folder.problems))
}

fn read_folder(dir: &Path, cache_len: usize) -> Result<(Folder, Option<Whole>), OpenError> {
    let no_version = || OpenError::NoVersion { path: dir.to_owned() };
    let identity = Identity::read(&dir.join("VERSION"))?.ok_or_else(no_version)?;
    let _lock = lock::lock(dir)?;
    let mut problems = Vec::new();
    if install::is_under_way(dir) {
        // What is here is of two times.
        problems.push(
            "a snapshot of another member is not all in its place; start the NameNode, which goes on with that".to_string(),
        );
    }
    let path = dir.join("namespace.redb");
    let store = if !has_store(dir)? && log::reach(dir, 1)?.is_some() {
        problems.push(NO_STORE.to_string());
        None
    } else {
        let store = Store::open_unwritten(&path, cache_len);
        store.inspect_err(|error| problems.push(damaged_store(error))).ok()
    };
    let checked = store.as_ref().map(|store| check_store(store, &mut problems)).unwrap_or_default();
    let stored = store.as_ref().map_or(0, Store::applied);
    // Entries are applied again to a store that is whole only.
    let whole = store.as_ref().filter(|_| problems.is_empty());
    let (logged, state) = check_log(dir, &identity, whole, stored, &mut problems)?;
    let state = state.zip(store).filter(|_| problems.is_empty());
    let last = stored.max(logged);
    let whole = state.map(|(state, _store)| {
        let identity = identity.clone();
        Whole { identity, state, last, _store, _lock }
    });
    Ok((Folder { identity, stored, logged, checked, problems }, whole))
}

/// Whether the store, or a part of it, is there.
fn has_store(dir: &Path) -> Result<bool, OpenError> {
    for name in ["namespace.redb", "namespace.crc-0", "namespace.crc-1"] {
        let path = dir.join(name);
        if path.try_exists().map_err(|source| OpenError::Io { path, source })? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn damaged_store(error: &StoreError) -> String {
    format!("the store: {error}; restore the namespace from backups")
}

/// Reads each block of the store's file that has records, then what the records say of each other.
fn check_store(store: &Store, problems: &mut Vec<String>) -> Checked {
    for table in Table::ALL {
        let mut from = Some(Vec::new());
        while let Some(key) = from {
            from = match store.look(*table, &key, STEP) {
                Ok(next) => next,
                Err(error) => {
                    problems.push(damaged_store(&error));
                    return Checked::default();
                }
            };
        }
    }
    let mut wrong = |wrong| problems.push(wrong);
    match check::check(&store.snapshot(), &mut wrong) {
        Ok(checked) => checked,
        Err(error) => {
            problems.push(format!("the store: {error}"));
            Checked::default()
        }
    }
}

/// Reads what a start would read, and applies it to a store that stays as it is. Returns the last entry, and the state as of
/// it.
fn check_log(
    dir: &Path,
    identity: &Identity,
    whole: Option<&Store>,
    stored: u64,
    problems: &mut Vec<String>,
) -> Result<(u64, Option<Batch>), OpenError> {
    let stored = whole.map_or(stored.into(), Store::position);
    let mut log = CheckedLog {
        stored,
        state: whole.map(|store| store.begin(store.group() + 1)),
        chain: None,
        last: 0,
        problems: Vec::new(),
    };
    let read =
        log::read_all(dir, identity.namespace_id, stored.sequence, &mut |sequence, bytes| {
            log.take(sequence, bytes);
            Ok::<(), LogError>(())
        });
    problems.append(&mut log.problems);
    match read {
        Ok(()) => {}
        Err(LogError::Io { path, source }) => return Err(OpenError::Io { path, source }),
        Err(error) => problems.push(error.to_string()),
    }
    Ok((log.last, log.state))
}

/// A log that is looked at entry by entry.
struct CheckedLog {
    /// What the store's file has.
    stored: Position,
    /// The store as of the last entry; none from the first problem on, after which all that follows would be one.
    state: Option<Batch>,
    /// The checksum up to the last entry.
    chain: Option<u32>,
    last: u64,
    problems: Vec<String>,
}

impl CheckedLog {
    fn take(&mut self, sequence: u64, bytes: &[u8]) {
        self.last = sequence;
        if !self.problems.is_empty() {
            return;
        }
        if sequence == self.stored.sequence + 1 {
            self.chain = self.stored.chain.or(self.chain);
        }
        if let Err(problem) = self.look(sequence, bytes) {
            self.problems.push(problem);
        }
    }

    /// The first thing that is wrong with the next entry.
    fn look(&mut self, sequence: u64, bytes: &[u8]) -> Result<(), String> {
        let unknown = |error| format!("entry {sequence} of the log: {error}; is this build older?");
        let Record { entry, known } = Record::from_bytes(bytes).map_err(unknown)?;
        let follows = |chain| known.as_ref().is_none_or(|known| known.follows(chain));
        if !self.chain.is_none_or(follows) {
            return Err(OpenError::OtherHistory { sequence }.to_string());
        }
        let is_stored = sequence <= self.stored.sequence;
        let state = self.state.as_mut().filter(|_| !is_stored);
        let done = match state {
            Some(state) => Some(again(state, sequence, &entry, known.as_ref())?),
            None => None,
        };
        let extended = || Some(record::extend(self.chain?, &record::encode(done.as_ref()?)));
        self.chain = known.map_or_else(extended, |known| Some(known.chain));
        let is_other = self.chain.zip(self.stored.chain).is_some_and(|(log, store)| log != store);
        if sequence == self.stored.sequence && is_other {
            return Err(OpenError::OtherHistory { sequence }.to_string());
        }
        Ok(())
    }
}

/// Applies an entry. An error is that it comes to something else than what the log has.
fn again(
    state: &mut Batch,
    sequence: u64,
    entry: &Entry,
    known: Option<&Known<'_>>,
) -> Result<Done, String> {
    let name = entry.command.name();
    let wrong = |what: String| {
        format!("entry {sequence} of the log, {name}: {what}; did another build write it?")
    };
    let applied = evaluate(&*state, entry);
    let applied = applied.map_err(|error| wrong(format!("it is refused now: {error}")))?;
    let done = Done { answer: applied.answer, changes: applied.changes };
    if let Some(Known { done: logged, .. }) = known {
        if let Some((table, key)) = logged.changes.difference(&done.changes) {
            let key: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
            let table = table.name();
            let what = format!(
                "what the log has of the record {key} of table {table} does not come of it"
            );
            return Err(wrong(what));
        }
        if logged.answer != done.answer {
            return Err(wrong("the answer that the log has does not come of it".to_string()));
        }
    }
    let written = done.changes.clone().write_to(state);
    written.map_err(|error| wrong(error.to_string()))?;
    Ok(done)
}
