//! Copies between DataNodes: on the NameNode's order, and for a balancer.

use crate::cluster::*;
use cairn_datanode::{DataDir, DataNodeConfig};
use cairn_stripe::StorageType;
use cairn_wire::proto::datanode::ReceivedDeletedBlockInfoProtoBlockStatus::Received;
use cairn_wire::proto::datanode::*;
use cairn_wire::proto::hdfs::*;
use cairn_wire::transfer::Op;
use std::time::{Duration, Instant};

const ID: i64 = 1_073_741_825;

#[tokio::test(flavor = "multi_thread")]
async fn the_name_node_orders_copies_through_a_chain() {
    let cluster = Cluster::start(3).await;
    let data = bytes(70_001);
    write_block(&cluster, &[0], ID, 1001, &data).await;
    let mut order = command(DatanodeCommandProtoType::BlockCommand);
    order.blk_cmd = Some(BlockCommandProto {
        action: BlockCommandProtoAction::Transfer as i32,
        block_pool_id: POOL.into(),
        blocks: vec![BlockProto { block_id: ID as u64, gen_stamp: 1001, num_bytes: Some(70_001) }],
        targets: vec![DatanodeInfosProto { datanodes: vec![cluster.info(1), cluster.info(2)] }],
        ..Default::default()
    });
    cluster.send_command(0, order);
    for node in [1, 2] {
        let event = cluster.wait_event(node, ID, Received).await;
        assert_eq!(event.crc32c, Some(cairn_codec::crc::crc32c(0, &data)));
        assert_eq!(
            read(&mut cluster.connect(node).await, block(ID, 1001, 0), 0, 70_001).await.unwrap(),
            data
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_balancer_moves_a_replica() {
    let cluster = Cluster::start(2).await;
    let data = bytes(50_000);
    write_block(&cluster, &[0], ID, 1001, &data).await;
    let fetch = async |kind: StorageTypeProto| {
        let mut stream = cluster.connect(1).await;
        let request = OpReplaceBlockProto {
            header: base_header(block(ID, 1001, 50_000)),
            del_hint: cluster.uuid(0),
            source: cluster.info(0),
            storage_type: Some(kind as i32),
            ..Default::default()
        };
        stream.writer.send_op(Op::ReplaceBlock, &request).await.unwrap();
        let answer: BlockOpResponseProto = stream.reader.read_message("answer").await.unwrap();
        answer.status
    };
    assert_eq!(fetch(StorageTypeProto::Ssd).await, Status::Error as i32, "it has none");
    assert_eq!(cluster.files(1, ID).len(), 0);
    assert_eq!(fetch(StorageTypeProto::Disk).await, Status::Success as i32);
    let event = cluster.wait_event(1, ID, Received).await;
    assert_eq!(event.delete_hint, Some(cluster.uuid(0)));
    assert_eq!(
        read(&mut cluster.connect(1).await, block(ID, 1001, 0), 0, 50_000).await.unwrap(),
        data
    );
}

/// Adds an archive volume beside the first one.
fn with_archive(config: &mut DataNodeConfig) {
    let path = config.data_dirs[0].path.join("archive");
    let archive = DataDir { storage_type: StorageType::Archive, ..DataDir::from(path) };
    config.data_dirs.push(archive);
    // The data is long enough to need some time at this rate.
    config.balance_bandwidth = 1 << 20;
}

async fn replace(cluster: &Cluster, node: usize, kind: StorageTypeProto, gs: u64) -> Status {
    let mut stream = cluster.connect(node).await;
    let request = OpReplaceBlockProto {
        header: base_header(block(ID, gs, 300_001)),
        del_hint: cluster.uuid(node),
        source: cluster.info(node),
        storage_type: Some(kind as i32),
        storage_id: None,
    };
    stream.writer.send_op(Op::ReplaceBlock, &request).await.unwrap();
    let answer: BlockOpResponseProto = stream.reader.read_message("answer").await.unwrap();
    Status::try_from(answer.status).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mover_moves_a_replica_between_two_storages_of_a_node() {
    for node in [0, 1] {
        let mut cluster = Cluster::start_tuned(2, with_archive).await;
        let data = bytes(300_001);
        write_block(&cluster, &[node], ID, 1001, &data).await;
        let first = cluster.wait_event(node, ID, Received).await;
        assert_eq!(first.delete_hint, None);
        cluster.name_node.record.lock().unwrap().events.clear();
        let start = Instant::now();
        assert_eq!(replace(&cluster, node, StorageTypeProto::Archive, 1001).await, Status::Success);
        // The first step passes at once, the second when the rate allows.
        assert!(start.elapsed() < Duration::from_secs(30));
        let event = cluster.wait_event(node, ID, Received).await;
        assert_eq!(event.crc32c, Some(cairn_codec::crc::crc32c(0, &data)));
        assert_eq!(event.delete_hint.unwrap_or_default(), "", "nothing is to be deleted");
        let files = cluster.files(node, ID);
        assert_eq!(files.len(), 2, "{files:?}");
        assert!(files.iter().all(|path| path.starts_with("archive")));
        let mut stream = cluster.connect(node).await;
        assert_eq!(read(&mut stream, block(ID, 1001, 0), 0, 300_001).await.unwrap(), data);
        // There already, and another stamp: refused, nothing changes.
        assert_eq!(replace(&cluster, node, StorageTypeProto::Archive, 1001).await, Status::Error);
        assert_eq!(replace(&cluster, node, StorageTypeProto::Disk, 1002).await, Status::Error);
        assert_eq!(replace(&cluster, node, StorageTypeProto::Ssd, 1001).await, Status::Error);
        cluster.kill_node(node);
        cluster.start_node(node).await;
        let mut stream = cluster.connect(node).await;
        assert_eq!(read(&mut stream, block(ID, 1001, 0), 0, 300_001).await.unwrap(), data);
        assert_eq!(replace(&cluster, node, StorageTypeProto::Disk, 1001).await, Status::Success);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_with_a_flipped_bit_is_not_moved() {
    let cluster = Cluster::start_tuned(1, with_archive).await;
    write_block(&cluster, &[0], ID, 1001, &bytes(300_001)).await;
    let files = cluster.files(0, ID);
    let data = files.iter().find(|path| path.extension().is_none()).unwrap();
    let data = cluster.dir(0).join(data);
    let mut bytes = std::fs::read(&data).unwrap();
    bytes[200_000] ^= 1;
    std::fs::write(&data, &bytes).unwrap();
    assert_eq!(replace(&cluster, 0, StorageTypeProto::Archive, 1001).await, Status::Error);
    assert_eq!(cluster.files(0, ID), files, "the old one stays, and nothing of the copy");
}
