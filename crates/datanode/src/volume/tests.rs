use super::check::SILENT;
use super::*;
use cairn_replica::Replica;
use layout::{FileName, parse_name};
use std::sync::mpsc;
use std::thread;
use std::time::Instant;

fn node() -> NodeVersion {
    NodeVersion { storage_id: String::new(), cluster_id: "CID-1".into(), datanode_uuid: "u".into() }
}

fn pool() -> PoolVersion {
    PoolVersion { namespace_id: u32::MAX - 6, block_pool_id: "BP-1-127.0.0.1-9".into(), c_time: 7 }
}

fn open(dir: &Path) -> Volume {
    Volume::open(&dir.to_path_buf().into(), 0, 0o700).unwrap().0
}

#[test]
fn names_are_hadoops() {
    let (id, gs) = (BlockId(-9_223_372_036_854_775_791), GenerationStamp(1001));
    assert_eq!(parse_name(&layout::block_name(id)), FileName::Block(id));
    assert_eq!(parse_name(&layout::meta_name(id, gs)), FileName::Meta(id, gs));
    for other in
        ["blk_", "blk_x", "blk_1.meta", "blk_1_2", "block_1", "blk_1_2.meta.tmp", "VERSION"]
    {
        assert_eq!(parse_name(other), FileName::Other, "{other}");
    }
}

#[test]
fn finalized_folders_come_from_the_blocks_number() {
    let dirs = PoolDirs::new(Path::new("/d"), "BP-1");
    let base = "/d/current/BP-1/current/finalized";
    for (id, sub) in [
        (1_073_741_825, "subdir0/subdir0"),
        (0x12_3456, "subdir18/subdir20"),
        (-1, "subdir31/subdir31"),
    ] {
        assert_eq!(dirs.finalized_dir(BlockId(id)), Path::new(base).join(sub));
    }
}

#[test]
fn the_name_of_a_folder_that_another_one_has_made_is_made_durable() {
    let root = tempfile::tempdir().unwrap();
    let volume = open(root.path());
    volume.latencies.sampling.set(100);
    volume.open_pool(&node(), &pool()).unwrap();
    let dir = volume.pool().unwrap().finalized_dir(BlockId(7));
    let syncs = |dir: &Path, is_stable| {
        let before = volume.latency_samples(DiskWork::Sync);
        volume.make_leaf_dir(dir, is_stable).unwrap();
        assert!(dir.is_dir());
        volume.latency_samples(DiskWork::Sync) - before
    };
    // By another thread that has not synced it yet, or by a process that was stopped.
    fs::create_dir_all(&dir).unwrap();
    assert_eq!(syncs(&dir, false), 0);
    assert_eq!([syncs(&dir, true), syncs(&dir, true)], [2, 0]);
    let other = volume.pool().unwrap().finalized_dir(BlockId(1 << 16));
    assert_eq!([syncs(&other, true), syncs(&other, true)], [2, 0]);
}

#[test]
fn identities_survive_and_strangers_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let first = open(dir.path());
    first.open_pool(&node(), &pool()).unwrap();
    let storage_id = first.storage_id().to_string();
    drop(first);
    let again = open(dir.path());
    assert_eq!(again.storage_id(), storage_id);
    assert_eq!(PoolVersion::list(dir.path()).unwrap(), [pool()]);
    for stranger in [
        (NodeVersion { cluster_id: "CID-2".into(), ..node() }, pool()),
        (NodeVersion { datanode_uuid: "v".into(), ..node() }, pool()),
        (node(), PoolVersion { namespace_id: 6, ..pool() }),
    ] {
        assert!(again.open_pool(&stranger.0, &stranger.1).is_err(), "{stranger:?}");
    }
    again.open_pool(&node(), &pool()).unwrap();
}

#[test]
fn a_version_file_of_hadoop_is_read_and_a_bad_one_refused() {
    let dir = tempfile::tempdir().unwrap();
    let current = dir.path().join("current");
    fs::create_dir(&current).unwrap();
    let text = "#Mon Jan 05 10:00:00 UTC 2026\nstorageID=DS-1\nclusterID=CID\\:1\ncTime=0\n\
        datanodeUuid=u-1\nstorageType=DATA_NODE\nlayoutVersion=-57\n";
    let write = |text: &str| fs::write(current.join("VERSION"), text).unwrap();
    write(text);
    let found = NodeVersion::read(dir.path()).unwrap().unwrap();
    assert_eq!((found.storage_id.as_str(), found.cluster_id.as_str()), ("DS-1", "CID:1"));
    for (from, to) in [("-57", "-58"), ("DATA_NODE", "NAME_NODE"), ("storageID=DS-1\n", "")] {
        write(&text.replace(from, to));
        assert!(NodeVersion::read(dir.path()).is_err(), "{to}");
    }
}

/// Writes a replica with CRCs of 16-byte chunks over its first `covered` bytes.
fn plant(files: &ReplicaFiles, len: usize, covered: usize) {
    let data: Vec<u8> = (0..len as u8).collect();
    fs::create_dir_all(files.data.parent().unwrap()).unwrap();
    fs::write(&files.data, &data).unwrap();
    let mut meta = MetaHeader::new(ChecksumKind::Crc32.id().into(), 16).unwrap().encode().to_vec();
    for chunk in data[..covered].chunks(16) {
        meta.extend_from_slice(&ChecksumKind::Crc32.update(0, chunk).to_be_bytes());
    }
    fs::write(&files.meta, meta).unwrap();
}

#[test]
fn scanning_finds_finalized_replicas_and_cuts_open_ones_to_good_chunks() {
    let dir = tempfile::tempdir().unwrap();
    let volume = open(dir.path());
    volume.open_pool(&node(), &pool()).unwrap();
    let gs = GenerationStamp(5);
    let files = |id, state| volume.files(BlockId(id), gs, state).unwrap();
    plant(&files(1, ReplicaState::Finalized), 40, 40);
    plant(&files(70_000, ReplicaState::Finalized), 8, 8);
    // Id, bytes, bytes with CRCs, bytes that count.
    let open = [
        (2, 40, 40, 40),
        (3, 40, 32, 32),
        (4, 40, 0, 0),
        (5, 32, 40, 32),
        (6, 0, 0, 0),
        (7, 41, 40, 40),
    ];
    for (id, len, covered, _) in open {
        plant(&files(id, ReplicaState::Rbw), len.max(covered), covered);
        File::options()
            .write(true)
            .open(files(id, ReplicaState::Rbw).data)
            .unwrap()
            .set_len(len as u64)
            .unwrap();
    }
    fs::remove_file(files(70_000, ReplicaState::Finalized).meta).unwrap();

    let mut found: Vec<_> = scan::scan(&volume, true)
        .unwrap()
        .iter()
        .map(|r| (r.id().0, r.gs().0, r.on_disk_len(), r.state()))
        .collect();
    found.sort();
    let mut want: Vec<_> =
        open.iter().map(|&(id, _, _, len)| (id, 5, len as u64, ReplicaState::Rwr)).collect();
    want.push((1, 5, 40, ReplicaState::Finalized));
    // Without CRCs the stamp is not known: the NameNode finds such a replica corrupt.
    want.push((70_000, 0, 8, ReplicaState::Finalized));
    want.sort();
    assert_eq!(found, want);
    let cut = fs::metadata(files(7, ReplicaState::Rbw).data).unwrap().len();
    assert_eq!(cut, 40, "bytes that no CRC covers are cut off");
    let crcs = fs::metadata(files(5, ReplicaState::Rbw).meta).unwrap().len();
    assert_eq!(crcs, 7 + 2 * 4, "CRCs without bytes are cut off");
    assert!(volume.usage().unwrap().used > 40);
}

#[test]
fn files_that_a_stop_has_parted_come_together_where_the_crcs_are() {
    use ReplicaState::{Finalized, Rbw, Rwr};
    let dir = tempfile::tempdir().unwrap();
    let volume = open(dir.path());
    volume.open_pool(&node(), &pool()).unwrap();
    let files = |id, gs, state| volume.files(BlockId(id), GenerationStamp(gs), state).unwrap();
    let move_meta = |from: ReplicaFiles, to: ReplicaFiles| {
        fs::create_dir_all(to.meta.parent().unwrap()).unwrap();
        fs::rename(from.meta, to.meta).unwrap();
    };
    // Stopped while it was finalized, and while it was opened to append.
    plant(&files(1, 5, Rbw), 40, 40);
    move_meta(files(1, 5, Rbw), files(1, 5, Finalized));
    plant(&files(2, 5, Finalized), 40, 40);
    move_meta(files(2, 5, Finalized), files(2, 6, Rbw));
    // CRCs that are left from something else.
    plant(&files(3, 5, Rbw), 40, 20);
    move_meta(files(3, 5, Rbw), files(3, 5, Finalized));
    plant(&files(4, 5, Finalized), 40, 40);
    fs::copy(files(4, 5, Finalized).meta, files(4, 6, Rbw).meta).unwrap();

    let scan = || {
        let replicas = scan::scan(&volume, true).unwrap().into_iter();
        let line = |r: Replica| (r.id().0, r.gs().0, r.on_disk_len(), r.state());
        let mut found: Vec<_> = replicas.map(line).collect();
        found.sort();
        found
    };
    let want = [(1, 5, 40, Finalized), (2, 6, 40, Rwr), (3, 0, 0, Rwr), (4, 5, 40, Finalized)];
    assert_eq!(scan(), want);
    assert_eq!(scan(), want);
}

#[test]
fn only_the_reserve_that_others_do_not_use_yet_is_kept_from_replicas() {
    let disk = |free, available| DiskSpace { total: 1000, free, available };
    let any = u64::MAX;
    // Disk; reserve and bound; used and promised; capacity, remaining and used by others.
    for (disk, bounds, (used, promised), want) in [
        (disk(1000, 1000), (0, any), (0, 0), (1000, 1000, 0)),
        // Nobody uses the reserve.
        (disk(700, 700), (100, any), (300, 0), (900, 600, 0)),
        // Others use 60 of it: 40 are to be kept.
        (disk(640, 640), (100, any), (300, 0), (900, 600, 0)),
        // They use more than it.
        (disk(500, 500), (100, any), (300, 0), (900, 500, 100)),
        (disk(500, 500), (100, any), (300, 120), (900, 380, 100)),
        // What the system keeps for itself is neither used nor available.
        (disk(700, 650), (100, any), (300, 0), (900, 550, 0)),
        (disk(500, 500), (100, 400), (300, 0), (400, 100, 100)),
        // More counted than there is, and a reserve as large as the disk.
        (disk(900, 900), (100, any), (950, 0), (900, 0, 0)),
        (disk(900, 900), (2000, any), (0, 0), (0, 0, 0)),
    ] {
        let usage = Usage::of(disk, bounds, used, promised);
        assert_eq!(usage.used, used);
        let got = (usage.capacity, usage.remaining, usage.non_dfs_used);
        assert_eq!(got, want, "{disk:?}, {bounds:?}, {used}, {promised}");
    }
}

/// Has `work` do something that ends only when `meanwhile` is over, which is called once that has begun.
fn while_hanging(work: impl FnOnce(&dyn Fn()) + Send, meanwhile: impl FnOnce()) {
    let (begun, has_begun) = mpsc::channel();
    let (release, hang) = mpsc::channel::<()>();
    thread::scope(|scope| {
        scope.spawn(move || {
            work(&|| {
                begun.send(()).unwrap();
                // The end of the channel is what is waited for.
                let _ = hang.recv();
            })
        });
        has_begun.recv().unwrap();
        meanwhile();
        drop(release);
    });
}

#[test]
fn a_disk_on_which_nothing_gets_on_tells_no_room_until_it_does() {
    let dir = tempfile::tempdir().unwrap();
    let volume = open(dir.path());
    while_hanging(
        |hangs| volume.quick(hangs),
        || {
            let start = Instant::now();
            let error = loop {
                match volume.check_not_silent() {
                    Err(error) => break error,
                    Ok(()) => assert!(start.elapsed() < 20 * SILENT),
                }
                // What is answered from memory says nothing about the disk.
                let _ = volume.usage();
                thread::sleep(SILENT / 30);
            };
            assert!(start.elapsed() >= SILENT && error.failed_path().is_some(), "{error}");
            assert!(volume.usage().is_err());
            assert!(volume.check_answered_in(2 * SILENT).is_ok());
            assert!(volume.check_answered_in(SILENT / 2).is_err());
        },
    );
    assert!(volume.usage().is_ok());
    assert!(volume.check_answered_in(Duration::ZERO).is_ok(), "nobody waits for it");
}

#[test]
fn a_disk_whose_syncs_do_not_end_gets_no_new_replicas_where_others_can_take_them() {
    let dir = tempfile::tempdir().unwrap();
    let volume = open(dir.path());
    while_hanging(
        |hangs| volume.syncing(hangs),
        || {
            let start = Instant::now();
            while !volume.is_avoided() {
                assert!(start.elapsed() < 20 * SILENT);
                // What is answered from memory says nothing about the disk.
                volume.quick(|| ());
                thread::sleep(SILENT / 30);
            }
            assert!(start.elapsed() >= SILENT);
            assert!(volume.usage().is_ok(), "a disk with much to do may be as slow");
            assert!(volume.check_answered_in(2 * SILENT).is_ok());
            assert!(volume.check_answered_in(SILENT / 2).is_err(), "one that hangs has failed");
            let file = dir.path().join("current/VERSION");
            std::fs::create_dir_all(dir.path().join("current")).unwrap();
            volume.sync(&File::create(&file).unwrap(), &file).unwrap();
            assert!(!volume.is_avoided(), "something gets on");
        },
    );
    assert!(!volume.is_avoided() && volume.check_answered_in(Duration::ZERO).is_ok());
}

#[test]
fn a_check_that_does_not_end_is_no_answer() {
    let dir = tempfile::tempdir().unwrap();
    let volume = open(dir.path());
    let short = Duration::from_millis(1);
    assert!(!volume.is_check_due(Duration::from_secs(60)), "it has just been opened");
    thread::sleep(2 * short);
    assert!(volume.is_check_due(short));
    assert!(volume.check_answered_in(Duration::ZERO).is_ok(), "nobody has asked");
    // Opening a pipe to write waits for who reads it.
    let probe = dir.path().join("current/.probe");
    std::fs::create_dir_all(probe.parent().unwrap()).unwrap();
    let made = std::process::Command::new("mkfifo").arg(&probe).status().unwrap();
    assert!(made.success());
    thread::scope(|scope| {
        let checking = scope.spawn(|| volume.check());
        let start = Instant::now();
        while volume.check_answered_in(10 * short).is_ok() {
            assert!(start.elapsed() < 20 * SILENT);
            thread::sleep(short);
        }
        assert!(!volume.is_check_due(short) && volume.check().is_ok(), "one runs");
        // Whoever opens both ends lets it go on; a pipe cannot be synced.
        let reader = File::options().read(true).write(true).open(&probe).unwrap();
        assert!(checking.join().unwrap().is_err());
        drop(reader);
    });
    assert!(volume.check_answered_in(Duration::ZERO).is_ok());
    std::fs::remove_file(&probe).unwrap();
    assert!(volume.check().is_ok());
}
