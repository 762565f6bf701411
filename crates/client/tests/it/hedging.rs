//! How many reads ask others beside a late DataNode, as Hadoop's keys say.

use crate::cluster::*;
use cairn_client::CreateOptions;
use std::time::{Duration, Instant};

/// Reads all places of a file while one of its DataNodes says nothing; returns how long that took, and the hedges.
async fn read_beside_a_mute_one(
    policy: Option<&str>,
    nodes: usize,
    hedged_reads: usize,
    timeout: Duration,
) -> (Duration, (u64, u64)) {
    let mut cluster = Cluster::start(nodes).await;
    let data = bytes(7, 20 * (64 << 10));
    let options = CreateOptions {
        policy: policy.map(str::to_string),
        replication: Some(2),
        block_size: Some(if policy.is_some() { 4 << 20 } else { 64 << 10 }),
        ..CreateOptions::default()
    };
    if let Some(policy) = policy {
        cluster.fs.enable_policy(policy).await.unwrap();
    }
    put(&cluster.fs, "/f", &data, &options).await.unwrap();
    let mut config = cluster.fs.config().clone();
    (config.hedged_reads, config.hedge_after) = (hedged_reads, Duration::from_millis(20));
    config.socket_timeout = timeout;
    let fs = cairn_client::FileSystem::connect(config).await.unwrap();
    let reader = fs.open("/f").await.unwrap();
    let victim = match policy {
        Some(_) => {
            let found = fs.block_locations("/f", 0, 1).await.unwrap();
            let is_first = |l: &&cairn_client::BlockLocation| l.unit.0 == 0;
            found.blocks[0].locations.iter().find(is_first).unwrap().addr.uuid.clone()
        }
        None => cluster.datanodes[0].uuid().to_string(),
    };
    let _mute = cluster.hang(&victim).await;
    let start = Instant::now();
    let mut buf = vec![0; 64 << 10];
    for place in (0..data.len()).step_by(buf.len()) {
        assert_eq!(reader.read_at(place as u64, &mut buf).await.unwrap(), buf.len());
        assert_same(&buf, &data[place..place + buf.len()], &format!("{policy:?} {place}"));
    }
    (start.elapsed(), fs.hedged_reads())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn late_answers_are_hedged_and_counted() {
    const TIMEOUT: Duration = Duration::from_secs(60);
    for (policy, nodes) in [(Some("RS-3-2-1024k"), 5), (None, 2)] {
        let (took, (made, won)) = read_beside_a_mute_one(policy, nodes, 64, TIMEOUT).await;
        assert!(took < TIMEOUT, "{policy:?}: {took:?}");
        assert!(made > 0 && won > 0 && won <= made, "{policy:?}: {won} of {made} won");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_room_for_hedges_a_mute_datanode_is_waited_for() {
    const TIMEOUT: Duration = Duration::from_millis(1500);
    for (policy, nodes) in [(Some("RS-3-2-1024k"), 5), (None, 2)] {
        let (took, hedges) = read_beside_a_mute_one(policy, nodes, 0, TIMEOUT).await;
        assert!(took >= TIMEOUT, "{policy:?}: {took:?}");
        assert_eq!(hedges, (0, 0), "{policy:?}");
    }
}
