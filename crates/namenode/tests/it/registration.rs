//! DataNodes that come in, and those that are refused for where they are.

use crate::cluster::*;
use cairn_namenode::config::RackSource;
use cairn_namenode::{NameNode, NameNodeConfig};
use cairn_wire::exception::class;
use cairn_wire::proto::datanode as dn;

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
