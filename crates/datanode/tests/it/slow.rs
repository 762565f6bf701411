//! DataNodes that take longer than others are told to the NameNode, and tell writers so themselves.

use crate::cluster::*;
use crate::reconstruct::{Group, late, order};
use cairn_datanode::DataNodeConfig;
use cairn_net::rpc_client::{RpcClient, RpcClientOptions};
use cairn_operate::reconfiguration::Reload;
use cairn_wire::proto::hdfs::{
    StartReconfigurationRequestProto, StartReconfigurationResponseProto, Status,
};
use cairn_wire::transfer::{AckFlag, Ecn, Slow, ack_flags};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

const CELL: u64 = crate::reconstruct::CELL;

/// Measures nothing until a file is there.
fn measures_later(config: &mut DataNodeConfig) {
    (config.outlier_min_nodes, config.outlier_min_samples) = (3, 0);
    config.slow_peer_low_ms = 30;
    config.outliers_report_interval = Duration::from_millis(50);
    config.reconstruction_read_timeout = Duration::from_secs(20);
    let file = config.data_dirs[0].path.join("measure");
    config.reload = Some(Reload::new(move || {
        let peer_stats = file.exists();
        let values = [("dfs.datanode.peer.stats.enabled".to_string(), peer_stats.to_string())];
        Ok((DataNodeConfig { peer_stats, ..DataNodeConfig::default() }, BTreeMap::from(values)))
    }));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_source_that_is_late_is_told_once_sources_are_measured() {
    let cluster = Cluster::start_tuned(7, measures_later).await;
    let source = late(&cluster, 1, 1, Duration::from_millis(400)).await;
    let lost = [0, 4];
    let rebuild = async |number| {
        let group = Group::new(number, (3, 2), 3 * CELL);
        group.write(&cluster, &lost).await;
        let mut info = group.exact_command(&cluster, &lost, &[5, 6]);
        assert_eq!(info.live_block_indices[0], 1);
        info.source_dn_infos.datanodes[0] = source.clone();
        cluster.send_command(5, order(info));
        group.check(&cluster, &lost, &[5, 6]).await;
        let before = cluster.name_node.record.lock().unwrap().heartbeats;
        cluster.wait("reports of all", |record| record.heartbeats > before + 20).await;
    };
    rebuild(1).await;
    assert!(cluster.name_node.record.lock().unwrap().slow_peers.is_empty());

    std::fs::write(cluster.dir(5).join("measure"), "").unwrap();
    let protocol = "org.apache.hadoop.hdfs.protocol.ClientDatanodeProtocol";
    let (addr, options) = (cluster.node(5).ipc_addr(), RpcClientOptions::default());
    let _: StartReconfigurationResponseProto = RpcClient::new(addr, protocol, "hdfs", options)
        .call("startReconfiguration", &StartReconfigurationRequestProto {})
        .await
        .unwrap();
    rebuild(2).await;
    let record = cluster.name_node.record.lock().unwrap();
    let [(from, slow)] = &record.slow_peers[..] else { panic!("{:?}", record.slow_peers) };
    assert_eq!(*from, cluster.uuid(5));
    let name = format!("127.0.0.1:{}", source.id.xfer_port);
    assert_eq!(slow.data_node_id.as_ref(), Some(&name));
    let (latency, limit) = (slow.aggregate_latency(), slow.upper_limit_latency());
    assert!(latency >= 100.0 && (30.0..latency).contains(&limit), "{slow:?}");
}

/// No machine is that congested.
fn tells(config: &mut DataNodeConfig) {
    (config.tells_slow, config.tells_congestion, config.congestion_ratio) = (true, true, 1e9);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn acknowledgements_tell_who_is_slow_where_they_are_to() {
    let told = |slow| AckFlag::new(Status::Success, Ecn::Supported, slow);
    let cluster = Cluster::start_tuned(2, tells).await;
    let mut writer = Writer::create(&cluster, &[0, 1], 7, 1001).await;
    let data = bytes(100);
    let send = async |writer: &mut Writer| {
        writer.send(&data, &crcs(&data), false, false).await;
        ack_flags(&writer.ack().await)
    };
    assert_eq!(send(&mut writer).await, [told(Slow::Normal); 2]);
    cluster.name_node.record.lock().unwrap().slow = Some(cluster.uuid(1));
    let deadline = Instant::now() + Duration::from_secs(10);
    // With its next heartbeat the DataNode knows.
    loop {
        let flags = send(&mut writer).await;
        if flags == [told(Slow::Normal), told(Slow::Slow)] {
            break;
        }
        assert!(Instant::now() < deadline, "{flags:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }

    let quiet = Cluster::start(1).await;
    let mut writer = Writer::create(&quiet, &[0], 7, 1001).await;
    assert_eq!(send(&mut writer).await, [AckFlag::from(Status::Success)]);
}

/// What a DataNode has measured of its disk, by the names of the bean.
async fn measured(cluster: &Cluster) -> serde_json::Value {
    let name = format!("DataNodeVolume-{}", cluster.dir(0).display());
    let path = format!("/jmx?qry=Hadoop:service=DataNode,name={name}");
    let answer = page(cluster.node(0).http_addr().unwrap(), &path).await;
    let beans: serde_json::Value =
        serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap();
    beans["beans"][0].clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn syncs_renames_and_all_that_is_read_are_measured() {
    let cluster = Cluster::start_tuned(1, |config| {
        config.http_addr = Some("127.0.0.1:0".parse().unwrap());
        // The scanner opens files as well.
        config.scan_bytes_per_second = 0;
        config.disk_sampling_percentage = 100;
        config.send_packet_len = 64 << 10;
    })
    .await;
    let count = async |name: &str| {
        let bean = measured(&cluster).await;
        assert!(bean[format!("{name}AvgTime")].as_f64().unwrap() >= 0.0, "{bean}");
        bean[format!("{name}NumOps")].as_u64().unwrap()
    };
    let data = bytes(1 << 20);
    write_block(&cluster, &[0], 1, 1001, &data).await;
    // Two files, and the folder of their names, which is new as are those above it.
    assert!(count("SyncIoRate").await >= 3);
    // Two files are made and renamed, and a folder is made.
    assert_eq!(count("MetadataOperationRate").await, 5);
    // Of each packet data and CRCs, none of the last one.
    let packets = data.len().div_ceil(64 * CHUNK) as u64;
    assert_eq!(count("WriteIoRate").await, 2 * packets);

    let got = read(&mut cluster.connect(0).await, block(1, 1001, 0), 0, 64 << 10).await.unwrap();
    assert!(got == data[..64 << 10]);
    let opened = 7;
    assert_eq!(count("MetadataOperationRate").await, opened);
    assert_eq!((count("ReadIoRate").await, count("TransferIoRate").await), (2, 0), "copied");
    let got = read(&mut cluster.connect(0).await, block(1, 1001, 0), 0, 1 << 20).await.unwrap();
    assert!(got == data);
    assert_eq!(count("ReadIoRate").await, 2 + 16, "CRCs");
    assert!(count("TransferIoRate").await >= 16);
}
