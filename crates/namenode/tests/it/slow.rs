//! DataNodes and disks that DataNodes call slow.

use std::time::Duration;

use cairn_namenode::{NameNode, NameNodeConfig, RunningNameNode};
use cairn_wire::proto::{datanode as dn, hdfs as pb};
use serde_json::{Value, json};

use crate::cluster::{CLIENT, Client, FakeDataNode, config, page};

/// What a DataNode says of another that takes 50 ms.
fn slow_peer(name: &str) -> dn::SlowPeerReportProto {
    dn::SlowPeerReportProto {
        data_node_id: Some(name.to_string()),
        aggregate_latency: Some(50.0),
        median: Some(1.5),
        mad: Some(0.25),
        upper_limit_latency: Some(5.0),
    }
}

async fn start(takes: bool) -> (tempfile::TempDir, RunningNameNode, Vec<FakeDataNode>) {
    let dir = tempfile::tempdir().unwrap();
    let mut config: NameNodeConfig = config(dir.path());
    config.slow.takes_peers = takes;
    config.slow.takes_disks = takes;
    config.slow.collect_interval = Duration::ZERO;
    let node = NameNode::start(config).await.unwrap();
    let mut datanodes = Vec::new();
    for number in 0..3 {
        datanodes.push(FakeDataNode::start(&node, number, &[]).await);
    }
    (dir, node, datanodes)
}

async fn slow_datanodes(node: &RunningNameNode) -> Vec<String> {
    let request = pb::GetSlowDatanodeReportRequestProto {};
    let answer: pb::GetSlowDatanodeReportResponseProto =
        Client::new(node, CLIENT, "alice").call("getSlowDatanodeReport", &request).await.unwrap();
    answer.datanode_info_proto.into_iter().map(|info| info.id.datanode_uuid).collect()
}

/// `SlowPeersReport` and `SlowDisksReport`.
async fn beans(node: &RunningNameNode) -> [Option<Value>; 2] {
    let body = page(node, "/jmx?qry=Hadoop:service=NameNode,name=NameNodeStatus").await;
    let body: Value = serde_json::from_str(&body).unwrap();
    ["SlowPeersReport", "SlowDisksReport"].map(|name| {
        let text = body["beans"][0].get(name).unwrap();
        text.as_str().map(|text| serde_json::from_str(text).unwrap())
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn what_datanodes_call_slow_is_told_to_operators_and_to_the_slow() {
    let (_dir, node, datanodes) = start(true).await;
    assert_eq!(beans(&node).await, [Some(json!([])), None]);
    assert!(slow_datanodes(&node).await.is_empty());
    let answer = datanodes[0].heartbeat_with_slow(vec![slow_peer("127.0.0.1:20002")], vec![]).await;
    assert_eq!(answer.is_slownode, Some(false));
    datanodes[2].heartbeat_with_slow(vec![slow_peer("127.0.0.1:20001")], vec![]).await;
    let disk = dn::SlowDiskReportProto {
        base_path: Some("/data/1".to_string()),
        mean_read_io_latency: Some(30.5),
        ..Default::default()
    };
    // An older one names nobody.
    let unnamed = dn::SlowPeerReportProto { data_node_id: None, ..slow_peer("") };
    let peers = vec![unnamed, slow_peer("127.0.0.1:20002")];
    datanodes[1].heartbeat_with_slow(peers, vec![disk]).await;
    assert_eq!(slow_datanodes(&node).await, ["datanode-2", "datanode-1"]);
    let report = |ports: &[u16]| -> Value {
        let one = |port| {
            json!({
                "ReportingNode": format!("127.0.0.1:{port}"),
                "ReportedLatency": 50.0,
                "MedianLatency": 1.5,
                "MadLatency": 0.25,
                "UpperLimitLatency": 5.0,
            })
        };
        ports.iter().map(one).collect()
    };
    let peers = json!([
        {"SlowNode": "127.0.0.1:20002", "SlowPeerLatencyWithReportingNodes": report(&[30000, 30001])},
        {"SlowNode": "127.0.0.1:20001", "SlowPeerLatencyWithReportingNodes": report(&[30002])},
    ]);
    let disks = json!([{"SlowDiskID": "127.0.0.1:30001:/data/1", "Latencies": {"READ": 30.5}}]);
    assert_eq!(beans(&node).await, [Some(peers), Some(disks)]);
    for _ in 0..500 {
        if datanodes[2].heartbeat_with_slow(vec![], vec![]).await.is_slownode == Some(true) {
            return node.shutdown().await;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("the slow DataNode is not told");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_keys_nobody_is_called_slow() {
    let (_dir, node, datanodes) = start(false).await;
    let disk =
        dn::SlowDiskReportProto { base_path: Some("/data".to_string()), ..Default::default() };
    datanodes[0].heartbeat_with_slow(vec![slow_peer("127.0.0.1:20002")], vec![disk]).await;
    assert!(slow_datanodes(&node).await.is_empty());
    assert_eq!(beans(&node).await, [None, None]);
    node.shutdown().await;
}
