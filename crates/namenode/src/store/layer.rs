//! What was written since the store's file was last brought up to date: records in memory, with the versions that
//! readers still see.
//!
//! Changes are made under the number of their group. A reader sees those up to the number of the last group that is
//! durable, while the next one is being made.

use super::gaps::Gaps;
use super::key::Key;
use cairn_namespace::store::Table;
use cairn_process::held::{held, held_read, held_write};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::{Bound, RangeInclusive};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, RwLock, RwLockReadGuard};

/// Records that a scan fetches at first, and at most, at a time.
const PAGE_MIN: usize = 2;
const PAGE_MAX: usize = 512;

type Value = Option<Box<[u8]>>;
/// A key and its value; none if it is deleted.
type Record = (Vec<u8>, Option<Vec<u8>>);
type Records = BTreeMap<Key, Versions>;

/// A record's values, the newest beside the others; `None` is a deleted one.
#[derive(Debug)]
struct Versions {
    group: u64,
    value: Value,
    /// In ascending order of groups.
    older: Vec<(u64, Value)>,
}

impl Versions {
    fn at(&self, group: u64) -> Option<&Value> {
        if self.group <= group {
            return Some(&self.value);
        }
        self.older.iter().rev().find(|(made, _)| *made <= group).map(|(_, value)| value)
    }
}

/// The records.
#[derive(Debug, Default)]
pub(super) struct Layer {
    tables: [RwLock<Records>; Table::ALL.len()],
    len: AtomicUsize,
    /// What the writer knows to be empty.
    gaps: [Mutex<Gaps>; Table::ALL.len()],
}

impl Layer {
    /// Ranges of a table without a record, as the writer sees it.
    pub(super) fn gaps(&self, table: Table) -> MutexGuard<'_, Gaps> {
        held(&self.gaps[table as usize])
    }

    fn records(&self, table: Table) -> RwLockReadGuard<'_, Records> {
        held_read(&self.tables[table as usize])
    }

    /// Values of all records, older ones counted.
    pub(super) fn len(&self) -> usize {
        self.len.load(Ordering::Relaxed)
    }

    /// Whether nothing was ever written here.
    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether there is anything about `key`.
    pub(super) fn has(&self, table: Table, key: &[u8]) -> bool {
        self.records(table).contains_key(key)
    }

    /// Whether there is anything about `key` that was written by a group after `group`.
    pub(super) fn has_newer(&self, table: Table, key: &[u8], group: u64) -> bool {
        if self.is_empty() {
            return false;
        }
        self.records(table).get(key).is_some_and(|versions| versions.group > group)
    }

    /// Whether there is anything about a key in `keys`.
    pub(super) fn has_any(&self, table: Table, keys: RangeInclusive<&[u8]>) -> bool {
        if self.is_empty() {
            return false;
        }
        let keys = (Bound::Included(*keys.start()), Bound::Included(*keys.end()));
        self.records(table).range::<[u8], _>(keys).next().is_some()
    }

    /// Whether there is anything about the table.
    pub(super) fn has_some(&self, table: Table) -> bool {
        !self.is_empty() && !self.records(table).is_empty()
    }

    /// What `look` makes of the value at `key` as of `group`; none if nothing is known here.
    pub(super) fn with<R>(
        &self,
        table: Table,
        key: &[u8],
        group: u64,
        look: impl FnOnce(Option<&[u8]>) -> R,
    ) -> Option<R> {
        if self.is_empty() {
            return None;
        }
        let records = self.records(table);
        let value = records.get(key)?.at(group)?;
        Some(look(value.as_deref()))
    }

    /// Takes over what another layer's writer knows to be empty.
    pub(super) fn inherit_gaps(&self, from: &Layer) {
        for (new, old) in self.gaps.iter().zip(&from.gaps) {
            let mut old = held(old);
            *held(new) = std::mem::take(&mut *old);
        }
    }

    /// Gives `key` a value from `group` on, which is the newest.
    pub(super) fn put(&self, table: Table, key: &[u8], value: Option<&[u8]>, group: u64) {
        let mut records = held_write(&self.tables[table as usize]);
        if value.is_some() {
            self.gaps(table).fill(key);
        }
        let value = value.map(Box::from);
        match records.entry(Key::from(key)) {
            Entry::Vacant(place) => {
                place.insert(Versions { group, value, older: Vec::new() });
            }
            Entry::Occupied(mut place) => {
                let versions = place.get_mut();
                let last = std::mem::replace(&mut versions.value, value);
                if versions.group == group {
                    return;
                }
                versions.older.push((versions.group, last));
                versions.group = group;
            }
        }
        self.len.fetch_add(1, Ordering::Relaxed);
    }

    /// Calls `write` for the newest value of each record of a table, in the order of keys.
    pub(super) fn newest<E>(
        &self,
        table: Table,
        mut write: impl FnMut(&[u8], Option<&[u8]>) -> Result<(), E>,
    ) -> Result<(), E> {
        let records = self.records(table);
        records
            .iter()
            .try_for_each(|(key, versions)| write(key.as_slice(), versions.value.as_deref()))
    }

    /// The records from `from` to before `to` (empty: to the end) as of `group`. No lock is held between them.
    pub(super) fn range<'a>(
        &'a self,
        table: Table,
        from: &[u8],
        to: &'a [u8],
        group: u64,
    ) -> impl Iterator<Item = Record> + 'a {
        let mut next = Some(Bound::Included(from.to_vec()));
        let mut page = Vec::new().into_iter();
        let mut size = PAGE_MIN;
        std::iter::from_fn(move || {
            loop {
                if let Some(found) = page.next() {
                    return Some(found);
                }
                let from = next.take()?;
                let fetched = self.page(table, &from, to, group, size);
                next = fetched.1.map(Bound::Excluded);
                page = fetched.0.into_iter();
                size = (size * 2).min(PAGE_MAX);
            }
        })
    }

    /// At most `size` records, and the last key that was looked at if there may be more.
    fn page(
        &self,
        table: Table,
        from: &Bound<Vec<u8>>,
        to: &[u8],
        group: u64,
        size: usize,
    ) -> (Vec<Record>, Option<Vec<u8>>) {
        let records = self.records(table);
        let mut page = Vec::new();
        let from = from.as_ref().map(Vec::as_slice);
        let mut looked_at = 0;
        for (key, versions) in records.range::<[u8], _>((from, Bound::Unbounded)) {
            let key = key.as_slice();
            if !to.is_empty() && key >= to {
                return (page, None);
            }
            if let Some(value) = versions.at(group) {
                page.push((key.to_vec(), value.as_deref().map(<[u8]>::to_vec)));
            }
            looked_at += 1;
            if looked_at == size {
                return (page, Some(key.to_vec()));
            }
        }
        (page, None)
    }
}
