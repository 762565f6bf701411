//! `DatanodeProtocol`: what DataNodes ask of the NameNode, one function for each RPC.
//!
//! Each function decodes, asks or tells the cluster (and, after a block recovery, the namespace), and
//! encodes. Decisions are in `cairn-redundancy`. Source: Hadoop 3.5.0 `NameNodeRpcServer`,
//! `DatanodeProtocolServerSideTranslatorPB`.

use cairn_net::rpc_server::Call;

use crate::node::NameNode;
use crate::refusal::Answer;

pub mod block_list;
mod commands;
mod encoder;
pub(crate) mod following;
mod groups;
mod orders;
mod packs;
mod register;
mod report;
mod synchronize;

pub use register::SOFTWARE_VERSION;
pub(super) use register::{named, version_request};

/// Handles a call of this protocol.
pub async fn handle(node: &NameNode, call: &Call) -> Answer {
    match call.method.as_str() {
        "versionRequest" => register::version_request(node, call),
        "registerDatanode" => register::register_datanode(node, call).await,
        "sendHeartbeat" => report::send_heartbeat(node, call),
        "awaitOrders" => orders::await_orders(node, call).await,
        "locateUnits" => groups::locate_units(node, call),
        "blockReport" => report::block_report(node, call).await,
        "blockReceivedAndDeleted" => report::block_received_and_deleted(node, call).await,
        "cacheReport" => report::cache_report(node, call),
        "errorReport" => report::error_report(node, call),
        "reportBadBlocks" => report::report_bad_blocks(node, call),
        "commitBlockSynchronization" => synchronize::commit_block_synchronization(node, call).await,
        _ => Err(call.unknown_method().into()),
    }
}

/// Handles a call of `DatanodeLifelineProtocol`: a DataNode whose heartbeats are late lives.
///
/// Deviation: served where all else is; Hadoop has an address of its own for it.
pub fn handle_lifeline(node: &NameNode, call: &Call) -> Answer {
    match call.method.as_str() {
        "sendLifeline" => report::send_lifeline(node, call),
        _ => Err(call.unknown_method().into()),
    }
}

#[cfg(test)]
mod tests;
