//! Streams that live long, and DataNodes under them that fail one after the other or hang.

use crate::cluster::{Cluster, PATIENCE};
use crate::code::{BLOCK, Code};
use crate::readers::Dice;
use crate::truth::{self, Written};
use cairn_client::{CreateOptions, FileBlock};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Blocks that no test fills.
fn long_blocks(code: &Code) -> CreateOptions {
    CreateOptions { block_size: Some(BLOCK * 4096), ..code.options() }
}

/// Waits until the NameNode knows who lives, and all groups of an open file but the last one have each unit on
/// a DataNode that runs. What came back of the open group stays bad until that ends.
async fn wait_for_whole_groups(cluster: &Cluster, code: &Code, path: &str) {
    let (start, running) = (Instant::now(), cluster.running());
    loop {
        let stats = cluster.stats();
        let work = stats.pending_reconstruction + stats.scheduled_reconstruction;
        let found = cluster.fs.block_locations(path, 0, u64::MAX >> 1).await.unwrap();
        let last = found.last_block.as_ref().map(|last| last.block.id);
        let closed = || found.blocks.iter().filter(|group| Some(group.block.id) != last);
        let is_whole = |group: &FileBlock| {
            let running = group
                .locations
                .iter()
                .filter(|place| running.contains(&cluster.node_of(&place.addr.uuid)));
            running.map(|place| place.unit).collect::<BTreeSet<_>>().len() == code.width()
        };
        if work == 0 && stats.live_nodes == running.len() && closed().all(is_whole) {
            return;
        }
        assert!(start.elapsed() < PATIENCE, "{code:?}: {stats:?}, {:?}", found.blocks);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// One stream, one group that is never full, and more failures than a group survives, one at a time. Who
/// failed comes back before the next one fails, but the client leaves it out for ten minutes: in the end
/// it would have nobody left.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn row_21_a_stream_outlives_any_number_of_failures_spread_over_time() {
    for (code, seed) in [(Code::rs(3, 2), 1), (Code::rs(6, 3), 2), (Code::xor(), 3)] {
        let mut dice = Dice::new(seed);
        let mut cluster = Cluster::start(code.width() + 1, 3).await;
        code.enable(&cluster.fs).await;
        let mut writer = cluster.fs.create("/f", &long_blocks(&code)).await.unwrap();
        let mut data = Vec::new();
        for _ in 0..2 * code.tolerance() + 2 {
            // What failed before is noticed, and the group at hand survives another failure.
            let start = Instant::now();
            let mut is_safe = false;
            while !is_safe {
                assert!(start.elapsed() < PATIENCE, "{code:?}: the stream finds no DataNodes");
                let piece = dice.bytes(code.block_len());
                writer.write(&piece).await.unwrap();
                data.extend(piece);
                tokio::time::sleep(Duration::from_millis(20)).await;
                let holders = cluster.holders("/f", u64::MAX >> 1).await;
                is_safe = holders.len() > code.width() - code.tolerance()
                    && holders.iter().all(|node| cluster.running().contains(node));
            }
            for node in cluster.stopped() {
                cluster.restart(node).await;
            }
            wait_for_whole_groups(&cluster, &code, "/f").await;
            let holders = cluster.holders("/f", u64::MAX >> 1).await;
            cluster.kill(holders[dice.below(holders.len())]);
        }
        writer.write(b"the end").await.unwrap();
        data.extend(b"the end");
        writer.close().await.unwrap();
        let groups = cluster.fs.block_locations("/f", 0, u64::MAX >> 1).await.unwrap().blocks.len();
        assert!(groups > 2, "{code:?}: {groups} groups");
        let file = Written { path: "/f".to_string(), data };
        truth::check(&cluster, &code, &[file], &format!("{code:?}")).await;
    }
}

/// Units whose DataNodes let the writer connect and say nothing more are given up, as long as the group
/// survives another failure; their units are rebuilt when the NameNode knows.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hanging_datanode_holds_a_striped_write_up_no_longer_than_its_bound() {
    for (code, hanging) in [(Code::rs(3, 2), 1), (Code::rs(6, 3), 2)] {
        let what = format!("{code:?} {hanging} hang");
        let mut cluster = Cluster::start(code.width() + hanging, 1).await;
        code.enable(&cluster.fs).await;
        let quick = |config: &mut cairn_client::ClientConfig| {
            config.hanging_unit_timeout = Duration::from_millis(400);
            config.socket_timeout = Duration::from_secs(120);
            // So many that the write is not held up by its memory before its end.
            config.stream_buffer_len = 4 << 20;
        };
        let fs = cluster.client_with(quick).await;
        for (path, len) in [("/short", code.block_len() / 2 + 7), ("/long", 12 << 20)] {
            let options = CreateOptions { block_size: Some(8 << 20), ..code.options() };
            let data = Dice::new(len as u64).bytes(len);
            let mut writer = fs.create(path, &options).await.unwrap();
            let mut mute = Vec::new();
            for node in cluster.running().into_iter().take(hanging) {
                mute.push(cluster.replace(node).await);
            }
            let start = Instant::now();
            writer.write(&data).await.unwrap();
            writer.close().await.unwrap();
            // Nobody may have waited for the timeout of a socket.
            assert!(start.elapsed() < Duration::from_secs(60), "{what}: {:?}", start.elapsed());
            drop(mute);
            for node in cluster.stopped() {
                cluster.restart(node).await;
            }
            let files = [Written { path: path.to_string(), data }];
            truth::check(&cluster, &code, &files, &what).await;
            cluster.fs.delete(path, false).await.unwrap();
        }
    }
}
