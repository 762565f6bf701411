//! A disk that answers nothing for a while: what is on other disks of its DataNode, the NameNode's view of it, and other
//! DataNodes do not wait for it.

use crate::cluster::{Cluster, PATIENCE};
use crate::code::{BLOCK, Code, is_full};
use crate::mounts::{BadDisk, Broken, may_mount};
use crate::readers::Dice;
use crate::truth::{self, Written};
use cairn_client::{DataNodeFilter, FileSystem, Result};
use cairn_datanode::Durability;
use std::path::Path;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use tokio::time::timeout;

/// Longer than a disk may keep silent before its DataNode asks it for no room any more.
const HANGS_FOR: Duration = Duration::from_secs(5);

async fn read(fs: FileSystem, file: Written) -> Result<()> {
    let mut reader = fs.open(&file.path).await?;
    let mut all = Vec::new();
    while let Some(chunk) = reader.next_chunk().await? {
        all.extend_from_slice(&chunk);
    }
    assert!(all == file.data, "{} reads back wrong", file.path);
    Ok(())
}

/// Whether a file's block is on a disk.
async fn is_on(cluster: &Cluster, file: &Written, folder: &Path) -> bool {
    let blocks = cluster.fs.block_locations(&file.path, 0, 1).await.unwrap().blocks;
    let name = format!("blk_{}", blocks[0].block.id.0);
    let start = Instant::now();
    loop {
        let is_it = |found: &std::path::PathBuf| found.file_name().unwrap() == name.as_str();
        let of_node = cluster.finalized_files(0);
        if let Some(path) = of_node.iter().find(|path| is_it(path)) {
            return path.starts_with(folder);
        }
        assert!(start.elapsed() < PATIENCE, "{name} is nowhere");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Files of one replica, `count` at least that have it elsewhere and as many that have it in `folder`, where `disk` is. The
/// disk with more room gets most, and what this machine's has is not known: the other one has all or none.
async fn files_on_both(
    cluster: &Cluster,
    dice: &mut Dice,
    (folder, disk): (&Path, &BadDisk),
    count: usize,
) -> (Vec<Written>, Vec<Written>) {
    let (mut elsewhere, mut there) = (Vec::new(), Vec::new());
    while elsewhere.len() < count || there.len() < count {
        disk.is_full(elsewhere.len() < count);
        let path = format!("/f{}", elsewhere.len() + there.len());
        let data = dice.bytes(BLOCK as usize);
        let file = cluster.write(&Code::Replicated(1), &path, data).await;
        let list = if is_on(cluster, &file, folder).await { &mut there } else { &mut elsewhere };
        list.push(file);
    }
    (elsewhere, there)
}

/// One DataNode with two disks, of which one hangs while readers, writers and the NameNode want something of it.
async fn one_hangs(durability: Durability) {
    let (code, mut dice) = (Code::Replicated(1), Dice::new(7));
    let mut cluster = Cluster::start_with_volumes(0, 1, 2).await;
    let folder = cluster.folders(0).remove(1);
    let disk = BadDisk::mount(&folder);
    let often = Duration::from_millis(200);
    let configure = |config: &mut cairn_datanode::DataNodeConfig| {
        (config.durability, config.block_report_interval) = (durability, often);
        // Every read and every open of files goes to the disk.
        config.kept_replicas = 0;
    };
    cluster.add_with(configure).await;
    let (mut good, mut hung) = files_on_both(&cluster, &mut dice, (&folder, &disk), 12).await;

    disk.breaks(Broken::Hangs);
    let begun = Instant::now();
    let mut waiting = JoinSet::new();
    let deleted = hung.pop().unwrap();
    assert!(cluster.fs.delete(&deleted.path, false).await.unwrap());
    for file in &hung {
        waiting.spawn(read(cluster.another_client().await, file.clone()));
    }
    // Some of them come to the disk that hangs.
    let written: Vec<Written> = (0..8)
        .map(|i| Written { path: format!("/w{i}"), data: dice.bytes(BLOCK as usize) })
        .collect();
    for file in &written {
        let (fs, file, options) = (cluster.fs.clone(), file.clone(), code.options());
        waiting.spawn(async move {
            let mut writer = fs.create(&file.path, &options).await?;
            writer.write(&file.data).await?;
            writer.close().await
        });
    }
    let report = || async {
        let nodes = cluster.fs.datanodes(DataNodeFilter::Live).await.unwrap();
        assert_eq!((nodes.len(), cluster.stats().dead_nodes), (1, 0), "heartbeats come");
        nodes[0].last_block_report_ms
    };
    let first = report().await;
    while begun.elapsed() < HANGS_FOR {
        for file in &good {
            let fs = cluster.another_client().await;
            timeout(PATIENCE, read(fs, file.clone())).await.expect("the other disk").unwrap();
        }
        report().await;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(report().await > first, "block reports come");
    // By now the DataNode knows better than to ask it for room.
    for i in 0..4 {
        let path = format!("/late{i}");
        let write = cluster.write(&code, &path, dice.bytes(BLOCK as usize));
        good.push(timeout(PATIENCE, write).await.expect("the other disk"));
    }

    disk.is_mended();
    while let Some(done) = waiting.join_next().await {
        done.unwrap().unwrap();
    }
    let files = [good, hung, written].concat();
    truth::check(&cluster, &code, &files, &format!("{durability:?}")).await;
    assert_eq!(cluster.stats().failed_volumes, 0, "a disk that is slow is not broken");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_disk_that_hangs_holds_up_nothing_else_of_its_datanode() {
    if may_mount() {
        for durability in [Durability::PageCache, Durability::Stable] {
            one_hangs(durability).await;
        }
    }
}

/// Many more want something of a disk that hangs than the process may have threads that wait.
async fn more_than_threads_want_it() {
    let (code, mut dice) = (Code::Replicated(1), Dice::new(9));
    let mut cluster = Cluster::start_with_volumes(0, 1, 2).await;
    let folder = cluster.folders(0).remove(1);
    let disk = BadDisk::mount(&folder);
    cluster.add_with(|config| config.kept_replicas = 0).await;
    let (mut good, hung) = files_on_both(&cluster, &mut dice, (&folder, &disk), 4).await;

    disk.breaks(Broken::Hangs);
    let mut waiting = JoinSet::new();
    for number in 0..3 * THREADS {
        waiting.spawn(read(cluster.fs.clone(), hung[number % hung.len()].clone()));
    }
    let begun = Instant::now();
    while begun.elapsed() < HANGS_FOR {
        for file in &good {
            let fs = cluster.another_client().await;
            timeout(PATIENCE, read(fs, file.clone())).await.expect("the other disk").unwrap();
        }
        let path = format!("/late{}", good.len());
        let write = cluster.write(&code, &path, dice.bytes(BLOCK as usize));
        good.push(timeout(PATIENCE, write).await.expect("the other disk"));
    }
    assert_eq!(cluster.stats().dead_nodes, 0, "heartbeats come");
    disk.is_mended();
    while let Some(done) = waiting.join_next().await {
        done.unwrap().unwrap();
    }
}

/// Threads of that test's process that may wait.
const THREADS: usize = 120;

#[test]
fn a_disk_that_hangs_leaves_threads_to_others() {
    if !may_mount() {
        return;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(4)
        .max_blocking_threads(THREADS)
        .enable_all()
        .build()
        .unwrap();
    let (done, is_done) = std::sync::mpsc::channel();
    runtime.spawn(async move {
        more_than_threads_want_it().await;
        done.send(()).unwrap();
    });
    // A runtime without threads has no timers either.
    let in_time = is_done.recv_timeout(2 * PATIENCE);
    runtime.shutdown_background();
    in_time.expect("others go on");
}

/// What one of many clients does with a file of its own.
async fn one_file(fs: FileSystem, path: String) -> Result<()> {
    // Its last chunk is short, and is read before the append.
    let mut file = Written { path, data: vec![7; 700] };
    let mut writer = fs.create(&file.path, &Code::Replicated(1).options()).await?;
    writer.write(&file.data).await?;
    writer.close().await?;
    read(fs.clone(), file.clone()).await?;
    let mut writer = fs.append(&file.path).await?;
    writer.write(&[8; 700]).await?;
    writer.close().await?;
    file.data.extend([8; 700]);
    read(fs.clone(), file.clone()).await?;
    fs.delete(&file.path, false).await?;
    Ok(())
}

/// Whatever the disks are at when they hang, somebody is left who does the work that has nothing to do with them.
#[test]
fn disks_that_hang_at_any_step_leave_a_worker_to_others() {
    const DISKS: usize = 3;
    if !may_mount() {
        return;
    }
    // Of two workers one may wait for a disk.
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let mut cluster = runtime.block_on(Cluster::start_with_volumes(0, 1, DISKS));
    let disks: Vec<BadDisk> = cluster.folders(0).iter().map(|at| BadDisk::mount(at)).collect();
    runtime.block_on(cluster.add_with(|config| {
        config.kept_replicas = 0;
        config.scan_period = Duration::from_millis(1);
    }));
    let last = if is_full() { 80 } else { 20 };
    for count in 0..last {
        disks.iter().for_each(|disk| disk.hangs_after(count));
        let mut clients = JoinSet::new();
        for number in 0..2 * DISKS {
            let work = one_file(cluster.fs.clone(), format!("/{count}-{number}"));
            clients.spawn_on(work, runtime.handle());
        }
        // No task: it is to be told of those.
        let begun = Instant::now();
        while !disks.iter().all(BadDisk::is_waited_for) {
            assert!(begun.elapsed() < PATIENCE, "{count}: nobody wants anything of them");
            std::thread::sleep(Duration::from_millis(1));
        }
        let (done, is_done) = std::sync::mpsc::channel();
        for _ in 0..8 {
            let done = done.clone();
            runtime.spawn(async move { done.send(()).unwrap() });
            let told = is_done.recv_timeout(PATIENCE / 4);
            if told.is_err() {
                disks.iter().for_each(BadDisk::is_mended);
                panic!("after {count} operations nobody is left");
            }
        }
        disks.iter().for_each(BadDisk::is_mended);
        while let Some(done) = runtime.block_on(clients.join_next()) {
            // The only DataNode has told of no room while none of its disks answered: a write may have failed.
            let _ = done.unwrap();
        }
    }
}

/// `dfs.datanode.disk.check.timeout`: a disk that never answers again is a failed one, and all it had is copied.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_disk_that_hangs_for_too_long_has_failed() {
    if !may_mount() {
        return;
    }
    let (code, mut dice) = (Code::Replicated(2), Dice::new(8));
    let mut cluster = Cluster::start_with_volumes(0, 1, 2).await;
    let folder = cluster.folders(0).remove(1);
    let disk = BadDisk::mount(&folder);
    let configure = |config: &mut cairn_datanode::DataNodeConfig| {
        config.disk_check_timeout = Duration::from_secs(1);
    };
    cluster.add_with(configure).await;
    cluster.add_with(configure).await;
    let (mut files, mut on_it) = (Vec::new(), 0);
    while files.len() < 12 || on_it < 3 {
        let path = format!("/f{}", files.len());
        let file = cluster.write(&code, &path, dice.bytes(BLOCK as usize)).await;
        on_it += usize::from(is_on(&cluster, &file, &folder).await);
        files.push(file);
    }

    disk.breaks(Broken::Hangs);
    let failed = || cluster.stats().failed_volumes;
    cluster.wait(|| failed() == 1, || format!("{} have failed", failed())).await;
    cluster.wait_quiet().await;
    // What is left has all of it.
    cluster.kill(1);
    for file in &files {
        timeout(PATIENCE, read(cluster.another_client().await, file.clone()))
            .await
            .unwrap()
            .unwrap();
    }
}
