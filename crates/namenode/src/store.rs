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
mod kept;
mod key;
mod layer;
mod listings;
mod records;
mod runs;
mod shares;
mod tables;
mod unwritten;
mod view;

pub use identity::{Identity, IdentityError};
pub(crate) use view::Spent;

use crate::disk::{Disk, Folders};
use cairn_namespace::inode::InodeRef;
use cairn_namespace::store::{StoreError, StoreRead, StoreTxn, Table, Visit};
use cairn_namespace::{Block, Inode, InodeId, Settings, Times};
use cairn_process::held::{held, held_read, held_write};
use cairn_stripe::{Policy, PolicyId};
use checked_file::CheckedFile;
use gaps::WORTH;
use kept::Kept;
use layer::Layer;
use listings::Listings;
use records::Records;
use redb::{Database, ReadableTableMetadata, StorageBackend};
use runs::Runs;
use shares::Shares;
use std::cell::Cell;
use std::ops::RangeInclusive;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Arc, Mutex, RwLock};
pub(crate) use tables::Position;
use tables::{applied_in, backend, former_outcomes, open_tables, write_file};
use unwritten::Unwritten;
use view::{Aside, FileState, View};

/// The folder beside the store where a new one is made.
const UNFINISHED: &str = "new-store";

/// Makes an empty store. It gets its name when it is whole, because redb does not open the beginning of a file.
fn create(disk: &dyn Folders, path: &Path, cache_len: usize) -> Result<(), StoreError> {
    let folder = path.with_file_name(UNFINISHED);
    disk.remove_folder(&folder).map_err(backend)?;
    disk.create_folder(&folder).map_err(backend)?;
    let unfinished = folder.join("store");
    Store::open_through(disk, &unfinished, cache_len, |file| file)?.close();
    let move_in = || {
        disk.open_file(&unfinished)?.sync()?;
        disk.rename(&unfinished, path)?;
        disk.remove_folder(&folder)?;
        path.parent().map_or(Ok(()), |folder| disk.sync(folder))
    };
    move_in().map_err(backend)
}

/// The open store.
pub(crate) struct Store {
    /// `None` once it is closed.
    database: Mutex<Option<Database>>,
    /// What readers see.
    current: RwLock<Arc<View>>,
    /// Not all of the file was read at the start.
    is_unread: bool,
}

impl Store {
    /// Opens or creates the file. `cache_len` bounds what of it is kept in memory, in bytes.
    pub fn open(path: &Path, cache_len: usize) -> Result<Store, StoreError> {
        Store::open_on(&Disk, path, cache_len)
    }

    /// The same on another disk.
    pub fn open_on(disk: &dyn Folders, path: &Path, cache_len: usize) -> Result<Store, StoreError> {
        if !path.try_exists().map_err(backend)? {
            create(disk, path, cache_len)?;
        }
        Store::open_through(disk, path, cache_len, |file| file)
    }

    /// Opens a file that is there and stays as it is, whatever is done to the store.
    pub fn open_unwritten(path: &Path, cache_len: usize) -> Result<Store, StoreError> {
        let len = std::fs::metadata(path).map_err(backend)?.len();
        Store::open_through(&Disk, path, cache_len, |file| Unwritten::new(file, len))
    }

    /// As [`Store::open`]; what `wrap` makes of the file is asked instead of it.
    pub(crate) fn open_through<F: StorageBackend>(
        disk: &dyn Folders,
        path: &Path,
        cache_len: usize,
        wrap: impl FnOnce(CheckedFile) -> F,
    ) -> Result<Store, StoreError> {
        // It may end with much that was never written.
        let file_len = std::fs::metadata(path).map_or(0, |file| file.blocks() * 512);
        let (file, is_known) = CheckedFile::open(disk, path).map_err(backend)?;
        let mut builder = Database::builder();
        let shares = Shares::of(cache_len, file_len);
        let builder = builder.set_cache_size(shares.pages);
        let mut database = builder.create_with_backend(wrap(file)).map_err(backend)?;
        // What is known block by block is compared when it is read.
        if !is_known && !database.check_integrity().map_err(backend)? {
            return Err(StoreError::Corrupt {
                what: "namespace store",
                reason: "its pages do not have the checksums they were written with".to_string(),
            });
        }
        // Readers need every table to exist.
        write_file(&database, None, &former_outcomes(&database)?)?;
        let tables = open_tables(&database)?;
        let empty: Result<Vec<bool>, _> =
            tables.iter().map(ReadableTableMetadata::is_empty).collect();
        let empty = empty.map_err(backend)?;
        let view = View {
            group: 0,
            position: applied_in(&database)?,
            recent: Arc::default(),
            aside: None,
            file: Arc::new(FileState {
                number: 0,
                tables,
                kept: Kept::default(),
                records: Arc::new(Records::new(shares.records, shares.one_of)),
                listings: Arc::new(Listings::new(shares.listings)),
                runs: Arc::new(Runs::new(shares.runs, |table| empty[table as usize])),
            }),
        };
        let database = Mutex::new(Some(database));
        Ok(Store { database, current: RwLock::new(Arc::new(view)), is_unread: is_known })
    }

    /// Closes the file, to which redb writes once more for it; nothing can be written or read afterwards.
    pub fn close(&self) {
        held(&self.database).take();
    }

    fn view(&self) -> Arc<View> {
        held_read(&self.current).clone()
    }

    fn update(&self, change: impl FnOnce(&View) -> View) {
        let mut current = held_write(&self.current);
        let new = Arc::new(change(&current));
        let old = std::mem::replace(&mut *current, new);
        // It may be large, and readers wait for the lock.
        drop(current);
        drop(old);
    }

    /// Begins the changes of a group, with a number above all before; only one can be open. They can't be undone: when
    /// one fails halfway, nothing may be written any more, and nobody ever sees them.
    pub fn begin(&self, group: u64) -> Batch {
        Batch { view: self.view(), group }
    }

    /// Shows the changes of a group, and of those before it, to readers; `position` is that of its last entry. They are
    /// in memory only.
    pub fn commit(&self, group: u64, position: impl Into<Position>) {
        let position = position.into();
        self.update(|view| View {
            group,
            position,
            recent: view.recent.clone(),
            aside: view.aside.clone(),
            file: view.file.clone(),
        });
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
        self.position().sequence
    }

    /// The last entry in the store, and the checksum of what all have changed.
    pub fn position(&self) -> Position {
        self.view().position
    }

    /// Records that wait to be set aside for the file.
    pub fn waiting(&self) -> usize {
        self.view().recent.len()
    }

    /// Whether records of a checkpoint are still on their way to the file.
    pub fn is_written_to(&self) -> bool {
        self.view().aside.is_some()
    }

    /// Whether there may be damage in the file that nobody has come across yet.
    pub fn is_unread(&self) -> bool {
        self.is_unread
    }

    /// Reads records of `table` in the file, at most `limit` from the one at `from` on; damage is an error. They are
    /// packed in memory if there is room. Returns the key to go on from, unless the end was reached.
    pub fn look(
        &self,
        table: Table,
        from: &[u8],
        limit: usize,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        let view = self.view();
        view.file.look(table, from, limit)
    }

    /// How many records a table has in the file.
    pub fn len(&self, table: Table) -> Result<u64, StoreError> {
        self.view().file.tables[table as usize].len().map_err(backend)
    }

    /// Sets aside what is to be written to the file by [`Store::write_aside`]. No group may be open, or wait to be
    /// shown. Does nothing while something is set aside already.
    pub fn set_aside(&self) {
        self.update(|view| {
            let (mut recent, mut aside) = (view.recent.clone(), view.aside.clone());
            if aside.is_none() {
                aside = Some(Aside { layer: recent, position: view.position });
                let fresh = Layer::default();
                fresh.inherit_gaps(&view.recent);
                recent = Arc::new(fresh);
            }
            View { recent, aside, file: view.file.clone(), ..*view }
        });
    }

    /// Brings the file up to date with what was set aside, durably. Groups may go on meanwhile.
    pub fn write_aside(&self) -> Result<Option<Spent>, StoreError> {
        let view = self.view();
        let Some(Aside { layer, position }) = &view.aside else { return Ok(None) };
        let database = held(&self.database);
        let database = database.as_ref().ok_or_else(|| backend("the store is closed"))?;
        write_file(database, Some(*position), layer)?;
        let number = view.file.number + 1;
        view.file.records.advance(number, layer);
        view.file.listings.advance(number, layer);
        view.file.runs.advance(number, layer);
        let file = Arc::new(FileState {
            number,
            tables: open_tables(database)?,
            kept: view.file.kept.after(layer),
            records: Arc::clone(&view.file.records),
            listings: Arc::clone(&view.file.listings),
            runs: Arc::clone(&view.file.runs),
        });
        self.update(|view| View { recent: view.recent.clone(), aside: None, file, ..*view });
        Ok(Some(Spent(Arc::clone(layer))))
    }

    /// Brings the file up to date, durably. No group may be open, or wait to be shown.
    pub fn write_out(&self) -> Result<(), StoreError> {
        self.write_aside()?;
        self.set_aside();
        self.write_aside().map(|_| ())
    }
}

/// A group of changes that are being made, and the store as it is with them.
pub(crate) struct Batch {
    view: Arc<View>,
    group: u64,
}

impl StoreRead for Batch {
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        self.view.get(table, key, self.group)
    }

    fn peek(
        &self,
        table: Table,
        key: &[u8],
        look: &mut dyn FnMut(&[u8]),
    ) -> Result<bool, StoreError> {
        self.view.peek(table, key, self.group, look)
    }

    fn inode(&self, id: InodeId) -> cairn_namespace::Result<Option<Arc<Inode>>> {
        self.view.inode(id, self.group)
    }

    fn child(&self, parent: InodeId, name: &str) -> cairn_namespace::Result<Option<Arc<Inode>>> {
        self.view.child(parent, name, self.group)
    }

    fn look_up(
        &self,
        parent: InodeId,
        name: &str,
        look: &mut dyn FnMut(&InodeRef<'_>),
    ) -> cairn_namespace::Result<bool> {
        self.view.look_up(parent, name, self.group, look)
    }

    fn first_block(&self, file: InodeId) -> cairn_namespace::Result<(u64, Block)> {
        self.view.first_block(file, self.group)
    }

    fn policy(&self, id: PolicyId) -> cairn_namespace::Result<Arc<Policy>> {
        self.view.policy(id, self.group)
    }

    fn settings(&self) -> cairn_namespace::Result<Arc<Settings>> {
        self.view.settings(self.group)
    }

    fn scan(
        &self,
        table: Table,
        from: &[u8],
        to: &[u8],
        visit: Visit<'_>,
    ) -> Result<(), StoreError> {
        let start = self.view.recent.gaps(table).skip(from).to_vec();
        if !to.is_empty() && start.as_slice() >= to {
            return Ok(());
        }
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
            // The front of a queue, whose end moves on with time, is looked at again and again.
            None => {
                let is_worth = deleted.get() >= WORTH || from.is_empty();
                (is_worth && !to.is_empty()).then(|| to.to_vec())
            }
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

/// When something was read: what a later snapshot is compared with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    group: u64,
    file: u64,
}

impl Snapshot {
    /// Sequence number of the last entry that it shows.
    pub(crate) fn applied(&self) -> u64 {
        self.0.position.sequence
    }

    /// The checksum of all changes up to there, if it is known.
    pub(crate) fn chain(&self) -> Option<u32> {
        self.0.position.chain
    }

    /// The latest times of entries up to there.
    pub(crate) fn times(&self) -> Times {
        self.0.position.times
    }

    /// What it shows, to be compared with later ones.
    pub(crate) fn moment(&self) -> Moment {
        Moment { group: self.0.group, file: self.0.file.number }
    }

    /// Whether nothing at all has changed since.
    pub(crate) fn is_of(&self, moment: Moment) -> bool {
        self.0.group == moment.group
    }

    /// Whether a record is known to be as it was at an earlier moment: changes that have been written to the file
    /// since then are not told apart.
    pub(crate) fn is_unchanged(&self, since: Moment, table: Table, key: &[u8]) -> bool {
        let is_same = |layer: &Layer| !layer.has_newer(table, key, since.group);
        self.is_of(since) || self.0.file.number == since.file && self.0.layers().all(is_same)
    }

    /// The page of a directory that was kept under this key, if it is still as this shows it.
    pub(crate) fn listing(&self, key: &[u8]) -> Option<Arc<[u8]>> {
        let file = &self.0.file;
        file.listings.page(file.number, self.0.layers(), key)
    }

    /// Keeps an encoded page of a directory whose inodes are among those of `shown.1`. The key has to have all that it
    /// depends on besides them, the directory's names, snapshottable directories and policies.
    pub(crate) fn keep_listing(
        &self,
        key: Vec<u8>,
        shown: (InodeId, RangeInclusive<InodeId>),
        bytes: &[u8],
    ) {
        let file = &self.0.file;
        file.listings.keep(file.number, self.0.layers(), key, shown, bytes);
    }
}

impl StoreRead for Snapshot {
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        self.0.get(table, key, self.0.group)
    }

    fn peek(
        &self,
        table: Table,
        key: &[u8],
        look: &mut dyn FnMut(&[u8]),
    ) -> Result<bool, StoreError> {
        self.0.peek(table, key, self.0.group, look)
    }

    fn inode(&self, id: InodeId) -> cairn_namespace::Result<Option<Arc<Inode>>> {
        self.0.inode(id, self.0.group)
    }

    fn child(&self, parent: InodeId, name: &str) -> cairn_namespace::Result<Option<Arc<Inode>>> {
        self.0.child(parent, name, self.0.group)
    }

    fn look_up(
        &self,
        parent: InodeId,
        name: &str,
        look: &mut dyn FnMut(&InodeRef<'_>),
    ) -> cairn_namespace::Result<bool> {
        self.0.look_up(parent, name, self.0.group, look)
    }

    fn first_block(&self, file: InodeId) -> cairn_namespace::Result<(u64, Block)> {
        self.0.first_block(file, self.0.group)
    }

    fn policy(&self, id: PolicyId) -> cairn_namespace::Result<Arc<Policy>> {
        self.0.policy(id, self.0.group)
    }

    fn settings(&self) -> cairn_namespace::Result<Arc<Settings>> {
        self.0.settings(self.0.group)
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
mod tests;
