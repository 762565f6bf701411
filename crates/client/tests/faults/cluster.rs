//! A NameNode and DataNodes on racks in this process, which notice a dead DataNode within two seconds.
//! DataNodes can be killed and come back on their disks.

use crate::code::{BLOCK, CELL, Code};
use crate::truth::Written;
use cairn_client::{ClientConfig, FileSystem};
use cairn_datanode::{DataNode, DataNodeConfig, Durability, RunningDataNode};
use cairn_namenode::config::{Durability as LogDurability, RackSource};
use cairn_namenode::{NameNode, NameNodeConfig, RunningNameNode};
use cairn_redundancy::{BlockFacts, BlockLookup};
use cairn_stripe::BlockId;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::net::TcpListener;

/// DataNodes that can be added.
const SPARE: usize = 6;

/// How long anything may take: far longer than it does.
pub const PATIENCE: Duration = Duration::from_secs(60);

pub struct Cluster {
    pub fs: FileSystem,
    nodes: Vec<Option<RunningDataNode>>,
    uuids: Vec<String>,
    data_config: DataNodeConfig,
    racks: usize,
    volumes: usize,
    pub namenode: RunningNameNode,
    dir: TempDir,
}

fn any_port() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

impl Cluster {
    /// `count` DataNodes, spread over racks in turn.
    pub async fn start(count: usize, racks: usize) -> Cluster {
        Cluster::start_with_volumes(count, racks, 1).await
    }

    /// DataNodes with so many volumes each, of which all but one may fail.
    pub async fn start_with_volumes(count: usize, racks: usize, volumes: usize) -> Cluster {
        let dir = tempfile::tempdir().unwrap();
        let rack_of = |node| (host(node), format!("/rack{}", node % racks));
        let rack_table = (0..count + SPARE).map(rack_of).collect();
        let heartbeat_interval = Duration::from_millis(80);
        let namenode = NameNode::start(NameNodeConfig {
            name_dir: dir.path().join("name"),
            format_if_empty: true,
            rpc_addr: any_port(),
            http_addr: None,
            durability: LogDurability::PageCache,
            min_block_len: 1024,
            superuser: Some("root".to_string()),
            safe_mode_extension: Duration::ZERO,
            racks: RackSource::Fixed(rack_table),
            heartbeat_interval,
            heartbeat_recheck_interval: Duration::from_millis(250),
            redundancy_interval: Duration::from_millis(60),
            pending_timeout: Duration::from_secs(3),
            ..NameNodeConfig::default()
        })
        .await
        .unwrap();
        let data_config = DataNodeConfig {
            name_nodes: vec![namenode.rpc_addr.to_string()],
            xfer_addr: any_port(),
            ipc_addr: any_port(),
            durability: Durability::PageCache,
            heartbeat_interval,
            reconstruction_read_timeout: Duration::from_millis(500),
            block_len_estimate: BLOCK,
            failed_volumes_tolerated: Some(volumes - 1),
            scan_bytes_per_second: 64 << 20,
            scan_period: Duration::from_millis(400),
            directory_scan_interval: Duration::from_millis(400),
            ..DataNodeConfig::default()
        };
        let fs = FileSystem::connect(client_config(&namenode)).await.unwrap();
        let mut cluster = Cluster {
            fs,
            nodes: Vec::new(),
            uuids: Vec::new(),
            data_config,
            racks,
            volumes,
            namenode,
            dir,
        };
        for _ in 0..count {
            cluster.add().await;
        }
        cluster
    }

    /// Adds an empty DataNode and returns its number.
    pub async fn add(&mut self) -> usize {
        self.add_with(|_| {}).await
    }

    /// The same with another configuration.
    pub async fn add_with(&mut self, change: impl FnOnce(&mut DataNodeConfig)) -> usize {
        self.nodes.push(None);
        let node = self.nodes.len() - 1;
        self.restart_with(node, change).await;
        self.uuids.push(self.nodes[node].as_ref().unwrap().uuid().to_string());
        self.wait_live(self.running().len()).await;
        node
    }

    /// Another client, which shares no connection or knowledge with the first.
    pub async fn another_client(&self) -> FileSystem {
        self.client_with(|_| {}).await
    }

    /// The same with another configuration.
    pub async fn client_with(&self, change: impl FnOnce(&mut ClientConfig)) -> FileSystem {
        let mut config = client_config(&self.namenode);
        change(&mut config);
        FileSystem::connect(config).await.unwrap()
    }

    /// Writes and closes a file.
    pub async fn write(&self, code: &Code, path: &str, data: Vec<u8>) -> Written {
        let mut writer = self.fs.create(path, &code.options()).await.unwrap();
        writer.write(&data).await.unwrap();
        writer.close().await.unwrap();
        Written { path: path.to_string(), data }
    }

    /// The folders of a DataNode's volumes.
    pub fn folders(&self, node: usize) -> Vec<PathBuf> {
        let folder = |volume| self.dir.path().join(format!("node{node}-volume{volume}"));
        (0..self.volumes).map(folder).collect()
    }

    /// Stops a DataNode at once; one that is stopped stays so.
    pub fn kill(&mut self, node: usize) {
        if let Some(running) = self.nodes[node].take() {
            running.kill();
        }
    }

    /// Stops a DataNode, unless there is a block that could not be read from the others that run.
    ///
    /// What is made on a fresh one need not be lost elsewhere: a unit of a short group moves there when the others are
    /// on too few racks, and where it came from it is deleted.
    pub fn kill_spare(&mut self, node: usize) {
        let others: BTreeSet<&str> = self
            .running()
            .into_iter()
            .filter(|running| *running != node)
            .map(|running| self.uuids[running].as_str())
            .collect();
        // The NameNode chooses nothing for deletion meanwhile.
        let nodes = &mut self.nodes;
        self.namenode.node().with_cluster(|cluster, lookup| {
            let is_needed = lookup.blocks_after(None, usize::MAX).into_iter().any(|(id, facts)| {
                let places = cluster.locations(id).into_iter().filter(|place| {
                    !place.corrupt && others.contains(cluster.node(place.node).uuid.as_str())
                });
                places.map(|place| place.unit).collect::<BTreeSet<_>>().len() < facts.data_units()
            });
            if !is_needed && let Some(running) = nodes[node].take() {
                running.kill();
            }
        });
    }

    /// Stops a DataNode; in its place is somebody who lets others connect.
    pub async fn replace(&mut self, node: usize) -> TcpListener {
        let addr = self.nodes[node].as_ref().unwrap().xfer_addr();
        self.kill(node);
        let start = Instant::now();
        loop {
            match TcpListener::bind(addr).await {
                Ok(listener) => return listener,
                Err(error) => assert!(start.elapsed() < PATIENCE, "{error}"),
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Where a running DataNode transfers data.
    pub fn xfer_addr(&self, node: usize) -> SocketAddr {
        self.nodes[node].as_ref().unwrap().xfer_addr()
    }

    /// Starts a DataNode on its disks, at new ports.
    pub async fn restart(&mut self, node: usize) {
        self.restart_with(node, |_| {}).await;
    }

    /// The same with another configuration.
    pub async fn restart_with(&mut self, node: usize, change: impl FnOnce(&mut DataNodeConfig)) {
        let folders = self.folders(node);
        folders.iter().for_each(|folder| std::fs::create_dir_all(folder).unwrap());
        let mut config = DataNodeConfig {
            data_dirs: folders.into_iter().map(Into::into).collect(),
            hostname: Some(host(node)),
            ..self.data_config.clone()
        };
        change(&mut config);
        let start = Instant::now();
        // What was killed lets go of its folders when its last task has noticed.
        let running = loop {
            match DataNode::start(config.clone()).await {
                Ok(running) => break running,
                Err(error) => assert!(start.elapsed() < PATIENCE, "{error}"),
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        };
        self.nodes[node] = Some(running);
    }

    /// DataNodes that run.
    pub fn running(&self) -> Vec<usize> {
        (0..self.nodes.len()).filter(|node| self.nodes[*node].is_some()).collect()
    }

    /// DataNodes that do not.
    pub fn stopped(&self) -> Vec<usize> {
        (0..self.nodes.len()).filter(|node| self.nodes[*node].is_none()).collect()
    }

    /// The rack of a DataNode.
    pub fn rack(&self, node: usize) -> usize {
        node % self.racks
    }

    /// The number of a DataNode.
    pub fn node_of(&self, uuid: &str) -> usize {
        self.uuids.iter().position(|known| known == uuid).unwrap()
    }

    /// The DataNodes of the block of `path` at `offset`, or of the last one when there is none (it
    /// may be open), by unit; replicas in their order.
    pub async fn holders(&self, path: &str, offset: u64) -> Vec<usize> {
        let start = Instant::now();
        loop {
            let blocks = self.fs.block_locations(path, offset, 1).await.unwrap();
            let block = blocks.blocks.into_iter().next().or(blocks.last_block);
            let mut places = block.map_or_else(Vec::new, |block| block.locations);
            places.sort_by_key(|place| place.unit);
            if !places.is_empty() {
                return places.iter().map(|place| self.node_of(&place.addr.uuid)).collect();
            }
            assert!(start.elapsed() < PATIENCE, "{path} has no block at {offset}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    async fn wait_live(&self, count: usize) {
        let live = || self.stats().live_nodes;
        self.wait(|| live() == count, || format!("{} of {count} DataNodes live", live())).await;
    }

    /// The NameNode's figures.
    pub fn stats(&self) -> cairn_redundancy::ClusterStats {
        let node = self.namenode.node();
        node.cluster().stats(node.now())
    }

    /// What the NameNode thinks of a block or group.
    pub fn known(&self, id: BlockId) -> String {
        self.namenode.node().with_cluster(|cluster, lookup| {
            let facts = lookup.block(id);
            let tally = facts.map(|facts| cluster.tally(id, &facts));
            format!("{facts:?}, {tally:?}")
        })
    }

    /// Waits until the NameNode knows who lives and has nothing left to mend, move or delete.
    pub async fn wait_quiet(&self) {
        self.wait(|| self.is_quiet(), || format!("{:?}\n{}", self.stats(), self.whereabouts()))
            .await;
    }

    /// Where the NameNode takes every block to be, and the files that are there.
    fn whereabouts(&self) -> String {
        let blocks = self.namenode.node().with_cluster(|cluster, lookup| {
            let all = lookup.blocks_after(None, usize::MAX).into_iter();
            let line = |(id, facts): (BlockId, BlockFacts)| {
                let tally = cluster.tally(id, &facts);
                let places = cluster.locations(id).into_iter().map(|place| {
                    let node = self.node_of(&cluster.node(place.node).uuid);
                    (place.unit.0, node, place.corrupt)
                });
                let places: Vec<(u8, usize, bool)> = places.collect();
                format!("{id}: (unit, node, bad) {places:?}, {facts:?}, {tally:?}")
            };
            all.map(line).collect::<Vec<_>>().join("\n")
        });
        let nodes = (0..self.nodes.len()).map(|node| {
            let state = if self.nodes[node].is_some() { "runs" } else { "is stopped" };
            let mut files = Vec::new();
            self.folders(node).iter().for_each(|folder| collect_files(folder, &mut files));
            let names = files.iter().filter_map(|path| {
                let part = path.parent()?.file_name()?;
                Some(Path::new(part).join(path.file_name()?).display().to_string())
            });
            let blocks: Vec<String> = names.filter(|name| name.contains("blk_")).collect();
            format!("node {node} {state}: {}", blocks.join(" "))
        });
        format!("{blocks}\n{}", nodes.collect::<Vec<_>>().join("\n"))
    }

    fn is_quiet(&self) -> bool {
        let stats = self.stats();
        let (blocks, groups) = (stats.replicated, stats.groups);
        let work = [
            stats.pending_reconstruction,
            stats.scheduled_reconstruction,
            stats.excess,
            blocks.pending_deletion + groups.pending_deletion,
            blocks.corrupt + groups.corrupt,
            blocks.missing + groups.missing,
            blocks.low_redundancy + groups.low_redundancy,
            blocks.badly_distributed + groups.badly_distributed,
        ];
        stats.live_nodes == self.running().len() && work.iter().all(|count| *count == 0)
    }

    /// Waits until something holds.
    pub async fn wait(&self, holds: impl Fn() -> bool, what: impl Fn() -> String) {
        let start = Instant::now();
        while !holds() {
            assert!(start.elapsed() < PATIENCE, "not in time: {}", what());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Files of finalized replicas on a DataNode's disks: block files and their meta files.
    pub fn finalized_files(&self, node: usize) -> Vec<PathBuf> {
        let mut found = Vec::new();
        for folder in self.folders(node) {
            collect_files(&folder, &mut found);
        }
        found.retain(|path| path.components().any(|part| part.as_os_str() == "finalized"));
        found.sort();
        found
    }
}

/// Files below a folder. What vanishes meanwhile was never there.
fn collect_files(folder: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        match path.is_dir() {
            true => collect_files(&path, found),
            false => found.push(path),
        }
    }
}

fn host(node: usize) -> String {
    format!("node{node}")
}

fn client_config(namenode: &RunningNameNode) -> ClientConfig {
    ClientConfig {
        namenode: namenode.rpc_addr.to_string(),
        user: "root".to_string(),
        socket_timeout: Duration::from_secs(20),
        add_block_delay: Duration::from_millis(20),
        add_block_retries: 10,
        hedge_after: Duration::from_millis(200),
        // A cell is sent when it is full, so that groups are begun with a few bytes and fail in their midst.
        packet_len: CELL,
        ..ClientConfig::default()
    }
}
