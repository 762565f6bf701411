//! Files that are closed, and go on, before their last blocks have their minimum of replicas.

use crate::cluster::*;
use cairn_namenode::{NameNode, NameNodeConfig, RunningNameNode};
use cairn_stripe::Policy;
use cairn_wire::exception::class;
use cairn_wire::proto::hdfs as pb;
use std::path::Path;

async fn start_allowing(
    dir: &Path,
    committed_allowed: usize,
    count: u16,
) -> (RunningNameNode, Vec<FakeDataNode>, Client) {
    let config = NameNodeConfig { committed_allowed, ..config(dir) };
    let node = NameNode::start(config).await.unwrap();
    let mut datanodes = Vec::new();
    for number in 0..count {
        datanodes.push(FakeDataNode::start(&node, number, &[]).await);
    }
    let client = Client::new(&node, CLIENT, SUPERUSER);
    (node, datanodes, client)
}

fn of_len(located: &pb::LocatedBlockProto, len: u64) -> pb::ExtendedBlockProto {
    pb::ExtendedBlockProto { num_bytes: Some(len), ..located.b.clone() }
}

fn append(path: &str) -> pb::AppendRequestProto {
    let (src, client_name) = (path.to_string(), "writer".to_string());
    pb::AppendRequestProto { src, client_name, flag: None }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_may_be_closed_and_read_before_its_last_block_is_reported() {
    for allowed in [0, 1] {
        let dir = tempfile::tempdir().unwrap();
        let (node, datanodes, client) = start_allowing(dir.path(), allowed, 3).await;
        client.create("/f", "writer").await;
        let block = client.add_block("/f", "writer", None).await;
        let last = of_len(&block, 9);
        let closed = client.complete("/f", "writer", Some(last.clone())).await;
        assert_eq!(closed, allowed == 1);
        if closed {
            let found = client.locations("/f").await;
            assert_eq!((found.under_construction, found.file_length), (false, 9));
            assert_eq!(found.blocks[0].locs.len(), 3, "where it was written");
            let (class, text) = client.refused("append", &append("/f")).await;
            assert_eq!(class, class::RETRIABLE);
            let first = format!("{}: append: lastBlock=blk_", class::NOT_REPLICATED_YET);
            let end = " of src=/f is COMMITTED but not yet COMPLETE.";
            assert!(text.starts_with(&first) && text.ends_with(end), "{text}");
            let (uuid, replica) = replicas(&block, 9, None).swap_remove(0);
            let datanode = datanodes.iter().find(|datanode| datanode.uuid() == uuid).unwrap();
            datanode.received(replica, Some(7)).await;
            assert_eq!(client.locations("/f").await.blocks[0].locs.len(), 1, "who has it");
        }
        finish(&datanodes, &block, 9, None).await;
        assert!(client.complete("/f", "writer", Some(last)).await);
        assert_eq!(client.locations("/f").await.blocks[0].locs.len(), 3);
        let _: pb::AppendResponseProto = client.call("append", &append("/f")).await.unwrap();
        node.shutdown().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_block_of_which_no_more_replicas_are_expected_than_it_must_have_is_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    let (node, datanodes, client) = start_allowing(dir.path(), 1, 1).await;
    client.create("/f", "writer").await;
    let block = client.add_block("/f", "writer", None).await;
    assert!(!client.complete("/f", "writer", Some(of_len(&block, 9))).await);
    let last = finish(&datanodes, &block, 9, None).await;
    assert!(client.complete("/f", "writer", Some(last)).await);
    node.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_may_lack_reports_if_all_its_units_are_written() {
    let dir = tempfile::tempdir().unwrap();
    let (node, datanodes, client) = start_allowing(dir.path(), 1, 9).await;
    client.mkdirs("/ec").await;
    client.set_policy("/ec", "RS-6-3-1024k").await;
    let policy = Policy::built_in().into_iter().find(|p| p.name == "RS-6-3-1024k").unwrap();
    for (name, len, is_closed) in [("whole", 6 << 20, true), ("short", 5, false)] {
        let path = format!("/ec/{name}");
        client.create(&path, "writer").await;
        let group = client.add_block(&path, "writer", None).await;
        let closed = client.complete(&path, "writer", Some(of_len(&group, len))).await;
        // A short group has fewer units than DataNodes were chosen for it.
        assert_eq!(closed, is_closed, "{name}");
        if closed {
            assert_eq!(client.locations(&path).await.blocks[0].locs.len(), 9);
        }
        let last = finish(&datanodes, &group, len, Some(&policy)).await;
        assert!(client.complete(&path, "writer", Some(last)).await, "{name}");
    }
    node.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_goes_on_until_too_many_of_its_blocks_are_not_reported() {
    let dir = tempfile::tempdir().unwrap();
    let (node, datanodes, client) = start_allowing(dir.path(), 1, 3).await;
    client.create("/f", "writer").await;
    let mut blocks = vec![client.add_block("/f", "writer", None).await];
    for _ in 0..2 {
        let previous = blocks.last().map(|block| of_len(block, 9));
        blocks.push(client.add_block("/f", "writer", previous).await);
    }
    let request = add_block_request("/f", "writer", Some(of_len(&blocks[2], 9)));
    let (class, text) = client.refused("addBlock", &request).await;
    assert_eq!(
        (class.as_str(), text.as_str()),
        (class::NOT_REPLICATED_YET, "Not replicated yet: /f")
    );
    finish(&datanodes, &blocks[0], 9, None).await;
    blocks.push(client.add_block("/f", "writer", request.previous).await);
    // Only the last one may lack reports when the file is closed.
    let last = of_len(&blocks[3], 9);
    assert!(!client.complete("/f", "writer", Some(last.clone())).await);
    finish(&datanodes, &blocks[1], 9, None).await;
    assert!(!client.complete("/f", "writer", Some(last.clone())).await);
    finish(&datanodes, &blocks[2], 9, None).await;
    assert!(client.complete("/f", "writer", Some(last)).await);
    assert_eq!(client.locations("/f").await.blocks.len(), 4);
    node.shutdown().await;
}
