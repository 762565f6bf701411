//! DataNodes that stop by themselves.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn a_data_node_that_is_taken_off_the_list_is_shown_as_stopped_and_can_start_again() {
    let dir = tempfile::tempdir().unwrap();
    let hosts = dir.path().join("hosts");
    std::fs::write(&hosts, "").unwrap();
    let mut conf = Configuration::default();
    conf.set("dfs.hosts", hosts.to_str().unwrap());
    conf.set("dfs.heartbeat.interval", "1");
    let options = Options {
        datanodes: 2,
        racks: 1,
        data: dir.path().join("data"),
        rpc_port: 0,
        http_port: 0,
        storage: Vec::new(),
        conf,
    };
    let mut cluster = Cluster::start(options).await.unwrap();
    let fs = FileSystem::connect(config::client::read(cluster.configuration()).unwrap());
    let fs = fs.await.unwrap();
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
