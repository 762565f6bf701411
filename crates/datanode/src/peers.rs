//! How long other DataNodes take: for a packet that the last one of a pipeline is sent, and for a piece of a unit that
//! a group is rebuilt or checked from. Those that take much longer than most are told to the NameNode.
//!
//! Source: Hadoop 3.5.0 `DataNodePeerMetrics`. Deviation: it measures pipelines only, which erasure coded files have
//! none of.

use crate::config::DataNodeConfig;
use crate::outliers::{RollingAverages, outliers};
use crate::tunables::Interval;
use cairn_process::held::held;
use cairn_wire::proto::datanode::SlowPeerReportProto;
use cairn_wire::proto::hdfs::DatanodeIDProto;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// What is measured. Kinds are not compared with each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Packets to the last DataNode of a pipeline.
    Send,
    /// Pieces of units.
    Read,
}

/// What was measured of other DataNodes, and the settings that can change.
pub(crate) struct Peers {
    /// Whether they are measured.
    is_on: AtomicBool,
    /// Of so many of them something must be known.
    pub(crate) min_nodes: AtomicU64,
    /// More samples than this count as knowing.
    pub(crate) min_samples: AtomicU64,
    /// A latency in milliseconds that is never slow.
    pub(crate) low_ms: AtomicU64,
    /// Between reports.
    pub(crate) report_interval: Interval,
    measured: Mutex<[RollingAverages; 2]>,
    last_report: Mutex<Option<Instant>>,
    start: Instant,
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    held(of)
}

impl Peers {
    pub(crate) fn new(config: &DataNodeConfig) -> Peers {
        Peers {
            is_on: AtomicBool::new(config.peer_stats),
            min_nodes: AtomicU64::new(config.outlier_min_nodes),
            min_samples: AtomicU64::new(config.outlier_min_samples),
            low_ms: AtomicU64::new(config.slow_peer_low_ms),
            report_interval: Interval::new(config.outliers_report_interval),
            measured: Mutex::default(),
            last_report: Mutex::default(),
            start: Instant::now(),
        }
    }

    /// Turns it on or off; what was measured before counts no more.
    pub(crate) fn turn(&self, on: bool) {
        self.is_on.store(on, Ordering::Relaxed);
        lock(&self.measured).iter_mut().for_each(RollingAverages::clear);
    }

    /// What is to be measured of `peer`; nothing if it is off.
    pub(crate) fn of(&self, peer: &DatanodeIDProto, kind: Kind) -> Option<Measured<'_>> {
        let is_on = self.is_on.load(Ordering::Relaxed);
        is_on.then(|| Measured { peers: self, name: name(peer), kind })
    }

    fn add(&self, name: &str, kind: Kind, took: Duration) {
        lock(&self.measured)[kind as usize].add(name, took, self.start.elapsed());
    }

    /// Counts a wait without an answer if it is longer than those with one: the answer would have come later still.
    fn add_if_longer(&self, name: &str, kind: Kind, waited: Duration) {
        let now = self.start.elapsed();
        let averages = &mut lock(&self.measured)[kind as usize];
        let mean_ms = averages.mean(name, now).unwrap_or_default();
        if waited.as_secs_f64() * 1000.0 > mean_ms {
            averages.add(name, waited, now);
        }
    }

    /// Means of what was sent, in milliseconds by peer; `None` if it is off.
    pub(crate) fn send_means(&self) -> Option<BTreeMap<String, f64>> {
        let is_on = self.is_on.load(Ordering::Relaxed);
        is_on.then(|| lock(&self.measured)[Kind::Send as usize].means(0, self.start.elapsed()))
    }

    /// The slow ones, if it is time to tell of them. Call [`Peers::reported`] when the NameNode knows.
    ///
    /// Source: Hadoop 3.5.0 `BPServiceActor#sendHeartBeat`.
    pub(crate) fn due_report(&self) -> Option<Vec<SlowPeerReportProto>> {
        let interval = self.report_interval.get();
        let is_due = lock(&self.last_report).is_none_or(|last| last.elapsed() >= interval);
        is_due.then(|| self.report())
    }

    fn report(&self) -> Vec<SlowPeerReportProto> {
        if !self.is_on.load(Ordering::Relaxed) {
            return Vec::new();
        }
        let min_samples = self.min_samples.load(Ordering::Relaxed);
        let min_nodes = usize::try_from(self.min_nodes.load(Ordering::Relaxed));
        let low_ms = self.low_ms.load(Ordering::Relaxed) as f64;
        let now = self.start.elapsed();
        let means = lock(&self.measured).each_mut().map(|kind| kind.means(min_samples, now));
        let mut slow = BTreeMap::new();
        for means in means {
            for (name, outlier) in outliers(&means, min_nodes.unwrap_or(usize::MAX), low_ms) {
                slow.entry(name).or_insert(outlier);
            }
        }
        let report = slow.into_iter().map(|(name, outlier)| SlowPeerReportProto {
            data_node_id: Some(name),
            aggregate_latency: Some(outlier.latency_ms),
            median: Some(outlier.median_ms),
            mad: Some(outlier.mad_ms),
            upper_limit_latency: Some(outlier.limit_ms),
        });
        report.collect()
    }

    /// The NameNode has taken a report.
    pub(crate) fn reported(&self) {
        *lock(&self.last_report) = Some(Instant::now());
    }
}

/// What peers are called in reports: by their pages, or by their data transfer if they have none.
///
/// Source: Hadoop 3.5.0 `BlockReceiver`.
fn name(peer: &DatanodeIDProto) -> String {
    let ports = [peer.info_secure_port.unwrap_or_default(), peer.info_port, peer.xfer_port];
    let port = ports.into_iter().find(|port| *port != 0).unwrap_or_default();
    format!("{}:{port}", peer.ip_addr)
}

/// A peer that is measured.
pub(crate) struct Measured<'a> {
    peers: &'a Peers,
    name: String,
    kind: Kind,
}

impl Measured<'_> {
    /// Begins one measurement.
    pub(crate) fn start(&self) -> Measurement<'_> {
        Measurement { of: self, start: Some(Instant::now()) }
    }
}

/// Counts the time until the peer has done what it was asked. Dropped before, it counts what was waited if that is more
/// than the peer takes otherwise: who waited long enough gives up, but waits also end because others were quicker.
pub(crate) struct Measurement<'a> {
    of: &'a Measured<'a>,
    start: Option<Instant>,
}

impl Measurement<'_> {
    /// The peer has done it, or has failed: how soon it fails says nothing.
    pub(crate) fn end(mut self, is_done: bool) {
        if let Some(start) = self.start.take().filter(|_| is_done) {
            self.of.peers.add(&self.of.name, self.of.kind, start.elapsed());
        }
    }
}

impl Drop for Measurement<'_> {
    fn drop(&mut self) {
        if let Some(start) = self.start {
            self.of.peers.add_if_longer(&self.of.name, self.of.kind, start.elapsed());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(number: u32) -> DatanodeIDProto {
        DatanodeIDProto {
            ip_addr: "10.0.0.1".into(),
            xfer_port: 9866,
            info_port: number,
            ..DatanodeIDProto::default()
        }
    }

    fn peers(outlier_min_samples: u64) -> Peers {
        Peers::new(&DataNodeConfig {
            peer_stats: true,
            outlier_min_nodes: 3,
            outlier_min_samples,
            ..DataNodeConfig::default()
        })
    }

    #[test]
    fn those_that_take_longest_are_told_once_an_interval() {
        let peers = peers(1);
        for number in 1..=4_u32 {
            let ms = Duration::from_millis(if number == 3 { 100 } else { 4 });
            for _ in 0..2 {
                peers.add(&name(&peer(number)), Kind::Send, ms);
            }
        }
        let told = |peers: &Peers| -> Option<Vec<String>> {
            Some(peers.due_report()?.into_iter().map(|slow| slow.data_node_id.unwrap()).collect())
        };
        assert_eq!(told(&peers), Some(vec!["10.0.0.1:3".to_string()]));
        assert!(told(&peers).is_some(), "until the NameNode has it");
        peers.reported();
        assert_eq!(told(&peers), None);
        peers.report_interval.set(Duration::ZERO);
        peers.min_nodes.store(5, Ordering::Relaxed);
        assert_eq!(told(&peers), Some(Vec::new()));
        peers.min_nodes.store(4, Ordering::Relaxed);
        peers.low_ms.store(200, Ordering::Relaxed);
        assert_eq!(told(&peers), Some(Vec::new()));
        peers.low_ms.store(5, Ordering::Relaxed);
        assert_eq!(told(&peers).unwrap().len(), 1);
        assert_eq!(peers.send_means().unwrap()["10.0.0.1:3"], 100.0);
        peers.turn(false);
        assert!(peers.send_means().is_none() && peers.of(&peer(1), Kind::Send).is_none());
        peers.turn(true);
        assert_eq!(told(&peers), Some(Vec::new()), "it begins anew");
    }

    #[test]
    fn reads_are_compared_with_reads() {
        let peers = peers(0);
        for number in 1..=4_u32 {
            peers.add(&name(&peer(number)), Kind::Send, Duration::from_millis(1));
            let ms = if number == 2 { 900 } else { 100 };
            peers.add(&name(&peer(number + 4)), Kind::Read, Duration::from_millis(ms));
        }
        let report = peers.due_report().unwrap();
        assert_eq!(report.len(), 1);
        assert_eq!(report[0].data_node_id.as_deref(), Some("10.0.0.1:6"));
        assert_eq!((report[0].aggregate_latency, report[0].median), (Some(900.0), Some(100.0)));
    }

    #[test]
    fn a_wait_that_is_given_up_counts_if_it_is_long_and_a_failure_does_not() {
        let peers = peers(0);
        let unpaged = DatanodeIDProto { info_port: 0, ..peer(0) };
        let measured = peers.of(&unpaged, Kind::Send).unwrap();
        let mean = || peers.send_means().unwrap().get("10.0.0.1:9866").copied();
        measured.start().end(false);
        assert_eq!(mean(), None);
        measured.start().end(true);
        assert!(mean().unwrap() < 1000.0);
        peers.add("10.0.0.1:9866", Kind::Send, Duration::from_secs(7200));
        let before = mean().unwrap();
        assert!(before >= 3_600_000.0);
        for _ in 0..10 {
            drop(measured.start());
        }
        assert_eq!(mean(), Some(before), "others were quicker, it was not");
        let other = peers.of(&peer(1), Kind::Send).unwrap();
        let wait = other.start();
        std::thread::sleep(Duration::from_millis(30));
        drop(wait);
        assert!(peers.send_means().unwrap()["10.0.0.1:1"] >= 30.0, "it has never answered");
        let start = Instant::now().checked_sub(Duration::from_secs(86_400));
        drop(Measurement { of: &measured, start });
        assert!(start.is_none() || mean().unwrap() > before);
    }
}
