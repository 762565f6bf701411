//! Leads the recovery of blocks whose writer died, as the NameNode commands.
//!
//! Asks every DataNode that should have a replica to freeze it, lets the replica core (or, for block groups, the
//! stripe geometry) decide on a length, has the replicas cut to it, and tells the NameNode.
//!
//! Source: Hadoop 3.5.0 `BlockRecoveryWorker`.

use crate::dataset::Block;
use crate::error::{DataNodeError, Result};
use crate::messages;
use crate::node::{INTER_DATANODE, Node};
use crate::protocol::inter;
use cairn_net::rpc_client::{RpcClient, RpcClientOptions, RpcError};
use cairn_replica::recovery::plan_replicated;
use cairn_replica::{Candidate, RecoveryInfo, RecoveryPlan, ReplicaError, ReplicaState};
use cairn_stripe::geometry::Geometry;
use cairn_stripe::id::MAX_UNITS_PER_GROUP;
use cairn_stripe::{BlockId, GenerationStamp, UnitFound, UnitIndex};
use cairn_wire::exception::class;
use cairn_wire::proto::datanode::{
    CommitBlockSynchronizationRequestProto, CommitBlockSynchronizationResponseProto,
};
use cairn_wire::proto::hdfs::{
    DatanodeIDProto, ErasureCodingPolicyProto, InitReplicaRecoveryRequestProto,
    InitReplicaRecoveryResponseProto, LocatedBlockProto, RecoveringBlockProto,
    UpdateReplicaUnderRecoveryRequestProto, UpdateReplicaUnderRecoveryResponseProto,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Recovers one block; errors are logged, the NameNode asks again.
pub(crate) async fn recover(node: Arc<Node>, command: RecoveringBlockProto) {
    let block = messages::block(&command.block.b);
    let gs = command.new_gen_stamp;
    tracing::info!(block = %block.id, new_gs = gs, nodes = command.block.locs.len(), "recovering a block");
    let done = match &command.ec_policy {
        Some(policy) => recover_striped(&node, &command, policy).await,
        None => recover_replicated(&node, &command).await,
    };
    match done {
        Ok(()) => {}
        Err(Failure::Superseded) => {
            tracing::info!(block = %block.id, "a newer recovery is in progress")
        }
        Err(Failure::Error(error)) => {
            tracing::warn!(block = %block.id, %error, "block recovery failed")
        }
    }
}

/// Why a recovery ends early.
enum Failure {
    /// A newer one holds a replica.
    Superseded,
    Error(DataNodeError),
}

impl From<DataNodeError> for Failure {
    fn from(error: DataNodeError) -> Failure {
        let is_newer = match &error {
            DataNodeError::Replica(ReplicaError::RecoveryInProgress { .. }) => true,
            DataNodeError::Rpc { source: RpcError::Remote(e), .. } => {
                e.is(class::RECOVERY_IN_PROGRESS)
            }
            _ => false,
        };
        if is_newer { Failure::Superseded } else { Failure::Error(error) }
    }
}

/// A replica that may take part.
struct Participant<'a> {
    id: &'a DatanodeIDProto,
    info: RecoveryInfo,
}

async fn recover_replicated(
    node: &Arc<Node>,
    command: &RecoveringBlockProto,
) -> Result<(), Failure> {
    let block = messages::block(&command.block.b);
    let recovery_id = GenerationStamp(command.new_gen_stamp);
    let (mut found, mut errors) = (Vec::new(), 0);
    for location in &command.block.locs {
        match freeze(node, &location.id, &block, recovery_id).await.map_err(Failure::from) {
            Ok(Some(info)) => found.push(Participant { id: &location.id, info }),
            Ok(None) => {}
            Err(Failure::Superseded) => return Err(Failure::Superseded),
            Err(Failure::Error(error)) => {
                tracing::warn!(block = %block.id, node = %location.id.host_name, %error, "cannot ask for a replica");
                errors += 1;
            }
        }
    }
    if errors == command.block.locs.len() {
        return Err(DataNodeError::peer("All datanodes failed").into());
    }
    let truncated = command.truncate_block.as_ref();
    // An attempt before this one may have cut some of them off already.
    let most = truncated.and_then(|new| new.num_bytes).unwrap_or(u64::MAX);
    let cut = |info: RecoveryInfo| RecoveryInfo { len: info.len.min(most), ..info };
    let answers: Vec<Candidate> =
        found.iter().enumerate().map(|(node, p)| Candidate { node, info: cut(p.info) }).collect();
    let (chosen, len) = match plan_replicated(&answers, block.gs) {
        RecoveryPlan::Impossible(why) => return Err(DataNodeError::peer(why).into()),
        // Who cannot be asked may have what was acknowledged; it answers, or is taken for dead some time.
        //
        // Deviation: Hadoop deletes the block as soon as one that can be asked has nothing.
        RecoveryPlan::Delete if errors > 0 => {
            let what = format!("{}: {errors} that may have a replica cannot be asked", block.id);
            return Err(DataNodeError::peer(what).into());
        }
        RecoveryPlan::Delete => {
            return Ok(commit(node, &block, recovery_id, Outcome::deleted()).await?);
        }
        RecoveryPlan::Truncate { nodes, len } => (nodes, len),
    };
    let len = truncated.map_or(len, |new| new.num_bytes.unwrap_or(0));
    let new_id = truncated.map_or(block.id, |new| BlockId(new.block_id as i64));
    let mut outcome = Outcome { len, ..Outcome::default() };
    for participant in chosen.into_iter().map(|at| &found[at]) {
        match set_len(node, participant, &block.pool, recovery_id, new_id, len).await {
            Ok(storage) => {
                outcome.nodes.push(participant.id.clone());
                outcome.storages.push(storage);
            }
            Err(error) => tracing::warn!(block = %block.id, %error, "cannot update a replica"),
        }
    }
    if outcome.nodes.is_empty() {
        return Err(DataNodeError::peer(format!(
            "Cannot recover {}: all DataNodes failed",
            block.id
        ))
        .into());
    }
    Ok(commit(node, &block, recovery_id, outcome).await?)
}

async fn recover_striped(
    node: &Arc<Node>,
    command: &RecoveringBlockProto,
    policy: &ErasureCodingPolicyProto,
) -> Result<(), Failure> {
    let group = messages::block(&command.block.b);
    let recovery_id = GenerationStamp(command.new_gen_stamp);
    let geometry = messages::geometry(policy)?;
    let indices = command.block_indices.as_deref().unwrap_or_default();
    let locations = &command.block.locs;
    if locations.len() < geometry.k() || indices.len() != locations.len() {
        return Err(
            DataNodeError::peer(format!("{} has no enough internal blocks", group.id)).into()
        );
    }
    let mut units: BTreeMap<u8, Participant> = BTreeMap::new();
    let mut all: BTreeMap<u8, UnitFound> = BTreeMap::new();
    let (mut without_bytes, mut errors) = (0, 0);
    for (location, &index) in locations.iter().zip(indices) {
        if usize::from(index) >= geometry.units().min(MAX_UNITS_PER_GROUP) {
            return Err(DataNodeError::peer(format!("unit {index} is not in the group")).into());
        }
        let block = Block { id: BlockId(group.id.0 + i64::from(index)), ..group.clone() };
        let answer = freeze(node, &location.id, &block, recovery_id).await.map_err(Failure::from);
        if let Ok(Some(info)) = &answer {
            let found = unit_found(index, info);
            if all.get(&index).is_none_or(|known| known.len < found.len) {
                all.insert(index, found);
            }
        }
        match answer {
            Ok(Some(info)) if info.gs >= group.gs && info.len > 0 => {
                // Of two replicas of a unit the longer one is used.
                if units.get(&index).is_none_or(|known| known.info.len < info.len) {
                    units.insert(index, Participant { id: &location.id, info });
                }
            }
            Ok(Some(info)) => without_bytes += usize::from(info.len == 0),
            Ok(None) => without_bytes += 1,
            Err(Failure::Superseded) => return Err(Failure::Superseded),
            Err(Failure::Error(error)) => {
                errors += 1;
                tracing::warn!(block = %block.id, node = %location.id.host_name, %error, "cannot ask for a unit");
            }
        }
    }
    let len = match without_bytes > locations.len() - geometry.k() {
        true => 0,
        false => {
            let found: Vec<UnitFound> =
                units.iter().map(|(index, unit)| unit_found(*index, &unit.info)).collect();
            let all: Vec<UnitFound> = all.into_values().collect();
            match geometry.recovered_len(&found) {
                Some(len) => len,
                None if errors == 0 && geometry.has_no_stripe(&all) => 0,
                None => {
                    let text = format!("{} has no enough internal blocks", group.id);
                    return Err(DataNodeError::peer(text).into());
                }
            }
        }
    };
    let outcome = truncate_units(node, &group, recovery_id, &geometry, &units, len).await?;
    Ok(commit(node, &group, recovery_id, outcome).await?)
}

fn unit_found(index: u8, info: &RecoveryInfo) -> UnitFound {
    let may_be_torn = info.original == ReplicaState::Rwr;
    UnitFound { unit: UnitIndex(index), len: info.len, may_be_torn }
}

/// Cuts every unit to its part of `len` bytes. All must succeed, for what a failed one holds is not known; but
/// units that are found corrupt are done without as long as there are enough others.
async fn truncate_units(
    node: &Arc<Node>,
    group: &Block,
    recovery_id: GenerationStamp,
    geometry: &Geometry,
    units: &BTreeMap<u8, Participant<'_>>,
    len: u64,
) -> Result<Outcome> {
    let mut outcome = Outcome {
        len,
        is_deleted: len == 0,
        nodes: vec![no_node(); geometry.units()],
        storages: vec![String::new(); geometry.units()],
    };
    let mut whole = 0;
    let mut corrupt = None;
    for (&index, unit) in units {
        let unit_len = geometry.internal_block_len(len, UnitIndex(index));
        if unit.info.len < unit_len {
            continue;
        }
        if len > 0 {
            match set_len(node, unit, &group.pool, recovery_id, unit.info.id, unit_len).await {
                Ok(storage) => outcome.storages[usize::from(index)] = storage,
                Err(error) if is_corrupt(&error) => {
                    tracing::warn!(block = %unit.info.id, %error, "a unit is corrupt");
                    corrupt = Some(error);
                    continue;
                }
                Err(error) => return Err(error),
            }
        }
        whole += 1;
        outcome.nodes[usize::from(index)] = unit.id.clone();
    }
    match corrupt {
        Some(error) if whole < geometry.k() => Err(error),
        _ => Ok(outcome),
    }
}

/// Whether a DataNode did not change its replica because that is corrupt.
fn is_corrupt(error: &DataNodeError) -> bool {
    match error {
        DataNodeError::Corrupt(_) => true,
        DataNodeError::Rpc { source, .. } => source.is_remote(class::CHECKSUM),
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
struct Outcome {
    len: u64,
    is_deleted: bool,
    nodes: Vec<DatanodeIDProto>,
    storages: Vec<String>,
}

impl Outcome {
    fn deleted() -> Outcome {
        Outcome { is_deleted: true, ..Outcome::default() }
    }
}

async fn commit(
    node: &Node,
    block: &Block,
    recovery_id: GenerationStamp,
    outcome: Outcome,
) -> Result<()> {
    let request = CommitBlockSynchronizationRequestProto {
        block: messages::extended_block(block),
        new_gen_stamp: recovery_id.0,
        new_length: outcome.len,
        close_file: true,
        delete_block: outcome.is_deleted,
        new_taragets: outcome.nodes,
        new_target_storages: outcome.storages,
    };
    let call = node
        .name_node
        .call::<_, CommitBlockSynchronizationResponseProto>("commitBlockSynchronization", &request);
    call.await
        .map_err(|source| DataNodeError::Rpc { what: "commitBlockSynchronization", source })?;
    tracing::info!(block = %block.id, len = request.new_length, deleted = request.delete_block, "block recovered");
    Ok(())
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
    participant: &Participant<'_>,
    pool: &str,
    recovery_id: GenerationStamp,
    new_id: BlockId,
    len: u64,
) -> Result<String> {
    let RecoveryInfo { id, gs, len: old_len, .. } = participant.info;
    let request = UpdateReplicaUnderRecoveryRequestProto {
        block: messages::extended_block(&Block { pool: pool.into(), id, gs, len: old_len }),
        recovery_id: recovery_id.0,
        new_length: len,
        new_block_id: Some(new_id.0 as u64),
    };
    let answer: UpdateReplicaUnderRecoveryResponseProto =
        if participant.id.datanode_uuid == node.dataset.uuid() {
            inter::update(node, request).await?
        } else {
            call(node, participant.id, "updateReplicaUnderRecovery", &request).await?
        };
    Ok(answer.storage_uuid.unwrap_or_default())
}

async fn call<Req: prost::Message, Resp: prost::Message + Default>(
    node: &Node,
    id: &DatanodeIDProto,
    method: &'static str,
    request: &Req,
) -> Result<Resp> {
    let options =
        RpcClientOptions { call_timeout: node.config.read_timeout, ..RpcClientOptions::default() };
    let addr = format!("{}:{}", node.host_of(id), id.ipc_port);
    let client = RpcClient::new(addr, INTER_DATANODE, node.config.user.clone(), options);
    client.call(method, request).await.map_err(|source| DataNodeError::Rpc { what: method, source })
}
