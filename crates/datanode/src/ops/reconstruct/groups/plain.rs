//! Packed blocks that are to be plain again: a replica of each is written here.
//!
//! It has the bytes that are recorded, and the CRCs that its writer's client has computed: what is read is compared with
//! both before anything of it is written.

use super::super::buffers::Buffers;
use super::super::claim::{Claim, Refusal};
use super::super::plan::Target;
use super::super::target::{self, Destination, Order};
use super::super::traced::{begun, part_of};
use super::MAX_WAITING;
use crate::dataset::Block;
use crate::error::{DataNodeError, Result};
use crate::messages;
use crate::node::Node;
use crate::ops::virtual_block::read_packed;
use cairn_stripe::UnitIndex;
use cairn_wire::proto::datanode::UnpackOrderProto;
use cairn_wire::proto::hdfs::DatanodeInfoProto;
use std::sync::Arc;
use tokio::task::JoinSet;

/// Writes replicas in the background, as soon as few enough reconstructions run. What fails the NameNode orders again.
pub(crate) fn start_unpacks(node: &Arc<Node>, orders: Vec<UnpackOrderProto>) {
    for order in orders {
        let block = messages::block(&order.block);
        let taken = check(node, &block).map_err(Refusal::Failed).and_then(|()| {
            let target = target(node, &order)?;
            Ok((target, Claim::new(node, vec![block.id], 1, MAX_WAITING)?))
        });
        match taken {
            Ok((target, claim)) => {
                let span = begun("Unpack/block", block.id);
                node.tasks.spawn(part_of(span, run(node.clone(), block, target, claim)));
            }
            Err(Refusal::Busy(unit)) => tracing::info!(%unit, "this is being unpacked already"),
            Err(Refusal::Failed(error)) => {
                tracing::warn!(block = %block.id, %error, "refused to unpack a block");
            }
        }
    }
}

fn check(node: &Node, block: &Block) -> Result<()> {
    node.dataset.check_pool(&block.pool)?;
    match block.id.has_units() || block.id.is_container() {
        true => Err(DataNodeError::Peer(format!("{} is packed in nothing", block.id))),
        false => Ok(()),
    }
}

fn target(node: &Node, order: &UnpackOrderProto) -> Result<Target> {
    Ok(Target {
        unit: UnitIndex(0),
        node: DatanodeInfoProto {
            id: node.registration()?.datanode_id,
            ..DatanodeInfoProto::default()
        },
        storage_type: order.storage_type,
        storage_id: Some(order.storage_uuid.clone()),
    })
}

async fn run(node: Arc<Node>, block: Block, target: Target, _claim: Claim) {
    let Some(_permit) = node.reconstructions.permit(false).await else { return };
    tracing::info!(block = %block.id, "writes a replica of a packed block");
    match write(&node, &block, target).await {
        Ok(()) => tracing::info!(block = %block.id, "a packed block has a replica here"),
        Err(error) => tracing::warn!(block = %block.id, %error, "cannot unpack a block"),
    }
}

async fn write(node: &Arc<Node>, block: &Block, target: Target) -> Result<()> {
    let (read, checksum) = read_packed(node, block).await?;
    if read.bytes.len() as u64 != block.len {
        return Err(DataNodeError::Peer(format!("{} is packed with another length", block.id)));
    }
    let block = block.clone();
    let to = Destination { block, target, checksum, is_urgent: false, is_synced: true };
    let mut tasks = JoinSet::new();
    let orders = target::start(&mut tasks, node, 0, to);
    let data = Buffers::new(1).lend(read.bytes);
    // A target that has failed says so below.
    let _ = orders.send(Order::Write { data, crcs: read.crcs }).await;
    let _ = orders.send(Order::Commit).await;
    drop(orders);
    match tasks.join_next().await {
        Some(Ok((_, written))) => written,
        _ => Err(DataNodeError::Stopped),
    }
}
