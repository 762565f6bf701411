//! Blocks that have copies in memory until they are in a group.

use crate::cluster::*;
use crate::packing::stored;
use cairn_client::CreateOptions;
use cairn_datanode::{DataNodeConfig, RamDiskStats};
use cairn_namenode::NameNodeConfig;
use std::time::{Duration, Instant};

const POLICY: &str = "RS-3-2-contiguous";
const BLOCK: u64 = 1 << 20;

async fn cluster(nodes: usize, save_after: Duration) -> Cluster {
    let tune = |namenode: &mut NameNodeConfig, datanode: &mut DataNodeConfig| {
        mends_at_once(namenode, datanode);
        namenode.copies_in_memory = true;
        namenode.group_quiet = Duration::ZERO;
        namenode.group_short_quiet = Duration::ZERO;
        datanode.max_locked_memory = 64 * BLOCK;
        datanode.lazy_writer_interval = save_after;
    };
    let cluster = Cluster::start_tuned(nodes, tune, |_| {}).await;
    cluster.fs.enable_policy(POLICY).await.unwrap();
    cluster
}

fn options() -> CreateOptions {
    CreateOptions {
        policy: Some(POLICY.to_string()),
        block_size: Some(BLOCK),
        ..CreateOptions::default()
    }
}

/// What became of replicas in memory, on all DataNodes together.
fn in_memory(cluster: &Cluster) -> RamDiskStats {
    let mut all = RamDiskStats::default();
    for node in &cluster.datanodes {
        let of_node = node.ram_disk_stats();
        all.used += of_node.used;
        all.blocks_written += of_node.blocks_written;
        all.blocks_saved += of_node.blocks_saved;
        all.deleted_before_saved += of_node.deleted_before_saved;
    }
    all
}

async fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(60), "waited in vain for {what}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_grouped_in_time_is_on_no_second_disk() {
    let mut cluster = cluster(9, Duration::from_secs(3600)).await;
    let fs = cluster.fs.clone();
    let data = bytes(1, 6 * BLOCK as usize);
    put(&fs, "/f", &data, &options()).await.unwrap();
    assert_eq!(in_memory(&cluster).blocks_written, 12, "two copies of each block");
    wait_for("two groups", || in_memory(&cluster).deleted_before_saved == 12).await;
    let all = in_memory(&cluster);
    assert_eq!((all.used, all.blocks_saved), (0, 0));
    let most = 6 * BLOCK * 5 / 3 * 102 / 100;
    wait_for("surplus to go", || stored(cluster.path()) <= most).await;
    for _ in 0..2 {
        let uuid = cluster.datanodes[0].uuid().to_string();
        cluster.kill(&uuid);
    }
    assert_same(&get(&fs, "/f").await.unwrap(), &data, "with two DataNodes gone");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_comes_into_no_group_is_saved_on_disks() {
    let cluster = cluster(6, Duration::from_millis(500)).await;
    let fs = cluster.fs.clone();
    // Two blocks and two parities would take more than the rule that groups pay allows.
    let data = bytes(2, 2 * BLOCK as usize);
    put(&fs, "/f", &data, &options()).await.unwrap();
    wait_for("disks to have all copies", || in_memory(&cluster).blocks_saved == 4).await;
    wait_for("memory to be free", || in_memory(&cluster).used == 0).await;
    assert_same(&get(&fs, "/f").await.unwrap(), &data, "from disks");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_single_copy_is_on_a_disk() {
    let cluster = cluster(5, Duration::from_secs(3600)).await;
    let fs = cluster.fs.clone();
    let data = bytes(3, BLOCK as usize);
    let single = CreateOptions { replication: Some(1), ..options() };
    put(&fs, "/f", &data, &single).await.unwrap();
    assert_eq!(in_memory(&cluster).blocks_written, 0);
}
