//! Replicas on RAM_DISK volumes: how they come to disks, and what is left of them when memory is.

use crate::cluster::*;
use cairn_datanode::{DataDir, DataNodeConfig};
use cairn_stripe::StorageType;
use cairn_wire::proto::datanode::ReceivedDeletedBlockInfoProtoBlockStatus::{Deleted, Received};
use cairn_wire::proto::datanode::*;
use cairn_wire::proto::hdfs::{BlockProto, OpWriteBlockProto, StorageTypeProto};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

const ID: i64 = 1_073_741_825;
const LEN: usize = 32 << 10;
const RAM: i32 = StorageTypeProto::RamDisk as i32;
const DISK: i32 = StorageTypeProto::Disk as i32;
/// Longer than any test.
const NEVER: Duration = Duration::from_secs(3600);

/// A disk and memory for two replicas.
fn with_memory(config: &mut DataNodeConfig) {
    let root = config.data_dirs[0].path.clone();
    let ram = DataDir { storage_type: StorageType::RamDisk, ..root.join("ram").into() };
    config.data_dirs = vec![root.join("disk").into(), ram];
    config.max_locked_memory = 2 * LEN as u64;
    config.lazy_writer_interval = Duration::from_millis(20);
    config.failed_volumes_tolerated = Some(1);
    // It leaves its cursor on volumes that tests take away.
    config.scan_bytes_per_second = 0;
}

fn never_saving(config: &mut DataNodeConfig) {
    with_memory(config);
    config.lazy_writer_interval = NEVER;
}

async fn write_lazy(cluster: &Cluster, id: i64, data: &[u8]) {
    write_as(cluster, id, data, |request| request.allow_lazy_persist = Some(true)).await;
}

/// Writes a replica for which the NameNode has chosen memory, whatever its writer wants.
async fn write_named_memory(cluster: &Cluster, id: i64, data: &[u8]) {
    write_as(cluster, id, data, |request| request.storage_type = Some(RAM)).await;
}

async fn write_as(
    cluster: &Cluster,
    id: i64,
    data: &[u8],
    change: impl FnOnce(&mut OpWriteBlockProto),
) {
    let len = data.len() as u64;
    let mut request = write_request(block(id, 1001, len), Stage::PipelineSetupCreate, Vec::new());
    change(&mut request);
    let mut writer = Writer::open(cluster, &[0], request).await;
    writer.write(data, 1).await;
    writer.close(1).await;
    cluster.wait_event(0, id, Received).await;
}

async fn delete(cluster: &Cluster, id: i64) {
    let mut order = command(DatanodeCommandProtoType::BlockCommand);
    order.blk_cmd = Some(BlockCommandProto {
        action: BlockCommandProtoAction::Invalidate as i32,
        block_pool_id: POOL.into(),
        blocks: vec![BlockProto { block_id: id as u64, gen_stamp: 1001, num_bytes: Some(0) }],
        ..Default::default()
    });
    cluster.send_command(0, order);
    cluster.wait_event(0, id, Deleted).await;
}

async fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..1000 {
        if is_so() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("waited in vain for {what}");
}

async fn wait_saved(cluster: &Cluster, replicas: u64) {
    let saved = || cluster.node(0).ram_disk_stats().blocks_saved >= replicas;
    wait_until("the lazy writer", saved).await;
}

async fn wait_place(cluster: &Cluster, id: i64, kind: i32) {
    cluster.wait("a report of the new place", |r| r.places.get(&id) == Some(&kind)).await;
}

async fn read_all(cluster: &Cluster, id: i64, gs: u64) -> Vec<u8> {
    read(&mut cluster.connect(0).await, block(id, gs, 0), 0, LEN as u64).await.unwrap()
}

/// Block and meta file of a replica, in `dir` of the block pool.
fn pair(volume: &str, dir: &str, id: i64, gs: u64) -> Vec<PathBuf> {
    let leaf = Path::new(volume).join(format!("current/{POOL}/current/{dir}/subdir0/subdir0"));
    vec![leaf.join(format!("blk_{id}")), leaf.join(format!("blk_{id}_{gs}.meta"))]
}

fn reported(cluster: &Cluster) -> Vec<(i64, u64, u64, u64)> {
    cluster.name_node.record.lock().unwrap().reports[&cluster.uuid(0)].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn replicas_are_saved_and_the_least_recently_read_leaves_for_another() {
    let cluster = Cluster::start_tuned(1, with_memory).await;
    let data = bytes(LEN);
    for id in [ID, ID + 1] {
        write_lazy(&cluster, id, &data).await;
        wait_place(&cluster, id, RAM).await;
    }
    wait_saved(&cluster, 2).await;
    let both = [pair("disk", "lazypersist", ID, 1001), pair("ram", "finalized", ID, 1001)].concat();
    assert_eq!(cluster.files(0, ID), both);
    cluster.wait("a heartbeat", |r| r.cache == (2 * LEN as u64, 2 * LEN as u64)).await;
    assert_eq!(read_all(&cluster, ID, 1001).await, data);

    write_lazy(&cluster, ID + 2, &data).await;
    wait_place(&cluster, ID + 2, RAM).await;
    wait_place(&cluster, ID + 1, DISK).await;
    assert_eq!(cluster.files(0, ID + 1), pair("disk", "finalized", ID + 1, 1001));
    assert_eq!(read_all(&cluster, ID + 1, 1001).await, data);
    assert_eq!(cluster.name_node.record.lock().unwrap().places[&ID], RAM);
    wait_saved(&cluster, 3).await;
    let stats = cluster.node(0).ram_disk_stats();
    assert_eq!((stats.blocks_written, stats.write_fallbacks), (3, 0));
    assert_eq!((stats.bytes_written, stats.bytes_saved), (3 * LEN as u64, 3 * LEN as u64));
    assert_eq!((stats.evicted, stats.evicted_without_read, stats.read_hits), (1, 1, 1));
    assert_eq!((stats.used, stats.unsaved), (2 * LEN as u64, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_that_the_namenode_wants_in_memory_passes_through_it() {
    let cluster = Cluster::start_tuned(1, never_saving).await;
    let data = bytes(LEN);
    write_named_memory(&cluster, ID, &data).await;
    wait_place(&cluster, ID, RAM).await;
    // It is deleted before it was saved: no disk has seen it.
    delete(&cluster, ID).await;
    let stats = cluster.node(0).ram_disk_stats();
    assert_eq!((stats.deleted_before_saved, stats.blocks_saved), (1, 0));

    let cluster = Cluster::start_tuned(1, with_memory).await;
    write_named_memory(&cluster, ID, &data).await;
    // Nobody needs its memory, and it leaves as soon as a disk has it.
    wait_place(&cluster, ID, DISK).await;
    let stats = cluster.node(0).ram_disk_stats();
    assert_eq!((stats.blocks_written, stats.blocks_saved, stats.evicted), (1, 1, 1));
    assert_eq!(stats.used, 0);
    assert_eq!(read_all(&cluster, ID, 1001).await, data);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_has_no_room_in_memory_goes_to_a_disk() {
    let cluster = Cluster::start_tuned(1, never_saving).await;
    let data = bytes(LEN);
    // Nobody asks for memory.
    write_block(&cluster, &[0], ID, 1001, &data).await;
    // Not whole pages.
    write_lazy(&cluster, ID + 1, &data[..LEN - 1]).await;
    for id in [ID + 2, ID + 3, ID + 4] {
        write_lazy(&cluster, id, &data).await;
    }
    // Nothing is saved, and so nothing can leave.
    for (id, kind) in [(0, DISK), (1, DISK), (2, RAM), (3, RAM), (4, DISK)] {
        wait_place(&cluster, ID + id, kind).await;
    }
    let stats = cluster.node(0).ram_disk_stats();
    assert_eq!((stats.blocks_written, stats.write_fallbacks), (2, 2));
    assert_eq!(read_all(&cluster, ID + 4, 1001).await, data);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_only_in_memory_is_lost_with_it() {
    let mut cluster = Cluster::start_tuned(1, never_saving).await;
    write_lazy(&cluster, ID, &bytes(LEN)).await;
    cluster.kill_node(0);
    fs::remove_dir_all(cluster.dir(0).join("ram")).unwrap();
    cluster.start_node(0).await;
    assert_eq!(reported(&cluster), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn memory_that_outlives_the_process_is_saved_at_the_next_start() {
    let mut cluster = Cluster::start_tuned(1, never_saving).await;
    let data = bytes(LEN);
    write_lazy(&cluster, ID, &data).await;
    assert_eq!(cluster.node(0).ram_disk_stats().blocks_saved, 0);
    cluster.kill_node(0);
    cluster.start_node(0).await;
    wait_saved(&cluster, 1).await;
    assert_eq!(cluster.node(0).ram_disk_stats().used, LEN as u64);
    assert_eq!(read_all(&cluster, ID, 1001).await, data);
    // Of two copies the next start keeps the one on the disk.
    cluster.kill_node(0);
    cluster.start_node(0).await;
    assert_eq!(reported(&cluster), [(ID, LEN as u64, 1001, 0)]);
    assert_eq!(cluster.files(0, ID), pair("disk", "finalized", ID, 1001));
    assert_eq!(cluster.node(0).ram_disk_stats().used, 0);
    assert_eq!(read_all(&cluster, ID, 1001).await, data);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_saved_replica_is_there_when_memory_is_lost() {
    let mut cluster = Cluster::start_tuned(1, with_memory).await;
    let data = bytes(LEN);
    for id in [ID, ID + 1] {
        write_lazy(&cluster, id, &data).await;
    }
    wait_saved(&cluster, 2).await;
    // While the DataNode runs: a reader finds it at once, and a look at the volume ends that.
    fs::remove_dir_all(cluster.dir(0).join("ram")).unwrap();
    assert_eq!(read_all(&cluster, ID, 1001).await, data);
    wait_place(&cluster, ID, DISK).await;
    wait_place(&cluster, ID + 1, DISK).await;
    assert_eq!(read_all(&cluster, ID + 1, 1001).await, data);
    // And after a restart, with memory that is empty.
    cluster.kill_node(0);
    cluster.start_node(0).await;
    let mut report = reported(&cluster);
    report.sort();
    assert_eq!(report, [ID, ID + 1].map(|id| (id, LEN as u64, 1001, 0)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_that_a_stop_has_left_half_moved_is_found() {
    let mut cluster = Cluster::start_tuned(1, with_memory).await;
    let data = bytes(LEN);
    write_lazy(&cluster, ID, &data).await;
    wait_saved(&cluster, 1).await;
    cluster.kill_node(0);
    fs::remove_dir_all(cluster.dir(0).join("ram")).unwrap();
    let at = |dir: &str| cluster.dir(0).join(&pair("disk", dir, ID, 1001)[1]);
    fs::create_dir_all(at("finalized").parent().unwrap()).unwrap();
    fs::rename(at("lazypersist"), at("finalized")).unwrap();
    cluster.start_node(0).await;
    assert_eq!(reported(&cluster), [(ID, LEN as u64, 1001, 0)]);
    assert_eq!(read_all(&cluster, ID, 1001).await, data);
}

#[tokio::test(flavor = "multi_thread")]
async fn deletion_takes_the_saved_copy_too() {
    let cluster = Cluster::start_tuned(1, with_memory).await;
    write_lazy(&cluster, ID, &bytes(LEN)).await;
    wait_saved(&cluster, 1).await;
    delete(&cluster, ID).await;
    assert_eq!(cluster.files(0, ID), Vec::<PathBuf>::new());
    let stats = cluster.node(0).ram_disk_stats();
    assert_eq!((stats.used, stats.deleted_before_saved), (0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn bytes_that_memory_has_changed_are_reported_and_not_saved() {
    let mut cluster = Cluster::start_tuned(1, never_saving).await;
    write_lazy(&cluster, ID, &bytes(LEN)).await;
    let file = cluster.dir(0).join(&pair("ram", "finalized", ID, 1001)[0]);
    let mut wrong = fs::read(&file).unwrap();
    wrong[LEN / 2] ^= 1;
    fs::write(&file, wrong).unwrap();
    cluster.kill_node(0);
    // The start saves what it finds in memory.
    cluster.start_node(0).await;
    cluster.wait("a bad replica", |r| r.bad.iter().any(|(id, _)| *id == ID)).await;
    assert_eq!(cluster.node(0).ram_disk_stats().blocks_saved, 0);
    assert_eq!(cluster.files(0, ID), pair("ram", "finalized", ID, 1001));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_is_written_again_is_saved_again() {
    let cluster = Cluster::start_tuned(1, with_memory).await;
    let data = bytes(LEN);
    write_lazy(&cluster, ID, &data[..LEN / 2]).await;
    wait_saved(&cluster, 1).await;
    let half = LEN as u64 / 2;
    let mut request = write_request(block(ID, 1001, half), Stage::PipelineSetupAppend, Vec::new());
    request.latest_generation_stamp = 1002;
    request.min_bytes_rcvd = half;
    request.max_bytes_rcvd = half;
    let mut writer = Writer::open(&cluster, &[0], request).await;
    assert_eq!(cluster.files(0, ID).len(), 2, "the copy is void");
    writer.offset = half;
    writer.write(&data[LEN / 2..], 1).await;
    writer.close(1).await;
    wait_saved(&cluster, 2).await;
    let both = [pair("disk", "lazypersist", ID, 1002), pair("ram", "finalized", ID, 1002)].concat();
    assert_eq!(cluster.files(0, ID), both);
    assert_eq!(cluster.node(0).ram_disk_stats().used, LEN as u64);
    // Two others come to memory.
    for id in [ID + 1, ID + 2] {
        write_lazy(&cluster, id, &data).await;
    }
    wait_place(&cluster, ID, DISK).await;
    assert_eq!(read_all(&cluster, ID, 1002).await, data);
}
