//! What DataNodes tell: who they are, how they are, what they have. Each function is one step under the cluster's
//! lock, and is the same in the NameNode and in the simulation.
//!
//! Whoever speaks is known by a claim, which each of them checks: between two calls, or two steps of one, another
//! DataNode may have taken its place.

use crate::contiguous::EncodedGroup;
use crate::contiguous::pack::PackedContainer;
use crate::contiguous::rounds::Said;
use cairn_redundancy::groups::prove::Proved;
use cairn_redundancy::{
    AdminIntent, BlockLookup, BlockRef, Changes, Cluster, FailedWork, FullReport, Heartbeat,
    HeartbeatAnswer, NodeClaim, NodeHandle, Now, Outlier, RedundancyError, Registration,
    ReplicaEvent, ReportCall, ReportedReplica, Scrubbed, SlowDisk, StorageType,
};
use cairn_stripe::{BlockId, GenerationStamp};

/// A copy or reconstruction that a DataNode could not do, by the UUIDs of those that it had to do with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The replica or unit that was to arrive.
    pub block: BlockId,
    /// The stamp that was ordered.
    pub gs: GenerationStamp,
    /// Where it was to go.
    pub target: String,
    /// Who was the cause, if it is known.
    pub suspect: Option<String>,
    /// What has happened, for operators.
    pub reason: String,
}

/// What comes with a heartbeat.
#[derive(Clone, Debug, Default)]
pub struct Told {
    /// The heartbeat itself.
    pub heartbeat: Heartbeat,
    /// Work that could not be done.
    pub failed_work: Vec<Failure>,
    /// Blocks and groups that were read as a whole.
    pub scrubbed: Vec<Scrubbed>,
    /// Contiguous groups that it was to encode.
    pub encoded: Vec<EncodedGroup>,
    /// Containers that it was to write.
    pub packed: Vec<PackedContainer>,
    /// Replicas that it was to read as its disks have them.
    pub proved: Vec<Proved>,
    /// DataNodes that are slow to this one, by their names.
    pub slow_peers: Vec<(String, Outlier)>,
    /// Its own slow disks.
    pub slow_disks: Vec<SlowDisk>,
}

/// What a heartbeat is answered with, and what has followed from it.
#[derive(Clone, Debug, Default)]
pub struct Heard {
    /// Commands, scrubs, a lease for a report.
    pub answer: HeartbeatAnswer,
    /// Who it was, if it had registered.
    pub from: Option<NodeHandle>,
    /// What is to be submitted.
    pub changes: Changes,
    /// What it has encoded or packed, or could not, to be judged.
    pub said: Vec<Said>,
    /// Failures by which work was queued again.
    pub queued_again: Vec<Failure>,
    /// DataNodes that this one is the first in a while to call slow.
    pub newly_slow: Vec<NodeHandle>,
}

/// Why a heartbeat gets no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unheard {
    /// The DataNode is not on the list of those that may serve.
    #[error("the host is not in the include-list")]
    Disallowed,
    /// Another has its place.
    #[error(transparent)]
    Other(#[from] RedundancyError),
}

/// What the operator's lists say of a DataNode that may serve.
#[derive(Clone, Debug)]
pub struct Listed {
    /// What is meant to become of it.
    pub intent: AdminIntent,
    /// Which others are restarted together with it.
    pub upgrade_domain: Option<String>,
}

/// Takes a DataNode in that registers and may serve. Nobody is put back into service by registering.
///
/// Source: Hadoop 3.5.0 `DatanodeManager#registerDatanode`, `#startAdminOperationIfNecessary`.
pub fn register(
    cluster: &mut Cluster,
    lookup: &dyn BlockLookup,
    registration: Registration,
    listed: Listed,
    now: Now,
) -> Result<NodeHandle, RedundancyError> {
    let node = cluster.register(lookup, registration, now)?;
    cluster.set_upgrade_domain(node, listed.upgrade_domain);
    if listed.intent != AdminIntent::InService {
        cluster.set_admin_intent(lookup, node, listed.intent, now);
    }
    Ok(node)
}

/// The lists were read again: tells what they say of a DataNode that is known; nothing if it may not serve.
///
/// Source: Hadoop 3.5.0 `DatanodeManager#refreshDatanodes`.
pub fn list_again(
    cluster: &mut Cluster,
    lookup: &dyn BlockLookup,
    node: NodeHandle,
    listed: Option<Listed>,
    now: Now,
) {
    match listed {
        Some(Listed { intent, upgrade_domain }) => {
            cluster.set_admin_intent(lookup, node, intent, now);
            cluster.set_upgrade_domain(node, upgrade_domain);
        }
        None => cluster.disallow_node(lookup, node),
    }
}

/// Takes a heartbeat and all that comes with it. What was not done goes back into the queues before orders are taken from
/// them.
///
/// Source: Hadoop 3.5.0 `DatanodeManager#handleHeartbeat`.
pub fn heartbeat(
    cluster: &mut Cluster,
    lookup: &dyn BlockLookup,
    claim: &NodeClaim<'_>,
    told: Told,
    now: Now,
) -> Result<Heard, Unheard> {
    let known = cluster.node_by_uuid(claim.uuid);
    if known.is_some_and(|known| known.disallowed && known.is_of(claim)) {
        return Err(Unheard::Disallowed);
    }
    let Told { heartbeat, failed_work, scrubbed, encoded, packed, proved, slow_peers, slow_disks } =
        told;
    let mut heard = Heard { from: cluster.registered(claim).ok(), ..Heard::default() };
    if let Some(reporter) = heard.from {
        for failure in failed_work {
            if take_failure(cluster, lookup, reporter, &failure, now) {
                heard.queued_again.push(failure);
            }
        }
        heard.said = encoded.into_iter().map(Said::Encoded).collect();
        heard.said.extend(packed.into_iter().map(Said::Packed));
        for result in &scrubbed {
            heard.changes.append(cluster.scrubbed(lookup, reporter, result));
        }
        for result in &proved {
            heard.changes.append(cluster.proved(lookup, reporter, result));
        }
        let peers = slow_peers.iter().map(|(name, outlier)| (name.as_str(), *outlier));
        heard.newly_slow = cluster.slow_peers_reported(reporter, peers, now);
        cluster.slow_disks_reported(reporter, slow_disks, now);
    }
    heard.answer = cluster.heartbeat(lookup, claim, heartbeat, now)?;
    Ok(heard)
}

/// Has work that a DataNode could not do given to others.
fn take_failure(
    cluster: &mut Cluster,
    lookup: &dyn BlockLookup,
    reporter: NodeHandle,
    failure: &Failure,
    now: Now,
) -> bool {
    let handle = |uuid: &str| cluster.node_by_uuid(uuid).map(|node| node.handle);
    let Some(target) = handle(&failure.target) else { return false };
    let suspect = failure.suspect.as_deref().and_then(handle);
    let failed = FailedWork { block: failure.block, gs: failure.gs, target, suspect };
    cluster.work_failed(lookup, reporter, &failed, now)
}

/// What has become of a storage's list when it was its turn.
#[derive(Debug)]
pub enum Begun {
    /// It is taken step by step.
    Report(FullReport),
    /// It is not taken; other storages may be.
    Refused(RedundancyError),
    /// Another report of this DataNode has overtaken the one that it is in: nothing of that is taken any more.
    Overtaken,
}

/// Begins to take a message with a full report, under the lease that a heartbeat was answered with.
///
/// Source: Hadoop 3.5.0 `NameNodeRpcServer#blockReport`.
pub fn begin_report(
    cluster: &mut Cluster,
    claim: &NodeClaim<'_>,
    lease: u64,
    now: Now,
) -> Result<Result<ReportCall, RedundancyError>, RedundancyError> {
    let handle = cluster.registered(claim)?;
    Ok(cluster.begin_report_call(handle, lease, now))
}

/// Begins to take what is on a storage.
pub fn begin_storage(
    cluster: &mut Cluster,
    call: ReportCall,
    storage: (&str, StorageType),
    replicas: Vec<ReportedReplica>,
) -> Begun {
    let mut report = FullReport::new(replicas);
    match cluster.begin_full_report(call, storage, &mut report) {
        Ok(()) => Begun::Report(report),
        Err(RedundancyError::ReportOvertaken { .. }) => Begun::Overtaken,
        Err(refused) => Begun::Refused(refused),
    }
}

/// Takes some of what has happened on a storage.
///
/// Source: Hadoop 3.5.0 `BlockManager#processIncrementalBlockReport`.
pub fn incremental(
    cluster: &mut Cluster,
    lookup: &dyn BlockLookup,
    claim: &NodeClaim<'_>,
    storage: (&str, StorageType),
    events: &[ReplicaEvent],
) -> Result<Changes, RedundancyError> {
    let handle = cluster.registered(claim)?;
    Ok(cluster.incremental_report(lookup, handle, storage, events))
}

/// Takes some of what a block scanner has summed on a storage.
pub fn scanned(
    cluster: &mut Cluster,
    lookup: &dyn BlockLookup,
    claim: &NodeClaim<'_>,
    storage: &str,
    sums: &[(BlockRef, u32)],
) -> Result<Changes, RedundancyError> {
    let handle = cluster.registered(claim)?;
    Ok(cluster.scan_report(lookup, handle, storage, sums))
}

/// Marks a replica or unit that somebody has found to be bad, by whose it is and its storage's UUID.
///
/// Source: Hadoop 3.5.0 `BlockManager#findAndMarkBlockAsCorrupt`.
pub fn bad(
    cluster: &mut Cluster,
    lookup: &dyn BlockLookup,
    (claim, storage): (&NodeClaim<'_>, &str),
    block: BlockRef,
) -> Result<(), RedundancyError> {
    let handle = cluster.registered(claim)?;
    cluster.report_bad(lookup, handle, storage, block)
}
