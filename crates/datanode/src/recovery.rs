//! Leads the recovery of blocks whose writer died, as the NameNode commands.
//!
//! Asks every DataNode that should have a replica to freeze it, has the replica core decide on a length, has the
//! replicas cut to it, and tells the NameNode.
//!
//! Source: Hadoop 3.5.0 `BlockRecoveryWorker`.

use crate::dataset::Block;
use crate::error::{DataNodeError, Result};
use crate::messages;
use crate::node::{INTER_DATANODE, Node};
use crate::protocol::inter;
use cairn_net::rpc_client::{RpcClient, RpcClientOptions, RpcError};
use cairn_replica::recovery::{
    Agreement, Aim, Answer, Cut, CutResult, Earlier, Order, RecoveryError,
};
use cairn_replica::{RecoveryInfo, ReplicaError, ReplicaState};
use cairn_stripe::{BlockId, GenerationStamp, UnitIndex};
use cairn_wire::exception::class;
use cairn_wire::proto::datanode::{
    CommitBlockSynchronizationRequestProto, CommitBlockSynchronizationResponseProto,
};
use cairn_wire::proto::hdfs::{
    DatanodeIDProto, InitReplicaRecoveryRequestProto, InitReplicaRecoveryResponseProto,
    LocatedBlockProto, RecoveringBlockProto, UpdateReplicaUnderRecoveryRequestProto,
    UpdateReplicaUnderRecoveryResponseProto,
};
use std::sync::Arc;

/// Recovers one block; errors are logged, the NameNode asks again.
pub(crate) async fn recover(node: Arc<Node>, command: RecoveringBlockProto) {
    let block = messages::block(&command.block.b);
    let gs = command.new_gen_stamp;
    tracing::info!(block = %block.id, new_gs = gs, nodes = command.block.locs.len(), "recovering a block");
    match lead(&node, &command, &block).await {
        Ok(()) => {}
        Err(DataNodeError::Recovery(RecoveryError::Superseded)) => {
            tracing::info!(block = %block.id, "a newer recovery is in progress")
        }
        Err(error) => tracing::warn!(block = %block.id, %error, "block recovery failed"),
    }
}

async fn lead(node: &Arc<Node>, command: &RecoveringBlockProto, block: &Block) -> Result<()> {
    let order = order(command, block)?;
    let places: Vec<&DatanodeIDProto> =
        command.block.locs.iter().chain(&command.earlier_locs).map(|info| &info.id).collect();
    let mut answers = Vec::new();
    while let Some(asked) = order.next_asked(&answers) {
        let asked = Block { id: asked, gs: order.asked_gs(), ..block.clone() };
        answers.push(ask(node, places[answers.len()], &asked, order.recovery_id).await);
    }
    let cutting = match order.agree(&answers)? {
        Agreement::Drop => return tell(node, block, order.recovery_id, &Told::default()).await,
        Agreement::Cut(cutting) => cutting,
    };
    let (mut results, mut storages) = (Vec::new(), vec![String::new(); answers.len()]);
    for cut in &cutting.cuts {
        let id = places[cut.place];
        let result = match set_len(node, id, &block.pool, order.recovery_id, cut).await {
            Ok(storage) => {
                storages[cut.place] = storage;
                CutResult::Done
            }
            Err(error) => {
                tracing::warn!(block = %cut.info.id, node = %id.host_name, %error, "cannot update a replica");
                if is_corrupt(&error) { CutResult::Corrupt } else { CutResult::Failed }
            }
        };
        results.push(result);
        if !cutting.goes_on_after(result) {
            break;
        }
    }
    let done = cutting.settle(&results)?;
    let named = done.iter().map(|place| match *place {
        Some(place) => (places[place].clone(), std::mem::take(&mut storages[place])),
        None => (no_node(), String::new()),
    });
    let (nodes, storages) = named.unzip();
    let told = Told { len: Some(cutting.len), nodes, storages };
    tell(node, block, order.recovery_id, &told).await
}

/// The order as the core takes it.
fn order(command: &RecoveringBlockProto, block: &Block) -> Result<Order> {
    let units = |bytes: &[u8]| -> Vec<UnitIndex> { bytes.iter().copied().map(UnitIndex).collect() };
    let count = command.block.locs.len();
    let (places, aim) = match (&command.ec_policy, &command.truncate_block) {
        (Some(policy), _) => {
            let indices = command.block_indices.as_deref().unwrap_or_default();
            (units(indices), Aim::Units(messages::geometry(policy)?))
        }
        (None, Some(new)) => {
            let (id, len) = (BlockId(new.block_id as i64), new.num_bytes.unwrap_or(0));
            (vec![UnitIndex(0); count], Aim::Truncated { id, len })
        }
        (None, None) => (vec![UnitIndex(0); count], Aim::Replicas),
    };
    if places.len() != count {
        return Err(RecoveryError::BadOrder("there is not one index for each location").into());
    }
    let order = Order {
        block: block.id,
        gs: block.gs,
        acked_len: block.len,
        recovery_id: GenerationStamp(command.new_gen_stamp),
        places,
        away: command.away_indices.as_deref().map(units),
        earlier: command.earlier_gen_stamp.map(|since| Earlier {
            since: GenerationStamp(since),
            place_count: command.earlier_locs.len(),
            away_count: command.earlier_away_count.unwrap_or(0) as usize,
        }),
        aim,
    };
    order.check()?;
    Ok(order)
}

/// Whether a DataNode did not change its replica because that is corrupt.
fn is_corrupt(error: &DataNodeError) -> bool {
    match error {
        DataNodeError::Corrupt(_) => true,
        DataNodeError::Rpc { source, .. } => source.is_remote(class::CHECKSUM),
        _ => false,
    }
}

/// Whether a newer recovery holds the replica.
fn is_superseded(error: &DataNodeError) -> bool {
    match error {
        DataNodeError::Replica(ReplicaError::RecoveryInProgress { .. }) => true,
        DataNodeError::Rpc { source: RpcError::Remote(error), .. } => {
            error.is(class::RECOVERY_IN_PROGRESS)
        }
        _ => false,
    }
}

/// Stands for a unit that nobody holds.
///
/// Source: Hadoop 3.5.0 `DatanodeID#EMPTY_DATANODE_ID`.
fn no_node() -> DatanodeIDProto {
    let null = || "null".to_string();
    DatanodeIDProto {
        ip_addr: null(),
        host_name: null(),
        datanode_uuid: null(),
        ..Default::default()
    }
}

/// What the NameNode is told.
#[derive(Default)]
struct Told {
    /// Bytes of the block; `None` if it is to be dropped.
    len: Option<u64>,
    nodes: Vec<DatanodeIDProto>,
    storages: Vec<String>,
}

async fn tell(node: &Node, block: &Block, recovery_id: GenerationStamp, told: &Told) -> Result<()> {
    let request = CommitBlockSynchronizationRequestProto {
        block: messages::extended_block(block),
        new_gen_stamp: recovery_id.0,
        new_length: told.len.unwrap_or(0),
        close_file: true,
        delete_block: told.len.is_none(),
        new_taragets: told.nodes.clone(),
        new_target_storages: told.storages.clone(),
    };
    let call = node
        .name_nodes
        .active()?
        .client
        .call::<_, CommitBlockSynchronizationResponseProto>("commitBlockSynchronization", &request);
    call.await
        .map_err(|source| DataNodeError::Rpc { what: "commitBlockSynchronization", source })?;
    tracing::info!(block = %block.id, len = request.new_length, deleted = request.delete_block, "block recovered");
    Ok(())
}

/// What one DataNode says when it is to freeze its replica.
async fn ask(
    node: &Arc<Node>,
    id: &DatanodeIDProto,
    block: &Block,
    recovery_id: GenerationStamp,
) -> Answer {
    match freeze(node, id, block, recovery_id).await {
        Ok(Some(info)) => Answer::Holds(info),
        Ok(None) => Answer::Nothing,
        Err(error) if is_superseded(&error) => Answer::Superseded,
        Err(error) => {
            tracing::warn!(block = %block.id, node = %id.host_name, %error, "cannot ask for a replica");
            Answer::Silent
        }
    }
}

/// Asks a DataNode (maybe this one) to freeze its replica.
async fn freeze(
    node: &Arc<Node>,
    id: &DatanodeIDProto,
    block: &Block,
    recovery_id: GenerationStamp,
) -> Result<Option<RecoveryInfo>> {
    let recovering = RecoveringBlockProto {
        new_gen_stamp: recovery_id.0,
        block: LocatedBlockProto { b: messages::extended_block(block), ..Default::default() },
        ..Default::default()
    };
    let request = InitReplicaRecoveryRequestProto { block: recovering };
    let answer: InitReplicaRecoveryResponseProto = if id.datanode_uuid == node.dataset.uuid() {
        inter::init(node, request).await?
    } else {
        call(node, id, "initReplicaRecovery", &request).await?
    };
    let (Some(state), Some(found), true) = (answer.state, answer.block, answer.replica_found)
    else {
        return Ok(None);
    };
    let original = ReplicaState::from_value(state as u64)
        .ok_or_else(|| DataNodeError::peer("unknown replica state"))?;
    Ok(Some(RecoveryInfo {
        id: BlockId(found.block_id as i64),
        gs: GenerationStamp(found.gen_stamp),
        len: found.num_bytes.unwrap_or(0),
        original,
    }))
}

/// Has a participant finish; returns its storage.
async fn set_len(
    node: &Arc<Node>,
    id: &DatanodeIDProto,
    pool: &str,
    recovery_id: GenerationStamp,
    cut: &Cut,
) -> Result<String> {
    let RecoveryInfo { id: old_id, gs, len, .. } = cut.info;
    let request = UpdateReplicaUnderRecoveryRequestProto {
        block: messages::extended_block(&Block { pool: pool.into(), id: old_id, gs, len }),
        recovery_id: recovery_id.0,
        new_length: cut.len,
        new_block_id: Some(cut.id.0 as u64),
    };
    let answer: UpdateReplicaUnderRecoveryResponseProto = if id.datanode_uuid == node.dataset.uuid()
    {
        inter::update(node, request).await?
    } else {
        call(node, id, "updateReplicaUnderRecovery", &request).await?
    };
    Ok(answer.storage_uuid.unwrap_or_default())
}

async fn call<Req: prost::Message, Resp: prost::Message + Default>(
    node: &Node,
    id: &DatanodeIDProto,
    method: &'static str,
    request: &Req,
) -> Result<Resp> {
    let credentials = node.config.security.as_ref().map(|security| security.peers.clone());
    let call_timeout = node.config.read_timeout;
    let reach = node.config.reach.clone();
    let options =
        RpcClientOptions { call_timeout, credentials, reach, ..RpcClientOptions::default() };
    let addr = format!("{}:{}", node.host_of(id), id.ipc_port);
    let client = RpcClient::new(addr, INTER_DATANODE, node.config.user.clone(), options);
    client.call(method, request).await.map_err(|source| DataNodeError::Rpc { what: method, source })
}
