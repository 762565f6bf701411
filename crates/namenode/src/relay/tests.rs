//! Pages between two members over sockets.

use super::{Makes, Relay, Relayed};
use crate::handing_on::{Secret, Takes};
use crate::standing::{Leader, Standing};
use crate::web::HttpDataNode;
use bytes::Bytes;
use cairn_net::Boxed;
use cairn_net::http::{Answer, Body, Handler, Method, Passed, Request, Response, Streamed};
use cairn_net::reach::Reach;
use cairn_net::rpc_server::{Call, RpcServer, RpcServerOptions, Service, UserInfo};
use cairn_wire::RemoteException;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};

const KEY: &[u8] = b"the key of a quorum";

/// Tells who asks for what, streams three pieces, or only two of them.
struct Site;

impl Handler for Site {
    fn answer(&self, request: Request, _: Body) -> Boxed<'_, Answer> {
        Box::pin(async move {
            let pieces = match request.path.as_str() {
                "/pieces" => 3,
                "/cut" => 2,
                _ => return told(&request).into(),
            };
            let (sender, body) = mpsc::channel(1);
            tokio::spawn(async move {
                for piece in &["one ", "two ", "three"][..pieces] {
                    let _ = sender.send(Bytes::from(*piece)).await;
                }
                if pieces == 3 {
                    let _ = sender.send(Bytes::new()).await;
                }
            });
            let mut streamed = Streamed::new("text/event-stream", body);
            streamed.headers.push(("x-md5-digest", "abc".to_string()));
            Answer::Streamed(streamed)
        })
    }
}

fn told(request: &Request) -> Response {
    let user = request.user.as_ref().map(|user| user.effective.clone());
    let names: Vec<&str> = request.headers.keys().map(|name| name.as_str()).collect();
    let text = format!(
        "{} {:?} {user:?} {:?} {} {names:?}",
        request.path,
        request.query,
        request.peer.map(|peer| peer.to_string()),
        request.method,
    );
    let headers = vec![("location", "/there".to_string())];
    Response { headers, ..Response::new(307, "text/plain", text) }
}

struct Member {
    takes: Takes,
    makes: Arc<Makes>,
}

impl Service for Member {
    async fn call(&self, call: Call) -> Result<Vec<u8>, RemoteException> {
        let answer = async |handed: Call| self.makes.answer(&handed).await;
        self.takes.serve(&call, answer).await
    }
}

/// Whoever asks from another address than is known, or excludes it, gets no DataNode.
fn makes() -> Makes {
    let chosen = HttpDataNode { host_name: "d".into(), ip: "192.0.2.9".into(), port: 9864 };
    let choose = move |client: IpAddr, excluded: Vec<String>, by_tls| {
        let is_known = client.to_string() == "192.0.2.1" && excluded.is_empty() && by_tls;
        Box::pin(std::future::ready(is_known.then(|| chosen.clone()))) as Boxed<'static, _>
    };
    Makes::new(Arc::new(Site), Arc::new(choose))
}

async fn leader() -> watch::Receiver<Standing> {
    let takes = Takes::new(Secret::of(KEY)).unwrap();
    let member = Member { takes, makes: Arc::new(makes()) };
    let addr = "127.0.0.1:0".parse().unwrap();
    let server = RpcServer::bind(addr, RpcServerOptions::default()).await.unwrap();
    let leader = Leader { name: "b".into(), rpc: server.local_addr().to_string() };
    tokio::spawn(server.serve(Arc::new(member), std::future::pending()));
    watch::channel(Standing::Follows { term: 1, leader }).1
}

fn request(method: Method, target: &str) -> Request {
    let mut request = Request::new(method, target).unwrap();
    for (name, value) in [("cookie", "secret"), ("authorization", "secret"), ("accept", "text/*")] {
        request.headers.insert(name, value.parse().unwrap());
    }
    request.peer = Some("192.0.2.1:4711".parse().unwrap());
    request
}

async fn page(request: Request, standing: &watch::Receiver<Standing>) -> Answer {
    let patience = Duration::from_millis(200);
    let relay = Arc::new(Relay::new(Secret::of(KEY), patience, Reach::default(), None));
    match relay.page(&request, standing.clone()).await {
        Relayed::Answered(answer) => answer,
        Relayed::Leads => panic!("another one leads"),
    }
}

/// The text of a body, and whether it has come to its end.
async fn text(mut body: Streamed) -> (String, bool) {
    let mut text = Vec::new();
    let mut left = body.body_len();
    while left != Some(0) {
        match body.pieces().recv().await {
            None => return (String::from_utf8(text).unwrap(), false),
            Some(piece) if piece.is_empty() => break,
            Some(piece) => {
                left = left.map(|left| left - piece.len() as u64);
                text.extend_from_slice(&piece);
            }
        }
    }
    (String::from_utf8(text).unwrap(), true)
}

#[tokio::test]
async fn a_page_is_made_where_another_leads_for_whoever_has_asked_here() {
    let standing = leader().await;
    let shown = UserInfo::simple("ann");
    for (user, told) in [(Some(Arc::new(shown)), "Some(\"ann\")"), (None, "None")] {
        let request = Request { user, ..request(Method::GET, "/a%20b?c=d%26e&c=%2B") };
        let Answer::Passed(Passed { status, headers, body }) = page(request, &standing).await
        else {
            panic!("it is not passed on");
        };
        assert_eq!((status, &headers["location"]), (307, &"/there".parse().unwrap()));
        assert_eq!(headers["content-type"], "text/plain");
        // What shows who asks stays where it was shown.
        let expected = format!(
            "/a b [(\"c\", \"d&e\"), (\"c\", \"+\")] {told} Some(\"192.0.2.1:4711\") GET [\"accept\"]"
        );
        assert_eq!(text(body).await, (expected, true));
    }
    let Answer::Passed(head) = page(request(Method::HEAD, "/"), &standing).await else {
        panic!("it is not passed on");
    };
    assert!(text(head.body).await.0.contains("HEAD"));
}

#[tokio::test]
async fn pieces_come_as_they_are_made_and_one_that_is_missing_is_seen() {
    let standing = leader().await;
    for (path, told) in [("/pieces", ("one two three", true)), ("/cut", ("one two ", false))] {
        let Answer::Passed(Passed { status, headers, body }) =
            page(request(Method::GET, path), &standing).await
        else {
            panic!("it is not passed on");
        };
        assert_eq!(
            (status, &headers["content-type"]),
            (200, &"text/event-stream".parse().unwrap())
        );
        assert_eq!(headers["x-md5-digest"], "abc");
        let (text, is_whole) = text(body).await;
        assert_eq!((text.as_str(), is_whole), told);
    }
}

#[tokio::test]
async fn the_leader_says_which_datanode_a_client_is_sent_to() {
    let standing = leader().await;
    let relay = Relay::new(Secret::of(KEY), Duration::from_millis(200), Reach::default(), None);
    let client: IpAddr = "192.0.2.1".parse().unwrap();
    for (excluded, by_tls, host) in [(vec![], true, Some("d")), (vec!["d".into()], true, None)] {
        let Ok(chosen) = relay.choose(client, &excluded, by_tls, standing.clone()).await else {
            panic!("another one leads");
        };
        assert_eq!(chosen.map(|chosen| chosen.host_name).as_deref(), host);
    }
}

#[tokio::test]
async fn while_nobody_leads_one_is_told_to_ask_again() {
    let (_told, standing) = watch::channel(Standing::Nobody { term: 1 });
    let Answer::Whole(response) = page(request(Method::GET, "/"), &standing).await else {
        panic!("somebody has answered");
    };
    assert_eq!((response.status, response.headers[0].0), (503, "retry-after"));
}
