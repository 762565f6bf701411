//! Stretches of a table by where they begin.

use super::run::Run;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Stretches of a book, at most.
const BOOK_MAX: usize = 256;

/// What a table has from one key to another.
pub(in crate::store) struct Stretch {
    /// The first state that has it so.
    pub(super) state: u64,
    pub(super) from: Box<[u8]>,
    /// The first key that it says nothing about; empty for none.
    pub(in crate::store) end: Box<[u8]>,
    pub(in crate::store) run: Run,
    /// Nobody has asked for it since it came, or since it was last passed when room was made.
    pub(super) is_idle: AtomicBool,
}

impl Stretch {
    /// Bytes in memory: beside the keys' and the run's, its place on the shelf and what the allocator adds.
    pub(super) fn len(&self) -> usize {
        const OVERHEAD: usize = 208;
        OVERHEAD + self.from.len() + self.end.len() + self.run.len()
    }

    /// Whether `key`, which is not before it, is in it.
    pub(super) fn reaches(&self, key: &[u8]) -> bool {
        self.end.is_empty() || key < &*self.end
    }

    /// Whether it ends with another one that begins in it, or after that.
    pub(super) fn has_all_of(&self, other: &Stretch) -> bool {
        self.end.is_empty() || (!other.end.is_empty() && other.end <= self.end)
    }
}

/// Some that follow each other.
#[derive(Default)]
struct Book {
    /// What each begins with, side by side: a search looks at few lines of memory.
    heads: Vec<Head>,
    stretches: Vec<Arc<Stretch>>,
}

impl Book {
    /// How many begin at `key` or before.
    fn up_to(&self, key: &[u8]) -> usize {
        up_to(&self.heads, key, |at| &self.stretches[at].from)
    }
}

/// Those of one table, none of which lies in another.
#[derive(Default)]
pub(super) struct Shelf {
    heads: Vec<Head>,
    books: Vec<Book>,
}

/// How the first bytes of keys compare: a directory's id and the beginning of a name, or an id and zeros.
type Head = [u64; 3];

fn head(key: &[u8]) -> Head {
    let mut chunks = key.chunks(8).map(|chunk| {
        let mut bytes = [0; 8];
        bytes[..chunk.len()].copy_from_slice(chunk);
        u64::from_be_bytes(bytes)
    });
    [(); 3].map(|()| chunks.next().unwrap_or_default())
}

/// How many of the keys that `key_at` has, whose heads these are, are not above `key`.
fn up_to<'a>(heads: &[Head], key: &[u8], key_at: impl Fn(usize) -> &'a [u8]) -> usize {
    let head = head(key);
    let below = near(heads, head);
    let same = heads[below..].iter().take_while(|other| **other == head).count();
    let (mut low, mut high) = (below, below + same);
    while low < high {
        let middle = low.midpoint(high);
        match key_at(middle) <= key {
            true => low = middle + 1,
            false => high = middle,
        }
    }
    low
}

/// How many heads are below that one. Ids are spread evenly, more or less, so that it is looked for first where it
/// would be if they were: each place that a search looks at is likely to be far from the processor.
fn near(heads: &[Head], head: Head) -> usize {
    let (Some([first, ..]), Some([last, ..])) = (heads.first(), heads.last()) else { return 0 };
    let (span, above) = (last.saturating_sub(*first), head[0].saturating_sub(*first));
    let place = u128::from(above) * heads.len() as u128 / (u128::from(span) + 1);
    let place = usize::try_from(place).map_or(heads.len(), |place| place.min(heads.len()));
    // Around it, twice as far each time.
    let (mut low, mut high, mut step) = (place, place, 1);
    while low > 0 && heads[low - 1] >= head {
        high = low - 1;
        low = low.saturating_sub(step);
        step *= 2;
    }
    step = 1;
    while high < heads.len() && heads[high] < head {
        low = high + 1;
        high = (high + step).min(heads.len());
        step *= 2;
    }
    low + heads[low..high].partition_point(|other| *other < head)
}

impl Shelf {
    /// The book in which one that begins at `key` is, or would be.
    fn book(&self, key: &[u8]) -> usize {
        let up_to = up_to(&self.heads, key, |at| &self.books[at].stretches[0].from);
        up_to.saturating_sub(1)
    }

    /// The last that begins at `key` or before.
    pub(super) fn before(&self, key: &[u8]) -> Option<&Arc<Stretch>> {
        let book = self.books.get(self.book(key))?;
        // None is before the first of all, and those of earlier books are before the first of this one.
        Some(&book.stretches[book.up_to(key).checked_sub(1)?])
    }

    /// Those that begin at `key` or after it, in order.
    pub(super) fn after<'a>(&'a self, key: &[u8]) -> impl Iterator<Item = &'a Arc<Stretch>> + 'a {
        let at = self.book(key);
        let start = self.books.get(at).map_or(0, |book| {
            let up_to = book.up_to(key);
            let is_there =
                up_to.checked_sub(1).is_some_and(|last| *book.stretches[last].from == *key);
            up_to - usize::from(is_there)
        });
        self.books.iter().skip(at).flat_map(|book| &book.stretches).skip(start)
    }

    /// The last that begins before `key`.
    pub(super) fn last_before(&self, key: &[u8]) -> Option<&Arc<Stretch>> {
        let at = self.book(key);
        let book = self.books.get(at)?;
        let below = book.stretches.partition_point(|stretch| *stretch.from < *key);
        match below.checked_sub(1) {
            Some(last) => book.stretches.get(last),
            None => self.books.get(at.checked_sub(1)?)?.stretches.last(),
        }
    }

    /// Adds one, of which no other has any part.
    pub(super) fn insert(&mut self, stretch: Stretch) {
        let (at, head) = (self.book(&stretch.from), head(&stretch.from));
        if self.books.is_empty() {
            self.heads.push(head);
            self.books.push(Book::default());
        }
        let book = &mut self.books[at];
        let place = book.up_to(&stretch.from);
        let stretch = Arc::new(stretch);
        // One after the other come those of a walk along the table: full books stay full.
        if place == BOOK_MAX {
            self.heads.insert(at + 1, head);
            self.books.insert(at + 1, Book { heads: vec![head], stretches: vec![stretch] });
            return;
        }
        book.heads.insert(place, head);
        book.stretches.insert(place, stretch);
        if book.heads.len() > BOOK_MAX {
            let heads = book.heads.split_off(BOOK_MAX / 2);
            let stretches = book.stretches.split_off(BOOK_MAX / 2);
            self.heads.insert(at + 1, heads[0]);
            self.books.insert(at + 1, Book { heads, stretches });
        }
        self.heads[at] = self.books[at].heads[0];
    }

    /// Takes the one that begins at `from`, if there is one.
    pub(super) fn remove(&mut self, from: &[u8]) -> Option<Arc<Stretch>> {
        let at = self.book(from);
        let book = self.books.get_mut(at)?;
        let place = book.up_to(from).checked_sub(1)?;
        if *book.stretches[place].from != *from {
            return None;
        }
        book.heads.remove(place);
        let gone = book.stretches.remove(place);
        match book.heads.first() {
            Some(head) => self.heads[at] = *head,
            None => {
                self.heads.remove(at);
                self.books.remove(at);
            }
        }
        Some(gone)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn stretch(from: &[u8]) -> Stretch {
        let (from, end) = (from.into(), Box::default());
        Stretch { state: 0, from, end, run: Run::default(), is_idle: AtomicBool::new(true) }
    }

    /// Keys as names of few directories, so that many have one head, and as ids.
    #[test]
    fn is_a_sorted_set() {
        let mut random = 0x2545_f491_4f6c_dd1d_u64;
        let mut dice = |sides: u64| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random % sides
        };
        let (mut shelf, mut model) = (Shelf::default(), BTreeSet::<Vec<u8>>::new());
        for round in 0..40_000_u64 {
            let key = match dice(3) {
                0 => [&dice(3).to_be_bytes()[..], format!("{}", dice(3000)).as_bytes()].concat(),
                1 => dice(5000).to_be_bytes().to_vec(),
                _ => (10_000 + round).to_be_bytes()[..dice(9) as usize].to_vec(),
            };
            let from = |found: Option<&Arc<Stretch>>| found.map(|found| found.from.to_vec());
            assert_eq!(from(shelf.before(&key)), model.range(..=key.clone()).next_back().cloned());
            assert_eq!(
                from(shelf.last_before(&key)),
                model.range(..key.clone()).next_back().cloned()
            );
            let after = shelf.after(&key).take(3).map(|found| found.from.to_vec());
            assert!(after.eq(model.range(key.clone()..).take(3).cloned()));
            // First it grows, then it shrinks.
            let is_growing = round < 20_000;
            if dice(4) == 0 || !is_growing {
                let key = model.range(key.clone()..).next().cloned().unwrap_or(key);
                assert_eq!(shelf.remove(&key).is_some(), model.remove(&key));
            } else if model.insert(key.clone()) {
                shelf.insert(stretch(&key));
            }
        }
        assert!(shelf.after(&[]).map(|found| found.from.to_vec()).eq(model));
    }

    #[test]
    fn books_that_are_filled_in_order_are_full() {
        let mut shelf = Shelf::default();
        (0..10_000_u64).for_each(|id| shelf.insert(stretch(&id.to_be_bytes())));
        assert_eq!(shelf.books.len(), 10_000_usize.div_ceil(BOOK_MAX));
    }
}
