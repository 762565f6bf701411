//! Writes answers: in the order they finish, several in one system call where they pile up.

use std::io;
use std::time::Duration;

use cairn_wire::RemoteException;
use cairn_wire::exception::class;
use cairn_wire::proto::common::RpcResponseHeaderProtoRpcErrorCodeProto as Code;
use cairn_wire::rpc;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio::time::timeout;

/// Answers up to this size are gathered into one write.
const GATHER: usize = 64 << 10;
/// Answers taken from the queue at a time.
const BATCH: usize = 64;

/// An encoded answer. The permit is given back when it has been written.
pub(super) struct Answer {
    pub(super) frame: Vec<u8>,
    pub(super) _permit: Option<OwnedSemaphorePermit>,
}

/// The duty to answer one call. A call that is dropped unanswered (its service panicked) is
/// answered with an exception.
pub(super) struct Responder {
    queue: UnboundedSender<Answer>,
    call_id: i32,
    retry_count: i32,
    client_id: Vec<u8>,
    permit: Option<OwnedSemaphorePermit>,
    answered: bool,
}

impl Responder {
    pub(super) fn new(
        queue: UnboundedSender<Answer>,
        (call_id, retry_count, client_id): (i32, i32, Vec<u8>),
        permit: Option<OwnedSemaphorePermit>,
    ) -> Responder {
        Responder { queue, call_id, retry_count, client_id, permit, answered: false }
    }

    pub(super) fn answer(mut self, result: Result<Vec<u8>, RemoteException>) {
        self.send(result);
    }

    fn send(&mut self, result: Result<Vec<u8>, RemoteException>) {
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
        // A closed queue means that the client is gone: nobody to tell.
        let _ = self.queue.send(Answer { frame, _permit: self.permit.take() });
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

/// Writes answers until every [`Responder`] and sender is gone or the socket fails.
pub(super) async fn write_answers(
    mut queue: UnboundedReceiver<Answer>,
    mut socket: impl AsyncWrite + Unpin,
    write_timeout: Duration,
) -> io::Result<()> {
    let mut batch = Vec::with_capacity(BATCH);
    let mut gathered = Vec::new();
    while queue.recv_many(&mut batch, BATCH).await > 0 {
        for answer in &batch {
            if gathered.len() + answer.frame.len() > GATHER {
                write(&mut socket, &gathered, write_timeout).await?;
                gathered.clear();
            }
            if answer.frame.len() > GATHER {
                write(&mut socket, &answer.frame, write_timeout).await?;
            } else {
                gathered.extend_from_slice(&answer.frame);
            }
        }
        write(&mut socket, &gathered, write_timeout).await?;
        gathered.clear();
        batch.clear();
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
