//! DataNodes are decommissioned and put into maintenance while clients read, and nothing is missed.

use crate::cluster::*;
use cairn_client::{AdminState, CreateOptions, DataNodeFilter, DataNodeInfo};
use cairn_datanode::DataNodeConfig;
use cairn_namenode::NameNodeConfig;
use cairn_namenode::config::HostsFormat;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tempfile::TempDir;

/// A cluster whose NameNode reads a file that says who leaves, and acts at once.
struct Lists {
    cluster: Cluster,
    _dir: TempDir,
    path: PathBuf,
    format: HostsFormat,
}

impl Lists {
    async fn start(count: usize, format: HostsFormat) -> Lists {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("hosts");
        std::fs::write(&path, "").unwrap();
        let list = path.clone();
        let tune = move |namenode: &mut NameNodeConfig, datanode: &mut DataNodeConfig| {
            mends_at_once(namenode, datanode);
            namenode.decommission_interval = Duration::from_millis(200);
            namenode.hosts_format = format;
            match format {
                HostsFormat::Lists => namenode.hosts_exclude_file = Some(list.clone()),
                HostsFormat::Combined => namenode.hosts_file = Some(list.clone()),
            }
        };
        let cluster = Cluster::start_tuned(count, tune, |_| {}).await;
        Lists { cluster, _dir: dir, path, format }
    }

    /// Writes the list and has it read. `entries` are addresses, with the rest of a JSON entry.
    async fn say(&self, entries: &[(&str, &str)]) {
        let lines: Vec<String> = match self.format {
            HostsFormat::Lists => entries.iter().map(|(address, _)| address.to_string()).collect(),
            HostsFormat::Combined => {
                let entry = |(address, rest): &(&str, &str)| {
                    let (host, port) = address.rsplit_once(':').unwrap();
                    format!("{{\"hostName\": \"{host}\", \"port\": {port}, {rest}}}")
                };
                vec![format!("[{}]", entries.iter().map(entry).collect::<Vec<_>>().join(","))]
            }
        };
        std::fs::write(&self.path, lines.join("\n")).unwrap();
        self.cluster.fs.refresh_nodes().await.unwrap();
    }

    async fn node(&self, uuid: &str) -> DataNodeInfo {
        let nodes = self.cluster.fs.datanodes(DataNodeFilter::All).await.unwrap();
        nodes.into_iter().find(|node| node.addr.uuid == uuid).unwrap()
    }

    /// The node with most replicas and units, and where it is.
    async fn fullest(&self) -> (String, String) {
        let nodes = self.cluster.fs.datanodes(DataNodeFilter::Live).await.unwrap();
        let node = nodes.into_iter().max_by_key(|node| node.block_count).unwrap();
        assert!(node.block_count > 0);
        (node.addr.uuid.clone(), node.addr.xfer_addr())
    }

    /// Waits for a state, reading all the while. Returns what was told of the way there.
    async fn until(&self, uuid: &str, state: AdminState, files: &Files) -> Vec<DataNodeInfo> {
        let start = Instant::now();
        let mut told = Vec::new();
        let watch = async {
            loop {
                let node = self.node(uuid).await;
                if node.admin_state == state {
                    return;
                }
                assert!(start.elapsed() < Duration::from_secs(60), "not in time: {node:?}");
                told.push(node);
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let read = async {
            for number in 0.. {
                files.read_one(&self.cluster, number).await;
            }
        };
        tokio::select! {
            () = watch => {}
            () = read => {}
        }
        told
    }

    /// How many units (or copies) of each block are where, without the DataNodes `gone`.
    async fn spread(&self, path: &str, gone: &[&str]) -> Vec<BTreeMap<u8, BTreeSet<String>>> {
        let blocks = self.cluster.fs.block_locations(path, 0, u64::MAX >> 1).await.unwrap();
        let units = |block: &cairn_client::FileBlock| {
            let mut units: BTreeMap<u8, BTreeSet<String>> = BTreeMap::new();
            for at in block.locations.iter().filter(|at| !gone.contains(&at.addr.uuid.as_str())) {
                units.entry(at.unit.0).or_default().insert(at.addr.uuid.clone());
            }
            units
        };
        blocks.blocks.iter().map(units).collect()
    }
}

/// Files with known bytes.
struct Files(Vec<(String, Vec<u8>)>);

impl Files {
    async fn write(cluster: &Cluster, policy: &str, striped_len: usize, copied: usize) -> Files {
        cluster.fs.enable_policy(policy).await.unwrap();
        let mut files = Vec::new();
        for seed in 0..3 {
            let data = bytes(seed, striped_len + 1000 * seed as usize);
            let path = format!("/striped{seed}");
            put(&cluster.fs, &path, &data, &striped(policy, 1 << 20)).await.unwrap();
            files.push((path, data));
        }
        for seed in 0..copied as u64 {
            let data = bytes(seed, (1 << 20) + 77);
            let path = format!("/copied{seed}");
            let options = CreateOptions {
                replication: Some(3),
                block_size: Some(1 << 20),
                ..CreateOptions::default()
            };
            put(&cluster.fs, &path, &data, &options).await.unwrap();
            files.push((path, data));
        }
        Files(files)
    }

    async fn read_one(&self, cluster: &Cluster, number: usize) {
        let (path, data) = &self.0[number % self.0.len()];
        assert_same(&get(&cluster.fs, path).await.unwrap(), data, path);
    }

    async fn read_all(&self, cluster: &Cluster) {
        for number in 0..self.0.len() {
            self.read_one(cluster, number).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn row_13_row_14_one_of_twelve_is_decommissioned_to_its_end_while_clients_read() {
    let mut lists = Lists::start(12, HostsFormat::Lists).await;
    let files = Files::write(&lists.cluster, "RS-6-3-1024k", 25 << 20, 4).await;
    let (uuid, address) = lists.fullest().await;
    lists.say(&[(&address, "")]).await;
    let told = lists.until(&uuid, AdminState::Decommissioned, &files).await;
    let told: Vec<_> = told.iter().filter_map(|node| node.leaving.clone()).collect();
    assert!(told.iter().any(|t| t.counted && t.blocks_left > 0), "{told:?}");
    let left: Vec<u64> = told.iter().map(|t| t.blocks_left).collect();
    assert!(left.windows(2).all(|pair| pair[0] >= pair[1]), "{left:?}");
    for (path, data) in &files.0 {
        for (number, units) in lists.spread(path, &[&uuid]).await.iter().enumerate() {
            let last = data.len().saturating_sub(number * (6 << 20)).div_ceil(1 << 20).min(6) + 3;
            let wanted = if path.starts_with("/striped") { last } else { 1 };
            assert_eq!(units.len(), wanted, "{path} block {number}: {units:?}");
            let copies = if path.starts_with("/striped") { 1 } else { 3 };
            assert!(units.values().all(|at| at.len() >= copies), "{path}: {units:?}");
        }
    }
    lists.cluster.kill(&uuid);
    files.read_all(&lists.cluster).await;
}

/// Waits until files of RS-3-2 and of three copies have all of both on DataNodes other than `gone`.
async fn until_whole(lists: &Lists, files: &Files, gone: &[&str]) {
    let start = Instant::now();
    'whole: loop {
        assert!(start.elapsed() < Duration::from_secs(60), "not whole in time");
        tokio::time::sleep(Duration::from_millis(100)).await;
        for (path, data) in &files.0 {
            for (number, units) in lists.spread(path, gone).await.iter().enumerate() {
                let rest = data.len().saturating_sub(number * (3 << 20));
                let wanted = rest.div_ceil(1 << 20).min(3) + 2;
                let whole = match path.starts_with("/striped") {
                    true => units.len() == wanted,
                    false => units.get(&0).is_some_and(|at| at.len() == 3),
                };
                if !whole {
                    continue 'whole;
                }
            }
        }
        return;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn maintenance_is_missed_by_nobody_until_it_is_over() {
    let mut lists = Lists::start(7, HostsFormat::Combined).await;
    let files = Files::write(&lists.cluster, "RS-3-2-1024k", 7 << 20, 2).await;
    // A file is closed before all of its units are reported.
    until_whole(&lists, &files, &[]).await;
    let (uuid, address) = lists.fullest().await;
    let before = lists.cluster.fs.datanodes(DataNodeFilter::Live).await.unwrap();
    let others = |nodes: &[DataNodeInfo]| -> u32 {
        nodes.iter().filter(|node| node.addr.uuid != uuid).map(|node| node.block_count).sum()
    };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
    let until = |ms: u128| {
        format!("\"adminState\": \"IN_MAINTENANCE\", \"maintenanceExpireTimeInMS\": {ms}")
    };
    lists.say(&[(&address, &until(now + 3_600_000))]).await;
    lists.until(&uuid, AdminState::InMaintenance, &files).await;
    lists.cluster.kill(&uuid);
    let start = Instant::now();
    while lists.cluster.fs.datanodes(DataNodeFilter::Dead).await.unwrap().is_empty() {
        assert!(start.elapsed() < Duration::from_secs(30), "not found dead in time");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let filter = DataNodeFilter::InMaintenance;
    let away = lists.cluster.fs.datanodes(filter).await.unwrap();
    assert_eq!(away.iter().map(|node| node.failed_volumes).collect::<Vec<_>>(), [Some(0)]);
    files.read_all(&lists.cluster).await;
    let during = lists.cluster.fs.datanodes(DataNodeFilter::Live).await.unwrap();
    assert_eq!(others(&during), others(&before), "nothing is made anew");
    assert_eq!(lists.cluster.fs.stats().await.unwrap().under_replicated, 0);
    // It should have been back by now.
    lists.say(&[(&address, &until(1))]).await;
    assert_eq!(lists.node(&uuid).await.admin_state, AdminState::Normal);
    until_whole(&lists, &files, &[&uuid]).await;
    files.read_all(&lists.cluster).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn row_14_a_decommission_that_cannot_end_says_why() {
    let lists = Lists::start(3, HostsFormat::Lists).await;
    let files = Files::write(&lists.cluster, "XOR-2-1-1024k", 100, 1).await;
    let (uuid, address) = lists.fullest().await;
    lists.say(&[(&address, "")]).await;
    let start = Instant::now();
    let reasons = loop {
        let told = lists.node(&uuid).await.leaving.unwrap();
        let reasons: Vec<String> = told.blocks.iter().map(|(_, why)| why.clone()).collect();
        let stuck = |why: &String| why.contains("none of the 2 live ones can take another");
        if !reasons.is_empty() && reasons.iter().all(stuck) {
            break reasons;
        }
        assert!(start.elapsed() < Duration::from_secs(30), "no reason in time: {reasons:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    assert!(reasons[0].starts_with("2 of 3 are on DataNodes in service"), "{reasons:?}");
    assert_eq!(lists.node(&uuid).await.admin_state, AdminState::Decommissioning);
    files.read_all(&lists.cluster).await;
    lists.say(&[]).await;
    assert_eq!(lists.node(&uuid).await.admin_state, AdminState::Normal);
    assert_eq!(lists.node(&uuid).await.leaving, None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn row_14_groups_as_wide_as_the_cluster_do_not_stop_a_decommission() {
    let mut lists = Lists::start(5, HostsFormat::Lists).await;
    let files = Files::write(&lists.cluster, "RS-3-2-1024k", 7 << 20, 1).await;
    let (uuid, address) = lists.fullest().await;
    lists.say(&[(&address, "")]).await;
    lists.until(&uuid, AdminState::Decommissioned, &files).await;
    lists.cluster.kill(&uuid);
    files.read_all(&lists.cluster).await;
    // No node has more units than the group can lose.
    for units in lists.spread("/striped0", &[&uuid]).await {
        for node in units.values().flatten() {
            let own = units.values().filter(|at| at.contains(node)).count();
            assert!(own <= 2, "{units:?}");
        }
    }
    let (uuid, _) = lists.fullest().await;
    lists.cluster.kill(&uuid);
    for (path, data) in files.0.iter().filter(|(path, _)| path.starts_with("/striped")) {
        assert_same(&get(&lists.cluster.fs, path).await.unwrap(), data, path);
    }
}
