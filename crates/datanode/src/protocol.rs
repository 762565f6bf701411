//! What a DataNode answers by RPC, one file for each protocol.

pub(crate) mod client;
pub(crate) mod inter;
pub(crate) mod reconfigure;
mod superuser;

pub(crate) use superuser::admins;

use crate::node::INTER_DATANODE;
use cairn_net::rpc_server::RpcMetrics;
use cairn_operate::reconfiguration;
use cairn_operate::workers;
use cairn_wire::proto::hdfs;

/// Counts of calls of all protocols, none yet.
pub(crate) fn metrics() -> RpcMetrics {
    let served: [(&str, &[&str]); 4] = [
        (client::NAME, hdfs::CLIENT_DATANODE_PROTOCOL_SERVICE_METHODS),
        (INTER_DATANODE, hdfs::INTER_DATANODE_PROTOCOL_SERVICE_METHODS),
        (reconfiguration::NAME, hdfs::RECONFIGURATION_PROTOCOL_SERVICE_METHODS),
        (reconfiguration::NAME, &workers::METHODS),
    ];
    RpcMetrics::new(served, &[])
}
