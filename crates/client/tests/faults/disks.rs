//! Disks fail: volumes, files and bits are lost under running DataNodes. Nobody but scanners and readers
//! looks; what is lost is rebuilt elsewhere, and what is wrong is found and goes.

use crate::cluster::Cluster;
use crate::code::{Code, is_full};
use crate::readers::{Dice, Reading};
use crate::truth::{self, Written, WrongBytes, block_id};
use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};

/// What happens to the files of a replica.
#[derive(Clone, Copy, Debug)]
enum Damage {
    BlockLost,
    BlockIsAFolder,
    BlockEmpty,
    BlockShortByOne,
    BlockLongByOne,
    BlockBit,
    MetaLost,
    MetaHeaderGone,
    MetaShortByOne,
    MetaBit,
}

const DAMAGES: [Damage; 10] = [
    Damage::BlockLost,
    Damage::BlockIsAFolder,
    Damage::BlockEmpty,
    Damage::BlockShortByOne,
    Damage::BlockLongByOne,
    Damage::BlockBit,
    Damage::MetaLost,
    Damage::MetaHeaderGone,
    Damage::MetaShortByOne,
    Damage::MetaBit,
];

fn set_len(path: &Path, change: impl FnOnce(u64) -> u64) {
    let file = OpenOptions::new().write(true).open(path).unwrap();
    file.set_len(change(file.metadata().unwrap().len())).unwrap();
}

fn flip_bit(path: &Path, dice: &mut Dice) {
    let mut bytes = fs::read(path).unwrap();
    let at = dice.below(bytes.len());
    bytes[at] ^= 1 << dice.below(8);
    fs::write(path, bytes).unwrap();
}

impl Damage {
    fn inflict(self, block: &Path, meta: &Path, dice: &mut Dice) {
        match self {
            Damage::BlockLost => fs::remove_file(block).unwrap(),
            Damage::BlockIsAFolder => {
                fs::remove_file(block).unwrap();
                fs::create_dir(block).unwrap();
            }
            Damage::BlockEmpty => set_len(block, |_| 0),
            Damage::BlockShortByOne => set_len(block, |len| len - 1),
            Damage::BlockLongByOne => set_len(block, |len| len + 1),
            Damage::BlockBit => flip_bit(block, dice),
            Damage::MetaLost => fs::remove_file(meta).unwrap(),
            Damage::MetaHeaderGone => set_len(meta, |_| 3),
            Damage::MetaShortByOne => set_len(meta, |len| len - 1),
            Damage::MetaBit => flip_bit(meta, dice),
        }
    }
}

/// The block file and meta file of each replica on a DataNode.
fn replicas(cluster: &Cluster, node: usize) -> Vec<(PathBuf, PathBuf)> {
    let files = cluster.finalized_files(node);
    let blocks = files.iter().filter_map(|path| Some((block_id(path)?, path)));
    let meta = |id: i64| {
        let prefix = format!("blk_{id}_");
        let name = |path: &&PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
        files.iter().find(|path| name(path).starts_with(&prefix)).unwrap().clone()
    };
    blocks.map(|(id, path)| (path.clone(), meta(id))).collect()
}

/// Damages every replica on as many DataNodes as may be lost, each in one of the ways given.
async fn damage(code: Code, damages: &[Damage], seed: u64) {
    let what = format!("{code:?} {damages:?} seed {seed}");
    println!("{what}");
    let mut dice = Dice::new(seed);
    let cluster = Cluster::start(code.width() + code.tolerance() + 1, 1).await;
    code.enable(&cluster.fs).await;
    let data = dice.bytes(code.block_len() * 3 + 5000);
    let file = cluster.write(&code, "/f", data).await;
    let files = vec![file.clone()];
    truth::check(&cluster, &code, &files, &what).await;
    let reading = Reading::start(cluster.another_client().await, seed);
    reading.acknowledged(file);
    let holders = cluster.holders("/f", 0).await;
    for unit in dice.choose(code.tolerance(), code.width()) {
        for (block, meta) in replicas(&cluster, holders[unit]) {
            let damage = damages[dice.below(damages.len())];
            damage.inflict(&block, &meta, &mut dice);
        }
    }
    truth::check_with(&cluster, &code, &files, WrongBytes::Vanish, &what).await;
    reading.stop().await;
}

/// The ways to be damaged, one after the other and mixed.
async fn all_damages(code: Code) {
    for (seed, damage_) in DAMAGES.iter().enumerate() {
        damage(code.clone(), std::slice::from_ref(damage_), seed as u64).await;
    }
    let mixed = if is_full() { 100 } else { 2 };
    for seed in 100..100 + mixed {
        damage(code.clone(), &DAMAGES, seed).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn damaged_files_of_rs_3_2_are_found_and_rebuilt() {
    all_damages(Code::rs(3, 2)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn damaged_files_of_three_replicas_are_found_and_copied() {
    all_damages(Code::Replicated(3)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn damaged_files_of_wide_and_narrow_groups_are_found_and_rebuilt() {
    for (code, seed) in [(Code::xor(), 7), (Code::rs(6, 3), 8), (Code::rs(10, 4), 9)] {
        damage(code, &DAMAGES, seed).await;
    }
}

/// A whole volume is not there any more: in the place of its folder is a file.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_volume_costs_its_datanode_nothing_else() {
    for code in [Code::rs(3, 2), Code::Replicated(3)] {
        let what = format!("{code:?}");
        let mut dice = Dice::new(3);
        let cluster = Cluster::start_with_volumes(code.width() + 1, 1, 2).await;
        code.enable(&cluster.fs).await;
        let data = dice.bytes(code.block_len() * 5 + 5000);
        let files: Vec<Written> = vec![cluster.write(&code, "/f", data).await];
        let reading = Reading::start(cluster.another_client().await, 3);
        reading.acknowledged(files[0].clone());
        let node = cluster.holders("/f", 0).await[0];
        let folders = cluster.folders(node);
        let holds = |folder: &&PathBuf| {
            replicas(&cluster, node).iter().any(|(block, _)| block.starts_with(folder))
        };
        let lost = folders.iter().find(holds).unwrap();
        fs::rename(lost.join("current"), lost.with_extension("lost")).unwrap();
        fs::write(lost.join("current"), b"not a folder").unwrap();
        let failed = || cluster.stats().failed_volumes == 1;
        cluster.wait(failed, || format!("{:?}", cluster.stats())).await;
        truth::check(&cluster, &code, &files, &what).await;
        assert_eq!(cluster.stats().live_nodes, cluster.running().len(), "{what}");
        reading.stop().await;
    }
}

/// A DataNode whose disk is full takes nothing more, serves what it has, and stops no writer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_stops_no_writer() {
    for code in [Code::rs(3, 2), Code::Replicated(3)] {
        let what = format!("{code:?}");
        let mut dice = Dice::new(4);
        let mut cluster = Cluster::start(code.width() + 1, 1).await;
        code.enable(&cluster.fs).await;
        let mut files = Vec::new();
        let data = dice.bytes(code.block_len() * 3 + 5000);
        files.push(cluster.write(&code, "/before", data).await);
        let full = cluster.holders("/before", 0).await[0];
        cluster.kill(full);
        let held = cluster.finalized_files(full).len();
        cluster.restart_with(full, |config| config.reserved_bytes = u64::MAX >> 1).await;
        // It may be chosen until its next heartbeat tells.
        let data = dice.bytes(code.block_len() * 3 + 5000);
        files.push(cluster.write(&code, "/after", data).await);
        truth::check(&cluster, &code, &files, &what).await;
        assert!(cluster.finalized_files(full).len() <= held, "{what}: it took more");
    }
}
