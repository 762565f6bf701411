//! Settings that change while the DataNode runs.

use crate::cluster::*;
use crate::failed_work::copy_order;
use cairn_datanode::DataNodeConfig;
use cairn_net::rpc_client::{RpcClient, RpcClientOptions};
use cairn_operate::reconfiguration::Reload;
use cairn_wire::exception::class;
use cairn_wire::proto::datanode::ReceivedDeletedBlockInfoProtoBlockStatus::{Deleted, Received};
use cairn_wire::proto::hdfs::{
    GetReconfigurationStatusRequestProto, GetReconfigurationStatusResponseProto,
    StartReconfigurationRequestProto, StartReconfigurationResponseProto,
};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

const TRANSFER: &str = "dfs.datanode.data.transfer.bandwidthPerSec";

/// Copies are bounded to 1000 bytes per second until a file says otherwise.
fn throttle(config: &mut DataNodeConfig) {
    config.transfer_bandwidth = 1000;
    let file = config.data_dirs[0].path.join("bandwidth");
    config.reload = Some(Reload::new(move || {
        let text = std::fs::read_to_string(&file).unwrap_or("1000".into());
        let transfer_bandwidth = text.parse().map_err(|error| format!("{error}"))?;
        let settings = DataNodeConfig { transfer_bandwidth, ..DataNodeConfig::default() };
        Ok((settings, BTreeMap::from([(TRANSFER.to_string(), text)])))
    }));
}

/// FIELD-NOTES row 18: bounds on what repair takes from the network hold, and can be changed at any time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn row_18_the_bandwidth_of_copies_is_bounded_and_can_be_changed() {
    let cluster = Cluster::start_tuned(2, throttle).await;
    let data = bytes(200_000);
    write_block(&cluster, &[0], 7, 1001, &data).await;
    let uuid = cluster.uuid(0);
    cluster.send_command(0, copy_order(7, vec![cluster.info(1)]));
    cluster.wait("the copy to begin", |r| r.transfers.get(&uuid) == Some(&1)).await;
    let addr = cluster.node(0).ipc_addr();
    let protocol = "org.apache.hadoop.hdfs.protocol.ClientDatanodeProtocol";
    let client = |user| RpcClient::new(addr, protocol, user, RpcClientOptions::default());
    let start = StartReconfigurationRequestProto {};
    let refused = client("alice")
        .call::<_, StartReconfigurationResponseProto>("startReconfiguration", &start)
        .await;
    assert!(refused.unwrap_err().is_remote(class::ACCESS_CONTROL));

    std::fs::write(cluster.dir(0).join("bandwidth"), "x").unwrap();
    let admin = client("hdfs");
    let refused =
        admin.call::<_, StartReconfigurationResponseProto>("startReconfiguration", &start).await;
    assert!(refused.unwrap_err().is_remote(class::IO));
    let is_there = |r: &mut Record| r.events.iter().any(|(_, e)| e.status == Received as i32);
    cluster.name_node.record.lock().unwrap().events.clear();
    assert!(!is_there(&mut cluster.name_node.record.lock().unwrap()), "three minutes are not over");

    std::fs::write(cluster.dir(0).join("bandwidth"), "0").unwrap();
    let _: StartReconfigurationResponseProto =
        admin.call("startReconfiguration", &start).await.unwrap();
    cluster.wait_event(1, 7, Received).await;
    let status: GetReconfigurationStatusResponseProto = admin
        .call("getReconfigurationStatus", &GetReconfigurationStatusRequestProto {})
        .await
        .unwrap();
    let change = &status.changes[0];
    assert_eq!((&change.name[..], &change.old_value[..]), (TRANSFER, "1000"));
    assert_eq!((change.new_value(), change.error_message.as_deref()), ("0", None));
}

const RATE: &str = "dfs.block.scanner.volume.bytes.per.second";

/// No scanner, until a file names a rate for it.
fn no_scanner(config: &mut DataNodeConfig) {
    config.http_addr = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
    config.scan_bytes_per_second = 0;
    let file = config.data_dirs[0].path.join("rate");
    config.reload = Some(Reload::new(move || {
        let text = std::fs::read_to_string(&file).unwrap_or("0".into());
        let scan_bytes_per_second = text.parse().map_err(|error| format!("{error}"))?;
        let settings = DataNodeConfig { scan_bytes_per_second, ..DataNodeConfig::default() };
        Ok((settings, BTreeMap::from([(RATE.to_string(), text)])))
    }));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_block_scanner_is_turned_on_and_says_how_far_it_is() {
    let cluster = Cluster::start_tuned(1, no_scanner).await;
    write_block(&cluster, &[0], 7, 1001, &bytes(5000)).await;
    let http = cluster.node(0).http_addr().unwrap();
    let off = page(http, "/blockScannerReport").await;
    assert!(off.contains("Periodic block scanner is not running."), "{off}");
    assert!(page(http, "/nothing").await.starts_with("HTTP/1.1 404 "));
    let told = cluster.name_node.record.lock().unwrap().registrations[&cluster.uuid(0)].clone();
    assert_eq!(told.datanode_id.info_port, u32::from(http.port()));

    std::fs::write(cluster.dir(0).join("rate"), "100000000").unwrap();
    let protocol = "org.apache.hadoop.hdfs.protocol.ClientDatanodeProtocol";
    let addr = cluster.node(0).ipc_addr();
    let admin = RpcClient::new(addr, protocol, "hdfs", RpcClientOptions::default());
    let start = StartReconfigurationRequestProto {};
    let _: StartReconfigurationResponseProto =
        admin.call("startReconfiguration", &start).await.unwrap();
    let deadline = Instant::now() + Duration::from_secs(30);
    while cluster.node(0).volume_scans()[0].scans_finished == 0 {
        assert!(Instant::now() < deadline, "the scanner stays off");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let on = page(http, "/blockScannerReport").await;
    let (_, body) = on.split_once("\r\n\r\n").unwrap();
    let lines: Vec<&str> = body.lines().collect();
    let value = |name: &str| {
        let line = lines.iter().find(|line| line.starts_with(name)).unwrap();
        line.rsplit(' ').next().unwrap().to_string()
    };
    assert_eq!(lines[0], "Block Scanner Statistics");
    assert_eq!(value("Blocks scanned since restart"), "1");
    assert_eq!(value("Bytes verified in last hour"), "5000");
    assert_eq!(value("Last block scanned"), format!("{POOL}:blk_7_1001"));
    assert_eq!(value("More blocks to scan in period"), "false");
}

const REPORT: &str = "dfs.blockreport.intervalMsec";
const CONNECTIONS: &str = "dfs.datanode.max.transfer.threads";

/// One report at the start, until a file says otherwise.
fn report_seldom(config: &mut DataNodeConfig) {
    let file = config.data_dirs[0].path.join("told");
    config.reload = Some(Reload::new(move || {
        let mut settings = DataNodeConfig::default();
        let mut values = BTreeMap::new();
        if file.exists() {
            settings.block_report_interval = Duration::from_millis(100);
            settings.max_connections = 0;
            values.insert(REPORT.to_string(), "100".to_string());
            values.insert(CONNECTIONS.to_string(), "0".to_string());
        }
        Ok((settings, values))
    }));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reports_and_connections_follow_their_new_bounds() {
    let cluster = Cluster::start_tuned(1, report_seldom).await;
    write_block(&cluster, &[0], 7, 1001, &bytes(1000)).await;
    std::fs::write(cluster.dir(0).join("told"), "").unwrap();
    let protocol = "org.apache.hadoop.hdfs.protocol.ClientDatanodeProtocol";
    let addr = cluster.node(0).ipc_addr();
    let admin = RpcClient::new(addr, protocol, "hdfs", RpcClientOptions::default());
    cluster.name_node.record.lock().unwrap().reports.clear();
    let start = StartReconfigurationRequestProto {};
    let _: StartReconfigurationResponseProto =
        admin.call("startReconfiguration", &start).await.unwrap();
    for _ in 0..2 {
        cluster.wait("another report", |record| record.reports.drain().count() > 0).await;
    }
    let mut stream = tokio::net::TcpStream::connect(cluster.node(0).xfer_addr()).await.unwrap();
    let mut byte = [0];
    let read = tokio::io::AsyncReadExt::read(&mut stream, &mut byte);
    let read = tokio::time::timeout(Duration::from_secs(30), read).await;
    assert!(matches!(read.unwrap(), Ok(0) | Err(_)), "no connection is served any more");
}

const DATA_DIRS: &str = "dfs.datanode.data.dir";

/// One volume, until a file in the folder above names others, one a line.
fn listed_volumes(config: &mut DataNodeConfig) {
    let base = config.data_dirs[0].path.clone();
    config.data_dirs[0].path = base.join("first");
    config.reload = Some(Reload::new(move || {
        let text = std::fs::read_to_string(base.join("list")).unwrap_or("first".into());
        let data_dirs = text.split_terminator('\n').map(|name| base.join(name).into()).collect();
        let settings = DataNodeConfig { data_dirs, ..DataNodeConfig::default() };
        Ok((settings, BTreeMap::from([(DATA_DIRS.to_string(), text)])))
    }));
}

/// Has the DataNode read another list; returns what is wrong with it.
async fn change_volumes(cluster: &Cluster, list: &str) -> Option<String> {
    std::fs::write(cluster.dir(0).join("list"), list).unwrap();
    let protocol = "org.apache.hadoop.hdfs.protocol.ReconfigurationProtocol";
    let addr = cluster.node(0).ipc_addr();
    let admin = RpcClient::new(addr, protocol, "hdfs", RpcClientOptions::default());
    let start = StartReconfigurationRequestProto {};
    let _: StartReconfigurationResponseProto =
        admin.call("startReconfiguration", &start).await.unwrap();
    let status: GetReconfigurationStatusResponseProto = admin
        .call("getReconfigurationStatus", &GetReconfigurationStatusRequestProto {})
        .await
        .unwrap();
    status.changes[0].error_message.clone()
}

async fn read_back(cluster: &Cluster, id: i64, gs: u64, data: &[u8]) {
    let len = data.len() as u64;
    let mut stream = cluster.connect(0).await;
    assert_eq!(read(&mut stream, block(id, gs, len), 0, len).await.unwrap(), data);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn volumes_come_and_go_while_the_datanode_runs() {
    let cluster = Cluster::start_tuned(1, listed_volumes).await;
    let uuid = cluster.uuid(0);
    let (first, second) = (cluster.dir(0).join("first"), cluster.dir(0).join("second"));
    let data = bytes(3000);
    write_block(&cluster, &[0], 7, 1001, &data).await;
    assert_eq!(change_volumes(&cluster, "first\nsecond").await, None);
    let scanned = || {
        let scans = cluster.node(0).volume_scans();
        scans.into_iter().map(|scan| scan.dir).collect::<Vec<_>>()
    };
    assert_eq!(scanned(), [first, second.clone()]);

    cluster.name_node.record.lock().unwrap().reports.clear();
    assert_eq!(change_volumes(&cluster, "second").await, None);
    cluster.wait_event(0, 7, Deleted).await;
    let reported = |r: &mut Record| r.reports.get(&uuid).map(|all| all.len());
    cluster.wait("a report without it", |r| reported(r) == Some(0)).await;
    assert_eq!(scanned(), [second]);
    assert_eq!(cluster.files(0, 7).len(), 2, "its files stay");
    write_block(&cluster, &[0], 8, 1002, &data).await;
    assert!(cluster.files(0, 8).iter().all(|file| file.starts_with("second")));

    cluster.name_node.record.lock().unwrap().reports.clear();
    assert_eq!(change_volumes(&cluster, "first\nsecond\n").await, None);
    cluster.wait("a report of both", |r| reported(r) == Some(2)).await;
    read_back(&cluster, 7, 1001, &data).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn volumes_that_cannot_be_taken_in_are_named_and_the_last_one_stays() {
    let cluster = Cluster::start_tuned(1, listed_volumes).await;
    let bad = cluster.dir(0).join("bad");
    std::fs::write(&bad, "a file").unwrap();
    let wrong = change_volumes(&cluster, "first\nbad").await.unwrap();
    assert!(
        wrong.starts_with(&format!("FAILED TO ADD: [DISK]file:{}: ", bad.display())),
        "{wrong}"
    );
    let wrong = change_volumes(&cluster, "bad").await.unwrap();
    assert!(wrong.ends_with("Attempt to remove all volumes."), "{wrong}");
    let wrong = change_volumes(&cluster, "").await.unwrap();
    assert_eq!(wrong, "No directory is specified.");
    let data = bytes(100);
    write_block(&cluster, &[0], 7, 1001, &data).await;
    read_back(&cluster, 7, 1001, &data).await;
}
