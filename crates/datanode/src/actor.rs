//! The conversation with each NameNode: registration, heartbeats, reports, and the commands that come back.
//!
//! One task runs it; commands run in tasks of their own, so that a slow disk does not look like a dead DataNode. All
//! NameNodes of the nameservice hear the same; what answers the orders of one goes to the one that is obeyed.
//!
//! Source: Hadoop 3.5.0 `BPServiceActor`, `BPOfferService`.

mod bad_blocks;
mod cache_report;
mod call;
mod command;
mod orders;
mod register;
mod report;

pub(crate) use orders::watch as watch_orders;

use crate::error::{DataNodeError, Result};
use crate::members::Member;
use crate::node::Node;
use crate::ops::reconstruct::{
    start_encodes, start_packs, start_proves, start_rebuilds, start_scrubs, start_unpacks,
};
use crate::volume::Usage;
use crate::workers;
use cairn_operate::workers::Worker;
use cairn_replica::{Claim, Heard};
use cairn_stripe::BlockId;
use cairn_wire::exception::class;
use cairn_wire::proto::datanode::{
    EncodedGroupProto, FailedWorkProto, HeartbeatRequestProto, HeartbeatResponseProto,
    PackedContainerProto, ProvedReplicaProto, ScrubbedBlockProto,
};
use cairn_wire::proto::hdfs::{NNHAStatusHeartbeatProtoState, StorageReportProto};
use call::call;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::time::Instant;

/// Wait after a failure; heartbeats that fail are repeated sooner if their interval is shorter.
const RETRY: Duration = Duration::from_secs(1);

/// What a heartbeat waits at most for a disk to tell its room; it must not come late because one hangs.
const SPACE_PATIENCE: Duration = Duration::from_secs(1);

/// Why the conversation starts over.
enum End {
    /// The NameNode asks for a registration: it has restarted, or had given this DataNode up.
    Register,
    Failed(DataNodeError),
}

impl From<DataNodeError> for End {
    fn from(error: DataNodeError) -> End {
        End::Failed(error)
    }
}

/// Talks to the NameNode `member` until the task is ended, or the NameNode refuses this DataNode after it had taken it. One
/// that was never taken asks again: an operator may be about to add it to the list of hosts.
pub(crate) async fn run(node: Arc<Node>, member: Member) {
    let name_node = node.name_nodes.get(member).address.as_str();
    let worker = node.workers.begin(&workers::REPORTS, name_node);
    let mut was_taken = false;
    loop {
        worker.pass().await;
        if let Err(error) = register::register(&node, member).await {
            if was_taken && is_refusal(&error) {
                return give_up(&node, member, &error);
            }
            tracing::warn!(name_node, %error, "cannot register");
            worker.failed(&error);
            worker.rest(tokio::time::sleep(RETRY.min(node.config.heartbeat_interval))).await;
            continue;
        }
        tracing::info!(name_node, uuid = node.dataset.uuid(), "registered");
        was_taken = true;
        node.has_registered();
        match serve(&node, &worker, member).await {
            End::Failed(error) if is_refusal(&error) => return give_up(&node, member, &error),
            End::Register => tracing::info!(name_node, "the NameNode asks for a new registration"),
            End::Failed(error) => {
                tracing::warn!(name_node, %error, "lost the NameNode");
                worker.failed(&error);
                worker.rest(tokio::time::sleep(RETRY.min(node.config.heartbeat_interval))).await;
            }
        }
    }
}

/// Whether the NameNode has said that it will not have this DataNode.
///
/// Source: Hadoop 3.5.0 `BPServiceActor#offerService`, `#processCommand`.
fn is_refusal(error: &DataNodeError) -> bool {
    let refusals = [class::DISALLOWED_DATANODE, class::UNREGISTERED_NODE, class::INCORRECT_VERSION];
    match error {
        DataNodeError::Rpc { source, .. } => refusals.iter().any(|class| source.is_remote(class)),
        _ => false,
    }
}

/// Without any NameNode the DataNode is of no use.
fn give_up(node: &Node, member: Member, error: &DataNodeError) {
    let name_node = &node.name_nodes.get(member).address;
    let why = format!("the NameNode {name_node} refuses this DataNode: {error}");
    match node.name_nodes.refused_by(member) {
        true => node.dataset.give_up(why),
        false => tracing::error!(%why, "it is not asked again"),
    }
}

/// Heartbeats and reports while the registration holds.
async fn serve(node: &Arc<Node>, worker: &Worker, member: Member) -> End {
    let mut next_heartbeat = Instant::now();
    let mut next_report = Instant::now();
    let mut next_cache_report = Instant::now();
    loop {
        let turn = take_turn(node, member, &mut next_heartbeat, &mut next_report).await;
        let turn = match turn {
            Ok(()) => {
                let sent = cache_report::send(node, member, &mut next_cache_report).await;
                sent.map_err(End::Failed)
            }
            end => end,
        };
        match turn {
            Ok(()) => {}
            Err(End::Failed(DataNodeError::Rpc { what, source })) if source.remote().is_none() => {
                // The NameNode may be restarting; it says itself if it wants a registration.
                let name_node = node.name_nodes.get(member).address.as_str();
                tracing::warn!(name_node, what, error = %source, "no answer from the NameNode");
                worker.failed(&source);
                worker.rest(tokio::time::sleep(RETRY.min(node.config.heartbeat_interval))).await;
                continue;
            }
            Err(end) => return end,
        }
        let due = async {
            tokio::select! {
                () = tokio::time::sleep_until(next_heartbeat) => {}
                () = node.reports.wait_urgent(member) => {}
                () = node.bad_blocks.wait(member) => {}
                () = node.cache.wait(member) => {}
                () = node.tunables.report_interval_changed.wait(member) => {
                    let next = Instant::now() + node.tunables.block_report_interval.get();
                    next_report = next_report.min(next);
                }
                () = node.report_now.wait(member) => next_report = Instant::now(),
                () = node.changes_now.wait(member) => {}
                () = node.heartbeat_now.wait(member) => next_heartbeat = Instant::now(),
            }
        };
        worker.rest(due).await;
    }
}

/// Does what is due.
async fn take_turn(
    node: &Arc<Node>,
    member: Member,
    next_heartbeat: &mut Instant,
    next_report: &mut Instant,
) -> Result<(), End> {
    let now = Instant::now();
    let is_report_due = now >= *next_report || node.reports.needs_full(member);
    if is_report_due {
        *next_report = now;
    }
    let mut lease = None;
    let mut is_told_to_register = false;
    if now >= *next_heartbeat || is_report_due {
        *next_heartbeat = now + node.config.heartbeat_interval;
        let answer = heartbeat(node, member, is_report_due).await?;
        let begun = hear(node, member, &answer);
        lease = answer.full_block_report_lease_id.filter(|id| *id != 0);
        is_told_to_register = obey(node, member, answer);
        if begun && !is_report_due {
            // It knows what is here by what it was told before it was obeyed, when others' orders were carried out. The
            // lease that it has granted, if any, is none that was asked for.
            (*next_report, *next_heartbeat) = (now, now);
        }
    }
    if is_told_to_register {
        return Err(End::Register);
    }
    report::send_incremental(node, member).await?;
    bad_blocks::send(node, member).await?;
    if let Some(lease) = lease.filter(|_| is_report_due) {
        let command = report::send_full(node, member, lease).await?;
        let given = node.name_nodes.given_by(member, &node.dataset);
        if command.is_some_and(|command| command::run(node, command, given)) {
            return Err(End::Register);
        }
        *next_report = Instant::now() + node.tunables.block_report_interval.get();
    } else if is_report_due {
        // No lease: other DataNodes report first. Asked again with the next heartbeat.
        *next_report = *next_heartbeat;
    }
    Ok(())
}

/// Takes what the NameNode says of itself. True if it is obeyed from now on.
fn hear(node: &Node, member: Member, answer: &HeartbeatResponseProto) -> bool {
    let status = &answer.ha_status;
    let claim = Claim {
        is_active: status.state == NNHAStatusHeartbeatProtoState::Active as i32,
        txid: status.txid,
        term: answer.term,
    };
    let (name_node, txid) = (node.name_nodes.get(member).address.as_str(), claim.txid);
    let heard = node.name_nodes.hear(member, claim, &node.dataset);
    match heard {
        Heard::Same => {}
        Heard::Begun => tracing::info!(name_node, txid, term = answer.term, "obeys this NameNode"),
        Heard::Ended => tracing::info!(name_node, txid, "this NameNode is not active any more"),
        Heard::Refused { greatest } => {
            tracing::warn!(name_node, txid, greatest, "the claim to be active is not believed");
        }
    }
    heard == Heard::Begun
}

/// Carries out what an answer orders, if its NameNode is obeyed. True if it asks for a new registration.
fn obey(node: &Arc<Node>, member: Member, answer: HeartbeatResponseProto) -> bool {
    let given = node.name_nodes.given_by(member, &node.dataset);
    let is_obeyed = given.is_some();
    node.name_nodes.get(member).orders.told(answer.orders, is_obeyed);
    let mut is_told_to_register = false;
    for command in answer.cmds {
        is_told_to_register |= command::run(node, command, given);
    }
    if !is_obeyed {
        return is_told_to_register;
    }
    node.marks.set_slow(answer.is_slownode.unwrap_or_default());
    start_scrubs(node, answer.scrubs);
    start_encodes(node, answer.encodes);
    start_packs(node, answer.packs);
    start_unpacks(node, answer.unpacks);
    start_rebuilds(node, answer.group_rebuilds);
    start_proves(node, answer.proves);
    if !answer.retired.is_empty() {
        let retired = answer.retired.iter().map(|block| BlockId(block.block_id as i64));
        node.retired.add(retired, &node.dataset);
    }
    is_told_to_register
}

/// What answers orders, told to the NameNode that is obeyed, and again if it does not hear.
#[derive(Default)]
struct Results {
    failed_work: Vec<FailedWorkProto>,
    scrubbed: Vec<ScrubbedBlockProto>,
    encoded: Vec<EncodedGroupProto>,
    packed: Vec<PackedContainerProto>,
    proved: Vec<ProvedReplicaProto>,
}

async fn heartbeat(
    node: &Node,
    member: Member,
    wants_lease: bool,
) -> Result<HeartbeatResponseProto> {
    let name_node = node.name_nodes.get(member);
    let sender = name_node.registration()?;
    let registration = node.dataset.given().registration;
    let is_active = node.name_nodes.is_active(member);
    let results = match is_active {
        true => take_results(node, registration),
        false => Results::default(),
    };
    let Results { failed_work, scrubbed, encoded, packed, proved } = results;
    let slow_peers = if is_active { node.peers.due_report() } else { None };
    let tells_slow = slow_peers.is_some();
    let slow_disks = tells_slow.then(|| node.compare_disks());
    let request = HeartbeatRequestProto {
        registration: sender,
        reports: storage_reports(node).await,
        xmits_in_progress: Some(node.transfers.load(Ordering::Relaxed)),
        xceiver_count: Some(node.connections.load(Ordering::Relaxed) as u32),
        failed_volumes: Some(node.dataset.failed_dirs().len() as u32),
        cache_capacity: Some(node.memory.limit()),
        cache_used: Some(node.memory.used()),
        request_full_block_report_lease: Some(wants_lease),
        failed_work,
        takes_scrubs: Some(true),
        scrubbed,
        takes_groups: Some(true),
        encoded,
        packed,
        proved,
        slow_peers: slow_peers.unwrap_or_default(),
        slow_disks: slow_disks.unwrap_or_default(),
        ..Default::default()
    };
    let answer = call(node, member, "sendHeartbeat", &request).await;
    match answer {
        Ok(_) => {
            name_node.note_heartbeat(node.started);
            if tells_slow {
                node.peers.reported();
            }
        }
        Err(_) => {
            node.failed_work.put_back(request.failed_work);
            node.scrubs.results.put_back(request.scrubbed);
            node.encoded.put_back(request.encoded);
            node.packed.put_back(request.packed);
            let proved = request.proved.into_iter().map(|proved| (registration, proved));
            node.proved.put_back(proved.collect());
        }
    }
    answer
}

fn take_results(node: &Node, registration: u64) -> Results {
    let proved = node.proved.take().into_iter().filter(|(of, _)| *of == registration);
    Results {
        failed_work: node.failed_work.take(),
        scrubbed: node.scrubs.results.take(),
        encoded: node.encoded.take(),
        packed: node.packed.take(),
        proved: proved.map(|(_, proved)| proved).collect(),
    }
}

async fn storage_reports(node: &Node) -> Vec<StorageReportProto> {
    let patience = SPACE_PATIENCE.min(node.config.heartbeat_interval);
    let mut reports = Vec::new();
    for volume in node.dataset.volumes().iter() {
        node.watch_volume(volume);
        let usage = match volume.is_failed() {
            true => Usage::default(),
            // One bad disk must not keep the others from being reported.
            false => volume.usage_in(patience).await.unwrap_or_else(|error| {
                tracing::warn!(dir = %volume.root().display(), %error, "cannot ask for the free space");
                node.check_volume(&error);
                Usage::default()
            }),
        };
        let is_failed = volume.is_failed();
        reports.push(StorageReportProto {
            storage_uuid: volume.storage_id().into(),
            failed: Some(is_failed),
            capacity: Some(usage.capacity),
            dfs_used: Some(usage.used),
            remaining: Some(usage.remaining),
            block_pool_used: Some(usage.used),
            storage: Some(report::storage_proto(volume)),
            non_dfs_used: Some(usage.non_dfs_used),
            mount: None,
        });
    }
    reports
}
