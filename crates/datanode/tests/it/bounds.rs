//! Memory of packets, and the ways that bytes go from files to sockets.

use crate::cluster::*;
use cairn_datanode::{DataNodeConfig, Durability};
use cairn_net::transfer_stream::{PacketMemory, SEND_FILE_ABOVE};
use cairn_wire::transfer::PacketHeader;
use serde_json::Value;
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

const ID: i64 = 1_073_741_825;

fn with_pages(config: &mut DataNodeConfig) {
    config.http_addr = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
    config.durability = Durability::PageCache;
}

fn with_little_memory(config: &mut DataNodeConfig) {
    with_pages(config);
    config.packet_memory = 0;
    config.read_timeout = Duration::from_secs(120);
}

/// Bytes of packets that a DataNode has in memory, and how many wait for some.
async fn packet_memory(addr: SocketAddr) -> (u64, u64) {
    let answer = page(addr, "/jmx?qry=Hadoop:service=DataNode,name=DataNodeInfo").await;
    let beans: Value = serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap();
    let info = &beans["beans"][0];
    assert_eq!(info["PacketMemoryLimit"], PacketMemory::LEAST);
    let figure = |name: &str| info[name].as_u64().unwrap();
    (figure("PacketMemoryUsed"), figure("PacketMemoryWaiting"))
}

/// Each DataNode is the first, the second and the last of pipelines whose packets do not all have room in it: the first
/// ones fill up what they may, with packets that have only begun, and all of them come to their end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pipelines_in_a_circle_share_a_bounded_memory() {
    const DATA: usize = 15 << 20;
    let cluster = Cluster::start_tuned(3, with_little_memory).await;
    let addrs: Vec<_> = (0..3).map(|node| cluster.node(node).http_addr().unwrap()).collect();
    let data = bytes(DATA);
    let header = PacketHeader {
        offset_in_block: 0,
        seqno: 0,
        last_packet: false,
        data_len: DATA as u32,
        sync_block: false,
    };
    let crcs = crcs(&data);
    let packet: std::sync::Arc<[u8]> =
        [header.encode(crcs.len()).as_ref(), &crcs, &data].concat().into();
    let mut writers = Vec::new();
    for number in 0..21 {
        let nodes = [0, 1, 2].map(|at| (number + at) % 3);
        let mut writer = Writer::create(&cluster, &nodes, ID + number as i64, 1001).await;
        writer.stream.writer.send(&packet[..1000]).await.unwrap();
        writers.push(writer);
    }
    let deadline = Instant::now() + Duration::from_secs(20);
    while packet_memory(addrs[0]).await.0 < PacketMemory::LEAST / 2 {
        assert!(Instant::now() < deadline, "they have begun");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let mut sending = JoinSet::new();
    for mut writer in writers {
        let packet = packet.clone();
        sending.spawn(async move {
            writer.stream.writer.send(&packet[1000..]).await.unwrap();
            (writer.seqno, writer.offset) = (1, DATA as u64);
            writer.expect_ack(3).await;
            writer.close(3).await;
        });
    }
    let (mut most, mut waited) = (0, false);
    loop {
        for addr in &addrs {
            let (used, waiting) = packet_memory(*addr).await;
            (most, waited) = (most.max(used), waited || waiting > 0);
        }
        tokio::select! {
            done = sending.join_next() => match done {
                Some(done) => done.unwrap(),
                None => break,
            },
            () = tokio::time::sleep(Duration::from_millis(5)) => {}
        }
    }
    assert!(most < PacketMemory::LEAST + (17 << 20), "{most}");
    assert!(waited, "there was not room for all");
    for (node, addr) in addrs.into_iter().enumerate() {
        let deadline = Instant::now() + Duration::from_secs(20);
        while packet_memory(addr).await != (0, 0) {
            assert!(Instant::now() < deadline, "all is given back");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let got = read(&mut cluster.connect(node).await, block(ID, 1001, 0), 0, DATA as u64).await;
        assert!(got.unwrap() == data);
    }
}

/// Bytes that DataNode 0 has copied, and those that the kernel has sent.
async fn sent(cluster: &Cluster) -> (u64, u64) {
    let answer = page(cluster.node(0).http_addr().unwrap(), "/prom").await;
    let figure = |way: &str| {
        let name = format!("cairn_datanode_sent_bytes_total{{way=\"{way}\"}} ");
        answer.lines().find_map(|line| line.strip_prefix(&name)).unwrap().parse().unwrap()
    };
    (figure("copy"), figure("sendfile"))
}

/// Reads a range of DataNode 0's replica, and returns by how much both figures have grown.
async fn ways(cluster: &Cluster, data: &[u8], len: u64) -> (u64, u64) {
    let before = sent(cluster).await;
    let got = read(&mut cluster.connect(0).await, block(ID, 1001, 0), 0, len).await.unwrap();
    assert!(got == data[..len as usize]);
    // It is counted when all has been sent, which the reader may know before.
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let now = sent(cluster).await;
        let grown = (now.0 - before.0, now.1 - before.1);
        if grown.0 + grown.1 >= len {
            return grown;
        }
        assert!(Instant::now() < deadline, "{grown:?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn long_reads_go_by_sendfile_and_short_ones_are_copied() {
    let (data, border) = (bytes(3 << 20), SEND_FILE_ABOVE);
    let chunk = CHUNK as u64;
    let cluster = Cluster::start_tuned(1, with_pages).await;
    write_block(&cluster, &[0], ID, 1001, &data).await;
    for (len, want) in [
        (100 * chunk, (100 * chunk, 0)),
        (border, (border, 0)),
        (border + chunk, (0, border + chunk)),
        (3 << 20, (0, 3 << 20)),
    ] {
        assert_eq!(ways(&cluster, &data, len).await, want, "{len}");
    }
    let cluster = Cluster::start_tuned(1, |config| {
        with_pages(config);
        config.transfer_to_allowed = false;
    })
    .await;
    write_block(&cluster, &[0], ID, 1001, &data).await;
    for len in [border, 3 << 20] {
        assert_eq!(ways(&cluster, &data, len).await, (len, 0), "dfs.datanode.transferTo.allowed");
    }
}
