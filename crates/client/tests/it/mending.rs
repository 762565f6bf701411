//! DataNodes die, their units are rebuilt, others die: the bytes stay.

use crate::cluster::*;
use cairn_client::{FileBlock, FileSystem};
use cairn_datanode::DataNodeConfig;
use cairn_namenode::NameNodeConfig;
use cairn_stripe::geometry::Geometry;
use cairn_stripe::{Policy, UnitIndex};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Whether each unit with bytes is on a live DataNode.
fn is_whole(cluster: &Cluster, block: &FileBlock, policy: &Policy) -> bool {
    let live: BTreeSet<&str> = cluster.datanodes.iter().map(|node| node.uuid()).collect();
    let geometry = Geometry::from(policy);
    let has_bytes = |unit: &UnitIndex| geometry.internal_block_len(block.block.len, *unit) > 0;
    (0..geometry.units() as u8).map(UnitIndex).filter(has_bytes).all(|unit| {
        let mut places = block.locations.iter().filter(|location| location.unit == unit);
        places.any(|location| live.contains(location.addr.uuid.as_str()))
    })
}

async fn wait_whole(cluster: &Cluster, fs: &FileSystem, paths: &[&str]) {
    let start = Instant::now();
    'again: loop {
        assert!(start.elapsed() < Duration::from_secs(60), "not whole in time");
        tokio::time::sleep(Duration::from_millis(100)).await;
        for path in paths {
            let blocks = fs.block_locations(path, 0, u64::MAX >> 1).await.unwrap();
            let policy = blocks.policy.unwrap();
            if !blocks.blocks.iter().all(|block| is_whole(cluster, block, &policy)) {
                continue 'again;
            }
        }
        return;
    }
}

/// Loses `lost` DataNodes `rounds` times, waits for the repair each time, and reads everything with as many
/// gone once more.
async fn lose_and_mend(policy: &str, count: usize, lost: usize, rounds: usize, lens: &[usize]) {
    let mut cluster = Cluster::start_mending(count).await;
    let fs = cluster.fs.clone();
    fs.enable_policy(policy).await.unwrap();
    let paths: Vec<String> = lens.iter().map(|len| format!("/{len}")).collect();
    let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
    for (path, len) in paths.iter().zip(lens) {
        put(&fs, path, &bytes(*len as u64, *len), &striped(policy, 2 << 20)).await.unwrap();
    }
    for round in 0..=rounds {
        // The longest-serving ones: in the end no unit is where it was written.
        for _ in 0..lost {
            let uuid = cluster.datanodes[0].uuid().to_string();
            cluster.kill(&uuid);
        }
        if round < rounds {
            wait_whole(&cluster, &fs, &paths).await;
        }
        for (path, len) in paths.iter().zip(lens) {
            let what = format!("{path} after round {round}");
            assert_same(&get(&fs, path).await.unwrap(), &bytes(*len as u64, *len), &what);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_lost_datanodes_at_a_time_cost_rs_3_2_nothing() {
    let lens = [70, (1 << 20) + 3, (3 << 20) + 4097, (13 << 20) + 77];
    lose_and_mend("RS-3-2-1024k", 9, 2, 2, &lens).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_lost_datanodes_cost_rs_6_3_nothing() {
    lose_and_mend("RS-6-3-1024k", 12, 3, 1, &[5 << 20, (27 << 20) + 77]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_datanode_costs_the_other_codes_nothing() {
    lose_and_mend("XOR-2-1-1024k", 5, 1, 2, &[100, (5 << 20) + 77]).await;
    lose_and_mend("RS-LEGACY-6-3-1024k", 12, 3, 1, &[(9 << 20) + 77]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_unit_that_a_reader_finds_to_be_corrupt_is_rebuilt_elsewhere() {
    let mut cluster = Cluster::start_mending(7).await;
    let fs = cluster.fs.clone();
    let policy = "RS-3-2-1024k";
    fs.enable_policy(policy).await.unwrap();
    let data = bytes(8, (6 << 20) + 5);
    put(&fs, "/f", &data, &striped(policy, 16 << 20)).await.unwrap();
    let holder = |blocks: &[FileBlock]| {
        let mut places = blocks[0].locations.iter();
        places.find(|location| location.unit.0 == 1).map(|location| location.addr.uuid.clone())
    };
    let before = holder(&fs.block_locations("/f", 0, 1).await.unwrap().blocks).unwrap();
    cluster.corrupt_unit(1);
    assert_same(&get(&fs, "/f").await.unwrap(), &data, "with a corrupt unit");
    let start = Instant::now();
    loop {
        let after = holder(&fs.block_locations("/f", 0, 1).await.unwrap().blocks);
        if after.is_some_and(|after| after != before) {
            break;
        }
        assert!(start.elapsed() < Duration::from_secs(60), "not rebuilt in time");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    // As many others are lost as there may be: what was rebuilt has to serve.
    cluster.kill_units("/f", &[0, 3]).await;
    assert_same(&get(&fs, "/f").await.unwrap(), &data, "from the rebuilt unit");
}

/// Heartbeats are so rare that what waits for one does not come in time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_dead_datanode_held_is_rebuilt_without_waiting_for_heartbeats() {
    let rare = |namenode: &mut NameNodeConfig, datanode: &mut DataNodeConfig| {
        namenode.redundancy_interval = Duration::from_millis(200);
        namenode.heartbeat_interval = Duration::from_secs(3600);
        datanode.heartbeat_interval = Duration::from_secs(3600);
    };
    let mut cluster = Cluster::start_tuned(6, rare, |_| {}).await;
    let fs = cluster.fs.clone();
    fs.enable_policy("RS-3-2-1024k").await.unwrap();
    let data = bytes(1, 5 << 20);
    put(&fs, "/striped", &data, &striped("RS-3-2-1024k", 2 << 20)).await.unwrap();
    let blocks = fs.block_locations("/striped", 0, 1).await.unwrap();
    let lost = blocks.blocks[0].locations[0].addr.uuid.clone();
    cluster.kill(&lost);
    cluster.declare_dead(&lost);
    wait_whole(&cluster, &fs, &["/striped"]).await;
    assert_same(&get(&fs, "/striped").await.unwrap(), &data, "/striped");
}
