//! Which directory each inode is in, in eight bytes for each.
//!
//! Inodes are told apart by number; those whose numbers have the same high bits stand together, in order. Filled in two
//! passes over the same pairs: the first counts, the second puts each in its place.

/// Inodes of which the high bits of their numbers are alike, on average.
const TOGETHER: u64 = 8;
/// Bits of a number that an entry has.
const LOW_BITS: u32 = 32;

/// The first pass.
#[derive(Debug)]
pub(crate) struct Counting {
    shift: u32,
    counts: Vec<u32>,
}

/// The second pass.
#[derive(Debug)]
pub(crate) struct Filling {
    shift: u32,
    /// Where the next one of each part goes.
    next: Vec<u32>,
    entries: Vec<u64>,
}

/// All of them.
#[derive(Debug)]
pub(crate) struct Parents {
    shift: u32,
    /// Where each part ends.
    ends: Vec<u32>,
    entries: Vec<u64>,
}

impl Counting {
    /// For about `count` inodes with numbers up to `last`; none if the numbers are too far apart for their count, or the
    /// inodes are too many.
    pub fn new(count: u64, last: u64) -> Option<Counting> {
        let parts_max = (count / TOGETHER).max(1).min(u64::from(u32::MAX / 2));
        let shift = (0..=LOW_BITS).find(|shift| last >> shift < parts_max)?;
        let parts = usize::try_from((last >> shift) + 1).ok()?;
        Some(Counting { shift, counts: vec![0; parts] })
    }

    /// Counts an inode; false if its number is larger than the largest, or there are too many.
    pub fn add(&mut self, id: u64) -> bool {
        let part = usize::try_from(id >> self.shift).ok();
        let count = part.and_then(|part| self.counts.get_mut(part));
        match count.and_then(|count| Some((count.checked_add(1)?, count))) {
            Some((more, count)) => {
                *count = more;
                true
            }
            None => false,
        }
    }

    /// Goes on to the second pass; none if there are too many.
    pub fn fill(self) -> Option<Filling> {
        let Counting { shift, counts: mut next } = self;
        let mut sum = 0u32;
        for count in &mut next {
            let begin = sum;
            sum = sum.checked_add(*count)?;
            *count = begin;
        }
        Some(Filling { shift, next, entries: vec![0; sum as usize] })
    }
}

impl Filling {
    /// Adds an inode that was counted; false if it was not.
    pub fn add(&mut self, id: u64, parent: u32) -> bool {
        let part = usize::try_from(id >> self.shift).ok();
        let Some(next) = part.and_then(|part| self.next.get_mut(part)) else { return false };
        let Some(entry) = self.entries.get_mut(*next as usize) else { return false };
        *entry = (id & u64::from(u32::MAX)) << 32 | u64::from(parent);
        *next += 1;
        true
    }

    /// Ends the second pass.
    pub fn end(self) -> Parents {
        let Filling { shift, next: ends, mut entries } = self;
        let mut begin = 0;
        for end in &ends {
            let end = *end as usize;
            if let Some(part) = entries.get_mut(begin..end) {
                part.sort_unstable();
            }
            begin = end;
        }
        Parents { shift, ends, entries }
    }
}

impl Parents {
    /// The directory that an inode is in.
    pub fn get(&self, id: u64) -> Option<u32> {
        let part = usize::try_from(id >> self.shift).ok()?;
        let end = *self.ends.get(part)? as usize;
        let begin = part.checked_sub(1).map_or(0, |before| self.ends[before] as usize);
        let low = id & u64::from(u32::MAX);
        let part = self.entries.get(begin..end)?;
        let at = part.partition_point(|entry| entry >> 32 < low);
        let entry = part.get(at).filter(|entry| *entry >> 32 == low)?;
        Some(*entry as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn of(pairs: &BTreeMap<u64, u32>, last: u64) -> Parents {
        let mut counting = Counting::new(pairs.len() as u64, last).unwrap();
        assert!(pairs.keys().all(|id| counting.add(*id)));
        let mut filling = counting.fill().unwrap();
        assert!(pairs.iter().all(|(id, parent)| filling.add(*id, *parent)));
        filling.end()
    }

    proptest! {
        #[test]
        fn each_is_found_and_no_other(
            pairs in prop::collection::btree_map(0..1_000_000_000u64, any::<u32>(), 0..200),
            others in prop::collection::vec(0..1_000_000_000u64, 50),
        ) {
            let parents = of(&pairs, 1_000_000_000);
            for id in pairs.keys().chain(&others) {
                prop_assert_eq!(parents.get(*id), pairs.get(id).copied());
            }
        }
    }

    #[test]
    fn impossible_numbers_are_refused() {
        assert!(Counting::new(10, u64::MAX).is_none());
        let mut counting = Counting::new(10, 100).unwrap();
        assert!(counting.add(100) && !counting.add(1 << 40));
        assert_eq!(counting.fill().unwrap().end().get(1 << 40), None);
    }
}
