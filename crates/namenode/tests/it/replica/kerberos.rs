//! Members that ask clients who they are, whoever leads. Whose ticket a client has, its first token of GSSAPI says: real ones are
//! in `interop/kerberos`.

use super::*;
use crate::cluster::DATANODE;
use crate::delegation::{at, by_token, cancel, issue, issued, list, renew};
use cairn_net::rpc_client::{RpcClient, RpcError};
use cairn_security::block_token::Form;
use cairn_security::token::DelegationTokenId;
use cairn_wire::proto::namenode as nn;

const HANDED_ON: &str = "cairn.HandedOnProtocol";
const NAMENODE_PROTOCOL: &str = "org.apache.hadoop.hdfs.server.protocol.NamenodeProtocol";

impl Three {
    async fn with_kerberos() -> (Three, usize) {
        let mut three = Three::new().await;
        (three.forwards, three.is_secure) = (true, true);
        let leader = three.begin().await;
        (three, leader)
    }

    fn shown(&self, member: usize, protocol: &'static str, shown: Shown) -> RpcClient {
        at(&self.members[NAMES[member]].rpc, protocol, Some(shown))
    }

    fn ticket(&self, member: usize, name: &'static str) -> RpcClient {
        self.shown(member, CLIENT, Shown::Ticket(name))
    }

    fn holder(&self, member: usize, token: &hadoop::TokenProto) -> RpcClient {
        self.shown(member, CLIENT, by_token(token))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_that_follows_asks_who_one_is_and_hands_on_what_it_was_shown() {
    let (mut three, leader) = Three::with_kerberos().await;
    for (member, name) in NAMES.into_iter().enumerate() {
        let addr = &three.members[name].rpc;
        let refused = list(&at(addr, CLIENT, None)).await.unwrap_err();
        assert!(refused.is_remote(class::ACCESS_CONTROL), "{refused}");
        list(&three.ticket(member, "ann@R")).await.unwrap();
        let other = list(&three.ticket(member, "ann@OTHER")).await.unwrap_err();
        assert!(other.to_string().contains("No rules applied to ann@OTHER"), "{other}");
        // Who asks is who has shown it, at the leader too.
        three.client(member).mkdirs(&format!("/by-hdfs-{member}")).await;
        let ann = Client::shown(three.ticket(member, "ann@R"));
        let denied = ann.try_mkdirs("/by-ann").await.unwrap_err();
        assert!(denied.to_string().contains("user=ann"), "{denied}");
        // DataNodes are known by their principals.
        for (ticket, may) in [("ann@R", false), ("hdfs/localhost@R", false), ("dn/any@R", true)] {
            let datanode = three.shown(member, DATANODE, Shown::Ticket(ticket));
            let error = list(&datanode).await.unwrap_err();
            assert_eq!(
                !error.is_remote(class::AUTHORIZATION),
                may,
                "{ticket} at {member}: {error}"
            );
        }
    }
    let token = issued(&three.ticket(leader, "ann@R")).await;
    for (member, name) in NAMES.into_iter().enumerate() {
        for stranger in [Shown::Ticket("ann@R"), Shown::Ticket("hdfs/other@R"), by_token(&token)] {
            let client = three.shown(member, HANDED_ON, stranger);
            let error = open_session(&client).await.unwrap_err();
            assert!(error.is_remote(class::AUTHORIZATION), "{error}");
        }
        let simple = at(&three.members[name].rpc, HANDED_ON, None);
        assert!(open_session(&simple).await.unwrap_err().is_remote(class::ACCESS_CONTROL));
        let client = three.shown(member, HANDED_ON, Shown::Ticket(delegation::NAMENODE));
        open_session(&client).await.unwrap();
        // The ticket is not enough.
        let call = pb::HandOnRequestProto {
            session: vec![7; 32],
            number: 1,
            proof: vec![0; 32],
            call: Vec::new(),
        };
        let refused: Result<pb::HandOnResponseProto, _> = client.call("call", &call).await;
        assert!(refused.unwrap_err().is_remote("cairn.NoSession"));
    }
    three.stop_all().await;
}

async fn open_session(client: &RpcClient) -> Result<pb::HandOnSessionResponseProto, RpcError> {
    client.call("openSession", &pb::HandOnSessionRequestProto { nonce: vec![7; 32] }).await
}

/// Tries until a token is refused by a member.
async fn until_refused(three: &Three, member: usize, token: &hadoop::TokenProto) -> RpcError {
    let begun = Instant::now();
    loop {
        match list(&three.holder(member, token)).await {
            Err(error) => return error,
            Ok(()) => assert!(begun.elapsed() < PATIENCE, "it is still good"),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_good_at_all_members_until_it_is_cancelled_and_outlives_a_leader() {
    let (mut three, leader) = Three::with_kerberos().await;
    let [first, second] = [1, 2].map(|step| (leader + step) % 3);
    issued(&three.ticket(leader, "ann@R")).await;
    // Those who follow judge a token that was issued just now, wherever it was asked for.
    for member in [first, second, leader] {
        let token = issue(&three.ticket(member, "ann@R")).await.unwrap();
        for shown in [second, first, leader] {
            list(&three.holder(shown, &token)).await.unwrap();
            let again = issue(&three.holder(shown, &token)).await.unwrap_err();
            assert!(again.to_string().contains("only with kerberos"), "{again}");
        }
    }
    let token = issue(&three.ticket(first, "ann@R")).await.unwrap();
    let id = DelegationTokenId::decode(&token.identifier).unwrap();
    for member in 0..3 {
        let mut forged = token.clone();
        forged.password[0] ^= 1;
        let error = list(&three.holder(member, &forged)).await.unwrap_err();
        assert!(error.to_string().contains("Mismatched response"), "{error}");
        let others = DelegationTokenId { owner: "hdfs".into(), ..id.clone() };
        let unissued = DelegationTokenId { sequence: id.sequence + 1000, ..id.clone() };
        for identifier in [others.encode(), unissued.encode()] {
            let forged = hadoop::TokenProto { identifier, ..token.clone() };
            let begun = Instant::now();
            let error = list(&three.holder(member, &forged)).await.unwrap_err();
            assert!(error.to_string().contains("can't be found in cache"), "{error}");
            assert!(begun.elapsed() < PATIENCE / 6, "it is waited for too long");
        }
        let mut cut = token.clone();
        cut.identifier.truncate(4);
        assert!(list(&three.holder(member, &cut)).await.is_err());
    }
    let until = renew(&three.ticket(second, "yarn/other@R"), &token).await.unwrap();
    assert!(until > id.issued_ms as u64);
    assert!(renew(&three.ticket(first, "ann@R"), &token).await.is_err());
    assert!(cancel(&three.ticket(second, "bob@R"), &token).await.is_err());
    // Another leader has the keys that prove it, and the token.
    three.stop(leader).await;
    three.leader().await;
    for member in [first, second] {
        list(&three.holder(member, &token)).await.unwrap();
    }
    cancel(&three.ticket(second, "yarn/other@R"), &token).await.unwrap();
    for member in [first, second] {
        let gone = until_refused(&three, member, &token).await;
        assert!(gone.to_string().contains("can't be found in cache"), "{gone}");
    }
    for member in [first, second] {
        three.stop(member).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn datanodes_have_the_keys_of_who_leads_next_before_it_leads() {
    let mut three = Three::new().await;
    let key_interval = Duration::from_secs(4);
    three.block_tokens =
        Some(BlockTokenConfig { key_interval, lifetime: key_interval, form: Form::Protobuf });
    let leader = three.begin().await;
    let members = three.members.clone();
    let addr = |member: usize| members[NAMES[member]].rpc.clone();
    let mut given = Vec::new();
    for member in 0..3 {
        let datanode = FakeDataNode::start_at(&addr(member), 1, &[]).await;
        assert!(datanode.keys().is_block_token_enabled, "{member}");
        given.push((datanode.keys().clone(), datanode));
    }
    // A member that follows rolls its keys, and tells.
    let follower = (leader + 1) % 3;
    let (first, datanode) = &given[follower];
    let begun = Instant::now();
    let next = loop {
        let told = datanode.heartbeat().await;
        let mut updates = told.into_iter().filter_map(|command| command.key_update_cmd);
        if let Some(update) = updates.next_back()
            && update.keys.current_key.key_id != first.current_key.key_id
        {
            break update.keys;
        }
        assert!(begun.elapsed() < PATIENCE, "no key comes");
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    let has = |keys: &pb::ExportedBlockKeysProto, key: &pb::BlockKeyProto| {
        keys.all_keys
            .iter()
            .any(|known| known.key_id == key.key_id && known.key_bytes == key.key_bytes)
    };
    assert!(has(first, &next.current_key), "it was given before it proved anything");
    three.stop(leader).await;
    let leader = three.leader().await;
    let updates =
        given[leader].1.heartbeat().await.into_iter().filter_map(|cmd| cmd.key_update_cmd);
    let mut known = vec![given[leader].0.clone(), next];
    known.extend(updates.map(|update| update.keys));
    let rpc = Client::at(&addr(leader), NAMENODE_PROTOCOL, "hdfs");
    let exported: nn::GetBlockKeysResponseProto =
        rpc.call("getBlockKeys", &nn::GetBlockKeysRequestProto {}).await.unwrap();
    let exported = exported.keys.unwrap();
    assert!(known.iter().any(|keys| has(keys, &exported.current_key)), "a key is new to DataNodes");
    for member in (0..3).filter(|member| three.running[*member].is_some()).collect::<Vec<_>>() {
        three.stop(member).await;
    }
}
