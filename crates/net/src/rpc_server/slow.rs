//! Which calls took so much longer than others that the log names them.
//!
//! Costs one look at a flag while it is off. While it is on, each call is added to one sum that all threads share.
//!
//! Source: Hadoop 3.5.0 `Server#logSlowRpcCalls`.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Calls to compare with, before any is called slow.
///
/// Source: Hadoop 3.5.0 `Server#logSlowRpcCalls`.
const SAMPLES_MIN: u64 = 1024;
/// Standard deviations above the mean from which on a call is slow.
const DEVIATIONS: f64 = 3.0;

/// What is known of the times of calls, and what counts as slow.
#[derive(Default)]
pub(super) struct SlowCalls {
    is_on: AtomicBool,
    threshold_ms: AtomicU64,
    found: AtomicU64,
    times: Mutex<Spread>,
}

/// Mean and spread of numbers that come one by one.
#[derive(Default)]
struct Spread {
    count: u64,
    mean: f64,
    /// The sum of squares of the distances from the mean.
    squares: f64,
}

impl Spread {
    fn add(&mut self, value: f64) {
        self.count += 1;
        let distance = value - self.mean;
        self.mean += distance / self.count as f64;
        self.squares += distance * (value - self.mean);
    }

    /// What fewer than one of a hundred should be above.
    fn bound(&self) -> f64 {
        let variance = self.squares / self.count.saturating_sub(1).max(1) as f64;
        self.mean + DEVIATIONS * variance.sqrt()
    }
}

impl SlowCalls {
    /// Looks for slow calls from now on, among those that come from now on, or does not.
    pub(super) fn set_on(&self, is_on: bool) {
        if self.is_on.swap(is_on, Relaxed) != is_on {
            *self.times.lock().unwrap_or_else(PoisonError::into_inner) = Spread::default();
        }
    }

    /// Whether slow calls are looked for.
    pub(super) fn is_on(&self) -> bool {
        self.is_on.load(Relaxed)
    }

    /// What takes no longer than this is not slow.
    pub(super) fn set_threshold(&self, threshold: Duration) {
        let ms = u64::try_from(threshold.as_millis()).unwrap_or(u64::MAX);
        self.threshold_ms.store(ms, Relaxed);
    }

    /// What takes no longer is not slow, in milliseconds.
    pub(super) fn threshold_ms(&self) -> u64 {
        self.threshold_ms.load(Relaxed)
    }

    /// How many were slow so far.
    pub(super) fn found(&self) -> u64 {
        self.found.load(Relaxed)
    }

    /// Adds a call. Returns whether it was slow.
    pub(super) fn add(&self, took: Duration) -> bool {
        if !self.is_on() {
            return false;
        }
        let seconds = took.as_secs_f64();
        let mut times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
        times.add(seconds);
        let is_slow = times.count > SAMPLES_MIN
            && seconds > times.bound()
            && took > Duration::from_millis(self.threshold_ms());
        drop(times);
        if is_slow {
            self.found.fetch_add(1, Relaxed);
        }
        is_slow
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_slow_that_takes_much_longer_than_others() {
        let calls = SlowCalls::default();
        let (usual, slow) = (Duration::from_millis(2), Duration::from_millis(50));
        assert!((0..2000).all(|_| !calls.add(usual)) && !calls.add(slow), "it is off");
        calls.set_on(true);
        assert!(!calls.add(slow), "there are none to compare with");
        assert!((0..=SAMPLES_MIN).all(|_| !calls.add(usual)) && calls.add(slow));
        calls.set_threshold(slow);
        assert!(!calls.add(slow) && calls.add(2 * slow));
        assert_eq!((calls.found(), calls.threshold_ms()), (2, 50));
        calls.set_on(false);
        calls.set_on(true);
        assert!(!calls.add(4 * slow), "what was before counts no more");
    }

    #[test]
    fn the_bound_is_three_deviations_above_the_mean() {
        let mut times = Spread::default();
        [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0].iter().for_each(|value| times.add(*value));
        let wanted = 5.0 + 3.0 * (32.0f64 / 7.0).sqrt();
        assert!((times.bound() - wanted).abs() < 1e-9);
    }
}
