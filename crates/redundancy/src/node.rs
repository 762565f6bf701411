//! DataNodes: who they are, where they are, and how they are.

use crate::clock::Now;
use crate::handle::{NodeHandle, StorageHandle};
use crate::identity::{Identity, NodeAddress, NodeClaim};
use crate::storage::StorageUsage;
use std::fmt;

/// What an administrator has done with a node. Source: Hadoop 3.5.0 `DatanodeInfo.AdminStates`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AdminState {
    /// In use.
    #[default]
    InService,
    /// Its units are being copied away.
    DecommissionInProgress,
    /// It is not needed any more.
    Decommissioned,
    /// About to be away for a while.
    EnteringMaintenance,
    /// Away for a while; its units count.
    InMaintenance,
}

impl fmt::Display for AdminState {
    /// As Hadoop writes them for people and in its beans.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            AdminState::InService => "In Service",
            AdminState::DecommissionInProgress => "Decommission In Progress",
            AdminState::Decommissioned => "Decommissioned",
            AdminState::EnteringMaintenance => "Entering Maintenance",
            AdminState::InMaintenance => "In Maintenance",
        })
    }
}

/// Volumes that a node has lost. Source: Hadoop 3.5.0 `VolumeFailureSummary`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VolumeFailures {
    /// Their places, as the node names them.
    pub locations: Vec<String>,
    /// Milliseconds since 1970 of the last failure.
    pub last_failure_ms: u64,
    /// Bytes of capacity lost.
    pub lost_capacity: u64,
}

/// Which nodes a report is about. Source: Hadoop 3.5.0 `DatanodeReportType`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportKind {
    /// Every known node.
    All,
    /// Those that send heartbeats.
    Live,
    /// Those that do not.
    Dead,
    /// Live ones that are being decommissioned.
    Decommissioning,
    /// Live ones that enter maintenance.
    EnteringMaintenance,
    /// Nodes in maintenance.
    InMaintenance,
}

/// One DataNode, with its figures of the last heartbeat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataNode {
    /// Its handle.
    pub handle: NodeHandle,
    /// The id that it keeps over restarts.
    pub uuid: String,
    /// How to reach it.
    pub address: NodeAddress,
    /// Its place in the network: `/rack` or `/centre/rack`.
    pub rack: String,
    /// The version that it told.
    pub software_version: String,
    /// What an administrator has done with it.
    pub admin: AdminState,
    /// When its maintenance ends, milliseconds since 1970; means nothing outside of maintenance.
    pub maintenance_until_ms: u64,
    /// Nodes that may be restarted together; its own address where none is set.
    pub upgrade_domain: Option<String>,
    /// Whether it was taken off the list of nodes that may serve.
    pub disallowed: bool,
    /// Whether it is registered and not dead.
    pub alive: bool,
    /// Monotonic milliseconds of the last sign of life.
    pub last_update_mono_ms: u64,
    /// Milliseconds since 1970 of the last sign of life.
    pub last_update_wall_ms: u64,
    /// Monotonic milliseconds of the last full block report; 0 for none.
    pub last_report_mono_ms: u64,
    /// Milliseconds since 1970 of the last full block report; 0 for none.
    pub last_report_wall_ms: u64,
    /// Threads or tasks that serve data transfers.
    pub xceivers: u32,
    /// Copies and reconstructions under way.
    pub xmits: u32,
    /// Volumes that it runs without.
    pub failed_volumes: u32,
    /// What it said of these.
    pub volume_failures: Option<VolumeFailures>,
    /// Bytes of cache.
    pub cache_capacity: u64,
    /// Bytes of cache used.
    pub cache_used: u64,
    /// Sum over its storages that have not failed.
    pub usage: StorageUsage,
    /// Its storages, in the order in which they were first seen.
    pub storages: Vec<StorageHandle>,
    /// Whether it reads whole blocks and groups to find those that disagree, and has a block scanner that tells the
    /// CRCs of its own.
    pub takes_scrubs: bool,
    /// Whether it encodes and rebuilds contiguous groups, and proves what it reads for that.
    pub takes_groups: bool,
    /// Whether it has sent a heartbeat since it registered.
    pub heartbeat_seen: bool,
    /// What it had told this NameNode before that led, it was known by when that began to lead, and has told nothing since
    /// that proves it: so many heartbeats came without a word of a full report.
    pub(crate) taken_over: Option<u32>,
    /// Which processes have spoken for it.
    pub(crate) identity: Identity,
    /// The number of its last call that reports in full, or of what has overtaken that.
    pub(crate) report_call: u64,
    /// Whether another node has taken its place, so that nothing must know it any more.
    pub(crate) forgotten: bool,
}

impl DataNode {
    /// Whether a claim is of the process that has registered as this node, dead or alive.
    pub fn is_of(&self, claim: &NodeClaim<'_>) -> bool {
        self.uuid == claim.uuid && self.identity.is_of(&self.address, claim)
    }

    /// Where another process with its UUID was alive within the last minutes: a machine may have been cloned, or
    /// a disk copied.
    pub fn twin(&self, now: Now) -> Option<&NodeAddress> {
        self.identity.twin(now)
    }

    /// Whether it is on its way out or away, so that no new block goes there.
    pub fn is_leaving(&self) -> bool {
        self.admin != AdminState::InService
    }

    /// Whether it may be switched off at any time.
    pub(crate) fn is_let_go(&self) -> bool {
        matches!(self.admin, AdminState::Decommissioned | AdminState::InMaintenance)
    }

    /// Whether it is about to be in maintenance or is: what it holds counts, at least for a while.
    ///
    /// Source: Hadoop 3.5.0 `DatanodeInfo#isMaintenance`.
    pub fn is_maintenance(&self) -> bool {
        matches!(self.admin, AdminState::EnteringMaintenance | AdminState::InMaintenance)
    }

    /// Whether what it holds can be read from it.
    pub fn is_readable(&self) -> bool {
        self.alive && self.admin != AdminState::InMaintenance
    }

    /// The nodes that it may be restarted together with: its upgrade domain, or itself.
    ///
    /// Source: Hadoop 3.5.0 `BlockPlacementPolicyWithUpgradeDomain#getUpgradeDomainWithDefaultValue`.
    pub fn upgrade_domain(&self) -> String {
        self.upgrade_domain.clone().unwrap_or_else(|| self.address.to_string())
    }

    /// `ip:ipcPort`, as reports on others and on disks name their sender.
    pub fn ipc_name(&self) -> String {
        format!("{}:{}", self.address.ip, self.address.ipc_port)
    }

    /// What other nodes call it that measure it: where its pages are, or its data transfer if it has none.
    ///
    /// Source: Hadoop 3.5.0 `BlockReceiver`, which has it in `mirrorNameForMetrics`.
    pub fn peer_name(&self) -> String {
        let at = &self.address;
        let ports = [at.info_secure_port, at.info_port, at.xfer_port];
        let port = ports.into_iter().find(|port| *port != 0).unwrap_or(0);
        format!("{}:{port}", at.ip)
    }

    /// `host:xferPort` if it told a host name, `ip:xferPort` if not.
    pub fn name(&self) -> String {
        let host = if self.address.host.is_empty() { &self.address.ip } else { &self.address.host };
        format!("{host}:{}", self.address.xfer_port)
    }
}
