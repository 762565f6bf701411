//! Records of files that are asked for again and again, by the names that lead there, and of their first blocks, within
//! a bound of bytes; so that who asks for a file's status or its blocks finds in one look what else takes two, in runs
//! or in pages of the store's file.
//!
//! All states of the file share them. A record is kept with the number of the state that it was read from, which the
//! next states have as well until it is changed: [`Records::advance`] then forgets it, before anybody sees the new
//! state. Who reads an older state does not see records that later ones have brought, and adds none.

use super::layer::Layer;
use cairn_namespace::store::Table;
use cairn_namespace::{InodeId, block, inode};
use cairn_process::held::{held_read, held_write};
use std::borrow::Borrow;
use std::collections::HashSet;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Parts with a lock of their own.
const PARTS: usize = 16;
/// What a record takes beside its bytes: its place, and what the allocator adds.
const OVERHEAD: usize = 56;
/// Records up to this are copied out with no memory taken.
const SHORT_MAX: usize = 256;

/// A record under its key: a file's inode under the key of its name in the table `child`, or a file's first block with
/// its offset under the file's id, which is shorter than any of these.
struct Record {
    /// Nobody has asked for it since it came, or since the part was last gone through.
    is_idle: AtomicBool,
    /// State, length of the key, key, value.
    bytes: Box<[u8]>,
}

/// Where the key begins.
const KEY_AT: usize = 12;

impl Record {
    fn new(state: u64, key: &[u8], value: [&[u8]; 2]) -> Option<Record> {
        let key_len = u32::try_from(key.len()).ok()?;
        let head = [&state.to_be_bytes()[..], &key_len.to_be_bytes()].concat();
        let bytes = [&head, key, value[0], value[1]].concat().into();
        Some(Record { is_idle: AtomicBool::new(true), bytes })
    }

    fn state(&self) -> u64 {
        self.bytes.first_chunk().map_or(u64::MAX, |bytes| u64::from_be_bytes(*bytes))
    }

    fn key_end(&self) -> usize {
        let len = self.bytes[8..].first_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes));
        KEY_AT + len as usize
    }

    fn key(&self) -> &[u8] {
        &self.bytes[KEY_AT..self.key_end()]
    }

    fn value(&self) -> &[u8] {
        &self.bytes[self.key_end()..]
    }

    fn len(&self) -> usize {
        OVERHEAD + self.bytes.len()
    }
}

impl Borrow<[u8]> for Record {
    fn borrow(&self) -> &[u8] {
        self.key()
    }
}

impl PartialEq for Record {
    fn eq(&self, other: &Record) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Record {}

impl Hash for Record {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}

#[derive(Default)]
struct Part {
    /// The newest state, to which records are added.
    state: u64,
    records: HashSet<Record>,
    /// Bytes of all of them.
    len: usize,
}

impl Part {
    fn remove(&mut self, key: &[u8]) {
        if let Some(record) = self.records.take(key) {
            self.len -= record.len();
        }
    }

    /// Drops those that nobody asked for, or half of them if too many were.
    fn make_room(&mut self, max: usize) {
        self.records.retain(|record| !record.is_idle.swap(true, Ordering::Relaxed));
        if self.records.iter().map(Record::len).sum::<usize>() > max / 4 * 3 {
            let mut stays = false;
            self.records.retain(|_| {
                stays = !stays;
                stays
            });
        }
        self.len = self.records.iter().map(Record::len).sum();
    }
}

/// What is done with a key of a layer and its value.
type Forget<'a> = &'a mut dyn FnMut(&[u8], Option<&[u8]>);

/// The records of a store's file.
pub(super) struct Records {
    parts: [RwLock<Part>; PARTS],
    /// Bytes of each part.
    part_max: usize,
    /// Once there was no room any more, of so many records one is kept: those that come more often come in sooner.
    one_of: u32,
    was_full: AtomicBool,
    asked: AtomicU32,
}

impl Records {
    /// With at most so many bytes; `one_of` says how many records that find no room it takes for one to be kept.
    pub(super) fn new(max: usize, one_of: u32) -> Records {
        Records {
            parts: Default::default(),
            part_max: max / PARTS,
            one_of,
            was_full: AtomicBool::new(false),
            asked: AtomicU32::new(0),
        }
    }

    /// Names of one directory are spread over all parts.
    fn part(&self, key: &[u8]) -> &RwLock<Part> {
        let last = key.last_chunk::<8>().map_or(0, |bytes| u64::from_be_bytes(*bytes));
        let mixed = last.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        &self.parts[mixed as usize % PARTS]
    }

    fn read(&self, key: &[u8]) -> RwLockReadGuard<'_, Part> {
        held_read(self.part(key))
    }

    fn write(&self, key: &[u8]) -> RwLockWriteGuard<'_, Part> {
        held_write(self.part(key))
    }

    /// What `look` makes of a record that `state` has. No lock is held meanwhile.
    fn with<R>(&self, state: u64, key: &[u8], look: impl FnOnce(&[u8]) -> R) -> Option<R> {
        let part = self.read(key);
        let record = part.records.get(key).filter(|record| record.state() <= state)?;
        if record.is_idle.load(Ordering::Relaxed) {
            record.is_idle.store(false, Ordering::Relaxed);
        }
        let value = record.value();
        let mut short = [0; SHORT_MAX];
        match short.get_mut(..value.len()) {
            Some(copy) => {
                copy.copy_from_slice(value);
                drop(part);
                Some(look(copy))
            }
            None => {
                let copy = value.to_vec();
                drop(part);
                Some(look(&copy))
            }
        }
    }

    fn keep(&self, state: u64, key: &[u8], value: [&[u8]; 2]) {
        if self.was_full.load(Ordering::Relaxed)
            && !self.asked.fetch_add(1, Ordering::Relaxed).is_multiple_of(self.one_of)
        {
            return;
        }
        let Some(record) = Record::new(state, key, value) else { return };
        let len = record.len();
        // One that is out of all proportion would take the place of thousands.
        if len > self.part_max / 16 {
            return;
        }
        let mut part = self.write(key);
        if part.state != state || part.records.contains(key) {
            return;
        }
        part.len += len;
        part.records.insert(record);
        if part.len > self.part_max {
            part.make_room(self.part_max);
            self.was_full.store(true, Ordering::Relaxed);
        }
    }

    /// What `look` makes of the inode record of the file that `key` in the table `child` leads to.
    pub(super) fn file<R>(
        &self,
        state: u64,
        key: &[u8],
        look: impl FnOnce(&[u8]) -> R,
    ) -> Option<R> {
        self.with(state, key, look)
    }

    /// Keeps the inode record of a file, which must be as `state` has it.
    pub(super) fn keep_file(&self, state: u64, key: &[u8], record: &[u8]) {
        self.keep(state, key, [record, &[]]);
    }

    /// What `look` makes of the record of a file's first block, and where in the file that is.
    pub(super) fn first_block<R>(
        &self,
        state: u64,
        file: InodeId,
        look: impl FnOnce(u64, &[u8]) -> R,
    ) -> Option<R> {
        self.with(state, &file.key(), |value| {
            let (offset, record) = value.split_first_chunk()?;
            Some(look(u64::from_be_bytes(*offset), record))
        })?
    }

    /// Keeps the record of a file's first block, which must be as `state` has it.
    pub(super) fn keep_first_block(&self, state: u64, file: InodeId, offset: u64, record: &[u8]) {
        self.keep(state, &file.key(), [&offset.to_be_bytes(), record]);
    }

    /// Forgets what is not in `state` as it was: what `layer` has, which the file now has too. Nobody reads `state`
    /// yet.
    pub(super) fn advance(&self, state: u64, layer: &Layer) {
        for part in &self.parts {
            held_write(part).state = state;
        }
        let forget = |key: &[u8]| self.write(key).remove(key);
        let each = |table: Table, forget: Forget<'_>| {
            let done: Result<(), std::convert::Infallible> = layer.newest(table, |key, value| {
                forget(key, value);
                Ok(())
            });
            let Ok(()) = done;
        };
        each(Table::Child, &mut |key, _| forget(key));
        // A file that is gone has no name either.
        each(Table::Inode, &mut |_, value| {
            if let Some(key) = value.and_then(|record| inode::child_key_in(record).ok()) {
                forget(&key);
            }
        });
        each(Table::FileBlock, &mut |key, _| forget(key.get(..8).unwrap_or(key)));
        // The same of a block.
        each(Table::Block, &mut |_, value| {
            if let Some(file) = value.and_then(|record| block::file_in(record).ok()) {
                forget(&file.key());
            }
        });
    }
}
