//! A Hadoop RPC client: one connection for all callers, opened when it is needed.
//!
//! Calls are sent as they come and answered in any order. A connection that fails fails the calls
//! that were sent over it; the next call opens another. Calls that were not sent yet are moved to
//! the new connection unseen. Tests: `rpc_client/tests.rs`.

mod connection;
mod options;
mod sasl;

pub use options::{LastSeen, RpcClientOptions, SharedCredentials};

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use cairn_trace::{Kind, Span};
use cairn_wire::proto::common::{RPCTraceInfoProto, RequestHeaderProto, RpcRequestHeaderProto};
use cairn_wire::{RemoteException, WireError, rpc};
use prost::Message;
use tokio::sync::Mutex;
use tokio::time::timeout;

use crate::Boxed;
use connection::{Connection, Failure};

/// Connections tried for one call that end before it is sent.
const CONNECTIONS: usize = 4;

/// Why a call has no result.
#[derive(Debug, thiserror::Error)]
pub enum RpcError {
    /// The server answered with an exception.
    #[error(transparent)]
    Remote(#[from] RemoteException),
    /// No connection could be opened: the call was not sent.
    #[error("cannot connect to {addr}: {source}")]
    Connect {
        /// The server.
        addr: String,
        /// The socket's error.
        source: io::Error,
    },
    /// The connection failed after the call was sent: it may or may not have been executed.
    #[error("lost the connection to {addr}: {reason}")]
    Lost {
        /// The server.
        addr: String,
        /// What happened.
        reason: String,
    },
    /// No answer in time: the call may or may not have been executed.
    #[error("no answer from {addr} to {method} for {after:?}")]
    Timeout {
        /// The server.
        addr: String,
        /// The method called.
        method: String,
        /// How long the call waited.
        after: Duration,
    },
    /// The server answered with something else than the expected message.
    #[error("cannot decode the answer of {addr} to {method}: {source}")]
    Answer {
        /// The server.
        addr: String,
        /// The method called.
        method: String,
        /// What is wrong with it.
        source: WireError,
    },
}

impl RpcError {
    /// The server's exception, if that is what failed the call.
    pub fn remote(&self) -> Option<&RemoteException> {
        match self {
            RpcError::Remote(exception) => Some(exception),
            _ => None,
        }
    }

    /// True when the server threw exactly the Java class `class`.
    pub fn is_remote(&self, class: &str) -> bool {
        self.remote().is_some_and(|exception| exception.is(class))
    }

    /// True when the server cannot have executed the call.
    pub fn was_not_sent(&self) -> bool {
        matches!(self, RpcError::Connect { .. })
    }
}

/// A number for a call, so that a repetition of the call can be recognised by the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallNumber {
    /// Unique within the client's identity.
    pub call_id: i32,
    /// 0 for the first try.
    pub retry_count: i32,
}

/// A client of one protocol of one server, for one user. Clones share the connection.
#[derive(Clone)]
pub struct RpcClient {
    shared: Arc<Shared>,
}

struct Shared {
    addr: String,
    protocol: &'static str,
    user: String,
    options: RpcClientOptions,
    client_id: [u8; 16],
    /// Of all clients of this identity.
    next_call_id: Arc<AtomicI32>,
    connection: Mutex<Slot>,
}

/// The connection of a client.
#[derive(Default)]
struct Slot {
    open: Option<Connection>,
    /// When the last attempt to open one ended, and how it failed.
    failed: Option<(Instant, io::ErrorKind, String)>,
}

impl RpcClient {
    /// A client of `protocol` (such as `org.apache.hadoop.hdfs.protocol.ClientProtocol`) at `addr`
    /// (`host:port`, looked up at each connection). Connects at the first call.
    ///
    /// Each client has a random identity of its own. Panics when the system has no random numbers.
    pub fn new(
        addr: impl ToString,
        protocol: &'static str,
        user: impl Into<String>,
        options: RpcClientOptions,
    ) -> RpcClient {
        let mut client_id = [0; 16];
        getrandom::fill(&mut client_id).expect("the system's random numbers");
        RpcClient::with_client_id(addr, protocol, user, options, client_id)
    }

    /// As [`RpcClient::new`] with an identity chosen by the caller.
    pub fn with_client_id(
        addr: impl ToString,
        protocol: &'static str,
        user: impl Into<String>,
        options: RpcClientOptions,
        client_id: [u8; 16],
    ) -> RpcClient {
        let shared = Shared {
            addr: addr.to_string(),
            protocol,
            user: user.into(),
            options,
            client_id,
            next_call_id: Arc::default(),
            connection: Mutex::default(),
        };
        RpcClient { shared: Arc::new(shared) }
    }

    /// A client of the same protocol of another server of one cluster, with the identity of this one: a call that is
    /// repeated there is recognised, and no two calls of either have one number.
    pub fn beside(&self, addr: impl ToString) -> RpcClient {
        let Shared { protocol, user, options, client_id, next_call_id, .. } = &*self.shared;
        let shared = Shared {
            addr: addr.to_string(),
            protocol,
            user: user.clone(),
            options: options.clone(),
            client_id: *client_id,
            next_call_id: Arc::clone(next_call_id),
            connection: Mutex::default(),
        };
        RpcClient { shared: Arc::new(shared) }
    }

    /// The server's address, as given.
    pub fn addr(&self) -> &str {
        &self.shared.addr
    }

    /// The user the calls are made for.
    pub fn user(&self) -> &str {
        &self.shared.user
    }

    /// The identity that the server sees.
    pub fn client_id(&self) -> [u8; 16] {
        self.shared.client_id
    }

    /// Calls `method` once and waits for the answer.
    pub fn call<Req: Message, Resp: Message + Default>(
        &self,
        method: &str,
        request: &Req,
    ) -> impl Future<Output = Result<Resp, RpcError>> {
        self.call_numbered(method, request, self.new_call())
    }

    /// A number for a new call.
    pub fn new_call(&self) -> CallNumber {
        let call_id = self.shared.next_call_id.fetch_add(1, Ordering::Relaxed) & i32::MAX;
        CallNumber { call_id, retry_count: 0 }
    }

    /// As [`RpcClient::call`], with a number that a repetition of the call may reuse, its
    /// `retry_count` raised. Not more than one try of a number may run at a time.
    pub async fn call_numbered<Req: Message, Resp: Message + Default>(
        &self,
        method: &str,
        request: &Req,
        number: CallNumber,
    ) -> Result<Resp, RpcError> {
        let shared = &*self.shared;
        let mut span = Span::asked(Kind::Client, || shared.span_name(method));
        let header = RpcRequestHeaderProto {
            trace_info: span.as_ref().map(|span| RPCTraceInfoProto {
                span_context: Some(span.written().into_bytes()),
                ..RPCTraceInfoProto::default()
            }),
            state_id: shared.options.last_seen.as_ref().map(LastSeen::get),
            ..rpc::request_header(number.call_id, number.retry_count, &shared.client_id)
        };
        let request_header = RequestHeaderProto {
            method_name: method.to_owned(),
            declaring_class_protocol_name: shared.protocol.to_owned(),
            client_protocol_version: 1,
        };
        let frame: Bytes = rpc::encode_request(&header, &request_header, request).into();
        let answer = shared.answer(method, number.call_id, frame).await;
        if let Some(span) = &mut span {
            span.note("server.address", &shared.addr);
            answer.as_ref().err().into_iter().for_each(|error| span.failed(error));
        }
        let mut body = answer?;
        rpc::take_delimited(&mut body, "response message").map_err(|source| {
            let (addr, method) = (shared.addr.clone(), method.to_owned());
            RpcError::Answer { addr, method, source }
        })
    }
}

impl Shared {
    /// What a call is called in a trace: the protocol's short name, and the method.
    fn span_name(&self, method: &str) -> String {
        let protocol = self.protocol.rsplit('.').next().unwrap_or_default();
        format!("{protocol}/{method}")
    }

    /// Sends the frame of a call, and waits for its answer for as long as a call may take.
    fn answer<'a>(
        &'a self,
        method: &'a str,
        call_id: i32,
        frame: Bytes,
    ) -> Boxed<'a, Result<Bytes, RpcError>> {
        Box::pin(async move {
            let after = self.options.call_timeout;
            if let Ok(answer) = timeout(after, self.exchange(call_id, frame)).await {
                return answer;
            }
            // The server may be gone without a word: the next call tries another connection.
            self.connection.lock().await.open = None;
            let (addr, method) = (self.addr.clone(), method.to_owned());
            Err(RpcError::Timeout { addr, method, after })
        })
    }

    /// Sends a frame over the present connection, or a new one, and waits for its answer.
    async fn exchange(&self, call_id: i32, frame: Bytes) -> Result<Bytes, RpcError> {
        for _ in 0..CONNECTIONS {
            let connection = self.connected().await?;
            match connection.exchange(call_id, frame.clone()).await {
                Ok(body) => return Ok(body),
                Err(Failure::NotSent) => {}
                Err(Failure::Remote(exception)) => return Err(exception.into()),
                Err(Failure::Lost(reason)) => {
                    return Err(RpcError::Lost { addr: self.addr.clone(), reason });
                }
            }
        }
        let source = io::ErrorKind::ConnectionAborted.into();
        Err(RpcError::Connect { addr: self.addr.clone(), source })
    }

    /// The present connection, or a new one.
    async fn connected(&self) -> Result<Connection, RpcError> {
        let asked = Instant::now();
        let mut slot = self.connection.lock().await;
        if let Some(connection) = &slot.open
            && connection.is_open()
        {
            return Ok(connection.clone());
        }
        let failure = |source| RpcError::Connect { addr: self.addr.clone(), source };
        // Who waited for an attempt that failed has its outcome, and need not wait for another.
        if let Some((ended, kind, why)) = &slot.failed
            && *ended > asked
        {
            return Err(failure(io::Error::new(*kind, why.clone())));
        }
        let connection = self.open().await.map_err(|error| {
            slot.failed = Some((Instant::now(), error.kind(), error.to_string()));
            failure(error)
        })?;
        slot.open = Some(connection.clone());
        Ok(connection)
    }

    fn open(&self) -> impl Future<Output = io::Result<Connection>> {
        Connection::open(&self.addr, self.protocol, &self.user, self.client_id, &self.options)
    }
}

#[cfg(test)]
mod tests;
