//! The end of a NameNode at whose state a panic has struck. A program of its own: what has struck at a lock ends every
//! server of a process.

use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use cairn_namenode::{NameNode, NameNodeConfig, RunningNameNode};
use cairn_namespace::store::memory::MemoryStore;
use cairn_namespace::{Entry, apply};
use cairn_net::rpc_client::{RpcClient, RpcClientOptions};
use cairn_process::held::held;
use cairn_wire::proto::{datanode as dn, hdfs as pb};

const CLIENT: &str = "org.apache.hadoop.hdfs.protocol.ClientProtocol";
const DATANODE: &str = "org.apache.hadoop.hdfs.server.protocol.DatanodeProtocol";

async fn start(dir: &Path) -> RunningNameNode {
    let config = NameNodeConfig {
        name_dir: dir.to_path_buf(),
        format_if_empty: true,
        rpc_addr: "127.0.0.1:0".parse().unwrap(),
        http_addr: None,
        superuser: Some("hdfs".to_string()),
        ..NameNodeConfig::default()
    };
    NameNode::start(config).await.unwrap()
}

fn client(node: &RunningNameNode, protocol: &'static str) -> RpcClient {
    RpcClient::new(node.rpc_addr, protocol, "hdfs", RpcClientOptions::default())
}

/// A DataNode registers, a directory is made, a file is begun.
async fn work(node: &RunningNameNode) {
    let datanode = client(node, DATANODE);
    let version: pb::VersionResponseProto =
        datanode.call("versionRequest", &pb::VersionRequestProto {}).await.unwrap();
    let registration = dn::DatanodeRegistrationProto {
        datanode_id: pb::DatanodeIDProto {
            ip_addr: "127.0.0.1".to_string(),
            host_name: "host".to_string(),
            datanode_uuid: "the-datanode".to_string(),
            xfer_port: 9866,
            ..Default::default()
        },
        storage_info: version.info.storage_info,
        keys: pb::ExportedBlockKeysProto::default(),
        software_version: "3.5.0".to_string(),
        process_number: None,
    };
    let request = dn::RegisterDatanodeRequestProto { registration: registration.clone() };
    let _: dn::RegisterDatanodeResponseProto =
        datanode.call("registerDatanode", &request).await.unwrap();
    let storage =
        pb::DatanodeStorageProto { storage_uuid: "the-storage".to_string(), ..Default::default() };
    let report = pb::StorageReportProto {
        storage_uuid: "the-storage".to_string(),
        capacity: Some(1 << 40),
        remaining: Some(1 << 40),
        storage: Some(storage),
        ..Default::default()
    };
    let request =
        dn::HeartbeatRequestProto { registration, reports: vec![report], ..Default::default() };
    let _: dn::HeartbeatResponseProto = datanode.call("sendHeartbeat", &request).await.unwrap();
    let client = client(node, CLIENT);
    let request = pb::MkdirsRequestProto {
        src: "/made".to_string(),
        masked: pb::FsPermissionProto { perm: 0o755 },
        create_parent: true,
        unmasked: None,
    };
    let _: pb::MkdirsResponseProto = client.call("mkdirs", &request).await.unwrap();
    let request = pb::CreateRequestProto {
        src: "/made/file".to_string(),
        masked: pb::FsPermissionProto { perm: 0o644 },
        client_name: "writer".to_string(),
        create_flag: pb::CreateFlagProto::Create as u32,
        create_parent: true,
        replication: 1,
        block_size: 1 << 20,
        ..Default::default()
    };
    let _: pb::CreateResponseProto = client.call("create", &request).await.unwrap();
    let request = pb::AddBlockRequestProto {
        src: "/made/file".to_string(),
        client_name: "writer".to_string(),
        ..Default::default()
    };
    let _: pb::AddBlockResponseProto = client.call("addBlock", &request).await.unwrap();
}

/// What the file in the folder says was done: which kinds of inputs, and the entries.
fn last_inputs(dir: &Path) -> (String, Vec<Entry>) {
    let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap());
    let files: Vec<_> = entries
        .filter(|entry| entry.file_name().to_str().unwrap().starts_with("last-inputs-"))
        .collect();
    assert_eq!(files.len(), 1);
    let text = std::fs::read_to_string(files[0].path()).unwrap();
    let entries = text.lines().filter_map(|line| {
        let mut words = line.split(' ').skip(1);
        (words.next()? == "entry").then_some(())?;
        let hex = words.nth(1)?;
        let digits = |at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
        let bytes: Vec<u8> = (0..hex.len()).step_by(2).map(digits).collect();
        Some(Entry::from_bytes(&bytes).unwrap())
    });
    let entries = entries.collect();
    (text, entries)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_node_at_which_a_panic_has_struck_ends_and_says_what_it_did_last() {
    let dir = tempfile::tempdir().unwrap();
    let node = start(dir.path()).await;
    work(&node).await;
    let at_work = std::sync::Arc::clone(node.node());
    let struck = std::thread::spawn(move || {
        let _cluster = at_work.cluster();
        panic!("a number is odd");
    });
    assert!(struck.join().is_err());
    let why = tokio::time::timeout(Duration::from_secs(60), node.stopped()).await.unwrap();
    assert_eq!(why, "a panic has struck at the state of the cluster");
    let (text, entries) = last_inputs(dir.path());
    assert!(text.starts_with(&format!("# The NameNode has ended: {why}\n")), "{text}");
    for told in [
        " registration Registration { uuid: \"the-datanode\"",
        " heartbeat (\"the-datanode\", Told {",
        " effects [EntryEffects { effects: [Allocated {",
        " tick Now {",
    ] {
        assert!(text.contains(told), "{told} is not in {text}");
    }
    // The entries lead to the same tree once more.
    let mut store = MemoryStore::new();
    for entry in &entries {
        apply(&mut store, entry).unwrap();
    }
    let names: Vec<&str> = entries.iter().map(|entry| entry.command.name()).collect();
    let ends_with = &names[names.len() - 3..];
    assert_eq!(ends_with, ["Mkdirs", "Create", "AddBlock"], "{names:?}");
    let _ = tokio::time::timeout(Duration::from_secs(5), node.shutdown()).await;

    // A lock of any other part.
    let dir = tempfile::tempdir().unwrap();
    let node = start(dir.path()).await;
    let calm = tokio::time::timeout(Duration::from_millis(100), node.stopped()).await;
    assert!(calm.is_err(), "{calm:?}");
    static LOCK: Mutex<()> = Mutex::new(());
    for message in ["while it is held", "because it was"] {
        let struck = std::thread::spawn(move || {
            let _held = held(&LOCK);
            panic!("{message}");
        });
        assert!(struck.join().is_err());
    }
    let why = tokio::time::timeout(Duration::from_secs(60), node.stopped()).await.unwrap();
    assert_eq!(why, "a panic has struck at a part of the server's state");
    last_inputs(dir.path());
    node.shutdown().await;
}
