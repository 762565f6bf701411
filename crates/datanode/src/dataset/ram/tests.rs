//! Replicas that somebody is at when their turn to be saved comes.

use super::super::slot::WriterSlot;
use super::super::{Checksum, WriteKind};
use super::*;
use crate::config::{DataDir, DataNodeConfig};
use crate::sys;
use crate::volume::layout::PoolVersion;
use cairn_codec::crc::{self, ChecksumKind};
use cairn_stripe::{GenerationStamp, StorageType};

const CHECKSUM: Checksum = Checksum { kind: ChecksumKind::Crc32c, chunk_len: 512 };

#[tokio::test]
async fn a_replica_that_its_writer_has_not_left_yet_is_saved_later() {
    let dir = tempfile::tempdir().unwrap();
    let ram = DataDir { storage_type: StorageType::RamDisk, ..dir.path().join("ram").into() };
    let page = sys::page_len();
    let config = DataNodeConfig {
        data_dirs: vec![dir.path().join("disk").into(), ram],
        max_locked_memory: page,
        ..DataNodeConfig::default()
    };
    let dataset = Arc::new(Dataset::open(&config).unwrap());
    let pool = PoolVersion { namespace_id: 5, block_pool_id: "BP-1".into(), c_time: 0 };
    dataset.open_pool("CID-1", &pool).unwrap();
    let (id, gs) = (BlockId(1), GenerationStamp(7));
    let block = Block { pool: "BP-1".into(), id, gs, len: page };
    let wish = StorageWish { in_memory: true, ..StorageWish::default() };
    let mut writer = dataset.create(&block, gs, WriteKind::Rbw, &wish, CHECKSUM).await.unwrap();
    let (data, mut crcs) = ([7; 512], [0; 4]);
    crc::chunk_crcs(CHECKSUM.kind, CHECKSUM.chunk_len, &data, &mut crcs);
    writer.write_packet(0, &data, &crcs, CHECKSUM).unwrap();
    writer.finalize().await.unwrap();

    // As in the moment in which it is finalized.
    dataset.lock().get_mut(&id).unwrap().writer = Some(WriterSlot::new());
    dataset.save_next().await.unwrap().1.unwrap();
    let stats = dataset.ram_disk_stats();
    assert_eq!((stats.unsaved, stats.blocks_saved), (1, 0));
    dataset.lock().get_mut(&id).unwrap().writer = None;
    dataset.save_next().await.unwrap().1.unwrap();
    let stats = dataset.ram_disk_stats();
    assert_eq!((stats.unsaved, stats.blocks_saved, stats.used), (0, 1, page));
}
