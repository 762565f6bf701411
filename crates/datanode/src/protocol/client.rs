//! ClientDatanodeProtocol: what clients and administrators ask of a DataNode by RPC.

use super::superuser::check_superuser;
use crate::dataset::blocking;
use crate::error::DataNodeError;
use crate::messages::{self, SOFTWARE_VERSION};
use crate::node::Node;
use crate::ops::virtual_block;
use crate::volume::Volume;
use cairn_net::rpc_server::{Authentication, Call, respond};
use cairn_wire::RemoteException;
use cairn_wire::exception::class;
use cairn_wire::proto::hdfs::{
    DatanodeLocalInfoProto, DatanodeVolumeInfoProto, DeleteBlockPoolRequestProto,
    DeleteBlockPoolResponseProto, EvictWritersResponseProto, GetBalancerBandwidthResponseProto,
    GetDatanodeInfoResponseProto, GetReplicaVisibleLengthRequestProto,
    GetReplicaVisibleLengthResponseProto, GetVolumeReportResponseProto,
    RefreshNamenodesResponseProto, ShutdownDatanodeRequestProto, ShutdownDatanodeResponseProto,
    TriggerBlockReportRequestProto, TriggerBlockReportResponseProto,
};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The protocol's name on the wire.
pub(crate) const NAME: &str = "org.apache.hadoop.hdfs.protocol.ClientDatanodeProtocol";

/// Versions that Hadoop's files of defaults give themselves (`hadoop.common.configuration.version`,
/// `hadoop.hdfs.configuration.version`).
const CONFIG_VERSION: &str = "core-3.0.0,hdfs-1";

/// Time for the answer to get to the caller before the DataNode stops.
///
/// Source: Hadoop 3.5.0 `DataNode#shutdownDatanode`.
const SHUTDOWN_DELAY: Duration = Duration::from_secs(1);
/// The same where it is to be back soon.
const RESTART_DELAY: Duration = Duration::from_millis(100);

/// What Hadoop throws where the disk balancer is off.
const DISK_BALANCER: &str = "org.apache.hadoop.hdfs.server.diskbalancer.DiskBalancerException";

/// What only superusers may call.
const FOR_SUPERUSERS: &[&str] = &[
    "refreshNamenodes",
    "deleteBlockPool",
    "shutdownDatanode",
    "evictWriters",
    "triggerBlockReport",
    "getVolumeReport",
    "submitDiskBalancerPlan",
    "cancelDiskBalancerPlan",
    "queryDiskBalancerPlan",
    "getDiskBalancerSetting",
];

/// Answers one call.
pub(crate) async fn call(node: &Arc<Node>, call: &Call) -> Result<Vec<u8>, RemoteException> {
    if FOR_SUPERUSERS.contains(&&*call.method) {
        check_superuser(node, call).await?;
    }
    match call.method.as_str() {
        "getReplicaVisibleLength" => {
            let request: GetReplicaVisibleLengthRequestProto = call.decode()?;
            let shown = match &call.user.by {
                Authentication::Block(id) => Some(&**id),
                _ => None,
            };
            let allowed = node.block_tokens.check_shown(&request.block, shown);
            allowed.map_err(|error| RemoteException::new(class::INVALID_TOKEN, error.0))?;
            let block = messages::block(&request.block);
            virtual_block::check_unfenced(node, &block)?;
            let length = match virtual_block::may_be_elsewhere(node, &block) {
                true => virtual_block::visible_len(node, &block).await?,
                false => node.dataset.visible_len(&block)?,
            };
            respond(&GetReplicaVisibleLengthResponseProto { length })
        }
        "getDatanodeInfo" => respond(&GetDatanodeInfoResponseProto {
            local_info: DatanodeLocalInfoProto {
                software_version: SOFTWARE_VERSION.into(),
                config_version: CONFIG_VERSION.into(),
                uptime: node.started.elapsed().as_secs(),
            },
        }),
        "getBalancerBandwidth" => {
            respond(&GetBalancerBandwidthResponseProto { bandwidth: node.balance_budget.get() })
        }
        "evictWriters" => {
            node.dataset.stop_all_writers();
            respond(&EvictWritersResponseProto {})
        }
        "triggerBlockReport" => {
            trigger_block_report(node, &call.decode()?).await;
            respond(&TriggerBlockReportResponseProto {})
        }
        // One NameNode, found by its name at every connection: there is nothing to refresh.
        "refreshNamenodes" => respond(&RefreshNamenodesResponseProto {}),
        "getReconfigurationStatus" | "startReconfiguration" | "listReconfigurableProperties" => {
            super::reconfigure::call(node, call).await
        }
        "getBlockLocalPathInfo" => Err(RemoteException::new(
            class::ACCESS_CONTROL,
            "Can't continue with getBlockLocalPathInfo() authorization. The user is not configured in dfs.block.local-path-access.user",
        )),
        "getVolumeReport" => respond(&volume_report(node).await?),
        "deleteBlockPool" => {
            delete_block_pool(node, call.decode()?).await?;
            respond(&DeleteBlockPoolResponseProto {})
        }
        "shutdownDatanode" => {
            shut_down(node, call)?;
            respond(&ShutdownDatanodeResponseProto {})
        }
        "submitDiskBalancerPlan"
        | "cancelDiskBalancerPlan"
        | "queryDiskBalancerPlan"
        | "getDiskBalancerSetting" => {
            Err(RemoteException::new(DISK_BALANCER, "Disk Balancer is not enabled."))
        }
        _ => Err(call.unknown_method()),
    }
}

/// Reports in full, or what has changed, to all NameNodes or the one that is named. A name of another one asks for
/// nothing.
///
/// Source: Hadoop 3.5.0 `DataNode#triggerBlockReport`.
async fn trigger_block_report(node: &Node, request: &TriggerBlockReportRequestProto) {
    let asked = match &request.nn_address {
        Some(name) => Some(addresses(name).await),
        None => None,
    };
    for member in node.name_nodes.members() {
        if let Some(asked) = &asked {
            let known = addresses(&node.name_nodes.get(member).address).await;
            if !asked.iter().any(|addr| known.contains(addr)) {
                continue;
            }
        }
        match request.incremental {
            true => node.changes_now.one(member),
            false => node.report_now.one(member),
        }
    }
}

/// What a `host:port` means here; nothing if nobody knows.
async fn addresses(name: &str) -> Vec<SocketAddr> {
    tokio::net::lookup_host(name).await.map(Iterator::collect).unwrap_or_default()
}

/// Source: Hadoop 3.5.0 `DataNode#getVolumeReport`.
async fn volume_report(node: &Arc<Node>) -> Result<GetVolumeReportResponseProto, DataNodeError> {
    let dataset = node.dataset.clone();
    blocking(move || {
        let volumes = dataset.volumes();
        let healthy = volumes.iter().filter(|volume| !volume.is_failed());
        let info = |volume: &Arc<Volume>| -> Result<DatanodeVolumeInfoProto, DataNodeError> {
            let usage = volume.usage()?;
            Ok(DatanodeVolumeInfoProto {
                path: volume.root().display().to_string(),
                storage_type: volume.storage_type().number(),
                used_space: usage.used,
                free_space: usage.remaining,
                reserved_space: volume.reserved(),
                reserved_space_for_replicas: volume.promised(),
                num_blocks: dataset.count_finalized_on(volume) as u64,
            })
        };
        Ok(GetVolumeReportResponseProto {
            volume_info: healthy.map(info).collect::<Result<_, _>>()?,
        })
    })
    .await
}

/// The pool that is served is never deleted; of another there has to be nothing. Deviation: Hadoop deletes what
/// other pools have left.
///
/// Source: Hadoop 3.5.0 `DataNode#deleteBlockPool`.
async fn delete_block_pool(
    node: &Node,
    request: DeleteBlockPoolRequestProto,
) -> Result<(), RemoteException> {
    if node.dataset.pool_id() == Some(&request.block_pool) {
        return Err(RemoteException::io(
            "The block pool is still running. First do a refreshNamenodes to shutdown the block pool service",
        ));
    }
    let volumes = node.dataset.volumes();
    let found = blocking(move || {
        let healthy = volumes.iter().filter(|volume| !volume.is_failed());
        healthy.map(|volume| volume.has_pool(&request.block_pool)).collect::<Result<Vec<_>, _>>()
    });
    match found.await?.contains(&true) {
        false => Ok(()),
        true => Err(RemoteException::new(
            class::UNSUPPORTED_OPERATION,
            "deleteBlockPool is not supported",
        )),
    }
}

/// Stops the DataNode soon. Deviation: writers are not told to wait for its restart.
///
/// Source: Hadoop 3.5.0 `DataNode#shutdownDatanode`.
fn shut_down(node: &Arc<Node>, call: &Call) -> Result<(), RemoteException> {
    let request: ShutdownDatanodeRequestProto = call.decode()?;
    if node.is_told_to_stop.swap(true, Ordering::AcqRel) {
        return Err(RemoteException::io("Shutdown already in progress."));
    }
    let (dataset, user) = (node.dataset.clone(), call.user.effective.clone());
    node.tasks.spawn(async move {
        let delay = if request.for_upgrade { RESTART_DELAY } else { SHUTDOWN_DELAY };
        tokio::time::sleep(delay).await;
        dataset.give_up(format!("{user} has shut it down"));
    });
    Ok(())
}
