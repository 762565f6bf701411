//! COPY_BLOCK and REPLACE_BLOCK: how a balancer moves replicas.
//!
//! Source: Hadoop 3.5.0 `DataXceiver#copyBlock`, `#replaceBlock`.

use super::answer::{answer_error, answer_success, note_failure, refuse};
use super::send::{Range, Sending};
use super::write_block::Receiver;
use crate::cache;
use crate::dataset::{Relocation, ReplicaWriter, StorageWish, WriteKind};
use crate::error::{DataNodeError, FailureKind, Result};
use crate::messages;
use crate::node::Node;
use cairn_net::transfer_stream::TransferStream;
use cairn_stripe::{GenerationStamp, StorageType};
use cairn_wire::proto::hdfs::{
    BlockOpResponseProto, OpCopyBlockProto, OpReplaceBlockProto, Status,
};
use cairn_wire::transfer::Op;
use std::sync::Arc;
use std::time::Duration;

/// How often the balancer is told that a move goes on.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(10);

/// Sends a whole replica to the DataNode that takes it over.
pub(crate) async fn serve_copy(
    node: &Arc<Node>,
    stream: &mut TransferStream,
    request: OpCopyBlockProto,
) -> Result<bool> {
    let Some(_place) = node.tunables.moves.take() else {
        return too_many(node, stream, Op::CopyBlock).await;
    };
    let block = messages::block(&request.header.block);
    let view = match node.dataset.open_read(&block, 0).await {
        Ok(view) => view,
        Err(error) => {
            return answer_error(node, stream, Op::CopyBlock, "opCopyBlock", &error).await;
        }
    };
    let range = Range::new(&view, 0, view.end, true)?;
    stream.writer.send_message(&range.answer()).await?;
    let flow = &node.metrics.read_by_datanodes;
    let how = Sending::new(node, flow, Some(&node.balance_budget), Some(node.caching_of_copies()));
    range.send(&mut stream.writer, &how).await?;
    flow.blocks.add(1);
    // One last character says that the move's slot here is free.
    stream.writer.send(&[0, b'd']).await?;
    Ok(false)
}

/// Fetches a replica from `source`, or moves it here from one storage to another. The NameNode then
/// deletes the one that the hint names; what moved on one node it finds moved.
pub(crate) async fn serve_replace(
    node: &Arc<Node>,
    stream: &mut TransferStream,
    request: OpReplaceBlockProto,
) -> Result<bool> {
    let Some(_place) = node.tunables.moves.take() else {
        return too_many(node, stream, Op::ReplaceBlock).await;
    };
    let here = request.source.id.datanode_uuid == node.dataset.uuid();
    let copy = async {
        match here {
            true => copy_here(node, &request).await.map(Copied::Here),
            false => fetch(node, &request).await.map(Copied::Fetched),
        }
    };
    let copied = tokio::select! {
        copied = copy => copied,
        error = tell_progress(stream) => return Err(error),
    };
    // From here on the move takes place, and is reported, whether or not the balancer waits for it.
    let moved = match copied {
        Ok(Copied::Here(copy)) => node.dataset.relocate(copy).await,
        Ok(Copied::Fetched(writer)) => {
            let done = writer.finalize().await;
            done.inspect(|_| node.metrics.written_by_datanodes.blocks.add(1))
        }
        Err(error) => Err(error),
    };
    match moved {
        Ok(done) => {
            cache::recheck(node, done.id);
            let hint = (!here).then_some(request.del_hint);
            node.report_received(&done, hint);
            answer_success(stream).await.map(|()| true)
        }
        Err(error) => {
            node.check_volume(&error);
            answer_error(node, stream, Op::ReplaceBlock, "opReplaceBlock", &error).await
        }
    }
}

/// All bytes of a replica that moves, where they shall be.
enum Copied {
    /// From another storage of this DataNode.
    Here(Relocation),
    Fetched(ReplicaWriter),
}

/// Tells a balancer that waits that the move goes on, until that fails.
async fn tell_progress(stream: &mut TransferStream) -> DataNodeError {
    loop {
        tokio::time::sleep(PROGRESS_INTERVAL).await;
        let answer =
            BlockOpResponseProto { status: Status::InProgress as i32, ..Default::default() };
        if let Err(error) = stream.writer.send_message(&answer).await {
            return error.into();
        }
    }
}

fn wish(request: &OpReplaceBlockProto) -> StorageWish {
    StorageWish {
        storage_type: StorageType::by_number(request.storage_type.unwrap_or_default()),
        storage_id: request.storage_id.clone().unwrap_or_default(),
        in_memory: false,
        is_type_needed: true,
    }
}

async fn copy_here(node: &Arc<Node>, request: &OpReplaceBlockProto) -> Result<Relocation> {
    let block = messages::block(&request.header.block);
    node.dataset.copy_to_volume(&block, &wish(request), &node.balance_budget).await
}

async fn fetch(node: &Arc<Node>, request: &OpReplaceBlockProto) -> Result<ReplicaWriter> {
    // Its length tells how much room is set aside.
    let block = messages::block(&request.header.block);
    let token = request.header.token.clone().unwrap_or_default();
    let mut proxy = node.connect(&request.source, 0, &token).await?;
    proxy
        .writer
        .send_op(Op::CopyBlock, &OpCopyBlockProto { header: request.header.clone() })
        .await?;
    let answer: BlockOpResponseProto = proxy.reader.read_message("copy answer").await?;
    let info = match answer.read_op_checksum_info {
        Some(info) if answer.status == Status::Success as i32 => info,
        _ => {
            return Err(DataNodeError::peer(format!(
                "cannot copy: {}",
                answer.message.unwrap_or_default()
            )));
        }
    };
    let sent = messages::checksum(&info.checksum)?;
    let kind = WriteKind::Temporary { is_transfer: false };
    let mut writer =
        node.dataset.create(&block, GenerationStamp(0), kind, &wish(request), sent).await?;
    writer.set_caching(Some(&node.caching_of_copies()));
    let stopped = writer.stopped();
    let receiver =
        Receiver::new(writer, &mut proxy.reader, None, sent, &node.metrics.written_by_datanodes);
    tokio::select! {
        received = receiver.receive_all(Some(&node.balance_budget)) => received,
        () = stopped => Err(DataNodeError::Stopped),
    }
}

async fn too_many(node: &Node, stream: &mut TransferStream, op: Op) -> Result<bool> {
    let message = format!(
        "Not able to move a block because threads quota={} is exceeded.",
        node.tunables.moves.max()
    );
    refuse(stream, Status::Error, message).await?;
    note_failure(node, op, FailureKind::Refused);
    Ok(true)
}
