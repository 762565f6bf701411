//! What DataNodes tell, taken step by step: others get the cluster in between.

use std::fmt::Debug;

use cairn_master::Lookup;
use cairn_master::contiguous::pack::PackedContainer;
use cairn_master::reports::{self, Begun, Heard, Told, Unheard};
use cairn_process::disk_work::step_aside;
use cairn_redundancy::{
    BlockRef, Changes, Cluster, Heartbeat, NodeAddress, NodeClaim, RedundancyError, Registration,
    ReplicaEvent, ReportCall, ReportedReplica,
};
use cairn_stripe::{BlockId, StorageType};
use tracing::{debug, info, warn};

use crate::hosts::Hosts;
use crate::node::NameNode;
use crate::refusal::Refusal;

pub(crate) mod looking;
mod taking_over;

/// What is taken of a report while the lock on the cluster is held.
const EVENTS_PER_LOCK: usize = 1000;

/// Why a report of a DataNode was not taken.
#[derive(Debug)]
pub(crate) enum NotTaken {
    /// It has not registered, or another has its place.
    Unregistered(RedundancyError),
    /// It has no lease for a full report, or not any more.
    NoLease(RedundancyError),
    /// What follows from it cannot be logged or looked up.
    Failed(Refusal),
}

impl<E: Into<Refusal>> From<E> for NotTaken {
    fn from(error: E) -> NotTaken {
        NotTaken::Failed(error.into())
    }
}

/// What is on one storage, as a full report lists it.
#[derive(Debug)]
pub(crate) struct StorageList {
    /// The storage's UUID and kind.
    pub storage: (String, StorageType),
    /// Its replicas.
    pub replicas: Vec<ReportedReplica>,
}

/// Why a DataNode is not taken in.
#[derive(Debug)]
pub(crate) enum NotRegistered {
    /// It is not on the list of those that may serve.
    NotListed,
    /// The cluster does not take it.
    Refused(RedundancyError),
}

impl NameNode {
    fn note(&self, what: &'static str, bytes: usize, value: impl Debug + Send + 'static) {
        self.ns.last_inputs().note(what, bytes, value);
    }

    /// Notes what a DataNode has told, of about so many bytes.
    fn note_from(
        &self,
        what: &'static str,
        claim: &NodeClaim<'_>,
        bytes: usize,
        value: impl Debug + Send + 'static,
    ) {
        self.note(what, bytes + claim.uuid.len(), (claim.uuid.to_string(), value));
    }

    /// Takes a DataNode in, if it may serve.
    ///
    /// Source: Hadoop 3.5.0 `DatanodeManager#registerDatanode`.
    pub(crate) fn take_in(&self, registration: Registration) -> Result<(), NotRegistered> {
        let now = self.now();
        self.note("registration", registration.uuid.len(), registration.clone());
        self.with_cluster(|cluster, lookup| {
            // Other lists may hold by now, and whoever brought them has acted on those nodes only that the cluster knew.
            let hosts = self.topology.hosts();
            check_listed(&hosts, &registration.address)?;
            let listed = hosts.listed(&registration.address);
            let handle = reports::register(cluster, lookup, registration, listed, now)
                .map_err(NotRegistered::Refused)?;
            let known = cluster.node(handle);
            if let Some(other) = known.twin(now) {
                let (uuid, address) = (&known.uuid, &known.address);
                warn!(uuid, %address, %other, "two DataNodes have one UUID, was a machine cloned?");
            }
            Ok(())
        })
    }

    /// Takes a heartbeat. What it is answered with is encoded before others come.
    pub(crate) fn take_heartbeat<R>(
        &self,
        claim: &NodeClaim<'_>,
        told: Told,
        encode: impl FnOnce(&Cluster, &Lookup<'_>, &Heard) -> R,
    ) -> Result<R, Unheard> {
        let now = self.now();
        self.note_from("heartbeat", claim, bytes_of(&told), told.clone());
        let (heard, names, encoded) = self.with_cluster(|cluster, lookup| {
            let heard = reports::heartbeat(cluster, lookup, claim, told, now)?;
            let slow = heard.newly_slow.iter().map(|node| cluster.node(*node).name()).collect();
            let by = heard.from.map(|node| cluster.node(node).name());
            let encoded = encode(cluster, lookup, &heard);
            Ok::<(Heard, (Vec<String>, Option<String>), R), Unheard>((heard, (slow, by), encoded))
        })?;
        for failure in &heard.queued_again {
            let (target, suspect) = (&failure.target, failure.suspect.as_deref());
            let reason = &failure.reason;
            info!(block = %failure.block, target, suspect, reason, "a copy has failed, it is queued again");
        }
        let (slow, by) = names;
        for slow in slow {
            warn!(%slow, by, "a DataNode is slow, another tells");
        }
        warn_of(&heard.changes);
        if let Some(from) = heard.from {
            self.encoded.add(from, heard.said, now);
        }
        self.follow_up_later(heard.changes.into());
        Ok(encoded)
    }

    /// Takes the sign of life of a DataNode whose heartbeats are late.
    pub(crate) fn take_lifeline(
        &self,
        claim: &NodeClaim<'_>,
        heartbeat: Heartbeat,
    ) -> Result<(), RedundancyError> {
        let now = self.now();
        self.note_from("lifeline", claim, size_of::<Heartbeat>(), heartbeat.clone());
        self.with_cluster(|cluster, lookup| cluster.lifeline(lookup, claim, heartbeat, now))
    }

    /// Takes a message with a full report under its lease; `is_last` if no more of it comes.
    pub(crate) async fn take_full_report(
        &self,
        claim: &NodeClaim<'_>,
        (lease, is_last): (u64, bool),
        lists: Vec<StorageList>,
    ) -> Result<(), NotTaken> {
        self.note_from("full report", claim, 0, (lease, is_last));
        let call = reports::begin_report(&mut self.cluster(), claim, lease, self.now());
        let call = call.map_err(NotTaken::Unregistered)?.map_err(NotTaken::NoLease)?;
        let uuid = claim.uuid;
        for StorageList { storage: (storage, kind), replicas } in lists {
            debug!(uuid, storage, replicas = replicas.len(), "block report");
            let begun = self.begin_storage(call, (&storage, kind), replicas);
            let mut report = match begun {
                Begun::Report(report) => report,
                Begun::Overtaken => break,
                Begun::Refused(refused) => {
                    warn!(uuid, "a report is not taken: {refused}");
                    continue;
                }
            };
            let mut more = true;
            while more {
                let (mut changes, now) = (Changes::default(), self.now());
                let next = report.next_blocks();
                let replicas = report.next_replicas().to_vec();
                self.note_from("step of a full report", claim, size_of_val(&*replicas), replicas);
                more = self.with_cluster_and(&next, |cluster, lookup| {
                    cluster.full_report_step(lookup, &mut report, now, &mut changes)
                })?;
                self.act_on(changes).await?;
                // Others get the lock in between.
                step_aside().await;
            }
        }
        self.cluster().end_report_call(call, is_last).map_err(NotTaken::NoLease)
    }

    fn begin_storage(
        &self,
        call: ReportCall,
        storage: (&str, StorageType),
        replicas: Vec<ReportedReplica>,
    ) -> Begun {
        reports::begin_storage(&mut self.cluster(), call, storage, replicas)
    }

    /// Takes what has happened on a storage.
    pub(crate) async fn take_events(
        &self,
        claim: &NodeClaim<'_>,
        storage: (&str, StorageType),
        events: &[ReplicaEvent],
    ) -> Result<(), NotTaken> {
        for events in events.chunks(EVENTS_PER_LOCK) {
            let told = (storage.0.to_string(), events.to_vec());
            self.note_from("report", claim, size_of_val(events), told);
            let changes = self.with_cluster(|cluster, lookup| {
                reports::incremental(cluster, lookup, claim, storage, events)
            });
            let changes = changes.map_err(NotTaken::Unregistered)?;
            if let Some(refused) = &changes.refused {
                warn!(uuid = claim.uuid, "a report is not taken: {refused}");
                return Ok(());
            }
            self.act_on(changes).await?;
        }
        Ok(())
    }

    /// Takes what a block scanner has summed on a storage.
    pub(crate) async fn take_sums(
        &self,
        claim: &NodeClaim<'_>,
        storage: &str,
        sums: &[(BlockRef, u32)],
    ) -> Result<(), NotTaken> {
        for sums in sums.chunks(EVENTS_PER_LOCK) {
            let told = (storage.to_string(), sums.to_vec());
            self.note_from("sums", claim, size_of_val(sums), told);
            let changes = self.with_cluster(|cluster, lookup| {
                reports::scanned(cluster, lookup, claim, storage, sums)
            });
            self.act_on(changes.map_err(NotTaken::Unregistered)?).await?;
        }
        Ok(())
    }

    /// Does what follows from reports: completes committed blocks and records late CRCs.
    async fn act_on(&self, changes: Changes) -> Result<(), Refusal> {
        warn_of(&changes);
        self.follow_up(changes.into()).await
    }

    /// Takes what a DataNode has in memory.
    pub(crate) fn take_cache_report(
        &self,
        claim: &NodeClaim<'_>,
        blocks: impl IntoIterator<Item = BlockId>,
    ) -> Result<(), RedundancyError> {
        let mut cluster = self.cluster();
        let reporter = cluster.registered(claim)?;
        if self.config.caching_enabled {
            let blocks: Vec<BlockId> = blocks.into_iter().collect();
            self.note_from("cache report", claim, size_of_val(&*blocks), blocks.clone());
            cluster.cache_report(reporter, blocks);
        }
        Ok(())
    }

    /// Takes it that a DataNode cannot go on.
    pub(crate) fn take_end(&self, claim: &NodeClaim<'_>) -> Result<(), RedundancyError> {
        self.note_from("end", claim, 0, ());
        self.with_cluster(|cluster, lookup| {
            let handle = cluster.registered(claim)?;
            cluster.node_died(lookup, handle);
            Ok(())
        })
    }

    /// Marks replicas, by whose they are and their storages' UUIDs, that clients or DataNodes have found to be bad.
    /// Returns why some cannot be.
    pub(crate) fn mark_bad(
        &self,
        found: &[(NodeClaim<'_>, &str, BlockRef)],
    ) -> Vec<RedundancyError> {
        for (claim, storage, block) in found {
            self.note_from("bad replica", claim, storage.len(), (storage.to_string(), *block));
        }
        self.with_cluster(|cluster, lookup| {
            let mark = |(claim, storage, block): &(NodeClaim<'_>, &str, BlockRef)| {
                reports::bad(cluster, lookup, (claim, storage), *block).err()
            };
            found.iter().filter_map(mark).collect()
        })
    }
}

/// What a heartbeat takes in memory, about.
fn bytes_of(told: &Told) -> usize {
    /// An element of any of its lists, with its texts.
    const ELEMENT: usize = 200;
    let Told { heartbeat, failed_work, scrubbed, slow_peers, slow_disks, encoded, packed, proved } =
        told;
    let crcs = |of: &PackedContainer| of.outcome.as_ref().map_or(0, |made| made.crcs.len());
    let of_packed: usize = packed.iter().map(crcs).sum();
    let of_peers = failed_work.len() + scrubbed.len() + slow_peers.len() + slow_disks.len();
    let of_peers = of_peers + encoded.len() + packed.len() + proved.len();
    size_of::<Told>()
        + of_packed * size_of::<u32>()
        + ELEMENT * (heartbeat.storages.len() + of_peers)
}

/// Refuses a DataNode that is not on the list of those that may serve.
pub(crate) fn check_listed(hosts: &Hosts, address: &NodeAddress) -> Result<(), NotRegistered> {
    if hosts.is_included(address) {
        return Ok(());
    }
    warn!(ip = address.ip, host = address.host, "a DataNode is not on the list of hosts");
    Err(NotRegistered::NotListed)
}

fn warn_of(changes: &Changes) {
    for block in &changes.altered {
        warn!(block = %block.id, "a finalized replica does not have the bytes first written");
    }
    for block in &changes.unexplained {
        warn!(%block, "replicas or units disagree, and which one is wrong is not known: see cairn scrub");
    }
}
