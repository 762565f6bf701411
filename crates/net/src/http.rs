//! An HTTP/1.1 server: pages that people and monitors poll, and what else a role serves by HTTP.
//!
//! hyper reads and writes the protocol; what is here are the limits (`serve`), requests and answers as a role sees
//! them, and who of several handlers has a path ([`Site`]). What the pages say the roles know.

mod answer;
mod body;
mod gate;
mod get;
mod patient;
mod serve;
#[cfg(test)]
mod tests;

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::sync::Semaphore;

use crate::Boxed;
use crate::rpc_server::UserInfo;

pub use answer::{Answer, Passed, Response, Streamed};
pub use body::Body;
pub use gate::{Admins, Gate, HttpAuth};
pub use get::Place;
pub use hyper::{HeaderMap, Method, Uri, header};
pub use serve::{Limits, Port, serve};

/// The folder of Hadoop's file system by HTTP, on NameNodes, DataNodes and gateways.
pub const WEBHDFS: &str = "/webhdfs/v1";

/// How many answers of pages may be made while they are sent at a time: those can take hours, and what monitors ask for
/// is to be answered beside them.
const MAX_STREAMS: usize = 16;

/// A request without its body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// What is to be done.
    pub method: Method,
    /// Path, percent-decoded, starting with `/`.
    pub path: String,
    /// Query parameters in order, percent-decoded.
    pub query: Vec<(String, String)>,
    /// The header fields.
    pub headers: HeaderMap,
    /// Who asks.
    pub peer: Option<SocketAddr>,
    /// Whether it came by TLS.
    pub is_secure: bool,
    /// Who asks, where that was shown to a [`Gate`].
    pub user: Option<Arc<UserInfo>>,
}

impl Request {
    /// A request for `target`, a path with an optional query. `None` if it cannot be decoded.
    pub fn new(method: Method, target: &str) -> Option<Request> {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let path = percent_decode(path, false).filter(|path| path.starts_with('/'))?;
        let pairs = query.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            Some((percent_decode(key, true)?, percent_decode(value, true)?))
        });
        let query = pairs.collect::<Option<Vec<_>>>()?;
        Some(Request {
            method,
            path,
            query,
            headers: HeaderMap::new(),
            peer: None,
            is_secure: false,
            user: None,
        })
    }

    /// The first value of query parameter `name`.
    pub fn param(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// `http` or `https`, by which the client came and is to come again.
    pub fn scheme(&self) -> &'static str {
        if self.is_secure { "https" } else { "http" }
    }

    /// Whether the body of the answer is wanted (it is not by HEAD).
    pub fn wants_body(&self) -> bool {
        self.method != Method::HEAD
    }
}

/// Decodes `%` and two digits, and in queries `+`. `None` unless it is UTF-8 then.
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

/// Percent-encodes all but what is safe everywhere, and `/` in a path.
pub fn percent_encode(text: &str, is_path: bool) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'/' if is_path => out.push('/'),
            b'-' | b'.' | b'_' | b'~' => out.push(char::from(byte)),
            byte if byte.is_ascii_alphanumeric() => out.push(char::from(byte)),
            byte => {
                let _ = write!(out, "%{byte:02X}");
            }
        }
    }
    out
}

/// Answers requests.
pub trait Handler: Send + Sync + 'static {
    /// Answers one request. A body that is not read to its end costs its connection; the future is dropped when the
    /// connection closes.
    fn answer(&self, request: Request, body: Body) -> Boxed<'_, Answer>;
}

/// A handler that several servers can have.
#[derive(Clone)]
pub struct SharedHandler(pub Arc<dyn Handler>);

impl std::fmt::Debug for SharedHandler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SharedHandler")
    }
}

/// Pages by GET and HEAD, and handlers that have all that is below a folder.
pub struct Site<P> {
    pages: P,
    streams: Arc<Semaphore>,
    folders: Vec<(&'static str, SharedHandler)>,
}

impl<P: Fn(&Request) -> Answer + Send + Sync + 'static> Site<P> {
    /// Pages only.
    pub fn new(pages: P) -> Site<P> {
        Site { pages, streams: Arc::new(Semaphore::new(MAX_STREAMS)), folders: Vec::new() }
    }

    /// With a handler for `folder` and what is below, if there is one.
    pub fn with(mut self, folder: &'static str, handler: Option<SharedHandler>) -> Site<P> {
        self.folders.extend(handler.map(|handler| (folder, handler)));
        self
    }

    fn page(&self, request: &Request) -> Answer {
        if request.method != Method::GET && request.method != Method::HEAD {
            return Response::error(405, "only GET and HEAD are served").into();
        }
        match (self.pages)(request) {
            Answer::Streamed(streamed) => match Arc::clone(&self.streams).try_acquire_owned() {
                Ok(permit) => Answer::Streamed(streamed.holding(permit)),
                Err(_) => {
                    Response::error(503, "too many answers of this kind are being sent").into()
                }
            },
            whole => whole,
        }
    }
}

/// What a client gets that asks what may be asked. Hadoop's clients do, to show a ticket and get the cookie for it; no page
/// is made for that.
///
/// Source: Hadoop 3.5.0 `KerberosAuthenticator`.
fn options() -> Response {
    let headers = vec![("allow", "GET, HEAD, POST, PUT, DELETE, OPTIONS".to_owned())];
    Response { headers, ..Response::new(200, "", Vec::new()) }
}

impl<P: Fn(&Request) -> Answer + Send + Sync + 'static> Handler for Site<P> {
    fn answer(&self, request: Request, body: Body) -> Boxed<'_, Answer> {
        if request.method == Method::OPTIONS {
            return Box::pin(async {
                body.discard().await;
                options().into()
            });
        }
        let is_below = |folder: &str| {
            let rest = request.path.strip_prefix(folder);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        match self.folders.iter().find(|(folder, _)| is_below(folder)) {
            Some((_, handler)) => handler.0.answer(request, body),
            None => Box::pin(async move { self.page(&request) }),
        }
    }
}
