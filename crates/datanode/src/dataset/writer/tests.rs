//! What becomes of replicas whose bytes cannot be made durable, and of room that was set aside for them.

use super::*;
use crate::config::DataNodeConfig;
use crate::dataset::{Block, Deletion, Given, StorageWish, WriteKind};
use crate::sys;
use crate::volume::layout::{FileName, PoolVersion, parse_name};
use cairn_replica::ReplicaState;
use cairn_replica::report::DELETION_LASTS;
use std::fs;
use std::path::PathBuf;

const POOL: &str = "BP-1-127.0.0.1-1";
const CHECKSUM: Checksum = Checksum { kind: ChecksumKind::Crc32c, chunk_len: 512 };
const GS: GenerationStamp = GenerationStamp(1001);
const NEXT_GS: GenerationStamp = GenerationStamp(1002);

fn block(id: i64) -> Block {
    Block { pool: POOL.into(), id: BlockId(id), gs: GS, len: 0 }
}

fn open(dirs: &[PathBuf], tolerated: usize) -> Arc<Dataset> {
    let config = DataNodeConfig {
        data_dirs: dirs.iter().map(|dir| dir.clone().into()).collect(),
        failed_volumes_tolerated: Some(tolerated),
        ..DataNodeConfig::default()
    };
    let dataset = Dataset::open(&config).unwrap();
    let pool = PoolVersion { namespace_id: 5, block_pool_id: POOL.into(), c_time: 0 };
    dataset.open_pool("CID-1", &pool).unwrap();
    Arc::new(dataset)
}

/// A writer with nothing yet, on the volume whose turn it is.
async fn new_writer(dataset: &Arc<Dataset>, id: i64) -> ReplicaWriter {
    let wish = StorageWish::default();
    dataset.create(&block(id), GS, WriteKind::Rbw, &wish, CHECKSUM).await.unwrap()
}

/// One with 700 bytes.
async fn writer(dataset: &Arc<Dataset>, id: i64) -> ReplicaWriter {
    let mut writer = new_writer(dataset, id).await;
    write(&mut writer, 700);
    writer
}

/// Writes `len` bytes behind those that are there, a packet.
fn write(writer: &mut ReplicaWriter, len: usize) {
    let data = vec![7; len];
    let mut crcs = vec![0; writer.tail.crc_bytes(len)];
    crc::chunk_crcs(ChecksumKind::Crc32c, 512, &data, &mut crcs);
    writer.write_packet(writer.len(), &data, &crcs, CHECKSUM).unwrap();
}

/// The device refuses every sync, as a bad disk does.
fn break_sync(writer: &mut ReplicaWriter) {
    writer.data = Arc::new(File::open("/dev/null").unwrap());
}

/// Files under `dir` that a start would take for replicas, and the others of the same name.
fn replica_files(dir: &Path) -> (usize, usize) {
    let mut found = (0, 0);
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_string();
        if path.is_dir() {
            let (good, aside) = replica_files(&path);
            found = (found.0 + good, found.1 + aside);
        } else if parse_name(&name) != FileName::Other {
            found.0 += 1;
        } else if name.starts_with("blk_") {
            found.1 += 1;
        }
    }
    found
}

/// What a pipeline had synced before a copy of it joins must not be lost with the others.
#[tokio::test]
async fn a_copy_whose_sync_failed_joins_no_pipeline() {
    let dir = tempfile::tempdir().unwrap();
    let dataset = open(&[dir.path().to_path_buf()], 0);
    for is_broken in [false, true] {
        let block = block(1 + i64::from(is_broken));
        let wish = StorageWish::default();
        let mut copy = dataset
            .create(&block, GS, WriteKind::Temporary { is_transfer: true }, &wish, CHECKSUM)
            .await
            .unwrap();
        write(&mut copy, 700);
        if is_broken {
            break_sync(&mut copy);
        }
        let joined = tokio::task::spawn_blocking(move || copy.convert_to_rbw(700)).await.unwrap();
        match joined {
            Ok(()) => assert!(!is_broken),
            Err(error) => {
                assert!(is_broken && matches!(error, DataNodeError::Unsynced { .. }), "{error}");
            }
        }
    }
}

#[tokio::test]
async fn a_replica_whose_sync_failed_is_never_finalized() {
    let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let paths = dirs.each_ref().map(|dir| dir.path().to_path_buf());
    let dataset = open(&paths, 1);
    let mut bad = writer(&dataset, 1).await;
    let good = writer(&dataset, 2).await;
    assert_ne!(bad.storage_id(), good.storage_id(), "they take turns");
    let volume = bad.opening.volume.clone();
    break_sync(&mut bad);

    let error = bad.finalize().await.unwrap_err();
    assert!(matches!(error, DataNodeError::Unsynced { .. }), "{error}");
    assert!(volume.is_failed());
    assert!(dataset.recover_close(&block(1), NEXT_GS, 700).await.is_err());
    assert!(dataset.recover_rbw(&block(1), NEXT_GS, (0, 700)).await.is_err());
    assert_eq!(dataset.init_recovery(&block(1), NEXT_GS).await.unwrap(), None);

    // One volume may fail: the other one serves on.
    assert_eq!(good.finalize().await.unwrap().len, 700);
    assert_eq!(*dataset.gave_up.borrow(), None);

    // No start finds it either.
    assert_eq!(replica_files(volume.root()), (0, 2));
    dataset.close();
    drop(dataset);
    let again = open(&paths, 1);
    assert_eq!(again.get(BlockId(1)), None);
    assert_eq!(again.get(BlockId(2)).unwrap().state(), ReplicaState::Finalized);
}

#[tokio::test]
async fn a_failed_sync_on_the_last_volume_stops_the_node() {
    let dir = tempfile::tempdir().unwrap();
    let dataset = open(&[dir.path().to_path_buf()], 0);
    let (mut bad, other) = (writer(&dataset, 1).await, writer(&dataset, 2).await);
    break_sync(&mut bad);
    let error = bad.sync().await.unwrap_err();
    assert!(matches!(error, DataNodeError::Unsynced { .. }), "{error}");
    let why = dataset.given_up().await;
    assert!(why.starts_with("1 of 1 volumes have failed, 0 may"), "{why}");
    assert!(bad.finalize().await.is_err());
    // What else was being written there is taken from its writer.
    other.stopped().await;
    assert!(other.finalize().await.is_err());
    assert_eq!(dataset.get(BlockId(2)), None);
}

#[tokio::test]
async fn a_replica_that_a_full_disk_did_not_take_is_set_aside_and_the_disk_serves_on() {
    let dir = tempfile::tempdir().unwrap();
    let dataset = open(&[dir.path().to_path_buf()], 0);
    for (id, errno) in [(1, libc::ENOSPC), (2, libc::EDQUOT)] {
        let writer = writer(&dataset, id).await;
        let Opening { volume, files, .. } = &writer.opening;
        let full = || sys::synced(Err(io::Error::from_raw_os_error(errno)), &files.data);
        let error = dataset.sync_or_condemn(BlockId(id), volume, full).unwrap_err();
        assert!(matches!(error, DataNodeError::Unsynced { .. }), "{error}");
        // The next sync would succeed.
        assert!(writer.finalize().await.is_err());
        assert_eq!(dataset.get(BlockId(id)), None);
    }
    assert_eq!(replica_files(dir.path()), (0, 4));
    assert!(!dataset.volumes()[0].is_failed());
    assert_eq!(*dataset.gave_up.borrow(), None);
}

/// A file's length on disk.
fn len(path: &Path) -> u64 {
    fs::metadata(path).unwrap().len()
}

#[tokio::test]
async fn a_cut_that_was_stopped_after_the_data_cuts_the_crcs_when_it_is_tried_again() {
    let dir = tempfile::tempdir().unwrap();
    let dataset = open(&[dir.path().to_path_buf()], 0);
    let writer = writer(&dataset, 1).await;
    let files = writer.opening.files.clone();
    assert_eq!(len(&files.meta), HEADER_LEN as u64 + 8);
    File::options().write(true).open(&files.data).unwrap().set_len(512).unwrap();
    assert_eq!(crate::dataset::files::truncate(&files, 512).unwrap(), 4);
    assert_eq!(len(&files.meta), HEADER_LEN as u64 + 4);
    assert_eq!(crate::dataset::files::truncate(&files, 512).unwrap(), 0);
}

#[tokio::test]
async fn a_replica_whose_block_file_cannot_be_moved_keeps_its_crcs() {
    let dir = tempfile::tempdir().unwrap();
    let dataset = open(&[dir.path().to_path_buf()], 0);
    let written = writer(&dataset, 1).await;
    written.acks().note(700);
    let files = written.opening.files.clone();
    let volume = written.opening.volume.clone();
    // In the way of the block file.
    let to = volume.files(BlockId(1), GS, ReplicaState::Finalized).unwrap();
    fs::create_dir_all(to.data.join("full")).unwrap();
    assert!(written.finalize().await.is_err());
    assert_eq!((len(&files.data), len(&files.meta)), (700, HEADER_LEN as u64 + 8));
    fs::remove_dir_all(&to.data).unwrap();
    assert_eq!(dataset.recover_close(&block(1), NEXT_GS, 700).await.unwrap().len, 700);
}

#[tokio::test]
async fn a_replica_that_the_disk_did_not_give_at_the_start_is_not_taken_for_an_empty_one() {
    let dir = tempfile::tempdir().unwrap();
    let dirs = [dir.path().to_path_buf()];
    let dataset = open(&dirs, 0);
    let written = writer(&dataset, 1).await;
    let meta = written.opening.files.meta.clone();
    drop(written);
    dataset.close();
    drop(dataset);
    // What can be named and not opened.
    let away = meta.with_extension("away");
    fs::rename(&meta, &away).unwrap();
    fs::create_dir(&meta).unwrap();
    let dataset = open(&dirs, 0);
    assert_eq!(dataset.get(BlockId(1)).unwrap().state(), ReplicaState::Rwr);
    assert!(dataset.init_recovery(&block(1), NEXT_GS).await.is_err());
    fs::remove_dir(&meta).unwrap();
    fs::rename(&away, &meta).unwrap();
    let info = dataset.init_recovery(&block(1), NEXT_GS).await.unwrap().unwrap();
    assert_eq!((info.gs, info.len, info.original), (GS, 700, ReplicaState::Rwr));
}

#[tokio::test]
async fn an_order_to_delete_is_void_after_a_new_registration() {
    let dir = tempfile::tempdir().unwrap();
    let dataset = open(&[dir.path().to_path_buf()], 0);
    let done = writer(&dataset, 1).await.finalize().await.unwrap();
    let (id, gs) = (done.id, done.gs);
    let older = dataset.given();
    dataset.begin_registration();
    // The report that follows names the replica: nothing may take it away behind that.
    let delete = |given| {
        let mut told = None;
        let tell = |deletion: &Deletion| told = Some(deletion.clone());
        let deletion = dataset.invalidate((id, gs), given, tell).unwrap();
        assert_eq!(told, Some(deletion.clone()).filter(|deletion| *deletion != Deletion::Void));
        deletion
    };
    assert_eq!(delete(older), Deletion::Void);
    assert_eq!(replica_files(dir.path()).0, 2);
    // Neither may an order that has waited for a disk while others were counted on.
    let now = dataset.given();
    let since = now.since.checked_sub(DELETION_LASTS).expect("this machine has run for minutes");
    assert_eq!(delete(Given { since, ..now }), Deletion::Void);
    assert_eq!(replica_files(dir.path()).0, 2);
    let storage_id = dataset.volumes()[0].storage_id().to_string();
    assert_eq!(delete(dataset.given()), Deletion::Done { storage_id });
    assert_eq!(replica_files(dir.path()).0, 0);
    assert_eq!(delete(dataset.given()), Deletion::Absent);
}

#[tokio::test]
async fn readers_get_the_right_crc_while_a_pipeline_is_recovered() {
    let dir = tempfile::tempdir().unwrap();
    let dataset = open(&[dir.path().to_path_buf()], 0);
    let written = writer(&dataset, 1).await;
    written.acks().note(600);
    drop(written);
    // What a recovery does before it opens the files again.
    let (found, slot) = (dataset.placed(BlockId(1)).unwrap(), WriterSlot::new());
    dataset.lock().get_mut(&BlockId(1)).unwrap().writer = Some(slot.clone());
    let mut next = found.replica.clone();
    let len = next.recover_rbw(GS, NEXT_GS, (600, 700), 700).unwrap();
    crate::dataset::files::truncate(&found.files().unwrap(), len).unwrap();
    dataset.reopen(&found, &slot, next).unwrap();
    let view = dataset.try_open_read(&Block { gs: NEXT_GS, ..block(1) }).unwrap();
    let (mut data, mut crcs) = (vec![0; 600], Vec::new());
    view.read_at(0, &mut data).unwrap();
    view.crcs(0, 600, &mut crcs).unwrap();
    crc::verify_chunks(ChecksumKind::Crc32c, 512, &data, &crcs).unwrap();
}

#[tokio::test]
async fn a_length_that_a_peer_names_claims_no_room_that_is_not_there() {
    let dir = tempfile::tempdir().unwrap();
    let dataset = open(&[dir.path().to_path_buf()], 0);
    writer(&dataset, 1).await.finalize().await.unwrap();
    let huge = Block { len: 1 << 62, ..block(1) };
    let error = dataset.append(&huge, NEXT_GS, 700).await.map(|_| ()).unwrap_err();
    assert!(matches!(error, DataNodeError::NoSpace { .. }), "{error}");

    let broken = writer(&dataset, 2).await;
    drop(broken);
    let huge = Block { len: u64::MAX, ..block(2) };
    let volume = dataset.volumes()[0].clone();
    let one = dataset.recover_rbw(&huge, NEXT_GS, (0, 700)).await.unwrap();
    assert_eq!(volume.promised(), one.opening.promised);
    assert!(one.opening.promised < 1 << 60, "no more than there is");
    drop(one);
    assert_eq!(volume.promised(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_replica_comes_while_one_of_its_block_is_deleted() {
    let dir = tempfile::tempdir().unwrap();
    let dataset = open(&[dir.path().to_path_buf()], 0);
    writer(&dataset, 1).await.finalize().await.unwrap();
    let wish = StorageWish::default();
    let kind = WriteKind::Temporary { is_transfer: false };
    // Until it is told that the old one is gone: what comes later must be told of later.
    let meanwhile = std::cell::Cell::new(None);
    let runtime = tokio::runtime::Handle::current();
    tokio::task::block_in_place(|| {
        let create = |_: &Deletion| {
            let block = block(1);
            let created = dataset.create(&block, GS, kind, &wish, CHECKSUM);
            meanwhile.set(Some(runtime.block_on(created).is_err()));
        };
        dataset.invalidate((BlockId(1), GS), dataset.given(), create).unwrap();
    });
    assert_eq!(meanwhile.get(), Some(true));
    assert!(dataset.create(&block(1), GS, kind, &wish, CHECKSUM).await.is_ok());
}

/// Bytes that a file takes on its disk, and its length.
fn room(path: &Path) -> (u64, u64) {
    use std::os::unix::fs::MetadataExt;
    let found = fs::metadata(path).unwrap();
    (found.blocks() * 512, found.len())
}

/// Writes a replica that is given room ahead on its disk, if any is there.
async fn long_writer(dataset: &Arc<Dataset>, id: i64) -> ReplicaWriter {
    let mut writer = new_writer(dataset, id).await;
    (0..6).for_each(|_| write(&mut writer, 256 << 10));
    writer.acks().note(writer.len());
    writer
}

#[tokio::test]
async fn room_ahead_of_a_replica_goes_back_when_it_is_complete_or_found_again() {
    /// What a file system may take beyond the bytes, for itself.
    const SLACK: u64 = 64 << 10;
    const LEN: u64 = 6 << 18;
    let dir = tempfile::tempdir().unwrap();
    let dirs = [dir.path().to_path_buf()];
    let dataset = open(&dirs, 0);
    let is_given = sys::is_ext4(dir.path());
    // Others set room aside as they like.
    let most = if is_given { LEN + SLACK } else { u64::MAX };

    let writer = long_writer(&dataset, 1).await;
    let (taken, len) = room(&writer.opening.files.data);
    assert_eq!((taken > LEN + (3 << 20), len), (is_given, LEN));
    assert_eq!(writer.finalize().await.unwrap().len, LEN);
    let files = dataset.placed(BlockId(1)).unwrap().files().unwrap();
    let (taken, len) = room(&files.data);
    assert!(taken <= most && len == LEN, "{taken} {len}");

    // The writer went away; a later one completes the replica.
    drop(long_writer(&dataset, 2).await);
    let again = dataset.recover_rbw(&block(2), NEXT_GS, (0, LEN)).await.unwrap();
    assert_eq!(again.finalize().await.unwrap().len, LEN);
    let files = dataset.placed(BlockId(2)).unwrap().files().unwrap();
    assert!(room(&files.data).0 <= most);

    // The DataNode ended meanwhile.
    drop(long_writer(&dataset, 3).await);
    let path = dataset.placed(BlockId(3)).unwrap().files().unwrap().data;
    assert_eq!(room(&path).0 > LEN + (3 << 20), is_given);
    dataset.close();
    drop(dataset);
    let dataset = open(&dirs, 0);
    let path = dataset.placed(BlockId(3)).unwrap().files().unwrap().data;
    let (taken, len) = room(&path);
    assert!(taken <= most && len == LEN, "{taken} {len}");
}
