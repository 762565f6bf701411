//! ClientDatanodeProtocol: what clients and administrators ask of a DataNode by RPC.

use crate::node::Node;
use crate::protocol;
use cairn_net::rpc_server::{Call, respond};
use cairn_wire::RemoteException;
use cairn_wire::exception::class;
use cairn_wire::proto::hdfs::{
    DatanodeLocalInfoProto, EvictWritersResponseProto, GetBalancerBandwidthResponseProto,
    GetDatanodeInfoResponseProto, GetReplicaVisibleLengthRequestProto,
    GetReplicaVisibleLengthResponseProto, RefreshNamenodesResponseProto,
    TriggerBlockReportResponseProto,
};
use std::sync::Arc;

/// The protocol's name on the wire.
pub(crate) const NAME: &str = "org.apache.hadoop.hdfs.protocol.ClientDatanodeProtocol";

/// The Hadoop version whose behaviour this is.
pub(crate) const SOFTWARE_VERSION: &str = "3.5.0";

/// Answers one call.
pub(crate) async fn call(node: &Arc<Node>, call: &Call) -> Result<Vec<u8>, RemoteException> {
    match call.method.as_str() {
        "getReplicaVisibleLength" => {
            let request: GetReplicaVisibleLengthRequestProto = call.decode()?;
            let length = node.dataset.visible_len(&protocol::block(&request.block))?;
            respond(&GetReplicaVisibleLengthResponseProto { length })
        }
        "getDatanodeInfo" => respond(&GetDatanodeInfoResponseProto {
            local_info: DatanodeLocalInfoProto {
                software_version: SOFTWARE_VERSION.into(),
                config_version: "core-3.5.0,hdfs-3.5.0".into(),
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
            node.report_now.notify_one();
            respond(&TriggerBlockReportResponseProto {})
        }
        // One NameNode, found by its name at every connection: there is nothing to refresh.
        "refreshNamenodes" => respond(&RefreshNamenodesResponseProto {}),
        "getReconfigurationStatus" | "startReconfiguration" | "listReconfigurableProperties" => {
            super::reconfigure::call(node, call)
        }
        "getBlockLocalPathInfo" => Err(RemoteException::new(
            class::ACCESS_CONTROL,
            "Can't continue with getBlockLocalPathInfo() authorization. The user is not configured in dfs.block.local-path-access.user",
        )),
        "deleteBlockPool"
        | "shutdownDatanode"
        | "getVolumeReport"
        | "submitDiskBalancerPlan"
        | "cancelDiskBalancerPlan"
        | "queryDiskBalancerPlan"
        | "getDiskBalancerSetting" => Err(RemoteException::new(
            class::UNSUPPORTED_OPERATION,
            format!("{} is not supported", call.method),
        )),
        _ => Err(call.unknown_method()),
    }
}
