//! Rolling upgrades and the way back from one; segments of the log on request.

use cairn_namenode::{NameNode, NameNodeConfig, RunningNameNode};
use cairn_wire::exception::class;
use cairn_wire::proto::{datanode as dn, hdfs as pb};

use crate::cluster::{CLIENT, Client, FakeDataNode, SUPERUSER, config, finish, page};

pub async fn upgrade(
    client: &Client,
    action: pb::RollingUpgradeActionProto,
) -> Result<Option<pb::RollingUpgradeInfoProto>, cairn_net::rpc_client::RpcError> {
    let request = pb::RollingUpgradeRequestProto { action: action as i32 };
    let answer: pb::RollingUpgradeResponseProto = client.call("rollingUpgrade", &request).await?;
    Ok(answer.rolling_upgrade_info)
}

async fn safe_mode(client: &Client, action: pb::SafeModeActionProto) -> bool {
    let request = pb::SetSafeModeRequestProto { action: action as i32, checked: None };
    let answer: pb::SetSafeModeResponseProto = client.call("setSafeMode", &request).await.unwrap();
    answer.result
}

pub async fn delete(client: &Client, path: &str) {
    let request = pb::DeleteRequestProto { src: path.into(), recursive: true };
    let answer: pb::DeleteResponseProto = client.call("delete", &request).await.unwrap();
    assert!(answer.result);
}

/// How many deletions the DataNodes are told of with their next heartbeats.
pub async fn deletions(datanodes: &[FakeDataNode]) -> usize {
    let mut count = 0;
    for datanode in datanodes {
        let commands = datanode.heartbeat_caching(0).await;
        let of = |c: &dn::DatanodeCommandProto| c.blk_cmd.as_ref().map_or(0, |c| c.blocks.len());
        count += commands.iter().map(of).sum::<usize>();
    }
    count
}

/// A file with one block on three DataNodes.
async fn write_file(node: &RunningNameNode, path: &str) -> (Client, Vec<FakeDataNode>) {
    let mut datanodes = Vec::new();
    for number in 0..3 {
        datanodes.push(FakeDataNode::start(node, number, &[]).await);
    }
    let client = Client::new(node, CLIENT, SUPERUSER);
    client.create(path, "writer").await;
    let block = client.add_block(path, "writer", None).await;
    let last = finish(&datanodes, &block, 1000, None).await;
    assert!(client.complete(path, "writer", Some(last)).await);
    (client, datanodes)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upgrade_that_was_prepared_can_be_gone_back_from() {
    use pb::RollingUpgradeActionProto::{Query, Start};
    let dir = tempfile::tempdir().unwrap();
    let node = NameNode::start(config(dir.path())).await.unwrap();
    let (client, datanodes) = write_file(&node, "/d/f").await;
    assert_eq!(upgrade(&client, Query).await.unwrap(), None);
    let refused = upgrade(&client, Start).await.unwrap_err();
    assert!(refused.is_remote(class::IO), "{refused}");
    assert!(safe_mode(&client, pb::SafeModeActionProto::SafemodeEnter).await);
    let other = Client::new(&node, CLIENT, SUPERUSER);
    let (prepared, at_once) = tokio::join!(upgrade(&client, Start), upgrade(&other, Start));
    let prepared = prepared.unwrap().unwrap();
    assert_eq!(at_once.unwrap().unwrap(), prepared, "one copy is made");
    assert!(prepared.created_rollback_images && prepared.start_time > 0);
    assert_eq!((prepared.finalize_time, prepared.status.finalized()), (0, false));
    assert!(!safe_mode(&client, pb::SafeModeActionProto::SafemodeGet).await, "as in Hadoop");
    assert_eq!(upgrade(&client, Start).await.unwrap().unwrap(), prepared, "there is one already");
    delete(&client, "/d/f").await;
    client.mkdirs("/new").await;
    assert_eq!(deletions(&datanodes).await, 0, "what was deleted may be wanted again");
    assert!(page(&node, "/").await.contains("cairn admin rolling-upgrade finalize"));
    assert!(
        page(&node, "/prom").await.contains("cairn_namenode_deletions_held{by=\"upgrade\"} 1\n")
    );
    node.shutdown().await;

    let node = NameNode::start(config(dir.path())).await.unwrap();
    let client = Client::new(&node, CLIENT, SUPERUSER);
    assert_eq!(upgrade(&client, Query).await.unwrap().unwrap(), prepared, "also after a restart");
    assert_eq!(client.list("/").await, ["d", "new"]);
    node.shutdown().await;

    let back = || NameNodeConfig { roll_back: true, ..config(dir.path()) };
    let node = NameNode::start(back()).await.unwrap();
    let client = Client::new(&node, CLIENT, SUPERUSER);
    assert_eq!(client.list("/").await, ["d"]);
    assert_eq!(client.list("/d").await, ["f"]);
    assert_eq!(upgrade(&client, Query).await.unwrap(), None);
    let stamp = client.locations("/d/f").await.blocks[0].b.generation_stamp;
    client.create("/d/g", "writer").await;
    let mut others = Vec::new();
    for number in 3..6 {
        others.push(FakeDataNode::start(&node, number, &[]).await);
    }
    let block = client.add_block("/d/g", "writer", None).await;
    assert!(block.b.generation_stamp > stamp + 1_000_000, "no stamp is given out twice");
    node.shutdown().await;
    let error = NameNode::start(back()).await.err().unwrap().to_string();
    assert!(error.contains("there is no rollback point"), "{error}");
    NameNode::start(config(dir.path())).await.unwrap().shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upgrade_is_finalized_and_deletions_go_on() {
    use pb::RollingUpgradeActionProto::{Finalize, Query, Start};
    let dir = tempfile::tempdir().unwrap();
    let node = NameNode::start(config(dir.path())).await.unwrap();
    let (client, datanodes) = write_file(&node, "/f").await;
    assert_eq!(upgrade(&client, Finalize).await.unwrap(), None);
    safe_mode(&client, pb::SafeModeActionProto::SafemodeEnter).await;
    upgrade(&client, Start).await.unwrap();
    delete(&client, "/f").await;
    safe_mode(&client, pb::SafeModeActionProto::SafemodeEnter).await;
    let refused = upgrade(&client, Finalize).await.unwrap_err();
    assert!(refused.is_remote(class::SAFE_MODE), "{refused}");
    safe_mode(&client, pb::SafeModeActionProto::SafemodeLeave).await;
    let finalized = upgrade(&client, Finalize).await.unwrap().unwrap();
    assert!(finalized.status.finalized() && finalized.finalize_time >= finalized.start_time);
    assert_eq!(upgrade(&client, Query).await.unwrap(), None);
    while deletions(&datanodes).await == 0 {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    node.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_is_rolled_and_the_store_saved_on_request() {
    let dir = tempfile::tempdir().unwrap();
    let node = NameNode::start(config(dir.path())).await.unwrap();
    let client = Client::new(&node, CLIENT, SUPERUSER);
    client.mkdirs("/a").await;
    let roll = async || -> u64 {
        let answer: pb::RollEditsResponseProto =
            client.call("rollEdits", &pb::RollEditsRequestProto {}).await.unwrap();
        answer.new_segment_tx_id
    };
    let first = roll().await;
    client.mkdirs("/b").await;
    assert_eq!(roll().await, first + 1);
    let segment = format!("log-{:020}", first + 1);
    let segments = walk(dir.path());
    assert!(segments.contains(&segment), "{segments:?}");
    let save = async |time_window, tx_gap| -> bool {
        let request = pb::SaveNamespaceRequestProto { time_window, tx_gap };
        let answer: pb::SaveNamespaceResponseProto =
            client.call("saveNamespace", &request).await.unwrap();
        answer.saved()
    };
    safe_mode(&client, pb::SafeModeActionProto::SafemodeEnter).await;
    assert!(save(None, None).await);
    assert!(!save(Some(3600), Some(10)).await, "it was saved just now");
    assert!(save(Some(0), Some(0)).await);
    for (arg, result) in [("check", false), ("true", true), ("check", true), ("false", false)] {
        let request = pb::RestoreFailedStorageRequestProto { arg: arg.into() };
        let answer: pb::RestoreFailedStorageResponseProto =
            client.call("restoreFailedStorage", &request).await.unwrap();
        assert_eq!(answer.result, result, "{arg}");
    }
    node.shutdown().await;
    let node = NameNode::start(config(dir.path())).await.unwrap();
    assert_eq!(Client::new(&node, CLIENT, SUPERUSER).list("/").await, ["a", "b"]);
    node.shutdown().await;
}

/// The names of all files below a folder.
fn walk(dir: &std::path::Path) -> Vec<String> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        names.push(entry.file_name().to_string_lossy().into_owned());
        if entry.file_type().unwrap().is_dir() {
            names.extend(walk(&entry.path()));
        }
    }
    names
}
