//! Replicas that are read as their disks have them, and blocks that no file has any more.

use crate::cluster::*;
use crate::groups::{GS, read_marked};
use cairn_codec::crc::crc32c;
use cairn_wire::proto::datanode::{DatanodeCommandProtoType, ProveOrderProto, ProvedReplicaProto};
use cairn_wire::proto::hdfs::{BlockProto, OpReadBlockProto};

fn storage(cluster: &Cluster) -> String {
    let uuid = cluster.uuid(0);
    cluster.name_node.record.lock().unwrap().storage[&uuid].storage_uuid.clone()
}

async fn prove(cluster: &Cluster, id: i64, len: u64, storage_uuid: &str) -> ProvedReplicaProto {
    let order = ProveOrderProto {
        block: block(id, GS, len),
        storage_uuid: storage_uuid.to_string(),
        wants_index: None,
    };
    let uuid = cluster.uuid(0);
    cluster.name_node.record.lock().unwrap().proves.entry(uuid).or_default().push(order);
    let mut proved = None;
    cluster
        .wait("a replica to be read", |record| {
            proved = record.proved.pop();
            proved.is_some()
        })
        .await;
    proved.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_is_summed_as_its_disk_has_it() {
    let cluster = Cluster::start(1).await;
    let data = bytes(1_300_007);
    write_block(&cluster, &[0], 5, GS, &data).await;
    let (len, at) = (data.len() as u64, storage(&cluster));
    let proved = prove(&cluster, 5, len, &at).await;
    assert_eq!((proved.crc32c, &proved.storage_uuid), (Some(crc32c(0, &data)), &at));
    let block = BlockProto { block_id: 5, gen_stamp: GS, num_bytes: Some(len) };
    assert_eq!(proved.block, block);
    assert_eq!(prove(&cluster, 5, len - 1, &at).await.crc32c, None, "it is longer");
    assert_eq!(prove(&cluster, 6, len, &at).await.crc32c, None, "it is not here");
    assert_eq!(prove(&cluster, 5, len, "DS-other").await.crc32c, None, "it is elsewhere");
    // A bit of it has changed on the disk.
    let files = cluster.files(0, 5);
    let file = files.iter().find(|file| file.extension().is_none()).unwrap();
    let mut bad = data.clone();
    bad[1_000_000] ^= 1;
    std::fs::write(cluster.dir(0).join(file), &bad).unwrap();
    assert_eq!(prove(&cluster, 5, len, &at).await.crc32c, None);
}

/// A NameNode that has started since has ordered nothing of it, and would take it for an answer to what it orders now.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_ordered_before_a_registration_is_not_told_after_it() {
    let cluster = Cluster::start(1).await;
    let data = bytes(70_000);
    write_block(&cluster, &[0], 5, GS, &data).await;
    let (len, at, uuid) = (data.len() as u64, storage(&cluster), cluster.uuid(0));
    {
        let mut record = cluster.name_node.record.lock().unwrap();
        let order = ProveOrderProto {
            block: block(5, GS, len),
            storage_uuid: at.clone(),
            wants_index: None,
        };
        record.proves.insert(uuid.clone(), vec![order]);
        record.commands.insert(uuid, vec![command(DatanodeCommandProtoType::RegisterCommand)]);
        (record.registered, record.heartbeats) = (0, 0);
    }
    cluster.wait("a registration", |record| record.registered == 1).await;
    cluster.name_node.record.lock().unwrap().heartbeats = 0;
    cluster.wait("heartbeats", |record| record.heartbeats > 10).await;
    let told = std::mem::take(&mut cluster.name_node.record.lock().unwrap().proved);
    assert!(told.is_empty(), "{told:?}");
    assert_eq!(prove(&cluster, 5, len, &at).await.crc32c, Some(crc32c(0, &data)));
}

async fn as_client(cluster: &Cluster, len: u64) -> Result<Vec<u8>, String> {
    read(&mut cluster.connect(0).await, block(5, GS, len), 0, len).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_no_file_has_is_served_to_servers_alone() {
    let cluster = Cluster::start(1).await;
    let data = bytes(70_000);
    write_block(&cluster, &[0], 5, GS, &data).await;
    let len = data.len() as u64;
    assert!(as_client(&cluster, len).await.is_ok());
    let retired = BlockProto { block_id: 5, gen_stamp: GS, num_bytes: Some(len) };
    let uuid = cluster.uuid(0);
    cluster.name_node.record.lock().unwrap().retired.entry(uuid).or_default().push(retired);
    cluster.wait("it to be told", |record| record.retired.is_empty()).await;
    let mut tries = 0;
    while as_client(&cluster, len).await.is_ok() {
        tries += 1;
        assert!(tries < 100, "clients are served it");
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    let more = OpReadBlockProto { len, ..Default::default() };
    assert!(read_marked(&cluster, 0, 5, GS, len, more).await.unwrap().0 == data);
}
