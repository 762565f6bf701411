use super::*;
use crate::dataset::Dataset;
use crate::volume::latency::DiskWork;
use cairn_net::proxy_users::ProxyUsers;
use std::net::SocketAddr;
use std::time::Duration;

fn node(config: &DataNodeConfig) -> Arc<Node> {
    let dataset = Dataset::open(config).unwrap();
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let users = ProxyUsers::read(&config.proxy_users);
    Arc::new(Node::new(config.clone(), dataset, users, (any, any, None)))
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
    change(DISKS_AVOIDED, &|new| new.max_slow_disks_avoided = 1);
    assert_eq!(avoided(), [false, true, false]);
    change(DISKS_AVOIDED, &|new| new.max_slow_disks_avoided = 0);
    assert_eq!(avoided(), [false; 3]);
    change(DISKS_AVOIDED, &|new| new.max_slow_disks_avoided = 2);
    assert_eq!(avoided(), [false, true, false]);
    change(DISK_SAMPLING, &|new| new.disk_sampling_percentage = 50);
    assert_eq!(avoided(), [false, true, false], "it is measured still");
    change(DISK_SAMPLING, &|new| new.disk_sampling_percentage = 0);
    assert_eq!((node.disks.slow().len(), avoided()), (0, vec![false; 3]));
    change(DISK_SAMPLING, &|new| new.disk_sampling_percentage = 100);
    assert_eq!((node.disks.slow().len(), avoided()), (0, vec![false; 3]), "it begins anew");
}
