//! `NamenodeProtocol` as a balancer calls it, and storage policies as clients set them.

use cairn_stripe::Policy;
use cairn_wire::exception::class;
use cairn_wire::proto::{hdfs as pb, namenode as nn};

use crate::cluster::{CLIENT, Client, SUPERUSER, finish, start};

const NAMENODE: &str = "org.apache.hadoop.hdfs.server.protocol.NamenodeProtocol";

fn get_blocks(uuid: &str, size: u64, min_block_size: u64) -> nn::GetBlocksRequestProto {
    nn::GetBlocksRequestProto {
        datanode: pb::DatanodeIDProto { datanode_uuid: uuid.to_string(), ..Default::default() },
        size,
        min_block_size: Some(min_block_size),
        time_interval: None,
        storage_type: None,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_balancer_gets_blocks_and_groups_with_their_places() {
    let dir = tempfile::tempdir().unwrap();
    let (node, datanodes) = start(dir.path(), 9).await;
    let client = Client::new(&node, CLIENT, SUPERUSER);
    let balancer = Client::new(&node, NAMENODE, SUPERUSER);
    client.create("/f", "writer").await;
    let block = client.add_block("/f", "writer", None).await;
    let last = finish(&datanodes, &block, 1 << 20, None).await;
    assert!(client.complete("/f", "writer", Some(last)).await);
    client.mkdirs("/ec").await;
    client.set_policy("/ec", "RS-6-3-1024k").await;
    client.create("/ec/f", "writer").await;
    let group = client.add_block("/ec/f", "writer", None).await;
    let policy = Policy::built_in().into_iter().find(|p| p.name == "RS-6-3-1024k").unwrap();
    let last = finish(&datanodes, &group, 4 << 20, Some(&policy)).await;
    assert!(client.complete("/ec/f", "writer", Some(last)).await);

    let holder = &block.locs[1].id.datanode_uuid;
    let ask = get_blocks(holder, 1 << 30, 1 << 20);
    let answer: nn::GetBlocksResponseProto = balancer.call("getBlocks", &ask).await.unwrap();
    let found = answer.blocks.blocks;
    assert_eq!(found.len(), 2, "{found:?}");
    for one in &found {
        let striped = (one.block.block_id as i64) < 0;
        let located = if striped { &group } else { &block };
        assert_eq!(one.block.gen_stamp, located.b.generation_stamp);
        assert_eq!(one.block.num_bytes(), if striped { 4 << 20 } else { 1 << 20 });
        let units = one.indices.clone().unwrap_or_else(|| vec![0; one.datanode_uuids.len()]);
        for ((uuid, storage), unit) in one.datanode_uuids.iter().zip(&one.storage_uuids).zip(units)
        {
            let at = located.locs.iter().position(|info| info.id.datanode_uuid == *uuid).unwrap();
            assert_eq!(*storage, located.storage_i_ds[at]);
            let is_at = located.block_indices.as_ref().map_or(0, |indices| indices[at]);
            assert_eq!(unit, is_at, "unit on {uuid}");
        }
        let stripes = striped.then_some((6, 1 << 20));
        assert_eq!(one.data_block_num.zip(one.cell_size), stripes);
        assert_eq!(one.datanode_uuids.len(), located.locs.len());
    }
    let large = get_blocks(holder, 1 << 30, 2 << 20);
    let answer: nn::GetBlocksResponseProto = balancer.call("getBlocks", &large).await.unwrap();
    assert!(answer.blocks.blocks.iter().all(|b| (b.block.block_id as i64) < 0));

    let keys: nn::GetBlockKeysResponseProto =
        balancer.call("getBlockKeys", &nn::GetBlockKeysRequestProto {}).await.unwrap();
    assert!(!keys.keys.unwrap().is_block_token_enabled);
    let done: nn::IsUpgradeFinalizedResponseProto =
        balancer.call("isUpgradeFinalized", &nn::IsUpgradeFinalizedRequestProto {}).await.unwrap();
    assert!(done.is_upgrade_finalized);
    let rolling: nn::IsRollingUpgradeResponseProto =
        balancer.call("isRollingUpgrade", &nn::IsRollingUpgradeRequestProto {}).await.unwrap();
    assert!(!rolling.is_rolling_upgrade);
    node.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_balancer_is_refused_with_hadoops_words() {
    let dir = tempfile::tempdir().unwrap();
    let (node, datanodes) = start(dir.path(), 1).await;
    let alice = Client::new(&node, NAMENODE, "alice");
    let balancer = Client::new(&node, NAMENODE, SUPERUSER);
    let ask = get_blocks(datanodes[0].uuid(), 1, 0);
    let denied = "Access denied for user alice. Superuser privilege is required for operation ";
    for method in ["getBlocks", "getBlockKeys", "isUpgradeFinalized", "isRollingUpgrade"] {
        let (class, text) = if method == "getBlocks" {
            alice.refused(method, &ask).await
        } else {
            alice.refused(method, &nn::GetBlockKeysRequestProto {}).await
        };
        assert_eq!((class.as_str(), text), (class::ACCESS_CONTROL, format!("{denied}{method}")));
    }
    let nothing = get_blocks(datanodes[0].uuid(), 0, 0);
    assert_eq!(
        balancer.refused("getBlocks", &nothing).await,
        (class::ILLEGAL_ARGUMENT.to_string(), "Unexpected not positive size: 0".to_string())
    );
    let (class, text) = balancer.refused("getBlocks", &get_blocks("nobody", 1, 0)).await;
    assert_eq!(class, class::HADOOP_ILLEGAL_ARGUMENT);
    assert!(text.ends_with("not found."), "{text}");
    let client = Client::new(&node, CLIENT, SUPERUSER);
    client.safe_mode(pb::SafeModeActionProto::SafemodeEnter).await;
    let (class, text) = balancer.refused("getBlocks", &ask).await;
    assert_eq!(class, class::SAFE_MODE);
    assert!(text.starts_with("Cannot execute getBlocks. Name node is in safe mode."), "{text}");
    node.shutdown().await;
}
