//! Recovery of blocks whose writer died.

use crate::cluster::*;
use cairn_net::rpc_client::{RpcClient, RpcClientOptions};
use cairn_wire::proto::datanode::*;
use cairn_wire::proto::hdfs::*;

const ID: i64 = 1_073_741_825;

fn order(
    block: ExtendedBlockProto,
    new_gs: u64,
    locs: Vec<DatanodeInfoProto>,
) -> RecoveringBlockProto {
    let located = LocatedBlockProto { b: block, locs, ..Default::default() };
    RecoveringBlockProto { new_gen_stamp: new_gs, block: located, ..Default::default() }
}

fn recover(blocks: Vec<RecoveringBlockProto>) -> DatanodeCommandProto {
    let mut order = command(DatanodeCommandProtoType::BlockRecoveryCommand);
    order.recovery_cmd = Some(BlockRecoveryCommandProto { blocks });
    order
}

#[tokio::test(flavor = "multi_thread")]
async fn a_writer_that_waits_for_its_mirror_gives_way_to_a_recovery() {
    let cluster = Cluster::start(1).await;
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut target = cluster.info(0);
    target.id.xfer_port = silent.local_addr().unwrap().port().into();
    let request =
        write_request(block(ID, 1001, 0), Stage::PipelineSetupCreate, vec![target.clone()]);
    let mut stream = cluster.connect(0).await;
    stream.writer.send_op(cairn_wire::transfer::Op::WriteBlock, &request).await.unwrap();
    let _mirror = silent.accept().await.unwrap();
    cluster.send_command(0, recover(vec![order(block(ID, 1001, 0), 1005, vec![cluster.info(0)])]));
    // Much less than the mirror's time limit.
    let recovered = cluster.wait("synchronization", |r| !r.synchronized.is_empty());
    tokio::time::timeout(std::time::Duration::from_secs(3), recovered).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn replicas_of_different_length_agree_on_the_shortest() {
    let mut cluster = Cluster::start(3).await;
    let data = bytes(2000);
    // Two writers hang; one DataNode has restarted and holds more, but in a worse state.
    let mut writers = Vec::new();
    for (node, len) in [(0, 1700), (1, 1300), (2, 2000)] {
        let mut writer = Writer::create(&cluster, &[node], ID, 1001).await;
        writer.write(&data[..len], 1).await;
        writers.push(writer);
    }
    cluster.kill_node(2);
    cluster.start_node(2).await;
    let locs = (0..3).map(|n| cluster.info(n)).collect();
    cluster.send_command(0, recover(vec![order(block(ID, 1001, 0), 1005, locs)]));
    cluster.wait("synchronization", |r| !r.synchronized.is_empty()).await;
    let done = cluster.name_node.record.lock().unwrap().synchronized[0].clone();
    assert_eq!((done.new_gen_stamp, done.new_length), (1005, 1300));
    assert_eq!((done.close_file, done.delete_block), (true, false));
    assert_eq!((done.new_taragets.len(), done.new_target_storages.len()), (2, 2));
    for node in 0..2 {
        let received = ReceivedDeletedBlockInfoProtoBlockStatus::Received;
        let event = cluster.wait_event_of(node, ID, 1005, received).await;
        assert_eq!(event.crc32c, Some(cairn_codec::crc::crc32c(0, &data[..1300])));
        let got =
            read(&mut cluster.connect(node).await, block(ID, 1005, 0), 0, 1300).await.unwrap();
        assert_eq!(got, data[..1300]);
        assert!(read(&mut cluster.connect(node).await, block(ID, 1005, 0), 0, 1301).await.is_err());
        assert!(
            cluster.files(node, ID).iter().all(|path| path.to_string_lossy().contains("finalized"))
        );
    }
    // The writers have been stopped, and are fenced.
    for mut writer in writers.drain(..2) {
        assert!(writer.stream.reader.wait_closed(1 << 20).await);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_block_nobody_holds_is_deleted() {
    let cluster = Cluster::start(2).await;
    let locs = (0..2).map(|n| cluster.info(n)).collect();
    cluster.send_command(1, recover(vec![order(block(ID, 1001, 0), 1005, locs)]));
    cluster.wait("synchronization", |r| !r.synchronized.is_empty()).await;
    let done = cluster.name_node.record.lock().unwrap().synchronized[0].clone();
    assert_eq!((done.new_length, done.delete_block), (0, true));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_block_group_is_cut_to_its_full_stripes() {
    let cluster = Cluster::start(3).await;
    let cell = 1024;
    let group = i64::MIN + 16;
    // RS(2, 1): 3 full cells, 2 full cells and a part, and 3 parity cells.
    for (unit, len) in [(0, 3 * cell), (1, 2 * cell + 100), (2, 2 * cell + 700)] {
        let mut writer = Writer::create(&cluster, &[unit], group + unit as i64, 1001).await;
        writer.write(&bytes(len), 1).await;
    }
    let mut order = order(block(group, 1001, 0), 1005, (0..3).map(|n| cluster.info(n)).collect());
    order.block_indices = Some(vec![0, 1, 2]);
    order.ec_policy = Some(ErasureCodingPolicyProto {
        id: 70,
        cell_size: Some(cell as u32),
        schema: Some(ECSchemaProto {
            codec_name: "xor".into(),
            data_units: 2,
            parity_units: 1,
            options: Vec::new(),
        }),
        ..Default::default()
    });
    cluster.send_command(0, recover(vec![order]));
    cluster.wait("synchronization", |r| !r.synchronized.is_empty()).await;
    let done = cluster.name_node.record.lock().unwrap().synchronized[0].clone();
    assert_eq!((done.new_length, done.delete_block), (4 * cell as u64, false));
    assert_eq!(done.new_taragets.len(), 3);
    for unit in 0..3 {
        let got =
            read(&mut cluster.connect(unit).await, block(group + unit as i64, 1005, 0), 0, 2048)
                .await
                .unwrap();
        assert_eq!(got, bytes(2048));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rpc_answers_in_hadoops_terms() {
    let cluster = Cluster::start(1).await;
    let mut writer = Writer::create(&cluster, &[0], ID, 1001).await;
    writer.write(&bytes(700), 1).await;
    let addr = cluster.node(0).ipc_addr();
    let protocol = "org.apache.hadoop.hdfs.protocol.ClientDatanodeProtocol";
    let client = RpcClient::new(addr, protocol, "test", RpcClientOptions::default());
    let request = GetReplicaVisibleLengthRequestProto { block: block(ID, 1001, 0) };
    let answer: GetReplicaVisibleLengthResponseProto =
        client.call("getReplicaVisibleLength", &request).await.unwrap();
    assert_eq!(answer.length, 700);
    let request = GetReplicaVisibleLengthRequestProto { block: block(ID + 1, 1001, 0) };
    let refused = client
        .call::<_, GetReplicaVisibleLengthResponseProto>("getReplicaVisibleLength", &request)
        .await;
    let class = "org.apache.hadoop.hdfs.server.datanode.ReplicaNotFoundException";
    assert!(refused.unwrap_err().is_remote(class));
    let refused =
        client.call::<_, GetReplicaVisibleLengthResponseProto>("noSuchMethod", &request).await;
    assert!(refused.unwrap_err().is_remote("org.apache.hadoop.ipc.RpcNoSuchMethodException"));
}
