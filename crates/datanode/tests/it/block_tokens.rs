//! Who may do what with blocks, once the NameNode has sent keys.

use crate::cluster::*;
use cairn_datanode::DataNodeConfig;
use cairn_net::rpc_client::{RpcClient, RpcClientOptions, SharedCredentials};
use cairn_security::block_keys::{BlockKeys, Lives, Random, SECRET_LEN};
use cairn_security::block_token::{AccessMode, BlockTokenId, Form};
use cairn_security::client::ShownToken;
use cairn_security::digest_md5::Secret;
use cairn_wire::exception::class;
use cairn_wire::proto::common::TokenProto;
use cairn_wire::proto::datanode::{
    DatanodeCommandProto, DatanodeCommandProtoType, KeyUpdateCommandProto,
};
use cairn_wire::proto::hdfs::*;
use cairn_wire::transfer::Op;
use prost::Message;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const CLIENT_DATANODE: &str = "org.apache.hadoop.hdfs.protocol.ClientDatanodeProtocol";
const MINUTE_MS: i64 = 60_000;
const ID: i64 = 1 << 30;

fn now_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as i64
}

fn keys(secret: u8) -> BlockKeys {
    let lives = Lives { key_ms: MINUTE_MS, token_ms: MINUTE_MS };
    let random = |number| Random { number, secret: [secret; SECRET_LEN] };
    BlockKeys::begin(lives, Form::Legacy, now_ms(), [random(2), random(4)])
}

fn token(keys: &BlockKeys, id: i64, mode: AccessMode) -> TokenProto {
    keys.issue_own("ann", POOL, id, mode, now_ms())
}

async fn send_keys(cluster: &Cluster, index: usize, keys: &BlockKeys) {
    let update = KeyUpdateCommandProto { keys: keys.exported() };
    cluster.send_command(
        index,
        DatanodeCommandProto {
            key_update_cmd: Some(update),
            ..command(DatanodeCommandProtoType::KeyUpdateCommand)
        },
    );
    let uuid = cluster.uuid(index);
    cluster.wait("the command's delivery", |record| !record.commands.contains_key(&uuid)).await;
    let told = cluster.name_node.record.lock().unwrap().heartbeats;
    cluster.wait("the next heartbeat", |record| record.heartbeats > told + 1).await;
}

/// The status that an operation is answered with; none if the connection is just closed.
async fn status(cluster: &Cluster, op: Op, request: &impl Message) -> Option<Status> {
    let mut stream = cluster.connect(0).await;
    stream.writer.send_op(op, request).await.unwrap();
    let answer = stream.reader.read_message::<BlockOpResponseProto>("answer").await.ok()?;
    if op == Op::WriteBlock && answer.status == Status::ErrorAccessToken as i32 {
        let addr = cluster.node(0).xfer_addr().to_string();
        assert_eq!(answer.first_bad_link, Some(addr));
    }
    Some(Status::try_from(answer.status).unwrap())
}

/// An operation with a token: what it is answered with.
async fn with_token(cluster: &Cluster, op: Op, token: TokenProto) -> Option<Status> {
    let mut base = base_header(block(ID, 1001, 3000));
    base.token = Some(token);
    let header = ClientOperationHeaderProto { base_header: base.clone(), client_name: "me".into() };
    match op {
        Op::ReadBlock => {
            let request = OpReadBlockProto { header, len: 3000, ..Default::default() };
            status(cluster, op, &request).await
        }
        Op::WriteBlock => {
            let request = write_request(block(ID, 1001, 3000), Stage::PipelineSetupCreate, vec![]);
            status(cluster, op, &OpWriteBlockProto { header, ..request }).await
        }
        Op::TransferBlock => {
            let targets = vec![cluster.info(0)];
            let request = OpTransferBlockProto { header, targets, ..Default::default() };
            status(cluster, op, &request).await
        }
        Op::CopyBlock => status(cluster, op, &OpCopyBlockProto { header: base }).await,
        Op::ReplaceBlock => {
            let (source, del_hint) = (cluster.info(0), cluster.uuid(0));
            let request =
                OpReplaceBlockProto { header: base, source, del_hint, ..Default::default() };
            status(cluster, op, &request).await
        }
        Op::BlockChecksum => {
            let request = OpBlockChecksumProto { header: base, ..Default::default() };
            status(cluster, op, &request).await
        }
        Op::BlockGroupChecksum => {
            let request = OpBlockGroupChecksumProto { header: base, ..Default::default() };
            status(cluster, op, &request).await
        }
        _ => {
            let request = OpRequestShortCircuitAccessProto {
                header: base,
                max_version: 1,
                ..Default::default()
            };
            status(cluster, op, &request).await
        }
    }
}

const GUARDED: [(Op, AccessMode); 8] = [
    (Op::ReadBlock, AccessMode::Read),
    (Op::WriteBlock, AccessMode::Write),
    (Op::TransferBlock, AccessMode::Copy),
    (Op::CopyBlock, AccessMode::Copy),
    (Op::ReplaceBlock, AccessMode::Replace),
    (Op::BlockChecksum, AccessMode::Read),
    (Op::BlockGroupChecksum, AccessMode::Read),
    (Op::RequestShortCircuitFds, AccessMode::Read),
];

#[tokio::test(flavor = "multi_thread")]
async fn every_operation_takes_its_token_and_no_other() {
    let cluster = Cluster::start(1).await;
    write_block(&cluster, &[0], ID, 1001, &bytes(3000)).await;
    let keys = keys(1);
    send_keys(&cluster, 0, &keys).await;
    let refused = Some(Status::ErrorAccessToken);
    for (op, mode) in GUARDED {
        let good = token(&keys, ID, mode);
        let id = BlockTokenId::decode(&good.identifier).unwrap();
        let mut forged = good.clone();
        forged.password[0] ^= 1;
        let mut cut = good.clone();
        cut.identifier.truncate(9);
        let old = keys.issue_own("ann", POOL, ID, mode, now_ms() - 2 * MINUTE_MS);
        let other_pool = keys.issue_own("ann", "BP-2", ID, mode, now_ms());
        let longer = BlockTokenId { expires_ms: i64::MAX, ..id }.encode(Form::Legacy);
        let longer = TokenProto { identifier: longer, ..good.clone() };
        let mut others = vec![
            ("none", TokenProto::default()),
            ("forged", forged),
            ("cut", cut),
            ("ended", old),
            ("of another pool", other_pool),
            ("made to last", longer),
            ("of another block", token(&keys, ID + 1, mode)),
            ("by another key", token(&self::keys(2), ID, mode)),
        ];
        for other in AccessMode::ALL.into_iter().filter(|other| *other != mode) {
            others.push((other.name(), token(&keys, ID, other)));
        }
        for (what, wrong) in others {
            assert_eq!(with_token(&cluster, op, wrong).await, refused, "{op:?} {what}");
        }
        assert_ne!(with_token(&cluster, op, good).await, refused, "{op:?}");
    }
    // Who copies is not answered.
    let mut request = write_request(block(ID + 1, 1001, 9), Stage::PipelineSetupCreate, vec![]);
    request.header.client_name = String::new();
    assert_eq!(status(&cluster, Op::WriteBlock, &request).await, None);
    assert!(cluster.files(0, ID + 1).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_length_of_a_replica_is_for_who_shows_a_token() {
    let cluster = Cluster::start(1).await;
    write_block(&cluster, &[0], ID, 1001, &bytes(3000)).await;
    let ask = async |method: &str, token: Option<TokenProto>| {
        let shown = token.map(|token| {
            let (identifier, password) = (token.identifier, token.password);
            SharedCredentials(Arc::new(ShownToken(Secret { identifier, password })))
        });
        let options = RpcClientOptions { credentials: shown, ..RpcClientOptions::default() };
        let addr = cluster.node(0).ipc_addr();
        let client = RpcClient::new(addr, CLIENT_DATANODE, "ann", options);
        let request = GetReplicaVisibleLengthRequestProto { block: block(ID, 1001, 3000) };
        let answer = client.call(method, &request).await;
        answer.map(|answer: GetReplicaVisibleLengthResponseProto| answer.length)
    };
    let method = "getReplicaVisibleLength";
    assert_eq!(ask(method, None).await.unwrap(), 3000);
    let keys = keys(1);
    send_keys(&cluster, 0, &keys).await;
    assert!(ask(method, None).await.unwrap_err().is_remote(class::INVALID_TOKEN));
    let good = token(&keys, ID, AccessMode::Read);
    assert_eq!(ask(method, Some(good.clone())).await.unwrap(), 3000);
    for wrong in [token(&keys, ID + 1, AccessMode::Read), token(&keys, ID, AccessMode::Write)] {
        let error = ask(method, Some(wrong)).await.unwrap_err();
        assert!(error.is_remote(class::INVALID_TOKEN), "{error}");
    }
    let mut forged = good.clone();
    forged.password.pop();
    assert!(ask(method, Some(forged)).await.unwrap_err().to_string().contains("Mismatched"));
    // Whomever it names, it lets nobody administer.
    let own = DataNodeConfig::default().user;
    let token = keys.issue_own(&own, POOL, ID, AccessMode::Read, now_ms());
    let error = ask("evictWriters", Some(token)).await.unwrap_err();
    assert!(error.is_remote(class::ACCESS_CONTROL), "{error}");
}

/// A DataNode shows others tokens of its own.
#[tokio::test(flavor = "multi_thread")]
async fn datanodes_copy_among_each_other() {
    let cluster = Cluster::start(2).await;
    write_block(&cluster, &[0], ID, 1001, &bytes(3000)).await;
    let keys = keys(1);
    for index in 0..2 {
        send_keys(&cluster, index, &keys).await;
    }
    let mut base = base_header(block(ID, 1001, 3000));
    base.token = Some(token(&keys, ID, AccessMode::Copy));
    let header = ClientOperationHeaderProto { base_header: base, client_name: "me".into() };
    let targets = vec![cluster.info(1)];
    let request = OpTransferBlockProto { header, targets, ..Default::default() };
    assert_eq!(status(&cluster, Op::TransferBlock, &request).await, Some(Status::Success));
    for _ in 0..200 {
        if !cluster.files(1, ID).is_empty() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("there is no copy");
}
