//! What the pages say of calls.

use cairn_namenode::RunningNameNode;
use cairn_wire::proto::hdfs as pb;
use serde_json::Value;

use crate::cluster::{CLIENT, Client, FakeDataNode, SUPERUSER, finish, page, start};

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

/// The samples of a name with their labels.
fn figures<'a>(page: &'a str, name: &'a str) -> impl Iterator<Item = (&'a str, u64)> {
    page.lines().filter_map(move |line| {
        let (sample, value) = line.strip_prefix("cairn_namenode_")?.rsplit_once(' ')?;
        let labels = sample.strip_prefix(name)?;
        (labels.is_empty() || labels.starts_with('{')).then(|| (labels, value.parse().unwrap()))
    })
}

/// The one sample of a name.
fn figure(page: &str, name: &str) -> u64 {
    let [("", value)] = figures(page, name).collect::<Vec<_>>()[..] else {
        panic!("{name} in\n{page}")
    };
    value
}

async fn write(client: &Client, datanodes: &[FakeDataNode], path: &str, len: u64) {
    client.create(path, "writer").await;
    let block = client.add_block(path, "writer", None).await;
    let last = finish(datanodes, &block, len, None).await;
    assert!(client.complete(path, "writer", Some(last)).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn prometheus_gets_whose_the_bytes_are() {
    let dir = tempfile::tempdir().unwrap();
    let (node, datanodes) = start(dir.path(), 3).await;
    let client = Client::new(&node, CLIENT, SUPERUSER);
    client.mkdirs("/user/a/deep/er").await;
    client.mkdirs("/user/b").await;
    for (path, len) in [
        ("/user/a/deep/er/1", 100),
        ("/user/a/2", 20),
        ("/user/b/3", 50),
        ("/user/4", 7),
        ("/5", 3),
    ] {
        write(&client, &datanodes, path, len).await;
    }
    let owner = pb::SetOwnerRequestProto {
        src: "/user/b/3".into(),
        username: Some("bea \"b\"".into()),
        groupname: None,
    };
    client.call::<_, pb::SetOwnerResponseProto>("setOwner", &owner).await.unwrap();
    let superuser = format!("{{user=\"{SUPERUSER}\"}}");
    let wanted = [
        ("directory_bytes", "{directory=\"/user/a\"}", 120),
        ("directory_bytes", "{directory=\"/user/b\"}", 50),
        ("directory_bytes", "{directory=\"/user\"}", 7),
        ("directory_bytes", "{directory=\"/\"}", 3),
        ("user_bytes", &superuser, 130),
        ("user_bytes", "{user=\"bea \\\"b\\\"\"}", 50),
        ("layout_data_bytes", "{layout=\"3 copies\"}", 180),
        ("layout_stored_bytes", "{layout=\"3 copies\"}", 540),
    ];
    // The first look has it counted, in the background; an older count is of less.
    let begun = std::time::Instant::now();
    loop {
        let text = page(&node, "/prom").await;
        let has = |(name, labels, value): &(&str, &str, u64)| {
            figures(&text, name).any(|found| found == (*labels, *value))
        };
        let Some(missing) = wanted.iter().find(|one| !has(one)) else {
            assert_eq!(figures(&text, "directory_bytes").count(), 4, "{text}");
            break;
        };
        assert!(begun.elapsed().as_secs() < 30, "{missing:?} is not in\n{text}");
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
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
        // Nobody gets a content summary of what is not there, and nobody a method that there is not.
        "rpc_exceptions_total{protocol=\"ClientProtocol\",exception=\"FileNotFoundException\"} 1"
            .to_string(),
        "rpc_exceptions_total{protocol=\"other\",exception=\"RpcNoSuchMethodException\"} 1"
            .to_string(),
        "waiting_groups{survives=\"0\"} 0".to_string(),
    ] {
        let line = format!("cairn_namenode_{line}");
        assert!(text.lines().any(|other| other == line), "{line}\n{text}");
    }
    assert!(!text.contains("\"rename2\""), "it was not called\n{text}");
    let all: u64 = figures(&text, "rpc_calls_total").map(|(_, count)| count).sum();
    assert_eq!(figure(&text, "rpc_queue_seconds_count"), all, "{text}");
    // Two directories and a file, at least.
    let (entries, syncs) =
        (figure(&text, "log_entries_total"), figure(&text, "log_sync_seconds_count"));
    assert!(entries >= 3 && (3..=entries).contains(&syncs), "{text}");
    assert!(figure(&text, "log_bytes_total") > 3 * 20, "{text}");
    // Each family once, and what is of it in one piece.
    let mut families = std::collections::BTreeSet::new();
    for family in text.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
        assert!(families.insert(family), "{family}");
    }
    node.shutdown().await;
}
