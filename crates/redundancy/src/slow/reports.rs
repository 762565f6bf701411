//! What DataNodes say of slow ones among them and of slow disks, as long as it holds.

use crate::clock::{Now, millis};
use crate::config::SlowConfig;
use crate::handle::NodeHandle;
use std::collections::{BTreeMap, BTreeSet};

/// How far off a node is from those that its reporter compares it with, in milliseconds.
///
/// Source: Hadoop 3.5.0 `OutlierMetrics`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Outlier {
    /// What it takes on average.
    pub latency_ms: f64,
    /// The median of all.
    pub median_ms: f64,
    /// Their median absolute deviation.
    pub mad_ms: f64,
    /// What is slow is above this.
    pub limit_ms: f64,
}

/// A disk that its node calls slow: its mean latencies in milliseconds, of those kinds of work in which it is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SlowDisk {
    /// The volume's folder.
    pub path: String,
    /// Of work on names and attributes.
    pub metadata_ms: Option<f64>,
    /// Of reads.
    pub read_ms: Option<f64>,
    /// Of writes.
    pub write_ms: Option<f64>,
}

impl SlowDisk {
    /// The worst of its latencies, milliseconds.
    pub fn max_ms(&self) -> f64 {
        [self.metadata_ms, self.read_ms, self.write_ms].into_iter().flatten().fold(0.0, f64::max)
    }
}

/// A node that others call slow.
#[derive(Clone, Debug, PartialEq)]
pub struct SlowNode {
    /// The node.
    pub node: NodeHandle,
    /// Who says so, in the order of handles, and how slow it is to them.
    pub reports: Vec<(NodeHandle, Outlier)>,
}

/// The reports of a cluster's nodes.
#[derive(Debug, Default)]
pub(crate) struct SlowReports {
    /// By the node that is slow and the one that says so; with monotonic milliseconds.
    peers: BTreeMap<NodeHandle, BTreeMap<NodeHandle, (u64, Outlier)>>,
    /// What each node said of its disks last.
    disks: BTreeMap<NodeHandle, (u64, Vec<SlowDisk>)>,
    /// Nodes to keep off.
    avoided: BTreeSet<NodeHandle>,
    /// When these are chosen next, monotonic milliseconds.
    next_collect_ms: u64,
}

fn holds(config: &SlowConfig, reported_ms: u64, now: Now) -> bool {
    now.mono_ms.saturating_sub(reported_ms) < millis(config.report_interval).saturating_mul(3)
}

impl SlowReports {
    /// `reporter` calls a node slow. Returns whether it has not done so lately.
    pub(super) fn note_peer(
        &mut self,
        node: NodeHandle,
        (reporter, outlier): (NodeHandle, Outlier),
        config: &SlowConfig,
        now: Now,
    ) -> bool {
        let reports = self.peers.entry(node).or_default();
        let before = reports.insert(reporter, (now.mono_ms, outlier));
        before.is_none_or(|(at_ms, _)| !holds(config, at_ms, now))
    }

    /// What a node says of its disks, in the place of what it said before.
    pub(super) fn note_disks(&mut self, reporter: NodeHandle, disks: Vec<SlowDisk>, now: Now) {
        self.disks.insert(reporter, (now.mono_ms, disks));
    }

    /// The nodes that are called slow, by whom, as far as that holds.
    pub(super) fn nodes(&self, config: &SlowConfig, now: Now) -> impl Iterator<Item = SlowNode> {
        self.peers.iter().filter_map(move |(node, reports)| {
            let held = reports.iter().filter(|(_, (at_ms, _))| holds(config, *at_ms, now));
            let reports: Vec<_> = held.map(|(from, (_, outlier))| (*from, *outlier)).collect();
            (!reports.is_empty()).then_some(SlowNode { node: *node, reports })
        })
    }

    /// The disks that their nodes call slow, as far as that holds.
    pub(super) fn disks(
        &self,
        config: &SlowConfig,
        now: Now,
    ) -> impl Iterator<Item = (NodeHandle, &SlowDisk)> {
        let held = self.disks.iter().filter(move |(_, (at_ms, _))| holds(config, *at_ms, now));
        held.flat_map(|(node, (_, disks))| disks.iter().map(|disk| (*node, disk)))
    }

    /// Whether a node is one of those to keep off.
    pub(super) fn is_avoided(&self, node: NodeHandle) -> bool {
        self.avoided.contains(&node)
    }

    /// These are the nodes to keep off.
    pub(super) fn avoid(&mut self, nodes: impl IntoIterator<Item = NodeHandle>) {
        self.avoided = nodes.into_iter().collect();
    }

    /// Whether these are to be chosen anew; the next time is an interval later then.
    pub(super) fn begin_collecting(&mut self, config: &SlowConfig, now: Now) -> bool {
        let is_due = now.mono_ms >= self.next_collect_ms;
        if is_due {
            self.next_collect_ms = now.mono_ms.saturating_add(millis(config.collect_interval));
        }
        is_due
    }

    /// Nodes and disks of which anything is kept, whether it holds or not.
    #[cfg(test)]
    pub(super) fn kept(&self) -> (usize, usize) {
        (self.peers.len(), self.disks.len())
    }

    pub(super) fn forget_old(&mut self, config: &SlowConfig, now: Now) {
        for reports in self.peers.values_mut() {
            reports.retain(|_, (at_ms, _)| holds(config, *at_ms, now));
        }
        self.peers.retain(|_, reports| !reports.is_empty());
        self.disks.retain(|_, (at_ms, _)| holds(config, *at_ms, now));
    }

    /// Makes what is kept not fit together, to see that this is noticed.
    #[cfg(test)]
    pub(crate) fn damage(&mut self) {
        self.peers.insert(NodeHandle(0), BTreeMap::new());
    }

    /// Panics if what is kept does not fit together.
    pub(crate) fn check_invariants(&self) {
        assert!(self.peers.values().all(|reports| !reports.is_empty()), "slow, and nobody says so");
    }

    /// Settings have changed: what is not to be taken any more is forgotten.
    pub(crate) fn follow(&mut self, config: &SlowConfig) {
        if !config.takes_peers {
            self.peers.clear();
            self.avoided.clear();
        }
        if !config.takes_disks {
            self.disks.clear();
        }
        self.next_collect_ms = 0;
    }
}
