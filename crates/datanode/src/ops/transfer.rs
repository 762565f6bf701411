//! TRANSFER_BLOCK, and the copy to another DataNode that it shares with the NameNode's commands.

use super::answer::{answer_error, answer_success};
use super::send::{Range, Sending};
use crate::dataset::Block;
use crate::error::{DataNodeError, Result, transfer_error};
use crate::messages;
use crate::node::Node;
use crate::node::tasks::Counted;
use cairn_net::transfer_stream::TransferStream;
use cairn_replica::ReplicaState;
use cairn_security::block_token::AccessMode;
use cairn_wire::proto::hdfs::{
    BaseHeaderProto, BlockOpResponseProto, ClientOperationHeaderProto, DatanodeInfoProto,
    OpTransferBlockProto, OpWriteBlockProto, OpWriteBlockProtoBlockConstructionStage as Stage,
    Status,
};
use cairn_wire::transfer::Op;
use std::sync::Arc;

/// Where a copy goes; the three lists are of one length, or the last two are empty.
#[derive(Clone, Debug, Default)]
pub(crate) struct Targets {
    pub(crate) nodes: Vec<DatanodeInfoProto>,
    pub(crate) storage_types: Vec<i32>,
    pub(crate) storage_ids: Vec<String>,
}

/// Copies a replica to a DataNode that joins a pipeline.
///
/// Source: Hadoop 3.5.0 `DataXceiver#transferBlock`, `DataNode#transferReplicaForPipelineRecovery`.
pub(crate) async fn serve(
    node: &Arc<Node>,
    stream: &mut TransferStream,
    request: OpTransferBlockProto,
) -> Result<bool> {
    let block = messages::block(&request.header.base_header.block);
    let targets = Targets {
        nodes: request.targets,
        storage_types: request.target_storage_types,
        storage_ids: request.target_storage_ids,
    };
    match copy_for_pipeline(node, &block, targets, request.header.client_name).await {
        Ok(()) => answer_success(stream).await.map(|()| true),
        Err(error) => answer_error(node, stream, Op::TransferBlock, "transferBlock", &error).await,
    }
}

async fn copy_for_pipeline(
    node: &Arc<Node>,
    block: &Block,
    targets: Targets,
    client: String,
) -> Result<()> {
    let stage = match node.dataset.get(block.id).map(|replica| replica.state()) {
        Some(ReplicaState::Rbw) => Stage::TransferRbw,
        _ => Stage::TransferFinalized,
    };
    let len = node.dataset.visible_len(block)?;
    copy(node, &Block { len, ..block.clone() }, targets, client, stage).await.map_err(Failed::into)
}

/// A copy that did not succeed.
#[derive(Debug)]
pub(crate) struct Failed {
    error: DataNodeError,
    /// Through the replica or disk here, not through the target.
    is_ours: bool,
}

impl From<Failed> for DataNodeError {
    fn from(failed: Failed) -> DataNodeError {
        failed.error
    }
}

impl From<DataNodeError> for Failed {
    fn from(error: DataNodeError) -> Failed {
        let is_ours = matches!(
            error,
            DataNodeError::Replica(_)
                | DataNodeError::Disk { .. }
                | DataNodeError::Checksum(_)
                | DataNodeError::UnknownPool(_)
        );
        Failed { error, is_ours }
    }
}

/// Copies a replica as the NameNode orders, once for each target at a time; it is told if that fails.
pub(crate) async fn obey(node: Arc<Node>, block: Block, targets: Targets) {
    let Some(first) = targets.nodes.first().map(|node| node.id.datanode_uuid.clone()) else {
        return;
    };
    let task = (block.id, first.clone());
    if !node.copies.begin(&task) {
        tracing::info!(block = %block.id, target = first, "this copy is under way already");
        return;
    }
    let uuids: Vec<String> =
        targets.nodes.iter().map(|node| node.id.datanode_uuid.clone()).collect();
    let len = node.dataset.get(block.id).map_or(0, |replica| replica.on_disk_len());
    let whole = Block { len, ..block };
    let copied = copy(&node, &whole, targets, String::new(), Stage::PipelineSetupCreate).await;
    node.copies.end(&task);
    // There is room for the next one.
    node.heartbeat_now.all();
    if let Err(Failed { error, is_ours }) = copied {
        tracing::warn!(block = %whole.id, %error, "cannot copy a replica");
        node.note_read_error(&whole, &error);
        let suspect = if is_ours { node.dataset.uuid() } else { first.as_str() };
        for target in &uuids {
            node.report_failed_work((whole.id, whole.gs), target, Some(suspect), &error);
        }
    }
}

/// Copies the first `block.len` bytes of a replica to the first target, which passes them on to the others.
///
/// Source: Hadoop 3.5.0 `DataNode.DataTransfer#run`.
pub(crate) async fn copy(
    node: &Arc<Node>,
    block: &Block,
    targets: Targets,
    client: String,
    stage: Stage,
) -> Result<(), Failed> {
    let _count = Counted::new(&node.transfers);
    let first = targets.nodes.first().ok_or_else(|| DataNodeError::peer("no target to copy to"))?;
    let view = node.dataset.open_read(block, block.len).await?;
    if stage != Stage::TransferRbw {
        // It may have been opened for appending since the order was given: its first bytes would look like all.
        node.dataset.check_copy(block, view.gs)?;
    }
    let len = block.len.min(view.visible);
    let range = Range::new(&view, 0, len, true).map_err(|error| Failed { error, is_ours: true })?;
    if len < view.end
        && stage == Stage::TransferRbw
        && !len.is_multiple_of(view.checksum.chunk_len as u64)
    {
        // What is sent ends at a chunk boundary beyond the visible bytes; the receiver cuts it back on takeover.
        tracing::debug!(block = %block.id, len, end = view.end, "copying more than is visible");
    }
    let token = node.block_tokens.own(block, AccessMode::Write);
    let mut peer = node.connect(first, targets.nodes.len(), &token).await?;
    let has_ack = !client.is_empty();
    let sent = Block { gs: view.gs, len, ..block.clone() };
    let request = OpWriteBlockProto {
        header: ClientOperationHeaderProto {
            base_header: BaseHeaderProto {
                block: messages::extended_block(&sent),
                token: Some(token),
                trace_info: cairn_net::transfer_stream::trace_info(),
            },
            client_name: client,
        },
        targets: targets.nodes[1..].to_vec(),
        source: node
            .registration()
            .ok()
            .map(|reg| DatanodeInfoProto { id: reg.datanode_id, ..Default::default() }),
        stage: stage as i32,
        requested_checksum: messages::checksum_proto(range.checksum()),
        caching_strategy: Some(node.caching_of_copies()),
        storage_type: targets.storage_types.first().copied(),
        target_storage_types: targets.storage_types.get(1..).unwrap_or_default().to_vec(),
        storage_id: targets.storage_ids.first().cloned(),
        target_storage_ids: targets.storage_ids.get(1..).unwrap_or_default().to_vec(),
        ..Default::default()
    };
    let name = messages::xfer_name(first);
    let failed = |error| transfer_error(format!("copying {} to {name}", block.id), error);
    peer.writer.send_op(Op::WriteBlock, &request).await.map_err(failed)?;
    // A client that waits for its pipeline is not held up.
    let budget = if has_ack { None } else { Some(&node.transfer_budget) };
    let flow = &node.metrics.copied_out;
    let how = Sending::new(node, flow, budget, Some(node.caching_of_copies()));
    range.send(&mut peer.writer, &how).await?;
    if has_ack {
        let ack: BlockOpResponseProto =
            peer.reader.read_message("transfer acknowledgement").await.map_err(failed)?;
        if ack.status != Status::Success as i32 {
            return Err(DataNodeError::peer(format!(
                "Bad connect ack, target={name} status={}",
                ack.status
            ))
            .into());
        }
    } else {
        // Nothing is answered; a closed connection says that all was read.
        peer.writer.shutdown().map_err(|e| failed(e.into()))?;
        peer.reader.wait_closed(1 << 10).await;
    }
    flow.blocks.add(1);
    tracing::info!(block = %block.id, len, target = %name, "copied a replica");
    Ok(())
}
