//! Connections: how many, how long they may rest, how long a head may be.

use std::convert::Infallible;
use std::error::Error;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::header::{HeaderName, HeaderValue};
use hyper::http::response::Builder;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::body::{Body, Outgoing};
use super::patient::Patient;
use super::{Answer, Handler, Request, Response};
use crate::reach::Reach;
use crate::tls::Tls;
use cairn_process::descriptors;

/// Longest request line, and longest header fields, bytes. `hadoop.http.max.request.header.size`.
const MAX_HEAD_LEN: usize = 64 << 10;
/// Bytes of a body that one connection may hold.
const BUFFER_LEN: usize = 256 << 10;

/// What a server allows its clients.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Connections served at a time; more wait in the listen queue. Never more than a quarter of what the process may
    /// open. When three quarters are taken, a connection ends with its answer.
    pub max_connections: usize,
    /// How long a connection may be idle, or its client take for a request's head, the next piece of its body, or to
    /// take something of the answer. `hadoop.http.idle_timeout.ms`.
    pub idle: Duration,
    /// Whose connections are taken.
    pub reach: Reach,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { max_connections: 4096, idle: Duration::from_secs(60), reach: Reach::default() }
    }
}

/// Where a server listens, and whether it speaks TLS there.
#[derive(Debug)]
pub struct Port {
    /// Where connections come in.
    pub listener: TcpListener,
    /// Its certificate; `None`: what is said is not enclosed.
    pub tls: Option<Tls>,
}

impl From<TcpListener> for Port {
    fn from(listener: TcpListener) -> Port {
        Port { listener, tls: None }
    }
}

/// Serves requests on a port until `shutdown` resolves; connections then in work are dropped.
pub async fn serve(
    port: impl Into<Port>,
    handler: Arc<dyn Handler>,
    limits: Limits,
    shutdown: impl Future<Output = ()>,
) {
    let Port { listener, tls } = port.into();
    let max = limits.max_connections.min(descriptors::limit() / 4).max(1);
    let permits = Arc::new(Semaphore::new(max));
    let is_crowded = {
        let permits = Arc::clone(&permits);
        Arc::new(move || permits.available_permits() < max / 4)
    };
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
            Ok((_, peer)) if !limits.reach.may_take(peer) => {}
            Ok((stream, peer)) => {
                let (handler, is_crowded) = (Arc::clone(&handler), Arc::clone(&is_crowded));
                let (idle, tls) = (limits.idle, tls.clone());
                connections.spawn(async move {
                    let client = Client { peer, is_secure: tls.is_some() };
                    // What is small is sent at once: an answer has its head and its body in two pieces.
                    let _ = stream.set_nodelay(true);
                    let ended = match tls {
                        None => connection(stream, client, idle, &*handler, &*is_crowded).await,
                        Some(tls) => match timeout(idle, tls.accept(stream)).await {
                            Ok(Ok(stream)) => {
                                connection(stream, client, idle, &*handler, &*is_crowded).await
                            }
                            Ok(Err(error)) => Err(error.into()),
                            Err(slow) => Err(slow.into()),
                        },
                    };
                    if let Err(error) = ended {
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

/// Who has connected, and how.
#[derive(Clone, Copy)]
struct Client {
    peer: SocketAddr,
    is_secure: bool,
}

async fn connection<S: AsyncRead + AsyncWrite + Unpin>(
    stream: S,
    client: Client,
    idle: Duration,
    handler: &dyn Handler,
    is_crowded: &(dyn Fn() -> bool + Send + Sync),
) -> Result<(), Box<dyn Error + Send + Sync>> {
    let service = service_fn(|request: hyper::Request<Incoming>| async move {
        let (answer, has_ended) = answer(request, client, idle, handler).await;
        // hyper closes a connection with an unread body, and the client is to know it.
        Ok::<_, Infallible>(encode(answer, !has_ended || is_crowded()))
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(idle)
        .max_header_size(MAX_HEAD_LEN)
        .max_buf_size(BUFFER_LEN)
        .serve_connection(TokioIo::new(Patient::new(stream, idle)), service);
    Ok(served.await?)
}

async fn answer(
    request: hyper::Request<Incoming>,
    Client { peer, is_secure }: Client,
    idle: Duration,
    handler: &dyn Handler,
) -> (Answer, bool) {
    let (head, incoming) = request.into_parts();
    let (body, has_ended) = Body::new(incoming, idle);
    let target = head.uri.path_and_query().map_or("", |target| target.as_str());
    if target.len() > MAX_HEAD_LEN {
        return (Response::error(414, "the request's target is too long").into(), false);
    }
    let Some(request) = Request::new(head.method, target) else {
        return (Response::error(400, "bad request").into(), false);
    };
    let request = Request { headers: head.headers, peer: Some(peer), is_secure, ..request };
    let answer = handler.answer(request, body).await;
    (answer, has_ended.load(Ordering::Relaxed))
}

fn encode(answer: Answer, closes: bool) -> hyper::Response<Outgoing> {
    let (status, content_type, headers) = match &answer {
        Answer::Whole(response) => (response.status, response.content_type, &response.headers),
        Answer::Streamed(streamed) => (200, streamed.content_type, &streamed.headers),
        Answer::Passed(passed) => (passed.status, "", &passed.body.headers),
    };
    let mut built = Builder::new()
        .status(status)
        .header("Cache-Control", "no-cache")
        .header("X-Content-Type-Options", "nosniff");
    if !content_type.is_empty() {
        built = built.header("Content-Type", content_type);
    }
    if closes {
        built = built.header("Connection", "close");
    }
    for (name, value) in headers {
        // What comes from a request cannot begin a line of its own.
        if let Ok(value) = HeaderValue::from_str(value) {
            built = built.header(HeaderName::from_static(name), value);
        }
    }
    if let Answer::Passed(passed) = &answer {
        for (name, value) in &passed.headers {
            built = built.header(name, value);
        }
    }
    built.body(Outgoing::of(answer)).unwrap_or_else(|error| {
        tracing::warn!(%error, "an answer cannot be sent");
        hyper::Response::new(Outgoing::Whole(None))
    })
}
