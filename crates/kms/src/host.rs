//! One key server: connections that are kept, and one question over one of them.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::{Method, Request, StatusCode, header};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Bytes of the longest answer taken: a server lets 10,000 keys be encrypted anew at a time.
const MAX_ANSWER_LEN: usize = 16 << 20;
/// Connections without a question that are kept.
const MAX_IDLE: usize = 8;
/// How long they are kept: less than the minute after which Hadoop's server closes them.
const IDLE_FOR_MAX: Duration = Duration::from_secs(30);

/// A question, to be sent to any of the servers.
#[derive(Debug)]
pub struct Question {
    pub method: Method,
    /// Path and query.
    pub target: String,
    /// JSON.
    pub body: Option<Bytes>,
    /// Whether it may be sent again when nobody knows what became of it.
    pub repeatable: bool,
}

/// Why there is no answer.
#[derive(Debug)]
pub struct Failure {
    /// False when the server cannot have seen the question.
    pub sent: bool,
    pub reason: String,
}

impl Failure {
    fn unsent(error: impl ToString) -> Failure {
        Failure { sent: false, reason: error.to_string() }
    }

    fn sent(error: impl ToString) -> Failure {
        Failure { sent: true, reason: error.to_string() }
    }
}

/// A server, and connections to it that wait for the next question.
#[derive(Debug)]
pub struct Host {
    /// `host:port`.
    pub authority: String,
    /// Each with when it was last used.
    idle: Mutex<Vec<(SendRequest<Full<Bytes>>, Instant)>>,
}

impl Host {
    pub fn new(host: &str, port: u16) -> Host {
        Host { authority: format!("{host}:{port}"), idle: Mutex::default() }
    }

    /// Asks, and waits `limit` for a connection and as long for the whole answer.
    pub async fn ask(
        &self,
        question: &Question,
        limit: Duration,
    ) -> Result<(StatusCode, Bytes), Failure> {
        // A server may close a kept connection just when it is used.
        while question.repeatable
            && let Some(kept) = self.kept()
        {
            match timeout(limit, self.exchange(kept, question)).await {
                Ok(Ok(answer)) => return Ok(answer),
                Ok(Err(_)) => {}
                Err(_) => {
                    // Something between may have forgotten all of them: the next try is over a fresh one.
                    self.idle().clear();
                    return Err(Failure::sent(format!("no answer for {limit:?}")));
                }
            }
        }
        let connected = timeout(limit, self.connect()).await;
        let fresh = connected
            .map_err(|_| Failure::unsent(format!("no connection for {limit:?}")))?
            .map_err(|error| Failure::unsent(format!("cannot connect: {error}")))?;
        let answered = timeout(limit, self.exchange(fresh, question)).await;
        answered.map_err(|_| Failure::sent(format!("no answer for {limit:?}")))?
    }

    fn idle(&self) -> MutexGuard<'_, Vec<(SendRequest<Full<Bytes>>, Instant)>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn kept(&self) -> Option<SendRequest<Full<Bytes>>> {
        let mut idle = self.idle();
        idle.retain(|(connection, used)| !connection.is_closed() && used.elapsed() < IDLE_FOR_MAX);
        idle.pop().map(|(connection, _)| connection)
    }

    async fn connect(
        &self,
    ) -> Result<SendRequest<Full<Bytes>>, Box<dyn std::error::Error + Send + Sync>> {
        let stream = TcpStream::connect(&self.authority).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        // It ends when its sender is dropped or the server closes it.
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection to a key server ended");
            }
        });
        Ok(sender)
    }

    async fn exchange(
        &self,
        mut connection: SendRequest<Full<Bytes>>,
        question: &Question,
    ) -> Result<(StatusCode, Bytes), Failure> {
        let request = Request::builder()
            .method(&question.method)
            .uri(&question.target)
            .header(header::HOST, &self.authority)
            .header(header::ACCEPT, "application/json")
            .header(header::CONTENT_TYPE, "application/json")
            .body(Full::new(question.body.clone().unwrap_or_default()))
            .map_err(Failure::unsent)?;
        // A kept one may still be busy with the end of the answer before.
        connection.ready().await.map_err(Failure::unsent)?;
        let answer = connection.send_request(request).await.map_err(Failure::sent)?;
        let status = answer.status();
        let body = Limited::new(answer.into_body(), MAX_ANSWER_LEN).collect().await;
        let body = body.map_err(Failure::sent)?.to_bytes();
        let mut idle = self.idle();
        if idle.len() < MAX_IDLE && !connection.is_closed() {
            idle.push((connection, Instant::now()));
        }
        Ok((status, body))
    }
}
