//! A bound on the bytes per second of all reconstructions together.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Bytes that pass at a bounded rate, in the order in which they were asked for.
pub(super) struct Budget {
    /// 0 for any.
    bytes_per_second: u64,
    /// When the bytes let through so far have used their time up.
    spent: Mutex<Instant>,
}

impl Budget {
    pub(super) fn new(bytes_per_second: u64) -> Budget {
        Budget { bytes_per_second, spent: Mutex::new(Instant::now()) }
    }

    /// Waits until `bytes` more may pass.
    pub(super) async fn pass(&self, bytes: u64) {
        if self.bytes_per_second == 0 {
            return;
        }
        let cost = Duration::from_secs_f64(bytes as f64 / self.bytes_per_second as f64);
        let start = {
            let mut spent = self.spent.lock().unwrap_or_else(PoisonError::into_inner);
            let start = (*spent).max(Instant::now());
            *spent = start + cost;
            start
        };
        tokio::time::sleep_until(start.into()).await;
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
}
