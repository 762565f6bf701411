//! What `/fsck` says over HTTP: whom it answers, how it walks, pages and deletes. Its words are compared
//! with Hadoop's in `interop/hadoop/cases/fsck`.

use std::net::SocketAddr;

use cairn_namenode::{NameNode, NameNodeConfig};
use cairn_wire::proto::{datanode as dn, hdfs as pb};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::cluster::{
    CLIENT, Client, FakeDataNode, SUPERUSER, config, create_request, finish, start,
};

/// Status and body of a page.
async fn get(addr: SocketAddr, method: &str, target: &str) -> (String, String) {
    let mut stream = tokio::net::TcpStream::connect(addr).await.unwrap();
    let request = format!("{method} {target} HTTP/1.0\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().to_string(), body.to_string())
}

async fn fsck(addr: SocketAddr, query: &str) -> String {
    let (status, body) = get(addr, "GET", &format!("/fsck?{query}")).await;
    assert_eq!(status, "200", "{query}");
    body
}

/// A file of one block of `len` bytes on those DataNodes that it was placed on.
async fn write(
    client: &Client,
    datanodes: &[FakeDataNode],
    path: &str,
    len: u64,
) -> pb::LocatedBlockProto {
    client.create(path, "writer").await;
    let block = client.add_block(path, "writer", None).await;
    let last = finish(datanodes, &block, len, None).await;
    assert!(client.complete(path, "writer", Some(last)).await);
    block
}

/// All DataNodes report that they hold nothing.
async fn lose_all(datanodes: &[FakeDataNode]) {
    for datanode in datanodes {
        datanode.report(&[]).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_is_made_for_the_user_that_asks() {
    let dir = tempfile::tempdir().unwrap();
    let (node, datanodes) = start(dir.path(), 3).await;
    let addr = node.http_addr.unwrap();
    let client = Client::new(&node, CLIENT, SUPERUSER);
    let block = write(&client, &datanodes, "/d/f", 10).await;

    let text = fsck(addr, "ugi=hdfs&path=/").await;
    assert!(text.starts_with("FSCK started by hdfs (auth:SIMPLE) from /127.0.0.1 for path / at "));
    assert!(text.ends_with("\n\n\nThe filesystem under path '/' is HEALTHY"), "{text}");
    let text = fsck(addr, "ugi=hdfs&path=/d/none").await;
    assert!(text.ends_with("\n\n\nPath '/d/none' does not exist"), "{text}");
    let text = fsck(addr, "ugi=hdfs&path=nowhere").await;
    assert!(text.ends_with("\n\n\nFsck on path 'nowhere' FAILED"), "{text}");

    let name = format!("blk_{}", block.b.block_id);
    let text = fsck(addr, &format!("ugi=hdfs,supergroup&blockId={name}+")).await;
    assert!(
        text.contains("Block belongs to: /d/f\n") && text.ends_with("/default-rack is HEALTHY\n")
    );
    // `user.name` goes before `ugi`; who does not say it is dr.who.
    for (query, user) in [("user.name=alice&ugi=hdfs", "alice"), ("x=y", "dr.who")] {
        let text = fsck(addr, &format!("{query}&blockId={name}")).await;
        let refusal = format!(
            "Access denied for user {user}. Superuser privilege is required for operation fsck"
        );
        assert!(text.contains(&refusal) && text.ends_with("Fsck on path '/' FAILED"), "{text}");
    }
    assert_eq!(get(addr, "GET", "/fsck?ugi=hdfs&doas=alice").await.0, "403");
    assert_eq!(get(addr, "GET", "/fsck?ugi=").await.0, "400");
    assert_eq!(get(addr, "HEAD", "/fsck?ugi=hdfs").await.0, "405");

    let json = fsck(addr, "ugi=hdfs&path=/&blocks=1&format=json").await;
    let lines: Vec<serde_json::Value> =
        json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 2, "{json}");
    assert_eq!((&lines[0]["path"], &lines[0]["live"]), (&"/d/f".into(), &3.into()));
    assert_eq!((&lines[1]["status"], &lines[1]["directories"]), (&"HEALTHY".into(), &2.into()));
    node.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_folder_is_walked_page_by_page() {
    let dir = tempfile::tempdir().unwrap();
    let settings = NameNodeConfig { listing_limit: 3, ..config(dir.path()) };
    let node = NameNode::start(settings).await.unwrap();
    let client = Client::new(&node, CLIENT, SUPERUSER);
    for number in 0..7 {
        client.mkdirs(&format!("/d/{number}/below")).await;
    }
    let text = fsck(node.http_addr.unwrap(), "ugi=hdfs&path=/d&files=1").await;
    assert!(text.contains(" Total dirs:\t\t\t15\n"), "{text}");
    assert!(text.contains("/d/6 <dir>\n/d/6/below <dir>\n\nStatus: HEALTHY\n"), "{text}");
    node.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_blocks_are_listed_page_by_page_and_their_files_deleted() {
    let dir = tempfile::tempdir().unwrap();
    let (node, datanodes) = start(dir.path(), 3).await;
    let addr = node.http_addr.unwrap();
    let client = Client::new(&node, CLIENT, SUPERUSER);
    for path in ["/a/f", "/b/f"] {
        write(&client, &datanodes, path, 10).await;
    }
    let none = fsck(addr, "ugi=hdfs&listcorruptfileblocks=1&path=/").await;
    assert!(none.contains("Cookie:\t0\n") && none.contains("' has no CORRUPT files\n"), "{none}");
    lose_all(&datanodes).await;
    write(&client, &datanodes, "/a/whole", 10).await;
    let page = async |path: &str, after: usize| {
        let query = format!("ugi=hdfs&listcorruptfileblocks=1&path={path}&startblockafter={after}");
        let text = fsck(addr, &query).await;
        let rows: Vec<String> = text
            .lines()
            .filter(|line| line.starts_with("blk_"))
            .map(|line| line.split('\t').skip(1).collect::<Vec<_>>().join(" "))
            .collect();
        (rows, text)
    };
    assert_eq!(page("/", 0).await.0, ["3 /a/f", "3 /b/f"]);
    assert_eq!(page("/b", 0).await.0, ["3 /b/f"]);
    assert_eq!(page("/", 1).await.0, ["3 /b/f"]);
    let (rows, text) = page("/", 2).await;
    assert!(rows.is_empty() && text.contains("' has no more CORRUPT files\n"), "{text}");

    let text = fsck(addr, "ugi=hdfs&path=/a&delete=1").await;
    assert!(text.contains("/a/f: MISSING 1 blocks of total size 10 B."), "{text}");
    assert!(text.ends_with("The filesystem under path '/a' is CORRUPT"), "{text}");
    assert_eq!(client.list("/a").await, ["whole"]);
    assert_eq!(client.list("/b").await, ["f"]);
    // Who may not delete is told so.
    let text = fsck(addr, "ugi=alice&path=/b&delete=1").await;
    assert!(text.contains("\nfsck encountered internal errors!\n\n\nFsck on path '/b' FAILED"));
    // A NameNode that was given no salvager cannot copy what is left.
    let text = fsck(addr, "ugi=hdfs&path=/b&move=1").await;
    assert!(text.ends_with("Fsck on path '/b' FAILED"), "{text}");
    assert_eq!(client.list("/b").await, ["f"]);
    node.shutdown().await;
}

/// As many replicas have one CRC as have the other: an operator has to see to it.
#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_replicas_agree_against_is_told_of() {
    let dir = tempfile::tempdir().unwrap();
    let (node, datanodes) = start(dir.path(), 4).await;
    let addr = node.http_addr.unwrap();
    let client = Client::new(&node, CLIENT, SUPERUSER);
    let request = pb::CreateRequestProto { replication: 4, ..create_request("/f", "writer") };
    let _: pb::CreateResponseProto = client.call("create", &request).await.unwrap();
    let block = client.add_block("/f", "writer", None).await.b;
    let replica = pb::BlockProto {
        block_id: block.block_id,
        gen_stamp: block.generation_stamp,
        num_bytes: Some(100),
    };
    for datanode in &datanodes[..2] {
        datanode.received(replica.clone(), Some(6)).await;
    }
    let last = pb::ExtendedBlockProto { num_bytes: Some(100), ..block.clone() };
    assert!(client.complete("/f", "writer", Some(last)).await);
    for (told, datanode) in datanodes[2..].iter().enumerate() {
        assert!(!fsck(addr, "ugi=hdfs&path=/").await.contains("DOUBTFUL"), "{told} against it");
        datanode.received(replica.clone(), Some(7)).await;
    }
    let text = fsck(addr, "ugi=hdfs&path=/").await;
    let (pool, id, gs) = (&block.pool_id, block.block_id, block.generation_stamp);
    let line =
        format!("\n/f: DOUBTFUL CRC record of {pool}:blk_{id}_{gs}: replicas agree against it. ");
    assert!(text.contains(&line), "{text}");
    let request = pb::MetaSaveRequestProto { filename: "doubts".to_string() };
    let _: pb::MetaSaveResponseProto = client.call("metaSave", &request).await.unwrap();
    let saved = std::fs::read_to_string(dir.path().join("metasave-doubts")).unwrap();
    assert!(saved.contains("\nMetasave: Blocks with doubtful CRC records: 1\n/f: "), "{saved}");
}

#[tokio::test(flavor = "multi_thread")]
async fn files_that_only_snapshots_have_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let (node, datanodes) = start(dir.path(), 3).await;
    let addr = node.http_addr.unwrap();
    let client = Client::new(&node, CLIENT, SUPERUSER);
    let block = write(&client, &datanodes, "/d/sub/f", 10).await;
    write(&client, &datanodes, "/d/moved", 10).await;
    let request = pb::AllowSnapshotRequestProto { snapshot_root: "/d".to_string() };
    let _: pb::AllowSnapshotResponseProto = client.call("allowSnapshot", &request).await.unwrap();
    for name in ["one", "two"] {
        let request = pb::CreateSnapshotRequestProto {
            snapshot_root: "/d".to_string(),
            snapshot_name: Some(name.to_string()),
        };
        let _: pb::CreateSnapshotResponseProto =
            client.call("createSnapshot", &request).await.unwrap();
    }
    let request = pb::DeleteRequestProto { src: "/d/sub".to_string(), recursive: true };
    let _: pb::DeleteResponseProto = client.call("delete", &request).await.unwrap();
    let request =
        pb::RenameRequestProto { src: "/d/moved".to_string(), dst: "/d/here".to_string() };
    let _: pb::RenameResponseProto = client.call("rename", &request).await.unwrap();
    // Another file at that path is not the one that is lost.
    client.create("/d/moved", "writer").await;

    let text = fsck(addr, "ugi=hdfs&path=/&files=1&includeSnapshots=1").await;
    assert!(text.contains("\n/d/.snapshot/one/sub/f 10 bytes"), "{text}");
    assert!(text.contains(" Total dirs:\t\t\t7\n") && text.ends_with("is HEALTHY"), "{text}");
    lose_all(&datanodes).await;
    let name = format!("blk_{}", block.b.block_id);
    let text = fsck(addr, &format!("ugi=hdfs&blockId={name}")).await;
    assert!(text.contains("Block belongs to: /d/sub/f\n"), "{text}");
    let text = fsck(addr, "ugi=hdfs&path=/&listcorruptfileblocks=1").await;
    assert!(text.contains("\t3\t/d/here\n") && text.ends_with("has 1 CORRUPT files\n\n"), "{text}");
    let text = fsck(addr, "ugi=hdfs&path=/&listcorruptfileblocks=1&includeSnapshots=1").await;
    for path in ["one", "two"] {
        assert!(text.contains(&format!("{name}\t/d/.snapshot/{path}/sub/f\n")), "{text}");
    }
    assert!(text.ends_with("has 3 CORRUPT files\n\n"), "{text}");
    let request = pb::ListCorruptFileBlocksRequestProto { path: "/".to_string(), cookie: None };
    let answer: pb::ListCorruptFileBlocksResponseProto =
        client.call("listCorruptFileBlocks", &request).await.unwrap();
    let mut files = answer.corrupt.files;
    files.sort();
    assert_eq!(files, ["/d/here", "/d/sub/f"]);
    node.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn replicas_that_disagree_without_a_culprit_are_told_of() {
    let dir = tempfile::tempdir().unwrap();
    let (node, datanodes) = start(dir.path(), 2).await;
    let addr = node.http_addr.unwrap();
    let client = Client::new(&node, CLIENT, SUPERUSER);
    client.create("/f", "writer").await;
    let block = client.add_block("/f", "writer", None).await.b;
    let replica = pb::BlockProto {
        block_id: block.block_id,
        gen_stamp: block.generation_stamp,
        num_bytes: Some(10),
    };
    for datanode in &datanodes {
        datanode.received(replica.clone(), None).await;
    }
    let last = pb::ExtendedBlockProto { num_bytes: Some(10), ..block.clone() };
    assert!(client.complete("/f", "writer", Some(last)).await);
    let mut orders = Vec::new();
    while orders.is_empty() {
        orders = datanodes[0].heartbeat_with_scrubs(Vec::new()).await;
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    let order = &orders[0];
    let uuids = order.storage_uuids.storage_uuids.iter().zip(1..);
    let place = |(uuid, crc32c): (&String, u32)| dn::ScrubbedPlaceProto {
        storage_uuid: uuid.clone(),
        unit: 0,
        crc32c: Some(crc32c),
    };
    let seen = dn::ScrubbedBlockProto {
        block: replica,
        places: uuids.map(place).collect(),
        agree: None,
        suspects: None,
    };
    datanodes[0].heartbeat_with_scrubs(vec![seen]).await;
    let text = fsck(addr, "ugi=hdfs&path=/").await;
    let (pool, id, gs) = (&block.pool_id, block.block_id, block.generation_stamp);
    let line = format!("\n/f: DISAGREEING replicas of {pool}:blk_{id}_{gs}: ");
    assert!(text.contains(&line), "{text}");
    let json = fsck(addr, "ugi=hdfs&path=/&format=json").await;
    assert!(json.contains("\"disagree\":true"), "{json}");
    let request = pb::MetaSaveRequestProto { filename: "state".to_string() };
    let _: pb::MetaSaveResponseProto = client.call("metaSave", &request).await.unwrap();
    let saved = std::fs::read_to_string(dir.path().join("metasave-state")).unwrap();
    let line = "\nMetasave: Blocks whose replicas or units disagree: 1\n/f: ";
    assert!(saved.contains(line), "{saved}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_superusers_may_not_read_is_named_and_passed_over() {
    let dir = tempfile::tempdir().unwrap();
    let (node, datanodes) = start(dir.path(), 3).await;
    let addr = node.http_addr.unwrap();
    let client = Client::new(&node, CLIENT, SUPERUSER);
    write(&client, &datanodes, "/d/a", 10).await;
    write(&client, &datanodes, "/d/b", 10).await;
    let mark = pb::SetXAttrRequestProto {
        src: "/d/a".to_string(),
        x_attr: Some(pb::XAttrProto {
            namespace: pb::XAttrProtoXAttrNamespaceProto::Security as i32,
            name: "hdfs.unreadable.by.superuser".to_string(),
            value: None,
        }),
        flag: Some(pb::XAttrSetFlagProto::XattrCreate as u32),
    };
    let _: pb::SetXAttrResponseProto = client.call("setXAttr", &mark).await.unwrap();

    let text = fsck(addr, "ugi=hdfs&path=/&files=1").await;
    assert!(text.contains("\n/d/a: NOT LOOKED AT: "), "{text}");
    assert!(text.contains("/d/b 10 bytes"), "{text}");
    assert!(text.contains("Files that were not looked at:\t1\n"), "{text}");
    assert!(text.ends_with("The filesystem under path '/' is HEALTHY"), "{text}");
    let json = fsck(addr, "ugi=hdfs&path=/&format=json").await;
    let last: serde_json::Value = serde_json::from_str(json.lines().last().unwrap()).unwrap();
    assert_eq!(last["files_not_looked_at"], 1);
}
