//! Proving replicas: each is synced and read past the page cache, so that copies of it elsewhere may go.

use crate::dataset::{Block, blocking};
use crate::error::{DataNodeError, Result};
use crate::messages;
use crate::node::Node;
use crate::ops::checksum::sum_on_disk;
use cairn_codec::crc::ChecksumKind;
use cairn_stripe::group::GroupRecord;
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
    let (crc32c, record) = match read(&node, &block, &order.storage_uuid).await {
        Ok((crc32c, record)) => (Some(crc32c), record),
        Err(error) => {
            tracing::warn!(block = %block.id, %error, "cannot prove a replica");
            (None, None)
        }
    };
    let proved = ProvedReplicaProto {
        block: messages::local_block(block.id, block.gs, block.len),
        storage_uuid: order.storage_uuid,
        crc32c,
        record,
    };
    node.proved.add((registration, proved));
}

/// CRC32C of the replica on that storage; of a parity also its end, which tells of its group whoever does not know it.
async fn read(node: &Arc<Node>, block: &Block, storage: &str) -> Result<(u32, Option<Vec<u8>>)> {
    node.dataset.check_pool(&block.pool)?;
    let (crc32c, view) = sum_on_disk(node, block, Some(ChecksumKind::Crc32c)).await?;
    match view.storage_id() {
        found if found == storage => {}
        found => return Err(DataNodeError::Peer(format!("it is on {found} and not on {storage}"))),
    }
    if !block.id.is_parity() {
        return Ok((crc32c, None));
    }
    let end = blocking(move || {
        let start = view.end.saturating_sub(GroupRecord::TAIL_MAX);
        let mut end = vec![0; (view.end - start) as usize];
        view.read_at(start, &mut end).map(|()| end)
    });
    Ok((crc32c, Some(end.await?)))
}
