//! Answers as a role makes them.

use bytes::Bytes;
use hyper::HeaderMap;
use tokio::sync::{OwnedSemaphorePermit, mpsc};

/// Pieces of a body that may wait behind each other where one is handed over.
const PIECES_MAX: usize = 1;

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// HTTP status code.
    pub status: u16,
    /// Media type with charset; empty for none.
    pub content_type: &'static str,
    /// Further header fields.
    pub headers: Vec<(&'static str, String)>,
    /// The whole body.
    pub body: Vec<u8>,
}

impl Response {
    /// An answer without further header fields.
    pub fn new(status: u16, content_type: &'static str, body: impl Into<Vec<u8>>) -> Response {
        Response { status, content_type, headers: Vec::new(), body: body.into() }
    }

    /// A page of the given type.
    pub fn ok(content_type: &'static str, body: String) -> Response {
        Response::new(200, content_type, body)
    }

    /// A short text with an error code.
    pub fn error(status: u16, text: &str) -> Response {
        Response::new(status, "text/plain; charset=utf-8", format!("{text}\n"))
    }
}

/// An answer whose body is made while it is sent: it ends well when its maker sends an empty piece, and
/// is seen to be cut short when the sender is dropped without.
#[derive(Debug)]
pub struct Streamed {
    /// Media type with charset.
    pub content_type: &'static str,
    /// Further header fields.
    pub headers: Vec<(&'static str, String)>,
    /// Bytes of the body, if that is known.
    pub(super) len: Option<u64>,
    /// The body in pieces.
    pub(super) body: mpsc::Receiver<Bytes>,
    /// Held until the body is sent.
    pub(super) _permit: Option<OwnedSemaphorePermit>,
}

impl Streamed {
    /// A body of unknown length.
    pub fn new(content_type: &'static str, body: mpsc::Receiver<Bytes>) -> Streamed {
        Streamed { content_type, headers: Vec::new(), len: None, body, _permit: None }
    }

    /// The same, holding what allows it until the body is sent.
    pub(super) fn holding(self, permit: OwnedSemaphorePermit) -> Streamed {
        Streamed { _permit: Some(permit), ..self }
    }

    /// The same with `len` bytes.
    pub fn of_len(self, len: u64) -> Streamed {
        Streamed { len: Some(len), ..self }
    }

    /// The same, cut short when `end` completes before it is sent: whoever makes it knows nothing any more.
    pub fn until(mut self, end: impl Future<Output = ()> + Send + 'static) -> Streamed {
        let (sender, body) = mpsc::channel(PIECES_MAX);
        let mut pieces = std::mem::replace(&mut self.body, body);
        tokio::spawn(async move {
            tokio::pin!(end);
            loop {
                let piece = tokio::select! {
                    biased;
                    () = &mut end => return,
                    () = sender.closed() => return,
                    piece = pieces.recv() => piece,
                };
                let Some(piece) = piece else { return };
                if sender.send(piece).await.is_err() {
                    return;
                }
            }
        });
        self
    }

    /// Bytes of the body, if that is known.
    pub fn body_len(&self) -> Option<u64> {
        self.len
    }

    /// Its pieces, for who takes them in the place of a client.
    pub fn pieces(&mut self) -> &mut mpsc::Receiver<Bytes> {
        &mut self.body
    }
}

/// The answer of another server, passed on as it is.
#[derive(Debug)]
pub struct Passed {
    /// HTTP status code.
    pub status: u16,
    /// Its header fields.
    pub headers: HeaderMap,
    /// Its body.
    pub body: Streamed,
}

/// What a request is answered with.
#[derive(Debug)]
pub enum Answer {
    /// All at once.
    Whole(Response),
    /// Piece by piece, with status 200.
    Streamed(Streamed),
    /// As another server has answered.
    Passed(Passed),
}

impl From<Response> for Answer {
    fn from(response: Response) -> Answer {
        Answer::Whole(response)
    }
}
