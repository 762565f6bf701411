//! One connection from preamble to end.
//!
//! ```text
//! preamble -> [SASL until the client is known or told to be SIMPLE] -> connection context -> calls and pings
//! ```
//! Whatever does not fit is answered as Hadoop answers it, then the connection is closed.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use bytes::Bytes;
use cairn_security::SaslError;
use cairn_security::digest_md5::NONCE_LEN;
use cairn_security::gssapi;
use cairn_security::sasl::Layer;
use cairn_security::server::{self, Authority, Offers, ServerHandshake, Step};
use cairn_trace::Span;
use cairn_wire::exception::class;
use cairn_wire::proto::common::{
    IpcConnectionContextProto, RequestHeaderProto, RpcKindProto, RpcRequestHeaderProto,
    RpcRequestHeaderProtoOperationProto as Operation,
    RpcResponseHeaderProtoRpcErrorCodeProto as Code, RpcSaslProto, RpcSaslProtoSaslState,
};
use cairn_wire::rpc::{self, AuthProtocol, Preamble, Request, UsualCall};
use cairn_wire::{RemoteException, WireError};
use prost::Message;
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedReadHalf;
use tracing::debug;

use super::call::{Call, CallerContext, Name, StateId, UserInfo};
use super::caller::{Caller, Identity};
use super::memory::{SHORT, Share};
use super::metrics::{Begun, OTHER_ROW, RpcMetrics, Watch};
use super::respond::{Outbox, Responder, ended, write_answers};
use super::service::{Service, Shared, State};
use super::who;
use crate::channel::{Channel, Side};
use crate::frame::{FrameError, FrameReader};
use cairn_process::disk_work::{movable, quick, step_aside};

/// Methods that a connection knows by their bytes: clients call few in turn.
const KNOWN_METHODS: usize = 8;
/// Longest header that it knows them by: those of real methods are far shorter.
const KNOWN_HEADER_MAX: usize = 512;
/// Calls that come together and are begun before answers are written and others have their turn.
const CALLS_IN_TURN: usize = 32;
/// How long a refused peer may go on sending before the socket is closed under it.
const LINGER: Duration = Duration::from_millis(500);
/// What an HTTP client gets. Source: Hadoop 3.5.0 `Server#RECEIVED_HTTP_REQ_RESPONSE`.
const HTTP_ANSWER: &str = "HTTP/1.1 404 Not Found\r\nContent-type: text/plain\r\n\r\n\
    It looks like you are making an HTTP request to a Hadoop IPC port. \
    This is not the correct port for the web interface on this daemon.\r\n";

/// Why a connection was closed by this side.
#[derive(Debug, thiserror::Error)]
pub(super) enum ConnectionError {
    #[error("{0}")]
    Socket(#[from] io::Error),
    #[error("{0}")]
    Frame(#[from] FrameError),
    #[error("{0}")]
    Refused(RemoteException),
    #[error("not Hadoop RPC version 9: {0:?}")]
    Preamble(Preamble),
    #[error("an HTTP request on the RPC port")]
    Http,
}

/// Serves one connection to its end.
pub(super) async fn serve<S: Service>(
    stream: TcpStream,
    peer: SocketAddr,
    shared: Arc<Shared<S>>,
) -> Result<(), ConnectionError> {
    stream.set_nodelay(true)?;
    let (source, sink) = stream.into_split();
    let outbox =
        Arc::new(Outbox::new(shared.options.max_in_flight, Arc::clone(&shared.metrics), peer));
    let write_timeout = shared.options.write_timeout;
    let mut connection = Connection {
        reader: FrameReader::new(Channel::new(source)),
        peer,
        outbox: Arc::clone(&outbox),
        shared,
        sasl: None,
        named: None,
        identity: None,
        opening: None,
        context: None,
        methods: Methods::default(),
        watch: Watch::default(),
    };
    let writer = write_answers(&outbox, sink, write_timeout);
    tokio::pin!(writer);
    let ended = tokio::select! {
        // What the reader has answered is written right behind it.
        biased;
        ended = connection.read() => ended,
        // The outbox is open, so only a failed write ends it.
        written = &mut writer => return Ok(written?),
    };
    let Connection { mut reader, .. } = connection;
    outbox.close();
    // Calls that still run are answered before the socket is closed.
    writer.await?;
    if ended.is_err() {
        reader.drain(LINGER).await;
    }
    ended
}

/// What a connection's context has told, before it is known whether the user may.
struct Opening {
    user: UserInfo,
    protocol: Option<String>,
    retry_count: i32,
}

/// A word of a handshake that names a token.
struct Named {
    identifier: Vec<u8>,
    message: RpcSaslProto,
    retry_count: i32,
}

/// Who a connection speaks for, once it may.
struct Context {
    user: Arc<UserInfo>,
    protocol: Arc<str>,
}

struct Connection<S> {
    reader: FrameReader<Channel<OwnedReadHalf>>,
    peer: SocketAddr,
    outbox: Arc<Outbox>,
    shared: Arc<Shared<S>>,
    /// The client asked for SASL, and is neither known nor switched to SIMPLE yet.
    sasl: Option<ServerHandshake>,
    /// A word of it that names a token, until that can be judged.
    named: Option<Named>,
    /// Who the client has shown to be.
    identity: Option<server::Identity>,
    /// Until it is judged.
    opening: Option<Opening>,
    context: Option<Context>,
    methods: Methods,
    watch: Watch,
}

/// Which method of which protocol is called.
#[derive(Clone)]
struct Method {
    protocol: Name,
    name: Name,
    version: u64,
    /// Where its calls are counted.
    row: usize,
}

impl Method {
    fn of(header: RequestHeaderProto, metrics: &RpcMetrics) -> Method {
        Method {
            row: metrics.row(&header.declaring_class_protocol_name, &header.method_name),
            protocol: header.declaring_class_protocol_name.into(),
            name: header.method_name.into(),
            version: header.client_protocol_version,
        }
    }
}

/// Second headers of the last calls as they came, and as they are decoded.
#[derive(Default)]
struct Methods(Vec<(Bytes, Method)>);

impl Methods {
    /// What a header says.
    fn read(&mut self, header: &Bytes, metrics: &RpcMetrics) -> Option<Method> {
        if let Some((_, method)) = self.0.iter().find(|(known, _)| known == header) {
            return Some(method.clone());
        }
        let method = Method::of(RequestHeaderProto::decode(&header[..]).ok()?, metrics);
        if header.len() <= KNOWN_HEADER_MAX {
            if self.0.len() == KNOWN_METHODS {
                self.0.remove(0);
            }
            // A copy, so as not to keep the frame.
            self.0.push((Bytes::copy_from_slice(header), method.clone()));
        }
        Some(method)
    }
}

impl<S: Service> Connection<S> {
    /// Reads until the peer closes, the server drains, or something is wrong.
    async fn read(&mut self) -> Result<(), ConnectionError> {
        if !self.read_preamble().await? {
            return Ok(());
        }
        let mut stopped = self.shared.stopped.clone();
        let draining = async move {
            // The sender's end is a stop as well.
            let _ = stopped.wait_for(|state| *state == State::Draining).await;
        };
        tokio::pin!(draining);
        let mut in_turn = 0;
        loop {
            if in_turn == CALLS_IN_TURN {
                in_turn = 0;
                step_aside().await;
                self.watch.waited();
            }
            if self.outbox.has_room().await {
                self.watch.waited();
            }
            if self.shared.memory.is_full() {
                tokio::select! {
                    biased;
                    () = &mut draining => return Ok(()),
                    () = self.shared.memory.has_room() => self.watch.waited(),
                }
            }
            // What has come with the frame before needs no wait.
            if self.context.is_some()
                && let Some(frame) =
                    self.reader.buffered_frame(self.shared.options.max_frame_len, SHORT)?
            {
                // The state changes once.
                if self.shared.stopped.has_changed().unwrap_or(true) {
                    return Ok(());
                }
                self.take_frame(frame, None)?;
                in_turn += 1;
                continue;
            }
            let frame = tokio::select! {
                biased;
                () = &mut draining => return Ok(()),
                frame = next_frame(&mut self.reader, &self.shared, self.context.is_some()) => frame,
            };
            self.shared.metrics.note_received(self.reader.take_received());
            self.watch.read();
            let (frame, memory) = match frame {
                Ok(Some(frame)) => frame,
                Ok(None) => return Ok(()),
                Err(FrameError::Io(error))
                    if error.kind() == io::ErrorKind::ConnectionReset
                        && !self.reader.is_within_frame() =>
                {
                    return Ok(());
                }
                Err(FrameError::Idle(_)) if !self.reader.is_within_frame() => {
                    if self.outbox.is_idle() {
                        debug!(peer = %self.peer, "closing idle RPC connection");
                        return Ok(());
                    }
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            self.take_frame(frame, memory)?;
            if let Some(named) = self.named.take() {
                self.shared.service.await_token(&named.identifier).await;
                let taken = self.go_on(named.message);
                taken.or_else(|error| self.refuse(rpc::CALL_ID_SASL, named.retry_count, error))?;
            }
            if let Some(opening) = self.opening.take() {
                self.open(opening).await?;
            }
        }
    }

    /// Reads and judges the preamble; false when the peer closed without one.
    ///
    /// Source: Hadoop 3.5.0 `Server.Connection#readAndProcess`.
    async fn read_preamble(&mut self) -> Result<bool, ConnectionError> {
        let idle = self.shared.options.idle_timeout;
        let Some(bytes) = self.reader.read_array(idle).await? else { return Ok(false) };
        let preamble = Preamble::decode(bytes);
        if preamble.magic == *b"GET " {
            self.send(HTTP_ANSWER.as_bytes().to_vec());
            return Err(ConnectionError::Http);
        }
        if preamble.magic != rpc::MAGIC || preamble.version != rpc::VERSION as i8 {
            self.send(rpc::version_mismatch_answer(preamble.version));
            return Err(ConnectionError::Preamble(preamble));
        }
        match AuthProtocol::from_byte(preamble.auth) {
            Some(AuthProtocol::Sasl) => self.sasl = Some(ServerHandshake::new(nonce()?)),
            Some(AuthProtocol::None) => {
                let authority = self.shared.service.authority();
                if authority
                    .is_some_and(|authority| matches!(authority.offers(), Offers::Secure { .. }))
                {
                    self.shared.metrics.note_unauthorized();
                    let message =
                        "SIMPLE authentication is not enabled.  Available:[TOKEN, KERBEROS]";
                    let code = Code::FatalUnauthorized;
                    let error = RemoteException::with_code(class::ACCESS_CONTROL, message, code);
                    return self.refuse(rpc::CALL_ID_UNAUTHORIZED, rpc::RETRY_COUNT_NONE, error);
                }
            }
            None => {
                let message = format!("Unknown auth protocol:{}", preamble.auth as i8);
                let error =
                    RemoteException::with_code(class::IPC, message, Code::FatalUnauthorized);
                return self.refuse(rpc::CALL_ID_UNAUTHORIZED, rpc::RETRY_COUNT_NONE, error);
            }
        }
        Ok(true)
    }

    /// Decodes one frame and starts what it asks for.
    ///
    /// Source: Hadoop 3.5.0 `Server.Connection#processOneRpc`.
    fn take_frame(&mut self, frame: Bytes, memory: Option<Share>) -> Result<(), ConnectionError> {
        if self.context.is_some()
            && let Some(usual) = UsualCall::read(&frame)
            && let Some(method) =
                self.methods.read(&frame.slice(usual.method.clone()), &self.shared.metrics)
        {
            let (call_id, retry_count) = (usual.call_id, usual.retry_count);
            let to = Caller {
                call_id,
                retry_count,
                client_id: Identity::Usual(usual.client_id),
                state: usual.state_id.map(StateId::new).map(Arc::new),
                span: None,
            };
            let taken = self.begin(to, method, (frame.slice(usual.body), memory), None);
            return taken.or_else(|error| self.refuse(call_id, retry_count, error));
        }
        let request = match Request::decode(frame) {
            Ok(request) => request,
            Err(error) => {
                let error = undecodable("RpcRequestHeaderProto", &error);
                return self.refuse(-1, rpc::RETRY_COUNT_NONE, error);
            }
        };
        let (call_id, retry_count) = (request.header.call_id, request.header.retry_count());
        let taken = match check_header(&request.header) {
            Err(error) => Err(error),
            Ok(()) if call_id < 0 => self.take_special(request),
            Ok(()) => self.take_call(request, memory),
        };
        taken.or_else(|error| self.refuse(call_id, retry_count, error))
    }

    /// A frame whose call id is one of the special ones.
    ///
    /// Source: Hadoop 3.5.0 `Server.Connection#processRpcOutOfBandRequest`.
    fn take_special(&mut self, request: Request) -> Result<(), RemoteException> {
        match request.header.call_id {
            rpc::CALL_ID_CONNECTION_CONTEXT if self.sasl.is_some() => {
                Err(invalid("Connection header sent during SASL negotiation"))
            }
            rpc::CALL_ID_CONNECTION_CONTEXT => {
                self.take_context(request.header.retry_count(), request.rest)
            }
            rpc::CALL_ID_SASL if self.sasl.is_none() => {
                Err(invalid("SASL protocol not requested by client"))
            }
            rpc::CALL_ID_SASL => self.take_sasl(request.header.retry_count(), request.rest),
            rpc::CALL_ID_PING => Ok(()),
            other => Err(invalid(format!("Unknown out of band call #{other}"))),
        }
    }

    /// Source: Hadoop 3.5.0 `Server.Connection#processConnectionContext`.
    fn take_context(&mut self, retry_count: i32, mut rest: Bytes) -> Result<(), RemoteException> {
        if self.context.is_some() {
            return Err(invalid("Connection context already processed"));
        }
        let what = "IpcConnectionContextProto";
        let context: IpcConnectionContextProto =
            rpc::take_delimited(&mut rest, what).map_err(|error| undecodable(what, &error))?;
        let authority = self.shared.service.authority();
        let shown = self.identity.as_ref().zip(authority);
        let user = who::user(shown, context.user_info.unwrap_or_default())?;
        self.opening = Some(Opening { user, protocol: context.protocol, retry_count });
        Ok(())
    }

    /// Lets a user in, or not.
    ///
    /// Source: Hadoop 3.5.0 `Server.Connection#authorizeConnection`.
    async fn open(&mut self, opening: Opening) -> Result<(), ConnectionError> {
        let Opening { user, protocol, retry_count } = opening;
        let service = &self.shared.service;
        if let Err(error) = service.authorize(&user, protocol.as_deref(), self.peer).await {
            self.shared.metrics.note_unauthorized();
            let error = RemoteException { code: Code::FatalUnauthorized, ..error };
            return self.refuse(rpc::CALL_ID_CONNECTION_CONTEXT, retry_count, error);
        }
        self.shared.metrics.note_authorized();
        let protocol = protocol.unwrap_or_default().into();
        self.context = Some(Context { user: Arc::new(user), protocol });
        Ok(())
    }

    /// Source: Hadoop 3.5.0 `Server.Connection#saslReadAndProcess`.
    fn take_sasl(&mut self, retry_count: i32, mut rest: Bytes) -> Result<(), RemoteException> {
        let what = "RpcSaslProto";
        let message: RpcSaslProto =
            rpc::take_delimited(&mut rest, what).map_err(|error| undecodable(what, &error))?;
        if message.state() == RpcSaslProtoSaslState::Wrap {
            let (message, code) = ("Server is not wrapping data", Code::FatalInvalidRpcHeader);
            return Err(RemoteException::with_code(class::SASL, message, code));
        }
        let names = self.sasl.as_ref().and_then(|handshake| handshake.token_named(&message));
        match names {
            Some(identifier) => {
                self.named = Some(Named { identifier, message, retry_count });
                Ok(())
            }
            None => self.go_on(message),
        }
    }

    /// Has the handshake take a word.
    fn go_on(&mut self, message: RpcSaslProto) -> Result<(), RemoteException> {
        let Some(handshake) = &mut self.sasl else { return Ok(()) };
        let authority = self.shared.service.authority().unwrap_or(&Believing);
        // The Kerberos library and what knows of tokens look into files.
        match quick(|| handshake.take(message, authority))? {
            Step::Reply(reply) => self.send_sasl(&reply),
            Step::Simple(reply) => {
                self.sasl = None;
                reply.iter().for_each(|reply| self.send_sasl(reply));
            }
            Step::Done(reply, identity, layer) => {
                debug!(peer = %self.peer, ?identity, "an RPC client has shown who it is");
                (self.sasl, self.identity) = (None, Some(identity));
                self.send_sasl(&reply);
                if let Some(Layer { seal, open }) = layer {
                    self.outbox.enclose(seal);
                    self.reader.enclose(open, Side::Server, self.shared.options.max_frame_len);
                }
            }
        }
        Ok(())
    }

    fn send_sasl(&self, message: &RpcSaslProto) {
        let header = rpc::success_header(rpc::CALL_ID_SASL, rpc::RETRY_COUNT_NONE, &[]);
        self.send(rpc::encode_frame(&header, Some(message)));
    }

    /// Source: Hadoop 3.5.0 `Server.Connection#processRpcRequest`.
    fn take_call(
        &mut self,
        mut request: Request,
        memory: Option<Share>,
    ) -> Result<(), RemoteException> {
        if self.context.is_none() {
            return Err(invalid("Connection context not established"));
        }
        match request.header.rpc_kind() {
            RpcKindProto::RpcProtocolBuffer => {}
            RpcKindProto::RpcBuiltin => {
                return Err(invalid("Unknown rpc kind in rpc headerRPC_BUILTIN"));
            }
            RpcKindProto::RpcWritable => {
                return Err(invalid("Unknown rpc kind in rpc headerRPC_WRITABLE"));
            }
        }
        let mut header = std::mem::take(&mut request.header);
        let (call_id, retry_count) = (header.call_id, header.retry_count());
        let client_id = Identity::from(std::mem::take(&mut header.client_id));
        let state = header.state_id.map(StateId::new).map(Arc::new);
        let mut to = Caller { call_id, retry_count, client_id, state, span: None };
        let (method, body) = match request.split_call() {
            Ok(split) => split,
            Err(error) => {
                let class = class::INVALID_PROTOCOL_BUFFER;
                let error = RemoteException::new(class, error.to_string());
                let begun = self.watch.begin(OTHER_ROW);
                self.answer(to, begun, Err(error));
                return Ok(());
            }
        };
        let traced = header.trace_info.and_then(|info| info.span_context);
        let name = || {
            let protocol = method.declaring_class_protocol_name.rsplit('.').next();
            format!("{}/{}", protocol.unwrap_or_default(), method.method_name)
        };
        to.span = Span::served(traced.as_deref(), name).map(Box::new);
        let method = Method::of(method, &self.shared.metrics);
        let caller_context = header.caller_context.map(|told| CallerContext {
            context: told.context,
            signature: told.signature.unwrap_or_default(),
        });
        self.begin(to, method, (body, memory), caller_context)
    }

    /// Begins a call, and answers it if that takes no wait. A long body has been counted already.
    fn begin(
        &mut self,
        to: Caller,
        method: Method,
        (body, memory): (Bytes, Option<Share>),
        caller_context: Option<CallerContext>,
    ) -> Result<(), RemoteException> {
        let Some(context) = &self.context else {
            return Err(invalid("Connection context not established"));
        };
        let call = Call {
            protocol: method.protocol,
            method: method.name,
            version: method.version,
            user: Arc::clone(&context.user),
            // Identities that are not 16 bytes long belong to clients without retries.
            client_id: <[u8; 16]>::try_from(&to.client_id[..]).unwrap_or_default(),
            call_id: to.call_id,
            retry_count: to.retry_count,
            peer: self.peer,
            body,
            connection_protocol: context.protocol.clone(),
            caller_context,
            carrier: "rpc",
            state: to.state.clone(),
        };
        let begun = self.watch.begin(method.row);
        let body_len = call.body.len();
        let service = Arc::clone(&self.shared.service);
        match std::panic::catch_unwind(AssertUnwindSafe(|| service.call_now(&call))) {
            Ok(Some(result)) => {
                self.answer(to, begun, result);
                return Ok(());
            }
            Ok(None) => {}
            Err(_) => {
                self.answer(to, begun, Err(ended()));
                return Ok(());
            }
        }
        let mut responder = Responder::new(Arc::clone(&self.outbox), to, begun);
        let mut call = Box::pin(async move { service.call(call).await });
        // Most calls wait for nothing: they need no task of their own.
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        let polled = AssertUnwindSafe(|| call.as_mut().poll(&mut context));
        match std::panic::catch_unwind(polled) {
            Ok(Poll::Pending) => {
                let memory = memory.unwrap_or_else(|| self.shared.memory.count(body_len));
                responder.goes_on(memory);
            }
            Ok(Poll::Ready(result)) => {
                responder.answer_here(result);
                return Ok(());
            }
            // The responder tells the caller.
            Err(_) => return Ok(()),
        }
        let mut stopped = self.shared.stopped.clone();
        tokio::spawn(movable(async move {
            tokio::select! {
                result = call => responder.answer(result),
                // Fails once the server's future is gone.
                _ = stopped.wait_for(|_| false) => {}
            }
        }));
        Ok(())
    }

    /// Answers a call that has ended just now.
    fn answer(&mut self, mut to: Caller, begun: Begun, result: Result<Vec<u8>, RemoteException>) {
        to.note_end(&result);
        self.watch.set(self.outbox.note_end(&to, begun, &result));
        self.outbox.answer(&to, result);
    }

    /// Queues `error` as the answer of a call; closes the connection when it is fatal.
    fn refuse<T: Default>(
        &self,
        call_id: i32,
        retry_count: i32,
        error: RemoteException,
    ) -> Result<T, ConnectionError> {
        let header = rpc::error_header(call_id, retry_count, &[], &error);
        self.send(rpc::encode_response(&header, None).unwrap_or_default());
        Err(ConnectionError::Refused(error))
    }

    fn send(&self, frame: Vec<u8>) {
        self.outbox.send(frame);
    }
}

/// The next frame, short until the connection has told its user, with the memory of one that is long.
async fn next_frame<S>(
    reader: &mut FrameReader<Channel<OwnedReadHalf>>,
    shared: &Shared<S>,
    has_context: bool,
) -> Result<Option<(Bytes, Option<Share>)>, FrameError> {
    let options = &shared.options;
    let limit = if has_context {
        options.max_frame_len
    } else {
        options.max_setup_frame_len.min(options.max_frame_len)
    };
    let idle = options.idle_timeout;
    let Some(total) = reader.begin_frame(limit, idle).await? else { return Ok(None) };
    if total <= SHORT {
        return Ok(Some((reader.end_frame(total, idle).await?, None)));
    }
    // Whoever only announces a long request takes nothing from others.
    reader.read_until(SHORT, idle).await?;
    let memory = shared.memory.take(total).await;
    let begun = Instant::now();
    while !reader.read_some(total, idle).await? {
        if begun.elapsed() > idle && shared.memory.is_wanted() {
            return Err(FrameError::Idle(idle));
        }
    }
    Ok(Some((reader.end_frame(total, idle).await?, Some(memory))))
}

/// Source: Hadoop 3.5.0 `Server.Connection#checkRpcHeaders`.
fn check_header(header: &RpcRequestHeaderProto) -> Result<(), RemoteException> {
    let unknown =
        |op| Err(invalid(format!("IPC Server does not implement rpc header operation{op}")));
    match header.rpc_op.and_then(|op| Operation::try_from(op).ok()) {
        None => return Err(invalid(" IPC Server: No rpc op in rpcRequestHeader")),
        Some(Operation::RpcFinalPacket) => {}
        Some(Operation::RpcContinuationPacket) => return unknown("RPC_CONTINUATION_PACKET"),
        Some(Operation::RpcCloseConnection) => return unknown("RPC_CLOSE_CONNECTION"),
    }
    match header.rpc_kind.and_then(|kind| RpcKindProto::try_from(kind).ok()) {
        None => Err(invalid(" IPC Server: No rpc kind in rpcRequestHeader")),
        Some(_) => Ok(()),
    }
}

/// Random bytes for one exchange.
fn nonce() -> io::Result<[u8; NONCE_LEN]> {
    let mut nonce = [0; NONCE_LEN];
    getrandom::fill(&mut nonce).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(nonce)
}

/// What a server knows that believes everybody.
struct Believing;

impl Authority for Believing {
    fn offers(&self) -> &Offers {
        &Offers::Simple
    }

    fn token(&self, _: &[u8]) -> Result<(server::Identity, Vec<u8>), RemoteException> {
        Err(RemoteException::new(class::INVALID_TOKEN, "There are no tokens"))
    }

    fn user_of(&self, principal: &str) -> Result<String, SaslError> {
        Ok(principal.to_owned())
    }

    fn accept(&self) -> Result<Box<dyn gssapi::Context>, SaslError> {
        Err(SaslError::new("There is no Kerberos"))
    }
}

fn invalid(message: impl Into<String>) -> RemoteException {
    RemoteException::with_code(class::RPC_FATAL_SERVER, message, Code::FatalInvalidRpcHeader)
}

fn undecodable(what: &str, error: &WireError) -> RemoteException {
    let message = format!("Error decoding {what}: {error}");
    RemoteException::with_code(class::RPC_FATAL_SERVER, message, Code::FatalDeserializingRequest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_methods_and_no_long_names_are_remembered() {
        let metrics = RpcMetrics::new([], &[]);
        let mut methods = Methods::default();
        let header = |name: String| {
            let protocol = "org.example.Echo".to_owned();
            let header = RequestHeaderProto {
                method_name: name,
                declaring_class_protocol_name: protocol,
                client_protocol_version: 1,
            };
            Bytes::from(header.encode_to_vec())
        };
        let mut read = |name: String| {
            let method = methods.read(&header(name.clone()), &metrics).expect("a header");
            assert_eq!(method.name.as_str(), name);
            methods.0.iter().map(|(header, _)| header.len()).sum::<usize>()
        };
        assert_eq!(read("x".repeat(1 << 20)), 0);
        let one = read("echo".to_owned());
        assert!(one > 0);
        assert_eq!(read("echo".to_owned()), one);
        assert_eq!(read("x".repeat(1 << 20)), one);
        for number in 10..50 {
            assert!(read(format!("ec{number}")) <= KNOWN_METHODS * one);
        }
    }
}
