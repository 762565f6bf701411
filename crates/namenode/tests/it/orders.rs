//! What operators order holds over restarts.

use cairn_namenode::{NameNode, RunningNameNode};
use cairn_redundancy::AdminIntent;
use cairn_wire::exception::class;
use cairn_wire::proto::{datanode as dn, hdfs as pb};

use crate::cluster::{CLIENT, Client, FakeDataNode, SUPERUSER, config, create_request};

async fn restart(node: RunningNameNode, dir: &std::path::Path) -> (RunningNameNode, Client) {
    node.shutdown().await;
    let node = NameNode::start(config(dir)).await.unwrap();
    let client = Client::new(&node, CLIENT, SUPERUSER);
    (node, client)
}

#[tokio::test(flavor = "multi_thread")]
async fn safe_mode_that_was_entered_by_hand_outlives_restarts_until_it_is_left() {
    use pb::SafeModeActionProto::{SafemodeEnter, SafemodeGet, SafemodeLeave};
    let dir = tempfile::tempdir().unwrap();
    let node = NameNode::start(config(dir.path())).await.unwrap();
    let client = Client::new(&node, CLIENT, SUPERUSER);
    assert!(client.safe_mode(SafemodeEnter).await);
    let (node, client) = restart(node, dir.path()).await;
    assert!(client.safe_mode(SafemodeGet).await);
    let (class, _) = client.refused("create", &create_request("/f", "writer")).await;
    assert_eq!(class, class::SAFE_MODE);
    assert!(!client.safe_mode(SafemodeLeave).await);
    let (node, client) = restart(node, dir.path()).await;
    assert!(!client.safe_mode(SafemodeGet).await);
    client.create("/f", "writer").await;
    node.shutdown().await;
}

/// What a DataNode may move for balancers, as its heartbeats are told.
fn bandwidths(commands: &[dn::DatanodeCommandProto]) -> Vec<u64> {
    commands.iter().filter_map(|command| Some(command.balancer_cmd.as_ref()?.bandwidth)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_bandwidth_of_balancers_is_told_to_datanodes_that_come_later() {
    let dir = tempfile::tempdir().unwrap();
    let node = NameNode::start(config(dir.path())).await.unwrap();
    let client = Client::new(&node, CLIENT, SUPERUSER);
    let first = FakeDataNode::start(&node, 1, &[]).await;
    let request = pb::SetBalancerBandwidthRequestProto { bandwidth: 5 << 20 };
    let _: pb::SetBalancerBandwidthResponseProto =
        client.call("setBalancerBandwidth", &request).await.unwrap();
    assert_eq!(bandwidths(&first.heartbeat().await), [5 << 20]);
    assert_eq!(bandwidths(&first.heartbeat().await), [0; 0], "it is told once");
    assert_eq!(bandwidths(&FakeDataNode::told_first(&node, 2).await), [5 << 20]);
    let (node, client) = restart(node, dir.path()).await;
    assert_eq!(bandwidths(&FakeDataNode::told_first(&node, 1).await), [5 << 20]);
    let request = pb::SetBalancerBandwidthRequestProto { bandwidth: 0 };
    let _: pb::SetBalancerBandwidthResponseProto =
        client.call("setBalancerBandwidth", &request).await.unwrap();
    assert_eq!(bandwidths(&FakeDataNode::told_first(&node, 3).await), [0; 0]);
    node.shutdown().await;
}

/// What is to become of the DataNode on that port, as operators are told.
async fn state_of(client: &Client, port: u32) -> i32 {
    let request =
        pb::GetDatanodeReportRequestProto { r#type: pb::DatanodeReportTypeProto::All as i32 };
    let report: pb::GetDatanodeReportResponseProto =
        client.call("getDatanodeReport", &request).await.unwrap();
    let found = report.di.iter().find(|node| node.id.xfer_port == port).unwrap();
    found.admin_state.unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_to_become_of_datanodes_goes_from_the_file_of_an_earlier_version_to_the_log() {
    use pb::DatanodeInfoProtoAdminState as State;
    /// Of the DataNode with number 1.
    const HOST: &str = "host1";
    const PORT: u32 = 10_001;
    let dir = tempfile::tempdir().unwrap();
    let node = NameNode::start(config(dir.path())).await.unwrap();
    node.shutdown().await;
    let file = dir.path().join("datanodes.json");
    let entry = format!(
        "[{{\"hostName\": \"{HOST}\", \"port\": {PORT}, \"adminState\": \"DECOMMISSIONED\"}}]"
    );
    std::fs::write(&file, entry).unwrap();

    let node = NameNode::start(config(dir.path())).await.unwrap();
    assert!(!file.exists(), "the log has it");
    let client = Client::new(&node, CLIENT, SUPERUSER);
    FakeDataNode::start(&node, 1, &[]).await;
    assert_ne!(state_of(&client, PORT).await, State::Normal as i32);
    let (node, client) = restart(node, dir.path()).await;
    FakeDataNode::start(&node, 1, &[]).await;
    assert_ne!(state_of(&client, PORT).await, State::Normal as i32);
    let name = format!("{HOST}:{PORT}");
    let meant = node.node().set_intent(&[name], AdminIntent::InService).await.unwrap();
    assert_eq!(meant.len(), 1);
    let (node, client) = restart(node, dir.path()).await;
    FakeDataNode::start(&node, 1, &[]).await;
    assert_eq!(state_of(&client, PORT).await, State::Normal as i32);
    node.shutdown().await;
}
