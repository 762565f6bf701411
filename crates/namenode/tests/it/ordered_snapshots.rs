//! Snapshots that are deleted in order, and trash in snapshottable directories, over the wire and over restarts.

use cairn_namenode::{NameNode, NameNodeConfig, RunningNameNode};
use cairn_net::rpc_client::{RpcClient, RpcClientOptions};
use cairn_wire::proto::hdfs as pb;
use std::time::Duration;

use crate::cluster::{CLIENT, Client, FakeDataNode, SUPERUSER, config};

const HOUR_MS: u64 = 3_600_000;

/// With snapshots that are deleted in order, and none of them before the test wants it.
fn in_order(dir: &std::path::Path) -> NameNodeConfig {
    NameNodeConfig {
        snapshots_deleted_in_order: true,
        snapshot_collection_period: Duration::from_secs(3600),
        ..config(dir)
    }
}

async fn client(config: NameNodeConfig) -> (RunningNameNode, Client) {
    let node = NameNode::start(config).await.unwrap();
    let client = Client::new(&node, CLIENT, SUPERUSER);
    (node, client)
}

async fn allow(client: &Client, path: &str) {
    let request = pb::AllowSnapshotRequestProto { snapshot_root: path.to_string() };
    let _: pb::AllowSnapshotResponseProto = client.call("allowSnapshot", &request).await.unwrap();
}

async fn take(client: &Client, name: &str) {
    let request = pb::CreateSnapshotRequestProto {
        snapshot_root: "/d".to_string(),
        snapshot_name: Some(name.to_string()),
    };
    let _: pb::CreateSnapshotResponseProto = client.call("createSnapshot", &request).await.unwrap();
}

fn drop_request(name: &str) -> pb::DeleteSnapshotRequestProto {
    pb::DeleteSnapshotRequestProto {
        snapshot_root: "/d".to_string(),
        snapshot_name: name.to_string(),
    }
}

async fn drop_snapshot(client: &Client, name: &str) {
    let _: pb::DeleteSnapshotResponseProto =
        client.call("deleteSnapshot", &drop_request(name)).await.unwrap();
}

/// The names of the snapshots of `/d`, those marked as deleted in brackets.
async fn listed(client: &Client) -> String {
    let request = pb::GetSnapshotListingRequestProto { snapshot_root: "/d".to_string() };
    let list: pb::GetSnapshotListingResponseProto =
        client.call("getSnapshotListing", &request).await.unwrap();
    let name = |status: &pb::SnapshotStatusProto| {
        let name = String::from_utf8_lossy(&status.dir_status.path).into_owned();
        if status.is_deleted { format!("({name})") } else { name }
    };
    let found = list.snapshot_list.unwrap().snapshot_listing;
    found.iter().map(name).collect::<Vec<_>>().join(" ")
}

#[tokio::test(flavor = "multi_thread")]
async fn marked_snapshots_go_when_they_are_the_earliest_also_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let (node, client_of) = client(in_order(dir.path())).await;
    client_of.mkdirs("/d").await;
    allow(&client_of, "/d").await;
    for name in ["a", "b", "c"] {
        take(&client_of, name).await;
    }
    let rpc =
        RpcClient::new(node.rpc_addr.to_string(), CLIENT, SUPERUSER, RpcClientOptions::default());
    let number = rpc.new_call();
    let _: pb::DeleteSnapshotResponseProto =
        rpc.call_numbered("deleteSnapshot", &drop_request("b"), number).await.unwrap();
    assert_eq!(listed(&client_of).await, "a (b#1) c");
    node.shutdown().await;

    let (node, client_of) = client(in_order(dir.path())).await;
    assert_eq!(listed(&client_of).await, "a (b#1) c");
    // A call that comes again because its answer was lost marks nothing twice.
    let again = RpcClient::with_client_id(
        node.rpc_addr.to_string(),
        CLIENT,
        SUPERUSER,
        RpcClientOptions::default(),
        rpc.client_id(),
    );
    let _: pb::DeleteSnapshotResponseProto =
        again.call_numbered("deleteSnapshot", &drop_request("b"), number).await.unwrap();
    drop_snapshot(&client_of, "a").await;
    assert_eq!(listed(&client_of).await, "(b#1) c");
    node.shutdown().await;

    // While order is off, nothing is collected.
    let quick = || NameNodeConfig {
        snapshot_collection_period: Duration::from_millis(20),
        ..in_order(dir.path())
    };
    let off = NameNodeConfig { snapshots_deleted_in_order: false, ..quick() };
    let (node, client_of) = client(off).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(listed(&client_of).await, "(b#1) c");
    node.shutdown().await;

    let (node, client_of) = client(quick()).await;
    let collected = async {
        while listed(&client_of).await != "c" {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), collected).await.unwrap();
    node.shutdown().await;
}

async fn keeps_trash_apart(client: &Client) -> bool {
    let request = pb::GetServerDefaultsRequestProto {};
    let answer: pb::GetServerDefaultsResponseProto =
        client.call("getServerDefaults", &request).await.unwrap();
    answer.server_defaults.snapshot_trash_root_enabled()
}

#[tokio::test(flavor = "multi_thread")]
async fn snapshottable_directories_get_trash_that_is_emptied() {
    let dir = tempfile::tempdir().unwrap();
    let (node, client_of) = client(config(dir.path())).await;
    for path in ["/d", "/other/e", "/full/.Trash/ann", "/plain"] {
        client_of.mkdirs(path).await;
    }
    for path in ["/d", "/other/e", "/full"] {
        allow(&client_of, path).await;
    }
    assert!(!keeps_trash_apart(&client_of).await);
    node.shutdown().await;

    let config = NameNodeConfig {
        snapshot_trash_roots: true,
        trash_interval_minutes: 60,
        ..config(dir.path())
    };
    let (node, client_of) = client(config).await;
    assert!(keeps_trash_apart(&client_of).await);
    // There is no block to wait for, so it is out of safe mode from the beginning.
    assert!(client_of.file_info("/other/e/.Trash").await.is_some());
    let trash = client_of.file_info("/d/.Trash").await.unwrap();
    assert_eq!((trash.permission.perm, trash.owner.as_str()), (0o1777, SUPERUSER));
    // What is there stays as it is.
    let trash = client_of.file_info("/full/.Trash").await.unwrap();
    assert_eq!(trash.permission.perm, 0o755);
    assert_eq!(client_of.file_info("/plain/.Trash").await, None);

    for root in ["/d/.Trash/ann", "/other/e/.Trash/bob"] {
        client_of.mkdirs(&format!("{root}/Current/x")).await;
    }
    let now_ms = node.node().now().wall_ms;
    node.node().empty_trash_at(now_ms).await.unwrap();
    for root in ["/d/.Trash/ann", "/other/e/.Trash/bob"] {
        let kept = client_of.list(root).await;
        assert!(kept.len() == 1 && kept[0] != "Current", "{root}: {kept:?}");
    }
    node.node().empty_trash_at(now_ms + 2 * HOUR_MS).await.unwrap();
    for root in ["/d/.Trash/ann", "/other/e/.Trash/bob"] {
        assert_eq!(client_of.list(root).await, [""; 0], "{root}");
    }
    node.shutdown().await;
}

/// Whoever is told that safe mode is off finds the trash there.
#[tokio::test(flavor = "multi_thread")]
async fn trash_is_there_when_safe_mode_is_off() {
    use pb::SafeModeActionProto::{SafemodeEnter, SafemodeGet, SafemodeLeave};
    let dir = tempfile::tempdir().unwrap();
    let waits = || NameNodeConfig {
        snapshot_trash_roots: true,
        safe_mode_min_datanodes: 1,
        ..config(dir.path())
    };
    let (node, client_of) = client(NameNodeConfig { safe_mode_min_datanodes: 0, ..waits() }).await;
    client_of.mkdirs("/d").await;
    allow(&client_of, "/d").await;
    assert_eq!(client_of.file_info("/d/.Trash").await, None);
    node.shutdown().await;

    let (node, client_of) = client(waits()).await;
    assert!(client_of.safe_mode(SafemodeGet).await);
    assert_eq!(client_of.file_info("/d/.Trash").await, None);
    let _datanode = FakeDataNode::start(&node, 0, &[]).await;
    let left = async { while client_of.safe_mode(SafemodeGet).await {} };
    tokio::time::timeout(Duration::from_secs(30), left).await.unwrap();
    assert!(client_of.file_info("/d/.Trash").await.is_some());

    let request = pb::DeleteRequestProto { src: "/d/.Trash".to_string(), recursive: true };
    let _: pb::DeleteResponseProto = client_of.call("delete", &request).await.unwrap();
    assert!(client_of.safe_mode(SafemodeEnter).await);
    assert!(!client_of.safe_mode(SafemodeLeave).await);
    assert!(client_of.file_info("/d/.Trash").await.is_some());
    node.shutdown().await;
}
