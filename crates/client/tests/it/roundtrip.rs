//! What is written comes back: every policy, lengths around every boundary.

use crate::cluster::*;
use cairn_client::{ChecksumMode, ClientConfig, CreateOptions, DataNodeFilter};
use cairn_datanode::DataNodeConfig;
use cairn_stripe::Policy;
use std::time::{Duration, Instant};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_policy_at_every_boundary() {
    let cluster = Cluster::start(14).await;
    let fs = &cluster.fs;
    for policy in Policy::built_in() {
        fs.enable_policy(&policy.name).await.unwrap();
        let cell = policy.cell_len as usize;
        let stripe = policy.stripe_len() as usize;
        let block_size = 2 * u64::from(policy.cell_len);
        let group = 2 * stripe;
        for len in [0, 1, cell - 1, cell, cell + 1, stripe - 1, stripe, stripe + 1, group + 1] {
            let path = format!("/{}/{len}", policy.name);
            let data = bytes(len as u64 + 1, len);
            put(fs, &path, &data, &striped(&policy.name, block_size)).await.unwrap();
            assert_eq!(fs.require(&path).await.unwrap().len, len as u64, "{path}");
            assert_same(&get(fs, &path).await.unwrap(), &data, &path);
            ranges(&cluster, &path, &data).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn small_files_one_after_the_other_take_connections_that_are_there() {
    let (often, long) = (Duration::from_millis(50), Duration::from_secs(60));
    let tune = |_: &mut _, node: &mut DataNodeConfig| {
        (node.heartbeat_interval, node.keepalive) = (often, long);
    };
    let keep = |client: &mut ClientConfig| client.idle_connection_expiry = long;
    let cluster = Cluster::start_tuned(5, tune, keep).await;
    let fs = &cluster.fs;
    fs.enable_policy("RS-3-2-1024k").await.unwrap();
    let plain = CreateOptions { create_parents: true, ..CreateOptions::default() };
    for i in 0..10 {
        let (data, striped) = (bytes(i, 10_000), striped("RS-3-2-1024k", 2 << 20));
        put(fs, &format!("/ec/{i}"), &data, &striped).await.unwrap();
        put(fs, &format!("/3x/{i}"), &data, &plain).await.unwrap();
    }
    // 40 replicas and units were sent. A connection is back a moment after its file is closed, so that there may be
    // some more than DataNodes; those between DataNodes are closed.
    let start = Instant::now();
    loop {
        let nodes = fs.datanodes(DataNodeFilter::Live).await.unwrap();
        let open: Vec<u32> = nodes.iter().map(|node| node.xceiver_count).collect();
        if (3..20).contains(&open.iter().sum::<u32>()) {
            return;
        }
        assert!(start.elapsed() < Duration::from_secs(20), "connections that are open: {open:?}");
        tokio::time::sleep(often).await;
    }
}

/// Positional reads at the ends, across the middle, and past the end.
async fn ranges(cluster: &Cluster, path: &str, data: &[u8]) {
    let reader = cluster.fs.open(path).await.unwrap();
    let len = data.len();
    for (offset, count) in [(0, 7), (len / 2, 70_000), (len.saturating_sub(3), 9), (len + 5, 4)] {
        let mut buf = vec![0; count];
        let got = reader.read_at(offset as u64, &mut buf).await.unwrap();
        let want = &data[offset.min(len)..(offset + count).min(len)];
        assert_same(&buf[..got], want, &format!("{path} at {offset}"));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replicas_at_every_boundary() {
    let cluster = Cluster::start(3).await;
    let fs = &cluster.fs;
    let block = 1 << 20;
    for len in [0, 1, 511, 512, 513, 65_536, block - 1, block, block + 1, 3 * block + 77] {
        let path = format!("/3x/{len}");
        let data = bytes(len as u64, len);
        let options = CreateOptions {
            create_parents: true,
            block_size: Some(block as u64),
            ..CreateOptions::default()
        };
        put(fs, &path, &data, &options).await.unwrap();
        assert_same(&get(fs, &path).await.unwrap(), &data, &path);
        ranges(&cluster, &path, &data).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn seeking_and_small_reads_give_the_same_bytes() {
    let cluster = Cluster::start(5).await;
    let fs = &cluster.fs;
    fs.enable_policy("RS-3-2-1024k").await.unwrap();
    let data = bytes(3, 7 << 20);
    put(fs, "/f", &data, &striped("RS-3-2-1024k", 2 << 20)).await.unwrap();
    let mut reader = fs.open("/f").await.unwrap();
    for position in [0usize, 10, 3 << 20, (3 << 20) + 5, 1 << 20, (6 << 20) + 99] {
        reader.seek(position as u64);
        let mut buf = vec![0; 300_000];
        let mut got = 0;
        while got < buf.len() {
            match reader.read(&mut buf[got..]).await.unwrap() {
                0 => break,
                count => got += count,
            }
        }
        assert_same(&buf[..got], &data[position..position + got], &position.to_string());
        assert_eq!(got, buf.len().min(data.len() - position));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_composite_crc_does_not_depend_on_the_layout() {
    let cluster = Cluster::start(5).await;
    let fs = &cluster.fs;
    fs.enable_policy("RS-3-2-1024k").await.unwrap();
    let data = bytes(9, (7 << 20) + 123);
    put(fs, "/striped", &data, &striped("RS-3-2-1024k", 2 << 20)).await.unwrap();
    let options = CreateOptions { block_size: Some(4 << 20), ..CreateOptions::default() };
    put(fs, "/replicated", &data, &options).await.unwrap();
    let mode = ChecksumMode::CompositeCrc;
    let striped = fs.checksum("/striped", mode).await.unwrap().unwrap();
    let replicated = fs.checksum("/replicated", mode).await.unwrap().unwrap();
    assert_eq!(striped, replicated);
    assert_eq!(striped.bytes, cairn_codec::crc::crc32c(0, &data).to_be_bytes());
    // Hadoop counts the chunks of one unit: 2 MiB of 512 bytes.
    let md5 = fs.checksum("/striped", ChecksumMode::Md5Md5Crc).await.unwrap().unwrap();
    assert_eq!(md5.algorithm, "MD5-of-4096MD5-of-512CRC32C");
}

/// The bytes of the files below, of which a Hadoop 3.5.0 cluster told the checksums.
fn golden_bytes(len: u64) -> Vec<u8> {
    let byte = |i: u64| (i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8 ^ (i >> 13) as u8;
    (0..len).map(byte).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn checksums_are_those_of_a_hadoop_cluster() {
    let cluster = Cluster::start(9).await;
    let fs = &cluster.fs;
    for (policy, len, algorithm, hex) in GOLDEN_CHECKSUMS {
        fs.enable_policy(policy).await.unwrap();
        put(fs, "/f", &golden_bytes(*len), &striped(policy, 2 << 20)).await.unwrap();
        let sum = fs.checksum("/f", ChecksumMode::Md5Md5Crc).await.unwrap().unwrap();
        let got = (sum.algorithm.as_str(), sum.to_hex());
        assert_eq!(got, (*algorithm, hex.to_string()), "{policy} {len}");
    }
}

/// Policy, length, algorithm and value, with blocks of 2 MiB.
const GOLDEN_CHECKSUMS: &[(&str, u64, &str, &str)] = &[
    (
        "RS-3-2-1024k",
        0,
        "MD5-of-0MD5-of-0CRC32",
        "00000000000000000000000070bc8f4b72a86921468bf8e8441dce51",
    ),
    (
        "RS-3-2-1024k",
        511,
        "MD5-of-0MD5-of-512CRC32C",
        "000002000000000000000000a0bab36d86bd07c2b693e5484e75f034",
    ),
    (
        "RS-3-2-1024k",
        1048577,
        "MD5-of-0MD5-of-512CRC32C",
        "000002000000000000000000f62cc5225e70e1b881214c9edf6c112f",
    ),
    (
        "RS-3-2-1024k",
        3145729,
        "MD5-of-0MD5-of-512CRC32C",
        "000002000000000000000000916aae764cfa9b55a0d64268bbc744b7",
    ),
    (
        "RS-3-2-1024k",
        6291457,
        "MD5-of-4096MD5-of-512CRC32C",
        "0000020000000000000010007510f20c9e36363f45f1bd12e5f648aa",
    ),
    (
        "RS-3-2-1024k",
        16777293,
        "MD5-of-4096MD5-of-512CRC32C",
        "0000020000000000000010008d0483bf840f086052574c3799704d7f",
    ),
    (
        "RS-6-3-1024k",
        0,
        "MD5-of-0MD5-of-0CRC32",
        "00000000000000000000000070bc8f4b72a86921468bf8e8441dce51",
    ),
    (
        "RS-6-3-1024k",
        511,
        "MD5-of-0MD5-of-512CRC32C",
        "000002000000000000000000a0bab36d86bd07c2b693e5484e75f034",
    ),
    (
        "RS-6-3-1024k",
        1048577,
        "MD5-of-0MD5-of-512CRC32C",
        "000002000000000000000000f62cc5225e70e1b881214c9edf6c112f",
    ),
    (
        "RS-6-3-1024k",
        6291456,
        "MD5-of-0MD5-of-512CRC32C",
        "000002000000000000000000cd8c1725f4c481657ecf4e462ecfb7e8",
    ),
    (
        "RS-6-3-1024k",
        6291457,
        "MD5-of-0MD5-of-512CRC32C",
        "000002000000000000000000095f97349873bbd93a83746ef7023040",
    ),
    (
        "RS-6-3-1024k",
        12582913,
        "MD5-of-4096MD5-of-512CRC32C",
        "000002000000000000001000907a4c5e907f85a60c764d9cdb6f57d0",
    ),
    (
        "XOR-2-1-1024k",
        0,
        "MD5-of-0MD5-of-0CRC32",
        "00000000000000000000000070bc8f4b72a86921468bf8e8441dce51",
    ),
    (
        "XOR-2-1-1024k",
        511,
        "MD5-of-0MD5-of-512CRC32C",
        "000002000000000000000000a0bab36d86bd07c2b693e5484e75f034",
    ),
    (
        "XOR-2-1-1024k",
        1048577,
        "MD5-of-0MD5-of-512CRC32C",
        "000002000000000000000000f62cc5225e70e1b881214c9edf6c112f",
    ),
];

/// The answer to a read is guessed before it comes: guesses are wrong here, and bytes are right.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn positional_reads_take_any_checksums_and_packets() {
    use cairn_client::ChecksumKind::{Crc32, Crc32c, Null};
    let small_packets = |_: &mut _, datanode: &mut cairn_datanode::DataNodeConfig| {
        datanode.send_packet_len = 16 << 10;
    };
    let cluster = Cluster::start_tuned(5, small_packets, |_| {}).await;
    cluster.fs.enable_policy("RS-3-2-1024k").await.unwrap();
    for (kind, chunk) in [(Crc32c, 512), (Crc32c, 4096), (Crc32, 512), (Crc32, 65_536), (Null, 512)]
    {
        let mut config = cluster.fs.config().clone();
        (config.checksum, config.bytes_per_checksum) = (kind, chunk);
        // Nobody else is asked when a read waits for what does not come.
        config.hedge_after = std::time::Duration::from_secs(20);
        let fs = cairn_client::FileSystem::connect(config).await.unwrap();
        let data = bytes(u64::from(chunk), (3 << 20) + 4097);
        for policy in [None, Some("RS-3-2-1024k")] {
            let options = CreateOptions {
                policy: policy.map(str::to_string),
                overwrite: true,
                block_size: Some(2 << 20),
                ..CreateOptions::default()
            };
            put(&fs, "/f", &data, &options).await.unwrap();
            let reader = fs.open("/f").await.unwrap();
            for (at, len) in [
                (0, 4096),
                (8192, 65_536),
                (3, 1),
                (511, 2),
                (100, 30_000),
                (1_048_570, 12),
                (3 << 20, 4097),
            ] {
                let mut buf = vec![0; len];
                let start = std::time::Instant::now();
                assert_eq!(reader.read_at(at as u64, &mut buf).await.unwrap(), len);
                let what = format!("{kind:?} {chunk} {policy:?} {at}+{len}");
                assert_same(&buf, &data[at..at + len], &what);
                assert!(start.elapsed() < std::time::Duration::from_secs(15), "{what}");
            }
        }
    }
}
