//! Short answers to operations, and what is counted with them.

use crate::error::{DataNodeError, FailureKind, Result};
use crate::metrics::Timer;
use crate::node::Node;
use cairn_net::transfer_stream::TransferStream;
use cairn_wire::proto::hdfs::{BlockOpResponseProto, Status};
use cairn_wire::transfer::Op;
use std::io::ErrorKind;

/// Answers an operation that is not done.
pub(crate) async fn refuse(
    stream: &mut TransferStream,
    status: Status,
    message: impl Into<String>,
) -> Result<()> {
    let answer = BlockOpResponseProto {
        status: status as i32,
        message: Some(message.into()),
        ..Default::default()
    };
    Ok(stream.writer.send_message(&answer).await?)
}

/// Answers an operation that failed, and keeps the connection if the peer took the answer.
pub(crate) async fn answer_error(
    node: &Node,
    stream: &mut TransferStream,
    op: Op,
    what: &str,
    error: &DataNodeError,
) -> Result<bool> {
    tracing::info!(%error, "{what} failed");
    refuse(stream, Status::Error, format!("{what} received exception {error}")).await?;
    note_failure(node, op, error.kind());
    Ok(true)
}

/// Counts the failure of an operation that was answered.
pub(crate) fn note_failure(node: &Node, op: Op, kind: FailureKind) {
    node.metrics.op(op).into_iter().for_each(Timer::failed);
    node.metrics.note_failure(kind);
}

/// Answers an operation that succeeded.
pub(crate) async fn answer_success(stream: &mut TransferStream) -> Result<()> {
    let answer = BlockOpResponseProto { status: Status::Success as i32, ..Default::default() };
    Ok(stream.writer.send_message(&answer).await?)
}

/// Whether the peer went away.
pub(crate) fn is_hang_up(error: &DataNodeError) -> bool {
    let DataNodeError::Io { source, .. } = error else { return false };
    matches!(source.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset)
}
