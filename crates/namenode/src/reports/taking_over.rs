//! What DataNodes have told a member before it led, taken over by its NameNode before that serves.
//!
//! All that was agreed on has been applied by then, so it is judged as what comes later is. DataNodes go through the same
//! checks as when they register.

use std::sync::Arc;
use std::time::Instant;

use cairn_master::reports::{self, Begun, Told};
use cairn_namespace::Result;
use cairn_process::disk_work::step_aside;
use cairn_redundancy::{Changes, KeptList, KeptNode, NodeClaim, Registration, ReportCall};
use tokio::task::JoinSet;
use tracing::{info, warn};

use crate::kept_reports::KeptReports;
use crate::node::NameNode;
use crate::topology::DEFAULT_RACK;

/// Racks that are asked for at a time: a program may have to say them.
const RACKS: usize = 16;

impl NameNode {
    /// Takes over what was kept, and ends safe mode if that is enough.
    pub(crate) async fn take_over(self: &Arc<Self>, kept: &KeptReports) -> Result<()> {
        let begun = Instant::now();
        let (mut nodes, mut replicas) = (0, 0);
        for node in self.with_racks(kept.take()).await {
            let (registration, heartbeat, lists) = node.into_lists();
            let (uuid, process) = (registration.uuid.clone(), registration.process);
            let address = registration.address.clone();
            if let Err(why) = self.take_in(registration) {
                warn!(
                    uuid,
                    ?why,
                    "a DataNode that was known before this NameNode led is not taken in"
                );
                continue;
            }
            let claim = NodeClaim {
                uuid: &uuid,
                ip: &address.ip,
                xfer_port: address.xfer_port.into(),
                process,
            };
            if let Some(heartbeat) = heartbeat {
                let told = Told { heartbeat, ..Told::default() };
                // It has asked for nothing here, and nothing is ordered before all is taken over.
                if let Err(why) = self.take_heartbeat(&claim, told, |_, _, _| ()) {
                    warn!(uuid, %why, "a DataNode that was known before this NameNode led is refused");
                    continue;
                }
            }
            let handle = self.cluster().registered(&claim);
            let Ok(handle) = handle else { continue };
            let call = self.cluster().begin_kept_report(handle);
            nodes += 1;
            for list in lists {
                replicas += list.replicas.len();
                let storage = list.uuid.clone();
                let bad = list.bad.clone();
                self.take_list(&uuid, call, list).await?;
                let bad: Vec<_> =
                    bad.iter().map(|block| (claim, storage.as_str(), *block)).collect();
                // What is not known any more is not bad.
                self.mark_bad(&bad);
            }
        }
        let now = self.now();
        let has_ended = self.cluster().look_at_start(now);
        info!(
            nodes,
            replicas,
            ms = begun.elapsed().as_millis() as u64,
            leaves_safe_mode = has_ended,
            "what DataNodes have told before this NameNode led is known"
        );
        Ok(())
    }

    /// Those with their racks, but for those of whom that cannot be known.
    async fn with_racks(self: &Arc<Self>, nodes: Vec<KeptNode>) -> Vec<KeptNode> {
        let mut asking = JoinSet::new();
        let mut found = Vec::with_capacity(nodes.len());
        for mut node in nodes {
            if asking.len() >= RACKS {
                found.extend(asking.join_next().await.and_then(Result::ok).flatten());
            }
            let asks = Arc::clone(self);
            asking.spawn(async move {
                node.registration = asks.with_rack(node.registration.clone()).await?;
                Some(node)
            });
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

    /// Takes what a storage has.
    async fn take_list(&self, uuid: &str, call: ReportCall, list: KeptList) -> Result<()> {
        let KeptList { uuid: storage, storage_type, replicas, bad: _ } = list;
        self.note("kept report", storage.len(), (uuid.to_string(), storage.clone()));
        let begun =
            reports::begin_storage(&mut self.cluster(), call, (&storage, storage_type), replicas);
        let mut report = match begun {
            Begun::Report(report) => report,
            Begun::Refused(why) => {
                warn!(uuid, storage, %why, "what a storage has is not taken over");
                return Ok(());
            }
            Begun::Overtaken => return Ok(()),
        };
        let mut more = true;
        while more {
            let (mut changes, now) = (Changes::default(), self.now());
            let next = report.next_blocks();
            let replicas = report.next_replicas().to_vec();
            self.note("step of a kept report", size_of_val(&*replicas), replicas);
            more = self.with_cluster_and(&next, |cluster, lookup| {
                cluster.full_report_step(lookup, &mut report, now, &mut changes)
            })?;
            super::warn_of(&changes);
            self.follow_up_later(changes.into());
            step_aside().await;
        }
        Ok(())
    }
}
