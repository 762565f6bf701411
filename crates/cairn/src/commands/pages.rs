//! Pages of servers, read line by line.

use crate::config::NameNodes;
use crate::output;
use anyhow::{Context, Result, bail};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use cairn_client::{FileSystem, SharedCredentials};
use cairn_net::disk_work::may_wait;
use socket2::TcpKeepalive;
use std::fmt::{self, Write as _};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Longest head of an answer, and longest line of its body, bytes.
const LINE_MAX: u64 = 1 << 26;
/// How long connecting may take, and how long the first line of the answer.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);
const HEAD_TIMEOUT: Duration = Duration::from_secs(60);
/// Where the pages of the active NameNode are. It is asked by RPC: whoever knows where that is need not know more. Where
/// it does not tell, as Hadoop's, the configuration says it.
pub async fn of_namenode(fs: &FileSystem, namenodes: &NameNodes) -> Result<PageServer> {
    let active = fs.active_namenode();
    let rpc = namenodes.rpc.get(active).context("no NameNode is known to be active")?;
    let told = (fs.server_defaults().await?.http_port, rpc.rsplit_once(':'));
    let address = match told {
        (Some(port), Some((host, _))) => Some(format!("{host}:{port}")),
        _ => namenodes.http.get(active).cloned(),
    };
    Ok(PageServer::new(fs, address.context("no NameNode is known to have pages")?))
}

/// A server with pages, and what shows it who asks.
#[derive(Clone, Debug)]
pub struct PageServer {
    /// Its `host:port`.
    pub address: String,
    credentials: Option<SharedCredentials>,
}

impl PageServer {
    /// The one at `host:port`, asked by the user of a file system.
    pub fn new(fs: &FileSystem, address: String) -> PageServer {
        PageServer { address, credentials: fs.config().http_credentials.clone() }
    }

    /// One that believes who asks.
    #[cfg(test)]
    pub fn open_to_all(address: std::net::SocketAddr) -> PageServer {
        PageServer { address: address.to_string(), credentials: None }
    }

    /// Whether its name counts, and its address will not do.
    pub fn asks_proof(fs: &FileSystem) -> bool {
        fs.config().http_credentials.is_some()
    }

    /// The header that shows a ticket, where one is to be shown. Source: RFC 4559.
    fn proof(&self) -> Result<String> {
        let Some(SharedCredentials(credentials)) = &self.credentials else {
            return Ok(String::new());
        };
        let host = self.address.rsplit_once(':').map_or(self.address.as_str(), |(host, _)| host);
        let shown = may_wait(|| match credentials.initiate("HTTP", host)? {
            Some(mut context) => context.step(&[]),
            None => Ok(None),
        });
        let line = |token| format!("Authorization: Negotiate {}\r\n", STANDARD.encode(token));
        Ok(shown?.map(line).unwrap_or_default())
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

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

impl std::error::Error for Refused {}

/// Gets a page and hands over its lines as they come.
pub async fn get(server: &PageServer, target: &str, line: impl FnMut(&str)) -> Result<()> {
    let stream = ask(server, target).await?;
    read_answer(stream, HEAD_TIMEOUT, line)
        .await
        .with_context(|| format!("answer of http://{}", server.address))
}

/// Gets what a page has, byte by byte; the end of the bytes may be too early. An answer with another status is a
/// [`Refused`].
pub async fn bytes(server: &PageServer, target: &str) -> Result<BufReader<TcpStream>> {
    let mut reader = BufReader::with_capacity(1 << 20, ask(server, target).await?);
    read_head(&mut reader, HEAD_TIMEOUT).await?;
    Ok(reader)
}

async fn ask(server: &PageServer, target: &str) -> Result<TcpStream> {
    let address = &server.address;
    let stream = connect(address).await;
    let mut stream = stream.with_context(|| format!("cannot connect to http://{address}"))?;
    // The end of an HTTP/1.0 answer is the end of its connection.
    let proof = server.proof()?;
    let head = format!("GET {target} HTTP/1.0\r\nHost: {address}\r\n{proof}\r\n");
    stream.write_all(head.as_bytes()).await?;
    Ok(stream)
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

async fn read_answer(
    stream: impl AsyncRead + Unpin,
    patience: Duration,
    mut line: impl FnMut(&str),
) -> Result<()> {
    let mut reader = BufReader::new(stream);
    read_head(&mut reader, patience).await?;
    while let Some(text) = next_line(&mut reader).await? {
        line(&text);
    }
    Ok(())
}

/// The head comes before anything is looked for.
async fn read_head(
    reader: &mut BufReader<impl AsyncRead + Unpin>,
    patience: Duration,
) -> Result<()> {
    let status = timeout(patience, next_line(reader)).await??.unwrap_or_default();
    while next_line(reader).await?.is_some_and(|header| !header.is_empty()) {}
    let code = status.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or_default();
    if code != 200 {
        let text = next_line(reader).await?.unwrap_or_default();
        return Err(Refused { code, reason: format!("{status}: {text}") }.into());
    }
    Ok(())
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
        let answer = &b"HTTP/1.1 200 OK\r\nA: b\r\n\r\none\n\ntwo"[..];
        read_answer(answer, HEAD_TIMEOUT, |line| lines.push(line.to_string())).await.unwrap();
        assert_eq!(lines, ["one", "", "two"]);
        let refused = &b"HTTP/1.1 403 Status\r\n\r\nnot allowed\n"[..];
        let error = read_answer(refused, HEAD_TIMEOUT, |_| ()).await.unwrap_err().to_string();
        assert!(error.contains("403") && error.contains("not allowed"), "{error}");
    }

    #[tokio::test]
    async fn who_says_nothing_is_not_waited_for() {
        let (near, _far) = tokio::io::duplex(64);
        let told = read_answer(near, Duration::from_millis(10), |_| ()).await.unwrap_err();
        assert!(told.is::<tokio::time::error::Elapsed>(), "{told:#}");
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
