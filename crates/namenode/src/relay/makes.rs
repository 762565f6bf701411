//! The side of the leader: it makes pages that others are asked for.

use super::{CHOICE, NO_MORE, PAGE, PIECE};
use crate::web::Choose;
use bytes::Bytes;
use cairn_net::http::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use cairn_net::http::{Answer, Body, Handler, Method, Request, Streamed};
use cairn_net::rpc_server::{Call, respond};
use cairn_process::held::held;
use cairn_wire::RemoteException;
use cairn_wire::exception::class;
use cairn_wire::proto::hdfs as pb;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;
use tokio::time::{Instant, sleep_until, timeout};

/// Bytes of the longest page that is sent at once.
const WHOLE_MAX: usize = 64 << 20;

/// How long a piece is waited for before there is an empty one: whoever asks is to know that somebody lives.
const PIECE_PATIENCE: Duration = Duration::from_secs(10);

/// After which nobody is taken to want the next piece.
const IDLE_MAX: Duration = Duration::from_secs(60);

/// Pages that are sent piece by piece at a time.
const STREAMS_MAX: usize = 256;

const ID_LEN: usize = 16;
type Id = [u8; ID_LEN];

/// A page on its way.
struct Stream {
    /// The number of the next piece, and where it comes from.
    rest: tokio::sync::Mutex<(u32, Streamed)>,
    asked: Mutex<Instant>,
}

/// Makes pages.
pub(crate) struct Makes {
    site: Arc<dyn Handler>,
    choose: Arc<Choose>,
    streams: Mutex<HashMap<Id, Arc<Stream>>>,
}

impl Makes {
    /// Those of `site`; DataNodes are chosen by `choose`.
    pub fn new(site: Arc<dyn Handler>, choose: Arc<Choose>) -> Makes {
        Makes { site, choose, streams: Mutex::default() }
    }

    /// Answers a call of another member.
    pub async fn answer(self: &Arc<Makes>, call: &Call) -> Result<Vec<u8>, RemoteException> {
        match call.method.as_str() {
            PAGE => self.page(call).await,
            PIECE => self.piece(call.decode()?).await,
            CHOICE => self.choice(call).await,
            _ => Err(call.unknown_method()),
        }
    }

    async fn page(self: &Arc<Makes>, call: &Call) -> Result<Vec<u8>, RemoteException> {
        let request = request(call)?;
        let mut told = pb::HandedPageAnswerProto::default();
        let mut field = |name: &str, value: &str| {
            let (name, value) = (name.to_string(), value.to_string());
            told.headers.push(pb::HeaderFieldProto { name, value });
        };
        match self.site.answer(request, Body::empty()).await {
            Answer::Whole(response) => {
                if !response.content_type.is_empty() {
                    field(CONTENT_TYPE.as_str(), response.content_type);
                }
                response.headers.iter().for_each(|(name, value)| field(name, value));
                if response.body.len() > WHOLE_MAX {
                    return Err(RemoteException::io("the page is too long to be passed on"));
                }
                told.status = response.status.into();
                told.body = Some(response.body);
            }
            Answer::Streamed(streamed) => {
                field(CONTENT_TYPE.as_str(), streamed.content_type);
                streamed.headers.iter().for_each(|(name, value)| field(name, value));
                told.status = 200;
                told.length = streamed.body_len();
                told.stream = Some(self.keep(streamed)?.to_vec());
            }
            Answer::Passed(_) => return Err(RemoteException::io("the page is another server's")),
        }
        respond(&told)
    }

    async fn choice(&self, call: &Call) -> Result<Vec<u8>, RemoteException> {
        let pb::HandedChoiceRequestProto { excluded, secure } = call.decode()?;
        let chosen = (self.choose)(call.peer.ip(), excluded, secure).await;
        let told = chosen.map(|chosen| pb::HandedChoiceProto {
            host_name: Some(chosen.host_name),
            ip: Some(chosen.ip),
            port: Some(chosen.port.into()),
        });
        respond(&told.unwrap_or_default())
    }

    fn keep(self: &Arc<Makes>, streamed: Streamed) -> Result<Id, RemoteException> {
        let mut id = [0; ID_LEN];
        let random = getrandom::fill(&mut id);
        random.map_err(|error| RemoteException::io(format!("no random numbers: {error}")))?;
        let mut streams = held(&self.streams);
        if streams.len() >= STREAMS_MAX {
            return Err(RemoteException::new(class::RETRIABLE, "too many pages are being sent"));
        }
        let asked = Mutex::new(Instant::now());
        let stream = Arc::new(Stream { rest: tokio::sync::Mutex::new((0, streamed)), asked });
        streams.insert(id, Arc::clone(&stream));
        tokio::spawn(forget(Arc::downgrade(self), id, Arc::downgrade(&stream)));
        Ok(id)
    }

    async fn piece(&self, wanted: pb::HandedPieceRequestProto) -> Result<Vec<u8>, RemoteException> {
        let unknown = || RemoteException::io("no page of that number is on its way here");
        let id: Id = wanted.stream.try_into().map_err(|_| unknown())?;
        if wanted.piece == NO_MORE {
            held(&self.streams).remove(&id);
            return respond(&pb::HandedPieceProto { bytes: Vec::new(), end: true });
        }
        let stream = held(&self.streams).get(&id).cloned().ok_or_else(unknown)?;
        *held(&stream.asked) = Instant::now();
        let mut rest = stream.rest.lock().await;
        let (next, streamed) = &mut *rest;
        // What was sent and has got lost is not there any more.
        if *next != wanted.piece {
            held(&self.streams).remove(&id);
            return Err(unknown());
        }
        *next += 1;
        let (bytes, end) = match timeout(PIECE_PATIENCE, streamed.pieces().recv()).await {
            Err(_) => (Bytes::new(), false),
            Ok(Some(piece)) if piece.is_empty() => (piece, true),
            Ok(Some(piece)) => (piece, false),
            Ok(None) => {
                held(&self.streams).remove(&id);
                return Err(RemoteException::io("the page was cut short"));
            }
        };
        if end {
            held(&self.streams).remove(&id);
        }
        *held(&stream.asked) = Instant::now();
        respond(&pb::HandedPieceProto { bytes: bytes.to_vec(), end })
    }
}

/// Ends a page when nobody asks for its pieces any more.
async fn forget(makes: Weak<Makes>, id: Id, stream: Weak<Stream>) {
    while let Some(until) = stream.upgrade().map(|stream| *held(&stream.asked) + IDLE_MAX) {
        if until <= Instant::now() {
            if let Some(makes) = makes.upgrade() {
                held(&makes.streams).remove(&id);
            }
            return;
        }
        sleep_until(until).await;
    }
}

/// The request as it came to the member that was asked.
fn request(call: &Call) -> Result<Request, RemoteException> {
    let page: pb::HandedPageProto = call.decode()?;
    let method = if page.head { Method::HEAD } else { Method::GET };
    let request = Request::new(method, &page.target);
    let mut request = request.ok_or_else(|| RemoteException::io("a request that is none"))?;
    for pb::HeaderFieldProto { name, value } in page.headers {
        let name = HeaderName::from_bytes(name.as_bytes());
        if let (Ok(name), Ok(value)) = (name, HeaderValue::from_str(&value)) {
            request.headers.append(name, value);
        }
    }
    request.peer = Some(call.peer);
    request.is_secure = page.secure;
    request.user = page.shown.then(|| Arc::clone(&call.user));
    Ok(request)
}
