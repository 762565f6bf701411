//! The data transfer server: connections, each with one operation after another.
//!
//! A bad frame or a failed operation costs its own connection and nothing else.
//!
//! Source: Hadoop 3.5.0 `DataXceiverServer`, `DataXceiver`.

use crate::error::{DataNodeError, Result};
use crate::node::Node;
use crate::ops;
use bytes::Bytes;
use cairn_net::transfer_stream::{TransferError, TransferStream};
use cairn_wire::WireError;
use cairn_wire::proto::hdfs::{BlockOpResponseProto, Status};
use cairn_wire::transfer::Op;
use prost::Message;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};

/// Accepts connections until the task is ended.
pub(crate) async fn serve(node: Arc<Node>, listener: TcpListener) {
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                let limit = node.tunables.max_connections.load(Ordering::Relaxed);
                if node.connections.load(Ordering::Relaxed) >= limit {
                    tracing::warn!(%peer, limit, "too many data connections");
                    continue;
                }
                let served = node.clone();
                node.tasks.spawn(async move {
                    let _count = Connection::open(&served);
                    if let Err(error) = serve_connection(&served, stream).await {
                        log_end(peer, &error);
                    }
                });
            }
            Err(error) => {
                // Out of descriptors, most likely: serve those who are here.
                tracing::warn!(%error, "cannot accept data connections");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

/// Says why a connection was closed: loudly if the peer sent what the protocol does not allow, quietly if it went away.
fn log_end(peer: SocketAddr, error: &DataNodeError) {
    let kind = match error {
        DataNodeError::Io { source, .. } => Some(source.kind()),
        _ => None,
    };
    match (error, kind) {
        (DataNodeError::Wire(_) | DataNodeError::Peer(_) | DataNodeError::Place(_), _)
        | (_, Some(ErrorKind::UnexpectedEof)) => {
            tracing::warn!(%peer, %error, "data connection closed")
        }
        (_, Some(ErrorKind::BrokenPipe | ErrorKind::ConnectionReset)) => {
            tracing::debug!(%peer, %error, "data connection closed");
        }
        _ => tracing::info!(%peer, %error, "data connection closed"),
    }
}

/// Counts a connection.
struct Connection<'a>(&'a Node);

impl<'a> Connection<'a> {
    fn open(node: &'a Node) -> Connection<'a> {
        node.connections.fetch_add(1, Ordering::Relaxed);
        Connection(node)
    }
}

impl Drop for Connection<'_> {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

async fn serve_connection(node: &Arc<Node>, stream: TcpStream) -> Result<()> {
    let mut stream =
        TransferStream::from_tcp(stream, &node.transfer_options(0)).map_err(TransferError::from)?;
    let mut is_first = true;
    loop {
        let patience = if is_first { node.config.read_timeout } else { node.config.keepalive };
        stream.reader.set_timeout(patience);
        let (op, body) = match stream.reader.read_op().await {
            Ok(Some(next)) => next,
            Ok(None) => return Ok(()),
            Err(TransferError::Timeout { .. }) if !is_first => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        stream.reader.set_timeout(node.config.read_timeout);
        if !serve_op(node, &mut stream, op, body).await? || node.config.keepalive.is_zero() {
            return Ok(());
        }
        is_first = false;
    }
}

/// Serves one operation; `false` if the connection cannot be used for another.
async fn serve_op(
    node: &Arc<Node>,
    stream: &mut TransferStream,
    op: Op,
    body: Bytes,
) -> Result<bool> {
    tracing::debug!(?op, "data operation");
    match op {
        Op::WriteBlock => ops::write_block::serve(node, stream, decode(op, body)?).await,
        Op::ReadBlock => ops::read_block::serve(node, stream, decode(op, body)?).await,
        Op::TransferBlock => ops::transfer::serve(node, stream, decode(op, body)?).await,
        Op::BlockChecksum => ops::checksum::serve_block(node, stream, decode(op, body)?).await,
        Op::BlockGroupChecksum => ops::group_checksum::serve(node, stream, decode(op, body)?).await,
        Op::CopyBlock => ops::balance::serve_copy(node, stream, decode(op, body)?).await,
        Op::ReplaceBlock => ops::balance::serve_replace(node, stream, decode(op, body)?).await,
        Op::RequestShortCircuitFds | Op::RequestShortCircuitShm => {
            // Also what Hadoop answers on a TCP connection: file descriptors need a UNIX domain socket.
            let message = "Short-circuit reads need a UNIX domain socket";
            refuse(stream, Status::ErrorUnsupported, message).await?;
            Ok(true)
        }
        Op::ReadMetadata | Op::ReleaseShortCircuitFds => {
            Err(WireError::Value { what: "operation", value: op.code().into() }.into())
        }
    }
}

fn decode<M: Message + Default>(op: Op, body: Bytes) -> Result<M> {
    M::decode(body).map_err(|error| {
        DataNodeError::peer(format!("cannot decode the request of {op:?}: {error}"))
    })
}

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
    stream: &mut TransferStream,
    what: &str,
    error: &DataNodeError,
) -> Result<bool> {
    tracing::info!(%error, "{what} failed");
    refuse(stream, Status::Error, format!("{what} received exception {error}")).await?;
    Ok(true)
}

/// Answers an operation that succeeded.
pub(crate) async fn answer_success(stream: &mut TransferStream) -> Result<()> {
    let answer = BlockOpResponseProto { status: Status::Success as i32, ..Default::default() };
    Ok(stream.writer.send_message(&answer).await?)
}
