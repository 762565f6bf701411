//! DataNodes that stop by themselves, and NameNodes whose leader goes.

use super::*;
use std::path::Path;

/// So many NameNodes and DataNodes, and a client of them.
async fn start(
    (namenodes, datanodes): (usize, usize),
    dir: &Path,
    conf: Configuration,
) -> (Cluster, FileSystem) {
    let options = Options {
        namenodes,
        datanodes,
        racks: 1,
        data: dir.join("data"),
        rpc_port: 0,
        http_port: 0,
        storage: Vec::new(),
        conf,
    };
    let cluster = Cluster::start(options).await.unwrap();
    let fs = FileSystem::connect(config::client::read(cluster.configuration()).unwrap());
    let fs = fs.await.unwrap();
    (cluster, fs)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_data_node_that_is_taken_off_the_list_is_shown_as_stopped_and_can_start_again() {
    let dir = tempfile::tempdir().unwrap();
    let hosts = dir.path().join("hosts");
    std::fs::write(&hosts, "").unwrap();
    let mut conf = Configuration::default();
    conf.set("dfs.hosts", hosts.to_str().unwrap());
    conf.set("dfs.heartbeat.interval", "1");
    let (mut cluster, fs) = start((1, 2), dir.path(), conf).await;
    let kept = cluster.datanodes[0].config.xfer_addr;
    std::fs::write(&hosts, format!("{kept}\n")).unwrap();
    fs.refresh_nodes().await.unwrap();
    let start = Instant::now();
    while cluster.describe()["datanodes"][1]["running"] == true {
        assert!(start.elapsed() < Duration::from_secs(30), "it runs on");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let shown = cluster.describe();
    let why = shown["datanodes"][1]["stopped"].as_str().unwrap();
    assert!(why.contains("include-list"), "{why}");
    assert_eq!(shown["datanodes"][0]["running"], true);
    std::fs::write(&hosts, "").unwrap();
    fs.refresh_nodes().await.unwrap();
    cluster.start_datanode(1).await.unwrap();
    assert_eq!(cluster.describe()["datanodes"][1]["running"], true);
    cluster.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn with_three_namenodes_the_lead_moves_and_what_was_made_stays() {
    let dir = tempfile::tempdir().unwrap();
    let mut conf = Configuration::default();
    conf.set("dfs.heartbeat.interval", "1");
    let (mut cluster, fs) = start((3, 1), dir.path(), conf).await;
    fs.mkdirs("/before", 0o755).await.unwrap();
    let leader = |shown: &Value| {
        let members = shown["namenodes"].as_array().unwrap();
        members.iter().position(|member| member["leads"] == true)
    };
    // Until the others vote there is nobody to hand over to.
    let start = Instant::now();
    let (first, told) = loop {
        let first = leader(&cluster.describe());
        match cluster.hand_over(None).await {
            Ok(told) => break (first, told),
            Err(error) => assert!(start.elapsed() < Duration::from_secs(60), "{error:#}"),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    fs.mkdirs("/between", 0o755).await.unwrap();
    let second = leader(&cluster.describe()).unwrap();
    assert!(first != Some(second), "{told}");
    cluster.kill_namenode(second).unwrap();
    assert!(cluster.kill_namenode(second).is_err(), "it does not run");
    fs.mkdirs("/after", 0o755).await.unwrap();
    cluster.start_namenode(second).await.unwrap();
    for path in ["/before", "/between", "/after"] {
        fs.require(path).await.unwrap();
    }
    assert_eq!(cluster.describe()["namenodes"][second]["running"], true);
    cluster.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_without_a_network_is_followed_by_another_one() {
    let dir = tempfile::tempdir().unwrap();
    let mut conf = Configuration::default();
    conf.set("dfs.heartbeat.interval", "1");
    conf.set("cairn.debug.inject.enabled", "true");
    let (mut cluster, fs) = start((3, 2), dir.path(), conf).await;
    fs.mkdirs("/before", 0o755).await.unwrap();
    let leaders = |cluster: &Cluster| -> Vec<usize> {
        let shown = cluster.describe();
        let members = shown["namenodes"].as_array().unwrap();
        (0..members.len()).filter(|index| members[*index]["leads"] == true).collect()
    };
    // Until the others vote nobody can follow the first one.
    let start = Instant::now();
    while let Err(error) = cluster.hand_over(None).await {
        assert!(start.elapsed() < Duration::from_secs(60), "{error:#}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let first = leaders(&cluster)[0];
    let cut_at = Instant::now();
    cluster.partition_namenode(first, true).unwrap();
    while leaders(&cluster) == [first] {
        assert!(cut_at.elapsed() < Duration::from_secs(60), "nobody else leads");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    // Whoever leads has it from a majority, which the one without a network is not.
    fs.mkdirs("/meanwhile", 0o755).await.unwrap();
    cluster.partition_namenode(first, false).unwrap();
    assert!(fs.require("/before").await.unwrap().is_dir());
    assert!(fs.require("/meanwhile").await.unwrap().is_dir());

    let addr = |cluster: &Cluster, index: usize| cluster.datanodes[index].config.xfer_addr;
    let may_speak = |cluster: &Cluster, from: usize, to: usize| {
        cluster.datanodes[from].config.reach.may_make(addr(cluster, to))
    };
    assert!(cluster.partition_datanode(0, Some(0)).is_err());
    cluster.partition_datanode(0, Some(1)).unwrap();
    assert!(!may_speak(&cluster, 0, 1) && !may_speak(&cluster, 1, 0) && may_speak(&cluster, 1, 1));
    assert!(cluster.datanodes[0].config.reach.may_take(addr(&cluster, 1)));
    cluster.heal_datanode(0).unwrap();
    assert!(may_speak(&cluster, 0, 1) && may_speak(&cluster, 1, 0));
    cluster.partition_datanode(0, None).unwrap();
    assert!(!cluster.datanodes[0].config.reach.may_take(addr(&cluster, 1)));
    cluster.shutdown().await;
}
