//! What DataNodes have told a NameNode before it led, once it does.
//!
//! It counts at once for reads, for repair and for the end of safe mode. For a deletion it counts when the DataNode has
//! heard who leads and has reported in full since: until then another one's orders may have been obeyed of which nobody has
//! told (HDFS-1972). Cairn's DataNodes report by themselves when they hear of a new leader; those that do not are asked to
//! register, which has them report, one after the other.

use crate::clock::{Now, millis};
use crate::cluster::Cluster;
use crate::handle::NodeHandle;
use crate::storage::StorageState;

/// Heartbeats in which a node may begin to report by itself.
const PATIENCE: u32 = 3;

impl Cluster {
    /// Has this be the cluster of who leads from now on, where others have led: leases for full reports have numbers that
    /// none of them has given out.
    pub fn begin_to_lead(&mut self, leases_of_others: u64) {
        self.nodes.leases_mut().begin_after(leases_of_others);
    }

    /// Ends the safe mode of a start where what was kept is enough, without a wait for the next tick. Returns whether it has
    /// ended by that.
    pub fn look_at_start(&mut self, now: Now) -> bool {
        let live = self.live_count();
        let has_ended = self.safe_mode.tick(now, live);
        if has_ended {
            self.scan_if_new();
        }
        has_ended
    }

    /// Whether a node is to register so that it reports in full. To be asked with each of its heartbeats.
    pub(crate) fn is_to_prove(&mut self, handle: NodeHandle, wants_lease: bool, now: Now) -> bool {
        let Some(silent) = self.node(handle).taken_over else { return false };
        let storages = self.node(handle).storages.iter().map(|storage| self.storage(*storage));
        if storages.into_iter().all(|s| s.reported || s.state == StorageState::Failed) {
            self.nodes.node_mut(handle).taken_over = None;
            return false;
        }
        let silent = if wants_lease { 0 } else { silent.saturating_add(1) };
        self.nodes.node_mut(handle).taken_over = Some(silent);
        let leases = self.config.report_leases.max(1) as u64;
        let pause_ms = millis(self.config.heartbeat_interval) / leases;
        let is_due = silent >= PATIENCE && now.mono_ms >= self.asks_next_ms;
        if is_due {
            self.asks_next_ms = now.mono_ms.saturating_add(pause_ms);
        }
        is_due
    }
}

#[cfg(test)]
mod failover;
#[cfg(test)]
mod tests;
