//! How figures of the cluster went lately, for charts.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::time::Duration;

use cairn_process::held::held;

/// Time between two samples.
pub(super) const PERIOD: Duration = Duration::from_secs(5);
/// Samples that are kept: those of twenty minutes.
const KEPT_MAX: usize = 240;

/// Figures at one time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sample {
    /// Blocks and groups that wait for mending.
    pub(super) waiting: u64,
    /// Those of which something is on its way.
    pub(super) under_way: u64,
    /// Replicas and units that have come since the start because they were ordered.
    pub(super) mended: u64,
    /// Calls by RPC since the start.
    pub(super) calls: u64,
}

/// The last samples, the oldest first.
#[derive(Debug, Default)]
pub(super) struct History(Mutex<VecDeque<Sample>>);

impl History {
    /// Keeps one more.
    pub(super) fn add(&self, sample: Sample) {
        let mut kept = held(&self.0);
        if kept.len() == KEPT_MAX {
            kept.pop_front();
        }
        kept.push_back(sample);
    }

    /// A figure over time.
    pub(super) fn of(&self, figure: impl Fn(&Sample) -> u64) -> Vec<f64> {
        held(&self.0).iter().map(|sample| figure(sample) as f64).collect()
    }

    /// How much a figure has risen in a second, over time.
    pub(super) fn rate_of(&self, figure: impl Fn(&Sample) -> u64) -> Vec<f64> {
        let kept = held(&self.0);
        let rises = kept.iter().zip(kept.iter().skip(1));
        let rise = |(one, next): (&Sample, &Sample)| figure(next).saturating_sub(figure(one));
        rises.map(|pair| rise(pair) as f64 / PERIOD.as_secs_f64()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_samples_are_kept_and_rates_are_of_a_second() {
        let history = History::default();
        for number in 0..=KEPT_MAX as u64 {
            history.add(Sample { waiting: number, mended: 10 * number, ..Sample::default() });
        }
        let waiting = history.of(|sample| sample.waiting);
        assert_eq!((waiting.len(), waiting[0], waiting[KEPT_MAX - 1]), (240, 1.0, 240.0));
        let rates = history.rate_of(|sample| sample.mended);
        assert_eq!((rates.len(), rates[0]), (239, 2.0));
        assert!(History::default().rate_of(|sample| sample.calls).is_empty());
    }
}
