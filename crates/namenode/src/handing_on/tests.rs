//! Calls between two members over sockets.

use super::call::{CALL, NO_SESSION, encode};
use super::proof::{LEN, Of};
use super::*;
use crate::standing::{Leader, Standing};
use bytes::Bytes;
use cairn_net::reach::Reach;
use cairn_net::rpc_client::{RpcClient, RpcClientOptions};
use cairn_net::rpc_server::{
    Authentication, Call, CallerContext, RpcServer, RpcServerOptions, Service, StateId, UserInfo,
};
use cairn_process::held::held;
use cairn_security::token::TokenName;
use cairn_wire::RemoteException;
use cairn_wire::exception::class;
use cairn_wire::proto::hdfs::{
    HandOnRequestProto, HandOnResponseProto, HandOnSessionRequestProto, HandOnSessionResponseProto,
};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;

const KEY: &[u8] = b"the key of a quorum";

/// Answers with the method's name, refuses `refused`, and never answers `held`.
#[derive(Default)]
struct Namespace(Mutex<Vec<Call>>);

impl Service for Namespace {
    async fn call(&self, call: Call) -> Result<Vec<u8>, RemoteException> {
        held(&self.0).push(call.clone());
        call.tell_state(900);
        match call.method.as_str() {
            "refused" => Err(RemoteException::new(class::FILE_NOT_FOUND, "/a")),
            "held" => std::future::pending().await,
            method => Ok(method.as_bytes().to_vec()),
        }
    }
}

struct Member {
    takes: Mutex<Arc<Takes>>,
    namespace: Arc<Namespace>,
}

impl Service for Member {
    async fn call(&self, call: Call) -> Result<Vec<u8>, RemoteException> {
        let takes = held(&self.takes).clone();
        takes.serve(&call, |handed| self.namespace.call(handed)).await
    }
}

impl Member {
    async fn start(key: &[u8]) -> (Arc<Member>, Leader, JoinHandle<()>) {
        let takes = Arc::new(Takes::new(Secret::of(key)).unwrap());
        let member = Arc::new(Member { takes: Mutex::new(takes), namespace: Arc::default() });
        let addr = "127.0.0.1:0".parse().unwrap();
        let server = RpcServer::bind(addr, RpcServerOptions::default()).await.unwrap();
        let rpc = server.local_addr().to_string();
        let serving = tokio::spawn(server.serve(member.clone(), std::future::pending()));
        (member, Leader { name: "b".into(), rpc }, serving)
    }

    /// What it was asked, by the methods.
    fn asked(&self) -> Vec<Call> {
        held(&self.namespace.0).clone()
    }
}

fn call(method: &str) -> Call {
    Call {
        protocol: "org.apache.hadoop.hdfs.protocol.ClientProtocol".to_string().into(),
        method: method.to_string().into(),
        version: 1,
        user: Arc::new(UserInfo {
            effective: "alice".into(),
            real: Some("oozie".into()),
            by: Authentication::Simple,
        }),
        client_id: [7; 16],
        call_id: 12,
        retry_count: 3,
        peer: "192.0.2.1:4711".parse().unwrap(),
        body: Bytes::from_static(b"what is asked"),
        connection_protocol: "org.apache.hadoop.hdfs.protocol.ClientProtocol".into(),
        caller_context: Some(CallerContext { context: "job".into(), signature: vec![1, 2] }),
        carrier: "webhdfs",
        state: Some(Arc::new(StateId::new(77))),
    }
}

fn follows(leader: &Leader) -> (watch::Sender<Standing>, watch::Receiver<Standing>) {
    watch::channel(Standing::Follows { term: 1, leader: leader.clone() })
}

fn hands_on(key: &[u8], patience_ms: u64) -> HandsOn {
    HandsOn::new(Secret::of(key), Duration::from_millis(patience_ms), Reach::default(), None)
}

fn answered(handed: Handed) -> Result<Vec<u8>, RemoteException> {
    match handed {
        Handed::Answered(answer) => answer,
        Handed::Leads => panic!("another one leads"),
    }
}

#[tokio::test]
async fn a_call_travels_with_all_that_says_whose_it_is() {
    let (member, leader, _serving) = Member::start(KEY).await;
    let (_told, standing) = follows(&leader);
    let hands_on = hands_on(KEY, 5000);
    let users = [
        Authentication::Simple,
        Authentication::Token(None),
        Authentication::Token(Some(TokenName { number: -7, tracking_id: "0f".into() })),
        Authentication::Kerberos { effective: "alice@R".into(), principal: "oozie/h@R".into() },
    ];
    for by in users {
        let user = UserInfo { by, ..(*call("x").user).clone() };
        let sent = Call { user: Arc::new(user), ..call("getFileInfo") };
        let answer = answered(hands_on.hand_on(&sent, standing.clone()).await);
        assert_eq!(answer.unwrap(), b"getFileInfo");
        assert_eq!(sent.state.as_ref().unwrap().told(), Some(900));
        assert_eq!(format!("{:?}", member.asked().last().unwrap()), format!("{sent:?}"));
    }
    let sent = call("refused");
    let refused = answered(hands_on.hand_on(&sent, standing).await);
    assert_eq!(refused, Err(RemoteException::new(class::FILE_NOT_FOUND, "/a")));
    assert_eq!(sent.state.unwrap().told(), Some(900), "also with an exception");
}

#[tokio::test]
async fn a_call_waits_for_a_leader_and_not_for_ever() {
    let (_member, leader, _serving) = Member::start(KEY).await;
    let (told, standing) = watch::channel(Standing::Nobody { term: 1 });
    let patient = hands_on(KEY, 10_000);
    let elected = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        told.send_replace(Standing::Follows { term: 2, leader });
    };
    let call = call("mkdirs");
    let (handed, ()) = tokio::join!(patient.hand_on(&call, standing.clone()), elected);
    assert_eq!(answered(handed).unwrap(), b"mkdirs");
    told.send_replace(Standing::Nobody { term: 3 });
    let refused = answered(hands_on(KEY, 100).hand_on(&call, standing.clone()).await);
    assert!(refused.unwrap_err().is(class::STANDBY));
    told.send_replace(Standing::Leads { term: 4 });
    assert!(matches!(patient.hand_on(&call, standing).await, Handed::Leads));
}

#[tokio::test]
async fn a_call_that_was_under_way_goes_to_the_next_leader_with_its_number() {
    let (first, leader, serving) = Member::start(KEY).await;
    let (second, next, _serving) = Member::start(KEY).await;
    let (told, standing) = follows(&leader);
    let hands_on = hands_on(KEY, 10_000);
    let sent = call("held");
    let dies = async {
        while first.asked().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        // It hangs; others have elected another one.
        told.send_replace(Standing::Follows { term: 2, leader: next.clone() });
        while second.asked().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        serving.abort();
    };
    tokio::select! {
        _ = hands_on.hand_on(&sent, standing) => panic!("nobody answers it"),
        () = dies => {}
    }
    let asked = &second.asked()[0];
    assert_eq!((asked.client_id, asked.call_id), (sent.client_id, sent.call_id));
}

#[tokio::test]
async fn a_leader_that_has_begun_anew_is_asked_in_a_new_session() {
    let (member, leader, _serving) = Member::start(KEY).await;
    let (_told, standing) = follows(&leader);
    let hands_on = hands_on(KEY, 5000);
    for _ in 0..3 {
        let answer = answered(hands_on.hand_on(&call("a"), standing.clone()).await);
        assert_eq!(answer.unwrap(), b"a");
        *held(&member.takes) = Arc::new(Takes::new(Secret::of(KEY)).unwrap());
    }
    assert_eq!(member.asked().len(), 3);
}

#[tokio::test]
async fn who_has_another_key_neither_asks_nor_answers() {
    let (member, leader, _serving) = Member::start(b"the key of another quorum").await;
    let (_told, standing) = follows(&leader);
    let refused = answered(hands_on(KEY, 100).hand_on(&call("a"), standing).await);
    assert!(refused.unwrap_err().is(class::STANDBY));
    assert!(member.asked().is_empty());
}

#[tokio::test]
async fn a_call_counts_once_and_only_as_it_was_sent() {
    let (member, leader, _serving) = Member::start(KEY).await;
    let client = RpcClient::new(leader.rpc, PROTOCOL, "x", RpcClientOptions::default());
    let nonce = [5; LEN];
    let begin = HandOnSessionRequestProto { nonce: nonce.to_vec() };
    let begun: HandOnSessionResponseProto = client.call("openSession", &begin).await.unwrap();
    let key = Secret::of(KEY).session(&nonce, &begun.nonce.try_into().unwrap());
    let bytes = encode(&call("a"));
    let proof = key.proof(Of::Call, 0, &bytes);
    let good = HandOnRequestProto { session: nonce.to_vec(), number: 0, proof, call: bytes };
    let changed = HandOnRequestProto { call: encode(&call("b")), ..good.clone() };
    let other_number = HandOnRequestProto { number: 1, ..good.clone() };
    let other_session = HandOnRequestProto { session: vec![6; LEN], ..good.clone() };
    let short = HandOnRequestProto { session: vec![6; 3], ..good.clone() };
    let bad = key.proof(Of::Call, 9, b"no call");
    let no_call =
        HandOnRequestProto { number: 9, proof: bad, call: b"no call".to_vec(), ..good.clone() };
    let ask = async |request: &HandOnRequestProto| {
        client.call::<_, HandOnResponseProto>(CALL, request).await
    };
    for request in [&changed, &other_number, &other_session, &short, &no_call] {
        assert!(ask(request).await.unwrap_err().is_remote(NO_SESSION));
    }
    assert!(ask(&good).await.is_ok());
    assert!(ask(&good).await.unwrap_err().is_remote(NO_SESSION), "it came before");
    assert_eq!(member.asked().len(), 1);
}
