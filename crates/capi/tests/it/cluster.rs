//! A NameNode and DataNodes in this process, with a replicated and an erasure coded folder.

use cairn_client::{ClientConfig, DataNodeFilter, FileSystem};
use cairn_datanode::{DataNode, DataNodeConfig, Durability, RunningDataNode};
use cairn_namenode::config::Durability as LogDurability;
use cairn_namenode::{NameNode, NameNodeConfig, RunningNameNode};
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;
use tempfile::TempDir;

pub struct Cluster {
    namenode: RunningNameNode,
    _datanodes: Vec<RunningDataNode>,
    _dir: TempDir,
}

impl Cluster {
    /// `/replicated` and `/ec` (RS-3-2-1024k) are there.
    pub async fn start(count: usize) -> Cluster {
        let dir = tempfile::tempdir().unwrap();
        let any_port = SocketAddr::from(([127, 0, 0, 1], 0));
        let namenode = NameNode::start(NameNodeConfig {
            name_dir: dir.path().join("name"),
            format_if_empty: true,
            rpc_addr: any_port,
            http_addr: None,
            durability: LogDurability::PageCache,
            superuser: Some("root".to_string()),
            safe_mode_extension: Duration::ZERO,
            ..NameNodeConfig::default()
        })
        .await
        .unwrap();
        let mut datanodes = Vec::new();
        for i in 0..count {
            let data = dir.path().join(format!("data{i}"));
            std::fs::create_dir_all(&data).unwrap();
            let config = DataNodeConfig {
                data_dirs: vec![data.into()],
                name_nodes: vec![namenode.rpc_addr.to_string()],
                xfer_addr: any_port,
                ipc_addr: any_port,
                durability: Durability::PageCache,
                heartbeat_interval: Duration::from_secs(1),
                ..DataNodeConfig::default()
            };
            datanodes.push(DataNode::start(config).await.unwrap());
        }
        let config = ClientConfig {
            namenode: namenode.rpc_addr.to_string(),
            user: "root".to_string(),
            ..ClientConfig::default()
        };
        let fs = FileSystem::connect(config).await.unwrap();
        while fs.datanodes(DataNodeFilter::Live).await.unwrap().len() < count {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        fs.mkdirs("/replicated", 0o755).await.unwrap();
        fs.mkdirs("/ec", 0o755).await.unwrap();
        fs.enable_policy("RS-3-2-1024k").await.unwrap();
        fs.set_policy("/ec", Some("RS-3-2-1024k")).await.unwrap();
        Cluster { namenode, _datanodes: datanodes, _dir: dir }
    }

    pub fn uri(&self) -> String {
        format!("hdfs://{}", self.namenode.rpc_addr)
    }

    /// Writes a `core-site.xml` that names the file system.
    pub fn write_conf(&self, folder: &Path, more: &[(&str, &str)]) {
        let uri = self.uri();
        let keys = more.iter().copied().chain([("fs.defaultFS", uri.as_str())]);
        let text = cairn_conf::xml::write(keys);
        std::fs::write(folder.join("core-site.xml"), text).unwrap();
    }
}
