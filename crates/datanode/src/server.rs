//! The data transfer server: connections, each with one operation after another.
//!
//! A bad frame or a failed operation costs its own connection and nothing else.
//!
//! Source: Hadoop 3.5.0 `DataXceiverServer`, `DataXceiver`.

use crate::block_tokens::Guarded;
use crate::error::{DataNodeError, FailureKind, Result};
use crate::messages;
use crate::node::Node;
use crate::ops;
use crate::ops::answer::{is_hang_up, note_failure};
use bytes::Bytes;
use cairn_net::transfer_stream::{TransferError, TransferStream};
use cairn_trace::Span;
use cairn_wire::WireError;
use cairn_wire::proto::hdfs::*;
use cairn_wire::transfer::Op;
use prost::Message;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tokio::net::{TcpListener, UnixListener};
use tokio::time::timeout;

/// A connection that waits longer than this for its next operation gives its memory back.
const IDLE_AFTER: Duration = Duration::from_millis(50);

/// Accepts connections until the task is ended.
pub(crate) async fn serve(node: Arc<Node>, listener: TcpListener) {
    loop {
        match listener.accept().await {
            Ok((_, peer)) if !node.config.reach.may_take(peer) => {}
            Ok((stream, peer)) => {
                let stream = TransferStream::from_tcp(stream, &node.served_options());
                start(&node, stream, peer.to_string());
            }
            Err(error) => rest(&node, &error).await,
        }
    }
}

/// The same for clients on this machine.
pub(crate) async fn serve_domain(node: Arc<Node>, listener: UnixListener) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let stream = TransferStream::from_domain(stream, &node.served_options());
                start(&node, stream, "a client on this machine".to_string());
            }
            Err(error) => rest(&node, &error).await,
        }
    }
}

/// Serves a connection in a task of its own, if there is room for one more.
fn start(node: &Arc<Node>, stream: io::Result<TransferStream>, peer: String) {
    let limit = node.tunables.max_connections.load(Ordering::Relaxed);
    // Counted before its task runs: many may come at once.
    let Some(count) = Connection::open(node, limit) else {
        tracing::warn!(%peer, limit, "too many data connections");
        return;
    };
    let served = node.clone();
    node.tasks.spawn(async move {
        let _count = count;
        let done = match stream {
            Ok(stream) => serve_connection(&served, stream).await,
            Err(error) => Err(TransferError::from(error).into()),
        };
        if let Err(error) = done {
            log_end(&peer, &error);
        }
    });
}

/// Out of descriptors, most likely: gives up those that can be had again, and serves those who are here.
async fn rest(node: &Node, error: &io::Error) {
    tracing::warn!(%error, "cannot accept data connections");
    node.dataset.close_all_kept();
    tokio::time::sleep(Duration::from_millis(100)).await;
}

/// Says why a connection was closed: loudly if the peer sent what the protocol does not allow, quietly if it went away.
fn log_end(peer: &str, error: &DataNodeError) {
    match error {
        DataNodeError::Wire(_) | DataNodeError::Peer(_) | DataNodeError::Place(_) => {
            tracing::warn!(%peer, %error, "data connection closed");
        }
        error if is_hang_up(error) => {
            tracing::debug!(%peer, %error, "data connection closed");
        }
        _ => tracing::info!(%peer, %error, "data connection closed"),
    }
}

/// Counts a connection.
struct Connection(Arc<Node>);

impl Connection {
    /// `None` if there are `limit` already.
    fn open(node: &Arc<Node>, limit: usize) -> Option<Connection> {
        let others = node.connections.fetch_add(1, Ordering::Relaxed);
        let counted = Connection(node.clone());
        (others < limit).then_some(counted)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

async fn serve_connection(node: &Arc<Node>, mut stream: TransferStream) -> Result<()> {
    if let Some(policy) = node.config.data_transfer.clone().filter(|_| !stream.is_domain()) {
        stream.admit(policy, |user| node.block_tokens.password_for(user)).await?;
    }
    let mut is_first = true;
    loop {
        let patience = if is_first { node.config.read_timeout } else { node.config.keepalive };
        stream.reader.set_timeout(patience);
        let next = match timeout(IDLE_AFTER, stream.reader.read_op()).await {
            Ok(next) => next,
            Err(_) => {
                stream.release_memory();
                stream.reader.read_op().await
            }
        };
        let (op, body) = match next {
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

/// Serves one operation, and times it; `false` if the connection cannot be used for another.
async fn serve_op(
    node: &Arc<Node>,
    stream: &mut TransferStream,
    op: Op,
    body: Bytes,
) -> Result<bool> {
    let started = Instant::now();
    let served = match traced(op, &body) {
        None => dispatch(node, stream, op, body).await,
        Some(mut span) => {
            span.note("server.address", node.config.xfer_addr);
            // Few are traced: the others need no room for it.
            let served = Box::pin(span.contains(dispatch(node, stream, op, body))).await;
            served.as_ref().err().into_iter().for_each(|error| span.failed(error));
            served
        }
    };
    if let Some(timer) = node.metrics.op(op) {
        // A reader may hang up when it has seen enough.
        let is_failure = |error: &DataNodeError| op != Op::ReadBlock || !is_hang_up(error);
        let failure = served.as_ref().err().filter(|error| is_failure(error));
        timer.ended(started.elapsed(), failure.is_some());
        failure.into_iter().for_each(|error| node.metrics.note_failure(error.kind()));
    }
    served
}

/// What an operation is in the trace of who asks for it, if that is recorded.
///
/// Source: Hadoop 3.5.0 `Receiver`, which continues the span of `DataTransferTraceInfoProto`.
fn traced(op: Op, body: &Bytes) -> Option<Span> {
    if !cairn_trace::is_on() {
        return None;
    }
    let of_client = |header: ClientOperationHeaderProto| header.base_header;
    let body = || body.clone();
    // What cannot be decoded is told where the operation is served.
    let header = match op {
        Op::WriteBlock => of_client(OpWriteBlockProto::decode(body()).ok()?.header),
        Op::ReadBlock => of_client(OpReadBlockProto::decode(body()).ok()?.header),
        Op::TransferBlock => of_client(OpTransferBlockProto::decode(body()).ok()?.header),
        Op::BlockChecksum => OpBlockChecksumProto::decode(body()).ok()?.header,
        Op::BlockGroupChecksum => OpBlockGroupChecksumProto::decode(body()).ok()?.header,
        Op::CopyBlock => OpCopyBlockProto::decode(body()).ok()?.header,
        Op::ReplaceBlock => OpReplaceBlockProto::decode(body()).ok()?.header,
        _ => return None,
    };
    let caller = header.trace_info?.span_context?;
    let mut span = Span::served(Some(&caller), || format!("DataTransfer/{op:?}"))?;
    span.note("cairn.block", header.block.block_id);
    Some(span)
}

async fn dispatch(
    node: &Arc<Node>,
    stream: &mut TransferStream,
    op: Op,
    body: Bytes,
) -> Result<bool> {
    tracing::debug!(?op, "data operation");
    match op {
        Op::WriteBlock => match admitted(node, stream, op, body).await? {
            Some(request) => ops::write_block::serve(node, stream, request).await,
            None => Ok(false),
        },
        Op::ReadBlock => match admitted(node, stream, op, body).await? {
            Some(request) => ops::read_many::serve(node, stream, request).await,
            None => Ok(false),
        },
        Op::TransferBlock => match admitted(node, stream, op, body).await? {
            Some(request) => ops::transfer::serve(node, stream, request).await,
            None => Ok(false),
        },
        Op::BlockChecksum => match admitted(node, stream, op, body).await? {
            Some(request) => ops::checksum::serve_block(node, stream, request).await,
            None => Ok(false),
        },
        Op::BlockGroupChecksum => match admitted(node, stream, op, body).await? {
            Some(request) => ops::group_checksum::serve(node, stream, request).await,
            None => Ok(false),
        },
        Op::CopyBlock => match admitted(node, stream, op, body).await? {
            Some(request) => ops::balance::serve_copy(node, stream, request).await,
            None => Ok(false),
        },
        Op::ReplaceBlock => match admitted(node, stream, op, body).await? {
            Some(request) => ops::balance::serve_replace(node, stream, request).await,
            None => Ok(false),
        },
        Op::RequestShortCircuitFds => match admitted(node, stream, op, body).await? {
            Some(request) => ops::short_circuit::serve_fds(node, stream, request).await,
            None => Ok(false),
        },
        Op::ReleaseShortCircuitFds => {
            ops::short_circuit::serve_release(node, stream, decode(op, body)?).await
        }
        Op::RequestShortCircuitShm => {
            ops::short_circuit::serve_shm(node, stream, decode(op, body)?).await
        }
        Op::ReadMetadata => {
            Err(WireError::Value { what: "operation", value: op.code().into() }.into())
        }
    }
}

/// The request, if its token allows what it asks for. Otherwise who waits for an answer is told, and the connection is to be
/// closed.
///
/// Source: Hadoop 3.5.0 `DataXceiver#checkAccess`.
async fn admitted<M: Guarded>(
    node: &Arc<Node>,
    stream: &mut TransferStream,
    op: Op,
    body: Bytes,
) -> Result<Option<M>> {
    let request: M = decode(op, body)?;
    let asked = request.asked();
    let Err(error) = node.block_tokens.check(&asked) else { return Ok(Some(request)) };
    let peer = stream.peer_addr().map(|addr| addr.to_string()).unwrap_or_default();
    tracing::warn!(?op, peer, %error, "a block token does not allow it");
    if asked.is_answered {
        let status = Status::ErrorAccessToken as i32;
        let message = Some(error.to_string());
        let own = || node.registration().ok().map(|own| messages::id_name(&own.datanode_id));
        let first_bad_link = (op == Op::WriteBlock).then(own).flatten();
        let answer = BlockOpResponseProto { status, message, first_bad_link, ..Default::default() };
        stream.writer.send_message(&answer).await?;
    }
    note_failure(node, op, FailureKind::Refused);
    Ok(None)
}

fn decode<M: Message + Default>(op: Op, body: Bytes) -> Result<M> {
    M::decode(body).map_err(|error| {
        DataNodeError::peer(format!("cannot decode the request of {op:?}: {error}"))
    })
}
