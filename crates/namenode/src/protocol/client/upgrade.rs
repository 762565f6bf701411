//! Upgrades and their way back, and what operators have done to log and store.

use std::sync::atomic::Ordering;

use cairn_net::rpc_server::Call;
use cairn_process::held::held;
use cairn_wire::exception::class;
use cairn_wire::proto::hdfs as pb;

use crate::clock::wall_ms;
use crate::journal::RollbackPoint;
use crate::node::NameNode;
use crate::refusal::{Answer, Refusal, answer};

/// What needs safe mode says without it.
const NO_SAFE_MODE: &str = "Safe mode should be turned ON in order to create namespace image.";

/// From then on the log is in the format of this version, and an earlier one does not start any more. A rolling upgrade is
/// finalized by [`rolling_upgrade`], which does the same.
///
/// Source: Hadoop 3.5.0 `FSNamesystem#finalizeUpgrade`.
pub async fn finalize_upgrade(node: &NameNode, call: &Call) -> Answer {
    let _: pb::FinalizeUpgradeRequestProto = call.decode()?;
    node.check_superuser(call).await?;
    // Where there is nothing to finalize it is done, as in Hadoop.
    if !node.ns.is_finalized() {
        if node.ns.rollback_point().is_some() {
            return Err(Refusal::io("A rolling upgrade is in progress: finalize that"));
        }
        node.check_safe_mode(|| "Failed to finalize the upgrade".to_string())?;
        node.ns.finalize().await?;
        node.log_own_hosts().await?;
    }
    answer(&pb::FinalizeUpgradeResponseProto {})
}

/// Anybody may ask.
///
/// Source: Hadoop 3.5.0 `FSNamesystem#isUpgradeFinalized`.
pub async fn upgrade_status(node: &NameNode, call: &Call) -> Answer {
    let _: pb::UpgradeStatusRequestProto = call.decode()?;
    answer(&pb::UpgradeStatusResponseProto { upgrade_finalized: node.ns.is_finalized() })
}

/// Groups that are not taken over of which one answer tells.
const REFUSED_TOLD: usize = 1000;

/// Whether the namespace is one that was restored from a backup; accepting that has replicas deleted again that it does
/// not know. Cairn's own.
pub async fn accept_restored(node: &NameNode, call: &Call) -> Answer {
    let request: pb::AcceptRestoredRequestProto = call.decode()?;
    node.check_superuser(call).await?;
    let restored = node.ns.restored();
    if request.accept == Some(true)
        && let Some(restored) = restored
    {
        node.check_safe_mode(|| "The restored namespace is not accepted".to_string())?;
        let ns = node.ns.clone();
        let accepted = tokio::task::spawn_blocking(move || ns.accept_restored()).await;
        let accepted = accepted.map_err(|_| Refusal::io("accepting was interrupted"))?;
        accepted.map_err(|error| Refusal::io(format!("it is still held as restored: {error}")))?;
        node.release_deletions();
        tracing::info!(sequence = restored.sequence, "the restored namespace is accepted");
    }
    let taken_over = node.see_cluster(|cluster| cluster.taken_over());
    let refused = taken_over.refused.iter().take(REFUSED_TOLD);
    answer(&pb::AcceptRestoredResponseProto {
        unread_parities: Some(taken_over.unread),
        found_groups: Some(taken_over.found),
        adopted_groups: Some(taken_over.adopted),
        unread_containers: Some(taken_over.unread_containers),
        adopted_blocks: Some(taken_over.adopted_blocks),
        refused_groups: refused.map(|(group, why)| format!("{group}: {why}")).collect(),
        restored: Some(restored.is_some()),
        sequence: restored.map(|restored| restored.sequence),
        entry_ms: restored.map(|restored| restored.entry_ms),
        restored_ms: restored.map(|restored| restored.at_ms),
    })
}

/// A rolling upgrade has a point to go back to from its preparation until it is finalized; so long no deletion is
/// ordered, so that what the tree had then can be read again.
///
/// Source: Hadoop 3.5.0 `FSNamesystem#startRollingUpgrade`, `#queryRollingUpgrade`, `#finalizeRollingUpgrade`.
pub async fn rolling_upgrade(node: &NameNode, call: &Call) -> Answer {
    use pb::RollingUpgradeActionProto as Action;
    let request: pb::RollingUpgradeRequestProto = call.decode()?;
    let action = Action::try_from(request.action).map_err(|_| {
        let message = format!("Unexpected rolling upgrade action {}", request.action);
        Refusal::new(class::ILLEGAL_ARGUMENT, message)
    })?;
    let operation = match action {
        Action::Query => "queryRollingUpgrade",
        Action::Start => "startRollingUpgrade",
        Action::Finalize => "finalizeRollingUpgrade",
    };
    node.check_superuser_for(call, operation).await?;
    // One that is prepared takes as long as its copy; who asks meanwhile would make another.
    let _alone = match action {
        Action::Query => None,
        Action::Start | Action::Finalize => Some(node.upgrading.lock().await),
    };
    let prepared = node.ns.rollback_point();
    let told = match (action, prepared) {
        (Action::Query, point) => point.map(|point| info(node, &point, 0)),
        (Action::Start, Some(point)) => Some(info(node, &point, 0)),
        (Action::Start, None) => Some(prepare(node).await?),
        (Action::Finalize, None) => None,
        (Action::Finalize, Some(point)) => Some(finalize(node, &point).await?),
    };
    answer(&pb::RollingUpgradeResponseProto { rolling_upgrade_info: told })
}

async fn prepare(node: &NameNode) -> Result<pb::RollingUpgradeInfoProto, Refusal> {
    if node.safe_mode_tip().is_none() {
        return Err(Refusal::io(NO_SAFE_MODE));
    }
    // The point is made in safe mode, and what goes back to it is not in safe mode.
    let was_ordered = node.log_safe_mode(false).await?;
    let point = match node.ns.make_rollback_point(node.config.reserved_len).await {
        Ok(point) => point,
        Err(error) => {
            if was_ordered {
                node.log_safe_mode(true).await?;
            }
            return Err(error.into());
        }
    };
    node.leave_safe_mode_holding_deletions();
    node.make_missing_trash().await;
    tracing::info!(sequence = point.sequence, "a rolling upgrade is prepared");
    Ok(info(node, &point, 0))
}

async fn finalize(
    node: &NameNode,
    point: &RollbackPoint,
) -> Result<pb::RollingUpgradeInfoProto, Refusal> {
    node.check_safe_mode(|| "Failed to finalize rolling upgrade".to_string())?;
    node.ns.finalize().await?;
    node.log_own_hosts().await?;
    let ns = node.ns.clone();
    let removed = tokio::task::spawn_blocking(move || ns.remove_rollback_point()).await;
    let removed = removed.map_err(|_| Refusal::io("finalizing was interrupted"))?;
    removed.map_err(|error| Refusal::io(format!("the rollback point stays: {error}")))?;
    node.release_deletions();
    tracing::info!("the rolling upgrade is finalized");
    Ok(info(node, point, wall_ms()))
}

fn info(node: &NameNode, point: &RollbackPoint, finalize_time: u64) -> pb::RollingUpgradeInfoProto {
    pb::RollingUpgradeInfoProto {
        status: pb::RollingUpgradeStatusProto {
            block_pool_id: node.ns.identity().block_pool_id.clone(),
            finalized: Some(finalize_time > 0),
        },
        start_time: point.start_ms,
        finalize_time,
        created_rollback_images: finalize_time > 0 || node.ns.has_rollback_copy(),
    }
}

/// Writes what the log has to the store, under Hadoop's conditions. Nothing depends on it: every answered change is
/// durable.
///
/// Source: Hadoop 3.5.0 `FSNamesystem#saveNamespace`, `FSImage#saveNamespace`.
pub async fn save_namespace(node: &NameNode, call: &Call) -> Answer {
    let request: pb::SaveNamespaceRequestProto = call.decode()?;
    node.check_superuser(call).await?;
    if node.safe_mode_tip().is_none() {
        return Err(Refusal::io(NO_SAFE_MODE));
    }
    let (window_s, gap) = (request.time_window(), request.tx_gap());
    if window_s > 0 || gap > 0 {
        let (at_ms, sequence) = *held(&node.saved);
        let age_ms = wall_ms().saturating_sub(at_ms);
        let newer = node.ns.last_sequence().saturating_sub(sequence);
        if age_ms <= window_s.saturating_mul(1000) && newer <= gap {
            return answer(&pb::SaveNamespaceResponseProto { saved: Some(false) });
        }
    }
    let sequence = node.ns.checkpoint().await?;
    *held(&node.saved) = (wall_ms(), sequence);
    answer(&pb::SaveNamespaceResponseProto { saved: Some(true) })
}

/// Begins a new segment of the log.
///
/// Source: Hadoop 3.5.0 `FSNamesystem#rollEditLog`.
pub async fn roll_edits(node: &NameNode, call: &Call) -> Answer {
    let _: pb::RollEditsRequestProto = call.decode()?;
    node.check_superuser(call).await?;
    node.check_safe_mode(|| "Log not rolled".to_string())?;
    let new_segment_tx_id = node.ns.roll_log().await?;
    answer(&pb::RollEditsResponseProto { new_segment_tx_id })
}

/// Keeps what it is told and tells it again. There is one folder for names, which is never given up while the NameNode
/// runs, so that nothing has to be restored.
///
/// Source: Hadoop 3.5.0 `FSNamesystem#restoreFailedStorage`.
pub async fn restore_failed_storage(node: &NameNode, call: &Call) -> Answer {
    let request: pb::RestoreFailedStorageRequestProto = call.decode()?;
    let operation = match request.arg.as_str() {
        "check" => "checkRestoreFailedStorage",
        "true" => "enableRestoreFailedStorage",
        _ => "disableRestoreFailedStorage",
    };
    node.check_superuser_for(call, operation).await?;
    let result = match request.arg.as_str() {
        "check" => node.restores_storage.load(Ordering::Relaxed),
        arg => {
            node.restores_storage.store(arg == "true", Ordering::Relaxed);
            arg == "true"
        }
    };
    answer(&pb::RestoreFailedStorageResponseProto { result })
}
