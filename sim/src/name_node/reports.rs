//! What DataNodes tell: registrations, heartbeats, reports, bad replicas.

use super::NameNode;
use super::core::now;
use super::names::{Named, Target, XFER_PORT, sure};
use crate::data_node::Intent;
use crate::parts::Parts;
use cairn_master::contiguous::rounds::Said;
use cairn_master::orders::{self, Earlier, Truncation};
use cairn_master::reports::{self, Begun, Heard, Listed, Told};
use cairn_redundancy::{
    AdminIntent, AdminState, BlockRecovery, BlockRef, Changes, Command, FullReport, NodeAddress,
    NodeClaim, Registration, ReplicaEvent, ReportCall, ReportedReplica, StorageType,
};
use cairn_stripe::UnitIndex;

/// What the operator's lists say of a node that is meant to do that.
fn listed(intent: Intent) -> Listed {
    let intent = match intent {
        Intent::Serve => AdminIntent::InService,
        Intent::Leave => AdminIntent::Decommission,
        Intent::Away { until_ms } => AdminIntent::Maintenance { until_ms: now(until_ms).wall_ms },
    };
    Listed { intent, upgrade_domain: None }
}

/// The number of a machine's process: no other has it.
fn process(node: usize, life: u64) -> u64 {
    life << 8 | node as u64
}

impl NameNode {
    /// The DataNode for which a machine speaks.
    pub(crate) fn identity(&self, node: usize) -> usize {
        self.clones.get(&node).copied().unwrap_or(node)
    }

    /// Its UUID.
    pub(crate) fn uuid_of(&self, node: usize) -> String {
        format!("dn-{}", self.identity(node))
    }

    /// That, and the machine's address.
    pub(crate) fn named(&self, node: usize) -> Named {
        Named { uuid: self.uuid_of(node), ip: format!("10.0.0.{node}") }
    }

    /// Who is taken to speak when a machine does: where claims are not compared, the one that has registered.
    fn caller(&self, node: usize) -> Named {
        let named = self.named(node);
        let known = self.cluster.node_by_uuid(&named.uuid).filter(|_| self.bugs.goes_by_uuids);
        known.map_or(named.clone(), |known| Named { ip: known.address.ip.clone(), ..named })
    }

    /// Takes the `life`th process of a machine in, of which the operator's lists say that. Says whether it is taken:
    /// another one may have its place.
    pub(crate) fn register(&mut self, node: usize, life: u64, rack: &str, intent: Intent) -> bool {
        let Named { uuid, ip } = self.named(node);
        if self.bugs.goes_by_uuids {
            self.processes.insert(uuid.clone(), process(node, life));
        }
        let address = NodeAddress { ip, xfer_port: XFER_PORT, ..NodeAddress::default() };
        let registration = Registration {
            uuid,
            address,
            rack: rack.to_string(),
            software_version: "3.5.0".to_string(),
            process: Some(process(node, life)),
            asked: self.now(),
        };
        let taken = self.with_cluster(|cluster, lookup, now, _| {
            reports::register(cluster, lookup, registration, listed(intent), now)
        });
        taken.is_ok()
    }

    /// Acts on the operator's lists.
    pub(crate) fn set_intent(&mut self, node: usize, intent: Intent) {
        let found = self.cluster.node_by_uuid(&self.uuid_of(node));
        let Some(handle) = found.map(|node| node.handle) else { return };
        self.with_cluster(|cluster, lookup, now, _| {
            reports::list_again(cluster, lookup, handle, Some(listed(intent)), now);
        });
    }

    /// The rack that a node is known to be in.
    pub(crate) fn rack_of(&self, node: usize) -> Option<&str> {
        self.cluster.node_by_uuid(&self.uuid_of(node)).map(|node| node.rack.as_str())
    }

    /// What the cluster takes a node for.
    pub(crate) fn admin_state(&self, node: usize) -> Option<AdminState> {
        self.cluster.node_by_uuid(&self.uuid_of(node)).map(|node| node.admin)
    }

    /// Takes a heartbeat; gives commands and the leave to send a full report, or none to a process whose place another
    /// has.
    pub(crate) fn heartbeat(
        &mut self,
        (node, life): (usize, u64),
        told: Told,
        parts: &mut dyn Parts,
    ) -> Option<(Vec<Command>, Option<u64>)> {
        let named = self.caller(node);
        let number = match self.bugs.goes_by_uuids {
            true => self.processes.get(&named.uuid).copied(),
            false => Some(process(node, life)),
        };
        let claim = NodeClaim { process: number, ..named.claim() };
        let heard = self.with_cluster(|cluster, lookup, now, _| {
            reports::heartbeat(cluster, lookup, &claim, told, now)
        });
        let Heard { answer, from, said, .. } = heard.ok()?;
        if let Some(from) = from {
            let (mut encoded, mut packed) = (Vec::new(), Vec::new());
            for said in said {
                match said {
                    Said::Encoded(group) => encoded.push(group),
                    Said::Packed(container) => packed.push(container),
                }
            }
            self.take_encoded(from, encoded);
            if !packed.is_empty() {
                self.take_packed(from, packed);
            }
        }
        let commands = match from {
            Some(handle) => {
                let freed = self.freed_by_count(handle);
                let commands = answer.commands.into_iter().chain(freed).collect();
                parts.commands(&self.cluster, handle, commands)
            }
            None => answer.commands,
        };
        Some((commands, answer.report_lease))
    }

    /// Begins to take a full report under its lease; reports claim no process, as those of Hadoop's DataNodes, so that one
    /// of an earlier life may come late.
    pub(crate) fn begin_report(&mut self, node: usize, lease: u64) -> Option<ReportCall> {
        let now = self.now();
        let named = self.caller(node);
        reports::begin_report(&mut self.cluster, &named.claim(), lease, now).ok()?.ok()
    }

    /// Begins to take what is on a storage.
    pub(crate) fn begin_storage(
        &mut self,
        call: ReportCall,
        storage: (&str, StorageType),
        replicas: &[ReportedReplica],
    ) -> Begun {
        reports::begin_storage(&mut self.cluster, call, storage, replicas.to_vec())
    }

    /// Takes the next step of it. Says whether there are more.
    pub(crate) fn report_step(&mut self, report: &mut FullReport) -> bool {
        let mut changes = Changes::default();
        let more = self.with_cluster(|cluster, lookup, now, _| {
            cluster.full_report_step(lookup, report, now, &mut changes)
        });
        self.act_on(changes);
        more
    }

    /// Ends it. Says whether it counts.
    pub(crate) fn end_report(&mut self, call: ReportCall) -> bool {
        self.cluster.end_report_call(call, true).is_ok()
    }

    /// Takes what has happened on a storage.
    pub(crate) fn incremental_report(
        &mut self,
        node: usize,
        storage: (&str, StorageType),
        events: &[ReplicaEvent],
    ) {
        let named = self.caller(node);
        let changes = self.with_cluster(|cluster, lookup, _, _| {
            reports::incremental(cluster, lookup, &named.claim(), storage, events)
        });
        if let Ok(changes) = changes {
            self.act_on(changes);
        }
    }

    fn act_on(&mut self, changes: Changes) {
        self.follow(changes.into());
        self.pump();
    }

    /// A reader or DataNode has found a bad replica.
    pub(crate) fn report_bad(&mut self, target: &Target, block: BlockRef) {
        if !self.up {
            return;
        }
        let named = self.named(target.node);
        // It may know nothing of the node or of the replica any more.
        _ = self.with_cluster(|cluster, lookup, _, _| {
            reports::bad(cluster, lookup, (&named.claim(), &target.storage), block)
        });
        self.pump();
    }

    /// CRC32C of a group's units as first written; they travel with a reconstruction.
    pub(crate) fn recorded_crcs(&self, group: &BlockRef) -> Vec<(UnitIndex, u32)> {
        match self.bugs.compares_crcs {
            true => sure(orders::recorded_crcs(&self.store, group)),
            false => Vec::new(),
        }
    }

    /// To what a recovery cuts its block off.
    pub(crate) fn truncation(&self, recovery: &BlockRecovery) -> Truncation {
        sure(orders::truncation(&self.store, recovery))
    }

    /// What it may take under earlier stamps.
    pub(crate) fn earlier(&self, recovery: &BlockRecovery) -> Option<Earlier> {
        sure(orders::earlier(&self.store, recovery))
    }
}
