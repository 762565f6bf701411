//! Pages of servers, read line by line.

use crate::config::{self, Configuration, NameNodes};
use crate::output;
use anyhow::{Context, Result, bail};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use cairn_client::{DataNodeAddr, FileSystem, SharedCredentials};
use cairn_net::tls::TlsTrust;
use cairn_process::disk_work::may_wait;
use cairn_process::held::held;
use cairn_security::auth_cookie;
use socket2::TcpKeepalive;
use std::collections::HashMap;
use std::fmt::{self, Write as _};
use std::iter;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Longest head of an answer, and longest line of its body, bytes.
const LINE_MAX: u64 = 1 << 26;
/// How long connecting may take, and how long the first line of the answer.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);
const HEAD_TIMEOUT: Duration = Duration::from_secs(60);
/// How long one of several NameNodes may take to say whether it leads.
const LEADER_TIMEOUT: Duration = Duration::from_secs(2);
/// Bytes that are read ahead.
const BUFFER_LEN: usize = 1 << 20;

/// How the servers of a file system are asked for pages: by TLS or without, and what shows them who asks.
#[derive(Clone, Debug)]
pub struct Pages {
    credentials: Option<SharedCredentials>,
    /// Whom to trust, where they are asked by TLS.
    trust: Option<TlsTrust>,
    namenodes: NameNodes,
    /// By the address of a server, the cookie that it has given for a ticket.
    cookies: Arc<Mutex<HashMap<String, String>>>,
}

impl Pages {
    /// As the configuration says, by the user of a file system.
    pub fn of(conf: &Configuration, fs: &FileSystem) -> Result<Pages> {
        Ok(Pages {
            credentials: fs.config().http_credentials.clone(),
            trust: config::https::trust(conf)?,
            namenodes: config::client::namenodes(conf)?,
            cookies: Arc::default(),
        })
    }

    /// The active NameNode. It is asked by RPC where it has pages: whoever knows where that is need not know more. Where it
    /// does not tell, as Hadoop's, or by TLS, the configuration says it. Where nobody listens there it is another one: a member
    /// of a quorum that has the leader answer tells the port of that one.
    pub async fn of_namenode(&self, fs: &FileSystem) -> Result<PageServer> {
        let (active, all) = (fs.active_namenode(), &self.namenodes);
        let rpc = all.rpc.get(active).context("no NameNode is known to be active")?;
        let address = match self.trust {
            Some(_) => all.https.get(active).cloned(),
            None => match (fs.server_defaults().await?.http_port, rpc.rsplit_once(':')) {
                (Some(port), Some((host, _))) => Some(format!("{host}:{port}")),
                _ => all.http.get(active).cloned(),
            },
        };
        let address = address.context("no NameNode is known to have pages")?;
        let configured = if self.trust.is_some() { &all.https } else { &all.http };
        for candidate in iter::once(&address).chain(configured).filter(|_| all.rpc.len() > 1) {
            if let Ok(Ok(_)) = timeout(CONNECT_TIMEOUT, TcpStream::connect(candidate)).await {
                return Ok(self.server(candidate.clone()));
            }
        }
        Ok(self.server(address))
    }

    /// The one of several NameNodes that says that it leads; whoever [`Pages::of_namenode`] finds where none is known to.
    pub async fn of_leader(&self, fs: &FileSystem) -> Result<PageServer> {
        let all = &self.namenodes;
        let configured = if self.trust.is_some() { &all.https } else { &all.http };
        for candidate in configured.iter().filter(|_| all.rpc.len() > 1) {
            let server = self.server(candidate.clone());
            let asked = timeout(LEADER_TIMEOUT, get(&server, "/isActive", |_| ())).await;
            if matches!(asked, Ok(Ok(()))) {
                return Ok(server);
            }
        }
        self.of_namenode(fs).await
    }

    /// A DataNode.
    pub fn of_datanode(&self, addr: &DataNodeAddr) -> PageServer {
        // Tickets and certificates are of names.
        let needs_name = self.credentials.is_some() || self.trust.is_some();
        let host = if needs_name { &addr.host } else { &addr.ip };
        let port = if self.trust.is_some() { addr.info_secure_port } else { addr.info_port };
        self.server(format!("{host}:{port}"))
    }

    fn server(&self, address: String) -> PageServer {
        let (credentials, trust) = (self.credentials.clone(), self.trust.clone());
        PageServer { address, credentials, trust, cookies: Arc::clone(&self.cookies) }
    }
}

/// A server with pages, and what shows it who asks.
#[derive(Clone, Debug)]
pub struct PageServer {
    /// Its `host:port`.
    address: String,
    credentials: Option<SharedCredentials>,
    trust: Option<TlsTrust>,
    cookies: Arc<Mutex<HashMap<String, String>>>,
}

/// `https://host:port`, or without the `s`.
impl fmt::Display for PageServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.trust.is_some() { "https" } else { "http" };
        write!(f, "{scheme}://{}", self.address)
    }
}

/// An answer that is being read, from behind its head on.
pub type Incoming = BufReader<Box<dyn Connection>>;

/// A socket, or TLS on it.
pub trait Connection: AsyncRead + AsyncWrite + Send + Unpin {}

impl<C: AsyncRead + AsyncWrite + Send + Unpin> Connection for C {}

impl PageServer {
    /// One that believes who asks.
    #[cfg(test)]
    pub fn open_to_all(address: std::net::SocketAddr) -> PageServer {
        let (address, cookies) = (address.to_string(), Arc::default());
        PageServer { address, credentials: None, trust: None, cookies }
    }

    fn host(&self) -> &str {
        self.address.rsplit_once(':').map_or(self.address.as_str(), |(host, _)| host)
    }

    /// The header that shows a ticket, where one is to be shown. Source: RFC 4559.
    fn proof(&self) -> Result<String> {
        let Some(SharedCredentials(credentials)) = &self.credentials else {
            return Ok(String::new());
        };
        let shown = may_wait(|| match credentials.initiate("HTTP", self.host())? {
            Some(mut context) => context.step(&[]),
            None => Ok(None),
        });
        let line = |token| format!("Authorization: Negotiate {}\r\n", STANDARD.encode(token));
        Ok(shown?.map(line).unwrap_or_default())
    }

    /// Asks by the cookie that there is, or else, or if that will not do any more, by a ticket.
    async fn ask(&self, target: &str) -> Result<Incoming> {
        let cookie = held(&self.cookies).get(&self.address).cloned();
        if let Some(cookie) = cookie {
            match self.ask_with(target, &format!("Cookie: {cookie}\r\n")).await {
                Err(error) if error.downcast_ref::<Refused>().is_some_and(Refused::asks_proof) => {
                    held(&self.cookies).remove(&self.address);
                }
                answered => return answered,
            }
        }
        self.ask_with(target, &self.proof()?).await
    }

    async fn ask_with(&self, target: &str, header: &str) -> Result<Incoming> {
        let mut stream =
            self.connect().await.with_context(|| format!("cannot connect to {self}"))?;
        // The end of an HTTP/1.0 answer is the end of its connection.
        let host = &self.address;
        let head = format!("GET {target} HTTP/1.0\r\nHost: {host}\r\n{header}\r\n");
        stream.write_all(head.as_bytes()).await?;
        let mut reader = BufReader::with_capacity(BUFFER_LEN, stream);
        let cookie = read_head(&mut reader, HEAD_TIMEOUT).await?;
        if let Some(cookie) = cookie.filter(|_| self.credentials.is_some()) {
            held(&self.cookies).insert(self.address.clone(), cookie);
        }
        Ok(reader)
    }

    async fn connect(&self) -> Result<Box<dyn Connection>> {
        let stream = connect(&self.address).await?;
        let Some(trust) = &self.trust else { return Ok(Box::new(stream)) };
        Ok(Box::new(timeout(CONNECT_TIMEOUT, trust.connect(self.host(), stream)).await??))
    }
}

/// A server has answered with another status than 200.
#[derive(Debug)]
pub struct Refused {
    /// The status.
    pub code: u16,
    /// The line of the status and the first of the text.
    pub reason: String,
}

impl Refused {
    /// Whether a ticket is wanted.
    fn asks_proof(&self) -> bool {
        self.code == 401
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

impl std::error::Error for Refused {}

/// Gets a page and hands over its lines as they come.
pub async fn get(server: &PageServer, target: &str, line: impl FnMut(&str)) -> Result<()> {
    let reader = server.ask(target).await;
    let read = async { read_lines(reader?, line).await };
    read.await.with_context(|| format!("answer of {server}"))
}

/// Gets what a page has, byte by byte; the end of the bytes may be too early. An answer with another status is a
/// [`Refused`].
pub async fn bytes(server: &PageServer, target: &str) -> Result<Incoming> {
    server.ask(target).await
}

/// A value of a query, as Java's `URLEncoder` makes it.
pub fn encoded(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            b' ' => out.push('+'),
            _ if byte.is_ascii_alphanumeric() || b"*-._".contains(&byte) => out.push(byte.into()),
            _ => _ = write!(out, "%{byte:02X}"),
        }
    }
    out
}

/// A NameNode may be silent for as long as it finds nothing to say, but its host has to be there.
async fn connect(address: &str) -> std::io::Result<TcpStream> {
    let stream = timeout(CONNECT_TIMEOUT, TcpStream::connect(address)).await??;
    let (first, often) = (Duration::from_secs(30), Duration::from_secs(10));
    let keepalive = TcpKeepalive::new().with_time(first).with_interval(often).with_retries(3);
    socket2::SockRef::from(&stream).set_tcp_keepalive(&keepalive)?;
    Ok(stream)
}

async fn read_lines(
    mut reader: BufReader<impl AsyncRead + Unpin>,
    mut line: impl FnMut(&str),
) -> Result<()> {
    while let Some(text) = next_line(&mut reader).await? {
        line(&text);
    }
    Ok(())
}

/// The head comes before anything is looked for. Gives the cookie that it has for whoever has shown a ticket.
async fn read_head(
    reader: &mut BufReader<impl AsyncRead + Unpin>,
    patience: Duration,
) -> Result<Option<String>> {
    let status = timeout(patience, next_line(reader)).await??.unwrap_or_default();
    let mut cookie = None;
    while let Some(header) = next_line(reader).await?.filter(|header| !header.is_empty()) {
        cookie = cookie_of(&header).or(cookie);
    }
    let code = status.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or_default();
    if code != 200 {
        let text = next_line(reader).await?.unwrap_or_default();
        return Err(Refused { code, reason: format!("{status}: {text}") }.into());
    }
    Ok(cookie)
}

/// The `hadoop.auth=VALUE` that a header sets, if it sets one.
fn cookie_of(header: &str) -> Option<String> {
    let (name, value) = header.split_once(':')?;
    let cookie = value.split(';').next()?.trim();
    let value = cookie.strip_prefix(auth_cookie::NAME)?.strip_prefix('=')?;
    let is_set = name.eq_ignore_ascii_case("set-cookie") && !value.trim_matches('"').is_empty();
    is_set.then(|| cookie.to_owned())
}

async fn next_line(reader: &mut BufReader<impl AsyncRead + Unpin>) -> Result<Option<String>> {
    let mut bytes = Vec::new();
    let read = reader.take(LINE_MAX).read_until(b'\n', &mut bytes).await?;
    if read as u64 >= LINE_MAX {
        bail!("a line is longer than {}", output::size(LINE_MAX));
    }
    while bytes.last().is_some_and(|byte| b"\r\n".contains(byte)) {
        bytes.pop();
    }
    Ok((read > 0).then(|| String::from_utf8_lossy(&bytes).into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn answers_are_read_line_by_line() {
        let mut lines = Vec::new();
        let mut answer = BufReader::new(&b"HTTP/1.1 200 OK\r\nA: b\r\n\r\none\n\ntwo"[..]);
        assert_eq!(read_head(&mut answer, HEAD_TIMEOUT).await.unwrap(), None);
        read_lines(answer, |line| lines.push(line.to_string())).await.unwrap();
        assert_eq!(lines, ["one", "", "two"]);
        let mut refused = BufReader::new(&b"HTTP/1.1 403 Status\r\n\r\nnot allowed\n"[..]);
        let error = read_head(&mut refused, HEAD_TIMEOUT).await.unwrap_err().to_string();
        assert!(error.contains("403") && error.contains("not allowed"), "{error}");
    }

    #[tokio::test]
    async fn who_says_nothing_is_not_waited_for() {
        let (near, _far) = tokio::io::duplex(64);
        let told = read_head(&mut BufReader::new(near), Duration::from_millis(10)).await;
        assert!(told.unwrap_err().is::<tokio::time::error::Elapsed>());
    }

    #[test]
    fn cookies_of_tickets_are_found_among_headers() {
        for (header, found) in [
            (
                "Set-Cookie: hadoop.auth=\"u=a&s=x=\"; Path=/; HttpOnly",
                Some("hadoop.auth=\"u=a&s=x=\""),
            ),
            ("set-cookie:hadoop.auth=a", Some("hadoop.auth=a")),
            ("Set-Cookie: hadoop.auth=; Path=/", None),
            ("Set-Cookie: hadoop.auth=\"\"", None),
            ("Set-Cookie: hadoop.authority=a", None),
            ("Cookie: hadoop.auth=a", None),
            ("nothing", None),
        ] {
            assert_eq!(cookie_of(header).as_deref(), found, "{header}");
        }
    }

    #[tokio::test]
    async fn a_cookie_is_shown_until_it_will_not_do() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut server = PageServer::open_to_all(listener.local_addr().unwrap());
        server.credentials = Some(SharedCredentials(Arc::new(cairn_security::client::ShownToken(
            cairn_security::digest_md5::Secret { identifier: Vec::new(), password: Vec::new() },
        ))));
        let answers = ["200 OK\r\nSet-Cookie: hadoop.auth=one", "200 OK", "401 No", "200 OK"];
        let serve = async {
            let mut heads = Vec::new();
            for answer in answers {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut head = vec![0; 4096];
                let len = stream.read(&mut head).await.unwrap();
                heads.push(String::from_utf8(head[..len].to_vec()).unwrap());
                stream.write_all(format!("HTTP/1.1 {answer}\r\n\r\n").as_bytes()).await.unwrap();
            }
            heads
        };
        let ask = async {
            for _ in 0..3 {
                get(&server, "/", |_| ()).await.unwrap();
            }
        };
        let (heads, ()) = tokio::join!(serve, ask);
        let shows = |head: &String| head.contains("\r\nCookie: hadoop.auth=one\r\n");
        assert_eq!(heads.iter().map(shows).collect::<Vec<_>>(), [false, true, true, false]);
    }

    #[tokio::test]
    async fn a_host_that_is_gone_is_noticed() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let stream = connect(&address).await.unwrap();
        let socket = socket2::SockRef::from(&stream);
        assert!(socket.keepalive().unwrap());
        assert_eq!(socket.tcp_keepalive_time().unwrap(), Duration::from_secs(30));
    }
}
