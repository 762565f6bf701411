//! Small gaps through which data or answers could get lost: old clients, restarts, late messages.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use cairn_namenode::journal::{Durability, Namesystem, NamesystemOptions};
use cairn_namenode::{NameNode, NameNodeConfig};
use cairn_namespace::ops::add_block::AddBlock;
use cairn_namespace::ops::complete::Complete;
use cairn_namespace::ops::create::Create;
use cairn_namespace::ops::delete::Delete;
use cairn_namespace::{BlockRef, Caller, Command, Entry, Outcome, query};
use cairn_net::rpc_server::{Call, UserInfo};
use cairn_stripe::BlockId;
use cairn_wire::proto::datanodelifeline::LifelineResponseProto;
use cairn_wire::proto::{datanode as dn, hdfs as pb};

use crate::cluster::{CLIENT, Client, FakeDataNode, LIFELINE, SUPERUSER, config, finish, start};

const NAMENODE: &str = "org.apache.hadoop.hdfs.server.protocol.NamenodeProtocol";

fn call_without_identity() -> Call {
    Call {
        protocol: CLIENT.to_string().into(),
        method: "delete".to_string().into(),
        version: 1,
        user: UserInfo::simple(SUPERUSER).into(),
        client_id: [0; 16],
        call_id: 3,
        retry_count: -1,
        peer: "127.0.0.1:1".parse().unwrap(),
        body: Bytes::new(),
        connection_protocol: CLIENT.into(),
        caller_context: None,
        carrier: "rpc",
        state: None,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_of_clients_without_an_identity_are_not_taken_for_one_another() {
    let dir = tempfile::tempdir().unwrap();
    let (node, _) = start(dir.path(), 0).await;
    let client = Client::new(&node, CLIENT, SUPERUSER);
    for path in ["/a", "/b"] {
        client.mkdirs(path).await;
        let delete = Delete { path: path.to_string(), recursive: true };
        node.node().submit(&call_without_identity(), delete).await.unwrap();
        assert_eq!(client.file_info(path).await, None, "{path}");
    }
    node.shutdown().await;
}

fn submit(ns: &Namesystem, command: impl Into<Command>) -> Outcome {
    let caller = Caller {
        user: SUPERUSER.to_string(),
        groups: vec![],
        superuser: true,
        ..Caller::default()
    };
    let entry =
        Entry { now_ms: 1000, elapsed_ms: 1000, caller, call: None, command: command.into() };
    ns.submit_blocking(entry).unwrap()
}

/// The namespace of a NameNode that does not run.
fn stopped_namespace(dir: &Path) -> Arc<Namesystem> {
    let options = NamesystemOptions {
        durability: Durability::PageCache,
        superuser: SUPERUSER.to_string(),
        ..NamesystemOptions::default()
    };
    Namesystem::open(dir, options).unwrap()
}

/// A file with as many complete blocks; returns them.
fn write_file(ns: &Namesystem, path: &str, count: usize) -> Vec<BlockRef> {
    let holder = "writer".to_string();
    submit(
        ns,
        Create {
            path: path.to_string(),
            mode: 0o644.into(),
            holder: holder.clone(),
            client_machine: String::new(),
            create: true,
            overwrite: false,
            should_replicate: false,
            create_parent: true,
            replication: 1,
            block_size: 1 << 20,
            ec_policy: None,
            storage_policy: None,
        },
    );
    let mut blocks: Vec<BlockRef> = Vec::new();
    for _ in 0..count {
        let outcome = submit(
            ns,
            AddBlock {
                path: path.to_string(),
                file: None,
                holder: holder.clone(),
                previous: blocks.last().copied(),
                previous_crcs: Vec::new(),
                previous_min_replicated: true,
            },
        );
        let Outcome::BlockAdded { block, .. } = outcome else { panic!("{outcome:?}") };
        blocks.push(BlockRef { len: 10, ..block.reference() });
    }
    let last = blocks.last().copied();
    let path = path.to_string();
    let last_crcs = Vec::new();
    submit(ns, Complete { path, file: None, holder, last, last_crcs, min_replicated: true });
    blocks
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tree_that_was_being_deleted_does_not_hold_up_the_start() {
    const BLOCKS: usize = 1500;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().to_path_buf();
    // Stopped after the first step of a deletion, which has more to remove.
    let stopped = tokio::task::spawn_blocking(move || {
        let ns = stopped_namespace(&path);
        let mut blocks = write_file(&ns, "/kept", 1);
        blocks.extend(write_file(&ns, "/deleted", BLOCKS));
        submit(&ns, Delete { path: "/deleted".to_string(), recursive: true });
        assert!(ns.read(|store| query::totals(store)).unwrap().blocks > 1, "some are left");
        blocks
    });
    let on_disk: Vec<pb::BlockProto> = stopped
        .await
        .unwrap()
        .iter()
        .map(|block| pb::BlockProto {
            block_id: block.id.0 as u64,
            gen_stamp: block.gs.0,
            num_bytes: Some(block.len),
        })
        .collect();
    let all = NameNodeConfig { safe_mode_threshold: 1.0, ..config(dir.path()) };
    let node = NameNode::start(all).await.unwrap();
    // Time for a removal that does not wait.
    tokio::time::sleep(Duration::from_millis(300)).await;
    let _datanode = FakeDataNode::start(&node, 0, &on_disk).await;
    let client = Client::new(&node, CLIENT, SUPERUSER);
    let blocks = || node.node().ns.read(|store| query::totals(store)).unwrap().blocks;
    for _ in 0..200 {
        let waits = client.safe_mode(pb::SafeModeActionProto::SafemodeGet).await;
        if !waits && blocks() == 1 {
            node.shutdown().await;
            return;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    panic!("safe mode: {:?}, blocks: {}", node.node().safe_mode_tip(), blocks());
}

/// Those that a page of the list is asked for come behind more others than are looked at in one go.
#[tokio::test(flavor = "multi_thread")]
async fn lost_files_below_a_path_are_found_behind_all_others() {
    const OTHERS: usize = 1100;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().to_path_buf();
    let filled = tokio::task::spawn_blocking(move || {
        let ns = stopped_namespace(&path);
        write_file(&ns, "/other", OTHERS);
        write_file(&ns, "/wanted/f", 3);
    });
    filled.await.unwrap();
    let config =
        NameNodeConfig { safe_mode_threshold: 0.0, corrupt_files_page: 2, ..config(dir.path()) };
    let node = NameNode::start(config).await.unwrap();
    let client = Client::new(&node, CLIENT, SUPERUSER);
    let lost = || {
        let cluster = node.node().cluster();
        cluster.queues().level(cairn_redundancy::queue::Priority::Corrupt).count()
    };
    while lost() < OTHERS + 3 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let mut cookie = None;
    for wanted in [2, 1, 0] {
        let path = "/wanted".to_string();
        let request = pb::ListCorruptFileBlocksRequestProto { path, cookie: cookie.clone() };
        let answer: pb::ListCorruptFileBlocksResponseProto =
            client.call("listCorruptFileBlocks", &request).await.unwrap();
        assert_eq!(answer.corrupt.files, vec!["/wanted/f"; wanted], "after {cookie:?}");
        cookie = Some(answer.corrupt.cookie);
    }
    node.shutdown().await;
}

fn id_of(located: &pb::LocatedBlockProto) -> BlockId {
    BlockId(located.b.block_id as i64)
}

fn sized(located: &pb::LocatedBlockProto, len: u64) -> pb::ExtendedBlockProto {
    pb::ExtendedBlockProto { num_bytes: Some(len), ..located.b.clone() }
}

/// The first DataNode of a located block reports it.
async fn received_by_first(datanodes: &[FakeDataNode], located: &pb::LocatedBlockProto, len: u64) {
    let uuid = &located.locs[0].id.datanode_uuid;
    let datanode = datanodes.iter().find(|datanode| datanode.uuid() == uuid).unwrap();
    let block = pb::BlockProto {
        block_id: located.b.block_id,
        gen_stamp: located.b.generation_stamp,
        num_bytes: Some(len),
    };
    datanode.received(block, None).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn blocks_that_become_complete_later_are_looked_after() {
    let dir = tempfile::tempdir().unwrap();
    let (node, datanodes) = start(dir.path(), 3).await;
    let client = Client::new(&node, CLIENT, SUPERUSER);
    client.create("/f", "writer").await;
    let first = client.add_block("/f", "writer", None).await;
    let second = client.add_block("/f", "writer", Some(sized(&first, 10))).await;
    // Committed, but not complete: nothing was reported of it.
    assert!(!node.node().cluster().expected(id_of(&first)).is_empty());
    received_by_first(&datanodes, &first, 10).await;
    // This makes it complete.
    client.add_block("/f", "writer", Some(sized(&second, 10))).await;
    assert!(node.node().cluster().expected(id_of(&first)).is_empty());
    node.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn blocks_of_a_file_that_is_closed_for_its_writer_are_looked_after() {
    let dir = tempfile::tempdir().unwrap();
    let (node, datanodes) = start(dir.path(), 3).await;
    let client = Client::new(&node, CLIENT, SUPERUSER);
    client.create("/f", "vanishing").await;
    let block = client.add_block("/f", "vanishing", None).await;
    assert!(!client.complete("/f", "vanishing", Some(sized(&block, 10))).await);
    received_by_first(&datanodes, &block, 10).await;
    let request =
        pb::RecoverLeaseRequestProto { src: "/f".to_string(), client_name: "rescuer".to_string() };
    let answer: pb::RecoverLeaseResponseProto =
        client.call("recoverLease", &request).await.unwrap();
    assert!(answer.result);
    assert!(node.node().cluster().expected(id_of(&block)).is_empty());
    node.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_a_recovery_that_was_overtaken_changes_no_locations() {
    let dir = tempfile::tempdir().unwrap();
    let (node, datanodes) = start(dir.path(), 3).await;
    let client = Client::new(&node, CLIENT, SUPERUSER);
    client.create("/f", "writer").await;
    let block = client.add_block("/f", "writer", None).await;
    let last = finish(&datanodes, &block, 10, None).await;
    assert!(client.complete("/f", "writer", Some(last)).await);
    let mut late = pb::RecoveringBlockProto { block: block.clone(), ..Default::default() };
    late.new_gen_stamp = block.b.generation_stamp + 100;
    datanodes[0].commit_synchronization(&late, 5, false).await;
    let locations = node.node().cluster().locations(id_of(&block));
    assert_eq!(locations.len(), 3);
    assert!(locations.iter().all(|at| !at.corrupt));
    assert!(node.node().cluster().expected(id_of(&block)).is_empty());
    node.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lifelines_and_questions_of_other_namenodes_are_answered() {
    let dir = tempfile::tempdir().unwrap();
    let (node, datanodes) = start(dir.path(), 1).await;
    let lifeline = Client::new(&node, LIFELINE, SUPERUSER);
    let beat = dn::HeartbeatRequestProto {
        registration: datanodes[0].registration().clone(),
        xceiver_count: Some(42),
        ..dn::HeartbeatRequestProto::default()
    };
    let _: LifelineResponseProto = lifeline.call("sendLifeline", &beat).await.unwrap();
    let xceivers = |uuid| node.node().cluster().node_by_uuid(uuid).unwrap().xceivers;
    assert_eq!(xceivers(datanodes[0].uuid()), 42);
    let other = Client::new(&node, NAMENODE, SUPERUSER);
    let version: pb::VersionResponseProto =
        other.call("versionRequest", &pb::VersionRequestProto {}).await.unwrap();
    assert_eq!(version.info.block_pool_id, node.node().ns.identity().block_pool_id);
    node.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn blocks_of_negative_length_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (node, datanodes) = start(dir.path(), 9).await;
    let client = Client::new(&node, CLIENT, SUPERUSER);
    client.mkdirs("/ec").await;
    client.set_policy("/ec", "RS-6-3-1024k").await;
    for path in ["/f", "/ec/f"] {
        client.create(path, "writer").await;
        let block = client.add_block(path, "writer", None).await;
        let request = pb::CompleteRequestProto {
            src: path.to_string(),
            client_name: "writer".to_string(),
            last: Some(sized(&block, u64::MAX)),
            file_id: None,
        };
        let (class, text) = client.refused("complete", &request).await;
        assert_eq!(
            (class.as_str(), text.as_str()),
            ("java.io.IOException", "A block cannot have -1 bytes",)
        );
        // The NameNode goes on.
        let policy =
            if path == "/f" { None } else { cairn_stripe::Policy::built_in().into_iter().next() };
        let last = finish(&datanodes, &block, 10, policy.as_ref()).await;
        assert!(client.complete(path, "writer", Some(last)).await);
    }
    node.shutdown().await;
}
