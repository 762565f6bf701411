//! The side of a member that follows: it asks for a page, and for its pieces.

use super::{CHOICE, NO_MORE, PAGE, PIECE, PROTOCOL};
use crate::handing_on::{BY_PAGES, Handed, HandsOn, Secret};
use crate::security::ShowsHost;
use crate::standing::Standing;
use crate::web::HttpDataNode;
use bytes::Bytes;
use cairn_net::http::header::{self, HeaderName, HeaderValue};
use cairn_net::http::{Answer, HeaderMap, Passed, Request, Response, Streamed, percent_encode};
use cairn_net::reach::Reach;
use cairn_net::rpc_server::{Call, UserInfo};
use cairn_wire::RemoteException;
use cairn_wire::proto::hdfs as pb;
use prost::Message;
use std::fmt::Write as _;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};

/// Pages under way at a time.
const PAGES_MAX: usize = 64;

/// Pieces that may wait for the client.
const PIECES_MAX: usize = 2;

/// Fields that are of one connection, or for who was asked only: what shows who asks is shown once.
const KEPT: [HeaderName; 9] = [
    header::AUTHORIZATION,
    header::CONNECTION,
    header::CONTENT_LENGTH,
    header::COOKIE,
    header::EXPECT,
    header::HOST,
    header::PROXY_AUTHORIZATION,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// What has become of a request.
pub(crate) enum Relayed {
    /// It has an answer.
    Answered(Answer),
    /// This member leads, or is about to: it is to answer.
    Leads,
}

/// This member leads, or is about to.
pub(crate) struct Leads;

/// Has the leader make pages.
pub(crate) struct Relay {
    /// With connections of its own: pieces that are waited for do not hold up calls.
    hands_on: HandsOn,
    turns: Arc<Semaphore>,
}

impl Relay {
    /// With the key of the quorum, and what shows a leader at a host who this member is, with Kerberos. A request waits for
    /// `patience` while nobody leads.
    pub fn new(
        secret: Secret,
        patience: Duration,
        reach: Reach,
        shows: Option<ShowsHost>,
    ) -> Relay {
        let turns = Arc::new(Semaphore::new(PAGES_MAX));
        Relay { hands_on: HandsOn::new(secret, patience, reach, shows), turns }
    }

    /// Has the leader answer a request.
    pub async fn page(
        self: &Arc<Relay>,
        request: &Request,
        standing: watch::Receiver<Standing>,
    ) -> Relayed {
        let Ok(turn) = Arc::clone(&self.turns).try_acquire_owned() else {
            return Relayed::Answered(
                not_now("too many pages are asked of the leader already").into(),
            );
        };
        let page = pb::HandedPageProto {
            target: target(request),
            head: !request.wants_body(),
            secure: request.is_secure,
            shown: request.user.is_some(),
            headers: fields(&request.headers),
        };
        let ask = Ask { request: request.clone(), standing, turn };
        match self.hands_on.hand_on(&ask.call(PAGE, &page), ask.standing.clone()).await {
            Handed::Leads => Relayed::Leads,
            Handed::Answered(answer) => Relayed::Answered(self.answer(ask, answer)),
        }
    }

    /// Has the leader choose a DataNode for a client at an address, but none of those that are excluded. `Err` if this
    /// member leads, or is about to.
    pub async fn choose(
        &self,
        client: IpAddr,
        excluded: &[String],
        by_tls: bool,
        standing: watch::Receiver<Standing>,
    ) -> Result<Option<HttpDataNode>, Leads> {
        let ask = pb::HandedChoiceRequestProto { excluded: excluded.to_vec(), secure: by_tls };
        let call = call(CHOICE, &ask, None, Some(SocketAddr::new(client, 0)));
        let told = match self.hands_on.hand_on(&call, standing).await {
            Handed::Leads => return Err(Leads),
            Handed::Answered(told) => told,
        };
        let chosen = told.map(|bytes| pb::HandedChoiceProto::decode(&bytes[..]));
        let chosen = match chosen {
            Ok(Ok(chosen)) => chosen,
            Ok(Err(_)) => return Ok(None),
            Err(refused) => {
                tracing::debug!(%refused, "the leader has chosen no DataNode");
                return Ok(None);
            }
        };
        let read = |chosen: pb::HandedChoiceProto| {
            let port = u16::try_from(chosen.port?).ok()?;
            Some(HttpDataNode { host_name: chosen.host_name?, ip: chosen.ip?, port })
        };
        Ok(read(chosen))
    }

    fn answer(self: &Arc<Relay>, ask: Ask, answer: Result<Vec<u8>, RemoteException>) -> Answer {
        let read = |bytes: Vec<u8>| {
            let told = pb::HandedPageAnswerProto::decode(&bytes[..]).ok()?;
            let status =
                u16::try_from(told.status).ok().filter(|status| (100..600).contains(status))?;
            Some((status, told))
        };
        let (status, told) = match answer.map(read) {
            Ok(Some(told)) => told,
            Ok(None) => return Response::error(502, "the leader's answer is none").into(),
            Err(refused) => return not_now(refused.first_line()).into(),
        };
        let mut headers = HeaderMap::new();
        for pb::HeaderFieldProto { name, value } in told.headers {
            let name = HeaderName::from_bytes(name.as_bytes());
            if let (Ok(name), Ok(value)) = (name, HeaderValue::from_str(&value)) {
                headers.append(name, value);
            }
        }
        let (sender, body) = mpsc::channel(PIECES_MAX);
        let streamed = Streamed::new("", body);
        let (whole, stream) = (told.body, told.stream);
        let body = match (whole, stream) {
            (Some(whole), _) => {
                let len = whole.len() as u64;
                // There is room for one.
                let _ = sender.try_send(Bytes::from(whole));
                streamed.of_len(len)
            }
            (None, Some(stream)) => {
                tokio::spawn(Arc::clone(self).pump(ask, stream, sender));
                match told.length {
                    Some(len) => streamed.of_len(len),
                    None => streamed,
                }
            }
            (None, None) => streamed.of_len(0),
        };
        Answer::Passed(Passed { status, headers, body })
    }

    /// Passes pieces on until the last one, or until nobody takes or makes them any more.
    async fn pump(self: Arc<Relay>, ask: Ask, stream: Vec<u8>, sender: mpsc::Sender<Bytes>) {
        let wanted = |piece| pb::HandedPieceRequestProto { stream: stream.clone(), piece };
        for number in 0..NO_MORE {
            let call = ask.call(PIECE, &wanted(number));
            let handed = tokio::select! {
                () = sender.closed() => break,
                handed = self.hands_on.hand_on(&call, ask.standing.clone()) => handed,
            };
            // One that is not come by any more is seen to be missing.
            let Handed::Answered(Ok(bytes)) = handed else { return };
            let Ok(pb::HandedPieceProto { bytes, end }) = Message::decode(&bytes[..]) else {
                return;
            };
            if !bytes.is_empty() && sender.send(bytes.into()).await.is_err() {
                break;
            }
            if end {
                let _ = sender.send(Bytes::new()).await;
                return;
            }
        }
        let no_more = ask.call(PIECE, &wanted(NO_MORE));
        self.hands_on.hand_on(&no_more, ask.standing.clone()).await;
    }
}

/// Who asks for what.
struct Ask {
    request: Request,
    standing: watch::Receiver<Standing>,
    #[expect(dead_code, reason = "held as long as the page is under way")]
    turn: OwnedSemaphorePermit,
}

impl Ask {
    fn call(&self, method: &str, message: &impl Message) -> Call {
        call(method, message, self.request.user.clone(), self.request.peer)
    }
}

fn call(
    method: &str,
    message: &impl Message,
    user: Option<Arc<UserInfo>>,
    peer: Option<SocketAddr>,
) -> Call {
    let nowhere = SocketAddr::from(([0, 0, 0, 0], 0));
    Call {
        protocol: PROTOCOL.to_string().into(),
        method: method.to_string().into(),
        version: 1,
        user: user.unwrap_or_else(|| Arc::new(UserInfo::simple(""))),
        // Asking twice harms nothing.
        client_id: [0; 16],
        call_id: 0,
        retry_count: -1,
        peer: peer.unwrap_or(nowhere),
        body: message.encode_to_vec().into(),
        connection_protocol: PROTOCOL.into(),
        caller_context: None,
        carrier: BY_PAGES,
        state: None,
    }
}

/// Path and query as they came, in the one form that all take.
fn target(request: &Request) -> String {
    let mut out = percent_encode(&request.path, true);
    for (index, (name, value)) in request.query.iter().enumerate() {
        let (name, value) = (percent_encode(name, false), percent_encode(value, false));
        // Writing to a string does not fail.
        let _ = write!(out, "{}{name}={value}", if index == 0 { '?' } else { '&' });
    }
    out
}

fn fields(headers: &HeaderMap) -> Vec<pb::HeaderFieldProto> {
    let told = headers.iter().filter(|(name, _)| !KEPT.contains(name));
    let field = |(name, value): (&HeaderName, &HeaderValue)| {
        let (name, value) = (name.as_str().to_string(), value.to_str().ok()?.to_string());
        Some(pb::HeaderFieldProto { name, value })
    };
    told.filter_map(field).collect()
}

/// For who is to ask again in a moment.
pub(crate) fn not_now(why: &str) -> Response {
    let headers = vec![("retry-after", "1".to_string())];
    Response { headers, ..Response::error(503, why) }
}
