//! What connections cost that have nothing to do. A test of its own process, since it looks at that one's memory.

#[allow(dead_code, reason = "the other tests use what this one does not")]
#[path = "../it/cluster.rs"]
mod cluster;

use cairn_net::transfer_stream::{TransferOptions, TransferStream};
use cairn_wire::proto::common::TokenProto;
use cairn_wire::proto::hdfs::{
    BaseHeaderProto, BlockOpResponseProto, ExtendedBlockProto, OpBlockChecksumProto, Status,
};
use cairn_wire::transfer::Op;
use cluster::Cluster;
use std::time::{Duration, Instant};

const CONNECTIONS: usize = 2000;
/// What a connection held while it was busy, at least.
const REQUEST: usize = 60 << 10;
/// What it may hold when it is not, with its other end, which is in this process, too.
const IDLE: usize = 48 << 10;

/// Bytes of this process in memory.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() << 10
}

/// A request that is refused, with a long token; the connection goes on.
fn request() -> OpBlockChecksumProto {
    let block = ExtendedBlockProto { pool_id: "BP-0".into(), ..Default::default() };
    let token = TokenProto { identifier: vec![b'x'; REQUEST], ..Default::default() };
    let header = BaseHeaderProto { block, token: Some(token), trace_info: None };
    OpBlockChecksumProto { header, ..Default::default() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_thousand_idle_connections_hold_little_memory() {
    // It serves nobody before it has registered.
    let cluster =
        Cluster::start_tuned(1, |config| config.keepalive = Duration::from_secs(120)).await;
    let node = cluster.nodes[0].as_ref().unwrap();
    let (before, request) = (resident(), request());
    let mut idle = Vec::new();
    for _ in 0..CONNECTIONS {
        let mut stream =
            TransferStream::connect(node.xfer_addr(), &TransferOptions::default()).await.unwrap();
        stream.writer.send_op(Op::BlockChecksum, &request).await.unwrap();
        let answer: BlockOpResponseProto = stream.reader.read_message("answer").await.unwrap();
        assert_eq!(answer.status, Status::Error as i32);
        stream.release_memory();
        idle.push(stream);
    }
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let each = resident().saturating_sub(before) / CONNECTIONS;
        if each <= IDLE {
            println!("{each} bytes for each idle connection, both ends together");
            break;
        }
        assert!(Instant::now() < deadline, "{each} bytes for each idle connection");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    // They still serve.
    for stream in idle.iter_mut().step_by(100) {
        stream.writer.send_op(Op::BlockChecksum, &request).await.unwrap();
        let answer: BlockOpResponseProto = stream.reader.read_message("answer").await.unwrap();
        assert_eq!(answer.status, Status::Error as i32);
    }
}
