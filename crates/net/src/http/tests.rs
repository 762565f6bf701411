use super::*;
use bytes::Bytes;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

/// A server of `handler`, where it is, and what keeps it.
async fn start(handler: impl Handler, limits: Limits) -> (SocketAddr, tokio::task::JoinSet<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let mut server = tokio::task::JoinSet::new();
    server.spawn(serve(listener, Arc::new(handler), limits, std::future::pending()));
    (addr, server)
}

fn echo(request: &Request) -> Answer {
    Response::ok("text/plain", format!("[{}]", request.path)).into()
}

/// What is answered until the connection ends.
async fn ask(addr: SocketAddr, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(addr).await.unwrap();
    stream.write_all(request).await.unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    String::from_utf8_lossy(&answer).into_owned()
}

fn body(answer: &str) -> &str {
    answer.split_once("\r\n\r\n").unwrap().1
}

#[test]
fn targets_are_split_and_decoded() {
    let target = "/j+%20x?qry=Hadoop:service%3DNameNode,name%3DX&a+b=";
    let request = Request::new(Method::GET, target).unwrap();
    assert_eq!(request.path, "/j+ x");
    assert_eq!(request.param("qry"), Some("Hadoop:service=NameNode,name=X"));
    assert_eq!(request.param("a b"), Some(""));
    for target in ["nothing", "", "/%zz", "/%ff", "/x?%e4=1", "/%4"] {
        assert_eq!(Request::new(Method::GET, target), None, "{target}");
    }
}

#[tokio::test]
async fn requests_are_answered_or_refused() {
    let (addr, _server) = start(Site::new(echo), Limits::default()).await;
    for (request, status) in [
        (&b"GET /x HTTP/1.1\r\nConnection: close\r\n\r\n"[..], 200),
        (b"HEAD /x HTTP/1.1\r\nConnection: close\r\n\r\n", 200),
        (b"GET /x HTTP/1.0\r\n\r\n", 200),
        (b"POST / HTTP/1.1\r\nConnection: close\r\n\r\n", 405),
        (b"GET nothing HTTP/1.1\r\n\r\n", 400),
        (b"GET /%zz HTTP/1.1\r\nConnection: close\r\n\r\n", 400),
        (b"GET /%ff HTTP/1.1\r\nConnection: close\r\n\r\n", 400),
        (b"GET / HTTP/1.1 more\r\n\r\n", 400),
        (b"\xff\xfe\r\n\r\n", 400),
    ] {
        let answer = ask(addr, request).await;
        let shown = String::from_utf8_lossy(request);
        let told = answer.get(..12).and_then(|start| start.strip_prefix("HTTP/1."));
        assert_eq!(told.map(|told| &told[2..]), Some(&*status.to_string()), "{shown}: {answer}");
        match status {
            200 if request.starts_with(b"HEAD") => {
                assert!(answer.ends_with("\r\n\r\n"), "{answer}")
            }
            200 => assert_eq!(body(&answer), "[/x]"),
            _ => {}
        }
    }
    let answer = ask(addr, &[&b"GET / HTTP/1.1\r\nx: "[..], &vec![b'a'; 1 << 20]].concat()).await;
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 431 "), "{answer}");
    let target = "a".repeat(100_000);
    let answer = ask(addr, format!("GET /{target} HTTP/1.1\r\n\r\n").as_bytes()).await;
    assert!(!answer.starts_with("HTTP/1.1 2"), "{answer}");
}

#[tokio::test]
async fn who_asks_what_may_be_asked_is_told_and_no_page_is_made() {
    let made = |request: &Request| -> Answer { panic!("{request:?}") };
    let (addr, _server) = start(Site::new(made), Limits::default()).await;
    let asks = b"OPTIONS /fsck?path=/ HTTP/1.1\r\nConnection: close\r\n\r\n";
    let answer = ask(addr, asks).await;
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    assert!(answer.contains("allow: GET, HEAD, "), "{answer}");
    assert_eq!(body(&answer), "");
}

#[tokio::test]
async fn a_connection_carries_requests_until_it_is_idle() {
    let limits = Limits { idle: Duration::from_millis(300), ..Limits::default() };
    let (addr, _server) = start(Site::new(echo), limits).await;
    let mut stream = TcpStream::connect(addr).await.unwrap();
    for path in ["/one", "/two"] {
        stream.write_all(format!("GET {path} HTTP/1.1\r\n\r\n").as_bytes()).await.unwrap();
        let mut seen = String::new();
        while !seen.ends_with(']') {
            let mut piece = [0; 1024];
            let read = stream.read(&mut piece).await.unwrap();
            assert!(read > 0, "{seen}");
            seen += &String::from_utf8_lossy(&piece[..read]);
        }
        assert_eq!(body(&seen), format!("[{path}]"));
    }
    let begun = Instant::now();
    let _ = stream.read_to_end(&mut Vec::new()).await;
    assert!(begun.elapsed() >= Duration::from_millis(200));
    // So for a head that never ends.
    assert!(!ask(addr, b"GET / HTTP/1.1\r\nHost").await.starts_with("HTTP/1.1 2"));
}

/// Tells how many bytes a body had, or that it did not end.
struct Count;

impl Handler for Count {
    fn answer(&self, _request: Request, mut body: Body) -> Boxed<'_, Answer> {
        Box::pin(async move {
            let mut len = 0;
            loop {
                match body.next().await {
                    Ok(Some(piece)) => len += piece.len(),
                    Ok(None) => return Response::ok("text/plain", len.to_string()).into(),
                    Err(error) => return Response::error(408, &error.to_string()).into(),
                }
            }
        })
    }
}

#[tokio::test]
async fn bodies_arrive_in_pieces_and_may_not_rest() {
    let limits = Limits { idle: Duration::from_millis(500), ..Limits::default() };
    let site = Site::new(echo).with("/count", Some(SharedHandler(Arc::new(Count))));
    let (addr, _server) = start(site, limits).await;
    let long = vec![b'x'; 3 << 20];
    let head = format!(
        "PUT /count HTTP/1.1\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
        long.len()
    );
    assert_eq!(body(&ask(addr, &[head.as_bytes(), &long].concat()).await), long.len().to_string());
    let chunked =
        b"PUT /count/x HTTP/1.1\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n\
        3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";
    assert_eq!(body(&ask(addr, chunked).await), "5");
    assert_eq!(body(&ask(addr, b"GET /counter HTTP/1.0\r\n\r\n").await), "[/counter]");
    let unfinished = b"PUT /count HTTP/1.1\r\nContent-Length: 10\r\n\r\nabc";
    assert!(ask(addr, unfinished).await.starts_with("HTTP/1.1 408 "));
}

#[tokio::test]
async fn a_connection_whose_body_nobody_reads_is_said_to_be_closed() {
    let (addr, _server) = start(Site::new(echo), Limits::default()).await;
    let head = "PUT /x HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc";
    assert!(ask(addr, head.as_bytes()).await.contains("\r\nconnection: close\r\n"));
}

/// Sends without an end.
struct Endless;

impl Handler for Endless {
    fn answer(&self, _request: Request, _body: Body) -> Boxed<'_, Answer> {
        let (sender, body) = mpsc::channel(1);
        tokio::spawn(
            async move { while sender.send(Bytes::from(vec![0; 1 << 16])).await.is_ok() {} },
        );
        Box::pin(async { Answer::Streamed(Streamed::new("text/plain", body)) })
    }
}

#[tokio::test]
async fn who_does_not_read_is_not_served_for_ever() {
    let limits =
        Limits { idle: Duration::from_millis(300), max_connections: 1, ..Limits::default() };
    let (addr, _server) = start(Endless, limits).await;
    let mut deaf = TcpStream::connect(addr).await.unwrap();
    deaf.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
    let mut next = TcpStream::connect(addr).await.unwrap();
    next.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
    next.read_exact(&mut [0; 8]).await.unwrap();
}

#[tokio::test]
async fn a_streamed_answer_ends_well_or_is_seen_to_be_cut_short() {
    let pages = |request: &Request| {
        let (sender, body) = mpsc::channel(4);
        let pieces: &[&'static [u8]] = match request.path.as_str() {
            "/whole" | "/long" => &[b"one\n", b"two\n", b""],
            _ => &[b"one\n"],
        };
        for piece in pieces {
            sender.try_send(Bytes::from_static(piece)).unwrap();
        }
        let len = (request.path == "/long").then_some(8);
        Answer::Streamed(Streamed { len, ..Streamed::new("text/plain", body) })
    };
    let (addr, _server) = start(Site::new(pages), Limits::default()).await;
    for (request, seen) in [
        (
            &b"GET /whole HTTP/1.1\r\nConnection: close\r\n\r\n"[..],
            "4\r\none\n\r\n4\r\ntwo\n\r\n0\r\n\r\n",
        ),
        (b"GET /whole HTTP/1.0\r\n\r\n", "one\ntwo\n"),
        (b"GET /long HTTP/1.1\r\nConnection: close\r\n\r\n", "one\ntwo\n"),
    ] {
        assert_eq!(body(&ask(addr, request).await), seen, "{}", String::from_utf8_lossy(request));
    }
    let cut = ask(addr, b"GET /cut HTTP/1.1\r\n\r\n").await;
    assert!(!cut.ends_with("0\r\n\r\n"), "{cut}");
}

#[tokio::test]
async fn streams_leave_room_for_pages_and_end_with_their_client() {
    let (begun, mut senders) = mpsc::unbounded_channel();
    let pages = move |request: &Request| match request.path.as_str() {
        "/stream" => {
            let (sender, body) = mpsc::channel(4);
            begun.send(sender).unwrap();
            Answer::Streamed(Streamed::new("text/plain", body))
        }
        _ => Response::ok("text/plain", "page".into()).into(),
    };
    let (addr, _server) = start(Site::new(pages), Limits::default()).await;
    let ask = async |path: &str| {
        let mut stream = TcpStream::connect(addr).await.unwrap();
        stream.write_all(format!("GET {path} HTTP/1.1\r\n\r\n").as_bytes()).await.unwrap();
        let mut status = [0; 12];
        stream.read_exact(&mut status).await.unwrap();
        (stream, String::from_utf8_lossy(&status[9..]).into_owned())
    };
    let mut clients = Vec::new();
    let mut running = Vec::new();
    for _ in 0..MAX_STREAMS {
        let (client, status) = ask("/stream").await;
        assert_eq!(status, "200");
        clients.push(client);
        running.push(senders.recv().await.unwrap());
    }
    for _ in 0..2 * MAX_STREAMS {
        assert_eq!(ask("/stream").await.1, "503");
        assert_eq!(ask("/page").await.1, "200");
    }
    // Whoever makes the answer learns that nobody wants it, though there is nothing to send.
    clients.clear();
    for sender in running {
        sender.closed().await;
    }
    while ask("/stream").await.1 != "200" {}
}
