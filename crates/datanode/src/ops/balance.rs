//! COPY_BLOCK and REPLACE_BLOCK: how a balancer moves replicas.
//!
//! Source: Hadoop 3.5.0 `DataXceiver#copyBlock`, `#replaceBlock`.

use super::send::{Range, Throttle};
use super::write_block::Receiver;
use crate::dataset::{Block, Finalized, StorageWish, WriteKind};
use crate::error::{DataNodeError, Result};
use crate::node::Node;
use crate::protocol;
use crate::server::{answer_error, answer_success, refuse};
use cairn_net::transfer_stream::TransferStream;
use cairn_stripe::GenerationStamp;
use cairn_wire::proto::hdfs::{
    BlockOpResponseProto, OpCopyBlockProto, OpReplaceBlockProto, Status,
};
use cairn_wire::transfer::Op;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often the balancer is told that a move goes on.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(10);

/// Sends a whole replica to the DataNode that takes it over.
pub(crate) async fn serve_copy(
    node: &Arc<Node>,
    stream: &mut TransferStream,
    request: OpCopyBlockProto,
) -> Result<bool> {
    let Ok(_permit) = node.moves.try_acquire() else { return too_many(node, stream).await };
    let block = protocol::block(&request.header.block);
    let view = match node.dataset.open_read(&block, 0).await {
        Ok(view) => view,
        Err(error) => return answer_error(stream, "opCopyBlock", &error).await,
    };
    let range = Range::new(&view, 0, view.end, true)?;
    stream.writer.send_message(&range.answer()).await?;
    let throttle = Throttle::for_balance(node);
    range.send(&mut stream.writer, node.config.send_packet_len, Some(&throttle)).await?;
    range.drop_behind();
    // One last character says that the move's slot here is free.
    stream.writer.send(&[0, b'd']).await?;
    Ok(false)
}

/// Fetches a replica from `source`; the NameNode then deletes it where the hint says.
pub(crate) async fn serve_replace(
    node: &Arc<Node>,
    stream: &mut TransferStream,
    request: OpReplaceBlockProto,
) -> Result<bool> {
    let Ok(_permit) = node.moves.try_acquire() else { return too_many(node, stream).await };
    match fetch(node, stream, &request).await {
        Ok(done) => {
            node.report_received(&done, Some(request.del_hint));
            answer_success(stream).await.map(|()| true)
        }
        Err(error) => answer_error(stream, "opReplaceBlock", &error).await,
    }
}

async fn fetch(
    node: &Arc<Node>,
    stream: &mut TransferStream,
    request: &OpReplaceBlockProto,
) -> Result<Finalized> {
    let block = Block { len: 0, ..protocol::block(&request.header.block) };
    if request.source.id.datanode_uuid == node.dataset.uuid() {
        return Err(DataNodeError::peer(
            "moving between storages of one DataNode is not supported",
        ));
    }
    let mut proxy = node.connect(&request.source, 0).await?;
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
    let sent = protocol::checksum(&info.checksum)?;
    let wish = StorageWish {
        storage_type: protocol::storage_type(request.storage_type.unwrap_or_default()),
        storage_id: request.storage_id.clone().unwrap_or_default(),
    };
    let kind = WriteKind::Temporary { is_transfer: false };
    let writer = node.dataset.create(&block, GenerationStamp(0), kind, &wish, sent).await?;
    let stopped = writer.stopped();
    let receiver = Receiver::new(writer, &mut proxy.reader, None, sent);
    let progress = async {
        let mut next = Instant::now() + PROGRESS_INTERVAL;
        loop {
            tokio::time::sleep_until(next.into()).await;
            next += PROGRESS_INTERVAL;
            let answer =
                BlockOpResponseProto { status: Status::InProgress as i32, ..Default::default() };
            if let Err(error) = stream.writer.send_message(&answer).await {
                return error;
            }
        }
    };
    let writer = tokio::select! {
        received = receiver.receive_all(|_| ()) => received?,
        error = progress => return Err(error.into()),
        () = stopped => return Err(DataNodeError::Stopped),
    };
    writer.finalize().await
}

async fn too_many(node: &Node, stream: &mut TransferStream) -> Result<bool> {
    let message = format!(
        "Not able to move a block because threads quota={} is exceeded.",
        node.config.max_moves
    );
    refuse(stream, Status::Error, message).await?;
    Ok(true)
}
