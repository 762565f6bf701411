//! The namespace store on disk: redb behind [`cairn_namespace::store`]'s traits.
//!
//! Commits between checkpoints are not synced: the log is what makes entries durable, and the sequence
//! number of the last applied entry is committed together with its changes, so that a start knows
//! where in the log to go on. The tables are described in `docs/on-disk.md`.

mod checked_file;
mod identity;

pub use identity::{Identity, IdentityError};

use cairn_namespace::store::{StoreError, StoreRead, StoreTxn, Table, Visit};
use checked_file::CheckedFile;
use redb::{
    Database, Durability, ReadOnlyTable, ReadTransaction, ReadableDatabase, ReadableTable,
    TableDefinition, WriteTransaction,
};
use std::cell::OnceCell;
use std::ops::Bound;
use std::path::Path;

type Bytes = &'static [u8];

/// Key: [`APPLIED`]; value: the sequence number, 8 bytes, big endian.
const JOURNAL: TableDefinition<'static, Bytes, Bytes> = TableDefinition::new("journal");
const APPLIED: &[u8] = b"applied";

fn definition(table: Table) -> TableDefinition<'static, Bytes, Bytes> {
    TableDefinition::new(table.name())
}

/// Makes names in a directory durable.
pub(crate) fn sync_dir(path: &Path) -> std::io::Result<()> {
    std::fs::File::open(path)?.sync_all()
}

fn backend(error: impl std::fmt::Display) -> StoreError {
    StoreError::Backend(error.to_string())
}

/// The open database file.
pub(crate) struct Store {
    database: Database,
}

impl Store {
    /// Opens or creates the file. `cache_len` bounds redb's cache, in bytes.
    pub fn open(path: &Path, cache_len: usize) -> Result<Store, StoreError> {
        let file = CheckedFile::open(path).map_err(backend)?;
        let mut builder = Database::builder();
        let builder = builder.set_cache_size(cache_len);
        let mut database = builder.create_with_backend(file).map_err(backend)?;
        if !database.check_integrity().map_err(backend)? {
            return Err(StoreError::Corrupt {
                what: "namespace store",
                reason: "its pages do not have the checksums they were written with".to_string(),
            });
        }
        let store = Store { database };
        // Readers need every table to exist.
        let batch = store.begin()?;
        batch.tables()?;
        batch.commit(Durable::Yes)?;
        Ok(store)
    }

    /// Begins a batch of changes; only one can be open.
    pub fn begin(&self) -> Result<Batch, StoreError> {
        Ok(Batch { txn: self.database.begin_write().map_err(backend)? })
    }

    /// The state as of the last commit.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot { txn: self.database.begin_read().map_err(backend), tables: Default::default() }
    }

    /// Sequence number of the last entry in the store; 0 before the first.
    pub fn applied(&self) -> Result<u64, StoreError> {
        let txn = self.database.begin_read().map_err(backend)?;
        let table = txn.open_table(JOURNAL).map_err(backend)?;
        let Some(value) = table.get(APPLIED).map_err(backend)? else { return Ok(0) };
        let bytes = value.value().try_into().map_err(|_| StoreError::Corrupt {
            what: "sequence number",
            reason: format!("{} bytes", value.value().len()),
        })?;
        Ok(u64::from_be_bytes(bytes))
    }
}

/// Whether a commit is synced to the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Durable {
    /// It is, and every commit before it with it.
    Yes,
    /// A power cut may undo it.
    No,
}

/// Changes on their way to a commit.
pub(crate) struct Batch {
    txn: WriteTransaction,
}

impl Batch {
    /// The tables to read and change.
    pub fn tables(&self) -> Result<BatchTables<'_>, StoreError> {
        let mut tables = Vec::with_capacity(Table::ALL.len());
        for table in Table::ALL {
            tables.push(self.txn.open_table(definition(*table)).map_err(backend)?);
        }
        let journal = self.txn.open_table(JOURNAL).map_err(backend)?;
        Ok(BatchTables { tables, journal })
    }

    /// Makes the changes the state that readers see.
    pub fn commit(mut self, durable: Durable) -> Result<(), StoreError> {
        match durable {
            Durable::Yes => {
                // Without it a start after a crash would walk the whole file.
                self.txn.set_quick_repair(true);
                self.txn.set_durability(Durability::Immediate).map_err(backend)?;
            }
            Durable::No => self.txn.set_durability(Durability::None).map_err(backend)?,
        }
        self.txn.commit().map_err(backend)
    }

    /// Drops the changes.
    pub fn abort(self) -> Result<(), StoreError> {
        self.txn.abort().map_err(backend)
    }
}

/// The tables of a [`Batch`].
pub(crate) struct BatchTables<'txn> {
    tables: Vec<redb::Table<'txn, Bytes, Bytes>>,
    journal: redb::Table<'txn, Bytes, Bytes>,
}

impl BatchTables<'_> {
    /// Notes that every entry up to `sequence` is applied.
    pub fn set_applied(&mut self, sequence: u64) -> Result<(), StoreError> {
        self.journal.insert(APPLIED, &sequence.to_be_bytes()[..]).map_err(backend)?;
        Ok(())
    }
}

fn get_from(
    table: &impl ReadableTable<Bytes, Bytes>,
    key: &[u8],
) -> Result<Option<Vec<u8>>, StoreError> {
    Ok(table.get(key).map_err(backend)?.map(|value| value.value().to_vec()))
}

fn scan_in(
    table: &impl ReadableTable<Bytes, Bytes>,
    from: &[u8],
    to: &[u8],
    visit: Visit<'_>,
) -> Result<(), StoreError> {
    if !to.is_empty() && from >= to {
        return Ok(());
    }
    let end = if to.is_empty() { Bound::Unbounded } else { Bound::Excluded(to) };
    let range = table.range::<&[u8]>((Bound::Included(from), end)).map_err(backend)?;
    for entry in range {
        let (key, value) = entry.map_err(backend)?;
        if visit(key.value(), value.value()).is_break() {
            break;
        }
    }
    Ok(())
}

impl StoreRead for BatchTables<'_> {
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        get_from(&self.tables[table as usize], key)
    }

    fn scan(
        &self,
        table: Table,
        from: &[u8],
        to: &[u8],
        visit: Visit<'_>,
    ) -> Result<(), StoreError> {
        scan_in(&self.tables[table as usize], from, to, visit)
    }
}

impl StoreTxn for BatchTables<'_> {
    fn put(&mut self, table: Table, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        self.tables[table as usize].insert(key, value).map_err(backend)?;
        Ok(())
    }

    fn delete(&mut self, table: Table, key: &[u8]) -> Result<(), StoreError> {
        self.tables[table as usize].remove(key).map_err(backend)?;
        Ok(())
    }
}

/// The namespace at one moment; it does not change while it is held.
///
/// Keep it briefly: the store cannot reuse space that a snapshot still sees.
pub struct Snapshot {
    txn: Result<ReadTransaction, StoreError>,
    tables: [OnceCell<ReadOnlyTable<Bytes, Bytes>>; Table::ALL.len()],
}

impl Snapshot {
    fn table(&self, table: Table) -> Result<&ReadOnlyTable<Bytes, Bytes>, StoreError> {
        let cell = &self.tables[table as usize];
        if let Some(open) = cell.get() {
            return Ok(open);
        }
        let txn = self.txn.as_ref().map_err(Clone::clone)?;
        let open = txn.open_table(definition(table)).map_err(backend)?;
        Ok(cell.get_or_init(|| open))
    }
}

impl StoreRead for Snapshot {
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        get_from(self.table(table)?, key)
    }

    fn scan(
        &self,
        table: Table,
        from: &[u8],
        to: &[u8],
        visit: Visit<'_>,
    ) -> Result<(), StoreError> {
        scan_in(self.table(table)?, from, to, visit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cairn_namespace::store::conformance;

    #[test]
    fn conforms() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("db"), 1 << 20).unwrap();
        let batch = store.begin().unwrap();
        conformance::check(&mut batch.tables().unwrap());
    }

    #[test]
    fn snapshots_see_commits_only() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("db"), 1 << 20).unwrap();
        let before = store.snapshot();
        let batch = store.begin().unwrap();
        let mut tables = batch.tables().unwrap();
        tables.put(Table::Meta, b"k", b"v").unwrap();
        tables.set_applied(7).unwrap();
        drop(tables);
        assert_eq!(store.snapshot().get(Table::Meta, b"k").unwrap(), None);
        batch.commit(Durable::No).unwrap();
        assert_eq!(before.get(Table::Meta, b"k").unwrap(), None);
        assert_eq!(store.snapshot().get(Table::Meta, b"k").unwrap().as_deref(), Some(&b"v"[..]));
        assert_eq!(store.applied().unwrap(), 7);
    }
}
