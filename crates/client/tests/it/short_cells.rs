//! Cells shorter than a packet go several to a packet, many stripes at a time: what is written comes back wherever the
//! file ends, whichever units are lost, and when DataNodes fail under the writer.

use crate::cluster::*;
use cairn_stripe::{CodecName, Policy, PolicyId, Schema};
use std::time::Duration;

/// A cluster of RS-3-2 in cells of `cell_kib` KiB, with `spare` DataNodes more than a group has units.
async fn cluster(cell_kib: u32, spare: usize) -> (Cluster, Policy) {
    let tune = |namenode: &mut cairn_namenode::NameNodeConfig, _: &mut _| {
        namenode.ec_user_policies = true;
    };
    let patience = |client: &mut cairn_client::ClientConfig| {
        client.hanging_unit_timeout = Duration::from_millis(500);
    };
    let cluster = Cluster::start_tuned(5 + spare, tune, patience).await;
    let schema = Schema { codec: CodecName::Rs, k: 3, m: 2 };
    let policy = Policy::new(PolicyId(0), schema, cell_kib << 10).unwrap();
    cluster.fs.add_policies(std::slice::from_ref(&policy)).await.unwrap();
    cluster.fs.enable_policy(&policy.name).await.unwrap();
    (cluster, policy)
}

/// Lengths around the ends of chunks, cells, stripes, bands of `band` stripes and groups of `blocks` cells a unit.
fn lengths(policy: &Policy, band: usize, blocks: usize) -> Vec<usize> {
    let (cell, stripe) = (policy.cell_len as usize, policy.stripe_len() as usize);
    let ends = [cell, stripe, 2 * stripe, stripe + cell, band * stripe, blocks * stripe];
    let around = ends.into_iter().flat_map(|end| [end - 1, end, end + 1, end + cell + 700]);
    around.chain([1, 512, blocks * stripe + band * stripe + 2 * cell + 9]).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_may_end_anywhere_and_lose_any_units() {
    // As many cells as a packet of 256 KiB holds, and blocks that are no whole number of packets.
    for (cell_kib, band, lost) in [(16, 16, [0, 1]), (64, 4, [1, 3]), (100, 2, [2, 4])] {
        let (mut cluster, policy) = cluster(cell_kib, 0).await;
        let fs = cluster.fs.clone();
        let blocks = 2 * band + 1;
        let block_len = blocks as u64 * u64::from(policy.cell_len);
        let files: Vec<(String, Vec<u8>)> = lengths(&policy, band, blocks)
            .into_iter()
            .map(|len| (format!("/{len}"), bytes(len as u64 + 1, len)))
            .collect();
        for (path, data) in &files {
            put(&fs, path, data, &striped(&policy.name, block_len)).await.unwrap();
            assert_same(&get(&fs, path).await.unwrap(), data, &format!("{} {path}", policy.name));
        }
        cluster.kill_units(&files.last().unwrap().0, &lost).await;
        for (path, data) in &files {
            let what = format!("{} {path} with two DataNodes gone", policy.name);
            assert_same(&get(&fs, path).await.unwrap(), data, &what);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_survives_m_failures_in_the_midst_of_a_band() {
    let (mut cluster, policy) = cluster(64, 3).await;
    let fs = cluster.fs.clone();
    let data = bytes(7, (20 << 20) + 4321);
    let mut writer = fs.create("/f", &striped(&policy.name, 4 << 20)).await.unwrap();
    for (at, piece) in data.chunks(300_000).enumerate() {
        if at == 9 || at == 31 {
            let blocks = fs.block_locations("/f", 0, u64::MAX).await.unwrap();
            let block = blocks.last_block.unwrap();
            let unit = if at == 9 { 1 } else { 4 };
            let place = block.locations.iter().find(|place| place.unit.0 == unit);
            cluster.kill(&place.unwrap().addr.uuid);
        }
        writer.write(piece).await.unwrap();
    }
    writer.close().await.unwrap();
    assert_same(&get(&fs, "/f").await.unwrap(), &data, "after two failures");
}
