//! Several NameNodes of one nameservice: all are told, one is obeyed.

use crate::cluster::*;
use cairn_wire::exception::class;
use cairn_wire::proto::datanode::DatanodeCommandProtoType::{BlockCommand, RegisterCommand};
use cairn_wire::proto::datanode::ReceivedDeletedBlockInfoProtoBlockStatus as Status;
use cairn_wire::proto::datanode::{
    BlockCommandProto, BlockCommandProtoAction, DatanodeCommandProto,
};
use cairn_wire::proto::hdfs::{
    BlockProto, DatanodeInfosProto, NNHAStatusHeartbeatProto, NNHAStatusHeartbeatProtoState,
};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

fn status(state: NNHAStatusHeartbeatProtoState, txid: u64) -> NNHAStatusHeartbeatProto {
    NNHAStatusHeartbeatProto { state: state as i32, txid }
}

fn active(txid: u64) -> NNHAStatusHeartbeatProto {
    status(NNHAStatusHeartbeatProtoState::Active, txid)
}

fn standby(txid: u64) -> NNHAStatusHeartbeatProto {
    status(NNHAStatusHeartbeatProtoState::Standby, txid)
}

fn delete(id: i64, gs: u64) -> DatanodeCommandProto {
    let blocks = vec![BlockProto { block_id: id as u64, gen_stamp: gs, num_bytes: None }];
    DatanodeCommandProto {
        blk_cmd: Some(BlockCommandProto {
            action: BlockCommandProtoAction::Invalidate as i32,
            block_pool_id: POOL.into(),
            blocks,
            ..Default::default()
        }),
        ..command(BlockCommand)
    }
}

/// Gives a DataNode an order, and waits until it has it and would have obeyed.
async fn order(from: &FakeNameNode, uuid: &str, command: DatanodeCommandProto) {
    from.record.lock().unwrap().commands.entry(uuid.into()).or_default().push(command);
    from.wait("the order to be taken", |r| !r.commands.contains_key(uuid)).await;
    let before = from.record.lock().unwrap().heartbeats;
    from.wait("two heartbeats", |r| r.heartbeats > before + 1).await;
}

fn told(of: &FakeNameNode, id: i64, status: Status) -> bool {
    let record = of.record.lock().unwrap();
    record
        .events
        .iter()
        .any(|(_, event)| event.block.block_id as i64 == id && event.status == status as i32)
}

/// A second NameNode, of the same nameservice.
async fn another() -> (Arc<FakeNameNode>, SocketAddr) {
    let another = Arc::new(FakeNameNode::default());
    another.record.lock().unwrap().status = standby(5);
    let (addr, serving) = serve(&another, "127.0.0.1:0".parse().unwrap()).await;
    // It serves until the test ends.
    drop(serving);
    (another, addr)
}

#[tokio::test(flavor = "multi_thread")]
async fn all_are_told_and_the_greatest_claim_is_obeyed() {
    let (second, addr) = another().await;
    let cluster = Cluster::start_beside(1, |_| {}, vec![(second.clone(), addr)]).await;
    let (first, uuid) = (cluster.name_node.clone(), cluster.uuid(0));
    first.record.lock().unwrap().status = active(5);
    second.wait("a report", |r| r.reports.contains_key(&uuid)).await;
    for id in 1..=4 {
        write_block(&cluster, &[0], id, 9, b"bytes").await;
        second
            .wait("the block", |r| r.events.iter().any(|(_, e)| e.block.block_id as i64 == id))
            .await;
    }
    // A standby orders nothing, nor does whoever claims what was claimed before.
    order(&second, &uuid, delete(1, 9)).await;
    second.record.lock().unwrap().status = active(5);
    order(&second, &uuid, delete(1, 9)).await;
    assert!(!told(&second, 1, Status::Deleted) && !cluster.files(0, 1).is_empty());
    order(&first, &uuid, delete(2, 9)).await;
    cluster.wait_event(0, 2, Status::Deleted).await;
    second
        .wait("the deletion", |r| {
            r.events
                .iter()
                .any(|(_, e)| e.block.block_id == 2 && e.status == Status::Deleted as i32)
        })
        .await;

    second.record.lock().unwrap().reports.clear();
    second.record.lock().unwrap().status = active(6);
    second.wait("a full report to the new one", |r| r.reports.contains_key(&uuid)).await;
    let mut reported: Vec<i64> =
        second.record.lock().unwrap().reports[&uuid].iter().map(|line| line.0).collect();
    reported.sort_unstable();
    assert_eq!(reported, [1, 3, 4]);
    // The former one has not noticed.
    order(&first, &uuid, delete(3, 9)).await;
    assert!(!told(&first, 3, Status::Deleted) && !cluster.files(0, 3).is_empty());
    order(&second, &uuid, delete(4, 9)).await;
    cluster.wait_event(0, 4, Status::Deleted).await;
    // Whoever asks for a registration gets one.
    let before = first.record.lock().unwrap().registered;
    first.record.lock().unwrap().commands.entry(uuid).or_default().push(command(RegisterCommand));
    first.wait("a registration", |r| r.registered > before).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_answers_orders_goes_to_the_one_that_gives_them() {
    let (second, addr) = another().await;
    let cluster = Cluster::start_beside(2, |_| {}, vec![(second.clone(), addr)]).await;
    let uuid = cluster.uuid(0);
    second.wait("a report", |r| r.reports.contains_key(&uuid)).await;
    // A copy of what is not there.
    let copy = DatanodeCommandProto {
        blk_cmd: Some(BlockCommandProto {
            action: BlockCommandProtoAction::Transfer as i32,
            block_pool_id: POOL.into(),
            blocks: vec![BlockProto { block_id: 77, gen_stamp: 9, num_bytes: Some(5) }],
            targets: vec![DatanodeInfosProto { datanodes: vec![cluster.info(1)] }],
            ..Default::default()
        }),
        ..command(BlockCommand)
    };
    cluster.send_command(0, copy);
    cluster.wait("the failure", |r| r.failed.iter().any(|(id, ..)| *id == 77)).await;
    assert!(second.record.lock().unwrap().failed.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_is_away_holds_up_no_other_and_hears_all_when_it_comes() {
    // It takes connections and never says a word.
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = silent.local_addr().unwrap();
    let second = Arc::new(FakeNameNode::default());
    second.record.lock().unwrap().status = standby(0);
    let cluster = Cluster::start_beside(1, |_| {}, vec![(second.clone(), addr)]).await;
    let uuid = cluster.uuid(0);
    tokio::time::timeout(Duration::from_secs(10), write_block(&cluster, &[0], 1, 9, b"bytes"))
        .await
        .unwrap();
    drop(silent);
    let (_, serving) = serve(&second, addr).await;
    second.wait("a full report", |r| r.reports.get(&uuid).is_some_and(|r| r.len() == 1)).await;
    write_block(&cluster, &[0], 2, 9, b"bytes").await;
    second.wait("the block", |r| r.events.iter().any(|(_, e)| e.block.block_id == 2)).await;
    serving.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn it_stops_when_all_refuse_it() {
    let (second, addr) = another().await;
    let cluster = Cluster::start_beside(1, |_| {}, vec![(second.clone(), addr)]).await;
    let uuid = cluster.uuid(0);
    second.wait("a report", |r| r.reports.contains_key(&uuid)).await;
    let refusal = Some(("sendHeartbeat", class::DISALLOWED_DATANODE));
    second.record.lock().unwrap().refusal = refusal;
    second.wait("the refusal", |r| r.refused > 0).await;
    write_block(&cluster, &[0], 1, 9, b"bytes").await;
    assert_eq!(cluster.node(0).stop_reason(), None);
    cluster.name_node.record.lock().unwrap().refusal = refusal;
    let stopped = tokio::time::timeout(Duration::from_secs(10), cluster.node(0).stopped());
    assert!(stopped.await.unwrap().contains("refuses"));
}
