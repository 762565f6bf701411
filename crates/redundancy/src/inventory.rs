//! Registration, heartbeats, liveness: the list of DataNodes and storages.

use crate::ClusterStats;
use crate::block::BlockLookup;
use crate::clock::{Now, millis};
use crate::cluster::Cluster;
use crate::command::Command;
use crate::error::RedundancyError;
use crate::handle::{NodeHandle, StorageHandle};
use crate::identity::{Identity, NodeAddress, NodeClaim};
use crate::node::{AdminState, DataNode, ReportKind, VolumeFailures};
use crate::scrub::ScrubOrder;
use crate::storage::{Promised, Storage, StorageState, StorageUsage};
use cairn_stripe::{BlockId, StorageType};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// What a DataNode tells of itself when it registers, and the rack that the shell found for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Registration {
    /// The id that it keeps over restarts.
    pub uuid: String,
    /// How to reach it.
    pub address: NodeAddress,
    /// `/rack` or `/centre/rack`.
    pub rack: String,
    /// Its version.
    pub software_version: String,
    /// The number of its process, if it tells one.
    pub process: Option<u64>,
    /// When it asked: others may have registered while the shell looked for its rack.
    pub asked: Now,
}

impl Registration {
    /// What the DataNode says it is.
    pub fn claim(&self) -> NodeClaim<'_> {
        NodeClaim {
            uuid: &self.uuid,
            ip: &self.address.ip,
            xfer_port: self.address.xfer_port.into(),
            process: self.process,
        }
    }
}

/// One storage in a heartbeat.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StorageReport {
    /// `DS-...`.
    pub uuid: String,
    /// What it is made of.
    pub storage_type: StorageType,
    /// Whether it can be used; a failed one counts as lost.
    pub state: StorageState,
    /// Its bytes.
    pub usage: StorageUsage,
}

/// What a DataNode tells every few seconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Heartbeat {
    /// All its storages.
    pub storages: Vec<StorageReport>,
    /// Copies and reconstructions under way.
    pub xmits: u32,
    /// Threads or tasks that serve data transfers.
    pub xceivers: u32,
    /// Volumes that it runs without.
    pub failed_volumes: u32,
    /// What it says of these.
    pub volume_failures: Option<VolumeFailures>,
    /// Bytes of cache.
    pub cache_capacity: u64,
    /// Bytes of cache used.
    pub cache_used: u64,
    /// Whether it can be told to scrub.
    pub takes_scrubs: bool,
    /// Whether it can be told to encode and rebuild contiguous groups.
    pub takes_groups: bool,
    /// Whether it wants to send a full block report.
    pub wants_report_lease: bool,
}

/// The answer to a heartbeat.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeartbeatAnswer {
    /// Things to do, in this order.
    pub commands: Vec<Command>,
    /// Blocks and groups to read as a whole.
    pub scrubs: Vec<ScrubOrder>,
    /// Leave to send a full block report.
    pub report_lease: Option<u64>,
}

/// Storages that a DataNode may ever have named, those that are gone counted: a list of them comes from
/// outside, and each takes memory for good.
pub(crate) const STORAGES_MAX: usize = 1024;
/// Bytes of a storage's name: `DS-` and a UUID, and room for other habits.
pub(crate) const NAME_LEN_MAX: usize = 256;

impl Cluster {
    /// Takes a DataNode in, or takes it back with its handle if its UUID is known.
    ///
    /// Another node that was at the same address and data transfer port is forgotten: its place is
    /// taken. Of two processes with one UUID the one that asked last is taken; one whose place another has
    /// taken does not get it back while that one lives. Source: Hadoop 3.5.0 `DatanodeManager#registerDatanode`,
    /// where two have it in turn.
    pub fn register(
        &mut self,
        lookup: &dyn BlockLookup,
        registration: Registration,
        now: Now,
    ) -> Result<NodeHandle, RedundancyError> {
        self.refuse_former(&registration, now)?;
        let address = &registration.address;
        let at_address = self.nodes.by_xfer(&address.ip, address.xfer_port);
        let known = self.nodes.by_uuid(&registration.uuid);
        if let Some(old) = at_address.filter(|old| Some(*old) != known) {
            self.forget_node(lookup, old);
        }
        let handle = known.unwrap_or_else(|| self.new_node(&registration.uuid));
        let was_alive = self.nodes.node(handle).alive;
        self.nodes.leave_address(handle);
        let node = self.nodes.node_mut(handle);
        let old = known.map(|_| std::mem::take(&mut node.address));
        let new = (&registration.address, registration.process);
        node.identity.take_over((old, was_alive), new, (registration.asked, now));
        node.address = registration.address;
        self.nodes.take_address(handle);
        let node = self.nodes.node_mut(handle);
        let is_elsewhere = was_alive && node.rack != registration.rack;
        node.rack = registration.rack;
        node.software_version = registration.software_version;
        node.alive = true;
        node.disallowed = false;
        node.heartbeat_seen = false;
        node.taken_over = None;
        node.last_update_mono_ms = now.mono_ms;
        node.last_update_wall_ms = now.wall_ms;
        // What a node that was dead holds is told by its next reports; what a live one that merely
        // restarts holds is kept until its next report says otherwise.
        let storages = node.storages.clone();
        if !was_alive {
            node.usage = StorageUsage::default();
        }
        for storage in storages {
            let storage = self.nodes.storage_mut(storage);
            storage.reported = false;
            storage.life += 1;
        }
        self.outdate_reports(handle);
        self.note_change_on_node(handle);
        self.count_racks();
        if is_elsewhere {
            // What a live node holds is kept, and may be on too few racks now.
            self.walks.scan().repeat();
        }
        self.nodes.leases_mut().release(handle);
        for id in self.drop_commands(handle) {
            self.check_redundancy(lookup, id);
        }
        if self.balancer_bandwidth > 0 {
            self.work.give(handle).bandwidth = Some(self.balancer_bandwidth);
        }
        Ok(handle)
    }

    /// Refuses the registration of a process whose place a live one has, or which asked before that one did.
    fn refuse_former(
        &mut self,
        registration: &Registration,
        now: Now,
    ) -> Result<(), RedundancyError> {
        let claim = registration.claim();
        let Some(handle) = self.nodes.by_uuid(claim.uuid) else { return Ok(()) };
        let node = self.nodes.node_mut(handle);
        let is_overtaken = node.identity.has_overtaken(registration.process, registration.asked);
        let is_former = node.identity.is_former(&claim);
        if !node.alive || !(is_former || is_overtaken) {
            return Ok(());
        }
        node.identity.heard_of_former(&claim, &node.address, now);
        Err(other_node(&claim, node, is_former))
    }

    fn new_node(&mut self, uuid: &str) -> NodeHandle {
        let handle = self.nodes.next_handle();
        self.nodes.add(DataNode {
            handle,
            uuid: uuid.to_string(),
            address: NodeAddress::default(),
            rack: String::new(),
            software_version: String::new(),
            admin: AdminState::InService,
            maintenance_until_ms: 0,
            upgrade_domain: None,
            disallowed: false,
            alive: false,
            last_update_mono_ms: 0,
            last_update_wall_ms: 0,
            last_report_mono_ms: 0,
            last_report_wall_ms: 0,
            xceivers: 0,
            xmits: 0,
            failed_volumes: 0,
            volume_failures: None,
            cache_capacity: 0,
            cache_used: 0,
            usage: StorageUsage::default(),
            storages: Vec::new(),
            takes_scrubs: false,
            takes_groups: false,
            heartbeat_seen: false,
            taken_over: None,
            identity: Identity::default(),
            report_call: 0,
            forgotten: false,
        });
        handle
    }

    /// Takes a heartbeat and gives the commands that wait for the node.
    ///
    /// A node that is unknown or dead is told to register (an answer, not an error), and so is one whose UUID
    /// another has. A process whose place another has taken is refused. Source: Hadoop 3.5.0
    /// `DatanodeManager#handleHeartbeat`, `DatanodeDescriptor#updateHeartbeatState`.
    pub fn heartbeat(
        &mut self,
        lookup: &dyn BlockLookup,
        claim: &NodeClaim<'_>,
        heartbeat: Heartbeat,
        now: Now,
    ) -> Result<HeartbeatAnswer, RedundancyError> {
        let handle = match self.registered(claim) {
            Ok(handle) => handle,
            Err(refused @ RedundancyError::OtherNode { is_replaced: true, .. }) => {
                self.hear_of_former(claim, now);
                return Err(refused);
            }
            Err(_) => {
                let commands = vec![Command::Register];
                return Ok(HeartbeatAnswer { commands, ..HeartbeatAnswer::default() });
            }
        };
        let wants_lease = heartbeat.wants_report_lease;
        self.take_figures(lookup, handle, heartbeat, now);
        let seen_before = std::mem::replace(&mut self.nodes.node_mut(handle).heartbeat_seen, true);
        if !seen_before {
            // It can take what nobody could.
            self.low.queues_mut().wake_all();
        }
        if self.is_to_prove(handle, wants_lease, now) {
            let commands = vec![Command::Register];
            return Ok(HeartbeatAnswer { commands, ..HeartbeatAnswer::default() });
        }
        let report_lease = if wants_lease {
            self.nodes.leases_mut().request(handle, &self.config, now)
        } else {
            None
        };
        let commands = self.take_commands(lookup, handle, now);
        let is_free = commands.is_empty();
        let scrubs = if is_free { self.take_scrubs(lookup, handle, now) } else { Vec::new() };
        Ok(HeartbeatAnswer { commands, scrubs, report_lease })
    }

    /// Takes the sign of life that a node sends when its heartbeats are late. It gets no commands, and
    /// one that is unknown or dead is passed over; one whose UUID another has is refused.
    ///
    /// Source: Hadoop 3.5.0 `DatanodeManager#handleLifeline`.
    pub fn lifeline(
        &mut self,
        lookup: &dyn BlockLookup,
        claim: &NodeClaim<'_>,
        heartbeat: Heartbeat,
        now: Now,
    ) -> Result<(), RedundancyError> {
        match self.registered(claim) {
            Ok(handle) => self.take_figures(lookup, handle, heartbeat, now),
            Err(RedundancyError::UnregisteredNode { .. }) => {}
            Err(other) => return Err(other),
        }
        Ok(())
    }

    fn hear_of_former(&mut self, claim: &NodeClaim<'_>, now: Now) {
        if let Some(handle) = self.nodes.by_uuid(claim.uuid) {
            let node = self.nodes.node_mut(handle);
            node.identity.heard_of_former(claim, &node.address, now);
        }
    }

    fn take_figures(
        &mut self,
        lookup: &dyn BlockLookup,
        handle: NodeHandle,
        heartbeat: Heartbeat,
        now: Now,
    ) {
        self.last_event = now;
        self.update_storages(lookup, handle, &heartbeat.storages);
        let node = self.nodes.node_mut(handle);
        node.last_update_mono_ms = now.mono_ms;
        node.last_update_wall_ms = now.wall_ms;
        node.xmits = heartbeat.xmits;
        node.xceivers = heartbeat.xceivers;
        node.failed_volumes = heartbeat.failed_volumes;
        node.volume_failures = heartbeat.volume_failures;
        node.cache_capacity = heartbeat.cache_capacity;
        node.cache_used = heartbeat.cache_used;
        node.takes_scrubs = heartbeat.takes_scrubs;
        node.takes_groups = heartbeat.takes_groups;
    }

    fn update_storages(
        &mut self,
        lookup: &dyn BlockLookup,
        handle: NodeHandle,
        reports: &[StorageReport],
    ) {
        let mut usage = StorageUsage::default();
        let mut named = BTreeSet::new();
        let mut failed = Vec::new();
        for report in reports.iter().take(STORAGES_MAX) {
            let Ok(storage) = self.storage_of(handle, &report.uuid, report.storage_type) else {
                continue;
            };
            named.insert(storage);
            let entry = self.nodes.storage_mut(storage);
            if report.state == StorageState::Failed && entry.state != StorageState::Failed {
                failed.push(storage);
            }
            entry.storage_type = report.storage_type;
            if std::mem::replace(&mut entry.state, report.state) != report.state {
                self.blocks.note_change_on(storage);
            }
            entry.usage = report.usage;
            entry.promised.renew();
            if report.state != StorageState::Failed {
                usage += report.usage;
            }
        }
        // A storage that a heartbeat doesn't name any more is a volume that was taken out.
        let own = self.nodes.node(handle).storages.clone();
        for storage in own.into_iter().filter(|_| !reports.is_empty()) {
            let entry = self.nodes.storage_mut(storage);
            if !named.contains(&storage) && entry.state != StorageState::Failed {
                entry.state = StorageState::Failed;
                failed.push(storage);
            }
        }
        self.nodes.node_mut(handle).usage = usage;
        for storage in &failed {
            self.lose_storage(*storage);
        }
        if !failed.is_empty() {
            self.drop_lost(lookup);
        }
    }

    /// The storage `uuid` of a node, made if it is new.
    pub(crate) fn storage_of(
        &mut self,
        node: NodeHandle,
        uuid: &str,
        storage_type: StorageType,
    ) -> Result<StorageHandle, RedundancyError> {
        let known = self.nodes.node(node).storages.iter().copied();
        if let Some(found) = known.into_iter().find(|s| self.storage(*s).uuid == uuid) {
            return Ok(found);
        }
        let handle = self.next_storage(node, uuid)?;
        self.nodes.add_storage(Storage {
            handle,
            node,
            uuid: uuid.to_string(),
            storage_type,
            state: StorageState::Normal,
            usage: StorageUsage::default(),
            reported: false,
            life: 0,
            lost_after: 0,
            promised: Promised::default(),
        });
        Ok(handle)
    }

    /// The handle for one more storage of a node, if there can be one.
    fn next_storage(&self, node: NodeHandle, uuid: &str) -> Result<StorageHandle, RedundancyError> {
        let node = self.node(node);
        if node.storages.len() >= STORAGES_MAX {
            let (uuid, max) = (node.uuid.clone(), STORAGES_MAX);
            return Err(RedundancyError::TooManyStorages { uuid, max });
        }
        if uuid.len() > NAME_LEN_MAX {
            let (len, max) = (uuid.len(), NAME_LEN_MAX);
            return Err(RedundancyError::StorageNameTooLong { uuid: node.uuid.clone(), len, max });
        }
        self.nodes.next_storage().map_err(|max| RedundancyError::NoMoreStorages { max })
    }

    /// Finds nodes that were silent for too long; what they held is queued for mending.
    ///
    /// Source: Hadoop 3.5.0 `HeartbeatManager#heartbeatCheck`.
    pub(crate) fn find_dead(&mut self, lookup: &dyn BlockLookup, now: Now) -> Vec<NodeHandle> {
        if now.mono_ms < self.no_deaths_before_ms {
            return Vec::new();
        }
        let limit = self.config.dead_interval();
        let dead: Vec<NodeHandle> = self
            .nodes
            .all()
            .iter()
            .filter(|node| node.alive && silence(node, now) > limit)
            .map(|node| node.handle)
            .collect();
        let lost_work: Vec<BlockId> = dead.iter().flat_map(|node| self.lose_node(*node)).collect();
        for id in lost_work {
            self.check_redundancy(lookup, id);
        }
        dead
    }

    /// Tells of the time between two ticks. If it is longer than the recheck interval, this process itself
    /// stood still, and heartbeats may be waiting: nobody is found dead for as long from now on. Returns
    /// whether that is so.
    ///
    /// Source: Hadoop 3.5.0 `HeartbeatManager#shouldAbortHeartbeatCheck`.
    pub fn excuse_silence(&mut self, last: Now, now: Now) -> bool {
        let bound = self.config.recheck_interval.max(self.config.heartbeat_interval);
        let bound_ms = millis(bound);
        let stood_still = now.mono_ms.saturating_sub(last.mono_ms) > bound_ms;
        if stood_still {
            self.no_deaths_before_ms = now.mono_ms.saturating_add(bound_ms);
        }
        stood_still
    }

    /// Takes a node's death as a fact before its silence proves it (used by tests and by
    /// `refreshNodes`): its locations count no more, except those of a node in maintenance, which is
    /// expected to come back with them. [`Cluster::drop_lost`] queues what is missing for it.
    ///
    /// Source: Hadoop 3.5.0 `HeartbeatManager#heartbeatCheck`.
    pub fn node_died(&mut self, lookup: &dyn BlockLookup, handle: NodeHandle) {
        for id in self.lose_node(handle) {
            self.check_redundancy(lookup, id);
        }
        self.drop_lost(lookup);
    }

    /// Takes a node for dead. Returns the blocks whose work it takes along.
    fn lose_node(&mut self, handle: NodeHandle) -> Vec<BlockId> {
        self.nodes.node_mut(handle).alive = false;
        self.rounds.hurry();
        self.count_racks();
        self.nodes.leases_mut().release(handle);
        self.outdate_reports(handle);
        let lost_work = self.drop_commands(handle);
        for storage in self.nodes.node(handle).storages.clone() {
            self.lose_storage(storage);
        }
        lost_work
    }

    /// Removes a node whose address another one has now.
    fn forget_node(&mut self, lookup: &dyn BlockLookup, handle: NodeHandle) {
        self.nodes.node_mut(handle).admin = AdminState::InService;
        self.leaving.untrack(handle);
        self.node_died(lookup, handle);
        self.nodes.forget(handle);
    }

    /// The node of that handle.
    pub fn node(&self, handle: NodeHandle) -> &DataNode {
        self.nodes.node(handle)
    }

    /// The storage of that handle.
    pub fn storage(&self, handle: StorageHandle) -> &Storage {
        self.nodes.storage(handle)
    }

    /// Every node that is known, dead ones too, in the order of registration.
    pub fn nodes(&self) -> impl Iterator<Item = &DataNode> {
        self.nodes.all().iter().filter(|node| !node.forgotten)
    }

    /// The node with that UUID, dead or alive.
    pub fn node_by_uuid(&self, uuid: &str) -> Option<&DataNode> {
        self.nodes.by_uuid(uuid).map(|handle| self.node(handle))
    }

    /// The live node that a message is from or about, or why there is none.
    ///
    /// Source: Hadoop 3.5.0 `DatanodeManager#getDatanode`.
    pub fn registered(&self, claim: &NodeClaim<'_>) -> Result<NodeHandle, RedundancyError> {
        let node = self.node_by_uuid(claim.uuid).filter(|node| node.alive);
        match node {
            None => Err(RedundancyError::UnregisteredNode { uuid: claim.uuid.to_string() }),
            Some(node) if node.is_of(claim) => Ok(node.handle),
            Some(node) => Err(other_node(claim, node, node.identity.is_former(claim))),
        }
    }

    /// The node at an address and data transfer port.
    pub fn node_by_xfer(&self, ip: &str, xfer_port: u16) -> Option<&DataNode> {
        self.nodes.by_xfer(ip, xfer_port).map(|handle| self.node(handle))
    }

    /// Nodes on the host with that address or name, as a client's own address tells it.
    pub fn nodes_on_host<'a>(&'a self, host: &'a str) -> impl Iterator<Item = &'a DataNode> {
        self.nodes().filter(move |node| node.address.ip == host || node.address.host == host)
    }

    /// The storage with that UUID that was seen last.
    pub fn storage_by_uuid(&self, uuid: &str) -> Option<&Storage> {
        self.nodes.storage_by_uuid(uuid).map(|handle| self.storage(handle))
    }

    /// The storages of pairs of a DataNode and the UUID of a storage, as clients send them. A pair that
    /// names nothing, or a DataNode whose UUID another one has, gives `None` in its place.
    ///
    /// Source: Hadoop 3.5.0 `DatanodeManager#getDatanodeStorageInfos`.
    pub fn storages_named<'a>(
        &self,
        pairs: impl IntoIterator<Item = (NodeClaim<'a>, &'a str)>,
    ) -> Vec<Option<StorageHandle>> {
        pairs
            .into_iter()
            .map(|(claim, storage)| {
                let node = self.node_by_uuid(claim.uuid).filter(|node| node.is_of(&claim))?;
                let mut own = node.storages.iter().copied();
                own.find(|handle| self.storage(*handle).uuid == storage)
            })
            .collect()
    }

    /// Whether a live node has not been heard of for a while.
    pub fn is_stale(&self, node: &DataNode, now: Now) -> bool {
        silence(node, now) >= self.config.stale_interval
    }

    /// Whether so many heartbeats of a DataNode are missing that it may be gone: long before it is stale.
    pub fn is_late(&self, node: &DataNode, now: Now) -> bool {
        silence(node, now) >= self.config.tolerated_heartbeats * self.config.heartbeat_interval
            || self.is_stale(node, now)
    }

    /// Live DataNodes.
    pub fn live_count(&self) -> usize {
        self.nodes().filter(|node| node.alive).count()
    }

    /// Racks that have DataNodes, with how many live ones each has.
    pub fn racks(&self) -> BTreeMap<&str, usize> {
        let mut racks = BTreeMap::new();
        for node in self.nodes().filter(|node| node.alive) {
            *racks.entry(node.rack.as_str()).or_insert(0) += 1;
        }
        racks
    }

    /// The nodes of a report, as `getDatanodeReport` lists them.
    ///
    /// Source: Hadoop 3.5.0 `DatanodeManager#getDatanodeListForReport`.
    pub fn datanode_report(&self, kind: ReportKind) -> Vec<&DataNode> {
        let wanted = |node: &DataNode| match kind {
            ReportKind::All => true,
            ReportKind::Live => node.alive,
            ReportKind::Dead => !node.alive,
            ReportKind::Decommissioning => node.admin == AdminState::DecommissionInProgress,
            ReportKind::EnteringMaintenance => node.admin == AdminState::EnteringMaintenance,
            ReportKind::InMaintenance => node.admin == AdminState::InMaintenance,
        };
        self.nodes().filter(|node| !node.disallowed && wanted(node)).collect()
    }

    /// Blocks and units that a node holds.
    pub fn block_count(&self, node: &DataNode) -> usize {
        node.storages.iter().map(|storage| self.blocks.map().count_on(*storage)).sum()
    }

    /// Figures of the whole cluster.
    ///
    /// Source: Hadoop 3.5.0 `DatanodeStats#add`.
    pub fn stats(&self, now: Now) -> ClusterStats {
        let mut stats = ClusterStats::default();
        for node in self.nodes().filter(|node| !node.disallowed) {
            let is = |state: AdminState| usize::from(node.admin == state);
            stats.entering_maintenance_nodes += is(AdminState::EnteringMaintenance);
            stats.decommissioning_nodes += is(AdminState::DecommissionInProgress);
            if !node.alive {
                stats.dead_nodes += 1;
                stats.decommissioned_dead_nodes += is(AdminState::Decommissioned);
                stats.in_maintenance_dead_nodes += is(AdminState::InMaintenance);
                continue;
            }
            stats.live_nodes += 1;
            stats.stale_nodes += usize::from(self.is_stale(node, now));
            stats.decommissioned_live_nodes += is(AdminState::Decommissioned);
            stats.in_maintenance_live_nodes += is(AdminState::InMaintenance);
            stats.failed_volumes += u64::from(node.failed_volumes);
            stats.xceivers += u64::from(node.xceivers);
            // What leaves is not there to be filled.
            if !node.is_leaving() {
                stats.usage += node.usage;
            }
            if !matches!(node.admin, AdminState::Decommissioned | AdminState::InMaintenance) {
                stats.cache_capacity = stats.cache_capacity.saturating_add(node.cache_capacity);
                stats.cache_used = stats.cache_used.saturating_add(node.cache_used);
            }
        }
        self.count_blocks(&mut stats);
        stats
    }
}

/// The refusal of one whose UUID `node` has.
fn other_node(claim: &NodeClaim<'_>, node: &DataNode, is_replaced: bool) -> RedundancyError {
    RedundancyError::OtherNode {
        uuid: node.uuid.clone(),
        claimed: claim.to_string(),
        registered: node.address.to_string(),
        is_replaced,
    }
}

fn silence(node: &DataNode, now: Now) -> Duration {
    Duration::from_millis(now.mono_ms.saturating_sub(node.last_update_mono_ms))
}

#[cfg(test)]
mod tests;
