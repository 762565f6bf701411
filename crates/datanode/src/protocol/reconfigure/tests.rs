use super::*;
use crate::dataset::Dataset;
use crate::peers::Kind;
use crate::volume::latency::DiskWork;
use cairn_access::access::Access;
use cairn_keys::live;
use cairn_operate::reconfiguration::Reconfiguration;
use cairn_wire::proto::hdfs::DatanodeIDProto;
use std::net::SocketAddr;
use std::time::Duration;

fn node(config: &DataNodeConfig) -> Arc<Node> {
    let dataset = Dataset::open(config).unwrap();
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let reconfiguration = Reconfiguration::new(config.reload.clone(), live(DataNodeConfig::KEYS));
    let (calls, addresses) = (Arc::new(crate::protocol::metrics()), (any, any, [None, None]));
    Arc::new(Node::new(
        config.clone(),
        dataset,
        Access::default(),
        calls,
        reconfiguration,
        addresses,
    ))
}

/// What holds, as text.
fn held(node: &Node, name: &str) -> String {
    let budgets = [false, true].map(|is_urgent| node.reconstructions.budgets(is_urgent));
    let (tunables, peers, disks) = (&node.tunables, &node.peers, &node.disks);
    let number = match Live::of(name).unwrap() {
        Live::Volumes => {
            let volumes = node.dataset.volumes();
            let dirs = volumes.iter().filter_map(|volume| volume.root().file_name());
            return format!("{:?}", dirs.collect::<Vec<_>>());
        }
        Live::ReconstructionRead => {
            return format!("{:?}", budgets.map(|budget| budget.read.get()));
        }
        Live::ReconstructionWrite => {
            return format!("{:?}", budgets.map(|budget| budget.write.get()));
        }
        Live::ScanPeriod => return format!("{:?}", node.scanner.period()),
        Live::ReportInterval => return format!("{:?}", tunables.block_report_interval.get()),
        Live::CacheReportInterval => return format!("{:?}", tunables.cache_report_interval.get()),
        Live::SlowIo => return format!("{:?}", node.dataset.slow_io().threshold.get()),
        Live::OutliersReport => return format!("{:?}", peers.report_interval.get()),
        Live::TransferBandwidth => node.transfer_budget.get(),
        Live::ReadBandwidth => node.read_budget.get(),
        Live::WriteBandwidth => node.write_budget.get(),
        Live::BalanceBandwidth => node.balance_budget.get(),
        Live::ReconstructionThreads => node.reconstructions.threads.load(Ordering::Relaxed) as u64,
        Live::ScanRate => node.scanner.rate(),
        Live::Moves => tunables.moves.max() as u64,
        Live::Connections => tunables.max_connections.load(Ordering::Relaxed) as u64,
        Live::ReportSplit => tunables.block_report_split_threshold.load(Ordering::Relaxed) as u64,
        Live::PeerStats => u64::from(peers.of(&DatanodeIDProto::default(), Kind::Send).is_some()),
        Live::OutlierMinNodes => peers.min_nodes.load(Ordering::Relaxed),
        Live::OutlierMinSamples => peers.min_samples.load(Ordering::Relaxed),
        Live::SlowPeerLow => peers.low_ms.load(Ordering::Relaxed),
        Live::DiskSampling => u64::from(node.dataset.sampling().percentage()),
        Live::OutlierMinDisks => disks.min_disks.load(Ordering::Relaxed),
        Live::SlowDiskLow => disks.low_ms.load(Ordering::Relaxed),
        Live::SlowDisksAvoided => disks.max_avoided.load(Ordering::Relaxed) as u64,
    };
    number.to_string()
}

/// Settings that all differ from the defaults and from each other, with volumes in `dir`.
fn changed(dir: &Path) -> DataNodeConfig {
    DataNodeConfig {
        data_dirs: ["a", "b"].map(|name| dir.join(name).into()).to_vec(),
        transfer_bandwidth: 9001,
        read_bandwidth: 9002,
        write_bandwidth: 9003,
        balance_bandwidth: 9004,
        reconstruction_read_bandwidth: 9005,
        reconstruction_write_bandwidth: 9006,
        reconstruction_threads: 31,
        scan_bytes_per_second: 9008,
        scan_period: Duration::from_secs(9009),
        max_moves: 32,
        max_connections: 33,
        block_report_interval: Duration::from_secs(9012),
        block_report_split_threshold: 9013,
        cache_report_interval: Duration::from_secs(9014),
        peer_stats: true,
        outlier_min_nodes: 34,
        outlier_min_samples: 35,
        slow_peer_low_ms: 36,
        outliers_report_interval: Duration::from_secs(9015),
        disk_sampling_percentage: 37,
        outlier_min_disks: 38,
        slow_disk_low_ms: 39,
        max_slow_disks_avoided: 40,
        slow_io_threshold: Duration::from_millis(41),
        ..DataNodeConfig::default()
    }
}

#[tokio::test]
async fn each_property_changes_what_it_would_at_a_start_and_nothing_else() {
    let [running, anew] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let before = DataNodeConfig {
        data_dirs: vec![running.path().join("a").into()],
        ..DataNodeConfig::default()
    };
    let (node, anew) = (node(&before), node(&changed(anew.path())));
    let all =
        |node: &Node| live(DataNodeConfig::KEYS).iter().map(|(name, _)| held(node, name)).collect();
    let mut expected: Vec<String> = all(&node);
    for ((name, _), expected_at) in live(DataNodeConfig::KEYS).into_iter().zip(0..) {
        let at_start = held(&anew, name);
        assert_ne!(expected[expected_at], at_start, "{name} is not changed by this test");
        apply(&node, name, &changed(running.path())).unwrap();
        expected[expected_at] = at_start;
        assert_eq!(all(&node), expected, "{name}");
    }
    assert!(apply(&node, "dfs.datanode.address", &before).is_err());
}

#[tokio::test]
async fn which_disks_are_kept_off_is_decided_anew_when_settings_change() {
    let dir = tempfile::tempdir().unwrap();
    let config = DataNodeConfig {
        data_dirs: ["a", "b", "c"].map(|name| dir.path().join(name).into()).to_vec(),
        disk_sampling_percentage: 100,
        outlier_min_disks: 3,
        ..DataNodeConfig::default()
    };
    let node = node(&config);
    let volumes = node.dataset.volumes();
    for volume in volumes.iter() {
        let ms = if volume.root().ends_with("b") { 200 } else { 0 };
        for _ in 0..3 {
            volume.timed(DiskWork::Read, || std::thread::sleep(Duration::from_millis(ms)));
        }
    }
    let avoided = || -> Vec<bool> { volumes.iter().map(|volume| volume.is_avoided()).collect() };
    let change = |name: &str, set: &dyn Fn(&mut DataNodeConfig)| {
        let mut new = config.clone();
        set(&mut new);
        apply(&node, name, &new).unwrap();
    };
    node.compare_disks();
    assert_eq!((node.disks.slow().len(), avoided()), (1, vec![false; 3]));
    change("dfs.datanode.max.slowdisks.to.exclude", &|new| new.max_slow_disks_avoided = 1);
    assert_eq!(avoided(), [false, true, false]);
    change("dfs.datanode.max.slowdisks.to.exclude", &|new| new.max_slow_disks_avoided = 0);
    assert_eq!(avoided(), [false; 3]);
    change("dfs.datanode.max.slowdisks.to.exclude", &|new| new.max_slow_disks_avoided = 2);
    assert_eq!(avoided(), [false, true, false]);
    change("dfs.datanode.fileio.profiling.sampling.percentage", &|new| {
        new.disk_sampling_percentage = 50
    });
    assert_eq!(avoided(), [false, true, false], "it is measured still");
    change("dfs.datanode.fileio.profiling.sampling.percentage", &|new| {
        new.disk_sampling_percentage = 0
    });
    assert_eq!((node.disks.slow().len(), avoided()), (0, vec![false; 3]));
    change("dfs.datanode.fileio.profiling.sampling.percentage", &|new| {
        new.disk_sampling_percentage = 100
    });
    assert_eq!((node.disks.slow().len(), avoided()), (0, vec![false; 3]), "it begins anew");
}
