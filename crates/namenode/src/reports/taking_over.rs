//! What DataNodes have told a member before it led, taken over by its NameNode.
//!
//! All that was agreed on has been applied by then, so it is judged as what comes later is. DataNodes go through the same
//! checks as when they register, and blocks that are not complete are settled before anybody is served; the rest is taken
//! over while it serves.

use std::sync::Arc;
use std::time::{Duration, Instant};

use cairn_master::reports::Told;
use cairn_namespace::{Result, query};
use cairn_operate::workers::Worker;
use cairn_process::disk_work::step_aside;
use cairn_redundancy::{Changes, NodeClaim, Registration};
use tokio::task::JoinSet;
use tracing::{error, info, warn};

use crate::kept_reports::{Heard, KeptReports};
use crate::node::NameNode;
use crate::topology::DEFAULT_RACK;

/// Racks that are asked for at a time: a program may have to say them.
const RACKS: usize = 16;
/// Blocks that are settled before others have their turn.
const SETTLED: usize = 1000;
/// The wait after the namespace could not be read.
const REST: Duration = Duration::from_secs(1);

impl NameNode {
    /// Begins to take over what was kept.
    pub(crate) async fn take_over(self: &Arc<Self>, kept: &KeptReports) -> Result<()> {
        let begun = Instant::now();
        let Some((kept, is_enough)) = kept.take() else { return Ok(()) };
        let nodes = kept.nodes().map(|(node, heartbeat)| (node.clone(), heartbeat.cloned()));
        let nodes = self.with_racks(nodes.collect()).await;
        let count = nodes.len();
        for node in nodes {
            self.take_node_over(node);
        }
        self.cluster().take_over(kept, is_enough);
        let open = self.ns.read(|store| query::open_blocks(store))?;
        for blocks in open.chunks(SETTLED) {
            self.with_cluster(|cluster, lookup| cluster.settle(lookup, blocks));
            step_aside().await;
        }
        info!(
            nodes = count,
            open_blocks = open.len(),
            ms = begun.elapsed().as_millis() as u64,
            is_enough,
            "what DataNodes have told before this NameNode led is taken over"
        );
        Ok(())
    }

    /// Takes a DataNode in that was known before.
    fn take_node_over(&self, (registration, heartbeat): Heard) {
        let (uuid, process) = (registration.uuid.clone(), registration.process);
        let address = registration.address.clone();
        if let Err(why) = self.take_in(registration) {
            warn!(uuid, ?why, "a DataNode that was known before this NameNode led is not taken in");
            return;
        }
        let claim = NodeClaim {
            uuid: &uuid,
            ip: &address.ip,
            xfer_port: address.xfer_port.into(),
            process,
        };
        let Some(heartbeat) = heartbeat else { return };
        let told = Told { heartbeat, ..Told::default() };
        // It has asked for nothing here, and nothing is ordered before all is taken over.
        if let Err(why) = self.take_heartbeat(&claim, told, |_, _, _| ()) {
            warn!(uuid, %why, "a DataNode that was known before this NameNode led is refused");
        }
    }

    /// Takes over what is left, a step at a time.
    pub(crate) async fn finish_taking_over(self: Arc<Self>, worker: Arc<Worker>) {
        if !self.cluster().is_taking_over() {
            return worker.off().await;
        }
        let begun = Instant::now();
        loop {
            let mut changes = Changes::default();
            let next = self.cluster().next_kept_blocks();
            self.note("step of what was kept", size_of_val(&*next), next.clone());
            let step = self.with_cluster_and(&next, |cluster, lookup| {
                cluster.take_over_step(lookup, &mut changes)
            });
            super::warn_of(&changes);
            self.follow_up_later(changes.into());
            match step {
                Ok(true) => step_aside().await,
                Ok(false) => break,
                Err(why) => {
                    error!(%why, "what DataNodes have told before this NameNode led cannot be judged");
                    worker.failed(&why);
                    tokio::time::sleep(REST).await;
                }
            }
        }
        let now = self.now();
        let (has_ended, taken) = self.change_safe_mode(|cluster| cluster.end_taking_over(now));
        drop(taken);
        info!(
            ms = begun.elapsed().as_millis() as u64,
            is_over = has_ended,
            "all that DataNodes have told before this NameNode led is judged"
        );
        worker.off().await;
    }

    /// Those with their racks, but for those of whom that cannot be known.
    async fn with_racks(self: &Arc<Self>, nodes: Vec<Heard>) -> Vec<Heard> {
        let mut asking = JoinSet::new();
        let mut found = Vec::with_capacity(nodes.len());
        for (registration, heartbeat) in nodes {
            if asking.len() >= RACKS {
                found.extend(asking.join_next().await.and_then(Result::ok).flatten());
            }
            let asks = Arc::clone(self);
            asking.spawn(async move { Some((asks.with_rack(registration).await?, heartbeat)) });
        }
        while let Some(asked) = asking.join_next().await {
            found.extend(asked.ok().flatten());
        }
        found
    }

    /// One with its rack, unless that cannot be known.
    pub(super) async fn with_rack(&self, mut registration: Registration) -> Option<Registration> {
        let address = &registration.address;
        if let Some(is_resolved) = self.config.name_check {
            let ip = address.ip.parse().ok()?;
            let asked = tokio::task::spawn_blocking(move || is_resolved(ip)).await;
            if !asked.unwrap_or_default() {
                warn!(%ip, "a DataNode's address has no name");
                return None;
            }
        }
        let rack = match self.topology.rack_of_node(address).await {
            Some(rack) => rack,
            None if self.config.refuses_unknown_racks => return None,
            None => DEFAULT_RACK.to_string(),
        };
        (registration.rack, registration.asked) = (rack, self.now());
        Some(registration)
    }
}
