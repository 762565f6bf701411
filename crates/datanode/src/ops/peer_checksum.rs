//! The question to another DataNode for the checksum of what it has on its own disks.

use crate::dataset::Block;
use crate::error::{DataNodeError, Result};
use crate::messages;
use crate::node::Node;
use cairn_security::block_token::AccessMode;
use cairn_wire::proto::hdfs::{
    BaseHeaderProto, BlockChecksumOptionsProto, BlockOpResponseProto, DatanodeInfoProto,
    OpBlockChecksumProto, OpBlockChecksumResponseProto, Status,
};
use cairn_wire::transfer::Op;
use std::sync::Arc;

/// Asks `holder` for the checksum of a block, `from_disk` past its page cache. Marked as a server's question, so that
/// it is answered for what `holder` itself has, or not at all.
pub(super) async fn peer_checksum(
    node: &Arc<Node>,
    holder: &DatanodeInfoProto,
    block: &Block,
    options: Option<BlockChecksumOptionsProto>,
    from_disk: bool,
) -> Result<OpBlockChecksumResponseProto> {
    let token = node.block_tokens.own(block, AccessMode::Read);
    let mut peer = node.connect(holder, 0, &token).await?;
    let request = OpBlockChecksumProto {
        header: BaseHeaderProto {
            block: messages::extended_block(block),
            token: Some(token),
            trace_info: cairn_net::transfer_stream::trace_info(),
        },
        block_checksum_options: options,
        from_server: Some(true),
        from_disk: from_disk.then_some(true),
    };
    peer.writer.send_op(Op::BlockChecksum, &request).await?;
    let answer: BlockOpResponseProto = peer.reader.read_message("checksum answer").await?;
    match answer.checksum_response {
        Some(checksum) if answer.status == Status::Success as i32 => Ok(checksum),
        _ => Err(DataNodeError::peer(format!(
            "no checksum of {} from {}: {}",
            block.id,
            messages::xfer_name(holder),
            answer.message.unwrap_or_default()
        ))),
    }
}
