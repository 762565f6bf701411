//! `refreshNodes`, what reports and pages say of DataNodes that leave, and DataNodes that may not serve.

use crate::cluster::*;
use cairn_namenode::config::HostsFormat;
use cairn_namenode::{NameNode, NameNodeConfig, RunningNameNode};
use cairn_wire::exception::class;
use cairn_wire::proto::{datanode as dn, hdfs as pb};
use std::path::Path;
use std::time::Duration;

async fn json_page(node: &RunningNameNode, path: &str) -> serde_json::Value {
    serde_json::from_str(&page(node, path).await).unwrap()
}

/// A NameNode that reads a JSON file of hosts, three DataNodes, and a client.
async fn start_with_file(dir: &Path) -> (RunningNameNode, Vec<FakeDataNode>, Client) {
    let hosts = dir.join("hosts.json");
    std::fs::write(&hosts, "").unwrap();
    let config = NameNodeConfig {
        hosts_file: Some(hosts),
        hosts_format: HostsFormat::Combined,
        decommission_interval: Duration::from_millis(50),
        ..config(&dir.join("name"))
    };
    let node = NameNode::start(config).await.unwrap();
    let mut datanodes = Vec::new();
    for number in 0..3 {
        datanodes.push(FakeDataNode::start(&node, number, &[]).await);
    }
    let client = Client::new(&node, CLIENT, SUPERUSER);
    (node, datanodes, client)
}

async fn refresh(dir: &Path, client: &Client, text: &str) {
    std::fs::write(dir.join("hosts.json"), text).unwrap();
    let request = pb::RefreshNodesRequestProto {};
    let _: pb::RefreshNodesResponseProto = client.call("refreshNodes", &request).await.unwrap();
}

async fn report(
    client: &Client,
    kind: pb::DatanodeReportTypeProto,
) -> pb::GetDatanodeReportResponseProto {
    let request = pb::GetDatanodeReportRequestProto { r#type: kind as i32 };
    client.call("getDatanodeReport", &request).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn open_files_that_keep_a_node_from_leaving_are_listed() {
    let dir = tempfile::tempdir().unwrap();
    let (_node, datanodes, client) = start_with_file(dir.path()).await;
    // The first block has three copies on three nodes and the second is open; the other file has no block.
    client.create("/held", "me").await;
    let located = client.add_block("/held", "me", None).await;
    let first = finish(&datanodes, &located, 1000, None).await;
    client.add_block("/held", "me", Some(first)).await;
    client.create("/idle", "me").await;
    let list = async |kind: pb::OpenFilesTypeProto, path: &str| {
        let path = Some(path.to_string());
        let request = pb::ListOpenFilesRequestProto { id: 0, types: vec![kind as i32], path };
        let listed: pb::ListOpenFilesResponseProto =
            client.call("listOpenFiles", &request).await.unwrap();
        assert!(!listed.has_more);
        listed.entries.into_iter().map(|file| file.path).collect::<Vec<_>>()
    };
    let (all, blocking) =
        (pb::OpenFilesTypeProto::AllOpenFiles, pb::OpenFilesTypeProto::BlockingDecommission);
    assert_eq!(list(all, "/").await, ["/held", "/idle"]);
    assert!(list(blocking, "/").await.is_empty());
    let text = r#"[{"hostName": "127.0.0.1", "port": 10000, "adminState": "DECOMMISSIONED"},
        {"hostName": "127.0.0.1", "port": 10001}, {"hostName": "127.0.0.1", "port": 10002}]"#;
    refresh(dir.path(), &client, text).await;
    assert_eq!(list(blocking, "/").await, ["/held"]);
    assert!(list(blocking, "/elsewhere").await.is_empty());
    let request = pb::ListOpenFilesRequestProto { id: 0, types: vec![9], path: None };
    let refused = client.call::<_, pb::ListOpenFilesResponseProto>("listOpenFiles", &request).await;
    assert!(refused.unwrap_err().is_remote(class::ILLEGAL_ARGUMENT));
}

/// `dfs.namenode.list.openfiles.num.responses`.
#[tokio::test(flavor = "multi_thread")]
async fn open_files_are_listed_in_pages() {
    let dir = tempfile::tempdir().unwrap();
    let config = NameNodeConfig { open_files_page: 2, ..config(dir.path()) };
    let node = NameNode::start(config).await.unwrap();
    let client = Client::new(&node, CLIENT, SUPERUSER);
    for path in ["/a", "/b", "/c"] {
        client.create(path, "me").await;
    }
    let mut id = 0;
    for (want, more) in [(&["/a", "/b"][..], true), (&["/c"], false)] {
        let request = pb::ListOpenFilesRequestProto { id, types: Vec::new(), path: None };
        let page: pb::ListOpenFilesResponseProto =
            client.call("listOpenFiles", &request).await.unwrap();
        let paths: Vec<_> = page.entries.iter().map(|file| file.path.as_str()).collect();
        assert_eq!((paths.as_slice(), page.has_more), (want, more));
        id = page.entries.last().unwrap().id;
    }
    node.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn row_14_reports_and_pages_say_how_far_a_node_is_and_what_holds_it_back() {
    use pb::DatanodeReportTypeProto as Kind;
    let dir = tempfile::tempdir().unwrap();
    let (node, datanodes, client) = start_with_file(dir.path()).await;
    // A block with three copies on three nodes: a fourth place is nowhere.
    client.create("/f", "me").await;
    let located = client.add_block("/f", "me", None).await;
    let last = finish(&datanodes, &located, 1000, None).await;
    assert!(client.complete("/f", "me", Some(last)).await);
    let text = r#"[{"hostName": "127.0.0.1", "port": 10000, "adminState": "DECOMMISSIONED"},
        {"hostName": "127.0.0.1", "port": 10001, "upgradeDomain": "ud1"},
        {"hostName": "127.0.0.1", "port": 10002},
        {"hostName": "127.0.0.1", "port": 10009, "adminState": "DECOMMISSIONED"}]"#;
    refresh(dir.path(), &client, text).await;
    let told = report(&client, Kind::Decommissioning).await;
    assert_eq!(told.di.len(), 1);
    let state = pb::DatanodeInfoProtoAdminState::DecommissionInprogress as i32;
    assert_eq!(told.di[0].admin_state, Some(state));
    let [leaving] = &told.leaving[..] else { panic!("{told:?}") };
    assert_eq!((leaving.datanode_uuid.as_str(), leaving.blocks_left), ("datanode-0", 1));
    assert_eq!((leaving.bytes_left, leaving.counted, leaving.seconds_left), (1000, true, None));
    let why = &leaving.blocks[0].held_back;
    assert!(why.starts_with("2 of 3 are on DataNodes in service"), "{why}");

    let body = json_page(&node, "/leaving?blocks=5").await;
    assert_eq!(body["nodes"][0]["xferaddr"], "127.0.0.1:10000");
    assert_eq!(body["nodes"][0]["state"], "Decommission In Progress");
    assert_eq!(body["nodes"][0]["blocks_left"], 1);
    assert_eq!(body["nodes"][0]["blocks"][0]["held_back"], why.as_str());
    let body = json_page(&node, "/jmx?qry=Hadoop:service=NameNode,name=NameNodeInfo").await;
    let beans = |name: &str| -> serde_json::Value {
        serde_json::from_str(body["beans"][0][name].as_str().unwrap()).unwrap()
    };
    let bean = &beans("DecomNodes")["host0:10000"];
    assert_eq!(
        (&bean["underReplicatedBlocks"], &bean["decommissionOnlyReplicas"]),
        (&1.into(), &0.into())
    );
    assert_eq!(beans("EnteringMaintenanceNodes"), serde_json::json!({}));
    assert_eq!(beans("LiveNodes")["host0:10000"]["adminState"], "Decommission In Progress");
    assert_eq!(beans("LiveNodes")["host1:10001"]["upgradeDomain"], "ud1");

    // What the file names and nobody has seen is dead, as far as anybody knows.
    let dead = report(&client, Kind::Dead).await;
    let [unseen] = &dead.di[..] else { panic!("{dead:?}") };
    assert_eq!((unseen.id.ip_addr.as_str(), unseen.id.xfer_port), ("127.0.0.1", 10_009));
    let state = pb::DatanodeInfoProtoAdminState::Decommissioned as i32;
    assert_eq!(unseen.admin_state, Some(state));
    let domains = report(&client, Kind::Live).await.di;
    assert_eq!(domains[1].upgrade_domain.as_deref(), Some("ud1"));

    // One copy fewer, and it may go.
    let request = pb::SetReplicationRequestProto { src: "/f".to_string(), replication: 2 };
    let _: pb::SetReplicationResponseProto = client.call("setReplication", &request).await.unwrap();
    let start = std::time::Instant::now();
    loop {
        let told = report(&client, Kind::All).await;
        let done = pb::DatanodeInfoProtoAdminState::Decommissioned as i32;
        if told.di[0].admin_state == Some(done) {
            assert_eq!(told.leaving, []);
            break;
        }
        assert!(start.elapsed() < Duration::from_secs(20), "{told:?}");
        for datanode in &datanodes {
            datanode.heartbeat().await;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    node.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_taken_off_the_list_is_known_no_more_and_refused() {
    use pb::DatanodeReportTypeProto as Kind;
    let dir = tempfile::tempdir().unwrap();
    let (node, datanodes, client) = start_with_file(dir.path()).await;
    let only =
        r#"{"hostName": "127.0.0.1", "port": 10001} {"hostName": "127.0.0.1", "port": 10002}"#;
    refresh(dir.path(), &client, only).await;
    assert_eq!(report(&client, Kind::All).await.di.len(), 2);
    let datanode = Client::new(&node, DATANODE, SUPERUSER);
    let registration = datanodes[0].registration().clone();
    let heartbeat = dn::HeartbeatRequestProto {
        registration: registration.clone(),
        ..dn::HeartbeatRequestProto::default()
    };
    let (class, text) = datanode.refused("sendHeartbeat", &heartbeat).await;
    assert_eq!(class, class::DISALLOWED_DATANODE);
    assert!(text.contains("not in the include-list"), "{text}");
    let request = dn::RegisterDatanodeRequestProto { registration };
    let (class, _) = datanode.refused("registerDatanode", &request).await;
    assert_eq!(class, class::DISALLOWED_DATANODE);
    // A file that makes no sense changes nothing.
    std::fs::write(dir.path().join("hosts.json"), "[{").unwrap();
    let (class, text) = client.refused("refreshNodes", &pb::RefreshNodesRequestProto {}).await;
    assert_eq!(class, class::IO);
    assert!(text.contains("is no file of hosts"), "{text}");
    assert_eq!(report(&client, Kind::All).await.di.len(), 2);
    refresh(dir.path(), &client, "").await;
    let _: dn::RegisterDatanodeResponseProto =
        datanode.call("registerDatanode", &request).await.unwrap();
    assert_eq!(report(&client, Kind::Live).await.di.len(), 3);
    node.shutdown().await;
}
