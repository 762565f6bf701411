//! What DataNodes tell: registrations, heartbeats, reports, bad replicas, ended recoveries.
//!
//! Follows `crates/namenode/src/protocol/datanode/{register,report,commands,synchronize}.rs`.

use super::{CallError, NameNode, Named, Target, XFER_PORT, with_cluster};
use crate::data_node::{FullReport, Intent};
use crate::parts::Parts;
use cairn_namespace::ops::commit_block_synchronization::CommitBlockSynchronization;
use cairn_namespace::ops::complete_blocks::CompleteBlocks;
use cairn_namespace::ops::unit_crcs::{BlockCrcs, RecordUnitCrcs};
use cairn_redundancy::{
    AdminIntent, AdminState, BlockLookup, BlockRef, Changes, Command, Heartbeat, NodeAddress,
    NodeClaim, Registration, ReplicaEvent, StorageType, Synchronized,
};
use cairn_stripe::{BlockId, GenerationStamp};

impl NameNode {
    /// Takes the `life`th process of a node in.
    pub(crate) fn register(&mut self, node: usize, life: u64, rack: &str) {
        let Named { uuid, ip } = Named::of(node);
        let address = NodeAddress { ip, xfer_port: XFER_PORT, ..NodeAddress::default() };
        let now = self.now();
        let registration = Registration {
            uuid,
            address,
            rack: rack.to_string(),
            software_version: "3.5.0".to_string(),
            process: Some(life),
            asked: now,
        };
        let taken =
            with_cluster!(self, |cluster, lookup| cluster.register(lookup, registration, now));
        assert!(taken.is_ok(), "no two processes of dn-{node} run at a time: {taken:?}");
    }

    /// Acts on the operator's lists. Follows `NameNode::refresh_nodes` of `crates/namenode/src/node.rs`.
    pub(crate) fn set_intent(&mut self, node: usize, intent: Intent) {
        let found = self.cluster.node_by_uuid(&format!("dn-{node}"));
        let Some(handle) = found.map(|node| node.handle) else { return };
        let intent = match intent {
            Intent::Serve => AdminIntent::InService,
            Intent::Leave => AdminIntent::Decommission,
            Intent::Away { until_ms } => {
                AdminIntent::Maintenance { until_ms: super::now(until_ms).wall_ms }
            }
        };
        let now = self.now();
        with_cluster!(self, |cluster, lookup| {
            cluster.set_admin_intent(lookup, handle, intent, now);
        });
    }

    /// The rack that a node is known to be in.
    pub(crate) fn rack_of(&self, node: usize) -> Option<&str> {
        self.cluster.node_by_uuid(&format!("dn-{node}")).map(|node| node.rack.as_str())
    }

    /// What the cluster takes a node for.
    pub(crate) fn admin_state(&self, node: usize) -> Option<AdminState> {
        self.cluster.node_by_uuid(&format!("dn-{node}")).map(|node| node.admin)
    }

    /// Takes a heartbeat; gives commands and the leave to send a full report.
    pub(crate) fn heartbeat(
        &mut self,
        (node, life): (usize, u64),
        heartbeat: Heartbeat,
        parts: &mut dyn Parts,
    ) -> (Vec<Command>, Option<u64>) {
        let now = self.now();
        let named = Named::of(node);
        let claim = NodeClaim { process: Some(life), ..named.claim() };
        let answer = with_cluster!(self, |cluster, lookup| cluster
            .heartbeat(lookup, &claim, heartbeat, now));
        let answer = answer.expect("no two processes of a node run at a time");
        let commands = match self.cluster.registered(&claim) {
            Ok(handle) => parts.commands(&self.cluster, handle, answer.commands),
            Err(_) => answer.commands,
        };
        (commands, answer.report_lease)
    }

    /// Takes a full report of all storages, under its lease; reports claim no process, as those of Hadoop's
    /// DataNodes, so that one of an earlier life may come late.
    pub(crate) fn full_report(&mut self, node: usize, lease: u64, storages: &FullReport) -> bool {
        let now = self.now();
        let reporter = self.cluster.registered(&Named::of(node).claim());
        let Ok(handle) = reporter else { return false };
        let Ok(call) = self.cluster.begin_report_call(handle, lease, now) else { return false };
        for (storage, kind, replicas) in storages {
            let storage = (storage.as_str(), *kind);
            let changes = with_cluster!(self, |cluster, lookup| {
                cluster.full_report(lookup, call, storage, replicas, now)
            });
            self.act_on(changes);
        }
        self.cluster.end_report_call(call, true).is_ok()
    }

    /// Takes what has happened on a storage.
    pub(crate) fn incremental_report(
        &mut self,
        node: usize,
        storage: (&str, StorageType),
        events: &[ReplicaEvent],
    ) {
        let Ok(handle) = self.cluster.registered(&Named::of(node).claim()) else { return };
        let changes = with_cluster!(self, |cluster, lookup| {
            cluster.incremental_report(lookup, handle, storage, events)
        });
        self.act_on(changes);
    }

    fn act_on(&mut self, changes: Changes) {
        let crcs = |id: &BlockId| {
            let facts = self.facts_of(*id)?;
            let units = self.cluster.unit_crcs(*id, &facts);
            Some(BlockCrcs { id: *id, gs: facts.gs, units })
        };
        let blocks: Vec<BlockCrcs> = changes.ready.iter().filter_map(crcs).collect();
        if !blocks.is_empty() {
            self.own(CompleteBlocks { blocks });
            self.note_completed(&changes.ready);
        }
        if changes.late_crcs.is_empty() {
            return;
        }
        let mut blocks: Vec<BlockCrcs> = Vec::new();
        for late in changes.late_crcs {
            let at = blocks.iter().position(|block| block.id == late.id).unwrap_or_else(|| {
                blocks.push(BlockCrcs { id: late.id, gs: late.gs, units: Vec::new() });
                blocks.len() - 1
            });
            let units = &mut blocks[at].units;
            if units.len() <= late.unit.as_usize() {
                units.resize(late.unit.as_usize() + 1, None);
            }
            units[late.unit.as_usize()] = Some(late.crc32c);
        }
        self.own(RecordUnitCrcs { blocks });
    }

    /// A reader or DataNode has found a bad replica.
    pub(crate) fn report_bad(&mut self, target: &Target, block: BlockRef) {
        if !self.up {
            return;
        }
        let Ok(handle) = self.cluster.registered(&Named::of(target.node).claim()) else { return };
        // It may know nothing of the replica any more.
        _ = with_cluster!(self, |cluster, lookup| {
            cluster.report_bad(lookup, handle, &target.storage, block)
        });
    }

    /// CRC32C of a group's units as first written; they travel with a reconstruction.
    pub(crate) fn recorded_crcs(&self, group: &BlockRef) -> Vec<Option<u32>> {
        let info = self.block(group.id).filter(|info| info.block.gs == group.gs);
        let info = info.filter(|_| self.compares_crcs);
        info.map_or_else(Vec::new, |info| info.block.unit_crcs)
    }

    /// The end of a block's recovery.
    pub(crate) fn commit_synchronization(
        &mut self,
        (id, gs, len): (BlockId, GenerationStamp, u64),
        (new_gs, new_len): (GenerationStamp, u64),
        targets: &[Option<Target>],
        is_deleted: bool,
    ) -> Result<(), CallError> {
        self.check_safe_mode()?;
        let file = self.block(id).map(|info| info.block.file);
        let open = file.map(|file| self.incomplete_blocks(file)).unwrap_or_default();
        let command = CommitBlockSynchronization {
            block: cairn_namespace::BlockRef { id, gs, len },
            new_gs,
            new_len,
            close_file: true,
            delete_block: is_deleted.into(),
        };
        let outcome = self.submit(None, command)?;
        self.settle(&outcome);
        let done = Synchronized {
            block: BlockRef { id, gs, len },
            new_gs,
            new_len,
            close_file: true,
            delete_block: is_deleted,
            targets: self.storages(targets),
        };
        let late_crcs = with_cluster!(self, |cluster, lookup| {
            let counts = lookup.block(id).is_some_and(|facts| facts.gs == new_gs);
            if done.delete_block || !counts {
                Vec::new()
            } else {
                cluster.block_synchronized(lookup, id, &done)
            }
        });
        self.act_on(Changes { late_crcs, ..Changes::default() });
        self.note_completed(&open);
        Ok(())
    }
}
