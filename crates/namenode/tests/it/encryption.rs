//! Encryption zones with a key server: what clients are told of files, and what happens without the server.

use std::sync::atomic::Ordering;
use std::time::Duration;

use cairn_namenode::{NameNode, NameNodeConfig, RunningNameNode};
use cairn_wire::exception::class;
use cairn_wire::proto::hdfs as pb;

use crate::cluster::{CLIENT, Client, FakeDataNode, SUPERUSER, config, create_request, page};
use crate::key_server::KeyServer;

const HOLDER: &str = "writer";
const CRYPT: u32 = pb::HdfsFileStatusProtoFlags::HasCrypt as u32;

async fn start(dir: &std::path::Path, keys: &KeyServer) -> (RunningNameNode, FakeDataNode, Client) {
    let config = NameNodeConfig { encryption: keys.config(), ..config(dir) };
    let node = NameNode::start(config).await.unwrap();
    let datanode = FakeDataNode::start(&node, 0, &[]).await;
    let client = Client::new(&node, CLIENT, SUPERUSER);
    (node, datanode, client)
}

async fn zone(client: &Client, path: &str) {
    client.mkdirs(path).await;
    let request = zone_request(path, "k");
    let _: pb::CreateEncryptionZoneResponseProto =
        client.call("createEncryptionZone", &request).await.unwrap();
}

fn zone_request(path: &str, key: &str) -> pb::CreateEncryptionZoneRequestProto {
    pb::CreateEncryptionZoneRequestProto { src: path.into(), key_name: Some(key.into()) }
}

fn creation(path: &str) -> pb::CreateRequestProto {
    pb::CreateRequestProto {
        crypto_protocol_version: vec![pb::CryptoProtocolVersionProto::EncryptionZones as i32],
        ..create_request(path, HOLDER)
    }
}

async fn write(client: &Client, path: &str) -> pb::HdfsFileStatusProto {
    let answer: pb::CreateResponseProto = client.call("create", &creation(path)).await.unwrap();
    assert!(client.complete(path, HOLDER, None).await);
    answer.fs.unwrap()
}

async fn reencrypt(client: &Client, path: &str, action: pb::ReencryptActionProto) {
    let request =
        pb::ReencryptEncryptionZoneRequestProto { action: action as i32, zone: path.into() };
    let _: pb::ReencryptEncryptionZoneResponseProto =
        client.call("reencryptEncryptionZone", &request).await.unwrap();
}

async fn status(client: &Client) -> Vec<pb::ZoneReencryptionStatusProto> {
    let request = pb::ListReencryptionStatusRequestProto { id: 0 };
    let answer: pb::ListReencryptionStatusResponseProto =
        client.call("listReencryptionStatus", &request).await.unwrap();
    answer.statuses
}

/// The status of the only re-encryption when it is over.
async fn completed(client: &Client) -> pb::ZoneReencryptionStatusProto {
    for _ in 0..600 {
        let found = status(client).await.remove(0);
        if found.state() == pb::ReencryptionStateProto::Completed {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("the re-encryption does not end");
}

async fn version_of(client: &Client, path: &str) -> String {
    client.file_info(path).await.unwrap().file_encryption_info.unwrap().ez_key_version_name
}

#[tokio::test(flavor = "multi_thread")]
async fn every_answer_about_a_file_tells_its_key() {
    let dir = tempfile::tempdir().unwrap();
    let keys = KeyServer::start().await;
    let (node, _datanode, client) = start(dir.path(), &keys).await;
    zone(&client, "/z").await;
    let created = write(&client, "/z/f").await;
    let info = created.file_encryption_info.clone().unwrap();
    assert_eq!((info.key_name.as_str(), info.ez_key_version_name.as_str()), ("k", "k@0"));
    assert_eq!((info.iv.len(), info.key.len(), created.flags()), (16, 16, CRYPT));
    let asked = client.file_info("/z/f").await.unwrap();
    assert_eq!((asked.file_encryption_info.as_ref(), asked.flags()), (Some(&info), CRYPT));
    let located = client.locations("/z/f").await;
    assert_eq!(located.file_encryption_info.as_ref(), Some(&info));
    let raw = client.file_info("/.reserved/raw/z/f").await.unwrap();
    assert_eq!((&raw.file_encryption_info, raw.flags()), (&None, CRYPT));
    let request = pb::GetListingRequestProto {
        src: "/z".into(),
        start_after: Vec::new(),
        need_location: false,
        read_up_to: None,
    };
    let listed: pb::GetListingResponseProto = client.call("getListing", &request).await.unwrap();
    let entry = &listed.dir_list.unwrap().partial_listing[0];
    assert_eq!(entry.file_encryption_info.as_ref(), Some(&info));
    assert_eq!(client.file_info("/z").await.unwrap().flags(), CRYPT);
    assert_eq!(client.file_info("/").await.unwrap().flags() & CRYPT, 0);
    let next = write(&client, "/z/g").await.file_encryption_info.unwrap();
    assert_ne!((next.key, next.iv), (info.key, info.iv), "each file has its own key");
    let request = pb::GetEZForPathRequestProto { src: "/z/f".into() };
    let found: pb::GetEZForPathResponseProto = client.call("getEZForPath", &request).await.unwrap();
    assert_eq!(found.zone.unwrap().path, "/z");
    let defaults: pb::GetServerDefaultsResponseProto =
        client.call("getServerDefaults", &pb::GetServerDefaultsRequestProto {}).await.unwrap();
    assert!(defaults.server_defaults.key_provider_uri().starts_with("kms://http@127.0.0.1:"));
    node.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn zones_are_listed_page_by_page() {
    let dir = tempfile::tempdir().unwrap();
    let keys = KeyServer::start().await;
    let (node, _datanode, client) = start(dir.path(), &keys).await;
    for path in ["/a", "/b", "/c", "/d", "/e"] {
        zone(&client, path).await;
    }
    let (mut id, mut found, mut more) = (0, Vec::new(), true);
    while more {
        let request = pb::ListEncryptionZonesRequestProto { id };
        let page: pb::ListEncryptionZonesResponseProto =
            client.call("listEncryptionZones", &request).await.unwrap();
        assert!((1..=2).contains(&page.zones.len()));
        id = page.zones.last().unwrap().id;
        found.extend(page.zones.into_iter().map(|zone| zone.path));
        more = page.has_more;
    }
    assert_eq!(found, ["/a", "/b", "/c", "/d", "/e"]);
    let beans = page(&node, "/jmx?qry=Hadoop:service=NameNode,name=FSNamesystem").await;
    assert!(beans.contains("\"NumEncryptionZones\":5"), "{beans}");
    node.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_its_key_server_a_zone_takes_no_files_and_others_do() {
    let dir = tempfile::tempdir().unwrap();
    let keys = KeyServer::start().await;
    let (node, _datanode, client) = start(dir.path(), &keys).await;
    zone(&client, "/z").await;
    let (error, _) = client.refused("createEncryptionZone", &zone_request("/", "none")).await;
    assert_eq!(error, class::IO);
    let old = create_request("/z/old", HOLDER);
    let (error, text) = client.refused("create", &old).await;
    assert_eq!(error, "org.apache.hadoop.hdfs.UnknownCryptoProtocolVersionException");
    assert!(text.contains("Client provided: [] NameNode supports: ["), "{text}");
    node.shutdown().await;

    // Nothing is ready after a start.
    keys.behaviour.is_away.store(true, Ordering::Relaxed);
    let (node, _datanode, client) = start(dir.path(), &keys).await;
    let (error, text) = client.refused("create", &creation("/z/f")).await;
    assert_eq!(error, class::IO);
    assert!(text.contains("KMS 127.0.0.1:"), "{text}");
    client.create("/plain", HOLDER).await;
    keys.behaviour.is_away.store(false, Ordering::Relaxed);
    write(&client, "/z/f").await;
    node.shutdown().await;

    // And nothing is written in the clear where no key server is known.
    let node = NameNode::start(config(dir.path())).await.unwrap();
    let _datanode = FakeDataNode::start(&node, 0, &[]).await;
    let client = Client::new(&node, CLIENT, SUPERUSER);
    let (_, text) = client.refused("create", &creation("/z/g")).await;
    let want = "Can't create /z/g in encryption zone /z since no key provider is available.";
    assert_eq!(text, want);
    assert_eq!(version_of(&client, "/z/f").await, "k@0");
    node.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn files_get_keys_of_the_new_version_also_after_a_start() {
    let dir = tempfile::tempdir().unwrap();
    let keys = KeyServer::start().await;
    let (node, _datanode, client) = start(dir.path(), &keys).await;
    zone(&client, "/z").await;
    client.mkdirs("/z/d").await;
    for number in 0..5 {
        write(&client, &format!("/z/d/{number}")).await;
    }
    keys.behaviour.rolled.store(1, Ordering::Relaxed);
    reencrypt(&client, "/z", pb::ReencryptActionProto::StartReencrypt).await;
    let done = completed(&client).await;
    assert_eq!((done.num_reencrypted, done.num_failures, done.canceled), (5, 0, false));
    assert_eq!((done.ez_key_version_name.as_str(), done.path.as_str()), ("k@1", "/z"));
    for number in 0..5 {
        assert_eq!(version_of(&client, &format!("/z/d/{number}")).await, "k@1");
    }
    write(&client, "/z/new").await;
    assert_eq!(version_of(&client, "/z/new").await, "k@1", "keys made ready before are not used");

    // In safe mode nothing is done; the next start goes on.
    keys.behaviour.rolled.store(2, Ordering::Relaxed);
    reencrypt(&client, "/z", pb::ReencryptActionProto::StartReencrypt).await;
    node.shutdown().await;
    let (node, _datanode, client) = start(dir.path(), &keys).await;
    let done = completed(&client).await;
    assert_eq!((done.num_reencrypted, done.ez_key_version_name.as_str()), (6, "k@2"));
    node.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_that_cannot_be_had_are_counted() {
    let dir = tempfile::tempdir().unwrap();
    let keys = KeyServer::start().await;
    let (node, _datanode, client) = start(dir.path(), &keys).await;
    zone(&client, "/z").await;
    for number in 0..3 {
        write(&client, &format!("/z/{number}")).await;
    }
    assert!(client.safe_mode(pb::SafeModeActionProto::SafemodeEnter).await);
    let action = pb::ReencryptActionProto::StartReencrypt as i32;
    let request = pb::ReencryptEncryptionZoneRequestProto { action, zone: "/z".into() };
    let (error, _) = client.refused("reencryptEncryptionZone", &request).await;
    assert_eq!(error, class::SAFE_MODE);
    assert!(!client.safe_mode(pb::SafeModeActionProto::SafemodeLeave).await);
    keys.behaviour.rolled.store(1, Ordering::Relaxed);
    keys.behaviour.fails_batches.store(true, Ordering::Relaxed);
    reencrypt(&client, "/z", pb::ReencryptActionProto::StartReencrypt).await;
    let done = completed(&client).await;
    assert_eq!((done.num_reencrypted, done.num_failures), (0, 3));
    assert_eq!(version_of(&client, "/z/0").await, "k@0");
    // What is refused together may be had one by one.
    keys.behaviour.fails_batches.store(false, Ordering::Relaxed);
    keys.behaviour.longest_batch.store(1, Ordering::Relaxed);
    reencrypt(&client, "/z", pb::ReencryptActionProto::StartReencrypt).await;
    let done = completed(&client).await;
    assert_eq!((done.num_reencrypted, done.num_failures), (3, 0));
    assert_eq!(version_of(&client, "/z/0").await, "k@1");
    let action = pb::ReencryptActionProto::CancelReencrypt as i32;
    let request = pb::ReencryptEncryptionZoneRequestProto { action, zone: "/z".into() };
    let (_, text) = client.refused("reencryptEncryptionZone", &request).await;
    assert_eq!(text, "Zone /z is not under re-encryption");
    node.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_trash_in_zones_is_emptied_too() {
    const HOUR_MS: u64 = 3_600_000;
    let dir = tempfile::tempdir().unwrap();
    let keys = KeyServer::start().await;
    let config = NameNodeConfig {
        encryption: keys.config(),
        trash_interval_minutes: 60,
        trash_cleans_others: true,
        ..config(dir.path())
    };
    let node = NameNode::start(config).await.unwrap();
    let client = Client::new(&node, CLIENT, SUPERUSER);
    zone(&client, "/z").await;
    zone(&client, "/without").await;
    // A home that is a zone has its own trash in that of the zone.
    zone(&client, "/user/ann").await;
    for root in ["/z/.Trash/ann", "/z/.Trash/bob", "/user/ann/.Trash/ann"] {
        client.mkdirs(&format!("{root}/Current/d")).await;
    }
    let now_ms = node.node().now().wall_ms;
    let empty = async |at_ms| node.node().empty_trash_at(at_ms).await.unwrap();
    empty(now_ms).await;
    for root in ["/z/.Trash/ann", "/z/.Trash/bob", "/user/ann/.Trash/ann"] {
        let kept = client.list(root).await;
        assert!(kept.len() == 1 && kept[0] != "Current", "{root}: {kept:?}");
    }
    empty(now_ms + 2 * HOUR_MS).await;
    for root in ["/z/.Trash/ann", "/z/.Trash/bob", "/user/ann/.Trash/ann"] {
        assert_eq!(client.list(root).await, [""; 0], "{root}");
    }
    node.shutdown().await;
}
