//! Disks that answer EIO, and disks that are full in the middle of a write, by real file systems.

use crate::cluster::{Cluster, PATIENCE};
use crate::code::Code;
use crate::mounts::{BadDisk, Broken, SmallDisk, may_mount};
use crate::readers::{Dice, Reading};
use crate::truth::{self, Written};
use cairn_client::{CreateOptions, DataNodeFilter};
use cairn_datanode::Durability;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const ALL: [Broken; 6] =
    [Broken::Read, Broken::Write, Broken::Sync, Broken::Open, Broken::Rename, Broken::All];

/// Block and meta files in a folder, at any depth, with their lengths.
fn block_files(folder: &Path) -> Vec<(PathBuf, u64)> {
    let mut found = Vec::new();
    let Ok(entries) = fs::read_dir(folder) else { return found };
    for path in entries.flatten().map(|entry| entry.path()) {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        match fs::metadata(&path) {
            Ok(meta) if meta.is_dir() => found.extend(block_files(&path)),
            Ok(meta) if name.starts_with("blk_") => found.push((path, meta.len())),
            _ => {}
        }
    }
    found
}

/// One of a DataNode's two disks does something no more, while files are written and read.
async fn one_breaks(code: Code, how: Broken) {
    let what = format!("{code:?} {how:?}");
    println!("{what}");
    let mut dice = Dice::new(how as u64);
    let mut cluster = Cluster::start_with_volumes(code.width(), 1, 2).await;
    let folder = cluster.folders(code.width()).remove(1);
    let disk = BadDisk::mount(&folder);
    let node = cluster.add_with(|config| config.durability = Durability::Stable).await;
    code.enable(&cluster.fs).await;
    let mut files = Vec::new();
    let start = Instant::now();
    while block_files(&folder).is_empty() {
        assert!(start.elapsed() < PATIENCE, "{what}: nothing comes to the disk");
        let data = dice.bytes(code.block_len() * 2 + 5000);
        files.push(cluster.write(&code, &format!("/before{}", files.len()), data).await);
    }
    let reading = Reading::start(cluster.another_client().await, 1);
    files.iter().for_each(|file| reading.acknowledged(file.clone()));

    disk.breaks(how);
    let failed = || cluster.stats().failed_volumes == 1;
    let start = Instant::now();
    while !failed() {
        assert!(start.elapsed() < PATIENCE, "{what}: {:?}", cluster.stats());
        let data = dice.bytes(code.block_len() + 5000);
        let file = cluster.write(&code, &format!("/during{}", files.len()), data).await;
        reading.acknowledged(file.clone());
        files.push(file);
    }
    // What is on it counts no more, though some of it may be seen.
    disk.breaks(Broken::All);
    let data = dice.bytes(code.block_len() + 5000);
    files.push(cluster.write(&code, "/after", data).await);
    truth::check(&cluster, &code, &files, &what).await;
    assert!(cluster.running().contains(&node) && cluster.stats().dead_nodes == 0, "{what}");
    reading.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disk_with_io_errors_costs_its_datanode_nothing_else_rs_3_2() {
    if may_mount() {
        for how in ALL {
            one_breaks(Code::rs(3, 2), how).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disk_with_io_errors_costs_its_datanode_nothing_else_three_replicas() {
    if may_mount() {
        for how in ALL {
            one_breaks(Code::Replicated(3), how).await;
        }
    }
}

/// Several packets, so that half of one is sent.
const BLOCK: u64 = 1 << 20;

fn options(code: &Code) -> CreateOptions {
    CreateOptions { block_size: Some(BLOCK), ..code.options() }
}

/// The disks of `full` DataNodes of a block are full when half of it is written.
async fn full_in_the_middle(code: Code, full: usize) {
    let what = format!("{code:?}, {full} full");
    println!("{what}");
    let mut dice = Dice::new(full as u64);
    let mut cluster = Cluster::start(code.width() - full, 1).await;
    let mut disks = Vec::new();
    let mut small = Vec::new();
    for _ in 0..full {
        let node = cluster.running().len();
        let folder = cluster.folders(node).remove(0);
        disks.push((SmallDisk::mount(&folder, 16 * BLOCK as usize), folder));
        // Of what a writer left behind, the NameNode learns by full reports.
        let often = Duration::from_millis(500);
        small.push(cluster.add_with(|config| config.block_report_interval = often).await);
    }
    code.enable(&cluster.fs).await;
    let len = match &code {
        Code::Replicated(_) => BLOCK as usize,
        Code::Striped(policy) => BLOCK as usize * policy.schema.data_units(),
    };
    let reading = Reading::start(cluster.another_client().await, 1);
    let data = dice.bytes(len * 2 - 7);
    let mut writer = cluster.fs.create("/f", &options(&code)).await.unwrap();
    writer.write(&data[..len / 2]).await.unwrap();
    for (disk, folder) in &disks {
        let is_written = || block_files(folder).iter().any(|(_, len)| *len > 1000);
        cluster.wait(is_written, || format!("{what}: nothing comes to {folder:?}")).await;
        disk.fill();
    }
    // Nobody is left to take the place of the full ones.
    for _ in 0..full {
        cluster.add().await;
    }
    writer.write(&data[len / 2..]).await.unwrap();
    writer.close().await.unwrap();
    let file = Written { path: "/f".to_string(), data };
    reading.acknowledged(file.clone());
    let mut files = vec![file];
    truth::check(&cluster, &code, &files, &what).await;
    let stats = cluster.stats();
    assert_eq!((stats.failed_volumes, stats.dead_nodes), (0, 0), "{what}: full is not broken");

    // Nothing half-written stays, and the books agree with the disk.
    for (node, (_, folder)) in small.iter().zip(&disks) {
        let is_clean = || !block_files(folder).iter().any(|(path, _)| is_open(path));
        cluster.wait(is_clean, || format!("{what}: {:?}", block_files(folder))).await;
        books_agree(&cluster, *node, &what).await;
    }
    for (disk, folder) in &disks {
        disk.empty();
        let start = Instant::now();
        let before = block_files(folder).len();
        while block_files(folder).len() <= before {
            assert!(start.elapsed() < PATIENCE, "{what}: {folder:?} is not used again");
            let path = format!("/again{}", files.len());
            files.push(cluster.write(&code, &path, dice.bytes(5000)).await);
        }
    }
    for node in small {
        books_agree(&cluster, node, &what).await;
    }
    truth::check(&cluster, &code, &files, &format!("{what}, with room again")).await;
    reading.stop().await;
}

/// Whether a file is that of a replica which somebody writes or wrote.
fn is_open(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str() == "rbw" || part.as_os_str() == "tmp")
}

/// What a DataNode says to use is what its block and meta files have, when all is quiet.
async fn books_agree(cluster: &Cluster, node: usize, what: &str) {
    let start = Instant::now();
    loop {
        let nodes = cluster.fs.datanodes(DataNodeFilter::Live).await.unwrap();
        let info = nodes.iter().find(|info| cluster.node_of(&info.addr.uuid) == node).unwrap();
        let used: u64 = cluster
            .folders(node)
            .iter()
            .flat_map(|folder| block_files(folder))
            .map(|(_, len)| len)
            .sum();
        if info.used == used {
            return;
        }
        assert!(start.elapsed() < PATIENCE, "{what}: {} is told, {used} used", info.used);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn disks_that_fill_up_in_the_middle_of_a_write_stop_no_writer() {
    if may_mount() {
        for (code, full) in [
            (Code::rs(3, 2), 1),
            (Code::rs(3, 2), 2),
            (Code::rs(6, 3), 3),
            (Code::Replicated(3), 1),
            (Code::Replicated(3), 2),
        ] {
            full_in_the_middle(code, full).await;
        }
    }
}
