//! How a disk gets on: what of its work is under way, and for how long none of it has ended.

use cairn_process::disk_work;
use cairn_process::held::held;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// How a disk gets on.
#[derive(Debug)]
pub(super) struct Health {
    /// Work that is soon done as a rule.
    pub(super) quick: Work,
    /// Questions for its room. Apart from the rest: file systems answer many of them from memory, whatever became of the
    /// disk.
    space: Work,
    /// Syncs, which wait for the disk itself: for long on one with much to do.
    pub(super) syncs: Work,
    /// Reads of what is not in the page cache, and other work that has a thread of its own.
    pub(super) waits: Work,
    checks: Mutex<Checks>,
}

impl Default for Health {
    fn default() -> Health {
        let checks = Mutex::new(Checks { began: None, last: Instant::now() });
        Health {
            quick: Work::default(),
            space: Work::default(),
            syncs: Work::default(),
            waits: Work::default(),
            checks,
        }
    }
}

/// One kind of work.
#[derive(Debug, Default)]
pub(super) struct Work {
    begun: AtomicU64,
    ended: AtomicU64,
    /// How much had ended when that was last seen to grow, or there was nothing to do.
    seen: Mutex<Option<(u64, Instant)>>,
}

/// Checks, of which at most one runs at a time.
#[derive(Debug)]
pub(super) struct Checks {
    /// When the one began that runs.
    pub(super) began: Option<Instant>,
    /// When the last one ended, or the volume was opened.
    pub(super) last: Instant,
}

impl Work {
    /// Runs what is soon done as a rule, see [`disk_work::quick`].
    pub(super) fn run<T>(&self, work: impl FnOnce() -> T) -> T {
        self.track(|| disk_work::quick(work))
    }

    /// The same for what may take its time.
    pub(super) fn track<T>(&self, work: impl FnOnce() -> T) -> T {
        struct Ended<'a>(&'a Work);
        impl Drop for Ended<'_> {
            fn drop(&mut self) {
                self.0.end();
            }
        }
        self.begin();
        let _ended = Ended(self);
        work()
    }

    /// Some begins.
    pub(super) fn begin(&self) {
        self.begun.fetch_add(1, Ordering::Relaxed);
    }

    /// Some has ended.
    pub(super) fn end(&self) {
        self.ended.fetch_add(1, Ordering::Release);
    }

    /// How much is under way.
    fn running(&self) -> u64 {
        // In this order: what ends in between counts, and none is negative.
        let ended = self.ended.load(Ordering::Acquire);
        self.begun.load(Ordering::Acquire).saturating_sub(ended)
    }

    /// For how long some has been under way without any having ended, as far as that has been looked at.
    pub(super) fn stands_still_for(&self) -> Duration {
        let ended = self.ended.load(Ordering::Acquire);
        let is_idle = self.begun.load(Ordering::Acquire) == ended;
        let mut seen = held(&self.seen);
        match *seen {
            Some((then, since)) if then == ended && !is_idle => since.elapsed(),
            _ => {
                *seen = Some((ended, Instant::now()));
                Duration::ZERO
            }
        }
    }
}

impl Health {
    /// Asks for the disk's room.
    pub(super) fn ask<T>(&self, question: impl FnOnce() -> T) -> T {
        self.space.run(question)
    }

    fn all(&self) -> [&Work; 4] {
        [&self.quick, &self.space, &self.syncs, &self.waits]
    }

    /// Threads that work on the disk or wait for it; one may count twice.
    pub(super) fn running(&self) -> u64 {
        self.all().map(Work::running).iter().sum()
    }

    /// How much has ended.
    pub(super) fn ended(&self) -> u64 {
        self.all().map(|work| work.ended.load(Ordering::Acquire)).iter().sum()
    }

    /// For how long nothing has got on of what should be soon done.
    pub(super) fn silent_for(&self) -> Duration {
        self.quick.stands_still_for().max(self.space.stands_still_for())
    }

    /// Checks of the disk.
    pub(super) fn checks(&self) -> MutexGuard<'_, Checks> {
        held(&self.checks)
    }
}
