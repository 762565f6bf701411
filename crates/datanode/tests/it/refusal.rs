//! What a DataNode does whom the NameNode does not want.

use crate::cluster::*;
use cairn_wire::exception::class;
use cairn_wire::proto::datanode::DatanodeCommandProtoType::RegisterCommand;
use std::time::Duration;
use tokio::net::TcpStream;

#[tokio::test(flavor = "multi_thread")]
async fn a_data_node_that_the_name_node_refuses_stops() {
    let heartbeat = "sendHeartbeat";
    for (method, class) in [
        (heartbeat, class::DISALLOWED_DATANODE),
        (heartbeat, class::UNREGISTERED_NODE),
        (heartbeat, class::INCORRECT_VERSION),
        // Told to register again, it is not taken.
        ("registerDatanode", class::DISALLOWED_DATANODE),
    ] {
        let cluster = Cluster::start(1).await;
        assert_eq!(cluster.node(0).stop_reason(), None);
        cluster.name_node.record.lock().unwrap().refusal = Some((method, class));
        if method != heartbeat {
            cluster.send_command(0, command(RegisterCommand));
        }
        let stopped = tokio::time::timeout(Duration::from_secs(10), cluster.node(0).stopped());
        let why = stopped.await.unwrap();
        assert!(why.contains("refuses") && why.contains("not wanted"), "{why}");
        assert_eq!(cluster.node(0).stop_reason(), Some(why));
        let addr = cluster.node(0).xfer_addr();
        for _ in 0..1000 {
            if TcpStream::connect(addr).await.is_err() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert!(TcpStream::connect(addr).await.is_err(), "it serves nobody any more");
        assert_eq!(cluster.name_node.record.lock().unwrap().refused, 1, "and does not ask again");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_was_never_taken_asks_again() {
    let mut cluster = Cluster::start(1).await;
    cluster.kill_node(0);
    let name_node = cluster.name_node.clone();
    let refusal = Some(("registerDatanode", class::DISALLOWED_DATANODE));
    name_node.record.lock().unwrap().refusal = refusal;
    let relent = async {
        while name_node.record.lock().unwrap().refused < 3 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        name_node.record.lock().unwrap().refusal = None;
    };
    // Returns when it is registered.
    tokio::join!(cluster.start_node(0), relent);
    assert_eq!(cluster.node(0).stop_reason(), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn other_exceptions_do_not_end_it() {
    let cluster = Cluster::start(1).await;
    let set = |refusal| cluster.name_node.record.lock().unwrap().refusal = refusal;
    set(Some(("sendHeartbeat", class::IO)));
    cluster.wait("refusals", |r| r.refused >= 3).await;
    set(None);
    let before = cluster.name_node.record.lock().unwrap().heartbeats;
    cluster.wait("heartbeats", |r| r.heartbeats > before + 1).await;
    assert_eq!(cluster.node(0).stop_reason(), None);
}
