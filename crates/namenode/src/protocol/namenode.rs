//! `NamenodeProtocol`: what balancers and satisfiers ask of the NameNode.
//!
//! What it has for standby NameNodes (checkpoints, edit logs) is refused: there are none. A storage policy satisfier
//! fetches its work here.
//! Source: Hadoop 3.5.0 `NameNodeRpcServer`, `NamenodeProtocolServerSideTranslatorPB`.

use cairn_master::Lookup;
use cairn_namespace::query;
use cairn_net::rpc_server::Call;
use cairn_redundancy::{Layout, MovableBlock, MoveQuery};
use cairn_stripe::{BlockId, StorageType};
use cairn_wire::exception::class;
use cairn_wire::proto::{hdfs as pb, namenode as nn};

use super::datanode;
use crate::dice::dice;
use crate::node::NameNode;
use crate::refusal::{Answer, Refusal, answer};
use std::collections::BTreeSet;

/// How often one call looks for blocks, each time elsewhere.
const LOOKS_MAX: usize = 10;

/// Handles a call of this protocol.
pub async fn handle(node: &NameNode, call: &Call) -> Answer {
    match call.method.as_str() {
        "versionRequest" => datanode::version_request(node, call),
        "getBlocks" => get_blocks(node, call).await,
        "getBlockKeys" => get_block_keys(node, call).await,
        "isUpgradeFinalized" => is_upgrade_finalized(node, call).await,
        "isRollingUpgrade" => is_rolling_upgrade(node, call).await,
        "getTransactionId" => get_transaction_id(node, call).await,
        "getNextSPSPath" => get_next_sps_path(node, call).await,
        method if nn::NAMENODE_PROTOCOL_SERVICE_METHODS.contains(&method) => {
            node.check_superuser(call).await?;
            Err(Refusal::unsupported(format!("{method} is not supported")))
        }
        _ => Err(call.unknown_method().into()),
    }
}

/// Some of the blocks that a DataNode holds, with all their places.
///
/// Source: Hadoop 3.5.0 `NameNodeRpcServer#getBlocks`, `BlockManager#getBlocksWithLocations`.
async fn get_blocks(node: &NameNode, call: &Call) -> Answer {
    let request: nn::GetBlocksRequestProto = call.decode()?;
    // Java reads both as signed.
    let (size, min_block_len) = (request.size as i64, request.min_block_size() as i64);
    if size <= 0 || min_block_len < 0 {
        let message = format!("Unexpected not positive size: {size}");
        return Err(Refusal::new(class::ILLEGAL_ARGUMENT, message));
    }
    node.check_superuser(call).await?;
    node.check_safe_mode(|| "Cannot execute getBlocks".to_string())?;
    let read_since = match request.time_interval() {
        0 => u64::MAX,
        interval => node.now().wall_ms.saturating_sub(interval),
    };
    let (mut blocks, mut ids) = (Vec::new(), BTreeSet::new());
    let mut left = size as u64;
    for _ in 0..LOOKS_MAX {
        let found = look(node, &request, left, read_since)?;
        let (before, is_any) = (ids.len(), !found.is_empty());
        for (id, bytes, block) in found {
            if ids.insert(id) {
                left = left.saturating_sub(bytes);
                blocks.push(block);
            }
        }
        if left == 0 || is_any && ids.len() == before {
            break;
        }
    }
    answer(&nn::GetBlocksResponseProto { blocks: pb::BlocksWithLocationsProto { blocks } })
}

/// Blocks for at most about `size` bytes, of as many as are looked at without others waiting for long.
fn look(
    node: &NameNode,
    request: &nn::GetBlocksRequestProto,
    size: u64,
    read_since: u64,
) -> Result<Vec<(BlockId, u64, pb::BlockWithLocationsProto)>, Refusal> {
    node.see(|cluster, lookup| {
        let Some(from) = cluster.node_by_uuid(&request.datanode.datanode_uuid) else {
            let id = &request.datanode;
            let name = format!("{}:{}", id.ip_addr, id.xfer_port);
            let message = format!("Datanode {name} not found.");
            return Err(Refusal::new(class::HADOOP_ILLEGAL_ARGUMENT, message));
        };
        let asked = MoveQuery {
            node: from.handle,
            size,
            min_block_len: request.min_block_size(),
            storage_type: request.storage_type.map(StorageType::by_number),
        };
        let is_hot = |id| read_since != u64::MAX && is_hot(lookup, id, read_since);
        let found = cluster.movable_blocks(lookup, &asked, dice(), &is_hot);
        let told =
            |block: &MovableBlock| (block.id, block.bytes_on_a_node(), located(cluster, block));
        Ok(found.iter().map(told).collect())
    })
}

/// Whether the file of a block is being written, or was read since then.
///
/// Source: Hadoop 3.5.0 `BlockManager#isHotBlock`.
fn is_hot(lookup: &Lookup<'_>, id: BlockId, since_ms: u64) -> bool {
    match query::file_of_block(lookup.store, id) {
        Ok(Some(file)) => {
            file.atime > since_ms || file.file().is_some_and(|file| file.writer.is_some())
        }
        Ok(None) | Err(_) => false,
    }
}

fn located(
    cluster: &cairn_redundancy::Cluster,
    block: &MovableBlock,
) -> pb::BlockWithLocationsProto {
    let places = || block.places.iter().map(|place| cluster.storage(place.storage));
    let (data_block_num, cell_size) = match block.facts.layout {
        Layout::Replicated { .. } | Layout::Parity { .. } => (None, None),
        Layout::Striped { k, cell_len, .. } => (Some(u32::from(k)), Some(cell_len)),
    };
    let striped = block.facts.layout.is_striped();
    pb::BlockWithLocationsProto {
        block: pb::BlockProto {
            block_id: block.id.0 as u64,
            gen_stamp: block.facts.gs.0,
            num_bytes: Some(block.facts.len),
        },
        datanode_uuids: places().map(|storage| cluster.node(storage.node).uuid.clone()).collect(),
        storage_uuids: places().map(|storage| storage.uuid.clone()).collect(),
        storage_types: places().map(|s| s.storage_type.number()).collect(),
        indices: striped.then(|| block.places.iter().map(|place| place.unit.0).collect()),
        data_block_num,
        cell_size,
    }
}

/// The last entry of the log.
///
/// Source: Hadoop 3.5.0 `NameNodeRpcServer#getTransactionID`.
async fn get_transaction_id(node: &NameNode, call: &Call) -> Answer {
    call.decode::<nn::GetTransactionIdRequestProto>()?;
    node.check_superuser_for(call, "getTransactionID").await?;
    answer(&nn::GetTransactionIdResponseProto { tx_id: node.ns.last_sequence() })
}

/// What the satisfier is to look after next.
///
/// Source: Hadoop 3.5.0 `NameNodeRpcServer#getNextSPSPath`.
async fn get_next_sps_path(node: &NameNode, call: &Call) -> Answer {
    call.decode::<nn::GetNextSPSPathRequestProto>()?;
    node.check_superuser(call).await?;
    if !node.satisfier.is_enabled() {
        return Err(Refusal::io(
            "SPS service mode is NONE, so external SPS service is not allowed to fetch the path Ids",
        ));
    }
    answer(&nn::GetNextSPSPathResponseProto { sps_path: node.satisfier.take().map(|id| id.0) })
}

/// What balancers issue block tokens with.
///
/// Source: Hadoop 3.5.0 `BlockManager#getBlockKeys`, `ExportedBlockKeys.DUMMY_KEYS`.
async fn get_block_keys(node: &NameNode, call: &Call) -> Answer {
    call.decode::<nn::GetBlockKeysRequestProto>()?;
    node.check_superuser(call).await?;
    answer(&nn::GetBlockKeysResponseProto { keys: Some(node.block_tokens.exported()) })
}

/// Source: Hadoop 3.5.0 `FSNamesystem#isUpgradeFinalized`.
async fn is_upgrade_finalized(node: &NameNode, call: &Call) -> Answer {
    call.decode::<nn::IsUpgradeFinalizedRequestProto>()?;
    node.check_superuser(call).await?;
    answer(&nn::IsUpgradeFinalizedResponseProto { is_upgrade_finalized: true })
}

/// Source: Hadoop 3.5.0 `FSNamesystem#isRollingUpgrade`.
async fn is_rolling_upgrade(node: &NameNode, call: &Call) -> Answer {
    call.decode::<nn::IsRollingUpgradeRequestProto>()?;
    node.check_superuser(call).await?;
    answer(&nn::IsRollingUpgradeResponseProto {
        is_rolling_upgrade: node.ns.rollback_point().is_some(),
    })
}
