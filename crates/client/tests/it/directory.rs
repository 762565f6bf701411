//! The short files of a directory come many at a time, packed or not, and nothing else does.

use crate::cluster::*;
use crate::packing::{POLICY, cluster, packed};
use cairn_client::{CreateOptions, FileSystem, FileWriter};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const FILES: usize = 60;
/// Longer than what is read with others.
const LONG: usize = (1 << 20) + 1;

fn len(number: usize) -> usize {
    [1, 511, 512, 513, 10_000, 70_001][number % 6]
}

fn path(number: usize) -> String {
    format!("/d/f{number:03}")
}

fn options() -> CreateOptions {
    let policy = Some(POLICY.to_string());
    CreateOptions { create_parents: true, policy, ..CreateOptions::default() }
}

async fn write_all(fs: &FileSystem) {
    for number in 0..FILES {
        put(fs, &path(number), &bytes(number as u64, len(number)), &options()).await.unwrap();
    }
}

/// Reads the directory. The names of entries that came without bytes; the bytes of the others are right.
async fn read(fs: &FileSystem) -> Vec<String> {
    let (mut reader, mut without, mut seen) = (fs.read_directory("/d"), Vec::new(), Vec::new());
    while let Some((status, got)) = reader.next().await.unwrap() {
        match got {
            None => without.push(status.name().to_string()),
            Some(got) if status.name() == "empty" => assert!(got.is_empty()),
            Some(got) => {
                let number: usize = status.name()[1..].parse().unwrap();
                assert_same(&got, &bytes(number as u64, len(number)), &status.path);
            }
        }
        seen.push(status.path);
    }
    let listed = fs.list("/d").collect().await.unwrap();
    assert_eq!(seen, listed.into_iter().map(|status| status.path).collect::<Vec<_>>());
    without
}

/// Reads that DataNodes were asked for, and reads of blocks that clients were served, by all of them.
async fn asked(cluster: &Cluster) -> (u64, u64) {
    let mut sum = (0, 0);
    for node in &cluster.datanodes {
        let addr = node.http_addr().unwrap();
        let mut stream = tokio::net::TcpStream::connect(addr).await.unwrap();
        stream.write_all(b"GET /jmx HTTP/1.0\r\n\r\n").await.unwrap();
        let mut page = String::new();
        stream.read_to_string(&mut page).await.unwrap();
        let value = |name: &str| -> u64 {
            let (_, rest) = page.split_once(&format!("\"{name}\"")).unwrap();
            let digits = rest.trim_start_matches([' ', ':']);
            digits.split(|c: char| !c.is_ascii_digit()).next().unwrap().parse().unwrap()
        };
        sum = (sum.0 + value("ReadBlockOpNumOps"), sum.1 + value("BlocksRead"));
    }
    sum
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn short_files_come_with_few_reads_packed_or_not() {
    let mut cluster = cluster(7).await;
    let fs = cluster.fs.clone();
    write_all(&fs).await;
    put(&fs, "/d/empty", &[], &options()).await.unwrap();
    fs.mkdirs("/d/below", 0o755).await.unwrap();
    assert_eq!(read(&fs).await, ["below"], "as copies, or some of them packed");
    // Some may be left over, of which no group of containers is worth it.
    let began = Instant::now();
    while packed(&cluster).0 < FILES as u64 / 2 || packed(&cluster).1 > 0 {
        assert!(began.elapsed() < Duration::from_secs(90), "{:?}", packed(&cluster));
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let before = asked(&cluster).await;
    assert_eq!(read(&fs).await, ["below"], "packed");
    let after = asked(&cluster).await;
    let (reads, blocks) = (after.0 - before.0, after.1 - before.1);
    assert!(reads <= 2 * 7, "{reads} reads of {FILES} files");
    assert!(blocks >= FILES as u64, "{blocks} blocks of {FILES} files");
    let gone: Vec<String> =
        cluster.datanodes[..2].iter().map(|node| node.uuid().to_string()).collect();
    gone.iter().for_each(|uuid| cluster.kill(uuid));
    // What was looked for where it is no more is read by itself.
    for name in read(&fs).await.iter().filter(|name| *name != "below") {
        let number: usize = name[1..].parse().unwrap();
        let got = get(&fs, &path(number)).await.unwrap();
        assert_same(&got, &bytes(number as u64, len(number)), name);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_to_be_opened_comes_without_bytes() {
    let cluster = Cluster::start(3).await;
    let fs = &cluster.fs;
    let copies = CreateOptions { create_parents: true, ..CreateOptions::default() };
    for number in 0..FILES {
        put(fs, &path(number), &bytes(number as u64, len(number)), &copies).await.unwrap();
    }
    put(fs, "/d/long", &bytes(7, LONG), &copies).await.unwrap();
    let mut open: FileWriter = fs.create("/d/open", &copies).await.unwrap();
    open.write(&bytes(8, 1000)).await.unwrap();
    open.hflush().await.unwrap();
    assert_eq!(read(fs).await, ["long", "open"]);
    // A file that others may not read is no secret to be had so.
    fs.set_permission(&path(5), 0o600).await.unwrap();
    let mut config = fs.config().clone();
    config.user = "alice".to_string();
    let alice = FileSystem::connect(config).await.unwrap();
    assert_eq!(read(&alice).await, ["f005", "long", "open"]);
    let error = alice.open(&path(5)).await.err().unwrap();
    assert_eq!(error.kind(), std::io::ErrorKind::PermissionDenied);
    open.close().await.unwrap();
    let by_name: BTreeMap<String, usize> =
        [("f005".to_string(), len(5)), ("long".to_string(), LONG), ("open".to_string(), 1000)]
            .into();
    for (name, len) in by_name {
        assert_eq!(get(fs, &format!("/d/{name}")).await.unwrap().len(), len);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_with_bad_bytes_is_passed_by() {
    let cluster = Cluster::start(3).await;
    let fs = &cluster.fs;
    put(
        fs,
        &path(4),
        &bytes(4, len(4)),
        &CreateOptions { create_parents: true, ..CreateOptions::default() },
    )
    .await
    .unwrap();
    let block = first_block(fs, &path(4)).await;
    for (data, _) in cluster.block_files(block.block.id.0).iter().take(2) {
        flip(data, 4000);
    }
    for _ in 0..6 {
        // Its bytes are right, or it is to be opened.
        assert!(read(fs).await.iter().all(|name| name == "f004"));
        assert_same(&get(fs, &path(4)).await.unwrap(), &bytes(4, len(4)), "f004");
    }
}
