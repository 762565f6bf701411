//! Bodies: of a request, with a limit to how long it may rest, and of an answer.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Body as _, Frame, Incoming, SizeHint};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::answer::{Answer, Passed, Streamed};

/// Bytes that are read though nobody wants them, and how long they are waited for.
const DISCARDED_MAX: usize = 1 << 20;
const DISCARDED_WAIT: Duration = Duration::from_secs(1);

/// The body of a request, which arrives while it is read.
#[derive(Debug)]
pub struct Body {
    incoming: Option<Incoming>,
    /// How long the next piece may take.
    patience: Duration,
    /// Whether all of it has been read.
    has_ended: Arc<AtomicBool>,
}

impl Body {
    /// The body, and what tells whether it has been read to its end.
    pub(super) fn new(incoming: Incoming, patience: Duration) -> (Body, Arc<AtomicBool>) {
        let has_ended = Arc::new(AtomicBool::new(incoming.is_end_stream()));
        (Body { incoming: Some(incoming), patience, has_ended: Arc::clone(&has_ended) }, has_ended)
    }

    /// A body without bytes.
    pub fn empty() -> Body {
        Body { incoming: None, patience: Duration::ZERO, has_ended: Arc::default() }
    }

    /// The next piece; `None` at the end. Fails when the client goes away, or sends nothing for too long.
    pub async fn next(&mut self) -> io::Result<Option<Bytes>> {
        let Some(incoming) = &mut self.incoming else { return Ok(None) };
        loop {
            let frame = timeout(self.patience, incoming.frame()).await?;
            let Some(frame) = frame else {
                self.has_ended.store(true, Ordering::Relaxed);
                return Ok(None);
            };
            // Trailers say nothing that anybody asks for.
            match frame.map_err(io::Error::other)?.into_data() {
                Ok(piece) if piece.is_empty() => {}
                Ok(piece) => return Ok(Some(piece)),
                Err(_) => {}
            }
        }
    }
}

impl Body {
    /// Reads what nobody wants, if it is short and comes soon: a client that is still sending may not look for an answer,
    /// and a connection with unread bytes is reset.
    pub async fn discard(mut self) {
        let read = async {
            let mut len = 0;
            while let Ok(Some(piece)) = self.next().await {
                len += piece.len();
                if len > DISCARDED_MAX {
                    return;
                }
            }
        };
        let _ = timeout(DISCARDED_WAIT, read).await;
    }
}

/// The body of an answer.
pub(super) enum Outgoing {
    Whole(Option<Bytes>),
    Streamed { streamed: Streamed, left: Option<u64>, has_ended: bool },
}

impl Outgoing {
    pub(super) fn of(answer: Answer) -> Outgoing {
        match answer {
            Answer::Whole(response) => {
                Outgoing::Whole(Some(Bytes::from(response.body)).filter(|body| !body.is_empty()))
            }
            Answer::Streamed(streamed) | Answer::Passed(Passed { body: streamed, .. }) => {
                let left = streamed.len;
                Outgoing::Streamed { streamed, left, has_ended: left == Some(0) }
            }
        }
    }
}

impl hyper::body::Body for Outgoing {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        match self.get_mut() {
            Outgoing::Whole(body) => Poll::Ready(body.take().map(|body| Ok(Frame::data(body)))),
            Outgoing::Streamed { has_ended: true, .. } => Poll::Ready(None),
            Outgoing::Streamed { streamed, left, has_ended } => {
                let body: &mut mpsc::Receiver<Bytes> = &mut streamed.body;
                body.poll_recv(cx).map(|piece| match piece {
                    None => Some(Err(io::Error::other("the answer was cut short"))),
                    Some(piece) if piece.is_empty() => {
                        *has_ended = true;
                        None
                    }
                    Some(piece) => {
                        *left = left.map(|left| left.saturating_sub(piece.len() as u64));
                        *has_ended = *left == Some(0);
                        Some(Ok(Frame::data(piece)))
                    }
                })
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Outgoing::Whole(body) => body.is_none(),
            Outgoing::Streamed { has_ended, .. } => *has_ended,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Outgoing::Whole(body) => {
                SizeHint::with_exact(body.as_ref().map_or(0, |b| b.len() as u64))
            }
            Outgoing::Streamed { left: Some(left), .. } => SizeHint::with_exact(*left),
            Outgoing::Streamed { left: None, .. } => SizeHint::default(),
        }
    }
}
