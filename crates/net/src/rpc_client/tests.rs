//! The client against this crate's server, and against servers that fail in the middle.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};

use cairn_wire::exception::class;
use cairn_wire::proto::common::{
    IpcConnectionContextProto, RpcResponseHeaderProto,
    RpcResponseHeaderProtoRpcErrorCodeProto as Code,
};
use cairn_wire::proto::hdfs::GetFileInfoRequestProto;
use cairn_wire::rpc::{PREAMBLE_LEN, Preamble, Request};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::sleep;

use super::*;
use crate::rpc_server::{Call, RpcServer, RpcServerOptions, Service, respond};

const PROTOCOL: &str = "org.example.Echo";

/// Answers after as many milliseconds as the path says; counts what it answered.
struct Echo(Arc<AtomicUsize>);

impl Service for Echo {
    async fn call(&self, call: Call) -> Result<Vec<u8>, RemoteException> {
        let request: GetFileInfoRequestProto = call.decode()?;
        if call.method == "fail" {
            return Err(RemoteException::new(class::SAFE_MODE, "first\nsecond"));
        }
        sleep(Duration::from_millis(request.src.parse().unwrap_or_default())).await;
        self.0.fetch_add(1, Ordering::SeqCst);
        let src = format!("{} {} {}", call.user.effective, call.peer.port(), call.retry_count);
        respond(&GetFileInfoRequestProto { src })
    }
}

struct Server {
    addr: SocketAddr,
    answered: Arc<AtomicUsize>,
    task: tokio::task::JoinHandle<()>,
}

async fn start(addr: SocketAddr) -> Server {
    let server = RpcServer::bind(addr, RpcServerOptions::default()).await.expect("the port");
    let addr = server.local_addr();
    let answered = Arc::new(AtomicUsize::new(0));
    let service = Arc::new(Echo(answered.clone()));
    let task = tokio::spawn(server.serve(service, std::future::pending()));
    Server { addr, answered, task }
}

fn any_port() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

fn client(addr: SocketAddr, change: impl FnOnce(&mut RpcClientOptions)) -> RpcClient {
    let mut options = RpcClientOptions::default();
    change(&mut options);
    RpcClient::new(addr, PROTOCOL, "alice", options)
}

async fn echo(client: &RpcClient, millis: u32) -> Result<String, RpcError> {
    let request = GetFileInfoRequestProto { src: millis.to_string() };
    client.call("echo", &request).await.map(|answer: GetFileInfoRequestProto| answer.src)
}

#[tokio::test]
async fn calls_share_a_connection_and_overtake() {
    let server = start(any_port()).await;
    let client = client(server.addr, |_| {});
    let slow = echo(&client, 200);
    let quick = async {
        let port = echo(&client, 0).await.expect("an answer");
        (port, server.answered.load(Ordering::SeqCst))
    };
    let (slow, (quick, answered)) = tokio::join!(slow, quick);
    assert_eq!(answered, 1, "the slow call was not awaited");
    assert_eq!(slow.expect("an answer"), quick, "user, port and retry are the same");
    assert!(quick.starts_with("alice ") && quick.ends_with(" 0"), "{quick}");
}

#[tokio::test]
async fn many_calls_at_once() {
    let server = start(any_port()).await;
    let client = client(server.addr, |_| {});
    let calls: Vec<_> = (0..2000)
        .map(|index| {
            let client = client.clone();
            tokio::spawn(async move { echo(&client, index % 3).await })
        })
        .collect();
    for call in calls {
        call.await.expect("no panic").expect("an answer");
    }
    assert_eq!(server.answered.load(Ordering::SeqCst), 2000);
}

#[tokio::test]
async fn exceptions_arrive() {
    let server = start(any_port()).await;
    let client = client(server.addr, |_| {});
    let request = GetFileInfoRequestProto::default();
    let result: Result<GetFileInfoRequestProto, _> = client.call("fail", &request).await;
    let error = result.expect_err("an exception");
    assert!(error.is_remote(class::SAFE_MODE));
    let exception = error.remote().expect("an exception");
    assert_eq!((exception.first_line(), exception.code), ("first", Code::ErrorApplication));
    echo(&client, 0).await.expect("the connection goes on");
}

#[tokio::test]
async fn retries_are_counted() {
    let server = start(any_port()).await;
    let client = client(server.addr, |_| {});
    let number = CallNumber { retry_count: 3, ..client.new_call() };
    let request = GetFileInfoRequestProto::default();
    let answer: GetFileInfoRequestProto =
        client.call_numbered("echo", &request, number).await.expect("an answer");
    assert!(answer.src.ends_with(" 3"), "{}", answer.src);
    assert_ne!(client.new_call().call_id, client.new_call().call_id);
}

#[tokio::test]
async fn connects_again_after_a_restart() {
    let server = start(any_port()).await;
    let client = client(server.addr, |_| {});
    echo(&client, 0).await.expect("an answer");
    let due = echo(&client, 60_000);
    let stop = async {
        sleep(Duration::from_millis(50)).await;
        server.task.abort();
    };
    let (due, ()) = tokio::join!(due, stop);
    assert!(matches!(due, Err(RpcError::Lost { .. })), "{due:?}");
    // The port is free once the server's task is gone.
    let _ = server.task.await;
    let error = echo(&client, 0).await.expect_err("nobody listens");
    assert!(error.was_not_sent(), "{error}");
    start(server.addr).await;
    echo(&client, 0).await.expect("an answer of the new server");
}

#[tokio::test]
async fn a_call_without_an_answer_times_out_and_moves_on() {
    let server = start(any_port()).await;
    let client = client(server.addr, |options| options.call_timeout = Duration::from_secs(1));
    let first = echo(&client, 0).await.expect("an answer");
    let error = echo(&client, 60_000).await.expect_err("too slow");
    assert!(matches!(error, RpcError::Timeout { .. }), "{error}");
    assert_ne!(echo(&client, 0).await.expect("an answer"), first, "another connection");
}

#[tokio::test]
async fn idle_connections_end_and_are_replaced() {
    let server = start(any_port()).await;
    let client = client(server.addr, |options| options.idle_timeout = Duration::from_millis(50));
    let first = echo(&client, 0).await.expect("an answer");
    sleep(Duration::from_millis(300)).await;
    assert_ne!(echo(&client, 0).await.expect("an answer"), first);
    // A connection with a call that takes longer than that is not idle.
    echo(&client, 200).await.expect("an answer");
}

/// Accepts one connection and reads the preamble and the context.
async fn accept(listener: &TcpListener) -> (TcpStream, IpcConnectionContextProto) {
    let (mut stream, _) = listener.accept().await.expect("a client");
    let mut preamble = [0; PREAMBLE_LEN];
    stream.read_exact(&mut preamble).await.expect("a preamble");
    assert_eq!(Preamble::decode(preamble), Preamble::simple());
    let mut request = frame(&mut stream).await;
    assert_eq!(request.header.call_id, rpc::CALL_ID_CONNECTION_CONTEXT);
    (stream, rpc::take_delimited(&mut request.rest, "context").expect("a context"))
}

async fn frame(stream: &mut TcpStream) -> Request {
    let len = stream.read_u32().await.expect("a frame");
    let mut frame = vec![0; len as usize];
    stream.read_exact(&mut frame).await.expect("a whole frame");
    Request::decode(frame.into()).expect("a header")
}

#[tokio::test]
async fn the_server_sees_context_calls_and_pings() {
    let listener = TcpListener::bind(any_port()).await.expect("a port");
    let addr = listener.local_addr().expect("an address");
    let client = client(addr, |options| options.ping_interval = Duration::from_millis(50));
    let serve = async {
        let (mut stream, context) = accept(&listener).await;
        assert_eq!(context.protocol(), PROTOCOL);
        let user = context.user_info.expect("a user");
        assert_eq!((user.effective_user(), user.real_user.as_deref()), ("alice", None));
        let call = frame(&mut stream).await;
        assert_eq!(call.header.client_id, client.client_id());
        let ping = frame(&mut stream).await;
        assert_eq!(ping.header.call_id, rpc::CALL_ID_PING);
        assert!(ping.rest.is_empty());
        let header = rpc::success_header(call.header.call_id, 0, &[]);
        let answer = GetFileInfoRequestProto { src: "late".into() };
        stream.write_all(&rpc::encode_frame(&header, Some(&answer))).await.expect("a reader");
    };
    let (answer, ()) = tokio::join!(echo(&client, 0), serve);
    assert_eq!(answer.expect("an answer"), "late");
}

#[tokio::test]
async fn a_server_that_closes_at_once_is_given_up() {
    let listener = TcpListener::bind(any_port()).await.expect("a port");
    let addr = listener.local_addr().expect("an address");
    let client = client(addr, |_| {});
    let serve = async {
        loop {
            drop(listener.accept().await.expect("a client"));
        }
    };
    // The race between the call and the end decides how it is told.
    tokio::select! {
        result = echo(&client, 0) => assert!(
            matches!(result, Err(RpcError::Connect { .. } | RpcError::Lost { .. })),
            "{result:?}"
        ),
        () = serve => {}
    }
}

/// A server that answers the first call with `bytes` and closes.
async fn check_bad(bytes: Vec<u8>, expected: &str) {
    let listener = TcpListener::bind(any_port()).await.expect("a port");
    let addr = listener.local_addr().expect("an address");
    let client = client(addr, |options| options.max_response_len = 1 << 20);
    let serve = async {
        let (mut stream, _) = accept(&listener).await;
        frame(&mut stream).await;
        stream.write_all(&bytes).await.expect("a reader");
    };
    let (answer, ()) = tokio::join!(echo(&client, 0), serve);
    let error = answer.expect_err("a bad server").to_string();
    assert_eq!(error.replace(&addr.to_string(), "SERVER"), expected);
}

#[tokio::test]
async fn bad_servers() {
    check_bad(Vec::new(), "lost the connection to SERVER: closed by the server").await;
    check_bad(vec![0, 0], "lost the connection to SERVER: unexpected end of file").await;
    check_bad(
        vec![0x7f, 0, 0, 0],
        "lost the connection to SERVER: rpc frame: length 2130706432 is outside 0..=1048576",
    )
    .await;
    check_bad(
        vec![0, 0, 0, 2, 9, 9],
        "lost the connection to SERVER: RpcResponseHeaderProto: length 9 is outside 0..=1",
    )
    .await;
    let header = rpc::success_header(0, 0, &[]);
    let empty = rpc::encode_frame(&header, None::<&RpcResponseHeaderProto>);
    check_bad(
        empty,
        "cannot decode the answer of SERVER to echo: response message: needs 1 bytes, has 0",
    )
    .await;
    let stranger = rpc::success_header(0, 0, &[1; 16]);
    let answer = rpc::encode_response(&stranger, Some(&[]));
    check_bad(
        answer.expect("short enough"),
        "lost the connection to SERVER: an answer for another client",
    )
    .await;
    // A server that wants Kerberos.
    let error = RemoteException::with_code(
        class::ACCESS_CONTROL,
        "SIMPLE authentication is not enabled.",
        Code::FatalUnauthorized,
    );
    let refused = rpc::encode_response(&rpc::error_header(-1, -1, &[], &error), None);
    check_bad(
        refused.expect("short enough"),
        "org.apache.hadoop.security.AccessControlException: SIMPLE authentication is not enabled.",
    )
    .await;
}

/// A port at which connections are neither taken nor refused, as at a host that is gone.
async fn nowhere() -> (SocketAddr, Vec<TcpStream>, TcpListener) {
    let socket = tokio::net::TcpSocket::new_v4().expect("a socket");
    socket.bind(any_port()).expect("a port");
    let listener = socket.listen(1).expect("a listener");
    let addr = listener.local_addr().expect("its port");
    let mut waiting = Vec::new();
    while let Ok(stream) = timeout(Duration::from_millis(300), TcpStream::connect(addr)).await {
        waiting.push(stream.expect("a place in the queue"));
    }
    (addr, waiting, listener)
}

#[tokio::test]
async fn calls_that_wait_for_one_attempt_to_connect_fail_with_it() {
    const CALLS: u32 = 10;
    let connect_timeout = Duration::from_secs(3);
    let (addr, _waiting, _listener) = nowhere().await;
    let client = client(addr, |options| options.connect_timeout = connect_timeout);
    let start = std::time::Instant::now();
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..CALLS {
        let client = client.clone();
        calls.spawn(async move { echo(&client, 0).await });
    }
    while let Some(call) = calls.join_next().await {
        let error = call.expect("no panic").expect_err("nobody is there");
        assert!(error.was_not_sent(), "{error}");
    }
    assert!(start.elapsed() < connect_timeout * CALLS * 2 / 3, "{:?}", start.elapsed());
}
