//! Replicas that are kept in memory.

use crate::cluster::*;
use cairn_wire::proto::datanode::*;
use std::os::unix::fs::FileExt;

/// For whoever has pages locked, which count for this process.
pub static LOCKED_PAGES: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

const ID: i64 = 1_073_741_825;

fn order(action: BlockIdCommandProtoAction, ids: &[i64]) -> DatanodeCommandProto {
    DatanodeCommandProto {
        blk_id_cmd: Some(BlockIdCommandProto {
            action: action as i32,
            block_pool_id: POOL.into(),
            block_ids: ids.iter().map(|id| *id as u64).collect(),
        }),
        ..command(DatanodeCommandProtoType::BlockIdCommand)
    }
}

/// Bytes that this process has locked.
fn locked_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmLck:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_are_locked_within_the_limit_and_given_back() {
    let _alone = LOCKED_PAGES.lock().await;
    let cluster = Cluster::start_tuned(1, |config| config.max_locked_memory = 96 << 10).await;
    let data = bytes(40_000);
    for id in [ID, ID + 1, ID + 2, ID + 3] {
        write_block(&cluster, &[0], id, 1001, &data).await;
    }
    // One replica is not what was written.
    let files = cluster.files(0, ID + 3);
    let path = files.iter().find(|path| path.extension().is_none()).unwrap();
    let file = std::fs::OpenOptions::new().write(true).open(cluster.dir(0).join(path)).unwrap();
    file.write_at(b"?", 30_000).unwrap();

    let is_cached = |record: &mut Record, ids: &[i64]| {
        let mut cached = record.cached.clone();
        cached.sort_unstable();
        cached == ids
    };
    let cache = BlockIdCommandProtoAction::Cache;
    cluster.send_command(0, order(cache, &[ID + 9, ID + 3, ID]));
    cluster.wait("the first replica in memory", |record| is_cached(record, &[ID])).await;
    assert!(locked_bytes() >= 40_000);
    // Two of ten pages each fit, and no third.
    cluster.send_command(0, order(cache, &[ID, ID + 1, ID + 2]));
    cluster.wait("the second replica in memory", |record| is_cached(record, &[ID, ID + 1])).await;
    cluster.wait("the memory in use", |record| record.cache == (96 << 10, 2 * 10 * 4096)).await;
    cluster.send_command(0, order(BlockIdCommandProtoAction::Uncache, &[ID, ID + 9]));
    cluster.wait("the first replica out of memory", |r| is_cached(r, &[ID + 1])).await;
    cluster.send_command(0, order(cache, &[ID + 2]));
    cluster.wait("the third replica in memory", |r| is_cached(r, &[ID + 1, ID + 2])).await;
    let out = order(BlockIdCommandProtoAction::Uncache, &[ID + 1, ID + 2]);
    cluster.send_command(0, out);
    cluster.wait("nothing in memory", |record| record.cache == (96 << 10, 0)).await;
    assert_eq!(locked_bytes(), 0);
}
