//! Writing through pipelines, and reading back.

use crate::cluster::*;
use cairn_wire::proto::datanode::ReceivedDeletedBlockInfoProtoBlockStatus::{Received, Receiving};
use cairn_wire::proto::hdfs::*;
use cairn_wire::transfer::{Op, PacketHeader};

const ID: i64 = 1_073_741_825;

#[tokio::test(flavor = "multi_thread")]
async fn three_replicas_are_written_and_read_at_any_offset() {
    let cluster = Cluster::start(3).await;
    let data = bytes(300_123);
    write_block(&cluster, &[0, 1, 2], ID, 1001, &data).await;
    let ranges = [
        (0, 300_123),
        (0, 1),
        (1, 511),
        (511, 2),
        (12_345, 100_000),
        (300_122, 1),
        (300_032, 91),
        (5, 0),
    ];
    for node in 0..3 {
        assert!(
            cluster
                .files(node, ID)
                .iter()
                .all(|path| path.to_string_lossy().contains("finalized/subdir0/subdir0"))
        );
        // One connection serves all of them.
        let mut stream = cluster.connect(node).await;
        for (offset, len) in ranges {
            let got = read(&mut stream, block(ID, 1001, 0), offset, len).await.unwrap();
            assert!(
                got == data[offset as usize..(offset + len) as usize],
                "{len} bytes at {offset}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn impossible_reads_are_refused_and_end_the_connection() {
    let cluster = Cluster::start(1).await;
    let data = bytes(1000);
    write_block(&cluster, &[0], ID, 1001, &data).await;
    let other_pool = ExtendedBlockProto { pool_id: "BP-2".into(), ..block(ID, 1001, 0) };
    for (what, block, offset, len) in [
        ("beyond the end", block(ID, 1001, 0), 900, 101),
        ("overflow", block(ID, 1001, 0), u64::MAX, 2),
        ("newer stamp", block(ID, 1002, 0), 0, 1),
        ("unknown block", block(ID + 1, 1001, 0), 0, 1),
        ("other pool", other_pool, 0, 1),
    ] {
        let mut stream = cluster.connect(0).await;
        assert!(read(&mut stream, block, offset, len).await.is_err(), "{what}");
        assert!(stream.reader.wait_closed(1 << 10).await, "{what}");
    }
    let mut stream = cluster.connect(0).await;
    assert_eq!(
        read(&mut stream, block(ID, 1000, 0), 0, 1000).await.unwrap(),
        data,
        "an older stamp may read"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn packets_of_any_length_join_chunks_and_hsync_is_visible_to_readers() {
    let cluster = Cluster::start(2).await;
    let data = bytes(2000);
    let mut writer = Writer::create(&cluster, &[0, 1], ID, 1001).await;
    let event = cluster.wait_event(0, ID, Receiving).await;
    assert_eq!((event.block.gen_stamp, event.block.num_bytes), (1001, Some(0)));
    let mut at = 0;
    for (len, sync) in
        [(100, true), (1, false), (411, true), (512, false), (600, true), (300, false), (76, true)]
    {
        // A client starts a packet anew at a chunk boundary, or sends the rest of the chunk only.
        let packet = &data[at..at + len];
        writer.send(packet, &crcs(packet), false, sync).await;
        writer.expect_ack(2).await;
        at += len;
        if sync {
            let mut stream = cluster.connect(1).await;
            let got = read(&mut stream, block(ID, 1001, 0), 0, at as u64).await.unwrap();
            assert!(got == data[..at], "{at} bytes of an open replica");
        }
    }
    assert_eq!(at, 2000);
    writer.close(2).await;
    for node in 0..2 {
        let event = cluster.wait_event(node, ID, Received).await;
        assert_eq!(event.crc32c, Some(cairn_codec::crc::crc32c(0, &data)));
        let got =
            read(&mut cluster.connect(node).await, block(ID, 1001, 0), 0, 2000).await.unwrap();
        assert_eq!(got, data);
    }
}

/// As Cairn's client writes a small block: all of it at once, and no answer is waited for in between.
#[tokio::test(flavor = "multi_thread")]
async fn a_block_that_comes_with_its_operation_is_answered_as_any_other() {
    let cluster = Cluster::start(2).await;
    let data = bytes(5000);
    let mut stream = cluster.connect(0).await;
    for (id, nodes) in [(ID, &[0][..]), (ID + 1, &[0, 1])] {
        let targets: Vec<_> = nodes[1..].iter().map(|&n| cluster.info(n)).collect();
        let request = write_request(block(id, 1001, 0), Stage::PipelineSetupCreate, targets);
        stream.writer.hold_op(Op::WriteBlock, &request);
        let end = whole(&data, 1);
        let (header, crcs) = (whole(&data, 0), crcs(&data));
        stream.writer.send_packet_and_end(&header, &crcs, &data, Some(&end)).await.unwrap();
        let answer: BlockOpResponseProto = stream.reader.read_message("answer").await.unwrap();
        assert_eq!(answer.status, Status::Success as i32);
        for seqno in 0..2 {
            let ack: PipelineAckProto =
                stream.reader.read_message("acknowledgement").await.unwrap();
            let good = vec![Status::Success as i32; nodes.len()];
            assert_eq!((ack.seqno, ack.reply), (seqno, good), "{nodes:?}");
        }
        for &node in nodes {
            let mut stream = cluster.connect(node).await;
            assert_eq!(read(&mut stream, block(id, 1001, 0), 0, 5000).await.unwrap(), data);
        }
    }
    // What is corrupt is answered to, and goes nowhere.
    let request = write_request(block(ID + 2, 1001, 0), Stage::PipelineSetupCreate, Vec::new());
    stream.writer.hold_op(Op::WriteBlock, &request);
    let mut bad = crcs(&data);
    bad[7] ^= 1;
    let (header, end) = (whole(&data, 0), whole(&data, 1));
    stream.writer.send_packet_and_end(&header, &bad, &data, Some(&end)).await.unwrap();
    let answer: BlockOpResponseProto = stream.reader.read_message("answer").await.unwrap();
    assert_eq!(answer.status, Status::Success as i32);
    let ack: PipelineAckProto = stream.reader.read_message("acknowledgement").await.unwrap();
    assert_eq!((ack.seqno, ack.reply), (0, vec![Status::ErrorChecksum as i32]));
    assert!(stream.reader.wait_closed(1 << 20).await, "the connection is given up");
    let mut stream = cluster.connect(0).await;
    assert!(read(&mut stream, block(ID + 2, 1001, 0), 0, 1).await.is_err());
}

/// The packet with all of a block's data, which is the first, or the one that ends it.
fn whole(data: &[u8], seqno: i64) -> PacketHeader {
    let is_end = seqno > 0;
    PacketHeader {
        offset_in_block: if is_end { data.len() as i64 } else { 0 },
        seqno,
        last_packet: is_end,
        data_len: if is_end { 0 } else { data.len() as u32 },
        sync_block: false,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_corrupt_packet_is_acknowledged_as_such_and_goes_nowhere() {
    let cluster = Cluster::start(2).await;
    let data = bytes(4096);
    let mut writer = Writer::create(&cluster, &[0, 1], ID, 1001).await;
    writer.write(&data, 2).await;
    let mut bad = crcs(&data);
    bad[7] ^= 1;
    writer.send(&data, &bad, false, false).await;
    let ack = writer.ack().await;
    assert_eq!(ack.reply, [Status::ErrorChecksum as i32]);
    assert!(writer.stream.reader.wait_closed(1 << 20).await, "the connection is given up");
    for node in 0..2 {
        let mut stream = cluster.connect(node).await;
        assert_eq!(read(&mut stream, block(ID, 1001, 0), 0, 4096).await.unwrap(), data);
        assert!(read(&mut stream, block(ID, 1001, 0), 0, 4097).await.is_err());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_packet_that_leaves_bytes_out_ends_the_write_and_counts_for_nothing() {
    let cluster = Cluster::start(1).await;
    let data = bytes(1000);
    for (id, rest) in [(ID, &data[..0]), (ID + 1, &data[..512])] {
        let mut writer = Writer::create(&cluster, &[0], id, 1001).await;
        writer.write(&data, 1).await;
        writer.offset = 1 << 62;
        writer.send(rest, &crcs(rest), false, false).await;
        assert!(writer.stream.reader.wait_closed(1 << 20).await, "the connection is given up");
        // What is there is whole, and can be gone on with.
        let request =
            write_request(block(id, 1001, 0), Stage::PipelineSetupStreamingRecovery, vec![]);
        let request = OpWriteBlockProto {
            min_bytes_rcvd: 1000,
            max_bytes_rcvd: 1000,
            latest_generation_stamp: 1002,
            ..request
        };
        let mut again = Writer::open(&cluster, &[0], request).await;
        again.offset = 1000;
        again.write(&data[..24], 1).await;
        let mut stream = cluster.connect(0).await;
        assert_eq!(read(&mut stream, block(id, 1002, 0), 0, 1000).await.unwrap(), data);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mirror_that_is_gone_is_named_and_one_that_dies_is_acknowledged_as_failed() {
    let mut cluster = Cluster::start(3).await;
    let gone = cluster.info(2);
    let targets = vec![cluster.info(1), gone.clone()];
    cluster.kill_node(2);
    let mut stream = cluster.connect(0).await;
    let request = write_request(block(ID, 1001, 0), Stage::PipelineSetupCreate, targets);
    stream.writer.send_op(Op::WriteBlock, &request).await.unwrap();
    let answer: BlockOpResponseProto = stream.reader.read_message("answer").await.unwrap();
    assert_eq!(answer.status, Status::Error as i32);
    assert_eq!(answer.first_bad_link.unwrap(), format!("127.0.0.1:{}", gone.id.xfer_port));

    let mut writer = Writer::create(&cluster, &[0, 1], ID + 1, 1001).await;
    writer.write(&bytes(1024), 2).await;
    cluster.kill_node(1);
    writer.send(&bytes(1024), &crcs(&bytes(1024)), false, false).await;
    let ack = writer.ack().await;
    assert_eq!(ack.reply, [Status::Success as i32, Status::Error as i32]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_pipeline_goes_on_after_recovery_with_what_was_acknowledged() {
    let mut cluster = Cluster::start(3).await;
    let data = bytes(3000);
    let mut writer = Writer::create(&cluster, &[0, 1], ID, 1001).await;
    writer.write(&data[..1500], 2).await;
    cluster.kill_node(1);
    // In flight when the pipeline broke: not acknowledged, so it is sent again.
    writer.send(&data[1500..1536], &crcs(&data[1500..1536]), false, false).await;
    assert_eq!(writer.ack().await.reply, [Status::Success as i32, Status::Error as i32]);

    // The writer of the old pipeline is still there: the transfer and the recovery must cope. So must a second
    // transfer, when the client has not heard that the first was done.
    for _ in 0..2 {
        let mut transfer = cluster.connect(0).await;
        let request = OpTransferBlockProto {
            header: header(block(ID, 1001, 0)),
            targets: vec![cluster.info(2)],
            ..Default::default()
        };
        transfer.writer.send_op(Op::TransferBlock, &request).await.unwrap();
        let answer: BlockOpResponseProto = transfer.reader.read_message("answer").await.unwrap();
        assert_eq!(answer.status, Status::Success as i32, "{:?}", answer.message);
    }

    let mut request =
        write_request(block(ID, 1001, 0), Stage::PipelineSetupStreamingRecovery, Vec::new());
    request.latest_generation_stamp = 1002;
    (request.min_bytes_rcvd, request.max_bytes_rcvd) = (1500, 1536);
    let mut second = Writer::open(&cluster, &[0, 2], request).await;
    // 1500 lies within a chunk: the rest of that chunk first, as clients do.
    second.offset = 1500;
    for packet in [&data[1500..1536], &data[1536..]] {
        second.write(packet, 2).await;
    }
    second.close(2).await;
    for node in [0, 2] {
        let event = cluster.wait_event(node, ID, Received).await;
        assert_eq!((event.block.gen_stamp, event.block.num_bytes), (1002, Some(3000)));
        assert_eq!(event.crc32c, Some(cairn_codec::crc::crc32c(0, &data)));
        let got =
            read(&mut cluster.connect(node).await, block(ID, 1002, 0), 0, 3000).await.unwrap();
        assert_eq!(got, data);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn append_goes_on_where_the_block_ended() {
    let cluster = Cluster::start(2).await;
    let data = bytes(2500);
    write_block(&cluster, &[0, 1], ID, 1001, &data[..1100]).await;
    let mut request = write_request(block(ID, 1001, 1100), Stage::PipelineSetupAppend, Vec::new());
    (request.latest_generation_stamp, request.min_bytes_rcvd) = (1002, 1100);
    let mut writer = Writer::open(&cluster, &[0, 1], request).await;
    writer.offset = 1100;
    for packet in [&data[1100..1536], &data[1536..]] {
        writer.write(packet, 2).await;
    }
    writer.close(2).await;
    for node in 0..2 {
        let event = cluster.wait_event_of(node, ID, 1002, Received).await;
        assert_eq!(event.crc32c, Some(cairn_codec::crc::crc32c(0, &data)));
        let got =
            read(&mut cluster.connect(node).await, block(ID, 1002, 0), 0, 2500).await.unwrap();
        assert_eq!(got, data);
        assert!(read(&mut cluster.connect(node).await, block(ID, 1003, 0), 0, 1).await.is_err());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_last_acknowledgement_is_recovered_by_closing_again() {
    let cluster = Cluster::start(2).await;
    let data = bytes(1000);
    // One replica was finalized, the other got everything but the last packet.
    write_block(&cluster, &[0], ID, 1001, &data).await;
    let mut writer = Writer::create(&cluster, &[1], ID, 1001).await;
    writer.write(&data, 1).await;
    drop(writer);
    let mut request =
        write_request(block(ID, 1001, 1000), Stage::PipelineCloseRecovery, Vec::new());
    (request.latest_generation_stamp, request.min_bytes_rcvd) = (1002, 1000);
    Writer::open(&cluster, &[0, 1], request).await;
    for node in 0..2 {
        cluster.wait_event_of(node, ID, 1002, Received).await;
        let got =
            read(&mut cluster.connect(node).await, block(ID, 1002, 0), 0, 1000).await.unwrap();
        assert_eq!(got, data);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn packets_without_crcs_are_for_what_is_to_be_kept_in_memory() {
    let cluster = Cluster::start(1).await;
    let data = bytes(3 * CHUNK + 7);
    let mut request = write_request(block(ID, 1001, 0), Stage::PipelineSetupCreate, Vec::new());
    request.allow_lazy_persist = Some(true);
    let mut writer = Writer::open(&cluster, &[0], request).await;
    writer.send(&data, &[], false, false).await;
    writer.expect_ack(1).await;
    writer.close(1).await;
    // Reading checks the CRCs that were made.
    let len = data.len() as u64;
    let got = read(&mut cluster.connect(0).await, block(ID, 1001, 0), 0, len).await.unwrap();
    assert_eq!(got, data);
    let mut writer = Writer::create(&cluster, &[0], ID + 1, 1001).await;
    writer.send(&data, &[], false, false).await;
    assert!(writer.stream.reader.wait_closed(1 << 20).await);
}

/// As a client writes that knows no erasure coding: the first unit as a replica, to the DataNodes of all units.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_unit_in_a_pipeline_is_refused() {
    let cluster = Cluster::start(2).await;
    let unit = i64::MIN + 16;
    for (targets, is_refused) in [(vec![cluster.info(1)], true), (Vec::new(), false)] {
        let request = write_request(block(unit, 1001, 0), Stage::PipelineSetupCreate, targets);
        let mut stream = cluster.connect(0).await;
        stream.writer.send_op(Op::WriteBlock, &request).await.unwrap();
        let answer: BlockOpResponseProto = stream.reader.read_message("answer").await.unwrap();
        let is_error = answer.status == Status::Error as i32;
        assert_eq!(is_error, is_refused, "{answer:?}");
        let text = answer.message.unwrap_or_default();
        assert_eq!(text.contains("knows no erasure coding"), is_refused, "{text}");
        assert_eq!(cluster.files(0, unit).is_empty(), is_refused);
    }
}
