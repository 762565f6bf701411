//! A bound on the memory that requests of all connections take together.
//!
//! A request counts from when it is read until its call has ended. Long ones are counted before most of them is read:
//! their connection waits, and reads nothing, until there is room for the whole, so that no two wait for what the
//! other holds. Short ones have a part of the memory that long ones never take, and wait behind other short ones
//! only. A call that is answered in the task that reads its connection holds nobody up, and is not counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use tokio::sync::Notify;

/// Bytes of a request that each connection may hold without asking.
pub(super) const SHORT: usize = 16 << 10;

/// What a call that runs takes besides its request.
const CALL: usize = 1 << 10;

/// What all connections of a server share.
pub(super) struct RequestMemory {
    short: Arc<Pool>,
    long: Arc<Pool>,
}

impl RequestMemory {
    /// Of `limit` bytes a quarter is for short requests alone.
    pub(super) fn new(limit: u64) -> RequestMemory {
        let short = (limit / 4).max(SHORT as u64);
        let long = limit.saturating_sub(short);
        RequestMemory { short: Pool::new(short), long: Pool::new(long) }
    }

    /// Whether short requests are to wait.
    pub(super) fn is_full(&self) -> bool {
        self.short.used.load(Ordering::Relaxed) >= self.short.limit
    }

    /// Waits until a short request may be read. One that has been read meanwhile is counted all the same.
    pub(super) async fn has_room(&self) {
        self.short.wait(|| !self.is_full()).await;
    }

    /// Counts a short request that has been read, and its call.
    pub(super) fn count(&self, bytes: usize) -> Share {
        let bytes = (bytes + CALL) as u64;
        self.short.used.fetch_add(bytes, Ordering::SeqCst);
        Share { pool: Arc::clone(&self.short), bytes }
    }

    /// Waits until a long request may be read; one is in any case, however long.
    pub(super) async fn take(&self, bytes: usize) -> Share {
        let bytes = bytes as u64;
        self.long.wait(|| self.long.try_take(bytes)).await;
        Share { pool: Arc::clone(&self.long), bytes }
    }

    /// Whether long requests wait.
    pub(super) fn is_wanted(&self) -> bool {
        self.long.waiting.load(Ordering::Relaxed) > 0
    }
}

struct Pool {
    limit: u64,
    used: AtomicU64,
    waiting: AtomicUsize,
    freed: Notify,
}

impl Pool {
    fn new(limit: u64) -> Arc<Pool> {
        let (used, waiting) = (AtomicU64::new(0), AtomicUsize::new(0));
        Arc::new(Pool { limit, used, waiting, freed: Notify::new() })
    }

    fn try_take(&self, bytes: u64) -> bool {
        let taken = |used: u64| {
            let sum = used.saturating_add(bytes);
            (used == 0 || sum <= self.limit).then_some(sum)
        };
        self.used.fetch_update(Ordering::SeqCst, Ordering::SeqCst, taken).is_ok()
    }

    /// Waits until an attempt succeeds, which is made anew whenever something is given back.
    async fn wait(&self, attempt: impl Fn() -> bool) {
        if attempt() {
            return;
        }
        let _waiting = Waiting::of(&self.waiting);
        loop {
            let freed = self.freed.notified();
            tokio::pin!(freed);
            // Counts from here, so that what is given back between the look and the wait is not missed.
            freed.as_mut().enable();
            if attempt() {
                return;
            }
            freed.await;
        }
    }
}

/// One that waits, until it gives up.
struct Waiting<'a>(&'a AtomicUsize);

impl Waiting<'_> {
    fn of(count: &AtomicUsize) -> Waiting<'_> {
        count.fetch_add(1, Ordering::SeqCst);
        Waiting(count)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Bytes of one request, given back when it is dropped.
pub(super) struct Share {
    pool: Arc<Pool>,
    bytes: u64,
}

impl Drop for Share {
    fn drop(&mut self) {
        self.pool.used.fetch_sub(self.bytes, Ordering::SeqCst);
        // Who begins to wait after this look has seen what was given back.
        if self.pool.waiting.load(Ordering::SeqCst) > 0 {
            self.pool.freed.notify_waiters();
        }
    }
}
