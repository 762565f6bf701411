//! READ_BLOCK.

use super::answer::{answer_error, is_hang_up};
use super::send::{Range, Sending};
use crate::dataset::ReadView;
use crate::error::{DataNodeError, Result};
use crate::messages;
use crate::node::{Node, SOURCE_BUFFER};
use cairn_net::transfer_stream::{TransferError, TransferStream};
use cairn_wire::proto::hdfs::{ClientReadStatusProto, OpReadBlockProto, Status};
use cairn_wire::transfer::Op;
use std::sync::Arc;

/// Data bytes of a packet at most, whatever a reader takes.
const LONGEST_PACKET: usize = 1 << 20;

/// Sends what was asked for, then reads the client's verdict.
///
/// Source: Hadoop 3.5.0 `DataXceiver#readBlock`.
pub(crate) async fn serve(
    node: &Arc<Node>,
    stream: &mut TransferStream,
    request: OpReadBlockProto,
) -> Result<bool> {
    let block = messages::block(&request.header.base_header.block);
    let view =
        match node.dataset.open_kept(&block, request.offset.saturating_add(request.len)).await {
            Ok(view) => view,
            Err(error) => {
                node.note_read_error(&block, &error);
                return refuse(node, stream, &error).await;
            }
        };
    let range = match range(&view, &request) {
        Ok(range) => range,
        Err(error) => return refuse(node, stream, &error).await,
    };
    let is_client = !request.header.client_name.is_empty();
    let flow = match is_client {
        true => &node.metrics.read_by_clients,
        false => &node.metrics.read_by_datanodes,
    };
    if !is_client {
        // Another DataNode, for a rebuild, as with Hadoop's `StripedBlockReader`.
        stream.writer.set_send_buffer(SOURCE_BUFFER).map_err(TransferError::from)?;
    }
    node.dataset.note_read_in_memory(block.id);
    // It travels with the first packet.
    stream.writer.hold_message(&range.answer());
    let how = Sending::new(node, flow, Some(&node.read_budget), request.caching_strategy.clone());
    let longest_packet = request.longest_packet.map_or(0, |len| len as usize).min(LONGEST_PACKET);
    let how = Sending { longest_packet, ..how };
    let sent = range.send(&mut stream.writer, &how).await;
    if sent.as_ref().map_or_else(is_hang_up, |()| true) {
        flow.blocks.add(1);
    }
    sent.inspect_err(|error| {
        // Whoever tries again opens the files anew.
        node.dataset.close_kept(block.id);
        node.note_read_error(&block, error);
    })?;
    // A client that has seen enough just closes.
    let verdict = stream.reader.read_message::<ClientReadStatusProto>("read status").await;
    if verdict.as_ref().is_ok_and(|verdict| verdict.status == Status::ErrorChecksum as i32) {
        node.suspect_block(block.id);
    }
    Ok(verdict.is_ok())
}

/// Says why nothing is read, and closes: who sleeps until the bytes are there is woken by that.
async fn refuse(node: &Node, stream: &mut TransferStream, error: &DataNodeError) -> Result<bool> {
    answer_error(node, stream, Op::ReadBlock, "opReadBlock", error).await.map(|_| false)
}

fn range<'a>(view: &'a ReadView, request: &OpReadBlockProto) -> Result<Range<'a>> {
    Range::new(view, request.offset, request.len, request.send_checksums.unwrap_or(true))
}
