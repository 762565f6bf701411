//! Copies between DataNodes: on the NameNode's order, and for a balancer.

use crate::cluster::*;
use cairn_wire::proto::datanode::ReceivedDeletedBlockInfoProtoBlockStatus::Received;
use cairn_wire::proto::datanode::*;
use cairn_wire::proto::hdfs::*;
use cairn_wire::transfer::Op;

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
    let mut stream = cluster.connect(1).await;
    let request = OpReplaceBlockProto {
        header: base_header(block(ID, 1001, 50_000)),
        del_hint: cluster.uuid(0),
        source: cluster.info(0),
        ..Default::default()
    };
    stream.writer.send_op(Op::ReplaceBlock, &request).await.unwrap();
    let answer: BlockOpResponseProto = stream.reader.read_message("answer").await.unwrap();
    assert_eq!(answer.status, Status::Success as i32, "{:?}", answer.message);
    let event = cluster.wait_event(1, ID, Received).await;
    assert_eq!(event.delete_hint, Some(cluster.uuid(0)));
    assert_eq!(
        read(&mut cluster.connect(1).await, block(ID, 1001, 0), 0, 50_000).await.unwrap(),
        data
    );
}
