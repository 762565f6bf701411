//! DataNodes that come in, and those that are refused for where they are.

use crate::cluster::*;
use cairn_namenode::config::{HostsFormat, RackSource};
use cairn_namenode::{NameNode, NameNodeConfig};
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
