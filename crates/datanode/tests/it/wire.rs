//! Bad bytes on the data port cost their own connection and nothing else.

use crate::cluster::*;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Of the DataNode: none of these connections may last as long.
const READ_TIMEOUT: Duration = Duration::from_secs(60);
const ID: i64 = 1_073_741_825;

/// Sends `bytes` and waits for the connection's end; returns what came back.
async fn provoke(cluster: &Cluster, bytes: &[u8]) -> Vec<u8> {
    let mut socket = TcpStream::connect(cluster.node(0).xfer_addr()).await.unwrap();
    socket.write_all(bytes).await.unwrap();
    socket.shutdown().await.unwrap();
    let mut answer = Vec::new();
    // A reset is an end as well.
    let ended = tokio::time::timeout(READ_TIMEOUT / 2, socket.read_to_end(&mut answer)).await;
    assert!(ended.is_ok(), "the connection stays open after {bytes:?}");
    answer
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_frames_close_their_connection_only() {
    let cluster = Cluster::start_tuned(1, |config| config.read_timeout = READ_TIMEOUT).await;
    write_block(&cluster, &[0], ID, 1001, &bytes(1000)).await;
    let mut good = Writer::create(&cluster, &[0], ID + 1, 1001).await;
    good.write(&bytes(1024), 1).await;
    for frame in [
        &b""[..],
        b"\0",
        b"\0\x1c",
        b"\0\x1c\x51",
        b"\0\x1b\x51\0",
        b"\0\x1c\x01\0",
        b"\0\x1c\x51\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
        b"\0\x1c\x51\xff\xff\xff\xff\x07",
        b"\0\x1c\x50\x03abc",
        b"GET / HTTP/1.1\r\n\r\n",
    ] {
        assert_eq!(provoke(&cluster, frame).await, b"");
    }
    assert_eq!(
        read(&mut cluster.connect(0).await, block(ID, 1001, 0), 0, 1000).await.unwrap(),
        bytes(1000)
    );
    good.write(&bytes(1024), 1).await;
    good.close(1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn packets_that_do_not_fit_end_the_write_and_leave_the_replica() {
    let cluster = Cluster::start_tuned(1, |config| config.read_timeout = READ_TIMEOUT).await;
    let data = bytes(1024);
    for (id, offset, crc_len) in
        [(ID, 2048, 8), (ID + 1, -1, 8), (ID + 2, 1024, 4), (ID + 3, 1000, 8)]
    {
        let mut writer = Writer::create(&cluster, &[0], id, 1001).await;
        writer.write(&data, 1).await;
        writer.offset = offset as u64;
        writer.send(&data, &crcs(&data)[..crc_len], false, false).await;
        let ended = writer
            .stream
            .reader
            .read_message::<cairn_wire::proto::hdfs::PipelineAckProto>("ack")
            .await;
        match (offset, ended) {
            // Partly known bytes that start within a chunk reach into the next one.
            (_, Err(_)) => {}
            (_, Ok(ack)) => panic!("acknowledged {ack:?} at {offset}"),
        }
        let got = read(&mut cluster.connect(0).await, block(id, 1001, 0), 0, 1024).await.unwrap();
        assert_eq!(got, data);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flipped_bit_on_disk_reaches_the_reader_with_the_old_crc() {
    let cluster = Cluster::start_tuned(1, |config| config.read_timeout = READ_TIMEOUT).await;
    write_block(&cluster, &[0], ID, 1001, &bytes(5000)).await;
    let file = cluster.dir(0).join(&cluster.files(0, ID)[0]);
    let mut content = std::fs::read(&file).unwrap();
    content[3333] ^= 4;
    std::fs::write(&file, content).unwrap();
    let mut stream = cluster.connect(0).await;
    assert_eq!(read(&mut stream, block(ID, 1001, 0), 0, 5000).await, Err("bad CRC".into()));
    let mut stream = cluster.connect(0).await;
    assert_eq!(read(&mut stream, block(ID, 1001, 0), 0, 3000).await.unwrap(), bytes(3000));
}
