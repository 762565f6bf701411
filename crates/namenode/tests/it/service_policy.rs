//! Who may use which protocol: `hadoop.security.authorization`.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use cairn_namenode::config::AuditConfig;
use cairn_namenode::protocol::Protocols;
use cairn_namenode::{NameNode, NameNodeConfig, RunningNameNode, StartError};
use cairn_net::rpc_server::{Call, Service, UserInfo};
use cairn_operate::reconfiguration::Reload;
use cairn_wire::exception::class;
use cairn_wire::proto::{common, hdfs as pb};
use prost::Message;
use serde_json::Value;

use crate::cluster::{CLIENT, Client, SUPERUSER, config, page};

const REFRESH: &str = "org.apache.hadoop.security.authorize.RefreshAuthorizationPolicyProtocol";
const GROUPS: &str = "org.apache.hadoop.tools.GetUserMappingsProtocol";

/// What a file says, a key in each line; nothing where it says `off`.
fn policy(file: &Path) -> Option<Vec<(String, String)>> {
    let text = std::fs::read_to_string(file).unwrap();
    let pair = |line: &str| {
        line.split_once('=').map(|(key, text)| (format!("security.{key}"), text.to_string()))
    };
    (text != "off").then(|| text.lines().filter_map(pair).collect())
}

/// With a policy from `policy` in the folder.
fn obeying(dir: &Path, text: &str) -> NameNodeConfig {
    let file = dir.join("policy");
    std::fs::write(&file, text).unwrap();
    let service_policy = policy(&file);
    let reload = Reload::new(move || {
        let service_policy = policy(&file);
        Ok((NameNodeConfig { service_policy, ..NameNodeConfig::default() }, BTreeMap::new()))
    });
    let audit = AuditConfig { file: Some(dir.join("audit")), ..AuditConfig::default() };
    NameNodeConfig { service_policy, reload: Some(reload), audit, ..config(&dir.join("name")) }
}

async fn refresh(node: &RunningNameNode, user: &str) -> Result<(), (String, String)> {
    let client = Client::new(node, REFRESH, user);
    let request = common::RefreshServiceAclRequestProto {};
    match client
        .call::<_, common::RefreshServiceAclResponseProto>("refreshServiceAcl", &request)
        .await
    {
        Ok(_) => Ok(()),
        Err(_) => Err(client.refused("refreshServiceAcl", &request).await),
    }
}

/// A look at a path over a connection of its own.
async fn look(node: &RunningNameNode, user: &str) -> Result<(), (String, String)> {
    let client = Client::new(node, CLIENT, user);
    let request = pb::GetFileInfoRequestProto { src: "/".to_string() };
    match client.call::<_, pb::GetFileInfoResponseProto>("getFileInfo", &request).await {
        Ok(_) => Ok(()),
        Err(_) => Err(client.refused("getFileInfo", &request).await),
    }
}

fn denied(user: &str, protocol: &str) -> Result<(), (String, String)> {
    let message = format!(
        "User {user} (auth:SIMPLE) is not authorized for protocol interface {protocol}: \
         denied by configured ACL"
    );
    Err((class::AUTHORIZATION.to_string(), message))
}

/// Connections that were refused so far.
async fn refusals(node: &RunningNameNode) -> u64 {
    let port = node.rpc_addr.port();
    let name = format!("/jmx?qry=Hadoop:service=NameNode,name=RpcActivityForPort{port}");
    let beans: Value = serde_json::from_str(&page(node, &name).await).unwrap();
    beans["beans"][0]["RpcAuthorizationFailures"].as_u64().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_lets_users_in_until_another_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let text = "client.protocol.acl=hdfs staff\nrefresh.policy.protocol.acl=hdfs";
    let node = NameNode::start(obeying(dir.path(), text)).await.unwrap();
    assert_eq!(look(&node, "alice").await, Ok(()), "she is in staff");
    assert_eq!(refusals(&node).await, 0);
    assert_eq!(look(&node, "bob").await, denied("bob", CLIENT));
    assert_eq!(refusals(&node).await, 2);
    let bob = Client::new(&node, GROUPS, "bob");
    let request = common::GetGroupsForUserRequestProto { user: "alice".to_string() };
    let answer: common::GetGroupsForUserResponseProto =
        bob.call("getGroupsForUser", &request).await.unwrap();
    assert_eq!(answer.groups, ["staff"], "all may use other protocols");

    let alice = Client::new(&node, CLIENT, "alice");
    alice.file_info("/").await;
    std::fs::write(dir.path().join("policy"), "client.protocol.acl=bob,hdfs").unwrap();
    assert_eq!(refresh(&node, "alice").await, denied("alice", REFRESH));
    assert_eq!(look(&node, "bob").await, denied("bob", CLIENT));
    assert_eq!(refresh(&node, SUPERUSER).await, Ok(()));
    assert_eq!(look(&node, "bob").await, Ok(()));
    assert_eq!(look(&node, "alice").await, denied("alice", CLIENT));
    alice.file_info("/").await.expect("a connection stays as it was let in");

    // What cannot be read changes nothing.
    for (text, class, message) in [
        (
            "client.protocol.hosts=10.0.0.0/33",
            class::ILLEGAL_ARGUMENT,
            "Value [33] not in range [0,32]",
        ),
        (
            "off",
            class::IO,
            "hadoop.security.authorization is switched off in the files: that takes a restart",
        ),
    ] {
        std::fs::write(dir.path().join("policy"), text).unwrap();
        let refused = Err((class.to_string(), message.to_string()));
        assert_eq!(refresh(&node, "alice").await, refused, "who may refresh is not told any more");
        assert_eq!(look(&node, "alice").await, denied("alice", CLIENT));
    }
    node.shutdown().await;
    let audit = loop {
        let audit = std::fs::read_to_string(dir.path().join("audit")).unwrap();
        // It is written by a thread of its own.
        if audit.contains("refresh") {
            break audit;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    };
    let told: Vec<&str> = audit.lines().filter(|line| line.contains("refresh")).collect();
    let [told] = told[..] else { panic!("{audit}") };
    let rest = "allowed=true\tugi=hdfs (auth:SIMPLE)\tip=/127.0.0.1\tcmd=refreshServiceAcl\t\
                src=null\tdst=null\tperm=null\tproto=rpc";
    assert!(told.ends_with(rest), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_for_one_protocol_is_none_for_another() {
    let dir = tempfile::tempdir().unwrap();
    let node = NameNode::start(obeying(dir.path(), "client.protocol.acl=hdfs")).await.unwrap();
    let protocols = Protocols(Arc::clone(node.node()));
    let call = |user: &str| {
        let request = pb::GetFileInfoRequestProto { src: "/".to_string() };
        Call {
            protocol: CLIENT.to_string().into(),
            method: "getFileInfo".to_string().into(),
            version: 1,
            user: UserInfo::simple(user).into(),
            client_id: [0; 16],
            call_id: 3,
            retry_count: 0,
            peer: "127.0.0.1:1".parse().unwrap(),
            body: Bytes::from(request.encode_to_vec()),
            connection_protocol: GROUPS.into(),
            caller_context: None,
            carrier: "rpc",
            state: None,
        }
    };
    assert!(protocols.call_now(&call("alice")).is_none(), "groups may have to be asked for");
    let refused = protocols.call(call("alice")).await.unwrap_err();
    assert_eq!(Err((refused.class, refused.message)), denied("alice", CLIENT));
    protocols.call(call(SUPERUSER)).await.unwrap();
    node.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_authorization_no_list_counts() {
    let dir = tempfile::tempdir().unwrap();
    let node = NameNode::start(obeying(dir.path(), "off")).await.unwrap();
    std::fs::write(dir.path().join("policy"), "client.protocol.acl=hdfs").unwrap();
    let off = "Service Level Authorization not enabled!";
    let refused = Err((class::AUTHORIZATION.to_string(), off.to_string()));
    assert_eq!(refresh(&node, SUPERUSER).await, refused);
    assert_eq!(look(&node, "bob").await, Ok(()));
    node.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_name_node_starts_with_a_policy_that_is_none() {
    let dir = tempfile::tempdir().unwrap();
    let config = obeying(dir.path(), "client.protocol.hosts=10.0.0/8");
    let refused = NameNode::start(config).await.err().expect("no start");
    assert!(matches!(&refused, StartError::Policy(why) if why == "Could not parse [10.0.0/8]"));
}
