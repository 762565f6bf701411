//! Clients on the same machine: data transfer over a UNIX domain socket, and replicas' files passed over it.

use crate::caching::LOCKED_PAGES;
use crate::cluster::*;
use cairn_datanode::{DataDir, DataNode, DataNodeConfig};
use cairn_net::transfer_stream::{TransferOptions, TransferStream};
use cairn_stripe::StorageType;
use cairn_wire::proto::datanode::*;
use cairn_wire::proto::hdfs::*;
use cairn_wire::transfer::Op;
use std::fs::File;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::PathBuf;

const ID: i64 = 1_073_741_825;
const VALID: u64 = 1 << 63;
const ANCHORABLE: u64 = 1 << 62;

fn local(config: &mut DataNodeConfig) {
    let folder = config.data_dirs[0].path.clone();
    std::fs::create_dir_all(&folder).unwrap();
    config.domain_socket = Some(format!("{}/socket_PORT", folder.display()));
    config.check_domain_socket = false;
    config.short_circuit = true;
    config.max_locked_memory = 96 << 10;
}

fn socket(cluster: &Cluster) -> PathBuf {
    cluster.dir(0).join(format!("socket{}", cluster.node(0).xfer_addr().port()))
}

/// A DataNode that passes files.
pub async fn cluster() -> Cluster {
    Cluster::start_tuned(1, local).await
}

/// What is answered to who asks for the files of a replica, without a slot.
pub async fn ask_once(cluster: &Cluster, id: i64, gs: u64) -> BlockOpResponseProto {
    ask(&mut connect(cluster).await, &request(id, gs, None)).await
}

async fn connect(cluster: &Cluster) -> TransferStream {
    let options = TransferOptions::default();
    TransferStream::connect_domain(&socket(cluster), &options).await.unwrap()
}

fn request(
    id: i64,
    gs: u64,
    slot_id: Option<ShortCircuitShmSlotProto>,
) -> OpRequestShortCircuitAccessProto {
    OpRequestShortCircuitAccessProto {
        header: base_header(block(id, gs, 0)),
        max_version: 1,
        slot_id,
        supports_receipt_verification: Some(true),
    }
}

async fn ask(
    stream: &mut TransferStream,
    request: &OpRequestShortCircuitAccessProto,
) -> BlockOpResponseProto {
    stream.writer.send_op(Op::RequestShortCircuitFds, request).await.unwrap();
    stream.reader.read_message_before_fds("answer").await.unwrap()
}

/// The data file and the meta file.
async fn files(
    stream: &mut TransferStream,
    request: &OpRequestShortCircuitAccessProto,
) -> Vec<File> {
    let answer = ask(stream, request).await;
    assert_eq!(
        (answer.status, answer.short_circuit_access_version),
        (Status::Success as i32, Some(1))
    );
    let (receipt, fds) = stream.reader.read_fds("descriptors").await.unwrap();
    assert_eq!(receipt, ShortCircuitFdResponse::UseReceiptVerification as u8);
    stream.writer.send(&[0]).await.unwrap();
    fds.into_iter().map(File::from).collect()
}

/// A segment: its connection, identity and memory.
async fn segment(cluster: &Cluster) -> (TransferStream, ShortCircuitShmIdProto, File) {
    let mut stream = connect(cluster).await;
    let request = ShortCircuitShmRequestProto { client_name: "test".into(), trace_info: None };
    stream.writer.send_op(Op::RequestShortCircuitShm, &request).await.unwrap();
    let answer: ShortCircuitShmResponseProto =
        stream.reader.read_message_before_fds("answer").await.unwrap();
    assert_eq!(answer.status, Status::Success as i32);
    let (_, mut fds) = stream.reader.read_fds("memory").await.unwrap();
    (stream, answer.id.unwrap(), File::from(fds.remove(0)))
}

fn word(memory: &File, slot: u64) -> u64 {
    let mut word = [0; 8];
    memory.read_exact_at(&mut word, slot * 64).unwrap();
    u64::from_ne_bytes(word)
}

fn set_word(memory: &File, slot: u64, word: u64) {
    memory.write_all_at(&word.to_ne_bytes(), slot * 64).unwrap();
}

fn cache_order(action: BlockIdCommandProtoAction) -> DatanodeCommandProto {
    DatanodeCommandProto {
        blk_id_cmd: Some(BlockIdCommandProto {
            action: action as i32,
            block_pool_id: POOL.into(),
            block_ids: vec![ID as u64],
        }),
        ..command(DatanodeCommandProtoType::BlockIdCommand)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_files_of_a_replica_are_passed_and_data_travels_over_the_same_socket() {
    let cluster = Cluster::start_tuned(1, local).await;
    let data = bytes(40_000);
    write_block(&cluster, &[0], ID, 1001, &data).await;
    let mut stream = connect(&cluster).await;
    // One connection serves all of it.
    assert_eq!(
        read(&mut stream, block(ID, 1001, 0), 1000, 30_000).await.unwrap(),
        data[1000..31_000]
    );
    let passed = files(&mut stream, &request(ID, 1001, None)).await;
    let mut back = vec![0; data.len()];
    passed[0].read_exact_at(&mut back, 0).unwrap();
    assert_eq!(back, data);
    let mut meta = vec![0; crcs(&data).len()];
    passed[1].read_exact_at(&mut meta, 7).unwrap();
    assert_eq!(meta, crcs(&data));
    assert!(passed[0].write_at(b"?", 0).is_err(), "for reading only");

    let absent = ask(&mut stream, &request(ID + 1, 1001, None)).await;
    assert_eq!(absent.status, Status::Error as i32);
    let old = OpRequestShortCircuitAccessProto { max_version: 0, ..request(ID, 1001, None) };
    assert_eq!(ask(&mut stream, &old).await.status, Status::ErrorUnsupported as i32);
    let slot =
        ShortCircuitShmSlotProto { shm_id: ShortCircuitShmIdProto { hi: 1, lo: 2 }, slot_idx: 0 };
    let unknown = ask(&mut stream, &request(ID, 1001, Some(slot))).await;
    let what =
        "there is no shared memory segment registered with shmId 00000000000000010000000000000002";
    assert_eq!((unknown.status, unknown.message()), (Status::Error as i32, what));
    assert_eq!(files(&mut stream, &request(ID, 1001, None)).await.len(), 2, "still of use");

    let mut tcp = cluster.connect(0).await;
    let refused = ask(&mut tcp, &request(ID, 1001, None)).await;
    assert_eq!(refused.status, Status::Error as i32);
}

#[tokio::test(flavor = "multi_thread")]
async fn slots_tell_of_memory_and_deletion() {
    let _alone = LOCKED_PAGES.lock().await;
    let cluster = Cluster::start_tuned(1, local).await;
    write_block(&cluster, &[0], ID, 1001, &bytes(40_000)).await;
    let (_segment, shm_id, memory) = segment(&cluster).await;
    assert_eq!(memory.metadata().unwrap().len(), 8192);
    assert!(memory.set_len(0).is_err(), "nobody can cut the memory off");
    let slot = |slot_idx| ShortCircuitShmSlotProto { shm_id: shm_id.clone(), slot_idx };
    let mut stream = connect(&cluster).await;
    let refused = ask(&mut stream, &request(ID, 1001, Some(slot(3)))).await;
    assert!(refused.message().ends_with("slot 3 is not marked as valid."), "{refused:?}");
    for bad in [-1, 128] {
        let refused = ask(&mut stream, &request(ID, 1001, Some(slot(bad)))).await;
        assert_eq!(refused.status, Status::Error as i32, "{bad}");
    }
    set_word(&memory, 3, VALID);
    files(&mut stream, &request(ID, 1001, Some(slot(3)))).await;
    assert_eq!(word(&memory, 3), VALID);
    let refused = ask(&mut stream, &request(ID, 1001, Some(slot(3)))).await;
    assert!(refused.message().ends_with("slot 3 is already in use."), "{refused:?}");

    cluster.send_command(0, cache_order(BlockIdCommandProtoAction::Cache));
    cluster.wait("the replica in memory", |_| word(&memory, 3) == VALID | ANCHORABLE).await;
    // A reader holds it there.
    set_word(&memory, 3, word(&memory, 3) + 1);
    cluster.send_command(0, cache_order(BlockIdCommandProtoAction::Uncache));
    cluster.wait("no new readers", |_| word(&memory, 3) == VALID + 1).await;
    cluster.wait("the replica is kept", |record| record.cached == [ID]).await;
    set_word(&memory, 3, VALID);
    cluster.wait("the replica out of memory", |record| record.cached.is_empty()).await;

    let release = |slot_idx| ReleaseShortCircuitAccessRequestProto {
        slot_id: slot(slot_idx),
        trace_info: None,
    };
    set_word(&memory, 4, VALID);
    files(&mut stream, &request(ID, 1001, Some(slot(4)))).await;
    for expected in [Status::Success, Status::ErrorInvalid] {
        stream.writer.send_op(Op::ReleaseShortCircuitFds, &release(4)).await.unwrap();
        let answer: ReleaseShortCircuitAccessResponseProto =
            stream.reader.read_message("answer").await.unwrap();
        assert_eq!(answer.status, expected as i32);
    }
    cluster.send_command(0, delete(1001));
    cluster.wait("the slot is void", |_| word(&memory, 3) & VALID == 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_leaves_memory_when_it_is_not_what_came_in_any_more() {
    let _alone = LOCKED_PAGES.lock().await;
    let cluster = Cluster::start_tuned(1, |config| {
        local(config);
        let path = config.data_dirs[0].path.join("archive");
        let archive = DataDir { storage_type: StorageType::Archive, ..DataDir::from(path) };
        config.data_dirs.push(archive);
    })
    .await;
    let data = bytes(40_448);
    write_block(&cluster, &[0], ID, 1001, &data[..40_000]).await;
    let (_segment, shm_id, memory) = segment(&cluster).await;
    let slot = |slot_idx| ShortCircuitShmSlotProto { shm_id: shm_id.clone(), slot_idx };
    let mut stream = connect(&cluster).await;
    set_word(&memory, 3, VALID);
    files(&mut stream, &request(ID, 1001, Some(slot(3)))).await;
    let cached = async || {
        cluster.send_command(0, cache_order(BlockIdCommandProtoAction::Cache));
        cluster.wait("the replica in memory", |record| record.cached == [ID]).await;
        assert_eq!(word(&memory, 3), VALID | ANCHORABLE);
    };
    let gone = async |why: &str| {
        cluster.wait(why, |record| record.cached.is_empty() && record.cache.1 == 0).await;
        assert_eq!(word(&memory, 3) & ANCHORABLE, 0);
    };

    cached().await;
    let mut append = write_request(block(ID, 1001, 40_000), Stage::PipelineSetupAppend, Vec::new());
    (append.latest_generation_stamp, append.min_bytes_rcvd) = (1002, 40_000);
    let mut writer = Writer::open(&cluster, &[0], append).await;
    // Nobody has checked what comes now.
    assert_eq!(word(&memory, 3), VALID);
    writer.offset = 40_000;
    writer.write(&data[40_000..], 1).await;
    writer.close(1).await;
    set_word(&memory, 4, VALID);
    files(&mut stream, &request(ID, 1002, Some(slot(4)))).await;
    assert_eq!(word(&memory, 4), VALID);
    gone("the pages of the shorter replica are given back").await;

    cached().await;
    let replace = OpReplaceBlockProto {
        header: base_header(block(ID, 1002, 40_448)),
        del_hint: cluster.uuid(0),
        source: cluster.info(0),
        storage_type: Some(StorageTypeProto::Archive as i32),
        storage_id: None,
    };
    let mut mover = cluster.connect(0).await;
    mover.writer.send_op(Op::ReplaceBlock, &replace).await.unwrap();
    let answer: BlockOpResponseProto = mover.reader.read_message("answer").await.unwrap();
    assert_eq!(answer.status, Status::Success as i32, "{:?}", answer.message);
    gone("the pages of the file on the other volume are given back").await;

    cached().await;
    cluster.send_command(0, delete(1002));
    gone("the pages of the deleted replica are given back").await;
}

fn delete(gs: u64) -> DatanodeCommandProto {
    DatanodeCommandProto {
        blk_cmd: Some(BlockCommandProto {
            action: BlockCommandProtoAction::Invalidate as i32,
            block_pool_id: POOL.into(),
            blocks: vec![BlockProto { block_id: ID as u64, gen_stamp: gs, num_bytes: Some(0) }],
            ..Default::default()
        }),
        ..command(DatanodeCommandProtoType::BlockCommand)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_segment_goes_with_its_connection() {
    let cluster = Cluster::start_tuned(1, local).await;
    write_block(&cluster, &[0], ID, 1001, &bytes(1000)).await;
    let (held, shm_id, memory) = segment(&cluster).await;
    set_word(&memory, 0, VALID);
    let slot = ShortCircuitShmSlotProto { shm_id, slot_idx: 0 };
    let mut stream = connect(&cluster).await;
    files(&mut stream, &request(ID, 1001, Some(slot.clone()))).await;
    drop(held);
    cluster.wait("the slot is void", |_| word(&memory, 0) & VALID == 0).await;
    let gone = ask(&mut stream, &request(ID, 1001, Some(slot))).await;
    assert!(gone.message().starts_with("there is no shared memory segment"), "{gone:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn descriptors_are_refused_unless_they_are_configured() {
    let cluster = Cluster::start_tuned(1, |config| {
        local(config);
        config.short_circuit = false;
    })
    .await;
    write_block(&cluster, &[0], ID, 1001, &bytes(1000)).await;
    let refused = ask(&mut connect(&cluster).await, &request(ID, 1001, None)).await;
    let what = "File descriptor passing was not configured.";
    assert_eq!((refused.status, refused.message()), (Status::ErrorUnsupported as i32, what));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_socket_that_others_could_replace_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    let config = DataNodeConfig {
        data_dirs: vec![folder.path().join("data").into()],
        xfer_addr: ([127, 0, 0, 1], 0).into(),
        ipc_addr: ([127, 0, 0, 1], 0).into(),
        domain_socket: Some(format!("{}/socket", folder.path().display())),
        ..DataNodeConfig::default()
    };
    let refused = DataNode::start(config).await.err().expect("refused").to_string();
    assert!(refused.contains("it is world-writable"), "{refused}");
}
