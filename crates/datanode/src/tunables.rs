//! Settings of a DataNode that can change while it runs and are no budgets.

use crate::config::DataNodeConfig;
use crate::members::Wakes;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

/// A time that can change.
#[derive(Debug)]
pub(crate) struct Interval(AtomicU64);

impl Interval {
    pub(crate) fn new(interval: Duration) -> Interval {
        let new = Interval(AtomicU64::new(0));
        new.set(interval);
        new
    }

    /// How long it is now, to the millisecond.
    pub(crate) fn get(&self) -> Duration {
        Duration::from_millis(self.0.load(Ordering::Relaxed))
    }

    pub(crate) fn set(&self, interval: Duration) {
        let ms = u64::try_from(interval.as_millis()).unwrap_or(u64::MAX);
        self.0.store(ms, Ordering::Relaxed);
    }
}

/// Places for work that is done at the same time, as many as the settings say at the moment.
pub(crate) struct Places {
    taken: AtomicUsize,
    max: AtomicUsize,
}

/// A place, until it is dropped.
pub(crate) struct Place<'a>(&'a Places);

impl Places {
    fn new(max: usize) -> Places {
        Places { taken: AtomicUsize::new(0), max: AtomicUsize::new(max) }
    }

    /// A place, unless all are taken.
    pub(crate) fn take(&self) -> Option<Place<'_>> {
        let max = self.max();
        let free = |taken| (taken < max).then_some(taken + 1);
        self.taken.fetch_update(Ordering::AcqRel, Ordering::Acquire, free).ok()?;
        Some(Place(self))
    }

    pub(crate) fn max(&self) -> usize {
        self.max.load(Ordering::Relaxed)
    }

    /// What has a place keeps it.
    pub(crate) fn set_max(&self, max: usize) {
        self.max.store(max, Ordering::Relaxed);
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.taken.fetch_sub(1, Ordering::AcqRel);
    }
}

/// The settings as they are now; their fields in [`DataNodeConfig`] are those of the start.
pub(crate) struct Tunables {
    /// Balancer moves.
    pub(crate) moves: Places,
    /// Connections of data transfer.
    pub(crate) max_connections: AtomicUsize,
    /// Between full block reports.
    pub(crate) block_report_interval: Interval,
    /// Wakes who waits for the next report: the interval has changed.
    pub(crate) report_interval_changed: Wakes,
    /// Replicas from which on a full report is split by volumes.
    pub(crate) block_report_split_threshold: AtomicUsize,
    /// Between reports of what is in memory.
    pub(crate) cache_report_interval: Interval,
}

impl Tunables {
    pub(crate) fn new(config: &DataNodeConfig) -> Tunables {
        Tunables {
            moves: Places::new(config.max_moves),
            max_connections: AtomicUsize::new(config.max_connections),
            block_report_interval: Interval::new(config.block_report_interval),
            report_interval_changed: Wakes::new(config.name_nodes.len()),
            block_report_split_threshold: AtomicUsize::new(config.block_report_split_threshold),
            cache_report_interval: Interval::new(config.cache_report_interval),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_follow_their_number() {
        let places = Places::new(2);
        let (first, second) = (places.take(), places.take());
        assert!(first.is_some() && second.is_some() && places.take().is_none());
        places.set_max(1);
        drop(first);
        assert!(places.take().is_none(), "the second holds the only place");
        drop(second);
        assert!(places.take().is_some());
        places.set_max(0);
        assert!(places.take().is_none());
    }
}
