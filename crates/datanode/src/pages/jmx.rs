//! Hadoop's beans of a DataNode, with its names. What Cairn does not count is left out.
//!
//! Source: Hadoop 3.5.0 `DataNodeMetrics`, `FSDatasetMBean`, `DataNodeMXBean`.

use super::volumes::{VolumeView, host, sum, volumes};
use crate::messages::SOFTWARE_VERSION;
use crate::metrics::{Metrics, Timer};
use crate::node::Node;
use crate::node::name_nodes::NameNode;
use crate::slow_io::Step;
use crate::volume::Volume;
use crate::volume::latency::DiskWork;
use cairn_net::http::{Request, Response};
use cairn_net::monitoring;
use cairn_wire::transfer::Op;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::{SystemTime, UNIX_EPOCH};

/// `/jmx`.
pub(super) fn page(node: &Node, request: &Request) -> Response {
    let volumes = volumes(node);
    let mut beans = vec![activity(node), dataset_state(node, &volumes), info(node, &volumes)];
    if node.dataset.sampling().is_on() {
        beans.extend(node.dataset.volumes().iter().map(|volume| latencies(volume)));
    }
    monitoring::jmx(beans, request)
}

/// What was done since the start.
fn activity(node: &Node) -> Value {
    let (m, ram) = (&node.metrics, node.dataset.ram_disk_stats());
    let slow = |step| node.dataset.slow_io().count(step);
    let both = |clients: u64, datanodes: u64| clients + datanodes;
    // A colon would end the name's domain.
    let name =
        format!("DataNodeActivity-{}-{}", host(node).replace(':', "-"), node.xfer_addr.port());
    let mut bean = json!({
        "name": format!("Hadoop:service=DataNode,name={name}"),
        "modelerType": name,
        "tag.Context": "dfs",
        "tag.Hostname": host(node),
        "BytesRead": both(m.read_by_clients.bytes.get(), m.read_by_datanodes.bytes.get()),
        "BlocksRead": both(m.read_by_clients.blocks.get(), m.read_by_datanodes.blocks.get()),
        "BytesWritten": both(m.written_by_clients.bytes.get(), m.written_by_datanodes.bytes.get()),
        "BlocksWritten":
            both(m.written_by_clients.blocks.get(), m.written_by_datanodes.blocks.get()),
        "BlocksReplicated": m.copied_out.blocks.get(),
        "BlocksRemoved": m.removed.get(),
        "BlocksVerified": m.verified.get(),
        "BlockVerificationFailures": m.verified_bad.get(),
        "BlocksCached": m.cached.get(),
        "BlocksUncached": m.uncached.get(),
        "VolumeFailures": node.dataset.volume_failures(),
        "DataNodeActiveXceiversCount": node.connections.load(Ordering::Relaxed),
        "PacketsSlowWriteToDisk": slow(Step::Write),
        "PacketsSlowWriteToMirror": slow(Step::Mirror),
        "SlowFlushOrSyncCount": slow(Step::Sync),
        "SlowAckToUpstreamCount": slow(Step::Ack),
        "EcReconstructionTasks": m.rebuilding.tasks.get(),
        "EcFailedReconstructionTasks": m.rebuilding.failed_tasks.get(),
        "EcReconstructionBytesRead": m.rebuilding.bytes_read.get(),
        "EcReconstructionBytesWritten": m.rebuilding.bytes_written.get(),
        "RamDiskBlocksWrite": ram.blocks_written,
        "RamDiskBlocksWriteFallback": ram.write_fallbacks,
        "RamDiskBytesWrite": ram.bytes_written,
        "RamDiskBlocksReadHits": ram.read_hits,
        "RamDiskBlocksEvicted": ram.evicted,
        "RamDiskBlocksEvictedWithoutRead": ram.evicted_without_read,
        "RamDiskBlocksLazyPersisted": ram.blocks_saved,
        "RamDiskBytesLazyPersisted": ram.bytes_saved,
        "RamDiskBlocksDeletedBeforeLazyPersisted": ram.deleted_before_saved,
    });
    if let Value::Object(bean) = &mut bean {
        rates(m, bean);
    }
    bean
}

/// Hadoop's rates: how often, and milliseconds on average. Those are of all times, where Hadoop's are of the last
/// interval.
fn rates(metrics: &Metrics, bean: &mut Map<String, Value>) {
    let mut rate = |name: &str, timers: &[Option<&Timer>]| {
        let timers = || timers.iter().flatten();
        let count: u64 = timers().map(|timer| timer.count()).sum();
        let seconds: f64 = timers().map(|timer| timer.times().total.as_secs_f64()).sum();
        bean.insert(format!("{name}NumOps"), count.into());
        bean.insert(format!("{name}AvgTime"), (seconds * 1000.0 / count.max(1) as f64).into());
    };
    for (name, op) in [
        ("ReadBlockOp", Op::ReadBlock),
        ("WriteBlockOp", Op::WriteBlock),
        ("CopyBlockOp", Op::CopyBlock),
        ("ReplaceBlockOp", Op::ReplaceBlock),
    ] {
        rate(name, &[metrics.op(op)]);
    }
    let checksums = [metrics.op(Op::BlockChecksum), metrics.op(Op::BlockGroupChecksum)];
    rate("BlockChecksumOp", &checksums);
    for (name, method) in [
        ("Heartbeats", "sendHeartbeat"),
        ("BlockReports", "blockReport"),
        ("IncrementalBlockReports", "blockReceivedAndDeleted"),
        ("CacheReports", "cacheReport"),
    ] {
        rate(name, &[metrics.call(method)]);
    }
}

/// How the volumes stand.
fn dataset_state(node: &Node, volumes: &[VolumeView]) -> Value {
    let total = sum(volumes);
    let dirs: Vec<&str> = volumes.iter().map(|volume| volume.dir.as_str()).collect();
    let failed = volumes.iter().filter(|volume| volume.is_failed);
    let failed: Vec<&str> = failed.map(|volume| volume.dir.as_str()).collect();
    json!({
        "name": "Hadoop:service=DataNode,name=FSDatasetState",
        "modelerType": "FSDatasetState",
        "tag.StorageInfo": format!("[{}]", dirs.join(", ")),
        "StorageInfo": format!("[{}]", dirs.join(", ")),
        "Capacity": total.capacity,
        "DfsUsed": total.used,
        "Remaining": total.remaining,
        "NumFailedVolumes": failed.len(),
        "FailedStorageLocations": failed,
        "CacheCapacity": node.memory.limit(),
        "CacheUsed": node.memory.used(),
        "NumBlocksCached": node.cache.ids().len(),
        "NumBlocksFailedToCache": node.metrics.failed_to_cache.get(),
    })
}

/// How long work on a disk takes, in milliseconds. Samples and means are of the last three hours, where Hadoop's are of
/// the last interval.
///
/// Source: Hadoop 3.5.0 `DataNodeVolumeMetrics`.
fn latencies(volume: &Volume) -> Value {
    let dir = volume.root().display().to_string();
    let name = format!("DataNodeVolume-{}", dir.replace(':', "-"));
    let mut bean = json!({
        "name": format!("Hadoop:service=DataNode,name={name}"),
        "modelerType": name,
        "tag.VolumeName": dir,
    });
    if let Value::Object(bean) = &mut bean {
        for kind in DiskWork::ALL {
            let rate = match kind {
                DiskWork::Metadata => "MetadataOperationRate",
                DiskWork::Read => "ReadIoRate",
                DiskWork::Write => "WriteIoRate",
                DiskWork::Sync => "SyncIoRate",
                DiskWork::Transfer => "TransferIoRate",
            };
            bean.insert(format!("{rate}NumOps"), volume.latency_samples(kind).into());
            let mean = volume.mean_latency(kind).unwrap_or_default();
            bean.insert(format!("{rate}AvgTime"), mean.into());
        }
    }
    bean
}

/// Who this DataNode is, and whom it serves.
fn info(node: &Node, volumes: &[VolumeView]) -> Value {
    let registration = node.registration().ok();
    let pool = node.dataset.pool_id();
    let actor = |one: &NameNode| {
        let since = one.since_heartbeat(node.started).map(|since| since.as_secs().to_string());
        json!({
            "NamenodeAddress": one.address,
            "BlockPoolID": pool,
            "ActorState": if one.registration().is_ok() { "RUNNING" } else { "CONNECTING" },
            "LastHeartbeatResponseTime": since,
            "isSlownode": node.marks.is_slow().to_string(),
        })
    };
    let actors: Vec<Value> = node.name_nodes.iter().map(actor).collect();
    let host_of = |one: &NameNode| {
        let address = one.address.as_str();
        address.rsplit_once(':').map_or(address, |(host, _)| host).to_string()
    };
    let hosts: Map<String, Value> =
        node.name_nodes.iter().map(|one| (host_of(one), json!(pool))).collect();
    let http_port = node.http_addr.map_or(0, |addr| addr.port());
    let started = SystemTime::now().checked_sub(node.started.elapsed());
    let started = started.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    json!({
        "name": "Hadoop:service=DataNode,name=DataNodeInfo",
        "modelerType": "cairn.DataNode",
        "Version": SOFTWARE_VERSION,
        "SoftwareVersion": env!("CARGO_PKG_VERSION"),
        "RpcPort": node.ipc_addr.port().to_string(),
        "HttpPort": http_port.to_string(),
        "DataPort": node.xfer_addr.port().to_string(),
        "DatanodeHostname": host(node),
        "NamenodeAddresses": Value::Object(hosts).to_string(),
        "BPServiceActorInfo": json!(actors).to_string(),
        "VolumeInfo": volume_info(volumes),
        "SendPacketDownstreamAvgInfo": node.peers.send_means().map(send_means),
        "SlowDisks": node.dataset.sampling().is_on().then(|| json!(node.disks.slow()).to_string()),
        "ClusterId": registration.map(|known| known.storage_info.cluster_id),
        "XceiverCount": node.connections.load(Ordering::Relaxed),
        "PacketMemoryLimit": node.packet_memory.limit(),
        "PacketMemoryUsed": node.packet_memory.used(),
        "PacketMemoryWaiting": node.packet_memory.waiting(),
        "XmitsInProgress": node.transfers.load(Ordering::Relaxed),
        "DNStartedTimeInMillis": started.map_or(0, |time| time.as_millis() as u64),
        "SecurityEnabled": false,
    })
}

/// Mean times of packets to other DataNodes, as JSON text.
///
/// Source: Hadoop 3.5.0 `DataNodePeerMetrics#dumpSendPacketDownstreamAvgInfoAsJson`.
fn send_means(means: BTreeMap<String, f64>) -> String {
    let named = means.into_iter().map(|(name, ms)| (format!("[{name}]RollingAvgTime"), json!(ms)));
    Value::Object(named.collect()).to_string()
}

/// The volumes in use, as JSON text.
///
/// Source: Hadoop 3.5.0 `FsDatasetImpl#getVolumeInfoMap`.
fn volume_info(volumes: &[VolumeView]) -> String {
    let in_use = volumes.iter().filter(|volume| !volume.is_failed);
    let info = in_use.map(|volume| {
        let info = json!({
            "usedSpace": volume.usage.used,
            "freeSpace": volume.usage.remaining,
            "reservedSpace": volume.reserved,
            "reservedSpaceForReplicas": volume.promised,
            "numBlocks": volume.replicas,
            "storageType": volume.storage_type,
        });
        (volume.dir.clone(), info)
    });
    Value::Object(info.collect()).to_string()
}
