//! Files are written, listed and found again, replicated and striped.

use std::time::Duration;

use cairn_stripe::Policy;
use cairn_wire::exception::class;
use cairn_wire::proto::hdfs as pb;

use crate::cluster::{
    CLIENT, Client, FakeDataNode, SUPERUSER, add_block_request, create_request, finish, start,
};

#[tokio::test(flavor = "multi_thread")]
async fn a_replicated_file_is_written_block_by_block() {
    let dir = tempfile::tempdir().unwrap();
    let (node, datanodes) = start(dir.path(), 4).await;
    let client = Client::new(&node, CLIENT, SUPERUSER);
    client.mkdirs("/d").await;
    let status = client.create("/d/f", "writer").await;
    assert_eq!((status.length, status.block_replication), (0, Some(3)));

    let first = client.add_block("/d/f", "writer", None).await;
    assert_eq!((first.offset, first.locs.len()), (0, 3));
    assert_eq!(first.storage_i_ds.len(), 3);
    assert_eq!(first.block_indices, None);
    let first_done = finish(&datanodes, &first, 1 << 20, None).await;
    let second = client.add_block("/d/f", "writer", Some(first_done)).await;
    assert_eq!(second.offset, 1 << 20);

    // No DataNode has the second block yet: the client has to ask again.
    let second_done = pb::ExtendedBlockProto { num_bytes: Some(5), ..second.b.clone() };
    assert!(!client.complete("/d/f", "writer", Some(second_done.clone())).await);
    let open = client.locations("/d/f").await;
    assert!(open.under_construction && !open.is_last_block_complete);
    assert_eq!(open.file_length, 1 << 20);

    finish(&datanodes, &second, 5, None).await;
    assert!(client.complete("/d/f", "writer", Some(second_done)).await);
    let status = client.file_info("/d/f").await.unwrap();
    assert_eq!((status.length, status.path.len()), ((1 << 20) + 5, 0));
    assert_eq!(client.list("/d").await, ["f"]);
    let closed = client.locations("/d/f").await;
    assert!(!closed.under_construction && closed.is_last_block_complete);
    assert_eq!(closed.file_length, (1 << 20) + 5);
    assert_eq!(closed.blocks.iter().map(|block| block.locs.len()).collect::<Vec<_>>(), [3, 3]);
    node.shutdown().await;
}

/// What a complete block lacks is mended, that of a committed one is not: its file may stay open for days.
#[tokio::test(flavor = "multi_thread")]
async fn a_block_of_an_open_file_is_complete_when_a_replica_of_it_is_reported_late() {
    let dir = tempfile::tempdir().unwrap();
    let (node, datanodes) = start(dir.path(), 3).await;
    let client = Client::new(&node, CLIENT, SUPERUSER);
    client.create("/f", "writer").await;
    let first = client.add_block("/f", "writer", None).await;
    let done = pb::ExtendedBlockProto { num_bytes: Some(100), ..first.b.clone() };
    client.add_block("/f", "writer", Some(done)).await;
    let stored = || {
        let id = cairn_stripe::BlockId(first.b.block_id as i64);
        let found = node.node().ns.read(|store| cairn_namespace::query::get_block(store, id));
        let block = found.unwrap().unwrap().block;
        (block.state, block.unit_crcs)
    };
    assert_eq!(stored().0, cairn_namespace::BlockState::Committed);
    finish(&datanodes, &first, 100, None).await;
    assert_eq!(stored(), (cairn_namespace::BlockState::Complete, vec![Some(7)]));
    assert!(client.locations("/f").await.under_construction);
}

/// A report can come after `addBlock` has counted replicas, and before the block is committed: no later one
/// need come.
#[tokio::test(flavor = "multi_thread")]
async fn a_block_of_an_open_file_is_complete_when_it_is_reported_while_it_is_committed() {
    let dir = tempfile::tempdir().unwrap();
    let (node, datanodes) = start(dir.path(), 1).await;
    let client = Client::new(&node, CLIENT, SUPERUSER);
    client.create("/f", "writer").await;
    let mut last = client.add_block("/f", "writer", None).await;
    for round in 0..300 {
        let done = pb::ExtendedBlockProto { num_bytes: Some(100), ..last.b.clone() };
        let (next, _) = tokio::join!(
            client.add_block("/f", "writer", Some(done)),
            finish(&datanodes, &last, 100, None)
        );
        let id = cairn_stripe::BlockId(last.b.block_id as i64);
        let state = || {
            let found = node.node().ns.read(|store| cairn_namespace::query::get_block(store, id));
            found.unwrap().unwrap().block.state
        };
        // That follows from the command, and nobody waits for it.
        let begun = std::time::Instant::now();
        while state() != cairn_namespace::BlockState::Complete {
            assert!(begun.elapsed().as_secs() < 20, "block {round} stays {:?}", state());
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
        last = next;
    }
    node.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn complete_waits_for_a_report_that_is_on_its_way() {
    let dir = tempfile::tempdir().unwrap();
    let (node, datanodes) = start(dir.path(), 3).await;
    let client = Client::new(&node, CLIENT, SUPERUSER);
    client.create("/f", "writer").await;
    let block = client.add_block("/f", "writer", None).await;
    let last = pb::ExtendedBlockProto { num_bytes: Some(9), ..block.b.clone() };
    let (closed, _) = tokio::join!(client.complete("/f", "writer", Some(last)), async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        finish(&datanodes, &block, 9, None).await
    });
    assert!(closed);
    node.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_striped_file_has_a_unit_on_each_of_nine_datanodes() {
    let dir = tempfile::tempdir().unwrap();
    let (node, datanodes) = start(dir.path(), 10).await;
    let client = Client::new(&node, CLIENT, SUPERUSER);
    client.mkdirs("/ec").await;
    client.set_policy("/ec", "RS-6-3-1024k").await;
    let created = client.create("/ec/f", "writer").await;
    let has_ec = pb::HdfsFileStatusProtoFlags::HasEc as u32;
    assert_eq!(created.flags.unwrap() & has_ec, has_ec);
    let sent = created.ec_policy.clone().unwrap();
    assert_eq!((sent.name(), sent.cell_size(), sent.id), ("RS-6-3-1024k", 1 << 20, 1));
    let schema = sent.schema.unwrap();
    assert_eq!((schema.codec_name.as_str(), schema.data_units, schema.parity_units), ("rs", 6, 3));

    let policy = Policy::built_in().into_iter().find(|p| p.name == "RS-6-3-1024k").unwrap();
    let group = client.add_block("/ec/f", "writer", None).await;
    assert!((group.b.block_id as i64) < 0);
    assert_eq!(group.block_indices.as_deref(), Some(&[0, 1, 2, 3, 4, 5, 6, 7, 8][..]));
    assert_eq!((group.locs.len(), group.block_tokens.len()), (9, 9));
    let mut nodes: Vec<_> = group.locs.iter().map(|info| &info.id.datanode_uuid).collect();
    nodes.sort();
    nodes.dedup();
    assert_eq!(nodes.len(), 9);

    let len = 4_000_000;
    let last = finish(&datanodes, &group, len, Some(&policy)).await;
    assert!(client.complete("/ec/f", "writer", Some(last)).await);
    let found = client.locations("/ec/f").await;
    assert_eq!(found.file_length, len);
    assert_eq!(found.ec_policy.unwrap().id, 1);
    assert_eq!(found.blocks[0].b.num_bytes, Some(len));
    // Four data units hold bytes, five to six and two are empty or parity: nine replicas, as told.
    assert_eq!(found.blocks[0].block_indices.as_ref().unwrap().len(), 9);
    node.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_below_its_data_units_is_not_complete() {
    let dir = tempfile::tempdir().unwrap();
    let (node, datanodes) = start(dir.path(), 5).await;
    let client = Client::new(&node, CLIENT, SUPERUSER);
    client.mkdirs("/ec").await;
    let enable =
        pb::EnableErasureCodingPolicyRequestProto { ec_policy_name: "RS-3-2-1024k".to_string() };
    let _: pb::EnableErasureCodingPolicyResponseProto =
        client.call("enableErasureCodingPolicy", &enable).await.unwrap();
    client.set_policy("/ec", "RS-3-2-1024k").await;
    client.create("/ec/f", "writer").await;
    let policy = Policy::built_in().into_iter().find(|p| p.name == "RS-3-2-1024k").unwrap();
    let mut group = client.add_block("/ec/f", "writer", None).await;
    let len = 3 << 20;
    let last = pb::ExtendedBlockProto { num_bytes: Some(len), ..group.b.clone() };
    let whole = group.clone();
    group.locs.truncate(2);
    finish(&datanodes, &group, len, Some(&policy)).await;
    assert!(!client.complete("/ec/f", "writer", Some(last.clone())).await);
    // One parity unit makes it three of three that are needed.
    let (uuid, unit) = crate::cluster::replicas(&whole, len, Some(&policy)).pop().unwrap();
    let datanode = datanodes.iter().find(|datanode| datanode.uuid() == uuid).unwrap();
    datanode.received(unit, None).await;
    assert!(client.complete("/ec/f", "writer", Some(last)).await);
    node.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_add_block_answers_the_same_block_and_places() {
    let dir = tempfile::tempdir().unwrap();
    let (node, _datanodes) = start(dir.path(), 5).await;
    let client = Client::new(&node, CLIENT, SUPERUSER);
    client.create("/f", "writer").await;
    let first = client.add_block("/f", "writer", None).await;
    let again = client.add_block("/f", "writer", None).await;
    assert_eq!(first.b, again.b);
    assert_eq!(first.storage_i_ds, again.storage_i_ds);
    node.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn blocks_without_enough_datanodes_are_refused_in_hadoops_words() {
    let dir = tempfile::tempdir().unwrap();
    let (node, _datanodes) = start(dir.path(), 0).await;
    let client = Client::new(&node, CLIENT, SUPERUSER);
    client.create("/f", "writer").await;
    let (class, text) = client.refused("addBlock", &add_block_request("/f", "writer", None)).await;
    assert_eq!(class, class::IO);
    assert_eq!(
        text,
        "File /f could only be written to 0 of the 1 minReplication nodes. There are 0 datanode(s) \
         running and 0 node(s) are excluded in this operation."
    );
    let id = client.file_info("/f").await.unwrap().file_id();
    let (class, text) = client.refused("addBlock", &add_block_request("/f", "thief", None)).await;
    assert_eq!(class, class::LEASE_EXPIRED);
    assert_eq!(
        text,
        format!(
            "Client (=thief) is not the lease owner (=writer: /f (inode {id}) Holder thief does not \
             have any open files."
        )
    );
    node.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn quotas_are_looked_at_once_a_block_has_somewhere_to_go() {
    let dir = tempfile::tempdir().unwrap();
    let (node, mut datanodes) = start(dir.path(), 0).await;
    let client = Client::new(&node, CLIENT, SUPERUSER);
    client.mkdirs("/d").await;
    let request = pb::SetQuotaRequestProto {
        path: "/d".to_string(),
        namespace_quota: i64::MAX as u64,
        storagespace_quota: 1,
        storage_type: None,
    };
    let _: pb::SetQuotaResponseProto = client.call("setQuota", &request).await.unwrap();
    client.create("/d/f", "writer").await;
    let request = add_block_request("/d/f", "writer", None);
    let (class, text) = client.refused("addBlock", &request).await;
    assert_eq!(class, class::IO, "{text}");
    datanodes.push(FakeDataNode::start(&node, 0, &[]).await);
    let (class, text) = client.refused("addBlock", &request).await;
    assert_eq!(class, "org.apache.hadoop.hdfs.protocol.DSQuotaExceededException", "{text}");
    node.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_pipeline_goes_on_with_a_new_stamp() {
    let dir = tempfile::tempdir().unwrap();
    let (node, datanodes) = start(dir.path(), 4).await;
    let client = Client::new(&node, CLIENT, SUPERUSER);
    client.create("/f", "writer").await;
    let block = client.add_block("/f", "writer", None).await;
    let existings = block.locs[..2].to_vec();
    let more: pb::GetAdditionalDatanodeResponseProto = client
        .call(
            "getAdditionalDatanode",
            &pb::GetAdditionalDatanodeRequestProto {
                src: "/f".to_string(),
                blk: block.b.clone(),
                existing_storage_uuids: block.storage_i_ds[..2].to_vec(),
                existings: existings.clone(),
                excludes: vec![block.locs[2].clone()],
                num_additional_nodes: 1,
                client_name: "writer".to_string(),
                file_id: None,
            },
        )
        .await
        .unwrap();
    assert_eq!(more.block.locs.len(), 3);
    let added = &more.block.locs[2].id;
    assert!(block.locs.iter().all(|info| info.id.datanode_uuid != added.datanode_uuid));

    let stamped: pb::UpdateBlockForPipelineResponseProto = client
        .call(
            "updateBlockForPipeline",
            &pb::UpdateBlockForPipelineRequestProto {
                block: block.b.clone(),
                client_name: "writer".to_string(),
            },
        )
        .await
        .unwrap();
    let new_block = stamped.block.b;
    assert!(new_block.generation_stamp > block.b.generation_stamp);
    let _: pb::UpdatePipelineResponseProto = client
        .call(
            "updatePipeline",
            &pb::UpdatePipelineRequestProto {
                client_name: "writer".to_string(),
                old_block: block.b.clone(),
                new_block: new_block.clone(),
                new_nodes: more.block.locs.iter().map(|info| info.id.clone()).collect(),
                storage_i_ds: more.block.storage_i_ds.clone(),
            },
        )
        .await
        .unwrap();
    let moved = pb::LocatedBlockProto { b: new_block, ..more.block.clone() };
    let last = finish(&datanodes, &moved, 77, None).await;
    assert!(client.complete("/f", "writer", Some(last)).await);
    let found = client.locations("/f").await;
    let mut want: Vec<_> = moved.locs.iter().map(|info| info.id.datanode_uuid.clone()).collect();
    let mut got: Vec<_> =
        found.blocks[0].locs.iter().map(|info| info.id.datanode_uuid.clone()).collect();
    want.sort();
    got.sort();
    assert_eq!(got, want);
    node.shutdown().await;
}

/// A writer whose update was taken asks again, as after a failover: the stamp is not given twice, the group is as
/// it was after the first one, and the write goes on.
#[tokio::test(flavor = "multi_thread")]
async fn row_20_a_group_gets_a_token_for_each_unit_and_a_stamp_only_once() {
    let dir = tempfile::tempdir().unwrap();
    let (node, datanodes) = start(dir.path(), 10).await;
    let client = Client::new(&node, CLIENT, SUPERUSER);
    client.mkdirs("/ec").await;
    client.set_policy("/ec", "RS-6-3-1024k").await;
    client.create("/ec/f", "writer").await;
    let group = client.add_block("/ec/f", "writer", None).await;
    let stamped: pb::UpdateBlockForPipelineResponseProto = client
        .call(
            "updateBlockForPipeline",
            &pb::UpdateBlockForPipelineRequestProto {
                block: group.b.clone(),
                client_name: "writer".to_string(),
            },
        )
        .await
        .unwrap();
    assert_eq!(stamped.block.block_tokens.len(), 9, "a token for each unit");
    let new_block = stamped.block.b;
    // Two units have failed; the others keep their places, and so their indices.
    let keep = |index: usize| index != 1 && index != 7;
    let (mut new_nodes, mut storage_i_ds) = (Vec::new(), Vec::new());
    for index in 0..9 {
        let (id, storage) = (group.locs[index].id.clone(), group.storage_i_ds[index].clone());
        new_nodes.push(if keep(index) { id } else { pb::DatanodeIDProto::default() });
        storage_i_ds.push(if keep(index) { storage } else { String::new() });
    }
    let update = pb::UpdatePipelineRequestProto {
        client_name: "writer".to_string(),
        old_block: group.b.clone(),
        new_block: new_block.clone(),
        new_nodes,
        storage_i_ds,
    };
    let _: pb::UpdatePipelineResponseProto = client.call("updatePipeline", &update).await.unwrap();
    let (_, text) = client.refused("updatePipeline", &update).await;
    assert!(text.contains("does not have a larger generation stamp"), "{text}");
    let moved = pb::LocatedBlockProto { b: new_block, ..group };
    let policy = Policy::built_in().into_iter().find(|p| p.name == "RS-6-3-1024k").unwrap();
    let last = finish(&datanodes, &moved, 4_000_000, Some(&policy)).await;
    assert!(client.complete("/ec/f", "writer", Some(last)).await);
    node.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn deleted_files_are_deleted_on_their_datanodes() {
    let dir = tempfile::tempdir().unwrap();
    let (node, datanodes) = start(dir.path(), 3).await;
    let client = Client::new(&node, CLIENT, SUPERUSER);
    client.create("/f", "writer").await;
    let block = client.add_block("/f", "writer", None).await;
    let last = finish(&datanodes, &block, 10, None).await;
    assert!(client.complete("/f", "writer", Some(last)).await);
    let request = pb::DeleteRequestProto { src: "/f".to_string(), recursive: false };
    let answer: pb::DeleteResponseProto = client.call("delete", &request).await.unwrap();
    assert!(answer.result);
    assert!(client.file_info("/f").await.is_none());
    let again: pb::DeleteResponseProto = client.call("delete", &request).await.unwrap();
    assert!(!again.result);
    let mut told = 0;
    for datanode in &datanodes {
        let commands = datanode.heartbeat().await;
        let blocks = commands.iter().filter_map(|command| command.blk_cmd.as_ref());
        told += blocks
            .flat_map(|command| &command.blocks)
            .filter(|b| b.block_id == block.b.block_id)
            .count();
    }
    assert_eq!(told, 3);
    node.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_appended_file_goes_on_in_its_last_block() {
    let dir = tempfile::tempdir().unwrap();
    let (node, datanodes) = start(dir.path(), 3).await;
    let client = Client::new(&node, CLIENT, SUPERUSER);
    client.create("/f", "writer").await;
    let block = client.add_block("/f", "writer", None).await;
    let last = finish(&datanodes, &block, 10, None).await;
    assert!(client.complete("/f", "writer", Some(last)).await);
    let request = pb::AppendRequestProto {
        src: "/f".to_string(),
        client_name: "second".to_string(),
        flag: Some(pb::CreateFlagProto::Append as u32),
    };
    let answer: pb::AppendResponseProto = client.call("append", &request).await.unwrap();
    let reopened = answer.block.expect("the last block is not full");
    assert_eq!(reopened.b.block_id, block.b.block_id);
    assert_eq!((reopened.b.num_bytes, reopened.locs.len()), (Some(10), 3));
    assert_eq!(answer.stat.unwrap().length, 10);
    let (class, _) = client.refused("create", &create_request("/f", "third")).await;
    assert_eq!(class, class::ALREADY_BEING_CREATED);
    node.shutdown().await;
}
