//! The collector that ended spans are sent to, in the background.
//!
//! Spans wait in a queue of bounded length; one that finds it full is lost, and counted. What a collector does not take
//! is lost as well: it is told in the log, at most once a minute.

use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1;
use hyper::{Request, Uri, header};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::otlp;
use crate::queue::{self, Order};

/// Spans that are sent together.
const TOGETHER: usize = 512;
/// How long they wait for others.
const GATHER: Duration = Duration::from_secs(1);
/// How long a collector may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// Bytes of an answer that are read.
const ANSWER_MAX: usize = 64 << 10;
/// Between two lines in the log that tell of spans which were lost.
const QUIET: Duration = Duration::from_secs(60);

/// Why spans cannot be sent.
#[derive(Debug, thiserror::Error)]
pub enum CollectorError {
    /// The address is none.
    #[error("'{0}' is no address of a collector: it takes http://HOST:PORT")]
    Endpoint(String),
    /// No connection.
    #[error("no connection: {0}")]
    Connect(#[from] std::io::Error),
    /// The exchange failed.
    #[error("{0}")]
    Http(#[from] hyper::Error),
    /// It has answered something else than that it has taken them.
    #[error("it answers {0}")]
    Status(hyper::StatusCode),
    /// No answer.
    #[error("no answer for {0:?}")]
    Timeout(Duration),
}

/// Has ended spans of this process, which is called `service`, sent to `endpoint` from now on. Once for a process, within a
/// runtime.
pub fn begin(endpoint: &str, service: &'static str) -> Result<(), CollectorError> {
    let place =
        Place::of(endpoint).ok_or_else(|| CollectorError::Endpoint(endpoint.to_string()))?;
    if let Some(orders) = queue::open() {
        tokio::spawn(send_all(place, process(service), orders));
    }
    Ok(())
}

/// What is said of this process.
fn process(service: &'static str) -> Vec<(&'static str, String)> {
    // A host without a name is none the worse.
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    vec![
        ("service.name", service.to_string()),
        ("service.version", env!("CARGO_PKG_VERSION").to_string()),
        ("host.name", host.trim().to_string()),
        ("process.pid", std::process::id().to_string()),
    ]
}

/// Waits until all spans that have ended are sent, for `patience` at most: before a process ends.
pub async fn flush(patience: Duration) {
    // Who does not answer does not hold up a command.
    let _ = timeout(patience, queue::flushed()).await;
}

async fn send_all(
    place: Place,
    process: Vec<(&'static str, String)>,
    mut queue: mpsc::Receiver<Order>,
) {
    let mut told: Option<(Instant, u64)> = None;
    let mut spans = Vec::new();
    while let Some(first) = queue.recv().await {
        let mut waiting = Vec::new();
        let until = tokio::time::Instant::now() + GATHER;
        let mut next = Some(first);
        while let Some(order) = next {
            match order {
                Order::Span(span) => spans.push(*span),
                Order::Flush(done) => waiting.push(done),
            }
            if spans.len() >= TOGETHER {
                break;
            }
            next = match queue.try_recv() {
                Ok(order) => Some(order),
                // A command that ends waits for no more.
                Err(_) if !waiting.is_empty() => None,
                Err(_) => tokio::time::timeout_at(until, queue.recv()).await.ok().flatten(),
            };
        }
        if !spans.is_empty() {
            let body = otlp::request(&process, &spans).to_string();
            let sent = timeout(PATIENCE, place.post(body)).await;
            if let Err(error) = sent.unwrap_or(Err(CollectorError::Timeout(PATIENCE))) {
                queue::note_lost(spans.len() as u64);
                tracing::debug!(%error, spans = spans.len(), "a collector does not take spans");
            }
            spans.clear();
        }
        let now_lost = queue::lost();
        let is_due = match told {
            None => now_lost > 0,
            Some((at, before)) => now_lost > before && at.elapsed() >= QUIET,
        };
        if is_due {
            tracing::warn!(lost = now_lost, collector = %place.authority, "spans are lost");
            told = Some((Instant::now(), now_lost));
        }
        for done in waiting {
            // It may have given up waiting.
            let _ = done.send(());
        }
    }
}

/// Where spans are posted to.
struct Place {
    /// `host:port`.
    authority: String,
    path: String,
}

impl Place {
    /// Source: OpenTelemetry, "OTLP/HTTP Request": `/v1/traces` of a server that is named without a path.
    fn of(endpoint: &str) -> Option<Place> {
        let uri: Uri = endpoint.trim().parse().ok()?;
        if uri.scheme_str() != Some("http") || uri.query().is_some() {
            return None;
        }
        let authority = uri.authority().filter(|authority| !authority.as_str().contains('@'))?;
        let port = authority.port_u16().unwrap_or(4318);
        let path = match uri.path().trim_end_matches('/') {
            "" => "/v1/traces".to_string(),
            path => path.to_string(),
        };
        Some(Place { authority: format!("{}:{port}", authority.host()), path })
    }

    async fn post(&self, body: String) -> Result<(), CollectorError> {
        let stream = TcpStream::connect(&self.authority).await?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        let request = Request::post(&self.path)
            .header(header::HOST, &self.authority)
            .header(header::CONTENT_TYPE, "application/json")
            .body(Full::new(Bytes::from(body)))
            .map_err(|_| CollectorError::Endpoint(self.path.clone()))?;
        let exchange = async {
            let answer = sender.send_request(request).await?;
            let status = answer.status();
            // What it says besides is nothing that could be acted upon.
            let _ = Limited::new(answer.into_body(), ANSWER_MAX).collect().await;
            if status.is_success() { Ok(()) } else { Err(CollectorError::Status(status)) }
        };
        tokio::pin!(connection, exchange);
        tokio::select! {
            biased;
            done = &mut exchange => done,
            ended = &mut connection => {
                ended?;
                // It has been read to its end.
                exchange.await
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_collector_is_named_by_host_and_port() {
        let place = |text: &str| Place::of(text).map(|place| place.authority + &place.path);
        for (text, read) in [
            ("http://127.0.0.1:4318", "127.0.0.1:4318/v1/traces"),
            ("http://collector/", "collector:4318/v1/traces"),
            ("http://[::1]:1/own/way", "[::1]:1/own/way"),
        ] {
            assert_eq!(place(text).as_deref(), Some(read));
        }
        for wrong in
            ["", "127.0.0.1:4318", "https://a:1", "http://u:p@a:1", "http://a/?x", "http://"]
        {
            assert_eq!(place(wrong), None, "{wrong}");
        }
    }
}
