//! A NameNode and DataNodes in this process, and files with known bytes.

use cairn_client::{
    BlockLocation, ClientConfig, CreateOptions, DataNodeFilter, FileBlock, FileSystem, Result,
};
use cairn_datanode::{DataDir, DataNode, DataNodeConfig, Durability, RunningDataNode};
use cairn_namenode::block_tokens::BlockTokenConfig;
use cairn_namenode::config::Durability as LogDurability;
use cairn_namenode::{NameNode, NameNodeConfig, RunningNameNode};
use cairn_security::block_token::Form;
use cairn_stripe::StorageType;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tempfile::TempDir;

pub struct Cluster {
    pub fs: FileSystem,
    pub datanodes: Vec<RunningDataNode>,
    pub namenode: RunningNameNode,
    /// What is the same of all DataNodes.
    data_config: DataNodeConfig,
    dir: TempDir,
}

/// What block tokens of all these clusters are like: whatever is done without one, or with the wrong one, shows.
pub fn tokens() -> BlockTokenConfig {
    let hours = Duration::from_secs(10 * 3600);
    BlockTokenConfig { key_interval: hours, lifetime: hours, form: Form::Legacy }
}

pub fn any_port() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

impl Cluster {
    /// A cluster whose clients have `change` made to their configuration.
    pub async fn start_with(count: usize, change: impl FnOnce(&mut ClientConfig)) -> Cluster {
        Cluster::start_tuned(count, |_, _| {}, change).await
    }

    /// A cluster that notices a dead DataNode after seconds and mends at once.
    pub async fn start_mending(count: usize) -> Cluster {
        Cluster::start_tuned(count, mends_at_once, |_| {}).await
    }

    /// A cluster whose servers have `tune`, and whose clients have `change` made to their configurations.
    pub async fn start_tuned(
        count: usize,
        tune: impl Fn(&mut NameNodeConfig, &mut DataNodeConfig),
        change: impl FnOnce(&mut ClientConfig),
    ) -> Cluster {
        let dir = tempfile::tempdir().unwrap();
        let mut name_config = NameNodeConfig {
            name_dir: dir.path().join("name"),
            format_if_empty: true,
            rpc_addr: any_port(),
            http_addr: None,
            durability: LogDurability::PageCache,
            min_block_len: 1024,
            superuser: Some("root".to_string()),
            safe_mode_extension: Duration::ZERO,
            block_tokens: Some(tokens()),
            ..NameNodeConfig::default()
        };
        let mut data_config = DataNodeConfig {
            xfer_addr: any_port(),
            ipc_addr: any_port(),
            durability: Durability::PageCache,
            heartbeat_interval: Duration::from_secs(1),
            ..DataNodeConfig::default()
        };
        tune(&mut name_config, &mut data_config);
        let namenode = NameNode::start(name_config).await.unwrap();
        data_config.name_nodes = vec![namenode.rpc_addr.to_string()];
        let datanodes = start_datanodes(dir.path(), &data_config, count).await;
        let mut config = ClientConfig {
            namenode: namenode.rpc_addr.to_string(),
            user: "root".to_string(),
            socket_timeout: Duration::from_secs(20),
            ..ClientConfig::default()
        };
        change(&mut config);
        let fs = FileSystem::connect(config).await.unwrap();
        while fs.datanodes(DataNodeFilter::Live).await.unwrap().len() < count {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Cluster { fs, datanodes, namenode, data_config, dir }
    }

    /// Starts so many DataNodes again, all of which were stopped, and waits until they are found at their new addresses.
    pub async fn start_again(&mut self, count: usize) {
        self.datanodes = start_datanodes(self.dir.path(), &self.data_config, count).await;
        let new: Vec<String> =
            self.datanodes.iter().map(|node| node.xfer_addr().to_string()).collect();
        loop {
            let live = self.fs.datanodes(DataNodeFilter::Live).await.unwrap();
            let known: Vec<String> = live.iter().map(|node| node.addr.xfer_addr()).collect();
            if new.iter().all(|addr| known.contains(addr)) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    pub async fn start(count: usize) -> Cluster {
        Cluster::start_with(count, |_| {}).await
    }

    /// Has the background scrub look for work so often.
    pub fn scrub_every(&self, period: Duration) {
        let mut cluster = self.namenode.node().cluster();
        let config = cluster.config().clone();
        cluster.set_config(cairn_redundancy::Config { scrub_period: period, ..config });
    }

    /// Stops the DataNodes that hold these units of a file's first block, at once.
    pub async fn kill_units(&mut self, path: &str, units: &[u8]) {
        let named = |block: &FileBlock| -> Vec<String> {
            let at = |location: &&BlockLocation| units.contains(&location.unit.0);
            block.locations.iter().filter(at).map(|location| location.addr.uuid.clone()).collect()
        };
        let block = reported(&self.fs, path, |block| named(block).len() == units.len()).await;
        named(&block).iter().for_each(|uuid| self.kill(uuid));
    }

    /// Has the NameNode take a DataNode for dead, before its silence proves it.
    pub fn declare_dead(&self, uuid: &str) {
        self.namenode.node().with_cluster(|cluster, lookup| {
            let handle = cluster.node_by_uuid(uuid).unwrap().handle;
            cluster.node_died(lookup, handle);
        });
    }

    /// Flips a bit in the middle of some replica's or internal block's file.
    pub fn corrupt_one(&self) {
        self.corrupt_first(|_| true);
    }

    /// Flips a bit in the middle of unit `unit` of some group.
    pub fn corrupt_unit(&self, unit: u8) {
        self.corrupt_first(|id| id & 15 == i64::from(unit));
    }

    fn corrupt_first(&self, wanted: impl Fn(i64) -> bool) {
        let mut folders = vec![self.dir.path().to_path_buf()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                let name = path.file_name().unwrap().to_string_lossy().into_owned();
                if path.is_dir() {
                    folders.push(path);
                } else if name
                    .strip_prefix("blk_")
                    .and_then(|id| id.parse().ok())
                    .is_some_and(&wanted)
                {
                    let len = path.metadata().unwrap().len();
                    return flip(&path, len / 2 * 8);
                }
            }
        }
        panic!("no block file");
    }

    /// The block file and the meta file of a replica or unit, on each DataNode that has it.
    pub fn block_files(&self, id: i64) -> Vec<(PathBuf, PathBuf)> {
        let (mut found, mut folders) = (Vec::new(), vec![self.dir.path().to_path_buf()]);
        while let Some(folder) = folders.pop() {
            let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
            let (sub_folders, files): (Vec<_>, Vec<_>) = paths.partition(|path| path.is_dir());
            folders.extend(sub_folders);
            let data =
                files.iter().find(|path| path.file_name().unwrap() == format!("blk_{id}").as_str());
            if let Some(data) = data {
                let prefix = format!("blk_{id}_");
                let is_meta = |path: &&PathBuf| {
                    path.file_name().unwrap().to_str().unwrap().starts_with(&prefix)
                };
                found.push((data.clone(), files.iter().find(is_meta).unwrap().clone()));
            }
        }
        found.sort();
        found
    }

    /// Puts somebody in place of a DataNode who lets clients connect and says nothing.
    pub async fn hang(&mut self, uuid: &str) -> tokio::net::TcpListener {
        let victim = self.datanodes.iter().find(|node| node.uuid() == uuid).unwrap();
        let addr = victim.xfer_addr();
        self.kill(uuid);
        loop {
            match tokio::net::TcpListener::bind(addr).await {
                Ok(listener) => return listener,
                Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        }
    }

    /// Where its servers have their folders: `name`, `data0` and so on.
    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Stops a DataNode at once.
    pub fn kill(&mut self, uuid: &str) {
        let index = self.datanodes.iter().position(|node| node.uuid() == uuid).unwrap();
        self.datanodes.remove(index).kill();
    }
}

async fn start_datanodes(
    dir: &Path,
    config: &DataNodeConfig,
    count: usize,
) -> Vec<RunningDataNode> {
    let mut datanodes = Vec::new();
    for i in 0..count {
        let data = dir.join(format!("data{i}"));
        std::fs::create_dir_all(&data).unwrap();
        let mut data_dirs = vec![data.into()];
        if config.max_locked_memory > 0 {
            let memory = dir.join(format!("memory{i}"));
            std::fs::create_dir_all(&memory).unwrap();
            data_dirs.push(DataDir { storage_type: StorageType::RamDisk, ..memory.into() });
        }
        let config = DataNodeConfig { data_dirs, ..config.clone() };
        datanodes.push(DataNode::start(config).await.unwrap());
    }
    datanodes
}

/// Notices a dead DataNode after seconds and mends at once.
pub fn mends_at_once(namenode: &mut NameNodeConfig, datanode: &mut DataNodeConfig) {
    namenode.heartbeat_interval = Duration::from_millis(200);
    namenode.heartbeat_recheck_interval = Duration::from_millis(200);
    namenode.redundancy_interval = Duration::from_millis(200);
    namenode.pending_timeout = Duration::from_secs(5);
    datanode.heartbeat_interval = Duration::from_millis(200);
    datanode.reconstruction_read_timeout = Duration::from_secs(1);
}

/// Bytes that differ from place to place, and from seed to seed.
pub fn bytes(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut out = Vec::with_capacity(len + 8);
    while out.len() < len {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        out.extend_from_slice(&state.to_le_bytes());
    }
    out.truncate(len);
    out
}

/// Writes a file in pieces of an odd length.
pub async fn put(fs: &FileSystem, path: &str, data: &[u8], options: &CreateOptions) -> Result<()> {
    let mut writer = fs.create(path, options).await?;
    for piece in data.chunks(100_003) {
        writer.write(piece).await?;
    }
    assert_eq!(writer.position(), data.len() as u64);
    writer.close().await
}

/// Reads a file from start to end.
pub async fn get(fs: &FileSystem, path: &str) -> Result<Vec<u8>> {
    let mut reader = fs.open(path).await?;
    let mut all = Vec::new();
    while let Some(chunk) = reader.next_chunk().await? {
        all.extend_from_slice(&chunk);
    }
    assert_eq!(all.len() as u64, reader.len());
    Ok(all)
}

/// Options for a file with a policy and blocks of `block_size` bytes in each unit.
pub fn striped(policy: &str, block_size: u64) -> CreateOptions {
    CreateOptions {
        overwrite: true,
        create_parents: true,
        policy: Some(policy.to_string()),
        block_size: Some(block_size),
        ..CreateOptions::default()
    }
}

/// Compares without printing megabytes.
pub fn assert_same(got: &[u8], want: &[u8], what: &str) {
    let differs = got.iter().zip(want).position(|(a, b)| a != b);
    assert!(
        got == want,
        "{what}: {} bytes of {}, first difference at {differs:?}",
        got.len(),
        want.len()
    );
}

/// Flips a bit of a file, counted modulo its length.
pub fn flip(path: &Path, bit: u64) {
    let mut bytes = std::fs::read(path).unwrap();
    let bit = (bit % (bytes.len() as u64 * 8)) as usize;
    bytes[bit / 8] ^= 1 << (bit % 8);
    std::fs::write(path, bytes).unwrap();
}

/// The first block of a file, once the NameNode knows all of it that is wanted: a file is complete before.
pub async fn reported(
    fs: &FileSystem,
    path: &str,
    is_enough: impl Fn(&FileBlock) -> bool,
) -> FileBlock {
    let start = Instant::now();
    loop {
        let block = first_block(fs, path).await;
        if is_enough(&block) {
            return block;
        }
        assert!(start.elapsed() < Duration::from_secs(60), "{path}: {block:?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// The first block of a file.
pub async fn first_block(fs: &FileSystem, path: &str) -> FileBlock {
    fs.block_locations(path, 0, 1).await.unwrap().blocks.swap_remove(0)
}
