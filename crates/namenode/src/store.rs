//! The namespace store: redb on disk and a layer of recent changes in memory, behind
//! [`cairn_namespace::store`]'s traits.
//!
//! The log is what makes entries durable. Their changes go to the layer, where one that is changed again and again
//! costs little, and from there to the file at a checkpoint, in one transaction with the sequence number of the last
//! entry in it, so that a start knows where in the log to go on. The tables are described in `docs/on-disk.md`.

mod checked_file;
mod crc_table;
mod gaps;
mod identity;
mod layer;

pub use identity::{Identity, IdentityError};

use cairn_namespace::store::{StoreError, StoreRead, StoreTxn, Table, Visit};
use checked_file::CheckedFile;
use gaps::WORTH;
use layer::Layer;
use redb::{Database, Durability, ReadOnlyTable, ReadableDatabase, ReadableTable, TableDefinition};
use std::cell::Cell;
use std::ops::{Bound, ControlFlow};
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};

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

/// The open store.
pub(crate) struct Store {
    database: Database,
    /// What readers see.
    current: RwLock<Arc<View>>,
    /// Not all of the file was read at the start.
    is_unread: bool,
}

/// The store after a group of entries.
struct View {
    /// The group, whose changes and those before it count.
    group: u64,
    /// Sequence number of the last entry.
    applied: u64,
    recent: Arc<Layer>,
    file: Arc<[ReadOnlyTable<Bytes, Bytes>]>,
}

impl Store {
    /// Opens or creates the file. `cache_len` bounds redb's cache, in bytes.
    pub fn open(path: &Path, cache_len: usize) -> Result<Store, StoreError> {
        let (file, is_known) = CheckedFile::open(path).map_err(backend)?;
        let mut builder = Database::builder();
        let builder = builder.set_cache_size(cache_len);
        let mut database = builder.create_with_backend(file).map_err(backend)?;
        // What is known block by block is compared when it is read.
        if !is_known && !database.check_integrity().map_err(backend)? {
            return Err(StoreError::Corrupt {
                what: "namespace store",
                reason: "its pages do not have the checksums they were written with".to_string(),
            });
        }
        // Readers need every table to exist.
        write_file(&database, None, &Layer::default())?;
        let view = View {
            group: 0,
            applied: applied_in(&database)?,
            recent: Arc::default(),
            file: open_tables(&database)?,
        };
        Ok(Store { database, current: RwLock::new(Arc::new(view)), is_unread: is_known })
    }

    fn view(&self) -> Arc<View> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn publish(&self, view: View) {
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(view);
    }

    /// Begins the changes of a group, with a number above all before; only one can be open. They can't be undone: when
    /// one fails halfway, nothing may be written any more, and nobody ever sees them.
    pub fn begin(&self, group: u64) -> Batch {
        Batch { view: self.view(), group }
    }

    /// Shows the changes of a group, and of those before it, to readers; `applied` is its last entry. They are in
    /// memory only.
    pub fn commit(&self, group: u64, applied: u64) {
        let view = self.view();
        let (recent, file) = (view.recent.clone(), view.file.clone());
        self.publish(View { group, applied, recent, file });
    }

    /// The last group that readers see.
    pub fn group(&self) -> u64 {
        self.view().group
    }

    /// The state as of the last commit.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot(self.view())
    }

    /// Sequence number of the last entry in the store; 0 before the first.
    pub fn applied(&self) -> u64 {
        self.view().applied
    }

    /// Records that wait to be written to the file.
    pub fn waiting(&self) -> usize {
        self.view().recent.len()
    }

    /// Whether there may be damage in the file that nobody has come across yet.
    pub fn is_unread(&self) -> bool {
        self.is_unread
    }

    /// Reads records of `table` in the file, at most `limit` from the one at `from` on; damage is an error. Returns
    /// the key to go on from, unless the end was reached.
    pub fn look(
        &self,
        table: Table,
        from: &[u8],
        limit: usize,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        let view = self.view();
        let (mut next, mut count) = (None, 0);
        scan_in(&view.file[table as usize], from, &[], &mut |key, _| {
            if count == limit {
                next = Some(key.to_vec());
                return ControlFlow::Break(());
            }
            count += 1;
            ControlFlow::Continue(())
        })?;
        Ok(next)
    }

    /// Brings the file up to date, durably. No group may be open, or wait to be shown.
    pub fn write_out(&self) -> Result<(), StoreError> {
        let view = self.view();
        write_file(&self.database, Some(view.applied), &view.recent)?;
        self.publish(View {
            group: view.group,
            applied: view.applied,
            recent: Arc::default(),
            file: open_tables(&self.database)?,
        });
        Ok(())
    }
}

/// Writes all of `layer` and the number of the last entry to the file, and syncs it.
fn write_file(database: &Database, applied: Option<u64>, layer: &Layer) -> Result<(), StoreError> {
    let mut txn = database.begin_write().map_err(backend)?;
    // Without it a start after a crash would walk the whole file.
    txn.set_quick_repair(true);
    txn.set_durability(Durability::Immediate).map_err(backend)?;
    for table in Table::ALL {
        let mut file = txn.open_table(definition(*table)).map_err(backend)?;
        layer.newest(*table, |key, value| {
            match value {
                Some(value) => file.insert(key, value).map_err(backend)?,
                None => file.remove(key).map_err(backend)?,
            };
            Ok(())
        })?;
    }
    let mut journal = txn.open_table(JOURNAL).map_err(backend)?;
    if let Some(applied) = applied {
        journal.insert(APPLIED, &applied.to_be_bytes()[..]).map_err(backend)?;
    }
    drop(journal);
    txn.commit().map_err(backend)
}

fn open_tables(database: &Database) -> Result<Arc<[ReadOnlyTable<Bytes, Bytes>]>, StoreError> {
    let txn = database.begin_read().map_err(backend)?;
    Table::ALL.iter().map(|table| txn.open_table(definition(*table)).map_err(backend)).collect()
}

fn applied_in(database: &Database) -> Result<u64, StoreError> {
    let txn = database.begin_read().map_err(backend)?;
    let table = txn.open_table(JOURNAL).map_err(backend)?;
    let Some(value) = table.get(APPLIED).map_err(backend)? else { return Ok(0) };
    let bytes = value.value().try_into().map_err(|_| StoreError::Corrupt {
        what: "sequence number",
        reason: format!("{} bytes", value.value().len()),
    })?;
    Ok(u64::from_be_bytes(bytes))
}

impl View {
    fn get(&self, table: Table, key: &[u8], group: u64) -> Result<Option<Vec<u8>>, StoreError> {
        match self.recent.get(table, key, group) {
            Some(value) => Ok(value),
            None => get_from(&self.file[table as usize], key),
        }
    }

    /// `deleted` counts the deleted records that were passed.
    fn scan(
        &self,
        table: Table,
        (from, to): (&[u8], &[u8]),
        group: u64,
        deleted: &Cell<usize>,
        visit: Visit<'_>,
    ) -> Result<(), StoreError> {
        let mut recent = self.recent.range(table, from, to, group).peekable();
        let mut stopped = false;
        scan_in(&self.file[table as usize], from, to, &mut |key, value| {
            while let Some((new, value)) = recent.next_if(|(new, _)| new.as_slice() < key) {
                let Some(value) = value else {
                    deleted.update(|count| count + 1);
                    continue;
                };
                if visit(&new, &value).is_break() {
                    stopped = true;
                    return ControlFlow::Break(());
                }
            }
            let flow = match recent.next_if(|(new, _)| new == key) {
                Some((_, Some(value))) => visit(key, &value),
                Some((_, None)) => {
                    deleted.update(|count| count + 1);
                    ControlFlow::Continue(())
                }
                None => visit(key, value),
            };
            stopped = flow.is_break();
            flow
        })?;
        if !stopped {
            for (key, value) in recent {
                let Some(value) = value else {
                    deleted.update(|count| count + 1);
                    continue;
                };
                if visit(&key, &value).is_break() {
                    break;
                }
            }
        }
        Ok(())
    }
}

/// A group of changes that are being made, and the store as it is with them.
pub(crate) struct Batch {
    view: Arc<View>,
    group: u64,
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

impl StoreRead for Batch {
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        self.view.get(table, key, self.group)
    }

    fn scan(
        &self,
        table: Table,
        from: &[u8],
        to: &[u8],
        visit: Visit<'_>,
    ) -> Result<(), StoreError> {
        let start = self.view.recent.gaps(table).skip(from).to_vec();
        let deleted = Cell::new(0);
        let mut first = None;
        let mut found = |key: &[u8], value: &[u8]| {
            if first.is_none() {
                first = Some((deleted.get() >= WORTH).then(|| key.to_vec()));
            }
            visit(key, value)
        };
        self.view.scan(table, (&start, to), self.group, &deleted, &mut found)?;
        let end = match first {
            Some(first) => first,
            None => (deleted.get() >= WORTH && !to.is_empty()).then(|| to.to_vec()),
        };
        if let Some(end) = end {
            self.view.recent.gaps(table).note(from, end);
        }
        Ok(())
    }
}

impl StoreTxn for Batch {
    fn put(&mut self, table: Table, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        self.view.recent.put(table, key, Some(value), self.group);
        Ok(())
    }

    fn delete(&mut self, table: Table, key: &[u8]) -> Result<(), StoreError> {
        self.view.recent.put(table, key, None, self.group);
        Ok(())
    }
}

/// The namespace at one moment; it does not change while it is held.
///
/// Keep it briefly: the store cannot reuse space that a snapshot still sees.
pub struct Snapshot(Arc<View>);

impl StoreRead for Snapshot {
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        self.0.get(table, key, self.0.group)
    }

    fn scan(
        &self,
        table: Table,
        from: &[u8],
        to: &[u8],
        visit: Visit<'_>,
    ) -> Result<(), StoreError> {
        self.0.scan(table, (from, to), self.0.group, &Cell::new(0), visit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cairn_namespace::store::conformance;
    use cairn_namespace::store::memory::MemoryStore;

    #[test]
    fn conforms() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("db"), 1 << 20).unwrap();
        conformance::check(&mut store.begin(1));
    }

    #[test]
    fn snapshots_see_commits_only() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("db");
        let store = Store::open(&path, 1 << 20).unwrap();
        let before = store.snapshot();
        store.begin(1).put(Table::Meta, b"k", b"v").unwrap();
        assert_eq!(store.snapshot().get(Table::Meta, b"k").unwrap(), None);
        // The next group sees what is not shown yet.
        assert_eq!(store.begin(2).get(Table::Meta, b"k").unwrap().as_deref(), Some(&b"v"[..]));
        store.commit(1, 7);
        assert_eq!(before.get(Table::Meta, b"k").unwrap(), None);
        let between = store.snapshot();
        assert_eq!(between.get(Table::Meta, b"k").unwrap().as_deref(), Some(&b"v"[..]));
        assert_eq!(store.applied(), 7);
        assert_eq!(store.waiting(), 1);
        store.begin(2).put(Table::Meta, b"k", b"w").unwrap();
        assert_eq!(store.snapshot().get(Table::Meta, b"k").unwrap().as_deref(), Some(&b"v"[..]));
        store.commit(2, 7);
        store.write_out().unwrap();
        assert_eq!(store.waiting(), 0);
        assert_eq!(before.get(Table::Meta, b"k").unwrap(), None);
        assert_eq!(between.get(Table::Meta, b"k").unwrap().as_deref(), Some(&b"v"[..]));
        drop((before, between, store));
        let store = Store::open(&path, 1 << 20).unwrap();
        assert_eq!(store.snapshot().get(Table::Meta, b"k").unwrap().as_deref(), Some(&b"w"[..]));
        assert_eq!(store.applied(), 7);
    }

    fn scanned(
        store: &dyn StoreRead,
        from: &[u8],
        to: &[u8],
        count: usize,
    ) -> Vec<(Vec<u8>, Vec<u8>)> {
        let mut found = Vec::new();
        let mut visit = |key: &[u8], value: &[u8]| {
            found.push((key.to_vec(), value.to_vec()));
            if found.len() == count { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        store.scan(Table::Child, from, to, &mut visit).unwrap();
        found
    }

    /// Changes, commits, snapshots and checkpoints in any order: everybody sees what a plain map would show.
    #[test]
    fn layer_and_file_are_one_store() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("db"), 1 << 20).unwrap();
        let mut model = MemoryStore::new();
        let mut seen: Vec<(Snapshot, MemoryStore)> = Vec::new();
        let mut state = 5_u64;
        let mut dice = |below: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        for round in 0..300_u64 {
            let mut batch = store.begin(round + 1);
            for _ in 0..dice(40) {
                let key = (dice(300) as u16).to_be_bytes();
                if dice(3) == 0 {
                    batch.delete(Table::Child, &key).unwrap();
                    model.delete(Table::Child, &key).unwrap();
                } else {
                    batch.put(Table::Child, &key, &round.to_be_bytes()).unwrap();
                    model.put(Table::Child, &key, &round.to_be_bytes()).unwrap();
                }
            }
            assert_eq!(scanned(&batch, b"", b"", 0), scanned(&model, b"", b"", 0));
            // Most of a range goes, as from the front of a queue, and some comes back.
            if dice(4) == 0 {
                let (from, len) = (dice(300) as u16, dice(200) as u16);
                for key in from..from + len {
                    batch.delete(Table::Child, &key.to_be_bytes()).unwrap();
                    model.delete(Table::Child, &key.to_be_bytes()).unwrap();
                }
            }
            for _ in 0..4 {
                let (from, to) =
                    ((dice(300) as u16).to_be_bytes(), (dice(300) as u16).to_be_bytes());
                assert_eq!(scanned(&batch, &from, &to, 1), scanned(&model, &from, &to, 1));
                let key = (dice(300) as u16).to_be_bytes();
                batch.put(Table::Child, &key, b"back").unwrap();
                model.put(Table::Child, &key, b"back").unwrap();
                assert_eq!(scanned(&batch, &from, b"", 2), scanned(&model, &from, b"", 2));
                batch.delete(Table::Child, &key).unwrap();
                model.delete(Table::Child, &key).unwrap();
            }
            store.commit(round + 1, round);
            if dice(20) == 0 {
                store.write_out().unwrap();
            }
            seen.push((store.snapshot(), model.clone()));
            if seen.len() > 8 {
                seen.remove(dice(8) as usize);
            }
            for (snapshot, model) in &seen {
                let (a, b) = (dice(300) as u16, dice(300) as u16);
                let (from, to, count) = (a.to_be_bytes(), b.to_be_bytes(), dice(30) as usize);
                assert_eq!(scanned(snapshot, &from, &to, count), scanned(model, &from, &to, count));
                assert_eq!(scanned(snapshot, &from, b"", count), scanned(model, &from, b"", count));
                let (found, known) =
                    (snapshot.get(Table::Child, &from), model.get(Table::Child, &from));
                assert_eq!(found.unwrap(), known.unwrap());
            }
        }
    }
}
