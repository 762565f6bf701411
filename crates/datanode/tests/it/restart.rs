//! What a DataNode remembers, and how it follows its NameNode.

use crate::cluster::*;
use cairn_datanode::{DataNode, DataNodeConfig};
use cairn_wire::proto::datanode::ReceivedDeletedBlockInfoProtoBlockStatus::{Deleted, Received};
use cairn_wire::proto::datanode::*;
use cairn_wire::proto::hdfs::BlockProto;
use cairn_wire::transfer::Op;
use std::fs;
use std::time::Duration;

const ID: i64 = 1_073_741_825;
const FINALIZED: u64 = 0;
const RWR: u64 = 2;

#[tokio::test(flavor = "multi_thread")]
async fn finalized_replicas_stay_and_open_ones_keep_what_their_crcs_cover() {
    let mut cluster = Cluster::start(1).await;
    let data = bytes(5000);
    write_block(&cluster, &[0], ID, 1001, &data).await;
    let mut writer = Writer::create(&cluster, &[0], ID + 1, 1002).await;
    writer.write(&data[..3000], 1).await;
    let uuid = cluster.uuid(0);
    cluster.kill_node(0);
    drop(writer);
    let rbw = cluster.dir(0).join(format!("current/{POOL}/current/rbw/blk_{}", ID + 1));
    // A torn write: bytes without CRCs, and a temporary copy.
    let mut torn = fs::read(&rbw).unwrap();
    assert_eq!(torn, &data[..3000]);
    torn.extend_from_slice(&[1; 700]);
    fs::write(&rbw, torn).unwrap();
    fs::write(cluster.dir(0).join(format!("current/{POOL}/tmp/blk_9")), b"copy").unwrap();

    cluster.start_node(0).await;
    assert_eq!(cluster.uuid(0), uuid, "the identity is kept");
    let mut report = cluster.name_node.record.lock().unwrap().reports[&uuid].clone();
    report.sort();
    // The last CRC covers a part of its chunk, which the torn bytes have made longer: that part may be acknowledged.
    assert_eq!(report, [(ID, 5000, 1001, FINALIZED), (ID + 1, 3000, 1002, RWR)]);
    assert_eq!(
        read(&mut cluster.connect(0).await, block(ID, 1001, 0), 0, 5000).await.unwrap(),
        data
    );
    let refused = read(&mut cluster.connect(0).await, block(ID + 1, 1002, 0), 0, 1).await;
    assert!(refused.is_err(), "a replica waiting for recovery is not readable");
    assert_eq!(fs::metadata(&rbw).unwrap().len(), 3000);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_open_replica_without_torn_bytes_keeps_all_of_them() {
    let mut cluster = Cluster::start(1).await;
    let mut writer = Writer::create(&cluster, &[0], ID, 1001).await;
    writer.write(&bytes(3000), 1).await;
    cluster.kill_node(0);
    cluster.start_node(0).await;
    let report = cluster.name_node.record.lock().unwrap().reports[&cluster.uuid(0)].clone();
    assert_eq!(report, [(ID, 3000, 1001, RWR)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn deleted_replicas_leave_no_files_and_other_stamps_stay() {
    let cluster = Cluster::start(1).await;
    for id in [ID, ID + 1] {
        write_block(&cluster, &[0], id, 1001, &bytes(100)).await;
    }
    let named =
        |id: i64, gs| BlockProto { block_id: id as u64, gen_stamp: gs, num_bytes: Some(100) };
    let mut order = command(DatanodeCommandProtoType::BlockCommand);
    order.blk_cmd = Some(BlockCommandProto {
        action: BlockCommandProtoAction::Invalidate as i32,
        block_pool_id: POOL.into(),
        blocks: vec![named(ID + 1, 1000), named(ID + 2, 1001), named(ID, 1001)],
        ..Default::default()
    });
    cluster.name_node.record.lock().unwrap().events.clear();
    cluster.send_command(0, order);
    cluster.wait_event(0, ID, Deleted).await;
    // What the NameNode is wrong about, it is told of.
    let event = cluster.wait_event(0, ID + 1, Received).await;
    assert_eq!((event.block.gen_stamp, event.block.num_bytes), (1001, Some(100)));
    cluster.wait_event(0, ID + 2, Deleted).await;
    assert!(cluster.files(0, ID).is_empty());
    assert_eq!(cluster.files(0, ID + 1).len(), 2, "the NameNode did not mean this stamp");
    assert!(read(&mut cluster.connect(0).await, block(ID, 1001, 0), 0, 1).await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restarted_name_node_gets_a_registration_and_a_full_report() {
    let mut cluster = Cluster::start(2).await;
    write_block(&cluster, &[0, 1], ID, 1001, &bytes(100)).await;
    cluster.restart_name_node().await;
    let uuids = [cluster.uuid(0), cluster.uuid(1)];
    for uuid in uuids {
        cluster
            .wait("a report after the restart", |r| {
                r.reports.get(&uuid).is_some_and(|lines| lines == &[(ID, 100, 1001, FINALIZED)])
            })
            .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_data_nodes_cannot_share_a_folder() {
    let cluster = Cluster::start(1).await;
    let config = cairn_datanode::DataNodeConfig {
        data_dirs: vec![cluster.dir(0).to_path_buf().into()],
        xfer_addr: "127.0.0.1:0".parse().unwrap(),
        ipc_addr: "127.0.0.1:0".parse().unwrap(),
        ..Default::default()
    };
    let error = cairn_datanode::DataNode::start(config).await.err().unwrap();
    assert!(error.to_string().contains("already locked"), "{error}");
}

/// A DataNode on two folders.
fn two_volumes(
    cluster: &Cluster,
    dirs: &[tempfile::TempDir; 2],
    tolerated: Option<usize>,
) -> DataNodeConfig {
    DataNodeConfig {
        data_dirs: dirs.iter().map(|dir| dir.path().to_path_buf().into()).collect(),
        name_nodes: vec![cluster.name_node_addr().to_string()],
        xfer_addr: "127.0.0.1:0".parse().unwrap(),
        ipc_addr: "127.0.0.1:0".parse().unwrap(),
        heartbeat_interval: Duration::from_millis(20),
        failed_volumes_tolerated: tolerated,
        ..DataNodeConfig::default()
    }
}

async fn wait_report(cluster: &Cluster, uuid: &str) {
    cluster.wait("a report", |r| r.reports.contains_key(uuid)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_volume_that_cannot_be_read_at_the_start_is_left_out_if_that_is_tolerated() {
    let cluster = Cluster::start(0).await;
    let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let node = DataNode::start(two_volumes(&cluster, &dirs, Some(0))).await.unwrap();
    let uuid = node.uuid().to_string();
    wait_report(&cluster, &uuid).await;
    node.shutdown().await;
    assert!(dirs[1].path().join("in_use.lock").exists());
    let version = dirs[1].path().join(format!("current/{POOL}/current/VERSION"));
    fs::write(version, "no properties").unwrap();
    let refused = DataNode::start(two_volumes(&cluster, &dirs, Some(0))).await;
    assert!(refused.is_err(), "no volume may fail");
    for tolerated in [Some(1), None] {
        cluster.name_node.record.lock().unwrap().reports.clear();
        let node = DataNode::start(two_volumes(&cluster, &dirs, tolerated)).await.unwrap();
        assert_eq!(node.uuid(), uuid);
        wait_report(&cluster, &uuid).await;
        node.shutdown().await;
    }
    let refused = DataNode::start(two_volumes(&cluster, &dirs, Some(2))).await;
    let why = refused.err().expect("both may not fail").to_string();
    assert!(why.contains("tolerated is 2, and there are 2 volumes"), "{why}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_volume_that_vanishes_does_not_end_the_heartbeats_of_the_others() {
    let cluster = Cluster::start(0).await;
    let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let node = DataNode::start(two_volumes(&cluster, &dirs, Some(1))).await.unwrap();
    wait_report(&cluster, node.uuid()).await;
    // At once: the DataNode may write there meanwhile.
    fs::rename(dirs[1].path(), dirs[0].path().with_extension("gone")).unwrap();
    let seen = cluster.name_node.record.lock().unwrap().heartbeats;
    cluster.wait("more heartbeats", |r| r.heartbeats > seen + 5).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_folder_has_hadoops_identity_files() {
    let cluster = Cluster::start(1).await;
    let read = |path: &str| fs::read_to_string(cluster.dir(0).join(path)).unwrap();
    let node = read("current/VERSION");
    for line in [
        "storageType=DATA_NODE",
        "layoutVersion=-57",
        "clusterID=CID-1",
        "cTime=0",
        "storageID=DS-",
    ] {
        assert!(node.contains(line), "{line} in {node}");
    }
    assert!(node.contains(&format!("datanodeUuid={}", cluster.uuid(0))));
    let pool = read(&format!("current/{POOL}/current/VERSION"));
    for line in ["namespaceID=5", "cTime=1", &format!("blockpoolID={POOL}"), "layoutVersion=-57"] {
        assert!(pool.contains(line), "{line} in {pool}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_without_its_disk_stops_and_says_so() {
    let cluster = Cluster::start(1).await;
    let addr = cluster.node(0).xfer_addr();
    // Heartbeats ask the disk for its room, so nobody has to write.
    fs::remove_dir_all(cluster.dir(0)).unwrap();
    let stopped = tokio::time::timeout(Duration::from_secs(10), cluster.node(0).stopped());
    let why = stopped.await.expect("it goes on without a disk");
    assert!(why.starts_with("1 of 1 volumes have failed"), "{why}");
    let closed = async {
        while tokio::net::TcpStream::connect(addr).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), closed).await.expect("the port is still open");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_volume_on_which_no_replica_can_be_made_is_out_of_use() {
    let cluster = Cluster::start(1).await;
    // The disk still tells of its room, so only the write shows it.
    fs::remove_dir_all(cluster.dir(0).join("current")).unwrap();
    let quiet = Duration::from_millis(200);
    assert!(tokio::time::timeout(quiet, cluster.node(0).stopped()).await.is_err());
    let request = write_request(block(ID, 1001, 0), Stage::PipelineSetupCreate, Vec::new());
    let mut stream = cluster.connect(0).await;
    stream.writer.send_op(Op::WriteBlock, &request).await.unwrap();
    let stopped = tokio::time::timeout(Duration::from_secs(10), cluster.node(0).stopped());
    stopped.await.expect("it goes on without a volume");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_volume_that_is_not_mounted_any_more_has_failed() {
    let cluster = Cluster::start(1).await;
    write_block(&cluster, &[0], ID, 1001, &bytes(1000)).await;
    // Its folder stays, as a mount point does.
    let dir = cluster.dir(0);
    fs::rename(dir.join("current"), dir.join("unmounted")).unwrap();
    let refused = read(&mut cluster.connect(0).await, block(ID, 1001, 1000), 0, 1000).await;
    assert!(refused.is_err());
    while cluster.node(0).stop_reason().is_none() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
