//! The server against clients that keep to the protocol, and against those that do not.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use bytes::Bytes;
use cairn_wire::exception::class;
use cairn_wire::proto::common::{
    IpcConnectionContextProto, RequestHeaderProto, RpcKindProto, RpcRequestHeaderProto,
    RpcResponseHeaderProto, RpcResponseHeaderProtoRpcErrorCodeProto as Code,
    RpcResponseHeaderProtoRpcStatusProto as Status, RpcSaslProto, RpcSaslProtoSaslAuth,
    RpcSaslProtoSaslState as SaslState, UserInformationProto,
};
use cairn_wire::proto::hdfs::{GetFileInfoRequestProto, RenameResponseProto};
use cairn_wire::rpc::{self, Preamble};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::{Notify, oneshot};

use super::*;
use cairn_wire::RemoteException;

mod memory;
mod metrics;

const PROTOCOL: &str = "org.example.Echo";
const METHODS: &[&str] = &["echo", "now", "wait", "fail", "panic", "big"];

/// Methods: `echo` answers its user and path; `now` the same without a wait, and panics if asked; `wait` waits for
/// `release`; `fail`, `panic`, `big`. The user `late` is refused after `release`.
#[derive(Default)]
struct Echo {
    release: Notify,
    running: AtomicUsize,
    finished: AtomicUsize,
}

impl Service for Echo {
    async fn call(&self, call: Call) -> Result<Vec<u8>, RemoteException> {
        call.check_protocol(&[(PROTOCOL, 1)])?;
        let request: GetFileInfoRequestProto = call.decode()?;
        match call.method.as_str() {
            "echo" => {
                let real = call.user.real.as_deref().unwrap_or("-");
                let src = format!("{}/{real}{}", call.user.effective, request.src);
                respond(&GetFileInfoRequestProto { src })
            }
            "wait" => {
                self.running.fetch_add(1, Ordering::SeqCst);
                self.release.notified().await;
                self.finished.fetch_add(1, Ordering::SeqCst);
                respond(&RenameResponseProto { result: true })
            }
            "fail" => Err(RemoteException::new(class::FILE_NOT_FOUND, request.src)),
            "panic" => panic!("a bug in a service"),
            "big" => Ok(vec![0; 3 << 20]),
            _ => Err(call.unknown_method()),
        }
    }

    fn call_now(&self, call: &Call) -> Option<Result<Vec<u8>, RemoteException>> {
        if call.method != "now" {
            return None;
        }
        let request = call.decode::<GetFileInfoRequestProto>();
        assert!(!request.as_ref().is_ok_and(|request| request.src == "/panic"));
        Some(request.and_then(|request| respond(&request)))
    }

    async fn authorize(
        &self,
        user: &UserInfo,
        protocol: Option<&str>,
        peer: SocketAddr,
    ) -> Result<(), RemoteException> {
        if user.effective == "late" {
            self.release.notified().await;
            let message = format!("not for {}", protocol.unwrap_or("nothing"));
            return Err(RemoteException::new(class::AUTHORIZATION, message));
        }
        match user.real.as_deref() {
            Some("proxy") if peer.ip().is_loopback() => Ok(()),
            _ => user.refuse_impersonation(),
        }
    }
}

struct Server {
    addr: SocketAddr,
    service: Arc<Echo>,
    metrics: Arc<RpcMetrics>,
    stop: oneshot::Sender<()>,
    ended: tokio::task::JoinHandle<()>,
}

async fn start(options: RpcServerOptions) -> Server {
    start_counting(options, Arc::new(RpcMetrics::new([(PROTOCOL, METHODS)], &[]))).await
}

async fn start_counting(options: RpcServerOptions, metrics: Arc<RpcMetrics>) -> Server {
    let addr = SocketAddr::from(([127, 0, 0, 1], 0));
    let server = RpcServer::bind(addr, options).await.expect("a free port");
    let addr = server.local_addr();
    let service = Arc::new(Echo::default());
    let server = server.counting_in(metrics.clone());
    let (stop, stopped) = oneshot::channel();
    let served = service.clone();
    let ended = tokio::spawn(server.serve(served, async move {
        let _ = stopped.await;
    }));
    Server { addr, service, metrics, stop, ended }
}

/// A client that sends what it is told to.
struct Raw(TcpStream);

impl Raw {
    async fn connect(server: &Server) -> Raw {
        Raw(TcpStream::connect(server.addr).await.expect("a connection"))
    }

    async fn send(&mut self, bytes: &[u8]) {
        self.0.write_all(bytes).await.expect("the server reads");
    }

    /// Sends a correct preamble and context.
    async fn hello(server: &Server) -> Raw {
        let mut raw = Raw::connect(server).await;
        raw.send(&hello("alice", None)).await;
        raw
    }

    async fn answer(&mut self) -> (RpcResponseHeaderProto, Bytes) {
        let answer = async {
            let len = self.0.read_u32().await.expect("an answer");
            let mut frame = vec![0; len as usize];
            self.0.read_exact(&mut frame).await.expect("a whole answer");
            let mut frame = Bytes::from(frame);
            let header = rpc::take_delimited(&mut frame, "header").expect("a header");
            (header, frame)
        };
        timeout(Duration::from_secs(10), answer).await.expect("an answer in time")
    }

    /// Everything up to the end of the connection.
    async fn rest(&mut self) -> Vec<u8> {
        let mut rest = Vec::new();
        let end = self.0.read_to_end(&mut rest);
        let end = timeout(Duration::from_secs(10), end).await.expect("the server closes");
        // A reset is an end as well.
        let _ = end;
        rest
    }
}

fn hello(effective: &str, real: Option<&str>) -> Vec<u8> {
    [Preamble::simple().encode().to_vec(), context(effective, real)].concat()
}

fn context(effective: &str, real: Option<&str>) -> Vec<u8> {
    let user = UserInformationProto {
        effective_user: Some(effective.into()),
        real_user: real.map(String::from),
    };
    let context =
        IpcConnectionContextProto { user_info: Some(user), protocol: Some(PROTOCOL.into()) };
    rpc::encode_frame(&header(rpc::CALL_ID_CONNECTION_CONTEXT), Some(&context))
}

fn header(call_id: i32) -> RpcRequestHeaderProto {
    rpc::request_header(call_id, 0, &[7; 16])
}

fn call(call_id: i32, method: &str, src: &str) -> Vec<u8> {
    call_of(header(call_id), PROTOCOL, 1, method, src)
}

fn call_of(
    header: RpcRequestHeaderProto,
    protocol: &str,
    version: u64,
    method: &str,
    src: &str,
) -> Vec<u8> {
    let method = RequestHeaderProto {
        method_name: method.into(),
        declaring_class_protocol_name: protocol.into(),
        client_protocol_version: version,
    };
    rpc::encode_request(&header, &method, &GetFileInfoRequestProto { src: src.into() })
}

fn sasl(state: SaslState, auths: usize) -> Vec<u8> {
    let auth = RpcSaslProtoSaslAuth { method: "TOKEN".into(), ..Default::default() };
    let message =
        RpcSaslProto { state: state as i32, auths: vec![auth; auths], ..Default::default() };
    rpc::encode_frame(&header(rpc::CALL_ID_SASL), Some(&message))
}

/// The server still answers a new client.
async fn assert_lives(server: &Server) {
    let mut raw = Raw::hello(server).await;
    raw.send(&call(1, "echo", "/alive")).await;
    assert_eq!(echoed(raw.answer().await), "alice/-/alive");
}

fn echoed((header, mut body): (RpcResponseHeaderProto, Bytes)) -> String {
    assert_eq!(header.status(), Status::Success, "{header:?}");
    let echo: GetFileInfoRequestProto = rpc::take_delimited(&mut body, "echo").expect("a message");
    assert!(body.is_empty());
    echo.src
}

#[tokio::test]
async fn calls_carry_user_and_identity() {
    let server = start(RpcServerOptions::default()).await;
    let mut raw = Raw::connect(&server).await;
    raw.send(&hello("bob", Some("proxy"))).await;
    raw.send(&call(9, "echo", "/x")).await;
    let (header, body) = raw.answer().await;
    assert_eq!((header.call_id, header.retry_count()), (9, 0));
    assert_eq!(header.client_id(), [7; 16]);
    assert_eq!(header.server_ipc_version_num(), 9);
    assert_eq!(echoed((header, body)), "bob/proxy/x");
}

#[tokio::test]
async fn bytes_may_come_one_by_one() {
    let server = start(RpcServerOptions::default()).await;
    let mut raw = Raw::connect(&server).await;
    for byte in [hello("alice", None), call(1, "echo", "/slow")].concat() {
        raw.send(&[byte]).await;
    }
    assert_eq!(echoed(raw.answer().await), "alice/-/slow");
}

#[tokio::test]
async fn calls_that_come_together_are_all_answered() {
    let server = start(RpcServerOptions { max_in_flight: 3, ..RpcServerOptions::default() }).await;
    let mut raw = Raw::hello(&server).await;
    // More than may be under way, some longer than what is copied, and the last in two pieces.
    let paths: Vec<String> = (0..9).map(|n| format!("/{}", "x".repeat(n * 300))).collect();
    let mut bytes = call(99, "now", "/panic");
    for (id, path) in (0..).zip(&paths) {
        bytes.extend(call(id, if id % 2 == 0 { "now" } else { "echo" }, path));
    }
    let (first, last) = bytes.split_at(bytes.len() - 7);
    raw.send(first).await;
    let (header, _) = raw.answer().await;
    assert_eq!((header.call_id, header.exception_class_name()), (99, class::RPC_SERVER));
    for (id, path) in (0..).zip(&paths) {
        if id as usize == paths.len() - 1 {
            raw.send(last).await;
        }
        let answer = raw.answer().await;
        assert_eq!(answer.0.call_id, id);
        assert!(echoed(answer).ends_with(path.as_str()));
    }
}

#[tokio::test]
async fn answers_come_as_calls_finish() {
    let server = start(RpcServerOptions::default()).await;
    let mut raw = Raw::hello(&server).await;
    raw.send(&[call(1, "wait", ""), call(2, "echo", "/2")].concat()).await;
    assert_eq!(raw.answer().await.0.call_id, 2);
    server.service.release.notify_one();
    assert_eq!(raw.answer().await.0.call_id, 1);
}

#[tokio::test]
async fn pings_are_not_answered() {
    let server = start(RpcServerOptions::default()).await;
    let mut raw = Raw::hello(&server).await;
    let ping = rpc::encode_frame(&header(rpc::CALL_ID_PING), None::<&RpcSaslProto>);
    raw.send(&[ping.clone(), ping, call(4, "echo", "")].concat()).await;
    assert_eq!(raw.answer().await.0.call_id, 4);
}

#[tokio::test]
async fn large_answers_arrive_whole() {
    let server = start(RpcServerOptions::default()).await;
    let mut raw = Raw::hello(&server).await;
    for id in 0..3 {
        raw.send(&call(id, "big", "")).await;
    }
    for _ in 0..3 {
        let (_, mut body) = raw.answer().await;
        let message = rpc::take_delimited_bytes(&mut body, "big").expect("a message");
        assert_eq!(message.len(), 3 << 20);
        assert!(body.is_empty());
    }
}

#[tokio::test]
async fn exceptions_of_calls_leave_the_connection() {
    let server = start(RpcServerOptions::default()).await;
    let mut raw = Raw::hello(&server).await;
    let mut id = 0;
    let mut check = async |frame: fn(i32) -> Vec<u8>, class: &str, message: &str, code: Code| {
        id += 1;
        raw.send(&frame(id)).await;
        let (header, body) = raw.answer().await;
        assert_eq!(header.call_id, id as u32);
        assert_eq!(header.status(), Status::Error);
        assert_eq!(header.exception_class_name(), class);
        assert_eq!(header.error_msg(), message);
        assert_eq!(header.error_detail(), code);
        assert!(body.is_empty());
    };
    check(
        |id| call(id, "fail", "File does not exist: /x"),
        class::FILE_NOT_FOUND,
        "File does not exist: /x",
        Code::ErrorApplication,
    )
    .await;
    check(
        |id| call(id, "nothing", ""),
        class::RPC_NO_SUCH_METHOD,
        "Unknown method nothing called on org.example.Echo protocol.",
        Code::ErrorNoSuchMethod,
    )
    .await;
    check(
        |id| call_of(header(id), "org.example.None", 1, "echo", ""),
        class::RPC_NO_SUCH_PROTOCOL,
        "Unknown protocol: org.example.None",
        Code::ErrorNoSuchProtocol,
    )
    .await;
    check(
        |id| call_of(header(id), PROTOCOL, 3, "echo", ""),
        class::RPC_VERSION_MISMATCH,
        "Protocol org.example.Echo version mismatch. (client = 3, server = 1)",
        Code::ErrorRpcVersionMismatch,
    )
    .await;
    check(
        |id| call(id, "panic", ""),
        class::RPC_SERVER,
        "The call ended without an answer",
        Code::ErrorRpcServer,
    )
    .await;
    // A request header that ends within its protocol's name.
    check(
        |id| {
            let header = header(id);
            let mut content = Vec::new();
            rpc::put_delimited(&header, &mut content);
            content.extend([5, 0x0a, 9, b'x', b'x', b'x']);
            [&(content.len() as u32).to_be_bytes(), &content[..]].concat()
        },
        class::INVALID_PROTOCOL_BUFFER,
        "RequestHeaderProto: failed to decode Protobuf message: \
         RequestHeaderProto.method_name: buffer underflow",
        Code::ErrorApplication,
    )
    .await;
    assert_lives(&server).await;
}

/// Sends frames after `start`, expects a FATAL answer and the end of the connection.
async fn check_fatal(
    server: &Server,
    start: &[u8],
    frame: &[u8],
    (call_id, class, message, code): (i32, &str, &str, Code),
) {
    let mut raw = Raw::connect(server).await;
    raw.send(start).await;
    raw.send(frame).await;
    let (header, _) = raw.answer().await;
    assert_eq!(header.call_id as i32, call_id, "{message}");
    assert_eq!(header.status(), Status::Fatal);
    assert_eq!(header.exception_class_name(), class);
    assert_eq!(header.error_msg(), message);
    assert_eq!(header.error_detail(), code);
    assert!(raw.rest().await.is_empty());
}

#[tokio::test]
async fn what_does_not_fit_is_fatal() {
    let server = start(RpcServerOptions::default()).await;
    let invalid =
        |call_id, message| (call_id, class::RPC_FATAL_SERVER, message, Code::FatalInvalidRpcHeader);
    let preamble = Preamble::simple().encode();
    let simple = hello("alice", None);
    check_fatal(
        &server,
        &preamble,
        &call(3, "echo", ""),
        invalid(3, "Connection context not established"),
    )
    .await;
    check_fatal(
        &server,
        &simple,
        &context("mallory", None),
        invalid(-3, "Connection context already processed"),
    )
    .await;
    check_fatal(
        &server,
        &simple,
        &rpc::encode_frame(&header(-7), None::<&RpcSaslProto>),
        invalid(-7, "Unknown out of band call #-7"),
    )
    .await;
    check_fatal(
        &server,
        &simple,
        &sasl(SaslState::Negotiate, 0),
        invalid(-33, "SASL protocol not requested by client"),
    )
    .await;
    let no_op = RpcRequestHeaderProto { rpc_op: None, ..header(1) };
    check_fatal(
        &server,
        &simple,
        &call_of(no_op, PROTOCOL, 1, "echo", ""),
        invalid(1, " IPC Server: No rpc op in rpcRequestHeader"),
    )
    .await;
    let continuation = RpcRequestHeaderProto { rpc_op: Some(1), ..header(1) };
    check_fatal(
        &server,
        &simple,
        &call_of(continuation, PROTOCOL, 1, "echo", ""),
        invalid(1, "IPC Server does not implement rpc header operationRPC_CONTINUATION_PACKET"),
    )
    .await;
    let no_kind = RpcRequestHeaderProto { rpc_kind: Some(77), ..header(1) };
    check_fatal(
        &server,
        &simple,
        &call_of(no_kind, PROTOCOL, 1, "echo", ""),
        invalid(1, " IPC Server: No rpc kind in rpcRequestHeader"),
    )
    .await;
    let writable =
        RpcRequestHeaderProto { rpc_kind: Some(RpcKindProto::RpcWritable as i32), ..header(1) };
    check_fatal(
        &server,
        &simple,
        &call_of(writable, PROTOCOL, 1, "echo", ""),
        invalid(1, "Unknown rpc kind in rpc headerRPC_WRITABLE"),
    )
    .await;
    check_fatal(
        &server,
        &preamble,
        &context("", None),
        (
            -3,
            class::ACCESS_CONTROL,
            "The connection context names no user",
            Code::FatalUnauthorized,
        ),
    )
    .await;
    check_fatal(
        &server,
        &preamble,
        &context("root", Some("mallory")),
        (
            -3,
            class::AUTHORIZATION,
            "User: mallory is not allowed to impersonate root",
            Code::FatalUnauthorized,
        ),
    )
    .await;
    check_fatal(
        &server,
        &simple,
        &[0, 0, 0, 2, 0x7f, 0],
        (
            -1,
            class::RPC_FATAL_SERVER,
            "Error decoding RpcRequestHeaderProto: RpcRequestHeaderProto: \
             length 127 is outside 0..=1",
            Code::FatalDeserializingRequest,
        ),
    )
    .await;
    let unknown_auth = Preamble { auth: 5, ..Preamble::simple() }.encode();
    check_fatal(
        &server,
        &unknown_auth,
        &[],
        (-1, class::IPC, "Unknown auth protocol:5", Code::FatalUnauthorized),
    )
    .await;
    assert_lives(&server).await;
}

#[tokio::test]
async fn no_call_is_begun_before_its_user_may() {
    let server = start(RpcServerOptions::default()).await;
    let without_protocol = IpcConnectionContextProto {
        user_info: Some(UserInformationProto {
            effective_user: Some("late".into()),
            real_user: None,
        }),
        protocol: None,
    };
    let without_protocol = [
        Preamble::simple().encode().to_vec(),
        rpc::encode_frame(&header(rpc::CALL_ID_CONNECTION_CONTEXT), Some(&without_protocol)),
    ];
    for (hello, protocol) in
        [(hello("late", None), PROTOCOL), (without_protocol.concat(), "nothing")]
    {
        let mut raw = Raw::connect(&server).await;
        raw.send(&[hello, call(1, "wait", "")].concat()).await;
        server.service.release.notify_one();
        let (header, _) = raw.answer().await;
        assert_eq!((header.call_id as i32, header.status()), (-3, Status::Fatal));
        assert_eq!(header.error_detail(), Code::FatalUnauthorized);
        assert_eq!(header.exception_class_name(), class::AUTHORIZATION);
        assert_eq!(header.error_msg(), format!("not for {protocol}"));
        assert!(raw.rest().await.is_empty());
    }
    assert_eq!(server.service.running.load(Ordering::SeqCst), 0);
    assert_eq!((server.metrics.authorized(), server.metrics.unauthorized()), (0, 2));
}

#[tokio::test]
async fn sasl_clients_are_switched_to_simple() {
    let server = start(RpcServerOptions::default()).await;
    let preamble = Preamble { auth: 0xdf, ..Preamble::simple() }.encode();
    for first in [sasl(SaslState::Negotiate, 0), sasl(SaslState::Initiate, 1)] {
        let mut raw = Raw::connect(&server).await;
        raw.send(&preamble).await;
        raw.send(&first).await;
        let (header, mut body) = raw.answer().await;
        assert_eq!((header.call_id as i32, header.status()), (-33, Status::Success));
        let answer: RpcSaslProto = rpc::take_delimited(&mut body, "sasl").expect("a message");
        assert_eq!(answer.state(), SaslState::Success);
        assert!(answer.auths.is_empty());
        raw.send(&[context("alice", None), call(0, "echo", "/s")].concat()).await;
        assert_eq!(echoed(raw.answer().await), "alice/-/s");
    }
    let failures = [
        (context("a", None), -3, class::RPC_FATAL_SERVER, Code::FatalInvalidRpcHeader),
        (sasl(SaslState::Initiate, 2), -33, class::SASL, Code::FatalUnauthorized),
        (sasl(SaslState::Wrap, 0), -33, class::SASL, Code::FatalInvalidRpcHeader),
        (sasl(SaslState::Response, 0), -33, class::SASL, Code::FatalUnauthorized),
        (sasl(SaslState::Challenge, 0), -33, class::SASL, Code::FatalUnauthorized),
        (sasl(SaslState::Success, 0), -33, class::SASL, Code::FatalUnauthorized),
    ];
    for (frame, call_id, class, code) in failures {
        let mut raw = Raw::connect(&server).await;
        raw.send(&[&preamble[..], &frame].concat()).await;
        let (header, _) = raw.answer().await;
        assert_eq!((header.call_id as i32, header.status()), (call_id, Status::Fatal));
        assert_eq!((header.exception_class_name(), header.error_detail()), (class, code));
        assert!(raw.rest().await.is_empty());
    }
}

#[tokio::test]
async fn other_protocols_are_told() {
    let server = start(RpcServerOptions::default()).await;
    let rest = async |bytes: &[u8]| {
        let mut raw = Raw::connect(&server).await;
        raw.send(bytes).await;
        raw.rest().await
    };
    let http = rest(b"GET /jmx HTTP/1.1\r\nHost: namenode\r\n\r\n").await;
    let http = String::from_utf8(http).expect("text");
    assert!(http.starts_with("HTTP/1.1 404 Not Found\r\nContent-type: text/plain\r\n\r\nIt looks"));
    assert!(http.ends_with("daemon.\r\n"));
    assert_eq!(rest(b"hrpc\x08\x00\x00").await, rpc::version_mismatch_answer(8));
    assert_eq!(rest(b"hrpc\x0a\x00\x00").await, rpc::version_mismatch_answer(10));
    assert_eq!(rest(b"SSH-2.0-OpenSSH").await, rpc::version_mismatch_answer(b'2' as i8));
    assert!(rest(b"\x16\x03\x01\x02\x00\x01\x00").await.is_empty(), "TLS is told nothing");
    assert_lives(&server).await;
}

#[tokio::test]
async fn lengths_outside_the_limit_close_without_an_answer() {
    let options = RpcServerOptions { max_frame_len: 1 << 20, ..RpcServerOptions::default() };
    let server = start(options).await;
    let preamble = Preamble::simple().encode().to_vec();
    for (start, len) in [
        (hello("alice", None), (1u32 << 20) + 1),
        (hello("alice", None), u32::MAX),
        (hello("alice", None), 1 << 31),
        (preamble, (64 << 10) + 1),
    ] {
        let mut raw = Raw::connect(&server).await;
        raw.send(&[&start[..], &len.to_be_bytes(), &[0; 100]].concat()).await;
        assert!(raw.rest().await.is_empty());
    }
    // A frame of exactly the limit is read to its end.
    let mut raw = Raw::hello(&server).await;
    let without = call(1, "echo", "").len() - 4;
    let path = "x".repeat((1 << 20) - without - 4);
    let frame = call(1, "echo", &path);
    assert_eq!(frame[..4], (1u32 << 20).to_be_bytes());
    raw.send(&frame).await;
    assert_eq!(echoed(raw.answer().await).len(), path.len() + "alice/-".len());
}

/// Address space of this process in bytes: memory counts as soon as it is asked for.
fn address_space() -> usize {
    let status = std::fs::read_to_string("/proc/self/statm").expect("Linux");
    let pages = status.split(' ').next().and_then(|pages| pages.parse::<usize>().ok());
    pages.expect("statm") * 4096
}

#[tokio::test]
async fn announced_lengths_cost_no_memory() {
    let server = start(RpcServerOptions::default()).await;
    let before = address_space();
    let mut held = Vec::new();
    for _ in 0..50 {
        let mut raw = Raw::hello(&server).await;
        raw.send(&[&(100u32 << 20).to_be_bytes()[..], &[1; 1000]].concat()).await;
        held.push(raw);
    }
    assert_lives(&server).await;
    // The tests beside this one may ask for some.
    let grown = address_space().saturating_sub(before);
    assert!(grown < 2 << 30, "50 announcements of 100 MiB took {grown} bytes");
}

#[tokio::test]
async fn random_bytes_cost_only_their_connection() {
    let server = start(RpcServerOptions::default()).await;
    let mut held = Raw::hello(&server).await;
    held.send(&call(1, "wait", "")).await;
    let mut state = 0x1234_5678_9abc_def1u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let starts = [Vec::new(), Preamble::simple().encode().to_vec(), hello("alice", None)];
    let valid = [context("alice", None), call(1, "echo", "/p"), sasl(SaslState::Negotiate, 1)];
    for round in 0..300 {
        let mut bytes = match round % 2 {
            0 => (0..random() % 200).map(|_| random() as u8).collect::<Vec<u8>>(),
            _ => {
                // A frame of right length and wrong content.
                let mut frame = valid[random() as usize % valid.len()].clone();
                for _ in 0..4 {
                    let at = 4 + random() as usize % (frame.len() - 4);
                    frame[at] = random() as u8;
                }
                frame
            }
        };
        bytes.splice(0..0, starts[random() as usize % starts.len()].iter().copied());
        let mut raw = Raw::connect(&server).await;
        // The server may close while this writes.
        let _ = raw.0.write_all(&bytes).await;
        let _ = raw.0.shutdown().await;
        raw.rest().await;
    }
    // The connection that was there before was not touched.
    server.service.release.notify_one();
    assert_eq!(held.answer().await.0.call_id, 1);
    assert_lives(&server).await;
}

#[tokio::test]
async fn a_busy_connection_is_not_read_further() {
    let options = RpcServerOptions { max_in_flight: 2, ..RpcServerOptions::default() };
    let server = start(options).await;
    let mut raw = Raw::hello(&server).await;
    let calls: Vec<u8> = (0..5).flat_map(|id| call(id, "wait", "")).collect();
    raw.send(&calls).await;
    while server.service.running.load(Ordering::SeqCst) < 2 {
        tokio::task::yield_now().await;
    }
    // Others are served meanwhile, and this one is not.
    assert_lives(&server).await;
    assert_eq!(server.service.running.load(Ordering::SeqCst), 2);
    for _ in 0..5 {
        server.service.release.notify_one();
        raw.answer().await;
    }
    assert_eq!(server.service.running.load(Ordering::SeqCst), 5);
}

#[tokio::test]
async fn a_connection_whose_answers_are_not_read_is_not_read_further() {
    const CALLS: i32 = 100;
    let server = start(RpcServerOptions::default()).await;
    let mut raw = Raw::hello(&server).await;
    let calls: Vec<u8> = (0..CALLS).flat_map(|id| call(id, "big", "")).collect();
    raw.send(&calls).await;
    let begun = || metrics::counted(&server.metrics, "big").0;
    while begun() == 0 {
        tokio::task::yield_now().await;
    }
    // The system takes some of the answers. Whoever waits too short sees too few, which is no failure.
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(begun() < 30, "{} answers of 3 MiB wait", begun());
    for _ in 0..CALLS {
        assert_eq!(raw.answer().await.0.status(), Status::Success);
    }
    assert_eq!(begun(), CALLS as u64);
}

#[tokio::test]
async fn one_answer_may_be_longer_than_what_may_wait() {
    let metrics = Arc::new(RpcMetrics::new([], &[]));
    let outbox = respond::Outbox::new(128, metrics, "127.0.0.1:1".parse().unwrap());
    let is_full = async || timeout(Duration::ZERO, outbox.has_room()).await.is_err();
    let answer = |len| {
        let client_id = caller::Identity::Usual([7; 16]);
        outbox.answer(
            &caller::Caller { call_id: 1, retry_count: 0, client_id, state: None, span: None },
            Ok(vec![0; len]),
        );
    };
    answer(1 << 20);
    assert!(!is_full().await);
    answer(20 << 20);
    assert!(is_full().await);
    // What is being written still waits.
    let (client, server) = tokio::io::duplex(1 << 20);
    let mut writer = Box::pin(respond::write_answers(&outbox, server, Duration::from_secs(60)));
    assert!(timeout(Duration::ZERO, &mut writer).await.is_err());
    assert!(is_full().await);
    let mut client = client.take(21 << 20);
    let mut read = Vec::new();
    tokio::select! {
        read = client.read_to_end(&mut read) => assert_eq!(read.expect("answers"), 21 << 20),
        _ = &mut writer => panic!("the outbox is open"),
    }
    let _ = timeout(Duration::ZERO, &mut writer).await;
    assert!(!is_full().await);
    answer(9 << 20);
    assert!(is_full().await);
}

#[tokio::test]
async fn calls_that_come_together_leave_others_their_turn() {
    const CALLS: i32 = 100;
    let server = start(RpcServerOptions::default()).await;
    let mut raw = Raw::hello(&server).await;
    let calls: Vec<u8> = (0..CALLS).flat_map(|id| call(id, "now", "")).collect();
    // They are read at once.
    assert!(calls.len() < 8 << 10);
    raw.send(&calls).await;
    let (mut seen, mut most) = (0, 0);
    while seen < CALLS as u64 {
        let begun = metrics::counted(&server.metrics, "now").0;
        most = most.max(begun - seen);
        seen = begun;
        tokio::task::yield_now().await;
    }
    assert!(most <= 64, "{most} calls in one turn");
}

#[tokio::test]
async fn idle_connections_are_closed_and_busy_ones_are_not() {
    let idle_timeout = Duration::from_millis(100);
    let server = start(RpcServerOptions { idle_timeout, ..RpcServerOptions::default() }).await;
    let mut busy = Raw::hello(&server).await;
    busy.send(&call(1, "wait", "")).await;
    let mut torn = Raw::hello(&server).await;
    torn.send(&[0, 0, 0, 9, 1]).await;
    let mut idle = Raw::hello(&server).await;
    let started = Instant::now();
    assert!(idle.rest().await.is_empty());
    assert!(torn.rest().await.is_empty());
    assert!(started.elapsed() >= idle_timeout);
    server.service.release.notify_one();
    assert_eq!(busy.answer().await.0.call_id, 1);
    assert!(busy.rest().await.is_empty());
}

#[tokio::test]
async fn connections_above_the_limit_are_closed_at_once() {
    let server =
        start(RpcServerOptions { max_connections: 1, ..RpcServerOptions::default() }).await;
    let mut first = Raw::hello(&server).await;
    first.send(&call(1, "echo", "")).await;
    first.answer().await;
    assert!(Raw::connect(&server).await.rest().await.is_empty());
    first.send(&call(2, "echo", "")).await;
    first.answer().await;
}

#[tokio::test]
async fn calls_outlive_their_connection() {
    let server = start(RpcServerOptions::default()).await;
    let mut raw = Raw::hello(&server).await;
    raw.send(&call(1, "wait", "")).await;
    while server.service.running.load(Ordering::SeqCst) < 1 {
        tokio::task::yield_now().await;
    }
    drop(raw);
    assert_lives(&server).await;
    server.service.release.notify_one();
    while server.service.finished.load(Ordering::SeqCst) < 1 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn shutdown_waits_for_running_calls() {
    let server = start(RpcServerOptions::default()).await;
    let mut raw = Raw::hello(&server).await;
    raw.send(&call(1, "wait", "")).await;
    while server.service.running.load(Ordering::SeqCst) < 1 {
        tokio::task::yield_now().await;
    }
    server.stop.send(()).expect("the server runs");
    assert!(!server.ended.is_finished());
    server.service.release.notify_one();
    assert_eq!(raw.answer().await.0.call_id, 1);
    assert!(raw.rest().await.is_empty());
    server.ended.await.expect("no panic");
    assert!(TcpStream::connect(server.addr).await.is_err());
}

#[tokio::test]
async fn dropping_the_server_drops_its_calls() {
    let server = start(RpcServerOptions::default()).await;
    let mut raw = Raw::hello(&server).await;
    raw.send(&call(1, "wait", "")).await;
    while server.service.running.load(Ordering::SeqCst) < 1 {
        tokio::task::yield_now().await;
    }
    server.ended.abort();
    raw.rest().await;
    let gone = async {
        // The last owner of the service is this test.
        while Arc::strong_count(&server.service) > 1 {
            tokio::task::yield_now().await;
        }
    };
    timeout(Duration::from_secs(10), gone).await.expect("the call is dropped");
    assert_eq!(server.service.finished.load(Ordering::SeqCst), 0);
}
