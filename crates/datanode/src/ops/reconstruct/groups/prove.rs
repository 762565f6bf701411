//! Proving replicas: each is synced and read past the page cache, so that copies of it elsewhere may go. What the NameNode does
//! not know of groups and containers it is told with that: their ends tell of it.

use crate::dataset::{Block, blocking};
use crate::error::{DataNodeError, Result};
use crate::messages;
use crate::node::Node;
use crate::ops::checksum::sum_on_disk;
use crate::ops::virtual_block::read_end;
use cairn_codec::crc::{ChecksumKind, crc32c};
use cairn_stripe::group::GroupRecord;
use cairn_stripe::pack::{MAX_INDEX_LEN, PackIndex};
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
    let (crc32c, record) = match order.wants_index == Some(true) {
        true => read_index(&node, &block, &order.storage_uuid).await,
        false => prove(&node, &block, (&order.storage_uuid, false)).await,
    };
    let proved = ProvedReplicaProto {
        block: messages::local_block(block.id, block.gs, block.len),
        storage_uuid: order.storage_uuid,
        crc32c,
        record,
    };
    node.proved.add((registration, proved));
}

/// What can be told of a replica; nothing if it cannot be read.
async fn prove(
    node: &Arc<Node>,
    block: &Block,
    (storage, wants_index): (&str, bool),
) -> (Option<u32>, Option<Vec<u8>>) {
    match read(node, block, (storage, wants_index)).await {
        Ok((crc32c, record)) => (Some(crc32c), record),
        Err(error) => {
            tracing::warn!(block = %block.id, %error, "cannot prove a replica");
            (None, None)
        }
    }
}

/// The index of a container: from the replica on that storage, which is read as a whole, or else decoded from the other units
/// of its group. Then there is no CRC, as nothing but its end was read.
async fn read_index(
    node: &Arc<Node>,
    block: &Block,
    storage: &str,
) -> (Option<u32>, Option<Vec<u8>>) {
    if node.dataset.get(block.id).is_some()
        && let (Some(crc32c), Some(end)) = prove(node, block, (storage, true)).await
    {
        return (Some(crc32c), Some(end));
    }
    let end = read_end(node, block, MAX_INDEX_LEN as u64).await.and_then(index_in);
    match end {
        Ok(index) => (None, Some(index)),
        Err(error) => {
            tracing::warn!(container = %block.id, %error, "cannot read the index of a container");
            (None, None)
        }
    }
}

/// The index at the end of some bytes, alone.
fn index_in(mut end: Vec<u8>) -> Result<Vec<u8>> {
    let index = PackIndex::from_tail(&end, |bytes| crc32c(0, bytes));
    let index = index.map_err(|error| DataNodeError::peer(error.to_string()))?;
    let start = end.len().saturating_sub(index.tail_len() as usize);
    Ok(end.split_off(start))
}

/// CRC32C of the replica on that storage; of a parity also its end, which tells of its group whoever does not know it, and of a
/// container, if that is wanted, its index.
async fn read(
    node: &Arc<Node>,
    block: &Block,
    (storage, wants_index): (&str, bool),
) -> Result<(u32, Option<Vec<u8>>)> {
    node.dataset.check_pool(&block.pool)?;
    let (crc32c, view) = sum_on_disk(node, block, Some(ChecksumKind::Crc32c)).await?;
    match view.storage_id() {
        found if found == storage => {}
        found => return Err(DataNodeError::Peer(format!("it is on {found} and not on {storage}"))),
    }
    let end_max = match block.id.is_parity() {
        true => GroupRecord::TAIL_MAX,
        false if wants_index => MAX_INDEX_LEN as u64,
        false => return Ok((crc32c, None)),
    };
    let end = blocking(move || {
        let start = view.end.saturating_sub(end_max);
        let mut end = vec![0; (view.end - start) as usize];
        view.read_at(start, &mut end)?;
        if wants_index { index_in(end) } else { Ok(end) }
    });
    Ok((crc32c, Some(end.await?)))
}
