//! Files that were in memory only are deleted when they are lost.

use std::time::Duration;

use cairn_namenode::{NameNode, NameNodeConfig};
use cairn_wire::proto::hdfs as pb;

use crate::cluster::{CLIENT, Client, FakeDataNode, SUPERUSER, config, create_request, finish};

async fn write(client: &Client, datanode: &[FakeDataNode], path: &str, flags: u32) {
    let mut request = create_request(path, "w");
    request.create_flag |= flags;
    request.replication = 1;
    let _: pb::CreateResponseProto = client.call("create", &request).await.unwrap();
    let located = client.add_block(path, "w", None).await;
    // A DataNode decides by itself what it keeps in memory.
    assert_eq!(located.storage_types, [pb::StorageTypeProto::Disk as i32]);
    let last = finish(datanode, &located, 5, None).await;
    assert!(client.complete(path, "w", Some(last)).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_files_that_were_kept_in_memory_are_deleted() {
    let dir = tempfile::tempdir().unwrap();
    let config = NameNodeConfig {
        lazy_persist_scrub_interval: Duration::from_millis(20),
        ..config(dir.path())
    };
    let node = NameNode::start(config).await.unwrap();
    let datanode = [FakeDataNode::start(&node, 0, &[]).await];
    let client = Client::new(&node, CLIENT, SUPERUSER);
    let lazy = pb::CreateFlagProto::LazyPersist as u32;
    for (path, flags) in [("/first", lazy), ("/kept", 0), ("/second", lazy)] {
        write(&client, &datanode, path, flags).await;
    }
    let policy = |status: Option<pb::HdfsFileStatusProto>| status.unwrap().storage_policy();
    assert_eq!(policy(client.file_info("/first").await), 15);
    assert_eq!(policy(client.file_info("/kept").await), 0);
    // Several looks find nothing wrong.
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(client.list("/").await, ["first", "kept", "second"]);

    datanode[0].report(&[]).await;
    let mut left = Vec::new();
    for _ in 0..500 {
        left = client.list("/").await;
        if left == ["kept"] {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(left, ["kept"]);
    node.shutdown().await;
}
