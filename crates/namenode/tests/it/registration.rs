//! DataNodes that come in, and those that are refused for where they are.

use crate::cluster::*;
use cairn_namenode::config::{HostsFormat, RackSource};
use cairn_namenode::{NameNode, NameNodeConfig, RunningNameNode};
use cairn_redundancy::AdminState;
use cairn_wire::exception::class;
use cairn_wire::proto::{datanode as dn, hdfs as pb};
use std::time::Duration;

#[tokio::test(flavor = "multi_thread")]
async fn a_datanode_at_an_address_without_a_name_is_refused_unless_names_are_not_asked_for() {
    for (name_check, is_taken) in
        [(Some((|_| false) as fn(_) -> _), false), (Some(|_| true), true), (None, true)]
    {
        let dir = tempfile::tempdir().unwrap();
        let config = NameNodeConfig { name_check, ..config(dir.path()) };
        let node = NameNode::start(config).await.unwrap();
        let rpc = Client::new(&node, DATANODE, SUPERUSER);
        let (_, request) = registration(&rpc, 3).await;
        if is_taken {
            let _: dn::RegisterDatanodeResponseProto =
                rpc.call("registerDatanode", &request).await.unwrap();
        } else {
            let (class, text) = rpc.refused("registerDatanode", &request).await;
            assert_eq!(class, class::DISALLOWED_DATANODE);
            let reason = "Datanode denied communication with namenode because hostname cannot be resolved \
                          (ip=127.0.0.1, hostname=127.0.0.1): DatanodeRegistration(127.0.0.1:10003, \
                          datanodeUuid=datanode-3, ";
            assert!(text.starts_with(reason), "{text}");
        }
        node.shutdown().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_datanode_whose_rack_no_program_tells_is_in_the_default_one_or_refused() {
    for refuses_unknown_racks in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let racks = RackSource::Script(dir.path().join("not-there"));
        let config =
            NameNodeConfig { racks, refuses_unknown_racks, ..config(&dir.path().join("name")) };
        let node = NameNode::start(config).await.unwrap();
        let rpc = Client::new(&node, DATANODE, SUPERUSER);
        let (_, request) = registration(&rpc, 3).await;
        if refuses_unknown_racks {
            let (class, text) = rpc.refused("registerDatanode", &request).await;
            assert_eq!(class, class::UNRESOLVED_TOPOLOGY);
            assert_eq!(text, "Unresolved topology mapping for host host3");
        } else {
            let _: dn::RegisterDatanodeResponseProto =
                rpc.call("registerDatanode", &request).await.unwrap();
        }
        node.shutdown().await;
    }
}

/// A program takes its time to tell the rack, and other lists of hosts hold when it has.
#[tokio::test(flavor = "multi_thread")]
async fn a_registration_goes_by_the_lists_that_hold_at_its_end() {
    let dir = tempfile::tempdir().unwrap();
    let [text, program, asked, told, hosts] =
        ["text", "program", "asked", "told", "hosts"].map(|name| dir.path().join(name));
    let script = format!(
        "#!/bin/sh\necho >> {}\nwhile [ ! -e {} ]; do sleep 0.05; done\necho /r\n",
        asked.display(),
        told.display()
    );
    std::fs::write(&text, script).unwrap();
    // What this process itself writes cannot be run while another test starts a program.
    let install = ["-m", "755", text.to_str().unwrap(), program.to_str().unwrap()];
    assert!(std::process::Command::new("install").args(install).status().unwrap().success());
    std::fs::write(&hosts, "").unwrap();
    let config = NameNodeConfig {
        racks: RackSource::Script(program),
        hosts_file: Some(hosts.clone()),
        hosts_format: HostsFormat::Combined,
        ..config(&dir.path().join("name"))
    };
    let node = NameNode::start(config).await.unwrap();
    let mut calls = Vec::new();
    for number in [3, 4] {
        let rpc = Client::new(&node, DATANODE, SUPERUSER);
        let (_, request) = registration(&rpc, number).await;
        calls.push(tokio::spawn(async move {
            rpc.call::<_, dn::RegisterDatanodeResponseProto>("registerDatanode", &request).await
        }));
    }
    while std::fs::read(&asked).map_or(0, |lines| lines.len()) < 2 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let list = r#"[{"hostName": "127.0.0.1", "port": 10004, "adminState": "DECOMMISSIONED"},
        {"hostName": "127.0.0.1", "port": 10005}]"#;
    std::fs::write(&hosts, list).unwrap();
    let client = Client::new(&node, CLIENT, SUPERUSER);
    let request = pb::RefreshNodesRequestProto {};
    let _: pb::RefreshNodesResponseProto = client.call("refreshNodes", &request).await.unwrap();
    std::fs::write(&told, "").unwrap();
    let [refused, taken] = &mut calls[..] else { unreachable!() };
    let error = refused.await.unwrap().unwrap_err();
    assert_eq!(error.remote().map(|e| e.class.as_str()), Some(class::DISALLOWED_DATANODE));
    taken.await.unwrap().unwrap();
    let admin = |uuid: &str| node.node().cluster().node_by_uuid(uuid).map(|known| known.admin);
    assert_eq!(admin("datanode-3"), None);
    assert_eq!(admin("datanode-4"), Some(AdminState::DecommissionInProgress));
    node.shutdown().await;
}

/// What the test sends of a DataNode with two processes: a machine was cloned, or a disk copied.
struct Twins {
    rpc: Client,
    node: RunningNameNode,
    /// The one that registered first.
    older: dn::DatanodeRegistrationProto,
    /// Its copy, at another port.
    newer: dn::DatanodeRegistrationProto,
}

const UUID: &str = "datanode-3";

/// Both have registered, the copy last. Cairn's DataNodes tell a number of their process, Hadoop's do not.
async fn twins(dir: &std::path::Path, are_numbered: bool) -> Twins {
    let node = NameNode::start(config(dir)).await.unwrap();
    let rpc = Client::new(&node, DATANODE, SUPERUSER);
    let mut registered = Vec::new();
    for number in [1, 2] {
        let (_, mut request) = registration(&rpc, 3).await;
        request.registration.datanode_id.xfer_port += number;
        request.registration.process_number = are_numbered.then_some(number.into());
        let answer: dn::RegisterDatanodeResponseProto =
            rpc.call("registerDatanode", &request).await.unwrap();
        assert_eq!(answer.registration.process_number, request.registration.process_number);
        registered.push(answer.registration);
    }
    let [older, newer] = registered.try_into().unwrap();
    Twins { rpc, node, older, newer }
}

impl Twins {
    fn heartbeat_of(registration: &dn::DatanodeRegistrationProto) -> dn::HeartbeatRequestProto {
        let xceiver_count = Some(registration.datanode_id.xfer_port);
        let registration = registration.clone();
        dn::HeartbeatRequestProto { registration, xceiver_count, ..Default::default() }
    }

    async fn heartbeat(
        &self,
        registration: &dn::DatanodeRegistrationProto,
    ) -> Result<Vec<dn::DatanodeCommandProto>, cairn_net::rpc_client::RpcError> {
        let request = Twins::heartbeat_of(registration);
        let answer = self.rpc.call::<_, dn::HeartbeatResponseProto>("sendHeartbeat", &request);
        Ok(answer.await?.cmds)
    }

    /// The port of the last one whose figures were taken.
    fn heard(&self) -> u32 {
        self.node.node().cluster().node_by_uuid(UUID).unwrap().xceivers
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_hadoop_datanodes_with_one_uuid_the_one_that_is_not_registered_is_told_to() {
    let dir = tempfile::tempdir().unwrap();
    let twins = twins(dir.path(), false).await;
    let is_register = |commands: &[dn::DatanodeCommandProto]| {
        let kind = dn::DatanodeCommandProtoType::RegisterCommand as i32;
        commands.iter().any(|command| command.cmd_type == kind)
    };
    assert!(!is_register(&twins.heartbeat(&twins.newer).await.unwrap()));
    assert!(is_register(&twins.heartbeat(&twins.older).await.unwrap()));
    assert_eq!(
        twins.heard(),
        twins.newer.datanode_id.xfer_port,
        "the other's figures do not count"
    );
    twins.node.shutdown().await;
}

/// The calls by which a DataNode speaks for itself, each of `registration`; their exceptions, if they are refused.
async fn speak(
    twins: &Twins,
    registration: &dn::DatanodeRegistrationProto,
) -> Vec<(&'static str, Option<String>)> {
    let registration = || registration.clone();
    let pool = String::new;
    let heartbeat = Twins::heartbeat_of(&registration());
    let report = dn::BlockReportRequestProto {
        registration: registration(),
        block_pool_id: pool(),
        reports: vec![dn::StorageBlockReportProto {
            storage: pb::DatanodeStorageProto {
                storage_uuid: "DS-told".to_string(),
                ..Default::default()
            },
            blocks: Vec::new(),
            number_of_blocks: Some(0),
            blocks_buffers: Vec::new(),
        }],
        context: None,
    };
    let changes = dn::BlockReceivedAndDeletedRequestProto {
        registration: registration(),
        block_pool_id: pool(),
        blocks: vec![dn::StorageReceivedDeletedBlocksProto {
            storage_uuid: "DS-told".to_string(),
            blocks: vec![dn::ReceivedDeletedBlockInfoProto {
                block: pb::BlockProto { block_id: 5, gen_stamp: 1001, num_bytes: Some(1) },
                status: dn::ReceivedDeletedBlockInfoProtoBlockStatus::Received as i32,
                delete_hint: None,
                crc32c: None,
            }],
            storage: None,
        }],
        scanned: Vec::new(),
    };
    let cached = dn::CacheReportRequestProto {
        registration: registration(),
        block_pool_id: pool(),
        blocks: Vec::new(),
    };
    let orders = dn::AwaitOrdersRequestProto { registration: registration(), seen: u64::MAX };
    let fatal = dn::ErrorReportRequestProto {
        registartion: registration(),
        error_code: dn::ErrorReportRequestProtoErrorCode::FatalDiskError as u32,
        msg: "all volumes have failed".to_string(),
    };
    let lifeline = Client::new(&twins.node, LIFELINE, SUPERUSER);
    let again = dn::RegisterDatanodeRequestProto { registration: registration() };
    let rpc = &twins.rpc;
    vec![
        ("sendHeartbeat", exception(rpc, "sendHeartbeat", &heartbeat).await),
        ("sendLifeline", exception(&lifeline, "sendLifeline", &heartbeat).await),
        ("blockReport", exception(rpc, "blockReport", &report).await),
        ("blockReceivedAndDeleted", exception(rpc, "blockReceivedAndDeleted", &changes).await),
        ("cacheReport", exception(rpc, "cacheReport", &cached).await),
        ("awaitOrders", exception(rpc, "awaitOrders", &orders).await),
        ("errorReport", exception(rpc, "errorReport", &fatal).await),
        ("registerDatanode", exception(rpc, "registerDatanode", &again).await),
    ]
}

/// The class of the exception that a call is answered with.
async fn exception(rpc: &Client, method: &str, request: &impl prost::Message) -> Option<String> {
    let answer = rpc.call::<_, Anything>(method, request).await;
    answer.err().map(|error| error.remote().expect("an answer").class.clone())
}

/// An answer of which nothing is read.
#[derive(Clone, PartialEq, prost::Message)]
struct Anything {}

#[tokio::test(flavor = "multi_thread")]
async fn an_older_process_with_the_same_uuid_is_refused_whatever_it_says() {
    let dir = tempfile::tempdir().unwrap();
    let twins = twins(dir.path(), true).await;
    twins.heartbeat(&twins.newer).await.unwrap();
    for (method, class) in speak(&twins, &twins.older).await {
        assert_eq!(class.as_deref(), Some(class::UNREGISTERED_NODE), "{method}");
    }
    {
        let cluster = twins.node.node().cluster();
        let known = cluster.node_by_uuid(UUID).unwrap();
        assert!(known.alive, "it cannot report that the other has no disks left");
        assert_eq!(u32::from(known.address.xfer_port), twins.newer.datanode_id.xfer_port);
        assert!(cluster.storage_by_uuid("DS-told").is_none(), "nothing of its reports is taken");
        assert_eq!(known.twin(twins.node.node().now()).unwrap().xfer_port, 10_004);
    }
    assert_eq!(twins.heard(), twins.newer.datanode_id.xfer_port);
    assert!(
        page(&twins.node, "/datanodes")
            .await
            .contains("two with one UUID, the other at 127.0.0.1:10004")
    );
    twins.node.shutdown().await;
}

/// Hadoop's DataNodes tell no number: the address alone tells them apart.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_hadoop_datanode_says_that_is_not_registered_counts_for_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let twins = twins(dir.path(), false).await;
    twins.heartbeat(&twins.newer).await.unwrap();
    let mut said = speak(&twins, &twins.older).await;
    // The last one takes the registration back.
    assert_eq!(said.pop(), Some(("registerDatanode", None)));
    let refused = ["sendLifeline", "cacheReport", "awaitOrders", "errorReport"];
    for (method, class) in said {
        let expected = refused.contains(&method).then_some(class::UNREGISTERED_NODE);
        assert_eq!(class.as_deref(), expected, "{method}");
    }
    assert!(twins.node.node().cluster().storage_by_uuid("DS-told").is_none());
    assert_eq!(twins.heard(), twins.newer.datanode_id.xfer_port);
    twins.node.shutdown().await;
}

/// A client or DataNode that names a replica by where it was read does not mean the copy's.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_told_of_a_datanode_is_not_taken_for_its_copy() {
    let dir = tempfile::tempdir().unwrap();
    let (node, datanodes) = start(dir.path(), 3).await;
    let client = Client::new(&node, CLIENT, SUPERUSER);
    client.create("/file", "writer").await;
    let located = client.add_block("/file", "writer", None).await;
    let last = finish(&datanodes, &located, 10, None).await;
    assert!(client.complete("/file", "writer", Some(last)).await);
    let read = client.locations("/file").await.blocks.remove(0);
    let (_, mut copy) = registration(datanodes[0].client(), 0).await;
    copy.registration.datanode_id.xfer_port = 4321;
    let _: dn::RegisterDatanodeResponseProto =
        datanodes[0].client().call("registerDatanode", &copy).await.unwrap();
    let request = pb::ReportBadBlocksRequestProto { blocks: vec![read] };
    for rpc in [&client, datanodes[1].client()] {
        let _: Anything = rpc.call("reportBadBlocks", &request).await.unwrap();
    }
    let read = client.locations("/file").await.blocks.remove(0);
    let ports: Vec<u32> = read.locs.iter().map(|info| info.id.xfer_port).collect();
    assert_eq!(ports, [4321], "the two others are bad, as was told");
    node.shutdown().await;
}
