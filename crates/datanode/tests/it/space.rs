//! What the DataNode tells of its room: bytes come and go with the files, whatever fails.

use crate::cluster::*;
use cairn_datanode::DataNodeConfig;
use cairn_net::transfer_stream::{TransferOptions, TransferStream};
use cairn_wire::proto::datanode::*;
use cairn_wire::proto::hdfs::*;
use cairn_wire::transfer::{Op, PacketHeader};
use std::path::Path;
use tokio::net::TcpListener;

const ID: i64 = 1_073_741_825;
const CAPACITY: u64 = 64 << 20;

/// So little that the disk's own room does not show.
fn small(config: &mut DataNodeConfig) {
    config.data_dirs[0].capacity = Some(CAPACITY);
}

fn bytes_on_disk(dir: &Path) -> u64 {
    let mut sum = 0;
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sum += bytes_on_disk(&path);
        } else if path.file_name().unwrap().to_string_lossy().starts_with("blk_") {
            sum += std::fs::metadata(path).map_or(0, |meta| meta.len());
        }
    }
    sum
}

/// Waits until a heartbeat tells that just the files there are take room, and returns how much.
async fn settled(cluster: &Cluster, node: usize) -> u64 {
    let uuid = cluster.uuid(node);
    let told = |r: &mut Record| r.storage.get(&uuid).map(|s| (s.dfs_used(), s.remaining()));
    let exact = |r: &mut Record| {
        let used = bytes_on_disk(cluster.dir(node));
        told(r) == Some((used, CAPACITY - used))
    };
    let waited = cluster.wait("true figures", exact);
    if tokio::time::timeout(std::time::Duration::from_secs(30), waited).await.is_err() {
        let now = told(&mut cluster.name_node.record.lock().unwrap());
        let files = bytes_on_disk(cluster.dir(node));
        panic!("{files} bytes of files, told are used and remaining: {now:?} of {CAPACITY}");
    }
    bytes_on_disk(cluster.dir(node))
}

fn invalidate(id: i64, gs: u64) -> DatanodeCommandProto {
    let mut order = command(DatanodeCommandProtoType::BlockCommand);
    order.blk_cmd = Some(BlockCommandProto {
        action: BlockCommandProtoAction::Invalidate as i32,
        block_pool_id: POOL.into(),
        blocks: vec![BlockProto { block_id: id as u64, gen_stamp: gs, num_bytes: None }],
        ..Default::default()
    });
    order
}

/// How a source of a move fails.
#[derive(Clone, Copy, Debug)]
enum Fault {
    Refuses,
    HangsUp,
    SendsWrongBytes,
    IsGone,
}

/// Plays the source of a move.
async fn serve_badly(listener: &TcpListener, fault: Fault) {
    let (socket, _) = listener.accept().await.unwrap();
    let mut stream = TransferStream::from_tcp(socket, &TransferOptions::default()).unwrap();
    let (op, _) = stream.reader.read_op().await.unwrap().unwrap();
    assert_eq!(op, Op::CopyBlock);
    if let Fault::Refuses = fault {
        let answer = BlockOpResponseProto { status: Status::Error as i32, ..Default::default() };
        return stream.writer.send_message(&answer).await.unwrap();
    }
    let info = ReadOpChecksumInfoProto { checksum: checksum(), chunk_offset: 0 };
    let answer = BlockOpResponseProto {
        status: Status::Success as i32,
        read_op_checksum_info: Some(info),
        ..Default::default()
    };
    stream.writer.send_message(&answer).await.unwrap();
    let data = bytes(64 * CHUNK);
    for seqno in 0..3 {
        let mut sums = crcs(&data);
        if seqno == 2 && matches!(fault, Fault::SendsWrongBytes) {
            sums[0] ^= 1;
        }
        let header = PacketHeader {
            offset_in_block: seqno * data.len() as i64,
            seqno,
            last_packet: false,
            data_len: data.len() as u32,
            sync_block: false,
        };
        if stream.writer.send_packet(&header, &sums, &data).await.is_err() {
            // A target that gives up may close before it has read all.
            return;
        }
    }
    if let Fault::SendsWrongBytes = fault {
        // The end of the connection comes from the other side.
        assert!(stream.reader.wait_closed(1 << 20).await);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn moves_that_fail_leave_no_trace_in_the_figures() {
    let cluster = Cluster::start_tuned(1, small).await;
    write_block(&cluster, &[0], ID, 1001, &bytes(70_001)).await;
    let before = settled(&cluster, 0).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut source = cluster.info(0);
    source.id.datanode_uuid = "another".into();
    source.id.xfer_port = listener.local_addr().unwrap().port().into();
    let gone = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    for round in 0..12 {
        let fault =
            [Fault::Refuses, Fault::HangsUp, Fault::SendsWrongBytes, Fault::IsGone][round % 4];
        let is_gone = matches!(fault, Fault::IsGone);
        let mut source = source.clone();
        if is_gone {
            source.id.xfer_port = gone.port().into();
        }
        let request = OpReplaceBlockProto {
            header: base_header(block(ID + 1, 1001, 1_000_000)),
            del_hint: "another".into(),
            source,
            ..Default::default()
        };
        let mut stream = cluster.connect(0).await;
        stream.writer.send_op(Op::ReplaceBlock, &request).await.unwrap();
        if !is_gone {
            serve_badly(&listener, fault).await;
        }
        let answer: BlockOpResponseProto = stream.reader.read_message("answer").await.unwrap();
        assert_eq!(answer.status, Status::Error as i32, "{fault:?}");
    }
    // One that is there already is refused as well.
    let request = OpReplaceBlockProto {
        header: base_header(block(ID, 1001, 70_001)),
        del_hint: "another".into(),
        source,
        ..Default::default()
    };
    let mut stream = cluster.connect(0).await;
    stream.writer.send_op(Op::ReplaceBlock, &request).await.unwrap();
    serve_badly(&listener, Fault::HangsUp).await;
    let answer: BlockOpResponseProto = stream.reader.read_message("answer").await.unwrap();
    assert_eq!(answer.status, Status::Error as i32);
    assert_eq!(settled(&cluster, 0).await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn writes_that_die_and_copies_that_break_give_their_room_back() {
    let mut cluster = Cluster::start_tuned(1, small).await;
    for round in 0..4 {
        let id = ID + round;
        // Pieces that share a chunk: its CRC is written again and again.
        let mut writer = Writer::create(&cluster, &[0], id, 1001).await;
        for _ in 0..20 {
            writer.write(&bytes(64), 1).await;
        }
        drop(writer);
        let request = OpWriteBlockProto {
            header: ClientOperationHeaderProto {
                client_name: String::new(),
                ..header(block(id + 100, 1001, 500_000))
            },
            ..write_request(block(0, 0, 0), Stage::PipelineSetupCreate, Vec::new())
        };
        let mut stream = cluster.connect(0).await;
        stream.writer.send_op(Op::WriteBlock, &request).await.unwrap();
        let mut copy = Writer { stream, seqno: 0, offset: 0 };
        copy.send(&bytes(7000), &crcs(&bytes(7000)), false, false).await;
    }
    let held = settled(&cluster, 0).await;
    // What clients left behind is kept, what DataNodes did is not.
    assert_eq!(held, 4 * (1280 + 7 + 3 * 4));
    // One client comes again, one replica is cut, all the others are deleted.
    let again = OpWriteBlockProto {
        latest_generation_stamp: 1002,
        ..write_request(block(ID, 1001, 0), Stage::PipelineSetupCreate, Vec::new())
    };
    let mut writer = Writer::open(&cluster, &[0], again).await;
    writer.write(&bytes(300), 1).await;
    drop(writer);
    let mut order = command(DatanodeCommandProtoType::BlockRecoveryCommand);
    order.recovery_cmd = Some(BlockRecoveryCommandProto {
        blocks: vec![RecoveringBlockProto {
            new_gen_stamp: 1005,
            block: LocatedBlockProto {
                b: block(ID + 1, 1001, 0),
                locs: vec![cluster.info(0)],
                ..Default::default()
            },
            truncate_block: Some(BlockProto {
                block_id: (ID + 1) as u64,
                gen_stamp: 1005,
                num_bytes: Some(700),
            }),
            ..Default::default()
        }],
    });
    cluster.send_command(0, order);
    cluster.wait("the cut", |r| r.synchronized.iter().any(|s| s.new_length == 700)).await;
    for id in [ID + 2, ID + 3] {
        cluster.send_command(0, invalidate(id, 1001));
    }
    let deleted = ReceivedDeletedBlockInfoProtoBlockStatus::Deleted;
    for id in [ID + 2, ID + 3] {
        cluster.wait_event(0, id, deleted).await;
    }
    assert_eq!(settled(&cluster, 0).await, (300 + 7 + 4) + (700 + 7 + 2 * 4));
    for (id, gs) in [(ID, 1002), (ID + 1, 1005)] {
        cluster.send_command(0, invalidate(id, gs));
        cluster.wait_event_of(0, id, gs, deleted).await;
    }
    assert_eq!(settled(&cluster, 0).await, 0);
    cluster.kill_node(0);
    cluster.start_node(0).await;
    assert_eq!(settled(&cluster, 0).await, 0);
}
