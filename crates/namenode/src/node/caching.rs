//! When to walk over what cache directives name, and what the last walk has found.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use cairn_process::held::held;
use tokio::sync::{Notify, watch};

/// What directives or a pool ask for, and how much of it is in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheFigures {
    /// Bytes with all copies.
    pub bytes_needed: u64,
    /// Bytes with all copies that are there.
    pub bytes_cached: u64,
    /// Files.
    pub files_needed: u64,
    /// Files with all copies there.
    pub files_cached: u64,
}

impl CacheFigures {
    /// Adds what something else asks for.
    pub(crate) fn add(&mut self, other: &CacheFigures) {
        self.bytes_needed = self.bytes_needed.saturating_add(other.bytes_needed);
        self.bytes_cached = self.bytes_cached.saturating_add(other.bytes_cached);
        self.files_needed += other.files_needed;
        self.files_cached += other.files_cached;
    }
}

/// What a walk has found.
#[derive(Debug, Default)]
pub struct Scanned {
    /// By the directive's number.
    pub directives: BTreeMap<u64, CacheFigures>,
    /// By the pool's name.
    pub pools: BTreeMap<String, CacheFigures>,
}

/// When to walk, and what the last walk has found.
#[derive(Debug)]
pub struct Caching {
    /// Changes so far.
    wanted: AtomicU64,
    /// Changes that the last walk has seen.
    seen: watch::Sender<u64>,
    wake: Notify,
    last: Mutex<Arc<Scanned>>,
}

impl Default for Caching {
    fn default() -> Caching {
        Caching {
            wanted: AtomicU64::new(0),
            seen: watch::Sender::new(0),
            wake: Notify::new(),
            last: Mutex::default(),
        }
    }
}

impl Caching {
    /// A directive or a pool has changed.
    pub fn note_change(&self) {
        self.wanted.fetch_add(1, Ordering::SeqCst);
        self.wake.notify_one();
    }

    /// Changes so far, of which a walk that begins now sees all.
    pub(crate) fn changes(&self) -> u64 {
        self.wanted.load(Ordering::SeqCst)
    }

    /// Waits for the next change.
    pub(crate) async fn changed(&self) {
        self.wake.notified().await;
    }

    /// A walk has seen so many changes, and found this, if anything.
    pub(crate) fn note_walk(&self, changes: u64, found: Option<Scanned>) {
        if let Some(found) = found {
            *held(&self.last) = Arc::new(found);
        }
        self.seen.send_replace(changes);
    }

    /// What a walk has found that has seen every change so far.
    ///
    /// Source: Hadoop 3.5.0 `CacheReplicationMonitor#waitForRescanIfNeeded`.
    pub async fn figures(&self) -> Arc<Scanned> {
        let wanted = self.wanted.load(Ordering::SeqCst);
        let mut seen = self.seen.subscribe();
        // It ends only with the NameNode, which holds the sender.
        let _ = seen.wait_for(|seen| *seen >= wanted).await;
        Arc::clone(&held(&self.last))
    }
}
