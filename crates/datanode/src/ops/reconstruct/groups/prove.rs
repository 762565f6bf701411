//! Proving replicas: each is synced and read past the page cache, so that copies of it elsewhere may go.

use crate::dataset::Block;
use crate::error::{DataNodeError, Result};
use crate::messages;
use crate::node::Node;
use crate::ops::checksum::sum_on_disk;
use cairn_codec::crc::ChecksumKind;
use cairn_wire::proto::datanode::{ProveOrderProto, ProvedReplicaProto};
use std::sync::Arc;

/// Reads replicas in the background, a few at a time. The NameNode is told of each with a heartbeat, unless this DataNode
/// has registered since: what was read before answers no order that is given after.
pub(crate) fn start_proves(node: &Arc<Node>, orders: Vec<ProveOrderProto>) {
    let registration = node.dataset.given().registration;
    for order in orders {
        node.tasks.spawn(run(node.clone(), registration, order));
    }
}

async fn run(node: Arc<Node>, registration: u64, order: ProveOrderProto) {
    let block = messages::block(&order.block);
    let Some(_permit) = node.reconstructions.permit(false).await else { return };
    let crc32c = match read(&node, &block, &order.storage_uuid).await {
        Ok(crc32c) => Some(crc32c),
        Err(error) => {
            tracing::warn!(block = %block.id, %error, "cannot prove a replica");
            None
        }
    };
    let proved = ProvedReplicaProto {
        block: messages::local_block(block.id, block.gs, block.len),
        storage_uuid: order.storage_uuid,
        crc32c,
    };
    node.proved.add((registration, proved));
}

/// CRC32C of the replica on that storage.
async fn read(node: &Arc<Node>, block: &Block, storage: &str) -> Result<u32> {
    node.dataset.check_pool(&block.pool)?;
    let (crc32c, view) = sum_on_disk(node, block, Some(ChecksumKind::Crc32c)).await?;
    match view.storage_id() {
        found if found == storage => Ok(crc32c),
        found => Err(DataNodeError::Peer(format!("it is on {found} and not on {storage}"))),
    }
}
