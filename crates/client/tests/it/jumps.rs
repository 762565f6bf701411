//! What DataNodes send to a reader that jumps: little more than is wanted, and a file in order as ever.

use crate::cluster::*;
use cairn_client::{CreateOptions, FileReader, RangeOptions};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const LEN: usize = 30 << 20;
const MIB: usize = 1 << 20;

/// Bytes that DataNodes have sent to clients, and reads that they served, once neither grows any more.
async fn sent(cluster: &Cluster) -> (u64, u64) {
    let mut before = (u64::MAX, 0);
    loop {
        let mut all = (0, 0);
        for node in &cluster.datanodes {
            let page = page(node.http_addr().unwrap()).await;
            let value = |name: &str| -> u64 {
                let name = format!("cairn_datanode_{name}{{by=\"client\"}} ");
                page.lines().find_map(|line| line.strip_prefix(&name)).unwrap().parse().unwrap()
            };
            all.0 += value("read_bytes_total");
            all.1 += value("read_blocks_total");
        }
        if all == before {
            return all;
        }
        before = all;
        tokio::time::sleep(Duration::from_millis(150)).await;
    }
}

async fn page(addr: std::net::SocketAddr) -> String {
    let mut stream = tokio::net::TcpStream::connect(addr).await.unwrap();
    let request = "GET /prom HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    text
}

async fn read_full(reader: &mut FileReader, len: usize) -> Vec<u8> {
    let (mut buf, mut got) = (vec![0; len], 0);
    while got < len {
        match reader.read(&mut buf[got..]).await.unwrap() {
            0 => break,
            count => got += count,
        }
    }
    buf.truncate(got);
    buf
}

/// Reads pieces of `len` bytes at places; returns what DataNodes sent for that, and how many reads they served.
async fn read_at_places(
    cluster: &Cluster,
    data: &[u8],
    places: impl Iterator<Item = usize>,
    len: usize,
) -> (u64, u64) {
    let before = sent(cluster).await;
    let mut reader = cluster.fs.open("/f").await.unwrap();
    for at in places {
        reader.seek(at as u64);
        let got = read_full(&mut reader, len).await;
        assert_same(&got, &data[at..data.len().min(at + len)], &format!("{len} at {at}"));
    }
    drop(reader);
    let after = sent(cluster).await;
    (after.0 - before.0, after.1 - before.1)
}

/// Places all over the file, none of them near the one before.
fn scattered(count: usize) -> impl Iterator<Item = usize> {
    (1..=count).map(|i| i * 7_654_321 % (LEN - 100_000))
}

/// A cluster of five DataNodes with a file, of which some may be gone.
async fn with_file(options: CreateOptions, gone: &[u8]) -> (Cluster, Vec<u8>) {
    let pages = |_: &mut _, config: &mut cairn_datanode::DataNodeConfig| {
        config.http_addr = Some(any_port());
    };
    // How busy this machine is must not show in what is asked for.
    let patient = |config: &mut cairn_client::ClientConfig| config.hedged_reads = 0;
    let mut cluster = Cluster::start_tuned(5, pages, patient).await;
    cluster.fs.enable_policy("RS-3-2-1024k").await.unwrap();
    let data = bytes(8, LEN);
    put(&cluster.fs, "/f", &data, &options).await.unwrap();
    if !gone.is_empty() {
        cluster.kill_units("/f", gone).await;
    }
    (cluster, data)
}

fn in_one_group() -> CreateOptions {
    striped("RS-3-2-1024k", 32 << 20)
}

fn in_one_block() -> CreateOptions {
    CreateOptions {
        replication: Some(2),
        should_replicate: true,
        block_size: Some(64 << 20),
        ..CreateOptions::default()
    }
}

/// `sources` is how many bytes are read for one that is wanted, at most.
async fn a_jump_costs_little(cluster: &Cluster, data: &[u8], sources: u64) {
    let count = 40;
    let (small, _) = read_at_places(cluster, data, scattered(count), 4096).await;
    assert!(small <= sources * count as u64 * (17 << 10), "{small} bytes sent at random");
    let strided = (1..20).map(|i| i * (MIB + (64 << 10)));
    let wanted = 19 * (64 << 10);
    let (strided, _) = read_at_places(cluster, data, strided, 64 << 10).await;
    assert!(strided <= sources * (wanted + 19 * 1024), "{strided} bytes sent for {wanted}");
    // What was asked for in vain when a run ends is bounded by its length.
    let (runs, _) = read_at_places(cluster, data, scattered(8), 99_000).await;
    assert!(runs <= sources * 8 * (100 << 10), "{runs} bytes sent for runs");
    let small_steps = (0..8).flat_map(|run| {
        let begin = (run + 1) * 7_654_321 % (LEN - 200_000);
        (0..20).map(move |step| begin + step * 5000)
    });
    let (runs, _) = read_at_places(cluster, data, small_steps, 5000).await;
    assert!(runs <= sources * 8 * 400_000, "{runs} bytes sent for runs of 100,000");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_that_jumps_is_sent_what_it_wants() {
    for (options, gone) in [(in_one_group(), &[][..]), (in_one_block(), &[])] {
        let (cluster, data) = with_file(options, gone).await;
        a_jump_costs_little(&cluster, &data, 1).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_that_jumps_in_a_group_with_lost_units_is_sent_what_decoding_needs() {
    let (cluster, data) = with_file(in_one_group(), &[0, 2]).await;
    a_jump_costs_little(&cluster, &data, 3).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_in_order_is_asked_for_once() {
    for (options, asked) in [(in_one_group(), 3), (in_one_block(), 1)] {
        let (cluster, data) = with_file(options, &[]).await;
        let in_order = || (0..LEN).step_by(100_000);
        let (bytes, reads) = read_at_places(&cluster, &data, in_order(), 100_000).await;
        assert_eq!((bytes, reads), (LEN as u64, asked));
        // From some place on: asked for in some pieces first, of which each cell may come twice.
        let from_here = || in_order().filter(|at| *at > 5_000_000);
        let (bytes, reads) = read_at_places(&cluster, &data, from_here(), 100_000).await;
        let left = (LEN - 5_000_000) as u64;
        assert!(bytes >= left - 100_000 && bytes <= left + (4 << 20), "{bytes} of {left}");
        assert!(reads <= 8 * asked, "{reads} reads");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_short_way_on_is_read_over() {
    for (options, asked) in [(in_one_group(), 3), (in_one_block(), 1)] {
        let (cluster, data) = with_file(options, &[]).await;
        let steps = || (0..LEN - MIB).step_by(MIB + 700_000);
        let (bytes, reads) = read_at_places(&cluster, &data, steps(), MIB).await;
        assert!(bytes <= LEN as u64 && reads == asked, "{bytes} bytes in {reads} reads");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bytes_are_the_same_wherever_a_reader_jumps() {
    for (options, gone) in
        [(in_one_group(), &[][..]), (in_one_group(), &[1, 2]), (in_one_block(), &[])]
    {
        let (cluster, data) = with_file(options, gone).await;
        let mut reader = cluster.fs.open("/f").await.unwrap();
        let mut at = 0;
        for dice in bytes(77, 400).chunks_exact(4) {
            let far = usize::from(dice[1]) << (dice[2] % 18);
            at = match dice[0] % 4 {
                0 => far * 1000 % LEN,
                1 => (at + far) % (LEN + 1),
                2 => at.saturating_sub(far),
                _ => at,
            };
            reader.seek(at as u64);
            let len = 1 + (usize::from(dice[3]) << (dice[0] % 16));
            let got = match dice[2] % 3 {
                0 => reader.next_chunk_up_to(len).await.unwrap().unwrap_or_default().to_vec(),
                _ => read_full(&mut reader, len).await,
            };
            assert!(!got.is_empty() || at == LEN);
            assert_same(&got, &data[at..at + got.len()], &format!("{at}"));
            at += got.len();
            assert_eq!(reader.position(), at as u64);
        }
        reader.seek(LEN as u64 + 1);
        assert_eq!(reader.read(&mut [0]).await.unwrap(), 0);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ranges_are_read_in_any_order_and_near_ones_as_one() {
    for (options, gone) in
        [(in_one_group(), &[][..]), (in_one_group(), &[0]), (in_one_block(), &[])]
    {
        let (cluster, data) = with_file(options, gone).await;
        put(&cluster.fs, "/small", &data[..10], &CreateOptions::default()).await.unwrap();
        let reader = cluster.fs.open("/f").await.unwrap();
        let small = cluster.fs.open("/small").await.unwrap();
        let len = LEN as u64;
        // Out of order, overlapping, empty, reversed, at the end and past it, and longer than what is joined.
        let mut ranges = vec![
            (3 << 20)..(3 << 20) + 1000,
            900..2000,
            0..1000,
            5..5,
            std::ops::Range { start: 7, end: 3 },
            len - 10..len + 10,
            len + 1..len + 2,
            (1 << 20) - 1..(4 << 20) + 1,
            len..u64::MAX,
            (3 << 20) + 1000..(3 << 20) + 5000,
        ];
        ranges.extend((0..50).map(|i| 20_000_000 + i * 5000..20_000_000 + i * 5000 + 100));
        let want = |range: &std::ops::Range<u64>, data: &[u8]| {
            let at = |place: u64| data.len().min(usize::try_from(place).unwrap());
            data[at(range.start)..at(range.end).max(at(range.start))].to_vec()
        };
        for options in [
            RangeOptions::default(),
            RangeOptions { max_gap: 0, at_once: 0 },
            RangeOptions { max_gap: u64::MAX, at_once: 3 },
        ] {
            let found = reader.read_ranges(&ranges, &options).await;
            for (range, found) in ranges.iter().zip(found) {
                assert_same(&found.unwrap(), &want(range, &data), &format!("{range:?}"));
            }
            let both = [(&reader, 5..25), (&small, 5..25), (&reader, 0..7), (&small, 0..7)];
            let found = cairn_client::read_ranges(&both, &options).await;
            let lens: Vec<usize> = found.into_iter().map(|found| found.unwrap().len()).collect();
            assert_eq!(lens, [20, 5, 7, 7]);
        }
        let near: Vec<_> = (0..50).map(|i| i * 5000..i * 5000 + 100).collect();
        let before = sent(&cluster).await;
        reader.read_ranges(&near, &RangeOptions::default()).await;
        let after = sent(&cluster).await;
        let most = if gone.is_empty() { 1 } else { 3 };
        assert!(after.1 - before.1 <= most, "{} reads", after.1 - before.1);
        reader.read_ranges(&near, &RangeOptions { max_gap: 0, at_once: 32 }).await;
        let apart = sent(&cluster).await;
        assert!(apart.0 - after.0 <= most * 50 * 1024, "{} bytes", apart.0 - after.0);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_range_that_cannot_be_read_fails_alone() {
    let (cluster, data) = with_file(in_one_group(), &[]).await;
    // Cells of the first unit are gone with more others than can be decoded for.
    let reader = cluster.fs.open("/f").await.unwrap();
    let block = first_block(&cluster.fs, "/f").await;
    let mut cluster = cluster;
    for location in block.locations.iter().filter(|location| [0, 3, 4].contains(&location.unit.0)) {
        cluster.kill(&location.addr.uuid);
    }
    let cell = MIB as u64;
    let ranges = [cell - 1000..cell, cell..cell + 1000];
    let mut found = reader.read_ranges(&ranges, &RangeOptions::default()).await.into_iter();
    assert!(found.next().unwrap().is_err());
    let good = found.next().unwrap().unwrap();
    assert_same(&good, &data[MIB..MIB + 1000], "the unit that is there");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_positional_read_is_sent_what_it_asks_for() {
    for gone in [&[][..], &[0, 2]] {
        let (cluster, data) = with_file(in_one_group(), gone).await;
        let reader = cluster.fs.open("/f").await.unwrap();
        let before = sent(&cluster).await;
        let (from, mut buf) = (2 * MIB + 77, vec![0; 26 * MIB]);
        assert_eq!(reader.read_at(from as u64, &mut buf).await.unwrap(), buf.len());
        assert_same(&buf, &data[from..from + buf.len()], "a long read");
        let after = sent(&cluster).await;
        // With a unit lost, whole cells are read where only a part of them is wanted, at both ends.
        let most = (buf.len() + 1024 + gone.len() * 4 * MIB) as u64;
        assert!(after.0 - before.0 <= most, "{} bytes", after.0 - before.0);
    }
}
