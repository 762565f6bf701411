//! REQUEST_SHORT_CIRCUIT_FDS, RELEASE_SHORT_CIRCUIT_FDS and REQUEST_SHORT_CIRCUIT_SHM: clients on this
//! machine read a replica's files themselves.
//!
//! Source: Hadoop 3.5.0 `DataXceiver#requestShortCircuitFds`, `#releaseShortCircuitFds`,
//! `#requestShortCircuitShm`, `DataNode#requestShortCircuitFdsForRead`.

use super::answer::{note_failure, refuse};
use super::virtual_block;
use crate::dataset::ReadView;
use crate::error::{FailureKind, Result};
use crate::messages;
use crate::node::Node;
use cairn_net::transfer_stream::TransferStream;
use cairn_wire::proto::hdfs::{
    BlockOpResponseProto, OpRequestShortCircuitAccessProto, ReleaseShortCircuitAccessRequestProto,
    ReleaseShortCircuitAccessResponseProto, ShortCircuitFdResponse, ShortCircuitShmRequestProto,
    ShortCircuitShmResponseProto, ShortCircuitShmSlotProto, Status,
};
use cairn_wire::transfer::Op;
use std::sync::Arc;
use std::time::Duration;

/// Version of the files' format.
///
/// Source: Hadoop 3.5.0 `DataNode#CURRENT_BLOCK_FORMAT_VERSION`.
const FORMAT_VERSION: u32 = 1;

/// Passes the data file and the meta file of a replica.
pub(crate) async fn serve_fds(
    node: &Arc<Node>,
    stream: &mut TransferStream,
    request: OpRequestShortCircuitAccessProto,
) -> Result<bool> {
    if !stream.is_domain() {
        let message = "You cannot pass file descriptors over anything but a UNIX domain socket.";
        refuse(stream, Status::Error, message).await?;
        note_failure(node, Op::RequestShortCircuitFds, FailureKind::Refused);
        return Ok(true);
    }
    let block = messages::block(&request.header.block);
    if let Some(slot) = &request.slot_id {
        let is_cached = node.cache.contains(block.id, &node.dataset);
        if let Err(error) = node.short_circuit.register(block.id, slot, is_cached) {
            refuse(stream, Status::Error, error.to_string()).await?;
            note_failure(node, Op::RequestShortCircuitFds, FailureKind::Refused);
            return Ok(true);
        }
    }
    let passed = pass(node, stream, &request).await;
    if let (Some(slot), Ok(false) | Err(_)) = (&request.slot_id, &passed) {
        unregister(node, slot);
    }
    if matches!(passed, Ok(false)) {
        note_failure(node, Op::RequestShortCircuitFds, FailureKind::Refused);
    }
    passed.map(|_| true)
}

/// False when the client was told why not.
async fn pass(
    node: &Arc<Node>,
    stream: &mut TransferStream,
    request: &OpRequestShortCircuitAccessProto,
) -> Result<bool> {
    if !node.config.short_circuit {
        let message = "File descriptor passing was not configured.";
        refuse(stream, Status::ErrorUnsupported, message).await?;
        return Ok(false);
    }
    let mut answer = BlockOpResponseProto {
        status: Status::Success as i32,
        short_circuit_access_version: Some(FORMAT_VERSION),
        ..Default::default()
    };
    if request.max_version < FORMAT_VERSION {
        answer.status = Status::ErrorUnsupported as i32;
        answer.message = Some(format!(
            "Your client is too old to read this block!  Its format version is {FORMAT_VERSION}, but the highest \
             format version you can read is {}",
            request.max_version
        ));
        stream.writer.send_message(&answer).await?;
        return Ok(false);
    }
    let block = messages::block(&request.header.block);
    if let Err(error) = virtual_block::check_unfenced(node, &block) {
        refuse(stream, Status::Error, error.to_string()).await?;
        return Ok(false);
    }
    if virtual_block::may_be_elsewhere(node, &block)
        && virtual_block::visible_len(node, &block).await.is_ok()
    {
        virtual_block::refuse_files(stream, FORMAT_VERSION).await?;
        return Ok(false);
    }
    let view: ReadView = match node.dataset.open_read(&block, 0).await {
        Ok(view) => view,
        Err(error) => {
            tracing::info!(%error, "a replica's files cannot be passed");
            refuse(stream, Status::Error, error.to_string()).await?;
            return Ok(false);
        }
    };
    let verifies = request.supports_receipt_verification.unwrap_or(false);
    let receipt = match verifies {
        true => ShortCircuitFdResponse::UseReceiptVerification,
        false => ShortCircuitFdResponse::DoNotUseReceiptVerification,
    };
    stream.writer.send_message(&answer).await?;
    stream.writer.send_fds(receipt as u8, &view.descriptors()).await?;
    if verifies {
        stream.reader.read_fds("the receipt").await?;
    }
    node.dataset.note_read_in_memory(block.id);
    Ok(true)
}

/// Takes note that a client has done with a replica.
pub(crate) async fn serve_release(
    node: &Arc<Node>,
    stream: &mut TransferStream,
    request: ReleaseShortCircuitAccessRequestProto,
) -> Result<bool> {
    let released = node.short_circuit.unregister(&request.slot_id);
    let status = if released.is_ok() { Status::Success } else { Status::ErrorInvalid };
    let error = released.err().map(|error| error.to_string());
    let answer = ReleaseShortCircuitAccessResponseProto { status: status as i32, error };
    stream.writer.send_message(&answer).await?;
    Ok(true)
}

/// Gives a client memory for slots, until it closes the connection or says anything more on it.
pub(crate) async fn serve_shm(
    node: &Arc<Node>,
    stream: &mut TransferStream,
    request: ShortCircuitShmRequestProto,
) -> Result<bool> {
    let refused = |status: Status, error: String| ShortCircuitShmResponseProto {
        status: status as i32,
        error: Some(error),
        id: None,
    };
    if !stream.is_domain() {
        let peer = stream.peer_addr().map(|addr| addr.to_string()).unwrap_or_default();
        let what = format!(
            "Bad request from {peer}: must request a shared memory segment over a UNIX domain socket."
        );
        stream.writer.send_message(&refused(Status::ErrorInvalid, what)).await?;
        return Ok(true);
    }
    let segment = match node.short_circuit.create() {
        Ok(segment) => segment,
        Err(error) => {
            let what = format!("Failed to create shared file descriptor: {error}");
            stream.writer.send_message(&refused(Status::Error, what)).await?;
            return Ok(true);
        }
    };
    tracing::debug!(client = request.client_name, "memory shared with a client");
    let answer = ShortCircuitShmResponseProto {
        status: Status::Success as i32,
        error: None,
        id: Some(segment.id()),
    };
    stream.writer.send_message(&answer).await?;
    stream.writer.send_fds(0, &[segment.file()]).await?;
    stream.reader.set_timeout(Duration::MAX);
    stream.reader.wait_closed(0).await;
    Ok(false)
}

fn unregister(node: &Node, slot: &ShortCircuitShmSlotProto) {
    // The segment may have gone meanwhile, and the slot with it.
    let _ = node.short_circuit.unregister(slot);
}
