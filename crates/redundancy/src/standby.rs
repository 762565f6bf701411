//! What DataNodes tell a NameNode that does not lead.
//!
//! It is kept as it was told, in order, by DataNode and storage, and nobody judges it: whether a replica is wanted, bad or of
//! the future depends on entries that may not have come here yet. Once the NameNode leads it has all that was agreed on, and
//! judges what was kept ([`Standby::hand_over`], [`Cluster::take_over`](crate::Cluster::take_over)): of each block before
//! anything is done with it, and all of it before the first order. So nothing is deleted, and nothing forgotten, because a report was faster than its entry, and a snapshot in
//! the place of entries changes nothing.
//!
//! Who only wants to read a block has what was told of it judged when it asks ([`Standby::good_places`]), by what the block
//! is in the state of the namespace that it reads.
//!
//! Tested in `standby/tests.rs`, against a model, and in `standby/reading.rs` with known mistakes put back.
//!
//! Deviation: Hadoop's standby judges at once what it can, and keeps the rest (`PendingDataNodeMessages`).

use crate::block::{BlockFacts, BlockRef};
use crate::clock::{Now, millis};
use crate::command::Command;
use crate::config::Config;
use crate::error::RedundancyError;
use crate::handle::StorageHandle;
use crate::identity::NodeClaim;
use crate::inventory::{Heartbeat, HeartbeatAnswer, NAME_LEN_MAX, Registration, STORAGES_MAX};
use crate::replica::{ReplicaEvent, ReplicaEventKind, ReplicaState, ReportedReplica};
use crate::report::judge::{Verdict, judge};
use crate::storage::StorageState;
use cairn_stripe::{BlockId, StorageType, UnitIndex};
use index::Index;
use replicas::Replicas;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

mod index;
pub mod kept;
pub mod pending;
mod replicas;

/// Replicas of a storage. What has more is forgotten, and asked for in full.
const REPLICAS_MAX: usize = 1 << 26;

/// See the module.
#[derive(Debug)]
pub struct Standby {
    nodes: BTreeMap<String, KeptNode>,
    index: Index,
    /// The last leave to report in full that was given.
    last_lease: u64,
    leases_max: usize,
    lease_len_ms: u64,
    stale_ms: u64,
    replicas_max: usize,
}

/// A DataNode.
#[derive(Debug)]
struct KeptNode {
    /// What it said when it registered.
    registration: Registration,
    /// What it said last of itself.
    heartbeat: Option<Heartbeat>,
    heard_ms: u64,
    /// Leave to report in full, and until when.
    lease: Option<(u64, u64)>,
    /// More was told than is kept: it is to report anew.
    is_forgotten: bool,
    storages: BTreeMap<String, KeptStorage>,
}

#[derive(Debug)]
struct KeptStorage {
    /// What it is called in the index.
    handle: StorageHandle,
    storage_type: StorageType,
    /// It was reported in full since its node registered.
    is_listed: bool,
    replicas: Replicas,
    /// What was found to be bad of these.
    bad: BTreeMap<BlockId, BlockRef>,
}

/// Where a good replica or unit is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeptPlace<'a> {
    /// The UUID of the DataNode.
    pub node: &'a str,
    /// The UUID of its storage.
    pub storage: &'a str,
    /// The unit; 0 for a replica.
    pub unit: UnitIndex,
    /// CRC32C of its bytes, if the DataNode has told one.
    pub crc32c: Option<u32>,
}

/// How much is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Completeness {
    /// DataNodes that are heard of.
    pub nodes: usize,
    /// Those of them that have told all they have.
    pub reported: usize,
    /// Replicas and units of all.
    pub replicas: u64,
}

impl Completeness {
    /// Whether that is enough to lead with, of a namespace with so many complete blocks, of which a part must be found.
    /// Which blocks they are is not known, so this may be too much to hope; it is told of who has just come up.
    pub fn is_enough(&self, blocks: u64, threshold: f64) -> bool {
        let needed = (blocks as f64 * threshold) as u64;
        self.replicas >= needed && self.reported as f64 >= self.nodes as f64 * threshold.min(1.0)
    }
}

impl KeptNode {
    fn is_of(&self, claim: &NodeClaim<'_>) -> bool {
        let own = self.registration.claim();
        match (own.process, claim.process) {
            (Some(own), Some(claimed)) => own == claimed,
            _ => (own.ip, own.xfer_port) == (claim.ip, claim.xfer_port),
        }
    }

    /// Whether it has told all that it has.
    fn is_reported(&self) -> bool {
        let is_listed = |uuid: &String| self.storages.get(uuid).is_some_and(|s| s.is_listed);
        self.heartbeat.as_ref().is_some_and(|heartbeat| {
            let mut usable =
                heartbeat.storages.iter().filter(|storage| storage.state != StorageState::Failed);
            usable.all(|storage| is_listed(&storage.uuid))
        })
    }

    fn storage_mut(
        &mut self,
        index: &mut Index,
        (uuid, storage_type): (&str, StorageType),
    ) -> Result<&mut KeptStorage, RedundancyError> {
        let (count, node) = (self.storages.len(), &self.registration.uuid);
        match self.storages.entry(uuid.to_string()) {
            Entry::Occupied(known) => Ok(known.into_mut()),
            Entry::Vacant(_) if uuid.len() > NAME_LEN_MAX => {
                let (len, max) = (uuid.len(), NAME_LEN_MAX);
                Err(RedundancyError::StorageNameTooLong { uuid: node.clone(), len, max })
            }
            Entry::Vacant(new) => {
                let too_many = |max| RedundancyError::TooManyStorages { uuid: node.clone(), max };
                if count >= STORAGES_MAX {
                    return Err(too_many(STORAGES_MAX));
                }
                let handle =
                    index.enter(node, uuid).ok_or_else(|| too_many(index::STORAGES_MAX))?;
                Ok(new.insert(KeptStorage {
                    handle,
                    storage_type,
                    is_listed: false,
                    replicas: Replicas::default(),
                    bad: BTreeMap::new(),
                }))
            }
        }
    }
}

impl KeptStorage {
    /// A replica with that stamp is there, or none: what was found to be bad may be gone.
    fn clear_mark(&mut self, id: BlockId, is: Option<&ReportedReplica>) {
        if self.bad.get(&id).is_some_and(|bad| is.is_none_or(|is| is.block.gs != bad.gs)) {
            self.bad.remove(&id);
        }
    }

    fn set(&mut self, index: &mut Index, id: BlockId, is: Option<ReportedReplica>) {
        self.clear_mark(id, is.as_ref());
        match is {
            Some(_) => index.add(self.handle, id),
            None => index.remove(self.handle, id),
        }
        self.replicas.set(id, is);
    }

    /// It has those, and nothing else.
    fn list(&mut self, index: &mut Index, replicas: Vec<ReportedReplica>) {
        self.replicas = Replicas::listing(replicas);
        for gone in index.on(self.handle) {
            if self.replicas.get(gone).is_none() {
                index.remove(self.handle, gone);
            }
        }
        self.replicas.listed().iter().for_each(|replica| index.add(self.handle, replica.block.id));
        let marks: Vec<BlockId> = self.bad.keys().copied().collect();
        for id in marks {
            let is = self.replicas.get(id).copied();
            self.clear_mark(id, is.as_ref());
        }
    }

    fn take(&mut self, index: &mut Index, event: &ReplicaEvent) {
        let id = event.block.id;
        let is = match event.kind {
            ReplicaEventKind::Deleted => None,
            ReplicaEventKind::Receiving => {
                let known = self.replicas.get(id);
                let is_whole = known.is_some_and(|known| {
                    known.state == ReplicaState::Finalized && known.block.gs >= event.block.gs
                });
                if is_whole {
                    return;
                }
                let (block, state) = (event.block, ReplicaState::BeingWritten);
                Some(ReportedReplica { block, state, crc32c: None })
            }
            // What it is to replace may be gone by now: a hint is nothing to keep.
            ReplicaEventKind::Received { .. } => {
                let (block, state) = (event.block, ReplicaState::Finalized);
                Some(ReportedReplica { block, state, crc32c: event.crc32c })
            }
        };
        self.set(index, id, is);
    }
}

/// The node that a message is from, if it has registered so.
fn node_of<'a>(
    nodes: &'a mut BTreeMap<String, KeptNode>,
    claim: &NodeClaim<'_>,
) -> Result<&'a mut KeptNode, RedundancyError> {
    let known = nodes.get_mut(claim.uuid).filter(|node| node.is_of(claim));
    known.ok_or_else(|| RedundancyError::UnregisteredNode { uuid: claim.uuid.to_string() })
}

impl Standby {
    /// Nothing is known.
    pub fn new(config: &Config) -> Standby {
        Standby {
            nodes: BTreeMap::new(),
            index: Index::default(),
            last_lease: 0,
            leases_max: config.report_leases.max(1),
            lease_len_ms: millis(config.report_lease_len),
            stale_ms: millis(config.stale_interval),
            replicas_max: REPLICAS_MAX,
        }
    }

    /// Keeps only so many replicas of a storage.
    #[cfg(test)]
    fn limit_replicas(&mut self, max: usize) {
        self.replicas_max = max;
    }

    /// Takes a DataNode in, in the place of who was at its address. What one holds that restarts is kept until its next
    /// report says otherwise.
    pub fn register(&mut self, registration: Registration, now: Now) {
        let NodeClaim { ip, xfer_port, .. } = registration.claim();
        self.retain(|node| {
            let other = node.registration.claim();
            other.uuid == registration.uuid || (other.ip, other.xfer_port) != (ip, xfer_port)
        });
        let mut storages = match self.nodes.remove(&registration.uuid) {
            Some(known) => known.storages,
            None => BTreeMap::new(),
        };
        storages.values_mut().for_each(|storage| storage.is_listed = false);
        let node = KeptNode {
            heartbeat: None,
            heard_ms: now.mono_ms,
            lease: None,
            is_forgotten: false,
            storages,
            registration,
        };
        self.nodes.insert(node.registration.uuid.clone(), node);
    }

    /// Forgets nodes but those.
    fn retain(&mut self, mut is_kept: impl FnMut(&KeptNode) -> bool) {
        let index = &mut self.index;
        self.nodes.retain(|_, node| {
            let is_kept = is_kept(node);
            if !is_kept {
                node.storages.values().for_each(|storage| index.leave(storage.handle));
            }
            is_kept
        });
    }

    /// Takes a heartbeat. The only order that comes back is to register.
    pub fn heartbeat(
        &mut self,
        claim: &NodeClaim<'_>,
        heartbeat: Heartbeat,
        now: Now,
    ) -> HeartbeatAnswer {
        let wants_lease = heartbeat.wants_report_lease;
        let is_known = self.lifeline(claim, heartbeat, now);
        let is_forgotten = node_of(&mut self.nodes, claim).is_ok_and(|node| node.is_forgotten);
        if !is_known || is_forgotten {
            let commands = vec![Command::Register];
            return HeartbeatAnswer { commands, ..HeartbeatAnswer::default() };
        }
        let report_lease = if wants_lease { self.lease(claim.uuid, now) } else { None };
        HeartbeatAnswer { report_lease, ..HeartbeatAnswer::default() }
    }

    /// Takes a sign of life. Returns whether the node has registered.
    pub fn lifeline(&mut self, claim: &NodeClaim<'_>, heartbeat: Heartbeat, now: Now) -> bool {
        let Ok(node) = node_of(&mut self.nodes, claim) else { return false };
        if !heartbeat.storages.is_empty() {
            let usable = heartbeat.storages.iter().take(STORAGES_MAX);
            let usable = usable.filter(|storage| storage.state != StorageState::Failed);
            let named: BTreeSet<&str> = usable.map(|storage| storage.uuid.as_str()).collect();
            let index = &mut self.index;
            node.storages.retain(|uuid, storage| {
                let is_named = named.contains(uuid.as_str());
                if !is_named {
                    index.leave(storage.handle);
                }
                is_named
            });
        }
        node.heard_ms = now.mono_ms;
        node.heartbeat = Some(heartbeat);
        true
    }

    fn lease(&mut self, uuid: &str, now: Now) -> Option<u64> {
        let is_held = |node: &KeptNode| node.lease.is_some_and(|(_, until)| until > now.mono_ms);
        let others = self.nodes.iter().filter(|(other, node)| *other != uuid && is_held(node));
        if others.count() >= self.leases_max {
            return None;
        }
        self.last_lease += 1;
        let lease = (self.last_lease, now.mono_ms.saturating_add(self.lease_len_ms));
        self.nodes.get_mut(uuid)?.lease = Some(lease);
        Some(self.last_lease)
    }

    /// Takes what one message tells of all that storages have; `is_last` if no more of the report comes. What the node tells
    /// comes in order, so all of it that came before is older.
    pub fn full_report(
        &mut self,
        claim: &NodeClaim<'_>,
        (lease_id, is_last): (u64, bool),
        lists: Vec<(String, StorageType, Vec<ReportedReplica>)>,
        now: Now,
    ) -> Result<(), RedundancyError> {
        let max = self.replicas_max;
        let node = node_of(&mut self.nodes, claim)?;
        let is_valid = |(id, until): (u64, u64)| id == lease_id && until > now.mono_ms;
        if lease_id != 0 && !node.lease.is_some_and(is_valid) {
            let uuid = claim.uuid.to_string();
            return Err(RedundancyError::InvalidReportLease { uuid, lease_id });
        }
        for (uuid, storage_type, replicas) in lists {
            let is_too_much = replicas.len() > max;
            let storage = node.storage_mut(&mut self.index, (&uuid, storage_type))?;
            storage.list(&mut self.index, if is_too_much { vec![] } else { replicas });
            storage.is_listed = !is_too_much;
        }
        if is_last {
            node.lease = None;
        }
        Ok(())
    }

    /// Takes what has happened on a storage.
    pub fn incremental_report(
        &mut self,
        claim: &NodeClaim<'_>,
        (uuid, storage_type): (&str, StorageType),
        events: &[ReplicaEvent],
    ) -> Result<(), RedundancyError> {
        let (max, index) = (self.replicas_max, &mut self.index);
        let node = node_of(&mut self.nodes, claim)?;
        node.storage_mut(index, (uuid, storage_type))?;
        for event in events {
            let is_whole = matches!(event.kind, ReplicaEventKind::Received { .. });
            let has_moved = |(other, _): &(&String, &mut KeptStorage)| is_whole && *other != uuid;
            for (_, other) in node.storages.iter_mut().filter(has_moved) {
                // A node has a replica once.
                if other.replicas.get(event.block.id).is_some() {
                    other.set(index, event.block.id, None);
                }
            }
            node.storage_mut(index, (uuid, storage_type))?.take(index, event);
        }
        let storage = node.storage_mut(index, (uuid, storage_type))?;
        if storage.replicas.len_max() > max {
            storage.list(index, vec![]);
            storage.is_listed = false;
            node.is_forgotten = true;
        }
        Ok(())
    }

    /// Takes it that somebody has found a replica to be bad. `storage` may be empty: then it is where the node has it.
    pub fn bad(&mut self, claim: &NodeClaim<'_>, storage: &str, block: BlockRef) {
        let Ok(node) = node_of(&mut self.nodes, claim) else { return };
        for (uuid, kept) in &mut node.storages {
            let is_named = storage.is_empty() || uuid == storage;
            let has_it = |kept: &ReportedReplica| kept.block.gs == block.gs;
            if is_named && kept.replicas.get(block.id).is_some_and(has_it) {
                kept.bad.insert(block.id, block);
            }
        }
    }

    /// A node cannot go on.
    pub fn node_died(&mut self, claim: &NodeClaim<'_>) {
        self.retain(|node| node.registration.uuid != claim.uuid || !node.is_of(claim));
    }

    /// How much is known. Nodes that were not heard of in so many milliseconds are forgotten: they register when they are
    /// back. One that is stale and has not told all that it has is as good as gone: it may have died before it could, and
    /// what it has nobody else tells.
    pub fn completeness(&mut self, now: Now, silence_ms: u64) -> Completeness {
        self.retain(|node| node.is_alive(now, silence_ms));
        let mut known = Completeness::default();
        for node in self.nodes.values() {
            let is_reported = node.is_reported();
            if !is_reported && !node.is_alive(now, self.stale_ms) {
                continue;
            }
            known.nodes += 1;
            known.reported += usize::from(is_reported);
            let replicas = node.storages.values().map(|storage| storage.replicas.len_max() as u64);
            known.replicas += replicas.sum::<u64>();
        }
        known
    }

    /// Where good replicas or units of a block or group are, which is so in the state of the namespace that somebody reads.
    pub fn good_places<'a>(
        &'a self,
        id: BlockId,
        facts: &'a BlockFacts,
    ) -> impl Iterator<Item = KeptPlace<'a>> {
        self.index.of(id).filter_map(|(node, storage, own_id)| {
            let kept = self.nodes.get(node)?.storages.get(storage)?;
            let replica = kept.replicas.get(own_id)?;
            let is_good = !kept.bad.contains_key(&own_id)
                && matches!(judge(Some(facts), replica), Verdict::Good);
            let (unit, crc32c) = (own_id.unit(), replica.crc32c);
            is_good.then_some(KeptPlace { node, storage, unit, crc32c })
        })
    }

    /// DataNodes that were heard of at that time or later, with what they have said of themselves last.
    pub fn heard_since(&self, mono_ms: u64) -> Vec<(Registration, Option<Heartbeat>)> {
        let heard = self.nodes.values().filter(|node| node.heard_ms >= mono_ms);
        heard.map(|node| (node.registration.clone(), node.heartbeat.clone())).collect()
    }
}

impl KeptNode {
    fn is_alive(&self, now: Now, silence_ms: u64) -> bool {
        now.mono_ms.saturating_sub(self.heard_ms) < silence_ms
    }
}

#[cfg(test)]
mod reading;
#[cfg(test)]
mod tests;
