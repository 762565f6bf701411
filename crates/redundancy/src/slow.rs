//! DataNodes and disks that DataNodes call slow: each tells from time to time which others take much longer than most
//! for what it sends them, and which of its own disks do.
//!
//! A report holds for three intervals, so that one may be missed. Which nodes new blocks and readers keep off is
//! found out at intervals of its own, from the reports that hold then.
//!
//! Source: Hadoop 3.5.0 `SlowPeerTracker`, `SlowDiskTracker`.

use crate::Outlier;
use crate::SlowDisk;
use crate::SlowNode;
use crate::clock::Now;
use crate::cluster::Cluster;
use crate::handle::NodeHandle;
use crate::node::DataNode;
use std::cmp::Reverse;

/// Entries that are taken of one report: it comes from outside.
const ENTRIES_MAX: usize = 64;
/// Bytes of a disk's path that are taken.
const PATH_LEN_MAX: usize = 4096;

impl Cluster {
    /// Takes the report of a node on others, each named by an address and one of its ports, with how slow it is.
    /// Those that nobody is called are passed over. Returns those that this node has not called slow lately, each once.
    pub fn slow_peers_reported<'a>(
        &mut self,
        reporter: NodeHandle,
        peers: impl IntoIterator<Item = (&'a str, Outlier)>,
        now: Now,
    ) -> Vec<NodeHandle> {
        let mut new = Vec::new();
        if !self.config.slow.takes_peers {
            return new;
        }
        for (name, outlier) in peers.into_iter().take(ENTRIES_MAX) {
            let Some(node) = self.peer_named(name) else { continue };
            if self.slow.note_peer(node, (reporter, outlier), &self.config.slow, now) {
                new.push(node);
            }
        }
        new
    }

    /// Takes the report of a node on its disks, in the place of the one before.
    pub fn slow_disks_reported(
        &mut self,
        reporter: NodeHandle,
        mut disks: Vec<SlowDisk>,
        now: Now,
    ) {
        if !self.config.slow.takes_disks || disks.is_empty() {
            return;
        }
        disks.truncate(ENTRIES_MAX);
        disks.retain(|disk| disk.path.len() <= PATH_LEN_MAX);
        self.slow.note_disks(reporter, disks, now);
    }

    /// Who is meant by `address:port`, where the port is any of a node's. Hadoop's nodes name that of their pages, and
    /// its NameNode looks at the address only: that will do where one node is there.
    ///
    /// Source: Hadoop 3.5.0 `DatanodeManager#getDnDescriptorsFromIpAddr`.
    fn peer_named(&self, name: &str) -> Option<NodeHandle> {
        let (host, port) = name.rsplit_once(':')?;
        let port: u16 = port.parse().ok()?;
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let has_port = |node: &&DataNode| {
            let at = &node.address;
            [at.info_secure_port, at.info_port, at.xfer_port, at.ipc_port].contains(&port)
        };
        let mut exact = self.nodes_on_host(host).filter(|_| port != 0).filter(has_port);
        if let Some(node) = exact.next() {
            return Some(node.handle);
        }
        let mut all = self.nodes_on_host(host);
        all.next().filter(|_| all.next().is_none()).map(|node| node.handle)
    }

    /// The nodes that most others call slow, at most `max`.
    pub fn slow_nodes(&self, max: usize, now: Now) -> Vec<SlowNode> {
        let told = self.slow.nodes(&self.config.slow, now);
        let mut slow: Vec<SlowNode> = told.filter(|slow| !self.node(slow.node).forgotten).collect();
        slow.sort_by_key(|slow| Reverse(slow.reports.len()));
        slow.truncate(max);
        slow
    }

    /// The disks that are called slow, the slowest first, at most `max`.
    pub fn slow_disks(&self, max: usize, now: Now) -> Vec<(NodeHandle, &SlowDisk)> {
        let told = self.slow.disks(&self.config.slow, now);
        let mut disks: Vec<_> = told.filter(|(node, _)| !self.node(*node).forgotten).collect();
        disks.sort_by(|(_, a), (_, b)| b.max_ms().total_cmp(&a.max_ms()));
        disks.truncate(max);
        disks
    }

    /// Whether a node is one of those to keep off.
    pub fn is_slow(&self, node: NodeHandle) -> bool {
        self.slow.is_avoided(node)
    }

    /// Chooses the nodes to keep off, if it is time, and forgets what holds no more.
    pub(crate) fn collect_slow(&mut self, now: Now) {
        let config = &self.config.slow;
        let takes_any = config.takes_peers || config.takes_disks;
        if !takes_any || !self.slow.begin_collecting(config, now) {
            return;
        }
        self.slow.forget_old(config, now);
        if !config.takes_peers {
            return;
        }
        let slow = self.slow_nodes(config.nodes_avoided, now);
        self.slow.avoid(slow.into_iter().map(|slow| slow.node));
    }
}

pub(crate) mod reports;
#[cfg(test)]
mod tests;
