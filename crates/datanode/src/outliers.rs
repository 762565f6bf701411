//! Which of several mean latencies are outliers, and the means over the last hours that this is asked of. Pure: times
//! are handed in.
//!
//! Source: Hadoop 3.5.0 `OutlierDetector`, `MutableRollingAverages`.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// Length of a window, and windows that count: three hours together.
///
/// Source: Hadoop 3.5.0 `MutableRollingAverages`.
const WINDOW: Duration = Duration::from_secs(300);
const WINDOWS: u64 = 36;
/// Names that are kept; more than a cluster has nodes, for requests bring them.
const NAMES_MAX: usize = 1 << 14;

/// From a median absolute deviation to a standard deviation, where latencies are normally distributed.
const MAD_TO_SIGMA: f64 = 1.4826;
/// An outlier is above so many deviations from the median, and above so many medians.
const DEVIATIONS: f64 = 3.0;
const MEDIANS: f64 = 3.0;

/// A latency that is far above the others', with what they are; all in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Outlier {
    pub(crate) latency_ms: f64,
    pub(crate) median_ms: f64,
    pub(crate) mad_ms: f64,
    pub(crate) limit_ms: f64,
}

/// The middle of sorted values, of which there is one at least.
fn median(sorted: &[f64]) -> f64 {
    let middle = sorted.len() / 2;
    match sorted.len() % 2 {
        0 => f64::midpoint(sorted[middle - 1], sorted[middle]),
        _ => sorted[middle],
    }
}

/// Those of `latencies`, in milliseconds by name, that are far above the others; none where fewer than `min` are known,
/// and none of `low_ms` or less.
pub(crate) fn outliers(
    latencies: &BTreeMap<String, f64>,
    min: usize,
    low_ms: f64,
) -> BTreeMap<String, Outlier> {
    if latencies.is_empty() || latencies.len() < min {
        return BTreeMap::new();
    }
    let mut sorted: Vec<f64> = latencies.values().copied().collect();
    sorted.sort_by(f64::total_cmp);
    let median_ms = median(&sorted);
    let mut deviations: Vec<f64> = sorted.iter().map(|value| (value - median_ms).abs()).collect();
    deviations.sort_by(f64::total_cmp);
    let mad_ms = median(&deviations) * MAD_TO_SIGMA;
    let limit_ms = low_ms.max(median_ms * MEDIANS).max(median_ms + DEVIATIONS * mad_ms);
    let slow = latencies.iter().filter(|(_, latency)| **latency > limit_ms);
    slow.map(|(name, latency_ms)| {
        (name.clone(), Outlier { latency_ms: *latency_ms, median_ms, mad_ms, limit_ms })
    })
    .collect()
}

/// A mean latency over the last windows.
#[derive(Debug, Default)]
pub(crate) struct Windows(VecDeque<Window>);

/// What was measured in one window.
#[derive(Debug)]
struct Window {
    number: u64,
    sum_ms: f64,
    count: u64,
}

fn number(now: Duration) -> u64 {
    now.as_secs() / WINDOW.as_secs()
}

impl Windows {
    /// Adds what one piece of work took; `now` is the time since any beginning.
    pub(crate) fn add(&mut self, took: Duration, now: Duration) {
        let (took_ms, number) = (took.as_secs_f64() * 1000.0, number(now));
        match self.0.back_mut().filter(|last| last.number == number) {
            Some(last) => {
                last.sum_ms += took_ms;
                last.count += 1;
            }
            None => self.0.push_back(Window { number, sum_ms: took_ms, count: 1 }),
        }
        self.forget_old(now);
    }

    fn forget_old(&mut self, now: Duration) {
        let first = (number(now) + 1).saturating_sub(WINDOWS);
        self.0.retain(|window| window.number >= first);
    }

    /// How many samples there are.
    pub(crate) fn samples(&mut self, now: Duration) -> u64 {
        self.forget_old(now);
        self.0.iter().map(|window| window.count).sum()
    }

    /// The mean in milliseconds, if there are more than `min` samples.
    pub(crate) fn mean(&mut self, min: u64, now: Duration) -> Option<f64> {
        let count = self.samples(now);
        let sum_ms: f64 = self.0.iter().map(|window| window.sum_ms).sum();
        (count > min).then(|| sum_ms / count as f64)
    }
}

/// Mean latencies by name over the last windows.
#[derive(Default)]
pub(crate) struct RollingAverages(BTreeMap<String, Windows>);

impl RollingAverages {
    /// Adds what one piece of work took; `now` is the time since any beginning.
    pub(crate) fn add(&mut self, name: &str, took: Duration, now: Duration) {
        if !self.0.contains_key(name) {
            if self.0.len() >= NAMES_MAX {
                return;
            }
            self.0.insert(name.to_string(), Windows::default());
        }
        if let Some(windows) = self.0.get_mut(name) {
            windows.add(took, now);
        }
    }

    /// The means, in milliseconds, of those of whom there are more than `min` samples.
    pub(crate) fn means(&mut self, min: u64, now: Duration) -> BTreeMap<String, f64> {
        self.0.retain(|_, windows| windows.mean(0, now).is_some());
        let mean = |(name, windows): (&String, &mut Windows)| {
            Some((name.clone(), windows.mean(min, now)?))
        };
        self.0.iter_mut().filter_map(mean).collect()
    }

    /// The mean of one, in milliseconds, if there is any sample.
    pub(crate) fn mean(&mut self, name: &str, now: Duration) -> Option<f64> {
        self.0.get_mut(name)?.mean(0, now)
    }

    /// Forgets all.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(latencies: &[f64]) -> BTreeMap<String, f64> {
        let names = ('a'..).map(String::from);
        names.zip(latencies.iter().copied()).collect()
    }

    fn slow(latencies: &[f64], min: usize, low_ms: f64) -> Vec<String> {
        outliers(&named(latencies), min, low_ms).into_keys().collect()
    }

    #[test]
    fn what_is_far_above_the_others_is_an_outlier() {
        assert_eq!(slow(&[10.0, 11.0, 9.0, 12.0, 100.0], 5, 5.0), ["e"]);
        assert_eq!(slow(&[100.0, 10.0, 90.0, 11.0, 9.0, 12.0, 10.0], 5, 5.0), ["a", "c"]);
        let none: [&str; 0] = [];
        assert_eq!(slow(&[10.0, 11.0, 9.0, 12.0, 100.0], 6, 5.0), none, "of too few");
        assert_eq!(slow(&[1.0, 1.0, 1.0, 1.0, 4.0], 5, 5.0), none, "fast enough for anybody");
        assert_eq!(slow(&[10.0, 10.0, 10.0, 10.0, 30.0], 5, 5.0), none, "three medians");
        assert_eq!(
            slow(&[1.0, 10.0, 20.0, 80.0, 100.0, 190.0], 5, 5.0),
            none,
            "they differ anyway"
        );
        assert_eq!(slow(&[], 0, 5.0), none);
        assert_eq!(slow(&[9.0], 0, 5.0), none);
    }

    #[test]
    fn an_outlier_tells_how_far_it_is_off() {
        let found = outliers(&named(&[10.0, 20.0, 30.0, 200.0]), 1, 5.0);
        let d = &found["d"];
        assert_eq!((d.latency_ms, d.median_ms), (200.0, 25.0));
        assert!((d.mad_ms - 10.0 * 1.4826).abs() < 1e-9, "{d:?}");
        assert_eq!(d.limit_ms, 75.0);
        let wide = outliers(&named(&[10.0, 20.0, 60.0, 70.0, 400.0]), 1, 5.0);
        assert!((wide["e"].limit_ms - (60.0 + 3.0 * 40.0 * 1.4826)).abs() < 1e-9, "{wide:?}");
    }

    #[test]
    fn means_are_of_the_last_three_hours() {
        let mut rolling = RollingAverages::default();
        let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
        let ms = Duration::from_millis;
        rolling.add("a", ms(10), minutes(0));
        rolling.add("a", ms(20), minutes(1));
        rolling.add("a", ms(60), minutes(100));
        rolling.add("b", ms(7), minutes(100));
        assert_eq!(rolling.means(0, minutes(179)), named(&[30.0, 7.0]));
        assert_eq!(rolling.means(1, minutes(179)), named(&[30.0]));
        assert!(rolling.means(3, minutes(179)).is_empty(), "there must be more than so many");
        assert_eq!(rolling.means(0, minutes(180)), named(&[60.0, 7.0]));
        assert!(rolling.means(0, minutes(280)).is_empty());
        assert!(rolling.0.is_empty());
        for window in 0..100 {
            rolling.add("a", ms(window), minutes(5 * window));
        }
        assert_eq!(rolling.0["a"].0.len(), 36);
        for name in 0..NAMES_MAX + 5 {
            rolling.add(&name.to_string(), ms(1), minutes(500));
        }
        assert_eq!(rolling.0.len(), NAMES_MAX);
    }
}
