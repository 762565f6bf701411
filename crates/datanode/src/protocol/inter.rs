//! InterDatanodeProtocol: what the DataNode that leads a block's recovery asks of the others.

use crate::cache;
use crate::dataset::blocking;
use crate::error::DataNodeError;
use crate::messages;
use crate::node::Node;
use cairn_net::rpc_server::{Call, respond};
use cairn_stripe::{BlockId, GenerationStamp};
use cairn_wire::RemoteException;
use cairn_wire::proto::hdfs::{
    InitReplicaRecoveryRequestProto, InitReplicaRecoveryResponseProto,
    UpdateReplicaUnderRecoveryRequestProto, UpdateReplicaUnderRecoveryResponseProto,
};
use std::sync::Arc;

/// Answers one call.
pub(crate) async fn call(node: &Arc<Node>, call: &Call) -> Result<Vec<u8>, RemoteException> {
    match call.method.as_str() {
        "initReplicaRecovery" => respond(&init(node, call.decode()?).await?),
        "updateReplicaUnderRecovery" => respond(&update(node, call.decode()?).await?),
        _ => Err(call.unknown_method()),
    }
}

/// Freezes the replica here.
pub(crate) async fn init(
    node: &Arc<Node>,
    request: InitReplicaRecoveryRequestProto,
) -> Result<InitReplicaRecoveryResponseProto, DataNodeError> {
    let block = messages::block(&request.block.block.b);
    let found =
        node.dataset.init_recovery(&block, GenerationStamp(request.block.new_gen_stamp)).await?;
    Ok(match found {
        None => InitReplicaRecoveryResponseProto { replica_found: false, ..Default::default() },
        Some(info) => InitReplicaRecoveryResponseProto {
            replica_found: true,
            state: Some(info.original.value() as i32),
            block: Some(messages::local_block(info.id, info.gs, info.len)),
        },
    })
}

/// Sets the replica's length and stamp, and reports it.
pub(crate) async fn update(
    node: &Arc<Node>,
    request: UpdateReplicaUnderRecoveryRequestProto,
) -> Result<UpdateReplicaUnderRecoveryResponseProto, DataNodeError> {
    let old = messages::block(&request.block);
    let new_id = request.new_block_id.map_or(old.id, |id| BlockId(id as i64));
    let new_id = if new_id.0 == 0 { old.id } else { new_id };
    let (gs, len) = (GenerationStamp(request.recovery_id), request.new_length);
    let dataset = node.dataset.clone();
    let replica = old.clone();
    let done = blocking(move || dataset.finish_recovery(&replica, gs, new_id, len)).await;
    let done = done.inspect_err(|error| {
        node.check_volume(error);
        node.note_corrupt(&old, error);
    })?;
    cache::recheck(node, old.id);
    node.report_received(&done, None);
    Ok(UpdateReplicaUnderRecoveryResponseProto { storage_uuid: Some(done.storage_id) })
}
