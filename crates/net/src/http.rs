//! A small HTTP/1.1 server for pages that people and monitors poll.
//!
//! GET and HEAD only, one request per connection, limits on head length, time and connections. What
//! the pages say the roles know; an answer that takes long to make is sent as it is made ([`Streamed`]).

use std::fmt::Write as _;
use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc};
use tokio::time::timeout;

/// Longest request line and headers, bytes.
const MAX_HEAD_LEN: usize = 16 * 1024;
/// Connections served at a time; more wait in the listen queue.
const MAX_CONNECTIONS: usize = 64;
/// How many of them may have answers that are made while they are sent: those can take hours, and what monitors ask for
/// is to be answered beside them.
const MAX_STREAMS: usize = 16;
/// Time for a whole request, for a whole answer, and for each piece of a streamed one.
const IO_TIMEOUT: Duration = Duration::from_secs(10);

/// A request that passed the limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Path, percent-decoded, starting with `/`.
    pub path: String,
    /// Query parameters in order, percent-decoded.
    pub query: Vec<(String, String)>,
    /// Who asks.
    pub peer: Option<IpAddr>,
    /// Whether the body of the answer is wanted (GET, not HEAD).
    pub wants_body: bool,
}

impl Request {
    /// The first value of query parameter `name`.
    pub fn param(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// HTTP status code.
    pub status: u16,
    /// Media type with charset.
    pub content_type: &'static str,
    /// The whole body.
    pub body: Vec<u8>,
}

impl Response {
    /// A page of the given type.
    pub fn ok(content_type: &'static str, body: String) -> Response {
        Response { status: 200, content_type, body: body.into_bytes() }
    }

    /// A short text with an error code.
    pub fn error(status: u16, text: &str) -> Response {
        let body = format!("{text}\n").into_bytes();
        Response { status, content_type: "text/plain; charset=utf-8", body }
    }
}

/// An answer whose body is made while it is sent: it ends well when its maker sends an empty piece, and
/// is seen to be cut short when the sender is dropped without.
#[derive(Debug)]
pub struct Streamed {
    /// Media type with charset.
    pub content_type: &'static str,
    /// The body in pieces.
    pub body: mpsc::Receiver<Bytes>,
}

/// What a page answers with.
#[derive(Debug)]
pub enum Answer {
    /// All at once.
    Whole(Response),
    /// Piece by piece.
    Streamed(Streamed),
}

impl From<Response> for Answer {
    fn from(response: Response) -> Answer {
        Answer::Whole(response)
    }
}

/// Serves `pages` on `listener` until `shutdown` resolves; connections then in work are dropped.
pub async fn serve<P>(listener: TcpListener, pages: P, shutdown: impl Future<Output = ()>)
where
    P: Fn(&Request) -> Answer + Send + Sync + 'static,
{
    let pages = Arc::new(pages);
    let permits = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let streams = Arc::new(Semaphore::new(MAX_STREAMS));
    let mut connections = tokio::task::JoinSet::new();
    tokio::pin!(shutdown);
    loop {
        let next = async {
            let permit = Arc::clone(&permits).acquire_owned().await;
            (permit, listener.accept().await)
        };
        let (permit, accepted) = tokio::select! {
            () = &mut shutdown => return,
            next = next => next,
        };
        while connections.try_join_next().is_some() {}
        match accepted {
            Ok((stream, peer)) => {
                let (pages, streams) = (Arc::clone(&pages), Arc::clone(&streams));
                connections.spawn(async move {
                    if let Err(error) = exchange(stream, peer.ip(), &*pages, &streams).await {
                        tracing::debug!(%peer, %error, "http connection ended");
                    }
                    drop(permit);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "http accept failed");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

async fn exchange(
    mut stream: TcpStream,
    peer: IpAddr,
    pages: &(impl Fn(&Request) -> Answer + Sync),
    streams: &Semaphore,
) -> io::Result<()> {
    let head = timeout(IO_TIMEOUT, read_head(&mut stream)).await??;
    let (answer, with_body) = match parse_head(&head) {
        Ok(mut request) => {
            request.peer = Some(peer);
            (pages(&request), request.wants_body)
        }
        Err(refusal) => (refusal.into(), true),
    };
    match answer {
        Answer::Whole(response) => {
            timeout(IO_TIMEOUT, write_response(&mut stream, &response, with_body)).await?
        }
        Answer::Streamed(streamed) => {
            let Ok(_permit) = streams.try_acquire() else {
                let busy = Response::error(503, "too many answers of this kind are being sent");
                drop(streamed);
                return timeout(IO_TIMEOUT, write_response(&mut stream, &busy, with_body)).await?;
            };
            // Before HTTP/1.1 the end of the connection ends the body.
            let line = head.split(|byte| *byte == b'\r').next().unwrap_or_default();
            let chunked = !line.ends_with(b" HTTP/1.0");
            write_streamed(&mut stream, streamed, chunked).await
        }
    }
}

/// Sends pieces as they come. A body that ends without its empty piece is left without its last chunk.
async fn write_streamed(
    stream: &mut TcpStream,
    mut streamed: Streamed,
    chunked: bool,
) -> io::Result<()> {
    let encoding = if chunked { "Transfer-Encoding: chunked\r\n" } else { "" };
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: {}\r\n{encoding}Cache-Control: no-cache\r\n\
         X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n",
        streamed.content_type,
    );
    timeout(IO_TIMEOUT, stream.write_all(head.as_bytes())).await??;
    let (mut from_peer, mut to_peer) = stream.split();
    loop {
        let piece = tokio::select! {
            piece = streamed.body.recv() => piece,
            error = gone(&mut from_peer) => return Err(error),
        };
        let Some(piece) = piece else {
            return Err(io::Error::other("the answer was cut short"));
        };
        let frame = match chunked {
            true => [format!("{:x}\r\n", piece.len()).as_bytes(), &piece, b"\r\n"].concat(),
            false => piece.to_vec(),
        };
        timeout(IO_TIMEOUT, to_peer.write_all(&frame)).await??;
        if piece.is_empty() {
            return to_peer.shutdown().await;
        }
    }
}

/// Waits until the peer has closed the connection. What it still says is not looked at.
async fn gone(from_peer: &mut (impl AsyncRead + Unpin)) -> io::Error {
    let mut ignored = [0; 1024];
    loop {
        match from_peer.read(&mut ignored).await {
            Ok(0) => return io::ErrorKind::UnexpectedEof.into(),
            Ok(_) => {}
            Err(error) => return error,
        }
    }
}

/// Reads up to and with the blank line. Bytes after it (a body) are not looked at.
async fn read_head(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut head = Vec::with_capacity(1024);
    loop {
        let start = head.len().saturating_sub(3);
        if stream.read_buf(&mut head).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if let Some(at) = head[start..].windows(4).position(|window| window == b"\r\n\r\n") {
            head.truncate(start + at);
            return Ok(head);
        }
        if head.len() > MAX_HEAD_LEN {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "request head is too long"));
        }
    }
}

fn parse_head(head: &[u8]) -> Result<Request, Response> {
    let bad = || Response::error(400, "bad request");
    let line = head.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let line = std::str::from_utf8(line).map_err(|_| bad())?;
    let mut words = line.split(' ');
    let (method, target, version) = (words.next(), words.next(), words.next());
    if !version.is_some_and(|version| version.starts_with("HTTP/1.")) || words.next().is_some() {
        return Err(bad());
    }
    let wants_body = match method {
        Some("GET") => true,
        Some("HEAD") => false,
        _ => return Err(Response::error(405, "only GET and HEAD are served")),
    };
    let target = target.filter(|target| target.starts_with('/')).ok_or_else(bad)?;
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let path = percent_decode(path, false).ok_or_else(bad)?;
    let pairs = query.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        Some((percent_decode(key, true)?, percent_decode(value, true)?))
    });
    let query = pairs.collect::<Option<Vec<_>>>().ok_or_else(bad)?;
    Ok(Request { path, query, peer: None, wants_body })
}

fn percent_decode(text: &str, plus_is_space: bool) -> Option<String> {
    let mut bytes = text.bytes();
    let mut out = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        out.push(match byte {
            b'%' => {
                let high = char::from(bytes.next()?).to_digit(16)?;
                let low = char::from(bytes.next()?).to_digit(16)?;
                (high * 16 + low) as u8
            }
            b'+' if plus_is_space => b' ',
            other => other,
        });
    }
    String::from_utf8(out).ok()
}

async fn write_response(
    stream: &mut TcpStream,
    response: &Response,
    with_body: bool,
) -> io::Result<()> {
    let reason = match response.status {
        200 => "OK",
        400 => "Bad Request",
        404 => "Not Found",
        405 => "Method Not Allowed",
        503 => "Service Unavailable",
        _ => "Status",
    };
    let mut head = String::new();
    let _ = write!(
        head,
        "HTTP/1.1 {} {reason}\r\nContent-Type: {}\r\nContent-Length: {}\r\n\
         Cache-Control: no-cache\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n",
        response.status,
        response.content_type,
        response.body.len(),
    );
    stream.write_all(head.as_bytes()).await?;
    if with_body {
        stream.write_all(&response.body).await?;
    }
    stream.shutdown().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_split_and_decoded() {
        let request =
            parse_head(b"GET /jmx?qry=Hadoop:service%3DNameNode,name%3DX&a+b= HTTP/1.1\r\nHost: x")
                .unwrap();
        assert!(request.wants_body);
        assert_eq!(request.path, "/jmx");
        assert_eq!(request.param("qry"), Some("Hadoop:service=NameNode,name=X"));
        assert_eq!(request.param("a b"), Some(""));
    }

    #[test]
    fn bad_heads_are_refused() {
        for (head, status) in [
            (&b"POST / HTTP/1.1"[..], 405),
            (b"GET nothing HTTP/1.1", 400),
            (b"GET /", 400),
            (b"GET /%zz HTTP/1.1", 400),
            (b"GET /%ff HTTP/1.1", 400),
            (b"GET / HTTP/1.1 more", 400),
            (b"\xff\xfe", 400),
        ] {
            let refusal = parse_head(head).unwrap_err();
            assert_eq!(refusal.status, status, "{}", String::from_utf8_lossy(head));
        }
    }

    #[tokio::test]
    async fn a_page_is_served_and_an_endless_head_is_cut() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let pages =
            |request: &Request| Response::ok("text/plain", format!("[{}]", request.path)).into();
        let server = tokio::spawn(serve(listener, pages, std::future::pending()));

        let mut stream = TcpStream::connect(addr).await.unwrap();
        stream.write_all(b"GET /x HTTP/1.1\r\n\r\n").await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("[/x]"), "{answer}");

        let mut stream = TcpStream::connect(addr).await.unwrap();
        let _ = stream.write_all(&vec![b'a'; 4 * MAX_HEAD_LEN]).await;
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        assert!(answer.is_empty());
        server.abort();
    }

    #[tokio::test]
    async fn a_streamed_answer_ends_well_or_is_seen_to_be_cut_short() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let pages = |request: &Request| {
            let (sender, body) = mpsc::channel(4);
            let pieces: &[&'static [u8]] = match request.path.as_str() {
                "/whole" => &[b"one\n", b"two\n", b""],
                _ => &[b"one\n"],
            };
            for piece in pieces {
                sender.try_send(Bytes::from_static(piece)).unwrap();
            }
            Answer::Streamed(Streamed { content_type: "text/plain", body })
        };
        let server = tokio::spawn(serve(listener, pages, std::future::pending()));
        for (request, body) in [
            (&b"GET /whole HTTP/1.1\r\n\r\n"[..], "4\r\none\n\r\n4\r\ntwo\n\r\n0\r\n\r\n"),
            (b"GET /whole HTTP/1.0\r\n\r\n", "one\ntwo\n"),
            (b"GET /cut HTTP/1.1\r\n\r\n", "4\r\none\n\r\n"),
        ] {
            let mut stream = TcpStream::connect(addr).await.unwrap();
            stream.write_all(request).await.unwrap();
            let mut answer = String::new();
            let _ = stream.read_to_string(&mut answer).await;
            let (_, seen) = answer.split_once("\r\n\r\n").unwrap();
            assert_eq!(seen, body, "{}", String::from_utf8_lossy(request));
        }
        server.abort();
    }

    #[tokio::test]
    async fn streams_leave_room_for_pages_and_end_with_their_client() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let (begun, mut senders) = mpsc::unbounded_channel();
        let pages = move |request: &Request| match request.path.as_str() {
            "/stream" => {
                let (sender, body) = mpsc::channel(4);
                begun.send(sender).unwrap();
                Answer::Streamed(Streamed { content_type: "text/plain", body })
            }
            _ => Response::ok("text/plain", "page".into()).into(),
        };
        let server = tokio::spawn(serve(listener, pages, std::future::pending()));
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
        for _ in 0..MAX_CONNECTIONS {
            assert_eq!(ask("/stream").await.1, "503");
            assert_eq!(ask("/page").await.1, "200");
        }
        // Whoever makes the answer learns that nobody wants it, though there is nothing to send.
        clients.clear();
        for sender in running {
            sender.closed().await;
        }
        while ask("/stream").await.1 != "200" {}
        server.abort();
    }
}
