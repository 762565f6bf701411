//! The way back to 5119dd8: an upgrade that it has prepared is gone back from after this build has changed the namespace.

use std::collections::BTreeMap;
use std::path::Path;

use cairn_namenode::journal::offline::check_folder;
use cairn_namenode::{NameNode, NameNodeConfig};
use cairn_net::rpc_client::{RpcClient, RpcClientOptions};
use cairn_wire::proto::hdfs as pb;

use super::scene::{self, Recorder};
use super::{Process, assert_same, facts, facts_of, pack, start, stored};
use crate::cluster::{CLIENT, Client, FakeDataNode, SUPERUSER, config};
use crate::upgrade::{delete, upgrade};

const START_MS: u64 = 1_795_724_480_000;

/// The files of a folder with their bytes.
fn files(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(dir).unwrap().map(Result::unwrap);
    let file = |entry: std::fs::DirEntry| {
        (entry.file_name().into_string().unwrap(), std::fs::read(entry.path()).unwrap())
    };
    entries.map(file).collect()
}

/// Makes the rollback point that 5119dd8 makes when it has just written its store: a copy of that, and where it ends.
fn prepare_as_the_former(dir: &Path) {
    let rollback = dir.join("rollback");
    std::fs::create_dir(&rollback).unwrap();
    for (name, bytes) in files_of_store(dir) {
        std::fs::write(rollback.join(name), bytes).unwrap();
    }
    let sequence = check_folder(dir, 1 << 20).unwrap().stored;
    let point = format!("startTime={START_MS}\nsequence={sequence}\n");
    std::fs::write(rollback.join("point"), point).unwrap();
}

fn files_of_store(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(dir).unwrap().map(Result::unwrap);
    let names = entries.map(|entry| entry.file_name().into_string().unwrap());
    let of_store = names.filter(|name| name.starts_with("namespace."));
    of_store.map(|name| (name.clone(), std::fs::read(dir.join(name)).unwrap())).collect()
}

/// What this build does before somebody wants to go back: it changes what was there, and writes its own store and log.
async fn change(client: &Client) {
    client.safe_mode(pb::SafeModeActionProto::SafemodeLeave).await;
    delete(client, "/one/joined").await;
    delete(client, "/one/ec").await;
    client.mkdirs("/new").await;
    client.safe_mode(pb::SafeModeActionProto::SafemodeEnter).await;
    let save = pb::SaveNamespaceRequestProto { time_window: None, tx_gap: None };
    let saved: pb::SaveNamespaceResponseProto = client.call("saveNamespace", &save).await.unwrap();
    assert!(saved.saved());
    client.safe_mode(pb::SafeModeActionProto::SafemodeLeave).await;
    client.mkdirs("/newer").await;
}

/// What facts say of a path and what is below it.
fn about(facts: &str, path: &str) -> String {
    let below = format!("{path}/");
    let is_about =
        |line: &&str| line.split(' ').any(|part| part == path || part.starts_with(&below));
    facts.lines().filter(is_about).map(|line| format!("{line}\n")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upgrade_that_5119dd8_has_prepared_is_gone_back_from() {
    use pb::RollingUpgradeActionProto::Query;
    let dir = tempfile::tempdir().unwrap();
    pack::unpack(&std::fs::read(stored("5119dd8")).unwrap(), dir.path());
    let told = std::fs::read_to_string(stored("5119dd8.facts")).unwrap();
    prepare_as_the_former(dir.path());
    let (rollback, former) = (dir.path().join("rollback"), files(&dir.path().join("rollback")));
    let node = start(dir.path()).await;
    let client = Client::new(&node, CLIENT, SUPERUSER);
    assert_same(&facts_of(&client).await, &told);
    assert_eq!(upgrade(&client, Query).await.unwrap().unwrap().start_time, START_MS);
    change(&client).await;
    assert_eq!(client.list("/").await, ["new", "newer", "one", "two"]);
    node.shutdown().await;
    assert!(files(&rollback) == former, "it is in the former format still, and is what it was");

    let back = NameNodeConfig { roll_back: true, ..config(dir.path()) };
    let node = NameNode::start(back).await.unwrap();
    let client = Client::new(&node, CLIENT, SUPERUSER);
    assert_eq!(client.list("/").await, ["one", "two"], "what came since is gone");
    assert_same(&about(&facts_of(&client).await, "/one"), &about(&told, "/one"));
    assert_eq!(upgrade(&client, Query).await.unwrap(), None);
    node.shutdown().await;
    assert!(!rollback.exists());
    assert_eq!(check_folder(dir.path(), 1 << 20).unwrap().problems, [""; 0]);
    if std::env::var_os("CAIRN_FORMER").is_some() {
        by_the_former_itself().await;
    }
}

/// The same with the program of 5119dd8, which prepares the upgrade and goes back from it.
async fn by_the_former_itself() {
    use pb::RollingUpgradeActionProto::{Finalize, Query, Start};
    let dir = tempfile::tempdir().unwrap();
    let former = Process::start(dir.path());
    let client = Client::at(&former.addr, CLIENT, SUPERUSER);
    let mut datanodes = Vec::new();
    for number in 0..9 {
        datanodes.push(FakeDataNode::start_at(&former.addr, number, &[]).await);
    }
    let rpc = RpcClient::new(&former.addr, CLIENT, SUPERUSER, RpcClientOptions::default());
    let mut recorder = Recorder { rpc, calls: String::new() };
    scene::play(&mut recorder, &client, &datanodes, "/one").await;
    drop((former, datanodes));
    let former = Process::start(dir.path());
    let client = Client::at(&former.addr, CLIENT, SUPERUSER);
    client.safe_mode(pb::SafeModeActionProto::SafemodeLeave).await;
    let told = facts::facts(&client).await;
    client.safe_mode(pb::SafeModeActionProto::SafemodeEnter).await;
    upgrade(&client, Start).await.unwrap().unwrap();
    client.mkdirs("/two").await;
    drop(former);

    let node = start(dir.path()).await;
    let client = Client::new(&node, CLIENT, SUPERUSER);
    assert!(upgrade(&client, Query).await.unwrap().is_some());
    assert_same(&about(&facts_of(&client).await, "/one"), &about(&told, "/one"));
    change(&client).await;
    node.shutdown().await;

    let finalized = tempfile::tempdir().unwrap();
    for (name, bytes) in files_of_folder(dir.path()) {
        let path = finalized.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
    let former = Process::start_with(dir.path(), &["--rollback"]).unwrap();
    let client = Client::at(&former.addr, CLIENT, SUPERUSER);
    client.safe_mode(pb::SafeModeActionProto::SafemodeLeave).await;
    assert_same(&facts::facts(&client).await, &told);
    client.mkdirs("/goes-on").await;
    drop(former);
    let node = start(dir.path()).await;
    let client = Client::new(&node, CLIENT, SUPERUSER);
    assert_eq!(client.list("/").await, ["goes-on", "one"], "an upgrade may be begun once more");
    node.shutdown().await;

    // What is finalized is not gone back from, and the former refuses it.
    let node = start(finalized.path()).await;
    let client = Client::new(&node, CLIENT, SUPERUSER);
    client.safe_mode(pb::SafeModeActionProto::SafemodeLeave).await;
    upgrade(&client, Finalize).await.unwrap().unwrap();
    node.shutdown().await;
    assert!(Process::start_with(finalized.path(), &["--rollback"]).is_none());
    assert!(Process::start_with(finalized.path(), &[]).is_none());
}

/// The files of a NameNode's folder and of its rollback point.
fn files_of_folder(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(dir).unwrap().map(Result::unwrap);
    let mut found = BTreeMap::new();
    for entry in entries {
        let name = entry.file_name().into_string().unwrap();
        if entry.path().is_dir() {
            let inner = files(&entry.path()).into_iter();
            found.extend(inner.map(|(file, bytes)| (format!("{name}/{file}"), bytes)));
        } else {
            found.insert(name, std::fs::read(entry.path()).unwrap());
        }
    }
    found
}
