//! The conversation with the NameNode: registration, heartbeats, reports, and the commands that come back.
//!
//! One task runs it; commands run in tasks of their own, so that a slow disk does not look like a dead DataNode.
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
use crate::node::Node;
use crate::ops::reconstruct::{
    start_encodes, start_packs, start_proves, start_rebuilds, start_scrubs,
};
use crate::volume::Usage;
use cairn_stripe::BlockId;
use cairn_wire::exception::class;
use cairn_wire::proto::datanode::{HeartbeatRequestProto, HeartbeatResponseProto};
use cairn_wire::proto::hdfs::StorageReportProto;
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

/// Talks to the NameNode until the task is ended, or the NameNode refuses this DataNode after it had taken it. One
/// that was never taken asks again: an operator may be about to add it to the list of hosts.
pub(crate) async fn run(node: Arc<Node>) {
    let mut was_taken = false;
    loop {
        if let Err(error) = register::register(&node).await {
            if was_taken && is_refusal(&error) {
                return give_up(&node, &error);
            }
            tracing::warn!(name_node = %node.config.name_node, %error, "cannot register");
            tokio::time::sleep(RETRY.min(node.config.heartbeat_interval)).await;
            continue;
        }
        tracing::info!(name_node = %node.config.name_node, uuid = node.dataset.uuid(), "registered");
        was_taken = true;
        match serve(&node).await {
            End::Failed(error) if is_refusal(&error) => return give_up(&node, &error),
            End::Register => tracing::info!("the NameNode asks for a new registration"),
            End::Failed(error) => {
                tracing::warn!(%error, "lost the NameNode");
                tokio::time::sleep(RETRY.min(node.config.heartbeat_interval)).await;
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

/// There is one NameNode: without it the DataNode is of no use.
fn give_up(node: &Node, error: &DataNodeError) {
    let name_node = &node.config.name_node;
    node.dataset.give_up(format!("the NameNode {name_node} refuses this DataNode: {error}"));
}

/// Heartbeats and reports while the registration holds.
async fn serve(node: &Arc<Node>) -> End {
    let mut next_heartbeat = Instant::now();
    let mut next_report = Instant::now();
    let mut next_cache_report = Instant::now();
    loop {
        let turn = take_turn(node, &mut next_heartbeat, &mut next_report).await;
        let turn = match turn {
            Ok(()) => cache_report::send(node, &mut next_cache_report).await.map_err(End::Failed),
            end => end,
        };
        match turn {
            Ok(()) => {}
            Err(End::Failed(DataNodeError::Rpc { what, source })) if source.remote().is_none() => {
                // The NameNode may be restarting; it says itself if it wants a registration.
                tracing::warn!(what, error = %source, "no answer from the NameNode");
                tokio::time::sleep(RETRY.min(node.config.heartbeat_interval)).await;
                continue;
            }
            Err(end) => return end,
        }
        tokio::select! {
            () = tokio::time::sleep_until(next_heartbeat) => {}
            () = node.reports.wait_urgent() => {}
            () = node.bad_blocks.wait() => {}
            () = node.cache.wait() => {}
            () = node.tunables.report_interval_changed.notified() => {
                let next = Instant::now() + node.tunables.block_report_interval.get();
                next_report = next_report.min(next);
            }
            () = node.report_now.notified() => next_report = Instant::now(),
            () = node.changes_now.notified() => {}
            () = node.heartbeat_now.notified() => next_heartbeat = Instant::now(),
        }
    }
}

/// Does what is due.
async fn take_turn(
    node: &Arc<Node>,
    next_heartbeat: &mut Instant,
    next_report: &mut Instant,
) -> Result<(), End> {
    let now = Instant::now();
    let is_report_due = now >= *next_report;
    let mut lease = None;
    let mut is_told_to_register = false;
    if now >= *next_heartbeat || is_report_due {
        *next_heartbeat = now + node.config.heartbeat_interval;
        let answer = heartbeat(node, is_report_due).await?;
        node.marks.set_slow(answer.is_slownode());
        node.orders.told(answer.orders);
        lease = answer.full_block_report_lease_id.filter(|id| *id != 0);
        for command in answer.cmds {
            is_told_to_register |= command::run(node, command);
        }
        start_scrubs(node, answer.scrubs);
        start_encodes(node, answer.encodes);
        start_packs(node, answer.packs);
        start_rebuilds(node, answer.group_rebuilds);
        start_proves(node, answer.proves);
        if !answer.retired.is_empty() {
            let retired = answer.retired.iter().map(|block| BlockId(block.block_id as i64));
            node.retired.add(retired, &node.dataset);
        }
    }
    if is_told_to_register {
        return Err(End::Register);
    }
    report::send_incremental(node).await?;
    bad_blocks::send(node).await?;
    if let Some(lease) = lease.filter(|_| is_report_due) {
        let command = report::send_full(node, lease).await?;
        if command.is_some_and(|command| command::run(node, command)) {
            return Err(End::Register);
        }
        *next_report = Instant::now() + node.tunables.block_report_interval.get();
    } else if is_report_due {
        // No lease: other DataNodes report first. Asked again with the next heartbeat.
        *next_report = *next_heartbeat;
    }
    Ok(())
}

async fn heartbeat(node: &Node, wants_lease: bool) -> Result<HeartbeatResponseProto> {
    let failed_work = node.failed_work.take();
    let scrubbed = node.scrubs.results.take();
    let encoded = node.encoded.take();
    let packed = node.packed.take();
    let registration = node.dataset.given().registration;
    let proved = node.proved.take().into_iter().filter(|(of, _)| *of == registration);
    let proved = proved.map(|(_, proved)| proved).collect();
    let slow_peers = node.peers.due_report();
    let tells_slow = slow_peers.is_some();
    let slow_disks = tells_slow.then(|| node.compare_disks());
    let request = HeartbeatRequestProto {
        registration: node.registration()?,
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
    let answer = call(node, "sendHeartbeat", &request).await;
    match answer {
        Ok(_) => {
            node.note_heartbeat();
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
