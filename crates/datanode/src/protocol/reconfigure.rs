//! Settings that change while the DataNode runs: `hdfs dfsadmin -reconfig datanode HOST:PORT start`.
//!
//! Source: Hadoop 3.5.0 `DataNode#reconfigurePropertyImpl`. Deviation: the bounds on reconstruction and on the
//! block scanner can be changed as well.

use super::superuser::check_superuser;
use crate::config::{DataDir, DataNodeConfig, Live};
use crate::dataset::{Removed, blocking};
use crate::node::Node;
use crate::{lazy_writer, scanner};
use cairn_net::rpc_server::Call;
use cairn_wire::RemoteException;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Answers a call of a superuser.
pub(crate) async fn call(node: &Arc<Node>, call: &Call) -> Result<Vec<u8>, RemoteException> {
    check_superuser(node, call).await?;
    if let Some(answer) = node.workers.call(call) {
        return answer;
    }
    let (worker, call) = (node.clone(), call.clone());
    // Files are read, and volumes are looked through.
    blocking(move || Ok(worker.reconfiguration.call(&call, |name, new| apply(&worker, name, new))))
        .await
        .map_err(|error| RemoteException::io(error.to_string()))?
}

fn apply(node: &Arc<Node>, name: &str, new: &DataNodeConfig) -> Result<(), String> {
    let both = [false, true].map(|is_urgent| node.reconstructions.budgets(is_urgent));
    let tunables = &node.tunables;
    let Some(key) = Live::of(name) else {
        return Err(format!("Property {name} is not reconfigurable"));
    };
    match key {
        Live::Volumes => return change_volumes(node, &new.data_dirs),
        Live::TransferBandwidth => node.transfer_budget.set(new.transfer_bandwidth),
        Live::ReadBandwidth => node.read_budget.set(new.read_bandwidth),
        Live::WriteBandwidth => node.write_budget.set(new.write_bandwidth),
        Live::BalanceBandwidth => node.balance_budget.set(new.balance_bandwidth),
        Live::ReconstructionRead => {
            both.iter().for_each(|b| b.read.set(new.reconstruction_read_bandwidth))
        }
        Live::ReconstructionWrite => {
            both.iter().for_each(|b| b.write.set(new.reconstruction_write_bandwidth))
        }
        Live::ReconstructionThreads => {
            crate::ops::reconstruct::set_threads(node, new.reconstruction_threads)
        }
        Live::ScanRate => node.scanner.set_rate(new.scan_bytes_per_second),
        Live::ScanPeriod => node.scanner.set_period(new.scan_period),
        Live::Moves => tunables.moves.set_max(new.max_moves),
        Live::Connections => tunables.max_connections.store(new.max_connections, Ordering::Relaxed),
        Live::ReportInterval => {
            tunables.block_report_interval.set(new.block_report_interval);
            tunables.report_interval_changed.all();
        }
        Live::ReportSplit => {
            let threshold = new.block_report_split_threshold;
            tunables.block_report_split_threshold.store(threshold, Ordering::Relaxed);
        }
        Live::CacheReportInterval => tunables.cache_report_interval.set(new.cache_report_interval),
        Live::PeerStats => node.peers.turn(new.peer_stats),
        Live::OutlierMinNodes => {
            node.peers.min_nodes.store(new.outlier_min_nodes, Ordering::Relaxed)
        }
        Live::SlowPeerLow => node.peers.low_ms.store(new.slow_peer_low_ms, Ordering::Relaxed),
        Live::OutlierMinSamples => {
            node.peers.min_samples.store(new.outlier_min_samples, Ordering::Relaxed)
        }
        Live::DiskSampling => {
            node.dataset.sampling().set(new.disk_sampling_percentage);
            node.compare_disks();
        }
        Live::OutlierMinDisks => {
            node.disks.min_disks.store(new.outlier_min_disks, Ordering::Relaxed)
        }
        Live::SlowDiskLow => node.disks.low_ms.store(new.slow_disk_low_ms, Ordering::Relaxed),
        Live::SlowDisksAvoided => {
            node.disks.max_avoided.store(new.max_slow_disks_avoided, Ordering::Relaxed);
            node.compare_disks();
        }
        Live::SlowIo => node.dataset.slow_io().threshold.set(new.slow_io_threshold),
        Live::OutliersReport => {
            node.peers.report_interval.set(new.outliers_report_interval);
            node.heartbeat_now.all();
        }
    }
    Ok(())
}

/// Takes new volumes in, failed ones as well if they are good again, and those that are not wanted any more out.
/// Deviation: the last ones stay if none can be taken in.
///
/// Source: Hadoop 3.5.0 `DataNode#refreshVolumes`.
fn change_volumes(node: &Arc<Node>, wanted: &[DataDir]) -> Result<(), String> {
    if wanted.is_empty() {
        return Err("No directory is specified.".to_string());
    }
    let known = node.dataset.volumes();
    let of = |dir: &DataDir| known.iter().find(|volume| volume.root() == dir.path);
    let other_type = |dir: &DataDir| of(dir).is_some_and(|v| v.storage_type() != dir.storage_type);
    if wanted.iter().any(other_type) {
        return Err("Changing storage type is not allowed.".to_string());
    }
    let mut faults = String::new();
    for dir in wanted.iter().filter(|dir| of(dir).is_none_or(|volume| volume.is_failed())) {
        match node.dataset.add_volume(dir, &node.config) {
            Ok(volume) => {
                tracing::info!(dir = %dir.path.display(), "a volume has come");
                scanner::start_on(node, &volume);
                lazy_writer::start(node);
            }
            Err(error) => {
                let (path, medium) = (dir.path.display(), dir.storage_type.name());
                tracing::error!(dir = %path, %error, "a volume cannot be taken into use");
                faults += &format!("FAILED TO ADD: [{medium}]file:{path}: {error}\n");
            }
        }
    }
    let is_wanted = |root: &Path| wanted.iter().any(|dir| dir.path == root);
    if !node.dataset.volumes().iter().any(|volume| is_wanted(volume.root())) {
        return Err(faults + "Attempt to remove all volumes.");
    }
    let roots = known.iter().map(|volume| volume.root().to_path_buf());
    for root in roots.chain(node.dataset.unusable_dirs()).filter(|root| !is_wanted(root)) {
        let Some(Removed { volume, replicas }) = node.dataset.remove_volume(&root) else {
            continue;
        };
        tracing::info!(dir = %root.display(), replicas = replicas.len(), "a volume has left");
        node.scanner.forget(&volume);
        for (id, gs) in replicas {
            node.reports.deleted(id, gs, volume.storage_id());
        }
    }
    node.heartbeat_now.all();
    node.report_now.all();
    if faults.is_empty() { Ok(()) } else { Err(faults) }
}

#[cfg(test)]
mod tests;
