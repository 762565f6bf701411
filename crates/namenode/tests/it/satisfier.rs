//! Storage policies that are to be satisfied: what clients ask for, and what the satisfier fetches.

use std::collections::BTreeMap;
use std::path::Path;

use cairn_namenode::config::SatisfierMode;
use cairn_namenode::{NameNode, NameNodeConfig, RunningNameNode};
use cairn_operate::reconfiguration::{NAME, Reload};
use cairn_wire::exception::class;
use cairn_wire::proto::{hdfs as pb, namenode as nn};

use crate::cluster::{CLIENT, Client, FakeDataNode, SUPERUSER, config};

const NAMENODE: &str = "org.apache.hadoop.hdfs.server.protocol.NamenodeProtocol";
const MODE: &str = "dfs.storage.policy.satisfier.mode";

/// With room for two requests, and a satisfier until a file says that there is none.
async fn start(dir: &Path) -> (RunningNameNode, FakeDataNode) {
    let file = dir.join("mode");
    let reload = Reload::new(move || {
        let text = std::fs::read_to_string(&file).unwrap_or("external".into());
        let external = text == "external";
        let satisfier_mode = if external { SatisfierMode::External } else { SatisfierMode::None };
        let settings = NameNodeConfig { satisfier_mode, ..NameNodeConfig::default() };
        Ok((settings, BTreeMap::from([(MODE.to_string(), text)])))
    });
    let config = config(&dir.join("name"));
    let config = NameNodeConfig { satisfier_queue_limit: 2, reload: Some(reload), ..config };
    let node = NameNode::start(config).await.unwrap();
    let datanode = FakeDataNode::start(&node, 0, &[]).await;
    (node, datanode)
}

fn ask(src: &str) -> pb::SatisfyStoragePolicyRequestProto {
    pb::SatisfyStoragePolicyRequestProto { src: src.to_string() }
}

async fn satisfy(client: &Client, src: &str) {
    let _: pb::SatisfyStoragePolicyResponseProto =
        client.call("satisfyStoragePolicy", &ask(src)).await.unwrap();
}

async fn next(satisfier: &Client) -> Option<u64> {
    let answer: nn::GetNextSPSPathResponseProto =
        satisfier.call("getNextSPSPath", &nn::GetNextSPSPathRequestProto {}).await.unwrap();
    answer.sps_path
}

/// The names of a file's attributes.
async fn attributes(client: &Client, src: &str) -> Vec<String> {
    let list = pb::ListXAttrsRequestProto { src: src.to_string() };
    let found: pb::ListXAttrsResponseProto = client.call("listXAttrs", &list).await.unwrap();
    found.x_attrs.into_iter().map(|attribute| attribute.name).collect()
}

async fn reconfigure(node: &RunningNameNode, dir: &Path, mode: &str) {
    std::fs::write(dir.join("mode"), mode).unwrap();
    let admin = Client::new(node, NAME, SUPERUSER);
    let start = pb::StartReconfigurationRequestProto {};
    let _: pb::StartReconfigurationResponseProto =
        admin.call("startReconfiguration", &start).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_are_fetched_in_their_order_and_again_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let (node, datanode) = start(dir.path()).await;
    let client = Client::new(&node, CLIENT, SUPERUSER);
    let mut ids = Vec::new();
    for path in ["/a", "/b", "/c"] {
        ids.push(client.create(path, "writer").await.file_id());
        client.add_block(path, "writer", None).await;
    }
    let satisfier = Client::new(&node, NAMENODE, SUPERUSER);
    assert_eq!(next(&satisfier).await, None);
    satisfy(&client, "/b").await;
    satisfy(&client, "/b").await;
    satisfy(&client, "/a").await;
    let (class, text) = client.refused("satisfyStoragePolicy", &ask("/c")).await;
    let full = "Outstanding satisfier queue limit: 2 exceeded, try later!";
    assert_eq!((&class[..], &text[..]), (class::IO, full));
    let stranger = Client::new(&node, NAMENODE, "alice");
    let fetch = nn::GetNextSPSPathRequestProto {};
    let (class, text) = stranger.refused("getNextSPSPath", &fetch).await;
    assert_eq!(class, class::ACCESS_CONTROL);
    assert!(text.ends_with("operation getNextSPSPath"), "{text}");
    assert_eq!(next(&satisfier).await, Some(ids[1]));
    satisfy(&client, "/c").await;
    assert_eq!(next(&satisfier).await, Some(ids[0]));
    assert_eq!(next(&satisfier).await, Some(ids[2]));
    assert_eq!(next(&satisfier).await, None);

    // What the satisfier has not done is there again.
    let remove = pb::RemoveXAttrRequestProto {
        src: "/b".to_string(),
        x_attr: Some(pb::XAttrProto {
            namespace: pb::XAttrProtoXAttrNamespaceProto::User as i32,
            name: "hdfs.sps".to_string(),
            value: None,
        }),
    };
    let _: pb::RemoveXAttrResponseProto = client.call("removeXAttr", &remove).await.unwrap();
    drop(datanode);
    node.shutdown().await;
    let (node, _datanode) = start(dir.path()).await;
    let satisfier = Client::new(&node, NAMENODE, SUPERUSER);
    let mut found = Vec::new();
    while found.len() < 2 {
        found.extend(next(&satisfier).await);
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    assert_eq!(found, [ids[0], ids[2]]);
    assert_eq!(next(&satisfier).await, None);
    node.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_mode_changes_at_run_time_and_takes_the_marks_along() {
    let dir = tempfile::tempdir().unwrap();
    let (node, _datanode) = start(dir.path()).await;
    let client = Client::new(&node, CLIENT, SUPERUSER);
    let satisfier = Client::new(&node, NAMENODE, SUPERUSER);
    client.create("/a", "writer").await;
    client.add_block("/a", "writer", None).await;
    satisfy(&client, "/a").await;
    assert_eq!(attributes(&client, "/a").await, ["hdfs.sps"]);
    reconfigure(&node, dir.path(), "none").await;
    assert!(attributes(&client, "/a").await.is_empty());
    let (class, text) = client.refused("satisfyStoragePolicy", &ask("/a")).await;
    assert!(class.ends_with("UnsupportedActionException"), "{class}");
    assert!(text.starts_with("Cannot request to satisfy storage policy when "), "{text}");
    let fetch = nn::GetNextSPSPathRequestProto {};
    let (class, text) = satisfier.refused("getNextSPSPath", &fetch).await;
    let off =
        "SPS service mode is NONE, so external SPS service is not allowed to fetch the path Ids";
    assert_eq!((&class[..], &text[..]), (class::IO, off));
    reconfigure(&node, dir.path(), "external").await;
    satisfy(&client, "/a").await;
    assert!(next(&satisfier).await.is_some());
    node.shutdown().await;
}
