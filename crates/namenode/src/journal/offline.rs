//! Looks at the folder of a NameNode that does not run: whether its log and its store are whole, and fit each other.

use super::error::OpenError;
use super::lock;
use super::log::{self, LogError};
use crate::store::{Identity, Store};
use cairn_namespace::Entry;
use cairn_namespace::check::{self, Checked};
use cairn_namespace::store::{StoreError, Table};
use std::path::Path;

/// Records that are read at a time.
const STEP: usize = 10_000;

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
    let no_version = || OpenError::NoVersion { path: dir.to_owned() };
    let identity = Identity::read(&dir.join("VERSION"))?.ok_or_else(no_version)?;
    let _lock = lock::lock(dir)?;
    let mut problems = Vec::new();
    let path = dir.join("namespace.redb");
    let (stored, checked) = match Store::open_unwritten(&path, cache_len) {
        Ok(store) => {
            let read = check_store(&store, &mut problems);
            let stored = store.applied();
            store.close();
            (stored, read)
        }
        Err(error) => {
            problems.push(damaged_store(&error));
            (0, Checked::default())
        }
    };
    let logged = check_log(dir, &identity, stored, &mut problems)?;
    Ok(Folder { identity, stored, logged, checked, problems })
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

/// Reads what a start would read. Returns the last entry.
fn check_log(
    dir: &Path,
    identity: &Identity,
    stored: u64,
    problems: &mut Vec<String>,
) -> Result<u64, OpenError> {
    let (mut last, mut unknown) = (0, None);
    let read = log::read_all(dir, identity.namespace_id, stored, &mut |sequence, bytes| {
        last = sequence;
        if let Err(error) = Entry::from_bytes(bytes) {
            unknown.get_or_insert((sequence, error.to_string()));
        }
        Ok::<(), LogError>(())
    });
    if let Some((sequence, error)) = unknown {
        problems
            .push(format!("entry {sequence} of the log: {error}; is this build older than it?"));
    }
    match read {
        Ok(()) => {}
        Err(LogError::Io { path, source }) => return Err(OpenError::Io { path, source }),
        Err(error) => problems.push(error.to_string()),
    }
    Ok(last)
}
