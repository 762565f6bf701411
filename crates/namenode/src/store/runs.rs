//! Stretches of the tables that paths, listings and blocks are read from, packed in memory within a bound of bytes.
//!
//! A page of the store's file holds twenty files at best, and to find anything in it costs more than to unpack it here.
//! A stretch has all that is in its table from one key to another, so that it also tells what there is not.
//!
//! All states of the file share them. Each has the number of the state that it is right from on, until
//! [`Runs::advance`] brings what a checkpoint has changed into it, before anybody sees the new state. Who reads an older
//! state does not see stretches of later ones, and adds none.

mod delta;
mod run;
mod shelf;

use super::layer::Layer;
use cairn_namespace::store::Table;
use cairn_process::held::{held_read, held_write};
use run::{COUNT_MAX, Change, Rows, Run, Value};
use shelf::{Shelf, Stretch};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// The tables.
const TABLES: [Table; 5] =
    [Table::Inode, Table::Child, Table::FileBlock, Table::Block, Table::XAttr];
/// Fewer records are no run, unless they are all that there is.
const COUNT_MIN: usize = 16;
/// Of so many look-ups that find nothing known, one brings a stretch: while there is room, and when there is none.
const ONE_OF: (u32, u32) = (4, 64);
/// Stretches of each table that are gone through at a time to make room.
const STEPS: usize = 16;

/// The stretches of one table.
#[derive(Default)]
struct Shared {
    /// The newest state, to which stretches are added.
    state: u64,
    shelf: Shelf,
    /// Where to go on making room.
    hand: Vec<u8>,
}

/// What is known at a key.
pub(super) enum At {
    /// This has what there is.
    Known(Arc<Stretch>),
    /// Nothing, up to this key; none for all that come.
    Gap(Option<Box<[u8]>>),
}

/// The stretches of a store.
pub(super) struct Runs {
    tables: [RwLock<Shared>; TABLES.len()],
    /// Bytes of all.
    len: AtomicUsize,
    max: usize,
    asked: AtomicU32,
}

impl Runs {
    /// With at most so many bytes; none for no runs at all. Tables that are empty are known.
    pub(super) fn new(max: usize, is_empty: impl Fn(Table) -> bool) -> Runs {
        let (len, asked) = (AtomicUsize::new(0), AtomicU32::new(0));
        let runs = Runs { tables: Default::default(), len, max, asked };
        for table in TABLES.into_iter().filter(|table| max > 0 && is_empty(*table)) {
            Filling::new(&runs, 0, table, &[]).finish(&[]);
        }
        runs
    }

    fn table(&self, table: Table) -> Option<&RwLock<Shared>> {
        let at = TABLES.iter().position(|kept| *kept == table)?;
        Some(&self.tables[at])
    }

    /// Whether there is room for more of a table.
    pub(super) fn has_room_for(&self, table: Table) -> bool {
        self.table(table).is_some() && self.has_room()
    }

    fn has_room(&self) -> bool {
        self.len.load(Ordering::Relaxed) < self.max
    }

    /// The record at `key` of `state`, if it is known whether there is one.
    pub(super) fn get(&self, state: u64, table: Table, key: &[u8]) -> Option<Option<Value>> {
        let shared = read(self.table(table)?);
        let found = shared.shelf.before(key).filter(|found| found.state <= state)?;
        let value = found.run.get(key);
        if value.is_none() && !found.reaches(key) {
            return None;
        }
        note(found);
        Some(value)
    }

    /// What is known at `key` of `state`, and after it.
    pub(super) fn at(&self, state: u64, table: Table, key: &[u8]) -> At {
        let Some(shared) = self.table(table) else { return At::Gap(None) };
        let shared = read(shared);
        if let Some(found) = shared.shelf.before(key)
            && found.state <= state
            && found.reaches(key)
        {
            note(found);
            return At::Known(Arc::clone(found));
        }
        let next = shared.shelf.after(key).find(|found| found.state <= state);
        At::Gap(next.map(|found| found.from.clone()))
    }

    /// Whether who finds nothing known shall bring it here.
    pub(super) fn wants(&self, table: Table) -> bool {
        if self.max == 0 || self.table(table).is_none() {
            return false;
        }
        let one_of = if self.has_room() { ONE_OF.0 } else { ONE_OF.1 };
        self.asked.fetch_add(1, Ordering::Relaxed).is_multiple_of(one_of)
    }

    /// Begins to take over what `state` has from `from` on.
    pub(super) fn fill(&self, state: u64, table: Table, from: &[u8]) -> Filling<'_> {
        Filling::new(self, state, table, from)
    }

    /// Puts a stretch in place of those within it, unless others have a part of it already.
    fn add(&self, table: Table, stretch: Stretch) {
        let Some(shared) = self.table(table) else { return };
        let mut shared = write(shared);
        let is_known = shared
            .shelf
            .before(&stretch.from)
            .is_some_and(|before| *before.from != *stretch.from && before.reaches(&stretch.from));
        if shared.state != stretch.state || is_known {
            return;
        }
        let after = shared.shelf.after(&stretch.from);
        let within: Vec<_> =
            after.take_while(|next| stretch.reaches(&next.from)).cloned().collect();
        if within.last().is_some_and(|last| !stretch.has_all_of(last)) {
            return;
        }
        for gone in within {
            self.take(&mut shared.shelf, &gone.from);
        }
        self.put(&mut shared.shelf, stretch);
        drop(shared);
        self.make_room();
    }

    fn put(&self, shelf: &mut Shelf, stretch: Stretch) {
        self.len.fetch_add(stretch.len(), Ordering::Relaxed);
        shelf.insert(stretch);
    }

    fn take(&self, shelf: &mut Shelf, from: &[u8]) {
        if let Some(gone) = shelf.remove(from) {
            self.len.fetch_sub(gone.len(), Ordering::Relaxed);
        }
    }

    /// Drops some that nobody has asked for since the hand came by, if there are too many.
    fn make_room(&self) {
        // Twice around, those that were asked for have become idle.
        for _ in 0..STEPS {
            for table in &self.tables {
                if self.has_room() {
                    return;
                }
                let mut shared = write(table);
                let from = std::mem::take(&mut shared.hand);
                let mut passed: Vec<_> =
                    shared.shelf.after(&from).take(STEPS + 1).cloned().collect();
                if passed.len() > STEPS
                    && let Some(next) = passed.pop()
                {
                    shared.hand = next.from.to_vec();
                }
                for stretch in passed {
                    if stretch.is_idle.swap(true, Ordering::Relaxed) {
                        self.take(&mut shared.shelf, &stretch.from);
                    }
                }
            }
        }
    }

    /// Makes all right for `state`: `layer` has what is different in it, which the file now has too. Nobody reads
    /// `state` yet.
    pub(super) fn advance(&self, state: u64, layer: &Layer) {
        for (table, shared) in TABLES.iter().zip(&self.tables) {
            write(shared).state = state;
            let mut merge = Merge { runs: self, shared, state, of: None, changes: Vec::new() };
            let done: Result<(), std::convert::Infallible> = layer.newest(*table, |key, value| {
                merge.change(key, value);
                Ok(())
            });
            let Ok(()) = done;
            merge.finish();
        }
    }
}

fn read(table: &RwLock<Shared>) -> RwLockReadGuard<'_, Shared> {
    held_read(table)
}

fn write(table: &RwLock<Shared>) -> RwLockWriteGuard<'_, Shared> {
    held_write(table)
}

/// Notes that somebody has asked for it.
fn note(stretch: &Stretch) {
    if stretch.is_idle.load(Ordering::Relaxed) {
        stretch.is_idle.store(false, Ordering::Relaxed);
    }
}

/// Records on their way from a walk along the file into stretches.
pub(super) struct Filling<'a> {
    runs: &'a Runs,
    state: u64,
    table: Table,
    /// From here on all is in `rows`.
    from: Vec<u8>,
    rows: Rows,
    has_made_any: bool,
}

impl<'a> Filling<'a> {
    fn new(runs: &'a Runs, state: u64, table: Table, from: &[u8]) -> Filling<'a> {
        let (from, rows) = (from.to_vec(), Rows::default());
        Filling { runs, state, table, from, rows, has_made_any: false }
    }

    /// Takes the next record.
    pub(super) fn push(&mut self, key: &[u8], value: &[u8]) {
        if !self.rows.fits(key, value) {
            self.put(key);
            self.from = key.to_vec();
        }
        match self.rows.fits(key, value) {
            true => self.rows.push(key, value),
            // It is too large for any, and stays a gap.
            false => self.from.push(0),
        }
    }

    /// All up to `end` was taken, where something known begins, or the table ends if it is empty.
    pub(super) fn finish(mut self, end: &[u8]) {
        self.put(end);
    }

    /// All up to `end` was taken, and what comes then is not known.
    pub(super) fn finish_before(mut self, end: &[u8]) {
        if self.rows.len() >= COUNT_MIN {
            self.put(end);
        }
    }

    /// Whether something is known that was not before.
    pub(super) fn has_made_any(&self) -> bool {
        self.has_made_any
    }

    fn put(&mut self, end: &[u8]) {
        self.has_made_any = true;
        // What is too large may be all that there is.
        if *self.from == *end && !end.is_empty() {
            return;
        }
        let run = self.rows.pack(0..self.rows.len());
        let (from, end) = (self.from.as_slice().into(), end.into());
        let stretch = Stretch { state: self.state, from, end, run, is_idle: AtomicBool::new(true) };
        self.runs.add(self.table, stretch);
        self.rows.clear();
    }
}

/// Changes on their way into the stretches of a table, in the order of their keys.
struct Merge<'a> {
    runs: &'a Runs,
    shared: &'a RwLock<Shared>,
    state: u64,
    /// The stretch to which `changes` belong.
    of: Option<Arc<Stretch>>,
    changes: Vec<Change>,
}

impl Merge<'_> {
    fn change(&mut self, key: &[u8], value: Option<&[u8]>) {
        if !self.of.as_ref().is_some_and(|stretch| stretch.reaches(key)) {
            self.finish();
            let shared = read(self.shared);
            self.of = shared.shelf.before(key).filter(|before| before.reaches(key)).cloned();
        }
        if self.of.is_some() {
            self.changes.push((key.into(), value.map(Box::from)));
        }
    }

    /// Brings the changes into their stretch, or drops it if nobody has asked for it and room is wanted.
    fn finish(&mut self) {
        let Some(stretch) = self.of.take() else { return };
        let changes = std::mem::take(&mut self.changes);
        if stretch.is_idle.load(Ordering::Relaxed) && !self.runs.has_room() {
            return self.runs.take(&mut write(self.shared).shelf, &stretch.from);
        }
        if stretch.run.count() >= COUNT_MIN
            && let Some(run) = stretch.run.with(&changes)
        {
            let part = self.part(&stretch, stretch.from.clone(), stretch.end.clone(), run);
            let mut shared = write(self.shared);
            self.runs.take(&mut shared.shelf, &stretch.from);
            self.runs.put(&mut shared.shelf, part);
            drop(shared);
            return self.runs.make_room();
        }
        let (mut from, mut rows) = (stretch.from.clone(), Rows::default());
        let small = self.small_before(&stretch);
        if let Some(before) = &small {
            before.run.each(|key, value| rows.push(key, value));
            from = before.from.clone();
        }
        merge(&stretch.run, changes, &mut rows);
        let mut shared = write(self.shared);
        for gone in [Some(&stretch), small.as_ref()].into_iter().flatten() {
            self.runs.take(&mut shared.shelf, &gone.from);
        }
        for range in rows.parts().into_iter().flatten() {
            let next = rows.key(range.end).map_or_else(|| stretch.end.clone(), Box::from);
            let from = std::mem::replace(&mut from, next.clone());
            let part = self.part(&stretch, from, next, rows.pack(range));
            self.runs.put(&mut shared.shelf, part);
        }
        drop(shared);
        self.runs.make_room();
    }

    fn part(&self, of: &Stretch, from: Box<[u8]>, end: Box<[u8]>, run: Run) -> Stretch {
        let is_idle = AtomicBool::new(of.is_idle.load(Ordering::Relaxed));
        Stretch { state: self.state, from, end, run, is_idle }
    }

    /// The stretch that ends where a small one begins, if both have room in one.
    fn small_before(&self, stretch: &Stretch) -> Option<Arc<Stretch>> {
        if stretch.run.count() >= COUNT_MIN {
            return None;
        }
        let shared = read(self.shared);
        let before = shared.shelf.last_before(&stretch.from)?;
        let is_next = !before.end.is_empty() && before.end == stretch.from;
        (is_next && before.run.count() <= COUNT_MAX / 2).then(|| Arc::clone(before))
    }
}

/// Adds the records of a run with changes of some, which are in order.
fn merge(run: &Run, changes: Vec<Change>, rows: &mut Rows) {
    let mut changes = changes.into_iter().peekable();
    let add = |rows: &mut Rows, (key, value): Change| {
        if let Some(value) = value {
            rows.push(&key, &value);
        }
    };
    run.each(|key, value| {
        while let Some(change) = changes.next_if(|(new, _)| **new < *key) {
            add(rows, change);
        }
        match changes.next_if(|(new, _)| **new == *key) {
            Some(change) => add(rows, change),
            None => rows.push(key, value),
        }
    });
    for change in changes {
        add(rows, change);
    }
}
