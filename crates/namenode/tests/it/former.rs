//! A store that an earlier build has written is read, and gone on with.
//!
//! `stores/5119dd8` holds the folder of a NameNode of that commit, which was killed with its last entries in the log
//! only. It was driven over sockets by [`scene`], once before a checkpoint and once after it; `5119dd8.facts` is what the
//! same build told of that folder after another start, and `5119dd8.calls` are the calls whose answers it
//! keeps, with what it answered when they came again then. [`make_a_store`] writes all three.

mod back;
mod facts;
mod pack;
mod scene;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use cairn_namenode::{NameNode, NameNodeConfig, RunningNameNode};
use cairn_net::rpc_client::{CallNumber, RpcClient, RpcClientOptions};
use cairn_stripe::geometry::internal_block_len;
use cairn_stripe::{Policy, UnitIndex};
use cairn_wire::exception::class;
use cairn_wire::proto::hdfs as pb;
use prost::Message;
use scene::{Recorder, WRITER, hex};

use crate::cluster::{CLIENT, Client, FakeDataNode, SUPERUSER, config, finish};

/// A hundred years: answers must not be forgotten, and reading must change no access time.
const LONG_MS: u64 = 100 * 365 * 24 * 3600 * 1000;

/// Files of the stores.
fn stored(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stores").join(name)
}

fn bytes_of(hex: &str) -> Vec<u8> {
    let digits = |at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
    (0..hex.len()).step_by(2).map(digits).collect()
}

/// A call and the answer that it got.
struct Kept {
    number: CallNumber,
    method: String,
    request: Vec<u8>,
    answer: Vec<u8>,
}

/// Who has called, and what.
fn kept_calls(text: &str) -> ([u8; 16], Vec<Kept>) {
    let mut lines = text.lines();
    let identity = bytes_of(lines.next().unwrap()).try_into().unwrap();
    let kept = lines.map(|line| {
        let parts: Vec<&str> = line.split(' ').collect();
        let bytes = |at: usize| bytes_of(parts[at].trim_matches(['[', ']']));
        let call_id = parts[0].parse().unwrap();
        let number = CallNumber { call_id, retry_count: 1 };
        Kept { number, method: parts[1].to_string(), request: bytes(2), answer: bytes(3) }
    });
    (identity, kept.collect())
}

/// Makes a call with a request that is encoded already.
async fn again<A: Message + Default, B: Message + Default>(
    rpc: &RpcClient,
    kept: &Kept,
    number: CallNumber,
) -> Result<Vec<u8>, String> {
    let request = A::decode(&kept.request[..]).unwrap();
    let answer: Result<B, _> = rpc.call_numbered(&kept.method, &request, number).await;
    answer.map(|answer| answer.encode_to_vec()).map_err(|error| error.to_string())
}

macro_rules! by_method {
    ($rpc:expr, $kept:expr, $number:expr; $($method:literal => $request:ident, $answer:ident;)*) => {
        match $kept.method.as_str() {
            $($method => again::<pb::$request, pb::$answer>($rpc, $kept, $number).await,)*
            other => panic!("{other} is not known here"),
        }
    };
}

async fn call_again(rpc: &RpcClient, kept: &Kept, number: CallNumber) -> Result<Vec<u8>, String> {
    by_method!(rpc, kept, number;
        "addCacheDirective" => AddCacheDirectiveRequestProto, AddCacheDirectiveResponseProto;
        "addCachePool" => AddCachePoolRequestProto, AddCachePoolResponseProto;
        "addErasureCodingPolicies" =>
            AddErasureCodingPoliciesRequestProto, AddErasureCodingPoliciesResponseProto;
        "append" => AppendRequestProto, AppendResponseProto;
        "concat" => ConcatRequestProto, ConcatResponseProto;
        "create" => CreateRequestProto, CreateResponseProto;
        "createSnapshot" => CreateSnapshotRequestProto, CreateSnapshotResponseProto;
        "delete" => DeleteRequestProto, DeleteResponseProto;
        "deleteSnapshot" => DeleteSnapshotRequestProto, DeleteSnapshotResponseProto;
        "disableErasureCodingPolicy" =>
            DisableErasureCodingPolicyRequestProto, DisableErasureCodingPolicyResponseProto;
        "enableErasureCodingPolicy" =>
            EnableErasureCodingPolicyRequestProto, EnableErasureCodingPolicyResponseProto;
        "rename" => RenameRequestProto, RenameResponseProto;
        "rename2" => Rename2RequestProto, Rename2ResponseProto;
        "renameSnapshot" => RenameSnapshotRequestProto, RenameSnapshotResponseProto;
        "satisfyStoragePolicy" =>
            SatisfyStoragePolicyRequestProto, SatisfyStoragePolicyResponseProto;
        "setErasureCodingPolicy" =>
            SetErasureCodingPolicyRequestProto, SetErasureCodingPolicyResponseProto;
        "setXAttr" => SetXAttrRequestProto, SetXAttrResponseProto;
        "updatePipeline" => UpdatePipelineRequestProto, UpdatePipelineResponseProto;
    )
}

/// Says where two texts differ first.
fn assert_same(told: &str, want: &str) {
    for (number, (told, want)) in told.lines().zip(want.lines()).enumerate() {
        assert_eq!(told, want, "line {}", number + 1);
    }
    assert_eq!(told.lines().count(), want.lines().count());
}

/// What DataNodes have of all blocks that are complete, by the DataNode's number.
async fn replicas(client: &Client, facts: &str) -> BTreeMap<u16, BTreeMap<u64, pb::BlockProto>> {
    let mut on: BTreeMap<u16, BTreeMap<u64, pb::BlockProto>> = BTreeMap::new();
    for line in facts.lines().filter(|line| line.starts_with("blocks ")) {
        let path = line.split(' ').nth(1).unwrap();
        let file = client.locations(path).await;
        let complete = match file.under_construction && !file.is_last_block_complete {
            true => &file.blocks[..file.blocks.len() - 1],
            false => &file.blocks[..],
        };
        let name = file.ec_policy.as_ref().filter(|_| !complete.is_empty());
        let policy = name.and_then(|policy| policy.name.clone()).map(|name| {
            let known = Policy::built_in().into_iter().find(|it| it.name == name);
            known.expect("nothing is complete with other policies")
        });
        for block in complete {
            let len = block.b.num_bytes();
            let units = policy.as_ref().map_or(3, |policy| policy.schema.units());
            for number in 0..units as u8 {
                let (unit, len) = match &policy {
                    Some(policy) => (number, internal_block_len(policy, len, UnitIndex(number))),
                    None => (0, len),
                };
                let block_id = block.b.block_id + u64::from(unit);
                let gen_stamp = block.b.generation_stamp;
                let replica = pb::BlockProto { block_id, gen_stamp, num_bytes: Some(len) };
                on.entry(number.into()).or_default().insert(block_id, replica);
            }
        }
    }
    on
}

/// What the facts say of a block under construction: its file's last one.
fn last_block(facts: &str, path: &str) -> pb::ExtendedBlockProto {
    let mut of_file = facts.lines().filter_map(|line| {
        let parts: Vec<&str> = line.split(' ').collect();
        (parts[0] == "block" && parts[1] == path).then_some(parts)
    });
    let last = of_file.next_back().unwrap();
    let number = |part: &str| part.split_once('=').unwrap().1.parse().unwrap();
    pb::ExtendedBlockProto {
        block_id: number(last[3]),
        generation_stamp: number(last[4]),
        num_bytes: Some(0),
        ..Default::default()
    }
}

/// Reading changes nothing.
async fn start(dir: &Path) -> RunningNameNode {
    let config =
        NameNodeConfig { access_time_precision: Duration::from_millis(LONG_MS), ..config(dir) };
    NameNode::start(config).await.unwrap()
}

/// What a NameNode tells without DataNodes, which it does out of safe mode only.
async fn facts_of(client: &Client) -> String {
    client.safe_mode(pb::SafeModeActionProto::SafemodeLeave).await;
    facts::facts(client).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_of_5119dd8_is_read_and_gone_on_with() {
    if std::env::var_os("CAIRN_FORMER").is_some() {
        make_a_store().await;
    }
    let dir = tempfile::tempdir().unwrap();
    pack::unpack(&std::fs::read(stored("5119dd8")).unwrap(), dir.path());
    let facts = std::fs::read_to_string(stored("5119dd8.facts")).unwrap();
    let calls = std::fs::read_to_string(stored("5119dd8.calls")).unwrap();
    let node = start(dir.path()).await;
    let client = Client::new(&node, CLIENT, SUPERUSER);
    assert_same(&facts_of(&client).await, &facts);

    // Each call gets its answer again, and is not carried out again.
    let (identity, kept) = kept_calls(&calls);
    let rpc = |node: &RunningNameNode| {
        let (addr, options) = (node.rpc_addr.to_string(), RpcClientOptions::default());
        RpcClient::with_client_id(addr, CLIENT, SUPERUSER, options, identity)
    };
    let sender = rpc(&node);
    assert!(client.safe_mode(pb::SafeModeActionProto::SafemodeEnter).await);
    for kept in &kept {
        let told = call_again(&sender, kept, kept.number).await;
        assert_eq!(told.map(|it| hex(&it)), Ok(hex(&kept.answer)), "{}", kept.method);
        let new = CallNumber { call_id: kept.number.call_id + 1000, retry_count: 0 };
        let refused = call_again(&sender, kept, new).await.unwrap_err();
        assert!(refused.contains(class::SAFE_MODE), "{}: {refused}", kept.method);
    }
    assert_same(&facts_of(&client).await, &facts);

    // The DataNodes come with what they have.
    let mut datanodes = Vec::new();
    let mut on = replicas(&client, &facts).await;
    for number in 0..9 {
        let held: Vec<_> = on.remove(&number).unwrap_or_default().into_values().collect();
        datanodes.push(FakeDataNode::start(&node, number, &held).await);
    }
    for top in ["/one", "/two"] {
        // Nothing is lost, nothing is too much: of the first file there are to be two copies, so one goes.
        for (name, count) in [
            ("two-blocks", 2),
            ("appended", 3),
            ("joined", 3),
            ("ec/groups", 9),
            ("s/.snapshot/a/removed", 3),
        ] {
            let path = format!("{top}/{name}");
            let mut file = client.locations(&path).await;
            for _ in 0..200 {
                if file.blocks.iter().all(|block| block.locs.len() == count) {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
                file = client.locations(&path).await;
            }
            for block in &file.blocks {
                assert_eq!((block.locs.len(), block.corrupt), (count, false), "{top}/{name}");
            }
        }
        // Whoever was writing goes on.
        let path = format!("{top}/open");
        let block = last_block(&facts, &path);
        for datanode in &datanodes[..3] {
            let (block_id, gen_stamp) = (block.block_id, block.generation_stamp);
            let replica = pb::BlockProto { block_id, gen_stamp, num_bytes: Some(77) };
            datanode.received(replica, Some(7)).await;
        }
        let pool_id = client.locations(&path).await.blocks[0].b.pool_id.clone();
        let last = pb::ExtendedBlockProto { pool_id, num_bytes: Some(77), ..block };
        let next = client.add_block(&path, WRITER, Some(last)).await;
        let last = finish(&datanodes, &next, 3, None).await;
        assert!(client.complete(&path, WRITER, Some(last)).await);
    }
    node.shutdown().await;
}

/// An earlier build's NameNode.
struct Process {
    child: Child,
    addr: String,
}

impl Process {
    /// The program `CAIRN_FORMER` on the folder, until it is dropped, which kills it.
    fn start(dir: &Path) -> Process {
        Process::start_with(dir, &[]).expect("the former starts")
    }

    /// The same with more words; none if it ends without serving.
    fn start_with(dir: &Path, words: &[&str]) -> Option<Process> {
        let program = std::env::var_os("CAIRN_FORMER").expect("CAIRN_FORMER names the program");
        let keys = [
            "dfs.namenode.rpc-address=127.0.0.1:0".to_string(),
            "dfs.namenode.http-address=127.0.0.1:0".to_string(),
            "dfs.namenode.safemode.extension=0".to_string(),
            format!("dfs.namenode.accesstime.precision={LONG_MS}"),
            "dfs.namenode.redundancy.considerLoad=false".to_string(),
            "dfs.storage.policy.satisfier.mode=external".to_string(),
            format!("cairn.namenode.superuser={SUPERUSER}"),
            format!("dfs.namenode.retrycache.expirytime.millis={LONG_MS}"),
        ];
        let mut command = Command::new(program);
        command.args(keys.iter().flat_map(|key| ["-D", key.as_str()]));
        command.arg("namenode").args(words).arg("--data").arg(dir).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        if line.is_empty() {
            child.wait().unwrap();
            return None;
        }
        let told: serde_json::Value = serde_json::from_str(&line).unwrap();
        let addr = told["fs"].as_str().unwrap().trim_start_matches("hdfs://").to_string();
        Some(Process { child, addr })
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// Has `CAIRN_FORMER`, the program of an earlier build, write the store `CAIRN_FORMER_NAME` anew. It also prepares an upgrade
/// then and goes back from it ([`back`]):
///
/// `CAIRN_FORMER=.../cairn CAIRN_FORMER_NAME=5119dd8 cargo test -p cairn-namenode --test it -- former`
async fn make_a_store() {
    let name = std::env::var("CAIRN_FORMER_NAME").expect("CAIRN_FORMER_NAME names the store");
    let dir = tempfile::tempdir().unwrap();
    let former = Process::start(dir.path());
    let client = Client::at(&former.addr, CLIENT, SUPERUSER);
    let mut datanodes = Vec::new();
    for number in 0..9 {
        datanodes.push(FakeDataNode::start_at(&former.addr, number, &[]).await);
    }
    let options = RpcClientOptions::default();
    let rpc = RpcClient::new(&former.addr, CLIENT, SUPERUSER, options);
    let calls = format!("{}\n", hex(&rpc.client_id()));
    let mut recorder = Recorder { rpc, calls };
    scene::play(&mut recorder, &client, &datanodes, "/one").await;
    assert!(client.safe_mode(pb::SafeModeActionProto::SafemodeEnter).await);
    let save = pb::SaveNamespaceRequestProto { time_window: None, tx_gap: None };
    let saved: pb::SaveNamespaceResponseProto = client.call("saveNamespace", &save).await.unwrap();
    assert!(saved.saved());
    assert!(!client.safe_mode(pb::SafeModeActionProto::SafemodeLeave).await);
    scene::play(&mut recorder, &client, &datanodes, "/two").await;
    drop(former);

    std::fs::create_dir_all(stored("")).unwrap();
    std::fs::write(stored(&name), pack::pack(dir.path())).unwrap();
    let former = Process::start(dir.path());
    let client = Client::at(&former.addr, CLIENT, SUPERUSER);
    assert!(!client.safe_mode(pb::SafeModeActionProto::SafemodeLeave).await);
    std::fs::write(stored(&format!("{name}.facts")), facts::facts(&client).await).unwrap();
    assert!(client.safe_mode(pb::SafeModeActionProto::SafemodeEnter).await);
    let (identity, kept) = kept_calls(&recorder.calls);
    let rpc = RpcClient::with_client_id(
        &former.addr,
        CLIENT,
        SUPERUSER,
        RpcClientOptions::default(),
        identity,
    );
    let mut calls = format!("{}\n", hex(&identity));
    for kept in &kept {
        let told = call_again(&rpc, kept, kept.number).await.unwrap();
        // Where an append goes on is told as it is now.
        assert!(told == kept.answer || kept.method == "append", "{}", kept.method);
        calls += &scene::line(kept.number, &kept.method, &kept.request, &told);
    }
    std::fs::write(stored(&format!("{name}.calls")), calls).unwrap();
}
