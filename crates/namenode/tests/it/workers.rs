//! Background work: who sees it, and who holds it back.

use std::time::Duration;

use cairn_namenode::{NameNode, NameNodeConfig};
use cairn_operate::reconfiguration::NAME;
use cairn_wire::exception::class;
use cairn_wire::proto::hdfs as pb;

use crate::cluster::{Client, SUPERUSER, config, page};

/// The worker of a name.
fn one<'a>(all: &'a pb::ListWorkersResponseProto, name: &str) -> &'a pb::WorkerProto {
    all.workers.iter().find(|worker| worker.name == name).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn work_is_listed_and_what_may_wait_is_paused() {
    let dir = tempfile::tempdir().unwrap();
    let config = NameNodeConfig {
        lazy_persist_scrub_interval: Duration::from_millis(10),
        ..config(dir.path())
    };
    let node = NameNode::start(config).await.unwrap();
    let admin = Client::new(&node, NAME, SUPERUSER);
    let list = pb::ListWorkersRequestProto {};
    let told = async || -> pb::ListWorkersResponseProto {
        admin.call("listWorkers", &list).await.unwrap()
    };
    let alice = Client::new(&node, NAME, "alice");
    assert_eq!(alice.refused("listWorkers", &list).await.0, class::ACCESS_CONTROL);

    while one(&told().await, "lazy-files").rounds < 3 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let all = told().await;
    assert_eq!(one(&all, "trash").state, "off", "no time is set for it");
    assert!(one(&all, "redundancy").rounds > 0 && !one(&all, "redundancy").pausable);

    let ask =
        |name: &str, pause| pb::PauseWorkersRequestProto { names: vec![name.to_string()], pause };
    assert_eq!(
        alice.refused("pauseWorkers", &ask("lazy-files", true)).await.0,
        class::ACCESS_CONTROL
    );
    for (name, why) in [
        ("redundancy", "not safe"),
        ("contiguous-groups", "cairn ec pause"),
        ("cooking", "no worker"),
    ] {
        let (_, said) = admin.refused("pauseWorkers", &ask(name, true)).await;
        assert!(said.contains(why), "{said}");
    }
    let _: pb::ListWorkersResponseProto =
        admin.call("pauseWorkers", &ask("lazy-files", true)).await.unwrap();
    while one(&told().await, "lazy-files").state != "paused" {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let rounds = one(&told().await, "lazy-files").rounds;
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(one(&told().await, "lazy-files").rounds, rounds, "it rests");
    let figures = page(&node, "/prom").await;
    let paused = "cairn_namenode_worker_paused{worker=\"lazy-files\"} 1\n";
    assert!(figures.contains(paused), "{figures}");
    assert!(page(&node, "/workers").await.contains("paused"));
    let _: pb::ListWorkersResponseProto =
        admin.call("pauseWorkers", &ask("lazy-files", false)).await.unwrap();
    while one(&told().await, "lazy-files").rounds == rounds {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    node.shutdown().await;
}
