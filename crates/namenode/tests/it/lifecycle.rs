//! Starts, stops, safe mode, and writers that vanish.

use std::time::Duration;

use cairn_namenode::{NameNode, NameNodeConfig, StartError};
use cairn_namespace::ops::add_block::AddBlock;
use cairn_namespace::ops::complete::Complete;
use cairn_namespace::ops::create::Create;
use cairn_namespace::{BlockRef, Command, Outcome};
use cairn_wire::exception::class;
use cairn_wire::proto::hdfs as pb;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::cluster::{
    CLIENT, Client, FakeDataNode, SUPERUSER, config, create_request, finish, start,
};

/// After which the file of a silent writer may be taken over; long enough for what comes before that in a test.
const SOFT_LIMIT: Duration = Duration::from_secs(1);

/// Waits for something that the NameNode does by itself.
async fn eventually<F: Future<Output = bool>>(what: &str, mut check: impl FnMut() -> F) {
    for _ in 0..1000 {
        if check().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    panic!("{what} did not happen");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_that_is_not_formatted_is_refused_unless_that_is_wanted() {
    let dir = tempfile::tempdir().unwrap();
    let name_dir = dir.path().join("name");
    let refused = NameNodeConfig { format_if_empty: false, ..config(&name_dir) };
    assert!(matches!(NameNode::start(refused).await, Err(StartError::NotFormatted { .. })));
    assert!(!name_dir.exists());
    NameNode::start(config(&name_dir)).await.unwrap().shutdown().await;
    let again = NameNodeConfig { format_if_empty: false, ..config(&name_dir) };
    NameNode::start(again).await.unwrap().shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_keeps_everything_and_waits_in_safe_mode_for_its_blocks() {
    let dir = tempfile::tempdir().unwrap();
    let (node, datanodes) = start(dir.path(), 3).await;
    let client = Client::new(&node, CLIENT, SUPERUSER);
    for number in 0..30 {
        client.mkdirs(&format!("/d/{number:02}")).await;
    }
    client.create("/d/file", "writer").await;
    let block = client.add_block("/d/file", "writer", None).await;
    let last = finish(&datanodes, &block, 1234, None).await;
    assert!(client.complete("/d/file", "writer", Some(last)).await);
    let names = client.list("/d").await;
    let before = client.file_info("/d/file").await.unwrap();
    let pool = block.b.pool_id.clone();
    drop(datanodes);
    node.shutdown().await;

    // All blocks: 0.999 of one is none, as Hadoop counts.
    let all = NameNodeConfig { safe_mode_threshold: 1.0, ..config(dir.path()) };
    let node = NameNode::start(all).await.unwrap();
    let client = Client::new(&node, CLIENT, SUPERUSER);
    assert_eq!(client.list("/d").await, names);
    assert_eq!(client.file_info("/d/file").await.unwrap(), before);
    assert!(client.safe_mode(pb::SafeModeActionProto::SafemodeGet).await);
    let (class, text) = client.refused("create", &create_request("/new", "writer")).await;
    assert_eq!(class, class::SAFE_MODE);
    assert_eq!(text, "Cannot create file/new. Name node is in safe mode.");
    let src = "/d/file".to_string();
    let request =
        pb::GetBlockLocationsRequestProto { src, offset: 0, length: 1 << 30, ..Default::default() };
    let (class, text) = client.refused("getBlockLocations", &request).await;
    assert_eq!(class, class::SAFE_MODE);
    assert!(text.starts_with("Zero blocklocations for /d/file"), "{text}");

    let replica = pb::BlockProto {
        block_id: block.b.block_id,
        gen_stamp: block.b.generation_stamp,
        num_bytes: Some(1234),
    };
    let _datanode = FakeDataNode::start(&node, 0, &[replica]).await;
    eventually("the end of safe mode", || async {
        !client.safe_mode(pb::SafeModeActionProto::SafemodeGet).await
    })
    .await;
    let found = client.locations("/d/file").await;
    assert_eq!((found.blocks.len(), found.blocks[0].locs.len()), (1, 1));
    assert_eq!(found.blocks[0].b.pool_id, pool);
    client.create("/new", "writer").await;
    node.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn safe_mode_is_entered_and_left_by_hand() {
    let dir = tempfile::tempdir().unwrap();
    let (node, _) = start(dir.path(), 0).await;
    let client = Client::new(&node, CLIENT, SUPERUSER);
    assert!(!client.safe_mode(pb::SafeModeActionProto::SafemodeGet).await);
    let save = pb::SaveNamespaceRequestProto::default();
    let (class, text) = client.refused("saveNamespace", &save).await;
    assert_eq!(class, class::IO);
    assert!(text.starts_with("Safe mode should be turned ON"), "{text}");
    assert!(client.safe_mode(pb::SafeModeActionProto::SafemodeEnter).await);
    let saved: pb::SaveNamespaceResponseProto = client.call("saveNamespace", &save).await.unwrap();
    assert_eq!(saved.saved, Some(true));
    let (class, _) = client.refused("create", &create_request("/f", "writer")).await;
    assert_eq!(class, class::SAFE_MODE);
    assert!(!client.safe_mode(pb::SafeModeActionProto::SafemodeLeave).await);
    client.create("/f", "writer").await;
    node.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_vanished_writers_file_is_closed_without_its_empty_block() {
    let dir = tempfile::tempdir().unwrap();
    let short = NameNodeConfig {
        lease_soft_limit: SOFT_LIMIT,
        lease_hard_limit: Duration::from_secs(3),
        ..config(dir.path())
    };
    let node = NameNode::start(short).await.unwrap();
    let client = Client::new(&node, CLIENT, SUPERUSER);
    client.create("/f", "vanishing").await;
    let closed = || async {
        let request = pb::IsFileClosedRequestProto { src: "/f".to_string() };
        let answer: pb::IsFileClosedResponseProto =
            client.call("isFileClosed", &request).await.unwrap();
        answer.result
    };
    assert!(!closed().await);
    eventually("the end of the lease", closed).await;
    node.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recovered_lease_ends_with_what_a_datanode_says_of_the_last_block() {
    let dir = tempfile::tempdir().unwrap();
    let (node, datanodes) = start(dir.path(), 3).await;
    let client = Client::new(&node, CLIENT, SUPERUSER);
    client.create("/f", "vanishing").await;
    let block = client.add_block("/f", "vanishing", None).await;
    let request =
        pb::RecoverLeaseRequestProto { src: "/f".to_string(), client_name: "rescuer".to_string() };
    let answer: pb::RecoverLeaseResponseProto =
        client.call("recoverLease", &request).await.unwrap();
    assert!(!answer.result);
    let mut recovering = Vec::new();
    for datanode in &datanodes {
        for command in datanode.heartbeat().await {
            for block in command.recovery_cmd.into_iter().flat_map(|command| command.blocks) {
                recovering.push((datanode, block));
            }
        }
    }
    assert_eq!(recovering.len(), 1, "one DataNode leads the recovery");
    let (primary, recovery) = &recovering[0];
    assert_eq!(recovery.block.b.block_id, block.b.block_id);
    assert!(recovery.new_gen_stamp > block.b.generation_stamp);
    primary.commit_synchronization(recovery, 4321, false).await;
    let answer: pb::RecoverLeaseResponseProto =
        client.call("recoverLease", &request).await.unwrap();
    assert!(answer.result);
    let status = client.file_info("/f").await.unwrap();
    assert_eq!(status.length, 4321);
    node.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn silent_datanodes_are_dead_after_their_time() {
    let dir = tempfile::tempdir().unwrap();
    let quick = NameNodeConfig {
        heartbeat_interval: Duration::from_millis(20),
        heartbeat_recheck_interval: Duration::from_millis(50),
        ..config(dir.path())
    };
    let node = NameNode::start(quick).await.unwrap();
    let client = Client::new(&node, CLIENT, SUPERUSER);
    let _datanode = FakeDataNode::start(&node, 1, &[]).await;
    eventually("the death of the DataNode", || async {
        let request =
            pb::GetDatanodeReportRequestProto { r#type: pb::DatanodeReportTypeProto::Dead as i32 };
        let answer: pb::GetDatanodeReportResponseProto =
            client.call("getDatanodeReport", &request).await.unwrap();
        answer.di.iter().any(|info| info.id.datanode_uuid == "datanode-1")
    })
    .await;
    node.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_are_served() {
    let dir = tempfile::tempdir().unwrap();
    let (node, _datanodes) = start(dir.path(), 2).await;
    let addr = node.http_addr.unwrap();
    let get = |path: &'static str| async move {
        let mut stream = tokio::net::TcpStream::connect(addr).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().to_string(), body.to_string())
    };
    let (status, body) = get("/jmx?qry=Hadoop:service=NameNode,name=FSNamesystemState").await;
    assert_eq!(status, "200");
    let beans: serde_json::Value = serde_json::from_str(&body).unwrap();
    assert_eq!(beans["beans"].as_array().unwrap().len(), 1);
    assert_eq!(beans["beans"][0]["NumLiveDataNodes"], 2);
    assert_eq!(get("/health").await.0, "200");
    assert!(get("/datanodes").await.1.contains("host1:10001"));
    assert!(get("/prom").await.1.contains("cairn_namenode_live_datanodes 2"));
    assert_eq!(get("/nothing").await.0, "404");
    node.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_of_a_silent_writer_is_taken_over_by_the_next() {
    let dir = tempfile::tempdir().unwrap();
    let short = NameNodeConfig { lease_soft_limit: SOFT_LIMIT, ..config(dir.path()) };
    let node = NameNode::start(short).await.unwrap();
    let client = Client::new(&node, CLIENT, SUPERUSER);
    client.create("/f", "silent").await;
    let (class, text) = client.refused("create", &create_request("/f", "next")).await;
    assert_eq!(class, class::ALREADY_BEING_CREATED);
    assert!(text.contains("this file lease is currently owned by silent"), "{text}");
    tokio::time::sleep(SOFT_LIMIT + Duration::from_millis(100)).await;
    let (class, text) = client.refused("create", &create_request("/f", "next")).await;
    assert_eq!(class, class::RECOVERY_IN_PROGRESS);
    assert!(text.contains("lease recovery is in progress"), "{text}");
    // The refused call has begun the recovery, which has nothing to wait for.
    let (class, _) = client.refused("create", &create_request("/f", "next")).await;
    assert_eq!(class, class::FILE_ALREADY_EXISTS);
    node.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_append_to_a_silent_writers_block_waits_for_its_recovery() {
    let dir = tempfile::tempdir().unwrap();
    let short = NameNodeConfig { lease_soft_limit: SOFT_LIMIT, ..config(dir.path()) };
    let node = NameNode::start(short).await.unwrap();
    let datanode = FakeDataNode::start(&node, 1, &[]).await;
    let client = Client::new(&node, CLIENT, SUPERUSER);
    client.create("/f", "silent").await;
    client.add_block("/f", "silent", None).await;
    tokio::time::sleep(SOFT_LIMIT + Duration::from_millis(100)).await;
    let append = pb::AppendRequestProto {
        src: "/f".to_string(),
        client_name: "next".to_string(),
        flag: None,
    };
    let (class, text) = client.refused("append", &append).await;
    assert_eq!(class, class::RECOVERY_IN_PROGRESS, "{text}");
    let commands = datanode.heartbeat().await;
    let recoveries = commands.into_iter().filter_map(|command| command.recovery_cmd);
    let recovery = recoveries.flat_map(|command| command.blocks).next().expect("a recovery");
    datanode.commit_synchronization(&recovery, 3, false).await;
    let answer: pb::AppendResponseProto = client.call("append", &append).await.unwrap();
    assert_eq!(answer.stat.unwrap().length, 3);
    node.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn meta_save_writes_beside_the_log_and_nowhere_else() {
    let dir = tempfile::tempdir().unwrap();
    let (node, _datanodes) = start(dir.path(), 1).await;
    let client = Client::new(&node, CLIENT, SUPERUSER);
    for name in ["../escape", "/etc/x", "", "a b"] {
        let request = pb::MetaSaveRequestProto { filename: name.to_string() };
        assert_eq!(client.refused("metaSave", &request).await.0, class::ILLEGAL_ARGUMENT, "{name}");
    }
    let request = pb::MetaSaveRequestProto { filename: "now".to_string() };
    let _: pb::MetaSaveResponseProto = client.call("metaSave", &request).await.unwrap();
    let text = std::fs::read_to_string(dir.path().join("metasave-now")).unwrap();
    assert!(text.contains("Live Datanodes: 1"), "{text}");
    node.shutdown().await;
}

/// Files whose blocks nobody has reported are refused in each round.
#[tokio::test(flavor = "multi_thread")]
async fn files_that_cannot_be_released_do_not_keep_others_open() {
    let dir = tempfile::tempdir().unwrap();
    let config = NameNodeConfig {
        lease_soft_limit: SOFT_LIMIT,
        lease_hard_limit: Duration::from_secs(5),
        ..config(dir.path())
    };
    let node = NameNode::start(config).await.unwrap();
    let client = Client::new(&node, CLIENT, SUPERUSER);
    let submit = |command: Command| async {
        let outcome = node.node().submit_own(command).await;
        outcome.unwrap_or_else(|refusal| panic!("{}", refusal.0))
    };
    let holder = || "vanished".to_string();
    for number in 0..300 {
        let path = format!("/stuck/{number}");
        submit(create(&path, &holder()).into()).await;
        let mut previous = None;
        for _ in 0..2 {
            let added = submit(Command::from(AddBlock {
                path: path.clone(),
                file: None,
                holder: holder(),
                previous,
                previous_crcs: Vec::new(),
                previous_min_replicated: false,
            }));
            let Outcome::BlockAdded { block, .. } = added.await else { panic!("no block") };
            previous = Some(BlockRef { len: 7, ..block.reference() });
        }
        let complete = Complete {
            path,
            file: None,
            holder: holder(),
            last: previous,
            last_crcs: Vec::new(),
            min_replicated: false,
        };
        assert_eq!(submit(complete.into()).await, Outcome::Flag(false));
    }
    submit(create("/other", &holder()).into()).await;
    let closed = || async { !client.locations("/other").await.under_construction };
    eventually("the end of the last file's lease", closed).await;
    assert!(client.locations("/stuck/0").await.under_construction);
    node.shutdown().await;
}

fn create(path: &str, holder: &str) -> Create {
    Create {
        path: path.to_string(),
        mode: 0o644.into(),
        holder: holder.to_string(),
        client_machine: "host".to_string(),
        create: true,
        overwrite: false,
        should_replicate: false,
        create_parent: true,
        replication: 3,
        block_size: 1 << 20,
        ec_policy: None,
        storage_policy: None,
    }
}
