//! What DataNodes are told to copy, as they meet it: budgets, failed targets, wrong records.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use cairn_namenode::{NameNode, NameNodeConfig, RunningNameNode};
use cairn_wire::proto::{datanode as dn, hdfs as pb};

use crate::cluster::{
    CLIENT, Client, FakeDataNode, SUPERUSER, config, create_request, finish, start,
};

/// Mends at once, with one stream for ordinary work and two for urgent work.
async fn start_mending(dir: &Path) -> RunningNameNode {
    let config = NameNodeConfig {
        redundancy_interval: Duration::from_millis(50),
        max_streams: 1,
        max_streams_hard: 2,
        ..config(dir)
    };
    NameNode::start(config).await.unwrap()
}

/// Writes a file of one block on all DataNodes there are.
async fn write(client: &Client, datanodes: &[FakeDataNode], path: &str) -> u64 {
    let replication = datanodes.len() as u32;
    let request = pb::CreateRequestProto { replication, ..create_request(path, "writer") };
    let _: pb::CreateResponseProto = client.call("create", &request).await.unwrap();
    let block = client.add_block(path, "writer", None).await;
    let last = finish(datanodes, &block, 100, None).await;
    assert!(client.complete(path, "writer", Some(last)).await);
    block.b.block_id
}

/// The copies that a DataNode is told to make, with the DataNode that gets each.
fn copies(commands: &[dn::DatanodeCommandProto]) -> Vec<(pb::BlockProto, String)> {
    let blocks = commands.iter().filter_map(|command| command.blk_cmd.as_ref());
    let transfers =
        blocks.filter(|command| command.action == dn::BlockCommandProtoAction::Transfer as i32);
    let of = |command: &dn::BlockCommandProto| {
        let targets =
            command.targets.iter().map(|infos| infos.datanodes[0].id.datanode_uuid.clone());
        command.blocks.iter().cloned().zip(targets).collect::<Vec<_>>()
    };
    transfers.flat_map(of).collect()
}

/// Sends heartbeats of a DataNode until it is told to copy `count` blocks.
async fn told(datanode: &FakeDataNode, xmits: u32, count: usize) -> Vec<(pb::BlockProto, String)> {
    let (began, mut all) = (Instant::now(), Vec::new());
    while all.len() < count {
        assert!(began.elapsed() < Duration::from_secs(60), "told to copy only {all:?}");
        all.extend(copies(&datanode.heartbeat_with(xmits, Vec::new()).await));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    all
}

/// Starts the first two DataNodes.
async fn two(node: &RunningNameNode) -> Vec<FakeDataNode> {
    let first = FakeDataNode::start(node, 0, &[]).await;
    vec![first, FakeDataNode::start(node, 1, &[]).await]
}

/// `dfs.namenode.replication.max-streams-hard-limit`: what is one loss away from being lost does not wait for
/// ordinary copies, and has no more streams than that.
#[tokio::test(flavor = "multi_thread")]
async fn urgent_copies_have_streams_of_their_own() {
    let dir = tempfile::tempdir().unwrap();
    let node = start_mending(dir.path()).await;
    let client = Client::new(&node, CLIENT, SUPERUSER);
    let mut datanodes = two(&node).await;
    let mut urgent = BTreeSet::new();
    for path in ["/a", "/b", "/c"] {
        urgent.insert(write(&client, &datanodes, path).await);
    }
    datanodes.push(FakeDataNode::start(&node, 2, &[]).await);
    for path in ["/d", "/e", "/f"] {
        write(&client, &datanodes, path).await;
    }
    datanodes.push(FakeDataNode::start(&node, 3, &[]).await);
    datanodes[1].fail().await;
    // DataNode 0 has its only ordinary stream in use all the time.
    let first = told(&datanodes[0], 1, 2).await;
    let mut given: BTreeSet<u64> = first.iter().map(|(block, _)| block.block_id).collect();
    assert!(given.len() == 2 && given.is_subset(&urgent), "{first:?}");
    for _ in 0..10 {
        let more = copies(&datanodes[0].heartbeat_with(1, Vec::new()).await);
        assert_eq!(more, [], "two are under way");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let (block, target) = &first[0];
    let target = datanodes.iter().find(|datanode| datanode.uuid() == target).unwrap();
    target.received(block.clone(), Some(7)).await;
    let third = told(&datanodes[0], 1, 1).await;
    given.extend(third.iter().map(|(block, _)| block.block_id));
    assert_eq!(given, urgent);
    // With its stream free again it has its part of the others, or DataNode 2 has all.
    let mut ordinary = 0;
    let began = Instant::now();
    while ordinary < 3 {
        assert!(began.elapsed() < Duration::from_secs(60), "{ordinary} ordinary copies");
        for (datanode, xmits) in [(&datanodes[0], 0), (&datanodes[2], 0)] {
            for (block, target) in copies(&datanode.heartbeat_with(xmits, Vec::new()).await) {
                let target = datanodes.iter().find(|datanode| datanode.uuid() == target).unwrap();
                target.received(block, Some(7)).await;
                ordinary += 1;
            }
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    node.shutdown().await;
}

/// Hadoop's NameNode waits until `dfs.namenode.reconstruction.pending.timeout-sec` (300) is over.
#[tokio::test(flavor = "multi_thread")]
async fn a_target_that_failed_is_replaced_before_its_time_is_over() {
    let dir = tempfile::tempdir().unwrap();
    let node = start_mending(dir.path()).await;
    let client = Client::new(&node, CLIENT, SUPERUSER);
    let mut datanodes = two(&node).await;
    write(&client, &datanodes, "/f").await;
    for number in 2..4 {
        datanodes.push(FakeDataNode::start(&node, number, &[]).await);
    }
    datanodes[1].fail().await;
    let (block, failed) = told(&datanodes[0], 0, 1).await.remove(0);
    let work = dn::FailedWorkProto {
        block: block.clone(),
        target_uuid: failed.clone(),
        suspect_uuid: Some(failed.clone()),
        reason: Some("no room".to_string()),
    };
    let at_once = copies(&datanodes[0].heartbeat_with(0, vec![work]).await);
    let again = match at_once.is_empty() {
        true => told(&datanodes[0], 0, 1).await,
        false => at_once,
    };
    let other = ["datanode-2", "datanode-3"].into_iter().find(|uuid| *uuid != failed).unwrap();
    assert_eq!(again, [(block, other.to_string())]);
    node.shutdown().await;
}

/// The first DataNode to report makes the record, with `dfs.namenode.replication.min` 1.
#[tokio::test(flavor = "multi_thread")]
async fn replicas_that_agree_replace_a_wrong_record() {
    let dir = tempfile::tempdir().unwrap();
    let (node, datanodes) = start(dir.path(), 3).await;
    let client = Client::new(&node, CLIENT, SUPERUSER);
    client.create("/f", "writer").await;
    let block = client.add_block("/f", "writer", None).await.b;
    let replica = pb::BlockProto {
        block_id: block.block_id,
        gen_stamp: block.generation_stamp,
        num_bytes: Some(100),
    };
    datanodes[0].received(replica.clone(), Some(6)).await;
    let last = pb::ExtendedBlockProto { num_bytes: Some(100), ..block.clone() };
    assert!(client.complete("/f", "writer", Some(last)).await);
    let record = || {
        let id = cairn_stripe::BlockId(block.block_id as i64);
        let found = node.node().ns.read(|store| cairn_namespace::query::get_block(store, id));
        found.unwrap().unwrap().block.unit_crcs
    };
    assert_eq!(record(), [Some(6)]);
    for datanode in &datanodes[1..] {
        datanode.received(replica.clone(), Some(7)).await;
    }
    let began = Instant::now();
    loop {
        let located = client.locations("/f").await;
        let mut good: Vec<&str> =
            located.blocks[0].locs.iter().map(|info| info.id.datanode_uuid.as_str()).collect();
        good.sort_unstable();
        if record() == [Some(7)] && good == ["datanode-1", "datanode-2"] {
            break;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "{:?}, {good:?}", record());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    node.shutdown().await;
}
