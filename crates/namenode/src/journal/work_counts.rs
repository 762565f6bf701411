//! What log and store have done since the start, for monitors.

use cairn_net::durations::DurationCounter;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct WorkCounts {
    /// How long groups of entries took to be appended, and to be synced where that is asked for.
    pub log: DurationCounter,
    /// How long it took to write to the store's file.
    pub checkpoints: DurationCounter,
    entries: AtomicU64,
    bytes: AtomicU64,
}

impl WorkCounts {
    /// So many entries were appended, with so many bytes together.
    pub fn appended(&self, entries: u64, bytes: u64, took: Duration) {
        self.entries.fetch_add(entries, Relaxed);
        self.bytes.fetch_add(bytes, Relaxed);
        self.log.add(took);
    }

    /// Entries that were appended to the log.
    pub fn entries(&self) -> u64 {
        self.entries.load(Relaxed)
    }

    /// Their bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Relaxed)
    }
}
