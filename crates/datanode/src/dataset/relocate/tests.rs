//! Moves that are given up.

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

#[tokio::test]
async fn a_move_that_nobody_waits_for_any_more_gives_its_room_back() {
    let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
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
    let mut block = Block { pool: POOL.into(), id: BlockId(1), gs: GenerationStamp(7), len: 0 };
    let disk = StorageWish::default();
    let created = dataset.create(&block, block.gs, WriteKind::Rbw, &disk, CHECKSUM).await;
    let mut writer = created.unwrap();
    let data = vec![7; 3 * STEP as usize];
    let mut crcs = vec![0; data.len() / 512 * 4];
    crc::chunk_crcs(ChecksumKind::Crc32c, 512, &data, &mut crcs);
    writer.write_packet(0, &data, &crcs, CHECKSUM).unwrap();
    writer.finalize().await.unwrap();
    block.len = data.len() as u64;

    // The rest does not come for a long time.
    let budget = Budget::new(1);
    let archive = StorageWish { storage_type: StorageType::Archive, ..StorageWish::default() };
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
