//! Moves that are given up, and moves that something else overtakes.

use super::*;
use crate::config::{DataDir, DataNodeConfig};
use crate::dataset::{Checksum, WriteKind};
use crate::volume::layout::PoolVersion;
use cairn_codec::crc::ChecksumKind;
use cairn_stripe::StorageType;
use std::time::Duration;

const POOL: &str = "BP-1-127.0.0.1-1";
const CHECKSUM: Checksum = Checksum { kind: ChecksumKind::Crc32c, chunk_len: 512 };
const CAPACITY: u64 = 64 << 20;

/// A dataset on a disk and an archive.
fn open(dirs: &[tempfile::TempDir; 2]) -> Arc<Dataset> {
    let dir = |at: usize, storage_type| DataDir {
        path: dirs[at].path().into(),
        storage_type,
        capacity: Some(CAPACITY),
    };
    let config = DataNodeConfig {
        data_dirs: vec![dir(0, StorageType::Disk), dir(1, StorageType::Archive)],
        block_len_estimate: 1 << 20,
        ..DataNodeConfig::default()
    };
    let dataset = Arc::new(Dataset::open(&config).unwrap());
    let pool = PoolVersion { namespace_id: 5, block_pool_id: POOL.into(), c_time: 0 };
    dataset.open_pool("CID-1", &pool).unwrap();
    dataset
}

fn two_dirs() -> [tempfile::TempDir; 2] {
    [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()]
}

fn on(storage_type: StorageType) -> StorageWish {
    StorageWish { storage_type, ..StorageWish::default() }
}

/// Writes a finalized replica of block 1.
async fn write(dataset: &Arc<Dataset>, wish: &StorageWish) -> Block {
    let mut block = Block { pool: POOL.into(), id: BlockId(1), gs: GenerationStamp(7), len: 0 };
    let created = dataset.create(&block, block.gs, WriteKind::Rbw, wish, CHECKSUM).await;
    let mut writer = created.unwrap();
    let data = vec![7; 3 * STEP as usize];
    let mut crcs = vec![0; data.len() / 512 * 4];
    crc::chunk_crcs(ChecksumKind::Crc32c, 512, &data, &mut crcs);
    writer.write_packet(0, &data, &crcs, CHECKSUM).unwrap();
    writer.finalize().await.unwrap();
    block.len = data.len() as u64;
    block
}

/// The replica is there to the last byte, on a volume of this type.
async fn assert_whole(dataset: &Dataset, block: &Block, storage_type: StorageType) {
    assert_eq!(dataset.volume_of(block.id).unwrap().storage_type(), storage_type);
    let view = dataset.open_read(block, 0).await.unwrap();
    view.check_lengths().unwrap();
    assert_eq!(checked_bytes(&view, 0, block.len).unwrap(), vec![7; block.len as usize]);
}

#[tokio::test]
async fn a_move_that_nobody_waits_for_any_more_gives_its_room_back() {
    let dirs = two_dirs();
    let dataset = open(&dirs);
    let block = write(&dataset, &StorageWish::default()).await;

    // The rest does not come for a long time.
    let budget = Budget::new(1);
    let archive = on(StorageType::Archive);
    let copy = dataset.copy_to_volume(&block, &archive, &budget);
    assert!(tokio::time::timeout(Duration::from_millis(50), copy).await.is_err());
    let target = dataset.volumes()[1].clone();
    let usage = target.usage().unwrap();
    assert_eq!((usage.used, usage.remaining), (0, CAPACITY));
    assert_eq!(fs::read_dir(&target.pool().unwrap().tmp).unwrap().count(), 0);
    // A copy that is ready and not wanted any more goes as well.
    let copy = dataset.copy_to_volume(&block, &archive, &Budget::new(1 << 30)).await.unwrap();
    assert!(target.usage().unwrap().remaining < CAPACITY);
    drop(copy);
    assert_eq!(target.usage().unwrap().remaining, CAPACITY);
    assert_eq!(fs::read_dir(&target.pool().unwrap().tmp).unwrap().count(), 0);
}

#[tokio::test]
async fn a_replica_that_is_moved_twice_at_once_stays_whole() {
    let dirs = two_dirs();
    let dataset = open(&dirs);
    let block = write(&dataset, &StorageWish::default()).await;
    let (archive, budget) = (on(StorageType::Archive), Budget::new(1 << 30));
    let first = dataset.copy_to_volume(&block, &archive, &budget).await.unwrap();
    // A mover that has waited too long for the first.
    let second = dataset.copy_to_volume(&block, &archive, &budget).await;
    let error = second.err().expect("the same copy is made twice").to_string();
    assert!(error.ends_with("is being moved already"), "{error}");
    dataset.relocate(first).await.unwrap();
    assert_whole(&dataset, &block, StorageType::Archive).await;
    // Once that is over, it can be moved again.
    let back = dataset.copy_to_volume(&block, &on(StorageType::Disk), &budget).await.unwrap();
    dataset.relocate(back).await.unwrap();
    assert_whole(&dataset, &block, StorageType::Disk).await;
}

#[tokio::test]
async fn a_move_leaves_a_newer_copy_where_it_was_to_go() {
    let (archive, budget) = (on(StorageType::Archive), Budget::new(1 << 30));
    // Before the copy gets its names, and after.
    for is_placed in [false, true] {
        let dirs = two_dirs();
        let dataset = open(&dirs);
        let block = write(&dataset, &StorageWish::default()).await;
        let copy = dataset.copy_to_volume(&block, &archive, &budget).await.unwrap();
        let place = || {
            let dir = copy.target.pool().unwrap().finalized_dir(block.id);
            dataset.place(&copy, &dir, |entry| copy.origin.is_still(entry)).unwrap()
        };
        // Without its turn, as where somebody had not taken it.
        let placed = is_placed.then(|| place().unwrap().0);
        dataset.invalidate((block.id, block.gs), dataset.given(), |_| ()).unwrap();
        assert_eq!(write(&dataset, &archive).await, block);
        match placed {
            Some(files) => {
                assert!(dataset.switch_over(&copy.origin, &copy.target, &files).is_err());
            }
            None => assert!(dataset.relocate(copy).await.is_err()),
        }
        assert_whole(&dataset, &block, StorageType::Archive).await;
    }
}

#[tokio::test]
async fn of_two_equal_replicas_that_a_crash_leaves_one_goes_if_the_other_is_whole() {
    let dirs = two_dirs();
    let dataset = open(&dirs);
    let block = write(&dataset, &StorageWish::default()).await;
    let volumes = dataset.volumes();
    let [from, to] = [0, 1]
        .map(|at: usize| volumes[at].files(block.id, block.gs, ReplicaState::Finalized).unwrap());
    dataset.close();
    drop(dataset);
    fs::create_dir_all(to.data.parent().unwrap()).unwrap();
    fs::copy(&from.data, &to.data).unwrap();
    fs::copy(&from.meta, &to.meta).unwrap();
    // The first one found counts; it lacks a CRC.
    let meta = fs::read(&from.meta).unwrap();
    fs::write(&from.meta, &meta[..meta.len() - 4]).unwrap();
    let dataset = open(&dirs);
    assert_eq!(dataset.volume_of(block.id).unwrap().storage_type(), StorageType::Disk);
    assert_eq!(to.size(), block.len + meta.len() as u64);
    dataset.close();
    drop(dataset);

    fs::write(&from.meta, &meta).unwrap();
    let dataset = open(&dirs);
    assert_whole(&dataset, &block, StorageType::Disk).await;
    assert_eq!(to.size(), 0);
    assert_eq!(dataset.volumes()[1].usage().unwrap().used, 0);
}
