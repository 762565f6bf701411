//! Files of replicas that stay open between reads.

use crate::cluster::*;
use cairn_wire::proto::datanode::ReceivedDeletedBlockInfoProtoBlockStatus::{Deleted, Received};
use cairn_wire::proto::datanode::{
    BlockCommandProto, BlockCommandProtoAction, DatanodeCommandProto, DatanodeCommandProtoType,
};
use cairn_wire::proto::hdfs::BlockProto;
use cairn_wire::proto::hdfs::OpWriteBlockProtoBlockConstructionStage as Stage;
use std::time::Duration;

/// Names of the files below DataNode 0's folder that this process has open.
fn open_files(cluster: &Cluster) -> Vec<String> {
    let mut names = Vec::new();
    for fd in std::fs::read_dir("/proc/self/fd").unwrap() {
        // One that closes meanwhile is not open.
        let Ok(path) = std::fs::read_link(fd.unwrap().path()) else { continue };
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.starts_with(cluster.dir(0)) && name.starts_with("blk_") {
            names.push(name);
        }
    }
    names.sort();
    names
}

/// Waits until just the files of these replicas are open.
async fn wait_open(cluster: &Cluster, ids: &[i64]) {
    let names = ids.iter().flat_map(|id| [format!("blk_{id}"), format!("blk_{id}_1001.meta")]);
    let names: Vec<String> = names.collect();
    let mut open = Vec::new();
    for _ in 0..1000 {
        open = open_files(cluster);
        if open == names {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{open:?} are open, not {names:?}");
}

async fn read_all(cluster: &Cluster, id: i64, gs: u64, len: usize) -> Result<Vec<u8>, String> {
    read(&mut cluster.connect(0).await, block(id, gs, len as u64), 0, len as u64).await
}

fn invalidation(id: i64) -> DatanodeCommandProto {
    let command = BlockCommandProto {
        action: BlockCommandProtoAction::Invalidate as i32,
        block_pool_id: POOL.into(),
        blocks: vec![BlockProto { block_id: id as u64, gen_stamp: 1001, num_bytes: Some(0) }],
        ..Default::default()
    };
    let kind = DatanodeCommandProtoType::BlockCommand;
    DatanodeCommandProto { cmd_type: kind as i32, blk_cmd: Some(command), ..Default::default() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_stay_open_up_to_a_bound_and_close_with_their_replica() {
    let cluster = Cluster::start_tuned(1, |config| config.kept_replicas = 2).await;
    let data = bytes(5000);
    for id in 7..10 {
        write_block(&cluster, &[0], id, 1001, &data).await;
    }
    wait_open(&cluster, &[]).await;
    for id in 7..10 {
        assert_eq!(read_all(&cluster, id, 1001, 5000).await.unwrap(), data);
    }
    wait_open(&cluster, &[8, 9]).await;
    // What was read again stays.
    for id in [8, 7] {
        assert_eq!(read_all(&cluster, id, 1001, 5000).await.unwrap(), data);
    }
    wait_open(&cluster, &[7, 8]).await;
    assert!(read_all(&cluster, 7, 1002, 5000).await.is_err(), "an older replica");

    cluster.send_command(0, invalidation(8));
    cluster.wait_event(0, 8, Deleted).await;
    wait_open(&cluster, &[7]).await;
    assert!(read_all(&cluster, 8, 1001, 5000).await.is_err());

    let mut request = write_request(block(7, 1001, 5000), Stage::PipelineSetupAppend, Vec::new());
    (request.latest_generation_stamp, request.min_bytes_rcvd) = (1002, 5000);
    let mut writer = Writer::open(&cluster, &[0], request).await;
    writer.offset = 5000;
    let more = bytes(6000);
    writer.write(&more[5000..5120], 1).await;
    writer.write(&more[5120..], 1).await;
    writer.close(1).await;
    cluster.wait_event_of(0, 7, 1002, Received).await;
    wait_open(&cluster, &[]).await;
    assert_eq!(read_all(&cluster, 7, 1002, 6000).await.unwrap(), more);
}
