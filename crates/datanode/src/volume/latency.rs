//! How long work on a volume's disk takes: all of it by classes of time, and means of samples of the last hours, by which
//! disks are compared.
//!
//! Source: Hadoop 3.5.0 `ProfilingFileIoEvents`, `DataNodeVolumeMetrics`.

use crate::outliers::Windows;
use cairn_net::durations::{DurationCounter, Durations};
use cairn_process::held::held;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

/// Kinds of work; their latencies are not compared with each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DiskWork {
    /// On names and attributes of files.
    Metadata,
    Read,
    Write,
    Sync,
    /// From a file to a socket, within the kernel.
    Transfer,
}

impl DiskWork {
    /// The name for monitors.
    pub(crate) fn name(self) -> &'static str {
        match self {
            DiskWork::Metadata => "metadata",
            DiskWork::Read => "read",
            DiskWork::Write => "write",
            DiskWork::Sync => "sync",
            DiskWork::Transfer => "sendfile",
        }
    }

    pub(crate) const ALL: [DiskWork; 5] =
        [DiskWork::Metadata, DiskWork::Read, DiskWork::Write, DiskWork::Sync, DiskWork::Transfer];
    /// Those by which disks are compared.
    ///
    /// Source: Hadoop 3.5.0 `DataNodeDiskMetrics`.
    pub(crate) const COMPARED: [DiskWork; 3] =
        [DiskWork::Metadata, DiskWork::Read, DiskWork::Write];
}

/// Which work is a sample, of all volumes.
#[derive(Debug, Default)]
pub(crate) struct Sampling {
    percentage: AtomicU32,
    turn: AtomicU32,
    /// How often it was turned off: what was measured before does not count.
    era: AtomicU32,
}

impl Sampling {
    pub(crate) fn new(percentage: u32) -> Sampling {
        Sampling { percentage: AtomicU32::new(percentage), ..Sampling::default() }
    }

    /// Measures that part of all work from now on; 0 for none, and then what was measured is forgotten.
    pub(crate) fn set(&self, percentage: u32) {
        self.percentage.store(percentage, Ordering::Relaxed);
        if percentage == 0 {
            self.era.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn percentage(&self) -> u32 {
        self.percentage.load(Ordering::Relaxed)
    }

    pub(crate) fn is_on(&self) -> bool {
        self.percentage() > 0
    }

    fn takes_next(&self) -> bool {
        let percentage = self.percentage();
        percentage > 0 && hundredth(self.turn.fetch_add(1, Ordering::Relaxed)) < percentage
    }
}

/// One of a hundred shares for each turn, with no step of its own: work comes in a pattern, as of a block an opening
/// and so many writes, and of a pattern in step with the shares some places would never be measured.
fn hundredth(turn: u32) -> u32 {
    let mut hash = turn.wrapping_mul(0x9E37_79B1);
    hash = (hash ^ (hash >> 15)).wrapping_mul(0x85EB_CA77);
    hash ^= hash >> 13;
    ((u64::from(hash) * 100) >> 32) as u32
}

/// What was measured on one volume.
#[derive(Debug)]
pub(super) struct Latencies {
    pub(super) sampling: Arc<Sampling>,
    measured: Mutex<Kept>,
    start: Instant,
    all: [DurationCounter; DiskWork::ALL.len()],
}

/// What was measured of each kind since sampling was turned off so many times.
#[derive(Debug, Default)]
struct Kept {
    era: u32,
    windows: [Windows; DiskWork::ALL.len()],
}

impl Default for Latencies {
    fn default() -> Latencies {
        Latencies {
            sampling: Arc::default(),
            measured: Mutex::default(),
            start: Instant::now(),
            all: Default::default(),
        }
    }
}

impl Latencies {
    /// Does work and measures it; if it is its turn, that is a sample.
    pub(super) fn time<T>(&self, kind: DiskWork, work: impl FnOnce() -> T) -> T {
        let is_sample = self.sampling.takes_next();
        let (era, begun) = (self.sampling.era.load(Ordering::Relaxed), Instant::now());
        let done = work();
        let took = begun.elapsed();
        self.all[kind as usize].add(took);
        if !is_sample {
            return done;
        }
        let now = self.start.elapsed();
        let mut kept = self.kept();
        if kept.era == era {
            kept.windows[kind as usize].add(took, now);
        }
        done
    }

    /// How long all work of one kind took.
    pub(super) fn durations(&self, kind: DiskWork) -> Durations {
        self.all[kind as usize].get()
    }

    /// The mean of one kind in milliseconds, if anything was measured lately.
    pub(super) fn mean(&self, kind: DiskWork) -> Option<f64> {
        self.kept().windows[kind as usize].mean(0, self.start.elapsed())
    }

    /// How much of one kind was measured lately.
    pub(super) fn samples(&self, kind: DiskWork) -> u64 {
        self.kept().windows[kind as usize].samples(self.start.elapsed())
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        let mut kept = held(&self.measured);
        let era = self.sampling.era.load(Ordering::Relaxed);
        if kept.era != era {
            *kept = Kept { era, windows: Default::default() };
        }
        kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn about_so_many_of_a_hundred_are_measured_of_any_pattern() {
        const ROUNDS: u32 = 10_000;
        for percentage in [0, 1, 10, 37, 50, 99, 100, 150] {
            for period in [1, 2, 3, 4, 5, 10, 20, 25, 64, 100] {
                let sampling = Sampling::new(percentage);
                let mut taken = vec![0_u32; period];
                for _ in 0..ROUNDS {
                    taken.iter_mut().for_each(|place| *place += u32::from(sampling.takes_next()));
                }
                let share = f64::from(percentage.min(100)) / 100.0;
                let mean = f64::from(ROUNDS) * share;
                // Five standard deviations of what chance would take.
                let off = 5.0 * (mean * (1.0 - share)).sqrt();
                let is_fair = |taken: &u32| (f64::from(*taken) - mean).abs() <= off;
                assert!(taken.iter().all(is_fair), "{percentage} %, {period}: {taken:?}");
            }
        }
    }

    #[test]
    fn kinds_have_means_of_their_own() {
        let latencies = Latencies::default();
        assert_eq!(latencies.time(DiskWork::Read, || 7), 7);
        assert_eq!(latencies.mean(DiskWork::Read), None, "it is off");
        latencies.sampling.set(100);
        latencies.time(DiskWork::Read, || std::thread::sleep(Duration::from_millis(20)));
        assert!(latencies.mean(DiskWork::Read).unwrap() >= 20.0);
        assert_eq!(latencies.mean(DiskWork::Write), None);
        assert_eq!(DiskWork::ALL.map(|kind| latencies.samples(kind)), [0, 1, 0, 0, 0]);
        let all = DiskWork::ALL.map(|kind| latencies.durations(kind));
        assert_eq!(all.map(|durations| durations.count()), [0, 2, 0, 0, 0], "samples or not");
        assert!(all[DiskWork::Read as usize].total >= Duration::from_millis(20));
    }
}
