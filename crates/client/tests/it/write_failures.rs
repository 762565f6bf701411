//! Writes go on while DataNodes fail under them.

use crate::cluster::*;
use cairn_client::{ClientError, CreateOptions, ReplaceDataNode};
use std::time::Duration;

/// Writes `len` bytes and stops the DataNodes of `units` when so many bytes are written.
async fn write_losing(
    cluster: &mut Cluster,
    policy: &str,
    data: &[u8],
    losses: &[(usize, u8)],
) -> cairn_client::Result<()> {
    let fs = cluster.fs.clone();
    let mut writer = fs.create("/f", &striped(policy, 8 << 20)).await?;
    let mut units: Vec<(u8, String)> = Vec::new();
    for (i, piece) in data.chunks(1 << 20).enumerate() {
        for (_, unit) in losses.iter().filter(|(at, _)| *at == i) {
            if units.is_empty() {
                let blocks = fs.block_locations("/f", 0, u64::MAX).await?;
                let last = blocks.last_block.unwrap();
                units = last.locations.iter().map(|l| (l.unit.0, l.addr.uuid.clone())).collect();
            }
            let (_, uuid) = units.iter().find(|(index, _)| index == unit).unwrap();
            cluster.kill(uuid);
        }
        writer.write(piece).await?;
    }
    writer.close().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_striped_write_survives_m_failures() {
    for losses in [vec![(7, 0)], vec![(4, 4)], vec![(4, 1), (4, 3)], vec![(4, 2), (13, 0)]] {
        let mut cluster = Cluster::start(8).await;
        cluster.fs.enable_policy("RS-3-2-1024k").await.unwrap();
        let data = bytes(1, (40 << 20) + 1234);
        write_losing(&mut cluster, "RS-3-2-1024k", &data, &losses).await.unwrap();
        assert_same(&get(&cluster.fs, "/f").await.unwrap(), &data, &format!("{losses:?}"));
    }
}

/// A small file goes to each of its DataNodes in one message, and is whole where that arrived.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_small_striped_file_survives_m_failures_and_no_more() {
    let change = |config: &mut cairn_client::ClientConfig| {
        config.hanging_unit_timeout = Duration::from_millis(300);
    };
    let mut cluster = Cluster::start_with(5, change).await;
    let fs = cluster.fs.clone();
    fs.enable_policy("RS-3-2-1024k").await.unwrap();
    let uuids: Vec<String> = cluster.datanodes.iter().map(|node| node.uuid().into()).collect();
    let data = bytes(3, 10_000);
    let files = |round: &str| (0..6).map(|i| format!("/{round}-{i}")).collect::<Vec<_>>();
    let mut written = Vec::new();
    let mut _silent = None;
    for round in ["all", "one hangs", "two are gone"] {
        match round {
            "one hangs" => _silent = Some(cluster.hang(&uuids[0]).await),
            "two are gone" => {
                _silent = None;
                cluster.kill(&uuids[1]);
            }
            _ => {}
        }
        for path in files(round) {
            put(&fs, &path, &data, &striped("RS-3-2-1024k", 8 << 20)).await.unwrap();
            written.push(path);
        }
    }
    for path in &written {
        assert_same(&get(&fs, path).await.unwrap(), &data, path);
    }
    uuids[2..].iter().for_each(|uuid| cluster.kill(uuid));
    let error = put(&fs, "/lost", &data, &striped("RS-3-2-1024k", 8 << 20)).await.unwrap_err();
    assert!(matches!(error, ClientError::GroupLost { .. }), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_striped_write_fails_with_m_plus_one_failures() {
    let mut cluster = Cluster::start(5).await;
    cluster.fs.enable_policy("RS-3-2-1024k").await.unwrap();
    let data = bytes(1, 20 << 20);
    let losses = [(4, 0), (4, 3), (4, 4)];
    let error = write_losing(&mut cluster, "RS-3-2-1024k", &data, &losses).await.unwrap_err();
    assert!(matches!(error, ClientError::GroupLost { .. }), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replicated_write_goes_on_without_failed_datanodes() {
    let mut cluster = Cluster::start(5).await;
    let fs = cluster.fs.clone();
    let data = bytes(4, (20 << 20) + 99);
    let options = CreateOptions { block_size: Some(64 << 20), ..CreateOptions::default() };
    let mut writer = fs.create("/f", &options).await.unwrap();
    let mut nodes: Vec<String> = Vec::new();
    for (i, piece) in data.chunks(1 << 20).enumerate() {
        if i == 4 {
            // The writer runs behind the bytes it was given: its block may not be there yet.
            writer.hflush().await.unwrap();
            let blocks = fs.block_locations("/f", 0, u64::MAX).await.unwrap();
            let last = blocks.last_block.unwrap();
            nodes = last.locations.iter().map(|l| l.addr.uuid.clone()).collect();
        }
        // One after the other: the second leaves one of three, which has to be joined by another.
        if i == 12 {
            writer.hflush().await.unwrap();
        }
        if i == 6 || i == 12 {
            cluster.kill(&nodes.remove(0));
        }
        writer.write(piece).await.unwrap();
    }
    writer.close().await.unwrap();
    assert_same(&get(&fs, "/f").await.unwrap(), &data, "after two failures");
    let blocks = fs.block_locations("/f", 0, u64::MAX).await.unwrap();
    assert!(blocks.blocks[0].locations.len() >= 2, "{:?}", blocks.blocks[0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failure_at_the_end_of_a_block_costs_no_good_replica() {
    for round in 0..4 {
        let change = |config: &mut cairn_client::ClientConfig| {
            config.replace_datanode = ReplaceDataNode::Never;
        };
        let mut cluster = Cluster::start_with(3, change).await;
        let fs = cluster.fs.clone();
        let data = bytes(round, 3 << 20);
        let mut writer = fs.create("/f", &CreateOptions::default()).await.unwrap();
        writer.write(&data[..1000]).await.unwrap();
        writer.hflush().await.unwrap();
        let blocks = fs.block_locations("/f", 0, u64::MAX).await.unwrap();
        let second = blocks.last_block.unwrap().locations[1].addr.uuid.clone();
        writer.write(&data[1000..]).await.unwrap();
        // Much is not acknowledged yet, and the end follows at once.
        cluster.kill(&second);
        writer.close().await.unwrap();
        assert_same(&get(&fs, "/f").await.unwrap(), &data, "after a failure at the end");
        let blocks = fs.block_locations("/f", 0, u64::MAX).await.unwrap();
        let good = blocks.blocks[0].locations.iter().filter(|l| l.addr.uuid != second).count();
        assert_eq!(good, 2, "round {round}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_dropped_before_its_end_breaks_the_file() {
    let cluster = Cluster::start(5).await;
    let fs = &cluster.fs;
    fs.enable_policy("RS-3-2-1024k").await.unwrap();
    let data = bytes(1, 200 << 20);
    for options in [striped("RS-3-2-1024k", 8 << 20), CreateOptions::default()] {
        let mut writer =
            fs.create("/f", &CreateOptions { overwrite: true, ..options }).await.unwrap();
        let write = tokio::time::timeout(Duration::from_millis(20), writer.write(&data)).await;
        assert!(write.is_err(), "the test needs a write that takes its time");
        let error = writer.write(b"more").await.unwrap_err();
        assert!(matches!(error, ClientError::Broken { .. }), "{error}");
        assert!(writer.close().await.is_err(), "bytes are missing");
    }
}

/// A writer goes on without a DataNode that has died; then the power takes what the other one had not synced, and the writer is
/// gone, too. What was acknowledged before the first one died is still there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_pipeline_had_before_a_datanode_left_it_outlasts_the_loss_of_the_others() {
    for left in [0, 512] {
        let change = |config: &mut cairn_client::ClientConfig| {
            config.replace_datanode = ReplaceDataNode::Never;
        };
        let mut cluster = Cluster::start_with(2, change).await;
        let fs = cluster.fs.clone();
        let options = CreateOptions { replication: Some(2), ..CreateOptions::default() };
        let data = bytes(left, 1500);
        let mut writer = fs.create("/f", &options).await.unwrap();
        writer.write(&data[..1000]).await.unwrap();
        writer.hflush().await.unwrap();
        let block = fs.block_locations("/f", 0, u64::MAX).await.unwrap().last_block.unwrap();
        let uuids: Vec<_> = block.locations.iter().map(|at| at.addr.uuid.clone()).collect();
        cluster.kill(&uuids[0]);
        writer.write(&data[1000..]).await.unwrap();
        writer.hflush().await.unwrap();
        drop(writer);
        cluster.kill(&uuids[1]);
        let files = cluster.block_files(block.block.id.0);
        let lens: Vec<u64> = files.iter().map(|(file, _)| file.metadata().unwrap().len()).collect();
        let last = lens.iter().position(|len| *len == 1500).expect("one has all of it");
        let cut = |path: &std::path::Path, len: u64| {
            std::fs::File::options().write(true).open(path).unwrap().set_len(len).unwrap();
        };
        cut(&files[last].0, left);
        cut(&files[last].1, 7 + 4 * left.div_ceil(512));
        cluster.start_again(2).await;
        while !fs.recover_lease("/f").await.unwrap() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        assert_same(&get(&fs, "/f").await.unwrap(), &data[..1000], &format!("{left} left"));
    }
}
