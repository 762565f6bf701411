//! Copies and reconstructions that fail, and replicas that cannot be read: the NameNode hears of it at once.

use crate::cluster::*;
use crate::reconstruct::{Group, mute_counted, order};
use cairn_wire::proto::datanode::{
    BlockCommandProto, BlockCommandProtoAction as Action, DatanodeCommandProto,
    DatanodeCommandProtoType as CommandType,
};
use cairn_wire::proto::hdfs::{
    BlockProto, DatanodeInfoProto, DatanodeInfosProto, StorageTypesProto, StorageUuidsProto,
};
use std::sync::atomic::Ordering;

const GS: u64 = 1001;

/// The order to copy a replica to `targets`.
pub fn copy_order(id: i64, targets: Vec<DatanodeInfoProto>) -> DatanodeCommandProto {
    let count = targets.len();
    DatanodeCommandProto {
        blk_cmd: Some(BlockCommandProto {
            action: Action::Transfer as i32,
            block_pool_id: POOL.into(),
            blocks: vec![BlockProto { block_id: id as u64, gen_stamp: GS, num_bytes: Some(0) }],
            targets: vec![DatanodeInfosProto { datanodes: targets }],
            target_storage_uuids: vec![StorageUuidsProto {
                storage_uuids: vec![String::new(); count],
            }],
            target_storage_types: vec![StorageTypesProto { storage_types: vec![1; count] }],
        }),
        ..command(CommandType::BlockCommand)
    }
}

/// Where the data file of a replica is.
fn data_file(cluster: &Cluster, node: usize, id: i64) -> std::path::PathBuf {
    let name = format!("blk_{id}");
    let found = cluster.files(node, id).into_iter().find(|path| path.ends_with(&name));
    cluster.dir(node).join(found.unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_to_a_datanode_that_is_gone_is_reported() {
    let mut cluster = Cluster::start(2).await;
    write_block(&cluster, &[0], 7, GS, &bytes(5000)).await;
    let (target, uuid) = (cluster.info(1), cluster.uuid(1));
    cluster.kill_node(1);
    cluster.send_command(0, copy_order(7, vec![target]));
    let failed = (7, uuid.clone(), Some(uuid));
    cluster.wait("the failure", |r| r.failed.contains(&failed)).await;
    assert!(cluster.name_node.record.lock().unwrap().bad.is_empty(), "the replica is good");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_of_a_replica_that_is_not_there_is_the_sources_fault() {
    let cluster = Cluster::start(2).await;
    cluster.send_command(0, copy_order(7, vec![cluster.info(1)]));
    let failed = (7, cluster.uuid(1), Some(cluster.uuid(0)));
    cluster.wait("the failure", |r| r.failed.contains(&failed)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_of_bad_bytes_makes_no_replica_and_accuses_the_source() {
    let cluster = Cluster::start(2).await;
    write_block(&cluster, &[0], 7, GS, &bytes(70_000)).await;
    let path = data_file(&cluster, 0, 7);
    let mut content = std::fs::read(&path).unwrap();
    content[50_000] ^= 1;
    std::fs::write(&path, content).unwrap();
    cluster.send_command(0, copy_order(7, vec![cluster.info(1)]));
    let failed = (7, cluster.uuid(1), Some(cluster.uuid(0)));
    let bad = (7, cluster.uuid(0));
    cluster.wait("both reports", |r| r.failed.contains(&failed) && r.bad.contains(&bad)).await;
    assert!(cluster.files(1, 7).iter().all(|path| !path.to_string_lossy().contains("finalized")));
}

/// Found by simulation: the order was given before the replica was opened for appending. A finalized copy of
/// its first bytes, under its new stamp, would be what a recovery of the block takes for all of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_that_was_opened_again_is_not_copied() {
    let cluster = Cluster::start(2).await;
    write_block(&cluster, &[0], 7, GS, &bytes(1024)).await;
    let mut request = write_request(block(7, GS, 1024), Stage::PipelineSetupAppend, Vec::new());
    (request.latest_generation_stamp, request.min_bytes_rcvd) = (GS + 1, 1024);
    let mut writer = Writer::open(&cluster, &[0], request).await;
    writer.offset = 1024;
    writer.write(&bytes(512), 1).await;
    cluster.send_command(0, copy_order(7, vec![cluster.info(1)]));
    let failed = (7, cluster.uuid(1), Some(cluster.uuid(0)));
    cluster.wait("the failure", |r| r.failed.contains(&failed)).await;
    assert_eq!(cluster.files(1, 7), Vec::<std::path::PathBuf>::new());
    writer.close(1).await;
}

/// A missing or too short block file is found by the copy or read that needs it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replicas_that_cannot_be_read_are_reported_to_be_bad() {
    let cluster = Cluster::start(2).await;
    for id in [7, 8, 9] {
        write_block(&cluster, &[0], id, GS, &bytes(9000)).await;
    }
    std::fs::remove_file(data_file(&cluster, 0, 7)).unwrap();
    let short = std::fs::File::options().write(true).open(data_file(&cluster, 0, 8)).unwrap();
    short.set_len(4000).unwrap();
    std::fs::remove_file(data_file(&cluster, 0, 9)).unwrap();
    for id in [7, 8] {
        cluster.send_command(0, copy_order(id, vec![cluster.info(1)]));
    }
    let mut stream = cluster.connect(0).await;
    assert!(read(&mut stream, block(9, GS, 9000), 0, 9000).await.is_err());
    let uuid = cluster.uuid(0);
    cluster
        .wait("all three", |r| [7, 8, 9].iter().all(|id| r.bad.contains(&(*id, uuid.clone()))))
        .await;
    // The volume takes writes: it is not to blame.
    write_block(&cluster, &[0], 10, GS, &bytes(100)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rebuilt_unit_whose_target_is_gone_is_reported() {
    for lost in [vec![0], vec![0, 4]] {
        let mut cluster = Cluster::start(7).await;
        let group = Group::new(1, (3, 2), 70_000);
        group.write(&cluster, &lost).await;
        // The last target is gone; with one only, that is all of the work.
        let targets = &[5, 6][2 - lost.len()..];
        let info = group.exact_command(&cluster, &lost, targets);
        let gone = cluster.uuid(6);
        cluster.kill_node(6);
        cluster.send_command(1, order(info));
        let failed = (group.unit_id(lost[lost.len() - 1]), gone.clone(), Some(gone));
        cluster.wait("the failure", |r| r.failed.contains(&failed)).await;
        let others = cluster.name_node.record.lock().unwrap().failed.len();
        assert_eq!(others, 1, "the other unit is rebuilt");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn work_that_cannot_be_done_is_reported() {
    let cluster = Cluster::start(6).await;
    let group = Group::new(1, (3, 2), 70_000);
    // Two of four sources have nothing.
    group.write(&cluster, &[0, 1, 2]).await;
    cluster.send_command(5, order(group.exact_command(&cluster, &[0], &[5])));
    let failed = (group.unit_id(0), cluster.uuid(5), None);
    cluster.wait("the failure", |r| r.failed.contains(&failed)).await;
    // An order that makes no sense is refused, and told of as well.
    let mut wrong = group.exact_command(&cluster, &[1], &[5]);
    wrong.live_block_indices[0] = 14;
    cluster.send_command(5, order(wrong));
    let refused = (group.unit_id(1), cluster.uuid(5), Some(cluster.uuid(5)));
    cluster.wait("the refusal", |r| r.failed.contains(&refused)).await;
}

/// A source that says nothing is passed over, and then not asked first again. FIELD-NOTES row 9.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mute_source_costs_a_moment_and_only_once() {
    let cluster = Cluster::start(7).await;
    let (mute, connections) = mute_counted().await;
    for number in 1..=5 {
        let group = Group::new(number, (3, 2), 90_000);
        group.write(&cluster, &[4]).await;
        let mut info = group.exact_command(&cluster, &[4], &[5]);
        // The first in the order, and so the first to be asked.
        info.source_dn_infos.datanodes[0] = mute.clone();
        cluster.send_command(5, order(info));
        group.check(&cluster, &[4], &[5]).await;
    }
    assert_eq!(connections.load(Ordering::Relaxed), 1);
}
