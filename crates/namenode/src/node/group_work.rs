//! What the NameNode has done about contiguous groups since it began, and what they came to when they were counted last.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use cairn_master::contiguous::counts::Counts;
use cairn_redundancy::Now;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct GroupWork {
    /// Groups that were formed.
    pub formed: AtomicU64,
    /// Attempts that came to nothing.
    pub abandoned: AtomicU64,
    /// Groups that were begun to be made anew, or dissolved, for what is dead in them.
    pub renewed: AtomicU64,
    /// Containers that were begun to be emptied, for what is dead in them.
    pub emptied: AtomicU64,
    /// Packed blocks that became plain again.
    pub unpacked: AtomicU64,
    counted: Mutex<Option<(Counts, u64)>>,
}

impl GroupWork {
    /// Notes what groups come to now.
    pub fn counted(&self, counts: Counts, now: Now) {
        let mut counted = self.counted.lock().expect("nothing panics while it is held");
        *counted = Some((counts, now.mono_ms));
    }

    /// What they came to, and how long ago, ms; none if they were not counted yet.
    pub fn counts(&self, now: Now) -> Option<(Counts, u64)> {
        let counted = *self.counted.lock().expect("nothing panics while it is held");
        counted.map(|(counts, at_ms)| (counts, now.mono_ms.saturating_sub(at_ms)))
    }
}

/// Counts one more.
pub(crate) fn one_more(count: &AtomicU64) {
    count.fetch_add(1, Ordering::Relaxed);
}
