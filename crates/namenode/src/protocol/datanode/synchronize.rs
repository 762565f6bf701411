//! The end of a block recovery: `commitBlockSynchronization`.

use cairn_master::synchronize;
use cairn_namespace::BlockRef;
use cairn_namespace::ops::commit_block_synchronization::CommitBlockSynchronization;
use cairn_net::rpc_server::Call;
use cairn_stripe::{BlockId, GenerationStamp};
use cairn_wire::proto::datanode as dn;
use tracing::info;

use super::register::named;
use crate::node::NameNode;
use crate::protocol::client::write::check_len;
use crate::refusal::{Answer, answer};

/// Source: Hadoop 3.5.0 `FSNamesystem#commitBlockSynchronization`.
pub(super) async fn commit_block_synchronization(node: &NameNode, call: &Call) -> Answer {
    let request: dn::CommitBlockSynchronizationRequestProto = call.decode()?;
    node.check_safe_mode(|| "Cannot commitBlockSynchronization while in safe mode".to_string())?;
    let id = BlockId(request.block.block_id as i64).group();
    let gs = GenerationStamp(request.block.generation_stamp);
    let len = request.block.num_bytes();
    let new_gs = GenerationStamp(request.new_gen_stamp);
    check_len(request.new_length)?;
    info!(
        block = %id, %new_gs, len = request.new_length, close = request.close_file,
        delete = request.delete_block, "a block is recovered"
    );
    let command = CommitBlockSynchronization {
        block: BlockRef { id, gs, len },
        new_gs,
        new_len: request.new_length,
        close_file: request.close_file,
        delete_block: request.delete_block.into(),
    };
    let nodes = request.new_taragets.iter().map(named);
    let storages: Vec<_> =
        nodes.zip(request.new_target_storages.iter().map(String::as_str)).collect();
    let op = node.operation("commitBlockSynchronization", call).await;
    synchronize::commit(&op, command, &storages).await?;
    answer(&dn::CommitBlockSynchronizationResponseProto {})
}
