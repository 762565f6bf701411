//! A DataNode whose disk was copied to another machine.

use crate::cluster::*;
use cairn_client::{CreateOptions, DataNodeFilter};
use cairn_datanode::{DataNode, DataNodeConfig};
use std::process::Command;
use std::time::Duration;

/// The copy has the UUID of the first one, and takes its place: that one stops, so that nothing it says makes readers
/// go to the copy after that was stopped too.
#[tokio::test(flavor = "multi_thread")]
async fn a_cloned_datanode_takes_the_place_of_the_first_one_for_as_long_as_it_lives() {
    let cluster = Cluster::start_tuned(1, mends_at_once, |_| {}).await;
    let options = CreateOptions { replication: Some(1), ..CreateOptions::default() };
    let data = bytes(1, 100_000);
    put(&cluster.fs, "/file", &data, &options).await.unwrap();

    let [first, copied] = ["data0", "copied"].map(|name| cluster.path().join(name));
    let mut copy = Command::new("cp");
    assert!(copy.arg("-r").args([&first, &copied]).status().unwrap().success());
    let config = DataNodeConfig {
        data_dirs: vec![copied.into()],
        name_nodes: vec![cluster.namenode.rpc_addr.to_string()],
        xfer_addr: any_port(),
        ipc_addr: any_port(),
        heartbeat_interval: Duration::from_millis(200),
        ..DataNodeConfig::default()
    };
    let copy = DataNode::start(config).await.unwrap();
    assert_eq!(copy.uuid(), cluster.datanodes[0].uuid());

    let stopped = tokio::time::timeout(Duration::from_secs(30), cluster.datanodes[0].stopped());
    let why = stopped.await.expect("the first one stops");
    assert!(why.contains("is expected to serve this storage"), "{why}");
    assert_same(&get(&cluster.fs, "/file").await.unwrap(), &data, "read from the copy");
    assert_eq!(cluster.fs.datanodes(DataNodeFilter::Live).await.unwrap().len(), 1);

    copy.kill();
    while cluster.fs.datanodes(DataNodeFilter::Dead).await.unwrap().is_empty() {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
