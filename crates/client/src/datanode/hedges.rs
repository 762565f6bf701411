//! How many reads may be made beside late ones, and how many were.
//!
//! Source: Hadoop 3.5.0 `DFSInputStream#hedgedFetchBlockByteRange`, `DFSHedgedReadMetrics`.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// The hedges of a file system.
#[derive(Default)]
pub(crate) struct Hedges {
    under_way: AtomicUsize,
    made: AtomicU64,
    won: AtomicU64,
}

/// Room for one hedge, until it is dropped.
pub(crate) struct Hedge<'a>(&'a Hedges);

impl Hedges {
    /// Begins a hedge, unless `most` are under way.
    pub(crate) fn begin(&self, most: usize) -> Option<Hedge<'_>> {
        let one_more = |count: usize| (count < most).then_some(count + 1);
        self.under_way.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).ok()?;
        self.made.fetch_add(1, Ordering::Relaxed);
        Some(Hedge(self))
    }

    /// Hedges made, and how many of them were quicker than what they were made for.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.made.load(Ordering::Relaxed), self.won.load(Ordering::Relaxed))
    }
}

impl Hedge<'_> {
    /// The hedge was quicker.
    pub(crate) fn won(&self) {
        self.0.won.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for Hedge<'_> {
    fn drop(&mut self) {
        self.0.under_way.fetch_sub(1, Ordering::Relaxed);
    }
}
