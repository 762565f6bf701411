//! Small files are packed into containers, and are the same files all the time.

use crate::cluster::*;
use cairn_client::{ChecksumMode, CreateOptions, FileSystem, GroupWork};
use cairn_datanode::DataNodeConfig;
use cairn_namenode::NameNodeConfig;
use cairn_namespace::{container, query};
use std::path::Path;
use std::time::{Duration, Instant};

pub const POLICY: &str = "RS-3-2-contiguous";
const FILES: usize = 120;

pub async fn cluster(nodes: usize) -> Cluster {
    let tune = |namenode: &mut NameNodeConfig, datanode: &mut DataNodeConfig| {
        mends_at_once(namenode, datanode);
        datanode.http_addr = Some(any_port());
        namenode.packs = true;
        namenode.group_quiet = Duration::ZERO;
        namenode.group_short_quiet = Duration::ZERO;
        namenode.pack_patience = Duration::from_secs(2);
        namenode.container_len = 1 << 20;
    };
    let cluster = Cluster::start_tuned(nodes, tune, |_| {}).await;
    cluster.fs.enable_policy(POLICY).await.unwrap();
    cluster
}

fn len(number: usize) -> usize {
    [0, 1, 511, 512, 513, 10_000, 70_001, 300_000][number % 8]
}

fn data(number: usize) -> Vec<u8> {
    bytes(number as u64 + 1, len(number))
}

fn path(number: usize) -> String {
    format!("/packed/{}/f{number}", number % 3)
}

/// All of them wait before the first are packed: of few that are left over no group of containers may be worth it.
async fn write_all(fs: &FileSystem) {
    fs.pause_groups(&[GroupWork::Form], true).await.unwrap();
    for number in 0..FILES {
        let options = CreateOptions {
            create_parents: true,
            policy: Some(POLICY.to_string()),
            ..CreateOptions::default()
        };
        put(fs, &path(number), &data(number), &options).await.unwrap();
    }
    fs.pause_groups(&[GroupWork::Form], false).await.unwrap();
}

/// Packed blocks, and those of them of which plain replicas are left.
pub fn packed(cluster: &Cluster) -> (u64, usize) {
    let node = cluster.namenode.node();
    let packed = node.ns.read(|store| query::totals(store).unwrap().packed);
    (packed, node.cluster().packed_with_replicas())
}

async fn until_packed(cluster: &Cluster, count: u64) {
    let began = Instant::now();
    while packed(cluster) != (count, 0) {
        let found = packed(cluster);
        assert!(began.elapsed() < Duration::from_secs(90), "{found:?} instead of {count}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Bytes in block files and `.meta` files.
pub fn stored(dir: &Path) -> u64 {
    let (mut sum, mut folders) = (0, vec![dir.to_path_buf()]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            let (path, name) = (entry.path(), entry.file_name());
            if path.is_dir() {
                folders.push(path);
            } else if name.to_string_lossy().starts_with("blk_") {
                sum += entry.metadata().map_or(0, |found| found.len());
            }
        }
    }
    sum
}

async fn read_all(fs: &FileSystem, numbers: impl Iterator<Item = usize>) {
    for number in numbers {
        assert_same(&get(fs, &path(number)).await.unwrap(), &data(number), &path(number));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn small_files_are_packed_and_read_with_as_many_nodes_gone_as_parities() {
    let mut cluster = cluster(7).await;
    let fs = cluster.fs.clone();
    let mut sums = Vec::new();
    write_all(&fs).await;
    for number in (0..FILES).filter(|number| len(*number) > 0) {
        let md5 = fs.checksum(&path(number), ChecksumMode::Md5Md5Crc).await.unwrap();
        let crc = fs.checksum(&path(number), ChecksumMode::CompositeCrc).await.unwrap();
        sums.push((number, md5, crc));
    }
    let full = (0..FILES).filter(|number| len(*number) > 0).count() as u64;
    until_packed(&cluster, full).await;
    // The last deletions are obeyed a moment later.
    let bytes: u64 = (0..FILES).map(|number| len(number) as u64).sum();
    let began = Instant::now();
    while stored(cluster.path()) > bytes * 19 / 10 {
        let found = stored(cluster.path());
        assert!(began.elapsed() < Duration::from_secs(30), "{found} bytes for {bytes}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    read_all(&fs, 0..FILES).await;
    for (number, md5, crc) in &sums {
        let path = path(*number);
        assert_eq!(fs.checksum(&path, ChecksumMode::Md5Md5Crc).await.unwrap(), *md5, "{path}");
        assert_eq!(fs.checksum(&path, ChecksumMode::CompositeCrc).await.unwrap(), *crc, "{path}");
    }
    // Deleted files are gone, whatever their container has.
    fs.delete(&path(5), false).await.unwrap();
    assert!(get(&fs, &path(5)).await.is_err());
    let gone: Vec<String> =
        cluster.datanodes[..2].iter().map(|node| node.uuid().to_string()).collect();
    gone.iter().for_each(|uuid| cluster.kill(uuid));
    read_all(&fs, (0..FILES).filter(|number| *number != 5)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_container_goes_with_the_last_of_its_files() {
    let cluster = cluster(6).await;
    let fs = &cluster.fs;
    write_all(fs).await;
    let full = (0..FILES).filter(|number| len(*number) > 0).count() as u64;
    until_packed(&cluster, full).await;
    fs.delete("/packed", true).await.unwrap();
    let containers = || {
        let ns = &cluster.namenode.node().ns;
        ns.read(|store| container::containers_after(store, None, 100).unwrap().len())
    };
    let began = Instant::now();
    while containers() > 0 || stored(cluster.path()) > 0 {
        let found = (containers(), stored(cluster.path()));
        assert!(began.elapsed() < Duration::from_secs(60), "{found:?} are left");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
