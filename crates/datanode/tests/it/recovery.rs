//! Recovery of blocks whose writer died.

use crate::cluster::*;
use cairn_datanode::DataNodeConfig;
use cairn_net::rpc_client::{RpcClient, RpcClientOptions};
use cairn_net::transfer_stream::{TransferOptions, TransferStream};
use cairn_wire::proto::datanode::*;
use cairn_wire::proto::hdfs::*;
use cairn_wire::transfer::Op;
use std::time::Duration;

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
    let patient = |config: &mut DataNodeConfig| config.read_timeout = Duration::from_secs(120);
    let cluster = Cluster::start_tuned(1, patient).await;
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut target = cluster.info(0);
    target.id.xfer_port = silent.local_addr().unwrap().port().into();
    let request =
        write_request(block(ID, 1001, 0), Stage::PipelineSetupCreate, vec![target.clone()]);
    let mut stream = cluster.connect(0).await;
    stream.writer.send_op(Op::WriteBlock, &request).await.unwrap();
    let _mirror = silent.accept().await.unwrap();
    cluster.send_command(0, recover(vec![order(block(ID, 1001, 0), 1005, vec![cluster.info(0)])]));
    // Much less than the mirror's time limit.
    let recovered = cluster.wait("synchronization", |r| !r.synchronized.is_empty());
    tokio::time::timeout(Duration::from_secs(60), recovered).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn who_comes_after_a_recovery_that_found_nothing_opens_nothing() {
    let cluster = Cluster::start(3).await;
    let locs = (0..3).map(|n| cluster.info(n)).collect();
    cluster.send_command(0, recover(vec![order(block(ID, 1001, 0), 1005, locs)]));
    cluster.wait("synchronization", |r| !r.synchronized.is_empty()).await;
    assert!(cluster.name_node.record.lock().unwrap().synchronized[0].delete_block);
    // A writer that was given the block before, and knows nothing of that.
    let late = write_request(block(ID, 1001, 0), Stage::PipelineSetupCreate, vec![]);
    let mut stream = cluster.connect(0).await;
    stream.writer.send_op(Op::WriteBlock, &late).await.unwrap();
    let answer = stream.reader.read_message::<BlockOpResponseProto>("answer").await;
    assert!(answer.is_err(), "{answer:?}");
    assert!(cluster.files(0, ID).is_empty());
    // Who has the recovery's stamp comes after it.
    write_block(&cluster, &[0], ID, 1005, &bytes(100)).await;
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
async fn a_block_that_was_cut_off_at_one_datanode_only_is_cut_off_again() {
    let cluster = Cluster::start(2).await;
    let data = bytes(2000);
    write_block(&cluster, &[0, 1], ID, 1001, &data).await;
    let cut = |new_gs: u64, nodes: &[usize]| {
        let locs = nodes.iter().map(|node| cluster.info(*node)).collect();
        let new = BlockProto { block_id: ID as u64, gen_stamp: new_gs, num_bytes: Some(700) };
        let order = order(block(ID, 1001, 2000), new_gs, locs);
        recover(vec![RecoveringBlockProto { truncate_block: Some(new), ..order }])
    };
    cluster.send_command(0, cut(1005, &[0]));
    cluster.wait("first attempt", |r| r.synchronized.len() == 1).await;
    cluster.send_command(1, cut(1006, &[0, 1]));
    cluster.wait("second attempt", |r| r.synchronized.len() == 2).await;
    let done = cluster.name_node.record.lock().unwrap().synchronized[1].clone();
    assert_eq!((done.new_gen_stamp, done.new_length, done.new_taragets.len()), (1006, 700, 2));
    for node in 0..2 {
        let mut stream = cluster.connect(node).await;
        let got = read(&mut stream, block(ID, 1006, 0), 0, 700).await.unwrap();
        assert_eq!(got, data[..700]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_stays_of_a_block_is_copied_to_another_one_and_again_when_an_attempt_is_repeated() {
    const COPY: i64 = ID + 1;
    let mut cluster = Cluster::start(2).await;
    let data = bytes(2000);
    write_block(&cluster, &[0, 1], ID, 1001, &data).await;
    let copy = |cluster: &Cluster, new_gs: u64, nodes: &[usize]| {
        let locs = nodes.iter().map(|node| cluster.info(*node)).collect();
        let new = BlockProto { block_id: COPY as u64, gen_stamp: new_gs, num_bytes: Some(700) };
        let order = order(block(ID, 1001, 2000), new_gs, locs);
        recover(vec![RecoveringBlockProto { truncate_block: Some(new), ..order }])
    };
    cluster.send_command(0, copy(&cluster, 1005, &[0]));
    cluster.wait("first attempt", |r| r.synchronized.len() == 1).await;
    cluster.send_command(1, copy(&cluster, 1006, &[0, 1]));
    cluster.wait("second attempt", |r| r.synchronized.len() == 2).await;
    let done = cluster.name_node.record.lock().unwrap().synchronized[1].clone();
    assert_eq!(done.block.block_id, ID as u64);
    assert_eq!((done.new_gen_stamp, done.new_length, done.new_taragets.len()), (1006, 700, 2));
    let received = ReceivedDeletedBlockInfoProtoBlockStatus::Received;
    for node in 0..2 {
        let event = cluster.wait_event_of(node, COPY, 1006, received).await;
        assert_eq!(event.crc32c, Some(cairn_codec::crc::crc32c(0, &data[..700])));
    }
    // The first attempt has left nothing, and both are there after a restart.
    assert_eq!(cluster.files(0, COPY).len(), 2);
    cluster.kill_node(0);
    cluster.start_node(0).await;
    for node in 0..2 {
        let mut stream = cluster.connect(node).await;
        let got = read(&mut stream, block(COPY, 1006, 0), 0, 700).await.unwrap();
        assert_eq!(got, data[..700]);
        let mut stream = cluster.connect(node).await;
        assert!(read(&mut stream, block(COPY, 1006, 0), 0, 701).await.is_err());
        let mut stream = cluster.connect(node).await;
        assert_eq!(read(&mut stream, block(ID, 1001, 0), 0, 2000).await.unwrap(), data);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_block_nobody_holds_is_deleted_when_all_that_may_have_it_have_answered() {
    let cluster = Cluster::start(2).await;
    let locs = (0..2).map(|n| cluster.info(n)).collect();
    let all = order(block(ID, 1001, 0), 1005, locs);
    let with_away = |new_gen_stamp, away_indices| {
        let order = RecoveringBlockProto { new_gen_stamp, away_indices, ..all.clone() };
        cluster.send_command(1, recover(vec![order]));
    };
    // One is dead, or Hadoop's NameNode does not tell whether one is.
    with_away(1005, Some(vec![0]));
    with_away(1006, None);
    // What is acknowledged is not dropped, whoever has lost it.
    let acknowledged = order(block(ID, 1001, 70), 1007, all.block.locs.clone());
    let acknowledged = RecoveringBlockProto { away_indices: Some(vec![]), ..acknowledged };
    cluster.send_command(1, recover(vec![acknowledged]));
    tokio::time::sleep(Duration::from_millis(500)).await;
    with_away(1008, Some(vec![]));
    cluster.wait("synchronization", |r| !r.synchronized.is_empty()).await;
    let done = cluster.name_node.record.lock().unwrap().synchronized.clone();
    let told: Vec<_> =
        done.iter().map(|d| (d.new_gen_stamp, d.new_length, d.delete_block)).collect();
    assert_eq!(told, [(1008, 0, true)]);
}

/// The power has taken all that its writer had not synced from the only one that is left of the pipeline, and maybe the
/// header of the CRCs.
#[tokio::test(flavor = "multi_thread")]
async fn a_block_whose_acknowledged_bytes_the_power_has_taken_ends_without_them() {
    for (id, meta_len) in [(ID, 7), (ID + 1, 0)] {
        let mut cluster = Cluster::start(1).await;
        let mut writer = Writer::create(&cluster, &[0], id, 1001).await;
        writer.write(&bytes(700), 1).await;
        cluster.kill_node(0);
        for (path, len) in cluster.files(0, id).into_iter().zip([0, meta_len]) {
            let path = cluster.dir(0).join(path);
            std::fs::File::options().write(true).open(path).unwrap().set_len(len).unwrap();
        }
        cluster.start_node(0).await;
        let order = order(block(id, 1001, 700), 1005, vec![cluster.info(0)]);
        let told = (Some(vec![]), Some(1001), Some(0));
        let (away_indices, earlier_gen_stamp, earlier_away_count) = told;
        let order =
            RecoveringBlockProto { away_indices, earlier_gen_stamp, earlier_away_count, ..order };
        cluster.send_command(0, recover(vec![order]));
        cluster.wait("synchronization", |r| !r.synchronized.is_empty()).await;
        let done = cluster.name_node.record.lock().unwrap().synchronized[0].clone();
        assert_eq!((done.new_gen_stamp, done.new_length, done.delete_block), (1005, 0, false));
        let received = ReceivedDeletedBlockInfoProtoBlockStatus::Received;
        let event = cluster.wait_event_of(0, id, 1005, received).await;
        assert_eq!(event.block.num_bytes, Some(0));
    }
}

/// The power has taken all or a part from the only one that the writer had gone on with: DataNodes that it had gone on without
/// have more.
#[tokio::test(flavor = "multi_thread")]
async fn what_the_last_of_a_pipeline_has_lost_is_taken_from_those_that_had_left_it() {
    let mut cluster = Cluster::start(3).await;
    let data = bytes(2000);
    for (id, left) in [(ID, 0_u64), (ID + 1, 512)] {
        let mut writers = Vec::new();
        for (node, gs, len) in [(0, 1003, 2000), (1, 1001, 700), (2, 1002, 1500)] {
            let mut writer = Writer::create(&cluster, &[node], id, gs).await;
            writer.write(&data[..len], 1).await;
            writers.push(writer);
        }
        cluster.kill_node(0);
        for path in cluster.files(0, id) {
            let is_meta = path.extension().is_some_and(|extension| extension == "meta");
            let len = if is_meta { 7 + 4 * left.div_ceil(512) } else { left };
            let file =
                std::fs::File::options().write(true).open(cluster.dir(0).join(path)).unwrap();
            file.set_len(len).unwrap();
        }
        cluster.start_node(0).await;
        let order = |new_gs, earlier: &[usize], earlier_away_count| RecoveringBlockProto {
            away_indices: Some(vec![]),
            earlier_gen_stamp: Some(1001),
            earlier_locs: earlier.iter().map(|node| cluster.info(*node)).collect(),
            earlier_away_count: Some(earlier_away_count),
            ..order(block(id, 1003, 1200), new_gs, vec![cluster.info(0)])
        };
        // One that may have more is dead.
        cluster.send_command(0, recover(vec![order(1005, &[1], 1)]));
        tokio::time::sleep(Duration::from_millis(500)).await;
        cluster.send_command(0, recover(vec![order(1006, &[1, 2], 0)]));
        let done = |r: &mut Record| r.synchronized.iter().any(|d| d.block.block_id == id as u64);
        cluster.wait("synchronization", done).await;
        let done = cluster.name_node.record.lock().unwrap().synchronized.clone();
        let done: Vec<_> = done.iter().filter(|done| done.block.block_id == id as u64).collect();
        let told: Vec<_> = done.iter().map(|d| (d.new_gen_stamp, d.new_length)).collect();
        assert_eq!(told, [(1006, 1500)]);
        let nodes: Vec<_> = done[0].new_taragets.iter().map(|id| &id.datanode_uuid).collect();
        assert_eq!(nodes, [&cluster.info(2).id.datanode_uuid]);
        let mut stream = cluster.connect(2).await;
        assert_eq!(read(&mut stream, block(id, 1006, 0), 0, 1500).await.unwrap(), data[..1500]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_block_of_which_one_cannot_be_asked_is_not_deleted() {
    let mut cluster = Cluster::start(2).await;
    let data = bytes(1000);
    let mut writer = Writer::create(&cluster, &[0], ID, 1001).await;
    writer.write(&data, 1).await;
    let locs: Vec<_> = (0..2).map(|n| cluster.info(n)).collect();
    cluster.kill_node(0);
    cluster.send_command(1, recover(vec![order(block(ID, 1001, 0), 1005, locs)]));
    // The second order's answer shows what became of the first.
    let other = order(block(ID + 1, 1001, 0), 1006, vec![cluster.info(1)]);
    let other = RecoveringBlockProto { away_indices: Some(vec![]), ..other };
    tokio::time::sleep(Duration::from_millis(500)).await;
    cluster.send_command(1, recover(vec![other]));
    cluster.wait("synchronization", |r| !r.synchronized.is_empty()).await;
    let done = cluster.name_node.record.lock().unwrap().synchronized.clone();
    assert_eq!(done.iter().map(|done| done.block.block_id).collect::<Vec<_>>(), [ID as u64 + 1]);
    cluster.start_node(0).await;
    let locs: Vec<_> = (0..2).map(|n| cluster.info(n)).collect();
    cluster.send_command(1, recover(vec![order(block(ID, 1001, 0), 1007, locs)]));
    cluster.wait("synchronization", |r| r.synchronized.len() == 2).await;
    let done = cluster.name_node.record.lock().unwrap().synchronized[1].clone();
    assert_eq!((done.new_length, done.delete_block), (1000, false));
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
    let order = group_order(&cluster, group, cell);
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
async fn a_block_group_is_not_dropped_while_units_that_may_have_bytes_are_away() {
    let cluster = Cluster::start(3).await;
    let cell = 1024;
    let group = i64::MIN + 16;
    // RS(2, 1): unit 1 has lost its replica, and unit 2 is on a rack that is away.
    for unit in [0, 2] {
        let mut writer = Writer::create(&cluster, &[unit], group + unit as i64, 1001).await;
        writer.write(&bytes(2 * cell), 1).await;
    }
    let whole = group_order(&cluster, group, cell);
    let mut without_unit_2 = whole.clone();
    without_unit_2.block.locs.truncate(2);
    without_unit_2.block_indices = Some(vec![0, 1]);
    cluster.send_command(0, recover(vec![without_unit_2]));
    // The next order's answer shows what became of the first.
    tokio::time::sleep(Duration::from_millis(500)).await;
    cluster.send_command(0, recover(vec![RecoveringBlockProto { new_gen_stamp: 1006, ..whole }]));
    cluster.wait("synchronization", |r| !r.synchronized.is_empty()).await;
    let done = cluster.name_node.record.lock().unwrap().synchronized.clone();
    let told: Vec<_> = done.iter().map(|d| (d.new_gen_stamp, d.new_length)).collect();
    assert_eq!(told, [(1006, 4 * cell as u64)]);
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

/// Flips a bit of byte `at` of the replica of `id` on DataNode `node`.
fn flip(cluster: &Cluster, node: usize, id: i64, at: usize) {
    let files = cluster.files(node, id);
    let data = files.iter().find(|path| path.extension().is_none()).unwrap();
    let data = cluster.dir(node).join(data);
    let mut bytes = std::fs::read(&data).unwrap();
    bytes[at] ^= 4;
    std::fs::write(&data, &bytes).unwrap();
}

async fn wait_bad(cluster: &Cluster, node: usize, id: i64) {
    let bad = (id, cluster.uuid(node));
    cluster.wait("a report of the bad replica", |r| r.bad.contains(&bad)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flipped_bit_in_the_chunk_that_a_recovery_cuts_gets_no_good_crc() {
    let cluster = Cluster::start(2).await;
    let data = bytes(2000);
    for (node, len) in [(0, 1700), (1, 1300)] {
        let mut writer = Writer::create(&cluster, &[node], ID, 1001).await;
        writer.write(&data[..len], 1).await;
    }
    flip(&cluster, 0, ID, 1290);
    let locs = (0..2).map(|n| cluster.info(n)).collect();
    cluster.send_command(1, recover(vec![order(block(ID, 1001, 0), 1005, locs)]));
    cluster.wait("synchronization", |r| !r.synchronized.is_empty()).await;
    let done = cluster.name_node.record.lock().unwrap().synchronized[0].clone();
    assert_eq!((done.new_length, done.delete_block), (1300, false));
    let kept: Vec<_> = done.new_taragets.iter().map(|id| id.datanode_uuid.clone()).collect();
    assert_eq!(kept, [cluster.uuid(1)], "the damaged one is no part of the block");
    wait_bad(&cluster, 0, ID).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flipped_bit_in_the_chunk_that_a_pipeline_recovery_cuts_gets_no_good_crc() {
    // Nobody acknowledges what the first one passes on: it holds more than the pipeline has.
    let patient = |config: &mut DataNodeConfig| config.read_timeout = Duration::from_secs(120);
    let cluster = Cluster::start_tuned(1, patient).await;
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut target = cluster.info(0);
    target.id.xfer_port = silent.local_addr().unwrap().port().into();
    let request = write_request(block(ID, 1001, 0), Stage::PipelineSetupCreate, vec![target]);
    let mut stream = cluster.connect(0).await;
    stream.writer.send_op(Op::WriteBlock, &request).await.unwrap();
    let (socket, _) = silent.accept().await.unwrap();
    let mut mirror = TransferStream::from_tcp(socket, &TransferOptions::default()).unwrap();
    mirror.reader.read_op().await.unwrap();
    let ready = BlockOpResponseProto {
        status: Status::Success as i32,
        first_bad_link: Some(String::new()),
        ..Default::default()
    };
    mirror.writer.send_message(&ready).await.unwrap();
    let _: BlockOpResponseProto = stream.reader.read_message("answer").await.unwrap();
    let mut writer = Writer { stream, seqno: 0, offset: 0 };
    let data = bytes(1000);
    for part in [&data[..700], &data[700..]] {
        writer.send(part, &crcs(part), false, false).await;
        mirror.reader.read_packet().await.unwrap();
        if writer.seqno == 1 {
            let ack = PipelineAckProto {
                seqno: 0,
                reply: vec![Status::Success as i32],
                ..Default::default()
            };
            mirror.writer.send_message(&ack).await.unwrap();
            writer.expect_ack(2).await;
        }
    }
    let len = || cluster.files(0, ID).iter().map(|f| file_len(&cluster, f)).max().unwrap();
    while len() < 1000 {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    flip(&cluster, 0, ID, 600);
    let request = OpWriteBlockProto {
        latest_generation_stamp: 1002,
        min_bytes_rcvd: 700,
        max_bytes_rcvd: 1000,
        ..write_request(block(ID, 1001, 700), Stage::PipelineSetupStreamingRecovery, Vec::new())
    };
    let mut stream = cluster.connect(0).await;
    stream.writer.send_op(Op::WriteBlock, &request).await.unwrap();
    let answer = stream.reader.read_message::<BlockOpResponseProto>("answer").await;
    assert!(answer.is_err(), "{answer:?}");
    wait_bad(&cluster, 0, ID).await;
}

fn file_len(cluster: &Cluster, file: &std::path::Path) -> u64 {
    std::fs::metadata(cluster.dir(0).join(file)).map_or(0, |meta| meta.len())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_block_group_is_recovered_without_a_unit_that_has_a_flipped_bit_where_it_is_cut() {
    let cluster = Cluster::start(3).await;
    let cell = 1000;
    let group = i64::MIN + 16;
    for (unit, len) in [(0, 3 * cell), (1, 2 * cell + 100), (2, 2 * cell + 700)] {
        let mut writer = Writer::create(&cluster, &[unit], group + unit as i64, 1001).await;
        writer.write(&bytes(len), 1).await;
    }
    flip(&cluster, 1, group + 1, 2 * cell - 10);
    let order = group_order(&cluster, group, cell);
    cluster.send_command(0, recover(vec![order]));
    cluster.wait("synchronization", |r| !r.synchronized.is_empty()).await;
    let done = cluster.name_node.record.lock().unwrap().synchronized[0].clone();
    assert_eq!((done.new_length, done.delete_block), (4 * cell as u64, false));
    let kept: Vec<_> = done.new_taragets.iter().map(|id| id.datanode_uuid.clone()).collect();
    assert_eq!(kept, [cluster.uuid(0), "null".into(), cluster.uuid(2)]);
    wait_bad(&cluster, 1, group + 1).await;
}

fn group_order(cluster: &Cluster, group: i64, cell: usize) -> RecoveringBlockProto {
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
    order
}
