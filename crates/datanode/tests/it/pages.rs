//! What the HTTP port says of blocks that were written, read, rebuilt, deleted and lost.

use crate::cluster::*;
use crate::reconstruct::{CELL, Group, order};
use crate::virtual_block::decodable_in;
use cairn_datanode::{DataNode, DataNodeConfig};
use cairn_wire::proto::datanode::{
    BlockCommandProto, BlockCommandProtoAction, DatanodeCommandProto, DatanodeCommandProtoType,
};
use cairn_wire::proto::hdfs::BlockProto;
use serde_json::Value;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

fn with_pages(config: &mut DataNodeConfig) {
    config.http_addr = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
    config.properties = vec![("some.key".into(), "7".into()), ("a.password".into(), "x".into())];
}

async fn body(cluster: &Cluster, index: usize, path: &str) -> String {
    let answer = page(cluster.node(index).http_addr().unwrap(), path).await;
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    answer.split_once("\r\n\r\n").unwrap().1.to_string()
}

async fn bean(cluster: &Cluster, index: usize, name: &str) -> Value {
    let path = format!("/jmx?qry=Hadoop:service=DataNode,name={name}");
    let text = body(cluster, index, &path).await;
    let mut beans: Value = serde_json::from_str(&text).unwrap();
    beans["beans"][0].take()
}

/// Waits until a page is as it should be.
async fn wait_for(cluster: &Cluster, index: usize, path: &str, is_right: impl Fn(&str) -> bool) {
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        let answer = page(cluster.node(index).http_addr().unwrap(), path).await;
        if is_right(&answer) {
            return;
        }
        assert!(Instant::now() < deadline, "{answer}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Waits until `/prom` has these lines: what is counted when all is done may come after the client's answer.
async fn figures(cluster: &Cluster, index: usize, lines: &[&str]) {
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        let page = body(cluster, index, "/prom").await;
        let has = |line: &&str| page.lines().any(|l| l == format!("cairn_datanode_{line}"));
        let Some(missing) = lines.iter().find(|line| !has(line)) else { return };
        assert!(Instant::now() < deadline, "no {missing} in\n{page}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_done_with_blocks_is_counted() {
    let cluster = Cluster::start_tuned(5, with_pages).await;
    let group = Group::new(1, (2, 1), 6 * CELL);
    let (lost, target) = (1, 3);
    // Its own DataNode never gets it: to the cluster it is lost.
    group.write(&cluster, &[lost]).await;
    cluster.send_command(0, order(group.exact_command(&cluster, &[lost], &[target])));
    group.check(&cluster, &[lost], &[target]).await;
    let len = |unit: usize| group.units[unit].len();
    let sources = len(0) + len(2);
    figures(
        &cluster,
        0,
        &[
            "registered 1",
            "rebuild_tasks_total 1",
            "rebuild_failed_tasks_total 0",
            "rebuilt_units_total 1",
            &format!("rebuild_written_bytes_total {}", len(lost)),
            &format!("rebuild_read_bytes_total {sources}"),
            &format!("written_bytes_total{{by=\"client\"}} {}", len(0)),
            "written_blocks_total{by=\"client\"} 1",
            "operations_total{op=\"writeBlock\"} 1",
            "operation_errors_total{op=\"writeBlock\"} 0",
            "operation_seconds_count{op=\"writeBlock\"} 1",
            "operation_seconds_bucket{op=\"writeBlock\",le=\"+Inf\"} 1",
            "rebuild_seconds_count 1",
            "rebuilding_units 0",
        ],
    )
    .await;
    let read_by_a_datanode = format!("read_bytes_total{{by=\"datanode\"}} {}", len(2));
    figures(&cluster, 2, &[&read_by_a_datanode, "read_blocks_total{by=\"datanode\"} 1"]).await;
    let bytes = len(lost);
    figures(
        &cluster,
        target,
        &[
            &format!("written_bytes_total{{by=\"datanode\"}} {bytes}"),
            "written_blocks_total{by=\"datanode\"} 1",
            &format!("read_bytes_total{{by=\"client\"}} {bytes}"),
            "read_blocks_total{by=\"client\"} 1",
            "read_bytes_total{by=\"datanode\"} 0",
        ],
    )
    .await;

    // A write, a read of what is not there, and a replica that goes.
    write_block(&cluster, &[4], 7, 1001, &[1; 5000]).await;
    let mut stream = cluster.connect(4).await;
    read(&mut stream, block(8, 1001, 10), 0, 10).await.unwrap_err();
    let failed = "operation_failures_total{kind=\"replica\"} 1";
    figures(&cluster, 4, &["operation_errors_total{op=\"readBlock\"} 1", failed]).await;
    let volume = cluster.dir(4).display().to_string();
    let page = body(&cluster, 4, "/prom").await;
    let work = |kind: &str| {
        let begin = format!(
            "cairn_datanode_volume_io_seconds_count{{volume=\"{volume}\",work=\"{kind}\"}} "
        );
        let count = page.lines().find_map(|line| line.strip_prefix(&begin));
        count.unwrap_or_else(|| panic!("no {begin}in\n{page}")).parse::<u64>().unwrap()
    };
    assert!(work("write") > 0 && work("sync") > 0 && work("metadata") > 0, "{page}");
    let mut families = std::collections::BTreeSet::new();
    for family in page.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
        assert!(families.insert(family), "{family} is there twice");
    }
    let info = bean(&cluster, 4, "DataNodeInfo").await;
    let volumes: Value = serde_json::from_str(info["VolumeInfo"].as_str().unwrap()).unwrap();
    assert_eq!(volumes[&volume]["numBlocks"], 1);
    assert_eq!((&info["ClusterId"], &info["Version"]), (&"CID-1".into(), &"3.5.0".into()));
    let delete = BlockCommandProto {
        action: BlockCommandProtoAction::Invalidate as i32,
        block_pool_id: POOL.into(),
        blocks: vec![BlockProto { block_id: 7, gen_stamp: 1001, num_bytes: Some(5000) }],
        ..Default::default()
    };
    let kind = DatanodeCommandProtoType::BlockCommand;
    let delete = DatanodeCommandProto { blk_cmd: Some(delete), ..command(kind) };
    cluster.send_command(4, delete);
    figures(&cluster, 4, &["removed_blocks_total 1"]).await;
    let has_none = |page: &str| {
        let replicas = page.lines().find(|line| line.contains("volume_replicas{")).unwrap();
        replicas.contains(&volume) && replicas.ends_with("} 0")
    };
    wait_for(&cluster, 4, "/prom", has_none).await;

    let port = cluster.node(4).xfer_addr().port();
    let activity = bean(&cluster, 4, &format!("DataNodeActivity-127.0.0.1-{port}")).await;
    assert_eq!((&activity["BytesWritten"], &activity["BlocksWritten"]), (&5000.into(), &1.into()));
    assert_eq!(
        (&activity["BlocksRemoved"], &activity["ReadBlockOpNumOps"]),
        (&1.into(), &1.into())
    );
    assert!(activity["HeartbeatsNumOps"].as_u64() > Some(0), "{activity}");
    assert!(activity["WriteBlockOpAvgTime"].as_f64() > Some(0.0), "{activity}");
    let state = bean(&cluster, 4, "FSDatasetState").await;
    assert_eq!(state["NumFailedVolumes"], 0);
    assert!(state["Capacity"].as_u64() > Some(0), "{state}");
    // It is not while all are slow.
    wait_for(&cluster, 4, "/health", |page| page.contains("\"status\":\"ok\"")).await;
    let people = body(&cluster, 4, "/").await;
    assert!(people.contains(&volume) && people.contains("href=\"/prom\""), "{people}");
    let conf = body(&cluster, 4, "/conf").await;
    assert!(conf.contains("\"some.key\"") && conf.contains("<redacted>"), "{conf}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn groups_that_are_encoded_and_bytes_that_are_decoded_are_counted() {
    let mut cluster = Cluster::start_tuned(6, with_pages).await;
    let group = decodable_in(&cluster, 14, 0).await;
    let (block, len) = (group.block(0), group.bytes(0).len() as u64);
    cluster.kill_node(0);
    let mut stream = cluster.connect(5).await;
    read(&mut stream, block, 0, len).await.unwrap();
    let sum = |units: &[Vec<u8>]| units.iter().map(Vec::len).sum::<usize>();
    figures(
        &cluster,
        5,
        &[
            "encoded_groups_total 1",
            "encode_failed_groups_total 0",
            &format!("encode_read_bytes_total {}", sum(&group.members)),
            &format!("encode_written_bytes_total {}", sum(&group.parities)),
            "encode_seconds_count 1",
            &format!("decoded_bytes_total {len}"),
            &format!("decode_seconds_count {}", len.div_ceil(256 << 10)),
        ],
    )
    .await;
}

fn with_a_lost_volume(config: &mut DataNodeConfig) {
    with_pages(config);
    let file = config.data_dirs[0].path.join("no folder");
    std::fs::write(&file, "").unwrap();
    config.data_dirs.push(file.into());
    config.failed_volumes_tolerated = Some(1);
}

#[tokio::test]
async fn who_has_lost_a_volume_or_knows_no_name_node_is_not_healthy() {
    let cluster = Cluster::start_tuned(1, with_a_lost_volume).await;
    let health = page(cluster.node(0).http_addr().unwrap(), "/health").await;
    assert!(health.starts_with("HTTP/1.1 503 ") && health.contains("no folder"), "{health}");
    let state = bean(&cluster, 0, "FSDatasetState").await;
    assert_eq!(state["NumFailedVolumes"], 1);

    let dir = tempfile::tempdir().unwrap();
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let mut config = DataNodeConfig {
        data_dirs: vec![dir.path().to_path_buf().into()],
        // Nobody listens there.
        name_nodes: vec!["127.0.0.1:1".into()],
        xfer_addr: any,
        ipc_addr: any,
        ..DataNodeConfig::default()
    };
    with_pages(&mut config);
    let alone = DataNode::start(config).await.unwrap();
    let health = page(alone.http_addr().unwrap(), "/health").await;
    assert!(health.starts_with("HTTP/1.1 503 ") && health.contains("not registered"), "{health}");
}

/// Everything that takes time at all is slow.
fn impatient(config: &mut DataNodeConfig) {
    with_pages(config);
    config.slow_io_threshold = Duration::ZERO;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_steps_of_writes_are_counted() {
    const NAMES: [&str; 4] = [
        "PacketsSlowWriteToDisk",
        "SlowFlushOrSyncCount",
        "PacketsSlowWriteToMirror",
        "SlowAckToUpstreamCount",
    ];
    async fn counts(cluster: &Cluster, node: usize) -> [u64; 4] {
        let addr = cluster.node(node).xfer_addr();
        let name = format!("DataNodeActivity-127.0.0.1-{}", addr.port());
        let bean = bean(cluster, node, &name).await;
        NAMES.map(|name| bean[name].as_u64().unwrap())
    }
    let cluster = Cluster::start_tuned(2, impatient).await;
    let mut writer = Writer::create(&cluster, &[0, 1], 7, 1001).await;
    let data = bytes(2 * CHUNK);
    writer.write(&data, 2).await;
    writer.send(&data, &crcs(&data), false, true).await;
    writer.expect_ack(2).await;
    writer.close(2).await;
    // Two of three packets have data, one is synced, and so is the block at its end where it is to be durable.
    let deadline = Instant::now() + Duration::from_secs(10);
    for (node, expected) in [(0, [2, 2, 3, 3]), (1, [2, 1, 0, 3])] {
        while counts(&cluster, node).await != expected {
            let counts = counts(&cluster, node).await;
            assert!(Instant::now() < deadline, "{node}: {counts:?}, not {expected:?}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
    let line = "slow_steps_total{step=\"mirror\"} 3";
    figures(&cluster, 0, &[line]).await;
    let patient = Cluster::start_tuned(1, with_pages).await;
    write_block(&patient, &[0], 7, 1001, &data).await;
    figures(&patient, 0, &["slow_steps_total{step=\"mirror\"} 0"]).await;
}
