//! Ranges in which the writer has found nothing but deleted records.
//!
//! What was deleted since the last checkpoint is still there as such. A queue, from whose front records go all the
//! time, would be walked through from its former front again and again.

use std::collections::BTreeMap;
use std::ops::Bound;

/// Deleted records in a row that are worth remembering.
pub(super) const WORTH: usize = 32;
/// Ranges of a table that are remembered.
const GAPS_MAX: usize = 4096;

/// Ranges of one table without a record, by where they begin; none lies in another.
#[derive(Debug, Default)]
pub(super) struct Gaps(BTreeMap<Vec<u8>, Vec<u8>>);

impl Gaps {
    /// The first key from `from` on at which a record can be.
    pub(super) fn skip<'a>(&'a self, from: &'a [u8]) -> &'a [u8] {
        self.before(from).map_or(from, |(_, end)| end.as_slice().max(from))
    }

    fn before(&self, key: &[u8]) -> Option<(&Vec<u8>, &Vec<u8>)> {
        self.0.range::<[u8], _>((Bound::Unbounded, Bound::Included(key))).next_back()
    }

    /// There is no record from `from` to before `end`.
    pub(super) fn note(&mut self, from: &[u8], end: Vec<u8>) {
        if self.0.len() >= GAPS_MAX {
            self.0.clear();
        }
        let inner: Vec<Vec<u8>> = self
            .0
            .range::<[u8], _>((Bound::Included(from), Bound::Excluded(end.as_slice())))
            .map(|(from, _)| from.clone())
            .collect();
        for from in inner {
            self.0.remove(&from);
        }
        match self.before(from).filter(|(_, known)| known.as_slice() >= from) {
            Some((start, _)) => {
                let start = start.clone();
                self.0.insert(start, end);
            }
            None => {
                self.0.insert(from.to_vec(), end);
            }
        }
    }

    /// A record comes to be at `key`.
    pub(super) fn fill(&mut self, key: &[u8]) {
        let mut before = self.0.range_mut::<[u8], _>((Bound::Unbounded, Bound::Included(key)));
        if let Some((_, end)) = before.next_back().filter(|(_, end)| end.as_slice() > key) {
            *end = key.to_vec();
        }
    }
}
