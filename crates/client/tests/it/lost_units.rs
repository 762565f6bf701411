//! Files are read with DataNodes gone: every pair for RS-3-2, m and m + 1 for wider ones, one replica
//! of three.

use crate::cluster::*;
use cairn_client::{ClientError, CreateOptions};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Lengths that end inside a cell, at a cell, in a second stripe.
const LENS: [usize; 4] = [100, (1 << 20) + 5, 3 << 20, (5 << 20) + 4097];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn any_two_of_five_units_can_be_lost() {
    for first in 0..5 {
        for second in first + 1..5 {
            let mut cluster = Cluster::start(5).await;
            let fs = cluster.fs.clone();
            fs.enable_policy("RS-3-2-1024k").await.unwrap();
            for len in LENS {
                let data = bytes(len as u64, len);
                let options = striped("RS-3-2-1024k", 4 << 20);
                put(&fs, &format!("/{len}"), &data, &options).await.unwrap();
            }
            // The units of each file lie elsewhere; so each pair of DataNodes is a pair of units.
            cluster.kill_units(&format!("/{}", LENS[3]), &[first, second]).await;
            for len in LENS {
                let what = format!("{len} bytes without {first} and {second}");
                let data = bytes(len as u64, len);
                assert_same(&get(&fs, &format!("/{len}")).await.unwrap(), &data, &what);
                let reader = fs.open(&format!("/{len}")).await.unwrap();
                let mut buf = vec![0; 70_000];
                let at = len / 2;
                let got = reader.read_at(at as u64, &mut buf).await.unwrap();
                assert_same(&buf[..got], &data[at..len.min(at + buf.len())], &what);
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wide_groups_lose_m_units_and_no_more() {
    for (policy, width, lost) in
        [("RS-6-3-1024k", 9, vec![0u8, 4, 7]), ("RS-10-4-1024k", 14, vec![1, 2, 9, 13])]
    {
        let mut cluster = Cluster::start(width).await;
        let fs = cluster.fs.clone();
        fs.enable_policy(policy).await.unwrap();
        let data = bytes(5, (23 << 20) + 99);
        put(&fs, "/f", &data, &striped(policy, 4 << 20)).await.unwrap();
        cluster.kill_units("/f", &lost).await;
        assert_same(&get(&fs, "/f").await.unwrap(), &data, policy);
        cluster.kill_units("/f", &[5]).await;
        let error = get(&fs, "/f").await.unwrap_err();
        let ClientError::TooManyLost { lost: named, .. } = &error else { panic!("{error}") };
        let units: BTreeSet<u8> = lost.iter().copied().chain([5]).collect();
        assert_eq!(named.iter().map(|lost| lost.unit.0).collect::<BTreeSet<_>>(), units);
        let text = error.to_string();
        assert!(text.contains("5 (DataNode 127.0.0.1:"), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_unit_lost_while_the_file_is_read_is_decoded() {
    let mut cluster = Cluster::start(5).await;
    let fs = cluster.fs.clone();
    fs.enable_policy("RS-3-2-1024k").await.unwrap();
    let data = bytes(8, 60 << 20);
    put(&fs, "/f", &data, &striped("RS-3-2-1024k", 32 << 20)).await.unwrap();
    let mut reader = fs.open("/f").await.unwrap();
    let mut all = Vec::new();
    while let Some(chunk) = reader.next_chunk().await.unwrap() {
        all.extend_from_slice(&chunk);
        if all.len() == 3 << 20 {
            cluster.kill_units("/f", &[1]).await;
        }
        if all.len() == 30 << 20 {
            cluster.kill_units("/f", &[0]).await;
        }
    }
    assert_same(&all, &data, "read while units were lost");
}

/// Just `k` units are left, so whoever takes one more for bad asks the NameNode for others; and there is none.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_that_ends_within_a_stripe_takes_no_living_datanode_for_bad() {
    const CELL: usize = 1 << 20;
    let mut cluster = Cluster::start(5).await;
    let fs = cluster.fs.clone();
    fs.enable_policy("RS-3-2-1024k").await.unwrap();
    let data = bytes(8, 12 * CELL);
    put(&fs, "/f", &data, &striped("RS-3-2-1024k", 32 << 20)).await.unwrap();
    reported(&fs, "/f", |block| block.locations.len() == 5).await;
    let readers = [fs.open("/f").await.unwrap(), fs.open("/f").await.unwrap()];
    cluster.kill_units("/f", &[0, 3]).await;
    cluster.namenode.shutdown().await;
    // Long enough to be read in whole cells, to the first cell of the third stripe and to its second.
    for (reader, len) in readers.iter().zip([6 * CELL + 5, 7 * CELL + 5]) {
        let mut buf = vec![0; len];
        assert_eq!(reader.read_at(0, &mut buf).await.unwrap(), len);
        assert_same(&buf, &data[..len], "a part of a stripe");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replicas_stand_in_for_each_other() {
    let mut cluster = Cluster::start(3).await;
    let fs = cluster.fs.clone();
    let data = bytes(8, 9 << 20);
    let options = CreateOptions { block_size: Some(4 << 20), ..CreateOptions::default() };
    put(&fs, "/f", &data, &options).await.unwrap();
    for _ in 0..2 {
        let uuid = cluster.datanodes[0].uuid().to_string();
        cluster.kill(&uuid);
        assert_same(&get(&fs, "/f").await.unwrap(), &data, "a replica lost");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn corrupt_bytes_are_read_from_elsewhere_and_never_shown() {
    for policy in [Some("RS-3-2-1024k"), None] {
        let cluster = Cluster::start(5).await;
        let fs = &cluster.fs;
        fs.enable_policy("RS-3-2-1024k").await.unwrap();
        let data = bytes(8, 6 << 20);
        let options = CreateOptions {
            policy: policy.map(str::to_string),
            block_size: Some(16 << 20),
            ..CreateOptions::default()
        };
        put(fs, "/f", &data, &options).await.unwrap();
        cluster.corrupt_one();
        // Whatever unit or replica it is, no read may show it: from each place in turn.
        for start in [0usize, 1 << 20, 2 << 20, 5 << 20] {
            let reader = fs.open("/f").await.unwrap();
            let mut buf = vec![0; 1 << 20];
            assert_eq!(reader.read_at(start as u64, &mut buf).await.unwrap(), buf.len());
            assert_same(&buf, &data[start..start + buf.len()], &format!("{policy:?} {start}"));
        }
        assert_same(&get(fs, "/f").await.unwrap(), &data, &format!("{policy:?}"));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_silent_datanode_holds_a_read_up_once_and_not_in_every_group() {
    let hedge_after = Duration::from_secs(4);
    let change = |config: &mut cairn_client::ClientConfig| config.hedge_after = hedge_after;
    let mut cluster = Cluster::start_with(5, change).await;
    let fs = cluster.fs.clone();
    fs.enable_policy("RS-3-2-1024k").await.unwrap();
    let data = bytes(3, 30 << 20);
    put(&fs, "/f", &data, &striped("RS-3-2-1024k", 1 << 20)).await.unwrap();
    let first = cluster.datanodes[0].uuid().to_string();
    let _silent = cluster.hang(&first).await;
    let start = Instant::now();
    assert_same(&get(&fs, "/f").await.unwrap(), &data, "read around a silent DataNode");
    // Ten groups, of which six on average have a data unit there.
    assert!(start.elapsed() < 4 * hedge_after, "{:?}", start.elapsed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn positional_reads_do_not_wait_for_a_silent_datanode() {
    for policy in [None, Some("RS-3-2-1024k")] {
        let hedge_after = Duration::from_secs(30);
        let change = |config: &mut cairn_client::ClientConfig| config.hedge_after = hedge_after;
        let mut cluster = Cluster::start_with(5, change).await;
        let fs = cluster.fs.clone();
        fs.enable_policy("RS-3-2-1024k").await.unwrap();
        let data = bytes(5, 9 << 20);
        let options = CreateOptions {
            policy: policy.map(str::to_string),
            block_size: Some(1 << 20),
            ..CreateOptions::default()
        };
        put(&fs, "/f", &data, &options).await.unwrap();
        let reader = fs.open("/f").await.unwrap();
        let mut buf = vec![0; 64 << 10];
        let mut round = async |places: std::ops::Range<usize>| {
            for place in places {
                let at = place * 7919 * 1024 % (data.len() - buf.len());
                assert_eq!(reader.read_at(at as u64, &mut buf).await.unwrap(), buf.len());
                assert_same(&buf, &data[at..at + buf.len()], &format!("{policy:?} {at}"));
            }
        };
        // The bound is learnt from answers; then one DataNode hangs.
        round(0..40).await;
        let first = cluster.datanodes[0].uuid().to_string();
        let _silent = cluster.hang(&first).await;
        let start = Instant::now();
        round(40..240).await;
        assert!(start.elapsed() < hedge_after, "{policy:?}: {:?}", start.elapsed());
    }
}

/// With a DataNode of each stripe that says nothing, and no others asked beside them, both are asked all the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_positional_read_asks_for_all_its_stripes_at_once() {
    const PATIENCE: Duration = Duration::from_secs(60);
    let mut cluster = Cluster::start(5).await;
    cluster.fs.enable_policy("RS-3-2-1024k").await.unwrap();
    let options = striped("RS-3-2-1024k", 4 << 20);
    put(&cluster.fs, "/f", &bytes(9, 5 << 20), &options).await.unwrap();
    let found = first_block(&cluster.fs, "/f").await;
    let uuid = |unit: u8| {
        let mut places = found.locations.iter();
        places.find(|place| place.unit.0 == unit).unwrap().addr.uuid.clone()
    };
    let (last_of_first, first_of_second) = (uuid(2), uuid(0));
    let mute = [cluster.hang(&last_of_first).await, cluster.hang(&first_of_second).await];
    let mut config = cluster.fs.config().clone();
    (config.hedged_reads, config.socket_timeout) = (0, PATIENCE * 10);
    let fs = cairn_client::FileSystem::connect(config).await.unwrap();
    let reader = fs.open("/f").await.unwrap();
    let read = tokio::spawn(async move { reader.read_at((3 << 20) - 10, &mut [0; 20]).await });
    let mut held = Vec::new();
    for listener in mute {
        let asked = tokio::time::timeout(PATIENCE, listener.accept()).await;
        held.push(asked.expect("it is asked").unwrap());
    }
    read.abort();
}
