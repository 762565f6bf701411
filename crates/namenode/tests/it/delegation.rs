//! A NameNode that believes nobody's word, and the tokens that it issues. Whose ticket a client has, its first token of
//! GSSAPI says: real ones are in `interop/kerberos`.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use cairn_namenode::security::{MemberSecurity, SecurityConfig};
use cairn_namenode::{NameNode, NameNodeConfig, RunningNameNode};
use cairn_namespace::command::Entry;
use cairn_net::rpc_client::{RpcClient, RpcClientOptions, RpcError, SharedCredentials};
use cairn_security::client::Credentials;
use cairn_security::digest_md5::Secret;
use cairn_security::gssapi::{Acceptor, Context};
use cairn_security::server::Offers;
use cairn_security::token::DelegationTokenId;
use cairn_security::{NameRules, Protection, SaslError};
use cairn_wire::exception::class;
use cairn_wire::proto::{common, hdfs as pb};

use crate::cluster::{CLIENT, DATANODE, config};
use crate::journal;

/// The principal of NameNodes.
pub const NAMENODE: &str = "hdfs/localhost@R";

/// A context that believes the name in the first token.
struct Told {
    name: Vec<u8>,
    is_client: bool,
    steps: u32,
}

impl Context for Told {
    fn step(&mut self, token: &[u8]) -> Result<Option<Vec<u8>>, SaslError> {
        self.steps += 1;
        match (self.is_client, self.steps) {
            (true, 1) => Ok(Some(self.name.clone())),
            (true, _) => Ok(None),
            (false, _) => {
                self.name = token.to_vec();
                Ok(Some(b"welcome".to_vec()))
            }
        }
    }

    fn is_established(&self) -> bool {
        self.steps == if self.is_client { 2 } else { 1 }
    }

    fn peer(&self) -> Result<String, SaslError> {
        Ok(String::from_utf8_lossy(&self.name).into_owned())
    }

    fn wrap(&mut self, _: bool, message: &[u8]) -> Result<Vec<u8>, SaslError> {
        Ok(message.to_vec())
    }

    fn unwrap(&mut self, sealed: &[u8]) -> Result<Vec<u8>, SaslError> {
        Ok(sealed.to_vec())
    }
}

fn told(name: &str, is_client: bool) -> Box<dyn Context> {
    Box::new(Told { name: name.as_bytes().to_vec(), is_client, steps: 0 })
}

pub enum Shown {
    Ticket(&'static str),
    Token(Secret),
}

impl Credentials for Shown {
    fn token(&self) -> Option<Secret> {
        match self {
            Shown::Token(secret) => Some(secret.clone()),
            Shown::Ticket(_) => None,
        }
    }

    fn initiate(&self, _: &str, _: &str) -> Result<Option<Box<dyn Context>>, SaslError> {
        match self {
            Shown::Ticket(name) => Ok(Some(told(name, true))),
            Shown::Token(_) => Ok(None),
        }
    }

    fn protections(&self) -> &[Protection] {
        &Protection::ALL
    }

    fn allows_simple(&self) -> bool {
        false
    }
}

/// That of a NameNode that is `hdfs/localhost@R`, as all members of its quorum are.
pub fn security() -> SecurityConfig {
    let minute = Duration::from_secs(60);
    let shows = |_: &str| SharedCredentials(Arc::new(Shown::Ticket(NAMENODE)));
    SecurityConfig {
        offers: Offers::Secure {
            service: "hdfs".into(),
            host: "localhost".into(),
            protections: vec![Protection::Privacy],
        },
        rules: NameRules::parse("", "R", false).unwrap(),
        datanode_principal: "dn/_HOST@R".into(),
        token_life: 10 * minute,
        token_renewal: minute,
        token_key_interval: minute,
        acceptor: Acceptor(Arc::new(|| Ok(told("", false)))),
        members: Some(MemberSecurity { principals: vec![NAMENODE.into()], shows: Arc::new(shows) }),
    }
}

fn secure(dir: &Path) -> NameNodeConfig {
    NameNodeConfig { security: Some(security()), http_addr: None, ..config(dir) }
}

/// A client of a NameNode at an address.
pub fn at(addr: &str, protocol: &'static str, shown: Option<Shown>) -> RpcClient {
    let credentials = shown.map(|shown| SharedCredentials(Arc::new(shown)));
    let options = RpcClientOptions { credentials, ..RpcClientOptions::default() };
    RpcClient::new(addr, protocol, "hdfs", options)
}

/// What shows that somebody has a token.
pub fn by_token(token: &common::TokenProto) -> Shown {
    let (identifier, password) = (token.identifier.clone(), token.password.clone());
    Shown::Token(Secret { identifier, password })
}

fn client(node: &RunningNameNode, protocol: &'static str, shown: Option<Shown>) -> RpcClient {
    acting(node, protocol, shown, None)
}

fn acting(
    node: &RunningNameNode,
    protocol: &'static str,
    shown: Option<Shown>,
    acts_for: Option<&str>,
) -> RpcClient {
    let credentials = shown.map(|shown| SharedCredentials(Arc::new(shown)));
    let real_user = acts_for.map(|_| "whoever".to_string());
    let options = RpcClientOptions { credentials, real_user, ..RpcClientOptions::default() };
    RpcClient::new(node.rpc_addr, protocol, acts_for.unwrap_or("hdfs"), options)
}

pub async fn list(client: &RpcClient) -> Result<(), RpcError> {
    let request = pb::GetFileInfoRequestProto { src: "/".into() };
    client.call("getFileInfo", &request).await.map(|_: pb::GetFileInfoResponseProto| ())
}

pub async fn issue(client: &RpcClient) -> Result<common::TokenProto, RpcError> {
    let request = common::GetDelegationTokenRequestProto { renewer: "yarn/h@R".into() };
    let answer = client.call("getDelegationToken", &request).await;
    answer.map(|answer: common::GetDelegationTokenResponseProto| answer.token.expect("a token"))
}

pub async fn issued(client: &RpcClient) -> common::TokenProto {
    // The first key is made beside the start.
    for _ in 0..100 {
        match issue(client).await {
            Ok(token) => return token,
            Err(error) if error.to_string().contains("no key") => {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            Err(error) => panic!("{error}"),
        }
    }
    panic!("there is no key");
}

pub async fn renew(client: &RpcClient, token: &common::TokenProto) -> Result<u64, RpcError> {
    let request = common::RenewDelegationTokenRequestProto { token: token.clone() };
    let answer = client.call("renewDelegationToken", &request).await;
    answer.map(|answer: common::RenewDelegationTokenResponseProto| answer.new_expiry_time)
}

pub async fn cancel(client: &RpcClient, token: &common::TokenProto) -> Result<(), RpcError> {
    let request = common::CancelDelegationTokenRequestProto { token: token.clone() };
    let answer = client.call("cancelDelegationToken", &request).await;
    answer.map(|_: common::CancelDelegationTokenResponseProto| ())
}

fn holder(node: &RunningNameNode, token: &common::TokenProto) -> RpcClient {
    client(node, CLIENT, Some(by_token(token)))
}

#[tokio::test(flavor = "multi_thread")]
async fn words_are_not_believed_and_tickets_are() {
    let dir = tempfile::tempdir().unwrap();
    let node = NameNode::start(secure(dir.path())).await.unwrap();
    let refused = list(&client(&node, CLIENT, None)).await.unwrap_err();
    assert!(refused.is_remote(class::ACCESS_CONTROL), "{refused}");
    list(&client(&node, CLIENT, Some(Shown::Ticket("ann@R")))).await.unwrap();
    let other = list(&client(&node, CLIENT, Some(Shown::Ticket("ann@OTHER")))).await.unwrap_err();
    assert!(other.to_string().contains("No rules applied to ann@OTHER"), "{other}");
    // Nobody has let ann act for others.
    let acts = acting(&node, CLIENT, Some(Shown::Ticket("ann@R")), Some("hdfs"));
    let acts = list(&acts).await.unwrap_err();
    assert!(acts.to_string().contains("ann is not allowed to impersonate hdfs"), "{acts}");
    for ticket in ["ann@R", "hdfs/localhost@R"] {
        let datanode = client(&node, DATANODE, Some(Shown::Ticket(ticket)));
        let error = list(&datanode).await.unwrap_err();
        assert!(error.is_remote(class::AUTHORIZATION), "{error}");
    }
    let datanode = client(&node, DATANODE, Some(Shown::Ticket("dn/any@R")));
    let error = list(&datanode).await.unwrap_err();
    assert!(error.is_remote(class::RPC_NO_SUCH_METHOD), "it may, and has no such call: {error}");
    node.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_are_believed_until_they_are_cancelled_also_after_a_start() {
    let dir = tempfile::tempdir().unwrap();
    let node = NameNode::start(secure(dir.path())).await.unwrap();
    let ann = client(&node, CLIENT, Some(Shown::Ticket("ann@R")));
    let token = issued(&ann).await;
    let id = DelegationTokenId::decode(&token.identifier).unwrap();
    assert_eq!(
        (id.owner.as_str(), id.renewer.as_str(), id.real_user.as_str()),
        ("ann@R", "yarn", "")
    );
    assert_eq!((token.kind.as_str(), token.service.as_str()), ("HDFS_DELEGATION_TOKEN", ""));
    let with_token = holder(&node, &token);
    list(&with_token).await.unwrap();
    let again = issue(&with_token).await.unwrap_err();
    assert!(again.to_string().contains("only with kerberos"), "{again}");
    let mut forged = token.clone();
    forged.password[0] ^= 1;
    assert!(
        list(&holder(&node, &forged))
            .await
            .unwrap_err()
            .to_string()
            .contains("Mismatched response")
    );
    let mut forged = token.clone();
    forged.identifier = DelegationTokenId { owner: "hdfs".into(), ..id.clone() }.encode();
    let unknown = list(&holder(&node, &forged)).await.unwrap_err();
    assert!(unknown.to_string().contains("can't be found in cache"), "{unknown}");
    let mut cut = token.clone();
    cut.identifier.truncate(4);
    assert!(list(&holder(&node, &cut)).await.is_err());

    let yarn = |node: &RunningNameNode| client(node, CLIENT, Some(Shown::Ticket("yarn/other@R")));
    let until = renew(&yarn(&node), &token).await.unwrap();
    assert!(until > id.issued_ms as u64 && until <= id.max_ms as u64);
    let others = renew(&ann, &token).await.unwrap_err();
    assert!(others.is_remote(class::ACCESS_CONTROL), "{others}");
    let mut wrong = token.clone();
    wrong.password.pop();
    let wrong = renew(&yarn(&node), &wrong).await.unwrap_err();
    assert!(wrong.to_string().contains("with wrong password"), "{wrong}");

    node.shutdown().await;
    let node = NameNode::start(secure(dir.path())).await.unwrap();
    list(&holder(&node, &token)).await.unwrap();
    let bob = client(&node, CLIENT, Some(Shown::Ticket("bob@R")));
    let others = cancel(&bob, &token).await.unwrap_err();
    assert!(others.is_remote(class::ACCESS_CONTROL), "{others}");
    cancel(&yarn(&node), &token).await.unwrap();
    let gone = list(&holder(&node, &token)).await.unwrap_err();
    assert!(gone.to_string().contains("can't be found in cache"), "{gone}");
    let gone = cancel(&yarn(&node), &token).await.unwrap_err();
    assert!(gone.is_remote(class::INVALID_TOKEN), "{gone}");
    node.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_nobody_renews_ends() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = secure(dir.path());
    config.security.as_mut().unwrap().token_renewal = Duration::from_millis(300);
    let node = NameNode::start(config).await.unwrap();
    let token = issued(&client(&node, CLIENT, Some(Shown::Ticket("ann@R")))).await;
    tokio::time::sleep(Duration::from_millis(400)).await;
    let ended = list(&holder(&node, &token)).await.unwrap_err();
    assert!(ended.to_string().contains("has expired"), "{ended}");
    node.shutdown().await;
}

/// The clock of the machine is a day behind that of the file system, which has gone on where the log ends.
#[tokio::test(flavor = "multi_thread")]
async fn a_token_ends_by_the_clock_that_it_was_issued_by() {
    const DAY_MS: u64 = 86_400_000;
    let dir = tempfile::tempdir().unwrap();
    let mut config = secure(dir.path());
    config.security.as_mut().unwrap().token_renewal = Duration::from_millis(300);
    let namesystem = journal::open(&config.name_dir);
    let now_ms = namesystem.clock().now().wall_ms + DAY_MS;
    namesystem.submit_blocking(Entry { now_ms, ..journal::mkdir(0) }).unwrap();
    namesystem.close();
    drop(namesystem);
    let node = NameNode::start(config).await.unwrap();
    let token = issued(&client(&node, CLIENT, Some(Shown::Ticket("ann@R")))).await;
    let id = DelegationTokenId::decode(&token.identifier).unwrap();
    assert!(id.issued_ms as u64 >= now_ms);
    tokio::time::sleep(Duration::from_millis(700)).await;
    let ended = list(&holder(&node, &token)).await.unwrap_err();
    assert!(ended.to_string().contains("has expired"), "{ended}");
    node.shutdown().await;
}
