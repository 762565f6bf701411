//! What the scanners find on disks that were changed behind the DataNode's back.

use crate::cluster::*;
use cairn_codec::crc::crc32c;
use cairn_datanode::DataNodeConfig;
use cairn_wire::proto::datanode::ReceivedDeletedBlockInfoProtoBlockStatus::{Deleted, Received};
use cairn_wire::proto::hdfs::BlockOpResponseProto;
use cairn_wire::transfer::Op;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

const ID: i64 = 1_073_741_825;
const UNIT: i64 = i64::MIN + 16 * 3 + 4;
const LEN: usize = 9 * CHUNK + 77;

/// Walks over everything again and again.
fn always(config: &mut DataNodeConfig) {
    config.scan_bytes_per_second = 1 << 30;
    config.scan_period = Duration::from_millis(20);
    config.directory_scan_interval = Duration::ZERO;
}

/// Compares folders again and again, and never reads blocks.
fn folders_only(config: &mut DataNodeConfig) {
    config.scan_bytes_per_second = 0;
    config.directory_scan_interval = Duration::from_millis(20);
}

/// Looks at suspects only: the first walk is over at once, the next one far away.
fn suspects_only(config: &mut DataNodeConfig) {
    always(config);
    config.scan_period = Duration::from_secs(3600);
}

/// The block file and the meta file.
fn files(cluster: &Cluster, id: i64) -> [PathBuf; 2] {
    let found = cluster.files(0, id);
    [0, 1].map(|at: usize| cluster.dir(0).join(&found[at]))
}

fn flip(path: &PathBuf, bit: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[bit / 8] ^= 1 << (bit % 8);
    fs::write(path, bytes).unwrap();
}

async fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    for _ in 0..1000 {
        if is_so() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("waited in vain for {what}");
}

async fn wait_scans(cluster: &Cluster, what: &str, is_so: impl Fn(u64) -> bool) {
    wait_until(what, || is_so(cluster.node(0).volume_scans()[0].scans_finished)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn good_replicas_are_summed_and_never_reported_bad() {
    let cluster = Cluster::start_tuned(1, always).await;
    let data = bytes(LEN);
    for (at, len) in [1, CHUNK, LEN].into_iter().enumerate() {
        write_block(&cluster, &[0], ID + at as i64, 1001, &data[..len]).await;
        let sum = (ID + at as i64, crc32c(0, &data[..len]));
        cluster.wait("the sum", |record| record.scanned.contains(&sum)).await;
    }
    // Appends, and so replaced CRCs and files that move, while the scanner walks.
    for gs in 1002..1022 {
        let open = block(ID + 2, gs - 1, LEN as u64 + (gs - 1002) * 10);
        let request = write_request(open, Stage::PipelineSetupAppend, Vec::new());
        let request = cairn_wire::proto::hdfs::OpWriteBlockProto {
            latest_generation_stamp: gs,
            max_bytes_rcvd: LEN as u64 + (gs - 1002) * 10,
            min_bytes_rcvd: LEN as u64 + (gs - 1002) * 10,
            ..request
        };
        let mut writer = Writer::open(&cluster, &[0], request).await;
        writer.offset = LEN as u64 + (gs - 1002) * 10;
        writer.write(&[gs as u8; 10], 1).await;
        writer.close(1).await;
    }
    let done = cluster.node(0).volume_scans()[0].scans_finished;
    wait_scans(&cluster, "another walk", |scans| scans > done + 2).await;
    assert_eq!(cluster.name_node.record.lock().unwrap().bad, []);
    let scan = &cluster.node(0).volume_scans()[0];
    assert!(scan.blocks_scanned >= 3 && scan.bytes_scanned > 0 && scan.bad_blocks == 0, "{scan:?}");
}

/// Every place where a bit may flip: of each file the first and last bits, some seeded ones between, and in the
/// meta file every bit of the header.
#[tokio::test(flavor = "multi_thread")]
async fn single_flipped_bits_are_found_wherever_they_are() {
    let cluster = Cluster::start_tuned(1, always).await;
    let data = bytes(LEN);
    let meta_len = 7 + 4 * LEN.div_ceil(CHUNK);
    let mut places = vec![(0, 0), (0, LEN * 8 - 1), (1, meta_len * 8 - 1)];
    places.extend((0..7 * 8).map(|bit| (1, bit)));
    let mut random = 0x9e37_79b9_u64;
    for at in 0..24 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        let (file, len) = [(0, LEN), (1, meta_len)][at % 2];
        places.push((file, (random >> 33) as usize % (len * 8)));
    }
    for (at, (file, bit)) in places.into_iter().enumerate() {
        let id = if at % 2 == 0 { ID + at as i64 } else { UNIT + 16 * at as i64 };
        write_block(&cluster, &[0], id, 1001, &data).await;
        flip(&files(&cluster, id)[file], bit);
        let bad = (id, cluster.uuid(0));
        let what = format!("bit {bit} of file {file}");
        cluster.wait(&what, |record| record.bad.contains(&bad)).await;
        // What was found need not be found again.
        files(&cluster, id).iter().for_each(|path| fs::remove_file(path).unwrap());
    }
}

/// Of a version that is not there nothing is sent, so no reader finds a wrong byte; of a type that says that there are no
/// CRCs readers would check nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_version_or_type_is_found_by_the_first_reader() {
    fn no_scanners(config: &mut DataNodeConfig) {
        folders_only(config);
        config.directory_scan_interval = Duration::ZERO;
    }
    let cluster = Cluster::start_tuned(1, no_scanners).await;
    for bit in 0..3 * 8 {
        let id = if bit % 2 == 0 { ID + bit as i64 } else { UNIT + 16 * bit as i64 };
        write_block(&cluster, &[0], id, 1001, &bytes(LEN)).await;
        flip(&files(&cluster, id)[1], bit);
        let mut stream = cluster.connect(0).await;
        assert!(read(&mut stream, block(id, 1001, 0), 0, 10).await.is_err());
        let bad = (id, cluster.uuid(0));
        cluster.wait("the report", |record| record.bad.contains(&bad)).await;
    }
}

/// Who wants to write on gets no replica of which nobody knows what its CRCs are.
#[tokio::test(flavor = "multi_thread")]
async fn a_replica_with_a_wrong_header_is_not_written_on() {
    let cluster = Cluster::start(1).await;
    write_block(&cluster, &[0], ID, 1001, &bytes(LEN)).await;
    flip(&files(&cluster, ID)[1], 0);
    let open = block(ID, 1001, LEN as u64);
    let mut request = write_request(open, Stage::PipelineSetupAppend, Vec::new());
    (request.latest_generation_stamp, request.min_bytes_rcvd) = (1002, LEN as u64);
    let mut stream = cluster.connect(0).await;
    stream.writer.send_op(Op::WriteBlock, &request).await.unwrap();
    assert!(stream.reader.read_message::<BlockOpResponseProto>("answer").await.is_err());
    let bad = (ID, cluster.uuid(0));
    cluster.wait("the report", |record| record.bad.contains(&bad)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_lengths_and_missing_meta_files_are_found() {
    for tune in [always as fn(&mut DataNodeConfig), folders_only] {
        let cluster = Cluster::start_tuned(1, tune).await;
        for at in 0..3 {
            write_block(&cluster, &[0], ID + at, 1001, &bytes(LEN)).await;
        }
        let cut = |path: &PathBuf, len: u64| {
            fs::File::options().write(true).open(path).unwrap().set_len(len).unwrap();
        };
        cut(&files(&cluster, ID)[0], LEN as u64 - CHUNK as u64);
        cut(&files(&cluster, ID + 1)[0], LEN as u64 + 1);
        fs::remove_file(&files(&cluster, ID + 2)[1]).unwrap();
        for at in 0..3 {
            let bad = (ID + at, cluster.uuid(0));
            cluster.wait("the report", |record| record.bad.contains(&bad)).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn block_files_that_vanish_and_appear_are_noticed() {
    let cluster = Cluster::start_tuned(1, folders_only).await;
    let data = bytes(LEN);
    write_block(&cluster, &[0], ID, 1001, &data).await;
    let paths = files(&cluster, ID);
    let kept = paths.each_ref().map(|path| fs::read(path).unwrap());
    fs::remove_file(&paths[0]).unwrap();
    cluster.wait_event(0, ID, Deleted).await;
    assert!(read(&mut cluster.connect(0).await, block(ID, 1001, 0), 0, 1).await.is_err());
    cluster.name_node.record.lock().unwrap().events.clear();
    wait_until("its meta file is deleted", || !paths[1].exists()).await;
    // Without it, it would be none.
    fs::write(&paths[0], &kept[0]).unwrap();
    fs::write(&paths[1], &kept[1]).unwrap();
    let event = cluster.wait_event(0, ID, Received).await;
    assert_eq!((event.block.num_bytes, event.crc32c), (Some(LEN as u64), None));
    let mut stream = cluster.connect(0).await;
    assert_eq!(read(&mut stream, block(ID, 1001, 0), 0, LEN as u64).await.unwrap(), data);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_block_file_that_is_put_back_before_the_next_walk_has_its_meta_file() {
    fn slowly(config: &mut DataNodeConfig) {
        config.directory_scan_interval = Duration::from_secs(3);
        config.scan_bytes_per_second = 0;
    }
    let cluster = Cluster::start_tuned(1, slowly).await;
    write_block(&cluster, &[0], ID, 1001, &bytes(LEN)).await;
    let paths = files(&cluster, ID);
    let kept = fs::read(&paths[0]).unwrap();
    fs::remove_file(&paths[0]).unwrap();
    cluster.wait_event(0, ID, Deleted).await;
    assert!(paths[1].exists());
    cluster.name_node.record.lock().unwrap().events.clear();
    fs::write(&paths[0], &kept).unwrap();
    cluster.wait_event(0, ID, Received).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_suspect_is_looked_at_out_of_turn() {
    use cairn_wire::proto::hdfs::{BlockOpResponseProto, ClientReadStatusProto, Status};
    let cluster = Cluster::start_tuned(1, suspects_only).await;
    wait_scans(&cluster, "the first walk", |scans| scans == 1).await;
    write_block(&cluster, &[0], ID, 1001, &bytes(LEN)).await;
    flip(&files(&cluster, ID)[0], 4000);
    // A reader that finds a bad CRC, and says so.
    let mut stream = cluster.connect(0).await;
    let request = cairn_wire::proto::hdfs::OpReadBlockProto {
        header: header(block(ID, 1001, 0)),
        offset: 0,
        len: LEN as u64,
        ..Default::default()
    };
    stream.writer.send_op(cairn_wire::transfer::Op::ReadBlock, &request).await.unwrap();
    let _: BlockOpResponseProto = stream.reader.read_message("answer").await.unwrap();
    while !stream.reader.read_packet().await.unwrap().header.last_packet {}
    let status = ClientReadStatusProto { status: Status::ErrorChecksum as i32 };
    stream.writer.send_message(&status).await.unwrap();
    let bad = (ID, cluster.uuid(0));
    cluster.wait("the report", |record| record.bad.contains(&bad)).await;
    assert_eq!(cluster.node(0).volume_scans()[0].scans_finished, 1);

    // A NameNode that was started again knows nothing of it: it is told, as long as that is so.
    let forget = || {
        let mut record = cluster.name_node.record.lock().unwrap();
        record.bad.clear();
        record.registrations.clear();
    };
    forget();
    cluster.wait("the report to one that registers it", |record| record.bad.contains(&bad)).await;
    flip(&files(&cluster, ID)[0], 4000);
    forget();
    let looked_at = cluster.node(0).volume_scans()[0].blocks_scanned + 1;
    let scanned = || cluster.node(0).volume_scans()[0].blocks_scanned;
    wait_until("a look at what is good again", || scanned() >= looked_at).await;
    assert_eq!(cluster.name_node.record.lock().unwrap().bad, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_walk_goes_on_after_a_restart_where_it_was() {
    fn one_walk(config: &mut DataNodeConfig) {
        suspects_only(config);
        config.scan_cursor_save_interval = Duration::ZERO;
    }
    let mut cluster = Cluster::start_tuned(1, one_walk).await;
    wait_scans(&cluster, "the first walk", |scans| scans == 1).await;
    write_block(&cluster, &[0], ID, 1001, &bytes(LEN)).await;
    write_block(&cluster, &[0], ID + (1 << 16), 1002, &bytes(LEN)).await;
    let started = cluster.node(0).volume_scans()[0].scan_started_ms;
    cluster.kill_node(0);
    let path = cluster.dir(0).join(format!("current/{POOL}/scanner.cursor"));
    let saved = fs::read_to_string(&path).unwrap();
    assert!(saved.contains(r#""atEnd":true"#) && saved.contains(&started.to_string()), "{saved}");
    // As if it had been stopped between the two.
    let name = format!("blk_{ID}");
    let saved = format!(
        r#"{{"lastSavedMs":1,"iterStartMs":{started},"curFinalizedDir":"subdir0","curFinalizedSubDir":"subdir0","curEntry":"{name}","atEnd":false}}"#
    );
    fs::write(&path, saved).unwrap();
    cluster.start_node(0).await;
    wait_scans(&cluster, "the rest of the walk", |scans| scans == 1).await;
    let scan = &cluster.node(0).volume_scans()[0];
    assert_eq!((scan.blocks_scanned, scan.last_block), (1, Some(ID + (1 << 16))));
    assert_eq!(scan.scan_started_ms, started);
}
