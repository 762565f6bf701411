//! Files on disks change behind everybody's back: it is noticed, no wrong byte is read, and it is repaired.

use crate::cluster::*;
use cairn_client::{
    ChecksumKind, ClientConfig, CreateOptions, FaultKind, FileSystem, ScrubOptions,
};
use cairn_codec::crc::chunk_crcs;
use cairn_datanode::DataNodeConfig;
use cairn_namenode::NameNodeConfig;
use cairn_stripe::UnitIndex;
use std::path::Path;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const POLICY: &str = "RS-3-2-1024k";
const PATIENCE: Duration = Duration::from_secs(60);

/// Mends at once, and reads every block again and again.
fn scans_always(namenode: &mut NameNodeConfig, datanode: &mut DataNodeConfig) {
    mends_at_once(namenode, datanode);
    datanode.scan_bytes_per_second = 1 << 30;
    datanode.scan_period = Duration::from_millis(200);
}

/// Mends at once what others find.
fn scans_never(namenode: &mut NameNodeConfig, datanode: &mut DataNodeConfig) {
    mends_at_once(namenode, datanode);
    namenode.scrub_period = Duration::ZERO;
    namenode.http_addr = Some(any_port());
    datanode.scan_bytes_per_second = 0;
}

/// Chunks with CRC32, of which no record is kept.
fn without_records(client: &mut ClientConfig) {
    client.checksum = ChecksumKind::Crc32;
}

fn copies(count: u16) -> CreateOptions {
    CreateOptions { overwrite: true, replication: Some(count), ..CreateOptions::default() }
}

/// Changes a byte of a block file, and its CRC to fit.
fn forge((data, meta): &(std::path::PathBuf, std::path::PathBuf), at: usize) {
    let (mut bytes, mut crcs) = (std::fs::read(data).unwrap(), std::fs::read(meta).unwrap());
    bytes[at] ^= 0x55;
    let kind = ChecksumKind::from_id(crcs[2]).unwrap();
    chunk_crcs(kind, 512, &bytes, &mut crcs[7..]);
    std::fs::write(data, bytes).unwrap();
    std::fs::write(meta, crcs).unwrap();
}

/// Storages that hold a unit (unit 0: a replica) of a file's first block.
async fn storages(fs: &FileSystem, path: &str, unit: u8) -> Vec<String> {
    let block = first_block(fs, path).await;
    let here = block.locations.iter().filter(|at| at.unit.0 == unit);
    here.map(|at| at.storage_id.clone()).collect()
}

/// Waits until there are as many good places of a unit as there were, the one that `bad` names not among them.
async fn wait_replaced(fs: &FileSystem, path: &str, unit: u8, before: &[String], bad: &str) {
    let start = Instant::now();
    loop {
        let now = storages(fs, path, unit).await;
        if now.len() >= before.len() && !now.iter().any(|storage| storage == bad) {
            return;
        }
        assert!(
            start.elapsed() < PATIENCE,
            "{path} unit {unit} is not repaired: {now:?} after {before:?}"
        );
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// The storage whose folder a file lies in.
fn storage_of(path: &Path) -> String {
    let version = path.ancestors().find_map(|dir| {
        let is_root = dir.file_name()?.to_str()?.starts_with("data");
        std::fs::read_to_string(dir.join("current/VERSION")).ok().filter(|_| is_root)
    });
    let version = version.unwrap();
    version.lines().find_map(|line| line.strip_prefix("storageID=")).unwrap().to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn flipped_bits_are_found_by_scanners_and_repaired_while_reads_stay_right() {
    let cluster = Cluster::start_tuned(7, scans_always, |_| {}).await;
    let fs = cluster.fs.clone();
    fs.enable_policy(POLICY).await.unwrap();
    let mut seed = 0x5eed_u64;
    let mut work = Vec::new();
    for number in 0..8u8 {
        let path = format!("/{number}");
        let data = bytes(number.into(), (2 << 20) + 4097 * usize::from(number));
        let options = if number % 2 == 0 { striped(POLICY, 2 << 20) } else { copies(3) };
        put(&fs, &path, &data, &options).await.unwrap();
        work.push((path, data));
    }
    let mut flipped = Vec::new();
    for (number, (path, _)) in work.iter().enumerate() {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let block = first_block(&fs, path).await.block;
        let unit = if number % 2 == 0 { (seed >> 20) as u8 % 5 } else { 0 };
        let id = if number % 2 == 0 { block.id.internal(UnitIndex(unit)).0 } else { block.id.0 };
        let files = cluster.block_files(id);
        let before = storages(&fs, path, unit).await;
        assert_eq!(files.len(), before.len());
        let (data, meta) = &files[(seed >> 24) as usize % files.len()];
        flip([data, meta][number / 2 % 2], seed >> 28);
        flipped.push((path, unit, before, storage_of(data)));
    }
    for (path, unit, before, bad) in flipped {
        for (path, data) in &work {
            assert_same(&get(&fs, path).await.unwrap(), data, path);
        }
        wait_replaced(&fs, path, unit, &before, &bad).await;
    }
    for (path, data) in &work {
        assert_same(&get(&fs, path).await.unwrap(), data, path);
        let scrub = fs.scrub(path, &ScrubOptions::default(), &|_| ()).await.unwrap();
        assert_eq!(scrub.faults, [], "{path}");
    }
}

/// FIELD-NOTES row 6: good checksums of wrong bytes prove nothing; the record does.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn row_6_bytes_replaced_with_their_checksums_are_found_by_scanners() {
    let mut cluster = Cluster::start_tuned(7, scans_always, |_| {}).await;
    let fs = cluster.fs.clone();
    fs.enable_policy(POLICY).await.unwrap();
    let data = bytes(6, (5 << 20) + 77);
    put(&fs, "/group", &data, &striped(POLICY, 2 << 20)).await.unwrap();
    put(&fs, "/copies", &data, &copies(3)).await.unwrap();
    let unit = first_block(&fs, "/group").await.block.id.internal(UnitIndex(1)).0;
    let copy = first_block(&fs, "/copies").await.block.id.0;
    for (path, number, id) in [("/group", 1, unit), ("/copies", 0, copy)] {
        let before = storages(&fs, path, number).await;
        let files = cluster.block_files(id).swap_remove(0);
        forge(&files, 1000);
        wait_replaced(&fs, path, number, &before, &storage_of(&files.0)).await;
        assert_same(&get(&fs, path).await.unwrap(), &data, path);
    }
    cluster.kill_units("/group", &[0, 3]).await;
    assert_same(&get(&fs, "/group").await.unwrap(), &data, "from the rebuilt unit");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_that_a_reader_finds_to_be_corrupt_is_replaced() {
    let cluster = Cluster::start_tuned(5, scans_never, |_| {}).await;
    let fs = cluster.fs.clone();
    let data = bytes(9, 1 << 20);
    put(&fs, "/f", &data, &copies(3)).await.unwrap();
    let id = first_block(&fs, "/f").await.block.id.0;
    let before = storages(&fs, "/f", 0).await;
    let bad = cluster.block_files(id).swap_remove(0).0;
    flip(&bad, 77_777);
    let storage = storage_of(&bad);
    let start = Instant::now();
    // Which replica a reader takes first is left to chance.
    while storages(&fs, "/f", 0).await.contains(&storage) {
        assert!(start.elapsed() < PATIENCE, "no reader has reported it");
        assert_same(&get(&fs, "/f").await.unwrap(), &data, "with a corrupt replica");
    }
    wait_replaced(&fs, "/f", 0, &before, &storage).await;
    while bad.exists() {
        assert!(start.elapsed() < PATIENCE, "the bad replica is not deleted");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// One wrong unit or replica in a file of its own for each; what the scrub must call it.
async fn scrub_and_repair(
    cluster: &Cluster,
    path: &str,
    data: &[u8],
    unit: Option<u8>,
    harm: impl Fn(&(std::path::PathBuf, std::path::PathBuf)),
    is_it: impl Fn(&FaultKind) -> bool,
) {
    let fs = &cluster.fs;
    let options = ScrubOptions { report: true, ..ScrubOptions::default() };
    let mut clean = fs.scrub(path, &options, &|_| ()).await.unwrap();
    let start = Instant::now();
    // A file is closed before the last of its DataNodes has told what it holds.
    while clean.faults.iter().any(|fault| matches!(fault.kind, FaultKind::Missing)) {
        assert!(start.elapsed() < PATIENCE, "{:?}", clean.faults);
        tokio::time::sleep(Duration::from_millis(20)).await;
        clean = fs.scrub(path, &options, &|_| ()).await.unwrap();
    }
    assert_eq!((&clean.faults[..], clean.blocks), (&[][..], 1), "{path}");
    let group = first_block(fs, path).await.block.id;
    let id = unit.map_or(group, |unit| group.internal(UnitIndex(unit)));
    let files = cluster.block_files(id.0).swap_remove(0);
    harm(&files);
    let found = fs.scrub(path, &options, &|_| ()).await.unwrap();
    let [fault] = &found.faults[..] else { panic!("{path}: {:?}", found.faults) };
    assert!(is_it(&fault.kind), "{path}: {fault:?}");
    assert_eq!((fault.unit.map(|unit| unit.0), fault.reported), (unit, true), "{path}");
    let place = fault.location.as_ref().map(|at| at.storage_id.clone());
    assert_eq!(place, Some(storage_of(&files.0)), "{path}");
    assert!(fs.wait_repaired(path, &found.faults, PATIENCE).await.unwrap(), "{path}");
    assert_eq!(fs.scrub(path, &options, &|_| ()).await.unwrap().faults, [], "{path}");
    assert_same(&get(fs, path).await.unwrap(), data, path);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_scrub_names_what_differs_from_the_record_and_has_it_rebuilt() {
    let cluster = Cluster::start_tuned(7, scans_never, |_| {}).await;
    let fs = cluster.fs.clone();
    fs.enable_policy(POLICY).await.unwrap();
    let data = bytes(3, (4 << 20) + 5);
    for path in ["/forged", "/flipped"] {
        put(&fs, path, &data, &striped(POLICY, 2 << 20)).await.unwrap();
    }
    put(&fs, "/copy", &data, &copies(3)).await.unwrap();
    // Each unit's CRC is recorded, however late it was reported; the last ones a moment after the file is closed.
    for number in 0..12 {
        let path = format!("/recorded-{number}");
        put(&fs, &path, &data[..3 << 20], &striped(POLICY, 1 << 20)).await.unwrap();
        let start = Instant::now();
        let options = ScrubOptions::default();
        while fs.scrub(&path, &options, &|_| ()).await.unwrap().compared_with_record < 5 {
            assert!(start.elapsed() < PATIENCE, "{path} lacks records");
        }
    }
    let is_forged = |kind: &FaultKind| matches!(kind, FaultKind::NotAsWritten { .. });
    scrub_and_repair(&cluster, "/forged", &data, Some(4), |f| forge(f, 700_000), is_forged).await;
    scrub_and_repair(&cluster, "/copy", &data, None, |f| forge(f, 3), is_forged).await;
    let is_flipped = |kind: &FaultKind| *kind == FaultKind::BadChunk { offset: 512 };
    scrub_and_repair(&cluster, "/flipped", &data, Some(0), |f| flip(&f.0, 5000), is_flipped).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_scrub_finds_the_odd_one_out_where_there_is_no_record() {
    let cluster = Cluster::start_tuned(7, scans_never, without_records).await;
    let fs = cluster.fs.clone();
    for policy in [POLICY, "XOR-2-1-1024k"] {
        fs.enable_policy(policy).await.unwrap();
    }
    let is_odd = |kind: &FaultKind| *kind == FaultKind::OddOneOut;
    // A full group; one whose last stripe is short; one of less than a stripe, where a data unit is empty.
    for (number, len) in [3 << 20, (4 << 20) + 5, (1 << 20) + 900].into_iter().enumerate() {
        let (path, data) = (format!("/{number}"), bytes(number as u64, len));
        put(&fs, &path, &data, &striped(POLICY, 2 << 20)).await.unwrap();
        let unit = [2, 3, 1][number];
        scrub_and_repair(&cluster, &path, &data, Some(unit), |f| forge(f, 500), is_odd).await;
    }
    let data = bytes(3, 1 << 20);
    put(&fs, "/copy", &data, &copies(3)).await.unwrap();
    scrub_and_repair(&cluster, "/copy", &data, None, |f| forge(f, 3), is_odd).await;
    // One spare unit tells that something is wrong, but not what.
    put(&fs, "/xor", &data, &striped("XOR-2-1-1024k", 2 << 20)).await.unwrap();
    let id = first_block(&fs, "/xor").await.block.id.internal(UnitIndex(0)).0;
    forge(&cluster.block_files(id)[0], 9);
    let options = ScrubOptions { report: true, ..ScrubOptions::default() };
    let scrub = fs.scrub("/xor", &options, &|_| ()).await.unwrap();
    assert_eq!(scrub.faults.len(), 1);
    let fault = &scrub.faults[0];
    assert_eq!((&fault.kind, fault.unit, fault.reported), (&FaultKind::Disagrees, None, false));
    assert_eq!((scrub.compared_with_record, scrub.parity_checked), (0, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_scrub_of_a_group_with_a_lost_unit_compares_the_others() {
    let mut cluster = Cluster::start_tuned(5, scans_never, without_records).await;
    let fs = cluster.fs.clone();
    fs.enable_policy(POLICY).await.unwrap();
    put(&fs, "/f", &bytes(4, 5 << 20), &striped(POLICY, 2 << 20)).await.unwrap();
    cluster.kill_units("/f", &[1]).await;
    let scrub = fs.scrub("/f", &ScrubOptions::default(), &|_| ()).await.unwrap();
    let [fault] = &scrub.faults[..] else { panic!("{:?}", scrub.faults) };
    let kind_fits = matches!(fault.kind, FaultKind::Missing | FaultKind::Unreadable(_));
    assert!(kind_fits && fault.unit == Some(UnitIndex(1)) && !fault.reported, "{fault:?}");
    assert_eq!(scrub.parity_checked, 1);
}

/// Waits until a CRC is recorded of each replica or unit of a file, and that all of them fit.
async fn wait_recorded(fs: &FileSystem, path: &str, count: u64) {
    let start = Instant::now();
    loop {
        let scrub = fs.scrub(path, &ScrubOptions::default(), &|_| ()).await.unwrap();
        if scrub.compared_with_record == count {
            assert_eq!(scrub.faults, [], "{path}");
            return;
        }
        assert!(start.elapsed() < PATIENCE, "{path}: {scrub:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_altered_without_a_record_is_found_and_repaired_in_the_background() {
    let cluster = Cluster::start_tuned(7, scans_never, without_records).await;
    let fs = cluster.fs.clone();
    for policy in [POLICY, "XOR-2-1-1024k"] {
        fs.enable_policy(policy).await.unwrap();
    }
    let mut altered = Vec::new();
    for (number, len) in [3 << 20, (4 << 20) + 5, (1 << 20) + 900].into_iter().enumerate() {
        let (path, data) = (format!("/{number}"), bytes(number as u64, len));
        put(&fs, &path, &data, &striped(POLICY, 2 << 20)).await.unwrap();
        altered.push((path, data, Some([2, 3, 1][number])));
    }
    let data = bytes(3, 1 << 20);
    put(&fs, "/copy", &data, &copies(3)).await.unwrap();
    altered.push(("/copy".to_string(), data.clone(), None));
    put(&fs, "/xor", &data, &striped("XOR-2-1-1024k", 2 << 20)).await.unwrap();
    put(&fs, "/good", &data, &striped(POLICY, 2 << 20)).await.unwrap();
    let mut before = Vec::new();
    for (path, _, unit) in &altered {
        let block = first_block(&fs, path).await.block.id;
        let id = unit.map_or(block, |unit| block.internal(UnitIndex(unit)));
        let files = cluster.block_files(id.0).swap_remove(0);
        before.push((storages(&fs, path, unit.unwrap_or(0)).await, storage_of(&files.0)));
        forge(&files, 500);
    }
    let xor = first_block(&fs, "/xor").await.block.id.internal(UnitIndex(0)).0;
    forge(&cluster.block_files(xor)[0], 9);

    cluster.scrub_every(Duration::from_millis(300));
    for ((path, data, unit), (before, bad)) in altered.iter().zip(before) {
        wait_replaced(&fs, path, unit.unwrap_or(0), &before, &bad).await;
        assert_same(&get(&fs, path).await.unwrap(), data, path);
    }
    // Of those that are shorter than a stripe, data units are empty.
    for (path, count) in [("/0", 5), ("/1", 5), ("/2", 4), ("/copy", 3), ("/good", 3)] {
        wait_recorded(&fs, path, count).await;
    }
    // Which unit is wrong is not known, so nothing is done to any, and nothing is recorded.
    let scrub = fs.scrub("/xor", &ScrubOptions::default(), &|_| ()).await.unwrap();
    assert_eq!((scrub.compared_with_record, scrub.faults.len()), (0, 1));
    assert_eq!(storages(&fs, "/xor", 0).await.len(), 1);
    // The operator is told.
    let start = Instant::now();
    let disagreeing = || cluster.namenode.node().cluster().blocks_that_disagree().count();
    while disagreeing() == 0 && start.elapsed() < PATIENCE {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let text = page(&cluster, "/fsck?ugi=root&path=/").await;
    let lines: Vec<&str> = text.lines().filter(|line| line.contains("DISAGREEING")).collect();
    assert_eq!(lines.len(), 1, "{text}");
    assert!(lines[0].starts_with("/xor: DISAGREEING units of BP-"), "{text}");
    assert!(text.ends_with("The filesystem under path '/' is HEALTHY"), "{text}");
    let text = page(&cluster, "/prom").await;
    assert!(text.contains("\ncairn_namenode_disagreeing_blocks 1\n"), "{text}");
}

/// What the NameNode's page of that name says.
async fn page(cluster: &Cluster, path: &str) -> String {
    let addr = cluster.namenode.http_addr.unwrap();
    let mut stream = tokio::net::TcpStream::connect(addr).await.unwrap();
    let request = format!("GET {path} HTTP/1.0\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer.split_once("\r\n\r\n").unwrap().1.to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_background_scrub_has_recorded_the_scanners_look_after() {
    let cluster = Cluster::start_tuned(7, scans_always, without_records).await;
    let fs = cluster.fs.clone();
    fs.enable_policy(POLICY).await.unwrap();
    let data = bytes(8, (4 << 20) + 5);
    put(&fs, "/f", &data, &striped(POLICY, 2 << 20)).await.unwrap();
    cluster.scrub_every(Duration::from_millis(300));
    wait_recorded(&fs, "/f", 5).await;
    cluster.scrub_every(Duration::ZERO);
    let before = storages(&fs, "/f", 4).await;
    let parity = first_block(&fs, "/f").await.block.id.internal(UnitIndex(4)).0;
    let files = cluster.block_files(parity).swap_remove(0);
    forge(&files, 600_000);
    wait_replaced(&fs, "/f", 4, &before, &storage_of(&files.0)).await;
    assert_same(&get(&fs, "/f").await.unwrap(), &data, "/f");
}

/// Where every DataNode has a unit already, the bad one is rebuilt where it was.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repair_in_the_same_place_is_seen() {
    let cluster = Cluster::start_tuned(5, scans_never, |_| {}).await;
    let fs = cluster.fs.clone();
    fs.enable_policy(POLICY).await.unwrap();
    let data = bytes(3, (4 << 20) + 5);
    put(&fs, "/file", &data, &striped(POLICY, 2 << 20)).await.unwrap();
    let is_flipped = |kind: &FaultKind| *kind == FaultKind::BadChunk { offset: 512 };
    scrub_and_repair(&cluster, "/file", &data, Some(1), |f| flip(&f.0, 5000), is_flipped).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_replica_that_moves_from_under_a_scrub_is_no_fault() {
    let mut cluster = Cluster::start_tuned(3, scans_never, |_| {}).await;
    let fs = cluster.fs.clone();
    let data = bytes(3, 8 << 20);
    put(&fs, "/file", &data, &copies(2)).await.unwrap();
    let before = reported(&fs, "/file", |block| block.locations.len() == 2).await;
    let second = before.locations[1].addr.uuid.clone();
    let moved = std::sync::Once::new();
    let victim = std::sync::Mutex::new(Some(&mut cluster));
    // The first replica is being read when the second goes elsewhere.
    let progress = |_| {
        moved.call_once(|| {
            let cluster = victim.lock().unwrap().take().unwrap();
            let elsewhere = async {
                cluster.kill(&second);
                cluster.declare_dead(&second);
                let is_elsewhere = |block: &cairn_client::FileBlock| {
                    block.locations.len() == 2
                        && block.locations.iter().all(|at| at.addr.uuid != second)
                };
                reported(&fs, "/file", is_elsewhere).await;
            };
            tokio::task::block_in_place(|| {
                tokio::runtime::Handle::current().block_on(elsewhere);
            });
        });
    };
    let scrub = fs.scrub("/file", &ScrubOptions::default(), &progress).await.unwrap();
    assert_eq!(scrub.faults, []);
    assert!(moved.is_completed());
}
