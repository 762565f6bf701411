//! Settings that change while the DataNode runs: `hdfs dfsadmin -reconfig datanode HOST:PORT start`.
//!
//! Source: Hadoop 3.5.0 `DataNode#reconfigurePropertyImpl`. Deviation: the bounds on reconstruction and on the
//! block scanner can be changed as well.

use super::superuser::check_superuser;
use crate::config::{DataDir, DataNodeConfig};
use crate::dataset::{Removed, blocking};
use crate::node::Node;
use crate::{lazy_writer, scanner};
use cairn_net::reconfiguration::Property;
use cairn_net::rpc_server::Call;
use cairn_wire::RemoteException;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

const DATA_DIRS: &str = "dfs.datanode.data.dir";
const TRANSFER: &str = "dfs.datanode.data.transfer.bandwidthPerSec";
const DATA_READ: &str = "dfs.datanode.data.read.bandwidthPerSec";
const DATA_WRITE: &str = "dfs.datanode.data.write.bandwidthPerSec";
const BALANCE: &str = "dfs.datanode.balance.bandwidthPerSec";
const THREADS: &str = "dfs.datanode.ec.reconstruction.threads";
const READ: &str = "dfs.datanode.ec.reconstruct.read.bandwidthPerSec";
const WRITE: &str = "dfs.datanode.ec.reconstruct.write.bandwidthPerSec";
const SCAN_RATE: &str = "dfs.block.scanner.volume.bytes.per.second";
const SCAN_PERIOD: &str = "dfs.datanode.scan.period.hours";
const MOVES: &str = "dfs.datanode.balance.max.concurrent.moves";
const CONNECTIONS: &str = "dfs.datanode.max.transfer.threads";
const REPORT: &str = "dfs.blockreport.intervalMsec";
const SPLIT: &str = "dfs.blockreport.split.threshold";
const PEER_STATS: &str = "dfs.datanode.peer.stats.enabled";
const MIN_NODES: &str = "dfs.datanode.min.outlier.detection.nodes";
const MIN_SAMPLES: &str = "dfs.datanode.peer.metrics.min.outlier.detection.samples";
const LOW_PEER: &str = "dfs.datanode.slowpeer.low.threshold.ms";
const OUTLIERS_REPORT: &str = "dfs.datanode.outliers.report.interval";
const DISK_SAMPLING: &str = "dfs.datanode.fileio.profiling.sampling.percentage";
const MIN_DISKS: &str = "dfs.datanode.min.outlier.detection.disks";
const LOW_DISK: &str = "dfs.datanode.slowdisk.low.threshold.ms";
const DISKS_AVOIDED: &str = "dfs.datanode.max.slowdisks.to.exclude";
const SLOW_IO: &str = "dfs.datanode.slow.io.warning.threshold.ms";
const CACHE_REPORT: &str = "dfs.cachereport.intervalMsec";

/// The properties that can change.
pub(crate) const PROPERTIES: &[Property] = &[
    (DATA_DIRS, ""),
    (BALANCE, "100m"),
    (TRANSFER, "0"),
    (DATA_READ, "0"),
    (DATA_WRITE, "0"),
    (READ, "0"),
    (WRITE, "0"),
    (THREADS, "8"),
    (SCAN_RATE, "1048576"),
    (SCAN_PERIOD, "504"),
    (MOVES, "100"),
    (CONNECTIONS, "4096"),
    (REPORT, "21600000"),
    (SPLIT, "1000000"),
    (CACHE_REPORT, "10000"),
    (PEER_STATS, "false"),
    (MIN_NODES, "10"),
    (LOW_PEER, "5"),
    (MIN_SAMPLES, "1000"),
    (DISK_SAMPLING, "0"),
    (OUTLIERS_REPORT, "30m"),
    (MIN_DISKS, "5"),
    (LOW_DISK, "20"),
    (DISKS_AVOIDED, "0"),
    (SLOW_IO, "300"),
];

/// Answers a call of a superuser.
pub(crate) async fn call(node: &Arc<Node>, call: &Call) -> Result<Vec<u8>, RemoteException> {
    check_superuser(node, call).await?;
    let (worker, call) = (node.clone(), call.clone());
    // Files are read, and volumes are looked through.
    blocking(move || Ok(worker.reconfiguration.call(&call, |name, new| apply(&worker, name, new))))
        .await
        .map_err(|error| RemoteException::io(error.to_string()))?
}

fn apply(node: &Arc<Node>, name: &str, new: &DataNodeConfig) -> Result<(), String> {
    let both = [false, true].map(|is_urgent| node.reconstructions.budgets(is_urgent));
    let tunables = &node.tunables;
    match name {
        DATA_DIRS => return change_volumes(node, &new.data_dirs),
        TRANSFER => node.transfer_budget.set(new.transfer_bandwidth),
        DATA_READ => node.read_budget.set(new.read_bandwidth),
        DATA_WRITE => node.write_budget.set(new.write_bandwidth),
        BALANCE => node.balance_budget.set(new.balance_bandwidth),
        READ => both.iter().for_each(|b| b.read.set(new.reconstruction_read_bandwidth)),
        WRITE => both.iter().for_each(|b| b.write.set(new.reconstruction_write_bandwidth)),
        THREADS => crate::ops::reconstruct::set_threads(node, new.reconstruction_threads),
        SCAN_RATE => node.scanner.set_rate(new.scan_bytes_per_second),
        SCAN_PERIOD => node.scanner.set_period(new.scan_period),
        MOVES => tunables.moves.set_max(new.max_moves),
        CONNECTIONS => tunables.max_connections.store(new.max_connections, Ordering::Relaxed),
        REPORT => {
            tunables.block_report_interval.set(new.block_report_interval);
            tunables.report_interval_changed.notify_one();
        }
        SPLIT => {
            let threshold = new.block_report_split_threshold;
            tunables.block_report_split_threshold.store(threshold, Ordering::Relaxed);
        }
        CACHE_REPORT => tunables.cache_report_interval.set(new.cache_report_interval),
        PEER_STATS => node.peers.turn(new.peer_stats),
        MIN_NODES => node.peers.min_nodes.store(new.outlier_min_nodes, Ordering::Relaxed),
        LOW_PEER => node.peers.low_ms.store(new.slow_peer_low_ms, Ordering::Relaxed),
        MIN_SAMPLES => node.peers.min_samples.store(new.outlier_min_samples, Ordering::Relaxed),
        DISK_SAMPLING => {
            node.dataset.sampling().set(new.disk_sampling_percentage);
            node.compare_disks();
        }
        MIN_DISKS => node.disks.min_disks.store(new.outlier_min_disks, Ordering::Relaxed),
        LOW_DISK => node.disks.low_ms.store(new.slow_disk_low_ms, Ordering::Relaxed),
        DISKS_AVOIDED => {
            node.disks.max_avoided.store(new.max_slow_disks_avoided, Ordering::Relaxed);
            node.compare_disks();
        }
        SLOW_IO => node.dataset.slow_io().threshold.set(new.slow_io_threshold),
        OUTLIERS_REPORT => {
            node.peers.report_interval.set(new.outliers_report_interval);
            node.heartbeat_now.notify_one();
        }
        _ => return Err(format!("Property {name} is not reconfigurable")),
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
    node.heartbeat_now.notify_one();
    node.report_now.notify_one();
    if faults.is_empty() { Ok(()) } else { Err(faults) }
}

#[cfg(test)]
mod tests;
