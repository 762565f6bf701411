//! What the pages say of calls.

use cairn_namenode::RunningNameNode;
use cairn_wire::proto::hdfs as pb;
use serde_json::Value;

use crate::cluster::{CLIENT, Client, SUPERUSER, page, start};

async fn bean(node: &RunningNameNode, name: &str) -> Value {
    let body = page(node, &format!("/jmx?qry=Hadoop:service=NameNode,name={name}")).await;
    let beans: Value = serde_json::from_str(&body).unwrap();
    let [bean] = &beans["beans"].as_array().unwrap()[..] else { panic!("{name}: {body}") };
    bean.clone()
}

/// Calls whose counts must be on all pages: two directories, three looks, and what is refused or unknown.
async fn make_calls(client: &Client) {
    client.mkdirs("/a").await;
    client.mkdirs("/b").await;
    for path in ["/a", "/b", "/none"] {
        client.file_info(path).await;
    }
    let request = pb::GetContentSummaryRequestProto { path: "/none".into() };
    client.refused("getContentSummary", &request).await;
    client.refused("makeUp", &request).await;
    client.create("/a/f", "writer").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn beans_of_calls_have_hadoops_names() {
    let dir = tempfile::tempdir().unwrap();
    let (node, _datanodes) = start(dir.path(), 1).await;
    let port = node.rpc_addr.port();
    let before = bean(&node, &format!("RpcActivityForPort{port}")).await;
    make_calls(&Client::new(&node, CLIENT, SUPERUSER)).await;

    let all = bean(&node, &format!("RpcActivityForPort{port}")).await;
    let rise = |key: &str| all[key].as_u64().unwrap() - before[key].as_u64().unwrap();
    // A DataNode may have called meanwhile.
    assert!(rise("RpcProcessingTimeNumOps") >= 8, "{all}");
    assert!(rise("RpcCallSuccesses") >= 6, "{all}");
    assert!(rise("ReceivedBytes") > 8 * 50 && rise("SentBytes") > 8 * 20, "{all}");
    assert!(all["RpcProcessingTimeAvgTime"].as_f64().unwrap() > 0.0, "{all}");
    assert!(all["NumOpenConnections"].as_u64().unwrap() >= 1, "{all}");
    assert_eq!(all["CallQueueLength"], 0);

    let detailed = bean(&node, &format!("RpcDetailedActivityForPort{port}")).await;
    for (name, count) in
        [("Mkdirs", 2), ("GetFileInfo", 3), ("GetContentSummary", 1), ("Rename2", 0)]
    {
        assert_eq!(detailed[format!("{name}NumOps")], count, "{name}");
        let mean = detailed[format!("{name}AvgTime")].as_f64().unwrap();
        assert_eq!(mean > 0.0, count > 0, "{name}: {mean}");
    }
    assert_eq!(detailed["OtherNumOps"], 1);

    let activity = bean(&node, "NameNodeActivity").await;
    let counts = [
        ("CreateFileOps", 1),
        ("FilesCreated", 1),
        ("FileInfoOps", 3),
        ("GetListingOps", 0),
        ("DeleteFileOps", 0),
        ("TotalFileOps", 4),
    ];
    for (name, count) in counts {
        assert_eq!(activity[name], count, "{name}");
    }
    assert_eq!(bean(&node, "FSNamesystem").await["NumEncryptionZones"], 0);
    node.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn prometheus_gets_calls_errors_and_times_by_method() {
    let dir = tempfile::tempdir().unwrap();
    let (node, _datanodes) = start(dir.path(), 1).await;
    make_calls(&Client::new(&node, CLIENT, SUPERUSER)).await;
    let text = page(&node, "/prom").await;
    let of = |method: &str| format!("{{protocol=\"ClientProtocol\",method=\"{method}\"");
    for line in [
        format!("rpc_calls_total{}}} 3", of("getFileInfo")),
        format!("rpc_errors_total{}}} 0", of("getFileInfo")),
        format!("rpc_calls_total{}}} 1", of("getContentSummary")),
        format!("rpc_errors_total{}}} 1", of("getContentSummary")),
        format!("rpc_seconds_bucket{},le=\"+Inf\"}} 3", of("getFileInfo")),
        format!("rpc_seconds_count{}}} 3", of("getFileInfo")),
        "rpc_calls_total{protocol=\"other\",method=\"other\"} 1".to_string(),
        "rpc_calls_total{protocol=\"DatanodeProtocol\",method=\"registerDatanode\"} 1".to_string(),
        "rpc_dropped_connections_total 0".to_string(),
    ] {
        let line = format!("cairn_namenode_{line}");
        assert!(text.lines().any(|other| other == line), "{line}\n{text}");
    }
    assert!(!text.contains("\"rename2\""), "it was not called\n{text}");
    // Each family once, and what is of it in one piece.
    let mut families = std::collections::BTreeSet::new();
    for family in text.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
        assert!(families.insert(family), "{family}");
    }
    node.shutdown().await;
}
