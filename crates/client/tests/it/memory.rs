//! What streams hold in memory: buffers are counted, whoever reads or writes how slowly.

use crate::cluster::*;
use std::time::Duration;

const BUFFER: usize = 8 << 20;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_striped_stream_holds_no_more_than_its_bound() {
    let change = |config: &mut cairn_client::ClientConfig| config.stream_buffer_len = BUFFER;
    let cluster = Cluster::start_with(5, change).await;
    cluster.fs.enable_policy("RS-3-2-1024k").await.unwrap();
    let data = bytes(4, 40 << 20);
    // Two stripes of five units are more than the buffer; with a checksum for each 512 bytes.
    let most = ((2 * 5) << 20) / 128 * 129;
    let mut writer = cluster.fs.create("/f", &striped("RS-3-2-1024k", 32 << 20)).await.unwrap();
    for piece in data.chunks(1 << 20) {
        writer.write(piece).await.unwrap();
        assert!(writer.buffered_len() <= most, "{} of {most}", writer.buffered_len());
    }
    // When the DataNodes have caught up: the data of a stripe, and a packet for each unit.
    let usual = ((3 << 20) + 5 * (256 << 10)) / 128 * 129;
    let caught_up = async {
        while writer.buffered_len() > usual {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), caught_up).await.expect("memory is given back");
    writer.close().await.unwrap();

    let mut reader = cluster.fs.open("/f").await.unwrap();
    assert_eq!(reader.buffered_len(), 0);
    // Three stripes are more than the buffer.
    let most = (3 * 3 + 3) << 20;
    let mut got = Vec::new();
    while let Some(chunk) = reader.next_chunk().await.unwrap() {
        got.extend_from_slice(&chunk);
        // A reader that takes its time is read ahead for no further.
        tokio::time::sleep(Duration::from_millis(4)).await;
        assert!(reader.buffered_len() <= most, "{} of {most}", reader.buffered_len());
    }
    assert_same(&got, &data, "read slowly");
    reader.unbuffer();
    assert_eq!(reader.buffered_len(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_that_decodes_holds_a_cell_more_for_each_lost_unit() {
    let change = |config: &mut cairn_client::ClientConfig| config.stream_buffer_len = BUFFER;
    let mut cluster = Cluster::start_with(5, change).await;
    cluster.fs.enable_policy("RS-3-2-1024k").await.unwrap();
    let data = bytes(6, 40 << 20);
    put(&cluster.fs, "/f", &data, &striped("RS-3-2-1024k", 32 << 20)).await.unwrap();
    cluster.kill_units("/f", &[0, 1]).await;
    let mut reader = cluster.fs.open("/f").await.unwrap();
    let (mut got, mut most) = (Vec::new(), 0);
    while let Some(chunk) = reader.next_chunk().await.unwrap() {
        got.extend_from_slice(&chunk);
        tokio::time::sleep(Duration::from_millis(4)).await;
        most = most.max(reader.buffered_len());
    }
    assert_same(&got, &data, "decoded");
    assert!(most <= (3 * 3 + 3 + 2) << 20, "{most} bytes held");
}
