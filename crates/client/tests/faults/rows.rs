//! What users of erasure coding in HDFS have suffered from, by the row of the table in `docs/testing.md`.

use crate::cluster::{Cluster, PATIENCE};
use crate::code::{CELL, Code};
use crate::kills::combinations;
use crate::proxy;
use crate::readers::Dice;
use crate::truth::{self, Written};
use cairn_client::{ClientError, FileSystem};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// A cluster without a node to spare, so that nothing is rebuilt, and files in it.
async fn cluster_with(code: &Code, lens: &[usize]) -> (Cluster, Vec<Written>) {
    let cluster = Cluster::start(code.width(), 1).await;
    code.enable(&cluster.fs).await;
    let mut files = Vec::new();
    for len in lens {
        let data = Dice::new(*len as u64).bytes(*len);
        files.push(cluster.write(code, &format!("/{len}"), data).await);
    }
    (cluster, files)
}

async fn read_at(fs: &FileSystem, file: &Written, start: usize, len: usize) -> Vec<u8> {
    let reader = fs.open(&file.path).await.unwrap();
    let mut buf = vec![0; len];
    let count = reader.read_at(start as u64, &mut buf).await.unwrap();
    buf.truncate(count);
    buf
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn row_01_a_sync_of_an_erasure_coded_file_fails_loudly_and_costs_no_byte() {
    let code = Code::rs(3, 2);
    let (cluster, _) = cluster_with(&code, &[]).await;
    let data = Dice::new(1).bytes(code.block_len() + 77);
    let mut writer = cluster.fs.create("/f", &code.options()).await.unwrap();
    for piece in data.chunks(9000) {
        writer.write(piece).await.unwrap();
        for answer in [writer.hflush().await, writer.hsync().await] {
            let error = answer.unwrap_err().to_string();
            assert!(error.contains("not supported on erasure coded files"), "{error}");
        }
    }
    writer.close().await.unwrap();
    let files = [Written { path: "/f".to_string(), data }];
    truth::check(&cluster, &code, &files, "after refused syncs").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn row_07_positional_reads_at_the_same_time_share_a_reader_and_its_decoder() {
    for code in [Code::rs(6, 3), Code::rs(3, 2), Code::xor()] {
        let (mut cluster, files) = cluster_with(&code, &[code.block_len() * 3 + 5001]).await;
        let holders = cluster.holders(&files[0].path, 0).await;
        for unit in Dice::new(7).choose(code.tolerance(), code.width()) {
            cluster.kill(holders[unit]);
        }
        let fs = cluster.another_client().await;
        let reader = Arc::new(fs.open(&files[0].path).await.unwrap());
        let data = Arc::new(files[0].data.clone());
        let mut tasks = JoinSet::new();
        for seed in 0..16 {
            let (reader, data) = (reader.clone(), data.clone());
            tasks.spawn(async move {
                let mut dice = Dice::new(seed);
                for _ in 0..20 {
                    let start = dice.below(data.len());
                    let mut buf = vec![0; 1 + dice.below(data.len() - start)];
                    reader.read_at(start as u64, &mut buf).await.unwrap();
                    let end = start + buf.len();
                    assert!(buf == data[start..end], "{start}..{end}, seed {seed}");
                }
            });
        }
        while let Some(done) = tasks.join_next().await {
            done.unwrap();
        }
    }
}

/// Every pattern of lost units, where each lost one is a DataNode that lets clients connect and says
/// nothing, at every interesting length.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn row_08_row_09_positional_reads_after_timeouts_give_the_right_bytes() {
    let code = Code::rs(3, 2);
    let (cell, stripe) = (CELL as usize, 3 * CELL as usize);
    let lens = [1, cell - 1, cell, cell + 1, stripe - 1, stripe, stripe + 1, 2 * stripe + cell + 5];
    let (mut cluster, files) = cluster_with(&code, &lens).await;
    let patterns: Vec<Vec<usize>> = (1..=2).flat_map(|lost| combinations(5, lost)).collect();
    for pattern in patterns {
        let mut mute = Vec::new();
        for node in &pattern {
            mute.push(cluster.replace(*node).await);
        }
        let hasty = |config: &mut cairn_client::ClientConfig| {
            config.hedge_after = Duration::from_millis(40);
            config.socket_timeout = Duration::from_secs(120);
        };
        let fs = cluster.client_with(hasty).await;
        let start = Instant::now();
        for file in &files {
            let len = file.data.len();
            for (from, to) in [(0, len), (len / 2, len), (len - 1, len), (len / 3, len / 3 * 2 + 1)]
            {
                let to = to.min(len);
                let got = read_at(&fs, file, from, to - from).await;
                assert!(got == file.data[from..to], "{} {from}..{to} {pattern:?}", file.path);
            }
        }
        // Nobody may have waited for the timeout of a socket.
        assert!(start.elapsed() < Duration::from_secs(100), "{:?} {pattern:?}", start.elapsed());
        drop(mute);
        for node in pattern {
            cluster.restart(node).await;
        }
        cluster.wait_quiet().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn row_10_a_positional_read_is_sent_what_it_asks_for() {
    let code = Code::rs(3, 2);
    let (mut cluster, files) = cluster_with(&code, &[code.block_len() * 4]).await;
    // The reader knows the DataNodes where they are now; there it will find who counts.
    let fs = cluster.another_client().await;
    let reader = fs.open(&files[0].path).await.unwrap();
    let sent = Arc::new(AtomicU64::new(0));
    for node in cluster.running() {
        let listener = cluster.replace(node).await;
        cluster.restart(node).await;
        proxy::pass_on(listener, cluster.xfer_addr(node), sent.clone());
    }
    let (mut asked, mut reads) = (0, 0);
    let mut dice = Dice::new(10);
    for _ in 0..50 {
        let start = dice.below(files[0].data.len() - 1000);
        let mut buf = vec![0; 1 + dice.below(1000)];
        reader.read_at(start as u64, &mut buf).await.unwrap();
        assert!(buf == files[0].data[start..start + buf.len()], "{start}");
        asked += buf.len() as u64;
        reads += 1;
    }
    let sent = sent.load(Ordering::Relaxed);
    // Whole chunks of 512 bytes at both ends, their CRCs, and the answer, twice where a cell ends.
    assert!(sent >= asked, "{sent} bytes sent for {asked}");
    assert!(sent < asked + reads * 2000, "{sent} bytes sent for {asked} in {reads} reads");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn row_11_a_writer_whose_datanodes_hang_holds_no_more_than_its_buffer() {
    let code = Code::rs(3, 2);
    let (mut cluster, _) = cluster_with(&code, &[]).await;
    const BUFFER: usize = 256 << 10;
    let fs = cluster.client_with(|config| config.stream_buffer_len = BUFFER).await;
    let mut writer = fs.create("/f", &code.options()).await.unwrap();
    let mut hanging = Vec::new();
    for node in cluster.running() {
        hanging.push(cluster.replace(node).await);
    }
    let data = vec![7; 16 << 20];
    let write = tokio::time::timeout(Duration::from_millis(500), writer.write(&data)).await;
    assert!(write.is_err(), "nobody has taken a byte");
    assert!(writer.position() <= BUFFER as u64, "{} bytes held", writer.position());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn row_12_a_reader_that_hangs_keeps_no_connection_of_a_datanode() {
    let mut cluster = Cluster::start(3, 1).await;
    // More than the buffers of sockets take.
    let data = Dice::new(12).bytes(48 << 20);
    let options = cairn_client::CreateOptions {
        block_size: Some(64 << 20),
        ..cairn_client::CreateOptions::default()
    };
    for node in cluster.running() {
        cluster.kill(node);
        let impatient = Duration::from_millis(300);
        cluster.restart_with(node, |config| config.write_timeout = impatient).await;
    }
    cluster.wait_quiet().await;
    let mut writer = cluster.fs.create("/f", &options).await.unwrap();
    writer.write(&data).await.unwrap();
    writer.close().await.unwrap();
    let fs = cluster.another_client().await;
    let mut reader = fs.open("/f").await.unwrap();
    let mut got = reader.next_chunk().await.unwrap().unwrap().to_vec();
    // The reader hangs. Idle connections end after some seconds as well; this one is not idle.
    let serving = || cluster.stats().xceivers;
    cluster.wait(|| serving() > 0, || "nobody serves the reader".to_string()).await;
    let none = || format!("{} connections are served", serving());
    cluster.wait(|| serving() == 0, none).await;
    // It is read on, from wherever.
    while let Some(chunk) = reader.next_chunk().await.unwrap() {
        got.extend_from_slice(&chunk);
    }
    assert!(got == data, "{} bytes of {}", got.len(), data.len());
}

/// Asks for the recovery of a lease until the file is closed.
async fn recover(cluster: &Cluster, path: &str) {
    let fs = cluster.another_client().await;
    let start = Instant::now();
    while !fs.recover_lease(path).await.unwrap() {
        assert!(start.elapsed() < PATIENCE, "{path} is not closed");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// A writer writes, loses `lost` DataNodes and dies. What its file has after the recovery of the lease
/// is a beginning of what was written.
async fn abandoned(code: &Code, written: usize, lost: usize) -> usize {
    let cluster = &mut Cluster::start(code.width() + 2, 1).await;
    code.enable(&cluster.fs).await;
    let data = Dice::new(19).bytes(written);
    let fs = cluster.another_client().await;
    let mut writer = fs.create("/f", &code.options()).await.unwrap();
    writer.write(&data).await.unwrap();
    // What is in full packets is on its way; nobody acknowledges it to the program.
    tokio::time::sleep(Duration::from_millis(200)).await;
    if lost > 0 {
        let holders = cluster.holders("/f", u64::MAX >> 1).await;
        holders.iter().take(lost).for_each(|node| cluster.kill(*node));
    }
    drop(writer);
    drop(fs);
    // A recovery led by a DataNode that is dead already would be ordered again after thirty heartbeats.
    let live = || cluster.stats().live_nodes;
    cluster.wait(|| live() == cluster.running().len(), || format!("{} live", live())).await;
    recover(cluster, "/f").await;
    let fs = cluster.another_client().await;
    let status = fs.open("/f").await.unwrap();
    let len = status.len() as usize;
    let file = Written { path: "/f".to_string(), data: data[..len].to_vec() };
    truth::check(cluster, code, &[file], &format!("{written} bytes, {lost} lost")).await;
    len
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn row_19_leases_of_files_without_a_whole_stripe_are_recovered() {
    let code = Code::rs(3, 2);
    for written in [0, 100, CELL as usize, CELL as usize + 1, 2 * CELL as usize] {
        let len = abandoned(&code, written, 0).await;
        assert!(len <= written, "{len} of {written}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn row_19_a_recovered_group_keeps_its_whole_stripes_with_k_units_left() {
    let code = Code::rs(3, 2);
    let stripe = 3 * CELL as usize;
    for lost in 0..=2 {
        let len = abandoned(&code, stripe + CELL as usize + 10, lost).await;
        assert!(len >= stripe, "{len} bytes left with {lost} units lost");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn row_21_a_writer_with_a_margin_does_not_close_a_file_without_it() {
    let code = Code::rs(3, 2);
    let mut cluster = Cluster::start(code.width(), 1).await;
    code.enable(&cluster.fs).await;
    let fs = cluster.client_with(|config| config.failed_units_tolerated = Some(1)).await;
    let mut writer = fs.create("/f", &code.options()).await.unwrap();
    writer.write(&Dice::new(21).bytes(5000)).await.unwrap();
    let holders = cluster.holders("/f", u64::MAX >> 1).await;
    cluster.kill(holders[1]);
    cluster.kill(holders[4]);
    let more = writer.write(&Dice::new(22).bytes(code.block_len())).await;
    let error = match more {
        Err(error) => error,
        Ok(()) => writer.close().await.unwrap_err(),
    };
    assert!(matches!(error, ClientError::GroupLost { .. }), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn row_21_a_group_closed_with_k_units_is_of_the_highest_priority() {
    let code = Code::rs(3, 2);
    // Nobody can take the lost units: the group stays in its queue.
    let mut cluster = Cluster::start(code.width(), 1).await;
    code.enable(&cluster.fs).await;
    let mut writer = cluster.fs.create("/f", &code.options()).await.unwrap();
    writer.write(&Dice::new(23).bytes(code.block_len() / 2 + 1)).await.unwrap();
    let holders = cluster.holders("/f", u64::MAX >> 1).await;
    cluster.kill(holders[0]);
    cluster.kill(holders[3]);
    writer.close().await.unwrap();
    let urgent = || cluster.stats().groups.highest_priority == 1;
    cluster.wait(urgent, || format!("{:?}", cluster.stats().groups)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn row_24_small_files_have_no_empty_units_and_crowd_no_datanode() {
    let code = Code::rs(6, 3);
    let cluster = Cluster::start(code.width(), 1).await;
    code.enable(&cluster.fs).await;
    let mut files = Vec::new();
    for i in 0..45 {
        files.push(cluster.write(&code, &format!("/{i}"), Dice::new(i).bytes(100)).await);
    }
    truth::check(&cluster, &code, &files, "small files").await;
    let mut data_units: BTreeMap<usize, usize> = BTreeMap::new();
    for file in &files {
        let holders = cluster.holders(&file.path, 0).await;
        assert_eq!(holders.len(), 4, "one unit of data and three of parity");
        *data_units.entry(holders[0]).or_default() += 1;
    }
    // Five each on average.
    let most = data_units.values().max().unwrap();
    assert!(*most <= 15, "{data_units:?}");
}
