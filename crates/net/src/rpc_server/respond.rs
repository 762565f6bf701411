//! Writes answers: in the order they finish, several in one system call where they pile up.
//!
//! The task that reads a connection writes its answers too. Calls that it answers itself are written when it has no
//! more to read or has begun enough, and nobody is woken for them.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use cairn_security::sasl::Seal;
use cairn_wire::RemoteException;
use cairn_wire::exception::class;
use cairn_wire::proto::common::{
    RpcResponseHeaderProto, RpcResponseHeaderProtoRpcErrorCodeProto as Code,
};
use cairn_wire::rpc;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;

use super::caller::Caller;
use super::memory::Share;
use super::metrics::{Begun, RpcMetrics};
use crate::channel::{self, Side};

/// Answers up to this size are gathered into one chunk.
const GATHER: usize = 64 << 10;
/// A longer message is a chunk of its own.
const LONG: usize = 16 << 10;
/// Bytes of an answer before its message, without the client's identity.
const HEAD_MAX: usize = 64;
/// No call begins while as many bytes of answers wait to be written: a peer that does not read must not pin more.
const UNWRITTEN_MAX: usize = 8 << 20;
/// Chunks that are given to the system at a time.
const CHUNKS: usize = 64;

/// Where the answers of one connection wait to be written.
pub(super) struct Outbox {
    waiting: Mutex<Waiting>,
    /// Calls that may run, or wait for their answers to be written.
    limit: usize,
    metrics: Arc<RpcMetrics>,
    /// Whose answers they are.
    peer: SocketAddr,
    /// What encloses them, if anything does.
    seal: Mutex<Option<Box<dyn Seal>>>,
}

#[derive(Default)]
struct Waiting {
    /// What is written in one go each.
    chunks: VecDeque<Vec<u8>>,
    /// Calls that are answered by them.
    answered: usize,
    /// Bytes of these answers, without their heads.
    answered_len: usize,
    /// Calls whose answers are being written.
    written: usize,
    /// Bytes of these answers likewise.
    written_len: usize,
    /// Calls without an answer yet.
    running: usize,
    /// No more calls begin.
    is_closed: bool,
    /// Who writes, while that waits.
    writer: Option<Waker>,
    /// Who reads, while that waits for room.
    reader: Option<Waker>,
    /// How many of the first chunks go as they are, where the others are enclosed.
    plain: usize,
    /// A buffer that was written, for the next chunk.
    spare: Vec<u8>,
}

impl Waiting {
    /// The chunk that has room for `len` more bytes.
    fn chunk(&mut self, len: usize) -> &mut Vec<u8> {
        let is_full = |last: &Vec<u8>| {
            // A long message that is a chunk is not moved to where there is more room.
            let is_moved = last.len() > LONG && last.capacity() - last.len() < len;
            is_moved || last.len() + len > GATHER
        };
        if self.chunks.back().is_none_or(is_full) {
            self.chunks.push_back(std::mem::take(&mut self.spare));
        }
        let last = self.chunks.len() - 1;
        &mut self.chunks[last]
    }

    fn push(&mut self, frame: Vec<u8>) {
        self.chunk(frame.len()).extend_from_slice(&frame);
    }

    /// Adds the answer of a call.
    fn answer(&mut self, to: &Caller, result: Result<Vec<u8>, RemoteException>) {
        let (call_id, retry_count, client_id) = (to.call_id, to.retry_count, &*to.client_id);
        let state_id = to.state_id();
        let told = match &result {
            Ok(message) => message.len(),
            Err(error) => error.message.len(),
        };
        self.answered += 1;
        self.answered_len += client_id.len() + told;
        let error = match result {
            Ok(message) => {
                let is_long = message.len() > LONG;
                let len = HEAD_MAX + client_id.len() + if is_long { 0 } else { message.len() };
                let chunk = self.chunk(len);
                let len = message.len();
                match rpc::put_success_head(call_id, retry_count, client_id, state_id, len, chunk) {
                    // It is not copied once more.
                    Some(()) if is_long => return self.chunks.push_back(message),
                    Some(()) => return chunk.extend_from_slice(&message),
                    None => RemoteException::with_code(
                        class::RPC_SERVER,
                        "The response is too long for a frame",
                        Code::ErrorSerializingResponse,
                    ),
                }
            }
            Err(error) => error,
        };
        let header = rpc::error_header(call_id, retry_count, client_id, &error);
        let header = RpcResponseHeaderProto { state_id, ..header };
        self.push(rpc::encode_response(&header, None).unwrap_or_default());
    }

    fn in_flight(&self) -> usize {
        self.running + self.answered + self.written
    }

    fn unwritten_len(&self) -> usize {
        self.answered_len + self.written_len
    }
}

/// Remembers who is to be woken.
fn remember(place: &mut Option<Waker>, cx: &Context<'_>) {
    if place.as_ref().is_none_or(|known| !known.will_wake(cx.waker())) {
        *place = Some(cx.waker().clone());
    }
}

impl Outbox {
    /// For a connection that may have `limit` calls running or waiting for their answers to be written.
    pub(super) fn new(limit: usize, metrics: Arc<RpcMetrics>, peer: SocketAddr) -> Outbox {
        let (waiting, seal) = Default::default();
        Outbox { waiting, limit: limit.max(1), metrics, peer, seal }
    }

    /// Counts a call that has ended now, and tells of it if it was slow. Returns the time.
    pub(super) fn note_end(
        &self,
        to: &Caller,
        begun: Begun,
        result: &Result<Vec<u8>, RemoteException>,
    ) -> Instant {
        let exception = result.as_ref().err().map(|error| error.class.as_str());
        let ended = self.metrics.end(begun, exception);
        if let Some(took) = ended.slow {
            self.metrics.tell_slow(begun, took, self.peer, to);
        }
        ended.at
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until one more call may begin, and tells whether that took time.
    pub(super) async fn has_room(&self) -> bool {
        let mut has_waited = false;
        poll_fn(|cx| {
            let mut waiting = self.waiting();
            if waiting.in_flight() < self.limit && waiting.unwritten_len() < UNWRITTEN_MAX {
                return Poll::Ready(has_waited);
            }
            has_waited = true;
            remember(&mut waiting.reader, cx);
            Poll::Pending
        })
        .await
    }

    /// Whether every call has been answered and its answer written.
    pub(super) fn is_idle(&self) -> bool {
        self.waiting().in_flight() == 0
    }

    /// Queues a frame that answers no call. The writer is not woken: for the task that it is a part of.
    pub(super) fn send(&self, frame: Vec<u8>) {
        self.waiting().push(frame);
    }

    /// Everything that is queued from now on is enclosed.
    pub(super) fn enclose(&self, seal: Box<dyn Seal>) {
        *self.seal.lock().unwrap_or_else(PoisonError::into_inner) = Some(seal);
        let mut waiting = self.waiting();
        waiting.plain = waiting.chunks.len();
        waiting.chunks.push_back(Vec::new());
    }

    /// Chunks as they are to be written, of which the first so many go as they are.
    fn sealed(&self, chunks: VecDeque<Vec<u8>>, plain: usize) -> io::Result<VecDeque<Vec<u8>>> {
        let mut seal = self.seal.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(seal) = seal.as_mut() else { return Ok(chunks) };
        let mut out = VecDeque::new();
        for (at, chunk) in chunks.into_iter().enumerate() {
            if at < plain {
                out.push_back(chunk);
            } else {
                channel::sealed(&mut **seal, Side::Server, &chunk, &mut out)
                    .map_err(|error| io::Error::other(error.to_string()))?;
            }
        }
        Ok(out)
    }

    /// No more calls begin: the writer ends when those that run are answered.
    pub(super) fn close(&self) {
        self.waiting().is_closed = true;
    }

    /// Answers a call that has begun and ended just now, in the task that the writer is a part of.
    pub(super) fn answer(&self, to: &Caller, result: Result<Vec<u8>, RemoteException>) {
        self.waiting().answer(to, result);
    }

    /// What is to be written next; nothing at the end.
    async fn next(&self) -> Option<(VecDeque<Vec<u8>>, usize)> {
        poll_fn(|cx| {
            let mut waiting = self.waiting();
            if !waiting.chunks.is_empty() {
                waiting.written = std::mem::take(&mut waiting.answered);
                waiting.written_len = std::mem::take(&mut waiting.answered_len);
                let plain = std::mem::take(&mut waiting.plain);
                return Poll::Ready(Some((std::mem::take(&mut waiting.chunks), plain)));
            }
            if waiting.is_closed && waiting.running == 0 {
                return Poll::Ready(None);
            }
            remember(&mut waiting.writer, cx);
            Poll::Pending
        })
        .await
    }

    /// What [`Outbox::next`] gave has been written.
    fn note_written(&self, mut chunks: VecDeque<Vec<u8>>) {
        let spare = chunks.pop_front().filter(|chunk| chunk.capacity() <= GATHER);
        let mut waiting = self.waiting();
        if let Some(mut spare) = spare {
            spare.clear();
            waiting.spare = spare;
        }
        (waiting.written, waiting.written_len) = (0, 0);
        let reader = waiting.reader.take();
        drop(waiting);
        if let Some(reader) = reader {
            reader.wake();
        }
    }
}

/// What a caller is told whose call came to no end: its service panicked.
pub(super) fn ended() -> RemoteException {
    let message = "The call ended without an answer";
    RemoteException::with_code(class::RPC_SERVER, message, Code::ErrorRpcServer)
}

/// The duty to answer one call. A call that is dropped unanswered (its service panicked) is
/// answered with an exception.
pub(super) struct Responder {
    outbox: Arc<Outbox>,
    to: Caller,
    begun: Begun,
    goes_on: bool,
    answered: bool,
    /// The request's, until its call has ended.
    memory: Option<Share>,
}

impl Responder {
    /// For a call that begins; see [`Outbox::has_room`].
    pub(super) fn new(outbox: Arc<Outbox>, to: Caller, begun: Begun) -> Responder {
        outbox.waiting().running += 1;
        Responder { outbox, to, begun, goes_on: false, answered: false, memory: None }
    }

    /// The call has not been answered at once, and its request takes memory.
    pub(super) fn goes_on(&mut self, memory: Share) {
        self.goes_on = true;
        self.memory = Some(memory);
        self.outbox.metrics.note_running();
    }

    /// Answers in the task that the writer is a part of, which comes to it next.
    pub(super) fn answer_here(mut self, result: Result<Vec<u8>, RemoteException>) {
        self.queue(result, false);
    }

    pub(super) fn answer(mut self, result: Result<Vec<u8>, RemoteException>) {
        self.queue(result, true);
    }

    fn queue(&mut self, result: Result<Vec<u8>, RemoteException>, wakes: bool) {
        self.answered = true;
        self.to.note_end(&result);
        self.outbox.note_end(&self.to, self.begun, &result);
        if self.goes_on {
            self.outbox.metrics.note_not_running();
        }
        let mut waiting = self.outbox.waiting();
        waiting.answer(&self.to, result);
        waiting.running -= 1;
        let writer = if wakes { waiting.writer.take() } else { None };
        drop(waiting);
        if let Some(writer) = writer {
            writer.wake();
        }
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        if !self.answered {
            self.queue(Err(ended()), true);
        }
    }
}

/// Writes answers until the outbox is closed and every call answered, or the socket fails.
pub(super) async fn write_answers(
    outbox: &Outbox,
    mut socket: impl AsyncWrite + Unpin,
    write_timeout: Duration,
) -> io::Result<()> {
    while let Some((chunks, plain)) = outbox.next().await {
        let chunks = outbox.sealed(chunks, plain)?;
        let mut unwritten: Vec<IoSlice<'_>> = chunks.iter().map(|c| IoSlice::new(c)).collect();
        write(&mut socket, &mut unwritten, write_timeout).await?;
        outbox.metrics.note_sent(chunks.iter().map(|chunk| chunk.len() as u64).sum());
        outbox.note_written(chunks);
    }
    socket.shutdown().await
}

/// Writes all of `parts`, giving up when nothing could be written for `patience`.
async fn write(
    socket: &mut (impl AsyncWrite + Unpin),
    mut parts: &mut [IoSlice<'_>],
    patience: Duration,
) -> io::Result<()> {
    // Empty ones at the front are none.
    IoSlice::advance_slices(&mut parts, 0);
    while !parts.is_empty() {
        let some = parts.len().min(CHUNKS);
        match timeout(patience, socket.write_vectored(&parts[..some])).await {
            Err(_) => return Err(io::ErrorKind::TimedOut.into()),
            Ok(Ok(0)) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(Ok(written)) => IoSlice::advance_slices(&mut parts, written),
            Ok(Err(error)) => return Err(error),
        }
    }
    Ok(())
}
