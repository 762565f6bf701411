//! Leave to send a full block report, so that not all DataNodes send theirs at once.
//!
//! Source: Hadoop 3.5.0 `BlockReportLeaseManager`.

use crate::clock::{Now, millis};
use crate::config::Config;
use crate::handle::NodeHandle;
use std::collections::BTreeMap;

/// The leaves given out and not used yet.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReportLeases {
    given: BTreeMap<NodeHandle, Lease>,
    last_id: u64,
    /// Others have given out those up to here.
    of_others: u64,
}

#[derive(Clone, Copy, Debug)]
struct Lease {
    id: u64,
    until_ms: u64,
}

impl ReportLeases {
    /// Leaves out numbers that others may have given out.
    pub(crate) fn begin_after(&mut self, of_others: u64) {
        (self.of_others, self.last_id) = (of_others, self.last_id.max(of_others));
    }

    /// Whether a valid lease shows that its node has heard of who has given it before it reported: the number of another
    /// one does not, nor does none, where there are others.
    pub(crate) fn is_proof(&self, id: u64) -> bool {
        self.of_others == 0 || id > self.of_others
    }

    /// Gives `node` a lease if few enough nodes have one.
    pub(crate) fn request(&mut self, node: NodeHandle, config: &Config, now: Now) -> Option<u64> {
        self.given.retain(|other, lease| *other != node && lease.until_ms > now.mono_ms);
        if self.given.len() >= config.report_leases.max(1) {
            return None;
        }
        self.last_id += 1;
        let lease_len = millis(config.report_lease_len);
        let until_ms = now.mono_ms.saturating_add(lease_len);
        self.given.insert(node, Lease { id: self.last_id, until_ms });
        Some(self.last_id)
    }

    /// Whether a report with this lease may be taken. 0 is what a node sends that never asked.
    pub(crate) fn is_valid(&self, node: NodeHandle, id: u64, now: Now) -> bool {
        id == 0 || self.given.get(&node).is_some_and(|l| l.id == id && l.until_ms > now.mono_ms)
    }

    /// Takes a lease back that is used, unless the node has another by now.
    pub(crate) fn use_up(&mut self, node: NodeHandle, id: u64) {
        if self.given.get(&node).is_some_and(|lease| lease.id == id) {
            self.release(node);
        }
    }

    /// Takes the lease back, used or not.
    pub(crate) fn release(&mut self, node: NodeHandle) {
        self.given.remove(&node);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(mono_ms: u64) -> Now {
        Now { mono_ms, elapsed_ms: 0, wall_ms: 0 }
    }

    #[test]
    fn a_bounded_number_of_nodes_may_report() {
        let config = Config { report_leases: 2, ..Config::default() };
        let mut leases = ReportLeases::default();
        let [a, b, c] = [0, 1, 2].map(NodeHandle);
        let lease = leases.request(a, &config, at(0)).unwrap();
        assert!(leases.request(b, &config, at(0)).is_some());
        assert_eq!(leases.request(c, &config, at(0)), None);
        assert!(leases.is_valid(a, lease, at(1)) && !leases.is_valid(b, lease, at(1)));
        leases.release(a);
        assert!(!leases.is_valid(a, lease, at(1)));
        assert!(leases.request(c, &config, at(1)).is_some());
    }

    #[test]
    fn where_others_gave_leases_only_a_new_one_is_a_proof() {
        let mut leases = ReportLeases::default();
        assert!(leases.is_proof(0) && leases.is_proof(7));
        leases.begin_after(1 << 32);
        let lease = leases.request(NodeHandle(0), &Config::default(), at(0)).unwrap();
        assert!(leases.is_proof(lease) && !leases.is_proof(0) && !leases.is_proof(7));
    }

    #[test]
    fn a_lease_runs_out_and_makes_room() {
        let config = Config { report_leases: 1, ..Config::default() };
        let mut leases = ReportLeases::default();
        let lease = leases.request(NodeHandle(0), &config, at(0)).unwrap();
        assert!(!leases.is_valid(NodeHandle(0), lease, at(300_000)));
        assert!(leases.request(NodeHandle(1), &config, at(300_000)).is_some());
        assert!(leases.is_valid(NodeHandle(0), 0, at(300_000)));
    }
}
