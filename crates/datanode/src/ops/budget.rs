//! A bound on the bytes per second of many streams together, which may be changed at any time.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The longest that one request waits at once: a higher bound is felt no later than that.
const LONGEST_WAIT: Duration = Duration::from_millis(500);

/// Bytes that pass at a bounded rate, in the order in which they were asked for.
pub(crate) struct Budget {
    /// 0 for any.
    bytes_per_second: AtomicU64,
    /// When the bytes let through so far have used their time up.
    spent: Mutex<Instant>,
}

impl Budget {
    pub(crate) fn new(bytes_per_second: u64) -> Budget {
        Budget {
            bytes_per_second: AtomicU64::new(bytes_per_second),
            spent: Mutex::new(Instant::now()),
        }
    }

    /// Sets another bound, 0 for none, also for those that wait.
    pub(crate) fn set(&self, bytes_per_second: u64) {
        self.bytes_per_second.store(bytes_per_second, Ordering::Relaxed);
    }

    /// Bytes per second, 0 for any.
    pub(crate) fn get(&self) -> u64 {
        self.bytes_per_second.load(Ordering::Relaxed)
    }

    /// How long those who ask now will wait.
    pub(crate) fn backlog(&self) -> Duration {
        let spent = *self.spent.lock().unwrap_or_else(PoisonError::into_inner);
        match self.get() {
            0 => Duration::ZERO,
            _ => spent.saturating_duration_since(Instant::now()),
        }
    }

    /// Waits until `bytes` more may pass.
    pub(crate) async fn pass(&self, bytes: u64) {
        let mut left = bytes;
        while left > 0 {
            let rate = self.get();
            if rate == 0 {
                return;
            }
            // What takes long is asked for in parts, so that a change of the bound is seen.
            let part = left.min((rate / 2).max(1));
            let cost = Duration::from_secs_f64(part as f64 / rate as f64);
            let start = {
                let mut spent = self.spent.lock().unwrap_or_else(PoisonError::into_inner);
                let now = Instant::now();
                let start = (*spent).max(now);
                *spent = start + cost;
                start
            };
            self.wait_until(start, rate).await;
            left -= part;
        }
    }

    /// Waits for a turn, or until the bound is another one.
    async fn wait_until(&self, start: Instant, rate: u64) {
        loop {
            let wait = start.saturating_duration_since(Instant::now());
            if wait.is_zero() {
                return;
            }
            tokio::time::sleep(wait.min(LONGEST_WAIT)).await;
            if self.get() != rate {
                *self.spent.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn all_share_one_rate() {
        let (budget, start) = (Budget::new(1 << 20), Instant::now());
        let step = 1 << 17;
        tokio::join!(budget.pass(step), budget.pass(step), budget.pass(step));
        let took = start.elapsed();
        assert!(took >= Duration::from_millis(250), "two eighths of a second first: {took:?}");
        Budget::new(0).pass(u64::MAX).await;
    }

    #[tokio::test]
    async fn a_higher_bound_helps_those_who_wait() {
        let (budget, start) = (Budget::new(1000), Instant::now());
        let raise = async {
            tokio::time::sleep(Duration::from_millis(50)).await;
            budget.set(0);
        };
        tokio::join!(budget.pass(1 << 20), budget.pass(1 << 20), raise);
        assert!(start.elapsed() < Duration::from_secs(10), "a thousand seconds' worth");
    }
}
