//! Writes answers: in the order they finish, several in one system call where they pile up.
//!
//! The task that reads a connection writes its answers too. Calls that it answers itself are written when it has no
//! more to read, and nobody is woken for them.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use cairn_wire::RemoteException;
use cairn_wire::exception::class;
use cairn_wire::proto::common::RpcResponseHeaderProtoRpcErrorCodeProto as Code;
use cairn_wire::rpc;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;

/// Answers up to this size are gathered into one write.
const GATHER: usize = 64 << 10;

/// Where the answers of one connection wait to be written.
pub(super) struct Outbox {
    waiting: Mutex<Waiting>,
    /// Calls that may run, or wait for their answers to be written.
    limit: usize,
}

#[derive(Default)]
struct Waiting {
    /// What is written in one go each.
    chunks: VecDeque<Vec<u8>>,
    /// Calls that are answered by them.
    answered: usize,
    /// Calls whose answers are being written.
    written: usize,
    /// Calls without an answer yet.
    running: usize,
    /// No more calls begin.
    is_closed: bool,
    /// Who writes, while that waits.
    writer: Option<Waker>,
    /// Who reads, while that waits for room.
    reader: Option<Waker>,
}

impl Waiting {
    fn push(&mut self, frame: Vec<u8>) {
        match self.chunks.back_mut() {
            Some(last) if last.len() + frame.len() <= GATHER => last.extend_from_slice(&frame),
            _ => self.chunks.push_back(frame),
        }
    }

    fn in_flight(&self) -> usize {
        self.running + self.answered + self.written
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
    pub(super) fn new(limit: usize) -> Outbox {
        Outbox { waiting: Mutex::default(), limit: limit.max(1) }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until one more call may begin.
    pub(super) async fn has_room(&self) {
        poll_fn(|cx| {
            let mut waiting = self.waiting();
            if waiting.in_flight() < self.limit {
                return Poll::Ready(());
            }
            remember(&mut waiting.reader, cx);
            Poll::Pending
        })
        .await;
    }

    /// Whether every call has been answered and its answer written.
    pub(super) fn is_idle(&self) -> bool {
        self.waiting().in_flight() == 0
    }

    /// Queues a frame that answers no call. The writer is not woken: for the task that it is a part of.
    pub(super) fn send(&self, frame: Vec<u8>) {
        self.waiting().push(frame);
    }

    /// No more calls begin: the writer ends when those that run are answered.
    pub(super) fn close(&self) {
        self.waiting().is_closed = true;
    }

    /// What is to be written next; nothing at the end.
    async fn next(&self) -> Option<VecDeque<Vec<u8>>> {
        poll_fn(|cx| {
            let mut waiting = self.waiting();
            if !waiting.chunks.is_empty() {
                waiting.written = std::mem::take(&mut waiting.answered);
                return Poll::Ready(Some(std::mem::take(&mut waiting.chunks)));
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
    fn note_written(&self) {
        let mut waiting = self.waiting();
        waiting.written = 0;
        let reader = waiting.reader.take();
        drop(waiting);
        if let Some(reader) = reader {
            reader.wake();
        }
    }
}

/// The duty to answer one call. A call that is dropped unanswered (its service panicked) is
/// answered with an exception.
pub(super) struct Responder {
    outbox: Arc<Outbox>,
    call_id: i32,
    retry_count: i32,
    client_id: Vec<u8>,
    answered: bool,
}

impl Responder {
    /// For a call that begins; see [`Outbox::has_room`].
    pub(super) fn new(
        outbox: Arc<Outbox>,
        (call_id, retry_count, client_id): (i32, i32, Vec<u8>),
    ) -> Responder {
        outbox.waiting().running += 1;
        Responder { outbox, call_id, retry_count, client_id, answered: false }
    }

    /// Answers in the task that the writer is a part of, which comes to it next.
    pub(super) fn answer_here(mut self, result: Result<Vec<u8>, RemoteException>) {
        self.queue(result, false);
    }

    pub(super) fn answer(mut self, result: Result<Vec<u8>, RemoteException>) {
        self.send(result);
    }

    fn send(&mut self, result: Result<Vec<u8>, RemoteException>) {
        self.queue(result, true);
    }

    fn queue(&mut self, result: Result<Vec<u8>, RemoteException>, wakes: bool) {
        self.answered = true;
        let (call_id, retry_count, client_id) = (self.call_id, self.retry_count, &self.client_id);
        let encoded = match &result {
            Ok(message) => {
                let header = rpc::success_header(call_id, retry_count, client_id);
                rpc::encode_response(&header, Some(message))
            }
            Err(error) => {
                let header = rpc::error_header(call_id, retry_count, client_id, error);
                rpc::encode_response(&header, None)
            }
        };
        let frame = encoded.unwrap_or_else(|| {
            let error = RemoteException::with_code(
                class::RPC_SERVER,
                "The response is too long for a frame",
                Code::ErrorSerializingResponse,
            );
            let header = rpc::error_header(call_id, retry_count, client_id, &error);
            rpc::encode_response(&header, None).unwrap_or_default()
        });
        let mut waiting = self.outbox.waiting();
        waiting.push(frame);
        waiting.running -= 1;
        waiting.answered += 1;
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
            let message = "The call ended without an answer";
            let error =
                RemoteException::with_code(class::RPC_SERVER, message, Code::ErrorRpcServer);
            self.send(Err(error));
        }
    }
}

/// Writes answers until the outbox is closed and every call answered, or the socket fails.
pub(super) async fn write_answers(
    outbox: &Outbox,
    mut socket: impl AsyncWrite + Unpin,
    write_timeout: Duration,
) -> io::Result<()> {
    while let Some(chunks) = outbox.next().await {
        for chunk in chunks {
            write(&mut socket, &chunk, write_timeout).await?;
        }
        outbox.note_written();
    }
    socket.shutdown().await
}

/// Writes all of `bytes`, giving up when none could be written for `patience`.
async fn write(
    socket: &mut (impl AsyncWrite + Unpin),
    mut bytes: &[u8],
    patience: Duration,
) -> io::Result<()> {
    while !bytes.is_empty() {
        match timeout(patience, socket.write(bytes)).await {
            Err(_) => return Err(io::ErrorKind::TimedOut.into()),
            Ok(Ok(0)) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(Ok(written)) => bytes = &bytes[written..],
            Ok(Err(error)) => return Err(error),
        }
    }
    Ok(())
}
