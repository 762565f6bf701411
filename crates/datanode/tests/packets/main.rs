//! What connections hold that are in the middle of a write. A test of its own process, since it looks at that one's
//! memory.

#[allow(dead_code, reason = "the other tests use what this one does not")]
#[path = "../it/cluster.rs"]
mod cluster;

use cairn_net::transfer_stream::{PacketMemory, SMALL_PACKET};
use cairn_wire::transfer::PacketHeader;
use cluster::{Cluster, Writer, bytes, crcs};
use std::time::Duration;

/// What the process had before, and both ends of a write that waits for nothing but its packet, with its task, its two
/// files and its replica.
const OPEN: usize = 40 << 10;

/// `CONNECTIONS=4000` has it measure more.
fn connections() -> usize {
    std::env::var("CONNECTIONS").map_or(2000, |count| count.parse().unwrap())
}

/// Bytes of this process in memory.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() << 10
}

/// Waits until no more memory is taken, and returns what is.
async fn settled() -> usize {
    let mut last = 0;
    loop {
        tokio::time::sleep(Duration::from_millis(300)).await;
        let now = resident();
        if now.abs_diff(last) < 1 << 20 {
            return now;
        }
        last = now;
    }
}

/// Sends a part of each writer's next packet.
async fn send(writers: &mut [Writer], packet: &[u8]) {
    for writer in writers {
        writer.stream.writer.send(packet).await.unwrap();
    }
}

fn packet(seqno: i64, offset: usize, data: &[u8]) -> Vec<u8> {
    let header = PacketHeader {
        offset_in_block: offset as i64,
        seqno,
        last_packet: false,
        data_len: data.len() as u32,
        sync_block: false,
    };
    let crcs = crcs(data);
    [header.encode(crcs.len()).as_ref(), &crcs, data].concat()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writes_that_stand_still_hold_a_bounded_memory() {
    let cluster = Cluster::start_tuned(1, |config| {
        config.packet_memory = 0;
        config.read_timeout = Duration::from_secs(120);
        config.max_connections = 5000;
    })
    .await;
    let (count, before) = (connections(), settled().await);
    let mut writers = Vec::new();
    for id in 0..count as i64 {
        writers.push(Writer::create(&cluster, &[0], id + 1, 1001).await);
    }
    let each = async |what: &str| {
        let each = settled().await.saturating_sub(before) / count;
        println!("{each} bytes for each of {count} writes {what}, both ends together");
        each
    };
    assert!(each("without a packet").await <= OPEN);
    let (small, large) = (bytes(64 << 10), bytes(256 << 10));
    let first = packet(0, 0, &small);
    send(&mut writers, &first[..first.len() / 2]).await;
    // Memory is taken for all of it.
    assert!(each("with half of a packet of 64 KiB").await <= OPEN + SMALL_PACKET);
    send(&mut writers, &first[first.len() / 2..]).await;
    for writer in &mut writers {
        writer.seqno = 1;
        writer.expect_ack(1).await;
    }
    let second = packet(1, small.len(), &large);
    send(&mut writers, &second[..second.len() / 2]).await;
    let shared = (PacketMemory::LEAST as usize + (16 << 20)) / count;
    // An allocation may be up to twice what is asked for.
    let most = OPEN + SMALL_PACKET + 2 * shared;
    assert!(most < OPEN + (256 << 10), "else it would bound nothing");
    assert!(each("with half of a packet of 256 KiB").await <= most);

    // Those that have theirs end, and the others get it.
    send(&mut writers, &second[second.len() / 2..]).await;
    for writer in &mut writers {
        writer.seqno = 2;
        writer.expect_ack(1).await;
    }
}
