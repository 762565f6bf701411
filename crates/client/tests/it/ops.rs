//! Names, appends, flushes and administration.

use crate::cluster::*;
use cairn_client::{ClientError, CreateOptions, FileSystem, SafeModeAction};
use cairn_net::rpc_client::{RpcClient, RpcClientOptions};
use cairn_wire::proto::hdfs::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn names_are_made_listed_moved_and_deleted() {
    let cluster = Cluster::start(1).await;
    let fs = &cluster.fs;
    assert!(fs.mkdirs("/a/b", 0o777).await.unwrap());
    assert_eq!(fs.require("/a/b").await.unwrap().permission, 0o755);
    let options = CreateOptions { replication: Some(1), ..CreateOptions::default() };
    for name in ["z", "y", "x"] {
        put(fs, &format!("/a/{name}"), name.as_bytes(), &options).await.unwrap();
    }
    let names = |list: Vec<cairn_client::FileStatus>| {
        list.iter().map(|status| status.path.clone()).collect::<Vec<_>>()
    };
    let listed = fs.list("/a").collect().await.unwrap();
    assert_eq!(names(listed), ["/a/b", "/a/x", "/a/y", "/a/z"]);
    assert!(matches!(fs.list("/no").next().await, Err(ClientError::NotFound { .. })));
    let again = fs.create("/a/x", &options).await.err().unwrap();
    assert!(again.is_remote("org.apache.hadoop.fs.FileAlreadyExistsException"), "{again}");
    let odd = CreateOptions { overwrite: true, block_size: Some(1000), ..options.clone() };
    assert!(matches!(fs.create("/a/x", &odd).await, Err(ClientError::Argument(_))));
    assert_eq!(get(fs, "/a/x").await.unwrap(), b"x");
    assert!(fs.rename("/a/x", "/a/b").await.unwrap());
    fs.rename_to("/a/y", "/a/z", true).await.unwrap();
    assert_eq!(get(fs, "/a/z").await.unwrap(), b"y");
    assert_eq!(get(fs, "/a/b/x").await.unwrap(), b"x");
    let summary = fs.content_summary("/").await.unwrap();
    assert_eq!((summary.len, summary.file_count), (2, 2));
    fs.set_permission("/a/z", 0o600).await.unwrap();
    fs.set_times("/a/z", Some(7), None).await.unwrap();
    let status = fs.require("/a/z").await.unwrap();
    assert_eq!((status.permission, status.modification_time_ms), (0o600, 7));
    assert!(fs.delete("/a", true).await.unwrap());
    assert!(!fs.delete("/a", true).await.unwrap());
    assert!(!fs.safe_mode(SafeModeAction::Get).await.unwrap());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn flushed_bytes_are_seen_and_files_grow_by_appends() {
    let cluster = Cluster::start(3).await;
    let fs = &cluster.fs;
    let data = bytes(2, 3_000_000);
    let options = CreateOptions { block_size: Some(1 << 20), ..CreateOptions::default() };
    let mut writer = fs.create("/f", &options).await.unwrap();
    let mut at = 0;
    // Flushes that cut a chunk, twice in the same chunk, and at a chunk.
    for count in [1000, 1, 23, 512, 70_000] {
        writer.write(&data[at..at + count]).await.unwrap();
        at += count;
        match count {
            1 => writer.hsync().await.unwrap(),
            _ => writer.hflush().await.unwrap(),
        }
        assert_same(&get(fs, "/f").await.unwrap(), &data[..at], &format!("flushed {count}"));
    }
    writer.hsync().await.unwrap();
    writer.close().await.unwrap();
    for count in [1, 700, 512, 65_536, 200_000, 977_040, 5, 1_000_000] {
        let mut writer = fs.append("/f").await.unwrap();
        assert_eq!(writer.position(), at as u64);
        writer.write(&data[at..at + count / 2]).await.unwrap();
        writer.hflush().await.unwrap();
        writer.write(&data[at + count / 2..at + count]).await.unwrap();
        writer.close().await.unwrap();
        at += count;
        assert_eq!(fs.require("/f").await.unwrap().len, at as u64);
        assert_same(&get(fs, "/f").await.unwrap(), &data[..at], &format!("appended {count}"));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn policies_are_enabled_set_and_inherited() {
    let cluster = Cluster::start(5).await;
    let fs = &cluster.fs;
    fs.mkdirs("/ec/sub", 0o755).await.unwrap();
    let refused = fs.set_policy("/ec", Some("RS-3-2-1024k")).await;
    assert!(matches!(refused, Err(ClientError::Remote { .. })), "{refused:?}");
    fs.enable_policy("RS-3-2-1024k").await.unwrap();
    fs.set_policy("/ec", Some("RS-3-2-1024k")).await.unwrap();
    put(fs, "/ec/sub/f", b"hello", &CreateOptions::default()).await.unwrap();
    let policy = fs.policy("/ec/sub/f").await.unwrap().unwrap();
    assert_eq!(policy.name, "RS-3-2-1024k");
    let mut writer = fs.create("/ec/g", &CreateOptions::default()).await.unwrap();
    writer.write(b"x").await.unwrap();
    assert!(writer.hflush().await.is_err(), "never a silent no-op");
    writer.close().await.unwrap();
    assert!(fs.append("/ec/g").await.is_err());
    fs.unset_policy("/ec").await.unwrap();
    put(fs, "/ec/plain", b"hello", &CreateOptions::default()).await.unwrap();
    assert_eq!(fs.policy("/ec/plain").await.unwrap(), None);
    assert_eq!(get(fs, "/ec/sub/f").await.unwrap(), b"hello");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_are_truncated() {
    let cluster = Cluster::start(1).await;
    let fs = &cluster.fs;
    let data = bytes(5, 3_000_000);
    let options = CreateOptions {
        block_size: Some(1 << 20),
        replication: Some(1),
        ..CreateOptions::default()
    };
    put(fs, "/f", &data, &options).await.unwrap();
    assert!(fs.truncate("/f", 2 << 20).await.unwrap(), "whole blocks go at once");
    assert_same(&get(fs, "/f").await.unwrap(), &data[..2 << 20], "two blocks");
    if !fs.truncate("/f", 1_500_000).await.unwrap() {
        while !fs.recover_lease("/f").await.unwrap() {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    }
    assert_same(&get(fs, "/f").await.unwrap(), &data[..1_500_000], "within a block");
    assert!(fs.truncate("/f", 1_500_001).await.is_err(), "a file does not grow");
    assert!(fs.truncate("/none", 0).await.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_file_is_copied_to_itself_by_another_name() {
    let cluster = Cluster::start(3).await;
    let fs = &cluster.fs;
    let again = FileSystem::connect(fs.config().clone()).await.unwrap();
    let options = CreateOptions { overwrite: true, ..CreateOptions::default() };
    let data = bytes(7, 300_000);
    put(fs, "/f", &data, &options).await.unwrap();
    put(fs, "/empty", &[], &options).await.unwrap();
    for path in ["/f", "/empty"] {
        let id = fs.require(path).await.unwrap().file_id;
        let names =
            [path.to_string(), format!("/.reserved/raw{path}"), format!("/.reserved/.inodes/{id}")];
        for (from, to) in names.iter().flat_map(|from| names.iter().map(move |to| (from, to))) {
            let error = fs.copy_file(from, &again, to, &options).await.unwrap_err();
            assert!(error.to_string().contains("to itself"), "{from} to {to}: {error}");
        }
    }
    assert_same(&get(fs, "/f").await.unwrap(), &data, "not copied");
    put(fs, "/g", &data[..7], &options).await.unwrap();
    fs.copy_file("/f", &again, "/g", &options).await.unwrap();
    assert_same(&get(fs, "/g").await.unwrap(), &data, "copied over another file");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_is_brought_back_from_a_snapshot_over_itself() {
    let cluster = Cluster::start(3).await;
    let fs = &cluster.fs;
    let options =
        CreateOptions { overwrite: true, create_parents: true, ..CreateOptions::default() };
    let data = bytes(8, 300_000);
    put(fs, "/d/f", &data, &options).await.unwrap();
    let protocol = "org.apache.hadoop.hdfs.protocol.ClientProtocol";
    let address = cluster.namenode.rpc_addr.to_string();
    let namenode = RpcClient::new(&address, protocol, "root", RpcClientOptions::default());
    let root = "/d".to_string();
    let allow = AllowSnapshotRequestProto { snapshot_root: root.clone() };
    let _: AllowSnapshotResponseProto = namenode.call("allowSnapshot", &allow).await.unwrap();
    let make =
        CreateSnapshotRequestProto { snapshot_root: root, snapshot_name: Some("s".to_string()) };
    let _: CreateSnapshotResponseProto = namenode.call("createSnapshot", &make).await.unwrap();
    fs.copy_file("/d/.snapshot/s/f", fs, "/d/f", &options).await.unwrap();
    assert_same(&get(fs, "/d/f").await.unwrap(), &data, "brought back");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_writer_without_packets_in_flight_sends_one_at_a_time() {
    let change = |config: &mut cairn_client::ClientConfig| config.packets_in_flight = 0;
    let cluster = Cluster::start_with(3, change).await;
    let data = bytes(9, 3_000_000);
    let options = CreateOptions::default();
    let written = put(&cluster.fs, "/f", &data, &options);
    let limit = std::time::Duration::from_secs(60);
    tokio::time::timeout(limit, written).await.expect("it is written").unwrap();
    assert_same(&get(&cluster.fs, "/f").await.unwrap(), &data, "one at a time");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_of_one_opened_file_have_their_own_places() {
    let cluster = Cluster::start(5).await;
    let fs = &cluster.fs;
    fs.enable_policy("RS-3-2-1024k").await.unwrap();
    let data = bytes(6, 5_000_000);
    put(fs, "/f", &data, &striped("RS-3-2-1024k", 1 << 20)).await.unwrap();
    let mut one = fs.open("/f").await.unwrap();
    assert!(one.next_chunk_up_to(0).await.unwrap().is_none());
    assert_same(&one.next_chunk_up_to(1000).await.unwrap().unwrap(), &data[..1000], "a piece");
    let mut other = one.another();
    // Neither asks for the path again.
    fs.rename_to("/f", "/g", false).await.unwrap();
    let mut got = Vec::new();
    one.unbuffer();
    while let Some(chunk) = one.next_chunk_up_to(700_001).await.unwrap() {
        assert!(chunk.len() <= 700_001);
        got.extend_from_slice(&chunk);
    }
    assert_same(&got, &data[1000..], "the rest");
    other.seek(1_000_000);
    let chunk = other.next_chunk_up_to(100_000).await.unwrap().unwrap();
    let end = 1_000_000 + chunk.len();
    assert_same(&chunk, &data[1_000_000..end], "another place");
    assert_eq!((one.position(), other.position()), (5_000_000, end as u64));
}
