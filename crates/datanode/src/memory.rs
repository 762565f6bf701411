//! The memory that replicas may take: `dfs.datanode.max.locked.memory`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A number of bytes, of which parts are given out and come back. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct LockedMemory {
    limit: u64,
    page: u64,
    used: Arc<AtomicU64>,
}

/// A part of it, given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Reservation {
    used: Arc<AtomicU64>,
    page: u64,
    len: u64,
}

impl LockedMemory {
    /// At most `limit` bytes, given out in pages of `page` bytes.
    pub(crate) fn new(limit: u64, page: u64) -> LockedMemory {
        LockedMemory { limit, page: page.max(1), used: Arc::default() }
    }

    /// Most bytes that are given out.
    pub(crate) fn limit(&self) -> u64 {
        self.limit
    }

    /// Bytes that are given out.
    pub(crate) fn used(&self) -> u64 {
        self.used.load(Ordering::Acquire)
    }

    /// Bytes that are free.
    pub(crate) fn free(&self) -> u64 {
        self.limit.saturating_sub(self.used())
    }

    /// Whether a block of `len` bytes may be written to memory at all: whole pages, as many as there are.
    ///
    /// Source: Hadoop 3.5.0 `FsDatasetImpl#createRbw`.
    pub(crate) fn takes(&self, len: u64) -> bool {
        len > 0 && len.is_multiple_of(self.page) && len <= self.limit
    }

    /// Whole pages for `len` bytes, if so many are free.
    pub(crate) fn reserve(&self, len: u64) -> Option<Reservation> {
        let len = len.checked_next_multiple_of(self.page).filter(|len| *len > 0)?;
        let fits = |used: u64| used.checked_add(len).filter(|sum| *sum <= self.limit);
        let taken = self.used.fetch_update(Ordering::AcqRel, Ordering::Acquire, fits);
        taken.ok().map(|_| Reservation { used: self.used.clone(), page: self.page, len })
    }

    /// Whole pages for `len` bytes that are in memory already, whether or not there should be room for them.
    pub(crate) fn found(&self, len: u64) -> Reservation {
        let mut found = Reservation { used: self.used.clone(), page: self.page, len: 0 };
        found.resize(len);
        found
    }
}

impl Reservation {
    /// Its bytes.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Makes it whole pages for `len` bytes, also more than there were.
    pub(crate) fn resize(&mut self, len: u64) {
        let len = len.checked_next_multiple_of(self.page).unwrap_or(self.len);
        self.used.fetch_add(len, Ordering::AcqRel);
        self.used.fetch_sub(self.len, Ordering::AcqRel);
        self.len = len;
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.used.fetch_sub(self.len, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::LockedMemory;

    #[test]
    fn no_more_is_given_out_than_there_is() {
        let memory = LockedMemory::new(3 * 4096, 4096);
        let first = memory.reserve(1).unwrap();
        let _second = memory.reserve(4097).unwrap();
        assert_eq!(memory.used(), 3 * 4096);
        assert!(memory.reserve(1).is_none());
        drop(first);
        assert_eq!(memory.used(), 2 * 4096);
        assert!(memory.reserve(4096).is_some() && memory.reserve(0).is_none());
        assert!(memory.reserve(u64::MAX).is_none());
        assert!(LockedMemory::new(0, 4096).reserve(1).is_none());
    }

    #[test]
    fn what_is_there_counts_and_what_is_not_needed_goes_back() {
        let memory = LockedMemory::new(2 * 4096, 4096);
        assert!(!memory.takes(0) && !memory.takes(4097) && memory.takes(8192));
        assert!(!memory.takes(3 * 4096));
        let mut found = memory.clone().found(3 * 4096 - 1);
        assert_eq!((memory.used(), memory.free(), found.len()), (3 * 4096, 0, 3 * 4096));
        found.resize(1);
        assert_eq!((memory.used(), memory.free()), (4096, 4096));
    }
}
