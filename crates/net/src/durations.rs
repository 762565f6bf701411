//! How long things took, counted by classes of time: what histograms of monitors are made of.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// The longest times of the classes; one more behind them has all that take longer.
pub const BOUNDS: [Duration; 11] = [
    Duration::from_micros(100),
    Duration::from_micros(300),
    Duration::from_millis(1),
    Duration::from_millis(3),
    Duration::from_millis(10),
    Duration::from_millis(30),
    Duration::from_millis(100),
    Duration::from_millis(300),
    Duration::from_secs(1),
    Duration::from_secs(3),
    Duration::from_secs(10),
];

/// How many classes there are.
pub const CLASSES: usize = BOUNDS.len() + 1;

/// The class of a time.
pub fn class_of(took: Duration) -> usize {
    BOUNDS.iter().position(|bound| took <= *bound).unwrap_or(BOUNDS.len())
}

/// A time as a counter takes it.
pub fn nanos(took: Duration) -> u64 {
    u64::try_from(took.as_nanos()).unwrap_or(u64::MAX)
}

/// How many things took how long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Durations {
    /// How many took no longer than each of [`BOUNDS`] and longer than the one before, and the rest.
    pub classes: [u64; CLASSES],
    /// The time of all together.
    pub total: Duration,
}

impl Durations {
    /// How many there were.
    pub fn count(&self) -> u64 {
        self.classes.iter().sum()
    }
}

impl std::ops::AddAssign for Durations {
    fn add_assign(&mut self, other: Durations) {
        for (own, more) in self.classes.iter_mut().zip(other.classes) {
            *own += more;
        }
        self.total += other.total;
    }
}

/// Counts durations without a lock. What is read while somebody counts may be one short in a class or in the total.
#[derive(Debug, Default)]
pub struct DurationCounter {
    classes: [AtomicU64; CLASSES],
    nanos: AtomicU64,
}

impl DurationCounter {
    /// Counts one.
    pub fn add(&self, took: Duration) {
        self.classes[class_of(took)].fetch_add(1, Relaxed);
        self.nanos.fetch_add(nanos(took), Relaxed);
    }

    /// What was counted.
    pub fn get(&self) -> Durations {
        Durations {
            classes: std::array::from_fn(|class| self.classes[class].load(Relaxed)),
            total: Duration::from_nanos(self.nanos.load(Relaxed)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_in_the_first_class_that_has_room_for_it() {
        let counter = DurationCounter::default();
        let mut total = Duration::ZERO;
        for bound in BOUNDS {
            for took in [bound, bound + Duration::from_nanos(1)] {
                counter.add(took);
                total += took;
            }
        }
        let mut wanted = [2; CLASSES];
        (wanted[0], wanted[CLASSES - 1]) = (1, 1);
        let mut durations = counter.get();
        assert_eq!(durations, Durations { classes: wanted, total });
        assert_eq!(durations.count(), 2 * BOUNDS.len() as u64);
        durations += durations;
        assert_eq!((durations.classes[0], durations.total), (2, 2 * total));
    }
}
