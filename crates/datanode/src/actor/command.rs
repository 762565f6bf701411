//! Carries out what the NameNode commands.
//!
//! Source: Hadoop 3.5.0 `BPOfferService#processCommandFromActive`.

use crate::cache;
use crate::dataset::{Block, Deletion, Given, blocking};
use crate::messages;
use crate::node::Node;
use crate::ops::reconstruct;
use crate::ops::transfer::{self, Targets};
use crate::recovery;
use cairn_stripe::BlockId;
use cairn_wire::proto::datanode::{
    BlockCommandProto, BlockCommandProtoAction as Action, BlockIdCommandProto,
    BlockIdCommandProtoAction, DatanodeCommandProto, DatanodeCommandProtoType as Type,
};
use std::collections::HashMap;
use std::sync::Arc;

/// Starts what `command` asks for, which is known as `given` if its NameNode is obeyed. True if it asks for a new
/// registration.
///
/// Of the others only that is obeyed, and their keys are taken: what any of them has issued is to be known.
///
/// Source: Hadoop 3.5.0 `BPOfferService#processCommandFromActor`, `#processCommandFromStandby`.
pub(super) fn run(node: &Arc<Node>, command: DatanodeCommandProto, given: Option<Given>) -> bool {
    let Ok(kind) = Type::try_from(command.cmd_type) else {
        tracing::warn!(kind = command.cmd_type, "unknown command of the NameNode");
        return false;
    };
    let given = match (kind, given) {
        (Type::RegisterCommand, _) => return true,
        (Type::KeyUpdateCommand, _) => {
            take_keys(node, command);
            return false;
        }
        (_, Some(given)) => given,
        (_, None) => {
            tracing::warn!(?kind, "a command of a NameNode that is not the active one");
            return false;
        }
    };
    match kind {
        Type::BlockCommand => {
            command.blk_cmd.into_iter().for_each(|blocks| run_blocks(node, blocks, given))
        }
        Type::BlockRecoveryCommand => {
            for block in command.recovery_cmd.into_iter().flat_map(|command| command.blocks) {
                node.tasks.spawn(recovery::recover(node.clone(), block));
            }
        }
        Type::BalancerBandwidthCommand => {
            let bandwidth = command.balancer_cmd.map_or(0, |command| command.bandwidth);
            if bandwidth > 0 {
                tracing::info!(bandwidth, "new balancing bandwidth");
                node.balance_budget.set(bandwidth);
            }
        }
        Type::BlockECReconstructionCommand => {
            let works = command.blk_ec_reconstruction_cmd.into_iter();
            works
                .flat_map(|c| c.block_ec_reconstructioninfo)
                .for_each(|w| reconstruct::start(node, w));
        }
        Type::BlockIdCommand => {
            command.blk_id_cmd.into_iter().for_each(|blocks| run_cache(node, blocks))
        }
        // There is no upgrade to finalize.
        Type::FinalizeCommand => {}
        Type::NullDatanodeCommand | Type::UnusedUpgradeCommand => {}
        Type::RegisterCommand | Type::KeyUpdateCommand => {}
    }
    false
}

fn take_keys(node: &Node, command: DatanodeCommandProto) {
    let sent = command.key_update_cmd.unwrap_or_default().keys;
    if let Err(error) = node.block_tokens.take(&sent) {
        tracing::warn!(%error, "the NameNode has sent keys that are none");
    }
}

fn run_cache(node: &Arc<Node>, command: BlockIdCommandProto) {
    if node.dataset.pool_id() != Some(command.block_pool_id.as_str()) {
        return;
    }
    let ids = command.block_ids.iter().map(|id| BlockId(*id as i64)).collect::<Vec<_>>();
    match BlockIdCommandProtoAction::try_from(command.action) {
        Ok(BlockIdCommandProtoAction::Cache) => node.tasks.spawn(cache::fill(node.clone(), ids)),
        Ok(BlockIdCommandProtoAction::Uncache) => cache::drain(node, &ids),
        Err(_) => tracing::warn!(action = command.action, "unknown cache command of the NameNode"),
    }
}

fn run_blocks(node: &Arc<Node>, command: BlockCommandProto, given: Given) {
    match Action::try_from(command.action) {
        Ok(Action::Invalidate) => invalidate(node, command, given),
        Ok(Action::Transfer) => transfer(node, command),
        Ok(Action::Shutdown) => tracing::warn!("ignored the NameNode's order to shut down"),
        Err(_) => tracing::warn!(action = command.action, "unknown block command of the NameNode"),
    }
}

fn invalidate(node: &Arc<Node>, command: BlockCommandProto, given: Given) {
    // A disk that hangs holds up the deletions on others no more than anything else.
    let mut by_volume: HashMap<Option<String>, Vec<Block>> = HashMap::new();
    for proto in command.blocks {
        let block = from_local(&command.block_pool_id, &proto);
        let volume = node.dataset.volume_of(block.id).map(|volume| volume.storage_id().into());
        by_volume.entry(volume).or_default().push(block);
    }
    by_volume.into_values().for_each(|blocks| invalidate_all(node, given, blocks));
}

fn invalidate_all(node: &Arc<Node>, given: Given, blocks: Vec<Block>) {
    let deleter = node.clone();
    node.tasks.spawn(async move {
        for block in blocks {
            let (obeying, ordered) = (deleter.clone(), block.clone());
            let obey = move || {
                let tell = |deletion: &Deletion| tell_gone(&obeying, &ordered, deletion);
                obeying.dataset.invalidate((ordered.id, ordered.gs), given, tell)
            };
            match blocking(obey).await {
                Ok(deletion) => tell_kept(&deleter, &block, deletion),
                Err(error) => {
                    tracing::warn!(%error, "cannot delete a replica");
                    deleter.check_volume(&error);
                }
            }
        }
    });
}

/// Tells the NameNode that there is no such replica. Where there was nothing to delete, what it takes to be here
/// is not, and it would go on ordering.
///
/// Deviation: Hadoop then tells nothing before the next full report.
fn tell_gone(node: &Arc<Node>, block: &Block, deletion: &Deletion) {
    let (id, gs) = (block.id, block.gs);
    match deletion {
        Deletion::Done { storage_id } => {
            node.metrics.removed.add(1);
            node.short_circuit.invalidate(id);
            cache::recheck(node, id);
            node.reports.deleted(id, gs, storage_id);
        }
        Deletion::Absent => {
            tracing::warn!(block = %id, %gs, "to be deleted, and not here");
            node.tell_absent(id, gs);
        }
        Deletion::Void | Deletion::Other { .. } => {}
    }
}

/// Tells the NameNode what is there in spite of its order.
fn tell_kept(node: &Node, block: &Block, deletion: Deletion) {
    let id = block.id;
    match deletion {
        Deletion::Done { .. } | Deletion::Absent => {}
        Deletion::Void => tracing::info!(block = %id, "kept: the order to delete it is void"),
        Deletion::Other { replica, storage_id } => {
            tracing::warn!(block = %id, gs = %block.gs, has = %replica.gs(), "kept: it has another stamp");
            if let Some(told) = replica.told_when_kept() {
                node.reports.note(&storage_id, id, told);
            }
        }
    }
}

fn transfer(node: &Arc<Node>, command: BlockCommandProto) {
    let (mut types, mut ids) =
        (command.target_storage_types.into_iter(), command.target_storage_uuids.into_iter());
    for (proto, nodes) in command.blocks.iter().zip(command.targets) {
        let block = from_local(&command.block_pool_id, proto);
        let targets = Targets {
            nodes: nodes.datanodes,
            storage_types: types.next().map(|list| list.storage_types).unwrap_or_default(),
            storage_ids: ids.next().map(|list| list.storage_uuids).unwrap_or_default(),
        };
        node.tasks.spawn(transfer::obey(node.clone(), block, targets));
    }
}

fn from_local(pool: &str, proto: &cairn_wire::proto::hdfs::BlockProto) -> Block {
    messages::block(&cairn_wire::proto::hdfs::ExtendedBlockProto {
        pool_id: pool.into(),
        block_id: proto.block_id,
        generation_stamp: proto.gen_stamp,
        num_bytes: proto.num_bytes,
    })
}
