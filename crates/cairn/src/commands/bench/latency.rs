//! How long operations took, in classes some three percent wide, so that memory does not grow with their number.

use std::time::Duration;

/// Classes of each power of two.
const STEPS: u64 = 32;
const STEP_BITS: u32 = STEPS.ilog2();
const CLASSES: usize = (65 - STEP_BITS as usize) * STEPS as usize;

/// Counts of operations by how many microseconds they took.
#[derive(Clone, Debug)]
pub struct Latencies {
    counts: Vec<u64>,
    count: u64,
    sum: Duration,
    max: Duration,
}

impl Default for Latencies {
    fn default() -> Latencies {
        let (sum, max) = (Duration::ZERO, Duration::ZERO);
        Latencies { counts: vec![0; CLASSES], count: 0, sum, max }
    }
}

/// The class of a number: those below [`STEPS`] each have their own.
fn class(number: u64) -> usize {
    let shift = (63 - (number | 1).leading_zeros()).saturating_sub(STEP_BITS);
    (u64::from(shift) * STEPS + (number >> shift)) as usize
}

/// The largest number of a class.
fn largest(class: usize) -> u64 {
    let class = class as u64;
    let shift = (class / STEPS).saturating_sub(1);
    ((class - shift * STEPS) << shift) + ((1 << shift) - 1)
}

impl Latencies {
    /// Adds an operation.
    pub fn add(&mut self, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        if let Some(count) = self.counts.get_mut(class(micros)) {
            *count += 1;
        }
        self.count += 1;
        self.sum += took;
        self.max = self.max.max(took);
    }

    /// Adds those of another.
    pub fn merge(&mut self, other: &Latencies) {
        self.counts.iter_mut().zip(&other.counts).for_each(|(sum, more)| *sum += more);
        self.count += other.count;
        self.sum += other.sum;
        self.max = self.max.max(other.max);
    }

    /// Operations.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The time that this part of them did not exceed, in ms; 0 without any.
    pub fn at_most_ms(&self, part: f64) -> f64 {
        let wanted = (self.count as f64 * part).ceil().max(1.0) as u64;
        let mut seen = 0;
        for (class, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= wanted {
                let micros = largest(class).min(self.max.as_micros() as u64);
                return micros as f64 / 1000.0;
            }
        }
        0.0
    }

    /// The longest time, in ms.
    pub fn max_ms(&self) -> f64 {
        self.max.as_secs_f64() * 1000.0
    }

    /// The mean time, in ms.
    pub fn mean_ms(&self) -> f64 {
        self.sum.as_secs_f64() * 1000.0 / self.count.max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_hold_what_is_put_into_them() {
        let mut before = None;
        for number in (0..100_000).chain([1 << 40, (1 << 40) + 12345, u64::MAX - 1, u64::MAX]) {
            let class = class(number);
            assert!(class < CLASSES && largest(class) >= number, "{number}");
            assert!(class == 0 || largest(class - 1) < number, "{number}");
            assert!((largest(class) - number) as f64 <= number as f64 / 16.0, "{number}");
            assert!(before.is_none_or(|before| class >= before));
            before = Some(class);
        }
    }

    #[test]
    fn percentiles_are_those_of_what_was_added() {
        let mut latencies = Latencies::default();
        (1..=1000).for_each(|ms| latencies.add(Duration::from_millis(ms)));
        let mut twice = latencies.clone();
        twice.merge(&latencies);
        for latencies in [&latencies, &twice] {
            for (part, ms) in [(0.5, 500.0), (0.9, 900.0), (0.99, 990.0), (1.0, 1000.0)] {
                let found = latencies.at_most_ms(part);
                assert!((found - ms).abs() <= ms / 16.0, "{part}: {found}");
            }
            assert_eq!((latencies.max_ms(), latencies.mean_ms()), (1000.0, 500.5));
        }
        assert_eq!(twice.count(), 2000);
        assert_eq!(Latencies::default().at_most_ms(0.5), 0.0);
    }
}
