//! Calls that come again because their answer was lost in a restart.

use cairn_namenode::{NameNode, NameNodeConfig};
use cairn_net::Boxed;
use cairn_net::rpc_client::{CallNumber, RpcClient, RpcClientOptions};
use cairn_wire::exception::class;
use cairn_wire::proto::hdfs as pb;
use prost::Message;
use std::collections::BTreeSet;

use crate::cluster::{CLIENT, Client, FakeDataNode, SUPERUSER, config, create_request, finish};
use crate::key_server::KeyServer;

/// What Hadoop 3.5.0 marks `@AtMostOnce` in its `ClientProtocol`, but for symbolic links, which are always refused,
/// and `saveNamespace`, which changes no state.
const AT_MOST_ONCE: [&str; 27] = [
    "create",
    "append",
    "rename",
    "concat",
    "rename2",
    "delete",
    "updatePipeline",
    "createSnapshot",
    "deleteSnapshot",
    "renameSnapshot",
    "addCacheDirective",
    "modifyCacheDirective",
    "removeCacheDirective",
    "addCachePool",
    "modifyCachePool",
    "removeCachePool",
    "setXAttr",
    "removeXAttr",
    "satisfyStoragePolicy",
    "createEncryptionZone",
    "reencryptEncryptionZone",
    "setErasureCodingPolicy",
    "addErasureCodingPolicies",
    "removeErasureCodingPolicy",
    "enableErasureCodingPolicy",
    "disableErasureCodingPolicy",
    "unsetErasureCodingPolicy",
];

/// The bytes of an answer, or the exception.
type Answer = Boxed<'static, Result<Vec<u8>, String>>;

struct Sent {
    method: &'static str,
    number: CallNumber,
    answer: Vec<u8>,
    again: Box<dyn Fn(RpcClient, CallNumber) -> Answer>,
}

struct Sender {
    rpc: RpcClient,
    sent: Vec<Sent>,
}

async fn send<A: Message, B: Message + Default>(
    rpc: RpcClient,
    method: &str,
    request: &A,
    number: CallNumber,
) -> Result<B, String> {
    let answer = rpc.call_numbered(method, request, number).await;
    answer.map_err(|error| error.to_string())
}

impl Sender {
    async fn send<A: Message + Clone + 'static, B: Message + Default + 'static>(
        &mut self,
        method: &'static str,
        request: A,
    ) -> B {
        let number = self.rpc.new_call();
        let answer: B = send(self.rpc.clone(), method, &request, number).await.unwrap();
        self.sent.push(Sent {
            method,
            number,
            answer: answer.encode_to_vec(),
            again: Box::new(move |rpc, number| {
                let request = request.clone();
                Box::pin(async move {
                    let answer: B = send(rpc, method, &request, number).await?;
                    Ok(answer.encode_to_vec())
                })
            }),
        });
        answer
    }
}

fn text(text: &str) -> String {
    text.to_string()
}

/// Calls on files and names.
async fn write(s: &mut Sender, client: &Client, datanodes: &[FakeDataNode]) {
    const HOLDER: &str = "writer";
    let created: pb::CreateResponseProto = s.send("create", create_request("/a", HOLDER)).await;
    assert!(created.fs.is_some());
    assert!(client.complete("/a", HOLDER, None).await);
    let append = pb::AppendRequestProto { src: text("/a"), client_name: text(HOLDER), flag: None };
    let _: pb::AppendResponseProto = s.send("append", append).await;
    let located = client.add_block("/a", HOLDER, None).await;
    let bump = pb::UpdateBlockForPipelineRequestProto {
        block: located.b.clone(),
        client_name: text(HOLDER),
    };
    let bumped: pb::UpdateBlockForPipelineResponseProto =
        client.call("updateBlockForPipeline", &bump).await.unwrap();
    let update = pb::UpdatePipelineRequestProto {
        client_name: text(HOLDER),
        old_block: located.b.clone(),
        new_block: bumped.block.b,
        new_nodes: located.locs.iter().map(|info| info.id.clone()).collect(),
        storage_i_ds: located.storage_i_ds.clone(),
    };
    let _: pb::UpdatePipelineResponseProto = s.send("updatePipeline", update).await;
    client.mkdirs("/d").await;
    for path in ["/d/b", "/d/c"] {
        client.create(path, HOLDER).await;
        let located = client.add_block(path, HOLDER, None).await;
        let last = finish(datanodes, &located, 7, None).await;
        assert!(client.complete(path, HOLDER, Some(last)).await);
    }
    let concat = pb::ConcatRequestProto { trg: text("/d/b"), srcs: vec![text("/d/c")] };
    let _: pb::ConcatResponseProto = s.send("concat", concat).await;
    let rename = pb::RenameRequestProto { src: text("/d/b"), dst: text("/d/e") };
    let renamed: pb::RenameResponseProto = s.send("rename", rename).await;
    assert!(renamed.result);
    let rename = pb::Rename2RequestProto {
        src: text("/d/e"),
        dst: text("/d/f"),
        overwrite_dest: false,
        move_to_trash: None,
    };
    let _: pb::Rename2ResponseProto = s.send("rename2", rename).await;
    let delete = pb::DeleteRequestProto { src: text("/d/f"), recursive: false };
    let deleted: pb::DeleteResponseProto = s.send("delete", delete).await;
    assert!(deleted.result);
}

/// Calls on snapshots, caching, attributes and policies.
async fn change(s: &mut Sender, client: &Client) {
    let root = text("/d");
    let allow = pb::AllowSnapshotRequestProto { snapshot_root: root.clone() };
    let _: pb::AllowSnapshotResponseProto = client.call("allowSnapshot", &allow).await.unwrap();
    let create =
        pb::CreateSnapshotRequestProto { snapshot_root: root.clone(), snapshot_name: None };
    let created: pb::CreateSnapshotResponseProto = s.send("createSnapshot", create).await;
    let name = created.snapshot_path.rsplit('/').next().unwrap().to_string();
    let rename = pb::RenameSnapshotRequestProto {
        snapshot_root: root.clone(),
        snapshot_old_name: name,
        snapshot_new_name: text("t"),
    };
    let _: pb::RenameSnapshotResponseProto = s.send("renameSnapshot", rename).await;
    let delete =
        pb::DeleteSnapshotRequestProto { snapshot_root: root.clone(), snapshot_name: text("t") };
    let _: pb::DeleteSnapshotResponseProto = s.send("deleteSnapshot", delete).await;

    let pool = |mode| pb::CachePoolInfoProto {
        pool_name: Some(text("pool")),
        group_name: Some(text("staff")),
        mode: Some(mode),
        ..Default::default()
    };
    let add = pb::AddCachePoolRequestProto { info: pool(0o755) };
    let _: pb::AddCachePoolResponseProto = s.send("addCachePool", add).await;
    let modify = pb::ModifyCachePoolRequestProto { info: pool(0o700) };
    let _: pb::ModifyCachePoolResponseProto = s.send("modifyCachePool", modify).await;
    let directive = pb::CacheDirectiveInfoProto {
        path: Some(root.clone()),
        pool: Some(text("pool")),
        ..Default::default()
    };
    let add = pb::AddCacheDirectiveRequestProto { info: directive, cache_flags: None };
    let added: pb::AddCacheDirectiveResponseProto = s.send("addCacheDirective", add).await;
    let modify = pb::ModifyCacheDirectiveRequestProto {
        info: pb::CacheDirectiveInfoProto {
            id: Some(added.id),
            replication: Some(2),
            ..Default::default()
        },
        cache_flags: None,
    };
    let _: pb::ModifyCacheDirectiveResponseProto = s.send("modifyCacheDirective", modify).await;
    let remove = pb::RemoveCacheDirectiveRequestProto { id: added.id };
    let _: pb::RemoveCacheDirectiveResponseProto = s.send("removeCacheDirective", remove).await;
    let remove = pb::RemoveCachePoolRequestProto { pool_name: text("pool") };
    let _: pb::RemoveCachePoolResponseProto = s.send("removeCachePool", remove).await;

    let attribute = pb::XAttrProto {
        namespace: pb::XAttrProtoXAttrNamespaceProto::User as i32,
        name: text("note"),
        value: Some(vec![1]),
    };
    let set = pb::SetXAttrRequestProto {
        src: root.clone(),
        x_attr: Some(attribute.clone()),
        flag: Some(pb::XAttrSetFlagProto::XattrCreate as u32),
    };
    let _: pb::SetXAttrResponseProto = s.send("setXAttr", set).await;
    let satisfy = pb::SatisfyStoragePolicyRequestProto { src: root.clone() };
    let _: pb::SatisfyStoragePolicyResponseProto = s.send("satisfyStoragePolicy", satisfy).await;
    let remove = pb::RemoveXAttrRequestProto { src: root.clone(), x_attr: Some(attribute) };
    let _: pb::RemoveXAttrResponseProto = s.send("removeXAttr", remove).await;

    client.mkdirs("/z").await;
    let create =
        pb::CreateEncryptionZoneRequestProto { src: text("/z"), key_name: Some(text("k")) };
    let _: pb::CreateEncryptionZoneResponseProto = s.send("createEncryptionZone", create).await;
    let action = pb::ReencryptActionProto::StartReencrypt as i32;
    let reencrypt = pb::ReencryptEncryptionZoneRequestProto { action, zone: text("/z") };
    let _: pb::ReencryptEncryptionZoneResponseProto =
        s.send("reencryptEncryptionZone", reencrypt).await;

    let policy = pb::ErasureCodingPolicyProto {
        schema: Some(pb::ECSchemaProto {
            codec_name: text("rs"),
            data_units: 4,
            parity_units: 2,
            ..Default::default()
        }),
        cell_size: Some(1 << 16),
        ..Default::default()
    };
    let add = pb::AddErasureCodingPoliciesRequestProto { ec_policies: vec![policy] };
    let added: pb::AddErasureCodingPoliciesResponseProto =
        s.send("addErasureCodingPolicies", add).await;
    let name = added.responses[0].policy.name.clone().unwrap();
    let ec_policy_name = name.clone();
    let enable = pb::EnableErasureCodingPolicyRequestProto { ec_policy_name };
    let _: pb::EnableErasureCodingPolicyResponseProto =
        s.send("enableErasureCodingPolicy", enable).await;
    let set = pb::SetErasureCodingPolicyRequestProto {
        src: root.clone(),
        ec_policy_name: Some(name.clone()),
    };
    let _: pb::SetErasureCodingPolicyResponseProto = s.send("setErasureCodingPolicy", set).await;
    let unset = pb::UnsetErasureCodingPolicyRequestProto { src: root };
    let _: pb::UnsetErasureCodingPolicyResponseProto =
        s.send("unsetErasureCodingPolicy", unset).await;
    let disable = pb::DisableErasureCodingPolicyRequestProto { ec_policy_name: name.clone() };
    let _: pb::DisableErasureCodingPolicyResponseProto =
        s.send("disableErasureCodingPolicy", disable).await;
    let remove = pb::RemoveErasureCodingPolicyRequestProto { ec_policy_name: name };
    let _: pb::RemoveErasureCodingPolicyResponseProto =
        s.send("removeErasureCodingPolicy", remove).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_call_gets_its_first_answer_after_a_restart_also_in_safe_mode() {
    let dir = tempfile::tempdir().unwrap();
    let keys = KeyServer::start().await;
    let settings = || NameNodeConfig { encryption: keys.config(), ..config(dir.path()) };
    let node = NameNode::start(settings()).await.unwrap();
    let mut datanodes = Vec::new();
    for number in 0..3 {
        datanodes.push(FakeDataNode::start(&node, number, &[]).await);
    }
    let client = Client::new(&node, CLIENT, SUPERUSER);
    let options = RpcClientOptions::default;
    let rpc = RpcClient::new(node.rpc_addr.to_string(), CLIENT, SUPERUSER, options());
    let identity = rpc.client_id();
    let mut s = Sender { rpc, sent: Vec::new() };
    write(&mut s, &client, &datanodes).await;
    change(&mut s, &client).await;
    let methods: BTreeSet<&str> = s.sent.iter().map(|sent| sent.method).collect();
    assert_eq!(methods, BTreeSet::from(AT_MOST_ONCE));
    let before = client.list("/").await;
    drop(datanodes);
    node.shutdown().await;

    let node = NameNode::start(settings()).await.unwrap();
    let client = Client::new(&node, CLIENT, SUPERUSER);
    assert!(client.safe_mode(pb::SafeModeActionProto::SafemodeEnter).await);
    let addr = node.rpc_addr.to_string();
    let rpc = RpcClient::with_client_id(addr, CLIENT, SUPERUSER, options(), identity);
    for sent in &s.sent {
        let number = CallNumber { retry_count: 1, ..sent.number };
        let answer = (sent.again)(rpc.clone(), number).await;
        assert_eq!(answer.as_ref(), Ok(&sent.answer), "{}", sent.method);
        // A new call is refused.
        let new = CallNumber { call_id: sent.number.call_id + 1000, retry_count: 0 };
        let refused = (sent.again)(rpc.clone(), new).await.unwrap_err();
        assert!(refused.contains(class::SAFE_MODE), "{}: {refused}", sent.method);
    }
    assert_eq!(client.list("/").await, before);
    node.shutdown().await;
}

/// The file may have another path by the time that the reopened block is looked up, and when a call comes again.
#[tokio::test(flavor = "multi_thread")]
async fn an_append_finds_the_block_of_a_file_that_was_moved_meanwhile() {
    let dir = tempfile::tempdir().unwrap();
    let (node, datanodes) = crate::cluster::start(dir.path(), 3).await;
    let client = Client::new(&node, CLIENT, SUPERUSER);
    client.create("/f", "writer").await;
    let located = client.add_block("/f", "writer", None).await;
    let last = finish(&datanodes, &located, 7, None).await;
    assert!(client.complete("/f", "writer", Some(last.clone())).await);
    let options = RpcClientOptions::default();
    let rpc = RpcClient::new(node.rpc_addr.to_string(), CLIENT, SUPERUSER, options);
    let number = rpc.new_call();
    let append =
        pb::AppendRequestProto { src: text("/f"), client_name: text("writer"), flag: None };
    let first: pb::AppendResponseProto =
        send(rpc.clone(), "append", &append, number).await.unwrap();
    assert_eq!(first.block.unwrap().b, last);
    let rename = pb::RenameRequestProto { src: text("/f"), dst: text("/g") };
    let _: pb::RenameResponseProto = client.call("rename", &rename).await.unwrap();
    let again: pb::AppendResponseProto = send(rpc, "append", &append, number).await.unwrap();
    assert_eq!(again.block.unwrap().b, last);
    node.shutdown().await;
}
