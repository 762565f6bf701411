//! A DataNode that takes packets late is found by those that send them.

use crate::cluster::*;
use cairn_client::CreateOptions;
use cairn_datanode::{DataNode, DataNodeConfig};
use cairn_redundancy::NodeHandle;
use std::time::{Duration, Instant};

/// Packets wait at their sender soon, and two means out of three tell what is usual.
fn measures(config: &mut DataNodeConfig) {
    config.heartbeat_interval = Duration::from_millis(200);
    config.outliers_report_interval = Duration::from_millis(200);
    (config.send_buffer, config.recv_buffer) = (16 << 10, 16 << 10);
    config.peer_stats = true;
    (config.outlier_min_nodes, config.outlier_min_samples) = (3, 10);
    config.slow_peer_low_ms = 10;
}

fn slow(cluster: &Cluster) -> Vec<(NodeHandle, usize)> {
    let node = cluster.namenode.node();
    let (now, cluster) = (node.now(), node.cluster());
    let slow = cluster.slow_nodes(usize::MAX, now).into_iter();
    slow.map(|slow| (slow.node, slow.reports.len())).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mirror_that_takes_packets_late_is_reported_and_then_avoided() {
    let mut cluster = Cluster::start_tuned(
        3,
        |name, data| {
            measures(data);
            name.slow.takes_peers = true;
            name.slow.nodes_avoided = 1;
            name.slow.collect_interval = Duration::ZERO;
            (name.slow.avoid_for_read, name.slow.avoid_for_write) = (true, true);
        },
        |_| {},
    )
    .await;
    let dir = tempfile::tempdir().unwrap();
    let mut config = DataNodeConfig {
        data_dirs: vec![dir.path().to_path_buf().into()],
        name_nodes: vec![cluster.namenode.rpc_addr.to_string()],
        xfer_addr: any_port(),
        ipc_addr: any_port(),
        write_bandwidth: 2 << 20,
        ..DataNodeConfig::default()
    };
    measures(&mut config);
    let late = DataNode::start(config).await.unwrap();
    let uuid = late.uuid().to_string();
    cluster.datanodes.push(late);
    while cluster.fs.datanodes(cairn_client::DataNodeFilter::Live).await.unwrap().len() < 4 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let late = cluster.namenode.node().cluster().node_by_uuid(&uuid).unwrap().handle;
    let data = bytes(3, 1 << 20);
    let options = CreateOptions { replication: Some(2), ..CreateOptions::default() };
    let start = Instant::now();
    let mut file = 0;
    // Once it is found it gets no blocks any more, and one report is all there may be.
    while !slow(&cluster).iter().any(|(node, _)| *node == late) {
        assert!(start.elapsed() < Duration::from_secs(120), "{file} files, {:?}", slow(&cluster));
        put(&cluster.fs, &format!("/f{file}"), &data, &options).await.unwrap();
        file += 1;
    }
    while !cluster.namenode.node().cluster().is_slow(late) {
        assert!(start.elapsed() < Duration::from_secs(120), "it is not avoided");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    for file in 0..8 {
        let path = format!("/after{file}");
        put(&cluster.fs, &path, &data[..1000], &options).await.unwrap();
        let block = reported(&cluster.fs, &path, |block| block.locations.len() == 2).await;
        assert!(block.locations.iter().all(|place| place.addr.uuid != uuid), "{path}");
    }
    let wide = CreateOptions { replication: Some(4), ..CreateOptions::default() };
    put(&cluster.fs, "/wide", &data[..1000], &wide).await.unwrap();
    let block = reported(&cluster.fs, "/wide", |block| block.locations.len() == 4).await;
    assert_eq!(block.locations[3].addr.uuid, uuid, "the last one that readers ask");
    assert_same(&get(&cluster.fs, "/wide").await.unwrap(), &data[..1000], "/wide");
}
