//! What settings and requests have a DataNode ask of the page cache, and its bounds on the bandwidth of clients.

use crate::cluster::*;
use cairn_datanode::DataNodeConfig;
use cairn_wire::proto::hdfs::OpWriteBlockProtoBlockConstructionStage as Stage;
use cairn_wire::proto::hdfs::{
    BlockOpResponseProto, CachingStrategyProto, ClientReadStatusProto, OpReadBlockProto, Status,
};
use cairn_wire::transfer::Op;
use std::time::{Duration, Instant};

const LEN: u64 = 2 << 20;

/// Reads a whole block with a wish for the page cache.
async fn read_wishing(cluster: &Cluster, id: i64, len: u64, wish: Option<CachingStrategyProto>) {
    let mut stream = cluster.connect(0).await;
    let request = OpReadBlockProto {
        header: header(block(id, 1001, len)),
        offset: 0,
        len,
        caching_strategy: wish,
        ..Default::default()
    };
    stream.writer.send_op(Op::ReadBlock, &request).await.unwrap();
    let answer: BlockOpResponseProto = stream.reader.read_message("answer").await.unwrap();
    assert_eq!(answer.status, Status::Success as i32);
    while !stream.reader.read_packet().await.unwrap().header.last_packet {}
    let status = ClientReadStatusProto { status: Status::ChecksumOk as i32 };
    stream.writer.send_message(&status).await.unwrap();
}

fn dropping(drop_behind: bool) -> Option<CachingStrategyProto> {
    Some(CachingStrategyProto { drop_behind: Some(drop_behind), readahead: None })
}

/// Writes a block with a wish for the page cache.
async fn write_wishing(cluster: &Cluster, id: i64, wish: Option<CachingStrategyProto>) {
    let mut request = write_request(block(id, 1001, 0), Stage::PipelineSetupCreate, Vec::new());
    request.caching_strategy = wish;
    let mut writer = Writer::open(cluster, &[0], request).await;
    for packet in bytes(LEN as usize).chunks(512 << 10) {
        writer.write(packet, 1).await;
    }
    writer.close(1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_say_what_the_page_cache_keeps() {
    let cluster = Cluster::start(1).await;
    let stats = || cluster.node(0).page_cache_stats();
    write_wishing(&cluster, 7, None).await;
    read_wishing(&cluster, 7, LEN, None).await;
    let first = stats();
    assert_eq!((first.dropped_behind_writes, first.dropped_behind_reads), (0, 0));
    assert_eq!(first.read_ahead, LEN, "what there is of 4 MiB");
    write_wishing(&cluster, 8, dropping(true)).await;
    assert_eq!(stats().dropped_behind_writes, LEN);
    read_wishing(&cluster, 8, 1000, dropping(true)).await;
    // Done when all was sent, which the reader may know sooner.
    cluster.wait("whole chunks of a short read", |_| stats().dropped_behind_reads == 1024).await;
    let eager = CachingStrategyProto { drop_behind: None, readahead: Some(1 << 20) };
    read_wishing(&cluster, 8, 1000, Some(eager)).await;
    assert_eq!(stats().read_ahead, LEN + (1 << 20));
}

fn forgetful(config: &mut DataNodeConfig) {
    (config.drop_behind_reads, config.drop_behind_writes) = (true, true);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn settings_say_what_the_page_cache_keeps_unless_requests_do() {
    let cluster = Cluster::start_tuned(1, forgetful).await;
    let stats = || cluster.node(0).page_cache_stats();
    write_wishing(&cluster, 7, dropping(false)).await;
    assert_eq!(stats().dropped_behind_writes, 0);
    write_wishing(&cluster, 8, None).await;
    assert_eq!(stats().dropped_behind_writes, LEN);
    read_wishing(&cluster, 8, LEN, dropping(false)).await;
    assert_eq!(stats().dropped_behind_reads, 0);
    read_wishing(&cluster, 8, LEN, None).await;
    cluster.wait("the bytes that were read", |_| stats().dropped_behind_reads == LEN).await;
}

fn bounded(config: &mut DataNodeConfig) {
    (config.read_bandwidth, config.write_bandwidth) = (4 << 20, 4 << 20);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_have_no_more_bandwidth_than_they_may() {
    let cluster = Cluster::start_tuned(1, bounded).await;
    // Half a second's worth, a tenth of which may go at once, as the last 64 KiB do.
    let (start, least) = (Instant::now(), Duration::from_millis(350));
    write_wishing(&cluster, 7, None).await;
    assert!(start.elapsed() >= least, "{:?}", start.elapsed());
    let start = Instant::now();
    read_wishing(&cluster, 7, LEN, None).await;
    assert!(start.elapsed() >= least, "{:?}", start.elapsed());
}
