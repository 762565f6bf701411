//! Which disks of this DataNode are slow: they take much longer than most for one kind of work. They are told to the
//! NameNode, and new replicas can be kept off them.
//!
//! Source: Hadoop 3.5.0 `DataNodeDiskMetrics`.

use crate::config::DataNodeConfig;
use crate::outliers::outliers;
use crate::volume::Volume;
use crate::volume::latency::{DiskWork, Sampling};
use cairn_process::held::held;
use cairn_wire::proto::datanode::SlowDiskReportProto;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// What was found last, and the settings that can change.
pub(crate) struct Disks {
    /// Of so many disks something must be known.
    pub(crate) min_disks: AtomicU64,
    /// A latency in milliseconds that is never slow.
    pub(crate) low_ms: AtomicU64,
    /// Slow disks that get no new replicas, at most.
    pub(crate) max_avoided: AtomicUsize,
    slow: Mutex<Vec<String>>,
}

impl Disks {
    pub(crate) fn new(config: &DataNodeConfig) -> Disks {
        Disks {
            min_disks: AtomicU64::new(config.outlier_min_disks),
            low_ms: AtomicU64::new(config.slow_disk_low_ms),
            max_avoided: AtomicUsize::new(config.max_slow_disks_avoided),
            slow: Mutex::default(),
        }
    }

    /// Compares the volumes anew, and has new replicas keep off the slowest; off none if nothing is measured.
    pub(crate) fn report(
        &self,
        volumes: &[Arc<Volume>],
        sampling: &Sampling,
    ) -> Vec<SlowDiskReportProto> {
        // Held to the end: a comparison that began before sampling was turned off must not have the last word.
        let mut found = held(&self.slow);
        if !sampling.is_on() {
            volumes.iter().for_each(|volume| volume.avoid(false));
            found.clear();
            return Vec::new();
        }
        let in_use: Vec<&Arc<Volume>> = volumes.iter().filter(|v| !v.is_failed()).collect();
        let mut slow: BTreeMap<String, [Option<f64>; 3]> = BTreeMap::new();
        let min_disks = usize::try_from(self.min_disks.load(Ordering::Relaxed));
        let low_ms = self.low_ms.load(Ordering::Relaxed) as f64;
        for kind in DiskWork::COMPARED {
            let mean = |volume: &&Arc<Volume>| Some((name(volume), volume.mean_latency(kind)?));
            let means = in_use.iter().filter_map(mean).collect();
            for (name, outlier) in outliers(&means, min_disks.unwrap_or(usize::MAX), low_ms) {
                slow.entry(name).or_default()[kind as usize] = Some(outlier.latency_ms);
            }
        }
        let max_ms = |latencies: &[Option<f64>; 3]| {
            latencies.iter().flatten().fold(0.0, |a, b| f64::max(a, *b))
        };
        let mut worst: Vec<(&String, f64)> = slow.iter().map(|(n, l)| (n, max_ms(l))).collect();
        worst.sort_by(|(_, a), (_, b)| b.total_cmp(a));
        worst.truncate(self.max_avoided.load(Ordering::Relaxed));
        for volume in in_use {
            let name = name(volume);
            volume.avoid(worst.iter().any(|(slow, _)| **slow == name));
        }
        *found = slow.keys().cloned().collect();
        let report = slow.into_iter().map(|(name, [metadata, read, write])| SlowDiskReportProto {
            base_path: Some(name),
            mean_metadata_op_latency: metadata,
            mean_read_io_latency: read,
            mean_write_io_latency: write,
        });
        report.collect()
    }

    /// The folders of those that the last comparison has found.
    pub(crate) fn slow(&self) -> Vec<String> {
        held(&self.slow).clone()
    }
}

fn name(volume: &Volume) -> String {
    volume.root().display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_disk_that_takes_longer_is_told_and_avoided() {
        let dir = tempfile::tempdir().unwrap();
        let sampling = Arc::new(Sampling::new(100));
        let open = |name: &str| {
            let (volume, _) = Volume::open(&dir.path().join(name).into(), 0, 0o700).unwrap();
            Arc::new(volume.sampled_by(&sampling))
        };
        let volumes = ["a", "b", "c", "d"].map(open);
        let config = DataNodeConfig { outlier_min_disks: 4, ..DataNodeConfig::default() };
        let disks = Disks::new(&config);
        for volume in &volumes {
            let ms = if volume.root().ends_with("c") { 50 } else { 0 };
            volume.timed(DiskWork::Read, || std::thread::sleep(Duration::from_millis(ms)));
            volume.timed(DiskWork::Write, || ());
        }
        let report = disks.report(&volumes, &sampling);
        let [slow] = &report[..] else { panic!("{report:?}") };
        let c = dir.path().join("c").display().to_string();
        assert_eq!(slow.base_path.as_ref(), Some(&c));
        assert!(slow.mean_read_io_latency() >= 50.0 && slow.mean_write_io_latency.is_none());
        assert_eq!(disks.slow(), [c]);
        assert!(!volumes[2].is_avoided(), "by default it is only told");
        disks.max_avoided.store(1, Ordering::Relaxed);
        disks.report(&volumes, &sampling);
        assert_eq!(volumes.each_ref().map(|v| v.is_avoided()), [false, false, true, false]);
        disks.low_ms.store(10_000, Ordering::Relaxed);
        assert!(disks.report(&volumes, &sampling).is_empty() && !volumes[2].is_avoided());
        disks.low_ms.store(20, Ordering::Relaxed);
        disks.min_disks.store(5, Ordering::Relaxed);
        assert!(disks.report(&volumes, &sampling).is_empty() && disks.slow().is_empty());

        disks.min_disks.store(4, Ordering::Relaxed);
        assert_eq!(disks.report(&volumes, &sampling).len(), 1);
        assert!(volumes[2].is_avoided());
        sampling.set(0);
        assert!(disks.report(&volumes, &sampling).is_empty() && disks.slow().is_empty());
        assert!(!volumes[2].is_avoided(), "nobody would ever find it quick again");
        sampling.set(100);
        assert!(disks.report(&volumes, &sampling).is_empty(), "it begins anew");
    }
}
