//! The pages for people, and what other tools ask the HTTP port.

use std::time::{Duration, Instant};

use cairn_namenode::config::AuditConfig;
use cairn_namenode::{NameNode, NameNodeConfig, RunningNameNode};
use cairn_stripe::Policy;
use cairn_wire::proto::hdfs as pb;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};

use crate::cluster::{CLIENT, Client, FakeDataNode, SUPERUSER, config, finish, page, start};

const PAGES: [&str; 9] = [
    "/",
    "/datanodes",
    "/coding",
    "/files",
    "/snapshots",
    "/slow",
    "/startup",
    "/workers",
    "/events",
];

async fn connect(node: &RunningNameNode, request: &str) -> tokio::net::TcpStream {
    let mut stream = tokio::net::TcpStream::connect(node.http_addr.unwrap()).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    stream
}

/// Head and body of an answer.
async fn whole(node: &RunningNameNode, path: &str, more: &str) -> (String, String) {
    let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{more}\r\n");
    let mut answer = String::new();
    connect(node, &request).await.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.to_lowercase(), body.to_string())
}

/// Waits until a page has that.
async fn wait_for(node: &RunningNameNode, path: &str, wanted: &str) -> String {
    let begun = Instant::now();
    loop {
        let text = page(node, path).await;
        if text.contains(wanted) {
            return text;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "no {wanted} in {text}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// With a thousand DataNodes, a hundred of which are on a page: what a browser loads first is below 100 KB.
#[tokio::test(flavor = "multi_thread")]
async fn pages_are_small_and_load_nothing_from_elsewhere() {
    let dir = tempfile::tempdir().unwrap();
    let (node, _datanodes) = start(dir.path(), 1000).await;
    let client = Client::new(&node, CLIENT, SUPERUSER);
    for number in 0..250 {
        client.mkdirs(&format!("/directory-{number}")).await;
    }
    let mut files = 0;
    for path in ["/page.css", "/page.js", "/page.svg"] {
        files += whole(&node, path, "").await.1.len();
    }
    for path in PAGES {
        let begun = Instant::now();
        let (head, body) = whole(&node, path, "").await;
        println!("{path}: {} bytes after {:?}", body.len(), begun.elapsed());
        assert!(head.starts_with("http/1.1 200 "), "{path}: {head}");
        assert!(head.contains("content-security-policy: default-src 'none'"), "{path}: {head}");
        assert!(!head.contains("unsafe"), "{path}: {head}");
        assert!(files + body.len() < 100_000, "{path} has {} bytes", files + body.len());
        assert_eq!(body.matches("<script").count(), 1, "{path}: {body}");
        assert!(body.contains("<script src=\"/page.js\" defer></script>"), "{path}");
        for what in [" style=", " onclick", "javascript:", "src=\"http"] {
            assert!(!body.contains(what), "{path} has {what}");
        }
        // A page without a script has its tables.
        assert!(body.contains("<h1>") && body.contains("aria-current=\"page\""), "{path}");
    }
    let first = page(&node, "/datanodes").await;
    assert_eq!(first.matches("class=\"badge good\">live<").count(), 100, "{first}");
    assert!(
        first.contains("href=\"/datanodes?from=100\"") && first.contains("1.00 TiB"),
        "{first}"
    );
    let last = page(&node, "/datanodes?from=950").await;
    assert_eq!(last.matches("class=\"badge good\">live<").count(), 50, "{last}");
    let first = page(&node, "/files").await;
    assert!(first.contains("directory-0") && !first.contains("directory-99<"), "{first}");
    let next = first.split("rel=\"next\" href=\"").nth(1).unwrap().split('"').next().unwrap();
    let second = page(&node, &next.replace("&amp;", "&")).await;
    assert!(second.contains("directory-99/<"), "{second}");
    for path in ["/none", "/files/x", "/page.html"] {
        assert!(whole(&node, path, "").await.0.starts_with("http/1.1 404 "), "{path}");
    }
    node.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn names_are_text_whatever_is_in_them() {
    let dir = tempfile::tempdir().unwrap();
    let (node, datanodes) = start(dir.path(), 3).await;
    let client = Client::new(&node, CLIENT, SUPERUSER);
    let name = "<img src=x onerror='a'>\"&amp; 漢字 %41+;#\u{202e}";
    let path = format!("/d/{name}");
    client.mkdirs("/d").await;
    client.create(&path, "me").await;
    let located = client.add_block(&path, "me", None).await;
    let last = finish(&datanodes, &located, 1000, None).await;
    assert!(client.complete(&path, "me", Some(last)).await);

    let listing = page(&node, "/files?path=/d").await;
    let shown = "&lt;img src=x onerror=&#39;a&#39;&gt;&quot;&amp;amp; 漢字 %41+;#\u{fffd}";
    assert!(listing.contains(&format!(">{shown}</a>")), "{listing}");
    let link = listing.split("?path=").find(|part| part.contains("img")).unwrap();
    let link = link.split('"').next().unwrap();
    let file = page(&node, &format!("/files?path={link}")).await;
    for text in [shown, "(1\u{202f}000 bytes)", "replica 3", "host", "-rw-r--r--", "3 copies"] {
        assert!(file.contains(text), "no {text} in {file}");
    }
    for text in [listing, file, page(&node, "/files?path=/%3Cb%3E&user.name=%3Ci%3E").await] {
        for markup in ["<img", "<b>0", "<i>", "\u{202e}", "onerror='"] {
            assert!(!text.contains(markup), "{markup} in {text}");
        }
    }
    node.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_browser_sees_what_its_user_may_and_the_audit_log_tells() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("audit.log");
    let audit = AuditConfig { file: Some(log.clone()), ..AuditConfig::default() };
    let settings = NameNodeConfig { audit, ..config(&dir.path().join("name")) };
    let node = NameNode::start(settings).await.unwrap();
    let client = Client::new(&node, CLIENT, SUPERUSER);
    client.mkdirs("/secret/inside").await;
    let request = pb::SetPermissionRequestProto {
        src: "/secret".to_string(),
        permission: pb::FsPermissionProto { perm: 0o700 },
    };
    let _: pb::SetPermissionResponseProto = client.call("setPermission", &request).await.unwrap();
    let refused = page(&node, "/files?path=/secret&user.name=alice").await;
    assert!(refused.contains("Permission denied: user=alice"), "{refused}");
    assert!(!refused.contains("inside"), "{refused}");
    let seen = page(&node, "/files?path=/secret&user.name=hdfs").await;
    assert!(seen.contains("inside/</a>") && seen.contains("drwxr-xr-x"), "{seen}");
    assert!(seen.contains("user.name=hdfs"), "links keep the user: {seen}");
    let other = whole(&node, "/files?user.name=alice&doas=hdfs", "").await;
    assert!(other.0.starts_with("http/1.1 403 "), "{}", other.0);
    node.shutdown().await;
    let told = std::fs::read_to_string(log).unwrap();
    let line = told.lines().find(|line| line.contains("allowed=false")).unwrap();
    assert!(line.contains("alice") && line.contains("src=/secret"), "{told}");
}

/// An erasure coded file is drawn by units, what a DataNode has is shown as lost when it dies, and the figures are those
/// that the beans have.
#[tokio::test(flavor = "multi_thread")]
async fn groups_are_drawn_and_what_is_lost_is_named_with_why() {
    let dir = tempfile::tempdir().unwrap();
    let (node, datanodes) = start(dir.path(), 9).await;
    let client = Client::new(&node, CLIENT, SUPERUSER);
    client.mkdirs("/ec").await;
    client.set_policy("/ec", "RS-6-3-1024k").await;
    client.create("/ec/f", "me").await;
    let located = client.add_block("/ec/f", "me", None).await;
    let policies = Policy::built_in();
    let policy = policies.iter().find(|policy| policy.name == "RS-6-3-1024k").unwrap();
    let last = finish(&datanodes, &located, 6 << 20, Some(policy)).await;
    assert!(client.complete("/ec/f", "me", Some(last)).await);

    let file = page(&node, "/files?path=/ec/f&user.name=hdfs").await;
    assert!(file.contains("group of 6 data and 3 parity units of 6.00 MiB"), "{file}");
    assert_eq!(file.matches("<li class=\"good\">").count(), 6, "{file}");
    assert_eq!(file.matches("<li class=\"good parity\">").count(), 3, "{file}");
    let coding = wait_for(&node, "/coding", "all are whole").await;
    assert!(coding.contains("RS-6-3-1024k"), "{coding}");
    let counted = wait_for(&node, "/", "<td>RS-6-3-1024k</td>").await;
    assert!(counted.contains("6.00 MiB") && counted.contains("9.00 MiB"), "{counted}");
    assert!(counted.contains("would take 9.00 MiB more"), "{counted}");

    for datanode in &datanodes[..2] {
        datanode.fail().await;
    }
    let file = wait_for(&node, "/files?path=/ec/f&user.name=hdfs", "on no DataNode").await;
    assert_eq!(file.matches("<li class=\"bad").count(), 2, "{file}");
    let coding = wait_for(&node, "/coding", "badge warn\">1<").await;
    let row = coding.split("<tr>").find(|row| row.contains("one more loss")).unwrap();
    assert!(row.contains("badge warn\">1<"), "{row}");
    for datanode in &datanodes[2..4] {
        datanode.fail().await;
    }
    let coding = wait_for(&node, "/coding", "5 good units are left, 6 are needed").await;
    assert!(coding.contains("path=%2Fec%2Ff"), "{coding}");
    let nodes = page(&node, "/datanodes").await;
    assert_eq!(nodes.matches("badge bad\">dead<").count(), 4, "{nodes}");
    node.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_tells_of_a_datanode_that_dies() {
    let dir = tempfile::tempdir().unwrap();
    let (node, datanodes) = start(dir.path(), 2).await;
    let request = "GET /live?page=%2Fdatanodes HTTP/1.1\r\nHost: x\r\n\r\n";
    let mut lines = BufReader::new(connect(&node, request).await).lines();
    let mut told = async |id: &str| loop {
        let line = lines.next_line().await.unwrap().unwrap();
        let Some(data) = line.strip_prefix("data: ") else { continue };
        let data: Value = serde_json::from_str(data).unwrap();
        if data["id"] == id {
            return data["html"].as_str().unwrap().to_string();
        }
    };
    assert!(!told("nodes").await.contains("dead"));
    datanodes[0].fail().await;
    while !told("nodes").await.contains("badge bad\">dead<") {}
    node.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tools_get_what_they_ask_hadoops_namenode() {
    let dir = tempfile::tempdir().unwrap();
    let settings = NameNodeConfig { safe_mode_min_datanodes: 1, ..config(dir.path()) };
    let node = NameNode::start(settings).await.unwrap();
    assert_eq!(page(&node, "/isActive").await, "I am Active!\n");
    let progress: Value = serde_json::from_str(&page(&node, "/startupProgress").await).unwrap();
    let names = progress["phases"].as_array().unwrap().iter().map(|phase| &phase["name"]);
    let names: Vec<&str> = names.map(|name| name.as_str().unwrap()).collect();
    assert_eq!(names, ["LoadingFsImage", "LoadingEdits", "SavingCheckpoint", "SafeMode"]);
    assert_eq!(progress["phases"][3]["status"], "RUNNING");
    assert!(page(&node, "/").await.contains("safe mode is on"));
    assert!(page(&node, "/startup").await.contains("needs an additional 1 live datanodes"));
    let _datanode = FakeDataNode::start(&node, 0, &[]).await;
    wait_for(&node, "/startupProgress", "\"percentComplete\":1.0,\"phases\"").await;
    wait_for(&node, "/", "safe mode is off").await;
    let stacks = page(&node, "/stacks").await;
    assert!(stacks.contains("operations are under way") && stacks.contains("threads"), "{stacks}");
    // This process has no log whose level changes.
    let level = whole(&node, "/logLevel?log=cairn&level=DEBUG", "").await;
    assert!(level.0.starts_with("http/1.1 503 "), "{level:?}");
    node.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn snapshots_and_what_is_slow_have_pages() {
    let dir = tempfile::tempdir().unwrap();
    let (node, _datanodes) = start(dir.path(), 1).await;
    let client = Client::new(&node, CLIENT, SUPERUSER);
    client.mkdirs("/s").await;
    let allow = pb::AllowSnapshotRequestProto { snapshot_root: "/s".to_string() };
    let _: pb::AllowSnapshotResponseProto = client.call("allowSnapshot", &allow).await.unwrap();
    let create = pb::CreateSnapshotRequestProto {
        snapshot_root: "/s".to_string(),
        snapshot_name: Some("<one>".to_string()),
    };
    let _: pb::CreateSnapshotResponseProto = client.call("createSnapshot", &create).await.unwrap();
    let snapshots = page(&node, "/snapshots").await;
    assert!(snapshots.contains("/s/.snapshot/&lt;one&gt;</a>"), "{snapshots}");
    let slow = page(&node, "/slow").await;
    assert!(slow.contains("dfs.datanode.peer.stats.enabled is off here"), "{slow}");
    node.shutdown().await;
}
