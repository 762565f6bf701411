//! A bound on the bytes per second of many streams together, which may be changed at any time.
//!
//! A token bucket, kept as the time at which what was let through so far has used its share up. Whoever wakes late
//! loses nothing: up to [`CREDIT`] of time that passed unused is made up for, so that the rate over a long time is
//! the bound. Large requests take turns in small parts, so that streams get the same whatever they ask for at once.

use cairn_process::held::held;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// The longest that one request waits at once: a higher bound is felt no later than that.
const LONGEST_WAIT: Duration = Duration::from_millis(500);
/// Time that may pass unused and still be made up for: what is let through at once is at most this much more.
const CREDIT: Duration = Duration::from_millis(100);
/// Bytes of a turn.
const TURN: u64 = 64 << 10;

/// When bytes may pass; knows no clock.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    /// When the bytes let through so far have used their time up.
    spent: Instant,
}

impl Bucket {
    /// Lets `bytes` through at `bytes_per_second`, and says from when on: not to be waited for if that has passed.
    fn take(&mut self, now: Instant, bytes: u64, bytes_per_second: u64) -> Instant {
        let start = self.spent.max(now.checked_sub(CREDIT).unwrap_or(now));
        self.spent = start + Duration::from_secs_f64(bytes as f64 / bytes_per_second as f64);
        start
    }
}

/// Bytes that pass at a bounded rate, in the order in which they were asked for.
pub(crate) struct Budget {
    /// 0 for any.
    bytes_per_second: AtomicU64,
    bucket: Mutex<Bucket>,
}

impl Budget {
    pub(crate) fn new(bytes_per_second: u64) -> Budget {
        Budget {
            bytes_per_second: AtomicU64::new(bytes_per_second),
            bucket: Mutex::new(Bucket { spent: Instant::now() }),
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
        let spent = self.lock().spent;
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
            let part = left.min(TURN).min((rate / 2).max(1));
            let start = self.lock().take(Instant::now(), part, rate);
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
                self.lock().spent = Instant::now();
                return;
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Bucket> {
        held(&self.bucket)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stream that asks again as soon as its turn has come.
    struct Stream {
        /// Bytes of a request.
        asks: u64,
        /// Of it, not let through yet.
        left: u64,
        passed: u64,
        wakes: Instant,
    }

    /// Runs streams for some seconds by a clock of its own: those that wait wake up to `late` too late. Returns the
    /// bytes of each.
    fn run(rate: u64, asks: &[u64], seconds: u64, late: Duration) -> Vec<u64> {
        let begin = Instant::now();
        let end = begin + Duration::from_secs(seconds);
        let mut bucket = Bucket { spent: begin };
        let stream = |asks: &u64| Stream { asks: *asks, left: 0, passed: 0, wakes: begin };
        let mut streams: Vec<Stream> = asks.iter().map(stream).collect();
        let mut turn = 0_u32;
        while let Some(next) = streams.iter_mut().min_by_key(|stream| stream.wakes) {
            let now = next.wakes;
            if now >= end {
                break;
            }
            if next.left == 0 {
                next.left = next.asks;
            }
            let part = next.left.min(TURN).min((rate / 2).max(1));
            let start = bucket.take(now, part, rate);
            next.left -= part;
            next.passed += part;
            turn += 1;
            // Scattered, and the same in each run.
            let scatter = late * (turn.wrapping_mul(2_654_435_761) >> 22) / 1024;
            // Even what need not wait takes a moment.
            let moment = Duration::from_micros(1);
            next.wakes = if start > now { start + scatter } else { now + moment };
        }
        streams.iter().map(|stream| stream.passed).collect()
    }

    #[test]
    fn the_rate_over_a_long_time_is_the_bound() {
        for rate in [1000, 1 << 20, 64 << 20] {
            for asks in [&[64 << 10][..], &[512], &[1 << 20, 4096], &[64 << 10; 32]] {
                // A small request at a high rate would make a billion turns.
                let seconds = (20_000 * asks[0] / rate).clamp(20, 200);
                for late in [Duration::ZERO, Duration::from_millis(2), Duration::from_millis(40)] {
                    let bytes: u64 = run(rate, asks, seconds, late).iter().sum();
                    let bound = (rate * seconds) as f64;
                    // What is let through before its time is up, and what those who wait have asked for.
                    let slack = rate as f64 / 2.0 * asks.len() as f64;
                    let slack = slack.min((TURN * asks.len() as u64) as f64).max(rate as f64 * 0.1);
                    let off = (bytes as f64 - bound).abs();
                    assert!(off <= slack.max(bound / 100.0), "{rate} {asks:?} {late:?}: {bytes}");
                }
            }
        }
    }

    #[test]
    fn streams_share_alike_whatever_they_ask_for_at_once() {
        let shares =
            run(10 << 20, &[64 << 10, 256 << 10, 1 << 20, 16 << 20], 100, Duration::from_millis(3));
        let fair = (10 << 20) * 100 / 4;
        for share in &shares {
            assert!(share.abs_diff(fair) < fair / 50, "{shares:?}");
        }
    }

    #[test]
    fn what_was_not_used_for_long_is_lost() {
        let begin = Instant::now();
        let mut bucket = Bucket { spent: begin };
        let late = begin + Duration::from_secs(60);
        let mut bytes = 0;
        while bucket.take(late, 1000, 1_000_000) <= late {
            bytes += 1000;
        }
        assert_eq!(bytes, 101_000, "a tenth of a second's, and what goes at once");
    }

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
